/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives a session the unwind tables of the files that its targets execute
 *
 * Each file is handled once: before the recording, if the command needs it or a process of -p has
 * mapped it, or when the first record names it or a process that has mapped it. Until then, stacks
 * that lead through it end there, or follow frame pointers.
 */
#ifndef PROFIL_TOOLS_TABLES_H
#define PROFIL_TOOLS_TABLES_H

#include <linux/profil.h>

#include "symbols/unwind_table.h"

struct space;

/**
 * struct tables_use - What a session does with tables
 * @give: Gives it a table. Returns 0, or -1 with errno set, as profil_session_unwind() does.
 * @data: For @give.
 * @max_rows: The maximum number of rows of a table.
 */
struct tables_use {
	int (*give)(void *data, const struct profil_unwind *table);
	void *data;
	u32 max_rows;
};

/* How many tables were given */
struct tables_stats {
	u64 given;
	u64 refused;		/* for lack of memory, or since the user's limit is reached */
	u64 late;		/* not made, for all together took too long */
};

/* If there is no memory, these functions exit, as xcalloc() does. */
struct tables *tables_new(const struct tables_use *use);
void tables_free(struct tables *tables);
struct tables_stats tables_stats(const struct tables *tables);

/* These functions do nothing if @tables is NULL. */

/* Gives the table of the mapped file of @record, which @fd is; -1: it is not open. */
void tables_add_mapped(struct tables *tables, const struct profil_record *record, int fd);

/*
 * Returns the time at which the session got the table of the mapped file of @record; 0 if it has
 * none. Ticks before that have followed the frame pointer there.
 */
u64 tables_time(const struct tables *tables, const struct profil_record *record);

/* Gives the tables of the files that the process has mapped. */
void tables_add_process(struct tables *tables, pid_t pid);

/*
 * The same for a process whose mappings were read. If it makes code at run time, tables_poll()
 * gives the tables of this code.
 */
void tables_add_space(struct tables *tables, const struct space *space);

/* Gives new tables of code that processes have made. The caller calls this again and again. */
void tables_poll(struct tables *tables);

/* Gives the table of the vDSO. */
void tables_add_vdso(struct tables *tables);

/* ---- program.c ---- */

/* Gives the tables of a program, its interpreter and its libraries, before it is executed. */
void tables_add_program(struct tables *tables, const char *path);

/*
 * Returns the path that execvp() would execute, which the caller frees; NULL if there is no such
 * file. It need not be executable.
 */
char *program_find(const char *name);

/*
 * For program.c: gives the table of @fd, unless the file was handled before or there is none.
 * Returns true with the table, for unwind_table_free(), if it was not handled before.
 */
bool tables_add_file(struct tables *tables, int fd, struct unwind_table *table);

#endif /* PROFIL_TOOLS_TABLES_H */
