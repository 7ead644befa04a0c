// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the limits of the kernel memory that each process of a user can have, and the charge of
 * this memory to the user's memory cgroup.
 *
 * A child works in a cgroup, and the test compares memory.current with the expected size. The
 * kernel charges some pages in advance for each CPU, so the test requires only half of the
 * expected size. It frees some memory only after a grace period, so the test polls.
 */
#include "kselftest_harness.h"

/* The tests create many processes, which takes long on a busy machine. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#include "cgroup.h"
#include "faults.h"
#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "threads.h"
#include "users.h"

#define MIB		(1UL << 20)
#define SLACK		(2 * MIB)	/* memory charged in advance, or not freed yet */
#define SMALL		(16 * MIB)	/* memory.max of a small cgroup */

#define CGROUP		CGROUPS "/profil-limits"

#define MAX_OPEN	1024U		/* sessions of one creator */
#define MAX_COPIES	65536U
#define RANGES		1024U		/* the maximum of a session, and of an address space */
#define TARGETS		16U		/* threads, each with the maximum of sessions */

/*
 * The memory cgroup
 */

static long long held(void)
{
	return file_number(CGROUP "/memory.current", "");
}

static struct profil_query query;

FIXTURE(limits) {
	const char *why_not;
};

FIXTURE_SETUP(limits)
{
	struct rlimit files;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &files));
	if (files.rlim_cur < 2 * MAX_OPEN)
		files.rlim_cur = 2 * MAX_OPEN;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, device_query(&query));
	ASSERT_LE(RANGES, query.max_ranges);
	self->why_not = cgroup_make(CGROUP);
}

/* A cgroup can be removed when no process is in it; its memory may be freed later. */
FIXTURE_TEARDOWN(limits)
{
	if (!self->why_not) {
		EXPECT_TRUE(await(!rmdir(CGROUP)));
	}
}

/* Returns the exit status of a child that runs @work() in the cgroup. */
static int status_in_cgroup(void (*work)(void))
{
	return status_of(SPAWN(file_write(CGROUP "/cgroup.procs", "0") ?: (work(), 0)));
}

#define NEED_CGROUP()	SKIP_IF(self->why_not, "%s", self->why_not)

