// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The classic session of the calling process: what all the historical calls are made of.
 *
 * The kernel knows whether it is on, the library who turned it on. What the library remembers is
 * changed together with the session, under one lock. All signals wait meanwhile, so that a
 * handler may call what it has interrupted. The lock names the process: in the child of a fork
 * no thread holds it that was not forked.
 *
 * A new session replaces the one that is on, but none replaces that of pcsample(), nor does it
 * replace another.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>
#include <linux/profil.h>

#include "classic.h"
#include "device.h"

static uint32_t lock_holder;		/* pid, 0 for none */
static enum libprofil_owner owner;

/**
 * libprofil_classic_lock - Keep the session as it is for all but the caller
 *
 * Leaves errno alone.
 *
 * Return: the signals that were blocked before, for libprofil_classic_unlock().
 */
uint64_t libprofil_classic_lock(void)
{
	uint64_t all = UINT64_MAX, blocked = 0;
	uint32_t pid, was = 0;
	int saved = errno;

	syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &blocked, sizeof(all));
	pid = syscall(SYS_getpid);
	while (!__atomic_compare_exchange_n(&lock_holder, &was, pid, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (was == pid) {
			syscall(SYS_futex, &lock_holder, FUTEX_WAIT_PRIVATE, pid, NULL);
			was = 0;
		} else {
			owner = OWNER_OTHER;		/* it was about to change */
		}
	}
	errno = saved;
	return blocked;
}

void libprofil_classic_unlock(uint64_t blocked)
{
	int saved = errno;

	__atomic_store_n(&lock_holder, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &lock_holder, FUTEX_WAKE_PRIVATE, 1);
	syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &blocked, NULL, sizeof(blocked));
	errno = saved;
}

/**
 * libprofil_classic_inspect - What there is, and who turned it on
 * @stats: Out: its statistics, also of what has ended by itself.
 *
 * Under the lock.
 *
 * Return: enum libprofil_owner, or a negative error as of libprofil_device_ioctl().
 */
int libprofil_classic_inspect(struct profil_stats *stats)
{
	int err;

	*stats = (struct profil_stats){ .size = sizeof(*stats), .scope = PROFIL_SCOPE_PROCESS };
	err = libprofil_device_ioctl(PROFIL_IOC_STATS, stats);
	if (err)
		return err;
	return stats->state == PROFIL_STATE_OFF ? OWNER_NONE : owner;
}

/**
 * libprofil_classic_owner - Who turned on what is on
 *
 * Under the lock. A session that has ended by itself is not on.
 *
 * Return: enum libprofil_owner, or a negative error as of libprofil_device_ioctl().
 */
int libprofil_classic_owner(void)
{
	struct profil_stats stats;
	int result = libprofil_classic_inspect(&stats);

	if (result < 0 || stats.state == PROFIL_STATE_ON)
		return result;
	owner = OWNER_OTHER;
	return OWNER_NONE;
}

/* Is a session of pcsample() on? An error is for the next call to find. */
static bool pcsample_is_on(void)
{
	struct profil_stats stats;

	return owner == OWNER_ILLUMOS && libprofil_classic_inspect(&stats) == OWNER_ILLUMOS &&
	       stats.state == PROFIL_STATE_ON;
}

/**
 * libprofil_classic_start_locked - Profile the calling process from now on
 * @who: The owner from then on.
 * @modes: PROFIL_MODE_*; 0 if nothing is to be counted yet.
 *
 * Under the lock. Else as libprofil_classic_start().
 */
int libprofil_classic_start_locked(enum libprofil_owner new_owner,
				   const struct profil_range *ranges, unsigned int nr_ranges,
				   uint32_t flags, uint32_t modes, uint64_t period)
{
	struct profil_start arg = {
		.size = sizeof(arg),
		.flags = flags,
		.scope = PROFIL_SCOPE_PROCESS,
		.modes = modes,
		.nr_ranges = nr_ranges,
		.ranges = (uintptr_t)ranges,
		.period = period,
	};
	int err;

	if (pcsample_is_on())
		return -EBUSY;
	err = libprofil_device_ioctl(PROFIL_IOC_START, &arg);
	switch (err) {
	case 0:
		owner = new_owner;
		return 0;
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
 * libprofil_classic_stop_locked - Profile it no longer
 * @stats: Out: the last statistics, if there was anything to end; or NULL.
 *
 * Under the lock.
 *
 * Return: 0, also if it was not; or a negative error as of libprofil_device_ioctl().
 */
int libprofil_classic_stop_locked(struct profil_stats *stats)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = PROFIL_SCOPE_PROCESS,
		.stats = (uintptr_t)stats,
	};
	int err;

	if (stats)
		*stats = (struct profil_stats){ .size = sizeof(*stats) };
	err = libprofil_device_ioctl(PROFIL_IOC_STOP, &arg);

	if (err && err != -EINVAL)
		return err;
	owner = OWNER_OTHER;		/* whoever may be next, without this library perhaps */
	return 0;
}

/**
 * libprofil_classic_start - Profile the calling process from now on
 * @ranges: What counts where; sound but for the buffers.
 * @nr_ranges: Number of these.
 * @flags: PROFIL_START_*.
 * @period: As of struct profil_start.
 *
 * Return: 0 or a negative error, of those that historical calls know: -EFAULT if a buffer is bad,
 * -ENOMEM if it may not be locked; -EBUSY, if @flags do not allow to replace what is on, or that
 * is a session of pcsample(); -ENOSYS, -EACCES and others as of libprofil_device_ioctl().
 */
int libprofil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			    uint32_t flags, uint64_t period)
{
	uint64_t blocked = libprofil_classic_lock();
	int err = libprofil_classic_start_locked(OWNER_OTHER, ranges, nr_ranges, flags,
					  PROFIL_MODES_ALL, period);

	libprofil_classic_unlock(blocked);
	return err;
}

/* As libprofil_classic_stop_locked(), but a session of pcsample() goes on. */
int libprofil_classic_stop(void)
{
	uint64_t blocked = libprofil_classic_lock();
	int err = pcsample_is_on() ? 0 : libprofil_classic_stop_locked(NULL);

	libprofil_classic_unlock(blocked);
	return err;
}

/**
 * libprofil_classic_ioctl - libprofil_device_ioctl() for a caller that does not hold the lock
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Return: as libprofil_device_ioctl().
 */
int libprofil_classic_ioctl(unsigned long cmd, void *arg)
{
	uint64_t blocked = libprofil_classic_lock();
	int result = libprofil_device_ioctl(cmd, arg);

	libprofil_classic_unlock(blocked);
	return result;
}

/**
 * libprofil_classic_max_regions - How many regions that may overlap a session can have
 *
 * Under the lock. Each can be cut into two ranges by another.
 *
 * Return: their number, or a negative error as of libprofil_device_ioctl().
 */
int libprofil_classic_max_regions(void)
{
	struct profil_query query = { .size = sizeof(query) };
	int err = libprofil_device_ioctl(PROFIL_IOC_QUERY, &query);

	return err ?: (int)(query.max_ranges / 2);
}

/* What a call returns: 0, or -1 with errno set. */
int libprofil_result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}
