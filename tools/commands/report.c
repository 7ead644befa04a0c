// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil report: prints a recording
 */
#define _GNU_SOURCE
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/command.h"
#include "commands/input.h"
#include "commands/outfile.h"

struct report {
	struct input input;
	struct output_options options;
	int no_pager;			/* int: getopt_long() sets it */
	int csv;
	const struct output_format *format;
	struct outfile file;
};

static void usage(FILE *out)
{
	fputs("usage: profil report [OPTION...]\n"
	      "\n"
	      "Prints a recording.\n"
	      "\n"
	      INPUT_HELP_FILE
	      "  -s, --sort KEYS     print a line for each symbol, dso, process, thread, comm,\n"
	      "                      cpu, mode, offset or srcline, or each combination of them\n"
	      "      --inline        print lines for inlined functions\n"
	      "  -n, --lines N       print the first N lines only\n"
	      INPUT_HELP
	      "      --full-names    do not shorten names to the width of the terminal\n"
	      "      --no-pager      do not use a pager\n"
	      "      --csv           print comma-separated values\n"
	      "      --html FILE     write a page for a browser, with all rows; - is standard output\n"
	      "  -v, --verbose       print how all ticks were counted\n"
	      "  -h, --help          print this help\n", out);
}

/* Appends a key to the columns. The symbol is always the last column, because it is the widest. */
static bool add_key(struct rows *rows, const struct row_key *key)
{
	size_t at = rows->nr_keys;

	for (size_t i = 0; i < rows->nr_keys; i++) {
		if (rows->keys[i] == key) {
			warnx("--sort has %s twice", key->name);
			return false;
		}
	}
	if (at && rows->keys[at - 1] == &row_keys[ROWS_BY_SYMBOL]) {
		rows->keys[at] = rows->keys[at - 1];
		at--;
	}
	rows->keys[at] = key;
	rows->nr_keys++;
	return true;
}

static bool parse_keys(struct report *report, char *names)
{
	char *name;
	size_t i;

	report->input.rows.nr_keys = 0;
	while ((name = strsep(&names, ","))) {
		for (i = 0; i < ROWS_KEYS_MAX && strcmp(name, row_keys[i].name); i++)
			;
		if (i < ROWS_KEYS_MAX) {
			if (!add_key(&report->input.rows, &row_keys[i]))
				return false;
			report->input.filter.keep_cpus |= i == ROWS_BY_CPU;
			continue;
		}
		warnx("cannot sort by \"%s\"; the keys are:", name);
		for (i = 0; i < ROWS_KEYS_MAX; i++)
			fprintf(stderr, "%s%s", i ? ", " : "  ", row_keys[i].name);
		fputs("\n", stderr);
		return false;
	}
	return true;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct report *report)
{
	enum { HTML = 256 };
	const struct option table[] = {
		INPUT_OPTIONS,
		{ "sort", required_argument, NULL, 's' },
		{ "lines", required_argument, NULL, 'n' },
		{ "full-names", no_argument, &report->options.full_names, true },
		{ "no-pager", no_argument, &report->no_pager, true },
		{ "inline", no_argument, &report->input.rows.inlined, true },
		{ "csv", no_argument, &report->csv, true },
		{ "html", required_argument, NULL, HTML },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char sort[] = "dso,symbol";
	int option, index = 0;

	parse_keys(report, sort);
	while ((option = getopt_long(argc, argv, "i:s:n:vh", table, &index)) >= 0) {
		switch (option) {
		case 's':
			if (!parse_keys(report, optarg))
				return COMMAND_USAGE;
			break;
		case 'n':
			if (!command_parse_number(optarg, UINT64_MAX, &report->options.lines)) {
				warnx("-n: \"%s\" is not a number of lines", optarg);
				return COMMAND_USAGE;
			}
			break;
		case 'v':
			report->options.verbose = true;
			break;
		case HTML:
			report->format = &output_html;
			outfile_set_path(&report->file, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 0:		/* getopt_long() has set the option */
			break;
		case '?':
			usage(stderr);
			return COMMAND_USAGE;
		default:
			if (!input_set_option(&report->input, option, table[index].name, optarg))
				return COMMAND_USAGE;
		}
	}
	if (!input_check_options(&report->input, argc, argv))
		return COMMAND_USAGE;
	if (report->format && (report->csv || report->options.lines)) {
		warnx("--html and %s exclude each other", report->csv ? "--csv" : "-n");
		return COMMAND_USAGE;
	}
	if (!outfile_check(&report->file, report->input.path))
		return COMMAND_USAGE;
	return -1;
}

/* Prints the report. Returns false if it cannot be written. */
static bool print_report(struct report *report)
{
	const struct rows *rows = &report->input.rows;
	FILE *out;
	bool done;

	output_get_terminal(&report->options);
	out = report->no_pager || report->csv ? stdout : output_open_pager();
	if (report->csv) {
		output_csv.write(out, rows);
		output_warnings(stderr, rows->recording);
	} else {
		output_text(out, rows, &report->options);
	}
	done = output_close_pager(out);
	if (!done)
		warn("cannot write");
	return done;
}

/* Writes the report in the format. Returns false after an error message. */
static bool write_report(struct report *report)
{
	struct input *input = &report->input;

	input->rows.lines = report->format->lines;
	input->rows.keep_parts = report->format->keep_parts;
	input->filter.keep_cpus |= report->format->keep_parts;
	input->filter.keep_times = report->format->keep_parts;
	/* The error of the write is reported instead. */
	signal(SIGPIPE, SIG_IGN);
	if (!input_read(input) || !input_check_rows(input) ||
	    !outfile_write(&report->file, report->format, &input->rows))
		return false;
	output_warnings(stderr, input->recording);
	return true;
}

int command_report(int argc, char **argv)
{
	struct report report = { .input = INPUT_INIT };
	int status;

	command_set_name(argv, "profil report");
	status = parse_options(argc, argv, &report);
	if (status < 0 && report.format) {
		status = write_report(&report) ? 0 : COMMAND_FAILED;
	} else if (status < 0) {
		status = COMMAND_FAILED;
		if (input_read(&report.input) && print_report(&report) &&
		    input_check_rows(&report.input))
			status = 0;
	}
	input_free(&report.input);
	return status;
}
