// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See rows.h. Each sample becomes a row with its function. Then rows that are equal in all keys are
 * added up.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "output/escape.h"
#include "output/rows.h"
#include "recording/classic.h"

/* The name of the binary in rows of functions that a process compiled at run time. */
#define JIT "[jit]"

/* @tried: jit_open() was called. */
struct rows_jit {
	struct jit *jit;
	bool tried;
};

/* ---- keys ---- */

static const char *row_name(const struct row *row)
{
	return row->symbol ? row->symbol->name : NULL;
}

/* Sorts functions with a name first, then functions and offsets without a name. */
static int compare_symbol(const struct row *a, const struct row *b, const struct rows *rows)
{
	const char *name_a = row_name(a), *name_b = row_name(b);
	int order;

	if (!name_a != !name_b)
		return name_a ? -1 : 1;
	order = name_a ? strcmp(name_a, name_b) : strcmp(a->binary, b->binary);
	/* Functions of one binary that have the same name are in different rows. */
	if (!order && a->symbol && b->symbol && (rows->by_binary || !name_a))
		order = compare_u64(a->symbol->start, b->symbol->start);
	if (!order && !name_a)
		order = !!a->symbol - !!b->symbol;
	if (!order && !name_a && !a->symbol)
		order = compare_u64(a->offset, b->offset);
	return order;
}

static void print_symbol(FILE *out, const struct row *row)
{
	if (row_name(row)) {
		escape_print(out, row_name(row));
		return;
	}
	escape_print(out, row->label);
	if (row->symbol)
		fprintf(out, "+0x%" PRIx64 "..0x%" PRIx64, row->symbol->start, row->symbol->end);
	else
		fprintf(out, "+0x%" PRIx64, row->offset);
}

static int compare_dso(const struct row *a, const struct row *b, const struct rows *rows)
{
	(void)rows;
	return strcmp(a->binary, b->binary);
}

static void print_dso(FILE *out, const struct row *row)
{
	escape_print(out, row->label);
}

static int compare_ids(const struct recording_process *a, const struct recording_process *b)
{
	return compare_u64(a ? a->data.id : 0, b ? b->data.id : 0);
}

static const struct recording_process *row_process(const struct row *row)
{
	return row->sample->thread ? row->sample->thread->process : NULL;
}

static int compare_process(const struct row *a, const struct row *b, const struct rows *rows)
{
	(void)rows;
	return compare_ids(row_process(a), row_process(b));
}

static void print_process(FILE *out, const struct row *row)
{
	const struct recording_process *process = row_process(row);

	escape_print(out, process ? process->data.comm : ROWS_UNKNOWN);
	if (process)
		fprintf(out, " %d", process->data.pid);
}

static const char *row_comm(const struct row *row)
{
	return row->sample->thread ? row->sample->thread->data.comm : ROWS_UNKNOWN;
}

static int compare_thread(const struct row *a, const struct row *b, const struct rows *rows)
{
	(void)rows;
	return compare_ids(a->sample->thread, b->sample->thread);
}

static void print_thread(FILE *out, const struct row *row)
{
	escape_print(out, row_comm(row));
	if (row->sample->thread)
		fprintf(out, " %d", row->sample->thread->data.tid);
}

static int compare_comm(const struct row *a, const struct row *b, const struct rows *rows)
{
	(void)rows;
	return strcmp(row_comm(a), row_comm(b));
}

static void print_comm(FILE *out, const struct row *row)
{
	escape_print(out, row_comm(row));
}

static int compare_function(const struct row *a, const struct row *b, const struct rows *rows)
{
	return compare_symbol(a, b, rows) ?: compare_dso(a, b, rows);
}

static void print_function(FILE *out, const struct row *row)
{
	if (!strcmp(row->binary, CLASSIC_ELSEWHERE)) {
		fputs(CLASSIC_ELSEWHERE, out);
		return;
	}
	print_symbol(out, row);
	if (row_name(row)) {
		fputs("  ", out);
		print_dso(out, row);
	}
}

