// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The format of pprof: a message of protobuf (pprof.proto), compressed as by gzip
 *
 * A location is an address of a binary that is mapped somewhere. It has a line for its function,
 * and one for each function that is inlined there.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>
#include <obstack.h>
#include <zlib.h>

#include "output/escape.h"
#include "output/intern.h"
#include "output/output.h"
#include "pprof.pb-c.h"
#include "symbols/files.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

#define PAGE 4096ULL
#define WINDOW_BITS_GZIP (15 + 16)

/**
 * struct profile - The message while it is built
 * @memory: The memory of all its parts, except the arrays in @message.
 * @strings: The string table.
 * @mappings: The keys of the mappings that have been added. Their ids are the indexes + 1.
 * @locations: Likewise.
 * @functions: Likewise.
 */
struct profile {
	Pprof__Profile message;
	struct obstack memory;
	struct intern strings;
	struct intern mappings;
	struct intern locations;
	struct intern functions;
};

/* Allocates a part of the message, and sets it to @initial. */
static void *new_part(struct profile *profile, const void *initial, size_t size)
{
	return obstack_copy(&profile->memory, initial, size);
}

#define NEW(profile, type, initial) \
	((type *)new_part(profile, &(const type)initial, sizeof(type)))

/* Appends a part to one of the arrays in the message. */
static void append(void *array, size_t *nr, const void *part)
{
	char *parts;

	if (!array_grow(array, *nr, sizeof(part)))
		xmalloc_failed(0);
	memcpy(&parts, array, sizeof(parts));
	memcpy(parts + (*nr)++ * sizeof(part), &part, sizeof(part));
}

/* Returns the index of @text, escaped, in the string table. The table must be valid UTF-8. */
static s64 string(struct profile *profile, const char *text)
{
	char *escaped = escape_text(text ?: "");
	size_t index = intern(&profile->strings, escaped);

	free(escaped);
	return index;
}

