// SPDX-License-Identifier: GPL-2.0
/*
 * A timer on each CPU, for sessions with a period; and the scheduler tick of nohz_full= CPUs.
 *
 * The timer of a CPU runs while a target of such a session runs there: a probe of context switches,
 * the switch probe, starts and stops it. It fires when the first of the task's sessions is due. The
 * rest of a period is left to the next target on the CPU, so that short-lived threads get samples.
 *
 * A nohz_full= CPU stops its tick while it runs a single task. If there are such CPUs, all sessions
 * use the probe, which keeps the tick of a CPU running while a target runs there.
 *
 * Context: clock_fire() in a hard interrupt; clock_switch() as a probe, under the runqueue's lock;
 * clock_resync_cpu() with interrupts off; profil_clock_resync_here() in the probe of exec;
 * profil_clock_random(): any; others: module load, system calls and workers (may sleep).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/prandom.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/tracepoint.h>
#include <asm/irq_regs.h>
#include <trace/events/sched.h>

#include "compat.h"
#include "internal.h"

/* The least ns from the end of an interrupt to the next, so that the task makes progress */
#define CLOCK_MIN_GAP	5000

static unsigned int min_period_ns = 50000;
module_param(min_period_ns, uint, 0644);
MODULE_PARM_DESC(min_period_ns, "shortest period of sessions of users without CAP_PERFMON, in ns");

/* True if there are nohz_full= CPUs, which stop their tick; constant after boot. */
bool profil_nohz_full __ro_after_init;

struct clock {
	struct hrtimer timer;
	u64 since;		/* ns; current's sessions are advanced up to this time */
	bool running;		/* the timer runs for current */
	bool ticking;		/* this CPU keeps its tick for current */
	const struct mm_struct *mm;	/* the running task's, as a key; or CLOCK_MM_UNKNOWN */
};

/* The number of times that a CPU began to keep its tick */
static atomic_t clock_ticks_kept = ATOMIC_INIT(0);

#define CLOCK_MM_UNKNOWN ((const struct mm_struct *)-1L)

/* While the probe is installed, only the CPU itself writes these, with interrupts off. */
static DEFINE_PER_CPU(struct clock, clocks);
static DEFINE_PER_CPU(struct rnd_state, random_states);

static struct tracepoint *switch_tracepoint;

static enum hrtimer_restart clock_fire(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	/* Uses the time when the timer was due: reading the clock would cost 50 instructions. */
	ktime_t due = hrtimer_get_expires(timer);
	u64 left;

	left = profil_sample_clocked(current, ktime_to_ns(due) - clock->since, get_irq_regs());
	clock->since = ktime_to_ns(due);
	if (left >= PROFIL_TICKS_ONLY) {
		clock->running = false;
		return HRTIMER_NORESTART;
	}
	/* The next sample may be due already: this interrupt was late, or the samples took long. */
	due = max_t(s64, due + left, ktime_get() + CLOCK_MIN_GAP);
	hrtimer_set_expires(timer, due);
	return HRTIMER_RESTART;
}

/* POSIX timers set this bit in tasks, never in CPUs. Perf clears its own bit at each tick. */
#define TICK_DEP_BIT	TICK_DEP_BIT_POSIX_TIMER

static void clock_keep_tick(struct clock *clock, bool keep)
{
	int cpu = smp_processor_id();

	if (clock->ticking == keep || !tick_nohz_full_cpu(cpu))
		return;
	WRITE_ONCE(clock->ticking, keep);
	if (keep) {
		tick_nohz_dep_set_cpu(cpu, TICK_DEP_BIT);
		atomic_inc(&clock_ticks_kept);
	} else {
		tick_nohz_dep_clear_cpu(cpu, TICK_DEP_BIT);
	}
}

