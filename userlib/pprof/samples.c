// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * See samples.h.
 *
 * Samples refer to stacks, stacks to locations and the stack of the caller, and locations to
 * mappings. They are items of one tree. Each is made after the items that it refers to, so that
 * they are written in the order in which they were made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "profil.h"
#include "samples.h"

#define BUILD_ID_MAX	64
/* Notes behind this many bytes of a segment are not read. */
#define NOTES_MAX	4096
#define KEY_WORDS	6
/* The pc, and the return addresses that a session can have */
#define DEPTH_MAX	(1 + SAMPLES_DEPTH_MAX)
/* The mappings are not read again before this time has passed. */
#define MAPS_INTERVAL_NS 100000000

enum { MAPPING, LOCATION, STACK, SAMPLE };

/* The place of a location that has no mapping */
enum { MAPPED, UNKNOWN, EXIT, EXEC };

static const char *const place_names[] = { NULL, "[unknown]", "[exit]", "[exec]" };

struct mapping_key {
	uint64_t type, start, end, file_offset, inode, device;
};

/* @pc: of a call, the last byte of the instruction. */
struct location_key {
	uint64_t type, mapping, pc, place, unused[2];
};

/* A function and its callers. @caller: their stack, or 0. */
struct stack_key {
	uint64_t type, caller, location, unused[3];
};

struct sample_key {
	uint64_t type, stack, tid, is_system;
	char comm[16];
};

/**
 * struct item - A mapping, location, stack or sample
 * @next: The item that was made after it.
 * @key: Its type, and what distinguishes it from others of this type.
 * @id: Its number among these, from 1 on.
 */
struct item {
	struct item *next;
	union {
		uint64_t words[KEY_WORDS];
		struct mapping_key mapping;
		struct location_key location;
		struct stack_key stack;
		struct sample_key sample;
	} key;
	uint64_t id;
	union {
		struct {
			char *path;
			bool is_program;
			char build_id[2 * BUILD_ID_MAX + 1];
		} mapping;
		struct {
			char *name;	/* "" if there is none; NULL if it was not looked up */
		} location;
		struct {
			const struct item *caller;
		} stack;
		struct {
			const struct item *stack;
			uint64_t ticks;
			uint64_t periods;
		} sample;
	};
};

_Static_assert(sizeof(struct mapping_key) == KEY_WORDS * sizeof(uint64_t) &&
	       sizeof(struct location_key) == KEY_WORDS * sizeof(uint64_t) &&
	       sizeof(struct stack_key) == KEY_WORDS * sizeof(uint64_t) &&
	       sizeof(struct sample_key) == KEY_WORDS * sizeof(uint64_t), "keys have one size");

static int item_compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static void item_free(void *data)
{
	struct item *item = data;

	if (item->key.words[0] == MAPPING)
		free(item->mapping.path);
	else if (item->key.words[0] == LOCATION)
		free(item->location.name);
	free(item);
}

/* Returns the item with the key of @like; NULL if there is not enough memory for a new one. */
static struct item *item_get(struct samples *samples, const struct item *like, bool *is_new)
{
	struct item **found = tfind(like, &samples->items, item_compare), *item;

	*is_new = !found;
	if (found)
		return *found;
	item = malloc(sizeof(*item));
	if (!item)
		return NULL;
	*item = *like;
	if (!tsearch(item, &samples->items, item_compare)) {
		free(item);
		return NULL;
	}
	item->id = ++samples->nr[item->key.words[0]];
	if (samples->last)
		samples->last->next = item;
	else
		samples->first = item;
	samples->last = item;
	return item;
}

/* ---- build-ids ---- */

/**
 * struct object_search - A search for the object that the dynamic linker has loaded at @pc
 * @mapping: Gets its build-id.
 * @nr: Number of objects before the present one. The first one is the program.
 */
struct object_search {
	uint64_t pc;
	struct item *mapping;
	size_t nr;
};

