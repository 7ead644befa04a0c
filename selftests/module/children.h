/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Child processes of a test, which its teardown kills if they still run.
 */
#ifndef _SELFTESTS_CHILDREN_H
#define _SELFTESTS_CHILDREN_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t children[4];

/* Runs @child() in a child process, which is killed if this process exits. */
static inline pid_t spawn(int (*child)(void))
{
	pid_t pid = fork();
	unsigned int i;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child());
	}
	for (i = 0; i < ARRAY_SIZE(children); i++) {
		if (!children[i]) {
			children[i] = pid;
			break;
		}
	}
	return pid;
}

/* Waits for @child. Returns its exit status, or 128 + the signal that killed it. */
static inline int status_of(pid_t child)
{
	unsigned int i;
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	for (i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i] == child)
			children[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int killed(pid_t child)
{
	kill(child, SIGKILL);
	return status_of(child);
}

static inline void kill_children(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i] > 0)
			killed(children[i]);
}

#endif /* _SELFTESTS_CHILDREN_H */
