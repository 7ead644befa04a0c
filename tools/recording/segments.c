// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See segments.h. The memory of a process is compared with the file: code that a compiler has made
 * can be where a segment was.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "recording/entries.h"
#include "recording/maps.h"
#include "recording/segments.h"
#include "symbols/files.h"

/* The maximum number of mappings that are remembered. When it is exceeded, all are forgotten. */
#define MAPPINGS_MAX	(1U << 14)
/* A longer /proc/PID/maps is not read to its end. */
#define MAPS_BYTES_MAX	(4U << 20)
/* More segments of a file are not used. */
#define SEGMENTS_MAX	64
/* The bytes that are compared, of which this part may differ: a debugger can have changed some. */
#define COMPARED	512ULL
#define DIFFERENT_PART	4
/* Reading /proc may take this time, and this part of the time of the recording. */
#define TIME_FREE_NS	NS_PER_S
#define TIME_PART	8

/**
 * struct part - A part of a mapping, in which all addresses are alike
 * @next: The next part of the same mapping; or NULL.
 * @start: Its first address.
 * @end: The address after it.
 * @file: The file of which a segment was here, as a record whose pc is @start; NULL: there is none.
 */
struct part {
	struct part *next;
	u64 start;
	u64 end;
	struct profil_record *file;
};

/* A mapping that was examined */
struct examined {
	u64 space;
	u64 start;
	u64 end;
	struct part *parts;
};

/**
 * struct segments - What is known about the mappings
 * @mappings: The mappings.
 * @found: The result of segments_find().
 * @start: The start of the recording.
 * @spent: The time that reading /proc took.
 */
struct segments {
	htab_t mappings;
	union {
		struct profil_record record;
		char bytes[sizeof(struct profil_record) + PATH_MAX];
	} found;
	u64 start;
	u64 spent;
};

static hashval_t examined_hash(const void *data)
{
	const struct examined *mapping = data;

	return hash_words((const u64[]){ mapping->space, mapping->start, mapping->end }, 3);
}

static int examined_equals(const void *a, const void *b)
{
	const struct examined *x = a, *y = b;

	return x->space == y->space && x->start == y->start && x->end == y->end;
}

static void examined_free(void *data)
{
	struct examined *mapping = data;
	struct part *part;

	while (mapping->parts) {
		part = mapping->parts;
		mapping->parts = part->next;
		free(part->file);
		free(part);
	}
	free(mapping);
}

struct segments *segments_new(void)
{
	struct segments *segments = xcalloc(1, sizeof(*segments));

	segments->mappings = htab_create(16, examined_hash, examined_equals, examined_free);
	segments->start = clock_ns(CLOCK_MONOTONIC);
	return segments;
}

void segments_free(struct segments *segments)
{
	htab_delete(segments->mappings);
	free(segments);
}

/* ---- the files around an address ---- */

/**
 * struct search - The search for the segment that was at an address
 * @record: The record of the mapping that is there now.
 * @address: The address.
 * @part: The part of this mapping; its file is NULL until it is found.
 * @unread: The memory could not be read in time, or the process has ended.
 */
struct search {
	const struct profil_record *record;
	u64 address;
	struct part part;
	bool unread;
};

/* Returns a copy of @record with another path, which the caller frees. */
static struct profil_record *copy_record(const struct profil_record *record, const char *path)
{
	struct profil_record *copy = xcalloc(1, sizeof(*copy) + strlen(path));

	memcpy(copy, record, offsetof(struct profil_record, path));
	strcpy((char *)copy + offsetof(struct profil_record, path), path);
	return copy;
}

/* Returns false if the memory at the address is not that of the file. @at: its offset there. */
static bool has_contents(struct search *search, int fd, u64 at, u64 size)
{
	u8 memory[COMPARED], file[COMPARED];
	u64 different = 0;

	/* Security modules can allow to read where the mappings are, but not what is in them. */
	if (!maps_read_memory(search->record->pid, search->address, memory, size)) {
		search->unread = errno != EPERM;
		return !search->unread;
	}
	if (pread(fd, file, size, at) != (ssize_t)size)
		return false;
	for (u64 i = 0; i < size; i++)
		different += memory[i] != file[i];
	return different <= size / DIFFERENT_PART;
}

