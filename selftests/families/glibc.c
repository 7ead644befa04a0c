// SPDX-License-Identifier: GPL-2.0
/*
 * profil() and sprofil() of the GNU C library. The sentences of the manual page are in
 * sentences/glibc.
 */
#include "classic.h"

#include <profil/glibc.h>

#include "loop.h"
#include "old.h"

#define NR_COUNTERS	16U
#define NONE		LOOP_OUTSIDE
#define FAILED		LOOP_NOWHERE
#define OFF		(FAILED - 1)

/* A loop has at least SOME of FEW ticks. The others are between its bursts. */
#define FEW		16
#define SOME		(FEW / 4)

static u16 counters[NR_COUNTERS + 1];

/* Returns the counter for a pc @d above the offset, in a buffer of @bufsiz bytes. */
static unsigned int place(u64 d, unsigned int scale, size_t bufsiz)
{
	unsigned int of_loop;

	memset(counters, 0, sizeof(counters));
	if (profil(counters, bufsiz, loop_at(0) - d, scale))
		return FAILED;
	of_loop = loop_place(SCOPE, 0, counters, sizeof(*counters), ARRAY_SIZE(counters));
	return profil(null, 0, 0, 0) ? FAILED : of_loop;
}

#define PLACE(d, scale)	place(d, scale, NR_COUNTERS * sizeof(*counters))

/*
 * profil()
 */

FIXTURE(profil) {
};

FIXTURE_SETUP(profil)
{
	ASSERT_IS_OFF();
}

FIXTURE_TEARDOWN(profil)
{
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_IS_OFF();
}

TEST_F(profil, most_counts_are_where_most_time_is_spent)
{
	/* A counter for each loop: 32 bytes are 16 units. */
	ASSERT_EQ(0, profil(counters, LOOPS * 2, addr(loops_text), 4096));
	EXPECT_TRUE(loop_burn(SCOPE, 5, 3 * FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	ASSERT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_LT(counters[2], counters[5]);
	EXPECT_LT(SOME, counters[2]);
	EXPECT_LT(counters_sum(counters, 2, LOOPS) / 2, counters[5]);
}

TEST_F(profil, no_byte_past_bufsiz_is_written)
{
	/* The loop would be in the second counter. */
	EXPECT_EQ(1U, place(2, 65536, 4));
	EXPECT_EQ(NONE, place(2, 65536, 3));
	EXPECT_EQ(0U, counters[1]);
	EXPECT_EQ(NONE, place(2, 65536, 2));
	EXPECT_EQ(0U, counters[1]);
	EXPECT_EQ(NONE, place(0, 65536, 1));
	EXPECT_EQ(NONE, place(0, 65536, 0));
	EXPECT_EQ(0U, counters[0]);
}

TEST_F(profil, every_tick_examines_the_pc)
{
	struct profil_stats s;

	ASSERT_EQ(0, profil(counters, 2, 0, 1));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 4 * FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(0U, s.unselected);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(s.ticks, s.hit + s.outside);
}

TEST_F(profil, offset_is_subtracted_and_the_rest_scaled)
{
	EXPECT_EQ(0U, PLACE(0, 65536));
	EXPECT_EQ(0U, PLACE(1, 65536));
	EXPECT_EQ(1U, PLACE(2, 65536));
	EXPECT_EQ(1U, PLACE(6, 32768));
	EXPECT_EQ(2U, PLACE(8, 32768));
	EXPECT_EQ(0U, PLACE(2, 65535));
	EXPECT_EQ(0U, PLACE(3, 65535));
	EXPECT_EQ(1U, PLACE(4, 65535));
	EXPECT_EQ(0U, PLACE(65535, 2));
	EXPECT_EQ(1U, PLACE(65536, 2));
}

TEST_F(profil, a_result_within_bufsiz_raises_its_entry)
{
	EXPECT_EQ(15U, PLACE(31, 65536));
	EXPECT_EQ(NONE, PLACE(32, 65536));
	EXPECT_EQ(15U, PLACE(63, 32768));
	EXPECT_EQ(NONE, PLACE(64, 32768));
}

TEST_F(profil, a_pc_below_offset_is_not_counted)
{
	EXPECT_EQ(NONE, PLACE(-1ULL, 65536));
	EXPECT_EQ(NONE, PLACE(-1ULL, 1));
	EXPECT_EQ(NONE, PLACE(-4096ULL, 65536));
}

TEST_F(profil, a_pc_4_GiB_above_offset_is_not_folded_back)
{
	EXPECT_EQ(NONE, PLACE(1ULL << 32, 65536));
	EXPECT_EQ(NONE, PLACE((1ULL << 33) + 2, 65536));
	EXPECT_EQ(NONE, PLACE(1ULL << 32, 131072));
}

TEST_F(profil, a_null_buffer_turns_it_off)
{
	u64 before;

	ASSERT_EQ(0, profil(counters, sizeof(counters), loop_at(0), 65536));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_IS_ON();
	EXPECT_EQ(0, profil(null, sizeof(counters), loop_at(0), 65536));
	EXPECT_TRUE(is_off(SCOPE));
	before = counters_sum(counters, 2, NR_COUNTERS);
	EXPECT_LT(0U, before);
	loop_run(0, 32 * LOOP_BURST);
	EXPECT_EQ(before, counters_sum(counters, 2, NR_COUNTERS));
}

TEST_F(profil, scale_0_turns_it_off)
{
	ASSERT_EQ(0, profil(counters, sizeof(counters), loop_at(0), 65536));
	EXPECT_EQ(0, profil(counters, sizeof(counters), loop_at(0), 0));
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_EQ(0U, counters_sum(counters, 2, NR_COUNTERS));
}

TEST_F(profil, zero_is_returned)
{
	EXPECT_NO_ERROR(profil(null, 0, 0, 0));
	EXPECT_NO_ERROR(profil(counters, sizeof(counters), 0, 65536));
	EXPECT_NO_ERROR(profil(counters, sizeof(counters), SIZE_MAX, 1));
	EXPECT_NO_ERROR(profil(counters, 0, 0, 65536));
	EXPECT_NO_ERROR(profil(null, 0, 0, 0));
}

TEST_F(profil, any_scale_is_accepted)
{
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, 131072));
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, UINT_MAX));
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, 1));
	/* Only every second counter is used. */
	EXPECT_EQ(0U, PLACE(1, 131072));
	EXPECT_EQ(2U, PLACE(2, 131072));
	EXPECT_EQ(4U, PLACE(5, 131072));
}

