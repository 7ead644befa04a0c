// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: the options. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "commands/sampling.h"

/* ---- the processes ---- */

struct pids {
	pid_t *pids;
	size_t nr;
};

static void add_pid(struct pids *list, pid_t pid)
{
	for (size_t i = 0; i < list->nr; i++)
		if (list->pids[i] == pid)
			return;
	if (!array_grow(&list->pids, list->nr, sizeof(pid)))
		xmalloc_failed(sizeof(pid));
	list->pids[list->nr++] = pid;
}

/* Returns true if this is the name of the process or of its program. */
static bool has_name(const char *pid, const char *name)
{
	char comm[16], path[64], text[PATH_MAX];
	ssize_t len;

	/* The kernel cuts the name of a process. */
	if (stream_read_comm(atoi(pid), comm) &&
	    (!strcmp(comm, name) ||
	     (strlen(comm) == sizeof(comm) - 1 && !strncmp(comm, name, strlen(comm)))))
		return true;
	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	len = readlink(path, text, sizeof(text) - 1);
	if (len < 0)
		return false;
	text[len] = '\0';
	return !strcmp(basename(text), name);
}

/* Adds the processes with this name, but not this one. Returns false if there are none. */
static bool add_processes(struct pids *list, const char *name)
{
	DIR *proc = opendir("/proc");
	const size_t before = list->nr;
	const struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)*entry->d_name) && atoi(entry->d_name) != getpid() &&
		    has_name(entry->d_name, name))
			add_pid(list, atoi(entry->d_name));
	if (proc)
		closedir(proc);
	return list->nr > before;
}

bool session_set_pids(const struct command_setting *setting)
{
	char *text = xstrdup(setting->value), *rest = text, *word, *at;
	struct pids list = { };
	bool valid = true;
	u64 number;

	/* Blanks are as pidof prints them. */
	for (at = text; (at = strpbrk(at, " \t\n")); at++)
		*at = ',';
	while (valid && (word = strsep(&rest, ","))) {
		if (command_parse_number(word, INT_MAX, &number))
			add_pid(&list, number);
		else
			valid = *word && add_processes(&list, word);
		if (!valid)
			warnx("-p: \"%s\" is neither a process id nor the name of a process", word);
	}
	free(text);
	add_pid(&list, 0);
	memcpy(setting->member, &list.pids, sizeof(list.pids));
	return valid;
}

/* ---- the clock ---- */

static bool parse_freq(const char *text, u64 *period)
{
	char *end;
	double hz = strtod(text, &end);

	/* If the period does not fit in 64 bits, use another one that is too long. */
	*period = hz * NS_PER_S > 1 ? NS_PER_S / hz + 0.5 : NS_PER_S * 1e9;
	return end != text && !*end && hz > 0 && hz <= NS_PER_S;
}

bool session_set_freq(const struct command_setting *setting)
{
	struct session_options *options = setting->member;
	bool valid;

	options->freq_chosen = true;
	options->freq_max = !strcmp(setting->value, "max");
	valid = options->freq_max || parse_freq(setting->value, &options->period);
	return command_check_value(setting, valid, "a number of ticks per second");
}

bool session_set_tick(const struct command_setting *setting)
{
	u64 *period = setting->member;

	*period = 0;
	return true;
}

struct command_word session_stacks_word(size_t index)
{
	return (struct command_word) { .name = index ? NULL : "fp" };
}

bool session_set_stacks(const struct command_setting *setting)
{
	struct session_options *options = setting->member;
	const char *method = setting->value;

	options->stacks = true;
	options->frame_pointers = method && !strcmp(method, "fp");
	if (!method || options->frame_pointers)
		return true;
	/* What perf does with debug information, unwind tables do here. Its size has no meaning. */
	if (!strcmp(setting->option->name, "call-graph") &&
	    !strncmp(method, "dwarf", strlen("dwarf")))
		return true;
	warnx("--%s: there is no method \"%s\"; leave it out, or use fp, frame pointers only",
	      setting->option->name, method);
	return false;
}

/* ---- all options ---- */

/* Takes the command from the remaining arguments. Returns the exit status, or -1 to continue. */
static int parse_target(const struct command *command, int argc, char **argv,
			struct session_options *options)
{
	const bool has_command = optind < argc;
	const char *wrong = NULL;

	if (options->pids && options->all)
		wrong = "either -a or -p, not both";
	else if (options->all && options->no_children)
		wrong = "either -a or --no-children, not both";
	else if (options->runtimes && (!has_command || options->pids || options->all))
		wrong = "--runtimes sets the environment of a command, and takes no -a or -p";
	else if (!has_command && !options->pids && !options->all)
		wrong = "nothing to sample: give a command, -p or -a";
	if (wrong) {
		warnx("%s", wrong);
		return command_name_help(command);
	}
	if (has_command)
		options->command = argv + optind;
	return -1;
}

int session_parse_options(const struct command *command, int argc, char **argv, void *parsed,
			  struct session_options *options)
{
	int status = command_parse(command, argc, argv, parsed);

	return status < 0 ? parse_target(command, argc, argv, options) : status;
}
