// SPDX-License-Identifier: GPL-2.0-or-later
/* See advice.h. */
#include <libiberty/libiberty.h>

#include "profile/buffer.h"
#include "profile/escape.h"
#include "text/accounting.h"
#include "text/advice.h"
#include "text/packages.h"

/* The advice must fit a terminal of this width: it is a command to copy. */
#define WIDTH	80

/* What binaries need */
enum need {
	NEED_PACKAGE,		/* a package that apt has */
	NEED_UPGRADE,		/* the version that apt has */
	NEED_LISTS,		/* a package that apt may have, but it has no lists */
	NEED_ARCHIVE,		/* a package that apt does not have */
	NEED_COMPILER,		/* symbols */
	NEED_SERVER,		/* a package, but nobody can be asked */
	NEED_LIBRARY,		/* a library of this program */
	NEED_NOTHING,		/* nothing that can be installed */
	NEEDS,
};

static const enum need needs[] = {
	[PACKAGES_UNKNOWN] = NEED_SERVER,
	[PACKAGES_NO_OWNER] = NEED_COMPILER,
	[PACKAGES_NO_LISTS] = NEED_LISTS,
	[PACKAGES_NONE] = NEED_ARCHIVE,
	[PACKAGES_OTHER] = NEED_UPGRADE,
	[PACKAGES_FOUND] = NEED_PACKAGE,
};

/* Why debug information is missing although a package or a compiler would not help. */
static const char *const lacks[PLACE_LACKS] = {
	[PLACE_LACKS_UNIT] = "there is none for this code; compile it with -g",
	[PLACE_LACKS_SPLIT] = "it is in .dwo files, which are not where the compiler wrote them",
	[PLACE_LACKS_PACKAGE] = "it is in a .dwp file, which cannot be read; keep the .dwo files",
	[PLACE_LACKS_COMMON] = "parts of it are in a file made by dwz, which is not found",
};

/**
 * struct subject - What code does not have
 * @name: Its name in the notes.
 * @lack: The reason why it is missing, or PLACE_LACKS_NOTHING for symbols.
 */
struct subject {
	const char *name;
	enum place_lack lack;
};

static const struct subject symbols = { "no symbol", PLACE_LACKS_NOTHING };
static const struct subject debug_information = { "no debug information", PLACE_LACKS_ALL };

/**
 * struct binaries_needing - The binaries about which there are notes
 * @files: What packages.c knows about them.
 * @nr: Their number.
 * @asked: It was asked.
 */
struct binaries_needing {
	const struct rows *rows;
	const struct profile_binary **binaries;
	struct packages_file *files;
	size_t nr;
	bool asked;
};

/* Returns the ticks in the binary that do not have @subject; 0 if they are too few for a note. */
static u64 ticks_of(const struct rows *rows, const struct profile_binary *binary,
		    const struct subject *subject)
{
	const u64 ticks = subject->lack ? binary->lacking[subject->lack] : binary->unnamed;

	return ticks >= NOTE_SHARE * rows->ticks ? ticks : 0;
}

static enum need need_of(const struct binaries_needing *all, size_t i,
			 const struct subject *subject)
{
	if (!ticks_of(all->rows, all->binaries[i], subject))
		return NEEDS;
	if (lacks[subject->lack])
		return NEED_NOTHING;
	if (!subject->lack && all->binaries[i]->symtab == SYMTAB_READ)
		return NEED_NOTHING;
	if (!subject->lack && all->binaries[i]->symtab == SYMTAB_COMPRESSED)
		return NEED_LIBRARY;
	return needs[all->files[i].answer];
}

/* Returns true if a debug file helps. */
static bool needs_file(const struct rows *rows, const struct profile_binary *binary)
{
	return (ticks_of(rows, binary, &symbols) && binary->symtab == SYMTAB_NONE) ||
	       ticks_of(rows, binary, &debug_information);
}

/* Lists the binaries that need a debug file first. Returns their number. */
static size_t list_binaries(struct binaries_needing *all)
{
	const struct recording *recording = all->rows->recording;
	size_t nr = 0;

	all->binaries = xcalloc(recording->nr_files + 1, sizeof(*all->binaries));
	all->files = xcalloc(recording->nr_files + 1, sizeof(*all->files));
	for (int is_rest = 0; is_rest <= 1; is_rest++) {
		for (size_t i = 0; i < recording->nr_files; i++) {
			const struct profile_binary *binary = &all->rows->binaries.files[i];
			const struct format_file *file = &recording->files[i].data;

			if (binary->problem || needs_file(all->rows, binary) == is_rest)
				continue;
			all->binaries[all->nr] = binary;
			all->files[all->nr++] = (struct packages_file){
				.path = file->path,
				.build_id = buildid_text(file->build_id, file->build_id_len),
			};
		}
		nr = is_rest ? nr : all->nr;
	}
	return nr;
}

/* Prints each name once: the packages, or those of the binaries with @suffix. */
static void print_names(FILE *out, const struct binaries_needing *all,
			const struct subject *subject, enum need need, const char *suffix)
{
	for (size_t i = 0; i < all->nr; i++) {
		const struct packages_file *file = &all->files[i];
		const char *name = suffix ? file->owner : file->package;
		bool is_new = need_of(all, i, subject) == need;

		for (size_t j = 0; j < i && is_new; j++) {
			const struct packages_file *other = &all->files[j];

			is_new = need_of(all, j, subject) != need ||
				 strcmp(suffix ? other->owner : other->package, name);
		}
		if (is_new && suffix)
			fprintf(out, " %.*s%s", (int)strcspn(name, ":"), name, suffix);
		else if (is_new)
			fprintf(out, " %s", name);
	}
}

