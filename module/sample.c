// SPDX-License-Identifier: GPL-2.0
/*
 * The hot path, which finds the counter of a tick and increments it.
 *
 * The fast path takes ticks that are plain, see tick_is_plain(), and hit a counter. It changes
 * nothing before that, so it leaves all other ticks to the slow path, tick_sample().
 *
 * Context: the hard interrupt of the tick or of a timer, or the scheduler's switch probe, with
 * interrupts off. Nothing here waits, allocates or faults: counters are accessed at the kernel's
 * addresses of the pinned pages. Unpublished objects stay valid for a grace period.
 */
#include <linux/sched/clock.h>
#include <asm/irq_regs.h>

#include "compat.h"
#include "counter.h"
#include "internal.h"

/* Finds the last span that starts at or below @pc; if there is none, the first. */
static const struct profil_span *sample_find_span(const struct profil_table *table, u64 pc)
{
	const struct profil_span *span = table->spans;
	u32 n = table->nr_ranges;

	while (n > 1) {
		u32 half = n / 2;

		if (span[half].start <= pc)
			span += half;
		n -= half;
	}
	return span;
}

/* Returns the address of the counter of @d < @limit, also under speculation: users choose @d. */
static __always_inline void *sample_counter(const struct profil_span *span, u64 d, u64 limit)
{
	u64 byte = profil_bins_byte(&span->bins, array_index_nospec(d, limit), 1);

	return span->pages[byte / PAGE_SIZE] + (byte & span->page_mask);
}

/*
 * Counts the ticks since counts->expected_by as missed if current was on this CPU. Half a tick of
 * its time here is not counted, since ticks often cause arrivals. The next tick is expected within
 * two jiffies, since another CPU may advance jiffies just before or after a tick; within one after
 * a gap of missed ticks only, so that short gaps do not lose one each. Return: the missed ticks.
 */
static u64 tick_count_missed(struct profil_counts *counts)
{
	unsigned long now = jiffies;
	u64 gap = now - counts->expected_by, missed = 0;
#ifdef CONFIG_SCHED_INFO
	s64 ran = cpu_clock(smp_processor_id()) - current->sched_info.last_arrival;

	/* 1: this CPU counted a tick while profil_session_reset_missed() wrote 0. */
	if (counts->expected_by > 1 && ran > TICK_NSEC / 2)
		missed = min_t(u64, gap, div_u64(ran - TICK_NSEC / 2, TICK_NSEC));
	counts->missed += missed;
#endif
	counts->expected_by = now + (missed == gap ? 1 : 2);
	return missed;
}

/* A tick on the slow path, or an advance of the clock. Its users are inline, to use registers. */
struct tick_ctx {
	u64 pc;
	bool system;			/* the kernel is running for the task */
	u32 flags;			/* PROFIL_RECORD_*; with EXEC, no counter is used */
	bool clocked;			/* for sessions with a period; else all below is unused */
	bool sampled;			/* sessions that are due count a sample */
	u32 periods;			/* 1 + the periods that the current session missed */
	u64 passed;			/* ns since the sessions were last advanced */
	u64 left;			/* the result of profil_sample_clocked() */
};

/* Advances a session with a period. Return: true if a sample is due. */
static __always_inline bool tick_is_due(struct profil_session *s, struct tick_ctx *ctx)
{
	struct profil_counts __percpu *counts = READ_ONCE(s->counts);
	s64 *ns_left = counts ? &this_cpu_ptr(counts)->left : &s->left;
	s64 left = READ_ONCE(*ns_left) - ctx->passed;
	bool due = ctx->sampled && left <= 0;
	u64 lapsed;

	ctx->periods = 1;
	if (due) {
		left += s->period;
		if (s->jitter)
			left += (s64)profil_clock_random(s->period) - s->period / 2;
	}
	if (due && left <= 0) {
		lapsed = div_u64(-left, s->period) + 1;
		left += lapsed * s->period;
		ctx->periods += lapsed;
		if (counts)
			this_cpu_add(counts->missed, lapsed);
	}
	WRITE_ONCE(*ns_left, left);
	ctx->left = min_t(u64, ctx->left, max_t(s64, left, 0));
	return due;
}

