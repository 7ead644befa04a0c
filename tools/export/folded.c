// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Folded stacks, from which tools draw flame graphs: a line "PROCESS;FUNCTION;...;FUNCTION TICKS"
 * for each chain; without stacks "PROCESS;BINARY;FUNCTION TICKS" for each row. A semicolon in a
 * name has an escape, as control characters have.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "profile/chains.h"
#include "profile/escape.h"

static void print_frame(FILE *out, const char *name)
{
	char *escaped = escape_text(*name ? name : PROFILE_UNKNOWN);

	for (const char *at = escaped; *at; at++) {
		if (*at == ';')
			fputs("\\x3b", out);
		else
			putc(*at, out);
	}
	free(escaped);
}

/* Orders the parts of a row by the functions of their chains. */
static int compare_chains(const void *a, const void *b)
{
	const struct row *const *x = a, *const *y = b;
	const struct chain *one = (*x)->chain, *other = (*y)->chain;
	int order = 0;

	for (size_t i = 0; i < one->nr && i < other->nr && !order; i++)
		order = compare_u64(one->frames[i]->function->index,
				    other->frames[i]->function->index);
	return order ?: compare_u64(one->nr, other->nr);
}

static void print_chain(FILE *out, const struct row *row, u64 ticks)
{
	print_frame(out, row->thread->process->data.comm);
	for (size_t i = 0; i < row->chain->nr; i++) {
		putc(';', out);
		print_frame(out, row->chain->frames[i]->function->name);
	}
	fprintf(out, " %" PRIu64 "\n", ticks);
}

/* Prints the chains of a row. */
static void print_chains(FILE *out, const struct row *row)
{
	const struct row **parts = xcalloc(row->nr_parts, sizeof(*parts));
	u64 ticks = 0;

	for (size_t i = 0; i < row->nr_parts; i++)
		parts[i] = &row->parts[i];
	qsort(parts, row->nr_parts, sizeof(*parts), compare_chains);
	for (size_t i = 0; i < row->nr_parts; i++) {
		ticks = ticks_add(ticks, row_ticks(parts[i]));
		if (i + 1 < row->nr_parts && !compare_chains(&parts[i], &parts[i + 1]))
			continue;
		print_chain(out, parts[i], ticks);
		ticks = 0;
	}
	free(parts);
}

static const char *write_folded(FILE *out, const struct rows *rows)
{
	if (rows->options.chains) {
		for (size_t i = 0; i < rows->nr; i++)
			print_chains(out, &rows->rows[i]);
		return NULL;
	}
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];

		print_frame(out, row->thread->process->data.comm);
		putc(';', out);
		print_frame(out, row->function.label);
		putc(';', out);
		print_frame(out, row->function.name);
		fprintf(out, " %" PRIu64 "\n", row_ticks(row));
	}
	return NULL;
}

const struct export_format export_folded = {
	.name = "folded",
	.about = "flamegraph.pl and others: process;binary;function ticks",
	.keys = { ROWS_BY_PROCESS, ROWS_BY_DSO, ROWS_BY_SYMBOL },
	.nr_keys = 3,
	.rows.chains = true,
	.write = write_folded,
};
