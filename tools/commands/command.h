/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subcommands of profil
 *
 * Each function command_*() of a subcommand returns its exit status. Error messages are printed
 * with warnx() and warn(), which write to standard error, and begin with the name of the
 * subcommand.
 */
#ifndef PROFIL_TOOLS_COMMAND_H
#define PROFIL_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* The default path of a recording. */
#define COMMAND_DATA		"profil.data"

/* Exit statuses. Those from 126 on have the same meaning as in a shell. */
#define COMMAND_FAILED		1
#define COMMAND_USAGE		2
#define COMMAND_NOT_RUN		126	/* found, but it cannot be executed */
#define COMMAND_NOT_FOUND	127
#define COMMAND_SIGNAL		128	/* plus the number of the signal */

int command_record(int argc, char **argv);
int command_report(int argc, char **argv);
int command_export(int argc, char **argv);
int command_annotate(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_gperf(int argc, char **argv);

/*
 * Sets the name with which error messages begin, including those of getopt_long(), and the encoding
 * of all text, UTF-8.
 */
void command_set_name(char **argv, const char *name);

/* Parses a decimal number from 1 to @max. */
bool command_parse_number(const char *text, uint64_t max, uint64_t *number);

/* Parses a time: a decimal number, and a unit (ns, us, ms or s) or nothing for seconds. */
bool command_parse_time(const char *text, uint64_t *ns);

#endif /* PROFIL_TOOLS_COMMAND_H */