/* Advances @s to this tick or clock event. Return: true if @s has to count a tick. */
static __always_inline bool tick_belongs_to(struct profil_session *s, struct tick_ctx *ctx)
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
	ctx->periods = 1;
	counts = READ_ONCE(s->counts);
	if (counts) {
		if (time_after(jiffies, this_cpu_read(counts->expected_by)))
			ctx->periods += tick_count_missed(this_cpu_ptr(counts));
		else
			this_cpu_inc(counts->expected_by);
	}
	return true;
}

static enum profil_outcome tick_write_pc(struct profil_session *s, const struct profil_span *span,
					 u64 pc)
{
	u64 byte;

	if (!profil_entry_take(s, &byte))
		return PROFIL_SATURATED;
	byte += offset_in_page(span->range.buffer);
	profil_entry_write(span->pages[byte / PAGE_SIZE] + byte % PAGE_SIZE, pc, span->width);
	return PROFIL_HIT;
}

/* Defers a tick for the counter of @d. Return: false if there is no room. */
static bool tick_defer(struct profil_session *s, struct profil_space *space,
		       const struct profil_span *span, u64 d, bool system)
{
	u64 counter;

	if (!READ_ONCE(s->home))
		profil_pending_kick(space, system);
	if (span->range.flags & PROFIL_RANGE_PCS)
		return profil_defer_tick(s, span->start + d, 0, system);
	counter = (span->range.buffer & PAGE_MASK) +
		  profil_bins_byte(&span->bins, d + span->granule_offset, span->width);
	return profil_defer_tick(s, counter, span->width, system);
}

/* Counts a tick without a counter. @outcome: what it is if @s has no records. */
static __always_inline void tick_uncounted(struct profil_session *s, u64 space,
					   enum profil_outcome outcome, const struct tick_ctx *ctx)
{
	if (!(s->modes & (PROFIL_MODE_USER << ctx->system)))
		outcome = PROFIL_UNSELECTED;
	else if (s->records)
		outcome = profil_ring_record(s, space, ctx->pc, ctx->flags, ctx->periods) ?
			  PROFIL_OUTSIDE : PROFIL_DROPPED_RECORD;
	profil_tally(s, ctx->system, outcome);
}

/* Counts a tick, whether a span contains the pc or not. */
static __always_inline void tick_count(struct profil_session *s, struct profil_space *space,
				       const struct profil_table *table,
				       const struct tick_ctx *ctx, bool parked)
{
	const struct profil_span *span = sample_find_span(table, ctx->pc);
	u64 d = ctx->pc - span->start, limit;
	bool in_exec = ctx->flags & PROFIL_RECORD_EXEC;
	u32 last = span - table->spans;
	enum profil_outcome outcome;

	if (!parked)
		this_cpu_write(s->counts->last_span, last);
	if (d >= span->bins.limit || in_exec) {
		tick_uncounted(s, space->id, in_exec ? PROFIL_DROPPED_EXEC : PROFIL_OUTSIDE, ctx);
		return;
	}
	if (parked) {
		if (tick_defer(s, space, span, d, ctx->system))
			return;
		outcome = PROFIL_DROPPED_OVERRUN;
	} else if (span->range.flags & PROFIL_RANGE_PCS) {
		outcome = tick_write_pc(s, span, ctx->pc);
	} else {
		d += span->granule_offset;
		limit = span->bins.limit + span->granule_offset;
		outcome = profil_counter_add(sample_counter(span, d, limit), span->width,
					     PROFIL_CAS_TRIES);
	}
	profil_tally(s, ctx->system, outcome);
}

static __always_inline void tick_sample(const struct profil_binding *b, struct tick_ctx *ctx)
{
	struct profil_session *s = b->session;
	bool parked;

	if (!tick_belongs_to(s, ctx))
		return;
	if (!(s->modes & (PROFIL_MODE_USER << ctx->system))) {
		profil_tally(s, ctx->system, PROFIL_UNSELECTED);
		return;
	}
	/* Acquires as in tick_is_plain(): if @s is not parked, s->counts is allocated. */
	parked = smp_load_acquire(&s->slow) & BIT(PROFIL_SLOW_PARKED);
	tick_count(s, b->space, rcu_dereference_raw(b->table), ctx, parked);
}

