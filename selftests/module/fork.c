// SPDX-License-Identifier: GPL-2.0
/*
 * After a fork, parent and child each count for themselves, and no tick is lost.
 *
 * Loop i has its own counter. Either only one process runs the loop, or no process runs it during a
 * fork. So the exact content of a copy of the buffer is known. Children check their results
 * themselves, and report them by their exit status.
 */
#include "kselftest_harness.h"

#include "faults.h"
#include "kernel.h"
#include "process.h"
#include "threads.h"
#include "users.h"

#define SIZE	(4 * PAGE)
#define STRIDE	(SIZE / LOOPS)	/* bytes: two counters in each page */

#define SOME	3U	/* ticks */

/* These can be static, since each test runs in its own process. */
static char *buffer;		/* SIZE bytes */
static u32 width;
static bool shared;		/* the buffer is shared by parents and children */

/* Results that the processes exchange, in shared memory. */
static struct report {
	atomic_int turn;
	atomic_uint on, off, ended;	/* the states in which children found their sessions */
	atomic_ullong hits;
	struct profil_stats stats[LOOPS];
	u64 held[LOOPS];
} *report;

static struct profil_query query;
static u64 locked;		/* the value before the test */
static long long users, pins;

/* Returns a range over @mem that counts loop i in counter i * STRIDE / @width. */
static struct profil_range range_spread(volatile void *mem, u32 width)
{
	struct profil_range range = range_of_loops(mem, width);

	range.scale = STRIDE / width * 65536;
	range.nr_counters = SIZE / width;
	return range;
}

static int try_start(void)
{
	struct profil_range range = range_spread(buffer, width);

	return session_start(PROCESS, 0, &range, 1);
}

/* Runs loop @i until the session of @scope has counted SOME more ticks in its ranges. */
static bool count_some(u32 scope, unsigned int i)
{
	struct profil_stats s;
	u64 until;

	MUST(!session_stats(scope, &s));
	until = s.hit + SOME;
	return loop_until(i, session_stats(scope, &s) || s.state != PROFIL_STATE_ON ||
			     s.hit >= until) &&
	       s.state == PROFIL_STATE_ON && s.hit >= until;
}

/* Starts the session, and runs loop 0 for @ticks. If that is not possible, the process exits. */
static void start(u64 ticks)
{
	MUST(!try_start());
	MUST(!ticks || loop_burn(PROCESS, 0, ticks));
}

/* Returns the counter of loop @i. */
static u64 count(unsigned int i)
{
	return counter(buffer + i * STRIDE, width, 0);
}

static u64 count_all(void)
{
	return counters_sum(buffer, width, SIZE / width);
}

/* Stops the session of a child, which must be on. Nothing of it may remain. */
static struct profil_stats child_stops(void)
{
	struct profil_stats s;

	MUST(!session_stop(PROCESS, &s));
	MUST(s.end == PROFIL_END_NONE);
	MUST(accounted(&s));
	MUST(pinned_bytes() == 0);
	MUST(is_off(PROCESS));
	return s;
}

/*
 * The usual work of a child: runs loop @i, and stops its session. The hits of the session must be
 * exactly the counts that were added, and no tick may be dropped.
 */
static struct profil_stats child_counts(unsigned int i)
{
	u64 held = count(i), held_all = count_all();
	struct profil_stats s;

	MUST(count_some(PROCESS, i));
	MUST(pinned_bytes() == SIZE);
	MUST(!session_stats(PROCESS, &s));
	MUST(s.state == PROFIL_STATE_ON);
	MUST(s.locked == SIZE);
	s = child_stops();
	MUST(s.hit >= SOME);
	MUST(!s.dropped);
	MUST(count(i) == held + s.hit);
	MUST(shared || count_all() == held_all + s.hit);
	return s;
}

/* Checks the same in the parent: stops its session, and returns the hits. */
static u64 stop_hit(struct __test_metadata *_metadata)
{
	struct profil_stats s = { 0 };

	EXPECT_EQ((u32)PROFIL_STATE_ON, state_of(PROCESS));
	EXPECT_EQ(locked + SIZE, pinned_bytes());
	EXPECT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
	/* Only ticks of exiting threads may be dropped. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
	EXPECT_EQ(locked, pinned_bytes());
	return s.hit;
}

/* Evaluates @counted after the stop, which counts deferred ticks. */
#define expect_stop(metadata, counted) do {		\
	u64 hit_ = stop_hit(metadata);			\
							\
	EXPECT_EQ((u64)(counted), hit_);		\
} while (0)

/* Runs loop 0, and stops the session, which must have counted that loop only. */
static void expect_loop_0(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_EQ(count(0), count_all());
	expect_stop(_metadata, count(0));
}

/* Waits for all children. Returns the bits of their statuses: 0 if all succeeded. */
static int statuses(void)
{
	int status, all = 0;

	while (wait(&status) > 0)
		all |= status;
	return all;
}

static void set_up(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, device_query(&query));
	ASSERT_NE(0U, query.features & PROFIL_FEATURE_FORK);
	buffer = map_new(SIZE, shared ? MAP_SHARED : MAP_PRIVATE);
	report = map_shared(sizeof(*report));
	locked = pinned_bytes();
	users = module_users();
	pins = pinned_pages();
	ASSERT_TRUE(module_is_built_in() || users > 0);
}

/* Checks that nothing remains of the sessions of a test and its children. */
static void tear_down(struct __test_metadata *_metadata)
{
	session_stop(PROCESS, NULL);
	session_stop(THREAD, NULL);
	EXPECT_NO_SESSIONS(users, locked);
	EXPECT_TRUE(await(pinned_pages() <= pins)) {
		TH_LOG("%lld pages are pinned, not %lld", pinned_pages(), pins);
	}
}

/*
 * Counters of each width, in private and in shared memory
 */

FIXTURE(fork) {
};

FIXTURE_VARIANT(fork) {
	u32 width;
	bool shared;
};

FIXTURE_VARIANT_ADD(fork, private_16) { 2, false };
FIXTURE_VARIANT_ADD(fork, private_32) { 4, false };
FIXTURE_VARIANT_ADD(fork, private_64) { 8, false };
FIXTURE_VARIANT_ADD(fork, shared_16) { 2, true };
FIXTURE_VARIANT_ADD(fork, shared_64) { 8, true };

