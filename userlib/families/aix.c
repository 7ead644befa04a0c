// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() of AIX, in both its forms: see <profil/aix.h>
 *
 * The owner of the session is the form that turned it on. Two calls have no effect, and succeed:
 * turning profiling on while it is on, and turning it off while it is off or was turned on with the
 * other form.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../copy.h"
#include "../device.h"
#include "../precedence.h"
#include "profil/aix.h"

#define SCALE_MASK	0xffffU
#define SCALE_ONE_COUNTER	2U		/* all text counts in the first counter */
#define SCALE_COMPUTE	UINT32_MAX	/* p_scale is -1, before it is masked */

#define FORM_SECOND	UINT32_MAX	/* this size of the buffer selects the second form */

/* As on AIX, the index is the byte offset in the buffer, divided by 2 (the step) and rounded up. */
static struct profil_range aix_range(uintptr_t start, uint64_t end, const void *buffer,
				     unsigned int size, unsigned int scale)
{
	return (struct profil_range) {
		.start = start,
		.end = end,
		.offset = start,
		.buffer = (uintptr_t)buffer,
		.nr_counters = size / sizeof(HISTCOUNTER),
		.scale = scale == SCALE_ONE_COUNTER ? 0 : scale,
		.granule = 1,
		.step = 2,
		.width = sizeof(HISTCOUNTER),
		.flags = PROFIL_RANGE_ROUND_UP,
	};
}

/* Starts a session. Has no effect while a session of any call is on. */
static int aix_start(enum libprofil_owner form, const struct profil_range *ranges, unsigned int nr)
{
	int err = libprofil_classic_start_locked(form, ranges, nr, 0, PROFIL_MODES_ALL, 0);

	switch (err) {
	case -EBUSY:		/* a session is on, or the tick cannot be hooked */
		return libprofil_classic_owner() == OWNER_NONE ? -EBUSY : 0;
	case -ENOMEM:
		return -EFAULT;
	default:
		return err;
	}
}

static int aix_first_form(int owner, const void *buffer, unsigned int size, unsigned long offset,
			  unsigned int scale)
{
	struct profil_range range;

	scale &= SCALE_MASK;
	if (scale <= 1 || !size)
		return owner == OWNER_AIX_FIRST ? libprofil_classic_stop_locked(NULL) : 0;
	if (owner != OWNER_NONE)
		return 0;
	range = aix_range(offset, UINT64_MAX, buffer, size, scale);
	/* The kernel rejects an empty range: start without a range instead. */
	return aix_start(OWNER_AIX_FIRST, &range, range.start < range.end);
}

/* Computes the largest scale with which all of the text has counters. */
static unsigned int aix_computed_scale(uint64_t length, uint64_t nr_counters)
{
	uint64_t scale;

	if (length <= 1)
		return SCALE_MASK;
	/* The last pc gives (length - 1) * scale >> 16, rounded up: at most the last counter. */
	scale = ((2 * nr_counters - 1) * 65536 - 1) / (length - 1);
	return scale < SCALE_MASK ? scale : SCALE_MASK;
}

static struct profil_range aix_region(const struct prof *p)
{
	uintptr_t low = (uintptr_t)p->p_low, high = (uintptr_t)p->p_high;
	struct profil_range region = aix_range(low, high, p->p_buff, p->p_bufsize,
					      p->p_scale & SCALE_MASK);

	if (p->p_scale == SCALE_COMPUTE) {
		if (low < high && region.nr_counters)
			region.scale = aix_computed_scale(high - low, region.nr_counters);
	} else if ((p->p_scale & SCALE_MASK) <= 1) {
		region.nr_counters = 0;
	}
	return region;
}

/* Counters have two bytes, so an odd byte at the end of a buffer does not make a gap. */
static uintptr_t buffer_end(const struct prof *p)
{
	return (uintptr_t)p->p_buff + p->p_bufsize + p->p_bufsize % 2;
}

/*
 * Returns true if all buffers together form one block without gaps. The block is the first buffer
 * at first, and grows as long as another buffer touches it.
 */
static bool buffers_are_contiguous(const struct prof *profs, size_t nr)
{
	uintptr_t start = (uintptr_t)profs->p_buff, end = buffer_end(profs);
	bool grown, all;

	do {
		grown = false;
		all = true;
		for (size_t i = 0; i < nr; i++) {
			uintptr_t from = (uintptr_t)profs[i].p_buff, to = buffer_end(&profs[i]);

			if (profs[i].p_bufsize < 0 || to < from)
				return false;
			if (from > end || to < start) {
				all = false;
				continue;
			}
			if (from < start) {
				start = from;
				grown = true;
			}
			if (to > end) {
				end = to;
				grown = true;
			}
		}
	} while (grown && !all);
	return all;
}

static int check_profs(const struct prof *profs, size_t nr)
{
	for (size_t i = 1; i < nr; i++)
		if (profs[i].p_high <= profs[i - 1].p_high)
			return -EINVAL;
	return buffers_are_contiguous(profs, nr) ? 0 : -EFAULT;
}

/* Returns the number of structures before the one that ends the array, or a negative error. */
static long count_profs(const struct prof *profs)
{
	long nr, max_regions = libprofil_classic_max_regions();
	struct prof p;

	if (max_regions < 0)
		return max_regions;
	for (nr = 0; nr <= max_regions; nr++) {
		if (libprofil_copy_in(&p, &profs[nr], sizeof(p)))
			return -EFAULT;
		if (!p.p_high)
			return nr;
	}
	return -EFAULT;
}

/* Starts a session with the regions of the @nr structures at @user. */
static int aix_start_regions(const struct prof *user, size_t nr)
{
	struct profil_range *regions, *ranges;
	size_t size = nr * (3 * sizeof(*regions) + sizeof(struct prof));
	int err, saved = errno;
	struct prof *profs;

	regions = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	if (regions == MAP_FAILED)
		return -EFAULT;
	ranges = regions + nr;
	profs = (struct prof *)(ranges + 2 * nr);

	err = libprofil_copy_in(profs, user, nr * sizeof(*profs));
	if (!err)
		err = check_profs(profs, nr);
	if (!err) {
		for (size_t i = 0; i < nr; i++)
			regions[i] = aix_region(&profs[i]);
		nr = libprofil_resolve_overlaps(regions, nr, ranges);
		err = aix_start(OWNER_AIX_SECOND, ranges, nr);
	}
	munmap(regions, size);
	return err;
}

static int aix_second_form(int owner, const struct prof *profs)
{
	long nr = count_profs(profs);

	if (nr < 0)
		return nr;
	if (!nr)
		return owner == OWNER_AIX_SECOND ? libprofil_classic_stop_locked(NULL) : 0;
	return owner == OWNER_NONE ? aix_start_regions(profs, nr) : 0;
}

PROFIL_EXPORT int profil_aix(void *buffer, unsigned int size, unsigned long offset,
			     unsigned int scale)
{
	uint64_t blocked = libprofil_classic_lock();
	int err = libprofil_classic_owner();

	if (err >= 0)
		err = size == FORM_SECOND ? aix_second_form(err, buffer) :
					    aix_first_form(err, buffer, size, offset, scale);
	libprofil_classic_unlock(blocked);
	return libprofil_result(err);
}