TEST_F(profil, a_bad_buffer_is_EFAULT_and_changes_nothing)
{
	ASSERT_EQ(0, profil(counters, sizeof(counters), loop_at(0), 65536));
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	EXPECT_ERROR(EFAULT, profil((void *)((char *)counters + 1), 2, 0, 65536));
	EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX, 0, 65536));
	EXPECT_IS_ON();
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_LT(0U, counters[0]);
}

TEST_F(profil, the_program_may_use_ITIMER_PROF)
{
	ASSERT_EQ(0, profil(counters, sizeof(counters), loop_at(0), 65536));
	expect_sigprof_is_free(_metadata);
	EXPECT_TRUE(loop_until(0, alarms > 2 && *(volatile u16 *)counters > 2));
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

/* Regions of a counter for each loop, loops [first, end), with counters of @width bytes. */
static struct prof prof_of(void *base, u32 width, unsigned int first, unsigned int end)
{
	return (struct prof) {
		.pr_base = base,
		.pr_size = (end - first) * width,
		.pr_off = loop_at(first) - LOOP_BLOCK,
		.pr_scale = 65536 / (LOOP_SIZE / width),
	};
}

static struct prof overflow_bin(void *base, u32 width)
{
	return (struct prof) {
		.pr_base = base,
		.pr_size = width,
		.pr_off = 0,
		.pr_scale = 2,
	};
}

FIXTURE(sprofil) {
	u16 first[LOOPS];
	u16 second[LOOPS];
	u32 wide[LOOPS];
	u32 bin[2];
};

FIXTURE_SETUP(sprofil)
{
	ASSERT_IS_OFF();
	memset(self, 0, sizeof(*self));
}

FIXTURE_TEARDOWN(sprofil)
{
	EXPECT_EQ(0, sprofil(NULL, 0, NULL, 0));
	EXPECT_IS_OFF();
}

/* Profiles regions with counters of 16 bits while each of the loops @first to @last runs. */
static void expect_profile(struct __test_metadata *_metadata, struct prof *profs, int nr,
			   unsigned int first, unsigned int last)
{
	ASSERT_EQ(0, sprofil(profs, nr, NULL, 0));
	for (unsigned int i = first; i <= last; i++)
		EXPECT_TRUE(loop_burn(SCOPE, i, FEW));
	ASSERT_EQ(0, sprofil(NULL, 0, NULL, 0));
}

TEST_F(sprofil, each_region_counts_in_its_buffer)
{
	struct prof profs[] = {
		prof_of(self->first, 2, 0, 3),
		prof_of(self->second, 2, 5, 8),
	};

	ASSERT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
	EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 4, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 7, FEW));
	ASSERT_EQ(0, sprofil(NULL, 0, NULL, 0));
	EXPECT_LT(SOME, self->first[1]);
	EXPECT_LT(SOME, self->second[2]);
	EXPECT_EQ(self->first[1], counters_sum(self->first, 2, LOOPS));
	EXPECT_EQ(self->second[2], counters_sum(self->second, 2, LOOPS));
}

