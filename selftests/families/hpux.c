// SPDX-License-Identifier: GPL-2.0
/*
 * sprofil() of HP-UX. The sentences of its manual page are in sentences/hpux.
 */
#include "classic.h"

#include <profil/hpux.h>

#include "loop.h"
#include "old.h"
#include "profil.h"

#define NR_COUNTERS	16U
#define NONE		LOOP_OUTSIDE
#define FAILED		LOOP_NOWHERE

/* A loop has at least SOME of FEW ticks. The others are between its bursts. */
#define FEW		16
#define SOME		(FEW / 4)

static const struct {
	unsigned int flag;
	u32 width;
} kinds[] = {
	{ PROF_USHORT, 2 },
	{ PROF_UINT, 4 },
	{ PROF_UINT64, 8 },
};

/* Returns a region with a counter of @width bytes for each of the loops [@first, @end). */
static struct prof prof_of(void *base, u32 width, unsigned int first, unsigned int end)
{
	return (struct prof) {
		.pr_base = base,
		.pr_size = (end - first) * width,
		.pr_offset = (void *)(uintptr_t)(loop_at(first) - LOOP_BLOCK),
		.pr_scale = 65536 / (LOOP_SIZE / width),
	};
}

static struct prof overflow_bin(void *base, u32 width)
{
	return (struct prof) { .pr_base = base, .pr_size = width, .pr_scale = 2 };
}

/* Turns profiling off as the manual says; the call also returns an error. */
static bool turn_off(void)
{
	return sprofil(NULL, 0, NULL, PROF_USHORT) == -1 && errno == E2BIG && is_off(SCOPE);
}

FIXTURE(hpux) {
	u16 shorts[LOOPS];
	u32 ints[LOOPS];
	u64 longs[LOOPS];
	u64 bin[2];
};

FIXTURE_SETUP(hpux)
{
	ASSERT_IS_OFF();
	memset(self, 0, sizeof(*self));
}

FIXTURE_TEARDOWN(hpux)
{
	EXPECT_TRUE(turn_off());
	EXPECT_EQ(0U, pinned_bytes());
}

TEST_F(hpux, it_shows_where_time_is_spent)
{
	struct prof profs[] = { prof_of(self->ints, 4, 0, LOOPS) };

	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 5, 3 * FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	EXPECT_TRUE(turn_off());
	EXPECT_LT(self->ints[2], self->ints[5]);
	EXPECT_LT(SOME, self->ints[2]);
}

TEST_F(hpux, many_regions_are_profiled_at_once)
{
	struct prof profs[] = {
		prof_of(&self->shorts[0], 2, 0, 2),
		prof_of(&self->shorts[3], 2, 3, 4),
		prof_of(&self->shorts[6], 2, 6, 8),
	};
	unsigned int i;

	ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_USHORT));
	for (i = 0; i < LOOPS; i++) {
		if (i == 2 || i == 4 || i == 5) {
			EXPECT_TRUE(loop_burn(SCOPE, i, FEW));
		} else {
			EXPECT_TRUE(loop_until(i, counter(self->shorts, 2, i) > SOME));
		}
	}
	EXPECT_TRUE(turn_off());
	EXPECT_EQ(0, self->shorts[2]);
	EXPECT_EQ(0, self->shorts[4]);
	EXPECT_EQ(0, self->shorts[5]);
}

TEST_F(hpux, profcnt_is_the_number_of_regions)
{
	struct prof profs[] = {
		prof_of(&self->shorts[0], 2, 0, 2),
		prof_of(&self->shorts[3], 2, 3, 4),
	};

	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_USHORT));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_TRUE(turn_off());
	EXPECT_LT(SOME, self->shorts[0]);
	EXPECT_EQ(0, self->shorts[3]);
}

TEST_F(hpux, profcnt_0_turns_it_off)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS) };

	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_USHORT));
	EXPECT_IS_ON();
	sprofil(profs, 0, NULL, PROF_USHORT);
	EXPECT_TRUE(is_off(SCOPE));
	/* This works with any flags. */
	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_USHORT));
	sprofil(NULL, 0, NULL, 12345);
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(hpux, tvp_gets_the_time_of_a_tick)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS) };
	struct timeval tick = { -1, -1 };
	struct profil_query query;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, sprofil(profs, 1, &tick, PROF_USHORT));
	EXPECT_EQ(query.tick_ns / 1000, tick.tv_sec * 1000000 + tick.tv_usec);
}

