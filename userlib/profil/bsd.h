/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() of BSD and Darwin, and add_profil() of NeXT and Darwin: see profil_bsd(3)
 *
 * This header maps the name profil to the symbol profil_bsd, so that a source that calls or
 * declares profil() can be compiled without changes with -include profil/bsd.h.
 */
#ifndef _PROFIL_BSD_H
#define _PROFIL_BSD_H

#include <stddef.h>
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
 * profil_bsd - Start, replace or stop profiling the calling process
 * @samples: Array of 16-bit counters, aligned to two. Counting adds to their values.
 * @size: Size of @samples in bytes. Below 2, profiling is on and counts nothing.
 * @offset: The text address of the first counter.
 * @scale: From 1 to 65536: counters per two bytes of text, as a fraction of 65536. 0 turns
 *	profiling off.
 *
 * Each tick of the scheduler at an address pc >= @offset adds one to the 16 bits at byte
 *
 *	((pc - offset) * scale >> 16) & ~1
 *
 * of @samples, if that counter is within @size bytes. The computation does not overflow. A counter
 * at its maximum stays there. A call while profiling is on replaces it, and removes everything that
 * add_profil() has added.
 *
 * Return: 0, or -1 with errno set:
 *
 *	EINVAL	@scale is above 65536; the profile does not change
 *	EFAULT	@samples is not mapped and writable for @size bytes, is misaligned, or is memory
 *		that cannot be locked; profiling is off
 *
 * and the errors of profil(3), after which the profile does not change. Thread-safe and
 * async-signal-safe.
 */
int profil_bsd(char *samples, size_t size, unsigned long offset,
	       unsigned int scale) __PROFIL_NOTHROW;

/**
 * add_profil - Add an area of text to the profile
 * @samples: Array of counters, see profil_bsd().
 * @size: Size of @samples in bytes.
 * @offset: The address at which the area begins.
 * @scale: See profil_bsd(); with 0 the call has no effect.
 *
 * A tick is counted once: in the area of profil_bsd() if that area has a counter for the pc;
 * otherwise in the last added area that has a counter for it. Counting is not interrupted. If
 * profiling is off, or the profile is not one of profil_bsd(), the call has no effect.
 *
 * Return: 0, or -1 with errno set to an error of profil_bsd(), or ENOMEM if there are more areas
 * than half of profil_query.max_ranges (512). A call that fails does not change the profile.
 * Thread-safe and async-signal-safe.
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
