// SPDX-License-Identifier: GPL-2.0
/*
 * Threads: no tick is lost if they share counters, and no tick is counted for another thread if
 * they do not.
 *
 * If a loop runs only while two sessions are on, both count the same ticks for it. So one session
 * is the witness of the other.
 */
#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "threads.h"

#define MAX_THREADS	8

static union {
	u16 u16[2048];
	u32 u32[1024];
	u64 u64[512];
} page __attribute__((aligned(4096)));

static struct profil_query query;

/* Threads that run the same function, each with its own number, perhaps until @enough is set. */
struct worker {
	pthread_t thread;
	unsigned int number;
	void (*work)(struct worker *worker);
	struct profil_stats stats;
	u64 value;
	u32 counters[LOOPS];
};

static struct worker workers[MAX_THREADS];

static void *work(void *worker)
{
	((struct worker *)worker)->work(worker);
	return NULL;
}

static void workers_start(unsigned int n, void (*work_of_each)(struct worker *))
{
	for (unsigned int i = 0; i < n; i++) {
		workers[i] = (struct worker){ .number = i, .work = work_of_each };
		workers[i].thread = thread_start(work, &workers[i]);
	}
}

static void workers_join(unsigned int n)
{
	while (n--)
		thread_end(workers[n].thread);
}

static void workers_run(unsigned int n, void (*work_of_each)(struct worker *))
{
	workers_start(n, work_of_each);
	workers_join(n);
}

/*
 * One session for all threads
 */

FIXTURE(threads) {
	long long users;
	u64 locked;
};

FIXTURE_VARIANT(threads) {
	unsigned int n;
};

FIXTURE_VARIANT_ADD(threads, two) { .n = 2 };
FIXTURE_VARIANT_ADD(threads, eight) { .n = 8 };

FIXTURE_SETUP(threads)
{
	ASSERT_EQ(0, device_query(&query));
	self->users = module_users();
	self->locked = pinned_bytes();
}

FIXTURE_TEARDOWN(threads)
{
	EXPECT_NO_SESSIONS(self->users, self->locked);
}

/* Starts a session and @n threads, and waits until it has 300 ticks. */
static void start_and_wait(struct __test_metadata *_metadata, struct profil_range range,
			   unsigned int n, void (*work_of_each)(struct worker *))
{
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	workers_start(n, work_of_each);
	EXPECT_TRUE(await(!session_stats(PROCESS, &s) && s.ticks >= 300));
}

/* Stops the threads, and then the session, whose counter they have also written to. */
static struct profil_stats stop_both(struct __test_metadata *_metadata, unsigned int n)
{
	struct profil_stats s = { 0 };

	enough = true;
	workers_join(n);
	EXPECT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.ticks, s.hit + s.dropped_contended + s.dropped_exit);
	EXPECT_LT(s.ticks / 4, s.hit);
	return s;
}

static void run_own_loop(struct worker *worker)
{
	run_loop((void *)(uintptr_t)worker->number);
}

TEST_F(threads, that_share_a_counter_lose_no_tick)
{
	struct profil_stats s;

	start_and_wait(_metadata, range_all(page.u32, 1, 4), variant->n, run_own_loop);
	ASSERT_STOP(PROCESS, &s);
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_EQ(s.hit, page.u32[0]);
	enough = true;
	workers_join(variant->n);
	EXPECT_EQ(s.hit, page.u32[0]) {
		TH_LOG("it still counted after the stop");
	}
}

/* The program increments the counter that the kernel increments. */
static void run_increment(struct worker *worker)
{
	while (!enough) {
		__atomic_fetch_add(&page.u64[0], 1, __ATOMIC_RELAXED);
		worker->value++;
	}
}

TEST_F(threads, that_increment_the_counter_themselves_lose_no_tick)
{
	struct profil_stats s;
	u64 own = 0;

	start_and_wait(_metadata, range_all(page.u64, 1, 8), variant->n, run_increment);
	s = stop_both(_metadata, variant->n);
	for (unsigned int i = 0; i < variant->n; i++)
		own += workers[i].value;
	EXPECT_LT(0U, own);
	EXPECT_EQ(own + s.hit, page.u64[0]);
}

