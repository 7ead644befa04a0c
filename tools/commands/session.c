// SPDX-License-Identifier: GPL-2.0-or-later
/* See session.h. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "commands/session.h"
#include "text/accounting.h"

#define NS_PER_MS	1000000ULL
/* The maximum time between two reads of the records. */
#define DRAIN_NS	(250 * NS_PER_MS)
/*
 * A session has room for the records of this time: for at most RECORDS_MAX, or with -a for at most
 * RECORDS_PER_CPU of each CPU if these are more; and for fewer if RLIMIT_MEMLOCK is too low for so
 * many.
 */
#define ROOM_NS		NS_PER_S
#define RECORDS_MIN	64
#define RECORDS_MAX	4096
#define RECORDS_PER_CPU	1024
/*
 * With stacks, a record needs 1 KiB more. So there is room for fewer: the memory is at most 1 MiB,
 * or with -a 12 MiB.
 */
#define RECORDS_MAX_STACKS	512
#define RECORDS_PER_CPU_STACKS	256
#define RECORDS_MAX_ALL_STACKS	8192
/* If RLIMIT_MEMLOCK is too low for RECORDS_MIN, stacks have fewer callers, at least this many. */
#define STACK_DEPTH_MIN	15
#define READ_SIZE	(64U << 10)
/* The maximum size of a record, with its path. */
#define RECORD_SIZE_MAX	(8U << 10)
/* The maximum size of the command in a recording. */
#define ARGS_SIZE	(64U << 10)
/* Within this time after the first signal, further signals do not end the session. */
#define SECOND_SIGNAL_NS	(500 * NS_PER_MS)
/* After SIGINT from another process, the session ends with the command, or after this time. */
#define INTERRUPT_NS	NS_PER_S

/* ---- options ---- */

static bool parse_freq(const char *text, u64 *period)
{
	char *end;
	double hz = strtod(text, &end);

	/* If the period does not fit in 64 bits, use another one that is too long. */
	*period = hz * NS_PER_S > 1 ? NS_PER_S / hz + 0.5 : NS_PER_S * 1e9;
	return end != text && !*end && hz > 0 && hz <= NS_PER_S;
}

bool session_set_pids(const struct command_setting *setting)
{
	/* Each process takes a digit and a comma. */
	pid_t *pids = xcalloc(strlen(setting->value) / 2 + 2, sizeof(*pids));
	char *text = xstrdup(setting->value), *rest = text, *word;
	bool valid = true;
	size_t nr = 0;
	u64 number;

	while (valid && (word = strsep(&rest, ","))) {
		valid = command_parse_number(word, INT_MAX, &number);
		if (valid)
			pids[nr++] = number;
	}
	free(text);
	memcpy(setting->member, &pids, sizeof(pids));
	return command_check_value(setting, valid, "a process id");
}

bool session_set_freq(const struct command_setting *setting)
{
	struct session_options *options = setting->member;

	options->freq_chosen = true;
	return command_check_value(setting, parse_freq(setting->value, &options->period),
				   "a number of ticks per second");
}

bool session_set_tick(const struct command_setting *setting)
{
	u64 *period = setting->member;

	*period = 0;
	return true;
}

bool session_parse_target(const struct command *command, int argc, char **argv,
			  struct session_options *options)
{
	const bool has_command = optind < argc;
	const char *wrong = NULL;

	if (options->pids && options->all)
		wrong = "either -a or -p, not both";
	else if (options->pids && has_command)
		wrong = "either a command or -p, not both";
	else if (options->all && options->no_children)
		wrong = "either -a or --no-children, not both";
	if (wrong)
		warnx("%s", wrong);
	if (wrong || !(has_command || options->pids || options->all)) {
		command_print_help(stderr, command);
		return false;
	}
	if (has_command)
		options->command = argv + optind;
	return true;
}

/* ---- the session ---- */

