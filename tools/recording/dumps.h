/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives a session the unwind tables of code that processes make at run time
 *
 * A JIT compiler writes the call frame information of each function to its jit-PID.dump, and maps
 * the file, so that it can be found. While the file grows, it is read again and again, and the
 * session gets new tables, which replace the old ones.
 */
#ifndef PROFIL_TOOLS_DUMPS_H
#define PROFIL_TOOLS_DUMPS_H

#include <linux/profil.h>

struct tables_use;

/* @use: is copied. If there is no memory, these functions exit, as xcalloc() does. */
struct dumps *dumps_new(const struct tables_use *use);
void dumps_free(struct dumps *dumps);

/* Takes note of a mapping of a process, if it is that of a dump. */
void dumps_add(struct dumps *dumps, const struct profil_record *mapping);

/*
 * Reads one of the dumps if it has grown, and gives its tables. Removes those of a process that has
 * ended. Does nothing if the last call was not long before.
 */
void dumps_poll(struct dumps *dumps);

#endif /* PROFIL_TOOLS_DUMPS_H */
