// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See recording.h. Ticks of a thread with the same pc and call are added up while the file is read,
 * so the memory use depends on the number of different pcs, not on the duration of the recording.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "recording/recording.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* An array of this size or more is enlarged only after its equal ticks were added up. */
#define MERGE_MIN 65536

/* The shortest interval into which time is divided */
#define INTERVAL_MIN_NS 1000000

struct recording *recording_new(void)
{
	struct recording *recording = xcalloc(1, sizeof(*recording));

	recording->meta = (struct format_meta){ .hostname = "", .release = "", .command = "" };
	obstack_init(&recording->strings);
	return recording;
}

void recording_free(struct recording *recording)
{
	obstack_free(&recording->strings, NULL);
	free(recording->files);
	free(recording->threads);
	free(recording->mappings);
	free(recording->stacks);
	free(recording->calls);
	free(recording->samples);
	free(recording->symbols);
	free(recording->nameless);
	free(recording->detached);
	free(recording);
}

/* Replaces a string by a copy. */
static void copy_string(struct recording *recording, const char **string)
{
	*string = obstack_copy0(&recording->strings, *string, strlen(*string));
}

/* Adds a copy of @data to an array. Returns the copy. */
static void *add_entry(void *array, size_t *nr, const void *data, size_t size)
{
	char *entries;

	if (!array_grow(array, *nr, size))
		xmalloc_failed(size);
	memcpy(&entries, array, sizeof(entries));
	return memcpy(entries + (*nr)++ * size, data, size);
}

static void copy_frame(struct recording_frame *to, const struct format_frame *frame)
{
	*to = (struct recording_frame){
		.offset = frame->offset, .mapping_id = frame->mapping, .flags = frame->flags,
	};
}

static void add_stack(struct recording *recording, const struct format_stack *data)
{
	struct recording_stack *stack;

	if (!recording->filter.keep_stacks)
		return;
	stack = obstack_alloc(&recording->strings,
			      sizeof(*stack) + data->nr * sizeof(*stack->frames));
	*stack = (struct recording_stack){ .id = data->id, .end = data->end, .nr = data->nr };
	for (size_t i = 0; i < 2; i++)
		copy_frame(&stack->innermost[i], &data->innermost[i]);
	for (size_t i = 0; i < stack->nr; i++)
		copy_frame(&stack->frames[i], &data->frames[i]);
	add_entry(&recording->stacks, &recording->nr_stacks, &stack, sizeof(stack));
}

void recording_add(struct recording *recording, const struct format_block *block)
{
	const struct recording_file new_file = { .data = block->file };
	const struct recording_thread new_thread = { .data = block->thread };
	struct recording_file *file;
	struct format_detached *detached;
	struct format_symbol *symbol;
	struct format_call *call;

	switch (block->type) {
	case FORMAT_META:
		recording->meta = block->meta;
		copy_string(recording, &recording->meta.hostname);
		copy_string(recording, &recording->meta.release);
		copy_string(recording, &recording->meta.command);
		recording->has_meta = true;
		break;
	case FORMAT_FILE:
		file = add_entry(&recording->files, &recording->nr_files, &new_file, sizeof(*file));
		copy_string(recording, &file->data.path);
		break;
	case FORMAT_THREAD:
		add_entry(&recording->threads, &recording->nr_threads, &new_thread,
			  sizeof(new_thread));
		break;
	case FORMAT_MAPPING:
		add_entry(&recording->mappings, &recording->nr_mappings, &block->mapping,
			  sizeof(block->mapping));
		break;
	case FORMAT_STACK:
		add_stack(recording, &block->stack);
		break;
	case FORMAT_CALL:
		call = add_entry(&recording->calls, &recording->nr_calls, &block->call,
				 sizeof(*call));
		copy_string(recording, &call->name);
		break;
	case FORMAT_SYMBOL:
		symbol = add_entry(&recording->symbols, &recording->nr_symbols, &block->symbol,
				   sizeof(*symbol));
		copy_string(recording, &symbol->name);
		break;
	case FORMAT_NAMELESS:
		add_entry(&recording->nameless, &recording->nr_nameless, &block->nameless,
			  sizeof(block->nameless));
		break;
	case FORMAT_DETACHED:
		detached = add_entry(&recording->detached, &recording->nr_detached,
				     &block->detached, sizeof(*detached));
		copy_string(recording, &detached->path);
		break;
	case FORMAT_STATS:
		recording->account = block->account;
		recording->has_account = true;
		break;
	case FORMAT_END:
		recording->end = block->end;
		recording->ended = true;
		break;
	case FORMAT_SAMPLES:
		break;
	}
}

