// SPDX-License-Identifier: GPL-2.0
/*
 * libprofil, used by its public header only: profil(), linked and preloaded; descriptor sessions,
 * records and ranges.
 *
 * Built twice: with the shared library, and with the static one (library_static).
 */
#include "classic.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/sysmacros.h>

#include "kernel.h"
#include "loop.h"
#include "old.h"
#include "profil.h"
#include "record.h"
#include "seccomp.h"
#include "users.h"

#define COUNTERS	4096

static unsigned short counters[COUNTERS];

static u64 sum(void)
{
	return counters_sum(counters, 2, COUNTERS);
}

/* Turns profiling on with counters for the text of burn() only. */
static int start_in_burn(void)
{
	return profil(counters, sizeof(counters), addr(__start_profil_burn), 65536);
}

static int stop(void)
{
	return profil(null, 0, 0, 0);
}

/* Runs burn() until the session has @hits more hits. */
static int burn_hits(u64 hits)
{
	struct profil_stats stats = {};
	int err;

	while (stats.hit < hits) {
		err = burn_ticks(SCOPE, 1) ?: session_stats(SCOPE, &stats);
		if (err)
			return err;
	}
	return 0;
}

/* Returns the statistics that the library returns. */
static struct profil_stats classic_stats(void)
{
	struct profil_stats stats = { .size = sizeof(stats) };

	MUST(!profil_classic_stats(&stats));
	return stats;
}

/* Writes the numbers of all open descriptors of this process to @list. */
static void descriptors(char *list, size_t size)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t len = 0;

	*list = 0;
	while (dir && (entry = readdir(dir)))
		len += snprintf(list + len, len < size ? size - len : 0, " %s", entry->d_name);
	if (dir)
		closedir(dir);
}

FIXTURE(library) {
};

FIXTURE_SETUP(library)
{
	ASSERT_IS_OFF();
}

FIXTURE_TEARDOWN(library)
{
	EXPECT_EQ(0, stop());
	EXPECT_IS_OFF();
}

TEST_F(library, profil_counts_until_it_is_turned_off)
{
	struct profil_stats stats;
	u64 hits;

	ASSERT_EQ(0, start_in_burn());
	EXPECT_IS_ON();
	EXPECT_EQ(0, burn_hits(5));
	ASSERT_EQ(0, session_stats(SCOPE, &stats));
	EXPECT_EQ(0, stop());
	EXPECT_IS_OFF();
	hits = sum();
	EXPECT_LE(stats.hit, hits);
	EXPECT_TRUE(accounted(&stats));
	EXPECT_EQ(0, stats.unselected);		/* both user and system ticks are counted */

	/* Nothing is counted while it is off. The next profile adds to the counters. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	EXPECT_EQ(0, burn_ticks(PROFIL_SCOPE_THREAD, 3));
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, NULL));
	EXPECT_EQ(hits, sum());
	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(0, burn_hits(2));
	EXPECT_LE(hits + 2, sum());
}

/* The counter of a pc is (pc - offset) / 2 * scale / 65536, as in the kernel's ABI. */
TEST_F(library, the_counter_of_a_pc_follows_the_formula)
{
	const unsigned int scales[] = { 65536, 32768, 16384, 131072, 2, 1, UINT_MAX };
	const u64 length = __stop_profil_burn - __start_profil_burn;
	u64 first, last, hits;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(scales); i++) {
		memset(counters, 0, sizeof(counters));
		/* The burned text begins 64 bytes past the offset. */
		first = 32ULL * scales[i] >> 16;
		last = (64 + length - 1) / 2 * scales[i] >> 16;
		ASSERT_EQ(0, profil(counters, sizeof(counters), addr(__start_profil_burn) - 64,
				    scales[i]));
		EXPECT_EQ(0, first < COUNTERS ? burn_hits(3) : burn_ticks(SCOPE, 3));
		ASSERT_EQ(0, stop());
		for (hits = 0, j = first; j <= last && j < COUNTERS; j++)
			hits += counters[j];
		EXPECT_EQ(first < COUNTERS, hits > 0);
		EXPECT_EQ(hits, sum());
	}
}

TEST_F(library, a_second_call_replaces_the_profile)
{
	static unsigned short other[COUNTERS];
	u64 hits;

	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(0, burn_hits(3));
	ASSERT_EQ(0, profil(other, sizeof(other), addr(__start_profil_burn), 65536));
	hits = sum();
	EXPECT_LE(3, hits);
	EXPECT_EQ(0, burn_hits(3));
	EXPECT_EQ(hits, sum());
	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(0, burn_hits(1));
	EXPECT_LT(hits, sum());
}

/* Tries each kind of arguments that turns profiling off, even when it is off already. */
TEST_F(library, a_null_buffer_or_scale_0_turns_it_off)
{
	const struct {
		unsigned short *buffer;
		size_t size, offset;
		unsigned int scale;
	} offs[] = {
		{ NULL, 0, 0, 0 },
		{ NULL, sizeof(counters), 0x1000, 65536 },
		{ counters, sizeof(counters), addr(burn), 0 },
		{ (void *)16, 64, 0, 0 },	/* with scale 0, a bad buffer is not checked */
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(offs); i++) {
		unsigned short *volatile buffer = offs[i].buffer;

		EXPECT_EQ(0, profil(buffer, offs[i].size, offs[i].offset, offs[i].scale));
		EXPECT_IS_OFF();
		ASSERT_EQ(0, start_in_burn());
		EXPECT_IS_ON();
		EXPECT_EQ(0, profil(buffer, offs[i].size, offs[i].offset, offs[i].scale));
		EXPECT_IS_OFF();
	}
}

TEST_F(library, buffers_of_0_to_3_bytes_are_accepted)
{
	struct profil_stats stats;

	/* Profiling is on, but nothing is counted, because a counter has two bytes. */
	for (size_t size = 0; size < 2; size++) {
		ASSERT_EQ(0, profil(counters, size, 0, 1));
		EXPECT_IS_ON();
		EXPECT_EQ(0, burn_ticks(SCOPE, 2));
		ASSERT_EQ(0, session_stats(SCOPE, &stats));
		EXPECT_EQ(stats.ticks, stats.outside);
		EXPECT_EQ(0, pinned_bytes());
	}
	/* Three bytes hold one counter, and the third byte is not written. */
	counters[1] = 0x5555;
	ASSERT_EQ(0, profil(counters, 3, addr(__start_profil_burn), 1));
	EXPECT_EQ(0, burn_hits(2));
	EXPECT_EQ(0, stop());
	EXPECT_LE(2, counters[0]);
	EXPECT_EQ(0x5555, counters[1]);
}

