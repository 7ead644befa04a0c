// SPDX-License-Identifier: GPL-2.0-or-later
/* See timeline.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/timeline.h"

/* A lane, and its parts in the array of all parts, sorted by lane. */
struct group {
	struct timeline_lane lane;
	size_t first;
	size_t nr;
};

static int compare_lanes(const void *a, const void *b, void *data)
{
	const struct timeline *timeline = data;

	return timeline->key->compare(*(const struct row *const *)a, *(const struct row *const *)b);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return compare_u64(y->lane.ticks, x->lane.ticks) ?: compare_u64(x->first, y->first);
}

static int compare_cells(const void *a, const void *b)
{
	const struct timeline_cell *x = a, *y = b;

	return compare_u64(x->row, y->row) ?: compare_u64(x->lane, y->lane) ?:
	       compare_u64(x->interval, y->interval);
}

static void add_cell(struct timeline_cell *to, const struct timeline_cell *from)
{
	to->nr = ticks_add(to->nr, from->nr);
	to->ticks = ticks_add(to->ticks, from->ticks);
	to->squares += from->squares;
}

/* Adds up cells that are equal. */
static void merge_cells(struct timeline *timeline)
{
	struct timeline_cell *to = timeline->cells, *end = to + timeline->nr_cells;

	if (!timeline->nr_cells)
		return;
	for (struct timeline_cell *from = to + 1; from < end; from++) {
		if (compare_cells(to, from)) {
			*++to = *from;
			continue;
		}
		add_cell(to, from);
	}
	timeline->nr_cells = to + 1 - timeline->cells;
}

/* Sorts the parts by lane. Returns the groups, of which there are *@nr. */
static struct group *find_groups(const struct timeline *timeline, const struct row **parts,
				 size_t *nr)
{
	const struct rows *rows = timeline->rows;
	struct group *groups = xcalloc(rows->nr_parts + 1, sizeof(*groups)), *group = NULL;

	for (size_t i = 0; i < rows->nr_parts; i++)
		parts[i] = &rows->parts[i];
	qsort_r(parts, rows->nr_parts, sizeof(*parts), compare_lanes, (void *)timeline);
	*nr = 0;
	for (size_t i = 0; i < rows->nr_parts; i++) {
		if (!group || timeline->key->compare(group->lane.row, parts[i])) {
			group = &groups[(*nr)++];
			group->lane.row = parts[i];
			group->first = i;
		}
		group->lane.ticks = ticks_add(group->lane.ticks, row_ticks(parts[i]));
		group->nr++;
	}
	return groups;
}

/* Finds the lanes, and sets the lane of each cell. */
static void find_lanes(struct timeline *timeline)
{
	const struct rows *rows = timeline->rows;
	const struct row **parts = xcalloc(rows->nr_parts + 1, sizeof(*parts));
	struct timeline_lane *lane;
	size_t nr;
	struct group *groups = find_groups(timeline, parts, &nr);

	qsort(groups, nr, sizeof(*groups), compare_groups);
	timeline->nr_lanes = nr;
	if (nr > timeline->lanes_max) {
		timeline->nr_lanes = timeline->lanes_max + 1;
		timeline->other_lanes = nr - timeline->lanes_max;
	}
	timeline->lanes = xcalloc(timeline->nr_lanes + 1, sizeof(*timeline->lanes));
	for (size_t i = 0; i < nr; i++) {
		const size_t index = i < timeline->lanes_max ? i : timeline->lanes_max;

		lane = &timeline->lanes[index];
		lane->row = i < timeline->lanes_max ? groups[i].lane.row : NULL;
		lane->ticks = ticks_add(lane->ticks, groups[i].lane.ticks);
		for (size_t j = 0; j < groups[i].nr; j++)
			timeline->cells[parts[groups[i].first + j] - rows->parts].lane = index;
	}
	free(groups);
	free(parts);
}

