// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: targets that fork
 */
#include "session.h"

static u32 other[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

static int grandchild(void)
{
	u64 outside = stats_now().outside;

	if (!loop_until(2, stats_now().outside >= outside + 5))
		return 51;
	if (!loop_until(1, *(volatile u32 *)&shared->page[1] >= 5))
		return 52;
	return count_of(1) || count_of(2) ? 53 : 0;
}

static int child_and_grandchild(void)
{
	int status;
	pid_t pid;

	/* The parent has ranges for loops 0 and 1; its child and grandchild only for loop 1. */
	if (!loop_until(1, *(volatile u32 *)&shared->page[1] >= 2))
		return 50;
	pid = spawn(grandchild);
	shared->stats = stats_now();
	status = status_of(pid);
	shared->step = 1;
	return status;
}

TEST_F(session, shared_by_fork_counts_children_in_ranges_that_they_inherit)
{
	struct profil_range ranges[2] = {
		range_of(addr(loops_text), addr(loops_text) + LOOP_SIZE, &page[0], 1, 4),
		range_of(addr(loops_text) + LOOP_SIZE, addr(loops_text) + 2 * LOOP_SIZE,
			 &shared->page[1], 1, 4),
	};
	struct profil_stats s;
	pid_t child;
	u32 counted;

	ranges[0].granule = LOOP_SIZE;
	ranges[1].granule = LOOP_SIZE;
	ranges[1].flags = PROFIL_RANGE_INHERIT;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 2));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(loop_until(0, count_of(0) >= 5));
	counted = count_of(0);
	child = spawn(child_and_grandchild);
	EXPECT_TRUE(step_is(1));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(3U, shared->stats.targets);
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_EQ(counted, count_of(0));
	EXPECT_TRUE(loop_until(0, count_of(0) >= counted + 3));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, page[0] + shared->page[1]);
	EXPECT_LE(5U, s.outside);
}

/* Runs loop 2. Checks that its ticks are not counted in this process's copy of the buffer. */
static int burn_2(void)
{
	u64 hit = stats_now().hit, held = count_of(2);

	if (!loop_until(2, stats_now().hit >= hit + 10))
		return 54;
	return count_of(2) == held ? 0 : 55;
}

TEST_F(session, shared_by_fork_counts_exactly_in_the_creators_memory)
{
	struct profil_stats s;
	pid_t child[2];

	ASSERT_EQ(0, open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, page,
				  PROFIL_RANGE_INHERIT));
	child[0] = spawn(burn_2);
	child[1] = spawn(burn_2);
	EXPECT_TRUE(loop_until(0, count_of(0) >= 10));
	EXPECT_EQ(0, status_of(child[0]));
	EXPECT_EQ(0, status_of(child[1]));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_LE(10U, page[0]);
	EXPECT_LE(1U, page[2]);
	EXPECT_EQ(s.hit, page[0] + page[2]);
	EXPECT_EQ(self->locked + PAGE, locked_bytes());
}

static int outside_only(void)
{
	u64 outside = stats_now().outside;

	return loop_until(2, stats_now().outside >= outside + 10) ? 0 : 56;
}

TEST_F(session, shared_by_fork_has_only_inherited_ranges_in_the_child)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, page, 0));
	EXPECT_EQ(0, status_of(spawn(outside_only)));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(0U, page[2]);
	EXPECT_LE(10U, s.outside);
}

/* The session of the forking thread continues in the first thread of the child. */
static int run_2_beside_1(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_loop, (void *)1))
		return 57;
	if (!loop_until(2, *(volatile u32 *)&shared->page[2] >= 10))
		return 58;
	return shared->page[1] ? 59 : 0;
}

TEST_F(session, of_a_forking_thread_follows_the_childs_first_thread)
{
	struct profil_range range = range_of_loops(shared->page, 4);
	struct profil_stats s;

	range.flags = PROFIL_RANGE_INHERIT;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_EQ(0, status_of(spawn(run_2_beside_1)));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, shared->page);
	EXPECT_EQ(s.hit, shared->page[2]);
}

static int join_when_told(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (shared->step < 1)
		loop_run(1, LOOP_BURST);
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL))
		return 70;
	shared->step = 2;
	while (shared->step < 3)
		loop_run(1, LOOP_BURST);
	return 0;
}

/* Each session of this process has charged the page of its counters. */
static int has_one_session(void)
{
	return stats_now().locked == PAGE && locked_bytes() == PAGE ? 0 : 71;
}

/* The thread forks while a process that shares its memory is a target as well, and later. */
TEST_F(session, of_a_thread_and_a_process_in_one_address_space_follows_a_fork_once)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct profil_range range = range_of_loops(page, 4);
	pid_t beside;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	beside = clone(join_when_told, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	ASSERT_LT(0, beside);
	children[0] = beside;
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	shared->step = 1;
	ASSERT_TRUE(step_is(2));
	EXPECT_EQ(2U, stats_now().targets);
	EXPECT_EQ(0, status_of(spawn(has_one_session)));
	shared->step = 3;
	EXPECT_EQ(0, status_of(beside));
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_EQ(0, status_of(spawn(has_one_session)));
}

