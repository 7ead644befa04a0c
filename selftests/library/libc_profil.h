/* SPDX-License-Identifier: GPL-2.0 */
/* What libc_profil says by its exit status. */
#ifndef _SELFTESTS_LIBC_PROFIL_H
#define _SELFTESTS_LIBC_PROFIL_H

enum {
	LIBC_PROFIL_COUNTED = 0,	/* by the module, without a timer */
	LIBC_PROFIL_FAILED = 10,	/* a call did */
	LIBC_PROFIL_NO_DEVICE,
	LIBC_PROFIL_IS_LIBCS,		/* by SIGPROF */
	LIBC_PROFIL_IS_NEITHERS,
	LIBC_PROFIL_HAS_TIMER,		/* and a session */
	LIBC_PROFIL_NO_TICKS,
	LIBC_PROFIL_MISCOUNTED,
};

#endif /* _SELFTESTS_LIBC_PROFIL_H */
