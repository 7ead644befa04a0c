// SPDX-License-Identifier: GPL-2.0
/*
 * Events that do not move the buffer's pages end no session and lose no count, even if they happen
 * very often: forks, and all that memory management does by itself.
 *
 * A classic session, and a descriptor session for each PROFIL_FORK_* mode, are on at the same time,
 * with buffers in one mapping. The mapping continues with memory of the same kind that is not
 * pinned. There a test sees that the event happens: unpinned pages merge, collapse and move.
 *
 * Loop 0 runs on each CPU all the time, and is counted in the first counter of each session. Loop 1
 * runs at the end, and is counted in the last counter.
 */
#include "kselftest_harness.h"

#include <linux/mempolicy.h>

#include "kernel.h"
#include "loop.h"
#include "madvise.h"
#include "process.h"
#include "threads.h"

#define SESSIONS	3U
#define SIZE		(16 * PAGE)		/* of each session's buffer */
#define LAST		(SIZE / 4 - 1)		/* index of a buffer's last counter */
#define SPACE		(2 * HUGE_PAGE)		/* size of the mapping */
#define NEIGHBOUR	HUGE_PAGE		/* from this offset it is not pinned */

#define SOME		3	/* ticks that must arrive before and after an event */

/* Some of these events take long on an emulated CPU. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	200

#define NODES		"/sys/devices/system/node/"
#define KSM_DIR		"/sys/kernel/mm/ksm/"
#define KHUGEPAGED	"/sys/kernel/mm/transparent_hugepage/khugepaged/"

/* Session 0 is the classic one. The others have these modes. */
static const u32 on_fork[SESSIONS] = {
	[1] = PROFIL_FORK_OFF,
	[2] = PROFIL_FORK_SHARE,
};

/* These can be static, since each test runs in its own process. */
static char *space;		/* the threads also read this memory */
static int fds[SESSIONS] = { -1, -1, -1 };
static u64 locked;

FIXTURE(endure) {
};

FIXTURE_VARIANT(endure) {
	bool shared, huge;
};

FIXTURE_VARIANT_ADD(endure, private) { .shared = false };
FIXTURE_VARIANT_ADD(endure, shared) { .shared = true };
FIXTURE_VARIANT_ADD(endure, huge) { .huge = true };

static void *run_loop_0(void *cpu)
{
	run_on_cpu((uintptr_t)cpu);
	/* The kernel's threads that merge and collapse pages need CPU time, too. */
	setpriority(PRIO_PROCESS, 0, 19);
	while (!enough) {
		for (unsigned long i = 0; i < SPACE; i += PAGE)
			(void)*(volatile char *)(space + i);
		loop_run(0, LOOP_BURST);
	}
	return NULL;
}

/* Maps memory that is aligned to a huge page. */
static char *map(bool shared, bool huge)
{
	char *p = map_new(SPACE + HUGE_PAGE, shared ? MAP_SHARED : MAP_PRIVATE);
	char *start = (char *)((addr(p) + HUGE_PAGE - 1) & -HUGE_PAGE);

	MUST(start == p || !munmap(p, start - p));
	MUST(start == p + HUGE_PAGE || !munmap(start + SPACE, p + HUGE_PAGE - start));
	MUST(!madvise(start, SPACE, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
	/* Private memory has no pages before it is written. */
	memset(start, 1, SPACE);
	memset(start, 0, SPACE);
	return start;
}

static u32 *buffer(unsigned int i)
{
	return (u32 *)(space + i * SIZE);
}

static int stats(unsigned int i, struct profil_stats *s)
{
	return i ? descriptor_stats(fds[i], s) : session_stats(PROFIL_SCOPE_PROCESS, s);
}

static u64 hits(unsigned int i)
{
	struct profil_stats s;

	return stats(i, &s) ? 0 : s.hit;
}

/*
 * Starts session @i, which counts user ticks in the loops. Ticks between two loops are not counted.
 */
static int start(unsigned int i)
{
	struct profil_range ranges[2];

	ranges_at_ends(ranges, buffer(i), SIZE);
	if (!i)
		return session_start_modes(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ranges, 2);

	fds[i] = descriptor_open(PROFIL_MODE_USER, on_fork[i], PROFIL_EXEC_OFF, 0);
	return descriptor_begin(fds[i], PROFIL_SCOPE_PROCESS, ranges, 2);
}

FIXTURE_SETUP(endure)
{
	cpu_set_t set;

	ASSERT_DEVICE();
	locked = pinned_bytes();
	space = map(variant->shared, variant->huge);

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(set), &set));
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && nr_beside < ARRAY_SIZE(beside); cpu++)
		if (CPU_ISSET(cpu, &set))
			start_beside(run_loop_0, cpu);

	for (unsigned int i = 0; i < SESSIONS; i++) {
		ASSERT_EQ(0, start(i)) {
			TH_LOG("session %u", i);
		}
	}
	ASSERT_EQ(locked + SESSIONS * SIZE, pinned_bytes());
	for (unsigned int i = 0; i < SESSIONS; i++) {
		ASSERT_TRUE(await(hits(i) >= SOME)) {
			TH_LOG("session %u", i);
		}
	}
}

