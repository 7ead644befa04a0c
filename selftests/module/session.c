// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: open, share and close the descriptor, enable and count, end
 */
#include "session.h"

/*
 * The descriptor is the session
 */

TEST_F(session, starts_disabled_without_targets_or_ranges)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s, none = { .size = sizeof(none) };

	ASSERT_OPEN(fd, 0);
	loop_spend(0, 10, tick_ns());
	s = stats_now();
	EXPECT_EQ(0, memcmp(&none, &s, sizeof(s)));
	EXPECT_EQ(locked, pinned_bytes());

	/* This address space has no target of the session yet. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	EXPECT_EQ(-ESRCH, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, 1));
	EXPECT_EQ(-ESRCH, descriptor_remove(fd, UINT64_MAX, 0, 1));

	/* It is on, but has no target. */
	ASSERT_EQ(0, descriptor_enable(fd));
	loop_spend(0, 10, tick_ns());
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(0U, s.ticks + s.unselected);
	EXPECT_EQ(0U, s.targets);
}

TEST_F(session, has_a_descriptor_that_exec_closes)
{
	ASSERT_OPEN(fd, 0);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

/* Checks that nothing counts loop 0 any more. */
static void expect_no_count(struct __test_metadata *_metadata)
{
	u32 counted = page[0];

	EXPECT_TRUE(await(pinned_bytes() == locked));
	EXPECT_TRUE(await(module_users() <= users));
	loop_spend(0, 10, tick_ns());
	EXPECT_EQ(counted, page[0]);
}

TEST_F(session, ends_when_its_descriptor_is_closed)
{
	open_session(page);
	EXPECT_TRUE(module_is_built_in() || module_users() > users);
	EXPECT_EQ(locked + PAGE, pinned_bytes());
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_LT(0U, page[0]);
	close_session();
	expect_no_count(_metadata);
}

TEST_F(session, continues_while_a_copy_of_its_descriptor_is_open)
{
	int original;

	open_session(page);
	original = fd;
	fd = dup(original);
	close(original);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_LE(10U, DISABLE_EXACT(page).ticks);
	EXPECT_EQ(locked + PAGE, pinned_bytes());
}

static int hold(void)
{
	shared->step = 1;
	return step_is(2) ? 0 : 1;
}

TEST_F(session, continues_while_a_child_has_its_descriptor)
{
	u32 counted;
	pid_t child;

	open_session(page);
	child = spawn(hold);
	ASSERT_TRUE(step_is(1));
	close_session();
	counted = page[0];
	EXPECT_TRUE(loop_until(0, page[0] >= counted + 5));
	EXPECT_EQ(locked + PAGE, pinned_bytes());
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
	expect_no_count(_metadata);
}

static int ends[2];

static int receive_and_hold(void)
{
	fd = receive_fd(ends[1]);
	shared->stats = stats_now();
	return hold();
}

TEST_F(session, can_be_sent_to_another_process)
{
	u32 counted;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	child = spawn(receive_and_hold);
	open_session(page);
	ASSERT_EQ(0, send_fd(ends[0], fd));
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ((u32)PROFIL_STATE_ON, shared->stats.state);
	EXPECT_EQ(1U, shared->stats.targets);
	close_session();
	counted = page[0];
	EXPECT_TRUE(loop_until(0, page[0] >= counted + 5));
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
}

TEST_F(session, counts_only_while_it_is_enabled)
{
	struct profil_stats s, then;

	open_session(page);
	EXPECT_EQ(-EBUSY, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(-EBUSY, descriptor_enable(fd));
	then = DISABLE_EXACT(page);
	EXPECT_EQ((u32)PROFIL_STATE_OFF, then.state);
	EXPECT_LE(5U, then.ticks);

	EXPECT_EQ(-EINVAL, descriptor_disable(fd, &s));
	EXPECT_EQ(-EINVAL, descriptor_disable(fd, NULL));
	loop_spend(0, 20, tick_ns());
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_OFF, s.state);
	EXPECT_EQ(then.ticks + then.unselected, s.ticks + s.unselected);
	EXPECT_EQ(then.expected, s.expected);
	EXPECT_EQ(1U, s.targets);
	EXPECT_EQ(PAGE, s.locked);
	EXPECT_EXACT(s, page);

	/* The statistics continue. */
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	s = DISABLE_EXACT(page);
	EXPECT_LE(then.ticks + 5, s.ticks);
}

TEST_F(session, counts_exactly_in_counters_of_any_width)
{
	struct profil_range range;
	struct profil_stats s;

	for (u32 width = 2; width <= 8; width *= 2) {
		memset(page, 0, sizeof(page));
		range = range_of_loops(page, width);
		fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, &range, 1);
		for (unsigned int loop = 0; loop < LOOPS; loop++)
			EXPECT_TRUE(loop_until(loop, counter(page, width, loop) >= 3));
		ASSERT_DISABLE(fd, &s);
		EXPECT_LE(3 * LOOPS, s.hit);
		EXPECT_EQ(s.hit, counters_sum(page, width, LOOPS));
		EXPECT_EQ(s.hit, counters_sum(page, width, PAGE / width));
		close_session();
	}
}

