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
#include <unistd.h>

#define SLOTS		12U
#define SLOT_SIZE	(2UL << 20)
#define SLOT_STRIDE	(2 * SLOT_SIZE)
#define SLOT(i)		((char *)(0x100000000000UL + (i) * SLOT_STRIDE))
#define SLOT_PAGES	32U	/* size of a slot that is mostly used */
#define SLOT_FD		120	/* first number for the slots' files, if they have one */

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
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_DONTFORK, MADV_DOFORK,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_MERGEABLE, MADV_UNMERGEABLE,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLLAPSE, MADV_POPULATE_WRITE,
		MADV_COLD, MADV_PAGEOUT, MADV_PAGEOUT, MADV_REMOVE,
	};
	int advice = advices[any(a, ARRAY_SIZE(advices))];
	char *p = any_slot(a);

	if (one_in(a, 2))
		return madvise(p, SLOT_SIZE, advice) ? -errno : 0;
	return madvise(p + any(a, SLOT_PAGES) * PAGE, (1 + any(a, 4)) * PAGE, advice) ? -errno : 0;
}

#endif
