/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text for people, on a terminal or in a file
 */
#ifndef PROFIL_TOOLS_TEXT_H
#define PROFIL_TOOLS_TEXT_H

#include "profile/rows.h"

struct call_node;
struct listing;

/* Colours of a terminal */
#define TEXT_RED	"\033[31m"
#define TEXT_GREEN	"\033[32m"
#define TEXT_YELLOW	"\033[33m"
#define TEXT_PLAIN	"\033[m"

/**
 * struct text_options - Options from the user and the terminal
 * @width: Maximum width of a line of text.
 * @height: Number of lines of the terminal.
 * @lines: Maximum number of rows of text; 0: all.
 * @colour: Use colours.
 * @full_names: Do not shorten names; lines can be longer than @width.
 * @verbose: Print how all ticks were counted, and where and when.
 */
struct text_options {
	size_t width;
	size_t height;
	u64 lines;
	bool colour;
	bool full_names;
	bool verbose;
};

/* Sets the width, the height and the colour for the standard output, which may be a terminal. */
void text_get_terminal(struct text_options *options);

/* Returns the colour of a share, or "" if it has none. */
const char *text_colour(const struct text_options *options, double share);

/* Returns the input of a pager, or the standard output if it is not a terminal. */
FILE *text_open_pager(void);

/* Waits until the user leaves the pager, if any. Returns false if it did not get all output. */
bool text_close_pager(FILE *out);

/* Prints the warnings; or the heading of a report, which contains the warnings. */
void text_warnings(FILE *out, const struct recording *recording);
void text_heading(FILE *out, const struct rows *rows, const struct text_options *options);

/*
 * Return the warnings, and the rest of the heading, without newlines. NULL follows the last one.
 * freeargv() frees them.
 */
char **text_list_warnings(const struct recording *recording);
char **text_list_about(const struct rows *rows);

/* Does the same with @text, which it frees. An indented line belongs to the one before it. */
char **text_paragraphs(char *text);

/**
 * struct text_table - A table of rows
 * @numbers: The titles of the numbers before the keys, with the widths of these columns.
 * @print_numbers: Prints the numbers of a row.
 * @is_inclusive: Ticks can be in several rows.
 */
struct text_table {
	const struct rows *rows;
	const struct text_options *options;
	const char *numbers;
	void (*print_numbers)(FILE *out, const struct text_table *table, const struct row *row);
	const void *data;		/* for @print_numbers */
	bool is_inclusive;

	/* Only text.c uses these. */
	size_t nr;			/* rows that are printed */
	size_t widths[ROWS_KEYS_MAX];	/* of the columns of the keys */
	char **symbols;			/* of these rows, as they are printed; or NULL */
};

/* Prints the table, with the titles of its columns. */
void text_table(FILE *out, struct text_table *table);

/* Text for people: a heading, and a table of the rows. The caller checks @out for errors. */
void text_report(FILE *out, const struct rows *rows, const struct text_options *options);

/*
 * Text for people about the callers of functions, for rows by binary and function with parts and
 * chains: the inclusive shares of all functions; or trees of the callers or the callees of the
 * functions that match @pattern, see names_match().
 */
void text_children(FILE *out, const struct rows *rows, const struct text_options *options);
void text_calls(FILE *out, const struct rows *rows, const struct text_options *options,
		const char *pattern, bool callers);

/*
 * Prints @nr nodes of recent_calls_nodes() as a tree of the hottest calls, in at most
 * @options->lines lines. @rows: has the sums of their ticks.
 */
void text_call_tree(FILE *out, const struct rows *rows, const struct call_node *nodes, size_t nr,
		    const struct text_options *options);

/*
 * Prints the function: its hottest lines and instructions, and then all. Source lines are printed
 * if their file is not newer than the binary.
 */
void text_listing(FILE *out, const struct listing *listing, const struct text_options *options);

#endif /* PROFIL_TOOLS_TEXT_H */
