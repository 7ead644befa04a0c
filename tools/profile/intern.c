// SPDX-License-Identifier: GPL-2.0-or-later
/* See intern.h. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>

#include <libiberty/libiberty.h>

#include "profile/intern.h"

#define SIZE_INITIAL 64

struct entry {
	size_t index;
	char text[];
};

static const char *text_of(const void *entry)
{
	return ((const struct entry *)entry)->text;
}

static hashval_t hash_entry(const void *entry)
{
	return hash_text(text_of(entry));
}

/* The table calls this with the text that it searches. */
static int is_equal(const void *entry, const void *text)
{
	return !strcmp(text_of(entry), text);
}

size_t intern(struct intern *set, const char *text)
{
	struct entry *entry;
	void **slot;

	if (!set->table)
		set->table = htab_create_alloc(SIZE_INITIAL, hash_entry, is_equal, free, xcalloc,
					       free);
	slot = htab_find_slot_with_hash(set->table, text, hash_text(text), INSERT);
	entry = *slot;
	if (!entry) {
		entry = xmalloc(sizeof(*entry) + strlen(text) + 1);
		entry->index = set->nr;
		strcpy(entry->text, text);
		*slot = entry;
		if (!array_grow(&set->texts, set->nr, sizeof(*set->texts)))
			xmalloc_failed(0);
		set->texts[set->nr++] = entry->text;
	}
	return entry->index;
}

size_t intern_format(struct intern *set, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;
	size_t index;

	/* xvasprintf() does not know %zu. */
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		xmalloc_failed(0);
	va_end(arguments);
	index = intern(set, text);
	free(text);
	return index;
}

void intern_free(struct intern *set)
{
	if (set->table)
		htab_delete(set->table);
	free(set->texts);
	*set = (struct intern){};
}