/* The child gets ticks, as the session that it starts shows. */
static int tick_40(void)
{
	if (session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0))
		return 60;
	if (!loop_burn(PROFIL_SCOPE_PROCESS, 3, 40))
		return 61;
	return stats_now().targets == 1 ? 0 : 62;
}

TEST_F(session, with_FORK_OFF_does_not_sample_the_child)
{
	struct profil_stats s, then;
	u64 before, parent;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_FOLLOW, shared->page,
				  PROFIL_RANGE_INHERIT));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	then = stats_now();
	before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	EXPECT_EQ(0, status_of(spawn(tick_40)));
	s = stats_now();
	/* On a debug kernel, the fork itself takes many ticks. */
	parent = (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / tick_ns();
	EXPECT_GT(then.ticks + parent + 20, s.ticks);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, shared->page);
	EXPECT_EQ(0U, shared->page[3]);
	EXPECT_EQ(1U, s.targets);
}

/* A child with PROFIL_FORK_FRESH: its copy of the descriptor refers to its own session. */
static int fresh_child(void)
{
	u32 then[LOOPS], now[LOOPS];
	struct profil_range range;
	struct profil_stats s;
	unsigned int i;

	for (i = 0; i < LOOPS; i++)
		then[i] = count_of(i);
	s = stats_now();
	if (s.state != PROFIL_STATE_ON || s.ticks >= 20 || s.targets != 1)
		return 70;
	if (!descriptor_burn(fd, 2, 20))
		return 71;
	if (!await(locked_bytes() == PAGE))
		return 72;
	s = stats_now();
	if (s.locked != PAGE)
		return 73;
	if (descriptor_enable(fd) != -EBUSY)
		return 74;
	if (descriptor_disable(fd, &s) || !accounted(&s))
		return 75;
	for (i = 0; i < LOOPS; i++)
		now[i] = count_of(i) - then[i];
	if (s.hit != counters_sum(now, 4, LOOPS) || s.hit != now[2] || !now[2])
		return 76;
	/* The child is the creator of its session. */
	range = range_of(0x10000, 0x10010, other, 1, 4);
	if (descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1) || locked_bytes() != 2 * PAGE)
		return 77;
	if (descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) != 2 || locked_bytes())
		return 78;
	return 0;
}

TEST_F(session, fresh_after_fork_belongs_to_the_child)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 30));
	EXPECT_EQ(0, status_of(spawn(fresh_child)));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(1U, s.targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_LE(35U, s.ticks);
}

static int fresh_burn(void)
{
	if (!descriptor_burn(fd, 2, 20))
		return 80;
	return descriptor_disable(fd, &shared->stats) ? 81 : 0;
}

TEST_F(session, fresh_after_fork_counts_in_shared_memory_beside_the_parents)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, shared->page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	child = spawn(fresh_burn);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_TRUE(accounted(&shared->stats));
	EXPECT_EQ(s.hit, shared->page[0]);
	EXPECT_EQ(shared->stats.hit, shared->page[2]);
	EXPECT_LT(0U, shared->page[2]);
}

static int use_of_fresh(void)
{
	struct profil_stats s;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL) != -ENODEV)
		return 82;
	if (descriptor_enable(fd) != -ENODEV)
		return 83;
	return descriptor_stats(fd, &s) == -ENODEV ? 0 : 84;
}

TEST_F(session, fresh_after_fork_takes_no_target_but_the_creator)
{
	pid_t child;

	/* There is no target, so the child has no session. */
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, status_of(spawn(use_of_fresh)));
	child = spawn(run_for_ever);
	ASSERT_TRUE(step_is(1));
	/* Without a capability the error is EPERM. */
	EXPECT_EQ(geteuid() ? -EPERM : -EINVAL,
		  descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_EQ(128 + SIGKILL, killed(child));
}

static int fresh_without_buffer(void)
{
	struct profil_stats s;

	if (descriptor_stats(fd, &s) || !accounted(&s))
		return 90;
	if (s.state != PROFIL_STATE_ENDED || s.end != PROFIL_END_BUFFER)
		return 91;
	/* The descriptor does not refer to the parent's session instead. */
	if (descriptor_disable(fd, &s) != -ENODEV || descriptor_enable(fd) != -ENODEV)
		return 92;
	return locked_bytes() ? 93 : 0;
}

TEST_F(session, fresh_after_fork_can_end_in_the_child_and_continue_in_the_parent)
{
	struct profil_stats s;
	u32 *buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)buffer);
	ASSERT_EQ(0, madvise(buffer, PAGE, MADV_DONTFORK));
	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, buffer, 0));
	EXPECT_EQ(0, status_of(spawn(fresh_without_buffer)));
	EXPECT_EQ((u32)PROFIL_STATE_ON, stats_now().state);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, buffer[0]);
	EXPECT_LT(0U, s.hit);
}

TEST_HARNESS_MAIN
