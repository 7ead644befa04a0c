/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of the historical calls: counters, and places. A place is a pc with a known
 * distance d = pc - offset, and with a known counter
 *
 * Each family provides two functions, which turn profiling on and off.
 */
#ifndef _SELFTESTS_FAMILY_H
#define _SELFTESTS_FAMILY_H

#include "classic.h"
#include "loop.h"
#include "old.h"
#include "threads.h"

#define NR_COUNTERS	8U		/* counters in the buffer of a place */
#define OUTSIDE		LOOP_OUTSIDE

/* Enough ticks to tell a loop from the code between its bursts. */
#define FEW		5

static u16 counters[4096] __attribute__((aligned(4096)));

static inline u64 hits(void)
{
	return counters_sum(counters, 2, ARRAY_SIZE(counters));
}

/* Turns profiling on with @size bytes of @buffer. Returns the result of the call. */
typedef int on_fn(void *buffer, size_t size, u64 offset, u32 scale);
typedef void off_fn(void);

/*
 * Places
 */

struct place {
	u64 d;
	u32 scale;
	unsigned int counter;	/* index of a counter, or OUTSIDE */
};

#define BEFORE		UINT64_MAX	/* value of d for the address below the offset */

static inline void expect_place(struct __test_metadata *_metadata, on_fn *on, off_fn *off,
				const struct place *p)
{
	u64 at = loop_at(0), offset = p->d == BEFORE ? at + 1 : at - p->d, sum;
	struct profil_stats s;
	unsigned int place;

	if (p->d != BEFORE && p->d > at) {
		TH_LOG("no address is %#llx above another here", (unsigned long long)p->d);
		return;
	}
	memset(counters, 0, sizeof(counters));
	ASSERT_EQ(0, on(counters, NR_COUNTERS * sizeof(*counters), offset, p->scale));
	place = loop_place(SCOPE, 0, counters, 2, NR_COUNTERS);
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	off();
	ASSERT_TRUE(accounted(&s));
	EXPECT_EQ(0, s.saturated + s.dropped);
	sum = counters_sum(counters, 2, NR_COUNTERS);
	EXPECT_LE(s.hit, sum);
	EXPECT_EQ(hits(), sum);
	EXPECT_EQ(p->counter, place) {
		TH_LOG("d %#llx, scale %#x", (unsigned long long)p->d, p->scale);
		for (u32 i = 0; i < NR_COUNTERS; i++)
			TH_LOG("counter %u: %u", i, counters[i]);
	}
}

#define EXPECT_PLACES(on, off, ...) do {						\
	static const struct place __places[] = { __VA_ARGS__ };				\
											\
	for (unsigned int __i = 0; __i < ARRAY_SIZE(__places); __i++)			\
		expect_place(_metadata, on, off, &__places[__i]);			\
} while (0)

/* The scale with one counter for each loop, which has LOOP_SIZE bytes of text. */
#define LOOPS_SCALE	(65536 * 2 / LOOP_SIZE)
#define LOOPS_OFFSET	addr(loops_text)

/* Runs loop @i until its counter has increased by @n. */
static inline bool loop_hits(unsigned int i, u64 n)
{
	u64 until = counter(counters, 2, i) + n;

	return loop_until(i, counter(counters, 2, i) >= until);
}

/*
 * Memory
 */

/* Maps three pages: a writable one, a read-only one, and one that is not mapped. */
static inline u8 *pages_of_each_kind(void)
{
	u8 *p = map_pages(3);

	MUST(!mprotect(p + PAGE, PAGE, PROT_READ));
	MUST(!munmap(p + 2 * PAGE, PAGE));
	return p;
}

#endif /* _SELFTESTS_FAMILY_H */
