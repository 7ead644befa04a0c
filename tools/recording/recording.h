/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording as a whole: all of a profil.data, added up
 *
 * Numbers of the file have become pointers. Files and processes that the recorder told of more than
 * once are one here.
 */
#ifndef PROFIL_TOOLS_RECORDING_H
#define PROFIL_TOOLS_RECORDING_H

#include "recording/format.h"

/* @first: The first of those that are the same file; of which alone samples tell. */
struct recording_file {
	struct format_file data;
	struct recording_file *first;
};

/**
 * struct recording_process - A process from one exec to the next, or a thread
 * @data: As it was recorded.
 * @thread: Of those that are the same thread the one that was told of last, with its last name.
 * @process: Of the same process, the main thread if that was seen.
 */
struct recording_process {
	struct format_process data;
	struct recording_process *thread;
	struct recording_process *process;
};

/* @file, @process: NULL if the recording does not tell. */
struct recording_sample {
	struct recording_file *file;
	struct recording_process *process;
	u64 offset;
	u64 bias;
	u64 user;
	u64 system;
};

/**
 * struct recording - A recording
 * @meta: Where and of what; strings are there even if the file did not tell them.
 * @samples: By file and offset.
 * @account: The last statistics.
 * @end: The end, if @ended.
 * @error: Why the file could not be read to its end, or NULL; that happened at @error_offset.
 * @busy: It was being written to.
 * @owner: Who owns the file.
 * @user: Of all samples; ticks that overflow are as many as there can be.
 * @system: Likewise.
 */
struct recording {
	struct format_meta meta;
	struct recording_file *files;
	size_t nr_files;
	struct recording_process *processes;
	size_t nr_processes;
	struct recording_sample *samples;
	size_t nr_samples;
	struct format_account account;
	struct format_end end;
	bool ended;
	const char *error;
	u64 error_offset;
	bool busy;
	uid_t owner;
	u64 user;
	u64 system;
};

/**
 * recording_read - Read a file
 * @path: As of format_open().
 * @error: Out: what is wrong, if nothing can be read.
 *
 * Return: the recording, as far as the file can be read; or NULL.
 */
struct recording *recording_read(const char *path, const char **error);
void recording_free(struct recording *recording);

/* As much as there can be, rather than less than there was. */
static inline u64 ticks_add(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif /* PROFIL_TOOLS_RECORDING_H */