/* Takes each increment back, because a narrow counter would soon be full. */
static void run_increment_and_decrement(struct worker *worker)
{
	(void)worker;
	while (!enough) {
		__atomic_fetch_add(&page.u16[0], 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&page.u16[0], 1, __ATOMIC_RELAXED);
	}
}

TEST_F(threads, that_write_to_a_narrow_counter_themselves_lose_no_tick)
{
	struct profil_stats s;

	start_and_wait(_metadata, range_all(page.u16, 1, 2), variant->n,
		       run_increment_and_decrement);
	s = stop_both(_metadata, variant->n);
	EXPECT_EQ(s.hit, page.u16[0]);
}

/* Each thread runs its own loop for the CPU time of 25 ticks. */
static void run_25_ticks(struct worker *worker)
{
	loop_spend(worker->number, 25, query.tick_ns);
	worker->value = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * Returns true if each thread's count is within 13 ticks of its CPU time. The limit is narrow
 * (about half of 5 sigma), but only one of several attempts must succeed.
 */
static bool each_sampled(unsigned int n, u64 missed)
{
	for (unsigned int i = 0; i < n; i++) {
		u64 expected = workers[i].value / query.tick_ns;

		if (expected > page.u32[i] + missed + 13 || page.u32[i] > expected + 13)
			return false;
	}
	return true;
}

/* On a busy host a guest of QEMU misses many ticks. One of several attempts must succeed. */
TEST_F(threads, are_each_sampled_in_proportion_to_their_CPU_time)
{
	struct profil_range range = range_of_loops(page.u32, 4);
	unsigned int attempts = 20;
	struct profil_stats s;

	do {
		memset(&page, 0, sizeof(page));
		ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
		workers_run(variant->n, run_25_ticks);
		ASSERT_STOP(PROCESS, &s);
		EXPECT_EQ(s.hit, counters_sum(page.u32, 4, LOOPS));
		EXPECT_EQ(s.hit, counters_sum(page.u32, 4, ARRAY_SIZE(page.u32)));
		for (unsigned int i = 0; i < variant->n; i++)
			EXPECT_LT(0U, page.u32[i]);
	} while (!each_sampled(variant->n, s.missed) && --attempts);
	EXPECT_LT(0U, attempts) {
		for (unsigned int i = 0; i < variant->n; i++)
			TH_LOG("thread %u: %u ticks of %u", i, page.u32[i],
			       (u32)(workers[i].value / query.tick_ns));
	}
}

/* Each thread starts its own session, and stops it after 30 ticks. */
static void run_own_session(struct worker *worker)
{
	struct profil_range range = range_of_loops(worker->counters, 4);

	MUST(!session_start(THREAD, 0, &range, 1));
	MUST(loop_burn(THREAD, worker->number, 30));
	MUST(!session_stop(THREAD, &worker->stats));
}

TEST_F(threads, with_their_own_sessions_are_counted_by_these_and_by_the_process)
{
	struct profil_range range = range_of_loops(page.u32, 4);
	u64 ticks = 0, hit = 0;
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	workers_run(variant->n, run_own_session);
	ASSERT_STOP(PROCESS, &s);

	for (unsigned int i = 0; i < variant->n; i++) {
		const struct worker *w = &workers[i];

		EXPECT_TRUE(accounted(&w->stats));
		EXPECT_LE(30U, w->stats.ticks);
		EXPECT_LT(w->stats.ticks / 4, w->stats.hit);
		EXPECT_EQ(w->stats.hit, w->counters[i]);
		EXPECT_EQ(w->stats.hit, counters_sum(w->counters, 4, LOOPS)) {
			TH_LOG("thread %u counted another's loop", i);
		}
		EXPECT_EQ(w->counters[i], page.u32[i]) {
			TH_LOG("thread %u and its process differ", i);
		}
		ticks += w->stats.ticks;
		hit += w->stats.hit;
	}
	EXPECT_LE(ticks, s.ticks);
	EXPECT_EQ(hit, s.hit);
	EXPECT_EQ(hit, counters_sum(page.u32, 4, ARRAY_SIZE(page.u32)));
}

/*
 * Runs a loop for a random time of at most two ticks, which must not be synchronised with the
 * tick.
 */
static void run_a_while(unsigned int number, unsigned int *seed)
{
	u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + rand_r(seed) % (2 * query.tick_ns);

	do
		loop_run(number, LOOP_BURST / 16);
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until);
}

