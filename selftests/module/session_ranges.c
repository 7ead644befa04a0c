// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: ranges, added and removed
 */
#include "session.h"

#include "records.h"

static u32 other[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

TEST_F(session, refuses_overlapping_ranges_and_stays_unchanged)
{
	const struct profil_range loops = range_of_loops(other, 4);
	/* Ranges that overlap an existing range, or one or two of the ranges before them. */
	const struct {
		u64 start, end;
	} bad[] = {
		{ loops.start, loops.end },
		{ loops.end - 1, loops.end + LOOP_SIZE },
		{ 0x10000, UINT64_MAX },
		{ 0x1ffff, 0x20001 },
	};

	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct profil_range ranges[] = {
			range_of(0x10000, 0x20000, other, 4, 4),
			range_of(0x20000, 0x30000, other, 4, 4),
			range_of(bad[i].start, bad[i].end, other, LOOPS, 4),
		};

		EXPECT_EQ(-EINVAL, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 3));
		EXPECT_LOCKED(PAGE);
	}
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	/* None of the valid ranges was added. */
	EXPECT_EQ(0, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x30000));
	EXPECT_LE(10U, DISABLE_EXACT(page).ticks);
	EXPECT_EQ(0U, counters_sum(other, 4, PAGE / 4));
}

TEST_F(session, refuses_more_ranges_than_the_limit_in_all_calls_together)
{
	struct profil_range *ranges;
	struct profil_query query;
	u32 max, i;

	ASSERT_EQ(0, device_query(&query));
	max = query.max_ranges;
	ranges = calloc(max + 1, sizeof(*ranges));
	ASSERT_NE(NULL, ranges);
	for (i = 0; i <= max; i++)
		ranges[i] = range_of(0x10000 + i * 16, 0x10010 + i * 16, NULL, 0, 4);
	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, max - 1));
	EXPECT_EQ(-EINVAL, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[max - 1], 2));
	EXPECT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[max - 1], 1));
	EXPECT_EQ(-EINVAL, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[max], 1));
	EXPECT_EQ((int)max, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	free(ranges);
}

TEST_F(session, removes_only_ranges_that_lie_within_the_addresses)
{
	struct profil_range ranges[LOOPS];
	u32 counted, witness;
	unsigned int i;

	for (i = 0; i < LOOPS; i++)
		ranges[i] = range_of_loop(i, &page[i]);
	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, ranges, LOOPS);
	EXPECT_TRUE(loop_until(3, count_of(3) >= 5));

	/* Only ranges that lie completely within the addresses are removed. */
	EXPECT_EQ(0, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[3].start + 1,
				       ranges[4].end - 1));
	EXPECT_EQ(2, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[2].start + 1,
				       ranges[5].end - 1));
	counted = count_of(3);
	EXPECT_TRUE(burn_outside(3, 10));
	EXPECT_EQ(counted, count_of(3));

	for (i = 0; i < LOOPS; i++) {
		witness = count_of(i);
		EXPECT_TRUE(i == 3 || i == 4 || loop_until(i, count_of(i) > witness));
	}
	/* Ranges can be added in their place. */
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[3], 2));
	EXPECT_TRUE(loop_until(3, count_of(3) > counted));
	EXPECT_EQ((int)LOOPS, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	EXPECT_LOCKED(0U);
	DISABLE_EXACT(page);
}

TEST_F(session, unpins_a_page_with_its_last_range)
{
	static u32 pages[2 * PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	const size_t second = PAGE / sizeof(u32);
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0], 1, 4),
		range_of(0x20000, 0x20010, &pages[1], 1, 4),
		range_of(0x30000, 0x30010, &pages[second], 1, 4),
		range_of(0x40000, 0x40010, &pages[second - 1], 2, 4),	/* in both pages */
	};
	unsigned int i;

	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	/* First one range at a time. */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 1));
		EXPECT_LOCKED(i < 2 ? PAGE : 2 * PAGE);
	}
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x20000, 0x20010));
	EXPECT_LOCKED(PAGE);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x30000, 0x30010));
	EXPECT_LOCKED(0U);

	/* Then all at once; remove the ranges that are in one page only. */
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 4));
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(3, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x30010));
	EXPECT_LOCKED(2 * PAGE);
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 3));
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x40000, 0x40010));
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(3, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x30010));
	EXPECT_LOCKED(0U);
}

TEST_F(session, unpins_adjacent_buffers_with_their_last_range)
{
	static u32 pages[2 * PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0], 1, 4),
		range_of(0x20000, 0x20010, &pages[PAGE / sizeof(u32)], 1, 4),
	};

	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, ranges, 2);
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	EXPECT_LOCKED(2 * PAGE);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x20000, 0x20010));
	EXPECT_LOCKED(0U);
}

/* Runs in a child that shares the session; the parent removes the range meanwhile. */
static int inherit_and_lose(void)
{
	volatile u32 *count = &shared->page[2];
	u32 now;

	MUST(loop_until(2, *count >= 5));
	shared->step = 1;
	MUST(step_is(2));
	/* It is removed from the parent, but not from this process. */
	now = *count;
	MUST(loop_until(2, *count >= now + 5));
	shared->step = 3;
	/* Ticks here leave records. */
	while (shared->step < 4)
		burn();
	/* Now it is removed here, too. */
	now = *count;
	MUST(burn_outside(2, 10));
	return *count == now ? 0 : 95;
}

