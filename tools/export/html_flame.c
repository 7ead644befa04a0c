// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: the flame graph. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"
#include "profile/chains.h"
#include "profile/names.h"

/* A node of the graph, while the nodes with the most ticks are chosen */
struct flame_node {
	u32 index;		/* in the tree */
	u64 ticks;		/* of the node and those above it */
};

/* A frame for what the kernel did can follow that of the pc. */
const struct chain_frame *flame_pc_frame(const struct row *part)
{
	const struct chain *chain = part->chain;

	return chain->frames[chain->nr - 1 - !!part->sample->call];
}

static u32 pc_function(const struct row *part)
{
	return flame_pc_frame(part)->function->index;
}

/* Returns the node of the tree at which the part ends. */
static u32 flame_add(struct flame *flame, const struct row *part, size_t process)
{
	u32 node = tree_child(&flame->tree, TREE_ROOT, flame->nr_functions + process);

	for (size_t i = 0; i < part->chain->nr; i++) {
		const struct chain_frame *frame = part->chain->frames[i];

		node = tree_child(&flame->tree, node, frame->function->index);
		if (frame->inlined)
			flame->flags[frame->function->index] |= FLAME_INLINED;
	}
	flame->flags[pc_function(part)] |= FLAME_HAS_TICKS;
	return node;
}

/* Adds the ticks of a part to its stack. Returns the number of the stack. */
static u32 flame_count(struct flame *flame, const struct row *part)
{
	const size_t process = intern(&flame->processes, part->thread->process->data.comm);
	const u32 parent = tree_child(&flame->numbering, TREE_ROOT, process);
	const u32 number = tree_child(&flame->numbering, parent, part->chain->index);
	struct flame_stack *stack;

	for (; flame->nr_stacks < flame->numbering.nr; flame->nr_stacks++) {
		if (!array_grow(&flame->stacks, flame->nr_stacks, sizeof(*stack)))
			xmalloc_failed(sizeof(*stack));
		flame->stacks[flame->nr_stacks] = (struct flame_stack){};
	}
	stack = &flame->stacks[number];
	if (!stack->chain) {
		stack->chain = part->chain;
		stack->node = flame_add(flame, part, process);
	}
	stack->ticks = ticks_add(stack->ticks, row_ticks(part));
	return number;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct flame_node *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64(x->index, y->index);
}

/* Chooses the nodes. None has more ticks than its parent, and its index in the tree is higher. */
static void flame_choose(struct flame *flame)
{
	const struct tree_node *nodes = flame->tree.nodes;
	const size_t nr = flame->tree.nr;

	flame->nodes = xcalloc(nr + 1, sizeof(*flame->nodes));
	flame->places = xcalloc(nr + 1, sizeof(*flame->places));
	for (size_t i = 0; i < flame->nr_stacks; i++) {
		u64 *ticks = &flame->nodes[flame->stacks[i].node].ticks;

		*ticks = ticks_add(*ticks, flame->stacks[i].ticks);
	}
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
				       parent == TREE_ROOT ? flame->nr : flame->places[parent];
	}
}

const u32 *flame_place(void *data, u32 stack, size_t *nr)
{
	const struct flame *flame = data;

	*nr = 1;
	return &flame->places[flame->stacks[stack].node];
}

/* Sets the path to the functions of a stack, each once. Returns their number. */
static size_t find_path(struct flame *flame, const struct flame_stack *stack)
{
	size_t nr = 0;

	flame->nr_paths++;
	for (size_t i = 0; stack->chain && i < stack->chain->nr; i++) {
		const u32 key = stack->chain->frames[i]->function->index;

		if (flame->last[key] != flame->nr_paths)
			flame->path[nr++] = key;
		flame->last[key] = flame->nr_paths;
	}
	return nr;
}

const u32 *flame_functions(void *data, u32 stack, size_t *nr)
{
	struct flame *flame = data;
	const size_t all = find_path(flame, &flame->stacks[stack]);

	*nr = 0;
	for (size_t i = 0; i < all; i++)
		if (flame->numbers[flame->path[i]] < flame->nr_counted)
			flame->path[(*nr)++] = flame->numbers[flame->path[i]];
	return flame->path;
}

static void flame_number(struct flame *flame, u32 key)
{
	if (flame->numbers[key] != FLAME_NONE)
		return;
	flame->numbers[key] = flame->nr_keys;
	flame->keys[flame->nr_keys++] = key;
}

