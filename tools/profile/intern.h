/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers for different strings, for formats that have tables of names
 */
#ifndef PROFIL_TOOLS_INTERN_H
#define PROFIL_TOOLS_INTERN_H

#include <libiberty/hashtab.h>

#include "util.h"

/**
 * struct intern - A set of strings
 * @texts: The strings.
 * @nr: Their number.
 */
struct intern {
	const char **texts;
	size_t nr;
	htab_t table;		/* only intern.c uses this */
};

/* Returns the index of @text. If @text is new, this is the next index. */
size_t intern(struct intern *set, const char *text);

/* The same for a text in the format of printf(). */
size_t intern_format(struct intern *set, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void intern_free(struct intern *set);

#endif /* PROFIL_TOOLS_INTERN_H */
