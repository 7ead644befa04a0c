/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text from files that anybody may have written, made fit for a terminal
 */
#ifndef PROFIL_TOOLS_TEXT_H
#define PROFIL_TOOLS_TEXT_H

#include <stddef.h>
#include <stdio.h>

/**
 * text_print - Print a string without what terminals obey
 * @out: Where to.
 * @text: UTF-8, or not. What is not, control characters and those that turn the direction of
 *	writing become \xNN for each byte.
 */
void text_print(FILE *out, const char *text);

/* How many columns that takes, taking one for each character. */
size_t text_width(const char *text);

#endif /* PROFIL_TOOLS_TEXT_H */
