/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables of earlier recordings, in files
 *
 * They are in profil/unwind in the user's directory for caches. There is a file for each state of a
 * program or library: the inode, its times, its size and the build-id. So a file that claims the
 * build-id of another one neither gets its table nor gives it a wrong one. A file of another user
 * is not in the cache, nor is one of FUSE, where another user's process may make up what fstat()
 * says.
 *
 * A cached file is checked in full before it is used, and replaced if it is damaged.
 */
#ifndef PROFIL_TOOLS_TABLE_CACHE_H
#define PROFIL_TOOLS_TABLE_CACHE_H

#include "symbols/files.h"
#include "symbols/unwind_table.h"

/* The maximum size of all files in the cache */
#define TABLE_CACHE_BYTES	(256ULL << 20)

/* The state of a program or library. It has no padding. */
struct table_key {
	u64 device;
	u64 ino;
	u64 size;
	u64 mtime;		/* in ns */
	u64 ctime;
	u32 build_id_len;
	u8 build_id[BUILD_ID_MAX];
	u32 unused;		/* 0 */
	u64 check;		/* of the contents, if there is no inode; or 0 */
};

/* Returns false if the table of this file may not be in the cache. */
bool table_key_of_file(struct table_key *key, int fd);

/* Sets the key of the vDSO, whose @size bytes at @image are also in @fd. */
bool table_key_of_vdso(struct table_key *key, int fd, const void *image, size_t size);

/* Returns NULL if the user has no directory that only the user can write to. */
struct table_cache *table_cache_open(u64 bytes_max);
void table_cache_close(struct table_cache *cache);

/* Finds a table. Returns false if it is not in the cache. */
bool table_cache_get(struct table_cache *cache, const struct table_key *key,
		     struct unwind_table *table);

/* Adds a table, if that is possible. Removes those that were not used for the longest time. */
void table_cache_put(struct table_cache *cache, const struct table_key *key,
		     const struct unwind_table *table);

#endif /* PROFIL_TOOLS_TABLE_CACHE_H */
