/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ticks of rows by time, and by thread or CPU
 */
#ifndef PROFIL_TOOLS_TIMELINE_H
#define PROFIL_TOOLS_TIMELINE_H

#include "profile/rows.h"

/**
 * struct timeline_lane - A thread or a CPU
 * @row: A part of a row that belongs to it.
 * @ticks: Its ticks, weighted by their periods.
 */
struct timeline_lane {
	const struct row *row;
	u64 ticks;
};

/**
 * struct timeline_cell - The ticks of a row in one lane and one interval
 * @row: The index of the row.
 * @lane: The index of the lane.
 * @interval: The index of the interval.
 * @nr: The number of ticks.
 * @ticks: The ticks, weighted by their periods.
 * @squares: The sum of the squares of the weights.
 */
struct timeline_cell {
	u32 row;
	u32 lane;
	u32 interval;
	u64 nr;
	u64 ticks;
	double squares;
};

/**
 * struct timeline - A timeline
 * @rows: The rows, with parts.
 * @key: Distinguishes the lanes.
 * @row_of: For each part, an index that takes the place of its row; NULL: the index of its row.
 * @rows_max: Rows from this index on count as one.
 * @lanes_max: This number of lanes with the most ticks are kept; the others become one.
 * @cells: Sorted by row, lane and interval.
 * @lanes: Those with the most ticks first.
 * @other_lanes: The number of lanes that became one. It is the last one, and has no @row.
 */
struct timeline {
	/* Set by the caller of timeline_make(). */
	const struct rows *rows;
	const struct row_key *key;
	const u32 *row_of;
	size_t rows_max;
	size_t lanes_max;

	struct timeline_cell *cells;
	size_t nr_cells;
	struct timeline_lane *lanes;
	size_t nr_lanes;
	size_t other_lanes;
};

void timeline_make(struct timeline *timeline);

/*
 * Makes the timeline @to of the cells of @from, which has the lanes. Only rows_max is set in it.
 * @rows_of: returns the @nr rows in which the ticks of a row count, or the number rows_max for the
 * other rows. A row must not be there twice. Returns false, and makes nothing, if there would be
 * more than @cells_max cells.
 */
bool timeline_spread(struct timeline *to, const struct timeline *from, size_t cells_max,
		     const u32 *(*rows_of)(void *data, u32 row, size_t *nr), void *data);

void timeline_free(struct timeline *timeline);

/* Makes the intervals twice as long. */
void timeline_coarsen(struct timeline *timeline);

/* Sorts the cells by lane, interval and row. This is the last change of the timeline. */
void timeline_sort_by_time(struct timeline *timeline);

#endif /* PROFIL_TOOLS_TIMELINE_H */
