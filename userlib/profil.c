// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() with the prototype and the rules of glibc, and what else acts without a
 * descriptor: see profil.h.
 */
#include <errno.h>
#include <stdint.h>

#include <linux/profil.h>

#include "device.h"
#include "profil.h"

static int start(const unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
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
	struct profil_start arg = {
		.size = sizeof(arg),
		.flags = PROFIL_START_REPLACE,
		.scope = PROFIL_SCOPE_PROCESS,
		.modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
		.nr_ranges = 1,
		.ranges = (uintptr_t)&range,
	};
	int err;

	/* A range must not be empty. No pc is as high as this. */
	if (range.start == range.end) {
		range.start--;
		range.offset--;
	}

	err = profil_device_ioctl(PROFIL_IOC_START, &arg);
	switch (err) {
	case -EOPNOTSUPP:	/* a module that cannot do what is asked for here */
		return -ENOSYS;
	case -EINVAL:		/* all else is sound: the buffer is misaligned or too large */
		return -EFAULT;
	case -EPERM:		/* RLIMIT_MEMLOCK */
		return -ENOMEM;
	default:
		return err;
	}
}

static int stop(void)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = PROFIL_SCOPE_PROCESS,
	};
	int err = profil_device_ioctl(PROFIL_IOC_STOP, &arg);

	return err == -EINVAL ? 0 : err;	/* it was off already */
}

static int status(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

PROFIL_EXPORT int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
	return status(buf && scale ? start(buf, bufsiz, offset, scale) : stop());
}

PROFIL_EXPORT int profil_classic_stats(struct profil_stats *stats)
{
	return status(profil_device_ioctl(PROFIL_IOC_STATS, stats));
}

PROFIL_EXPORT int profil_query_kernel(struct profil_query *query)
{
	return status(profil_device_ioctl(PROFIL_IOC_QUERY, query));
}
