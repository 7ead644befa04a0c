// SPDX-License-Identifier: GPL-2.0-or-later
/* See accounting.h. */
#define _GNU_SOURCE
#include <err.h>
#include <inttypes.h>
#include <sys/stat.h>

#include <linux/profil.h>

#include "profile/escape.h"
#include "text/accounting.h"

static void print_reasons(FILE *out, const struct format_stats *sum)
{
	const struct {
		const char *name;
		u64 ticks;
	} reasons[] = {
		{ "overrun", sum->dropped_overrun },
		{ "buffer", sum->dropped_buffer },
		{ "contended", sum->dropped_contended },
		{ "exec", sum->dropped_exec },
		{ "exit", sum->dropped_exit },
		{ "record", sum->dropped_record },
	};
	const char *before = " (";

	if (!sum->dropped)
		return;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		if (!reasons[i].ticks)
			continue;
		fprintf(out, "%s%s %" PRIu64, before, reasons[i].name, reasons[i].ticks);
		before = " ";
	}
	fputs(before[1] ? "" : ")", out);
}

void accounting_print(FILE *out, const struct format_account *account, u32 modes, bool is_machine)
{
	const struct format_stats *stats = &account->stats;

	fprintf(out, "ticks %" PRIu64, stats->ticks);
	if (modes != (PROFIL_MODE_USER | PROFIL_MODE_SYSTEM))
		fprintf(out, ", unselected %" PRIu64, stats->unselected);
	if (!is_machine)
		fprintf(out, ", expected %" PRIu64, stats->expected);
	fprintf(out, ": hit %" PRIu64 " outside %" PRIu64 " saturated %" PRIu64 " dropped %" PRIu64,
		stats->hit, stats->outside, stats->saturated, stats->dropped);
	print_reasons(out, stats);
	fprintf(out, ", missed %" PRIu64 "; user %" PRIu64 " system %" PRIu64, stats->missed,
		stats->user, stats->system);
	if (stats->unfollowed)
		fprintf(out, "; unfollowed %" PRIu64, stats->unfollowed);
	fputc('\n', out);
}

void completeness_print(FILE *out, const char *prefix, const struct completeness *completeness)
{
	const u64 *ends = completeness->ends, stacks = completeness->stacks;
	const struct {
		u64 ticks;
		const char *problem;
		const char *reason;
	} notes[] = {
		{ completeness->lost, "lack a caller",
		  "code without frame pointers, or before its unwind table was there" },
		{ completeness->unchecked, "may lack the innermost caller",
		  "code without unwind tables and frame pointers" },
		{ completeness->unknown, "have a caller in unknown memory",
		  "code without frame pointers, or the process ended too early" },
		{ ends[PROFIL_STACK_DEPTH], "have more callers than were recorded",
		  "the outermost ones are missing" },
		{ ends[PROFIL_STACK_NO_RULE], "end in special code",
		  "its unwind table cannot describe the caller" },
		{ ends[PROFIL_STACK_NO_REGISTERS], "have no callers",
		  "the thread stayed in the kernel, or was ending" },
		{ ends[PROFIL_STACK_UNREADABLE], "end at unreadable memory",
		  "code without frame pointers, or a stack that is not present" },
		{ ends[PROFIL_STACK_UNSUPPORTED], "have no callers", "32-bit code of arm" },
		{ ends[PROFIL_STACK_MISALIGNED] + ends[PROFIL_STACK_ORDER] +
		  ends[PROFIL_STACK_ADDRESS], "end where there is no frame",
		  "code without frame pointers, before its table was there, or on another stack" },
	};

	if (!stacks)
		return;
	fprintf(out, "%scall stacks: %.2f%% are complete\n", prefix,
		100.0 * completeness->complete / stacks);
	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].ticks && notes[i].ticks >= NOTE_SHARE * stacks)
			fprintf(out, "%snote: %.2f%% %s\n  (%s)\n", prefix,
				100.0 * notes[i].ticks / stacks, notes[i].problem,
				notes[i].reason);
}

struct number number(u64 value)
{
	struct number number = {};
	char digits[24];
	size_t left = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);

	for (size_t i = 0, at = 0; digits[i]; i++) {
		number.text[at++] = digits[i];
		if (--left && left % 3 == 0)
			number.text[at++] = ',';
	}
	return number;
}

static int compare_detached(const void *a, const void *b)
{
	const struct format_detached *x = a, *y = b;

	return strcmp(x->path, y->path) ?: compare_u64(x->flags, y->flags);
}