static void print_session_error(const char *action, const struct rlimit *limit)
{
	switch (errno) {
	case ENOSYS:
		warnx(PROFIL_DEVICE " does not exist, or is too old for this command.\n"
		      "Load the profil module (as root: \"modprobe profil\")");
		break;
	case EACCES:
		warnx(PROFIL_DEVICE ": permission denied; ask root to chmod " PROFIL_DEVICE);
		break;
	case EPERM:
		warnx("%s: RLIMIT_MEMLOCK (%llu KiB) is too small for %u records",
		      action, (unsigned long long)limit->rlim_cur / 1024, RECORDS_MIN);
		break;
	case EBUSY:
		warnx("%s: the tick cannot be hooked: sysctl kernel.ftrace_enabled is 0", action);
		break;
	default:
		warn("%s", action);
	}
}

u32 session_modes(const struct session *s)
{
	return s->options->user_only ? PROFIL_MODE_USER : PROFIL_MODE_USER | PROFIL_MODE_SYSTEM;
}

u64 session_tick_ns(const struct session *s)
{
	return s->period ? s->period : s->query.tick_ns;
}

/* Returns -1 if the kernel does not allow the period that the user has chosen. */
static int choose_period(struct session *s)
{
	const struct profil_query *query = &s->query;

	s->period = s->options->period;
	if (!s->period || (s->period >= query->min_period && s->period <= query->max_period))
		return 0;
	if (!s->options->freq_chosen) {
		/* The administrator has set a minimum above the default period. */
		s->period = query->min_period;
		return 0;
	}
	warnx("%g Hz, a period of %g us: choose at most %s Hz (%g us) and at least %g Hz (%g s)",
	      (double)NS_PER_S / s->period, s->period / 1e3,
	      number(NS_PER_S / query->min_period).text, query->min_period / 1e3,
	      (double)NS_PER_S / query->max_period, (double)query->max_period / NS_PER_S);
	return -1;
}

/* Returns the number of records that a session should have room for. */
static u32 records_wanted(const struct session *s)
{
	const u64 cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const u64 per_cpu = s->options->stacks ? RECORDS_PER_CPU_STACKS : RECORDS_PER_CPU;
	u64 wanted = ROOM_NS / session_tick_ns(s) * cpus;
	u64 max = s->options->stacks ? RECORDS_MAX_STACKS : RECORDS_MAX;

	if (s->options->all && max < cpus * per_cpu)
		max = cpus * per_cpu;
	if (s->options->stacks && max > RECORDS_MAX_ALL_STACKS)
		max = RECORDS_MAX_ALL_STACKS;
	if (max > s->query.max_records)
		max = s->query.max_records;
	if (wanted < RECORDS_MIN)
		return RECORDS_MIN;
	return wanted < max ? wanted : max;
}

/* If RLIMIT_MEMLOCK is too low, reduces the room for records, and then stacks. */
static int open_reduced(struct profil_open *open)
{
	int fd;

	while ((fd = profil_session_open(open)) < 0 && errno == EPERM) {
		if (open->nr_records > RECORDS_MIN)
			open->nr_records /= 2;
		else if (open->stack_depth > STACK_DEPTH_MIN)
			open->stack_depth /= 2;
		else
			break;
	}
	return fd;
}

