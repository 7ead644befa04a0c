/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash tables of what the recorder knows: nodes that lie in what they find
 *
 * A recorder that has no memory can do no more, and says so: table_alloc() and table_add() do not
 * return then. What was recorded up to then is in the file.
 */
#ifndef PROFIL_TOOLS_TABLE_H
#define PROFIL_TOOLS_TABLE_H

#include "recording/format.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

struct table_node {
	struct table_node *next;
	u64 hash;
};

struct table {
	struct table_node **buckets;
	size_t nr_buckets;		/* 0, or a power of two */
	size_t nr;
};

/* Zeroed, as by calloc(). */
void *table_alloc(size_t size);
/* As realloc(). */
void *table_realloc(void *old, size_t size);

u64 table_hash(const u64 *words, size_t nr);
u64 table_hash_string(u64 hash, const char *string);

/* The first node with @hash, or NULL; and from one to the next. */
struct table_node *table_first(const struct table *table, u64 hash);
struct table_node *table_next(const struct table_node *node);

void table_add(struct table *table, struct table_node *node, u64 hash);

/* Takes out all nodes that @drop says yes to, which frees them. */
void table_prune(struct table *table, bool (*drop)(struct table_node *node, void *data),
		 void *data);

/* As table_prune() of all, and the table itself. */
void table_free(struct table *table, bool (*drop)(struct table_node *node, void *data), void *data);

#endif /* PROFIL_TOOLS_TABLE_H */
