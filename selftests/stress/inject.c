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

FIXTURE(inject) {
	char *buffer;			/* PAGES pages */
	u64 *counters;			/* two pages for the sessions that must continue */
	int nth;
	int bystander;			/* a session that must continue to count */
	int fd;				/* the session that the calls are for */
	struct usage before;
	int descriptor;			/* the number that the next descriptor got */
	struct profil_range range;	/* in counters */
	struct profil_range *ranges;
	struct profil_start start;
	struct profil_open open;
	struct profil_describe described;
	u64 tick_ns;
	pid_t child;
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

FIXTURE_SETUP(inject)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	self->tick_ns = q.tick_ns;
	self->nth = -1;
	self->fd = -1;
	if (access(FAIL_NTH, W_OK) || access(DEBUGFS "failslab", R_OK))
		SKIP(return, "needs root, and a kernel with FAULT_INJECTION and FAILSLAB");
	ASSERT_EQ(0, set_up());
	self->buffer = map_private(PAGES * PAGE);
	self->counters = map_new(2 * PAGE, MAP_PRIVATE | MAP_POPULATE);
	self->ranges = map_private(q.max_ranges * sizeof(*self->ranges));
	/* Workers may still free resources that earlier tests left when they exited. */
	await(module_users() <= 1);
	self->range = range_all(self->counters, 1, 8);
	ASSERT_OPEN(self->bystander, 0);
	ASSERT_EQ(0, descriptor_begin(self->bystander, PROFIL_SCOPE_PROCESS, &self->range, 1));
	self->range.buffer = addr(self->counters) + PAGE;
	self->nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->nth);
	self->start = (struct profil_start) {
		.size = sizeof(self->start),
		.modes = MODES_ALL,
		.ranges = addr(self->ranges),
	};
	self->open.modes = MODES_ALL;
	self->before = usage();
	self->before.percpu = LLONG_MAX / 2;	/* of other processes, too */
	self->descriptor = next_descriptor();
}

FIXTURE_TEARDOWN(inject)
{
	struct profil_stats s;

	if (self->nth < 0)
		return;
	no_more_failures();
	kill_children();
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	if (self->fd >= 0)
		close(self->fd);
	expect_same_usage(_metadata, &self->before);
	EXPECT_EQ(self->descriptor, next_descriptor());
	EXPECT_TRUE(descriptor_burn(self->bystander, 0, 2));
	EXPECT_EQ(0, descriptor_disable(self->bystander, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, self->counters[0]);
	/* A thread that exits loses its mm before its last ticks, which are dropped. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
}

/* A test that does nothing if the kernel cannot inject failures: the setup has skipped it. */
#define TEST_INJECT(test_name)							\
	static void inject_##test_name##_run(struct __test_metadata *_metadata,	\
					     FIXTURE_DATA(inject) *self);	\
	TEST_F(inject, test_name)						\
	{									\
		if (self->nth >= 0)						\
			inject_##test_name##_run(_metadata, self);		\
	}									\
	static void inject_##test_name##_run(struct __test_metadata *_metadata,	\
					     FIXTURE_DATA(inject) *self)

/* A test that makes a call fail: @op, after the statements that follow. */
#define TEST_SWEEP(test_name, op, ...)						\
	TEST_INJECT(test_name)							\
	{									\
		__VA_ARGS__;							\
		sweep(_metadata, self, op, each);				\
	}

/*
 * A call, and functions that run before and after it. They return 0 or a negative errno; @call can
 * also return a positive number. @before restores the state that the call expects.
 */
struct op {
	int (*before)(FIXTURE_DATA(inject) *self);
	int (*call)(FIXTURE_DATA(inject) *self);
	int (*after)(FIXTURE_DATA(inject) *self);	/* undoes a call that succeeded */
	int (*unchanged)(FIXTURE_DATA(inject) *self);	/* after a call that failed: true or not */
	int error;					/* another errno that is allowed */
};

/* Such a function */
#define STEP(name, value)							\
	static int name(FIXTURE_DATA(inject) *self __attribute__((unused)))	\
	{									\
		return value;							\
	}

static void fail_after(int nth, unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	/* write() itself may be the call that fails. */
	if (write(nth, text, length) != length)
		write(nth, text, length);
}

/* Returns true if an allocation has failed. This pread() itself may be the call that fails. */
static bool has_failed(int nth)
{
	char text[16] = "";
	bool failed = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	fail_after(nth, 0);
	return failed;
}

