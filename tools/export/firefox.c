// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The JSON of the Firefox Profiler: its "processed profile format", version 60. Later versions of
 * the profiler upgrade it. Functions, lines and binaries are in tables: an array for each column.
 *
 * Times of samples are not those of the recording: each thread begins at 0, and its samples follow
 * each other.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/json_writer.h"
#include "profile/chains.h"
#include "profile/intern.h"
#include "profile/tree.h"
#include "symbols/files.h"

#define VERSION 60
/* The version of the format that Firefox itself writes. It has no effect, but must exist. */
#define VERSION_GECKO 24
#define NS_PER_MS 1e6
#define NONE SIZE_MAX

/* A source line of a function. This format calls it a frame. */
struct line {
	size_t function;
	int line;		/* 0: not known */
	int depth;		/* the number of functions in which it is inlined */
};

struct func {
	size_t name;		/* indexes of strings */
	size_t source;		/* an index of a source, or NONE */
	size_t binary;
};

struct binary {
	size_t name;
	const struct recording_file *file;	/* NULL if it is not a file */
};

/* The tables of the profile. A set has the keys of the entries of its table. */
struct tables {
	struct intern strings;
	struct intern sources;
	struct intern line_keys, function_keys, binary_keys;
	struct line *lines;
	struct func *functions;
	struct binary *binaries;
	struct tree stacks;	/* the keys are indexes of lines */
	u32 *chain_lines;	/* by the indexes of chain_frames: that of the line plus 1, or 0 */
};

/* Makes room for the entry @nr of a table. */
static void grow(void *table, size_t nr, size_t size)
{
	if (!array_grow(table, nr, size))
		xmalloc_failed(size);
}

static size_t add_binary(struct tables *tables, const struct recording_file *file,
			 const struct profile_function *function)
{
	const size_t nr = tables->binary_keys.nr;
	const size_t index = intern_format(&tables->binary_keys, "%u %s",
					   file ? file->data.id : 0, function->binary);

	if (tables->binary_keys.nr > nr) {
		grow(&tables->binaries, nr, sizeof(*tables->binaries));
		tables->binaries[nr].name = intern(&tables->strings, function->label);
		tables->binaries[nr].file = file;
		if (file && file->data.flags & FORMAT_FILE_NONE)
			tables->binaries[nr].file = NULL;
	}
	return index;
}

static size_t add_function(struct tables *tables, const struct chain_frame *frame)
{
	const struct profile_function *function = frame->function;
	const size_t binary = add_binary(tables, frame->file, function);
	const size_t name = intern(&tables->strings, function->name);
	const char *path = frame->code.source;
	const size_t source = path ? intern(&tables->sources, path) : NONE;
	const size_t nr = tables->function_keys.nr;
	const size_t index = intern_format(&tables->function_keys, "%zu %zu %zu %" PRIu64, binary,
					   name, source, function->start);

	if (tables->function_keys.nr > nr) {
		grow(&tables->functions, nr, sizeof(*tables->functions));
		tables->functions[nr] = (struct func){ name, source, binary };
	}
	return index;
}

static size_t add_line(struct tables *tables, const struct chain_frame *frame, int depth)
{
	const size_t function = add_function(tables, frame);
	const int line = frame->code.source ? frame->code.line : 0;
	const size_t nr = tables->line_keys.nr;
	const size_t index = intern_format(&tables->line_keys, "%zu %d %d", function, line, depth);

	if (tables->line_keys.nr > nr) {
		grow(&tables->lines, nr, sizeof(*tables->lines));
		tables->lines[nr] = (struct line){ function, line, depth };
	}
	return index;
}

static u32 add_chain(struct tables *tables, const struct chain *chain)
{
	u32 stack = TREE_ROOT;
	int depth = 0;

	for (size_t i = 0; i < chain->nr; i++) {
		const struct chain_frame *frame = chain->frames[i];
		u32 *index = &tables->chain_lines[frame->index];

		depth = frame->inlined ? depth + 1 : 0;
		if (!*index)
			*index = 1 + add_line(tables, frame, depth);
		stack = tree_child(&tables->stacks, stack, *index - 1);
	}
	return stack;
}

/* Returns the stack of a row, a node of the tree. */
static u32 add_stack(void *data, const struct row *row)
{
	const struct chain_frame frame = row_frame(row);
	struct tables *tables = data;

	if (row->chain)
		return add_chain(tables, row->chain);
	/* The innermost function may be inlined from another file: this is the outermost one. */
	return tree_child(&tables->stacks, TREE_ROOT, add_line(tables, &frame, 0));
}

/* ---- JSON ---- */

/* Writes the array @key of @nr values. The expression @value, which writes one, can use i. */
#define COLUMN(json, key, nr, value)		\
	do {					\
		json_array(json, key, ' ');	\
		for (size_t i = 0; i < (nr); i++)	\
			value;			\
		json_end(json);			\
	} while (0)

/* Writes an index or a number, or null. */
static void write_known(struct json *json, size_t value, bool is_known)
{
	if (is_known)
		json_number(json, NULL, value);
	else
		json_text(json, NULL, NULL);
}

