// SPDX-License-Identifier: GPL-2.0
/*
 * replay FILE: writes a recording with the part of the recorder that gets records from the module.
 * Each line of standard input describes a record, as in words.h:
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
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <profil.h>

#include "recording/stream.h"
#include "recording/tables.h"
#include "words.h"

#define BIAS 0x10000000

/* The record, with room for its path and stack. It is empty at the begin of an item. */
static union {
	struct profil_record record;
	char bytes[sizeof(struct profil_record) + 256 + sizeof(struct profil_stack) +
		   FORMAT_STACK_MAX * sizeof(u64)];
} room;

static struct profil_record *const record = &room.record;
static struct stream stream;
static u64 start;

/* Begins a record of the process in the first word. */
static void begin(u32 flags)
{
	memset(&room, 0, sizeof(room));
	record->flags = flags;
	record->pid = number(1);
	record->tid = record->pid;
	record->space = record->pid;
	record->time = start;
	record->periods = 1;
	strcpy(record->comm, "replayed");
}

static void replay(void)
{
	stream_record(&stream, record);
}

/* Begins a record of the words PID PATH OFFSET. @found: where the file is found */
static void begin_file(const char *found)
{
	struct stat st;

	begin(PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE);
	if (stat(found, &st))
		err(1, "%s", found);
	snprintf(room.bytes + offsetof(struct profil_record, path), 256, "%s", word(2));
	record->start = BIAS;
	record->end = 2 * BIAS;
	record->offset = number(3);
	record->pc = BIAS + record->offset;
	record->ino = st.st_ino;
	record->major = major(st.st_dev);
	record->minor = minor(st.st_dev);
}

/* Adds a stack to a record that has its path. */
static struct profil_stack *add_stack(void)
{
	record->size = sizeof(room);
	record->flags |= PROFIL_RECORD_STACK;
	return (struct profil_stack *)profil_record_stack(record);
}

static void replay_file(void)
{
	const u64 nr = optional(4);

	begin_file(word(2));
	replay();
	for (u64 i = 1; i < nr; i++) {
		record->offset = number(3) + i * 7 % 64;
		record->pc = BIAS + record->offset;
		replay();
	}
}

static void replay_other(void)
{
	begin_file(word(2));
	record->minor++;
	replay();
}

static void replay_gone(void)
{
	char proc[32];

	snprintf(proc, sizeof(proc), "/proc/%s/exe", word(1));
	begin_file(proc);
	replay();
}

/* Each stack has one address more from those at which another one begins. */
static void replay_stacks(void)
{
	const u64 nr = number(4), depth = number(5);
	struct profil_stack *stack;

	if (depth > FORMAT_STACK_MAX)
		errx(1, "stacks: too many addresses");
	begin_file(word(2));
	stack = add_stack();
	stack->nr = depth;
	for (u64 i = 0; i <= nr; i++) {
		for (u64 j = 0; j < depth; j++)
			stack->addresses[j] = record->pc + (i % nr >> j % 16 & 1) + 1;
		replay();
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

static void replay_walk(void)
{
	static const struct tables_use use = { .give = take_table, .max_rows = UNWIND_ROWS_MAX };
	struct completeness old;
	struct profil_stack *stack;
	char *end;

	begin_file(word(2));
	record->time += number(4) * NS_PER_S;
	stack = add_stack();
	stack->end = number(5);
	for (int i = 6; i < nr_words; i++) {
		__u64 *address = &stack->addresses[stack->nr++];

		*address = BIAS + strtoull(word(i), &end, 0);
		if (*end == 't')
			*address |= PROFIL_STACK_BY_TABLE;
	}
	if (!stream.tables)
		stream.tables = tables_new(&use);
	old = stream.completeness;
	replay();
	print_change(&old, &stream.completeness);
}

static void replay_mappings(void)
{
	const u64 nr = number(2);
	struct profil_stack *stack;

	begin(PROFIL_RECORD_MAPPED);
	stack = add_stack();
	stack->nr = 1;
	for (u64 i = 0; i < nr; i++) {
		record->start = BIAS + i * 8192;
		record->end = record->start + 4096;
		record->pc = record->start;
		stack->addresses[0] = record->start + 1;
		replay();
	}
}

static void replay_address(void)
{
	begin(!strcmp(word(0), "memory") ? PROFIL_RECORD_MAPPED :
	      !strcmp(word(0), "pending") ? PROFIL_RECORD_SYSTEM | PROFIL_RECORD_PENDING : 0);
	record->pc = number(2);
	record->start = record->pc & ~0xfffULL;
	record->end = record->start + 4096;
	replay();
}

static void replay_call(void)
{
	begin(PROFIL_RECORD_SYSTEM | number(4));
	record->pc = BIAS;
	record->syscall = number(2);
	record->arch = number(3);
	replay();
}

static void replay_exec(void)
{
	begin(PROFIL_RECORD_SYSTEM | PROFIL_RECORD_EXEC);
	snprintf(record->comm, sizeof(record->comm), "%s", word(2));
	replay();
}

static void replay_reaped(void)
{
	begin(PROFIL_RECORD_SYSTEM | PROFIL_RECORD_EXIT);
	record->tid = number(2);
	record->space = 0;
	snprintf(record->comm, sizeof(record->comm), "%s", word(3));
	replay();
}

static const struct item items[] = {
	{ "file", replay_file }, { "other", replay_other }, { "gone", replay_gone },
	{ "stacks", replay_stacks }, { "walk", replay_walk }, { "mappings", replay_mappings },
	{ "memory", replay_address }, { "unmapped", replay_address },
	{ "pending", replay_address }, { "call", replay_call }, { "exec", replay_exec },
	{ "reaped", replay_reaped }, {}
};

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
	int fd = -1, ignored;

	if (argc == 2)
		fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", argc == 2 ? argv[1] : "usage: replay FILE");
	start = clock_ns(CLOCK_MONOTONIC);
	writer = format_create(fd);
	format_write(writer, FORMAT_META, &meta);
	stream_init(&stream, writer);
	read_items(items, NULL);
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