static const char anybody[] =
	"install its debug package; compile programs of your own with -g, and do not strip them";

static void print_advice(FILE *out, const struct binaries_needing *all,
			 const struct subject *subject, enum need need)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	const bool has_urls = urls && *urls;

	switch (need) {
	case NEED_PACKAGE:
		fputs("apt install", out);
		print_names(out, all, subject, need, NULL);
		break;
	case NEED_UPGRADE:
		fputs("apt has another version: apt install", out);
		print_names(out, all, subject, need, "");
		print_names(out, all, subject, need, NULL);
		fputs(", and record again", out);
		break;
	case NEED_LISTS:
		fputs("apt has no lists of packages: apt update, and report again", out);
		break;
	case NEED_ARCHIVE:
		fputs("add the archive of debug packages to apt's sources, and apt install", out);
		print_names(out, all, subject, need, "-dbgsym");
		break;
	case NEED_COMPILER:
		fputs("compile with -g, and do not strip", out);
		return;
	case NEED_SERVER:
		if (!all->asked)
			fputs(anybody, out);
		else if (has_urls)
			fputs("no server in DEBUGINFOD_URLS has the debug file", out);
		else
			fputs("set DEBUGINFOD_URLS to the debuginfod server of the distribution",
			      out);
		return;
	case NEED_LIBRARY:
		fputs("they are in .gnu_debugdata, which cannot be read; that needs liblzma", out);
		return;
	default:
		fputs(lacks[subject->lack] ?: "this code is not in the symbol table", out);
		return;
	}
	if (!has_urls)
		fputs("; or set DEBUGINFOD_URLS", out);
}

/*
 * Prints the words, which @separator is between, after those that end at @column, or in a new line
 * if it is 0, and continues in an indented line where they do not fit.
 */
static void print_words(FILE *out, char *text, const char *separator, size_t column)
{
	bool may_break = !column;
	char *word;

	while ((word = strsep(&text, separator))) {
		const size_t width = escape_width(word);

		if (!column || (may_break && column + 1 + width > WIDTH)) {
			fputs("\n  ", out);
			column = 2;
		} else {
			putc(' ', out);
			column++;
		}
		fputs(word, out);
		column += width;
		may_break = true;
	}
}

/* Prints the note about all binaries with the need, or about all that have the subject's lack. */
static void print_note(FILE *out, const struct binaries_needing *all,
		       const struct subject *subject, enum need need)
{
	const char *separator = "";
	struct buffer buffer;
	u64 ticks = 0;
	size_t nr = 0;
	bool is_sum;
	int column;
	char *text;

	for (size_t i = 0; i < all->nr; i++) {
		if (need_of(all, i, subject) != need)
			continue;
		ticks = ticks_add(ticks, ticks_of(all->rows, all->binaries[i], subject));
		nr++;
	}
	if (!nr)
		return;
	/* Callers can lack it, too, so that a sample can be counted for several binaries. */
	is_sum = !subject->lack || !all->rows->options.chains;
	if (is_sum)
		column = fprintf(out, "note: %.2f%% have %s:", 100 * share_of(all->rows, ticks),
				 subject->name);
	else
		column = fprintf(out, "note: call stacks have code with %s:", subject->name);
	buffer_open(&buffer);
	for (size_t i = 0; i < all->nr; i++) {
		const struct profile_binary *binary = all->binaries[i];

		if (need_of(all, i, subject) != need)
			continue;
		fputs(separator, buffer.out);
		separator = ",\n";
		escape_print(buffer.out, binary->label);
		if (nr > 1 || !is_sum)
			fprintf(buffer.out, " %.2f%%",
				100 * share_of(all->rows, ticks_of(all->rows, binary, subject)));
	}
	text = buffer_close(&buffer);
	print_words(out, text, "\n", column);
	free(text);
	buffer_open(&buffer);
	putc('(', buffer.out);
	print_advice(buffer.out, all, subject, need);
	putc(')', buffer.out);
	text = buffer_close(&buffer);
	print_words(out, text, " ", 0);
	putc('\n', out);
	free(text);
}

void advice_print(FILE *out, const struct rows *rows, bool ask)
{
	struct binaries_needing all = { .rows = rows };
	const size_t nr = list_binaries(&all);

	if (ask && !rows->symfs) {
		packages_find(all.files, nr);
		all.asked = true;
	}
	for (enum need need = 0; need < NEEDS; need++)
		print_note(out, &all, &symbols, need);
	for (enum need need = 0; need < NEEDS; need++)
		print_note(out, &all, &debug_information, need);
	for (enum place_lack lack = PLACE_LACKS_UNIT; lack < PLACE_LACKS; lack++)
		print_note(out, &all, &(struct subject){ debug_information.name, lack },
			   NEED_NOTHING);
	for (size_t i = 0; i < all.nr; i++) {
		free(all.files[i].owner);
		free(all.files[i].package);
	}
	free(all.binaries);
	free(all.files);
}
