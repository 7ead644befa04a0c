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

/* Kernels with fault injection are slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define PAGES		16UL
#define RANGES		600U
#define DEBUGFS		"/sys/kernel/debug/"
#define FAIL_NTH	"/proc/thread-self/fail-nth"

/* Resources of the kernel that this process uses. A failure must not change them. */
struct usage {
	u64 locked;
	long long users;
	long long pins;
	int descriptor;		/* the number that the next descriptor gets */
};

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

static struct usage usage(void)
{
	return (struct usage) {
		.locked = pinned_bytes(),
		.users = module_users(),
		.pins = pinned_pages(),
		.descriptor = next_descriptor(),
	};
}

static bool same(const struct usage *before)
{
	struct usage now = usage();

	return now.locked == before->locked && now.users == before->users &&
	       now.pins == before->pins && now.descriptor == before->descriptor;
}

/* No stack dumps. With probability 0, only fail-nth makes allocations fail. */
static const char *const settings[][2] = {
	{ DEBUGFS "failslab/verbose", "0" },
	{ DEBUGFS "failslab/probability", "0" },
	{ DEBUGFS "failslab/ignore-gfp-wait", "N" },
	{ DEBUGFS "fail_page_alloc/verbose", "0" },
	{ DEBUGFS "fail_page_alloc/probability", "0" },
	{ DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N" },
	{ DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N" },
	{ DEBUGFS "fail_page_alloc/min-order", "0" },
	{ DEBUGFS "fail_usercopy/verbose", "0" },
	{ DEBUGFS "fail_usercopy/probability", "0" },
};

static int set_up(void)
{
	int err;

	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
		err = file_write(settings[i][0], settings[i][1]);
		if (err && !(err == -ENOENT && strstr(settings[i][0], "usercopy")))
			return err;
	}
	return 0;
}

/* Lets allocations fail at random, with @probability %, in tasks whose make-it-fail is 1. */
static bool fail_at_random(const char *probability)
{
	return !file_write(DEBUGFS "failslab/task-filter", "Y") &&
	       !file_write(DEBUGFS "failslab/times", "-1") &&
	       !file_write(DEBUGFS "failslab/probability", probability) &&
	       !file_write(DEBUGFS "fail_page_alloc/task-filter", "Y") &&
	       !file_write(DEBUGFS "fail_page_alloc/times", "-1") &&
	       !file_write(DEBUGFS "fail_page_alloc/probability", probability);
}

static bool no_more_failures(void)
{
	return !set_up() &&
	       !file_write(DEBUGFS "failslab/task-filter", "N") &&
	       !file_write(DEBUGFS "fail_page_alloc/task-filter", "N");
}

static int bystander_open(const struct profil_range *range)
{
	int fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);

	if (fd < 0 || descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL) ||
	    descriptor_add(fd, PROFIL_SPACE_SELF, range, 1) || descriptor_enable(fd))
		return -1;
	return fd;
}

FIXTURE_SETUP(inject)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	self->tick_ns = q.tick_ns;
	self->nth = -1;
	self->fd = -1;
	self->bystander = -1;
	if (access(FAIL_NTH, W_OK) || access(DEBUGFS "failslab", R_OK))
		SKIP(return, "needs root, and a kernel with FAULT_INJECTION and FAILSLAB");
	ASSERT_EQ(0, set_up());
	self->buffer = map_private(PAGES * PAGE);
	self->counters = map_new(2 * PAGE, MAP_PRIVATE | MAP_POPULATE);
	self->ranges = calloc(RANGES, sizeof(*self->ranges));
	ASSERT_NE(NULL, self->ranges);
	/* Workers may still free resources that earlier tests left when they exited. */
	await(module_users() <= 1);
	self->range = range_all(self->counters, 1, 8);
	self->bystander = bystander_open(&self->range);
	ASSERT_LE(0, self->bystander);
	self->range.buffer = addr(self->counters) + PAGE;
	self->nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->nth);
	self->start = (struct profil_start) {
		.size = sizeof(self->start),
		.modes = MODES_ALL,
		.ranges = addr(self->ranges),
	};
	self->before = usage();
}

#define NEEDS_INJECTION() do {	\
	if (self->nth < 0)	\
		return;		\
} while (0)

