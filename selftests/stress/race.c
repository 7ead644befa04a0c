// SPDX-License-Identifier: GPL-2.0
/*
 * Each test runs the tick concurrently with one kind of event for PROFIL_RACE_SECONDS (2), again
 * and again, at random times. PROFIL_RACE_SEED is the seed. stress.c mixes some of these events;
 * here each has its own test.
 *
 * Worker processes start sessions of all kinds, run, fork and stop, and check that each hit is in a
 * counter and that all statistics add up. The events are caused by the workers themselves, or by
 * this process, which changes something that the tick depends on. If a worker cannot start a
 * session because the module is not loaded or the tick is not hooked, it tries again. A test
 * continues until its event has happened often enough, however slow the machine is, and prints the
 * number of events at the end.
 */
#include "kselftest_harness.h"

#include <linux/perf_event.h>

#include "chance.h"
#include "failures.h"
#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "threads.h"
#include "unwind.h"
#include "usage.h"

#define FTRACE_ENABLED	"/proc/sys/kernel/ftrace_enabled"

#define WORKERS		3U
#define ENOUGH		2U			/* required number of events */
#define PATIENCE_NS	120000000000ULL		/* time limit for these */

struct shared {
	atomic_uint stop;
	atomic_uint hold;		/* workers must not begin another round */
	atomic_ullong rounds;		/* rounds in which a worker counted */
	atomic_ullong hits;		/* in these rounds */
	atomic_ullong refused;		/* rounds in which no session could start */
	atomic_ullong ended;		/* sessions that the kernel ended */
	atomic_ullong events;		/* events that the test is about */
	atomic_int pids[WORKERS];
	struct failures failures;
};

static struct shared *shared;
static int device;		/* the descriptor of the device while it is open */

#define fail(...)	failures_note(&shared->failures, __VA_ARGS__)

/*
 * Workers
 */