static void read_build_id(const char *notes, size_t size, char *text)
{
	const size_t name_size = sizeof("GNU");
	ElfW(Nhdr) note;
	size_t skip;

	for (; size >= sizeof(note); notes += skip, size -= skip) {
		memcpy(&note, notes, sizeof(note));
		skip = sizeof(note) + ((note.n_namesz + 3ULL) & -4ULL) +
		       ((note.n_descsz + 3ULL) & -4ULL);
		if (skip > size)
			return;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != name_size ||
		    note.n_descsz > BUILD_ID_MAX || memcmp(notes + sizeof(note), "GNU", name_size))
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			sprintf(text + 2 * i, "%02x",
				(unsigned char)notes[sizeof(note) + name_size + i]);
		return;
	}
}

/* Returns true if the segment is a part of one that the dynamic linker has loaded from the file. */
static bool is_loaded(const struct dl_phdr_info *object, const ElfW(Phdr) *segment)
{
	const ElfW(Phdr) *load;
	uint64_t skip;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		load = &object->dlpi_phdr[i];
		skip = segment->p_vaddr - load->p_vaddr;
		if (load->p_type == PT_LOAD && load->p_flags & PF_R && skip < load->p_filesz &&
		    segment->p_memsz <= load->p_filesz - skip)
			return true;
	}
	return false;
}

/*
 * Reads the notes of a segment, which may be hostile. The kernel copies them: the memory may be
 * behind the end of the file, or unmapped by now, and an access of ours would end the program.
 */
static void read_notes(const struct dl_phdr_info *object, const ElfW(Phdr) *segment, char *text)
{
	char notes[NOTES_MAX];
	struct iovec to = { .iov_base = notes, .iov_len = sizeof(notes) };
	struct iovec from = {
		.iov_base = (void *)(object->dlpi_addr + segment->p_vaddr),
		.iov_len = segment->p_memsz < NOTES_MAX ? segment->p_memsz : NOTES_MAX,
	};
	ssize_t size;

	if (!is_loaded(object, segment))
		return;
	size = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	if (size > 0)
		read_build_id(notes, size, text);
}

static int search_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct object_search *search = data;
	const ElfW(Phdr) *header;
	bool found = false;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		header = &object->dlpi_phdr[i];
		if (header->p_type == PT_LOAD &&
		    search->pc - (object->dlpi_addr + header->p_vaddr) < header->p_memsz)
			found = true;
	}
	search->nr++;
	if (!found)
		return 0;
	search->mapping->mapping.is_program = search->nr == 1;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		header = &object->dlpi_phdr[i];
		if (header->p_type == PT_NOTE && !*search->mapping->mapping.build_id)
			read_notes(object, header, search->mapping->mapping.build_id);
	}
	return 1;
}

/* ---- records ---- */

/* Returns a mapping. Its build-id is read while the object is loaded. @pc: an address in it. */
static struct item *mapping_get(struct samples *samples, const struct map *map, uint64_t pc)
{
	struct item like = { .key.mapping = {
		.type = MAPPING,
		.start = map->start,
		.end = map->end,
		.file_offset = map->offset,
		.inode = map->inode,
		.device = map->device,
	} }, *mapping;
	struct object_search search = { .pc = pc };
	bool is_new;

	mapping = item_get(samples, &like, &is_new);
	if (mapping && is_new) {
		mapping->mapping.path = strdup(*map->path ? map->path : "[anon]");
		search.mapping = mapping;
		dl_iterate_phdr(search_object, &search);
	}
	return mapping;
}

static struct item *mapping_of(struct samples *samples, const struct profil_record *record)
{
	const bool is_file = record->flags & PROFIL_RECORD_FILE;
	const struct map map = {
		.start = record->start,
		.end = record->end,
		.offset = is_file ? record->offset - (record->pc - record->start) : 0,
		.inode = record->ino,
		.device = (uint64_t)record->major << 32 | record->minor,
		.path = (char *)record->path,
	};

	return mapping_get(samples, &map, record->pc);
}

static struct item *location_of(struct samples *samples, const struct profil_record *record)
{
	struct item like = { .key.location = { .type = LOCATION, .pc = record->pc } }, *mapping;
	bool is_new;

	if (record->flags & PROFIL_RECORD_MAPPED) {
		mapping = mapping_of(samples, record);
		if (!mapping)
			return NULL;
		like.key.location.mapping = mapping->id;
	} else if (record->flags & PROFIL_RECORD_EXIT) {
		like.key.location.place = EXIT;
	} else {
		like.key.location.place = record->flags & PROFIL_RECORD_EXEC ? EXEC : UNKNOWN;
	}
	return item_get(samples, &like, &is_new);
}