TEST_F(library, any_scale_and_offset_are_accepted)
{
	const unsigned int scales[] = { 1, 2, 3, 65535, 65536, 65537, 131072, INT_MAX, UINT_MAX };
	const size_t offsets[] = { 0, 1, 0x1000, (size_t)1 << 31, SIZE_MAX / 2, SIZE_MAX - 1,
				   SIZE_MAX };

	for (unsigned int i = 0; i < ARRAY_SIZE(scales); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(offsets); j++) {
			EXPECT_EQ(0, profil(counters, sizeof(counters), offsets[j], scales[i]));
			EXPECT_IS_ON();
		}
	}
}

TEST_F(library, success_leaves_errno_alone)
{
	EXPECT_NO_ERROR(stop());	/* the library gets EINVAL from the kernel */
	EXPECT_NO_ERROR(start_in_burn());
	EXPECT_NO_ERROR(start_in_burn());
	EXPECT_NO_ERROR(stop());
}

/* The call fails with EFAULT, and a profile that is on continues. */
TEST_F(library, a_bad_buffer_is_EFAULT_and_changes_nothing)
{
	struct profil_stats stats;
	u8 *p = map_private(3 * PAGE);

	ASSERT_EQ(0, mprotect(p + PAGE, PAGE, PROT_READ));
	ASSERT_EQ(0, munmap(p + 2 * PAGE, PAGE));

	for (unsigned int on = 0; on < 2; on++) {
		if (on) {
			ASSERT_EQ(0, start_in_burn());
			ASSERT_EQ(0, burn_hits(2));
		}
		EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + PAGE), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + 2 * PAGE), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)p, PAGE + 2, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + 1), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(uintptr_t)-2, 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX, 0, 65536));
		EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX / 2, 0, 65536));
		EXPECT_EQ(on ? PROFIL_STATE_ON : PROFIL_STATE_OFF, state_of(SCOPE));
	}
	ASSERT_EQ(0, session_stats(SCOPE, &stats));
	EXPECT_EQ(0, burn_ticks(SCOPE, 2));
	EXPECT_LE(stats.hit, sum());
}

TEST_F(library, a_buffer_above_RLIMIT_MEMLOCK_is_ENOMEM)
{
	const size_t size = 64 << 10;
	u8 *p = map_private(2 * size);

	limit_memlock(size);
	become_user(1000);
	EXPECT_ERROR(ENOMEM, profil((void *)p, size + 2, 0, 65536));
	EXPECT_IS_OFF();
	EXPECT_EQ(0, profil((void *)p, size, 0, 65536));
	EXPECT_EQ(size, pinned_bytes());
	EXPECT_ERROR(ENOMEM, profil((void *)p, 2 * size, 0, 65536));
	EXPECT_IS_ON();
	EXPECT_EQ(size, pinned_bytes());
	EXPECT_EQ(0, profil((void *)(p + size), size, 0, 65536));
}

/*
 * The descriptor of the device that the library keeps while profiling is on
 */

TEST_F(library, keeps_a_descriptor_with_a_high_number_while_it_is_on)
{
	char before[4096], after[4096];
	int lowest, kept;

	descriptors(before, sizeof(before));
	ASSERT_EQ(-1, kept_descriptor());
	lowest = dup(0);
	close(lowest);
	ASSERT_EQ(0, start_in_burn());
	kept = kept_descriptor();
	EXPECT_LE(100, kept);
	EXPECT_EQ(FD_CLOEXEC, fcntl(kept, F_GETFD));
	EXPECT_EQ(lowest, dup(0));
	close(lowest);
	/* A profile that replaces another one keeps the same descriptor. */
	ASSERT_EQ(0, start_in_burn());
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	EXPECT_EQ(kept, kept_descriptor());
	EXPECT_EQ(0, stop());
	descriptors(after, sizeof(after));
	EXPECT_STREQ(before, after);

	/* A call that does not turn profiling on keeps no descriptor. */
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	EXPECT_EQ(0, stop());
	EXPECT_EQ(-1, kept_descriptor());
}

