// SPDX-License-Identifier: GPL-2.0
/*
 * What a sample costs, in instructions. Runs in a VM whose clock counts them: one
 * instruction is INSTRUCTION_NS of guest time, whatever the host does.
 *
 * A user loop of known length looks at the clock once a round (loop.S). A round
 * that a tick interrupted takes longer by just what the kernel did then. The tick
 * itself is known from runs without profiling, repeated between the others; the
 * difference is the cost of the sample, everything included.
 *
 * Two figures for each row: the median, which is what the sample does nearly
 * always, and the mean of the middle 80 %: some ticks do work that is not theirs,
 * which would drown the samples.
 *
 *	measure HOOK TICKS REPETITIONS ROW...
 *
 * prints a line for each row: name, median, mean and number of samples, with tabs
 * between; or name, "-", and the reason why it could not be measured.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/profil.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define INSTRUCTION_NS	16
#define ROUND_NS	(BENCH_LOOP_LENGTH * INSTRUCTION_NS)
#define MAX_REPS	64
#define MAX_RANGES	10000
#define MAX_OTHERS	1000
#define TOGGLES		1000
#define LOOP_BYTES	(bench_loop_end - (const char *)bench_loop)
#define LOOP_COUNTERS	(LOOP_BYTES / 2 + 1)

static int device;
static struct profil_query query;
static int wanted_hook;

/* Why the row at hand cannot be measured. */
static char reason[128];

static bool fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return false;
}

static void die(const char *what)
{
	fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void ask(void)
{
	memset(&query, 0, sizeof(query));
	query.size = sizeof(query);
	if (ioctl(device, PROFIL_IOC_QUERY, &query))
		die("PROFIL_IOC_QUERY");
}

static void pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* One measurement: what the interrupted rounds took beyond a round's own time. */

static uint64_t *gaps;
static size_t max_gaps, nr_gaps;
static uint64_t gaps_sum;	/* instructions */
static uint64_t elapsed;	/* ns */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool measure(unsigned int ticks)
{
	uint64_t begin;

	/*
	 * A round that nothing interrupts always takes the same; a few instructions more
	 * after one that was, to write that down.
	 */
	begin = now();
	nr_gaps = bench_loop(query.tick_ns * ticks / ROUND_NS, ROUND_NS + 20 * INSTRUCTION_NS,
			     gaps, max_gaps);
	elapsed = now() - begin;
	if (nr_gaps > max_gaps)
		return fail("%zu interrupts, expected %u: time is not counted in instructions",
			    nr_gaps, ticks);
	if (!nr_gaps)
		return fail("no interrupts");
	gaps_sum = 0;
	for (size_t i = 0; i < nr_gaps; i++) {
		gaps[i] = (gaps[i] - ROUND_NS) / INSTRUCTION_NS;
		gaps_sum += gaps[i];
	}
	qsort(gaps, nr_gaps, sizeof(*gaps), compare);
	return true;
}

/* Sessions */

static uint16_t *counters;
static struct profil_range *ranges;

/*
 * Range number nr / 2 is the loop's. The others are where nothing is, half of them
 * below and half above, each with counters of its own.
 */
static bool start(uint32_t scope, uint32_t nr, uint64_t period)
{
	struct profil_start arg = {
		.size = sizeof(arg),
		.scope = scope,
		.period = period,
		.modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
		.nr_ranges = nr,
		.ranges = (uintptr_t)ranges,
	};
	uint16_t *next = counters;

	if (nr > query.max_ranges)
		return fail("at most %u ranges", query.max_ranges);
	for (uint32_t i = 0; i < nr; i++) {
		struct profil_range *range = &ranges[i];

		memset(range, 0, sizeof(*range));
		if (i == nr / 2) {
			range->start = (uintptr_t)bench_loop;
			range->end = (uintptr_t)bench_loop_end;
			range->nr_counters = LOOP_COUNTERS;
		} else {
			range->start = (i < nr / 2 ? 0x10000 : 0x7000000000) + i * 32;
			range->end = range->start + 16;
			range->nr_counters = 8;
		}
		range->offset = range->start;
		range->buffer = (uintptr_t)next;
		range->scale = 65536;
		range->granule = 2;
		range->step = 1;
		range->width = 2;
		next += range->nr_counters;
	}
	if (ioctl(device, PROFIL_IOC_START, &arg))
		return fail("PROFIL_IOC_START: %s", strerror(errno));
	return true;
}

static bool stop(uint32_t scope, struct profil_stats *stats)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = scope,
		.stats = (uintptr_t)stats,
	};

	if (stats) {
		memset(stats, 0, sizeof(*stats));
		stats->size = sizeof(*stats);
	}
	if (ioctl(device, PROFIL_IOC_STOP, &arg))
		return fail("PROFIL_IOC_STOP: %s", strerror(errno));
	return true;
}