TEST_F(hpux, flags_must_be_one_of_three)
{
	struct prof profs[] = { overflow_bin(self->bin, 0) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		profs[0].pr_size = kinds[i].width;
		EXPECT_EQ(0, sprofil(profs, 1, NULL, kinds[i].flag));
	}
	EXPECT_ERROR(EINVAL, sprofil(profs, 1, NULL, PROF_UINT | PROF_UINT64));
	EXPECT_ERROR(EINVAL, sprofil(profs, 1, NULL, 4));
	EXPECT_ERROR(EINVAL, sprofil(profs, 1, NULL, UINT_MAX));
}

TEST_F(hpux, no_byte_past_pr_size_is_written)
{
	struct prof profs[] = { prof_of(self->ints, 4, 0, 3) };

	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_TRUE(turn_off());
	EXPECT_LT(SOME, self->ints[2]);
	EXPECT_EQ(0U, self->ints[3]);
}

TEST_F(hpux, elements_have_2_4_or_8_bytes)
{
	void *const buffers[] = { self->shorts, self->ints, self->longs };

	self->shorts[1] = USHRT_MAX;
	self->ints[1] = USHRT_MAX;
	self->longs[1] = UINT_MAX;
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct prof prof = prof_of(buffers[i], kinds[i].width, 0, LOOPS);

		ASSERT_EQ(0, sprofil(&prof, 1, NULL, kinds[i].flag));
		EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
		EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	}
	EXPECT_TRUE(turn_off());

	EXPECT_EQ(USHRT_MAX, self->shorts[1]);
	EXPECT_LT(SOME, self->shorts[3]);
	EXPECT_LT(USHRT_MAX + SOME, self->ints[1]);
	EXPECT_LT(SOME, self->ints[3]);
	EXPECT_LT((u64)UINT_MAX + SOME, self->longs[1]);
	EXPECT_LT(SOME, self->longs[3]);
}

TEST_F(hpux, pr_size_must_be_a_multiple_of_the_element_and_not_0)
{
	struct prof good = prof_of(self->longs, 8, 0, LOOPS), bad;
	unsigned int i, size;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (size = 0; size <= 16; size++) {
			bad = good;
			bad.pr_size = size;
			if (size && size % kinds[i].width == 0) {
				EXPECT_EQ(0, sprofil(&bad, 1, NULL, kinds[i].flag));
			} else {
				EXPECT_ERROR(EINVAL, sprofil(&bad, 1, NULL, kinds[i].flag));
			}
		}
	}
}

/* Returns the counter for a pc @d above pr_offset, in a region with @size bytes of counters. */
static unsigned int place(u64 d, unsigned int scale, unsigned int flags, unsigned int size)
{
	static u64 buffer[NR_COUNTERS];
	struct prof prof = { buffer, size, (void *)(uintptr_t)(loop_at(0) - d), scale };
	u32 width = flags == PROF_UINT64 ? 8 : flags == PROF_UINT ? 4 : 2;
	unsigned int of_loop;

	memset(buffer, 0, sizeof(buffer));
	if (sprofil(&prof, 1, NULL, flags))
		return FAILED;
	of_loop = loop_place(SCOPE, 0, buffer, width, NR_COUNTERS);
	return turn_off() ? of_loop : FAILED;
}

TEST_F(hpux, pr_offset_is_where_the_region_begins)
{
	EXPECT_EQ(0U, place(0, 65536, PROF_USHORT, 16));
	EXPECT_EQ(NONE, place(-1ULL, 65536, PROF_USHORT, 16));
	EXPECT_EQ(NONE, place(-1ULL, 65536, PROF_UINT, 16));
	EXPECT_EQ(7U, place(15, 65536, PROF_USHORT, 16));
	EXPECT_EQ(NONE, place(16, 65536, PROF_USHORT, 16));
	EXPECT_EQ(NONE, place(1ULL << 32, 65536, PROF_USHORT, 16));
}

TEST_F(hpux, pr_scale_has_sixteen_bits_right_of_the_point)
{
	EXPECT_EQ(0U, place(1, 65536, PROF_USHORT, 16));
	EXPECT_EQ(1U, place(2, 65536, PROF_USHORT, 16));
	EXPECT_EQ(0U, place(3, 32768, PROF_USHORT, 16));
	EXPECT_EQ(1U, place(4, 32768, PROF_USHORT, 16));
	/* The result is in bytes, two for each counter: 3 * 65535 >> 16 is 2. */
	EXPECT_EQ(0U, place(2, 65535, PROF_USHORT, 16));
	EXPECT_EQ(1U, place(3, 65535, PROF_USHORT, 16));
	EXPECT_EQ(3U, place(48, 8192, PROF_USHORT, 16));
	/* The last byte of the region is counted, and the next one is not. */
	EXPECT_EQ(3U, place(8, 65535, PROF_USHORT, 8));
	EXPECT_EQ(NONE, place(9, 65535, PROF_USHORT, 8));
}

