// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See rows.h. Each sample becomes a row with its function. Then rows that are equal in all keys are
 * added up.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>
#include <linux/profil.h>

#include "profile/chains.h"
#include "profile/names.h"
#include "profile/rows.h"

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

bool row_matches(const struct rows_filter *filter, const struct row *row)
{
	bool is_in = !filter->tid || row->thread->data.tid == filter->tid;
	char *symbol;

	if (is_in && filter->comm)
		is_in = names_match(row->thread->data.comm, filter->comm);
	if (is_in && filter->dso)
		is_in = names_match(row->function.label, filter->dso) ||
			names_match(row->function.binary, filter->dso);
	if (is_in && filter->symbol) {
		symbol = row_text(&row_keys[ROWS_BY_SYMBOL], row);
		is_in = names_match(symbol, filter->symbol);
		free(symbol);
	}
	return is_in;
}

/* Returns struct row.call of a sample whose function has this name. */
static const char *name_call(const struct recording_sample *sample, const char *function)
{
	if (sample->call)
		return sample->call->name;
	if (sample->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT))
		return function;
	return sample->flags & FORMAT_SAMPLE_SYSTEM ? PROFILE_UNKNOWN : "[user mode]";
}

/* Makes a row for the sample, with its function. */
static struct row make_row(const struct rows *rows, const struct recording_sample *sample)
{
	struct row row = {
		.sample = sample,
		.thread = binaries_thread(sample),
		.nr = sample->nr,
		.user = sample->user,
		.system = sample->system,
		.squares = sample->squares,
	};

	binaries_find(&rows->binaries, sample, rows->inlined, &row.function, &row.place);
	row.call = name_call(sample, row.function.name);
	return row;
}

static void count_chain(struct rows *rows, const struct row *row)
{
	const struct chain *chain = row->chain;
	struct completeness *sum = &rows->completeness;
	const u64 ticks = row_ticks(row);

	u64 *count = chain->complete ? &sum->complete :
		     chain->lost ? &sum->lost :
		     chain->unknown ? &sum->unknown :
		     !completeness_is_whole(chain->end) ?
		     &sum->ends[chain->end % COMPLETENESS_ENDS] : &sum->unchecked;

	if (row->sample->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT))
		return;
	sum->stacks = ticks_add(sum->stacks, ticks);
	*count = ticks_add(*count, ticks);
}

static bool has_key(const struct rows *rows, enum rows_by key)
{
	for (size_t i = 0; i < rows->nr_keys; i++)
		if (rows->keys[i] == &row_keys[key])
			return true;
	return false;
}

/* Counts the row once for each binary that lacks debug information. */
static void count_lack(struct rows *rows, const struct row *row, const struct recording_file *file,
		       enum place_lack lack, const char *source)
{
	struct profile_binary *binary = file ? binary_of(&rows->binaries, file) : NULL;

	if (binary && binary->problem && !(file->data.flags & FORMAT_FILE_NONE))
		lack = PLACE_LACKS_ALL;
	/* Lines can be there without what is inlined. */
	if (!binary || !lack || binary->last == rows->nr || (source && !rows->inlined))
		return;
	binary->last = rows->nr;
	binary->lacking[lack] = ticks_add(binary->lacking[lack], row_ticks(row));
}

/* Returns true if the function calls another by the linkage table, which has no source. */
static bool is_linkage(const struct profile_function *function)
{
	const size_t length = strlen(function->name), suffix = strlen(FUNCTION_STUB);

	return length > suffix && !strcmp(function->name + length - suffix, FUNCTION_STUB);
}

/*
 * Counts the binaries in which lines or inlined functions are missing: that of the pc, and those of
 * callers; but not of the outermost ones, whose code starts the program or thread.
 */
static void count_lacks(struct rows *rows, const struct row *row)
{
	const size_t nr = row->chain ? row->chain->nr : 0;
	const struct chain_frame *const *frames = nr ? row->chain->frames : NULL;
	size_t i = 0;

	if (!rows->inlined && !has_key(rows, ROWS_BY_LINE))
		return;
	if (!row->place.nr_frames && !is_linkage(&row->function))
		count_lack(rows, row, row->sample->file, row->place.lack, row->place.source);
	while (i < nr && frames[i]->lack)
		i++;
	for (; i < nr; i++)
		if (!is_linkage(frames[i]->function))
			count_lack(rows, row, frames[i]->file, frames[i]->lack,
				   frames[i]->code.source);
}

