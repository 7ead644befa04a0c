// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text format: a heading about the recording, and a table with a line for each row
 *
 * A recording of profil record and the counters of a process have different headings. They also
 * have different columns between the standard error and the keys.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "output/escape.h"
#include "output/output.h"
#include "recording/accounting.h"

#define NS_PER_MS 1e6

/* Maximum width of a column, except for the last one. */
#define WIDTH_MAX 56
#define COMMAND_MAX 500
/* A note names at most this many binaries. */
#define BINARIES_MAX 5

/* ---- the heading of a file ---- */

/* Prints @arg with the quotes that a shell needs. */
static void print_arg(FILE *out, const char *arg)
{
	bool quote = !*arg || arg[strcspn(arg, " \t\n'\"\\$`&|;<>()*?[]{}#~!")];
	const char *end;
	char *part;

	if (!quote) {
		escape_print(out, arg);
		return;
	}
	putc('\'', out);
	for (; *arg; arg = *end ? end + 1 : end) {
		end = strchrnul(arg, '\'');
		part = strndup(arg, end - arg);
		if (part)
			escape_print(out, part);
		free(part);
		if (*end)
			fputs("'\\''", out);
	}
	putc('\'', out);
}

static void print_command(FILE *out, const struct format_meta *meta)
{
	const char *arg = meta->args;
	size_t width = 0;

	fputs("command:", out);
	if (!meta->nr_args)
		fputs(" none; a process that ran already", out);
	for (u32 i = 0; i < meta->nr_args; i++) {
		width += escape_width(arg) + 1;
		if (width > COMMAND_MAX) {
			fputs(" ...", out);
			break;
		}
		putc(' ', out);
		print_arg(out, arg);
		arg += strlen(arg) + 1;
	}
	putc('\n', out);
}

static void print_end(FILE *out, const struct recording *recording)
{
	int status = recording->end.status;

	if (!recording->ended) {
		fputs(recording->busy ? ", still being recorded" : ", recording was cut off", out);
		return;
	}
	switch (recording->end.reason) {
	case FORMAT_END_COMMAND:
		if (WIFEXITED(status))
			fprintf(out, ", exit status %d", WEXITSTATUS(status));
		else if (WIFSIGNALED(status))
			fprintf(out, ", killed by signal %d", WTERMSIG(status));
		break;
	case FORMAT_END_SIGNAL:
		fputs(", ended by a signal", out);
		break;
	case FORMAT_END_DURATION:
		fputs(", ended after the duration", out);
		break;
	case FORMAT_END_TARGETS:
		fputs(", ended with the last process", out);
		break;
	}
}

