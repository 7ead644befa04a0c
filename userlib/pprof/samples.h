/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of a profile: records of the kernel, added up
 */
#ifndef LIBPROFIL_PPROF_SAMPLES_H
#define LIBPROFIL_PPROF_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/profil.h>

#include "maps.h"
#include "message.h"

/* The maximum number of return addresses in a record, a profil_open.stack_depth */
#define SAMPLES_DEPTH_MAX	127

/**
 * struct samples - The samples of a profile
 * @ticks: Their number.
 * @lost: Number of ticks that are missing, because there was not enough memory.
 * @stacks: Those of @ticks that can have a call stack: not in exec or exit.
 * @complete: Those whose stack begins with the outermost function, and was found by unwind tables.
 * @maps: The mappings of the process.
 * @maps_changed: They were read again since the caller has set this to false.
 *
 * @last: The item that was made last, for samples_name(); NULL if there is none.
 *
 * The other members are only for samples.c.
 */
struct samples {
	uint64_t ticks;
	uint64_t lost;
	uint64_t stacks;
	uint64_t complete;
	struct maps maps;
	bool maps_changed;
	struct item *last;

	void *items;
	struct item *first;
	uint64_t nr[4];
	uint64_t next_read;	/* of the mappings: not before this time, of CLOCK_MONOTONIC */
};

/* Adds the sample of a record. */
void samples_add(struct samples *samples, const struct profil_record *record);

/*
 * Looks up the names of functions up to item @last, as long as their libraries are loaded. Only
 * exported functions have names. Other threads can add samples at the same time: the dynamic linker
 * calls constructors with a lock that this function takes, so the caller must not hold a lock for
 * which a constructor may wait.
 */
void samples_name(const struct samples *samples, struct item *last);

/* Writes all samples. A period has @period ns. */
void samples_write(const struct samples *samples, uint64_t period, struct message *message);

void samples_free(struct samples *samples);

#endif /* LIBPROFIL_PPROF_SAMPLES_H */
