/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of profil.data, the file that profil record writes and profil report reads
 *
 * profil.data(5) describes the format, and the members of these structures. The reader checks each
 * block: strings are terminated, and arrays are inside the block. The caller checks the relations
 * between blocks, for example that the thread of a sample exists.
 */
#ifndef PROFIL_TOOLS_FORMAT_H
#define PROFIL_TOOLS_FORMAT_H

#include "../util.h"

#define FORMAT_MAGIC		"PROFILD\n"
#define FORMAT_VERSION		3
/* Older versions from this one on are read, too. */
#define FORMAT_VERSION_MIN	2
#define FORMAT_PAYLOAD_MAX	(128U << 10)
#define FORMAT_BUILD_ID_MAX	32
#define FORMAT_STACK_MAX	127

enum format_type {
	FORMAT_META = 1,
	FORMAT_FILE = 2,
	FORMAT_THREAD = 3,
	FORMAT_MAPPING = 4,
	FORMAT_SAMPLES = 5,
	FORMAT_SYMBOL = 6,
	FORMAT_DETACHED = 7,
	FORMAT_STATS = 8,
	FORMAT_END = 9,
	FORMAT_STACK = 10,
	FORMAT_CALL = 11,
	FORMAT_NAMELESS = 12,
};

/* Bits of format_meta.flags */
#define FORMAT_CHILDREN		(1U << 1)	/* forks were followed */
#define FORMAT_ATTACHED		(1U << 2)	/* recorded with --pid */
#define FORMAT_MACHINE		(1U << 3)	/* every process, with --all */
#define FORMAT_STACKS		(1U << 4)	/* with --stacks: samples can have stacks */
#define FORMAT_RUNTIMES		(1U << 5)	/* with --runtimes: it set their variables */

/* The command, the machine and the clock. */
struct format_meta {
	u64 start_time;			/* CLOCK_REALTIME, in ns */
	u64 start_monotonic;		/* the same moment; all other times are of this clock */
	u64 tick_ns;
	u32 modes;			/* PROFIL_MODE_* bits */
	u32 flags;
	s32 pid;			/* the command, or the process of --pid; or 0 */
	u32 reserved;
	const char *hostname;
	const char *release;		/* of the kernel */
	const char *command;		/* as in a shell; the program of --pid; or a description */
};

/* Bits of format_file.flags */
#define FORMAT_FILE_NONE	(1U << 0)	/* not a file: a name such as "[vdso]" */
/* Why the recorder could not identify it */
#define FORMAT_FILE_DENIED	(1U << 1)	/* it may not read the file */
#define FORMAT_FILE_GONE	(1U << 2)	/* there was no file at the path */
#define FORMAT_FILE_OTHER	(1U << 3)	/* there was another one */
#define FORMAT_FILE_CHANGED	(1U << 4)	/* it had changed since the tick */
#define FORMAT_FILE_ENDED	(1U << 5)	/* with another one of these: so had the process */
#define FORMAT_FILE_FUSE	(1U << 6)	/* another user serves it */
#define FORMAT_FILE_IRREGULAR	(1U << 7)	/* it is not a regular file, but a device, say */
#define FORMAT_FILE_GENERATED	(1U << 8)	/* a program has written code there */

/*
 * A mapped file, or memory that is not a file. Size, mtime and build-id are 0 if the recorder could
 * not open the file.
 */
struct format_file {
	u32 id;				/* not 0 */
	u32 flags;
	u64 ino;
	u64 size;
	u64 mtime;			/* in ns since 1970 */
	u32 build_id_len;
	u32 reserved;
	u8 build_id[FORMAT_BUILD_ID_MAX];
	const char *path;
};

/* A thread, from one exec or change of its name to the next. */
struct format_thread {
	u32 id;				/* not 0 */
	s32 pid;			/* pid and tid are 0 if they are not known */
	s32 tid;
	u32 reserved;
	u64 space;			/* the module's id of its address space */
	char comm[16];			/* terminated */
};

/* Where a file, or other memory, is mapped. */
struct format_mapping {
	u32 id;				/* not 0 */
	u32 file;
	u64 bias;			/* address - offset in the file; 0 with FORMAT_FILE_NONE */
	u64 start;			/* the first address */
};

