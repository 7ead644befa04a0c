// SPDX-License-Identifier: GPL-2.0
/*
 * profil() of BSD and Darwin, add_profil() of NeXT and Darwin. The sentences of their manual pages
 * are in sentences/bsd.
 */
#include "family.h"

#include <profil.h>

/* The call of another family. */
static int glibc_profil(unsigned short *buf, size_t size, u64 offset)
{
	return profil(buf, size, offset, 65536);
}

#include <profil/bsd.h>

static int on(void *buffer, size_t size, u64 offset, u32 scale)
{
	return profil(buffer, size, offset, scale);
}

static int off(void)
{
	return profil(NULL, 0, 0, 0);
}

static const struct form bsd = { on, off, 2 };

/* Loop i is counted in counter i. */
static int on_loops(void)
{
	return on(counters, LOOPS * sizeof(*counters), LOOPS_OFFSET, LOOPS_SCALE);
}

FIXTURE(bsd) {
};

FIXTURE_OFF(bsd, off())

TEST_F(bsd, each_tick_updates_a_count)
{
	struct profil_stats s, t;
	u64 n;

	ASSERT_EQ(0, on_loops());
	EXPECT_TRUE(loop_hits(1, 20));
	do {
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		n = hits();
		ASSERT_EQ(0, session_stats(SCOPE, &t));
	} while (s.ticks != t.ticks);
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, n);
	EXPECT_EQ(0, s.dropped);
}

TEST_F(bsd, profiling_into_a_buffer_smaller_than_a_bin_is_on_and_counts_nothing)
{
	for (size_t size = 0; size < 2; size++) {
		memset(counters, 0, sizeof(counters));
		ASSERT_EQ(0, on(counters, size, LOOPS_OFFSET, LOOPS_SCALE));
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		EXPECT_EQ(0, hits());
	}
}

/* The formula of the page and BSD's own source differ in these cases. */
TEST_PLACES(bsd, the_bin_is_rounded_as_in_the_source_of_BSD, &bsd,
	    { 0, 65536, 0 }, { 1, 65536, 0 }, { 2, 65536, 1 }, { 3, 65536, 1 },
	    { 2, 65535, 0 }, { 3, 65535, 1 }, { 4, 65535, 1 }, { 5, 65535, 2 },
	    { 14, 65536, 7 }, { 15, 65536, 7 }, { 16, 65536, OUTSIDE })

TEST_PLACES(bsd, nothing_is_counted_below_the_offset, &bsd,
	    { BEFORE, 65536, OUTSIDE }, { 0, 65536, 0 },
	    { BEFORE, 1, OUTSIDE }, { 0, 1, 0 })

TEST_PLACES(bsd, no_pc_far_above_the_offset_is_folded_back, &bsd,
	    { 1ULL << 32, 65536, OUTSIDE }, { (1ULL << 32) + 2, 65536, OUTSIDE },
	    { 1ULL << 33, 32768, OUTSIDE }, { (1ULL << 34) + 6, 65535, OUTSIDE },
	    { 1ULL << 46, 4, OUTSIDE })

TEST_F(bsd, scale_is_from_1_to_65536)
{
	const u32 bad[] = { 65537, 131072, INT32_MAX, UINT32_MAX };

	EXPECT_EQ(0, on(counters, sizeof(counters), LOOPS_OFFSET, 1));
	EXPECT_EQ(0, on(counters, sizeof(counters), LOOPS_OFFSET, 65536));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_ERROR(EINVAL, on(counters, sizeof(counters), 0, bad[i]));
		EXPECT_IS_ON();
	}
	off();
	EXPECT_ERROR(EINVAL, on(counters, sizeof(counters), 0, 65537));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_PLACES(bsd, bins_span_2_4_or_8_bytes, &bsd,
	    { 1, 65536, 0 }, { 2, 65536, 1 }, { 15, 65536, 7 }, { 16, 65536, OUTSIDE },
	    { 3, 32768, 0 }, { 4, 32768, 1 }, { 6, 32768, 1 }, { 8, 32768, 2 },
	    { 31, 32768, 7 }, { 32, 32768, OUTSIDE },
	    { 7, 16384, 0 }, { 8, 16384, 1 }, { 63, 16384, 7 }, { 64, 16384, OUTSIDE },
	    { 131071, 1, 0 }, { 131072, 1, 1 })

