// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pcsample() of illumos: see <profil/illumos.h>
 */
#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include <linux/profil.h>

#include "../classic.h"
#include "../device.h"
#include "profil/illumos.h"

#define NSAMPLES_MAX	((long)(LONG_MAX / sizeof(uintptr_t)))

/*
 * In the child of a fork, returns the number of entries that the parent had used before the session
 * of the child began; otherwise 0.
 */
static long inherited_entries(void)
{
	struct profil_describe session = { .size = sizeof(session) };

	return libprofil_device_ioctl(PROFIL_IOC_DESCRIBE, &session) ? 0 : session.taken;
}

static int pcsample_start(uintptr_t *samples, long nsamples)
{
	struct profil_range all = {
		.end = UINTPTR_MAX,
		.buffer = (uintptr_t)samples,
		.nr_counters = nsamples,
		.scale = 65536,
		.granule = 1,
		.step = 1,
		.width = sizeof(*samples),
		.flags = PROFIL_RANGE_PCS,
	};

	return libprofil_classic_start_locked(OWNER_ILLUMOS, &all, 1, 0, PROFIL_MODES_ALL, 0);
}

/*
 * Stops a session of pcsample() and starts another one if @nsamples is not 0. The caller holds the
 * lock. Returns the number of entries that were used, or a negative error.
 */
static long pcsample_restart(uintptr_t *samples, long nsamples)
{
	struct profil_stats stats;
	long taken = 0;
	int err, owner = libprofil_classic_inspect(&stats);

	if (owner < 0)
		return owner;
	if (stats.state == PROFIL_STATE_ON) {
		if (owner != OWNER_ILLUMOS)
			return nsamples ? -EBUSY : 0;
		taken = inherited_entries();
	}
	err = libprofil_classic_stop_locked(&stats);
	if (!err && owner == OWNER_ILLUMOS)
		taken += stats.hit;
	if (!err && nsamples)
		err = pcsample_start(samples, nsamples);
	return err ? err : taken;
}

PROFIL_EXPORT long pcsample(uintptr_t samples[], long nsamples)
{
	uint64_t blocked;
	long taken;

	if (nsamples < 0 || nsamples > NSAMPLES_MAX)
		return libprofil_result(-EINVAL);
	blocked = libprofil_classic_lock();
	taken = pcsample_restart(samples, nsamples);
	libprofil_classic_unlock(blocked);
	return taken < 0 ? libprofil_result(taken) : taken;
}
