/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sprofil() of HP-UX: see sprofil(3)
 *
 * A source for HP-UX can be compiled with -include profil/hpux.h, or with profil/compat/hpux, which
 * has this header as <sys/profil.h>, in the include path. struct prof and the flags differ from
 * glibc's.
 *
 * The manual of HP-UX does not give the values of the flags and of _SC_PROFIL_MAX. This header
 * defines values of its own.
 */
#ifndef _PROFIL_HPUX_H
#define _PROFIL_HPUX_H

#include <sys/time.h>
#include <unistd.h>

/* _PROFIL_H is the guard of glibc's <sys/profil.h>. */
#if defined(_PROFIL_AIX_H) || defined(_PROFIL_H)
#error "<profil/aix.h>, <profil/glibc.h> and <profil/hpux.h> each have a struct prof: include one"
#endif
#define _PROFIL_H	1

struct prof {
	void *pr_base;			/* array of counters */
	unsigned int pr_size;		/* its size in bytes */
	void *pr_offset;		/* text address of the first counter */
	unsigned int pr_scale;		/* bytes of counters per byte of text, times 65536 */
};

#define PROF_USHORT	0		/* 16-bit counters */
#define PROF_UINT	1		/* 32-bit counters */
#define PROF_UINT64	2		/* 64-bit counters */

#define _SC_PROFIL_MAX	10000

#ifdef __cplusplus
extern "C" {
#endif

int sprofil_hpux(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

/* sysconf(3) that also supports _SC_PROFIL_MAX, the maximum of profcnt. */
long sysconf_hpux(int name);

#ifdef __cplusplus
}
#endif

#define sprofil sprofil_hpux
#define sysconf sysconf_hpux

#endif /* _PROFIL_HPUX_H */
