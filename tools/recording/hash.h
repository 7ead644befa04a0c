/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash table whose nodes are members of the structures that it finds
 *
 * If there is no memory, hash_add() prints an error and exits, as libiberty's xcalloc() does. The
 * file then contains everything up to the last flush.
 */
#ifndef PROFIL_TOOLS_HASH_H
#define PROFIL_TOOLS_HASH_H

#include "recording/format.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

struct hash_node {
	struct hash_node *next;
	u64 hash;
};

struct hash_table {
	struct hash_node **buckets;
	size_t nr_buckets;		/* 0, or a power of two */
	size_t nr;
};

/* Return the hash of @nr words; and, for a key with a string, @hash continued with @string. */
u64 hash_words(const u64 *words, size_t nr);
u64 hash_string(u64 hash, const char *string);

/* Return the first node with @hash, or the next one with the same hash as @node; or NULL. */
struct hash_node *hash_find(const struct hash_table *table, u64 hash);
struct hash_node *hash_find_next(const struct hash_node *node);

void hash_add(struct hash_table *table, struct hash_node *node, u64 hash);

/* Removes all nodes for which @drop returns true. @drop frees these nodes. */
void hash_prune(struct hash_table *table, bool (*drop)(struct hash_node *node, void *data),
		void *data);

/* Calls @drop for all nodes, which must free each and return true, and frees the buckets. */
void hash_free(struct hash_table *table, bool (*drop)(struct hash_node *node, void *data),
	       void *data);

#endif /* PROFIL_TOOLS_HASH_H */
