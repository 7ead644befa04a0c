// SPDX-License-Identifier: GPL-2.0
/*
 * The start and the end of sessions: stop, restart, replacement, exec, exit, fork, and unloading
 * the module.
 *
 * A child runs each step that affects a process, and its exit status tells which step failed. The
 * new program after an exec is this program again: with PROFIL_NEW_PROGRAM in its environment it
 * checks its state, and exits with 0 if all is well. The counts of parent and child after a fork
 * are tested in fork.c.
 */
#include "kselftest_harness.h"

#include <spawn.h>
#include <sys/personality.h>

#include "fixture.h"

#define SELF	"/proc/self/exe"

static u32 other[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
static u32 witness[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

static char *const self_argv[] = { "lifetime", NULL };
static char *const self_envp[] = { "PROFIL_NEW_PROGRAM=1", NULL };

/* @counters: those of the loops */
static int start_in(u32 scope, u32 flags, u32 *counters)
{
	struct profil_range range = range_of_loops(counters, 4);

	return session_start(scope, flags, &range, 1);
}

static int try_start(u32 scope)
{
	return start_in(scope, 0, page);
}

/* Starts the session of the process, and runs loop 0 for @ticks of it. */
static void start(u64 ticks)
{
	MUST(!try_start(PROCESS));
	MUST(!ticks || loop_burn(PROCESS, 0, ticks));
}

/* Starts a session of the thread, too. */
static void start_both(u64 ticks)
{
	MUST(!try_start(THREAD));
	start(ticks);
}

/* Stops the session of the process. Its statistics must add up. */
static struct profil_stats stop(void)
{
	struct profil_stats s;

	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s));
	return s;
}

/* Checks that this process is not sampled, and can start a session. */
static int check_not_sampled(void)
{
	u64 before = counters_sum(page, 4, ARRAY_SIZE(page));

	MUST(is_off(PROCESS) && is_off(THREAD));
	loop_spend(0, 5, tick_ns());
	MUST(is_off(PROCESS) && is_off(THREAD));
	MUST(!pinned_bytes());
	MUST(counters_sum(page, 4, ARRAY_SIZE(page)) == before);

	memset(page, 0, sizeof(page));
	start(3);
	MUST(stop().hit == page[0]);
	return 0;
}

/*
 * Runs in the new program after exec, and checks that it has inherited nothing: its buffers are at
 * the old addresses but hold no counts, no signal is pending, and no session is on.
 */
static int check_new_program(void)
{
	const char *was = getenv("PROFIL_PAGE_WAS");
	sigset_t pending;

	MUST(!counters_sum(page, 4, ARRAY_SIZE(page)));
	MUST(!was || strtoull(was, NULL, 0) == addr(page));
	sigpending(&pending);
	for (int i = 1; i < NSIG; i++)
		MUST(sigismember(&pending, i) != 1);
	check_not_sampled();
	MUST(!counters_sum(other, 4, ARRAY_SIZE(other)));
	return 0;
}

static int exec_again(void);

__attribute__((constructor)) static void new_program(void)
{
	const char *what = getenv("PROFIL_NEW_PROGRAM");

	if (what)
		_exit(*what == '2' ? exec_again() : check_new_program());
}

FIXTURE(lifetime) {
};

FIXTURE_OF_SESSIONS(lifetime)

/*
 * Stop, restart and replacement
 */

/* The session has stayed on: it counts @ticks more of loop 0, and has lost none until its stop. */
static struct profil_stats expect_on(struct __test_metadata *_metadata, u64 ticks)
{
	struct profil_stats s;

	EXPECT_TRUE(loop_burn(PROCESS, 0, ticks));
	s = stop();
	EXPECT_EQ(s.hit, counters_sum(page, 4, ARRAY_SIZE(page)));
	return s;
}

