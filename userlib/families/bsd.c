// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() of BSD and Darwin, and add_profil() of NeXT: see <profil/bsd.h>
 *
 * As in the source code of BSD, a pc has the counter at byte ((pc - offset) * scale >> 16) & ~1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../device.h"
#include "../precedence.h"
#include "profil/bsd.h"

#define SCALE_MAX	65536U

/*
 * The regions of the session, in order of precedence: first that of profil(), then the added
 * regions, the latest first. Protected by the lock of the classic session, and valid only if the
 * owner of the session is OWNER_BSD.
 */
static struct profil_range only_region;
static struct profil_range *regions = &only_region;
static size_t nr_regions;

/* Returns the size of a mapped array of @nr regions, and of the ranges that are made of them. */
static size_t mapped_size(size_t nr)
{
	return 3 * nr * sizeof(*regions);
}

static void set_regions(struct profil_range *to, size_t nr)
{
	struct profil_range *old = regions;
	size_t nr_old = nr_regions;

	regions = to;
	nr_regions = nr;
	if (old != &only_region)
		munmap(old, mapped_size(nr_old));
}

/* The region ends with the text of its last counter: other regions can have the text above it. */
static struct profil_range bsd_region(const char *samples, size_t size, unsigned long offset,
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

	/* The kernel rejects a range with more counters than this. */
	if (region.nr_counters < 1ULL << 32) {
		uint64_t length = (region.nr_counters * 2 * 65536 + scale - 1) / scale;

		if (length < UINT64_MAX - region.start)
			region.end = region.start + length;
	}
	return region;
}

static int bsd_start(const struct profil_range *region)
{
	int err;

	/* The kernel rejects an empty range: start without a range instead. */
	err = libprofil_classic_start_locked(OWNER_BSD, region, region->start < region->end,
					     PROFIL_START_REPLACE, PROFIL_MODES_ALL, 0);
	if (!err) {
		set_regions(&only_region, 1);
		only_region = *region;
	} else if (err == -EFAULT) {
		err = libprofil_classic_stop_locked(NULL) ?: err;
	}
	return err;
}

PROFIL_EXPORT int profil_bsd(char *samples, size_t size, unsigned long offset, unsigned int scale)
{
	struct profil_range region;
	uint64_t blocked;
	int err;

	if (scale > SCALE_MAX)
		return libprofil_result(-EINVAL);
	if (!scale)
		return libprofil_result(libprofil_classic_stop());

	region = bsd_region(samples, size, offset, scale);
	blocked = libprofil_classic_lock();
	err = bsd_start(&region);
	libprofil_classic_unlock(blocked);
	return libprofil_result(err);
}

static int bsd_add(const struct profil_range *region)
{
	size_t nr = nr_regions + 1, nr_ranges;
	struct profil_range *new_regions;
	int err, saved = errno, max_regions = libprofil_classic_max_regions();

	if (max_regions < 0)
		return max_regions;
	if (nr > (size_t)max_regions)
		return -ENOMEM;
	new_regions = mmap(NULL, mapped_size(nr), PROT_READ | PROT_WRITE, MAP_PRIVATE |
			   MAP_ANONYMOUS, -1, 0);
	errno = saved;
	if (new_regions == MAP_FAILED)
		return -ENOMEM;
	new_regions[0] = regions[0];
	new_regions[1] = *region;
	memcpy(&new_regions[2], &regions[1], (nr_regions - 1) * sizeof(*new_regions));
	nr_ranges = libprofil_resolve_overlaps(new_regions, nr, &new_regions[nr]);
	err = libprofil_classic_start_locked(OWNER_BSD, &new_regions[nr], nr_ranges,
					     PROFIL_START_REPLACE, PROFIL_MODES_ALL, 0);
	if (err)
		munmap(new_regions, mapped_size(nr));
	else
		set_regions(new_regions, nr);
	return err;
}

PROFIL_EXPORT int add_profil(char *samples, size_t size, unsigned long offset, unsigned int scale)
{
	struct profil_range region;
	uint64_t blocked;
	int err;

	if (scale > SCALE_MAX)
		return libprofil_result(-EINVAL);
	if (!scale)
		return 0;

	region = bsd_region(samples, size, offset, scale);
	blocked = libprofil_classic_lock();
	err = libprofil_classic_owner();
	if (err == OWNER_BSD)
		err = bsd_add(&region);
	else if (err > 0)
		err = 0;
	libprofil_classic_unlock(blocked);
	return libprofil_result(err);
}
