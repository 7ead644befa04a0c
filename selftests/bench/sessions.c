// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of profil: the cost of a sample, with more and more of the things that may increase it; and
 * the cost of a start, a stop and a fork.
 */
#include "measure.h"

#include "../lib/unwind.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAX_RANGES	1000
#define MAX_OTHERS	10000
#define MAX_THREADS	256
#define MAX_SESSIONS	3
#define TOGGLES		1000
#define FORKS		5

static u16 *counters;
static struct profil_range *ranges;

static struct profil_range *range_set(struct profil_range *range, u64 start, u64 end, u16 *buffer)
{
	*range = range_of(start, end, buffer, (end - start) / 2 + 1, 2);
	range->granule = 2;
	return range;
}

/*
 * Sets @nr ranges. @in_loop of them, in the middle, divide the loop into equal parts. Half of the
 * others are below it and half above, where no code is. Each has its own counters.
 */
static void set_ranges(u32 nr, u32 in_loop)
{
	const u32 first = (nr - in_loop) / 2;
	u16 *next = counters;

	for (u32 i = 0; i < nr; i++) {
		u64 start, end;

		if (i >= first && i < first + in_loop) {
			start = addr(bench_loop) + (i - first) * LOOP_BYTES / in_loop;
			end = addr(bench_loop) + (i - first + 1) * LOOP_BYTES / in_loop;
		} else {
			start = (i < first ? 0x10000 : 0x7000000000) + i * 32;
			end = start + 14;
		}
		next += range_set(&ranges[i], start, end, next)->nr_counters;
	}
}

static bool start_ranges(u32 scope, u32 nr, u64 period)
{
	int err = clock_start(scope, 0, period, ranges, nr);

	return !err || fail("PROFIL_IOC_START: %s", strerror(-err));
}

static bool start(u32 scope, u32 nr, u32 in_loop, u64 period)
{
	if (nr > query.max_ranges)
		return fail("at most %u ranges", query.max_ranges);
	set_ranges(nr, in_loop);
	return start_ranges(scope, nr, period);
}

static bool stop(u32 scope, struct profil_stats *stats)
{
	int err = session_stop(scope, stats);

	return !err || fail("PROFIL_IOC_STOP: %s", strerror(-err));
}

/*
 * Processes that sleep, with one session each. They are children of a process that was forked when
 * this program was small, and had no session to inherit.
 */

static int zygote = -1;

static bool other_start(void)
{
	int pipes[2];
	char byte;
	pid_t pid;
	bool ok;

	if (pipe(pipes))
		return false;
	pid = fork();
	if (!pid) {
		if (!start(PROFIL_SCOPE_PROCESS, 1, 1, 0) || write(pipes[1], "", 1) != 1)
			_exit(1);
		close(pipes[0]);
		close(pipes[1]);
		for (;;)
			pause();
	}
	close(pipes[1]);
	ok = pid > 0 && read(pipes[0], &byte, 1) == 1;
	close(pipes[0]);
	return ok;
}

/*
 * Reads numbers from @fd, and starts or ends processes until so many have a session. They are in
 * the process group of this process, which is killed at the end.
 */
static void zygote_run(int fd)
{
	static struct profil_range range;
	static u16 few[4096];
	u32 nr = 0, wanted;

	ranges = &range;
	counters = few;
	while (read(fd, &wanted, sizeof(wanted)) == sizeof(wanted)) {
		if (wanted < nr) {
			signal(SIGUSR1, SIG_IGN);
			kill(0, SIGUSR1);
			while (wait(NULL) > 0)
				;
			signal(SIGUSR1, SIG_DFL);
			nr = 0;
		}
		while (nr < wanted && other_start())
			nr++;
		if (write(fd, &nr, sizeof(nr)) != sizeof(nr))
			break;
	}
	kill(0, SIGKILL);
}

bool set_others(u32 wanted)
{
	static u32 nr;

	if (wanted == nr)
		return true;
	if (write(zygote, &wanted, sizeof(wanted)) != sizeof(wanted) ||
	    read(zygote, &nr, sizeof(nr)) != sizeof(nr))
		die("zygote");
	/* Waits until the kernel has done deferred work, which would be measured otherwise. */
	pause_ms(1000);
	return nr == wanted || fail("%u other sessions instead of %u", nr, wanted);
}

