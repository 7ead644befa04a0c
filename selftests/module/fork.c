// SPDX-License-Identifier: GPL-2.0
/*
 * After fork, parent and child each count for themselves, and nothing is lost.
 *
 * Loop i has a counter of its own. A loop is run by one process only, or not at the
 * time of a fork: so what a copy of the buffer must hold is known exactly, tick for
 * tick. Children look after themselves, and tell by their exit status.
 */
#include "kselftest_harness.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "kernel.h"
#include "loop.h"
#include "process.h"

#define PROCESS	PROFIL_SCOPE_PROCESS
#define THREAD	PROFIL_SCOPE_THREAD

#define PAGE	4096UL
#define SIZE	(4 * PAGE)
#define STRIDE	(SIZE / LOOPS)	/* bytes: two counters in each page */

#define SOME	6U	/* ticks */

/* A test has one session at a time, and a process of its own. */
static char *buffer;		/* SIZE bytes */
static u32 width;
static bool shared;		/* by parents and children */

/* What processes tell each other, in shared memory. */
static struct report {
	atomic_int turn;
	atomic_uint on, off, ended;	/* how children found their sessions */
	atomic_ullong hits;
	struct profil_stats stats[LOOPS];
	u64 held[LOOPS];
} *report;

static struct profil_query query;
static u64 locked;		/* before the test */
static long long users, pins;

/* Loop i in counter i * STRIDE / @width, in all of SIZE bytes from @mem on. */
static struct profil_range range_spread(volatile void *mem, u32 width)
{
	struct profil_range range = range_of_loops(mem, width);

	range.scale = STRIDE / width * 65536;
	range.nr_counters = SIZE / width;
	return range;
}

static int start(void)
{
	struct profil_range range = range_spread(buffer, width);

	return session_start(PROCESS, 0, &range, 1);
}

/* What is counted of loop @i. */
static u64 count(unsigned int i)
{
	return counter(buffer + i * STRIDE, width, 0);
}

static u64 count_all(void)
{
	return counters_sum(buffer, width, SIZE / width);
}

static void *map(unsigned long size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * What a child does in most tests: runs loop @i, and stops. That and nothing else has
 * been counted, and not one tick was dropped.
 */
static void child_counts(unsigned int i, struct profil_stats *s)
{
	u64 held = count(i), held_all = count_all();

	MUST(loop_burn(PROCESS, i, SOME));
	MUST(locked_bytes() == SIZE);
	MUST(!session_stats(PROCESS, s));
	MUST(s->state == PROFIL_STATE_ON);
	MUST(s->locked == SIZE);
	MUST(!session_stop(PROCESS, s));
	MUST(s->end == PROFIL_END_NONE);
	MUST(accounted(s));
	MUST(s->ticks >= SOME);
	MUST(s->hit > 0);
	MUST(!s->dropped);
	MUST(count(i) == held + s->hit);
	MUST(shared || count_all() == held_all + s->hit);
	MUST(locked_bytes() == 0);
	MUST(is_off(PROCESS));
}

/* The parent's part of the same. Returns what it says that it has counted. */
static u64 stop_hit(struct __test_metadata *_metadata)
{
	struct profil_stats s = { 0 };

	EXPECT_EQ((u32)PROFIL_STATE_ON, state_of(PROCESS));
	EXPECT_EQ(locked + SIZE, locked_bytes());
	EXPECT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
	/* Of threads that have exited. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
	EXPECT_EQ(locked, locked_bytes());
	return s.hit;
}

/* Up to the stop some may be kept, and not be in @counted yet. */
#define expect_stop(metadata, counted) do {		\
	u64 hit_ = stop_hit(metadata);			\
							\
	EXPECT_EQ((u64)(counted), hit_);		\
} while (0)

static void set_up(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, device_query(&query)) {
		TH_LOG("%s must be there", PROFIL_DEVICE);
	}
	ASSERT_NE(0U, query.features & PROFIL_FEATURE_FORK);
	buffer = map(SIZE, shared ? MAP_SHARED : MAP_PRIVATE);
	report = map(sizeof(*report), MAP_SHARED);
	ASSERT_NE(NULL, buffer);
	ASSERT_NE(NULL, report);
	locked = locked_bytes();
	users = module_users();
	pins = pinned_pages();
	ASSERT_LT(0, users);
}

/* Whatever became of a test and its children, nothing stays. */
static void tear_down(struct __test_metadata *_metadata)
{
	session_stop(PROCESS, NULL);
	session_stop(THREAD, NULL);
	EXPECT_EQ(locked, locked_bytes());
	EXPECT_TRUE(await(module_users() == users)) {
		TH_LOG("the module has %lld users, not %lld", module_users(), users);
	}
	EXPECT_TRUE(await(pinned_pages() == pins)) {
		TH_LOG("%lld pages are pinned, not %lld", pinned_pages(), pins);
	}
}

/*
 * Each kind of counters, in memory of each kind
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

TEST_F(fork, leaves_both_on_and_the_childs_statistics_begin_at_0)
{
	struct profil_stats before, s;
	pid_t child;

	ASSERT_EQ(0, start());
	/* More than what a child needs to set up its session, even if the kernel checks itself. */
	EXPECT_TRUE(loop_burn(PROCESS, 0, 100));
	ASSERT_EQ(0, session_stats(PROCESS, &before));
	EXPECT_EQ(before.hit, count(0));

	child = fork();
	if (!child) {
		MUST(locked_bytes() == 0);
		MUST(!session_stats(PROCESS, &s));
		MUST(s.state == PROFIL_STATE_ON && s.end == PROFIL_END_NONE);
		MUST(accounted(&s));
		MUST(s.hit == 0);
		MUST(s.ticks < before.ticks && s.expected < before.expected);
		MUST(s.locked == SIZE && locked_bytes() == SIZE);
		MUST(is_off(THREAD));
		MUST(count(0) == before.hit);
		child_counts(1, &report->stats[1]);
		MUST(count(0) == before.hit);
		MUST(session_stop(PROCESS, NULL) == -EINVAL);
		loop_spend(1, SOME, query.tick_ns);
		MUST(count(1) == report->stats[1].hit);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, session_stats(PROCESS, &s));
	EXPECT_LE(before.ticks, s.ticks);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(loop_burn(PROCESS, 2, SOME));
	EXPECT_EQ(before.hit, count(0));
	EXPECT_EQ(shared ? report->stats[1].hit : 0, count(1));
	EXPECT_LT(0U, count(2));
	expect_stop(_metadata, count(0) + count(2));
	EXPECT_EQ(count(0) + count(1) + count(2), count_all());
}

