// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil complete: prints how a shell can complete the last one of some words, for the scripts in
 * tools/completion. Its first line is FILE, DIR, PID, COMMAND and the index of the word where this
 * command begins ("profil" has index 0), or something else. The next lines are words, each with a
 * tab and a description.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <string.h>

#include "commands/command.h"

static void print_commands(void)
{
	puts("WORD");
	for (size_t i = 0; commands[i] && commands[i]->about; i++)
		printf("%s\t%s\n", commands[i]->name, commands[i]->about);
}

static void print_options(const struct command_option *option)
{
	puts("WORD");
	for (; option->name; option++) {
		if (!option->help)
			continue;
		printf("--%s\t%s\n", option->name, option->help);
		if (option->letter)
			printf("-%c\t%s\n", option->letter, option->help);
	}
}

/* Completes the value that is at the end of @text, from @at on. */
static void print_value(const struct command_option *option, const char *text, size_t at)
{
	const char *comma = option->is_list ? strrchr(text + at, ',') : NULL;

	if (comma)
		at = comma + 1 - text;
	puts(option->value);
	for (size_t i = 0; option->word && option->word(i).name; i++)
		printf("%.*s%s\t%s\n", (int)at, text, option->word(i).name,
		       option->word(i).about ?: "");
}

/* Returns the option whose value is the word after @text, or NULL. */
static const struct command_option *find_unfinished(const struct command *command, const char *text)
{
	const struct command_option *option = NULL;

	if (text[1] == '-') {
		option = command_find_option(command, text + 2, strlen(text + 2));
		return option && option->value && !option->is_optional ? option : NULL;
	}
	while (*++text) {
		option = command_find_option(command, text, 1);
		if (option && option->value && !option->is_optional)
			return text[1] ? NULL : option;
	}
	return NULL;
}

/* Completes the last one of the words; the first one is @command. */
static void complete(const struct command *command, int nr, char **words)
{
	const bool has_command = command->operand && !strcmp(command->operand, "COMMAND");
	const struct command_option *option = NULL;
	const char *text = words[nr - 1], *equals = strchr(text, '=');
	bool only_operands = false;
	int i;

	for (i = 1; i < nr - 1; i++) {
		/* For bash, --name=value is three words. */
		if (option && !strcmp(words[i], "="))
			continue;
		if (option)
			option = NULL;
		else if (!strcmp(words[i], "--"))
			only_operands = true;
		else if (words[i][0] == '-' && !only_operands)
			option = find_unfinished(command, words[i]);
		else if (has_command)
			break;
	}
	if (option) {
		print_value(option, text, 0);
	} else if (*text == '-' && !only_operands && i == nr - 1) {
		if (equals && text[1] == '-')
			option = command_find_option(command, text + 2, equals - text - 2);
		if (option && option->value)
			print_value(option, text, equals + 1 - text);
		else
			print_options(command->options);
	} else if (has_command) {
		printf("COMMAND %d\n", i + 1);
	} else {
		puts(command->operand ?: "WORD");
	}
}

static int run(int argc, char **argv)
{
	int status = command_parse(&command_complete, argc, argv, NULL);
	const struct command *command;

	if (status >= 0)
		return status;
	if (argc - optind < 2) {
		print_commands();
		return 0;
	}
	command = command_find(argv[optind]);
	if (!command)
		return COMMAND_FAILED;
	complete(command, argc - optind, argv + optind);
	return 0;
}

static const struct command_option options[] = { COMMAND_HELP };

const struct command command_complete = {
	.name = "complete",
	.about = "print how a shell can complete a command line",
	.usage = "[--] WORD...",
	.help = "Prints how a shell can complete the last one of the words after \"profil\".",
	.options = options,
	.run = run,
};
