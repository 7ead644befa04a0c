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
#include "recording/stream.h"
#include "symbols/files.h"

/*
 * The maximum number of threads and mappings in memory. When it is exceeded, all are freed, and
 * each is written again, with another id, at its next tick.
 */
#define ENTRIES_MAX	(1U << 16)

#define KEY_WORDS	6

/**
 * struct entry - A thread, file or mapping that was written
 * @key: Its type and its identity.
 * @id: Its id; 0: it was not written yet.
 * @comm: The name of a thread.
 * @source: For a file or a mapping, where the functions of its samples are noted; or NULL.
 */
struct entry {
	u64 key[KEY_WORDS];
	u32 id;
	char comm[16];
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

void stream_init(struct stream *stream, struct format_writer *writer)
{
	stream->writer = writer;
	stream->functions = functions_new();
	stream->files = htab_create(64, entry_hash, entry_equals, free);
	stream->entries = htab_create(256, entry_hash, entry_equals, free);
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
	const u64 key[KEY_WORDS] = {
		FORMAT_FILE, record->ino, inode_bits(record), htab_hash_string(file.path),
	};
	struct entry *entry = entry_get(stream->files, key);
	struct stat st;
	int fd;

	if (entry->id)
		return entry;
	file.id = ++stream->last[FORMAT_FILE];
	entry->id = file.id;
	fd = is_file ? open_mapped(record, &st) : -1;
	if (fd >= 0) {
		file.size = st.st_size;
		file.mtime = time_ns(st.st_mtim);
		file.build_id_len = buildid_of_fd(fd, file.build_id);
	}
	entry->source = functions_file(stream->functions, file.id, fd);
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

	if (htab_elements(stream->entries) > ENTRIES_MAX)
		htab_empty(stream->entries);
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

/* Returns true if a JIT compiler may have made the code. Some map a memfd, to execute it. */
static bool is_generated(const struct profil_record *record)
{
	if ((record->flags & (PROFIL_RECORD_SYSTEM | PROFIL_RECORD_MAPPED)) != PROFIL_RECORD_MAPPED)
		return false;
	if (record->flags & PROFIL_RECORD_FILE)
		return !strncmp(record->path, "/memfd:", 7);
	return strcmp(record->path, "[vdso]") && strcmp(record->path, "[vsyscall]");
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
	if (is_generated(record))
		functions_address(stream->functions, sample.thread, record);
	format_write_sample(stream->writer, &sample);
}
