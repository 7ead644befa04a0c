// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path: from a tick to a counter.
 *
 * Runs in the tick's hard interrupt, interrupts off, on behalf of current. Takes no lock, allocates
 * nothing, cannot fault: the counters are reached through the kernel's own addresses of pinned
 * pages. What it reads of a space or session stays valid for a grace period after that is
 * unpublished.
 *
 * There are two paths. Nearly all ticks are plain, see tick_is_plain(), and hit a counter: these
 * take the fast path. It changes nothing before it has raised the counter, and then there is no
 * more to do; so any other tick of a session still is one for the slow path, tick_sample(), which
 * knows all cases.
 */
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/clock.h>
#include <linux/sched/task_stack.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "counter.h"
#include "profil.h"

bool profil_tick_arrived;

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
 * The last tick here of this session was more than a tick ago: current was not running then, or its
 * ticks did not come. jiffies may be read just before or just after the CPU that keeps them
 * advances it, so one more or less says nothing, and counts->due is two beyond the last tick at
 * first. Of a longer gap, those ticks were missed that are younger than current's arrival on the
 * CPU; half a tick is left out since arrivals are often caused by ticks. If that is all of the gap,
 * the count goes on from where it began, so that of many short gaps not each loses one.
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

/* What the slow path knows of a tick, or of time that passes for sessions with a period. */
struct tick_ctx {
	u64 pc;
	bool system;			/* the kernel is running for the task */
	bool clocked;			/* it is for those with a period, as all of the rest is */
	bool sampled;			/* those that are due are to count */
	u64 passed;			/* ns since the last time */
	u64 left;			/* out: as of profil_sample_clocked() */
};

/* Time passes for a session with a period. Is it due? */
static bool tick_is_due(struct profil_session *s, struct tick_ctx *ctx)
{
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);
	s64 *ns_left = counts ? &this_cpu_ptr(counts)->left : &s->left;
	s64 left = READ_ONCE(*ns_left) - ctx->passed;
	bool due = ctx->sampled && left <= 0;
	u64 lapsed;

	if (due) {
		left += s->period;
		if (s->jitter)
			left += (mul_u32_u32(s->period, profil_clock_random()) >> 32) -
				s->period / 2;
	}
	if (due && left <= 0) {
		lapsed = div_u64(-left, s->period) + 1;
		left += lapsed * s->period;
		if (counts)
			this_cpu_add(counts->missed, lapsed);
	}
	WRITE_ONCE(*ns_left, left);
	ctx->left = min_t(u64, ctx->left, max_t(s64, left, 0));
	return due;
}

/* Is this a tick of the session? */
static bool tick_belongs_to(struct profil_session *s, struct tick_ctx *ctx)
{
	struct profil_counts __percpu *counts;

	if (!READ_ONCE(s->on))
		return false;
	if (ctx->clocked) {
		if (s->period)
			return tick_is_due(s, ctx);
		ctx->left = min(ctx->left, PROFIL_TICKS_ONLY);
		return false;
	}
	if (s->period)
		return false;
	counts = READ_ONCE(s->counts);
	if (counts) {
		if (time_after(jiffies, this_cpu_read(counts->due)))
			tick_count_missed(this_cpu_ptr(counts));
		this_cpu_inc(counts->due);
	}
	return true;
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

/* A tick of @d's counter, which is not to be touched now. Return: is there room for it? */
static bool tick_defer(struct profil_session *s, struct profil_space *space,
		       const struct profil_span *span, u64 d, bool system)
{
	u64 counter;

	if (!READ_ONCE(s->home))
		profil_pending_kick(space, system);
	if (span->flags & PROFIL_RANGE_PCS)
		return profil_defer_tick(s, span->start + d, 0, system);
	counter = (span->buffer & PAGE_MASK) +
		  profil_bins_byte(&span->bins, d + span->granule_offset, span->width);
	return profil_defer_tick(s, counter, span->width, system);
}

/* Whatever the pc is in. */
static void tick_count(struct profil_session *s, struct profil_space *space,
		       const struct profil_table *table, u64 pc, bool system, bool parked)
{
	const struct profil_span *span = sample_find_span(table, pc);
	u64 d = pc - span->start, limit;
	u32 last = span - table->spans;
	enum profil_outcome outcome;

	if (!parked)
		this_cpu_write(s->counts->last_span, last);
	if (d >= span->bins.limit) {
		outcome = PROFIL_OUTSIDE;
		if (s->ring && !profil_ring_record(s, space, pc, system))
			outcome = PROFIL_DROPPED_RECORD;
	} else if (parked) {
		if (tick_defer(s, space, span, d, system))
			return;
		outcome = PROFIL_DROPPED_OVERRUN;
	} else if (span->flags & PROFIL_RANGE_PCS) {
		outcome = tick_write_pc(s, span, pc);
	} else {
		d += span->granule_offset;
		limit = span->bins.limit + span->granule_offset;
		outcome = profil_counter_add(sample_counter(span, d, limit), span->width,
					     PROFIL_CAS_TRIES);
	}
	profil_tally(s, system, outcome);
}

/* The slow path of a tick, or of a clock, of a task that @b's session samples. */
static void tick_sample(const struct profil_binding *b, struct tick_ctx *ctx)
{
	struct profil_session *s = b->session;
	bool parked;

	if (!tick_belongs_to(s, ctx))
		return;
	if (!(s->modes & (PROFIL_MODE_USER << ctx->system))) {
		profil_tally(s, ctx->system, PROFIL_UNSELECTED);
		return;
	}
	/* As in tick_is_plain(): if it is not parked, counts is there by now. */
	parked = smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED);
	tick_count(s, b->space, rcu_dereference_raw(b->table), ctx->pc, ctx->system, parked);
}

