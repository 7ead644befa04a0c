// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page of HTML that shows the rows: page.html with page.css and page.js, which the Makefile puts
 * together, and with the data as JSON
 *
 * The numbers below limit the size of the page, whatever the recording contains. Its intervals are
 * made longer until there are few enough numbers, so the ticks of each interval remain exact.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/json_writer.h"
#include "profile/buffer.h"
#include "profile/chains.h"
#include "profile/escape.h"
#include "profile/intern.h"
#include "profile/timeline.h"
#include "profile/tree.h"
#include "text/text.h"

#define ROWS_MAX 1000
#define LANES_MAX 63
#define CELLS_MAX 100000	/* of each timeline; more than (ROWS_MAX + 1) * (LANES_MAX + 1) */
#define LINES_MAX 200
#define BINARIES_MAX 50
#define BARS_MAX 512
#define NODES_MAX 5000
#define NAME_MAX_COLUMNS 1000

#define PLACEHOLDER "@DATA@"

/* The page in the directory of the build, between two symbols */
extern const char html_page[], html_page_end[];
__asm__(".pushsection .rodata\n"
	".globl html_page, html_page_end\n"
	".hidden html_page, html_page_end\n"
	"html_page: .incbin \"page.html\"\n"
	"html_page_end: .byte 0\n"
	".popsection\n");

static void write_name(struct json *json, const char *key, const char *name)
{
	char *text = escape_text(name);

	escape_fit(text, NAME_MAX_COLUMNS);
	json_text(json, key, text);
	free(text);
}

/* Writes an array of names, each in a line. */
static void write_names(struct json *json, const char *key, const struct intern *names)
{
	json_line(json);
	json_array(json, key, '\n');
	for (size_t i = 0; i < names->nr; i++)
		write_name(json, NULL, names->texts[i]);
	json_end(json);
}

/* Writes an array of the lines, and frees them. */
static void write_lines(struct json *json, const char *key, char **lines)
{
	json_line(json);
	json_array(json, key, ' ');
	for (char **line = lines; *line; line++)
		write_name(json, NULL, *line);
	json_end(json);
	freeargv(lines);
}

static void write_rows(struct json *json, const struct rows *rows)
{
	const size_t nr = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX;

	json_line(json);
	json_array(json, "columns", ' ');
	for (size_t i = 0; i < rows->nr_keys; i++)
		json_text(json, NULL, rows->keys[i]->title);
	json_end(json);
	json_line(json);
	json_number(json, "more", rows->nr - nr);
	json_line(json);
	json_array(json, "rows", '\n');
	for (size_t i = 0; i < nr; i++) {
		json_array(json, NULL, ' ');
		for (size_t j = 0; j < rows->nr_keys; j++) {
			char *text = row_text(rows->keys[j], &rows->rows[i]);

			write_name(json, NULL, text);
			free(text);
		}
		json_end(json);
	}
	json_end(json);
}

/* ---- the flame graph ---- */

/* A node of the graph, while the nodes with the most ticks are chosen */
struct node {
	u32 index;		/* in the tree */
	u64 ticks;		/* of the node and those above it */
};

/**
 * struct flame - The chains of all samples as a tree
 * @tree: The keys are the indexes of functions. After these come the names of processes, which are
 *	the parents of the outermost functions.
 * @nodes: The nodes that are shown, those with the most ticks first. A node comes after its parent.
 * @places: For each node of the tree, its index in @nodes, or that of the next parent there;
 *	TREE_ROOT if there is none, because not even the process is shown.
 * @rows: A row for each of @nodes, with the parts that end there.
 */
struct flame {
	struct tree tree;
	struct intern processes;
	size_t nr_functions;
	bool inlined;
	struct node *nodes;
	u32 *places;
	struct rows rows;
};

