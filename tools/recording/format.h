/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of profil.data, the file that profil record writes and profil report reads
 *
 * profil.data(5) describes the format. This file declares its blocks as C structures, a writer and
 * a reader. The reader checks each block: strings are terminated, arrays are inside the block, and
 * members that are missing are 0. The caller checks the relations between blocks, for example that
 * the process of a sample exists.
 */
#ifndef PROFIL_TOOLS_FORMAT_H
#define PROFIL_TOOLS_FORMAT_H

#include "../util.h"

#define FORMAT_MAGIC		"PROFILD\n"
#define FORMAT_VERSION		1
#define FORMAT_PAYLOAD_MAX	(16U << 20)
#define FORMAT_BUILD_ID_MAX	32

enum format_type {
	FORMAT_META = 1,
	FORMAT_FILE = 2,
	FORMAT_PROCESS = 3,
	FORMAT_SAMPLES = 4,
	FORMAT_STATS = 5,
	FORMAT_END = 6,
};

/* Bits of format_meta.flags */
#define FORMAT_PER_THREAD	(1U << 0)	/* processes of the file are threads */
#define FORMAT_CHILDREN		(1U << 1)	/* forks were followed */
#define FORMAT_ATTACHED		(1U << 2)	/* recorded with --pid */

/**
 * struct format_meta - The command, the machine and the clock
 * @start_time: When the recording began, in ns of CLOCK_REALTIME.
 * @start_monotonic: The same moment, in ns of CLOCK_MONOTONIC. All other times use this clock, too.
 * @tick_ns: The period of the ticks, in ns.
 * @modes: PROFIL_MODE_* bits.
 * @flags: FORMAT_PER_THREAD, FORMAT_CHILDREN, FORMAT_ATTACHED.
 * @nr_args: Number of arguments of the command, including its name; 0 if FORMAT_ATTACHED.
 * @hostname: Name of the machine.
 * @release: Release of the kernel, as from uname(2).
 * @directory: Working directory.
 * @args: The arguments: @nr_args strings, one after another. Not used by the writer.
 */
struct format_meta {
	u64 start_time;
	u64 start_monotonic;
	u64 tick_ns;
	u32 modes;
	u32 flags;
	u32 nr_args;
	const char *hostname;
	const char *release;
	const char *directory;
	const char *args;
};

/* Bits of format_file.flags */
#define FORMAT_FILE_NONE	(1U << 0)	/* not a file: a name such as "[vdso]" */

/**
 * struct format_file - A mapped file, or memory that is not a file
 * @id: Its number in this profil.data, not 0.
 * @ino: Inode number. This and the members that follow are 0 if they are not known.
 * @generation: Inode generation.
 * @size: Size in bytes during the recording.
 * @mtime: Time of the last modification, in ns since 1970.
 * @major: Major number of the device of the file, as in /proc/PID/maps.
 * @minor: Minor number of that device.
 * @flags: FORMAT_FILE_* bits.
 * @build_id_len: Bytes in @build_id, 0 to FORMAT_BUILD_ID_MAX.
 * @build_id: GNU build-id.
 * @path: The path by which the recorder finds the file; or a name if FORMAT_FILE_NONE.
 *
 * Size, mtime and build-id are known only if the recorder could open the file.
 */
struct format_file {
	u64 id;
	u64 ino;
	u64 generation;
	u64 size;
	u64 mtime;
	u32 major;
	u32 minor;
	u32 flags;
	u32 build_id_len;
	u8 build_id[FORMAT_BUILD_ID_MAX];
	const char *path;
};

/**
 * struct format_process - A process from one exec to the next, or a thread
 * @id: Its number in this profil.data, not 0.
 * @space: The module's id of its address space.
 * @pid: Process id; 0 if it is not known.
 * @tid: Thread id; 0 unless FORMAT_PER_THREAD.
 * @comm: Name, terminated.
 * @time: Time of the first tick of the process.
 */
struct format_process {
	u64 id;
	u64 space;
	s32 pid;
	s32 tid;
	char comm[16];
	u64 time;
};

/**
 * struct format_sample - Ticks at one pc
 * @process: format_process.id.
 * @file: format_file.id; 0 if the mapping is not known.
 * @offset: Offset of the pc in the file; the address if there is no file.
 * @bias: Address of the pc minus @offset. Without a file, it is the start of the mapping, or 0 if
 *	that is not known.
 * @user: Ticks in user mode.
 * @system: Ticks in kernel mode.
 *
 * There can be several samples with the same pc. The reader of the file adds up their ticks.
 */
