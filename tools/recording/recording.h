/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording as a whole: all of a profil.data, added up
 *
 * Numbers of the file have become pointers. Files and processes that the recorder told of more than
 * once are one here.
 */
#ifndef PROFIL_TOOLS_PROFILE_H
#define PROFIL_TOOLS_PROFILE_H

#include "recording/format.h"

/* @first: The first of those that are the same file; of which alone samples tell. */
struct profile_file {
	struct data_file data;
	struct profile_file *first;
};

/**
 * struct profile_process - A process from one exec to the next, or a thread
 * @data: As it was recorded.
 * @thread: Of those that are the same thread the one that was told of last, with its last name.
 * @process: Of the same process, the main thread if that was seen.
 */
struct profile_process {
	struct data_process data;
	struct profile_process *thread;
	struct profile_process *process;
};

/* @file, @process: NULL if the recording does not tell. */
struct profile_sample {
	struct profile_file *file;
	struct profile_process *process;
	u64 offset;
	u64 bias;
	u64 user;
	u64 system;
};

/**
 * struct profile - A recording
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
struct profile {
	struct data_meta meta;
	struct profile_file *files;
	size_t nr_files;
	struct profile_process *processes;
	size_t nr_processes;
	struct profile_sample *samples;
	size_t nr_samples;
	struct data_account account;
	struct data_end end;
	bool ended;
	const char *error;
	u64 error_offset;
	bool busy;
	uid_t owner;
	u64 user;
	u64 system;
};

/**
 * profile_read - Read a file
 * @path: As of data_open().
 * @error: Out: what is wrong, if nothing can be read.
 *
 * Return: the recording, as far as the file can be read; or NULL.
 */
struct profile *profile_read(const char *path, const char **error);
void profile_free(struct profile *profile);

/* As much as there can be, rather than less than there was. */
static inline u64 profile_sum(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif /* PROFIL_TOOLS_PROFILE_H */
