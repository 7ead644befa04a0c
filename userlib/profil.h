/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil - execution time profile
 *
 *	profil()		profiles the calling process into an array, with the
 *				prototype that Unix has always had
 *	profil_session_*()	sessions with a descriptor: they sample any processes that the
 *				caller is allowed to sample, in any text; a program can have
 *				several, and can enable and disable them at any time
 *	profil_range_*(), profil_record_*()
 *				helpers for the ranges that a session takes, and for the records
 *				that it returns
 *
 * <linux/profil.h> defines the structures and their semantics. This header does not repeat them.
 *
 * Link with -lprofil. If a program was linked against the profil() of the C library, preload
 * libprofil.so.1 instead. Both need the profil kernel module.
 */
#ifndef _LIBPROFIL_H
#define _LIBPROFIL_H

#include <stddef.h>
#include <sys/types.h>

#include <linux/profil.h>

/* glibc's <unistd.h> declares profil(), too. C++ requires that both declarations agree. */
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
 * profil - Start, replace or stop profiling the calling process
 * @buf: Array of counters. Counting adds to their values. NULL turns profiling off. (glibc's
 *	<unistd.h> declares @buf nonnull, so that compilers warn about NULL. @scale 0 turns
 *	profiling off with any @buf.)
 * @bufsiz: Size of @buf in bytes. Below 2, profiling is on and counts nothing.
 * @offset: The text address of the first counter.
 * @scale: Counters per two bytes of text, as a fraction of 65536: with 65536 each counter stands
 *	for two bytes, with 32768 for four. Any value is valid; 0 turns profiling off.
 *
 * At every tick of the scheduler (once in every 1/CONFIG_HZ seconds of CPU time) that finds a
 * thread of the process running at an address pc >= @offset, the kernel adds one to
 *
 *	buf[(pc - offset) / 2 * scale / 65536]
 *
 * if this counter is within @bufsiz bytes. Divisions round down, and the computation does not
 * overflow. A tick that interrupts the kernel counts at the instruction that entered the kernel.
 * All threads count into the same buffer, and no count is lost. A counter at its maximum, 65535,
 * stays there.
 *
 * A call while profiling is on replaces buffer and scale in one step. It cannot replace a profile
 * of pcsample(), and pcsample() cannot replace a profile of this function. Profiling ends with exec
 * and exit. While profiling is on, the pages of the buffer are locked and charged to
 * RLIMIT_MEMLOCK. If the buffer is unmapped, moved or made read-only, profiling continues in these
 * pages: the program does not see the counts in memory that it has unmapped, and nothing is counted
 * in memory that is mapped there later.
 *
 * The child of a fork is profiled, too, from the fork on, into its own copy of the buffer. If the
 * buffer is shared memory, parent and child count into the same buffer. If RLIMIT_MEMLOCK of the
 * child is too low, the child is not profiled, and profil_classic_stats() reports this.
 *
 * The library uses no signal or timer. While profiling is on, it keeps a descriptor of /dev/profil,
 * so that profiling can be turned off when no descriptor is free, and after chroot(). The
 * descriptor has a number of at least 100 if possible, and exec closes it. If the program closes
 * it, only these two guarantees are lost. Thread-safe, async-signal-safe, and not a cancellation
 * point.
 *
 * Differences from glibc: the tick is the kernel's own, not 10 ms of ITIMER_PROF, so that the
 * program can use this timer; scale 0 turns profiling off and does not count everything in buf[0];
 * counters do not wrap; and the call can fail.
 *
 * Return: 0, or -1 with errno set; then the profile does not change:
 *
 *	EFAULT	@buf is not mapped and writable for @bufsiz bytes, is not aligned to two, or is
 *		memory that cannot be locked (device memory, or a shared mapping of a file with
 *		writeback)
 *	ENOMEM	RLIMIT_MEMLOCK is too low to lock @buf, or the kernel does not have enough memory
 *	ENOSYS	the module is not loaded: there is no /dev/profil. Calls that turn profiling off
 *		fail with this error, too
 *	EACCES	the caller has no permission to open /dev/profil, or a seccomp filter forbids its
 *		ioctls
 *	EBUSY	a profile of pcsample() is on, or the tick cannot be hooked (the sysctl
 *		kernel.ftrace_enabled is 0)
 *	EMFILE, ENFILE
 *		no descriptor is free. While profiling is on, this happens only if the program
 *		has closed the descriptor that the library kept
 */
