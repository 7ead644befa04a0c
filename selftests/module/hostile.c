// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks by programs of an ordinary user on the rest of the system: kernel work or kernel memory
 * that no process is charged for, calls that never return, and a full table of sessions that keeps
 * an administrator from attaching.
 *
 * No test measures elapsed time. The CPU time of the kernel's workers is compared with that of the
 * user's processes. To test that a call does not wait, another call waits for a page that the test
 * holds back.
 */
#include "kselftest_harness.h"

/* The tests create many processes, which takes long on a busy machine. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#include "fixture.h"
#include "held.h"
#include "usage.h"

static struct profil_query query;

/* The functions of a fixture that only prepares */
#define FIXTURE_PREPARES(name)				\
	FIXTURE_SETUP(name)				\
	{						\
		sessions_setup(_metadata);		\
		ASSERT_EQ(0, device_query(&query));	\
	}						\
	FIXTURE_TEARDOWN(name)				\
	{						\
	}

FIXTURE(hostile) {
};

FIXTURE_PREPARES(hostile)

/* Becomes an ordinary user with Debian's limits. */
static void be_user(void)
{
	/* Debian's limit, 8 MiB, if pages have 4 KiB */
	limit_memlock(2048 * PAGE);
	become_user(USER);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* setresuid() has cleared it */
}

static int open_attached(u32 nr_records)
{
	int new = must_open(.nr_records = nr_records);

	MUST(!descriptor_attach(new, PROCESS, 0, NULL));
	return new;
}

/*
 * Returns the maximum number of ranges, each for one byte of text. The counters of each are all
 * @bytes at @buffer.
 */
static struct profil_range *all_ranges(char *buffer, size_t bytes)
{
	struct profil_range *ranges = calloc(query.max_ranges, sizeof(*ranges));

	MUST(ranges);
	for (u32 i = 0; i < query.max_ranges; i++)
		ranges[i] = range_of(PAGE + i, PAGE + i + 1, buffer, bytes / 8, 8);
	return ranges;
}

/*
 * CPU time of kernel workers
 */

static void expect_no_more(struct __test_metadata *_metadata, long long workers, long long paid)
{
	EXPECT_LE(workers, paid) {
		TH_LOG("workers %lld ms, processes %lld ms", workers / 1000000, paid / 1000000);
	}
}

#define CROWD		20
#define DISCARDED	1792UL	/* pages */

/* Processes do the measured work between two steps. */
static void next_step(int step)
{
	shared->count++;
	MUST(step_is(step));
}

static int discard_pages(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	char *buffer = map_pages(DISCARDED);
	struct profil_range range = range_of_loops(buffer, 4);

	range.nr_counters = DISCARDED * PAGE / 4;
	be_user();
	MUST(!session_start(PROCESS, 0, &range, 1));
	next_step(1);
	/*
	 * Discarding the pages is cheap; a worker that looks for all pages in between would be
	 * expensive.
	 */
	for (unsigned int i = 0; i < 30; i++) {
		MUST(!madvise(buffer, PAGE, MADV_DONTNEED));
		MUST(!madvise(buffer + (DISCARDED - 1) * PAGE, PAGE, MADV_DONTNEED));
		nanosleep(&pause, NULL);
	}
	next_step(2);
	MUST(!session_stop(PROCESS, NULL));
	return 0;
}

TEST_F(hostile, workers_use_less_CPU_time_than_processes_that_discard_pages)
{
	long long workers, paid = 0;
	pid_t pids[CROWD];
	unsigned int i;

	for (i = 0; i < CROWD; i++)
		pids[i] = spawn(discard_pages);
	ASSERT_TRUE(await(shared->count == CROWD));
	for (i = 0; i < CROWD; i++)
		paid -= task_ns(pids[i]);
	workers = -kworkers_ns();
	shared->step = 1;
	EXPECT_TRUE(await(shared->count == 2 * CROWD));
	workers += kworkers_ns();
	for (i = 0; i < CROWD; i++)
		paid += task_ns(pids[i]);
	shared->step = 2;
	for (i = 0; i < CROWD; i++)
		EXPECT_EQ(0, status_of(pids[i]));
	expect_no_more(_metadata, workers, paid);
}

