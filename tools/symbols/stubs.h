/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stubs by which a program or library calls functions of others, in a confined process
 *
 * Linkers put them into linkage tables. Symbol tables do not have them, but each stub jumps to the
 * address in a slot of the global offset table, and a relocation says which function that is.
 */
#ifndef PROFIL_TOOLS_STUBS_H
#define PROFIL_TOOLS_STUBS_H

#include "symbols/elf_file.h"
#include "symbols/lookup.h"

/* A stub that contains a place */
struct stub {
	u64 start;
	u64 end;
	u64 slot;		/* the address of its slot */
	u64 target;		/* if the function has no name there: its address; otherwise 0 */
	const char *name;	/* NULL if it is not known */
};

/**
 * struct stubs - The stubs of a file that contain places
 * @stubs: The stubs, sorted by slot.
 * @targets: The functions that only the symbol table can name. The caller looks them up.
 */
struct stubs {
	struct stub *stubs;
	size_t nr;
	struct lookup targets;
};

/* Finds the stubs that contain places. Other code of linkage tables gets the name of its table. */
void stubs_find(struct stubs *stubs, struct lookup *lookup, Elf *elf);

/* Gives names such as memcpy@plt to the places in the stubs, and frees @stubs. */
void stubs_add(struct stubs *stubs, struct lookup *lookup);

#endif /* PROFIL_TOOLS_STUBS_H */