static void print_place_and_time(FILE *out, const struct recording *recording)
{
	const struct format_meta *meta = &recording->meta;
	u64 end = recording->ended ? recording->end.time : recording->account.time;
	time_t seconds = meta->start_time / NS_PER_S;
	char when[64];
	struct tm tm;

	fputs("on ", out);
	escape_print(out, *meta->hostname ? meta->hostname : ROWS_UNKNOWN);
	fputs(" (Linux ", out);
	escape_print(out, *meta->release ? meta->release : ROWS_UNKNOWN);
	fputs(")", out);
	if (meta->start_time && localtime_r(&seconds, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		fprintf(out, ", %s", when);
	if (end > meta->start_monotonic)
		fprintf(out, ", %.1f s", (double)(end - meta->start_monotonic) / NS_PER_S);
	if (meta->tick_ns)
		fprintf(out, ", %.5g Hz", (double)NS_PER_S / meta->tick_ns);
	if (recording->account.peak_locked)
		fprintf(out, ", %" PRIu64 " KiB locked", recording->account.peak_locked / 1024);
	print_end(out, recording);
	putc('\n', out);
}

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_resolved(FILE *out, const struct rows *rows)
{
	u64 user = rows->recording->user;

	if (!user)
		return;
	fprintf(out, "user ticks: %.2f%% in files, ", percent(rows->user_in_files, user));
	if (rows->user_in_jit)
		fprintf(out, "%.2f%% in code made at run time, ",
			percent(rows->user_in_jit, user));
	fprintf(out, "%.2f%% in other memory; %.2f%% in functions with a name\n",
		percent(rows->user_in_memory, user), percent(rows->user_in_symbols, user));
}

static int compare_binaries(const void *a, const void *b)
{
	const struct rows_binary *x = *(struct rows_binary *const *)a;
	const struct rows_binary *y = *(struct rows_binary *const *)b;

	return compare_u64(y->ticks, x->ticks);
}

/*
 * Prints a note if binaries in @state have ticks: their share of all ticks, and the names of those
 * with the most ticks. Returns false if there is no memory.
 */
static bool print_state(FILE *out, const struct rows *rows, enum binary_state state,
			const char *description)
{
	size_t nr = 0, all = rows->recording->nr_files;
	struct rows_binary **binaries = calloc(all + 1, sizeof(*binaries));
	u64 ticks = 0;

	if (!binaries)
		return false;
	for (size_t i = 0; i < all; i++) {
		struct rows_binary *binary = &rows->binaries[i];

		if (!binary->ticks || binary->state != state)
			continue;
		binaries[nr++] = binary;
		ticks = ticks_add(ticks, binary->ticks);
	}
	qsort(binaries, nr, sizeof(*binaries), compare_binaries);
	for (size_t i = 0; i < nr && i < BINARIES_MAX; i++) {
		if (i)
			fputs(", ", out);
		else
			fprintf(out, "note: %.2f%% of the ticks are shown as offsets (file %s): ",
				percent(ticks, rows->ticks), description);
		escape_print(out, binaries[i]->label);
	}
	if (nr > BINARIES_MAX)
		fprintf(out, " and %zu more", nr - BINARIES_MAX);
	if (nr)
		putc('\n', out);
	free(binaries);
	return true;
}

static bool print_notes(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	u64 counted = ticks_add(recording->account.user.ticks, recording->account.system.ticks);

	if (recording->error)
		fprintf(out, "note: the file is not read from byte %" PRIu64 " on: %s\n",
			recording->error_offset, recording->error);
	if (counted > rows->ticks)
		fprintf(out,
			"note: %" PRIu64 " of %" PRIu64 " ticks left no sample in the recording\n",
			counted - rows->ticks, counted);
	else if (counted < rows->ticks)
		fprintf(out,
			"note: the samples have %" PRIu64 " more ticks than the statistics\n",
			rows->ticks - counted);
	return print_state(out, rows, BINARY_CHANGED, "changed since the recording") &&
	       print_state(out, rows, BINARY_GONE, "no longer exists") &&
	       print_state(out, rows, BINARY_UNREADABLE, "cannot be read");
}

static bool print_heading(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;

	accounting_print(out, &recording->account, recording->meta.modes);
	print_command(out, &recording->meta);
	print_place_and_time(out, recording);
	print_resolved(out, rows);
	return print_notes(out, rows);
}

/* ---- the heading of the counters of a process ---- */

static double seconds_of(const struct rows *rows, u64 ticks)
{
	return (double)ticks * rows->recording->meta.tick_ns / NS_PER_S;
}

static void print_classic_heading(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;

	fprintf(out, "process %d: %" PRIu64 " ticks", recording->processes[0].data.pid,
		rows->ticks);
	if (recording->meta.tick_ns)
		fprintf(out, " of %.6g ms, %.3f s", recording->meta.tick_ns / NS_PER_MS,
			seconds_of(rows, rows->ticks));
	if (recording->elsewhere)
		fprintf(out, "; %" PRIu64 " of them for no single address",
			recording->elsewhere);
	putc('\n', out);
	if (recording->nr_full)
		fprintf(out,
			"note: %" PRIu64 " counters are full; there may have been more ticks\n",
			recording->nr_full);
}

/* ---- the table ---- */

/* Returns the text of a row in one column, escaped; the caller frees it. */
static char *cell_text(const struct row_key *key, const struct row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	key->print(out, row);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void print_cell(FILE *out, const struct rows *rows, size_t i, const char *text,
		       size_t width)
{
	size_t used = escape_width(text);
	bool last = i + 1 == rows->nr_keys;

	fprintf(out, "  %s%*s", text, last || used > width ? 0 : (int)(width - used), "");
}

static void print_numbers(FILE *out, const struct rows *rows, const struct row *row)
{
	u64 ticks = row_ticks(row);
	double share = rows->ticks ? (double)ticks / rows->ticks : 0;
	double error = rows->ticks ? sqrt(share * (1 - share) / rows->ticks) : 0;

	fprintf(out, "%7.2f%% %5.2f%% ", 100 * share, 100 * error);
	if (!rows->recording->is_classic)
		fprintf(out, "%9" PRIu64 " %9" PRIu64, row->user, row->system);
	else if (rows->recording->meta.tick_ns)
		fprintf(out, "%9" PRIu64 " %9.3f", ticks, seconds_of(rows, ticks));
	else
		fprintf(out, "%9" PRIu64 " %9s", ticks, "-");
}

static bool print_row(FILE *out, const struct rows *rows, const struct row *row,
		      const size_t *widths)
{
	print_numbers(out, rows, row);
	for (size_t i = 0; i < rows->nr_keys; i++) {
		char *text = cell_text(rows->keys[i], row);

		if (!text)
			return false;
		print_cell(out, rows, i, text, widths[i]);
		free(text);
	}
	putc('\n', out);
	return true;
}

/* Finds the width of a column: that of the widest of the @nr rows that are printed. */
static bool column_width(const struct row_key *key, const struct rows *rows, size_t nr,
			 size_t *width)
{
	*width = strlen(key->title);
	for (size_t i = 0; i < nr; i++) {
		char *text = cell_text(key, &rows->rows[i]);
		size_t used;

		if (!text)
			return false;
		used = escape_width(text);
		if (used > *width)
			*width = used < WIDTH_MAX ? used : WIDTH_MAX;
		free(text);
	}
	return true;
}

static bool print_table(FILE *out, const struct rows *rows)
{
	const bool is_classic = rows->recording->is_classic;
	size_t nr = rows->nr, widths[ROWS_KEYS_MAX];
	u64 rest = 0;

	if (rows->lines && rows->lines < nr)
		nr = rows->lines;
	for (size_t i = 0; i < rows->nr_keys; i++)
		if (!column_width(rows->keys[i], rows, nr, &widths[i]))
			return false;
	fprintf(out, "\n%8s %6s %9s %9s", "share", "+-", is_classic ? "ticks" : "user",
		is_classic ? "seconds" : "system");
	for (size_t i = 0; i < rows->nr_keys; i++)
		print_cell(out, rows, i, rows->keys[i]->title, widths[i]);
	putc('\n', out);
	for (size_t i = 0; i < nr; i++)
		if (!print_row(out, rows, &rows->rows[i], widths))
			return false;
	for (size_t i = nr; i < rows->nr; i++)
		rest = ticks_add(rest, row_ticks(&rows->rows[i]));
	if (nr < rows->nr)
		fprintf(out, "%7.2f%%  in %zu more\n", percent(rest, rows->ticks), rows->nr - nr);
	return true;
}

static bool text_write(FILE *out, const struct rows *rows)
{
	if (!rows->recording->is_classic)
		return print_heading(out, rows) && print_table(out, rows);
	print_classic_heading(out, rows);
	if (!rows->ticks)
		return true;
	if (!print_table(out, rows))
		return false;
	/* A further report may follow, with --wait: separate them by an empty line. */
	putc('\n', out);
	return true;
}

const struct output_format output_text = {
	.name = "text",
	.write = text_write,
};
