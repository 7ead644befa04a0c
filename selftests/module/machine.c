// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions that sample the machine: every process, those that run already and those that start
 * later. They need CAP_PERFMON, so most tests need root.
 *
 * A child runs a loop of its own number, so that a record shows which child was sampled.
 */
#include "fixture.h"

#include "program.h"
#include "records.h"

#define MACHINE		PROFIL_SCOPE_MACHINE
#define ENOUGH		65536	/* records */
#define MAX_MACHINE	4	/* sessions */

/* Creates processes that end in different ways, until the parent has seen enough. */
static int run_short_programs(void)
{
	unsigned int kind;
	pthread_t thread;
	pid_t child;

	while (!shared->step) {
		/* The other process counts, too: a child of vfork() must not look again. */
		kind = shared->count % 4;
		child = kind ? fork() : vfork();
		if (!child && kind == 1) {
			/* An exec by a thread that is not the first replaces the leader. */
			pthread_create(&thread, NULL, exec_new_program, NEW_PROGRAM "=exit");
			pthread_exit(NULL);
		}
		if (!child && kind == 2)
			_exit((loop_run(3, LOOP_BURST), 0));
		if (!child)
			exec_new_program(NEW_PROGRAM "=exit");
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 1;
		shared->count++;
	}
	return 0;
}

/* A child that takes memory, so that its exit takes long */
static pid_t spawn_slow_exit(void)
{
	return SPAWN((grow(16), 0));
}

static void open_machine(u32 modes, u32 nr_records, u64 period)
{
	fd = must_sample(must_open(.modes = modes, .nr_records = nr_records, .period = period),
			 MACHINE, NULL, 0);
}

/* Counts the records of @pid in user mode in loop @i. *@space: set to the space of the last. */
static unsigned int ticks_of(pid_t pid, unsigned int i, u64 *space)
{
	unsigned int n = 0;

	for_each_record(r) {
		if (r->pid != pid || r->flags & PROFIL_RECORD_SYSTEM ||
		    !in_loop(r, addr(loops_text), i))
			continue;
		*space = r->space;
		n++;
	}
	return n;
}

#define READ_UNTIL(cond) await(({ read_all(); (cond); }))

static bool is_user_address(u64 a)
{
	return !(a >> 56);
}

FIXTURE(machine) {
};

FIXTURE_VARIANT(machine) {
	u64 period;
};

FIXTURE_VARIANT_ADD(machine, tick) { .period = 0 };
FIXTURE_VARIANT_ADD(machine, clock) { .period = 1000000 };

FIXTURE_SETUP(machine)
{
	sessions_setup(_metadata);
}

/* No record may contain a kernel address. */
FIXTURE_TEARDOWN(machine)
{
	sessions_teardown(_metadata);
	for_each_record(r) {
		EXPECT_TRUE(is_user_address(r->pc));
		EXPECT_TRUE(is_user_address(r->start));
		EXPECT_TRUE(is_user_address(r->end - 1) || !r->end);
	}
}

TEST_F(machine, samples_processes_that_run_already_and_new_ones)
{
	u64 space[2] = {};
	pid_t child[2];

	NEED_ROOT("for CAP_PERFMON");
	child[0] = SPAWN(!loop_for_ever((void *)1));
	open_machine(MODES_ALL, ENOUGH, variant->period);
	child[1] = SPAWN(!loop_for_ever((void *)1));
	EXPECT_TRUE(READ_UNTIL(ticks_of(child[0], 1, &space[0]) >= 10 &&
			       ticks_of(child[1], 1, &space[1]) >= 10));
	EXPECT_NE(space[0], space[1]);
}

TEST_F(machine, distinguishes_the_programs_of_a_process)
{
	u64 before = 0, after = 0;
	unsigned int n;
	pid_t child;

	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, ENOUGH, variant->period);
	child = SPAWN(({
		while (!shared->step)
			loop_run(2, LOOP_BURST);
		!exec_new_program(NEW_PROGRAM "=loop");
	}));
	EXPECT_TRUE(READ_UNTIL(ticks_of(child, 2, &before) >= 10));
	shared->step = 1;
	/* The new program has the name of the link, and may be at another address. */
	EXPECT_TRUE(READ_UNTIL(({
		n = records_where(r, r->pid == child && !strcmp(r->comm, "exe") &&
				  !(r->flags & PROFIL_RECORD_SYSTEM) && (after = r->space));
		n >= 10 || (preempt_rt() && n);
	})));
	EXPECT_NE(before, after);
}

