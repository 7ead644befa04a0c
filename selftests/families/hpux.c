// SPDX-License-Identifier: GPL-2.0
/*
 * sprofil() of HP-UX. The sentences of its manual page are in sentences/hpux.
 */
#include "family.h"

#include <profil/hpux.h>

#include "regions.h"

static u16 shorts[LOOPS];
static u32 ints[LOOPS];
static u64 longs[LOOPS], bin[2];

/* A region of the loops [from, to), with a counter of @width bytes for each */
static struct prof region(void *base, u32 width, unsigned int from, unsigned int to)
{
	return (struct prof) {
		.pr_base = base,
		.pr_size = (to - from) * width,
		.pr_offset = (char *)loops_text + from * LOOP_SIZE,
		.pr_scale = 65536 * width / LOOP_SIZE,
	};
}

static struct prof overflow_bin(void *base, u32 width)
{
	return (struct prof) { .pr_base = base, .pr_size = width, .pr_scale = 2 };
}

/* As the manual says. The call also returns an error. */
static int off(void)
{
	return sprofil(NULL, 0, NULL, 0) == -1 && errno == E2BIG && is_off(SCOPE) ? 0 : -1;
}

static int on_shorts(void *buffer, size_t size, u64 offset, u32 scale)
{
	return on_region((struct prof) { buffer, size, (void *)offset, scale }, PROF_USHORT);
}

static int on_ints(void *buffer, size_t size, u64 offset, u32 scale)
{
	return on_region((struct prof) { buffer, size, (void *)offset, scale }, PROF_UINT);
}

static int on_longs(void *buffer, size_t size, u64 offset, u32 scale)
{
	return on_region((struct prof) { buffer, size, (void *)offset, scale }, PROF_UINT64);
}

static const struct form of_shorts = { on_shorts, off, 2 };
static const struct form of_ints = { on_ints, off, 4 };
static const struct form of_longs = { on_longs, off, 8 };

static const struct {
	unsigned int flag;
	u32 width;
} kinds[] = {
	{ PROF_USHORT, 2 },
	{ PROF_UINT, 4 },
	{ PROF_UINT64, 8 },
};

FIXTURE(hpux) {
};

FIXTURE_OFF(hpux, off())

TEST_F(hpux, it_shows_where_time_is_spent)
{
	ASSERT_EQ(0, on_region(region(ints, 4, 0, LOOPS), PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 5, 3 * MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 2, MANY));
	EXPECT_EQ(0, off());
	EXPECT_LT(ints[2], ints[5]);
	EXPECT_LT(SOME, ints[2]);
}

TEST_F(hpux, many_regions_are_profiled_at_once)
{
	struct prof profs[] = {
		region(&shorts[0], 2, 0, 2), region(&shorts[3], 2, 3, 4),
		region(&shorts[6], 2, 6, 8),
	};

	ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_USHORT));
	for (unsigned int i = 0; i < LOOPS; i++) {
		if (i == 2 || i == 4 || i == 5) {
			EXPECT_TRUE(loop_burn(SCOPE, i, MANY));
		} else {
			EXPECT_TRUE(loop_until(i, counter(shorts, 2, i) > SOME));
		}
	}
	EXPECT_EQ(0, off());
	EXPECT_EQ(0, shorts[2]);
	EXPECT_EQ(0, shorts[4]);
	EXPECT_EQ(0, shorts[5]);
}

TEST_F(hpux, profcnt_is_the_number_of_regions)
{
	struct prof profs[] = { region(&shorts[0], 2, 0, 2), region(&shorts[3], 2, 3, 4) };

	ASSERT_TRUE(profile(profs, 1, PROF_USHORT, "03"));
	EXPECT_LT(SOME, shorts[0]);
	EXPECT_EQ(0, shorts[3]);
}

TEST_F(hpux, profcnt_0_turns_it_off)
{
	struct prof prof = region(shorts, 2, 0, LOOPS);

	ASSERT_EQ(0, sprofil(&prof, 1, NULL, PROF_USHORT));
	EXPECT_IS_ON();
	sprofil(&prof, 0, NULL, PROF_USHORT);
	EXPECT_TRUE(is_off(SCOPE));
	/* This works with any flags. */
	ASSERT_EQ(0, sprofil(&prof, 1, NULL, PROF_USHORT));
	sprofil(NULL, 0, NULL, 12345);
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(hpux, tvp_gets_the_time_of_a_tick)
{
	struct prof prof = region(shorts, 2, 0, LOOPS);
	struct timeval tick = { -1, -1 };

	ASSERT_EQ(0, sprofil(&prof, 1, &tick, PROF_USHORT));
	EXPECT_EQ(tick_ns() / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
}

TEST_F(hpux, flags_must_be_one_of_three)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		EXPECT_EQ(0, on_region(overflow_bin(bin, kinds[i].width), kinds[i].flag));
	EXPECT_ERROR(EINVAL, on_region(overflow_bin(bin, 8), PROF_UINT | PROF_UINT64));
	EXPECT_ERROR(EINVAL, on_region(overflow_bin(bin, 8), 4));
	EXPECT_ERROR(EINVAL, on_region(overflow_bin(bin, 8), UINT_MAX));
}

TEST_F(hpux, no_byte_past_pr_size_is_written)
{
	struct prof prof = region(ints, 4, 0, 3);

	ASSERT_TRUE(profile(&prof, 1, PROF_UINT, "23"));
	EXPECT_LT(SOME, ints[2]);
	EXPECT_EQ(0U, ints[3]);
}

TEST_F(hpux, elements_have_2_4_or_8_bytes)
{
	void *const buffers[] = { shorts, ints, longs };

	shorts[1] = USHRT_MAX;
	ints[1] = USHRT_MAX;
	longs[1] = UINT_MAX;
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct prof prof = region(buffers[i], kinds[i].width, 0, LOOPS);

		ASSERT_TRUE(profile(&prof, 1, kinds[i].flag, "13"));
	}
	EXPECT_EQ(USHRT_MAX, shorts[1]);
	EXPECT_LT(SOME, shorts[3]);
	EXPECT_LT(USHRT_MAX + SOME, ints[1]);
	EXPECT_LT(SOME, ints[3]);
	EXPECT_LT((u64)UINT_MAX + SOME, longs[1]);
	EXPECT_LT(SOME, longs[3]);
}

