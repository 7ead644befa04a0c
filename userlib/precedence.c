// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Conversion of regions that overlap to ranges that do not overlap
 *
 * The kernel requires ranges that do not overlap. The regions of some historical calls can overlap:
 * a pc counts in the first region that contains it. For a counter that counts every pc outside of
 * these regions, the caller adds a last region that contains all addresses.
 */
#include <string.h>

#include "precedence.h"

/* Returns the index of the first of the sorted ranges that ends above @pc. */
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
 * libprofil_resolve_overlaps - Convert regions that can overlap to ranges that do not overlap
 * @regions: Regions in the order of precedence: where two overlap, the earlier one counts.
 * @nr_regions: Number of regions.
 * @ranges: Out: the ranges, sorted by address; an array with twice as many elements as @regions.
 *
 * Return: the number of ranges.
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
