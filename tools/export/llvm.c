// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text form of a sample profile, for clang -fprofile-sample-use
 *
 *	FUNCTION:TOTAL:HEAD
 *	 LINE[.DISCRIMINATOR]: TICKS
 *	 LINE[.DISCRIMINATOR]: INLINED FUNCTION:TOTAL
 *	  LINE[.DISCRIMINATOR]: TICKS
 *
 * The number of a LINE is relative to the line where its function is declared. HEAD should be the
 * number of calls; the ticks in the first line are printed instead. Functions are from the debug
 * information only, because the names in the symbol table may have suffixes of the compiler.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/export.h"
#include "profile/intern.h"

#define NO_PARENT SIZE_MAX
#define NAME_CHARACTERS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$"
/* clang has 16 bits for a line. */
#define LINE_MASK 0xffff

/**
 * struct entry - A line, or a function
 * @parent: The index of the function that contains it; NO_PARENT if it is not inlined.
 * @line: The line in this function.
 * @discriminator: The discriminator of this line.
 * @name: The name of the function; NULL if this is a line.
 * @ticks: The ticks of the line, or all ticks of the function.
 * @index: The index of this entry before the entries are sorted.
 */
struct entry {
	size_t parent;
	unsigned int line;
	unsigned int discriminator;
	const char *name;
	u64 ticks;
	size_t index;
};

/* The entries. The set has their keys. */
struct profile {
	struct intern keys;
	struct entry *entries;
};

/* Returns the entry with all members but ticks and index equal to those of @wanted. */
static struct entry *get_entry(struct profile *profile, const struct entry *wanted)
{
	const size_t nr = profile->keys.nr;
	const size_t index = intern_format(&profile->keys, "%zu %u %u %s", wanted->parent,
					   wanted->line, wanted->discriminator,
					   wanted->name ?: "");

	if (profile->keys.nr > nr) {
		if (!array_grow(&profile->entries, nr, sizeof(*wanted)))
			xmalloc_failed(0);
		profile->entries[nr] = *wanted;
		profile->entries[nr].index = nr;
	}
	return &profile->entries[index];
}

/* Rejects names that clang could read as numbers or as other lines; linkers do not need them. */
static bool is_usable(const struct frame *frame)
{
	const char *name = frame->name;

	return name && *name && !isdigit((unsigned char)*name) &&
	       !name[strspn(name, NAME_CHARACTERS)] && frame->start > 0 && frame->line > 0;
}

/*
 * LLVM keeps two other numbers in the upper bits of a discriminator. If bit 0 is set, the number
 * itself is 0. Otherwise it has 5 bits from bit 1 on, or 12 bits if bit 6 is set.
 */
static unsigned int base_discriminator(unsigned int discriminator)
{
	if (discriminator & 1)
		return 0;
	discriminator >>= 1;
	if (discriminator & 0x20)
		return (discriminator >> 1 & 0xfe0) | (discriminator & 0x1f);
	return discriminator & 0x1f;
}

/* Adds the ticks of a row to its line, and to the functions that contain it. */
static void add_row(struct profile *profile, const struct row *row)
{
	struct entry wanted = { .parent = NO_PARENT };
	const struct frame *frame = row->place.frames, *end = frame + row->place.nr_frames;
	struct entry *entry;

	for (; frame < end && is_usable(frame); frame++) {
		wanted.name = frame->name;
		entry = get_entry(profile, &wanted);
		entry->ticks = ticks_add(entry->ticks, row_ticks(row));
		wanted = (struct entry){
			.parent = entry->index,
			.line = (frame->line - frame->start) & LINE_MASK,
			.discriminator = base_discriminator(frame->discriminator),
		};
	}
	if (wanted.parent == NO_PARENT)
		return;
	entry = get_entry(profile, &wanted);
	entry->ticks = ticks_add(entry->ticks, row_ticks(row));
}

/* Sorts by @parent: its lines, and then the functions inlined in it. The others: by ticks. */
static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return compare_u64(x->parent, y->parent) ?:
	       (x->parent == NO_PARENT ? compare_u64(y->ticks, x->ticks) : 0) ?:
	       (!!x->name - !!y->name) ?: compare_u64(x->line, y->line) ?:
	       compare_u64(x->discriminator, y->discriminator) ?:
	       strcmp(x->name ?: "", y->name ?: "");
}

/* Returns the index of the first entry of @parent. */
static size_t first_entry(const struct profile *profile, size_t parent)
{
	return array_index(&profile->entries->parent, profile->keys.nr, sizeof(struct entry),
			   parent);
}

/* Prints the entries of @parent. @depth: the number of functions that contain them. */
static void print_entries(FILE *out, const struct profile *profile, size_t parent, int depth)
{
	for (size_t i = first_entry(profile, parent); i < profile->keys.nr; i++) {
		const struct entry *entry = &profile->entries[i];

		if (entry->parent != parent)
			break;
		fprintf(out, "%*s%u", depth + 1, "", entry->line);
		if (entry->discriminator)
			fprintf(out, ".%u", entry->discriminator);
		if (!entry->name) {
			fprintf(out, ": %" PRIu64 "\n", entry->ticks);
			continue;
		}
		fprintf(out, ": %s:%" PRIu64 "\n", entry->name, entry->ticks);
		print_entries(out, profile, entry->index, depth + 1);
	}
}

/* Returns the ticks in the first line of a function. */
static u64 head_ticks(const struct profile *profile, const struct entry *function)
{
	u64 ticks = 0;

	for (size_t i = first_entry(profile, function->index); i < profile->keys.nr; i++) {
		const struct entry *entry = &profile->entries[i];

		if (entry->parent != function->index || entry->name || entry->line)
			break;
		ticks = ticks_add(ticks, entry->ticks);
	}
	return ticks;
}

static const char *write_llvm(FILE *out, const struct rows *rows)
{
	struct profile profile = {};

	for (size_t i = 0; i < rows->nr; i++)
		add_row(&profile, &rows->rows[i]);
	if (!profile.keys.nr)
		return "no tick is in a function with debug information";
	qsort(profile.entries, profile.keys.nr, sizeof(*profile.entries), compare_entries);
	for (size_t i = first_entry(&profile, NO_PARENT); i < profile.keys.nr; i++) {
		const struct entry *function = &profile.entries[i];

		fprintf(out, "%s:%" PRIu64 ":%" PRIu64 "\n", function->name, function->ticks,
			head_ticks(&profile, function));
		print_entries(out, &profile, function->index, 0);
	}
	intern_free(&profile.keys);
	free(profile.entries);
	return NULL;
}

const struct export_format export_llvm = {
	.name = "llvm",
	.about = "clang -fprofile-sample-use: functions with debug information",
	.rows.lines = true,
	.write = write_llvm,
};
