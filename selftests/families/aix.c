// SPDX-License-Identifier: GPL-2.0
/*
 * profil() of AIX, in both forms. The sentences of its manual page are in sentences/aix.
 */
#include "family.h"

#include <profil.h>

/* The call of another family. */
static int glibc_profil(unsigned short *buf, size_t size, u64 offset, u32 scale)
{
	return profil(buf, size, offset, scale);
}

#include <profil/aix.h>

/* With this offset loop i is counted in counter i, because AIX rounds up. */
#define OFFSET		loop_at(0)

#define SECOND(profs)	profil(profs, -1, 0, 0)

static int on(void *buffer, size_t size, u64 offset, u32 scale)
{
	return profil(buffer, size, offset, scale);
}

static int off(void)
{
	return profil(counters, sizeof(counters), 0, 0);
}

static const struct form first_form = { on, off, 2 };

static int on_loops(void)
{
	return on(counters, LOOPS * sizeof(*counters), OFFSET, LOOPS_SCALE);
}

/* Returns a structure for the text from @low on to below @high. */
static struct prof prof_of(u64 low, u64 high, u16 *buffer, int size, u32 scale)
{
	return (struct prof) {
		.p_low = (char *)(uintptr_t)low,
		.p_high = (char *)(uintptr_t)high,
		.p_buff = buffer,
		.p_bufsize = size,
		.p_scale = scale,
	};
}

static const struct prof end;

/* Like on_loops(), by the second form. */
static int second_on_loops(void)
{
	struct prof profs[] = {
		prof_of(OFFSET, OFFSET + LOOPS * LOOP_SIZE, counters, LOOPS * sizeof(*counters),
			LOOPS_SCALE),
		end,
	};

	return SECOND(profs);
}

static int second_off(void)
{
	struct prof profs[] = { prof_of(1, 0, (u16 *)16, -1, -1) };

	return SECOND(profs);
}

FIXTURE(aix) {
};

FIXTURE_OFF(aix, glibc_profil(counters, 0, 0, 0))

/*
 * First form
 */

TEST_PLACES(aix, the_offset_is_subtracted_from_the_pc, &first_form,
	    { BEFORE, 0xffff, OUTSIDE }, { 0, 0xffff, 0 }, { 6, 0xffff, 3 })

/* d * scale is a number of bytes, which is rounded up to an even one. */
TEST_PLACES(aix, d_times_scale_is_rounded_up_to_a_half_word, &first_form,
	    { 0, 0xffff, 0 }, { 1, 0xffff, 0 }, { 2, 0xffff, 1 }, { 3, 0xffff, 1 },
	    { 4, 0xffff, 2 }, { 5, 0xffff, 2 }, { 6, 0xffff, 3 },
	    { 1, 0x8000, 0 }, { 2, 0x8000, 1 }, { 3, 0x8000, 1 }, { 4, 0x8000, 1 },
	    { 5, 0x8000, 1 }, { 6, 0x8000, 2 }, { 8, 0x8000, 2 })

TEST_PLACES(aix, counts_if_the_result_is_below_the_number_of_shorts, &first_form,
	    { 14, 0xffff, 7 }, { 15, 0xffff, 7 }, { 16, 0xffff, OUTSIDE },
	    { 28, 0x8000, 7 }, { 29, 0x8000, 7 }, { 30, 0x8000, OUTSIDE },
	    { 1ULL << 32, 0xffff, OUTSIDE }, { 1ULL << 33, 0x8000, OUTSIDE },
	    { (1ULL << 34) + 4, 0xffff, OUTSIDE })

TEST_PLACES(aix, the_low_16_bits_are_a_fraction, &first_form,
	    { 8, 0x4000, 1 }, { 16, 0x4000, 2 }, { 24, 0x4000, 3 },
	    { 10, 0xc000, 4 }, { 12, 0xc000, 5 })

