// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred ticks: those of a parked session, which are counted later.
 *
 * A session is parked while its counters are copied, and from a fork until it is set up. Meanwhile
 * ticks that would raise a counter are deferred. One can be deferred after the session is unparked:
 *
 *	CPU A: tick				CPU B: profil_session_unpark()
 *
 *	read PARKED
 *						clear PARKED
 *						profil_replay(): finds no tick
 *	profil_defer_tick()
 *
 * The next call counts that tick, at the latest the one that ends the session.
 *
 * Context: profil_defer_tick() in the tick; others under home->lock (may sleep).
 */
#include <linux/ratelimit.h>

#include "counter.h"
#include "profil.h"

#define DEFERRED_PC	3	/* encoded like a width: store a pc */

/*
 * Leaves a tick to profil_replay(). Many CPUs may add at a time; one removes. @what: the user
 * address of the counter, or, with @width 0, the pc to store. Return: false if there is no room.
 */
bool profil_defer_tick(struct profil_session *s, u64 what, u32 width, bool system)
{
	int head = atomic_read(&s->head);
	/* Never 0. The highest bits of @what are all equal. */
	u64 tick = what << 4 | (width ? width >> 2 : DEFERRED_PC) << 2 | system << 1 | 1;

	do {
		/* Pairs with the release in profil_replay(): the slot is free. */
		if (head - smp_load_acquire(&s->tail) >= PROFIL_MAX_DEFERRED)
			return false;
	} while (!atomic_try_cmpxchg(&s->head, &head, head + 1));

	/* Pairs with the acquire in profil_replay(): a slot is complete or zero. */
	smp_store_release(&s->deferred[(unsigned int)head % PROFIL_MAX_DEFERRED], tick);
	return true;
}

static enum profil_outcome replay_one(struct profil_session *s, u64 tick)
{
	bool is_pc = (tick >> 2 & 3) == DEFERRED_PC;
	u32 width = is_pc ? s->pc_width : 2U << (tick >> 2 & 3);
	u64 addr = (s64)tick >> 4, byte;
	void *counter;

	if (is_pc) {
		if (!profil_entry_take(s, &byte))
			return PROFIL_SATURATED;
		addr = s->pcs + byte;
	}
	counter = profil_histogram_counter(s, addr, width);
	if (!counter)
		return PROFIL_DROPPED_BUFFER;
	if (!is_pc)
		return profil_counter_add(counter, width, PROFIL_CAS_TRIES);
	profil_entry_write(counter, (s64)tick >> 4, width);
	return PROFIL_HIT;
}

/*
 * Counts the deferred ticks of a session that is not parked. If it could not be set up, it has no
 * counters, and the ticks are dropped.
 */
void profil_replay(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	while (s->tail != (unsigned int)atomic_read(&s->head)) {
		u64 *slot = &s->deferred[s->tail % PROFIL_MAX_DEFERRED], tick;
		unsigned long flags;

		/* Pairs with the release in profil_defer_tick(). Zero: not written yet. */
		while (!(tick = smp_load_acquire(slot)))
			cpu_relax();
		local_irq_save(flags);
		profil_tally(s, tick >> 1 & 1, replay_one(s, tick));
		local_irq_restore(flags);

		*slot = 0;
		/* Pairs with the acquire in profil_defer_tick(). */
		smp_store_release(&s->tail, s->tail + 1);
	}
}

/* Expedited grace periods interrupt all CPUs: 100 a second, for all users together. */
static struct ratelimit_state park_limit =
	RATELIMIT_STATE_INIT_FLAGS(park_limit, HZ, 100, RATELIMIT_MSG_ON_RELEASE);

/*
 * Defers ticks until profil_session_unpark(): when this returns no tick changes a counter. There is
 * room for few ticks, so the wait should be short; but users must not be able to interrupt all CPUs
 * as often as they like.
 */
void profil_session_park(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	set_bit(PROFIL_SLOW_PARKED, &s->slow);
	if (!s->on || (!s->nr_targets && !s->nr_detached))
		return;
	if (__ratelimit(&park_limit))
		synchronize_rcu_expedited();
	else
		synchronize_rcu();
}

/* Counts the deferred ticks, and further ticks as they come. */
void profil_session_unpark(struct profil_session *s)
{
	/* Pairs with the acquire in the tick, which then sees the table and counts of a set-up. */
	clear_bit_unlock(PROFIL_SLOW_PARKED, &s->slow);
	profil_replay(s);
}
