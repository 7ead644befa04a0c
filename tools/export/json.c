// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * JSON for other programs: an object about the recording, with an array of rows. profil-export(1)
 * documents its members. Later versions only add members, unless the member "version" changes.
 */
#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/json_writer.h"
#include "symbols/files.h"
#include "text/text.h"

#define VERSION 1

static void write_warnings(struct json *json, const struct recording *recording)
{
	char **warnings = text_list_warnings(recording);

	json_array(json, "warnings", ' ');
	for (char **line = warnings; *line; line++)
		json_text(json, NULL, *line);
	json_end(json);
	freeargv(warnings);
}

static void write_recording(struct json *json, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	const struct format_meta *meta = &recording->meta;

	json_number(json, "version", VERSION);
	json_text(json, "command", recording->has_meta ? meta->command : NULL);
	json_number(json, "pid", meta->pid > 0 ? meta->pid : 0);
	json_bool(json, "attached", meta->flags & FORMAT_ATTACHED);
	json_text(json, "hostname", recording->has_meta ? meta->hostname : NULL);
	json_text(json, "kernel", recording->has_meta ? meta->release : NULL);
	json_number(json, "start_ns", meta->start_time);
	json_number(json, "duration_ns", recording_duration(recording));
	json_number(json, "tick_ns", meta->tick_ns);
	json_text(json, "filter", rows->filter.text);
	json_number(json, "samples", rows->nr_ticks);
	json_number(json, "ticks", rows->ticks);
	write_warnings(json, recording);
}

static void write_row(struct json *json, const struct rows *rows, const struct row *row)
{
	const struct recording_thread *process = row->thread->process;
	const struct recording_thread *thread = row->thread->thread;
	const struct format_file *file = row->sample->file ? &row->sample->file->data : NULL;
	struct buildid_text id = {};

	if (file)
		id = buildid_text(file->build_id, file->build_id_len);
	json_object(json, NULL);
	json_number(json, "ticks", row_ticks(row));
	json_number(json, "samples", row->nr);
	json_number(json, "user", row->user);
	json_number(json, "system", row->system);
	json_format(json, "share", "%.8f", row_share(rows, row));
	json_format(json, "error", "%.8f", row_error(rows, row));
	json_format(json, "pid", "%d", process->data.pid);
	json_text(json, "process", process->data.comm);
	json_format(json, "tid", "%d", thread->data.tid);
	json_text(json, "thread", thread->data.comm);
	json_text(json, "binary", row->function.binary);
	json_text(json, "build_id", *id.text ? id.text : NULL);
	json_text(json, "function", row->function.unnamed ? NULL : row->function.name);
	json_text(json, "linkage_name", row->function.linkage);
	json_text(json, "syscall", row->sample->call ? row->call : NULL);
	json_text(json, "source", row->place.source);
	if (row->place.source)
		json_format(json, "line", "%d", row->place.line);
	else
		json_text(json, "line", NULL);
	json_end(json);
}

static const char *write_json(FILE *out, const struct rows *rows)
{
	struct json json = { .out = out };

	json_object(&json, NULL);
	write_recording(&json, rows);
	json_array(&json, "rows", '\n');
	for (size_t i = 0; i < rows->nr; i++)
		write_row(&json, rows, &rows->rows[i]);
	putc('\n', out);
	json_end(&json);
	json_end(&json);
	putc('\n', out);
	return NULL;
}

const struct export_format export_json = {
	.name = "json",
	.about = "JSON: profil-export(1) lists its members",
	.keys = { ROWS_BY_PROCESS, ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_LINE, ROWS_BY_SYSCALL,
		  ROWS_BY_SYMBOL },
	.nr_keys = 6,
	.write = write_json,
};
