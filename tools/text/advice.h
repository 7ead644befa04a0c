/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How to get names for code without symbols
 */
#ifndef PROFIL_TOOLS_ADVICE_H
#define PROFIL_TOOLS_ADVICE_H

#include "profile/rows.h"

/*
 * Prints notes about the binaries in which code has no symbol: one for all that need the same. With
 * @ask, asks dpkg and apt which packages have their debug files.
 */
void advice_print(FILE *out, const struct rows *rows, bool ask);

#endif /* PROFIL_TOOLS_ADVICE_H */