TEST_PLACES(bsd, scales_between_powers_of_2_give_bins_of_sizes_between, &bsd,
	    { 2, 49152, 0 }, { 3, 49152, 1 }, { 5, 49152, 1 }, { 6, 49152, 2 },
	    { 8, 49152, 3 }, { 21, 49152, 7 }, { 22, 49152, OUTSIDE },
	    { 30, 10000, 2 }, { 39, 10000, 2 }, { 40, 10000, 3 })

TEST_F(bsd, scale_0_turns_it_off)
{
	EXPECT_NO_ERROR(profil(NULL, 0, 0, 0));
	ASSERT_EQ(0, on_loops());
	EXPECT_LEAVES_OFF(on(counters, sizeof(counters), LOOPS_OFFSET, 0));
	/* whatever the buffer */
	ASSERT_EQ(0, on_loops());
	EXPECT_LEAVES_OFF(on((void *)16, 64, 0, 0));
}

TEST_F(bsd, scale_1_does_not_turn_it_off)
{
	struct profil_stats s;

	ASSERT_EQ(0, on(counters, 2, LOOPS_OFFSET, 1));
	EXPECT_TRUE(loop_hits(0, 3));
	EXPECT_IS_ON();
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LE(3, s.hit);
}

TEST_F(bsd, a_buffer_beyond_the_address_space_is_EFAULT)
{
	const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2 };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_ERROR(EFAULT, on(counters, sizes[i], 0, 65536));
		EXPECT_TRUE(is_off(SCOPE));
	}
}

TEST_F(bsd, samples_are_unsigned_shorts)
{
	char *odd = (char *)counters + 1;

	EXPECT_ERROR(EFAULT, on(odd, 64, 0, 65536));
	/* a large count is not negative */
	counters[0] = INT16_MAX;
	ASSERT_EQ(0, on_loops());
	EXPECT_TRUE(loop_hits(0, 3));
	EXPECT_LE(INT16_MAX + 3, counters[0]);
}

TEST_F(bsd, success_returns_0)
{
	EXPECT_NO_ERROR(on_loops());
	EXPECT_NO_ERROR(on_loops());
	EXPECT_NO_ERROR(profil(NULL, 0, 0, 0));
	EXPECT_NO_ERROR(profil(NULL, 0, 0, 0));
	EXPECT_NO_ERROR(on(NULL, 0, 0, 65536));
	EXPECT_NO_ERROR(on(counters, sizeof(counters), UINT64_MAX, 1));
}

/*
 * add_profil()
 */

static u16 added[2][64];

/* Adds an area from loop @i on, with a counter for every two bytes. */
static int add_loop(u16 *buffer, size_t nr, unsigned int i)
{
	return add_profil((char *)buffer, nr * sizeof(*buffer), loop_at(i), 65536);
}

static int on_loop(unsigned int i)
{
	return on(counters, 16, loop_at(i), 65536);
}

/* Runs loop @i until *@at has at least two counts more. */
static bool loop_hits_at(unsigned int i, const volatile u16 *at)
{
	u16 was = *at;

	return loop_until(i, *at >= was + 2);
}

TEST_F(bsd, add_profil_adds_areas_that_lie_apart)
{
	struct profil_stats s;

	ASSERT_EQ(0, on_loop(0));
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
	EXPECT_NO_ERROR(add_loop(added[0], 4, 3));
	EXPECT_NO_ERROR(add_loop(added[1], 4, 6));
	EXPECT_TRUE(loop_hits_at(6, &added[1][0]));
	EXPECT_TRUE(loop_hits_at(3, &added[0][0]));
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(PROFIL_STATE_ON, s.state);
	EXPECT_EQ(0, counters_sum(added[0] + 4, 2, 60));
}

TEST_F(bsd, profil_removes_the_areas_that_were_added)
{
	u64 was;

	ASSERT_EQ(0, on_loop(0));
	ASSERT_EQ(0, add_loop(added[0], 4, 3));
	EXPECT_TRUE(loop_hits_at(3, &added[0][0]));
	ASSERT_EQ(0, on_loop(0));
	was = added[0][0];
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_EQ(was, added[0][0]);
	/* Another area that is added later does not bring it back. */
	ASSERT_EQ(0, add_loop(added[1], 4, 6));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_EQ(was, added[0][0]);
	EXPECT_TRUE(loop_hits_at(6, &added[1][0]));
}

