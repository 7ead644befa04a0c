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

/* Writes an array for each row, with five numbers for each of its cells. */
static void write_cells(struct json *json, const struct timeline *timeline)
{
	const struct rows *rows = timeline->rows;
	const size_t nr_rows = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX + 1;
	size_t at = 0;

	json_line(json);
	json_array(json, "cells", '\n');
	for (size_t i = 0; i < nr_rows; i++) {
		json_array(json, NULL, 0);
		for (; at < timeline->nr_cells && timeline->cells[at].row == i; at++) {
			const struct timeline_cell *cell = &timeline->cells[at];

			json_number(json, NULL, cell->lane);
			json_number(json, NULL, cell->interval);
			json_number(json, NULL, cell->nr);
			json_number(json, NULL, cell->ticks);
			json_format(json, NULL, "%.0f", cell->squares);
		}
		json_end(json);
	}
	json_end(json);
}

/* Writes four numbers for each cell of the lines, or of the flame graph. */
static void write_parts(struct json *json, const char *name, const struct timeline *timeline)
{
	json_line(json);
	json_array(json, name, 0);
	for (size_t i = 0; i < timeline->nr_cells; i++) {
		const struct timeline_cell *cell = &timeline->cells[i];

		if (cell->row == timeline->rows_max)
			continue;
		json_number(json, NULL, cell->row);
		json_number(json, NULL, cell->lane);
		json_number(json, NULL, cell->interval);
		json_number(json, NULL, cell->ticks);
	}
	json_end(json);
}

/* @lines, @flame: the same timeline for these. @flame can be NULL. */
static void write_timeline(struct json *json, const struct timeline *timeline,
			   const struct timeline *lines, const struct timeline *flame)
{
	json_object(json, NULL);
	json_text(json, "name", timeline->key->title);
	write_lanes(json, timeline);
	write_cells(json, timeline);
	write_parts(json, "lines", lines);
	if (flame)
		write_parts(json, "flame", flame);
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

void html_write_timelines(struct json *json, const struct rows *rows, const struct hot_lines *lines,
			  const struct flame *flame)
{
	const struct row_key *thread = &row_keys[ROWS_BY_THREAD], *cpu = &row_keys[ROWS_BY_CPU];
	const u32 *node_of = flame ? flame->node_of : NULL;
	struct timeline timelines[] = {
		{ .rows = rows, .key = thread, .rows_max = ROWS_MAX },
		{ .rows = rows, .key = cpu, .rows_max = ROWS_MAX },
		{ .rows = rows, .key = thread, .row_of = lines->line_of, .rows_max = LINES_MAX },
		{ .rows = rows, .key = cpu, .row_of = lines->line_of, .rows_max = LINES_MAX },
		{ .rows = rows, .key = thread, .row_of = node_of, .rows_max = NODES_MAX },
		{ .rows = rows, .key = cpu, .row_of = node_of, .rows_max = NODES_MAX },
	};
	const size_t nr_timelines = flame ? 6 : 4;
	u64 interval_ns = rows->recording->interval_ns, nr = count_intervals(rows);
	size_t most = 0;

	for (size_t i = 0; i < nr_timelines; i++) {
		timelines[i].lanes_max = LANES_MAX;
		timeline_make(&timelines[i]);
		if (timelines[i].nr_cells > timelines[most].nr_cells)
			most = i;
	}
	while (nr > RECORDING_INTERVALS_MAX || (nr > 1 && timelines[most].nr_cells > CELLS_MAX)) {
		interval_ns *= 2;
		nr = nr / 2 + nr % 2;
		for (size_t i = 0; i < nr_timelines; i++) {
			timeline_coarsen(&timelines[i]);
			if (timelines[i].nr_cells > timelines[most].nr_cells)
				most = i;
		}
	}
	json_line(json);
	json_number(json, "from", rows->recording->filter.from);
	json_number(json, "to", rows->recording->filter.to);
	json_number(json, "interval", interval_ns);
	json_number(json, "intervals", nr);
	json_line(json);
	json_array(json, "timelines", 0);
	for (size_t i = 0; i < 2; i++) {
		json_line(json);
		write_timeline(json, &timelines[i], &timelines[i + 2],
			       flame ? &timelines[i + 4] : NULL);
	}
	json_end(json);
	for (size_t i = 0; i < nr_timelines; i++)
		timeline_free(&timelines[i]);
}
