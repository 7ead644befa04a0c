// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folded stacks, from which tools draw flame graphs: a line "PROCESS;BINARY;FUNCTION TICKS" for
 * each row. A semicolon in a name has an escape, as control characters have.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "output/escape.h"
#include "output/output.h"

static void print_frame(FILE *out, const char *name)
{
	char *escaped = escape_text(*name ? name : ROWS_UNKNOWN);

	for (const char *at = escaped; *at; at++) {
		if (*at == ';')
			fputs("\\x3b", out);
		else
			putc(*at, out);
	}
	free(escaped);
}

static const char *write_folded(FILE *out, const struct rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];

		print_frame(out, row->thread->process->data.comm);
		putc(';', out);
		print_frame(out, row->label);
		putc(';', out);
		print_frame(out, row->name);
		fprintf(out, " %" PRIu64 "\n", row_ticks(row));
	}
	return NULL;
}

const struct output_format output_folded = {
	.name = "folded",
	.about = "flamegraph.pl and others: process;binary;function ticks",
	.keys = { ROWS_BY_PROCESS, ROWS_BY_DSO, ROWS_BY_SYMBOL },
	.nr_keys = 3,
	.write = write_folded,
};