const struct row_key row_keys[ROWS_KEYS_MAX] = {
	{ "symbol", "symbol", compare_symbol, print_symbol },
	{ "dso", "binary", compare_dso, print_dso },
	{ "process", "process", compare_process, print_process },
	{ "thread", "thread", compare_thread, print_thread },
	{ "comm", "command", compare_comm, print_comm },
};

const struct row_key row_key_function = {
	"function", "function", compare_function, print_function
};

static int compare_rows(const void *a, const void *b, void *data)
{
	const struct rows *rows = data;
	int order = 0;

	for (size_t i = 0; i < rows->nr_keys && !order; i++)
		order = rows->keys[i]->compare(a, b, rows);
	return order;
}

static int compare_ticks(const void *a, const void *b, void *data)
{
	return compare_u64(row_ticks(b), row_ticks(a)) ?: compare_rows(a, b, data);
}

/* ---- from samples to rows ---- */

static int compare_labels(const void *a, const void *b)
{
	const struct recording_file *x = *(struct recording_file *const *)a;
	const struct recording_file *y = *(struct recording_file *const *)b;

	return strcmp(basename(x->data.path), basename(y->data.path)) ?:
	       strcmp(x->data.path, y->data.path);
}

/* Labels a binary with the last part of its path, or with all of it if that is ambiguous. */
static bool label_binaries(struct rows *rows)
{
	const struct recording *recording = rows->recording;
	size_t nr = recording->nr_files;
	struct recording_file **files = calloc(nr + 1, sizeof(*files));

	if (!files)
		return false;
	for (size_t i = 0; i < nr; i++)
		files[i] = &recording->files[i];
	qsort(files, nr, sizeof(*files), compare_labels);
	for (size_t i = 0, end; i < nr; i = end) {
		const char *name = basename(files[i]->data.path);
		bool whole = !*name || (files[i]->data.flags & FORMAT_FILE_NONE);

		for (end = i; end < nr && !strcmp(basename(files[end]->data.path), name); end++)
			whole |= strcmp(files[end]->data.path, files[i]->data.path) != 0;
		for (size_t j = i; j < end; j++)
			rows->binaries[files[j] - recording->files].label =
				whole ? files[j]->data.path : name;
	}
	free(files);
	return true;
}

static struct rows_binary *binary_of(const struct rows *rows, const struct recording_file *file)
{
	return &rows->binaries[file - rows->recording->files];
}

static u64 start_time(const struct recording *recording)
{
	/* With -p, the process may have compiled code before the recording started. */
	return recording->meta.flags & FORMAT_ATTACHED ? 0 : recording->meta.start_time;
}

static bool is_in_file(const struct recording_sample *sample)
{
	return sample->file && !(sample->file->data.flags & FORMAT_FILE_NONE);
}

static const struct symbol *find_jit(struct rows *rows, const struct recording_sample *sample)
{
	const struct recording *recording = rows->recording;
	const struct recording_process *process;
	struct rows_jit *jit;
	u64 address = sample->offset;

	if (!sample->thread || sample->thread->data.pid <= 0)
		return NULL;
	if (is_in_file(sample)) {
		if (!sample->bias)
			return NULL;
		address += sample->bias;
	}
	process = sample->thread->process;
	jit = &rows->jits[process - recording->processes];
	if (!jit->tried) {
		jit->tried = true;
		jit->jit = jit_open(rows->symbols, process->data.pid, recording->owner,
				    start_time(recording));
	}
	return jit->jit ? jit_find(jit->jit, address) : NULL;
}

static bool is_in_vdso(const struct recording_sample *sample)
{
	return sample->file && !is_in_file(sample) && sample->bias &&
	       !strcmp(sample->file->data.path, "[vdso]");
}

/*
 * Is the sample in the memory of a 32-bit program? Such a program has another vDSO, which we cannot
 * read.
 */
static bool is_in_32_bit_memory(const struct recording_sample *sample)
{
	return sample->file && !is_in_file(sample) && sample->offset <= UINT32_MAX;
}

static void add_row(struct rows *rows, const struct recording_sample *sample,
		    struct binary *binary)
{
	struct row *row = &rows->rows[rows->nr++];
	const struct symbol *jit = NULL;