static bool hook_is(int hook)
{
	ask();
	if ((int)query.hook == hook)
		return true;
	return fail("hook is %u, not %d", query.hook, hook);
}

/* Sleeping processes with a session each */

static pid_t others[MAX_OTHERS];
static int nr_others;

static bool start_others(int nr)
{
	int pipes[2];
	char byte;

	if (pipe(pipes))
		die("pipe");
	for (nr_others = 0; nr_others < nr; nr_others++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			byte = start(PROFIL_SCOPE_PROCESS, 1, 0) ? 'y' : 'n';
			if (write(pipes[1], &byte, 1) != 1)
				_exit(1);
			close(pipes[1]);
			for (;;)
				pause();
		}
		others[nr_others] = pid;
		if (read(pipes[0], &byte, 1) != 1 || byte != 'y') {
			nr_others++;
			return fail("no session in process %d", nr_others);
		}
	}
	close(pipes[0]);
	close(pipes[1]);
	return true;
}

static void stop_others(void)
{
	for (int i = 0; i < nr_others; i++)
		kill(others[i], SIGKILL);
	for (int i = 0; i < nr_others; i++)
		waitpid(others[i], NULL, 0);
	nr_others = 0;
}

/* Rows */

struct row {
	const char *name;
	bool (*run)(struct row *row, unsigned int ticks);
	bool chosen;
	uint32_t scope;
	uint32_t ranges;
	uint64_t period;		/* ns; 0: the tick */
	int others;

	uint64_t samples;		/* of the last measurement */
	uint64_t total_samples;
	double medians[MAX_REPS];
	double means[MAX_REPS];
	bool failed;
	char reason[sizeof(reason)];
};

/* The tick without profiling: in this repetition, and before anyone ever profiled. */
static double tick_median, tick_middle, tick_mean;
static double first_median, first_middle;

static double median_gap(void)
{
	return (gaps[(nr_gaps - 1) / 2] + gaps[nr_gaps / 2]) / 2.0;
}

static bool run_sampled(struct row *row, unsigned int ticks)
{
	struct profil_stats stats;
	bool ok;

	ok = !row->others || start_others(row->others);
	if (ok && start(row->scope, row->ranges, row->period)) {
		ok = hook_is(row->period ? PROFIL_HOOK_NONE : wanted_hook);
		pause_ms(100);
		ok = ok && measure(ticks);
		ok = stop(row->scope, &stats) && ok;
	} else {
		ok = false;
	}
	stop_others();
	if (!ok)
		return false;
	row->samples = row->period ? stats.hit : nr_gaps;
	if (row->period && stats.hit < elapsed / row->period * 999 / 1000)
		return fail("%llu hits in %llu periods", (unsigned long long)stats.hit,
			    (unsigned long long)(elapsed / row->period));
	if (row->period)
		return true;
	if (stats.hit + 3 < nr_gaps || stats.hit > nr_gaps + 3)
		return fail("%zu interrupts, but %llu hits of %llu ticks", nr_gaps,
			    (unsigned long long)stats.hit, (unsigned long long)stats.ticks);
	return true;
}

static bool run_unsampled(struct row *row, unsigned int ticks)
{
	bool ok = start_others(row->others);

	if (ok) {
		ok = hook_is(wanted_hook);
		pause_ms(100);
		ok = ok && measure(ticks);
	}
	stop_others();
	row->samples = nr_gaps;
	return ok;
}