FIXTURE_SETUP(fork)
{
	width = variant->width;
	shared = variant->shared;
	set_up(_metadata);
}

FIXTURE_TEARDOWN(fork)
{
	tear_down(_metadata);
}

TEST_F(fork, leaves_both_sessions_on_and_the_childs_statistics_start_at_0)
{
	struct profil_stats before, s;
	pid_t child;

	/* More ticks than a child needs to set up its session, even with a debug kernel. */
	start(40);
	ASSERT_EQ(0, session_stats(PROCESS, &before));
	EXPECT_EQ(before.hit, count(0));

	child = FORK({
		MUST(pinned_bytes() == 0);
		MUST(!session_stats(PROCESS, &s));
		MUST(s.state == PROFIL_STATE_ON && s.end == PROFIL_END_NONE);
		MUST(accounted(&s));
		MUST(s.hit == 0);
		MUST(s.ticks < before.ticks && s.expected < before.expected);
		MUST(s.locked == SIZE && pinned_bytes() == SIZE);
		MUST(is_off(THREAD));
		MUST(count(0) == before.hit);
		report->stats[1] = child_counts(1);
		MUST(count(0) == before.hit);
		MUST(session_stop(PROCESS, NULL) == -EINVAL);
		loop_spend(1, SOME, query.tick_ns);
		MUST(count(1) == report->stats[1].hit);
	});
	EXPECT_EQ(0, session_stats(PROCESS, &s));
	EXPECT_LE(before.ticks, s.ticks);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(count_some(PROCESS, 2));
	EXPECT_EQ(before.hit, count(0));
	EXPECT_EQ(shared ? report->stats[1].hit : 0, count(1));
	EXPECT_LT(0U, count(2));
	expect_stop(_metadata, count(0) + count(2));
	EXPECT_EQ(count(0) + count(1) + count(2), count_all());
}

/*
 * Process @i of a chain runs loop @i while the later processes run theirs; with @ticks, it also
 * runs the loop before it forks.
 */
static void generation(unsigned int i, bool ticks)
{
	struct profil_stats s;
	u64 inherited = count_all();

	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(count(i) == 0);
	if (ticks)
		MUST(count_some(PROCESS, i));
	report->held[i] = count(i);
	if (i + 1 < LOOPS) {
		FORK({
			for (unsigned int j = 0; j <= i; j++)
				MUST(shared || count(j) == report->held[j]);
			generation(i + 1, ticks);
		});
	}
	MUST(count_some(PROCESS, i));
	MUST(pinned_bytes() == SIZE);
	s = child_stops();
	MUST(s.hit > 0 && s.hit == count(i) && !s.dropped);
	MUST(shared || count_all() == inherited + s.hit);
	MUST(!statuses());
}

TEST_F_CALL(fork, of_8_generations_counts_each_generation,
	    EXPECT_CHILD(start(0); generation(0, true)))
TEST_F_CALL(fork, of_8_generations_without_a_tick_before_counts_each_generation,
	    EXPECT_CHILD(start(0); generation(0, false)))

TEST_F(fork, repeated_by_one_parent_gives_each_child_a_session)
{
	unsigned int i;

	start(0);
	for (i = 1; i < LOOPS; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		report->held[i] = count(0);
		FORK({
			MUST(shared || count(0) == report->held[i]);
			MUST(shared || count_all() == report->held[i]);
			report->stats[i] = child_counts(i);
		});
	}
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_EQ(0, statuses());
	for (i = 1; i < LOOPS; i++)
		EXPECT_EQ(shared ? report->stats[i].hit : 0, count(i));
	expect_stop(_metadata, count(0));
}

/* In shared memory they increment the same counter concurrently. */
TEST_F(fork, loses_no_update_if_5_processes_run_the_same_loop)
{
	struct profil_stats s;
	u64 held;

	start(SOME);
	held = count(0);
	for (unsigned int i = 0; i < 4; i++) {
		FORK({
			MUST(await(report->turn));
			MUST(loop_burn(PROCESS, 0, 15));
			s = child_stops();
			MUST(s.hit + s.dropped_contended + s.outside == s.ticks);
			MUST(shared || count(0) == held + s.hit);
			MUST(shared || count_all() == held + s.hit);
			report->hits += s.hit;
		});
	}
	report->turn = 1;
	EXPECT_TRUE(loop_burn(PROCESS, 0, 15));
	EXPECT_EQ(0, statuses());
	EXPECT_LT(30U, report->hits);
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(s.hit + (shared ? report->hits : 0), count(0));
	EXPECT_EQ(count(0), count_all());
}

/*
 * Threads run loops 1 to 3 all the time. The copy must hold every tick that was counted before the
 * fork began, and none that was counted after it was complete.
 */
TEST_F(fork, copies_the_counts_of_a_parent_with_threads)
{
	u64 before[4], after[4];
	unsigned int i;
	pid_t child;

	start(0);
	for (i = 1; i <= 3; i++)
		start_beside(run_loop, i);
	for (unsigned int round = 0; round < 6; round++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 4));
		for (i = 0; i <= 3; i++)
			before[i] = count(i);
		child = FORK({
			for (i = 0; i <= 3; i++)
				report->held[i] = count(i);
			child_counts(4);
			for (i = 0; i <= 3; i++)
				MUST(shared || count(i) == report->held[i]);
		});
		for (i = 0; i <= 3; i++)
			after[i] = count(i);
		EXPECT_EQ(0, status_of(child));
		for (i = 0; i <= 3; i++) {
			EXPECT_LE(before[i], report->held[i]);
			if (!shared) {
				EXPECT_LE(report->held[i], after[i]);
			}
		}
	}
	for (i = 1; i <= 3; i++)
		EXPECT_LT(0U, count(i));
	expect_stop(_metadata, count(0) + count(1) + count(2) + count(3));
}

/*
 * All ticks are in one counter. So the content of the copy at the fork is the child's counter
 * minus the child's own hits.
 */