TEST_F(session, counts_user_ticks_or_system_ticks_or_both)
{
	struct profil_range range = range_all(page, 1, 4);
	struct profil_stats s;

	for (u32 modes = 1; modes <= MODES_ALL; modes++) {
		page[0] = 0;
		fd = must_sample(must_open(.modes = modes), PROFIL_SCOPE_PROCESS, &range, 1);
		/* Ticks in user mode and in system mode */
		EXPECT_TRUE(loop_until(0, ({
			for (unsigned int i = 0; i < 80; i++)
				pinned_bytes();
			s = stats_now();
			modes == MODES_ALL ? s.user >= 10 && s.system >= 10 :
					     s.ticks >= 10 && s.unselected >= 10;
		})));
		ASSERT_DISABLE(fd, &s);
		EXPECT_LE(10U, s.ticks);
		EXPECT_EQ(s.ticks, s.hit);
		EXPECT_EQ(s.hit, page[0]);
		EXPECT_EQ(!(modes & PROFIL_MODE_USER), !s.user);
		EXPECT_EQ(!(modes & PROFIL_MODE_SYSTEM), !s.system);
		EXPECT_EQ(modes == MODES_ALL, !s.unselected);
		close_session();
	}
}

/*
 * The end
 */

/* Runs in the child that creates a session for its parent. */
static int create_and_end(bool exec)
{
	struct profil_range range = range_of_loops(page, 4);

	fd = must_open(.exec = PROFIL_EXEC_FOLLOW);
	MUST(!send_fd(ends[1], fd) && step_is(1));
	MUST(!descriptor_add(fd, shared->space, &range, 1) && !descriptor_enable(fd));
	shared->step = 2;
	MUST(step_is(3));
	shared->page[0] = page[0];
	if (exec)
		execve(SELF, new_argv, new_envp);
	return 0;
}

static void outlive_creator(struct __test_metadata *_metadata, bool exec)
{
	struct profil_stats s, later;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	child = SPAWN(create_and_end(exec));
	fd = receive_fd(ends[0]);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	shared->step = 1;
	ASSERT_TRUE(step_is(2));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_LT(0U, s.hit);
	shared->step = 3;
	EXPECT_TRUE(await(stats_now().state == PROFIL_STATE_ENDED));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_END_CREATOR, s.end);
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(10U, s.ticks);
	/* The session counts until the creator's address space is released. */
	EXPECT_LE(shared->page[0], s.hit);
	EXPECT_EQ(0U, s.locked);

	loop_spend(0, 20, tick_ns());
	later = stats_now();
	EXPECT_EQ(s.ticks + s.unselected, later.ticks + later.unselected);
	EXPECT_EQ(s.hit, later.hit);
	EXPECT_EQ(-ENODEV, descriptor_enable(fd));
	EXPECT_EQ(exec ? 128 + SIGKILL : 0, exec ? killed(child) : status_of(child));
}

TEST_F_CALL(session, ends_when_its_creator_exits, outlive_creator(_metadata, false))
TEST_F_CALL(session, ends_when_its_creator_execs, outlive_creator(_metadata, true))

TEST_F(session, continues_when_its_buffer_is_unmapped)
{
	struct profil_stats s, later;
	u32 copy[LOOPS];
	struct profil_copy all = { 0, addr(copy), sizeof(copy) };
	void *buffer = map_private(PAGE);

	open_session(buffer);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, munmap(buffer, PAGE));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_LOCKED(PAGE);
	/* The session does not count in new memory at the same address. */
	ASSERT_EQ(buffer, mmap(buffer, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, descriptor_disable(fd, &later));
	EXPECT_EQ((u32)PROFIL_END_NONE, later.end);
	EXPECT_LT(s.hit, later.hit);
	EXPECT_EQ(0U, counters_sum(buffer, 4, PAGE / 4));
	/* A snapshot contains all counts. */
	all.from = addr(buffer);
	ASSERT_EQ(0, descriptor_snapshot(fd, 0, &all, 1, NULL));
	EXPECT_EXACT(later, copy);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	EXPECT_EQ(locked, pinned_bytes());
	ASSERT_EQ(0, descriptor_snapshot(fd, 0, &all, 1, NULL));
	EXPECT_EQ(0U, counters_sum(copy, 4, LOOPS));
}

TEST_HARNESS_MAIN
