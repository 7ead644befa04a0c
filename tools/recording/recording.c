// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See recording.h. Samples with the same pc are added up while the file is read, so the memory use
 * depends on the number of different pcs, not on the duration of the recording.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

/* From this many samples on, samples are added up before their array is enlarged. */
#define MERGE_MIN 65536

struct recording *recording_new(void)
{
	return calloc(1, sizeof(struct recording));
}

/* Ignores all but the first call: a recorder writes only one such block. */
bool recording_add_meta(struct recording *recording, const struct format_meta *meta)
{
	const char *end = meta->args;
	char *args;

	if (recording->meta.args)
		return true;
	for (u32 i = 0; i < meta->nr_args; i++)
		end += strlen(end) + 1;
	args = malloc(end - meta->args + 1);
	if (!args)
		return false;
	memcpy(args, meta->args, end - meta->args);
	recording->meta = *meta;
	recording->meta.args = args;
	recording->meta.hostname = strdup(meta->hostname);
	recording->meta.release = strdup(meta->release);
	recording->meta.directory = strdup(meta->directory);
	return recording->meta.hostname && recording->meta.release && recording->meta.directory;
}

bool recording_add_file(struct recording *recording, const struct format_file *data)
{
	struct recording_file *file;

	if (!array_grow(&recording->files, recording->nr_files, sizeof(*file)))
		return false;
	file = &recording->files[recording->nr_files];
	*file = (struct recording_file){ .data = *data };
	file->data.path = strdup(data->path);
	if (!file->data.path)
		return false;
	recording->nr_files++;
	return true;
}

bool recording_add_process(struct recording *recording, const struct format_process *data)
{
	struct recording_process *process;

	if (!array_grow(&recording->processes, recording->nr_processes, sizeof(*process)))
		return false;
	process = &recording->processes[recording->nr_processes++];
	*process = (struct recording_process){ .data = *data };
	return true;
}

static int compare_raw(const void *a, const void *b)
{
	const struct format_sample *x = a, *y = b;

	return compare_u64(x->file, y->file) ?: compare_u64(x->offset, y->offset) ?:
	       compare_u64(x->process, y->process) ?: compare_u64(x->bias, y->bias);
}

static void merge_raw(struct recording *recording)
{
	struct format_sample *to = recording->raw, *end = to + recording->nr_raw;

	if (!recording->nr_raw)
		return;
	qsort(to, recording->nr_raw, sizeof(*to), compare_raw);
	for (struct format_sample *from = to + 1; from < end; from++) {
		if (compare_raw(to, from)) {
			*++to = *from;
			continue;
		}
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
	}
	recording->nr_raw = to + 1 - recording->raw;
}

/* Makes room by merging samples; if this does not free half of the array, by a larger array. */
static bool make_room_raw(struct recording *recording)
{
	size_t size = recording->size_raw ? 2 * recording->size_raw : 64;
	struct format_sample *raw;

	if (recording->nr_raw >= MERGE_MIN)
		merge_raw(recording);
	if (recording->nr_raw < recording->size_raw / 2)
		return true;
	raw = reallocarray(recording->raw, size, sizeof(*raw));
	if (!raw)
		return false;
	recording->raw = raw;
	recording->size_raw = size;
	return true;
}

bool recording_add_samples(struct recording *recording, const struct format_sample *samples,
			   size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (recording->nr_raw == recording->size_raw && !make_room_raw(recording))
			return false;
		recording->raw[recording->nr_raw++] = samples[i];
	}
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct format_file *x = &(*(struct recording_file *const *)a)->data;
	const struct format_file *y = &(*(struct recording_file *const *)b)->data;

	return strcmp(x->path, y->path) ?: compare_u64(x->ino, y->ino) ?:
	       compare_u64(x->generation, y->generation) ?: compare_u64(x->size, y->size) ?:
	       compare_u64(x->mtime, y->mtime) ?: compare_u64(x->major, y->major) ?:
	       compare_u64(x->minor, y->minor) ?: compare_u64(x->flags, y->flags) ?:
	       compare_u64(x->build_id_len, y->build_id_len) ?:
	       memcmp(x->build_id, y->build_id, sizeof(x->build_id));
}

static int compare_file_ids(const void *a, const void *b)
{
	const struct recording_file *x = a, *y = b;

	return compare_u64(x->data.id, y->data.id);
}

static bool match_files(struct recording *recording)
{
	size_t nr = recording->nr_files;
	struct recording_file **by_identity, *first = NULL;

	if (!nr)
		return true;
	qsort(recording->files, nr, sizeof(*recording->files), compare_file_ids);
	by_identity = calloc(nr, sizeof(*by_identity));
	if (!by_identity)
		return false;
	for (size_t i = 0; i < nr; i++)
		by_identity[i] = &recording->files[i];
	qsort(by_identity, nr, sizeof(*by_identity), compare_files);
	for (size_t i = 0; i < nr; i++) {
		if (!first || compare_files(&first, &by_identity[i]))
			first = by_identity[i];
		by_identity[i]->first = first;
	}
	free(by_identity);
	return true;
}

static int compare_process_ids(const void *a, const void *b)
{
	const struct recording_process *x = a, *y = b;

	return compare_u64(x->data.id, y->data.id);
}

static bool is_same_process(const struct format_process *x, const struct format_process *y)
{
	return x->space == y->space && x->pid == y->pid;
}

static bool is_main_thread(const struct format_process *process)
{
	return process->tid == 0 || process->tid == process->pid;
}

