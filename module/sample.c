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
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/task_stack.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "counter.h"
#include "profil.h"

DEFINE_PER_CPU(unsigned long, profil_ticks);

/* The last span that starts at or below @pc; the first if there is none. */
static const struct profil_span *sample_find_span(const struct profil_table *table, u64 pc)
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

/*
 * The counter of @d, which is below @limit and for profil_bins_byte(). Also for a CPU that only
 * guesses that it is: the user chooses the pc, and all that the index depends on.
 */
static __always_inline void *sample_counter(const struct profil_span *span, u64 d, u64 limit)
{
	u64 byte = profil_bins_byte(&span->bins, array_index_nospec(d, limit), 1);

	return span->pages[byte / PAGE_SIZE] + (byte & span->page_mask);
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
static void tick_count_missed(struct profil_counts *counts)
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
static void tick_advance(struct profil_counts __percpu *counts)
{
	if (!counts)
		return;
	if (time_after(jiffies, this_cpu_read(counts->due)))
		tick_count_missed(this_cpu_ptr(counts));
	this_cpu_inc(counts->due);
}

/**
 * struct tick_ctx - What a tick has found, or a clock, or a context switch
 * @pc: Where the task is.
 * @system: The kernel is running for the task.
 * @sampled: Sessions with a period that are due are to count; else time has passed, and no more.
 * @passed: So many ns since the last time.
 * @left: Out: so many until the next session is due.
 * @found: Out: there is a session that is on, of whichever kind.
 * @drawn: There is already:
 * @random: One for all sessions with jitter, so that those in step stay so.
 *
 * All but the first two is for sessions with a period.
 */
struct tick_ctx {
	u64 pc;
	bool system;
	bool sampled;
	bool found;
	bool drawn;
	u32 random;
	u64 passed;
	u64 left;
};

/* To the next sample. */
static __always_inline u64 tick_interval(const struct profil_session *s, struct tick_ctx *ctx)
{
	if (!s->jitter)
		return s->period;
	if (!ctx->drawn) {
		ctx->drawn = true;
		ctx->random = profil_clock_random();
	}
	return s->period / 2 + (mul_u32_u32(s->period, ctx->random) >> 32);
}

/* Time passes for a session with a period. Is it due? */
static __always_inline bool tick_clock_due(struct profil_session *s,
					   struct profil_counts __percpu *counts,
					   struct tick_ctx *ctx)
{
	s64 *place = counts ? &this_cpu_ptr(counts)->left : &s->left;
	s64 left = READ_ONCE(*place) - ctx->passed;
	bool due = ctx->sampled && left <= 0;
	u64 lost;

	if (due) {
		left += tick_interval(s, ctx);
		if (left <= 0) {
			lost = div_u64(-left, s->period) + 1;
			left += lost * s->period;
			if (counts)
				this_cpu_add(counts->missed, lost);
		}
	}
	WRITE_ONCE(*place, left);
	ctx->left = min_t(u64, ctx->left, max_t(s64, left, 0));
	return due;
}

/*
 * Is this a tick of the session? From here on @clocked tells whose tick it is, that of sessions
 * with a period or that of the others; it is known when compiled, so that neither pays for it.
 */
static __always_inline bool tick_is_of(struct profil_session *s,
				       struct profil_counts __percpu *counts,
				       struct tick_ctx *ctx, bool clocked)
{
	if (!READ_ONCE(s->on))
		return false;
	if (clocked)
		ctx->found = true;
	if (!s->period == clocked)
		return false;
	if (clocked)
		return tick_clock_due(s, counts, ctx);
	tick_advance(counts);
	return true;
}

/*
 * Is there no more to say about a tick of the scheduler, as about most of @s, than where its
 * counter is?
 */
static __always_inline bool tick_is_plain(const struct profil_session *s, bool system)
{
	const unsigned long slow = BIT(PROFIL_SLOW_PARKED) |
				   (system ? BIT(PROFIL_SLOW_SYSTEM) : BIT(PROFIL_SLOW_USER));

	/* A bit that is set just now may as well have been set after this tick. */
	if (data_race(s->slow) & slow)
		return false;
	/*
	 * Pairs with the release in profil_session_unpark(): an inherited session has its own
	 * table and counts then.
	 */
	smp_acquire__after_ctrl_dep();
	return (long)(this_cpu_read(s->counts->due) - jiffies) >= 0;
}

/* A tick that has no counter. */
static noinline void tick_outside(struct profil_session *s, struct profil_space *space, u64 pc,
				  bool system)
{
	enum profil_outcome outcome = PROFIL_OUTSIDE;

	if (s->ring && !profil_record(s, space, pc, system))
		outcome = PROFIL_DROPPED_RECORD;
	profil_tally(s, READ_ONCE(s->counts), system, outcome);
}

/* A tick whose pc is to be written down. */
static enum profil_outcome tick_write_pc(struct profil_session *s, const struct profil_span *span,
					 u64 pc)
{
	u64 byte;

	if (!profil_entry_take(s, &byte))
		return PROFIL_SATURATED;
	byte += offset_in_page(span->buffer);
	profil_entry_write(span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE, pc, span->width);
	return PROFIL_HIT;
}

#define tick_add_once(p) ({							\
	typeof(p) __p = (p);							\
	typeof(*__p) __old = READ_ONCE(*__p);					\
										\
	__old != (typeof(*__p))~0ULL && try_cmpxchg(__p, &__old, __old + 1);	\
})

