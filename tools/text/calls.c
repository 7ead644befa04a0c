// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text about calls: a table of all functions with their inclusive shares, and trees of the callers
 * or callees of a function
 *
 * A tree shows each sample at most once. A function that calls itself, directly or through others,
 * is shown with the caller of its outermost call, and with the callees of its innermost call.
 */
#define _GNU_SOURCE
#include <obstack.h>
#include <stdlib.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "profile/chains.h"
#include "profile/names.h"
#include "text/text.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* The titles of the numbers before the keys, with the widths of these columns. */
#define TITLES_CHILDREN "children     +-     self"
#define TITLES_TREE "   share     +-"
/* Deeper calls are not shown, nor those with a smaller share of all ticks. */
#define DEPTH_MAX 32
#define SHARE_MIN 0.005

/* A function and its samples */
struct calls {
	const struct profile_function *function;
	u64 total;		/* each sample once, however often the function is in its chain */
	u64 self;
	size_t last;		/* the part that was counted last, plus 1 */
};

static int compare_calls(const void *a, const void *b)
{
	const struct calls *x = a, *y = b;

	return compare_u64(y->total, x->total) ?: compare_u64(y->self, x->self) ?:
	       strcmp(x->function->binary, y->function->binary) ?:
	       strcmp(x->function->name, y->function->name) ?:
	       compare_u64(x->function->start, y->function->start);
}

/* Counts the samples of all functions. Those with the most samples come first. */
static struct calls *count_calls(const struct rows *rows)
{
	const struct chains *chains = rows_chains(rows);
	struct calls *calls = xcalloc(chains->nr_functions + 1, sizeof(*calls));

	for (size_t i = 0; i < chains->nr_functions; i++)
		calls[i].function = chains->functions[i];
	for (size_t i = 0; i < rows->nr_parts; i++) {
		const struct chain *chain = rows->parts[i].chain;
		const u64 ticks = row_ticks(&rows->parts[i]);
		struct calls *function;

		for (size_t j = 0; j < chain->nr; j++) {
			function = &calls[chain->frames[j]->function->index];
			if (function->last != i + 1)
				function->total = ticks_add(function->total, ticks);
			function->last = i + 1;
		}
		function = &calls[chain->frames[chain->nr - 1]->function->index];
		function->self = ticks_add(function->self, ticks);
	}
	qsort(calls, chains->nr_functions, sizeof(*calls), compare_calls);
	return calls;
}

static void print_share(FILE *out, const struct text_table *table, u64 ticks)
{
	const double share = share_of(table->rows, ticks);
	const char *colour = text_colour(table->options, share);

	fprintf(out, "%s%7.2f%%%s %5.2f%%", colour, 100 * share, *colour ? TEXT_PLAIN : "",
		100 * share_error(table->rows, ticks));
}

/* In these rows, the ticks in user mode are those of the calls, and nr those of the function. */
static void print_children(FILE *out, const struct text_table *table, const struct row *row)
{
	print_share(out, table, row->user);
	fprintf(out, " %7.2f%%", 100 * share_of(table->rows, row->nr));
}

void text_children(FILE *out, const struct rows *rows, const struct text_options *options)
{
	struct calls *calls = count_calls(rows);
	struct rows inclusive = *rows;
	struct text_table table = {
		.rows = &inclusive,
		.options = options,
		.numbers = TITLES_CHILDREN,
		.print_numbers = print_children,
		.is_inclusive = true,
	};

	inclusive.nr = rows_chains(rows)->nr_functions;
	inclusive.rows = xcalloc(inclusive.nr + 1, sizeof(*inclusive.rows));
	for (size_t i = 0; i < inclusive.nr; i++)
		inclusive.rows[i] = (struct row){
			.function = *calls[i].function,
			.user = calls[i].total,
			.nr = calls[i].self,
		};
	text_heading(out, rows, options);
	if (inclusive.nr)
		text_table(out, &table);
	free(inclusive.rows);
	free(calls);
}

/* ---- trees ---- */

/* A function in a tree, with the samples that have the same path from the root to it */
struct node {
	const struct node *parent;
	const struct profile_function *function;
	u64 ticks;
	u64 self;			/* the ticks whose path ends here */
	struct node *first;		/* its children */
	struct node *next;		/* the next child of its parent */
	size_t nr;			/* number of children */
};

struct tree {
	const struct rows *rows;
	bool callers;
	htab_t nodes;
	struct obstack memory;
	struct row *lines;		/* of the table */
	size_t nr;
};

static hashval_t node_hash(const void *data)
{
	const struct node *node = data;
	const u64 words[] = { (uintptr_t)node->parent, node->function->index };

	return hash_words(words, 2);
}

static int node_equals(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->parent == y->parent && x->function == y->function;
}

