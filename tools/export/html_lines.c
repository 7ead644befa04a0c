// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See html_parts.h: the ticks by source line. Without chains, a part of the rows is at one line.
 * With chains, all of its frames are.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"
#include "profile/chains.h"

/* A line of a function */
struct hot_line {
	const char *source;
	int line;
	const char *name;
	const char *binary;
	u64 ticks;
	u32 index;		/* of the part or frame that it was made of */
};

static int compare_places(const void *a, const void *b)
{
	const struct hot_line *x = a, *y = b;

	return strcmp(x->source, y->source) ?: compare_u64(x->line, y->line) ?:
	       strcmp(x->name, y->name) ?: strcmp(x->binary, y->binary);
}

static int compare_lines(const void *a, const void *b)
{
	const struct hot_line *const *x = a, *const *y = b;

	return compare_u64((*y)->ticks, (*x)->ticks) ?: compare_places(*x, *y);
}

/*
 * Merges the lines that are equal, of @nr, and takes those with the most ticks. @index_of: out: for
 * each of the @nr_indexes, the index of its line.
 */
static void take_lines(struct hot_lines *lines, struct hot_line *all, size_t nr, u32 *index_of,
		       size_t nr_indexes)
{
	struct hot_line **merged = xcalloc(nr + 1, sizeof(*merged));
	size_t nr_merged = 0, *group_of = xcalloc(nr + 1, sizeof(*group_of));
	u32 *places = xcalloc(nr + 1, sizeof(*places));

	qsort(all, nr, sizeof(*all), compare_places);
	for (size_t i = 0; i < nr; i++) {
		if (!i || compare_places(&all[i - 1], &all[i]))
			merged[nr_merged++] = &all[i];
		else
			merged[nr_merged - 1]->ticks = ticks_add(merged[nr_merged - 1]->ticks,
								 all[i].ticks);
		group_of[i] = merged[nr_merged - 1] - all;
	}
	qsort(merged, nr_merged, sizeof(*merged), compare_lines);
	lines->nr = nr_merged < LINES_MAX ? nr_merged : LINES_MAX;
	lines->more = nr_merged - lines->nr;
	lines->lines = xcalloc(lines->nr + 1, sizeof(*lines->lines));
	for (size_t i = 0; i < nr_merged; i++)
		places[merged[i] - all] = i < LINES_MAX ? i : LINES_MAX;
	for (size_t i = 0; i < lines->nr; i++)
		lines->lines[i] = *merged[i];
	for (size_t i = 0; i < nr_indexes; i++)
		index_of[i] = LINES_MAX;
	for (size_t i = 0; i < nr; i++)
		index_of[all[i].index] = places[group_of[i]];
	free(merged);
	free(group_of);
	free(places);
}

/* Makes the lines of parts. */
static void make_of_parts(struct hot_lines *lines, const struct rows *rows)
{
	struct hot_line *all = xcalloc(rows->nr_parts + 1, sizeof(*all));
	size_t nr = 0;

	for (size_t i = 0; i < rows->nr_parts; i++) {
		const struct row *part = &rows->parts[i];

		if (part->place.source)
			all[nr++] = (struct hot_line){
				.source = part->place.source,
				.line = part->place.line,
				.name = part->function.name,
				.binary = part->function.label,
				.ticks = row_ticks(part),
				.index = i,
			};
	}
	take_lines(lines, all, nr, lines->line_of, rows->nr_parts);
	free(all);
}

/* Makes the lines of frames. */
static void make_of_frames(struct hot_lines *lines, const struct chains *chains)
{
	const struct flame *flame = lines->flame;
	struct hot_line *all = xcalloc(chains->nr_frames + 1, sizeof(*all));
	u64 *ticks = xcalloc(chains->nr_frames + 1, sizeof(*ticks));
	size_t nr = 0;

	for (size_t i = 0; i < flame->nr_stacks; i++) {
		const struct chain *chain = flame->stacks[i].chain;

		for (size_t j = 0; chain && j < chain->nr; j++)
			ticks[chain->frames[j]->index] = ticks_add(ticks[chain->frames[j]->index],
								   flame->stacks[i].ticks);
	}
	for (size_t i = 0; i < chains->nr_frames; i++) {
		const struct chain_frame *frame = chains->frames[i];

		if (frame->code.source)
			all[nr++] = (struct hot_line){
				.source = frame->code.source,
				.line = frame->code.line,
				.name = frame->function->name,
				.binary = frame->function->label,
				.ticks = ticks[i],
				.index = i,
			};
	}
	lines->line_of_frame = xcalloc(chains->nr_frames + 1, sizeof(*lines->line_of_frame));
	take_lines(lines, all, nr, lines->line_of_frame, chains->nr_frames);
	free(all);
	free(ticks);
}

void hot_lines_make(struct hot_lines *lines, const struct rows *rows, const struct flame *flame)
{
	lines->line_of = xcalloc(rows->nr_parts + 1, sizeof(*lines->line_of));
	lines->found = xcalloc(LINES_MAX, sizeof(*lines->found));
	lines->last = xcalloc(LINES_MAX, sizeof(*lines->last));
	lines->flame = flame;
	if (!flame) {
		make_of_parts(lines, rows);
		return;
	}
	make_of_frames(lines, rows_chains(rows));
	for (size_t i = 0; i < rows->nr_parts; i++)
		lines->line_of[i] = lines->line_of_frame[flame_pc_frame(&rows->parts[i])->index];
}

const u32 *hot_lines_of(void *data, u32 stack, size_t *nr)
{
	struct hot_lines *lines = data;
	const struct chain *chain = lines->flame->stacks[stack].chain;

	*nr = 0;
	lines->nr_found++;
	for (size_t i = 0; chain && i < chain->nr; i++) {
		const u32 line = lines->line_of_frame[chain->frames[i]->index];

		if (line == LINES_MAX || lines->last[line] == lines->nr_found)
			continue;
		lines->last[line] = lines->nr_found;
		lines->found[(*nr)++] = line;
	}
	return lines->found;
}

void hot_lines_free(struct hot_lines *lines)
{
	free(lines->lines);
	free(lines->line_of);
	free(lines->line_of_frame);
	free(lines->found);
	free(lines->last);
}

/* Writes an array for each line: source file, number, function, binary, label of the function. */
void html_write_lines(struct json *json, const struct hot_lines *lines)
{
	json_line(json);
	json_array(json, "lines", '\n');
	for (size_t i = 0; i < lines->nr; i++) {
		json_array(json, NULL, ' ');
		html_write_name(json, NULL, lines->lines[i].source);
		json_format(json, NULL, "%d", lines->lines[i].line);
		html_write_name(json, NULL, lines->lines[i].name);
		html_write_name(json, NULL, lines->lines[i].binary);
		html_write_label(json, lines->lines[i].name);
		json_end(json);
	}
	json_end(json);
	json_number(json, "more_lines", lines->more);
}