static __always_inline bool tick_hit_span(struct profil_counts __percpu *counts,
					  const struct profil_span *span, u64 d, bool system)
{
	enum profil_outcome outcome;
	void *counter;

	if (d >= span->fast_limit)
		return false;
	counter = sample_counter(span, d, span->fast_limit);
	/* Width 2 has its own case, so that the compiler compares the counter in memory. */
	if (likely(span->width == 2))
		outcome = profil_counter_add_one((u16 *)counter, 1);
	else
		outcome = profil_counter_add(counter, READ_ONCE(span->width), 1);
	if (outcome != PROFIL_HIT)
		return false;
	this_cpu_inc(counts->n[system][PROFIL_HIT]);
	this_cpu_inc(counts->expected_by);
	return true;
}

/* Takes the fast path, if there is one. Return: false if nothing has changed. */
static __always_inline bool tick_hit(struct profil_counts __percpu *counts,
				     const struct profil_table *table, u64 pc, bool system)
{
	const struct profil_span *span = table->spans;
	u64 d = pc - span->start;
	u32 last;

	if (likely(d < span->fast_limit))
		return tick_hit_span(counts, span, d, system);
	/* It may be an index into a previous table. */
	last = this_cpu_read(counts->last_span);
	if (last >= table->nr_ranges)
		return false;
	/* Computes the pc again, so that no register holds it until here. */
	pc = d + READ_ONCE(span->start);
	span += array_index_nospec(last, table->nr_ranges);
	return tick_hit_span(counts, span, pc - span->start, system);
}

/* Returns true if a tick is plain: no bit of @s->slow is set for it, and no tick was missed. */
static __always_inline bool tick_is_plain(const struct profil_session *s, bool system)
{
	/* If another CPU sets a bit now, this tick may count as if it came before the change. */
	if (data_race(s->slow) & (BIT(PROFIL_SLOW_PARKED) | (PROFIL_MODE_USER << system)))
		return false;
	/* Pairs with profil_session_unpark(): an inherited session then has a table and counts. */
	smp_acquire__after_ctrl_dep();
	return (long)(__this_cpu_read(s->counts->expected_by) - jiffies) >= 0;
}

/* Counts a tick of @t without a valid pc: in exit, in exec, or after an exec that failed late. */
static __always_inline void tick_unbound(const struct profil_target *t, struct task_struct *task,
					 struct tick_ctx *ctx)
{
	const struct profil_binding *b = rcu_dereference_raw(t->binding);
	struct profil_session *s = b->session;

	if (!(ctx->flags & PROFIL_RECORD_EXIT))
		ctx->flags |= PROFIL_RECORD_EXEC;
	/* A session that does not follow exec counts no ticks during the exec. */
	if ((!task->mm || s->exec == PROFIL_EXEC_FOLLOW) && tick_belongs_to(s, ctx))
		tick_uncounted(s, b->space->id,
			       task->mm ? PROFIL_DROPPED_EXEC : PROFIL_DROPPED_EXIT, ctx);
}

static bool sample_is_kernel_task(const struct task_struct *task)
{
	/* These flags are constant; the interrupted code may be changing other flags. */
	return data_race(task->flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER);
}

/* Returns the user pc of @task, which is in the kernel: the pc of the system call or the fault. */
static u64 sample_system_pc(struct task_struct *task)
{
	struct pt_regs *regs = task_pt_regs(task);

	return instruction_pointer(regs) - profil_syscall_length(task, regs);
}

/*
 * Returns true if @task, which is in the kernel, is in exec, or dying after one has failed. Then it
 * may have the new mm, but the registers of the old program, and in_execve may be clear.
 */
static __always_inline bool sample_is_in_exec(struct task_struct *task)
{
	/* Only @task changes in_execve. The tick may have interrupted such a change. */
	return data_race(!!task->in_execve) || profil_is_exec_call(task);
}