/*
 * Generation @i of a chain runs loop @i, also before its child is born if @ticks, and then
 * while the child and all that follow do the same.
 */
static void generation(unsigned int i, bool ticks)
{
	struct profil_stats s;
	u64 inherited = count_all();
	pid_t child = 0;

	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(count(i) == 0);
	if (ticks)
		MUST(loop_burn(PROCESS, i, SOME));
	report->held[i] = count(i);
	if (i + 1 < LOOPS) {
		child = fork();
		MUST(child >= 0);
		if (!child) {
			for (unsigned int j = 0; j <= i; j++)
				MUST(shared || count(j) == report->held[j]);
			generation(i + 1, ticks);
			_exit(0);
		}
	}
	MUST(loop_burn(PROCESS, i, SOME));
	MUST(locked_bytes() == SIZE);
	MUST(!session_stop(PROCESS, &s));
	MUST(locked_bytes() == 0);
	MUST(accounted(&s));
	MUST(s.end == PROFIL_END_NONE && !s.dropped);
	MUST(s.hit > 0 && s.hit == count(i));
	MUST(shared || count_all() == inherited + s.hit);
	if (child)
		MUST(status_of(child) == 0);
}

static void expect_chain(struct __test_metadata *_metadata, bool ticks)
{
	pid_t child;

	child = fork();
	if (!child) {
		MUST(!start());
		generation(0, ticks);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
}

TEST_F(fork, of_8_generations_is_counted_for_each)
{
	expect_chain(_metadata, true);
}

TEST_F(fork, of_8_generations_at_once_is_counted_for_each)
{
	expect_chain(_metadata, false);
}

TEST_F(fork, again_and_again_gives_each_child_a_session)
{
	pid_t children[LOOPS];
	unsigned int i;

	ASSERT_EQ(0, start());
	for (i = 1; i < LOOPS; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		report->held[i] = count(0);
		children[i] = fork();
		if (!children[i]) {
			MUST(shared || count(0) == report->held[i]);
			MUST(shared || count_all() == report->held[i]);
			child_counts(i, &report->stats[i]);
			_exit(0);
		}
		ASSERT_LT(0, children[i]);
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	for (i = 1; i < LOOPS; i++)
		EXPECT_EQ(0, status_of(children[i]));
	for (i = 1; i < LOOPS; i++)
		EXPECT_EQ(shared ? report->stats[i].hit : 0, count(i));
	expect_stop(_metadata, count(0));
}

/* In shared memory they raise the same counter at the same time. */
TEST_F(fork, of_5_that_run_the_same_loop_loses_no_update)
{
	struct profil_stats s;
	pid_t children[4];
	u64 held;

	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	held = count(0);
	for (unsigned int i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = fork();
		if (!children[i]) {
			MUST(await(report->turn));
			MUST(loop_burn(PROCESS, 0, 25));
			MUST(!session_stop(PROCESS, &s));
			MUST(accounted(&s));
			MUST(s.hit + s.dropped_contended + s.outside == s.ticks);
			MUST(shared || count(0) == held + s.hit);
			MUST(shared || count_all() == held + s.hit);
			report->hits += s.hit;
			_exit(0);
		}
		ASSERT_LT(0, children[i]);
	}
	report->turn = 1;
	EXPECT_TRUE(loop_burn(PROCESS, 0, 25));
	for (unsigned int i = 0; i < ARRAY_SIZE(children); i++)
		EXPECT_EQ(0, status_of(children[i]));
	EXPECT_LT(50U, report->hits);
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit + (shared ? report->hits : 0), count(0));
	EXPECT_EQ(count(0), count_all());
}

static atomic_bool enough;

static void *run_loop(void *i)
{
	while (!enough)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

/*
 * Threads run loops 1 to 3 all the time: what the copy holds of these was counted before
 * the fork was over, and nothing is missing that was counted before it began.
 */
TEST_F(fork, of_a_parent_with_threads_copies_what_was_counted)
{
	u64 before[4], after[4];
	pthread_t threads[4];
	unsigned int i;
	pid_t child;

	ASSERT_EQ(0, start());
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_loop, (void *)(uintptr_t)i));
	}
	for (unsigned int round = 0; round < 10; round++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 10));
		for (i = 0; i <= 3; i++)
			before[i] = count(i);
		child = fork();
		if (!child) {
			for (i = 0; i <= 3; i++)
				report->held[i] = count(i);
			child_counts(4, &report->stats[4]);
			for (i = 0; i <= 3; i++)
				MUST(shared || count(i) == report->held[i]);
			_exit(0);
		}
		ASSERT_LT(0, child);
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
	enough = true;
	for (i = 1; i <= 3; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_LT(0U, count(i));
	}
	expect_stop(_metadata, count(0) + count(1) + count(2) + count(3));
}

/*
 * Every tick into one counter: what the copy held at the fork is what the counter has
 * more than the child has counted.
 */
TEST_F(fork, itself_is_counted_too)
{
	struct profil_range range = range_all(buffer, SIZE / width, width);
	struct profil_stats s;
	u64 before, after;
	pid_t child;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	for (unsigned int round = 0; round < 20; round++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		before = count(0);
		child = fork();
		if (!child) {
			MUST(loop_burn(PROCESS, 1, 3));
			MUST(!session_stop(PROCESS, &s));
			MUST(accounted(&s));
			MUST(s.ticks >= 3 && s.hit == s.ticks);
			report->held[1] = count(0) - s.hit;
			report->hits += s.hit;
			_exit(0);
		}
		ASSERT_LT(0, child);
		after = count(0);
		EXPECT_EQ(0, status_of(child));
		EXPECT_LE(before, report->held[1]);
		if (!shared) {
			EXPECT_LE(report->held[1], after);
		}
	}
	EXPECT_EQ((u32)PROFIL_STATE_ON, state_of(PROCESS));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_EQ(s.hit + (shared ? report->hits : 0), count(0));
	EXPECT_EQ(count(0), count_all());
}

