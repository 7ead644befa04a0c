/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives a session the unwind tables of the files that the calling process executes
 *
 * A library should not read debug information in the program that uses it: the command profil makes
 * the tables, in a process of its own. Without this command, a session has no tables.
 */
#ifndef LIBPROFIL_PPROF_TABLES_H
#define LIBPROFIL_PPROF_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maps.h"

/* The maximum number of files that get a table */
#define TABLES_MAX	1024

/**
 * struct tables - The tables of a session
 * @is_off: It gets no more.
 * @nr_given: The number of tables that it has.
 */
struct tables {
	bool is_off;
	size_t nr_given;

	/* Only tables.c uses these: the device and inode number of each file that was handled. */
	uint64_t known[TABLES_MAX][2];
	size_t nr_known;
	bool has_vdso;
};

/**
 * tables_give - Give a session the tables of files that were not handled before
 * @tables: The tables that it has.
 * @session: Its descriptor.
 * @maps: The mappings of the files.
 * @wait: Called again and again until the command has made the tables. It waits for at most a
 *	moment until there is input on the descriptor, and returns false if the tables are not
 *	needed any more.
 * @data: For @wait.
 */
void tables_give(struct tables *tables, int session, const struct maps *maps,
		 bool (*wait)(void *data, int fd), void *data);

#endif /* LIBPROFIL_PPROF_TABLES_H */
