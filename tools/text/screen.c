// SPDX-License-Identifier: GPL-2.0-or-later
/* See screen.h. The sequences are those of all terminals in use: ECMA-48, and xterm's. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "text/screen.h"

/* The alternate screen, without a cursor, and without a second line for one that is too long */
#define ENTER	"\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE	"\033[?7h\033[?25h\033[?1049l"
#define HOME	"\033[H"
#define LINE	"\033[K\n"	/* clears the rest of the line */
#define END	"\033[K\033[J"	/* also clears what follows */

static struct termios old_mode;
static volatile sig_atomic_t is_open;

bool screen_is_there(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && *terminal &&
	       strcmp(terminal, "dumb");
}

/* Signal handlers call this. In the background, the terminal belongs to another process. */
void screen_close(void)
{
	ssize_t n;

	if (!is_open)
		return;
	is_open = false;
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		return;
	n = write(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	(void)n;	/* If the terminal is gone, nothing can be done. */
	tcsetattr(STDIN_FILENO, TCSADRAIN, &old_mode);
}

static void handle_fatal(int number)
{
	screen_close();
	/* The default action follows when the handler returns. */
	raise(number);
}

static void prepare(void)
{
	static const int fatal[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	static bool is_prepared;
	struct sigaction action = { .sa_handler = handle_fatal, .sa_flags = SA_RESETHAND };

	if (is_prepared)
		return;
	is_prepared = true;
	atexit(screen_close);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		sigaction(fatal[i], &action, NULL);
	tcgetattr(STDIN_FILENO, &old_mode);
}

void screen_open(void)
{
	struct termios mode;

	prepare();
	mode = old_mode;
	mode.c_lflag &= ~(ICANON | ECHO);
	mode.c_cc[VMIN] = 1;
	mode.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
	is_open = true;
	fputs(ENTER, stdout);
	fflush(stdout);
}

void screen_show(const char *text)
{
	fputs(HOME, stdout);
	for (; *text; text++) {
		if (*text != '\n')
			putc(*text, stdout);
		else if (text[1])
			fputs(LINE, stdout);
	}
	fputs(END, stdout);
	fflush(stdout);
}

/* Returns the next byte; 0 if there is none, and SCREEN_GONE after the last one. */
static int next_byte(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char byte;
	ssize_t n;

	if (poll(&input, 1, 0) <= 0)
		return 0;
	n = read(STDIN_FILENO, &byte, 1);
	if (n > 0)
		return byte;
	return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : SCREEN_GONE;
}

/* An arrow is three bytes: ESC [ C, or ESC O C. They arrive together. */
int screen_key(void)
{
	int key = next_byte();

	if (key != '\033')
		return key;
	key = next_byte();
	if (key != '[' && key != 'O')
		return key;
	key = next_byte();
	return key == 'C' ? SCREEN_RIGHT : key == 'D' ? SCREEN_LEFT : key == SCREEN_GONE ? key : 0;
}
