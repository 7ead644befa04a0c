/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output formats, and the functions that they share
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
 * struct output_options - Options from the user and the terminal
 * @width: Maximum width of a line of text.
 * @height: Number of lines of the terminal.
 * @lines: Maximum number of rows of text; 0: all.
 * @colour: Use colours.
 * @full_names: Do not shorten names; lines can be longer than @width.
 * @verbose: Print how all ticks were counted, and where and when.
 */
struct output_options {
	size_t width;
	size_t height;
	u64 lines;
	bool colour;
	bool full_names;
	bool verbose;
};

/* Sets the width, the height and the colour for the standard output, which may be a terminal. */
void output_get_terminal(struct output_options *options);

/* Returns the colour of a share, or "" if it has none. */
const char *output_colour(const struct output_options *options, double share);

/* Returns the input of a pager, or the standard output if it is not a terminal. */
FILE *output_open_pager(void);

/* Waits until the user leaves the pager, if any. Returns false if it did not get all output. */
bool output_close_pager(FILE *out);

/* Prints the warnings; or the heading of a report, which contains the warnings. */
void output_warnings(FILE *out, const struct recording *recording);
void output_heading(FILE *out, const struct rows *rows, const struct output_options *options);

/* Return the warnings, and the rest of the heading, one in each line. The caller frees them. */
char *output_list_warnings(const struct recording *recording);
char *output_list_about(const struct rows *rows);

/**
 * struct output_table - A table of rows
 * @numbers: The titles of the numbers before the keys, with the widths of these columns.
 * @print_numbers: Prints the numbers of a row.
 * @is_inclusive: Ticks can be in several rows.
 */
struct output_table {
	const struct rows *rows;
	const struct output_options *options;
	const char *numbers;
	void (*print_numbers)(FILE *out, const struct output_table *table, const struct row *row);
	const void *data;		/* for @print_numbers */
	bool is_inclusive;

	/* Only text.c uses these. */
	size_t nr;			/* rows that are printed */
	size_t widths[ROWS_KEYS_MAX];	/* of the columns of the keys */
};

/* Prints the table, with the titles of its columns. */
void output_table(FILE *out, struct output_table *table);

/* Text for people: a heading, and a table of the rows. The caller checks @out for errors. */
void output_text(FILE *out, const struct rows *rows, const struct output_options *options);

/*
 * Text for people about the callers of functions, for rows by binary and function with parts and
 * chains: the inclusive shares of all functions; or trees of the callers or the callees of the
 * functions that match @pattern, see names_match().
 */
void output_children(FILE *out, const struct rows *rows, const struct output_options *options);
void output_calls(FILE *out, const struct rows *rows, const struct output_options *options,
		  const char *pattern, bool callers);

/**
 * struct output_format - A format for other programs
 * @name: Its name, as the user writes it.
 * @about: The program that reads it.
 * @is_binary: It is not text, so a terminal cannot show it.
 * @keys: The keys of the rows.
 * @nr_keys: Their number; 0: there is a row for each sample.
 * @in_order: As in struct rows.
 * @lines: Likewise.
 * @number_locals: Likewise.
 * @keep_parts: Likewise. The recording has intervals of time and the CPUs of ticks then.
 * @chains: The rows have parts and chains if the recording has stacks: see struct rows.chains.
 * @write: Writes @rows to @out. The caller checks @out for errors, and prints the warnings. Returns
 *	NULL, or the reason why the format cannot have these rows.
 *
 * Each format is in a file of its own. Names in rows are untrusted: see escape.h.
 */
struct output_format {
	const char *name;
	const char *about;
	bool is_binary;
	enum rows_by keys[ROWS_KEYS_MAX];
	size_t nr_keys;
	bool in_order;
	bool lines;
	bool number_locals;
	bool keep_parts;
	bool chains;
	const char *(*write)(FILE *out, const struct rows *rows);
};

extern const struct output_format output_bolt;
extern const struct output_format output_callgrind;
extern const struct output_format output_csv;
extern const struct output_format output_firefox;
extern const struct output_format output_folded;
extern const struct output_format output_gmon;
extern const struct output_format output_html;
extern const struct output_format output_json;
extern const struct output_format output_llvm;
extern const struct output_format output_pprof;
extern const struct output_format output_speedscope;

/* Writes a comma and the key of a row in quotes. */
void output_csv_key(FILE *out, const struct row_key *key, const struct row *row);

#endif /* PROFIL_TOOLS_OUTPUT_H */