#define PAUSERS	30

/* Returns true if kernel workers have used less than a tenth of a CPU between the last 10 calls. */
static bool workers_are_idle(void)
{
	static unsigned int idle;
	static u64 used_before, before;
	u64 used = kworkers_ns(), now = now_ns();

	idle = 10 * (used - used_before) < now - before ? idle + 1 : 0;
	used_before = used;
	before = now;
	return idle == 10;
}

static void fork_many(bool tick)
{
	char *page = map_pages(1);
	struct profil_range *ranges = all_ranges(page, PAGE);
	pid_t pids[PAUSERS];

	be_user();
	MUST(!session_start(PROCESS, 0, ranges, query.max_ranges));
	for (unsigned int i = 0; i < PAUSERS; i++) {
		pids[i] = SPAWN(({
			if (tick)
				loop_spend(0, 2, query.tick_ns);
			pause();
		}));
	}
	await(workers_are_idle());
	for (unsigned int i = 0; i < PAUSERS; i++)
		MUST(killed(pids[i]) == 128 + SIGKILL);
	MUST(!session_stop(PROCESS, NULL));
}

static void expect_paid(struct __test_metadata *_metadata, bool tick)
{
	long long workers = kworkers_ns(), paid = children_ns();

	EXPECT_CHILD(fork_many(tick));
	workers = kworkers_ns() - workers;
	paid = children_ns() - paid;
	expect_no_more(_metadata, workers, paid);
}

TEST_F_CALL(hostile, workers_use_less_CPU_time_than_processes_that_fork_sleeping_children,
	    expect_paid(_metadata, false))
TEST_F_CALL(hostile, workers_use_less_CPU_time_than_processes_that_fork_running_children,
	    expect_paid(_metadata, true))

/*
 * Kernel memory
 */

#define MAKERS		3
#define MADE		200	/* by each thread */
#define MOST_LEFT	200U	/* module references of the sessions of exited threads */

static void *start_and_exit(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)session_start(THREAD, 0, NULL, 0);
}

static void *make_threads(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; i < MADE; i++) {
		unsigned int left;

		MUST(!in_threads(1, start_and_exit));
		left = module_users() - users;
		if (left > shared->count)
			shared->count = left;
	}
	return NULL;
}

static void *ask_all_the_time(void *unused)
{
	struct profil_stats s;

	(void)unused;
	while (!enough)
		session_stats(PROCESS, &s);
	return NULL;
}

TEST_F(hostile, sessions_of_threads_that_have_exited_do_not_accumulate)
{
	EXPECT_CHILD({
		users = module_users();
		be_user();
		start_beside(ask_all_the_time, 0);
		in_threads(MAKERS, make_threads);
		stop_beside();
	});
	EXPECT_GE(MOST_LEFT, shared->count);
}

static long long objects(const char *name)
{
	static struct caches now;

	caches(&now);
	for (unsigned int i = 0; i < now.n; i++)
		if (!strcmp(now.cache[i].name, name))
			return now.cache[i].objects;
	return -1;
}

#define CREATORS	50
#define OTHERS		16	/* objects that other programs may allocate meanwhile */

static int ends[2];

