/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRUTH_H
#define _TRUTH_H

#include "../lib/device.h"
#include "places.h"

#define MS		1000000ULL
#define NR_FIGURES	4

extern const char places[] __attribute__((visibility("hidden")));

static inline void place_run(unsigned int i, unsigned long iterations)
{
	((void (*)(unsigned long))(uintptr_t)(places + PLACE_SIZE * i))(iterations);
}

static inline ssize_t place_read(unsigned int i, int fd, void *buf, size_t n)
{
	return ((ssize_t (*)(int, void *, size_t))(uintptr_t)(places + PLACE_SIZE * i))(fd, buf, n);
}

/* NR_PLACES if @pc is in none. */
static inline unsigned int place_of(u64 pc)
{
	u64 i = (pc - addr(places)) / PLACE_SIZE;

	return i < NR_PLACES ? i : NR_PLACES;
}

enum profiler { TICK, CLOCK, GLIBC, GPERFTOOLS, PERF_USER, PERF_ROOT, NR_PROFILERS };

/* What a row asks of a profiler */
#define WANT_USER	1U	/* user code alone, if there is the choice */
#define WANT_CHILDREN	2U	/* and what forks */
#define WANT_ALL	4U	/* samples wherever they are; places, if there is the choice */

struct profile {
	enum profiler profiler;
	unsigned int want;
	u64 clock_period;	/* of CLOCK */

	u64 period;		/* ns of CPU time that a sample stands for */
	u64 samples;		/* all of them, wherever they are */
	u64 children;		/* of them */
	u64 own;		/* of TICK and CLOCK: ticks of this process, of all modes */
	u64 places[NR_PLACES];
	struct profil_stats stats;	/* of TICK and CLOCK */
	u64 tick_ns;
};

/* Both end the program if they fail. */
void profile_start(struct profile *profile);
void profile_stop(struct profile *profile);

void die(const char *what) __attribute__((noreturn));

#endif /* _TRUTH_H */
