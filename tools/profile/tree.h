/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call chains of samples as a tree, for formats that have tables of chains or stacks
 */
#ifndef PROFIL_TOOLS_TREE_H
#define PROFIL_TOOLS_TREE_H

#include "profile/rows.h"

/* The parent of the outermost nodes */
#define TREE_ROOT UINT32_MAX

/**
 * struct tree_node - A path from the root
 * @parent: The index of its parent, which is less than that of the node; or TREE_ROOT.
 * @key: The key of its last step.
 */
struct tree_node {
	u32 parent;
	u32 key;
};

/**
 * struct tree - All paths
 * @nodes: The nodes.
 * @nr: Their number.
 */
struct tree {
	struct tree_node *nodes;
	size_t nr;

	/* Only tree.c uses these. */
	u32 *slots;
	size_t nr_slots;
};

/* Returns the index of the child of @parent with this key. If it is new, this is the next index. */
u32 tree_child(struct tree *tree, u32 parent, u32 key);

void tree_free(struct tree *tree);

/* Ticks of a node itself */
struct tree_ticks {
	u32 node;
	u64 ticks;
};

/*
 * Returns the ticks of each node in @nr rows, sorted by node, which the caller frees. Sets @nr to
 * their number. @add: returns the node of a row; with chains, it is called for parts of the rows.
 */
struct tree_ticks *tree_collect(const struct rows *rows, const struct row *first, size_t *nr,
				u32 (*add)(void *data, const struct row *row), void *data);

#endif /* PROFIL_TOOLS_TREE_H */
