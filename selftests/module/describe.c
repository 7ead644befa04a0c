// SPDX-License-Identifier: GPL-2.0
/*
 * PROFIL_IOC_DESCRIBE describes the classic session of a process to another process, which reads
 * the counters with process_vm_readv(). It also describes sessions that are on but select no mode.
 */
#include "kselftest_harness.h"

#include <sys/uio.h>

#include "faults.h"
#include "loop.h"
#include "process.h"
#include "threads.h"
#include "users.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
#define MS		1000000U
#define RANGES		3U

static int describe(struct profil_describe *arg, pid_t pid)
{
	arg->size = sizeof(*arg);
	arg->pid = pid;
	return device_ioctl(PROFIL_IOC_DESCRIBE, arg);
}

static int describe_nothing(pid_t pid)
{
	return describe(&(struct profil_describe){}, pid);
}

/* Gets @nr ranges of @pid's session, and its statistics. */
static int describe_all(pid_t pid, struct profil_range *ranges, u32 nr, struct profil_stats *stats)
{
	struct profil_describe arg = {
		.nr_ranges = nr,
		.ranges = addr(ranges),
		.stats = addr(stats),
	};
	int err;

	memset(ranges, 0xa5, nr * sizeof(*ranges));
	*stats = (struct profil_stats){ .size = sizeof(*stats) };
	err = describe(&arg, pid);
	return !err && arg.nr_ranges != nr ? -EPROTO : err;
}

/* Returns the sum of the counters of a range, read from the memory of @pid. */
static u64 sum_of(pid_t pid, const struct profil_range *range)
{
	static u64 counters[64];
	struct iovec local = { counters, range->nr_counters * range->width };
	struct iovec remote = { (void *)(uintptr_t)range->buffer, local.iov_len };

	MUST(local.iov_len <= sizeof(counters));
	MUST(process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)local.iov_len);
	return counters_sum(counters, range->width, range->nr_counters);
}

static u64 sum_of_all(pid_t pid, const struct profil_range *ranges)
{
	u64 sum = 0;

	for (unsigned int i = 0; i < RANGES; i++)
		sum += sum_of(pid, &ranges[i]);
	return sum;
}

/* Counters of 8, 4 and 2 bytes. */
struct counters {
	u64 c8[2];
	u32 c4[LOOPS];
	u16 c2[LOOPS + 1];
};

/* The ranges are in the order of their addresses, not of their buffers. */
static void ranges_of(struct profil_range *ranges, struct counters *c)
{
	ranges[0] = range_of(0x10000, 0x20000, c->c2, LOOPS + 1, 2);
	ranges[0].granule = 4;
	ranges[0].step = 2;
	ranges[0].flags = PROFIL_RANGE_ROUND_UP;
	ranges[1] = range_of_loops(c->c4, 4);
	ranges[2] = range_of(addr(__start_profil_burn), addr(__stop_profil_burn), c->c8, 2, 8);
	ranges[2].scale = 0;
	if (ranges[2].start < ranges[1].start) {
		struct profil_range r = ranges[1];

		ranges[1] = ranges[2];
		ranges[2] = r;
	}
}

/* Starts a session with the same ranges in another order. */
static int start_with(const struct profil_range *ranges)
{
	const struct profil_range disordered[] = { ranges[2], ranges[0], ranges[1] };

	return session_start(SCOPE, 0, disordered, RANGES);
}

FIXTURE(describe) {
	struct counters *counters;
	struct profil_range ranges[RANGES];
	int pipe[2];
	pid_t child;
};

FIXTURE_SETUP(describe)
{
	self->counters = map_private(sizeof(*self->counters));
	ranges_of(self->ranges, self->counters);
	ASSERT_EQ(0, pipe2(self->pipe, O_CLOEXEC));
	self->child = 0;
}

FIXTURE_TEARDOWN(describe)
{
	if (self->child)
		killed(self->child);
	session_stop(SCOPE, NULL);
	close(self->pipe[0]);
	close(self->pipe[1]);
	munmap(self->counters, sizeof(*self->counters));
}

