// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: the flame graph. */
#define _GNU_SOURCE
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"
#include "profile/chains.h"

/* A node of the graph, while the nodes with the most ticks are chosen */
struct flame_node {
	u32 index;		/* in the tree */
	u64 ticks;		/* of the node and those above it */
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
	const struct flame_node *x = a, *y = b;

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
	flame->nr = nr < NODES_MAX ? nr : NODES_MAX;
	for (size_t i = 0; i < nr; i++) {
		const u32 index = flame->nodes[i].index, parent = nodes[index].parent;

		flame->places[index] = i < flame->nr ? i :
				       parent == TREE_ROOT ? TREE_ROOT : flame->places[parent];
	}
}

/* Finds the node of each part. */
static void flame_place(struct flame *flame, const struct rows *rows)
{
	u32 place;

	flame->node_of = xcalloc(rows->nr_parts + 1, sizeof(*flame->node_of));
	for (size_t i = 0; i < rows->nr_parts; i++) {
		place = flame->places[flame_add(flame, &rows->parts[i])];
		flame->node_of[i] = place == TREE_ROOT ? NODES_MAX : place;
	}
}

void flame_make(struct flame *flame, const struct rows *rows)
{
	size_t nr = rows->nr;
	struct tree_ticks *ticks;

	flame->nr_functions = rows_chains(rows)->nr_functions;
	flame->inlined = rows->inlined;
	ticks = tree_collect(rows, rows->rows, &nr, flame_add, flame);
	flame_choose(flame, ticks, nr);
	flame_place(flame, rows);
	free(ticks);
}

void flame_free(struct flame *flame)
{
	tree_free(&flame->tree);
	intern_free(&flame->processes);
	free(flame->nodes);
	free(flame->places);
	free(flame->node_of);
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

void html_write_flame(struct json *json, const struct flame *flame, const struct rows *rows)
{
	struct intern texts = {};

	json_line(json);
	json_object(json, "flame");
	json_array(json, "nodes", 0);
	for (size_t i = 0; i < flame->nr; i++)
		write_node(json, flame, &flame->tree.nodes[flame->nodes[i].index],
			   rows_chains(rows), &texts);
	json_end(json);
	json_number(json, "more", flame->tree.nr - flame->nr);
	json_array(json, "texts", '\n');
	for (size_t i = 0; i < texts.nr; i++)
		html_write_name(json, NULL, texts.texts[i]);
	json_end(json);
	json_end(json);
	intern_free(&texts);
}
