// SPDX-License-Identifier: GPL-2.0
/*
 * Memory allocation fails: each call is repeated while its 1st, 2nd, 3rd ... allocation fails,
 * until the call has no more allocations. Each failure must be a documented error and change
 * nothing: no memory stays locked or pinned, no descriptor is left, and other sessions continue.
 *
 * Needs a kernel with fault injection. A thread writes n to its file fail-nth, and its n-th
 * allocation from then on fails. The allocations of page faults count, too; so do copies from and
 * to user memory, which fail with EFAULT, if the kernel can inject that.
 */
#include "kselftest_harness.h"

#include <poll.h>
#include <sys/ptrace.h>

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "usage.h"

/* Kernels with fault injection are slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define PAGES		16UL
#define RANGES		600U
#define PERIOD		10000000	/* ns */
#define DEBUGFS		"/sys/kernel/debug/"
#define FAIL_NTH	"/proc/thread-self/fail-nth"

/*
 * After it scheduled a thread, the kernel writes to the C library's rseq area, and kills the thread
 * if that write fails. So no thread of this program may have such an area.
 */
static __attribute__((constructor)) void without_rseq(int argc __attribute__((unused)),
						     char **argv)
{
	static const char name[] = "GLIBC_TUNABLES";

	if (!getenv(name) && !setenv(name, "glibc.pthread.rseq=0", 1))
		execv("/proc/self/exe", argv);
}

/* These can be static, since each test runs in its own process. */
static char *buffer;			/* PAGES pages */
static u64 *counters;			/* two pages for the sessions that must continue */
static int nth;				/* FAIL_NTH of this thread */
static int bystander;			/* a session that must continue to count */
static bool alone;			/* the bystander is off */
static int fd = -1;			/* the session that the calls are for */
static struct profil_query query;
static struct profil_range range;	/* in counters */
static struct profil_range *ranges;

/* The arguments of START and OPEN, and the results of DESCRIBE */
static struct profil_start starting = { .size = sizeof(starting), .modes = MODES_ALL };
static struct profil_open opening = { .modes = MODES_ALL };
static struct profil_describe described;

FIXTURE(inject) {
	struct usage before;
	int descriptor;			/* the number that the next descriptor got */
};

static int next_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

/* Writes a setting of both kinds of allocations. */
static int set_both(const char *name, const char *value)
{
	char slab[64], page[64];

	snprintf(slab, sizeof(slab), DEBUGFS "failslab/%s", name);
	snprintf(page, sizeof(page), DEBUGFS "fail_page_alloc/%s", name);
	return file_write(slab, value) ?: file_write(page, value);
}