/* Bits of format_sample.flags */
#define FORMAT_SAMPLE_SYSTEM	(1U << 0)	/* the tick interrupted the kernel */
#define FORMAT_SAMPLE_EXEC	(1U << 1)	/* the thread was in exec: there is no pc */
#define FORMAT_SAMPLE_EXIT	(1U << 2)	/* the thread was exiting: there is no pc */
#define FORMAT_SAMPLE_PENDING	(1U << 3)	/* the thread stayed in the kernel: no mapping */

/* Bits of format_frame.flags */
#define FORMAT_FRAME_BY_TABLE	(1U << 0)	/* found without the frame pointer */

/* An address in a stack, which an instruction of the mapping precedes. */
struct format_frame {
	u64 offset;			/* of the address; itself if it is not in a file */
	u32 mapping;			/* 0 if it is not known */
	u32 flags;			/* FORMAT_FRAME_* bits */
};

/* The callers of one or more samples. */
struct format_stack {
	u32 id;				/* not 0 */
	u32 end;			/* enum profil_stack_end */
	u32 nr;				/* number of frames, at most FORMAT_STACK_MAX */
	u32 reserved;
	/*
	 * Words that may be the return address of the innermost function: see struct profil_stack.
	 * They are 0 unless they are in an executable mapping.
	 */
	struct format_frame innermost[2];
	const struct format_frame *frames;	/* return addresses, the innermost first */
};

/* What the kernel did in one or more samples. */
struct format_call {
	u32 id;				/* not 0 */
	s32 nr;				/* of the system call, in its ABI; -1: it was no call */
	u32 arch;			/* AUDIT_ARCH_* of <linux/audit.h>; 0: it was no call */
	u32 reserved;
	const char *name;
};

/* A tick. */
struct format_sample {
	u64 time;
	u64 offset;			/* of the pc; its address if it is not in a file */
	u32 thread;
	u32 mapping;			/* 0 if it is not known */
	u32 cpu;
	u32 periods : 24;		/* 1 + the missed ticks just before this one */
	u32 flags : 8;
	u32 stack;			/* 0 if it has none. Version 2 ends before this. */
	u32 call;			/* 0 in user mode, or if it is not known */
};

#define FORMAT_PERIODS_MAX	((1U << 24) - 1)

/*
 * A bit of format_symbol.file: the other bits are the id of a thread whose process has made the
 * function at run time. Then start and end are addresses.
 */
#define FORMAT_SYMBOL_JIT	(1U << 31)

/* A function that has samples. */
struct format_symbol {
	u32 file;
	u32 reserved;
	u64 start;			/* offsets in the file */
	u64 end;
	const char *name;		/* mangled; "" if only the extent is known */
};

/* Bits of format_detached.flags */
#define FORMAT_DETACHED_UNREADABLE (1U << 0)	/* the user may not read the program */

/* Why functions that a process has made at run time have no names */
enum format_nameless_reason {
	FORMAT_NAMELESS_NONE = 1,	/* there was no file with names */
	FORMAT_NAMELESS_ENDED = 2,	/* the process had ended before one was looked for */
	FORMAT_NAMELESS_HIDDEN = 3,	/* the recorder may not look into the process */
	FORMAT_NAMELESS_OLD = 4,	/* its time is before the start of the process */
	FORMAT_NAMELESS_OWNER = 5,	/* it belongs to another user */
	FORMAT_NAMELESS_DENIED = 6,	/* the recorder may not read it */
	FORMAT_NAMELESS_IRREGULAR = 7,	/* it is not a regular file */
	FORMAT_NAMELESS_LARGE = 8,	/* it is too large */
	FORMAT_NAMELESS_COSTLY = 9,	/* reading it took too much time or memory */
	FORMAT_NAMELESS_OTHER = 10,	/* it has no function there */
	FORMAT_NAMELESS_MANY = 11,	/* files of so many processes are not read */
};

/* A process that has samples in functions that it has made at run time, without a name. */
struct format_nameless {
	u32 thread;			/* one of its threads */
	u32 reason;			/* enum format_nameless_reason */
	s32 pid;			/* in the name of the file that was not used */
	u32 is_dump;			/* 1: that is a jit-PID.dump; 0: a perf-PID.map */
};

/* An exec that the recording did not follow. Without flags, the program gains privilege. */
struct format_detached {
	u64 time;
	s32 pid;
	u32 flags;
	const char *path;
};