/* Opens a session with room for records_wanted(), or for as many as RLIMIT_MEMLOCK allows. */
int session_open(struct session *s)
{
	struct profil_open open = {
		.size = sizeof(open),
		.modes = session_modes(s),
		.fork = s->options->no_children ? PROFIL_FORK_OFF : PROFIL_FORK_SHARE,
		.exec = PROFIL_EXEC_FOLLOW,
	};
	struct rlimit limit;
	u64 fill_ns;
	u32 wanted;

	/* All locked memory is charged to this process. child_run() restores the old limit. */
	getrlimit(RLIMIT_MEMLOCK, &s->old_limit);
	limit = s->old_limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	s->query.size = sizeof(s->query);
	if (profil_query_kernel(&s->query)) {
		print_session_error(PROFIL_DEVICE, &limit);
		return -1;
	}
	if (choose_period(s))
		return -1;
	if (s->options->stacks && !(s->query.features & PROFIL_FEATURE_STACKS)) {
		warnx("the profil module is too old for --stacks: load the module of this version");
		return -1;
	}
	if (s->options->stacks)
		open.stack_depth = FORMAT_STACK_MAX;
	open.period = s->period;
	open.flags = s->period ? PROFIL_OPEN_JITTER : 0;
	wanted = records_wanted(s);
	open.nr_records = wanted;
	s->fd = open_reduced(&open);
	if (s->fd < 0 || fcntl(s->fd, F_SETFL, O_NONBLOCK) ||
	    profil_session_enable(s->fd)) {
		print_session_error("cannot open a session", &limit);
		return -1;
	}
	if (open.nr_records < wanted)
		warnx("RLIMIT_MEMLOCK (%llu KiB) allows room for only %u of %u records.\n"
		      "If the machine is busy, ticks may be lost.",
		      (unsigned long long)limit.rlim_cur / 1024, open.nr_records, wanted);
	if (s->options->stacks && open.stack_depth < FORMAT_STACK_MAX)
		warnx("RLIMIT_MEMLOCK (%llu KiB) allows only %u callers in each stack",
		      (unsigned long long)limit.rlim_cur / 1024, open.stack_depth);
	/* Read the records twice in the time in which all CPUs together can fill the buffer. */
	fill_ns = session_tick_ns(s) * open.nr_records / sysconf(_SC_NPROCESSORS_ONLN);
	s->drain_ns = fill_ns / 2 < DRAIN_NS ? fill_ns / 2 : DRAIN_NS;
	return 0;
}

void session_close(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void session_free(struct session *s)
{
	session_close(s);
	if (s->signals >= 0)
		close(s->signals);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s->command);
	free(s->target);
	free(s->machine);
}

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
	if (!s->options->all &&
	    profil_session_attach(s->fd, PROFIL_SCOPE_PROCESS, 0, &start->space)) {
		start->attach_error = errno;
	} else {
		execvp(s->options->command[0], s->options->command);
		start->exec_error = errno;
	}
	_exit(COMMAND_NOT_FOUND);
}

/* Returns true if the command exists: if exec fails with ENOENT, its interpreter does not. */
static bool command_exists(const char *name)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin", *end;
	bool found = false;
	char *file;

	if (strchr(name, '/'))
		return !access(name, F_OK);
	for (; *path && !found; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		file = xasprintf("%.*s/%s", (int)(end - path), path, name);
		found = !access(file, F_OK);
		free(file);
	}
	return found;
}