/* No stack dumps. With probability 0, only fail-nth makes allocations fail. */
static int set_up(void)
{
	int err = set_both("verbose", "0") ?: set_both("probability", "0") ?:
		  set_both("ignore-gfp-wait", "N") ?:
		  file_write(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N") ?:
		  file_write(DEBUGFS "fail_page_alloc/min-order", "0");

	if (err || access(DEBUGFS "fail_usercopy", F_OK))
		return err;
	return file_write(DEBUGFS "fail_usercopy/verbose", "0") ?:
	       file_write(DEBUGFS "fail_usercopy/probability", "0");
}

/* Lets allocations fail at random, with @probability %, in tasks whose make-it-fail is 1. */
static int fail_at_random(const char *probability)
{
	return set_both("task-filter", "Y") ?: set_both("times", "-1") ?:
	       set_both("probability", probability);
}

static int no_more_failures(void)
{
	return set_up() ?: set_both("task-filter", "N");
}

static void nth_open(void)
{
	nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	MUST(nth >= 0);
}

FIXTURE_SETUP(inject)
{
	ASSERT_EQ(0, device_query(&query));
	SKIP_SETUP_IF(access(FAIL_NTH, W_OK) || access(DEBUGFS "failslab", R_OK),
		      "needs root, and a kernel with FAULT_INJECTION and FAILSLAB");
	ASSERT_EQ(0, set_up());
	buffer = map_pages(PAGES);
	counters = map_new(2 * PAGE, MAP_PRIVATE | MAP_POPULATE);
	ranges = map_private(query.max_ranges * sizeof(*ranges));
	starting.ranges = addr(ranges);
	/* Workers may still free resources that earlier tests left when they exited. */
	await(module_users() <= 1);
	range = range_all(counters, 1, 8);
	bystander = must_sample(must_open(), PROCESS, &range, 1);
	range.buffer = addr(counters) + PAGE;
	nth_open();
	self->before = usage();
	self->before.percpu = LLONG_MAX / 2;	/* of other processes, too */
	self->descriptor = next_descriptor();
}

FIXTURE_TEARDOWN(inject)
{
	struct profil_stats s;

	no_more_failures();
	kill_children();
	session_stop(THREAD, NULL);
	session_stop(PROCESS, NULL);
	if (fd >= 0)
		close(fd);
	expect_same_usage(_metadata, &self->before);
	EXPECT_EQ(self->descriptor, next_descriptor());
	EXPECT_TRUE(descriptor_burn(bystander, 0, 2));
	EXPECT_EQ(0, descriptor_disable(bystander, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, counters[0]);
	/* A thread that exits loses its mm before its last ticks, which are dropped. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
}

/* A test that makes a call fail: @op, after the statements that follow. */
#define TEST_SWEEP(test_name, op, ...)						\
	TEST_F(inject, test_name)						\
	{									\
		__VA_ARGS__;							\
		sweep(_metadata, op, each);					\
	}

/*
 * A call, and functions that run before and after it. They return 0 or a negative errno; @call can
 * also return a positive number. @before restores the state that the call expects.
 */
struct op {
	int (*before)(void);
	int (*call)(void);
	int (*after)(void);		/* undoes a call that succeeded */
	int (*unchanged)(void);		/* after a call that failed: true or not */
	int error;			/* another errno that is allowed */
};

#define OP(...)	(&(const struct op){ __VA_ARGS__ })

/* Such a function */
#define STEP(name, value)							\
	static int name(void)							\
	{									\
		return value;							\
	}

static void fail_after(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	/* write() itself may be the call that fails. */
	if (write(nth, text, length) != length)
		write(nth, text, length);
}

/* Returns true if an allocation has failed. This pread() itself may be the call that fails. */
static bool has_failed(void)
{
	char text[16] = "";
	bool failed = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	fail_after(0);
	return failed;
}

static int call_while_failing(int (*call)(void), unsigned int n, bool *failed)
{
	int err;

	fail_after(n);
	err = call();
	*failed = has_failed();
	return err;
}

static u32 state_now(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) || !accounted(&s) ? ~0U : s.state;
}

static u64 targets_of(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) ? ~0ULL : s.targets;
}

static bool goes_on(int fd)
{
	return state_now(fd) == PROFIL_STATE_ON && targets_of(fd) == 1;
}

/* Skips more and more allocations, for calls that have very many. */
static unsigned int some(unsigned int n)
{
	return n + 1 + n / 4;
}

static unsigned int each(unsigned int n)
{
	return n + 1;
}

static void sweep(struct __test_metadata *_metadata, const struct op *op,
		  unsigned int (*next)(unsigned int n))
{
	unsigned int n, failures = 0, faults = 0, changed = 0;
	bool failed = true, late;
	u64 locked;
	int err;

	for (n = 1; failed; n = next(n)) {
		ASSERT_EQ(0, op->before ? op->before() : 0);
		locked = pinned_bytes();
		err = call_while_failing(op->call, n, &failed);
		if (err >= 0) {
			ASSERT_EQ(0, op->after ? op->after() : 0);
			continue;
		}
		failures++;
		faults += err == -EFAULT;
		ASSERT_TRUE(failed) {
			TH_LOG("%u: error %d, but no allocation failed", n, err);
		}
		ASSERT_TRUE(err == -ENOMEM || err == -EFAULT || err == op->error) {
			TH_LOG("%u: error %d", n, err);
		}
		ASSERT_TRUE(await(pinned_bytes() == locked)) {
			TH_LOG("%u: error %d: locked %lu, was %lu", n, err, pinned_bytes(), locked);
		}
		ASSERT_TRUE(alone || goes_on(bystander));
		/*
		 * If the last copy to user memory fails, although memory was writable at the start
		 * of the call, the call has taken effect already. There is one such copy, but its
		 * number among the allocations varies.
		 */
		late = op->unchanged && !op->unchanged();
		changed += late;
		ASSERT_TRUE(!late || (err == -EFAULT && changed <= 4)) {
			TH_LOG("%u: error %d: the state has changed", n, err);
		}
	}
	TH_LOG("%u failures, %u of them EFAULT, %u after the effect", failures, faults, changed);
}

/*
 * The device
 */

STEP(call_query, device_query(&(struct profil_query){}))

TEST_SWEEP(query, OP(.call = call_query))

/* Maps the buffer anew, without pages. */
STEP(fresh_buffer, mmap(buffer, PAGES * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != buffer ||
		   madvise(buffer, PAGES * PAGE, MADV_NOHUGEPAGE))
STEP(call_start, device_ioctl(PROFIL_IOC_START, &starting))
STEP(stop_it, session_stop(starting.scope, NULL))
STEP(is_off_still, is_off(starting.scope))

static const struct op start = {
	.before = fresh_buffer, .call = call_start, .after = stop_it, .unchanged = is_off_still,
	.error = -EBUSY,	/* the clock cannot be hooked */
};

/* Sets @nr ranges with one counter each, far apart. */
static void set_ranges(u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		ranges[i] = range_of(0x1000 + 16 * i, 0x1008 + 16 * i,
				     buffer + i % PAGES * PAGE + i / PAGES * 8, 1, 8);
	starting.nr_ranges = nr;
}

TEST_SWEEP(start, &start, set_ranges(1))

TEST_SWEEP(start_of_a_thread, &start,
	   set_ranges(1);
	   starting.scope = THREAD)

TEST_SWEEP(start_without_ranges, &start)

TEST_SWEEP(start_with_unpopulated_pages, &start,
	   ranges[0] = range_all(buffer, PAGES * PAGE / 8, 8);
	   starting.nr_ranges = 1)

TEST_SWEEP(start_with_many_ranges, &start, set_ranges(RANGES))

TEST_F(inject, start_with_scattered_buffers)
{
	set_ranges(PAGES / 2);
	for (u32 i = 0; i < PAGES / 2; i++)
		ranges[i].buffer += i * PAGE;
	sweep(_metadata, &start, each);
}

TEST_F(inject, start_with_the_largest_number_of_ranges)
{
	set_ranges(query.max_ranges);
	sweep(_metadata, &start, some);
}

TEST_SWEEP(start_with_a_period, &start,
	   set_ranges(1);
	   starting.period = PERIOD)

TEST_SWEEP(start_that_records_pcs, &start,
	   ranges[0] = range_of(0, ~0ULL, buffer, PAGE / 8, 8);
	   ranges[0].flags = PROFIL_RANGE_PCS;
	   starting.nr_ranges = 1;
	   starting.modes = PROFIL_MODE_USER)

static int is_on_still(void)
{
	struct profil_stats s;

	return !session_stats(starting.scope, &s) && s.state == PROFIL_STATE_ON && accounted(&s);
}

/* Starts the session that the call replaces. */
STEP(start_old, fresh_buffer() ?: session_start(starting.scope, PROFIL_START_REPLACE, &range, 1))

static const struct op replace = {
	.before = start_old, .call = call_start, .unchanged = is_on_still, .error = -EBUSY,
};

#define TEST_REPLACE(test_name, nr, ...)					\
	TEST_F(inject, test_name)						\
	{									\
		__VA_ARGS__;							\
		set_ranges(nr);							\
		starting.flags = PROFIL_START_REPLACE;				\
		sweep(_metadata, &replace, each);				\
		EXPECT_TRUE(loop_burn(starting.scope, 0, 2));			\
	}

TEST_REPLACE(replacement, PAGES)
TEST_REPLACE(replacement_of_a_threads_session, PAGES, starting.scope = THREAD)
TEST_REPLACE(replacement_by_a_session_with_a_period, 1, starting.period = PERIOD)

STEP(hook_gone, !device_query(&query) && query.hook == PROFIL_HOOK_NONE)
STEP(await_no_hook, fresh_buffer() ?: await(hook_gone()) ? 0 : -ETIME)
STEP(count_and_stop, loop_burn(PROCESS, 0, 1) ? stop_it() : -ETIME)

/* The hook must be gone, so that each call installs it. */
TEST_F(inject, start_when_the_tick_is_not_hooked)
{
	char linger[32];

	ASSERT_EQ(0, file_exchange(LINGER_S, "0", linger, sizeof(linger)));
	ASSERT_EQ(0, descriptor_disable(bystander, NULL));
	alone = true;
	set_ranges(1);
	sweep(_metadata,
	      OP(.before = await_no_hook, .call = call_start, .after = count_and_stop,
		 .unchanged = is_off_still, .error = -EBUSY), some);
	ASSERT_EQ(0, descriptor_enable(bystander));
	ASSERT_EQ(0, file_write(LINGER_S, linger));
}

STEP(start_many, fresh_buffer() ?:
		 session_start(PROCESS, PROFIL_START_REPLACE, ranges, starting.nr_ranges))
STEP(call_stats, session_stats(starting.scope, &(struct profil_stats){}))
STEP(must_be_on, is_on_still() ? 0 : -ENODEV)

TEST_SWEEP(stats,
	   OP(.before = start_many, .call = call_stats, .after = must_be_on,
	      .unchanged = is_on_still),
	   set_ranges(PAGES))

STEP(call_stop, session_stop(starting.scope, &(struct profil_stats){}))

/* STOP may also fail because it cannot write the statistics of the session that it has stopped. */
TEST_F(inject, stop)
{
	bool failed = true;
	int err;

	set_ranges(PAGES);
	for (unsigned int n = 1; failed; n++) {
		stop_it();
		ASSERT_EQ(0, fresh_buffer());
		ASSERT_EQ(0, call_start());
		err = call_while_failing(call_stop, n, &failed);
		ASSERT_TRUE(!err || (failed && err == -EFAULT));
		ASSERT_TRUE(is_off_still() || (err && is_on_still()));
		ASSERT_TRUE(goes_on(bystander));
	}
}

static int call_describe(void)
{
	described = (struct profil_describe) {
		.size = sizeof(described),
		.nr_ranges = PAGES,
		.ranges = addr(ranges),
	};
	return device_ioctl(PROFIL_IOC_DESCRIBE, &described);
}

TEST_F(inject, describe)
{
	range.nr_counters = PAGE / 8;
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	sweep(_metadata,
	      OP(.before = fresh_buffer, .call = call_describe, .unchanged = is_on_still), each);
	EXPECT_EQ(1U, described.nr_ranges);
}

/*
 * Sessions with a descriptor
 */

STEP(call_open, fd = descriptor_open_as(opening))

static int close_it(void)
{
	int err = close(fd);

	fd = -1;
	return err;
}

TEST_SWEEP(open, OP(.call = call_open, .after = close_it), opening.nr_records = 4096)
TEST_SWEEP(open_without_records, OP(.call = call_open, .after = close_it), opening.period = PERIOD)

static int open_new(void)
{
	if (fd >= 0)
		close(fd);
	fd = descriptor_open_as(opening);
	return fd < 0 ? fd : 0;
}

static pid_t sleeper;

STEP(has_no_targets, !targets_of(fd))
STEP(attach_self, descriptor_attach(fd, PROCESS, 0, NULL))
STEP(attach_thread, descriptor_attach(fd, THREAD, 0, NULL))
STEP(attach_child, descriptor_attach(fd, PROCESS, sleeper, NULL))

TEST_F(inject, attach)
{
	struct op op = { .before = open_new, .call = attach_self, .unchanged = has_no_targets };

	sweep(_metadata, &op, each);
	op.call = attach_thread;
	sweep(_metadata, &op, each);
	op.call = attach_child;
	sleeper = SPAWN(pause());
	sweep(_metadata, &op, each);
}

/* Opens a session that is on, with the caller as its target. */
STEP(open_and_attach, open_new() ?: descriptor_begin(fd, PROCESS, NULL, 0) ?: fresh_buffer())
STEP(add_ranges, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, starting.nr_ranges))
STEP(remove_self, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, ~0ULL))
STEP(nothing_added, goes_on(fd) && !remove_self())