FIXTURE_TEARDOWN(endure)
{
	stop_beside();
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	for (unsigned int i = 0; i < SESSIONS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	EXPECT_TRUE(await(pinned_bytes() == locked));
}

/* Checks after an event that the sessions are unchanged, and that more ticks are counted. */
static void expect_on(struct __test_metadata *_metadata)
{
	u64 before[SESSIONS];
	struct profil_stats s;

	for (unsigned int i = 0; i < SESSIONS; i++)
		before[i] = hits(i);
	for (unsigned int i = 0; i < SESSIONS; i++) {
		EXPECT_TRUE(await(hits(i) >= before[i] + SOME));
		ASSERT_EQ(0, stats(i, &s));
		ASSERT_EQ((u32)PROFIL_STATE_ON, s.state) {
			TH_LOG("session %u: end %u", i, s.end);
		}
		EXPECT_EQ(SIZE, s.locked);
		EXPECT_TRUE(accounted(&s));
	}
	EXPECT_EQ(locked + SESSIONS * SIZE, pinned_bytes());
}

/* Checks at the end that every hit is in the expected counter, and that all forks were followed. */
static void expect_all_counted(struct __test_metadata *_metadata)
{
	struct profil_stats s;

	expect_on(_metadata);
	stop_beside();
	for (unsigned int i = 0; i < SESSIONS; i++)
		EXPECT_TRUE(loop_until(1, buffer(i)[LAST] >= SOME));
	for (unsigned int i = 0; i < SESSIONS; i++) {
		if (i) {
			EXPECT_TRUE(await(!stats(i, &s) && s.targets == 1));
			EXPECT_EQ(0, descriptor_disable(fds[i], &s));
		} else {
			EXPECT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
		}
		EXPECT_TRUE(accounted(&s));
		/* Ticks overrun if the host does not run this CPU for some time. */
		EXPECT_EQ(s.dropped_overrun, s.dropped);
		EXPECT_GE(s.hit, s.dropped);
		EXPECT_EQ(0U, s.unfollowed);
		EXPECT_EQ(s.hit, buffer(i)[0] + buffer(i)[LAST]) {
			TH_LOG("session %u", i);
		}
		EXPECT_EQ(s.hit, counters_sum(buffer(i), 4, SIZE / 4));
	}
}

/* This many children exist at the same time. They run no loop, so no tick of theirs is counted. */
#define AT_A_TIME	8U
#define CHILDREN	250U
#define GRANDCHILDREN	3	/* of each child */

/*
 * A fork of the parent copies its pinned pages, with huge pages the whole huge page. A child, which
 * has its own copy or shared memory, forks faster.
 */
TEST_F(endure, a_thousand_forks_end_no_session)
{
	pid_t pids[AT_A_TIME];

	for (unsigned int i = 0; i < CHILDREN + AT_A_TIME; i++) {
		pid_t *pid = &pids[i % AT_A_TIME];

		if (i >= AT_A_TIME)
			ASSERT_EQ(0, status_of(*pid));
		if (i >= CHILDREN)
			continue;
		*pid = FORK({
			/* This must not change the parent's counters. */
			if (!variant->shared)
				memset(space, 0xff, SESSIONS * SIZE);
			for (unsigned int j = 0; j < GRANDCHILDREN; j++)
				MUST(!status_in_child(0));
		});
		if (i % 25 == 0)
			expect_on(_metadata);
	}
	expect_all_counted(_metadata);
}

TEST_F(endure, a_thousand_writes_to_clear_refs_end_no_session)
{
	static const char *const kinds[] = { "1", "2", "3", "4" };

	for (unsigned int i = 0; i < 1000; i++) {
		ASSERT_EQ(0, file_write("/proc/self/clear_refs", kinds[i % ARRAY_SIZE(kinds)]));
		if (i % 100 == 0)
			expect_on(_metadata);
	}
	expect_all_counted(_metadata);
}

/* Changes single pages, so that mappings split and merge. */
TEST_F(endure, a_thousand_changes_of_the_protection_end_no_session)
{
	for (unsigned int i = 0; i < 1000; i++) {
		char *page = space + i % (SESSIONS * SIZE / PAGE) * PAGE;

		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
		if (i % 100 == 0)
			expect_on(_metadata);
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	}
	expect_all_counted(_metadata);
}

static long long ksm(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), KSM_DIR "%s", name);
	return file_number(path, "");
}