void sessions_init(void)
{
	int pair[2];
	pid_t pid;

	if (LOOP_COUNTERS > 4096 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
	device_fd();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(pair[0]);
		setpgid(0, 0);
		zygote_run(pair[1]);
	}
	close(pair[1]);
	zygote = pair[0];

	ranges = reserve(MAX_RANGES * sizeof(*ranges));
	counters = reserve(LOOP_COUNTERS * 8 + MAX_RANGES * 16);
}

/* Records the cost of a sample on the tick: the extra time relative to @without. */
static void sampled(const char *name, const struct gaps *with, const struct gaps *without)
{
	figure(name, shift_of(with, without), with->middle - without->middle, with->nr);
}

/*
 * Checks that nearly all interrupts are ticks, each with a hit. Linux 7.2 has some other
 * interrupts.
 */
static bool all_hits(const struct gaps *gaps, const struct profil_stats *stats)
{
	if (stats->hit + 3 + gaps->nr / 10 >= gaps->nr && stats->hit <= gaps->nr + 3)
		return true;
	return fail("%lu interrupts, but %llu hits of %llu ticks", gaps->nr, stats->hit,
		    stats->ticks);
}

/* Measures while the tick is hooked. */
static bool measure_hooked(struct gaps *gaps)
{
	if (!hook_is(PROFIL_HOOK_FTRACE))
		return false;
	pause_ms(100);
	return measure(gaps);
}

/* Records the cost of a sample of a clock, which includes the clock's own interrupt. */
static bool clocked(const struct row *row, const struct gaps *gaps,
		    const struct profil_stats *stats)
{
	const double ticks = (double)gaps->elapsed / query.tick_ns;

	if (stats->hit < gaps->elapsed / row->period * 998 / 1000)
		return fail("%llu hits in %lu periods", stats->hit, gaps->elapsed / row->period);
	figure(row->name, gaps->median,
	       (gaps->sum - ticks * tick.sum / tick.nr) / stats->hit, stats->hit);
	return true;
}

bool run_sampled(const struct row *row)
{
	const u32 in_loop = row->scattered ? row->ranges : 1;
	struct profil_stats stats;
	struct gaps gaps;
	bool ok;

	if (row->ranges > query.max_ranges)
		return fail("at most %u ranges", query.max_ranges);
	set_ranges(row->ranges, in_loop);
	if (row->width)
		ranges[0].width = row->width;
	if (!start_ranges(row->scope, row->ranges, row->period))
		return false;
	ok = hook_is(row->period ? PROFIL_HOOK_NONE : PROFIL_HOOK_FTRACE) &&
	     (!row->later || set_others(row->others));
	pause_ms(100);
	ok = ok && (row->system ? measure_system(&gaps) : measure(&gaps));
	if (!stop(row->scope, &stats) || !ok)
		return false;
	if (row->period)
		return clocked(row, &gaps, &stats);
	if (row->system && stats.system * 10 < stats.ticks * 9)
		return fail("%llu of %llu ticks in the kernel", stats.system, stats.ticks);
	sampled(row->name, &gaps, row->system ? &system_tick : &tick);
	return all_hits(&gaps, &stats);
}

bool run_unsampled(const struct row *row)
{
	struct gaps gaps;

	if (!hook_is(PROFIL_HOOK_FTRACE) || !measure(&gaps))
		return false;
	sampled(row->name, &gaps, &tick);
	return true;
}

/* Returns the number of instructions since @begin. */
static double since(u64 begin)
{
	return (double)(now_ns() - begin) / INSTRUCTION_NS;
}

/* Measures one start and one stop, while the hook stays installed. */
bool run_toggle(const struct row *row)
{
	u64 begin = 0;
	double each;

	for (int i = 0; i <= TOGGLES; i++) {
		if (!start(PROFIL_SCOPE_PROCESS, 1, 1, 0) || !stop(PROFIL_SCOPE_PROCESS, NULL))
			return false;
		/* The first start installs the hook. */
		if (!i)
			begin = now_ns();
	}
	each = since(begin) / TOGGLES;
	figure(row->name, each, each, TOGGLES);
	return true;
}

/* Threads that sleep, run, or sleep with a session each */

