// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: which memory is refused, which can be counted into, and how many pages are charged.
 */
#include "kselftest_harness.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "kernel.h"
#include "pci.h"
#include "process.h"
#include "tags.h"
#include "users.h"

#define KERNEL_ADDRESS	0xffff888000001000ULL
#define NO_ADDRESS	0x0000900000000000ULL	/* not canonical, neither user nor kernel */

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* Maps a file. If that fails, the process exits. */
static u8 *map(u64 size, int flags, int fd)
{
	u8 *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* Returns a file of @pages pages in memory. */
static int memory_file(u64 pages)
{
	int fd = memfd_create("profil", MFD_CLOEXEC);

	MUST(fd >= 0 && !ftruncate(fd, pages * PAGE));
	return fd;
}

static u64 bytes_spanned(const void *buffer, u64 bytes)
{
	u64 first = addr(buffer) / PAGE, last = (addr(buffer) + bytes - 1) / PAGE;

	return (last - first + 1) * PAGE;
}

/*
 * Starts a session that counts into the last counter of a zeroed buffer. Exactly the buffer's
 * pages must be charged.
 */
static void expect_counts(struct __test_metadata *_metadata, void *buffer, u64 nr_counters,
			  u32 width)
{
	struct profil_range range = range_burn(buffer, nr_counters, width, nr_counters - 1);
	u64 locked = bytes_spanned(buffer, nr_counters * width);
	u64 before = pinned_bytes(), wrong = 0;
	struct profil_stats stats;

	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(before + locked, pinned_bytes());
	while (counter(buffer, width, nr_counters - 1) < 3)
		ASSERT_EQ(0, burn_ticks(PROCESS, 1));
	ASSERT_EQ(0, session_stats(PROCESS, &stats));
	EXPECT_EQ(locked, stats.locked);
	EXPECT_EQ(PROFIL_STATE_ON, stats.state);
	ASSERT_STOP(PROCESS, &stats);
	EXPECT_EQ(before, pinned_bytes());

	EXPECT_EQ(0, stats.dropped);
	EXPECT_EQ(stats.hit, counter(buffer, width, nr_counters - 1));
	for (u64 i = 0; i < nr_counters - 1; i++)
		wrong += counter(buffer, width, i) != 0;
	EXPECT_EQ(0, wrong);
}

/* The state in which buffers must be refused: no session, or one that is on and must not change. */
static struct {
	bool on;
	__u64 ticks;
	__u64 locked;	/* bytes that the session has charged */
	u16 *counters;	/* of the session that is on */
	u16 *good;	/* a page of a valid buffer */
	struct profil_query limits;
} scene;

FIXTURE(bad) {
};

FIXTURE_VARIANT(bad) {
	bool on;
};

FIXTURE_VARIANT_ADD(bad, off) { false };
FIXTURE_VARIANT_ADD(bad, on) { true };

FIXTURE_SETUP(bad)
{
	struct profil_range range;

	ASSERT_EQ(0, device_query(&scene.limits));
	scene.counters = map_pages(1);
	scene.good = map_pages(1);
	scene.on = variant->on;
	if (scene.on) {
		range = range_all(scene.counters, 4, 2);
		ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
		ASSERT_EQ(0, burn_ticks(PROCESS, 4));
		scene.ticks = 4;
		scene.locked = PAGE;
	}
}

FIXTURE_TEARDOWN(bad)
{
	struct profil_stats stats;

	if (scene.on) {
		EXPECT_EQ(0, burn_ticks(PROCESS, 2));
		EXPECT_EQ(0, session_stop(PROCESS, &stats));
		EXPECT_LE(scene.ticks + 2, stats.ticks);
		/* A child of system() shares the address space until its exec. */
		EXPECT_EQ(stats.ticks, stats.hit + stats.dropped_exec);
		EXPECT_EQ(stats.hit, scene.counters[0]);
	}
	EXPECT_EQ(0, scene.good[0]);
	EXPECT_EQ(0, pinned_bytes());
}

/* Passes the bad buffer in a single range, in the second of two ranges, and in the first of two. */
static void expect_refused(struct __test_metadata *_metadata, int error, u64 buffer, u64 nr,
			   u32 width, int line)
{
	struct profil_range good = range_all(scene.good, 4, 2), bad = good;
	struct profil_stats stats;
	__u64 pinned;
	bool same;

	good.end = 0x1000;
	bad.start = 0x1000;
	bad.buffer = buffer;
	bad.nr_counters = nr;
	bad.width = width;
	for (int i = 0; i < 3; i++) {
		const struct profil_range ranges[] = { i == 1 ? good : bad, i == 1 ? bad : good };

		EXPECT_EQ(-error, session_start(PROCESS, PROFIL_START_REPLACE, ranges, i ? 2 : 1)) {
			TH_LOG("line %d, case %d", line, i);
		}
	}

	pinned = pinned_bytes();
	ASSERT_EQ(0, session_stats(PROCESS, &stats));
	same = stats.state == (scene.on ? PROFIL_STATE_ON : PROFIL_STATE_OFF) &&
	       stats.ticks >= scene.ticks && stats.locked == scene.locked &&
	       pinned == scene.locked && accounted(&stats);
	EXPECT_TRUE(same) {
		TH_LOG("line %d: state %u, %llu ticks (had %llu), %llu locked (VmPin %llu)",
		       line, stats.state, stats.ticks, scene.ticks, stats.locked, pinned);
	}
	scene.ticks = stats.ticks;
}

#define EXPECT_REFUSED(error, buffer, nr, width) \
	expect_refused(_metadata, error, buffer, nr, width, __LINE__)

TEST_F(bad, addresses_that_are_not_user_memory_are_refused_with_EFAULT)
{
	u8 *p = map_pages(1);

	ASSERT_EQ(0, munmap(p, PAGE));
	EXPECT_REFUSED(EFAULT, 0, 4, 2);
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	EXPECT_REFUSED(EFAULT, PAGE, 4, 2);
	EXPECT_REFUSED(EFAULT, KERNEL_ADDRESS, 4, 2);
	EXPECT_REFUSED(EFAULT, NO_ADDRESS, 4, 2);
	EXPECT_REFUSED(EFAULT, -PAGE, PAGE / 2, 2);
	EXPECT_REFUSED(EFAULT, -PAGE, PAGE, 2);
	EXPECT_REFUSED(EFAULT, -2ULL, 1, 2);
	EXPECT_REFUSED(EFAULT, -8ULL, scene.limits.max_counters, 8);
}

static const u64 constant[512];

TEST_F(bad, read_only_pages_are_refused_with_EFAULT)
{
	u8 *p = map_pages(1);

	ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ));
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	EXPECT_EQ(0, *(volatile u8 *)p);
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	ASSERT_EQ(0, mprotect(p, PAGE, PROT_NONE));
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	EXPECT_REFUSED(EFAULT, addr(constant), 512, 8);
	EXPECT_REFUSED(EFAULT, addr(__start_profil_burn) & -8ULL, 1, 8);
}

