// SPDX-License-Identifier: GPL-2.0
/*
 * generate FILE: writes a recording with the recorder's own functions, from a description on
 * standard input
 *
 * Each line describes one item. Blanks separate words, and \xNN is any byte:
 *
 *	meta FLAGS MODES HOST RELEASE DIRECTORY [ARG...]	RELEASE "=" is this kernel's
 *	file ID PATH			an existing file
 *	stale ID PATH			an existing file, with an identity that does not match
 *	name ID NAME			a name without a file
 *	process ID SPACE PID TID COMM
 *	sample PROCESS FILE OFFSET BIAS USER SYSTEM
 *	vdso PROCESS FILE SYMBOL USER	a sample in this function of the [vdso]
 *	account TICKS HIT OUTSIDE DROPPED USER SYSTEM MISSED EXPECTED
 *	end STATUS REASON
 *	limit BYTES			limits the size of files
 *	run COMMAND			runs COMMAND; the file is open, with all items above
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "symbols/buildid.h"
#include "recording/format.h"

#define WORDS_MAX 64
/* 2026-01-02 03:04:05 UTC */
#define START_TIME (1767323045ULL * 1000000000)
#define START_MONOTONIC (1000ULL * 1000000000)
#define TICK_NS 4000000
#define VDSO_AT 0x7fff00000000ULL

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

static int write_meta(struct format_writer *writer)
{
	struct format_meta meta = {
		.start_time = START_TIME,
		.start_monotonic = START_MONOTONIC,
		.tick_ns = TICK_NS,
		.flags = number(1),
		.modes = number(2),
		.hostname = word(3),
		.release = word(4),
		.directory = word(5),
	};
	struct utsname name;

	if (!strcmp(meta.release, "=") && !uname(&name))
		meta.release = name.release;
	return format_write_meta(writer, &meta, words + 6);
}

static int write_file(struct format_writer *writer, u32 flags)
{
	struct format_file file = { .id = number(1), .flags = flags, .path = word(2) };
	struct stat st;
	int fd;

	if (!flags) {
		fd = open(file.path, O_RDONLY);
		if (fd < 0 || fstat(fd, &st))
			err(1, "%s", file.path);
		file.ino = st.st_ino;
		file.size = st.st_size;
		file.mtime = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
		file.major = major(st.st_dev);
		file.minor = minor(st.st_dev);
		file.build_id_len = buildid_of_fd(fd, file.build_id);
		close(fd);
	}
	return format_write_file(writer, &file);
}

static int write_stale(struct format_writer *writer)
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

	return format_write_file(writer, &file);
}

static int write_process(struct format_writer *writer)
{
	struct format_process process = {
		.id = number(1),
		.space = number(2),
		.pid = number(3),
		.tid = number(4),
		.time = START_MONOTONIC,
	};

	snprintf(process.comm, sizeof(process.comm), "%s", word(5));
	return format_write_process(writer, &process);
}

static int write_sample(struct format_writer *writer)
{
	struct format_sample sample = {
		.process = number(1),
		.file = number(2),
		.offset = number(3),
		.bias = number(4),
		.user = number(5),
		.system = number(6),
	};

	return format_write_samples(writer, &sample, 1);
}

static int write_vdso(struct format_writer *writer)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	char *function = vdso ? dlsym(vdso, word(3)) : NULL;
	struct format_sample sample = {
		.process = number(1),
		.file = number(2),
		.bias = VDSO_AT,
		.user = number(4),
	};

	if (!function)
		errx(1, "the vdso has no %s", word(3));
	sample.offset = VDSO_AT + (function - (char *)getauxval(AT_SYSINFO_EHDR)) + 1;
	return format_write_samples(writer, &sample, 1);
}

static int write_account(struct format_writer *writer)
{
	struct format_account account = {
		.user = {
			.ticks = number(5),
			.hit = number(2),
			.outside = number(3) - number(6),
			.dropped = number(4),
			.dropped_record = number(4),
			.user = number(5),
			.unselected = number(6),
			.missed = number(7),
			.expected = number(8),
		},
		.system = {
			.ticks = number(6),
			.outside = number(6),
			.system = number(6),
			.unselected = number(5),
			.missed = number(7),
			.expected = number(8),
		},
		.time = START_MONOTONIC + 2500000000ULL,
		.peak_locked = 65536,
	};

	if (number(1) != number(5) + number(6))
		errx(1, "account: the ticks are not user + system");
	return format_write_account(writer, &account);
}

static int write_end(struct format_writer *writer)
{
	struct format_end end = {
		.time = START_MONOTONIC + 12300000000ULL,
		.status = number(1),
		.reason = number(2),
	};

	return format_write_end(writer, &end);
}

static int limit(void)
{
	struct rlimit rlimit = { .rlim_cur = number(1), .rlim_max = number(1) };

	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &rlimit);
}

static int run(struct format_writer *writer, const char *command)
{
	int status;

	if (format_flush(writer))
		return -1;
	fflush(stdout);
	status = system(command);
	if (status)
		errx(1, "%s: status %d", command, status);
	return 0;
}

static int interpret(struct format_writer *writer, char *line)
{
	if (!strncmp(line, "run ", 4))
		return run(writer, line + 4);
	split(line);
	if (!nr_words)
		return 0;
	if (!strcmp(words[0], "meta"))
		return write_meta(writer);
	if (!strcmp(words[0], "file"))
		return write_file(writer, 0);
	if (!strcmp(words[0], "stale"))
		return write_stale(writer);
	if (!strcmp(words[0], "name"))
		return write_file(writer, FORMAT_FILE_NONE);
	if (!strcmp(words[0], "process"))
		return write_process(writer);
	if (!strcmp(words[0], "sample"))
		return write_sample(writer);
	if (!strcmp(words[0], "vdso"))
		return write_vdso(writer);
	if (!strcmp(words[0], "account"))
		return write_account(writer);
	if (!strcmp(words[0], "end"))
		return write_end(writer);
	if (!strcmp(words[0], "limit"))
		return limit();
	errx(1, "what is %s?", words[0]);
}

int main(int argc, char **argv)
{
	struct format_writer *writer;
	char *line = NULL;
	size_t size = 0;

	if (argc != 2)
		errx(1, "usage: generate FILE <DESCRIPTION");
	writer = format_create(argv[1]);
	if (!writer)
		err(1, "%s", argv[1]);
	while (getline(&line, &size, stdin) > 0)
		if (interpret(writer, line))
			err(1, "%s", argv[1]);
	free(line);
	if (format_close(writer))
		err(1, "%s", argv[1]);
	return 0;
}
