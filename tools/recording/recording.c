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
	struct data_sample *samples;
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
	const struct data_sample *x = a, *y = b;
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
	struct data_sample *to = raw->samples;

	if (!raw->nr)
		return;
	qsort(raw->samples, raw->nr, sizeof(*raw->samples), compare_raw);
	for (struct data_sample *from = to + 1; from < raw->samples + raw->nr; from++) {
		if (compare_raw(to, from)) {
			*++to = *from;
			continue;
		}
		to->user = profile_sum(to->user, from->user);
		to->system = profile_sum(to->system, from->system);
	}
	raw->nr = to + 1 - raw->samples;
}

static bool add_raw(struct raw *raw, const struct data_sample *samples, size_t nr)
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
static bool add_meta(struct profile *profile, const struct data_meta *meta)
{
	const char *end = meta->args;
	char *args;

	if (profile->meta.args)
		return true;
	for (u32 i = 0; i < meta->nr_args; i++)
		end += strlen(end) + 1;
	args = malloc(end - meta->args + 1);
	if (!args)
		return false;
	memcpy(args, meta->args, end - meta->args);
	profile->meta = *meta;
	profile->meta.args = args;
	return copy_string(&profile->meta.hostname) & copy_string(&profile->meta.release) &
	       copy_string(&profile->meta.directory);
}

static bool add_file(struct profile *profile, const struct data_file *data, size_t *size)
{
	struct profile_file *file;

	if (!grow(&profile->files, profile->nr_files, size, sizeof(*file)))
		return false;
	file = &profile->files[profile->nr_files];
	*file = (struct profile_file){ .data = *data };
	if (!copy_string(&file->data.path))
		return false;
	profile->nr_files++;
	return true;
}

static bool add_process(struct profile *profile, const struct data_process *data, size_t *size)
{
	if (!grow(&profile->processes, profile->nr_processes, size, sizeof(*profile->processes)))
		return false;
	profile->processes[profile->nr_processes++] = (struct profile_process){ .data = *data };
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct data_file *x = &(*(struct profile_file *const *)a)->data;
	const struct data_file *y = &(*(struct profile_file *const *)b)->data;
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
	const struct profile_file *x = a, *y = b;

	return compare(x->data.id, y->data.id);
}

/* Whoever has the same file comes after the first of them. */
static bool match_files(struct profile *profile)
{
	size_t nr = profile->nr_files;
	struct profile_file **by_identity, *first = NULL;

	if (!nr)
		return true;
	qsort(profile->files, nr, sizeof(*profile->files), compare_file_ids);
	by_identity = calloc(nr, sizeof(*by_identity));
	if (!by_identity)
		return false;
	for (size_t i = 0; i < nr; i++)
		by_identity[i] = &profile->files[i];
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
	const struct profile_process *x = a, *y = b;

	return compare(x->data.id, y->data.id);
}

static bool same_process(const struct data_process *x, const struct data_process *y)
{
	return x->space == y->space && x->pid == y->pid;
}

static bool is_main(const struct data_process *process)
{
	return process->tid == 0 || process->tid == process->pid;
}

