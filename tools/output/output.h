/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output formats, and what they share
 */
#ifndef PROFIL_TOOLS_OUTPUT_H
#define PROFIL_TOOLS_OUTPUT_H

#include "output/rows.h"

/* Colours of a terminal */
#define OUTPUT_RED	"\033[31m"
#define OUTPUT_GREEN	"\033[32m"
#define OUTPUT_YELLOW	"\033[33m"
#define OUTPUT_PLAIN	"\033[m"

/**
 * struct output_options - What the user and the terminal want
 * @width: Maximum width of a line of text.
 * @lines: Maximum number of rows of text; 0: all.
 * @colour: Use colours.
 * @full_names: Do not shorten names; lines can be longer than @width.
 * @verbose: Print how all ticks were counted, and where and when.
 */
struct output_options {
	size_t width;
	u64 lines;
	bool colour;
	int full_names;
	bool verbose;
};

/* Sets the width and the colour for the standard output, which may be a terminal. */
void output_get_terminal(struct output_options *options);

/* Returns the colour of a share, or "" if it has none. */
const char *output_colour(const struct output_options *options, double share);

/* Returns the input of a pager, or the standard output if that is no terminal. */
FILE *output_open_pager(void);

/* Waits until the user leaves the pager, if there is one. Returns false if it did not get all. */
bool output_close_pager(FILE *out);

/* What a reader of the report must know. The heading contains the warnings. */
void output_warnings(FILE *out, const struct recording *recording);
void output_heading(FILE *out, const struct rows *rows, const struct output_options *options);

/**
 * struct output_table - A table of rows
 * @numbers: The titles of the numbers before the keys, as wide as these.
 * @print_numbers: Prints the numbers of a row.
 */
struct output_table {
	const struct rows *rows;
	const struct output_options *options;
	const char *numbers;
	void (*print_numbers)(FILE *out, const struct output_table *table, const struct row *row);
	const void *data;		/* for @print_numbers */

	/* Only text.c uses these. */
	size_t nr;			/* rows that are printed */
	size_t widths[ROWS_KEYS_MAX];	/* of the columns of the keys */
};

/* Prints the table, with the titles of its columns. */
void output_table(FILE *out, struct output_table *table);

/*
 * Each format is a function in a file of its own, which writes @rows with the samples of the
 * recording and their functions. The caller checks @out for errors.
 */

/* Text for people to read: a heading, and a table of the rows. */
void output_text(FILE *out, const struct rows *rows, const struct output_options *options);

/* Values that are separated by commas (RFC 4180): a line for each row. Warnings go to stderr. */
void output_csv(FILE *out, const struct rows *rows);

/* Writes a comma and the key of a row in quotes. */
void output_csv_key(FILE *out, const struct row_key *key, const struct row *row);

#endif /* PROFIL_TOOLS_OUTPUT_H */
