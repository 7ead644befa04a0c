// SPDX-License-Identifier: GPL-2.0
/*
 * When the user's page and the pinned one part: every event that memory management
 * tells of, while ticks come.
 *
 * Loop 0 is counted in the buffer's first page, loop 1 in its last. Quietly, loop 0
 * runs only when a test runs it: what was counted before an event and what after is
 * known exactly. Or a thread runs it all the time, on another CPU if there is one.
 */
#include "kselftest_harness.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kernel.h"
#include "loop.h"

#ifndef MADV_COLD
#define MADV_COLD	20
#define MADV_PAGEOUT	21
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

#define PAGE		4096UL
#define SIZE		(4 * PAGE)
#define HUGE		(2UL << 20)
#define LAST		(SIZE / 4 - 1)	/* index of the last counter */

#define SOME		6	/* ticks, before and after an event */

FIXTURE(repin) {
	u32 *buffer;
	int memfd;
	pthread_t thread;
	bool running;	/* the thread is */
	u64 locked;
};

FIXTURE_VARIANT(repin) {
	bool busy;
};

FIXTURE_VARIANT_ADD(repin, quiet) {
	.busy = false,
};

FIXTURE_VARIANT_ADD(repin, busy) {
	.busy = true,
};

static atomic_bool enough;

static void *run_loop_0(void *unused)
{
	(void)unused;
	while (!enough)
		loop_run(0, LOOP_BURST);
	return NULL;
}

FIXTURE_SETUP(repin)
{
	ASSERT_LE(0, device_fd()) {
		TH_LOG("%s must be there", PROFIL_DEVICE);
	}
	self->memfd = -1;
	self->buffer = MAP_FAILED;
	self->locked = locked_bytes();
	if (variant->busy) {
		ASSERT_EQ(0, pthread_create(&self->thread, NULL, run_loop_0, NULL));
		self->running = true;
	}
}

static void quiet(FIXTURE_DATA(repin) *self)
{
	if (!self->running)
		return;
	enough = true;
	pthread_join(self->thread, NULL);
	self->running = false;
}

/* Whatever became of the session, nothing of it stays. */
FIXTURE_TEARDOWN(repin)
{
	quiet(self);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	EXPECT_EQ(self->locked, locked_bytes());
	session_stop(PROFIL_SCOPE_THREAD, NULL);
}

static bool map_private(FIXTURE_DATA(repin) *self)
{
	self->buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return self->buffer != MAP_FAILED;
}

static bool map_memfd(FIXTURE_DATA(repin) *self)
{
	self->memfd = memfd_create("repin", MFD_CLOEXEC);
	if (self->memfd < 0 || ftruncate(self->memfd, SIZE))
		return false;
	self->buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, self->memfd, 0);
	return self->buffer != MAP_FAILED;
}

/* User ticks of the loops: nothing between two runs of these is counted. */
static int start(FIXTURE_DATA(repin) *self)
{
	struct profil_range ranges[] = {
		range_of(loop_at(0), loop_at(0) + LOOP_BLOCK, self->buffer, SIZE / 4, 4),
		range_of(loop_at(1), loop_at(1) + LOOP_BLOCK, self->buffer, SIZE / 4, 4),
	};

	ranges[0].granule = LOOP_BLOCK;
	ranges[1].granule = LOOP_BLOCK;
	ranges[1].offset -= LAST * LOOP_BLOCK;
	return session_start_modes(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ranges, 2);
}

static u64 hits(void)
{
	struct profil_stats s;

	return session_stats(PROFIL_SCOPE_PROCESS, &s) ? 0 : s.hit;
}

/* Some more hits of loop 0, whoever runs it. */
static bool tick(FIXTURE_DATA(repin) *self)
{
	u64 cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_CAP_NS;
	u64 until = hits() + SOME;

	if (self->running)
		return await(hits() >= until);
	while (hits() < until && cpu_ns(CLOCK_THREAD_CPUTIME_ID) < cap)
		loop_run(0, LOOP_BURST);
	return hits() >= until;
}

static u32 state(struct profil_stats *s)
{
	return session_stats(PROFIL_SCOPE_PROCESS, s) ? ~0U : s->state;
}

