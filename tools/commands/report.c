// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil report: prints a recording
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "commands/command.h"
#include "output/output.h"

struct report {
	const char *path;
	struct output_options options;
	struct recording_filter filter;
	struct rows rows;
	int no_pager;			/* int: getopt_long() sets it */
	int csv;
};

static void usage(FILE *out)
{
	fputs("usage: profil report [OPTION...]\n"
	      "\n"
	      "Prints a recording.\n"
	      "\n"
	      "  -i, --input FILE    read FILE (" COMMAND_DATA "); - is standard input\n"
	      "  -s, --sort KEYS     print a line for each symbol, dso, process, thread, comm,\n"
	      "                      cpu, mode, offset or srcline, or each combination of them\n"
	      "      --inline        print lines for inlined functions\n"
	      "  -n, --lines N       print the first N lines only\n"
	      "      --comm NAME     only threads with this name; * stands for any text\n"
	      "      --dso NAME      only this program or library\n"
	      "      --symbol NAME   only this function\n"
	      "      --thread TID    only this thread\n"
	      "      --cpu N         only this CPU\n"
	      "      --from S        only from S seconds after the start on\n"
	      "      --to S          only to S seconds after the start\n"
	      "      --full-names    do not shorten names to the width of the terminal\n"
	      "      --no-demangle   do not demangle names\n"
	      "      --symfs DIR     find binaries and debug files below DIR\n"
	      "      --no-pager      do not use a pager\n"
	      "      --csv           print comma-separated values\n"
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

	report->rows.nr_keys = 0;
	while ((name = strsep(&names, ","))) {
		for (i = 0; i < ROWS_KEYS_MAX && strcmp(name, row_keys[i].name); i++)
			;
		if (i < ROWS_KEYS_MAX) {
			if (!add_key(&report->rows, &row_keys[i]))
				return false;
			report->filter.keep_cpus |= i == ROWS_BY_CPU;
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

/* Sets the filter of option @name. */
static bool parse_filter(struct report *report, const char *name, char *value)
{
	struct rows_filter *rows = &report->rows.filter;
	struct recording_filter *filter = &report->filter;
	u64 number = 0;
	bool fine = true;

	if (!strcmp(name, "comm"))
		rows->comm = value;
	else if (!strcmp(name, "dso"))
		rows->dso = value;
	else if (!strcmp(name, "symbol"))
		rows->symbol = value;
	else if (!strcmp(name, "from"))
		fine = command_parse_time(value, &filter->from);
	else if (!strcmp(name, "to"))
		fine = command_parse_time(value, &filter->to) && filter->to;
	else
		fine = command_parse_number(value, INT_MAX, &number) ||
		       (!strcmp(name, "cpu") && !strcmp(value, "0"));
	if (!strcmp(name, "thread"))
		rows->tid = number;
	else if (!strcmp(name, "cpu"))
		filter->cpu = number;
	if (!fine)
		warnx("--%s: \"%s\" is not valid", name, value);
	rows->text = reconcat(rows->text, rows->text ?: "", " --", name, " ", value, NULL);
	return fine;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct report *report)
{
	enum { FILTER = 256, SYMFS };
	const struct option table[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "sort", required_argument, NULL, 's' },
		{ "lines", required_argument, NULL, 'n' },
		{ "comm", required_argument, NULL, FILTER },
		{ "dso", required_argument, NULL, FILTER },
		{ "symbol", required_argument, NULL, FILTER },
		{ "thread", required_argument, NULL, FILTER },
		{ "cpu", required_argument, NULL, FILTER },
		{ "from", required_argument, NULL, FILTER },
		{ "to", required_argument, NULL, FILTER },
		{ "full-names", no_argument, &report->options.full_names, true },
		{ "no-demangle", no_argument, &report->rows.demangle, false },
		{ "no-pager", no_argument, &report->no_pager, true },
		{ "symfs", required_argument, NULL, SYMFS },
		{ "inline", no_argument, &report->rows.inlined, true },
		{ "csv", no_argument, &report->csv, true },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char sort[] = "dso,symbol";
	int option, index;

	parse_keys(report, sort);
	while ((option = getopt_long(argc, argv, "i:s:n:vh", table, &index)) >= 0) {
		switch (option) {
		case 'i':
			report->path = optarg;
			break;
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
		case FILTER:
			if (!parse_filter(report, table[index].name, optarg))
				return COMMAND_USAGE;
			break;
		case SYMFS:
			report->rows.symfs = optarg;
			break;
		case 'v':
			report->options.verbose = true;
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
	if (optind < argc) {
		warnx("unexpected argument \"%s\"; use -i to read another file", argv[optind]);
		return COMMAND_USAGE;
	}
	if (report->filter.to && report->filter.from >= report->filter.to) {
		warnx("--from must be less than --to");
		return COMMAND_USAGE;
	}
	return -1;
}

/* Prints the report. Returns the exit status. */
static int print_report(struct report *report, const struct recording *recording)
{
	FILE *out;
	bool done;

	if (!rows_make(&report->rows, recording)) {
		warn("%s", report->rows.symfs);
		return COMMAND_FAILED;
	}
	output_get_terminal(&report->options);
	out = report->no_pager || report->csv ? stdout : output_open_pager();
	if (report->csv)
		output_csv(out, &report->rows);
	else
		output_text(out, &report->rows, &report->options);
	done = output_close_pager(out);
	if (!done)
		warn("cannot write");
	if (!report->rows.nr && (recording->skipped_bytes || recording->error))
		warnx("%s: no sample can be read", report->path);
	else if (!report->rows.nr && report->rows.filter.text)
		warnx("%s: no sample matches%s", report->path, report->rows.filter.text);
	else
		return done ? 0 : COMMAND_FAILED;
	return COMMAND_FAILED;
}

int command_report(int argc, char **argv)
{
	struct report report = {
		.path = COMMAND_DATA,
		.filter = { .cpu = -1 },
		.rows = { .demangle = true },
	};
	struct recording *recording;
	const char *error;
	int status;

	command_set_name(argv, "profil report");
	status = parse_options(argc, argv, &report);
	if (status >= 0)
		goto free_filter;
	recording = recording_read(report.path, &report.filter, &error);
	if (recording) {
		status = print_report(&report, recording);
		rows_free(&report.rows);
		recording_free(recording);
	} else {
		warnx("%s: %s", report.path, error);
		status = COMMAND_FAILED;
	}

free_filter:
	free(report.rows.filter.text);
	return status;
}