TEST_F(aix, the_high_16_bits_are_ignored)
{
	const u32 off_too[] = { 0x10000, 0x10001, 0x20000, 0xffff0000, 0xffff0001 };

	EXPECT_PLACES(&first_form,
		      { 6, 0x1ffff, 3 }, { 6, 0xffff8000, 2 }, { 1 << 19, 0x10002, 0 });
	for (unsigned int i = 0; i < ARRAY_SIZE(off_too); i++) {
		EXPECT_LEAVES_OFF(on(counters, 64, OFFSET, off_too[i]));
		ASSERT_EQ(0, on_loops());
		EXPECT_LEAVES_OFF(on(counters, 64, OFFSET, off_too[i]));
	}
}

TEST_PLACES(aix, scale_0xffff_maps_pairs_of_bytes, &first_form,
	    { 0, 0xffff, 0 }, { 2, 0xffff, 1 }, { 8, 0xffff, 4 }, { 12, 0xffff, 6 })

TEST_PLACES(aix, scale_0x7fff_maps_four_bytes, &first_form,
	    { 0, 0x7fff, 0 }, { 4, 0x7fff, 1 }, { 8, 0x7fff, 2 }, { 24, 0x7fff, 6 })

TEST_PLACES(aix, scale_2_counts_every_pc_in_the_first_counter, &first_form,
	    { 0, 2, 0 }, { 1, 2, 0 }, { 65536, 2, 0 }, { 1 << 19, 2, 0 },
	    { 1ULL << 32, 2, 0 }, { BEFORE, 2, OUTSIDE }, { 65536, 3, 2 })

TEST_F(aix, scale_0_or_1_turns_it_off)
{
	for (u32 scale = 0; scale <= 1; scale++) {
		ASSERT_EQ(0, on_loops());
		EXPECT_TRUE(still_on());
		EXPECT_LEAVES_OFF(on(counters, 64, OFFSET, scale));
		/* whatever the buffer */
		ASSERT_EQ(0, on_loops());
		EXPECT_LEAVES_OFF(on((void *)16, 64, OFFSET, scale));
	}
}

TEST_F(aix, size_0_turns_the_first_form_off)
{
	EXPECT_LEAVES_OFF(on(counters, 0, OFFSET, 0xffff));
	ASSERT_EQ(0, on_loops());
	EXPECT_LEAVES_OFF(on(counters, 0, OFFSET, 0xffff));
	ASSERT_EQ(0, second_on_loops());
	EXPECT_NO_ERROR(on(counters, 0, OFFSET, 0xffff));
	EXPECT_TRUE(still_on());
}

/* Half a counter does not count, and the byte past it stays unchanged. */
TEST_F(aix, the_size_is_in_bytes)
{
	struct profil_stats s;

	for (size_t size = 1; size <= 3; size += 2) {
		memset(counters, 0, sizeof(counters));
		counters[size / 2] = 0x5555;
		ASSERT_EQ(0, on(counters, size, OFFSET, 2));
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		off();
		EXPECT_EQ(0x5555, counters[size / 2]);
		EXPECT_EQ(size == 3, s.hit > 0);
	}
}

/*
 * Second form
 */

TEST_F(aix, size_minus_1_is_the_second_form)
{
	struct prof profs[] = {
		prof_of(loop_at(1), loop_at(2), counters, 32, 0xffff),
		prof_of(loop_at(3), loop_at(4), counters + 16, 32, 0xffff),
		end,
	};
	struct profil_stats s;

	/* Offset and scale have no meaning here. */
	EXPECT_NO_ERROR(profil(profs, -1, 12345, 1));
	EXPECT_TRUE(loop_until(1, counter(counters, 2, 0) >= 3));
	EXPECT_EQ(0, counters[16]);
	EXPECT_TRUE(loop_until(3, counter(counters, 2, 16) >= 3));
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(FEW / 2, s.outside);
	EXPECT_LE(s.hit, hits());
	EXPECT_NO_ERROR(second_off());
}

