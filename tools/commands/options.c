// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: the options. */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <limits.h>

#include <libiberty/libiberty.h>

#include "commands/sampling.h"

static bool parse_freq(const char *text, u64 *period)
{
	char *end;
	double hz = strtod(text, &end);

	/* If the period does not fit in 64 bits, use another one that is too long. */
	*period = hz * NS_PER_S > 1 ? NS_PER_S / hz + 0.5 : NS_PER_S * 1e9;
	return end != text && !*end && hz > 0 && hz <= NS_PER_S;
}

bool session_set_pids(const struct command_setting *setting)
{
	/* Each process takes a digit and a comma. */
	pid_t *pids = xcalloc(strlen(setting->value) / 2 + 2, sizeof(*pids));
	char *text = xstrdup(setting->value), *rest = text, *word;
	bool valid = true;
	size_t nr = 0;
	u64 number;

	while (valid && (word = strsep(&rest, ","))) {
		valid = command_parse_number(word, INT_MAX, &number);
		if (valid)
			pids[nr++] = number;
	}
	free(text);
	memcpy(setting->member, &pids, sizeof(pids));
	return command_check_value(setting, valid, "a process id");
}

bool session_set_freq(const struct command_setting *setting)
{
	struct session_options *options = setting->member;

	options->freq_chosen = true;
	return command_check_value(setting, parse_freq(setting->value, &options->period),
				   "a number of ticks per second");
}

bool session_set_tick(const struct command_setting *setting)
{
	u64 *period = setting->member;

	*period = 0;
	return true;
}

/* Takes the command from the remaining arguments. Returns false if they are wrong. */
static bool parse_target(const struct command *command, int argc, char **argv,
			 struct session_options *options)
{
	const bool has_command = optind < argc;
	const char *wrong = NULL;

	if (options->pids && options->all)
		wrong = "either -a or -p, not both";
	else if (options->pids && has_command)
		wrong = "either a command or -p, not both";
	else if (options->all && options->no_children)
		wrong = "either -a or --no-children, not both";
	if (wrong)
		warnx("%s", wrong);
	if (wrong || !(has_command || options->pids || options->all)) {
		command_print_help(stderr, command);
		return false;
	}
	if (has_command)
		options->command = argv + optind;
	return true;
}

int session_parse_options(const struct command *command, int argc, char **argv, void *parsed,
			  struct session_options *options)
{
	int status = command_parse(command, argc, argv, parsed);

	if (status < 0 && !parse_target(command, argc, argv, options))
		return COMMAND_USAGE;
	return status;
}
