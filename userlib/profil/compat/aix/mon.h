/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The name under which AIX has it. */
#include <profil/aix.h>