/* ---- samples ---- */

static int compare_raw(const void *a, const void *b)
{
	const struct recording_sample *x = a, *y = b;

	return compare_u64(x->mapping_id, y->mapping_id) ?: compare_u64(x->offset, y->offset) ?:
	       compare_u64(x->thread_id, y->thread_id) ?: compare_u64(x->flags, y->flags) ?:
	       compare_u64(x->cpu, y->cpu) ?: compare_u64(x->second, y->second) ?:
	       compare_u64(x->interval, y->interval) ?: compare_u64(x->stack_id, y->stack_id) ?:
	       compare_u64(x->call_id, y->call_id);
}

static void merge_samples(struct recording *recording)
{
	struct recording_sample *to = recording->samples, *end = to + recording->nr_samples;

	if (!recording->nr_samples)
		return;
	qsort(to, recording->nr_samples, sizeof(*to), compare_raw);
	for (struct recording_sample *from = to + 1; from < end; from++) {
		if (compare_raw(to, from)) {
			*++to = *from;
			continue;
		}
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
		to->nr = ticks_add(to->nr, from->nr);
		to->squares += from->squares;
	}
	recording->nr_samples = to + 1 - recording->samples;
}

/* Makes room by merging samples. If this frees less than half of the array, enlarges it. */
static void make_room(struct recording *recording)
{
	if (recording->nr_samples >= MERGE_MIN)
		merge_samples(recording);
	if (recording->nr_samples && recording->nr_samples < recording->size_samples / 2)
		return;
	recording->size_samples = recording->size_samples ? 2 * recording->size_samples : 64;
	recording->samples = xrealloc(recording->samples,
				      recording->size_samples * sizeof(*recording->samples));
}

void recording_add_sample(struct recording *recording, const struct recording_sample *sample)
{
	if (recording->nr_samples == recording->size_samples)
		make_room(recording);
	recording->samples[recording->nr_samples++] = *sample;
}

/*
 * Returns the interval of a tick, @time ns after the start of the first interval. The end of the
 * recording is not known yet: if there are too many intervals, they are made twice as long.
 */
static u32 find_interval(struct recording *recording, u64 time)
{
	if (!recording->filter.keep_times)
		return 0;
	while (time / recording->interval_ns >= RECORDING_INTERVALS_MAX) {
		recording->interval_ns *= 2;
		for (size_t i = 0; i < recording->nr_samples; i++)
			recording->samples[i].interval /= 2;
	}
	return time / recording->interval_ns;
}

static void add_tick(struct recording *recording, const struct format_sample *tick)
{
	const struct recording_filter *filter = &recording->filter;
	const u64 start = recording->meta.start_monotonic;
	const u64 time = tick->time > start ? tick->time - start : 0;
	const bool is_system = tick->flags & FORMAT_SAMPLE_SYSTEM;
	struct recording_sample sample = {
		.offset = tick->offset,
		.user = is_system ? 0 : tick->periods,
		.system = is_system ? tick->periods : 0,
		.nr = 1,
		.squares = (double)tick->periods * tick->periods,
		.cpu = filter->keep_cpus ? (s32)tick->cpu : -1,
		.flags = tick->flags,
		.second = filter->keep_seconds ? time / NS_PER_S : 0,
		.thread_id = tick->thread,
		.mapping_id = tick->mapping,
		.stack_id = filter->keep_stacks ? tick->stack : 0,
		.call_id = tick->call,
	};

	recording->periods = ticks_add(recording->periods, tick->periods);
	if (time < filter->from || (filter->to && time >= filter->to) ||
	    (filter->cpu >= 0 && tick->cpu != (u32)filter->cpu)) {
		recording->filtered++;
		return;
	}
	sample.interval = find_interval(recording, time - filter->from);
	recording_add_sample(recording, &sample);
}

/* ---- from ids to pointers ---- */

