// SPDX-License-Identifier: GPL-2.0-or-later
/* See tree.h. */
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "profile/tree.h"

#define SLOTS_INITIAL 256

/* Returns the slot of a node: it has the index of the node plus 1, or is 0. */
static u32 *find_slot(const struct tree *tree, struct tree_node node)
{
	const u64 word = (u64)node.parent << 32 | node.key;
	const size_t mask = tree->nr_slots - 1;

	for (size_t i = hash_words(&word, 1) & mask;; i = (i + 1) & mask) {
		const u32 index = tree->slots[i];

		if (!index || (tree->nodes[index - 1].parent == node.parent &&
			       tree->nodes[index - 1].key == node.key))
			return &tree->slots[i];
	}
}

static void grow_slots(struct tree *tree)
{
	free(tree->slots);
	tree->nr_slots = tree->nr_slots ? 2 * tree->nr_slots : SLOTS_INITIAL;
	tree->slots = xcalloc(tree->nr_slots, sizeof(*tree->slots));
	for (size_t i = 0; i < tree->nr; i++)
		*find_slot(tree, tree->nodes[i]) = i + 1;
}

u32 tree_child(struct tree *tree, u32 parent, u32 key)
{
	const struct tree_node node = { .parent = parent, .key = key };
	u32 *slot;

	if (2 * tree->nr >= tree->nr_slots)
		grow_slots(tree);
	slot = find_slot(tree, node);
	if (!*slot) {
		if (!array_grow(&tree->nodes, tree->nr, sizeof(node)))
			xmalloc_failed(sizeof(node));
		tree->nodes[tree->nr++] = node;
		*slot = tree->nr;
	}
	return *slot - 1;
}

void tree_free(struct tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
}

static int compare_nodes(const void *a, const void *b)
{
	const struct tree_ticks *x = a, *y = b;

	return compare_u64(x->node, y->node);
}

/* Sorts the ticks, and adds up those of the same node. Returns the number that remains. */
static size_t merge_ticks(struct tree_ticks *ticks, size_t nr)
{
	size_t last = 0;

	if (!nr)
		return 0;
	qsort(ticks, nr, sizeof(*ticks), compare_nodes);
	for (size_t i = 1; i < nr; i++) {
		if (ticks[last].node == ticks[i].node)
			ticks[last].ticks = ticks_add(ticks[last].ticks, ticks[i].ticks);
		else
			ticks[++last] = ticks[i];
	}
	return last + 1;
}

struct tree_ticks *tree_collect(const struct rows *rows, const struct row *first, size_t *nr,
				u32 (*add)(void *data, const struct row *row), void *data)
{
	struct tree_ticks *ticks = NULL;
	size_t nr_ticks = 0;

	for (size_t i = 0; i < *nr; i++) {
		const struct row *parts = rows->options.chains ? first[i].parts : &first[i];
		const size_t nr_parts = rows->options.chains ? first[i].nr_parts : 1;

		for (size_t j = 0; j < nr_parts; j++) {
			if (!array_grow(&ticks, nr_ticks, sizeof(*ticks)))
				xmalloc_failed(sizeof(*ticks));
			ticks[nr_ticks++] = (struct tree_ticks){
				.node = add(data, &parts[j]),
				.ticks = row_ticks(&parts[j]),
			};
		}
	}
	*nr = merge_ticks(ticks, nr_ticks);
	return ticks;
}
