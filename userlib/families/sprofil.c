// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sprofil() with the prototype and the rules of glibc: see sprofil(3)
 *
 * Regions can be in any order and can overlap. Where they overlap, the region that begins at the
 * highest address counts; of those that begin at the same address, the first in the array counts.
 *
 * A signal handler can call sprofil(), so this file does not call malloc().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../copy.h"
#include "../device.h"
#include "../precedence.h"
#include "profil/glibc.h"

/* The period of PROF_FAST in ns. The fast clock of IRIX has the same period. */
#define FAST_PERIOD		1000000

/* Returns the size in bytes of the text for @nr_counters; ~0 if it exceeds 64 bits. */
static uint64_t region_length(uint64_t nr_counters, uint32_t scale, uint32_t width)
{
	uint64_t rest = (nr_counters % scale * 65536 + scale - 1) / scale;
	uint64_t units;

	if (__builtin_mul_overflow(nr_counters / scale, 65536, &units) ||
	    __builtin_add_overflow(units, rest, &units) ||
	    __builtin_mul_overflow(units, width, &units))
		return UINT64_MAX;
	return units;
}

static struct profil_range sprofil_region(const struct prof *prof, uint32_t width)
{
	struct profil_range region = {
		.start = prof->pr_off,
		.offset = prof->pr_off,
		.buffer = (uintptr_t)prof->pr_base,
		.nr_counters = prof->pr_size / width,
		.scale = prof->pr_scale,
		.granule = width,
		.step = 1,
		.width = width,
	};
	uint64_t length;

	length = region_length(region.nr_counters, region.scale, width);
	if (__builtin_add_overflow(region.start, length, &region.end))
		region.end = UINT64_MAX;
	return region;
}

/* Every pc that is in no region counts in the first counter of the overflow bin. */
static struct profil_range overflow_region(const struct prof *overflow, uint32_t width)
{
	return (struct profil_range) {
		.start = 0,
		.end = UINT64_MAX,
		.buffer = (uintptr_t)overflow->pr_base,
		.nr_counters = 1,
		.scale = 0,
		.granule = 1,
		.step = 1,
		.width = width,
	};
}

/* Sorts by descending address; structures with the same address keep their order. */
static void sort_by_address(const struct prof *profs, size_t nr_profs, const struct prof **order)
{
	for (size_t i = 0; i < nr_profs; i++) {
		size_t at = i;

		for (; at && order[at - 1]->pr_off < profs[i].pr_off; at--)
			order[at] = order[at - 1];
		order[at] = &profs[i];
	}
}

/*
 * Fills in the regions that can count, in order of precedence. Returns their number or a negative
 * error. @regions has room for @nr_profs + 1 regions, and @order for @nr_profs pointers.
 */
static int sprofil_regions(const struct prof *profs, size_t nr_profs, const struct prof **order,
			   uint32_t width, struct profil_range *regions)
{
	const struct prof *overflow = NULL, *prof;
	size_t i, nr = 0;

	sort_by_address(profs, nr_profs, order);
	for (i = 0; i < nr_profs; i++) {
		prof = order[i];
		if (prof->pr_scale < 2 || prof->pr_size < width)
			continue;
		if (prof->pr_scale != (uint32_t)prof->pr_scale)
			return -EINVAL;
		regions[nr++] = sprofil_region(prof, width);
		if (!overflow && prof->pr_off == 0 && prof->pr_scale == 2)
			overflow = prof;
	}
	if (overflow)
		regions[nr++] = overflow_region(overflow, width);
	return nr;
}

static int sprofil_start(const struct prof *profp, size_t nr_profs, uint32_t width, uint64_t period,
			 unsigned int max_ranges)
{
	const size_t nr_regions = nr_profs + 1;		/* one for the overflow bin */
	struct profil_range *regions, *ranges;
	const struct prof **order;
	struct prof *profs;
	size_t size;
	int nr, err;

	/* Usually, each structure needs at least one range, and the overflow bin needs one more. */
	if (nr_profs >= max_ranges)
		return -E2BIG;
	size = 3 * nr_regions * sizeof(*regions) + nr_profs * (sizeof(*profs) + sizeof(*order));
	regions = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (regions == MAP_FAILED)
		return -ENOMEM;
	ranges = regions + nr_regions;
	profs = (struct prof *)(ranges + 2 * nr_regions);
	order = (const struct prof **)(profs + nr_profs);

	err = libprofil_copy_in(profs, profp, nr_profs * sizeof(*profs));
	if (err)
		goto unmap;
	nr = sprofil_regions(profs, nr_profs, order, width, regions);
	if (nr < 0) {
		err = nr;
		goto unmap;
	}
	nr = libprofil_resolve_overlaps(regions, nr, ranges);
	if (!nr)
		err = libprofil_classic_stop();
	else if ((unsigned int)nr > max_ranges)
		err = -E2BIG;
	else
		err = libprofil_classic_start(ranges, nr, PROFIL_START_REPLACE, period);
unmap:
	munmap(regions, size);
	return err;
}

/* Returns the period of the session in ns, or 0 for the tick of the scheduler. */
static uint64_t sprofil_period(const struct profil_query *query, unsigned int flags)
{
	if (!(flags & PROF_FAST) || !(query->features & PROFIL_FEATURE_CLOCK) ||
	    query->min_period > FAST_PERIOD || query->tick_ns <= FAST_PERIOD)
		return 0;
	return FAST_PERIOD;
}

static int do_sprofil(const struct prof *profp, int profcnt, struct timeval *tvp,
		      unsigned int flags)
{
	struct profil_query query = { .size = sizeof(query) };
	struct timeval tick;
	uint64_t period, ns;
	int err;

	if (profcnt < 0 || flags & ~(PROF_USHORT | PROF_UINT | PROF_FAST))
		return -EINVAL;
	err = libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (err)
		return err;

	period = sprofil_period(&query, flags);
	ns = period ?: query.tick_ns;
	tick.tv_sec = ns / 1000000000;
	tick.tv_usec = ns % 1000000000 / 1000;
	if (tvp && libprofil_copy_out(tvp, &tick, sizeof(tick)))
		return -EFAULT;

	if (!profcnt)
		return libprofil_classic_stop();
	return sprofil_start(profp, profcnt, flags & PROF_UINT ? sizeof(unsigned int) :
		     sizeof(unsigned short), period, query.max_ranges);
}

PROFIL_EXPORT int sprofil(struct prof *profp, int profcnt, struct timeval *tvp,
			  unsigned int flags)
{
	int saved = errno, status = libprofil_result(do_sprofil(profp, profcnt, tvp, flags));

	if (!status)
		errno = saved;		/* functions that were called here may have set errno */
	return status;
}
