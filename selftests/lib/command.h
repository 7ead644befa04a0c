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

#include "kselftest_harness.h"

#include <ftw.h>
#include <poll.h>
#include <pty.h>
#include <stdarg.h>

#include "kernel.h"
#include "old.h"

static const char *work, *command;
static char dir[64];		/* for the files of a test; the working directory */
static int master = -1, slave = -1;	/* of the pseudo-terminal of terminal_open() */

/* Returns what printf() would print. */
__attribute__((format(printf, 1, 2))) static inline const char *as_text(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	MUST(vasprintf(&text, format, args) >= 0);
	va_end(args);
	return text;
}

/* Returns the path of a program or library that must be beside this one. */
static inline const char *beside(const char *name)
{
	const char *path = strdup(path_beside(name));

	MUST(!access(path, X_OK));
	return path;
}

/*
 * Starts @argv with its output in files; if @terminal >= 0, in a new session of that terminal.
 * Returns when the child has called exec.
 */
static inline pid_t start_argv(char *const argv[], int terminal)
{
	pid_t child = vfork();

	if (child) {
		MUST(child > 0);
		return child;
	}
	if (terminal >= 0) {
		setsid();
		if (ioctl(terminal, TIOCSCTTY, 0))
			_exit(99);
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	dup2(open("out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDOUT_FILENO);
	dup2(open("err", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(98);
}

#define ARGUMENTS(...)	((char **)(const char *[]){ __VA_ARGS__, NULL })

/* Starts a program with these arguments: see start_argv(). */
#define start_program(...)	start_argv(ARGUMENTS(__VA_ARGS__), -1)

/* Starts the subcommand with these arguments: see start_argv(). */
#define start(terminal, ...)							\
	start_argv(ARGUMENTS(command, SUBCOMMAND, __VA_ARGS__), terminal)

/* Waits for the end of @child. Returns its exit status, or 1000 + the signal that killed it. */
static inline int end_of(pid_t child)
{
	int status;

	MUST(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Runs the subcommand with these arguments: see end_of(). */
#define run(...)	end_of(start(-1, __VA_ARGS__))

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

/* With these arguments, the command exits with @status, and prints the message. */
#define EXPECT_SAYS(status, message, ...) do {					\
	EXPECT_EQ(status, run(__VA_ARGS__));					\
	EXPECT_TRUE(said("err", message)) TH_LOG("not said: %s", message);	\
} while (0)

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

/* Waits until the program, which has just been started, has printed that it is ready. */
static inline pid_t until_ready(pid_t child)
{
	MUST(WAIT_UNTIL(said("out", "\n")));
	return child;
}

#define start_ready(...)	until_ready(start_program(__VA_ARGS__))

/* Starts record_work, which burns CPU time. */
#define start_burning()		start_ready(work, "trap", "10", "0")

/* The process that the recorder started, or -1. */
static inline pid_t child_of(pid_t parent)
{
	return file_number(as_text("/proc/%d/task/%d/children", parent, parent), "");
}

/* Opens a terminal, instead of the one that may be open. */
static inline void terminal_open(void)
{
	if (master >= 0) {
		close(master);
		close(slave);
	}
	MUST(!openpty(&master, &slave, NULL, NULL, NULL));
	fcntl(master, F_SETFD, FD_CLOEXEC);
	fcntl(slave, F_SETFD, FD_CLOEXEC);
}

static inline void command_setup(void)
{
	work = beside("record_work");
	command = strdup(profil_command());
	/*
	 * A report asks dpkg for the packages of files without names, and then asks apt about
	 * these for ten seconds at most. On an emulated CPU, apt needs that long. Here dpkg has no
	 * database, so it knows no package, and apt is not asked.
	 */
	MUST(!setenv("DPKG_ADMINDIR", "/none", true));
	strcpy(dir, "/tmp/record-XXXXXX");
	MUST(mkdtemp(dir) && !chdir(dir));
}

static inline int remove_path(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void command_teardown(void)
{
	pid_t child;

	while ((child = child_of(getpid())) > 0)
		kill_child(child);
	MUST(!chdir("/") && !nftw(dir, remove_path, 16, FTW_DEPTH | FTW_PHYS));
}

#define NEED_PERFMON()	SKIP_IF(geteuid(), "needs CAP_PERFMON: run as root")

/* The setup and the teardown of a fixture for tests of the command */
#define COMMAND_SETUP(name)							\
	FIXTURE_SETUP(name)							\
	{									\
		command_setup();						\
	}									\
	FIXTURE_TEARDOWN(name)							\
	{									\
		command_teardown();						\
	}

#endif /* _SELFTESTS_COMMAND_H */
