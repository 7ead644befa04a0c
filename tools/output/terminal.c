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

#include "output/output.h"

#define WIDTH_DEFAULT 80
/* The minimum width of a line: columns cannot be shortened further. */
#define WIDTH_MIN 40
/* Exit if the text fits on the screen, keep it there at the end, and print colours. */
#define LESS_OPTIONS "FRX"
/* Shares of at least this size have a colour, the same as in perf report. */
#define SHARE_HIGH 0.05
#define SHARE_MEDIUM 0.005

static size_t terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return columns && atoi(columns) > 0 ? atoi(columns) : WIDTH_DEFAULT;
}

void output_get_terminal(struct output_options *options)
{
	const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	options->width = terminal_width();
	if (options->width < WIDTH_MIN)
		options->width = WIDTH_MIN;
	options->colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
			  strcmp(terminal, "dumb");
}

const char *output_colour(const struct output_options *options, double share)
{
	if (!options->colour || share < SHARE_MEDIUM)
		return "";
	return share >= SHARE_HIGH ? OUTPUT_RED : OUTPUT_GREEN;
}

FILE *output_open_pager(void)
{
	const char *pager = getenv("PAGER");
	FILE *out;

	if (!isatty(STDOUT_FILENO) || (pager && (!*pager || !strcmp(pager, "cat"))))
		return stdout;
	if (!pager)
		pager = "if command -v less >/dev/null; then exec less; else exec cat; fi";
	setenv("LESS", LESS_OPTIONS, 0);
	out = popen(pager, "we");
	if (!out)
		return stdout;
	/* The user may leave the pager before its end. Signals from the keyboard are for it. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return out;
}

bool output_close_pager(FILE *out)
{
	bool done;

	if (out == stdout)
		return true;
	done = !fflush(out) || errno == EPIPE;
	pclose(out);
	return done;
}