TEST_F(bad, a_large_buffer_with_one_bad_page_is_refused)
{
	const u64 n = 600, bad[] = { 0, 1, n / 2, n - 2, n - 1 };
	u8 *p, *q;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		p = map_pages(n);
		q = p + bad[i] * PAGE;
		ASSERT_EQ(0, mprotect(q, PAGE, PROT_READ));
		EXPECT_REFUSED(EFAULT, addr(p), n * PAGE / 8, 8);
		ASSERT_EQ(0, mprotect(q, PAGE, PROT_NONE));
		EXPECT_REFUSED(EFAULT, addr(p), n * PAGE / 8, 8);
		ASSERT_EQ(0, munmap(q, PAGE));
		EXPECT_REFUSED(EFAULT, addr(p), n * PAGE / 8, 8);
		ASSERT_EQ(0, munmap(p, n * PAGE));
	}
}

TEST_F(bad, a_buffer_whose_last_counter_is_not_mapped_is_refused)
{
	u8 *p = map_pages(2);

	ASSERT_EQ(0, munmap(p + PAGE, PAGE));
	for (u32 width = 2; width <= 8; width *= 2) {
		EXPECT_REFUSED(EFAULT, addr(p), PAGE / width + 1, width);
		EXPECT_REFUSED(EFAULT, addr(p) + PAGE - width, 2, width);
	}
}

