// SPDX-License-Identifier: GPL-2.0-or-later
/* See spaces.h. */
#define _GNU_SOURCE
#include <stdio.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "recording/maps.h"
#include "recording/spaces.h"

/* The maximum number of mappings and of spaces. When it is exceeded, all are freed. */
#define MAPPINGS_MAX	(1U << 16)
#define SPACES_MAX	(1U << 12)
/* A longer /proc/PID/maps is not read to its end. */
#define MAPS_BYTES_MAX	(1U << 20)
/*
 * The time between two reads for a space. Each read doubles it, up to one of these limits, since a
 * program maps most of its files when it starts.
 */
#define INTERVAL_MIN_NS	(NS_PER_S / 1000)
#define INTERVAL_NEW_NS	(NS_PER_S / 10)		/* after a read that has found new mappings */
#define INTERVAL_MAX_NS	NS_PER_S
/* It is at least so many times the CPU time of a read: a process can have many mappings. */
#define INTERVAL_PER_READ 50

struct spaces {
	htab_t table;
	size_t nr_mappings;
	u64 version;			/* the last one of a space */
	struct space *last;		/* most records have the space of the previous one */
};

static hashval_t space_hash(const void *data)
{
	const struct space *space = data;

	return hash_words(&space->id, 1);
}

static int space_equals(const void *a, const void *b)
{
	return ((const struct space *)a)->id == ((const struct space *)b)->id;
}

static void mappings_free(struct profil_record **mappings, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(mappings[i]);
	free(mappings);
}

static void space_free(void *data)
{
	struct space *space = data;

	mappings_free(space->mappings, space->nr);
	free(space);
}

struct spaces *spaces_new(void)
{
	struct spaces *spaces = xcalloc(1, sizeof(*spaces));

	spaces->table = htab_create(16, space_hash, space_equals, space_free);
	return spaces;
}

void spaces_free(struct spaces *spaces)
{
	htab_delete(spaces->table);
	free(spaces);
}