static const struct op add = {
	.before = open_and_attach, .call = add_ranges, .unchanged = nothing_added,
};

TEST_F(inject, add)
{
	opening.fork = PROFIL_FORK_SHARE;
	set_ranges(PAGES);
	for (u32 i = 0; i < PAGES; i++)
		ranges[i].buffer = addr(buffer) + (i & ~3UL) * PAGE + 8 * i;
	sweep(_metadata, &add, each);
	set_ranges(RANGES);
	sweep(_metadata, &add, each);
}

STEP(add_again, (fd < 0 ? open_and_attach() : 0) ?: add_ranges())
/* Removes all but the first two ranges. */
STEP(remove_most, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[2].start, ~0ULL))
STEP(remove_rest, remove_self() == 2 ? 0 : -EPROTO)
STEP(nothing_removed, goes_on(fd) && remove_self() == (int)starting.nr_ranges)

static const struct op remove_op = {
	.before = add_again, .call = remove_most, .after = remove_rest,
	.unchanged = nothing_removed,
};

TEST_SWEEP(remove, &remove_op,
	   opening.fork = PROFIL_FORK_SHARE;
	   set_ranges(PAGES))

STEP(switched_off, open_and_attach() ?: descriptor_disable(fd, NULL))
STEP(call_enable, descriptor_enable(fd))
STEP(still_off, state_now(fd) == PROFIL_STATE_OFF)