/*
 * What the child does with its session, and what others do with theirs
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

TEST_F(forked, child_may_stop_at_once)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 50; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 1));
		child = fork();
		if (!child) {
			u64 held = count_all();

			/* For some of them a tick comes first. */
			loop_run(1, 1 + i % 5 * LOOP_BURST / 2);
			MUST(!session_stop(PROCESS, &s));
			MUST(accounted(&s));
			MUST(s.end == PROFIL_END_NONE);
			MUST(s.hit == count(1));
			MUST(s.hit == count_all() - held);
			MUST(locked_bytes() == 0);
			MUST(is_off(PROCESS));
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_EQ(0, status_of(child));
	}
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_may_not_start_another_but_replace_it)
{
	struct profil_stats s;
	u64 held;
	pid_t child;
	char *first = buffer;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 20; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 1));
		child = fork();
		if (!child) {
			struct profil_range range;

			held = count_all();
			MUST(start() == -EBUSY);
			loop_run(1, 1 + i % 5 * LOOP_BURST / 2);
			/* Now the page where the first one is, now another. */
			buffer = i % 2 ? first : map(SIZE, MAP_PRIVATE);
			range = range_spread(buffer, width);
			MUST(!session_start(PROCESS, PROFIL_START_REPLACE, &range, 1));
			held = i % 2 ? count_all() : held;
			MUST(locked_bytes() == SIZE);
			child_counts(2, &s);
			MUST(counters_sum(first, width, SIZE / width) ==
			     held + (i % 2 ? s.hit : counter(first + STRIDE, width, 0)));
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_EQ(0, status_of(child));
	}
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_may_start_anew_and_fork_again)
{
	struct profil_stats s;
	pid_t child;
	int status;

	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		child_counts(1, &s);
		MUST(!start());
		child = fork();
		if (!child) {
			child_counts(2, &s);
			/* Now there is none to be inherited. */
			child = fork();
			if (!child) {
				MUST(is_off(PROCESS));
				loop_spend(3, SOME, query.tick_ns);
				MUST(count(3) == 0);
				_exit(0);
			}
			status = status_of(child);
			MUST(status == 0);
			_exit(0);
		}
		child_counts(4, &s);
		status = status_of(child);
		MUST(status == 0);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_goes_on_when_the_parent_stops)
{
	struct profil_stats s;
	pid_t child;

	for (unsigned int i = 0; i < 20; i++) {
		u64 held = count(0);

		ASSERT_EQ(0, start());
		EXPECT_TRUE(loop_burn(PROCESS, 0, 1));
		child = fork();
		if (!child) {
			MUST(await(report->turn > (int)i));
			child_counts(1, &s);
			_exit(0);
		}
		ASSERT_LT(0, child);
		expect_stop(_metadata, count(0) - held);
		report->turn++;
		EXPECT_EQ(0, status_of(child));
		EXPECT_EQ(count(0), count_all());
	}
}

TEST_F(forked, child_that_outlives_its_parent_goes_on)
{
	struct profil_stats s;
	pid_t child;
	int ends[2];
	char c = 1;

	ASSERT_EQ(0, pipe(ends));
	child = fork();
	if (!child) {
		MUST(!start());
		MUST(loop_burn(PROCESS, 0, SOME));
		child = getpid();
		if (!fork()) {
			MUST(await(getppid() != child));
			child_counts(1, &s);
			MUST(write(ends[1], "", 1) == 1);
		}
		_exit(0);
	}
	ASSERT_LT(0, child);
	close(ends[1]);
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(1, read(ends[0], &c, 1));
	EXPECT_EQ(0, c);
}

static void *fork_here(void *unused)
{
	struct profil_stats s;
	pid_t child;

	(void)unused;
	MUST(!session_start(THREAD, 0, NULL, 0));
	child = fork();
	if (!child) {
		MUST(is_off(THREAD));
		child_counts(1, &s);
		_exit(0);
	}
	MUST(!session_stop(THREAD, NULL));
	return (void *)(uintptr_t)(child < 0 ? -1 : status_of(child));
}

TEST_F(forked, child_may_be_that_of_any_thread)
{
	pthread_t thread;
	void *status;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 20; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, fork_here, NULL));
		EXPECT_TRUE(loop_burn(PROCESS, 0, 3));
		ASSERT_EQ(0, pthread_join(thread, &status));
		EXPECT_NULL(status);
	}
	expect_stop(_metadata, count(0));
}

/* The session of a thread that forks is not inherited, and counts what its process counts. */
TEST_F(forked, child_has_the_session_of_the_process_only)
{
	static u32 own[LOOPS];
	struct profil_range range = range_of_loops(own, 4);
	struct profil_stats s, t;
	pid_t child;

	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		u64 held = own[0];

		MUST(is_off(THREAD));
		MUST(session_stop(THREAD, NULL) == -EINVAL);
		MUST(locked_bytes() == SIZE);
		MUST(loop_burn(PROCESS, 2, SOME));
		MUST(own[2] == 0 && own[0] == held);
		/* It may have one of its own beside it. */
		MUST(!session_start(THREAD, 0, &range, 1));
		MUST(loop_burn(THREAD, 1, SOME));
		MUST(!session_stop(THREAD, &t));
		MUST(accounted(&t) && t.hit > 0 && t.hit == own[1] && t.hit == count(1));
		MUST(loop_burn(PROCESS, 3, SOME));
		MUST(own[3] == 0);
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s) && !s.dropped);
		MUST(s.hit == count(1) + count(2) + count(3));
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_TRUE(loop_burn(THREAD, 0, SOME));
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, session_stop(THREAD, &t));
	EXPECT_TRUE(accounted(&t));
	EXPECT_EQ(t.hit, own[0]);
	EXPECT_EQ(t.hit, count(0));
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_of_a_process_with_a_threads_session_alone_has_none)
{
	struct profil_range range = range_spread(buffer, width);
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	EXPECT_TRUE(loop_burn(THREAD, 0, SOME));
	child = fork();
	if (!child) {
		u64 held = count_all();

		MUST(is_off(PROCESS) && is_off(THREAD));
		loop_spend(0, SOME, query.tick_ns);
		MUST(is_off(PROCESS) && is_off(THREAD));
		MUST(count_all() == held);
		MUST(locked_bytes() == 0);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(loop_burn(THREAD, 0, SOME));
	ASSERT_EQ(0, session_stop(THREAD, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, count(0));
}

TEST_F(forked, child_of_a_child_whose_session_has_ended_has_none)
{
	struct profil_stats s;
	pid_t child;
	int status;

	ASSERT_EQ(0, madvise(buffer, SIZE, MADV_DONTFORK));
	ASSERT_EQ(0, start());
	child = fork();
	if (!child) {
		MUST(state_of(PROCESS) == PROFIL_STATE_ENDED);
		child = fork();
		if (!child)
			_exit(!is_off(PROCESS));
		status = status_of(child);
		MUST(status == 0);
		MUST(!session_stop(PROCESS, &s));
		MUST(s.end == PROFIL_END_BUFFER);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	expect_stop(_metadata, 0);
}

/* Before, nothing is pinned for it; with it, all is, whether or not the child calls. */
TEST_F(forked, child_has_its_pages_with_its_first_tick_in_a_range)
{
	struct profil_stats s;
	pid_t child;
	u64 until;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 5; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		child = fork();
		if (!child) {
			until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 3 * query.tick_ns;
			while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
				burn();
			MUST(locked_bytes() == 0);
			MUST(loop_until(1, locked_bytes() == SIZE));
			MUST(!session_stop(PROCESS, &s));
			MUST(accounted(&s) && !s.dropped);
			MUST(s.outside > 0);
			MUST(s.hit > 0 && s.hit == count(1));
			MUST(locked_bytes() == 0);
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_EQ(0, status_of(child));
	}
	expect_stop(_metadata, count(0));
}

TEST_F(forked, child_counts_the_same_modes)
{
	struct profil_range range = range_spread(buffer, width);
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, session_start_modes(PROCESS, PROFIL_MODE_SYSTEM, &range, 1));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		MUST(loop_burn(PROCESS, 1, 2 * SOME));
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s));
		MUST(s.unselected > 0);
		MUST(s.user == 0);
		MUST(count(1) <= s.hit);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LT(0U, s.unselected);
	EXPECT_EQ(0U, s.user);
}