static u32 counters[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

static u64 any_period(struct actor *a)
{
	return one_in(a, 2) ? 0 : 50000 + any(a, 500000);
}

static u32 any_depth(struct actor *a)
{
	return one_in(a, 2) ? 0 : any(a, 128);
}

/* Returns false if no session started, since the module is not loaded or the tick not hooked. */
static bool started(int err, const char *call)
{
	switch (err) {
	case 0:
		return true;
	case -ENOENT:		/* no device: the module is not loaded yet */
	case -ENODEV:
	case -ENXIO:
	case -EBUSY:		/* the tick cannot be hooked now */
		break;
	default:
		fail("%s: errno %d", call, -err);
	}
	shared->refused++;
	pause_ns(200000);
	return false;
}

static void check_stats(const char *call, int err, const struct profil_stats *s)
{
	const char *wrong = err ? NULL : wrong_stats(s);

	if (err)
		fail("%s: errno %d", call, -err);
	else if (wrong)
		fail("%s: %s", call, wrong);
	else
		shared->hits += s->hit;
	shared->ended += !err && s->state == PROFIL_STATE_ENDED;
}

/* Checks the last statistics of a session, and that the counters have its hits. */
static void check_last(const char *of, int err, const struct profil_stats *s, u64 before)
{
	u64 sum = counters_sum(counters, 4, LOOPS) - before;

	check_stats(of, err, s);
	if (!err && (sum != s->hit || s->end))
		fail("%s: %llu hits, counted %lu, end %u", of, s->hit, sum, s->end);
}

/* Stops a session of @scope. Returns its hits. */
static u64 stop(u32 scope, const char *of, u64 before)
{
	struct profil_stats s;

	check_last(of, session_stop(scope, &s), &s, before);
	return s.hit;
}

static void burn_some(struct actor *a)
{
	for (u32 n = 1 + any(a, 4); n; n--)
		loop_run(any(a, LOOPS), LOOP_BURST / (1 + any(a, 8)));
}

static int start(struct actor *a, u32 scope, u32 flags)
{
	struct profil_range range = range_of_loops(counters, 4);

	return clock_start(scope, flags, any_period(a), &range, 1);
}

/* The child of a fork has its own session. Returns the hits of that session. */
static u64 count_in_child(struct actor *a)
{
	u64 before = counters_sum(counters, 4, LOOPS);

	burn_some(a);
	return stop(PROFIL_SCOPE_PROCESS, "a child", before);
}

static void count_classic(struct actor *a)
{
	u32 scope = any(a, 2);
	pid_t pid = 0;

	if (!started(start(a, scope, 0), "START"))
		return;
	burn_some(a);
	if (scope == PROFIL_SCOPE_PROCESS && one_in(a, 4))
		pid = FORK(count_in_child(a));
	burn_some(a);
	stop(scope, "a classic session", 0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	shared->rounds++;
}

static struct profil_unwind_rule any_rule(struct actor *a)
{
	return (struct profil_unwind_rule){
		.kind = PROFIL_UNWIND_SP + any(a, 3), .cfa = 8 * any(a, 8), .fp = -8 * any(a, 4),
	};
}

static int open_any(struct actor *a)
{
	return descriptor_open_as((struct profil_open){
		.modes = MODES_ALL, .period = any_period(a), .nr_records = 100,
		.stack_depth = any_depth(a),
	});
}

static void count_descriptor(struct actor *a)
{
	struct profil_range range = range_of_loops(counters, 4);
	int fd = open_any(a), err;
	struct profil_stats s;

	if (!started(fd < 0 ? fd : 0, "OPEN"))
		return;
	err = descriptor_begin(fd, any(a, 2), &range, 1);
	/* The table comes while ticks use stacks. It is refused if the session has none. */
	if (one_in(a, 2))
		unwind_give(fd, loops_text, any_rule(a));
	if (started(err, "a descriptor")) {
		burn_some(a);
		check_last("DISABLE", descriptor_disable(fd, &s), &s, 0);
		shared->rounds++;
	}
	close(fd);
}

/* Counts in one session. Opens the device only for this time. */
static void count(struct actor *a)
{
	if (shared->hold) {
		pause_ns(100000);
		return;
	}
	if (!started(device_reopen(device), "open"))
		return;
	memset(counters, 0, sizeof(counters));
	/* The CPU may go offline meanwhile. */
	if (one_in(a, 4))
		run_on_any_cpu(a);
	if (one_in(a, 2))
		count_classic(a);
	else
		count_descriptor(a);
	close(device);
}

/*
 * Races that the workers cause themselves
 */

static void *burn_on(void *unused)
{
	while (!enough && !shared->stop)
		loop_run(0, LOOP_BURST / 16);
	return unused;
}

static void against_stop(struct actor *a)
{
	enough = false;
	start_beside(burn_on, 0);
	start_beside(burn_on, 0);
	for (u32 i = 0; i < 50 && !shared->stop; i++) {
		memset(counters, 0, sizeof(counters));
		if (!started(start(a, PROFIL_SCOPE_PROCESS, 0), "START"))
			continue;
		loop_run(1, any(a, 1 << 18) + 1);
		stop(PROFIL_SCOPE_PROCESS, "stop", 0);
		shared->events += counters[0] > 0;
		shared->rounds++;
	}
	stop_beside();
}

static bool has_exited(pid_t pid)
{
	siginfo_t info = {};

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Sets @begun when the session has started. */
static void count_until_killed(struct actor *a, const struct profil_range *range, u32 *begun)
{
	any(a, 2);
	if (started(clock_start(PROFIL_SCOPE_PROCESS, 0, any_period(a), range, 1), "START"))
		clock_start(PROFIL_SCOPE_THREAD, 0, any_period(a), range, 1);
	*begun = 1;
	thread_start(burn_on, NULL);
	if (one_in(a, 4))
		pthread_exit(NULL);
	loop_run(1, any(a, 1 << 22) + 1);
}

/*
 * Kills a child while it counts. Its counts in memory that it shares with the parent must remain.
 * The child sets the counter after those of the loops when its session has started. Three quarters
 * of the children are killed only after that, and half of those that share the memory only after
 * the first hit, however slow the kernel is.
 */
static void against_exit(struct actor *a)
{
	static u32 *left;
	bool shares = !one_in(a, 4);
	struct profil_range range;
	pid_t pid;
	u64 sum;

	if (!left)
		left = map_shared(PAGE);
	memset(left, 0, PAGE);
	range = range_of_loops(shares ? left : counters, 4);
	pid = FORK(count_until_killed(a, &range, &left[LOOPS]));
	if (!one_in(a, 4))
		await(counter(left, 4, LOOPS));
	if (shares && one_in(a, 2))
		await(counters_sum(left, 4, LOOPS) || has_exited(pid));
	pause_ns(any(a, 20000000));
	killed(pid);
	any(a, 2);
	sum = counters_sum(left, 4, LOOPS);
	shared->hits += sum;
	shared->events += sum > 0;
	shared->rounds++;
}

/* Samples the machine, too, if this process may and not too many others do. Returns -1 if not. */
static int machine_open(struct actor *a)
{
	int fd = open_any(a);

	if (fd >= 0 && !descriptor_begin(fd, PROFIL_SCOPE_MACHINE, NULL, 0))
		return fd;
	close(fd);
	return -1;
}

static void run_and_exec(struct actor *a, bool classic, u32 run)
{
	if (classic)
		start(a, PROFIL_SCOPE_PROCESS, 0);
	loop_run(2, run);
	execl("/bin/true", "true", NULL);
}

static void against_exec(struct actor *a)
{
	int machine = one_in(a, 2) ? machine_open(a) : -1;
	struct profil_range range = range_of_loops(counters, 4);
	const bool records = one_in(a, 2);
	struct profil_stats s;
	int fd = descriptor_open_as((struct profil_open){
		.modes = MODES_ALL, .fork = PROFIL_FORK_SHARE, .exec = any(a, 2),
		/* With records, such ticks are outside. */
		.period = any_period(a), .nr_records = records ? 100 : 0,
		.stack_depth = records ? any_depth(a) : 0,
	});

	if (!started(fd < 0 ? fd : 0, "OPEN"))
		return;
	memset(counters, 0, sizeof(counters));
	if (descriptor_begin(fd, PROFIL_SCOPE_PROCESS, &range, 1)) {
		fail("a descriptor session cannot start");
		goto out;
	}
	for (u32 n = 1 + any(a, 8); n && !shared->stop; n--) {
		bool classic = one_in(a, 2);
		u32 run = any(a, 1 << 18) + 1;

		status_of(FORK(run_and_exec(a, classic, run)));
	}
	loop_run(3, LOOP_BURST);
	check_stats("DISABLE", descriptor_disable(fd, &s), &s);
	if (machine >= 0)
		check_stats("DISABLE", descriptor_disable(machine, &s), &s);
	shared->events += s.dropped_exec;
	shared->rounds++;
out:
	close(machine);
	close(fd);
}

/* Changes or unmaps the buffer while ticks are counted in it. This must not end the session. */
static void against_memory(struct actor *a, bool moves)
{
	char *p = (char *)0x100000000000 + getpid() % 64 * 16 * PAGE;
	struct profil_range range = range_of_loops(p + PAGE, 4);
	struct profil_stats s, gone;
	void *q;
	int err;

	MUST(mmap(p, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0) == p);
	range.nr_counters = 2 * PAGE / 4;
	err = clock_start(PROFIL_SCOPE_PROCESS, PROFIL_START_REPLACE, any_period(a), &range, 1);
	if (!started(err, "START"))
		return;
	enough = false;
	start_beside(burn_on, 0);
	for (u32 n = any(a, 20); n; n--) {
		loop_run(1, any(a, 1 << 16) + 1);
		madvise(p, 4 * PAGE, one_in(a, 2) ? MADV_DONTNEED : MADV_FREE);
	}
	if (moves) {
		q = mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED |
			   (one_in(a, 2) ? MREMAP_DONTUNMAP : 0), p + 8 * PAGE);
		if (q == MAP_FAILED)
			fail("mremap: errno %d", errno);
	} else {
		munmap(p + any(a, 3) * PAGE, (1 + any(a, 4)) * PAGE);
	}
	err = session_stats(PROFIL_SCOPE_PROCESS, &gone);
	if (err)
		fail("STATS: errno %d", -err);
	loop_run(1, any(a, 1 << 20) + 1);
	stop_beside();
	check_stats("STOP", session_stop(PROFIL_SCOPE_PROCESS, &s), &s);
	if (s.end || s.dropped != s.dropped_contended + s.dropped_exit)
		fail("memory: %llu ticks dropped, end %u", s.dropped, s.end);
	shared->events += s.hit > gone.hit;
	munmap(p, 16 * PAGE);
	shared->rounds++;
}

static void against_fork(struct actor *a)
{
	memset(counters, 0, sizeof(counters));
	if (!started(start(a, PROFIL_SCOPE_PROCESS, 0), "START"))
		return;
	for (u32 n = 1 + any(a, 6); n; n--) {
		struct actor b = another(a, 1);

		loop_run(1, any(a, 1 << 18) + 1);
		FORK(shared->events += !one_in(&b, 3) && count_in_child(&b));
	}
	burn_some(a);
	stop(PROFIL_SCOPE_PROCESS, "fork", 0);
	while (wait(NULL) > 0)
		;
	shared->rounds++;
}

/*
 * A race: worker processes call @work, while this process calls @disturb with the number of the
 * turn. @disturb returns 0, or a negative errno if the event was not possible now. @work or
 * @disturb counts the events in shared->events.
 */

FIXTURE(race) {
	struct usage before;
};

static struct actor actor;
static u32 seconds;

static void stop_workers(const pid_t *pids)
{
	shared->stop = 1;
	for (unsigned int i = 0; i < WORKERS; i++) {
		int status = 0;

		if (!await(waitpid(pids[i], &status, WNOHANG) == pids[i])) {
			fail("a process does not exit");
			killed(pids[i]);
		} else if (status) {
			fail("a process ended with status %#x", status);
		}
	}
}

static bool raced(void)
{
	return shared->rounds && shared->hits && shared->events >= ENOUGH;
}

static void work_on(struct actor *a, void (*work)(struct actor *a))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(work == count || !device_reopen(device));
	while (!shared->stop && !shared->failures.n)
		work(a);
}

static void run_race(struct __test_metadata *_metadata, void (*work)(struct actor *a),
		     int (*disturb)(u32 turn), const char *events)
{
	u64 end = now_ns() + seconds * 1000000000ULL, latest = end + PATIENCE_NS;
	u32 turns = 0, done = 0;
	pid_t pids[WORKERS];
	int err, last = 0;

	memset(shared, 0, sizeof(*shared));
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct actor a = another(&actor, 0);

		pids[i] = FORK(work_on(&a, work));
		shared->pids[i] = pids[i];
	}
	while (now_ns() < (raced() ? end : latest) && !shared->failures.n) {
		if (!disturb) {
			pause_ns(50000000);
			continue;
		}
		err = disturb(turns++);
		if (err)
			last = err;
		else
			done++;
		pause_ns(any(&actor, 20000000));
	}
	stop_workers(pids);
	TH_LOG("%s: %llu; %llu rounds, %llu hits, %llu refused, %llu ended; %u of %u disturbances",
	       events, shared->events, shared->rounds, shared->hits, shared->refused, shared->ended,
	       done, turns);
	EXPECT_NO_FAILURES(&shared->failures);
	EXPECT_LT(0U, shared->rounds);
	EXPECT_LT(0U, shared->hits);
	EXPECT_LE(ENOUGH, shared->events);
	if (disturb) {
		EXPECT_LT(0U, done) {
			TH_LOG("the last disturbance failed: %s", strerror(-last));
		}
	}
}

