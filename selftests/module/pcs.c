// SPDX-License-Identifier: GPL-2.0
/*
 * PROFIL_RANGE_PCS: a session that stores the pc of each tick in an array instead of counting it.
 *
 * Also built as a 32-bit program (pcs_32), whose pcs have four bytes.
 */
#include "kselftest_harness.h"

#include "loop.h"
#include "madvise.h"
#include "process.h"
#include "threads.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
#define ENTRIES		8192		/* 16 pages */
#define FAST		100000		/* ns; well above the minimum */

typedef uintptr_t entry;

static entry entries[ENTRIES] PAGE_ALIGNED;

FIXTURE(pcs) {
};

FIXTURE_SETUP(pcs)
{
	ASSERT_DEVICE();
}

FIXTURE_TEARDOWN(pcs)
{
	session_stop(SCOPE, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
}

/* Returns a range of all pcs of a program of this word size, with room for @nr of them. */
static struct profil_range range_pcs(u64 nr)
{
	struct profil_range range = range_all(entries, nr, sizeof(entry));

	range.end = UINTPTR_MAX;
	range.scale = 65536;
	range.flags = PROFIL_RANGE_PCS;
	return range;
}

static int start(u64 nr, u32 flags, u64 period)
{
	struct profil_range range = range_pcs(nr);

	return clock_start(SCOPE, flags, period, &range, 1);
}

/* Starts a session with room for @nr pcs, and runs loop @i. */
static void sample_loop(u64 nr, u64 period, unsigned int i)
{
	MUST(!start(nr, 0, period));
	MUST(loop_burn(SCOPE, i, 20));
}

/* Returns how many of @nr entries are in loop @i. */
static u64 count_in_loop(const entry *from, u64 nr, unsigned int i)
{
	u64 n = 0;

	for (u64 k = 0; k < nr; k++)
		n += from[k] - (entry)loop_at(i) < LOOP_BLOCK;
	return n;
}

static bool all_zero_from(u64 i)
{
	while (i < ENTRIES)
		if (entries[i++])
			return false;
	return true;
}

TEST_F(pcs, are_written_in_the_order_of_the_ticks)
{
	struct profil_stats s;
	u64 half;

	sample_loop(ENTRIES, 0, 2);
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	half = s.hit;
	ASSERT_TRUE(loop_burn(SCOPE, 5, 20));
	ASSERT_STOP(SCOPE, &s);
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_TRUE(all_zero_from(s.hit));
	for (u64 i = 0; i < s.hit; i++)
		EXPECT_NE(0, entries[i]);
	EXPECT_EQ(0, count_in_loop(entries, half, 5));
	EXPECT_EQ(0, count_in_loop(entries + half, s.hit - half, 2));
	/* The other pcs are those of system calls. */
	EXPECT_LE(half / 2, count_in_loop(entries, half, 2));
	EXPECT_LE((s.hit - half) / 2, count_in_loop(entries + half, s.hit - half, 5));
}

TEST_F(pcs, that_find_the_array_full_are_saturated)
{
	struct profil_stats s;

	sample_loop(7, 0, 1);
	ASSERT_STOP(SCOPE, &s);
	EXPECT_EQ(7, s.hit);
	EXPECT_EQ(s.ticks - 7, s.saturated);
	EXPECT_TRUE(all_zero_from(7));
}

TEST_F(pcs, start_at_entry_0_with_each_session)
{
	struct profil_stats s;

	sample_loop(ENTRIES, 0, 1);
	ASSERT_EQ(0, start(5, PROFIL_START_REPLACE, 0));
	memset(entries, 0, sizeof(entries));
	ASSERT_TRUE(loop_burn(SCOPE, 3, 10));
	ASSERT_EQ(0, session_stop(SCOPE, &s));
	EXPECT_EQ(5, s.hit);
	EXPECT_LE(2, count_in_loop(entries, 5, 3));
	EXPECT_TRUE(all_zero_from(5));
}

TEST_F(pcs, outside_the_range_are_not_written)
{
	struct profil_range range = range_pcs(ENTRIES);
	struct profil_stats s;

	range.start = loop_at(4);
	range.end = loop_at(4) + LOOP_BLOCK;
	ASSERT_EQ(0, session_start(SCOPE, 0, &range, 1));
	ASSERT_TRUE(loop_burn(SCOPE, 3, 20));
	ASSERT_TRUE(loop_burn(SCOPE, 4, 20));
	ASSERT_STOP(SCOPE, &s);
	EXPECT_LE(10, s.hit);
	EXPECT_LE(10, s.outside);
	EXPECT_EQ(s.hit, count_in_loop(entries, ENTRIES, 4));
}

/* Returns NULL when the session has enough pcs. */
static void *fill_half(void *i)
{
	struct profil_stats s;

	return loop_until(1 + (uintptr_t)i, session_stats(SCOPE, &s) || s.hit >= ENTRIES / 2) ?
	       NULL : &entries;
}

TEST_F(pcs, of_all_threads_are_written_to_one_array)
{
	struct profil_stats s;

	ASSERT_EQ(0, start(ENTRIES, 0, FAST));
	EXPECT_EQ(NULL, in_threads(3, fill_half));
	ASSERT_STOP(SCOPE, &s);
	EXPECT_LE(ENTRIES / 2, s.hit);
	/* No pc is lost, and no entry is left out. */
	for (u64 i = 0; i < s.hit; i++)
		EXPECT_NE(0, entries[i]);
	EXPECT_TRUE(all_zero_from(s.hit));
	for (unsigned int i = 1; i <= 3; i++)
		EXPECT_LE(1, count_in_loop(entries, s.hit, i));
}

/* The pinned pages are not mapped any more, and the new pages at the address are not written. */
TEST_F(pcs, are_written_to_the_pinned_pages_after_MADV_DONTNEED)
{
	struct profil_stats s, then;

	sample_loop(ENTRIES, FAST, 6);
	ASSERT_EQ(0, session_stats(SCOPE, &then));
	ASSERT_EQ(0, madvise(entries, sizeof(entries), MADV_DONTNEED));
	ASSERT_TRUE(loop_burn(SCOPE, 6, 20));
	ASSERT_STOP(SCOPE, &s);
	EXPECT_EQ(s.ticks, s.hit + s.saturated);
	EXPECT_LT(then.hit, s.hit);
	EXPECT_TRUE(all_zero_from(0));
}

/* The child's copy holds the pcs before the fork, and new ones are stored after these. */
TEST_F(pcs, of_a_child_are_written_behind_those_that_it_inherited)
{
	struct profil_describe session = { .size = sizeof(session) };
	struct profil_stats s;
	u64 before;

	sample_loop(ENTRIES, 0, 2);
	ASSERT_EQ(0, device_ioctl(PROFIL_IOC_DESCRIBE, &session));
	EXPECT_EQ(0, session.taken);
	EXPECT_CHILD({
		MUST(loop_burn(SCOPE, 7, 20));
		MUST(!device_ioctl(PROFIL_IOC_DESCRIBE, &session));
		MUST(!session_stop(SCOPE, &s));
		MUST(session.taken >= 20);
		MUST(entries[session.taken + s.hit - 1]);
		MUST(all_zero_from(session.taken + s.hit));
		MUST(accounted(&s) && s.hit == s.ticks && s.hit >= 20);
		before = count_in_loop(entries, ENTRIES, 2);
		MUST(before >= 5);
		MUST(count_in_loop(entries, s.hit + before, 7) <= s.hit);
		MUST(count_in_loop(entries, ENTRIES, 7) >= 5);
		MUST(!count_in_loop(entries, before, 7));
	});
	ASSERT_EQ(0, session_stop(SCOPE, &s));
	EXPECT_EQ(0, count_in_loop(entries, ENTRIES, 7));
}

TEST_F(pcs, of_a_child_that_inherits_a_full_array_are_saturated)
{
	struct profil_stats s;

	sample_loop(7, 0, 2);
	EXPECT_CHILD({
		MUST(loop_burn(SCOPE, 7, 20));
		MUST(!session_stop(SCOPE, &s));
		MUST(accounted(&s) && s.saturated == s.ticks);
		MUST(!count_in_loop(entries, ENTRIES, 7));
	});
}

/* The ticks of the call are deferred until it returns, and then the child's session is set up. */
TEST_F(pcs, of_a_child_in_a_long_call_are_written_unless_the_array_is_full)
{
	static const u64 sizes[] = { 7, ENTRIES };
	const size_t much = 4UL << 20;
	struct profil_stats s;
	void *memory;

	memory = map_small(much);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		sample_loop(sizes[i], FAST, 2);
		EXPECT_CHILD({
			MUST(!madvise(memory, much, MADV_POPULATE_WRITE));
			MUST(!session_stop(SCOPE, &s));
			MUST(accounted(&s) && (i ? s.hit : s.saturated));
			MUST((i ? s.hit : s.saturated) + s.dropped == s.ticks);
		});
		ASSERT_EQ(0, session_stop(SCOPE, &s));
	}
	munmap(memory, much);
}

