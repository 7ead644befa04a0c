// SPDX-License-Identifier: GPL-2.0
/*
 * PROFIL_IOC_FETCH: the classic session of a process, read by another; and sessions that are on
 * and count nothing, to be read all the same.
 */
#include "kselftest_harness.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "loop.h"
#include "process.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
#define MS		1000000U

static int fetch(struct profil_fetch *arg, pid_t pid)
{
	arg->size = sizeof(*arg);
	arg->pid = pid;
	return device_ioctl(PROFIL_IOC_FETCH, arg);
}

/* What is fetched of three ranges, whose counters have 2, 4 and 8 bytes. */
struct picture {
	struct profil_range ranges[3];
	u16 c2[LOOPS + 1];
	u8 filled[6];			/* up to a multiple of 8 */
	u32 c4[LOOPS];
	u64 c8[2];
};

static int take(struct picture *picture, pid_t pid, struct profil_stats *stats)
{
	struct profil_fetch arg = {
		.nr_ranges = 3,
		.ranges = addr(picture->ranges),
		.data = addr(picture->c2),
		.nr_bytes = sizeof(*picture) - offsetof(struct picture, c2),
		.stats = addr(stats),
	};
	int err;

	memset(picture, 0xa5, sizeof(*picture));
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	err = fetch(&arg, pid);
	if (!err && (arg.nr_ranges != 3 ||
		     arg.nr_bytes != sizeof(*picture) - offsetof(struct picture, c2)))
		return -EPROTO;
	return err;
}

static u64 sum(const struct picture *p)
{
	return counters_sum(p->c2, 2, LOOPS + 1) + counters_sum(p->c4, 4, LOOPS) +
	       counters_sum(p->c8, 8, 2);
}

/* Counters of a process, not together, and in its ranges' order of addresses. */
struct counters {
	u64 c8[2];
	u32 c4[LOOPS];
	u16 c2[LOOPS + 1];
};

static void ranges_of(struct profil_range *ranges, struct counters *c)
{
	ranges[2] = range_of(0x10000, 0x20000, c->c2, LOOPS + 1, 2);
	ranges[2].granule = 4;
	ranges[2].step = 2;
	ranges[2].flags = PROFIL_RANGE_ROUND_UP;
	ranges[0] = range_of_loops(c->c4, 4);
	ranges[1] = range_of(addr(__start_profil_burn), addr(__stop_profil_burn), c->c8, 2, 8);
	ranges[1].scale = 0;
	/* The library's text is above or below, and not of interest. */
	if (ranges[1].start < ranges[0].start) {
		struct profil_range r = ranges[0];

		ranges[0] = ranges[1];
		ranges[1] = r;
	}
}

FIXTURE(fetch) {
	struct counters *counters;
	struct profil_range ranges[3];
	int pipe[2];
	pid_t child;
};

FIXTURE_SETUP(fetch)
{
	self->counters = mmap(NULL, sizeof(*self->counters), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->counters);
	ranges_of(self->ranges, self->counters);
	ASSERT_EQ(0, pipe(self->pipe));
	self->child = 0;
}

FIXTURE_TEARDOWN(fetch)
{
	if (self->child) {
		kill(self->child, SIGKILL);
		waitpid(self->child, NULL, 0);
	}
	session_stop(SCOPE, NULL);
	close(self->pipe[0]);
	close(self->pipe[1]);
	munmap(self->counters, sizeof(*self->counters));
}

/* A child that does so much, says so, and waits. */
#define CHILD(...) do {						\
	char byte = 0;							\
									\
	self->child = fork();						\
	ASSERT_LE(0, self->child);					\
	if (!self->child) {						\
		__VA_ARGS__;						\
		MUST(write(self->pipe[1], &byte, 1) == 1);		\
		for (;;)						\
			pause();					\
	}								\
	ASSERT_EQ(1, read(self->pipe[0], &byte, 1));			\
} while (0)