TEST_F(hpux, pr_size_must_be_a_multiple_of_the_element_and_not_0)
{
	struct prof prof = region(longs, 8, 0, LOOPS);

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (prof.pr_size = 0; prof.pr_size <= 16; prof.pr_size++) {
			if (prof.pr_size && prof.pr_size % kinds[i].width == 0) {
				EXPECT_EQ(0, on_region(prof, kinds[i].flag));
			} else {
				EXPECT_ERROR(EINVAL, on_region(prof, kinds[i].flag));
			}
		}
	}
}

TEST_F(hpux, pr_offset_is_where_the_region_begins)
{
	EXPECT_PLACES(&of_shorts,
		      { 0, 65536, 0 }, { BEFORE, 65536, OUTSIDE }, { 15, 65536, 7 },
		      { 16, 65536, OUTSIDE }, { 1ULL << 32, 65536, OUTSIDE });
	EXPECT_PLACES(&of_ints, { BEFORE, 65536, OUTSIDE });
}

/* The result is in bytes, two for each counter: 3 * 65535 >> 16 is 2. */
TEST_F(hpux, pr_scale_has_sixteen_bits_right_of_the_point)
{
	EXPECT_PLACES(&of_shorts,
		      { 1, 65536, 0 }, { 2, 65536, 1 }, { 3, 32768, 0 }, { 4, 32768, 1 },
		      { 2, 65535, 0 }, { 3, 65535, 1 }, { 48, 8192, 3 });
	/* The last byte of the region is counted, and the next one is not. */
	EXPECT_PLACES_IN(&of_shorts, 8, { 8, 65535, 3 }, { 9, 65535, OUTSIDE });
}

/* 65536 gives 2, 4 or 8 bytes; 32768 gives twice, and 2 gives 32,768 times as many. */
TEST_F(hpux, scale_and_width_determine_the_bytes_of_text_per_element)
{
	EXPECT_PLACES(&of_shorts, { 65535, 2, 0 }, { 65536, 2, 1 });
	EXPECT_PLACES(&of_ints,
		      { 7, 65536, 1 }, { 8, 65536, 2 }, { 131071, 2, 0 }, { 131072, 2, 1 });
	EXPECT_PLACES(&of_longs,
		      { 7, 65536, 0 }, { 8, 65536, 1 }, { 15, 32768, 0 }, { 16, 32768, 1 },
		      { 262144, 2, 1 });
}

TEST_PLACES(hpux, a_scale_finer_than_1_to_1_leaves_elements_unused, &of_shorts,
	    { 0, 131072, 0 }, { 1, 131072, 1 }, { 2, 131072, 2 }, { 2, 262144, 4 },
	    { 8, 131072, OUTSIDE })

TEST_F(hpux, the_overflow_descriptor_counts_a_pc_in_no_region)
{
	struct prof profs[] = {
		region(&ints[1], 4, 1, 2), region(&ints[4], 4, 4, 6), overflow_bin(bin, 4),
	};
	const unsigned int between[] = { 0, 2, 7 };
	struct profil_stats s;
	u32 before;

	ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 1, MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 5, MANY));
	for (unsigned int i = 0; i < ARRAY_SIZE(between); i++) {
		before = counter(bin, 4, 0);
		EXPECT_TRUE(loop_burn(SCOPE, between[i], MANY));
		EXPECT_LT(before + SOME, counter(bin, 4, 0));
	}
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(0, off());
	EXPECT_LT(SOME, ints[1]);
	EXPECT_LT(SOME, ints[5]);
	EXPECT_EQ(0U, s.outside);
	EXPECT_EQ(0U, counter(bin, 4, 1));
}