/* @advance: this is a tick of the scheduler. */
static __always_inline bool tick_hit_span(struct profil_counts __percpu *counts,
					  const struct profil_span *span, u64 d, bool system,
					bool advance)
{
	enum profil_outcome outcome;
	void *counter;

	if (d >= span->fast_limit)
		return false;
	counter = sample_counter(span, d, span->fast_limit);
	/* Apart: so the first compares with memory. */
	if (likely(span->width == 2))
		outcome = profil_counter_add_one((u16 *)counter, 1);
	else
		outcome = profil_counter_add(counter, READ_ONCE(span->width), 1);
	if (outcome != PROFIL_HIT)
		return false;
	this_cpu_inc(counts->n[system][PROFIL_HIT]);
	if (advance)
		this_cpu_inc(counts->due);
	return true;
}

/*
 * The fast path to a counter: is the pc in the first range, or in that of the last tick, and could
 * its counter be raised? Otherwise nothing has changed.
 */
static __always_inline bool tick_hit(struct profil_counts __percpu *counts,
				     const struct profil_table *table, u64 pc, bool system,
				     bool advance)
{
	const struct profil_span *span = table->spans;
	u64 d = pc - span->start;
	u32 last;

	if (likely(d < span->fast_limit))
		return tick_hit_span(counts, span, d, system, advance);
	/* Of this table, or of one before it. */
	last = this_cpu_read(counts->last_span);
	if (last >= table->nr_spans)
		return false;
	/* The pc from memory: so it need not be kept for this. */
	pc = d + READ_ONCE(span->start);
	span += array_index_nospec(last, table->nr_spans);
	return tick_hit_span(counts, span, pc - span->start, system, advance);
}

/*
 * Is there no more to say about a tick of the scheduler than where its counter is? Then @s is on,
 * without a period, counts in this mode, is not parked, and no tick before this one was missed.
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
	return (long)(__this_cpu_read(s->counts->due) - jiffies) >= 0;
}

static __always_inline const struct profil_binding *sample_binding_of(const struct profil_target *t)
{
	return rcu_dereference_raw(t->binding);
}

/* A tick of @t where there is nothing to be sampled. */
static void tick_unbound(const struct profil_target *t, struct task_struct *task,
			 struct tick_ctx *ctx)
{
	struct profil_session *s = sample_binding_of(t)->session;

	/* An exec that is not followed was the end. */
	if ((task->mm && s->exec != PROFIL_EXEC_FOLLOW) || !tick_belongs_to(s, ctx))
		return;
	if (!(s->modes & PROFIL_MODE_SYSTEM))
		profil_tally(s, true, PROFIL_UNSELECTED);
	else
		profil_tally(s, true, task->mm ? PROFIL_DROPPED_EXEC : PROFIL_DROPPED_EXIT);
}

