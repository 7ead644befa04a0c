/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was seen since the last second, and of whom and of which files
 *
 * Processes and files are told to the writer when they are seen first; samples add up here until
 * they are flushed. Who was not seen for a while is forgotten, and told anew, under another number,
 * when it comes back: so memory is bounded by what happens in a minute.
 */
#ifndef PROFIL_TOOLS_AGGREGATE_H
#define PROFIL_TOOLS_AGGREGATE_H

#include <linux/profil.h>

#include "recording/format.h"

struct aggregate;

/* @now: CLOCK_MONOTONIC, in ns. */
struct aggregate *aggregate_create(struct format_writer *writer, bool per_thread, u64 now);

/**
 * aggregate_record - A record was read
 * @a: What was seen.
 * @record: The record.
 * @sample: Out: where its tick was, without the tick.
 *
 * Return: false if it is not known what was mapped there: aggregate_place() may know it later.
 */
bool aggregate_record(struct aggregate *a, const struct profil_record *record,
		      struct format_sample *sample);

/**
 * aggregate_place - Find what other records tell of a place
 * @a: What was seen.
 * @space: The address space of a record without a mapping.
 * @sample: In and out: @sample->offset is its pc.
 */
void aggregate_place(struct aggregate *a, u64 space, struct format_sample *sample);

/* @sample->user and @sample->system are added to what there is. */
void aggregate_add(struct aggregate *a, const struct format_sample *sample);

/* Is there anything to be flushed? */
bool aggregate_any(const struct aggregate *a);

/* Hands all samples to the writer. 0, or -1 with errno set. */
int aggregate_flush(struct aggregate *a, u64 now);

/* 0, or -1 with errno set, since the writer failed for processes or files. */
int aggregate_error(const struct aggregate *a);

void aggregate_free(struct aggregate *a);

#endif /* PROFIL_TOOLS_AGGREGATE_H */
