/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output formats: each is a struct output_format in a file of its own, declared below
 */
#ifndef PROFIL_TOOLS_OUTPUT_H
#define PROFIL_TOOLS_OUTPUT_H

#include "output/rows.h"

/**
 * struct output_format - A way to write a recording
 * @name: As the user writes it.
 * @write: Writes @rows, which have the recording, its samples and their functions, to @out. Returns
 *	false if there is no memory; the caller asks @out for other errors.
 */
struct output_format {
	const char *name;
	bool (*write)(FILE *out, const struct rows *rows);
};

/* For people: a heading, and a table of the rows. */
extern const struct output_format output_text;

#endif /* PROFIL_TOOLS_OUTPUT_H */
