// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The classic session of the calling process, which all historical calls use.
 *
 * The kernel knows whether the session is on. The library knows the owner: the call that turned the
 * session on. The library changes owner and session together, under one lock. While a thread holds
 * the lock, all signals are blocked, so that a signal handler can call any function that it has
 * interrupted. The lock contains the process id: if a thread of the parent held the lock during a
 * fork, the child sees that no thread of its own holds it.
 *
 * A new session replaces the session that is on. The exception is pcsample(): it does not replace
 * the session of another call, and no other call replaces its session.
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

static uint32_t lock_holder;	/* process id, or 0 if the lock is free */
static enum libprofil_owner owner;

/**
 * libprofil_classic_lock - Lock the classic session and block all signals
 *
 * Does not change errno.
 *
 * Return: the previous signal mask, for libprofil_classic_unlock().
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
			owner = OWNER_OTHER;	/* the fork interrupted a change of owner */
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
 * libprofil_classic_inspect - Get the statistics and the owner of the session
 * @stats: Out: the statistics, also of a session that has ended by itself.
 *
 * The caller holds the lock.
 *
 * Return: enum libprofil_owner, or a negative error from libprofil_device_ioctl().
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
 * libprofil_classic_owner - Get the owner of the session
 *
 * The caller holds the lock. A session that has ended by itself has no owner.
 *
 * Return: enum libprofil_owner, or a negative error from libprofil_device_ioctl().
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

/* Returns true if a session of pcsample() is on. Ignores errors: the next ioctl reports them. */
static bool pcsample_is_on(void)
{
	struct profil_stats stats;

	return owner == OWNER_ILLUMOS && libprofil_classic_inspect(&stats) == OWNER_ILLUMOS &&
	       stats.state == PROFIL_STATE_ON;
}

/**
 * libprofil_classic_start_locked - Start the classic session; the caller holds the lock
 * @new_owner: The owner of the new session.
 * @ranges: As for libprofil_classic_start().
 * @nr_ranges: As for libprofil_classic_start().
 * @flags: As for libprofil_classic_start().
 * @modes: PROFIL_MODE_*; 0: the session counts nothing yet.
 * @period: As for libprofil_classic_start().
 *
 * Return: see libprofil_classic_start().
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
	case -EOPNOTSUPP:	/* this version of the module does not support the request */
		return -ENOSYS;
	case -EINVAL:		/* a buffer is misaligned or too large; all else is valid */
		return -EFAULT;
	case -EPERM:		/* RLIMIT_MEMLOCK */
		return -ENOMEM;
	default:
		return err;
	}
}

/**
 * libprofil_classic_stop_locked - Stop the classic session; the caller holds the lock
 * @stats: Out: the final statistics, if there was a session; or NULL.
 *
 * Return: 0, even if there was no session; or a negative error from libprofil_device_ioctl().
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
	owner = OWNER_OTHER;	/* the program may start the next session without this library */
	return 0;
}

/**
 * libprofil_classic_start - Start the classic session
 * @ranges: The ranges. Their members are valid, except for the buffers, which are not checked yet.
 * @nr_ranges: Number of ranges.
 * @flags: PROFIL_START_*.
 * @period: See struct profil_start.
 *
 * Return: 0 or a negative error, with the meanings of the historical calls: -EFAULT if a buffer is
 * invalid; -ENOMEM if RLIMIT_MEMLOCK is too low; -EBUSY if a session is on and @flags do not have
 * PROFIL_START_REPLACE, or if a session of pcsample() is on; -ENOSYS, -EACCES and others from
 * libprofil_device_ioctl().
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

/* Takes the lock and stops the classic session, unless it is one of pcsample(). */
int libprofil_classic_stop(void)
{
	uint64_t blocked = libprofil_classic_lock();
	int err = pcsample_is_on() ? 0 : libprofil_classic_stop_locked(NULL);

	libprofil_classic_unlock(blocked);
	return err;
}

/**
 * libprofil_classic_ioctl - Take the lock and call libprofil_device_ioctl()
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Return: see libprofil_device_ioctl().
 */
int libprofil_classic_ioctl(unsigned long cmd, void *arg)
{
	uint64_t blocked = libprofil_classic_lock();
	int result = libprofil_device_ioctl(cmd, arg);

	libprofil_classic_unlock(blocked);
	return result;
}

/**
 * libprofil_classic_max_regions - Get the maximum number of regions that can overlap
 *
 * The caller holds the lock. Each region can split another one into two ranges.
 *
 * Return: the maximum, or a negative error from libprofil_device_ioctl().
 */
int libprofil_classic_max_regions(void)
{
	struct profil_query query = { .size = sizeof(query) };
	int err = libprofil_device_ioctl(PROFIL_IOC_QUERY, &query);

	return err ?: (int)(query.max_ranges / 2);
}

/* Converts 0 or a negative error to the result of a call: 0, or -1 with errno set. */
int libprofil_result(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}
