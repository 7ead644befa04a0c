/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notes in the heading of a report: why ticks have no symbol or no debug information, and why call
 * stacks are incomplete
 */
#ifndef PROFIL_TOOLS_NOTES_H
#define PROFIL_TOOLS_NOTES_H

#include "profile/rows.h"

/* @ask: Ask dpkg and apt which packages have debug files. */
void notes_print(FILE *out, const struct rows *rows, bool ask);

#endif /* PROFIL_TOOLS_NOTES_H */