TEST_F(library, is_replaced_and_turned_off_without_a_free_descriptor)
{
	int last = take_all_descriptors();

	ASSERT_LE(0, last);
	EXPECT_ERROR(EMFILE, start_in_burn());
	EXPECT_EQ(0, stop());
	EXPECT_TRUE(is_off(SCOPE));
	/* One free descriptor is enough, whatever its number. */
	ASSERT_EQ(0, close(last));
	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(last, kept_descriptor());
	ASSERT_EQ(0, profil(counters, sizeof(counters), addr(__start_profil_burn), 32768));
	EXPECT_EQ(0, burn_hits(2));
	classic_stats();
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	EXPECT_IS_ON();
	EXPECT_EQ(0, stop());
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(library, works_with_a_low_RLIMIT_NOFILE)
{
	const struct rlimit few = { 20, 20 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	ASSERT_EQ(0, start_in_burn());
	EXPECT_LT(2, kept_descriptor());
	EXPECT_EQ(0, stop());
	EXPECT_EQ(-1, kept_descriptor());
}

TEST_F(library, child_of_a_fork_is_turned_off_without_a_free_descriptor)
{
	ASSERT_EQ(0, start_in_burn());
	EXPECT_CHILD({
		MUST(state_of(SCOPE) == PROFIL_STATE_ON);
		MUST(take_all_descriptors() >= 0);
		MUST(!stop());
		MUST(is_off(SCOPE));
	});
	EXPECT_IS_ON();
	ASSERT_LE(0, take_all_descriptors());
	EXPECT_EQ(0, stop());
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(library, is_turned_off_after_chroot)
{
	SKIP_IF(geteuid(), "chroot() needs root");
	EXPECT_CHILD({
		MUST(!start_in_burn());
		MUST(!chroot("/proc/self/fdinfo"));	/* a root directory without /dev */
		MUST(!chdir("/"));
		MUST(!start_in_burn());
		MUST(!burn_hits(1));
		MUST(!stop());
		MUST(is_off(SCOPE));
		MUST(start_in_burn() == -1 && errno == ENOSYS);
	});
}

static ino_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* The program may reuse the number. Then the library neither uses nor closes it. */
TEST_F(library, the_kept_descriptor_may_be_closed_and_its_number_used)
{
	int kept, pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, start_in_burn());
	kept = kept_descriptor();
	ASSERT_EQ(kept, dup2(pipes[1], kept));
	EXPECT_EQ(0, stop());
	EXPECT_IS_OFF();
	EXPECT_EQ(inode(pipes[1]), inode(kept));

	/* The library keeps a new descriptor, even when the profile is replaced. */
	ASSERT_EQ(0, start_in_burn());
	ASSERT_LT(kept, dup2(pipes[1], kept_descriptor()));
	ASSERT_EQ(0, start_in_burn());
	EXPECT_LT(kept, kept_descriptor());
	EXPECT_EQ(0, stop());
	EXPECT_EQ(-1, kept_descriptor());
	EXPECT_EQ(inode(pipes[1]), inode(kept));

	/* The kept descriptor is closed, and no other is free. */
	ASSERT_EQ(0, start_in_burn());
	ASSERT_EQ(0, close(kept_descriptor()));
	ASSERT_LE(0, take_all_descriptors());
	EXPECT_ERROR(EMFILE, stop());
	EXPECT_IS_ON();
	ASSERT_EQ(0, close(pipes[0]));
	EXPECT_EQ(0, stop());
	EXPECT_TRUE(is_off(SCOPE));
}

/*
 * A seccomp filter
 */

#define MUST_FAIL(error, call) MUST((call) == -1 && errno == (error))

/* All calls of the device fail with this error. */
static void calls_fail(int error)
{
	struct profil_stats stats = { .size = sizeof(stats) };
	struct profil_query query = { .size = sizeof(query) };

	MUST_FAIL(error, start_in_burn());
	MUST_FAIL(error, stop());
	MUST_FAIL(error, profil_classic_stats(&stats));
	MUST_FAIL(error, profil_query_kernel(&query));
	MUST_FAIL(error, profil_session_open(NULL));
}

TEST_F(library, a_seccomp_filter_on_ioctl_is_EACCES)
{
	EXPECT_CHILD(MUST(!forbid_ioctl()); calls_fail(EACCES));
	ASSERT_EQ(0, start_in_burn());
	EXPECT_CHILD(MUST(!forbid_ioctl()); calls_fail(EACCES));
}

/* The library does not use SIGPROF and ITIMER_PROF: the program can. */
TEST_F(library, SIGPROF_and_ITIMER_PROF_are_the_programs_own)
{
	u64 bursts = 1 << 14;

	ASSERT_EQ(0, start_in_burn());
	ASSERT_EQ(0, burn_hits(2));
	expect_sigprof_is_free(_metadata);
	EXPECT_EQ(0, burn_hits(6));
	while (alarms < 3 && bursts--)
		burn();
	EXPECT_LE(3, alarms);
	EXPECT_LE(6, sum());
}

/* The library and the device return the same statistics. */
TEST_F(library, profil_classic_stats_returns_the_statistics)
{
	struct profil_stats stats, same;

	EXPECT_EQ(PROFIL_STATE_OFF, classic_stats().state);
	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(0, burn_hits(3));
	do {
		stats = classic_stats();
		ASSERT_EQ(0, session_stats(SCOPE, &same));
	} while (same.ticks != stats.ticks);
	EXPECT_EQ(PROFIL_STATE_ON, stats.state);
	EXPECT_LE(3, stats.hit);
	EXPECT_EQ(same.hit, stats.hit);
	EXPECT_EQ(same.locked, stats.locked);
	EXPECT_TRUE(accounted(&stats));

	stats.scope = PROFIL_SCOPE_THREAD;
	EXPECT_EQ(0, profil_classic_stats(&stats));
	EXPECT_EQ(PROFIL_STATE_OFF, stats.state);
	stats.scope = 77;
	EXPECT_ERROR(EOPNOTSUPP, profil_classic_stats(&stats));
	stats.size = 0;
	EXPECT_ERROR(EINVAL, profil_classic_stats(&stats));
}

TEST_F(library, profil_query_kernel_returns_the_limits)
{
	const u64 wanted = PROFIL_FEATURE_PROCESS | PROFIL_FEATURE_THREAD | PROFIL_FEATURE_SYSTEM |
			   PROFIL_FEATURE_FORK | PROFIL_FEATURE_DESCRIPTOR | PROFIL_FEATURE_RECORDS;
	struct profil_query query = { .size = sizeof(query) }, same;

	ASSERT_EQ(0, profil_query_kernel(&query));
	ASSERT_EQ(0, device_query(&same));
	EXPECT_EQ(same.tick_hz, query.tick_hz);
	EXPECT_LT(0, query.tick_hz);
	EXPECT_EQ(same.max_ranges, query.max_ranges);
	EXPECT_EQ(wanted, query.features & wanted);
	query.size = 4;
	EXPECT_ERROR(EINVAL, profil_query_kernel(&query));
}

/*
 * fork(): after it, parent and child have separate counters
 */

TEST_F(library, child_of_a_fork_counts_in_its_own_copy)
{
	struct profil_stats before, after;

	ASSERT_EQ(0, start_in_burn());
	EXPECT_EQ(0, burn_hits(5));
	ASSERT_EQ(0, session_stats(SCOPE, &before));
	EXPECT_CHILD({
		u64 before = sum();
		struct profil_stats stats = classic_stats();

		MUST(stats.state == PROFIL_STATE_ON);
		MUST(stats.hit <= sum() - before);
		MUST(!burn_hits(5));
		stats = classic_stats();
		MUST(accounted(&stats));
		MUST(stats.hit >= 5 && stats.hit <= sum() - before);
		MUST(!stop());
		MUST(is_off(SCOPE));
		MUST(sum() - before >= stats.hit);
	});
	ASSERT_EQ(0, session_stats(SCOPE, &after));
	EXPECT_EQ(PROFIL_STATE_ON, after.state);
	/* All hits of the child were in burn(). */
	EXPECT_EQ(before.hit, after.hit);
	EXPECT_EQ(before.hit, sum());
	EXPECT_EQ(0, burn_hits(after.hit + 1));
	EXPECT_EQ(0, stop());
	EXPECT_LT(before.hit, sum());
}

TEST_F(library, child_of_a_fork_with_a_low_RLIMIT_MEMLOCK_has_an_ended_session)
{
	become_user(1000);
	ASSERT_EQ(0, start_in_burn());
	limit_memlock(0);
	EXPECT_CHILD({
		struct profil_stats stats;

		MUST(await((stats = classic_stats()).state == PROFIL_STATE_ENDED));
		MUST(stats.end == PROFIL_END_LIMIT);
		MUST(accounted(&stats));
		MUST(!pinned_bytes());
	});
	EXPECT_IS_ON();
	EXPECT_EQ(0, burn_hits(1));
}

/*
 * Descriptor sessions
 *
 * Loop i is counted in counter i of page. A counter covers the 32 bytes of a loop.
 */

static u32 page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
static u32 other_page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

#define LOOPS_START	addr(loops_text)
#define LOOPS_END	(LOOPS_START + LOOPS * LOOP_SIZE)

static struct profil_range range_of_loop(unsigned int i)
{
	u64 start = LOOPS_START + i * LOOP_SIZE;

	return profil_range_of(start, start + LOOP_SIZE, 5, &page[i], 1, sizeof(*page));
}

static struct profil_range range_of_all_loops(void)
{
	return profil_range_of(LOOPS_START, LOOPS_END, 5, page, LOOPS, sizeof(*page));
}

static u64 page_sum(void)
{
	return counters_sum(page, sizeof(*page), ARRAY_SIZE(page));
}

/* Opens a session with these members of struct profil_open. */
#define open_session(...)							\
	profil_session_open(&(struct profil_open){				\
		.size = sizeof(struct profil_open),				\
		__VA_ARGS__							\
	})

static struct profil_stats stats_of(int fd)
{
	struct profil_stats stats = { .size = sizeof(stats) };

	if (profil_session_stats(fd, &stats))
		stats.state = UINT32_MAX;
	return stats;
}

static int attach(int fd)
{
	return profil_session_attach(fd, SCOPE, 0, NULL);
}

static int attach_pidfd(int fd, int pidfd)
{
	return profil_session_attach_pidfd(fd, SCOPE, pidfd, NULL);
}

static int add(int fd, struct profil_range *range)
{
	return profil_session_add(fd, PROFIL_SPACE_SELF, range, 1);
}

/* Attaches the caller, with counters for all loops. The session is not enabled. */
static int attach_with_loops(int fd, u32 scope)
{
	struct profil_range range = range_of_all_loops();

	return profil_session_attach(fd, scope, 0, NULL) ?: add(fd, &range);
}

static void begin(int fd, u32 scope)
{
	MUST(!attach_with_loops(fd, scope));
	MUST(!profil_session_enable(fd));
}

/* Disables the session. Returns its statistics, which must add up. */
static struct profil_stats disabled(int fd)
{
	struct profil_stats stats = { .size = sizeof(stats) };

	MUST(!profil_session_disable(fd, &stats));
	MUST(accounted(&stats));
	return stats;
}

/* Runs loop @i until the session has @hits more hits. */
static bool run_hits(int fd, unsigned int i, u64 hits)
{
	u64 until = stats_of(fd).hit + hits;

	return loop_until(i, stats_of(fd).hit >= until);
}

static bool run_ticks(int fd, unsigned int i, u64 ticks)
{
	u64 until = stats_of(fd).ticks + ticks;

	return loop_until(i, stats_of(fd).ticks >= until);
}

static void thread_in_loop(uintptr_t i)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, loop_for_ever, (void *)i));
}

