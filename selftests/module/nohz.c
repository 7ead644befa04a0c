// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs of nohz_full=, which stop the scheduler tick while they run a single task. A sampled task
 * gets its ticks there, and the CPU stops ticking when the task is no longer sampled.
 */
#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "threads.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
#define TICKS		100U
#define MS		1000000U

static u64 counters[2];

FIXTURE(nohz) {
	u64 tick_ns;
	int cpu;
};

FIXTURE_SETUP(nohz)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	self->tick_ns = q.tick_ns;
	self->cpu = file_number("/sys/devices/system/cpu/nohz_full", "");
	memset(counters, 0, sizeof(counters));
	SKIP_SETUP_IF(self->cpu < 0, "no CPU is in nohz_full= of the kernel's command line");
	run_on_cpu(self->cpu);
}

FIXTURE_TEARDOWN(nohz)
{
	session_stop(SCOPE, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
}

/* Returns the number of timer interrupts of @cpu so far. */
static u64 timer_interrupts(int cpu)
{
	char line[4096] = "", *p;
	u64 n = 0;

	file_has("/proc/interrupts", "LOC", line, sizeof(line));
	p = line + strcspn(line, ":") + 1;
	for (int i = 0; i <= cpu; i++)
		n = strtoull(p, &p, 10);
	return n;
}

/* Like loop_spend(), but without a system call. */
static void spend(unsigned int ticks, u64 tick_ns)
{
	u64 until = cpu_ns(CLOCK_MONOTONIC) + ticks * tick_ns;

	while (cpu_ns(CLOCK_MONOTONIC) < until)
		loop_run(1, LOOP_BURST / 8);
}

/* Returns the number of timer interrupts of @cpu in the time of @ticks ticks. */
static u64 interrupts_in(unsigned int ticks, int cpu, u64 tick_ns)
{
	u64 before = timer_interrupts(cpu);

	spend(ticks, tick_ns);
	return timer_interrupts(cpu) - before;
}

/* The kernel may stop the tick late, and restart it for a moment. */
static bool tick_stops(int cpu, u64 tick_ns)
{
	for (unsigned int i = 0; i < 20; i++)
		if (interrupts_in(TICKS, cpu, tick_ns) < TICKS / 4)
			return true;
	return false;
}

/*
 * Compares the statistics with the time since @begin. On a busy host the ticks of a guest are
 * late, and few. The caller then tries again. A CPU that has stopped its tick gets none at all.
 */
static bool as_expected(const struct profil_stats *s, u64 begin, u64 period)
{
	u64 most = (cpu_ns(CLOCK_MONOTONIC) - begin) / period;

	dprintf(STDERR_FILENO, "# ticks %llu missed %llu expected %llu, at most %llu\n",
		(unsigned long long)s->ticks, (unsigned long long)s->missed,
		(unsigned long long)s->expected, (unsigned long long)most);
	return accounted(s) && s->ticks >= TICKS / 4 &&
	       s->ticks + s->missed >= s->expected * 4 / 5 &&
	       s->expected <= most + 2 && s->ticks <= most + 2;
}

#define TRIES 20

static void *spend_ticks(void *self)
{
	spend(TICKS, ((FIXTURE_DATA(nohz) *)self)->tick_ns);
	return self;
}

/* Samples @work() until the statistics are as expected. @period: of the session, in ns, or 0 */
static void expect_ticks(struct __test_metadata *_metadata, FIXTURE_DATA(nohz) *self, u32 scope,
			 u64 period, void *(*work)(void *self))
{
	struct profil_range range = range_all(counters, 1, 8);
	struct profil_stats s;
	unsigned int i;
	u64 begin;

	for (i = 0; i < TRIES; i++) {
		ASSERT_TRUE(tick_stops(self->cpu, self->tick_ns));
		counters[0] = 0;
		begin = cpu_ns(CLOCK_MONOTONIC);
		ASSERT_EQ(0, clock_start(scope, 0, period, &range, 1));
		EXPECT_EQ(self, work(self));
		ASSERT_EQ(0, session_stop(scope, &s));
		EXPECT_EQ(s.hit, counters[0]);
		if (as_expected(&s, begin, period ?: self->tick_ns))
			break;
	}
	EXPECT_GT(TRIES, i);
}

TEST_F(nohz, sampled_process_gets_ticks_and_the_cpu_stops_ticking_after_stop)
{
	expect_ticks(_metadata, self, SCOPE, 0, spend_ticks);
	EXPECT_TRUE(tick_stops(self->cpu, self->tick_ns));
}

TEST_F_CALL(nohz, sampled_thread_gets_ticks,
	    expect_ticks(_metadata, self, PROFIL_SCOPE_THREAD, 0, spend_ticks))
TEST_F_CALL(nohz, session_with_a_period_gets_ticks,
	    expect_ticks(_metadata, self, SCOPE, MS, spend_ticks))

static void *move_and_spend_ticks(void *self)
{
	run_on_cpu(((FIXTURE_DATA(nohz) *)self)->cpu);
	return spend_ticks(self);
}

static void *spend_in_new_thread(void *self)
{
	return thread_end(thread_start(move_and_spend_ticks, self));
}

/* The thread is created after the start, on another CPU, and then moves to the nohz_full= CPU. */
TEST_F(nohz, new_thread_of_a_sampled_process_gets_ticks)
{
	run_on_cpu(self->cpu ? 0 : 1);
	expect_ticks(_metadata, self, SCOPE, 0, spend_in_new_thread);
}

TEST_F(nohz, child_of_a_fork_gets_ticks)
{
	struct profil_range range = range_all(counters, 1, 8);
	struct profil_stats s;
	int status = 1;
	pid_t child;
	u64 begin;

	for (unsigned int i = 0; i < TRIES && status; i++) {
		begin = cpu_ns(CLOCK_MONOTONIC);
		ASSERT_EQ(0, session_start(SCOPE, 0, &range, 1));
		child = SPAWN(({
			spend(TICKS, self->tick_ns);
			MUST(!session_stop(SCOPE, &s));
			!as_expected(&s, begin, self->tick_ns);
		}));
		ASSERT_EQ(0, session_stop(SCOPE, NULL));
		status = status_of(child);
	}
	EXPECT_EQ(0, status);
}

/* The target already runs alone on the nohz_full= CPU, and makes no system call. */
TEST_F(nohz, attached_process_gets_ticks_and_the_cpu_stops_ticking_afterwards)
{
	struct profil_stats s;
	int pipes[2], fd;
	unsigned int i;
	u64 begin;
	pid_t child;
	char byte;

	NEED_ROOT("to sample another process");
	ASSERT_EQ(0, pipe(pipes));
	child = SPAWN(({
		MUST(tick_stops(self->cpu, self->tick_ns));
		MUST(write(pipes[1], "", 1) == 1);
		!loop_for_ever((void *)2);
	}));
	run_on_cpu(self->cpu ? 0 : 1);
	ASSERT_EQ(1, read(pipes[0], &byte, 1));
	for (i = 0; i < TRIES; i++) {
		/* Before the process is sampled, the CPU stops its tick. */
		EXPECT_TRUE(tick_stops(self->cpu, self->tick_ns));
		begin = cpu_ns(CLOCK_MONOTONIC);
		fd = must_enable(must_open());
		ASSERT_EQ(0, descriptor_attach(fd, SCOPE, child, NULL));
		spend(TICKS, self->tick_ns);
		ASSERT_EQ(0, descriptor_disable(fd, &s));
		close(fd);
		if (as_expected(&s, begin, self->tick_ns))
			break;
	}
	EXPECT_GT(TRIES, i);
	EXPECT_TRUE(tick_stops(self->cpu, self->tick_ns));
	killed(child);
	close(pipes[0]);
	close(pipes[1]);
}

TEST_HARNESS_MAIN
