// SPDX-License-Identifier: GPL-2.0
/*
 * profil() and sprofil() of the GNU C library. The sentences of the manual page are in
 * sentences/glibc.
 */
#include "family.h"

#include <profil/glibc.h>

#include "regions.h"

/*
 * profil()
 */

static int profil_on(void *buffer, size_t size, u64 offset, u32 scale)
{
	return profil(buffer, size, offset, scale);
}

static int profil_off(void)
{
	return profil(null, 0, 0, 0);
}

static const struct form of_profil = { profil_on, profil_off, 2 };

/* With a counter for every two bytes of text from loop 0 on */
static int on_loop(void)
{
	return profil(counters, NR_COUNTERS * sizeof(*counters), loop_at(0), 65536);
}

FIXTURE(profil) {
};

FIXTURE_OFF(profil, profil_off())

TEST_F(profil, most_counts_are_where_most_time_is_spent)
{
	ASSERT_EQ(0, profil(counters, LOOPS * 2, LOOPS_OFFSET, LOOPS_SCALE));
	EXPECT_TRUE(loop_burn(SCOPE, 5, 3 * MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 2, MANY));
	ASSERT_EQ(0, profil_off());
	EXPECT_LT(counters[2], counters[5]);
	EXPECT_LT(SOME, counters[2]);
	EXPECT_LT(sum(counters, 2) / 2, counters[5]);
}

/* The loop would be in the second counter, or in the first one. */
TEST_F(profil, no_byte_past_bufsiz_is_written)
{
	EXPECT_PLACES_IN(&of_profil, 4, { 2, 65536, 1 });
	for (size_t size = 2; size <= 3; size++)
		EXPECT_PLACES_IN(&of_profil, size, { 2, 65536, OUTSIDE });
	for (size_t size = 0; size <= 1; size++)
		EXPECT_PLACES_IN(&of_profil, size, { 0, 65536, OUTSIDE });
}

TEST_F(profil, every_tick_examines_the_pc)
{
	struct profil_stats s;

	ASSERT_EQ(0, profil(counters, 2, 0, 1));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 4 * MANY));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(0U, s.unselected);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(s.ticks, s.hit + s.outside);
}

TEST_PLACES(profil, offset_is_subtracted_and_the_rest_scaled, &of_profil,
	    { 0, 65536, 0 }, { 1, 65536, 0 }, { 2, 65536, 1 }, { 6, 32768, 1 }, { 8, 32768, 2 },
	    { 2, 65535, 0 }, { 3, 65535, 0 }, { 4, 65535, 1 }, { 65535, 2, 0 }, { 65536, 2, 1 })

TEST_PLACES(profil, a_result_within_bufsiz_raises_its_entry, &of_profil,
	    { 15, 65536, 7 }, { 16, 65536, OUTSIDE }, { 31, 32768, 7 }, { 32, 32768, OUTSIDE })

TEST_PLACES(profil, a_pc_below_offset_is_not_counted, &of_profil,
	    { BEFORE, 65536, OUTSIDE }, { BEFORE, 1, OUTSIDE }, { -4096, 65536, OUTSIDE })

TEST_PLACES(profil, a_pc_4_GiB_above_offset_is_not_folded_back, &of_profil,
	    { 1ULL << 32, 65536, OUTSIDE }, { (1ULL << 33) + 2, 65536, OUTSIDE },
	    { 1ULL << 32, 131072, OUTSIDE })

TEST_F(profil, a_null_buffer_turns_it_off)
{
	u64 before;

	ASSERT_EQ(0, on_loop());
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	EXPECT_IS_ON();
	EXPECT_LEAVES_OFF(profil(null, sizeof(counters), loop_at(0), 65536));
	before = hits();
	EXPECT_LT(0U, before);
	loop_run(0, 32 * LOOP_BURST);
	EXPECT_EQ(before, hits());
}

TEST_F(profil, scale_0_turns_it_off)
{
	ASSERT_EQ(0, on_loop());
	EXPECT_LEAVES_OFF(profil(counters, sizeof(counters), loop_at(0), 0));
	EXPECT_EQ(0U, hits());
}

TEST_F(profil, zero_is_returned)
{
	EXPECT_NO_ERROR(profil_off());
	EXPECT_NO_ERROR(profil(counters, sizeof(counters), 0, 65536));
	EXPECT_NO_ERROR(profil(counters, sizeof(counters), SIZE_MAX, 1));
	EXPECT_NO_ERROR(profil(counters, 0, 0, 65536));
	EXPECT_NO_ERROR(profil_off());
}

