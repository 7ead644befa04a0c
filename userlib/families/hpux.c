// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sprofil() with the prototype and the rules of HP-UX: see sprofil(3)
 *
 * On HP-UX, sprofil() is a system call. So the function here can be called by a signal handler, and
 * does not call malloc(). It copies the arguments before it checks them, as the kernel would.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../copy.h"
#include "../device.h"
#include "profil/hpux.h"

#undef sysconf

/* Maximum size of the text of a region. */
#define MAX_TEXT	(1ULL << 46)

/*
 * Each region is a range. With an overflow descriptor, there can also be a range before and after
 * each region. The kernel limits the total.
 */
static unsigned int hpux_max_regions(const struct profil_query *query)
{
	return query->max_ranges / 2;
}

/* Returns the size of a counter in bytes, or 0 if the flags are invalid. */
static uint32_t hpux_width(unsigned int flags)
{
	switch (flags) {
	case PROF_USHORT:
		return 2;
	case PROF_UINT:
		return 4;
	case PROF_UINT64:
		return 8;
	default:
		return 0;
	}
}

static bool is_overflow_bin(const struct prof *prof)
{
	return !prof->pr_offset && prof->pr_scale == 2;
}

static struct profil_range hpux_range(const struct prof *prof, uint32_t width)
{
	uint64_t size = (uint64_t)prof->pr_size << 16;
	struct profil_range range = {
		.start = (uintptr_t)prof->pr_offset,
		.offset = (uintptr_t)prof->pr_offset,
		.buffer = (uintptr_t)prof->pr_base,
		.nr_counters = prof->pr_size / width,
		.scale = prof->pr_scale,
		.granule = 1,
		.step = width,
		.width = width,
	};

	if (__builtin_add_overflow(range.start, (size + prof->pr_scale - 1) / prof->pr_scale,
				   &range.end))
		range.end = UINT64_MAX;
	return range;
}

/* Makes the range for the overflow counter from @start to @end, where there is no region. */
static struct profil_range hpux_gap_range(const struct prof *overflow, uint32_t width,
					  uint64_t start, uint64_t end)
{
	return (struct profil_range) {
		.start = start,
		.end = end,
		.offset = start,
		.buffer = (uintptr_t)overflow->pr_base,
		.nr_counters = 1,
		.scale = 0,
		.granule = 1,
		.step = 1,
		.width = width,
	};
}

/* Converts @nr sorted regions to ranges. Returns the number of ranges, or a negative error. */
static int hpux_ranges(const struct prof *profs, unsigned int nr, uint32_t width,
		       struct profil_range *ranges)
{
	const struct prof *overflow = NULL;
	uint64_t free = 0;		/* from this address on there are no ranges yet */
	unsigned int i, n = 0;

	if (is_overflow_bin(&profs[nr - 1])) {
		overflow = &profs[--nr];
		if (overflow->pr_size != width)
			return -EINVAL;
	}
	for (i = 0; i < nr; i++) {
		const struct prof *prof = &profs[i];
		struct profil_range range;

		if (is_overflow_bin(prof) || !prof->pr_size || prof->pr_size % width ||
		    prof->pr_size > (MAX_TEXT >> 16) * prof->pr_scale)
			return -EINVAL;
		range = hpux_range(prof, width);
		if (range.start < free || range.start == range.end)
			return -EINVAL;
		if (overflow && range.start > free)
			ranges[n++] = hpux_gap_range(overflow, width, free, range.start);
		ranges[n++] = range;
		free = range.end;
	}
	if (overflow && free < UINT64_MAX)
		ranges[n++] = hpux_gap_range(overflow, width, free, UINT64_MAX);
	return n;
}

static int hpux_start(const struct prof *profp, unsigned int nr, uint32_t width)
{
	const size_t nr_ranges = 2 * (size_t)nr, size = nr_ranges * sizeof(struct profil_range) +
		nr * sizeof(struct prof);
	struct profil_range *ranges;
	struct prof *profs;
	int err;

	ranges = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ranges == MAP_FAILED)
		return -ENOMEM;
	profs = (struct prof *)(ranges + nr_ranges);
	err = libprofil_copy_in(profs, profp, nr * sizeof(*profs));
	if (!err)
		err = hpux_ranges(profs, nr, width, ranges);
	if (err >= 0)
		err = libprofil_classic_start(ranges, err, PROFIL_START_REPLACE, 0);
	munmap(ranges, size);
	return err;
}

static int do_sprofil(const struct prof *profp, int profcnt, struct timeval *tvp,
		      unsigned int flags)
{
	struct profil_query query = { .size = sizeof(query) };
	uint32_t width = hpux_width(flags);
	struct timeval tick;
	int err;

	err = libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (err)
		return err;

	/* The manual says that profcnt 0 turns profiling off, and elsewhere that the call fails. */
	if (!profcnt)
		return libprofil_classic_stop() ?: -E2BIG;
	if (profcnt < 0 || (unsigned int)profcnt > hpux_max_regions(&query))
		return -E2BIG;
	if (!width)
		return -EINVAL;

	tick.tv_sec = query.tick_ns / 1000000000;
	tick.tv_usec = query.tick_ns % 1000000000 / 1000;
	if (tvp && libprofil_copy_out(tvp, &tick, sizeof(tick)))
		return -EFAULT;
	return hpux_start(profp, profcnt, width);
}

PROFIL_EXPORT int sprofil_hpux(struct prof *profp, int profcnt, struct timeval *tvp,
			       unsigned int flags)
{
	int saved = errno, status = libprofil_result(do_sprofil(profp, profcnt, tvp, flags));

	if (!status)
		errno = saved;
	return status;
}

PROFIL_EXPORT long sysconf_hpux(int name)
{
	struct profil_query query = { .size = sizeof(query) };

	if (name != _SC_PROFIL_MAX)
		return sysconf(name);
	if (libprofil_result(libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query)))
		return -1;
	return hpux_max_regions(&query);
}