TEST_F(bad, misaligned_buffers_are_refused)
{
	u64 p = addr(map_pages(2));

	for (u32 width = 2; width <= 8; width *= 2) {
		for (u64 by = 1; by < width; by++) {
			EXPECT_REFUSED(EINVAL, p + by, 1, width);
			EXPECT_REFUSED(EINVAL, p + PAGE - by, 1, width);
		}
	}
}

/* The size is far above all memory. The call fails before anything is allocated for it. */
TEST_F(bad, buffers_far_above_all_memory_are_refused)
{
	const u64 max_counters = scene.limits.max_counters;
	/* RLIMIT_MEMLOCK is checked before the mappings. It does not limit root. */
	const int error = geteuid() ? EPERM : EFAULT;

	EXPECT_REFUSED(error, addr(scene.good), max_counters, 2);
	EXPECT_REFUSED(error, addr(scene.good), max_counters, 8);
	EXPECT_REFUSED(error, addr(scene.good), max_counters - 1, 4);
}

TEST_F(bad, device_memory_is_refused)
{
	int fd = pci_memory_open();
	u8 *p;

	SKIP_IF(fd < 0, "no PCI memory that can be mapped here (needs root)");
	p = map(PAGE, MAP_SHARED, fd);
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	EXPECT_REFUSED(EFAULT, addr(p), PAGE / 8, 8);
}

TEST_F(bad, secret_memory_is_refused)
{
	int fd = syscall(SYS_memfd_secret, 0);
	u8 *p;

	SKIP_IF(fd < 0, "no memfd_secret() here: %s", strerror(errno));
	ASSERT_EQ(0, ftruncate(fd, PAGE));
	p = map(PAGE, MAP_SHARED, fd);
	p[0] = 0;
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	ASSERT_EQ(0, munmap(p, PAGE));
}

/* Writes a FAT file system of one megabyte, without needing a tool. */
static bool make_fat(const char *path)
{
	static const u8 image[] = {
		0xeb, 0x3c, 0x90, 'p', 'r', 'o', 'f', 'i', 'l', ' ', ' ',
		0x00, 0x02,	/* bytes in a sector */
		4,		/* sectors in a cluster */
		1, 0,		/* sectors before the FAT */
		1,		/* FATs */
		16, 0,		/* entries in the root directory */
		0x00, 0x08,	/* sectors */
		0xf8,		/* medium */
		2, 0,		/* sectors in the FAT */
		[510] = 0x55, 0xaa,
		[512] = 0xf8, 0xff, 0xff,	/* the FAT */
	};
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool made = write(fd, image, sizeof(image)) == sizeof(image) && !ftruncate(fd, 1 << 20);

	close(fd);
	return made;
}

/*
 * Opens a file that is written back to a disk: in a file system made for it, or in one found here.
 */
static int file_written_back(void)
{
	const char *const dirs[] = { "/mnt", ".", "/var/tmp", "/tmp", "/root" };

	if (!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("none", "/tmp", "tmpfs", 0, NULL) && make_fat("/tmp/fat"))
		system("modprobe -aq loop msdos; mount -t msdos -o loop /tmp/fat /mnt");
	for (unsigned int i = 0; i < ARRAY_SIZE(dirs); i++) {
		char path[PATH_MAX];
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "%s/profil-XXXXXX", dirs[i]);
		fd = mkostemp(path, O_CLOEXEC);
		unlink(path);
		if (!fstat(fd, &st) && major(st.st_dev))
			return fd;
		close(fd);
	}
	return -1;
}