/* Processes together, main threads first, and what they were told to be called last. */
static int compare_processes(const void *a, const void *b)
{
	const struct data_process *x = &(*(struct profile_process *const *)a)->data;
	const struct data_process *y = &(*(struct profile_process *const *)b)->data;
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

static bool match_processes(struct profile *profile)
{
	size_t nr = profile->nr_processes;
	struct profile_process **sorted, *process = NULL, *thread = NULL;

	if (!nr)
		return true;
	qsort(profile->processes, nr, sizeof(*profile->processes), compare_process_ids);
	sorted = calloc(nr, sizeof(*sorted));
	if (!sorted)
		return false;
	for (size_t i = 0; i < nr; i++)
		sorted[i] = &profile->processes[i];
	qsort(sorted, nr, sizeof(*sorted), compare_processes);
	for (size_t i = 0; i < nr; i++) {
		const struct data_process *data = &sorted[i]->data;

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

static struct profile_file *find_file(const struct profile *profile, u64 id)
{
	struct profile_file key = { .data.id = id }, *found;

	if (!id || !profile->nr_files)
		return NULL;
	found = bsearch(&key, profile->files, profile->nr_files, sizeof(key), compare_file_ids);
	return found ? found->first : NULL;
}

static struct profile_process *find_process(const struct profile *profile, u64 id)
{
	struct profile_process key = { .data.id = id }, *found;

	if (!id || !profile->nr_processes)
		return NULL;
	found = bsearch(&key, profile->processes, profile->nr_processes, sizeof(key),
			compare_process_ids);
	return found ? found->thread : NULL;
}

static int compare_samples(const void *a, const void *b)
{
	const struct profile_sample *x = a, *y = b;
	int order;

	order = compare((uintptr_t)x->file, (uintptr_t)y->file);
	if (!order)
		order = compare(x->offset, y->offset);
	return order ? order : compare((uintptr_t)x->process, (uintptr_t)y->process);
}

static bool match_samples(struct profile *profile, const struct raw *raw)
{
	profile->samples = calloc(raw->nr ? raw->nr : 1, sizeof(*profile->samples));
	if (!profile->samples)
		return false;
	for (size_t i = 0; i < raw->nr; i++) {
		const struct data_sample *sample = &raw->samples[i];

		profile->samples[i] = (struct profile_sample){
			.file = find_file(profile, sample->file),
			.process = find_process(profile, sample->process),
			.offset = sample->offset,
			.bias = sample->bias,
			.user = sample->user,
			.system = sample->system,
		};
		profile->user = profile_sum(profile->user, sample->user);
		profile->system = profile_sum(profile->system, sample->system);
	}
	profile->nr_samples = raw->nr;
	qsort(profile->samples, raw->nr, sizeof(*profile->samples), compare_samples);
	return true;
}

/* What the file did not tell. */
static bool complete(struct profile *profile)
{
	static const struct data_meta none = {
		.hostname = "", .release = "", .directory = "", .args = ""
	};

	return profile->meta.args || add_meta(profile, &none);
}

static bool read_all(struct profile *profile, struct data_reader *reader, struct raw *raw)
{
	size_t files_size = 0, processes_size = 0;
	struct data_block block;
	bool fine = true;

	while (fine && data_next(reader, &block) > 0) {
		switch (block.type) {
		case DATA_META:
			fine = add_meta(profile, &block.meta);
			break;
		case DATA_FILE:
			fine = add_file(profile, &block.file, &files_size);
			break;
		case DATA_PROCESS:
			fine = add_process(profile, &block.process, &processes_size);
			break;
		case DATA_SAMPLES:
			fine = add_raw(raw, block.samples, block.nr_samples);
			break;
		case DATA_STATS:
			profile->account = block.account;
			break;
		case DATA_END:
			profile->end = block.end;
			profile->ended = true;
			break;
		}
	}
	profile->error = data_error(reader);
	profile->error_offset = data_offset(reader);
	profile->busy = data_busy(reader);
	profile->owner = data_owner(reader);
	merge_raw(raw);
	return fine && complete(profile) && match_files(profile) && match_processes(profile) &&
	       match_samples(profile, raw);
}

struct profile *profile_read(const char *path, const char **error)
{
	struct profile *profile = NULL;
	struct data_reader *reader;
	struct raw raw = {};

	reader = data_open(path, error);
	if (!reader)
		return NULL;
	profile = calloc(1, sizeof(*profile));
	if (!profile || !read_all(profile, reader, &raw)) {
		*error = strerror(ENOMEM);
		profile_free(profile);
		profile = NULL;
	}
	free(raw.samples);
	data_free(reader);
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	if (profile->meta.args) {
		free((char *)profile->meta.hostname);
		free((char *)profile->meta.release);
		free((char *)profile->meta.directory);
		free((char *)profile->meta.args);
	}
	for (size_t i = 0; i < profile->nr_files; i++)
		free((char *)profile->files[i].data.path);
	free(profile->files);
	free(profile->processes);
	free(profile->samples);
	free(profile);
}
