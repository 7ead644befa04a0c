// SPDX-License-Identifier: GPL-2.0
/*
 * A session counts in the pages that it pinned at its start, until it stops, even if the program
 * changes the mapping of these pages, or memory management acts on them.
 *
 * Loop 0 is counted on the first page of the buffer, loop 1 on the last. In the variant "quiet",
 * loop 0 runs only when the test runs it, so the counts before and after an event are exact. In
 * the variant "busy", a thread runs loop 0 all the time, on another CPU if there is one.
 */
#include "kselftest_harness.h"

/* Swap and large mappings take long on a busy machine. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#include "cgroup.h"
#include "held.h"
#include "kernel.h"
#include "loop.h"
#include "madvise.h"
#include "process.h"
#include "swap_area.h"
#include "threads.h"

#define SIZE		(4 * PAGE)
#define LAST		(SIZE / 4 - 1)	/* index of the last counter */

#define SOME		3	/* ticks before and after an event */

/* These can be static, since each test runs in its own process. */
static u32 *buffer;
static u32 *again;		/* another mapping of the same file */
static int memfd = -1;
static u64 locked;

FIXTURE(pinned) {
};

FIXTURE_VARIANT(pinned) {
	bool busy;
};

FIXTURE_VARIANT_ADD(pinned, quiet) { .busy = false };
FIXTURE_VARIANT_ADD(pinned, busy) { .busy = true };

FIXTURE_SETUP(pinned)
{
	ASSERT_DEVICE();
	locked = pinned_bytes();
	if (variant->busy)
		start_beside(run_loop, 0);
}

/* Nothing of the session may remain. */
FIXTURE_TEARDOWN(pinned)
{
	stop_beside();
	session_stop(PROCESS, NULL);
	EXPECT_EQ(locked, pinned_bytes());
}

static bool map_anonymous(void)
{
	buffer = map_private(SIZE);
	return true;
}

static bool map_memfd(void)
{
	memfd = memfd_create("pinned", MFD_CLOEXEC);
	if (memfd < 0 || ftruncate(memfd, SIZE))
		return false;
	buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	again = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, memfd, 0);
	return buffer != MAP_FAILED && again != MAP_FAILED;
}

/* Maps a buffer that begins at a huge page, with one more huge page of memory behind it. */
static bool map_huge(void)
{
	char *p = map_private(3 * HUGE_PAGE);
	u32 *huge = (u32 *)(((uintptr_t)p + HUGE_PAGE - 1) & -HUGE_PAGE);

	if (madvise(huge, HUGE_PAGE, MADV_HUGEPAGE))
		return false;
	buffer = memset(huge, 0, HUGE_PAGE);
	return true;
}

#define MAP(map) do {									\
	bool mapped_ = map();								\
											\
	SKIP_IF(!mapped_ && (map) == map_huge, "this kernel has no huge pages");	\
	ASSERT_TRUE(mapped_);								\
} while (0)

/* Counts the user ticks of the two loops, and nothing between two runs of these. */
static int start(void)
{
	struct profil_range ranges[2];

	ranges_at_ends(ranges, buffer, SIZE);
	return session_start_modes(PROCESS, PROFIL_MODE_USER, ranges, 2);
}

static u64 hits(void)
{
	struct profil_stats s;

	return session_stats(PROCESS, &s) ? 0 : s.hit;
}

/* Waits for more hits of loop 0, which the thread or this function runs. */
static bool tick(void)
{
	u64 until = hits() + SOME;

	return nr_beside ? await(hits() >= until) : loop_until(0, hits() >= until);
}

/* Maps the buffer, starts the session, and waits for hits. */
#define START_IN(map) do {							\
	MAP(map);								\
	ASSERT_EQ(0, start());							\
	EXPECT_TRUE(tick());							\
} while (0)

