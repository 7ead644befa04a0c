/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slots of memory that can be mapped, unmapped, moved and changed, each followed by as much
 * unmapped address space. The functions return 0 or a negative errno
 */
#ifndef _SELFTESTS_SLOTS_H
#define _SELFTESTS_SLOTS_H

#include "chance.h"
#include "madvise.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret	447
#endif

#define SELF		"/proc/self/exe"

#define SLOTS		12U
#define SLOT_SIZE	(2UL << 20)
#define SLOT_STRIDE	(2 * SLOT_SIZE)
#define SLOT(i)		((char *)(0x100000000000UL + (i) * SLOT_STRIDE))
#define SLOT_PAGES	32U	/* size of a slot that is mostly used */

/* Descriptors */
#define DEVICE_FD	97	/* memory of a device, if it is open */
#define FILE_FD		98	/* a file on FUSE, if it is open */
#define SLOT_FD		120	/* first number for the slots' files, if they have one */

enum memory {
	ANONYMOUS, HUGE, SHARED, MEMFD, MEMFD_PRIVATE, FORMER, HUGETLB, HUGETLB_SHARED,
	FILE_PRIVATE, ZERO, STACK, DEVICE, FUSE_PRIVATE, FUSE_SHARED, SECRET, READ_ONLY, NO_ACCESS,
	KINDS
};

#define NO_FILE		(MAP_PRIVATE | MAP_ANONYMOUS)
#define READ_WRITE	(PROT_READ | PROT_WRITE)

static const struct {
	const char *name;
	int flags;
	int prot;
} kinds[KINDS] = {
	[ANONYMOUS] = { "anonymous", NO_FILE, READ_WRITE },
	[HUGE] = { "THP", NO_FILE, READ_WRITE },
	[SHARED] = { "shmem", MAP_SHARED | MAP_ANONYMOUS, READ_WRITE },
	[MEMFD] = { "memfd", MAP_SHARED, READ_WRITE },
	[MEMFD_PRIVATE] = { "private memfd", MAP_PRIVATE, READ_WRITE },
	[FORMER] = { "the file of before", MAP_SHARED, READ_WRITE },
	[HUGETLB] = { "hugetlb", NO_FILE | MAP_HUGETLB, READ_WRITE },
	[HUGETLB_SHARED] = { "shared hugetlb", MAP_SHARED, READ_WRITE },
	[FILE_PRIVATE] = { "private file", MAP_PRIVATE, READ_WRITE },
	[ZERO] = { "/dev/zero", MAP_PRIVATE, READ_WRITE },
	[STACK] = { "stack", NO_FILE | MAP_GROWSDOWN | MAP_STACK, READ_WRITE },
	[DEVICE] = { "device", MAP_SHARED, READ_WRITE },
	[FUSE_PRIVATE] = { "private FUSE", MAP_PRIVATE, READ_WRITE },
	[FUSE_SHARED] = { "shared FUSE", MAP_SHARED, READ_WRITE },
	[SECRET] = { "memfd_secret", MAP_SHARED, READ_WRITE },
	[READ_ONLY] = { "read-only", NO_FILE, PROT_READ },
	[NO_ACCESS] = { "no access", NO_FILE, PROT_NONE },
};