TEST_F(hostile, an_open_descriptor_does_not_pin_the_mm_and_task_of_its_dead_creator)
{
	static const char *const kept[] = { "mm_struct", "task_struct", "signal_cache" };
	long long before[ARRAY_SIZE(kept)];
	struct profil_stats s;
	int fds[CREATORS];
	unsigned int i;

	NEED_ROOT("/proc/slabinfo");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	for (i = 0; i < ARRAY_SIZE(kept); i++) {
		before[i] = objects(kept[i]);
		ASSERT_LT(0, before[i]);
	}
	for (i = 0; i < CREATORS; i++) {
		EXPECT_CHILD(MUST(!send_fd(ends[0], open_attached(0))));
		fds[i] = receive_fd(ends[1]);
		ASSERT_LE(0, fds[i]);
	}
	for (i = 0; i < ARRAY_SIZE(kept); i++) {
		long long now;

		for (unsigned int tries = 0; tries < 100; tries++) {
			now = objects(kept[i]);
			if (now <= before[i] + OTHERS)
				break;
			loop_spend(0, 2, query.tick_ns);
		}
		EXPECT_GE(before[i] + OTHERS, now) {
			TH_LOG("%s: %u descriptors, %lld objects more", kept[i], CREATORS,
			       now - before[i]);
		}
	}
	/* The statistics are still available. */
	for (i = 0; i < CREATORS; i++) {
		EXPECT_EQ(0, descriptor_stats(fds[i], &s));
		EXPECT_EQ((u32)PROFIL_STATE_ENDED, s.state);
		EXPECT_EQ((u32)PROFIL_END_CREATOR, s.end);
		close(fds[i]);
	}
}

/*
 * Attaching with a capability, while the target has as many sessions as it can
 */

#define SLOTS		8U	/* reserved for sessions that are attached by capability */
#define SLOTS_CLOCKED	2U	/* of these, with a period */
#define PERIOD		10000000

/* Attaches the maximum number of sessions to itself, and checks that one more fails. */
static int attach_itself_until_busy(u32 scope, bool clocked)
{
	const u32 most = clocked ? query.max_clocked : query.max_sessions;
	u32 n = 0;
	int err;

	be_user();
	do {
		err = descriptor_attach(must_open(.period = clocked ? PERIOD : 0), scope, 0, NULL);
	} while (!err && ++n <= most);
	MUST(err == -EBUSY && n == most);
	shared->step = 1;
	for (;;)
		pause();
}

/* Opens and attaches sessions until EBUSY. @n: their number so far. Returns their number. */
static u32 attach_until_busy(struct __test_metadata *_metadata, u32 scope, pid_t target, u64 period,
			     int *fds, u32 n)
{
	int err = 0;

	while (n <= SLOTS && !err) {
		fds[n] = must_open(.period = period);
		err = descriptor_attach(fds[n], scope, target, NULL);
		if (!err)
			n++;
	}
	EXPECT_EQ(-EBUSY, err);
	if (err)
		close(fds[n]);
	return n;
}

static void expect_attached(struct __test_metadata *_metadata, u32 scope, pid_t target, int *fds)
{
	u32 n = attach_until_busy(_metadata, scope, target, PERIOD, fds, 0);

	EXPECT_EQ(SLOTS_CLOCKED, n);
	n = attach_until_busy(_metadata, scope, target, 0, fds, n);
	ASSERT_EQ(SLOTS, n);
	/* Closing a session makes room for another one. */
	close(fds[SLOTS - 1]);
	EXPECT_EQ(SLOTS, attach_until_busy(_metadata, scope, target, 0, fds, SLOTS - 1));
}

static void close_all(int *fds)
{
	for (u32 i = 0; i < SLOTS; i++)
		close(fds[i]);
}

static void expect_slots(struct __test_metadata *_metadata, u32 scope, bool clocked)
{
	int fds[SLOTS + 1];
	pid_t target;

	NEED_ROOT("a capability");
	target = SPAWN(attach_itself_until_busy(scope, clocked));
	ASSERT_TRUE(step_is(1));
	expect_attached(_metadata, scope, target, fds);
	EXPECT_EQ(128 + SIGKILL, killed(target));
	close_all(fds);

	/* The other order: first the capable process attaches its sessions, then the target. */
	target = SPAWN(step_is(2) ? attach_itself_until_busy(scope, clocked) : 1);
	expect_attached(_metadata, scope, target, fds);
	shared->step = 2;
	EXPECT_TRUE(await(shared->step == 1));
	EXPECT_EQ(128 + SIGKILL, killed(target));
	close_all(fds);
}

