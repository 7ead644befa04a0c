/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing of untrusted text, without control sequences that a terminal would obey.
 */
#ifndef PROFIL_TOOLS_ESCAPE_H
#define PROFIL_TOOLS_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Prints @text. Each byte of malformed UTF-8, of a control character, and of a character that has
 * no width is printed as \xNN.
 */
void escape_print(FILE *out, const char *text);

/* Returns what escape_print() prints; the caller frees it. */
char *escape_text(const char *text);

/* Returns the number of columns of a terminal that the output of escape_print() takes. */
size_t escape_width(const char *text);

/* Removes the end of @text, which is escaped, if it is wider than @width. */
void escape_cut(char *text, size_t width);

/* Replaces the middle of @text, which is escaped, by dots if @text is wider than @width. */
void escape_fit(char *text, size_t width);

#endif /* PROFIL_TOOLS_ESCAPE_H */