/*
 * The event must leave the pages as they are: then nothing at all is lost.
 */
static void expect_same(struct __test_metadata *_metadata, FIXTURE_DATA(repin) *self,
			bool (*event)(FIXTURE_DATA(repin) *self))
{
	struct profil_stats s;

	ASSERT_EQ(0, start(self));
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_TRUE(tick(self));
		ASSERT_TRUE(event(self)) {
			TH_LOG("errno %d", errno);
		}
	}
	EXPECT_TRUE(tick(self));
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 1, SOME));
	EXPECT_EQ((u32)PROFIL_STATE_ON, state(&s));
	EXPECT_EQ(self->locked + SIZE, locked_bytes());
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));

	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(4 * SOME + 0U, s.hit);
	/* There the event may take longer than ticks are kept for. */
	EXPECT_EQ(kernel_checks_itself() ? s.dropped_overrun : 0, s.dropped);
	EXPECT_EQ(s.hit, self->buffer[0] + self->buffer[LAST]);
	EXPECT_EQ(s.hit, counters_sum(self->buffer, 4, SIZE / 4));
}

static bool event_fork(FIXTURE_DATA(repin) *self)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* A copy, or not; but not the one where the parent counts. */
		self->buffer[1] = 0;
		_exit(0);
	}
	return pid > 0 && tick(self) && waitpid(pid, &status, 0) == pid && !status;
}

TEST_F(repin, fork_of_private_memory_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_fork);
}

TEST_F(repin, fork_of_shared_memory_goes_on)
{
	ASSERT_TRUE(map_memfd(self));
	expect_same(_metadata, self, event_fork);
}

static bool event_free(FIXTURE_DATA(repin) *self)
{
	return !madvise(self->buffer, SIZE, MADV_FREE);
}

TEST_F(repin, MADV_FREE_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_free);
}

static bool event_rwx(FIXTURE_DATA(repin) *self)
{
	return !mprotect(self->buffer, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	       tick(self) && !mprotect(self->buffer, PAGE, PROT_READ | PROT_WRITE);
}

TEST_F(repin, mprotect_to_RWX_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_rwx);
}

#define BIG (128UL << 20)

static bool event_big_rwx(FIXTURE_DATA(repin) *self)
{
	return !mprotect(self->buffer, BIG, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	       !mprotect(self->buffer, BIG, PROT_READ | PROT_WRITE);
}

/* Each change of so many pages takes some ticks, which wait for its end. */
TEST_F(repin, ticks_during_a_long_change_are_not_lost)
{
	self->buffer = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buffer);
	ASSERT_EQ(0, madvise(self->buffer, BIG, MADV_NOHUGEPAGE));
	for (unsigned long i = 0; i < BIG; i += PAGE)
		((volatile char *)self->buffer)[i] = 0;
	expect_same(_metadata, self, event_big_rwx);
}

static bool event_clear_refs(FIXTURE_DATA(repin) *self)
{
	(void)self;
	return !file_write("/proc/self/clear_refs", "4") &&
	       !file_write("/proc/self/clear_refs", "1");
}

TEST_F(repin, clear_refs_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_clear_refs);
}

static bool event_pageout(FIXTURE_DATA(repin) *self)
{
	return !madvise(self->buffer, SIZE, MADV_COLD) &&
	       !madvise(self->buffer, SIZE, MADV_PAGEOUT);
}

TEST_F(repin, MADV_PAGEOUT_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_pageout);
}

static bool event_mlock(FIXTURE_DATA(repin) *self)
{
	bool locked = !mlock(self->buffer, SIZE) && tick(self);

	return !munlock(self->buffer, SIZE) && locked;
}

TEST_F(repin, mlock_and_munlock_go_on)
{
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_mlock);
}

static bool event_compact(FIXTURE_DATA(repin) *self)
{
	(void)self;
	return !file_write("/proc/sys/vm/compact_memory", "1");
}

TEST_F(repin, compaction_goes_on)
{
	if (access("/proc/sys/vm/compact_memory", W_OK))
		SKIP(return, "compact_memory: needs root and COMPACTION");
	ASSERT_TRUE(map_private(self));
	expect_same(_metadata, self, event_compact);
}

#define KSM "/sys/kernel/mm/ksm/"