FIXTURE_SETUP(race)
{
	u32 seed;

	ASSERT_DEVICE();
	device = device_fd();
	/* The device must be closed, so that a test can unload the module. */
	device_close();
	shared = map_shared(sizeof(*shared));
	seconds = number_from("PROFIL_RACE_SECONDS", 2);
	seed = number_from("PROFIL_RACE_SEED", now_ns() / 1000);
	TH_LOG("PROFIL_RACE_SEED=%u PROFIL_RACE_SECONDS=%u", seed, seconds);
	actor.random = seed * 0x9e3779b97f4a7c15ULL | 1;
	ASSERT_TRUE(await(module_users() == 0));
	self->before = usage();
	self->before.percpu = LLONG_MAX / 2;
}

FIXTURE_TEARDOWN(race)
{
	expect_same_usage(_metadata, &self->before);
}

/* A race of ticks with what the workers do: @call, with the actor a */
#define TEST_AGAINST(name, call, events)				\
	static void work_on_##name(struct actor *a)			\
	{								\
		call;							\
	}								\
	TEST_F_TIMEOUT(race, name, 3600)				\
	{								\
		run_race(_metadata, work_on_##name, NULL, events);	\
	}

TEST_AGAINST(tick_against_stop, against_stop(a),
	     "sessions that were stopped while another thread was sampled")
TEST_AGAINST(tick_against_exit, against_exit(a), "processes that ended while they were sampled")
TEST_AGAINST(tick_against_exec, against_exec(a), "ticks in the middle of an exec")
TEST_AGAINST(tick_against_munmap, against_memory(a, false),
	     "sessions that counted when their buffer was gone")
TEST_AGAINST(tick_against_mremap, against_memory(a, true),
	     "sessions that counted when their buffer was gone")
TEST_AGAINST(tick_against_fork, against_fork(a), "children that were sampled")

/*
 * Races with changes of something that the tick depends on
 */

static char last_cpu[64];

static int hotplug(u32 turn)
{
	int err = file_write(last_cpu, turn % 2 ? "1" : "0");

	shared->events += !err && turn % 2 == 0;
	return err;
}

TEST_F_TIMEOUT(race, a_CPU_goes_offline_and_online, 3600)
{
	SKIP_IF(geteuid(), "only root can take a CPU offline");
	snprintf(last_cpu, sizeof(last_cpu), "/sys/devices/system/cpu/cpu%ld/online",
		 sysconf(_SC_NPROCESSORS_CONF) - 1);
	SKIP_IF(access(last_cpu, W_OK), "no %s: one CPU, or none that can go offline", last_cpu);
	run_race(_metadata, count, hotplug, "the CPU went offline");
	EXPECT_EQ(0, file_write(last_cpu, "1"));
	EXPECT_EQ(1, file_number(last_cpu, ""));
}

/* Unloads the module while the last sessions end, and perhaps while the next ones start. */
static int unload(u32 turn)
{
	u64 end = now_ns() + 300000000;
	bool at_once = turn % 2;
	int err;

	shared->hold = 1;
	do {
		if (at_once && module_users() == 0)
			shared->hold = 0;
		err = module_unload();
	} while (err && now_ns() < end);
	shared->hold = 0;
	if (!err) {
		pause_ns(any(&actor, 10000000));
		err = module_load("");
		shared->events += !err;
	}
	return err;
}

TEST_F_TIMEOUT(race, the_module_is_unloaded_and_loaded, 3600)
{
	SKIP_IF(module_stays(), "%s", module_stays());
	run_race(_metadata, count, unload, "the module was unloaded and loaded");
	if (!module_is_loaded())
		ASSERT_EQ(0, module_load(""));
}

static int trace_functions(u32 turn)
{
	if (turn % 2)
		shared->events += file_has(TRACEFS "/trace", tick_function(), NULL, 0);
	return file_write(TRACEFS "/current_tracer", turn % 2 ? "nop" : "function");
}

TEST_F_TIMEOUT(race, ftrace_traces_the_hooked_function, 3600)
{
	SKIP_IF(geteuid() || access(TRACEFS "/current_tracer", W_OK),
		"needs root and " TRACEFS "/current_tracer");
	ASSERT_EQ(0, file_write(TRACEFS "/set_ftrace_filter", tick_function()));
	run_race(_metadata, count, trace_functions, "saw ticks");
	EXPECT_EQ(0, file_write(TRACEFS "/current_tracer", "nop"));
	EXPECT_EQ(0, file_write(TRACEFS "/set_ftrace_filter", "\n"));
}

static int enable_ftrace(u32 turn)
{
	int err = file_write(FTRACE_ENABLED, turn % 2 ? "1" : "0");

	/* The write fails while the hook is installed. */
	if (err != -EBUSY || turn % 2)
		return err;
	shared->events++;
	return 0;
}

TEST_F_TIMEOUT(race, ftrace_is_disabled_and_enabled, 3600)
{
	char linger[32];

	SKIP_IF(geteuid() || access(FTRACE_ENABLED, W_OK), "needs root and " FTRACE_ENABLED);
	/* The hook is installed and removed with each session. */
	ASSERT_EQ(0, file_exchange(LINGER_S, "0", linger, sizeof(linger)));
	run_race(_metadata, count, enable_ftrace, "writes that the hook forbids");
	EXPECT_EQ(0, file_write(LINGER_S, linger));
	EXPECT_EQ(0, file_write(FTRACE_ENABLED, "1"));
}

#define PROBE "race"

static int probe(u32 turn)
{
	u64 hits, misses;
	int err;

	if (turn % 2) {
		shared->events += probe_profile(PROBE, &hits, &misses) && hits;
		err = file_write(PROBE_DIR(PROBE) "enable", "0");
		probe_remove(PROBE);
	} else {
		err = probe_add(PROBE, tick_function()) ?:
		      file_write(PROBE_DIR(PROBE) "enable", "1");
	}
	return err;
}

TEST_F_TIMEOUT(race, kprobes_are_set_on_the_hooked_function, 3600)
{
	SKIP_IF(geteuid() || access(TRACEFS "/kprobe_events", W_OK),
		"needs root and " TRACEFS "/kprobe_events");
	run_race(_metadata, count, probe, "saw ticks");
	file_write(PROBE_DIR(PROBE) "enable", "0");
	probe_remove(PROBE);
}

/* Opens the events that perf record -e cpu-clock uses. */
static int perf_events(u32 turn)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 50000 + any(&actor, 1000000), .sample_type = PERF_SAMPLE_IP,
		.inherit = 1, .inherit_thread = any(&actor, 2),
	};
	pid_t pid = one_in(&actor, 4) ? -1 : shared->pids[turn % WORKERS];
	u64 ns;
	int fd;

	fd = syscall(SYS_perf_event_open, &attr, pid, pid < 0 || one_in(&actor, 4) ? 0 : -1, -1,
		     PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	pause_ns(any(&actor, 30000000));
	shared->events += read(fd, &ns, sizeof(ns)) == sizeof(ns) && ns >= attr.sample_period;
	close(fd);
	return 0;
}

