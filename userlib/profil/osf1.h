/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() as Digital UNIX has it, and System V and Version 7 of Unix
 *
 * Maps the names profil and getsysinfo to symbols of its own, profil_osf1 and getsysinfo_osf1:
 * sources that call, or declare, these are compiled unchanged with -include profil/osf1.h.
 */
#ifndef _PROFIL_OSF1_H
#define _PROFIL_OSF1_H

#include <unistd.h>	/* declares libc's, and must not do so later */

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
 * profil_osf1 - Profile the calling process from now on, or no longer
 * @short_buffer: Counters, which counting adds to.
 * @buffer_size: Bytes in @short_buffer. Below 2, profiling is on and counts nothing.
 * @offset: The text address that the first counter stands for.
 * @scale: Bytes of counters per byte of text, with 16 bits of fraction: 0x10000 is one counter
 *	for two bytes. 2 counts every pc from @offset on in the first counter. 0 and 1 turn
 *	profiling off.
 *
 * Each tick at an address pc >= @offset adds one to the counter that holds byte
 *
 *	(pc - offset) * scale >> 16
 *
 * of @short_buffer, if the whole counter lies within @buffer_size bytes. Nothing overflows; a full
 * counter stays. The clock ticks every millisecond of CPU time if the kernel allows, else as the
 * scheduler does: getsysinfo(GSI_CLK_TCK) tells. A call while profiling is on replaces it.
 *
 * That the call fails is told by errno alone, which else is left as it is: EFAULT if @short_buffer
 * is not mapped and writable, is misaligned, or memory that cannot be locked; others as by
 * profil(3). Profiling is off then. Thread-safe and async-signal-safe.
 */
void profil_osf1(unsigned short *short_buffer, unsigned int buffer_size, void *offset,
		 unsigned int scale) __PROFIL_NOTHROW;

#define GSI_CLK_TCK	42

/**
 * getsysinfo_osf1 - How often profil_osf1() looks where the program is
 * @op: GSI_CLK_TCK; nothing else is known here.
 * @buffer: Out: an int, ticks per second.
 * @nbytes: Bytes in @buffer.
 *
 * More arguments are not looked at.
 *
 * Return: 1; or -1 with errno set: EINVAL if @op is another, or @nbytes too small for an int;
 * EFAULT if @buffer is bad; ENOSYS, EACCES, EMFILE, ENFILE as by profil(3). Thread-safe and
 * async-signal-safe.
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
