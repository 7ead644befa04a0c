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
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/task_stack.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "profil.h"

#define CAS_TRIES 64	/* against others who write to the same counter all the time */

DEFINE_PER_CPU(unsigned long, profil_ticks);

/*
 * A tick of a parked session whose counter is known: the counter's user address, its width and
 * the mode in one word that is never 0. Where pcs are written down, the pc.
 */
#define DEFERRED_PC	3	/* in the place of a width */

static u64 deferred_tick(u64 addr, u32 width, bool system)
{
	return addr << 4 | (width >> 2) << 2 | system << 1 | 1;
}

static u64 deferred_pc(u64 pc, bool system)
{
	return pc << 4 | DEFERRED_PC << 2 | system << 1 | 1;
}

/* Leaves a tick to profil_replay(). Many CPUs may put at once, one taker takes. */
static bool defer_tick(struct profil_session *s, struct profil_space *space, u64 tick)
{
	int head = atomic_read(&s->head);

	if (!READ_ONCE(s->home))
		profil_space_kick_setup(space);
	do {
		/* Pairs with the release in profil_replay(): the slot is free. */
		if (head - smp_load_acquire(&s->tail) >= PROFIL_MAX_DEFERRED)
			return false;
	} while (!atomic_try_cmpxchg(&s->head, &head, head + 1));

	/* Pairs with the acquire in profil_replay(): a slot is whole or zero. */
	smp_store_release(&s->deferred[(unsigned int)head % PROFIL_MAX_DEFERRED], tick);
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

static enum profil_outcome raise(void *counter, u32 width)
{
	switch (width) {
	case 2:
		return counter_raise((u16 *)counter);
	case 4:
		return counter_raise((u32 *)counter);
	default:
		return counter_raise((u64 *)counter);
	}
}

/* Takes the next entry for a pc: its number of bytes from the first. */
static bool pc_entry(struct profil_session *s, u64 *byte)
{
	u64 nr = atomic64_read(&s->nr_pcs);

	do {
		if (nr >= s->max_pcs)
			return false;
	} while (!atomic64_try_cmpxchg(&s->nr_pcs, (s64 *)&nr, nr + 1));
	*byte = nr * s->pc_width;
	return true;
}

static void pc_write(void *entry, u64 pc, u32 width)
{
	if (width == 4)
		WRITE_ONCE(*(u32 *)entry, pc);
	else
		WRITE_ONCE(*(u64 *)entry, pc);
}

/* The last span that starts at or below @pc; the first if there is none. */
static const struct profil_span *span_find(const struct profil_table *table, u64 pc)
{
	const struct profil_span *span = table->spans;
	u32 n = table->nr_spans;

	while (n > 1) {
		u32 half = n / 2;

		if (span[half].start <= pc)
			span += half;
		n -= half;
	}
	return span;
}

/* @counts: those of @s, or NULL if it has none yet. */
static __always_inline void tally(struct profil_session *s, struct profil_counts __percpu *counts,
				  bool system, enum profil_outcome outcome)
{
	if (likely(counts))
		this_cpu_inc(counts->n[system][outcome]);
	else
		atomic64_inc(&s->early[system][outcome]);
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

/* Another tick of the session on this CPU. */
static __always_inline void advance(struct profil_counts __percpu *counts)
{
	if (!counts)
		return;
	if (time_after(jiffies, this_cpu_read(counts->due)))
		count_missed(this_cpu_ptr(counts));
	this_cpu_inc(counts->due);
}

/**
 * struct moment - When a task is looked at
 * @sampled: Sessions with a period that are due are to count; else time has passed, and no more.
 * @system: The kernel is running for the task.
 * @pc: Where the task is.
 * @passed: So many ns since the last moment.
 * @left: Out: so many until the next session is due.
 * @drawn: There is already:
 * @random: One for all sessions with jitter, so that those in step stay so.
 * @found: Out: there is a session that is on, of whichever kind.
 * @recorded: Out: a session wanted it as a record.
 */
struct moment {
	bool sampled;
	bool system;
	bool drawn;
	bool found;
	bool recorded;
	u32 random;
	u64 pc;
	u64 passed;
	u64 left;
};

/* To the next sample. */
static u64 interval(const struct profil_session *s, struct moment *at)
{
	if (!s->jitter)
		return s->period;
	if (!at->drawn) {
		at->drawn = true;
		at->random = profil_clock_random();
	}
	return s->period / 2 + (mul_u32_u32(s->period, at->random) >> 32);
}

/* Time passes for a session with a period. Is it due? */
static noinline bool clock_due(struct profil_session *s, struct profil_counts __percpu *counts,
			       struct moment *at)
{
	s64 *place = counts ? &this_cpu_ptr(counts)->left : &s->left;
	s64 left = READ_ONCE(*place) - at->passed;
	bool due = at->sampled && left <= 0;
	u64 lost;

	if (due) {
		left += interval(s, at);
		if (left <= 0) {
			lost = div_u64(-left, s->period) + 1;
			left += lost * s->period;
			if (counts)
				this_cpu_add(counts->missed, lost);
		}
	}
	WRITE_ONCE(*place, left);
	at->left = min_t(u64, at->left, max_t(s64, left, 0));
	return due;
}

/*
 * Is this a tick of the session? From here on @clocked tells whose moment it is, that of sessions
 * with a period or that of the others; it is known when compiled, so that neither pays for it.
 */
static __always_inline bool ticks_now(struct profil_session *s,
				      struct profil_counts __percpu *counts, struct moment *at,
				      bool clocked)
{
	if (!READ_ONCE(s->on))
		return false;
	if (clocked)
		at->found = true;
	if (!s->period == clocked)
		return false;
	if (clocked)
		return clock_due(s, counts, at);
	advance(counts);
	return true;
}

/* A tick whose pc is to be written down. */
static noinline void pc_tick(const struct profil_watch *w, struct profil_counts __percpu *counts,
			     const struct profil_span *span, u64 pc, bool system, bool parked)
{
	struct profil_session *s = w->session;
	enum profil_outcome outcome = PROFIL_SATURATED;
	u64 byte;

	if (parked) {
		if (defer_tick(s, w->space, deferred_pc(pc, system)))
			return;
		outcome = PROFIL_DROPPED_OVERRUN;
	} else if (pc_entry(s, &byte)) {
		byte += offset_in_page(span->buffer);
		pc_write(span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE, pc, span->width);
		outcome = PROFIL_HIT;
	}
	tally(s, counts, system, outcome);
}

static __always_inline void watch_tick(const struct profil_watch *w, struct moment *at,
				       bool clocked)
{
	struct profil_session *s = w->session;
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);
	const bool system = at->system;
	const struct profil_span *span;
	enum profil_outcome outcome;
	const u64 pc = at->pc;
	bool parked;
	u64 d, byte;

	if (!ticks_now(s, counts, at, clocked))
		return;
	if (!(s->modes & (PROFIL_MODE_USER << system))) {
		tally(s, counts, system, PROFIL_UNSELECTED);
		return;
	}

	/*
	 * Pairs with the release in profil_session_unpark(): an inherited session has a table
	 * with pages then.
	 */
	parked = smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED);
	span = span_find(rcu_dereference_raw(w->table), pc);
	d = pc - span->start;
	if (d >= span->bins.span) {
		outcome = PROFIL_OUTSIDE;
		if (s->ring) {
			at->recorded = true;
			if (!profil_record(s, w->space, pc, system))
				outcome = PROFIL_DROPPED_RECORD;
		}
		tally(s, counts, system, outcome);
		return;
	}
	if (unlikely(span->flags & PROFIL_RANGE_PCS)) {
		pc_tick(w, counts, span, pc, system, parked);
		return;
	}
	byte = profil_bins_byte(&span->bins, d + span->rest, span->width);
	if (!parked) {
		outcome = raise(span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE, span->width);
	} else {
		if (defer_tick(s, w->space, deferred_tick((span->buffer & PAGE_MASK) + byte,
							  span->width, system)))
			return;
		outcome = PROFIL_DROPPED_OVERRUN;
	}
	tally(s, counts, system, outcome);
}

