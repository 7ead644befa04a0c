/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many ticks have a complete call stack, and why the others have none
 */
#ifndef PROFIL_TOOLS_COMPLETENESS_H
#define PROFIL_TOOLS_COMPLETENESS_H

#include <linux/profil.h>

#include "recording/format.h"

/* The number of reasons in enum profil_stack_end, and of further ones in a damaged file */
#define COMPLETENESS_ENDS	16

/**
 * struct completeness - Ticks in which a stack can have been recorded: not in exec or exit
 * @stacks: All of them.
 * @complete: Those whose stack begins with the outermost function, and lacks none.
 * @lost: Those that lack a caller.
 * @unknown: Those with a caller whose mapping is not known.
 * @unchecked: Those that may lack the caller of the innermost function.
 * @ends: Those that end too early for this reason alone, an enum profil_stack_end.
 */
struct completeness {
	u64 stacks;
	u64 complete;
	u64 lost;
	u64 unknown;
	u64 unchecked;
	u64 ends[COMPLETENESS_ENDS];
};

/* Returns true if a stack with this end begins with the outermost function. */
static inline bool completeness_is_whole(u32 end)
{
	return end == PROFIL_STACK_OUTERMOST || end == PROFIL_STACK_NULL;
}

#endif /* PROFIL_TOOLS_COMPLETENESS_H */
