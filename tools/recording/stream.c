// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See stream.h.
 *
 * A record has the identity of the file that was mapped at the tick. The recorder opens each file
 * once, at its first record, to read its build-id. If the file has been deleted or replaced by
 * then, the build-id stays unknown.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/functions.h"
#include "recording/spaces.h"
#include "recording/stream.h"
#include "symbols/files.h"

_Static_assert(BUILD_ID_MAX == FORMAT_BUILD_ID_MAX, "the recording has whole build-ids");

/*
 * The maximum number of threads and mappings in memory. When it is exceeded, all are freed, and
 * each is written again, with another id, at its next tick.
 */
#define ENTRIES_MAX	(1U << 16)

/* The same for stacks, whose sizes differ: the maximum size of all. */
#define STACK_BYTES_MAX	(16U << 20)

#define KEY_WORDS	6

/**
 * struct entry - A thread, file or mapping that was written
 * @key: Its type and its identity.
 * @id: Its id; 0: it was not written yet.
 * @comm: The name of a thread.
 * @is_exact: For a file, the generation of its inode is known.
 * @source: For a file or a mapping, where the functions of its samples are noted; or NULL.
 */
struct entry {
	u64 key[KEY_WORDS];
	u32 id;
	char comm[16];
	bool is_exact;
	struct source *source;
};

static hashval_t entry_hash(const void *data)
{
	const struct entry *entry = data;
	u64 hash = 0;

	for (size_t i = 0; i < KEY_WORDS; i++)
		hash = (hash ^ entry->key[i]) * 0x9e3779b97f4a7c15ULL;
	return hash >> 32;
}

static int entry_equals(const void *a, const void *b)
{
	return !memcmp(a, b, KEY_WORDS * sizeof(u64));
}

static struct entry *entry_get(htab_t table, const u64 *key)
{
	void **slot = htab_find_slot(table, key, INSERT);
	struct entry *entry = *slot;

	if (!entry) {
		entry = xcalloc(1, sizeof(*entry));
		memcpy(entry->key, key, sizeof(entry->key));
		*slot = entry;
	}
	return entry;
}

/**
 * struct stack - A stack that was written
 * @id: Its id.
 * @unknown: The mapping of one of its addresses is not known.
 * @version: The version of its space.
 * @space: The space.
 * @data: The stack as the module has recorded it, but the words in innermost are 0 unless they are
 *	in a mapping of the space.
 */
struct stack {
	u32 id;
	bool unknown;
	u64 version;
	u64 space;
	struct profil_stack data;
};

static size_t stack_size(const struct profil_stack *stack)
{
	return sizeof(*stack) + stack->nr * sizeof(*stack->addresses);
}

