// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The JSON of speedscope: a profile for each thread. Each sample has the frames of the binary and
 * of its function. The order of the samples has no meaning: the view "Left Heavy" fits best.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "output/escape.h"
#include "output/intern.h"
#include "output/output.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* Returns the index of a frame. The set contains the JSON of the frames. */
static size_t add_frame(struct intern *frames, const char *name, const struct frame *function)
{
	char *text = NULL;
	size_t size, index;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		xmalloc_failed(0);
	fputs("{\"name\": ", out);
	escape_print_json(out, name);
	if (function && function->source) {
		fputs(", \"file\": ", out);
		escape_print_json(out, function->source);
	}
	if (function && function->source && function->start > 0)
		fprintf(out, ", \"line\": %d", function->start);
	putc('}', out);
	if (fclose(out))
		xmalloc_failed(0);
	index = intern(frames, text);
	free(text);
	return index;
}

/* Prints the profile of one thread. @rows: its @nr rows. */
static void print_profile(FILE *out, const struct recording *recording, const struct row *rows,
			  size_t nr, struct intern *frames)
{
	const bool has_time = recording->meta.tick_ns;
	char *name = nr ? row_text(&row_keys[ROWS_BY_THREAD], rows) : NULL;
	u64 ticks = 0;

	fputs("{\"type\": \"sampled\", \"name\": ", out);
	escape_print_json(out, name ?: recording->meta.command);
	fprintf(out, ", \"unit\": \"%s\", \"samples\": [", has_time ? "nanoseconds" : "none");
	for (size_t i = 0; i < nr; i++) {
		const struct row *row = &rows[i];
		size_t binary = add_frame(frames, row->label, NULL);

		fprintf(out, "%s[%zu, %zu]", i ? ", " : "", binary,
			add_frame(frames, row->name, row->nr_frames ? row->frames : NULL));
	}
	fputs("], \"weights\": [", out);
	for (size_t i = 0; i < nr; i++) {
		u64 weight = row_ticks(&rows[i]);

		ticks = ticks_add(ticks, weight);
		fprintf(out, "%s%" PRIu64, i ? ", " : "",
			has_time ? recording_ns(recording, weight) : weight);
	}
	fprintf(out, "], \"startValue\": 0, \"endValue\": %" PRIu64 "}",
		has_time ? recording_ns(recording, ticks) : ticks);
	free(name);
}

static const char *write_speedscope(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	struct intern frames = {};

	fputs("{\"$schema\": \"" SCHEMA "\", \"exporter\": \"profil\", \"name\": ", out);
	escape_print_json(out, recording->meta.command);
	fputs(", \"activeProfileIndex\": 0, \"profiles\": [\n", out);
	for (size_t i = 0, nr; i < rows->nr; i += nr) {
		nr = rows_same_thread(rows, i);
		fputs(i ? ",\n" : "", out);
		print_profile(out, recording, &rows->rows[i], nr, &frames);
	}
	/* Speedscope does not open a file without a profile. */
	if (!rows->nr)
		print_profile(out, recording, NULL, 0, &frames);
	fputs("\n], \"shared\": {\"frames\": [", out);
	for (size_t i = 0; i < frames.nr; i++)
		fprintf(out, "%s%s", i ? ",\n" : "\n", frames.texts[i]);
	fputs("\n]}}\n", out);
	intern_free(&frames);
	return NULL;
}

const struct output_format output_speedscope = {
	.name = "speedscope",
	.about = "speedscope",
	.keys = { ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_SYMBOL },
	.nr_keys = 3,
	.in_order = true,
	.lines = true,
	.write = write_speedscope,
};
