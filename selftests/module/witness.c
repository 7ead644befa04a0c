// SPDX-License-Identifier: GPL-2.0
/*
 * An independent witness: a kprobe event on the tick function, which tracefs counts for each task,
 * must have seen the ticks that the session accounts for.
 *
 * The witness sees all ticks of a task, the session only those between start and stop. A child
 * runs only between these, and otherwise sleeps, so the two differ by at most one tick for each
 * start and stop. The child's threads live until its session has stopped, because an exiting task
 * still gets ticks. The session of a forked child exists before the child's first tick, so the two
 * can differ only at its stop.
 */
#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "threads.h"

#define EVENT		"profil_witness"
#define HIST		"hist:keys=common_pid"

#define MAX_THREADS	4

static struct profil_query query;

/* Results that the child passes to its parent, in shared memory. */
struct report {
	atomic_uint ready;	/* tasks that have done their part, and sleep until the end */
	pid_t tids[1 + MAX_THREADS];	/* the child and its threads; or the chain of forks */
	struct profil_stats stats[1 + MAX_THREADS];
};

static struct report *report;
static u32 scope, nr_threads;
static bool forks;		/* the child forks instead of creating threads */

/* Returns the number of ticks of task @tid that the witness has seen. */
static u64 witnessed(pid_t tid)
{
	long long hits;
	char key[64];

	snprintf(key, sizeof(key), "{ common_pid: %10d } hitcount:", tid);
	hits = file_number(PROBE_DIR(EVENT) "hist", key);
	return hits < 0 ? 0 : hits;
}

/* Returns the number of ticks that the witness reports as lost; -1 if it is not known. */
static long long witness_lost(void)
{
	long long dropped = file_number(PROBE_DIR(EVENT) "hist", "    Dropped:");
	u64 hits, misses;

	if (dropped < 0 || !probe_profile(EVENT, &hits, &misses))
		return -1;
	return dropped + misses;
}

static void witness_remove(void)
{
	file_write(PROBE_DIR(EVENT) "trigger", "!" HIST);
	probe_remove(EVENT);
}

FIXTURE(witness) {
};

FIXTURE_SETUP(witness)
{
	ASSERT_EQ(0, device_query(&query));
	SKIP_SETUP_IF(access(TRACEFS "/kprobe_events", W_OK),
		      "%s/kprobe_events: needs root, tracefs and KPROBE_EVENTS", TRACEFS);
	witness_remove();
	ASSERT_EQ(0, probe_add(EVENT, tick_function()));
	ASSERT_EQ(0, file_write(PROBE_DIR(EVENT) "trigger", HIST)) {
		witness_remove();
	}
	report = map_shared(sizeof(*report));
}

/* Sleeps, so that the task gets no ticks. */
static void wait_for_end(void)
{
	report->ready++;
	for (;;)
		pause();
}

FIXTURE_TEARDOWN(witness)
{
	kill_children();
	witness_remove();
}

static void *run_thread(void *number)
{
	const uintptr_t i = (uintptr_t)number;

	report->tids[i] = gettid();
	if (scope == PROFIL_SCOPE_THREAD) {
		MUST(!session_start(scope, 0, NULL, 0));
		MUST(loop_burn(scope, i, 50));
		MUST(!session_stop(scope, &report->stats[i]));
	} else {
		loop_spend(i, 50, query.tick_ns);
	}
	wait_for_end();
	return NULL;
}

/* The session is on before the first thread starts, and until the last one is done. */
static void be_witnessed(void)
{
	report->tids[0] = gettid();
	raise(SIGSTOP);
	MUST(!session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0));
	for (uintptr_t i = 1; i <= nr_threads; i++)
		thread_start(run_thread, (void *)i);
	MUST(loop_burn(PROFIL_SCOPE_PROCESS, 0, 100));
	MUST(await(report->ready == nr_threads));
	MUST(!session_stop(PROFIL_SCOPE_PROCESS, &report->stats[0]));
	wait_for_end();
}

