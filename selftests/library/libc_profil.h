/* SPDX-License-Identifier: GPL-2.0 */
/* The exit status of libc_profil */
#ifndef _SELFTESTS_LIBC_PROFIL_H
#define _SELFTESTS_LIBC_PROFIL_H

enum {
	LIBC_PROFIL_COUNTED = 0,	/* the module counted, without a timer */
	LIBC_PROFIL_FAILED = 10,	/* a call failed */
	LIBC_PROFIL_NO_DEVICE,
	LIBC_PROFIL_IS_LIBCS,		/* the C library counted, with SIGPROF */
	LIBC_PROFIL_IS_NEITHERS,
	LIBC_PROFIL_HAS_TIMER,		/* there are both a session and a timer */
	LIBC_PROFIL_NO_TICKS,
	LIBC_PROFIL_MISCOUNTED,
};

#endif /* _SELFTESTS_LIBC_PROFIL_H */