static int call_while_failing(FIXTURE_DATA(inject) *self, int (*call)(FIXTURE_DATA(inject) *self),
			      unsigned int n, bool *failed)
{
	int err;

	fail_after(self->nth, n);
	err = call(self);
	*failed = has_failed(self->nth);
	return err;
}

static bool goes_on(int fd)
{
	struct profil_stats s;

	return !descriptor_stats(fd, &s) && s.state == PROFIL_STATE_ON && accounted(&s) &&
	       s.targets == 1;
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

static void sweep(struct __test_metadata *_metadata, FIXTURE_DATA(inject) *self,
		  const struct op *op, unsigned int (*next)(unsigned int n))
{
	unsigned int n, failures = 0, faults = 0, changed = 0;
	bool failed = true, late;
	u64 locked;
	int err;

	for (n = 1; failed; n = next(n)) {
		ASSERT_EQ(0, op->before ? op->before(self) : 0);
		locked = pinned_bytes();
		err = call_while_failing(self, op->call, n, &failed);
		if (err >= 0) {
			ASSERT_EQ(0, op->after ? op->after(self) : 0);
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
		ASSERT_TRUE(goes_on(self->bystander));
		/*
		 * If the last copy to user memory fails, although memory was writable at the start
		 * of the call, the call has taken effect already. There is one such copy, but its
		 * number among the allocations varies.
		 */
		late = op->unchanged && !op->unchanged(self);
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

static const struct op query = { .call = call_query };

TEST_SWEEP(query, &query)

/* Maps the buffer anew, without pages. */
STEP(fresh_buffer, mmap(self->buffer, PAGES * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != self->buffer ||
		   madvise(self->buffer, PAGES * PAGE, MADV_NOHUGEPAGE))
STEP(call_start, device_ioctl(PROFIL_IOC_START, &self->start))
STEP(stop_it, session_stop(self->start.scope, NULL))
STEP(is_off_still, is_off(self->start.scope))

static const struct op start = {
	.before = fresh_buffer,
	.call = call_start,
	.after = stop_it,
	.unchanged = is_off_still,
	.error = -EBUSY,	/* the clock cannot be hooked */
};

/* Sets @nr ranges with one counter each, far apart. */
static void set_ranges(FIXTURE_DATA(inject) *self, u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		self->ranges[i] = range_of(0x1000 + 16 * i, 0x1008 + 16 * i,
					   self->buffer + i % PAGES * PAGE + i / PAGES * 8, 1, 8);
	self->start.nr_ranges = nr;
}

TEST_SWEEP(start, &start, set_ranges(self, 1))

TEST_SWEEP(start_of_a_thread, &start,
	   set_ranges(self, 1);
	   self->start.scope = PROFIL_SCOPE_THREAD)

TEST_SWEEP(start_without_ranges, &start)

TEST_SWEEP(start_with_unpopulated_pages, &start,
	   self->ranges[0] = range_all(self->buffer, PAGES * PAGE / 8, 8);
	   self->start.nr_ranges = 1)

TEST_SWEEP(start_with_many_ranges, &start, set_ranges(self, RANGES))

TEST_INJECT(start_with_scattered_buffers)
{
	set_ranges(self, PAGES / 2);
	for (u32 i = 0; i < PAGES / 2; i++)
		self->ranges[i].buffer = addr(self->buffer) + 2 * i * PAGE;
	sweep(_metadata, self, &start, each);
}

TEST_INJECT(start_with_the_largest_number_of_ranges)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	set_ranges(self, q.max_ranges);
	sweep(_metadata, self, &start, some);
}

TEST_SWEEP(start_with_a_period, &start,
	   set_ranges(self, 1);
	   self->start.period = PERIOD)

TEST_SWEEP(start_that_records_pcs, &start,
	   self->ranges[0] = range_of(0, ~0ULL, self->buffer, PAGE / 8, 8);
	   self->ranges[0].flags = PROFIL_RANGE_PCS;
	   self->start.nr_ranges = 1;
	   self->start.modes = PROFIL_MODE_USER)

static int is_on_still(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	return !session_stats(self->start.scope, &s) && s.state == PROFIL_STATE_ON &&
	       accounted(&s);
}

/* Starts the session that the call replaces. */
STEP(start_old, fresh_buffer(self) ?:
		session_start(self->start.scope, PROFIL_START_REPLACE, &self->range, 1))

static const struct op replace = {
	.before = start_old,
	.call = call_start,
	.unchanged = is_on_still,
	.error = -EBUSY,
};

static void sweep_replace(struct __test_metadata *_metadata, FIXTURE_DATA(inject) *self, u32 nr)
{
	set_ranges(self, nr);
	self->start.flags = PROFIL_START_REPLACE;
	sweep(_metadata, self, &replace, each);
	EXPECT_TRUE(loop_burn(self->start.scope, 0, 2));
}

TEST_INJECT(replacement)
{
	sweep_replace(_metadata, self, PAGES);
}

TEST_INJECT(replacement_of_a_threads_session)
{
	self->start.scope = PROFIL_SCOPE_THREAD;
	sweep_replace(_metadata, self, PAGES);
}

TEST_INJECT(replacement_by_a_session_with_a_period)
{
	self->start.period = PERIOD;
	sweep_replace(_metadata, self, 1);
}

static bool hook_gone(void)
{
	struct profil_query q;

	return !device_query(&q) && q.hook == PROFIL_HOOK_NONE;
}

/* The hook must be gone, so that each call installs it. */
TEST_INJECT(start_when_the_tick_is_not_hooked)
{
	bool failed = true;
	char linger[32];
	int err;

	ASSERT_EQ(0, file_exchange(LINGER_S, "0", linger, sizeof(linger)));
	ASSERT_EQ(0, descriptor_disable(self->bystander, NULL));
	set_ranges(self, 1);
	for (unsigned int n = 1; failed; n = some(n)) {
		ASSERT_EQ(0, fresh_buffer(self));
		ASSERT_TRUE(await(hook_gone()));
		err = call_while_failing(self, call_start, n, &failed);
		if (err) {
			ASSERT_TRUE(failed);
			ASSERT_TRUE(err == -ENOMEM || err == -EFAULT || err == -EBUSY);
			ASSERT_TRUE(is_off_still(self));
			continue;
		}
		ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		ASSERT_EQ(0, stop_it(self));
	}
	ASSERT_EQ(0, descriptor_enable(self->bystander));
	ASSERT_EQ(0, file_write(LINGER_S, linger));
}

STEP(start_many, fresh_buffer(self) ?:
		 session_start(PROFIL_SCOPE_PROCESS, PROFIL_START_REPLACE, self->ranges,
			       self->start.nr_ranges))
STEP(call_stats, session_stats(self->start.scope, &(struct profil_stats){}))
STEP(must_be_on, is_on_still(self) ? 0 : -ENODEV)

static const struct op stats = {
	.before = start_many,
	.call = call_stats,
	.after = must_be_on,
	.unchanged = is_on_still,
};

TEST_SWEEP(stats, &stats, set_ranges(self, PAGES))

STEP(call_stop, session_stop(self->start.scope, &(struct profil_stats){}))

/* STOP may also fail because it cannot write the statistics of the session that it has stopped. */
TEST_INJECT(stop)
{
	bool failed = true;
	int err;

	set_ranges(self, PAGES);
	for (unsigned int n = 1; failed; n++) {
		stop_it(self);
		ASSERT_EQ(0, fresh_buffer(self));
		ASSERT_EQ(0, call_start(self));
		err = call_while_failing(self, call_stop, n, &failed);
		ASSERT_TRUE(!err || (failed && err == -EFAULT));
		ASSERT_TRUE(is_off_still(self) || (err && is_on_still(self)));
		ASSERT_TRUE(goes_on(self->bystander));
	}
}

static int call_describe(FIXTURE_DATA(inject) *self)
{
	self->described = (struct profil_describe) {
		.size = sizeof(self->described),
		.nr_ranges = PAGES,
		.ranges = addr(self->ranges),
	};
	return device_ioctl(PROFIL_IOC_DESCRIBE, &self->described);
}

static const struct op describe = {
	.before = fresh_buffer,
	.call = call_describe,
	.unchanged = is_on_still,
};

TEST_INJECT(describe)
{
	self->range.nr_counters = PAGE / 8;
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	sweep(_metadata, self, &describe, each);
	EXPECT_EQ(1U, self->described.nr_ranges);
}

/*
 * Sessions with a descriptor
 */

STEP(call_open, self->fd = descriptor_open_as(self->open))

static int close_it(FIXTURE_DATA(inject) *self)
{
	int err = close(self->fd);

	self->fd = -1;
	return err;
}

static const struct op open_op = { .call = call_open, .after = close_it };

TEST_SWEEP(open, &open_op, self->open.nr_records = 4096)
TEST_SWEEP(open_without_records, &open_op, self->open.period = PERIOD)

static int open_new(FIXTURE_DATA(inject) *self)
{
	if (self->fd >= 0)
		close(self->fd);
	self->fd = descriptor_open_as(self->open);
	return self->fd < 0 ? self->fd : 0;
}

static u64 targets_of(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) ? ~0ULL : s.targets;
}

STEP(has_no_targets, !targets_of(self->fd))
STEP(attach_self, descriptor_attach(self->fd, PROFIL_SCOPE_PROCESS, 0, NULL))
STEP(attach_thread, descriptor_attach(self->fd, PROFIL_SCOPE_THREAD, 0, NULL))
STEP(attach_child, descriptor_attach(self->fd, PROFIL_SCOPE_PROCESS, self->child, NULL))

static int sleep_for_ever(void)
{
	for (;;)
		pause();
	return 0;
}

TEST_INJECT(attach)
{
	struct op op = { .before = open_new, .call = attach_self, .unchanged = has_no_targets };

	sweep(_metadata, self, &op, each);
	op.call = attach_thread;
	sweep(_metadata, self, &op, each);
	op.call = attach_child;
	self->child = spawn(sleep_for_ever);
	sweep(_metadata, self, &op, each);
}

/* Opens a session that is on, with the caller as its target. */
STEP(open_and_attach, open_new(self) ?:
		      descriptor_begin(self->fd, PROFIL_SCOPE_PROCESS, NULL, 0) ?:
		      fresh_buffer(self))
STEP(add_ranges, descriptor_add(self->fd, PROFIL_SPACE_SELF, self->ranges, self->start.nr_ranges))
STEP(remove_self, descriptor_remove(self->fd, PROFIL_SPACE_SELF, 0, ~0ULL))
STEP(nothing_added, goes_on(self->fd) && !remove_self(self))

static const struct op add = {
	.before = open_and_attach,
	.call = add_ranges,
	.unchanged = nothing_added,
};

TEST_INJECT(add)
{
	self->open.fork = PROFIL_FORK_SHARE;
	set_ranges(self, PAGES);
	for (u32 i = 0; i < PAGES; i++)
		self->ranges[i].buffer = addr(self->buffer) + (i & ~3UL) * PAGE + 8 * i;
	sweep(_metadata, self, &add, each);
	set_ranges(self, RANGES);
	sweep(_metadata, self, &add, each);
}

STEP(add_again, (self->fd < 0 ? open_and_attach(self) : 0) ?: add_ranges(self))
/* Removes all but the first two ranges. */
STEP(remove_most, descriptor_remove(self->fd, PROFIL_SPACE_SELF, self->ranges[2].start, ~0ULL))
STEP(remove_rest, remove_self(self) == 2 ? 0 : -EPROTO)
STEP(nothing_removed, goes_on(self->fd) && remove_self(self) == (int)self->start.nr_ranges)

static const struct op remove_op = {
	.before = add_again,
	.call = remove_most,
	.after = remove_rest,
	.unchanged = nothing_removed,
};

TEST_SWEEP(remove, &remove_op,
	   self->open.fork = PROFIL_FORK_SHARE;
	   set_ranges(self, PAGES))

static u32 state_now(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) || !accounted(&s) ? ~0U : s.state;
}

STEP(switched_off, open_and_attach(self) ?: descriptor_disable(self->fd, NULL))
STEP(call_enable, descriptor_enable(self->fd))
STEP(still_off, state_now(self->fd) == PROFIL_STATE_OFF)

static const struct op enable = {
	.before = switched_off,
	.call = call_enable,
	.unchanged = still_off,
	.error = -EBUSY,
};

TEST_INJECT(enable)
{
	sweep(_metadata, self, &enable, each);
	self->open.period = PERIOD;
	sweep(_metadata, self, &enable, each);
}

STEP(open_and_add, open_and_attach(self) ?: add_ranges(self))
STEP(call_disable, descriptor_disable(self->fd, &(struct profil_stats){}))
/* The session may be on or off: DISABLE also fails if it cannot write its results. */
STEP(is_whole, state_now(self->fd) == PROFIL_STATE_ON || still_off(self))
STEP(must_be_off, still_off(self) ? 0 : -ENODEV)

static const struct op disable = {
	.before = open_and_add,
	.call = call_disable,
	.after = must_be_off,
	.unchanged = is_whole,
};

TEST_SWEEP(disable, &disable, set_ranges(self, PAGES))

/* Lets the counters become nonzero, and removes the pages to which the snapshot is copied. */
static int snapshot_due(FIXTURE_DATA(inject) *self)
{
	if (self->fd < 0 && (open_and_attach(self) ||
			     descriptor_add(self->fd, PROFIL_SPACE_SELF, &self->range, 1)))
		return -EINVAL;
	return fresh_buffer(self) ?: descriptor_burn(self->fd, 0, 1) ? 0 : -ETIME;
}

static int call_snapshot(FIXTURE_DATA(inject) *self)
{
	struct profil_copy copies[] = {
		{ addr(self->counters) + PAGE, addr(self->buffer), 8 },
		/* A range that no tick hits. */
		{ addr(self->buffer) + PAGE, addr(self->buffer) + 3 * PAGE, PAGE },
	};
	struct profil_stats s;

	return descriptor_snapshot(self->fd, PROFIL_SNAPSHOT_RESET, copies, ARRAY_SIZE(copies),
				   &s);
}

/* Returns true if the counter agrees with the statistics: both were reset, or neither. */
static int is_not_half_reset(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	if (!goes_on(self->fd) || descriptor_disable(self->fd, &s))
		return false;
	return s.hit == self->counters[PAGE / 8] && !descriptor_enable(self->fd);
}

STEP(check_reset, is_not_half_reset(self) ? 0 : -EPROTO)

static const struct op snapshot = {
	.before = snapshot_due,
	.call = call_snapshot,
	.after = check_reset,
	.unchanged = is_not_half_reset,
};

TEST_SWEEP(snapshot, &snapshot)

/* Makes records, which the session has because it has no ranges. */
static int make_records(FIXTURE_DATA(inject) *self)
{
	if (self->fd < 0 && open_and_attach(self))
		return -EINVAL;
	return descriptor_burn(self->fd, 0, 2) ? descriptor_disable(self->fd, NULL) : -ETIME;
}

/* Returns the number of bytes, or a negative errno. */
static int read_records(FIXTURE_DATA(inject) *self)
{
	ssize_t n = read(self->fd, self->buffer, PAGES * PAGE);

	return n < 0 ? -errno : n;
}

static int records_are_there(FIXTURE_DATA(inject) *self)
{
	struct pollfd pfd = { self->fd, POLLIN, 0 };

	return poll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN && read_records(self) > 0 &&
	       !descriptor_enable(self->fd);
}

static const struct op read_op = {
	.before = make_records,
	.call = read_records,
	.after = call_enable,
	.unchanged = records_are_there,
};

TEST_SWEEP(read_of_records, &read_op, self->open.nr_records = 4096)

static int poll_fds(FIXTURE_DATA(inject) *self)
{
	struct pollfd pfds[] = { { self->fd, POLLIN, 0 }, { self->bystander, POLLIN, 0 } };

	return poll(pfds, ARRAY_SIZE(pfds), 0) < 0 ? -errno : 0;
}

static const struct op poll_op = { .call = poll_fds };

TEST_SWEEP(poll, &poll_op,
	   self->open.nr_records = 16;
	   ASSERT_EQ(0, open_and_attach(self)))

/*
 * Processes and threads
 */

/* Kinds of sessions: the bits tell which of them a child has. */
enum { CLASSIC, SHARE, KINDS };

static int share = -1;

static u64 unfollowed(unsigned int kind)
{
	struct profil_stats s;
	int err = kind == CLASSIC ? session_stats(PROFIL_SCOPE_PROCESS, &s) :
		  descriptor_stats(share, &s);

	return err || s.state != PROFIL_STATE_ON || !accounted(&s) ? ~0ULL : s.unfollowed;
}

/* In the child: returns a bit for each session that it has inherited. */
static int kinds_that_came(void)
{
	int bits = 0, err;
	struct profil_stats s;

	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &s) && accounted(&s));
	MUST(s.state == PROFIL_STATE_ON || s.state == PROFIL_STATE_OFF);
	if (s.state == PROFIL_STATE_ON)
		bits |= 2 << CLASSIC;
	err = descriptor_attach(share, PROFIL_SCOPE_PROCESS, 0, NULL);
	MUST(!err || err == -EBUSY);
	if (err)
		bits |= 2 << SHARE;
	return bits;
}

