/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file that a command writes in an output format
 */
#ifndef PROFIL_TOOLS_OUTFILE_H
#define PROFIL_TOOLS_OUTFILE_H

#include "export/export.h"

/**
 * struct outfile - A file to write
 * @path: The file; NULL is standard output.
 * @temporary: The name of a new file until it is complete; or NULL.
 */
struct outfile {
	const char *path;

	/* Only outfile.c uses this. */
	char *temporary;
};

/* Sets the file to @path, where "-" is standard output. */
void outfile_set_path(struct outfile *file, const char *path);

/* Prints an error message and returns false if this is the file @input, which would be lost. */
bool outfile_check(const struct outfile *file, const char *input);

/*
 * Writes the file with @write, which returns NULL or the reason why it cannot write @data. Returns
 * false after an error message; then a regular file has not changed.
 */
bool outfile_write(struct outfile *file, const char *(*write)(FILE *out, const void *data),
		   const void *data);

/* Writes the rows in this way. */
bool outfile_write_rows(struct outfile *file, const struct export_format *format,
			const struct rows *rows);

#endif /* PROFIL_TOOLS_OUTFILE_H */
