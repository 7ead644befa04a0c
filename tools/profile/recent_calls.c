// SPDX-License-Identifier: GPL-2.0-or-later
/* See recent_calls.h. */
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/chains.h"
#include "profile/intern.h"
#include "profile/recent_calls.h"
#include "profile/tree.h"
#include "profile/window.h"

/* The maximum number of nodes. A node takes about 150 bytes, without its name. */
#define NODES_MAX	(1U << 16)

/* Ticks whose path ends at a node, in each slot */
struct self_ticks {
	u64 slots[WINDOW_SLOTS];
};

/**
 * struct recent_calls - The tree
 * @names: The names of processes and functions. The key of a node in @tree is an index of them.
 * @self: The ticks of the nodes, by their indexes.
 * @nodes: What recent_calls_nodes() has made of them.
 * @slot: The current slot.
 * @stacks: The ticks that can have a stack in each slot, and those with a @complete one.
 */
struct recent_calls {
	struct intern names;
	struct tree tree;
	struct self_ticks *self;
	struct call_node *nodes;
	size_t slot;
	u64 stacks[WINDOW_SLOTS];
	u64 complete[WINDOW_SLOTS];
};

struct recent_calls *recent_calls_new(void)
{
	return xcalloc(1, sizeof(struct recent_calls));
}

void recent_calls_clear(struct recent_calls *calls)
{
	intern_free(&calls->names);
	tree_free(&calls->tree);
	free(calls->self);
	free(calls->nodes);
	*calls = (struct recent_calls){};
}

void recent_calls_free(struct recent_calls *calls)
{
	if (calls)
		recent_calls_clear(calls);
	free(calls);
}

static u32 node_get(struct recent_calls *calls, u32 parent, const char *name)
{
	const size_t nr = calls->tree.nr;
	const u32 node = tree_child(&calls->tree, parent, intern(&calls->names, name));

	if (calls->tree.nr > nr) {
		if (!array_grow(&calls->self, nr, sizeof(*calls->self)))
			xmalloc_failed(sizeof(*calls->self));
		calls->self[nr] = (struct self_ticks){};
	}
	return node;
}

/* Adds the chain of a sample. If the tree is full, its functions are not told apart. */
static void add_chain(struct recent_calls *calls, const struct row *row)
{
	const bool is_full = calls->tree.nr >= NODES_MAX;
	u32 node = node_get(calls, TREE_ROOT,
			    is_full ? WINDOW_OTHER : row->thread->process->data.comm);
	u64 *ticks;

	for (size_t i = 0; i < row->chain->nr && !is_full; i++)
		node = node_get(calls, node, row->chain->frames[i]->function->name);
	ticks = &calls->self[node].slots[calls->slot];
	*ticks = ticks_add(*ticks, row_ticks(row));
}

void recent_calls_add(struct recent_calls *calls, const struct rows *rows)
{
	calls->stacks[calls->slot] += rows->completeness.stacks;
	calls->complete[calls->slot] += rows->completeness.complete;
	for (size_t i = 0; i < rows->nr_parts; i++)
		add_chain(calls, &rows->parts[i]);
}

const struct call_node *recent_calls_nodes(struct recent_calls *calls, size_t *nr)
{
	struct call_node *nodes = xcalloc(calls->tree.nr + 1, sizeof(*nodes));

	*nr = calls->tree.nr;
	for (size_t i = *nr; i--; ) {
		const struct tree_node *node = &calls->tree.nodes[i];
		u64 *ticks = &nodes[i].ticks;

		nodes[i].parent = node->parent;
		nodes[i].name = calls->names.texts[node->key];
		for (size_t slot = 0; slot < WINDOW_SLOTS; slot++)
			*ticks = ticks_add(*ticks, calls->self[i].slots[slot]);
		if (node->parent != TREE_ROOT)
			nodes[node->parent].ticks = ticks_add(nodes[node->parent].ticks, *ticks);
	}
	free(calls->nodes);
	calls->nodes = nodes;
	return nodes;
}

/* Makes the tree again, from the nodes that have ticks. */
static void forget_nodes(struct recent_calls *calls)
{
	size_t nr;
	const struct call_node *nodes = recent_calls_nodes(calls, &nr);
	struct recent_calls old = *calls;
	u32 *map = xcalloc(nr + 1, sizeof(*map));

	calls->names = (struct intern){};
	calls->tree = (struct tree){};
	calls->self = NULL;
	calls->nodes = NULL;
	for (size_t i = 0; i < nr; i++) {
		const u32 parent = nodes[i].parent;

		if (!nodes[i].ticks)
			continue;
		map[i] = node_get(calls, parent == TREE_ROOT ? parent : map[parent],
				  nodes[i].name);
		calls->self[map[i]] = old.self[i];
	}
	free(map);
	recent_calls_clear(&old);
}

void recent_calls_advance(struct recent_calls *calls)
{
	calls->slot = (calls->slot + 1) % WINDOW_SLOTS;
	calls->stacks[calls->slot] = 0;
	calls->complete[calls->slot] = 0;
	for (size_t i = 0; i < calls->tree.nr; i++)
		calls->self[i].slots[calls->slot] = 0;
	if (calls->tree.nr > NODES_MAX / 2)
		forget_nodes(calls);
}

double recent_calls_complete(const struct recent_calls *calls)
{
	u64 stacks = 0, complete = 0;

	for (size_t i = 0; i < WINDOW_SLOTS; i++) {
		stacks += calls->stacks[i];
		complete += calls->complete[i];
	}
	return stacks ? (double)complete / stacks : 1;
}
