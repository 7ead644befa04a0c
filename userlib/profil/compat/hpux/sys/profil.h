/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What HP-UX programs include for sprofil(). */
#include <profil/hpux.h>
