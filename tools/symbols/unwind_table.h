/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables as the module takes them: see struct profil_unwind
 *
 * A table is made from the call frame information of a file, in a confined process. Each row of
 * that information becomes one row here, unless it has the rule of the row before it. Registers
 * that are not needed to find callers are left out.
 */
#ifndef PROFIL_TOOLS_UNWIND_TABLE_H
#define PROFIL_TOOLS_UNWIND_TABLE_H

#include <linux/profil.h>

#include "../util.h"

/* Other versions of these functions make other tables of the same file. */
#define UNWIND_TABLE_VERSION	2

/* A table has at most this many rows. The module may allow fewer. */
#define UNWIND_ROWS_MAX		(1U << 23)

/* The first letter of a name in struct unwind_table */
enum unwind_name {
	UNWIND_INTERPRETER = 'I',	/* PT_INTERP */
	UNWIND_RUN_PATH = 'R',		/* DT_RUNPATH or DT_RPATH */
	UNWIND_LIBRARY = 'L',		/* DT_NEEDED */
};

/**
 * struct unwind_table - The table of a file
 * @nr_blocks: As in struct profil_unwind, like the members up to @rows.
 * @names: The files that the dynamic loader loads with this one. Each name follows a letter, an
 *	enum unwind_name, and ends with a NUL.
 * @names_size: Bytes of all names.
 * @data: All of this as bytes, for a cache.
 * @size: The number of bytes.
 */
struct unwind_table {
	u32 nr_blocks;
	u32 nr_rows;
	u32 nr_rules;
	const struct profil_unwind_rule *rules;
	const u32 *blocks;
	const u32 *rows;
	const char *names;
	size_t names_size;
	u8 *data;
	size_t size;
};

/**
 * unwind_table_make - Make the table of a file
 * @table: Out: the table, for unwind_table_free().
 * @fd: The file, of any kind.
 *
 * Return: false if there is no table: it is not a 64-bit program or library of x86-64, it has no
 * call frame information, or it could not be read within the limits of a confined process.
 */
bool unwind_table_make(struct unwind_table *table, int fd);

/**
 * code_tables_make - Make the tables of the code that a jit-PID.dump describes
 * @fd: The file, of any kind.
 * @give: Is called for each table. @start: as in struct profil_unwind. The starts ascend.
 * @data: For @give.
 *
 * Functions without call frame information are in no table.
 *
 * Return: false if the file could not be read within the limits of a confined process.
 */
bool code_tables_make(int fd, void (*give)(void *data, u64 start, const struct unwind_table *table),
		      void *data);

/*
 * Takes a table from its bytes, which belong to it from then on. Checks all that struct
 * profil_unwind requires. Returns false, and frees the bytes, if there is something wrong.
 */
bool unwind_table_take(struct unwind_table *table, u8 *data, size_t size);

void unwind_table_free(struct unwind_table *table);

/* Returns the argument of the ioctl, without the text that the table describes. */
struct profil_unwind unwind_table_argument(const struct unwind_table *table);

/* Returns the rule for the byte at @offset of the file. */
struct profil_unwind_rule unwind_table_rule(const struct unwind_table *table, u64 offset);

/* Returns the name after @name, with its letter, or the first one; NULL after the last one. */
const char *unwind_table_name(const struct unwind_table *table, const char *name);

#endif /* PROFIL_TOOLS_UNWIND_TABLE_H */
