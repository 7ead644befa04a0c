// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hottest calls as a tree that fits a screen
 *
 * A line has a function, and with it the callees that have all of its ticks, or nearly all: that is
 * how a chain of many functions takes one line. The lines with the most ticks are shown.
 */
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/escape.h"
#include "profile/names.h"
#include "profile/recent_calls.h"
#include "profile/tree.h"
#include "text/text.h"

#define TITLES "   share     +-  calls\n"
#define NUMBERS_WIDTH 17
#define STEP 2			/* the columns by which callees are indented */
#define NAME_MIN 40		/* names always have so many columns */
#define BETWEEN " > "
#define LEFT_OUT "... > "
/* Smaller shares of all ticks are not told apart. */
#define SHARE_MIN 0.005

/**
 * struct line - A line of the tree
 * @ticks: The ticks of the function.
 * @first: Its node.
 * @last: The node of the last callee in the line.
 * @callees: The lines of the further callees, those with the most ticks first.
 * @next: The next line with the same caller.
 */
struct line {
	u64 ticks;
	u32 first;
	u32 last;
	struct line *callees;
	struct line *next;
};

struct call_tree {
	const struct rows *rows;
	const struct text_options *options;
	const struct call_node *nodes;
	size_t nr_nodes;
	u32 *hottest;			/* the callee of each node with the most ticks; or 0 */
	struct line *lines;
	size_t nr;
	struct line *outermost;
};

/* ---- the lines ---- */

static bool is_seen(const struct call_tree *tree, u64 ticks)
{
	return share_of(tree->rows, ticks) >= SHARE_MIN;
}

/* No node has a callee with the index 0. */
static void find_hottest(struct call_tree *tree)
{
	tree->hottest = xcalloc(tree->nr_nodes + 1, sizeof(*tree->hottest));
	for (size_t i = 0; i < tree->nr_nodes; i++) {
		const u32 parent = tree->nodes[i].parent;
		u32 *hottest = parent == TREE_ROOT ? NULL : &tree->hottest[parent];

		if (hottest && (!*hottest || tree->nodes[i].ticks > tree->nodes[*hottest].ticks))
			*hottest = i;
	}
}

/* Returns true if a node is in the line of its caller. */
static bool is_folded(const struct call_tree *tree, u32 node)
{
	const u32 parent = tree->nodes[node].parent;

	return parent != TREE_ROOT && tree->hottest[parent] == node &&
	       !is_seen(tree, tree->nodes[parent].ticks - tree->nodes[node].ticks);
}

/* A caller has at least as many ticks as its callees, and a lower index. */
static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64(x->first, y->first);
}

/* Makes the lines, those with the most ticks first, so each one after that of its caller. */
static void make_lines(struct call_tree *tree)
{
	for (size_t i = 0; i < tree->nr_nodes; i++) {
		struct line line = { .ticks = tree->nodes[i].ticks, .first = i, .last = i };

		if (!is_seen(tree, line.ticks) || is_folded(tree, i))
			continue;
		while (tree->hottest[line.last] && is_folded(tree, tree->hottest[line.last]))
			line.last = tree->hottest[line.last];
		if (!array_grow(&tree->lines, tree->nr, sizeof(line)))
			xmalloc_failed(sizeof(line));
		tree->lines[tree->nr++] = line;
	}
	if (tree->nr)
		qsort(tree->lines, tree->nr, sizeof(*tree->lines), compare_lines);
	if (tree->nr > tree->options->lines)
		tree->nr = tree->options->lines;
}

/* Links each line to that of its caller. */
static void link_lines(struct call_tree *tree)
{
	struct line **line_of = xcalloc(tree->nr_nodes + 1, sizeof(*line_of));

	for (size_t i = 0; i < tree->nr; i++)
		line_of[tree->lines[i].last] = &tree->lines[i];
	/* The caller is the last one of its line: further callees of the others are not seen. */
	for (size_t i = tree->nr; i--; ) {
		struct line *line = &tree->lines[i];
		const u32 caller = tree->nodes[line->first].parent;
		struct line **list = caller == TREE_ROOT ? &tree->outermost :
							   &line_of[caller]->callees;

		line->next = *list;
		*list = line;
	}
	free(line_of);
}

/* ---- the text ---- */

/* Returns the name of a node in at most @width columns, which the caller frees. */
static char *node_text(const struct call_tree *tree, u32 node, size_t width)
{
	char *text = escape_text(*tree->nodes[node].name ? tree->nodes[node].name :
							   PROFILE_UNKNOWN);

	names_fit(&text, 1, width);
	return text;
}

/* Prints the last function of a line, and as many of those before it as there is room for. */
static void print_functions(FILE *out, const struct call_tree *tree, const struct line *line,
			    size_t width)
{
	char *last = node_text(tree, line->last, width);
	size_t left = width - escape_width(last);
	u32 node = line->first;

	while (node != line->last) {
		const size_t after = tree->hottest[node] == line->last ? 0 : strlen(LEFT_OUT);
		char *text = node_text(tree, node, width);
		const size_t columns = escape_width(text) + strlen(BETWEEN);
		const bool fits = columns + after <= left;

		if (fits)
			fprintf(out, "%s" BETWEEN, text);
		free(text);
		if (!fits)
			break;
		left -= columns;
		node = tree->hottest[node];
	}
	if (node != line->last && left >= strlen(LEFT_OUT))
		fputs(LEFT_OUT, out);
	fprintf(out, "%s\n", last);
	free(last);
}

static void print_line(FILE *out, const struct call_tree *tree, const struct line *line,
		       size_t depth)
{
	const double share = share_of(tree->rows, line->ticks);
	const char *colour = text_colour(tree->options, share);
	const size_t width = tree->options->width;
	size_t indent = STEP * depth, most = 0;

	if (width > NUMBERS_WIDTH + NAME_MIN)
		most = width - NUMBERS_WIDTH - NAME_MIN;
	if (indent > most)
		indent = most;
	fprintf(out, "%s%7.2f%%%s %5.2f%%  %*s", colour, 100 * share, *colour ? TEXT_PLAIN : "",
		100 * share_error(tree->rows, line->ticks), (int)indent, "");
	print_functions(out, tree, line,
			width > NUMBERS_WIDTH + indent ? width - NUMBERS_WIDTH - indent : 1);
	for (line = line->callees; line; line = line->next)
		print_line(out, tree, line, depth + 1);
}

void text_call_tree(FILE *out, const struct rows *rows, const struct call_node *nodes, size_t nr,
		    const struct text_options *options)
{
	struct call_tree tree = {
		.rows = rows,
		.options = options,
		.nodes = nodes,
		.nr_nodes = nr,
	};

	find_hottest(&tree);
	make_lines(&tree);
	link_lines(&tree);
	fputs("\n" TITLES, out);
	for (const struct line *line = tree.outermost; line; line = line->next)
		print_line(out, &tree, line, 0);
	free(tree.hottest);
	free(tree.lines);
}
