/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The segments of files that processes have replaced by copies in other memory
 *
 * A program can copy its text to memory with huge pages, and move the copy over its text. Then the
 * mapping has no file, or another one. The file is known from its other segments, which are still
 * mapped: they tell where it was loaded.
 */
#ifndef PROFIL_TOOLS_SEGMENTS_H
#define PROFIL_TOOLS_SEGMENTS_H

#include <linux/profil.h>

#include "util.h"

/* If there is no memory, these functions exit, as xcalloc() does. */
struct segments *segments_new(void);
void segments_free(struct segments *segments);

/*
 * Returns the record with @address as its pc. If a copy of the segment of a file is there, it is
 * mapped from this file. The result is valid until the next call, and has no stack.
 */
const struct profil_record *segments_find(struct segments *segments,
					  const struct profil_record *record, u64 address);

#endif /* PROFIL_TOOLS_SEGMENTS_H */
