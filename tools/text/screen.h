/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole screen of a terminal, and its keys, for a live view
 *
 * The terminal is restored when the process exits, and before a fatal signal ends it.
 */
#ifndef PROFIL_TOOLS_SCREEN_H
#define PROFIL_TOOLS_SCREEN_H

#include <stdbool.h>

/* Keys that are not characters */
#define SCREEN_LEFT	0x100
#define SCREEN_RIGHT	0x101
#define SCREEN_GONE	0x102	/* the terminal does not exist any more */

/* Returns true if standard input and output are a terminal with a cursor. */
bool screen_is_there(void);

/*
 * Takes the screen. A process in the background stops here until it is in the foreground. To be
 * called again after it was stopped.
 */
void screen_open(void);

/* Gives the screen back, as it was before. Does nothing if it was not taken. */
void screen_close(void);

/* Shows @text: lines that are separated by newlines. The caller makes them short enough. */
void screen_show(const char *text);

/* Returns the next key; 0 if none was pressed. */
int screen_key(void);

#endif /* PROFIL_TOOLS_SCREEN_H */
