// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a recording. What is kept grows with the number of pcs that were seen, not with how long it
 * took: samples are added up as they come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

/* Samples are added up when there are so many, and whenever room for them would have to grow. */
#define MERGE_MIN 65536

/* What samples look like before numbers become pointers. */
struct raw {
	struct format_sample *samples;
	size_t nr;
	size_t size;
};

static int compare(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

/* Room for one more. */
static bool grow(void *array, size_t nr, size_t *size, size_t each)
{
	void *old, *new;

	if (nr < *size)
		return true;
	memcpy(&old, array, sizeof(old));
	new = reallocarray(old, nr ? 2 * nr : 64, each);
	if (!new)
		return false;
	memcpy(array, &new, sizeof(new));
	*size = nr ? 2 * nr : 64;
	return true;
}

static int compare_raw(const void *a, const void *b)
{
	const struct format_sample *x = a, *y = b;
	int order;

	order = compare(x->file, y->file);
	if (!order)
		order = compare(x->offset, y->offset);
	if (!order)
		order = compare(x->process, y->process);
	return order ? order : compare(x->bias, y->bias);
}

static void merge_raw(struct raw *raw)
{
	struct format_sample *to = raw->samples;

	if (!raw->nr)
		return;
	qsort(raw->samples, raw->nr, sizeof(*raw->samples), compare_raw);
	for (struct format_sample *from = to + 1; from < raw->samples + raw->nr; from++) {
		if (compare_raw(to, from)) {
			*++to = *from;
			continue;
		}
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
	}
	raw->nr = to + 1 - raw->samples;
}

static bool add_raw(struct raw *raw, const struct format_sample *samples, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (raw->nr == raw->size) {
			if (raw->nr >= MERGE_MIN)
				merge_raw(raw);
			/* If that was of little use, not soon again. */
			if (raw->nr >= raw->size / 2 &&
			    !grow(&raw->samples, raw->size, &raw->size, sizeof(*raw->samples)))
				return false;
		}
		raw->samples[raw->nr++] = samples[i];
	}
	return true;
}

static bool copy_string(const char **string)
{
	*string = strdup(*string);
	return *string;
}

/* A second one, which no recorder writes, changes nothing. */
static bool add_meta(struct recording *recording, const struct format_meta *meta)
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
	return copy_string(&recording->meta.hostname) & copy_string(&recording->meta.release) &
	       copy_string(&recording->meta.directory);
}

static bool add_file(struct recording *recording, const struct format_file *data, size_t *size)
{
	struct recording_file *file;

	if (!grow(&recording->files, recording->nr_files, size, sizeof(*file)))
		return false;
	file = &recording->files[recording->nr_files];
	*file = (struct recording_file){ .data = *data };
	if (!copy_string(&file->data.path))
		return false;
	recording->nr_files++;
	return true;
}

static bool add_process(struct recording *recording, const struct format_process *data,
			size_t *size)
{
	struct recording_process *process;

	if (!grow(&recording->processes, recording->nr_processes, size, sizeof(*process)))
		return false;
	process = &recording->processes[recording->nr_processes++];
	*process = (struct recording_process){ .data = *data };
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct format_file *x = &(*(struct recording_file *const *)a)->data;
	const struct format_file *y = &(*(struct recording_file *const *)b)->data;
	int order;

	order = strcmp(x->path, y->path);
	if (!order)
		order = compare(x->ino, y->ino);
	if (!order)
		order = compare(x->generation, y->generation);
	if (!order)
		order = compare(x->size, y->size);
	if (!order)
		order = compare(x->mtime, y->mtime);
	if (!order)
		order = compare((u64)x->major << 32 | x->minor, (u64)y->major << 32 | y->minor);
	if (!order)
		order = compare(x->flags, y->flags);
	if (!order)
		order = compare(x->build_id_len, y->build_id_len);
	return order ? order : memcmp(x->build_id, y->build_id, sizeof(x->build_id));
}

