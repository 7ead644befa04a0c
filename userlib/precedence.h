/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBPROFIL_PRECEDENCE_H
#define LIBPROFIL_PRECEDENCE_H

#include <stddef.h>

#include <linux/profil.h>

size_t libprofil_resolve_overlaps(const struct profil_range *regions, size_t nr_regions,
				  struct profil_range *ranges);

#endif /* LIBPROFIL_PRECEDENCE_H */