TEST_F(endure, KSM_ends_no_session)
{
	char *equal = map(false, false);
	char run[16], sleep[16], pages[16];
	long long scans, sharing;

	SKIP_IF(access(KSM_DIR "run", W_OK), "%srun: needs root and KSM", KSM_DIR);
	sharing = ksm("pages_sharing");
	EXPECT_EQ(0, file_exchange(KSM_DIR "sleep_millisecs", "1", sleep, sizeof(sleep)));
	EXPECT_EQ(0, file_exchange(KSM_DIR "pages_to_scan", "2000", pages, sizeof(pages)));
	EXPECT_EQ(0, file_exchange(KSM_DIR "run", "1", run, sizeof(run)));

	/* Almost all pages contain zeros, and those that are not pinned merge. */
	EXPECT_EQ(0, madvise(space, SPACE, MADV_MERGEABLE));
	EXPECT_EQ(0, madvise(equal, SPACE, MADV_MERGEABLE));
	EXPECT_TRUE(await(ksm("pages_sharing") > sharing + 50)) {
		TH_LOG("%lld shared by %lld (%lld before), %lld alone, %lld change, %lld scans",
		       ksm("pages_shared"), ksm("pages_sharing"), sharing,
		       ksm("pages_unshared"), ksm("pages_volatile"), ksm("full_scans"));
	}
	for (unsigned int i = 0; i < 3; i++) {
		scans = ksm("full_scans");
		EXPECT_TRUE(await(ksm("full_scans") >= scans + 2));
		expect_on(_metadata);
	}
	EXPECT_EQ(0, madvise(space, SPACE, MADV_UNMERGEABLE));
	expect_on(_metadata);

	/* KSM stops, and splits the pages that it has merged. */
	EXPECT_EQ(0, file_write(KSM_DIR "run", "2"));
	EXPECT_EQ(0, file_write(KSM_DIR "run", run));
	EXPECT_EQ(0, file_write(KSM_DIR "pages_to_scan", pages));
	EXPECT_EQ(0, file_write(KSM_DIR "sleep_millisecs", sleep));
	EXPECT_EQ(0, munmap(equal, SPACE));
	expect_all_counted(_metadata);
}

static u64 huge_pages(void)
{
	return file_number("/proc/self/smaps_rollup", "AnonHugePages:") * 1024;
}

TEST_F(endure, MADV_COLLAPSE_ends_no_session)
{
	u64 before = huge_pages();
	unsigned int i;

	if (variant->huge) {
		/* The memory must consist of huge pages. Split them, so that they can collapse. */
		ASSERT_LE(SPACE, before);
		for (i = 0; i < 2; i++) {
			char *page = space + i * HUGE_PAGE;

			ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
			ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
		}
		ASSERT_EQ(before - SPACE, huge_pages());
		expect_on(_metadata);
		before -= SPACE;
	}
	ASSERT_EQ(0, madvise(space, SPACE, MADV_HUGEPAGE));
	for (i = 0; i < 20; i++) {
		madvise(space, HUGE_PAGE, MADV_COLLAPSE);
		if (i % 5 == 0)
			expect_on(_metadata);
	}
	/* Memory that is not pinned collapses, if the kernel can do that for this memory. */
	if (!madvise(space + NEIGHBOUR, HUGE_PAGE, MADV_COLLAPSE) && !variant->shared)
		EXPECT_LE(before + HUGE_PAGE, huge_pages());
	expect_all_counted(_metadata);
}

TEST_F(endure, khugepaged_ends_no_session)
{
	char *other = map(false, false);
	char sleep[16], pages[16];
	long long scans;
	u64 before;

	SKIP_IF(access(KHUGEPAGED "pages_to_scan", W_OK),
		KHUGEPAGED ": needs root and TRANSPARENT_HUGEPAGE");
	EXPECT_EQ(0, file_exchange(KHUGEPAGED "pages_to_scan", "100000", pages, sizeof(pages)));
	EXPECT_EQ(0, file_exchange(KHUGEPAGED "scan_sleep_millisecs", "1", sleep, sizeof(sleep)));

	/* Memory that is not pinned collapses. For shared memory the kernel may not support it. */
	before = huge_pages();
	EXPECT_EQ(0, madvise(space, SPACE, MADV_HUGEPAGE));
	EXPECT_EQ(0, madvise(other, SPACE, MADV_HUGEPAGE));
	EXPECT_TRUE(await(huge_pages() >= before + SPACE));
	scans = file_number(KHUGEPAGED "full_scans", "");
	EXPECT_TRUE(await(file_number(KHUGEPAGED "full_scans", "") >= scans + 10));
	expect_on(_metadata);

	EXPECT_EQ(0, file_write(KHUGEPAGED "pages_to_scan", pages));
	EXPECT_EQ(0, file_write(KHUGEPAGED "scan_sleep_millisecs", sleep));
	EXPECT_EQ(0, munmap(other, SPACE));
	expect_all_counted(_metadata);
}

