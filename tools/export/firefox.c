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
#include "profile/chains.h"
#include "profile/escape.h"
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

/* Prints the array @name of @nr values. The expression @value can use the index i. */
#define COLUMN(out, name, nr, format, value)					\
	do {									\
		fputs("\"" name "\": [", out);					\
		for (size_t i = 0; i < (nr); i++)				\
			fprintf(out, "%s" format, i ? ", " : "", value);	\
		fputs("], ", out);						\
	} while (0)

/* An index or a number, or null */
struct cell {
	char text[24];
};

static struct cell cell(size_t value, bool is_known)
{
	struct cell cell = { "null" };

	if (is_known)
		snprintf(cell.text, sizeof(cell.text), "%zu", value);
	return cell;
}

static void print_meta(FILE *out, const struct recording *recording)
{
	const struct format_meta *meta = &recording->meta;

	fprintf(out, "\"meta\": {\"version\": %d, \"preprocessedProfileVersion\": %d, ",
		VERSION_GECKO, VERSION);
	fprintf(out, "\"interval\": %.6f, \"startTime\": %.3f, ",
		(meta->tick_ns ?: NS_PER_MS) / NS_PER_MS, meta->start_time / NS_PER_MS);
	fputs("\"processType\": 0, \"stackwalk\": 0, \"debug\": false, \"symbolicated\": true,\n"
	      "\"importedFrom\": \"profil\", \"usesOnlyOneStackType\": true,\n"
	      "\"sourceCodeIsNotOnSearchfox\": true, \"markerSchema\": [], \"categories\":\n"
	      "[{\"name\": \"Other\", \"color\": \"grey\", \"subcategories\": [\"Other\"]}],\n"
	      "\"oscpu\": ", out);
	escape_print_json(out, meta->release);
	fputs(", \"product\": ", out);
	escape_print_json(out, meta->command);
	fputs("}", out);
}

/* The libraries are the binaries that are files. */
static void print_libraries(FILE *out, const struct tables *tables)
{
	const char *separator = "";

	fputs("\"libs\": [", out);
	for (size_t i = 0; i < tables->binary_keys.nr; i++) {
		const struct recording_file *file = tables->binaries[i].file;
		struct buildid_text id;

		if (!file)
			continue;
		id = buildid_text(file->data.build_id, file->data.build_id_len);
		fprintf(out, "%s\n{\"arch\": \"\", \"breakpadId\": \"\", \"codeId\": ", separator);
		fprintf(out, *id.text ? "\"%s\"" : "null%s", id.text);
		fputs(", \"name\": ", out);
		escape_print_json(out, tables->strings.texts[tables->binaries[i].name]);
		fputs(", \"debugName\": ", out);
		escape_print_json(out, tables->strings.texts[tables->binaries[i].name]);
		fputs(", \"path\": ", out);
		escape_print_json(out, file->data.path);
		fputs(", \"debugPath\": ", out);
		escape_print_json(out, file->data.path);
		putc('}', out);
		separator = ",";
	}
	putc(']', out);
}

static void print_stacks(FILE *out, const struct tree *stacks)
{
	const struct tree_node *nodes = stacks->nodes;

	fputs("\"stackTable\": {", out);
	COLUMN(out, "frame", stacks->nr, "%" PRIu32, nodes[i].key);
	COLUMN(out, "prefix", stacks->nr, "%s",
	       cell(nodes[i].parent, nodes[i].parent != TREE_ROOT).text);
	fprintf(out, "\"length\": %zu},\n", stacks->nr);
}

static void print_lines(FILE *out, const struct tables *tables)
{
	const struct line *lines = tables->lines;
	const size_t nr = tables->line_keys.nr;

	fputs("\"frameTable\": {", out);
	COLUMN(out, "address", nr, "%d", -1);
	COLUMN(out, "inlineDepth", nr, "%d", lines[i].depth);
	COLUMN(out, "category", nr, "%d", 0);
	COLUMN(out, "subcategory", nr, "%d", 0);
	COLUMN(out, "func", nr, "%zu", lines[i].function);
	COLUMN(out, "nativeSymbol", nr, "%s", "null");
	COLUMN(out, "innerWindowID", nr, "%d", 0);
	COLUMN(out, "line", nr, "%s", cell(lines[i].line, lines[i].line > 0).text);
	COLUMN(out, "column", nr, "%s", "null");
	fprintf(out, "\"length\": %zu},\n", nr);
}

static void print_functions(FILE *out, const struct tables *tables)
{
	const struct func *functions = tables->functions;
	const size_t nr = tables->function_keys.nr;

	fputs("\"funcTable\": {", out);
	COLUMN(out, "name", nr, "%zu", functions[i].name);
	COLUMN(out, "isJS", nr, "%s", "false");
	COLUMN(out, "relevantForJS", nr, "%s", "false");
	COLUMN(out, "resource", nr, "%zu", functions[i].binary);
	COLUMN(out, "source", nr, "%s",
	       cell(functions[i].source, functions[i].source != NONE).text);
	COLUMN(out, "lineNumber", nr, "%s", "null");
	COLUMN(out, "columnNumber", nr, "%s", "null");
	fprintf(out, "\"length\": %zu},\n", nr);
}

