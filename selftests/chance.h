/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chance: the same seed gives the same decisions
 */
#ifndef _SELFTESTS_CHANCE_H
#define _SELFTESTS_CHANCE_H

#include "device.h"

#include <stdlib.h>

/* One who decides: a thread. */
struct actor {
	u64 random;
	unsigned int depth;
};

/* A number below @n. */
static inline u32 any(struct actor *a, u32 n)
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return (a->random >> 24) % n;
}

static inline bool one_in(struct actor *a, u32 n)
{
	return any(a, n) == 0;
}

/* One who does not decide the same. */
static inline struct actor another(struct actor *a, unsigned int depth)
{
	struct actor b = { .random = a->random * 0x9e3779b97f4a7c15ULL + 1, .depth = depth };

	any(a, 2);
	any(&b, 2);
	return b;
}

/* A setting from the environment. */
static inline u32 number_from(const char *name, u32 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoul(value, NULL, 10) : otherwise;
}

#endif /* _SELFTESTS_CHANCE_H */