/* A test whose body runs in a child in the cgroup. */
#define TEST_IN_CGROUP(name)						\
	static void name##_in_cgroup(void);				\
	TEST_F(limits, name)						\
	{								\
		NEED_CGROUP();						\
		EXPECT_EQ(0, status_in_cgroup(name##_in_cgroup));	\
	}								\
	static void name##_in_cgroup(void)

/* Opens a session once before, so that memory that is allocated only once does not count. */
static long long held_before(void)
{
	struct profil_range range = range_of_loops(NULL, 2);

	range.nr_counters = 0;
	close(must_sample(must_open(.fork = PROFIL_FORK_SHARE, .nr_records = 1), PROCESS,
			  &range, 1));
	return held();
}

static void must_hold(long long before, long long bytes)
{
	long long now = held();

	if (now - before < bytes / 2)
		dprintf(STDERR_FILENO, "# %lld bytes more, of %lld\n", now - before, bytes);
	MUST(now - before >= bytes / 2);
}

static void must_return_to(long long before)
{
	bool returned = await(held() < before + (long long)SLACK);

	if (!returned)
		dprintf(STDERR_FILENO, "# %lld bytes more remain\n", held() - before);
	MUST(returned);
}

/* Returns @n ranges without counters, so that no memory is locked for them. */
static struct profil_range *many_ranges(unsigned int n)
{
	struct profil_range *ranges = map_new(n * sizeof(*ranges), MAP_PRIVATE | MAP_POPULATE);

	for (unsigned int i = 0; i < n; i++)
		ranges[i] = range_of(i + 1, i + 2, NULL, 0, 2);
	return ranges;
}

/*
 * Limits: 1,024 sessions of a process, and RLIMIT_MEMLOCK
 */

static int fds[MAX_OPEN + 1];
static unsigned int opened;

/* Opens one more session. Returns 0 or a negative errno. */
static int more_records(u32 nr_records)
{
	int fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, nr_records);

	if (fd >= 0)
		fds[opened++] = fd;
	return fd < 0 ? fd : 0;
}

/* Opens sessions until there are @n, or one fails. Returns 0 or the error. */
static int open_sessions(unsigned int n, int (*more)(u32 nr_records), u32 nr_records)
{
	int err = 0;

	while (!err && opened < n)
		err = more(nr_records);
	return err;
}

static void close_sessions(void)
{
	while (opened)
		close(fds[--opened]);
}

TEST_F_CHILD(limits, a_process_has_at_most_1024_sessions)
{
	MUST(open_sessions(MAX_OPEN + 1, more_records, 0) == -EMFILE && opened == MAX_OPEN);
	close(fds[0]);
	fds[0] = must_open();
	MUST(more_records(0) == -EMFILE);
	/* The limit is per process. */
	return status_in_child(({ must_open(); 0; }));
}

TEST_F_CHILD(limits, buffers_and_records_of_a_process_share_RLIMIT_MEMLOCK)
{
	struct profil_range range = range_of(0, 4 * MIB, map_private(4 * MIB), 4 * MIB / 2, 2);

	limit_memlock(8 * MIB);
	become_user(USER);
	MUST(!session_start(PROCESS, 0, &range, 1));
	MUST(!session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	/* Records take the rest of RLIMIT_MEMLOCK. */
	MUST(open_sessions(MAX_OPEN, more_records, 1024) == -EPERM);
	MUST(opened && opened < 4 * MIB / 1024 / sizeof(struct profil_record));
	MUST(pinned_bytes() <= 8 * MIB && pinned_bytes() > 7 * MIB);
	MUST(session_start(PROFIL_SCOPE_THREAD, PROFIL_START_REPLACE, &range, 1) == -EPERM);
	close_sessions();
	MUST(pinned_bytes() == 4 * MIB);
	return 0;
}

/*
 * Charges to the memory cgroup
 */

TEST_IN_CGROUP(sessions_are_charged_to_the_cgroup)
{
	long long before = held_before();

	MUST(!open_sessions(MAX_OPEN, more_records, 0));
	/* With its deferred ticks, 2 KiB, a session takes a slab object of 4 KiB. */
	must_hold(before, MAX_OPEN * 4096UL);
	close_sessions();
	must_return_to(before);
}

static struct profil_range *ranges;
static atomic_int targets[TARGETS];

static void *be_target(void *i)
{
	targets[(uintptr_t)i] = gettid();
	for (;;)
		pause();
	return NULL;
}

/* Prepares for more_ranges(). */
static void make_targets_and_ranges(void)
{
	ranges = many_ranges(RANGES);
	for (uintptr_t i = 0; i < TARGETS; i++) {
		thread_start(be_target, (void *)i);
		MUST(await(targets[i]));
	}
}

/* Opens one more session, of a target, with ranges. */
static int more_ranges(u32 nr_records)
{
	pid_t target = targets[opened / query.max_sessions % TARGETS];
	int err = more_records(nr_records), fd;

	if (err)
		return err;
	fd = fds[opened - 1];
	err = descriptor_attach(fd, PROFIL_SCOPE_THREAD, target, NULL);
	return err ?: descriptor_add(fd, PROFIL_SPACE_SELF, ranges, RANGES);
}

TEST_IN_CGROUP(ranges_are_charged_to_the_cgroup)
{
	long long before;

	make_targets_and_ranges();
	before = held_before();
	MUST(!open_sessions(64, more_ranges, 0));
	must_hold(before, opened * RANGES * sizeof(*ranges));
	close_sessions();
	must_return_to(before);
}

TEST_IN_CGROUP(records_are_charged_to_the_cgroup)
{
	long long before = held_before();
	struct profil_stats s;
	int fd = must_open(.nr_records = 65536);

	MUST(!descriptor_stats(fd, &s));
	MUST(s.locked >= 65536 * sizeof(struct profil_record));
	must_hold(before, s.locked);
	close(fd);
	must_return_to(before);
}

#define CHILDREN	32

static atomic_uint *children_ready;	/* in shared memory */

/* Returns the additional memory of CHILDREN children, each with or without a session. */
static long long held_for_children(bool profiled)
{
	pid_t children[CHILDREN];
	long long before = held(), most;

	*children_ready = 0;
	for (unsigned int i = 0; i < CHILDREN; i++) {
		children[i] = SPAWN(({
			/* After its first tick a child has allocated its own ranges and pages. */
			MUST(loop_until(0, !profiled || pinned_bytes()));
			++*children_ready;
			pause();
		}));
	}
	MUST(await(*children_ready == CHILDREN));
	most = held() - before;
	for (unsigned int i = 0; i < CHILDREN; i++)
		killed(children[i]);
	must_return_to(before);
	return most;
}

TEST_IN_CGROUP(sessions_that_children_inherit_are_charged_to_the_cgroup)
{
	static u16 counters[LOOPS] PAGE_ALIGNED;
	struct profil_range *many = many_ranges(RANGES);
	long long before, without, with, least;

	children_ready = map_shared(PAGE);
	many[RANGES - 1] = range_of_loops(counters, 2);
	before = held_before();
	without = held_for_children(false);
	MUST(!session_start(PROCESS, 0, many, RANGES));
	with = held_for_children(true);
	least = CHILDREN * RANGES * (long long)sizeof(struct profil_range);
	if (with - without < least)
		dprintf(STDERR_FILENO, "# %lld bytes, %lld without sessions\n", with, without);
	MUST(with - without >= least);
	MUST(!session_stop(PROCESS, NULL));
	must_return_to(before);
}

/*
 * Arguments: the caller can make the kernel wait for a page of an argument
 */

static void *take_snapshot(void *copies)
{
	descriptor_snapshot(must_open(), 0, copies, MAX_COPIES, NULL);
	return NULL;
}

/* The call waits for the last page of an array, after it has copied most of it. */
TEST_IN_CGROUP(arguments_are_charged_to_the_cgroup)
{
	const size_t bytes = MAX_COPIES * sizeof(struct profil_copy);
	size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
	u8 *p = map_small(size);	/* with a huge page, the last page would be present, too */
	struct uffdio_zeropage zero = { .range = { addr(p) + size - PAGE, PAGE } };
	struct uffd_msg msg;
	long long before;
	pthread_t thread;
	int uffd;

	memset(p, 0, size - PAGE);
	uffd = missing_pages(p + size - PAGE, PAGE, 0);
	MUST(uffd >= 0);
	before = held_before();
	thread = thread_start(take_snapshot, p);
	MUST(read(uffd, &msg, sizeof(msg)) == sizeof(msg));
	must_hold(before, bytes);
	MUST(!ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
	thread_end(thread);
	close(uffd);
	must_return_to(before);
}

/*
 * A small memory cgroup
 */

static void fill(int (*more)(u32 nr_records), u32 nr_records)
{
	int err = open_sessions(MAX_OPEN, more, nr_records);

	if (err != -ENOMEM)
		dprintf(STDERR_FILENO, "# after %u: %s\n", opened, strerror(-err));
	MUST(err == -ENOMEM);
	MUST(opened);
	MUST(held() <= (long long)(SMALL + SLACK));
	close_sessions();
}

/* The OOM killer must spare the process, so that the call returns ENOMEM. */
TEST_IN_CGROUP(calls_that_exceed_a_small_cgroup_fail_with_ENOMEM)
{
	long long before;

	MUST(!file_write("/proc/self/oom_score_adj", "-1000"));
	make_targets_and_ranges();
	before = held_before();
	MUST(!file_write(CGROUP "/memory.max", "16777216"));
	fill(more_records, 16384);
	must_return_to(before);
	fill(more_ranges, 0);
	must_return_to(before);
}

/* Opens the largest rings until there is no memory. */
TEST_IN_CGROUP(rings_that_exceed_a_cgroup_fail_and_no_process_is_killed)
{
	int new;

	MUST(!file_write(CGROUP "/memory.max", "268435456"));
	do {
		new = descriptor_open_as((struct profil_open){
			.modes = MODES_ALL,
			.nr_records = query.max_records,
			.stack_depth = query.max_stack_depth,
		});
	} while (new >= 0);
	MUST(new == -ENOMEM);
}

static void fill_until_killed(void)
{
	make_targets_and_ranges();
	MUST(!file_write(CGROUP "/memory.max", "16777216"));
	while (!more_ranges(0))
		if (!fork())
			for (;;)
				pause();
	pause();
}

TEST_F(limits, a_process_killed_by_the_OOM_killer_leaks_nothing)
{
	NEED_CGROUP();
	ASSERT_EQ(0, file_write(CGROUP "/memory.oom.group", "1"));
	EXPECT_EQ(128 + SIGKILL, status_in_cgroup(fill_until_killed));
	EXPECT_TRUE(await(held() < (long long)SLACK)) {
		TH_LOG("%lld bytes remain", held());
	}
}

TEST_HARNESS_MAIN
