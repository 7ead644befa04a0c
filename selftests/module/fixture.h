/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by tests of sessions with a descriptor: setup and teardown, counters, and children that
 * take turns with the parent
 *
 * Tests that need another process start a child. Its exit status shows which step failed.
 */
#ifndef _SELFTESTS_FIXTURE_H
#define _SELFTESTS_FIXTURE_H

#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "send.h"
#include "tested.h"
#include "threads.h"
#include "users.h"

static u32 page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

/* Parent and children take turns with step; the page is for counters. */
static struct shared {
	u32 page[PAGE_MAX / sizeof(u32)];
	atomic_int step;
	atomic_uint count;
	u64 space;
	struct profil_stats stats;
	u64 cpu_ns;
} *shared;

static inline bool step_is(int step)
{
	return await(shared->step >= step);
}

/* A child joins the session, then waits for step 2. */
static inline void join_session(u32 scope)
{
	MUST(!descriptor_attach(fd, scope, 0, &shared->space));
	shared->step = 1;
	MUST(step_is(2));
}

/* At the start of a test: the references to the module, and the bytes that are pinned */
static long long users;
static u64 locked;

static inline void sessions_setup(struct __test_metadata *_metadata)
{
	ASSERT_DEVICE();
	shared = map_shared(sizeof(*shared));
	users = module_users();
	locked = pinned_bytes();
	ASSERT_TRUE(module_is_built_in() || users > 0);
}

/* Returns everything that a test may have left. Nothing of its sessions may remain. */
static inline void sessions_teardown(struct __test_metadata *_metadata)
{
	kill_children();
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	if (fd >= 0)
		close_session();
	EXPECT_NO_SESSIONS(users, locked);
}

/* The functions of a fixture that has nothing else */
#define FIXTURE_OF_SESSIONS(name)			\
	FIXTURE_SETUP(name)				\
	{						\
		sessions_setup(_metadata);		\
	}						\
	FIXTURE_TEARDOWN(name)				\
	{						\
		sessions_teardown(_metadata);		\
	}

/* A child opens a session, which ends when the child exits, at step 1. The descriptor is in fd. */
static inline pid_t spawn_creator(struct profil_open open)
{
	int ends[2];
	pid_t child;

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
	child = SPAWN(send_fd(ends[1], must_open_as(open)) || !step_is(1));
	fd = receive_fd(ends[0]);
	MUST(fd >= 0);
	return child;
}

static inline u32 count_of(unsigned int i)
{
	return *(volatile u32 *)&page[i];
}

/* Runs loop @i until the session has @n more ticks outside of ranges. */
static inline bool burn_outside(unsigned int i, u64 n)
{
	u64 until = stats_now().outside + n;

	return loop_until(i, stats_now().outside >= until);
}

#endif /* _SELFTESTS_FIXTURE_H */
