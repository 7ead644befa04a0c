// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: starts the command, or attaches the processes or the machine. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "commands/sampling.h"
#include "profile/buffer.h"
#include "recording/tables.h"

/* The maximum size of the command in a recording. */
#define ARGS_SIZE	(64U << 10)

static void print_too_many(const char *target, u32 max)
{
	warnx("%s is sampled by as many sessions with a period as the kernel allows (%u).\n"
	      "Each \"profil record\" and \"profil top\" has one, even if another one runs it.\n"
	      "End one of them, or use --tick.", target, max);
}

/* ---- the command ---- */

/* The child writes this to memory that it shares with its parent. */
struct start {
	__u64 space;		/* the address space of the child, as long as it has this memory */
	int attach_error;	/* errno of the step that has failed */
	int exec_error;
};

static void child_run(const struct session *s, struct start *start)
{
	setrlimit(RLIMIT_MEMLOCK, &s->old_limit);
	signal(SIGCHLD, s->old_sigchld);
	signal(SIGPIPE, s->old_sigpipe);
	for (int i = 0; i < 3; i++)
		if (s->streams[i] != i)
			dup2(s->streams[i], i);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
	if (s->options->runtimes)
		runtimes_ask();
	if (!s->options->all && !s->options->pids &&
	    profil_session_attach(s->fd, PROFIL_SCOPE_PROCESS, 0, &start->space)) {
		start->attach_error = errno;
	} else {
		execvp(s->options->command[0], s->options->command);
		start->exec_error = errno;
	}
	_exit(COMMAND_NOT_FOUND);
}

/* Prints why the command does not run. Returns the exit status of profil. */
static int command_failed(const struct session *s, const struct start *start)
{
	const char *name = s->options->command[0];
	char *path;

	if (start->attach_error) {
		if (start->attach_error == EBUSY)
			print_too_many("the command", s->query.max_clocked);
		else
			warnx("cannot sample the command: %s", strerror(start->attach_error));
		return COMMAND_FAILED;
	}
	path = program_find(name);
	free(path);
	/* If exec fails with ENOENT, but the command exists, its interpreter does not. */
	if (start->exec_error != ENOENT || !path) {
		warnx("%s: %s", name, strerror(start->exec_error));
		return start->exec_error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_RUN;
	}
	warnx("%s: it exists, but the interpreter that it requires does not", name);
	return COMMAND_NOT_RUN;
}

/* Returns 0, or the exit status of profil. */
static int command_start(struct session *s)
{
	struct start *start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pipes[2];
	char none;

	s->child = start == MAP_FAILED || pipe2(pipes, O_CLOEXEC) ? -1 : fork();
	if (s->child < 0) {
		warn("cannot start the command");
		s->child = 0;
		return COMMAND_FAILED;
	}
	if (!s->child)
		child_run(s, start);
	close(pipes[1]);
	/* Waits until the child has closed its end of the pipe: in exec, or at its exit. */
	while (read(pipes[0], &none, 1) < 0 && errno == EINTR)
		;
	close(pipes[0]);
	s->stream.own_space = start->space;
	if (!start->attach_error && !start->exec_error)
		return 0;
	waitpid(s->child, NULL, 0);
	s->child = 0;
	return command_failed(s, start);
}

/* Returns the command with the quotes that a shell needs. Leaves out what is too long. */
static char *quote_command(char *const argv[])
{
	struct buffer buffer;
	FILE *out;

	buffer_open(&buffer);
	out = buffer.out;
	for (; *argv && ftell(out) < ARGS_SIZE; argv++) {
		const bool quote = !**argv || strpbrk(*argv, " \t\n'\"\\$`&|;<>()*?[]{}#~!");

		fputs(quote ? "'" : "", out);
		for (const char *at = *argv; *at && ftell(out) < ARGS_SIZE; at++) {
			putc(*at, out);
			fputs(*at == '\'' ? "\\''" : "", out);
		}
		fputs(quote ? "'" : "", out);
		fputs(argv[1] ? " " : "", out);
	}
	return buffer_close(&buffer);
}

/* ---- a running process ---- */

