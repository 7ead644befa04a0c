/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The executable mappings of the calling process
 */
#ifndef LIBPROFIL_PPROF_MAPS_H
#define LIBPROFIL_PPROF_MAPS_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct map - A mapping
 * @start: Its first address.
 * @end: The first address after it.
 * @offset: The offset in the file of @start.
 * @device: The device of the file, major << 32 | minor.
 * @inode: Its inode number; 0: it is not a file.
 * @path: Its path, or a name such as "[vdso]"; "" if there is none.
 */
struct map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t device;
	uint64_t inode;
	char *path;
};

/* All of them, sorted by address */
struct maps {
	struct map *list;
	size_t nr;
};

/* Reads /proc/self/maps. If that fails, @maps is as before. */
void maps_read(struct maps *maps);

/* Returns the mapping that contains the address; NULL if there is none. */
const struct map *maps_find(const struct maps *maps, uint64_t address);

void maps_free(struct maps *maps);

#endif /* LIBPROFIL_PPROF_MAPS_H */
