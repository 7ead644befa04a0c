// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of programs, files and functions may come from an attacker. Without escapes they could
 * contain control sequences that the terminal obeys.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "output/escape.h"

/* Returns the UTF-8 character at @text, and its length in @bytes: 0 if it is malformed. */
static uint32_t decode_utf8(const unsigned char *text, size_t *bytes)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{ 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 },
	};
	uint32_t character;

	*bytes = 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if ((*text & forms[i].mask) != forms[i].lead)
			continue;
		character = *text & ~forms[i].mask;
		/* This loop stops at the terminating 0, which is not a continuation byte. */
		for (size_t j = 1; j <= i; j++) {
			if ((text[j] & 0xc0) != 0x80)
				return 0;
			character = character << 6 | (text[j] & 0x3f);
		}
		if (character < forms[i].least || character > 0x10ffff ||
		    (character >= 0xd800 && character < 0xe000))
			return 0;
		*bytes = i + 1;
		return character;
	}
	return 0;
}

static bool is_printable(uint32_t character)
{
	return (character >= 0x20 && character < 0x7f) ||
	       (character >= 0xa0 && !(character >= 0x200b && character <= 0x200f) &&
		!(character >= 0x2028 && character <= 0x202e) &&
		!(character >= 0x2060 && character <= 0x206f) && character != 0xfeff);
}

/* Prints @text unless @out is NULL. Returns its width. */
static size_t escape(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t width = 0, bytes;
	uint32_t character;

	while (*at) {
		character = decode_utf8(at, &bytes);
		if (bytes && is_printable(character)) {
			if (out)
				fwrite(at, 1, bytes, out);
			width++;
			at += bytes;
			continue;
		}
		if (out)
			fprintf(out, "\\x%02x", *at);
		width += 4;
		at++;
	}
	return width;
}

void escape_print(FILE *out, const char *text)
{
	escape(out, text);
}

size_t escape_width(const char *text)
{
	return escape(NULL, text);
}
