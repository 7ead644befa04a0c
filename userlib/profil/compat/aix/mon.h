/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* AIX declares profil() in a header of this name. */
#include <profil/aix.h>
