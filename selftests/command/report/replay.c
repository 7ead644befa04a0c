// SPDX-License-Identifier: GPL-2.0
/*
 * replay FILE: writes a recording with the part of the recorder that gets records from the module.
 * Each line of standard input describes a record, or a command that is run in between:
 *
 *	file PID PATH OFFSET [N]	a tick in a file; or N ticks at 64 different offsets
 *	other PID PATH OFFSET		a tick in a file with this inode number on another device
 *	gone PID PATH OFFSET		a tick in the program of the process, with this path
 *	stacks PID PATH OFFSET N DEPTH	N ticks in a file, with different stacks; the first again
 *	walk PID PATH OFFSET TIME END [ADDRESS...]
 *					a tick in a file, TIME s after the others, whose
 *					walk ended with END at the last ADDRESS, an
 *					offset; with a t, a table has led there. Prints
 *					as what the recorder counts it. From the first
 *					one on, the session gets tables.
 *	mappings PID N			ticks in N mappings without a file, each with a stack
 *	memory PID ADDRESS		a tick in memory that is not a file
 *	unmapped PID ADDRESS		a tick in memory that was not mapped any more
 *	pending PID ADDRESS		a tick of a thread that has stayed in the kernel
 *	call PID NR ARCH FLAGS		a tick in a system call, with these flags, too
 *	exec PID COMM			a tick in exec, by a thread with this name
 *	reaped PID TID COMM		a tick in exit, of a thread that was reaped before
 *	run COMMAND
 *
 * The time of all other ticks is that of the start.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <profil.h>

#include "recording/stream.h"
#include "recording/tables.h"

#define BIAS 0x10000000

/* A record, with room for its path. */
union record_room {
	struct profil_record record;
	char bytes[sizeof(struct profil_record) + 256 + sizeof(struct profil_stack) +
		   FORMAT_STACK_MAX * sizeof(u64)];
};

static u64 start;

/* Adds a stack to a record that has its path. */
static struct profil_stack *add_stack(union record_room *room)
{
	room->record.size = sizeof(*room);
	room->record.flags |= PROFIL_RECORD_STACK;
	return (struct profil_stack *)profil_record_stack(&room->record);
}

static void replay(struct stream *stream, struct profil_record *record)
{
	record->time += start;
	record->periods = 1;
	if (!record->tid) {
		record->tid = record->pid;
		record->space = record->pid;
	}
	if (!*record->comm)
		strcpy(record->comm, "replayed");
	stream_record(stream, record);
}

static void replay_file(struct stream *stream, const char *line)
{
	union record_room room = {};
	struct profil_record *record = &room.record;
	char path[256], proc[32];
	const bool is_gone = *line == 'g';
	struct stat st;
	long long offset;
	unsigned int nr = 1;

	if (sscanf(line, "%*s %d %255s %lli %u", &record->pid, path, &offset, &nr) < 3)
		errx(1, "wrong: %s", line);
	snprintf(proc, sizeof(proc), "/proc/%d/exe", record->pid);
	if (stat(is_gone ? proc : path, &st))
		err(1, "%s", path);
	strcpy(room.bytes + offsetof(struct profil_record, path), path);
	record->flags = PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE;
	record->start = BIAS;
	record->end = 2 * BIAS;
	record->offset = offset;
	record->ino = st.st_ino;
	record->major = major(st.st_dev);
	record->minor = minor(st.st_dev) + (*line == 'o');
	for (unsigned int i = 0; i < nr; i++, record->offset = offset + i * 7 % 64) {
		record->pc = BIAS + record->offset;
		replay(stream, record);
	}
}

/* Sets the mapping of a record, and its pc, which is at @offset in the file. */
static void map_file(union record_room *room, const char *path, long long offset)
{
	struct profil_record *record = &room->record;
	struct stat st;

	if (stat(path, &st))
		err(1, "%s", path);
	strcpy(room->bytes + offsetof(struct profil_record, path), path);
	record->flags = PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE;
	record->start = BIAS;
	record->end = 2 * BIAS;
	record->offset = offset;
	record->pc = BIAS + offset;
	record->ino = st.st_ino;
	record->major = major(st.st_dev);
	record->minor = minor(st.st_dev);
}

/* Each stack has one address more from those at which another one begins. */
static void replay_stacks(struct stream *stream, const char *line)
{
	union record_room room = {};
	struct profil_record *record = &room.record;
	struct profil_stack *stack;
	unsigned int nr, depth;
	long long offset;
	char path[200];

	if (sscanf(line, "%*s %d %199s %lli %u %u", &record->pid, path, &offset, &nr, &depth) < 5 ||
	    depth > FORMAT_STACK_MAX)
		errx(1, "wrong: %s", line);
	map_file(&room, path, offset);
	stack = add_stack(&room);
	stack->nr = depth;
	for (unsigned int i = 0; i <= nr; i++) {
		for (unsigned int j = 0; j < depth; j++)
			stack->addresses[j] = BIAS + offset + (i % nr >> j % 16 & 1) + 1;
		replay(stream, record);
	}
}

static int take_table(void *data, const struct profil_unwind *table)
{
	(void)data;
	(void)table;
	return 0;
}

static void print_change(const struct completeness *old, const struct completeness *new)
{
	if (new->complete != old->complete)
		puts("complete");
	if (new->lost != old->lost)
		puts("lost");
	if (new->unchecked != old->unchecked)
		puts("unchecked");
	if (new->unknown != old->unknown)
		puts("unknown");
	for (int i = 0; i < COMPLETENESS_ENDS; i++)
		if (new->ends[i] != old->ends[i])
			printf("end %d\n", i);
}

