/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBPROFIL_CLASSIC_H
#define LIBPROFIL_CLASSIC_H

#include <stdint.h>

#include <linux/profil.h>

#define PROFIL_MODES_ALL (PROFIL_MODE_USER | PROFIL_MODE_SYSTEM)

/* The call that turned the session on; OWNER_OTHER for all calls that need not be told apart. */
enum libprofil_owner {
	OWNER_OTHER,
	OWNER_BSD,
	OWNER_AIX_FIRST,	/* the first form of AIX's profil() */
	OWNER_AIX_SECOND,
	OWNER_N64,
	OWNER_ILLUMOS,
	OWNER_NONE,		/* the session is off */
};

int libprofil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			    uint32_t flags, uint64_t period);
int libprofil_classic_stop(void);
int libprofil_classic_ioctl(unsigned long cmd, void *arg);
int libprofil_result(int err);

uint64_t libprofil_classic_lock(void);
void libprofil_classic_unlock(uint64_t blocked);

int libprofil_classic_inspect(struct profil_stats *stats);
int libprofil_classic_owner(void);
int libprofil_classic_max_regions(void);
int libprofil_classic_start_locked(enum libprofil_owner new_owner,
				   const struct profil_range *ranges, unsigned int nr_ranges,
				   uint32_t flags, uint32_t modes, uint64_t period);
int libprofil_classic_stop_locked(struct profil_stats *stats);

#endif /* LIBPROFIL_CLASSIC_H */
