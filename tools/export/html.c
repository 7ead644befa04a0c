// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page of profil report --html: page/report.html with its style and script, which the Makefile
 * puts together, and with the rows as JSON
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/html_parts.h"
#include "text/text.h"

/* The page in the directory of the build, between two symbols */
extern const char report_page[], report_page_end[];
__asm__(".pushsection .rodata\n"
	".globl report_page, report_page_end\n"
	".hidden report_page, report_page_end\n"
	"report_page: .incbin \"report.html\"\n"
	"report_page_end: .byte 0\n"
	".popsection\n");

/* Writes the keys of each row, and the label if there are symbols. */
static void write_rows(struct json *json, const struct rows *rows)
{
	const size_t nr = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX;
	bool has_symbols = false;

	json_line(json);
	json_array(json, "columns", ' ');
	for (size_t i = 0; i < rows->nr_keys; i++)
		json_text(json, NULL, rows->keys[i]->title);
	for (size_t i = 0; i < rows->nr_keys; i++)
		has_symbols |= rows->keys[i] == &row_keys[ROWS_BY_SYMBOL];
	json_end(json);
	json_line(json);
	json_number(json, "more", rows->nr - nr);
	json_line(json);
	json_array(json, "rows", '\n');
	for (size_t i = 0; i < nr; i++) {
		json_array(json, NULL, ' ');
		for (size_t j = 0; j < rows->nr_keys; j++) {
			char *text = row_text(rows->keys[j], &rows->rows[i]);

			html_write_name(json, NULL, text);
			free(text);
		}
		if (has_symbols)
			html_write_label(json, rows->rows[i].function.name);
		json_end(json);
	}
	json_end(json);
}

static void write_data(struct json *json, const void *data)
{
	const struct rows *rows = data;
	struct flame flame = {};
	struct hot_lines lines = {};

	json_object(json, NULL);
	html_write_list(json, "warnings", text_list_warnings(rows->recording));
	html_write_list(json, "about", text_list_about(rows));
	write_rows(json, rows);
	if (rows->options.chains) {
		flame_make(&flame, rows);
		html_write_flame(json, &flame, rows);
	}
	hot_lines_make(&lines, rows, rows->options.chains ? &flame : NULL);
	html_write_timelines(json, rows, &lines, rows->options.chains ? &flame : NULL);
	flame_free(&flame);
	html_write_binaries(json, rows);
	html_write_lines(json, &lines);
	hot_lines_free(&lines);
	json_line(json);
	json_number(json, "ticks", rows->ticks);
	json_end(json);
}

static const char *write_html(FILE *out, const struct rows *rows)
{
	html_write_page(out, report_page, report_page_end, write_data, rows);
	return NULL;
}

const struct export_format export_html = {
	.name = "html",
	.about = "web browsers",
	.rows.lines = true,
	.rows.keep_parts = true,
	.rows.chains = true,
	.write = write_html,
};