static u32 flame_add(void *data, const struct row *part)
{
	struct flame *flame = data;
	const size_t process = intern(&flame->processes, part->thread->process->data.comm);
	u32 node = tree_child(&flame->tree, TREE_ROOT, flame->nr_functions + process);

	for (size_t i = 0; i < part->chain->nr; i++)
		if (flame->inlined || !part->chain->frames[i]->inlined)
			node = tree_child(&flame->tree, node,
					  part->chain->frames[i]->function->index);
	return node;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64(x->index, y->index);
}

/* Chooses the nodes. None has more ticks than its parent, and its index in the tree is higher. */
static void flame_choose(struct flame *flame, const struct tree_ticks *ticks, size_t nr_ticks)
{
	const struct tree_node *nodes = flame->tree.nodes;
	const size_t nr = flame->tree.nr;

	flame->nodes = xcalloc(nr + 1, sizeof(*flame->nodes));
	flame->places = xcalloc(nr + 1, sizeof(*flame->places));
	for (size_t i = 0; i < nr_ticks; i++)
		flame->nodes[ticks[i].node].ticks = ticks[i].ticks;
	for (size_t i = nr; i-- > 0;) {
		flame->nodes[i].index = i;
		if (nodes[i].parent != TREE_ROOT)
			flame->nodes[nodes[i].parent].ticks =
				ticks_add(flame->nodes[nodes[i].parent].ticks,
					  flame->nodes[i].ticks);
	}
	qsort(flame->nodes, nr, sizeof(*flame->nodes), compare_nodes);
	flame->rows.nr = nr < NODES_MAX ? nr : NODES_MAX;
	for (size_t i = 0; i < nr; i++) {
		const u32 index = flame->nodes[i].index, parent = nodes[index].parent;

		flame->places[index] = i < flame->rows.nr ? i :
				       parent == TREE_ROOT ? TREE_ROOT : flame->places[parent];
	}
}

static int compare_places(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_u64(x->place.address, y->place.address);
}

/* Makes the rows. In their parts, the address is the index of the row. */
static void flame_rows(struct flame *flame, const struct rows *rows)
{
	struct rows *to = &flame->rows;

	to->parts = xcalloc(rows->nr_parts + 1, sizeof(*to->parts));
	to->rows = xcalloc(to->nr + 1, sizeof(*to->rows));
	for (size_t i = 0; i < rows->nr_parts; i++) {
		const u32 place = flame->places[flame_add(flame, &rows->parts[i])];

		if (place == TREE_ROOT)
			continue;
		to->parts[to->nr_parts] = rows->parts[i];
		to->parts[to->nr_parts++].place.address = place;
	}
	qsort(to->parts, to->nr_parts, sizeof(*to->parts), compare_places);
	for (size_t i = 0; i < to->nr_parts; i++) {
		struct row *row = &to->rows[to->parts[i].place.address];

		if (!row->nr_parts++)
			row->parts = &to->parts[i];
	}
}

static void flame_make(struct flame *flame, const struct rows *rows)
{
	size_t nr = rows->nr;
	struct tree_ticks *ticks;

	flame->nr_functions = rows_chains(rows)->nr_functions;
	flame->inlined = rows->inlined;
	ticks = tree_collect(rows, rows->rows, &nr, flame_add, flame);
	flame_choose(flame, ticks, nr);
	flame_rows(flame, rows);
	free(ticks);
}

static void flame_free(struct flame *flame)
{
	tree_free(&flame->tree);
	intern_free(&flame->processes);
	free(flame->nodes);
	free(flame->places);
	free(flame->rows.rows);
	free(flame->rows.parts);
}

/* Writes a node: the index of its parent or -1, and those of its texts. */
static void write_node(struct json *json, const struct flame *flame, const struct tree_node *node,
		       const struct chains *chains, struct intern *texts)
{
	const char *name, *label = "";

	if (node->key < flame->nr_functions) {
		name = chains->functions[node->key]->name;
		label = chains->functions[node->key]->label;
	} else {
		name = flame->processes.texts[node->key - flame->nr_functions];
	}
	json_format(json, NULL, "%d",
		    node->parent == TREE_ROOT ? -1 : (int)flame->places[node->parent]);
	json_number(json, NULL, intern(texts, name));
	json_number(json, NULL, intern(texts, label));
}

