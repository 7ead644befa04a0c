// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil diff: prints the changes between two recordings, or writes a page that shows them
 */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "commands/command.h"
#include "commands/outfile.h"
#include "profile/buffer.h"
#include "profile/changes.h"
#include "profile/escape.h"
#include "text/accounting.h"
#include "text/text.h"

/* The titles of the numbers before the first key, with the widths of these columns. */
#define TITLES_TIME	"    A (s)     B (s)    change     +-      p"
#define TITLES_SHARE	"        A         B    change     +-      p"

/* Totals are the same if the smaller one is at least this part of the other one. */
#define SAME_TIME	0.99

/* A smaller probability is printed as "<" and this one. */
#define CHANCE_MIN	(1 / 1e99)

struct diff {
	const char *paths[2];
	struct recording *recordings[2];
	struct rows rows[2];
	struct changes changes;
	struct text_options options;
	const char *symfs;
	bool demangle;
	bool no_pager;
	bool csv;
	bool html;
	char *uneven;		/* a binary because of which no inlined functions are compared */
	struct outfile file;
};

static bool set_html(const struct command_setting *setting)
{
	struct diff *diff = setting->member;

	diff->html = true;
	outfile_set_path(&diff->file, setting->value);
	return true;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct diff *diff)
{
	int status = command_parse(&command_diff, argc, argv, diff);

	if (status >= 0)
		return status;
	if (argc - optind < 2) {
		warnx("two recordings are needed");
		return COMMAND_USAGE;
	}
	if (argc - optind > 2) {
		warnx("unexpected argument \"%s\"", argv[optind + 2]);
		return COMMAND_USAGE;
	}
	diff->paths[0] = argv[optind];
	diff->paths[1] = argv[optind + 1];
	if (diff->html && diff->csv) {
		warnx("--html and --csv exclude each other");
		return COMMAND_USAGE;
	}
	if (!outfile_check(&diff->file, diff->paths[0]) ||
	    !outfile_check(&diff->file, diff->paths[1]))
		return COMMAND_USAGE;
	return -1;
}

/* ---- reading ---- */

static bool make_rows(struct diff *diff, int side, bool inlined)
{
	struct rows *rows = &diff->rows[side];

	rows_free(rows);
	*rows = (struct rows){
		.demangle = diff->demangle,
		.symfs = diff->symfs,
		.inlined = inlined,
	};
	/* The page shows stacks. */
	rows->options.chains = diff->html && recording_has_stacks(diff->recordings[side]);
	rows->options.keep_parts = rows->options.chains;
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_DSO];
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_SYMBOL];
	if (!rows_make(rows, diff->recordings[side])) {
		warn("%s", rows->symfs);
		return false;
	}
	diff->changes.rows[side] = rows;
	return true;
}

static bool read_recording(struct diff *diff, int side)
{
	const struct recording_filter all = { .cpu = -1, .keep_stacks = diff->html };
	const char *error, *path = diff->paths[side];

	diff->recordings[side] = recording_read(path, &all, &error);
	if (!diff->recordings[side]) {
		warnx("%s: %s", path, error);
		return false;
	}
	return make_rows(diff, side, diff->html);
}

/* Returns a binary whose debug information was found for one recording only; or NULL. */
static const struct profile_binary *find_uneven(const struct diff *diff)
{
	const struct rows *rows = diff->rows;
	const struct profile_binary *a, *b;
	u64 lacking[2];

	for (size_t i = 0; i < rows[0].recording->nr_files; i++)
		for (size_t j = 0; j < rows[1].recording->nr_files; j++) {
			a = &rows[0].binaries.files[i];
			b = &rows[1].binaries.files[j];
			lacking[0] = a->lacking[PLACE_LACKS_ALL];
			lacking[1] = b->lacking[PLACE_LACKS_ALL];
			if (a->ticks && b->ticks && !strcmp(a->label, b->label) &&
			    ((!lacking[0] && lacking[1] >= NOTE_SHARE * rows[1].ticks) ||
			     (!lacking[1] && lacking[0] >= NOTE_SHARE * rows[0].ticks)))
				return a;
		}
	return NULL;
}

/*
 * An older version of a program is most often gone, and its inlined functions with it. Then these
 * would seem to be new, so the functions that contain them are compared.
 */
static bool leave_out_inlined(struct diff *diff)
{
	const struct profile_binary *uneven = diff->html ? find_uneven(diff) : NULL;

	if (!uneven)
		return true;
	diff->uneven = xstrdup(uneven->label);
	return make_rows(diff, 0, false) && make_rows(diff, 1, false);
}

/* Returns true if the recording can be compared: not if damage has left no sample in it. */
static bool is_comparable(const struct diff *diff, int side)
{
	const struct recording *recording = diff->recordings[side];
	const char *problem = NULL;

	if (!recording->nr && (recording->skipped_bytes || recording->error))
		problem = "no sample can be read";
	else if (!diff->rows[side].ticks && diff->changes.shares)
		problem = "there are no samples, so there are no shares";
	else if (!recording->meta.tick_ns && !diff->changes.shares)
		problem = "its frequency is not known; use --share";
	if (problem)
		warnx("%s: %s", diff->paths[side], problem);
	return !problem;
}

