// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The CSV format, for other programs to read. Control characters have escapes as in the text
 * format, so a field is never longer than a line. A spreadsheet would execute a field that begins
 * with one of =+-@, so this character has an escape, too.
 */
#include <inttypes.h>

#include "export/export.h"

void export_csv_key(FILE *out, const struct row_key *key, const struct row *row)
{
	char *text = row_text(key, row);

	fputs(",\"", out);
	if (*text && strchr("=+-@", *text))
		fprintf(out, "\\x%02x", *text);
	for (const char *at = text + (*text && strchr("=+-@", *text)); *at; at++) {
		if (*at == '"')
			putc('"', out);
		putc(*at, out);
	}
	putc('"', out);
	free(text);
}

static const char *write_csv(FILE *out, const struct rows *rows)
{
	fputs("share,error,samples,user,system", out);
	for (size_t i = 0; i < rows->nr_keys; i++)
		fprintf(out, ",%s", rows->keys[i]->name);
	putc('\n', out);
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];

		fprintf(out, "%.8f,%.8f,%" PRIu64 ",%" PRIu64 ",%" PRIu64, row_share(rows, row),
			row_error(rows, row), row->nr, row->user, row->system);
		for (size_t j = 0; j < rows->nr_keys; j++)
			export_csv_key(out, rows->keys[j], row);
		putc('\n', out);
	}
	return NULL;
}

const struct export_format export_csv = {
	.name = "csv",
	.about = "comma-separated values: see \"profil report --csv\"",
	.keys = { ROWS_BY_PROCESS, ROWS_BY_THREAD, ROWS_BY_DSO, ROWS_BY_LINE, ROWS_BY_SYSCALL,
		  ROWS_BY_SYMBOL },
	.nr_keys = 6,
	.write = write_csv,
};
