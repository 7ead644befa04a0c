// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See accounting.h. There is a session for user ticks and a session for system ticks. The ticks of
 * the other mode are unselected in each of them. Both sessions have the same numbers of expected
 * and missed ticks, because these are for the whole CPU time.
 */
#include <inttypes.h>

#include <linux/profil.h>

#include "recording/accounting.h"

void accounting_add(struct format_stats *sum, const struct format_stats *later)
{
	const u64 *from = (const u64 *)later;
	u64 *to = (u64 *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
	sum->locked = later->locked;
	sum->targets = later->targets;
}

static u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

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

void accounting_print(FILE *out, const struct format_account *account, u32 modes)
{
	const struct format_stats *user = &account->user, *system = &account->system;
	struct format_stats sum = *user;
	u64 unselected = 0;

	accounting_add(&sum, system);
	/* With two sessions, each tick is unselected in one of them, and counted in the other. */
	if (!(modes & PROFIL_MODE_SYSTEM))
		unselected = user->unselected;
	else if (!(modes & PROFIL_MODE_USER))
		unselected = system->unselected;

	fprintf(out, "ticks %" PRIu64 ", ", sum.ticks);
	if (modes != (PROFIL_MODE_USER | PROFIL_MODE_SYSTEM))
		fprintf(out, "unselected %" PRIu64 ", ", unselected);
	fprintf(out, "expected %" PRIu64 ": hit %" PRIu64 " outside %" PRIu64 " saturated %" PRIu64
		" dropped %" PRIu64, larger(user->expected, system->expected), sum.hit, sum.outside,
		sum.saturated, sum.dropped);
	print_reasons(out, &sum);
	fprintf(out, ", missed %" PRIu64 "; user %" PRIu64 " system %" PRIu64,
		larger(user->missed, system->missed), sum.user, sum.system);
	if (user->unfollowed || system->unfollowed)
		fprintf(out, "; unfollowed %" PRIu64, larger(user->unfollowed, system->unfollowed));
	fputc('\n', out);
}
