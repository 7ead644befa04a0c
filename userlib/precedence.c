// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel's ranges do not overlap. Historical regions may: there the first one that holds a pc
 * has it, and what none holds may have a counter, too, as the last region, of everything.
 */
#include <string.h>

#include "precedence.h"

/* The first of the sorted ranges that ends above @pc. */
static size_t first_range_above(const struct profil_range *ranges, size_t nr, __u64 pc)
{
	size_t first = 0;

	while (nr) {
		size_t half = nr / 2;

		if (ranges[first + half].end <= pc) {
			first += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	return first;
}

/**
 * libprofil_resolve_overlaps - Ranges that do not overlap, from regions that do
 * @regions: The earlier one has what it shares with a later one.
 * @nr_regions: Number of these.
 * @ranges: Out: sorted; room for twice as many.
 *
 * Return: number of ranges.
 */
size_t libprofil_resolve_overlaps(const struct profil_range *regions, size_t nr_regions,
				  struct profil_range *ranges)
{
	size_t nr = 0;

	for (size_t n = 0; n < nr_regions; n++) {
		struct profil_range part = regions[n];
		size_t i = first_range_above(ranges, nr, part.start);

		while (part.start < regions[n].end) {
			part.end = regions[n].end;
			if (i < nr && ranges[i].start < part.end)
				part.end = ranges[i].start;
			if (part.start < part.end) {
				memmove(&ranges[i + 1], &ranges[i], (nr - i) * sizeof(*ranges));
				ranges[i++] = part;
				nr++;
			}
			if (part.end == regions[n].end)
				break;
			part.start = ranges[i++].end;
		}
	}
	return nr;
}
