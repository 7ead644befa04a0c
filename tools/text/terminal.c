// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The terminal on which a report is printed, if the standard output is one
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "text/text.h"

#define WIDTH_DEFAULT 80
#define HEIGHT_DEFAULT 24
/* The minimum width of a line: columns cannot be shortened further. */
#define WIDTH_MIN 40
/* Exit if the text fits on the screen, keep it there at the end, and print colours. */
#define LESS_OPTIONS "FRX"
/* Shares of at least this size have a colour, the same as in perf report. */
#define SHARE_HIGH 0.05
#define SHARE_MEDIUM 0.005

/* Returns a @size of the terminal; or the one in the environment variable @name, or @fallback. */
static size_t choose_size(size_t size, const char *name, size_t fallback)
{
	const char *text = getenv(name);
	const int value = text ? atoi(text) : 0;

	if (!size && value > 0)
		return value;
	return size ?: fallback;
}

void text_get_terminal(struct text_options *options)
{
	const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		size = (struct winsize) {};
	options->width = choose_size(size.ws_col, "COLUMNS", WIDTH_DEFAULT);
	if (options->width < WIDTH_MIN)
		options->width = WIDTH_MIN;
	options->height = choose_size(size.ws_row, "LINES", HEIGHT_DEFAULT);
	options->colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
			  strcmp(terminal, "dumb");
}

const char *text_colour(const struct text_options *options, double share)
{
	if (!options->colour || share < SHARE_MEDIUM)
		return "";
	return share >= SHARE_HIGH ? TEXT_RED : TEXT_GREEN;
}

/* The options that the user has set come last, so that they count. */
static void set_less_options(void)
{
	const char *chosen = getenv("LESS");
	char *options = chosen ? concat("-R ", chosen, NULL) : xstrdup(LESS_OPTIONS);

	setenv("LESS", options, 1);
	free(options);
}

FILE *text_open_pager(void)
{
	const char *pager = getenv("PAGER");
	FILE *out;

	if (!isatty(STDOUT_FILENO) || (pager && (!*pager || !strcmp(pager, "cat"))))
		return stdout;
	if (!pager)
		pager = "if command -v less >/dev/null; then exec less; else exec cat; fi";
	set_less_options();
	out = popen(pager, "we");
	if (!out)
		return stdout;
	/* The user may leave the pager before its end. Signals from the keyboard are for it. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return out;
}

bool text_close_pager(FILE *out)
{
	bool done;

	if (out == stdout)
		return true;
	done = !fflush(out) || errno == EPIPE;
	pclose(out);
	return done;
}