TEST_F(endure, repeated_compaction_ends_no_session)
{
	long long scanned = file_number("/proc/vmstat", "compact_migrate_scanned ");

	SKIP_IF(access("/proc/sys/vm/compact_memory", W_OK),
		"compact_memory: needs root and COMPACTION");
	for (unsigned int i = 0; i < 20; i++) {
		ASSERT_EQ(0, file_write("/proc/sys/vm/compact_memory", "1"));
		if (i % 5 == 0)
			expect_on(_metadata);
	}
	EXPECT_LT(scanned, file_number("/proc/vmstat", "compact_migrate_scanned "));
	expect_all_counted(_metadata);
}

/*
 * Two NUMA nodes
 */

static bool one_node(void)
{
	return access(NODES "node1", F_OK);
}

/* Asks to move @nr pages from @start to @node. If @node is -1, only gets the node of each page. */
static bool move_pages_to(char *start, unsigned int nr, int node, int *nodes)
{
	void *pages[64];
	int to[64];

	for (unsigned int i = 0; i < nr; i++) {
		pages[i] = start + i * PAGE;
		to[i] = node;
		nodes[i] = -EIO;
	}
	return syscall(SYS_move_pages, 0, (long)nr, pages, node < 0 ? NULL : to, nodes,
		       MPOL_MF_MOVE) >= 0;
}

TEST_F(endure, a_move_to_another_node_fails_and_ends_no_session)
{
	const unsigned int nr = SESSIONS * SIZE / PAGE;
	int before[64], after[64], asked[64];
	unsigned int moved = 0, i;

	ASSERT_GE(64U, nr);
	SKIP_IF(one_node(), "this machine has one NUMA node");
	ASSERT_TRUE(move_pages_to(space, nr, -1, before));
	for (i = 0; i < 4; i++) {
		int node = i % 2;
		unsigned long from = 1 << !node, to = 1 << node;

		/*
		 * Asks for each page, for each range and for the whole process. Pinned pages stay.
		 */
		ASSERT_TRUE(move_pages_to(space, nr, node, asked));
		ASSERT_TRUE(move_pages_to(space + NEIGHBOUR, nr, node, asked));
		syscall(SYS_mbind, space, SPACE, MPOL_BIND, &to, 8UL, MPOL_MF_MOVE);
		ASSERT_LE(0, syscall(SYS_migrate_pages, 0, 8UL, &from, &to));
		ASSERT_TRUE(move_pages_to(space + NEIGHBOUR, nr, -1, asked));
		for (unsigned int page = 0; page < nr; page++)
			moved += asked[page] == node;
		if (i % 2 == 0)
			expect_on(_metadata);
	}
	ASSERT_TRUE(move_pages_to(space, nr, -1, after));
	EXPECT_EQ(0, memcmp(before, after, nr * sizeof(*before)));
	/* A page does not move if another CPU holds it at that moment. */
	EXPECT_LT(2 * nr, moved);
	expect_all_counted(_metadata);
}

TEST_F(endure, NUMA_balancing_ends_no_session)
{
	const char *control = "/proc/sys/kernel/numa_balancing";
	const unsigned int enough_faults = variant->huge ? 4 : 200;
	const unsigned long both = 3;
	long long faults;
	char old[16];

	SKIP_IF(one_node(), "this machine has one NUMA node");
	SKIP_IF(file_number(control, "") != 1 && access(control, W_OK),
		"kernel.numa_balancing is not 1, and only root can set it");
	file_line(control, old, sizeof(old));
	ASSERT_TRUE(!strcmp(old, "1") || !file_write(control, "1"));
	/* NUMA balancing skips shared memory unless its policy has MPOL_F_NUMA_BALANCING. */
	ASSERT_EQ(0, syscall(SYS_mbind, space, SPACE, MPOL_BIND | MPOL_F_NUMA_BALANCING,
			     &both, 8UL, 0));
	for (unsigned int i = 0; i < 2; i++) {
		faults = file_number("/proc/vmstat", "numa_hint_faults ");
		EXPECT_TRUE(await(file_number("/proc/vmstat", "numa_hint_faults ") >=
				  faults + enough_faults)) {
			TH_LOG("%lld of %u", file_number("/proc/vmstat", "numa_hint_faults ") -
			       faults, enough_faults);
		}
		expect_on(_metadata);
	}
	EXPECT_TRUE(!strcmp(old, "1") || !file_write(control, old));
	expect_all_counted(_metadata);
}

TEST_HARNESS_MAIN
