/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The accounting line
 *
 *	ticks 2179, expected 2251: hit 2046 outside 133 saturated 0 dropped 0, missed 40;
 *	user 2086 system 93
 */
#ifndef PROFIL_TOOLS_ACCOUNTING_H
#define PROFIL_TOOLS_ACCOUNTING_H

#include <stdio.h>

#include "recording/format.h"

/* Adds the statistics of a later period of the same session. */
void accounting_add(struct format_stats *sum, const struct format_stats *later);

/**
 * accounting_print - Print the accounting line, with its newline
 * @out: The stream.
 * @account: The last statistics of the recording.
 * @modes: format_meta.modes: PROFIL_MODE_* bits.
 */
void accounting_print(FILE *out, const struct format_account *account, u32 modes);

#endif /* PROFIL_TOOLS_ACCOUNTING_H */