TEST_F(bad, shared_files_with_writeback_are_refused)
{
	int fd = file_written_back();
	u8 *p, *q;

	SKIP_IF(fd < 0, "no file system with a disk behind it here");
	ASSERT_EQ(0, ftruncate(fd, 4 * PAGE));
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	SKIP_IF(p == MAP_FAILED, "no shared mapping of a file: %s", strerror(errno));
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	memset(p, 0, 4 * PAGE);		/* dirty pages are refused, too */
	EXPECT_REFUSED(EFAULT, addr(p), 4, 2);
	EXPECT_REFUSED(EFAULT, addr(p), 4 * PAGE / 8, 8);

	/* The file is mapped between pages of anonymous memory. */
	q = map_pages(4);
	ASSERT_EQ(q + PAGE, mmap(q + PAGE, PAGE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0));
	EXPECT_REFUSED(EFAULT, addr(q), 4 * PAGE / 8, 8);
	if (!variant->on) {
		expect_counts(_metadata, q, 4, 8);
		/* A private mapping of the file is accepted. */
		p = map(4 * PAGE, MAP_PRIVATE, fd);
		expect_counts(_metadata, p, 4 * PAGE / 2, 2);
	}
}

/*
 * Memory that is accepted
 */
static u16 in_data[8192] = { 1 };
static u32 in_bss[8192];

TEST(data_bss_stack_and_heap_are_accepted)
{
	u64 on_stack[1000] = {};
	u16 *heap = calloc(3001, 2);

	ASSERT_NE(NULL, heap);
	in_data[0] = 0;
	expect_counts(_metadata, in_data, ARRAY_SIZE(in_data), 2);
	expect_counts(_metadata, in_bss, ARRAY_SIZE(in_bss), 4);
	expect_counts(_metadata, on_stack, ARRAY_SIZE(on_stack), 8);
	expect_counts(_metadata, heap, 3001, 2);
}

TEST(anonymous_memory_is_accepted)
{
	u8 *p;

	/* Pages never touched, only read (the zero page is mapped), written, and shared. */
	p = map_pages(300);
	expect_counts(_metadata, p, 300 * PAGE / 2, 2);
	p = map_pages(4);
	EXPECT_EQ(0, *(volatile u8 *)p);
	EXPECT_EQ(0, *(volatile u8 *)(p + 3 * PAGE));
	expect_counts(_metadata, p, 4 * PAGE / 4, 4);
	p = map_pages(4);
	memset(p, 1, 4 * PAGE);
	memset(p, 0, 4 * PAGE);
	expect_counts(_metadata, p, 4 * PAGE / 8, 8);
	p = map_shared(4 * PAGE);
	expect_counts(_metadata, p, 4 * PAGE / 2, 2);
}

TEST(shared_memory_is_accepted)
{
	int fd = memory_file(4);
	u8 *p = map(4 * PAGE, MAP_SHARED, fd), *q = map(4 * PAGE, MAP_SHARED, fd);

	expect_counts(_metadata, p, 4 * PAGE / 2, 2);
	EXPECT_LE(3, counter(q, 2, 4 * PAGE / 2 - 1));	/* both map the same memory */
	EXPECT_EQ(0, memcmp(p, q, 4 * PAGE));
}

TEST_F(bad, shared_memory_past_the_end_of_its_file_is_refused)
{
	u8 *p = map(4 * PAGE, MAP_SHARED, memory_file(3));

	EXPECT_REFUSED(EFAULT, addr(p), 4 * PAGE / 2, 2);
	EXPECT_REFUSED(EFAULT, addr(p + 3 * PAGE), 1, 2);
}

/* The writes replace the pages of the file by private ones. */
TEST(a_private_mapping_of_a_file_is_accepted)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	u8 *p;

	ASSERT_LE(0, fd);
	p = map(2 * PAGE, MAP_PRIVATE, fd);
	memset(p, 0, PAGE);
	memset(p + PAGE, 0, PAGE);
	expect_counts(_metadata, p, 2 * PAGE / 2, 2);
}

#ifdef HAVE_TAGS

#define TAGGED(p)	((void *)(addr(p) | 0x5aULL << 56))

/* By the kernel's ABI, the tag is an error unless the process has asked for tagged addresses. */
TEST(a_tagged_address_is_accepted_from_a_process_that_may_pass_it)
{
	u8 *p = map_pages(2);
	struct profil_range range = range_burn(TAGGED(p), 4, 2, 3);

	EXPECT_EQ(-EFAULT, session_start(PROCESS, 0, &range, 1));
	SKIP_IF(!tags_enable(), "no tagged addresses here");
	expect_counts(_metadata, TAGGED(p), PAGE / 4, 8);
}

