// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * profil() with the prototype and the rules of glibc: see profil.h.
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

PROFIL_EXPORT int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
	int err = buf && scale ? start(buf, bufsiz, offset, scale) : stop();

	if (err) {
		errno = -err;
		return -1;
	}
	return 0;
}
