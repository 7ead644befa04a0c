/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Child processes, their exit statuses, and the state of the caller's sessions
 */
#ifndef _SELFTESTS_PROCESS_H
#define _SELFTESTS_PROCESS_H

#include "device.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/*
 * ASSERT_* do not work in a child of a test. MUST() prints the condition that is not true,
 * and exits with a status that fails the test in the parent.
 */
#define MUST(cond) do {									\
	if (!(cond)) {									\
		dprintf(STDERR_FILENO, "# %s:%d: in process %d: not so: %s (errno %d)\n",	\
			__FILE__, __LINE__, getpid(), #cond, errno);			\
		_exit(1);								\
	}										\
} while (0)

static inline u32 state_of(u32 scope)
{
	struct profil_stats s;

	return session_stats(scope, &s) ? ~0U : s.state;
}

/* Returns true if there is no session, not even the statistics of an ended one. */
static inline bool is_off(u32 scope)
{
	struct profil_stats s, off = { .size = sizeof(off), .scope = scope };

	return !session_stats(scope, &s) && !memcmp(&s, &off, sizeof(s));
}

/* Waits for @child. Returns its exit status, or 128 + the signal that killed it. */
static inline int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Kills @child, and returns its status_of(). */
static inline int killed(pid_t child)
{
	kill(child, SIGKILL);
	return status_of(child);
}

/**
 * spawn() - Run a function in a child that does not outlive its parent
 * @child: the function; the child's exit status is its value
 *
 * Return: the child's process id. If there can be no child, the caller exits.
 */
static inline pid_t spawn(int (*child)(void))
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child());
	}
	MUST(pid > 0);
	return pid;
}

/* Runs @child() in a child. Returns its value, which is the exit status. */
static inline int status_in_child(int (*child)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(child());
	return pid < 0 ? -1 : status_of(pid);
}

/* The exit status of a child whose session ended by @end. */
#define ENDED(end)	(64 + (int)(end))

#endif /* _SELFTESTS_PROCESS_H */
