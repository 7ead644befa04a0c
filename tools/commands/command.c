// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that several subcommands use
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "commands/command.h"

void command_set_name(char **argv, const char *name)
{
	/* The casts are safe: nothing writes to these strings. */
	argv[0] = (char *)name;
	program_invocation_short_name = (char *)name;
	xmalloc_set_program_name(name);
	optind = 0;
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
