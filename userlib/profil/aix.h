/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() as AIX has it in <mon.h>
 *
 * Maps the name profil to a symbol of its own, profil_aix: sources that call, or declare, profil()
 * are compiled unchanged with -include profil/aix.h, or where profil/compat/aix is on the include
 * path, so that they find <mon.h>.
 */
#ifndef _PROFIL_AIX_H
#define _PROFIL_AIX_H

#include <unistd.h>	/* declares libc's, and must not do so later */

/* glibc's <sys/profil.h>, and HP-UX's, which has the same guard */
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
 * @p_low: Its first address.
 * @p_high: The first address past it; 0 in the structure that ends the array.
 * @p_buff: Its counters.
 * @p_bufsize: Bytes of these.
 * @p_scale: As the scale of the first form, but with 0 and 1 nothing is counted in the region; or
 *	-1: the largest scale, at most 0xffff, by which all of the region has counters.
 */
struct prof {
	char *p_low;
	char *p_high;
	HISTCOUNTER *p_buff;
	int p_bufsize;
	unsigned int p_scale;
};

/**
 * profil_aix - Profile the calling process from now on, or no longer
 * @buffer: First form: array of counters, which counting adds to. Second form: array of struct
 *	prof.
 * @size: First form: bytes in @buffer; 0 turns profiling off. Second form: -1.
 * @offset: First form: the text address that the first counter stands for.
 * @scale: First form: a fraction of which the low 16 bits count: 0xffff is about one counter for
 *	two bytes of text, 0x7fff for four. 2 counts every pc from @offset on in the first
 *	counter. 0 and 1 turn profiling off.
 *
 * Each tick of the scheduler at an address pc >= @offset adds one to the counter at byte
 *
 *	(pc - offset) * scale >> 16, rounded up to an even number
 *
 * of the buffer, if it lies there. Nothing overflows; a full counter stays.
 *
 * The second form does the same for each region with pc in [p_low, p_high), counted from p_low; of
 * regions that overlap the first has it. It turns profiling off if the first p_high is 0.
 *
 * A call has no effect, and is no error, if it is to turn profiling on and that is on, by whatever
 * call; or to turn it off, and it is off, or was not turned on by the same form.
 *
 * Return: 0, or -1 with errno set, and nothing has changed:
 *
 *	EFAULT	the buffer, the array of structures or a p_buff is not mapped and writable
 *		(readable), is misaligned, or memory that cannot be locked; RLIMIT_MEMLOCK does not
 *		allow to lock it; the buffers of the second form leave gaps between them; or there
 *		are more structures than half of profil_query.max_ranges (512)
 *	EINVAL	p_high does not rise from each structure to the next
 *
 * and ENOSYS, EACCES, EBUSY, EMFILE and ENFILE as by profil(3). Thread-safe and
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