/* Returns the flags of a record of a tick of @task in the kernel. */
static u32 sample_record_flags(struct task_struct *task)
{
	/* Only @task changes its flags. The tick may have interrupted such a change. */
	if (data_race(task->flags) & PF_EXITING)
		return PROFIL_RECORD_SYSTEM | PROFIL_RECORD_EXIT;
	return PROFIL_RECORD_SYSTEM | (sample_is_in_exec(task) ? PROFIL_RECORD_EXEC : 0);
}

/* Returns the first binding in @space; or NULL if there is no binding or no space. */
static const struct profil_binding *sample_first(const struct profil_space *space)
{
	return space ? hlist_entry_safe(rcu_dereference_raw(hlist_first_rcu(&space->bindings)),
					struct profil_binding, node) : NULL;
}

/* Finds the first target that is the thread @task; or NULL if @space has no thread targets. */
static __always_inline struct profil_target *sample_first_own(const struct profil_space *space,
							      const struct task_struct *task)
{
	/* If a target is attached now, this tick may count as if it came before the attachment. */
	return data_race(space->nr_threads) ? profil_target_first(task) : NULL;
}

/* Returns true if @b samples only threads, in @space, and not in the mm before exec. */
static __always_inline bool sample_is_own(const struct profil_binding *b,
					  const struct profil_space *space)
{
	return b->space == space && !READ_ONCE(b->samples_all);
}

/*
 * Takes the slow path for the sessions of @space from binding @b on, and those of the thread from
 * target @t on. In system mode @task may be in exec, before its targets are moved, or in exit.
 */
static __always_inline void sample_all(struct profil_space *space, struct task_struct *task,
				       const struct profil_binding *b, struct profil_target *t,
				       struct tick_ctx *ctx)
{
	if (ctx->system) {
		if (sample_is_kernel_task(task))
			return;
		ctx->flags = sample_record_flags(task);
	}
	hlist_for_each_entry_from_rcu(b, node)
		if (READ_ONCE(b->samples_all))
			tick_sample(b, ctx);
	for (; t; t = profil_target_next(t)) {
		b = rcu_dereference_raw(t->binding);
		if (ctx->system && b->space != space)
			tick_unbound(t, task, ctx);
		else if (sample_is_own(b, space))
			tick_sample(b, ctx);
	}
	if (!ctx->system)
		return;
	for (t = profil_target_first(task->signal); t; t = profil_target_next(t))
		if (rcu_dereference_raw(t->binding)->space != space)
			tick_unbound(t, task, ctx);
}

/* Returns a number for the program of @task, which is not the id of a space; or 0. */
static u64 sample_program_id(const struct task_struct *task)
{
	const struct task_struct *leader;

	/* If @task was reaped, which can be before its last tick, group_leader may be gone. */
	if (!pid_alive(task))
		return 0;
	/* Another thread may be replacing the leader by exec. RCU keeps both. */
	leader = READ_ONCE(task->group_leader);
	return BIT_ULL(63) | (leader->start_time + READ_ONCE(task->self_exec_id));
}

static void sample_machine(struct task_struct *task, struct tick_ctx *ctx)
{
	enum profil_outcome outcome = task->mm ? PROFIL_OUTSIDE : PROFIL_DROPPED_EXIT;
	u32 flags = sample_record_flags(task);
	struct profil_session *s;

	/* A task that the kernel creates for a program has no mm before its first exec. */
	if (sample_is_kernel_task(task) || (!task->mm && !(flags & PROFIL_RECORD_EXIT)))
		return;
	ctx->flags = ctx->system ? flags : 0;
	if (ctx->flags & PROFIL_RECORD_EXEC)
		outcome = PROFIL_DROPPED_EXEC;
	hlist_for_each_entry_rcu_notrace(s, &profil_machine_sessions, in_machine)
		if (tick_belongs_to(s, ctx))
			tick_uncounted(s, sample_program_id(task), outcome, ctx);
}

static noinline void sample_slow(struct profil_space *space, const struct profil_binding *b,
				 struct profil_target *t, u64 pc, bool system)
{
	struct tick_ctx ctx = { .pc = pc, .system = system };

	sample_all(space, current, b, t, &ctx);
}