TEST_F_CALL(hostile, a_process_with_the_maximum_of_sessions_can_still_be_attached,
	    expect_slots(_metadata, PROCESS, false))
TEST_F_CALL(hostile, a_process_with_the_maximum_of_clocks_can_still_be_attached,
	    expect_slots(_metadata, PROCESS, true))
TEST_F_CALL(hostile, a_thread_with_the_maximum_of_sessions_can_still_be_attached,
	    expect_slots(_metadata, THREAD, false))
TEST_F_CALL(hostile, a_thread_with_the_maximum_of_clocks_can_still_be_attached,
	    expect_slots(_metadata, THREAD, true))

/*
 * Locked memory
 */

#define BEYOND		64	/* pages, beyond the limit */

static void drop_the_right(void)
{
	struct profil_range range = range_of_loops(map_pages(BEYOND), 4);
	struct profil_stats s;

	range.nr_counters = BEYOND * PAGE / 4;
	limit_memlock(16 * PAGE);
	MUST(!session_start(PROCESS, 0, &range, 1));
	become_user(USER);
	MUST(!status_of(FORK({
		loop_until(0, session_stats(PROCESS, &s) || s.state != PROFIL_STATE_ON || s.hit);
		MUST(s.end == PROFIL_END_LIMIT);
	})));
	/* The parent's own session stays on. */
	MUST(!session_stop(PROCESS, &s));
	MUST(s.locked == BEYOND * PAGE || !s.locked);
	MUST(session_start(PROCESS, 0, &range, 1) == -EPERM);
}

TEST_F(hostile, a_child_does_not_inherit_CAP_IPC_LOCK_that_its_parent_dropped)
{
	NEED_ROOT("CAP_IPC_LOCK");
	EXPECT_CHILD(drop_the_right());
}

/*
 * Expedited grace periods, which interrupt all CPUs
 */

#define TRACE	TRACEFS "/instances/profil_hostile"

/* Traces the calls of @function, until trace_end(). Returns false if that is not possible. */
static bool trace_calls(const char *function)
{
	return !mkdir(TRACE, 0700) && !file_write(TRACE "/set_ftrace_filter", function) &&
	       !file_write(TRACE "/current_tracer", "function");
}

static void trace_end(void)
{
	file_write(TRACE "/current_tracer", "nop");
	rmdir(TRACE);
}

/* Returns the number of calls on CPU @cpu since trace_calls(). */
static long long traced_on(unsigned int cpu)
{
	char path[128];

	snprintf(path, sizeof(path), TRACE "/per_cpu/cpu%u/stats", cpu);
	return file_number(path, "entries: ");
}

/* Returns how many expedited grace periods @n snapshots cause. */
static long long expedited_by(int session, unsigned int n)
{
	struct profil_stats s;
	long long calls = 0;

	MUST(trace_calls("synchronize_rcu_expedited"));
	for (unsigned int i = 0; i < n; i++)
		MUST(!descriptor_snapshot(session, 0, NULL, 0, &s));
	for (unsigned int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		calls += traced_on(cpu);
	trace_end();
	return calls;
}

#define SNAPSHOTS	250
#define OF_OTHERS	20	/* grace periods that the rest of the kernel may cause */

#define EXPECT_FEW_EXPEDITED()	EXPECT_GE(OF_OTHERS, expedited_by(fd, SNAPSHOTS))

TEST_F(hostile, snapshots_of_a_disabled_session_interrupt_no_CPU)
{
	NEED_ROOT("the function tracer");
	fd = open_attached(0);
	EXPECT_FEW_EXPEDITED();
	/* The same after the session has been enabled and disabled. */
	ASSERT_EQ(0, descriptor_enable(fd));
	ASSERT_TRUE(descriptor_burn(fd, 0, 2));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	EXPECT_FEW_EXPEDITED();
}

TEST_F(hostile, snapshots_of_a_session_without_targets_interrupt_no_CPU)
{
	NEED_ROOT("the function tracer");
	fd = must_enable(must_open());
	EXPECT_FEW_EXPEDITED();
}

/* Below the program there is no memory. To try each page of terabytes would take hours. */
TEST_F(hostile, snapshots_of_unmapped_memory_fail_soon)
{
	struct profil_copy copy = { .from = 16 * PAGE, .bytes = 1ULL << 30 };

	fd = open_attached(0);
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, 0, &copy, 1, NULL));
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &copy, 1, NULL));
	copy.bytes = 1ULL << 46;
	EXPECT_EQ(-EINVAL, descriptor_snapshot(fd, 0, &copy, 1, NULL));
	EXPECT_EQ(-EINVAL, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &copy, 1, NULL));
}

