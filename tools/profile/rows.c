// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See rows.h. Each sample becomes a row with its function. Then rows that are equal in all keys are
 * added up.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/chains.h"
#include "profile/names.h"
#include "profile/rows.h"
#include "recording/classic.h"

/* The name of the binary in rows of functions that a process compiled at run time. */
#define JIT "[jit]"
/* The code that the kernel maps into each process, and the name of the functions there. */
#define VDSO "[vdso]"

static struct recording_thread no_thread = {
	.data.comm = ROWS_UNKNOWN,
	.thread = &no_thread,
	.process = &no_thread,
};

static int compare_rows(const void *a, const void *b, void *data)
{
	const struct rows *rows = data;
	int order = 0;

	for (size_t i = 0; i < rows->nr_keys && !order; i++)
		order = rows->keys[i]->compare(a, b);
	return order;
}

static int compare_ticks(const void *a, const void *b, void *data)
{
	return compare_u64(row_ticks(b), row_ticks(a)) ?: compare_rows(a, b, data);
}

/* ---- from samples to rows ---- */

static int compare_labels(const void *a, const void *b)
{
	const struct rows_label *x = a, *y = b;

	return strcmp(basename(x->path), basename(y->path)) ?: strcmp(x->path, y->path);
}

void rows_choose_labels(struct rows_label *labels, size_t nr)
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

static void label_binaries(struct rows *rows)
{
	const struct recording *recording = rows->recording;
	size_t nr = recording->nr_files;
	struct rows_label *labels = xcalloc(nr + 1, sizeof(*labels));

	for (size_t i = 0; i < nr; i++)
		labels[i] = (struct rows_label) {
			.path = recording->files[i].data.path,
			.whole = recording->files[i].data.flags & FORMAT_FILE_NONE,
			.label = &rows->binaries[i].label,
		};
	rows_choose_labels(labels, nr);
	free(labels);
}

static struct rows_binary *binary_of(const struct rows *rows, const struct recording_file *file)
{
	return &rows->binaries[file - rows->recording->files];
}

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
	if (sample->file && !strcmp(sample->file->data.path, CLASSIC_ELSEWHERE))
		return CLASSIC_ELSEWHERE;
	return ROWS_NO_SYMBOL;
}

/*
 * Finds the function, or with @inlines the inlined one, in the file; or in the recording, if the
 * file has no name for it.
 */
static void find_function(const struct rows *rows, struct row *row, bool inlines)
{
	const struct recording_sample *sample = row->sample;
	const struct recording_thread *process = row->thread->process;
	const struct recording_file *file = sample->file;
	const struct place *place;
	const char *name = NULL, *inlined;
	const bool fine = file && !binary_of(rows, file)->problem;
	const u64 address = sample_address(sample);

	if (fine) {
		place = lookup_place(&rows->lookups[file - rows->recording->files], sample->offset);
		name = place->found.name;
		row->start = place->found.start;
		row->local = place->found.local;
		row->source = place->source;
		row->line = place->line;
		row->address = place->address;
		row->frames = place->frames;
		row->nr_frames = place->nr_frames;
		row->caller = place->caller;
		inlined = place_inlined(place);
		if (inlines && inlined) {
			row->name = symbols_inlined(rows->symbols, inlined);
			row->start = 0;
			return;
		}
	} else if (file && !strcmp(file->data.path, VDSO)) {
		name = VDSO;
	}
	/* The file may have been stripped since the recording. */
	if (!name && file)
		name = find_recorded(file->symbols, file->nr_symbols, sample->offset, &row->start);
	/* A process makes functions at run time, and they can move. */
	if (!fine && !name && address) {
		name = find_recorded(process->symbols, process->nr_symbols, address, &row->start);
		if (name) {
			row->binary = JIT;
			row->label = JIT;
			row->start = 0;
		}
	}
	row->linkage = name;
	row->unnamed = !name;
	row->name = name ? symbols_name(rows->symbols, name) : name_place(sample);
}

bool row_matches(const struct rows_filter *filter, const struct row *row)
{
	bool is_in = !filter->tid || row->thread->data.tid == filter->tid;
	char *symbol;

	if (is_in && filter->comm)
		is_in = names_match(row->thread->data.comm, filter->comm);
	if (is_in && filter->dso)
		is_in = names_match(row->label, filter->dso) ||
			names_match(row->binary, filter->dso);
	if (is_in && filter->symbol) {
		symbol = row_text(&row_keys[ROWS_BY_SYMBOL], row);
		is_in = names_match(symbol, filter->symbol);
		free(symbol);
	}
	return is_in;
}

