/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() as BSD and Darwin have it, and add_profil() of NeXT and Darwin
 *
 * Maps the name profil to a symbol of its own, profil_bsd: sources that call, or declare,
 * profil() are compiled unchanged with -include profil/bsd.h.
 */
#ifndef _PROFIL_BSD_H
#define _PROFIL_BSD_H

#include <stddef.h>
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
 * profil_bsd - Profile the calling process from now on, or no longer
 * @samples: 16-bit counters, aligned to two, which counting adds to.
 * @size: Bytes in @samples. Below 2, profiling is on and counts nothing.
 * @offset: The text address that the first counter stands for.
 * @scale: From 1 to 65536, counters per two bytes of text as a fraction of 65536. 0 turns
 *	profiling off.
 *
 * Each tick of the scheduler at an address pc >= @offset adds one to the 16 bits at byte
 *
 *	((pc - offset) * scale >> 16) & ~1
 *
 * of @samples, if that counter lies within @size bytes. Nothing overflows; a full counter stays.
 * A call while profiling is on replaces it, and all that add_profil() has added.
 *
 * Return: 0, or -1 with errno set:
 *
 *	EINVAL	@scale is above 65536; profiling is as it was
 *	EFAULT	@samples is not mapped and writable for @size bytes, or is misaligned, or memory
 *		that cannot be locked; profiling is off
 *
 * and as by profil(3), with profiling as it was. Thread-safe and async-signal-safe.
 */
int profil_bsd(char *samples, size_t size, unsigned long offset,
	       unsigned int scale) __PROFIL_NOTHROW;

/**
 * add_profil - Count in one more region of text
 * @samples: As of profil_bsd(), as are the others.
 * @size: Bytes in @samples.
 * @offset: Where the region begins.
 * @scale: See profil_bsd(); with 0 there is nothing to add.
 *
 * A tick is counted in one region: that of profil_bsd() if it has a counter for the pc, else the
 * one that was added last of those that have. The tick goes on without a break. If the profile that
 * is on is not one of profil_bsd(), or if none is, nothing happens.
 *
 * Return: 0, or -1 with errno set as by profil_bsd(), or ENOMEM if there are more regions than half
 * of profil_query.max_ranges (512). Whatever the error, profiling is as it was. Thread-safe and
 * async-signal-safe.
 */
int add_profil(char *samples, size_t size, unsigned long offset,
	       unsigned int scale) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#undef profil
#define profil profil_bsd

#endif /* _PROFIL_BSD_H */
