/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The declarations of the Nintendo 64's <ultra64.h> that a program needs to profile itself
 */
#ifndef _PROFIL_ULTRA64_H
#define _PROFIL_ULTRA64_H

#include <stddef.h>

#include "../../n64.h"

typedef signed char s8;
typedef short s16;
typedef int s32;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

typedef volatile signed char vs8;
typedef volatile short vs16;
typedef volatile int vs32;
typedef volatile unsigned char vu8;
typedef volatile unsigned short vu16;
typedef volatile unsigned int vu32;

__extension__ typedef __INT64_TYPE__ s64;
__extension__ typedef __UINT64_TYPE__ u64;

typedef float f32;
typedef double f64;

#ifndef TRUE
#define TRUE	1
#endif
#ifndef FALSE
#define FALSE	0
#endif

#endif /* _PROFIL_ULTRA64_H */