struct format_sample {
	u64 process;
	u64 file;
	u64 offset;
	u64 bias;
	u64 user;
	u64 system;
};

/**
 * struct format_stats - Statistics of a session, as in struct profil_stats
 */
struct format_stats {
	u64 ticks;
	u64 hit;
	u64 outside;
	u64 saturated;
	u64 dropped;
	u64 dropped_overrun;
	u64 dropped_buffer;
	u64 dropped_contended;
	u64 dropped_exec;
	u64 dropped_exit;
	u64 dropped_record;
	u64 user;
	u64 system;
	u64 unselected;
	u64 missed;
	u64 expected;
	u64 locked;
	u64 unfollowed;
	u64 targets;
};

/**
 * struct format_account - Statistics since the start
 * @user: Statistics of the session that counts user ticks.
 * @system: Statistics of the session that counts system ticks; all 0 if there is none.
 * @time: The time at which the statistics were read.
 * @peak_locked: Maximum of the bytes that both sessions had locked.
 */
struct format_account {
	struct format_stats user;
	struct format_stats system;
	u64 time;
	u64 peak_locked;
};

enum format_reason {
	FORMAT_END_COMMAND = 1,	/* the command ended */
	FORMAT_END_SIGNAL = 2,	/* a signal ended the recording */
	FORMAT_END_DURATION = 3,	/* the duration was over */
	FORMAT_END_TARGETS = 4,	/* all processes ended */
};

/**
 * struct format_end - The end of a recording
 * @time: The time of the end.
 * @status: The status of the command, as from wait(); 0 without a command.
 * @reason: enum format_reason.
 */
struct format_end {
	u64 time;
	s32 status;
	u32 reason;
};

/*
 * The writer. Its functions return 0, or -1 with errno set. They keep blocks in memory until
 * format_flush(), or until there is about a megabyte. After an error of write(), all calls fail
 * with the same errno, and the file is truncated to its last complete block.
 */
struct format_writer;

/**
 * format_create - Create a file, or overwrite it
 * @path: The path of the file. The file is locked until format_close().
 *
 * Return: the writer, or NULL with errno set: EBUSY if another recorder is writing to it.
 */
struct format_writer *format_create(const char *path);

/*
 * @argv: the command and its arguments, terminated by NULL; or NULL without a command. The function
 * ignores @meta->nr_args and @meta->args.
 */
int format_write_meta(struct format_writer *writer, const struct format_meta *meta,
		      char *const argv[]);
int format_write_file(struct format_writer *writer, const struct format_file *file);
int format_write_process(struct format_writer *writer, const struct format_process *process);
int format_write_samples(struct format_writer *writer, const struct format_sample *samples,
			 size_t nr);
int format_write_account(struct format_writer *writer, const struct format_account *account);
int format_write_end(struct format_writer *writer, const struct format_end *end);

int format_flush(struct format_writer *writer);

/* Flushes and unlocks the file. Frees @writer, even if this fails. @writer may be NULL. */
int format_close(struct format_writer *writer);

/**
 * struct format_block - A block of a file
 * @type: The type, which says which of the other members is set.
 * @samples: Array of @nr_samples.
 */
struct format_block {
	enum format_type type;
	struct format_meta meta;
	struct format_file file;
	struct format_process process;
	const struct format_sample *samples;
	size_t nr_samples;
	struct format_account account;
	struct format_end end;
};

struct format_reader;

/**
 * format_open - Read a file
 * @path: The file, to which a recorder may still be writing; "-" for standard input.
 * @error: Out: if the function returns NULL, the error message.
 *
 * Return: the reader, or NULL.
 */
struct format_reader *format_open(const char *path, const char **error);

/* Like format_open(), but for a descriptor, which the reader closes. */
struct format_reader *format_open_fd(int fd, const char **error);

/**
 * format_next - Read the next block
 * @reader: The reader.
 * @block: Out: the block. Its pointers are valid until the next call.
 *
 * Return: 1, or 0 at the end of the file, or -1 if the rest of the file cannot be read: see
 * format_error().
 */
int format_next(struct format_reader *reader, struct format_block *block);

/* Returns the error message for the result -1 of format_next(), or NULL. */
const char *format_error(const struct format_reader *reader);

/* Returns the offset in the file of the block that format_next() returned or could not read. */
u64 format_offset(const struct format_reader *reader);

/* Is a recorder still writing the file? */
bool format_busy(const struct format_reader *reader);

/* Returns the owner of the file, or the effective user if the owner is not known. */
uid_t format_owner(const struct format_reader *reader);

void format_free(struct format_reader *reader);

#endif /* PROFIL_TOOLS_FORMAT_H */