/* ---- printing ---- */

static void print_numbers(FILE *out, const struct text_table *table, const struct row *row)
{
	const struct changes *changes = table->data;
	const struct change *change = &changes->changes[row - changes->names];
	const char *colour = "";

	if (table->options->colour)
		colour = change->difference > 0 ? TEXT_RED : TEXT_GREEN;
	if (changes->shares)
		fprintf(out, "%8.2f%% %8.2f%% %s%+8.2f%%%s %5.2f%%", 100 * change->value[0],
			100 * change->value[1], colour, 100 * change->difference,
			*colour ? TEXT_PLAIN : "", 100 * change->error);
	else
		fprintf(out, "%9.3f %9.3f %s%+9.3f%s %6.3f", change->value[0], change->value[1],
			colour, change->difference, *colour ? TEXT_PLAIN : "", change->error);
	if (change->chance < CHANCE_MIN)
		fprintf(out, " <%.0e", CHANCE_MIN);
	else
		fprintf(out, " %6.0e", change->chance);
}

static void print_value(FILE *out, const struct changes *changes, double value)
{
	if (changes->shares)
		fprintf(out, "%.2f%%", 100 * value);
	else
		fprintf(out, "%.3f s", value);
}

/* Prints how much the hottest function would have to change for a significant difference. */
static void print_nothing(FILE *out, const struct changes *changes)
{
	size_t hottest;
	double value;

	if (!changes->nr) {
		fputs("\nno function changed: there are no samples\n", out);
		return;
	}
	hottest = changes_sensitivity(changes, &value);
	fputs("\nno function changed significantly;\n  ", out);
	if (value <= __DBL_MAX__)
		print_value(out, changes, value);
	else
		fputs("no higher value", out);
	fputs(" instead of ", out);
	print_value(out, changes, changes->changes[hottest].value[0]);
	fputs(" in ", out);
	escape_print(out, changes->names[hottest].function.name);
	fputs(", the hottest one, would be significant\n", out);
}

/* Prints the warnings of both recordings, because the CSV format has no heading. */
static void print_warnings(FILE *out, const struct diff *diff)
{
	struct buffer buffer;
	char *text;

	for (int i = 0; i < 2; i++) {
		buffer_open(&buffer);
		text_warnings(buffer.out, diff->recordings[i]);
		text = buffer_close(&buffer);
		if (*text) {
			escape_print(out, diff->paths[i]);
			fprintf(out, ":\n%s", text);
		}
		free(text);
	}
}

static void print_modes(FILE *out, const struct diff *diff)
{
	if (diff->recordings[0]->meta.modes != diff->recordings[1]->meta.modes)
		fprintf(out, "%swarning: only one of the recordings has ticks in the kernel%s\n",
			diff->options.colour ? TEXT_YELLOW : "",
			diff->options.colour ? TEXT_PLAIN : "");
}

/* Says why functions can seem to be faster although nobody has changed them. */
static void print_same_time(FILE *out, const struct changes *changes)
{
	double seconds[2], more = 0, less = 0;

	for (int i = 0; i < 2; i++)
		seconds[i] = (double)changes->rows[i]->ticks *
			     changes->rows[i]->recording->meta.tick_ns;
	for (size_t i = 0; i < changes->nr_significant; i++)
		*(changes->changes[i].difference > 0 ? &more : &less) += 1;
	if (!changes->shares && more && less && seconds[1] > SAME_TIME * seconds[0] &&
	    seconds[0] > SAME_TIME * seconds[1])
		fputs("note: A and B have the same CPU time in total; if the program runs for a\n"
		      "  fixed time, a function that does less work seems to be faster\n", out);
}

static void print_text(FILE *out, const struct diff *diff)
{
	const struct changes *changes = &diff->changes;
	struct rows shown = diff->rows[0];
	struct text_table table = {
		.rows = &shown,
		.options = &diff->options,
		.numbers = changes->shares ? TITLES_SHARE : TITLES_TIME,
		.print_numbers = print_numbers,
		.data = changes,
	};

	print_modes(out, diff);
	for (int i = 0; i < 2; i++) {
		fprintf(out, "%c: ", 'A' + i);
		escape_print(out, diff->paths[i]);
		putc('\n', out);
		text_heading(out, &diff->rows[i], &diff->options);
	}
	if (!changes->nr_significant) {
		print_nothing(out, changes);
		return;
	}
	fprintf(out, "\n%s of %s functions changed significantly\n",
		number(changes->nr_significant).text, number(changes->nr).text);
	print_same_time(out, changes);
	shown.rows = changes->names;
	shown.nr = changes->nr_significant;
	text_table(out, &table);
}

