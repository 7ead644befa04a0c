/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() of Digital UNIX, System V and Version 7 of Unix: see profil_osf1(3)
 *
 * This header maps the names profil and getsysinfo to the symbols profil_osf1 and getsysinfo_osf1,
 * so that a source that calls or declares these functions can be compiled without changes with
 * -include profil/osf1.h.
 */
#ifndef _PROFIL_OSF1_H
#define _PROFIL_OSF1_H

#include <unistd.h>	/* declares libc's profil(): must come before the macro */

#ifndef __cplusplus
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
 * profil_osf1 - Start, replace or stop profiling the calling process
 * @short_buffer: Array of counters. Counting adds to their values.
 * @buffer_size: Size of @short_buffer in bytes. Below 2, profiling is on and counts nothing.
 * @offset: The text address of the first counter.
 * @scale: Bytes of counters per byte of text, with 16 bits of fraction: 0x10000 is one counter for
 *	two bytes. With 2, every pc from @offset on counts in the first counter. 0 and 1 turn
 *	profiling off.
 *
 * Each tick at an address pc >= @offset adds one to the counter that contains byte
 *
 *	(pc - offset) * scale >> 16
 *
 * of @short_buffer, if the whole counter is within @buffer_size bytes. The computation does not
 * overflow. A counter at its maximum stays there. There is a tick every millisecond of CPU time if
 * the kernel allows this; otherwise it is the tick of the scheduler. getsysinfo(GSI_CLK_TCK)
 * returns the rate. A call while profiling is on replaces it.
 *
 * A failure is reported only in errno, which does not change otherwise: EFAULT if @short_buffer is
 * not mapped and writable, is misaligned, or is memory that cannot be locked; or another error of
 * profil(3). After a failure profiling is off, with the exceptions in profil_osf1(3). Thread-safe
 * and async-signal-safe.
 */
void profil_osf1(unsigned short *short_buffer, unsigned int buffer_size, void *offset,
		 unsigned int scale) __PROFIL_NOTHROW;

#define GSI_CLK_TCK	42

/**
 * getsysinfo_osf1 - Get the rate of the ticks of profil_osf1()
 * @op: GSI_CLK_TCK; no other operation is supported.
 * @buffer: Out: an int, ticks per second.
 * @nbytes: Size of @buffer in bytes.
 *
 * More arguments are ignored.
 *
 * Return: 1; or -1 with errno set: EINVAL if @op is not GSI_CLK_TCK, or if @nbytes is too small for
 * an int; EFAULT if @buffer cannot be written; or ENOSYS, EACCES, EMFILE or ENFILE, see profil(3).
 * Thread-safe and async-signal-safe.
 */
int getsysinfo_osf1(unsigned long op, void *buffer, unsigned long nbytes, ...) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#undef profil
#define profil profil_osf1
#undef getsysinfo
#define getsysinfo getsysinfo_osf1

#endif /* _PROFIL_OSF1_H */
