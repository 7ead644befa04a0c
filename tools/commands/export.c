// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil export: converts a recording to the format of another program
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/command.h"
#include "commands/input.h"
#include "commands/outfile.h"

static const struct output_format *const formats[] = {
	&output_pprof,
	&output_callgrind,
	&output_folded,
	&output_speedscope,
	&output_firefox,
	&output_gmon,
	&output_llvm,
	&output_json,
	&output_csv,
};

#define NR_FORMATS (sizeof(formats) / sizeof(*formats))

struct export {
	struct input input;
	const struct output_format *format;
	struct outfile file;
};

static void usage(FILE *out)
{
	fputs("usage: profil export --format FORMAT [OPTION...]\n"
	      "\n"
	      "Converts a recording to a format that another program reads:\n"
	      "\n", out);
	for (size_t i = 0; i < NR_FORMATS; i++)
		fprintf(out, "  %-10s %s\n", formats[i]->name, formats[i]->about);
	fputs("\n"
	      INPUT_HELP_FILE
	      "  -o, --output FILE   write FILE; - is standard output, the default\n"
	      INPUT_HELP
	      "  -h, --help          print this help\n", out);
}

static bool set_format(struct export *export, const char *name)
{
	for (size_t i = 0; i < NR_FORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			export->format = formats[i];
	if (export->format && !strcmp(export->format->name, name))
		return true;
	warnx("there is no format \"%s\"; the formats are:", name);
	for (size_t i = 0; i < NR_FORMATS; i++)
		fprintf(stderr, "%s%s", i ? ", " : "  ", formats[i]->name);
	fputs("\n", stderr);
	return false;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct export *export)
{
	enum { FORMAT = 256 };
	static const struct option table[] = {
		INPUT_OPTIONS,
		{ "format", required_argument, NULL, FORMAT },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "i:o:h", table, &index)) >= 0) {
		switch (option) {
		case FORMAT:
			if (!set_format(export, optarg))
				return COMMAND_USAGE;
			break;
		case 'o':
			outfile_set_path(&export->file, optarg);
			break;
		case 'h':
			usage(stdout);
			return 0;
		case '?':
			usage(stderr);
			return COMMAND_USAGE;
		default:
			if (!input_set_option(&export->input, option, table[index].name, optarg))
				return COMMAND_USAGE;
		}
	}
	if (!input_check_options(&export->input, argc, argv))
		return COMMAND_USAGE;
	if (!export->format) {
		warnx("--format is missing; \"profil export --help\" lists the formats");
		return COMMAND_USAGE;
	}
	if (!outfile_check(&export->file, export->input.path))
		return COMMAND_USAGE;
	if (export->format->is_binary && !export->file.path && isatty(STDOUT_FILENO)) {
		warnx("a terminal cannot show the format %s; use -o", export->format->name);
		return COMMAND_USAGE;
	}
	return -1;
}

/* Gets the rows that the format needs. */
static bool read_rows(struct export *export)
{
	const struct output_format *format = export->format;
	struct rows *rows = &export->input.rows;

	for (size_t i = 0; i < format->nr_keys; i++)
		rows->keys[i] = &row_keys[format->keys[i]];
	rows->nr_keys = format->nr_keys;
	rows->in_order = format->in_order;
	rows->lines = format->lines;
	return input_read(&export->input) && input_check_rows(&export->input);
}

int command_export(int argc, char **argv)
{
	struct export export = { .input = INPUT_INIT };
	int status;

	command_set_name(argv, "profil export");
	status = parse_options(argc, argv, &export);
	if (status < 0) {
		/* The error of the write is reported instead. */
		signal(SIGPIPE, SIG_IGN);
		status = COMMAND_FAILED;
		if (read_rows(&export) &&
		    outfile_write(&export.file, export.format, &export.input.rows)) {
			output_warnings(stderr, export.input.recording);
			status = 0;
		}
	}
	input_free(&export.input);
	return status;
}