static void write_length(struct json *json, size_t nr)
{
	json_number(json, "length", nr);
}

/* Members that do not depend on the recording */

static const char meta_members[] =
	"\"processType\": 0, \"stackwalk\": 0, \"debug\": false, \"symbolicated\": true,\n"
	"\"importedFrom\": \"profil\", \"usesOnlyOneStackType\": true,\n"
	"\"sourceCodeIsNotOnSearchfox\": true, \"markerSchema\": [], \"categories\":\n"
	"[{\"name\": \"Other\", \"color\": \"grey\", \"subcategories\": [\"Other\"]}]";

static const char thread_members[] =
	"\"processType\": \"default\", \"processStartupTime\": 0, \"registerTime\": 0,\n"
	"\"processShutdownTime\": null, \"unregisterTime\": null, \"pausedRanges\": []";

static const char no_markers[] =
	"{\"data\": [], \"name\": [], \"startTime\": [], \"endTime\": [],\n"
	"\"phase\": [], \"category\": [], \"length\": 0}";

static const char no_symbols[] =
	"{\"libIndex\": [], \"address\": [],\n"
	"\"name\": [], \"functionSize\": [], \"length\": 0}";

static void write_meta(struct json *json, const struct recording *recording)
{
	const struct format_meta *meta = &recording->meta;

	json_object(json, "meta");
	json_number(json, "version", VERSION_GECKO);
	json_number(json, "preprocessedProfileVersion", VERSION);
	json_format(json, "interval", "%.6f", (meta->tick_ns ?: NS_PER_MS) / NS_PER_MS);
	json_format(json, "startTime", "%.3f", meta->start_time / NS_PER_MS);
	json_format(json, NULL, "%s", meta_members);
	json_line(json);
	json_text(json, "oscpu", meta->release);
	json_text(json, "product", meta->command);
	json_end(json);
}

static void write_library(struct json *json, const char *name, const struct format_file *file)
{
	const struct buildid_text id = buildid_text(file->build_id, file->build_id_len);

	json_object(json, NULL);
	json_text(json, "arch", "");
	json_text(json, "breakpadId", "");
	json_text(json, "codeId", *id.text ? id.text : NULL);
	json_text(json, "name", name);
	json_text(json, "debugName", name);
	json_text(json, "path", file->path);
	json_text(json, "debugPath", file->path);
	json_end(json);
}

/* The libraries are the binaries that are files. */
static void write_libraries(struct json *json, const struct tables *tables)
{
	json_line(json);
	json_array(json, "libs", '\n');
	for (size_t i = 0; i < tables->binary_keys.nr; i++) {
		const struct binary *binary = &tables->binaries[i];

		if (binary->file)
			write_library(json, tables->strings.texts[binary->name],
				      &binary->file->data);
	}
	json_end(json);
}

static void write_stacks(struct json *json, const struct tree *stacks)
{
	const struct tree_node *nodes = stacks->nodes;

	json_object(json, "stackTable");
	COLUMN(json, "frame", stacks->nr, json_number(json, NULL, nodes[i].key));
	COLUMN(json, "prefix", stacks->nr,
	       write_known(json, nodes[i].parent, nodes[i].parent != TREE_ROOT));
	write_length(json, stacks->nr);
	json_end(json);
}

static void write_lines(struct json *json, const struct tables *tables)
{
	const struct line *lines = tables->lines;
	const size_t nr = tables->line_keys.nr;

	json_line(json);
	json_object(json, "frameTable");
	COLUMN(json, "address", nr, json_format(json, NULL, "-1"));
	COLUMN(json, "inlineDepth", nr, json_number(json, NULL, lines[i].depth));
	COLUMN(json, "category", nr, json_number(json, NULL, 0));
	COLUMN(json, "subcategory", nr, json_number(json, NULL, 0));
	COLUMN(json, "func", nr, json_number(json, NULL, lines[i].function));
	COLUMN(json, "nativeSymbol", nr, json_text(json, NULL, NULL));
	COLUMN(json, "innerWindowID", nr, json_number(json, NULL, 0));
	COLUMN(json, "line", nr, write_known(json, lines[i].line, lines[i].line > 0));
	COLUMN(json, "column", nr, json_text(json, NULL, NULL));
	write_length(json, nr);
	json_end(json);
}

static void write_functions(struct json *json, const struct tables *tables)
{
	const struct func *functions = tables->functions;
	const size_t nr = tables->function_keys.nr;

	json_line(json);
	json_object(json, "funcTable");
	COLUMN(json, "name", nr, json_number(json, NULL, functions[i].name));
	COLUMN(json, "isJS", nr, json_bool(json, NULL, false));
	COLUMN(json, "relevantForJS", nr, json_bool(json, NULL, false));
	COLUMN(json, "resource", nr, json_number(json, NULL, functions[i].binary));
	COLUMN(json, "source", nr,
	       write_known(json, functions[i].source, functions[i].source != NONE));
	COLUMN(json, "lineNumber", nr, json_text(json, NULL, NULL));
	COLUMN(json, "columnNumber", nr, json_text(json, NULL, NULL));
	write_length(json, nr);
	json_end(json);
}