static const struct row *threads_row;
static sem_t thread_ready;
static int thread_gate[2];
static volatile bool threads_over, thread_failed;

static void *thread_main(void *arg)
{
	char byte;

	if (threads_row->running)
		thread_failed |= setpriority(PRIO_PROCESS, syscall(SYS_gettid), 19);
	if (threads_row->scope == PROFIL_SCOPE_THREAD)
		thread_failed |= !start(PROFIL_SCOPE_THREAD, 1, 1, 0);
	sem_post(&thread_ready);
	thread_failed |= read(thread_gate[0], &byte, 1);
	while (!threads_over)
		;
	return arg;
}

/*
 * The measured thread has a higher priority than the threads that run, so it gets nearly all CPU
 * time, and most of its ticks cause no switch. There are still several kinds of ticks, depending on
 * the work of the scheduler: the cheapest of each measurement are compared.
 */
static bool measure_among(const struct row *row)
{
	struct profil_stats stats;
	struct gaps gaps, before;
	bool ok;

	if ((row->running && !measure_off(&before)) || !start(row->scope, row->ranges, 1, 0))
		return false;
	ok = measure_hooked(&gaps);
	if (!stop(row->scope, &stats) || !ok)
		return false;
	if (row->running) {
		figure(row->name, gaps.low - before.low, gaps.low - before.low, gaps.nr);
		return true;
	}
	sampled(row->name, &gaps, &tick);
	return all_hits(&gaps, &stats);
}

bool run_threads(const struct row *row)
{
	pthread_t threads[MAX_THREADS];
	u32 nr = 0;
	bool ok;

	threads_row = row;
	threads_over = false;
	thread_failed = false;
	if (pipe(thread_gate) || sem_init(&thread_ready, 0, 0))
		die("threads");
	while (nr < row->threads - 1 && !pthread_create(&threads[nr], NULL, thread_main, NULL)) {
		sem_wait(&thread_ready);
		nr++;
	}
	ok = (nr == row->threads - 1 && !thread_failed) || fail("%u threads", nr);
	if (row->running) {
		setpriority(PRIO_PROCESS, 0, -20);
		close(thread_gate[1]);
	}
	pause_ms(500);
	ok = ok && measure_among(row);
	threads_over = true;
	setpriority(PRIO_PROCESS, 0, 0);
	if (!row->running)
		close(thread_gate[1]);
	while (nr)
		pthread_join(threads[--nr], NULL);
	close(thread_gate[0]);
	sem_destroy(&thread_ready);
	return ok;
}

/* A session of the process, one of the thread, and a descriptor session. */
bool run_sessions(const struct row *row)
{
	struct profil_stats stats[MAX_SESSIONS];
	struct gaps gaps;
	int fd = -1;
	bool ok;

	if (!start(PROFIL_SCOPE_PROCESS, 1, 1, 0))
		return false;
	ok = start(PROFIL_SCOPE_THREAD, 1, 1, 0);
	if (row->sessions == 3) {
		fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
		ok = ok && (!descriptor_begin(fd, PROFIL_SCOPE_PROCESS, ranges, 1) ||
			    fail("no descriptor session"));
	}
	ok = ok && measure_hooked(&gaps);
	if (fd >= 0) {
		ok = ok && (!descriptor_disable(fd, &stats[2]) || fail("PROFIL_IOC_DISABLE"));
		close(fd);
	}
	ok = ok && stop(PROFIL_SCOPE_THREAD, &stats[1]);
	ok = stop(PROFIL_SCOPE_PROCESS, &stats[0]) && ok;
	for (u32 i = 0; ok && i < row->sessions; i++)
		ok = all_hits(&gaps, &stats[i]);
	if (ok)
		sampled(row->name, &gaps, &tick);
	return ok;
}

