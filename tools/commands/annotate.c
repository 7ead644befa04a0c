// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil annotate: prints the source lines and instructions of a function
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "profile/escape.h"
#include "profile/listing.h"
#include "text/accounting.h"
#include "text/text.h"

struct annotate {
	const char *path;
	struct rows_filter function;
	struct rows rows;
	struct listing listing;
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

/* Finds the matching function with the most ticks. Returns the number of matching ones. */
static size_t find_function(struct annotate *annotate)
{
	const struct rows *rows = &annotate->rows;
	size_t nr = 0;

	/* The rows with the most ticks come first. */
	for (size_t i = 0; i < rows->nr; i++)
		if (!rows->rows[i].function.unnamed &&
		    row_matches(&annotate->function, &rows->rows[i]) && !nr++)
			annotate->listing.row = &rows->rows[i];
	return nr;
}

/* Makes the listing. Returns false after an error message. The caller frees the listing. */
static bool make_listing(struct annotate *annotate)
{
	const struct row *row = annotate->listing.row;
	const struct recording_file *file = row->sample->file;
	const char *problem = "its code is not in a file";
	char *name, *binary;

	if (file && !(file->data.flags & FORMAT_FILE_NONE))
		problem = listing_make(&annotate->listing);
	if (!problem)
		return true;
	name = row_text(&row_keys[ROWS_BY_SYMBOL], row);
	binary = row_text(&row_keys[ROWS_BY_DSO], row);
	warnx("%s in %s: %s", name, binary, problem);
	free(name);
	free(binary);
	return false;
}

static bool print_listing(struct annotate *annotate, size_t nr)
{
	FILE *out;
	bool done;

	text_get_terminal(&annotate->options);
	out = annotate->no_pager ? stdout : text_open_pager();
	text_heading(out, &annotate->rows, &annotate->options);
	if (nr > 1 && annotate->function.symbol)
		fprintf(out, "note: %s functions match; this one has the most ticks\n",
			number(nr).text);
	text_listing(out, &annotate->listing, &annotate->options);
	done = text_close_pager(out);
	if (!done)
		warn("cannot write");
	return done;
}

/* Prints the function. Returns the exit status. */
static int print_function(struct annotate *annotate, const struct recording *recording)
{
	struct listing *listing = &annotate->listing;
	size_t nr;
	bool done;

	annotate->rows.keys[annotate->rows.nr_keys++] = &row_keys[ROWS_BY_DSO];
	annotate->rows.keys[annotate->rows.nr_keys++] = &row_keys[ROWS_BY_SYMBOL];
	listing->rows = &annotate->rows;
	listing->symbols = symbols_new(annotate->rows.demangle, annotate->rows.symfs);
	if (!listing->symbols || !rows_make(&annotate->rows, recording)) {
		warn("%s", annotate->rows.symfs);
		symbols_free(listing->symbols);
		return COMMAND_FAILED;
	}
	nr = find_function(annotate);
	if (!nr) {
		text_warnings(stderr, recording);
		warnx("%s: no function%s has ticks", annotate->path,
		      annotate->function.symbol || annotate->function.dso ? " that matches" : "");
	}
	done = nr && make_listing(annotate) && print_listing(annotate, nr);
	listing_free(listing);
	rows_free(&annotate->rows);
	symbols_free(listing->symbols);
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
	status = print_function(&annotate, recording);
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
