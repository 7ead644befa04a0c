// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints a listing. The debug information names the source files, so these can be any files: only
 * regular ones that are not large are read.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/escape.h"
#include "profile/listing.h"
#include "text/accounting.h"
#include "text/text.h"

/* The titles of the numbers, with the widths of these columns. */
#define TITLES		"    ticks    share  "
#define TAB		8

/* The maximum size of a source file that is read, and of all source files together. */
#define SOURCE_MAX	(16LL << 20)
#define SOURCES_MAX	(256LL << 20)

/* This many of the hottest lines and instructions come first. */
#define HOT_MAX		10

/**
 * struct source - A source file, which is read up to the line that is printed
 * @file: The file; NULL if it is not read.
 * @line: The last line that was read.
 * @number: Its number.
 * @left: The number of bytes that may still be read from all files.
 */
struct source {
	FILE *file;
	char *line;
	size_t size;
	int number;
	off_t left;
};

static void close_source(struct source *source)
{
	if (source->file)
		fclose(source->file);
	source->file = NULL;
}

/* Opens the source file. Returns NULL, or what is wrong with it. */
static const char *open_source(struct source *source, const struct listing *listing,
			       const char *path)
{
	const u64 mtime = listing->row->sample->file->data.mtime;
	const char *problem = NULL;
	struct stat st;

	close_source(source);
	source->number = 0;
	source->file = path ? symbols_open_source(listing->symbols, path, &st) : NULL;
	if (!source->file)
		return path ? "is not here; see --symfs" : NULL;
	/* Files in /proc have no size. */
	if (mtime && time_ns(st.st_mtim) > mtime)
		problem = "is newer than the binary";
	else if (!st.st_size || st.st_size > SOURCE_MAX || st.st_size > source->left)
		problem = "is empty or too large";
	if (problem)
		close_source(source);
	else
		source->left -= st.st_size;
	return problem;
}

/* Returns line @number with blanks instead of tabs, which the caller frees; NULL if it has none. */
static char *read_line(struct source *source, int number)
{
	size_t column = 0;
	char *text;

	while (source->file && source->number < number) {
		if (getline(&source->line, &source->size, source->file) < 0)
			close_source(source);
		source->number++;
	}
	if (!source->file || !number || source->number != number)
		return NULL;
	source->line[strcspn(source->line, "\r\n")] = '\0';
	text = xmalloc(TAB * strlen(source->line) + 1);
	for (const char *at = source->line; *at; at++) {
		text[column++] = *at == '\t' ? ' ' : *at;
		while (*at == '\t' && column % TAB)
			text[column++] = ' ';
	}
	text[column] = '\0';
	return text;
}

/* Prints the ticks and their share of the function; blanks if there are none. */
static void print_ticks(FILE *out, const struct listing *listing, u64 ticks,
			const struct text_options *options)
{
	const double share = listing->ticks ? (double)ticks / listing->ticks : 0;
	const char *colour = text_colour(options, share);

	if (ticks)
		fprintf(out, "%9" PRIu64 " %s%7.2f%%%s  ", ticks, colour, 100 * share,
			*colour ? TEXT_PLAIN : "");
	else
		fprintf(out, "%*s", (int)strlen(TITLES), "");
}

/* Prints the end of a line, which @prefix begins. */
static void print_text(FILE *out, const char *prefix, const char *text,
		       const struct text_options *options)
{
	size_t width = options->width - strlen(TITLES) - strlen(prefix);
	char *escaped = escape_text(text);

	if (!options->full_names)
		escape_fit(escaped, width);
	fprintf(out, "%s%s\n", prefix, escaped);
	free(escaped);
}

static bool same_section(const struct listing_line *a, const struct listing_line *b)
{
	return !strcmp(a->source ?: "", b->source ?: "") &&
	       !strcmp(a->inlined ?: "", b->inlined ?: "");
}

static void print_section(FILE *out, const struct listing *listing, const struct listing_line *line,
			  struct source *source, const struct text_options *options)
{
	const char *inlined = NULL, *problem;
	char *title;

	if (line->inlined)
		inlined = symbols_inlined(listing->symbols, line->inlined);
	title = concat(line->source ?: "[no line]", inlined ? ", " : "", inlined ?: "", NULL);
	fputs("\n" TITLES, out);
	print_text(out, "", title, options);
	free(title);
	problem = open_source(source, listing, line->source);
	if (problem)
		fprintf(out, "%swarning: this file %s%s\n", options->colour ? TEXT_YELLOW : "",
			problem, options->colour ? TEXT_PLAIN : "");
}

static void print_instruction(FILE *out, const struct listing *listing,
			      const struct listing_line *line, const struct text_options *options)
{
	char prefix[32];

	print_ticks(out, listing, line->ticks, options);
	snprintf(prefix, sizeof(prefix), line->text ? "%10" PRIx64 "  " : "%10" PRIx64,
		 line->address);
	print_text(out, prefix, line->text ?: "", options);
}

/* Prints a source line, and the instructions from index @i to @end that belong to it. */
static void print_lines(FILE *out, const struct listing *listing, size_t i, size_t end,
			struct source *source, const struct text_options *options)
{
	const struct listing_line *lines = listing->lines;
	char prefix[32], *text;
	u64 ticks = 0;

