/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The changes between two recordings: their functions side by side, and the significance of each
 * difference
 */
#ifndef PROFIL_TOOLS_CHANGES_H
#define PROFIL_TOOLS_CHANGES_H

#include "profile/rows.h"

/* The maximum probability that a change is reported as significant by accident. */
#define CHANGES_CHANCE 0.01

/**
 * struct change - A function in both recordings
 * @ticks: Its ticks in each recording, weighted by their periods.
 * @squares: The sum of the squares of their weights.
 * @value: Its CPU time in s, or its share.
 * @difference: The second value minus the first one.
 * @error: The standard error of the difference.
 * @chance: The probability of such a difference if nothing has changed, corrected for the number
 *	of functions.
 */
struct change {
	u64 ticks[2];
	double squares[2];
	double value[2];
	double difference;
	double error;
	double chance;

	/* Only changes.c uses this. */
	struct row row;
};

/**
 * struct changes - The functions of two recordings
 * @rows: The rows of the recordings, by binary and symbol. Set by the caller of changes_make().
 * @shares: Compare shares instead of CPU times. Set by the caller, too.
 * @with_callees: Count a function in each sample whose chain contains it. The rows must have been
 *	made with chains. Set by the caller, too.
 * @changes: The significant ones first, then those with the largest difference.
 * @names: For each change, a row with the names only: binaries have no directory.
 * @nr_significant: The number of significant changes.
 */
struct changes {
	const struct rows *rows[2];
	bool shares;
	bool with_callees;

	struct change *changes;
	struct row *names;
	size_t nr;
	size_t nr_significant;
};

void changes_make(struct changes *changes);
void changes_free(struct changes *changes);

/*
 * Returns the index of the function with the highest values. @value: Out: the smallest value in the
 * second recording that would be significant, or NAN if there is none. There must be a function.
 */
size_t changes_sensitivity(const struct changes *changes, double *value);

#endif /* PROFIL_TOOLS_CHANGES_H */
