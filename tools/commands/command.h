/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subcommands of profil, and their options
 *
 * Error messages are printed with warnx() and warn(), which write to standard error, and begin with
 * the name of the subcommand.
 */
#ifndef PROFIL_TOOLS_COMMAND_H
#define PROFIL_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The default path of a recording. */
#define COMMAND_DATA		"profil.data"

/* Exit statuses. Those from 126 on have the same meaning as in a shell. */
#define COMMAND_FAILED		1
#define COMMAND_USAGE		2
#define COMMAND_NOT_RUN		126	/* found, but it cannot be executed */
#define COMMAND_NOT_FOUND	127
#define COMMAND_SIGNAL		128	/* plus the number of the signal */

/* A word that the value of an option can be. @about: its description, or NULL. */
struct command_word {
	const char *name;
	const char *about;
};

struct command_option;

/* An option that the user has given. @member: the member at its offset. */
struct command_setting {
	const struct command_option *option;
	void *member;
	char *value;
};

/**
 * struct command_option - An option of a subcommand
 * @name: Its long name.
 * @letter: Its short name, or 0.
 * @value: The name of its value in the help, or NULL. Shells complete a FILE, a DIR and a PID.
 * @help: A line of the help; NULL for an option that only users of perf know.
 * @set: Sets it. Returns false after an error message. NULL: this is --help.
 * @offset: The offset for @set in the structure of the subcommand.
 * @word: Returns the word at an index that the value can be. After the last one, its name is NULL.
 * @is_list: The value can be several words, with commas.
 * @is_optional: The value can be left out. It is in the help as it is written, without @word.
 */
struct command_option {
	const char *name;
	char letter;
	const char *value;
	const char *help;
	bool (*set)(const struct command_setting *setting);
	size_t offset;
	struct command_word (*word)(size_t index);
	bool is_list;
	bool is_optional;
};

/* The end of each table of options */
#define COMMAND_HELP { .name = "help", .letter = 'h', .help = "print this help" }, { }

/**
 * struct command - A subcommand
 * @about: What it does, in the list of subcommands. NULL: other programs run it, and the list ends.
 * @usage: Its arguments.
 * @help: The text between the usage and the options.
 * @operand: The name of its operands for shells, as in @value above, or NULL. COMMAND stands for a
 *	command and its arguments, which are not options of this one.
 * @run: Returns its exit status.
 */
struct command {
	const char *name;
	const char *about;
	const char *usage;
	const char *help;
	const char *operand;
	const struct command_option *options;
	int (*run)(int argc, char **argv);
};

extern const struct command command_annotate;
extern const struct command command_complete;
extern const struct command command_diff;
extern const struct command command_export;
extern const struct command command_gperf;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_top;
extern const struct command command_unwind_tables;

/* All of them, and NULL. */
extern const struct command *const commands[];

/* Returns the subcommand, or NULL. */
const struct command *command_find(const char *name);

/* Returns the option with this name or letter of @len characters, or NULL. */
const struct command_option *command_find_option(const struct command *command, const char *name,
						 size_t len);

/*
 * Sets the name with which error messages begin, and the options in @data, the structure of the
 * subcommand. Then optind is the index of the first operand. Returns the exit status, or -1 if the
 * subcommand shall continue.
 */
int command_parse(const struct command *command, int argc, char **argv, void *data);

void command_print_help(FILE *out, const struct command *command);

/* Says how to print the help, on standard error. Returns COMMAND_USAGE. */
int command_name_help(const struct command *command);

/* Prints the words in a line of standard error. */
void command_print_words(struct command_word (*word)(size_t index));

/*
 * For @set: a bool, a string, a u64 that is a number of lines, and one that is a time in ns; and
 * for an option that changes nothing
 */
bool command_set_true(const struct command_setting *setting);
bool command_set_false(const struct command_setting *setting);
bool command_set_text(const struct command_setting *setting);
bool command_set_lines(const struct command_setting *setting);
bool command_set_time(const struct command_setting *setting);
bool command_set_nothing(const struct command_setting *setting);

/* Prints that the value is not what was @expected unless it is @valid. Returns @valid. */
bool command_check_value(const struct command_setting *setting, bool valid, const char *expected);

/* Parses a decimal number from 1 to @max. */
bool command_parse_number(const char *text, uint64_t max, uint64_t *number);

/* Parses a time: a decimal number, and a unit (ns, us, ms or s) or nothing for seconds. */
bool command_parse_time(const char *text, uint64_t *ns);

#endif /* PROFIL_TOOLS_COMMAND_H */
