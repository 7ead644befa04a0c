// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path: from a tick to a counter.
 *
 * Runs in the tick's hard interrupt, interrupts off, on behalf of current. Takes
 * no lock, allocates nothing, cannot fault: the counters are reached through the
 * kernel's own addresses of pinned pages. What it reads of a space or session
 * stays valid for a grace period after that is unpublished.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/task_stack.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "profil.h"

#define CAS_TRIES 64	/* against others who write to the same counter all the time */

DEFINE_PER_CPU(unsigned long, profil_ticks);

/* Keeps a tick for profil_replay(). Many CPUs may put at once, one taker takes. */
static bool keep(struct profil_session *s, u64 pc, bool system)
{
	int head = atomic_read(&s->head);

	do {
		/* Pairs with the release in profil_replay(): the slot is free. */
		if (head - smp_load_acquire(&s->tail) >= PROFIL_KEPT)
			return false;
	} while (!atomic_try_cmpxchg(&s->head, &head, head + 1));

	/* Pairs with the acquire in profil_replay(): a slot is whole or zero. */
	smp_store_release(&s->kept[(unsigned int)head % PROFIL_KEPT], pc << 2 | system << 1 | 1);
	return true;
}

/* Raises the counter at @p by one unless it is full. */
#define counter_raise(p) ({						\
	enum profil_outcome __outcome = PROFIL_DROPPED_CONTENDED;	\
	typeof(p) __p = (p);						\
	typeof(*__p) __old = READ_ONCE(*__p);				\
	unsigned int __tries = CAS_TRIES;				\
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

/* The last span that starts at or below @pc; the first if there is none. */
static const struct profil_span *span_find(const struct profil_session *s, u64 pc)
{
	const struct profil_span *span = s->spans;
	u32 n = s->nr_spans;

	while (n > 1) {
		u32 half = n / 2;

		if (span[half].start <= pc)
			span += half;
		n -= half;
	}
	return span;
}

static enum profil_outcome count(const struct profil_session *s, u64 pc)
{
	const struct profil_span *span = span_find(s, pc);
	u64 d = pc - span->start, byte;
	void *counter;

	if (d >= span->bins.span)
		return PROFIL_OUTSIDE;
	byte = profil_bins_byte(&span->bins, d + span->rest, span->width);
	counter = span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE;
	switch (span->width) {
	case 2:
		return counter_raise((u16 *)counter);
	case 4:
		return counter_raise((u32 *)counter);
	default:
		return counter_raise((u64 *)counter);
	}
}

/*
 * The last tick here of this session was more than a tick ago: current was not
 * running then, or its ticks did not come. jiffies may be read just before or just
 * after the CPU that keeps them advances it, so one more or less says nothing, and
 * counts->due is two beyond the last tick at first. Of a longer gap, those ticks were
 * missed that are younger than current's arrival on the CPU; half a tick is left out
 * since arrivals are often caused by ticks. If that is all of the gap, the count goes
 * on from where it began, so that of many short gaps not each loses one.
 */
static void count_missed(struct profil_counts *counts)
{
	unsigned long now = jiffies;
#ifdef CONFIG_SCHED_INFO
	s64 ran = sched_clock_cpu(smp_processor_id()) - current->sched_info.last_arrival;
	u64 gap = now - counts->due, missed = 0;

	if (counts->due && ran > TICK_NSEC / 2)
		missed = min_t(u64, gap, div_u64(ran - TICK_NSEC / 2, TICK_NSEC));
	counts->missed += missed;
	if (missed == gap) {
		counts->due = now;
		return;
	}
#endif
	counts->due = now + 1;
}

