// SPDX-License-Identifier: GPL-2.0
/*
 * Ticks that are counted later: those of a session that is parked.
 *
 * A session is parked while its counters are copied, and from a fork until it is set up. A tick
 * that would raise a counter then leaves what it knows of it here.
 *
 *	CPU A (tick)				CPU B (home->lock)
 *
 *	sees PARKED
 *						clears PARKED
 *						profil_replay(): finds nothing
 *	profil_defer_tick()
 *
 * That tick is counted by the next call, at the latest by that which ends the session.
 */
#include <linux/mm.h>
#include <linux/ratelimit.h>

#include "counter.h"
#include "profil.h"

#define DEFERRED_PC	3	/* in the place of a width */

/*
 * Leaves a tick to profil_replay(), if there is room. Many CPUs may put at once, one takes. @what:
 * the counter's user address, or with @width 0 a pc to be written down.
 */
bool profil_defer_tick(struct profil_session *s, u64 what, u32 width, bool system)
{
	int head = atomic_read(&s->head);
	/* Never 0. The highest bits are all alike. */
	u64 tick = what << 4 | (width ? width >> 2 : DEFERRED_PC) << 2 | system << 1 | 1;

	do {
		/* Pairs with the release in profil_replay(): the slot is free. */
		if (head - smp_load_acquire(&s->tail) >= PROFIL_MAX_DEFERRED)
			return false;
	} while (!atomic_try_cmpxchg(&s->head, &head, head + 1));

	/* Pairs with the acquire in profil_replay(): a slot is whole or zero. */
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
 * Counts the deferred ticks of a session that is not parked; those of one that could not be set up
 * have no counters, and are dropped. Called under home->lock.
 */
void profil_replay(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	while (s->tail != (unsigned int)atomic_read(&s->head)) {
		u64 *slot = &s->deferred[s->tail % PROFIL_MAX_DEFERRED], tick;
		unsigned long flags;

		/* Pairs with the release in profil_defer_tick(). Zero: it is being written. */
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

/* Grace periods that interrupt all CPUs, of all users together; above that they take longer. */
static struct ratelimit_state park_limit =
	RATELIMIT_STATE_INIT_FLAGS(park_limit, HZ, 100, RATELIMIT_MSG_ON_RELEASE);

/*
 * Has ticks that would raise a counter deferred until profil_session_unpark(): when this returns no
 * tick changes a counter. Only so many ticks are deferred, so the wait should be short; but nobody
 * can make all CPUs pay for that as often as they like. Under home->lock.
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

/* Ticks are counted again, those that were deferred first. */
void profil_session_unpark(struct profil_session *s)
{
	/* Pairs with the acquire in the tick: what a set-up has made is there. */
	clear_bit_unlock(PROFIL_SLOW_PARKED, &s->slow);
	profil_replay(s);
}