static unsigned int nr_races;

/*
 * Starts and stops the process's session, which other threads also do, and adds up the hits of its
 * successful stops. The loop that runs in between has the thread's number, so its counter belongs
 * to the thread, whichever thread started the session.
 */
static void run_races(struct worker *worker)
{
	struct profil_range range = range_of_loops(page.u32, 4);
	unsigned int seed = worker->number;
	int err;

	for (unsigned int i = 0; i < nr_races; i++) {
		err = session_start(PROCESS, 0, &range, 1);
		MUST(!err || err == -EBUSY);
		run_a_while(worker->number, &seed);
		err = session_stop(PROCESS, &worker->stats);
		MUST(err ? err == -EINVAL : accounted(&worker->stats));
		if (!err)
			worker->value += worker->stats.hit;
	}
}

/* On a busy host it may happen that no tick finds a session on. Then try again. */
TEST_F(threads, that_race_to_start_and_stop_lose_no_tick)
{
	unsigned int attempts = 10;
	u64 hit = 0;

	nr_races = 96 / variant->n;
	do {
		workers_run(variant->n, run_races);
		EXPECT_EQ(-EINVAL, session_stop(PROCESS, NULL));

		for (unsigned int i = 0; i < variant->n; i++)
			hit += workers[i].value;
		EXPECT_EQ(hit, counters_sum(page.u32, 4, ARRAY_SIZE(page.u32)));
	} while (!hit && --attempts);
	EXPECT_LT(0U, hit);
}

/* Each thread replaces the process's session, while the thread's own session is the witness. */
static void run_replaces(struct worker *worker)
{
	struct profil_range own = range_of_loops(worker->counters, 4);
	struct profil_range range = range_of_loops(page.u32, 4);
	unsigned int seed = worker->number;

	MUST(!session_start(THREAD, 0, &own, 1));
	for (unsigned int i = 0; i < nr_races; i++) {
		run_a_while(worker->number, &seed);
		MUST(!session_start(PROCESS, PROFIL_START_REPLACE, &range, 1));
	}
	MUST(!session_stop(THREAD, &worker->stats));
}

TEST_F(threads, that_race_to_replace_lose_no_tick_and_count_none_twice)
{
	struct profil_range range = range_of_loops(page.u32, 4);
	u64 hit = 0;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	nr_races = 96 / variant->n;
	workers_run(variant->n, run_replaces);
	ASSERT_EQ(0, session_stop(PROCESS, NULL));

	for (unsigned int i = 0; i < variant->n; i++) {
		EXPECT_TRUE(accounted(&workers[i].stats));
		EXPECT_EQ(workers[i].counters[i], page.u32[i]);
		hit += workers[i].stats.hit;
	}
	EXPECT_LT(0U, hit);
	EXPECT_EQ(hit, counters_sum(page.u32, 4, ARRAY_SIZE(page.u32)));
}

/*
 * The scope of one thread
 */

FIXTURE(thread) {
};

FIXTURE_SETUP(thread)
{
	ASSERT_EQ(0, device_query(&query));
}

FIXTURE_TEARDOWN(thread)
{
}

static pthread_barrier_t barrier;

static void run_until_barrier(struct worker *worker)
{
	struct profil_range range = range_of_loops(worker->counters, 4);

	MUST(!session_start(THREAD, 0, &range, 1));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	MUST(loop_burn(THREAD, worker->number, 10));
	MUST(!session_stop(THREAD, &worker->stats));
}