TEST_F(session, removes_an_inherited_range_from_one_address_space_at_a_time)
{
	struct profil_range range = range_of_loops(shared->page, 4);
	u64 of_records, space = 0;
	pid_t child;
	u32 now;

	fd = must_open(.fork = PROFIL_FORK_SHARE, .nr_records = 4096);
	of_records = stats_now().locked;
	must_sample(fd, PROFIL_SCOPE_PROCESS, &range, 1);
	child = spawn(inherit_and_lose);
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	now = shared->page[0];
	EXPECT_TRUE(burn_outside(0, 5));
	EXPECT_EQ(now, shared->page[0]);
	EXPECT_EQ(of_records + PAGE, stats_now().locked);
	shared->step = 2;
	ASSERT_TRUE(step_is(3));
	ASSERT_TRUE(await(read_all() || records_where(r, r->pid == child && (space = r->space))));
	EXPECT_EQ(1, descriptor_remove(fd, space, 0, UINT64_MAX));
	EXPECT_LOCKED(of_records);
	shared->step = 4;
	EXPECT_EQ(0, status_of(child));
	DISABLE_EXACT(shared->page);
}

static void *run_all_loops(void *unused)
{
	for (unsigned int i = 0; !enough; i = (i + 1) % LOOPS)
		loop_run(i, LOOP_BURST / 4);
	return unused;
}

#define MANY	1000U
#define EVERY	(MANY / LOOPS)

/* Range @i for counter @i. Every EVERY-th range is a loop; the others have no code. */
static struct profil_range one_of_many(unsigned int i, u64 *counters)
{
	struct profil_range range;
	u64 start;

	if (i % EVERY == EVERY - 1)
		start = loop_at(i / EVERY);
	else
		start = 0x10000 + i * LOOP_BLOCK;
	range = range_of(start, start + LOOP_BLOCK, counters, MANY, 8);
	range.granule = LOOP_BLOCK;
	range.offset = start - i * LOOP_BLOCK;
	return range;
}

TEST_F_TIMEOUT(session, adds_and_removes_1000_ranges_of_one_histogram_while_it_counts, 120)
{
	static u64 counters[MANY] PAGE_ALIGNED;
	static struct profil_range ranges[MANY];
	const volatile u64 *loop_3 = &counters[4 * EVERY - 1];
	struct profil_query query;
	struct profil_stats s;
	u64 outside, then, sum = 0;
	unsigned int i;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_LE(MANY, query.max_ranges);
	for (i = 0; i < MANY; i++)
		ranges[i] = one_of_many(i, counters);
	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, NULL, 0);
	start_beside(run_all_loops, 0);

	/* First one at a time, then in batches. Each page is pinned once. */
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 1));
	for (i = 100; i < MANY; i += 100)
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 100));
	EXPECT_EQ((sizeof(counters) + PAGE - 1) / PAGE * PAGE, stats_now().locked);
	EXPECT_TRUE(await(*loop_3 >= 3));

	EXPECT_EQ((int)EVERY - 1, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[5 * EVERY].start,
						    ranges[6 * EVERY - 2].end));
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, loop_at(3),
				       loop_at(3) + LOOP_BLOCK));
	then = *loop_3;
	outside = stats_now().outside;
	EXPECT_TRUE(await(stats_now().outside >= outside + 10));
	EXPECT_EQ(then, *loop_3);
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[4 * EVERY - 1], 1));
	EXPECT_TRUE(await(*loop_3 >= then + 3));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[5 * EVERY + i], 1));
		ASSERT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[i].start,
					       ranges[i].end));
	}
	stop_beside();
	ASSERT_DISABLE(fd, &s);
	for (i = 0; i < MANY; i++) {
		sum += counters[i];
		if (i % EVERY != EVERY - 1)
			EXPECT_EQ(0U, counters[i]);
	}
	EXPECT_EQ(s.hit, sum);
	for (i = 0; i < LOOPS; i++)
		EXPECT_LT(0U, counters[(i + 1) * EVERY - 1]);
}

TEST_F(session, loses_no_tick_while_ranges_are_added_and_removed)
{
	struct profil_range range = range_of_loops(page, 4), witness = range_of_loops(other, 4);
	struct profil_range dummy = range_of(0x10000, 0x10010, &page[100], 1, 4);
	struct profil_stats s, w;
	unsigned int i;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &witness, 1));
	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, &range, 1);
	start_beside(run_all_loops, 0);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &dummy, 1));
		ASSERT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	}
	EXPECT_TRUE(await(stats_now().hit >= 100));
	stop_beside();
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &w));
	EXPECT_EXACT(s, page);
	EXPECT_EXACT(w, other);
	EXPECT_EQ(0U, dropped_here(_metadata, &s));
	EXPECT_EQ(0, memcmp(page, other, sizeof(page)));
}

TEST_HARNESS_MAIN
