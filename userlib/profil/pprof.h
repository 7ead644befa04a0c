/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that profiles itself, for pprof: see profil_pprof(3)
 *
 * Link with -lprofil-pprof.
 */
#ifndef _PROFIL_PPROF_H
#define _PROFIL_PPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A profile of the calling process. The functions are thread-safe, but not async-signal-safe. None
 * is a cancellation point.
 */
struct profil_pprof;

/**
 * profil_pprof_start - Start a profile of the calling process
 * @hz: Samples per second of CPU time, for example 1000; 0 for one at each tick of the scheduler.
 *
 * The profile has the samples of all threads of the process, also of those that start later. A
 * process can have several profiles at the same time. A thread of the library reads the samples,
 * with all signals blocked.
 *
 * After fork, the profile continues in the parent. In the child, it has ended: the child can only
 * pass it to profil_pprof_stop(). Exec ends all profiles.
 *
 * Return: the profile, or NULL with errno set:
 *
 *	EINVAL	@hz is above 100,000 or below the lowest rate, see profil_query.max_period
 *	EPERM	@hz is above the highest rate that the caller is allowed to use, see
 *		profil_query.min_period; or RLIMIT_MEMLOCK is too low
 *	EBUSY	the process has as many profiles and sessions as the kernel allows, see
 *		profil_query.max_clocked; or the tick cannot be hooked
 *	ENOMEM	there is not enough memory
 *	EAGAIN	a thread cannot be created
 *	ENOSYS	the module is not loaded, or is too old
 *	EACCES	the caller has no permission to open /dev/profil, or a seccomp filter forbids its
 *		ioctls
 *	EMFILE, ENFILE
 *		no descriptor is free
 */
struct profil_pprof *profil_pprof_start(unsigned int hz);

/**
 * profil_pprof_write - Write the samples from the start of a profile until now
 * @profile: The profile; it continues.
 * @fd: A file, pipe or socket. If it has O_NONBLOCK, the function waits until it can be written.
 *
 * The format is that of pprof: a message of protobuf, compressed as by gzip. The comments of the
 * profile have the numbers of ticks that were lost or missed. Only exported functions have names:
 * pprof reads the others from the binaries.
 *
 * Return: 0, or -1 with errno set to an error of write(2), or to
 *
 *	ENODEV	the profile is that of the parent process
 *	EBADF, ENOTTY
 *		@fd is not open for writing; or the program has closed the descriptor of the
 *		profile, so that it has ended
 *	ENOMEM	there is not enough memory; nothing was written
 */
int profil_pprof_write(struct profil_pprof *profile, int fd);

/**
 * profil_pprof_stop - End a profile and free its memory
 * @profile: The profile; or NULL, which has no effect.
 *
 * Does not change errno.
 */
void profil_pprof_stop(struct profil_pprof *profile);

#ifdef __cplusplus
}
#endif

#endif /* _PROFIL_PPROF_H */
