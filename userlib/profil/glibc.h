/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() and sprofil() of the GNU C library
 *
 * Both have their plain names, and the declarations of <profil.h> and of glibc's own
 * <sys/profil.h>. So a program can be linked with -lprofil, or libprofil.so.1 can be preloaded,
 * without compiling it again. See profil(3) and sprofil(3).
 */
#ifndef _PROFIL_GLIBC_H
#define _PROFIL_GLIBC_H

#if defined(_PROFIL_AIX_H) || defined(_PROFIL_HPUX_H)
#error "<profil/aix.h>, <profil/glibc.h> and <profil/hpux.h> each have a struct prof: include one"
#endif

#include <profil.h>

#ifdef __GLIBC__
#include <sys/profil.h>
#else

/* For a C library without <sys/profil.h>, such as musl: the contents of glibc's header. */
#define _PROFIL_H	1

#include <sys/time.h>

struct prof {
	void *pr_base;
	size_t pr_size;
	size_t pr_off;
	unsigned long pr_scale;
};

enum {
	PROF_USHORT = 0,
	PROF_UINT = 1 << 0,
	PROF_FAST = 1 << 1
};

#ifdef __cplusplus
extern "C" {
#endif

int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif /* __GLIBC__ */

#endif /* _PROFIL_GLIBC_H */