/* Numbers the functions of the rows, those with the most ticks, and those of the nodes. */
static void flame_number_all(struct flame *flame, const struct rows *rows)
{
	const size_t nr = flame->nr_functions, nr_keys = nr + flame->processes.nr;
	struct flame_node *totals = xcalloc(nr + 1, sizeof(*totals));

	flame->keys = xcalloc(nr_keys + 1, sizeof(*flame->keys));
	flame->numbers = xcalloc(nr_keys + 1, sizeof(*flame->numbers));
	memset(flame->numbers, 0xff, nr_keys * sizeof(*flame->numbers));
	for (size_t i = 0; i < rows->nr && i < ROWS_MAX; i++)
		flame_number(flame, pc_function(rows->rows[i].parts));
	for (size_t i = 0; i < nr; i++)
		totals[i].index = i;
	for (size_t i = 0; i < flame->nr_stacks; i++) {
		const struct flame_stack *stack = &flame->stacks[i];
		const size_t nr_path = find_path(flame, stack);

		for (size_t j = 0; j < nr_path; j++)
			totals[flame->path[j]].ticks =
				ticks_add(totals[flame->path[j]].ticks, stack->ticks);
	}
	qsort(totals, nr, sizeof(*totals), compare_nodes);
	for (size_t i = 0; i < nr && i < ROWS_MAX; i++)
		flame_number(flame, totals[i].index);
	flame->nr_counted = flame->nr_keys;
	for (size_t i = 0; i < flame->nr; i++)
		flame_number(flame, flame->tree.nodes[flame->nodes[i].index].key);
	free(totals);
}

void flame_make(struct flame *flame, const struct rows *rows)
{
	flame->nr_functions = rows_chains(rows)->nr_functions;
	flame->flags = xcalloc(flame->nr_functions + 1, sizeof(*flame->flags));
	flame->last = xcalloc(flame->nr_functions + 1, sizeof(*flame->last));
	flame->path = xcalloc(flame->nr_functions + 1, sizeof(*flame->path));
	flame->stack_of = xcalloc(rows->nr_parts + 1, sizeof(*flame->stack_of));
	for (size_t i = 0; i < rows->nr_parts; i++)
		flame->stack_of[i] = flame_count(flame, &rows->parts[i]);
	flame_choose(flame);
	flame_number_all(flame, rows);
}

void flame_free(struct flame *flame)
{
	tree_free(&flame->tree);
	tree_free(&flame->numbering);
	intern_free(&flame->processes);
	free(flame->flags);
	free(flame->nodes);
	free(flame->places);
	free(flame->stacks);
	free(flame->stack_of);
	free(flame->keys);
	free(flame->numbers);
	free(flame->path);
	free(flame->last);
}

/* Writes a function: the indexes of its texts, and the FLAME_ flags. */
static void write_function(struct json *json, const struct flame *flame, u32 key,
			   const struct chains *chains, struct intern *texts)
{
	const bool is_process = key >= flame->nr_functions;
	const char *name = is_process ? flame->processes.texts[key - flame->nr_functions] :
					chains->functions[key]->name;
	struct names_label label = {};

	if (!is_process)
		names_label(&label, name);
	json_number(json, NULL, intern(texts, name));
	json_number(json, NULL, intern(texts, is_process ? "" : chains->functions[key]->label));
	json_number(json, NULL, intern(texts, label.full ?: name));
	json_number(json, NULL, intern(texts, label.brief ?: name));
	json_number(json, NULL, intern(texts, label.last ?: name));
	json_number(json, NULL, is_process ? 0 : flame->flags[key]);
	names_label_free(&label);
}

static void write_functions(struct json *json, const struct flame *flame, const struct rows *rows)
{
	struct intern texts = {};

	json_array(json, "functions", 0);
	for (size_t i = 0; i < flame->nr_keys; i++)
		write_function(json, flame, flame->keys[i], rows_chains(rows), &texts);
	json_end(json);
	html_write_names(json, "texts", &texts);
	intern_free(&texts);
}

static void write_row_functions(struct json *json, const struct flame *flame,
				const struct rows *rows)
{
	json_array(json, "row_functions", 0);
	for (size_t i = 0; i < rows->nr && i < ROWS_MAX; i++)
		json_number(json, NULL, flame->numbers[pc_function(rows->rows[i].parts)]);
	json_end(json);
}

void html_write_flame(struct json *json, const struct flame *flame, const struct rows *rows)
{
	json_line(json);
	json_object(json, "flame");
	json_array(json, "nodes", 0);
	for (size_t i = 0; i < flame->nr; i++) {
		const struct tree_node *node = &flame->tree.nodes[flame->nodes[i].index];

		json_format(json, NULL, "%d", node->parent == TREE_ROOT ? -1 :
			    (int)flame->places[node->parent]);
		json_number(json, NULL, flame->numbers[node->key]);
	}
	json_end(json);
	json_number(json, "more", flame->tree.nr - flame->nr);
	json_number(json, "counted", flame->nr_counted);
	json_number(json, "stacks", rows->completeness.stacks);
	json_number(json, "complete", rows->completeness.complete);
	if (rows_by_function(rows))
		write_row_functions(json, flame, rows);
	write_functions(json, flame, rows);
	json_end(json);
}