TEST_F(lifetime, after_stop_no_counter_changes)
{
	struct profil_stats s;

	start(0);
	EXPECT_LE(locked + PAGE, pinned_bytes());
	EXPECT_TRUE(loop_burn(PROCESS, 0, 10));
	s = stop();
	EXPECT_EQ(locked, pinned_bytes());
	EXPECT_EQ(s.hit, page[0]);

	loop_spend(0, 10, tick_ns());
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_TRUE(is_off(PROCESS));
	EXPECT_EQ(-EINVAL, session_stop(PROCESS, NULL));
}

TEST_F(lifetime, statistics_of_stop_continue_those_before)
{
	struct profil_stats before, s;

	start(10);
	EXPECT_EQ(0, session_stats(PROCESS, &before));
	EXPECT_EQ(before.hit, page[0]);
	EXPECT_EQ((u32)PROFIL_STATE_ON, before.state);
	EXPECT_EQ((u32)PROFIL_END_NONE, before.end);
	EXPECT_EQ(PAGE, before.locked);
	EXPECT_TRUE(accounted(&before));
	s = expect_on(_metadata, 10);
	EXPECT_LE(before.ticks + 10, s.ticks);
	EXPECT_LE(before.expected, s.expected);
	EXPECT_LE(before.missed, s.missed);
	EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
}

TEST_F(lifetime, restarts_add_to_the_counters)
{
	struct profil_stats s;
	u64 hit = 0;

	for (unsigned int i = 0; i < 5; i++) {
		start(0);
		EXPECT_EQ(0, session_stats(PROCESS, &s));
		EXPECT_GE(2U, s.ticks) {
			TH_LOG("statistics begin anew");
		}
		EXPECT_TRUE(loop_burn(PROCESS, 0, 5));
		s = stop();
		hit += s.hit;
	}
	EXPECT_LT(5U, hit);
	EXPECT_EQ(hit, page[0]);
}

/* The first session of an address space is started while signals arrive all the time. */
TEST_F(lifetime, a_start_is_not_interrupted_by_signals)
{
	for (unsigned int i = 0; i < 40; i++) {
		EXPECT_CHILD({
			MUST(device_fd() >= 0);
			interrupt_often(50, 0);
			start(0);
		});
	}
}

static void expect_refused(struct __test_metadata *_metadata, u32 flags, int error)
{
	start(5);
	EXPECT_EQ(-error, start_in(PROCESS, flags, other));
	EXPECT_LE(10U, expect_on(_metadata, 5).ticks);
	EXPECT_EQ(0U, other[0]);
}

TEST_F_CALL(lifetime, a_second_start_is_refused_and_changes_nothing,
	    expect_refused(_metadata, 0, EBUSY))

TEST_F(lifetime, a_replacement_that_fails_changes_nothing)
{
	ASSERT_EQ(0, mprotect(other, sizeof(other), PROT_READ));
	expect_refused(_metadata, PROFIL_START_REPLACE, EFAULT);
}

/* Replaces the session for the @i-th time. */
static void replace(unsigned int i)
{
	MUST(!start_in(PROCESS, PROFIL_START_REPLACE, i % 2 ? page : other));
}

TEST_F(lifetime, a_replacement_loses_no_tick_and_counts_none_twice)
{
	struct profil_stats s, w;
	u64 hit;

	/* There need not be one to replace. */
	replace(1);
	ASSERT_EQ(0, start_in(THREAD, 0, witness));
	for (unsigned int i = 0; i < 100; i++) {
		loop_run(0, LOOP_BURST);
		replace(i);
	}
	/* The last session counts in the buffer of the first one. */
	hit = page[0];
	EXPECT_EQ(0, session_stats(PROCESS, &s));
	EXPECT_GE(2U, s.ticks);
	EXPECT_TRUE(loop_burn(PROCESS, 0, 5));
	ASSERT_STOP(THREAD, &w);
	EXPECT_EQ(hit + stop().hit, page[0]);
	EXPECT_LT(0U, other[0]);
	EXPECT_EQ(w.hit, witness[0]);
	EXPECT_EQ(w.hit, page[0] + other[0]);
}

