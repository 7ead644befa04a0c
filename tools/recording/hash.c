// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See hash.h. Each bucket is a linked list of nodes. The number of buckets doubles when there are
 * more nodes than buckets.
 */
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "recording/hash.h"

static u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

u64 hash_words(const u64 *words, size_t nr)
{
	u64 hash = nr;

	for (size_t i = 0; i < nr; i++)
		hash = mix(hash, words[i]);
	return hash;
}

u64 hash_string(u64 hash, const char *string)
{
	for (; *string; string++)
		hash = mix(hash, *string);
	return hash;
}

static struct hash_node **bucket_of(const struct hash_table *table, u64 hash)
{
	return &table->buckets[(hash ^ hash >> 32) & (table->nr_buckets - 1)];
}

static struct hash_node *same_hash(struct hash_node *node, u64 hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct hash_node *hash_find(const struct hash_table *table, u64 hash)
{
	return table->nr_buckets ? same_hash(*bucket_of(table, hash), hash) : NULL;
}

struct hash_node *hash_find_next(const struct hash_node *node)
{
	return same_hash(node->next, node->hash);
}

static void link_node(struct hash_table *table, struct hash_node *node)
{
	struct hash_node **head = bucket_of(table, node->hash);

	node->next = *head;
	*head = node;
}

static void hash_grow(struct hash_table *table)
{
	struct hash_table old = *table;
	struct hash_node *node, *next;

	table->nr_buckets = old.nr_buckets ? old.nr_buckets * 2 : 64;
	table->buckets = xcalloc(table->nr_buckets, sizeof(*table->buckets));
	for (size_t i = 0; i < old.nr_buckets; i++) {
		for (node = old.buckets[i]; node; node = next) {
			next = node->next;
			link_node(table, node);
		}
	}
	free(old.buckets);
}

void hash_add(struct hash_table *table, struct hash_node *node, u64 hash)
{
	if (table->nr >= table->nr_buckets)
		hash_grow(table);
	node->hash = hash;
	link_node(table, node);
	table->nr++;
}

void hash_prune(struct hash_table *table, bool (*drop)(struct hash_node *node, void *data),
		void *data)
{
	struct hash_node **link, *node;

	for (size_t i = 0; i < table->nr_buckets; i++) {
		link = &table->buckets[i];
		while ((node = *link)) {
			struct hash_node *next = node->next;

			if (drop(node, data)) {
				*link = next;
				table->nr--;
			} else {
				link = &node->next;
			}
		}
	}
}

void hash_free(struct hash_table *table, bool (*drop)(struct hash_node *node, void *data),
	       void *data)
{
	hash_prune(table, drop, data);
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}
