// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * JSON for other programs: an object about the recording, with an array of rows. profil-export(1)
 * documents its members. Later versions only add members, unless the member "version" changes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "profile/escape.h"
#include "symbols/files.h"
#include "text/text.h"

#define VERSION 1

/* Prints a member whose value is @text, or null if @text is NULL. */
static void print_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ", \"%s\": ", name);
	if (text)
		escape_print_json(out, text);
	else
		fputs("null", out);
}

static void print_number(FILE *out, const char *name, u64 value)
{
	fprintf(out, ", \"%s\": %" PRIu64, name, value);
}

static void print_warnings(FILE *out, const struct recording *recording)
{
	char *warnings = text_list_warnings(recording), *rest = warnings, *line;
	const char *separator = "";

	fputs(", \"warnings\": [", out);
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		fputs(separator, out);
		escape_print_json(out, line);
		separator = ", ";
	}
	putc(']', out);
	free(warnings);
}

static void print_recording(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct format_meta *meta = &recording->meta;
	bool is_attached = meta->flags & FORMAT_ATTACHED;

	fprintf(out, "\"version\": %d", VERSION);
	print_text(out, "command", recording->has_meta ? meta->command : NULL);
	print_number(out, "pid", meta->pid > 0 ? meta->pid : 0);
	fprintf(out, ", \"attached\": %s", is_attached ? "true" : "false");
	print_text(out, "hostname", recording->has_meta ? meta->hostname : NULL);
	print_text(out, "kernel", recording->has_meta ? meta->release : NULL);
	print_number(out, "start_ns", meta->start_time);
	print_number(out, "duration_ns", recording_duration(recording));
	print_number(out, "tick_ns", meta->tick_ns);
	print_text(out, "filter", rows->filter.text);
	print_number(out, "samples", rows->nr_ticks);
	print_number(out, "ticks", rows->ticks);
	print_warnings(out, recording);
}

static void print_row(FILE *out, const struct rows *rows, const struct row *row)
{
	const struct recording_thread *process = row->thread->process;
	const struct recording_thread *thread = row->thread->thread;
	const struct format_file *file = row->sample->file ? &row->sample->file->data : NULL;
	struct buildid_text id = {};

	if (file)
		id = buildid_text(file->build_id, file->build_id_len);
	fprintf(out, "{\"ticks\": %" PRIu64, row_ticks(row));
	print_number(out, "samples", row->nr);
	print_number(out, "user", row->user);
	print_number(out, "system", row->system);
	fprintf(out, ", \"share\": %.8f, \"error\": %.8f", row_share(rows, row),
		row_error(rows, row));
	fprintf(out, ", \"pid\": %d", process->data.pid);
	print_text(out, "process", process->data.comm);
	fprintf(out, ", \"tid\": %d", thread->data.tid);
	print_text(out, "thread", thread->data.comm);
	print_text(out, "binary", row->function.binary);
	print_text(out, "build_id", *id.text ? id.text : NULL);
	print_text(out, "function", row->function.unnamed ? NULL : row->function.name);
	print_text(out, "linkage_name", row->function.linkage);
	print_text(out, "source", row->place.source);
	if (row->place.source)
		fprintf(out, ", \"line\": %d", row->place.line);
	else
		fputs(", \"line\": null", out);
	putc('}', out);
}

static const char *write_json(FILE *out, const struct rows *rows)
{
	putc('{', out);
	print_recording(out, rows);
	fputs(", \"rows\": [", out);
	for (size_t i = 0; i < rows->nr; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_row(out, rows, &rows->rows[i]);
	}
	fputs("\n]}\n", out);
	return NULL;
}

const struct export_format export_json = {
	.name = "json",
	.about = "JSON: profil-export(1) lists its members",
	.keys = { ROWS_BY_PROCESS, ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_LINE, ROWS_BY_SYMBOL },
	.nr_keys = 5,
	.write = write_json,
};
