/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of /dev/profil, a function that burns CPU time until enough ticks have come,
 * and the amount of pinned memory
 *
 * Calls return 0 or a result, or a negative errno. Nothing here waits for time to pass: a test
 * burns until the statistics show enough ticks, and gives up after far more iterations
 * than these take, so that a test fails if no tick comes.
 */
#ifndef PROFIL_SELFTESTS_DEVICE_H
#define PROFIL_SELFTESTS_DEVICE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/profil.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define MODES_ALL (PROFIL_MODE_USER | PROFIL_MODE_SYSTEM)

/* The size of a page, and its maximum: on arm64 it depends on the kernel. */
#define PAGE		((unsigned long)sysconf(_SC_PAGESIZE))
#define PAGE_MAX	(64UL << 10)

/* For a variable of PAGE_MAX bytes or a multiple, which has no page in common with others */
#define PAGE_ALIGNED	__attribute__((aligned(PAGE_MAX)))

static inline u64 addr(const volatile void *p)
{
	return (uintptr_t)p;
}

/*
 * ASSERT_* do not work in a child of a test. MUST() prints the condition that is not true,
 * and exits with a status that fails the test in the parent.
 */
#define MUST(cond) do {									\
	if (!(cond)) {									\
		dprintf(STDERR_FILENO, "# %s:%d: in process %d: not so: %s (errno %d)\n",	\
			__FILE__, __LINE__, getpid(), #cond, errno);			\
		_exit(1);								\
	}										\
} while (0)

/* Maps @size bytes of anonymous memory. If that fails, the process exits. */
static inline void *map_new(size_t size, int flags)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

static inline void *map_private(size_t size)
{
	return map_new(size, MAP_PRIVATE);
}

static inline void *map_shared(size_t size)
{
	return map_new(size, MAP_SHARED);
}

static inline void *map_pages(size_t n)
{
	return map_private(n * PAGE);
}

/* Maps @n pages, and an inaccessible page after them. */
static inline void *pages_guarded(size_t n)
{
	char *p = map_pages(n + 1);

	MUST(!mprotect(p + n * PAGE, PAGE, PROT_NONE));
	return p;
}

