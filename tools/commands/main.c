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

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const struct command {
	const char *name;
	const char *about;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "record", "record where a command or a running process spends its time",
	  command_record },
	{ "report", "print a recording, by function", command_report },
	{ "gperf", "print the profile that a process makes of itself, by function", command_gperf },
	{ "help", "list the commands, or explain one", command_help },
	{ "version", "print the version", command_version },
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

static int unknown_command(const char *name)
{
	fprintf(stderr, "profil: there is no command \"%s\"; \"profil help\" lists them\n", name);
	return COMMAND_USAGE;
}

static int command_help(int argc, char **argv)
{
	const struct command *command;
	char help[] = "--help";
	char *args[3] = {};

	if (argc < 2 || argv[1][0] == '-') {
		usage(stdout);
		return 0;
	}
	command = find_command(argv[1]);
	if (!command)
		return unknown_command(argv[1]);
	args[0] = argv[1];
	args[1] = help;
	return command->run(2, args);
}

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("profil %s\n", PROFIL_VERSION);
	return 0;
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
	if (!command)
		return unknown_command(name);
	return flush_output(command->run(argc - 1, argv + 1));
}
