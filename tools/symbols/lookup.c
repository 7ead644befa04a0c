// SPDX-License-Identifier: GPL-2.0-or-later
/* See lookup.h. */
#include <libiberty/libiberty.h>

#include "symbols/lookup.h"

static int compare_values(const void *a, const void *b)
{
	return compare_u64(*(const u64 *)a, *(const u64 *)b);
}

size_t lookup_sort(u64 *values, size_t nr)
{
	size_t kept = 0;

	if (nr)
		qsort(values, nr, sizeof(*values), compare_values);
	for (size_t i = 0; i < nr; i++)
		if (!kept || values[kept - 1] != values[i])
			values[kept++] = values[i];
	return kept;
}

void lookup_init(struct lookup *lookup, u64 *where, size_t nr)
{
	nr = lookup_sort(where, nr);
	*lookup = (struct lookup){ .places = xcalloc(nr + 1, sizeof(*lookup->places)), .nr = nr };
	for (size_t i = 0; i < lookup->nr; i++)
		lookup->places[i] = (struct place){ .where = where[i], .address = where[i] };
}

void lookup_clear(struct lookup *lookup)
{
	for (size_t i = 0; i < lookup->nr; i++)
		lookup->places[i] = (struct place){
			.where = lookup->places[i].where,
			.address = lookup->places[i].address,
		};
}

void lookup_free(struct lookup *lookup)
{
	free(lookup->places);
	*lookup = (struct lookup){};
}

size_t lookup_index(const struct lookup *lookup, u64 address)
{
	return array_index(&lookup->places->address, lookup->nr, sizeof(struct place), address);
}

struct place *lookup_place(const struct lookup *lookup, u64 where)
{
	return lookup->places + array_index(&lookup->places->where, lookup->nr,
					    sizeof(struct place), where);
}

void lookup_add(struct lookup *lookup, const struct function *function)
{
	for (size_t i = lookup_index(lookup, function->start);
	     i < lookup->nr && lookup->places[i].address < function->end; i++)
		lookup->places[i].found = *function;
}

struct frame place_outermost(const struct place *place)
{
	if (place->nr_frames)
		return *place->frames;
	return (struct frame){ .source = place->source, .line = place->line };
}

const char *place_inlined(const struct place *place)
{
	for (size_t i = place->nr_frames; i-- > 1;)
		if (place->frames[i].name)
			return place->frames[i].name;
	return NULL;
}
