// SPDX-License-Identifier: GPL-2.0
/*
 * generate FILE: writes a recording with the recorder's own functions, from a description on
 * standard input
 *
 * Each line describes one item. Blanks separate words, and \xNN is any byte:
 *
 *	clock NS			the period of the clock in the next meta, if not 4 ms
 *	meta FLAGS MODES HOST RELEASE [COMMAND]
 *	file ID PATH			an existing file
 *	stale ID PATH			an existing file, with an identity that does not match
 *	name ID NAME			a name without a file
 *	thread ID SPACE PID TID COMM	TID 0: the main thread
 *	stack ID END WORD WORD FRAME...	each is FILE:OFFSET; 0:0 is no word, 0:OFFSET an address
 *	call ID NR ARCH NAME
 *	sample THREAD FILE OFFSET BIAS USER SYSTEM [STACK [CALL]]
 *					this number of ticks, of which those in SYSTEM have the CALL
 *	tick THREAD FILE OFFSET BIAS MS CPU PERIODS FLAGS [STACK [CALL]]
 *					a tick MS ms after the start
 *	symbol FILE START END [NAME]
 *	nameless THREAD REASON PID IS_DUMP
 *	detached PID PATH [FLAGS]
 *	account TICKS HIT OUTSIDE DROPPED USER SYSTEM MISSED EXPECTED [OWN]
 *	end STATUS REASON
 *	limit BYTES			limits the size of files
 *	run COMMAND			runs COMMAND; the file is open, with all items above
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/files.h"
#include "recording/datafile.h"
#include "recording/format.h"

#define WORDS_MAX 64
/* 2026-01-02 03:04:05 UTC */
#define START_TIME (1767323045ULL * 1000000000)
#define START_MONOTONIC (1000ULL * 1000000000)
#define TICK_NS 4000000
#define FILES_MAX 64

static u64 tick_ns = TICK_NS;
static u32 file_flags[FILES_MAX];
static char *words[WORDS_MAX + 1];
static int nr_words;

static const char *word(int i)
{
	if (i >= nr_words)
		errx(1, "%s: a word is missing", words[0]);
	return words[i];
}

static u64 number(int i)
{
	char *end;
	u64 value = strtoull(word(i), &end, 0);

	if (*end)
		errx(1, "%s: not a number: %s", words[0], word(i));
	return value;
}

