// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text format: a heading about the recording, and a table with a line for each row
 *
 * The counters of a process have another heading, and also columns for ticks and seconds.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/escape.h"
#include "profile/names.h"
#include "text/text.h"

#define NS_PER_MS 1e6

/* The titles of the numbers before the first key, with the widths of these columns. */
#define TITLES "   share     +-"
#define TITLES_CAPTURE "     ticks   seconds"
#define GAP 2

/* ---- the heading of the counters of a process ---- */

static double seconds_of(const struct rows *rows, u64 ticks)
{
	return (double)ticks * rows->recording->meta.tick_ns / NS_PER_S;
}

static void print_capture_heading(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;

	fprintf(out, "process %d: %" PRIu64 " ticks", recording->threads[0].data.pid,
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

static void print_cell(FILE *out, const struct text_table *table, size_t i, char *text)
{
	size_t width = table->widths[i];
	bool last = i + 1 == table->rows->nr_keys;

	escape_fit(text, width);
	fprintf(out, "%*s%s%*s", GAP, "", text, last ? 0 : (int)(width - escape_width(text)), "");
}

static void print_numbers(FILE *out, const struct text_table *table, const struct row *row)
{
	const struct rows *rows = table->rows;
	u64 ticks = row_ticks(row);
	double share = row_share(rows, row);
	const char *colour = text_colour(table->options, share);

	fprintf(out, "%s%7.2f%%%s %5.2f%%", colour, 100 * share, *colour ? TEXT_PLAIN : "",
		100 * row_error(rows, row));
	if (rows->recording->is_capture && rows->recording->meta.tick_ns)
		fprintf(out, " %9" PRIu64 " %9.3f", ticks, seconds_of(rows, ticks));
	else if (rows->recording->is_capture)
		fprintf(out, " %9" PRIu64 " %9s", ticks, "-");
}

static void print_row(FILE *out, const struct text_table *table, size_t row)
{
	const struct rows *rows = table->rows;

	table->print_numbers(out, table, &rows->rows[row]);
	for (size_t i = 0; i < rows->nr_keys; i++) {
		const bool is_symbol = rows->keys[i] == &row_keys[ROWS_BY_SYMBOL];
		char *text = is_symbol ? table->symbols[row] :
			     row_text(rows->keys[i], &rows->rows[row]);

		print_cell(out, table, i, text);
		free(text);
	}
	putc('\n', out);
}

/* Returns the functions of the rows that are printed; NULL if there is no such column. */
static char **list_symbols(const struct text_table *table)
{
	const struct rows *rows = table->rows;
	char **symbols = NULL;

	for (size_t i = 0; i < rows->nr_keys; i++)
		if (rows->keys[i] == &row_keys[ROWS_BY_SYMBOL])
			symbols = xcalloc(table->nr + 1, sizeof(*symbols));
	for (size_t i = 0; i < table->nr && symbols; i++)
		symbols[i] = row_text(&row_keys[ROWS_BY_SYMBOL], &rows->rows[i]);
	return symbols;
}

/* Returns the width that the column needs. */
static size_t natural_width(const struct text_table *table, size_t i)
{
	const struct row_key *key = table->rows->keys[i];
	size_t width = strlen(key->title);

	for (size_t j = 0; j < table->nr; j++) {
		char *text = row_text(key, &table->rows->rows[j]);
		size_t used = escape_width(text);

		width = used > width ? used : width;
		free(text);
	}
	return width;
}

/* Makes the widest columns narrower until all fit. Returns the width of the line. */
static size_t reduce_widths(struct text_table *table, size_t all)
{
	for (; all > table->options->width; all--) {
		size_t widest = 0;

		for (size_t i = 1; i < table->rows->nr_keys; i++)
			if (table->widths[i] >= table->widths[widest])
				widest = i;
		if (table->widths[widest] == 1)
			break;
		table->widths[widest]--;
	}
	return all;
}

/*
 * Makes each column as wide as its widest cell. If this is too wide for the line, functions get
 * the room that their short names need, or if the other columns leave more, all of that.
 */
static void choose_widths(struct text_table *table)
{
	const struct rows *rows = table->rows;
	size_t all = strlen(table->numbers), symbol = rows->nr_keys, needed;

	for (size_t i = 0; i < rows->nr_keys; i++) {
		table->widths[i] = natural_width(table, i);
		all += GAP + table->widths[i];
		if (rows->keys[i] == &row_keys[ROWS_BY_SYMBOL])
			symbol = i;
	}
	if (all <= table->options->width || table->options->full_names)
		return;
	if (symbol < rows->nr_keys) {
		needed = names_width(table->symbols, table->nr);
		if (needed < strlen(rows->keys[symbol]->title))
			needed = strlen(rows->keys[symbol]->title);
		all -= table->widths[symbol] - needed;
		table->widths[symbol] = needed;
	}
	all = reduce_widths(table, all);
	if (symbol < rows->nr_keys && all < table->options->width)
		table->widths[symbol] += table->options->width - all;
	if (symbol < rows->nr_keys)
		names_fit(table->symbols, table->nr, table->widths[symbol]);
}

void text_table(FILE *out, struct text_table *table)
{
	const struct rows *rows = table->rows;
	u64 lines = table->options->lines, rest = 0;
	char title[16];

	table->nr = lines && lines < rows->nr ? lines : rows->nr;
	table->symbols = list_symbols(table);
	choose_widths(table);
	fprintf(out, "\n%s", table->numbers);
	for (size_t i = 0; i < rows->nr_keys; i++)
		print_cell(out, table, i, strcpy(title, rows->keys[i]->title));
	putc('\n', out);
	for (size_t i = 0; i < table->nr; i++)
		print_row(out, table, i);
	free(table->symbols);
	for (size_t i = table->nr; i < rows->nr; i++)
		rest = ticks_add(rest, row_ticks(&rows->rows[i]));
	if (table->nr < rows->nr && table->is_inclusive)
		fprintf(out, "%*s  in %zu more\n", 8, "", rows->nr - table->nr);
	else if (table->nr < rows->nr)
		fprintf(out, "%7.2f%%  in %zu more\n", 100.0 * rest / rows->ticks,
			rows->nr - table->nr);
}

void text_report(FILE *out, const struct rows *rows, const struct text_options *options)
{
	struct text_table table = {
		.rows = rows,
		.options = options,
		.numbers = rows->recording->is_capture ? TITLES TITLES_CAPTURE : TITLES,
		.print_numbers = print_numbers,
	};

	if (rows->recording->is_capture)
		print_capture_heading(out, rows);
	else
		text_heading(out, rows, options);
	if (rows->nr)
		text_table(out, &table);
	/* A further report may follow, with --wait: separate them by an empty line. */
	if (rows->nr && rows->recording->is_capture)
		putc('\n', out);
}
