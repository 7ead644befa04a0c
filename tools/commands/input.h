/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording that a command reads: its options, and its rows
 */
#ifndef PROFIL_TOOLS_INPUT_H
#define PROFIL_TOOLS_INPUT_H

#include <getopt.h>

#include "output/rows.h"

/**
 * struct input - The recording that a command reads
 * @path: The file, as in format_open().
 * @filter: Which ticks to read.
 * @rows: Their rows, after input_read().
 * @recording: The recording, after input_read().
 */
struct input {
	const char *path;
	struct recording_filter filter;
	struct rows rows;
	struct recording *recording;
};

/* The initial value of a struct input */
#define INPUT_INIT { .path = COMMAND_DATA, .filter = { .cpu = -1 }, .rows = { .demangle = true } }

/* The values for getopt_long() of options without a letter. Commands have others below these. */
enum { INPUT_FILTER = 1024, INPUT_SYMFS, INPUT_NO_DEMANGLE };

/* The options for the table of getopt_long(). Its string of short options needs "i:". */
#define INPUT_OPTIONS						\
	{ "input", required_argument, NULL, 'i' },		\
	{ "comm", required_argument, NULL, INPUT_FILTER },	\
	{ "dso", required_argument, NULL, INPUT_FILTER },	\
	{ "symbol", required_argument, NULL, INPUT_FILTER },	\
	{ "thread", required_argument, NULL, INPUT_FILTER },	\
	{ "cpu", required_argument, NULL, INPUT_FILTER },	\
	{ "from", required_argument, NULL, INPUT_FILTER },	\
	{ "to", required_argument, NULL, INPUT_FILTER },	\
	{ "no-demangle", no_argument, NULL, INPUT_NO_DEMANGLE },	\
	{ "symfs", required_argument, NULL, INPUT_SYMFS }

/* The help for these options */
#define INPUT_HELP_FILE \
	"  -i, --input FILE    read FILE (" COMMAND_DATA "); - is standard input\n"
#define INPUT_HELP								\
	"      --comm NAME     only threads with this name; * stands for any text\n"	\
	"      --dso NAME      only this program or library\n"				\
	"      --symbol NAME   only this function\n"					\
	"      --thread TID    only this thread\n"					\
	"      --cpu N         only this CPU\n"						\
	"      --from S        only from S seconds after the start on\n"		\
	"      --to S          only to S seconds after the start\n"			\
	"      --no-demangle   do not demangle names\n"					\
	"      --symfs DIR     find binaries and debug files below DIR\n"

/*
 * Sets the option that getopt_long() has returned. @name: its long name, for INPUT_FILTER. Returns
 * false after an error message.
 */
bool input_set_option(struct input *input, int option, const char *name, char *value);

/* Checks the options and the remaining arguments. Returns false after an error message. */
bool input_check_options(const struct input *input, int argc, char **argv);

/* Reads the recording and makes its rows. Returns false after an error message. */
bool input_read(struct input *input);

/* Returns false after an error message if damage or a filter has left no rows. */
bool input_check_rows(const struct input *input);

void input_free(struct input *input);

#endif /* PROFIL_TOOLS_INPUT_H */