FIXTURE_TEARDOWN(inject)
{
	struct profil_stats s;

	NEEDS_INJECTION();
	no_more_failures();
	if (self->child > 0) {
		kill(self->child, SIGKILL);
		waitpid(self->child, NULL, 0);
	}
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_TRUE(await(same(&self->before))) {
		struct usage now = usage();

		TH_LOG("locked %llu, was %llu", (unsigned long long)now.locked,
		       (unsigned long long)self->before.locked);
		TH_LOG("module's users %lld, were %lld", now.users, self->before.users);
		TH_LOG("pinned pages %lld, were %lld", now.pins, self->before.pins);
		TH_LOG("next descriptor %d, was %d", now.descriptor, self->before.descriptor);
	}
	EXPECT_TRUE(descriptor_burn(self->bystander, 0, 2));
	EXPECT_EQ(0, descriptor_disable(self->bystander, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, self->counters[0]);
	/* A thread that exits loses its mm before its last ticks, which are dropped. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
}

/*
 * A call, and functions that run before and after it. They return 0 or a negative errno; @call can
 * also return a positive number. @before restores the state that the call expects.
 */
struct op {
	int (*before)(FIXTURE_DATA(inject) *self);
	int (*call)(FIXTURE_DATA(inject) *self);
	int (*after)(FIXTURE_DATA(inject) *self);	/* undoes a call that succeeded */
	bool (*unchanged)(FIXTURE_DATA(inject) *self);	/* checks after a call that failed */
	int error;					/* another errno that is allowed */
};

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

static int call_while_failing(FIXTURE_DATA(inject) *self, const struct op *op, unsigned int n,
			      bool *failed)
{
	int err;

	fail_after(self->nth, n);
	err = op->call(self);
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
		if (op->before) {
			ASSERT_EQ(0, op->before(self));
		}
		locked = pinned_bytes();
		err = call_while_failing(self, op, n, &failed);
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
			TH_LOG("%u: error %d: locked %llu, was %llu", n, err,
			       (unsigned long long)pinned_bytes(), (unsigned long long)locked);
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

static int call_query(FIXTURE_DATA(inject) *self)
{
	struct profil_query q;

	(void)self;
	return device_query(&q);
}

TEST_F(inject, query)
{
	NEEDS_INJECTION();
	sweep(_metadata, self, &(struct op){ .call = call_query }, each);
}

/* Maps the buffer anew, without pages. */
static int fresh_buffer(FIXTURE_DATA(inject) *self)
{
	return mmap(self->buffer, PAGES * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != self->buffer ||
	       madvise(self->buffer, PAGES * PAGE, MADV_NOHUGEPAGE);
}

static int call_start(FIXTURE_DATA(inject) *self)
{
	return device_ioctl(PROFIL_IOC_START, &self->start);
}

static int stop_it(FIXTURE_DATA(inject) *self)
{
	return session_stop(self->start.scope, NULL);
}

static bool is_off_still(FIXTURE_DATA(inject) *self)
{
	return is_off(self->start.scope);
}

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

TEST_F(inject, start)
{
	NEEDS_INJECTION();
	set_ranges(self, 1);
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_of_a_thread)
{
	NEEDS_INJECTION();
	set_ranges(self, 1);
	self->start.scope = PROFIL_SCOPE_THREAD;
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_without_ranges)
{
	NEEDS_INJECTION();
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_with_unpopulated_pages)
{
	NEEDS_INJECTION();
	self->ranges[0] = range_all(self->buffer, PAGES * PAGE / 8, 8);
	self->start.nr_ranges = 1;
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_with_many_ranges)
{
	NEEDS_INJECTION();
	set_ranges(self, RANGES);
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_with_scattered_buffers)
{
	NEEDS_INJECTION();
	set_ranges(self, PAGES / 2);
	for (u32 i = 0; i < PAGES / 2; i++)
		self->ranges[i].buffer = addr(self->buffer) + 2 * i * PAGE;
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_with_the_largest_number_of_ranges)
{
	struct profil_query q;
	u32 nr;

	NEEDS_INJECTION();
	ASSERT_EQ(0, device_query(&q));
	nr = q.max_ranges;
	self->ranges = realloc(self->ranges, nr * sizeof(*self->ranges));
	ASSERT_NE(NULL, self->ranges);
	self->start.ranges = addr(self->ranges);
	set_ranges(self, nr);
	sweep(_metadata, self, &start, some);
}

TEST_F(inject, start_with_a_period)
{
	NEEDS_INJECTION();
	set_ranges(self, 1);
	self->start.period = 10000000;
	sweep(_metadata, self, &start, each);
}

TEST_F(inject, start_that_records_pcs)
{
	NEEDS_INJECTION();
	self->ranges[0] = range_of(0, ~0ULL, self->buffer, PAGE / 8, 8);
	self->ranges[0].offset = 0;
	self->ranges[0].flags = PROFIL_RANGE_PCS;
	self->start.nr_ranges = 1;
	self->start.modes = PROFIL_MODE_USER;
	sweep(_metadata, self, &start, each);
}

/* Starts the session that the call replaces. */
static int start_old(FIXTURE_DATA(inject) *self)
{
	return fresh_buffer(self) ?:
	       session_start(self->start.scope, PROFIL_START_REPLACE, &self->range, 1);
}

static bool is_on_still(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	return !session_stats(self->start.scope, &s) && s.state == PROFIL_STATE_ON &&
	       accounted(&s);
}

static const struct op replace = {
	.before = start_old,
	.call = call_start,
	.unchanged = is_on_still,
	.error = -EBUSY,
};

static void sweep_replace(struct __test_metadata *_metadata, FIXTURE_DATA(inject) *self)
{
	self->start.flags = PROFIL_START_REPLACE;
	sweep(_metadata, self, &replace, each);
	EXPECT_TRUE(loop_burn(self->start.scope, 0, 2));
}

TEST_F(inject, replacement)
{
	NEEDS_INJECTION();
	set_ranges(self, PAGES);
	sweep_replace(_metadata, self);
}

TEST_F(inject, replacement_of_a_threads_session)
{
	NEEDS_INJECTION();
	set_ranges(self, PAGES);
	self->start.scope = PROFIL_SCOPE_THREAD;
	sweep_replace(_metadata, self);
}

TEST_F(inject, replacement_by_a_session_with_a_period)
{
	NEEDS_INJECTION();
	set_ranges(self, 1);
	self->start.period = 10000000;
	sweep_replace(_metadata, self);
}

/* Removes the hook, so that the call installs it. */

static bool hook_gone(void)
{
	struct profil_query q;

	return !device_query(&q) && q.hook == PROFIL_HOOK_NONE;
}

static int no_hook(FIXTURE_DATA(inject) *self)
{
	return fresh_buffer(self) ?: await(hook_gone()) ? 0 : -ETIME;
}

static bool nothing_hooked(FIXTURE_DATA(inject) *self)
{
	struct profil_query q;

	return is_off_still(self) && !device_query(&q);
}

TEST_F(inject, start_when_the_tick_is_not_hooked)
{
	struct op unhooked = start;
	struct profil_stats s;
	char linger[32];

	NEEDS_INJECTION();
	ASSERT_EQ(0, file_exchange(LINGER_S, "0", linger, sizeof(linger)));
	ASSERT_EQ(0, descriptor_disable(self->bystander, &s));
	unhooked.before = no_hook;
	unhooked.unchanged = nothing_hooked;
	set_ranges(self, 1);
	for (unsigned int n = 1, failed = true; failed; n = some(n)) {
		bool fired;
		int err;

		ASSERT_EQ(0, no_hook(self));
		err = call_while_failing(self, &unhooked, n, &fired);
		failed = fired;
		if (err) {
			ASSERT_TRUE(fired);
			ASSERT_TRUE(err == -ENOMEM || err == -EFAULT || err == -EBUSY);
			ASSERT_TRUE(nothing_hooked(self));
			continue;
		}
		ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		ASSERT_EQ(0, stop_it(self));
	}
	ASSERT_EQ(0, descriptor_enable(self->bystander));
	ASSERT_EQ(0, file_write(LINGER_S, linger));
}

static int start_many(FIXTURE_DATA(inject) *self)
{
	return fresh_buffer(self) ?:
	       session_start(PROFIL_SCOPE_PROCESS, PROFIL_START_REPLACE, self->ranges,
			     self->start.nr_ranges);
}

static int call_stats(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	return session_stats(self->start.scope, &s);
}

static int must_be_on(FIXTURE_DATA(inject) *self)
{
	return is_on_still(self) ? 0 : -ENODEV;
}

TEST_F(inject, stats)
{
	NEEDS_INJECTION();
	set_ranges(self, PAGES);
	sweep(_metadata, self, &(struct op){
		.before = start_many,
		.call = call_stats,
		.after = must_be_on,
		.unchanged = is_on_still,
	}, each);
}

static int start_new(FIXTURE_DATA(inject) *self)
{
	session_stop(self->start.scope, NULL);
	return fresh_buffer(self) ?: call_start(self);
}

static int call_stop(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	return session_stop(self->start.scope, &s);
}

/* STOP may also fail because it cannot write the statistics of the session that it has stopped. */
TEST_F(inject, stop)
{
	NEEDS_INJECTION();
	set_ranges(self, PAGES);
	for (unsigned int n = 1, failed = true; failed; n++) {
		bool fired;
		int err;

		ASSERT_EQ(0, start_new(self));
		err = call_while_failing(self, &(struct op){ .call = call_stop }, n, &fired);
		failed = fired;
		ASSERT_TRUE(!err || (fired && err == -EFAULT));
		ASSERT_TRUE(is_on_still(self) || is_off_still(self));
		ASSERT_TRUE(err || is_off_still(self));
		ASSERT_TRUE(goes_on(self->bystander));
	}
}

static int call_describe(FIXTURE_DATA(inject) *self)
{
	self->described = (struct profil_describe) {
		.size = sizeof(self->described),
		.pid = self->child,
		.nr_ranges = PAGES,
		.ranges = addr(self->ranges),
	};
	return device_ioctl(PROFIL_IOC_DESCRIBE, &self->described);
}

TEST_F(inject, describe)
{
	NEEDS_INJECTION();
	self->range.nr_counters = PAGE / 8;
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	sweep(_metadata, self, &(struct op){
		.before = fresh_buffer,
		.call = call_describe,
		.unchanged = is_on_still,
	}, each);
	EXPECT_EQ(1U, self->described.nr_ranges);
}

/*
 * Sessions with a descriptor
 */

static int call_open(FIXTURE_DATA(inject) *self)
{
	self->fd = descriptor_open_as(self->open);
	return self->fd;
}

static int close_it(FIXTURE_DATA(inject) *self)
{
	int err = close(self->fd);

	self->fd = -1;
	return err;
}

TEST_F(inject, open)
{
	NEEDS_INJECTION();
	self->open = (struct profil_open) { .modes = MODES_ALL, .nr_records = 4096 };
	sweep(_metadata, self, &(struct op){ .call = call_open, .after = close_it }, each);
}

TEST_F(inject, open_without_records)
{
	NEEDS_INJECTION();
	self->open = (struct profil_open) { .modes = MODES_ALL, .period = 10000000 };
	sweep(_metadata, self, &(struct op){ .call = call_open, .after = close_it }, each);
}

static int open_new(FIXTURE_DATA(inject) *self)
{
	if (self->fd >= 0)
		close(self->fd);
	self->fd = descriptor_open_as(self->open);
	return self->fd < 0 ? self->fd : 0;
}

static void set_open(FIXTURE_DATA(inject) *self, u32 on_fork, u32 on_exec, u32 nr_records)
{
	self->open = (struct profil_open) {
		.modes = MODES_ALL,
		.fork = on_fork,
		.exec = on_exec,
		.nr_records = nr_records,
	};
}

static u64 targets_of(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) ? ~0ULL : s.targets;
}

static bool has_no_targets(FIXTURE_DATA(inject) *self)
{
	return !targets_of(self->fd);
}

static int attach_self(FIXTURE_DATA(inject) *self)
{
	return descriptor_attach(self->fd, PROFIL_SCOPE_PROCESS, 0, NULL);
}

static int attach_thread(FIXTURE_DATA(inject) *self)
{
	return descriptor_attach(self->fd, PROFIL_SCOPE_THREAD, 0, NULL);
}

static int attach_child(FIXTURE_DATA(inject) *self)
{
	return descriptor_attach(self->fd, PROFIL_SCOPE_PROCESS, self->child, NULL);
}

static const struct op attach = {
	.before = open_new,
	.call = attach_self,
	.unchanged = has_no_targets,
};

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

TEST_F(inject, attach)
{
	struct op op = attach;

	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	sweep(_metadata, self, &op, each);
	op.call = attach_thread;
	sweep(_metadata, self, &op, each);
	op.call = attach_child;
	self->child = sleeper();
	ASSERT_LT(0, self->child);
	sweep(_metadata, self, &op, each);
}

/* Opens a session that is on, with the caller as its target. */
static int open_and_attach(FIXTURE_DATA(inject) *self)
{
	return open_new(self) ?: attach_self(self) ?: descriptor_enable(self->fd) ?:
	       fresh_buffer(self);
}

static int add_ranges(FIXTURE_DATA(inject) *self)
{
	return descriptor_add(self->fd, PROFIL_SPACE_SELF, self->ranges, self->start.nr_ranges);
}

static int remove_self(FIXTURE_DATA(inject) *self)
{
	return descriptor_remove(self->fd, PROFIL_SPACE_SELF, 0, ~0ULL);
}

/* Returns true if the session is on, and has no ranges. */
static bool nothing_added(FIXTURE_DATA(inject) *self)
{
	return goes_on(self->fd) && !remove_self(self);
}

TEST_F(inject, add)
{
	const struct op op = {
		.before = open_and_attach,
		.call = add_ranges,
		.unchanged = nothing_added,
	};

	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	set_ranges(self, PAGES);
	for (u32 i = 0; i < PAGES; i++)
		self->ranges[i].buffer = addr(self->buffer) + (i & ~3UL) * PAGE + 8 * i;
	sweep(_metadata, self, &op, each);
	set_ranges(self, RANGES);
	sweep(_metadata, self, &op, each);
}

static int add_again(FIXTURE_DATA(inject) *self)
{
	return (self->fd < 0 ? open_and_attach(self) : 0) ?: add_ranges(self);
}

/* Removes all but the first two ranges. */
static int remove_most(FIXTURE_DATA(inject) *self)
{
	return descriptor_remove(self->fd, PROFIL_SPACE_SELF, self->ranges[2].start, ~0ULL);
}

static int remove_rest(FIXTURE_DATA(inject) *self)
{
	return remove_self(self) == 2 ? 0 : -EPROTO;
}

static bool nothing_removed(FIXTURE_DATA(inject) *self)
{
	return goes_on(self->fd) && remove_self(self) == (int)self->start.nr_ranges;
}

TEST_F(inject, remove)
{
	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	set_ranges(self, PAGES);
	sweep(_metadata, self, &(struct op){
		.before = add_again,
		.call = remove_most,
		.after = remove_rest,
		.unchanged = nothing_removed,
	}, each);
}

static int switched_off(FIXTURE_DATA(inject) *self)
{
	return open_and_attach(self) ?: descriptor_disable(self->fd, NULL);
}

static int call_enable(FIXTURE_DATA(inject) *self)
{
	return descriptor_enable(self->fd);
}

static u32 state_now(int fd)
{
	struct profil_stats s;

	return descriptor_stats(fd, &s) || !accounted(&s) ? ~0U : s.state;
}

static bool still_off(FIXTURE_DATA(inject) *self)
{
	return state_now(self->fd) == PROFIL_STATE_OFF;
}

TEST_F(inject, enable)
{
	const struct op op = {
		.before = switched_off,
		.call = call_enable,
		.unchanged = still_off,
		.error = -EBUSY,
	};

	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	sweep(_metadata, self, &op, each);
	self->open.period = 10000000;
	sweep(_metadata, self, &op, each);
}

static int open_and_add(FIXTURE_DATA(inject) *self)
{
	return open_and_attach(self) ?: add_ranges(self);
}

static int call_disable(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	return descriptor_disable(self->fd, &s);
}

/* The session may be on or off: DISABLE also fails if it cannot write its results. */
static bool is_whole(FIXTURE_DATA(inject) *self)
{
	u32 state = state_now(self->fd);

	return state == PROFIL_STATE_ON || state == PROFIL_STATE_OFF;
}

static int must_be_off(FIXTURE_DATA(inject) *self)
{
	return still_off(self) ? 0 : -ENODEV;
}

TEST_F(inject, disable)
{
	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	set_ranges(self, PAGES);
	sweep(_metadata, self, &(struct op){
		.before = open_and_add,
		.call = call_disable,
		.after = must_be_off,
		.unchanged = is_whole,
	}, each);
}

/* Lets the counters become nonzero, and removes the pages to which the snapshot is copied. */
static int snapshot_due(FIXTURE_DATA(inject) *self)
{
	if (self->fd < 0 && (open_and_attach(self) ||
			     descriptor_add(self->fd, PROFIL_SPACE_SELF, &self->range, 1)))
		return -EINVAL;
	self->range.buffer = addr(self->counters) + PAGE;
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

/*
 * Returns true if the counter agrees with the statistics: both were reset, or neither.
 */
static bool is_not_half_reset(FIXTURE_DATA(inject) *self)
{
	struct profil_stats s;

	if (!goes_on(self->fd) || descriptor_disable(self->fd, &s))
		return false;
	return s.hit == self->counters[PAGE / 8] && !descriptor_enable(self->fd);
}

static int check_reset(FIXTURE_DATA(inject) *self)
{
	return is_not_half_reset(self) ? 0 : -EPROTO;
}

TEST_F(inject, snapshot)
{
	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	sweep(_metadata, self, &(struct op){
		.before = snapshot_due,
		.call = call_snapshot,
		.after = check_reset,
		.unchanged = is_not_half_reset,
	}, each);
}

/* Records, which the session has because it has no ranges */

static struct profil_stats recorded;

static int make_records(FIXTURE_DATA(inject) *self)
{
	if (self->fd < 0 && open_and_attach(self))
		return -EINVAL;
	if (!descriptor_burn(self->fd, 0, 2))
		return -ETIME;
	return descriptor_disable(self->fd, &recorded);
}

/* Returns the number of bytes, or a negative errno. */
static int read_records(FIXTURE_DATA(inject) *self)
{
	ssize_t n = read(self->fd, self->buffer, PAGES * PAGE);

	return n < 0 ? -errno : n;
}

static int check_records(FIXTURE_DATA(inject) *self)
{
	return descriptor_enable(self->fd);
}

static bool records_are_there(FIXTURE_DATA(inject) *self)
{
	struct pollfd pfd = { self->fd, POLLIN, 0 };

	return poll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN && read_records(self) > 0 &&
	       !descriptor_enable(self->fd);
}

TEST_F(inject, read_of_records)
{
	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 4096);
	sweep(_metadata, self, &(struct op){
		.before = make_records,
		.call = read_records,
		.after = check_records,
		.unchanged = records_are_there,
	}, each);
}

static int poll_fds(FIXTURE_DATA(inject) *self)
{
	struct pollfd pfds[] = { { self->fd, POLLIN, 0 }, { self->bystander, POLLIN, 0 } };

	return poll(pfds, ARRAY_SIZE(pfds), 0) < 0 ? -errno : 0;
}

TEST_F(inject, poll)
{
	NEEDS_INJECTION();
	set_open(self, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 16);
	ASSERT_EQ(0, open_and_attach(self));
	sweep(_metadata, self, &(struct op){ .call = poll_fds }, each);
}

/*
 * Processes and threads
 */

/* Kinds of sessions: the bits tell which of them a child has. */
enum { CLASSIC, SHARE, KINDS };

static int kinds[KINDS] = { -1, -1 };

static u64 unfollowed(unsigned int kind)
{
	struct profil_stats s;
	int err = kind == CLASSIC ? session_stats(PROFIL_SCOPE_PROCESS, &s) :
		  descriptor_stats(kinds[kind], &s);

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
	err = descriptor_attach(kinds[SHARE], PROFIL_SCOPE_PROCESS, 0, NULL);
	MUST(!err || err == -EBUSY);
	if (err)
		bits |= 2 << SHARE;
	return bits;
}

static int open_kinds(FIXTURE_DATA(inject) *self)
{
	int fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW, 0);

	kinds[SHARE] = fd;
	if (fd < 0 || descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL) ||
	    descriptor_add(fd, PROFIL_SPACE_SELF, &self->range, 1) || descriptor_enable(fd))
		return -1;
	return session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1);
}