/* The region begins at the offset. The low 16 bits of the scale count, as in the first form. */
static int second_on(void *buffer, size_t size, u64 offset, u32 scale)
{
	struct prof profs[] = { prof_of(offset, UINT64_MAX, buffer, size, scale), end };

	return SECOND(profs);
}

static const struct form second_form = { second_on, second_off, 2 };

TEST_PLACES(aix, p_scale_has_the_meaning_of_the_first_forms_scale, &second_form,
	    { BEFORE, 0xffff, OUTSIDE }, { 0, 0xffff, 0 }, { 2, 0xffff, 1 },
	    { 3, 0xffff, 1 }, { 4, 0xffff, 2 }, { 6, 0x8000, 2 }, { 8, 0x8000, 2 },
	    { 30, 0x8000, OUTSIDE }, { 6, 0x18000, 2 }, { 1 << 19, 2, 0 },
	    { 1 << 19, 0x10002, 0 })

TEST_F(aix, p_scale_0_or_1_counts_nothing_in_its_region)
{
	const u32 scales[] = { 0, 1, 0x10000, 0xffff0001 };

	for (unsigned int i = 0; i < ARRAY_SIZE(scales); i++) {
		struct prof profs[] = {
			prof_of(loop_at(0), loop_at(1), counters, 32, scales[i]),
			prof_of(loop_at(1), loop_at(2), counters + 16, 32, 0xffff),
			end,
		};
		u64 more = counter(counters, 2, 16) + 2;

		ASSERT_EQ(0, SECOND(profs));
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		EXPECT_TRUE(loop_until(1, counter(counters, 2, 16) >= more));
		EXPECT_EQ(0, counters_sum(counters, 2, 16));
		EXPECT_LEAVES_OFF(second_off());
	}
}

/* The region has @length bytes of text, and its last byte is counted in the last counter. */
static int on_computed(void *buffer, size_t size, u64 offset, u32 length)
{
	struct prof profs[] = { prof_of(offset, offset + length, buffer, size, -1), end };

	return SECOND(profs);
}

static const struct form computed_form = { on_computed, second_off, 2 };

TEST_PLACES(aix, p_scale_minus_1_is_computed, &computed_form,
	    /* as long as the buffer or shorter: the scale is 0xffff */
	    { 0, 16, 0 }, { 2, 16, 1 }, { 8, 16, 4 }, { 14, 16, 7 }, { 15, 16, 7 },
	    { 4, 6, 2 }, { 5, 6, 2 }, { 0, 1, 0 },
	    /* twice and four times as long */
	    { 0, 32, 0 }, { 4, 32, 1 }, { 16, 32, 4 }, { 28, 32, 7 }, { 31, 32, 7 },
	    { 32, 64, 4 }, { 63, 64, 7 }, { 64, 64, OUTSIDE },
	    /* some thousand times as long, and too long for any scale */
	    { 0, 65536, 0 }, { 32768, 65536, 4 }, { 65535, 65536, 7 },
	    { 1 << 20, 0x12345678, 0 }, { 0x12345677, 0x12345678, 0 },
	    { 0x12345678, 0x12345678, OUTSIDE })

TEST_F(aix, p_high_must_ascend)
{
	struct prof falling[] = {
		prof_of(loop_at(3), loop_at(4), counters, 32, 0xffff),
		prof_of(loop_at(1), loop_at(2), counters + 16, 32, 0xffff),
		end,
	};
	struct prof equal[] = {
		prof_of(loop_at(3), loop_at(4), counters, 32, 0xffff),
		prof_of(loop_at(1), loop_at(4), counters + 16, 32, 0xffff),
		end,
	};

	EXPECT_ERROR(EINVAL, SECOND(falling));
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_ERROR(EINVAL, SECOND(equal));
	EXPECT_TRUE(is_off(SCOPE));
	/* EINVAL is returned even if there is another error. */
	falling[1].p_buff = (u16 *)16;
	EXPECT_ERROR(EINVAL, SECOND(falling));
}