TEST_F(forked, child_leaves_counters_full_that_are)
{
	struct profil_stats s;
	pid_t child;

	memset(buffer + STRIDE, 0xff, width);
	ASSERT_EQ(0, start());
	child = fork();
	if (!child) {
		MUST(loop_burn(PROCESS, 1, SOME));
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s));
		MUST(s.saturated > 0 && s.hit == 0 && s.dropped == 0);
		MUST(count(1) == UINT32_MAX);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	expect_stop(_metadata, 0);
}

TEST_F(forked, child_of_a_session_without_counters_is_on)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, session_start(PROCESS, 0, NULL, 0));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		MUST(loop_burn(PROCESS, 0, SOME));
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s));
		MUST(s.ticks == s.outside && s.locked == 0);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.ticks, s.outside);
}

/*
 * What becomes of the buffer
 */

/* The child's session has ended, or will, for the reason @end; nothing of it is left. */
static void child_must_end(u32 end, struct profil_stats *s)
{
	MUST(await(state_of(PROCESS) == PROFIL_STATE_ENDED));
	MUST(locked_bytes() == 0);
	MUST(!session_stats(PROCESS, s));
	MUST(s->end == end);
	MUST(s->locked == 0);
	MUST(accounted(s));
	loop_spend(1, 2, query.tick_ns);
	MUST(!session_stop(PROCESS, s));
	MUST(s->end == end);
	MUST(accounted(s));
	MUST(is_off(PROCESS));
}

/* Runs loop 0, forks a child that does @child(), and goes on. */
static void expect_child(struct __test_metadata *_metadata, void (*child_does)(void))
{
	pid_t child;

	for (unsigned int i = 0; i < 5; i++) {
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		child = fork();
		if (!child) {
			child_does();
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
		EXPECT_EQ(0, status_of(child));
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, 2));
	EXPECT_EQ(count(0), count_all());
	expect_stop(_metadata, count(0));
}

static void child_without_buffer(void)
{
	struct profil_stats s;

	MUST(msync(buffer, PAGE, MS_ASYNC) && errno == ENOMEM);
	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == 0);
	/* It can begin again, and nobody is in the way. */
	buffer = map(SIZE, MAP_PRIVATE);
	MUST(!start());
	child_counts(1, &s);
}

TEST_F(forked, child_without_the_buffer_has_an_ended_session)
{
	ASSERT_EQ(0, madvise(buffer, SIZE, MADV_DONTFORK));
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_without_buffer);
}

static void child_with_most_of_it(void)
{
	struct profil_stats s;

	/* Loops 2 and 3 are counted in the page that is not there. */
	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == count(1));
}

TEST_F(forked, child_without_a_page_of_the_buffer_has_one_too)
{
	ASSERT_EQ(0, start());
	ASSERT_EQ(0, madvise(buffer + PAGE, PAGE, MADV_DONTFORK));
	expect_child(_metadata, child_with_most_of_it);
}

static void child_with_wiped_buffer(void)
{
	struct profil_stats s;

	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == 0);
	MUST(count_all() == 0);
	MUST(!start());
	child_counts(1, &s);
}

TEST_F(forked, child_whose_copy_is_wiped_has_an_ended_session)
{
	ASSERT_EQ(0, madvise(buffer, SIZE, MADV_WIPEONFORK));
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_with_wiped_buffer);
}

/* The page table of a child does not have shared memory: it takes a fault. */
TEST_F(forked, child_gets_shared_pages_that_it_does_not_touch)
{
	struct profil_stats s;
	pid_t child;

	buffer = map(SIZE, MAP_SHARED);
	ASSERT_NE(NULL, buffer);
	ASSERT_EQ(0, start());
	child = fork();
	if (!child) {
		MUST(loop_until(1, locked_bytes() == SIZE));
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s) && !s.dropped);
		MUST(s.hit > 0 && s.hit == count(1));
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_LT(0U, count(1));
	expect_stop(_metadata, 0);
}

static volatile sig_atomic_t nr_signals;

static void count_signal(int number)
{
	(void)number;
	nr_signals++;
}

/* The timer expires by the scheduler's tick: a signal is pending whenever a tick comes. */
static void child_with_signals(void)
{
	const struct itimerval often = { { 0, 1 }, { 0, 1 } }, never = {};
	u64 inherited = count_all();
	struct profil_stats s;

	MUST(signal(SIGPROF, count_signal) != SIG_ERR);
	MUST(!setitimer(ITIMER_PROF, &often, NULL));
	MUST(loop_until(1, locked_bytes() == SIZE && nr_signals && count_all() > inherited));
	MUST(!setitimer(ITIMER_PROF, &never, NULL));
	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s) && !s.dropped);
	/* A tick while a signal frame is made may be charged a few bytes beside the loop. */
	MUST(s.hit > 0 && s.hit == count_all() - inherited);
}

TEST_F(forked, child_with_a_signal_at_each_tick_is_set_up)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_with_signals);
}

#define MUCH	(64UL << 20)

/* One call, which takes some ticks, and then waits for a page that nobody brings. */
static void *populate(void *memory)
{
	madvise(memory, MUCH, MADV_POPULATE_WRITE);
	return NULL;
}

