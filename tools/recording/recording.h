/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording in memory: a profil.data, or the counters of a process (see classic.h)
 *
 * The recording_add_*() functions add files, processes and samples, in any order. These refer to
 * each other by ids. recording_finish() replaces the ids by pointers. It also finds the entries
 * that are for the same file, process or thread, and makes samples refer to one of them.
 */
#ifndef PROFIL_TOOLS_RECORDING_H
#define PROFIL_TOOLS_RECORDING_H

#include "recording/format.h"

/* @first: Of the entries for the same file, the first one. Samples refer to this entry only. */
struct recording_file {
	struct format_file data;
	struct recording_file *first;
};

/**
 * struct recording_process - A process from one exec to the next, or a thread of it
 * @data: The process as it was recorded.
 * @thread: Of the entries for the same thread, the last one, which has its last name.
 * @process: Of the entries for the same process, the one that stands for it: that of the main
 *	thread, if it was recorded.
 */
struct recording_process {
	struct format_process data;
	struct recording_process *thread;
	struct recording_process *process;
};

/**
 * struct recording_sample - Ticks at one pc
 * @file: The mapped file; NULL if it is not known.
 * @thread: The thread, or the process if threads were not recorded; NULL if it is not known.
 * @offset: As in struct format_sample.
 * @bias: Address of the pc - @offset.
 * @user: Ticks in user mode.
 * @system: Ticks in kernel mode.
 * @time: CLOCK_MONOTONIC in ns; 0 if ticks of several times were added up.
 * @cpu: The CPU; -1 if ticks of several CPUs were added up.
 */
struct recording_sample {
	struct recording_file *file;
	struct recording_process *thread;
	u64 offset;
	u64 bias;
	u64 user;
	u64 system;
	u64 time;
	s32 cpu;
};

/**
 * struct recording - A recording
 * @meta: Start, machine and command; its strings are never NULL.
 * @samples: Sorted by file and offset.
 * @account: The last statistics.
 * @end: The end of the recording; valid if @ended.
 * @error: The error message, if the file could not be read from @error_offset on; otherwise NULL.
 * @busy: A recorder was still writing the file.
 * @owner: Owner of the file.
 * @user: User ticks of all samples. Sums saturate instead of wrapping around.
 * @system: System ticks of all samples.
 * @is_classic: These are the counters of a process, not a file.
 * @elsewhere: Ticks of counters that are for a whole range, and no single address.
 * @nr_full: Counters that have reached their maximum.
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
	bool is_classic;
	u64 elsewhere;
	u64 nr_full;

	/* These members are used only before recording_finish(). */
	struct format_sample *raw;
	size_t nr_raw;
	size_t size_raw;
};

/* Returns an empty recording, or NULL. */
struct recording *recording_new(void);

/* These functions copy their arguments and the strings. False: there is no memory. */
bool recording_add_meta(struct recording *recording, const struct format_meta *meta);
bool recording_add_file(struct recording *recording, const struct format_file *file);
bool recording_add_process(struct recording *recording, const struct format_process *process);
bool recording_add_samples(struct recording *recording, const struct format_sample *samples,
			   size_t nr);
bool recording_finish(struct recording *recording);

/**
 * recording_read - Read a file
 * @path: As in format_open().
 * @error: Out: if the function returns NULL, the error message.
 *
 * Return: the recording, as far as the file can be read; or NULL.
 */
struct recording *recording_read(const char *path, const char **error);
void recording_free(struct recording *recording);

/* The sum, or UINT64_MAX if it overflows. */
static inline u64 ticks_add(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif /* PROFIL_TOOLS_RECORDING_H */
