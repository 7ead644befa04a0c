// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the results of profilers with known results.
 *
 *	truth [--check] [--seconds S] [--seed N] [--row ROW]
 *
 * Each row is a program with a known profile. It runs once under each profiler, in its own process,
 * with the same seed. A cell is the profiler's result in per cent, and its deviation from the
 * expected result, in standard errors of the expected number of samples. --check only runs profil,
 * for a shorter time, and prints TAP.
 *
 * A program does its work in random order, or after pauses of random length. So it is not in phase
 * with the tick, even if the clock counts instructions, and the samples are independent of each
 * other. Only the programs of row 8 are in phase with the tick.
 */
#include "truth.h"

#include "../lib/chance.h"
#include "../lib/process.h"
#include "../lib/threads.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>

#define LIMIT		5.0	/* limit of a deviation, in sigmas */
#define OFF		2	/* ticks that start and stop of profiling may add */
#define FEW		20	/* samples */
#define CHUNK		32	/* iterations: 1,024 instructions */
#define MUCH		65536
#define LESS		16384
#define PROCESSES	1000
#define OWN_PERIOD	(10 * MS)

struct figure {
	bool none;		/* there is no sample */
	bool unknown;		/* the profiler cannot measure it */
	double expected, value, sigma;
};

struct outcome {
	struct profile profile;
	struct figure figures[NR_FIGURES];
	u64 cpu, elapsed;	/* ns, between start and stop */
	u64 ticks;		/* ticks of this process, as counted by the kernel */
	u64 longest;		/* the longest process of row 4, in ns */
	bool complete;
};

static double seconds = 6;
static u64 seed = 1;
static u64 tick;

