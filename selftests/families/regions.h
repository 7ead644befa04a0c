/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the tests of sprofil(), which glibc and HP-UX have with different structures. They include
 * the header of the family before this one.
 */
#ifndef _SELFTESTS_REGIONS_H
#define _SELFTESTS_REGIONS_H

#include "family.h"

/* Turns profiling off, and returns 0. */
static int off(void);

/*
 * Profiles @nr regions while each of @loops runs: their numbers, as digits. Returns false if a call
 * fails, or no ticks come.
 */
static inline bool profile(struct prof *regions, int nr, unsigned int flags, const char *loops)
{
	bool good = !sprofil(regions, nr, NULL, flags);

	for (; good && *loops; loops++)
		good = loop_burn(SCOPE, *loops - '0', MANY);
	return good && !off();
}

/* Turns profiling on, with one region. */
static inline int on_region(struct prof region, unsigned int flags)
{
	return sprofil(&region, 1, NULL, flags);
}

/* The sum of the counters of all loops, but at most LOOPS of them */
static inline u64 sum(const volatile void *buffer, u32 width)
{
	return counters_sum(buffer, width, LOOPS);
}

#endif /* _SELFTESTS_REGIONS_H */