	for (size_t j = i; j < end; j++)
		ticks = ticks_add(ticks, lines[j].ticks);
	if (lines[i].source) {
		print_ticks(out, listing, ticks, options);
		text = read_line(source, lines[i].number);
		snprintf(prefix, sizeof(prefix), text ? "%4d  " : "%4d", lines[i].number);
		print_text(out, prefix, text ?: "", options);
		free(text);
	}
	for (size_t j = i; j < end; j++)
		print_instruction(out, listing, &lines[j], options);
}

/* ---- the hottest lines and instructions ---- */

/* A source line, of which @line is the first instruction; or an instruction */
struct hot {
	const struct listing_line *line;
	u64 ticks;
};

static int compare_places(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;

	return strcmp(x->line->source, y->line->source) ?:
	       compare_u64(x->line->number, y->line->number) ?:
	       compare_u64(x->line->where, y->line->where);
}

static int compare_hot(const void *a, const void *b)
{
	const struct hot *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64(x->line->where, y->line->where);
}

static void print_hot_title(FILE *out, const char *title)
{
	fprintf(out, "\n" TITLES "%s\n", title);
}

static void print_hot_lines(FILE *out, const struct listing *listing, const struct hot *hot,
			    size_t nr, const struct text_options *options)
{
	struct source source = { .left = SOURCES_MAX };

	print_hot_title(out, "the hottest lines");
	for (size_t i = 0; i < nr; i++) {
		const struct listing_line *line = hot[i].line;
		char *text, *place;

		open_source(&source, listing, line->source);
		text = read_line(&source, line->number);
		place = xasprintf("%s:%d  %s", basename(line->source), line->number,
				  text ? text + strspn(text, " ") : "");
		print_ticks(out, listing, hot[i].ticks, options);
		print_text(out, "", place, options);
		free(place);
		free(text);
	}
	close_source(&source);
	free(source.line);
}

static void print_hot_instructions(FILE *out, const struct listing *listing, const struct hot *hot,
				   size_t nr, const struct text_options *options)
{
	print_hot_title(out, "the hottest instructions");
	for (size_t i = 0; i < nr; i++)
		print_instruction(out, listing, hot[i].line, options);
}

/* Adds up the instructions of each source line, also if they are in several inlined functions. */
static size_t find_hot_lines(const struct listing *listing, struct hot *hot)
{
	size_t nr = 0, to = 0;

	for (size_t i = 0; i < listing->nr; i++)
		if (listing->lines[i].source)
			hot[nr++] = (struct hot) { &listing->lines[i], listing->lines[i].ticks };
	qsort(hot, nr, sizeof(*hot), compare_places);
	for (size_t i = 0; i < nr; i++) {
		if (to && hot[to - 1].line->number == hot[i].line->number &&
		    !strcmp(hot[to - 1].line->source, hot[i].line->source))
			hot[to - 1].ticks = ticks_add(hot[to - 1].ticks, hot[i].ticks);
		else
			hot[to++] = hot[i];
	}
	return to;
}

static size_t find_hot_instructions(const struct listing *listing, struct hot *hot)
{
	for (size_t i = 0; i < listing->nr; i++)
		hot[i] = (struct hot) { &listing->lines[i], listing->lines[i].ticks };
	return listing->nr;
}

/* Returns the number of those that are printed. */
static size_t sort_hot(struct hot *hot, size_t nr)
{
	qsort(hot, nr, sizeof(*hot), compare_hot);
	while (nr > 0 && (nr > HOT_MAX || !hot[nr - 1].ticks))
		nr--;
	return nr;
}

static void print_hottest(FILE *out, const struct listing *listing,
			  const struct text_options *options)
{
	struct hot *hot = xcalloc(listing->nr + 1, sizeof(*hot));
	size_t nr = sort_hot(hot, find_hot_lines(listing, hot));

	if (nr)
		print_hot_lines(out, listing, hot, nr, options);
	nr = sort_hot(hot, find_hot_instructions(listing, hot));
	if (nr)
		print_hot_instructions(out, listing, hot, nr, options);
	free(hot);
}

/* ---- the listing ---- */

static void print_title(FILE *out, const struct listing *listing)
{
	const struct row *row = listing->row;

	putc('\n', out);
	if (listing->inlined) {
		escape_print(out, listing->inlined);
		fputs(" in ", out);
	}
	escape_print(out, row->function.name);
	fputs(" in ", out);
	escape_print(out, row->function.label);
	fprintf(out, ": %s ticks, %.2f%% +- %.2f%%\n", number(listing->ticks).text,
		100 * share_of(listing->rows, listing->ticks),
		100 * share_error(listing->rows, listing->ticks));
}

void text_listing(FILE *out, const struct listing *listing, const struct text_options *options)
{
	const struct listing_line *lines = listing->lines;
	struct source source = { .left = SOURCES_MAX };

	if (listing->note)
		fprintf(out, "note: %s\n", listing->note);
	print_title(out, listing);
	print_hottest(out, listing, options);
	for (size_t i = 0, end; i < listing->nr; i = end) {
		const bool is_new = !i || !same_section(&lines[i - 1], &lines[i]);

		for (end = i + 1; end < listing->nr && same_section(&lines[i], &lines[end]) &&
		     lines[i].number == lines[end].number;)
			end++;
		if (is_new)
			print_section(out, listing, &lines[i], &source, options);
		print_lines(out, listing, i, end, &source, options);
	}
	close_source(&source);
	free(source.line);
}
