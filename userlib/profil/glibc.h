/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profil() and sprofil() of the GNU C library
 *
 * Both under their plain names, with the declarations of <profil.h> and of glibc's own
 * <sys/profil.h>, so that a program may be linked with -lprofil, or have libprofil.so.1
 * preloaded, and need not be compiled anew. See profil(3) and sprofil(3).
 */
#ifndef _PROFIL_GLIBC_H
#define _PROFIL_GLIBC_H

#include <profil.h>
#include <sys/profil.h>

#endif /* _PROFIL_GLIBC_H */