/* Its first tick comes to a thread that does not return to user mode any more. */
static void child_with_a_thread_in_a_call(void)
{
	char *memory = map(MUCH, MAP_PRIVATE);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register last = {
		.range = { (u64)memory + MUCH - getpagesize(), getpagesize() },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffd_msg missing;
	struct profil_stats s;
	pthread_t thread;

	MUST(memory && fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	MUST(!ioctl(fd, UFFDIO_REGISTER, &last));
	MUST(!pthread_create(&thread, NULL, populate, memory));
	MUST(read(fd, &missing, sizeof(missing)) == sizeof(missing));
	MUST(loop_until(1, locked_bytes() == SIZE));
	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s) && !s.dropped);
	MUST(s.system > 0 && s.hit > 0);
}

TEST_F(forked, child_is_set_up_while_a_thread_of_it_is_in_a_call)
{
	if (geteuid())
		SKIP(return, "only root can keep the kernel waiting by userfaultfd");
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_with_a_thread_in_a_call);
}

/* Whoever would be asked for the page is the one whose tick needs it. */
static void child_that_serves_its_pages(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = {
		.range = { (u64)buffer, SIZE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffd_msg missing;
	struct profil_stats s;

	MUST(fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	MUST(!madvise(buffer, SIZE, MADV_DONTNEED));
	MUST(!ioctl(fd, UFFDIO_REGISTER, &all));
	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == 0);
	MUST(read(fd, &missing, sizeof(missing)) < 0 && errno == EAGAIN);
	close(fd);
	MUST(count_all() == 0);
}

TEST_F(forked, child_that_serves_its_own_pages_is_not_kept_waiting)
{
	if (geteuid())
		SKIP(return, "only root can keep the kernel waiting by userfaultfd");
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_that_serves_its_pages);
}

/* The parent has other memory there, and the child a copy of that. */
static void child_counts_nowhere(void)
{
	struct profil_stats s;

	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == 0);
	MUST(count_all() == 0);
}

TEST_F(forked, child_does_not_count_in_what_the_parent_has_mapped_since)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, start());
	ASSERT_EQ(buffer, mmap(buffer, SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0));
	for (unsigned int i = 0; i < 5; i++) {
		child = fork();
		if (!child) {
			child_counts_nowhere();
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_EQ(0, status_of(child));
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, 10));
	EXPECT_EQ(0U, count_all());
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_LT(0U, s.hit);
}

static void child_unmaps(void)
{
	struct profil_stats s;

	MUST(!munmap(buffer, SIZE));
	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
}

TEST_F(forked, child_may_unmap_its_copy_at_once)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_unmaps);
}

static void child_write_protects(void)
{
	struct profil_stats s;

	MUST(!mprotect(buffer, SIZE, PROT_READ));
	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == count(1));
}

TEST_F(forked, child_may_make_its_copy_read_only)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_write_protects);
}

static void child_maps_another(void)
{
	struct profil_stats s;

	MUST(mmap(buffer, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == buffer);
	child_counts(1, &s);
	MUST(count_all() == s.hit);
}

TEST_F(forked, child_may_map_another_in_its_place)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_maps_another);
}

/* What it does with its mapping, once its pages are pinned, has no effect. */
static void child_loses_sight(int (*lose)(void))
{
	struct profil_stats s;

	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(!lose());
	MUST(loop_burn(PROCESS, 1, SOME));
	MUST(locked_bytes() == SIZE);
	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s));
	MUST(s.end == PROFIL_END_NONE && s.hit > 0 && !s.dropped);
	MUST(locked_bytes() == 0);
}

static int give_up_pages(void)
{
	return madvise(buffer, SIZE, MADV_DONTNEED);
}

static void child_gives_up_pages(void)
{
	child_loses_sight(give_up_pages);
	MUST(count_all() == 0);
}

TEST_F(forked, child_may_give_up_its_pages_later_and_goes_on)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_gives_up_pages);
}

static int unmap(void)
{
	return munmap(buffer, SIZE);
}

static void child_unmaps_later(void)
{
	child_loses_sight(unmap);
}

TEST_F(forked, child_may_unmap_its_copy_later_and_goes_on)
{
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_unmaps_later);
}

TEST_F(forked, child_goes_on_when_the_parent_unmaps_its_buffer)
{
	struct profil_stats s, before;
	pid_t child;

	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		MUST(await(report->turn));
		child_counts(1, &s);
		_exit(0);
	}
	ASSERT_LT(0, child);
	ASSERT_EQ(0, munmap(buffer, SIZE));
	report->turn = 1;
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, session_stats(PROCESS, &before));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
	EXPECT_LT(before.hit, s.hit);
}

/* The parent's pages are pinned; where they were mapped, the child has nothing. */
TEST_F(forked, child_of_a_parent_that_has_unmapped_its_buffer_has_an_ended_session)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, start());
	ASSERT_EQ(0, munmap(buffer, SIZE));
	child = fork();
	if (!child) {
		child_without_buffer();
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
	EXPECT_LT(0U, s.hit);
}

/* Pages of a file that is cut off are the file's no more, but still both processes'. */
TEST_F(forked, child_and_parent_go_on_when_a_file_is_cut_off)
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
	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	child = fork();
	if (!child) {
		MUST(loop_burn(PROCESS, 1, SOME));
		MUST(!session_stats(PROCESS, &s));
		counted = s.hit;
		MUST(counted == count(1));
		report->turn = 1;
		MUST(await(report->turn == 2));
		MUST(loop_burn(PROCESS, 1, SOME));
		MUST(locked_bytes() == SIZE);
		MUST(!session_stop(PROCESS, &s));
		MUST(accounted(&s));
		MUST(s.end == PROFIL_END_NONE && s.hit > counted && !s.dropped);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_TRUE(await(report->turn));
	ASSERT_EQ(0, session_stats(PROCESS, &s));
	counted = s.hit;
	ASSERT_EQ(0, ftruncate(fd, 0));
	report->turn = 2;
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_EQ(0, status_of(child));
	EXPECT_LT(counted, stop_hit(_metadata));
}

/*
 * Buffers of every kind in one session: loops 0 and 1, each of the child's own or shared,
 * in two places of one page and in pages of their own.
 */
