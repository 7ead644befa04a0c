// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The keys by which rows can be added up: see struct row_key in rows.h
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/buffer.h"
#include "profile/escape.h"
#include "profile/rows.h"

static int compare_symbol(const struct row *a, const struct row *b)
{
	return strcmp(a->function.name, b->function.name) ?:
	       compare_u64(a->function.start, b->function.start);
}

static void print_symbol(FILE *out, const struct row *row)
{
	escape_print(out, row->function.name);
}

static int compare_dso(const struct row *a, const struct row *b)
{
	return strcmp(a->function.binary, b->function.binary);
}

static void print_dso(FILE *out, const struct row *row)
{
	escape_print(out, row->function.label);
}

static void print_id(FILE *out, const struct recording_thread *thread, s32 id)
{
	escape_print(out, thread->data.comm);
	fprintf(out, " %d", id);
}

static int compare_process(const struct row *a, const struct row *b)
{
	return compare_u64(a->thread->process->data.id, b->thread->process->data.id);
}

static void print_process(FILE *out, const struct row *row)
{
	print_id(out, row->thread->process, row->thread->process->data.pid);
}

static int compare_thread(const struct row *a, const struct row *b)
{
	return compare_u64(a->thread->thread->data.id, b->thread->thread->data.id);
}

static void print_thread(FILE *out, const struct row *row)
{
	print_id(out, row->thread->thread, row->thread->data.tid);
}

static int compare_comm(const struct row *a, const struct row *b)
{
	return strcmp(a->thread->data.comm, b->thread->data.comm);
}

static void print_comm(FILE *out, const struct row *row)
{
	escape_print(out, row->thread->data.comm);
}

static int compare_syscall(const struct row *a, const struct row *b)
{
	return strcmp(a->call, b->call);
}

static void print_syscall(FILE *out, const struct row *row)
{
	escape_print(out, row->call);
}

static int compare_cpu(const struct row *a, const struct row *b)
{
	return compare_u64(a->sample->cpu, b->sample->cpu);
}

static void print_cpu(FILE *out, const struct row *row)
{
	fprintf(out, "%d", row->sample->cpu);
}

static bool is_system(const struct row *row)
{
	return row->sample->flags & FORMAT_SAMPLE_SYSTEM;
}

static int compare_mode(const struct row *a, const struct row *b)
{
	return is_system(a) - is_system(b);
}

static void print_mode(FILE *out, const struct row *row)
{
	fputs(is_system(row) ? "system" : "user", out);
}

static int compare_offset(const struct row *a, const struct row *b)
{
	return compare_u64(a->sample->offset, b->sample->offset);
}

static void print_offset(FILE *out, const struct row *row)
{
	fprintf(out, "0x%" PRIx64, row->sample->offset);
}

static int compare_line(const struct row *a, const struct row *b)
{
	return strcmp(a->place.source ?: "", b->place.source ?: "") ?:
	       compare_u64(a->place.line, b->place.line);
}

static void print_line(FILE *out, const struct row *row)
{
	if (!row->place.source) {
		fputs("[no line]", out);
		return;
	}
	escape_print(out, basename(row->place.source));
	fprintf(out, ":%d", row->place.line);
}

static int compare_time(const struct row *a, const struct row *b)
{
	return compare_u64(a->sample->second, b->sample->second);
}

static void print_time(FILE *out, const struct row *row)
{
	fprintf(out, "%u", row->sample->second);
}

const struct row_key row_keys[ROWS_KEYS_MAX] = {
	[ROWS_BY_SYMBOL] = { "symbol", "symbol", compare_symbol, print_symbol },
	[ROWS_BY_DSO] = { "dso", "binary", compare_dso, print_dso },
	[ROWS_BY_PROCESS] = { "process", "process", compare_process, print_process },
	[ROWS_BY_THREAD] = { "thread", "thread", compare_thread, print_thread },
	[ROWS_BY_COMM] = { "comm", "command", compare_comm, print_comm },
	[ROWS_BY_SYSCALL] = { "syscall", "system call", compare_syscall, print_syscall },
	[ROWS_BY_CPU] = { "cpu", "CPU", compare_cpu, print_cpu },
	[ROWS_BY_MODE] = { "mode", "mode", compare_mode, print_mode },
	[ROWS_BY_OFFSET] = { "offset", "offset", compare_offset, print_offset },
	[ROWS_BY_LINE] = { "srcline", "source line", compare_line, print_line },
	[ROWS_BY_TIME] = { "time", "second", compare_time, print_time },
};

char *row_text(const struct row_key *key, const struct row *row)
{
	struct buffer buffer;

	buffer_open(&buffer);
	key->print(buffer.out, row);
	return buffer_close(&buffer);
}