/* Lets ticks pass, in the text of loop 0, which no session but this new one counts. */
static void pass_ticks(void)
{
	MUST(!session_start(SCOPE, 0, NULL, 0));
	MUST(loop_burn(SCOPE, 0, 5));
	MUST(!session_stop(SCOPE, NULL));
}

FIXTURE(session) {
	int fd;
};

FIXTURE_SETUP(session)
{
	ASSERT_DEVICE();
	self->fd = profil_session_open(NULL);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(session)
{
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, pinned_bytes());
}

TEST_F(session, a_new_session_is_off_and_has_no_targets)
{
	const struct profil_stats stats = stats_of(self->fd);

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->fd, F_GETFD));
	EXPECT_EQ(PROFIL_STATE_OFF, stats.state);
	EXPECT_EQ(0, stats.targets);
	EXPECT_EQ(0, stats.ticks);
	EXPECT_EQ(0, stats.locked);
}

TEST_F(session, counts_all_ticks_of_two_threads)
{
	struct profil_range range = range_of_all_loops();
	struct profil_stats stats;
	__u64 space = 0;

	errno = 12345;
	ASSERT_EQ(0, profil_session_attach(self->fd, SCOPE, 0, &space));
	EXPECT_NE(PROFIL_SPACE_SELF, space);
	ASSERT_EQ(0, profil_session_add(self->fd, space, &range, 1));
	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_EQ(12345, errno);
	thread_in_loop(0);
	thread_in_loop(1);
	EXPECT_TRUE(await(stats_of(self->fd).hit >= 100 && counter(page, 4, 0) &&
			  counter(page, 4, 1)));
	stats = disabled(self->fd);
	EXPECT_EQ(stats.hit, page_sum());
	/* The threads still run. */
	pass_ticks();
	EXPECT_LE(100, stats.hit);
	EXPECT_EQ(stats.hit, page[0] + page[1]);
	EXPECT_EQ(stats.hit, page_sum());
	EXPECT_EQ(PROFIL_STATE_OFF, stats.state);
	EXPECT_EQ(1, stats.targets);
	EXPECT_EQ(PAGE, stats.locked);
}

TEST_F(session, thread_session_counts_only_that_thread)
{
	struct profil_stats stats;

	begin(self->fd, PROFIL_SCOPE_THREAD);
	ASSERT_EQ(0, session_start(SCOPE, 0, NULL, 0));
	thread_in_loop(1);
	EXPECT_TRUE(run_hits(self->fd, 0, 5));
	stats = disabled(self->fd);
	EXPECT_EQ(0, session_stop(SCOPE, NULL));
	EXPECT_LE(5, page[0]);
	EXPECT_EQ(stats.hit, page[0]);
	EXPECT_EQ(0, page[1]);
}