TEST_F_TIMEOUT(race, perf_events_are_opened_and_closed, 3600)
{
	SKIP_IF(geteuid(), "needs root, for perf events of others");
	run_race(_metadata, count, perf_events, "took samples");
}

/* Runs @command, which must print a number after @key. Returns -EIO if it does not. */
static int run_program(const char *command, const char *key, unsigned long long *number)
{
	FILE *f = popen(command, "re");
	bool found = false;
	char line[256], *at;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, key);
		found = found || (at && sscanf(at + strlen(key), "%llu", number) == 1);
	}
	return pclose(f) || !found ? -EIO : 0;
}

static bool there_is(const char *program)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	return !system(command);
}

static int perf_record(u32 turn)
{
	unsigned long long samples;
	char command[160];
	int err;

	snprintf(command, sizeof(command),
		 "perf record -a %s -e cpu-clock -F %u -o race.data sleep 0.3 2>&1; rm -f race.data*",
		 turn % 2 ? "-g" : "", 100 + any(&actor, 4000));
	err = run_program(command, "race.data (", &samples);
	shared->events += !err && samples;
	return err;
}

TEST_F_TIMEOUT(race, perf_record_samples_the_workers, 3600)
{
	SKIP_IF(geteuid() || !there_is("perf"), "needs root and the program perf");
	run_race(_metadata, count, perf_record, "recorded samples");
}

static char script[256];

static int bpftrace(u32 turn)
{
	unsigned long long ticks;
	int err = run_program(script, "@t: ", &ticks);

	(void)turn;
	shared->events += !err && ticks;
	return err;
}

TEST_F_TIMEOUT(race, bpftrace_is_attached, 3600)
{
	SKIP_IF(geteuid() || !there_is("bpftrace"), "needs root and the program bpftrace");
	snprintf(script, sizeof(script), "bpftrace -e '%s kprobe:%s { @t = count(); } %s' 2>&1",
		 "profile:hz:499 { @[tid] = count(); }", tick_function(),
		 "interval:ms:700 { exit(); } END { clear(@); }");
	run_race(_metadata, count, bpftrace, "saw ticks");
}

TEST_HARNESS_MAIN