static void write_flame(struct json *json, const struct flame *flame, const struct rows *rows)
{
	struct intern texts = {};

	json_line(json);
	json_object(json, "flame");
	json_array(json, "nodes", 0);
	for (size_t i = 0; i < flame->rows.nr; i++)
		write_node(json, flame, &flame->tree.nodes[flame->nodes[i].index],
			   rows_chains(rows), &texts);
	json_end(json);
	json_number(json, "more", flame->tree.nr - flame->rows.nr);
	json_array(json, "texts", '\n');
	for (size_t i = 0; i < texts.nr; i++)
		write_name(json, NULL, texts.texts[i]);
	json_end(json);
	json_end(json);
	intern_free(&texts);
}

/* ---- the timeline ---- */

static void write_lanes(struct json *json, const struct timeline *timeline)
{
	json_line(json);
	json_array(json, "lanes", '\n');
	for (size_t i = 0; i < timeline->nr_lanes; i++) {
		const struct row *row = timeline->lanes[i].row;
		char *text = row ? row_text(timeline->key, row) :
				   xasprintf("%lu more", (unsigned long)timeline->other_lanes);

		write_name(json, NULL, text);
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

/* Writes four numbers for each cell of the flame graph. */
static void write_flame_cells(struct json *json, const struct timeline *timeline)
{
	json_line(json);
	json_array(json, "flame", 0);
	for (size_t i = 0; i < timeline->nr_cells; i++) {
		const struct timeline_cell *cell = &timeline->cells[i];

		json_number(json, NULL, cell->row);
		json_number(json, NULL, cell->lane);
		json_number(json, NULL, cell->interval);
		json_number(json, NULL, cell->ticks);
	}
	json_end(json);
}

/* @flame: the same timeline for the rows of the flame graph, or NULL. */
static void write_timeline(struct json *json, const struct timeline *timeline,
			   const struct timeline *flame)
{
	json_object(json, NULL);
	json_text(json, "name", timeline->key->title);
	write_lanes(json, timeline);
	write_cells(json, timeline);
	if (flame)
		write_flame_cells(json, flame);
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

/* @flame: the rows of the flame graph, or NULL. */
static void write_timelines(struct json *json, const struct rows *rows, const struct rows *flame)
{
	struct timeline timelines[] = {
		{ .rows = rows, .key = &row_keys[ROWS_BY_THREAD], .rows_max = ROWS_MAX },
		{ .rows = rows, .key = &row_keys[ROWS_BY_CPU], .rows_max = ROWS_MAX },
		{ .rows = flame, .key = &row_keys[ROWS_BY_THREAD], .rows_max = NODES_MAX },
		{ .rows = flame, .key = &row_keys[ROWS_BY_CPU], .rows_max = NODES_MAX },
	};
	const size_t nr_timelines = flame ? 4 : 2;
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
		write_timeline(json, &timelines[i], flame ? &timelines[i + 2] : NULL);
	}
	json_end(json);
	for (size_t i = 0; i < nr_timelines; i++)
		timeline_free(&timelines[i]);
}

/* ---- addresses and lines ---- */

/* Parts of rows that are equal in some respect */
struct group {
	const struct row **parts;
	size_t nr;
	u64 ticks;
};

/**
 * struct groups - Groups of parts
 * @compare: Sorts the parts.
 * @differ: Returns 0 if two parts are of the same group.
 * @has: Returns true if a part is in a group.
 * @parts: The parts, sorted.
 * @groups: The groups; those with the most ticks first.
 */
struct groups {
	int (*compare)(const void *a, const void *b);
	int (*differ)(const struct row *a, const struct row *b);
	bool (*has)(const struct row *part);

	const struct row **parts;
	struct group *groups;
	size_t nr;
};

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64((uintptr_t)x->parts,
							       (uintptr_t)y->parts);
}

static void make_groups(struct groups *groups, const struct rows *rows)
{
	struct group *group = NULL;
	size_t nr_parts = 0;

	groups->parts = xcalloc(rows->nr_parts + 1, sizeof(*groups->parts));
	groups->groups = xcalloc(rows->nr_parts + 1, sizeof(*groups->groups));
	for (size_t i = 0; i < rows->nr_parts; i++)
		if (groups->has(&rows->parts[i]))
			groups->parts[nr_parts++] = &rows->parts[i];
	qsort(groups->parts, nr_parts, sizeof(*groups->parts), groups->compare);
	for (size_t i = 0; i < nr_parts; i++) {
		if (!group || groups->differ(*group->parts, groups->parts[i])) {
			group = &groups->groups[groups->nr++];
			group->parts = &groups->parts[i];
		}
		group->ticks = ticks_add(group->ticks, row_ticks(groups->parts[i]));
		group->nr++;
	}
	qsort(groups->groups, groups->nr, sizeof(*groups->groups), compare_groups);
}

static void free_groups(struct groups *groups)
{
	free(groups->parts);
	free(groups->groups);
}

static bool has_address(const struct row *part)
{
	return part->sample->file && !(part->sample->flags & (FORMAT_SAMPLE_EXEC |
							      FORMAT_SAMPLE_EXIT));
}

static int differ_in_file(const struct row *a, const struct row *b)
{
	return compare_u64((uintptr_t)a->sample->file, (uintptr_t)b->sample->file);
}

static int compare_addresses(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;

	return differ_in_file(x, y) ?: compare_u64(x->place.address, y->place.address) ?:
	       strcmp(x->function.name, y->function.name);
}

/* Returns the name with the most ticks of @nr parts, which are sorted by address. */
static const char *hottest_name(const struct row **parts, size_t nr)
{
	const char *hottest = NULL;
	u64 most = 0;

	for (size_t i = 0, end; i < nr; i = end) {
		const char *name = parts[i]->function.name;
		u64 ticks = 0;

		for (end = i; end < nr && !strcmp(parts[end]->function.name, name); end++)
			ticks = ticks_add(ticks, row_ticks(parts[end]));
		if (!hottest || ticks > most) {
			hottest = name;
			most = ticks;
		}
	}
	return hottest;
}

/* Writes the bars: for each one its index, its ticks and the index of a name. */
static void write_bars(struct json *json, const struct group *group, u64 start,
		       unsigned int shift, struct intern *names)
{
	json_array(json, "bars", 0);
	for (size_t i = 0, end; i < group->nr; i = end) {
		const u64 bar = (group->parts[i]->place.address - start) >> shift;
		u64 ticks = 0;

		for (end = i; end < group->nr; end++) {
			if ((group->parts[end]->place.address - start) >> shift != bar)
				break;
			ticks = ticks_add(ticks, row_ticks(group->parts[end]));
		}
		json_number(json, NULL, bar);
		json_number(json, NULL, ticks);
		json_number(json, NULL, intern(names, hottest_name(&group->parts[i], end - i)));
	}
	json_end(json);
}

/* Writes a histogram by address. Each bar is for the same number of bytes, a power of two. */
static void write_binary(struct json *json, const struct rows *rows, const struct group *group,
			 struct intern *names)
{
	const struct recording_file *file = group->parts[0]->sample->file;
	const struct profile_binary *binary = binary_of(&rows->binaries, file);
	const u64 low = group->parts[0]->place.address;
	const u64 high = group->parts[group->nr - 1]->place.address;
	unsigned int shift = 0;
	u64 start = low;

	while ((high - start) >> shift >= BARS_MAX) {
		shift++;
		start = low >> shift << shift;
	}
	json_object(json, NULL);
	write_name(json, "name", binary->label);
	write_name(json, "path", file->data.path);
	json_number(json, "ticks", group->ticks);
	json_bool(json, "offsets", binary->problem && !(file->data.flags & FORMAT_FILE_NONE));
	json_format(json, "start", "\"0x%" PRIx64 "\"", start);
	json_number(json, "shift", shift);
	write_bars(json, group, start, shift, names);
	json_end(json);
}

static void write_binaries(struct json *json, const struct rows *rows)
{
	struct groups groups = {
		.compare = compare_addresses,
		.differ = differ_in_file,
		.has = has_address,
	};
	struct intern names = {};

	make_groups(&groups, rows);
	json_line(json);
	json_array(json, "binaries", '\n');
	for (size_t i = 0; i < groups.nr && i < BINARIES_MAX; i++)
		write_binary(json, rows, &groups.groups[i], &names);
	json_end(json);
	write_names(json, "names", &names);
	intern_free(&names);
	free_groups(&groups);
}

static bool has_line(const struct row *part)
{
	return part->place.source;
}

static int differ_in_line(const struct row *a, const struct row *b)
{
	return strcmp(a->place.source, b->place.source) ?:
	       compare_u64(a->place.line, b->place.line) ?:
	       strcmp(a->function.name, b->function.name);
}

static int compare_by_line(const void *a, const void *b)
{
	return differ_in_line(*(const struct row *const *)a, *(const struct row *const *)b);
}

static void write_hot_lines(struct json *json, const struct rows *rows)
{
	struct groups groups = {
		.compare = compare_by_line,
		.differ = differ_in_line,
		.has = has_line,
	};

	make_groups(&groups, rows);
	json_line(json);
	json_array(json, "lines", '\n');
	for (size_t i = 0; i < groups.nr && i < LINES_MAX; i++) {
		const struct row *part = groups.groups[i].parts[0];

		json_array(json, NULL, ' ');
		json_number(json, NULL, groups.groups[i].ticks);
		write_name(json, NULL, part->place.source);
		json_format(json, NULL, "%d", part->place.line);
		write_name(json, NULL, part->function.name);
		json_end(json);
	}
	json_end(json);
	json_number(json, "more_lines", groups.nr > LINES_MAX ? groups.nr - LINES_MAX : 0);
	free_groups(&groups);
}

/* ---- the page ---- */

static void write_data(struct json *json, const struct rows *rows)
{
	struct flame flame = {};

	json_object(json, NULL);
	write_lines(json, "warnings", text_list_warnings(rows->recording));
	write_lines(json, "about", text_list_about(rows));
	write_rows(json, rows);
	if (rows->options.chains) {
		flame_make(&flame, rows);
		write_flame(json, &flame, rows);
	}
	write_timelines(json, rows, rows->options.chains ? &flame.rows : NULL);
	flame_free(&flame);
	write_binaries(json, rows);
	write_hot_lines(json, rows);
	json_line(json);
	json_number(json, "ticks", rows->ticks);
	json_end(json);
}

/*
 * A name could contain the end of the script element in which the data is. The character < is only
 * in strings, so an escape of JSON can stand for it.
 */
static const char *write_html(FILE *out, const struct rows *rows)
{
	const char *data = memmem(html_page, html_page_end - html_page, PLACEHOLDER,
				  strlen(PLACEHOLDER));
	const char *after = data + strlen(PLACEHOLDER);
	struct buffer buffer;
	struct json json = {};
	char *text;

	buffer_open(&buffer);
	json.out = buffer.out;
	write_data(&json, rows);
	text = buffer_close(&buffer);
	fwrite(html_page, 1, data - html_page, out);
	for (const char *at = text; *at; at++) {
		if (*at == '<')
			fputs("\\u003c", out);
		else
			putc(*at, out);
	}
	fwrite(after, 1, html_page_end - after, out);
	free(text);
	return NULL;
}

const struct export_format export_html = {
	.name = "html",
	.about = "web browsers",
	.rows.lines = true,
	.rows.keep_parts = true,
	.rows.chains = true,
	.write = write_html,
};