/* Returns the mapping that contains the address. If it may be new, reads all of them again. */
static const struct map *find_map(struct samples *samples, uint64_t address)
{
	const struct map *map = maps_find(&samples->maps, address);
	struct timespec time;
	uint64_t now;

	if (map)
		return map;
	clock_gettime(CLOCK_MONOTONIC, &time);
	now = time.tv_sec * 1000000000ULL + time.tv_nsec;
	if (now < samples->next_read)
		return NULL;
	samples->next_read = now + MAPS_INTERVAL_NS;
	samples->maps_changed = true;
	maps_read(&samples->maps);
	return maps_find(&samples->maps, address);
}

/* Returns the location of a call that returns to the address. */
static struct item *location_of_call(struct samples *samples, uint64_t address)
{
	const struct map *map = find_map(samples, address - 1);
	struct item like = { .key.location = {
		.type = LOCATION,
		.pc = address - 1,
		.place = map ? MAPPED : UNKNOWN,
	} }, *mapping;
	bool is_new;

	if (map) {
		mapping = mapping_get(samples, map, address - 1);
		if (!mapping)
			return NULL;
		like.key.location.mapping = mapping->id;
	}
	return item_get(samples, &like, &is_new);
}

/* Returns the stack of a location and its callers; NULL if there is not enough memory. */
static struct item *stack_get(struct samples *samples, const struct item *location,
			      const struct item *caller)
{
	struct item like = {
		.key.stack = {
			.type = STACK,
			.caller = caller ? caller->id : 0,
			.location = location ? location->id : 0,
		},
		.stack.caller = caller,
	};
	bool is_new;

	return location ? item_get(samples, &like, &is_new) : NULL;
}

static struct item *stack_of(struct samples *samples, const struct profil_record *record)
{
	const struct profil_stack *stack = profil_record_stack(record);
	const struct item *caller = NULL, *location;

	for (size_t i = stack && stack->nr <= SAMPLES_DEPTH_MAX ? stack->nr : 0; i--; ) {
		location = location_of_call(samples, stack->addresses[i] & ~PROFIL_STACK_BY_TABLE);
		caller = stack_get(samples, location, caller);
		if (!caller)
			return NULL;
	}
	/* A new library, perhaps without a caller that is there. */
	if (record->flags & PROFIL_RECORD_MAPPED)
		find_map(samples, record->pc);
	return stack_get(samples, location_of(samples, record), caller);
}

static void count_stack(struct samples *samples, const struct profil_record *record)
{
	const struct profil_stack *stack = profil_record_stack(record);

	if (!stack || record->flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT))
		return;
	samples->stacks++;
	/* Without a table, callers may be missing between these. */
	if (stack->end == PROFIL_STACK_OUTERMOST &&
	    (!stack->nr || stack->addresses[0] & PROFIL_STACK_BY_TABLE))
		samples->complete++;
}

void samples_add(struct samples *samples, const struct profil_record *record)
{
	const struct item *stack = stack_of(samples, record);
	struct item like = { .key.sample = {
		.type = SAMPLE,
		.tid = record->tid,
		.is_system = !!(record->flags & PROFIL_RECORD_SYSTEM),
	} }, *sample = NULL;
	bool is_new;

	if (stack) {
		like.key.sample.stack = stack->id;
		like.sample.stack = stack;
		memcpy(like.key.sample.comm, record->comm, strlen(record->comm));
		sample = item_get(samples, &like, &is_new);
	}
	if (!sample) {
		samples->lost++;
		return;
	}
	sample->sample.ticks++;
	sample->sample.periods += record->periods;
	samples->ticks++;
	count_stack(samples, record);
}

/* ---- names ---- */

/* Returns the name of the function at a location. */
static char *name_of(const struct location_key *key)
{
	Dl_info info;

	if (key->place != MAPPED)
		return strdup(place_names[key->place]);
	if (!dladdr((void *)(uintptr_t)key->pc, &info) || !info.dli_sname)
		return strdup("");
	return strdup(info.dli_sname);
}