TEST_F(sprofil, counters_have_16_bits_without_PROF_UINT)
{
	struct prof profs[] = { prof_of(self->first, 2, 0, 8) };

	self->first[3] = USHRT_MAX;
	expect_profile(_metadata, profs, 1, 2, 3);
	EXPECT_LT(SOME, self->first[2]);
	EXPECT_EQ(USHRT_MAX, self->first[3]);
	EXPECT_EQ(0, self->first[4]);
}

TEST_F(sprofil, PROF_UINT_makes_counters_of_32_bits)
{
	struct prof profs[] = { prof_of(self->wide, 4, 0, 8) };

	self->wide[3] = USHRT_MAX;
	self->wide[4] = UINT_MAX;
	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 4, FEW));
	ASSERT_EQ(0, sprofil(NULL, 0, NULL, 0));
	EXPECT_LT(USHRT_MAX + SOME, self->wide[3]);
	EXPECT_EQ(UINT_MAX, self->wide[4]);
	EXPECT_EQ(0U, self->wide[2]);
}

/* Returns the counter for a pc @d above the offset, in a region with counters of @width bytes. */
static unsigned int place_in_region(u64 d, unsigned long scale, u32 width, size_t size)
{
	static union {
		u16 s[NR_COUNTERS];
		u32 i[NR_COUNTERS];
	} buffer;
	struct prof prof = { &buffer, size, loop_at(0) - d, scale };
	unsigned int of_loop;

	memset(&buffer, 0, sizeof(buffer));
	if (sprofil(&prof, 1, NULL, width == 4 ? PROF_UINT : PROF_USHORT))
		return FAILED;
	if (is_off(SCOPE))
		return OFF;
	of_loop = loop_place(SCOPE, 0, &buffer, width, NR_COUNTERS);
	return sprofil(NULL, 0, NULL, 0) ? FAILED : of_loop;
}

TEST_F(sprofil, pr_scale_is_the_number_of_counters_per_counter_width_of_text)
{
	EXPECT_EQ(0U, place_in_region(1, 65536, 2, 32));
	EXPECT_EQ(1U, place_in_region(2, 65536, 2, 32));
	EXPECT_EQ(1U, place_in_region(6, 32768, 2, 32));
	EXPECT_EQ(2U, place_in_region(2, 131072, 2, 32));
	EXPECT_EQ(0U, place_in_region(3, 65535, 2, 32));
	EXPECT_EQ(0U, place_in_region(3, 65536, 4, 64));
	EXPECT_EQ(1U, place_in_region(4, 65536, 4, 64));
	EXPECT_EQ(1U, place_in_region(12, 32768, 4, 64));
	EXPECT_EQ(2U, place_in_region(16, 32768, 4, 64));
}

TEST_F(sprofil, a_region_ends_where_its_counters_end)
{
	EXPECT_EQ(3U, place_in_region(7, 65536, 2, 8));
	EXPECT_EQ(NONE, place_in_region(8, 65536, 2, 8));
	EXPECT_EQ(3U, place_in_region(7, 65536, 2, 9));
	EXPECT_EQ(NONE, place_in_region(8, 65536, 2, 9));
	/* 4 * 65535 / 65536 is still 3. */
	EXPECT_EQ(3U, place_in_region(9, 65535, 2, 8));
	EXPECT_EQ(NONE, place_in_region(10, 65535, 2, 8));
	EXPECT_EQ(3U, place_in_region(15, 65536, 4, 16));
	EXPECT_EQ(NONE, place_in_region(16, 65536, 4, 16));
	/* No region is left. */
	EXPECT_EQ(OFF, place_in_region(0, 65536, 4, 3));
}

