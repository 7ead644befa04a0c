// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that several subcommands use
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "commands/command.h"

/* In the help, the descriptions of the options begin in this column, and lines end before that. */
#define HELP_COLUMN	22
#define HELP_WIDTH	80

/* The value of getopt_long() for a long option, plus its index; those below are letters. */
#define LONG_OPTION	256

const struct command_option *command_find_option(const struct command *command, const char *name,
						 size_t len)
{
	for (const struct command_option *option = command->options; option->name; option++)
		if (len == 1 ? option->letter == *name :
		    !strncmp(option->name, name, len) && !option->name[len])
			return option;
	return NULL;
}

/* ---- the help ---- */

static void print_option(FILE *out, const struct command_option *option)
{
	const bool has_words = option->word && !option->is_optional;
	struct command_word word = {};
	int column;

	column = option->letter ? fprintf(out, "  -%c, ", option->letter) : fprintf(out, "      ");
	column += fprintf(out, option->is_optional ? "--%s[=%s] " : "--%s %s ", option->name,
			  option->value ?: "");
	column += fprintf(out, "%*s%s%s", HELP_COLUMN - column, "", option->help,
			  has_words ? ":" : "");
	if (has_words)
		word = option->word(0);
	for (size_t i = 1; word.name; i++) {
		const struct command_word next = option->word(i);

		if (column + strlen(word.name) + 2 >= HELP_WIDTH)
			column = fprintf(out, "\n%*s", HELP_COLUMN - 1, "");
		column += fprintf(out, " %s%s", word.name, next.name ? "," : "");
		word = next;
	}
	putc('\n', out);
}

void command_print_help(FILE *out, const struct command *command)
{
	fprintf(out, "usage: profil %s %s\n\n%s\n\n", command->name, command->usage, command->help);
	for (const struct command_option *option = command->options; option->name; option++)
		if (option->help)
			print_option(out, option);
}

int command_name_help(const struct command *command)
{
	fprintf(stderr, "See \"profil %s --help\".\n", command->name);
	return COMMAND_USAGE;
}

void command_print_words(struct command_word (*word)(size_t index))
{
	for (size_t i = 0; word(i).name; i++)
		fprintf(stderr, "%s%s", i ? ", " : "  ", word(i).name);
	fputs("\n", stderr);
}

/* ---- options ---- */

/* Makes the arguments of getopt_long(). */
static void make_table(const struct command *command, struct option *table, char *letters)
{
	/* The first operand can be a command: the arguments after it are its own. */
	if (command->operand && !strcmp(command->operand, "COMMAND"))
		*letters++ = '+';
	for (size_t i = 0; command->options[i].name; i++) {
		const struct command_option *option = &command->options[i];

		*table++ = (struct option) {
			.name = option->name,
			.has_arg = option->is_optional ? optional_argument :
				   option->value ? required_argument : no_argument,
			.val = LONG_OPTION + i,
		};
		if (option->letter)
			*letters++ = option->letter;
		if (option->letter && option->value && !option->is_optional)
			*letters++ = ':';
	}
	*table = (struct option) { };
	*letters = '\0';
}

int command_parse(const struct command *command, int argc, char **argv, void *data)
{
	static char name[sizeof("profil ") + 16];
	struct option table[LONG_OPTION];
	char letters[2 * LONG_OPTION];
	struct command_setting setting;
	int choice;

	snprintf(name, sizeof(name), "profil %s", command->name);
	argv[0] = name;
	program_invocation_short_name = name;
	xmalloc_set_program_name(name);
	optind = 0;
	make_table(command, table, letters);
	while ((choice = getopt_long(argc, argv, letters, table, NULL)) >= 0) {
		if (choice == '?')
			return command_name_help(command);
		setting.option = &command->options[choice - LONG_OPTION];
		if (choice < LONG_OPTION)
			setting.option = command_find_option(command, &(char) { choice }, 1);
		if (!setting.option->set) {
			command_print_help(stdout, command);
			return 0;
		}
		setting.member = (char *)data + setting.option->offset;
		setting.value = optarg;
		if (!setting.option->set(&setting))
			return COMMAND_USAGE;
	}
	return -1;
}

bool command_set_true(const struct command_setting *setting)
{
	*(bool *)setting->member = true;
	return true;
}

bool command_set_false(const struct command_setting *setting)
{
	*(bool *)setting->member = false;
	return true;
}

bool command_set_nothing(const struct command_setting *setting)
{
	(void)setting;
	return true;
}

bool command_set_text(const struct command_setting *setting)
{
	*(const char **)setting->member = setting->value;
	return true;
}

bool command_set_lines(const struct command_setting *setting)
{
	if (command_parse_number(setting->value, UINT64_MAX, setting->member))
		return true;
	warnx("-n: \"%s\" is not a number of lines", setting->value);
	return false;
}

bool command_set_time(const struct command_setting *setting)
{
	uint64_t *time = setting->member;
	bool valid = command_parse_time(setting->value, time) && *time;

	return command_check_value(setting, valid, "a number of seconds");
}

/* ---- values ---- */

bool command_check_value(const struct command_setting *setting, bool valid, const char *expected)
{
	if (!valid)
		warnx("\"%s\" is not %s", setting->value, expected);
	return valid;
}

bool command_parse_number(const char *text, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno && *number && *number <= max;
}

bool command_parse_time(const char *text, uint64_t *ns)
{
	static const struct { const char *name; double ns; } units[] = {
		{ "", 1e9 }, { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	};
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units) && end != text; i++) {
		/* At most about 30 years, so that adding it to a time does not overflow. */
		if (strcmp(end, units[i].name) || !(number >= 0 && number * units[i].ns <= 1e18))
			continue;
		*ns = number * units[i].ns + 0.5;
		return true;
	}
	return false;
}
