/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shorter forms of the names of functions
 */
#ifndef PROFIL_TOOLS_NAMES_H
#define PROFIL_TOOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Shortens the name of a function to @width columns: replaces its parameters by (...), then its
 * template arguments by <...>, and then its middle by dots.
 */
void names_fit(char *name, size_t width);

/*
 * Returns true if @name, with or without its parameters and the mark of an inlined function, is
 * @pattern or matches it as in fnmatch().
 */
bool names_match(const char *name, const char *pattern);

#endif /* PROFIL_TOOLS_NAMES_H */