/* The two ranges are in the same page. */
TEST(a_page_is_charged_once_for_its_addresses_with_different_tags)
{
	u8 *p = map_pages(1);
	struct profil_range ranges[] = {
		range_burn(p, 4, 2, 3),
		range_burn(TAGGED(p), 4, 2, 3),
	};

	ranges[1].start -= 4096;
	ranges[1].end = ranges[0].start;
	SKIP_IF(!tags_enable(), "no tagged addresses here");
	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, 2));
	EXPECT_EQ(PAGE, pinned_bytes());
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
}
#endif

TEST(mlocked_memory_is_accepted_and_charged_separately)
{
	u8 *p = map_pages(4);

	ASSERT_EQ(0, mlock(p, 4 * PAGE));
	EXPECT_EQ(4 * PAGE, mlocked_bytes());
	EXPECT_EQ(0, pinned_bytes());
	expect_counts(_metadata, p, 4 * PAGE / 2, 2);	/* adds to VmPin meanwhile */
	EXPECT_EQ(4 * PAGE, mlocked_bytes());
	EXPECT_EQ(0, pinned_bytes());
}

/* The pages are shared with a child by copy-on-write; the session pins the parent's own copies. */
TEST(pages_shared_by_copy_on_write_are_copied_for_the_parent)
{
	u8 *p = map_pages(2);
	int to_child[2];
	pid_t child;

	memset(p, 1, 2 * PAGE);
	memset(p, 0, 2 * PAGE);
	ASSERT_EQ(0, pipe(to_child));
	child = FORK({
		char byte;

		close(to_child[1]);
		MUST(read(to_child[0], &byte, 1) == 1);
		for (u64 i = 0; i < 2 * PAGE; i++)
			MUST(p[i] == 0);
	});
	expect_counts(_metadata, p, 2 * PAGE / 2, 2);
	EXPECT_EQ(1, write(to_child[1], "", 1));
	EXPECT_EQ(0, status_of(child));
}

TEST(hugetlb_memory_is_accepted)
{
	const int kinds[] = { MAP_PRIVATE, MAP_SHARED };

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		u8 *p = hugetlb_map(2 * HUGE_PAGE, kinds[i]);

		NEED_HUGETLB(p);
		expect_counts(_metadata, p + HUGE_PAGE - PAGE, PAGE, 2);
		memset(p, 0, 2 * HUGE_PAGE);
		expect_counts(_metadata, p + 8, 2 * HUGE_PAGE / 8 - 1, 8);
		hugetlb_unmap(p, 2 * HUGE_PAGE);
	}
}

/* Returns the size of all transparent huge pages of this process, in KiB. */
static long long huge_kib(void)
{
	return file_number("/proc/self/smaps_rollup", "AnonHugePages:");
}

TEST(a_transparent_huge_page_is_accepted)
{
	const long long before = huge_kib();
	u8 *p = map_private(2 * HUGE_PAGE);

	p += -addr(p) % HUGE_PAGE;
	SKIP_IF(madvise(p, HUGE_PAGE, MADV_HUGEPAGE), "no transparent huge pages here: %s",
		strerror(errno));
	memset(p, 0, HUGE_PAGE);
	SKIP_IF(huge_kib() == before, "no transparent huge page to be had");
	expect_counts(_metadata, p + PAGE + 4, 1, 4);
	expect_counts(_metadata, p + 8 * PAGE - 2, 2, 2);
	memset(p, 0, HUGE_PAGE);
	expect_counts(_metadata, p, HUGE_PAGE / 2, 2);
}

/*
 * Sizes and positions of buffers
 */
TEST(one_counter_at_either_end_of_a_page_is_counted)
{
	u8 *p;

	for (u32 width = 2; width <= 8; width *= 2) {
		/* The first and the last counter of a page, with no other ones. */
		p = map_pages(3);
		ASSERT_EQ(0, mprotect(p, PAGE, PROT_NONE));
		ASSERT_EQ(0, mprotect(p + 2 * PAGE, PAGE, PROT_NONE));
		expect_counts(_metadata, p + PAGE, 1, width);
		expect_counts(_metadata, p + 2 * PAGE - width, 1, width);
	}
}

