// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: the ticks by time. */
#define _GNU_SOURCE
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"
#include "profile/timeline.h"

static void write_lanes(struct json *json, const struct timeline *timeline)
{
	json_line(json);
	json_array(json, "lanes", '\n');
	for (size_t i = 0; i < timeline->nr_lanes; i++) {
		const struct row *row = timeline->lanes[i].row;
		char *text = row ? row_text(timeline->key, row) :
				   xasprintf("%lu more", (unsigned long)timeline->other_lanes);

		html_write_name(json, NULL, text);
		free(text);
	}
	json_end(json);
}

/* Writes a cell: how much higher its row is than the last one, and its ticks. */
static void write_cell(struct json *json, const struct timeline_cell *cell, u32 step, bool weighted)
{
	json_number(json, NULL, step);
	if (weighted) {
		/* Most ticks stand for one period, and these differences are then 0. */
		json_number(json, NULL, cell->nr);
		json_number(json, NULL, cell->ticks - cell->nr);
		json_format(json, NULL, "%.0f", cell->squares - cell->nr);
	} else {
		json_number(json, NULL, cell->ticks);
	}
}

/*
 * Writes an array for each lane and interval: their indexes, and the cells. @weighted: also the
 * numbers of ticks and the squares. @rest: also the cells of rows that are not shown.
 */
static void write_cells(struct json *json, const char *name, struct timeline *timeline,
			bool weighted, bool rest)
{
	const struct timeline_cell *cell = timeline->cells, *end = cell + timeline->nr_cells, *first;

	timeline_sort_by_time(timeline);
	json_line(json);
	json_array(json, name, '\n');
	while (cell < end) {
		u32 row = 0;

		first = cell;
		json_array(json, NULL, 0);
		json_number(json, NULL, first->lane);
		json_number(json, NULL, first->interval);
		for (; cell < end && cell->lane == first->lane &&
		       cell->interval == first->interval; cell++) {
			if (!rest && cell->row == timeline->rows_max)
				continue;
			write_cell(json, cell, cell->row - row, weighted);
			row = cell->row;
		}
		json_end(json);
	}
	json_end(json);
}

/**
 * struct view - The timelines by thread, or by CPU
 * @rows: Those of the table; it has the lanes.
 * @lines: Those of the source lines.
 * @stacks: Those of stacks. It is not written, but the next ones are made of it.
 * @flame: Those of the nodes that are shown.
 * @functions: Those of functions with their callees.
 * @calls: Those of the source lines with their callees.
 */
struct view {
	struct timeline rows;
	struct timeline lines;
	struct timeline stacks;
	struct timeline flame;
	struct timeline functions;
	struct timeline calls;
};

static void view_make(struct view *view, const struct rows *rows, enum rows_by key,
		      const struct hot_lines *lines, const struct flame *flame)
{
	const struct timeline timeline = {
		.rows = rows, .key = &row_keys[key], .lanes_max = LANES_MAX,
	};

	view->rows = view->lines = view->stacks = timeline;
	view->rows.rows_max = ROWS_MAX;
	view->lines.rows_max = LINES_MAX;
	view->lines.row_of = lines->line_of;
	timeline_make(&view->rows);
	timeline_make(&view->lines);
	if (!flame)
		return;
	view->stacks.rows_max = flame->nr_stacks;
	view->stacks.row_of = flame->stack_of;
	timeline_make(&view->stacks);
}

static void view_spread(struct view *view, struct hot_lines *lines, struct flame *flame)
{
	view->flame.rows_max = flame->nr;
	view->functions.rows_max = flame->nr_keys;
	view->calls.rows_max = LINES_MAX;
	timeline_spread(&view->flame, &view->stacks, flame_place, flame);
	timeline_spread(&view->functions, &view->stacks, flame_functions, flame);
	timeline_spread(&view->calls, &view->stacks, hot_lines_of, lines);
}

static void view_coarsen(struct view *view)
{
	timeline_coarsen(&view->rows);
	timeline_coarsen(&view->lines);
	timeline_coarsen(&view->stacks);
	timeline_coarsen(&view->flame);
	timeline_coarsen(&view->functions);
	timeline_coarsen(&view->calls);
}

/* Returns the number of cells that are written. */
static size_t view_cells(const struct view *view)
{
	return view->rows.nr_cells + view->lines.nr_cells + view->flame.nr_cells +
	       view->functions.nr_cells + view->calls.nr_cells;
}

static void view_free(struct view *view)
{
	timeline_free(&view->rows);
	timeline_free(&view->lines);
	timeline_free(&view->stacks);
	timeline_free(&view->flame);
	timeline_free(&view->functions);
	timeline_free(&view->calls);
}

static void view_write(struct json *json, struct view *view, bool has_flame)
{
	json_line(json);
	json_object(json, NULL);
	json_text(json, "name", view->rows.key->title);
	write_lanes(json, &view->rows);
	write_cells(json, "rows", &view->rows, true, true);
	write_cells(json, "lines", &view->lines, false, false);
	if (has_flame) {
		write_cells(json, "flame", &view->flame, false, false);
		write_cells(json, "functions", &view->functions, false, false);
		write_cells(json, "calls", &view->calls, false, false);
	}
	json_end(json);
}

/* Returns the number of intervals until the end of the recording, or of its part that was read. */
static u64 count_intervals(const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct recording_filter *filter = &recording->filter;
	u64 end = recording_duration(recording), nr = 0;

	for (size_t i = 0; i < rows->nr_parts; i++)
		if (rows->parts[i].sample->interval >= nr)
			nr = rows->parts[i].sample->interval + 1;
	if (filter->to && filter->to < end)
		end = filter->to;
	if (recording->interval_ns && end > filter->from &&
	    (end - filter->from - 1) / recording->interval_ns >= nr)
		nr = (end - filter->from - 1) / recording->interval_ns + 1;
	return nr;
}

/* Makes the intervals longer, until there are few enough of them and of their cells. */
static void coarsen(struct view *views, u64 *nr, u64 *interval_ns)
{
	while (*nr > RECORDING_INTERVALS_MAX ||
	       (*nr > 1 && view_cells(&views[0]) + view_cells(&views[1]) > CELLS_MAX)) {
		*interval_ns *= 2;
		*nr = *nr / 2 + *nr % 2;
		view_coarsen(&views[0]);
		view_coarsen(&views[1]);
	}
}

void html_write_timelines(struct json *json, const struct rows *rows, struct hot_lines *lines,
			  struct flame *flame)
{
	struct view views[2] = {};
	u64 interval_ns = rows->recording->interval_ns, nr = count_intervals(rows);

	view_make(&views[0], rows, ROWS_BY_THREAD, lines, flame);
	view_make(&views[1], rows, ROWS_BY_CPU, lines, flame);
	coarsen(views, &nr, &interval_ns);
	for (int i = 0; i < 2 && flame; i++)
		view_spread(&views[i], lines, flame);
	coarsen(views, &nr, &interval_ns);
	json_line(json);
	json_number(json, "from", rows->recording->filter.from);
	json_number(json, "to", rows->recording->filter.to);
	json_number(json, "interval", interval_ns);
	json_number(json, "intervals", nr);
	json_line(json);
	json_array(json, "timelines", 0);
	for (int i = 0; i < 2; i++)
		view_write(json, &views[i], flame);
	json_end(json);
	for (int i = 0; i < 2; i++)
		view_free(&views[i]);
}
