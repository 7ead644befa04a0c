// SPDX-License-Identifier: GPL-2.0
/*
 * generate FILE: writes a recording with the recorder's own functions, from a description on
 * standard input, as in words.h:
 *
 *	clock NS			the period of the clock in the next meta, if not 4 ms
 *	meta FLAGS MODES HOST RELEASE [COMMAND]
 *	stacks				meta, if there are stacks
 *	thread ID SPACE PID TID COMM	TID 0: the main thread
 *	file ID PATH			an existing file
 *	stale ID PATH			an existing file, with an identity that does not match
 *	name ID NAME			a name without a file
 *	stack ID END WORD WORD FRAME...	each is FILE:OFFSET; 0:0 is no word, 0:OFFSET an address
 *	call ID NR ARCH NAME
 *	sample THREAD FILE OFFSET BIAS USER SYSTEM [STACK [CALL]]
 *					this number of ticks, of which those in SYSTEM have the CALL
 *	tick THREAD FILE OFFSET BIAS MS CPU PERIODS FLAGS [STACK [CALL]]
 *					a tick MS ms after the start
 *	symbol FILE START END [NAME]
 *	nameless THREAD REASON PID IS_DUMP
 *	detached PID PATH [FLAGS]
 *	account TICKS HIT OUTSIDE DROPPED USER SYSTEM MISSED EXPECTED [OWN [TARGETS]]
 *	end STATUS REASON
 *	cut				nothing follows
 *	limit BYTES			limits the size of files
 *	run COMMAND			runs COMMAND; the file is open, with all items above
 *
 * What is missing has usual values: meta, which is first, "meta 2 3 host 6.1 a"; thread, which is
 * next, "thread 1 7 100 0 a"; at the end, the account of all ticks, and "end 0 1".
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/datafile.h"
#include "recording/format.h"
#include "symbols/files.h"
#include "words.h"

/* 2026-01-02 03:04:05 UTC */
#define START_TIME (1767323045ULL * 1000000000)
#define START_MONOTONIC (1000ULL * 1000000000)
#define TICK_NS 4000000
#define FILES_MAX 64

static const char *path;
static struct format_writer *writer;
static u64 tick_ns = TICK_NS;
static u32 file_flags[FILES_MAX];
static u64 user_ticks, system_ticks;
static bool has_meta, has_thread, has_account, has_end;

static void set_clock(void)
{
	tick_ns = number(1);
}

static void put_meta(u32 flags, u32 modes, const char *host, const char *release,
		     const char *command)
{
	has_meta = true;
	format_write(writer, FORMAT_META, &(struct format_meta){
		.start_time = START_TIME,
		.start_monotonic = START_MONOTONIC,
		.tick_ns = tick_ns,
		.flags = flags,
		.modes = modes,
		.hostname = host,
		.release = release,
		.pid = 100,
		.command = command,
	});
}

static void write_meta(void)
{
	char command[4096] = "";

	for (int i = 5; i < nr_words && strlen(command) < sizeof(command) - 1; i++)
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%s",
			 i > 5 ? " " : "", words[i]);
	put_meta(number(1), number(2), word(3), word(4),
		 nr_words > 5 ? command : "/usr/bin/program");
}

static void write_stacks(void)
{
	put_meta(FORMAT_CHILDREN | FORMAT_STACKS, 3, "host", "6.1", "a");
}

static void put_thread(u32 id, u64 space, u32 pid, u32 tid, const char *comm)
{
	struct format_thread thread = { .id = id, .space = space, .pid = pid, .tid = tid ?: pid };

	if (!has_meta)
		put_meta(FORMAT_CHILDREN, 3, "host", "6.1", "a");
	has_thread = true;
	snprintf(thread.comm, sizeof(thread.comm), "%s", comm);
	format_write(writer, FORMAT_THREAD, &thread);
}

static void write_thread(void)
{
	put_thread(number(1), number(2), number(3), number(4), word(5));
}

/* Writes an item after those that must precede it. */
static void put(enum format_type type, const void *item)
{
	if (!has_thread)
		put_thread(1, 7, 100, 0, "a");
	format_write(writer, type, item);
}