TEST_F(session, counts_in_ranges_that_are_added_and_removed)
{
	struct profil_range range[2] = { range_of_loop(0), range_of_loop(1) };
	struct profil_stats stats;
	u64 hits;

	ASSERT_EQ(0, attach(self->fd));
	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_TRUE(run_ticks(self->fd, 0, 3));
	stats = stats_of(self->fd);
	EXPECT_EQ(stats.ticks, stats.outside);

	ASSERT_EQ(0, add(self->fd, &range[0]));
	EXPECT_TRUE(run_hits(self->fd, 0, 3));
	/* The call adds all ranges or none: the first one exists already. */
	EXPECT_ERROR(EINVAL, profil_session_add(self->fd, PROFIL_SPACE_SELF, range, 2));
	EXPECT_TRUE(run_ticks(self->fd, 1, 3));
	EXPECT_EQ(0, counter(page, 4, 1));
	ASSERT_EQ(0, add(self->fd, &range[1]));
	EXPECT_TRUE(run_hits(self->fd, 1, 3));
	EXPECT_LE(3, counter(page, 4, 1));

	ASSERT_EQ(0, profil_session_remove(self->fd, PROFIL_SPACE_SELF, range[0].start,
					   range[0].end));
	hits = counter(page, 4, 0);
	EXPECT_TRUE(run_ticks(self->fd, 0, 3));
	EXPECT_EQ(hits, counter(page, 4, 0));
	/* The first range is gone. Only a part of the second is in these addresses, so it stays. */
	EXPECT_EQ(0, profil_session_remove(self->fd, PROFIL_SPACE_SELF, range[0].start,
					   range[1].end - 1));
	EXPECT_TRUE(run_hits(self->fd, 1, 2));
	EXPECT_EQ(PAGE, pinned_bytes());
	EXPECT_EQ(0, profil_session_remove(self->fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	EXPECT_EQ(0, pinned_bytes());

	EXPECT_EQ(disabled(self->fd).hit, page_sum());
}

TEST_F(session, can_be_disabled_and_enabled_again)
{
	struct profil_stats first, second = { .size = sizeof(second) };

	ASSERT_EQ(0, attach_with_loops(self->fd, SCOPE));
	EXPECT_ERROR(EINVAL, profil_session_disable(self->fd, NULL));
	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_ERROR(EBUSY, profil_session_enable(self->fd));
	EXPECT_TRUE(run_hits(self->fd, 0, 3));
	first = disabled(self->fd);
	EXPECT_ERROR(EINVAL, profil_session_disable(self->fd, &second));

	pass_ticks();
	EXPECT_EQ(first.hit, page_sum());
	EXPECT_EQ(first.ticks, stats_of(self->fd).ticks);

	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_TRUE(run_hits(self->fd, 0, 3));
	second = disabled(self->fd);
	EXPECT_LE(first.hit + 3, second.hit);
	EXPECT_EQ(second.hit, page_sum());
}

/*
 * Takes snapshots while the session counts: each agrees with its statistics, and with RESET each
 * tick is in exactly one snapshot.
 */
TEST_F(session, snapshots_agree_with_their_statistics_and_can_reset)
{
	struct profil_copy copy = {
		.from = addr(page),
		.to = addr(other_page),
		.bytes = LOOPS * sizeof(*page),
	};
	struct profil_stats stats = { .size = sizeof(stats) };

	begin(self->fd, SCOPE);
	thread_in_loop(2);
	for (unsigned int i = 0; i < 20; i++) {
		EXPECT_TRUE(run_hits(self->fd, 3, 2));
		ASSERT_EQ(0, profil_session_snapshot(self->fd, i % 2 ? PROFIL_SNAPSHOT_RESET : 0,
						     &copy, 1, &stats));
		EXPECT_TRUE(accounted(&stats));
		EXPECT_LE(2, stats.hit);
		EXPECT_EQ(stats.hit, counters_sum(other_page, 4, LOOPS));
	}
	EXPECT_TRUE(run_hits(self->fd, 3, 1));
	EXPECT_EQ(disabled(self->fd).hit, page_sum());

	/* Without a destination, the call copies nothing. It resets counters and statistics. */
	copy.to = 0;
	EXPECT_EQ(0, profil_session_snapshot(self->fd, PROFIL_SNAPSHOT_RESET, &copy, 1, NULL));
	EXPECT_EQ(0, page_sum());
	EXPECT_EQ(0, stats_of(self->fd).ticks);
	EXPECT_EQ(0, profil_session_snapshot(self->fd, 0, NULL, 0, &stats));
	EXPECT_EQ(0, stats.ticks);

	EXPECT_ERROR(EOPNOTSUPP, profil_session_snapshot(self->fd, 1U << 31, NULL, 0, NULL));
	copy.from = sizeof(*page);
	EXPECT_ERROR(EFAULT, profil_session_snapshot(self->fd, 0, &copy, 1, NULL));
	copy.from = addr(page) + 1;
	EXPECT_ERROR(EINVAL, profil_session_snapshot(self->fd, 0, &copy, 1, NULL));
}

TEST_F(session, wrong_arguments_are_errors)
{
	struct profil_range range = range_of_all_loops(), wrong;
	struct profil_stats stats = { 0 };
	pid_t gone = FORK();
	int pipes[2];

	/* options */
	EXPECT_ERROR(EINVAL, open_session(.modes = 0));
	EXPECT_ERROR(EOPNOTSUPP, open_session(.modes = MODES_ALL, .fork = 77));
	EXPECT_ERROR(EOPNOTSUPP, open_session(.modes = MODES_ALL, .exec = 77));
	EXPECT_ERROR(EINVAL, profil_session_open(&(struct profil_open){ .modes = MODES_ALL }));

	/* descriptors */
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_ERROR(ENOTTY, profil_session_enable(pipes[0]));
	EXPECT_ERROR(ENOTTY, profil_session_enable(device_fd()));
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_ERROR(EBADF, profil_session_enable(pipes[0]));
	EXPECT_ERROR(EBADF, profil_session_read(pipes[0], page, sizeof(page)));

	/* targets */
	ASSERT_EQ(0, status_of(gone));
	EXPECT_ERROR(ESRCH, profil_session_attach(self->fd, SCOPE, gone, NULL));
	EXPECT_ERROR(EOPNOTSUPP, profil_session_attach(self->fd, 77, 0, NULL));
	EXPECT_EQ(0, stats_of(self->fd).targets);
	EXPECT_EQ(0, attach(self->fd));
	EXPECT_ERROR(EBUSY, profil_session_attach(self->fd, SCOPE, getpid(), NULL));
	EXPECT_ERROR(EBUSY, profil_session_attach(self->fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(1, stats_of(self->fd).targets);

	/* ranges */
	EXPECT_ERROR(EINVAL, profil_session_add(self->fd, PROFIL_SPACE_SELF, NULL, 0));
	EXPECT_ERROR(EFAULT, add(self->fd, (void *)16));
	EXPECT_ERROR(ESRCH, profil_session_add(self->fd, 1ULL << 60, &range, 1));
	wrong = range;
	wrong.width = 3;
	EXPECT_ERROR(EOPNOTSUPP, add(self->fd, &wrong));
	wrong = range;
	wrong.buffer++;
	EXPECT_ERROR(EINVAL, add(self->fd, &wrong));
	wrong = range;
	wrong.buffer = 4096;
	EXPECT_ERROR(EFAULT, add(self->fd, &wrong));
	EXPECT_ERROR(ESRCH, profil_session_remove(self->fd, UINT64_MAX, 0, 1));
	EXPECT_ERROR(EINVAL, profil_session_remove(self->fd, PROFIL_SPACE_SELF, 1, 1));
	EXPECT_EQ(0, pinned_bytes());

	/* statistics: size must be set */
	EXPECT_ERROR(EINVAL, profil_session_stats(self->fd, &stats));
	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_ERROR(EINVAL, profil_session_disable(self->fd, &stats));
	EXPECT_EQ(PROFIL_STATE_ON, stats_of(self->fd).state);
	EXPECT_EQ(0, profil_session_disable(self->fd, NULL));
}

/* Replaces the fixture's session by another one with these options. */
#define REOPEN(...) do {							\
	close(self->fd);							\
	self->fd = open_session(.modes = MODES_ALL, __VA_ARGS__);		\
	ASSERT_LE(0, self->fd);							\
} while (0)

TEST_F(session, RLIMIT_MEMLOCK_is_respected)
{
	static u32 large[PAGE_MAX] PAGE_ALIGNED;
	struct profil_range range = profil_range_of(0, 1 << 20, 6, large, PAGE, 4);

	limit_memlock(PAGE);
	/* A session that root has opened may lock more. */
	become_user(1000);
	REOPEN();
	ASSERT_EQ(0, attach(self->fd));
	EXPECT_ERROR(EPERM, add(self->fd, &range));
	EXPECT_ERROR(EPERM, open_session(.modes = MODES_ALL, .nr_records = 4096));
	range.nr_counters = PAGE / 4;
	EXPECT_EQ(0, add(self->fd, &range));
	EXPECT_EQ(PAGE, pinned_bytes());
}

/*
 * Other processes
 */

TEST_F(session, samples_the_child_of_a_pidfd)
{
	struct profil_range range = range_of_all_loops();
	pid_t child = SPAWN(!!loop_for_ever(NULL));
	int pidfd = pidfd_open(child, 0);
	struct profil_stats stats;
	__u64 space = 0;

	ASSERT_LE(0, pidfd);
	if (geteuid()) {
		EXPECT_ERROR(EPERM, attach_pidfd(self->fd, pidfd));
		EXPECT_EQ(0, stats_of(self->fd).targets);
	} else {
		ASSERT_EQ(0, profil_session_attach_pidfd(self->fd, SCOPE, pidfd, &space));
		EXPECT_ERROR(EBUSY, attach_pidfd(self->fd, pidfd));
		/* The address space of this process is not part of the session. */
		EXPECT_ERROR(ESRCH, add(self->fd, &range));
		ASSERT_EQ(0, profil_session_add(self->fd, space, &range, 1));
		ASSERT_EQ(0, profil_session_enable(self->fd));
		EXPECT_TRUE(await(stats_of(self->fd).hit >= 5));
		stats = disabled(self->fd);
		EXPECT_EQ(stats.hit, page[0]);
		EXPECT_EQ(stats.hit, page_sum());
	}
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(stats_of(self->fd).targets == 0));
	EXPECT_ERROR(ESRCH, attach_pidfd(self->fd, pidfd));
	close(pidfd);
}

TEST_F(session, attaches_only_pidfds)
{
	char before[4096], after[4096];
	int pidfd = pidfd_open(getpid(), 0), null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, pidfd);
	ASSERT_LE(0, null_fd);
	descriptors(before, sizeof(before));
	EXPECT_ERROR(EBADF, attach_pidfd(self->fd, null_fd));
	EXPECT_ERROR(EBADF, attach_pidfd(self->fd, self->fd));
	EXPECT_ERROR(EBADF, attach_pidfd(self->fd, -1));
	EXPECT_EQ(0, stats_of(self->fd).targets);
	EXPECT_EQ(0, attach_pidfd(self->fd, pidfd));
	EXPECT_EQ(1, stats_of(self->fd).targets);
	descriptors(after, sizeof(after));
	EXPECT_STREQ(before, after);
}

/*
 * The library's calls of ioctl() call this function. On PROFIL_IOC_ATTACH it kills the process
 * dies_in_attach and waits for it, as if that process had exited during the ioctl.
 */
static pid_t dies_in_attach;

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (dies_in_attach && cmd == PROFIL_IOC_ATTACH) {
		kill(dies_in_attach, SIGKILL);
		waitpid(dies_in_attach, NULL, 0);
		dies_in_attach = 0;
		return 0;
	}
	return syscall(SYS_ioctl, fd, cmd, arg);
}

