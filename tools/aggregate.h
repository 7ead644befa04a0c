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

#include "data.h"

struct aggregate;

/* @now: CLOCK_MONOTONIC, in ns. */
struct aggregate *aggregate_create(struct data_writer *writer, bool per_thread, u64 now);

/* The numbers for the file of the process, or thread, that left a record, and of what it ran. */
u64 aggregate_process(struct aggregate *a, const struct profil_record *record);
u64 aggregate_file(struct aggregate *a, const struct profil_record *record);

/* @sample->user and @sample->system are added to what there is. */
void aggregate_add(struct aggregate *a, const struct data_sample *sample);

/* Is there anything to be flushed? */
bool aggregate_any(const struct aggregate *a);

/* Hands all samples to the writer. 0, or -1 with errno set. */
int aggregate_flush(struct aggregate *a, u64 now);

/* 0, or -1 with errno set, since the writer failed for processes or files. */
int aggregate_error(const struct aggregate *a);

void aggregate_free(struct aggregate *a);

#endif /* PROFIL_TOOLS_AGGREGATE_H */