/* Forks a child that executes the arguments, writes a byte to the pipe, and then pauses. */
#define CHILD(...) do {						\
	char byte = 0;							\
									\
	self->child = FORK({						\
		__VA_ARGS__;						\
		MUST(write(self->pipe[1], &byte, 1) == 1);		\
		pause();						\
	});								\
	ASSERT_EQ(1, read(self->pipe[0], &byte, 1));			\
} while (0)

#define EXPECT_SAME_RANGES(found)	\
	EXPECT_EQ(0, memcmp(self->ranges, found, sizeof(self->ranges)))

TEST_F(describe, gives_ranges_and_statistics_of_another_process)
{
	struct profil_range found[RANGES];
	struct profil_stats s;

	CHILD({
		MUST(!start_with(self->ranges));
		MUST(loop_burn(SCOPE, 3, 20));
		MUST(!burn_ticks(SCOPE, 5));
	});
	/* The process is stopped, since the call needs no action of the process. */
	ASSERT_EQ(0, kill(self->child, SIGSTOP));
	ASSERT_EQ(self->child, waitpid(self->child, NULL, WUNTRACED));
	ASSERT_EQ(0, describe_all(self->child, found, RANGES, &s));
	EXPECT_SAME_RANGES(found);
	EXPECT_EQ(PROFIL_STATE_ON, s.state);
	EXPECT_EQ(SCOPE, s.scope);
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(25, s.ticks);
	EXPECT_LE(12, s.hit);
	/* The sum of the counters in its memory equals the hits of the statistics. */
	EXPECT_EQ(s.hit, sum_of_all(self->child, found));
	EXPECT_EQ(0, self->counters->c4[3]);
	/* A second call gives the same result, since the process is stopped. */
	EXPECT_EQ(0, describe_all(self->child, found, RANGES, &s));
	EXPECT_EQ(s.hit, sum_of_all(self->child, found));
}

/*
 * Counters that are read after the statistics include all their hits, while threads continue to
 * count.
 */
TEST_F(describe, gives_no_hits_that_the_counters_do_not_have_yet)
{
	struct profil_stats s, before = {};
	struct profil_range found;
	unsigned int moved = 0;

	CHILD({
		struct profil_range range = range_all(self->counters->c8, 1, 8);

		MUST(!clock_start(SCOPE, 0, MS / 10, &range, 1));
		start_beside(loop_for_ever, 1);
		MUST(write(self->pipe[1], "", 1) == 1);
		loop_for_ever((void *)1);
	});
	for (unsigned int i = 0; i < 300 || (moved < 2 && i < 3000); i++) {
		ASSERT_EQ(0, describe_all(self->child, &found, 1, &s));
		EXPECT_LE(s.hit, sum_of(self->child, &found));
		EXPECT_TRUE(accounted(&s));
		EXPECT_LE(before.ticks, s.ticks);
		moved += s.ticks != before.ticks;
		before = s;
	}
	EXPECT_LE(2, moved);
}

TEST_F(describe, returns_the_number_of_ranges_if_the_array_is_too_small)
{
	struct profil_range found[RANGES + 1], poison[RANGES + 1];
	struct profil_describe arg;
	struct profil_stats s;

	memset(poison, 0x5a, sizeof(poison));
	ASSERT_EQ(0, start_with(self->ranges));
#define TRY(room, address) do {							\
	memset(found, 0x5a, sizeof(found));					\
	s = (struct profil_stats){ .size = sizeof(s) };				\
	arg = (struct profil_describe){						\
		.nr_ranges = room, .ranges = address, .stats = addr(&s),	\
		.period = 77, .taken = 77,					\
	};									\
	EXPECT_EQ(0, describe(&arg, 0));					\
	EXPECT_EQ(RANGES, arg.nr_ranges);					\
	EXPECT_EQ(0, arg.period);						\
	EXPECT_EQ(0, arg.taken);						\
	EXPECT_EQ(PROFIL_STATE_ON, s.state);					\
} while (0)
	TRY(0, 0);
	TRY(UINT32_MAX, 0);
	TRY(0, addr(found));
	EXPECT_EQ(0, memcmp(found, poison, sizeof(found)));
	TRY(RANGES - 1, addr(found));
	EXPECT_EQ(0, memcmp(found, poison, sizeof(found)));
	TRY(RANGES - 1, 8);
	TRY(RANGES, addr(found));
	EXPECT_SAME_RANGES(found);
	EXPECT_EQ(0, memcmp(&found[RANGES], poison, sizeof(found[0])));
	TRY(UINT32_MAX, addr(found));
	EXPECT_SAME_RANGES(found);
	EXPECT_EQ(0, memcmp(&found[RANGES], poison, sizeof(found[0])));