TEST(a_process_that_exits_during_attach_is_ESTALE)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), pidfd;

	dies_in_attach = spawn(pause);
	pidfd = pidfd_open(dies_in_attach, 0);
	ASSERT_LE(0, pidfd);
	EXPECT_ERROR(ESTALE, attach_pidfd(null_fd, pidfd));
	EXPECT_EQ(0, dies_in_attach);
	/* Now the library notices the exit before the ioctl, which would fail with ENOTTY. */
	EXPECT_ERROR(ESRCH, attach_pidfd(null_fd, pidfd));
	EXPECT_ERROR(ENOTTY, attach_pidfd(null_fd, pidfd_open(getpid(), 0)));
}

/*
 * In a pid namespace without its own /proc, /proc shows the ids of the outer namespace. Here the
 * outer id of this process is the inner id of its child.
 */
static int attach_in_namespace(int session_fd)
{
	int pidfd = pidfd_open(getpid(), 0);
	char outer[16] = "", text[16];
	pid_t child;

	MUST(getpid() == 1);
	MUST(pidfd >= 0);
	MUST(readlink("/proc/self", outer, sizeof(outer) - 1) > 0);
	snprintf(text, sizeof(text), "%d", atoi(outer) - 1);
	MUST(!file_write("/proc/sys/kernel/ns_last_pid", text));
	child = SPAWN(!!loop_for_ever(NULL));
	MUST(child == atoi(outer));
	MUST_FAIL(ESRCH, attach_pidfd(session_fd, pidfd));
	MUST(!stats_of(session_fd).targets);
	MUST(!attach(session_fd));
	MUST(stats_of(session_fd).targets == 1);
	MUST(killed(child) == 128 + SIGKILL);
	return 0;
}

TEST_F(session, a_pidfd_with_proc_of_another_pid_namespace_is_ESRCH)
{
	SKIP_IF(geteuid(), "needs a pid namespace: run as root");
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	EXPECT_EQ(0, status_in_child(attach_in_namespace(self->fd)));
}

TEST_F(session, another_process_needs_CAP_PERFMON)
{
	const pid_t stranger = getpid();

	EXPECT_CHILD({
		struct profil_range range = { .end = 1, .width = 2, .granule = 1, .step = 1 };

		/* The child also changes to another user. */
		become_user(1000);
		MUST_FAIL(EPERM, profil_session_attach(self->fd, SCOPE, stranger, NULL));
		/* A process may join the session itself. */
		MUST(!attach(self->fd));
		MUST_FAIL(EPERM, add(self->fd, &range));
	});
}

TEST_F(session, PROFIL_FORK_SHARE_counts_parent_and_child_in_the_same_counters)
{
	struct profil_stats stats;

	REOPEN(.fork = PROFIL_FORK_SHARE);
	begin(self->fd, SCOPE);
	EXPECT_TRUE(run_hits(self->fd, 0, 2));
	EXPECT_CHILD({
		u32 own = page[5];

		MUST(run_hits(self->fd, 5, 5));
		/* The hits are in the memory of the session's creator, not here. */
		MUST(page[5] == own);
	});
	EXPECT_TRUE(await(stats_of(self->fd).targets == 1));
	stats = disabled(self->fd);
	EXPECT_LE(2, page[0]);
	EXPECT_LE(5, page[5]);
	EXPECT_EQ(stats.hit, page[0] + page[5]);
}

/*
 * Records
 */

static u64 records[8192];	/* buffer, aligned for records */

#define for_each_record(r, buf, len)					\
	for ((r) = profil_record_first(buf, len); (r);			\
	     (r) = profil_record_next(buf, len, r))

