/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sprofil() of HP-UX
 *
 * To be put before a source that was written for it (cc -include profil/hpux.h), or found as
 * <sys/profil.h> in profil/compat/hpux. Its struct prof and its flags are not glibc's. See
 * sprofil(3).
 *
 * The flags' values, and that of _SC_PROFIL_MAX, are ours: HP-UX's manual names them only.
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
	void *pr_base;			/* counters */
	unsigned int pr_size;		/* bytes of these */
	void *pr_offset;		/* text address that the first stands for */
	unsigned int pr_scale;		/* bytes of counters for a byte of text, times 65536 */
};

#define PROF_USHORT	0		/* counters of 16 bits, */
#define PROF_UINT	1		/* 32 bits, */
#define PROF_UINT64	2		/* 64 bits */

#define _SC_PROFIL_MAX	10000

#ifdef __cplusplus
extern "C" {
#endif

int sprofil_hpux(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

/* sysconf(3) that knows _SC_PROFIL_MAX, the most that profcnt can be. */
long sysconf_hpux(int name);

#ifdef __cplusplus
}
#endif

#define sprofil sprofil_hpux
#define sysconf sysconf_hpux

#endif /* _PROFIL_HPUX_H */
