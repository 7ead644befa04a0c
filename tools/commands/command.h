/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The subcommands of profil
 *
 * Each gets its own name as argv[0], and returns the exit status. What is wrong is said on
 * standard error, with the name of the command before it.
 */
#ifndef PROFIL_TOOLS_COMMAND_H
#define PROFIL_TOOLS_COMMAND_H

/* Where recordings are, unless it is said otherwise. */
#define COMMAND_DATA		"profil.data"

/* Exit statuses. Those from 126 on are as of a shell. */
#define COMMAND_FAILED		1
#define COMMAND_USAGE		2
#define COMMAND_NOT_RUN		126	/* found, but it cannot be executed */
#define COMMAND_NOT_FOUND	127
#define COMMAND_SIGNAL		128	/* and the number of the signal */

int command_record(int argc, char **argv);
int command_report(int argc, char **argv);
int command_gperf(int argc, char **argv);

#endif /* PROFIL_TOOLS_COMMAND_H */
