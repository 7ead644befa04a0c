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
#define CELLS_MAX 700000	/* of all timelines; more than LANES_MAX + 1 times the others */
#define LINES_MAX 2000
#define BINARIES_MAX 50
#define BARS_MAX 512
#define NODES_MAX 5000
#define NAME_MAX_COLUMNS 1000
#define LABEL_MAX_COLUMNS 60	/* with parameters, in a table; as LABEL_MAX in table.js */

/**
 * struct flame - The chains of all samples as a tree
 * @tree: The keys are the indexes of functions. After these come the names of processes, which are
 *	the parents of the outermost functions.
 * @stacks: A stack is a chain in a process of this name. They have numbers.
 * @stack_of: For each part of the rows, its stack.
 * @flags: For each function, FLAME_ flags.
 * @nodes: The nodes that are shown, those with the most ticks first. A node comes after its parent.
 * @places: For each node of the tree, its index in @nodes, or that of the next parent there; @nr if
 *	there is none, because not even the process is shown.
 * @nr: The number of @nodes that are shown.
 * @keys: The keys of the functions that are written: those of the rows, those with the most ticks,
 *	and those of @nodes.
 * @nr_keys: Their number.
 * @nr_counted: The number of the first ones, for which flame_functions() is.
 * @numbers: For each key, its index in @keys; or FLAME_NONE.
 */
struct flame {
	struct tree tree;
	struct intern processes;
	struct flame_stack {
		const struct chain *chain;
		u32 node;		/* of the tree, where it ends */
		u64 ticks;
	} *stacks;
	size_t nr_stacks;
	u32 *stack_of;
	size_t nr_functions;
	u8 *flags;
	struct flame_node *nodes;
	u32 *places;
	size_t nr;
	u32 *keys;
	size_t nr_keys;
	size_t nr_counted;
	u32 *numbers;

	/* Only html_flame.c uses these. */
	struct tree numbering;	/* of the stacks */
	u32 *path;		/* the functions of the last stack */
	u64 *last;		/* for each function, the last path that it is in */
	u64 nr_paths;
};

#define FLAME_NONE		UINT32_MAX
#define FLAME_INLINED		1	/* it is inlined in its caller */
#define FLAME_HAS_TICKS		2	/* it is the function of a pc */

void flame_make(struct flame *flame, const struct rows *rows);
void flame_free(struct flame *flame);

/* Returns the frame of the pc of a part with a chain. */
const struct chain_frame *flame_pc_frame(const struct row *part);

/* For timeline_spread(): the place of a stack, and its functions */
const u32 *flame_place(void *flame, u32 stack, size_t *nr);
const u32 *flame_functions(void *flame, u32 stack, size_t *nr);

/**
 * struct hot_lines - Source lines of functions
 * @lines: The lines. Those with the most ticks come first; with chains, with those of callees.
 * @nr: The number of lines that are shown.
 * @more: The number of all others.
 * @line_of: For each part of the rows, the index of its line; or LINES_MAX.
 * @line_of_frame: With chains, the same for each frame of struct chains.
 */
struct hot_lines {
	struct hot_line *lines;
	size_t nr;
	size_t more;
	u32 *line_of;
	u32 *line_of_frame;

	/* Only html_lines.c uses these. */
	const struct flame *flame;
	u32 *found;		/* the lines of the last stack */
	u64 *last;		/* for each line, the last stack that it is in */
	u64 nr_found;
};

/* @flame: NULL if there are no chains. */
void hot_lines_make(struct hot_lines *lines, const struct rows *rows, const struct flame *flame);
void hot_lines_free(struct hot_lines *lines);

/* For timeline_spread(): the lines of the pc and of the calls of a stack */
const u32 *hot_lines_of(void *lines, u32 stack, size_t *nr);

/* Write members of the object with all data. */
void html_write_flame(struct json *json, const struct flame *flame, const struct rows *rows);
void html_write_binaries(struct json *json, const struct rows *rows);
void html_write_lines(struct json *json, const struct hot_lines *lines);

/* @flame: NULL if there is none. */
void html_write_timelines(struct json *json, const struct rows *rows, struct hot_lines *lines,
			  struct flame *flame);

/* Writes a name, which may be long. */
void html_write_name(struct json *json, const char *key, const char *name);

/* Writes the label of a function for a table, without parameters if it would be long. */
void html_write_label(struct json *json, const char *name);

/* Writes an array of the lines, and frees them. */
void html_write_list(struct json *json, const char *key, char **lines);

/* Writes a page from @page to @end, in which @write puts @data. */
void html_write_page(FILE *out, const char *page, const char *end,
		     void (*write)(struct json *json, const void *data), const void *data);

/* Writes an array of names, each in a line. */
void html_write_names(struct json *json, const char *key, const struct intern *names);

#endif /* PROFIL_TOOLS_HTML_PARTS_H */
