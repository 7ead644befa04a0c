// SPDX-License-Identifier: GPL-2.0-or-later
/* See notes.h. */
#include <libiberty/libiberty.h>

#include "profile/escape.h"
#include "text/accounting.h"
#include "text/advice.h"
#include "text/notes.h"

static void print_note(FILE *out, const struct rows *rows, u64 ticks, const char *what,
		       const char *label, const char *reason)
{
	if (!ticks || ticks < NOTE_SHARE * rows->ticks)
		return;
	fprintf(out, "note: %.2f%% have %s: ", 100.0 * ticks / rows->ticks, what);
	escape_print(out, label);
	fprintf(out, "\n  (%s)\n", reason);
}

/* Callers can lack it, too: see advice.c. */
static void print_lacking(FILE *out, const struct rows *rows, const struct profile_binary *binary)
{
	const u64 ticks = binary->lacking[PLACE_LACKS_ALL];

	if (ticks <= binary->unnamed || ticks < NOTE_SHARE * rows->ticks)
		return;
	if (!rows->options.chains) {
		print_note(out, rows, ticks, "no debug information", binary->label,
			   binary->problem);
		return;
	}
	fputs("note: call stacks have code with no debug information: ", out);
	escape_print(out, binary->label);
	fprintf(out, " %.2f%%\n  (%s)\n", 100.0 * ticks / rows->ticks, binary->problem);
}

/* Returns the reason, which the caller frees. */
static char *nameless_text(const struct nameless *nameless)
{
	/* %s is the name of a file. */
	static const char *const texts[NAMELESS_REASONS] = {
		[FORMAT_NAMELESS_ENDED] = "its process ended before a map could be found",
		[FORMAT_NAMELESS_HIDDEN] = "the recorder may not look into its process",
		[FORMAT_NAMELESS_OLD] = "%s is dated before its process",
		[FORMAT_NAMELESS_OWNER] = "%s belongs to another user",
		[FORMAT_NAMELESS_DENIED] = "the recorder may not read %s",
		[FORMAT_NAMELESS_IRREGULAR] = "%s is not a regular file",
		[FORMAT_NAMELESS_LARGE] = "%s is too large",
		[FORMAT_NAMELESS_COSTLY] = "reading %s takes too much time or memory",
		[FORMAT_NAMELESS_OTHER] = "%s has no function there",
		[FORMAT_NAMELESS_MANY] = "only 64 processes with such code get names",
	};
	const struct format_nameless *why = nameless->why;
	const char *text = why ? texts[why->reason] : NULL;
	char name[32], id[16] = "PID", *reason, *all;

	if (!text)
		return xstrdup("code made at run time; see --runtimes in profil-record(1)");
	if (!nameless->is_many)
		snprintf(id, sizeof(id), "%d", why->pid);
	snprintf(name, sizeof(name), why->is_dump ? "jit-%s.dump" : "perf-%s.map", id);
	reason = xasprintf(text, name);
	all = xasprintf("code made at run time; %s", reason);
	free(reason);
	return all;
}

/* Prints why functions that were made at run time have no names. */
static void print_nameless(FILE *out, const struct rows *rows, const struct profile_binary *binary)
{
	for (size_t i = 0; i < NAMELESS_REASONS; i++) {
		char *reason = nameless_text(&binary->nameless[i]);

		print_note(out, rows, binary->nameless[i].ticks, "no symbol", binary->label,
			   reason);
		free(reason);
	}
}

void notes_print(FILE *out, const struct rows *rows, bool ask)
{
	for (size_t i = 0; i < rows->recording->nr_files; i++) {
		const struct profile_binary *binary = &rows->binaries.files[i];

		if (binary->problem)
			print_note(out, rows, binary->unnamed, "no symbol", binary->label,
				   binary->problem);
		print_nameless(out, rows, binary);
		if (binary->problem)
			print_lacking(out, rows, binary);
		if (binary->only_names)
			print_note(out, rows, binary->ticks, "only symbols", binary->label,
				   binary->only_names);
	}
	advice_print(out, rows, ask);
	print_note(out, rows, rows->unmapped, "no symbol", PROFILE_UNKNOWN,
		   "unmapped before the interrupted thread returned to user mode");
	print_note(out, rows, rows->pending, "no symbol", PROFILE_UNKNOWN,
		   "the thread stayed in the kernel, or too many threads waited there");
	if (rows->recording->meta.flags & FORMAT_STACKS)
		completeness_print(out, "", &rows->completeness);
}