static const struct op enable = {
	.before = switched_off, .call = call_enable, .unchanged = still_off, .error = -EBUSY,
};

TEST_F(inject, enable)
{
	sweep(_metadata, &enable, each);
	opening.period = PERIOD;
	sweep(_metadata, &enable, each);
}

STEP(open_and_add, open_and_attach() ?: add_ranges())
STEP(call_disable, descriptor_disable(fd, &(struct profil_stats){}))
/* The session may be on or off: DISABLE also fails if it cannot write its results. */
STEP(is_whole, state_now(fd) == PROFIL_STATE_ON || still_off())
STEP(must_be_off, still_off() ? 0 : -ENODEV)

TEST_SWEEP(disable,
	   OP(.before = open_and_add, .call = call_disable, .after = must_be_off,
	      .unchanged = is_whole),
	   set_ranges(PAGES))

/* Lets the counters become nonzero, and removes the pages to which the snapshot is copied. */
static int snapshot_due(void)
{
	if (fd < 0 && (open_and_attach() || descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1)))
		return -EINVAL;
	return fresh_buffer() ?: descriptor_burn(fd, 0, 1) ? 0 : -ETIME;
}

static int call_snapshot(void)
{
	struct profil_copy copies[] = {
		{ addr(counters) + PAGE, addr(buffer), 8 },
		/* A range that no tick hits. */
		{ addr(buffer) + PAGE, addr(buffer) + 3 * PAGE, PAGE },
	};
	struct profil_stats s;

	return descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, copies, ARRAY_SIZE(copies), &s);
}

