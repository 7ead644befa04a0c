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

#include "output/escape.h"
#include "output/intern.h"
#include "output/output.h"
#include "pprof/message.h"
#include "symbols/files.h"

#define PAGE 4096ULL

/**
 * struct profile - The message while it is built
 * @mappings: The keys of the mappings that have been added. Their ids are the indexes + 1.
 * @locations: Likewise.
 * @functions: Likewise.
 */
struct profile {
	struct message message;
	struct intern mappings;
	struct intern locations;
	struct intern functions;
};

/* Returns the index of @text, escaped, in the string table. The table must be valid UTF-8. */
static s64 string(struct profile *profile, const char *text)
{
	char *escaped = escape_text(text ?: "");
	size_t index = message_string(&profile->message, escaped);

	free(escaped);
	return index;
}

static s64 clamp(u64 value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

/* Is the binary of @row a file, which has an address where it is mapped? */
static bool is_mapped_file(const struct row *row)
{
	const struct recording_file *file = row->sample->file;

	return file && !(file->data.flags & FORMAT_FILE_NONE);
}

static u64 mapping_start(const struct row *row)
{
	return is_mapped_file(row) ? row->sample->bias : 0;
}

/* Returns the id of the binary of @row, at its place in memory. */
static u64 mapping(struct profile *profile, const struct row *row)
{
	const struct recording_file *recorded = row->sample->file;
	const struct format_file *file = recorded ? &recorded->data : NULL;
	const u64 start = mapping_start(row);
	const size_t nr = profile->mappings.nr;
	const u64 id = 1 + intern_format(&profile->mappings, "%u %" PRIx64 " %s",
					 file ? file->id : 0, start, row->binary);
	Pprof__Mapping part = PPROF__MAPPING__INIT;

	if (profile->mappings.nr == nr)
		return id;
	part.id = id;
	part.memory_start = start;
	part.memory_limit = is_mapped_file(row) ? start + ((file->size + PAGE - 1) & -PAGE) :
						  UINT64_MAX;
	part.filename = string(profile, row->binary);
	if (file)
		part.build_id = string(profile,
				       buildid_text(file->build_id, file->build_id_len).text);
	part.has_functions = true;
	part.has_filenames = true;
	part.has_line_numbers = true;
	part.has_inline_frames = true;
	message_add_mapping(&profile->message, &part);
	return id;
}

/* Returns the id of a function. @linkage: its name for the linker, or NULL. */
static u64 function(struct profile *profile, const char *name, const char *linkage,
		    const char *source, int start)
{
	const size_t nr = profile->functions.nr;
	const u64 id = 1 + intern_format(&profile->functions, "%d %s\n%s\n%s", start, name,
					 linkage ?: "", source ?: "");
	Pprof__Function part = PPROF__FUNCTION__INIT;

	if (profile->functions.nr == nr)
		return id;
	part.id = id;
	part.name = string(profile, name);
	part.system_name = string(profile, linkage ?: name);
	part.filename = string(profile, source);
	part.start_line = start;
	message_add_function(&profile->message, &part);
	return id;
}

static void set_line(Pprof__Line *line, u64 id, int number)
{
	pprof__line__init(line);
	line->function_id = id;
	line->line = number;
}

/* Sets the lines of the functions at a location, the innermost one first. Returns their number. */
static size_t set_lines(struct profile *profile, const struct rows *rows, const struct row *row,
			Pprof__Line *lines)
{
	const struct frame outer = { .source = row->source, .line = row->line };
	const struct frame *frame = row->nr_frames ? row->frames : &outer;
	char *unnamed = NULL;
	size_t nr = 0;

	/* pprof does not distinguish binaries. */
	if (row->unnamed)
		unnamed = concat(row->label, " ", row->name, NULL);
	for (size_t i = row->nr_frames; i-- > 1;) {
		const struct frame *inner = &row->frames[i];
		const char *name = inner->name ? rows_name(rows, inner->name) : ROWS_NO_SYMBOL;

		set_line(&lines[nr++], function(profile, name, inner->name, inner->source,
						inner->start), inner->line);
	}
	set_line(&lines[nr++], function(profile, unnamed ?: row->name, row->linkage,
					frame->source, frame->start), frame->line);
	free(unnamed);
	return nr;
}

static u64 location(struct profile *profile, const struct rows *rows, const struct row *row)
{
	const struct recording_sample *sample = row->sample;
	const size_t nr = profile->locations.nr;
	const u64 mapping_id = mapping(profile, row);
	const u64 id = 1 + intern_format(&profile->locations, "%" PRIu64 " %" PRIx64 " %s",
					 mapping_id, sample->offset, row->name);
	Pprof__Location part = PPROF__LOCATION__INIT;
	Pprof__Line *lines;

	if (profile->locations.nr == nr)
		return id;
	lines = xcalloc(row->nr_frames + 1, sizeof(*lines));
	part.id = id;
	part.mapping_id = mapping_id;
	part.address = mapping_start(row) + sample->offset;
	part.n_line = set_lines(profile, rows, row, lines);
	part.line = xcalloc(part.n_line, sizeof(*part.line));
	for (size_t i = 0; i < part.n_line; i++)
		part.line[i] = &lines[i];
	message_add_location(&profile->message, &part);
	free(part.line);
	free(lines);
	return id;
}

/* A label with a text, which is escaped. */
static Pprof__Label text_label(struct profile *profile, const char *key, const char *text)
{
	Pprof__Label label = message_label(&profile->message, key, NULL, 0);

	label.str = string(profile, text);
	return label;
}

static void add_sample(struct profile *profile, const struct rows *rows, const struct row *row)
{
	const struct recording_thread *process = row->thread->process;
	const struct recording_thread *thread = row->thread->thread;
	const bool is_system = row->sample->flags & FORMAT_SAMPLE_SYSTEM;
	u64 id = location(profile, rows, row);
	s64 values[] = {
		clamp(row->nr),
		recording_ns(rows->recording, row_ticks(row)),
	};
	Pprof__Label labels[] = {
		text_label(profile, "process", process->data.comm),
		message_label(&profile->message, "pid", NULL, process->data.pid),
		text_label(profile, "thread", thread->data.comm),
		message_label(&profile->message, "tid", NULL, thread->data.tid),
		message_label(&profile->message, "mode", is_system ? "system" : "user", 0),
	};
	Pprof__Label *label_pointers[] = {
		&labels[0], &labels[1], &labels[2], &labels[3], &labels[4],
	};
	Pprof__Sample part = PPROF__SAMPLE__INIT;

	part.n_location_id = 1;
	part.location_id = &id;
	part.n_value = rows->recording->meta.tick_ns ? 2 : 1;
	part.value = values;
	part.n_label = sizeof(labels) / sizeof(*labels);
	part.label = label_pointers;
	message_add_sample(&profile->message, &part);
}

static void add_comment(struct profile *profile, const char *text)
{
	char *escaped = escape_text(text);

	message_add_comment(&profile->message, escaped);
	free(escaped);
}

static void add_comments(struct profile *profile, const struct recording *recording)
{
	char *warnings = output_list_warnings(recording), *rest = warnings, *line;

	if (*recording->meta.command) {
		const bool is_machine = recording->meta.flags & FORMAT_MACHINE;
		char *command = concat(is_machine ? "" : "command: ", recording->meta.command,
				       NULL);

		add_comment(profile, command);
		free(command);
	}
	while ((line = strsep(&rest, "\n")))
		if (*line)
			add_comment(profile, line);
	free(warnings);
}

static void fill_profile(struct profile *profile, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct recording_file *main_file = rows_hottest_file(rows);
	Pprof__Profile part = PPROF__PROFILE__INIT;

	message_add_types(&profile->message, clamp(recording->meta.tick_ns));
	part.time_nanos = clamp(recording->meta.start_time);
	part.duration_nanos = clamp(recording_duration(recording));
	message_add(&profile->message, &part);
	add_comments(profile, recording);
	/* pprof shows the name of the first mapping. */
	for (size_t i = 0; i < rows->nr && main_file; i++)
		if (rows->rows[i].sample->file == main_file)
			mapping(profile, &rows->rows[i]);
	for (size_t i = 0; i < rows->nr; i++)
		add_sample(profile, rows, &rows->rows[i]);
}

static const char *write_pprof(FILE *out, const struct rows *rows)
{
	struct profile profile = {};

	message_start(&profile.message);
	fill_profile(&profile, rows);
	if (!message_finish(&profile.message))
		xmalloc_failed(0);
	fwrite(profile.message.data, 1, profile.message.len, out);
	message_free(&profile.message);
	intern_free(&profile.mappings);
	intern_free(&profile.locations);
	intern_free(&profile.functions);
	return NULL;
}

const struct output_format output_pprof = {
	.name = "pprof",
	.about = "go tool pprof, Grafana Pyroscope, Parca",
	.is_binary = true,
	.lines = true,
	.write = write_pprof,
};
