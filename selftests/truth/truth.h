/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _TRUTH_H
#define _TRUTH_H

#include "../lib/loop.h"
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

/* Returns the place of @pc, or NR_PLACES. */
static inline unsigned int place_of(u64 pc)
{
	u64 i = (pc - addr(places)) / PLACE_SIZE;

	return i < NR_PLACES ? i : NR_PLACES;
}

enum profiler { TICK, CLOCK, GLIBC, GPERFTOOLS, PERF_USER, PERF_ROOT, NR_PROFILERS };

/* The samples that a row needs */
#define WANT_USER	1U	/* only user code, if the profiler can choose */
#define WANT_CHILDREN	2U	/* also child processes */
#define WANT_ALL	4U	/* all samples; places, if the profiler can do both */
#define WANT_RECORDS	8U	/* TICK and CLOCK: places from records, weighted by their periods */

struct profile {
	enum profiler profiler;
	unsigned int want;
	u64 clock_period;	/* for CLOCK */

	u64 period;		/* CPU time for each sample, in ns */
	u64 samples;		/* number of all samples */
	u64 children;		/* samples of child processes */
	u64 own;		/* TICK and CLOCK: ticks of this process */
	u64 places[NR_PLACES];
	u64 periods;		/* of all records */
	struct profil_stats stats;	/* TICK and CLOCK */
	u64 tick_ns;
};

/* Both functions end the program if they fail. */
void profile_start(struct profile *profile);
void profile_stop(struct profile *profile);

void die(const char *what) __attribute__((noreturn));

#endif /* _TRUTH_H */