TEST_F(fetch, gives_ranges_counters_and_statistics_of_another)
{
	const bool loops_first = self->ranges[0].width == 4;
	struct profil_stats s;
	struct picture p;

	CHILD({
		MUST(!session_start(SCOPE, 0, self->ranges, 3));
		MUST(loop_burn(SCOPE, 3, 20));
		MUST(!burn_ticks(SCOPE, 5));
	});
	/* It is stopped, and need not do anything. */
	ASSERT_EQ(0, kill(self->child, SIGSTOP));
	ASSERT_EQ(self->child, waitpid(self->child, NULL, WUNTRACED));
	ASSERT_EQ(0, take(&p, self->child, &s));
	EXPECT_EQ(0, memcmp(&p.ranges[0], &self->ranges[2], sizeof(p.ranges[0])));
	EXPECT_EQ(0, memcmp(&p.ranges[1], &self->ranges[0], sizeof(p.ranges[0])));
	EXPECT_EQ(0, memcmp(&p.ranges[2], &self->ranges[1], sizeof(p.ranges[0])));
	EXPECT_EQ(PROFIL_STATE_ON, s.state);
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(25, s.ticks);
	for (unsigned int i = 0; i < sizeof(p.filled); i++)
		EXPECT_EQ(0, p.filled[i]);
	if (loops_first) {
		EXPECT_EQ(s.hit, sum(&p));
		EXPECT_LE(10, p.c4[3]);
		EXPECT_EQ(p.c4[3], counters_sum(p.c4, 4, LOOPS));
		EXPECT_LE(2, p.c8[0]);
	}
	/* And again the same, since it is stopped. */
	EXPECT_EQ(0, take(&p, self->child, &s));
	if (loops_first)
		EXPECT_EQ(s.hit, sum(&p));
}

static void *run_for_ever(void *unused)
{
	for (;;)
		loop_run(1, LOOP_BURST);
	return unused;
}

/* One moment: nothing is counted that the statistics do not have, and the other way round. */
TEST_F(fetch, is_of_one_moment_while_threads_count)
{
	struct profil_stats s, before = {};
	unsigned int moved = 0;
	u64 counters[2];

	CHILD({
		struct profil_range range = range_all(self->counters->c8, 1, 8);
		pthread_t thread;

		MUST(!clock_start(SCOPE, 0, MS / 10, &range, 1));
		MUST(!pthread_create(&thread, NULL, run_for_ever, NULL));
		MUST(write(self->pipe[1], "", 1) == 1);
		run_for_ever(NULL);
	});
	for (unsigned int i = 0; i < 300; i++) {
		struct profil_range range;
		struct profil_fetch arg = {
			.nr_ranges = 1,
			.ranges = addr(&range),
			.data = addr(counters),
			.nr_bytes = sizeof(counters),
			.stats = addr(&s),
		};

		memset(&s, 0, sizeof(s));
		s.size = sizeof(s);
		ASSERT_EQ(0, fetch(&arg, self->child));
		ASSERT_EQ(8, arg.nr_bytes);
		EXPECT_EQ(MS / 10, arg.period);
		EXPECT_TRUE(accounted(&s));
		EXPECT_EQ(s.hit, counters[0]);
		EXPECT_LE(before.ticks, s.ticks);
		moved += s.ticks != before.ticks;
		before = s;
	}
	EXPECT_LE(2, moved);
}

