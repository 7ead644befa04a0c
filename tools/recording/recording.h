/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording in memory: a profil.data, or the counters of a process (see capture.h)
 *
 * Blocks and samples are added in any order. They refer to each other by ids, which
 * recording_finish() replaces by pointers. If there is no memory, these functions exit, as
 * xmalloc() does.
 */
#ifndef PROFIL_TOOLS_RECORDING_H
#define PROFIL_TOOLS_RECORDING_H

#include <obstack.h>

#include "recording/format.h"

/* A file, or memory without a file. Its symbols were recorded with it, and are sorted by start. */
struct recording_file {
	struct format_file data;
	const struct format_symbol *symbols;
	size_t nr_symbols;
};

/**
 * struct recording_thread - A thread, from one exec or change of its name to the next
 * @data: The thread as it was recorded.
 * @thread: The last entry for the same thread: it has the last name of the thread.
 * @process: The entry that stands for the process: that of its main thread, if it was recorded.
 * @symbols: Functions that the process has made at run time, if this is @process.
 * @nr_symbols: Their number. They do not overlap.
 * @nameless: Why others have no names; NULL if it is not known, or if there are no others.
 */
struct recording_thread {
	struct format_thread data;
	struct recording_thread *thread;
	struct recording_thread *process;
	const struct format_symbol *symbols;
	size_t nr_symbols;
	const struct format_nameless *nameless;
};

/**
 * struct recording_frame - An address in a stack
 * @file: The mapped file; NULL if it is not known.
 * @offset: Offset of the address in the file; the address if @file is NULL or FORMAT_FILE_NONE.
 * @bias: As in struct recording_sample.
 * @mapping_id: format_mapping.id; 0 if the mapping was not known.
 * @flags: FORMAT_FRAME_* bits.
 *
 * A return address is behind the call: the offset of the call is in the bytes before it.
 */
struct recording_frame {
	struct recording_file *file;
	u64 offset;
	u64 bias;
	u32 mapping_id;
	u32 flags;
};

/**
 * struct recording_stack - The callers of one or more samples
 * @id: format_stack.id.
 * @end: The reason why there are no more frames: enum profil_stack_end.
 * @nr: Number of frames.
 * @innermost: Words that may be the return address of the innermost function, see struct
 *	format_stack. Their offsets are 0 if they are not.
 * @frames: The return addresses, the innermost first.
 */
struct recording_stack {
	u32 id;
	u32 end;
	size_t nr;
	struct recording_frame innermost[2];
	struct recording_frame frames[];
};

/**
 * struct recording_sample - One or more ticks of a thread at one pc
 * @file: The mapped file; NULL if it is not known, and for ticks without a pc.
 * @thread: The thread; NULL if it is not known.
 * @offset: Offset of the pc in the file; its address if @file is NULL or FORMAT_FILE_NONE.
 * @bias: In a file, the address of the pc - @offset. In other memory, the start of the mapping.
 * @user: Ticks in user mode, each weighted by its periods.
 * @system: Ticks in kernel mode, likewise.
 * @nr: The number of ticks, without weights.
 * @squares: Sum of the squares of their weights.
 * @cpu: The CPU; -1 if ticks of several CPUs were added up.
 * @interval: The index of the interval of time; 0 if time is not divided.
 * @flags: FORMAT_SAMPLE_* bits.
 * @second: The second of the recording; 0 if ticks of several seconds were added up.
 * @thread_id: format_thread.id, for recording_finish().
 * @mapping_id: format_mapping.id, likewise.
 * @stack_id: format_stack.id, likewise; 0 if the stack is not kept.
 * @stack: The callers; NULL if there are none, they are not known, or they are not kept.
 * @call_id: format_call.id, for recording_finish().
 * @call: What the kernel did; NULL in user mode, or if it is not known.
 */
struct recording_sample {
	struct recording_file *file;
	struct recording_thread *thread;
	const struct recording_stack *stack;
	const struct format_call *call;
	u64 offset;
	u64 bias;
	u64 user;
	u64 system;
	u64 nr;
	double squares;
	s32 cpu;
	u32 interval;
	u32 flags;
	u32 second;
	u32 thread_id;
	u32 mapping_id;
	u32 stack_id;
	u32 call_id;
};

/*
 * The ticks to read. The memory use depends on the number of different places and stacks, not on
 * the duration of the recording.
 */
