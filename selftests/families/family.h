/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of the historical calls: the forms of a call, counters, and places. A place
 * is a pc with a known distance d = pc - offset, and with a known counter
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

/* A loop has at least SOME of MANY ticks. The others are between its bursts. */
#define MANY		16
#define SOME		(MANY / 4)

static u16 counters[4096] __attribute__((aligned(4096)));

static inline u64 hits(void)
{
	return counters_sum(counters, 2, ARRAY_SIZE(counters));
}

/**
 * struct form - A form of a call: how it turns profiling on and off
 * @on: Turns it on with @size bytes of @buffer. Returns 0, unless it fails.
 * @off: Turns it off. Returns 0, unless it fails.
 * @width: The number of bytes of a counter.
 */
struct form {
	int (*on)(void *buffer, size_t size, u64 offset, u32 scale);
	int (*off)(void);
	u32 width;
};

/* The functions of a fixture: profiling is off at first, and @turn_off, which is 0, ends it. */
#define FIXTURE_OFF(name, turn_off)		\
	FIXTURE_SETUP(name)			\
	{					\
		ASSERT_IS_OFF();		\
	}					\
						\
	FIXTURE_TEARDOWN(name)			\
	{					\
		EXPECT_EQ(0, turn_off);		\
		EXPECT_IS_OFF();		\
	}

/* Checks that the call returns 0, leaves errno alone, and leaves profiling off. */
#define EXPECT_LEAVES_OFF(call) do {		\
	EXPECT_NO_ERROR(call);			\
	EXPECT_TRUE(is_off(SCOPE));		\
} while (0)

/*
 * Places
 */

struct place {
	long long d;
	u32 scale;
	unsigned int counter;	/* index of a counter, or OUTSIDE */
};

#define BEFORE		(-1LL)		/* value of d for the address below the offset */

static inline void expect_place(struct __test_metadata *_metadata, const struct form *form,
				size_t size, const struct place *p)
{
	const unsigned int nr = size / form->width;
	u64 at = loop_at(0), sum;
	struct profil_stats s;
	unsigned int place;

	if (p->d > 0 && (u64)p->d > at) {
		TH_LOG("no address is %#llx above another here", p->d);
		return;
	}
	memset(counters, 0, sizeof(counters));
	ASSERT_EQ(0, form->on(counters, size, at - p->d, p->scale));
	place = loop_place(SCOPE, 0, counters, form->width, nr);
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	ASSERT_EQ(0, form->off());
	ASSERT_TRUE(accounted(&s));
	EXPECT_EQ(0, s.saturated + s.dropped);
	sum = counters_sum(counters, form->width, nr);
	EXPECT_LE(s.hit, sum);
	EXPECT_EQ(counters_sum(counters, form->width, sizeof(counters) / form->width), sum);
	EXPECT_EQ(p->counter, place) {
		TH_LOG("d %lld, scale %#x", p->d, p->scale);
		for (u32 i = 0; i < nr; i++)
			TH_LOG("counter %u: %llu", i,
			       (unsigned long long)counter(counters, form->width, i));
	}
}

/* Checks the places that follow, in a buffer of @size bytes. */
#define EXPECT_PLACES_IN(form, size, ...) do {						\
	static const struct place __places[] = { __VA_ARGS__ };				\
											\
	for (unsigned int __i = 0; __i < ARRAY_SIZE(__places); __i++)			\
		expect_place(_metadata, form, size, &__places[__i]);			\
} while (0)

/* The same in a buffer of NR_COUNTERS counters */
#define EXPECT_PLACES(form, ...)							\
	EXPECT_PLACES_IN(form, NR_COUNTERS * (form)->width, __VA_ARGS__)

/* A test of these places */
#define TEST_PLACES(fixture_name, test_name, form, ...)					\
	TEST_F_CALL(fixture_name, test_name, EXPECT_PLACES(form, __VA_ARGS__))

/* The scale with one counter for each loop, which has LOOP_SIZE bytes of text. */
#define LOOPS_SCALE	(65536 * 2 / LOOP_SIZE)
#define LOOPS_OFFSET	addr(loops_text)

/* Runs loop @i until its counter has increased by @n. */
static inline bool loop_hits(unsigned int i, u64 n)
{
	u64 until = counter(counters, 2, i) + n;

	return loop_until(i, counter(counters, 2, i) >= until);
}

/* Returns true if a profile of loop 0 in the first counter is on and counts. */
static inline bool still_on(void)
{
	return state_of(SCOPE) == PROFIL_STATE_ON && loop_hits(0, 2);
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
