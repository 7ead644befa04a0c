// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See entries.h: mapped files.
 *
 * A record has the identity of the file that was mapped at the tick. The recorder opens each file
 * once, at its first record, to read its build-id. If the file has been deleted or replaced by
 * then, or may not be read, the build-id stays unknown, and the recording says why.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "recording/entries.h"
#include "recording/spaces.h"
#include "recording/tables.h"
#include "symbols/files.h"

_Static_assert(BUILD_ID_MAX == FORMAT_BUILD_ID_MAX, "the recording has whole build-ids");

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
 * Returns true if nobody has changed the file since the tick: a new file may have the inode number
 * of one that was removed. The time of a file that another machine has written, or of one from
 * before the clock was set back, can be in the future. It tells nothing.
 */
static bool is_unchanged(const struct stat *st, const struct profil_record *record)
{
	const u64 age = clock_ns(CLOCK_MONOTONIC) - record->time, now = clock_ns(CLOCK_REALTIME);
	const u64 changed = time_ns(st->st_ctim);

	return changed <= now - age || changed > now;
}

/*
 * Opens @path if it is the file of the record. @is_mapping: @path leads to what is mapped now,
 * which has no other identity. Otherwise returns -1, and in *@reason one of FORMAT_FILE_*.
 */
static int open_same(const char *path, const struct profil_record *record, bool is_mapping,
		     struct stat *st, u32 *reason)
{
	int fd = file_open(-1, path, 0);

	if (fd < 0) {
		*reason = errno == EACCES || errno == EPERM ? FORMAT_FILE_DENIED : FORMAT_FILE_GONE;
		return -1;
	}
	if (!fstat(fd, st) && (is_mapping || is_unchanged(st, record)) &&
	    ((st->st_ino == record->ino &&
	      st->st_dev == makedev(record->major, record->minor)) || is_mapped_as(fd, record)))
		return fd;
	*reason = FORMAT_FILE_OTHER;
	close(fd);
	return -1;
}

/*
 * The process may have another mount namespace, in which the path leads to another file. So if the
 * path leads to another file here, this tries the path below the root directory of the process. A
 * file that was removed has no path: the links in /proc lead to it. Those of map_files need a
 * capability.
 */
int mapping_open(const struct profil_record *record, struct stat *st, u32 *reason)
{
	u32 others;
	char *path;
	int fd = -1;

	*reason = FORMAT_FILE_GONE;
	for (int i = 0; fd < 0 && i < 4 && record->path[0] == '/'; i++) {
		path = i == 0 ? xstrdup(record->path) :
		       i == 1 ? xasprintf("/proc/%d/root%s", record->pid, record->path) :
		       i == 2 ? xasprintf("/proc/%d/exe", record->pid) :
				xasprintf("/proc/%d/map_files/%llx-%llx", record->pid,
					  record->start, record->end);
		fd = open_same(path, record, i >= 2, st, i == 0 ? reason : &others);
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
		FORMAT_FILE, record->ino, 0, hash_text(file.path), device, true,
	};
	const u64 key[KEY_WORDS] = {
		FORMAT_FILE, record->ino, inode_bits(record), hash_text(file.path),
	};
	/* The file with its generation ignored, for records that lack it. */
	struct entry *any = entry_get(stream->files, any_key);
	struct entry *entry = is_exact ? entry_get(stream->files, key) : any;
	struct stat st;
	u32 reason;
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
	fd = is_file ? mapping_open(record, &st, &reason) : -1;
	if (is_file && fd < 0)
		file.flags |= reason;
	if (fd >= 0) {
		file.size = st.st_size;
		file.mtime = time_ns(st.st_mtim);
		file.build_id_len = buildid_of_fd(fd, file.build_id);
	}
	if (is_file)
		tables_add_mapped(stream->tables, record, fd);
	entry->source = functions_file(stream->functions, file.id, fd);
	any->id = entry->id;
	any->source = entry->source;
	any->is_exact = is_exact;
	format_write(stream->writer, FORMAT_FILE, &file);
	return entry;
}

const struct entry *stream_mapping(struct stream *stream, const struct profil_record *record)
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

bool record_is_generated(const struct profil_record *record)
{
	if (!(record->flags & PROFIL_RECORD_MAPPED))
		return false;
	if (record->flags & PROFIL_RECORD_FILE)
		return !strncmp(record->path, "/memfd:", 7);
	return strcmp(record->path, "[vdso]") && strcmp(record->path, "[vsyscall]");
}
