// SPDX-License-Identifier: GPL-2.0-or-later
/* See entries.h: threads. A thread is written again when its name changes. */
#include <stdio.h>
#include <string.h>

#include "recording/entries.h"

bool stream_read_comm(pid_t pid, char comm[16])
{
	FILE *file = proc_open(pid, "comm");
	size_t len = file ? fread(comm, 1, 16, file) : 0;

	if (file)
		fclose(file);
	/* The last byte is a newline. */
	comm[len ? len - 1 : 0] = '\0';
	return len > 1;
}

struct visitor {
	void (*visit)(void *data, pid_t pid);
	void *data;
};

static int visit_entry(void **slot, void *data)
{
	const struct entry *entry = *slot;
	const struct visitor *visitor = data;

	if (entry->key[0] == FORMAT_THREAD)
		visitor->visit(visitor->data, entry->key[2]);
	return 1;
}

void stream_visit_processes(struct stream *stream, void (*visit)(void *data, pid_t pid),
			    void *data)
{
	struct visitor visitor = { visit, data };

	htab_traverse_noresize(stream->entries, visit_entry, &visitor);
}

static struct entry *thread_get(struct stream *stream, const struct profil_record *record, s32 tid)
{
	const u64 key[KEY_WORDS] = { FORMAT_THREAD, record->space, record->pid, tid };

	return entry_get(stream->entries, key);
}

/* Writes the thread if it is new or has another name now. */
static void thread_update(struct stream *stream, struct entry *entry,
			  const struct profil_record *record, s32 tid, const char *comm)
{
	struct format_thread thread;

	if (entry->id && !memcmp(entry->comm, comm, sizeof(entry->comm)))
		return;
	thread = (struct format_thread){ .pid = record->pid, .tid = tid, .space = record->space };
	memcpy(entry->comm, comm, sizeof(entry->comm));
	memcpy(thread.comm, comm, sizeof(thread.comm));
	thread.id = ++stream->last[FORMAT_THREAD];
	entry->id = thread.id;
	format_write(stream->writer, FORMAT_THREAD, &thread);
}

/* Of the threads of a process, the one that was written last */
struct last_thread {
	s32 pid;
	const struct entry *entry;
};

static int find_last_thread(void **slot, void *data)
{
	const struct entry *entry = *slot;
	struct last_thread *last = data;

	if (entry->key[0] == FORMAT_THREAD && (s32)entry->key[2] == last->pid &&
	    (!last->entry || entry->id > last->entry->id))
		last->entry = entry;
	return 1;
}

/*
 * With -a, a task that was reaped before its last tick has no space in its record. Returns that of
 * the last program of its process, or 0 if there is none. This is rare.
 */
static u64 last_space(struct stream *stream, const struct profil_record *record)
{
	struct last_thread last = { .pid = record->pid };

	if (record->pid)
		htab_traverse_noresize(stream->entries, find_last_thread, &last);
	return last.entry ? last.entry->key[1] : 0;
}

static u32 thread_of(struct stream *stream, const struct profil_record *record)
{
	struct entry *entry = thread_get(stream, record, record->tid), *leader;
	char comm[16] = "";

	/* The name of a process is that of its main thread, which may have no tick. */
	if (!entry->id && record->tid != record->pid) {
		leader = thread_get(stream, record, record->pid);
		if (!leader->id && stream_read_comm(record->pid, comm))
			thread_update(stream, leader, record, record->pid, comm);
	}
	/* In exec, the name can be that of the new program, and the space that of the old one. */
	if (!entry->id || !(record->flags & PROFIL_RECORD_EXEC))
		thread_update(stream, entry, record, record->tid, record->comm);
	return entry->id;
}

u32 stream_thread(struct stream *stream, const struct profil_record *record)
{
	struct profil_record copy = *record;

	if (record->space)
		return thread_of(stream, record);
	copy.space = last_space(stream, record);
	return thread_of(stream, &copy);
}