static void write_binaries(struct json *json, const struct tables *tables)
{
	const struct binary *binaries = tables->binaries;
	const size_t nr = tables->binary_keys.nr;
	size_t library = 0;

	json_line(json);
	json_object(json, "resourceTable");
	COLUMN(json, "lib", nr,
	       write_known(json, binaries[i].file ? library++ : 0, binaries[i].file));
	COLUMN(json, "name", nr, json_number(json, NULL, binaries[i].name));
	COLUMN(json, "host", nr, json_text(json, NULL, NULL));
	/* 1: a library */
	COLUMN(json, "type", nr, json_number(json, NULL, binaries[i].file ? 1 : 0));
	write_length(json, nr);
	json_end(json);
	json_line(json);
	json_format(json, "nativeSymbols", "%s", no_symbols);
}

/* Writes the tables. The names of sources become strings before these are written. */
static void write_tables(struct json *json, struct tables *tables)
{
	const size_t nr = tables->sources.nr;

	json_line(json);
	json_object(json, "shared");
	write_stacks(json, &tables->stacks);
	write_lines(json, tables);
	write_functions(json, tables);
	write_binaries(json, tables);
	json_line(json);
	json_object(json, "sources");
	COLUMN(json, "uuid", nr, json_text(json, NULL, NULL));
	COLUMN(json, "filename", nr,
	       json_number(json, NULL, intern(&tables->strings, tables->sources.texts[i])));
	write_length(json, nr);
	json_end(json);
	json_line(json);
	json_array(json, "stringArray", '\n');
	for (size_t i = 0; i < tables->strings.nr; i++)
		json_text(json, NULL, tables->strings.texts[i]);
	json_end(json);
	json_end(json);
}

static void write_samples(struct json *json, const struct tree_ticks *stacks, size_t nr,
			  double tick_ms)
{
	u64 before = 0;

	json_object(json, "samples");
	COLUMN(json, "stack", nr, json_number(json, NULL, stacks[i].node));
	COLUMN(json, "weight", nr, json_number(json, NULL, stacks[i].ticks));
	json_array(json, "time", ' ');
	for (size_t i = 0; i < nr; i++) {
		json_format(json, NULL, "%.6f", before * tick_ms);
		before = ticks_add(before, stacks[i].ticks);
	}
	json_end(json);
	json_text(json, "weightType", "samples");
	write_length(json, nr);
	json_end(json);
}

/* Writes the thread of the @nr rows at @rows. */
static void write_thread(struct json *json, const struct rows *all, const struct row *rows,
			 size_t nr, struct tables *tables)
{
	const struct recording_thread *thread = rows->thread->thread;
	const double tick_ms = (all->recording->meta.tick_ns ?: NS_PER_MS) / NS_PER_MS;
	struct tree_ticks *stacks = tree_collect(all, rows, &nr, add_stack, tables);

	json_object(json, NULL);
	json_format(json, NULL, "%s", thread_members);
	json_line(json);
	json_text(json, "name", thread->data.comm);
	json_text(json, "processName", thread->process->data.comm);
	json_bool(json, "isMainThread", thread->data.tid == thread->data.pid);
	json_format(json, "pid", "\"%d\"", thread->data.pid);
	json_format(json, "tid", "%d", thread->data.tid);
	write_samples(json, stacks, nr, tick_ms);
	json_line(json);
	json_format(json, "markers", "%s", no_markers);
	json_end(json);
	free(stacks);
}

static void free_tables(struct tables *tables)
{
	intern_free(&tables->strings);
	intern_free(&tables->sources);
	intern_free(&tables->line_keys);
	intern_free(&tables->function_keys);
	intern_free(&tables->binary_keys);
	free(tables->lines);
	free(tables->functions);
	free(tables->binaries);
	tree_free(&tables->stacks);
	free(tables->chain_lines);
}

static const char *write_firefox(FILE *out, const struct rows *rows)
{
	struct tables tables = {};
	struct json json = { .out = out };

	if (rows->options.chains)
		tables.chain_lines = xcalloc(rows_chains(rows)->nr_frames + 1, sizeof(u32));
	json_object(&json, NULL);
	write_meta(&json, rows->recording);
	json_line(&json);
	json_array(&json, "threads", '\n');
	for (size_t i = 0, nr; i < rows->nr; i += nr) {
		nr = rows_same_thread(rows, i);
		write_thread(&json, rows, &rows->rows[i], nr, &tables);
	}
	json_end(&json);
	write_libraries(&json, &tables);
	write_tables(&json, &tables);
	json_end(&json);
	putc('\n', out);
	free_tables(&tables);
	return NULL;
}

const struct export_format export_firefox = {
	.name = "firefox",
	.about = "profiler.firefox.com",
	.keys = { ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_SYMBOL, ROWS_BY_LINE },
	.nr_keys = 4,
	.rows.in_order = true,
	.rows.chains = true,
	.write = write_firefox,
};
