/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters for the pages of text where ticks fall
 *
 * A page of text in which ticks were found again and again gets a range of the session, with a
 * counter for each byte: its ticks cost neither a record nor a look-up any more, and no pc is
 * blurred. Pages of nobody's interest cost nothing, so that RLIMIT_MEMLOCK is enough for programs
 * of any size; when it is not, ticks go on to leave records.
 *
 * Ranges are not inherited by the children of a fork, which are processes of their own: what is
 * counted is of the one process in whose space the range is.
 */
#ifndef PROFIL_TOOLS_CHUNKS_H
#define PROFIL_TOOLS_CHUNKS_H

#include <linux/profil.h>

#include "recording/format.h"

/* Sessions are known by their index here. */
#define CHUNKS_SESSIONS 2

struct chunks;

/**
 * chunks_create - None yet
 * @fds: Descriptors of the sessions; those that are not there, -1.
 */
struct chunks *chunks_create(const int fds[CHUNKS_SESSIONS]);

/**
 * chunks_record - A tick was found outside all ranges
 * @chunks: The chunks.
 * @session: Index of the session.
 * @record: Its record, which tells of the mapping.
 * @sample: How it was counted: process, file, offset and bias are those of its ticks.
 */
void chunks_record(struct chunks *chunks, unsigned int session,
		   const struct profil_record *record, const struct format_sample *sample);

/* Ranges for what has had records enough by now. Returns whether there are more of them. */
bool chunks_place(struct chunks *chunks);

/* Ranges go from text that is something else by now, and from spaces that are gone. */
void chunks_check(struct chunks *chunks);

/**
 * chunks_harvest - Take all counts of a session, and its statistics, of the same moment
 * @chunks: The chunks.
 * @session: Index of the session.
 * @stats: Out: the statistics since the last harvest.
 * @found: Gets the ticks at each pc: in @sample->user, which the caller knows better.
 * @data: For @found.
 *
 * Return: 0, or -1 with errno set, and nothing was taken.
 */
int chunks_harvest(struct chunks *chunks, unsigned int session, struct profil_stats *stats,
		   void (*found)(void *data, unsigned int session, struct format_sample *sample),
		   void *data);

/* The sessions are closed already. */
void chunks_free(struct chunks *chunks);

#endif /* PROFIL_TOOLS_CHUNKS_H */
