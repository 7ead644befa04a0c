/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef _PROFIL_PCSAMPLE_H
#define _PROFIL_PCSAMPLE_H

#include "../../illumos.h"

#endif /* _PROFIL_PCSAMPLE_H */
