// SPDX-License-Identifier: GPL-2.0-or-later
/* See binaries.h. The names of functions come from the binary, or else from the recording. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/binaries.h"
#include "recording/capture.h"

/* The name of the binary in rows of functions that a process compiled at run time. */
#define JIT "[jit]"
/* The code that the kernel maps into each process, and the name of the functions there. */
#define VDSO "[vdso]"

const char binaries_unknown[] = PROFILE_UNKNOWN;

/* ---- labels ---- */

static int compare_labels(const void *a, const void *b)
{
	const struct binary_label *x = a, *y = b;

	return strcmp(basename(x->path), basename(y->path)) ?: strcmp(x->path, y->path);
}

void binaries_choose_labels(struct binary_label *labels, size_t nr)
{
	if (nr)
		qsort(labels, nr, sizeof(*labels), compare_labels);
	for (size_t i = 0, end; i < nr; i = end) {
		const char *name = basename(labels[i].path);
		bool whole = !*name;

		for (end = i; end < nr && !strcmp(basename(labels[end].path), name); end++)
			whole |= labels[end].whole || strcmp(labels[end].path, labels[i].path);
		for (size_t j = i; j < end; j++)
			*labels[j].label = whole ? labels[j].path : name;
	}
}

static void label_files(struct binaries *binaries)
{
	const struct recording *recording = binaries->recording;
	size_t nr = recording->nr_files;
	struct binary_label *labels = xcalloc(nr + 1, sizeof(*labels));

	for (size_t i = 0; i < nr; i++)
		labels[i] = (struct binary_label) {
			.path = recording->files[i].data.path,
			.whole = recording->files[i].data.flags & FORMAT_FILE_NONE,
			.label = &binaries->files[i].label,
		};
	binaries_choose_labels(labels, nr);
	free(labels);
}

/* ---- functions ---- */

/* Returns the address of a sample; 0 if it is not known. */
static u64 sample_address(const struct recording_sample *sample)
{
	if (!sample->file || sample->file->data.flags & FORMAT_FILE_NONE)
		return sample->offset;
	return sample->bias ? sample->offset + sample->bias : 0;
}

/* Returns the name of the function at @address, or NULL. The functions do not overlap. */
static const char *find_recorded(const struct format_symbol *functions, size_t nr, u64 address,
				 u64 *start)
{
	size_t i = nr ? array_index(&functions->start, nr, sizeof(*functions), address) : 0;

	/* If no function starts there, the one before it may contain the address. */
	if (i == nr || functions[i].start != address)
		i--;
	if (i >= nr || address >= functions[i].end || !*functions[i].name)
		return NULL;
	*start = functions[i].start;
	return functions[i].name;
}

/* Returns a name in brackets for a place without a function. */
static const char *name_place(const struct recording_sample *sample)
{
	if (sample->flags & FORMAT_SAMPLE_EXEC)
		return "[exec]";
	if (sample->flags & FORMAT_SAMPLE_EXIT)
		return "[exit]";
	if (sample->file && !strcmp(sample->file->data.path, CAPTURE_ELSEWHERE))
		return CAPTURE_ELSEWHERE;
	return PROFILE_NO_SYMBOL;
}

static struct recording_thread no_thread = {
	.data.comm = PROFILE_UNKNOWN,
	.thread = &no_thread,
	.process = &no_thread,
};

const struct recording_thread *binaries_thread(const struct recording_sample *sample)
{
	return sample->thread ?: &no_thread;
}

/* Finds the function in the recording, if the file has no name for it. Returns its name or NULL. */
static const char *find_in_recording(const struct recording_sample *sample, bool is_readable,
				     struct profile_function *function)
{
	const struct recording_thread *process = binaries_thread(sample)->process;
	const struct recording_file *file = sample->file;
	const u64 address = sample_address(sample);
	const char *name = NULL;

	if (file)
		name = find_recorded(file->symbols, file->nr_symbols, sample->offset,
				     &function->start);
	if (name || is_readable || !address)
		return name;
	/* A process makes functions at run time, and they can move. */
	name = find_recorded(process->symbols, process->nr_symbols, address, &function->start);
	if (name) {
		function->binary = JIT;
		function->label = JIT;
		function->start = 0;
	}
	return name;
}