/* Checks that the session is on, and that both loops get more hits. */
static void expect_on(struct __test_metadata *_metadata)
{
	struct profil_stats s;

	EXPECT_TRUE(tick());
	EXPECT_TRUE(loop_burn(PROCESS, 1, SOME));
	ASSERT_EQ(0, session_stats(PROCESS, &s));
	ASSERT_EQ((u32)PROFIL_STATE_ON, s.state) {
		TH_LOG("end %u", s.end);
	}
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(SIZE, s.locked);
	EXPECT_EQ(locked + SIZE, pinned_bytes());
}

/*
 * Stops the session. Checks that its statistics add up, and that as much memory is locked as before
 * the test.
 */
static struct profil_stats stop(struct __test_metadata *_metadata)
{
	struct profil_stats s;

	stop_beside();
	EXPECT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	/* Only ticks of the exiting thread may be dropped. */
	EXPECT_EQ(s.dropped_exit, s.dropped);
	EXPECT_EQ(locked, pinned_bytes());
	return s;
}

/*
 * Events that leave the pages where they are mapped
 */

static void expect_same(struct __test_metadata *_metadata, bool (*event)(void))
{
	struct profil_stats s;

	ASSERT_EQ(0, start());
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_TRUE(tick());
		ASSERT_TRUE(event()) {
			TH_LOG("errno %d", errno);
		}
	}
	expect_on(_metadata);
	s = stop(_metadata);
	EXPECT_LE(4 * SOME + 0U, s.hit);
	EXPECT_EQ(s.hit, buffer[0] + buffer[LAST]);
	EXPECT_EQ(s.hit, counters_sum(buffer, 4, SIZE / 4));
}

#define PAGE_EVENT(name, cond)							\
	static bool event_##name(void)						\
	{									\
		return cond;							\
	}

/* A test that maps the buffer, and checks that the event leaves the pages. */
#define TEST_SAME(name, map, event)						\
	TEST_F(pinned, name)							\
	{									\
		MAP(map);							\
		expect_same(_metadata, event);					\
	}

static bool event_fork(void)
{
	/* It writes to its own copy, or to shared memory; the parent's pages must stay the same. */
	pid_t child = FORK(buffer[1] = 0);

	return tick() && !status_of(child);
}

TEST_SAME(pages_stay_after_fork, map_anonymous, event_fork)
TEST_SAME(shared_pages_stay_after_fork, map_memfd, event_fork)

PAGE_EVENT(free, !madvise(buffer, SIZE, MADV_FREE))
TEST_SAME(pages_stay_after_MADV_FREE, map_anonymous, event_free)