static void replay_walk(struct stream *stream, const char *line)
{
	static const struct tables_use use = { .give = take_table, .max_rows = UNWIND_ROWS_MAX };
	union record_room room = {};
	struct profil_record *record = &room.record;
	struct completeness old;
	struct profil_stack *stack;
	unsigned int time, end;
	long long offset;
	char path[200], *next;
	int len;

	if (sscanf(line, "%*s %d %199s %lli %u %u%n", &record->pid, path, &offset, &time, &end,
		   &len) < 5)
		errx(1, "wrong: %s", line);
	map_file(&room, path, offset);
	record->time = time * NS_PER_S;
	stack = add_stack(&room);
	stack->end = end;
	for (line += len; offset = strtoll(line, &next, 0), next != line; line = next) {
		const bool by_table = *next == 't';

		stack->addresses[stack->nr++] = (BIAS + offset) |
						(by_table ? PROFIL_STACK_BY_TABLE : 0);
		next += by_table;
	}
	if (!stream->tables)
		stream->tables = tables_new(&use);
	old = stream->completeness;
	replay(stream, record);
	print_change(&old, &stream->completeness);
}

static void replay_mappings(struct stream *stream, const char *line)
{
	union record_room room = {};
	struct profil_record *record = &room.record;
	struct profil_stack *stack;
	unsigned int nr;

	if (sscanf(line, "%*s %d %u", &record->pid, &nr) != 2)
		errx(1, "wrong: %s", line);
	record->flags = PROFIL_RECORD_MAPPED;
	stack = add_stack(&room);
	stack->nr = 1;
	for (unsigned int i = 0; i < nr; i++) {
		record->start = BIAS + i * 8192ULL;
		record->end = record->start + 4096;
		record->pc = record->start;
		stack->addresses[0] = record->start + 1;
		replay(stream, record);
	}
}

static void replay_memory(struct stream *stream, const char *line)
{
	union record_room room = {};
	struct profil_record *record = &room.record;
	long long pc;

	if (sscanf(line, "%*s %d %lli", &record->pid, &pc) != 2)
		errx(1, "wrong: %s", line);
	record->flags = *line == 'm' ? PROFIL_RECORD_MAPPED :
			*line == 'p' ? PROFIL_RECORD_SYSTEM | PROFIL_RECORD_PENDING : 0;
	record->pc = pc;
	record->start = pc & ~0xfffULL;
	record->end = record->start + 4096;
	replay(stream, record);
}

static void replay_call(struct stream *stream, const char *line)
{
	struct profil_record record = { .pc = BIAS };

	if (sscanf(line, "%*s %d %i %i %i", &record.pid, &record.syscall, (int *)&record.arch,
		   (int *)&record.flags) != 4)
		errx(1, "wrong: %s", line);
	record.flags |= PROFIL_RECORD_SYSTEM;
	replay(stream, &record);
}

static void replay_exec(struct stream *stream, const char *line)
{
	struct profil_record record = { .flags = PROFIL_RECORD_SYSTEM | PROFIL_RECORD_EXEC };

	if (sscanf(line, "%*s %d %15s", &record.pid, record.comm) != 2)
		errx(1, "wrong: %s", line);
	replay(stream, &record);
}

static void replay_reaped(struct stream *stream, const char *line)
{
	struct profil_record record = { .flags = PROFIL_RECORD_SYSTEM | PROFIL_RECORD_EXIT };

	if (sscanf(line, "%*s %d %d %15s", &record.pid, &record.tid, record.comm) != 3)
		errx(1, "wrong: %s", line);
	replay(stream, &record);
}

int main(int argc, char **argv)
{
	const struct format_meta meta = {
		.tick_ns = 1000000,
		.flags = FORMAT_STACKS,
		.hostname = "host",
		.release = "6.1",
		.command = "replayed",
	};
	struct format_account account = {};
	struct format_writer *writer;
	struct stream stream = {};
	char *line = NULL;
	size_t size = 0;
	int fd = -1, ignored;

	if (argc == 2)
		fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", argc == 2 ? argv[1] : "usage: replay FILE");
	start = clock_ns(CLOCK_MONOTONIC);
	writer = format_create(fd);
	format_write(writer, FORMAT_META, &meta);
	stream_init(&stream, writer);
	while (getline(&line, &size, stdin) > 0) {
		if (!strncmp(line, "file ", 5) || !strncmp(line, "other ", 6) ||
		    !strncmp(line, "gone ", 5))
			replay_file(&stream, line);
		else if (!strncmp(line, "stacks ", 7))
			replay_stacks(&stream, line);
		else if (!strncmp(line, "walk ", 5))
			replay_walk(&stream, line);
		else if (!strncmp(line, "mappings ", 9))
			replay_mappings(&stream, line);
		else if (!strncmp(line, "memory ", 7) || !strncmp(line, "unmapped ", 9) ||
			 !strncmp(line, "pending ", 8))
			replay_memory(&stream, line);
		else if (!strncmp(line, "call ", 5))
			replay_call(&stream, line);
		else if (!strncmp(line, "exec ", 5))
			replay_exec(&stream, line);
		else if (!strncmp(line, "reaped ", 7))
			replay_reaped(&stream, line);
		else if (strncmp(line, "run ", 4) || system(line + 4))
			errx(1, "failed: %s", line);
	}
	free(line);
	ignored = stream_finish(&stream);
	if (ignored)
		warnx("files that are too large: %d", ignored);
	account.stats.ticks = stream.ticks;
	account.stats.outside = stream.ticks;
	format_write(writer, FORMAT_STATS, &account);
	if (format_close(writer, NULL))
		err(1, "%s", argv[1]);
	stream_free(&stream);
	stream_close(&stream);
	tables_free(stream.tables);
	return 0;
}