TEST_F(forked, child_has_all_ranges)
{
	static u32 own[1024] __attribute__((aligned(4096)));
	int fd = memfd_create("fork", MFD_CLOEXEC);
	u16 *file_private;
	u64 *file_shared;
	struct profil_range ranges[LOOPS];
	struct profil_stats s;
	u64 held;
	pid_t child;

	ASSERT_EQ(0, ftruncate(fd, SIZE));
	file_private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	file_shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	ASSERT_NE(MAP_FAILED, (void *)file_private);
	ASSERT_NE(MAP_FAILED, (void *)file_shared);
	for (unsigned int i = 0; i < LOOPS; i++)
		ranges[i] = range_of(loop_at(i), loop_at(i) + LOOP_BLOCK, &own[i], 1, 4);
	for (unsigned int i = 0; i < LOOPS; i++)
		ranges[i].granule = LOOP_BLOCK;
	ranges[2].buffer = addr(&file_private[2]);
	ranges[2].width = 2;
	ranges[3].buffer = addr(&file_private[3]);
	ranges[3].width = 2;
	ranges[4].buffer = addr(&file_shared[4]);
	ranges[4].width = 8;
	ranges[5].buffer = addr(&file_shared[5]);
	ranges[5].width = 8;

	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, LOOPS));
	EXPECT_EQ(locked + 3 * PAGE, locked_bytes());
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_TRUE(loop_burn(PROCESS, 2, SOME));
	EXPECT_TRUE(loop_burn(PROCESS, 4, SOME));
	held = own[0] + file_private[2] + file_shared[4];
	child = fork();
	if (!child) {
		for (unsigned int i = 1; i < LOOPS; i += 2)
			MUST(loop_burn(PROCESS, i, SOME));
		MUST(locked_bytes() == 3 * PAGE);
		MUST(!session_stop(PROCESS, &s));
		MUST(locked_bytes() == 0);
		MUST(accounted(&s) && !s.dropped);
		MUST(own[1] && file_private[3] && file_shared[5] && own[7]);
		MUST(s.hit == own[1] + file_private[3] + file_shared[5] + own[7]);
		MUST(own[0] + file_private[2] + file_shared[4] == held);
		MUST(own[6] == 0);
		report->hits = file_shared[5];
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(loop_burn(PROCESS, 6, SOME));
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(held, own[0] + file_private[2] + file_shared[4]);
	EXPECT_EQ(s.hit, held + own[6]);
	EXPECT_EQ(0U, own[1] + file_private[3] + own[7]);
	EXPECT_EQ(report->hits, file_shared[5]);
}

/* Counts at both ends of @size bytes in the child. */
static void expect_large(struct __test_metadata *_metadata, char *large, unsigned long size)
{
	volatile u32 *first = (void *)large, *last = (void *)(large + size - 4);
	struct profil_range ranges[] = {
		range_of(loop_at(0), loop_at(0) + LOOP_BLOCK, large, size / 4, 4),
		range_of(loop_at(1), loop_at(1) + LOOP_BLOCK, large, size / 4, 4),
	};
	struct profil_stats s;
	pid_t child;

	ranges[0].granule = LOOP_BLOCK;
	ranges[1].granule = LOOP_BLOCK;
	ranges[1].offset -= (size / 4 - 1) * LOOP_BLOCK;
	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, 2));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	for (unsigned int i = 0; i < 3; i++) {
		child = fork();
		if (!child) {
			MUST(loop_burn(PROCESS, 1, SOME));
			MUST(locked_bytes() == size);
			MUST(!session_stop(PROCESS, &s));
			MUST(locked_bytes() == 0);
			MUST(accounted(&s) && !s.dropped);
			MUST(s.hit > 0 && s.hit == *last);
			MUST(counters_sum(large, 4, size / 4) == *first + s.hit);
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
		EXPECT_EQ(0, status_of(child));
	}
	EXPECT_EQ(0U, *last);
	ASSERT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, *first);
}

TEST_F(forked, child_has_a_thousand_pages)
{
	char *large = map(1000 * PAGE, MAP_PRIVATE);

	ASSERT_NE(NULL, large);
	expect_large(_metadata, large, 1000 * PAGE);
}

TEST_F(forked, child_has_what_was_a_huge_page)
{
	const unsigned long huge = 2UL << 20;
	char *large = map(2 * huge, MAP_PRIVATE);

	ASSERT_NE(NULL, large);
	large = (char *)(((uintptr_t)large + huge - 1) & ~(huge - 1));
	if (madvise(large, huge, MADV_HUGEPAGE))
		TH_LOG("there are no huge pages: errno %d", errno);
	memset(large, 0, huge);
	expect_large(_metadata, large, huge);
}

static void child_with_huge_pages(void)
{
	struct profil_stats s;

	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_BUFFER, &s);
	MUST(s.hit == 0 && count(1) == 0);
}

TEST_F(forked, child_with_hugetlb_pages_has_an_ended_session)
{
	char was[16];

	file_exchange(HUGETLB_POOL, "8", was, sizeof(was));
	buffer = map(2UL << 20, MAP_PRIVATE | MAP_HUGETLB);
	if (!buffer) {
		file_write(HUGETLB_POOL, was);
		SKIP(return, "no huge pages here: %s", strerror(errno));
	}
	EXPECT_EQ(0, start());
	expect_child(_metadata, child_with_huge_pages);
	EXPECT_EQ(0, munmap(buffer, 2UL << 20));
	file_write(HUGETLB_POOL, was);
}

/*
 * Limits
 */

static void limit_to(struct __test_metadata *_metadata, unsigned long bytes)
{
	const struct rlimit limit = { bytes, bytes };

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
}

static void be_ordinary(struct __test_metadata *_metadata)
{
	if (geteuid())
		return;
	ASSERT_EQ(0, setresgid(1000, 1000, 1000));
	ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	/* What was pinned is for root to know. */
	pins = 0;
}

static void child_counts_1(void)
{
	struct profil_stats s;

	child_counts(1, &s);
}

TEST_F(forked, child_needs_no_more_than_the_parent_of_RLIMIT_MEMLOCK)
{
	be_ordinary(_metadata);
	limit_to(_metadata, SIZE);
	ASSERT_EQ(0, start());
	expect_child(_metadata, child_counts_1);
}

/* Be it after a tick, or by its own call, or by both. */
TEST_F(forked, child_is_charged_once)
{
	struct profil_stats s;
	pid_t child;

	be_ordinary(_metadata);
	limit_to(_metadata, SIZE);
	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 100; i++) {
		child = fork();
		if (!child) {
			u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + query.tick_ns * (i % 10) / 5;

			do
				loop_run(1, LOOP_BURST / 64);
			while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until);
			MUST(!session_stop(PROCESS, &s));
			MUST(accounted(&s));
			MUST(s.end == PROFIL_END_NONE && !s.dropped);
			MUST(s.hit == count(1));
			MUST(locked_bytes() == 0);
			_exit(0);
		}
		ASSERT_LT(0, child);
		EXPECT_EQ(0, status_of(child));
	}
	expect_stop(_metadata, 0);
}

static void child_beyond_limit(void)
{
	struct profil_stats s;
	u64 held = count_all();

	loop_run(1, LOOP_BURST);
	child_must_end(PROFIL_END_LIMIT, &s);
	MUST(s.hit == 0 && count_all() == held);
	MUST(s.dropped == s.dropped_buffer + s.dropped_overrun);
	MUST(start() == -EPERM);
	MUST(is_off(PROCESS));
}

