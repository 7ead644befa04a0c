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

#include "commands/input.h"
#include "commands/outfile.h"
#include "profile/chains.h"
#include "text/text.h"

struct report {
	struct input input;
	struct text_options options;
	bool no_pager;
	bool csv;
	bool children;
	const char *callers;
	const char *callees;
	const struct export_format *format;
	struct outfile file;
};

static struct command_word key_word(size_t index)
{
	const char *name = index < ROWS_KEYS_MAX ? row_keys[index].name : NULL;

	return (struct command_word) { .name = name };
}

static bool set_html(const struct command_setting *setting)
{
	struct report *report = setting->member;

	report->format = &export_html;
	report->input.rows.inlined = true;
	outfile_set_path(&report->file, setting->value);
	return true;
}

/* Checks the options about callers. Returns false after an error message. */
static bool check_calls(const struct report *report)
{
	const struct rows *rows = &report->input.rows;
	const char *name = report->children ? "--children" :
			   report->callers ? "--callers" : "--callees";
	const char *other = NULL;

	if (report->children + !!report->callers + !!report->callees > 1)
		other = report->callees ? "--callees" : "--callers";
	else if (report->csv)
		other = "--csv";
	else if (report->format)
		other = "--html";
	else if (!rows_by_function(rows))
		other = "--sort";
	if (other)
		warnx("%s and %s exclude each other",
		      !strcmp(name, other) ? "--callers" : name, other);
	return !other;
}

static bool has_calls(const struct report *report)
{
	return report->children || report->callers || report->callees;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct report *report)
{
	const struct rows *rows = &report->input.rows;
	int status = command_parse(&command_report, argc, argv, report);

	if (status >= 0)
		return status;
	if (!input_check_options(&report->input, argc, argv))
		return COMMAND_USAGE;
	for (size_t i = 0; i < rows->nr_keys; i++) {
		report->input.filter.keep_cpus |= rows->keys[i] == &row_keys[ROWS_BY_CPU];
		report->input.filter.keep_seconds |= rows->keys[i] == &row_keys[ROWS_BY_TIME];
	}
	if (report->format && (report->csv || report->options.lines)) {
		warnx("--html and %s exclude each other", report->csv ? "--csv" : "-n");
		return COMMAND_USAGE;
	}
	if (has_calls(report) && !check_calls(report))
		return COMMAND_USAGE;
	if (!outfile_check(&report->file, report->input.path))
		return COMMAND_USAGE;
	report->input.rows.options.chains = has_calls(report);
	return -1;
}

static void write_text(FILE *out, const struct report *report)
{
	const struct rows *rows = &report->input.rows;

	if (report->csv)
		export_csv.write(out, rows);
	else if (report->children)
		text_children(out, rows, &report->options);
	else if (report->callers || report->callees)
		text_calls(out, rows, &report->options, report->callers ?: report->callees,
			   report->callers);
	else
		text_report(out, rows, &report->options);
}

/* Returns false after an error message if there are no callers to print. */
static bool check_stacks(const struct report *report)
{
	const struct rows *rows = &report->input.rows;
	const char *pattern = report->callers ?: report->callees;

	if (!has_calls(report))
		return true;
	if (!rows->options.chains)
		warnx("%s: there are no stacks; record with --stacks", report->input.path);
	else if (rows->nr && pattern && !chains_match(rows_chains(rows), pattern))
		warnx("%s: no function matches %s", report->input.path, pattern);
	else
		return true;
	return false;
}

/* Prints the report. Returns false if it cannot be written. */
static bool print_report(struct report *report)
{
	const struct rows *rows = &report->input.rows;
	FILE *out;
	bool done;

	text_get_terminal(&report->options);
	out = report->no_pager || report->csv ? stdout : text_open_pager();
	write_text(out, report);
	if (report->csv)
		text_warnings(stderr, rows->recording);
	done = text_close_pager(out);
	if (!done)
		warn("cannot write");
	return done;
}

/* Writes the report in the format. Returns false after an error message. */
static bool write_report(struct report *report)
{
	struct input *input = &report->input;

	input->rows.options = report->format->rows;
	input->filter.keep_cpus |= input->rows.options.keep_parts;
	input->filter.keep_times = input->rows.options.keep_parts;
	/* The write then fails, and its error is reported. */
	signal(SIGPIPE, SIG_IGN);
	if (!input_read(input) || !input_check_rows(input) ||
	    !outfile_write_rows(&report->file, report->format, &input->rows))
		return false;
	text_warnings(stderr, input->recording);
	return true;
}

static int run(int argc, char **argv)
{
	struct report report = { .input = INPUT_INIT };
	struct rows *rows = &report.input.rows;
	int status;

	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_DSO];
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_SYMBOL];
	status = parse_options(argc, argv, &report);
	if (status < 0 && report.format) {
		status = write_report(&report) ? 0 : COMMAND_FAILED;
	} else if (status < 0) {
		status = COMMAND_FAILED;
		if (input_read(&report.input) && check_stacks(&report) && print_report(&report) &&
		    input_check_rows(&report.input))
			status = 0;
	}
	input_free(&report.input);
	return status;
}

static const struct command_option options[] = {
	{ .name = "sort", .letter = 's', .value = "KEYS",
	  .help = "print a line for each combination of KEYS",
	  .set = input_set_keys, .offset = offsetof(struct report, input.rows),
	  .word = key_word, .is_list = true },
	{ .name = "inline", .help = "print lines for inlined functions",
	  .set = command_set_true, .offset = offsetof(struct report, input.rows.inlined) },
	{ .name = "children", .letter = 'g',
	  .help = "print the share of each function with its callees",
	  .set = command_set_true, .offset = offsetof(struct report, children) },
	{ .name = "callers", .value = "NAME", .help = "print the callers of a function as a tree",
	  .set = command_set_text, .offset = offsetof(struct report, callers) },
	{ .name = "callees", .value = "NAME", .help = "print the callees of a function as a tree",
	  .set = command_set_text, .offset = offsetof(struct report, callees) },
	{ .name = "lines", .letter = 'n', .value = "N", .help = "print the first N lines only",
	  .set = command_set_lines, .offset = offsetof(struct report, options.lines) },
	INPUT_OPTIONS(struct report),
	{ .name = "full-names", .help = "do not shorten names to the width of the terminal",
	  .set = command_set_true, .offset = offsetof(struct report, options.full_names) },
	{ .name = "no-pager", .help = "do not use a pager",
	  .set = command_set_true, .offset = offsetof(struct report, no_pager) },
	{ .name = "csv", .help = "print comma-separated values",
	  .set = command_set_true, .offset = offsetof(struct report, csv) },
	{ .name = "html", .value = "FILE",
	  .help = "write a page for a browser; - is standard output",
	  .set = set_html },
	{ .name = "verbose", .letter = 'v', .help = "print how all ticks were counted",
	  .set = command_set_true, .offset = offsetof(struct report, options.verbose) },
	{ .name = "stdio", .set = command_set_nothing },
	{ .name = "no-children", .set = command_set_false,
	  .offset = offsetof(struct report, children) },
	COMMAND_HELP
};

const struct command command_report = {
	.name = "report",
	.about = "print a recording, by function",
	.usage = "[OPTION...]",
	.help = "Prints a recording.",
	.options = options,
	.run = run,
};