#undef TRY
}

TEST_F(describe, gives_as_many_ranges_as_a_session_can_have)
{
	struct profil_range *given, *found;
	struct profil_query query;
	struct profil_stats s;

	ASSERT_EQ(0, device_query(&query));
	given = map_private(query.max_ranges * sizeof(*given));
	found = map_private(query.max_ranges * sizeof(*found));
	for (u32 i = 0; i < query.max_ranges; i++)
		given[i] = range_of(0x10000 + 16 * i, 0x10008 + 16 * i, self->counters->c8, 2, 8);
	ASSERT_EQ(0, session_start(SCOPE, 0, given, query.max_ranges));
	ASSERT_EQ(0, describe_all(0, found, query.max_ranges, &s));
	EXPECT_EQ(0, memcmp(given, found, query.max_ranges * sizeof(*given)));
}

TEST_F(describe, returns_0_ranges_for_a_session_without_ranges)
{
	struct profil_range range = {};
	struct profil_describe arg = { .nr_ranges = 1, .ranges = addr(&range) };

	ASSERT_EQ(0, session_start(SCOPE, 0, NULL, 0));
	EXPECT_EQ(0, describe(&arg, 0));
	EXPECT_EQ(0, arg.nr_ranges);
	EXPECT_EQ(0, range.end);
}