TEST_F(forked, child_beyond_RLIMIT_MEMLOCK_has_an_ended_session)
{
	be_ordinary(_metadata);
	ASSERT_EQ(0, start());
	limit_to(_metadata, SIZE - 1);
	expect_child(_metadata, child_beyond_limit);
}

TEST_F(forked, child_of_a_parent_that_gave_up_CAP_IPC_LOCK_has_a_limit)
{
	if (geteuid())
		SKIP(return, "needs CAP_IPC_LOCK: run as root");
	limit_to(_metadata, SIZE - 1);
	ASSERT_EQ(0, start());
	be_ordinary(_metadata);
	expect_child(_metadata, child_beyond_limit);
}

TEST_F(forked, child_with_CAP_IPC_LOCK_has_no_limit)
{
	if (geteuid())
		SKIP(return, "needs CAP_IPC_LOCK: run as root");
	ASSERT_EQ(0, start());
	limit_to(_metadata, 0);
	expect_child(_metadata, child_counts_1);
}

/*
 * Many
 */

/* Each child is gone or killed before, while or after its pages are pinned. */
static void expect_children_gone(struct __test_metadata *_metadata, unsigned int n,
				 unsigned int at_once)
{
	long long users_on, pins_on;
	pid_t children[16];
	bool killed;

	ASSERT_EQ(0, start());
	users_on = module_users();
	pins_on = pinned_pages();
	EXPECT_LT(users, users_on);
	for (unsigned int i = 0; i < n; i += at_once) {
		killed = i / at_once % 8 == 7;
		for (unsigned int j = 0; j < at_once; j++) {
			children[j] = fork();
			if (!children[j]) {
				if (i / at_once % 4 == 3)
					loop_run(1, LOOP_BURST / 4);
				if (killed)
					raise(SIGKILL);
				_exit(0);
			}
			ASSERT_LT(0, children[j]);
		}
		loop_run(0, LOOP_BURST / 8);
		for (unsigned int j = 0; j < at_once; j++)
			EXPECT_EQ(killed ? 128 + SIGKILL : 0, status_of(children[j]));
	}
	EXPECT_TRUE(await(module_users() == users_on)) {
		TH_LOG("the module has %lld users, not %lld", module_users(), users_on);
	}
	EXPECT_TRUE(await(pinned_pages() == pins_on)) {
		TH_LOG("%lld pages are pinned, not %lld", pinned_pages(), pins_on);
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_EQ(count(0), count_all());
	expect_stop(_metadata, count(0));
}

TEST_F_TIMEOUT(forked, child_that_exits_at_once_a_thousand_times_leaves_nothing, 150)
{
	expect_children_gone(_metadata, 1000, 1);
}

TEST_F_TIMEOUT(forked, child_that_exits_at_once_with_15_more_leaves_nothing, 150)
{
	expect_children_gone(_metadata, 640, 16);
}

TEST_F_TIMEOUT(forked, child_is_counted_with_19_others_at_the_same_time, 150)
{
	pid_t children[20];
	struct profil_stats s;

	ASSERT_EQ(0, start());
	for (unsigned int round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			if (!children[i]) {
				child_counts(1 + i % 7, &s);
				_exit(0);
			}
			ASSERT_LT(0, children[i]);
		}
		for (unsigned int i = 0; i < ARRAY_SIZE(children); i++)
			EXPECT_EQ(0, status_of(children[i]));
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_EQ(count(0), count_all());
	expect_stop(_metadata, count(0));
}

/* Children of a child, of all of them, and so on: 2^@n - 1, all at the same time. */
static void multiply(unsigned int n)
{
	struct profil_stats s;
	pid_t children[LOOPS];
	unsigned int i;

	for (i = 0; i < n; i++) {
		children[i] = fork();
		MUST(children[i] >= 0);
		if (!children[i]) {
			multiply(i);
			_exit(0);
		}
	}
	child_counts(n, &s);
	for (i = 0; i < n; i++)
		MUST(status_of(children[i]) == 0);
}

TEST_F_TIMEOUT(forked, child_may_have_children_that_have_children, 150)
{
	pid_t child;

	ASSERT_EQ(0, start());
	child = fork();
	if (!child) {
		multiply(5);
		_exit(0);
	}
	ASSERT_LT(0, child);
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_EQ(count(0), count_all());
	expect_stop(_metadata, count(0));
}

/*
 * Races: one thread forks while another does something to the session. Loop 0 is run by
 * the one, loop 1 by the other, up to two ticks in each round; loop 2 by the children.
 */

#define ROUNDS		200U
#define ROUNDS_MAX	(5 * ROUNDS)

static pthread_barrier_t barrier;
static void (*race_child)(void);
static int race_status;

/*
 * Runs loop @i for some time: waits that end with a tick must not set the pace. Often the
 * time is so short that both threads come at the same moment.
 */
static void run_a_while(unsigned int i, unsigned int *seed)
{
	u64 most = rand_r(seed) % 3 ? query.tick_ns / 8 : 2 * query.tick_ns;
	u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + rand_r(seed) % most;

	do
		loop_run(i, LOOP_BURST / 32);
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until);
}

static void *fork_in_rounds(void *unused)
{
	unsigned int seed = 1;
	pid_t child;

	(void)unused;
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (enough)
			return NULL;
		run_a_while(1, &seed);
		child = fork();
		if (!child) {
			race_child();
			_exit(0);
		}
		race_status |= child < 0 ? -1 : status_of(child);
		pthread_barrier_wait(&barrier);
	}
}

/*
 * In each round @round_begins(), and then @race() while a child is forked; until all that
 * can come of it has come, but at least some hundred times. False if it does not.
 */
static bool race(bool (*round_begins)(void), bool (*race_with)(void), bool (*round_ends)(void),
		 void (*child)(void), bool (*all_seen)(void))
{
	unsigned int seed = 2, i;
	pthread_t thread;
	bool good = true;

	race_child = child;
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, fork_in_rounds, NULL))
		return false;
	for (i = 0; good && i < ROUNDS_MAX && (i < ROUNDS || !all_seen()); i++) {
		good = round_begins();
		pthread_barrier_wait(&barrier);
		run_a_while(0, &seed);
		good &= race_with();
		pthread_barrier_wait(&barrier);
		good &= round_ends() && !race_status;
	}
	enough = true;
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return good && all_seen();
}

static char *view;		/* of a shared buffer, to see it when it is unmapped */