/* The thread's own session counts the same ticks of loop 1. */
static void *witness_loop_1(void *unused)
{
	struct profil_stats s;

	MUST(!start_in(THREAD, 0, witness));
	run_loop((void *)1);
	MUST(!session_stop(THREAD, &s));
	MUST(accounted(&s) && s.hit == witness[1]);
	return unused;
}

TEST_F(lifetime, a_replacement_loses_no_tick_of_a_running_thread)
{
	u32 first;

	start(0);
	start_beside(witness_loop_1, 0);
	for (unsigned int i = 0; i < 100; i++) {
		replace(i);
		/* The thread needs time to run, even if there is only one CPU. */
		if (i % 10 == 0) {
			first = witness[1];
			ASSERT_TRUE(await(witness[1] != first));
		}
	}
	stop_beside();
	ASSERT_EQ(0, session_stop(PROCESS, NULL));
	EXPECT_LT(10U, witness[1]);
	EXPECT_EQ(witness[1], page[1] + other[1]);
}

/*
 * exec
 */

static int exec_at_once(void)
{
	execve(SELF, self_argv, self_envp);
	return 110;
}

TEST_F_CHILD(lifetime, exec_ends_the_session_and_the_new_program_is_not_sampled)
{
	start_both(5);
	return exec_at_once();
}

/* The session's buffers are at the addresses that the next program will use. */
static int exec_again(void)
{
	char was[64];
	char *const envp[] = { "PROFIL_NEW_PROGRAM=1", was, NULL };

	snprintf(was, sizeof(was), "PROFIL_PAGE_WAS=%#llx", (unsigned long long)addr(page));
	start_both(5);
	execve(SELF, self_argv, envp);
	return 108;
}

static int exec_twice(void)
{
	static char *const envp[] = { "PROFIL_NEW_PROGRAM=2", NULL };

	MUST(personality(ADDR_NO_RANDOMIZE) >= 0);
	execve(SELF, self_argv, envp);
	return 110;
}

TEST_F_CALL(lifetime, exec_leaves_buffers_of_the_new_program_at_the_same_addresses_at_0,
	    EXPECT_EQ(0, status_in_child(exec_twice())))

static void *exec_thread(void *unused)
{
	(void)unused;
	MUST(!try_start(THREAD));
	loop_run(0, LOOP_BURST);
	_exit(exec_at_once());
}

TEST_F_CHILD(lifetime, exec_by_another_thread_ends_the_session)
{
	start_both(0);
	thread_start(exec_thread, NULL);
	return !loop_for_ever((void *)1);
}

TEST_F(lifetime, a_failed_exec_changes_nothing)
{
	start(5);
	EXPECT_EQ(-1, execve("/nonexistent", self_argv, self_envp));
	expect_on(_metadata, 5);
}

/* Returns the exit status of the new program. */
static int vfork_and_exec(void)
{
	pid_t child = vfork();

	if (!child)
		_exit(exec_at_once());
	return status_of(child);
}

TEST_F(lifetime, vfork_and_exec_leave_the_parents_session_on)
{
	start_both(0);
	EXPECT_EQ(0, vfork_and_exec());
	EXPECT_TRUE(loop_burn(PROCESS, 0, 10));
	EXPECT_TRUE(loop_burn(THREAD, 0, 10));
	ASSERT_EQ(0, session_stop(THREAD, NULL));
	EXPECT_LE(20U, stop().ticks);
}

TEST_F(lifetime, posix_spawn_leaves_the_parents_session_on)
{
	pid_t child;

	start(0);
	ASSERT_EQ(0, posix_spawn(&child, SELF, NULL, NULL, self_argv, self_envp));
	EXPECT_EQ(0, status_of(child));
	expect_on(_metadata, 10);
}