static bool event_mergeable(FIXTURE_DATA(repin) *self)
{
	long long scans = file_number(KSM "full_scans", "");

	/* Pages merge when two scans have found them the same. */
	return !madvise(self->buffer, SIZE, MADV_MERGEABLE) &&
	       await(file_number(KSM "full_scans", "") > scans + 2) && tick(self) &&
	       !madvise(self->buffer, SIZE, MADV_UNMERGEABLE);
}

TEST_F(repin, MADV_MERGEABLE_goes_on)
{
	char run[8], sleep[16];

	if (access(KSM "run", W_OK))
		SKIP(return, "%srun: needs root and KSM", KSM);
	ASSERT_TRUE(map_private(self));
	file_line(KSM "run", run, sizeof(run));
	file_line(KSM "sleep_millisecs", sleep, sizeof(sleep));
	ASSERT_EQ(0, file_write(KSM "sleep_millisecs", "5"));
	ASSERT_EQ(0, file_write(KSM "run", "1"));
	expect_same(_metadata, self, event_mergeable);
	EXPECT_EQ(0, file_write(KSM "run", run));
	EXPECT_EQ(0, file_write(KSM "sleep_millisecs", sleep));
}

static bool event_split(FIXTURE_DATA(repin) *self)
{
	/* One more page behind the buffer goes: the huge page is mapped in parts now. */
	static unsigned long gone = SIZE;
	unsigned long at = gone;

	gone += PAGE;
	return !munmap((char *)self->buffer + at, PAGE);
}

TEST_F(repin, a_huge_page_that_is_split_goes_on)
{
	const size_t huge = 2 << 20;
	char *space;

	space = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)space);
	self->buffer = (u32 *)(((uintptr_t)space + huge - 1) & -huge);
	if (madvise(self->buffer, huge, MADV_HUGEPAGE))
		SKIP(return, "this kernel has no huge pages");
	memset(self->buffer, 0, huge);
	expect_same(_metadata, self, event_split);
}

/*
 * Other pages come in the place of the buffer's
 */

/* The event puts a new page of zeros where counter 0 is. */
static void expect_other(struct __test_metadata *_metadata, FIXTURE_DATA(repin) *self,
			 bool (*event)(FIXTURE_DATA(repin) *self))
{
	const bool busy = self->running;
	u64 nr_cpus = sysconf(_SC_NPROCESSORS_ONLN), before = 0, after = 0;
	struct profil_stats s;

	ASSERT_EQ(0, start(self));
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_TRUE(tick(self));
		EXPECT_NE(0U, self->buffer[0]);

		before = hits();
		ASSERT_TRUE(event(self)) {
			TH_LOG("errno %d", errno);
		}
		after = hits();
		EXPECT_TRUE(tick(self));
		EXPECT_EQ((u32)PROFIL_STATE_ON, state(&s));
		EXPECT_EQ(self->locked + SIZE, locked_bytes());
		if (!busy) {
			EXPECT_EQ(s.hit - before, self->buffer[0]);
		}
	}
	quiet(self);
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.dropped_exit, s.dropped);
	if (!busy) {
		EXPECT_EQ(before, after);
	}
	/* One tick on each CPU may still have been counted in the old page. */
	EXPECT_GE(s.hit - before, self->buffer[0]);
	EXPECT_LE(s.hit - after, self->buffer[0] + nr_cpus);
	EXPECT_LE((unsigned int)SOME, self->buffer[0] + nr_cpus);
}

static bool event_dontneed(FIXTURE_DATA(repin) *self)
{
	return !madvise(self->buffer, SIZE, MADV_DONTNEED);
}

TEST_F(repin, MADV_DONTNEED_goes_on_in_the_new_pages)
{
	ASSERT_TRUE(map_private(self));
	expect_other(_metadata, self, event_dontneed);
}

/* Nobody touches the pages, nor asks for the statistics: a worker sees to them. */
TEST_F(repin, MADV_DONTNEED_waits_for_no_touch)
{
	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, madvise(self->buffer, SIZE, MADV_DONTNEED));
	EXPECT_TRUE(await(pages_present(self->buffer, SIZE / PAGE)));
	EXPECT_TRUE(tick(self));
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
}