TEST_F(profil, any_scale_is_accepted)
{
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, 131072));
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, UINT_MAX));
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, 1));
	/* Only every second counter is used. */
	EXPECT_PLACES(&of_profil, { 1, 131072, 0 }, { 2, 131072, 2 }, { 5, 131072, 4 });
}

TEST_F(profil, a_bad_buffer_is_EFAULT_and_changes_nothing)
{
	ASSERT_EQ(0, on_loop());
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	EXPECT_ERROR(EFAULT, profil((void *)((char *)counters + 1), 2, 0, 65536));
	EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX, 0, 65536));
	EXPECT_TRUE(still_on());
}

TEST_F(profil, the_program_may_use_ITIMER_PROF)
{
	ASSERT_EQ(0, on_loop());
	expect_sigprof_is_free(_metadata);
	EXPECT_TRUE(loop_until(0, alarms > 2 && counter(counters, 2, 0) > 2));
}

TEST_F(profil, time_in_the_kernel_is_counted_too)
{
	struct profil_stats s;
	u64 patience;

	ASSERT_EQ(0, profil(counters, sizeof(counters), 0, 1));
	for (patience = 0; patience < 1 << 20; patience++) {
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		if (s.system > 2)
			break;
	}
	EXPECT_LT(2U, s.system);
	EXPECT_TRUE(accounted(&s));
}

TEST_F_CALL(profil, LTP_profil01_passes, EXPECT_EQ(0, run_beside("old-glibc-profil01", NULL)))

/*
 * sprofil()
 */

static u16 first[LOOPS], second[LOOPS];
static u32 wide[LOOPS], bin[2];

/* A region of the loops [from, to), with a counter of @width bytes for each */
static struct prof region(void *base, u32 width, unsigned int from, unsigned int to)
{
	return (struct prof) {
		.pr_base = base,
		.pr_size = (to - from) * width,
		.pr_off = LOOPS_OFFSET + from * LOOP_SIZE,
		.pr_scale = 65536 * width / LOOP_SIZE,
	};
}

static struct prof overflow_bin(void *base, u32 width)
{
	return (struct prof) { .pr_base = base, .pr_size = width, .pr_scale = 2 };
}

