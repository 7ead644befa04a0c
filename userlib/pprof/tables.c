// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * See tables.h.
 *
 * "profil unwind-tables" gets the files as descriptors. For each one that has a table, it writes a
 * struct profil_unwind with the number of the descriptor, and then the rules, blocks and rows.
 *
 * The program does not see this process. A program that was executed is always a child that sends
 * SIGCHLD, so it is the child of another process, the guard: this one executes nothing, sends no
 * signal, and only waitpid() with __WCLONE or __WALL finds it. It shares the memory and the
 * descriptors of the program until the command has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profil.h"
#include "tables.h"

#define FILES_MAX	64	/* in one process */
#define STACK_SIZE	(32 << 10)
#define DIGITS		12

/**
 * struct request - A process that makes tables
 * @child: The process, once the guard has started it; or -1.
 * @files: The files.
 * @nr: Their number.
 * @output: The descriptors of the pipe from the process.
 * @arguments: Its arguments.
 * @numbers: The texts of the descriptors' numbers.
 * @environment: Its environment: where the user's cache is.
 * @stacks: For the guard, and for the process until it executes the command.
 */
struct request {
	pid_t child;
	int files[FILES_MAX];
	size_t nr;
	int output[2];
	char *arguments[FILES_MAX + 4];
	char numbers[FILES_MAX][DIGITS];
	char *environment[3];
	char stacks[2][STACK_SIZE] __attribute__((aligned(16)));
};

/* ---- the process ---- */

/* Runs with descriptors of its own. */
static int command_run(void *data)
{
	const struct request *request = data;
	const int null = open("/dev/null", O_RDWR);

	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	for (size_t i = 0; i < request->nr; i++)
		fcntl(request->files[i], F_SETFD, 0);
	if (dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
	    dup2(request->output[1], STDOUT_FILENO) >= 0)
		execve(PROFIL_COMMAND, request->arguments, request->environment);
	_exit(127);
}

/* Has the errno of the thread that has started it, but blocks all signals, so no call fails. */
static int guard_run(void *data)
{
	struct request *request = data;

	request->child = clone(command_run, request->stacks[1] + STACK_SIZE,
			       CLONE_VM | CLONE_VFORK | SIGCHLD, request);
	/* Now, only the command has this end of the pipe, with a descriptor of its own. */
	close(request->output[1]);
	if (request->child > 0)
		waitpid(request->child, NULL, 0);
	_exit(0);
}

static void set_environment(struct request *request)
{
	static const char *const names[] = { "HOME=", "XDG_CACHE_HOME=" };
	size_t nr = 0;

	for (char **variable = environ; variable && *variable; variable++)
		for (size_t i = 0; i < 2 && nr < 2; i++)
			if (!strncmp(*variable, names[i], strlen(names[i])))
				request->environment[nr++] = *variable;
}

/* Returns the guard, or -1. Blocks all signals, which the guard must not handle. */
static pid_t guard_start(struct request *request, bool vdso)
{
	sigset_t all, old;
	size_t nr = 0;
	pid_t guard;

	request->arguments[nr++] = "profil";
	request->arguments[nr++] = "unwind-tables";
	for (size_t i = 0; i < request->nr; i++) {
		snprintf(request->numbers[i], DIGITS, "%d", request->files[i]);
		request->arguments[nr++] = request->numbers[i];
	}
	if (vdso)
		request->arguments[nr++] = "vdso";
	set_environment(request);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	guard = clone(guard_run, request->stacks[0] + STACK_SIZE, CLONE_VM | CLONE_FILES, request);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return guard;
}

/* ---- its output ---- */

/**
 * struct waiter - The output
 * @wait: As for tables_give(), with @data.
 * @fd: The pipe.
 * @has_ended: All was read.
 */
struct waiter {
	bool (*wait)(void *data, int fd);
	void *data;
	int fd;
	bool has_ended;
};

static bool read_all(struct waiter *waiter, void *to, size_t size)
{
	ssize_t n;

	while (size) {
		n = read(waiter->fd, to, size);
		waiter->has_ended = !n;
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n > 0) {
			to = (char *)to + n;
			size -= n;
		} else if (!waiter->wait(waiter->data, waiter->fd)) {
			return false;
		}
	}
	return true;
}