TEST_F(pcs, of_a_session_of_one_thread_are_written)
{
	struct profil_range range = range_pcs(ENTRIES);
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &range, 1));
	ASSERT_TRUE(loop_burn(PROFIL_SCOPE_THREAD, 2, 10));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &s));
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_LE(5, count_in_loop(entries, s.hit, 2));
}

TEST_F(pcs, are_refused_with_parameters_that_do_not_apply)
{
	const struct profil_range good = range_pcs(ENTRIES);
	struct profil_range r[2];
	int fd;

#define TRY(field, value) do {					\
	r[0] = good;						\
	r[0].field = value;					\
	EXPECT_EQ(-EINVAL, session_start(SCOPE, 0, r, 1));	\
} while (0)
	TRY(flags, PROFIL_RANGE_PCS | PROFIL_RANGE_ROUND_UP);
	TRY(scale, 0);
	TRY(scale, 32768);
	TRY(granule, 2);
	TRY(step, 2);
	TRY(width, 2);
#undef TRY
	/* An end above 4 GiB does not fit into entries of four bytes. */
	r[0] = good;
	r[0].width = 4;
	r[0].end = (1ULL << 32) + 1;
	EXPECT_EQ(-EINVAL, session_start(SCOPE, 0, r, 1));
	r[0].end = 1ULL << 32;
	EXPECT_EQ(0, session_start(SCOPE, 0, r, 1));
	EXPECT_EQ(0, session_stop(SCOPE, NULL));

	/* The session must not have another range. */
	r[0] = good;
	r[0].end = 0x10000;
	r[1] = range_all(entries, ENTRIES, sizeof(entry));
	r[1].start = 0x10000;
	EXPECT_EQ(-EINVAL, session_start(SCOPE, 0, r, 2));

	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, SCOPE, 0, NULL));
	EXPECT_EQ(-EINVAL, descriptor_add(fd, PROFIL_SPACE_SELF, &good, 1));
	close(fd);
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_EQ(0, pinned_bytes());
}

TEST_HARNESS_MAIN
