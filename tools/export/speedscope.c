// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The JSON of speedscope: a profile for each thread. Each sample has the frames of its call chain;
 * without stacks, those of the binary and of its function. The order of the samples has no meaning:
 * the view "Left Heavy" fits best.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "profile/chains.h"
#include "profile/escape.h"
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
	char *text = NULL;
	size_t size, index;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		xmalloc_failed(0);
	fputs("{\"name\": ", out);
	escape_print_json(out, name);
	if (source) {
		fputs(", \"file\": ", out);
		escape_print_json(out, source);
	}
	if (source && start > 0)
		fprintf(out, ", \"line\": %d", start);
	putc('}', out);
	if (fclose(out))
		xmalloc_failed(0);
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

static void print_stack(FILE *out, const struct tree *stacks, u32 stack)
{
	const struct tree_node *node = &stacks->nodes[stack];

	/* A stack has at most FORMAT_STACK_MAX calls, and few functions are inlined at each. */
	if (node->parent != TREE_ROOT) {
		print_stack(out, stacks, node->parent);
		fputs(", ", out);
	}
	fprintf(out, "%" PRIu32, node->key);
}

/* Prints the profile of one thread. @rows: its @nr rows. */
static void print_profile(FILE *out, struct profiles *profiles, const struct row *rows, size_t nr)
{
	const struct recording *recording = profiles->rows->recording;
	const bool has_time = recording->meta.tick_ns;
	char *name = nr ? row_text(&row_keys[ROWS_BY_THREAD], rows) : NULL;
	struct tree_ticks *stacks = tree_collect(profiles->rows, rows, &nr, add_stack, profiles);
	u64 ticks = 0;

	fputs("{\"type\": \"sampled\", \"name\": ", out);
	escape_print_json(out, name ?: recording->meta.command);
	fprintf(out, ", \"unit\": \"%s\", \"samples\": [", has_time ? "nanoseconds" : "none");
	for (size_t i = 0; i < nr; i++) {
		fputs(i ? ", [" : "[", out);
		print_stack(out, &profiles->stacks, stacks[i].node);
		putc(']', out);
	}
	fputs("], \"weights\": [", out);
	for (size_t i = 0; i < nr; i++) {
		u64 weight = stacks[i].ticks;

		ticks = ticks_add(ticks, weight);
		fprintf(out, "%s%" PRIu64, i ? ", " : "",
			has_time ? recording_ns(recording, weight) : weight);
	}
	fprintf(out, "], \"startValue\": 0, \"endValue\": %" PRIu64 "}",
		has_time ? recording_ns(recording, ticks) : ticks);
	free(stacks);
	free(name);
}

static const char *write_speedscope(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	struct profiles profiles = { .rows = rows };

	if (rows->chains)
		profiles.chain_frames = xcalloc(rows_chains(rows)->nr_frames + 1, sizeof(u32));
	fputs("{\"$schema\": \"" SCHEMA "\", \"exporter\": \"profil\", \"name\": ", out);
	escape_print_json(out, recording->meta.command);
	fputs(", \"activeProfileIndex\": 0, \"profiles\": [\n", out);
	for (size_t i = 0, nr; i < rows->nr; i += nr) {
		nr = rows_same_thread(rows, i);
		fputs(i ? ",\n" : "", out);
		print_profile(out, &profiles, &rows->rows[i], nr);
	}
	/* Speedscope does not open a file without a profile. */
	if (!rows->nr)
		print_profile(out, &profiles, NULL, 0);
	fputs("\n], \"shared\": {\"frames\": [", out);
	for (size_t i = 0; i < profiles.frames.nr; i++)
		fprintf(out, "%s%s", i ? ",\n" : "\n", profiles.frames.texts[i]);
	fputs("\n]}}\n", out);
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
	.in_order = true,
	.lines = true,
	.chains = true,
	.write = write_speedscope,
};