void die(const char *what)
{
	fprintf(stderr, "truth: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static u64 cpu_now(void)
{
	return cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static u64 budget(void)
{
	return seconds * 1e9;
}

static struct actor chance;

static void shuffle(u8 *cards, unsigned int n)
{
	for (unsigned int i = n - 1; i; i--) {
		unsigned int k = any(&chance, i + 1);
		u8 card = cards[i];

		cards[i] = cards[k];
		cards[k] = card;
	}
}

/* Sleeps for a random part of a tick, so that the phase of the tick is random afterwards. */
static void random_pause(void)
{
	pause_ns(any(&chance, tick));
}

/*
 * Like CLOCK_PROCESS_CPUTIME_ID, but counts the ticks that found the process running, as
 * ITIMER_PROF does
 */
#define TICKS_CLOCK	((clockid_t)~7)

static void begin(struct outcome *o)
{
	profile_start(&o->profile);
	o->ticks = cpu_ns(TICKS_CLOCK);
	o->cpu = cpu_now() + children_ns();
	o->elapsed = now_ns();
}

static void end(struct outcome *o)
{
	o->cpu = cpu_now() + children_ns() - o->cpu;
	o->elapsed = now_ns() - o->elapsed;
	o->ticks = (cpu_ns(TICKS_CLOCK) - o->ticks) / tick;
	profile_stop(&o->profile);
}

/* The share of @k in @n samples, each of which is one of the @k with probability @p. */
static struct figure share(u64 k, u64 n, double p)
{
	struct figure f = { .none = n < FEW, .expected = p };

	if (!f.none) {
		f.value = (double)k / n;
		f.sigma = (f.value - p) / sqrt(p * (1 - p) / n);
	}
	return f;
}

static u64 sum(const u64 *counts, unsigned int n)
{
	return counters_sum(counts, sizeof(*counts), n);
}

/*
 * The rate of @n events, of which one is expected in @period ns of CPU time. In each period of
 * elapsed time there is an event with the probability that the program was running. The phase of
 * the beginning and of the end accounts for one event more or less.
 */
static struct figure rate(const struct outcome *o, u64 n, u64 period)
{
	double expected = (double)o->cpu / period, all = (double)o->elapsed / period;
	double variance = expected * (1 - fmin(expected / all, 1));

	return (struct figure) {
		.expected = 1,
		.value = n / expected,
		.sigma = (n - expected) / sqrt(fmax(variance, 1)),
	};
}

static struct figure samples_rate(const struct outcome *o)
{
	struct figure f = rate(o, o->profile.samples, o->profile.period);

	/* glibc's profil() counts all samples, or those of each place, but not both. */
	f.unknown = o->profile.profiler == GLIBC && !(o->profile.want & WANT_ALL);
	return f;
}

/*
 * The rows of the table
 */

/* 1: four functions share ten chunks of work. The order of the chunks is random. */
static void work_of_four(void)
{
	u8 deck[10] = { 0, 1, 1, 2, 2, 2, 3, 3, 3, 3 };
	u64 until = cpu_now() + budget();

	do {
		for (unsigned int i = 0; i < 640; i++) {
			if (i % 10 == 0)
				shuffle(deck, 10);
			place_run(deck[i % 10], CHUNK);
		}
	} while (cpu_now() < until);
}

static void row_functions(struct outcome *o)
{
	begin(o);
	work_of_four();
	end(o);
	for (unsigned int i = 0; i < 4; i++)
		o->figures[i] = share(o->profile.places[i], sum(o->profile.places, 4),
				      (i + 1) / 10.0);
}

/* 2: threads that do the same work, each in its own function */
static unsigned long thread_iterations;

static void *thread(void *arg)
{
	place_run((uintptr_t)arg, thread_iterations);
	return NULL;
}

static struct figure equal_threads(struct outcome *o, unsigned int n)
{
	const u64 *counts = o->profile.places;
	struct figure f = { 0 };
	double low = 1, high = 0;
	u64 all;

	/* The clock counts instructions: one is 16 ns. */
	thread_iterations = budget() / 2 / 16 / PLACE_ITERATION / n;
	begin(o);
	in_threads(n, thread);
	end(o);
	all = sum(counts, n);
	f.none = all < FEW;
	for (unsigned int i = 0; i < n; i++) {
		struct figure one = share(counts[i], all, 1.0 / n);

		low = fmin(low, one.value);
		high = fmax(high, one.value);
		f.sigma = fmax(f.sigma, fabs(one.sigma));
	}
	f.value = high - low;
	return f;
}

static void row_threads(struct outcome *o)
{
	struct outcome two = *o;

	o->figures[0] = equal_threads(&two, 2);
	/* The statistics of the eight threads are checked with those of all rows. */
	if (!accounted(&two.profile.stats))
		die("ticks that are not accounted for");
	o->figures[1] = equal_threads(o, 8);
}

/* 3: random bursts in user code and in the kernel, and pauses */
static void row_cpu_time(struct outcome *o)
{
	static char buffer[MUCH];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	u64 until;

	begin(o);
	until = cpu_now() + budget();
	do {
		place_run(0, 200 + any(&chance, 10000));
		for (u32 n = 1 + any(&chance, 4); n; n--)
			if (read(zero, buffer, sizeof(buffer)) < 0)
				die("/dev/zero");
		random_pause();
	} while (cpu_now() < until);
	end(o);
	o->figures[0] = samples_rate(o);
}

/* 4: processes that live for less than a tick, from fork() to wait() */
static void row_processes(struct outcome *o)
{
	u64 before, after = children_ns();

	begin(o);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		unsigned long iterations = 100 + any(&chance, 1500);
		/*
		 * Without the work of the C library's fork(), which takes longer than some of the
		 * processes.
		 */
		pid_t pid = syscall(SYS_fork);

		if (!pid) {
			place_run(0, iterations);
			syscall(SYS_exit_group, 0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("fork");
		before = after;
		after = children_ns();
		if (after - before > o->longest)
			o->longest = after - before;
		random_pause();
	}
	end(o);
	o->figures[0] = share(o->profile.children, o->profile.samples,
			      (double)children_ns() / o->cpu);
	o->figures[1] = samples_rate(o);
}

/* 5: two places call the kernel equally often, for different amounts of work */
static u64 cost_of(unsigned int place, int zero, char *buffer, size_t bytes)
{
	u64 before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned int i = 0; i < 200; i++)
		if (place_read(place, zero, buffer, bytes) < 0)
			die("/dev/zero");
	return cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
}

static void row_system_calls(struct outcome *o)
{
	static char buffer[MUCH];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	u8 deck[2] = { PLACE_READ_MUCH, PLACE_READ_LESS };
	u64 much, less, until;

	cost_of(PLACE_READ_MUCH, zero, buffer, MUCH);
	much = cost_of(PLACE_READ_MUCH, zero, buffer, MUCH);
	less = cost_of(PLACE_READ_LESS, zero, buffer, LESS);
	begin(o);
	until = cpu_now() + budget();
	do {
		for (unsigned int i = 0; i < 32; i++) {
			unsigned int place = deck[i % 2];

			if (i % 2 == 0)
				shuffle(deck, 2);
			place_read(place, zero, buffer, place == PLACE_READ_MUCH ? MUCH : LESS);
		}
	} while (cpu_now() < until);
	end(o);
	o->figures[0] = share(o->profile.places[PLACE_READ_MUCH],
			      sum(o->profile.places + PLACE_READ_MUCH, 2),
			      (double)much / (much + less));
}

/* 6: like row 1, with all signals blocked */
static void row_blocked(struct outcome *o)
{
	sigset_t all;

	begin(o);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	work_of_four();
	end(o);
	o->figures[0] = share(o->profile.places[3], sum(o->profile.places, 4), 0.4);
}

/* 7: like row 1, in a program that uses ITIMER_PROF and SIGPROF itself */
static volatile sig_atomic_t own_signals;

static void on_own_signal(int signal)
{
	(void)signal;
	own_signals = own_signals + 1;
}

static void row_own_timer(struct outcome *o)
{
	const struct itimerval timer = {
		.it_interval.tv_usec = OWN_PERIOD / 1000,
		.it_value.tv_usec = OWN_PERIOD / 1000,
	};
	const struct sigaction action = {
		.sa_handler = on_own_signal,
		.sa_flags = SA_RESTART,
	};
	u64 signals;

	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
	begin(o);
	signals = own_signals;
	work_of_four();
	signals = own_signals - signals;
	end(o);
	o->figures[0] = share(o->profile.places[3], sum(o->profile.places, 4), 0.4);
	o->figures[1] = rate(o, signals, OWN_PERIOD);
}

/* 8: the time of the next tick. The coarse clock does not advance before it. */
#define GUARD_BEFORE	(400000ULL)
#define GUARD_AFTER	(250000ULL)

static u64 tick_phase;

static void learn_phase(void)
{
	for (unsigned int i = 0; i < 10; i++) {
		u64 last = cpu_ns(CLOCK_MONOTONIC_COARSE);

		while (cpu_ns(CLOCK_MONOTONIC_COARSE) == last)
			;
		tick_phase = now_ns() % tick;
	}
}

static bool near_multiple(u64 time, u64 of)
{
	return time % of < GUARD_AFTER || time % of > of - GUARD_BEFORE;
}

static void row_asleep(struct outcome *o)
{
	u64 until;

	learn_phase();
	begin(o);
	until = cpu_now() + budget();
	do {
		u64 time, due;

		while (time = now_ns(), !near_multiple(time - tick_phase + tick, tick))
			place_run(0, CHUNK);
		due = time - (time - tick_phase) % tick + GUARD_AFTER;
		if (due <= time)
			due += tick;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec) { due / 1000000000, due % 1000000000 }, NULL);
	} while (cpu_now() < until);
	end(o);
	o->figures[0] = samples_rate(o);
}

/*
 * Runs in place 1 when a tick is due and after each 4 ms of CPU time, and otherwise in place 0. A
 * profiler with one of these periods attributes too much to place 1.
 */
static void row_elsewhere(struct outcome *o)
{
	u64 chunks[2] = { 0, 0 };
	u64 start, time;

	learn_phase();
	begin(o);
	start = cpu_now();
	do {
		bool cover;

		time = cpu_now();
		cover = near_multiple(time - start, 4 * MS) ||
			near_multiple(now_ns() - tick_phase + tick, tick);
		place_run(cover, CHUNK);
		chunks[cover]++;
	} while (time - start < budget());
	end(o);
	o->figures[0] = share(o->profile.places[0], sum(o->profile.places, 2),
			      (double)chunks[0] / (chunks[0] + chunks[1]));
}

/*
 * 9: two threads take turns, over pipes, with short bursts and pauses. One has three times the
 * work.
 */
static int ping[2], pong[2];

static void *partner(void *arg)
{
	u32 iterations;

	(void)arg;
	while (read(ping[0], &iterations, sizeof(iterations)) == sizeof(iterations)) {
		place_run(1, 3 * iterations);
		if (write(pong[1], &iterations, sizeof(iterations)) < 0)
			die("pipe");
	}
	return NULL;
}

static void row_io(struct outcome *o)
{
	u32 iterations;
	u64 until;

	if (pipe(ping) || pipe(pong))
		die("pipe");
	begin(o);
	thread_start(partner, NULL);
	until = cpu_now() + budget();
	do {
		iterations = 50 + any(&chance, 500);
		place_run(0, iterations);
		if (write(ping[1], &iterations, sizeof(iterations)) < 0 ||
		    read(pong[0], &iterations, sizeof(iterations)) < 0)
			die("pipe");
		if (!any(&chance, 2))
			random_pause();
	} while (cpu_now() < until);
	end(o);
	o->figures[0] = share(o->profile.places[1], sum(o->profile.places, 2), 0.75);
	o->figures[1] = samples_rate(o);
}

/*
 * 10: a system call that keeps interrupts off, so that most of its ticks are missed. read() of an
 * eventfd wakes the epoll instances that wait for it, here one with WAITERS copies of the eventfd.
 */
#define WAITERS	8000

static int eventfd_with_waiters(void)
{
	struct rlimit many = { WAITERS + 100, WAITERS + 100 };
	struct epoll_event event = { .events = EPOLLOUT };
	int fd = eventfd(1 << 30, EFD_SEMAPHORE | EFD_CLOEXEC);
	int waiters = epoll_create1(EPOLL_CLOEXEC);

	setrlimit(RLIMIT_NOFILE, &many);
	for (unsigned int i = 0; i < WAITERS; i++)
		if (epoll_ctl(waiters, EPOLL_CTL_ADD, dup(fd), &event))
			die("epoll");
	return fd;
}

static void row_interrupts_off(struct outcome *o)
{
	u64 event, length, time, until, cpu[2] = { 0, 0 };
	u8 deck[2] = { 0, PLACE_READ_MUCH };
	int fd = eventfd_with_waiters();

	length = cpu_now();
	place_read(PLACE_READ_MUCH, fd, &event, sizeof(event));
	length = cpu_now() - length;
	begin(o);
	until = cpu_now() + budget();
	do {
		shuffle(deck, 2);
		for (unsigned int i = 0; i < 2; i++) {
			time = cpu_now();
			if (!deck[i])
				place_run(0, length / 16 / PLACE_ITERATION);
			else if (place_read(deck[i], fd, &event, sizeof(event)) < 0)
				die("eventfd");
			cpu[!!deck[i]] += cpu_now() - time;
		}
		random_pause();
	} while (cpu_now() < until);
	end(o);
	o->figures[0] = share(o->profile.places[PLACE_READ_MUCH],
			      o->profile.places[0] + o->profile.places[PLACE_READ_MUCH],
			      (double)cpu[1] / (cpu[0] + cpu[1]));
	o->figures[1] = samples_rate(o);
}

static const struct row {
	const char *number;
	const char *name;
	const char *figures[NR_FIGURES];
	void (*run)(struct outcome *o);
	unsigned int want;
	bool fools_tick;	/* the tick must give a wrong result */
	bool tick_is_off;	/* no tick finds some of the kernel's work */
	u64 clock_period;
} rows[] = {
	{ "1", "four functions, known instructions", { "of 10 %", "of 20 %", "of 30 %", "of 40 %" },
	  .run = row_functions, .want = WANT_USER },
	{ "2", "equal threads: the spread of their shares", { "two", "eight" },
	  .run = row_threads, .want = WANT_USER },
	{ "3", "a mixed load", { "samples/CPU time" },
	  .run = row_cpu_time, .want = WANT_ALL },
	{ "4", "1,000 processes shorter than a tick", { "the children's part", "samples/CPU time" },
	  .run = row_processes, .want = WANT_ALL | WANT_CHILDREN, .tick_is_off = true },
	{ "5", "read() of 64 KiB at one place, of 16 KiB at another", { "first of both" },
	  .run = row_system_calls },
	{ "6", "all signals blocked", { "of 40 %" },
	  .run = row_blocked, .want = WANT_USER },
	{ "7", "ITIMER_PROF and SIGPROF in use by the program itself",
	  { "of 40 %", "its own signals" },
	  .run = row_own_timer, .want = WANT_USER },
	{ "8a", "asleep at each tick", { "samples/CPU time" },
	  .run = row_asleep, .want = WANT_ALL, .fools_tick = true, .clock_period = 4 * MS },
	{ "8b", "elsewhere at each tick, and after each 4 ms of CPU time", { "the hidden code" },
	  .run = row_elsewhere, .want = WANT_USER, .fools_tick = true, .clock_period = 4 * MS },
	{ "9", "two threads, short bursts, pipes and pauses", { "of 75 %", "samples/CPU time" },
	  .run = row_io },
	{ "10", "a system call that keeps interrupts off", { "its share", "samples/CPU time" },
	  .run = row_interrupts_off, .want = WANT_RECORDS },
};

#define NR_ROWS (sizeof(rows) / sizeof(*rows))

static bool find_row(const char *number)
{
	for (unsigned int i = 0; i < NR_ROWS; i++)
		if (!strcmp(rows[i].number, number))
			return true;
	return false;
}

/*
 * Runs the rows and prints the results
 */

static void run(const struct row *row, enum profiler profiler, struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	o->profile.profiler = profiler;
	o->profile.want = row->want;
	o->profile.clock_period = row->clock_period ?: MS;
	o->profile.tick_ns = tick;
	prctl(PR_SET_TIMERSLACK, 1);
	/* gperftools prints a message to stderr at the end. */
	if (profiler == GPERFTOOLS && !freopen("/dev/null", "w", stderr))
		die("/dev/null");
	/* Hooking the tick takes some time. It stays hooked for a while. */
	if (profiler == TICK || profiler == CLOCK) {
		struct profile again = o->profile;

		profile_start(&again);
		profile_stop(&again);
	}
	chance.random = seed * 0x9e3779b97f4a7c15ULL + (row - rows) + 1;
	row->run(o);
	o->complete = true;
}

static void run_apart(const struct row *row, enum profiler profiler, struct outcome *o)
{
	struct outcome *shared = map_shared(sizeof(*shared));

	fflush(stdout);
	/* The kernel may still have deferred work of the last run. */
	pause_ns(300 * MS);
	status_of(FORK(run(row, profiler, shared)));
	*o = *shared;
	munmap(shared, sizeof(*shared));
}

/* Returns the reason why profil's result is wrong, or NULL. */
static const char *wrong(const struct row *row, const struct outcome *o)
{
	const struct profile *p = &o->profile;

	if (!o->complete)
		return "the run failed";
	if (!accounted(&p->stats))
		return "ticks are not accounted for";
	if (row->want & WANT_RECORDS) {
		if (p->periods != p->stats.ticks + p->stats.missed)
			return "the records do not stand for all ticks";
		if (p->stats.missed < p->samples / 8)
			return "few ticks are missed";
	} else if (p->stats.hit != sum(p->places, NR_PLACES)) {
		return "hits are not the sum of the counters";
	}
	if (o->longest >= tick)
		return "a process was longer than a tick";
	if (p->profiler == TICK && llabs((long long)(p->own - o->ticks)) > OFF)
		return "the kernel counted a different number of ticks";
	if (row->fools_tick && p->profiler == TICK)
		return o->figures[0].value > 0.2 ? "the tick gives a correct result" : NULL;
	for (unsigned int i = 0; i < NR_FIGURES && row->figures[i]; i++)
		if ((o->figures[i].none || fabs(o->figures[i].sigma) > LIMIT) &&
		    !(p->profiler == TICK && row->tick_is_off))
			return "beyond 5 sigma";
	return NULL;
}

static void print_cell(const struct outcome *o, unsigned int i)
{
	const struct figure *f = &o->figures[i];

	if (!o->complete)
		printf(" %10s", "failed");
	else if (f->unknown)
		printf(" %5s     ", "-");
	else if (f->none)
		printf(" %5s     ", "none");
	else
		printf(" %5.1f %+4.*f", 100 * f->value, fabs(f->sigma) < 9.95, f->sigma);
}

static void print_row(const struct row *row, const struct outcome *outcomes)
{
	printf("%s %s\n", row->number, row->name);
	for (unsigned int i = 0; i < NR_FIGURES && row->figures[i]; i++) {
		printf("  %-20s %5.1f", row->figures[i], 100 * outcomes[0].figures[i].expected);
		for (unsigned int k = 0; k < NR_PROFILERS; k++)
			print_cell(&outcomes[k], i);
		putchar('\n');
	}
}

static int table(const char *only)
{
	struct outcome outcomes[NR_PROFILERS];
	u64 missed = 0, ticks = 0, longest = 0;
	struct utsname system;
	long long off = 0;
	int bad = 0;

	uname(&system);
	printf("%-28s %-21s %-10s %-10s %s\n", "The values, in per cent,",
	       "profil", "glibc", "gperftools", "perf cpu-clock");
	printf("%-22s %5s %-10s %-10s %-10s %-10s %-10s %s\n", "and how many sigmas off", "truth",
	       "tick, 4 ms", "clock, 1ms", "10 ms", "4 ms", ":u, 4 ms", "all, 4 ms");
	for (const struct row *row = rows; row < rows + NR_ROWS; row++) {
		if (only && strcmp(only, row->number))
			continue;
		for (unsigned int k = 0; k < NR_PROFILERS; k++)
			run_apart(row, k, &outcomes[k]);
		print_row(row, outcomes);
		for (unsigned int k = TICK; k <= CLOCK; k++) {
			const struct profile *p = &outcomes[k].profile;
			const char *what = wrong(row, &outcomes[k]);

			if (what) {
				printf("  ^ %s: %s\n", k == TICK ? "tick" : "clock", what);
				bad = 1;
			}
			missed += p->stats.missed;
			ticks += p->stats.ticks;
			if (outcomes[k].longest > longest)
				longest = outcomes[k].longest;
			if (k == TICK && llabs((long long)(p->own - outcomes[k].ticks)) > off)
				off = llabs((long long)(p->own - outcomes[k].ticks));
		}
	}
	printf("seed %lu, %g s of CPU time a cell, Linux %s; clock: with jitter, 4 ms in row 8\n",
	       seed, seconds, system.release);
	printf("%lu ticks%s, %lu missed; tick: at most %lld off the kernel's own count\n", ticks,
	       bad ? "" : ", all accounted for", missed, off);
	if (longest)
		printf("longest process of row 4: %.2f ms\n", longest / 1e6);
	return bad;
}

static void print_account(const struct outcome *o)
{
	const struct profil_stats *s = &o->profile.stats;

	if (o->profile.profiler == TICK)
		printf("# ticks of the process itself: %lu, the kernel counted %lu\n",
		       o->profile.own, o->ticks);
	printf("# %llu ticks: hit %llu outside %llu saturated %llu dropped %llu; missed %llu\n",
	       s->ticks, s->hit, s->outside, s->saturated, s->dropped, s->missed);
}

static int check(const char *only)
{
	static const char *const names[] = { "tick", "clock" };
	struct outcome o;
	int number = 0, bad = 0;

	printf("TAP version 13\n1..%zu\n", only ? 2 : 2 * NR_ROWS);
	printf("# seed %lu, %g s of CPU time each\n", seed, seconds);
	for (const struct row *row = rows; row < rows + NR_ROWS; row++) {
		if (only && strcmp(only, row->number))
			continue;
		for (unsigned int k = TICK; k <= CLOCK; k++) {
			const char *what;

			run_apart(row, k, &o);
			what = wrong(row, &o);
			for (unsigned int i = 0; i < NR_FIGURES && row->figures[i]; i++)
				printf("# %s: %.1f %%, expected %.1f %%, %+.1f sigma\n",
				       row->figures[i], 100 * o.figures[i].value,
				       100 * o.figures[i].expected, o.figures[i].sigma);
			print_account(&o);
			if (what) {
				printf("# %s\n", what);
				bad = 1;
			}
			printf("%s %d %s %s, %s%s\n", what ? "not ok" : "ok", ++number,
			       row->number, row->name, names[k],
			       row->fools_tick && k == TICK ? " is fooled" : "");
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct profil_query query;
	const char *only = NULL;
	bool checking = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--check")) {
			checking = true;
			seconds = 3;
		} else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
			seconds = atof(argv[++i]);
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			seed = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--row") && i + 1 < argc) {
			only = argv[++i];
		} else {
			fprintf(stderr, "usage: %s [--check] [--seconds S] [--seed N] [--row R]\n",
				argv[0]);
			return 2;
		}
	}
	if (seconds <= 0 || (only && !find_row(only))) {
		fprintf(stderr, "truth: no such row, or not a positive time\n");
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	errno = 0;
	if (device_query(&query))
		die(PROFIL_DEVICE);
	tick = query.tick_ns;
	return checking ? check(only) : table(only);
}