TEST_F(lifetime, a_vfork_child_is_sampled_while_it_shares_the_address_space)
{
	pid_t child;

	start(0);
	child = vfork();
	if (!child)
		_exit(loop_burn(PROCESS, 3, 10) ? 0 : 1);
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_LT(0U, page[3]);
	expect_on(_metadata, 10);
}

/* Then forks a child, which does not share the address space. */
static int share_address_space(void *unused)
{
	struct profil_stats s;

	(void)unused;
	MUST(is_off(THREAD));
	MUST(loop_burn(PROCESS, 3, 10));
	return status_of(FORK({
		MUST(loop_burn(PROCESS, 4, 5));
		s = stop();
		MUST(s.hit && s.hit == page[4]);
	}));
}

TEST_F(lifetime, a_CLONE_VM_child_shares_the_session)
{
	static const int flags[] = { 0, CLONE_FILES, CLONE_VFORK };
	pid_t child;

	start(0);
	ASSERT_EQ(0, session_start(THREAD, 0, NULL, 0));
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
		u32 before = page[3];

		child = clone_vm(share_address_space, flags[i], NULL);
		loop_run(0, LOOP_BURST);
		EXPECT_EQ(0, status_of(child));
		EXPECT_LT(before, page[3]);
		EXPECT_EQ(0U, page[4]);
	}
	ASSERT_EQ(0, session_stop(THREAD, NULL));
	expect_on(_metadata, 10);
}

static int stop_and_start(void *unused)
{
	(void)unused;
	MUST(stop().hit == page[0]);
	/* Then it starts a session, which stays on after its exit. */
	memset(page, 0, sizeof(page));
	start(0);
	return loop_burn(PROCESS, 3, 5) ? 0 : 103;
}

TEST_F(lifetime, a_CLONE_VM_child_may_stop_and_start_the_session_and_exit)
{
	start(5);
	EXPECT_EQ(0, status_of(clone_vm(stop_and_start, 0, NULL)));
	EXPECT_LT(0U, page[3]);
	expect_on(_metadata, 5);
}

static pid_t starter;

static int outlive_starter(void *end)
{
	MUST(await(getppid() != starter));
	MUST(loop_burn(PROCESS, 3, 10));
	MUST(stop().hit == counters_sum(page, 4, LOOPS));
	return write(*(int *)end, "", 1) != 1;
}

TEST_F(lifetime, session_stays_on_in_a_CLONE_VM_child_after_its_starter_has_exited)
{
	int ends[2];
	char c = 100;

	ASSERT_EQ(0, pipe(ends));
	EXPECT_CHILD({
		start(5);
		starter = getpid();
		clone_vm(outlive_starter, 0, &ends[1]);
	});
	close(ends[1]);
	EXPECT_EQ(1, read(ends[0], &c, 1));
	EXPECT_EQ(0, c);
}

/*
 * exit
 */

static void start_with_threads(void)
{
	for (unsigned int i = 0; i < 3; i++)
		thread_start(loop_for_ever, (void *)1);
	start_both(3);
}

static void crash(void)
{
	start_with_threads();
	*(volatile char *)NULL = 0;
}

TEST_F_CALL(lifetime, exit_ends_the_session, EXPECT_CHILD(start_both(3)))
TEST_F_CALL(lifetime, exit_with_other_threads_running_ends_the_session,
	    EXPECT_CHILD(start_with_threads()))
TEST_F_CALL(lifetime, SIGKILL_ends_the_session,
	    EXPECT_EQ(128 + SIGKILL,
		      status_of(FORK(start_with_threads(); kill(getpid(), SIGKILL)))))
TEST_F_CALL(lifetime, SIGSEGV_ends_the_session,
	    EXPECT_EQ(128 + SIGSEGV, status_of(FORK(crash()))))

