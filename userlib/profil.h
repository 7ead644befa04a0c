/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil - execution time profile
 *
 * Link with -lprofil, or preload libprofil.so.1 under a program that was linked
 * against libc's profil(). Both need the profil kernel module.
 */
#ifndef _PROFIL_H
#define _PROFIL_H

#include <stddef.h>

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
 * A call while profiling is on replaces buffer and scale in one step. Profiling ends with
 * exec and exit, and when the buffer is unmapped, moved or made read-only. The child of a
 * fork is not profiled. The pages of the buffer are locked meanwhile and charged to
 * RLIMIT_MEMLOCK.
 *
 * No signal or timer is used, no descriptor stays open. Async-signal-safe, thread-safe,
 * and not a cancellation point.
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
 *	EACCES	no right to open /dev/profil
 *	EBUSY	the tick cannot be hooked (sysctl kernel.ftrace_enabled is 0)
 *	EMFILE, ENFILE
 *		no descriptor is free for the duration of the call
 */
int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#endif /* _PROFIL_H */