/* Prints why the command does not run. Returns the exit status of profil. */
static int command_failed(const struct session *s, const struct start *start)
{
	const char *name = s->options->command[0];

	if (start->attach_error) {
		if (start->attach_error == EBUSY)
			print_too_many("the command", s->query.max_clocked);
		else
			warnx("cannot sample the command: %s", strerror(start->attach_error));
		return COMMAND_FAILED;
	}
	if (start->exec_error != ENOENT || !command_exists(name)) {
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
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		xmalloc_failed(ARGS_SIZE);
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
	fclose(out);
	return text;
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
	return 0;
}

int session_start(struct session *s)
{
	char *const *command = s->options->command;
	char *quoted;
	int status;

	if (s->options->pids)
		return targets_attach(s);
	if (s->options->all) {
		status = machine_attach(s);
		if (status)
			return status;
	}
	if (!command) {
		s->command = xstrdup(s->machine);
		return 0;
	}
	status = command_start(s);
	if (status)
		return status;
	s->pid = s->child;
	s->target = xasprintf("process %d (%s)", s->pid, basename(command[0]));
	quoted = quote_command(command);
	s->command = s->machine ? xasprintf("%s, during: %s", s->machine, quoted) : xstrdup(quoted);
	free(quoted);
	return 0;
}

/* ---- ticks ---- */

void session_add_records(struct session *s, u64 ticks)
{
	static u64 buffer[READ_SIZE / sizeof(u64)];
	bool more = true;

	while (s->stream.ticks < ticks) {
		if (!s->next && more) {
			s->len = profil_session_read(s->fd, buffer, READ_SIZE);
			s->next = profil_record_first(buffer, s->len);
			/* If another record would have fitted in the buffer, there was none. */
			more = s->len > (ssize_t)(READ_SIZE - RECORD_SIZE_MAX);
		}
		if (!s->next)
			return;
		if (!(s->next->flags & PROFIL_RECORD_DETACHED))
			stream_record(&s->stream, s->next);
		else if (s->add_detached)
			s->add_detached(s->data, s->next);
		s->next = profil_record_next(buffer, s->len, s->next);
	}
}

/* ---- the end ---- */

bool session_reap(struct session *s)
{
	if (!s->child || waitpid(s->child, &s->status, WNOHANG) != s->child)
		return false;
	s->child = 0;
	return true;
}

bool session_handle_signals(struct session *s)
{
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	bool end = false;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (sigismember(&s->signals_of_caller, info.ssi_signo)) {
			sigaddset(&s->arrived, info.ssi_signo);
			continue;
		}
		if (s->child && info.ssi_code <= 0)
			kill(s->child, info.ssi_signo);
		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
			continue;
		s->end_signal = info.ssi_signo;
		if (!s->child || (s->first_signal && now - s->first_signal > SECOND_SIGNAL_NS))
			end = true;
		else if (info.ssi_signo == SIGINT && info.ssi_code <= 0)
			s->interrupted = now + INTERRUPT_NS;
		if (!s->first_signal)
			s->first_signal = now;
	}
	return end || now >= s->interrupted;
}

void session_wait(struct session *s, u64 until, bool records)
{
	struct pollfd fds[] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->pidfd, .events = POLLIN },
		/* Without POLLIN, only the end of all targets ends the wait. */
		{ .fd = s->targets_gone ? -1 : s->fd, .events = records ? POLLIN : 0 },
		{ .fd = s->input, .events = POLLIN },
	};
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	u64 left;
	struct timespec timeout;

	if (until > s->interrupted)
		until = s->interrupted;
	left = until > now ? until - now : 0;
	timeout.tv_sec = left / NS_PER_S;
	timeout.tv_nsec = left % NS_PER_S;
	if (ppoll(fds, 4, until == UINT64_MAX ? NULL : &timeout, NULL) < 0)
		return;
	if (fds[1].revents || (fds[2].revents & (POLLHUP | POLLERR)))
		s->targets_gone = true;
}

void session_wait_for_command(struct session *s)
{
	bool end = false;

	while (s->child && !end) {
		session_wait(s, UINT64_MAX, false);
		end = session_handle_signals(s);
		session_reap(s);
	}
}

int session_status(const struct session *s, bool failed)
{
	if (s->child)
		return COMMAND_SIGNAL + s->end_signal;
	if (WIFSIGNALED(s->status))
		return COMMAND_SIGNAL + WTERMSIG(s->status);
	if (WEXITSTATUS(s->status))
		return WEXITSTATUS(s->status);
	return failed ? COMMAND_FAILED : 0;
}

int session_take_signals(struct session *s)
{
	static const int numbers[] = {
		SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	};
	sigset_t set = s->signals_of_caller;

	s->old_sigpipe = signal(SIGPIPE, SIG_IGN);
	/* If SIGCHLD were ignored, the kernel would not keep the exit status of the command. */
	s->old_sigchld = signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals >= 0)
		return 0;
	warn("signalfd");
	return -1;
}