static void *outlive_leader(void *unused)
{
	(void)unused;
	/* The first thread has exited, and gets no more ticks. */
	MUST(await(file_has("/proc/self/stat", "Z", NULL, 0)));
	MUST(loop_burn(PROCESS, 1, 10));
	MUST(stop().hit == counters_sum(page, 4, LOOPS));
	_exit(0);
}

TEST_F_CHILD(lifetime, the_session_outlives_the_thread_that_started_it)
{
	start_both(0);
	thread_start(outlive_leader, NULL);
	pthread_exit(NULL);
}

/*
 * exec and exit of a child after fork
 */

/* Parent and child have a session each. @child_ends() ends that of the child. */
static void expect_fork(struct __test_metadata *_metadata, int (*child_ends)(void), int status)
{
	struct profil_stats s;
	pid_t child;

	start(0);
	ASSERT_EQ(0, session_start(THREAD, 0, NULL, 0));
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 3));
		child = FORK(_exit(child_ends()));
		EXPECT_TRUE(loop_burn(PROCESS, 0, 3));
		EXPECT_EQ(status, status_of(child));
	}
	ASSERT_EQ(0, session_stop(THREAD, NULL));
	s = expect_on(_metadata, 3);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_LE(21U, s.ticks);
	EXPECT_EQ(s.hit, page[0]);
}

TEST_F_CALL(lifetime, exec_without_a_tick_before_ends_the_session_of_a_child,
	    expect_fork(_metadata, exec_at_once, 0))

static int exec_after_ticks(void)
{
	MUST(is_off(THREAD));
	MUST(loop_burn(PROCESS, 1, 5) && page[1]);
	return exec_at_once();
}

TEST_F_CALL(lifetime, exec_ends_the_session_of_a_child, expect_fork(_metadata, exec_after_ticks, 0))
TEST_F_CALL(lifetime, exec_by_a_child_leaves_buffers_of_the_new_program_at_0,
	    expect_fork(_metadata, exec_twice, 0))

static int exec_by_vfork(void)
{
	struct profil_stats s;

	MUST(!vfork_and_exec());
	MUST(loop_burn(PROCESS, 1, 5));
	s = stop();
	MUST(s.hit && s.hit == page[1]);
	return 0;
}

TEST_F_CALL(lifetime, vfork_and_exec_by_a_child_leave_its_session_on,
	    expect_fork(_metadata, exec_by_vfork, 0))

static int kill_itself(void)
{
	MUST(loop_burn(PROCESS, 1, 2));
	kill(getpid(), SIGKILL);
	return 119;
}

TEST_F_CALL(lifetime, SIGKILL_ends_the_session_of_a_child,
	    expect_fork(_metadata, kill_itself, 128 + SIGKILL))

/* shared->count is the number of children; shared->step, of those not sampled as expected. */
static void *fork_for_ever(void *unused)
{
	struct profil_stats s;

	(void)unused;
	for (;;) {
		status_of(FORK({
			/* A child cannot use the harness, and its parent may not wait for it. */
			if (!loop_burn(PROCESS, 1, 1) ||
			    session_stop(PROCESS, &s) || !accounted(&s) ||
			    s.end || s.hit != page[1])
				shared->step++;
			shared->count++;
		}));
	}
	return NULL;
}

static int exec_while_forking(void)
{
	unsigned int before = shared->count;

	start(0);
	thread_start(fork_for_ever, NULL);
	MUST(await(shared->count != before));
	loop_run(0, 1 + rand() % LOOP_BURST);
	return exec_at_once();
}

TEST_F_TIMEOUT(lifetime, exec_while_a_thread_forks_ends_only_the_session_of_the_process, 150)
{
	int ends[2];
	char c;

	/* Tells when the last child has exited, even if its parent has exited before. */
	ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
	for (unsigned int i = 0; i < 20; i++) {
		srand(i);
		EXPECT_EQ(0, status_in_child(exec_while_forking()));
	}
	close(ends[1]);
	EXPECT_EQ(0, read(ends[0], &c, 1));
	EXPECT_LE(20U, shared->count);
	EXPECT_EQ(0, shared->step);
}