/* Like be_witnessed(), but with a chain of processes, which all stay until the end. */
static void be_witnessed_forking(void)
{
	unsigned int i;

	raise(SIGSTOP);
	MUST(!session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0));
	for (i = 0;; i++) {
		report->tids[i] = gettid();
		/* Only some of them have ticks before they fork. */
		MUST(i % 2 || loop_burn(PROFIL_SCOPE_PROCESS, i, 20));
		if (i == nr_threads || fork())
			break;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	MUST(loop_burn(PROFIL_SCOPE_PROCESS, i, 100));
	MUST(!session_stop(PROFIL_SCOPE_PROCESS, &report->stats[i]));
	wait_for_end();
}

/*
 * Runs the child, and stores its statistics and the counts of the witness. Returns false if the
 * witness reports lost ticks.
 */
static bool witness(struct __test_metadata *_metadata, u64 *seen)
{
	const long long lost = witness_lost();
	pid_t child;
	u64 before;
	bool whole;

	memset(report, 0, sizeof(*report));
	/* This session keeps the hook installed. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));

	child = SPAWN((forks ? be_witnessed_forking() : be_witnessed(), 0));
	/* The child has stopped itself, so that it gets no ticks meanwhile. */
	ASSERT_EQ(child, waitpid(child, NULL, WUNTRACED));
	before = witnessed(child);
	kill(child, SIGCONT);
	ASSERT_TRUE(await(report->ready == nr_threads + 1));
	for (unsigned int i = 0; i <= nr_threads; i++)
		seen[i] = witnessed(report->tids[i]) - (i ? 0 : before);
	whole = witness_lost() == lost;
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, NULL));
	return whole;
}

/*
 * On a busy host a start or a stop may take longer than a tick, or the witness may lose one. This
 * is rare enough for one of several attempts to succeed.
 */
#define ATTEMPTS	10

/* Returns true if they agree, except for one tick before the start and one after the stop. */
static bool agree(struct __test_metadata *_metadata, const struct profil_stats *s, u64 seen)
{
	u64 counted = s->ticks + s->unselected;

	TH_LOG("counted %llu, witnessed %llu; expected %llu, missed %llu",
	       (unsigned long long)counted, (unsigned long long)seen,
	       (unsigned long long)s->expected, (unsigned long long)s->missed);
	EXPECT_TRUE(accounted(s));
	EXPECT_LE(counted, seen) {
		TH_LOG("none may be counted that was not there");
	}
	return seen <= counted + 2;
}

/* Runs the child once. Does the witness agree with all of its sessions? */
static bool attempt(struct __test_metadata *_metadata)
{
	u64 seen[1 + MAX_THREADS], sum = 0;
	bool yes;

	if (!witness(_metadata, seen))
		return false;
	for (unsigned int i = 0; i <= nr_threads; i++)
		sum += seen[i];
	yes = agree(_metadata, &report->stats[0], forks ? seen[0] : sum);
	EXPECT_LE(100U, report->stats[0].ticks);
	if (scope == PROFIL_SCOPE_THREAD || forks) {
		for (unsigned int i = 1; i <= nr_threads; i++) {
			yes &= agree(_metadata, &report->stats[i], seen[i]);
			EXPECT_LE(50U, report->stats[i].ticks);
		}
	}
	return yes;
}

static void expect_agreement(struct __test_metadata *_metadata, u32 of, unsigned int threads)
{
	unsigned int i;

	scope = of;
	nr_threads = threads;
	for (i = 0; i < ATTEMPTS && !attempt(_metadata); i++)
		;
	EXPECT_GT(ATTEMPTS, i);
}

TEST_F_CALL(witness, agrees_with_a_process,
	    expect_agreement(_metadata, PROFIL_SCOPE_PROCESS, 0))
TEST_F_CALL(witness, agrees_with_a_process_of_5_threads,
	    expect_agreement(_metadata, PROFIL_SCOPE_PROCESS, MAX_THREADS))
