// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil export: converts a recording to the format of another program
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "commands/input.h"
#include "output/output.h"

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

/**
 * struct export - The options, and the state of the output
 * @path: The file to write; NULL is standard output.
 * @temporary: The name of a new file until it is complete; or NULL.
 */
struct export {
	struct input input;
	const struct output_format *format;
	const char *path;
	char *temporary;
};

static struct command_word format_word(size_t index)
{
	if (index == NR_FORMATS)
		return (struct command_word) { };
	return (struct command_word) { formats[index]->name, formats[index]->about };
}

static bool set_format(const struct command_setting *setting)
{
	const struct output_format **format = setting->member;

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
	const char **path = setting->member;

	*path = strcmp(setting->value, "-") ? setting->value : NULL;
	return true;
}

/* Returns true if the output is the file that is read: its contents would be lost. */
static bool is_input(const struct export *export)
{
	struct stat in, out;

	return export->path && !stat(export->path, &out) && !stat(export->input.path, &in) &&
	       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
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
	if (is_input(export)) {
		warnx("%s: the output is the recording", export->path);
		return COMMAND_USAGE;
	}
	if (export->format->is_binary && !export->path && isatty(STDOUT_FILENO)) {
		warnx("a terminal cannot show the format %s; use -o", export->format->name);
		return COMMAND_USAGE;
	}
	return -1;
}

/* ---- the output ---- */

/*
 * Opens the output. A regular file has a temporary name until it is complete, so that an error
 * leaves no incomplete profile. Returns NULL with errno set on failure.
 */
static FILE *open_output(struct export *export)
{
	struct stat st;
	int fd;

	if (!export->path) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	} else if (!lstat(export->path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(export->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	} else {
		export->temporary = xasprintf("%s.XXXXXX", export->path);
		fd = mkostemp(export->temporary, O_CLOEXEC);
	}
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Closes the file, and gives it its name if @done. Returns false with errno set. */
static bool close_output(struct export *export, FILE *out, bool done)
{
	int error = 0;

	if (ferror(out))
		error = errno ?: EIO;
	if (fclose(out) && !error)
		error = errno;
	if (done && !error && export->temporary && rename(export->temporary, export->path))
		error = errno;
	if ((!done || error) && export->temporary)
		unlink(export->temporary);
	errno = error;
	return !error;
}

/* Writes the rows. Returns false after an error message. */
static bool write_rows(struct export *export)
{
	const char *path = export->path ?: "standard output", *reason;
	FILE *out = open_output(export);

	if (!out) {
		warn("%s", path);
		return false;
	}
	errno = 0;
	reason = export->format->write(out, &export->input.rows);
	if (!close_output(export, out, !reason)) {
		warn("%s", path);
		return false;
	}
	if (reason)
		warnx("%s", reason);
	return !reason;
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

static int run(int argc, char **argv)
{
	struct export export = { .input = INPUT_INIT };
	int status = parse_options(argc, argv, &export);

	if (status < 0) {
		/* The write then fails, and its error is reported. */
		signal(SIGPIPE, SIG_IGN);
		status = COMMAND_FAILED;
		if (read_rows(&export) && write_rows(&export)) {
			output_warnings(stderr, export.input.recording);
			status = 0;
		}
	}
	input_free(&export.input);
	free(export.temporary);
	return status;
}

static const struct command_option options[] = {
	{ .name = "format", .value = "FORMAT", .help = "convert to FORMAT",
	  .set = set_format, .offset = offsetof(struct export, format), .word = format_word },
	{ .name = "output", .letter = 'o', .value = "FILE",
	  .help = "write FILE; - is standard output, the default",
	  .set = set_output, .offset = offsetof(struct export, path) },
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