static void unescape(char *text)
{
	unsigned int byte;
	char *to = text;

	for (; *text; text++) {
		if (sscanf(text, "\\x%2x", &byte) == 1) {
			*to++ = byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static void split(char *line)
{
	nr_words = 0;
	line[strcspn(line, "\n")] = '\0';
	for (char *at = strtok(line, " "); at && nr_words < WORDS_MAX; at = strtok(NULL, " ")) {
		unescape(at);
		words[nr_words++] = at;
	}
	words[nr_words] = NULL;
}

static void write_meta(struct format_writer *writer)
{
	char command[4096] = "";
	struct format_meta meta = {
		.start_time = START_TIME,
		.start_monotonic = START_MONOTONIC,
		.tick_ns = tick_ns,
		.flags = number(1),
		.modes = number(2),
		.hostname = word(3),
		.release = word(4),
		.pid = 100,
		.command = nr_words > 5 ? command : "/usr/bin/program",
	};
	for (int i = 5; i < nr_words && strlen(command) < sizeof(command) - 1; i++)
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%s",
			 i > 5 ? " " : "", words[i]);
	format_write(writer, FORMAT_META, &meta);
}

static void write_file(struct format_writer *writer, u32 flags)
{
	struct format_file file = { .id = number(1), .flags = flags, .path = word(2) };
	struct stat st;
	int fd;

	file_flags[file.id % FILES_MAX] = flags;
	if (!flags) {
		fd = open(file.path, O_RDONLY);
		if (fd < 0 || fstat(fd, &st))
			err(1, "%s", file.path);
		file.ino = st.st_ino;
		file.size = st.st_size;
		file.mtime = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
		file.build_id_len = buildid_of_fd(fd, file.build_id);
		close(fd);
	}
	format_write(writer, FORMAT_FILE, &file);
}

static void write_stale(struct format_writer *writer)
{
	struct format_file file = {
		.id = number(1),
		.ino = 1,
		.size = 1,
		.mtime = 1,
		.build_id_len = 20,
		.build_id = { 1, 2, 3 },
		.path = word(2),
	};

	format_write(writer, FORMAT_FILE, &file);
}

static void write_thread(struct format_writer *writer)
{
	struct format_thread thread = {
		.id = number(1),
		.space = number(2),
		.pid = number(3),
		.tid = number(4) ?: number(3),
	};

	snprintf(thread.comm, sizeof(thread.comm), "%s", word(5));
	format_write(writer, FORMAT_THREAD, &thread);
}

/*
 * Writes a mapping, unless it is the last one of its file. @bias: in a file, its bias; in other
 * memory, its start. Returns its id.
 */
static u32 map(struct format_writer *writer, u32 file, u64 bias)
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
	format_write(writer, FORMAT_MAPPING, mapping);
	return mapping->id;
}

static struct format_frame read_frame(struct format_writer *writer, int i)
{
	struct format_frame frame = {};
	unsigned int file;
	long long offset;

	if (sscanf(word(i), "%u:%lli", &file, &offset) != 2)
		errx(1, "stack: not a frame: %s", word(i));
	frame.offset = offset;
	frame.mapping = map(writer, file, 0);
	return frame;
}

static void write_stack(struct format_writer *writer)
{
	struct format_frame frames[WORDS_MAX];
	struct format_stack stack = {
		.id = number(1),
		.end = number(2),
		.innermost = { read_frame(writer, 3), read_frame(writer, 4) },
		.frames = frames,
	};

	for (int i = 5; i < nr_words; i++)
		frames[stack.nr++] = read_frame(writer, i);
	format_write(writer, FORMAT_STACK, &stack);
}

static void write_call(struct format_writer *writer)
{
	const struct format_call call = {
		.id = number(1),
		.nr = number(2),
		.arch = number(3),
		.name = word(4),
	};

	format_write(writer, FORMAT_CALL, &call);
}

static void write_ticks(struct format_writer *writer, struct format_sample sample, u64 user,
			u64 system, u32 call)
{
	sample.time = START_MONOTONIC;
	sample.periods = 1;
	for (u64 i = 0; i < user + system; i++) {
		sample.flags = i < user ? 0 : FORMAT_SAMPLE_SYSTEM;
		sample.call = i < user ? 0 : call;
		format_write_sample(writer, &sample);
	}
}

static void write_sample(struct format_writer *writer)
{
	struct format_sample sample = {
		.thread = number(1),
		.offset = number(3),
		.stack = nr_words > 7 ? number(7) : 0,
	};

	sample.mapping = map(writer, number(2), number(4));
	write_ticks(writer, sample, number(5), number(6), nr_words > 8 ? number(8) : 0);
}

static void write_tick(struct format_writer *writer)
{
	struct format_sample sample = {
		.thread = number(1),
		.offset = number(3),
		.time = START_MONOTONIC + number(5) * 1000000,
		.cpu = number(6),
		.periods = number(7),
		.flags = number(8),
		.stack = nr_words > 9 ? number(9) : 0,
		.call = nr_words > 10 ? number(10) : 0,
	};

	sample.mapping = map(writer, number(2), number(4));
	format_write_sample(writer, &sample);
}

static void write_symbol(struct format_writer *writer)
{
	struct format_symbol symbol = {
		.file = number(1),
		.start = number(2),
		.end = number(3),
		.name = nr_words > 4 ? word(4) : "",
	};

	format_write(writer, FORMAT_SYMBOL, &symbol);
}

static void write_nameless(struct format_writer *writer)
{
	const struct format_nameless nameless = {
		.thread = number(1),
		.reason = number(2),
		.pid = number(3),
		.is_dump = number(4),
	};

	format_write(writer, FORMAT_NAMELESS, &nameless);
}

static void write_detached(struct format_writer *writer)
{
	struct format_detached detached = {
		.time = START_MONOTONIC,
		.pid = number(1),
		.path = word(2),
		.flags = nr_words > 3 ? number(3) : 0,
	};

	format_write(writer, FORMAT_DETACHED, &detached);
}

static void write_account(struct format_writer *writer)
{
	struct format_account account = {
		.stats = {
			.ticks = number(1),
			.hit = number(2),
			.outside = number(3),
			.dropped = number(4),
			.dropped_record = number(4),
			.user = number(5),
			.system = number(6),
			.missed = number(7),
			.expected = number(8),
			.targets = nr_words > 10 ? number(10) : 0,
		},
		.own = nr_words > 9 ? number(9) : 0,
		.time = START_MONOTONIC + 2500000000ULL,
		.peak_locked = 65536,
	};

	format_write(writer, FORMAT_STATS, &account);
}

static void write_end(struct format_writer *writer)
{
	struct format_end end = {
		.time = START_MONOTONIC + 12300000000ULL,
		.status = number(1),
		.reason = number(2),
	};

	format_write(writer, FORMAT_END, &end);
}

static void limit(void)
{
	struct rlimit rlimit = { .rlim_cur = number(1), .rlim_max = number(1) };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &rlimit))
		err(1, "limit");
}