static void print_attach_error(pid_t pid, bool exists)
{
	switch (errno) {
	case EPERM:
		warnx("process %d: permission denied: requires CAP_PERFMON or CAP_SYS_PTRACE.\n"
		      "Be root, or ask root to give a copy of the program that capability:\n"
		      "setcap cap_perfmon+ep ./profil\n"
		      "or to load the module so that it allows each user's own processes:\n"
		      "modprobe -r profil && modprobe profil attach=user\n"
		      "Commands that \"profil\" starts itself require none.", pid);
		break;
	case EBUSY:
		/* The limit for targets that another process attaches: see profil_query. */
		print_too_many("the process", 2);
		break;
	case EINVAL:	/* @pid is a thread, but not the main thread of a process */
	case ENOENT:
	case ESRCH:
	case ESTALE:
		if (!exists)
			warnx("there is no process %d", pid);
		else	/* It has no address space. */
			warnx("process %d executes no program: it has ended, or is in the kernel",
			      pid);
		break;
	default:
		warn("process %d", pid);
	}
}

/* Returns the program that the process executes. */
static char *find_program(pid_t pid)
{
	char path[64], program[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, program, sizeof(program) - 1);
	if (len >= 0)
		program[len] = '\0';
	else	/* The link requires ptrace rights; the name does not. */
		stream_read_comm(pid, program);
	return xstrdup(program);
}

/* Attaches the processes. If some of them cannot be attached, the others are sampled. */
static int targets_attach(struct session *s)
{
	const pid_t *pids = s->options->pids;
	unsigned int attached = 0;
	char *program;

	for (const pid_t *pid = pids; *pid; pid++) {
		int pidfd = pidfd_open(*pid, 0);

		if (pidfd >= 0 &&
		    !profil_session_attach_pidfd(s->fd, PROFIL_SCOPE_PROCESS, pidfd, NULL)) {
			if (!attached++)
				s->pid = *pid;
		} else {
			print_attach_error(*pid, pidfd >= 0);
		}
		if (!pids[1])
			s->pidfd = pidfd;
		else if (pidfd >= 0)
			close(pidfd);
	}
	if (!attached)
		return COMMAND_FAILED;
	program = find_program(s->pid);
	s->target = xasprintf("process %d (%s)", s->pid, basename(program));
	s->command = attached == 1 ? xstrdup(program) :
		     xasprintf("%s, and %u more process%s", program, attached - 1,
			       attached > 2 ? "es" : "");
	free(program);
	return 0;
}

/* ---- the machine ---- */

static void print_machine_error(void)
{
	switch (errno) {
	case EPERM:
		warnx("the whole machine: permission denied: requires CAP_PERFMON, in the initial\n"
		      "user namespace. Be root, or ask root to give a copy of the program that\n"
		      "capability:\n"
		      "setcap cap_perfmon+ep ./profil\n"
		      "Commands that \"profil\" starts require none without -a.");
		break;
	case EBUSY:
		warnx("the whole machine is sampled by as many sessions as the kernel allows.\n"
		      "Each \"profil record -a\" and \"profil top -a\" has one: end one of them.");
		break;
	case EOPNOTSUPP:
		warnx("the profil module is too old for -a: load the module of this version");
		break;
	default:
		warn("the whole machine");
	}
}

/* Returns 0, or the exit status of profil. */
static int machine_attach(struct session *s)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	/* Ticks of this process are not samples. */
	s->stream.own_pid = getpid();
	if (profil_session_attach(s->fd, PROFIL_SCOPE_MACHINE, 0, NULL)) {
		print_machine_error();
		return COMMAND_FAILED;
	}
	s->machine = xasprintf("the whole machine (%ld CPU%s)", cpus, cpus == 1 ? "" : "s");
	s->command = xstrdup(s->machine);
	return 0;
}

void session_give_tables(struct session *s)
{
	struct tables *tables = s->stream.tables;
	char *path;

	tables_add_vdso(tables);
	if (s->options->pids) {
		for (const pid_t *pid = s->options->pids; *pid; pid++)
			tables_add_process(tables, *pid);
	} else if (s->options->command) {
		path = program_find(s->options->command[0]);
		if (path)
			tables_add_program(tables, path);
		free(path);
	}
}

int session_start(struct session *s)
{
	char *const *command = s->options->command;
	char *quoted;
	int status = 0;

	if (s->options->pids)
		status = targets_attach(s);
	else if (s->options->all)
		status = machine_attach(s);
	if (status || !command)
		return status;
	status = command_start(s);
	if (status)
		return status;
	s->child_name = xasprintf("process %d (%s)", s->child, basename(command[0]));
	quoted = quote_command(command);
	s->command = s->command ? reconcat(s->command, s->command, ", during: ", quoted, NULL) :
		     xstrdup(quoted);
	free(quoted);
	if (!s->options->pids) {
		s->pid = s->child;
		s->target = xstrdup(s->child_name);
	}
	return 0;
}
