/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of sessions with a descriptor, session*.c
 *
 * If a loop runs only while two sessions are on, both count the same ticks for it.
 */
#ifndef _SELFTESTS_SESSION_H
#define _SELFTESTS_SESSION_H

#include "fixture.h"
#include "program.h"

FIXTURE(session) {
};

FIXTURE_OF_SESSIONS(session)

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

#define EXPECT_LOCKED(bytes) do {						\
	EXPECT_EQ(bytes, stats_now().locked);					\
	EXPECT_EQ(locked + (bytes), pinned_bytes());				\
} while (0)

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

/* Returns a range that counts loop @i in @counter. */
static inline struct profil_range range_of_loop(unsigned int i, u32 *counter)
{
	u64 start = addr(loops_text) + i * LOOP_SIZE;
	struct profil_range range = range_of(start, start + LOOP_SIZE, counter, 1, 4);

	range.granule = LOOP_SIZE;
	return range;
}

/* Starts a child that calls join_session(), and counts its loops in the page. */
static inline pid_t spawn_counted(int (*child)(void))
{
	struct profil_range range = range_of_loops(page, 4);
	pid_t pid = spawn(child);

	MUST(step_is(1) && !descriptor_add(fd, shared->space, &range, 1));
	shared->step = 2;
	return pid;
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
	return !loop_for_ever((void *)0);
}

#endif /* _SELFTESTS_SESSION_H */
