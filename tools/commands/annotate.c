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
#include "output/escape.h"
#include "output/listing.h"
#include "recording/accounting.h"

struct annotate {
	const char *path;
	struct rows_filter function;
	struct rows rows;
	struct listing listing;
	struct output_options options;
	int no_pager;			/* int: getopt_long() sets it */
};

static void usage(FILE *out)
{
	fputs("usage: profil annotate [OPTION...] [SYMBOL]\n"
	      "\n"
	      "Prints the source lines and instructions of a function, with their ticks:\n"
	      "of the function SYMBOL, or of the function with the most ticks.\n"
	      "\n"
	      "  -i, --input FILE    read FILE (" COMMAND_DATA "); - is standard input\n"
	      "      --dso NAME      only functions of this program or library\n"
	      "      --full-names    do not shorten lines to the width of the terminal\n"
	      "      --no-demangle   do not demangle names\n"
	      "      --symfs DIR     find binaries, debug files and source files below DIR\n"
	      "      --no-pager      do not use a pager\n"
	      "  -h, --help          print this help\n", out);
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct annotate *annotate)
{
	enum { SYMFS = 256, DSO };
	const struct option table[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "dso", required_argument, NULL, DSO },
		{ "full-names", no_argument, &annotate->options.full_names, true },
		{ "no-demangle", no_argument, &annotate->rows.demangle, false },
		{ "symfs", required_argument, NULL, SYMFS },
		{ "no-pager", no_argument, &annotate->no_pager, true },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option;

	while ((option = getopt_long(argc, argv, "i:h", table, NULL)) >= 0) {
		switch (option) {
		case 'i':
			annotate->path = optarg;
			break;
		case DSO:
			annotate->function.dso = optarg;
			break;
		case SYMFS:
			annotate->rows.symfs = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 0:		/* getopt_long() has set the option */
			break;
		default:
			usage(stderr);
			return COMMAND_USAGE;
		}
	}
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
		if (!rows->rows[i].unnamed && row_matches(&annotate->function, &rows->rows[i]) &&
		    !nr++)
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

	output_get_terminal(&annotate->options);
	out = annotate->no_pager ? stdout : output_open_pager();
	output_heading(out, &annotate->rows, &annotate->options);
	if (nr > 1 && annotate->function.symbol)
		fprintf(out, "note: %s functions match; this one has the most ticks\n",
			number(nr).text);
	listing_print(out, &annotate->listing, &annotate->options);
	done = output_close_pager(out);
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
		output_warnings(stderr, recording);
		warnx("%s: no function%s has ticks", annotate->path,
		      annotate->function.symbol || annotate->function.dso ? " that matches" : "");
	}
	done = nr && make_listing(annotate) && print_listing(annotate, nr);
	listing_free(listing);
	rows_free(&annotate->rows);
	symbols_free(listing->symbols);
	return done ? 0 : COMMAND_FAILED;
}

int command_annotate(int argc, char **argv)
{
	const struct recording_filter all = { .cpu = -1 };
	struct annotate annotate = {
		.path = COMMAND_DATA,
		.rows = { .demangle = true },
	};
	struct recording *recording;
	const char *error;
	int status;

	command_set_name(argv, "profil annotate");
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
