// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The JSON of speedscope: a profile for each thread. Each sample has the frames of its call chain;
 * without stacks, those of the binary and of its function. The order of the samples has no meaning:
 * the view "Left Heavy" fits best.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/json_writer.h"
#include "profile/buffer.h"
#include "profile/chains.h"
#include "profile/intern.h"
#include "profile/tree.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* All profiles of the file */
struct profiles {
	const struct rows *rows;
	struct intern frames;	/* their JSON */
	struct tree stacks;	/* the keys are indexes of frames */
	u32 *chain_frames;	/* by the indexes of chain_frames: that of the frame plus 1, or 0 */
};

/* Returns the index of a frame. @source: the function's file, or NULL. @start: its line, or 0. */
static size_t add_frame(struct profiles *profiles, const char *name, const char *source, int start)
{
	struct buffer buffer;
	struct json json = {};
	size_t index;
	char *text;

	buffer_open(&buffer);
	json.out = buffer.out;
	json_object(&json, NULL);
	json_text(&json, "name", name);
	if (source) {
		json_text(&json, "file", source);
	}
	if (source && start > 0) {
		json_format(&json, "line", "%d", start);
	}
	json_end(&json);
	text = buffer_close(&buffer);
	index = intern(&profiles->frames, text);
	free(text);
	return index;
}

static u32 add_chain_frame(struct profiles *profiles, const struct chain_frame *frame)
{
	u32 *index = &profiles->chain_frames[frame->index];

	if (!*index)
		*index = 1 + add_frame(profiles, frame->function->name, frame->code.source,
				       frame->code.start);
	return *index - 1;
}

/* Returns the stack of a row, a node of the tree. */
static u32 add_stack(void *data, const struct row *row)
{
	const struct frame *frame = row->place.nr_frames ? row->place.frames : &(struct frame){};
	struct profiles *profiles = data;
	u32 stack = TREE_ROOT;

	for (size_t i = 0; row->chain && i < row->chain->nr; i++)
		stack = tree_child(&profiles->stacks, stack,
				   add_chain_frame(profiles, row->chain->frames[i]));
	if (row->chain)
		return stack;
	stack = tree_child(&profiles->stacks, stack,
			   add_frame(profiles, row->function.label, NULL, 0));
	return tree_child(&profiles->stacks, stack,
			  add_frame(profiles, row->function.name, frame->source, frame->start));
}

static void write_stack(struct json *json, const struct tree *stacks, u32 stack)
{
	const struct tree_node *node = &stacks->nodes[stack];

	/* A stack has at most FORMAT_STACK_MAX calls, and few functions are inlined at each. */
	if (node->parent != TREE_ROOT)
		write_stack(json, stacks, node->parent);
	json_number(json, NULL, node->key);
}

/* Writes the profile of one thread. @rows: its @nr rows. */
static void write_profile(struct json *json, struct profiles *profiles, const struct row *rows,
			  size_t nr)
{
	const struct recording *recording = profiles->rows->recording;
	const bool has_time = recording->meta.tick_ns;
	char *name = nr ? row_text(&row_keys[ROWS_BY_THREAD], rows) : NULL;
	struct tree_ticks *stacks = tree_collect(profiles->rows, rows, &nr, add_stack, profiles);
	u64 ticks = 0;

	json_object(json, NULL);
	json_text(json, "type", "sampled");
	json_text(json, "name", name ?: recording->meta.command);
	json_text(json, "unit", has_time ? "nanoseconds" : "none");
	json_array(json, "samples", ' ');
	for (size_t i = 0; i < nr; i++) {
		json_array(json, NULL, ' ');
		write_stack(json, &profiles->stacks, stacks[i].node);
		json_end(json);
	}
	json_end(json);
	json_array(json, "weights", ' ');
	for (size_t i = 0; i < nr; i++) {
		u64 weight = stacks[i].ticks;

		ticks = ticks_add(ticks, weight);
		json_number(json, NULL, has_time ? recording_ns(recording, weight) : weight);
	}
	json_end(json);
	json_number(json, "startValue", 0);
	json_number(json, "endValue", has_time ? recording_ns(recording, ticks) : ticks);
	json_end(json);
	free(stacks);
	free(name);
}

static void write_profiles(struct json *json, struct profiles *profiles)
{
	const struct rows *rows = profiles->rows;

	json_array(json, "profiles", '\n');
	for (size_t i = 0, nr; i < rows->nr; i += nr) {
		nr = rows_same_thread(rows, i);
		write_profile(json, profiles, &rows->rows[i], nr);
	}
	/* Speedscope does not open a file without a profile. */
	if (!rows->nr)
		write_profile(json, profiles, NULL, 0);
	putc('\n', json->out);
	json_end(json);
}

static void write_frames(struct json *json, const struct profiles *profiles)
{
	json_object(json, "shared");
	json_array(json, "frames", '\n');
	for (size_t i = 0; i < profiles->frames.nr; i++)
		json_format(json, NULL, "%s", profiles->frames.texts[i]);
	putc('\n', json->out);
	json_end(json);
	json_end(json);
}

static const char *write_speedscope(FILE *out, const struct rows *rows)
{
	struct profiles profiles = { .rows = rows };
	struct json json = { .out = out };

	if (rows->options.chains)
		profiles.chain_frames = xcalloc(rows_chains(rows)->nr_frames + 1, sizeof(u32));
	json_object(&json, NULL);
	json_text(&json, "$schema", SCHEMA);
	json_text(&json, "exporter", "profil");
	json_text(&json, "name", rows->recording->meta.command);
	json_number(&json, "activeProfileIndex", 0);
	write_profiles(&json, &profiles);
	write_frames(&json, &profiles);
	json_end(&json);
	putc('\n', out);
	intern_free(&profiles.frames);
	tree_free(&profiles.stacks);
	free(profiles.chain_frames);
	return NULL;
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.about = "speedscope",
	.keys = { ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_SYMBOL },
	.nr_keys = 3,
	.rows.in_order = true,
	.rows.lines = true,
	.rows.chains = true,
	.write = write_speedscope,
};