TEST_F(session, each_tick_outside_leaves_a_record)
{
	char self_exe[PATH_MAX] = "", comm[16] = "";
	const struct profil_record *r, *last;
	struct profil_range range = range_of_loop(0);
	struct profil_stats stats;
	u64 n = 0, in_loop = 0, before = now_ns();
	__u64 space;
	ssize_t len;

	ASSERT_LT(0, readlink("/proc/self/exe", self_exe, sizeof(self_exe) - 1));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "fifteen letters"));
	ASSERT_EQ(0, prctl(PR_GET_NAME, comm));
	REOPEN(.nr_records = 4096);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, profil_session_attach(self->fd, SCOPE, 0, &space));
	ASSERT_EQ(0, profil_session_add(self->fd, space, &range, 1));
	EXPECT_ERROR(EAGAIN, profil_session_read(self->fd, records, sizeof(records)));
	ASSERT_EQ(0, profil_session_enable(self->fd));
	EXPECT_TRUE(run_ticks(self->fd, 0, 5));
	EXPECT_TRUE(run_ticks(self->fd, 3, 10));
	stats = disabled(self->fd);
	EXPECT_EQ(0, stats.dropped_record);
	EXPECT_LT(0, stats.hit);

	EXPECT_ERROR(EINVAL, profil_session_read(self->fd, records, 8));
	while ((len = profil_session_read(self->fd, records, sizeof(records))) > 0) {
		last = NULL;
		for_each_record(r, records, len) {
			n++;
			last = r;
			EXPECT_EQ(getpid(), r->pid);
			EXPECT_EQ(getpid(), r->tid);
			EXPECT_STREQ(comm, r->comm);
			EXPECT_EQ(space, r->space);
			EXPECT_LE(before, r->time);
			EXPECT_GE(now_ns(), r->time);
			/* not in the range */
			EXPECT_TRUE(r->pc < range.start || r->pc >= range.end);
			if (r->flags & PROFIL_RECORD_MAPPED) {
				EXPECT_LE(r->start, r->pc);
				EXPECT_GT(r->end, r->pc);
			}
			if (r->pc < LOOPS_START || r->pc >= LOOPS_END)
				continue;
			in_loop++;
			EXPECT_EQ(LOOPS_START + 3 * LOOP_SIZE, r->pc & ~(LOOP_SIZE - 1ULL));
			EXPECT_TRUE(r->flags & PROFIL_RECORD_MAPPED);
			EXPECT_TRUE(r->flags & PROFIL_RECORD_FILE);
			EXPECT_STREQ(self_exe, r->path);
		}
		/* The last record ends where the data ends. */
		ASSERT_NE(NULL, last);
		EXPECT_EQ((const char *)records + len, (const char *)last + last->size);
	}
	EXPECT_EQ(-1, len);
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(stats.outside, n);
	EXPECT_LT(0, in_loop);
}

/* Records of a process that has exited can still be read. */
TEST_F(session, read_returns_0_when_no_target_is_left)
{
	const struct profil_record *r;
	u64 n = 0;
	ssize_t len;
	pid_t child;

	REOPEN(.nr_records = 4096);
	ASSERT_EQ(0, profil_session_enable(self->fd));
	child = FORK({
		MUST(!attach(self->fd));
		MUST(run_ticks(self->fd, 3, 3));
	});
	ASSERT_EQ(0, status_of(child));
	while ((len = profil_session_read(self->fd, records, sizeof(records))) > 0) {
		for_each_record(r, records, len) {
			n++;
			EXPECT_EQ(child, r->pid);
		}
	}
	EXPECT_EQ(0, len);
	EXPECT_LE(3, n);
	EXPECT_EQ(stats_of(self->fd).outside, n);
}

static atomic_int interrupted;

static void on_sigusr1(int sig)
{
	(void)sig;
	interrupted++;
}

/* Returns true if the main thread is blocked in read(). */
static bool reads(void)
{
	return file_number("/proc/self/syscall", "") == SYS_read;
}

static void *interrupt_and_enable(void *fd)
{
	for (int i = 1; i <= 3; i++) {
		MUST(await(reads()));
		MUST(!tgkill(getpid(), getpid(), SIGUSR1));
		MUST(await(interrupted == i));
	}
	MUST(await(reads()));
	MUST(!profil_session_enable(*(int *)fd));
	return loop_for_ever((void *)3);
}

TEST_F(session, read_continues_after_a_signal)
{
	const struct sigaction action = { .sa_handler = on_sigusr1 };	/* no SA_RESTART */
	pthread_t thread;
	ssize_t len;

	REOPEN(.nr_records = 4096);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, attach(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, interrupt_and_enable, &self->fd));
	len = profil_session_read(self->fd, records, sizeof(records));
	EXPECT_LT(0, len) TH_LOG("%s", strerror(errno));
	EXPECT_EQ(3, interrupted);
	EXPECT_NE(NULL, profil_record_first(records, len));
	EXPECT_EQ(0, profil_session_disable(self->fd, NULL));
}

/*
 * Calculations, without the device
 */

/* Writes a record with a path of @path letters to @at. Returns its size. */
static u32 put_record(void *at, unsigned int path)
{
	struct profil_record *r = at;
	u32 size = (HEADER + path + 1 + 7) & ~7U;

	memset(r, 0, size);
	r->size = size;
	memset(r->comm, 'c', sizeof(r->comm) - 1);
	memset((char *)at + HEADER, 'p', path);
	return size;
}

/* Returns the number of records in the @len bytes at @buf. */
static unsigned int nr_records(const void *buf, ssize_t len)
{
	const struct profil_record *r;
	unsigned int n = 0;

	for_each_record(r, buf, len)
		n++;
	return n;
}

TEST(an_incomplete_or_invalid_record_ends_the_iteration)
{
	const size_t size = PAGE;
	const unsigned int paths[] = { 0, 7, 8, 100 };
	size_t ends[ARRAY_SIZE(paths)], len = 0, cut, n;
	u8 *p, *buf, whole[1024] __attribute__((aligned(8)));
	struct profil_record *r;

	p = pages_guarded(1);
	for (n = 0; n < ARRAY_SIZE(paths); n++) {
		len += put_record(whole + len, paths[n]);
		ends[n] = len;
	}
	ASSERT_GT(sizeof(whole), len);

	/*
	 * Truncates the records to each length. As far as alignment allows, the memory behind them
	 * is unmapped.
	 */
	for (cut = 0; cut <= len; cut++) {
		buf = p + size - ((cut + 7) & ~7UL);
		memcpy(buf, whole, cut);
		for (n = 0; n < ARRAY_SIZE(ends) && ends[n] <= cut; n++)
			;
		EXPECT_EQ(n, nr_records(buf, cut)) {
			TH_LOG("%zu bytes", cut);
		}
	}
	EXPECT_EQ(0, nr_records(NULL, 0));
	EXPECT_EQ(0, nr_records(NULL, -1));
	EXPECT_EQ(0, nr_records(whole, -1));
	EXPECT_EQ(0, nr_records(whole, -SSIZE_MAX - 1));

	/* Breaks the second record in each possible way: only the first one is left. */
	buf = p + size - len;
	r = (void *)(buf + ends[0]);
	memcpy(buf, whole, len);
	EXPECT_EQ(ARRAY_SIZE(paths), nr_records(buf, len));
	for (n = 0; n <= HEADER; n++) {
		r->size = n;
		EXPECT_EQ(1, nr_records(buf, len));
	}
	r->size = ends[1] - ends[0] + 1;
	EXPECT_EQ(1, nr_records(buf, len));
	r->size = len - ends[0] + 8;
	EXPECT_EQ(1, nr_records(buf, len));
	r->size = UINT32_MAX & ~7U;
	EXPECT_EQ(1, nr_records(buf, len));
	memcpy(buf, whole, len);
	memset(r->comm, 'c', sizeof(r->comm));
	EXPECT_EQ(1, nr_records(buf, len));
	memcpy(buf, whole, len);
	memset((char *)r + HEADER, 'p', r->size - HEADER);
	EXPECT_EQ(1, nr_records(buf, len));
}

