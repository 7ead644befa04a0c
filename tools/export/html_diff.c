// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page of profil diff --html: page/diff.html with its style and script, and with the changes as
 * JSON. If the second recording has stacks, the page also has their graph.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/html_parts.h"
#include "text/text.h"

/* The page in the directory of the build, between two symbols */
extern const char diff_page[], diff_page_end[];
__asm__(".pushsection .rodata\n"
	".globl diff_page, diff_page_end\n"
	".hidden diff_page, diff_page_end\n"
	"diff_page: .incbin \"diff.html\"\n"
	"diff_page_end: .byte 0\n"
	".popsection\n");

static void write_recording(struct json *json, const char *path, const struct rows *rows)
{
	json_line(json);
	json_object(json, NULL);
	html_write_name(json, "path", path);
	html_write_list(json, "warnings", text_list_warnings(rows->recording));
	html_write_list(json, "about", text_list_about(rows));
	json_end(json);
}

/* Writes a change: its names, the values, their difference with its error, the chance, a label. */
static void write_change(struct json *json, const struct change *change, const struct row *names)
{
	json_array(json, NULL, ' ');
	html_write_name(json, NULL, names->function.label);
	html_write_name(json, NULL, names->function.name);
	json_format(json, NULL, "%.9g", change->value[0]);
	json_format(json, NULL, "%.9g", change->value[1]);
	json_format(json, NULL, "%.9g", change->difference);
	json_format(json, NULL, "%.9g", change->error);
	json_format(json, NULL, "%.3g", change->chance);
	html_write_label(json, names->function.name);
	json_end(json);
}

/* Writes the significant changes. */
static void write_list(struct json *json, const struct changes *changes)
{
	const size_t nr = changes->nr_significant < ROWS_MAX ? changes->nr_significant : ROWS_MAX;

	json_line(json);
	json_object(json, NULL);
	json_number(json, "functions", changes->nr);
	json_number(json, "significant", changes->nr_significant);
	json_array(json, "changes", '\n');
	for (size_t i = 0; i < nr; i++)
		write_change(json, &changes->changes[i], &changes->names[i]);
	json_end(json);
	json_end(json);
}

static void write_changes(struct json *json, const struct export_diff *diff)
{
	const struct changes *changes = diff->changes;

	json_line(json);
	json_bool(json, "shares", changes->shares);
	json_format(json, "chance", "%g", CHANGES_CHANCE);
	json_array(json, "totals", ' ');
	for (int i = 0; i < 2; i++)
		json_format(json, NULL, "%.9g", (double)changes->rows[i]->ticks *
			    changes->rows[i]->recording->meta.tick_ns / NS_PER_S);
	json_end(json);
	json_array(json, "lists", ' ');
	write_list(json, changes);
	if (diff->with_callees)
		write_list(json, diff->with_callees);
	json_end(json);
}

/* Writes, for each of @nr indexes, the ticks of the stacks for which @indexes_of returns it. */
static void write_sums(struct json *json, const char *name, struct flame *flame, size_t nr,
		       const u32 *(*indexes_of)(void *flame, u32 stack, size_t *nr))
{
	u64 *ticks = xcalloc(nr + 1, sizeof(*ticks));
	const u32 *indexes;
	size_t nr_indexes;

	for (size_t i = 0; i < flame->nr_stacks; i++) {
		indexes = indexes_of(flame, i, &nr_indexes);
		for (size_t j = 0; j < nr_indexes; j++)
			ticks[indexes[j]] = ticks_add(ticks[indexes[j]], flame->stacks[i].ticks);
	}
	json_line(json);
	json_array(json, name, 0);
	for (size_t i = 0; i < nr; i++)
		json_number(json, NULL, ticks[i]);
	json_end(json);
	free(ticks);
}

/* Writes the graph, the ticks of each node without the nodes above it, and those of functions. */
static void write_flame(struct json *json, const struct rows *rows)
{
	struct flame flame = {};

	flame_make(&flame, rows);
	html_write_flame(json, &flame, rows);
	write_sums(json, "own", &flame, flame.nr, flame_place);
	write_sums(json, "all", &flame, flame.nr_counted, flame_functions);
	flame_free(&flame);
}

static void write_data(struct json *json, const void *data)
{
	const struct export_diff *diff = data;
	const struct changes *changes = diff->changes;

	json_object(json, NULL);
	json_array(json, "recordings", ' ');
	for (int i = 0; i < 2; i++)
		write_recording(json, diff->paths[i], changes->rows[i]);
	json_end(json);
	html_write_list(json, "notes", text_paragraphs(xstrdup(diff->notes)));
	write_changes(json, diff);
	if (changes->rows[1]->options.chains)
		write_flame(json, changes->rows[1]);
	json_end(json);
}

const char *export_diff_html(FILE *out, const void *diff)
{
	html_write_page(out, diff_page, diff_page_end, write_data, diff);
	return NULL;
}
