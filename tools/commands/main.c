// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil COMMAND: what runs, and where its time goes. See profil(1).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands/command.h"

#ifndef PROFIL_VERSION
#error "the Makefile tells the version"
#endif

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

static const struct command {
	const char *name;
	const char *about;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "record", "run a command, or watch a process, and record where its time goes",
	  command_record },
	{ "report", "print what was recorded, by function", command_report },
	{ "gperf", "print what a process counts itself, by function", command_gperf },
	{ "help", "tell what commands there are, or about one", command_help },
	{ "version", "print the version", command_version },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *find(const char *name)
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
	fprintf(out, "\n\"profil COMMAND --help\" tells about one; profil(1) about all.\n");
}

/* What was printed may not have got there: to a full disk, say. */
static int flushed(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	perror("profil: standard output");
	return status ? status : COMMAND_FAILED;
}

static int unknown(const char *name)
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
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
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
 * What is opened must not be taken for a standard stream that was closed. For a command that is
 * executed they are as closed as they were.
 */
static void streams_open(void)
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

	streams_open();

	if (argc < 2) {
		usage(stderr);
		return COMMAND_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-h") || !strcmp(name, "--help"))
		name = "help";
	else if (!strcmp(name, "-V") || !strcmp(name, "--version"))
		name = "version";
	command = find(name);
	if (!command)
		return unknown(name);
	return flushed(command->run(argc - 1, argv + 1));
}