/*
 * Unloading the module: the device is open only while a child needs it
 */

/* shared->step is incremented to let the other of parent and child continue. */
FIXTURE(unload) {
	pid_t child;
};

FIXTURE_SETUP(unload)
{
	SKIP_SETUP_IF(module_stays(), "%s", module_stays());
	ASSERT_TRUE(module_is_loaded());
	shared = map_shared(sizeof(*shared));
	ASSERT_TRUE(await(module_users() == 0));
}

FIXTURE_TEARDOWN(unload)
{
	kill_children();
	if (!module_is_loaded())
		EXPECT_EQ(0, module_load(""));
	EXPECT_TRUE(await(!access(PROFIL_DEVICE, R_OK | W_OK)));
}

/* Runs @run in a child, which exits with its value, until @cond is true. */
#define START_CHILD(run, cond) do {					\
	self->child = SPAWN(run);					\
	ASSERT_TRUE(await(cond));					\
} while (0)

#define ASSERT_USED() do {						\
	for (unsigned int i_ = 0; i_ < 20; i_++)			\
		ASSERT_EQ(-EWOULDBLOCK, module_unload());		\
} while (0)

/* In the child: lets the parent continue, and runs until the parent lets it continue. */
static void tick_until_told(void)
{
	int now = ++shared->step;

	while (shared->step == now)
		loop_run(0, LOOP_BURST);
}

/* Checks that nothing of the module remains in the kernel. */
static void expect_no_trace(struct __test_metadata *_metadata)
{
	EXPECT_FALSE(module_is_loaded());
	EXPECT_TRUE(await(access(PROFIL_DEVICE, F_OK)));
	EXPECT_NE(0, access("/sys/class/misc/profil", F_OK));
	EXPECT_FALSE(tick_is_hooked());
}

/* Unloads the module, loads it anew, and lets the child continue until its end. */
static void expect_unload(struct __test_metadata *_metadata, FIXTURE_DATA(unload) *self)
{
	EXPECT_TRUE(await(module_users() == 0));
	ASSERT_EQ(0, module_unload());
	expect_no_trace(_metadata);
	ASSERT_EQ(0, module_load(""));
	++shared->step;
	EXPECT_EQ(0, status_of(self->child));
}

static int stop_between(void)
{
	int fd = device_fd();

	start(3);
	/* No process has the device open now, but the session is on. */
	device_close();
	tick_until_told();
	MUST(!device_reopen(fd) && loop_burn(PROCESS, 0, 3));
	stop();
	device_close();
	tick_until_told();
	/* The module has been loaded anew. */
	MUST(!device_reopen(fd));
	return check_not_sampled();
}

TEST_F(unload, is_refused_while_a_session_is_on_and_succeeds_when_it_is_stopped)
{
	START_CHILD(stop_between(), shared->step == 1);
	EXPECT_LT(0, module_users());
	ASSERT_USED();
	++shared->step;

	ASSERT_TRUE(step_is(3));
	expect_unload(_metadata, self);
}

/* The parent has stopped its session, or will do so, and has closed the device. */
static int child_without_buffer(void)
{
	int fd = device_fd();

	MUST(state_of(PROCESS) == PROFIL_STATE_ENDED);
	device_close();
	tick_until_told();
	/* The module has been loaded anew, without the statistics of the ended session. */
	MUST(!device_reopen(fd));
	return check_not_sampled();
}

static int leave_ended(void)
{
	char *buffer = map_private(PAGE);
	struct profil_range range = range_of_loops(buffer, 4);
	pid_t child;

	MUST(!madvise(buffer, PAGE, MADV_DONTFORK));
	MUST(!session_start(PROCESS, 0, &range, 1));
	MUST(loop_burn(PROCESS, 0, 3));
	child = FORK(_exit(child_without_buffer()));
	MUST(!session_stop(PROCESS, NULL));
	device_close();
	return status_of(child);
}