static void make_cell(struct timeline *timeline, const struct row *part, size_t row)
{
	timeline->cells[part - timeline->rows->parts] = (struct timeline_cell){
		.row = row < timeline->rows_max ? row : timeline->rows_max,
		.interval = part->sample->interval,
		.nr = part->nr,
		.ticks = row_ticks(part),
		.squares = part->squares,
	};
}

void timeline_make(struct timeline *timeline)
{
	const struct rows *rows = timeline->rows;

	timeline->nr_cells = rows->nr_parts;
	timeline->cells = xcalloc(rows->nr_parts + 1, sizeof(*timeline->cells));
	for (size_t i = 0; i < rows->nr_parts && timeline->row_of; i++)
		make_cell(timeline, &rows->parts[i], timeline->row_of[i]);
	for (size_t i = 0; i < rows->nr && !timeline->row_of; i++)
		for (size_t j = 0; j < rows->rows[i].nr_parts; j++)
			make_cell(timeline, &rows->rows[i].parts[j], i);
	find_lanes(timeline);
	qsort(timeline->cells, timeline->nr_cells, sizeof(*timeline->cells), compare_cells);
	merge_cells(timeline);
}

/* Sorts the cells, if there are any. */
static void sort_cells(struct timeline *timeline, int (*compare)(const void *a, const void *b))
{
	if (timeline->nr_cells)
		qsort(timeline->cells, timeline->nr_cells, sizeof(*timeline->cells), compare);
}

static int compare_times(const void *a, const void *b)
{
	const struct timeline_cell *x = a, *y = b;

	return compare_u64(x->lane, y->lane) ?: compare_u64(x->interval, y->interval) ?:
	       compare_u64(x->row, y->row);
}

/* Appends the sums that are not 0, and clears them. */
static void take_sums(struct timeline *timeline, struct timeline_cell *sums)
{
	for (size_t i = 0; i <= timeline->rows_max; i++) {
		if (!sums[i].nr)
			continue;
		if (!array_grow(&timeline->cells, timeline->nr_cells, sizeof(*sums)))
			xmalloc_failed(sizeof(*sums));
		timeline->cells[timeline->nr_cells++] = sums[i];
		sums[i] = (struct timeline_cell){};
	}
}

bool timeline_spread(struct timeline *to, const struct timeline *from, size_t cells_max,
		     const u32 *(*rows_of)(void *data, u32 row, size_t *nr), void *data)
{
	const size_t nr = from->nr_cells;
	struct timeline_cell *cells = xcalloc(nr + 1, sizeof(*cells));
	struct timeline_cell *sums = xcalloc(to->rows_max + 1, sizeof(*sums));
	const u32 *rows;
	size_t nr_rows;

	if (nr)
		memcpy(cells, from->cells, nr * sizeof(*cells));
	qsort(cells, nr, sizeof(*cells), compare_times);
	for (size_t i = 0; i < nr && to->nr_cells <= cells_max; i++) {
		rows = rows_of(data, cells[i].row, &nr_rows);
		for (size_t j = 0; j < nr_rows; j++) {
			struct timeline_cell *sum = &sums[rows[j]];

			sum->row = rows[j];
			sum->lane = cells[i].lane;
			sum->interval = cells[i].interval;
			add_cell(sum, &cells[i]);
		}
		if (i + 1 == nr || cells[i + 1].lane != cells[i].lane ||
		    cells[i + 1].interval != cells[i].interval)
			take_sums(to, sums);
	}
	free(cells);
	free(sums);
	if (to->nr_cells > cells_max) {
		free(to->cells);
		to->cells = NULL;
		to->nr_cells = 0;
		return false;
	}
	sort_cells(to, compare_cells);
	return true;
}

void timeline_coarsen(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->nr_cells; i++)
		timeline->cells[i].interval /= 2;
	merge_cells(timeline);
}

void timeline_sort_by_time(struct timeline *timeline)
{
	sort_cells(timeline, compare_times);
}

void timeline_free(struct timeline *timeline)
{
	free(timeline->cells);
	free(timeline->lanes);
}