TEST_F(hpux, the_overflow_element_does_not_overflow)
{
	struct profil_stats s;

	shorts[0] = USHRT_MAX - 1;
	ASSERT_EQ(0, on_region(overflow_bin(shorts, 2), PROF_USHORT));
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(1U, s.hit);
	EXPECT_LT(0U, s.saturated);
	EXPECT_EQ(USHRT_MAX, shorts[0]);
}

TEST_F(hpux, an_error_returns_minus_1_and_changes_nothing)
{
	struct prof profs[] = { region(shorts, 2, 0, LOOPS), overflow_bin(bin, 2) };

	ASSERT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, 77));
	EXPECT_ERROR(EFAULT, on_region(region((void *)16, 2, 0, LOOPS), PROF_USHORT));
	EXPECT_ERROR(EFAULT, on_region(region((char *)shorts + 1, 2, 0, LOOPS), PROF_USHORT));
	EXPECT_IS_ON();
	EXPECT_TRUE(loop_burn(SCOPE, 2, MANY));
	EXPECT_LT(SOME, shorts[2]);
}

TEST_F(hpux, profcnt_must_be_above_0)
{
	struct prof prof = region(shorts, 2, 0, LOOPS);

	EXPECT_ERROR(E2BIG, sprofil(&prof, 0, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(&prof, -1, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(&prof, INT_MIN, NULL, PROF_USHORT));
}

/* The largest number of regions, each with one counter. One of them is for loop 0. */
TEST_F(hpux, profcnt_must_not_be_above_the_limit)
{
	const long max = sysconf(_SC_PROFIL_MAX);
	const unsigned int of_loop = 100;
	struct prof *profs;
	u16 *elements;

	ASSERT_LT(2 * (long)of_loop, max);
	EXPECT_EQ(getpagesize(), sysconf(_SC_PAGESIZE));
	profs = map_private((max + 1) * sizeof(*profs));
	elements = map_private((max + 1) * sizeof(*elements));
	for (long i = 0; i < max; i++)
		profs[i] = (struct prof) {
			&elements[i], sizeof(*elements),
			(char *)(uintptr_t)loop_at(0) + 4 * (i - of_loop), 65536
		};
	profs[max] = profs[max - 1];
	EXPECT_ERROR(E2BIG, sprofil(profs, max + 1, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(profs, INT_MAX, NULL, PROF_USHORT));
	EXPECT_EQ(0, sprofil(profs, max, NULL, PROF_USHORT));
	profs[max - 1] = overflow_bin(bin, 2);
	EXPECT_TRUE(profile(profs, max, PROF_USHORT, "0"));
	EXPECT_LT(SOME, elements[of_loop]);
}

TEST_F(hpux, bad_addresses_are_EFAULT)
{
	struct prof prof = region(shorts, 2, 0, LOOPS);

	EXPECT_ERROR(EFAULT, sprofil(NULL, 1, NULL, PROF_USHORT));
	EXPECT_ERROR(EFAULT, sprofil((void *)16, 1, NULL, PROF_USHORT));
	EXPECT_ERROR(EFAULT, sprofil(&prof, 1, (void *)16, PROF_USHORT));
	EXPECT_TRUE(is_off(SCOPE));
}

/* The sizes that are valid are EFAULT, because not all of this memory is mapped. */
TEST_F(hpux, pr_size_must_not_be_above_2_to_the_30_for_each_1_of_pr_scale)
{
	EXPECT_ERROR(EINVAL, on_shorts(shorts, sizeof(shorts), LOOPS_OFFSET, 0));
	EXPECT_ERROR(EINVAL, on_shorts(shorts, (1U << 30) + 2, LOOPS_OFFSET, 1));
	EXPECT_ERROR(EFAULT, on_shorts(shorts, 1U << 30, LOOPS_OFFSET, 1));
	EXPECT_ERROR(EFAULT, on_shorts(shorts, (1U << 30) + 2, LOOPS_OFFSET, 2));
}

TEST_F(hpux, the_overflow_descriptor_must_be_last)
{
	struct prof profs[] = { overflow_bin(bin, 2), region(shorts, 2, 0, LOOPS) };
	struct prof two[] = { overflow_bin(bin, 2), overflow_bin(bin, 2) };

	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	EXPECT_ERROR(EINVAL, sprofil(two, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, the_overflow_descriptor_must_have_one_element)
{
	struct prof profs[] = { region(shorts, 2, 0, LOOPS), overflow_bin(bin, 4) };

	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1] = overflow_bin(bin, 0);
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1] = overflow_bin(bin, 2);
	EXPECT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, regions_must_be_in_ascending_order)
{
	struct prof profs[] = { region(&shorts[4], 2, 4, 6), region(&shorts[0], 2, 0, 2) };

	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, regions_must_not_overlap)
{
	struct prof profs[] = { region(&shorts[0], 2, 0, 2), region(&shorts[2], 2, 2, 4) };

	EXPECT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1].pr_offset = (char *)profs[1].pr_offset - 1;
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1] = profs[0];
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F_CALL(hpux, a_program_of_HP_UX_works_unchanged,
	    EXPECT_EQ(0, run_beside("old-hpux-sprofil", NULL)))

TEST_HARNESS_MAIN
