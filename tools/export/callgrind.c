// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The format of callgrind, which callgrind_annotate and kcachegrind read. Each line has the ticks
 * of a source line itself. With stacks, there are calls, with the ticks during the call as their
 * cost. The first use of a name gives it a number.
 *
 * Readers take the sum of the costs of its calls as the inclusive cost of a function. So a sample
 * is part of the cost of only the outermost call of each function. The outermost function has such
 * a call, too: the process calls it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "profile/chains.h"
#include "profile/escape.h"
#include "profile/intern.h"
#include "text/text.h"

#define NO_FILE "???"
/* The number of lines may double, and grow by this, before equal ones are added up. */
#define LINES_MAX 100000

/* The names in the file: each kind has its own numbers. */
struct names {
	struct intern binaries;
	struct intern sources;
	struct intern functions;
};

static void print_name(FILE *out, const char *kind, struct intern *set, const char *name)
{
	size_t nr = set->nr, index = intern(set, name);

	fprintf(out, "%s=(%zu)", kind, index + 1);
	if (set->nr > nr) {
		putc(' ', out);
		escape_print(out, name);
	}
	putc('\n', out);
}

/* Returns the file of the function itself. The code of a row may be inlined from another one. */
static const char *source_of(const struct row *row)
{
	return place_outermost(&row->place).source ?: row->place.source ?: NO_FILE;
}

static void print_heading(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	char **warnings = text_list_warnings(recording);

	fputs("# callgrind format\nversion: 1\ncreator: profil\n", out);
	fprintf(out, "pid: %d\ncmd: ", recording->meta.pid);
	escape_print(out, recording->meta.command);
	putc('\n', out);
	for (char **line = warnings; *line; line++)
		fprintf(out, "desc: %s\n", *line);
	fprintf(out, "positions: line\nevents: Ticks\nsummary: %" PRIu64 "\n", rows->ticks);
	freeargv(warnings);
}

/* ---- calls ---- */

/* A source line of a function with its own ticks, or the calls of a function from there */
struct line {
	const struct profile_function *function;
	const struct profile_function *callee;	/* NULL: the ticks of the line itself */
	const char *source;			/* of the line, or NULL */
	int line;
	u64 nr;
	u64 ticks;
};

/**
 * struct calls - All lines
 * @lines: The lines.
 * @processes: The names of the processes.
 * @callers: By the indexes of these, functions that stand for the processes.
 * @nr_functions: The number of functions in the chains. The others have the indexes after it.
 * @sources: By the indexes of the functions, their source files.
 * @starts: By the indexes of the functions, the lines where they are declared, or 0.
 * @last: By the indexes of the functions, the part in which they were called last, plus 1.
 */
struct calls {
	struct line *lines;
	size_t nr;
	struct intern processes;
	struct profile_function *callers;
	size_t nr_functions;
	const char **sources;
	int *starts;
	size_t *last;
};

static int compare_functions(const struct profile_function *a, const struct profile_function *b)
{
	return strcmp(a->binary, b->binary) ?: strcmp(a->name, b->name) ?:
	       compare_u64(a->index, b->index);
}

/* Two functions have the same place in the order only if they are the same function. */
static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return compare_functions(x->function, y->function) ?:
	       strcmp(x->source ?: "", y->source ?: "") ?: compare_u64(x->line, y->line) ?:
	       compare_u64(!!x->callee, !!y->callee) ?:
	       (x->callee ? compare_functions(x->callee, y->callee) : 0);
}

static void add_line(struct calls *calls, const struct line *line)
{
	if (!array_grow(&calls->lines, calls->nr, sizeof(*line)))
		xmalloc_failed(sizeof(*line));
	calls->lines[calls->nr++] = *line;
}

/* Keeps what the frame tells about its function. */
static void learn_function(struct calls *calls, const struct chain_frame *frame)
{
	const size_t index = frame->function->index;

	calls->sources[index] = calls->sources[index] ?: frame->code.source;
	calls->starts[index] = calls->starts[index] ?: frame->code.start;
}

/* Returns a function that stands for the process. */
static const struct profile_function *process_of(struct calls *calls, const struct row *part)
{
	const size_t nr = calls->processes.nr;
	const size_t index = intern_format(&calls->processes, "[process %s]",
					   part->thread->process->data.comm);

	if (calls->processes.nr > nr)
		calls->callers[index] = (struct profile_function){
			.index = calls->nr_functions + index,
			.name = calls->processes.texts[index],
			.binary = PROFILE_UNKNOWN,
		};
	return &calls->callers[index];
}

/*
 * Adds the lines of a sample. A function that is inlined is a line of the function that contains
 * it. @count: the number of the sample.
 */