/* Examines a segment of the file of @line, which was at @start. */
static void examine_segment(struct search *search, int fd, const struct profil_record *line,
			    const struct elf_segment *segment, u64 start)
{
	const u64 inside = search->address - start, end = start + segment->size;
	const u64 left = segment->size - inside;
	struct part *part = &search->part;

	if (part->file || end < start)
		return;
	if (inside >= segment->size) {
		if (end <= search->address && end > part->start)
			part->start = end;
		if (start > search->address && start < part->end)
			part->end = start;
		return;
	}
	if (!has_contents(search, fd, segment->offset + inside, left < COMPARED ? left : COMPARED))
		return;
	part->file = copy_record(line, line->path);
	part->file->pc = start;
	part->file->start = start;
	part->file->end = end;
	part->file->offset = segment->offset;
	if (part->start < start)
		part->start = start;
	if (part->end > end)
		part->end = end;
}

/* Returns true if the mapping may be of this segment. Segments can share a page of the file. */
static bool is_segment_of(const struct elf_segment *segment, const struct profil_record *line,
			  bool is_executable)
{
	const u64 page = sysconf(_SC_PAGESIZE), end = segment->offset + segment->size;

	return segment->is_executable == is_executable && line->offset < end &&
	       line->offset + (line->end - line->start) > segment->offset / page * page;
}

/* Examines the file of @line, which is a mapping beside the address. */
static void examine_file(struct search *search, const struct profil_record *line,
			 bool is_executable)
{
	struct elf_segment all[SEGMENTS_MAX];
	size_t nr = 0;
	struct stat st;
	u64 entry, bias;
	u32 reason;
	int fd;

	fd = mapping_open(line, &st, &reason);
	if (fd < 0)
		return;
	nr = elf_segments(fd, all, SEGMENTS_MAX, &entry);
	for (size_t i = 0; i < nr; i++) {
		if (!is_segment_of(&all[i], line, is_executable))
			continue;
		bias = line->start - line->offset - (all[i].address - all[i].offset);
		for (size_t j = 0; j < nr; j++)
			if (all[j].is_executable)
				examine_segment(search, fd, line, &all[j], all[j].address + bias);
	}
	close(fd);
}

/* Reads a value of the auxiliary vector. Returns 0 if it is not known. */
static u64 read_auxv(pid_t pid, u64 type)
{
	FILE *file = proc_open(pid, "auxv");
	Elf64_auxv_t entry = {};
	u64 value = 0;

	while (!value && file && fread(&entry, sizeof(entry), 1, file) == 1)
		if (entry.a_type == type)
			value = entry.a_un.a_val;
	if (file)
		fclose(file);
	return value;
}

/* Examines the program, of which all segments may have been replaced. */
static void examine_program(struct search *search)
{
	const struct profil_record *record = search->record;
	const u64 address = read_auxv(record->pid, AT_ENTRY);
	struct elf_segment all[SEGMENTS_MAX];
	struct profil_record *line, program = {
		.flags = PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE,
		.space = record->space,
		.pid = record->pid,
		.time = record->time,
		.generation = MAPS_NO_GENERATION,
	};
	char link[32], path[PATH_MAX];
	struct stat st;
	ssize_t length;
	u64 entry;
	size_t nr;
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/exe", record->pid);
	length = readlink(link, path, sizeof(path) - 1);
	fd = address && length > 0 ? file_open(-1, link, 0) : -1;
	if (fd < 0)
		return;
	path[length] = '\0';
	nr = fstat(fd, &st) || st.st_ino == record->ino ? 0 :
	     elf_segments(fd, all, SEGMENTS_MAX, &entry);
	program.ino = st.st_ino;
	program.major = major(st.st_dev);
	program.minor = minor(st.st_dev);
	line = copy_record(&program, path);
	for (size_t i = 0; i < nr; i++)
		if (all[i].is_executable)
			examine_segment(search, fd, line, &all[i],
					all[i].address + address - entry);
	free(line);
	close(fd);
}

/* The mappings of files beside an address: the last one before it, and the first one behind it */
struct neighbours {
	struct profil_record *lines[2];
	bool is_executable[2];
};

