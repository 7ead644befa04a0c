/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of a report: samples with their functions, added up by the keys that the user has chosen
 */
#ifndef PROFIL_TOOLS_ROWS_H
#define PROFIL_TOOLS_ROWS_H

#include <stdio.h>

#include "recording/recording.h"
#include "symbols/symbols.h"

#define ROWS_KEYS_MAX 5
/* Stands for the name of a binary, process or host that is not known. */
#define ROWS_UNKNOWN "[unknown]"

struct rows;

/**
 * struct row - The ticks of one or more samples
 * @sample: The first of these samples.
 * @user: The user ticks of all these samples.
 * @system: The system ticks of all these samples.
 * @symbol: The function, or NULL.
 * @binary: The path of the binary, or a name in brackets.
 * @label: The name of the binary in the report.
 * @offset: Offset in the binary, or the address of code that is in no file.
 */
struct row {
	const struct recording_sample *sample;
	u64 user;
	u64 system;
	const struct symbol *symbol;
	const char *binary;
	const char *label;
	u64 offset;
};

/**
 * struct row_key - A property by which rows can be added up
 * @name: The name of the key, as the user writes it.
 * @title: The title of the column for the key.
 * @compare: Compares two rows. If the result is 0 for all keys, the rows are added up.
 * @print: Prints the property, escaped.
 */
struct row_key {
	const char *name;
	const char *title;
	int (*compare)(const struct row *a, const struct row *b, const struct rows *rows);
	void (*print)(FILE *out, const struct row *row);
};

/* The keys for "profil report --sort"; and a key that prints a function with its binary. */
extern const struct row_key row_keys[ROWS_KEYS_MAX];
extern const struct row_key row_key_function;

/**
 * struct rows_binary - A file of the recording
 * @state: Whether the file could be read, and if not, the reason.
 * @label: The name of the file in the report.
 * @ticks: The ticks in this file.
 */
struct rows_binary {
	enum binary_state state;
	const char *label;
	u64 ticks;
};

/**
 * struct rows - The rows of a recording
 * @keys: The keys by which samples are added up; set by the caller. Without keys there is one row
 *	for each sample.
 * @lines: The maximum number of rows that the text format prints; 0: all. Set by the caller.
 * @demangle: Demangle names. Set by the caller.
 * @recording: The recording.
 * @rows: The rows, those with the most ticks first.
 * @binaries: One for each of @recording->files.
 * @ticks: The ticks of all rows.
 * @user_in_files: User ticks in files and the vDSO.
 * @user_in_jit: User ticks in functions of /tmp/perf-PID.map.
 * @user_in_memory: User ticks in other memory, which is not mapped from a file.
 * @user_in_symbols: User ticks in functions that have a name.
 */
struct rows {
	const struct row_key *keys[ROWS_KEYS_MAX];
	size_t nr_keys;
	u64 lines;
	bool demangle;

	const struct recording *recording;
	struct row *rows;
	size_t nr;
	struct rows_binary *binaries;
	u64 ticks;
	u64 user_in_files;
	u64 user_in_jit;
	u64 user_in_memory;
	u64 user_in_symbols;

	/* Only rows.c uses these. */
	struct symbols *symbols;
	struct rows_jit *jits;		/* one for each process */
	bool by_binary;
};

/* Makes the rows from all samples. Returns false if there is no memory. */
bool rows_make(struct rows *rows, const struct recording *recording);
void rows_free(struct rows *rows);

static inline u64 row_ticks(const struct row *row)
{
	return ticks_add(row->user, row->system);
}

#endif /* PROFIL_TOOLS_ROWS_H */