/* Moves the descriptor @fd to the number @to. @fd: or -1, with an errno, which is returned. */
static inline int move_fd(int fd, int to, int flags)
{
	int err = 0;

	if (fd < 0)
		return -errno;
	if (dup3(fd, to, flags) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Opens the file of memory of this kind. Returns -1 if it has none, or it cannot be opened. */
static inline int slot_open(enum memory kind, unsigned int i)
{
	int fd = -1;

	switch (kind) {
	case MEMFD:
	case MEMFD_PRIVATE:
		fd = memfd_create("slot", MFD_CLOEXEC);
		break;
	case HUGETLB_SHARED:
		fd = memfd_create("slot", MFD_CLOEXEC | MFD_HUGETLB);
		break;
	case SECRET:
		fd = syscall(SYS_memfd_secret, 0);
		break;
	case FORMER:
		return fcntl(SLOT_FD + i, F_DUPFD_CLOEXEC, 0);
	case FILE_PRIVATE:
		return open(SELF, O_RDONLY | O_CLOEXEC);
	case ZERO:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case DEVICE:
		return fcntl(DEVICE_FD, F_DUPFD_CLOEXEC, 0);
	case FUSE_PRIVATE:
	case FUSE_SHARED:
		return fcntl(FILE_FD, F_DUPFD_CLOEXEC, 0);
	default:
		break;
	}
	if (fd >= 0 && ftruncate(fd, SLOT_SIZE)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Maps slot @i, and populates its first pages in one of @populate cases. */
static inline int slot_map(struct actor *a, enum memory kind, unsigned int i, u32 populate)
{
	int fd = slot_open(kind, i), err = 0;

	if ((fd < 0 && !(kinds[kind].flags & MAP_ANONYMOUS)) ||
	    mmap(SLOT(i), kind == DEVICE ? PAGE : SLOT_SIZE, kinds[kind].prot,
		 kinds[kind].flags | MAP_FIXED, fd, 0) == MAP_FAILED)
		err = -errno;
	move_fd(fd, SLOT_FD + i, one_in(a, 4) ? 0 : O_CLOEXEC);
	if (err)
		return err;
	if (kind == HUGE || one_in(a, 16))
		madvise(SLOT(i), SLOT_SIZE, MADV_HUGEPAGE);
	else if (!one_in(a, 8))
		madvise(SLOT(i), SLOT_SIZE, MADV_NOHUGEPAGE);
	if (one_in(a, populate))
		madvise(SLOT(i), SLOT_PAGES * PAGE, MADV_POPULATE_WRITE);
	return 0;
}

static inline char *any_slot(struct actor *a)
{
	return SLOT(any(a, SLOTS));
}

static inline int change_slot(struct actor *a)
{
	unsigned int i = any(a, SLOTS);
	u64 at = any(a, SLOT_PAGES) * PAGE, size = (1 + any(a, SLOT_PAGES)) * PAGE;
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	char *p = SLOT(i) + at;
	int err;

	if (one_in(a, 3))
		size = SLOT_SIZE - at;
	switch (any(a, 11)) {
	case 0:
		err = munmap(p, size);
		break;
	case 1:
		err = mremap(p, size, size, flags, any_slot(a)) == MAP_FAILED;
		break;
	case 2:
		err = mremap(p, size, size, flags | MREMAP_DONTUNMAP, any_slot(a)) == MAP_FAILED;
		break;
	case 3:
		err = mremap(p, size, (1 + any(a, SLOT_PAGES)) * PAGE, flags, any_slot(a)) ==
		      MAP_FAILED;
		break;
	case 4:
		err = mprotect(p, size, one_in(a, 2) ? PROT_READ : PROT_NONE);
		break;
	case 5:
		err = mprotect(p, size, PROT_READ | PROT_WRITE | PROT_EXEC);
		break;
	case 6:
		err = ftruncate(SLOT_FD + i, one_in(a, 2) ? at : SLOT_SIZE);
		break;
	case 7:
		err = fallocate(SLOT_FD + i, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
		break;
	default:
		err = mprotect(p, size, PROT_READ | PROT_WRITE);
		break;
	}
	return err ? -errno : 0;
}

static inline int advise_slot(struct actor *a)
{
	int advice = ONE_OF(a, int,
			    MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_DONTFORK, MADV_DOFORK,
			    MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_MERGEABLE, MADV_UNMERGEABLE,
			    MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLLAPSE, MADV_POPULATE_WRITE,
			    MADV_COLD, MADV_PAGEOUT, MADV_PAGEOUT, MADV_REMOVE);
	char *p = any_slot(a);

	if (one_in(a, 2))
		return madvise(p, SLOT_SIZE, advice) ? -errno : 0;
	return madvise(p + any(a, SLOT_PAGES) * PAGE, (1 + any(a, 4)) * PAGE, advice) ? -errno : 0;
}

#endif
