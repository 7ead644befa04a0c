/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil - execution time profile
 *
 *	profil()		profiles the calling process into an array: as it ever was
 *	profil_session_*()	sessions with a descriptor: any text, any processes that may
 *				be sampled, several at a time, started and stopped at will
 *	profil_range_*(), profil_record_*()
 *				arithmetic on what these take and give
 *
 * The structures and their semantics are those of <linux/profil.h>; what is said there is
 * not said again here.
 *
 * Link with -lprofil, or preload libprofil.so.1 under a program that was linked
 * against libc's profil(). Both need the profil kernel module.
 */
#ifndef _LIBPROFIL_H
#define _LIBPROFIL_H

#include <stddef.h>
#include <sys/types.h>

#include <linux/profil.h>

/* glibc's <unistd.h> declares profil() too, and C++ wants the two to agree. */
#if !defined(__cplusplus)
#define __PROFIL_NOTHROW
#elif __cplusplus >= 201103L
#define __PROFIL_NOTHROW noexcept(true)
#else
#define __PROFIL_NOTHROW throw()
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * profil - Profile the calling process from now on, or no longer
 * @buf: Counters, which counting adds to; they are not cleared. NULL turns profiling
 *	off. (glibc's <unistd.h> calls NULL wrong and makes compilers warn of it; @scale 0
 *	does the same for any @buf.)
 * @bufsiz: Size of @buf in bytes. Below 2, profiling is on and counts nothing.
 * @offset: The text address that the first counter stands for.
 * @scale: Counters per two bytes of text, as a fraction of 65536: with 65536 every
 *	counter is for two bytes, with 32768 for four. Any value; 0 turns profiling off.
 *
 * At every tick of the scheduler, one in 1/CONFIG_HZ seconds of CPU time, that finds a
 * thread of the process running at an address pc >= @offset, the kernel adds one to
 *
 *	buf[(pc - offset) / 2 * scale / 65536]
 *
 * if that lies within @bufsiz bytes. Divisions round down, nothing overflows. A tick in
 * kernel mode counts at the instruction that called the kernel. Threads never lose each
 * other's counts. A full counter stays at 65535.
 *
 * A call while profiling is on replaces buffer and scale in one step, but pcsample() and this call
 * exclude each other. Profiling ends with exec and exit. The pages of the buffer are locked
 * meanwhile and charged to RLIMIT_MEMLOCK. Profiling goes on in these pages if the buffer is
 * unmapped, moved or made read-only: the program does not see counts in memory that it has
 * unmapped, and nothing is ever counted in what is mapped there later.
 *
 * The child of a fork is profiled as well, from the fork on, into its own copy of the
 * buffer; if the buffer is shared memory, parent and child count into the one buffer. If the
 * child's RLIMIT_MEMLOCK does not allow it, the child is not profiled: profil_classic_stats()
 * tells.
 *
 * No signal or timer is used. While profiling is on, the library keeps a descriptor of /dev/profil,
 * with a number of 100 or more if it can and close-on-exec, so that profiling can be turned off
 * when no descriptor is free, and after chroot(). Whoever closes it takes that away and nothing
 * else. Thread-safe, async-signal-safe, and not a cancellation point.
 *
 * Unlike glibc's: the tick is the kernel's own, not 10 ms of ITIMER_PROF, which stays
 * free for the program; scale 0 turns profiling off instead of counting all in buf[0];
 * full counters do not wrap; and it can fail.
 *
 * Return: 0, or -1 with errno set, and a profile that was on goes on:
 *
 *	EFAULT	@buf is not mapped and writable for @bufsiz bytes, is not aligned to
 *		two, or is memory that cannot be locked (a device's, or a shared mapping
 *		of a file that is written back)
 *	ENOMEM	RLIMIT_MEMLOCK, or the kernel's memory, does not allow to lock @buf
 *	ENOSYS	the module is not loaded: there is no /dev/profil. Also for turning off
 *	EACCES	no right to open /dev/profil, or a seccomp filter forbids its ioctls
 *	EBUSY	a profile of pcsample() is on, or the tick cannot be hooked (sysctl
 *		kernel.ftrace_enabled is 0)
 *	EMFILE, ENFILE
 *		no descriptor is free; when profiling is turned off or replaced, only if the
 *		program has closed the one that the library kept
 */
