/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Child processes, their exit statuses, the state of the caller's sessions, and its CPU and limit
 */
#ifndef _SELFTESTS_PROCESS_H
#define _SELFTESTS_PROCESS_H

#include "device.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#define PROCESS	PROFIL_SCOPE_PROCESS
#define THREAD	PROFIL_SCOPE_THREAD

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

/* From now on, the caller runs only on @cpu. */
static inline void run_on_cpu(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(!sched_setaffinity(0, sizeof(set), &set));
}

/* Sets RLIMIT_MEMLOCK. */
static inline void limit_memlock(u64 bytes)
{
	const struct rlimit limit = { bytes, bytes };

	MUST(!setrlimit(RLIMIT_MEMLOCK, &limit));
}

static inline void handle_nothing(int signal)
{
	(void)signal;
}

/* Lets a signal that does nothing arrive every @us microseconds. @flags: those of sigaction(). */
static inline void interrupt_often(unsigned int us, int flags)
{
	const struct sigaction action = { .sa_handler = handle_nothing, .sa_flags = flags };
	const struct itimerval often = { { 0, us }, { 0, us } };

	MUST(!sigaction(SIGALRM, &action, NULL));
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
}

#define SPAWNED 4U

/* Children for kill_children() */
static pid_t spawned_pids[SPAWNED];

/* Waits for @child. Returns its exit status, or 128 + the signal that killed it. */
static inline int status_of(pid_t child)
{
	unsigned int i;
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	for (i = 0; i < SPAWNED; i++)
		if (spawned_pids[i] == child)
			spawned_pids[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Kills @child, and returns its status_of(). */
static inline int killed(pid_t child)
{
	kill(child, SIGKILL);
	return status_of(child);
}

/* Remembers @child for kill_children(), if not too many run already. */
static inline void child_note(pid_t child)
{
	unsigned int i = 0;

	while (i < SPAWNED && spawned_pids[i])
		i++;
	if (i < SPAWNED)
		spawned_pids[i] = child;
}

/* For a teardown: kills the children of spawn() that still run. */
static inline void kill_children(void)
{
	for (unsigned int i = 0; i < SPAWNED; i++)
		if (spawned_pids[i] > 0)
			killed(spawned_pids[i]);
}

/**
 * FORK() - Run statements in a child, which then exits with status 0
 *
 * Return: the child's process id. If there can be no child, the caller exits.
 */
#define FORK(...) ({									\
	pid_t pid_ = fork();								\
											\
	if (!pid_) {									\
		__VA_ARGS__;								\
		_exit(0);								\
	}										\
	MUST(pid_ > 0);									\
	pid_;										\
})

/**
 * SPAWN() - Evaluate an expression in a child that does not outlive its parent
 * @status: the expression; its value is the child's exit status
 *
 * Return: the child's process id. If there can be no child, the caller exits.
 */
#define SPAWN(status) ({								\
	pid_t spawned_ = FORK(prctl(PR_SET_PDEATHSIG, SIGKILL); _exit(status));		\
											\
	child_note(spawned_);								\
	spawned_;									\
})

static inline pid_t spawn(int (*child)(void))
{
	return SPAWN(child());
}

/* Runs @child in a process that shares the address space. @flags: others of clone(). */
static inline pid_t clone_vm(int (*child)(void *arg), int flags, void *arg)
{
	const size_t size = 64 << 10;
	pid_t pid = clone(child, (char *)map_private(size) + size, CLONE_VM | flags | SIGCHLD, arg);

	MUST(pid > 0);
	return pid;
}

/* Makes @path a copy of this program. */
static inline void copy_program(const char *path, unsigned int mode)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -f %s && cp /proc/%d/exe %s && chmod %o %s", path,
		 getpid(), path, mode, path);
	MUST(!system(command));
}

/* Evaluates @status in a child. Returns the exit status: @status, or 128 + a signal. */
#define status_in_child(status)	status_of(FORK(_exit(status)))

/* A test whose body is a function that runs in a child: it returns 0, or the step that failed. */
#define TEST_F_CHILD(fixture_name, test_name)						\
	static int child_of_##fixture_name##_##test_name(void);				\
	TEST_F(fixture_name, test_name)							\
	{										\
		EXPECT_EQ(0, status_in_child(child_of_##fixture_name##_##test_name()));	\
	}										\
	static int child_of_##fixture_name##_##test_name(void)

/* Like FORK(), but waits for the child, and checks its status. */
#define EXPECT_CHILD(...) do {								\
	int status_ = status_of(FORK(__VA_ARGS__));					\
											\
	EXPECT_EQ(0, status_);								\
} while (0)

/* The exit status of a child whose session ended by @end. */
#define ENDED(end)	(64 + (int)(end))

#endif /* _SELFTESTS_PROCESS_H */