/* ---- which sessions sample a task ---- */

static bool sample_is_kernel_task(const struct task_struct *task)
{
	/* These flags stay as they are; it may be about to change others, where the tick came. */
	return data_race(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/* Where @task, for which the kernel runs, has called it. */
static u64 sample_system_pc(struct task_struct *task)
{
	struct pt_regs *regs = task_pt_regs(task);

	return instruction_pointer(regs) - profil_syscall_length(task, regs);
}

/* The first session of all that runs in @space, if there is a space. */
static const struct profil_binding *sample_first(const struct profil_space *space)
{
	if (!space)
		return NULL;
	return hlist_entry_safe(rcu_dereference_raw(hlist_first_rcu(&space->bindings)),
				struct profil_binding, node);
}

/* The first session of @task alone, unless none of these is in @space. */
static __always_inline struct profil_target *sample_first_own(const struct profil_space *space,
							      const struct task_struct *task)
{
	/* One that is attached just now may as well have been attached after this tick. */
	return !space || data_race(space->nr_threads) ? profil_target_first(task) : NULL;
}

/* Not of the mm before an exec, nor one that samples all that runs in @space. */
static __always_inline bool sample_is_own(const struct profil_binding *b,
					  const struct profil_space *space)
{
	return b->space == space && !READ_ONCE(b->nr_processes);
}

/* A session of @task's process that follows an exec, and has not come to @space yet. */
static __always_inline struct profil_target *sample_in_exec(const struct profil_space *space,
							    const struct task_struct *task)
{
	struct profil_target *t = profil_target_first(task->signal);

	while (t && sample_binding_of(t)->space == space)
		t = profil_target_next(t);
	return t;
}

/*
 * The slow path: sessions of @space from @b on, and of the thread alone from @t on. In the kernel
 * @task may be in exec, where not all sessions have come to the new space, or in exit, where it has
 * none.
 */
static void sample_all(struct profil_space *space, struct task_struct *task,
		       const struct profil_binding *b, struct profil_target *t,
			struct tick_ctx *ctx)
{
	struct profil_target *process;

	if (ctx->system && sample_is_kernel_task(task))
		return;
	hlist_for_each_entry_from_rcu(b, node)
		if (READ_ONCE(b->nr_processes))
			tick_sample(b, ctx);
	for (; t; t = profil_target_next(t)) {
		b = sample_binding_of(t);
		if (!space)
			tick_unbound(t, task, ctx);
		else if (sample_is_own(b, space))
			tick_sample(b, ctx);
	}
	if (!ctx->system)
		return;
	process = profil_target_first(task->signal);
	for (; process; process = profil_target_next(process))
		if (sample_binding_of(process)->space != space)
			tick_unbound(process, task, ctx);
}

static noinline void sample_slow(struct profil_space *space, const struct profil_binding *b,
				 struct profil_target *t, u64 pc, bool system)
{
	struct tick_ctx ctx = { .pc = pc, .system = system };

	sample_all(space, current, b, t, &ctx);
}

/* The fast path for one session that samples all that runs in @space, if no other does. */
static __always_inline bool sample_one(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_table *table = rcu_dereference_raw(space->fast_table);
	const struct profil_session *s = table->session;

	return tick_is_plain(s, system) && tick_hit(s->counts, table, pc, system, true);
}

/* The fast path for one of several sessions, or a thread's own. */
static __always_inline bool sample_binding(const struct profil_binding *b, u64 pc)
{
	const struct profil_session *s = b->session;

	/* The table only then: until it is set up it has that of the parent of a fork. */
	return tick_is_plain(s, false) &&
	       tick_hit(s->counts, rcu_dereference_raw(b->table), pc, false, true);
}

/* What tick_arrives() waits for, while no session is on: so it is not for sample_one() to tell. */
static __always_inline void sample_report_arrival(void)
{
	if (unlikely(!READ_ONCE(profil_tick_arrived)))
		WRITE_ONCE(profil_tick_arrived, true);
}

/*
 * A tick in user mode. Calls nothing but, in the end, the slow path for the rest: so all that it
 * has stays in registers that nobody must save.
 */
static noinline notrace void sample_user(struct profil_space *space, u64 pc)
{
	const struct profil_binding *b;
	struct profil_target *t;

	sample_report_arrival();
	hlist_for_each_entry_rcu_notrace(b, &space->bindings, node) {
		if (READ_ONCE(b->nr_processes) && !sample_binding(b, pc)) {
			sample_slow(space, b, sample_first_own(space, current), pc, false);
			return;
		}
	}
	for (t = sample_first_own(space, current); t; t = profil_target_next(t)) {
		b = sample_binding_of(t);
		if (sample_is_own(b, space) && !sample_binding(b, pc)) {
			sample_slow(space, NULL, t, pc, false);
			return;
		}
	}
}

static noinline notrace void sample_system(struct profil_space *space)
{
	struct task_struct *task = current;
	u64 pc;

	sample_report_arrival();
	if (sample_is_kernel_task(task))
		return;
	pc = sample_system_pc(task);
	if (space && !sample_in_exec(space, task) && sample_one(space, pc, true))
		return;
	/* One that is attached just now may as well come after this tick. */
	if (space || data_race(profil_nr_targets))
		sample_slow(space, sample_first(space), sample_first_own(space, task), pc, true);
}

/* A tick has found current running. Called by ftrace. */
void notrace profil_sample(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			   struct ftrace_regs *fregs)
{
	struct profil_space *space = profil_space_find(current->mm);
	struct pt_regs *regs = get_irq_regs();

	if (!user_mode(regs))
		sample_system(space);
	else if (!space)
		sample_report_arrival();
	else if (!sample_one(space, instruction_pointer(regs), false))
		sample_user(space, instruction_pointer(regs));
}

/*
 * The fast path of a clock, for one session as in sample_one() that is on, has a period and no
 * jitter, and is due once. Return: ns until it is due again, or 0: nothing is done yet.
 */
static __always_inline u64 clock_one(struct profil_space *space, u64 passed, u64 pc)
{
	const struct profil_table *table = rcu_dereference_raw(space->fast_table);
	const struct profil_session *s = table->session;
	struct profil_counts __percpu *counts;
	s64 left;

	if (!READ_ONCE(s->on) || !s->period || s->jitter || !(s->modes & PROFIL_MODE_USER))
		return 0;
	/* As in tick_is_plain(). */
	if (smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED))
		return 0;
	counts = s->counts;
	left = this_cpu_read(counts->left) - passed;
	if (left > 0 || left + s->period <= 0 || !tick_hit(counts, table, pc, false, false))
		return 0;
	left += s->period;
	this_cpu_write(counts->left, left);
	return left;
}

static noinline u64 clock_slow(struct profil_space *space, struct task_struct *task, u64 passed,
			       struct pt_regs *regs)
{
	struct tick_ctx ctx = {
		.system = !regs || !user_mode(regs),
		.clocked = true,
		.sampled = regs,
		.passed = passed,
		.left = PROFIL_NEVER,
	};

	if (regs)
		ctx.pc = ctx.system ? sample_system_pc(task) : instruction_pointer(regs);
	/* Without a space at a context switch only in exit: this is the time of all other tasks. */
	if (space || (ctx.system && data_race(profil_nr_targets) &&
		      (task == current || !task->mm)))
		sample_all(space, task, sample_first(space), sample_first_own(space, task), &ctx);
	return ctx.left;
}

/*
 * @passed ns have passed for the sessions with a period that sample @task, which has been running,
 * or is going to. @regs: what was interrupted, if those that are due are to count. With interrupts
 * off. Return: ns until the next is due, PROFIL_TICKS_ONLY if only sessions without a period sample
 * @task, or PROFIL_NEVER.
 */
u64 notrace profil_sample_clocked(struct task_struct *task, u64 passed, struct pt_regs *regs)
{
	struct profil_space *space = profil_space_find(task->mm);
	u64 left = 0;

	if (space && regs && user_mode(regs))
		left = clock_one(space, passed, instruction_pointer(regs));
	return left ?: clock_slow(space, task, passed, regs);
}