TEST_F_CALL(witness, agrees_with_each_of_4_threads,
	    expect_agreement(_metadata, PROFIL_SCOPE_THREAD, MAX_THREADS))

TEST_F(witness, agrees_with_each_of_a_chain_of_forks)
{
	forks = true;
	expect_agreement(_metadata, PROFIL_SCOPE_PROCESS, MAX_THREADS);
}

/*
 * Expected ticks
 *
 * Here the witness is the CPU time of the process. The ticks are compared with it, too: in QEMU on
 * a busy host many ticks do not occur at all, and only some of these are counted as missed. One of
 * several attempts must succeed.
 */

FIXTURE(expected) {
};

FIXTURE_SETUP(expected)
{
	ASSERT_EQ(0, device_query(&query));
}

FIXTURE_TEARDOWN(expected)
{
}

static void *spend_30_ticks(void *loop)
{
	loop_spend((uintptr_t)loop, 30, query.tick_ns);
	return NULL;
}

/*
 * Stores the statistics of a session in which @n threads ran for 30 ticks each, or this thread if
 * @n is 0.
 */
static void profile(struct __test_metadata *_metadata, u32 scope, unsigned int n,
		    struct profil_stats *s)
{
	clockid_t clock = scope == PROFIL_SCOPE_THREAD ? CLOCK_THREAD_CPUTIME_ID :
							 CLOCK_PROCESS_CPUTIME_ID;
	u64 inner, outer, min, max;

	outer = cpu_ns(clock);
	ASSERT_EQ(0, session_start(scope, 0, NULL, 0));
	inner = cpu_ns(clock);
	if (n)
		in_threads(n, spend_30_ticks);
	else
		spend_30_ticks(NULL);
	inner = cpu_ns(clock) - inner;
	ASSERT_EQ(0, session_stop(scope, s));
	outer = cpu_ns(clock) - outer;

	/* The value is the CPU time, rounded, but the scheduler's figures may be a tick old. */
	min = inner / query.tick_ns;
	max = outer / query.tick_ns;
	EXPECT_TRUE(accounted(s));
	EXPECT_LE(min, s->expected + 1 + n);
	EXPECT_LE(s->expected, max + 1 + n);
}

/* Returns true if the ticks agree with the expected ones within the sampling error (5 sigma). */
static bool as_expected(const struct profil_stats *s)
{
	u64 came = s->ticks + s->unselected, sigma = 1;

	while (sigma * sigma < came)
		sigma++;
	return came <= s->expected + 5 * sigma && s->expected <= came + s->missed + 5 * sigma;
}

static void expect_as_expected(struct __test_metadata *_metadata, u32 scope, unsigned int n)
{
	struct profil_stats s;
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		profile(_metadata, scope, n, &s);
		if (as_expected(&s))
			break;
		TH_LOG("expected %llu, ticks %llu, missed %llu: once more",
		       (unsigned long long)s.expected, (unsigned long long)s.ticks,
		       (unsigned long long)s.missed);
	}
	EXPECT_GT(ATTEMPTS, i);
}

TEST_F_CALL(expected, ticks_of_a_thread_agree_with_CPU_time_and_sampled_ticks,
	    expect_as_expected(_metadata, PROFIL_SCOPE_THREAD, 0))
TEST_F_CALL(expected, ticks_of_a_process_agree_with_CPU_time_and_sampled_ticks,
	    expect_as_expected(_metadata, PROFIL_SCOPE_PROCESS, 0))

TEST_F(expected, ticks_include_those_of_exited_threads)
{
	expect_as_expected(_metadata, PROFIL_SCOPE_PROCESS, 1);
	expect_as_expected(_metadata, PROFIL_SCOPE_PROCESS, 2);
}

TEST_F(expected, ticks_of_a_sleeping_thread_are_few)
{
	struct profil_stats s;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	pause_ns(100000000);
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &s));
	EXPECT_GE(5U, s.expected);
	EXPECT_GE(5U, s.ticks);
	EXPECT_GE(5U, s.missed);
}

TEST_HARNESS_MAIN
