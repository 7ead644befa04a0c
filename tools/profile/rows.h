/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of a report: samples with their functions, added up by the keys that the user has chosen
 */
#ifndef PROFIL_TOOLS_ROWS_H
#define PROFIL_TOOLS_ROWS_H

#include <math.h>
#include <stdio.h>

#include "profile/binaries.h"
#include "recording/completeness.h"

/**
 * struct row - The ticks of one or more samples
 * @sample: The first of these samples.
 * @thread: Its thread, or one with the name PROFILE_UNKNOWN.
 * @nr: The number of ticks of all these samples.
 * @user: Their user ticks, each weighted by its periods.
 * @system: Their system ticks, likewise.
 * @squares: The sum of the squares of their weights.
 * @function: The function.
 * @call: The name of what the kernel did; "[user mode]"; or another name in brackets.
 * @place: The place of the first sample: its offset, if the binary could not be read.
 * @chain: The functions of the first sample, with struct rows_options.chains: see chains.h.
 * @parts: The rows that were added up, one for each sample, if struct rows has them.
 * @nr_parts: Their number.
 */
struct row {
	const struct recording_sample *sample;
	const struct recording_thread *thread;
	u64 nr;
	u64 user;
	u64 system;
	double squares;
	struct profile_function function;
	const char *call;
	struct place place;
	const struct chain *chain;
	const struct row *parts;
	size_t nr_parts;
};

/**
 * struct row_key - A property by which rows can be added up
 * @name: The name of the key, as the user writes it.
 * @compare: Compares two rows. If the result is 0 for all keys, the rows are added up.
 * @print: Prints the property, escaped.
 */
struct row_key {
	const char *name;
	const char *title;
	int (*compare)(const struct row *a, const struct row *b);
	void (*print)(FILE *out, const struct row *row);
};

/* The keys for "profil report --sort" */
enum rows_by {
	ROWS_BY_SYMBOL,
	ROWS_BY_DSO,
	ROWS_BY_PROCESS,
	ROWS_BY_THREAD,
	ROWS_BY_COMM,
	ROWS_BY_SYSCALL,
	ROWS_BY_CPU,
	ROWS_BY_MODE,
	ROWS_BY_OFFSET,
	ROWS_BY_LINE,
	ROWS_BY_TIME,
	ROWS_KEYS_MAX,
};

extern const struct row_key row_keys[ROWS_KEYS_MAX];

/* Returns the property, escaped, which the caller frees. */
char *row_text(const struct row_key *key, const struct row *row);

/**
 * struct rows_filter - The samples to use
 * @text: The options that set this filter and struct recording_filter; or NULL.
 *
 * The strings are patterns for names_match(), or NULL.
 */
struct rows_filter {
	const char *comm;	/* name of the thread */
	const char *dso;	/* path or label of the binary */
	const char *symbol;
	s32 tid;		/* 0: any */
	char *text;
};

bool row_matches(const struct rows_filter *filter, const struct row *row);

/**
 * struct rows_options - The contents and the order of rows
 * @lines: Find source lines also if they are not a key.
 * @number_locals: Number local functions: see struct function.
 * @in_order: Sort the rows by the keys, and without keys by binary and offset.
 * @keep_parts: Keep the rows that are added up. There must be keys.
 * @chains: Make the chain of each sample. The recording must have been read with stacks.
 *	input_read() clears this if the recording was made without them; else it sets @keep_parts.
 */
struct rows_options {
	bool lines;
	bool number_locals;
	bool in_order;
	bool keep_parts;
	bool chains;
};

/**
 * struct rows - The rows of a recording
 * @keys: The keys by which samples are added up. Without keys there is one row for each sample.
 * @inlined: Use inlined functions instead of the functions that contain them.
 * @options: Their contents and order.
 * @recorded: Do not read files whose functions were recorded.
 * @symfs: As for symbols_new().
 * @rows: The rows, those with the most ticks first, unless @options.in_order.
 * @parts: If @options.keep_parts, the rows that were added up; those of one row follow each other.
 * @nr_parts: Their number.
 * @binaries: The binaries.
 * @chain_maker: With @options.chains, the maker of the chains.
 * @ticks: The ticks of all rows, weighted by their periods.
 * @nr_ticks: The number of these ticks.
 * @squares: The sum of the squares of their weights.
 * @unmapped: Those of @ticks whose memory was no longer mapped.
 * @pending: Those of @ticks whose mapping nobody has looked up: see FORMAT_SAMPLE_PENDING.
 * @completeness: With chains, how many of @ticks have a complete one.
 */
struct rows {
	/* Set by the caller of rows_make(). */
	const struct row_key *keys[ROWS_KEYS_MAX];
	size_t nr_keys;
	struct rows_filter filter;
	bool demangle;
	bool inlined;
	struct rows_options options;
	bool recorded;
	const char *symfs;

	const struct recording *recording;
	struct row *rows;
	size_t nr;
	struct row *parts;
	size_t nr_parts;
	struct binaries binaries;
	struct chain_maker *chain_maker;
	u64 ticks;
	u64 nr_ticks;
	double squares;
	u64 unmapped;
	u64 pending;
	struct completeness completeness;

	/* Only rows.c uses this. */
	bool by_binary;
};

/*
 * Makes the rows. Returns false with errno set if @rows->symfs cannot be opened. If there is no
 * memory, all functions for rows and output exit, as xcalloc() does.
 */
bool rows_make(struct rows *rows, const struct recording *recording);

/* Adds up the rows that are equal in all keys, and sorts them. */
void rows_merge(struct rows *rows);

void rows_free(struct rows *rows);

/* Returns the chains of rows that were made with @options.chains. */
const struct chains *rows_chains(const struct rows *rows);

/* Returns the frame of a row without a chain: that of the outermost function at its place. */
struct chain_frame row_frame(const struct row *row);

/* Returns the program or library with the most ticks; NULL if there is none. */
const struct recording_file *rows_hottest_file(const struct rows *rows);

/* Returns the number of rows from @first on that are of the same thread. */
size_t rows_same_thread(const struct rows *rows, size_t first);

/* Returns true if each row is a function of a binary. */
static inline bool rows_by_function(const struct rows *rows)
{
	return rows->nr_keys == 2 && rows->keys[0] == &row_keys[ROWS_BY_DSO] &&
	       rows->keys[1] == &row_keys[ROWS_BY_SYMBOL];
}

static inline u64 row_ticks(const struct row *row)
{
	return ticks_add(row->user, row->system);
}

static inline double share_of(const struct rows *rows, u64 ticks)
{
	return rows->ticks ? (double)ticks / rows->ticks : 0;
}

/* Returns the standard error of the share. Weighted ticks have the error of fewer equal ticks. */
static inline double share_error(const struct rows *rows, u64 ticks)
{
	double share = share_of(rows, ticks);

	return rows->ticks ? sqrt(share * (1 - share) * rows->squares) / rows->ticks : 0;
}

static inline double row_share(const struct rows *rows, const struct row *row)
{
	return share_of(rows, row_ticks(row));
}

static inline double row_error(const struct rows *rows, const struct row *row)
{
	return share_error(rows, row_ticks(row));
}

#endif /* PROFIL_TOOLS_ROWS_H */