#ifndef profil			/* or the name is that of a family's, see <profil/bsd.h> */
int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale) __PROFIL_NOTHROW;
#endif

/**
 * profil_classic_stats - What became of the ticks of profil()
 * @stats: @size set to sizeof(struct profil_stats), @scope to PROFIL_SCOPE_PROCESS, other
 *	inputs 0. Outputs: as of PROFIL_IOC_STATS.
 *
 * To be asked before profiling is turned off, which forgets the statistics. They are also
 * there when the profile ended by itself, as it can in the child of a fork, with the reason: the
 * child has no copy of the buffer (PROFIL_END_BUFFER), or may not lock it (PROFIL_END_LIMIT).
 *
 * Return: 0, or -1 with errno set as by PROFIL_IOC_STATS; ENOSYS, EACCES, EMFILE, ENFILE as
 * by profil(). Thread-safe and async-signal-safe.
 */
int profil_classic_stats(struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_query_kernel - What this kernel offers
 * @query: @size set to sizeof(struct profil_query), @flags 0. Outputs: as of PROFIL_IOC_QUERY.
 *
 * Return: 0, or -1 with errno set as by PROFIL_IOC_QUERY; ENOSYS, EACCES, EMFILE, ENFILE as
 * by profil(). Thread-safe and async-signal-safe.
 */
int profil_query_kernel(struct profil_query *query) __PROFIL_NOTHROW;

/*
 * Sessions with a descriptor
 * --------------------------
 *
 * The descriptor is an ordinary one: close() of its last copy ends the session, poll() waits
 * for records, O_NONBLOCK can be set, it can be sent over a socket. The library keeps nothing
 * beside it. All calls may be made from several threads at once, and by whoever holds a copy
 * of the descriptor, within the limits that <linux/profil.h> states.
 *
 * Functions return 0 (profil_session_open: the descriptor), or -1 with errno set to what
 * <linux/profil.h> says of the ioctl in question. What all have in common:
 *
 *	EBADF	@fd is not open
 *	ENOTTY	@fd is not the descriptor of a session
 *	EINVAL, EOPNOTSUPP
 *		an argument is wrong, or not known to the module
 *	EFAULT	a pointer is bad, or counters lie where they cannot be locked
 *	ENOMEM	the kernel has no memory
 *	ENODEV	the session has ended by itself
 *
 * A call that fails changes nothing (but see profil_session_remove()). Wherever a struct
 * profil_stats is to be filled in, @size must be set to sizeof(struct profil_stats) and its other
 * inputs be 0; it may be one that was filled in by an earlier call. NULL will do where @stats is
 * not wanted.
 *
 * All functions below are thread-safe and async-signal-safe. None is a cancellation point but
 * profil_session_read().
 */

/**
 * profil_session_open - Make a session
 * @options: As of PROFIL_IOC_OPEN, with @size set; or NULL for user and system ticks, without
 *	records, forks and execs not followed.
 *
 * The session has no targets and no ranges, and is stopped.
 *
 * Return: its descriptor (O_CLOEXEC), or -1 with errno set: ENOSYS if the module is not loaded,
 * or too old for sessions; EACCES without the right to open /dev/profil, or if a seccomp filter
 * forbids its ioctls; EPERM if RLIMIT_MEMLOCK does not allow for the records; EMFILE or ENFILE if
 * no descriptor is free.
 */
int profil_session_open(const struct profil_open *options) __PROFIL_NOTHROW;

/**
 * profil_session_attach - Sample a process or thread
 * @fd: The session.
 * @scope: PROFIL_SCOPE_PROCESS or PROFIL_SCOPE_THREAD.
 * @pid: Id of the process or thread; 0 for the calling one.
 * @space: Out: its address space, for profil_session_add(). May be NULL.
 *
 * Return: 0, or -1 with errno set: ESRCH if there is none; EBUSY if it is attached already;
 * EPERM if it is another's and the caller has neither CAP_PERFMON nor CAP_SYS_PTRACE over it.
 */
int profil_session_attach(int fd, unsigned int scope, pid_t pid, __u64 *space) __PROFIL_NOTHROW;

/**
 * profil_session_attach_pidfd - Sample the process or thread that a pidfd stands for
 * @fd: The session.
 * @scope: PROFIL_SCOPE_PROCESS or PROFIL_SCOPE_THREAD.
 * @pidfd: As made by pidfd_open(2) or clone(2).
 * @space: Out: its address space, for profil_session_add(). May be NULL.
 *
 * As profil_session_attach(), but cannot mistake another process for the one that is meant
 * because that has exited and its id was given away. If the process is there before and after
 * it has been attached, it was that one. Wants /proc to be that of the caller's pid namespace.
 *
 * Return: 0, or -1 with errno set as by profil_session_attach(), and
 *
 *	EBADF	@pidfd is not a pidfd
 *	ENOENT	/proc is not mounted
 *	ESRCH	the process is gone, or has another id in /proc than for the caller
 *	ESTALE	the process went away while it was attached. This is the one failure that may
 *		have an effect: if its id was given to another process in this very moment,
 *		that one is attached. Close the session if it must not be
 *	EMFILE, ENFILE
 *		no descriptors are free for the duration of the call
 */
int profil_session_attach_pidfd(int fd, unsigned int scope, int pidfd,
				__u64 *space) __PROFIL_NOTHROW;

/**
 * profil_session_add - Count the ticks in ranges of text
 * @fd: The session.
 * @space: The address space whose text it is: as told by profil_session_attach() or a record,
 *	or PROFIL_SPACE_SELF.
 * @ranges: Array of ranges, whose buffers are memory of the caller.
 * @nr_ranges: Number of these, at least 1.
 *
 * At any time, whether the session is started or not. All ranges are added, or none.
 *
 * Return: 0, or -1 with errno set: ESRCH if nothing is attached, any more, that runs in @space;
 * EINVAL if a range is wrong, overlaps another, or is one too many; EPERM if RLIMIT_MEMLOCK does
 * not allow to lock the buffers, or the caller is not the session's creator.
 */
int profil_session_add(int fd, __u64 space, const struct profil_range *ranges,
		       unsigned int nr_ranges) __PROFIL_NOTHROW;

/**
 * profil_session_remove - Count the ticks in ranges of text no longer
 * @fd: The session.
 * @space: The address space whose text it is, PROFIL_SPACE_SELF or PROFIL_SPACE_ALL.
 * @start: Ranges that lie in [@start, @end) are removed.
 * @end: See @start; above it.
 *
 * When the call returns, no counter of theirs changes any more. That there was no such range
 * is no error.
 *
 * Return: 0, or -1 with errno set: ESRCH if nothing is attached that runs in @space; EPERM if
 * the caller is not the session's creator; ENOMEM: with PROFIL_SPACE_ALL, some address spaces may
 * have lost their ranges already; another call removes the rest.
 */
int profil_session_remove(int fd, __u64 space, __u64 start, __u64 end) __PROFIL_NOTHROW;

/**
 * profil_session_enable - Let a session count, from now on
 * @fd: The session.
 *
 * Return: 0, or -1 with errno set: EBUSY if it does already, or if the tick cannot be hooked.
 */
int profil_session_enable(int fd) __PROFIL_NOTHROW;

/**
 * profil_session_disable - Let a session count no longer
 * @fd: The session.
 * @stats: Statistics of all the time that it was started; or NULL.
 *
 * When the call returns, no counter changes any more. The session can be started again.
 *
 * Return: 0, or -1 with errno set: EINVAL if it was not started.
 */
int profil_session_disable(int fd, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_stats - What became of the ticks of a session
 * @fd: The session.
 * @stats: Statistics up to now.
 *
 * Return: 0, or -1 with errno set.
 */
int profil_session_stats(int fd, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_snapshot - Counters and statistics as they are at one moment
 * @fd: The session.
 * @flags: 0, or PROFIL_SNAPSHOT_RESET: let all that is copied begin anew at 0.
 * @copies: Array of which counters to copy, and where to.
 * @nr_copies: Number of these; may be 0.
 * @stats: Statistics of this moment; or NULL.
 *
 * Return: 0, or -1 with errno set: EFAULT if what is to be copied cannot be read, or cannot be
 * written where it should go; EPERM if the caller is not the session's creator.
 */
int profil_session_snapshot(int fd, unsigned int flags, const struct profil_copy *copies,
			    unsigned int nr_copies, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_read - Read the records of a session
 * @fd: The session.
 * @buf: Where to, aligned to 8 bytes.
 * @size: Bytes in @buf. 8 KiB hold at least one record.
 *
 * As read(2), but goes on after a signal. Whoever wants to be interrupted, or to wait for
 * other things too, uses poll(2) and read(2). A cancellation point.
 *
 * Return: bytes read, a multiple of 8; 0 if there are no more records, and will be none; or -1
 * with errno set: EAGAIN if there is none now and O_NONBLOCK is set; EINVAL if the first does not
 * fit; EFAULT.
 */
ssize_t profil_session_read(int fd, void *buf, size_t size);

/**
 * profil_record_first - The first record in a buffer
 * @buf: What profil_session_read() filled in, or read() from a file where it was kept.
 * @len: Bytes in @buf. Negative is as 0: the result of a read need not be looked at first.
 *
 * A record that is cut off, or is none, ends the records: what is returned lies in the buffer
 * with its path, and its strings are terminated.
 *
 * Return: the record, or NULL.
 */
const struct profil_record *profil_record_first(const void *buf, ssize_t len) __PROFIL_NOTHROW;

/**
 * profil_record_next - The record after another
 * @buf: As of profil_record_first().
 * @len: As of profil_record_first().
 * @record: A record in @buf.
 *
 *	len = profil_session_read(fd, buf, sizeof(buf));
 *	for (r = profil_record_first(buf, len); r; r = profil_record_next(buf, len, r))
 *		...
 *
 * Return: the record, or NULL.
 */
const struct profil_record *profil_record_next(const void *buf, ssize_t len,
					       const struct profil_record *record) __PROFIL_NOTHROW;

/**
 * profil_range_counters - How many counters a range has need of
 * @start: First address of the text.
 * @end: First address past it; above @start.
 * @shift: One counter for each 2^@shift bytes.
 *
 * Return: their number.
 */
__u64 profil_range_counters(__u64 start, __u64 end, unsigned int shift) __PROFIL_NOTHROW;

/**
 * profil_range_of - A range with one counter for each 2^@shift bytes of text
 * @start: First address of the text, which the first counter begins with.
 * @end: First address past it; above @start.
 * @shift: From 0, a counter for every byte, to 28.
 * @counters: Array of counters, aligned to @width.
 * @nr_counters: Number of these; text beyond them is outside.
 * @width: Bytes of a counter: 2, 4 or 8.
 *
 * Return: the range, for profil_session_add() or PROFIL_IOC_START, whose business it is to find
 * what is wrong with it.
 */
struct profil_range profil_range_of(__u64 start, __u64 end, unsigned int shift,
				    const volatile void *counters, __u64 nr_counters,
				    unsigned int width) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#endif /* _LIBPROFIL_H */
