/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests need that make processes: the state of the caller's sessions, and the end
 * of children
 */
#ifndef _SELFTESTS_PROCESS_H
#define _SELFTESTS_PROCESS_H

#include "device.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/*
 * A child is not the harness's: it says what is not as it must be, and its exit status
 * tells its parent.
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

/* There is no session, nor the record of one. */
static inline bool is_off(u32 scope)
{
	struct profil_stats s, off = { .size = sizeof(off), .scope = scope };

	return !session_stats(scope, &s) && !memcmp(&s, &off, sizeof(s));
}

/* Exit status of @child, or 128 + the signal that killed it. */
static inline int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The same of @child, which is killed now. */
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

/* What @child() says in a child of its own. */
static inline int status_in_child(int (*child)(void))
{
	pid_t pid = fork();

	if (!pid)
		_exit(child());
	return pid < 0 ? -1 : status_of(pid);
}

/* The exit status of a child that tells how its session ended. */
#define ENDED(end)	(64 + (int)(end))

#endif /* _SELFTESTS_PROCESS_H */
