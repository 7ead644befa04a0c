/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() of AIX: see profil_aix(3)
 *
 * This header maps the name profil to the symbol profil_aix, so that a source that calls or
 * declares profil() can be compiled without changes: with -include profil/aix.h, or with
 * profil/compat/aix, which has this header as <mon.h>, in the include path.
 */
#ifndef _PROFIL_AIX_H
#define _PROFIL_AIX_H

#include <unistd.h>	/* declares libc's profil(): must come before the macro */

/* _PROFIL_H is the guard of glibc's <sys/profil.h>, and also of <profil/hpux.h>. */
#ifdef _PROFIL_H
#error "<profil/aix.h>, <profil/glibc.h> and <profil/hpux.h> each have a struct prof: include one"
#endif

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

typedef unsigned short HISTCOUNTER;

/**
 * struct prof - A region of text, for the second form of profil_aix()
 * @p_low: First address of the region.
 * @p_high: First address after the region; 0 in the structure that ends the array.
 * @p_buff: Array of counters.
 * @p_bufsize: Size of @p_buff in bytes.
 * @p_scale: Like the scale of the first form, except that with 0 or 1 nothing is counted in the
 *	region. -1: the largest scale, at most 0xffff, with which all of the region has counters.
 */
struct prof {
	char *p_low;
	char *p_high;
	HISTCOUNTER *p_buff;
	int p_bufsize;
	unsigned int p_scale;
};

/**
 * profil_aix - Start or stop profiling the calling process
 * @buffer: First form: array of counters. Counting adds to their values. Second form: array of
 *	struct prof.
 * @size: First form: size of @buffer in bytes; 0 turns profiling off. Second form: -1.
 * @offset: First form: the text address of the first counter.
 * @scale: First form: a fraction, of which the low 16 bits are used: 0xffff is about one counter
 *	for two bytes of text, 0x7fff is one for four. With 2, every pc from @offset on counts in
 *	the first counter. 0 and 1 turn profiling off.
 *
 * Each tick of the scheduler at an address pc >= @offset adds one to the counter at byte
 *
 *	(pc - offset) * scale >> 16, rounded up to an even number
 *
 * of the buffer, if that counter is within the buffer. The computation does not overflow. A counter
 * at its maximum stays there.
 *
 * The second form does the same for each region with pc in [p_low, p_high), relative to p_low.
 * Where regions overlap, the first one counts. If the first p_high is 0, the call turns profiling
 * off.
 *
 * A call to turn profiling on has no effect, and does not fail, if profiling is on already by any
 * call. A call to turn it off has no effect if profiling is off or was not turned on with the same
 * form.
 *
 * Return: 0, or -1 with errno set; then the profile does not change:
 *
 *	EFAULT	the buffer or a p_buff is not mapped and writable, is misaligned, or is memory
 *		that cannot be locked; RLIMIT_MEMLOCK is too low; the array of structures is not
 *		readable; the buffers of the second form leave gaps between them; or there are
 *		more structures than half of profil_query.max_ranges (512)
 *	EINVAL	p_high does not increase from each structure to the next
 *
 * and ENOSYS, EACCES, EBUSY, EMFILE and ENFILE, see profil(3). Thread-safe and
 * async-signal-safe.
 */
int profil_aix(void *buffer, unsigned int size, unsigned long offset,
	       unsigned int scale) __PROFIL_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#undef profil
#define profil profil_aix

#endif /* _PROFIL_AIX_H */