TEST_F(sprofil, a_pr_scale_below_2_counts_nothing)
{
	EXPECT_EQ(0U, place_in_region(16, 2, 2, 2));
	EXPECT_EQ(OFF, place_in_region(16, 1, 2, 2));
	EXPECT_EQ(OFF, place_in_region(16, 0, 2, 2));
}

TEST_F(sprofil, regions_may_come_in_any_order)
{
	struct prof profs[] = {
		prof_of(&self->first[4], 2, 4, 6),
		prof_of(&self->first[6], 2, 6, 8),
		prof_of(&self->first[0], 2, 0, 2),
		prof_of(&self->first[2], 2, 2, 4),
	};

	expect_profile(_metadata, profs, 4, 0, LOOPS - 1);
	for (unsigned int i = 0; i < LOOPS; i++)
		EXPECT_LT(SOME, self->first[i]);
}

TEST_F(sprofil, where_regions_overlap_the_higher_one_counts)
{
	/* The second region lies within the first one. */
	struct prof profs[] = {
		prof_of(self->first, 2, 0, 8),
		prof_of(self->second, 2, 2, 5),
	};

	expect_profile(_metadata, profs, 2, 0, LOOPS - 1);
	for (unsigned int i = 0; i < LOOPS; i++) {
		if (i >= 2 && i < 5) {
			EXPECT_EQ(0, self->first[i]);
			EXPECT_LT(SOME, self->second[i - 2]);
		} else {
			EXPECT_LT(SOME, self->first[i]);
		}
	}
	EXPECT_EQ(0U, counters_sum(&self->second[3], 2, LOOPS - 3));
}

TEST_F(sprofil, of_regions_with_the_same_offset_the_first_counts)
{
	struct prof profs[] = {
		prof_of(self->first, 2, 0, 2),
		prof_of(self->second, 2, 0, 4),
	};

	ASSERT_EQ(0, sprofil(profs, 2, NULL, 0));
	EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	ASSERT_EQ(0, sprofil(NULL, 0, NULL, 0));
	EXPECT_LT(SOME, self->first[1]);
	EXPECT_EQ(0, self->second[1]);
	EXPECT_LT(SOME, self->second[3]);
}

TEST_F(sprofil, a_pc_in_no_region_is_counted_in_the_overflow_bin)
{
	struct prof profs[] = {
		prof_of(self->wide, 4, 0, 2),
		overflow_bin(self->bin, 4),
		prof_of(&self->wide[4], 4, 4, 6),
	};
	unsigned int nr_tests, at;
	struct profil_stats s;

	/* The overflow bin can be at each position in the array. */
	for (nr_tests = 0, at = 1; nr_tests < 3; nr_tests++) {
		struct prof swap = profs[at];

		profs[at] = profs[nr_tests];
		profs[nr_tests] = swap;
		at = nr_tests;
		memset(self, 0, sizeof(*self));
		ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_UINT));
		EXPECT_TRUE(loop_burn(SCOPE, 5, FEW));
		EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		ASSERT_EQ(0, sprofil(NULL, 0, NULL, 0));
		EXPECT_LT(SOME, self->wide[5]);
		EXPECT_LT(SOME, self->bin[0]);
		EXPECT_EQ(0U, self->bin[1]);
		EXPECT_EQ(0U, self->wide[3]);
		EXPECT_EQ(0U, s.outside);
		EXPECT_LE(s.ticks, self->bin[0] + counters_sum(self->wide, 4, LOOPS));
	}
}

TEST_F(sprofil, a_pc_below_all_regions_is_outside)
{
	struct prof profs[] = { prof_of(self->first, 2, 4, 8) };
	struct profil_stats s;

	ASSERT_EQ(0, sprofil(profs, 1, NULL, 0));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LT(SOME, s.outside);
	EXPECT_EQ(0U, counters_sum(self->first, 2, LOOPS));
}

TEST_F(sprofil, tvp_gets_the_true_tick)
{
	struct prof profs[] = { prof_of(self->first, 2, 0, 8) };
	struct timeval tick = { -1, -1 }, off = { -1, -1 };
	struct profil_query query;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, sprofil(profs, 1, &tick, 0));
	EXPECT_EQ(query.tick_ns / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
	ASSERT_EQ(0, sprofil(NULL, 0, &off, 0));
	EXPECT_EQ(tick.tv_sec, off.tv_sec);
	EXPECT_EQ(tick.tv_usec, off.tv_usec);
}

