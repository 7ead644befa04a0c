// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() of Digital UNIX, System V and Version 7: see <profil/osf1.h>
 *
 * The call returns nothing. After a call with another buffer, the caller assumes that the kernel no
 * longer uses the previous buffer. So a call that fails turns profiling off.
 */
#include <errno.h>
#include <stdint.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../copy.h"
#include "../device.h"
#include "profil/osf1.h"

#define MILLISECOND	1000000U	/* ns */

#define SCALE_ONE_COUNTER	2	/* all text counts in the first counter */

/*
 * Returns the period of the session: a millisecond. Returns 0, for the tick of the scheduler, if
 * the tick is as fast, or if the caller is not allowed to use this period.
 */
static uint64_t osf1_period(const struct profil_query *query)
{
	if (!(query->features & PROFIL_FEATURE_CLOCK) || query->tick_ns <= MILLISECOND ||
	    query->min_period > MILLISECOND || query->max_period < MILLISECOND)
		return 0;
	return MILLISECOND;
}

static int osf1_start(const unsigned short *buffer, unsigned int size, uintptr_t offset,
		      unsigned int scale)
{
	struct profil_query query = { .size = sizeof(query) };
	struct profil_range range = {
		.start = offset,
		.end = UINT64_MAX,
		.offset = offset,
		.buffer = (uintptr_t)buffer,
		.nr_counters = size / sizeof(*buffer),
		.scale = scale == SCALE_ONE_COUNTER ? 0 : scale,
		.granule = 1,
		.step = 2,
		.width = sizeof(*buffer),
	};
	unsigned int nr = range.start < range.end;	/* the kernel rejects an empty range */
	uint64_t period = 0;
	int err;

	err = libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (!err)
		period = osf1_period(&query);
	err = libprofil_classic_start(&range, nr, PROFIL_START_REPLACE, period);
	if (err && period)
		err = libprofil_classic_start(&range, nr, PROFIL_START_REPLACE, 0);
	if (err)
		libprofil_classic_stop();
	return err;
}

PROFIL_EXPORT void profil_osf1(unsigned short *short_buffer, unsigned int buffer_size,
			       void *offset, unsigned int scale)
{
	if (scale > 1)
		libprofil_result(osf1_start(short_buffer, buffer_size, (uintptr_t)offset, scale));
	else
		libprofil_result(libprofil_classic_stop());
}

PROFIL_EXPORT int getsysinfo_osf1(unsigned long op, void *buffer, unsigned long nbytes, ...)
{
	struct profil_query query = { .size = sizeof(query) };
	int err, hz;

	if (op != GSI_CLK_TCK || nbytes < sizeof(hz))
		return libprofil_result(-EINVAL);
	err = libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (err)
		return libprofil_result(err);
	hz = osf1_period(&query) ? 1000000000 / MILLISECOND : query.tick_hz;
	err = libprofil_copy_out(buffer, &hz, sizeof(hz));
	return err ? libprofil_result(err) : 1;
}
