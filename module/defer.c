// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred ticks: the ticks of a parked session, which are counted later.
 *
 * A session is parked while a snapshot is taken; an inherited session is parked until its set-up.
 * Ticks that would increment a counter are then deferred. A tick can even be deferred after unpark:
 *
 *	CPU A: tick				CPU B: profil_session_unpark()
 *
 *	read PARKED
 *						clear PARKED
 *						profil_replay(): finds no tick
 *	profil_defer_tick()
 *
 * The next profil_replay() counts that tick; at the latest, the call at the end of the session.
 *
 * Context: profil_defer_tick() in the tick; others under home->lock (may sleep).
 */
#include <linux/log2.h>
#include <linux/ratelimit.h>

#include "counter.h"
#include "internal.h"

/* A deferred tick is one word, so that it is published at once. */
union deferred_tick {
	struct {
		u64 present : 1;	/* the word of a tick is never 0 */
		u64 system : 1;
		u64 width_shift : 2;	/* log2 of the counter's width; 0: @what is a pc */
		s64 what : 60;		/* of profil_defer_tick(): the highest bits are all equal */
	};
	u64 word;
};

/* Defers a tick. @what: a counter's user address, or if @width is 0 a pc. Return: false if full. */
bool profil_defer_tick(struct profil_session *s, u64 what, u32 width, bool system)
{
	const union deferred_tick tick = { {
		.present = 1,
		.system = system,
		.width_shift = width ? ilog2(width) : 0,
		.what = what,
	} };
	int head = atomic_read(&s->head);

	do {
		/* Pairs with the release in profil_replay(): the slot is free. */
		if (head - smp_load_acquire(&s->tail) >= PROFIL_MAX_DEFERRED)
			return false;
	} while (!atomic_try_cmpxchg(&s->head, &head, head + 1));

	/* Pairs with the acquire in profil_replay(), which finds a slot complete or zero. */
	smp_store_release(&s->deferred[(unsigned int)head % PROFIL_MAX_DEFERRED], tick.word);
	return true;
}

static enum profil_outcome replay_one(struct profil_session *s, union deferred_tick tick)
{
	bool is_pc = !tick.width_shift;
	u32 width = is_pc ? s->pc_width : 1U << tick.width_shift;
	u64 addr = tick.what, byte;
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
	profil_entry_write(counter, tick.what, width);
	return PROFIL_HIT;
}

/* Counts the deferred ticks of @s, or drops them if the set-up of @s has failed. */
void profil_replay(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);
	while (s->tail != (unsigned int)atomic_read(&s->head)) {
		u64 *slot = &s->deferred[s->tail % PROFIL_MAX_DEFERRED];
		union deferred_tick tick;

		/* Pairs with the release in profil_defer_tick(). Unwritten slots are zero. */
		while (!(tick.word = smp_load_acquire(slot)))
			cpu_relax();
		local_irq_disable();
		profil_tally(s, tick.system, replay_one(s, tick));
		local_irq_enable();

		*slot = 0;
		/* Pairs with the acquire in profil_defer_tick(). */
		smp_store_release(&s->tail, s->tail + 1);
	}
}

/* Expedited grace periods interrupt all CPUs. All users together get 100 of them per second. */
static struct ratelimit_state park_limit =
	RATELIMIT_STATE_INIT_FLAGS(park_limit, HZ, 100, RATELIMIT_MSG_ON_RELEASE);

/* Defers ticks until profil_session_unpark(). On return, no tick changes a counter. */
void profil_session_park(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);
	set_bit(PROFIL_SLOW_PARKED, &s->slow);
	if (!s->on || (!s->nr_targets && !s->nr_detached))
		return;
	/* Few ticks can be deferred, so the grace period should be short. */
	if (__ratelimit(&park_limit))
		synchronize_rcu_expedited();
	else
		synchronize_rcu();
}

/* Counts the deferred ticks. From here on ticks are counted at once. */
void profil_session_unpark(struct profil_session *s)
{
	/* Pairs with the acquire in the tick, which then sees the session's table and counts. */
	clear_bit_unlock(PROFIL_SLOW_PARKED, &s->slow);
	profil_replay(s);
}
