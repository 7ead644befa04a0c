/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output formats. Each is a struct output_format in a file of its own, and is declared below.
 */
#ifndef PROFIL_TOOLS_OUTPUT_H
#define PROFIL_TOOLS_OUTPUT_H

#include "output/rows.h"

/**
 * struct output_format - A way to write a recording
 * @name: The name of the format, as the user writes it.
 * @write: Writes @rows to @out. They contain the recording, its samples and their functions.
 *	Returns false if there is no memory. The caller checks @out for other errors.
 */
struct output_format {
	const char *name;
	bool (*write)(FILE *out, const struct rows *rows);
};

/* Text for people to read: a heading, and a table of the rows. */
extern const struct output_format output_text;

#endif /* PROFIL_TOOLS_OUTPUT_H */
