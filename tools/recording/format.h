/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profil.data - the file that profil record writes and profil report reads
 *
 * The format is told in profil.data(5); here are its blocks as C has them, a writer and a
 * reader. Both own their file and nothing else. What the reader hands out has been checked:
 * strings are terminated, arrays lie in the block, and what was not there is 0. What the blocks
 * mean together (that a sample's process was told of before) is the caller's to check.
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
#define FORMAT_PER_THREAD		(1U << 0)	/* processes of the file are threads */
#define FORMAT_CHILDREN		(1U << 1)	/* forks were followed */
#define FORMAT_ATTACHED		(1U << 2)	/* of a process that ran already */

/**
 * struct format_meta - What was recorded, and where
 * @start_time: When the recording began, in ns of CLOCK_REALTIME.
 * @start_monotonic: The same moment, in ns of CLOCK_MONOTONIC: all other times are of this.
 * @tick_ns: Nanoseconds from one tick to the next.
 * @modes: PROFIL_MODE_* bits.
 * @flags: DATA_* bits.
 * @nr_args: How many arguments the command has, itself included; 0 if FORMAT_ATTACHED.
 * @hostname: Name of the machine.
 * @release: Release of its kernel.
 * @directory: Working directory.
 * @args: The arguments, @nr_args strings one after another. The writer takes them apart.
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
#define FORMAT_FILE_NONE	(1U << 0)	/* no file: the path is a name such as "[vdso]" */

/**
 * struct format_file - A file that was mapped, or memory that is none's
 * @id: Its number in this profil.data, not 0.
 * @ino: Inode number, 0 if not known; so are those that follow.
 * @generation: Inode generation.
 * @size: Size in bytes when it was recorded.
 * @mtime: When it was written last, in ns since 1970.
 * @major: Major number of its device, as /proc/PID/maps tells it.
 * @minor: Minor number likewise.
 * @flags: FORMAT_FILE_* bits.
 * @build_id_len: Bytes in @build_id, 0 to FORMAT_BUILD_ID_MAX.
 * @build_id: GNU build-id.
 * @path: Path as the recorder saw it, or a name if FORMAT_FILE_NONE.
 *
 * Size, mtime and build-id are there only if the recorder could open @path and found @ino.
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
 * @pid: Process id, 0 if not known.
 * @tid: Thread id; 0 unless FORMAT_PER_THREAD.
 * @comm: Name, terminated.
 * @time: When it was seen first.
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
 * @file: format_file.id; 0 if what was mapped there is not known.
 * @offset: Offset in the file of the byte at the pc; the address if there is no file.
 * @bias: Address of the pc - @offset; without a file, where the mapping began; 0 if not known.
 * @user: Ticks that found user code running.
 * @system: Ticks that found the kernel running for it.
 *
 * Samples of the same pc add up.
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
 * struct format_stats - What became of the ticks of a session, as in struct profil_stats
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
 * @user: Of the session that counts user ticks.
 * @system: Of the session that counts system ticks; 0 if there is none.
 * @time: When they were taken.
 * @peak_locked: Most bytes that both sessions had locked at a time.
 */
struct format_account {
	struct format_stats user;
	struct format_stats system;
	u64 time;
	u64 peak_locked;
};

enum format_reason {
	FORMAT_END_COMMAND = 1,	/* the command ended */
	FORMAT_END_SIGNAL = 2,	/* the recorder was told to end */
	FORMAT_END_DURATION = 3,	/* the time was over */
	FORMAT_END_TARGETS = 4,	/* nothing was left to be sampled */
};

/**
 * struct format_end - The recording came to its end
 * @time: When.
 * @status: As wait() told of the command; 0 if there was none.
 * @reason: enum format_reason.
 */
struct format_end {
	u64 time;
	s32 status;
	u32 reason;
};

/*
 * Writer. Functions return 0, or -1 with errno set. Blocks are gathered in memory and written by
 * format_flush(), or when they become many: either whole blocks get into the file, or none. After a
 * failure to write, all calls fail in the same way, and the file ends with the last whole block.
 */
struct format_writer;

/**
 * format_create - Begin a file
 * @path: What is there is overwritten. It is locked until format_close().
 *
 * Return: the writer, or NULL with errno set: EBUSY if another recorder is writing to it.
 */
struct format_writer *format_create(const char *path);

/* @argv: the command, ended by NULL; or NULL. @meta->nr_args and @meta->args are not looked at. */
int format_write_meta(struct format_writer *writer, const struct format_meta *meta,
		      char *const argv[]);
int format_write_file(struct format_writer *writer, const struct format_file *file);
int format_write_process(struct format_writer *writer, const struct format_process *process);
int format_write_samples(struct format_writer *writer, const struct format_sample *samples,
			 size_t nr);
int format_write_account(struct format_writer *writer, const struct format_account *account);
int format_write_end(struct format_writer *writer, const struct format_end *end);

int format_flush(struct format_writer *writer);

/* Flushes, unlocks, and frees @writer whether that fails or not. NULL is fine. */
int format_close(struct format_writer *writer);

/**
 * struct format_block - What format_next() found
 * @type: Which of the others is set.
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
 * @path: The file, which may be written to meanwhile; "-" for the standard input.
 * @error: Out: what is wrong, if it is not a file that can be read; a static string or as
 *	strerror() has it.
 *
 * Return: the reader, or NULL.
 */
struct format_reader *format_open(const char *path, const char **error);

/* The same of a descriptor, which then is the reader's. */
struct format_reader *format_open_fd(int fd, const char **error);

/**
 * format_next - The next block
 * @reader: The reader.
 * @block: Out: the block. What it points to is there until the next call.
 *
 * Return: 1, or 0 at the end of the file, or -1 if what follows cannot be made sense of, which
 * ends the file as well: format_error() tells why.
 */
int format_next(struct format_reader *reader, struct format_block *block);

/* What was wrong, or NULL. */
const char *format_error(const struct format_reader *reader);

/* Offset in the file of the block that format_next() returned, or failed at. */
u64 format_offset(const struct format_reader *reader);

/* Whether somebody is writing to the file. */
bool format_busy(const struct format_reader *reader);

/* Who owns the file; whoever runs this, if that is not known. */
uid_t format_owner(const struct format_reader *reader);

void format_free(struct format_reader *reader);

#endif /* PROFIL_TOOLS_FORMAT_H */
