/* SPDX-License-Identifier: GPL-2.0 */
/* Unwind tables of the program itself */
#ifndef _SELFTESTS_UNWIND_H
#define _SELFTESTS_UNWIND_H

#include "maps.h"

#define UNWIND_ROWS	32	/* of unwind_give(): as many in a block as a large program has */

/* Returns the offset in its file of the text at @address; 0 if it is not mapped. */
static inline u64 text_offset(const void *address)
{
	struct mapping m;

	return mapping_of(addr(address), &m) ? addr(address) - m.start + m.offset : 0;
}

/* Gives the session @fd a table with one rule, for the block with @address. */
static inline int unwind_give(int fd, const void *address, struct profil_unwind_rule rule)
{
	static u32 rows[UNWIND_ROWS], blocks[65536];
	struct profil_unwind arg = {
		.size = sizeof(arg),
		.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.nr_blocks = text_offset(address) / PROFIL_UNWIND_BLOCK + 1,
		.nr_rows = UNWIND_ROWS,
		.nr_rules = 1,
		.blocks = addr(blocks),
		.rows = addr(rows),
		.rules = addr(&rule),
	};
	int err;

	for (u32 i = 0; i < UNWIND_ROWS; i++)
		rows[i] = i * (PROFIL_UNWIND_BLOCK / UNWIND_ROWS) << 16;
	err = descriptor_ioctl(fd, PROFIL_IOC_UNWIND, &arg);
	close(arg.fd);
	return err;
}

#endif /* _SELFTESTS_UNWIND_H */
