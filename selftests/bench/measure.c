// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of a sample, in instructions. It runs in a VM whose clock counts instructions:
 * one instruction takes INSTRUCTION_NS of guest time, whatever the host does.
 *
 * A user loop of known length reads the clock in each iteration (loop.S). If a tick interrupts an
 * iteration, this takes longer by the instructions that the kernel executed. The cost of the tick
 * itself is measured without profiling, repeatedly, between the other measurements. The difference
 * is the cost of the sample, everything included.
 *
 * There are two figures for each row: the usual cost of the sample (see shift_of()), and the mean
 * of the middle 80 %. The other 20 % are left out because some ticks do unrelated work, which is
 * longer than the samples.
 *
 *	measure TICKS REPETITIONS [ROW...]
 *
 * measures these rows, or all but the worst ticks. It prints a line for each figure: name, median,
 * mean and number of samples, separated by tabs; or the row's name, "-", and the reason why the row
 * could not be measured.
 */
#include "measure.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define MAX_REPS	64
#define MAX_FIGURES	128

struct profil_query query;
struct gaps tick, system_tick;

static unsigned int ticks;	/* number of ticks in a measurement */

/* The reason why the current row cannot be measured. */
static char reason[sizeof(((struct row *)NULL)->reason)];

bool fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return false;
}

void die(const char *what)
{
	fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
	exit(1);
}

void pause_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static void ask(void)
{
	if (device_query(&query))
		die("PROFIL_IOC_QUERY");
}