/* The first region counts the text that both contain. */
TEST_F(aix, of_overlapping_regions_the_first_counts)
{
	struct prof profs[] = {
		prof_of(loop_at(2), loop_at(3), counters, 32, 0xffff),
		prof_of(loop_at(1), loop_at(4), counters + 16, 96, 0xffff),
		end,
	};

	ASSERT_EQ(0, SECOND(profs));
	EXPECT_TRUE(loop_until(2, counter(counters, 2, 0) >= 2));
	EXPECT_TRUE(loop_until(1, counter(counters, 2, 16) >= 2));
	EXPECT_TRUE(loop_until(3, counter(counters, 2, 16 + 32) >= 2));
	EXPECT_EQ(0, counters[16 + 16]);
}

TEST_F(aix, of_the_last_structure_only_p_high_matters)
{
	struct prof profs[] = {
		prof_of(OFFSET, OFFSET + LOOP_SIZE, counters, 32, 0xffff),
		prof_of(12345, 0, (u16 *)16, -7, 0xdeadbeef),
		prof_of(1, 2, NULL, 3, 4),
	};

	EXPECT_NO_ERROR(SECOND(profs));
	EXPECT_TRUE(still_on());
}

TEST_F(aix, buffers_must_be_contiguous)
{
	struct prof profs[] = {
		prof_of(loop_at(0), loop_at(1), counters, 8, 0xffff),
		prof_of(loop_at(1), loop_at(2), counters + 4, 8, 0xffff),
		prof_of(loop_at(2), loop_at(3), counters + 8, 8, 0xffff),
		end,
	};

	EXPECT_NO_ERROR(SECOND(profs));
	EXPECT_EQ(0, second_off());
	/* in any order, and shared */
	profs[0].p_buff = counters + 8;
	profs[1].p_buff = counters;
	profs[2].p_buff = counters + 4;
	EXPECT_NO_ERROR(SECOND(profs));
	EXPECT_EQ(0, second_off());
	profs[2].p_buff = counters;
	profs[0].p_buff = counters + 4;
	EXPECT_NO_ERROR(SECOND(profs));
	EXPECT_EQ(0, second_off());
	/* an odd byte is not a gap */
	profs[1].p_bufsize = 7;
	EXPECT_NO_ERROR(SECOND(profs));
	EXPECT_LEAVES_OFF(second_off());
	/* but two bytes are a gap */
	profs[0].p_buff = counters + 5;
	EXPECT_ERROR(EFAULT, SECOND(profs));
	profs[0].p_buff = counters + 4;
	profs[1].p_bufsize = -8;
	EXPECT_ERROR(EFAULT, SECOND(profs));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(aix, p_high_0_in_the_first_turns_the_second_form_off)
{
	EXPECT_NO_ERROR(second_off());
	ASSERT_EQ(0, second_on_loops());
	EXPECT_TRUE(still_on());
	EXPECT_LEAVES_OFF(second_off());
}

/*
 * Both
 */

static int turn_off_in_the_child(void)
{
	MUST(state_of(SCOPE) == PROFIL_STATE_ON);
	MUST(!second_off());
	MUST(state_of(SCOPE) == PROFIL_STATE_ON);
	off();
	MUST(is_off(SCOPE));
	MUST(!second_on_loops());
	off();
	MUST(still_on());
	MUST(!second_off());
	MUST(is_off(SCOPE));
	return 0;
}

TEST_F(aix, the_child_knows_which_form_turned_it_on)
{
	ASSERT_EQ(0, on_loops());
	EXPECT_EQ(0, status_in_child(turn_off_in_the_child()));
	EXPECT_TRUE(still_on());
	EXPECT_LEAVES_OFF(off());
}

TEST_F(aix, one_form_does_not_turn_the_other_off)
{
	ASSERT_EQ(0, on_loops());
	EXPECT_NO_ERROR(second_off());
	EXPECT_TRUE(still_on());
	EXPECT_LEAVES_OFF(off());

	ASSERT_EQ(0, second_on_loops());
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_NO_ERROR(on(counters, 64, 0, 1));
	EXPECT_NO_ERROR(on(counters, 0, 0, 0xffff));
	EXPECT_TRUE(still_on());
	EXPECT_LEAVES_OFF(second_off());
}

static u16 other[LOOPS];

/* Has no effect: the profile that is on keeps its counters and scale. */
static int turn_on_again(void)
{
	struct prof profs[] = {
		prof_of(OFFSET, OFFSET + LOOP_SIZE, other, sizeof(other), 2),
		end,
	};

	return on(other, sizeof(other), OFFSET, 2) ?: SECOND(profs);
}

TEST_F(aix, cannot_be_turned_on_when_it_is_on)
{
	struct prof bad[] = {
		prof_of(loop_at(3), loop_at(4), (u16 *)16, 32, 0xffff),
		prof_of(loop_at(1), loop_at(2), (u16 *)64, 32, 0xffff),
		end,
	};

	for (unsigned int form = 1; form <= 2; form++) {
		ASSERT_EQ(0, form == 1 ? on_loops() : second_on_loops());
		EXPECT_NO_ERROR(turn_on_again());
		EXPECT_TRUE(still_on());
		/* The buffer is not even checked. */
		EXPECT_NO_ERROR(on((void *)16, 64, OFFSET, 0xffff));
		EXPECT_NO_ERROR(SECOND(bad));
		EXPECT_TRUE(still_on());
		EXPECT_EQ(0, counters_sum(other, 2, LOOPS));
		/* Only the form that turned it on turns it off. */
		EXPECT_NO_ERROR(form == 1 ? second_off() : on(counters, 64, 0, 0));
		EXPECT_TRUE(still_on());
		EXPECT_LEAVES_OFF(form == 1 ? on(counters, 64, 0, 0) : second_off());
	}
}

TEST_F(aix, cannot_be_turned_off_when_it_is_off)
{
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_NO_ERROR(on(counters, 64, 0, 1));
	EXPECT_NO_ERROR(on(counters, 0, 0, 0xffff));
	EXPECT_LEAVES_OFF(second_off());
}

TEST_F(aix, has_no_effect_on_another_familys_profile)
{
	ASSERT_EQ(0, glibc_profil(counters, 2 * LOOPS, loop_at(0), LOOPS_SCALE));
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_NO_ERROR(second_off());
	EXPECT_NO_ERROR(turn_on_again());
	EXPECT_TRUE(still_on());
	EXPECT_EQ(0, counters_sum(other, 2, LOOPS));

	/* the same if the other profile has replaced a profile of AIX */
	ASSERT_EQ(0, glibc_profil(counters, 0, 0, 0));
	ASSERT_EQ(0, on_loops());
	ASSERT_EQ(0, glibc_profil(counters, 2 * LOOPS, loop_at(0), LOOPS_SCALE));
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_TRUE(still_on());

	/* or has ended a profile of AIX */
	ASSERT_EQ(0, glibc_profil(counters, 0, 0, 0));
	EXPECT_NO_ERROR(second_on_loops());
	EXPECT_TRUE(still_on());

	/* or if the library does not know the other profile */
	EXPECT_NO_ERROR(second_off());
	ASSERT_EQ(0, session_start(SCOPE, 0, NULL, 0));
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_NO_ERROR(second_off());
	EXPECT_IS_ON();
	EXPECT_NO_ERROR(turn_on_again());
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_EQ(0, counters_sum(other, 2, LOOPS));
}

/* In a child without a copy of the buffer the profile has ended. */
static int turn_on_what_has_ended(void)
{
	MUST(await(state_of(SCOPE) == PROFIL_STATE_ENDED));
	MUST(!second_on_loops());
	MUST(still_on());
	return 0;
}

TEST_F(aix, can_be_turned_on_after_it_ended_by_itself)
{
	u16 *buffer = map_private(PAGE);

	ASSERT_EQ(0, madvise(buffer, PAGE, MADV_DONTFORK));
	ASSERT_EQ(0, on(buffer, PAGE, OFFSET, LOOPS_SCALE));
	EXPECT_EQ(0, status_in_child(turn_on_what_has_ended()));
	EXPECT_IS_ON();
}

TEST_F(aix, returns_0)
{
	EXPECT_NO_ERROR(on_loops());
	EXPECT_NO_ERROR(on(counters, 64, 0, 0));
	EXPECT_NO_ERROR(second_on_loops());
	EXPECT_NO_ERROR(second_off());
	EXPECT_NO_ERROR(on(counters, sizeof(counters), UINT64_MAX, 0xffff));
	EXPECT_IS_ON();
}

/* This includes the scales that have a meaning of their own. */
TEST_F(aix, an_invalid_buffer_is_EFAULT_with_any_scale)
{
	EXPECT_ERROR(EFAULT, on((void *)16, 64, OFFSET, 2));
	EXPECT_ERROR(EFAULT, second_on((void *)16, 64, OFFSET, 2));
	EXPECT_ERROR(EFAULT, second_on((void *)16, 64, OFFSET, -1));
	EXPECT_TRUE(is_off(SCOPE));
}

/* This includes arrays of which only the first structure can be read, or without a last one. */
TEST_F(aix, an_invalid_ProfBuffer_is_EFAULT)
{
	u8 *p = pages_of_each_kind();
	struct prof *profs = (void *)(p + 2 * PAGE - sizeof(*profs)), *many;
	struct profil_query query;
	size_t most, nr;

	ASSERT_EQ(0, device_query(&query));
	most = query.max_ranges / 2;
	nr = most + 2;
	EXPECT_ERROR(EFAULT, SECOND(NULL));
	EXPECT_ERROR(EFAULT, SECOND((void *)16));
	EXPECT_ERROR(EFAULT, SECOND(p + 2 * PAGE));
	ASSERT_EQ(0, mprotect(p, 2 * PAGE, PROT_READ | PROT_WRITE));
	*profs = prof_of(OFFSET, OFFSET + LOOP_SIZE, counters, 32, 0xffff);
	EXPECT_ERROR(EFAULT, SECOND(profs));
	EXPECT_TRUE(is_off(SCOPE));
	profs->p_high = NULL;
	EXPECT_NO_ERROR(SECOND(profs));

	many = map_private(nr * sizeof(*many));
	for (size_t i = 0; i < nr; i++)
		many[i] = prof_of(i, i + 1, counters, 32, 0xffff);
	EXPECT_ERROR(EFAULT, SECOND(many));
	many[most + 1] = end;
	EXPECT_ERROR(EFAULT, SECOND(many));
	many[most] = end;
	EXPECT_NO_ERROR(SECOND(many));
	EXPECT_IS_ON();
}

/* One of the threads turns profiling on, and one that uses the same form turns it off. */
static void *turn_on_and_off(void *arg)
{
	for (unsigned int i = 0; i < 50; i++) {
		const bool first = (uintptr_t)arg & 1;

		if (first ? on_loops() : second_on_loops())
			return "on";
		if (first ? on(counters, 64, 0, 0) : second_off())
			return "off";
	}
	return NULL;
}

TEST_F(aix, threads_turn_it_on_and_off_at_the_same_time)
{
	EXPECT_EQ(NULL, in_threads(4, turn_on_and_off));
	/* The last thread that turned it on has turned it off, if no other did so before. */
	EXPECT_TRUE(is_off(SCOPE));
}

/*
 * A program of its time
 */

TEST_RUNS_BESIDE(a_program_of_AIX_works_unchanged, "old-aix-mon")

TEST_HARNESS_MAIN