TEST_F(fork, is_itself_counted)
{
	struct profil_range range = range_all(buffer, SIZE / width, width);
	struct profil_stats s;
	u64 before, after;
	pid_t child;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	for (unsigned int round = 0; round < 10; round++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		before = count(0);
		child = FORK({
			MUST(loop_burn(PROCESS, 1, 3));
			s = child_stops();
			MUST(s.ticks >= 3 && s.hit == s.ticks);
			report->held[1] = count(0) - s.hit;
			report->hits += s.hit;
		});
		after = count(0);
		EXPECT_EQ(0, status_of(child));
		EXPECT_LE(before, report->held[1]);
		if (!shared) {
			EXPECT_LE(report->held[1], after);
		}
	}
	EXPECT_EQ((u32)PROFIL_STATE_ON, state_of(PROCESS));
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_EQ(s.hit + (shared ? report->hits : 0), count(0));
	EXPECT_EQ(count(0), count_all());
}

/*
 * Operations on the session in the child, in the parent and in threads
 */

FIXTURE(forked) {
};

FIXTURE_SETUP(forked)
{
	width = 4;
	set_up(_metadata);
}

FIXTURE_TEARDOWN(forked)
{
	tear_down(_metadata);
}

/* Runs loop 0, forks children that run @run, and stops the session. */
static void expect_children(struct __test_metadata *_metadata, void (*run)(void))
{
	EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
	for (unsigned int i = 0; i < 3; i++) {
		pid_t child = FORK(run());

		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		EXPECT_EQ(0, status_of(child));
	}
	expect_loop_0(_metadata);
}

/* A test whose body runs in children. Before the start, the parent runs the statements. */
#define TEST_CHILDREN(name, ...)						\
	static void run_##name(void);						\
	TEST_F(forked, name)							\
	{									\
		__VA_ARGS__;							\
		start(0);							\
		expect_children(_metadata, run_##name);				\
	}									\
	static void run_##name(void)

TEST_F(forked, child_may_stop_its_session_at_once)
{
	struct profil_stats s;

	start(0);
	for (unsigned int i = 0; i < 25; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 1));
		EXPECT_CHILD({
			u64 held = count_all();

			/* In some of the children a tick arrives before the call. */
			loop_run(1, 1 + i % 5 * LOOP_BURST / 2);
			s = child_stops();
			MUST(s.hit == count(1));
			MUST(s.hit == count_all() - held);
		});
	}
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_may_replace_its_session_but_not_start_a_second_one)
{
	struct profil_stats s;
	char *first = buffer;
	u64 held;

	start(0);
	for (unsigned int i = 0; i < 10; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 1));
		EXPECT_CHILD({
			struct profil_range range;

			held = count_all();
			MUST(try_start() == -EBUSY);
			loop_run(1, 1 + i % 5 * LOOP_BURST / 2);
			/* The new buffer is at the same address, or at another one. */
			buffer = i % 2 ? first : map_private(SIZE);
			range = range_spread(buffer, width);
			MUST(!session_start(PROCESS, PROFIL_START_REPLACE, &range, 1));
			held = i % 2 ? count_all() : held;
			MUST(pinned_bytes() == SIZE);
			s = child_counts(2);
			MUST(counters_sum(first, width, SIZE / width) ==
			     held + (i % 2 ? s.hit : counter(first + STRIDE, width, 0)));
		});
	}
	expect_stop(_metadata, count(0));
}

TEST_CHILDREN(child_may_stop_start_a_session_and_fork_again)
{
	child_counts(1);
	start(0);
	FORK({
		child_counts(2);
		/* There is no session to inherit now. */
		FORK({
			MUST(is_off(PROCESS));
			loop_spend(3, SOME, query.tick_ns);
			MUST(count(3) == 0);
		});
		MUST(!statuses());
	});
	child_counts(4);
	MUST(!statuses());
}

TEST_F(forked, child_is_still_counted_after_the_parent_stops)
{
	pid_t child;

	for (unsigned int i = 0; i < 8; i++) {
		u64 held = count(0);

		start(1);
		child = FORK({
			MUST(await(report->turn > (int)i));
			child_counts(1);
		});
		expect_stop(_metadata, count(0) - held);
		report->turn++;
		EXPECT_EQ(0, status_of(child));
		EXPECT_EQ(count(0), count_all());
	}
}

TEST_F(forked, child_that_outlives_its_parent_is_still_counted)
{
	EXPECT_CHILD({
		pid_t parent = getpid();

		start(SOME);
		FORK({
			MUST(await(getppid() != parent));
			child_counts(1);
			report->turn = 1;
		});
	});
	EXPECT_TRUE(await(report->turn));
}

static void *fork_here(void *unused)
{
	MUST(!session_start(THREAD, 0, NULL, 0));
	FORK({
		MUST(is_off(THREAD));
		child_counts(1);
	});
	MUST(!session_stop(THREAD, NULL));
	return unused;
}

TEST_F(forked, child_of_any_thread_inherits_the_session)
{
	start(0);
	for (unsigned int i = 0; i < 8; i++) {
		start_beside(fork_here, 0);
		EXPECT_TRUE(loop_burn(PROCESS, 0, 3));
		stop_beside();
		EXPECT_EQ(0, statuses());
	}
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_does_not_inherit_the_session_of_the_forking_thread)
{
	static u32 own[LOOPS];
	struct profil_range range = range_of_loops(own, 4);
	struct profil_stats s, t;
	pid_t child;

	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	start(SOME);
	child = FORK({
		u64 held = own[0];

		MUST(is_off(THREAD));
		MUST(session_stop(THREAD, NULL) == -EINVAL);
		MUST(pinned_bytes() == SIZE);
		MUST(count_some(PROCESS, 2));
		MUST(own[2] == 0 && own[0] == held);
		/* The child's thread can have a session in addition. */
		MUST(!session_start(THREAD, 0, &range, 1));
		MUST(count_some(THREAD, 1));
		MUST(!session_stop(THREAD, &t));
		MUST(accounted(&t) && t.hit > 0 && t.hit == own[1] && t.hit == count(1));
		MUST(count_some(PROCESS, 3));
		MUST(own[3] == 0);
		s = child_stops();
		MUST(s.hit == count(1) + count(2) + count(3) && !s.dropped);
	});
	EXPECT_TRUE(count_some(THREAD, 0));
	EXPECT_EQ(0, status_of(child));
	ASSERT_STOP(THREAD, &t);
	EXPECT_EQ(t.hit, own[0]);
	EXPECT_EQ(t.hit, count(0));
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_has_no_session_if_only_a_thread_of_the_parent_has_one)
{
	struct profil_range range = range_spread(buffer, width);
	struct profil_stats s;

	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	EXPECT_TRUE(count_some(THREAD, 0));
	EXPECT_CHILD({
		u64 held = count_all();

		MUST(is_off(PROCESS) && is_off(THREAD));
		loop_spend(0, SOME, query.tick_ns);
		MUST(is_off(PROCESS) && is_off(THREAD));
		MUST(count_all() == held);
		MUST(pinned_bytes() == 0);
	});
	EXPECT_TRUE(count_some(THREAD, 0));
	ASSERT_STOP(THREAD, &s);
	EXPECT_EQ(s.hit, count(0));
}

