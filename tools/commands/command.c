// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that several subcommands use
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "commands/command.h"

void command_set_name(char **argv, const char *name)
{
	/* The casts are safe: nothing writes to these strings. */
	argv[0] = (char *)name;
	program_invocation_short_name = (char *)name;
	optind = 0;
}

bool command_parse_number(const char *text, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno && *number && *number <= max;
}