bool hook_is(int hook)
{
	ask();
	if ((int)query.hook == hook)
		return true;
	return fail("the hook is %u, not %d", query.hook, hook);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median_of(double *values, unsigned int nr)
{
	qsort(values, nr, sizeof(*values), compare_doubles);
	return (values[(nr - 1) / 2] + values[nr / 2]) / 2;
}

/*
 * The extra cost of the interrupts of one measurement relative to another. There are several kinds
 * of ticks, depending on the work of the scheduler. Each kind always takes the same number of
 * instructions. So the most frequent difference between two ticks is that of ticks of the same
 * kind.
 */
double shift_of(const struct gaps *with, const struct gaps *without)
{
	static unsigned int pairs[40000];
	const int middle = ARRAY_SIZE(pairs) / 2;
	int best = middle;

	memset(pairs, 0, sizeof(pairs));
	for (size_t i = 0; i < with->nr && i < ARRAY_SIZE(with->values); i++) {
		for (size_t j = 0; j < without->nr && j < ARRAY_SIZE(without->values); j++) {
			double d = with->values[i] - without->values[j] + middle;

			if (d >= 0 && d < ARRAY_SIZE(pairs))
				pairs[(int)d]++;
		}
	}
	for (int i = 0; i < (int)ARRAY_SIZE(pairs); i++)
		if (pairs[i] > pairs[best])
			best = i;
	return best - middle;
}

void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* One measurement: the extra time of interrupted iterations */

static uint64_t *rounds;
static double *excess;
static size_t max_rounds;

static size_t user_loop(u64 iterations, u64 threshold)
{
	return bench_loop(iterations, threshold, rounds, max_rounds);
}

static const void *frame;	/* the innermost one */

static size_t framed_loop(u64 iterations, u64 threshold)
{
	return bench_framed_loop(iterations, threshold, rounds, max_rounds, frame);
}

/* Like bench_loop(), but an iteration is a read(), nearly all of which runs in the kernel. */
static size_t system_loop(u64 iterations, u64 threshold)
{
	static char buffer[BENCH_READ_BYTES];
	static int fd = -1;
	u64 last, now;
	size_t nr = 0;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	for (last = __builtin_ia32_rdtsc(); iterations--; last = now) {
		bench_read(fd, buffer);
		now = __builtin_ia32_rdtsc();
		if (now - last <= threshold)
			continue;
		if (nr < max_rounds)
			rounds[nr] = now - last;
		nr++;
	}
	return nr;
}

/* Returns the shortest time of an iteration. Nearly all iterations take this time. */
static u64 system_round(void)
{
	const size_t nr = system_loop(1000, 0);
	u64 least = rounds[0];

	for (size_t i = 1; i < nr; i++)
		if (rounds[i] < least)
			least = rounds[i];
	return least;
}

static bool measure_loop(size_t (*loop)(u64 iterations, u64 threshold), u64 round,
			 struct gaps *gaps)
{
	u64 begin, first;
	size_t nr;

	/*
	 * An iteration that is not interrupted always takes the same time; or a few instructions
	 * more after an interrupted iteration, whose time it stores.
	 */
	begin = now_ns();
	nr = loop(query.tick_ns * ticks / round, round + 20 * INSTRUCTION_NS);
	*gaps = (struct gaps){};
	gaps->elapsed = now_ns() - begin;
	if (nr > max_rounds)
		return fail("%zu interrupts, expected %u: time is not counted in instructions",
			    nr, ticks);
	if (!nr)
		return fail("no interrupts");
	for (size_t i = 0; i < nr; i++)
		excess[i] = (rounds[i] - round) / INSTRUCTION_NS;
	gaps->nr = nr;
	for (size_t i = 0; i < nr && i < ARRAY_SIZE(gaps->values); i++)
		gaps->values[i] = excess[i];
	gaps->median = median_of(excess, nr);
	for (size_t i = 0; i < nr; i++)
		gaps->sum += excess[i] <= 2 * excess[nr * 9 / 10] ? excess[i] : gaps->median;
	first = nr / 10;
	for (size_t i = nr; i-- && excess[i] > 0.95 * tick.median;)
		gaps->low = excess[i];
	for (size_t i = first; i < nr - first; i++)
		gaps->middle += excess[i];
	gaps->middle /= nr - 2 * first;
	return true;
}

bool measure(struct gaps *gaps)
{
	return measure_loop(user_loop, BENCH_ROUND_NS, gaps);
}

bool measure_frames(u32 nr, struct gaps *gaps)
{
	/* Local, so that the frames are above the stack pointer of the loop. */
	struct {
		const void *next;
		u64 address;
	} frames[MAX_FRAMES];

	if (!nr)
		return measure(gaps);
	for (u32 i = 0; i < nr; i++) {
		frames[i].next = i + 1 < nr ? &frames[i + 1] : NULL;
		frames[i].address = addr(bench_loop);
	}
	frame = frames;
	return measure_loop(framed_loop, BENCH_ROUND_NS, gaps);
}

bool measure_system(struct gaps *gaps)
{
	static u64 round;

	if (!round)
		round = system_round();
	return measure_loop(system_loop, round, gaps);
}

/* Figures, in the order of their first measurement */

static struct figure {
	char name[64];
	unsigned int nr;
	double medians[MAX_REPS];
	double means[MAX_REPS];
	u64 samples;
} figures[MAX_FIGURES];

static unsigned int nr_figures;

void figure(const char *name, double median, double mean, u64 samples)
{
	struct figure *f = figures;

	while (f < figures + nr_figures && strcmp(f->name, name))
		f++;
	if (f == figures + nr_figures) {
		if (nr_figures++ == MAX_FIGURES) {
			fprintf(stderr, "measure: too many figures\n");
			exit(1);
		}
		snprintf(f->name, sizeof(f->name), "%s", name);
	}
	f->medians[f->nr] = median;
	f->means[f->nr++] = mean;
	f->samples += samples;
}

void figure_of(const struct row *row, const char *what, double *values, unsigned int nr)
{
	double median = median_of(values, nr);
	char name[64];

	snprintf(name, sizeof(name), "%s-%s", row->name, what);
	figure(name, median, median, nr);
}

/* The tick before any session existed */
static struct gaps first_tick;

bool wait_for_no_hook(void)
{
	for (int i = 0; i < 3600 && !hook_is(PROFIL_HOOK_NONE); i++)
		pause_ms(1000);
	return hook_is(PROFIL_HOOK_NONE);
}

bool measure_off(struct gaps *gaps)
{
	if (!wait_for_no_hook())
		return false;
	pause_ms(500);
	return measure(gaps);
}

static bool run_nobody(const struct row *row)
{
	struct gaps gaps;

	if (!measure_off(&gaps))
		return false;
	figure(row->name, shift_of(&gaps, &first_tick), gaps.middle - first_tick.middle, gaps.nr);
	return true;
}

/* Rows */

#define PROCESS(n, r, ...) \
	{ .name = (n), .run = run_sampled, .ranges = (r), __VA_ARGS__ }

#define WHOLE(n) \
	{ .name = "whole-" n, .run = run_whole }

#define THREADS_AS(n, kind, ...) \
	{ .name = kind "-" #n, .run = run_threads, .threads = (n), .ranges = 1, __VA_ARGS__ }

#define THREADS(n)						\
	THREADS_AS(n, "asleep"),				\
	THREADS_AS(n, "running", .running = true),		\
	THREADS_AS(n, "own", .scope = PROFIL_SCOPE_THREAD)

#define OTHERS(n, ...)							\
	PROCESS("later-" #n, 1, .others = (n), .later = true, __VA_ARGS__),	\
	PROCESS("others-" #n, 1, .others = (n), __VA_ARGS__)

#define HISTOGRAM(n, kib, ...) \
	{ .name = "histogram-" n, .run = run_histogram, .histogram = (kib) * 1024UL, __VA_ARGS__ }

/*
 * In the order in which they run. The first need a kernel without the hook, and the last one
 * removes it.
 */
static struct row rows[] = {
	{ .name = "glibc", .run = run_glibc, .longer = true },
	{ .name = "gperftools", .run = run_gperftools, .longer = true },
	{ .name = "perf-event", .run = run_perf_event, .longer = true },
	{ .name = "perf-frames-10", .run = run_perf_event, .frames = 10, .longer = true },
	{ .name = "perf-frames-110", .run = run_perf_event, .frames = 110, .longer = true },
	{ .name = "perf-record", .run = run_perf_record, .longer = true },
	{ .name = "bpftrace", .run = run_bpftrace, .longer = true, .once = true },
	WHOLE("gperftools"),
	WHOLE("perf"),
	WHOLE("perf-1000hz"),
	WHOLE("perf-all"),
	WHOLE("perf-dwarf"),
	{ .name = "timer-1000us", .run = run_timer, .period = 1000000 },
	{ .name = "timer-123us", .run = run_timer, .period = 123031 },
	{ .name = "timer-50us", .run = run_timer, .period = 50000 },
	PROCESS("clock-1000us", 1, .period = 1000000),
	PROCESS("clock-123us", 1, .period = 123031),
	PROCESS("clock-50us", 1, .period = 50000),
	WHOLE("profil-1000hz"),
	WHOLE("profil-stacks"),
	WHOLE("profil-all"),
	{ .name = "unsampled", .run = run_unsampled, .others = 1 },
	PROCESS("process-1", 1),
	PROCESS("width-32", 1, .width = 4),
	PROCESS("width-64", 1, .width = 8),
	PROCESS("system-1", 1, .system = true),
	PROCESS("process-10", 10),
	PROCESS("process-100", 100),
	PROCESS("process-1000", 1000),
	PROCESS("scattered-10", 10, .scattered = true),
	PROCESS("scattered-100", 100, .scattered = true),
	PROCESS("scattered-1000", 1000, .scattered = true),
	PROCESS("thread-1", 1, .scope = PROFIL_SCOPE_THREAD),
	PROCESS("thread-1000", 1000, .scope = PROFIL_SCOPE_THREAD),
	{ .name = "toggle", .run = run_toggle },
	{ .name = "sessions-2", .run = run_sessions, .sessions = 2 },
	{ .name = "sessions-3", .run = run_sessions, .sessions = 3 },
	{ .name = "record-1", .run = run_record, .records = 4096 },
	{ .name = "record-machine", .run = run_record, .records = 4096,
	  .scope = PROFIL_SCOPE_MACHINE },
	{ .name = "frames-10", .run = run_record, .records = 4096, .frames = 10 },
	{ .name = "frames-110", .run = run_record, .records = 4096, .frames = 110 },
	{ .name = "tables-10", .run = run_record, .records = 4096, .frames = 10, .by_table = true },
	{ .name = "tables-110", .run = run_record, .records = 4096, .frames = 110,
	  .by_table = true },
	WHOLE("profil"),
	THREADS_AS(1, "own", .scope = PROFIL_SCOPE_THREAD),
	THREADS(4),
	THREADS(16),
	THREADS(64),
	THREADS(256),
	HISTOGRAM("64K", 64),
	HISTOGRAM("1M", 1024),
	HISTOGRAM("16M", 16 * 1024, .once = true),
	HISTOGRAM("256M", 256 * 1024, .once = true),
	HISTOGRAM("1G", 1024 * 1024, .once = true),
	OTHERS(1),
	OTHERS(10),
	OTHERS(100),
	OTHERS(1000, .once = true),
	OTHERS(10000, .once = true),
	{ .name = "worst-hits", .run = run_worst, .once = true },
	{ .name = "worst-records", .run = run_worst, .records = 512, .once = true },
	{ .name = "nobody", .run = run_nobody },
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

static void report(void)
{
	for (struct figure *f = figures; f < figures + nr_figures; f++)
		printf("%s\t%.0f\t%.1f\t%lu\n", f->name, median_of(f->medians, f->nr),
		       median_of(f->means, f->nr), f->samples);
	for (struct row *row = rows; row < rows + NR_ROWS; row++)
		if (row->failed)
			printf("%s\t-\t%s\n", row->name, row->reason);
}

int main(int argc, char **argv)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned int asked, reps;

	if (argc > 1 && !strcmp(argv[1], WHOLE_PROGRAM))
		return whole_program(argc, argv);
	if (argc < 3) {
		fprintf(stderr, "usage: measure TICKS REPETITIONS [ROW...]\n");
		return 1;
	}
	asked = strtoul(argv[1], NULL, 10);
	reps = strtoul(argv[2], NULL, 10);
	if (!asked || !reps || reps > MAX_REPS) {
		fprintf(stderr, "measure: bad number\n");
		return 1;
	}
	for (int i = 3; i < argc; i++)
		find_row(argv[i])->chosen = true;
	for (struct row *row = rows; row < rows + NR_ROWS && argc == 3; row++)
		row->chosen = row->run != run_worst;

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	ask();
	sessions_init();
	max_rounds = asked * 200;
	rounds = reserve(max_rounds * sizeof(*rounds));
	excess = reserve(max_rounds * sizeof(*excess));

	/* The kernel may still have deferred work of the boot. */
	pause_ms(5000);

	for (unsigned int rep = 0; rep < reps; rep++) {
		ticks = 4 * asked;
		if (!measure_off(&tick)) {
			fprintf(stderr, "measure: %s\n", reason);
			return 1;
		}
		if (!rep)
			first_tick = tick;
		figure("tick", tick.median, tick.middle, tick.nr);
		if (find_row("system-1")->chosen) {
			if (!measure_system(&system_tick)) {
				fprintf(stderr, "measure: %s\n", reason);
				return 1;
			}
			figure("system-tick", system_tick.median, system_tick.middle,
			       system_tick.nr);
		}
		for (struct row *row = rows; row < rows + NR_ROWS; row++) {
			if (!row->chosen || row->failed || (row->once && rep))
				continue;
			pause_ms(200);
			ticks = row->longer ? 4 * asked : asked;
			if (!set_others(row->later ? 0 : row->others) || !row->run(row)) {
				row->failed = true;
				memcpy(row->reason, reason, sizeof(reason));
			}
		}
		set_others(0);
	}
	report();
	return 0;
}