TEST_CHILDREN(child_of_a_child_whose_session_has_ended_has_no_session,
	      ASSERT_EQ(0, madvise(buffer, SIZE, MADV_DONTFORK)))
{
	struct profil_stats s;

	MUST(state_of(PROCESS) == PROFIL_STATE_ENDED);
	FORK(MUST(is_off(PROCESS)));
	MUST(!statuses());
	MUST(!session_stop(PROCESS, &s));
	MUST(s.end == PROFIL_END_BUFFER);
}

TEST_F(forked, child_counts_the_same_modes)
{
	struct profil_range range = range_spread(buffer, width);
	struct profil_stats s;

	ASSERT_EQ(0, session_start_modes(PROCESS, PROFIL_MODE_SYSTEM, &range, 1));
	EXPECT_TRUE(loop_burn(PROCESS, 0, 2 * SOME));
	EXPECT_CHILD({
		MUST(loop_burn(PROCESS, 1, 4 * SOME));
		s = child_stops();
		MUST(s.unselected > 0 && s.user == 0);
		MUST(count(1) <= s.hit);
	});
	ASSERT_STOP(PROCESS, &s);
	EXPECT_LT(0U, s.unselected);
	EXPECT_EQ(0U, s.user);
}

TEST_F(forked, child_leaves_saturated_counters_unchanged)
{
	struct profil_stats s;

	memset(buffer + STRIDE, 0xff, width);
	start(0);
	EXPECT_CHILD({
		MUST(loop_burn(PROCESS, 1, 2 * SOME));
		s = child_stops();
		MUST(s.saturated > 0 && s.hit == 0 && s.dropped == 0);
		MUST(count(1) == UINT32_MAX);
	});
	expect_stop(_metadata, 0);
}

TEST_F(forked, child_of_a_session_without_counters_is_on)
{
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROCESS, 0, NULL, 0));
	EXPECT_TRUE(loop_burn(PROCESS, 0, 2 * SOME));
	EXPECT_CHILD({
		MUST(loop_burn(PROCESS, 0, 2 * SOME));
		s = child_stops();
		MUST(s.ticks == s.outside && s.locked == 0);
	});
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(s.ticks, s.outside);
}

/*
 * Buffers that the child does not have, changes or unmaps
 */

/*
 * Runs loop @i, and waits until the child's session has ended for the reason @end. No page may be
 * charged then. Returns the final statistics.
 */
static struct profil_stats child_ends(unsigned int i, u32 end)
{
	struct profil_stats s;

	loop_run(i, LOOP_BURST);
	MUST(await(state_of(PROCESS) == PROFIL_STATE_ENDED));
	MUST(pinned_bytes() == 0);
	MUST(!session_stats(PROCESS, &s));
	MUST(s.end == end);
	MUST(s.locked == 0);
	MUST(accounted(&s));
	loop_spend(1, 2, query.tick_ns);
	MUST(!session_stop(PROCESS, &s));
	MUST(s.end == end);
	MUST(accounted(&s));
	MUST(is_off(PROCESS));
	return s;
}

static void child_without_buffer(void)
{
	MUST(msync(buffer, PAGE, MS_ASYNC) && errno == ENOMEM);
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == 0);
	/* The child can start a new session. */
	buffer = map_private(SIZE);
	start(0);
	child_counts(1);
}

TEST_CHILDREN(child_without_the_buffer_has_an_ended_session,
	      ASSERT_EQ(0, madvise(buffer, SIZE, MADV_DONTFORK)))
{
	child_without_buffer();
}

/* The counters of loops 2 and 3 are in the missing page. */
TEST_CHILDREN(child_without_a_page_of_the_buffer_has_an_ended_session,
	      ASSERT_EQ(0, madvise(buffer + PAGE, PAGE, MADV_DONTFORK)))
{
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == count(1));
}

TEST_CHILDREN(child_whose_buffer_is_wiped_on_fork_has_an_ended_session,
	      ASSERT_EQ(0, madvise(buffer, SIZE, MADV_WIPEONFORK)))
{
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == 0 && count_all() == 0);
	start(0);
	child_counts(1);
}

/*
 * After a fork the child has no page table entries for shared memory, so its pages have to be
 * faulted in.
 */
TEST_F(forked, child_counts_in_shared_pages_that_it_has_not_touched)
{
	struct profil_stats s;

	buffer = map_shared(SIZE);
	start(0);
	EXPECT_CHILD({
		MUST(loop_until(1, pinned_bytes() == SIZE));
		s = child_stops();
		MUST(s.hit > 0 && s.hit == count(1) && !s.dropped);
	});
	EXPECT_LT(0U, count(1));
	expect_stop(_metadata, 0);
}

static volatile sig_atomic_t nr_signals;

static void count_signal(int number)
{
	(void)number;
	nr_signals++;
}

/*
 * No page is pinned before the first tick in a range. After this tick all pages are pinned, even if
 * the child makes no call.
 */
TEST_CHILDREN(childs_pages_are_pinned_at_its_first_tick_in_a_range)
{
	u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 3 * query.tick_ns;
	struct profil_stats s;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		burn();
	MUST(pinned_bytes() == 0);
	MUST(loop_until(1, pinned_bytes() == SIZE));
	s = child_stops();
	MUST(s.outside > 0 && !s.dropped);
	MUST(s.hit > 0 && s.hit == count(1));
}