/* Finds the name of the function at the place, which was read if @is_readable. */
static void find_name(const struct binaries *binaries, const struct recording_sample *sample,
		      bool is_readable, struct profile_function *function)
{
	const struct recording_file *file = sample->file;
	const char *name = function->linkage, *recorded;

	if (!name && file && !is_readable && !strcmp(file->data.path, VDSO))
		name = VDSO;
	/* The file may have been stripped since the recording. */
	if (!name || function_is_by_address(name)) {
		recorded = find_in_recording(sample, is_readable, function);
		name = recorded ?: name;
	}
	function->unnamed = !name;
	function->by_address = name && file && function_is_by_address(name);
	function->linkage = function->by_address ? NULL : name;
	function->name = function->by_address ?
			 symbols_by_address(binaries->symbols, file->data.path, name) :
			 name ? symbols_name(binaries->symbols, name) : name_place(sample);
}

void binaries_find(const struct binaries *binaries, const struct recording_sample *sample,
		   bool inlines, struct profile_function *function, struct place *place)
{
	const struct profile_binary *binary = sample->file ? binary_of(binaries, sample->file) :
					      NULL;
	const bool is_readable = binary && !binary->problem;
	const char *inlined = NULL;

	*function = (struct profile_function){
		.binary = binary ? sample->file->data.path : binaries_unknown,
		.label = binary ? binary->label : binaries_unknown,
	};
	*place = (struct place){ .where = sample->offset, .address = sample->offset };
	if (is_readable) {
		*place = *lookup_place(&binary->lookup, sample->offset);
		function->linkage = place->found.name;
		function->start = place->found.start;
		inlined = inlines ? place_inlined(place) : NULL;
	}
	if (inlined) {
		function->name = symbols_inlined(binaries->symbols, inlined);
		function->linkage = NULL;
		function->start = 0;
	} else {
		find_name(binaries, sample, is_readable, function);
	}
	if (sample->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT)) {
		function->binary = binaries->by_symbol ? binaries_thread(sample)->data.comm :
				   function->name;
		function->label = function->binary;
	}
}

/* ---- functions without names ---- */

/* Returns true if functions there have been made at run time. */
static bool is_generated(const struct format_file *file)
{
	return file->flags & (FORMAT_FILE_NONE | FORMAT_FILE_GENERATED);
}

void binaries_add_unnamed(const struct binaries *binaries, const struct recording_sample *sample,
			  u64 ticks)
{
	const struct format_nameless *why = binaries_thread(sample)->process->nameless;
	struct profile_binary *binary = binary_of(binaries, sample->file);
	struct nameless *nameless = binary->nameless;

	if (!is_generated(&sample->file->data)) {
		binary->unnamed = ticks_add(binary->unnamed, ticks);
		return;
	}
	/* A later version may have further reasons. */
	if (why && why->reason >= NAMELESS_REASONS)
		why = NULL;
	nameless += why ? why->reason : 0;
	nameless->ticks = ticks_add(nameless->ticks, ticks);
	nameless->is_many |= nameless->why && nameless->why != why;
	nameless->why = why;
}

/* ---- reading ---- */

/* Returns the reason why the recorder has not identified the file; NULL if it has. */
static const char *why_unknown(const struct format_file *file)
{
	const bool ended = file->flags & FORMAT_FILE_ENDED;

	if (file->build_id_len || file->mtime || !file->ino)
		return NULL;
	if (file->flags & FORMAT_FILE_DENIED)
		return "the recorder was not permitted to read it";
	if (file->flags & FORMAT_FILE_FUSE)
		return "another user serves it with FUSE, so the recorder did not read it";
	if (file->flags & FORMAT_FILE_IRREGULAR)
		return "not a regular file";
	if (file->flags & FORMAT_FILE_CHANGED)
		return "changed before the recorder could read it";
	if (file->flags & FORMAT_FILE_GONE)
		return ended ? "gone when the recorder looked for it; its process had ended" :
			       "gone when the recorder looked for it";
	if (file->flags & FORMAT_FILE_OTHER)
		return ended ? "its process had ended, and another file is at its path here" :
			       "another file was at its path when the recorder looked for it";
	return "the recorder could not open it";
}

struct symbols_file binary_file(const struct recording_file *file)
{
	const struct format_file *data = &file->data;

	return (struct symbols_file){
		.path = is_generated(data) ? NULL : data->path,
		.unknown = why_unknown(data),
		.size = data->size,
		.mtime = data->mtime,
		.build_id = data->build_id,
		.build_id_len = data->build_id_len,
	};
}