/* Adds ticks to a child of @parent, which is the root if @parent is NULL. Returns the child. */
static struct node *node_add(struct tree *tree, struct node *parent,
			     const struct profile_function *function, u64 ticks)
{
	struct node key = { .parent = parent, .function = function }, *node;
	void **slot = htab_find_slot(tree->nodes, &key, INSERT);

	if (!*slot) {
		*slot = obstack_copy(&tree->memory, &key, sizeof(key));
		node = *slot;
		if (parent) {
			node->next = parent->first;
			parent->first = node;
			parent->nr++;
		}
	}
	node = *slot;
	node->ticks = ticks_add(node->ticks, ticks);
	return node;
}

/* Adds a sample if @function is in its chain. */
static void tree_add(struct tree *tree, const struct profile_function *function,
		     const struct row *part)
{
	const struct chain *chain = part->chain;
	const u64 ticks = row_ticks(part);
	const size_t step = tree->callers ? -1 : 1;
	size_t at = tree->callers ? 0 : chain->nr - 1;
	struct node *node = NULL;

	while (at < chain->nr && chain->frames[at]->function != function)
		at -= step;
	for (int depth = 0; at < chain->nr && depth < DEPTH_MAX; at += step, depth++)
		node = node_add(tree, node, chain->frames[at]->function, ticks);
	if (node)
		node->self = ticks_add(node->self, ticks);
}

static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

	return compare_u64(y->ticks, x->ticks) ?:
	       strcmp(x->function->name, y->function->name) ?:
	       strcmp(x->function->binary, y->function->binary) ?:
	       compare_u64(x->function->start, y->function->start);
}

/* Adds a line with a name, which is indented by @depth steps. */
static void add_line(struct tree *tree, const char *name, const char *label, u64 ticks, int depth)
{
	const struct row line = { .function.label = label, .user = ticks };

	if (!array_grow(&tree->lines, tree->nr, sizeof(line)))
		xmalloc_failed(sizeof(line));
	tree->lines[tree->nr] = line;
	obstack_printf(&tree->memory, "%*s%s", 2 * depth, "", name);
	obstack_1grow(&tree->memory, '\0');
	tree->lines[tree->nr++].function.name = obstack_finish(&tree->memory);
}

/* Adds the lines of the node, and then those of its children. */
static void add_lines(struct tree *tree, const struct node *node, int depth)
{
	struct node **children = xcalloc(node->nr + 1, sizeof(*children));
	size_t nr = 0, more = 0;
	u64 rest = 0;
	char text[64];

	add_line(tree, node->function->name, node->function->label, node->ticks, depth);
	for (struct node *child = node->first; child; child = child->next) {
		if (share_of(tree->rows, child->ticks) >= SHARE_MIN) {
			children[nr++] = child;
			continue;
		}
		rest = ticks_add(rest, child->ticks);
		more++;
	}
	qsort(children, nr, sizeof(*children), compare_nodes);
	for (size_t i = 0; i < nr; i++)
		add_lines(tree, children[i], depth + 1);
	snprintf(text, sizeof(text), "[%zu more]", more);
	if (more)
		add_line(tree, text, "", rest, depth + 1);
	if (node->nr && !tree->callers && share_of(tree->rows, node->self) >= SHARE_MIN)
		add_line(tree, "[self]", "", node->self, depth + 1);
	free(children);
}

/* Adds the tree of a function. */
static void add_tree(struct tree *tree, const struct profile_function *function)
{
	const struct node key = { .function = function };
	const struct node *root;

	for (size_t i = 0; i < tree->rows->nr_parts; i++)
		tree_add(tree, function, &tree->rows->parts[i]);
	root = htab_find(tree->nodes, &key);
	if (root)
		add_lines(tree, root, 0);
}

static void print_tree(FILE *out, const struct text_table *table, const struct row *row)
{
	print_share(out, table, row->user);
}

void text_calls(FILE *out, const struct rows *rows, const struct text_options *options,
		const char *pattern, bool callers)
{
	struct calls *calls = count_calls(rows);
	struct tree tree = { .rows = rows, .callers = callers };
	struct rows lines = *rows;
	struct text_table table = {
		.rows = &lines,
		.options = options,
		.numbers = TITLES_TREE,
		.print_numbers = print_tree,
		.is_inclusive = true,
	};

	obstack_init(&tree.memory);
	tree.nodes = htab_create(256, node_hash, node_equals, NULL);
	for (size_t i = 0; i < rows_chains(rows)->nr_functions; i++)
		if (names_match(calls[i].function->name, pattern))
			add_tree(&tree, calls[i].function);
	lines.rows = tree.lines;
	lines.nr = tree.nr;
	text_heading(out, rows, options);
	if (lines.nr)
		text_table(out, &table);
	htab_delete(tree.nodes);
	obstack_free(&tree.memory, NULL);
	free(tree.lines);
	free(calls);
}
