// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of programs, files and functions may come from an attacker. Without escapes they could
 * contain control sequences that the terminal obeys.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <libiberty/libiberty.h>

#include "profile/escape.h"

/*
 * Returns the number of bytes of the next character, and its width in @columns. A byte that cannot
 * be printed is a character of its own: it has the width of its escape, and @escape is set. This
 * includes each byte of a character without a width, because some change the writing direction.
 */
static size_t next_character(const char *text, size_t *columns, bool *escape)
{
	static bool locale_is_set;
	mbstate_t state = {};
	wchar_t character;
	size_t bytes;
	int width;

	/* Most text is ASCII. It needs no locale, which takes long to load. */
	if (isascii(*text)) {
		*escape = iscntrl(*text);
		*columns = *escape ? 4 : 1;
		return 1;
	}
	if (!locale_is_set)
		locale_is_set = setlocale(LC_CTYPE, "C.UTF-8");
	bytes = mbrtowc(&character, text, strnlen(text, MB_CUR_MAX), &state);
	width = bytes <= MB_CUR_MAX ? wcwidth(character) : -1;
	*escape = width <= 0;
	*columns = *escape ? 4 : width;
	return *escape ? 1 : bytes;
}

char *escape_text(const char *text)
{
	char *escaped = xmalloc(4 * strlen(text) + 1), *to = escaped;
	size_t bytes, columns;
	bool escape;

	for (; *text; text += bytes) {
		bytes = next_character(text, &columns, &escape);
		if (escape)
			to += sprintf(to, "\\x%02x", (unsigned char)*text);
		else
			to = mempcpy(to, text, bytes);
	}
	*to = '\0';
	return escaped;
}

void escape_print(FILE *out, const char *text)
{
	char *escaped = escape_text(text);

	fputs(escaped, out);
	free(escaped);
}

size_t escape_width(const char *text)
{
	size_t width = 0, columns;
	bool escape;

	while (*text) {
		text += next_character(text, &columns, &escape);
		width += columns;
	}
	return width;
}

/* Returns the length of the longest prefix of @text that takes at most @width columns. */
static size_t prefix_length(const char *text, size_t width)
{
	size_t length = 0, bytes, columns;
	bool escape;

	for (; text[length]; length += bytes, width -= columns) {
		bytes = next_character(text + length, &columns, &escape);
		if (columns > width)
			break;
	}
	return length;
}

void escape_cut(char *text, size_t width)
{
	text[prefix_length(text, width)] = '\0';
}

void escape_fit(char *text, size_t width)
{
	static const char dots[] = "...";
	size_t whole = escape_width(text), head = width / 2, columns;
	char *rest;
	bool escape;

	if (whole <= width)
		return;
	if (width < 2 * strlen(dots)) {
		escape_cut(text, width);
		return;
	}
	rest = text + prefix_length(text, whole - (width - head));
	/* If the cut is inside a wide character, the rest is too wide by one column. */
	while (escape_width(rest) > width - head)
		rest += next_character(rest, &columns, &escape);
	text += prefix_length(text, head - strlen(dots));
	memcpy(text, dots, strlen(dots));
	memmove(text + strlen(dots), rest, strlen(rest) + 1);
}
