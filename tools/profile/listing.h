/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A listing of a function: its instructions by source line, with their ticks
 */
#ifndef PROFIL_TOOLS_LISTING_H
#define PROFIL_TOOLS_LISTING_H

#include "profile/rows.h"

/**
 * struct listing_line - An instruction
 * @where: Its offset in the file.
 * @address: Its address for the linker.
 * @ticks: Its ticks, weighted by their periods.
 * @text: The instruction; NULL if it is not known.
 * @source: Its source file, or NULL.
 * @number: The line in it.
 * @inlined: The innermost inlined function that contains it, mangled; or NULL.
 */
struct listing_line {
	u64 where;
	u64 address;
	u64 ticks;
	const char *text;
	const char *source;
	int number;
	const char *inlined;
};

/**
 * struct listing - The instructions of a function
 * @symbols: Reads the binary and the source files. Set by the caller of listing_make().
 * @rows: The rows of the recording, likewise.
 * @row: The function, which is in a file. Likewise.
 * @lines: The instructions, by source file, inlined function and line.
 * @ticks: Their ticks.
 * @note: Why the text of the instructions is not known; or NULL.
 * @inlined: After listing_keep(), the inlined function.
 */
struct listing {
	struct symbols *symbols;
	const struct rows *rows;
	const struct row *row;

	struct listing_line *lines;
	size_t nr;
	u64 ticks;
	const char *note;
	const char *inlined;

	/* Only listing.c uses these. */
	u64 start;			/* of the function, an offset in the file */
	u64 size;
	u64 bias;			/* address - offset */
	struct obstack texts;
	bool is_made;
};

/* Reads the binary. Returns NULL, or an error message for the user. */
const char *listing_make(struct listing *listing);

/* Removes all but the instructions of an inlined function. @name: as it is printed. */
void listing_keep(struct listing *listing, const char *name);

void listing_free(struct listing *listing);

#endif /* PROFIL_TOOLS_LISTING_H */