/* Each tick writes a record. No one reads them meanwhile. */
bool run_record(const struct row *row)
{
	const int fd = descriptor_open_as((struct profil_open){
		.modes = MODES_ALL,
		.nr_records = row->records,
		.stack_depth = row->frames ? MAX_FRAMES : 0,
	});
	const struct profil_unwind_rule rule = {
		.kind = PROFIL_UNWIND_FP, .cfa = 16, .fp = -16,
	};
	struct profil_stats stats;
	struct gaps gaps;
	bool ok;

	if (fd < 0)
		return fail("PROFIL_IOC_OPEN: %s", strerror(-fd));
	ok = !descriptor_begin(fd, row->scope, NULL, 0) || fail("no descriptor session");
	ok = ok && hook_is(PROFIL_HOOK_FTRACE);
	ok = ok && (!row->by_table || !unwind_give(fd, bench_loop, rule) ||
		    fail("PROFIL_IOC_UNWIND"));
	pause_ms(100);
	ok = ok && measure_frames(row->frames, &gaps);
	ok = ok && (!descriptor_disable(fd, &stats) || fail("PROFIL_IOC_DISABLE"));
	close(fd);
	if (!ok)
		return false;
	if (stats.outside < gaps.nr * 9 / 10 || stats.dropped)
		return fail("%lu interrupts, but %llu of %llu ticks left a record", gaps.nr,
			    stats.outside, stats.ticks);
	sampled(row->name, &gaps, &tick);
	return true;
}

/* Forks a child that exits at once. If it @asks for statistics, this sets up its session. */
static double fork_once(bool asks)
{
	struct profil_stats stats;
	u64 begin = now_ns();
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (!asks)
			_exit(0);
		_exit(session_stats(PROFIL_SCOPE_PROCESS, &stats) ||
		      stats.state != PROFIL_STATE_ON);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fail("fork");
		return -1;
	}
	return since(begin);
}

static bool forks(const struct row *row, const char *what, bool asks)
{
	const unsigned int nr = row->once ? 1 : FORKS;
	double values[FORKS];

	for (unsigned int i = 0; i < nr; i++) {
		values[i] = fork_once(asks);
		if (values[i] < 0)
			return false;
	}
	figure_of(row, what, values, nr);
	return true;
}

/* Measures PROFIL_IOC_START and PROFIL_IOC_STOP, FORKS times each. */
static bool starts(const struct row *row)
{
	double started[FORKS], stopped[FORKS];
	u64 begin;

	for (int i = 0; i < FORKS; i++) {
		begin = now_ns();
		if (!start_ranges(PROFIL_SCOPE_PROCESS, 1, 0))
			return false;
		started[i] = since(begin);
		begin = now_ns();
		if (!stop(PROFIL_SCOPE_PROCESS, NULL))
			return false;
		stopped[i] = since(begin);
	}
	figure_of(row, "start", started, FORKS);
	figure_of(row, "stop", stopped, FORKS);
	return true;
}

/* Spreads the counters over the histogram. The last one is at its end. */
static void range_spread(struct profil_range *range, u16 *buffer, u64 nr_counters)
{
	const u64 scale = (nr_counters << 16) / LOOP_BYTES;

	range_set(range, addr(bench_loop), addr(bench_loop_end), buffer);
	range->nr_counters = nr_counters;
	range->granule = 1;
	range->scale = scale > UINT32_MAX ? UINT32_MAX : scale;
	range->offset = range->end - (nr_counters << 16) / range->scale;
}

static bool sample_histogram(const struct row *row)
{
	struct profil_stats stats;
	struct gaps gaps;
	bool ok;

	if (!start_ranges(PROFIL_SCOPE_PROCESS, 1, 0))
		return false;
	ok = measure_hooked(&gaps) && forks(row, "forked", false) && forks(row, "asked", true);
	if (!stop(PROFIL_SCOPE_PROCESS, &stats) || !ok)
		return false;
	sampled(row->name, &gaps, &tick);
	/* Ticks during the forks are in the kernel, in fork() and waitpid(). */
	return stats.hit + 3 + gaps.nr / 10 >= gaps.nr ||
	       fail("%lu interrupts, but %llu hits", gaps.nr, stats.hit);
}

/*
 * Uses small pages, which a histogram may have anyway. The fork without a session is last, because
 * it leaves pages behind that a start would have to make writable.
 */