/* As child_counts(), but in whatever state the session is, be there a buffer or not. */
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
		MUST(!session_stop(PROCESS, &s));
		MUST(s.end == PROFIL_END_NONE && !s.dropped);
		report->on++;
	} else if (s.state != PROFIL_STATE_OFF) {
		/* Also if the parent unmapped it just after the child had a copy. */
		loop_run(2, LOOP_BURST);
		child_must_end(PROFIL_END_BUFFER, &s);
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
	MUST(locked_bytes() == 0);
}

static bool race_start(void)
{
	return !start();
}

static bool race_stop(void)
{
	struct profil_stats s;

	if (session_stop(PROCESS, &s) || !accounted(&s) || locked_bytes() != locked)
		return false;
	report->hits += s.hit;
	return true;
}

static bool nothing_more(void)
{
	return true;
}

static bool seen_on_and_off(void)
{
	return report->on && report->off;
}

TEST_F_TIMEOUT(forked, child_while_the_parent_stops_is_on_or_off, 150)
{
	EXPECT_TRUE(race(race_start, race_stop, nothing_more, child_of_race, seen_on_and_off)) {
		TH_LOG("%u on, %u off", report->on, report->off);
	}
	EXPECT_EQ(0U, report->ended);
	EXPECT_LT(0U, report->hits);
	EXPECT_EQ(report->hits, count(0) + count(1));
	EXPECT_EQ(report->hits, count_all());
}

static char *buffers[2];	/* of the session that is replaced, and of the next */

static u64 count_both(unsigned int i)
{
	return counter(buffers[0] + i * STRIDE, width, 0) +
	       counter(buffers[1] + i * STRIDE, width, 0);
}

static bool race_start_first(void)
{
	buffer = buffers[0];
	return !start();
}

static bool race_replace(void)
{
	struct profil_range range = range_spread(buffers[1], width);

	return !session_start(PROCESS, PROFIL_START_REPLACE, &range, 1);
}

/* Counts in one of them, whichever it is, and not in the other. */
static void child_of_replace(void)
{
	u64 more[2], others[2];
	struct profil_stats s;

	for (unsigned int i = 0; i < 2; i++)
		others[i] = counters_sum(buffers[i], width, SIZE / width);
	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(loop_burn(PROCESS, 2, 2));
	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s) && !s.dropped && s.end == PROFIL_END_NONE);
	for (unsigned int i = 0; i < 2; i++) {
		more[i] = counter(buffers[i] + 2 * STRIDE, width, 0);
		MUST(counters_sum(buffers[i], width, SIZE / width) == others[i] + more[i]);
	}
	MUST(s.hit == more[0] + more[1]);
	MUST(!more[0] || !more[1]);
	report->on += !!more[0];
	report->off += !!more[1];
	MUST(locked_bytes() == 0);
}

TEST_F_TIMEOUT(forked, child_while_the_parent_replaces_has_the_one_or_the_other, 150)
{
	static u32 own[LOOPS];
	struct profil_range range = range_of_loops(own, 4);
	struct profil_stats s;

	/* A witness of loop 0, which runs only while there is a session of the process. */
	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	locked = locked_bytes();

	buffers[0] = buffer;
	buffers[1] = map(SIZE, MAP_PRIVATE);
	ASSERT_NE(NULL, buffers[1]);
	EXPECT_TRUE(race(race_start_first, race_replace, race_stop, child_of_replace,
			 seen_on_and_off)) {
		TH_LOG("%u have the old, %u the new", report->on, report->off);
	}
	locked -= PAGE;
	ASSERT_EQ(0, session_stop(THREAD, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LT(0U, s.hit);
	EXPECT_EQ(s.hit, own[0]);
	EXPECT_EQ(s.hit, count_both(0));
	EXPECT_EQ(0U, count_both(2));
}

static int memfd;

static bool race_start_mapped(void)
{
	buffer = shared ? mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0) :
			  map(SIZE, MAP_PRIVATE);
	return buffer && buffer != MAP_FAILED && !start();
}

static bool race_unmap(void)
{
	return !munmap(buffer, SIZE);
}

static bool race_unmapped(void)
{
	struct profil_stats s;

	if (state_of(PROCESS) != PROFIL_STATE_ON || locked_bytes() != locked + SIZE)
		return false;
	if (session_stop(PROCESS, &s) || !accounted(&s) || s.end || locked_bytes() != locked)
		return false;
	report->hits += s.hit;
	return true;
}

static bool seen_on_and_ended(void)
{
	return report->on && report->ended;
}

TEST_F_TIMEOUT(forked, child_while_the_parent_unmaps_is_on_or_has_ended, 150)
{
	EXPECT_TRUE(race(race_start_mapped, race_unmap, race_unmapped, child_of_race,
			 seen_on_and_ended)) {
		TH_LOG("%u on, %u ended", report->on, report->ended);
	}
	EXPECT_EQ(0U, report->off);
}

TEST_F_TIMEOUT(forked, child_while_the_parent_unmaps_shared_memory_is_on_or_has_ended, 150)
{
	shared = true;
	memfd = memfd_create("fork", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(memfd, SIZE));
	view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)view);
	EXPECT_TRUE(race(race_start_mapped, race_unmap, race_unmapped, child_of_race,
			 seen_on_and_ended)) {
		TH_LOG("%u on, %u ended", report->on, report->ended);
	}
	EXPECT_EQ(0U, report->off);
	EXPECT_LT(0U, report->hits);
	EXPECT_EQ(report->hits, counter(view, width, 0) + counter(view + STRIDE, width, 0));
}

#define FORKERS	4U

static void *fork_often(void *i)
{
	struct profil_stats s;
	pid_t child;

	for (unsigned int round = 0; round < 25; round++) {
		loop_run((uintptr_t)i, LOOP_BURST / 4);
		child = fork();
		if (!child) {
			child_counts(FORKERS + 1, &s);
			_exit(0);
		}
		if (child < 0 || status_of(child))
			return "failed";
	}
	return NULL;
}

TEST_F_TIMEOUT(forked, child_of_each_of_4_threads_that_fork_all_the_time, 150)
{
	pthread_t threads[FORKERS];
	void *failure;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < FORKERS; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, fork_often,
					    (void *)(uintptr_t)(i + 1)));
	}
	for (unsigned int i = 0; i < FORKERS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &failure));
		EXPECT_NULL(failure);
	}
	EXPECT_TRUE(loop_burn(PROCESS, 0, SOME));
	EXPECT_EQ(0U, count(FORKERS + 1));
	expect_stop(_metadata, count_all());
}

TEST_HARNESS_MAIN
