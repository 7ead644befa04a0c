/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The executable mappings of each address space, to find those of return addresses
 *
 * A record has only the mapping of its pc. The others are read from /proc/PID/maps, at most once in
 * a while for each space, and only while the process still has the mapping of the record: then it
 * has not executed another program since.
 */
#ifndef PROFIL_TOOLS_SPACES_H
#define PROFIL_TOOLS_SPACES_H

#include <linux/profil.h>

#include "util.h"

/**
 * struct space - An address space
 * @version: Another number after each change of the mappings, also if the space was freed between.
 * @mappings: The mappings, sorted by start. They do not overlap.
 * @nr: Their number.
 */
struct space {
	u64 version;
	struct profil_record **mappings;
	size_t nr;

	/* Only spaces.c uses these. */
	u64 id;
	u64 next_read;			/* for a tick at this time or later */
	u64 interval;			/* between two reads */
};

/* If there is no memory, these functions exit, as xcalloc() does. */
struct spaces *spaces_new(void);
void spaces_free(struct spaces *spaces);

/*
 * Returns the space of the record, whose mapping is added. It is valid until the next call. Returns
 * NULL if the record has no space.
 */
struct space *spaces_get(struct spaces *spaces, const struct profil_record *record);

/*
 * Returns the mapping that contains the address, as a record whose pc is in this mapping; NULL if
 * it is not known.
 */
const struct profil_record *space_find(const struct space *space, u64 address);

/* Reads the mappings of the process of @record, unless they were read not long before. */
void space_read(struct spaces *spaces, struct space *space, const struct profil_record *record);

#endif /* PROFIL_TOOLS_SPACES_H */