/* Reads a table, and gives it to the session. Returns false after the last one. */
static bool give_next(struct tables *tables, int session, struct waiter *waiter)
{
	struct profil_unwind table;
	size_t rules, blocks, rows;
	char *data;
	bool done;

	if (!read_all(waiter, &table, sizeof(table)) || table.size != sizeof(table) ||
	    table.nr_rules > PROFIL_UNWIND_RULES || table.nr_blocks > PROFIL_UNWIND_BLOCKS ||
	    table.nr_rows > INT32_MAX / sizeof(__u32))
		return false;
	rules = table.nr_rules * sizeof(struct profil_unwind_rule);
	blocks = table.nr_blocks * sizeof(__u32);
	rows = table.nr_rows * sizeof(__u32);
	data = malloc(rules + blocks + rows);
	done = data && read_all(waiter, data, rules + blocks + rows);
	table.rules = (uintptr_t)data;
	table.blocks = table.rules + rules;
	table.rows = table.blocks + blocks;
	if (done && !profil_session_unwind(session, &table))
		tables->nr_given++;
	/* The kernel has no room for more, or has none for tables. */
	else if (done && (errno == EPERM || errno == ENOMEM || errno == ENOSPC ||
			  errno == EOPNOTSUPP || errno == ENOTTY))
		tables->is_off = true;
	free(data);
	return done;
}

/* ---- files ---- */

/* Returns true if the file was not handled before. From then on, it is. */
static bool is_new(struct tables *tables, const struct map *map)
{
	if (!map->inode || *map->path != '/' || tables->nr_known == TABLES_MAX)
		return false;
	for (size_t i = 0; i < tables->nr_known; i++)
		if (tables->known[i][0] == map->device && tables->known[i][1] == map->inode)
			return false;
	tables->known[tables->nr_known][0] = map->device;
	tables->known[tables->nr_known++][1] = map->inode;
	return true;
}

/*
 * Returns a descriptor that is not one of the standard streams, which the program may have closed:
 * those of the process are others. Closes @fd if it is one.
 */
static int fd_above_streams(int fd)
{
	int above;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return above;
}

/* Another file at the path is harmless: the table is for the file with which the kernel gets it. */
static int file_open(const char *path)
{
	const int fd = fd_above_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	return -1;
}

/* Opens files that were not handled before, up to FILES_MAX, from mapping @next on. */
static size_t open_files(struct request *request, struct tables *tables, const struct maps *maps,
			 size_t next)
{
	for (; next < maps->nr && request->nr < FILES_MAX; next++) {
		const struct map *map = &maps->list[next];
		const int fd = is_new(tables, map) ? file_open(map->path) : -1;

		if (fd >= 0)
			request->files[request->nr++] = fd;
	}
	return next;
}

static bool pipe_open(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC))
		return false;
	for (int i = 0; i < 2; i++)
		fds[i] = fd_above_streams(fds[i]);
	if (fds[0] >= 0 && fds[1] >= 0)
		return true;
	close(fds[0]);
	close(fds[1]);
	return false;
}

/* Makes the tables of the files of @request. */
static void make_tables(struct tables *tables, int session, struct request *request,
			struct waiter *waiter)
{
	pid_t guard = guard_start(request, !tables->has_vdso), child;

	if (guard < 0) {
		close(request->output[1]);
		return;
	}
	tables->has_vdso = true;
	while (!tables->is_off && give_next(tables, session, waiter))
		;
	if (!waiter->has_ended) {
		while (!(child = __atomic_load_n(&request->child, __ATOMIC_RELAXED)))
			usleep(1000);
		if (child > 0)
			kill(child, SIGKILL);
	}
	while (waitpid(guard, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}

void tables_give(struct tables *tables, int session, const struct maps *maps,
		 bool (*wait)(void *data, int fd), void *data)
{
	/* A program with more rights than its user must not do what the environment says. */
	if (getauxval(AT_SECURE) || access(PROFIL_COMMAND, X_OK))
		tables->is_off = true;
	for (size_t next = 0; next < maps->nr && !tables->is_off; ) {
		struct request *request = calloc(1, sizeof(*request));
		struct waiter waiter = { .wait = wait, .data = data };

		if (!request)
			return;
		next = open_files(request, tables, maps, next);
		if (request->nr && pipe_open(request->output)) {
			waiter.fd = request->output[0];
			fcntl(waiter.fd, F_SETFL, O_NONBLOCK);
			make_tables(tables, session, request, &waiter);
			close(request->output[0]);
		}
		for (size_t i = 0; i < request->nr; i++)
			close(request->files[i]);
		free(request);
	}
}
