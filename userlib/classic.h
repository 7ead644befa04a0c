/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROFIL_CLASSIC_H
#define PROFIL_CLASSIC_H

#include <stdint.h>

#include <linux/profil.h>

#define PROFIL_MODES_ALL (PROFIL_MODE_USER | PROFIL_MODE_SYSTEM)

/* Who turned the session on, of those for whom it matters. */
enum profil_owner {
	PROFIL_ANOTHER,
	PROFIL_BSD,
	PROFIL_AIX_FIRST,	/* form of the call */
	PROFIL_AIX_SECOND,
	PROFIL_N64,
	PROFIL_ILLUMOS,
	PROFIL_NOBODY,		/* it is off */
};

int profil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			 uint32_t flags, uint64_t period);
int profil_classic_stop(void);
int profil_classic_ioctl(unsigned long cmd, void *arg);
int profil_status(int err);

uint64_t profil_classic_lock(void);
void profil_classic_unlock(uint64_t blocked);

int profil_classic_look(struct profil_stats *stats);
int profil_classic_owner(void);
int profil_classic_max_regions(void);
int profil_classic_start_as(enum profil_owner who, const struct profil_range *ranges,
			    unsigned int nr_ranges, uint32_t flags, uint32_t modes,
			    uint64_t period);
int profil_classic_end(struct profil_stats *stats);

#endif /* PROFIL_CLASSIC_H */
