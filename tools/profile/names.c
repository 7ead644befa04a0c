// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See names.h. The names are demangled names of C++, Rust, Go, D and others. This does not parse
 * them: it is sufficient to find matching brackets.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/escape.h"
#include "profile/names.h"

/* A group with brackets that are nested more deeply is not shortened. */
#define DEPTH_MAX 256
/* A name shows its differences from this many others that would look the same. */
#define TWINS_MAX 8

static const char dots[] = "...";

static const char operator_word[] = "operator";

/*
 * Returns the length of an operator with brackets, such as "operator<<", at @at; otherwise 1. The
 * arguments of a template can follow it: "operator>><char>".
 */
static size_t operator_length(const char *at)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "--", "-=", "*=", "==",
		"<", ">", "-", "*", "=",
	};
	const size_t word = strlen(operator_word);

	if (strncmp(at, operator_word, word))
		return 1;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (!strncmp(at + word, signs[i], strlen(signs[i])))
			return word + strlen(signs[i]);
	return word;
}

/* Returns true if an operator with brackets ends at @at. */
static bool is_after_operator(const char *name, const char *at)
{
	const size_t word = strlen(operator_word);

	for (size_t sign = 1; sign <= 3 && word + sign <= (size_t)(at - name); sign++)
		if (operator_length(at - word - sign) == word + sign)
			return true;
	return false;
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
	return !strchr(" (&*,<", at[-1]) || is_after_operator(name, at);
}

/* ---- forms of a name ---- */

/* Replaces all occurrences of @from by @to, which is not longer. */
static void replace(char *text, const char *from, const char *to)
{
	const size_t length = strlen(from), new_length = strlen(to);

	while ((text = strstr(text, from))) {
		memcpy(text, to, new_length);
		memmove(text + new_length, text + length, strlen(text + length) + 1);
		text += new_length;
	}
}

/* Returns what follows the return type, which the names of instances of templates begin with. */
static const char *skip_return_type(const char *name)
{
	const char *start = name, *operator_end = NULL, *at, *end;

	/* The word is the name of a thunk, or of a conversion. */
	if (strstr(name, "thunk to ") || strstr(name, "operator "))
		return name;
	for (at = name; *at; at = end) {
		end = at + operator_length(at);
		if (!strncmp(at, "operator()", strlen("operator()")))
			end = at + strlen("operator()");
		if (end > at + 1)
			operator_end = end;
		else if (is_list(name, at, false))
			return at > name && at[-1] == '>' && at != operator_end ? start : name;
		else if (strchr("(<[{", *at))
			end = group_end(at) ?: end;
		else if (*at == ' ' && at != operator_end)
			start = end;
	}
	return name;
}