static void write_file(void)
{
	struct format_file file = { .id = number(1), .path = word(2) };
	struct stat st;
	int fd = open(file.path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", file.path);
	file_flags[file.id % FILES_MAX] = 0;
	file.ino = st.st_ino;
	file.size = st.st_size;
	file.mtime = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
	file.build_id_len = buildid_of_fd(fd, file.build_id);
	close(fd);
	put(FORMAT_FILE, &file);
}

static void write_stale(void)
{
	put(FORMAT_FILE, &(struct format_file){
		.id = number(1),
		.ino = 1,
		.size = 1,
		.mtime = 1,
		.build_id_len = 20,
		.build_id = { 1, 2, 3 },
		.path = word(2),
	});
}

static void write_name(void)
{
	const struct format_file file = {
		.id = number(1),
		.flags = FORMAT_FILE_NONE,
		.path = word(2),
	};

	file_flags[file.id % FILES_MAX] = file.flags;
	put(FORMAT_FILE, &file);
}

/*
 * Writes a mapping, unless it is the last one of its file. @bias: in a file, its bias; in other
 * memory, its start. Returns its id.
 */
static u32 map(u32 file, u64 bias)
{
	static struct format_mapping mappings[FILES_MAX];
	static u32 last;
	struct format_mapping *mapping = &mappings[file % FILES_MAX];

	if (!file)
		return 0;
	if (mapping->file == file && mapping->start == bias)
		return mapping->id;
	*mapping = (struct format_mapping){ .id = ++last, .file = file, .start = bias };
	if (!(file_flags[file % FILES_MAX] & FORMAT_FILE_NONE))
		mapping->bias = bias;
	put(FORMAT_MAPPING, mapping);
	return mapping->id;
}

static struct format_frame read_frame(int i)
{
	unsigned int file;
	long long offset;

	if (sscanf(word(i), "%u:%lli", &file, &offset) != 2)
		errx(1, "stack: not a frame: %s", word(i));
	return (struct format_frame){ .offset = offset, .mapping = map(file, 0) };
}

static void write_stack(void)
{
	struct format_frame frames[WORDS_MAX];
	struct format_stack stack = {
		.id = number(1),
		.end = number(2),
		.innermost = { read_frame(3), read_frame(4) },
		.frames = frames,
	};

	for (int i = 5; i < nr_words; i++)
		frames[stack.nr++] = read_frame(i);
	put(FORMAT_STACK, &stack);
}

static void write_call(void)
{
	put(FORMAT_CALL, &(struct format_call){
		.id = number(1),
		.nr = number(2),
		.arch = number(3),
		.name = word(4),
	});
}

static void put_sample(const struct format_sample *sample)
{
	if (!has_thread)
		put_thread(1, 7, 100, 0, "a");
	*(sample->flags & FORMAT_SAMPLE_SYSTEM ? &system_ticks : &user_ticks) += 1;
	format_write_sample(writer, sample);
}

static void write_sample(void)
{
	const u64 user = number(5), all = user + number(6);
	struct format_sample sample = {
		.thread = number(1),
		.mapping = map(number(2), number(4)),
		.offset = number(3),
		.time = START_MONOTONIC,
		.periods = 1,
		.stack = optional(7),
	};

	for (u64 i = 0; i < all; i++) {
		sample.flags = i < user ? 0 : FORMAT_SAMPLE_SYSTEM;
		sample.call = i < user ? 0 : optional(8);
		put_sample(&sample);
	}
}

static void write_tick(void)
{
	put_sample(&(struct format_sample){
		.thread = number(1),
		.mapping = map(number(2), number(4)),
		.offset = number(3),
		.time = START_MONOTONIC + number(5) * 1000000,
		.cpu = number(6),
		.periods = number(7),
		.flags = number(8),
		.stack = optional(9),
		.call = optional(10),
	});
}

static void write_symbol(void)
{
	put(FORMAT_SYMBOL, &(struct format_symbol){
		.file = number(1),
		.start = number(2),
		.end = number(3),
		.name = nr_words > 4 ? word(4) : "",
	});
}

static void write_nameless(void)
{
	put(FORMAT_NAMELESS, &(struct format_nameless){
		.thread = number(1),
		.reason = number(2),
		.pid = number(3),
		.is_dump = number(4),
	});
}

static void write_detached(void)
{
	put(FORMAT_DETACHED, &(struct format_detached){
		.time = START_MONOTONIC,
		.pid = number(1),
		.path = word(2),
		.flags = optional(3),
	});
}

static void put_account(const struct format_stats *stats, u64 own)
{
	has_account = true;
	put(FORMAT_STATS, &(struct format_account){
		.stats = *stats,
		.own = own,
		.time = START_MONOTONIC + 2500000000ULL,
		.peak_locked = 65536,
	});
}

static void write_account(void)
{
	put_account(&(struct format_stats){
		.ticks = number(1),
		.hit = number(2),
		.outside = number(3),
		.dropped = number(4),
		.dropped_record = number(4),
		.user = number(5),
		.system = number(6),
		.missed = number(7),
		.expected = number(8),
		.targets = optional(10),
	}, optional(9));
}

static void put_end(u32 status, u32 reason)
{
	const u64 all = user_ticks + system_ticks;

	if (!has_account)
		put_account(&(struct format_stats){
			.ticks = all,
			.outside = all,
			.user = user_ticks,
			.system = system_ticks,
			.expected = all,
		}, 0);
	has_end = true;
	put(FORMAT_END, &(struct format_end){
		.time = START_MONOTONIC + 12300000000ULL,
		.status = status,
		.reason = reason,
	});
}

static void write_end(void)
{
	put_end(number(1), number(2));
}

static void cut(void)
{
	has_end = true;
}

static void limit(void)
{
	const struct rlimit rlimit = { .rlim_cur = number(1), .rlim_max = number(1) };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &rlimit))
		err(1, "limit");
}

static void flush(void)
{
	if (format_flush(writer))
		err(1, "%s", path);
}

static const struct item items[] = {
	{ "tick", write_tick }, { "sample", write_sample }, { "clock", set_clock },
	{ "meta", write_meta }, { "stacks", write_stacks }, { "thread", write_thread },
	{ "file", write_file }, { "stale", write_stale }, { "name", write_name },
	{ "stack", write_stack }, { "call", write_call }, { "symbol", write_symbol },
	{ "nameless", write_nameless }, { "detached", write_detached },
	{ "account", write_account }, { "end", write_end }, { "cut", cut }, { "limit", limit }, {}
};

int main(int argc, char **argv)
{
	struct datafile file;
	const char *error;

	if (argc != 2)
		errx(1, "usage: generate FILE <DESCRIPTION");
	path = argv[1];
	error = datafile_open(&file, path) ?: datafile_start(&file);
	if (error)
		errx(1, "%s: %s", path, error);
	writer = format_create(file.fd);
	read_items(items, flush);
	if (!has_end)
		put_end(0, FORMAT_END_COMMAND);
	if (format_close(writer, NULL))
		err(1, "%s", path);
	return 0;
}
