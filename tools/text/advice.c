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
	NEED_NOTHING,		/* there are all symbols */
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

/**
 * struct binaries_needing - The binaries in which code has no symbol
 * @files: What packages.c knows about them.
 * @nr: Their number.
 * @asked: It was asked.
 */
struct binaries_needing {
	const struct profile_binary **binaries;
	struct packages_file *files;
	size_t nr;
	bool asked;
};

static enum need need_of(const struct binaries_needing *all, size_t i)
{
	return all->binaries[i]->has_symtab ? NEED_NOTHING : needs[all->files[i].answer];
}

static void list_binaries(struct binaries_needing *all, const struct rows *rows)
{
	const struct recording *recording = rows->recording;

	all->binaries = xcalloc(recording->nr_files + 1, sizeof(*all->binaries));
	all->files = xcalloc(recording->nr_files + 1, sizeof(*all->files));
	for (size_t i = 0; i < recording->nr_files; i++) {
		const struct profile_binary *binary = &rows->binaries.files[i];
		const struct format_file *file = &recording->files[i].data;

		if (binary->problem || !binary->unnamed ||
		    binary->unnamed < NOTE_SHARE * rows->ticks)
			continue;
		all->binaries[all->nr] = binary;
		all->files[all->nr++] = (struct packages_file){
			.path = file->path,
			.build_id = buildid_text(file->build_id, file->build_id_len),
		};
	}
}

/* Asks about those that need a debug file. They come first then. */
static void ask_packages(struct binaries_needing *all)
{
	size_t nr = 0;

	for (size_t i = 0; i < all->nr; i++) {
		const struct profile_binary *binary = all->binaries[i];
		const struct packages_file file = all->files[i];

		if (binary->has_symtab)
			continue;
		all->binaries[i] = all->binaries[nr];
		all->files[i] = all->files[nr];
		all->binaries[nr] = binary;
		all->files[nr++] = file;
	}
	packages_find(all->files, nr);
	all->asked = true;
}

/* Prints each name once: the packages, or those of the binaries with @suffix. */
static void print_names(FILE *out, const struct binaries_needing *all, enum need need,
			const char *suffix)
{
	for (size_t i = 0; i < all->nr; i++) {
		const struct packages_file *file = &all->files[i];
		const char *name = suffix ? file->owner : file->package;
		bool is_new = need_of(all, i) == need;

		for (size_t j = 0; j < i && is_new; j++) {
			const struct packages_file *other = &all->files[j];

			is_new = need_of(all, j) != need ||
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

static void print_advice(FILE *out, const struct binaries_needing *all, enum need need)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	const bool has_urls = urls && *urls;

	switch (need) {
	case NEED_PACKAGE:
		fputs("apt install", out);
		print_names(out, all, need, NULL);
		break;
	case NEED_UPGRADE:
		fputs("apt has another version: apt install", out);
		print_names(out, all, need, "");
		print_names(out, all, need, NULL);
		fputs(", and record again", out);
		break;
	case NEED_LISTS:
		fputs("apt has no lists of packages: apt update, and report again", out);
		break;
	case NEED_ARCHIVE:
		fputs("add the archive of debug packages to apt's sources, and apt install", out);
		print_names(out, all, need, "-dbgsym");
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
	default:
		fputs("this code is not in the symbol table", out);
		return;
	}
	if (!has_urls)
		fputs("; or set DEBUGINFOD_URLS", out);
}

/* Prints the words, and continues in an indented line where they do not fit. */
static void print_words(FILE *out, char *text)
{
	size_t column = 0;
	char *word;

	while ((word = strsep(&text, " "))) {
		const size_t width = escape_width(word);

		if (!column || column + 1 + width > WIDTH) {
			fputs("\n  ", out);
			column = 2;
		} else {
			putc(' ', out);
			column++;
		}
		fputs(word, out);
		column += width;
	}
}

/* Prints the note about all binaries with the need. */
static void print_note(FILE *out, const struct rows *rows, const struct binaries_needing *all,
		       enum need need)
{
	struct buffer buffer;
	u64 ticks = 0;
	size_t nr = 0;
	char *text;

	for (size_t i = 0; i < all->nr; i++) {
		if (need_of(all, i) != need)
			continue;
		ticks = ticks_add(ticks, all->binaries[i]->unnamed);
		nr++;
	}
	if (!nr)
		return;
	fprintf(out, "note: %.2f%% have no symbol: ", 100 * share_of(rows, ticks));
	for (size_t i = 0, printed = 0; i < all->nr; i++) {
		if (need_of(all, i) != need)
			continue;
		fputs(printed++ ? ", " : "", out);
		escape_print(out, all->binaries[i]->label);
		if (nr > 1)
			fprintf(out, " %.2f%%", 100 * share_of(rows, all->binaries[i]->unnamed));
	}
	buffer_open(&buffer);
	putc('(', buffer.out);
	print_advice(buffer.out, all, need);
	putc(')', buffer.out);
	text = buffer_close(&buffer);
	print_words(out, text);
	putc('\n', out);
	free(text);
}

void advice_print(FILE *out, const struct rows *rows, bool ask)
{
	struct binaries_needing all = {};

	list_binaries(&all, rows);
	if (ask && !rows->symfs)
		ask_packages(&all);
	for (enum need need = 0; need < NEEDS; need++)
		print_note(out, rows, &all, need);
	for (size_t i = 0; i < all.nr; i++) {
		free(all.files[i].owner);
		free(all.files[i].package);
	}
	free(all.binaries);
	free(all.files);
}