/* Is the pc in @span, and its counter not full? Then it is raised. Calls nothing. */
static __always_inline bool tick_hit(struct profil_counts __percpu *counts,
				     const struct profil_span *span, u64 pc, bool system)
{
	u64 d = pc - span->start;
	void *counter;

	if (d >= span->fast_limit)
		return false;
	counter = sample_counter(span, d, span->fast_limit);
	if (likely(span->width == 2)) {
		if (!tick_add_once((u16 *)counter))
			return false;
	} else if (READ_ONCE(span->width) == 4) {	/* apart: the first compares with memory */
		if (!tick_add_once((u32 *)counter))
			return false;
	} else if (!tick_add_once((u64 *)counter)) {
		return false;
	}
	this_cpu_inc(counts->n[system][PROFIL_HIT]);
	return true;
}

/* The same in the range of the last tick, if there are several. */
static __always_inline bool tick_hit_last(struct profil_counts __percpu *counts,
					  const struct profil_table *table, u64 pc, bool system)
{
	u32 last = this_cpu_read(counts->last_span);

	/* Of this table, or of one before it. */
	if (last >= table->nr_spans)
		return false;
	return tick_hit(counts, &table->spans[array_index_nospec(last, table->nr_spans)], pc,
			system);
}

/* Whatever the pc is in. */
static noinline void tick_count(struct profil_session *s, struct profil_space *space,
				const struct profil_table *table, u64 pc, bool system)
{
	const struct profil_span *span = sample_find_span(table, pc);
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);
	u64 d = pc - span->start;
	u32 last = span - table->spans;
	enum profil_outcome outcome;

	this_cpu_write(counts->last_span, last);
	if (d >= span->bins.limit) {
		tick_outside(s, space, pc, system);
		return;
	}
	if (span->flags & PROFIL_RANGE_PCS) {
		outcome = tick_write_pc(s, span, pc);
	} else {
		u64 limit = span->bins.limit + span->granule_offset;

		outcome = profil_counter_add(sample_counter(span, d + span->granule_offset, limit),
					     span->width);
	}
	profil_tally(s, counts, system, outcome);
}

/* A tick whose counter is known, and is not to be touched now. */
static noinline void tick_defer(struct profil_session *s, struct profil_space *space,
				const struct profil_table *table, u64 pc, bool system)
{
	const struct profil_span *span = sample_find_span(table, pc);
	u64 d = pc - span->start, tick;

	if (d >= span->bins.limit) {
		tick_outside(s, space, pc, system);
		return;
	}
	if (span->flags & PROFIL_RANGE_PCS)
		tick = profil_deferred_pc(pc, system);
	else
		tick = profil_deferred_tick((span->buffer & PAGE_MASK) +
					    profil_bins_byte(&span->bins, d + span->granule_offset,
							     span->width), span->width, system);
	if (!READ_ONCE(s->home))
		profil_space_kick_setup(space, system);
	if (!profil_defer_tick(s, tick))
		profil_tally(s, READ_ONCE(s->counts), system, PROFIL_DROPPED_OVERRUN);
}

/* A tick of the task that @w's session samples, whatever the session's state. */
static __always_inline void tick_look(const struct profil_watch *w, struct tick_ctx *ctx,
				      bool clocked)
{
	struct profil_session *s = w->session;
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);
	const struct profil_table *table;
	bool parked;

	if (!tick_is_of(s, counts, ctx, clocked))
		return;
	if (!(s->modes & (PROFIL_MODE_USER << ctx->system))) {
		profil_tally(s, counts, ctx->system, PROFIL_UNSELECTED);
		return;
	}
	/* As in tick_is_plain(): if it is not parked, counts is there by now. */
	parked = smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED);
	table = rcu_dereference_raw(w->table);
	counts = READ_ONCE(s->counts);
	if (parked)
		tick_defer(s, w->space, table, ctx->pc, ctx->system);
	else if (!tick_hit(counts, table->spans, ctx->pc, ctx->system) &&
		 !tick_hit_last(counts, table, ctx->pc, ctx->system))
		tick_count(s, w->space, table, ctx->pc, ctx->system);
}