/* A tick of @m's target where there is nothing to be sampled. */
static __always_inline void astray_tick(const struct profil_member *m, struct task_struct *task,
					struct moment *at, bool clocked)
{
	struct profil_session *s = ((struct profil_watch *)rcu_dereference_raw(m->watch))->session;
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);

	/* An exec that is not followed was the end. */
	if ((task->mm && s->exec != PROFIL_EXEC_FOLLOW) ||
	    !ticks_now(s, counts, at, clocked))
		return;
	if (!(s->modes & PROFIL_MODE_SYSTEM))
		tally(s, counts, true, PROFIL_UNSELECTED);
	else
		tally(s, counts, true, task->mm ? PROFIL_DROPPED_EXEC : PROFIL_DROPPED_EXIT);
}

static __always_inline bool is_of_kernel(const struct task_struct *task)
{
	/* These flags stay as they are; it may be about to change others, where the tick came. */
	return data_race(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/*
 * @task's mm is not watched: perhaps it is in exec, or has lost its mm in exit. In user
 * mode neither can be. @at: for @clocked.
 */
static noinline void sample_astray(struct task_struct *task, struct moment *at, bool clocked)
{
	struct profil_member *m;

	if (is_of_kernel(task))
		return;
	for (m = profil_member_first(task->signal); m; m = profil_member_next(m))
		astray_tick(m, task, at, clocked);
	for (m = profil_member_first(task); m; m = profil_member_next(m))
		astray_tick(m, task, at, clocked);
}

static void moment_locate(struct moment *at, struct task_struct *task, struct pt_regs *regs)
{
	at->system = !user_mode(regs);
	at->pc = instruction_pointer(regs);
	if (at->system) {
		regs = task_pt_regs(task);
		at->pc = instruction_pointer(regs) - profil_syscall_length(task, regs);
	}
}

/* The whole of what a tick may find. */
static __always_inline void sample_all(struct profil_space *space, struct task_struct *task,
				       struct moment *at, bool clocked)
{
	struct profil_member *m;
	struct profil_watch *w;

	if (is_of_kernel(task))
		return;
	hlist_for_each_entry_rcu_notrace(w, &space->watches, node)
		if (READ_ONCE(w->nr_processes))
			watch_tick(w, at, clocked);
	/* In exec: of several sessions that follow, some may not have come to the new space yet. */
	if (at->system && READ_ONCE(profil_nr_members)) {
		for (m = profil_member_first(task->signal); m; m = profil_member_next(m)) {
			w = rcu_dereference_raw(m->watch);
			if (w->space != space)
				astray_tick(m, task, at, clocked);
		}
	}
	if (!READ_ONCE(space->nr_threads))
		return;
	for (m = profil_member_first(task); m; m = profil_member_next(m)) {
		w = rcu_dereference_raw(m->watch);
		/* Not of the mm before an exec, and not what was sampled above. */
		if (w->space == space && !READ_ONCE(w->nr_processes))
			watch_tick(w, at, clocked);
	}
}

/**
 * profil_sample_clocked - Time has passed for sessions with a period
 * @task: The task that has been running, or is going to.
 * @passed: How much, in ns.
 * @regs: What was interrupted; those that are due are to count. Or NULL.
 * @found: Out: does any session sample @task, also one of the scheduler's ticks?
 *
 * With interrupts off.
 *
 * Return: ns until the next is due, or PROFIL_NEVER.
 */
u64 notrace profil_sample_clocked(struct task_struct *task, u64 passed, struct pt_regs *regs,
				  bool *found)
{
	struct profil_space *space = profil_space_find(task->mm);
	struct moment at = {
		.sampled = regs,
		.system = true,
		.passed = passed,
		.left = PROFIL_NEVER,
	};

	if (regs)
		moment_locate(&at, task, regs);
	if (space)
		sample_all(space, task, &at, true);
	/* At a context switch only in exit: it is the time of all others that is spent here. */
	else if (at.system && data_race(profil_nr_members) && (task == current || !task->mm))
		sample_astray(task, &at, true);
	if (at.recorded)
		profil_record_over();
	*found = at.found;
	return at.left;
}

static noinline void sample_slowly(struct profil_space *space, struct pt_regs *regs)
{
	struct moment at = {};

	moment_locate(&at, current, regs);
	sample_all(space, current, &at, false);
	if (at.recorded)
		profil_record_over();
}

/* Another hit of user code here, @d bytes into the range, in 16 bits, unless that is full. */
static __always_inline bool hit(const struct profil_span *span, u64 d,
				struct profil_counts __percpu *counts)
{
	u64 byte = profil_bins_byte(&span->bins, d, sizeof(u16));
	u16 *counter = span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE;
	u16 old = READ_ONCE(*counter);

	if (old == U16_MAX || !try_cmpxchg(counter, &old, old + 1))
		return false;
	this_cpu_inc(counts->due);
	this_cpu_inc(counts->n[0][PROFIL_HIT]);
	return true;
}

/* As profil_sample(), not in the first range: most often in that of the last tick. */
static noinline void sample_ranges(struct profil_space *space, const struct profil_table *table,
				   struct pt_regs *regs)
{
	struct profil_counts __percpu *counts = table->session->counts;
	u64 pc = instruction_pointer(regs);
	u32 last = this_cpu_read(counts->span);
	const struct profil_span *span = &table->spans[last];

	if (last >= table->nr_spans || pc - span->start >= span->bins.span) {
		span = span_find(table, pc);
		last = span - table->spans;
		this_cpu_write(counts->span, last);
	}
	if (pc - span->start >= span->bins.span || !hit(span, pc - span->start, counts))
		sample_slowly(space, regs);
}

/*
 * A tick has found current running. What most ticks find is dealt with here: user
 * code, in a range of the one session, and a 16-bit counter with room.
 */
void notrace profil_sample(void)
{
	struct pt_regs *regs = get_irq_regs();
	struct profil_counts __percpu *counts;
	struct profil_session *s;
	struct profil_space *space;
	struct profil_table *table;
	u64 d;

	this_cpu_inc(profil_ticks);
	space = profil_space_find(current->mm);
	if (!space) {
		/* One that is attached just now may as well come after this tick. */
		if (!user_mode(regs) && data_race(profil_nr_members))
			sample_astray(current, NULL, false);
		return;
	}
	table = rcu_dereference_raw(space->only);
	s = table->session;
	/* A bit that is set just now may as well have been set after this tick. */
	if (!user_mode(regs) || data_race(s->slow))
		goto slowly;
	/* Pairs with the release in profil_session_unpark(). */
	smp_acquire__after_ctrl_dep();
	counts = s->counts;
	if ((long)(this_cpu_read(counts->due) - jiffies) < 0)
		goto slowly;

	d = instruction_pointer(regs) - table->spans[0].start;
	if (d >= table->spans[0].bins.span) {
		sample_ranges(space, table, regs);
		return;
	}
	if (hit(&table->spans[0], d, counts))
		return;

slowly:
	sample_slowly(space, regs);
}

static enum profil_outcome replay_tick(struct profil_session *s, u64 tick)
{
	bool is_pc = (tick >> 2 & 3) == DEFERRED_PC;
	u32 width = is_pc ? s->pc_width : 2U << (tick >> 2 & 3);
	u64 addr = tick >> 4, byte;
	void *counter;

	if (is_pc) {
		if (!pc_entry(s, &byte))
			return PROFIL_SATURATED;
		addr = s->pcs + byte;
	}
	counter = profil_histogram_counter(s, addr, width);
	if (!counter)
		return PROFIL_DROPPED_BUFFER;
	if (!is_pc)
		return raise(counter, width);
	pc_write(counter, tick >> 4, width);
	return PROFIL_HIT;
}

/*
 * Counts the deferred ticks of a session that is parked no more; those of one that could not be set
 * up have no counters, and are dropped. A tick that found it parked may be deferred just after.
 * Called under home->lock.
 */
void profil_replay(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	while (s->tail != (unsigned int)atomic_read(&s->head)) {
		u64 *slot = &s->deferred[s->tail % PROFIL_MAX_DEFERRED], tick;
		unsigned long flags;

		/* Pairs with the release in defer_tick(). Zero: it is being written. */
		while (!(tick = smp_load_acquire(slot)))
			cpu_relax();
		local_irq_save(flags);
		tally(s, s->counts, tick >> 1 & 1, replay_tick(s, tick));
		local_irq_restore(flags);

		*slot = 0;
		/* Pairs with the acquire in defer_tick(). */
		smp_store_release(&s->tail, s->tail + 1);
	}
}