TEST(buffers_across_page_boundaries_are_counted)
{
	u8 *p;

	for (u32 width = 2; width <= 8; width *= 2) {
		p = map_pages(4);
		ASSERT_EQ(0, mprotect(p + 3 * PAGE, PAGE, PROT_NONE));
		expect_counts(_metadata, p + PAGE - width, 2, width);
		p[PAGE] = 0;
		memset(p, 0, 3 * PAGE);
		expect_counts(_metadata, p + width, PAGE / width, width);
		memset(p, 0, 3 * PAGE);
		expect_counts(_metadata, p + PAGE - width, 2 * PAGE / width + 1, width);
	}
}

/*
 * Charges: a session is charged once for each page
 */
struct place {
	u64 from, to;	/* in 64ths of a page; to == 0: none */
};

static void expect_charge(struct __test_metadata *_metadata, u8 *p, const struct place *places,
			  u32 nr, u64 expected)
{
	struct profil_range ranges[8];
	struct profil_stats stats;

	for (u32 i = 0; i < nr; i++) {
		ranges[i] = range_all(p + places[i].from * PAGE / 64,
				      (places[i].to - places[i].from) * PAGE / 64 / 8, 8);
		ranges[i].start = i;
		ranges[i].end = i + 1;
	}
	for (u32 scope = PROCESS; scope <= THREAD; scope++) {
		ASSERT_EQ(0, session_start(scope, 0, ranges, nr));
		ASSERT_EQ(0, session_stats(scope, &stats));
		EXPECT_EQ(expected * PAGE, stats.locked);
		EXPECT_EQ(expected * PAGE, pinned_bytes());
		EXPECT_EQ(0, session_stop(scope, NULL));
		EXPECT_EQ(0, pinned_bytes());
	}
}

TEST(each_page_of_a_session_is_charged_once)
{
	u8 *p = map_pages(8);
#define CHARGES(expected, ...) do {						\
	const struct place places[] = { __VA_ARGS__ };				\
	expect_charge(_metadata, p, places, ARRAY_SIZE(places), expected);	\
} while (0)

	CHARGES(0, { 0, 0 });
	CHARGES(1, { 0, 1 });
	CHARGES(1, { 63, 64 });
	CHARGES(2, { 63, 65 });
	CHARGES(8, { 0, 512 });
	CHARGES(1, { 0, 1 }, { 5, 6 }, { 63, 64 });	/* all in one page */
	CHARGES(1, { 3, 9 }, { 3, 9 }, { 5, 11 });	/* overlapping */
	CHARGES(2, { 0, 64 }, { 64, 128 });		/* adjacent */
	CHARGES(3, { 0, 65 }, { 65, 129 });		/* both use the middle page */
	CHARGES(2, { 0, 1 }, { 448, 449 });		/* pages in between are not charged */
	CHARGES(4, { 448, 449 }, { 0, 70 }, { 130, 131 });	/* not in the order of addresses */
	CHARGES(8, { 0, 512 }, { 100, 200 }, { 0, 1 }, { 511, 512 });
	CHARGES(1, { 0, 0 }, { 7, 8 }, { 512, 512 });	/* some have no counters */
#undef CHARGES
}

TEST(ranges_with_a_common_counter_count_into_it_together)
{
	u64 *p = map_pages(1);
	struct profil_range ranges[3];
	struct profil_stats stats;

	ranges[0] = range_all(p + 1, 1, 8);
	ranges[0].end = addr(__start_profil_burn);
	ranges[1] = range_burn(p, 3, 8, 1);
	ranges[2] = range_all(p + 1, 2, 8);
	ranges[2].start = addr(__stop_profil_burn);
	ASSERT_EQ(0, session_start(PROCESS, 0, ranges, 3));
	EXPECT_EQ(PAGE, pinned_bytes());
	EXPECT_EQ(0, burn_ticks(PROCESS, 8));
	EXPECT_EQ(0, session_stop(PROCESS, &stats));
	EXPECT_LE(8, stats.ticks);
	EXPECT_EQ(stats.ticks, stats.hit);
	EXPECT_EQ(stats.hit, p[1]);
}

