/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conversion of records of the module to blocks of a file
 *
 * Each tick becomes a sample. A thread, file, mapping, stack or call is written at its first tick.
 */
#ifndef PROFIL_TOOLS_STREAM_H
#define PROFIL_TOOLS_STREAM_H

#include <libiberty/hashtab.h>
#include <linux/profil.h>

#include "recording/completeness.h"

/**
 * struct stream - The state of the conversion
 * @own_space: The address space of the recorder's child until it has executed the command; or 0.
 *	The caller sets it. Ticks in it are not samples.
 * @own_pid: With -a, the recorder, whose ticks are not samples; or 0. The caller sets it.
 * @tables: The unwind tables of the session; or NULL. The caller sets it.
 * @start: The start of the file. A record of an earlier tick, which came late, gets this time. The
 *	caller sets it.
 * @ticks: Ticks, including @own.
 * @user: Those of @ticks in user mode.
 * @own: Ticks in @own_space or of @own_pid.
 * @bare: Ticks during exec or exit, which have no pc.
 * @completeness: With @tables, how many of the samples have a complete call stack. profil report,
 *	which knows the functions, can find more callers that are lost.
 */
struct stream {
	u64 own_space;
	pid_t own_pid;
	struct tables *tables;
	u64 start;
	u64 ticks;
	u64 user;
	u64 own;
	u64 bare;
	struct completeness completeness;

	/* Only the files of the stream use these. */
	struct format_writer *writer;
	struct functions *functions;
	htab_t files;
	htab_t entries;			/* threads, mappings and calls */
	htab_t stacks;
	size_t stack_bytes;		/* the size of all of these */
	struct spaces *spaces;
	struct segments *segments;
	u32 last[FORMAT_CALL + 1];	/* for each type, the id that was given last */
	struct profil_record place;	/* the previous record, without its path */
	u32 thread;			/* its thread */
	const struct entry *mapping;	/* its mapping, or NULL */
};

/* Begins a file. The members for the caller keep their values. */
void stream_init(struct stream *stream, struct format_writer *writer);

/* Adds a tick: a record without PROFIL_RECORD_DETACHED. */
void stream_record(struct stream *stream, const struct profil_record *record);

/*
 * Writes the functions with samples, at the end of the recording. Returns the same as
 * functions_write().
 */
int stream_finish(struct stream *stream);

/* Ends the file. What is known of address spaces is kept for the next one: they may be gone. */
void stream_free(struct stream *stream);

/* Frees that, too, after the last file. */
void stream_close(struct stream *stream);

/* Reads the name of a process. Returns false if it does not exist. */
bool stream_read_comm(pid_t pid, char comm[16]);

/* Calls @visit for the process of each thread that was recorded, some of them several times. */
void stream_visit_processes(struct stream *stream, void (*visit)(void *data, pid_t pid),
			    void *data);

#endif /* PROFIL_TOOLS_STREAM_H */
