// SPDX-License-Identifier: GPL-2.0-or-later
/* See json_writer.h. */
#include <inttypes.h>
#include <stdarg.h>

#include "export/json_writer.h"
#include "profile/escape.h"

/* Writes the separator before a value, and the key of a member. */
static void begin_value(struct json *json, const char *key)
{
	struct json_level *level = &json->levels[json->depth];
	const char blank = json->breaks_line ? '\n' : level->blank;
	const bool breaks_first = level->end == ']' && level->blank == '\n';

	if (level->has_value)
		putc(',', json->out);
	if (blank && (level->has_value || breaks_first))
		putc(blank, json->out);
	if (key)
		fprintf(json->out, "\"%s\": ", key);
	level->has_value = true;
	json->breaks_line = false;
}

void json_line(struct json *json)
{
	json->breaks_line = true;
}

static void begin_level(struct json *json, char start, char end, char blank)
{
	putc(start, json->out);
	json->levels[++json->depth] = (struct json_level){ .end = end, .blank = blank };
}

void json_object(struct json *json, const char *key)
{
	begin_value(json, key);
	begin_level(json, '{', '}', ' ');
}

void json_array(struct json *json, const char *key, char blank)
{
	begin_value(json, key);
	begin_level(json, '[', ']', blank);
}

void json_end(struct json *json)
{
	putc(json->levels[json->depth--].end, json->out);
}

static void print_string(FILE *out, const char *text)
{
	char *escaped = escape_text(text);

	putc('"', out);
	for (const char *at = escaped; *at; at++) {
		if (*at == '"' || *at == '\\')
			putc('\\', out);
		putc(*at, out);
	}
	putc('"', out);
	free(escaped);
}

void json_text(struct json *json, const char *key, const char *text)
{
	begin_value(json, key);
	if (text)
		print_string(json->out, text);
	else
		fputs("null", json->out);
}

void json_number(struct json *json, const char *key, u64 number)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_format(struct json *json, const char *key, const char *format, ...)
{
	va_list arguments;

	begin_value(json, key);
	va_start(arguments, format);
	vfprintf(json->out, format, arguments);
	va_end(arguments);
}
