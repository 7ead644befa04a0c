/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stubs of the procedure linkage table, by which a binary calls functions of other binaries
 *
 * Stubs are not in the symbol table. A stub jumps to the address in a slot. The dynamic linker
 * fills in the slot; the relocation of the slot has the name of the function.
 */
#ifndef PROFIL_TOOLS_PLT_H
#define PROFIL_TOOLS_PLT_H

#include <libelf.h>

#include "recording/format.h"

/**
 * plt_read - Find the stubs of a binary
 * @elf: The binary, which may be hostile.
 * @found: This function is called for each stub, with the name of the function to which the stub
 *	jumps. The string is valid as long as @elf.
 * @data: Passed to @found.
 */
void plt_read(Elf *elf, void (*found)(void *data, u64 start, u64 end, const char *name),
	      void *data);

#endif /* PROFIL_TOOLS_PLT_H */