/* Returns the name without what people leave out themselves. The caller frees it. */
static char *plain_form(const char *name)
{
	char *plain = xstrdup(skip_return_type(name));

	replace(plain, "std::__cxx11::", "std::");
	replace(plain, "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		"std::string");
	return plain;
}

/* What shortened_form() replaces by dots */
enum form {
	FORM_PARAMETERS,
	FORM_INNER,			/* also template arguments of template arguments */
	FORM_ALL,			/* all template arguments */
};

/* A part of a name that stays because other names differ there */
struct kept {
	const char *start, *end;
};

/* Appends a group from @from to @end, with its brackets, without all but the kept parts. */
static char *add_group(char *to, const char *from, const char *end, const struct kept *kept)
{
	const char *at = from + 1;

	*to++ = *from;
	for (; kept->start; kept++) {
		if (kept->start < at || kept->end >= end)
			continue;
		if (kept->start > at)
			to = stpcpy(to, dots);
		to = mempcpy(to, kept->start, kept->end - kept->start);
		at = kept->end;
	}
	if (at < end - 1)
		to = stpcpy(to, dots);
	*to++ = end[-1];
	return to;
}

/* Returns a form of @plain. @kept: parts in their order, then an empty one. The caller frees it. */
static char *shortened_form(const char *plain, enum form form, const struct kept *kept)
{
	/* Each kept part can have dots before and after it. */
	char *name = xmalloc(strlen(plain) + 2 * (TWINS_MAX + 1) * sizeof(dots)), *to = name;
	const char *from = plain, *end, *inside = plain;
	size_t length;

	for (; *from; from += length) {
		const bool is_whole = form == FORM_PARAMETERS ||
				      (form == FORM_INNER && from >= inside);

		length = operator_length(from);
		end = length == 1 && is_list(plain, from, true) ? group_end(from) : NULL;
		if (end && (size_t)(end - from) <= 2 + strlen(dots)) {
			end = NULL;
		} else if (end && *from == '<' && is_whole) {
			inside = form == FORM_INNER ? end : inside;
			end = NULL;
		}
		if (end) {
			length = end - from;
			to = add_group(to, from, end, kept);
		} else {
			to = mempcpy(to, from, length);
		}
	}
	*to = '\0';
	return name;
}

/* Returns the "::" after @at that is outside of all groups, or NULL. */
static char *next_component(char *at)
{
	char *end;

	for (; *at; at = end) {
		end = at + operator_length(at);
		if (end > at + 1)
			return NULL;
		if (!strncmp(at, "::", 2))
			return at;
		if (strchr("(<[{", *at))
			end = (char *)group_end(at) ?: end;
	}
	return NULL;
}

/*
 * Replaces components of the name by dots: those at its start, but not the last two; or the end of
 * all but the last one.
 */
static void drop_components(char *name, size_t width)
{
	char *last = NULL, *fitting = NULL;

	if (escape_width(name) <= width)
		return;
	for (char *at = name; (at = next_component(at)); at += 2) {
		if (last && !fitting && escape_width(last) + strlen(dots) <= width)
			fitting = last;
		last = at;
	}
	if (!fitting && last && escape_width(last) + 2 * strlen(dots) <= width) {
		const size_t room = width - escape_width(last);

		fitting = xstrndup(name, last - name);
		escape_cut(fitting, room - strlen(dots));
		fitting = reconcat(fitting, fitting, dots, last, NULL);
		strcpy(name, fitting);
		free(fitting);
	} else if (fitting) {
		memmove(name + strlen(dots), fitting, strlen(fitting) + 1);
		memcpy(name, dots, strlen(dots));
	}
}

/* ---- all names of a table ---- */

/**
 * struct shortened - A name
 * @place: The name, which is freed and replaced.
 * @indent: The number of blanks before it.
 * @plain: Its plain form.
 * @shortest: The form of it in which all groups are dots.
 */
struct shortened {
	char **place;
	size_t indent;
	char *plain, *shortest;
};

static int compare_shortened(const void *a, const void *b)
{
	const struct shortened *x = a, *y = b;

	return strcmp(x->shortest, y->shortest) ?: strcmp(x->plain, y->plain);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || strchr("_:~$", c) || (unsigned char)c >= 0x80;
}

/* Finds the word at the first difference of @name from @other. */
static struct kept difference(const char *name, const char *other)
{
	const char *start = name, *end;

	while (*start && *start == *other)
		start++, other++;
	while (*start && !is_word(*start) && (start == name || !is_word(start[-1])))
		start++;
	while (start > name && is_word(start[-1]))
		start--;
	for (end = start; *end && is_word(*end);)
		end++;
	while (end > start && (*end == '*' || *end == '&'))
		end++;
	return (struct kept) { start, end };
}

static int compare_kept(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->start > y->start ? 1 : x->start < y->start ? -1 : 0;
}

/* Finds where the name differs from those among all @nr, which are sorted, that look the same. */
static void find_kept(const struct shortened *all, size_t nr, size_t at, struct kept *kept)
{
	const struct shortened *name = &all[at];
	size_t first = at, nr_kept = 0;

	while (first > 0 && at - first < TWINS_MAX / 2 &&
	       !strcmp(all[first - 1].shortest, name->shortest))
		first--;
	for (size_t i = first; i < nr && nr_kept < TWINS_MAX &&
	     i < at + TWINS_MAX && !strcmp(all[i].shortest, name->shortest); i++) {
		struct kept part = difference(name->plain, all[i].plain);
		bool is_new = part.start < part.end;

		for (size_t j = 0; j < nr_kept; j++)
			is_new &= part.start >= kept[j].end || part.end <= kept[j].start;
		if (strcmp(all[i].plain, name->plain) && is_new)
			kept[nr_kept++] = part;
	}
	qsort(kept, nr_kept, sizeof(*kept), compare_kept);
	kept[nr_kept] = (struct kept) { };
}

/* Returns the longest form of the name that fits. The caller frees it. */
static char *choose_form(const struct shortened *name, const struct kept *kept, size_t width)
{
	char *form = xstrdup(name->plain), *end;

	for (int i = FORM_PARAMETERS; i <= FORM_ALL && escape_width(form) > width; i++) {
		free(form);
		form = shortened_form(name->plain, i, kept);
	}
	/* The compiler made a copy of the function; that says less than the name. */
	end = strstr(form, " [clone ");
	if (end && escape_width(form) > width)
		*end = '\0';
	drop_components(form, width);
	end = strstr(form, "(...)");
	if (escape_width(form) > width && end && !end[strlen("(...)")])
		*end = '\0';
	escape_fit(form, width);
	return form;
}

/* Shortens a name, but not its indentation. */
static void shorten(const struct shortened *all, size_t nr, size_t at, size_t width)
{
	const struct shortened *name = &all[at];
	struct kept kept[TWINS_MAX + 1];
	char *form;

	if (escape_width(*name->place) <= width)
		return;
	find_kept(all, nr, at, kept);
	form = choose_form(name, kept, width > name->indent ? width - name->indent : 0);
	free(*name->place);
	*name->place = xasprintf("%*s%s", (int)name->indent, "", form);
	escape_fit(*name->place, width);
	free(form);
}

/* Returns an array of the names, sorted so that those that look the same are together. */
static struct shortened *make_forms(char **names, size_t nr)
{
	static const struct kept nothing[1];
	struct shortened *all = xcalloc(nr + 1, sizeof(*all));

	for (size_t i = 0; i < nr; i++) {
		const size_t indent = strspn(names[i], " ");

		all[i] = (struct shortened) {
			.place = &names[i],
			.indent = indent,
			.plain = plain_form(names[i] + indent),
		};
		all[i].shortest = shortened_form(all[i].plain, FORM_ALL, nothing);
	}
	qsort(all, nr, sizeof(*all), compare_shortened);
	return all;
}

static void free_forms(struct shortened *all, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		free(all[i].plain);
		free(all[i].shortest);
	}
	free(all);
}