/* Starts the timer if the incoming @task has clocked sessions. @now: in ns, or 0 if unknown. */
static void clock_start(struct clock *clock, struct task_struct *task, u64 now)
{
	u64 left = PROFIL_NEVER;

	/* PF_KTHREAD is constant; other flags may be changing. */
	if (!(data_race(task->flags) & PF_KTHREAD))
		left = profil_sample_clocked(task, 0, NULL);
	clock_keep_tick(clock, left != PROFIL_NEVER);
	if (left >= PROFIL_TICKS_ONLY)
		return;
	clock->since = now ? now : ktime_get_ns();
	clock->running = true;
	hrtimer_start(&clock->timer, ns_to_ktime(max_t(u64, left, CLOCK_MIN_GAP)),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/* Stops the timer of the outgoing @task. Return: the time in ns; or 0 if the timer was idle. */
static u64 clock_stop(struct clock *clock, struct task_struct *task)
{
	u64 now;

	if (!clock->running)
		return 0;
	now = ktime_get_ns();
	clock->running = false;
	/* The timer cannot be firing: it is pinned to this CPU, and interrupts are off. */
	hrtimer_try_to_cancel(&clock->timer);
	profil_sample_clocked(task, now - clock->since, NULL);
	return now;
}

/* Interrupts are off, so this is an RCU reader. From 7.2 on, the tracepoint does not lock RCU. */
static __always_inline void clock_change_task(struct task_struct *prev, struct task_struct *next)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = clock_stop(clock, prev);

	lockdep_assert_irqs_disabled();
	WRITE_ONCE(clock->mm, next->mm);
	smp_mb();	/* pairs with the one in profil_clock_resync() */
	clock_start(clock, next, now);
}

static void clock_switch(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state)
{
	clock_change_task(prev, next);
}

static void clock_resync_cpu(void *unused)
{
	clock_change_task(current, current);
}

/* A change that the clocks must learn: of @session; or, with @mm, of its targets there. */
struct clock_change {
	const struct profil_session *session;
	const struct mm_struct *mm;
};

/* Returns true if @cpu may run a task that the change concerns, or keeps its tick in vain. */
static bool clock_is_concerned(int cpu, void *data)
{
	const struct clock *clock = per_cpu_ptr(&clocks, cpu);
	const struct mm_struct *mm = READ_ONCE(clock->mm);
	const struct clock_change *change = data;
	const struct profil_space *space;

	if (mm == CLOCK_MM_UNKNOWN || (change->mm && mm == change->mm))
		return true;
	space = mm ? profil_space_find(mm) : NULL;
	if (READ_ONCE(clock->ticking) && !static_key_enabled(&profil_machine_sampled) &&
	    (!space || (hlist_empty(&space->bindings) && !READ_ONCE(space->nr_threads))))
		return true;
	return mm && !change->mm && (change->session->machine ||
				     (space && profil_binding_exists(change->session, space->id)));
}

/*
 * Applies a change of a session or its targets to the tasks that are running: advances their
 * sessions, and starts or stops the timers. Callers do this before @s gets a target in @mm or is
 * turned on, so that earlier time does not count, and after it, for all targets (@mm is NULL). No
 * target that is about to run is missed:
 *
 *	CPU A: profil_clock_resync()		CPU B: clock_switch() to a new target
 *
 *	(the caller has published the target)	clock->mm = the target's mm
 *	smp_mb()				smp_mb()
 *	read clock->mm of CPU B			find the sessions of the target
 *
 * Either A reads the target's mm and interrupts B, or B finds the session; or both, which is
 * harmless. Must be called with interrupts on. Return: true if a CPU has begun to keep its tick.
 */
bool profil_clock_resync(const struct profil_session *s, const struct mm_struct *mm)
{
	struct clock_change change = { s, mm };
	int before = atomic_read(&clock_ticks_kept);

	if (!s->period && !profil_nohz_full)
		return false;
	smp_mb();	/* pairs with the one in clock_switch() */
	on_each_cpu_cond_mask(clock_is_concerned, clock_resync_cpu, &change, true, cpu_online_mask);
	return atomic_read(&clock_ticks_kept) != before;
}

/* Resyncs this CPU alone, when the caller's mm has changed without a context switch. */
void profil_clock_resync_here(void)
{
	unsigned long flags;

	local_irq_save(flags);
	this_cpu_write(clocks.mm, CLOCK_MM_UNKNOWN);
	/* If the clock is being installed now, the resync after that interrupts this CPU. */
	smp_mb();
	if (READ_ONCE(profil_clock.installed))
		clock_resync_cpu(NULL);
	local_irq_restore(flags);
}

/* Returns the shortest period that the caller may ask for. */
u32 profil_clock_min_period(void)
{
	if (ns_capable_noaudit(&init_user_ns, CAP_PERFMON) ||
	    ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		return PROFIL_MIN_PERIOD;
	return max(READ_ONCE(min_period_ns), PROFIL_MIN_PERIOD);
}

/* Checks the period of a new session. Return: 0; -EINVAL; -EPERM if the caller may not use it. */
int profil_clock_check_period(u64 period, bool jitter)
{
	if (!period)
		return jitter ? -EINVAL : 0;
	if (period < PROFIL_MIN_PERIOD || period > PROFIL_MAX_PERIOD)
		return -EINVAL;
	return period < profil_clock_min_period() ? -EPERM : 0;
}

/* Returns a pseudo-random number below @period, from a random seed; 0 for 0. */
u32 profil_clock_random(u32 period)
{
	unsigned long flags;
	u32 random;

	local_irq_save(flags);
	random = prandom_u32_state(this_cpu_ptr(&random_states));
	local_irq_restore(flags);
	return mul_u32_u32(period, random) >> 32;
}

static int clock_install(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(&clocks, cpu)->mm, CLOCK_MM_UNKNOWN);
	return tracepoint_probe_register(switch_tracepoint, clock_switch, NULL) ? -EBUSY : 0;
}

static void clock_remove(void)
{
	int cpu;

	tracepoint_probe_unregister(switch_tracepoint, clock_switch, NULL);
	tracepoint_synchronize_unregister();
	/* A timer that is still running finds no clocked session, and does not restart. */
	for_each_possible_cpu(cpu) {
		struct clock *clock = per_cpu_ptr(&clocks, cpu);

		hrtimer_cancel(&clock->timer);
		clock->running = false;
		if (clock->ticking)
			tick_nohz_dep_clear_cpu(cpu, TICK_DEP_BIT);
		clock->ticking = false;
	}
}

struct profil_trigger profil_clock = {
	.lock = __MUTEX_INITIALIZER(profil_clock.lock),
	.linger = __DELAYED_WORK_INITIALIZER(profil_clock.linger, profil_trigger_linger_over, 0),
	.install = clock_install,
	.remove = clock_remove,
};

int profil_clock_init(void)
{
	int cpu;

	check_trace_callback_type_sched_switch(clock_switch);
	switch_tracepoint = profil_trigger_find_tracepoint("sched_switch");
	if (!switch_tracepoint)
		return -EOPNOTSUPP;
	profil_nohz_full = tick_nohz_full_enabled();
	prandom_seed_full_state(&random_states);
	for_each_possible_cpu(cpu)
		hrtimer_setup(&per_cpu_ptr(&clocks, cpu)->timer, clock_fire, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}