/* The timer expires at the scheduler tick, so a signal is pending at each tick. */
TEST_CHILDREN(childs_session_is_set_up_with_a_signal_at_each_tick)
{
	const struct itimerval often = { { 0, 1 }, { 0, 1 } }, never = {};
	u64 inherited = count_all();
	struct profil_stats s;

	MUST(signal(SIGPROF, count_signal) != SIG_ERR);
	MUST(!setitimer(ITIMER_PROF, &often, NULL));
	MUST(loop_until(1, pinned_bytes() == SIZE && nr_signals && count_all() > inherited));
	MUST(!setitimer(ITIMER_PROF, &never, NULL));
	s = child_stops();
	/* A tick during the setup of a signal frame may be charged a few bytes beside the loop. */
	MUST(s.hit > 0 && s.hit == count_all() - inherited && !s.dropped);
}

#define MUCH	(128UL << 20)

/* Makes a call that takes several ticks, and then waits for a page that never arrives. */
static void *populate(void *memory)
{
	madvise(memory, MUCH, MADV_POPULATE_WRITE);
	return NULL;
}

/* The first tick interrupts a thread that will not return to user mode. */
TEST_CHILDREN(childs_session_is_set_up_while_a_thread_is_in_a_system_call,
	      NEED_ROOT("to keep the kernel waiting by userfaultfd"))
{
	char *memory = map_private(MUCH);
	int fd = missing_pages(memory + MUCH - PAGE, PAGE, 0);
	struct uffd_msg missing;
	struct profil_stats s;

	MUST(fd >= 0);
	start_beside(populate, (uintptr_t)memory);
	MUST(read(fd, &missing, sizeof(missing)) == sizeof(missing));
	MUST(loop_until(1, pinned_bytes() == SIZE));
	s = child_stops();
	MUST(s.system > 0 && s.hit > 0 && !s.dropped);
}

#define SET_UP_EARLY	2	/* an exit status */

/*
 * The range contains no code but the call, so the first tick that is deferred is one of the call.
 * The child is set up when the call returns. A rare tick of an instruction before the call sets a
 * child up early; then nothing is dropped, and another child is forked.
 */
TEST_F(forked, childs_ticks_in_a_long_call_are_deferred_until_256_are)
{
	struct profil_range range = range_of(addr(syscall), addr(syscall) + 64, buffer,
					     SIZE / width, width);
	void *memory = map_small(MUCH);
	struct profil_stats s;
	int status, tries = 0;
	pid_t child;

	range.scale = 0;
	ASSERT_EQ(0, clock_start(PROCESS, 0, 50000, &range, 1));
	do {
		child = FORK({
			/* A page fault at the first instruction would be such a tick. */
			(void)*(volatile const char *)addr(syscall);
			MUST(!syscall(SYS_madvise, memory, MUCH, MADV_POPULATE_WRITE));
			s = child_stops();
			MUST(s.hit >= 256 && s.hit == count(0));
			MUST(s.dropped == s.dropped_overrun);
			_exit(s.dropped ? 0 : SET_UP_EARLY);
		});
		status = status_of(child);
	} while (status == SET_UP_EARLY && ++tries < 10);
	EXPECT_EQ(0, status);
	expect_stop(_metadata, 0);
}

/* The tick interrupts the very thread that would have to provide the missing page. */
TEST_CHILDREN(child_that_serves_its_own_page_faults_does_not_wait_for_itself,
	      NEED_ROOT("to keep the kernel waiting by userfaultfd"))
{
	struct uffd_msg missing;
	int fd;

	MUST(!madvise(buffer, SIZE, MADV_DONTNEED));
	fd = missing_pages(buffer, SIZE, O_NONBLOCK);
	MUST(fd >= 0);
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == 0);
	MUST(read(fd, &missing, sizeof(missing)) < 0 && errno == EAGAIN);
	close(fd);
	MUST(count_all() == 0);
}

static void child_without_hits(void)
{
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == 0 && count(1) == 0);
}

/* The child has a copy of the other memory. */
TEST_F(forked, child_does_not_count_in_memory_that_the_parent_mapped_after_the_start)
{
	start(0);
	ASSERT_EQ(buffer, mmap(buffer, SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0));
	for (unsigned int i = 0; i < 5; i++)
		EXPECT_CHILD(child_without_hits());
	EXPECT_TRUE(loop_burn(PROCESS, 0, 10));
	EXPECT_EQ(0U, count_all());
	EXPECT_LT(0U, stop_hit(_metadata));
}

TEST_CHILDREN(child_may_unmap_its_copy_at_once)
{
	MUST(!munmap(buffer, SIZE));
	child_ends(1, PROFIL_END_BUFFER);
}

TEST_CHILDREN(child_may_make_its_copy_read_only)
{
	MUST(!mprotect(buffer, SIZE, PROT_READ));
	MUST(child_ends(1, PROFIL_END_BUFFER).hit == count(1));
}

TEST_CHILDREN(child_may_map_other_memory_in_place_of_its_copy)
{
	MUST(mmap(buffer, SIZE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buffer);
	MUST(child_counts(1).hit == count_all());
}

/* After the pages are pinned, changes to the mapping do not affect the session. */
static void child_counts_without_mapping(void)
{
	struct profil_stats s;

	MUST(count_some(PROCESS, 1));
	MUST(pinned_bytes() == SIZE);
	s = child_stops();
	MUST(s.hit > 0 && !s.dropped);
}

TEST_CHILDREN(child_is_still_counted_after_MADV_DONTNEED_of_its_copy)
{
	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(!madvise(buffer, SIZE, MADV_DONTNEED));
	child_counts_without_mapping();
	MUST(count_all() == 0);
}

TEST_CHILDREN(child_is_still_counted_after_it_unmaps_its_copy)
{
	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(!munmap(buffer, SIZE));
	child_counts_without_mapping();
}

TEST_F(forked, child_is_still_counted_after_the_parent_unmaps_its_buffer)
{
	struct profil_stats before;
	pid_t child;

	start(SOME);
	child = FORK({
		MUST(await(report->turn));
		child_counts(1);
	});
	ASSERT_EQ(0, munmap(buffer, SIZE));
	report->turn = 1;
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, session_stats(PROCESS, &before));
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_LT(before.hit, stop_hit(_metadata));
}

