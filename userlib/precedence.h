/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROFIL_PRECEDENCE_H
#define PROFIL_PRECEDENCE_H

#include <stddef.h>

#include <linux/profil.h>

size_t profil_precedence(const struct profil_range *regions, size_t nr_regions,
			 struct profil_range *ranges);

#endif /* PROFIL_PRECEDENCE_H */