static void print_binaries(FILE *out, const struct tables *tables)
{
	const struct binary *binaries = tables->binaries;
	const size_t nr = tables->binary_keys.nr;
	size_t library = 0;

	fputs("\"resourceTable\": {", out);
	COLUMN(out, "lib", nr, "%s", cell(binaries[i].file ? library++ : 0, binaries[i].file).text);
	COLUMN(out, "name", nr, "%zu", binaries[i].name);
	COLUMN(out, "host", nr, "%s", "null");
	/* 1: a library */
	COLUMN(out, "type", nr, "%d", binaries[i].file ? 1 : 0);
	fprintf(out, "\"length\": %zu},\n"
		"\"nativeSymbols\": {\"libIndex\": [], \"address\": [],\n"
		"\"name\": [], \"functionSize\": [], \"length\": 0},\n", nr);
}

/* Prints the tables. The names of sources become strings before these are printed. */
static void print_tables(FILE *out, struct tables *tables)
{
	const size_t nr = tables->sources.nr;

	fputs("\"shared\": {", out);
	print_stacks(out, &tables->stacks);
	print_lines(out, tables);
	print_functions(out, tables);
	print_binaries(out, tables);
	fputs("\"sources\": {", out);
	COLUMN(out, "uuid", nr, "%s", "null");
	COLUMN(out, "filename", nr, "%zu", intern(&tables->strings, tables->sources.texts[i]));
	fprintf(out, "\"length\": %zu},\n\"stringArray\": [", nr);
	for (size_t i = 0; i < tables->strings.nr; i++) {
		fputs(i ? ",\n" : "\n", out);
		escape_print_json(out, tables->strings.texts[i]);
	}
	fputs("]}", out);
}

/* Prints the thread of the @nr rows at @rows. */
static void print_thread(FILE *out, const struct rows *all, const struct row *rows, size_t nr,
			 struct tables *tables)
{
	const struct recording_thread *thread = rows->thread->thread;
	const double tick_ms = (all->recording->meta.tick_ns ?: NS_PER_MS) / NS_PER_MS;
	struct tree_ticks *stacks = tree_collect(all, rows, &nr, add_stack, tables);
	u64 before = 0;

	fputs("{\"processType\": \"default\", \"processStartupTime\": 0, \"registerTime\": 0,\n"
	      "\"processShutdownTime\": null, \"unregisterTime\": null, \"pausedRanges\": [],\n"
	      "\"name\": ", out);
	escape_print_json(out, thread->data.comm);
	fputs(", \"processName\": ", out);
	escape_print_json(out, thread->process->data.comm);
	fprintf(out, ", \"isMainThread\": %s, \"pid\": \"%d\", \"tid\": %d, \"samples\": {",
		thread->data.tid == thread->data.pid ? "true" : "false", thread->data.pid,
		thread->data.tid);
	COLUMN(out, "stack", nr, "%" PRIu32, stacks[i].node);
	COLUMN(out, "weight", nr, "%" PRIu64, stacks[i].ticks);
	fputs("\"time\": [", out);
	for (size_t i = 0; i < nr; i++) {
		fprintf(out, "%s%.6f", i ? ", " : "", before * tick_ms);
		before = ticks_add(before, stacks[i].ticks);
	}
	fprintf(out, "], \"weightType\": \"samples\", \"length\": %zu},\n", nr);
	fputs("\"markers\": {\"data\": [], \"name\": [], \"startTime\": [], \"endTime\": [],\n"
	      "\"phase\": [], \"category\": [], \"length\": 0}}", out);
	free(stacks);
}

static const char *write_firefox(FILE *out, const struct rows *rows)
{
	struct tables tables = {};

	if (rows->chains)
		tables.chain_lines = xcalloc(rows_chains(rows)->nr_frames + 1, sizeof(u32));
	putc('{', out);
	print_meta(out, rows->recording);
	fputs(",\n\"threads\": [", out);
	for (size_t i = 0, nr; i < rows->nr; i += nr) {
		nr = rows_same_thread(rows, i);
		fputs(i ? ",\n" : "\n", out);
		print_thread(out, rows, &rows->rows[i], nr, &tables);
	}
	fputs("],\n", out);
	print_libraries(out, &tables);
	fputs(",\n", out);
	print_tables(out, &tables);
	fputs("}\n", out);
	intern_free(&tables.strings);
	intern_free(&tables.sources);
	intern_free(&tables.line_keys);
	intern_free(&tables.function_keys);
	intern_free(&tables.binary_keys);
	free(tables.lines);
	free(tables.functions);
	free(tables.binaries);
	tree_free(&tables.stacks);
	free(tables.chain_lines);
	return NULL;
}

const struct export_format export_firefox = {
	.name = "firefox",
	.about = "profiler.firefox.com",
	.keys = { ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_SYMBOL, ROWS_BY_LINE },
	.nr_keys = 4,
	.in_order = true,
	.chains = true,
	.write = write_firefox,
};