TEST_F(hpux, scale_and_width_determine_the_bytes_of_text_per_element)
{
	/* 65536 gives 2, 4 or 8 bytes; 32768 gives twice, and 2 gives 32,768 times as many. */
	EXPECT_EQ(1U, place(7, 65536, PROF_UINT, 16));
	EXPECT_EQ(2U, place(8, 65536, PROF_UINT, 16));
	EXPECT_EQ(0U, place(7, 65536, PROF_UINT64, 16));
	EXPECT_EQ(1U, place(8, 65536, PROF_UINT64, 16));
	EXPECT_EQ(0U, place(15, 32768, PROF_UINT64, 16));
	EXPECT_EQ(1U, place(16, 32768, PROF_UINT64, 16));
	EXPECT_EQ(0U, place(65535, 2, PROF_USHORT, 16));
	EXPECT_EQ(1U, place(65536, 2, PROF_USHORT, 16));
	EXPECT_EQ(0U, place(131071, 2, PROF_UINT, 16));
	EXPECT_EQ(1U, place(131072, 2, PROF_UINT, 16));
	EXPECT_EQ(1U, place(262144, 2, PROF_UINT64, 16));
}

TEST_F(hpux, a_scale_finer_than_1_to_1_leaves_elements_unused)
{
	EXPECT_EQ(0U, place(0, 131072, PROF_USHORT, 16));
	EXPECT_EQ(1U, place(1, 131072, PROF_USHORT, 16));
	EXPECT_EQ(2U, place(2, 131072, PROF_USHORT, 16));
	EXPECT_EQ(4U, place(2, 262144, PROF_USHORT, 16));
	EXPECT_EQ(NONE, place(8, 131072, PROF_USHORT, 16));
}

TEST_F(hpux, the_overflow_descriptor_counts_a_pc_in_no_region)
{
	struct prof profs[] = {
		prof_of(&self->ints[1], 4, 1, 2),
		prof_of(&self->ints[4], 4, 4, 6),
		overflow_bin(self->bin, 4),
	};
	const unsigned int between[] = { 0, 2, 7 };
	struct profil_stats s;
	unsigned int i;
	u32 before;

	ASSERT_EQ(0, sprofil(profs, 3, NULL, PROF_UINT));
	EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 5, FEW));
	for (i = 0; i < ARRAY_SIZE(between); i++) {
		before = counter(self->bin, 4, 0);
		EXPECT_TRUE(loop_burn(SCOPE, between[i], FEW));
		EXPECT_LT(before + SOME, counter(self->bin, 4, 0));
	}
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(turn_off());
	EXPECT_LT(SOME, self->ints[1]);
	EXPECT_LT(SOME, self->ints[5]);
	EXPECT_EQ(0U, s.outside);
	EXPECT_EQ(0U, counter(self->bin, 4, 1));
}

TEST_F(hpux, the_overflow_element_does_not_overflow)
{
	struct prof profs[] = { overflow_bin(self->shorts, 2) };
	struct profil_stats s;

	self->shorts[0] = USHRT_MAX - 1;
	ASSERT_EQ(0, sprofil(profs, 1, NULL, PROF_USHORT));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(1U, s.hit);
	EXPECT_LT(0U, s.saturated);
	EXPECT_EQ(USHRT_MAX, self->shorts[0]);
}

TEST_F(hpux, an_error_returns_minus_1_and_changes_nothing)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS), overflow_bin(self->bin, 2) };
	struct prof bad = profs[0];

	ASSERT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, 77));
	bad.pr_base = (void *)16;
	EXPECT_ERROR(EFAULT, sprofil(&bad, 1, NULL, PROF_USHORT));
	bad.pr_base = (char *)self->shorts + 1;
	EXPECT_ERROR(EFAULT, sprofil(&bad, 1, NULL, PROF_USHORT));
	EXPECT_IS_ON();
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	EXPECT_LT(SOME, self->shorts[2]);
}

