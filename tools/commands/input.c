// SPDX-License-Identifier: GPL-2.0-or-later
/* See input.h. */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "commands/input.h"

bool input_set_filter(const struct command_setting *setting)
{
	const char *name = setting->option->name;
	char *value = setting->value;
	struct input *input = setting->member;
	struct rows_filter *rows = &input->rows.filter;
	struct recording_filter *filter = &input->filter;
	u64 number = 0;
	bool fine = true;

	if (!strcmp(name, "comm"))
		rows->comm = value;
	else if (!strcmp(name, "dso"))
		rows->dso = value;
	else if (!strcmp(name, "symbol"))
		rows->symbol = value;
	else if (!strcmp(name, "from"))
		fine = command_parse_time(value, &filter->from);
	else if (!strcmp(name, "to"))
		fine = command_parse_time(value, &filter->to) && filter->to;
	else
		fine = command_parse_number(value, INT_MAX, &number) ||
		       (!strcmp(name, "cpu") && !strcmp(value, "0"));
	if (!strcmp(name, "thread"))
		rows->tid = number;
	else if (!strcmp(name, "cpu"))
		filter->cpu = number;
	if (!fine)
		warnx("--%s: \"%s\" is not valid", name, value);
	rows->text = reconcat(rows->text, rows->text ?: "", " --", name, " ", value, NULL);
	return fine;
}

/* Appends a key to the columns. The symbol is always the last column, because it is the widest. */
static bool add_key(struct rows *rows, const struct row_key *key)
{
	size_t at = rows->nr_keys;

	for (size_t i = 0; i < rows->nr_keys; i++) {
		if (rows->keys[i] == key) {
			warnx("--sort has %s twice", key->name);
			return false;
		}
	}
	if (at && rows->keys[at - 1] == &row_keys[ROWS_BY_SYMBOL]) {
		rows->keys[at] = rows->keys[at - 1];
		at--;
	}
	rows->keys[at] = key;
	rows->nr_keys++;
	return true;
}

/* Returns the name of a key, which can be one that perf uses. */
static const char *key_name(const char *name)
{
	static const struct { const char *perf, *name; } names[] = {
		{ "sym", "symbol" }, { "pid", "process" }, { "tid", "thread" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i].perf))
			return names[i].name;
	return name;
}

bool input_set_keys(const struct command_setting *setting)
{
	const struct command_option *option = setting->option;
	char *names = setting->value, *name;
	struct rows *rows = setting->member;
	size_t i;

	rows->nr_keys = 0;
	while ((name = strsep(&names, ","))) {
		for (i = 0; option->word(i).name && strcmp(key_name(name), option->word(i).name);
		     i++)
			;
		if (!option->word(i).name) {
			warnx("cannot sort by \"%s\"; the keys are:", name);
			command_print_words(option->word);
			return false;
		}
		if (!add_key(rows, &row_keys[i]))
			return false;
	}
	return true;
}

bool input_check_options(const struct input *input, int argc, char **argv)
{
	if (optind < argc) {
		warnx("unexpected argument \"%s\"; use -i to read another file", argv[optind]);
		return false;
	}
	if (input->filter.to && input->filter.from >= input->filter.to) {
		warnx("--from must be less than --to");
		return false;
	}
	return true;
}

bool input_read(struct input *input)
{
	const char *error;

	input->filter.keep_stacks = input->rows.options.chains;
	input->recording = recording_read(input->path, &input->filter, &error);
	if (!input->recording) {
		warnx("%s: %s%s", input->path, error,
		      !strcmp(input->path, COMMAND_DATA) && access(COMMAND_DATA, F_OK) ?
		      "; \"profil record\" writes it" : "");
		return false;
	}
	input->rows.options.chains &= recording_has_stacks(input->recording);
	input->rows.options.keep_parts |= input->rows.options.chains;
	if (!rows_make(&input->rows, input->recording)) {
		warn("%s", input->rows.symfs);
		return false;
	}
	return true;
}

bool input_check_rows(const struct input *input)
{
	if (input->rows.nr)
		return true;
	if (input->recording->skipped_bytes || input->recording->error)
		warnx("%s: no sample can be read", input->path);
	else if (input->rows.filter.text)
		warnx("%s: no sample matches%s", input->path, input->rows.filter.text);
	else
		return true;
	return false;
}

void input_free(struct input *input)
{
	rows_free(&input->rows);
	if (input->recording)
		recording_free(input->recording);
	free(input->rows.filter.text);
}