/* Compares by the id, which is the first member of all structures that have one. */
static int compare_ids(const void *a, const void *b)
{
	u32 x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return compare_u64(x, y);
}

/* These functions do nothing if the array is empty. */
static void sort(void *array, size_t nr, size_t size, int (*compare)(const void *, const void *))
{
	if (nr)
		qsort(array, nr, size, compare);
}

static void *find_id(void *array, size_t nr, size_t size, u32 id)
{
	return nr ? bsearch(&id, array, nr, size, compare_ids) : NULL;
}

static struct recording_thread *find_thread(const struct recording *recording, u32 id)
{
	return find_id(recording->threads, recording->nr_threads, sizeof(*recording->threads), id);
}

static struct recording_file *find_file(const struct recording *recording, u32 id)
{
	return find_id(recording->files, recording->nr_files, sizeof(*recording->files), id);
}

static bool is_main_thread(const struct format_thread *thread)
{
	return thread->tid == thread->pid;
}

/*
 * Sorts by process. In a process, the main thread comes first. Of the entries for one thread, the
 * last one comes first.
 */
static int compare_threads(const void *a, const void *b)
{
	const struct format_thread *x = &(*(struct recording_thread *const *)a)->data;
	const struct format_thread *y = &(*(struct recording_thread *const *)b)->data;

	return compare_u64(x->space, y->space) ?: compare_u64(x->pid, y->pid) ?:
	       is_main_thread(y) - is_main_thread(x) ?: compare_u64(x->tid, y->tid) ?:
	       compare_u64(y->id, x->id);
}

static void match_threads(struct recording *recording)
{
	const size_t nr = recording->nr_threads;
	struct recording_thread **sorted = xcalloc(nr + 1, sizeof(*sorted));
	struct recording_thread *process = NULL, *thread = NULL;

	for (size_t i = 0; i < nr; i++)
		sorted[i] = &recording->threads[i];
	sort(sorted, nr, sizeof(*sorted), compare_threads);
	for (size_t i = 0; i < nr; i++) {
		const struct format_thread *data = &sorted[i]->data;
		const bool is_new = !process || process->data.space != data->space ||
				    process->data.pid != data->pid;

		if (is_new)
			process = sorted[i];
		if (is_new || thread->data.tid != data->tid)
			thread = sorted[i];
		sorted[i]->process = process;
		sorted[i]->thread = thread;
	}
	free(sorted);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct format_symbol *x = a, *y = b;

	return compare_u64(x->file, y->file) ?: compare_u64(x->start, y->start) ?:
	       compare_u64(x->end, y->end);
}

/* Returns the process whose thread is in format_symbol.file, or NULL. */
static struct recording_thread *find_process(const struct recording *recording, u32 file)
{
	struct recording_thread *thread = NULL;

	if (file & FORMAT_SYMBOL_JIT)
		thread = find_thread(recording, file & ~FORMAT_SYMBOL_JIT);
	return thread ? thread->process : NULL;
}

static void match_symbols(struct recording *recording)
{
	struct format_symbol *symbols = recording->symbols;
	struct recording_thread *process;
	struct recording_file *file;

	/* Several threads may be of the same process. */
	for (size_t i = 0; i < recording->nr_symbols; i++) {
		process = find_process(recording, symbols[i].file);
		if (process)
			symbols[i].file = process->data.id | FORMAT_SYMBOL_JIT;
	}
	sort(symbols, recording->nr_symbols, sizeof(*symbols), compare_symbols);
	for (size_t i = 0; i < recording->nr_symbols; i++) {
		process = find_process(recording, symbols[i].file);
		file = find_file(recording, symbols[i].file);
		if (process && !process->nr_symbols++)
			process->symbols = &symbols[i];
		else if (!process && file && !file->nr_symbols++)
			file->symbols = &symbols[i];
	}
}