TEST_F(fetch, tells_how_much_room_it_wants)
{
	const u64 bytes = sizeof(struct picture) - offsetof(struct picture, c2);
	struct profil_range ranges[3];
	u8 data[sizeof(struct picture)], poison[sizeof(data)];
	struct profil_fetch arg;

	memset(poison, 0x5a, sizeof(poison));
	ASSERT_EQ(0, session_start(SCOPE, 0, self->ranges, 3));
#define TRY(n, r, d, b) do {						\
	memset(ranges, 0x5a, sizeof(ranges));				\
	memset(data, 0x5a, sizeof(data));				\
	arg = (struct profil_fetch){					\
		.nr_ranges = n, .ranges = r, .data = d, .nr_bytes = b,	\
	};								\
	EXPECT_EQ(0, fetch(&arg, 0));					\
	EXPECT_EQ(3, arg.nr_ranges);					\
	EXPECT_EQ(bytes, arg.nr_bytes);					\
	EXPECT_EQ(0, arg.period);					\
} while (0)
#define EXPECT_NOTHING_COPIED() do {					\
	EXPECT_EQ(0, memcmp(ranges, poison, sizeof(ranges)));		\
	EXPECT_EQ(0, memcmp(data, poison, sizeof(data)));		\
} while (0)
	TRY(0, 0, 0, 0);
	TRY(3, 0, 0, bytes);
	TRY(2, addr(ranges), addr(data), bytes);
	EXPECT_NOTHING_COPIED();
	TRY(3, addr(ranges), addr(data), bytes - 1);
	EXPECT_NOTHING_COPIED();
	TRY(0, addr(ranges), addr(data), UINT64_MAX);
	EXPECT_NOTHING_COPIED();
	TRY(3, addr(ranges), addr(data), bytes);
	EXPECT_EQ(self->ranges[2].buffer, ranges[0].buffer);
	EXPECT_EQ(0, memcmp(data + bytes, poison, sizeof(data) - bytes));
	TRY(UINT32_MAX, addr(ranges), addr(data), UINT64_MAX);
	EXPECT_EQ(self->ranges[2].buffer, ranges[0].buffer);
	EXPECT_EQ(0, memcmp(data + bytes, poison, sizeof(data) - bytes));
	/* Only one of the two is wanted. */
	TRY(3, addr(ranges), 0, bytes);
	EXPECT_EQ(self->ranges[2].buffer, ranges[0].buffer);
	TRY(3, 0, addr(data), bytes);
	EXPECT_NE(0x5a, data[0]);
#undef TRY
#undef EXPECT_NOTHING_COPIED
}

TEST_F(fetch, has_no_ranges_of_a_session_without)
{
	struct profil_range range = {};
	struct profil_fetch arg = { .nr_ranges = 1, .ranges = addr(&range) };

	ASSERT_EQ(0, session_start(SCOPE, 0, NULL, 0));
	EXPECT_EQ(0, fetch(&arg, 0));
	EXPECT_EQ(0, arg.nr_ranges);
	EXPECT_EQ(0, arg.nr_bytes);
	EXPECT_EQ(0, range.end);
}