/* By value: so what its caller has stays in registers. */
static noinline void tick_look_slowly(const struct profil_watch *w, u64 pc, bool system)
{
	struct tick_ctx ctx = { .pc = pc, .system = system };

	tick_look(w, &ctx, false);
}

/* A hit of the first range that is plain. */
static __always_inline bool tick_hit_first(struct profil_counts __percpu *counts,
					   const struct profil_table *table, u64 pc, bool system)
{
	if (!tick_hit(counts, table->spans, pc, system))
		return false;
	this_cpu_inc(counts->due);
	return true;
}

/* Not a plain tick, or not in the first range: it is one for tick_look(). */
static __always_inline bool tick_watch_plainly(const struct profil_watch *w, u64 pc, bool system)
{
	const struct profil_session *s = w->session;

	/* Its table only then: until it is set up it has that of the parent of a fork. */
	return tick_is_plain(s, system) &&
	       tick_hit_first(s->counts, rcu_dereference_raw(w->table), pc, system);
}

static __always_inline void tick_watch(const struct profil_watch *w, u64 pc, bool system)
{
	if (!tick_watch_plainly(w, pc, system))
		tick_look_slowly(w, pc, system);
}

static __always_inline const struct profil_watch *sample_watch_of(const struct profil_member *m)
{
	return rcu_dereference_raw(m->watch);
}

/* A tick of @m's target where there is nothing to be sampled. */
static __always_inline void tick_unbound(const struct profil_member *m, struct task_struct *task,
					 struct tick_ctx *ctx, bool clocked)
{
	struct profil_session *s = sample_watch_of(m)->session;
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);

	/* An exec that is not followed was the end. */
	if ((task->mm && s->exec != PROFIL_EXEC_FOLLOW) ||
	    !tick_is_of(s, counts, ctx, clocked))
		return;
	if (!(s->modes & PROFIL_MODE_SYSTEM))
		profil_tally(s, counts, true, PROFIL_UNSELECTED);
	else
		profil_tally(s, counts, true,
			     task->mm ? PROFIL_DROPPED_EXEC : PROFIL_DROPPED_EXIT);
}

