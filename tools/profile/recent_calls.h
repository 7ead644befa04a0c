/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call chains of the last moments as a tree, for a live view
 *
 * Time is divided into slots, as for a window. Functions without ticks in these are forgotten, and
 * the number of functions in the tree is limited, so the memory does not grow with time.
 */
#ifndef PROFIL_TOOLS_RECENT_CALLS_H
#define PROFIL_TOOLS_RECENT_CALLS_H

#include "profile/rows.h"

struct recent_calls;

/**
 * struct call_node - A path from the name of a process to a function
 * @parent: The index of its parent, which is less than that of the node; or TREE_ROOT.
 * @ticks: The ticks of it and its callees, weighted by their periods.
 * @name: The process, or the function.
 */
struct call_node {
	u32 parent;
	u64 ticks;
	const char *name;
};

/* If there is no memory, these functions exit, as xcalloc() does. */
struct recent_calls *recent_calls_new(void);
void recent_calls_free(struct recent_calls *calls);

/* Adds the chains of rows that were made with chains to the current slot. */
void recent_calls_add(struct recent_calls *calls, const struct rows *rows);

/* Begins a new slot, and forgets the oldest one. */
void recent_calls_advance(struct recent_calls *calls);

/* Forgets all chains. */
void recent_calls_clear(struct recent_calls *calls);

/* Returns the share of the stacks in all slots that are complete; 1 without stacks. */
double recent_calls_complete(const struct recent_calls *calls);

/* Returns the nodes, and sets @nr to their number. They are valid until the tree changes. */
const struct call_node *recent_calls_nodes(struct recent_calls *calls, size_t *nr);

#endif /* PROFIL_TOOLS_RECENT_CALLS_H */
