// SPDX-License-Identifier: GPL-2.0-or-later
/* See entries.h: stacks. */
#include <string.h>

#include <profil.h>

#include "recording/entries.h"
#include "recording/segments.h"
#include "recording/spaces.h"
#include "recording/tables.h"

/* The maximum size of all stacks in memory, as ENTRIES_MAX of entries.c. */
#define STACK_BYTES_MAX	(16U << 20)

/**
 * struct stack - A stack that was written
 * @id: Its id.
 * @unknown: The mapping of one of its addresses is not known.
 * @is_made: One of its addresses is in code made at run time, and it is not complete.
 * @lost_until: Ticks before this time lack a caller: the frame pointer was followed in code whose
 *	table came then. Later ones have followed it where the table has no rule.
 * @version: The version of its space.
 * @space: The space.
 * @data: The stack as the module has recorded it, but the words in innermost are 0 unless they are
 *	in a mapping of the space.
 */
struct stack {
	u32 id;
	bool unknown;
	bool is_made;
	u64 lost_until;
	u64 version;
	u64 space;
	struct profil_stack data;
};

static size_t stack_size(const struct profil_stack *stack)
{
	return sizeof(*stack) + stack->nr * sizeof(*stack->addresses);
}

static hashval_t stack_hash(const void *data)
{
	const struct stack *stack = data;

	return hash_words((const u64 *)&stack->data, stack_size(&stack->data) / sizeof(u64)) +
	       stack->space + stack->version;
}

static int stack_equals(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	return x->space == y->space && x->version == y->version && x->data.nr == y->data.nr &&
	       !memcmp(&x->data, &y->data, stack_size(&x->data));
}

htab_t stacks_new(void)
{
	return htab_create(16, stack_hash, stack_equals, free);
}

/* Returns the frame of a return address. @mapping: its mapping, or NULL. */
static struct format_frame frame_of(struct stream *stream, const struct profil_record *mapping,
				    u64 address)
{
	struct format_frame frame = { .offset = address };
	const struct profil_record *call;
	const struct entry *entry;

	if (!mapping)
		return frame;
	call = segments_find(stream->segments, mapping, address - 1);
	entry = stream_mapping(stream, call);
	frame.mapping = entry->id;
	if (call->flags & PROFIL_RECORD_FILE)
		frame.offset -= call->pc - call->offset;
	functions_sample(entry->source, frame.offset - 1);
	if (entry->is_generated)
		functions_address(stream->functions, stream->thread, call);
	return frame;
}

/* Returns true if the walk could end in this way because it followed a frame pointer. */
static bool ends_at_frame(u32 end)
{
	switch (end) {
	case PROFIL_STACK_OUTERMOST:
	case PROFIL_STACK_MISALIGNED:
	case PROFIL_STACK_ORDER:
	case PROFIL_STACK_UNREADABLE:
	case PROFIL_STACK_ADDRESS:
		return true;
	default:
		return false;
	}
}

/* Notes that the stack followed the frame pointer in @mapping if its table came later. */
static void note_late_table(struct stream *stream, struct stack *stack,
			    const struct profil_record *mapping)
{
	const u64 time = tables_time(stream->tables, mapping);

	if (time > stack->lost_until)
		stack->lost_until = time;
}

/* Returns true if the mapping is of no file, so that tables_poll() may find tables for it. */
static bool is_made(const struct profil_record *mapping)
{
	return mapping && !(mapping->flags & PROFIL_RECORD_FILE) && !*mapping->path;
}

/* Writes the stack. */
static void stack_write(struct stream *stream, struct stack *stack, const struct space *space)
{
	struct format_frame frames[FORMAT_STACK_MAX];
	const struct profil_record *mapping = NULL;
	struct format_stack block = {
		.id = ++stream->last[FORMAT_STACK],
		.end = stack->data.end,
		.nr = stack->data.nr,
		.frames = frames,
	};

	stack->id = block.id;
	for (u32 i = 0; i < block.nr; i++) {
		const u64 word = stack->data.addresses[i], address = word & ~PROFIL_STACK_BY_TABLE;

		if (mapping && !(word & PROFIL_STACK_BY_TABLE))
			note_late_table(stream, stack, mapping);
		/* The address can be that of the next mapping, if the call never returns. */
		mapping = space_find(space, address - 1);
		frames[i] = frame_of(stream, mapping, address);
		if (word & PROFIL_STACK_BY_TABLE)
			frames[i].flags |= FORMAT_FRAME_BY_TABLE;
		stack->unknown |= !mapping;
		stack->is_made |= is_made(mapping);
	}
	if (mapping && ends_at_frame(block.end))
		note_late_table(stream, stack, mapping);
	for (int i = 0; i < 2; i++) {
		const u64 word = stack->data.innermost[i];

		if (word)
			block.innermost[i] = frame_of(stream, space_find(space, word - 1), word);
	}
	format_write(stream->writer, FORMAT_STACK, &block);
}