/* The parent's pages are still pinned, but in the child nothing is mapped at the address. */
TEST_F(forked, child_of_a_parent_that_has_unmapped_its_buffer_has_an_ended_session)
{
	start(0);
	ASSERT_EQ(0, munmap(buffer, SIZE));
	EXPECT_CHILD(child_without_buffer());
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_LT(0U, stop_hit(_metadata));
}

/* Pages beyond the new end leave the file, but both processes continue to count in them. */
TEST_F(forked, child_and_parent_are_still_counted_after_a_file_is_truncated)
{
	struct profil_stats s;
	u64 counted;
	pid_t child;
	int fd;

	fd = memfd_create("fork", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, SIZE));
	shared = true;
	buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)buffer);
	start(SOME);
	child = FORK({
		MUST(count_some(PROCESS, 1));
		MUST(!session_stats(PROCESS, &s));
		counted = s.hit;
		MUST(counted == count(1));
		report->turn = 1;
		MUST(await(report->turn == 2));
		MUST(count_some(PROCESS, 1));
		MUST(pinned_bytes() == SIZE);
		s = child_stops();
		MUST(s.hit > counted && !s.dropped);
	});
	EXPECT_TRUE(await(report->turn));
	ASSERT_EQ(0, session_stats(PROCESS, &s));
	counted = s.hit;
	ASSERT_EQ(0, ftruncate(fd, 0));
	report->turn = 2;
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_EQ(0, status_of(child));
	EXPECT_LT(counted, stop_hit(_metadata));
}

/*
 * One session has buffers in anonymous memory (loops 0, 1, 6 and 7), in a private mapping of a file
 * (2 and 3) and in a shared one (4 and 5). The parent runs the even loops, the child the odd ones.
 */
TEST_F(forked, child_inherits_ranges_in_each_kind_of_memory)
{
	static u32 own[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	int fd = memfd_create("fork", MFD_CLOEXEC);
	u16 *file_private;
	u64 *file_shared;
	struct profil_range ranges[LOOPS];
	struct profil_stats s;
	u64 held;

	ASSERT_EQ(0, ftruncate(fd, SIZE));
	file_private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	file_shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	ASSERT_NE(MAP_FAILED, (void *)file_private);
	ASSERT_NE(MAP_FAILED, (void *)file_shared);
	for (unsigned int i = 0; i < LOOPS; i++) {
		if (i == 2 || i == 3)
			ranges[i] = range_of_block(i, &file_private[i], 1, 2, 0);
		else if (i == 4 || i == 5)
			ranges[i] = range_of_block(i, &file_shared[i], 1, 8, 0);
		else
			ranges[i] = range_of_block(i, &own[i], 1, 4, 0);
	}

	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, LOOPS));
	EXPECT_EQ(locked + 3 * PAGE, pinned_bytes());
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_TRUE(count_some(PROCESS, 2));
	EXPECT_TRUE(count_some(PROCESS, 4));
	held = own[0] + file_private[2] + file_shared[4];
	EXPECT_CHILD({
		for (unsigned int i = 1; i < LOOPS; i += 2)
			MUST(count_some(PROCESS, i));
		MUST(pinned_bytes() == 3 * PAGE);
		s = child_stops();
		MUST(!s.dropped);
		MUST(own[1] && file_private[3] && file_shared[5] && own[7]);
		MUST(s.hit == own[1] + file_private[3] + file_shared[5] + own[7]);
		MUST(own[0] + file_private[2] + file_shared[4] == held);
		MUST(own[6] == 0);
		report->hits = file_shared[5];
	});
	EXPECT_TRUE(count_some(PROCESS, 6));
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(held, own[0] + file_private[2] + file_shared[4]);
	EXPECT_EQ(s.hit, held + own[6]);
	EXPECT_EQ(0U, own[1] + file_private[3] + own[7]);
	EXPECT_EQ(report->hits, file_shared[5]);
}

/* The parent counts in the first counter of @size bytes at @large, the child in the last one. */
static void expect_large(struct __test_metadata *_metadata, char *large, unsigned long size)
{
	volatile u32 *first = (void *)large, *last = (void *)(large + size - 4);
	struct profil_range ranges[2];
	struct profil_stats s;
	pid_t child;

	ranges_at_ends(ranges, large, size);
	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, 2));
	EXPECT_TRUE(count_some(PROCESS, 0));
	for (unsigned int i = 0; i < 3; i++) {
		child = FORK({
			MUST(count_some(PROCESS, 1));
			MUST(pinned_bytes() == size);
			s = child_stops();
			MUST(s.hit > 0 && s.hit == *last && !s.dropped);
			MUST(counters_sum(large, 4, size / 4) == *first + s.hit);
		});
		EXPECT_TRUE(count_some(PROCESS, 0));
		EXPECT_EQ(0, status_of(child));
	}
	EXPECT_EQ(0U, *last);
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(s.hit, *first);
}

TEST_F_CALL(forked, child_counts_in_a_buffer_of_1000_pages,
	    expect_large(_metadata, map_private(1000 * PAGE), 1000 * PAGE))

TEST_F(forked, child_counts_in_its_copy_of_a_huge_page)
{
	const unsigned long huge = HUGE_PAGE;
	char *large = map_private(2 * huge);

	large = (char *)(((uintptr_t)large + huge - 1) & ~(huge - 1));
	if (madvise(large, huge, MADV_HUGEPAGE))
		TH_LOG("there are no huge pages: errno %d", errno);
	memset(large, 0, huge);
	expect_large(_metadata, large, huge);
}

TEST_F(forked, child_with_hugetlb_pages_has_an_ended_session)
{
	buffer = hugetlb_map(HUGE_PAGE, MAP_PRIVATE);
	NEED_HUGETLB(buffer);
	start(0);
	expect_children(_metadata, child_without_hits);
	hugetlb_unmap(buffer, HUGE_PAGE);
}

/*
 * RLIMIT_MEMLOCK and CAP_IPC_LOCK
 */

static void drop_root(void)
{
	become_user(USER);
	/* Only root can read how many pages are pinned. */
	pins = 0;
}

TEST_CHILDREN(child_needs_as_much_RLIMIT_MEMLOCK_as_its_parent, drop_root(); limit_memlock(SIZE))
{
	child_counts(1);
}

