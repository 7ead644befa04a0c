// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See chunks.h.
 *
 * A chunk is a page of text of one address space in one session. Its states are:
 *
 *	COUNTING	it has no counters yet; the recorder counts its records
 *	WAITING		it has had RECORDS records, and waits for a range
 *	LIVE		it has a range with counters, until its mapping changes, its address space
 *			no longer exists, or the memory is used for a chunk with more ticks
 *	RETIRED		its range was removed; the next harvest reads its counters a last time and
 *			frees it
 *
 * The mapping at an address may change while there is a range, for example by dlclose() and
 * dlopen(). So a range is added only if /proc/PID/maps has the same mapping as the record, and the
 * recorder reads this file again each second. Without permission to read it there are no ranges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "recording/chunks.h"
#include "recording/hash.h"

typedef uint16_t u16;

/* The sizes of the text of a chunk and of its counters, in bytes. */
#define TEXT		4096U
#define COUNTERS	(TEXT * sizeof(u16))
/* Counters are allocated for this many chunks at a time. */
#define SLAB		64
/* After this many records, a chunk waits for a range. */
#define RECORDS		4
/* Maximum number of live chunks in a session, so that a snapshot does not take long. */
#define LIVE_MAX	1024
/*
 * Each tick adds this to the score of its chunk. Each harvest subtracts a sixteenth of the score.
 */
#define TICK_SCORE	16
/* Maximum number of evictions between two harvests: each waits for an RCU grace period. */
#define EVICTIONS	8
/*
 * A chunk without counters is freed after this many harvests without a record of it. This is
 * checked at least every FORGET_EVERY harvests.
 */
#define FORGET		20
#define FORGET_EVERY	10

enum state {
	COUNTING,		/* counts records; has no counters */
	WAITING,		/* chunks_place() will add a range */
	LIVE,
	RETIRED,		/* the next harvest frees it */
};

struct space {
	struct hash_node node;
	u64 id;
	s32 pid;
	bool unreadable;		/* no permission to read maps */
	struct chunk *chunks;
	struct space *next_waiting;
	bool waiting;			/* has waiting chunks */
};

/* A line of /proc/PID/maps. */
struct mapping {
	u64 start;
	u64 end;
	u64 offset;
	u64 device;
	u64 ino;
};

struct chunk {
	struct hash_node node;
	struct space *space;
	struct chunk *next;		/* the next chunk of the same space */
	struct chunk **link;
	unsigned int session;
	enum state state;
	u64 text;			/* the address of the page */
	bool file;			/* the text is mapped from a file */
	u64 process;			/* this and the next two: as in struct format_sample */
	u64 file_id;
	u64 bias;
	u32 records;
	u64 score;
	u64 heard;			/* number of harvests before its last record */
	u16 *counters;
	struct mapping mapping;		/* when the range was added; @offset is that of @text */
};

struct free_counters {
	struct free_counters *next;
};

struct slab {
	struct slab *next;
	void *memory;
};

struct chunks {
	int fds[CHUNKS_SESSIONS];
	struct hash_table spaces;
	struct hash_table table;
	struct {
		struct chunk **chunks;	/* live and retired */
		size_t nr;
		size_t nr_live;
		u16 *copies;
		size_t nr_copies;	/* number of chunks for which @copies has room */
	} sessions[CHUNKS_SESSIONS];
	struct space *waiting;
	struct free_counters *free;
	struct slab *slabs;
	u64 harvests;
	unsigned int evictions;
	bool full;			/* no memory: add no range before the next harvest */
	struct mapping *maps;
	size_t nr_maps;
	size_t max_maps;
};

struct chunks *chunks_create(const int fds[CHUNKS_SESSIONS])
{
	struct chunks *chunks = xcalloc(1, sizeof(*chunks));

	memcpy(chunks->fds, fds, sizeof(chunks->fds));
	return chunks;
}

/* ---- memory for counters ---- */