TEST(the_stack_of_a_record_is_found_if_it_is_within_the_record)
{
	const unsigned int paths[] = { 0, 7, 8, 100 };
	u8 buf[1024] __attribute__((aligned(8)));
	struct profil_record *r = (void *)buf;
	struct profil_stack *stack;
	u32 at;

	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		at = put_record(buf, paths[i]);
		stack = (void *)(buf + at);
		memset(stack, 0, sizeof(*stack));
		EXPECT_EQ(NULL, profil_record_stack(r));
		r->flags = PROFIL_RECORD_STACK;
		EXPECT_EQ(NULL, profil_record_stack(r));
		r->size = at + sizeof(*stack) - 8;
		EXPECT_EQ(NULL, profil_record_stack(r));
		r->size = at + sizeof(*stack);
		EXPECT_EQ(stack, profil_record_stack(r));
		stack->nr = 3;
		EXPECT_EQ(NULL, profil_record_stack(r));
		r->size += 2 * sizeof(u64);
		EXPECT_EQ(NULL, profil_record_stack(r));
		r->size += sizeof(u64);
		EXPECT_EQ(stack, profil_record_stack(r));
		stack->nr = UINT32_MAX;
		EXPECT_EQ(NULL, profil_record_stack(r));
	}
}

/* The formula of the ABI, with numbers that do not overflow. */
static u64 counter_of(const struct profil_range *r, u64 pc)
{
	return (pc - r->offset) / r->granule * r->scale / 65536 / r->step;
}

TEST(profil_range_of_covers_all_text_with_counters_of_2_to_the_shift_bytes)
{
	const u64 start = 0x555555554123, size = 0x12345678;

	for (unsigned int shift = 0; shift <= 28; shift++) {
		u64 nr = profil_range_counters(start, start + size, shift);
		struct profil_range r = profil_range_of(start, start + size, shift, page, nr, 4);

		EXPECT_EQ(start, r.start);
		EXPECT_EQ(start + size, r.end);
		EXPECT_EQ(addr(page), r.buffer);
		EXPECT_EQ(nr, r.nr_counters);
		EXPECT_EQ(4, r.width);
		for (u64 d = 0; d < size; d += size / 1000 + 1)
			EXPECT_EQ(d >> shift, counter_of(&r, start + d));
		EXPECT_EQ(nr - 1, counter_of(&r, start + size - 1));
		/* the boundary between two counters */
		if (size >> shift) {
			EXPECT_EQ(0, counter_of(&r, start + (1ULL << shift) - 1));
			EXPECT_EQ(1, counter_of(&r, start + (1ULL << shift)));
		}
	}
	EXPECT_EQ(1, profil_range_counters(start, start + 1, 28));
	EXPECT_EQ(1, profil_range_counters(start, start + 16, 4));
	EXPECT_EQ(2, profil_range_counters(start, start + 17, 4));
}

TEST_F(session, accepts_ranges_of_each_granularity)
{
	ASSERT_EQ(0, attach(self->fd));
	for (unsigned int shift = 0; shift <= 40; shift++) {
		u64 nr = profil_range_counters(LOOPS_START, LOOPS_END, shift);
		struct profil_range r = profil_range_of(LOOPS_START, LOOPS_END, shift, page, nr, 4);

		if (shift > 28) {
			EXPECT_ERROR(EINVAL, add(self->fd, &r));
			continue;
		}
		EXPECT_EQ(0, add(self->fd, &r));
		EXPECT_EQ(0, profil_session_remove(self->fd, PROFIL_SPACE_SELF, r.start, r.end));
	}
}

/*
 * Without the device, or without the permission to open it: in a mount namespace with another /dev
 */

FIXTURE(dev) {
	dev_t device;
};

FIXTURE_SETUP(dev)
{
	struct stat st;

	ASSERT_EQ(0, stat(PROFIL_DEVICE, &st));
	self->device = st.st_rdev;
}

FIXTURE_TEARDOWN(dev)
{
}

#define NEED_OWN_DEV()								\
	SKIP_IF(unshare(CLONE_NEWNS) ||						\
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||		\
		mount("none", "/dev", "tmpfs", 0, "mode=755"),			\
		"needs a mount namespace: run as root")

/* Makes another file of the device's name. */
static void make_device(mode_t mode, dev_t device)
{
	unlink(PROFIL_DEVICE);
	MUST(!mknod(PROFIL_DEVICE, mode, device));
	MUST(!chmod(PROFIL_DEVICE, mode & 0777));
}

TEST_F(dev, without_the_device_calls_are_ENOSYS)
{
	NEED_OWN_DEV();
	calls_fail(ENOSYS);
	ASSERT_EQ(0, umount("/dev"));
	EXPECT_EQ(0, start_in_burn());
	EXPECT_EQ(0, stop());
	EXPECT_LE(0, profil_session_open(NULL));
}

TEST_F(dev, without_a_driver_calls_are_ENOSYS)
{
	NEED_OWN_DEV();
	make_device(S_IFCHR | 0666, makedev(major(self->device), 254));
	calls_fail(ENOSYS);
	make_device(S_IFCHR | 0666, makedev(511, 7));
	calls_fail(ENOSYS);
}

TEST_F(dev, a_file_that_is_not_the_device_is_ENOSYS)
{
	NEED_OWN_DEV();
	make_device(S_IFREG | 0666, 0);
	calls_fail(ENOSYS);
	make_device(S_IFCHR | 0666, makedev(1, 3));	/* /dev/null */
	calls_fail(ENOSYS);
}

TEST_F(dev, without_permission_for_the_device_calls_are_EACCES)
{
	NEED_OWN_DEV();
	make_device(S_IFCHR | 0600, self->device);
	EXPECT_EQ(0, start_in_burn());
	EXPECT_EQ(0, stop());
	become_user(1000);
	calls_fail(EACCES);
}

/* libc_profil is linked without the library. Here it runs with the shared library preloaded. */
TEST(a_preloaded_library_replaces_profil_of_libc)
{
	EXPECT_EQ(0, run_beside("libc_profil", "libprofil.so.1"));
}

/* Checks the test above: without the library, profil() of the C library counts. */
TEST(without_the_library_profil_of_libc_counts)
{
	EXPECT_EQ(2, run_beside("libc_profil", NULL));
}

TEST_HARNESS_MAIN