static const char unknown[] = ROWS_UNKNOWN;

/* Makes a row for the sample, with its function: with @inlines, the inlined one. */
static struct row make_row(const struct rows *rows, const struct recording_sample *sample,
			   bool inlines)
{
	struct row row = {
		.sample = sample,
		.thread = sample->thread ?: &no_thread,
		.nr = sample->nr,
		.user = sample->user,
		.system = sample->system,
		.squares = sample->squares,
		.binary = sample->file ? sample->file->data.path : unknown,
		.label = sample->file ? binary_of(rows, sample->file)->label : unknown,
		.address = sample->offset,
	};

	find_function(rows, &row, inlines);
	if (sample->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT)) {
		row.binary = rows->by_symbol ? row.thread->data.comm : row.name;
		row.label = row.binary;
	}
	return row;
}

void rows_find_function(const struct rows *rows, struct row *row,
			const struct recording_sample *sample)
{
	*row = make_row(rows, sample, false);
}

static void count_chain(struct rows *rows, const struct row *row)
{
	const u64 ticks = row_ticks(row);

	if (row->chain->lost)
		rows->lost = ticks_add(rows->lost, ticks);
	if (row->chain->unchecked)
		rows->unchecked = ticks_add(rows->unchecked, ticks);
	if (row->chain->unknown)
		rows->unknown = ticks_add(rows->unknown, ticks);
	if (row->chain->cut)
		rows->cut = ticks_add(rows->cut, ticks);
}

static void add_row(struct rows *rows, const struct recording_sample *sample)
{
	struct row *row = &rows->rows[rows->nr];
	struct rows_binary *binary;

	*row = make_row(rows, sample, rows->inlined);
	if (rows->nr_keys && !rows->by_binary)
		row->start = 0;
	if (!row_matches(&rows->filter, row))
		return;
	rows->nr++;
	rows->ticks = ticks_add(rows->ticks, row_ticks(row));
	rows->nr_ticks = ticks_add(rows->nr_ticks, row->nr);
	rows->squares += sample->squares;
	if (rows->chains) {
		row->chain = chains_make(rows->chain_maker, row);
		count_chain(rows, row);
	}
	/* In a damaged file, the mapping may have been lost. */
	if (!sample->mapping_id && row->binary == unknown)
		rows->unmapped = ticks_add(rows->unmapped, row_ticks(row));
	if (!sample->file)
		return;
	binary = binary_of(rows, sample->file);
	binary->ticks = ticks_add(binary->ticks, row_ticks(row));
	if (row->unnamed)
		binary->unnamed = ticks_add(binary->unnamed, row_ticks(row));
}

/* The offsets in a file at which functions are looked up */
struct offsets {
	u64 *values;
	size_t nr;
};

/* Reads the file to find the functions at the offsets. */
static void read_binary(struct rows *rows, const struct recording_file *file,
			const struct offsets *offsets)
{
	struct lookup *lookup = &rows->lookups[file - rows->recording->files];
	const char **problem = &binary_of(rows, file)->problem;

	if (rows->recorded && file->nr_symbols) {
		*problem = "it was not read";
		return;
	}
	lookup_init(lookup, offsets->values, offsets->nr);
	lookup->number_locals = rows->number_locals;
	lookup->find_callers = rows->chains;
	*problem = symbols_read(rows->symbols, lookup, &file->data,
				rows->by_line || rows->inlined);
	binary_of(rows, file)->address_size = lookup->address_size;
	if (*problem && file->nr_symbols)
		*problem = "only some of its functions were recorded";
}

static void add_offset(const struct rows *rows, struct offsets *all,
		       const struct recording_file *file, u64 offset)
{
	struct offsets *offsets = file ? &all[file - rows->recording->files] : NULL;

	/* Samples are sorted by offset. */
	if (!file || (offsets->nr && offsets->values[offsets->nr - 1] == offset))
		return;
	if (!array_grow(&offsets->values, offsets->nr, sizeof(offset)))
		xmalloc_failed(sizeof(offset));
	offsets->values[offsets->nr++] = offset;
}

/* Adds the offsets of the calls in the stack. */
static void add_stack(const struct rows *rows, struct offsets *all,
		      const struct recording_stack *stack)
{
	for (size_t i = 0; i < stack->nr; i++)
		add_offset(rows, all, stack->frames[i].file, stack->frames[i].offset - 1);
	for (size_t i = 0; i < 2; i++)
		add_offset(rows, all, stack->innermost[i].file, stack->innermost[i].offset - 1);
}

