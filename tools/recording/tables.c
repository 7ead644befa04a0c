// SPDX-License-Identifier: GPL-2.0-or-later
/* See tables.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "recording/dumps.h"
#include "recording/entries.h"
#include "recording/maps.h"
#include "recording/spaces.h"
#include "recording/table_cache.h"
#include "recording/tables.h"

/* The maximum number of files that are remembered. When it is exceeded, all are forgotten. */
#define FILES_MAX	(1U << 14)
/*
 * Other users can have files that need much time. So all tables together may take this time, and
 * this part of the time of the recording.
 */
#define TIME_FREE_NS	(20 * NS_PER_S)
#define TIME_PART	4
/*
 * After this time, no further table is made before the recording of processes begins: they can have
 * mapped thousands of files.
 */
#define PROCESSES_NS	(5 * NS_PER_S)
/* A vDSO is smaller. */
#define VDSO_MAX	(1UL << 20)

/**
 * struct known - A file that was handled
 * @device: As in /proc/PID/maps, major << 32 | minor.
 * @ino: The inode number.
 * @generation: That of the inode, or MAPS_NO_GENERATION.
 * @given: The time at which the session got its table; or 0.
 */
struct known {
	u64 device;
	u64 ino;
	u64 generation;
	u64 given;
};

struct tables {
	struct tables_use use;
	struct table_cache *cache;	/* or NULL */
	struct dumps *dumps;
	htab_t files;
	struct tables_stats stats;
	bool is_off;		/* the session takes no more */
	u64 start;
	u64 spent;		/* ns for making tables */
};

static hashval_t known_hash(const void *data)
{
	const struct known *known = data;

	return hash_words((const u64[]){ known->device, known->ino }, 2);
}

static int known_equals(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return x->device == y->device && x->ino == y->ino;
}

struct tables *tables_new(const struct tables_use *use)
{
	struct tables *tables = xcalloc(1, sizeof(*tables));

	tables->use = *use;
	tables->files = htab_create(64, known_hash, known_equals, free);
	tables->cache = table_cache_open(TABLE_CACHE_BYTES);
	tables->dumps = dumps_new(use);
	tables->start = clock_ns(CLOCK_MONOTONIC);
	return tables;
}

void tables_free(struct tables *tables)
{
	if (!tables)
		return;
	htab_delete(tables->files);
	table_cache_close(tables->cache);
	dumps_free(tables->dumps);
	free(tables);
}

struct tables_stats tables_stats(const struct tables *tables)
{
	return tables ? tables->stats : (struct tables_stats){};
}

/*
 * Returns the file if it was not handled, and remembers that it is; else NULL. After its removal,
 * its inode number can be that of another file, with another generation.
 */
static struct known *add_known(struct tables *tables, u64 device, u64 ino, u64 generation)
{
	const struct known key = { .device = device, .ino = ino, .generation = generation };
	struct known *known;
	void **slot;

	if (htab_elements(tables->files) > FILES_MAX)
		htab_empty(tables->files);
	slot = htab_find_slot(tables->files, &key, INSERT);
	known = *slot;
	if (!known) {
		known = xmalloc(sizeof(*known));
		*known = key;
		*slot = known;
		return known;
	}
	if (generation == MAPS_NO_GENERATION || generation == known->generation)
		return NULL;
	if (known->generation == MAPS_NO_GENERATION) {
		known->generation = generation;
		return NULL;
	}
	*known = key;
	return known;
}

/* Gives a table. Returns the time; 0 if the session does not take it. Notes if it takes no more. */
static u64 give(struct tables *tables, const struct unwind_table *table, int fd)
{
	struct profil_unwind arg = unwind_table_argument(table);

	arg.flags = fd < 0 ? PROFIL_UNWIND_VDSO : 0;
	arg.fd = fd;
	if (table->nr_rows > tables->use.max_rows)
		return 0;
	if (!tables->use.give(tables->use.data, &arg)) {
		tables->stats.given++;
		return clock_ns(CLOCK_MONOTONIC);
	}
	switch (errno) {
	case EEXIST:	/* An overlay shows one file as two. */
		return tables->start;
	case ENOTTY:
	case EOPNOTSUPP:	/* The module is older. */
		tables->is_off = true;
		break;
	case EPERM:
	case ENOMEM:
	case ENOSPC:
		tables->is_off = true;
		tables->stats.refused++;
		break;
	}
	return 0;
}

/*
 * Finds or makes the table of the file, which is not in the cache if @key is NULL. Returns false if
 * there is none.
 */
static bool make_keyed(struct tables *tables, const struct table_key *key, int fd,
		       struct unwind_table *table)
{
	const u64 start = clock_ns(CLOCK_MONOTONIC);
	bool done;

