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
		json_format(json, NULL, "%.0f", (double)cell->ticks - cell->nr);
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
	const struct timeline_cell *cell = timeline->cells, *end = cell + timeline->nr_cells;

	timeline_sort_by_time(timeline);
	json_line(json);
	json_array(json, name, '\n');
	while (cell < end) {
		const u32 lane = cell->lane, interval = cell->interval;
		u32 row = 0;

		json_array(json, NULL, 0);
		json_number(json, NULL, lane);
		json_number(json, NULL, interval);
		for (; cell < end && cell->lane == lane && cell->interval == interval; cell++) {
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

	view->rows = timeline;
	view->lines = timeline;
	view->stacks = timeline;
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

static void view_drop(struct view *view)
{
	timeline_free(&view->flame);
	timeline_free(&view->functions);
	timeline_free(&view->calls);
	view->flame = (struct timeline){};
	view->functions = (struct timeline){};
	view->calls = (struct timeline){};
}

/* Makes the timelines of parts of the stacks. Returns false if there would be too many cells. */
static bool view_spread(struct view *view, struct hot_lines *lines, struct flame *flame)
{
	const struct timeline *from = &view->stacks;

	view->flame.rows_max = flame->nr;
	view->functions.rows_max = flame->nr_counted;
	view->calls.rows_max = LINES_MAX;
	if (timeline_spread(&view->flame, from, CELLS_MAX, flame_place, flame) &&
	    timeline_spread(&view->functions, from, CELLS_MAX, flame_functions, flame) &&
	    timeline_spread(&view->calls, from, CELLS_MAX, hot_lines_of, lines))
		return true;
	view_drop(view);
	return false;
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
	view_drop(view);
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

/* The timelines by thread and by CPU, which have the same intervals */
struct views {
	struct view views[2];
	u64 nr;
	u64 interval_ns;
};

/* Makes the intervals twice as long. */
static void coarsen(struct views *views)
{
	views->interval_ns *= 2;
	views->nr = views->nr / 2 + views->nr % 2;
	view_coarsen(&views->views[0]);
	view_coarsen(&views->views[1]);
}

/* Makes the intervals longer, until there are few enough of them and of their cells. */
static void limit(struct views *views)
{
	while (views->nr > RECORDING_INTERVALS_MAX ||
	       (views->nr > 1 && view_cells(&views->views[0]) + view_cells(&views->views[1]) >
				 CELLS_MAX))
		coarsen(views);
}

void html_write_timelines(struct json *json, const struct rows *rows, struct hot_lines *lines,
			  struct flame *flame)
{
	struct views views = {
		.nr = count_intervals(rows),
		.interval_ns = rows->recording->interval_ns,
	};

	view_make(&views.views[0], rows, ROWS_BY_THREAD, lines, flame);
	view_make(&views.views[1], rows, ROWS_BY_CPU, lines, flame);
	limit(&views);
	for (int i = 0; i < 2 && flame; i++)
		while (!view_spread(&views.views[i], lines, flame))
			coarsen(&views);
	limit(&views);
	json_line(json);
	json_number(json, "from", rows->recording->filter.from);
	json_number(json, "to", rows->recording->filter.to);
	json_number(json, "interval", views.interval_ns);
	json_number(json, "intervals", views.nr);
	json_line(json);
	json_array(json, "timelines", 0);
	for (int i = 0; i < 2; i++)
		view_write(json, &views.views[i], flame);
	json_end(json);
	for (int i = 0; i < 2; i++)
		view_free(&views.views[i]);
}
