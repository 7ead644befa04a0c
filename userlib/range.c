// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranges with one counter for 2^shift bytes of text: see profil.h
 */
#include <stdint.h>

#include "device.h"
#include "profil.h"

PROFIL_EXPORT __u64 profil_range_counters(__u64 start, __u64 end, unsigned int shift)
{
	return ((end - start - 1) >> shift) + 1;
}

PROFIL_EXPORT struct profil_range profil_range_of(__u64 start, __u64 end, unsigned int shift,
						  const volatile void *counters,
						  __u64 nr_counters, unsigned int width)
{
	struct profil_range range = {
		.start = start,
		.end = end,
		.offset = start,
		.buffer = (uintptr_t)counters,
		.nr_counters = nr_counters,
		.step = 1,
		.width = width,
	};

	/*
	 * The scale alone is exact for up to 2^16 bytes per counter. For more bytes, the scale is
	 * 1, the smallest, and the granule is the remaining factor.
	 */
	if (shift <= 16) {
		range.scale = 65536 >> shift;
		range.granule = 1;
	} else {
		range.scale = 1;
		range.granule = shift < 48 ? 1U << (shift - 16) : 0;
	}
	return range;
}