	if (key && table_cache_get(tables->cache, key, table))
		return true;
	if (tables->spent > TIME_FREE_NS + (start - tables->start) / TIME_PART) {
		tables->stats.late++;
		return false;
	}
	done = unwind_table_make(table, fd);
	if (done && key)
		table_cache_put(tables->cache, key, table);
	tables->spent += clock_ns(CLOCK_MONOTONIC) - start;
	return done;
}

static bool make(struct tables *tables, int fd, struct unwind_table *table)
{
	struct table_key key;

	/* If the file changes after this, the key will not be found. */
	return make_keyed(tables, tables->cache && table_key_of_file(&key, fd) ? &key : NULL, fd,
			  table);
}

void tables_add_mapped(struct tables *tables, const struct profil_record *record, int fd)
{
	struct unwind_table table;
	struct known *known;
	int own = -1;
	struct stat st;
	u32 reason;

	if (!tables || tables->is_off || !(record->flags & PROFIL_RECORD_FILE))
		return;
	known = add_known(tables, (u64)record->major << 32 | record->minor, record->ino,
			  record->generation);
	if (!known)
		return;
	if (fd < 0) {
		own = mapping_open(record, &st, &reason);
		fd = own;
	}
	if (fd >= 0 && make(tables, fd, &table)) {
		known->given = give(tables, &table, fd);
		unwind_table_free(&table);
	}
	if (own >= 0)
		close(own);
}

u64 tables_time(const struct tables *tables, const struct profil_record *record)
{
	const struct known key = {
		.device = (u64)record->major << 32 | record->minor,
		.ino = record->ino,
	};
	const struct known *known = NULL;

	if (tables && record->flags & PROFIL_RECORD_FILE)
		known = htab_find(tables->files, &key);
	return known ? known->given : 0;
}

void tables_add_process(struct tables *tables, pid_t pid)
{
	FILE *maps = tables ? proc_open(pid, "maps") : NULL;
	const u64 end = tables ? tables->start + PROCESSES_NS : 0;
	struct profil_record *mapping;
	bool is_executable;
	char *line = NULL;
	size_t size = 0;

	while (maps && clock_ns(CLOCK_MONOTONIC) < end && getline(&line, &size, maps) > 0) {
		mapping = maps_parse(line, &is_executable);
		if (mapping && is_executable) {
			mapping->pid = pid;
			/* From now on, the file may not have changed. */
			mapping->time = clock_ns(CLOCK_MONOTONIC);
			tables_add_mapped(tables, mapping, -1);
		}
		free(mapping);
	}
	free(line);
	if (maps)
		fclose(maps);
}

void tables_add_space(struct tables *tables, const struct space *space)
{
	for (size_t i = 0; tables && i < space->nr; i++) {
		tables_add_mapped(tables, space->mappings[i], -1);
		dumps_add(tables->dumps, space->mappings[i]);
	}
}

void tables_poll(struct tables *tables)
{
	if (tables)
		dumps_poll(tables->dumps);
}

bool tables_add_file(struct tables *tables, int fd, struct unwind_table *table)
{
	struct known *known;
	struct stat st;

	if (tables->is_off || fstat(fd, &st))
		return false;
	known = add_known(tables, (u64)major(st.st_dev) << 32 | minor(st.st_dev), st.st_ino,
			  MAPS_NO_GENERATION);
	if (!known || !make(tables, fd, table))
		return false;
	known->given = give(tables, table, fd);
	return true;
}

/* ---- the vDSO ---- */

/* Returns the size of the vDSO, which this process has mapped at @address; 0 if it has none. */
static size_t vdso_size(unsigned long address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	size_t size = 0, found = 0;
	char *line = NULL;

	while (maps && !found && getline(&line, &size, maps) > 0)
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start == address &&
		    end - start <= VDSO_MAX)
			found = end - start;
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

void tables_add_vdso(struct tables *tables)
{
	const unsigned long address = getauxval(AT_SYSINFO_EHDR);
	const void *image = (const void *)address;
	struct unwind_table table;
	struct table_key key;
	bool is_keyed;
	size_t size;
	int fd;

	if (!tables || tables->is_off || !address)
		return;
	size = vdso_size(address);
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && size && write(fd, image, size) == (ssize_t)size) {
		is_keyed = tables->cache && table_key_of_vdso(&key, fd, image, size);
		if (make_keyed(tables, is_keyed ? &key : NULL, fd, &table)) {
			give(tables, &table, -1);
			unwind_table_free(&table);
		}
	}
	if (fd >= 0)
		close(fd);
}