/* Returns counters for one chunk, all 0. */
static u16 *counters_get(struct chunks *chunks)
{
	struct free_counters *first = chunks->free;
	struct slab *slab;
	char *memory;

	if (!first) {
		memory = mmap(NULL, SLAB * COUNTERS, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		slab = xcalloc(1, sizeof(*slab));
		slab->memory = memory;
		slab->next = chunks->slabs;
		chunks->slabs = slab;
		for (size_t i = SLAB; i--;) {
			first = (void *)(memory + i * COUNTERS);
			first->next = chunks->free;
			chunks->free = first;
		}
	}
	chunks->free = first->next;
	memset(first, 0, COUNTERS);
	return (u16 *)first;
}

static void counters_put(struct chunks *chunks, u16 *counters)
{
	struct free_counters *first = (void *)counters;

	first->next = chunks->free;
	chunks->free = first;
}

/* ---- spaces ---- */

static struct space *space_get(struct chunks *chunks, u64 id)
{
	const u64 hash = hash_words(&id, 1);
	struct hash_node *node;
	struct space *space;

	for (node = hash_find(&chunks->spaces, hash); node; node = hash_find_next(node)) {
		space = container_of(node, struct space, node);
		if (space->id == id)
			return space;
	}
	space = xcalloc(1, sizeof(*space));
	space->id = id;
	hash_add(&chunks->spaces, &space->node, hash);
	return space;
}

/*
 * Does no target use the space any more? Then removing ranges fails with ESRCH. Otherwise the call
 * removes nothing, because no range of a chunk is within one byte.
 */
static bool space_gone(const struct chunks *chunks, const struct space *space)
{
	int fd = chunks->fds[0] >= 0 ? chunks->fds[0] : chunks->fds[1];

	return profil_session_remove(fd, space->id, 0, 1) && errno == ESRCH;
}

static u64 hex(const char **at)
{
	char *end;
	u64 value = strtoull(*at, &end, 16);

	*at = *end ? end + 1 : end;
	return value;
}

/* Reads all mappings of a process. Returns false if it can read none; errno can be 0 then. */
static bool maps_read(struct chunks *chunks, s32 pid)
{
	struct mapping *mapping;
	char *line = NULL;
	size_t size = 0;
	char path[32];
	const char *at;
	FILE *file;

	chunks->nr_maps = 0;
	errno = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (getline(&line, &size, file) > 0) {
		if (chunks->nr_maps == chunks->max_maps) {
			chunks->max_maps = chunks->max_maps ? chunks->max_maps * 2 : 256;
			chunks->maps = xrealloc(chunks->maps, chunks->max_maps *
						     sizeof(*chunks->maps));
		}
		mapping = &chunks->maps[chunks->nr_maps++];
		at = line;
		mapping->start = hex(&at);
		mapping->end = hex(&at);
		at += strcspn(at, " ");
		mapping->offset = hex(&at);
		mapping->device = hex(&at) << 32;
		mapping->device |= hex(&at);
		mapping->ino = strtoull(at, NULL, 10);
	}
	free(line);
	fclose(file);
	return chunks->nr_maps;
}

/* Finds the mapping that contains @text. @found->offset is the file offset of @text. */
static bool maps_find(const struct chunks *chunks, u64 text, struct mapping *found)
{
	size_t low = 0, high = chunks->nr_maps, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (chunks->maps[middle].end <= text)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == chunks->nr_maps || chunks->maps[low].start > text)
		return false;
	*found = chunks->maps[low];
	found->offset += text - found->start;
	return true;
}

/* ---- chunks ---- */

static struct chunk *chunk_get(struct chunks *chunks, struct space *space, unsigned int session,
			       u64 text)
{
	const u64 key[] = { space->id, text, session };
	const u64 hash = hash_words(key, 3);
	struct hash_node *node;
	struct chunk *chunk;

	for (node = hash_find(&chunks->table, hash); node; node = hash_find_next(node)) {
		chunk = container_of(node, struct chunk, node);
		if (chunk->space == space && chunk->text == text && chunk->session == session &&
		    chunk->state != RETIRED)
			return chunk;
	}
	chunk = xcalloc(1, sizeof(*chunk));
	chunk->space = space;
	chunk->session = session;
	chunk->text = text;
	chunk->next = space->chunks;
	if (chunk->next)
		chunk->next->link = &chunk->next;
	chunk->link = &space->chunks;
	space->chunks = chunk;
	hash_add(&chunks->table, &chunk->node, hash);
	return chunk;
}

void chunks_record(struct chunks *chunks, unsigned int session,
		   const struct profil_record *record, const struct format_sample *sample)
{
	const bool file = record->flags & PROFIL_RECORD_FILE;
	const u64 text = record->pc & ~(u64)(TEXT - 1);
	struct space *space;
	struct chunk *chunk;

	if (!record->pid)
		return;
	space = space_get(chunks, record->space);
	/* Use the newest pid: a process that used the space, as after vfork(), may have left it. */
	space->pid = record->pid;
	chunk = chunk_get(chunks, space, session, text);
	chunk->heard = chunks->harvests;
	/* This record is from the time before the range was added. */
	if (chunk->state == LIVE)
		return;
	if (chunk->process != sample->process || chunk->file_id != sample->file ||
	    chunk->bias != sample->bias) {
		chunk->process = sample->process;
		chunk->file_id = sample->file;
		chunk->bias = sample->bias;
		chunk->file = file;
		chunk->records = 0;
		chunk->score = 0;
	}
	chunk->score += TICK_SCORE;
	if (++chunk->records < RECORDS || space->unreadable)
		return;
	chunk->state = WAITING;
	if (!space->waiting) {
		space->waiting = true;
		space->next_waiting = chunks->waiting;
		chunks->waiting = space;
	}
}

