/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The last step of a tick: increments a counter in a pinned page, or stores a pc there, and counts
 * the outcome. Context: interrupts off, in the tick or in profil_replay().
 */
#ifndef _PROFIL_COUNTER_H
#define _PROFIL_COUNTER_H

#include <linux/atomic.h>
#include <linux/nospec.h>

#include "internal.h"

#define PROFIL_CAS_TRIES 64	/* attempts, since others may write the same counter */

/* Adds one to the counter at @p unless it is full, in at most @tries attempts. */
#define profil_counter_add_one(p, tries) ({				\
	enum profil_outcome __outcome = PROFIL_DROPPED_CONTENDED;	\
	typeof(p) __p = (p);						\
	typeof(*__p) __old = READ_ONCE(*__p);				\
	unsigned int __tries = (tries);					\
									\
	do {								\
		if (__old == (typeof(*__p))~0ULL) {			\
			__outcome = PROFIL_SATURATED;			\
			break;						\
		}							\
		if (try_cmpxchg(__p, &__old, __old + 1)) {		\
			__outcome = PROFIL_HIT;				\
			break;						\
		}							\
	} while (--__tries);						\
	__outcome;							\
})

static __always_inline enum profil_outcome profil_counter_add(void *counter, u32 width,
							      unsigned int tries)
{
	switch (width) {
	case 2:
		return profil_counter_add_one((u16 *)counter, tries);
	case 4:
		return profil_counter_add_one((u32 *)counter, tries);
	default:
		return profil_counter_add_one((u64 *)counter, tries);
	}
}

/* Takes the next entry for a pc. @byte: Out: the entry's offset. Return: false if none is free. */
static inline bool profil_entry_take(struct profil_session *s, u64 *byte)
{
	u64 nr = atomic64_read(&s->nr_pcs);

	do {
		if (nr >= s->max_pcs)
			return false;
	} while (!atomic64_try_cmpxchg(&s->nr_pcs, (s64 *)&nr, nr + 1));
	*byte = array_index_nospec(nr, s->max_pcs) * s->pc_width;
	return true;
}

static inline void profil_entry_write(void *entry, u64 pc, u32 width)
{
	if (width == 4)
		WRITE_ONCE(*(u32 *)entry, pc);
	else
		WRITE_ONCE(*(u64 *)entry, pc);
}

static __always_inline void profil_tally(struct profil_session *s, bool system,
					 enum profil_outcome outcome)
{
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);

	if (likely(counts))
		this_cpu_inc(counts->n[system][outcome]);
	else
		atomic64_inc(&s->stats_early[system][outcome]);
}

#endif /* _PROFIL_COUNTER_H */
