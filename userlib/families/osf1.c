// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() of Digital UNIX, System V and Version 7: see <profil/osf1.h>.
 *
 * It returns nothing: whoever calls it takes it that the buffer before is used no longer. So
 * does it turn off what is on, if it cannot do what it is asked for.
 */
#include <errno.h>
#include <stdint.h>

#include <linux/profil.h>

#include "classic.h"
#include "copy.h"
#include "device.h"
#include "profil/osf1.h"

#define MS	1000000U	/* ns */

#define SCALE_ALL	2	/* all in the first counter */

/* Of the session's clock; 0 for the scheduler's tick, where that is as fast, or all there is. */
static uint64_t period_of(const struct profil_query *query)
{
	if (!(query->features & PROFIL_FEATURE_CLOCK) || query->tick_ns <= MS ||
	    query->min_period > MS || query->max_period < MS)
		return 0;
	return MS;
}

static int start(const unsigned short *buffer, unsigned int size, uintptr_t offset,
		 unsigned int scale)
{
	struct profil_query query = { .size = sizeof(query) };
	struct profil_range range = {
		.start = offset,
		.end = UINT64_MAX,
		.offset = offset,
		.buffer = (uintptr_t)buffer,
		.nr_counters = size / sizeof(*buffer),
		.scale = scale == SCALE_ALL ? 0 : scale,
		.granule = 1,
		.step = 2,
		.width = sizeof(*buffer),
	};
	unsigned int nr = range.start < range.end;	/* a range must not be empty */
	uint64_t period = 0;
	int err;

	err = profil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (!err)
		period = period_of(&query);
	err = profil_classic_start(&range, nr, PROFIL_START_REPLACE, period);
	if (err && period)
		err = profil_classic_start(&range, nr, PROFIL_START_REPLACE, 0);
	if (err)
		profil_classic_stop();
	return err;
}

PROFIL_EXPORT void profil_osf1(unsigned short *short_buffer, unsigned int buffer_size,
			       void *offset, unsigned int scale)
{
	if (scale > 1)
		profil_status(start(short_buffer, buffer_size, (uintptr_t)offset, scale));
	else
		profil_status(profil_classic_stop());
}

PROFIL_EXPORT int getsysinfo_osf1(unsigned long op, void *buffer, unsigned long nbytes, ...)
{
	struct profil_query query = { .size = sizeof(query) };
	int err, hz;

	if (op != GSI_CLK_TCK || nbytes < sizeof(hz))
		return profil_status(-EINVAL);
	err = profil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	if (err)
		return profil_status(err);
	hz = period_of(&query) ? 1000000000 / MS : query.tick_hz;
	err = profil_copy_out(buffer, &hz, sizeof(hz));
	return err ? profil_status(err) : 1;
}
