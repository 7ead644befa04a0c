/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reduces call frame information to unwind tables, in a confined process: see unwind_table.h. */
#ifndef PROFIL_TOOLS_CFI_REDUCE_H
#define PROFIL_TOOLS_CFI_REDUCE_H

#include "symbols/elf_file.h"
#include "symbols/unwind_table.h"

/* The table as the process has made it. The rows have offsets in the file. */
struct reduced {
	struct reduced_row *rows;
	size_t nr_rows;
	struct profil_unwind_rule *rules;
	size_t nr_rules;
	u64 end;		/* of the text */

	/* Only cfi_reduce.c uses these. */
	u32 *slots;		/* of a table of hashes: the index of a rule + 1 */
};

struct reduced_row {
	u32 offset;
	u32 rule;
};

/* Makes the table of a file. @reduced: 0 at first. Returns false if there is none. */
bool reduce_file(struct reduced *reduced, const struct elf_file *file);

/* Begins the table of code without a file. @reduced: the table before, or 0. */
void reduce_begin(struct reduced *reduced);

/*
 * Adds the code from @start to @end, which is behind all that was added. Its call frame information
 * is in @elf. @base: the address whose offset in the table is 0.
 */
void reduce_code(struct reduced *reduced, Elf *elf, u64 start, u64 end, u64 base);

/* Ends the table. Returns false if it has no rule. */
bool reduce_end(struct reduced *reduced);

/* ---- unwind_table.c ---- */

/* Writes the table, without names, to the answer. */
void reduced_write(const struct reduced *reduced, const struct confined *confined);

/* Returns the number of bytes that this writes. */
size_t reduced_size(const struct reduced *reduced);

#endif /* PROFIL_TOOLS_CFI_REDUCE_H */
