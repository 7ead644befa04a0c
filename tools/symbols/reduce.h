/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reduces call frame information to unwind tables, in a confined process: see unwind_table.h. */
#ifndef PROFIL_TOOLS_REDUCE_H
#define PROFIL_TOOLS_REDUCE_H

#include "symbols/elf_file.h"
#include "symbols/unwind_table.h"

/* The table as the process has made it. The rows have offsets in the file. */
struct reduced {
	struct reduced_row *rows;
	size_t nr_rows;
	struct profil_unwind_rule *rules;
	size_t nr_rules;
	u64 end;		/* of the text */

	/* Only reduce.c uses these. */
	u32 *slots;		/* of a table of hashes: the index of a rule + 1 */
};

struct reduced_row {
	u32 offset;
	u32 rule;
};

/* Makes the table. Returns false if there is none. */
bool reduce_file(struct reduced *reduced, const struct elf_file *file);

#endif /* PROFIL_TOOLS_REDUCE_H */
