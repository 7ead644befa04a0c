/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of sessions with a descriptor: the fixture and its children
 *
 * Tests that need another process start a child. Its exit status shows which step failed.
 *
 * If a loop runs only while two sessions are on, both count the same ticks for it.
 */
#ifndef _SELFTESTS_SESSION_H
#define _SELFTESTS_SESSION_H

#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "program.h"
#include "tested.h"

#define USER		1000	/* an ordinary user, for root */

static u32 page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

/* Parent and children take turns with step; the page is for counters. */
static struct shared {
	u32 page[PAGE_MAX / sizeof(u32)];
	atomic_int step;
	u64 space;
	struct profil_stats stats;
	u64 cpu_ns;
} *shared;

/*
 * A call uncharges the buffers of ranges that have ended, even if the caller has no target in the
 * session. Returns true if no page is charged.
 */
static inline bool returns_buffers(int fd)
{
	struct profil_stats s;

	return descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) == -ESRCH &&
	       !descriptor_stats(fd, &s) && !s.locked;
}

static inline bool step_is(int step)
{
	return await(shared->step >= step);
}

/* Has session @fd count loop i of this process in counter i of @buffer, and enables it. */
static inline int count_loops(int fd, volatile void *buffer)
{
	struct profil_range range = range_of_loops(buffer, 4);

	return must_sample(fd, PROFIL_SCOPE_PROCESS, &range, 1);
}

static inline void open_session(volatile void *buffer)
{
	fd = count_loops(must_open(), buffer);
}

FIXTURE(session) {
	long long users;
	u64 locked;
};

FIXTURE_SETUP(session)
{
	ASSERT_DEVICE();
	shared = map_shared(sizeof(*shared));
	self->users = module_users();
	self->locked = pinned_bytes();
	ASSERT_TRUE(module_is_built_in() || self->users > 0);
}

/* Returns everything that a test may have left. */
FIXTURE_TEARDOWN(session)
{
	kill_children();
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	if (fd >= 0)
		close_session();
	EXPECT_NO_SESSIONS(self->users, self->locked);
}

/*
 * Returns the number of dropped ticks that belong to a counter, as those during exit do not. In
 * these tests ticks are dropped only if too many were deferred.
 */
static inline u64 dropped_here(struct __test_metadata *_metadata, const struct profil_stats *s)
{
	EXPECT_EQ(s->dropped - s->dropped_exit, s->dropped_overrun);
	if (s->dropped_overrun)
		TH_LOG("%llu ticks too many", (unsigned long long)s->dropped_overrun);
	return s->dropped_overrun;
}

#define EXPECT_EXACT(s, counters) do {					\
	EXPECT_TRUE(accounted(&(s)));					\
	EXPECT_EQ((s).hit, counters_sum(counters, 4, LOOPS));		\
} while (0)

/* Disables the session, and checks that it was exact. Returns its statistics. */
static inline struct profil_stats disable_exact(struct __test_metadata *_metadata,
						const volatile void *counters)
{
	struct profil_stats s = {};

	EXPECT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, counters);
	return s;
}

#define DISABLE_EXACT(counters)	disable_exact(_metadata, counters)

static atomic_bool enough;

static inline void *run_loop(void *i)
{
	while (!enough)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

static atomic_int thread_id;

static inline void *run_loop_1_told(void *unused)
{
	(void)unused;
	thread_id = gettid();
	return run_loop((void *)1);
}

/* Starts a thread that runs loop 1, whose id is in thread_id. */
static inline pthread_t run_loop_1_beside(void)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, run_loop_1_told, NULL) && await(thread_id));
	return thread;
}

/* Returns a range that counts loop @i in @counter. */
static inline struct profil_range range_of_loop(unsigned int i, u32 *counter)
{
	u64 start = addr(loops_text) + i * LOOP_SIZE;
	struct profil_range range = range_of(start, start + LOOP_SIZE, counter, 1, 4);

	range.granule = LOOP_SIZE;
	return range;
}

static inline u32 count_of(unsigned int i)
{
	return *(volatile u32 *)&page[i];
}

/* Joins the session, then waits until the parent has added ranges. */
static inline void join_session(u32 scope)
{
	MUST(!descriptor_attach(fd, scope, 0, &shared->space));
	shared->step = 1;
	MUST(step_is(2));
}

static inline int join_and_burn(void)
{
	join_session(PROFIL_SCOPE_PROCESS);
	MUST(descriptor_burn(fd, 0, 10));
	/* The counts are in the creator's memory, not in this process's. */
	return page[0] ? 13 : 0;
}

static inline int run_for_ever(void)
{
	shared->step = 1;
	while (!shared->stats.size)
		loop_run(0, LOOP_BURST);
	return 0;
}

#endif /* _SELFTESTS_SESSION_H */