/* Returns true if the counter agrees with the statistics: both were reset, or neither. */
static int is_not_half_reset(void)
{
	struct profil_stats s;

	if (!goes_on(fd) || descriptor_disable(fd, &s))
		return false;
	return s.hit == counters[PAGE / 8] && !descriptor_enable(fd);
}

STEP(check_reset, is_not_half_reset() ? 0 : -EPROTO)

TEST_SWEEP(snapshot,
	   OP(.before = snapshot_due, .call = call_snapshot, .after = check_reset,
	      .unchanged = is_not_half_reset))

/* Makes records, which the session has because it has no ranges. */
static int make_records(void)
{
	if (fd < 0 && open_and_attach())
		return -EINVAL;
	return descriptor_burn(fd, 0, 2) ? descriptor_disable(fd, NULL) : -ETIME;
}

/* Returns the number of bytes, or a negative errno. */
static int read_records(void)
{
	ssize_t n = read(fd, buffer, PAGES * PAGE);

	return n < 0 ? -errno : n;
}

static int records_are_there(void)
{
	struct pollfd pfd = { fd, POLLIN, 0 };

	return poll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN && read_records() > 0 &&
	       !descriptor_enable(fd);
}

TEST_SWEEP(read_of_records,
	   OP(.before = make_records, .call = read_records, .after = call_enable,
	      .unchanged = records_are_there),
	   opening.nr_records = 4096)