TEST(counting_adds_to_the_old_values)
{
	u16 *p = map_pages(1);
	struct profil_range range;
	struct profil_stats stats;

	p[3] = 1000;
	p[4] = 7;
	range = range_burn(p, PAGE / 2, 2, 3);
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	while (counter(p, 2, 3) < 1003)
		ASSERT_EQ(0, burn_ticks(PROCESS, 1));
	ASSERT_STOP(PROCESS, &stats);
	EXPECT_EQ(1000 + stats.hit, p[3]);
	EXPECT_EQ(7, p[4]);
}

/*
 * RLIMIT_MEMLOCK, for a user without CAP_IPC_LOCK
 */
#define LIMIT	16	/* pages */

FIXTURE(limit) {
	u8 *p;		/* 64 pages */
	u8 *q;
};

FIXTURE_SETUP(limit)
{
	limit_memlock(LIMIT * PAGE);
	become_user(USER);
	ASSERT_DEVICE();
	self->p = map_pages(64);
	self->q = map_pages(64);
	ASSERT_EQ(0, pinned_bytes());
}

FIXTURE_TEARDOWN(limit)
{
	EXPECT_EQ(0, pinned_bytes());
}

/* Starts a session with a buffer of @n pages. */
static int start_pages(u32 scope, u32 flags, u8 *p, u64 n)
{
	struct profil_range range = range_all(p, n * PAGE / 2, 2);

	return session_start(scope, flags, &range, 1);
}

TEST_F(limit, a_session_can_lock_exactly_RLIMIT_MEMLOCK)
{
	struct profil_stats stats;

	for (u32 scope = PROCESS; scope <= THREAD; scope++) {
		EXPECT_EQ(-EPERM, start_pages(scope, 0, self->p, LIMIT + 1));
		EXPECT_EQ(0, pinned_bytes());
		EXPECT_EQ(-EPERM, start_pages(scope, 0, self->p, 64));
		EXPECT_EQ(0, pinned_bytes());
		ASSERT_EQ(0, start_pages(scope, 0, self->p, LIMIT));
		EXPECT_EQ(LIMIT * PAGE, pinned_bytes());
		EXPECT_EQ(0, burn_ticks(scope, 2));
		EXPECT_EQ(0, session_stop(scope, &stats));
		EXPECT_EQ(0, pinned_bytes());
		EXPECT_EQ(stats.ticks, stats.hit);
		EXPECT_LE(2, counter(self->p, 2, 0));
	}
}