static double middle_gap(void)
{
	size_t first = nr_gaps / 10, end = nr_gaps - first;
	double sum = 0;

	for (size_t i = first; i < end; i++)
		sum += gaps[i];
	return sum / (end - first);
}

/* After the last session the hook lingers, and then goes: as if there never was one. */
static bool run_off(struct row *row, unsigned int ticks)
{
	for (int i = 0; i < 600 && !hook_is(PROFIL_HOOK_NONE); i++)
		pause_ms(100);
	if (!hook_is(PROFIL_HOOK_NONE))
		return false;
	pause_ms(500);
	if (!measure(ticks))
		return false;
	row->samples = nr_gaps;
	return true;
}

/* The C library's own: this program is linked statically, without libprofil. */
static bool run_glibc(struct row *row, unsigned int ticks)
{
	int (*volatile libc_profil)(unsigned short *, size_t, size_t, unsigned int) = profil;
	size_t nr = LOOP_COUNTERS;
	bool ok;

	memset(counters, 0, nr * 2);
	if (libc_profil(counters, nr * 2, (uintptr_t)bench_loop, 65536))
		return fail("profil: %s", strerror(errno));
	ok = measure(ticks);
	libc_profil(NULL, 0, 0, 0);
	row->samples = 0;
	for (size_t i = 0; i < nr; i++)
		row->samples += counters[i];
	return ok && (row->samples || fail("no samples"));
}

/* The kernel's side of perf record -e cpu-clock:u at the rate of the tick. */
static bool run_perf(struct row *row, unsigned int ticks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = query.tick_ns,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_PERIOD,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const size_t sample_size = 8 + 8 + 8 + 8 + 8;
	struct perf_event_mmap_page *page;
	size_t length = 257 * sysconf(_SC_PAGESIZE);
	bool ok;
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fail("perf_event_open: %s", strerror(errno));
	page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return fail("perf_event_open: mmap: %s", strerror(errno));
	}
	ok = measure(ticks);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	row->samples = page->data_head / sample_size;
	munmap(page, length);
	close(fd);
	return ok && (row->samples || fail("no samples"));
}

/* Not a sample: one start and one stop, while the hook lingers. */
static bool run_toggle(struct row *row, unsigned int ticks)
{
	uint64_t begin;

	(void)ticks;
	if (!start(PROFIL_SCOPE_PROCESS, 1, 0) || !stop(PROFIL_SCOPE_PROCESS, NULL))
		return false;
	begin = now();
	for (int i = 0; i < TOGGLES; i++)
		if (!start(PROFIL_SCOPE_PROCESS, 1, 0) || !stop(PROFIL_SCOPE_PROCESS, NULL))
			return false;
	elapsed = now() - begin;
	row->samples = TOGGLES;
	return true;
}

#define SAMPLED(n, s, r, ...) \
	{ .name = (n), .run = run_sampled, .scope = (s), .ranges = (r), __VA_ARGS__ }

#define CLOCKED(n, p) SAMPLED(n, PROFIL_SCOPE_PROCESS, 1, .period = (p))

/* In the order in which they are run: the first ones want no hook, the last sees it go. */
static struct row rows[] = {
	{ .name = "glibc", .run = run_glibc },
	{ .name = "perf", .run = run_perf },
	CLOCKED("clock-1000us", 1000000),
	CLOCKED("clock-123us", 123031),
	CLOCKED("clock-50us", 50000),
	{ .name = "unsampled", .run = run_unsampled, .others = 1 },
	SAMPLED("process-1", PROFIL_SCOPE_PROCESS, 1),
	SAMPLED("process-10", PROFIL_SCOPE_PROCESS, 10),
	SAMPLED("process-100", PROFIL_SCOPE_PROCESS, 100),
	SAMPLED("process-1000", PROFIL_SCOPE_PROCESS, 1000),
	SAMPLED("process-10000", PROFIL_SCOPE_PROCESS, 10000),
	SAMPLED("thread-1", PROFIL_SCOPE_THREAD, 1),
	SAMPLED("thread-1000", PROFIL_SCOPE_THREAD, 1000),
	SAMPLED("others-1000", PROFIL_SCOPE_PROCESS, 1, .others = 1000),
	{ .name = "toggle", .run = run_toggle },
	{ .name = "nobody", .run = run_off },
};