static int poll_fds(void)
{
	struct pollfd pfds[] = { { fd, POLLIN, 0 }, { bystander, POLLIN, 0 } };

	return poll(pfds, ARRAY_SIZE(pfds), 0) < 0 ? -errno : 0;
}

TEST_SWEEP(poll, OP(.call = poll_fds),
	   opening.nr_records = 16;
	   ASSERT_EQ(0, open_and_attach()))

/*
 * Processes and threads
 */

/* Kinds of sessions: the bits tell which of them a child has. */
enum { CLASSIC, SHARE, KINDS };

static int share = -1;

static u64 unfollowed(unsigned int kind)
{
	struct profil_stats s;
	int err = kind == CLASSIC ? session_stats(PROCESS, &s) : descriptor_stats(share, &s);

	return err || s.state != PROFIL_STATE_ON || !accounted(&s) ? ~0ULL : s.unfollowed;
}

/* In the child: returns a bit for each session that it has inherited. */
static int kinds_that_came(void)
{
	int bits = 0, err;
	struct profil_stats s;

	MUST(!session_stats(PROCESS, &s) && accounted(&s));
	MUST(s.state == PROFIL_STATE_ON || s.state == PROFIL_STATE_OFF);
	if (s.state == PROFIL_STATE_ON)
		bits |= 2 << CLASSIC;
	err = descriptor_attach(share, PROCESS, 0, NULL);
	MUST(!err || err == -EBUSY);
	if (err)
		bits |= 2 << SHARE;
	return bits;
}

static void open_kinds(void)
{
	share = must_sample(must_open(.fork = PROFIL_FORK_SHARE, .exec = PROFIL_EXEC_FOLLOW),
			    PROCESS, &range, 1);
	MUST(!session_start(PROCESS, 0, &range, 1));
}

static int close_kinds(void)
{
	close(share);
	return session_stop(PROCESS, NULL);
}

/* The child inherits each session, or the parent's session counts an unfollowed fork. */
TEST_F(inject, fork)
{
	unsigned int n, missing = 0, forks = 0;
	u64 before[KINDS];
	bool failed = true;
	pid_t pid;
	int bits;

	open_kinds();
	for (n = 1; failed; n++) {
		for (unsigned int i = 0; i < KINDS; i++)
			before[i] = unfollowed(i);
		fail_after(n);
		pid = fork();
		if (!pid)
			_exit(kinds_that_came());
		failed = has_failed();
		bits = pid < 0 ? 0 : status_of(pid);
		for (unsigned int i = 0; i < KINDS; i++) {
			u64 lost = pid > 0 && !(bits & 2 << i);

			ASSERT_EQ(before[i] + lost, unfollowed(i)) {
				TH_LOG("%u: session %u, bits %#x", n, i, bits);
			}
			missing += lost;
		}
		forks += pid > 0;
		ASSERT_FALSE(bits & 1);
		ASSERT_TRUE(failed || bits == 6);
	}
	TH_LOG("%u forks, %u failed; %u times a session could not follow", n - 1,
	       n - 1 - forks, missing);
	EXPECT_LT(0U, missing);
	EXPECT_EQ(0, close_kinds());
}

