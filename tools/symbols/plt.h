/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stubs of the procedure linkage table, through which a binary calls functions of others
 *
 * No symbol table has them, but each jumps to where a slot points that the dynamic linker fills in;
 * the slot's relocation has the name.
 */
#ifndef PROFIL_TOOLS_PLT_H
#define PROFIL_TOOLS_PLT_H

#include <libelf.h>

#include "recording/format.h"

/**
 * plt_read - Find the stubs of a binary
 * @elf: The binary, which may be hostile.
 * @found: Is called for each: from @start up to @end it is a stub for @name, which is there as long
 *	as @elf.
 * @data: For @found.
 */
void plt_read(Elf *elf, void (*found)(void *data, u64 start, u64 end, const char *name),
	      void *data);

#endif /* PROFIL_TOOLS_PLT_H */
