// SPDX-License-Identifier: GPL-2.0-or-later
/* The heading of a report: warnings, what was recorded, and notes */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <libiberty/libiberty.h>

#include "profile/buffer.h"
#include "profile/escape.h"
#include "text/accounting.h"
#include "text/notes.h"
#include "text/text.h"

#define WARNING "warning: "
/* Longer lines lose their middle, unless the terminal is wider. */
#define WIDTH_MIN 80

/* ---- warnings ---- */

static void print_damage(FILE *out, const struct recording *recording)
{
	if (recording->skipped_bytes)
		fprintf(out, WARNING "the file is damaged; %" PRIu64 " bytes in %" PRIu64
			" place%s cannot be read\n", recording->skipped_bytes,
			recording->nr_skips, recording->nr_skips == 1 ? "" : "s");
	if (recording->error)
		fprintf(out, WARNING "the file cannot be read from byte %" PRIu64 " on: %s\n",
			recording->error_offset, recording->error);
	else if (!recording->ended && !recording->busy && !recording->skipped_bytes)
		fputs(WARNING "the recording was cut off; its last second may be missing\n", out);
}

/* Prints a warning if @part of @whole ticks can change a share by more than its largest error. */
static void print_lost(FILE *out, u64 part, u64 whole, u64 nr, const char *description)
{
	if (!part || (double)part / whole <= 0.5 / sqrt(nr ?: 1))
		return;
	fprintf(out, WARNING "%s of %s ticks (%.2f%%) %s\n", number(part).text,
		number(whole).text, 100.0 * part / whole, description);
}

void text_warnings(FILE *out, const struct recording *recording)
{
	const struct format_stats *stats = &recording->account.stats;
	u64 nr = recording->nr + recording->filtered, sampled = nr + recording->account.own;

	print_damage(out, recording);
	detached_print(out, WARNING, recording->detached, recording->nr_detached);
	/* The statistics are older than the last samples if the recorder was interrupted. */
	if (stats->ticks > sampled && !recording->skipped_bytes && !recording->error)
		print_lost(out, stats->ticks - sampled, stats->ticks, nr, "left no sample");
	print_lost(out, stats->missed, stats->ticks + stats->unselected + stats->missed, nr,
		   "were missed;\n"
		   "  each counts with the next sample: shares can be wrong by more than +- says");
}

/* Joins the lines of a paragraph: all but the first one are indented. */
static void join_lines(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '\n' && from[1] == ' ')
			from++;
		else
			*to++ = *from;
	}
	*to = '\0';
}

/* Returns the paragraphs of the text. */
char **text_paragraphs(char *text)
{
	char **list = NULL, *rest = text, *line;
	size_t nr = 0;

	join_lines(text);
	do {
		line = strsep(&rest, "\n");
		if (line && !*line)
			continue;
		if (!array_grow(&list, nr, sizeof(*list)))
			xmalloc_failed(sizeof(*list));
		list[nr++] = line ? xstrdup(line) : NULL;
	} while (line);
	free(text);
	return list;
}

char **text_list_warnings(const struct recording *recording)
{
	struct buffer buffer;

	buffer_open(&buffer);
	text_warnings(buffer.out, recording);
	return text_paragraphs(buffer_close(&buffer));
}

/* ---- what was recorded ---- */

/* The CPU time of the machine is not measured. */
static bool is_of_machine(const struct recording *recording)
{
	return recording->meta.flags & FORMAT_MACHINE;
}

static void print_command(FILE *out, const struct recording *recording)
{
	if (!recording->has_meta)
		return;
	if (recording->meta.flags & FORMAT_ATTACHED)
		fprintf(out, "process %d: ", recording->meta.pid);
	else if (!is_of_machine(recording))
		fputs("command: ", out);
	escape_print(out, recording->meta.command);
	putc('\n', out);
}

static void print_samples(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct format_stats *stats = &recording->account.stats;
	u64 nr = recording->nr + recording->filtered, tick_ns = recording->meta.tick_ns;
	double hz = tick_ns ? (double)NS_PER_S / tick_ns : 0;

	if (!nr && recording->has_account && !is_of_machine(recording) && !recording->nr_detached &&
	    !stats->expected && !stats->unselected && !stats->missed) {
		fputs("no samples: it used no CPU time\n", out);
		return;
	}
	fprintf(out, "%s sample%s", number(nr).text, nr == 1 ? "" : "s");
	if (hz >= 10)
		fprintf(out, " at %s Hz", number(hz + 0.5).text);
	else if (hz)
		fprintf(out, " at %.3g Hz", hz);
	if (recording->has_account && !is_of_machine(recording) && !recording->skipped_bytes &&
	    !recording->error)
		fprintf(out, ": %.2f s of CPU time",
			(double)stats->expected * tick_ns / NS_PER_S);
	if (recording->busy)
		fputs("; the recording continues", out);
	putc('\n', out);
}