/* Reads all files, one after the other. */
static void read_binaries(struct rows *rows)
{
	const struct recording *recording = rows->recording;
	struct offsets *all = xcalloc(recording->nr_files + 1, sizeof(*all));

	for (size_t i = 0; i < recording->nr_samples; i++)
		add_offset(rows, all, recording->samples[i].file, recording->samples[i].offset);
	for (size_t i = 0; rows->chains && i < recording->nr_stacks; i++)
		add_stack(rows, all, recording->stacks[i]);
	for (size_t i = 0; i < recording->nr_files; i++) {
		if (all[i].nr)
			read_binary(rows, &recording->files[i], &all[i]);
		free(all[i].values);
	}
	free(all);
}

/* Adds a row for each sample. */
static void add_rows(struct rows *rows)
{
	const struct recording *recording = rows->recording;

	rows->lookups = xcalloc(recording->nr_files + 1, sizeof(*rows->lookups));
	read_binaries(rows);
	if (rows->chains)
		rows->chain_maker = chains_new(rows);
	for (size_t i = 0; i < recording->nr_samples; i++)
		add_row(rows, &recording->samples[i]);
	for (size_t i = 0; i < recording->nr_files; i++)
		lookup_free(&rows->lookups[i]);
	free(rows->lookups);
	rows->lookups = NULL;
}

/* Makes the row @to of its first part. */
static void start_row(const struct rows *rows, struct row *to, const struct row *part)
{
	*to = *part;
	to->parts = rows->keep_parts ? part : NULL;
	to->nr_parts = 1;
}

void rows_merge(struct rows *rows)
{
	struct row *from = rows->rows, *to = from, *end = from + rows->nr;

	if (!rows->nr || !rows->nr_keys)
		return;
	qsort_r(from, rows->nr, sizeof(*from), compare_rows, rows);
	if (rows->keep_parts) {
		rows->parts = from;
		rows->nr_parts = rows->nr;
		to = xcalloc(rows->nr, sizeof(*to));
		rows->rows = to;
		start_row(rows, to, from);
	}
	while (++from < end) {
		if (compare_rows(to, from, rows)) {
			start_row(rows, ++to, from);
			continue;
		}
		to->nr_parts++;
		to->nr = ticks_add(to->nr, from->nr);
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
		to->squares += from->squares;
	}
	rows->nr = to + 1 - rows->rows;
	if (!rows->in_order)
		qsort_r(rows->rows, rows->nr, sizeof(*to), compare_ticks, rows);
}

bool rows_make(struct rows *rows, const struct recording *recording)
{
	rows->recording = recording;
	rows->by_line = rows->lines;
	for (size_t i = 0; i < rows->nr_keys; i++) {
		rows->by_symbol |= rows->keys[i] == &row_keys[ROWS_BY_SYMBOL];
		rows->by_line |= rows->keys[i] == &row_keys[ROWS_BY_LINE];
		rows->by_binary |= rows->keys[i] == &row_keys[ROWS_BY_DSO];
	}
	rows->symbols = symbols_new(rows->demangle, rows->symfs);
	if (!rows->symbols)
		return false;
	rows->binaries = xcalloc(recording->nr_files + 1, sizeof(*rows->binaries));
	rows->rows = xcalloc(recording->nr_samples + 1, sizeof(*rows->rows));
	label_binaries(rows);
	add_rows(rows);
	rows_merge(rows);
	return true;
}

const char *rows_problem(const struct rows *rows, const struct recording_file *file)
{
	return binary_of(rows, file)->problem;
}

const char *rows_inlined(const struct rows *rows, const char *name)
{
	return symbols_inlined(rows->symbols, name);
}

const char *rows_name(const struct rows *rows, const char *name)
{
	return symbols_name(rows->symbols, name);
}

const struct recording_file *rows_hottest_file(const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct recording_file *hottest = NULL;
	u64 ticks = 0;

	for (size_t i = 0; i < recording->nr_files; i++) {
		const struct recording_file *file = &recording->files[i];

		if (rows->binaries[i].ticks <= ticks || file->data.flags & FORMAT_FILE_NONE)
			continue;
		ticks = rows->binaries[i].ticks;
		hottest = file;
	}
	return hottest;
}

size_t rows_same_thread(const struct rows *rows, size_t first)
{
	const struct recording_thread *thread = rows->rows[first].thread->thread;
	size_t i = first;

	while (i < rows->nr && rows->rows[i].thread->thread == thread)
		i++;
	return i - first;
}

void rows_free(struct rows *rows)
{
	free(rows->rows);
	free(rows->parts);
	free(rows->binaries);
	chains_free(rows->chain_maker);
	symbols_free(rows->symbols);
}