static int open_kinds(FIXTURE_DATA(inject) *self)
{
	share = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW, 0);
	return descriptor_begin(share, PROFIL_SCOPE_PROCESS, &self->range, 1) ?:
	       session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1);
}

static int close_kinds(void)
{
	close(share);
	return session_stop(PROFIL_SCOPE_PROCESS, NULL);
}

/* The child inherits each session, or the parent's session counts an unfollowed fork. */
TEST_INJECT(fork)
{
	unsigned int n, missing = 0, forks = 0;
	u64 before[KINDS];
	bool failed = true;
	pid_t pid;
	int bits;

	ASSERT_EQ(0, open_kinds(self));
	for (n = 1; failed; n++) {
		for (unsigned int i = 0; i < KINDS; i++)
			before[i] = unfollowed(i);
		fail_after(self->nth, n);
		pid = fork();
		if (!pid)
			_exit(kinds_that_came());
		failed = has_failed(self->nth);
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
	int nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	fail_after(nth, n);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* Returns true if an allocation of the child @pid has failed. The child is stopped after exec. */
static bool has_failed_in(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	return !file_number(path, "");
}

/*
 * The child is a target of the SHARE session. It is stopped before the new program runs. Some
 * failures kill it, because it has lost its old program already.
 */
TEST_INJECT(exec)
{
	unsigned int sweeps, n = 0, missing = 0, execs = 0, ended = 0;
	struct profil_stats s;
	bool failed;
	u64 before;
	int status;
	pid_t pid;

	ASSERT_EQ(0, open_kinds(self));
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
			failed = has_failed_in(pid);
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

TEST_INJECT(new_thread)
{
	pthread_t thread;
	bool failed = true;
	int err;

	ASSERT_EQ(0, open_kinds(self));
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &self->range, 1));
	for (unsigned int n = 1; failed; n++) {
		fail_after(self->nth, n);
		err = pthread_create(&thread, NULL, burn_once, NULL);
		failed = has_failed(self->nth);
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
static void count_loops_only(FIXTURE_DATA(inject) *self)
{
	self->range = range_of_loops(self->counters + PAGE / sizeof(u64), 8);
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

struct setup {
	bool by_ioctl;
	bool discard;		/* discard the buffer's page, which the set-up then faults in */
	unsigned int n;		/* the number of the allocation that fails */
	struct progress {	/* in shared memory */
		atomic_bool ready;	/* the child waits for ticks */
		atomic_bool enough;	/* it has had enough */
	} *progress;
};

/*
 * In the child: makes the n-th allocation fail until its session is set up. It waits for task work
 * without system calls and page faults, since these would count as allocations.
 */
static int session_after_failure(const struct setup *setup, const volatile u64 *counter)
{
	int nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC), err = 0;
	bool set_up_by_task_work, failed;
	struct profil_stats s;
	u64 before;

	MUST(nth >= 0);
	if (setup->discard)
		MUST(!madvise((void *)counter, PAGE, MADV_DONTNEED));
	before = *counter;
	/* Makes the code and the data of the loop present. */
	loop_run(0, 1);
	setup->progress->ready = true;
	fail_after(nth, setup->n);
	if (*counter != before)
		return EARLY;
	if (setup->by_ioctl)
		err = session_stats(PROFIL_SCOPE_PROCESS, &s);
	while (!setup->by_ioctl && !setup->progress->enough)
		loop_run(0, LOOP_BURST);
	set_up_by_task_work = *counter != before;
	failed = has_failed(nth);
	MUST(!err || (failed && (err == -ENOMEM || err == -EFAULT)));

	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &s));
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

static int status_of_setup(FIXTURE_DATA(inject) *self, const struct setup *setup)
{
	const volatile u64 *counter = self->counters + PAGE / sizeof(u64);
	pid_t child;
	u64 begun;

	*setup->progress = (struct progress){};
	child = FORK(prctl(PR_SET_PDEATHSIG, SIGKILL);
		     _exit(session_after_failure(setup, counter)));
	if (!setup->by_ioctl) {
		await(setup->progress->ready || task_state(child) == 'Z');
		begun = task_ns(child);
		await(task_ns(child) >= begun + SETUP_TICKS * self->tick_ns ||
		      task_state(child) == 'Z');
		setup->progress->enough = true;
	}
	return status_of(child);
}

/* Makes the 1st, 2nd ... allocation fail, until the set-up has no more allocations. */
static void sweep_setup(struct __test_metadata *_metadata, FIXTURE_DATA(inject) *self,
			struct setup *setup)
{
	unsigned int times[STATUSES] = {};

	setup->progress = map_shared(PAGE);
	count_loops_only(self);
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	for (setup->n = 1; !times[NO_FAILURE];) {
		int status = status_of_setup(self, setup);

		ASSERT_TRUE(status >= EARLY && status < STATUSES) {
			TH_LOG("%u: the child exited with %d", setup->n, status);
		}
		times[status]++;
		setup->n += status != EARLY;
		ASSERT_EQ(0U, unfollowed(CLASSIC));
	}
	TH_LOG("%u sessions on after a failure, %u after ENOMEM, %u ended; %u children too late",
	       times[ON_AFTER_FAILURE], times[ON_AFTER_ENOMEM], times[ENDED_NOMEM], times[EARLY]);
	EXPECT_LT(0U, times[ENDED_NOMEM]);
	EXPECT_LT(0U, times[setup->by_ioctl ? ON_AFTER_ENOMEM : ON_AFTER_FAILURE]);
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
	munmap(setup->progress, PAGE);
}

TEST_INJECT(setup_of_an_inherited_session_by_task_work)
{
	sweep_setup(_metadata, self, &(struct setup){});
	sweep_setup(_metadata, self, &(struct setup){ .discard = true });
}

TEST_INJECT(setup_of_an_inherited_session_by_an_ioctl)
{
	sweep_setup(_metadata, self, &(struct setup){ .by_ioctl = true });
	sweep_setup(_metadata, self, &(struct setup){ .by_ioctl = true, .discard = true });
}

/* A child whose allocations fail at random until it gets a byte. */
struct unlucky {
	pid_t pid;
	int go[2];
	volatile char *page;	/* a page of the buffer to discard; or NULL */
};

static int session_when_told(const struct unlucky *one)
{
	struct profil_stats s;
	char c;

	if (one->page)
		madvise((void *)one->page, PAGE, MADV_DONTNEED);
	MUST(!fcntl(one->go[0], F_SETFL, O_NONBLOCK));
	MUST(!file_write("/proc/self/make-it-fail", "1"));
	while (read(one->go[0], &c, 1) != 1)
		loop_run(0, LOOP_BURST);
	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &s));
	MUST(accounted(&s));
	if (s.state == PROFIL_STATE_ON)
		return NO_FAILURE;
	MUST(s.state == PROFIL_STATE_ENDED && s.end == PROFIL_END_NOMEM);
	return ENDED_NOMEM;
}