/* Many copies of the same page take as long as many pages. */
TEST_F(hostile, snapshots_of_a_page_copied_for_hours_are_refused)
{
	struct profil_copy *copies = map_private(65536 * sizeof(*copies));

	for (unsigned int i = 0; i < 65536; i++)
		copies[i] = (struct profil_copy){ .from = addr(copies), .bytes = 1 << 20 };
	fd = open_attached(0);
	EXPECT_EQ(-EINVAL, descriptor_snapshot(fd, 0, copies, 65536, NULL));
	EXPECT_EQ(0, descriptor_snapshot(fd, 0, copies, 1, NULL));
}

#define MOST_A_SECOND	200

static void *sleep_until_killed(void *unused)
{
	pause();
	return unused;
}

/* Snapshots must wait for the other thread, which could be sampled at that moment. */
TEST_F(hostile, snapshots_in_a_loop_rarely_interrupt_other_CPUs)
{
	__u64 begun, ns;
	long long n;

	NEED_ROOT("the function tracer");
	fd = must_enable(open_attached(0));
	thread_start(sleep_until_killed, NULL);
	begun = now_ns();
	n = expedited_by(fd, 2 * SNAPSHOTS);
	ns = now_ns() - begun;
	EXPECT_GE(MOST_A_SECOND * (ns / 1000000000 + 1), (u64)n) {
		TH_LOG("%lld times in %llu ms", n, ns / 1000000);
	}
}

/* Samples itself, with a clock, on the second CPU. */
static int be_sampled_on_cpu_1(u32 scope)
{
	run_on_cpu(1);
	must_sample(must_open(.period = query.min_period), scope, NULL, 0);
	shared->step = 1;
	loop_for_ever((void *)1);
	return 0;
}

#define ATTEMPTS	100

/* Returns the number of interrupts of the other CPU by @change, called ATTEMPTS times; or -1. */
static long long interrupts_by(bool (*change)(void))
{
	long long before = traced_on(1);

	for (unsigned int i = 0; i < ATTEMPTS; i++)
		if (!change())
			return -1;
	return traced_on(1) - before;
}

static bool attach_in_vain(void)
{
	return descriptor_attach(fd, PROCESS, 0, NULL) == -EBUSY;
}

static bool disable_and_enable(void)
{
	return !descriptor_disable(fd, NULL) && !descriptor_enable(fd);
}

static bool start_and_stop(void)
{
	const struct profil_range none = range_of(PAGE, 2 * PAGE, NULL, 0, 2);

	return !clock_start(THREAD, 0, query.min_period, &none, 1) && !session_stop(THREAD, NULL);
}

static void expect_no_interrupts(struct __test_metadata *_metadata, u32 scope)
{
	pid_t other;

	SKIP_IF(sysconf(_SC_NPROCESSORS_ONLN) < 2, "needs two CPUs");
	/*
	 * The module calls this on CPUs that it interrupts. The kernel's own count has other
	 * interrupts, too, of which there are many in debug kernels.
	 */
	SKIP_IF(!trace_calls("clock_resync_cpu"), "needs root and the function tracer");
	other = SPAWN(be_sampled_on_cpu_1(scope));
	ASSERT_TRUE(step_is(1));
	run_on_cpu(0);
	fd = must_sample(must_open(.period = query.min_period), PROCESS, NULL, 0);
	/* The other process has interrupted its own CPU. */
	EXPECT_LE(1, traced_on(1));
	EXPECT_EQ(0, interrupts_by(attach_in_vain));
	EXPECT_EQ(0, interrupts_by(disable_and_enable));
	EXPECT_EQ(0, interrupts_by(start_and_stop));
	close(fd);
	EXPECT_EQ(128 + SIGKILL, killed(other));
	trace_end();
}