TEST_F(fetch, says_what_is_wrong)
{
	struct profil_stats s = { .size = sizeof(s) };
	struct profil_range ranges[3];
	u8 data[sizeof(struct picture)];
	struct profil_fetch arg = {};

	EXPECT_EQ(-EINVAL, fetch(&arg, 0));
	EXPECT_EQ(-EINVAL, fetch(&arg, getpid()));
	EXPECT_EQ(-EINVAL, fetch(&arg, -1));
	EXPECT_EQ(-ESRCH, fetch(&arg, INT32_MAX));
	CHILD();
	EXPECT_EQ(-EINVAL, fetch(&arg, self->child));
	kill(self->child, SIGKILL);
	/* Nobody has waited for it yet. */
	EXPECT_TRUE(await(fetch(&arg, self->child) == -ESRCH));

	ASSERT_EQ(0, session_start(SCOPE, 0, self->ranges, 3));
	/* A thread's is not a process's. */
	EXPECT_EQ(0, fetch(&arg, 0));
	EXPECT_EQ(0, fetch(&arg, getpid()));
	arg = (struct profil_fetch){ .flags = 1 };
	EXPECT_EQ(-EOPNOTSUPP, fetch(&arg, 0));
	arg = (struct profil_fetch){
		.nr_ranges = 3, .ranges = 8, .data = addr(data), .nr_bytes = sizeof(data),
	};
	EXPECT_EQ(-EFAULT, fetch(&arg, 0));
	arg = (struct profil_fetch){
		.nr_ranges = 3, .ranges = addr(ranges), .data = 8, .nr_bytes = sizeof(data),
	};
	EXPECT_EQ(-EFAULT, fetch(&arg, 0));
	arg = (struct profil_fetch){ .stats = 8 };
	EXPECT_EQ(-EFAULT, fetch(&arg, 0));
	s.flags = 1;
	arg = (struct profil_fetch){ .stats = addr(&s) };
	EXPECT_EQ(-EOPNOTSUPP, fetch(&arg, 0));

	/* It has ended by itself. */
	munmap(self->counters, sizeof(*self->counters));
	EXPECT_EQ(-ENODEV, fetch(&(struct profil_fetch){}, 0));
	ASSERT_EQ(self->counters, mmap(self->counters, sizeof(*self->counters),
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

/* What the child has that was made by a fork, it has for itself. */
TEST_F(fetch, finds_the_session_of_a_child)
{
	struct profil_stats s;
	struct picture p;

	ASSERT_EQ(0, session_start(SCOPE, 0, self->ranges, 3));
	CHILD(MUST(loop_burn(SCOPE, 5, 20)));
	ASSERT_EQ(0, take(&p, self->child, &s));
	EXPECT_LE(20, s.ticks);
	ASSERT_EQ(0, take(&p, 0, &s));
	EXPECT_EQ(0, self->counters->c4[5]);
}

TEST_F(fetch, of_pages_that_have_been_exchanged_has_the_new)
{
	u64 *counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	struct profil_range range = range_all(counters, 512, 8), found;
	struct profil_stats s = { .size = sizeof(s) };
	u64 data[512];
	struct profil_fetch arg = {
		.nr_ranges = 1,
		.ranges = addr(&found),
		.data = addr(data),
		.nr_bytes = sizeof(data),
		.stats = addr(&s),
	};

	ASSERT_NE(MAP_FAILED, counters);
	CHILD({
		MUST(!session_start(SCOPE, 0, &range, 1));
		MUST(loop_burn(SCOPE, 1, 10));
		MUST(!madvise(counters, 4096, MADV_DONTNEED));
		counters[7] = 77;
	});
	ASSERT_EQ(0, fetch(&arg, self->child));
	EXPECT_EQ(77, data[7]);
	EXPECT_GE(s.hit, data[0] + 5);
}

/* On, and nothing is counted: what is there can be fetched, and goes on counting when told to. */
TEST_F(fetch, of_a_session_that_counts_nothing)
{
	struct profil_range range = range_all(self->counters->c8, 1, 8), found;
	struct profil_stats s;
	u64 count = 0, before;
	struct profil_fetch arg;

#define START(m, period_) device_ioctl(PROFIL_IOC_START, &(struct profil_start){	\
	.size = sizeof(struct profil_start), .flags = PROFIL_START_REPLACE, .modes = m,	\
	.nr_ranges = 1, .ranges = addr(&range), .period = period_ })
#define FETCH() do {								\
	s = (struct profil_stats){ .size = sizeof(s) };				\
	arg = (struct profil_fetch){						\
		.nr_ranges = 1, .ranges = addr(&found), .data = addr(&count),	\
		.nr_bytes = sizeof(count), .stats = addr(&s),			\
	};									\
	ASSERT_EQ(0, fetch(&arg, 0));						\
} while (0)
	self->counters->c8[0] = 1000;
	ASSERT_EQ(0, START(0, 0));
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	FETCH();
	EXPECT_EQ(1000, count);
	EXPECT_EQ(0, s.ticks);
	EXPECT_LE(10, s.unselected);
	EXPECT_EQ(PROFIL_STATE_ON, s.state);

	ASSERT_EQ(0, START(MODES_ALL, MS));
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	FETCH();
	EXPECT_EQ(MS, arg.period);
	EXPECT_EQ(1000 + s.hit, count);
	EXPECT_LE(10, s.hit);

	ASSERT_EQ(0, START(0, 0));
	before = self->counters->c8[0];
	EXPECT_LE(count, before);
	ASSERT_TRUE(loop_burn(SCOPE, 1, 10));
	FETCH();
	EXPECT_EQ(before, count);
#undef FETCH
#undef START
}

static int become(uid_t id)
{
	return setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id) ? -1 : 0;
}

/* Session and process of uid 1000; what somebody says who asks for it. */
static int asked_by(uid_t id, pid_t pid)
{
	pid_t child = fork();

	if (!child) {
		MUST(!become(id));
		_exit(-fetch(&(struct profil_fetch){}, pid));
	}
	return -status_of(child);
}

#define NEED_ROOT() do {						\
	if (geteuid())							\
		SKIP(return, "only root can become others");		\
} while (0)

TEST_F(fetch, is_for_the_same_user)
{
	NEED_ROOT();
	CHILD({
		MUST(!become(1000));
		MUST(!prctl(PR_SET_DUMPABLE, 1));
		MUST(!session_start(SCOPE, 0, self->ranges, 3));
	});
	EXPECT_EQ(0, asked_by(1000, self->child));
	EXPECT_EQ(-EPERM, asked_by(1001, self->child));
	EXPECT_EQ(0, fetch(&(struct profil_fetch){}, self->child));
}

