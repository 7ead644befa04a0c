/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the pages of profil report --html and profil diff --html
 *
 * The numbers below limit the size of the page, whatever the recording contains. Its intervals are
 * made longer until there are few enough numbers, so the ticks of each interval remain exact.
 */
#ifndef PROFIL_TOOLS_HTML_PARTS_H
#define PROFIL_TOOLS_HTML_PARTS_H

#include "export/json_writer.h"
#include "profile/intern.h"
#include "profile/rows.h"
#include "profile/tree.h"

#define ROWS_MAX 1000
#define LANES_MAX 63
#define CELLS_MAX 800000	/* of all timelines */
#define LINES_MAX 1000
#define BINARIES_MAX 50
#define BARS_MAX 512
#define NODES_MAX 5000
#define NAME_MAX_COLUMNS 1000

/**
 * struct flame - The chains of all samples as a tree
 * @tree: The keys are the indexes of functions. After these come the names of processes, which are
 *	the parents of the outermost functions.
 * @flags: For each function, FLAME_ flags.
 * @nodes: The nodes that are shown, those with the most ticks first. A node comes after its parent.
 * @places: For each node of the tree, its index in @nodes, or that of the next parent there; @nr if
 *	there is none, because not even the process is shown.
 * @nr: The number of @nodes that are shown.
 * @node_of: For each part of the rows, the node of the tree where it ends.
 * @keys: The keys of the functions that are written: those of @nodes, and those with the most ticks.
 * @nr_keys: Their number.
 * @numbers: For each key, its index in @keys; or FLAME_NONE.
 */
struct flame {
	struct tree tree;
	struct intern processes;
	size_t nr_functions;
	u8 *flags;
	struct flame_node *nodes;
	u32 *places;
	size_t nr;
	u32 *node_of;
	u32 *keys;
	size_t nr_keys;
	u32 *numbers;

	/* Only html_flame.c uses these. */
	u32 *path;		/* the functions of the last node */
	u64 *last;		/* for each function, the last path that it is in */
	u64 nr_paths;
};

#define FLAME_NONE		UINT32_MAX
#define FLAME_INLINED		1	/* it is inlined in its caller */
#define FLAME_HAS_TICKS		2	/* it is the function of a pc */

void flame_make(struct flame *flame, const struct rows *rows);
void flame_free(struct flame *flame);

/* For timeline_spread(): the place of a node of the tree, and the functions from there to the root */
const u32 *flame_place(void *flame, u32 node, size_t *nr);
const u32 *flame_functions(void *flame, u32 node, size_t *nr);

/**
 * struct hot_lines - Source lines of functions
 * @parts: For each line, a part that is there; the lines with the most ticks come first.
 * @nr: The number of lines that are shown.
 * @more: The number of all others.
 * @line_of: For each part of the rows, the index of its line; or LINES_MAX.
 */
struct hot_lines {
	const struct row **parts;
	size_t nr;
	size_t more;
	u32 *line_of;
};

void hot_lines_make(struct hot_lines *lines, const struct rows *rows);
void hot_lines_free(struct hot_lines *lines);

/* Write members of the object with all data. */
void html_write_flame(struct json *json, const struct flame *flame, const struct rows *rows);
void html_write_binaries(struct json *json, const struct rows *rows);
void html_write_lines(struct json *json, const struct hot_lines *lines);

/* @flame: NULL if there is none. */
void html_write_timelines(struct json *json, const struct rows *rows, const struct hot_lines *lines,
			  struct flame *flame);

/* Writes a name, which may be long. */
void html_write_name(struct json *json, const char *key, const char *name);

/* Writes an array of the lines, and frees them. */
void html_write_list(struct json *json, const char *key, char **lines);

/* Writes a page from @page to @end, in which @write puts @data. */
void html_write_page(FILE *out, const char *page, const char *end,
		     void (*write)(struct json *json, const void *data), const void *data);

/* Writes an array of names, each in a line. */
void html_write_names(struct json *json, const char *key, const struct intern *names);

#endif /* PROFIL_TOOLS_HTML_PARTS_H */