#define NR_ROWS ARRAY_SIZE(rows)

static struct row *find_row(const char *name)
{
	for (struct row *row = rows; row < rows + NR_ROWS; row++)
		if (!strcmp(row->name, name))
			return row;
	fprintf(stderr, "measure: no row %s\n", name);
	exit(1);
}

/* The ticks of the scheduler stay what they were; what is beyond them is the samples'. */
static void account(struct row *row, unsigned int rep)
{
	double ticks = nr_gaps;

	row->total_samples += row->samples;
	if (row->run == run_toggle) {
		row->medians[rep] = (double)elapsed / INSTRUCTION_NS / TOGGLES;
		row->means[rep] = row->medians[rep];
		return;
	}
	if (row->run == run_off) {
		row->medians[rep] = median_gap() - first_median;
		row->means[rep] = middle_gap() - first_middle;
		return;
	}
	if (row->run == run_glibc || row->run == run_perf || row->period) {
		/* Not a sample in every tick, or interrupts of its own: all of it together. */
		if (row->run != run_glibc)
			ticks = (double)elapsed / query.tick_ns;
		row->means[rep] = (gaps_sum - ticks * tick_mean) / row->samples;
		row->medians[rep] = row->period ? median_gap() : row->means[rep];
		return;
	}
	row->medians[rep] = median_gap() - tick_median;
	row->means[rep] = middle_gap() - tick_middle;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median_of(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), compare_doubles);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

/* Memory that is there: no page faults in what is measured. */
static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void report(struct row *row, unsigned int reps)
{
	if (row->failed)
		printf("%s\t-\t%s\n", row->name, row->reason);
	else
		printf("%s\t%.0f\t%.1f\t%llu\n", row->name, median_of(row->medians, reps),
		       median_of(row->means, reps), (unsigned long long)row->total_samples);
}

int main(int argc, char **argv)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct row off = { .name = "tick", .run = run_off };
	unsigned int ticks, reps;

	if (argc < 5) {
		fprintf(stderr, "usage: measure HOOK TICKS REPETITIONS ROW...\n");
		return 1;
	}
	wanted_hook = !strcmp(argv[1], "kprobe") ? PROFIL_HOOK_KPROBE : PROFIL_HOOK_FTRACE;
	ticks = strtoul(argv[2], NULL, 10);
	reps = strtoul(argv[3], NULL, 10);
	if (!ticks || !reps || reps > MAX_REPS) {
		fprintf(stderr, "measure: bad number\n");
		return 1;
	}
	for (int i = 4; i < argc; i++)
		find_row(argv[i])->chosen = true;

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	device = open(PROFIL_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		die(PROFIL_DEVICE);
	ask();
	max_gaps = ticks * 200;
	gaps = reserve(max_gaps * sizeof(*gaps));
	ranges = reserve(MAX_RANGES * sizeof(*ranges));
	counters = reserve(LOOP_COUNTERS * 2 + MAX_RANGES * 16);

	/* What the boot left to be done later. */
	pause_ms(5000);

	for (unsigned int rep = 0; rep < reps; rep++) {
		if (!run_off(&off, ticks)) {
			fprintf(stderr, "measure: %s\n", reason);
			return 1;
		}
		off.total_samples += off.samples;
		tick_median = median_gap();
		tick_middle = middle_gap();
		tick_mean = (double)gaps_sum / nr_gaps;
		off.medians[rep] = tick_median;
		off.means[rep] = tick_middle;
		if (!rep) {
			first_median = tick_median;
			first_middle = tick_middle;
		}
		for (struct row *row = rows; row < rows + NR_ROWS; row++) {
			if (!row->chosen || row->failed)
				continue;
			pause_ms(200);
			if (row->run(row, ticks)) {
				account(row, rep);
			} else {
				row->failed = true;
				memcpy(row->reason, reason, sizeof(reason));
			}
		}
	}

	report(&off, reps);
	for (struct row *row = rows; row < rows + NR_ROWS; row++)
		if (row->chosen)
			report(row, reps);
	return 0;
}