static void match_nameless(struct recording *recording)
{
	struct recording_thread *thread;

	for (size_t i = 0; i < recording->nr_nameless; i++) {
		thread = find_thread(recording, recording->nameless[i].thread);
		if (thread)
			thread->process->nameless = &recording->nameless[i];
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct recording_sample *x = a, *y = b;

	return compare_u64((uintptr_t)x->file, (uintptr_t)y->file) ?:
	       compare_u64(x->offset, y->offset) ?: compare_u64(x->stack_id, y->stack_id) ?:
	       compare_u64(x->call_id, y->call_id) ?:
	       compare_u64((uintptr_t)x->thread, (uintptr_t)y->thread);
}

/* Finds the file of a place. @bias: see struct recording_sample. */
static struct recording_file *match_mapping(const struct recording *recording, u32 id, u64 *bias)
{
	const struct format_mapping *mapping = find_id(recording->mappings, recording->nr_mappings,
						       sizeof(*mapping), id);
	struct recording_file *file = mapping ? find_file(recording, mapping->file) : NULL;

	if (mapping)
		*bias = file && file->data.flags & FORMAT_FILE_NONE ? mapping->start :
								      mapping->bias;
	return file;
}

static void match_frame(const struct recording *recording, struct recording_frame *frame)
{
	frame->file = match_mapping(recording, frame->mapping_id, &frame->bias);
}

static void match_stack(const struct recording *recording, struct recording_stack *stack)
{
	for (size_t i = 0; i < 2; i++)
		match_frame(recording, &stack->innermost[i]);
	for (size_t i = 0; i < stack->nr; i++)
		match_frame(recording, &stack->frames[i]);
}

static int compare_stacks(const void *a, const void *b)
{
	const struct recording_stack *const *x = a, *const *y = b;

	return compare_u64((*x)->id, (*y)->id);
}

static const struct recording_stack *find_stack(const struct recording *recording, u32 id)
{
	const struct recording_stack *key = &(struct recording_stack){ .id = id };
	struct recording_stack **found = NULL;

	if (id && recording->nr_stacks)
		found = bsearch(&key, recording->stacks, recording->nr_stacks, sizeof(key),
				compare_stacks);
	return found ? *found : NULL;
}

static void match_sample(struct recording *recording, struct recording_sample *sample)
{
	sample->thread = find_thread(recording, sample->thread_id);
	sample->file = match_mapping(recording, sample->mapping_id, &sample->bias);
	sample->stack = find_stack(recording, sample->stack_id);
	sample->call = find_id(recording->calls, recording->nr_calls, sizeof(*sample->call),
			       sample->call_id);
	recording->nr = ticks_add(recording->nr, sample->nr);
}

void recording_finish(struct recording *recording)
{
	sort(recording->files, recording->nr_files, sizeof(*recording->files), compare_ids);
	sort(recording->threads, recording->nr_threads, sizeof(*recording->threads), compare_ids);
	sort(recording->mappings, recording->nr_mappings, sizeof(*recording->mappings),
	     compare_ids);
	sort(recording->calls, recording->nr_calls, sizeof(*recording->calls), compare_ids);
	match_threads(recording);
	match_symbols(recording);
	match_nameless(recording);
	sort(recording->stacks, recording->nr_stacks, sizeof(*recording->stacks), compare_stacks);
	for (size_t i = 0; i < recording->nr_stacks; i++)
		match_stack(recording, recording->stacks[i]);
	merge_samples(recording);
	for (size_t i = 0; i < recording->nr_samples; i++)
		match_sample(recording, &recording->samples[i]);
	sort(recording->samples, recording->nr_samples, sizeof(*recording->samples),
	     compare_samples);
}

struct recording *recording_read(const char *path, const struct recording_filter *filter,
				 const char **error)
{
	struct format_reader *reader = format_open(path, error);

	return reader ? recording_load(reader, filter) : NULL;
}

struct recording *recording_load(struct format_reader *reader,
				 const struct recording_filter *filter)
{
	struct recording *recording = recording_new();
	struct format_block block;

	recording->busy = format_busy(reader);
	recording->filter = *filter;
	recording->interval_ns = INTERVAL_MIN_NS;
	while (format_next(reader, &block)) {
		for (size_t i = 0; i < block.nr_samples; i++)
			add_tick(recording, &block.samples[i]);
		recording_add(recording, &block);
	}
	recording->busy &= !recording->ended;
	/* The last block of a recorder that is still writing may be incomplete. */
	recording->error = recording->busy ? NULL : reader->error;
	recording->error_offset = reader->at;
	recording->skipped_bytes = reader->skipped;
	recording->nr_skips = reader->nr_skips;
	format_free(reader);
	recording_finish(recording);
	return recording;
}