void detached_print(FILE *out, const char *prefix, struct format_detached *detached, size_t nr)
{
	if (nr)
		qsort(detached, nr, sizeof(*detached), compare_detached);
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && !compare_detached(&detached[i], &detached[end]);)
			end++;
		fprintf(out, "%snot followed: ", prefix);
		escape_print(out, detached[i].path);
		fprintf(out, " %s (%s exec%s)\n",
			detached[i].flags & FORMAT_DETACHED_UNREADABLE ? "is not readable" :
			"gains privilege", number(end - i).text, end - i == 1 ? "" : "s");
	}
}

/* Standard output, a FIFO or a device cannot be read again. */
static bool can_be_read(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode);
}

static void print_samples(const struct summary *summary)
{
	const struct format_stats *stats = &summary->account.stats;
	const u64 sampled = stats->outside - summary->account.own;
	const u64 hz = (NS_PER_S + summary->tick_ns / 2) / summary->tick_ns;

	fprintf(stderr, "profil record: %s sample%s at %s Hz", number(summary->samples).text,
		summary->samples == 1 ? "" : "s", number(hz).text);
	if (summary->machine)
		fprintf(stderr, " of %s", summary->machine);
	else
		fprintf(stderr, ", %.1f s of CPU time",
			(double)stats->expected * summary->tick_ns / NS_PER_S);
	if (summary->bare)
		fprintf(stderr, "; %s during exec or exit", number(summary->bare).text);
	if (stats->dropped)
		fprintf(stderr, "; %s more lost", number(stats->dropped).text);
	if (sampled > summary->samples)
		fprintf(stderr, "; %s more not written", number(sampled - summary->samples).text);
	fputs(".", stderr);
	if (summary->samples && can_be_read(summary->path)) {
		fputs(" See: profil report", stderr);
		if (strcmp(summary->path, "profil.data")) {
			fputs(" -i ", stderr);
			escape_print(stderr, summary->path);
		}
	}
	fputc('\n', stderr);
}

static void print_nothing(const struct summary *summary)
{
	const struct format_stats *stats = &summary->account.stats;
	const u64 own = summary->account.own;
	const u64 periods = stats->expected > own ? stats->expected - own + 1 : 1;

	fputs("profil record: no samples", stderr);
	/* Prints a reason only if no other reason is possible. */
	if (!summary->machine && !summary->nr_detached && !stats->unselected && !stats->missed) {
		fputs(": ", stderr);
		escape_print(stderr, summary->target);
		fprintf(stderr, " used no CPU time, or less than %.4g ms",
			periods * (summary->tick_ns / 1e6));
	}
	fputc('\n', stderr);
}

static void print_missed(const struct format_stats *stats)
{
	const u64 all = stats->ticks + stats->unselected + stats->missed;

	/* In most recordings, fewer ticks change no share by more than its standard error. */
	if (stats->missed * 100 <= all)
		return;
	warnx("warning: %s of %s ticks (%.0f%%) were missed: the timer came late.\n"
	      "Each one is counted with the next sample, which can be in other code.",
	      number(stats->missed).text, number(all).text, 100.0 * stats->missed / all);
}

void summary_print(const struct summary *summary)
{
	const struct format_stats *stats = &summary->account.stats;

	if (stats->ticks > summary->account.own)
		print_samples(summary);
	else
		print_nothing(summary);
	completeness_print(stderr, "profil record: ", &summary->completeness);
	print_missed(stats);
	detached_print(stderr, "profil record: ", summary->detached,
		       summary->nr_detached);
	if (summary->tables_refused)
		warnx("warning: the module has refused unwind tables: this user has too many, or\n"
		      "there is too little memory. Some stacks are incomplete.");
	if (summary->tables_late)
		warnx("warning: %s file%s no unwind table: the others took too long to make. Some\n"
		      "stacks are incomplete. Later recordings find the others in the cache.",
		      number(summary->tables_late).text,
		      summary->tables_late == 1 ? " has" : "s have");
	if (summary->left)
		warnx("note: %s process%s of the command still run%s, but %s no longer recorded",
		      number(summary->left).text, summary->left == 1 ? "" : "es",
		      summary->left == 1 ? "s" : "", summary->left == 1 ? "is" : "are");
	if (stats->unfollowed)
		warnx("warning: %s forks or execs were not followed: too little memory, or too\n"
		      "many sessions that sample the process", number(stats->unfollowed).text);
}
