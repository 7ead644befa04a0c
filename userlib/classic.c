// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The classic session of the calling process: what all the historical calls are made of.
 */
#include <errno.h>
#include <stdint.h>

#include <linux/profil.h>

#include "classic.h"
#include "device.h"

/**
 * profil_classic_start - Profile the calling process from now on
 * @ranges: What counts where; sound but for the buffers.
 * @nr_ranges: Number of these.
 * @flags: PROFIL_START_*.
 * @period: As of struct profil_start.
 *
 * Return: 0 or a negative error, of those that historical calls know: -EFAULT if a buffer is bad,
 * -ENOMEM if it may not be locked; -EBUSY, if @flags do not allow to replace what is on;
 * -ENOSYS, -EACCES and others as of profil_device_ioctl().
 */
int profil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			 uint32_t flags, uint64_t period)
{
	struct profil_start arg = {
		.size = sizeof(arg),
		.flags = flags,
		.scope = PROFIL_SCOPE_PROCESS,
		.modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
		.nr_ranges = nr_ranges,
		.ranges = (uintptr_t)ranges,
		.period = period,
	};
	int err = profil_device_ioctl(PROFIL_IOC_START, &arg);

	switch (err) {
	case -EOPNOTSUPP:	/* a module that cannot do what is asked for here */
		return -ENOSYS;
	case -EINVAL:		/* all else is sound: a buffer is misaligned or too large */
		return -EFAULT;
	case -EPERM:		/* RLIMIT_MEMLOCK */
		return -ENOMEM;
	default:
		return err;
	}
}

/**
 * profil_classic_stop - Profile it no longer
 *
 * Return: 0, also if it was not; or a negative error as of profil_device_ioctl().
 */
int profil_classic_stop(void)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = PROFIL_SCOPE_PROCESS,
	};
	int err = profil_device_ioctl(PROFIL_IOC_STOP, &arg);

	return err == -EINVAL ? 0 : err;
}

/* What a call returns: 0, or -1 with errno set. */
int profil_status(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}
