// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See aggregate.h.
 *
 * A record has the identity of the file that was mapped at the tick. The recorder opens each file
 * once, at its first record, to read its build-id. If the file has been deleted or replaced by
 * then, the build-id stays unknown.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/aggregate.h"
#include "symbols/buildid.h"
#include "recording/hash.h"

/* Seconds without a tick until a process or file is freed. */
#define EXPIRY_S	60

struct process {
	struct hash_node node;
	u64 id;
	u64 space;
	s32 pid;
	s32 tid;
	char comm[16];
	u64 seen;
};

struct file {
	struct hash_node node;
	u64 id;
	u64 ino;
	u64 generation;
	u32 major;
	u32 minor;
	u64 seen;
	char path[];
};

/* A mapping in an address space. The hash of @node is that of the id of the space. */
struct mapping {
	struct hash_node node;
	u64 space;
	u64 start;
	u64 end;
	u64 file;
	u64 bias;
	bool by_offset;			/* offsets of samples are in the file */
	u64 seen;
};

struct sample {
	struct hash_node node;
	struct format_sample sample;
};

struct aggregate {
	struct format_writer *writer;
	int error;
	bool per_thread;
	u64 now;			/* at the last flush */
	u64 pruned;			/* time of the last prune */
	u64 last_process_id;
	u64 last_file_id;
	struct hash_table processes;
	struct hash_table files;
	struct hash_table mappings;
	struct hash_table samples;
};

struct aggregate *aggregate_create(struct format_writer *writer, bool per_thread, u64 now)
{
	struct aggregate *a = xcalloc(1, sizeof(*a));

	a->writer = writer;
	a->per_thread = per_thread;
	a->now = now;
	a->pruned = now;
	return a;
}

static void note_error(struct aggregate *a, int err)
{
	if (err && !a->error)
		a->error = errno;
}

/*
 * Is the name in the record that of the process? It is the name of the thread, and only the main
 * thread has the name of the process. With --per-thread each thread is written with its own name.
 */
static bool has_process_name(const struct aggregate *a, const struct profil_record *record)
{
	return a->per_thread || record->tid == record->pid || !record->pid;
}

static void process_name(const struct aggregate *a, const struct profil_record *record,
			 char comm[16])
{
	char path[64], name[16];
	ssize_t len;
	int fd;

	memcpy(comm, record->comm, 16);
	if (has_process_name(a, record))
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", record->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, name, sizeof(name));
	close(fd);
	if (len <= 1)
		return;
	memset(comm, 0, 16);
	memcpy(comm, name, len - 1);	/* without the newline */
}

static void process_write(struct aggregate *a, struct process *process,
			  const struct profil_record *record)
{
	struct format_process data = {
		.id = ++a->last_process_id,
		.space = process->space,
		.pid = process->pid,
		.tid = process->tid,
		.time = record->time,
	};

	process->id = data.id;
	process_name(a, record, process->comm);
	memcpy(data.comm, process->comm, sizeof(data.comm));
	note_error(a, format_write_process(a->writer, &data));
}

static struct process *process_get(struct aggregate *a, const struct profil_record *record)
{
	const s32 tid = a->per_thread ? record->tid : 0;
	const u64 key[] = { record->space, (u32)record->pid, (u32)tid };
	const u64 hash = hash_words(key, 3);
	struct hash_node *node;
	struct process *process;

	for (node = hash_find(&a->processes, hash); node; node = hash_find_next(node)) {
		process = container_of(node, struct process, node);
		if (process->space == record->space && process->pid == record->pid &&
		    process->tid == tid)
			return process;
	}
	process = xcalloc(1, sizeof(*process));
	process->space = record->space;
	process->pid = record->pid;
	process->tid = tid;
	hash_add(&a->processes, &process->node, hash);
	return process;
}

/* Returns the id of the process. Writes the process if it is new or has another name now. */
static u64 process_of(struct aggregate *a, const struct profil_record *record)
{
	struct process *process = process_get(a, record);

	process->seen = a->now;
	if (!process->id || (has_process_name(a, record) && strcmp(process->comm, record->comm)))
		process_write(a, process, record);
	return process->id;
}

/*
 * Does a mapping of @fd have the inode and device of the record? On overlayfs, these can differ
 * from the values that stat() returns, so this maps the file and looks in /proc/self/maps.
 */
static bool is_mapped_as(int fd, const struct profil_record *record)
{
	unsigned int major, minor;
	unsigned long start, ino;
	bool same = false;
	char *line = NULL;
	size_t size = 0;
	void *page;
	FILE *maps;

	page = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	maps = fopen("/proc/self/maps", "re");
	while (maps && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%lx-%*x %*s %*x %x:%x %lu", &start, &major, &minor, &ino) != 4 ||
		    start != (uintptr_t)page)
			continue;
		same = ino == record->ino && major == record->major && minor == record->minor;
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
	munmap(page, 1);
	return same;
}