/* Lets the next harvest read the counters a last time and free the chunk. */
static void chunk_retire(struct chunks *chunks, struct chunk *chunk)
{
	chunk->state = RETIRED;
	chunks->sessions[chunk->session].nr_live--;
}

static void chunk_remove(struct chunks *chunks, struct chunk *chunk)
{
	profil_session_remove(chunks->fds[chunk->session], chunk->space->id, chunk->text,
			      chunk->text + TEXT);
	chunk_retire(chunks, chunk);
}

/* Retires the live chunk with the lowest score, if that score is lower than that of @better. */
static bool evict(struct chunks *chunks, const struct chunk *better)
{
	struct chunk *least = NULL, *chunk;

	if (chunks->evictions == EVICTIONS)
		return false;
	for (unsigned int session = 0; session < CHUNKS_SESSIONS; session++) {
		for (size_t i = 0; i < chunks->sessions[session].nr; i++) {
			chunk = chunks->sessions[session].chunks[i];
			if (chunk->state == LIVE && (!least || chunk->score < least->score))
				least = chunk;
		}
	}
	if (!least || least->score >= better->score)
		return false;
	chunks->evictions++;
	chunk_remove(chunks, least);
	return true;
}

static int chunk_add(struct chunks *chunks, struct chunk *chunk)
{
	struct profil_range range = profil_range_of(chunk->text, chunk->text + TEXT, 0,
						    chunk->counters, TEXT, sizeof(u16));

	return profil_session_add(chunks->fds[chunk->session], chunk->space->id, &range, 1);
}

/* Adds a range for the chunk. Returns false if that fails. */
static bool chunk_place(struct chunks *chunks, struct chunk *chunk)
{
	struct chunk ***array = &chunks->sessions[chunk->session].chunks;
	struct mapping mapping;
	size_t nr;

	if (!maps_find(chunks, chunk->text, &mapping) || chunk->file != !!mapping.ino ||
	    (chunk->file && mapping.offset != chunk->text - chunk->bias))
		return false;
	if (chunks->sessions[chunk->session].nr_live == LIVE_MAX && !evict(chunks, chunk))
		return false;
	chunk->counters = counters_get(chunks);
	if (!chunk->counters)
		return false;
	while (chunk_add(chunks, chunk)) {
		if (errno != EPERM || !evict(chunks, chunk)) {
			chunks->full = errno == EPERM || errno == ENOMEM;
			counters_put(chunks, chunk->counters);
			chunk->counters = NULL;
			return false;
		}
	}
	chunk->state = LIVE;
	chunk->mapping = mapping;
	nr = chunks->sessions[chunk->session].nr;
	if (!(nr & (nr - 1)))
		*array = xrealloc(*array, (nr ? nr * 2 : 1) * sizeof(**array));
	(*array)[nr] = chunk;
	chunks->sessions[chunk->session].nr++;
	chunks->sessions[chunk->session].nr_live++;
	return true;
}

bool chunks_place(struct chunks *chunks)
{
	struct space *space;
	struct chunk *chunk;
	bool any = false;

	while ((space = chunks->waiting)) {
		chunks->waiting = space->next_waiting;
		space->waiting = false;
		/* Read the mappings once for all chunks of the space. */
		if (!chunks->full && !maps_read(chunks, space->pid))
			space->unreadable = errno == EACCES || errno == EPERM;
		for (chunk = space->chunks; chunk; chunk = chunk->next) {
			if (chunk->state != WAITING)
				continue;
			if (!chunks->full && !space->unreadable && chunk_place(chunks, chunk)) {
				any = true;
				continue;
			}
			chunk->state = COUNTING;
			chunk->records = 0;
		}
	}
	return any;
}

static bool chunk_mapping_is_same(const struct chunks *chunks, const struct chunk *chunk)
{
	struct mapping mapping;

	return maps_find(chunks, chunk->text, &mapping) &&
	       mapping.ino == chunk->mapping.ino && mapping.device == chunk->mapping.device &&
	       (!mapping.ino || mapping.offset == chunk->mapping.offset);
}

static void space_check(struct chunks *chunks, struct space *space)
{
	bool gone, readable;
	struct chunk *chunk;

	for (chunk = space->chunks; chunk && chunk->state != LIVE; chunk = chunk->next)
		;
	if (!chunk)
		return;
	gone = space_gone(chunks, space);
	readable = !gone && maps_read(chunks, space->pid);
	for (; chunk; chunk = chunk->next) {
		if (chunk->state != LIVE)
			continue;
		if (gone)
			chunk_retire(chunks, chunk);
		else if (!readable || !chunk_mapping_is_same(chunks, chunk))
			chunk_remove(chunks, chunk);
	}
}