static bool event_dontneed_often(FIXTURE_DATA(repin) *self)
{
	for (unsigned int i = 0; i < 200; i++)
		if (!event_dontneed(self))
			return false;
	return true;
}

TEST_F(repin, MADV_DONTNEED_again_and_again_goes_on)
{
	ASSERT_TRUE(map_private(self));
	expect_other(_metadata, self, event_dontneed_often);
}

static bool event_punch_hole(FIXTURE_DATA(repin) *self)
{
	return !fallocate(self->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE);
}

TEST_F(repin, a_hole_in_the_file_goes_on_in_the_new_pages)
{
	ASSERT_TRUE(map_memfd(self));
	expect_other(_metadata, self, event_punch_hole);
}

static bool event_move_pages_away(FIXTURE_DATA(repin) *self)
{
	return mremap(self->buffer, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) !=
	       MAP_FAILED;
}

TEST_F(repin, mremap_that_does_not_unmap_goes_on_in_the_new_pages)
{
	ASSERT_TRUE(map_private(self));
	expect_other(_metadata, self, event_move_pages_away);
}

TEST_F(repin, a_new_page_leaves_the_others_counts_alone)
{
	struct profil_stats s;
	u64 before, of_0;

	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 1, SOME));
	quiet(self);
	EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &s));
	of_0 = self->buffer[0];
	EXPECT_EQ(s.hit, of_0 + self->buffer[LAST]);

	before = s.hit;
	ASSERT_EQ(0, madvise((char *)self->buffer + SIZE - PAGE, PAGE, MADV_DONTNEED));
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 1, SOME));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(of_0, self->buffer[0]);
	EXPECT_EQ(s.hit - before, self->buffer[LAST]);
}

/*
 * The buffer is lost
 */

/*
 * Waits for the end, and expects all that is said of it. Where the old pages can
 * still be read, at @old, they hold all hits.
 */
static void expect_end(struct __test_metadata *_metadata, FIXTURE_DATA(repin) *self,
		       const u32 *old)
{
	static u32 fresh[1024] __attribute__((aligned(4096)));
	struct profil_range range = range_of_loops(fresh, 4);
	struct profil_stats s, later;

	EXPECT_TRUE(await(state(&s) != PROFIL_STATE_ON));
	ASSERT_EQ((u32)PROFIL_STATE_ENDED, s.state);
	EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE((unsigned int)SOME, s.hit);
	EXPECT_EQ(0U, s.locked);
	EXPECT_EQ(self->locked, locked_bytes());
	if (old) {
		EXPECT_EQ(s.hit, counters_sum(old, 4, SIZE / 4));
	}

	/* It is over. */
	loop_run(0, 16 * LOOP_BURST);
	EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &later));
	EXPECT_EQ(0, memcmp(&s, &later, sizeof(s)));
	if (old) {
		EXPECT_EQ(s.hit, counters_sum(old, 4, SIZE / 4));
	}

	/* The next start need not say that it replaces, and is a session like any. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, counters_sum(fresh, 4, LOOPS));
	EXPECT_EQ((u32)PROFIL_STATE_OFF, state(&s));
}

TEST_F(repin, munmap_ends_it)
{
	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, munmap(self->buffer, SIZE));
	expect_end(_metadata, self, NULL);
}

TEST_F(repin, munmap_of_the_last_page_ends_it)
{
	ASSERT_TRUE(map_memfd(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, munmap((char *)self->buffer + SIZE - PAGE, PAGE));
	self->buffer = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, self->memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buffer);
	expect_end(_metadata, self, self->buffer);
}

TEST_F(repin, mremap_ends_it)
{
	u32 *moved;

	ASSERT_TRUE(map_private(self));
	moved = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)moved);
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ((void *)moved, mremap(self->buffer, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
					moved));
	expect_end(_metadata, self, moved);
}

TEST_F(repin, ftruncate_ends_it)
{
	ASSERT_TRUE(map_memfd(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, ftruncate(self->memfd, 0));
	expect_end(_metadata, self, NULL);
}

TEST_F(repin, ftruncate_of_the_last_page_ends_it)
{
	ASSERT_TRUE(map_memfd(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, ftruncate(self->memfd, SIZE - PAGE));
	expect_end(_metadata, self, NULL);
}

TEST_F(repin, mprotect_to_RO_ends_it)
{
	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, mprotect(self->buffer, SIZE, PROT_READ));
	expect_end(_metadata, self, self->buffer);
}

TEST_F(repin, mprotect_of_the_last_page_to_none_ends_it)
{
	ASSERT_TRUE(map_memfd(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, mprotect((char *)self->buffer + SIZE - PAGE, PAGE, PROT_NONE));
	self->buffer = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, self->memfd, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buffer);
	expect_end(_metadata, self, self->buffer);
}

TEST_F(repin, stop_clears_what_has_ended)
{
	struct profil_stats s, off = { .size = sizeof(off), .scope = PROFIL_SCOPE_PROCESS };

	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, munmap(self->buffer, SIZE));
	EXPECT_TRUE(await(state(&s) == PROFIL_STATE_ENDED));
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE((unsigned int)SOME, s.hit);
	EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
	EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_EQ(0, memcmp(&s, &off, sizeof(s)));
	EXPECT_EQ(-EINVAL, session_stop(PROFIL_SCOPE_PROCESS, NULL));
}

/* Nobody asks for the statistics: it ends by itself, and what is locked shows it. */
TEST_F(repin, the_end_does_not_wait_for_a_question)
{
	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(self->locked + SIZE, locked_bytes());
	ASSERT_EQ(0, munmap(self->buffer, SIZE));
	EXPECT_TRUE(await(locked_bytes() == self->locked));
}

