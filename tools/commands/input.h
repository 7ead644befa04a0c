/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording that a command reads: its options, and its rows
 */
#ifndef PROFIL_TOOLS_INPUT_H
#define PROFIL_TOOLS_INPUT_H

#include "commands/command.h"
#include "profile/rows.h"

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

/* The options, for the table of a command whose structure @type has the member input */
#define INPUT_OPTIONS(type)								\
	{ .name = "input", .letter = 'i', .value = "FILE",				\
	  .help = "read FILE (" COMMAND_DATA "); - is standard input",			\
	  .set = command_set_text, .offset = offsetof(type, input.path) },		\
	INPUT_FILTER(type, "comm", "NAME",							\
		     "only threads with this name; * stands for any text"),		\
	INPUT_FILTER(type, "dso", "NAME", "only this program or library"),		\
	INPUT_FILTER(type, "symbol", "NAME", "only this function"),			\
	INPUT_FILTER(type, "thread", "TID", "only this thread"),			\
	INPUT_FILTER(type, "cpu", "N", "only this CPU"),				\
	INPUT_FILTER(type, "from", "S", "only from S seconds after the start on"),	\
	INPUT_FILTER(type, "to", "S", "only to S seconds after the start"),		\
	{ .name = "no-demangle",							\
	  .help = "do not demangle names",						\
	  .set = command_set_false, .offset = offsetof(type, input.rows.demangle) },	\
	{ .name = "symfs", .value = "DIR",						\
	  .help = "find binaries and debug files below DIR",				\
	  .set = command_set_text, .offset = offsetof(type, input.rows.symfs) }

#define INPUT_FILTER(type, name_, value_, help_)					\
	{ .name = name_, .value = value_, .help = help_,				\
	  .set = input_set_filter, .offset = offsetof(type, input) }

/* For @set of a filter */
bool input_set_filter(const struct command_setting *setting);

/*
 * For @set of --sort. Sets the keys of a struct rows. The words of the option are the names of the
 * first ones of row_keys.
 */
bool input_set_keys(const struct command_setting *setting);

/* Checks the options and the remaining arguments. Returns false after an error message. */
bool input_check_options(const struct input *input, int argc, char **argv);

/* Reads the recording and makes its rows. Returns false after an error message. */
bool input_read(struct input *input);

/* Returns false after an error message if damage or a filter has left no rows. */
bool input_check_rows(const struct input *input);

void input_free(struct input *input);

#endif /* PROFIL_TOOLS_INPUT_H */