/*
 * Sorts by process. In a process, the main thread comes first. Of the entries for one thread, the
 * last one comes first.
 */
static int compare_processes(const void *a, const void *b)
{
	const struct format_process *x = &(*(struct recording_process *const *)a)->data;
	const struct format_process *y = &(*(struct recording_process *const *)b)->data;

	return compare_u64(x->space, y->space) ?: compare_u64(x->pid, y->pid) ?:
	       is_main_thread(y) - is_main_thread(x) ?: compare_u64(x->tid, y->tid) ?:
	       compare_u64(y->id, x->id);
}

static bool match_processes(struct recording *recording)
{
	size_t nr = recording->nr_processes;
	struct recording_process **sorted, *process = NULL, *thread = NULL;

	if (!nr)
		return true;
	qsort(recording->processes, nr, sizeof(*recording->processes), compare_process_ids);
	sorted = calloc(nr, sizeof(*sorted));
	if (!sorted)
		return false;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = &recording->processes[i];
	qsort(sorted, nr, sizeof(*sorted), compare_processes);
	for (size_t i = 0; i < nr; i++) {
		const struct format_process *data = &sorted[i]->data;

		if (!process || !is_same_process(&process->data, data)) {
			process = sorted[i];
			thread = sorted[i];
		} else if (thread->data.tid != data->tid) {
			thread = sorted[i];
		}
		sorted[i]->process = process;
		sorted[i]->thread = thread;
	}
	free(sorted);
	return true;
}

static struct recording_file *find_file(const struct recording *recording, u64 id)
{
	struct recording_file key = { .data.id = id }, *found;

	if (!id || !recording->nr_files)
		return NULL;
	found = bsearch(&key, recording->files, recording->nr_files, sizeof(key),
			compare_file_ids);
	return found ? found->first : NULL;
}

static struct recording_process *find_thread(const struct recording *recording, u64 id)
{
	struct recording_process key = { .data.id = id }, *found;

	if (!id || !recording->nr_processes)
		return NULL;
	found = bsearch(&key, recording->processes, recording->nr_processes, sizeof(key),
			compare_process_ids);
	return found ? found->thread : NULL;
}

static int compare_samples(const void *a, const void *b)
{
	const struct recording_sample *x = a, *y = b;

	return compare_u64((uintptr_t)x->file, (uintptr_t)y->file) ?:
	       compare_u64(x->offset, y->offset) ?:
	       compare_u64((uintptr_t)x->thread, (uintptr_t)y->thread);
}

static bool match_samples(struct recording *recording)
{
	recording->samples = calloc(recording->nr_raw + 1, sizeof(*recording->samples));
	if (!recording->samples)
		return false;
	for (size_t i = 0; i < recording->nr_raw; i++) {
		const struct format_sample *raw = &recording->raw[i];

		recording->samples[i] = (struct recording_sample){
			.file = find_file(recording, raw->file),
			.thread = find_thread(recording, raw->process),
			.offset = raw->offset,
			.bias = raw->bias,
			.user = raw->user,
			.system = raw->system,
			.cpu = -1,
		};
		recording->user = ticks_add(recording->user, raw->user);
		recording->system = ticks_add(recording->system, raw->system);
	}
	recording->nr_samples = recording->nr_raw;
	qsort(recording->samples, recording->nr_samples, sizeof(*recording->samples),
	      compare_samples);
	return true;
}

bool recording_finish(struct recording *recording)
{
	static const struct format_meta none = {
		.hostname = "", .release = "", .directory = "", .args = ""
	};
	bool done;

	merge_raw(recording);
	done = recording_add_meta(recording, &none) && match_files(recording) &&
	       match_processes(recording) && match_samples(recording);
	free(recording->raw);
	recording->raw = NULL;
	return done;
}

static bool read_blocks(struct recording *recording, struct format_reader *reader)
{
	struct format_block block;
	bool done = true;

	while (done && format_next(reader, &block) > 0) {
		switch (block.type) {
		case FORMAT_META:
			done = recording_add_meta(recording, &block.meta);
			break;
		case FORMAT_FILE:
			done = recording_add_file(recording, &block.file);
			break;
		case FORMAT_PROCESS:
			done = recording_add_process(recording, &block.process);
			break;
		case FORMAT_SAMPLES:
			done = recording_add_samples(recording, block.samples, block.nr_samples);
			break;
		case FORMAT_STATS:
			recording->account = block.account;
			break;
		case FORMAT_END:
			recording->end = block.end;
			recording->ended = true;
			break;
		}
	}
	recording->error = format_error(reader);
	recording->error_offset = format_offset(reader);
	recording->busy = format_busy(reader);
	recording->owner = format_owner(reader);
	return done;
}

struct recording *recording_read(const char *path, const char **error)
{
	struct recording *recording;
	struct format_reader *reader;

	reader = format_open(path, error);
	if (!reader)
		return NULL;
	recording = recording_new();
	if (!recording || !read_blocks(recording, reader) || !recording_finish(recording)) {
		*error = strerror(ENOMEM);
		recording_free(recording);
		recording = NULL;
	}
	format_free(reader);
	return recording;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	if (recording->meta.args) {
		free((char *)recording->meta.hostname);
		free((char *)recording->meta.release);
		free((char *)recording->meta.directory);
		free((char *)recording->meta.args);
	}
	for (size_t i = 0; i < recording->nr_files; i++)
		free((char *)recording->files[i].data.path);
	free(recording->files);
	free(recording->processes);
	free(recording->samples);
	free(recording->raw);
	free(recording);
}
