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

static const struct command_option no_options[] = { COMMAND_HELP };

/* main() runs these two. */
static const struct command command_help = {
	.name = "help",
	.about = "list the commands, or print the help of one",
	.usage = "[OPTION...] [COMMAND]",
	.help = "Lists the commands, or prints the help of COMMAND.",
	.options = no_options,
};

static const struct command command_version = {
	.name = "version",
	.about = "print the version",
	.usage = "[OPTION...]",
	.help = "Prints the version.",
	.options = no_options,
};

const struct command *const commands[] = {
	&command_record,
	&command_top,
	&command_report,
	&command_annotate,
	&command_diff,
	&command_export,
	&command_gperf,
	&command_complete,
	&command_help,
	&command_version,
	&command_unwind_tables,
	NULL
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void print_commands(FILE *out)
{
	fprintf(out, "usage: profil COMMAND [ARG...]\n\n");
	for (size_t i = 0; commands[i] && commands[i]->about; i++)
		fprintf(out, "  %-10s%s\n", commands[i]->name, commands[i]->about);
	fprintf(out, "\nFor example, with the callers of each function:\n\n"
		     "    profil record -g ./program ARG...\n"
		     "    profil report --children\n"
		     "    profil annotate\n\n"
		     "See \"profil help COMMAND\", and profil(1).\n");
}

/* Returns the exit status. */
static int unknown_command(const char *name)
{
	const char *hint = "\"profil help\" lists them";

	if (!strcmp(name, "script"))
		hint = "\"profil export\" writes the samples for other programs";
	fprintf(stderr, "profil: there is no command \"%s\"; %s\n", name, hint);
	return COMMAND_USAGE;
}

/* Prints the help of @name, or the list of commands if it is NULL. Returns the exit status. */
static int help(const char *name)
{
	const struct command *command = name ? command_find(name) : NULL;

	if (name && !command)
		return unknown_command(name);
	if (command)
		command_print_help(stdout, command);
	else
		print_commands(stdout);
	return 0;
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
	int status;

	open_standard_streams();

	if (argc < 2) {
		print_commands(stderr);
		return COMMAND_USAGE;
	}
	name = argv[1];
	if (!strcmp(name, "-h") || !strcmp(name, "--help"))
		name = "help";
	else if (!strcmp(name, "-V") || !strcmp(name, "--version"))
		name = "version";
	command = command_find(name);
	if (!command)
		return unknown_command(name);
	if (command->run)
		return flush_output(command->run(argc - 1, argv + 1));
	status = command_parse(command, argc - 1, argv + 1, NULL);
	if (status >= 0)
		return flush_output(status);
	if (command == &command_help)
		return flush_output(help(argv[1 + optind]));
	printf("profil %s\n", PROFIL_VERSION);
	return flush_output(0);
}
