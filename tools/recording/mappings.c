// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See entries.h: mapped files.
 *
 * A record has the identity of the file that was mapped at the tick. The recorder opens each file
 * once, at its first record, to read its build-id. If the file has been deleted or replaced by
 * then, or may not be read, the build-id stays unknown, and the recording says why.
 */
#define _GNU_SOURCE
#include <elf.h>
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
#include "recording/maps.h"
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
		*reason = errno == EACCES || errno == EPERM ? FORMAT_FILE_DENIED :
			  errno == ENOENT || errno == ENOTDIR ? FORMAT_FILE_GONE :
			  errno == ENOEXEC ? FORMAT_FILE_OTHER : 0;
		return -1;
	}
	*reason = FORMAT_FILE_OTHER;
	if (!fstat(fd, st) &&
	    ((st->st_ino == record->ino &&
	      st->st_dev == makedev(record->major, record->minor)) || is_mapped_as(fd, record))) {
		if (is_mapping || is_unchanged(st, record))
			return fd;
		*reason = FORMAT_FILE_CHANGED;
	}
	close(fd);
	return -1;
}

/* Returns true if a FUSE server has the file system of the record. */
static bool is_on_fuse(const struct profil_record *record, pid_t pid)
{
	FILE *mounts = pid ? proc_open(pid, "mountinfo") : fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;
	const char *type;
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (!found && mounts && getline(&line, &size, mounts) > 0) {
		type = strstr(line, " - ");
		found = type && !strncmp(type + 3, "fuse", 4) &&
			sscanf(line, "%*s %*s %u:%u", &major, &minor) == 2 &&
			major == record->major && minor == record->minor;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* Returns why the file is not known whose path the module does not give. */
static u32 why_no_path(const struct profil_record *record)
{
	if (!*record->path)
		return 0;
	return is_on_fuse(record, record->pid) || is_on_fuse(record, 0) ? FORMAT_FILE_FUSE :
									  FORMAT_FILE_IRREGULAR;
}

/*
 * Returns why the file was not found. @here and @there: at its path, and at its path below the root
 * directory of the process.
 */
static u32 why_unknown(const struct profil_record *record, u32 here, u32 there)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", record->pid);
	if (stat(path, &st))
		return here ? here | FORMAT_FILE_ENDED : 0;
	strcat(path, "/root");
	/* In the namespace of the process, the path leads to what was executed. */
	if (!stat(path, &st))
		return there;
	return here == FORMAT_FILE_GONE ? FORMAT_FILE_DENIED : here;
}

/*
 * The process may have another mount namespace, in which the path leads to another file. So if the
 * path leads to another file here, this tries the path below the root directory of the process. A
 * file that was removed has no path: the links in /proc lead to it. Those of map_files need a
 * capability.
 */
int mapping_open(const struct profil_record *record, struct stat *st, u32 *reason)
{
	u32 reasons[4];
	char *path;
	int fd = -1;

	if (record->path[0] != '/') {
		*reason = why_no_path(record);
		return -1;
	}
	for (int i = 0; fd < 0 && i < 4; i++) {
		path = i == 0 ? xstrdup(record->path) :
		       i == 1 ? xasprintf("/proc/%d/root%s", record->pid, record->path) :
		       i == 2 ? xasprintf("/proc/%d/exe", record->pid) :
				xasprintf("/proc/%d/map_files/%llx-%llx", record->pid,
					  record->start, record->end);
		fd = open_same(path, record, i >= 2, st, &reasons[i]);
		free(path);
	}
	if (fd < 0)
		*reason = why_unknown(record, reasons[0], reasons[1]);
	return fd;
}

/* ---- generated code ---- */

/* Returns the address of the first byte of the mapped file; 0 if it is not mapped, or not known. */
static u64 find_first_byte(const struct profil_record *record)
{
	FILE *maps = NULL;
	struct profil_record *line;
	bool is_executable;
	u64 address = 0;
	char *text = NULL;
	size_t size = 0;

	if (record->offset == record->pc - record->start)
		return record->start;
	maps = proc_open(record->pid, "maps");
	while (!address && maps && getline(&text, &size, maps) > 0) {
		line = maps_parse(text, &is_executable);
		if (line && !line->offset && line->ino == record->ino &&
		    line->major == record->major && line->minor == record->minor)
			address = line->start;
		free(line);
	}
	free(text);
	if (maps)
		fclose(maps);
	return address;
}

/* Reads the first bytes of a mapped file that cannot be opened. */
static enum { IS_PROGRAM, IS_NO_PROGRAM, IS_UNKNOWN }
read_first_bytes(const struct profil_record *record)
{
	const u64 address = find_first_byte(record);
	char bytes[SELFMAG];

	if (!address || !maps_read_memory(record->pid, address, bytes, sizeof(bytes)))
		return IS_UNKNOWN;
	return memcmp(bytes, ELFMAG, SELFMAG) ? IS_NO_PROGRAM : IS_PROGRAM;
}

/*
 * Returns true if a JIT compiler may have made the code in the file, which @fd is, or which could
 * not be opened. Such a file is memory, or has been removed: then also sets *@flags.
 */
static bool is_generated(const struct profil_record *record, int fd, u32 *flags)
{
	const bool is_memory = maps_is_memory(record->path);
	const bool has_no_path = is_memory || maps_is_deleted(record->path);
	int machine, kind;

	if (fd >= 0 && elf_machine(fd, &machine))
		return false;
	if (!has_no_path)
		return fd >= 0;
	kind = fd >= 0 ? IS_NO_PROGRAM : read_first_bytes(record);
	if (kind == IS_NO_PROGRAM || (kind == IS_UNKNOWN && is_memory))
		*flags = FORMAT_FILE_GENERATED;
	return true;
}

static bool is_vdso(const struct profil_record *record)
{
	return !strcmp(record->path, "[vdso]") || !strcmp(record->path, "[vsyscall]");
}

/* ---- files and mappings ---- */

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
	const bool is_exact = record->generation != MAPS_NO_GENERATION;
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
		entry->is_generated = any->is_generated;
		return entry;
	}
	file.id = ++stream->last[FORMAT_FILE];
	entry->id = file.id;
	fd = is_file ? mapping_open(record, &st, &reason) : -1;
	if (is_file && fd < 0)
		file.flags |= reason;
	entry->is_generated = is_file ? is_generated(record, fd, &file.flags) : !is_vdso(record);
	if (fd >= 0) {
		file.size = st.st_size;
		file.mtime = time_ns(st.st_mtim);
		file.build_id_len = buildid_of_fd(fd, file.build_id);
	}
	if (is_file)
		tables_add_mapped(stream->tables, record, fd);
	if (fd >= 0 && entry->is_generated)
		close(fd);
	else
		entry->source = functions_file(stream->functions, file.id, fd);
	any->is_generated = entry->is_generated;
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
		entry->is_generated = file->is_generated;
		format_write(stream->writer, FORMAT_MAPPING, &mapping);
	}
	return entry;
}
