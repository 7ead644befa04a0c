// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() with the prototype and the rules of glibc, and the other functions that do not act on a
 * session's descriptor: see profil.h
 */
#include <stdint.h>

#include <linux/profil.h>

#include "classic.h"
#include "device.h"
#include "profil.h"

static int glibc_start(const unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
	struct profil_range range = {
		.start = offset,
		.end = UINT64_MAX,
		.offset = offset,
		.buffer = (uintptr_t)buf,
		.nr_counters = bufsiz / sizeof(*buf),
		.scale = scale,
		.granule = 2,
		.step = 1,
		.width = sizeof(*buf),
	};

	/* The kernel rejects an empty range. No pc is this high, so nothing counts. */
	if (range.start == range.end) {
		range.start--;
		range.offset--;
	}
	return libprofil_classic_start(&range, 1, PROFIL_START_REPLACE, 0);
}

PROFIL_EXPORT int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
	if (!buf || !scale)
		return libprofil_result(libprofil_classic_stop());
	return libprofil_result(glibc_start(buf, bufsiz, offset, scale));
}

PROFIL_EXPORT int profil_classic_stats(struct profil_stats *stats)
{
	return libprofil_result(libprofil_classic_ioctl(PROFIL_IOC_STATS, stats));
}

PROFIL_EXPORT int profil_query_kernel(struct profil_query *query)
{
	return libprofil_result(libprofil_classic_ioctl(PROFIL_IOC_QUERY, query));
}