/* If a buffer extends into one more page by a single counter, that page is charged. */
TEST_F(limit, a_buffer_that_touches_one_more_page_is_charged_for_it)
{
	struct profil_range range = range_all(self->p + PAGE - 2, LIMIT * PAGE / 2, 2);

	EXPECT_EQ(-EPERM, session_start(PROCESS, 0, &range, 1));
	range.nr_counters = (LIMIT - 1) * PAGE / 2 + 1;
	EXPECT_EQ(0, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
}

TEST_F(limit, a_page_of_many_ranges_is_charged_once)
{
	struct profil_range ranges[LIMIT + 1];

	for (unsigned int i = 0; i < LIMIT + 1; i++) {
		ranges[i] = range_all(self->p, LIMIT * PAGE / 2, 2);
		ranges[i].start = i;
		ranges[i].end = i + 1;
	}
	EXPECT_EQ(0, session_start(PROCESS, 0, ranges, LIMIT + 1));
	EXPECT_EQ(LIMIT * PAGE, pinned_bytes());
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	ranges[LIMIT].buffer = addr(self->q);
	ranges[LIMIT].nr_counters = 1;
	EXPECT_EQ(-EPERM, session_start(PROCESS, 0, ranges, LIMIT + 1));
}

TEST_F(limit, mlocked_memory_of_the_process_does_not_count_against_the_limit)
{
	ASSERT_EQ(0, mlock(self->q, LIMIT * PAGE));
	EXPECT_EQ(0, pinned_bytes());
	ASSERT_EQ(0, start_pages(PROCESS, 0, self->p, 10));
	EXPECT_EQ(10 * PAGE, pinned_bytes());
	/* Sessions of the process and of its threads share the limit. */
	EXPECT_EQ(-EPERM, start_pages(THREAD, 0, self->p, 7));
	ASSERT_EQ(0, start_pages(THREAD, 0, self->p, 6));
	EXPECT_EQ(LIMIT * PAGE, pinned_bytes());
	EXPECT_EQ(LIMIT * PAGE, mlocked_bytes());
	EXPECT_EQ(-1, mlock(self->q + LIMIT * PAGE, PAGE));
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	EXPECT_EQ(6 * PAGE, pinned_bytes());
	EXPECT_EQ(-1, mlock(self->q + LIMIT * PAGE, PAGE));
	EXPECT_EQ(0, munlockall());
	EXPECT_EQ(6 * PAGE, pinned_bytes());
	/* The pages of a session do not count against the limit of mlock(), either. */
	EXPECT_EQ(0, mlock(self->q, LIMIT * PAGE));
	EXPECT_EQ(0, session_stop(THREAD, NULL));
	EXPECT_EQ(0, munlockall());
}

TEST_F(limit, a_replacement_is_not_charged_twice)
{
	/* The same pages, other pages, fewer, and the first again */
	const struct {
		u8 *p;
		u64 n;
	} replacements[] = {
		{ self->p, LIMIT }, { self->q, LIMIT }, { self->q, 3 }, { self->p, LIMIT },
	};
	struct profil_stats stats;

	ASSERT_EQ(0, start_pages(PROCESS, 0, self->p, LIMIT));
	for (unsigned int i = 0; i < ARRAY_SIZE(replacements); i++) {
		EXPECT_EQ(0, start_pages(PROCESS, PROFIL_START_REPLACE,
					 replacements[i].p, replacements[i].n));
		EXPECT_EQ(replacements[i].n * PAGE, pinned_bytes());
	}
	EXPECT_EQ(0, burn_ticks(PROCESS, 3));
	/* One page more exceeds the limit; the session that is on continues. */
	EXPECT_EQ(-EPERM, start_pages(PROCESS, PROFIL_START_REPLACE, self->q, LIMIT + 1));
	EXPECT_EQ(LIMIT * PAGE, pinned_bytes());
	/* The session also continues if the replacement fails for another reason. */
	ASSERT_EQ(0, mprotect(self->q + PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(-EFAULT, start_pages(PROCESS, PROFIL_START_REPLACE, self->q, LIMIT));
	EXPECT_EQ(LIMIT * PAGE, pinned_bytes());
	EXPECT_EQ(0, burn_ticks(PROCESS, 1));
	EXPECT_EQ(0, session_stop(PROCESS, &stats));
	EXPECT_LE(4, stats.ticks);
	EXPECT_EQ(stats.ticks, stats.hit);
}

TEST_F(limit, a_limit_of_0_allows_only_sessions_without_counters)
{
	limit_memlock(0);
	EXPECT_EQ(-EPERM, start_pages(PROCESS, 0, self->p, 1));
	/* A session without counters locks nothing. */
	EXPECT_EQ(0, session_start(PROCESS, 0, NULL, 0));
	EXPECT_EQ(0, burn_ticks(PROCESS, 1));
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
}

TEST(CAP_IPC_LOCK_lifts_RLIMIT_MEMLOCK_but_pages_are_still_charged)
{
	u8 *p = map_pages(64);

	NEED_ROOT("CAP_IPC_LOCK");
	limit_memlock(PAGE);
	ASSERT_EQ(0, start_pages(PROCESS, 0, p, 64));
	EXPECT_EQ(64 * PAGE, pinned_bytes());
	EXPECT_EQ(0, burn_ticks(PROCESS, 1));
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	EXPECT_EQ(0, pinned_bytes());

	/* If the capability is dropped meanwhile, the stop still returns the whole charge. */
	ASSERT_EQ(0, start_pages(PROCESS, 0, p, 63));
	become_user(USER);
	EXPECT_EQ(-EPERM, start_pages(PROCESS, PROFIL_START_REPLACE, p, 64));
	EXPECT_EQ(63 * PAGE, pinned_bytes());
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	EXPECT_EQ(0, pinned_bytes());
	EXPECT_EQ(-EPERM, start_pages(PROCESS, 0, p, 64));
}

TEST_HARNESS_MAIN