static void exec_in_child(unsigned int n)
{
	nth_open();
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	fail_after(n);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/*
 * The child is a target of the SHARE session. It is stopped before the new program runs. Some
 * failures kill it, because it has lost its old program already.
 */
TEST_F(inject, exec)
{
	unsigned int sweeps, n = 0, missing = 0, execs = 0, ended = 0;
	struct profil_stats s;
	char path[64];
	bool failed;
	u64 before;
	int status;
	pid_t pid;

	open_kinds();
	/* The number of allocations varies, so one sweep may skip the few of the module. */
	for (sweeps = 0, failed = false; failed || (!missing && sweeps < 10); n++) {
		if (!failed) {
			sweeps++;
			n = 1;
		}
		before = unfollowed(SHARE);
		pid = FORK(exec_in_child(n));
		ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
		failed = true;
		if (WIFSTOPPED(status)) {
			snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
			failed = !file_number(path, "");
			ASSERT_EQ(0, descriptor_stats(share, &s));
			ASSERT_EQ(PROFIL_STATE_ON, (int)s.state);
			if (WSTOPSIG(status) == SIGTRAP) {
				execs++;
				ASSERT_EQ(2 - s.targets, s.unfollowed - before);
				missing += 2 - s.targets;
			}
			killed(pid);
		} else {
			ended++;
		}
		ASSERT_TRUE(await(targets_of(share) == 1));
	}
	TH_LOG("in %u sweeps %u execs, %u failures; %u times a session could not follow", sweeps,
	       execs, ended, missing);
	EXPECT_LT(0U, missing);
	EXPECT_EQ(0, close_kinds());
}

static void *burn_once(void *unused)
{
	burn();
	return unused;
}

TEST_F(inject, new_thread)
{
	pthread_t thread;
	bool failed = true;
	int err;

	open_kinds();
	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	for (unsigned int n = 1; failed; n++) {
		fail_after(n);
		err = pthread_create(&thread, NULL, burn_once, NULL);
		failed = has_failed();
		ASSERT_TRUE(failed || !err);
		ASSERT_EQ(0, err ? 0 : pthread_join(thread, NULL));
		for (unsigned int i = 0; i < KINDS; i++)
			ASSERT_EQ(0U, unfollowed(i));
	}
	EXPECT_EQ(0, close_kinds());
}

/*
 * The set-up of an inherited session: by task work of the child, or by the child's first ioctl
 */

/*
 * Only ticks in loops are in the range of these sessions. So the first tick in a loop sets up a
 * session, and the child can arrange the failure before it runs a loop.
 */
static void count_loops_only(void)
{
	range = range_of_loops(counters + PAGE / sizeof(u64), 8);
}

#define SETUP_TICKS	50	/* a failed set-up is repeated within these */

/* Exit statuses of the child. */
enum {
	EARLY = 2,		/* the session was set up before allocations could fail */
	NO_FAILURE,		/* the session is on: no allocation failed */
	ON_AFTER_FAILURE,
	ON_AFTER_ENOMEM,	/* the ioctl failed, and the next one did not */
	ENDED_NOMEM,
	STATUSES
};

/* How the child's session is set up */
struct setup {
	bool by_ioctl;
	bool discard;		/* discard the buffer's page, which the set-up then faults in */
};

/* In memory that is shared with the child */
static struct progress {
	atomic_bool ready;	/* the child waits for ticks */
	atomic_bool enough;	/* it has had enough */
} *progress;

/*
 * In the child: makes the @n-th allocation fail until its session is set up. It waits for task work
 * without system calls and page faults, since these would count as allocations.
 */
static int session_after_failure(const struct setup *setup, unsigned int n)
{
	const volatile u64 *counter = counters + PAGE / sizeof(u64);
	bool set_up_by_task_work, failed;
	struct profil_stats s;
	int err = 0;
	u64 before;

	nth_open();
	if (setup->discard)
		MUST(!madvise((void *)counter, PAGE, MADV_DONTNEED));
	before = *counter;
	/* Makes the code and the data of the loop present. */
	loop_run(0, 1);
	progress->ready = true;
	fail_after(n);
	if (*counter != before)
		return EARLY;
	if (setup->by_ioctl)
		err = session_stats(PROCESS, &s);
	while (!setup->by_ioctl && !progress->enough)
		loop_run(0, LOOP_BURST);
	set_up_by_task_work = *counter != before;
	failed = has_failed();
	MUST(!err || (failed && (err == -ENOMEM || err == -EFAULT)));

	MUST(!session_stats(PROCESS, &s));
	MUST(accounted(&s));
	if (s.state == PROFIL_STATE_ENDED) {
		MUST(failed && s.end == PROFIL_END_NOMEM);
		return ENDED_NOMEM;
	}
	MUST(s.state == PROFIL_STATE_ON);
	MUST(setup->by_ioctl || set_up_by_task_work);
	if (err == -ENOMEM)
		return ON_AFTER_ENOMEM;
	return failed ? ON_AFTER_FAILURE : NO_FAILURE;
}

static int status_of_setup(const struct setup *setup, unsigned int n)
{
	pid_t child;
	u64 begun;

	*progress = (struct progress){};
	child = SPAWN(session_after_failure(setup, n));
	if (!setup->by_ioctl) {
		await(progress->ready || task_state(child) == 'Z');
		begun = task_ns(child);
		await(task_ns(child) >= begun + SETUP_TICKS * query.tick_ns ||
		      task_state(child) == 'Z');
		progress->enough = true;
	}
	return status_of(child);
}

/* Makes the 1st, 2nd ... allocation fail, until the set-up has no more allocations. */
static void sweep_setup(struct __test_metadata *_metadata, struct setup setup)
{
	unsigned int times[STATUSES] = {}, n = 1;

	progress = map_shared(PAGE);
	count_loops_only();
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	while (!times[NO_FAILURE]) {
		int status = status_of_setup(&setup, n);

		ASSERT_TRUE(status >= EARLY && status < STATUSES) {
			TH_LOG("%u: the child exited with %d", n, status);
		}
		times[status]++;
		n += status != EARLY;
		ASSERT_EQ(0U, unfollowed(CLASSIC));
	}
	TH_LOG("%u sessions on after a failure, %u after ENOMEM, %u ended; %u children too late",
	       times[ON_AFTER_FAILURE], times[ON_AFTER_ENOMEM], times[ENDED_NOMEM], times[EARLY]);
	EXPECT_LT(0U, times[ENDED_NOMEM]);
	EXPECT_LT(0U, times[setup.by_ioctl ? ON_AFTER_ENOMEM : ON_AFTER_FAILURE]);
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	munmap(progress, PAGE);
}

TEST_F(inject, setup_of_an_inherited_session_by_task_work)
{
	sweep_setup(_metadata, (struct setup){});
	sweep_setup(_metadata, (struct setup){ .discard = true });
}

TEST_F(inject, setup_of_an_inherited_session_by_an_ioctl)
{
	sweep_setup(_metadata, (struct setup){ .by_ioctl = true });
	sweep_setup(_metadata, (struct setup){ .by_ioctl = true, .discard = true });
}

/* In a child: its allocations fail at random until it has had enough. */
static int session_when_told(const struct progress *told, bool discard)
{
	struct profil_stats s;

	if (discard)
		madvise((char *)counters + PAGE, PAGE, MADV_DONTNEED);
	/* Makes the page present before allocations fail. */
	(void)told->enough;
	MUST(!file_write("/proc/self/make-it-fail", "1"));
	while (!told->enough)
		loop_run(0, LOOP_BURST);
	MUST(!session_stats(PROCESS, &s));
	MUST(accounted(&s));
	if (s.state == PROFIL_STATE_ON)
		return NO_FAILURE;
	MUST(s.state == PROFIL_STATE_ENDED && s.end == PROFIL_END_NOMEM);
	return ENDED_NOMEM;
}

/* Returns the exit status of the child, whose allocations succeed from now on. */
static int tell(pid_t child, struct progress *told)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/make-it-fail", child);
	file_write(path, "0");
	told->enough = true;
	return status_of(child);
}

