/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads a description from standard input. Each line has an item: its name, and words that blanks
 * separate, in which \xNN is any byte. A line that begins with "run " has a command for a shell.
 */
#ifndef _SELFTESTS_REPORT_WORDS_H
#define _SELFTESTS_REPORT_WORDS_H

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define WORDS_MAX 64

struct item {
	const char *name;
	void (*write)(void);
};

/* The words of the item, which the functions below number from 0, the name */
static char *words[WORDS_MAX + 1];
static int nr_words;

static const char *word(int i)
{
	if (i >= nr_words)
		errx(1, "%s: a word is missing", words[0]);
	return words[i];
}

static u64 number(int i)
{
	char *end;
	u64 value = strtoull(word(i), &end, 0);

	if (*end)
		errx(1, "%s: not a number: %s", words[0], word(i));
	return value;
}

/* A number that is 0 if it is missing */
static u64 optional(int i)
{
	return i < nr_words ? number(i) : 0;
}

static void unescape(char *text)
{
	unsigned int byte;
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text, "\\x%2x", &byte) == 1) {
			*to++ = byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static void split(char *line)
{
	nr_words = 0;
	line[strcspn(line, "\n")] = '\0';
	for (char *at = strtok(line, " "); at && nr_words < WORDS_MAX; at = strtok(NULL, " ")) {
		unescape(at);
		words[nr_words++] = at;
	}
	words[nr_words] = NULL;
}

static void run(const char *command)
{
	int status;

	fflush(stdout);
	status = system(command);
	if (status)
		errx(1, "%s: status %d", command, status);
}

/* Calls the functions of all items. @before_run, if any, is called before each command. */
static void read_items(const struct item *items, void (*before_run)(void))
{
	const struct item *item;
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		if (!strncmp(line, "run ", 4)) {
			if (before_run)
				before_run();
			run(line + 4);
			continue;
		}
		split(line);
		if (!nr_words)
			continue;
		for (item = items; item->name && strcmp(words[0], item->name); item++)
			;
		if (!item->name)
			errx(1, "what is %s?", words[0]);
		item->write();
	}
	free(line);
}

#endif