/* The offsets in a file at which functions are looked up */
struct offsets {
	u64 *values;
	size_t nr;
};

/* Reads the file to find the functions at the offsets. */
static void read_binary(struct binaries *binaries, const struct recording_file *file,
			const struct offsets *offsets)
{
	struct profile_binary *binary = binary_of(binaries, file);
	const struct symbols_file wanted = binary_file(file);
	struct lookup *lookup = &binary->lookup;

	if (binaries->recorded && file->nr_symbols) {
		binary->problem = "it was not read";
		return;
	}
	lookup_init(lookup, offsets->values, offsets->nr);
	lookup->number_locals = binaries->number_locals;
	lookup->find_callers = binaries->callers;
	binary->problem = symbols_read(binaries->symbols, lookup, &wanted, binaries->lines);
	binary->only_names = binary->problem ? NULL : lookup->only_names;
	binary->symtab = lookup->symtab;
	binary->address_size = lookup->address_size;
	if (binary->problem && file->nr_symbols)
		binary->problem = "only some of its functions were recorded";
}

static void add_offset(const struct binaries *binaries, struct offsets *all,
		       const struct recording_file *file, u64 offset)
{
	struct offsets *offsets = file ? &all[file - binaries->recording->files] : NULL;

	/* Samples are sorted by offset. */
	if (!file || (offsets->nr && offsets->values[offsets->nr - 1] == offset))
		return;
	if (!array_grow(&offsets->values, offsets->nr, sizeof(offset)))
		xmalloc_failed(sizeof(offset));
	offsets->values[offsets->nr++] = offset;
}

/* Adds the offsets of the calls in the stack. */
static void add_stack(const struct binaries *binaries, struct offsets *all,
		      const struct recording_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++)
		add_offset(binaries, all, stack->frames[i].file, stack->frames[i].offset - 1);
	for (size_t i = 0; i < 2; i++)
		add_offset(binaries, all, stack->innermost[i].file, stack->innermost[i].offset - 1);
}

/* Reads all files, one after the other. */
static void read_binaries(struct binaries *binaries)
{
	const struct recording *recording = binaries->recording;
	struct offsets *all = xcalloc(recording->nr_files + 1, sizeof(*all));

	for (size_t i = 0; i < recording->nr_samples; i++)
		add_offset(binaries, all, recording->samples[i].file, recording->samples[i].offset);
	for (size_t i = 0; binaries->callers && i < recording->nr_stacks; i++)
		add_stack(binaries, all, recording->stacks[i]);
	for (size_t i = 0; i < recording->nr_files; i++) {
		if (all[i].nr)
			read_binary(binaries, &recording->files[i], &all[i]);
		free(all[i].values);
	}
	free(all);
}

static void add_recorded(const char ***names, size_t *nr, const struct format_symbol *symbols,
			 size_t nr_symbols)
{
	for (size_t i = 0; i < nr_symbols; i++) {
		if (!array_grow(names, *nr, sizeof(**names)))
			xmalloc_failed(sizeof(**names));
		(*names)[(*nr)++] = symbols[i].name;
	}
}

/* Demangles the names in the recording, all at once. */
static void demangle_recorded(const struct binaries *binaries)
{
	const struct recording *recording = binaries->recording;
	const char **names = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < recording->nr_files; i++)
		add_recorded(&names, &nr, recording->files[i].symbols,
			     recording->files[i].nr_symbols);
	for (size_t i = 0; i < recording->nr_threads; i++)
		add_recorded(&names, &nr, recording->threads[i].symbols,
			     recording->threads[i].nr_symbols);
	symbols_demangle(binaries->symbols, names, nr);
	free(names);
}

bool binaries_open(struct binaries *binaries, bool demangle, const char *symfs)
{
	const struct recording *recording = binaries->recording;

	binaries->symbols = symbols_new(demangle, symfs);
	if (!binaries->symbols)
		return false;
	binaries->files = xcalloc(recording->nr_files + 1, sizeof(*binaries->files));
	label_files(binaries);
	read_binaries(binaries);
	demangle_recorded(binaries);
	return true;
}

void binaries_close(struct binaries *binaries)
{
	for (size_t i = 0; i < binaries->recording->nr_files; i++)
		lookup_free(&binaries->files[i].lookup);
}

void binaries_free(struct binaries *binaries)
{
	free(binaries->files);
	symbols_free(binaries->symbols);
}
