// SPDX-License-Identifier: GPL-2.0-or-later
/* See stream.h. */
#include <string.h>

#include "recording/entries.h"
#include "recording/segments.h"
#include "recording/spaces.h"

void stream_init(struct stream *stream, struct format_writer *writer)
{
	stream->writer = writer;
	stream->functions = functions_new();
	stream->files = entries_new(64);
	stream->entries = entries_new(256);
	stream->stacks = stacks_new();
	stream->stack_bytes = 0;
	if (!stream->spaces) {
		stream->spaces = spaces_new();
		stream->segments = segments_new();
	}
	memset(stream->last, 0, sizeof(stream->last));
	stream->place = (struct profil_record){};
}

int stream_finish(struct stream *stream)
{
	return functions_write(stream->functions, stream->writer);
}

void stream_free(struct stream *stream)
{
	functions_free(stream->functions);
	htab_delete(stream->files);
	htab_delete(stream->entries);
	htab_delete(stream->stacks);
}

void stream_close(struct stream *stream)
{
	if (!stream->spaces)
		return;
	spaces_free(stream->spaces);
	segments_free(stream->segments);
	stream->spaces = NULL;
	stream->segments = NULL;
}

/*
 * Returns true if the records have the same thread and mapping. Most records have those of the one
 * before them, so this compares only as much as it must.
 */
static bool is_same_place(const struct profil_record *a, const struct profil_record *b)
{
	return a->flags == b->flags && a->pc - a->offset == b->pc - b->offset &&
	       a->ino == b->ino && a->generation == b->generation &&
	       a->major == b->major && a->minor == b->minor &&
	       !memcmp(&a->space, &b->space, offsetof(struct profil_record, end) -
					     offsetof(struct profil_record, space));
}

/* Finds or writes the thread and the mapping of the record. */
static void update_place(struct stream *stream, const struct profil_record *record)
{
	entries_empty(stream);
	stream->thread = stream_thread(stream, record);
	stream->mapping = NULL;
	if (record->flags & PROFIL_RECORD_MAPPED)
		stream->mapping = stream_mapping(stream, record);
	stream->place = *record;
}

static u32 sample_flags(const struct profil_record *record)
{
	return (record->flags & PROFIL_RECORD_SYSTEM ? FORMAT_SAMPLE_SYSTEM : 0) |
	       (record->flags & PROFIL_RECORD_EXEC ? FORMAT_SAMPLE_EXEC : 0) |
	       (record->flags & PROFIL_RECORD_EXIT ? FORMAT_SAMPLE_EXIT : 0) |
	       (record->flags & PROFIL_RECORD_PENDING ? FORMAT_SAMPLE_PENDING : 0);
}

void stream_record(struct stream *stream, const struct profil_record *record)
{
	const bool is_bare = record->flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT);
	struct format_sample sample = {
		.time = record->time > stream->start ? record->time : stream->start,
		.cpu = record->cpu,
		.periods = record->periods < FORMAT_PERIODS_MAX ? record->periods :
								  FORMAT_PERIODS_MAX,
		.flags = sample_flags(record),
	};
	const struct profil_record *place;

	stream->ticks++;
	stream->user += !(record->flags & PROFIL_RECORD_SYSTEM);
	/* In the exec of the command, the space is still the old one. */
	if ((stream->own_space && record->space == stream->own_space) ||
	    (stream->own_pid && record->pid == stream->own_pid)) {
		stream->own++;
		return;
	}
	stream->bare += is_bare;
	/* This may empty the entries, of which one is the mapping. */
	if (!is_bare)
		sample.call = stream_call(stream, record);
	place = segments_find(stream->segments, record, record->pc);
	sample.offset = place->flags & PROFIL_RECORD_FILE ? place->offset : place->pc;
	if (!is_same_place(&stream->place, place))
		update_place(stream, place);
	sample.thread = stream->thread;
	if (stream->mapping) {
		sample.mapping = stream->mapping->id;
		functions_sample(stream->mapping->source, sample.offset);
		if (stream->mapping->is_generated && !(record->flags & PROFIL_RECORD_SYSTEM))
			functions_address(stream->functions, sample.thread, record);
	}
	if (record->flags & PROFIL_RECORD_STACK && !is_bare)
		sample.stack = stream_stack(stream, record);
	format_write_sample(stream->writer, &sample);
}
