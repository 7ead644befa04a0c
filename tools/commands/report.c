// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil report: prints a recording
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "output/output.h"

static void usage(FILE *out)
{
	fputs("usage: profil report [OPTION...]\n"
	      "\n"
	      "Prints a recording.\n"
	      "\n"
	      "  -i, --input FILE    read FILE (" COMMAND_DATA "); - is standard input\n"
	      "  -s, --sort KEYS     print a line for each symbol, dso, process, thread or comm,\n"
	      "                      or for each combination of several keys (symbol,dso)\n"
	      "  -n, --lines N       print the first N lines only\n"
	      "      --no-demangle   do not demangle names\n"
	      "  -h, --help          print this help\n", out);
}

static bool parse_keys(struct rows *rows, char *names)
{
	char *name;
	size_t i;

	rows->nr_keys = 0;
	while ((name = strsep(&names, ","))) {
		for (i = 0; i < ROWS_KEYS_MAX && strcmp(name, row_keys[i].name); i++)
			;
		if (i == ROWS_KEYS_MAX) {
			warnx("cannot sort by \"%s\"; see \"profil report --help\"", name);
			return false;
		}
		for (size_t j = 0; j < rows->nr_keys; j++) {
			if (rows->keys[j] == &row_keys[i]) {
				warnx("--sort has %s twice", name);
				return false;
			}
		}
		rows->keys[rows->nr_keys++] = &row_keys[i];
	}
	return true;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct rows *rows, const char **path)
{
	static const struct option options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "sort", required_argument, NULL, 's' },
		{ "lines", required_argument, NULL, 'n' },
		{ "no-demangle", no_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char sort[] = "symbol,dso";
	int option;

	parse_keys(rows, sort);
	while ((option = getopt_long(argc, argv, "i:s:n:h", options, NULL)) >= 0) {
		switch (option) {
		case 'i':
			*path = optarg;
			break;
		case 's':
			if (!parse_keys(rows, optarg))
				return COMMAND_USAGE;
			break;
		case 'n':
			if (!command_parse_number(optarg, UINT64_MAX, &rows->lines)) {
				warnx("-n: \"%s\" is not a number of lines", optarg);
				return COMMAND_USAGE;
			}
			break;
		case 'm':
			rows->demangle = false;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return COMMAND_USAGE;
		}
	}
	if (optind < argc) {
		warnx("unexpected argument \"%s\"; use -i to read another file", argv[optind]);
		return COMMAND_USAGE;
	}
	return -1;
}

static bool has_threads(const struct rows *rows, const struct recording *recording)
{
	for (size_t i = 0; i < rows->nr_keys; i++)
		if (!strcmp(rows->keys[i]->name, "thread"))
			return recording->meta.flags & FORMAT_PER_THREAD;
	return true;
}

int command_report(int argc, char **argv)
{
	struct rows rows = { .demangle = true };
	struct recording *recording;
	const char *path = COMMAND_DATA, *error;
	int status;

	command_set_name(argv, "profil report");
	status = parse_options(argc, argv, &rows, &path);
	if (status >= 0)
		return status;
	recording = recording_read(path, &error);
	if (!recording) {
		warnx("%s: %s", path, error);
		return COMMAND_FAILED;
	}
	status = COMMAND_FAILED;
	if (!has_threads(&rows, recording))
		warnx("%s: recorded without --per-thread", path);
	else if (!rows_make(&rows, recording) || !output_text.write(stdout, &rows))
		warnx("%s", strerror(ENOMEM));
	else
		status = 0;
	rows_free(&rows);
	recording_free(recording);
	return status;
}
