// SPDX-License-Identifier: GPL-2.0
/*
 * profil() of Digital UNIX, System V and Version 7. The sentences of their manual pages are in
 * sentences/osf1.
 */
#include "family.h"

#include <profil/osf1.h>

#define MS	1000000U

static int on(void *buffer, size_t size, u64 offset, u32 scale)
{
	errno = 0;
	profil(buffer, size, (void *)(uintptr_t)offset, scale);
	return errno;
}

static int off(void)
{
	return on(NULL, 0, 0, 0);
}

static const struct form osf1 = { on, off, 2 };

/* Loop i is counted in counter i. */
static int on_loops(void)
{
	return on(counters, LOOPS * sizeof(*counters), LOOPS_OFFSET, LOOPS_SCALE);
}

#define EXPECT_QUIET(call) do {			\
	errno = 12345;				\
	call;					\
	EXPECT_EQ(12345, errno);		\
} while (0)

FIXTURE(osf1) {
};

FIXTURE_OFF(osf1, off())

TEST_F(osf1, an_odd_length_writes_no_byte_past_it)
{
	u8 *p = pages_of_each_kind(), *last;

	last = p + PAGE - 2;
	last[1] = 0x55;
	ASSERT_EQ(0, on(last, 1, loop_at(0), 65536));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_EQ(0x55, last[1]);
	EXPECT_EQ(0, last[0]);
	counters[1] = 0x5555;
	ASSERT_EQ(0, on(counters, 3, loop_at(0), 2));
	EXPECT_TRUE(loop_hits(0, 2));
	EXPECT_EQ(0x5555, counters[1]);
}

TEST_F(osf1, the_offset_is_where_the_text_begins)
{
	struct profil_stats s;

	/* With an offset of 0 text begins at 0, and this program is far beyond the buffer. */
	ASSERT_EQ(0, on(counters, sizeof(counters), 0, 65536));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(s.ticks, s.outside);
	EXPECT_PLACES(&osf1,
		      { BEFORE, 65536, OUTSIDE }, { 0, 65536, 0 }, { 6, 65536, 3 });
}

/*
 * Without the 1 ms clock ticks would be 4 or 10 ms apart. The number of expected ticks is CPU time
 * in units of the session's own clock.
 */
TEST_F(osf1, examines_the_pc_every_millisecond_if_the_kernel_can)
{
	const clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
	struct profil_query query;
	struct profil_stats s, t;
	u64 spent, period;

	ASSERT_EQ(0, device_query(&query));
	period = query.tick_ns > MS && query.min_period <= MS ? MS : query.tick_ns;
	ASSERT_EQ(0, on_loops());
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	spent = cpu_ns(clock);
	EXPECT_TRUE(loop_burn(SCOPE, 0, 200));
	spent = cpu_ns(clock) - spent;
	ASSERT_EQ(0, session_stats(SCOPE, &t));
	TH_LOG("%llu ticks expected in %llu ms of CPU time",
	       (unsigned long long)(t.expected - s.expected), (unsigned long long)(spent / MS));
	EXPECT_LE(spent / period / 2, t.expected - s.expected);
	EXPECT_GE(spent / period * 2, t.expected - s.expected);
}

TEST_F(osf1, getsysinfo_returns_the_rate_of_the_clock)
{
	struct profil_query query;
	u64 wide = UINT64_MAX;
	int hz = -1;

	ASSERT_EQ(0, device_query(&query));
	EXPECT_EQ(1, getsysinfo(GSI_CLK_TCK, &hz, sizeof(hz), NULL, NULL, 0));
	EXPECT_EQ(query.tick_hz < 1000 ? 1000 : query.tick_hz, hz);
	EXPECT_EQ(1, getsysinfo(GSI_CLK_TCK, &wide, sizeof(wide)));
	EXPECT_EQ(0, memcmp(&wide, &hz, sizeof(hz)));
	EXPECT_ERROR(EINVAL, getsysinfo(GSI_CLK_TCK, &hz, sizeof(hz) - 1));
	EXPECT_ERROR(EINVAL, getsysinfo(GSI_CLK_TCK + 1, &hz, sizeof(hz)));
	EXPECT_ERROR(EFAULT, getsysinfo(GSI_CLK_TCK, NULL, sizeof(hz)));
}

TEST_PLACES(osf1, d_times_scale_is_a_byte_of_the_buffer, &osf1,
	    { 0, 65536, 0 }, { 1, 65536, 0 }, { 2, 65536, 1 }, { 3, 65536, 1 },
	    { 2, 65535, 0 }, { 3, 65535, 1 }, { 6, 32768, 1 }, { 8, 32768, 2 })