struct recording_filter {
	u64 from;		/* in ns since the start */
	u64 to;			/* before this time; 0: no limit */
	s32 cpu;		/* -1: all */
	bool keep_cpus;		/* do not add up ticks of different CPUs */
	bool keep_seconds;	/* do not add up ticks of different seconds */
	bool keep_times;	/* do not add up ticks of different intervals of time */
	bool keep_stacks;	/* keep stacks, and do not add up ticks of different stacks */
};

/* The maximum number of intervals into which time is divided */
#define RECORDING_INTERVALS_MAX 1024

/**
 * struct recording - A recording
 * @has_meta: The file has a META block. Otherwise @meta is empty: its strings are never NULL.
 * @threads: The threads, sorted by id.
 * @samples: Sorted by file and offset.
 * @has_account: The file has a STATS block. Otherwise @account is 0.
 * @account: The last statistics.
 * @end: The end of the recording; valid if @ended.
 * @detached: The execs that were not followed.
 * @filtered: Ticks that the filter left out.
 * @periods: The weight of all ticks in the file, including the filtered ones.
 * @error: The error message, if the file could not be read from @error_offset on; otherwise NULL.
 * @skipped_bytes: Bytes of the file that are damaged, and were skipped.
 * @nr_skips: Number of places where bytes were skipped.
 * @busy: A recorder was still writing the file.
 * @nr: Sum of the members nr of all samples. Sums saturate instead of wrapping around.
 * @is_capture: These are the counters of a process, not a file.
 * @elsewhere: Ticks of counters that are for a whole range, not for a single address.
 * @nr_full: Counters that have reached their maximum.
 * @filter: The filter with which it was read.
 * @interval_ns: With @filter.keep_times, the duration of an interval. The first one begins at
 *	@filter.from.
 */
struct recording {
	bool has_meta;
	struct format_meta meta;
	struct recording_file *files;
	size_t nr_files;
	struct recording_thread *threads;
	size_t nr_threads;
	struct recording_sample *samples;
	size_t nr_samples;
	bool has_account;
	struct format_account account;
	struct format_end end;
	bool ended;
	struct format_detached *detached;
	size_t nr_detached;
	u64 filtered;
	u64 periods;
	const char *error;
	u64 error_offset;
	u64 skipped_bytes;
	u64 nr_skips;
	bool busy;
	u64 nr;
	bool is_capture;
	u64 elsewhere;
	u64 nr_full;
	struct recording_filter filter;
	u64 interval_ns;

	/* Only recording.c uses these. */
	struct obstack strings;
	struct format_symbol *symbols;		/* of all files */
	size_t nr_symbols;
	struct format_nameless *nameless;
	size_t nr_nameless;
	struct format_mapping *mappings;
	size_t nr_mappings;
	struct recording_stack **stacks;
	size_t nr_stacks;
	struct format_call *calls;
	size_t nr_calls;
	size_t size_samples;
};

struct recording *recording_new(void);

/* Adds a copy of a block, which is not SAMPLES. */
void recording_add(struct recording *recording, const struct format_block *block);
void recording_add_sample(struct recording *recording, const struct recording_sample *sample);
void recording_finish(struct recording *recording);

/*
 * Reads a file, as far as it can be read. @path: as in format_open(). Returns NULL and an error
 * message if it is not a recording.
 */
struct recording *recording_read(const char *path, const struct recording_filter *filter,
				 const char **error);

/* Reads from @reader, and frees it. */
struct recording *recording_load(struct format_reader *reader,
				 const struct recording_filter *filter);
void recording_free(struct recording *recording);

/* Returns true if the recording was made with stacks. */
static inline bool recording_has_stacks(const struct recording *recording)
{
	return recording->meta.flags & FORMAT_STACKS;
}

/* The sum, or UINT64_MAX if it overflows. */
static inline u64 ticks_add(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The CPU time of @ticks in ns, or INT64_MAX if it overflows. It is 0 if it is not known. */
static inline u64 recording_ns(const struct recording *recording, u64 ticks)
{
	u64 ns;

	return __builtin_mul_overflow(ticks, recording->meta.tick_ns, &ns) || ns > INT64_MAX ?
	       INT64_MAX : ns;
}

/* The duration in ns; 0 if it is not known. */
static inline u64 recording_duration(const struct recording *recording)
{
	u64 end = recording->ended ? recording->end.time : recording->account.time;
	u64 start = recording->meta.start_monotonic;

	return end > start ? end - start : 0;
}

#endif /* PROFIL_TOOLS_RECORDING_H */
