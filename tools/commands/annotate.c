// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil annotate: prints the source lines and instructions of a function
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "commands/command.h"
#include "profile/escape.h"
#include "profile/listing.h"
#include "text/accounting.h"
#include "text/text.h"

/* An inlined function is shown in the functions that contain the most of its ticks. */
#define CALLERS_MAX 10

/**
 * struct annotate - The functions to print
 * @function: What the user asks for.
 * @rows: All functions.
 * @inlined: The same with inlined functions instead of those that contain them, if it was made.
 * @name: The inlined function; or NULL.
 * @nr_matching: The number of functions that match.
 * @nr_skipped: The number of rows with more ticks that are not functions.
 * @nr_callers: The number of functions that contain the inlined one.
 */
struct annotate {
	const char *path;
	struct rows_filter function;
	struct rows rows;
	struct rows inlined;
	const char *name;
	size_t nr_matching;
	size_t nr_skipped;
	size_t nr_callers;
	struct listing listings[CALLERS_MAX];
	size_t nr;
	struct symbols *symbols;
	struct text_options options;
	bool no_pager;
};

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct annotate *annotate)
{
	int status = command_parse(&command_annotate, argc, argv, annotate);

	if (status >= 0)
		return status;
	if (argc - optind > 1) {
		warnx("unexpected argument \"%s\"", argv[optind + 1]);
		return COMMAND_USAGE;
	}
	annotate->function.symbol = argv[optind];
	return -1;
}

static void set_rows(struct rows *rows)
{
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_DSO];
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_SYMBOL];
	rows->options.keep_parts = true;
}

static void add_function(struct annotate *annotate, const struct row *row)
{
	if (annotate->nr < CALLERS_MAX)
		annotate->listings[annotate->nr++] = (struct listing) {
			.symbols = annotate->symbols,
			.rows = &annotate->rows,
			.row = row,
		};
}

/* Returns the matching row with the most ticks, or NULL. Sets the number of matching ones. */
static const struct row *find_row(struct annotate *annotate, const struct rows *rows)
{
	const struct row *found = NULL;

	annotate->nr_matching = 0;
	annotate->nr_skipped = 0;
	/* The rows with the most ticks come first. */
	for (size_t i = 0; i < rows->nr; i++) {
		if (!row_matches(&annotate->function, &rows->rows[i]))
			continue;
		if (rows->rows[i].function.unnamed) {
			annotate->nr_skipped += !found;
			continue;
		}
		if (!found)
			found = &rows->rows[i];
		annotate->nr_matching++;
	}
	return found;
}

/* A function that contains an inlined one */
struct caller {
	const struct row *row;
	u64 ticks;			/* of the inlined function there */
};

static int compare_callers(const void *a, const void *b)
{
	const struct caller *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: strcmp(x->row->function.name,
							 y->row->function.name);
}

/* Adds the functions that contain samples of the inlined function. */
static void add_callers(struct annotate *annotate, const struct row *inlined)
{
	const struct rows *rows = &annotate->rows;
	const struct recording_sample *first = rows->recording->samples;
	bool *is_in = xcalloc(rows->recording->nr_samples + 1, sizeof(*is_in));
	struct caller *callers = xcalloc(rows->nr + 1, sizeof(*callers));

	for (size_t i = 0; i < inlined->nr_parts; i++)
		is_in[inlined->parts[i].sample - first] = true;
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];

		callers[i].row = row;
		for (size_t j = 0; j < row->nr_parts; j++)
			if (is_in[row->parts[j].sample - first])
				callers[i].ticks = ticks_add(callers[i].ticks,
							     row_ticks(&row->parts[j]));
	}
	qsort(callers, rows->nr, sizeof(*callers), compare_callers);
	for (; annotate->nr_callers < rows->nr && callers[annotate->nr_callers].ticks;
	     annotate->nr_callers++)
		add_function(annotate, callers[annotate->nr_callers].row);
	free(callers);
	free(is_in);
}

/* Finds the functions to print: the one that matches, or those that contain it. */
static bool find_functions(struct annotate *annotate, const struct recording *recording)
{
	const struct row *row = find_row(annotate, &annotate->rows);
	struct rows *inlined = &annotate->inlined;

	if (row || !annotate->function.symbol) {
		if (row)
			add_function(annotate, row);
		return row;
	}
	set_rows(inlined);
	inlined->demangle = annotate->rows.demangle;
	inlined->symfs = annotate->rows.symfs;
	inlined->inlined = true;
	rows_make(inlined, recording);
	row = find_row(annotate, inlined);
	if (!row)
		return false;
	annotate->name = row->function.name;
	add_callers(annotate, row);
	return annotate->nr;
}

static void print_not_found(const struct annotate *annotate)
{
	const char *symbol = annotate->function.symbol, *dso = annotate->function.dso;

	if (symbol || dso)
		warnx("%s: no function with ticks matches \"%s\"%s%s; \"profil report\" lists them",
		      annotate->path, symbol ?: "*", dso ? " in " : "", dso ?: "");
	else
		warnx("%s: no function has ticks", annotate->path);
}