static s64 clamp(u64 value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

static Pprof__ValueType *value_type(struct profile *profile, const char *type, const char *unit)
{
	Pprof__ValueType *part = NEW(profile, Pprof__ValueType, PPROF__VALUE_TYPE__INIT);

	part->type = string(profile, type);
	part->unit = string(profile, unit);
	return part;
}

/* Returns the id of the binary of @row, at its place in memory. */
static u64 mapping(struct profile *profile, const struct row *row)
{
	const struct recording_file *recorded = row->sample->file;
	const struct format_file *file = recorded ? &recorded->data : NULL;
	const bool is_file = file && !(file->flags & FORMAT_FILE_NONE);
	const u64 start = is_file ? row->sample->bias : 0;
	const size_t nr = profile->mappings.nr;
	const u64 id = 1 + intern_format(&profile->mappings, "%u %" PRIx64 " %s",
					 file ? file->id : 0, start, row->binary);
	Pprof__Mapping *part;

	if (profile->mappings.nr == nr)
		return id;
	part = NEW(profile, Pprof__Mapping, PPROF__MAPPING__INIT);
	part->id = id;
	part->memory_start = start;
	part->memory_limit = is_file ? start + ((file->size + PAGE - 1) & -PAGE) : UINT64_MAX;
	part->filename = string(profile, row->binary);
	if (file)
		part->build_id = string(profile,
					buildid_text(file->build_id, file->build_id_len).text);
	part->has_functions = true;
	part->has_filenames = true;
	part->has_line_numbers = true;
	part->has_inline_frames = true;
	append(&profile->message.mapping, &profile->message.n_mapping, part);
	return id;
}

/* Returns the id of a function. @linkage: its name for the linker, or NULL. */
static u64 function(struct profile *profile, const char *name, const char *linkage,
		    const char *source, int start)
{
	const size_t nr = profile->functions.nr;
	const u64 id = 1 + intern_format(&profile->functions, "%d %s\n%s\n%s", start, name,
					 linkage ?: "", source ?: "");
	Pprof__Function *part;

	if (profile->functions.nr == nr)
		return id;
	part = NEW(profile, Pprof__Function, PPROF__FUNCTION__INIT);
	part->id = id;
	part->name = string(profile, name);
	part->system_name = string(profile, linkage ?: name);
	part->filename = string(profile, source);
	part->start_line = start;
	append(&profile->message.function, &profile->message.n_function, part);
	return id;
}

static void add_line(struct profile *profile, Pprof__Location *location, u64 id, int line)
{
	Pprof__Line *part = NEW(profile, Pprof__Line, PPROF__LINE__INIT);

	part->function_id = id;
	part->line = line;
	append(&location->line, &location->n_line, part);
}

/* Adds lines for the functions at the location, the innermost one first. */
static void add_lines(struct profile *profile, const struct rows *rows, const struct row *row,
		      Pprof__Location *location)
{
	const struct frame outer = { .source = row->source, .line = row->line };
	const struct frame *frame = row->nr_frames ? row->frames : &outer;
	char *unnamed = NULL;

	/* pprof does not distinguish binaries. */
	if (row->unnamed)
		unnamed = concat(row->label, " ", row->name, NULL);
	for (size_t i = row->nr_frames; i-- > 1;) {
		const struct frame *inner = &row->frames[i];
		const char *name = inner->name ? rows_name(rows, inner->name) : ROWS_NO_SYMBOL;

		add_line(profile, location, function(profile, name, inner->name, inner->source,
						     inner->start), inner->line);
	}
	add_line(profile, location, function(profile, unnamed ?: row->name, row->linkage,
					     frame->source, frame->start), frame->line);
	free(unnamed);
}

static u64 location(struct profile *profile, const struct rows *rows, const struct row *row)
{
	const struct recording_sample *sample = row->sample;
	const size_t nr = profile->locations.nr;
	const u64 mapping_id = mapping(profile, row);
	const u64 id = 1 + intern_format(&profile->locations, "%" PRIu64 " %" PRIx64 " %s",
					 mapping_id, sample->offset, row->name);
	Pprof__Location *part;

	if (profile->locations.nr == nr)
		return id;
	part = NEW(profile, Pprof__Location, PPROF__LOCATION__INIT);
	part->id = id;
	part->mapping_id = mapping_id;
	part->address = profile->message.mapping[mapping_id - 1]->memory_start + sample->offset;
	add_lines(profile, rows, row, part);
	append(&profile->message.location, &profile->message.n_location, part);
	return id;
}

static void add_label(struct profile *profile, Pprof__Sample *sample, const char *key,
		      const char *text, s64 number)
{
	Pprof__Label *part = NEW(profile, Pprof__Label, PPROF__LABEL__INIT);

	part->key = string(profile, key);
	if (text)
		part->str = string(profile, text);
	else
		part->num = number;
	append(&sample->label, &sample->n_label, part);
}

static void add_sample(struct profile *profile, const struct rows *rows, const struct row *row)
{
	const struct recording_thread *process = row->thread->process;
	const struct recording_thread *thread = row->thread->thread;
	const bool is_system = row->sample->flags & FORMAT_SAMPLE_SYSTEM;
	const u64 id = location(profile, rows, row);
	const s64 values[] = {
		clamp(row->nr),
		recording_ns(rows->recording, row_ticks(row)),
	};
	Pprof__Sample *part = NEW(profile, Pprof__Sample, PPROF__SAMPLE__INIT);

	part->n_location_id = 1;
	part->location_id = new_part(profile, &id, sizeof(id));
	part->n_value = profile->message.n_sample_type;
	part->value = new_part(profile, values, sizeof(values));
	add_label(profile, part, "process", process->data.comm, 0);
	add_label(profile, part, "pid", NULL, process->data.pid);
	add_label(profile, part, "thread", thread->data.comm, 0);
	add_label(profile, part, "tid", NULL, thread->data.tid);
	add_label(profile, part, "mode", is_system ? "system" : "user", 0);
	append(&profile->message.sample, &profile->message.n_sample, part);
}

/* A comment is an index in the string table. */
static void add_comment(struct profile *profile, const char *text)
{
	Pprof__Profile *message = &profile->message;

	if (!array_grow(&message->comment, message->n_comment, sizeof(*message->comment)))
		xmalloc_failed(0);
	message->comment[message->n_comment++] = string(profile, text);
}

static void add_comments(struct profile *profile, const struct recording *recording)
{
	char *warnings = output_list_warnings(recording), *rest = warnings, *line;

	if (*recording->meta.command) {
		char *command = concat("command: ", recording->meta.command, NULL);

		add_comment(profile, command);
		free(command);
	}
	while ((line = strsep(&rest, "\n")))
		if (*line)
			add_comment(profile, line);
	free(warnings);
}

/* Adds the types of the values: the CPU time only if the length of a tick is known. */
static void add_types(struct profile *profile, const struct recording *recording)
{
	Pprof__Profile *message = &profile->message;

	append(&message->sample_type, &message->n_sample_type,
	       value_type(profile, "samples", "count"));
	if (!recording->meta.tick_ns)
		return;
	append(&message->sample_type, &message->n_sample_type,
	       value_type(profile, "cpu", "nanoseconds"));
	message->period_type = value_type(profile, "cpu", "nanoseconds");
	message->period = clamp(recording->meta.tick_ns);
}

static void fill_profile(struct profile *profile, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct recording_file *main_file = rows_hottest_file(rows);
	Pprof__Profile *message = &profile->message;

	string(profile, "");
	add_types(profile, recording);
	message->time_nanos = clamp(recording->meta.start_time);
	message->duration_nanos = clamp(recording_duration(recording));
	add_comments(profile, recording);
	/* pprof shows the name of the first mapping. */
	for (size_t i = 0; i < rows->nr && main_file; i++)
		if (rows->rows[i].sample->file == main_file)
			mapping(profile, &rows->rows[i]);
	for (size_t i = 0; i < rows->nr; i++)
		add_sample(profile, rows, &rows->rows[i]);
	message->n_string_table = profile->strings.nr;
	/* The cast is safe: nothing writes to the strings. */
	message->string_table = (char **)profile->strings.texts;
}

static void free_profile(struct profile *profile)
{
	Pprof__Profile *message = &profile->message;

	for (size_t i = 0; i < message->n_sample; i++)
		free(message->sample[i]->label);
	for (size_t i = 0; i < message->n_location; i++)
		free(message->location[i]->line);
	free(message->sample_type);
	free(message->sample);
	free(message->mapping);
	free(message->location);
	free(message->function);
	free(message->comment);
	intern_free(&profile->strings);
	intern_free(&profile->mappings);
	intern_free(&profile->locations);
	intern_free(&profile->functions);
	obstack_free(&profile->memory, NULL);
}

/* zlib takes 32-bit lengths, so a long message is compressed in parts. */
static void write_gzip(FILE *out, const u8 *data, size_t len)
{
	z_stream stream = {};
	u8 buffer[1 << 14];
	int status;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP, 9,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		xmalloc_failed(0);
	do {
		if (!stream.avail_in) {
			stream.next_in = (z_const Bytef *)data;
			stream.avail_in = len > UINT32_MAX ? UINT32_MAX : len;
			data += stream.avail_in;
			len -= stream.avail_in;
		}
		stream.next_out = buffer;
		stream.avail_out = sizeof(buffer);
		status = deflate(&stream, len ? Z_NO_FLUSH : Z_FINISH);
		fwrite(buffer, 1, sizeof(buffer) - stream.avail_out, out);
	} while (status != Z_STREAM_END && !ferror(out));
	deflateEnd(&stream);
}

static const char *write_pprof(FILE *out, const struct rows *rows)
{
	struct profile profile = { .message = PPROF__PROFILE__INIT };
	size_t len;
	u8 *data;

	obstack_init(&profile.memory);
	fill_profile(&profile, rows);
	data = xmalloc(pprof__profile__get_packed_size(&profile.message) + 1);
	len = pprof__profile__pack(&profile.message, data);
	free_profile(&profile);
	write_gzip(out, data, len);
	free(data);
	return NULL;
}

const struct output_format output_pprof = {
	.name = "pprof",
	.about = "go tool pprof, Grafana Pyroscope, Parca",
	.is_binary = true,
	.lines = true,
	.write = write_pprof,
};