TEST_F(unload, succeeds_while_an_ended_session_has_not_been_stopped)
{
	START_CHILD(leave_ended(), shared->step == 1);
	expect_unload(_metadata, self);
}

static int tick_for_ever(void)
{
	start_with_threads();
	device_close();
	tick_until_told();
	return 101;
}

TEST_F(unload, succeeds_after_a_sampled_process_was_killed)
{
	START_CHILD(tick_for_ever(), shared->step == 1);
	ASSERT_EQ(-EWOULDBLOCK, module_unload());
	EXPECT_EQ(128 + SIGKILL, killed(self->child));
	EXPECT_TRUE(await(module_unload() == 0));
	expect_no_trace(_metadata);
}

/* The parent's session is stopped, and neither process has the device open. */
static int stop_before_child(void)
{
	pid_t child;

	start(3);
	child = FORK({
		MUST(step_is(1) && loop_burn(PROCESS, 1, 3));
		device_close();
		tick_until_told();
	});
	stop();
	device_close();
	++shared->step;
	return status_of(child);
}

TEST_F(unload, is_refused_while_the_child_of_a_fork_has_a_session)
{
	START_CHILD(stop_before_child(), shared->step == 2);
	ASSERT_USED();
	++shared->step;
	EXPECT_EQ(0, status_of(self->child));
	EXPECT_TRUE(await(module_unload() == 0));
	expect_no_trace(_metadata);
}

#define CHAIN	50

struct chain {
	atomic_int length;	/* the number of generations */
	atomic_int last;	/* the last process */
	atomic_int tries;	/* attempts to unload the module */
};

/* Each generation exits after its child has inherited the session, so there is always a session. */
static int leave_to_children(struct chain *chain)
{
	pid_t parent;
	int tries;

	start(3);
	device_close();
	for (chain->length = 1; chain->length < CHAIN; ++chain->length) {
		parent = getpid();
		if (fork())
			_exit(0);
		chain->last = getpid();
		/* Some continue at once, others after the parent has exited. */
		if (chain->length % 5)
			continue;
		tries = chain->tries + 3;
		MUST(await(getppid() != parent) && await(chain->tries >= tries));
	}
	return 0;
}

TEST_F(unload, is_refused_while_sessions_pass_from_parent_to_child)
{
	u64 cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 2 * BURN_CAP_NS;
	struct chain *chain = map_shared(PAGE);
	int err = -EWOULDBLOCK;

	START_CHILD(leave_to_children(chain), chain->length > 0);
	while (err == -EWOULDBLOCK && chain->length < CHAIN &&
	       cpu_ns(CLOCK_THREAD_CPUTIME_ID) < cap) {
		err = module_unload();
		chain->tries++;
		sched_yield();
	}
	EXPECT_EQ(CHAIN, chain->length) {
		TH_LOG("after generation %d: %d", chain->length, err);
	}
	EXPECT_EQ(0, status_of(self->child));
	EXPECT_TRUE(await(kill(chain->last, 0) && errno == ESRCH));
	EXPECT_TRUE(await(!module_is_loaded() || !module_unload()));
	expect_no_trace(_metadata);
}

static void fork_until_told(void)
{
	int now = ++shared->step;

	while (shared->step == now)
		MUST(!status_in_child(0));
	_exit(0);
}

/*
 * Both run on one CPU: QEMU may execute the old instruction while another CPU patches it, here for
 * the tracepoints of fork and exit.
 */
TEST_F_TIMEOUT(unload, and_load_succeed_while_another_process_forks, 150)
{
	run_on_cpu(sched_getcpu());
	START_CHILD((fork_until_told(), 1), shared->step == 1);
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_TRUE(await(module_unload() == 0));
		ASSERT_EQ(0, module_load(""));
	}
	++shared->step;
	EXPECT_EQ(0, status_of(self->child));
}

TEST_HARNESS_MAIN