static int off(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

static int on_shorts(void *buffer, size_t size, u64 offset, u32 scale)
{
	return on_region((struct prof) { buffer, size, offset, scale }, PROF_USHORT);
}

static int on_ints(void *buffer, size_t size, u64 offset, u32 scale)
{
	return on_region((struct prof) { buffer, size, offset, scale }, PROF_UINT);
}

static const struct form shorts = { on_shorts, off, 2 }, ints = { on_ints, off, 4 };

FIXTURE(sprofil) {
};

FIXTURE_OFF(sprofil, off())

TEST_F(sprofil, each_region_counts_in_its_buffer)
{
	struct prof profs[] = { region(first, 2, 0, 3), region(second, 2, 5, 8) };

	ASSERT_TRUE(profile(profs, 2, PROF_USHORT, "147"));
	EXPECT_LT(SOME, first[1]);
	EXPECT_LT(SOME, second[2]);
	EXPECT_EQ(first[1], sum(first, 2));
	EXPECT_EQ(second[2], sum(second, 2));
}

TEST_F(sprofil, counters_have_16_bits_without_PROF_UINT)
{
	struct prof prof = region(first, 2, 0, 8);

	first[3] = USHRT_MAX;
	ASSERT_TRUE(profile(&prof, 1, 0, "23"));
	EXPECT_LT(SOME, first[2]);
	EXPECT_EQ(USHRT_MAX, first[3]);
	EXPECT_EQ(0, first[4]);
}

TEST_F(sprofil, PROF_UINT_makes_counters_of_32_bits)
{
	struct prof prof = region(wide, 4, 0, 8);

	wide[3] = USHRT_MAX;
	wide[4] = UINT_MAX;
	ASSERT_TRUE(profile(&prof, 1, PROF_UINT, "34"));
	EXPECT_LT(USHRT_MAX + SOME, wide[3]);
	EXPECT_EQ(UINT_MAX, wide[4]);
	EXPECT_EQ(0U, wide[2]);
}

TEST_F(sprofil, pr_scale_is_the_number_of_counters_per_counter_width_of_text)
{
	EXPECT_PLACES(&shorts,
		      { 1, 65536, 0 }, { 2, 65536, 1 }, { 6, 32768, 1 }, { 2, 131072, 2 },
		      { 3, 65535, 0 });
	EXPECT_PLACES(&ints,
		      { 3, 65536, 0 }, { 4, 65536, 1 }, { 12, 32768, 1 }, { 16, 32768, 2 });
}

TEST_F(sprofil, a_region_ends_where_its_counters_end)
{
	for (size_t size = 8; size <= 9; size++)
		EXPECT_PLACES_IN(&shorts, size, { 7, 65536, 3 }, { 8, 65536, OUTSIDE });
	/* 4 * 65535 / 65536 is still 3. */
	EXPECT_PLACES_IN(&shorts, 8, { 9, 65535, 3 }, { 10, 65535, OUTSIDE });
	EXPECT_PLACES_IN(&ints, 16, { 15, 65536, 3 }, { 16, 65536, OUTSIDE });
	/* No region is left. */
	EXPECT_LEAVES_OFF(on_ints(counters, 3, loop_at(0), 65536));
}

TEST_F(sprofil, a_pr_scale_below_2_counts_nothing)
{
	EXPECT_PLACES_IN(&shorts, 2, { 16, 2, 0 });
	for (u32 scale = 0; scale <= 1; scale++) {
		EXPECT_LEAVES_OFF(on_shorts(counters, 2, loop_at(0) - 16, scale));
	}
}

TEST_F(sprofil, regions_may_come_in_any_order)
{
	struct prof profs[] = {
		region(&first[4], 2, 4, 6), region(&first[6], 2, 6, 8),
		region(&first[0], 2, 0, 2), region(&first[2], 2, 2, 4),
	};

	ASSERT_TRUE(profile(profs, 4, 0, "01234567"));
	for (unsigned int i = 0; i < LOOPS; i++)
		EXPECT_LT(SOME, first[i]);
}

TEST_F(sprofil, where_regions_overlap_the_higher_one_counts)
{
	/* The second region lies within the first one. */
	struct prof profs[] = { region(first, 2, 0, 8), region(second, 2, 2, 5) };

	ASSERT_TRUE(profile(profs, 2, 0, "01234567"));
	for (unsigned int i = 0; i < LOOPS; i++) {
		if (i >= 2 && i < 5) {
			EXPECT_EQ(0, first[i]);
			EXPECT_LT(SOME, second[i - 2]);
		} else {
			EXPECT_LT(SOME, first[i]);
		}
	}
	EXPECT_EQ(0U, counters_sum(&second[3], 2, LOOPS - 3));
}

TEST_F(sprofil, of_regions_with_the_same_offset_the_first_counts)
{
	struct prof profs[] = { region(first, 2, 0, 2), region(second, 2, 0, 4) };

	ASSERT_TRUE(profile(profs, 2, 0, "13"));
	EXPECT_LT(SOME, first[1]);
	EXPECT_EQ(0, second[1]);
	EXPECT_LT(SOME, second[3]);
}

TEST_F(sprofil, a_pc_in_no_region_is_counted_in_the_overflow_bin)
{
	struct profil_stats s;

	/* The overflow bin can be at each position in the array. */
	for (unsigned int at = 0; at < 3; at++) {
		struct prof profs[3] = { region(wide, 4, 0, 2), region(&wide[4], 4, 4, 6) };

		profs[2] = profs[at];
		profs[at] = overflow_bin(bin, 4);
		memset(wide, 0, sizeof(wide));
		memset(bin, 0, sizeof(bin));
		ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_UINT));
		EXPECT_TRUE(loop_burn(SCOPE, 5, MANY));
		EXPECT_TRUE(loop_burn(SCOPE, 3, MANY));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		ASSERT_EQ(0, off());
		EXPECT_LT(SOME, wide[5]);
		EXPECT_LT(SOME, bin[0]);
		EXPECT_EQ(0U, bin[1]);
		EXPECT_EQ(0U, wide[3]);
		EXPECT_EQ(0U, s.outside);
		EXPECT_LE(s.ticks, bin[0] + sum(wide, 4));
	}
}

TEST_F(sprofil, a_pc_below_all_regions_is_outside)
{
	struct profil_stats s;

	ASSERT_EQ(0, on_region(region(first, 2, 4, 8), 0));
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LT(SOME, s.outside);
	EXPECT_EQ(0U, sum(first, 2));
}