TEST_PLACES(osf1, counts_if_the_result_is_less_than_the_length, &osf1,
	    { 15, 65536, 7 }, { 16, 65536, OUTSIDE },
	    { 31, 32768, 7 }, { 32, 32768, OUTSIDE },
	    { 1ULL << 32, 65536, OUTSIDE }, { (1ULL << 34) + 4, 32768, OUTSIDE })

TEST_PLACES(osf1, scale_0x10000_is_1_to_1, &osf1,
	    { 0, 0x10000, 0 }, { 2, 0x10000, 1 }, { 4, 0x10000, 2 }, { 14, 0x10000, 7 })

TEST_PLACES(osf1, scale_0x8000_maps_pairs_together, &osf1,
	    { 0, 0x8000, 0 }, { 2, 0x8000, 0 }, { 4, 0x8000, 1 }, { 6, 0x8000, 1 },
	    { 28, 0x8000, 7 }, { 30, 0x8000, 7 })

TEST_PLACES(osf1, a_scale_has_more_than_16_bits, &osf1,
	    { 1, 0x20000, 1 }, { 4, 0x20000, 4 }, { 7, 0x20000, 7 },
	    { 8, 0x20000, OUTSIDE }, { 1, 0xffffffff, OUTSIDE })

/* By the formula, d = 65536 would be in counter 1, and d = 2^19 in no counter. */
TEST_PLACES(osf1, scale_2_counts_every_pc_in_the_first_counter, &osf1,
	    { 0, 2, 0 }, { 1, 2, 0 }, { 65536, 2, 0 }, { 1 << 19, 2, 0 },
	    { 1ULL << 32, 2, 0 }, { BEFORE, 2, OUTSIDE },
	    { 65536, 3, 1 })

TEST_F(osf1, scale_0_or_1_turns_it_off)
{
	for (u32 scale = 0; scale <= 1; scale++) {
		EXPECT_QUIET(profil(counters, sizeof(counters), NULL, scale));
		EXPECT_TRUE(is_off(SCOPE));
		ASSERT_EQ(0, on_loops());
		EXPECT_TRUE(loop_hits(0, 2));
		EXPECT_QUIET(profil(counters, sizeof(counters), (void *)loops_text, scale));
		EXPECT_TRUE(is_off(SCOPE));
		ASSERT_EQ(0, on_loops());
		EXPECT_QUIET(profil((void *)16, 64, NULL, scale));
		EXPECT_TRUE(is_off(SCOPE));
	}
}

TEST_F(osf1, a_bad_buffer_with_scale_2_leaves_it_off)
{
	ASSERT_EQ(0, on_loops());
	EXPECT_EQ(EFAULT, on((void *)16, 64, 0, 2));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(osf1, without_a_free_descriptor_off_is_no_error_when_it_is_off)
{
	int last = take_all_descriptors();

	ASSERT_LE(0, last);
	EXPECT_QUIET(profil((void *)16, 64, NULL, 0));
	/* pinned_bytes() needs a descriptor. */
	close(last);
}

TEST_F(osf1, a_length_of_0_is_on_and_counts_nothing)
{
	struct profil_stats s;

	for (size_t size = 0; size < 2; size++) {
		ASSERT_EQ(0, on(counters, size, LOOPS_OFFSET, LOOPS_SCALE));
		EXPECT_IS_ON();
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		EXPECT_EQ(s.ticks, s.outside);
		EXPECT_EQ(0, hits());
	}
	/* The same is true without a buffer, and for a replacement. */
	EXPECT_EQ(0, on(NULL, 0, 0, 0177777));
	EXPECT_IS_ON();
}

TEST_PLACES(osf1, scale_0177777_is_about_1_to_1_and_077777_pairs, &osf1,
	    { 0, 0177777, 0 }, { 3, 0177777, 1 }, { 5, 0177777, 2 }, { 15, 0177777, 7 },
	    { 17, 0177777, OUTSIDE }, { 3, 077777, 0 }, { 5, 077777, 1 },
	    { 7, 077777, 1 }, { 9, 077777, 2 })

TEST_F(osf1, errno_stays_as_it_was)
{
	EXPECT_QUIET(profil(counters, 16, NULL, 65536));
	EXPECT_QUIET(profil(counters, 16, NULL, 2));
	EXPECT_QUIET(profil(NULL, 0, NULL, 0));
	EXPECT_QUIET(profil(NULL, 0, NULL, 0));
}

/*
 * Programs of their time
 */

TEST_RUNS_BESIDE(a_program_of_Version_7_works_unchanged, "old-osf1-v7")
TEST_RUNS_BESIDE(a_program_of_System_V_works_unchanged, "old-osf1-sysv")
TEST_RUNS_BESIDE(a_program_of_Digital_UNIX_works_unchanged, "old-osf1-tick")

TEST_HARNESS_MAIN
