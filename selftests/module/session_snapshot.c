// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: counters, copied and reset
 */
#include "session.h"
#include "tags.h"

static u32 other[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

/*
 * A long copy between the copies of the counters and of the statistics, so that ticks occur in
 * between: a snapshot that is not taken at one moment fails the test.
 */
static char ballast[2 << 20], ballast_copy[2 << 20];

static u32 copy[LOOPS];

/* Copies the counters, not in their order, with @flags. They must agree with the statistics. */
static struct profil_stats snapshot(struct __test_metadata *_metadata, u32 flags)
{
	const struct profil_copy copies[] = {
		{ addr(&page[3]), addr(&copy[3]), 4 * (LOOPS - 3) },
		{ addr(page), addr(copy), 4 * 3 },
		{ addr(ballast), addr(ballast_copy), sizeof(ballast) },
	};
	struct profil_stats s;

	memset(copy, 0xff, sizeof(copy));
	ASSERT_EQ(0, descriptor_snapshot(fd, flags, copies, 3, &s));
	ASSERT_TRUE(accounted(&s));
	ASSERT_EQ(s.hit, counters_sum(copy, 4, LOOPS));
	return s;
}

static void start_4_threads(void)
{
	for (unsigned int i = 0; i < 4; i++)
		start_beside(run_loop, i);
}

TEST_F_TIMEOUT(session, has_snapshots_that_agree_with_its_statistics, 120)
{
	u32 last[LOOPS] = {};
	struct profil_stats s;

	open_session(page);
	start_4_threads();
	for (unsigned int i = 0; i < 60 || s.hit < 200; i++) {
		s = snapshot(_metadata, 0);
		ASSERT_EQ((u32)PROFIL_STATE_ON, s.state);
		for (unsigned int j = 0; j < LOOPS; j++)
			ASSERT_LE(last[j], copy[j]);
		memcpy(last, copy, sizeof(last));
		ASSERT_GT(20000U, i);
	}
	stop_beside();
	s = DISABLE_EXACT(page);
	dropped_here(_metadata, &s);
	/* The same holds for a disabled session. */
	EXPECT_EQ((u32)PROFIL_STATE_OFF, snapshot(_metadata, 0).state);
}

TEST_F_TIMEOUT(session, loses_no_tick_in_snapshots_that_reset, 120)
{
	struct profil_range witness = range_of_loops(other, 4);
	u64 total[LOOPS] = {}, hit = 0, ticks = 0, uncounted = 0, most = 0;
	struct profil_stats s, w;
	unsigned int rounds, j;

	/* The loops run only while both sessions are on. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &witness, 1));
	open_session(page);
	start_4_threads();
	for (rounds = 0; rounds < 60 || hit < 200; rounds++) {
		s = snapshot(_metadata, PROFIL_SNAPSHOT_RESET);
		for (j = 0; j < LOOPS; j++)
			total[j] += copy[j];
		hit += s.hit;
		ticks += s.ticks;
		uncounted += dropped_here(_metadata, &s);
		if (s.ticks > most)
			most = s.ticks;
		ASSERT_GT(20000U, rounds);
	}
	stop_beside();
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &w));
	EXPECT_EXACT(s, page);
	EXPECT_EXACT(w, other);
	/* On a busy host many ticks can occur during one snapshot; dropped ticks are reported. */
	uncounted += dropped_here(_metadata, &s);
	TH_LOG("%llu ticks, %llu at most in one of %u", (unsigned long long)(ticks + s.ticks),
	       (unsigned long long)most, rounds);
	EXPECT_EQ(hit + s.hit + uncounted, w.hit);
	EXPECT_GE(w.ticks + w.unselected, ticks + s.ticks);
	EXPECT_GT(hit / 10, uncounted);
	for (j = 0; j < LOOPS; j++) {
		EXPECT_GE(other[j], total[j] + page[j]);
		uncounted -= other[j] - (total[j] + page[j]);
	}
	EXPECT_EQ(0U, uncounted);
}

TEST_F(session, can_be_reset_without_a_copy)
{
	const struct profil_copy none = { addr(page), 0, 4 * LOOPS };
	struct profil_stats s;

	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 20));
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &none, 1, NULL));
	s = stats_now();
	EXPECT_GT(20U, s.ticks);
	EXPECT_EQ(PAGE, s.locked);
	EXPECT_EQ(1U, s.targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	s = DISABLE_EXACT(page);
	EXPECT_LE(5U, s.ticks);

	/* Only the statistics, of a disabled session. */
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, NULL, 0, NULL));
	s = stats_now();
	EXPECT_EQ(0U, s.ticks + s.unselected + s.missed + s.expected);
	EXPECT_TRUE(accounted(&s));
}

/* A tool reads the counters after its target exited. @removed: the buffer is unpinned, too. */
static void copy_and_reset(struct __test_metadata *_metadata, bool removed)
{
	const struct profil_copy all = { addr(page), addr(copy), sizeof(copy) };
	struct profil_stats s;

	fd = must_enable(must_open());
	EXPECT_EQ(0, status_of(spawn_counted(join_and_burn)));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(PAGE, stats_now().locked);
	if (removed)
		EXPECT_TRUE(await(returns_buffers(fd)));
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &all, 1, &s));
	EXPECT_EXACT(s, copy);
	EXPECT_LT(0U, s.hit);
	EXPECT_EQ(0U, counters_sum(page, 4, PAGE / 4));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0U, s.ticks);
}

TEST_F_CALL(session, can_be_copied_and_reset_after_its_ranges_are_gone,
	    copy_and_reset(_metadata, false))
TEST_F_CALL(session, can_be_copied_and_reset_after_its_buffers_are_unpinned,
	    copy_and_reset(_metadata, true))

TEST_F(session, is_not_reset_if_the_copy_fails)
{
	struct profil_copy bad[] = {
		{ addr(page), addr(copy), 4 * LOOPS },
		{ 16, addr(copy), 4 * LOOPS },
	};
	struct profil_stats s;

	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	/* Unknown counters; a destination that cannot be written. */
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	bad[1] = (struct profil_copy) { addr(page), 8, 4 * LOOPS };
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	bad[1] = (struct profil_copy) { addr(page), addr(copy), 3 };
	EXPECT_EQ(-EINVAL, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	s = DISABLE_EXACT(page);
	EXPECT_LE(20U, s.ticks);
}

#ifdef HAVE_TAGS
TEST_F(session, is_copied_and_reset_through_tagged_addresses)
{
	const u64 tag = 0x5aULL << 56;
	const struct profil_copy copies[] = {
		{ addr(page) | tag, addr(copy) | tag, sizeof(copy) },
	};
	struct profil_stats s;

	SKIP_IF(!tags_enable(), "no tagged addresses here");
	open_session(page);
	ASSERT_TRUE(descriptor_burn(fd, 0, 20));
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, copies, 1, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(1U, s.hit);
	EXPECT_EQ(s.hit, counters_sum(copy, 4, LOOPS));
	s = DISABLE_EXACT(page);
}
#endif

TEST_HARNESS_MAIN