TEST_F(repin, one_buffer_of_two_sessions_ends_both)
{
	struct profil_range range;
	struct profil_stats s;

	ASSERT_TRUE(map_private(self));
	range = range_of_loops(self->buffer, 4);
	ASSERT_EQ(0, start(self));
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &range, 1));
	EXPECT_TRUE(tick(self));
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_THREAD, 2, SOME));
	ASSERT_EQ(0, munmap(self->buffer, SIZE));
	EXPECT_TRUE(await(!session_stats(PROFIL_SCOPE_THREAD, &s) &&
			  s.state == PROFIL_STATE_ENDED));
	EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
	expect_end(_metadata, self, NULL);
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &s));
	EXPECT_TRUE(accounted(&s));
}

/*
 * The buffer is lost and comes back at once. Whether the session lives depends on
 * whether anybody looked in between; the accounts are right either way.
 */
TEST_F(repin, mprotect_to_RO_and_back_goes_on_or_ends_it)
{
	struct profil_stats s;

	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	for (unsigned int i = 0; i < 20; i++) {
		loop_run(0, LOOP_BURST);
		ASSERT_EQ(0, mprotect(self->buffer, SIZE, PROT_READ));
		ASSERT_EQ(0, mprotect(self->buffer, SIZE, PROT_READ | PROT_WRITE));
	}
	quiet(self);
	if (state(&s) == PROFIL_STATE_ON) {
		EXPECT_EQ(self->locked + SIZE, locked_bytes());
		EXPECT_EQ((u32)PROFIL_END_NONE, s.end);
	} else {
		EXPECT_EQ((u32)PROFIL_STATE_ENDED, s.state);
		EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, self->buffer[0]);
	EXPECT_EQ(s.hit, counters_sum(self->buffer, 4, SIZE / 4));
}

