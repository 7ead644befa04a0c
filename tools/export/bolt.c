// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A profile for llvm-bolt, which moves the code of one program or library, the one with the most
 * ticks
 *
 *	no_lbr EVENT
 *	1 FUNCTION OFFSET TICKS
 *
 * The first line says that the profile has no branches. For the event task-clock, llvm-bolt divides
 * the ticks of a block by the number of its instructions. 1 stands for a symbol in the program.
 * OFFSET is hexadecimal. The names of local symbols end with a slash and a number.
 */
#include <inttypes.h>

#include "export/export.h"

/*
 * Rejects names that llvm-bolt could read as other lines, which linkers do not need, and those of
 * stubs, which are not symbols.
 */
static bool is_usable(const char *name)
{
	const size_t len = strlen(name), suffix = sizeof(FUNCTION_STUB) - 1;

	if (len > suffix && !strcmp(name + len - suffix, FUNCTION_STUB))
		return false;
	for (const char *at = name; *at; at++)
		if (*at <= ' ' || *at > '~' || *at == '\\')
			return false;
	return *name && *name != '[';
}

static void print_row(FILE *out, const struct row *row, u64 ticks)
{
	fprintf(out, "1 %s", row->function.linkage);
	if (row->place.found.local)
		fprintf(out, "/%" PRIu64, row->place.found.local);
	fprintf(out, " %" PRIx64 " %" PRIu64 "\n", row->sample->offset - row->function.start,
		ticks);
}

static const char *write_bolt(FILE *out, const struct rows *rows)
{
	const struct recording_file *file = rows_hottest_file(rows);
	bool is_empty = true;

	if (!file)
		return "no tick is in a program";
	if (binary_of(&rows->binaries, file)->problem)
		return "the program cannot be read; profil report says why";
	for (size_t i = 0, end; i < rows->nr; i = end) {
		const struct row *row = &rows->rows[i];
		u64 ticks = 0;

		/* A tick in the kernel is not one of the instruction that has called it. */
		for (end = i; end < rows->nr && rows->rows[end].sample->file == row->sample->file &&
		     rows->rows[end].sample->offset == row->sample->offset; end++)
			ticks = ticks_add(ticks, rows->rows[end].user);
		if (row->sample->file != file || !ticks || !row->function.linkage ||
		    !is_usable(row->function.linkage))
			continue;
		if (is_empty)
			fputs("no_lbr task-clock\n", out);
		is_empty = false;
		print_row(out, row, ticks);
	}
	return is_empty ? "no tick is in a function of the program in user mode" : NULL;
}

const struct export_format export_bolt = {
	.name = "bolt",
	.about = "llvm-bolt: the program with the most ticks, or the one of --dso",
	.rows.number_locals = true,
	.write = write_bolt,
};
