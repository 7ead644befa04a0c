/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters for the pages of text where ticks fall
 *
 * A chunk is a page of text. When several of its ticks have left records, the session gets a range
 * for it, with a counter for each byte of text. From then on its ticks leave no records. A page
 * without ticks has no counters, so the size of a program does not matter for RLIMIT_MEMLOCK. If
 * the limit is reached, the ticks of further pages continue to leave records.
 *
 * The child of a fork does not inherit ranges: the counters are for one process.
 */
#ifndef PROFIL_TOOLS_CHUNKS_H
#define PROFIL_TOOLS_CHUNKS_H

#include <linux/profil.h>

#include "recording/format.h"

#define CHUNKS_SESSIONS 2

struct chunks;

/**
 * chunks_create - Allocate an empty set
 * @fds: Descriptors of the sessions; -1 for a session that does not exist.
 */
struct chunks *chunks_create(const int fds[CHUNKS_SESSIONS]);

/**
 * chunks_record - Note a record, which is a tick outside all ranges
 * @chunks: The chunks.
 * @session: Index of the session.
 * @record: The record.
 * @sample: The sample for it, with process, file, offset and bias.
 */
void chunks_record(struct chunks *chunks, unsigned int session,
		   const struct profil_record *record, const struct format_sample *sample);

/* Adds ranges for pages with enough records. Returns true if it has added any. */
bool chunks_place(struct chunks *chunks);

/* Removes ranges whose mapping has changed, or whose address space no longer exists. */
void chunks_check(struct chunks *chunks);

/**
 * chunks_harvest - Read and reset the counters and the statistics of a session, in one step
 * @chunks: The chunks.
 * @session: Index of the session.
 * @stats: Out: the statistics since the last harvest.
 * @found: Called for each pc, with its ticks in @sample->user.
 * @data: For @found.
 *
 * Return: 0; or -1 with errno set, and then nothing was read.
 */
int chunks_harvest(struct chunks *chunks, unsigned int session, struct profil_stats *stats,
		   void (*found)(void *data, unsigned int session, struct format_sample *sample),
		   void *data);

/* Close the sessions first: the kernel writes to the counters until then. */
void chunks_free(struct chunks *chunks);

#endif /* PROFIL_TOOLS_CHUNKS_H */