TEST_F_CALL(hostile, changes_of_a_session_interrupt_no_CPU_of_another_process,
	    expect_no_interrupts(_metadata, PROCESS))
TEST_F_CALL(hostile, changes_of_a_session_interrupt_no_CPU_of_a_thread_of_another,
	    expect_no_interrupts(_metadata, THREAD))

#define TERABYTES	(16UL << 40)
#define INVALIDATORS	4

static int invalidate_for_ever(void *terabytes)
{
	for (;;)
		madvise(terabytes, TERABYTES, MADV_DONTNEED);
	return 0;
}

/*
 * Opens a first session while other processes with this address space keep invalidations of it
 * active. With all the page tables, each takes long.
 */
TEST_F_CHILD(hostile, invalidations_without_end_do_not_delay_a_session)
{
	pid_t children[INVALIDATORS];
	char *terabytes;
	int own;

	terabytes = mmap(NULL, TERABYTES, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(terabytes != MAP_FAILED);
	for (unsigned long i = 0; i < TERABYTES; i += 1UL << 39)
		(void)*(volatile char *)(terabytes + i);
	for (int i = 0; i < INVALIDATORS; i++)
		children[i] = clone_vm(invalidate_for_ever, 0, terabytes);
	own = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	for (int i = 0; i < INVALIDATORS; i++)
		kill(children[i], SIGKILL);
	return own < 0;
}

/*
 * Calls that wait for a page of user memory
 */

static u32 others_page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
static struct held held;
static int others_fd = -1;
static int closed_fd = -1;
static const char *_Atomic other;	/* the other call; NULL after the last one */

static void *wait_in(void *call)
{
	(*(int (**)(void))call)();
	return NULL;
}

/* Any result is fine, if the call returns. */
static void *call_all_others(void *unused)
{
	struct profil_range range = range_of_loops(others_page, 4);
	struct profil_copy copy = { addr(others_page), 0, PAGE };
	struct profil_stats s;

	(void)unused;
#define OTHER(call) do {	\
	other = #call;		\
	call;			\
} while (0)
	OTHER(close(closed_fd));
	OTHER(descriptor_stats(others_fd, &s));
	OTHER(descriptor_enable(others_fd));
	OTHER(descriptor_add(others_fd, PROFIL_SPACE_SELF, &range, 1));
	OTHER(descriptor_snapshot(others_fd, 0, &copy, 1, &s));
	OTHER(descriptor_remove(others_fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	OTHER(descriptor_disable(others_fd, &s));
	OTHER(session_stats(PROCESS, &s));
	OTHER(session_start(THREAD, 0, &range, 1));
	OTHER(session_stop(THREAD, &s));
#undef OTHER
	other = NULL;
	return NULL;
}

FIXTURE(call) {
};

FIXTURE_PREPARES(call)

FIXTURE_VARIANT(call) {
	int (*call)(void);
};

#define WAIT_IN(name, ...)					\
	static int call_##name(void)				\
	{							\
		return __VA_ARGS__;				\
	}							\
	FIXTURE_VARIANT_ADD(call, name) {			\
		.call = call_##name,				\
	}

#define RANGE_OF_LOOPS		((struct profil_range[]){ range_of_loops(held.memory, 4) })
#define COPY(from, to)		((struct profil_copy[]){ { addr(from), addr(to), PAGE } })
#define DISABLE(to)								\
	((struct profil_disable[]){						\
		{ .size = sizeof(struct profil_disable), .stats = addr(to) },	\
	})

WAIT_IN(ADD_that_waits_for_its_ranges,
	descriptor_add(fd, PROFIL_SPACE_SELF, (void *)held.memory, 1));
WAIT_IN(ADD_that_waits_for_a_buffer,
	descriptor_add(fd, PROFIL_SPACE_SELF,
		       (struct profil_range[]){ range_of(2, 3, held.memory, PAGE / 4, 4) }, 1));
WAIT_IN(START_that_waits_for_its_ranges, session_start(PROCESS, 0, (void *)held.memory, 1));
WAIT_IN(START_that_waits_for_a_buffer, session_start(PROCESS, 0, RANGE_OF_LOOPS, 1));
WAIT_IN(START_of_a_thread_that_waits_for_a_buffer,
	session_start(THREAD, PROFIL_START_REPLACE, RANGE_OF_LOOPS, 1));
WAIT_IN(SNAPSHOT_that_waits_for_its_copies,
	descriptor_snapshot(fd, 0, (void *)held.memory, 1, NULL));
WAIT_IN(SNAPSHOT_that_waits_for_where_it_copies_to,
	descriptor_snapshot(fd, 0, COPY(page, held.memory), 1, NULL));
WAIT_IN(SNAPSHOT_that_waits_for_where_it_copies_from,
	descriptor_snapshot(fd, 0, COPY(held.memory, others_page), 1, NULL));
WAIT_IN(SNAPSHOT_that_waits_for_what_it_resets,
	descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, COPY(held.memory, NULL), 1, NULL));
WAIT_IN(STATS_that_waits, descriptor_ioctl(fd, PROFIL_IOC_STATS, held.memory));
WAIT_IN(DISABLE_that_waits_for_where_its_result_goes,
	descriptor_ioctl(fd, PROFIL_IOC_DISABLE, DISABLE(held.memory)));
WAIT_IN(read_that_waits, read(fd, held.memory, PAGE));

static void expect_others_return(struct __test_metadata *_metadata, int (*call)(void),
				 enum held_kind kind)
{
	/* No code is in the range, so ticks leave records. */
	struct profil_range range = range_of(1, 2, page, PAGE / 4, 4);

	NEED_HELD(&held, kind, PAGE);
	fd = open_attached(64);
	others_fd = open_attached(0);
	closed_fd = open_attached(0);
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_TRUE(descriptor_burn(must_enable(fd), 0, 3));

	ASSERT_EQ(0, held_back(&held));
	start_beside(wait_in, (uintptr_t)&call);
	EXPECT_TRUE(await(held_asked(&held))) {
		TH_LOG("it does not wait");
	}
	other = "no call";
	start_beside(call_all_others, 0);
	EXPECT_TRUE(await(!other)) {
		TH_LOG("%s waits for it", other);
	}
	held_release(&held);
	stop_beside();
	held_unmap(&held);
}

TEST_F_CALL(call, waiting_for_a_userfaultfd_page_does_not_block_other_calls,
	    expect_others_return(_metadata, variant->call, HELD_USERFAULT))
TEST_F_CALL(call, waiting_for_a_FUSE_page_does_not_block_other_calls,
	    expect_others_return(_metadata, variant->call, HELD_FUSE))

static void *tell_when_asked(void *unused)
{
	(void)unused;
	if (await(held_asked(&held)))
		shared->step = 1;
	return NULL;
}

/* The main thread waits in the call, and another thread reports that. */
static int wait_until_killed(int (*call)(void))
{
	MUST(!held_map(&held, HELD_USERFAULT, PAGE));
	fd = open_attached(64);
	MUST(!descriptor_enable(fd) && descriptor_burn(fd, 0, 3));
	MUST(!held_back(&held));
	thread_start(tell_when_asked, NULL);
	call();
	return 0;
}

static void expect_killable(struct __test_metadata *_metadata, pid_t pid)
{
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_TRUE(await(waitpid(pid, NULL, WNOHANG) == pid)) {
		TH_LOG("its state is still %c", task_state(pid));
	}
}

TEST_F(call, waiting_for_a_page_can_be_killed)
{
	pid_t pid;

	NEED_ROOT("pages that the kernel waits for");
	pid = SPAWN(wait_until_killed(variant->call));
	EXPECT_TRUE(step_is(1)) {
		TH_LOG("it does not wait");
	}
	expect_killable(_metadata, pid);
}

/*
 * Starts that take long. If such a start cannot be killed, it runs for minutes, so these tests are
 * the last ones.
 */

FIXTURE(start) {
};

FIXTURE_PREPARES(start)

/* Maps @pages pages, each of which is a separate mapping. */
static char *map_in_parts(size_t pages)
{
	char *p = map_pages(pages);

	for (size_t i = 1; i < pages; i += 2)
		MUST(!mprotect(p + i * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	return p;
}

#define COST_RANGES	256
#define COST_MAPPINGS	1000

/* Returns the CPU time of the cheapest of 3 starts. */
static u64 cost_of_start(const struct profil_range *ranges, u32 nr)
{
	u64 least = UINT64_MAX;

	for (unsigned int i = 0; i < 3; i++) {
		u64 begun = cpu_ns(CLOCK_THREAD_CPUTIME_ID), ns;

		MUST(!session_start(PROCESS, 0, ranges, nr));
		ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
		least = ns < least ? ns : least;
		MUST(!session_stop(PROCESS, NULL));
	}
	return least;
}

TEST_F_CHILD(start, takes_time_for_ranges_plus_mappings_not_for_their_product)
{
	char *parts = map_in_parts(COST_MAPPINGS), *page = map_pages(1);
	struct profil_range *in_parts = all_ranges(parts, COST_MAPPINGS * PAGE);
	struct profil_range *in_page = all_ranges(page, PAGE);
	__u64 many, one, small;

	be_user();
	many = cost_of_start(in_parts, COST_RANGES);
	one = cost_of_start(in_parts, 1);
	small = cost_of_start(in_page, COST_RANGES);
	if (many > 3 * (one + small))
		dprintf(STDERR_FILENO, "# %llu us, but one range %llu us, one page %llu us\n",
			many / 1000, one / 1000, small / 1000);
	MUST(many <= 3 * (one + small));
	return 0;
}

/* @adds: use ADD to a descriptor session instead of START */
static int start_for_ever(bool adds, size_t mappings)
{
	char *buffer = map_in_parts(mappings);
	struct profil_range *ranges = all_ranges(buffer, mappings * PAGE);

	fd = open_attached(0);
	be_user();
	shared->step = 1;
	for (;;) {
		if (adds) {
			descriptor_add(fd, PROFIL_SPACE_SELF, ranges, query.max_ranges);
			descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX);
		} else {
			session_start(PROCESS, PROFIL_START_REPLACE, ranges, query.max_ranges);
		}
	}
	return 0;
}

/* After a while the process is within a call with high probability. */
static void expect_killed(struct __test_metadata *_metadata, bool adds, size_t mappings)
{
	u64 ticks;
	pid_t pid;

	pid = SPAWN(start_for_ever(adds, mappings));
	/* A debug kernel takes long to make the mappings. */
	ASSERT_TRUE(step_is(1) || step_is(1) || step_is(1));
	ticks = cpu_ticks(pid);
	ASSERT_TRUE(await(cpu_ticks(pid) >= ticks + 30));
	expect_killable(_metadata, pid);
}

TEST_F_CALL(start, with_all_ranges_in_many_mappings_can_be_killed,
	    expect_killed(_metadata, false, 2000))
TEST_F_CALL(start, above_RLIMIT_MEMLOCK_in_very_many_mappings_can_be_killed,
	    expect_killed(_metadata, false, 4000))
TEST_F_CALL(start, that_adds_ranges_in_many_mappings_can_be_killed,
	    expect_killed(_metadata, true, 2000))

TEST_HARNESS_MAIN