static void add_row(struct rows *rows, const struct recording_sample *sample)
{
	struct row *row = &rows->rows[rows->nr];
	struct profile_binary *binary;

	*row = make_row(rows, sample);
	if (rows->nr_keys && !rows->by_binary)
		row->function.start = 0;
	if (!row_matches(&rows->filter, row))
		return;
	rows->nr++;
	rows->ticks = ticks_add(rows->ticks, row_ticks(row));
	rows->nr_ticks = ticks_add(rows->nr_ticks, row->nr);
	rows->squares += sample->squares;
	if (rows->options.chains) {
		row->chain = chains_make(rows->chain_maker, sample);
		count_chain(rows, row);
	}
	count_lacks(rows, row);
	/* In a damaged file, the mapping may have been lost. */
	if (!sample->mapping_id && row->function.binary == binaries_unknown) {
		u64 *unknown = sample->flags & FORMAT_SAMPLE_PENDING ? &rows->pending :
								       &rows->unmapped;

		*unknown = ticks_add(*unknown, row_ticks(row));
	}
	if (!sample->file)
		return;
	binary = binary_of(&rows->binaries, sample->file);
	binary->ticks = ticks_add(binary->ticks, row_ticks(row));
	if (row->function.unnamed || row->function.by_address)
		binaries_add_unnamed(&rows->binaries, sample, row_ticks(row));
}

/* Adds a row for each sample. */
static void add_rows(struct rows *rows)
{
	const struct recording *recording = rows->recording;

	rows->rows = xcalloc(recording->nr_samples + 1, sizeof(*rows->rows));
	if (rows->options.chains)
		rows->chain_maker = chains_new(&rows->binaries);
	for (size_t i = 0; i < recording->nr_samples; i++)
		add_row(rows, &recording->samples[i]);
}

/* Makes the row @to of its first part. */
static void start_row(const struct rows *rows, struct row *to, const struct row *part)
{
	*to = *part;
	to->parts = rows->options.keep_parts ? part : NULL;
	to->nr_parts = 1;
}

void rows_merge(struct rows *rows)
{
	struct row *from = rows->rows, *to = from, *end = from + rows->nr;

	if (!rows->nr || !rows->nr_keys)
		return;
	qsort_r(from, rows->nr, sizeof(*from), compare_rows, rows);
	if (rows->options.keep_parts) {
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
	if (!rows->options.in_order)
		qsort_r(rows->rows, rows->nr, sizeof(*to), compare_ticks, rows);
}

bool rows_make(struct rows *rows, const struct recording *recording)
{
	rows->recording = recording;
	rows->by_binary = has_key(rows, ROWS_BY_DSO);
	rows->binaries = (struct binaries){
		.recording = recording,
		.lines = rows->options.lines || rows->inlined || has_key(rows, ROWS_BY_LINE),
		.number_locals = rows->options.number_locals,
		.callers = rows->options.chains,
		.recorded = rows->recorded,
		.by_symbol = has_key(rows, ROWS_BY_SYMBOL),
	};
	if (!binaries_open(&rows->binaries, rows->demangle, rows->symfs))
		return false;
	add_rows(rows);
	binaries_close(&rows->binaries);
	rows_merge(rows);
	return true;
}

const struct chains *rows_chains(const struct rows *rows)
{
	return chains_of(rows->chain_maker);
}

struct chain_frame row_frame(const struct row *row)
{
	return (struct chain_frame){
		.function = &row->function,
		.file = row->sample->file,
		.offset = row->sample->offset,
		.bias = row->sample->bias,
		.address = row->place.address,
		.code = place_outermost(&row->place),
	};
}

const struct recording_file *rows_hottest_file(const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct recording_file *hottest = NULL;
	u64 ticks = 0;

	for (size_t i = 0; i < recording->nr_files; i++) {
		const struct recording_file *file = &recording->files[i];

		if (rows->binaries.files[i].ticks <= ticks ||
		    file->data.flags & (FORMAT_FILE_NONE | FORMAT_FILE_GENERATED))
			continue;
		ticks = rows->binaries.files[i].ticks;
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
	binaries_free(&rows->binaries);
	chains_free(rows->chain_maker);
}
