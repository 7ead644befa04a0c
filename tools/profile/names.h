/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shorter forms of the names of functions
 */
#ifndef PROFIL_TOOLS_NAMES_H
#define PROFIL_TOOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Shortens the names of functions that are wider than @width columns: first the return type of a
 * template, then parameters, and then template arguments become dots, except where names would look
 * the same: there they keep the words that differ. Then namespaces and classes become dots, from
 * the first one on, and then the middle. Blanks before a name are kept.
 */
void names_fit(char **names, size_t nr, size_t width);

/* Returns the number of columns in which no name needs to lose more than its groups in brackets. */
size_t names_width(char **names, size_t nr);

/**
 * struct names_label - Forms of a name for a narrow place
 * @full: The name without a return type and "std::", and without the mark of an inlined function.
 * @brief: Also without parameters, and with dots as template arguments.
 * @last: Also without namespaces and classes.
 */
struct names_label {
	char *full;
	char *brief;
	char *last;
};

void names_label(struct names_label *label, const char *name);
void names_label_free(struct names_label *label);

/*
 * Returns true if @name, with or without its parameters and the mark of an inlined function, is
 * @pattern or matches it as in fnmatch(); or if @pattern can be what names_fit() made of it.
 */
bool names_match(const char *name, const char *pattern);

#endif /* PROFIL_TOOLS_NAMES_H */
