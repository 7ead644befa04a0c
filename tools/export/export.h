/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats for other programs
 */
#ifndef PROFIL_TOOLS_EXPORT_H
#define PROFIL_TOOLS_EXPORT_H

#include "profile/changes.h"
#include "profile/rows.h"

/**
 * struct export_format - A format for other programs
 * @name: Its name, as the user writes it.
 * @about: The program that reads it.
 * @is_binary: It is not text, so a terminal cannot show it.
 * @keys: The keys of the rows.
 * @nr_keys: Their number; 0: there is a row for each sample.
 * @rows: What it needs. With keep_parts, the recording has intervals of time and the CPUs of ticks.
 *	With chains, the rows have parts and chains if the recording has stacks.
 * @write: Writes @rows to @out. The caller checks @out for errors, and prints the warnings. Returns
 *	NULL, or the reason why the format cannot have these rows.
 *
 * Each format is in a file of its own. Names in rows are untrusted: see escape.h.
 */
struct export_format {
	const char *name;
	const char *about;
	bool is_binary;
	enum rows_by keys[ROWS_KEYS_MAX];
	size_t nr_keys;
	struct rows_options rows;
	const char *(*write)(FILE *out, const struct rows *rows);
};

extern const struct export_format export_bolt;
extern const struct export_format export_callgrind;
extern const struct export_format export_csv;
extern const struct export_format export_firefox;
extern const struct export_format export_folded;
extern const struct export_format export_gmon;
extern const struct export_format export_html;
extern const struct export_format export_json;
extern const struct export_format export_llvm;
extern const struct export_format export_pprof;
extern const struct export_format export_speedscope;

/* Writes a comma and the key of a row in quotes. */
void export_csv_key(FILE *out, const struct row_key *key, const struct row *row);

/**
 * struct export_diff - The comparison of two recordings
 * @changes: The changes. The rows of the recordings can have chains.
 * @with_callees: The changes of functions with their callees; NULL if a recording has no chains.
 * @paths: The files.
 * @notes: What else to say, for example that there is no significant change; or an empty text.
 */
struct export_diff {
	const struct changes *changes;
	const struct changes *with_callees;
	const char *const *paths;
	const char *notes;
};

/* Writes a page that shows a struct export_diff, for outfile_write(). */
const char *export_diff_html(FILE *out, const void *diff);

#endif /* PROFIL_TOOLS_EXPORT_H */