TEST_F(machine, has_one_number_for_all_threads_of_a_process)
{
	u64 space[2] = {};
	pid_t child;

	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, ENOUGH, variant->period);
	child = SPAWN((start_beside(loop_for_ever, 4), !loop_for_ever((void *)5)));
	EXPECT_TRUE(READ_UNTIL(ticks_of(child, 4, &space[0]) >= 10 &&
			       ticks_of(child, 5, &space[1]) >= 10));
	EXPECT_EQ(space[0], space[1]);
}

TEST_F(machine, counts_the_same_ticks_as_another_session)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	u64 space;
	int other;

	NEED_ROOT("for CAP_PERFMON");
	other = must_sample(must_open(.modes = PROFIL_MODE_USER, .period = variant->period),
			    PROFIL_SCOPE_PROCESS, &range, 1);
	open_machine(MODES_ALL, ENOUGH, variant->period);
	EXPECT_TRUE(loop_until(3, count_of(3) >= 25));
	ASSERT_DISABLE(other, &s);
	EXPECT_EQ(s.hit, page[3]);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0, read_all());
	/* Each session has a clock of its own. */
	if (!variant->period)
		EXPECT_EQ(page[3], ticks_of(getpid(), 3, &space));
	EXPECT_LE(20U, ticks_of(getpid(), 3, &space));
	close(other);
}

TEST_F(machine, accounts_for_each_tick)
{
	struct profil_stats s, later;
	pid_t child;

	NEED_ROOT("for CAP_PERFMON");
	child = SPAWN(!loop_for_ever((void *)1));
	open_machine(PROFIL_MODE_USER, ENOUGH, variant->period);
	EXPECT_TRUE(descriptor_burn(fd, 0, 40));
	ASSERT_EQ(0, descriptor_stats(fd, &s));
	EXPECT_EQ(1U, s.targets);
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0, read_all());
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.ticks, s.user);
	EXPECT_EQ(s.ticks, s.outside + s.dropped_record);
	EXPECT_EQ(s.outside, nr);
	EXPECT_EQ(s.expected, s.ticks + s.unselected + s.missed);
	EXPECT_EQ(0U, records_where(r, r->flags & PROFIL_RECORD_SYSTEM));
	/* Nothing is counted while the session is off. */
	loop_spend(0, 5, tick_ns());
	ASSERT_EQ(0, descriptor_stats(fd, &later));
	EXPECT_EQ(s.ticks, later.ticks);
	killed(child);
}

TEST_F(machine, without_records_ticks_are_outside)
{
	struct profil_stats s;

	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, 0, variant->period);
	for (unsigned int i = 0; i < 4; i++)
		ASSERT_EQ(0, status_of(spawn_slow_exit()));
	EXPECT_TRUE(descriptor_burn(fd, 0, 20));
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(s.ticks, s.outside + s.dropped_exec + s.dropped_exit);
	EXPECT_LE(20U, s.outside);
}

TEST_F(machine, records_ticks_in_exit)
{
	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, ENOUGH, variant->period);
	EXPECT_TRUE(READ_UNTIL(status_of(spawn_slow_exit()) ||
			       records_where(r, r->flags & PROFIL_RECORD_EXIT) >= 5));
	for_each_record(r) {
		EXPECT_LT(0, r->pid);
		EXPECT_LT(0, r->tid);
		if (r->flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT)) {
			EXPECT_EQ(0U, r->pc);
			EXPECT_NE(0U, r->flags & PROFIL_RECORD_SYSTEM);
		}
	}
}

TEST_F(machine, can_be_attached_to_an_enabled_session)
{
	u64 space;

	NEED_ROOT("for CAP_PERFMON");
	fd = must_enable(must_open(.nr_records = ENOUGH, .period = variant->period));
	ASSERT_EQ(0, descriptor_attach(fd, MACHINE, 0, NULL));
	EXPECT_TRUE(loop_until(6, ({ read_all(); ticks_of(getpid(), 6, &space) >= 10; })));
}

TEST_F(machine, ends_with_its_creator)
{
	const struct profil_open open = { .nr_records = 16, .period = variant->period };
	pid_t creator;

	NEED_ROOT("for CAP_PERFMON");
	creator = spawn_creator(open);
	must_sample(fd, MACHINE, NULL, 0);
	/* One session has one machine. */
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, MACHINE, 0, NULL));
	shared->step = 1;
	EXPECT_EQ(0, status_of(creator));
	EXPECT_TRUE(await(read_all() == 1));
	EXPECT_EQ(-ENODEV, descriptor_attach(fd, MACHINE, 0, NULL));
}