/* Says that the recorder has changed what the command does. */
static void print_runtimes(FILE *out, const struct recording *recording)
{
	if (recording->meta.flags & FORMAT_RUNTIMES)
		fputs("note: recorded with --runtimes, which changes the command\n", out);
}

/* Says that the recording is not all of the command: daemons, for example, go on. */
static void print_left(FILE *out, const struct recording *recording)
{
	const u64 left = recording->account.stats.targets;

	if (!recording->ended || recording->end.reason != FORMAT_END_COMMAND || !left ||
	    recording->meta.flags & (FORMAT_ATTACHED | FORMAT_MACHINE))
		return;
	fprintf(out, "note: %s process%s of the command still ran when the recording ended\n",
		number(left).text, left == 1 ? "" : "es");
}

static void print_filter(FILE *out, const struct rows *rows)
{
	if (!rows->filter.text)
		return;
	fputs("only", out);
	escape_print(out, rows->filter.text);
	fprintf(out, ": %s of %s ticks (%.2f%%)\n", number(rows->nr_ticks).text,
		number(rows->recording->nr + rows->recording->filtered).text,
		100.0 * rows->ticks / (rows->recording->periods ?: 1));
}

static void print_place_and_time(FILE *out, const struct recording *recording)
{
	const struct format_meta *meta = &recording->meta;
	u64 duration = recording_duration(recording);
	time_t seconds = meta->start_time / NS_PER_S;
	int status = recording->end.status;
	char when[64];
	struct tm tm;

	fputs("on ", out);
	escape_print(out, *meta->hostname ? meta->hostname : PROFILE_UNKNOWN);
	fputs(" (Linux ", out);
	escape_print(out, *meta->release ? meta->release : PROFILE_UNKNOWN);
	fputs(")", out);
	if (meta->start_time && localtime_r(&seconds, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		fprintf(out, ", %s", when);
	if (duration)
		fprintf(out, ", %.1f s", (double)duration / NS_PER_S);
	if (recording->account.peak_locked)
		fprintf(out, ", %" PRIu64 " KiB locked", recording->account.peak_locked / 1024);
	if (recording->ended && recording->end.reason == FORMAT_END_COMMAND && WIFEXITED(status))
		fprintf(out, ", exit status %d", WEXITSTATUS(status));
	else if (recording->ended && recording->end.reason == FORMAT_END_COMMAND)
		fprintf(out, ", killed by signal %d", WTERMSIG(status));
	putc('\n', out);
}

/* @ask: Ask which packages have debug files. */
static void print_heading(FILE *out, const struct rows *rows, bool verbose, bool ask)
{
	const struct recording *recording = rows->recording;

	print_command(out, recording);
	print_samples(out, rows);
	print_left(out, recording);
	print_runtimes(out, recording);
	if (verbose) {
		print_place_and_time(out, recording);
		accounting_print(out, &recording->account, recording->meta.modes,
				 is_of_machine(recording));
	}
	print_filter(out, rows);
	notes_print(out, rows, ask);
}

void text_heading(FILE *out, const struct rows *rows, const struct text_options *options)
{
	const size_t width = options->width < WIDTH_MIN ? WIDTH_MIN : options->width;
	struct buffer buffer;
	char *text, *end;
	size_t warnings;

	buffer_open(&buffer);
	text_warnings(buffer.out, rows->recording);
	fflush(buffer.out);
	warnings = buffer.size;
	print_heading(buffer.out, rows, options->verbose, true);
	text = buffer_close(&buffer);
	fputs(options->colour ? TEXT_YELLOW : "", out);
	for (char *line = text; *line; line = end + 1) {
		if (line == text + warnings)
			fputs(options->colour ? TEXT_PLAIN : "", out);
		end = strchr(line, '\n');
		*end = '\0';
		if (!options->verbose && !options->full_names)
			escape_fit(line, width);
		fprintf(out, "%s\n", line);
	}
	free(text);
}

char **text_list_about(const struct rows *rows)
{
	struct buffer buffer;

	buffer_open(&buffer);
	print_heading(buffer.out, rows, true, false);
	return text_paragraphs(buffer_close(&buffer));
}
