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

static void print_name(FILE *out, const char *name)
{
	char *text = escape_text(name);

	escape_fit(text, NAME_MAX_COLUMNS);
	escape_print_json(out, text);
	free(text);
}

/* Prints an array of the lines of @text, and frees it. */
static void print_lines(FILE *out, char *text)
{
	char *rest = text, *line;
	const char *separator = "";

	putc('[', out);
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		fputs(separator, out);
		print_name(out, line);
		separator = ", ";
	}
	putc(']', out);
	free(text);
}

static void print_heading(FILE *out, const struct rows *rows)
{
	fputs("\"warnings\": ", out);
	print_lines(out, text_list_warnings(rows->recording));
	fputs(",\n\"about\": ", out);
	print_lines(out, text_list_about(rows));
}

static void print_rows(FILE *out, const struct rows *rows)
{
	const size_t nr = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX;

	fputs(",\n\"columns\": [", out);
	for (size_t i = 0; i < rows->nr_keys; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", rows->keys[i]->title);
	fprintf(out, "],\n\"more\": %zu,\n\"rows\": [", rows->nr - nr);
	for (size_t i = 0; i < nr; i++) {
		for (size_t j = 0; j < rows->nr_keys; j++) {
			char *text = row_text(rows->keys[j], &rows->rows[i]);

			fputs(j ? ", " : i ? "],\n[" : "\n[", out);
			print_name(out, text);
			free(text);
		}
	}
	fputs(nr ? "]]" : "]", out);
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

/* Prints the nodes: for each one the index of its parent or -1, and those of its texts. */
static void print_nodes(FILE *out, const struct flame *flame, const struct rows *rows)
{
	const struct chains *chains = rows_chains(rows);
	struct intern texts = {};

	fputs(",\n\"flame\": {\"nodes\": [", out);
	for (size_t i = 0; i < flame->rows.nr; i++) {
		const struct tree_node *node = &flame->tree.nodes[flame->nodes[i].index];
		const char *name, *label = "";

		if (node->key < flame->nr_functions) {
			name = chains->functions[node->key]->name;
			label = chains->functions[node->key]->label;
		} else {
			name = flame->processes.texts[node->key - flame->nr_functions];
		}
		fprintf(out, "%s%d,%zu,", i ? "," : "",
			node->parent == TREE_ROOT ? -1 : (int)flame->places[node->parent],
			intern(&texts, name));
		fprintf(out, "%zu", intern(&texts, label));
	}
	fprintf(out, "], \"more\": %zu, \"texts\": [", flame->tree.nr - flame->rows.nr);
	for (size_t i = 0; i < texts.nr; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_name(out, texts.texts[i]);
	}
	fputs("]}", out);
	intern_free(&texts);
}

/* ---- the timeline ---- */

static void print_lanes(FILE *out, const struct timeline *timeline)
{
	fputs(",\n\"lanes\": [", out);
	for (size_t i = 0; i < timeline->nr_lanes; i++) {
		const struct row *row = timeline->lanes[i].row;
		char *text = row ? row_text(timeline->key, row) :
				   xasprintf("%lu more", (unsigned long)timeline->other_lanes);

		fputs(i ? ",\n" : "\n", out);
		print_name(out, text);
		free(text);
	}
	putc(']', out);
}

/* Prints an array for each row, with five numbers for each of its cells. */
static void print_cells(FILE *out, const struct timeline *timeline)
{
	const struct rows *rows = timeline->rows;
	const size_t nr_rows = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX + 1;
	size_t at = 0;

	fputs(",\n\"cells\": [", out);
	for (size_t i = 0; i < nr_rows; i++) {
		const size_t first = at;

		fputs(i ? ",\n[" : "\n[", out);
		for (; at < timeline->nr_cells && timeline->cells[at].row == i; at++) {
			const struct timeline_cell *cell = &timeline->cells[at];

			fprintf(out, "%s%u,%u,%" PRIu64 ",%" PRIu64 ",%.0f", at > first ? "," : "",
				cell->lane, cell->interval, cell->nr, cell->ticks, cell->squares);
		}
		putc(']', out);
	}
	putc(']', out);
}

/* Prints four numbers for each cell of the flame graph. */
static void print_flame_cells(FILE *out, const struct timeline *timeline)
{
	fputs(",\n\"flame\": [", out);
	for (size_t i = 0; i < timeline->nr_cells; i++) {
		const struct timeline_cell *cell = &timeline->cells[i];

		fprintf(out, "%s%u,%u,%u,%" PRIu64, i ? "," : "", cell->row, cell->lane,
			cell->interval, cell->ticks);
	}
	putc(']', out);
}

/* @flame: the same timeline for the rows of the flame graph, or NULL. */
static void print_timeline(FILE *out, const struct timeline *timeline,
			   const struct timeline *flame)
{
	fprintf(out, "{\"name\": \"%s\"", timeline->key->title);
	print_lanes(out, timeline);
	print_cells(out, timeline);
	if (flame)
		print_flame_cells(out, flame);
	putc('}', out);
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
static void print_timelines(FILE *out, const struct rows *rows, const struct rows *flame)
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
	fprintf(out, ",\n\"from\": %" PRIu64 ", \"to\": %" PRIu64 ", \"interval\": %" PRIu64
		", \"intervals\": %" PRIu64 ",\n\"timelines\": [", rows->recording->filter.from,
		rows->recording->filter.to, interval_ns, nr);
	for (size_t i = 0; i < 2; i++) {
		fputs(i ? ",\n" : "", out);
		print_timeline(out, &timelines[i], flame ? &timelines[i + 2] : NULL);
	}
	putc(']', out);
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

/* Prints the bars: for each one its index, its ticks and the index of a name. */
static void print_bars(FILE *out, const struct group *group, u64 start, unsigned int shift,
		       struct intern *names)
{
	fputs(", \"bars\": [", out);
	for (size_t i = 0, end; i < group->nr; i = end) {
		const u64 bar = (group->parts[i]->place.address - start) >> shift;
		u64 ticks = 0;

		for (end = i; end < group->nr; end++) {
			if ((group->parts[end]->place.address - start) >> shift != bar)
				break;
			ticks = ticks_add(ticks, row_ticks(group->parts[end]));
		}
		fprintf(out, "%s%" PRIu64 ",%" PRIu64 ",%zu", i ? "," : "", bar, ticks,
			intern(names, hottest_name(&group->parts[i], end - i)));
	}
	putc(']', out);
}

/* Prints a histogram by address. Each bar is for the same number of bytes, a power of two. */
static void print_binary(FILE *out, const struct rows *rows, const struct group *group,
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
	fputs("{\"name\": ", out);
	print_name(out, binary->label);
	fputs(", \"path\": ", out);
	print_name(out, file->data.path);
	fprintf(out, ", \"ticks\": %" PRIu64 ", \"offsets\": %s, \"start\": \"0x%" PRIx64
		"\", \"shift\": %u", group->ticks,
		binary->problem && !(file->data.flags & FORMAT_FILE_NONE) ? "true" : "false",
		start, shift);
	print_bars(out, group, start, shift, names);
	putc('}', out);
}

static void print_binaries(FILE *out, const struct rows *rows)
{
	struct groups groups = {
		.compare = compare_addresses,
		.differ = differ_in_file,
		.has = has_address,
	};
	struct intern names = {};

	make_groups(&groups, rows);
	fputs(",\n\"binaries\": [", out);
	for (size_t i = 0; i < groups.nr && i < BINARIES_MAX; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_binary(out, rows, &groups.groups[i], &names);
	}
	fputs("],\n\"names\": [", out);
	for (size_t i = 0; i < names.nr; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_name(out, names.texts[i]);
	}
	putc(']', out);
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

static void print_hot_lines(FILE *out, const struct rows *rows)
{
	struct groups groups = {
		.compare = compare_by_line,
		.differ = differ_in_line,
		.has = has_line,
	};

	make_groups(&groups, rows);
	fputs(",\n\"lines\": [", out);
	for (size_t i = 0; i < groups.nr && i < LINES_MAX; i++) {
		const struct row *part = groups.groups[i].parts[0];

		fprintf(out, "%s[%" PRIu64 ", ", i ? ",\n" : "\n", groups.groups[i].ticks);
		print_name(out, part->place.source);
		fprintf(out, ", %d, ", part->place.line);
		print_name(out, part->function.name);
		putc(']', out);
	}
	fprintf(out, "], \"more_lines\": %zu",
		groups.nr > LINES_MAX ? groups.nr - LINES_MAX : 0);
	free_groups(&groups);
}

/* ---- the page ---- */

/* Returns all data, which the caller frees. */
static char *make_json(const struct rows *rows)
{
	struct flame flame = {};
	char *json = NULL;
	size_t size;
	FILE *out = open_memstream(&json, &size);

	if (!out)
		xmalloc_failed(0);
	fputs("{", out);
	print_heading(out, rows);
	print_rows(out, rows);
	if (rows->chains) {
		flame_make(&flame, rows);
		print_nodes(out, &flame, rows);
	}
	print_timelines(out, rows, rows->chains ? &flame.rows : NULL);
	flame_free(&flame);
	print_binaries(out, rows);
	print_hot_lines(out, rows);
	fprintf(out, ",\n\"ticks\": %" PRIu64 "}", rows->ticks);
	if (fclose(out))
		xmalloc_failed(0);
	return json;
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
	char *json = make_json(rows);

	fwrite(html_page, 1, data - html_page, out);
	for (const char *at = json; *at; at++) {
		if (*at == '<')
			fputs("\\u003c", out);
		else
			putc(*at, out);
	}
	fwrite(after, 1, html_page_end - after, out);
	free(json);
	return NULL;
}

const struct export_format export_html = {
	.name = "html",
	.about = "web browsers",
	.lines = true,
	.keep_parts = true,
	.chains = true,
	.write = write_html,
};