static __always_inline bool sample_is_kernel_task(const struct task_struct *task)
{
	/* These flags stay as they are; it may be about to change others, where the tick came. */
	return data_race(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/*
 * @task's mm is not watched: perhaps it is in exec, or has lost its mm in exit. In user
 * mode neither can be. @ctx: for @clocked.
 */
static __always_inline void sample_members(struct task_struct *task, struct tick_ctx *ctx,
					   bool clocked)
{
	struct profil_member *m;

	if (sample_is_kernel_task(task))
		return;
	for (m = profil_member_first(task->signal); m; m = profil_member_next(m))
		tick_unbound(m, task, ctx, clocked);
	for (m = profil_member_first(task); m; m = profil_member_next(m))
		tick_unbound(m, task, ctx, clocked);
}

static noinline void sample_unbound(struct task_struct *task)
{
	sample_members(task, NULL, false);
}

static noinline u64 sample_unbound_clocked(struct task_struct *task, u64 passed, bool sampled,
					   bool *found)
{
	struct tick_ctx ctx = {
		.sampled = sampled,
		.system = true,
		.passed = passed,
		.left = PROFIL_NEVER,
	};

	sample_members(task, &ctx, true);
	*found = ctx.found;
	return ctx.left;
}

/*
 * In exec, of several sessions that follow, some may not have come to the new space yet. @ctx: for
 * @clocked.
 */
static __always_inline void sample_exec(struct profil_space *space, struct task_struct *task,
					struct tick_ctx *ctx, bool clocked)
{
	struct profil_member *m;

	for (m = profil_member_first(task->signal); m; m = profil_member_next(m))
		if (unlikely(sample_watch_of(m)->space != space))
			tick_unbound(m, task, ctx, clocked);
}

/* Not of the mm before an exec, nor one that samples all that runs in @space. */
static __always_inline bool sample_is_threads(const struct profil_watch *w,
					      const struct profil_space *space)
{
	return w->space == space && !READ_ONCE(w->nr_processes);
}

/* Where @task, for which the kernel runs, has called it. */
static __always_inline u64 sample_system_pc(struct task_struct *task)
{
	struct pt_regs *regs = task_pt_regs(task);

	return instruction_pointer(regs) - profil_syscall_length(task, regs);
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
	struct tick_ctx ctx = {
		.sampled = regs,
		.system = true,
		.passed = passed,
		.left = PROFIL_NEVER,
	};
	const struct profil_watch *w;
	struct profil_member *m;

	if (regs) {
		ctx.system = !user_mode(regs);
		ctx.pc = ctx.system ? sample_system_pc(task) : instruction_pointer(regs);
	}
	*found = false;
	if (!space) {
		/* At a context switch only in exit: this is the time of all other tasks. */
		if (ctx.system && data_race(profil_nr_members) && (task == current || !task->mm))
			return sample_unbound_clocked(task, passed, regs, found);
		return PROFIL_NEVER;
	}
	if (ctx.system && sample_is_kernel_task(task))
		return PROFIL_NEVER;
	hlist_for_each_entry_rcu_notrace(w, &space->watches, node)
		if (READ_ONCE(w->nr_processes))
			tick_look(w, &ctx, true);
	if (ctx.system)
		sample_exec(space, task, &ctx, true);
	if (READ_ONCE(space->nr_threads)) {
		for (m = profil_member_first(task); m; m = profil_member_next(m)) {
			w = sample_watch_of(m);
			if (sample_is_threads(w, space))
				tick_look(w, &ctx, true);
		}
	}
	*found = ctx.found;
	return ctx.left;
}

/* Several sessions of the thread, or one with more to say. */
static noinline void sample_threads(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_watch *w;
	struct profil_member *m;

	for (m = profil_member_first(current); m; m = profil_member_next(m)) {
		w = sample_watch_of(m);
		if (sample_is_threads(w, space))
			tick_watch(w, pc, system);
	}
}

/* The same, of one session: without a loop all fits into registers that nobody must save. */
static noinline notrace void sample_thread(struct profil_space *space, u64 pc, bool system)
{
	struct profil_member *m = profil_member_first(current);
	const struct profil_watch *w;

	if (m && !profil_member_next(m)) {
		w = sample_watch_of(m);
		if (sample_is_threads(w, space) && tick_watch_plainly(w, pc, system))
			return;
	}
	sample_threads(space, pc, system);
}

/* What samples all that runs in @space has had its tick. */
static __always_inline void sample_rest(struct profil_space *space, u64 pc, bool system)
{
	/* A thread that is attached just now may as well have been attached after this tick. */
	if (data_race(space->nr_threads))
		sample_thread(space, pc, system);
}

/* Several sessions of the space, or one with more to say. */
static noinline notrace void sample_watches(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_watch *w;

	hlist_for_each_entry_rcu_notrace(w, &space->watches, node)
		if (READ_ONCE(w->nr_processes))
			tick_watch(w, pc, system);
	sample_rest(space, pc, system);
}

/* A plain tick that is not in the first range. */
static noinline notrace void sample_search(struct profil_space *space,
					   const struct profil_table *table, u64 pc, bool system)
{
	struct profil_counts __percpu *counts = table->session->counts;

	if (tick_hit_last(counts, table, pc, system))
		this_cpu_inc(counts->due);
	else
		sample_watches(space, pc, system);
}

/* One session of the space and others of threads, several, or one with more to say. */
static noinline notrace void sample_others(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_table *table = rcu_dereference_raw(space->process_table);
	const struct profil_session *s = table->session;

	if (tick_is_plain(s, system) && tick_hit_first(s->counts, table, pc, system))
		sample_thread(space, pc, system);
	else
		sample_watches(space, pc, system);
}

/* From the scheduler's tick to the counter: here if it can be, in few steps. */
static __always_inline void sample_tick(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_table *table = rcu_dereference_raw(space->fast_table);
	const struct profil_session *s = table->session;

	if (tick_is_plain(s, system)) {
		if (!tick_hit_first(s->counts, table, pc, system))
			sample_search(space, table, pc, system);
	} else if (hlist_empty(&space->watches)) {
		sample_thread(space, pc, system);
	} else {
		sample_others(space, pc, system);
	}
}

static noinline notrace void sample_system(struct profil_space *space)
{
	struct task_struct *task = current;

	if (sample_is_kernel_task(task))
		return;
	sample_exec(space, task, NULL, false);
	sample_tick(space, sample_system_pc(task), true);
}

/* A tick has found current running. */
void notrace profil_sample(void)
{
	struct pt_regs *regs = get_irq_regs();
	struct profil_space *space;

	this_cpu_inc(profil_ticks);
	space = profil_space_find(current->mm);
	if (likely(space && user_mode(regs)))
		sample_tick(space, instruction_pointer(regs), false);
	else if (space)
		sample_system(space);
	/* One that is attached just now may as well come after this tick. */
	else if (!user_mode(regs) && data_race(profil_nr_members))
		sample_unbound(current);
}