TEST_F(sprofil, tvp_gets_the_true_tick)
{
	struct prof prof = region(first, 2, 0, 8);
	struct timeval tick = { -1, -1 }, when_off = { -1, -1 };

	ASSERT_EQ(0, sprofil(&prof, 1, &tick, 0));
	EXPECT_EQ(tick_ns() / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
	ASSERT_EQ(0, sprofil(NULL, 0, &when_off, 0));
	EXPECT_EQ(tick.tv_sec, when_off.tv_sec);
	EXPECT_EQ(tick.tv_usec, when_off.tv_usec);
}

TEST_F(sprofil, PROF_FAST_is_a_period_of_1_ms)
{
	struct prof prof = region(first, 2, 0, 8);
	struct timeval tick = { -1, -1 };
	struct profil_query query;
	struct profil_stats s, slow;
	u64 period;

	ASSERT_EQ(0, device_query(&query));
	period = query.tick_ns <= 1000000 || query.min_period > 1000000 ? query.tick_ns : 1000000;
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	ASSERT_EQ(0, sprofil(&prof, 1, &tick, PROF_FAST));
	EXPECT_EQ(period / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
	EXPECT_TRUE(loop_burn(SCOPE, 4, 16 * MANY));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &slow));
	EXPECT_LT(MANY, first[4]);
	EXPECT_TRUE(accounted(&s));
	/* The thread's session has fewer ticks in the same time, if its tick is slower. */
	if (period < query.tick_ns / 2)
		EXPECT_LT(slow.expected * 3 / 2, s.expected);
}

TEST_F(sprofil, profcnt_0_turns_it_off)
{
	struct prof prof = region(first, 2, 0, 8);

	EXPECT_LEAVES_OFF(sprofil(&prof, 0, NULL, 0));
	ASSERT_EQ(0, sprofil(&prof, 1, NULL, 0));
	EXPECT_IS_ON();
	EXPECT_LEAVES_OFF(sprofil(&prof, 0, NULL, 0));
	EXPECT_EQ(0, off());
}

/* Adjacent regions around loop 0, each with one counter. */
TEST_F(sprofil, a_thousand_regions_are_accepted)
{
	static struct prof profs[1000];
	static u16 many[ARRAY_SIZE(profs)];
	const unsigned int of_loop = 500;

	for (unsigned int i = 0; i < ARRAY_SIZE(profs); i++)
		profs[i] = (struct prof) {
			&many[i], sizeof(many[i]), loop_at(0) + 2 * i - 2 * of_loop, 65536
		};
	ASSERT_TRUE(profile(profs, ARRAY_SIZE(profs), 0, "0"));
	EXPECT_LT(SOME, many[of_loop]);
}

TEST_F(sprofil, an_error_changes_nothing)
{
	struct prof good = region(counters, 2, 0, 8);
	struct profil_query query;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, sprofil(&good, 1, NULL, 0));

	EXPECT_ERROR(EINVAL, sprofil(&good, -1, NULL, 0));
	EXPECT_ERROR(EINVAL, sprofil(&good, 1, NULL, 4));
	EXPECT_ERROR(E2BIG, sprofil(&good, query.max_ranges, NULL, 0));
	EXPECT_ERROR(E2BIG, sprofil(&good, INT_MAX, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil(NULL, 1, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil((void *)16, 1, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil(&good, 1, (void *)16, 0));
	EXPECT_ERROR(EFAULT, on_region(region((void *)16, 2, 0, 8), 0));
	EXPECT_ERROR(EFAULT, on_region(region((char *)counters + 1, 2, 0, 8), 0));
	if (sizeof(good.pr_scale) > 4) {
		good.pr_scale = 1UL << (sizeof(good.pr_scale) * 8 - 32);
		EXPECT_ERROR(EINVAL, sprofil(&good, 1, NULL, 0));
	}

	/* The profile did not change. */
	EXPECT_TRUE(still_on());
}

TEST_F_CALL(sprofil, glibc_tst_sprofil_passes, EXPECT_EQ(0, run_beside("old-glibc-sprofil", NULL)))

TEST_F(sprofil, a_program_linked_with_libc_sprofil_works_when_preloaded)
{
	EXPECT_EQ(9, run_beside("libc-sprofil", NULL));
	EXPECT_EQ(0, run_beside("libc-sprofil", "libprofil.so.1"));
}

TEST_HARNESS_MAIN