#ifndef profil			/* else a family's header, like <profil/bsd.h>, has defined it */
int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale) __PROFIL_NOTHROW;
#endif

/**
 * profil_classic_stats - Get the statistics of profil()
 * @stats: In: @size is sizeof(struct profil_stats), @scope is PROFIL_SCOPE_PROCESS, and the other
 *	inputs are 0. For the outputs see PROFIL_IOC_STATS.
 *
 * The statistics are no longer available after profiling is turned off. They are available after
 * the profile has ended by itself, which can happen in the child of a fork. Then they include the
 * reason: PROFIL_END_BUFFER if the child has no copy of the buffer, PROFIL_END_LIMIT if
 * RLIMIT_MEMLOCK is too low, or PROFIL_END_NOMEM if the kernel did not have enough memory.
 *
 * Return: 0, or -1 with errno set to an error of PROFIL_IOC_STATS, or to ENOSYS, EACCES, EMFILE or
 * ENFILE, see profil(). Thread-safe and async-signal-safe.
 */
int profil_classic_stats(struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_query_kernel - Get the features and limits of this kernel
 * @query: In: @size is sizeof(struct profil_query), @flags is 0. For the outputs see
 *	PROFIL_IOC_QUERY.
 *
 * Return: 0, or -1 with errno set to an error of PROFIL_IOC_QUERY, or to ENOSYS, EACCES, EMFILE or
 * ENFILE, see profil(). Thread-safe and async-signal-safe.
 */
int profil_query_kernel(struct profil_query *query) __PROFIL_NOTHROW;

/*
 * Sessions with a descriptor
 * --------------------------
 *
 * The descriptor behaves like other descriptors: close() of its last copy ends the session, poll()
 * waits for records, O_NONBLOCK can be set, and it can be sent over a socket. The library has no
 * other state of a session. All functions can be called by several threads at the same time, and by
 * every process that has a copy of the descriptor, within the limits that <linux/profil.h> states.
 *
 * The functions return 0, or -1 with errno set as described for the ioctl in <linux/profil.h>. But
 * profil_session_open() returns a descriptor. All functions can fail with
 *
 *	EBADF	@fd is not open
 *	ENOTTY	@fd is not the descriptor of a session
 *	EINVAL, EOPNOTSUPP
 *		an argument is wrong, or the module does not know it
 *	EFAULT	a pointer is invalid, or counters are in memory that cannot be locked
 *	ENOMEM	the kernel does not have enough memory
 *	ENODEV	the session has ended by itself
 *
 * A call that fails changes nothing, with the exceptions that profil_session_attach_pidfd(),
 * profil_session_remove() and PROFIL_IOC_SNAPSHOT describe. If a function fills in a struct
 * profil_stats, the caller sets @size to sizeof(struct profil_stats) and the other inputs to 0; a
 * structure that an earlier call has filled in can be used again. @stats can be NULL, except for
 * profil_session_stats().
 *
 * All functions below are thread-safe and async-signal-safe. Only profil_session_read() is a
 * cancellation point.
 */

/**
 * profil_session_open - Create a session
 * @options: See PROFIL_IOC_OPEN; @size must be set. NULL: the session counts user and system ticks,
 *	has no records, and does not follow forks and execs.
 *
 * The session has no targets and no ranges, and is disabled.
 *
 * Return: its descriptor (O_CLOEXEC), or -1 with errno set: ENOSYS if the module is not loaded or
 * is too old for sessions; EACCES if the caller has no permission to open /dev/profil, or if a
 * seccomp filter forbids its ioctls; EPERM if RLIMIT_MEMLOCK is too low for the records; EMFILE or
 * ENFILE if no descriptor is free.
 */
int profil_session_open(const struct profil_open *options) __PROFIL_NOTHROW;

/**
 * profil_session_attach - Attach a process or thread to a session
 * @fd: The session.
 * @scope: PROFIL_SCOPE_PROCESS or PROFIL_SCOPE_THREAD.
 * @pid: Id of the process or thread; 0 for the calling one.
 * @space: Out: the id of its address space, for profil_session_add(). Can be NULL.
 *
 * Return: 0, or -1 with errno set: ESRCH if there is no such process or thread; EBUSY if it is
 * attached already or a limit is reached; EPERM if it is in another process and
 * the caller has neither CAP_PERFMON nor CAP_SYS_PTRACE over it.
 */
int profil_session_attach(int fd, unsigned int scope, pid_t pid, __u64 *space) __PROFIL_NOTHROW;

/**
 * profil_session_attach_pidfd - Attach the process or thread of a pidfd to a session
 * @fd: The session.
 * @scope: PROFIL_SCOPE_PROCESS or PROFIL_SCOPE_THREAD.
 * @pidfd: A descriptor from pidfd_open(2) or clone(2).
 * @space: Out: the id of its address space, for profil_session_add(). Can be NULL.
 *
 * Like profil_session_attach(), but safe when the process exits and its id is used again for
 * another process: the function checks the id of the process before and after the attachment.
 * /proc must be that of the caller's pid namespace.
 *
 * Return: 0, or -1 with errno set to an error of profil_session_attach(), or to
 *
 *	EBADF	@pidfd is not a pidfd
 *	ENOENT	/proc is not mounted
 *	ESRCH	the process has exited, or its id in /proc differs from its id for the caller
 *	ESTALE	the process exited while it was being attached. This failure may have an effect:
 *		if another process got the id at this moment, that process is attached. To undo
 *		this, close the session
 *	EMFILE, ENFILE
 *		no descriptor is free; the function needs two while it runs
 */
int profil_session_attach_pidfd(int fd, unsigned int scope, int pidfd,
				__u64 *space) __PROFIL_NOTHROW;

/**
 * profil_session_add - Add ranges to a session
 * @fd: The session.
 * @space: The address space that contains the text: an id from profil_session_attach() or from a
 *	record, or PROFIL_SPACE_SELF.
 * @ranges: Array of ranges. Their buffers are in the memory of the caller.
 * @nr_ranges: Number of ranges, at least 1.
 *
 * The session can be enabled or disabled. The function adds all ranges or none.
 *
 * Return: 0, or -1 with errno set: ESRCH if the session has no target in @space, or no longer has
 * one; EINVAL if a range is wrong or overlaps another, or if there would be too many; EPERM if
 * RLIMIT_MEMLOCK is too low to lock the buffers, or if the caller is not the session's creator.
 */
int profil_session_add(int fd, __u64 space, const struct profil_range *ranges,
		       unsigned int nr_ranges) __PROFIL_NOTHROW;

/**
 * profil_session_remove - Remove ranges from a session
 * @fd: The session.
 * @space: The address space of the ranges to remove, or PROFIL_SPACE_SELF.
 * @start: The function removes the ranges that are within [@start, @end).
 * @end: See @start; must be above it.
 *
 * When the function returns, no counter of the removed ranges changes any more. It is not an error
 * if there was no such range.
 *
 * Return: 0, or -1 with errno set: ESRCH if the session has no target in @space; EPERM if the
 * caller is not the session's creator.
 */
int profil_session_remove(int fd, __u64 space, __u64 start, __u64 end) __PROFIL_NOTHROW;

/**
 * profil_session_enable - Start counting
 * @fd: The session.
 *
 * Return: 0, or -1 with errno set: EBUSY if the session is enabled already, or if the tick cannot
 * be hooked.
 */
int profil_session_enable(int fd) __PROFIL_NOTHROW;

/**
 * profil_session_disable - Stop counting
 * @fd: The session.
 * @stats: Statistics of all time in which the session was enabled; or NULL.
 *
 * When the function returns, no counter changes any more. The session can be enabled again.
 *
 * Return: 0, or -1 with errno set: EINVAL if the session is not enabled.
 */
int profil_session_disable(int fd, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_stats - Get the statistics of a session
 * @fd: The session.
 * @stats: The present statistics.
 *
 * Return: 0, or -1 with errno set.
 */
int profil_session_stats(int fd, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_snapshot - Copy counters and statistics as they are at one moment
 * @fd: The session.
 * @flags: 0, or PROFIL_SNAPSHOT_RESET to set the copied counters and the statistics to 0.
 * @copies: Array of copies: the addresses of the counters, and the destinations.
 * @nr_copies: Number of copies; can be 0.
 * @stats: Statistics of this moment; or NULL.
 *
 * Return: 0, or -1 with errno set: EFAULT if counters cannot be read, or if their destination
 * cannot be written; EPERM if the caller is not the session's creator.
 */
int profil_session_snapshot(int fd, unsigned int flags, const struct profil_copy *copies,
			    unsigned int nr_copies, struct profil_stats *stats) __PROFIL_NOTHROW;

/**
 * profil_session_unwind - Give a session an unwind table, or remove one
 * @fd: The session, which has a profil_open.stack_depth.
 * @table: See PROFIL_IOC_UNWIND; @size must be set.
 *
 * The session can be enabled or disabled. It uses the table of a file in each process that has
 * mapped the file, and that of code made at run time in one address space. Only the latter can be
 * replaced and removed.
 *
 * Return: 0, or -1 with errno set: EEXIST if the session has a table of the file; EPERM if the
 * tables of the user would need more memory than the administrator allows, or if the caller is not
 * the session's creator; ENOSPC if the session has as many tables as the kernel allows; EBADF if
 * the file is not open for reading; ENOENT if there is no table to remove.
 */
int profil_session_unwind(int fd, const struct profil_unwind *table) __PROFIL_NOTHROW;

/**
 * profil_session_read - Read the records of a session
 * @fd: The session.
 * @buf: Buffer for the records, aligned to 8 bytes.
 * @size: Size of @buf in bytes. 8 KiB are enough for at least one record.
 *
 * Like read(2), but continues after a signal. To be interrupted by signals, or to wait for other
 * events, too, use poll(2) and read(2). This function is a cancellation point.
 *
 * Return: the number of bytes, a multiple of 8; 0 if there is no record and no further record can
 * come; or -1 with errno set: EAGAIN if there is no record now and O_NONBLOCK is set; EINVAL if the
 * first record does not fit; EFAULT.
 */
ssize_t profil_session_read(int fd, void *buf, size_t size);

/**
 * profil_record_first - Get the first record in a buffer
 * @buf: Records from profil_session_read(), or from a file to which they were written.
 * @len: Number of bytes in @buf. A negative number is the same as 0, so that the result of
 *	profil_session_read() can be passed without a check.
 *
 * An incomplete or invalid record ends the sequence: a record that the function returns is
 * completely within the buffer, with its path, and its strings are terminated.
 *
 * Return: the record, or NULL.
 */
const struct profil_record *profil_record_first(const void *buf, ssize_t len) __PROFIL_NOTHROW;

/**
 * profil_record_next - Get the next record in a buffer
 * @buf: See profil_record_first().
 * @len: See profil_record_first().
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
 * profil_record_stack - Get the stack of a record
 * @record: A record from profil_record_first() or profil_record_next().
 *
 * Return: the stack, which is completely within the record; or NULL if the record has none.
 */
const struct profil_stack *
profil_record_stack(const struct profil_record *record) __PROFIL_NOTHROW;

/**
 * profil_range_counters - Get the number of counters that a range needs
 * @start: First address of the text.
 * @end: First address after the text; above @start.
 * @shift: One counter for each 2^@shift bytes.
 *
 * Return: the number of counters.
 */
__u64 profil_range_counters(__u64 start, __u64 end, unsigned int shift) __PROFIL_NOTHROW;

/**
 * profil_range_of - Make a range with one counter for each 2^@shift bytes of text
 * @start: First address of the text, and of the first counter.
 * @end: First address after the text; above @start.
 * @shift: From 0, one counter for each byte, to 28.
 * @counters: Array of counters, aligned to @width.
 * @nr_counters: Number of counters; text after them is outside.
 * @width: Size of a counter in bytes: 2, 4 or 8.
 *
 * The function does not check its arguments: profil_session_add() and PROFIL_IOC_START do.
 *
 * Return: the range, for profil_session_add() or PROFIL_IOC_START.
 */
struct profil_range profil_range_of(__u64 start, __u64 end, unsigned int shift,
				    const volatile void *counters, __u64 nr_counters,
				    unsigned int width) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#endif /* _LIBPROFIL_H */