TEST_F(describe, returns_an_error_for_each_wrong_argument)
{
	struct profil_stats s = { .size = sizeof(s) };
	struct profil_describe arg;

	EXPECT_EQ(-EINVAL, describe_nothing(0));
	EXPECT_EQ(-EINVAL, describe_nothing(getpid()));
	EXPECT_EQ(-EINVAL, describe_nothing(-1));
	EXPECT_EQ(-ESRCH, describe_nothing(INT32_MAX));
	CHILD();
	EXPECT_EQ(-EINVAL, describe_nothing(self->child));
	kill(self->child, SIGKILL);
	/* The killed child is a zombie: it has a pid, but no mm. */
	EXPECT_TRUE(await(describe_nothing(self->child) == -ESRCH));

	/* The session of a thread is not described. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, self->ranges, RANGES));
	EXPECT_EQ(-EINVAL, describe_nothing(0));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, NULL));

	ASSERT_EQ(0, start_with(self->ranges));
	EXPECT_EQ(0, describe_nothing(0));
	EXPECT_EQ(0, describe_nothing(getpid()));
	EXPECT_EQ(-EINVAL, describe_nothing(-1));
	arg = (struct profil_describe){ .flags = 1 };
	EXPECT_EQ(-EOPNOTSUPP, describe(&arg, 0));
	arg = (struct profil_describe){ .nr_ranges = RANGES, .ranges = 8 };
	EXPECT_EQ(-EFAULT, describe(&arg, 0));
	arg = (struct profil_describe){ .stats = 8 };
	EXPECT_EQ(-EFAULT, describe(&arg, 0));
	s.flags = 1;
	arg = (struct profil_describe){ .stats = addr(&s) };
	EXPECT_EQ(-EOPNOTSUPP, describe(&arg, 0));
	s.flags = 0;
	s.__reserved = 1;
	EXPECT_EQ(-EINVAL, describe(&arg, 0));
	s.__reserved = 0;
	s.size = 8;
	EXPECT_EQ(-EINVAL, describe(&arg, 0));
	s.size = 1 << 20;
	EXPECT_EQ(-E2BIG, describe(&arg, 0));
}

/* The child has no copy of the buffer. */
TEST_F(describe, returns_ENODEV_for_a_session_that_has_ended)
{
	ASSERT_EQ(0, start_with(self->ranges));
	ASSERT_EQ(0, madvise(self->counters, sizeof(*self->counters), MADV_DONTFORK));
	CHILD(MUST(state_of(SCOPE) == PROFIL_STATE_ENDED));
	EXPECT_EQ(-ENODEV, describe_nothing(self->child));
	EXPECT_EQ(0, describe_nothing(0));
}

TEST_F(describe, finds_no_session_after_exec)
{
	char byte;

	ASSERT_EQ(0, start_with(self->ranges));
	self->child = FORK(execlp("sleep", "sleep", "1000", NULL));
	close(self->pipe[1]);
	ASSERT_EQ(0, read(self->pipe[0], &byte, 1));
	EXPECT_EQ(-EINVAL, describe_nothing(self->child));
}

/* The inherited session of a child has its own counters. */
TEST_F(describe, finds_the_session_of_a_child)
{
	struct profil_range found[RANGES];
	struct profil_stats s;

	ASSERT_EQ(0, start_with(self->ranges));
	CHILD(MUST(loop_burn(SCOPE, 5, 20)));
	ASSERT_EQ(0, describe_all(self->child, found, RANGES, &s));
	EXPECT_SAME_RANGES(found);
	EXPECT_LE(20, s.ticks);
	EXPECT_EQ(PROFIL_STATE_ON, s.state);
	EXPECT_EQ(s.hit, sum_of_all(self->child, found));
	ASSERT_EQ(0, describe_all(0, found, RANGES, &s));
	EXPECT_SAME_RANGES(found);
	EXPECT_EQ(0, self->counters->c4[5]);
}

/* The child's session may still be pending. */
TEST_F(describe, finds_the_session_of_a_child_that_was_just_forked)
{
	struct profil_range found[RANGES];
	struct profil_stats s;
	pid_t children[20];
	unsigned int i;

	ASSERT_EQ(0, start_with(self->ranges));
	for (i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = FORK(pause());
		EXPECT_EQ(0, describe_all(children[i], found, RANGES, &s));
		EXPECT_SAME_RANGES(found);
		EXPECT_EQ(PROFIL_STATE_ON, s.state);
		EXPECT_TRUE(accounted(&s));
		EXPECT_LE(s.hit, sum_of_all(children[i], found));
	}
	for (i = 0; i < ARRAY_SIZE(children); i++)
		killed(children[i]);
}

/* A session without a mode is described. Replacing it continues its counters. */
TEST_F(describe, describes_a_session_without_a_mode)
{
	struct profil_range range = range_all(self->counters->c8, 1, 8), found;
	struct profil_describe arg = {};
	struct profil_stats s;
	u64 before;

#define START(m, period_) device_ioctl(PROFIL_IOC_START, &(struct profil_start){	\
	.size = sizeof(struct profil_start), .flags = PROFIL_START_REPLACE, .modes = m,	\
	.nr_ranges = 1, .ranges = addr(&range), .period = period_ })
	self->counters->c8[0] = 1000;
	ASSERT_EQ(0, START(0, 0));
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	ASSERT_EQ(0, describe_all(0, &found, 1, &s));
	EXPECT_EQ(1000, sum_of(getpid(), &found));
	EXPECT_EQ(0, s.ticks);
	EXPECT_LE(10, s.unselected);
	EXPECT_EQ(PROFIL_STATE_ON, s.state);

	ASSERT_EQ(0, START(MODES_ALL, MS));
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	ASSERT_EQ(0, describe(&arg, 0));
	EXPECT_EQ(MS, arg.period);
	ASSERT_EQ(0, describe_all(0, &found, 1, &s));
	EXPECT_LE(10, s.hit);
	EXPECT_LE(1000 + s.hit, sum_of(getpid(), &found));

	ASSERT_EQ(0, START(0, 0));
	before = self->counters->c8[0];
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	ASSERT_EQ(0, describe_all(0, &found, 1, &s));
	EXPECT_EQ(0, s.hit);
	EXPECT_EQ(before, sum_of(getpid(), &found));