static void fork_unlucky(struct unlucky *one)
{
	MUST(!pipe(one->go));
	one->pid = FORK(prctl(PR_SET_PDEATHSIG, SIGKILL); _exit(session_when_told(one)));
}

/* Returns the exit status of the child, whose allocations succeed from now on. */
static int tell(const struct unlucky *one)
{
	char path[64];
	bool told;

	snprintf(path, sizeof(path), "/proc/%d/make-it-fail", one->pid);
	file_write(path, "0");
	told = write(one->go[1], "", 1) == 1;
	close(one->go[0]);
	close(one->go[1]);
	return told ? status_of(one->pid) : -1;
}

TEST_INJECT(setup_of_inherited_sessions_at_random_while_children_are_killed)
{
	struct unlucky children[20] = {};
	unsigned int on = 0, ended = 0;
	int status;

	count_loops_only(self);
	ASSERT_EQ(0, open_kinds(self));
	ASSERT_EQ(0, fail_at_random("15"));
	for (unsigned int i = 0; i < 100 + ARRAY_SIZE(children); i++) {
		struct unlucky *one = &children[i % ARRAY_SIZE(children)];

		if (one->pid) {
			status = tell(one);
			on += status == NO_FAILURE;
			ended += status == ENDED_NOMEM;
		}
		if (i >= 100)
			continue;
		one->page = i % 3 ? NULL : (char *)self->counters + PAGE;
		fork_unlucky(one);
		if (i % 5 == 0)
			kill(one->pid, SIGKILL);
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