static void add_part(struct calls *calls, const struct row *part, size_t count)
{
	const struct chain *chain = part->chain;
	struct line line = { .function = process_of(calls, part), .nr = part->nr };

	for (size_t i = 0, end; i < chain->nr; i = end) {
		const struct profile_function *function = chain->frames[i]->function;
		const struct chain_frame *place;

		for (end = i + 1; end < chain->nr && chain->frames[end]->inlined; end++)
			;
		place = chain->frames[end - 1];
		learn_function(calls, chain->frames[i]);
		line.callee = function;
		line.ticks = calls->last[function->index] == count ? 0 : row_ticks(part);
		calls->last[function->index] = count;
		add_line(calls, &line);
		line.function = function;
		line.source = place->code.source;
		line.line = place->code.source ? place->code.line : 0;
	}
	line.callee = NULL;
	line.ticks = row_ticks(part);
	add_line(calls, &line);
}

/* Adds up equal lines. */
static void merge_lines(struct calls *calls)
{
	struct line *to = calls->lines;

	if (!calls->nr)
		return;
	qsort(calls->lines, calls->nr, sizeof(*to), compare_lines);
	for (struct line *from = to + 1; from < calls->lines + calls->nr; from++) {
		if (compare_lines(to, from)) {
			*++to = *from;
			continue;
		}
		to->nr = ticks_add(to->nr, from->nr);
		to->ticks = ticks_add(to->ticks, from->ticks);
	}
	calls->nr = to + 1 - calls->lines;
}

static void print_line(FILE *out, const struct calls *calls, const struct line *line,
		       struct names *names)
{
	const struct profile_function *callee = line->callee;

	if (callee) {
		print_name(out, "cob", &names->binaries, callee->binary);
		print_name(out, "cfi", &names->sources, calls->sources[callee->index] ?: NO_FILE);
		print_name(out, "cfn", &names->functions, callee->name);
		fprintf(out, "calls=%" PRIu64 " %d\n", line->nr, calls->starts[callee->index]);
	}
	fprintf(out, "%d %" PRIu64 "\n", line->line, line->ticks);
}

static void print_lines(FILE *out, const struct calls *calls, struct names *names)
{
	const struct line *last = NULL;
	const char *source = NULL;

	for (size_t i = 0; i < calls->nr; i++) {
		const struct line *line = &calls->lines[i];
		const char *own = calls->sources[line->function->index] ?: NO_FILE;
		const char *here = line->source ?: own;

		if (!last || last->function != line->function) {
			putc('\n', out);
			print_name(out, "ob", &names->binaries, line->function->binary);
			print_name(out, "fl", &names->sources, own);
			print_name(out, "fn", &names->functions, line->function->name);
			source = own;
		}
		if (strcmp(here, source))
			print_name(out, strcmp(here, own) ? "fi" : "fe", &names->sources, here);
		print_line(out, calls, line, names);
		source = here;
		last = line;
	}
}

static void write_calls(FILE *out, const struct rows *rows, struct names *names)
{
	const size_t nr_functions = rows_chains(rows)->nr_functions;
	/* There is also the name of a process that is not known. */
	const size_t nr_callers = rows->recording->nr_threads + 1;
	struct calls calls = {
		.callers = xcalloc(nr_callers, sizeof(*calls.callers)),
		.nr_functions = nr_functions,
		.sources = xcalloc(nr_functions + nr_callers, sizeof(*calls.sources)),
		.starts = xcalloc(nr_functions + nr_callers, sizeof(*calls.starts)),
		.last = xcalloc(nr_functions + 1, sizeof(*calls.last)),
	};
	size_t merged = 0;

	for (size_t i = 0; i < rows->nr_parts; i++) {
		add_part(&calls, &rows->parts[i], i + 1);
		if (calls.nr > 2 * merged + LINES_MAX) {
			merge_lines(&calls);
			merged = calls.nr;
		}
	}
	merge_lines(&calls);
	print_lines(out, &calls, names);
	free(calls.lines);
	intern_free(&calls.processes);
	free(calls.callers);
	free(calls.sources);
	free(calls.starts);
	free(calls.last);
}

/* ---- without stacks ---- */

static void write_rows(FILE *out, const struct rows *rows, struct names *names)
{
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];
		const char *source = source_of(row);

		putc('\n', out);
		print_name(out, "ob", &names->binaries, row->function.binary);
		print_name(out, "fl", &names->sources, source);
		print_name(out, "fn", &names->functions, row->function.name);
		if (row->place.source && strcmp(row->place.source, source))
			print_name(out, "fi", &names->sources, row->place.source);
		fprintf(out, "%d %" PRIu64 "\n", row->place.source ? row->place.line : 0,
			row_ticks(row));
	}
}

static const char *write_callgrind(FILE *out, const struct rows *rows)
{
	struct names names = {};

	print_heading(out, rows);
	if (rows->options.chains)
		write_calls(out, rows, &names);
	else
		write_rows(out, rows, &names);
	intern_free(&names.binaries);
	intern_free(&names.sources);
	intern_free(&names.functions);
	return NULL;
}

const struct export_format export_callgrind = {
	.name = "callgrind",
	.about = "callgrind_annotate, kcachegrind",
	.keys = { ROWS_BY_DSO, ROWS_BY_SYMBOL, ROWS_BY_LINE },
	.nr_keys = 3,
	.rows.in_order = true,
	.rows.chains = true,
	.write = write_callgrind,
};
