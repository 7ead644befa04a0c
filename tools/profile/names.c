// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See names.h. The names are demangled names of C++, Rust, Go, D and others. This does not parse
 * them: it is sufficient to find matching brackets.
 */
#include <fnmatch.h>
#include <string.h>

#include "profile/escape.h"
#include "profile/names.h"

/* A group with brackets that are nested more deeply is not shortened. */
#define DEPTH_MAX 256

/* Returns the length of an operator with brackets, such as "operator<<", at @at; otherwise 1. */
static size_t operator_length(const char *at)
{
	static const char word[] = "operator";

	if (strncmp(at, word, strlen(word)))
		return 1;
	return strlen(word) + strspn(at + strlen(word), "<>=-*");
}

/* Returns the end of the group whose first bracket is at @at; NULL if it has no end. */
static const char *group_end(const char *at)
{
	char open[DEPTH_MAX];
	size_t depth = 0, length;

	for (; *at; at += length) {
		length = operator_length(at);
		if (length > 1)
			continue;
		if (strchr("(<[{", *at)) {
			if (depth == DEPTH_MAX)
				return NULL;
			open[depth++] = *at;
		} else if (*at == '>') {
			/* Otherwise it is an operator, or part of "->". */
			if (open[depth - 1] == '<' && at[-1] != '-')
				depth--;
		} else if (strchr(")]}", *at)) {
			/* A "<" without its ">" is an operator. */
			while (depth && open[depth - 1] == '<')
				depth--;
			if (!depth)
				return NULL;
			depth--;
		}
		if (!depth)
			return at + 1;
	}
	return NULL;
}

/*
 * Returns true if a list of parameters begins at @at; with @templates, of template arguments. Other
 * groups are part of the name: (anonymous namespace), Go's (*Type) and Rust's <T as Trait>; and
 * (inlined) is a mark.
 */
static bool is_list(const char *name, const char *at, bool templates)
{
	if (*at == '(')
		return !strchr("*&", at[1]) && strncmp(at, "(anonymous ", 11) &&
		       strncmp(at, "(inlined)", 9);
	if (!templates || *at != '<' || at == name || !strncmp(at, "<impl ", 6))
		return false;
	/* In "operator< <int>", the blank belongs to the operator. */
	if (at[-1] == ' ' && at - name > 1 && strchr("<>=", at[-2]))
		return true;
	return !strchr(" (&*,<", at[-1]);
}

static void shorten(char *name, bool templates)
{
	static const char dots[] = "...";
	const char *from = name, *end;
	char *to = name;
	size_t length;

	for (; *from; from += length, to += length) {
		length = operator_length(from);
		end = is_list(name, from, templates) ? group_end(from) : NULL;
		if (end && (size_t)(end - from) > 2 + strlen(dots)) {
			*to++ = *from;
			memcpy(to, dots, strlen(dots));
			to += strlen(dots);
			from = end - 1;
		}
		memmove(to, from, length);
	}
	*to = '\0';
}

void names_fit(char *name, size_t width)
{
	for (int templates = 0; templates <= 1 && escape_width(name) > width; templates++)
		shorten(name, templates);
	escape_fit(name, width);
}

bool names_match(const char *name, const char *pattern)
{
	size_t length = strlen(pattern);

	if (!strncmp(name, pattern, length) && (!name[length] || name[length] == '(' ||
						!strcmp(name + length, " (inlined)")))
		return true;
	return !fnmatch(pattern, name, 0);
}