TEST_F(sprofil, PROF_FAST_is_a_period_of_1_ms)
{
	struct prof profs[] = { prof_of(self->first, 2, 0, 8) };
	struct timeval tick = { -1, -1 };
	struct profil_query query;
	struct profil_stats s, slow;
	u64 period;

	ASSERT_EQ(0, device_query(&query));
	period = query.tick_ns <= 1000000 || query.min_period > 1000000 ? query.tick_ns : 1000000;
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	ASSERT_EQ(0, sprofil(profs, 1, &tick, PROF_FAST));
	EXPECT_EQ(period / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
	EXPECT_TRUE(loop_burn(SCOPE, 4, 16 * FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &slow));
	EXPECT_LT(FEW, self->first[4]);
	EXPECT_TRUE(accounted(&s));
	/* The thread's session has fewer ticks in the same time, if its tick is slower. */
	if (period < query.tick_ns / 2)
		EXPECT_LT(slow.expected * 3 / 2, s.expected);
}

TEST_F(sprofil, profcnt_0_turns_it_off)
{
	struct prof profs[] = { prof_of(self->first, 2, 0, 8) };

	EXPECT_EQ(0, sprofil(profs, 0, NULL, 0));
	EXPECT_TRUE(is_off(SCOPE));
	ASSERT_EQ(0, sprofil(profs, 1, NULL, 0));
	EXPECT_IS_ON();
	EXPECT_EQ(0, sprofil(profs, 0, NULL, 0));
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_EQ(0, sprofil(NULL, 0, NULL, 0));
}

/* Adjacent regions around loop 0, each with one counter. */
TEST_F(sprofil, a_thousand_regions_are_accepted)
{
	static struct prof profs[1000];
	static u16 many[ARRAY_SIZE(profs)];
	const unsigned int of_loop = 500;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profs); i++) {
		profs[i].pr_base = &many[i];
		profs[i].pr_size = sizeof(many[i]);
		profs[i].pr_off = loop_at(0) + 2 * i - 2 * of_loop;
		profs[i].pr_scale = 65536;
	}
	expect_profile(_metadata, profs, ARRAY_SIZE(profs), 0, 0);
	EXPECT_LT(SOME, many[of_loop]);
}

TEST_F(sprofil, an_error_changes_nothing)
{
	struct prof good[] = { prof_of(self->first, 2, 0, 8) }, bad;
	struct profil_query query;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, sprofil(good, 1, NULL, 0));

	EXPECT_ERROR(EINVAL, sprofil(good, -1, NULL, 0));
	EXPECT_ERROR(EINVAL, sprofil(good, 1, NULL, 4));
	EXPECT_ERROR(E2BIG, sprofil(good, query.max_ranges, NULL, 0));
	EXPECT_ERROR(E2BIG, sprofil(good, INT_MAX, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil(NULL, 1, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil((void *)16, 1, NULL, 0));
	EXPECT_ERROR(EFAULT, sprofil(good, 1, (void *)16, 0));
	bad = good[0];
	bad.pr_base = (void *)16;
	EXPECT_ERROR(EFAULT, sprofil(&bad, 1, NULL, 0));
	bad.pr_base = (char *)self->first + 1;
	EXPECT_ERROR(EFAULT, sprofil(&bad, 1, NULL, 0));
	bad = good[0];
	if (sizeof(bad.pr_scale) > 4) {
		bad.pr_scale = 1UL << (sizeof(bad.pr_scale) * 8 - 32);
		EXPECT_ERROR(EINVAL, sprofil(&bad, 1, NULL, 0));
	}

	/* The profile did not change. */
	EXPECT_IS_ON();
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_LT(0U, self->first[0]);
}

TEST_F_CALL(sprofil, glibc_tst_sprofil_passes, EXPECT_EQ(0, run_beside("old-glibc-sprofil", NULL)))

TEST_F(sprofil, a_program_linked_with_libc_sprofil_works_when_preloaded)
{
	EXPECT_EQ(9, run_beside("libc-sprofil", NULL));
	EXPECT_EQ(0, run_beside("libc-sprofil", "libprofil.so.1"));
}

TEST_HARNESS_MAIN