#undef START
}

/* Returns the result of DESCRIBE of @pid, called by a process of user @id. */
static int describe_as_user(uid_t id, pid_t pid)
{
	return -status_in_child((become_user(id), -describe_nothing(pid)));
}

TEST_F(describe, is_allowed_to_the_same_user_and_root)
{
	NEED_ROOT("to become other users");
	CHILD({
		become_user(1000);
		MUST(!start_with(self->ranges));
	});
	EXPECT_EQ(0, describe_as_user(1000, self->child));
	EXPECT_EQ(-EPERM, describe_as_user(1001, self->child));
	EXPECT_EQ(0, describe_nothing(self->child));
}

/* The statements make the child a process that root can describe, and user 1000 cannot. */
#define TEST_REFUSES(name, ...)							\
	TEST_F(describe, name)							\
	{									\
		NEED_ROOT("to become other users");				\
		CHILD({								\
			__VA_ARGS__;						\
			MUST(!start_with(self->ranges));			\
		});								\
		EXPECT_EQ(-EPERM, describe_as_user(1000, self->child));		\
		EXPECT_EQ(0, describe_nothing(self->child));			\
	}

TEST_REFUSES(refuses_a_process_that_is_not_dumpable, become_user(1000);
	     MUST(!prctl(PR_SET_DUMPABLE, 0)))
/* The process has the same ids, but more capabilities. */
TEST_REFUSES(refuses_a_process_with_more_capabilities_than_the_caller,
	     become_capable(1000, CAP_NET_RAW))

TEST_F(describe, refuses_a_process_with_another_real_effective_or_saved_id)
{
	NEED_ROOT("to become other users");
	for (unsigned int which = 0; which < 6; which++) {
		CHILD({
			uid_t ids[6];

			for (unsigned int i = 0; i < ARRAY_SIZE(ids); i++)
				ids[i] = i == which ? 1001 : 1000;
			MUST(!setresgid(ids[0], ids[1], ids[2]));
			MUST(!setresuid(ids[3], ids[4], ids[5]));
			MUST(!prctl(PR_SET_DUMPABLE, 1));
			MUST(!start_with(self->ranges));
		});
		EXPECT_EQ(-EPERM, describe_as_user(1000, self->child));
		killed(self->child);
	}
	self->child = 0;
}

static void *start_that_waits(void *ranges)
{
	session_start(SCOPE, 0, ranges, RANGES);
	return NULL;
}

/* A thread's START waits for a page of its buffer that never arrives. */
TEST_F(describe, does_not_wait_for_a_START_of_the_process)
{
	struct uffd_msg asked;
	int fd;

	NEED_ROOT("to become other users");
	CHILD({
		fd = missing_pages(self->counters, PAGE, 0);
		MUST(fd >= 0);
		start_beside(start_that_waits, (uintptr_t)self->ranges);
		MUST(read(fd, &asked, sizeof(asked)) == sizeof(asked));
	});
	EXPECT_EQ(-EINVAL, describe_nothing(self->child));
}

static void *describe_all_the_time(void *arg)
{
	struct profil_range found[RANGES];
	struct profil_stats s;

	while (!enough)
		describe_all((uintptr_t)arg, found, RANGES, &s);
	return NULL;
}

/* DESCRIBE in a loop disturbs neither START, STOP nor exit. */
TEST_F(describe, races_with_START_STOP_and_exit_of_the_process)
{
	struct profil_stats s;

	CHILD({
		MUST(write(self->pipe[1], "", 1) == 1);
		for (unsigned int i = 0; i < 400; i++) {
			MUST(!session_start(SCOPE, PROFIL_START_REPLACE, self->ranges, RANGES));
			loop_run(2, LOOP_BURST / 16);
			if (i % 3)
				continue;
			MUST(!session_stop(SCOPE, &s));
			MUST(accounted(&s));
		}
		_exit(0);
	});
	start_beside(describe_all_the_time, self->child);
	EXPECT_EQ(0, status_of(self->child));
	stop_beside();
	self->child = 0;
}

TEST_HARNESS_MAIN
