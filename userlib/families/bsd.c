// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() of BSD and Darwin, and NeXT's add_profil(): see <profil/bsd.h>.
 *
 * The index is as in the sources of BSD: byte ((pc - offset) * scale >> 16) & ~1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/profil.h>

#include "classic.h"
#include "device.h"
#include "precedence.h"
#include "profil/bsd.h"

#define SCALE_MAX	65536U

/*
 * What is being counted, in the order in which a pc is looked for: what profil() has, then what
 * was added, the latest first. Under the lock of the classic session, and of no meaning if that
 * is not ours.
 */
static struct profil_range alone;
static struct profil_range *regions = &alone;
static size_t nr_regions;

/* One that is mapped has room for the ranges that come of it. */
static size_t mapped_size(size_t nr)
{
	return 3 * nr * sizeof(*regions);
}

static void regions_set(struct profil_range *to, size_t nr)
{
	struct profil_range *old = regions;
	size_t nr_old = nr_regions;

	regions = to;
	nr_regions = nr;
	if (old != &alone)
		munmap(old, mapped_size(nr_old));
}

/* It ends where its counters do, for what lies above may be another's. */
static struct profil_range region_of(const char *samples, size_t size, unsigned long offset,
				     unsigned int scale)
{
	struct profil_range region = {
		.start = offset,
		.end = UINT64_MAX,
		.offset = offset,
		.buffer = (uintptr_t)samples,
		.nr_counters = size / 2,
		.scale = scale,
		.granule = 1,
		.step = 2,
		.width = 2,
	};

	/* More than this are too many, and the kernel will say so. */
	if (region.nr_counters < 1ULL << 32) {
		uint64_t span = (region.nr_counters * 2 * 65536 + scale - 1) / scale;

		if (span < UINT64_MAX - region.start)
			region.end = region.start + span;
	}
	return region;
}

static int start(const struct profil_range *region)
{
	int err;

	/* A range must not be empty. */
	err = profil_classic_start_as(PROFIL_BSD, region, region->start < region->end,
				      PROFIL_START_REPLACE, PROFIL_MODES_ALL, 0);
	if (!err) {
		regions_set(&alone, 1);
		alone = *region;
	} else if (err == -EFAULT) {
		err = profil_classic_end(NULL) ?: err;
	}
	return err;
}

PROFIL_EXPORT int profil_bsd(char *samples, size_t size, unsigned long offset, unsigned int scale)
{
	struct profil_range region;
	uint64_t blocked;
	int err;

	if (scale > SCALE_MAX)
		return profil_status(-EINVAL);
	if (!scale)
		return profil_status(profil_classic_stop());

	region = region_of(samples, size, offset, scale);
	blocked = profil_classic_lock();
	err = start(&region);
	profil_classic_unlock(blocked);
	return profil_status(err);
}

static int add(const struct profil_range *region)
{
	size_t nr = nr_regions + 1, nr_ranges;
	struct profil_range *more;
	int err, saved = errno, max_regions = profil_classic_max_regions();

	if (max_regions < 0)
		return max_regions;
	if (nr > (size_t)max_regions)
		return -ENOMEM;
	more = mmap(NULL, mapped_size(nr), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	errno = saved;
	if (more == MAP_FAILED)
		return -ENOMEM;
	more[0] = regions[0];
	more[1] = *region;
	memcpy(&more[2], &regions[1], (nr_regions - 1) * sizeof(*more));
	nr_ranges = profil_precedence(more, nr, &more[nr]);
	err = profil_classic_start_as(PROFIL_BSD, &more[nr], nr_ranges, PROFIL_START_REPLACE,
				      PROFIL_MODES_ALL, 0);
	if (err)
		munmap(more, mapped_size(nr));
	else
		regions_set(more, nr);
	return err;
}

PROFIL_EXPORT int add_profil(char *samples, size_t size, unsigned long offset, unsigned int scale)
{
	struct profil_range region;
	uint64_t blocked;
	int err;

	if (scale > SCALE_MAX)
		return profil_status(-EINVAL);
	if (!scale)
		return 0;

	region = region_of(samples, size, offset, scale);
	blocked = profil_classic_lock();
	err = profil_classic_owner();
	if (err == PROFIL_BSD)
		err = add(&region);
	else if (err > 0)
		err = 0;
	profil_classic_unlock(blocked);
	return profil_status(err);
}