/* Returns false if the process no longer has the mapping of the record. */
static bool find_neighbours(const struct search *search, struct neighbours *neighbours)
{
	const struct profil_record *record = search->record;
	FILE *maps = proc_open(record->pid, "maps");
	struct profil_record *line;
	size_t size = 0, bytes = 0;
	bool is_executable, is_same, is_there = false;
	char *text = NULL;
	ssize_t length;

	while (!neighbours->lines[1] && maps && bytes < MAPS_BYTES_MAX &&
	       (length = getline(&text, &size, maps)) > 0) {
		bytes += length;
		line = maps_parse(text, &is_executable);
		if (!line)
			continue;
		is_same = line->ino == record->ino && line->major == record->major &&
			  line->minor == record->minor;
		is_there |= is_same && search->address >= line->start &&
			    search->address < line->end;
		if (line->flags & PROFIL_RECORD_FILE && !is_same && !maps_is_memory(line->path)) {
			const bool is_behind = line->start > search->address;

			line->space = record->space;
			line->pid = record->pid;
			line->time = record->time;
			free(neighbours->lines[is_behind]);
			neighbours->lines[is_behind] = line;
			neighbours->is_executable[is_behind] = is_executable;
		} else {
			free(line);
		}
	}
	free(text);
	if (maps)
		fclose(maps);
	return is_there;
}

/* Returns the part of the mapping that contains the address; NULL if it cannot be examined now. */
static struct part *examine(const struct profil_record *record, u64 address)
{
	struct search search = {
		.record = record,
		.address = address,
		.part = { .start = record->start, .end = record->end },
	};
	struct neighbours neighbours = {};
	const bool is_there = find_neighbours(&search, &neighbours);

	for (int i = 0; i < 2; i++) {
		if (is_there && neighbours.lines[i])
			examine_file(&search, neighbours.lines[i], neighbours.is_executable[i]);
		free(neighbours.lines[i]);
	}
	if (!is_there)
		return NULL;
	if (!search.part.file)
		examine_program(&search);
	if (!search.part.file && search.unread)
		return NULL;
	return xmemdup(&search.part, sizeof(search.part), sizeof(search.part));
}

/* ---- the results ---- */

/* Returns the known or new part of the mapping, or NULL. */
static const struct part *part_of(struct segments *segments, const struct profil_record *record,
				  u64 address)
{
	const struct examined key = {
		.space = record->space, .start = record->start, .end = record->end,
	};
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	struct examined *mapping = htab_find(segments->mappings, &key);
	struct part *part;

	for (part = mapping ? mapping->parts : NULL; part; part = part->next)
		if (address >= part->start && address < part->end)
			return part;
	if (segments->spent > TIME_FREE_NS + (now - segments->start) / TIME_PART)
		return NULL;
	part = examine(record, address);
	segments->spent += clock_ns(CLOCK_MONOTONIC) - now;
	if (!part)
		return NULL;
	if (!mapping) {
		if (htab_elements(segments->mappings) > MAPPINGS_MAX)
			htab_empty(segments->mappings);
		mapping = xmalloc(sizeof(*mapping));
		*mapping = key;
		*htab_find_slot(segments->mappings, mapping, INSERT) = mapping;
	}
	part->next = mapping->parts;
	mapping->parts = part;
	return part;
}

/*
 * Returns true if the file has a usual path: neither that of memory, /memfd: or /dev/zero, nor one
 * that ends with (deleted). This is for each sample.
 */
static bool has_usual_path(const struct profil_record *record)
{
	const char *path = record->path;

	return record->flags & PROFIL_RECORD_FILE && path[0] == '/' && path[1] &&
	       path[2] != 'e' && path[strlen(path) - 1] != ')';
}

/* Returns true if the mapping can be a copy. */
static bool may_be_copy(const struct profil_record *record)
{
	if (has_usual_path(record))
		return false;
	if (!(record->flags & PROFIL_RECORD_MAPPED) || !record->space || record->pid <= 0)
		return false;
	if (record->flags & PROFIL_RECORD_FILE)
		return maps_is_memory(record->path) || maps_is_deleted(record->path);
	return !*record->path;
}

const struct profil_record *segments_find(struct segments *segments,
					  const struct profil_record *record, u64 address)
{
	struct profil_record *found = &segments->found.record;
	const struct part *part = may_be_copy(record) ? part_of(segments, record, address) : NULL;
	const char *path = part && part->file ? part->file->path : record->path;

	if (address == record->pc && path == record->path)
		return record;
	memcpy(found, record, offsetof(struct profil_record, path));
	snprintf(segments->found.bytes + offsetof(struct profil_record, path), PATH_MAX, "%s",
		 path);
	found->pc = address;
	found->offset = record->offset + (address - record->pc);
	if (path == record->path)
		return found;
	found->flags |= PROFIL_RECORD_FILE;
	found->start = part->file->start;
	found->end = part->file->end;
	found->offset = part->file->offset + (address - part->file->start);
	found->ino = part->file->ino;
	found->generation = part->file->generation;
	found->major = part->file->major;
	found->minor = part->file->minor;
	return found;
}
