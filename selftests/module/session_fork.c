// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: targets that fork
 */
#include "session.h"

/* Runs loop @i until the session has @n more hits. */
static bool burn_hits(unsigned int i, u64 n)
{
	u64 until = stats_now().hit + n;

	return loop_until(i, stats_now().hit >= until);
}

/* Runs loop 0, whose counter is in the private memory of the session's creator. */
static int hit_in_0(void)
{
	u32 held = count_of(0);

	MUST(burn_hits(0, 5));
	return count_of(0) == held ? 0 : 50;
}

TEST_F(session, shared_by_fork_counts_children_in_all_ranges_of_the_parent)
{
	struct profil_range ranges[2] = {
		range_of_loop(0, &page[0]), range_of_loop(1, &shared->page[1]),
	};
	struct profil_stats s;
	u32 counted;

	fd = must_sample(must_open(.fork = PROFIL_FORK_SHARE), PROFIL_SCOPE_PROCESS, ranges, 2);
	EXPECT_TRUE(loop_until(0, count_of(0) >= 5));
	counted = count_of(0);
	EXPECT_CHILD({
		pid_t grandchild;

		MUST(!hit_in_0());
		MUST(loop_until(1, *(volatile u32 *)&shared->page[1] >= 2));
		grandchild = FORK({
			MUST(burn_outside(2, 5));
			MUST(loop_until(1, *(volatile u32 *)&shared->page[1] >= 5));
			MUST(!hit_in_0());
		});
		shared->stats = stats_now();
		MUST(!status_of(grandchild));
	});
	EXPECT_EQ(3U, shared->stats.targets);
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_LE(counted + 10, count_of(0));
	counted = count_of(0);
	EXPECT_TRUE(loop_until(0, count_of(0) >= counted + 3));
	EXPECT_EQ(2 * PAGE, stats_now().locked);
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(s.hit, page[0] + shared->page[1]);
	EXPECT_LE(5U, s.outside);
}

/* Runs loop 2. Checks that its ticks are not counted in this process's copy of the buffer. */
static int burn_2(void)
{
	u32 held = count_of(2);

	MUST(burn_hits(2, 10));
	return count_of(2) == held ? 0 : 55;
}

TEST_F(session, shared_by_fork_counts_exactly_in_the_creators_memory)
{
	struct profil_stats s;
	pid_t child[2];

	fd = count_loops(must_open(.fork = PROFIL_FORK_SHARE), page);
	child[0] = spawn(burn_2);
	child[1] = spawn(burn_2);
	EXPECT_TRUE(loop_until(0, count_of(0) >= 10));
	EXPECT_EQ(0, status_of(child[0]));
	EXPECT_EQ(0, status_of(child[1]));
	s = DISABLE_EXACT(page);
	EXPECT_LE(10U, page[0]);
	EXPECT_LE(1U, page[2]);
	EXPECT_EQ(s.hit, page[0] + page[2]);
	EXPECT_EQ(locked + PAGE, pinned_bytes());
}

TEST_F(session, shared_by_fork_has_no_range_in_the_child_that_the_parent_gets_later)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t child;

	fd = must_sample(must_open(.fork = PROFIL_FORK_SHARE), PROFIL_SCOPE_PROCESS, NULL, 0);
	child = SPAWN(({ shared->step = 1; !step_is(2) || !burn_outside(2, 10); }));
	ASSERT_TRUE(step_is(1));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	shared->step = 2;
	EXPECT_TRUE(loop_until(0, count_of(0) >= 3));
	EXPECT_EQ(0, status_of(child));
	s = DISABLE_EXACT(page);
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_LE(10U, s.outside);
}

/* The session of the forking thread continues in the first thread of the child. */
TEST_F(session, of_a_forking_thread_follows_the_childs_first_thread)
{
	struct profil_range range = range_of_loops(shared->page, 4);
	struct profil_stats s;

	fd = must_sample(must_open(.fork = PROFIL_FORK_SHARE), PROFIL_SCOPE_THREAD, &range, 1);
	EXPECT_CHILD({
		start_beside(run_loop, 1);
		MUST(loop_until(2, *(volatile u32 *)&shared->page[2] >= 10));
		MUST(!shared->page[1]);
	});
	s = DISABLE_EXACT(shared->page);
	EXPECT_EQ(s.hit, shared->page[2]);
}

static int join_when_told(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (shared->step < 1)
		loop_run(1, LOOP_BURST);
	MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	shared->step = 2;
	while (shared->step < 3)
		loop_run(1, LOOP_BURST);
	return 0;
}

/* Each child is one more target, and no fork is lost. */
static int is_one_target_more(void)
{
	struct profil_stats s = stats_now();

	MUST(s.targets == shared->stats.targets + 1 && !s.unfollowed);
	return hit_in_0();
}

/* The thread forks while a process that shares its memory is a target as well, and later. */
TEST_F(session, of_a_thread_and_a_process_in_one_address_space_follows_a_fork_once)
{
	struct profil_range range = range_of_loops(page, 4);
	pid_t beside;

	fd = must_open(.fork = PROFIL_FORK_SHARE);
	beside = clone_vm(join_when_told, 0, NULL);
	child_note(beside);
	must_sample(fd, PROFIL_SCOPE_THREAD, &range, 1);
	shared->step = 1;
	ASSERT_TRUE(step_is(2));
	shared->stats = stats_now();
	EXPECT_EQ(2U, shared->stats.targets);
	EXPECT_EQ(0, status_of(spawn(is_one_target_more)));
	shared->step = 3;
	EXPECT_EQ(0, status_of(beside));
	EXPECT_TRUE(await(stats_now().targets == 1));
	shared->stats = stats_now();
	EXPECT_EQ(0, status_of(spawn(is_one_target_more)));
}

TEST_F(session, with_FORK_OFF_does_not_sample_the_child)
{
	struct profil_stats s, then;
	u64 before, parent;

	fd = count_loops(must_open(.exec = PROFIL_EXEC_FOLLOW), shared->page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	then = stats_now();
	before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	EXPECT_CHILD({
		/* The child gets ticks, as the session that it starts shows. */
		MUST(!session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0));
		MUST(loop_burn(PROFIL_SCOPE_PROCESS, 3, 40));
		MUST(stats_now().targets == 1);
	});
	s = stats_now();
	/* On a debug kernel, the fork itself takes many ticks. */
	parent = (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / tick_ns();
	EXPECT_GT(then.ticks + parent + 20, s.ticks);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	s = DISABLE_EXACT(shared->page);
	EXPECT_EQ(0U, shared->page[3]);
	EXPECT_EQ(1U, s.targets);
}

TEST_HARNESS_MAIN