TEST_F(hpux, profcnt_must_be_above_0)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS) };

	EXPECT_ERROR(E2BIG, sprofil(profs, 0, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(profs, -1, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(profs, INT_MIN, NULL, PROF_USHORT));
}

/* The largest number of regions, each with one counter. One of them is for loop 0. */
TEST_F(hpux, profcnt_must_not_be_above_the_limit)
{
	const long max = sysconf(_SC_PROFIL_MAX);
	const unsigned int of_loop = 100;
	struct prof *profs;
	u16 *elements;
	long i;

	ASSERT_LT(2 * (long)of_loop, max);
	EXPECT_EQ(getpagesize(), sysconf(_SC_PAGESIZE));
	profs = calloc(max + 1, sizeof(*profs));
	elements = calloc(max + 1, sizeof(*elements));
	ASSERT_TRUE(profs && elements);
	for (i = 0; i < max; i++) {
		profs[i].pr_base = &elements[i];
		profs[i].pr_size = sizeof(*elements);
		profs[i].pr_offset = (char *)(uintptr_t)loop_at(0) + 4 * (i - of_loop);
		profs[i].pr_scale = 65536;
	}
	profs[max] = profs[max - 1];
	EXPECT_ERROR(E2BIG, sprofil(profs, max + 1, NULL, PROF_USHORT));
	EXPECT_ERROR(E2BIG, sprofil(profs, INT_MAX, NULL, PROF_USHORT));
	EXPECT_EQ(0, sprofil(profs, max, NULL, PROF_USHORT));
	profs[max - 1] = overflow_bin(self->bin, 2);
	EXPECT_EQ(0, sprofil(profs, max, NULL, PROF_USHORT));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_TRUE(turn_off());
	EXPECT_LT(SOME, elements[of_loop]);
	free(elements);
	free(profs);
}

TEST_F(hpux, bad_addresses_are_EFAULT)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS) };

	EXPECT_ERROR(EFAULT, sprofil(NULL, 1, NULL, PROF_USHORT));
	EXPECT_ERROR(EFAULT, sprofil((void *)16, 1, NULL, PROF_USHORT));
	EXPECT_ERROR(EFAULT, sprofil(profs, 1, (void *)16, PROF_USHORT));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(hpux, pr_size_must_not_be_above_2_to_the_30_for_each_1_of_pr_scale)
{
	struct prof profs[] = { prof_of(self->shorts, 2, 0, LOOPS) };

	profs[0].pr_scale = 0;
	EXPECT_ERROR(EINVAL, sprofil(profs, 1, NULL, PROF_USHORT));
	profs[0].pr_scale = 1;
	profs[0].pr_size = (1U << 30) + 2;
	EXPECT_ERROR(EINVAL, sprofil(profs, 1, NULL, PROF_USHORT));
	/* The size is valid, but not all of this memory is mapped. */
	profs[0].pr_size = 1U << 30;
	EXPECT_ERROR(EFAULT, sprofil(profs, 1, NULL, PROF_USHORT));
	profs[0].pr_scale = 2;
	profs[0].pr_size = (1U << 30) + 2;
	EXPECT_ERROR(EFAULT, sprofil(profs, 1, NULL, PROF_USHORT));
}

TEST_F(hpux, the_overflow_descriptor_must_be_last)
{
	struct prof profs[] = {
		overflow_bin(self->bin, 2),
		prof_of(self->shorts, 2, 0, LOOPS),
	};
	struct prof two[] = { overflow_bin(self->bin, 2), overflow_bin(self->bin, 2) };

	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	EXPECT_ERROR(EINVAL, sprofil(two, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, the_overflow_descriptor_must_have_one_element)
{
	struct prof profs[] = {
		prof_of(self->shorts, 2, 0, LOOPS),
		overflow_bin(self->bin, 2),
	};

	profs[1].pr_size = 4;
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1].pr_size = 0;
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1].pr_size = 2;
	EXPECT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, regions_must_be_in_ascending_order)
{
	struct prof profs[] = {
		prof_of(&self->shorts[4], 2, 4, 6),
		prof_of(&self->shorts[0], 2, 0, 2),
	};

	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F(hpux, regions_must_not_overlap)
{
	struct prof profs[] = {
		prof_of(&self->shorts[0], 2, 0, 2),
		prof_of(&self->shorts[2], 2, 2, 4),
	};

	EXPECT_EQ(0, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1].pr_offset = (char *)profs[1].pr_offset - 1;
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
	profs[1] = profs[0];
	EXPECT_ERROR(EINVAL, sprofil(profs, 2, NULL, PROF_USHORT));
}

TEST_F_CALL(hpux, a_program_of_HP_UX_works_unchanged,
	    EXPECT_EQ(0, run_beside("old-hpux-sprofil", NULL)))

TEST_HARNESS_MAIN
