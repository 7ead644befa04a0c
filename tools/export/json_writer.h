/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes JSON, with the separators between its values
 *
 * A value is a member of the innermost object, and has a key, or an element of the innermost array,
 * and its key is NULL.
 */
#ifndef PROFIL_TOOLS_JSON_WRITER_H
#define PROFIL_TOOLS_JSON_WRITER_H

#include <stdbool.h>
#include <stdio.h>

#include "util.h"

#define JSON_DEPTH_MAX 8	/* of objects and arrays in each other */

/**
 * struct json - JSON that is being written
 * @out: Where it is written; everything else is 0 at first.
 */
struct json {
	FILE *out;

	/* Only json_writer.c uses these. */
	struct json_level {
		char end;
		char blank;	/* between its values, after the comma; or 0 */
		bool has_value;
	} levels[JSON_DEPTH_MAX];
	int depth;
	bool breaks_line;		/* before the next value */
};

/* Begins an object, whose members are separated by blanks. */
void json_object(struct json *json, const char *key);

/*
 * Begins an array. @blank: comes between its elements, after the comma: ' ', '\n' or 0. A newline
 * comes before the first element, too.
 */
void json_array(struct json *json, const char *key, char blank);

/* Ends the innermost object or array. */
void json_end(struct json *json);

/* The next value begins a line, unless it is the first one of an object. */
void json_line(struct json *json);

/* Write a value. NULL as a text is null; others have the escapes of escape.h, and those of JSON. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, u64 number);
void json_bool(struct json *json, const char *key, bool value);

/* Writes JSON in the format of printf(): a value; or whole members of an object, without a key. */
void json_format(struct json *json, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* PROFIL_TOOLS_JSON_WRITER_H */
