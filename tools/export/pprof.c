// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The format of pprof: a message of protobuf (pprof.proto), compressed as by gzip
 *
 * A location is an address of a binary that is mapped somewhere. It has a line for its function,
 * and one for each function that is inlined there. Without stacks, each sample has one location.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "pprof/message.h"
#include "profile/chains.h"
#include "profile/escape.h"
#include "profile/intern.h"
#include "symbols/files.h"
#include "text/text.h"

#define PAGE 4096ULL

/**
 * struct profile - The message while it is built
 * @mappings: The keys of the mappings that have been added. Their ids are the indexes + 1.
 * @locations: Likewise.
 * @functions: Likewise.
 * @ids: By the indexes of the chain_frames, the id of their location, or 0.
 */
struct profile {
	struct message message;
	struct intern mappings;
	struct intern locations;
	struct intern functions;
	u64 *ids;
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

/* Is the binary of @frame a file, which has an address where it is mapped? */
static bool is_mapped_file(const struct chain_frame *frame)
{
	return frame->file && !(frame->file->data.flags & FORMAT_FILE_NONE);
}

static u64 mapping_start(const struct chain_frame *frame)
{
	return is_mapped_file(frame) ? frame->bias : 0;
}

/* Returns the id of the binary of @frame, at its place in memory. */
static u64 mapping(struct profile *profile, const struct chain_frame *frame)
{
	const struct format_file *file = frame->file ? &frame->file->data : NULL;
	const u64 start = mapping_start(frame);
	const size_t nr = profile->mappings.nr;
	const u64 id = 1 + intern_format(&profile->mappings, "%u %" PRIx64 " %s",
					 file ? file->id : 0, start, frame->function->binary);
	Pprof__Mapping part = PPROF__MAPPING__INIT;

	if (profile->mappings.nr == nr)
		return id;
	part.id = id;
	part.memory_start = start;
	part.memory_limit = is_mapped_file(frame) ? start + ((file->size + PAGE - 1) & -PAGE) :
						    UINT64_MAX;
	part.filename = string(profile, frame->function->binary);
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

/* Adds the function of @frame to a location. */
static void set_line(struct profile *profile, const struct rows *rows,
		     const struct chain_frame *frame, Pprof__Line *line)
{
	const struct profile_function *named = frame->function;
	const char *name = named->name;
	char *unnamed = NULL;

	/* pprof does not distinguish binaries. */
	if (named->unnamed && !frame->inlined)
		unnamed = concat(named->label, " ", name, NULL);
	/* The name of an inlined function says so, but pprof does, too. */
	if (!named->unnamed && frame->inlined)
		name = symbols_name(rows->binaries.symbols, named->linkage);
	pprof__line__init(line);
	line->function_id = function(profile, unnamed ?: name, named->linkage, frame->code.source,
				     frame->code.start);
	line->line = frame->code.line;
	free(unnamed);
}

/* Returns the id of the place of @nr frames: those after the first one are inlined there. */
static u64 location(struct profile *profile, const struct rows *rows,
		    const struct chain_frame *const *frames, size_t place_nr)
{
	const struct chain_frame *frame = frames[0];
	const size_t nr = profile->locations.nr;
	const u64 mapping_id = mapping(profile, frame);
	const u64 id = 1 + intern_format(&profile->locations, "%" PRIu64 " %" PRIx64 " %s",
					 mapping_id, frame->offset, frame->function->name);
	Pprof__Location part = PPROF__LOCATION__INIT;
	Pprof__Line *lines;

	if (profile->locations.nr == nr)
		return id;
	lines = xcalloc(place_nr, sizeof(*lines));
	part.id = id;
	part.mapping_id = mapping_id;
	part.address = mapping_start(frame) + frame->offset;
	part.n_line = place_nr;
	part.line = xcalloc(place_nr, sizeof(*part.line));
	/* The innermost function is the first. */
	for (size_t i = 0; i < place_nr; i++) {
		part.line[i] = &lines[i];
		set_line(profile, rows, frames[place_nr - 1 - i], &lines[i]);
	}
	message_add_location(&profile->message, &part);
	free(part.line);
	free(lines);
	return id;
}

/* Sets the ids of the locations of a chain, the innermost one first. Returns their number. */
static size_t chain_locations(struct profile *profile, const struct rows *rows,
			      const struct chain *chain, u64 *ids)
{
	size_t nr = 0;

	for (size_t end = chain->nr, i; end; end = i) {
		u64 *id;

		for (i = end - 1; i && chain->frames[i]->inlined; i--)
			;
		id = &profile->ids[chain->frames[i]->index];
		if (!*id)
			*id = location(profile, rows, &chain->frames[i], end - i);
		ids[nr++] = *id;
	}
	return nr;
}

/* Returns the id of the location of a row without a chain. */
static u64 row_location(struct profile *profile, const struct rows *rows, const struct row *row)
{
	const size_t nr = row->place.nr_frames ?: 1;
	struct profile_function *functions = xcalloc(nr, sizeof(*functions));
	struct chain_frame *frames = xcalloc(nr, sizeof(*frames));
	const struct chain_frame **pointers = xcalloc(nr, sizeof(*pointers));
	u64 id;

	for (size_t i = 0; i < nr; i++) {
		functions[i] = row->function;
		frames[i] = row_frame(row);
		frames[i].function = &functions[i];
		pointers[i] = &frames[i];
		if (!i)
			continue;
		frames[i].inlined = true;
		frames[i].code = row->place.frames[i];
		functions[i].linkage = frames[i].code.name;
		functions[i].unnamed = !functions[i].linkage;
		functions[i].name = PROFILE_NO_SYMBOL;
	}
	id = location(profile, rows, pointers, nr);
	free(pointers);
	free(frames);
	free(functions);
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
	u64 *ids = xcalloc(row->chain ? row->chain->nr : 1, sizeof(*ids));
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
		text_label(profile, "syscall", row->call),
	};
	Pprof__Label *label_pointers[] = {
		&labels[0], &labels[1], &labels[2], &labels[3], &labels[4], &labels[5],
	};
	Pprof__Sample part = PPROF__SAMPLE__INIT;

	part.n_location_id = 1;
	if (row->chain)
		part.n_location_id = chain_locations(profile, rows, row->chain, ids);
	else
		ids[0] = row_location(profile, rows, row);
	part.location_id = ids;
	part.n_value = rows->recording->meta.tick_ns ? 2 : 1;
	part.value = values;
	/* Without a call, there is no label for it. */
	part.n_label = sizeof(labels) / sizeof(*labels) - !row->sample->call;
	part.label = label_pointers;
	message_add_sample(&profile->message, &part);
	free(ids);
}

static void add_comment(struct profile *profile, const char *text)
{
	char *escaped = escape_text(text);

	message_add_comment(&profile->message, escaped);
	free(escaped);
}

static void add_comments(struct profile *profile, const struct recording *recording)
{
	char **warnings = text_list_warnings(recording);

	if (*recording->meta.command) {
		const bool is_machine = recording->meta.flags & FORMAT_MACHINE;
		char *command = concat(is_machine ? "" : "command: ", recording->meta.command,
				       NULL);

		add_comment(profile, command);
		free(command);
	}
	for (char **line = warnings; *line; line++)
		add_comment(profile, *line);
	freeargv(warnings);
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
	for (size_t i = 0; i < rows->nr && main_file; i++) {
		const struct chain_frame frame = row_frame(&rows->rows[i]);

		if (frame.file == main_file)
			mapping(profile, &frame);
	}
	for (size_t i = 0; i < rows->nr; i++)
		add_sample(profile, rows, &rows->rows[i]);
}

static const char *write_pprof(FILE *out, const struct rows *rows)
{
	struct profile profile = {};

	if (rows->options.chains)
		profile.ids = xcalloc(rows_chains(rows)->nr_frames + 1, sizeof(*profile.ids));
	message_start(&profile.message);
	fill_profile(&profile, rows);
	if (!message_finish(&profile.message))
		xmalloc_failed(0);
	fwrite(profile.message.data, 1, profile.message.len, out);
	message_free(&profile.message);
	intern_free(&profile.mappings);
	intern_free(&profile.locations);
	intern_free(&profile.functions);
	free(profile.ids);
	return NULL;
}

const struct export_format export_pprof = {
	.name = "pprof",
	.about = "go tool pprof, Grafana Pyroscope, Parca",
	.is_binary = true,
	.rows.lines = true,
	.rows.chains = true,
	.write = write_pprof,
};
