// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil export: converts a recording to the format of another program
 */
#define _GNU_SOURCE
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/input.h"
#include "commands/outfile.h"
#include "text/text.h"

static const struct export_format *const formats[] = {
	&export_pprof,
	&export_callgrind,
	&export_folded,
	&export_speedscope,
	&export_firefox,
	&export_gmon,
	&export_llvm,
	&export_bolt,
	&export_json,
	&export_csv,
};

#define NR_FORMATS (sizeof(formats) / sizeof(*formats))

struct export {
	struct input input;
	const struct export_format *format;
	struct outfile file;
};

static struct command_word format_word(size_t index)
{
	if (index == NR_FORMATS)
		return (struct command_word) { };
	return (struct command_word) { formats[index]->name, formats[index]->about };
}

static bool set_format(const struct command_setting *setting)
{
	const struct export_format **format = setting->member;

	for (size_t i = 0; i < NR_FORMATS; i++) {
		if (strcmp(formats[i]->name, setting->value))
			continue;
		*format = formats[i];
		return true;
	}
	warnx("there is no format \"%s\"; the formats are:", setting->value);
	command_print_words(format_word);
	return false;
}

static bool set_output(const struct command_setting *setting)
{
	outfile_set_path(setting->member, setting->value);
	return true;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct export *export)
{
	int status = command_parse(&command_export, argc, argv, export);

	if (status >= 0)
		return status;
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
	const struct export_format *format = export->format;
	struct rows *rows = &export->input.rows;

	for (size_t i = 0; i < format->nr_keys; i++)
		rows->keys[i] = &row_keys[format->keys[i]];
	rows->nr_keys = format->nr_keys;
	rows->options = format->rows;
	return input_read(&export->input) && input_check_rows(&export->input);
}

static int run(int argc, char **argv)
{
	struct export export = { .input = INPUT_INIT };
	int status = parse_options(argc, argv, &export);

	if (status < 0) {
		/* The write then fails, and its error is reported. */
		signal(SIGPIPE, SIG_IGN);
		status = COMMAND_FAILED;
		if (read_rows(&export) &&
		    outfile_write_rows(&export.file, export.format, &export.input.rows)) {
			text_warnings(stderr, export.input.recording);
			status = 0;
		}
	}
	input_free(&export.input);
	return status;
}

static const struct command_option options[] = {
	{ .name = "format", .value = "FORMAT", .help = "convert to FORMAT",
	  .set = set_format, .offset = offsetof(struct export, format), .word = format_word },
	{ .name = "output", .letter = 'o', .value = "FILE",
	  .help = "write FILE; - is standard output, the default",
	  .set = set_output, .offset = offsetof(struct export, file) },
	INPUT_OPTIONS(struct export),
	COMMAND_HELP
};

const struct command command_export = {
	.name = "export",
	.about = "convert a recording to the format of another program",
	.usage = "--format FORMAT [OPTION...]",
	.help = "Converts a recording to a format that another program reads.",
	.options = options,
	.run = run,
};
