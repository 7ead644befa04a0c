/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples of a profile: records of the kernel, added up
 */
#ifndef LIBPROFIL_PPROF_SAMPLES_H
#define LIBPROFIL_PPROF_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include <linux/profil.h>

#include "message.h"

/**
 * struct samples - The samples of a profile
 * @ticks: Their number.
 * @lost: Number of ticks that are missing, because there was not enough memory.
 *
 * @last: The item that was made last, for samples_name(); NULL if there is none.
 *
 * The other members are only for samples.c.
 */
struct samples {
	uint64_t ticks;
	uint64_t lost;
	struct item *last;

	void *items;
	struct item *first;
	uint64_t nr[4];
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