static int close_kinds(void)
{
	close(kinds[SHARE]);
	return session_stop(PROFIL_SCOPE_PROCESS, NULL);
}

/* The child inherits each session, or the parent's session counts an unfollowed fork. */
TEST_F(inject, fork)
{
	unsigned int n, missing = 0, forks = 0;
	u64 before[KINDS];
	bool failed = true;
	pid_t pid;
	int bits;

	NEEDS_INJECTION();
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
TEST_F(inject, exec)
{
	unsigned int sweeps, n = 0, missing = 0, execs = 0, ended = 0;
	struct profil_stats s;
	bool failed;
	u64 before;
	int status;
	pid_t pid;

	NEEDS_INJECTION();
	ASSERT_EQ(0, open_kinds(self));
	/* The number of allocations varies, so one sweep may skip the few of the module. */
	for (sweeps = 0, failed = false; failed || (!missing && sweeps < 10); n++) {
		if (!failed) {
			sweeps++;
			n = 1;
		}
		before = unfollowed(SHARE);
		pid = fork();
		if (!pid)
			exec_in_child(n);
		ASSERT_LT(0, pid);
		ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
		failed = true;
		if (WIFSTOPPED(status)) {
			failed = has_failed_in(pid);
			ASSERT_EQ(0, descriptor_stats(kinds[SHARE], &s));
			ASSERT_EQ(PROFIL_STATE_ON, (int)s.state);
			if (WSTOPSIG(status) == SIGTRAP) {
				execs++;
				ASSERT_EQ(2 - s.targets, s.unfollowed - before);
				missing += 2 - s.targets;
			}
			kill(pid, SIGKILL);
			ASSERT_EQ(pid, waitpid(pid, &status, 0));
		} else {
			ended++;
		}
		ASSERT_TRUE(await(targets_of(kinds[SHARE]) == 1));
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

	NEEDS_INJECTION();
	ASSERT_EQ(0, open_kinds(self));
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &self->range, 1));
	for (unsigned int n = 1; failed; n++) {
		fail_after(self->nth, n);
		err = pthread_create(&thread, NULL, burn_once, NULL);
		failed = has_failed(self->nth);
		ASSERT_TRUE(failed || !err);
		if (!err) {
			ASSERT_EQ(0, pthread_join(thread, NULL));
		}
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
	u64 begun;
	int status;

	*setup->progress = (struct progress){};
	self->child = fork();
	if (!self->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(session_after_failure(setup, self->counters + PAGE / sizeof(u64)));
	}
	if (self->child < 0)
		return -1;
	if (!setup->by_ioctl) {
		await(setup->progress->ready || task_state(self->child) == 'Z');
		begun = task_ns(self->child);
		await(task_ns(self->child) >= begun + SETUP_TICKS * self->tick_ns ||
		      task_state(self->child) == 'Z');
		setup->progress->enough = true;
	}
	status = status_of(self->child);
	self->child = 0;
	return status;
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

TEST_F(inject, setup_of_an_inherited_session_by_task_work)
{
	NEEDS_INJECTION();
	sweep_setup(_metadata, self, &(struct setup){});
	sweep_setup(_metadata, self, &(struct setup){ .discard = true });
}

TEST_F(inject, setup_of_an_inherited_session_by_an_ioctl)
{
	NEEDS_INJECTION();
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

static bool fork_unlucky(struct unlucky *one)
{
	if (pipe(one->go))
		return false;
	one->pid = fork();
	if (!one->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(session_when_told(one));
	}
	return one->pid > 0;
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

TEST_F(inject, setup_of_inherited_sessions_at_random_while_children_are_killed)
{
	struct unlucky children[20] = {};
	unsigned int on = 0, ended = 0;
	int status;

	NEEDS_INJECTION();
	count_loops_only(self);
	ASSERT_EQ(0, open_kinds(self));
	ASSERT_TRUE(fail_at_random("15"));
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
		ASSERT_TRUE(fork_unlucky(one));
		if (i % 5 == 0)
			kill(one->pid, SIGKILL);
	}
	EXPECT_TRUE(no_more_failures());
	TH_LOG("%u sessions on, %u ended without memory", on, ended);
	EXPECT_EQ(80U, on + ended);
	EXPECT_LT(0U, on);
	EXPECT_LT(0U, ended);
	for (unsigned int i = 0; i < KINDS; i++)
		EXPECT_EQ(0U, unfollowed(i));
	EXPECT_EQ(0, close_kinds());
}

TEST_HARNESS_MAIN
