// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The format of callgrind, which callgrind_annotate and kcachegrind read. There are no calls: each
 * line has the ticks of a source line itself. The first use of a name gives it a number.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/escape.h"
#include "output/intern.h"
#include "output/output.h"

#define NO_FILE "???"

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
	const char *source = row->nr_frames ? row->frames[0].source : NULL;

	return source ?: row->source ?: NO_FILE;
}

static void print_heading(FILE *out, const struct rows *rows)
{
	const struct recording *recording = rows->recording;
	char *warnings = output_list_warnings(recording), *rest = warnings, *line;

	fputs("# callgrind format\nversion: 1\ncreator: profil\n", out);
	fprintf(out, "pid: %d\ncmd: ", recording->meta.pid);
	escape_print(out, recording->meta.command);
	putc('\n', out);
	while ((line = strsep(&rest, "\n")))
		if (*line)
			fprintf(out, "desc: %s\n", line);
	fprintf(out, "positions: line\nevents: Ticks\nsummary: %" PRIu64 "\n", rows->ticks);
	free(warnings);
}

static const char *write_callgrind(FILE *out, const struct rows *rows)
{
	struct names names = {};

	print_heading(out, rows);
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];
		const char *source = source_of(row);

		putc('\n', out);
		print_name(out, "ob", &names.binaries, row->binary);
		print_name(out, "fl", &names.sources, source);
		print_name(out, "fn", &names.functions, row->name);
		if (row->source && strcmp(row->source, source))
			print_name(out, "fi", &names.sources, row->source);
		fprintf(out, "%d %" PRIu64 "\n", row->source ? row->line : 0, row_ticks(row));
	}
	intern_free(&names.binaries);
	intern_free(&names.sources);
	intern_free(&names.functions);
	return NULL;
}

const struct output_format output_callgrind = {
	.name = "callgrind",
	.about = "callgrind_annotate, kcachegrind",
	.keys = { ROWS_BY_DSO, ROWS_BY_SYMBOL, ROWS_BY_LINE },
	.nr_keys = 3,
	.in_order = true,
	.write = write_callgrind,
};