PAGE_EVENT(rwx,
	   !mprotect(buffer, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	   tick() && !mprotect(buffer, PAGE, PROT_READ | PROT_WRITE))
TEST_SAME(pages_stay_after_mprotect_to_RWX, map_anonymous, event_rwx)

/* The session counts while the program cannot write to the pages. */
PAGE_EVENT(protect,
	   !mprotect(buffer, SIZE, PROT_READ) && tick() &&
	   !mprotect((char *)buffer + SIZE - PAGE, PAGE, PROT_NONE) && tick() &&
	   !mprotect(buffer, SIZE, PROT_NONE) && tick() &&
	   !mprotect(buffer, SIZE, PROT_READ | PROT_WRITE))
TEST_SAME(pages_stay_after_mprotect_to_read_only_and_to_none, map_anonymous, event_protect)
TEST_SAME(shared_pages_stay_after_mprotect_to_read_only_and_to_none, map_memfd, event_protect)

#define BIG (128UL << 20)

PAGE_EVENT(big_rwx,
	   !mprotect(buffer, BIG, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	   !mprotect(buffer, BIG, PROT_READ | PROT_WRITE))

/* Each change of all these pages takes several ticks. */
TEST_F(pinned, pages_stay_during_a_long_mprotect)
{
	buffer = map_small(BIG);
	for (unsigned long i = 0; i < BIG; i += PAGE)
		((volatile char *)buffer)[i] = 0;
	expect_same(_metadata, event_big_rwx);
}

PAGE_EVENT(clear_refs,
	   !file_write("/proc/self/clear_refs", "4") &&
	   !file_write("/proc/self/clear_refs", "1"))
TEST_SAME(pages_stay_after_clear_refs, map_anonymous, event_clear_refs)

PAGE_EVENT(pageout,
	   !madvise(buffer, SIZE, MADV_COLD) &&
	   !madvise(buffer, SIZE, MADV_PAGEOUT))
TEST_SAME(pages_stay_after_MADV_PAGEOUT, map_anonymous, event_pageout)

static bool event_mlock(void)
{
	bool counted = !mlock(buffer, SIZE) && tick();

	return !munlock(buffer, SIZE) && counted;
}

TEST_SAME(pages_stay_after_mlock_and_munlock, map_anonymous, event_mlock)

#define COMPACT "/proc/sys/vm/compact_memory"

PAGE_EVENT(compact, !file_write(COMPACT, "1"))

TEST_F(pinned, pages_stay_after_compaction)
{
	SKIP_IF(access(COMPACT, W_OK), "%s: needs root and COMPACTION", COMPACT);
	MAP(map_anonymous);
	expect_same(_metadata, event_compact);
}

#define KSM "/sys/kernel/mm/ksm/"

static bool event_mergeable(void)
{
	long long scans = file_number(KSM "full_scans", "");

	/* KSM merges pages that were the same in two scans. */
	return !madvise(buffer, SIZE, MADV_MERGEABLE) &&
	       await(file_number(KSM "full_scans", "") > scans + 2) && tick() &&
	       !madvise(buffer, SIZE, MADV_UNMERGEABLE);
}

TEST_F(pinned, pages_stay_after_MADV_MERGEABLE)
{
	char run[8], sleep[16];

	SKIP_IF(access(KSM "run", W_OK), "%srun: needs root and KSM", KSM);
	ASSERT_TRUE(map_anonymous());
	ASSERT_EQ(0, file_exchange(KSM "sleep_millisecs", "5", sleep, sizeof(sleep)));
	ASSERT_EQ(0, file_exchange(KSM "run", "1", run, sizeof(run)));
	expect_same(_metadata, event_mergeable);
	EXPECT_EQ(0, file_write(KSM "run", run));
	EXPECT_EQ(0, file_write(KSM "sleep_millisecs", sleep));
}

static bool event_split(void)
{
	/* Unmapping one more page behind the buffer makes the kernel map the huge page in parts. */
	static unsigned long gone;
	unsigned long at = SIZE + gone;

	gone += PAGE;
	return !munmap((char *)buffer + at, PAGE);
}

TEST_SAME(pages_stay_after_the_split_of_a_huge_page, map_huge, event_split)

/*
 * Splits the huge page, then asks for a collapse with MADV_COLLAPSE, which the kernel refuses for
 * pinned pages.
 */
static bool event_collapse(void)
{
	if (mprotect(buffer, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) || !tick() ||
	    mprotect(buffer, PAGE, PROT_READ | PROT_WRITE))
		return false;
	madvise(buffer, HUGE_PAGE, MADV_COLLAPSE);
	return true;
}

TEST_SAME(pages_stay_after_MADV_COLLAPSE, map_huge, event_collapse)

#define CGROUP		CGROUPS "/profil-pinned"
#define RECLAIMED	(4UL << 20)

/* Makes the kernel move unpinned memory of this process to swap. */
static bool event_reclaim(void)
{
	u64 before = status_line("VmSwap");
	char *p = map_small(RECLAIMED);
	bool reclaimed;

	memset(p, 1, RECLAIMED);
	/* The write fails with EAGAIN if less than that could be reclaimed. */
	reclaimed = await(!file_write(CGROUP "/memory.reclaim", "1048576") ||
			  status_line("VmSwap") > before + 256);
	return !munmap(p, RECLAIMED) && reclaimed;
}

/* The process is in the cgroup during the test. */
static void expect_same_in_cgroup(struct __test_metadata *_metadata)
{
	const char *why_not = cgroup_make(CGROUP);

	SKIP_IF(why_not, "%s", why_not);
	if (swap_start()) {
		rmdir(CGROUP);
		SKIP(return, "no swap area can be made");
	}
	EXPECT_EQ(0, file_write(CGROUP "/cgroup.procs", "0"));
	expect_same(_metadata, event_reclaim);
	EXPECT_EQ(0, file_write(CGROUPS "/cgroup.procs", "0"));
	swap_stop();
	EXPECT_TRUE(await(!rmdir(CGROUP)));
}

TEST_F_CALL(pinned, pages_stay_when_memory_is_reclaimed,
	    MAP(map_anonymous); expect_same_in_cgroup(_metadata))
TEST_F_CALL(pinned, shared_pages_stay_when_memory_is_reclaimed,
	    MAP(map_memfd); expect_same_in_cgroup(_metadata))

/*
 * Events that map new pages in their place: nothing is counted in the new pages
 */

static void expect_new_pages_unchanged(struct __test_metadata *_metadata,
				       bool (*event)(void))
{
	struct profil_stats s;

	ASSERT_EQ(0, start());
	EXPECT_TRUE(tick());
	EXPECT_TRUE(loop_until(1, buffer[LAST]));
	EXPECT_LT(0U, buffer[0]);
	for (unsigned int i = 0; i < 3; i++) {
		ASSERT_TRUE(event()) {
			TH_LOG("errno %d", errno);
		}
		EXPECT_EQ(0U, counters_sum(buffer, 4, SIZE / 4));
		/* Makes the new pages present and writable. */
		((volatile u32 *)buffer)[1] = 0;
		((volatile u32 *)buffer)[LAST - 1] = 0;
		expect_on(_metadata);
		EXPECT_EQ(0U, counters_sum(buffer, 4, SIZE / 4));
	}
	s = stop(_metadata);
	EXPECT_LE(4 * SOME + 0U, s.hit);
	EXPECT_EQ(0U, counters_sum(buffer, 4, SIZE / 4));

	/* The next session pins the new pages. */
	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_until(0, hits() >= SOME));
	s = stop(_metadata);
	EXPECT_EQ(s.hit, counters_sum(buffer, 4, SIZE / 4));
}

/* A test that maps the buffer, and checks that nothing is counted in the pages after the event. */
#define TEST_NEW(name, map, event)						\
	TEST_F(pinned, name)							\
	{									\
		MAP(map);							\
		expect_new_pages_unchanged(_metadata, event);			\
	}

PAGE_EVENT(dontneed, !madvise(buffer, SIZE, MADV_DONTNEED))
TEST_NEW(new_pages_after_MADV_DONTNEED_are_not_written_to, map_anonymous, event_dontneed)

TEST_NEW(new_pages_after_MADV_DONTNEED_of_a_huge_page_are_not_written_to, map_huge, event_dontneed)

static bool event_dontneed_often(void)
{
	for (unsigned int i = 0; i < 50; i++) {
		if (!event_dontneed())
			return false;
		buffer[1] = 0;
	}
	return true;
}

TEST_NEW(pages_after_repeated_MADV_DONTNEED_are_not_written_to, map_anonymous, event_dontneed_often)

PAGE_EVENT(map_anew,
	   !munmap(buffer, SIZE) && tick() &&
	   mmap(buffer, SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buffer)
TEST_NEW(memory_that_is_mapped_after_munmap_is_not_written_to, map_anonymous, event_map_anew)
TEST_NEW(memory_that_is_mapped_after_munmap_of_shared_memory_is_not_written_to, map_memfd,
	 event_map_anew)

PAGE_EVENT(map_over,
	   mmap(buffer, SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buffer)
TEST_NEW(memory_that_MAP_FIXED_maps_over_them_is_not_written_to, map_anonymous, event_map_over)

PAGE_EVENT(punch_hole, !fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE))
TEST_NEW(new_pages_of_a_file_after_a_punched_hole_are_not_written_to, map_memfd, event_punch_hole)

PAGE_EVENT(remove, !madvise(buffer, SIZE, MADV_REMOVE))
TEST_NEW(new_pages_of_a_file_after_MADV_REMOVE_are_not_written_to, map_memfd, event_remove)

PAGE_EVENT(truncate, !ftruncate(memfd, 0) && tick() && !ftruncate(memfd, SIZE))
TEST_NEW(new_pages_of_a_truncated_file_are_not_written_to, map_memfd, event_truncate)

PAGE_EVENT(move_pages_away,
	   mremap(buffer, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) !=
	   MAP_FAILED)
TEST_NEW(new_pages_after_mremap_with_DONTUNMAP_are_not_written_to, map_anonymous,
	 event_move_pages_away)

/* Neither the session nor its end maps the old pages again. */
TEST_F(pinned, pages_after_MADV_DONTNEED_are_not_mapped_again)
{
	START_IN(map_anonymous);
	ASSERT_EQ(0, madvise(buffer, SIZE, MADV_DONTNEED));
	expect_on(_metadata);
	for (unsigned long i = 0; i < SIZE; i += PAGE)
		EXPECT_FALSE(pages_present((char *)buffer + i, 1));
	stop(_metadata);
	for (unsigned long i = 0; i < SIZE; i += PAGE)
		EXPECT_FALSE(pages_present((char *)buffer + i, 1));
}

TEST_F(pinned, MADV_DONTNEED_of_one_page_leaves_the_counts_of_the_others)
{
	u32 of_1;

	MAP(map_anonymous);
	ASSERT_EQ(0, start());
	expect_on(_metadata);
	stop_beside();
	of_1 = buffer[LAST];
	EXPECT_EQ(hits(), buffer[0] + of_1);

	ASSERT_EQ(0, madvise((char *)buffer + SIZE - PAGE, PAGE, MADV_DONTNEED));
	EXPECT_TRUE(tick());
	EXPECT_EQ(stop(_metadata).hit, buffer[0] + of_1);
	EXPECT_EQ(0U, buffer[LAST]);
}

/*
 * The pages are mapped at another address, or in another mapping
 */

/* Checks that the session counts in the pages that are mapped at @where now. */
static void expect_counted_at(struct __test_metadata *_metadata, const u32 *where)
{
	struct profil_stats s;

	ASSERT_NE(MAP_FAILED, (void *)where);
	EXPECT_LT(0U, where[0]);
	expect_on(_metadata);
	s = stop(_metadata);
	EXPECT_EQ(s.hit, where[0] + where[LAST]);
	EXPECT_EQ(s.hit, counters_sum(where, 4, SIZE / 4));
}

TEST_F(pinned, pages_that_mremap_has_moved_are_still_counted_in)
{
	u32 *moved;

	START_IN(map_anonymous);
	moved = mremap(buffer, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, map_private(SIZE));
	ASSERT_TRUE(event_map_over());
	memset(buffer, 0, SIZE);
	expect_counted_at(_metadata, moved);
	EXPECT_EQ(0U, counters_sum(buffer, 4, SIZE / 4));
}

TEST_F(pinned, shared_pages_are_still_counted_in_after_munmap)
{
	START_IN(map_memfd);
	ASSERT_EQ(0, munmap(buffer, SIZE));
	expect_counted_at(_metadata, again);
}

TEST_F(pinned, shared_pages_are_still_counted_in_after_munmap_of_the_last_one)
{
	START_IN(map_memfd);
	ASSERT_EQ(0, munmap((char *)buffer + SIZE - PAGE, PAGE));
	expect_counted_at(_metadata, again);
}

TEST_F(pinned, shared_pages_are_still_counted_in_after_mremap)
{
	START_IN(map_memfd);
	expect_counted_at(_metadata, mremap(buffer, SIZE, 2 * SIZE, MREMAP_MAYMOVE));
}

TEST_F(pinned, the_remaining_pages_of_a_truncated_file_are_counted_in)
{
	u32 of_1;

	MAP(map_memfd);
	ASSERT_EQ(0, start());
	expect_on(_metadata);
	of_1 = buffer[LAST];
	ASSERT_EQ(0, ftruncate(memfd, SIZE - PAGE));
	EXPECT_TRUE(tick());
	EXPECT_EQ(stop(_metadata).hit, buffer[0] + of_1);
}

/*
 * The pages are not mapped any more
 */

TEST_F(pinned, unmapped_pages_stay_pinned_until_stop)
{
	START_IN(map_anonymous);
	ASSERT_EQ(0, munmap(buffer, SIZE));
	expect_on(_metadata);
	EXPECT_LE(2 * SOME + 0U, stop(_metadata).hit);
	EXPECT_EQ(-EINVAL, session_stop(PROCESS, NULL));
	/* Memory that is not mapped cannot be pinned. */
	EXPECT_EQ(-EFAULT, start());
}

TEST_F(pinned, unmapped_pages_stay_pinned_until_the_session_is_replaced)
{
	static u32 fresh[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	struct profil_range range = range_of_loops(fresh, 4);

	START_IN(map_anonymous);
	ASSERT_EQ(0, munmap(buffer, SIZE));
	EXPECT_EQ(-EBUSY, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(locked + SIZE, pinned_bytes());
	ASSERT_EQ(0, session_start(PROCESS, PROFIL_START_REPLACE, &range, 1));
	EXPECT_EQ(locked + PAGE, pinned_bytes());
	EXPECT_TRUE(tick());
	EXPECT_EQ(stop(_metadata).hit, counters_sum(fresh, 4, LOOPS));
}

TEST_F(pinned, unmapped_pages_of_several_sessions_stay_pinned)
{
	struct profil_range range;
	struct profil_stats s;
	int fd;

	START_IN(map_anonymous);
	range = range_of_loops(buffer, 4);
	ASSERT_EQ(0, session_start(THREAD, 0, &range, 1));
	fd = must_sample(must_open(), PROCESS, &range, 1);
	EXPECT_TRUE(tick());

	ASSERT_EQ(0, munmap(buffer, SIZE));
	EXPECT_TRUE(tick());
	EXPECT_TRUE(loop_burn(THREAD, 2, SOME));
	EXPECT_TRUE(descriptor_burn(fd, 2, SOME));
	EXPECT_EQ(locked + SIZE + 2 * PAGE, pinned_bytes());
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(0U, s.dropped);
	close(fd);
	ASSERT_STOP(THREAD, &s);
	EXPECT_EQ(0U, s.dropped);
	stop(_metadata);
}

/*
 * Pages that user space provides
 */

static void expect_no_request(struct __test_metadata *_metadata, enum held_kind kind)
{
	struct held held;

	NEED_HELD(&held, kind, SIZE);
	buffer = (u32 *)held.memory;
	ASSERT_EQ(0, start());
	expect_on(_metadata);
	ASSERT_EQ(0, held_back(&held));
	/* A request to user space would block these calls. */
	expect_on(_metadata);
	stop(_metadata);
	EXPECT_FALSE(held_asked(&held));
	held_unmap(&held);
}

TEST_F_CALL(pinned, counting_requests_no_page_from_a_userfaultfd,
	    expect_no_request(_metadata, HELD_USERFAULT))
TEST_F_CALL(pinned, counting_requests_no_page_from_a_FUSE_file_system,
	    expect_no_request(_metadata, HELD_FUSE))

/* Write-protects the huge page at @buffer with a userfaultfd. Returns the userfaultfd, or -1. */
static int protect_huge(void *buffer)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM };
	struct uffdio_range range = { .start = addr(buffer), .len = HUGE_PAGE };
	struct uffdio_register all = { .range = range, .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = {
		.range = range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all) ||
	    madvise(buffer, HUGE_PAGE, MADV_DONTNEED) ||
	    madvise(buffer, HUGE_PAGE, MADV_POPULATE_WRITE) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &protect)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The child inherits the write-protection without the userfaultfd. In Linux 6.1 a write to the
 * page then faults forever, so the setup of the child's session must not retry forever.
 */
TEST_F(pinned, setup_gives_up_on_huge_pages_that_never_become_writable)
{
	long long users = module_users();
	struct profil_range range;
	int fault, err;
	u32 *huge;

	huge = hugetlb_map(HUGE_PAGE, MAP_PRIVATE);
	NEED_HUGETLB(huge);
	stop_beside();
	fault = protect_huge(huge);
	if (fault < 0) {
		hugetlb_unmap(huge, HUGE_PAGE);
		SKIP(return, "no userfaultfd for huge pages: %s", strerror(errno));
	}
	close(fault);
	range = range_of_loops(huge, 4);
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	fault = protect_huge(huge);
	ASSERT_LE(0, fault);

	EXPECT_CHILD({
		while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < 100000000)
			loop_run(0, LOOP_BURST);
		err = session_start(PROCESS, 0, &range, 1);
		MUST(!err || err == -EFAULT);
	});
	close(fault);
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	hugetlb_unmap(huge, HUGE_PAGE);
	EXPECT_TRUE(await(module_users() == users));
}

PAGE_EVENT(dontneed_hugetlb, !madvise(buffer, HUGE_PAGE, MADV_DONTNEED))

PAGE_EVENT(map_hugetlb_anew,
	   mmap(buffer, HUGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0) == buffer)

static void expect_hugetlb_unchanged(struct __test_metadata *_metadata, bool (*event)(void))
{
	buffer = hugetlb_map(HUGE_PAGE, MAP_PRIVATE);
	NEED_HUGETLB(buffer);
	expect_new_pages_unchanged(_metadata, event);
	hugetlb_unmap(buffer, HUGE_PAGE);
}

TEST_F_CALL(pinned, new_huge_pages_after_MADV_DONTNEED_are_not_written_to,
	    expect_hugetlb_unchanged(_metadata, event_dontneed_hugetlb))
TEST_F_CALL(pinned, huge_pages_that_are_mapped_over_them_are_not_written_to,
	    expect_hugetlb_unchanged(_metadata, event_map_hugetlb_anew))

/*
 * The pages of a forked child
 */

/* The child has none of the parent's pages. Returns the reason why its session ended. */
static int end_in_child(void)
{
	struct profil_stats s;

	MUST(loop_until(0, session_stats(PROCESS, &s) || s.state != PROFIL_STATE_ON));
	MUST(s.state == PROFIL_STATE_ENDED);
	MUST(accounted(&s));
	MUST(!s.hit && !s.locked && !pinned_bytes());
	return ENDED(s.end);
}

static void expect_end_in_child(struct __test_metadata *_metadata, int advice)
{
	START_IN(map_anonymous);
	ASSERT_EQ(0, madvise(buffer, SIZE, advice));
	EXPECT_EQ(ENDED(PROFIL_END_BUFFER), status_in_child(end_in_child()));
	expect_on(_metadata);
	stop(_metadata);
}

TEST_F_CALL(pinned, a_child_without_the_pages_has_an_ended_session,
	    expect_end_in_child(_metadata, MADV_DONTFORK))
TEST_F_CALL(pinned, a_child_with_wiped_pages_has_an_ended_session,
	    expect_end_in_child(_metadata, MADV_WIPEONFORK))

/* The first call pins the child's pages. */
static int unmap_in_child(void)
{
	struct profil_stats s;

	nr_beside = 0;	/* Only the parent has the thread. */
	MUST(state_of(PROCESS) == PROFIL_STATE_ON);
	MUST(!munmap(buffer, SIZE) && event_map_over());
	memset(buffer, 0, SIZE);
	MUST(tick());
	MUST(!session_stop(PROCESS, &s));
	MUST(accounted(&s) && !s.dropped && s.end == PROFIL_END_NONE);
	MUST(!counters_sum(buffer, 4, SIZE / 4));
	return 0;
}

TEST_F(pinned, pages_of_a_child_stay_pinned)
{
	START_IN(map_anonymous);
	EXPECT_EQ(0, status_in_child(unmap_in_child()));
	expect_on(_metadata);
	stop(_metadata);
}

TEST_HARNESS_MAIN