void chunks_check(struct chunks *chunks)
{
	for (size_t i = 0; i < chunks->spaces.nr_buckets; i++)
		for (struct hash_node *node = chunks->spaces.buckets[i]; node; node = node->next)
			space_check(chunks, container_of(node, struct space, node));
}

/* ---- harvest ---- */

static void chunk_unlink(struct chunk *chunk)
{
	*chunk->link = chunk->next;
	if (chunk->next)
		chunk->next->link = chunk->link;
}

static bool drop_chunk(struct hash_node *node, void *data)
{
	struct chunk *chunk = container_of(node, struct chunk, node);
	struct chunks *chunks = data;

	if (chunks) {
		if (chunk->state == LIVE || chunk->state == WAITING ||
		    (chunk->state == RETIRED && chunk->counters) ||
		    (chunk->state == COUNTING && chunks->harvests - chunk->heard < FORGET))
			return false;
		chunk_unlink(chunk);
	}
	free(chunk);
	return true;
}

static bool drop_space(struct hash_node *node, void *data)
{
	struct space *space = container_of(node, struct space, node);

	if (data && space->chunks)
		return false;
	free(space);
	return true;
}

static void take(const struct chunk *chunk, const u16 *counters,
		 void (*found)(void *data, unsigned int session, struct format_sample *sample),
		 void *data, u64 *ticks)
{
	struct format_sample sample;
	const u64 *words = (const u64 *)counters;
	u64 pc;

	for (size_t i = 0; i < COUNTERS / sizeof(*words); i++) {
		if (!words[i])
			continue;
		for (size_t j = i * 4; j < i * 4 + 4; j++) {
			if (!counters[j])
				continue;
			pc = chunk->text + j;
			sample = (struct format_sample){
				.process = chunk->process,
				.file = chunk->file_id,
				.offset = chunk->file ? pc - chunk->bias : pc,
				.bias = chunk->bias,
				.user = counters[j],
			};
			*ticks += counters[j];
			found(data, chunk->session, &sample);
		}
	}
}

int chunks_harvest(struct chunks *chunks, unsigned int session, struct profil_stats *stats,
		   void (*found)(void *data, unsigned int session, struct format_sample *sample),
		   void *data)
{
	size_t nr = chunks->sessions[session].nr, kept = 0, old;
	struct chunk **array = chunks->sessions[session].chunks;
	u16 *copies = chunks->sessions[session].copies;
	struct profil_copy *list;
	int err;

	old = chunks->sessions[session].nr_copies;
	if (nr > old) {
		size_t more = nr > 2 * old ? nr : 2 * old;

		copies = aligned_alloc(COUNTERS, more * COUNTERS);
		if (!copies)
			return -1;
		free(chunks->sessions[session].copies);
		chunks->sessions[session].copies = copies;
		chunks->sessions[session].nr_copies = more;
	}
	list = xcalloc(nr + 1, sizeof(*list));
	for (size_t i = 0; i < nr; i++) {
		list[i].from = (uintptr_t)array[i]->counters;
		list[i].to = (uintptr_t)copies + i * COUNTERS;
		list[i].bytes = COUNTERS;
	}
	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	err = profil_session_snapshot(chunks->fds[session], PROFIL_SNAPSHOT_RESET, list, nr, stats);
	free(list);
	if (err)
		return -1;

	for (size_t i = 0; i < nr; i++) {
		struct chunk *chunk = array[i];
		u64 ticks = 0;

		take(chunk, copies + i * TEXT, found, data, &ticks);
		chunk->score -= (chunk->score + TICK_SCORE - 1) / TICK_SCORE;
		chunk->score += ticks * TICK_SCORE;
		if (chunk->state == RETIRED) {
			counters_put(chunks, chunk->counters);
			chunk->counters = NULL;
		} else {
			array[kept++] = chunk;
		}
	}
	chunks->sessions[session].nr = kept;
	chunks->evictions = 0;
	chunks->full = false;
	chunks->harvests++;
	if (kept < nr || !(chunks->harvests % FORGET_EVERY)) {
		hash_prune(&chunks->table, drop_chunk, chunks);
		hash_prune(&chunks->spaces, drop_space, chunks);
	}
	return 0;
}

void chunks_free(struct chunks *chunks)
{
	struct slab *slab;

	if (!chunks)
		return;
	hash_free(&chunks->table, drop_chunk, NULL);
	hash_free(&chunks->spaces, drop_space, NULL);
	for (unsigned int session = 0; session < CHUNKS_SESSIONS; session++) {
		free(chunks->sessions[session].chunks);
		free(chunks->sessions[session].copies);
	}
	while ((slab = chunks->slabs)) {
		chunks->slabs = slab->next;
		munmap(slab->memory, SLAB * COUNTERS);
		free(slab);
	}
	free(chunks->maps);
	free(chunks);
}