static hashval_t stack_hash(const void *data)
{
	const struct stack *stack = data;
	const u64 *words = (const u64 *)&stack->data;
	u64 hash = stack->space + stack->version;

	for (size_t i = 0; i < stack_size(&stack->data) / sizeof(u64); i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return hash >> 32;
}

static int stack_equals(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	return x->space == y->space && x->version == y->version && x->data.nr == y->data.nr &&
	       !memcmp(&x->data, &y->data, stack_size(&x->data));
}

void stream_init(struct stream *stream, struct format_writer *writer)
{
	stream->writer = writer;
	stream->functions = functions_new();
	stream->files = htab_create(64, entry_hash, entry_equals, free);
	stream->entries = htab_create(256, entry_hash, entry_equals, free);
	stream->stacks = htab_create(16, stack_hash, stack_equals, free);
	stream->stack_bytes = 0;
	stream->spaces = spaces_new();
	memset(stream->last, 0, sizeof(stream->last));
	stream->place = (struct profil_record){};
}

int stream_finish(struct stream *stream)
{
	return functions_write(stream->functions, stream->writer);
}

void stream_free(struct stream *stream)
{
	functions_free(stream->functions);
	htab_delete(stream->files);
	htab_delete(stream->entries);
	htab_delete(stream->stacks);
	spaces_free(stream->spaces);
}

/* ---- threads ---- */

bool stream_read_comm(pid_t pid, char comm[16])
{
	FILE *file = proc_open(pid, "comm");
	size_t len = file ? fread(comm, 1, 16, file) : 0;

	if (file)
		fclose(file);
	/* The last byte is a newline. */
	comm[len ? len - 1 : 0] = '\0';
	return len > 1;
}

static struct entry *thread_get(struct stream *stream, const struct profil_record *record, s32 tid)
{
	const u64 key[KEY_WORDS] = { FORMAT_THREAD, record->space, record->pid, tid };

	return entry_get(stream->entries, key);
}

/* Writes the thread if it is new or has another name now. */
static void thread_update(struct stream *stream, struct entry *entry,
			  const struct profil_record *record, s32 tid, const char *comm)
{
	struct format_thread thread;

	if (entry->id && !memcmp(entry->comm, comm, sizeof(entry->comm)))
		return;
	thread = (struct format_thread){ .pid = record->pid, .tid = tid, .space = record->space };
	memcpy(entry->comm, comm, sizeof(entry->comm));
	memcpy(thread.comm, comm, sizeof(thread.comm));
	thread.id = ++stream->last[FORMAT_THREAD];
	entry->id = thread.id;
	format_write(stream->writer, FORMAT_THREAD, &thread);
}

/* Of the threads of a process, the one that was written last */
struct last_thread {
	s32 pid;
	const struct entry *entry;
};

static int find_last_thread(void **slot, void *data)
{
	const struct entry *entry = *slot;
	struct last_thread *last = data;

	if (entry->key[0] == FORMAT_THREAD && (s32)entry->key[2] == last->pid &&
	    (!last->entry || entry->id > last->entry->id))
		last->entry = entry;
	return 1;
}

/*
 * With -a, a task that was reaped before its last tick has no space in its record. Returns that of
 * the last program of its process, or 0 if there is none. This is rare.
 */
static u64 last_space(struct stream *stream, const struct profil_record *record)
{
	struct last_thread last = { .pid = record->pid };

	if (record->pid)
		htab_traverse_noresize(stream->entries, find_last_thread, &last);
	return last.entry ? last.entry->key[1] : 0;
}

static u32 thread_of(struct stream *stream, const struct profil_record *record)
{
	struct entry *entry = thread_get(stream, record, record->tid), *leader;
	char comm[16] = "";

	/* The name of a process is that of its main thread, which may have no tick. */
	if (!entry->id && record->tid != record->pid) {
		leader = thread_get(stream, record, record->pid);
		if (!leader->id && stream_read_comm(record->pid, comm))
			thread_update(stream, leader, record, record->pid, comm);
	}
	/* In exec, the name can be that of the new program, and the space that of the old one. */
	if (!entry->id || !(record->flags & PROFIL_RECORD_EXEC))
		thread_update(stream, entry, record, record->tid, record->comm);
	return entry->id;
}

/* ---- files and mappings ---- */

/*
 * Returns true if a mapping of @fd has the inode and device of the record. On overlayfs, these can
 * differ from the values that stat() returns, so this maps the file and reads /proc/self/maps.
 */
static bool is_mapped_as(int fd, const struct profil_record *record)
{
	void *page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0, ino;
	unsigned int major, minor;
	char *line = NULL;
	size_t size = 0;

	while (maps && start != (uintptr_t)page && getline(&line, &size, maps) > 0)
		start = strtoul(line, NULL, 16);
	if (start != (uintptr_t)page ||
	    sscanf(line, "%*s %*s %*x %x:%x %lu", &major, &minor, &ino) != 3)
		start = 0;
	free(line);
	if (maps)
		fclose(maps);
	if (page != MAP_FAILED)
		munmap(page, 1);
	return start && start == (uintptr_t)page && ino == record->ino &&
	       major == record->major && minor == record->minor;
}

/*
 * Opens @path if it is the file of the record, and nobody has changed it since: a new file may have
 * the inode number of one that was removed. Otherwise returns -1.
 */
static int open_same(const char *path, const struct profil_record *record, struct stat *st)
{
	const u64 age = clock_ns(CLOCK_MONOTONIC) - record->time;
	int fd = file_open(-1, path, 0);

	if (fd < 0)
		return -1;
	if (!fstat(fd, st) && time_ns(st->st_ctim) <= clock_ns(CLOCK_REALTIME) - age &&
	    ((st->st_ino == record->ino &&
	      st->st_dev == makedev(record->major, record->minor)) || is_mapped_as(fd, record)))
		return fd;
	close(fd);
	return -1;
}

/*
 * Opens the mapped file of the record. The process may have another mount namespace, in which the
 * path leads to another file. So if the path leads to another file here, this tries the path below
 * the root directory of the process. A file that was removed has no path: the links in /proc lead
 * to it. Those of map_files need a capability.
 */
static int open_mapped(const struct profil_record *record, struct stat *st)
{
	char *path;
	int fd = -1;

	for (int i = 0; fd < 0 && i < 4 && record->path[0] == '/'; i++) {
		path = i == 0 ? xstrdup(record->path) :
		       i == 1 ? xasprintf("/proc/%d/root%s", record->pid, record->path) :
		       i == 2 ? xasprintf("/proc/%d/exe", record->pid) :
				xasprintf("/proc/%d/map_files/%llx-%llx", record->pid,
					  record->start, record->end);
		fd = open_same(path, record, st);
		free(path);
	}
	return fd;
}

/* Returns the identity of the file, except for its inode number. Generations have 32 bits. */
static u64 inode_bits(const struct profil_record *record)
{
	return (u64)record->major << 52 | (u64)record->minor << 32 | (u32)record->generation;
}

static const struct entry *file_of(struct stream *stream, const struct profil_record *record)
{
	const bool is_file = record->flags & PROFIL_RECORD_FILE;
	struct format_file file = {
		.flags = is_file ? 0 : FORMAT_FILE_NONE,
		.ino = record->ino,
		.path = *record->path ? record->path : is_file ? "[file]" : "[anon]",
	};
	const bool is_exact = record->generation != SPACES_NO_GENERATION;
	const u64 device = (u64)record->major << 32 | record->minor;
	const u64 any_key[KEY_WORDS] = {
		FORMAT_FILE, record->ino, 0, htab_hash_string(file.path), device, true,
	};
	const u64 key[KEY_WORDS] = {
		FORMAT_FILE, record->ino, inode_bits(record), htab_hash_string(file.path),
	};
	/* Some generation of the file: that of the last record, or the one that is mapped now. */
	struct entry *any = entry_get(stream->files, any_key);
	struct entry *entry = is_exact ? entry_get(stream->files, key) : any;
	struct stat st;
	int fd;

	if (entry->id)
		return entry;
	if (any->id && !any->is_exact) {
		any->is_exact = true;
		entry->id = any->id;
		entry->source = any->source;
		return entry;
	}
	file.id = ++stream->last[FORMAT_FILE];
	entry->id = file.id;
	fd = is_file ? open_mapped(record, &st) : -1;
	if (fd >= 0) {
		file.size = st.st_size;
		file.mtime = time_ns(st.st_mtim);
		file.build_id_len = buildid_of_fd(fd, file.build_id);
	}
	entry->source = functions_file(stream->functions, file.id, fd);
	any->id = entry->id;
	any->source = entry->source;
	any->is_exact = is_exact;
	format_write(stream->writer, FORMAT_FILE, &file);
	return entry;
}

static const struct entry *mapping_of(struct stream *stream, const struct profil_record *record)
{
	struct format_mapping mapping = {
		.bias = record->flags & PROFIL_RECORD_FILE ? record->pc - record->offset : 0,
		.start = record->start,
	};
	const u64 key[KEY_WORDS] = {
		FORMAT_MAPPING, record->space, mapping.start, mapping.bias, record->ino,
		inode_bits(record),
	};
	struct entry *entry = entry_get(stream->entries, key);
	const struct entry *file;

	if (!entry->id) {
		file = file_of(stream, record);
		mapping.file = file->id;
		mapping.id = ++stream->last[FORMAT_MAPPING];
		entry->id = mapping.id;
		entry->source = file->source;
		format_write(stream->writer, FORMAT_MAPPING, &mapping);
	}
	return entry;
}

/* Makes room for more threads and mappings. */
static void empty_entries(struct stream *stream)
{
	if (htab_elements(stream->entries) <= ENTRIES_MAX)
		return;
	htab_empty(stream->entries);
	stream->place = (struct profil_record){};
}

/* ---- stacks ---- */

/* Returns true if a JIT compiler may have made the code. Some map a memfd, to execute it. */
static bool is_generated(const struct profil_record *record)
{
	if (!(record->flags & PROFIL_RECORD_MAPPED))
		return false;
	if (record->flags & PROFIL_RECORD_FILE)
		return !strncmp(record->path, "/memfd:", 7);
	return strcmp(record->path, "[vdso]") && strcmp(record->path, "[vsyscall]");
}

/* Returns the frame of a return address. @mapping: its mapping, or NULL. */
static struct format_frame frame_of(struct stream *stream, const struct profil_record *mapping,
				    u64 address)
{
	struct format_frame frame = { .offset = address };
	struct profil_record call;
	const struct entry *entry;

	if (!mapping)
		return frame;
	entry = mapping_of(stream, mapping);
	frame.mapping = entry->id;
	if (mapping->flags & PROFIL_RECORD_FILE)
		frame.offset -= mapping->pc - mapping->offset;
	functions_sample(entry->source, frame.offset - 1);
	if (is_generated(mapping)) {
		call = *mapping;
		call.pc = address - 1;
		functions_address(stream->functions, stream->thread, &call);
	}
	return frame;
}

/* Writes the stack. */
static void stack_write(struct stream *stream, struct stack *stack, const struct space *space)
{
	struct format_frame frames[FORMAT_STACK_MAX];
	struct format_stack block = {
		.id = ++stream->last[FORMAT_STACK],
		.end = stack->data.end,
		.nr = stack->data.nr,
		.frames = frames,
	};

	stack->id = block.id;
	for (u32 i = 0; i < block.nr; i++) {
		const u64 address = stack->data.addresses[i];

		/* The address can be that of the next mapping, if the call never returns. */
		frames[i] = frame_of(stream, space_find(space, address - 1), address);
		stack->unknown |= !frames[i].mapping;
	}
	for (int i = 0; i < 2; i++) {
		const u64 word = stack->data.innermost[i];

		if (word)
			block.innermost[i] = frame_of(stream, space_find(space, word - 1), word);
	}
	format_write(stream->writer, FORMAT_STACK, &block);
}

/* Returns the stack of the record as it was written; NULL if it was not. */
static struct stack *stack_find(struct stream *stream, const struct profil_record *record,
				const struct space *space, struct stack *key)
{
	const size_t path = offsetof(struct profil_record, path) + strlen(record->path) + 1;
	const struct profil_stack *stack = (const void *)((const char *)record +
							  (path + 7) / 8 * 8);

	memcpy(&key->data, stack, stack_size(stack));
	key->space = record->space;
	key->version = space->version;
	for (int i = 0; i < 2; i++)
		if (stack->innermost[i] && !space_find(space, stack->innermost[i] - 1))
			key->data.innermost[i] = 0;
	return htab_find(stream->stacks, key);
}

/* Returns the id of the stack of the record; 0 if it has none. */
static u32 stack_of(struct stream *stream, const struct profil_record *record)
{
	struct space *space = spaces_get(stream->spaces, record);
	static union {
		struct stack stack;
		u64 room[sizeof(struct stack) / sizeof(u64) + FORMAT_STACK_MAX];
	} key;
	struct stack *stack;
	size_t size;

	if (!space)
		return 0;
	stack = stack_find(stream, record, space, &key.stack);
	if (!stack || stack->unknown) {
		/* Other mappings may be needed, also those of the innermost words. */
		space_read(stream->spaces, space, record);
		stack = stack_find(stream, record, space, &key.stack);
	}
	if (stack)
		return stack->id;
	if (!key.stack.data.nr && !key.stack.data.innermost[0] && !key.stack.data.innermost[1])
		return 0;
	if (stream->stack_bytes > STACK_BYTES_MAX) {
		htab_empty(stream->stacks);
		stream->stack_bytes = 0;
	}
	empty_entries(stream);
	size = offsetof(struct stack, data) + stack_size(&key.stack.data);
	stack = xmalloc(size);
	memcpy(stack, &key, size);
	stack->unknown = false;
	*htab_find_slot(stream->stacks, stack, INSERT) = stack;
	stream->stack_bytes += size;
	stack_write(stream, stack, space);
	return stack->id;
}

/* ---- records ---- */

/*
 * Returns true if the records have the same thread and mapping. Most records have those of the one
 * before them, so this compares only as much as it must.
 */
static bool is_same_place(const struct profil_record *a, const struct profil_record *b)
{
	return a->flags == b->flags && a->pc - a->offset == b->pc - b->offset &&
	       a->ino == b->ino && a->generation == b->generation &&
	       a->major == b->major && a->minor == b->minor &&
	       !memcmp(&a->space, &b->space, offsetof(struct profil_record, end) -
					     offsetof(struct profil_record, space));
}

/* Finds or writes the thread and the mapping of the record. */
static void update_place(struct stream *stream, const struct profil_record *record)
{
	struct profil_record thread = *record;

	empty_entries(stream);
	if (!record->space)
		thread.space = last_space(stream, record);
	stream->thread = thread_of(stream, &thread);
	stream->mapping = record->flags & PROFIL_RECORD_MAPPED ? mapping_of(stream, record) : NULL;
	stream->place = *record;
}

static u32 sample_flags(const struct profil_record *record)
{
	return (record->flags & PROFIL_RECORD_SYSTEM ? FORMAT_SAMPLE_SYSTEM : 0) |
	       (record->flags & PROFIL_RECORD_EXEC ? FORMAT_SAMPLE_EXEC : 0) |
	       (record->flags & PROFIL_RECORD_EXIT ? FORMAT_SAMPLE_EXIT : 0);
}

void stream_record(struct stream *stream, const struct profil_record *record)
{
	const bool is_bare = record->flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT);
	struct format_sample sample = {
		.time = record->time,
		.offset = record->flags & PROFIL_RECORD_FILE ? record->offset : record->pc,
		.cpu = record->cpu,
		.periods = record->periods < FORMAT_PERIODS_MAX ? record->periods :
								  FORMAT_PERIODS_MAX,
		.flags = sample_flags(record),
	};

	stream->ticks++;
	/* In the exec of the command, the space is still the old one. */
	if ((stream->own_space && record->space == stream->own_space) ||
	    (stream->own_pid && record->pid == stream->own_pid)) {
		stream->own++;
		return;
	}
	stream->bare += is_bare;
	if (!is_same_place(&stream->place, record))
		update_place(stream, record);
	sample.thread = stream->thread;
	if (stream->mapping) {
		sample.mapping = stream->mapping->id;
		functions_sample(stream->mapping->source, sample.offset);
	}
	if (record->flags & PROFIL_RECORD_STACK && !is_bare)
		sample.stack = stack_of(stream, record);
	if (!(record->flags & PROFIL_RECORD_SYSTEM) && is_generated(record))
		functions_address(stream->functions, sample.thread, record);
	format_write_sample(stream->writer, &sample);
}