	*row = (struct row){
		.sample = sample,
		.user = sample->user,
		.system = sample->system,
		.binary = sample->file ? sample->file->data.path : ROWS_UNKNOWN,
		.label = sample->file ? binary_of(rows, sample->file)->label : ROWS_UNKNOWN,
		/* The vDSO is an ELF image, so its functions have offsets from its start. */
		.offset = is_in_vdso(sample) ? sample->offset - sample->bias : sample->offset,
	};
	if (binary && binary_state(binary) == BINARY_FINE && !is_in_32_bit_memory(sample))
		row->symbol = binary_find(binary, row->offset);
	else
		jit = find_jit(rows, sample);
	if (jit) {
		row->symbol = jit;
		row->binary = JIT;
		row->label = JIT;
		rows->user_in_jit = ticks_add(rows->user_in_jit, row->user);
	} else if (is_in_file(sample) || is_in_vdso(sample)) {
		rows->user_in_files = ticks_add(rows->user_in_files, row->user);
	} else if (sample->file) {
		rows->user_in_memory = ticks_add(rows->user_in_memory, row->user);
	}
	if (row_name(row))
		rows->user_in_symbols = ticks_add(rows->user_in_symbols, row->user);
	rows->ticks = ticks_add(rows->ticks, row_ticks(row));
}

/* Adds a row for each sample. Samples are sorted by file, so one binary is open at a time. */
static bool add_rows(struct rows *rows)
{
	const struct recording *recording = rows->recording;
	struct recording_file *file = NULL;
	struct binary *binary = NULL;
	struct utsname name;
	bool this_kernel;

	this_kernel = !uname(&name) && !strcmp(name.release, recording->meta.release);
	for (size_t i = 0; i < recording->nr_samples; i++) {
		const struct recording_sample *sample = &recording->samples[i];

		if (sample->file != file) {
			binary_close(binary);
			binary = NULL;
			file = sample->file;
			if (file) {
				binary = binary_open(rows->symbols, &file->data, this_kernel);
				if (!binary)
					return false;
				binary_of(rows, file)->state = binary_state(binary);
			}
		}
		add_row(rows, sample, binary);
		if (file) {
			u64 *ticks = &binary_of(rows, file)->ticks;

			*ticks = ticks_add(*ticks, ticks_add(sample->user, sample->system));
		}
	}
	binary_close(binary);
	return true;
}

static void merge_rows(struct rows *rows)
{
	struct row *to = rows->rows, *end = to + rows->nr;

	if (!rows->nr || !rows->nr_keys)
		return;
	qsort_r(to, rows->nr, sizeof(*to), compare_rows, rows);
	for (struct row *from = to + 1; from < end; from++) {
		if (compare_rows(to, from, rows)) {
			*++to = *from;
			continue;
		}
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
	}
	rows->nr = to + 1 - rows->rows;
	qsort_r(rows->rows, rows->nr, sizeof(*to), compare_ticks, rows);
}

bool rows_make(struct rows *rows, const struct recording *recording)
{
	rows->recording = recording;
	for (size_t i = 0; i < rows->nr_keys; i++)
		rows->by_binary |= rows->keys[i]->compare == compare_dso ||
				   rows->keys[i]->compare == compare_function;
	rows->symbols = symbols_new(rows->demangle);
	rows->binaries = calloc(recording->nr_files + 1, sizeof(*rows->binaries));
	rows->jits = calloc(recording->nr_processes + 1, sizeof(*rows->jits));
	rows->rows = calloc(recording->nr_samples + 1, sizeof(*rows->rows));
	if (!rows->symbols || !rows->binaries || !rows->jits || !rows->rows ||
	    !label_binaries(rows) || !add_rows(rows))
		return false;
	merge_rows(rows);
	return true;
}

void rows_free(struct rows *rows)
{
	for (size_t i = 0; rows->jits && i < rows->recording->nr_processes; i++)
		jit_close(rows->jits[i].jit);
	free(rows->jits);
	free(rows->rows);
	free(rows->binaries);
	symbols_free(rows->symbols);
}