TEST_F(fetch, is_not_of_what_is_not_dumpable)
{
	NEED_ROOT();
	CHILD({
		MUST(!become(1000));
		MUST(!prctl(PR_SET_DUMPABLE, 0));
		MUST(!session_start(SCOPE, 0, self->ranges, 3));
	});
	EXPECT_EQ(-EPERM, asked_by(1000, self->child));
	EXPECT_EQ(0, fetch(&(struct profil_fetch){}, self->child));
}

TEST_F(fetch, is_not_of_what_has_another_id_too)
{
	NEED_ROOT();
	for (int which = 0; which < 3; which++) {
		CHILD({
			MUST(!setresgid(1000, 1000, which == 2 ? 0 : 1000));
			MUST(!setresuid(1000, which == 0 ? 0 : 1000, which == 1 ? 0 : 1000));
			MUST(!prctl(PR_SET_DUMPABLE, 1));
			MUST(!session_start(SCOPE, 0, self->ranges, 3));
		});
		EXPECT_EQ(-EPERM, asked_by(1000, self->child));
		kill(self->child, SIGKILL);
		waitpid(self->child, NULL, 0);
	}
	self->child = 0;
}

/* The same ids, and more rights. */
TEST_F(fetch, is_not_of_what_has_more_capabilities)
{
	NEED_ROOT();
	CHILD({
		struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
		struct __user_cap_data_struct data[2] = {};

		MUST(!prctl(PR_SET_KEEPCAPS, 1));
		MUST(!become(1000));
		data[0].permitted = 1 << CAP_NET_RAW;
		MUST(!syscall(SYS_capset, &header, data));
		MUST(!prctl(PR_SET_DUMPABLE, 1));
		MUST(!session_start(SCOPE, 0, self->ranges, 3));
	});
	EXPECT_EQ(-EPERM, asked_by(1000, self->child));
	EXPECT_EQ(0, fetch(&(struct profil_fetch){}, self->child));
}

static void *start_that_waits(void *ranges)
{
	session_start(SCOPE, 0, ranges, 3);
	return NULL;
}

/* A start waits for a page of its buffers, which nobody gives. */
TEST_F(fetch, does_not_wait_for_a_call_of_the_process)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = {
		.range = { .start = addr(self->counters), .len = 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffd_msg asked;
	pthread_t thread;
	int fd;

	NEED_ROOT();
	CHILD({
		fd = syscall(SYS_userfaultfd, O_CLOEXEC);
		MUST(fd >= 0);
		MUST(!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &all));
		MUST(!pthread_create(&thread, NULL, start_that_waits, self->ranges));
		MUST(read(fd, &asked, sizeof(asked)) == sizeof(asked));
	});
	EXPECT_EQ(-EFAULT, fetch(&(struct profil_fetch){}, self->child));
}

static atomic_bool enough;

static void *fetch_all_the_time(void *arg)
{
	struct profil_stats s;
	struct picture p;

	while (!enough)
		take(&p, (uintptr_t)arg, &s);
	return NULL;
}

/* It disturbs neither starts, stops nor the end. */
TEST_F(fetch, races_with_what_the_process_does)
{
	struct profil_stats s;
	pthread_t thread;

	CHILD({
		MUST(write(self->pipe[1], "", 1) == 1);
		for (unsigned int i = 0; i < 400; i++) {
			MUST(!session_start(SCOPE, PROFIL_START_REPLACE, self->ranges, 3));
			loop_run(2, LOOP_BURST / 16);
			MUST(!madvise(self->counters, sizeof(*self->counters), MADV_DONTNEED));
			if (i % 3)
				continue;
			MUST(!session_stop(SCOPE, &s));
			MUST(accounted(&s));
		}
		_exit(0);
	});
	enough = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, fetch_all_the_time,
				    (void *)(uintptr_t)self->child));
	EXPECT_EQ(0, status_of(self->child));
	enough = true;
	pthread_join(thread, NULL);
	self->child = 0;
}

TEST_HARNESS_MAIN