/* Takes the fast path for the only session. Return: see tick_hit(). */
static __always_inline bool sample_one(struct profil_space *space, u64 pc, bool system)
{
	const struct profil_table *table = rcu_dereference_raw(space->fast_table);
	const struct profil_session *s = table->session;

	return tick_is_plain(s, system) && tick_hit(s->counts, table, pc, system);
}

/* Takes the fast path for one binding of several, or of a thread. Return: see tick_hit(). */
static __always_inline bool sample_binding(const struct profil_binding *b, u64 pc)
{
	const struct profil_session *s = b->session;

	/* Reads the table after the check: a session that is not set up has its parent's table. */
	return tick_is_plain(s, false) &&
	       tick_hit(s->counts, rcu_dereference_raw(b->table), pc, false);
}

/* Samples a tick in user mode. The only call is a tail call, so that no registers are saved. */
static noinline notrace void sample_user(struct profil_space *space, u64 pc)
{
	const struct profil_binding *b;
	struct profil_target *t;

	hlist_for_each_entry_rcu_notrace(b, &space->bindings, node) {
		if (READ_ONCE(b->samples_all) && !sample_binding(b, pc)) {
			sample_slow(space, b, sample_first_own(space, current), pc, false);
			return;
		}
	}
	for (t = sample_first_own(space, current); t; t = profil_target_next(t)) {
		b = rcu_dereference_raw(t->binding);
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

	if (sample_is_kernel_task(task))
		return;
	pc = sample_system_pc(task);
	if (space && !sample_is_in_exec(task) && sample_one(space, pc, true))
		return;
	/* A race does no harm, as in sample_first_own(). */
	if (space || data_race(profil_nr_targets))
		sample_slow(space, sample_first(space), profil_target_first(task), pc, true);
}

static __always_inline void sample_tick(void)
{
	struct profil_space *space = profil_space_find(current->mm);
	struct pt_regs *regs = get_irq_regs();

	if (!user_mode(regs))
		sample_system(space);
	else if (space && !sample_one(space, instruction_pointer(regs), false) &&
		 /* It may have had sessions. A race does no harm, as in sample_first_own(). */
		 (data_race(space->bindings.first) || data_race(space->nr_threads)))
		sample_user(space, instruction_pointer(regs));
}

static noinline notrace void sample_with_machine(void)
{
	struct pt_regs *regs = get_irq_regs();
	struct tick_ctx ctx = { .system = !user_mode(regs) };

	ctx.pc = ctx.system ? sample_system_pc(current) : instruction_pointer(regs);
	sample_machine(current, &ctx);
	sample_tick();
}

/* Ftrace calls this at each tick of the scheduler, which has interrupted current. */
void notrace profil_sample(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			   struct ftrace_regs *fregs)
{
	if (static_branch_unlikely(&profil_machine_sampled))
		sample_with_machine();
	else
		sample_tick();
}

/*
 * Advances all sessions with a period that sample @task by @passed ns. @task was running, or is
 * about to run. @regs: if not NULL, sessions that are due count a sample of the interrupted code.
 * Return: ns until the next sample; PROFIL_TICKS_ONLY: no session has a period; PROFIL_NEVER: none.
 */
u64 notrace profil_sample_clocked(struct task_struct *task, u64 passed, struct pt_regs *regs)
{
	struct profil_space *space = profil_space_find(task->mm);
	struct tick_ctx ctx = {
		.system = !regs || !user_mode(regs),
		.clocked = true,
		.sampled = regs,
		.passed = passed,
		.left = PROFIL_NEVER,
	};

	if (regs)
		ctx.pc = ctx.system ? sample_system_pc(task) : instruction_pointer(regs);
	/* At a switch, a sampled task has a space unless it exits. Most tasks have no space. */
	if (space || (ctx.system && data_race(profil_nr_targets) && (task == current || !task->mm)))
		sample_all(space, task, sample_first(space),
			   ctx.system ? profil_target_first(task) : sample_first_own(space, task),
			   &ctx);
	if (static_branch_unlikely(&profil_machine_sampled))
		sample_machine(task, &ctx);
	return ctx.left;
}