/* Opens @path if it is a regular file and is the file of the record. Otherwise returns -1. */
static int open_same(const char *path, const struct profil_record *record, struct stat *st)
{
	char self[64];
	int fd, handle;

	handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return -1;
	fd = -1;
	if (!fstat(handle, st) && S_ISREG(st->st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	close(handle);
	if (fd >= 0 && st->st_ino != record->ino && !is_mapped_as(fd, record)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * Opens the mapped file of the record. The process may have another mount namespace, in which the
 * path leads to another file. So if the path leads to another file here, this tries the path below
 * the root directory of the process.
 */
static int open_mapped(const struct profil_record *record, struct stat *st)
{
	char *path;
	int fd;

	if (record->path[0] != '/')
		return -1;
	fd = open_same(record->path, record, st);
	if (fd >= 0)
		return fd;
	if (asprintf(&path, "/proc/%d/root%s", record->pid, record->path) < 0)
		return -1;
	fd = open_same(path, record, st);
	free(path);
	return fd;
}

static void file_write(struct aggregate *a, u64 id, const struct profil_record *record,
		       const char *path)
{
	struct format_file data = {
		.id = id,
		.ino = record->ino,
		.generation = record->generation,
		.major = record->major,
		.minor = record->minor,
		.path = path,
	};
	struct stat st;
	int fd;

	if (!(record->flags & PROFIL_RECORD_FILE)) {
		data.flags = FORMAT_FILE_NONE;
	} else {
		fd = open_mapped(record, &st);
		if (fd >= 0) {
			data.size = st.st_size;
			data.mtime = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
			data.build_id_len = buildid_of_fd(fd, data.build_id);
			close(fd);
		}
	}
	note_error(a, format_write_file(a->writer, &data));
}

static u64 file_of(struct aggregate *a, const struct profil_record *record)
{
	const u64 key[] = { record->ino, record->generation, record->major, record->minor };
	const char *path = record->path;
	struct hash_node *node;
	struct file *file;
	u64 hash;

	if (!*path)
		path = record->flags & PROFIL_RECORD_FILE ? "[file]" : "[anon]";
	hash = hash_string(hash_words(key, 4), path);
	for (node = hash_find(&a->files, hash); node; node = hash_find_next(node)) {
		file = container_of(node, struct file, node);
		if (file->ino == record->ino && file->generation == record->generation &&
		    file->major == record->major && file->minor == record->minor &&
		    !strcmp(file->path, path)) {
			file->seen = a->now;
			return file->id;
		}
	}

	file = xcalloc(1, sizeof(*file) + strlen(path) + 1);
	file->id = ++a->last_file_id;
	file->ino = record->ino;
	file->generation = record->generation;
	file->major = record->major;
	file->minor = record->minor;
	file->seen = a->now;
	strcpy(file->path, path);
	hash_add(&a->files, &file->node, hash);
	file_write(a, file->id, record, path);
	return file->id;
}

static struct mapping *mapping_at(const struct aggregate *a, u64 space, u64 pc)
{
	struct hash_node *node = hash_find(&a->mappings, hash_words(&space, 1));
	struct mapping *mapping, *found = NULL;

	for (; node; node = hash_find_next(node)) {
		mapping = container_of(node, struct mapping, node);
		if (mapping->space == space && mapping->start <= pc && pc < mapping->end &&
		    (!found || mapping->seen > found->seen))
			found = mapping;
	}
	return found;
}

static void mapping_update(struct aggregate *a, const struct profil_record *record,
			   const struct format_sample *sample)
{
	const u64 space = record->space;
	struct mapping *mapping = mapping_at(a, space, record->pc);

	if (!mapping || mapping->start != record->start || mapping->end != record->end ||
	    mapping->file != sample->file || mapping->bias != sample->bias) {
		mapping = xcalloc(1, sizeof(*mapping));
		mapping->space = space;
		mapping->start = record->start;
		mapping->end = record->end;
		mapping->file = sample->file;
		mapping->bias = sample->bias;
		mapping->by_offset = record->flags & PROFIL_RECORD_FILE;
		hash_add(&a->mappings, &mapping->node, hash_words(&space, 1));
	}
	mapping->seen = record->time;
}

bool aggregate_record(struct aggregate *a, const struct profil_record *record,
		      struct format_sample *sample)
{
	*sample = (struct format_sample){
		.process = process_of(a, record),
		.offset = record->pc,
	};
	if (!(record->flags & PROFIL_RECORD_MAPPED))
		return false;
	sample->file = file_of(a, record);
	if (record->flags & PROFIL_RECORD_FILE) {
		sample->offset = record->offset;
		sample->bias = record->pc - record->offset;
	} else if (*record->path) {
		/* Memory with a name, such as [vdso]: keep the address, and its start. */
		sample->bias = record->start;
	}
	mapping_update(a, record, sample);
	return true;
}

void aggregate_place(struct aggregate *a, u64 space, struct format_sample *sample)
{
	const struct mapping *mapping = mapping_at(a, space, sample->offset);

	if (!mapping)
		return;
	sample->file = mapping->file;
	sample->bias = mapping->bias;
	if (mapping->by_offset)
		sample->offset -= mapping->bias;
}

void aggregate_add(struct aggregate *a, const struct format_sample *more)
{
	const u64 key[] = { more->process, more->file, more->offset, more->bias };
	const u64 hash = hash_words(key, 4);
	struct hash_node *node;
	struct sample *sample;

	for (node = hash_find(&a->samples, hash); node; node = hash_find_next(node)) {
		struct format_sample *s = &container_of(node, struct sample, node)->sample;

		if (s->process == more->process && s->file == more->file &&
		    s->offset == more->offset && s->bias == more->bias) {
			s->user += more->user;
			s->system += more->system;
			return;
		}
	}
	sample = xcalloc(1, sizeof(*sample));
	sample->sample = *more;
	hash_add(&a->samples, &sample->node, hash);
}

bool aggregate_any(const struct aggregate *a)
{
	return a->samples.nr;
}

struct gathered {
	struct format_sample *samples;
	size_t nr;
};

static bool gather(struct hash_node *node, void *data)
{
	struct sample *sample = container_of(node, struct sample, node);
	struct gathered *gathered = data;

	gathered->samples[gathered->nr++] = sample->sample;
	free(sample);
	return true;
}

static bool drop_process(struct hash_node *node, void *data)
{
	struct process *process = container_of(node, struct process, node);
	const struct aggregate *a = data;

	if (a && a->now - process->seen < EXPIRY_S * NS_PER_S)
		return false;
	free(process);
	return true;
}

/* @mapping->seen is the time of a record, which may be later than the flush: do not subtract. */
static bool drop_mapping(struct hash_node *node, void *data)
{
	struct mapping *mapping = container_of(node, struct mapping, node);
	const struct aggregate *a = data;

	/* A mapping expires before its file does, so that its file id is always valid. */
	if (a && a->now < mapping->seen + EXPIRY_S / 2 * NS_PER_S)
		return false;
	free(mapping);
	return true;
}

static bool drop_file(struct hash_node *node, void *data)
{
	struct file *file = container_of(node, struct file, node);
	const struct aggregate *a = data;

	if (a && a->now - file->seen < EXPIRY_S * NS_PER_S)
		return false;
	free(file);
	return true;
}

static int compare_samples(const void *a, const void *b)
{
	const struct format_sample *l = a, *r = b;

	return compare_u64(l->process, r->process) ?: compare_u64(l->file, r->file) ?:
	       compare_u64(l->offset, r->offset);
}

int aggregate_flush(struct aggregate *a, u64 now)
{
	struct gathered gathered = {};

	if (a->samples.nr) {
		gathered.samples = xcalloc(a->samples.nr, sizeof(*gathered.samples));
		hash_prune(&a->samples, gather, &gathered);
		qsort(gathered.samples, gathered.nr, sizeof(*gathered.samples), compare_samples);
		note_error(a, format_write_samples(a->writer, gathered.samples, gathered.nr));
		free(gathered.samples);
	}
	a->now = now;
	if (now - a->pruned >= EXPIRY_S * NS_PER_S) {
		hash_prune(&a->processes, drop_process, a);
		hash_prune(&a->files, drop_file, a);
		hash_prune(&a->mappings, drop_mapping, a);
		a->pruned = now;
	}
	return aggregate_error(a);
}

int aggregate_error(const struct aggregate *a)
{
	if (!a->error)
		return 0;
	errno = a->error;
	return -1;
}

void aggregate_free(struct aggregate *a)
{
	struct gathered gathered = {};

	if (!a)
		return;
	gathered.samples = xcalloc(a->samples.nr + 1, sizeof(*gathered.samples));
	hash_free(&a->samples, gather, &gathered);
	free(gathered.samples);
	hash_free(&a->processes, drop_process, NULL);
	hash_free(&a->files, drop_file, NULL);
	hash_free(&a->mappings, drop_mapping, NULL);
	free(a);
}
