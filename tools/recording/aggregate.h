/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes, files and samples that the recorder has seen
 *
 * A process or file is written at its first tick. Samples are added up until the next flush. A
 * process or file that has had no tick for a minute is freed; at its next tick it is written again,
 * with another id. So the memory use depends only on the ticks of about the last minute.
 */
#ifndef PROFIL_TOOLS_AGGREGATE_H
#define PROFIL_TOOLS_AGGREGATE_H

#include <linux/profil.h>

#include "recording/format.h"

struct aggregate;

/* @now: the time of CLOCK_MONOTONIC, in ns. */
struct aggregate *aggregate_create(struct format_writer *writer, bool per_thread, u64 now);

/**
 * aggregate_record - Convert a record to a sample
 * @a: The aggregate.
 * @record: The record.
 * @sample: Out: the sample, with 0 ticks.
 *
 * Return: false if the record has no mapping; aggregate_place() may find it later.
 */
bool aggregate_record(struct aggregate *a, const struct profil_record *record,
		      struct format_sample *sample);

/**
 * aggregate_place - Find the mapping of a sample in other records
 * @a: The aggregate.
 * @space: The address space of a record without a mapping.
 * @sample: In and out: the sample, whose offset is its pc until a mapping is found.
 */
void aggregate_place(struct aggregate *a, u64 space, struct format_sample *sample);

/* Adds the ticks of @sample. */
void aggregate_add(struct aggregate *a, const struct format_sample *sample);

/* Are there samples to flush? */
bool aggregate_any(const struct aggregate *a);

/* Passes all samples to the writer. Returns 0, or -1 with errno set. */
int aggregate_flush(struct aggregate *a, u64 now);

/* Returns 0, or -1 with errno set if the writer has failed. */
int aggregate_error(const struct aggregate *a);

void aggregate_free(struct aggregate *a);

#endif /* PROFIL_TOOLS_AGGREGATE_H */