/* The session is set up by a tick, by a call of the child, or by both. */
TEST_F(forked, childs_pages_are_charged_once)
{
	struct profil_stats s;

	drop_root();
	limit_memlock(SIZE);
	start(0);
	for (unsigned int i = 0; i < 50; i++) {
		EXPECT_CHILD({
			u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + query.tick_ns * (i % 10) / 5;

			do
				loop_run(1, LOOP_BURST / 64);
			while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until);
			s = child_stops();
			MUST(s.hit == count(1) && !s.dropped);
		});
	}
	expect_stop(_metadata, 0);
}

static void child_beyond_limit(void)
{
	struct profil_stats s;
	u64 held = count_all();

	s = child_ends(1, PROFIL_END_LIMIT);
	MUST(s.hit == 0 && count_all() == held);
	MUST(s.dropped == s.dropped_buffer + s.dropped_overrun);
	MUST(try_start() == -EPERM);
	MUST(is_off(PROCESS));
}

TEST_F(forked, child_beyond_RLIMIT_MEMLOCK_has_an_ended_session)
{
	drop_root();
	start(0);
	limit_memlock(SIZE - 1);
	expect_children(_metadata, child_beyond_limit);
}

TEST_F(forked, child_of_a_parent_that_dropped_CAP_IPC_LOCK_has_a_limit)
{
	NEED_ROOT("CAP_IPC_LOCK");
	limit_memlock(SIZE - 1);
	start(0);
	drop_root();
	expect_children(_metadata, child_beyond_limit);
}

TEST_CHILDREN(child_with_CAP_IPC_LOCK_has_no_limit, NEED_ROOT("CAP_IPC_LOCK"); limit_memlock(0))
{
	child_counts(1);
}

/*
 * Many children
 */

/* Each child exits or is killed before, while or after its pages are pinned. */
static void expect_children_gone(struct __test_metadata *_metadata, unsigned int n,
				 unsigned int at_once)
{
	long long users_on, pins_on;
	bool killed;

	start(0);
	users_on = module_users();
	pins_on = pinned_pages();
	EXPECT_TRUE(module_is_built_in() || users_on > users);
	for (unsigned int i = 0; i < n; i += at_once) {
		killed = i / at_once % 8 == 7;
		for (unsigned int j = 0; j < at_once; j++) {
			FORK({
				if (i / at_once % 4 == 3)
					loop_run(1, LOOP_BURST / 4);
				if (killed)
					raise(SIGKILL);
			});
		}
		loop_run(0, LOOP_BURST / 8);
		EXPECT_EQ(killed ? SIGKILL : 0, statuses());
	}
	EXPECT_TRUE(await(module_users() == users_on && pinned_pages() == pins_on)) {
		TH_LOG("the module has %lld users, not %lld; %lld pages are pinned, not %lld",
		       module_users(), users_on, pinned_pages(), pins_on);
	}
	expect_loop_0(_metadata);
}

TEST_F_TIMEOUT(forked, one_thousand_children_that_exit_at_once_leak_nothing, 150)
{
	expect_children_gone(_metadata, 1000, 1);
}

TEST_F_TIMEOUT(forked, groups_of_16_children_that_exit_at_once_leak_nothing, 150)
{
	expect_children_gone(_metadata, 384, 16);
}

TEST_F_TIMEOUT(forked, twenty_children_are_counted_at_the_same_time, 150)
{
	start(0);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 20; i++)
			FORK(child_counts(1 + i % 7));
		EXPECT_EQ(0, statuses());
	}
	expect_loop_0(_metadata);
}

/* Forks 2^@n - 1 processes, all of which run at the same time. */
static void fork_descendants(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		FORK(fork_descendants(i));
	child_counts(n);
	MUST(!statuses());
}

TEST_F_TIMEOUT(forked, five_generations_of_descendants_are_counted_at_the_same_time, 150)
{
	start(0);
	EXPECT_CHILD(fork_descendants(5));
	expect_loop_0(_metadata);
}

/*
 * Races: one thread forks while another one changes the session. The first thread runs loop 0, the
 * other loop 1, for at most two ticks in each round. The children run loop 2.
 */

#define ROUNDS		50U
#define ROUNDS_MAX	1000U

static pthread_barrier_t barrier;
static void (*race_child)(void);
static int race_status;

/*
 * Runs loop @i for @least ns and a random time, which must not be synchronised with the tick. The
 * random time is often so short that both threads act at the same moment.
 */
static void run_a_while(unsigned int i, u64 least, unsigned int *seed)
{
	u64 most = rand_r(seed) % 3 ? query.tick_ns / 8 : 2 * query.tick_ns;
	u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + least + rand_r(seed) % most;

	do
		loop_run(i, LOOP_BURST / 32);
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until);
}

static void *fork_in_rounds(void *unused)
{
	unsigned int seed = 1;

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (enough)
			return unused;
		run_a_while(1, 0, &seed);
		race_status |= status_of(FORK(race_child()));
		pthread_barrier_wait(&barrier);
	}
}

/* Checks that the session is still on, and stops it. */
static bool race_stop(void)
{
	struct profil_stats s;

	if (state_of(PROCESS) != PROFIL_STATE_ON || pinned_bytes() != locked + SIZE)
		return false;
	if (session_stop(PROCESS, &s) || !accounted(&s) || s.end || pinned_bytes() != locked)
		return false;
	report->hits += s.hit;
	return true;
}

/* Some children had the first result, and others had another one. */
static bool all_seen(void)
{
	return report->on && (report->off || report->ended);
}

/*
 * In each round calls @begin(), and then @race_with() while the other thread forks. If @race_with()
 * does not stop the session, the round does. Continues until all results were seen, but for ROUNDS
 * rounds at least and ROUNDS_MAX at most.
 */