/* First the area of profil(), then the latest. An area without a counter for the pc is skipped. */
TEST_F(bsd, a_tick_is_counted_in_one_area_only)
{
	u64 was;

	ASSERT_EQ(0, on_loop(0));
	ASSERT_EQ(0, add_loop(added[0], 64, 0));	/* from loop 0 to the end of loop 3 */
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
	EXPECT_EQ(0, added[0][0]);
	EXPECT_TRUE(loop_hits_at(1, &added[0][16]));
	ASSERT_EQ(0, add_loop(added[1], 4, 1));
	was = added[0][16];
	EXPECT_TRUE(loop_hits_at(1, &added[1][0]));
	EXPECT_EQ(was, added[0][16]);
	EXPECT_TRUE(loop_hits_at(2, &added[0][32]));
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
	EXPECT_EQ(0, added[0][0]);
}

TEST_F(bsd, add_profil_does_nothing_without_a_profile)
{
	EXPECT_LEAVES_OFF(add_loop(added[0], 4, 3));
	/* also after a profile that was turned off */
	ASSERT_EQ(0, on_loop(0));
	off();
	EXPECT_LEAVES_OFF(add_loop(added[0], 4, 3));
	/* or while another family's profile is on */
	ASSERT_EQ(0, on_loop(0));
	ASSERT_EQ(0, glibc_profil(counters, 16, loop_at(0)));
	EXPECT_NO_ERROR(add_loop(added[0], 4, 3));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_EQ(0, added[0][0]);
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
}

TEST_F(bsd, a_bad_area_is_not_added)
{
	u8 *p = pages_of_each_kind();
	u16 *read_only = (void *)(p + PAGE);

	ASSERT_EQ(0, on_loop(0));
	EXPECT_ERROR(EFAULT, add_loop((u16 *)16, 4, 3));
	EXPECT_ERROR(EFAULT, add_loop(read_only, 4, 3));
	EXPECT_ERROR(EINVAL, add_profil((char *)added, 8, loop_at(3), 65537));
	EXPECT_NO_ERROR(add_profil((char *)added, 8, loop_at(3), 0));
	EXPECT_NO_ERROR(add_loop(added[0], 0, 3));
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_EQ(0, added[0][0]);
	EXPECT_TRUE(still_on());
	EXPECT_EQ(0, add_loop(added[0], 4, 3));
	EXPECT_TRUE(loop_hits_at(3, &added[0][0]));
}

static int add_in_the_child(void)
{
	MUST(!add_loop(added[1], 4, 6));
	MUST(loop_hits_at(6, &added[1][0]));
	MUST(loop_hits_at(3, &added[0][0]));
	MUST(loop_hits_at(0, &counters[0]));
	return 0;
}

TEST_F(bsd, parent_and_child_add_areas_separately)
{
	ASSERT_EQ(0, on_loop(0));
	ASSERT_EQ(0, add_loop(added[0], 4, 3));
	EXPECT_EQ(0, status_in_child(add_in_the_child()));
	EXPECT_TRUE(loop_burn(SCOPE, 6, FEW));
	EXPECT_EQ(0, added[1][0]);
	EXPECT_TRUE(loop_hits_at(3, &added[0][0]));
}

static void *add_one_each(void *arg)
{
	const uintptr_t n = (uintptr_t)arg;

	for (unsigned int i = n; i < 64; i += 4)
		if (add_profil((char *)&added[0][i], 2, loop_at(4) + 2 * i, 65536))
			return "failed";
	return NULL;
}

/* Four threads add far more areas than there is room for at first. All of them count. */
TEST_F(bsd, threads_can_add_areas_at_the_same_time)
{
	ASSERT_EQ(0, on_loop(0));
	EXPECT_EQ(NULL, in_threads(4, add_one_each));
	for (unsigned int i = 0; i < 4; i++)
		EXPECT_TRUE(loop_hits_at(4 + i, &added[0][16 * i]));
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
}

/* Each area can be cut in two by another one, and the kernel limits the number of ranges. */
TEST_F(bsd, the_number_of_areas_is_at_most_half_of_max_ranges)
{
	struct profil_query query;
	unsigned int i;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, on_loop(0));
	for (i = 1; i < query.max_ranges / 2; i++)
		ASSERT_EQ(0, add_profil((char *)added[0], 2, loop_at(4) + 2 * i, 65536));
	EXPECT_ERROR(ENOMEM, add_profil((char *)added[0], 2, loop_at(4), 65536));
	EXPECT_TRUE(still_on());
	EXPECT_TRUE(loop_hits_at(0, &counters[0]));
}

/*
 * Programs of their time
 */

TEST_RUNS_BESIDE(a_program_of_4_3BSD_works_unchanged, "old-bsd-vax")
TEST_RUNS_BESIDE(a_program_of_NeXT_works_unchanged, "old-bsd-next")

TEST_HARNESS_MAIN