/* Returns 0 if the caller cannot sample the machine. */
static int is_refused(void)
{
	return descriptor_attach(must_open(), MACHINE, 0, NULL) != -EPERM;
}

TEST_F(machine, can_be_read_and_turned_off_by_any_process_with_a_copy_of_the_descriptor)
{
	struct profil_stats s;
	u64 space;

	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, ENOUGH, variant->period);
	EXPECT_CHILD({
		MUST(!setresuid(USER, USER, USER) && !is_refused());
		MUST(loop_until(5, ({ read_all(); ticks_of(getpid(), 5, &space) >= 5; })));
		MUST(!descriptor_disable(fd, &s) && accounted(&s));
		must_enable(fd);
	});
}

/* Sessions begin and end, read or unread, while processes exec, exit and lose their leader. */
TEST_F_TIMEOUT(machine, survives_processes_that_exec_and_exit, 300)
{
	const u32 in_kernel = PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT;
	struct profil_stats s;
	pid_t storm[2];

	NEED_ROOT("for CAP_PERFMON");
	for (unsigned int i = 0; i < 2; i++)
		storm[i] = spawn(run_short_programs);
	for (unsigned int i = 0; shared->count < 40 || i < 12; i++) {
		open_machine(MODES_ALL, i % 3 ? ENOUGH : 16, i % 2 ? variant->period : 0);
		ASSERT_TRUE(descriptor_burn(fd, 0, 10));
		if (i % 4)
			ASSERT_EQ(0, read_all());
		ASSERT_EQ(0, descriptor_disable(fd, &s));
		ASSERT_TRUE(accounted(&s));
		ASSERT_EQ(s.ticks, s.outside + s.dropped_record);
		close(fd);
	}
	shared->step = 1;
	for (unsigned int i = 0; i < 2; i++)
		EXPECT_EQ(0, status_of(storm[i]));
	for_each_record(r) {
		EXPECT_LE(0, r->pid);
		EXPECT_EQ(0U, r->flags & in_kernel ? r->pc : 0);
	}
}

TEST_F(machine, is_the_only_target)
{
	struct profil_range range = range_of_loops(page, 4);

	NEED_ROOT("for CAP_PERFMON");
	open_machine(MODES_ALL, 0, variant->period);
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, MACHINE, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-ESRCH, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	close(fd);
	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, MACHINE, 0, NULL));
}

TEST_F(machine, refuses_wrong_arguments)
{
	struct profil_range range = range_of_loops(page, 4);

	NEED_ROOT("for CAP_PERFMON");
	ASSERT_OPEN(fd, 0);
	EXPECT_EQ(-EINVAL, descriptor_attach(fd, MACHINE, getpid(), NULL));
	EXPECT_EQ(-EOPNOTSUPP, descriptor_attach(fd, MACHINE + 1, 0, NULL));
	EXPECT_EQ(-EOPNOTSUPP, session_start(MACHINE, 0, &range, 1));
}

TEST_F(machine, is_sampled_by_at_most_4_sessions)
{
	int others[MAX_MACHINE], i;

	NEED_ROOT("for CAP_PERFMON");
	for (i = 0; i < MAX_MACHINE; i++) {
		open_machine(MODES_ALL, 0, variant->period);
		others[i] = fd;
	}
	fd = must_open(.period = variant->period);
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, MACHINE, 0, NULL));
	/* The session that failed is as before, and gets the place of one that ends. */
	close(others[0]);
	EXPECT_EQ(0, descriptor_attach(fd, MACHINE, 0, NULL));
	for (i = 1; i < MAX_MACHINE; i++)
		close(others[i]);
}

TEST_F(machine, needs_a_capability_in_the_initial_user_namespace)
{
	EXPECT_EQ(0, status_in_child((become_user(USER), is_refused())));
	EXPECT_EQ(0, status_in_child(unshare(CLONE_NEWUSER) || is_refused()));
}

TEST_F(machine, records_no_pid_that_the_creators_namespace_does_not_have)
{
	u64 space;

	NEED_ROOT("for CAP_PERFMON");
	SPAWN(!loop_for_ever((void *)1));
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	/* Process 1 of the namespace, where the child that runs loop 1 is not visible */
	EXPECT_CHILD({
		open_machine(MODES_ALL, ENOUGH, variant->period);
		MUST(loop_until(6, ({
			read_all();
			ticks_of(1, 6, &space) >= 5 && ticks_of(0, 1, &space) >= 5;
		})));
	});
}

TEST_HARNESS_MAIN