static void session_tick(struct profil_session *s, u64 pc, bool system)
{
	struct profil_counts *counts = this_cpu_ptr(s->counts);
	enum profil_outcome outcome;

	if (time_after(jiffies, counts->due))
		count_missed(counts);
	counts->due++;

	if (!(s->modes & (PROFIL_MODE_USER << system))) {
		counts->unselected++;
		return;
	}
	/* Pairs with the release in profil_histograms_refresh(): pages[] as of then. */
	if (smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED)) {
		if (keep(s, pc, system))
			return;
		outcome = PROFIL_DROPPED_OVERRUN;
	} else {
		outcome = count(s, pc);
	}
	counts->n[system][outcome]++;
}

/* The whole of what a tick may find. */
static noinline void sample_slowly(struct profil_space *space, struct pt_regs *regs)
{
	struct task_struct *task = current;
	bool system = !user_mode(regs);
	struct profil_session *s;
	u64 pc;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return;
	if (system) {
		regs = task_pt_regs(task);
		pc = instruction_pointer(regs) - profil_syscall_length(task, regs);
	} else {
		pc = instruction_pointer(regs);
	}

	s = rcu_dereference_raw(space->process);
	if (s != &profil_nobody)
		session_tick(s, pc, system);
	if (READ_ONCE(space->nr_threads)) {
		s = profil_thread_find(task);
		if (s && s->space == space)	/* else of the mm before an exec */
			session_tick(s, pc, system);
	}
}

/*
 * A tick has found current running. What most ticks find is dealt with here: user
 * code, in the one range of the one session, and a 16-bit counter with room.
 */
void notrace profil_sample(void)
{
	struct pt_regs *regs = get_irq_regs();
	struct profil_counts __percpu *counts;
	struct profil_space *space;
	struct profil_session *s;
	u16 *counter, old;
	u64 d, byte;

	this_cpu_inc(profil_ticks);
	space = profil_space_find(current->mm);
	if (!space)
		return;
	s = rcu_dereference_raw(space->process);
	/* A bit that is set just now may as well have been set after this tick. */
	if (!user_mode(regs) || data_race(s->slow))
		goto slowly;
	/* Pairs with the release in profil_histograms_refresh(): pages[] as of then. */
	smp_acquire__after_ctrl_dep();
	counts = s->counts;
	if ((long)(this_cpu_read(counts->due) - jiffies) < 0)
		goto slowly;

	d = instruction_pointer(regs) - s->spans[0].start;
	if (d >= s->spans[0].bins.span)
		goto slowly;
	byte = profil_bins_byte(&s->spans[0].bins, d, sizeof(*counter));
	counter = s->spans[0].pages[byte / PAGE_SIZE] + byte % PAGE_SIZE;
	old = READ_ONCE(*counter);
	if (old == U16_MAX || !try_cmpxchg(counter, &old, old + 1))
		goto slowly;
	this_cpu_inc(counts->due);
	this_cpu_inc(counts->n[0][PROFIL_HIT]);
	return;

slowly:
	sample_slowly(space, regs);
}

/*
 * Counts the kept ticks, as far as the session is not parked again meanwhile. With
 * nothing pinned any more, they are dropped. Called under space->lock.
 */
void profil_replay(struct profil_session *s)
{
	u64 *slot, tick;

	lockdep_assert_held(&s->space->lock);

	while (s->tail != (unsigned int)atomic_read(&s->head)) {
		enum profil_outcome outcome = PROFIL_DROPPED_BUFFER;
		unsigned long flags;

		if (s->state == PROFIL_STATE_ON && profil_session_parked(s))
			return;

		slot = &s->kept[s->tail % PROFIL_KEPT];
		/* Pairs with the release in keep(). Zero: it is being written. */
		while (!(tick = smp_load_acquire(slot)))
			cpu_relax();

		local_irq_save(flags);
		if (s->state == PROFIL_STATE_ON)
			outcome = count(s, (s64)tick >> 2);
		this_cpu_ptr(s->counts)->n[tick >> 1 & 1][outcome]++;
		local_irq_restore(flags);

		*slot = 0;
		/* Pairs with the acquire in keep(). */
		smp_store_release(&s->tail, s->tail + 1);
	}
}
