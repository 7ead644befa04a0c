// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page of HTML that shows the rows: page/report.html with its style and script, which the
 * Makefile puts together, and with the data as JSON
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "export/html_parts.h"
#include "profile/buffer.h"
#include "text/text.h"

#define PLACEHOLDER "@DATA@"

/* The page in the directory of the build, between two symbols */
extern const char html_page[], html_page_end[];
__asm__(".pushsection .rodata\n"
	".globl html_page, html_page_end\n"
	".hidden html_page, html_page_end\n"
	"html_page: .incbin \"report.html\"\n"
	"html_page_end: .byte 0\n"
	".popsection\n");

/* Writes an array of the lines, and frees them. */
static void write_lines(struct json *json, const char *key, char **lines)
{
	json_line(json);
	json_array(json, key, ' ');
	for (char **line = lines; *line; line++)
		html_write_name(json, NULL, *line);
	json_end(json);
	freeargv(lines);
}

static void write_rows(struct json *json, const struct rows *rows)
{
	const size_t nr = rows->nr < ROWS_MAX ? rows->nr : ROWS_MAX;

	json_line(json);
	json_array(json, "columns", ' ');
	for (size_t i = 0; i < rows->nr_keys; i++)
		json_text(json, NULL, rows->keys[i]->title);
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
		json_end(json);
	}
	json_end(json);
}

static void write_data(struct json *json, const struct rows *rows)
{
	struct flame flame = {};
	struct hot_lines lines = {};

	json_object(json, NULL);
	write_lines(json, "warnings", text_list_warnings(rows->recording));
	write_lines(json, "about", text_list_about(rows));
	write_rows(json, rows);
	if (rows->options.chains) {
		flame_make(&flame, rows);
		html_write_flame(json, &flame, rows);
	}
	hot_lines_make(&lines, rows);
	html_write_timelines(json, rows, &lines, rows->options.chains ? &flame : NULL);
	flame_free(&flame);
	html_write_binaries(json, rows);
	html_write_lines(json, &lines);
	hot_lines_free(&lines);
	json_line(json);
	json_number(json, "ticks", rows->ticks);
	json_end(json);
}

/*
 * A name could contain the end of the script element in which the data is. The character < is only
 * in strings, so an escape of JSON can stand for it.
 */
static const char *write_html(FILE *out, const struct rows *rows)
{
	const char *data = memmem(html_page, html_page_end - html_page, PLACEHOLDER,
				  strlen(PLACEHOLDER));
	const char *after = data + strlen(PLACEHOLDER);
	struct buffer buffer;
	struct json json = {};
	char *text;

	buffer_open(&buffer);
	json.out = buffer.out;
	write_data(&json, rows);
	text = buffer_close(&buffer);
	fwrite(html_page, 1, data - html_page, out);
	for (const char *at = text; *at; at++) {
		if (*at == '<')
			fputs("\\u003c", out);
		else
			putc(*at, out);
	}
	fwrite(after, 1, html_page_end - after, out);
	free(text);
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
