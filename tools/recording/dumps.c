// SPDX-License-Identifier: GPL-2.0-or-later
/* See dumps.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/dumps.h"
#include "recording/entries.h"
#include "recording/tables.h"

/* The maximum numbers of dumps, and of tables of one: a session has room for 1024 tables. */
#define DUMPS_MAX	16
#define PARTS_MAX	32
/* A dump that could not be read so often is not read again. */
#define FAILED_MAX	3
/* The least time between two reads, and how many times that of the last one it is. */
#define INTERVAL_NS	(NS_PER_S / 50)
#define INTERVAL_PER_READ 4

/**
 * struct dump - A dump, or a free entry
 * @space: The address space; 0: the entry is free.
 * @pid: The process.
 * @is_own: The name has the id of the process: no parent has made the dump.
 * @is_over: The session takes no more tables of it, or it could not be read.
 * @nr_failed: How often it could not be read: the machine can be slow.
 * @fd: The file.
 * @size: The size up to which it was read.
 * @parts: The starts of the tables that the session has.
 * @nr_parts: Their number.
 */
struct dump {
	u64 space;
	pid_t pid;
	bool is_own;
	bool is_over;
	u32 nr_failed;
	int fd;
	off_t size;
	u64 parts[PARTS_MAX];
	size_t nr_parts;
};

struct dumps {
	struct tables_use use;
	struct dump all[DUMPS_MAX];
	size_t turn;		/* the entry that is read next */
	u64 next;		/* the time from which it is read */
	bool is_off;		/* the session takes no such tables */
};

/* A dump that is being read, and the tables that it has now */
struct reading {
	struct dumps *dumps;
	struct dump *dump;
	u64 parts[PARTS_MAX];
	size_t nr_parts;
};

struct dumps *dumps_new(const struct tables_use *use)
{
	struct dumps *dumps = xcalloc(1, sizeof(*dumps));

	dumps->use = *use;
	return dumps;
}

static void forget(struct dump *dump)
{
	if (dump->space)
		close(dump->fd);
	dump->space = 0;
}

void dumps_free(struct dumps *dumps)
{
	for (size_t i = 0; i < DUMPS_MAX; i++)
		forget(&dumps->all[i]);
	free(dumps);
}

/* Returns the number in the name of a dump; -1 if it is that of another file. */
static long number_of(const char *path)
{
	const char *name = strrchr(path, '/');
	long number;
	int end = 0;

	if (!name || sscanf(name, "/jit-%ld.dump%n", &number, &end) != 1 || !end || name[end])
		return -1;
	return number;
}

/* Opens the dump, which the process goes on to write: so it may have changed since the mapping. */
static int open_dump(const struct profil_record *mapping)
{
	const size_t size = offsetof(struct profil_record, path) + strlen(mapping->path) + 1;
	const size_t room = size < sizeof(*mapping) ? sizeof(*mapping) : size;
	struct profil_record *copy = xmemdup(mapping, size, room);
	struct stat st;
	u32 reason;
	int fd;

	copy->time = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
	fd = mapping_open(copy, &st, &reason);
	free(copy);
	return fd;
}

void dumps_add(struct dumps *dumps, const struct profil_record *mapping)
{
	const long number = number_of(mapping->path);
	const bool is_own = number == mapping->pid;
	struct dump *dump = NULL;
	int fd;

	if (number < 0 || dumps->is_off || !mapping->space)
		return;
	for (size_t i = 0; i < DUMPS_MAX; i++) {
		struct dump *other = &dumps->all[i];

		if (other->space == mapping->space) {
			if (other->is_own || !is_own)
				return;
			dump = other;
			break;
		}
		if (!other->space)
			dump = other;
	}
	fd = dump ? open_dump(mapping) : -1;
	if (fd < 0)
		return;
	if (dump->space)
		close(dump->fd);
	else
		dump->nr_parts = 0;
	dump->space = mapping->space;
	dump->pid = mapping->pid;
	dump->is_own = is_own;
	dump->is_over = false;
	dump->nr_failed = 0;
	dump->fd = fd;
	dump->size = 0;
}

/* ---- tables ---- */

static bool give(struct dumps *dumps, const struct dump *dump, u64 start,
		 const struct unwind_table *table)
{
	struct profil_unwind arg = unwind_table_argument(table);

	arg.flags = PROFIL_UNWIND_CODE;
	arg.fd = -1;
	arg.space = dump->space;
	arg.start = start;
	if (table->nr_rows > dumps->use.max_rows)
		return false;
	if (!dumps->use.give(dumps->use.data, &arg))
		return true;
	/* The module is older. */
	if (errno == EOPNOTSUPP || errno == E2BIG)
		dumps->is_off = true;
	return false;
}

static void remove_table(struct dumps *dumps, const struct dump *dump, u64 start)
{
	give(dumps, dump, start, &(struct unwind_table){});
}

static void take_table(void *data, u64 start, const struct unwind_table *table)
{
	struct reading *reading = data;

	if (reading->nr_parts == PARTS_MAX || reading->dump->is_over)
		return;
	if (give(reading->dumps, reading->dump, start, table))
		reading->parts[reading->nr_parts++] = start;
	else
		reading->dump->is_over = true;
}

static void read_dump(struct dumps *dumps, struct dump *dump)
{
	struct reading reading = { .dumps = dumps, .dump = dump };
	size_t at = 0;

	if (!code_tables_make(dump->fd, take_table, &reading)) {
		dump->is_over = ++dump->nr_failed == FAILED_MAX;
		dump->size = -1;
		return;
	}
	/* Both ascend. If the session takes no more, it keeps the old tables. */
	for (size_t i = 0; i < dump->nr_parts && !dump->is_over; i++) {
		while (at < reading.nr_parts && reading.parts[at] < dump->parts[i])
			at++;
		if (at == reading.nr_parts || reading.parts[at] != dump->parts[i])
			remove_table(dumps, dump, dump->parts[i]);
	}
	if (dump->is_over)
		return;
	memcpy(dump->parts, reading.parts, sizeof(dump->parts));
	dump->nr_parts = reading.nr_parts;
}

/* Removes the tables of a process that has ended. */
static void remove_dump(struct dumps *dumps, struct dump *dump)
{
	for (size_t i = 0; i < dump->nr_parts; i++)
		remove_table(dumps, dump, dump->parts[i]);
	forget(dump);
}

void dumps_poll(struct dumps *dumps)
{
	const u64 start = clock_ns(CLOCK_MONOTONIC);
	struct stat st;

	if (start < dumps->next || dumps->is_off)
		return;
	for (size_t i = 0; i < DUMPS_MAX; i++) {
		struct dump *dump = &dumps->all[dumps->turn++ % DUMPS_MAX];

		if (!dump->space)
			continue;
		if (kill(dump->pid, 0) && errno == ESRCH) {
			remove_dump(dumps, dump);
			break;
		}
		if (!dump->is_over && !fstat(dump->fd, &st) && st.st_size != dump->size) {
			dump->size = st.st_size;
			read_dump(dumps, dump);
			break;
		}
	}
	dumps->next = clock_ns(CLOCK_MONOTONIC);
	dumps->next += (dumps->next - start) * INTERVAL_PER_READ > INTERVAL_NS ?
		       (dumps->next - start) * INTERVAL_PER_READ : INTERVAL_NS;
}