/* Returns the stack of the record as it was written; NULL if it was not. */
static struct stack *stack_find(struct stream *stream, const struct profil_record *record,
				const struct space *space, struct stack *key)
{
	const struct profil_stack *stack = profil_record_stack(record);

	memcpy(&key->data, stack, stack_size(stack));
	key->space = record->space;
	key->version = space->version;
	for (int i = 0; i < 2; i++)
		if (stack->innermost[i] && !space_find(space, stack->innermost[i] - 1))
			key->data.innermost[i] = 0;
	return htab_find(stream->stacks, key);
}

/*
 * Reads the mappings, and gives the session the tables of those that are new. Returns false if none
 * are.
 */
static bool read_space(struct stream *stream, struct space *space,
		       const struct profil_record *record)
{
	const u64 version = space->version;

	space_read(stream->spaces, space, record);
	if (space->version == version)
		return false;
	tables_add_space(stream->tables, space);
	return true;
}

/* Counts the tick. @stack: as stream_record() has written it, or NULL. */
static void count(struct stream *stream, const struct profil_record *record,
		  const struct stack *stack)
{
	const u64 ticks = record->periods < FORMAT_PERIODS_MAX ? record->periods :
								 FORMAT_PERIODS_MAX;
	struct completeness *sum = &stream->completeness;
	const struct profil_stack *data = profil_record_stack(record);
	const bool by_table = data->nr && data->addresses[0] & PROFIL_STACK_BY_TABLE;
	const u64 time = by_table ? 0 : tables_time(stream->tables, record);

	if (!stream->tables)
		return;
	sum->stacks += ticks;
	if (stack && (record->time < stack->lost_until || record->time < time) &&
	    (data->nr || ends_at_frame(data->end)))
		sum->lost += ticks;
	else if (stack && stack->unknown)
		sum->unknown += ticks;
	else if (!completeness_is_whole(data->end))
		sum->ends[data->end % COMPLETENESS_ENDS] += ticks;
	else if (stream->mapping && !by_table && (data->nr || !time))
		sum->unchecked += ticks;
	else
		sum->complete += ticks;
}

static struct stack *get_stack(struct stream *stream, const struct profil_record *record)
{
	struct space *space = spaces_get(stream->spaces, record);
	static union {
		struct stack stack;
		u64 room[sizeof(struct stack) / sizeof(u64) + FORMAT_STACK_MAX];
	} key;
	struct stack *stack;
	size_t size;

	if (!space)
		return NULL;
	stack = stack_find(stream, record, space, &key.stack);
	/* Other mappings may be needed, also those of the innermost words, or of a dump. */
	if ((!stack || stack->unknown || stack->is_made) && read_space(stream, space, record))
		stack = stack_find(stream, record, space, &key.stack);
	if (stack || key.stack.data.end == PROFIL_STACK_NO_REGISTERS)
		return stack;
	if (stream->stack_bytes > STACK_BYTES_MAX) {
		htab_empty(stream->stacks);
		stream->stack_bytes = 0;
	}
	entries_empty(stream);
	size = offsetof(struct stack, data) + stack_size(&key.stack.data);
	stack = xmalloc(size);
	memcpy(stack, &key, size);
	stack->unknown = false;
	stack->is_made = is_made(record);
	stack->lost_until = 0;
	*htab_find_slot(stream->stacks, stack, INSERT) = stack;
	stream->stack_bytes += size;
	stack_write(stream, stack, space);
	stack->is_made &= !completeness_is_whole(stack->data.end);
	return stack;
}

u32 stream_stack(struct stream *stream, const struct profil_record *record)
{
	const struct stack *stack = get_stack(stream, record);

	count(stream, record, stack);
	return stack ? stack->id : 0;
}
