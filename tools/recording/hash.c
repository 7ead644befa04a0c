// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chained, twice as large whenever there are more nodes than buckets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/command.h"
#include "recording/hash.h"

static void *checked(void *memory)
{
	if (memory)
		return memory;
	fputs("profil record: no memory is left; recording ends\n", stderr);
	exit(COMMAND_FAILED);
}

void *table_alloc(size_t size)
{
	return checked(calloc(1, size));
}

void *table_realloc(void *old, size_t size)
{
	return checked(realloc(old, size));
}

static u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

u64 table_hash(const u64 *words, size_t nr)
{
	u64 hash = nr;

	for (size_t i = 0; i < nr; i++)
		hash = mix(hash, words[i]);
	return hash;
}

u64 table_hash_string(u64 hash, const char *string)
{
	for (; *string; string++)
		hash = mix(hash, *string);
	return hash;
}

static struct table_node **bucket(const struct table *table, u64 hash)
{
	return &table->buckets[(hash ^ hash >> 32) & (table->nr_buckets - 1)];
}

static struct table_node *same(struct table_node *node, u64 hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct table_node *table_first(const struct table *table, u64 hash)
{
	return table->nr_buckets ? same(*bucket(table, hash), hash) : NULL;
}

struct table_node *table_next(const struct table_node *node)
{
	return same(node->next, node->hash);
}

static void link_node(struct table *table, struct table_node *node)
{
	struct table_node **head = bucket(table, node->hash);

	node->next = *head;
	*head = node;
}

static void grow(struct table *table)
{
	struct table old = *table;
	struct table_node *node, *next;

	table->nr_buckets = old.nr_buckets ? old.nr_buckets * 2 : 64;
	table->buckets = table_alloc(table->nr_buckets * sizeof(*table->buckets));
	for (size_t i = 0; i < old.nr_buckets; i++) {
		for (node = old.buckets[i]; node; node = next) {
			next = node->next;
			link_node(table, node);
		}
	}
	free(old.buckets);
}

void table_add(struct table *table, struct table_node *node, u64 hash)
{
	if (table->nr >= table->nr_buckets)
		grow(table);
	node->hash = hash;
	link_node(table, node);
	table->nr++;
}

void table_prune(struct table *table, bool (*drop)(struct table_node *node, void *data),
		 void *data)
{
	struct table_node **link, *node;

	for (size_t i = 0; i < table->nr_buckets; i++) {
		link = &table->buckets[i];
		while ((node = *link)) {
			struct table_node *next = node->next;

			if (drop(node, data)) {
				*link = next;
				table->nr--;
			} else {
				link = &node->next;
			}
		}
	}
}

void table_free(struct table *table, bool (*drop)(struct table_node *node, void *data), void *data)
{
	table_prune(table, drop, data);
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}