size_t names_width(char **names, size_t nr)
{
	struct shortened *all = make_forms(names, nr);
	struct kept kept[TWINS_MAX + 1];
	size_t most = 0, width;
	char *form;

	for (size_t i = 0; i < nr; i++) {
		find_kept(all, nr, i, kept);
		form = shortened_form(all[i].plain, FORM_ALL, kept);
		width = all[i].indent + escape_width(form);
		most = width > most ? width : most;
		free(form);
	}
	free_forms(all, nr);
	return most;
}

void names_fit(char **names, size_t nr, size_t width)
{
	struct shortened *all = make_forms(names, nr);

	for (size_t i = 0; i < nr; i++)
		shorten(all, nr, i, width);
	free_forms(all, nr);
}

/* ---- labels ---- */

/* Removes "std::", and the inner namespace of libc++. */
static void drop_std(char *text)
{
	static const char *const words[] = { "std::__1::", "std::" };
	size_t length;

	for (char *at = text; *at; at++) {
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			length = strlen(words[i]);
			if (!strncmp(at, words[i], length) && (at == text || !is_word(at[-1])))
				memmove(at, at + length, strlen(at + length) + 1);
		}
	}
}

/* Returns the parameters of the function, and what follows them; or the end of the name. */
static char *find_parameters(char *name)
{
	char *at, *end;

	for (at = name; *at; at = end) {
		end = at + operator_length(at);
		if (!strncmp(at, "operator()", strlen("operator()")))
			end = at + strlen("operator()");
		if (end > at + 1 || !strchr("(<[{", *at))
			continue;
		end = (char *)group_end(at) ?: end;
		if (at > name && is_list(name, at, false) && (!*end || *end == ' '))
			break;
	}
	return at;
}

/* Returns what remains of the name without namespaces, classes and the path of a package. */
static const char *last_component(char *name)
{
	char *last = name, *slash;

	for (char *at = name; (at = next_component(at));)
		last = at += 2;
	slash = strrchr(last, '/');
	return slash && slash < last + strcspn(last, " :,(<[{") ? slash + 1 : last;
}

void names_label(struct names_label *label, const char *name)
{
	static const struct kept nothing[1];
	char *form = plain_form(name), *mark = strstr(form, " (inlined)");

	if (mark)
		*mark = '\0';
	drop_std(form);
	label->full = xstrdup(form);
	*find_parameters(form) = '\0';
	label->brief = shortened_form(form, FORM_ALL, nothing);
	label->last = xstrdup(last_component(label->brief));
	free(form);
}

void names_label_free(struct names_label *label)
{
	free(label->full);
	free(label->brief);
	free(label->last);
}

/* ---- patterns ---- */

/* Returns true if nothing but parameters or the mark of an inlined function follows the name. */
static bool is_end(const char *rest)
{
	return !*rest || *rest == '(' || !strcmp(rest, " (inlined)");
}

/* Returns true if the name is @pattern, in which dots stand for any text. */
static bool matches_dots(const char *name, const char *pattern)
{
	const char *part = strstr(pattern, dots);
	const size_t length = part ? (size_t)(part - pattern) : strlen(pattern);

	if (strncmp(name, pattern, length))
		return false;
	name += length;
	if (!part)
		return is_end(name);
	part += strlen(dots);
	if (!*part)
		return true;
	/* The next part begins where its first character is. */
	for (; *name; name++)
		if (*name == *part && matches_dots(name, part))
			return true;
	return false;
}

bool names_match(const char *name, const char *pattern)
{
	const size_t length = strlen(pattern);
	char *plain;
	bool match;

	if ((!strncmp(name, pattern, length) && is_end(name + length)) ||
	    !fnmatch(pattern, name, 0))
		return true;
	plain = plain_form(name);
	match = matches_dots(plain, pattern);
	free(plain);
	return match;
}
