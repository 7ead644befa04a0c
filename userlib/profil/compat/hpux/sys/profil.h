/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* HP-UX declares sprofil() in a header of this name. */
#include <profil/hpux.h>