/* Statistics of a session: the members of struct profil_stats from ticks on. */
struct format_stats {
	u64 ticks, hit, outside, saturated, dropped;
	u64 dropped_overrun, dropped_buffer, dropped_contended;
	u64 user, system, unselected, missed, expected, locked;
	u64 dropped_exec, dropped_exit, dropped_record;
	u64 unfollowed, targets;
};

/* Statistics since the start. The blocks before this one contain samples of all ticks in it. */
struct format_account {
	struct format_stats stats;
	u64 own;			/* ticks of the recorder, or of its child until its exec */
	u64 time;
	u64 peak_locked;		/* maximum of stats.locked */
};

enum format_reason {
	FORMAT_END_COMMAND = 1,		/* the command ended */
	FORMAT_END_SIGNAL = 2,		/* a signal ended the recording */
	FORMAT_END_DURATION = 3,	/* the duration was over */
	FORMAT_END_TARGETS = 4,		/* all processes ended */
	FORMAT_END_ROTATE = 5,		/* the next file continues the recording */
};

struct format_end {
	u64 time;
	s32 status;			/* of the command, as from wait() */
	u32 reason;			/* enum format_reason */
};

/*
 * The writer. It keeps blocks in memory until format_flush(), or until there are about 64 KiB.
 * After an error of write(), nothing more is written, and the file is truncated to its last
 * complete block. If nobody reads from a pipe for 30 seconds, the error is ETIMEDOUT.
 */
struct format_writer;

/* @fd: an open file, which the writer closes. */
struct format_writer *format_create(int fd);

/* @data: the structure for a block of this @type, which is not SAMPLES. */
void format_write(struct format_writer *writer, enum format_type type, const void *data);

/* Samples are collected. Other blocks, except STATS, can get into the file before them. */
void format_write_sample(struct format_writer *writer, const struct format_sample *sample);

/*
 * Return 0, or -1 with errno set to the first error of all calls. format_close() frees @writer.
 * @nr_samples: Out: number of samples in the file, if not NULL.
 */
int format_flush(struct format_writer *writer);
int format_close(struct format_writer *writer, u64 *nr_samples);

/* A block of a file. */
struct format_block {
	enum format_type type;
	size_t nr_samples;
	union {
		struct format_meta meta;
		struct format_file file;
		struct format_thread thread;
		struct format_mapping mapping;
		struct format_stack stack;
		struct format_call call;
		const struct format_sample *samples;
		struct format_symbol symbol;
		struct format_nameless nameless;
		struct format_detached detached;
		struct format_account account;
		struct format_end end;
	};
};

/**
 * struct format_reader - A file that is being read
 * @at: Offset in the file of the current block.
 * @skipped: Damaged bytes that were skipped.
 * @nr_skips: Number of places where bytes were skipped.
 * @error: After the last block, the reason why the file cannot be read from @at on; or NULL.
 */
struct format_reader {
	u64 at;
	u64 skipped;
	u64 nr_skips;
	const char *error;

	/* Only format.c uses these. */
	int fd;
	u32 version;
	struct format_sample *samples;	/* of the current block, if its version is older */
	bool eof;			/* of the file, but not of the buffer */
	bool ended;
	u64 skip_at;			/* while bytes are skipped, the offset of the first one */
	unsigned int nr_invalid;	/* marks without a valid block */
	size_t start;			/* of the current block, in the buffer */
	size_t fill;			/* bytes in the buffer */
	size_t block;			/* bytes of the current block */
	u8 buffer[] __attribute__((aligned(8)));
};

/*
 * Open a file to which a recorder may still be writing. @path can be "-" for standard input; @fd
 * belongs to the reader from then on. Return NULL and an error message if it is not a recording.
 */
struct format_reader *format_open(const char *path, const char **error);
struct format_reader *format_open_fd(int fd, const char **error);

/*
 * Reads the next block, and skips invalid blocks. Returns false if there is none. The pointers in
 * @block are valid until the next call.
 */
bool format_next(struct format_reader *reader, struct format_block *block);

/* Returns true if a recorder is still writing the file. */
bool format_busy(const struct format_reader *reader);
void format_free(struct format_reader *reader);

#endif /* PROFIL_TOOLS_FORMAT_H */
