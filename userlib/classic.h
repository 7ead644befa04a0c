/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROFIL_CLASSIC_H
#define PROFIL_CLASSIC_H

#include <stdint.h>

#include <linux/profil.h>

int profil_classic_start(const struct profil_range *ranges, unsigned int nr_ranges,
			 uint32_t flags, uint64_t period);
int profil_classic_stop(void);
int profil_status(int err);

#endif /* PROFIL_CLASSIC_H */