bool run_histogram(const struct row *row)
{
	void *buffer = mmap(NULL, row->histogram, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool ok;

	if (buffer == MAP_FAILED)
		return fail("mmap: %s", strerror(errno));
	ok = (!madvise(buffer, row->histogram, MADV_NOHUGEPAGE) &&
	      !madvise(buffer, row->histogram, MADV_POPULATE_WRITE)) ||
	     fail("madvise: %s", strerror(errno));
	range_spread(&ranges[0], buffer, row->histogram / sizeof(u16));
	/* After this, the hook is installed. */
	ok = ok && !session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0) &&
	     stop(PROFIL_SCOPE_PROCESS, NULL);
	ok = ok && starts(row) && sample_histogram(row) && forks(row, "fork", false);
	munmap(buffer, row->histogram);
	return ok;
}

/*
 * The worst tick that a user without privileges can cause to their own task: the largest number of
 * sessions on the process and on its thread, and the classic ones, each with the largest number of
 * ranges. Each session has a hit or leaves a record, in an address space with the largest number of
 * mappings.
 */

#define WORST_MAPPINGS	60000UL

/* A pc in the loop is in the middle range, or between two ranges. */
static void set_worst_ranges(struct profil_range *worst, u32 nr, u64 *buffer, bool hit)
{
	for (u32 i = 0; i < nr; i++) {
		u64 start = (i < nr / 2 ? 0x10000 : 0x7000000000) + i * 32;

		range_set(&worst[i], start, start + 16, (u16 *)buffer);
		if (hit && i == nr / 2)
			range_set(&worst[i], addr(bench_loop), addr(bench_loop_end), (u16 *)buffer);
		worst[i].nr_counters = 512;
		worst[i].width = 8;
		worst[i].granule = 4096;
	}
}

static void *map_worst(void)
{
	char *p = mmap(NULL, WORST_MAPPINGS * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	for (u64 i = 0; i < WORST_MAPPINGS; i += 2)
		if (mprotect(p + i * PAGE, PAGE, PROT_READ))
			die("mprotect");
	return p;
}

static int open_worst(u32 scope, u32 records, const struct profil_range *worst)
{
	int fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, records);

	if (fd < 0 || descriptor_attach(fd, scope, 0, NULL) ||
	    descriptor_add(fd, PROFIL_SPACE_SELF, worst, query.max_ranges)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool run_worst(const struct row *row)
{
	struct profil_range *worst = reserve(query.max_ranges * sizeof(*worst));
	u32 nr = 2 * query.max_sessions;
	u64 *buffer = reserve(PAGE), outcomes;
	struct profil_stats stats;
	void *mappings = map_worst();
	struct gaps gaps;
	bool ok = true;
	int fds[nr];

	set_worst_ranges(worst, query.max_ranges, buffer, !row->records);
	for (u32 i = 0; i < nr; i++) {
		fds[i] = ok ? open_worst(i % 2, row->records, worst) : -1;
		ok = ok && (fds[i] >= 0 || fail("session %u: %s", i, strerror(errno)));
	}
	/* The classic sessions are last, because they count towards the limit. */
	set_worst_ranges(worst, query.max_ranges, buffer, true);
	if (ok && (session_start(PROFIL_SCOPE_PROCESS, 0, worst, query.max_ranges) ||
		   session_start(PROFIL_SCOPE_THREAD, 0, worst, query.max_ranges)))
		ok = fail("PROFIL_IOC_START: %s", strerror(errno));
	/* Enabled only now, because the set-up takes long, and records would be full. */
	for (u32 i = 0; i < nr; i++)
		ok = ok && (!descriptor_enable(fds[i]) || fail("PROFIL_IOC_ENABLE"));
	ok = ok && measure_hooked(&gaps);
	for (u32 i = 0; i < nr && fds[i] >= 0; i++) {
		ok = ok && (!descriptor_disable(fds[i], &stats) || fail("PROFIL_IOC_DISABLE"));
		outcomes = row->records ? stats.outside : stats.hit;
		ok = ok && ((outcomes >= gaps.nr && !stats.dropped) ||
			    fail("%lu interrupts, but only %lu of %llu ticks", gaps.nr, outcomes,
				 stats.ticks));
	}
	for (u32 i = 0; i < nr; i++)
		close(fds[i]);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	munmap(mappings, WORST_MAPPINGS * PAGE);
	munmap(buffer, PAGE);
	munmap(worst, query.max_ranges * sizeof(*worst));
	if (ok)
		sampled(row->name, &gaps, &tick);
	return ok;
}
