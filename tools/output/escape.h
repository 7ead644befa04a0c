/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing of untrusted text, without control sequences that a terminal would obey
 */
#ifndef PROFIL_TOOLS_ESCAPE_H
#define PROFIL_TOOLS_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/**
 * escape_print - Print a string without anything that a terminal would obey
 * @out: The stream.
 * @text: The string, UTF-8 or not. Each byte of a control character, of a character that changes
 *	the writing direction, and of malformed UTF-8 is printed as \xNN.
 */
void escape_print(FILE *out, const char *text);

/* Returns the number of characters that escape_print() prints. */
size_t escape_width(const char *text);

#endif /* PROFIL_TOOLS_ESCAPE_H */
