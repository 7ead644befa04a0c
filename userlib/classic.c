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

static uint32_t holder;		/* pid, 0 for none */
static enum profil_owner owner;

/**
 * profil_classic_lock - Keep the session as it is for all but the caller
 *
 * Leaves errno alone.
 *
 * Return: the signals that were blocked before, for profil_classic_unlock().
 */
uint64_t profil_classic_lock(void)
{
	uint64_t all = UINT64_MAX, blocked = 0;
	uint32_t pid, was = 0;
	int saved = errno;

	syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &blocked, sizeof(all));
	pid = syscall(SYS_getpid);
	while (!__atomic_compare_exchange_n(&holder, &was, pid, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (was == pid) {
			syscall(SYS_futex, &holder, FUTEX_WAIT_PRIVATE, pid, NULL);
			was = 0;
		} else {
			owner = PROFIL_ANOTHER;		/* it was about to change */
		}
	}
	errno = saved;
	return blocked;
}

void profil_classic_unlock(uint64_t blocked)
{
	int saved = errno;

	__atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &holder, FUTEX_WAKE_PRIVATE, 1);
	syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &blocked, NULL, sizeof(blocked));
	errno = saved;
}

/**
 * profil_classic_look - What there is, and who turned it on
 * @stats: Out: its statistics, also of what has ended by itself.
 *
 * Under the lock.
 *
 * Return: enum profil_owner, or a negative error as of profil_device_ioctl().
 */
int profil_classic_look(struct profil_stats *stats)
{
	int err;

	*stats = (struct profil_stats){ .size = sizeof(*stats), .scope = PROFIL_SCOPE_PROCESS };
	err = profil_device_ioctl(PROFIL_IOC_STATS, stats);
	if (err)
		return err;
	return stats->state == PROFIL_STATE_OFF ? PROFIL_NOBODY : owner;
}

/**
 * profil_classic_owner - Who turned on what is on
 *
 * Under the lock. A session that has ended by itself is not on.
 *
 * Return: enum profil_owner, or a negative error as of profil_device_ioctl().
 */
int profil_classic_owner(void)
{
	struct profil_stats stats;
	int who = profil_classic_look(&stats);

	if (who < 0 || stats.state == PROFIL_STATE_ON)
		return who;
	owner = PROFIL_ANOTHER;
	return PROFIL_NOBODY;
}

/* Is a session of pcsample() on? An error is for the next call to find. */
static bool is_sampling(void)
{
	struct profil_stats stats;

	return owner == PROFIL_ILLUMOS && profil_classic_look(&stats) == PROFIL_ILLUMOS &&
	       stats.state == PROFIL_STATE_ON;
}

/**
 * profil_classic_start_as - Profile the calling process from now on
 * @who: The owner from then on.
 * @modes: PROFIL_MODE_*; 0 if nothing is to be counted yet.
 *
 * Under the lock. Else as profil_classic_start().
 */
int profil_classic_start_as(enum profil_owner who, const struct profil_range *ranges,
			    unsigned int nr_ranges, uint32_t flags, uint32_t modes,
			    uint64_t period)
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

	if (is_sampling())
		return -EBUSY;
	err = profil_device_ioctl(PROFIL_IOC_START, &arg);
	switch (err) {
	case 0:
		owner = who;
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
 * profil_classic_end - Profile it no longer
 * @stats: Out: the last statistics, if there was anything to end; or NULL.
 *
 * Under the lock.
 *
 * Return: 0, also if it was not; or a negative error as of profil_device_ioctl().
 */
int profil_classic_end(struct profil_stats *stats)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = PROFIL_SCOPE_PROCESS,
		.stats = (uintptr_t)stats,
	};
	int err;

	if (stats)
		*stats = (struct profil_stats){ .size = sizeof(*stats) };
	err = profil_device_ioctl(PROFIL_IOC_STOP, &arg);

	if (err && err != -EINVAL)
		return err;
	owner = PROFIL_ANOTHER;		/* whoever may be next, without this library perhaps */
	return 0;
}

/**
 * profil_classic_start - Profile the calling process from now on
 * @ranges: What counts where; sound but for the buffers.
 * @nr_ranges: Number of these.
 * @flags: PROFIL_START_*.
 * @period: As of struct profil_start.
 *
 * Return: 0 or a negative error, of those that historical calls know: -EFAULT if a buffer is bad,
 * -ENOMEM if it may not be locked; -EBUSY, if @flags do not allow to replace what is on, or that
 * is a session of pcsample(); -ENOSYS, -EACCES and others as of profil_device_ioctl().
 */
int profil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			 uint32_t flags, uint64_t period)
{
	uint64_t blocked = profil_classic_lock();
	int err = profil_classic_start_as(PROFIL_ANOTHER, ranges, nr_ranges, flags,
					  PROFIL_MODES_ALL, period);

	profil_classic_unlock(blocked);
	return err;
}

/* As profil_classic_end(), but a session of pcsample() goes on. */
int profil_classic_stop(void)
{
	uint64_t blocked = profil_classic_lock();
	int err = is_sampling() ? 0 : profil_classic_end(NULL);

	profil_classic_unlock(blocked);
	return err;
}

/**
 * profil_classic_ioctl - profil_device_ioctl() for a caller that does not hold the lock
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Return: as profil_device_ioctl().
 */
int profil_classic_ioctl(unsigned long cmd, void *arg)
{
	uint64_t blocked = profil_classic_lock();
	int result = profil_device_ioctl(cmd, arg);

	profil_classic_unlock(blocked);
	return result;
}

/**
 * profil_classic_max_regions - How many regions that may overlap a session can have
 *
 * Under the lock. Each can be cut into two ranges by another.
 *
 * Return: their number, or a negative error as of profil_device_ioctl().
 */
int profil_classic_max_regions(void)
{
	struct profil_query query = { .size = sizeof(query) };
	int err = profil_device_ioctl(PROFIL_IOC_QUERY, &query);

	return err ?: (int)(query.max_ranges / 2);
}

/* What a call returns: 0, or -1 with errno set. */
int profil_status(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}