void samples_name(const struct samples *samples, struct item *last)
{
	struct item *item = last ? samples->first : NULL;
	char *none, *name;

	for (; item; item = item == last ? NULL : item->next) {
		if (item->key.words[0] != LOCATION ||
		    __atomic_load_n(&item->location.name, __ATOMIC_ACQUIRE))
			continue;
		name = name_of(&item->key.location);
		none = NULL;
		if (!__atomic_compare_exchange_n(&item->location.name, &none, name, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			free(name);
	}
}

/* ---- output ---- */

/* Returns the number of bytes of the character of UTF-8 at @text, or 0 if there is none. */
static size_t character_bytes(const unsigned char *text)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 :
		       *text >> 3 == 30 ? 4 : 0;
	uint32_t character = *text & (0x7f >> (bytes > 1 ? bytes : 0));

	for (size_t i = 1; i < bytes; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	return character < lowest[bytes] || character >> 11 == 0x1b || character > 0x10ffff ? 0 :
	       bytes;
}

/* Adds a name of the program. Bytes that are not UTF-8 become question marks. */
static int64_t write_name(struct message *message, const char *name)
{
	char *text = strdup(name);
	int64_t index;
	size_t bytes;

	if (!text) {
		message->failed = true;
		return 0;
	}
	for (char *at = text; *at; at += bytes ?: 1) {
		bytes = character_bytes((const unsigned char *)at);
		if (!bytes)
			*at = '?';
	}
	index = message_string(message, text);
	free(text);
	return index;
}

static void write_mapping(const struct item *item, struct message *message)
{
	const struct mapping_key *key = &item->key.mapping;
	Pprof__Mapping part = PPROF__MAPPING__INIT;

	part.id = item->id;
	part.memory_start = key->start;
	part.memory_limit = key->end;
	part.file_offset = key->file_offset;
	part.filename = write_name(message, item->mapping.path ?: "");
	part.build_id = message_string(message, item->mapping.build_id);
	message_add_mapping(message, &part);
}

/* A location that has a name gets a function of its own, which has the same id. */
static void write_location(const struct item *item, struct message *message)
{
	const char *name = __atomic_load_n(&item->location.name, __ATOMIC_ACQUIRE);
	const struct location_key *key = &item->key.location;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	Pprof__Location part = PPROF__LOCATION__INIT;
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = { &line };

	part.id = item->id;
	part.mapping_id = key->mapping;
	part.address = key->pc;
	if (name && *name) {
		function.id = item->id;
		function.name = write_name(message, name);
		function.system_name = function.name;
		message_add_function(message, &function);
		line.function_id = function.id;
		part.n_line = 1;
		part.line = lines;
	}
	message_add_location(message, &part);
}

static void write_sample(const struct item *item, uint64_t period, struct message *message)
{
	const struct sample_key *key = &item->key.sample;
	int64_t values[] = { item->sample.ticks, item->sample.periods * period };
	Pprof__Sample part = PPROF__SAMPLE__INIT;
	uint64_t locations[DEPTH_MAX];
	Pprof__Label labels[3], *pointers[] = { &labels[0], &labels[1], &labels[2] };

	labels[0] = message_label(message, "thread", "", 0);
	labels[0].str = write_name(message, key->comm);
	labels[1] = message_label(message, "tid", NULL, key->tid);
	labels[2] = message_label(message, "mode", key->is_system ? "system" : "user", 0);
	for (const struct item *stack = item->sample.stack; stack; stack = stack->stack.caller)
		locations[part.n_location_id++] = stack->key.stack.location;
	part.location_id = locations;
	part.n_value = 2;
	part.value = values;
	part.n_label = 3;
	part.label = pointers;
	message_add_sample(message, &part);
}

void samples_write(const struct samples *samples, uint64_t period, struct message *message)
{
	const struct item *item;

	/* pprof takes the first mapping for the program. */
	for (int others = 0; others < 2; others++)
		for (item = samples->first; item; item = item->next)
			if (item->key.words[0] == MAPPING && item->mapping.is_program == !others)
				write_mapping(item, message);
	for (item = samples->first; item; item = item->next) {
		if (item->key.words[0] == LOCATION)
			write_location(item, message);
		else if (item->key.words[0] == SAMPLE)
			write_sample(item, period, message);
	}
}

void samples_free(struct samples *samples)
{
	tdestroy(samples->items, item_free);
	maps_free(&samples->maps);
}