TEST_F(inject, setup_of_inherited_sessions_at_random_while_children_are_killed)
{
	unsigned int on = 0, ended = 0;
	pid_t children[20] = {};
	int status;

	count_loops_only();
	open_kinds();
	progress = map_shared(sizeof(*progress) * ARRAY_SIZE(children));
	ASSERT_EQ(0, fail_at_random("15"));
	for (unsigned int i = 0; i < 100 + ARRAY_SIZE(children); i++) {
		struct progress *told = &progress[i % ARRAY_SIZE(children)];
		pid_t *one = &children[i % ARRAY_SIZE(children)];

		if (*one) {
			status = tell(*one, told);
			on += status == NO_FAILURE;
			ended += status == ENDED_NOMEM;
		}
		if (i >= 100)
			continue;
		told->enough = false;
		*one = SPAWN(session_when_told(told, i % 3 == 0));
		if (i % 5 == 0)
			kill(*one, SIGKILL);
	}
	EXPECT_EQ(0, no_more_failures());
	TH_LOG("%u sessions on, %u ended without memory", on, ended);
	EXPECT_EQ(80U, on + ended);
	EXPECT_LT(0U, on);
	EXPECT_LT(0U, ended);
	for (unsigned int i = 0; i < KINDS; i++)
		EXPECT_EQ(0U, unfollowed(i));
	EXPECT_EQ(0, close_kinds());
}

TEST_HARNESS_MAIN
