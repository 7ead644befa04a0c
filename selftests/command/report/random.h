/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers: the same seed gives the same ones
 */
#ifndef _SELFTESTS_REPORT_RANDOM_H
#define _SELFTESTS_REPORT_RANDOM_H

#include "util.h"

/* The seed. It is never 0. */
static u64 state;

/* Returns a number below @below; or 0 if that is 0. This is xorshift64*. */
static inline u64 any(u64 below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return below ? (state * 0x2545f4914f6cdd1dULL >> 16) % below : 0;
}

#endif
