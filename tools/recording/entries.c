// SPDX-License-Identifier: GPL-2.0-or-later
/* See entries.h. */
#include <string.h>

#include "recording/entries.h"

/*
 * The maximum number of threads, mappings and calls in memory. When it is exceeded, all are freed,
 * and each is written again, with another id, at its next tick.
 */
#define ENTRIES_MAX	(1U << 16)

static hashval_t entry_hash(const void *data)
{
	const struct entry *entry = data;

	return hash_words(entry->key, KEY_WORDS);
}

static int entry_equals(const void *a, const void *b)
{
	return !memcmp(a, b, KEY_WORDS * sizeof(u64));
}

htab_t entries_new(size_t size)
{
	return htab_create(size, entry_hash, entry_equals, free);
}

struct entry *entry_get(htab_t table, const u64 *key)
{
	void **slot = htab_find_slot(table, key, INSERT);
	struct entry *entry = *slot;

	if (!entry) {
		entry = xcalloc(1, sizeof(*entry));
		memcpy(entry->key, key, sizeof(entry->key));
		*slot = entry;
	}
	return entry;
}

void entries_empty(struct stream *stream)
{
	if (htab_elements(stream->entries) <= ENTRIES_MAX)
		return;
	htab_empty(stream->entries);
	stream->place = (struct profil_record){};
}