TEST_F(thread, session_is_not_visible_to_other_threads)
{
	struct profil_range range = range_of_loops(page.u32, 4);
	struct profil_stats s;

	pthread_barrier_init(&barrier, NULL, 2);
	workers_start(1, run_until_barrier);
	pthread_barrier_wait(&barrier);

	EXPECT_TRUE(is_off(THREAD));
	EXPECT_TRUE(is_off(PROCESS));
	EXPECT_EQ(-EINVAL, session_stop(THREAD, NULL));
	EXPECT_EQ(-EINVAL, session_stop(PROCESS, NULL));
	EXPECT_EQ(0, session_start(THREAD, 0, &range, 1));

	pthread_barrier_wait(&barrier);
	EXPECT_TRUE(loop_burn(THREAD, 1, 10));
	EXPECT_EQ(0, session_stop(THREAD, &s));
	workers_join(1);
	EXPECT_EQ(s.hit, page.u32[1]);
	EXPECT_EQ(s.hit, counters_sum(page.u32, 4, LOOPS));
	EXPECT_EQ(workers[0].stats.hit, workers[0].counters[0]);
	EXPECT_EQ(workers[0].stats.hit, counters_sum(workers[0].counters, 4, LOOPS));
}

TEST_F(thread, may_have_its_own_session_in_addition_to_the_process)
{
	static u32 own[1024] __attribute__((aligned(4096)));
	struct profil_range range = range_of_loops(page.u32, 4);
	struct profil_range range_own = range_of_loops(own, 4);
	struct profil_stats thread, process;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	ASSERT_EQ(0, session_start(THREAD, 0, &range_own, 1));
	EXPECT_EQ(-EBUSY, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(-EBUSY, session_start(THREAD, 0, &range_own, 1));
	EXPECT_TRUE(loop_burn(THREAD, 2, 30));
	ASSERT_STOP(THREAD, &thread);
	EXPECT_EQ((u32)PROFIL_STATE_ON, state_of(PROCESS));
	ASSERT_STOP(PROCESS, &process);
	EXPECT_LT(5U, thread.hit);
	EXPECT_EQ(thread.hit, own[2]);
	EXPECT_EQ(thread.hit, page.u32[2]);
	EXPECT_EQ(thread.hit, process.hit);
	EXPECT_LE(thread.ticks, process.ticks);
}

/* Exits while its session is on. */
static void run_and_exit(struct worker *worker)
{
	struct profil_range range = range_of_loops(page.u32, 4);

	MUST(!session_start(THREAD, 0, &range, 1));
	MUST(loop_burn(THREAD, 0, 2));
	worker->value = gettid();
}

TEST_F(thread, exit_ends_the_session_of_the_thread)
{
	u64 locked = pinned_bytes();
	long long users = module_users();

	ASSERT_TRUE(module_is_built_in() || users > 0);
	for (unsigned int i = 0; i < 20; i++)
		workers_run(1, run_and_exit);
	EXPECT_TRUE(await(module_users() == users));
	EXPECT_TRUE(await(pinned_bytes() == locked));
	EXPECT_EQ(-EINVAL, session_stop(THREAD, NULL));
}

/* Runs in a new thread, which may have the id of the exited thread. */
static void run_new(struct worker *worker)
{
	struct profil_range range = range_of_loops(page.u32, 4);

	worker->value = gettid();
	MUST(is_off(THREAD));
	MUST(!session_start(THREAD, 0, &range, 1));
	MUST(!session_stop(THREAD, NULL));
}

TEST_F(thread, does_not_have_the_session_of_an_exited_thread_with_its_id)
{
	static const char last_pid[] = "/proc/sys/kernel/ns_last_pid";
	struct profil_range range = range_of_loops(page.u32, 4);
	unsigned int reused = 0;
	struct profil_stats s;
	char text[64];
	u64 id;

	/* The mode of the file allows every user to write, but the kernel then refuses it. */
	SKIP_IF(geteuid() || access(last_pid, W_OK), "%s: needs root and CHECKPOINT_RESTORE",
		last_pid);
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	for (unsigned int tries = 0; tries < 100 && reused < 10; tries++) {
		workers_run(1, run_and_exit);
		id = workers[0].value;

		/* pthread_join() may return before the thread has exited in the kernel. */
		snprintf(text, sizeof(text), "/proc/self/task/%u", (u32)id);
		ASSERT_TRUE(await(access(text, F_OK)));
		snprintf(text, sizeof(text), "%u", (u32)id - 1);
		ASSERT_EQ(0, file_write(last_pid, text));
		workers_run(1, run_new);
		reused += workers[0].value == id;
	}
	EXPECT_LE(10U, reused);
	ASSERT_STOP(PROCESS, &s);
}

TEST_HARNESS_MAIN
