/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs the command profil in a directory of its own, and kills what still runs at the end of a test
 *
 * This is the command of the tree; or the command in the environment variable PROFIL; or the
 * installed command. It samples record_work, which is beside the program of the test. SUBCOMMAND is
 * the one under test.
 */
#ifndef _SELFTESTS_COMMAND_H
#define _SELFTESTS_COMMAND_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"

static char here[PATH_MAX];	/* the directory of record_work */
static char work[PATH_MAX];
static char command[PATH_MAX];
static char dir[64];		/* directory for the files of a test; the working directory */
static pid_t running[8];	/* processes to kill at the end if they still run */
static int master = -1, slave = -1;	/* of the pseudo-terminal of terminal_open() */

/* The same as fork(), but the test kills the child at its end. */
static inline pid_t start_child(void)
{
	pid_t child = fork();

	for (size_t i = 0; i < sizeof(running) / sizeof(*running) && child; i++) {
		if (!running[i]) {
			running[i] = child;
			break;
		}
	}
	return child;
}

/*
 * Starts @argv with its output in files; if @terminal >= 0, in a new session of that terminal.
 * Returns when the child has called exec.
 */
static inline pid_t start_argv(char *const argv[], int terminal)
{
	int fd, exec_pipe[2];
	pid_t child;
	char byte;

	if (pipe2(exec_pipe, O_CLOEXEC))
		return -1;
	child = start_child();
	if (child) {
		close(exec_pipe[1]);
		while (read(exec_pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(exec_pipe[0]);
		return child;
	}
	if (terminal >= 0) {
		setsid();
		if (ioctl(terminal, TIOCSCTTY, 0))
			_exit(99);
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDOUT_FILENO);
	fd = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(98);
}

static inline int end_of(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			return -1;
	for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++)
		if (running[i] == child)
			running[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define ARGUMENTS(...)	((char **)(const char *[]){ command, SUBCOMMAND, __VA_ARGS__, NULL })

/* Starts the subcommand with these arguments: see start_argv(). */
#define start(terminal, ...)	start_argv(ARGUMENTS(__VA_ARGS__), terminal)

/* Runs it with these arguments, and returns its exit status: see end_of(). */
#define run(...)		end_of(start(-1, __VA_ARGS__))

/* The process is killed. Returns true if that ended it. */
static inline bool kill_child(pid_t child)
{
	return !kill(child, SIGKILL) && end_of(child) == 1000 + SIGKILL;
}

/* Returns the text of a file, until the next call. */
static inline const char *text_of(const char *path)
{
	static char text[1 << 18];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = 0;
	return text;
}

static inline bool said(const char *path, const char *what)
{
	return strstr(text_of(path), what);
}

static inline void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* Waits for half a minute at most. */
#define WAIT_UNTIL(cond) ({							\
	int tries = 600;							\
										\
	while (!(cond) && tries--)						\
		pause_ms(50);							\
	tries >= 0;								\
})

/* Returns true if record_work has printed that it is ready. */
static inline bool ready(void)
{
	return said("out", "\n");
}

/* Starts the program, and returns its id when it has printed that it is ready; or -1. */
static inline pid_t start_ready(char *const argv[])
{
	pid_t child;

	unlink("out");
	child = start_argv(argv, -1);
	return WAIT_UNTIL(ready()) ? child : -1;
}

/* Starts record_work, which burns CPU time. */
static inline pid_t start_burning(void)
{
	return start_ready((char *[]){ work, "trap", "10", "0", NULL });
}

/* The process that the recorder started, or -1. */
static inline pid_t child_of(pid_t parent)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	return file_number(path, "");
}

static inline bool beside(char *path, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", here, name) < PATH_MAX && !access(path, X_OK);
}

static inline void terminal_close(void)
{
	if (master >= 0)
		close(master);
	if (slave >= 0)
		close(slave);
}

/* Opens a terminal, instead of the one that may be open. */
static inline bool terminal_open(void)
{
	terminal_close();
	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) || unlockpt(master))
		return false;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	return slave >= 0;
}

static inline bool command_setup(void)
{
	const char *set = getenv("PROFIL");
	ssize_t len = readlink("/proc/self/exe", here, sizeof(here) - 1);

	if (len <= 0)
		return false;
	here[len] = 0;
	*strrchr(here, '/') = 0;
	if (!beside(work, "record_work"))
		return false;
	if (set)
		snprintf(command, sizeof(command), "%s", set);
	else if (!beside(command, "../../tools/profil"))
		snprintf(command, sizeof(command), "profil");
	/*
	 * A report asks dpkg for the packages of files without names, and then asks apt about
	 * these for ten seconds at most. On an emulated CPU, apt needs that long. Here dpkg has no
	 * database, so it knows no package, and apt is not asked.
	 */
	if (setenv("DPKG_ADMINDIR", "/none", true))
		return false;
	strcpy(dir, "/tmp/record-XXXXXX");
	return mkdtemp(dir) && !chdir(dir);
}

static inline void command_teardown(void)
{
	struct dirent *entry;
	DIR *d;

	for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++) {
		if (running[i]) {
			kill(running[i], SIGKILL);
			waitpid(running[i], NULL, 0);
		}
	}
	terminal_close();
	d = opendir(dir);
	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	if (!chdir("/"))
		rmdir(dir);
}

#endif /* _SELFTESTS_COMMAND_H */