static void run(struct format_writer *writer, const char *path, const char *command)
{
	int status;

	if (format_flush(writer))
		err(1, "%s", path);
	fflush(stdout);
	status = system(command);
	if (status)
		errx(1, "%s: status %d", command, status);
}

static void interpret(struct format_writer *writer, char *line)
{
	split(line);
	if (!nr_words)
		return;
	if (!strcmp(words[0], "clock"))
		tick_ns = number(1);
	else if (!strcmp(words[0], "meta"))
		write_meta(writer);
	else if (!strcmp(words[0], "file"))
		write_file(writer, 0);
	else if (!strcmp(words[0], "stale"))
		write_stale(writer);
	else if (!strcmp(words[0], "name"))
		write_file(writer, FORMAT_FILE_NONE);
	else if (!strcmp(words[0], "thread"))
		write_thread(writer);
	else if (!strcmp(words[0], "stack"))
		write_stack(writer);
	else if (!strcmp(words[0], "call"))
		write_call(writer);
	else if (!strcmp(words[0], "sample"))
		write_sample(writer);
	else if (!strcmp(words[0], "tick"))
		write_tick(writer);
	else if (!strcmp(words[0], "symbol"))
		write_symbol(writer);
	else if (!strcmp(words[0], "nameless"))
		write_nameless(writer);
	else if (!strcmp(words[0], "detached"))
		write_detached(writer);
	else if (!strcmp(words[0], "account"))
		write_account(writer);
	else if (!strcmp(words[0], "end"))
		write_end(writer);
	else if (!strcmp(words[0], "limit"))
		limit();
	else
		errx(1, "what is %s?", words[0]);
}

int main(int argc, char **argv)
{
	struct format_writer *writer;
	struct datafile file;
	const char *error;
	char *line = NULL;
	size_t size = 0;

	if (argc != 2)
		errx(1, "usage: generate FILE <DESCRIPTION");
	error = datafile_open(&file, argv[1]) ?: datafile_start(&file);
	if (error)
		errx(1, "%s: %s", argv[1], error);
	writer = format_create(file.fd);
	while (getline(&line, &size, stdin) > 0) {
		if (!strncmp(line, "run ", 4))
			run(writer, argv[1], line + 4);
		else
			interpret(writer, line);
	}
	free(line);
	if (format_close(writer, NULL))
		err(1, "%s", argv[1]);
	return 0;
}
