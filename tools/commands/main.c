// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil COMMAND: runs a subcommand. See profil(1).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands/command.h"

#ifndef PROFIL_VERSION
#error "the Makefile sets the version"
#endif

static const struct command {
	const char *name;
	const char *about;
	int (*run)(int argc, char **argv);	/* NULL: main() does it */
} commands[] = {
	{ "record", "record where a command or a running process spends its time",
	  command_record },
	{ "report", "print a recording, by function", command_report },
	{ "annotate", "print the source lines and instructions of a function", command_annotate },
	{ "diff", "compare two recordings, by function", command_diff },
	{ "export", "convert a recording to the format of another program", command_export },
	{ "gperf", "print the profile that a process makes of itself, by function", command_gperf },
	{ "help", "list the commands", NULL },
	{ "version", "print the version", NULL },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void usage(FILE *out)
{
	fprintf(out, "usage: profil COMMAND [ARG...]\n\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %-10s%s\n", commands[i].name, commands[i].about);
	fprintf(out, "\nSee \"profil COMMAND --help\", and profil(1).\n");
}

/* Flushes standard output, and reports an error, for example if the disk is full. */
static int flush_output(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	perror("profil: standard output");
	return status ? status : COMMAND_FAILED;
}

/*
 * Opens the standard streams that are closed: otherwise another file could get their descriptors.
 * O_CLOEXEC closes them again for a command that is executed.
 */
static void open_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name;

	open_standard_streams();

	if (argc < 2) {
		usage(stderr);
		return COMMAND_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-h") || !strcmp(name, "--help"))
		name = "help";
	else if (!strcmp(name, "-V") || !strcmp(name, "--version"))
		name = "version";
	command = find_command(name);
	if (!command) {
		fprintf(stderr, "profil: there is no command \"%s\"; \"profil help\" lists them\n",
			name);
		return COMMAND_USAGE;
	}
	if (command->run)
		return flush_output(command->run(argc - 1, argv + 1));
	if (!strcmp(name, "help"))
		usage(stdout);
	else
		printf("profil %s\n", PROFIL_VERSION);
	return flush_output(0);
}