static void print_csv(FILE *out, const struct diff *diff)
{
	const struct changes *changes = &diff->changes;

	fputs("a,b,change,error,p,changed,dso,symbol\n", out);
	for (size_t i = 0; i < changes->nr; i++) {
		const struct change *change = &changes->changes[i];

		fprintf(out, "%.9g,%.9g,%.9g,%.9g,%.3g,%d", change->value[0], change->value[1],
			change->difference, change->error, change->chance,
			i < changes->nr_significant);
		for (size_t j = 0; j < diff->rows[0].nr_keys; j++)
			export_csv_key(out, diff->rows[0].keys[j], &changes->names[i]);
		putc('\n', out);
	}
	print_modes(stderr, diff);
	print_warnings(stderr, diff);
}

/* Writes the page. Returns false after an error message. */
static bool write_html(struct diff *diff)
{
	struct export_diff data = { .changes = &diff->changes, .paths = diff->paths };
	struct changes with_callees = {
		.rows = { &diff->rows[0], &diff->rows[1] },
		.shares = diff->changes.shares,
		.with_callees = true,
	};
	struct buffer buffer;
	char *notes;
	bool done;

	/* The write then fails, and its error is reported. */
	signal(SIGPIPE, SIG_IGN);
	buffer_open(&buffer);
	print_modes(buffer.out, diff);
	if (diff->uneven) {
		fputs("note: inlined functions are not shown, since only one recording has debug\n"
		      "  information of ", buffer.out);
		escape_print(buffer.out, diff->uneven);
		fputs(": they would seem to be new\n", buffer.out);
	}
	if (!diff->changes.nr_significant)
		print_nothing(buffer.out, &diff->changes);
	print_same_time(buffer.out, &diff->changes);
	notes = buffer_close(&buffer);
	data.notes = notes;
	if (diff->rows[0].options.chains && diff->rows[1].options.chains) {
		changes_make(&with_callees);
		data.with_callees = &with_callees;
	}
	done = outfile_write(&diff->file, export_diff_html, &data);
	if (done) {
		print_modes(stderr, diff);
		print_warnings(stderr, diff);
	}
	if (data.with_callees)
		changes_free(&with_callees);
	free(notes);
	return done;
}

/* Prints the changes. Returns the exit status. */
static int print_diff(struct diff *diff)
{
	FILE *out;
	bool done;

	if (!is_comparable(diff, 0) || !is_comparable(diff, 1))
		return COMMAND_FAILED;
	changes_make(&diff->changes);
	if (diff->html) {
		done = write_html(diff);
	} else if (diff->csv) {
		print_csv(stdout, diff);
		done = true;
	} else {
		text_get_terminal(&diff->options);
		out = diff->no_pager ? stdout : text_open_pager();
		print_text(out, diff);
		done = text_close_pager(out);
		if (!done)
			warn("cannot write");
	}
	changes_free(&diff->changes);
	return done ? 0 : COMMAND_FAILED;
}

static int run(int argc, char **argv)
{
	struct diff diff = { .demangle = true };
	int status;

	status = parse_options(argc, argv, &diff);
	if (status >= 0)
		return status;
	status = COMMAND_FAILED;
	if (read_recording(&diff, 0) && read_recording(&diff, 1) && leave_out_inlined(&diff))
		status = print_diff(&diff);
	for (int i = 0; i < 2; i++) {
		rows_free(&diff.rows[i]);
		if (diff.recordings[i])
			recording_free(diff.recordings[i]);
	}
	free(diff.uneven);
	return status;
}

static const struct command_option options[] = {
	{ .name = "share", .help = "compare shares instead of CPU time",
	  .set = command_set_true, .offset = offsetof(struct diff, changes.shares) },
	{ .name = "full-names", .help = "do not shorten names to the width of the terminal",
	  .set = command_set_true, .offset = offsetof(struct diff, options.full_names) },
	{ .name = "no-demangle", .help = "do not demangle names",
	  .set = command_set_false, .offset = offsetof(struct diff, demangle) },
	{ .name = "symfs", .value = "DIR", .help = "find binaries and debug files below DIR",
	  .set = command_set_text, .offset = offsetof(struct diff, symfs) },
	{ .name = "no-pager", .help = "do not use a pager",
	  .set = command_set_true, .offset = offsetof(struct diff, no_pager) },
	{ .name = "csv", .help = "print all functions as comma-separated values",
	  .set = command_set_true, .offset = offsetof(struct diff, csv) },
	{ .name = "html", .value = "FILE",
	  .help = "write a page for a browser, with a flame graph of B",
	  .set = set_html },
	COMMAND_HELP
};

const struct command command_diff = {
	.name = "diff",
	.about = "compare two recordings, by function",
	.usage = "[OPTION...] A B",
	.help = "Prints the functions whose CPU time differs between the recordings A and B.",
	.operand = "FILE",
	.options = options,
	.run = run,
};