static void expect_race(struct __test_metadata *_metadata, bool (*begin)(void),
			bool (*race_with)(void), void (*child)(void))
{
	unsigned int seed = 2, on;
	u64 delay = 0;
	bool good = true;

	race_child = child;
	pthread_barrier_init(&barrier, NULL, 2);
	start_beside(fork_in_rounds, 0);
	for (unsigned int i = 0; good && i < ROUNDS_MAX && (i < ROUNDS || !all_seen()); i++) {
		good = begin();
		on = report->on;
		pthread_barrier_wait(&barrier);
		run_a_while(0, delay, &seed);
		good &= race_with();
		pthread_barrier_wait(&barrier);
		/* On any kernel, let fork come first in some rounds, and @race_with() in others. */
		if (report->on > on)
			delay -= delay / 4;
		else
			delay += query.tick_ns / 16;
		good &= (race_with == race_stop || race_stop()) && !race_status;
	}
	enough = true;
	pthread_barrier_wait(&barrier);
	stop_beside();
	EXPECT_TRUE(good && all_seen()) {
		TH_LOG("%u on, %u off, %u ended", report->on, report->off, report->ended);
	}
}

static char *view;		/* a second mapping of a shared buffer */

/* Like child_counts(), but the session can be in any state, and the buffer can be unmapped. */
static void child_of_race(void)
{
	bool mapped = !msync(buffer, SIZE, MS_ASYNC);
	char *seen = view ?: mapped ? buffer : NULL;
	u64 held = seen ? counter(seen + 2 * STRIDE, width, 0) : 0;
	u64 others = mapped && !shared ? count_all() - held : 0;
	struct profil_stats s;

	MUST(!session_stats(PROCESS, &s));
	if (s.state == PROFIL_STATE_ON && mapped) {
		MUST(loop_burn(PROCESS, 2, 1));
		s = child_stops();
		MUST(!s.dropped);
		report->on++;
	} else if (s.state != PROFIL_STATE_OFF) {
		/* The session can be on if the parent unmapped the buffer just after the fork. */
		s = child_ends(2, PROFIL_END_BUFFER);
		report->ended++;
	} else {
		loop_spend(2, 1, query.tick_ns);
		report->off++;
	}
	MUST(accounted(&s));
	if (seen)
		MUST(s.hit == counter(seen + 2 * STRIDE, width, 0) - held);
	if (mapped && !shared)
		MUST(count_all() - count(2) == others);
	MUST(is_off(PROCESS));
	MUST(pinned_bytes() == 0);
}

static bool race_start(void)
{
	return !try_start();
}

TEST_F_TIMEOUT(forked, child_forked_during_a_stop_has_the_session_on_or_off, 150)
{
	expect_race(_metadata, race_start, race_stop, child_of_race);
	EXPECT_EQ(0U, report->ended);
	EXPECT_LT(0U, report->hits);
	EXPECT_EQ(report->hits, count(0) + count(1));
	EXPECT_EQ(report->hits, count_all());
}

static char *buffers[2];	/* of the replaced session and of its replacement */

static u64 count_both(unsigned int i)
{
	return counter(buffers[0] + i * STRIDE, width, 0) +
	       counter(buffers[1] + i * STRIDE, width, 0);
}

static bool race_replace(void)
{
	struct profil_range range = range_spread(buffers[1], width);

	return !session_start(PROCESS, PROFIL_START_REPLACE, &range, 1);
}

/* The child counts in exactly one buffer: in the first (on) or in the second (off). */
static void child_of_replace(void)
{
	u64 more[2], others[2];
	struct profil_stats s;

	for (unsigned int i = 0; i < 2; i++)
		others[i] = counters_sum(buffers[i], width, SIZE / width);
	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(loop_burn(PROCESS, 2, 2));
	s = child_stops();
	MUST(!s.dropped);
	for (unsigned int i = 0; i < 2; i++) {
		more[i] = counter(buffers[i] + 2 * STRIDE, width, 0);
		MUST(counters_sum(buffers[i], width, SIZE / width) == others[i] + more[i]);
	}
	MUST(s.hit == more[0] + more[1]);
	MUST(!more[0] || !more[1]);
	report->on += !!more[0];
	report->off += !!more[1];
}

TEST_F_TIMEOUT(forked, child_forked_during_a_replacement_has_either_session, 150)
{
	static u32 own[LOOPS];
	struct profil_range range = range_of_loops(own, 4);
	struct profil_stats s;

	/* This session counts loop 0, too, which runs only while the process's session is on. */
	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	locked = pinned_bytes();

	buffers[0] = buffer;
	buffers[1] = map_private(SIZE);
	expect_race(_metadata, race_start, race_replace, child_of_replace);
	locked -= PAGE;
	ASSERT_STOP(THREAD, &s);
	EXPECT_LT(0U, s.hit);
	EXPECT_EQ(s.hit, own[0]);
	EXPECT_EQ(s.hit, count_both(0));
	EXPECT_EQ(0U, count_both(2));
}

static int memfd;

static bool race_start_mapped(void)
{
	buffer = shared ? mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0) :
			  map_private(SIZE);
	return buffer != MAP_FAILED && !try_start();
}

static bool race_unmap(void)
{
	return !munmap(buffer, SIZE);
}

TEST_F_TIMEOUT(forked, child_forked_during_munmap_has_the_session_on_or_ended, 150)
{
	expect_race(_metadata, race_start_mapped, race_unmap, child_of_race);
	EXPECT_EQ(0U, report->off);
}

TEST_F_TIMEOUT(forked, child_forked_during_munmap_of_shared_memory_has_it_on_or_ended, 150)
{
	shared = true;
	memfd = memfd_create("fork", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(memfd, SIZE));
	view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)view);
	expect_race(_metadata, race_start_mapped, race_unmap, child_of_race);
	EXPECT_EQ(0U, report->off);
	EXPECT_LT(0U, report->hits);
	EXPECT_EQ(report->hits, counter(view, width, 0) + counter(view + STRIDE, width, 0));
}

#define FORKERS	4U

static void *fork_often(void *i)
{
	for (unsigned int round = 0; round < 12; round++) {
		loop_run(1 + (uintptr_t)i, LOOP_BURST / 4);
		MUST(!status_of(FORK(child_counts(FORKERS + 1))));
	}
	return NULL;
}

TEST_F_TIMEOUT(forked, children_of_4_threads_that_fork_all_the_time_are_counted, 150)
{
	start(0);
	in_threads(FORKERS, fork_often);
	EXPECT_TRUE(count_some(PROCESS, 0));
	EXPECT_EQ(0U, count(FORKERS + 1));
	expect_stop(_metadata, count_all());
}

TEST_HARNESS_MAIN
