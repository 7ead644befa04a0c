// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: names, and the page. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"
#include "profile/buffer.h"
#include "profile/escape.h"
#include "profile/names.h"

#define PLACEHOLDER "@DATA@"

void html_write_name(struct json *json, const char *key, const char *name)
{
	char *text = escape_text(name);

	escape_fit(text, NAME_MAX_COLUMNS);
	json_text(json, key, text);
	free(text);
}

void html_write_label(struct json *json, const char *name)
{
	struct names_label label = {};

	names_label(&label, name);
	html_write_name(json, NULL,
			strlen(label.full) > LABEL_MAX_COLUMNS ? label.brief : label.full);
	names_label_free(&label);
}

void html_write_names(struct json *json, const char *key, const struct intern *names)
{
	json_line(json);
	json_array(json, key, '\n');
	for (size_t i = 0; i < names->nr; i++)
		html_write_name(json, NULL, names->texts[i]);
	json_end(json);
}

void html_write_list(struct json *json, const char *key, char **lines)
{
	json_line(json);
	json_array(json, key, ' ');
	for (char **line = lines; *line; line++)
		html_write_name(json, NULL, *line);
	json_end(json);
	freeargv(lines);
}

/*
 * A name could contain the end of the script element in which the data is. The character < is only
 * in strings, so an escape of JSON can stand for it.
 */
void html_write_page(FILE *out, const char *page, const char *end,
		     void (*write)(struct json *json, const void *data), const void *data)
{
	const char *place = memmem(page, end - page, PLACEHOLDER, strlen(PLACEHOLDER));
	const char *after = place + strlen(PLACEHOLDER);
	struct buffer buffer;
	struct json json = {};
	char *text;

	buffer_open(&buffer);
	json.out = buffer.out;
	write(&json, data);
	text = buffer_close(&buffer);
	fwrite(page, 1, place - page, out);
	for (const char *at = text; *at; at++) {
		if (*at == '<')
			fputs("\\u003c", out);
		else
			putc(*at, out);
	}
	fwrite(after, 1, end - after, out);
	free(text);
}
