// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: threads as targets, and several sessions of one task
 */
#include "session.h"

TEST_F(session, of_one_thread_does_not_count_the_others)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;

	start_beside(run_loop, 1);
	ASSERT_TRUE(await(thread_id));
	for (unsigned int i = 0; i < 2; i++) {
		memset(page, 0, sizeof(page));
		ASSERT_OPEN(fd, 0);
		/* First this thread, as 0, then the other thread by its id. */
		ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, i ? thread_id : 0, NULL));
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_enable(fd));
		EXPECT_TRUE(loop_until(0, count_of(i) >= 10));
		s = DISABLE_EXACT(page);
		EXPECT_EQ(s.hit, page[i]);
		EXPECT_EQ(1U, s.targets);
		close_session();
	}
	stop_beside();
}

TEST_F(session, of_a_process_counts_existing_and_new_threads)
{
	start_beside(run_loop, 1);
	open_session(page);
	start_beside(run_loop, 2);
	EXPECT_TRUE(await(count_of(1) >= 5 && count_of(2) >= 5));
	stop_beside();
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(1U, DISABLE_EXACT(page).targets);
}

/* Each worker has its own session, which counts in its own page. */
static struct worker {
	int fd;
	struct profil_stats stats;
	u32 page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
} workers[4];

static void *count_alone(void *i)
{
	struct worker *w = &workers[(uintptr_t)i];
	struct profil_range range = range_of_loops(w->page, 4);

	w->fd = must_sample(must_open(), PROFIL_SCOPE_THREAD, &range, 1);
	MUST(descriptor_burn(w->fd, (uintptr_t)i, 20));
	return NULL;
}

TEST_F(session, of_each_thread_is_exact_beside_one_of_the_process)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1));
	in_threads(ARRAY_SIZE(workers), count_alone);
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_EXACT(s, page);

	for (unsigned int i = 0; i < ARRAY_SIZE(workers); i++) {
		struct worker *w = &workers[i];

		/* The ranges end with the thread; the session continues. */
		EXPECT_TRUE(await(!descriptor_stats(w->fd, &w->stats) && !w->stats.targets));
		EXPECT_EQ((u32)PROFIL_STATE_ON, w->stats.state);
		EXPECT_EQ(PAGE, w->stats.locked);
		EXPECT_TRUE(await(returns_buffers(w->fd)));
		EXPECT_EQ(-ESRCH, descriptor_add(w->fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_disable(w->fd, &w->stats));
		EXPECT_LE(20U, w->stats.ticks);
		EXPECT_EXACT(w->stats, w->page);
		EXPECT_EQ(w->stats.hit, w->page[i]);
		EXPECT_EQ(page[i], w->page[i]);
		close(w->fd);
	}
}

TEST_F(session, is_exact_beside_three_others_of_the_same_task)
{
	static u32 pages[4][PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	struct profil_range ranges[4];
	struct profil_stats s[4];
	unsigned int i;
	int tool;

	for (i = 0; i < 4; i++)
		ranges[i] = range_of_loops(pages[i], 4);
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &ranges[0], 1));
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &ranges[1], 1));
	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, &ranges[2], 1);
	tool = must_sample(must_open(), PROFIL_SCOPE_THREAD, &ranges[3], 1);
	EXPECT_EQ(locked + 4 * PAGE, pinned_bytes());

	for (i = 0; i < LOOPS; i++)
		EXPECT_TRUE(descriptor_burn(tool, i, 5));

	ASSERT_EQ(0, descriptor_disable(tool, &s[3]));
	ASSERT_EQ(0, descriptor_disable(fd, &s[2]));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &s[1]));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s[0]));
	for (i = 0; i < 4; i++) {
		EXPECT_LE(5 * LOOPS, s[i].ticks);
		EXPECT_EXACT(s[i], pages[i]);
		EXPECT_EQ(0, memcmp(pages[0], pages[i], sizeof(pages[0])));
	}
	close(tool);
}

TEST_HARNESS_MAIN