/* Makes a listing. Returns false after an error message. The caller frees the listing. */
static bool make_listing(const struct annotate *annotate, struct listing *listing)
{
	const struct recording_file *file = listing->row->sample->file;
	const char *problem = "its code is not in a file";
	char *name, *binary;

	if (file && !(file->data.flags & (FORMAT_FILE_NONE | FORMAT_FILE_GENERATED)))
		problem = listing_make(listing);
	if (!problem && annotate->name)
		listing_keep(listing, annotate->name);
	if (!problem)
		return true;
	name = row_text(&row_keys[ROWS_BY_SYMBOL], listing->row);
	binary = row_text(&row_keys[ROWS_BY_DSO], listing->row);
	warnx("%s in %s: %s", name, binary, problem);
	free(name);
	free(binary);
	return false;
}

static void print_notes(FILE *out, const struct annotate *annotate)
{
	if (annotate->nr_matching > 1 && annotate->function.symbol)
		fprintf(out, "note: %s functions match; this one has the most ticks\n",
			number(annotate->nr_matching).text);
	if (annotate->nr_skipped)
		fprintf(out, "note: %s of the report %s more ticks, but no code to show\n",
			annotate->nr_skipped == 1 ? "one row" : "several rows",
			annotate->nr_skipped == 1 ? "has" : "have");
	if (annotate->nr_callers > CALLERS_MAX)
		fprintf(out, "note: it is inlined into %s functions; these have the most ticks\n",
			number(annotate->nr_callers).text);
}

static bool print_listings(struct annotate *annotate)
{
	FILE *out;
	bool done;

	text_get_terminal(&annotate->options);
	out = annotate->no_pager ? stdout : text_open_pager();
	text_heading(out, &annotate->rows, &annotate->options);
	print_notes(out, annotate);
	for (size_t i = 0; i < annotate->nr; i++)
		if (annotate->listings[i].row)
			text_listing(out, &annotate->listings[i], &annotate->options);
	done = text_close_pager(out);
	if (!done)
		warn("cannot write");
	return done;
}

/* Makes the listings, and prints those that can be made. Returns false after an error message. */
static bool print_functions(struct annotate *annotate)
{
	size_t made = 0;
	bool done;

	for (size_t i = 0; i < annotate->nr; i++) {
		if (make_listing(annotate, &annotate->listings[i]))
			made++;
		else
			annotate->listings[i].row = NULL;
	}
	done = made && print_listings(annotate);
	for (size_t i = 0; i < annotate->nr; i++)
		listing_free(&annotate->listings[i]);
	return done;
}

/* Prints the functions. Returns the exit status. */
static int print_recording(struct annotate *annotate, const struct recording *recording)
{
	struct rows *rows = &annotate->rows;
	bool done = false;

	set_rows(rows);
	annotate->symbols = symbols_new(rows->demangle, rows->symfs);
	if (!annotate->symbols || !rows_make(rows, recording)) {
		warn("%s", rows->symfs);
		symbols_free(annotate->symbols);
		return COMMAND_FAILED;
	}
	if (find_functions(annotate, recording)) {
		done = print_functions(annotate);
	} else {
		text_warnings(stderr, recording);
		print_not_found(annotate);
	}
	rows_free(&annotate->inlined);
	rows_free(rows);
	symbols_free(annotate->symbols);
	return done ? 0 : COMMAND_FAILED;
}

static int run(int argc, char **argv)
{
	const struct recording_filter all = { .cpu = -1 };
	struct annotate annotate = {
		.path = COMMAND_DATA,
		.rows = { .demangle = true },
	};
	struct recording *recording;
	const char *error;
	int status;

	status = parse_options(argc, argv, &annotate);
	if (status >= 0)
		return status;
	recording = recording_read(annotate.path, &all, &error);
	if (!recording) {
		warnx("%s: %s", annotate.path, error);
		return COMMAND_FAILED;
	}
	status = print_recording(&annotate, recording);
	recording_free(recording);
	return status;
}

static const struct command_option options[] = {
	{ .name = "input", .letter = 'i', .value = "FILE",
	  .help = "read FILE (" COMMAND_DATA "); - is standard input",
	  .set = command_set_text, .offset = offsetof(struct annotate, path) },
	{ .name = "dso", .value = "NAME", .help = "only functions of this program or library",
	  .set = command_set_text, .offset = offsetof(struct annotate, function.dso) },
	{ .name = "full-names", .help = "do not shorten lines to the width of the terminal",
	  .set = command_set_true, .offset = offsetof(struct annotate, options.full_names) },
	{ .name = "no-demangle", .help = "do not demangle names",
	  .set = command_set_false, .offset = offsetof(struct annotate, rows.demangle) },
	{ .name = "symfs", .value = "DIR",
	  .help = "find binaries, debug files and source files below DIR",
	  .set = command_set_text, .offset = offsetof(struct annotate, rows.symfs) },
	{ .name = "no-pager", .help = "do not use a pager",
	  .set = command_set_true, .offset = offsetof(struct annotate, no_pager) },
	{ .name = "stdio", .set = command_set_nothing },
	COMMAND_HELP
};

const struct command command_annotate = {
	.name = "annotate",
	.about = "print the source lines and instructions of a function",
	.usage = "[OPTION...] [SYMBOL]",
	.help = "Prints the source lines and instructions of a function, with their ticks:\n"
		"of the function SYMBOL, or of the function with the most ticks.",
	.options = options,
	.run = run,
};