TEST_F(repin, another_mapping_in_its_place_goes_on_or_ends_it)
{
	struct profil_stats s;

	ASSERT_TRUE(map_private(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ((void *)self->buffer, mmap(self->buffer, SIZE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	loop_run(0, 16 * LOOP_BURST);
	quiet(self);
	if (state(&s) == PROFIL_STATE_ON) {
		EXPECT_EQ(self->locked + SIZE, locked_bytes());
	} else {
		EXPECT_EQ((u32)PROFIL_STATE_ENDED, s.state);
		EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
		EXPECT_EQ(0U, self->buffer[0]);
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_GE(s.hit, counters_sum(self->buffer, 4, SIZE / 4));
}

TEST_F(repin, a_file_cut_off_and_extended_goes_on_or_ends_it)
{
	struct profil_stats s;

	ASSERT_TRUE(map_memfd(self));
	ASSERT_EQ(0, start(self));
	EXPECT_TRUE(tick(self));
	ASSERT_EQ(0, ftruncate(self->memfd, 0));
	ASSERT_EQ(0, ftruncate(self->memfd, SIZE));
	loop_run(0, 16 * LOOP_BURST);
	quiet(self);
	if (state(&s) != PROFIL_STATE_ON) {
		EXPECT_EQ((u32)PROFIL_STATE_ENDED, s.state);
		EXPECT_EQ((u32)PROFIL_END_BUFFER, s.end);
		EXPECT_EQ(0U, self->buffer[0]);
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_GE(s.hit, counters_sum(self->buffer, 4, SIZE / 4));
}

/* What is written to @buffer next waits for an answer: a descriptor, or -1. */
static int ask_for(void *buffer)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = {
		.range = { .start = addr(buffer), .len = SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all) ||
	    madvise(buffer, SIZE, MADV_DONTNEED)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whoever closes it waits for mmap_lock, and workers look for the pages with that held. */
TEST_F(repin, a_userfaultfd_can_be_closed_while_its_pages_are_looked_for)
{
	int fds[24], fd;
	struct profil_range range;
	struct profil_stats s;
	unsigned int i, turn;

	if (geteuid())
		SKIP(return, "faults of the kernel are for root's userfaultfds only");
	ASSERT_TRUE(map_private(self));
	range = range_of_loops(self->buffer, 4);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, descriptor_attach(fds[i], PROFIL_SCOPE_PROCESS, 0, NULL));
		ASSERT_EQ(0, descriptor_add(fds[i], PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_enable(fds[i]));
	}
	for (turn = 0; turn < 100; turn++) {
		fd = ask_for(self->buffer);
		ASSERT_LE(0, fd);
		/* So that it comes at another moment each time. */
		loop_run(1, 1 + turn * 997 % 20 * LOOP_BURST / 20);
		ASSERT_EQ(0, close(fd));
		self->buffer[0] = 0;
	}
	quiet(self);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		ASSERT_EQ(0, descriptor_stats(fds[i], &s));
		EXPECT_EQ(PROFIL_STATE_ON, (int)s.state);
		EXPECT_TRUE(accounted(&s));
		close(fds[i]);
	}
}

/* What is written to @buffer next, of one huge page, waits for an answer: a descriptor, or -1. */
static int protect_huge(void *buffer)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM };
	struct uffdio_range range = { .start = addr(buffer), .len = HUGE };
	struct uffdio_register all = { .range = range, .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = {
		.range = range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all) ||
	    madvise(buffer, HUGE, MADV_DONTNEED) || madvise(buffer, HUGE, MADV_POPULATE_WRITE) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &protect)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The child has what its parent protected, but nobody to ask. By 6.1 a write there faults again and
 * again without an end; those who look for the child's pages must not.
 */
TEST_F(repin, huge_pages_that_no_fault_makes_writable_are_not_waited_for)
{
	long long users = module_users();
	struct profil_range range;
	int session, fault, status, err;
	char was[16];
	pid_t child;
	u32 *huge;

	file_exchange(HUGETLB_POOL, "8", was, sizeof(was));
	huge = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (huge == MAP_FAILED) {
		file_write(HUGETLB_POOL, was);
		SKIP(return, "no huge pages here: %s", strerror(errno));
	}
	quiet(self);
	range = range_of_loops(huge, 4);
	session = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, session);
	ASSERT_EQ(0, descriptor_attach(session, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(session, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_EQ(0, descriptor_enable(session));
	fault = protect_huge(huge);
	if (fault < 0) {
		close(session);
		munmap(huge, HUGE);
		file_write(HUGETLB_POOL, was);
		SKIP(return, "no userfaultfd for huge pages: %s", strerror(errno));
	}

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < 100000000)
			loop_run(0, LOOP_BURST);
		err = session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1);
		_exit(err && err != -EFAULT);
	}
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	/* Or the end of the session would ask. */
	close(fault);
	close(session);
	munmap(huge, HUGE);
	file_write(HUGETLB_POOL, was);
	EXPECT_TRUE(await(module_users() == users));
}

TEST_HARNESS_MAIN