/* Returns the index of the first mapping that ends after @address. */
static size_t space_index(const struct space *space, u64 address)
{
	size_t low = 0, high = space->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings[middle]->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct profil_record *space_find(const struct space *space, u64 address)
{
	size_t i = space_index(space, address);

	return i < space->nr && space->mappings[i]->start <= address ? space->mappings[i] : NULL;
}

static bool is_same_file(const struct profil_record *a, const struct profil_record *b)
{
	return !((a->flags ^ b->flags) & PROFIL_RECORD_FILE) && a->ino == b->ino &&
	       a->major == b->major && a->minor == b->minor;
}

/* Returns true if both are parts of one mapping. It may have been divided, or have grown. */
static bool is_same_mapping(const struct profil_record *a, const struct profil_record *b)
{
	return is_same_file(a, b) && (!(a->flags & PROFIL_RECORD_FILE) ||
				      a->pc - a->offset == b->pc - b->offset);
}

static void limit_interval(struct space *space, u64 limit)
{
	if (space->interval > limit)
		space->interval = limit;
}

/* Adds the mapping of a record, instead of those that it overlaps. */
static void space_add(struct spaces *spaces, struct space *space,
		      const struct profil_record *record)
{
	const size_t size = offsetof(struct profil_record, path) + strlen(record->path) + 1;
	size_t first = space_index(space, record->start), end = first;
	struct profil_record *copy;

	while (end < space->nr && space->mappings[end]->start < record->end)
		free(space->mappings[end++]);
	copy = xmalloc(size < sizeof(*copy) ? sizeof(*copy) : size);
	memcpy(copy, record, size);
	space->mappings = xrealloc(space->mappings,
				   (space->nr + 1) * sizeof(*space->mappings));
	memmove(space->mappings + first + 1, space->mappings + end,
		(space->nr - end) * sizeof(*space->mappings));
	space->mappings[first] = copy;
	spaces->nr_mappings += 1 - (end - first);
	space->nr += 1 - (end - first);
	space->version = ++spaces->version;
	limit_interval(space, INTERVAL_NEW_NS);
}

struct space *spaces_get(struct spaces *spaces, const struct profil_record *record)
{
	const struct space key = { .id = record->space };
	const struct profil_record *known;
	void **slot;

	if (!record->space)
		return NULL;
	if (spaces->nr_mappings > MAPPINGS_MAX || htab_elements(spaces->table) > SPACES_MAX) {
		htab_empty(spaces->table);
		spaces->nr_mappings = 0;
		spaces->last = NULL;
	}
	if (!spaces->last || spaces->last->id != key.id) {
		slot = htab_find_slot(spaces->table, &key, INSERT);
		if (!*slot) {
			*slot = xcalloc(1, sizeof(key));
			*(struct space *)*slot = (struct space){
				.id = key.id,
				.interval = INTERVAL_MIN_NS,
			};
		}
		spaces->last = *slot;
	}
	if (record->flags & PROFIL_RECORD_MAPPED) {
		known = space_find(spaces->last, record->pc);
		if (!known || !is_same_mapping(known, record))
			space_add(spaces, spaces->last, record);
	}
	return spaces->last;
}

/* ---- /proc/PID/maps ---- */

/* Takes the identity that the module has given for this mapping. */
static void take_generation(struct profil_record *mapping, const struct space *space)
{
	const struct profil_record *known = space_find(space, mapping->pc);

	if (known && is_same_mapping(known, mapping))
		mapping->generation = known->generation;
}

/* Returns true if all of these mappings are known. */
static bool is_known(const struct space *space, const struct space *found)
{
	const struct profil_record *known;

	for (size_t i = 0; i < found->nr; i++) {
		known = space_find(space, found->mappings[i]->start);
		if (!known || !is_same_mapping(known, found->mappings[i]) ||
		    known->end < found->mappings[i]->end)
			return false;
	}
	return true;
}

/* Reads the mappings. Returns false if the process no longer has that of the record. */
static bool read_maps(struct space *found, const struct space *old,
		      const struct profil_record *record)
{
	FILE *maps = proc_open(record->pid, "maps");
	const struct profil_record *own;
	struct profil_record *mapping;
	size_t size = 0, bytes = 0;
	bool is_executable;
	char *line = NULL;
	ssize_t len;

	while (maps && bytes < MAPS_BYTES_MAX && (len = getline(&line, &size, maps)) > 0) {
		bytes += len;
		mapping = maps_parse(line, &is_executable);
		if (!mapping || !is_executable) {
			free(mapping);
			continue;
		}
		mapping->space = record->space;
		mapping->pid = record->pid;
		mapping->time = record->time;
		take_generation(mapping, old);
		if (!array_grow(&found->mappings, found->nr, sizeof(mapping)))
			xmalloc_failed(sizeof(mapping));
		found->mappings[found->nr++] = mapping;
	}
	free(line);
	if (maps)
		fclose(maps);
	own = space_find(found, record->pc);
	return own && is_same_mapping(own, record);
}

void space_read(struct spaces *spaces, struct space *space, const struct profil_record *record)
{
	struct space found = {};
	u64 cpu, least;

	if (record->time < space->next_read || record->pid <= 0 ||
	    !(record->flags & PROFIL_RECORD_MAPPED))
		return;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	space->interval *= 2;
	if (!read_maps(&found, space, record) || is_known(space, &found)) {
		mappings_free(found.mappings, found.nr);
		limit_interval(space, INTERVAL_MAX_NS);
	} else {
		mappings_free(space->mappings, space->nr);
		spaces->nr_mappings += found.nr - space->nr;
		space->mappings = found.mappings;
		space->nr = found.nr;
		space->version = ++spaces->version;
		limit_interval(space, INTERVAL_NEW_NS);
	}
	least = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) * INTERVAL_PER_READ;
	space->next_read = clock_ns(CLOCK_MONOTONIC) +
			   (space->interval > least ? space->interval : least);
}