/* Like map_private(), but this memory never has huge pages. */
static inline void *map_small(size_t size)
{
	void *p = map_private(size);

	/* This fails if the kernel has no huge pages, as with PREEMPT_RT. */
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

/* Returns a descriptor of the device, which each process opens on first use. */
static inline int device_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Fails a test or a fixture if there is no device. */
#define ASSERT_DEVICE()								\
	ASSERT_LE(0, device_fd()) {						\
		TH_LOG("%s must be there", PROFIL_DEVICE);			\
	}

static inline int device_ioctl(unsigned int cmd, const volatile void *arg)
{
	int fd = device_fd();

	if (fd < 0)
		return fd;
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static inline int device_query(struct profil_query *q)
{
	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	return device_ioctl(PROFIL_IOC_QUERY, q);
}

static inline int session_start_as(struct profil_start start, const struct profil_range *ranges,
				   u32 nr_ranges)
{
	start.size = sizeof(start);
	start.nr_ranges = nr_ranges;
	start.ranges = addr(ranges);
	return device_ioctl(PROFIL_IOC_START, &start);
}

/* @period: in ns; 0 selects the scheduler's ticks. */
static inline int clock_start(u32 scope, u32 flags, u64 period,
			      const struct profil_range *ranges, u32 nr_ranges)
{
	return session_start_as((struct profil_start){
		.flags = flags, .scope = scope, .modes = MODES_ALL, .period = period,
	}, ranges, nr_ranges);
}

static inline int session_start(u32 scope, u32 flags, const struct profil_range *ranges,
				u32 nr_ranges)
{
	return clock_start(scope, flags, 0, ranges, nr_ranges);
}

/* Clears statistics before a call stores them. @stats: or NULL */
static inline void stats_prepare(struct profil_stats *stats)
{
	if (!stats)
		return;
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
}

static inline int session_stats(u32 scope, struct profil_stats *stats)
{
	stats_prepare(stats);
	stats->scope = scope;
	return device_ioctl(PROFIL_IOC_STATS, stats);
}

/* Stores the final statistics in @stats, unless @stats is NULL. */
static inline int session_stop(u32 scope, struct profil_stats *stats)
{
	struct profil_stop stop = {
		.size = sizeof(stop),
		.scope = scope,
		.stats = addr(stats),
	};

	stats_prepare(stats);
	return device_ioctl(PROFIL_IOC_STOP, &stop);
}

/*
 * Sessions with a descriptor: the same calls, with a descriptor instead of a scope
 */

/* Returns the result of a successful call, or a negative errno. */
static inline int descriptor_ioctl(int fd, unsigned int cmd, const volatile void *arg)
{
	int result = ioctl(fd, cmd, arg);

	return result < 0 ? -errno : result;
}

/* Returns a descriptor, or a negative errno. */
static inline int descriptor_open_as(struct profil_open open)
{
	int fd = device_fd();

	open.size = sizeof(open);
	return fd < 0 ? fd : descriptor_ioctl(fd, PROFIL_IOC_OPEN, &open);
}

static inline int descriptor_open(u32 modes, u32 on_fork, u32 on_exec, u32 nr_records)
{
	return descriptor_open_as((struct profil_open){
		.modes = modes,
		.fork = on_fork,
		.exec = on_exec,
		.nr_records = nr_records,
	});
}

/* @pid: 0 for the caller. Stores the id of the address space in @space, unless @space is NULL. */
static inline int descriptor_attach(int fd, u32 scope, pid_t pid, u64 *space)
{
	struct profil_attach attach = {
		.size = sizeof(attach),
		.scope = scope,
		.pid = pid,
	};
	int err = descriptor_ioctl(fd, PROFIL_IOC_ATTACH, &attach);

	if (!err && space)
		*space = attach.space;
	return err;
}

static inline int descriptor_add(int fd, u64 space, const struct profil_range *ranges,
				 u32 nr_ranges)
{
	struct profil_add add = {
		.size = sizeof(add),
		.nr_ranges = nr_ranges,
		.space = space,
		.ranges = addr(ranges),
	};

	return descriptor_ioctl(fd, PROFIL_IOC_ADD, &add);
}

/* Returns the number of ranges that were removed, or a negative errno. */
static inline int descriptor_remove(int fd, u64 space, u64 start, u64 end)
{
	struct profil_remove remove = {
		.size = sizeof(remove),
		.space = space,
		.start = start,
		.end = end,
	};
	int err = descriptor_ioctl(fd, PROFIL_IOC_REMOVE, &remove);

	return err ?: (int)remove.nr_removed;
}

static inline int descriptor_enable(int fd)
{
	struct profil_enable enable = { .size = sizeof(enable) };

	return descriptor_ioctl(fd, PROFIL_IOC_ENABLE, &enable);
}

/*
 * Attaches the caller to the session, adds ranges of its address space, and enables the session.
 * Returns 0 or a negative errno.
 */
static inline int descriptor_begin(int fd, u32 scope, const struct profil_range *ranges,
				   u32 nr_ranges)
{
	int err = descriptor_attach(fd, scope, 0, NULL);

	if (!err && nr_ranges)
		err = descriptor_add(fd, PROFIL_SPACE_SELF, ranges, nr_ranges);
	return err ?: descriptor_enable(fd);
}

static inline int descriptor_stats(int fd, struct profil_stats *stats)
{
	stats_prepare(stats);
	return descriptor_ioctl(fd, PROFIL_IOC_STATS, stats);
}

/* Stores the statistics in @stats, unless @stats is NULL. */
static inline int descriptor_disable(int fd, struct profil_stats *stats)
{
	struct profil_disable disable = {
		.size = sizeof(disable),
		.stats = addr(stats),
	};

	stats_prepare(stats);
	return descriptor_ioctl(fd, PROFIL_IOC_DISABLE, &disable);
}

/* Takes a snapshot, and stores its statistics in @stats. @flags: PROFIL_SNAPSHOT_*. */
static inline int descriptor_snapshot(int fd, u32 flags, const struct profil_copy *copies,
				      u32 nr_copies, struct profil_stats *stats)
{
	struct profil_snapshot snapshot = {
		.size = sizeof(snapshot),
		.flags = flags,
		.nr_copies = nr_copies,
		.copies = addr(copies),
		.stats = addr(stats),
	};

	stats_prepare(stats);
	return descriptor_ioctl(fd, PROFIL_IOC_SNAPSHOT, &snapshot);
}

/*
 * The same calls for a setup that cannot fail: if one fails, the process exits. Each returns the
 * descriptor, so that a session that is on is made in one statement.
 */

/* Opens a session with these members of struct profil_open; of all modes, if no modes are given. */
#define must_open(...)	must_open_as((struct profil_open){ __VA_ARGS__ })

static inline int must_open_as(struct profil_open open)
{
	int fd;

	if (!open.modes)
		open.modes = MODES_ALL;
	fd = descriptor_open_as(open);
	MUST(fd >= 0);
	return fd;
}

static inline int must_enable(int fd)
{
	MUST(!descriptor_enable(fd));
	return fd;
}

/* Like descriptor_begin() */
static inline int must_sample(int fd, u32 scope, const struct profil_range *ranges, u32 nr)
{
	MUST(!descriptor_begin(fd, scope, ranges, nr));
	return fd;
}

/**
 * counter() - Read counter @i of a histogram
 * @buffer: the histogram
 * @width: the size of a counter, in bytes
 * @i: the number of the counter
 */
static inline u64 counter(const volatile void *buffer, u32 width, u64 i)
{
	switch (width) {
	case 2:
		return ((const volatile u16 *)buffer)[i];
	case 4:
		return ((const volatile u32 *)buffer)[i];
	default:
		return ((const volatile u64 *)buffer)[i];
	}
}

/**
 * counters_sum() - Add up the first counters of a histogram
 * @buffer: the histogram
 * @width: the size of a counter, in bytes
 * @n: the number of counters
 */
static inline u64 counters_sum(const volatile void *buffer, u32 width, u64 n)
{
	u64 sum = 0, i;

	for (i = 0; i < n; i++)
		sum += counter(buffer, width, i);
	return sum;
}

/* Returns a range of all user text, which counts every pc in counter 0. */
static inline struct profil_range range_all(volatile void *buffer, u64 nr_counters, u32 width)
{
	return (struct profil_range) {
		.start = 0,
		.end = UINT64_MAX,
		.offset = 0,
		.buffer = addr(buffer),
		.nr_counters = nr_counters,
		.scale = 0,
		.granule = 1,
		.step = 1,
		.width = width,
	};
}

/* Some milliseconds of user time at one place: text[start, end) of burn(). */
extern const char __start_profil_burn[], __stop_profil_burn[];

static __attribute__((noinline, noclone, used, section("profil_burn"))) void burn(void)
{
	for (volatile unsigned int i = 0; i < 1 << 16; i++)
		;
}

#define BURN_GRANULE	4096

/* Returns a range of the text of burn(), which counts all this text in counter @n. */
static inline struct profil_range range_burn(volatile void *buffer, u64 nr_counters, u32 width,
					     u64 n)
{
	return (struct profil_range) {
		.start = addr(__start_profil_burn),
		.end = addr(__stop_profil_burn),
		.offset = addr(__start_profil_burn) - n * BURN_GRANULE,
		.buffer = addr(buffer),
		.nr_counters = nr_counters,
		.scale = 65536,
		.granule = BURN_GRANULE,
		.step = 1,
		.width = width,
	};
}

/* Burns until @ticks more have come. */
static inline int burn_ticks(u32 scope, u64 ticks)
{
	u64 left = (ticks + 4) * 1024;	/* 2^26 iterations for each tick, and for four more */
	struct profil_stats stats;
	u64 until;
	int err;

	err = session_stats(scope, &stats);
	if (err)
		return err;
	until = stats.ticks + ticks;

	while (stats.ticks < until) {
		if (stats.state != PROFIL_STATE_ON)
			return -ESRCH;
		if (!left--)
			return -ETIME;
		burn();
		err = session_stats(scope, &stats);
		if (err)
			return err;
	}
	return 0;
}

/* Returns true if the outcomes add up to the ticks. */
static inline bool accounted(const struct profil_stats *s)
{
	return s->hit + s->outside + s->saturated + s->dropped == s->ticks &&
	       s->user + s->system == s->ticks &&
	       s->dropped_overrun + s->dropped_buffer + s->dropped_contended +
	       s->dropped_exec + s->dropped_exit + s->dropped_record == s->dropped;
}

/*
 * For tests: the stop or disable of a session, whose statistics must add up, and the opening of one
 * with room for @n records
 */

#define ASSERT_STOP(scope, stats) do {						\
	ASSERT_EQ(0, session_stop(scope, stats));				\
	EXPECT_TRUE(accounted(stats));						\
} while (0)

#define ASSERT_DISABLE(fd, stats) do {						\
	ASSERT_EQ(0, descriptor_disable(fd, stats));				\
	EXPECT_TRUE(accounted(stats));						\
} while (0)

#define ASSERT_OPEN(fd, n) do {							\
	(fd) = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, n);	\
	ASSERT_LE(0, fd);							\
} while (0)

/* Returns the number in a line of /proc/self/status, for example VmPin; in KiB if it is memory. */
static inline u64 status_line(const char *name)
{
	unsigned long long value = UINT64_MAX;
	char line[256];
	FILE *f;

	f = fopen("/proc/self/status", "re");
	if (!f)
		return value;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			sscanf(line + strlen(name) + 1, "%llu", &value);
	fclose(f);
	return value;
}

/* Returns the number of bytes that mlock() has locked. */
static inline u64 mlocked_bytes(void)
{
	return status_line("VmLck") * 1024;
}

/* Returns the number of bytes that are pinned and charged to RLIMIT_MEMLOCK, without mlock(). */
static inline u64 pinned_bytes(void)
{
	return status_line("VmPin") * 1024;
}

#endif /* PROFIL_SELFTESTS_DEVICE_H */