static int compare_file_ids(const void *a, const void *b)
{
	const struct recording_file *x = a, *y = b;

	return compare(x->data.id, y->data.id);
}

/* Whoever has the same file comes after the first of them. */
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

	return compare(x->data.id, y->data.id);
}

static bool same_process(const struct format_process *x, const struct format_process *y)
{
	return x->space == y->space && x->pid == y->pid;
}

static bool is_main(const struct format_process *process)
{
	return process->tid == 0 || process->tid == process->pid;
}

/* Processes together, main threads first, and what they were told to be called last. */
static int compare_processes(const void *a, const void *b)
{
	const struct format_process *x = &(*(struct recording_process *const *)a)->data;
	const struct format_process *y = &(*(struct recording_process *const *)b)->data;
	int order;

	order = compare(x->space, y->space);
	if (!order)
		order = compare(x->pid, y->pid);
	if (!order)
		order = is_main(y) - is_main(x);
	if (!order)
		order = compare(x->tid, y->tid);
	return order ? order : compare(y->id, x->id);
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

		if (!process || !same_process(&process->data, data)) {
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
	found = bsearch(&key, recording->files, recording->nr_files, sizeof(key), compare_file_ids);
	return found ? found->first : NULL;
}

static struct recording_process *find_process(const struct recording *recording, u64 id)
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
	int order;

	order = compare((uintptr_t)x->file, (uintptr_t)y->file);
	if (!order)
		order = compare(x->offset, y->offset);
	return order ? order : compare((uintptr_t)x->process, (uintptr_t)y->process);
}

static bool match_samples(struct recording *recording, const struct raw *raw)
{
	recording->samples = calloc(raw->nr ? raw->nr : 1, sizeof(*recording->samples));
	if (!recording->samples)
		return false;
	for (size_t i = 0; i < raw->nr; i++) {
		const struct format_sample *sample = &raw->samples[i];

		recording->samples[i] = (struct recording_sample){
			.file = find_file(recording, sample->file),
			.process = find_process(recording, sample->process),
			.offset = sample->offset,
			.bias = sample->bias,
			.user = sample->user,
			.system = sample->system,
		};
		recording->user = ticks_add(recording->user, sample->user);
		recording->system = ticks_add(recording->system, sample->system);
	}
	recording->nr_samples = raw->nr;
	qsort(recording->samples, raw->nr, sizeof(*recording->samples), compare_samples);
	return true;
}

/* What the file did not tell. */
static bool complete(struct recording *recording)
{
	static const struct format_meta none = {
		.hostname = "", .release = "", .directory = "", .args = ""
	};

	return recording->meta.args || add_meta(recording, &none);
}

static bool read_all(struct recording *recording, struct format_reader *reader, struct raw *raw)
{
	size_t files_size = 0, processes_size = 0;
	struct format_block block;
	bool fine = true;

	while (fine && format_next(reader, &block) > 0) {
		switch (block.type) {
		case FORMAT_META:
			fine = add_meta(recording, &block.meta);
			break;
		case FORMAT_FILE:
			fine = add_file(recording, &block.file, &files_size);
			break;
		case FORMAT_PROCESS:
			fine = add_process(recording, &block.process, &processes_size);
			break;
		case FORMAT_SAMPLES:
			fine = add_raw(raw, block.samples, block.nr_samples);
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
	merge_raw(raw);
	return fine && complete(recording) && match_files(recording) &&
	       match_processes(recording) && match_samples(recording, raw);
}

struct recording *recording_read(const char *path, const char **error)
{
	struct recording *recording = NULL;
	struct format_reader *reader;
	struct raw raw = {};

	reader = format_open(path, error);
	if (!reader)
		return NULL;
	recording = calloc(1, sizeof(*recording));
	if (!recording || !read_all(recording, reader, &raw)) {
		*error = strerror(ENOMEM);
		recording_free(recording);
		recording = NULL;
	}
	free(raw.samples);
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
	free(recording);
}
