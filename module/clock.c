// SPDX-License-Identifier: GPL-2.0
/*
 * A clock faster than the tick, for sessions with a period.
 *
 * Each CPU has a timer that runs while a target of such a session runs there: a probe at the
 * context switch starts and stops it. So the clock measures CPU time of the targets, and interrupts
 * neither idle CPUs nor other tasks. The timer fires when the first of the task's sessions is due.
 * Each session knows for each CPU the rest of its period, and continues with it when another of its
 * targets runs there. So threads that live shorter than a period get their share of samples.
 *
 * A CPU of nohz_full= stops its tick while it runs a single task. Where there are such CPUs all
 * sessions use the probe: a CPU keeps its tick while a target runs there. That includes targets of
 * sessions with a period, or the scheduler would not know their CPU time.
 *
 * Context: clock_fire() in a hard interrupt; clock_switch() as a probe, under the runqueue's lock;
 * clock_resync_cpu() with interrupts off; others: system calls and workers (may sleep).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/tracepoint.h>
#include <asm/irq_regs.h>
#include <trace/events/sched.h>

#include "compat.h"
#include "profil.h"

/* Least ns from the end of one interrupt to the next: the task must make progress. */
#define CLOCK_MIN_GAP	5000

unsigned int profil_min_period = 50000;
module_param_named(min_period_ns, profil_min_period, uint, 0644);
MODULE_PARM_DESC(min_period_ns, "shortest period of sessions of users without CAP_PERFMON, in ns");

/* Are there CPUs that stop their tick? Constant after boot. */
bool profil_nohz_full __ro_after_init;

struct clock {
	struct hrtimer timer;
	u64 since;		/* until when the sessions of current were advanced */
	bool running;		/* the timer, for current */
	bool ticking;		/* this CPU keeps its tick for current */
	const struct mm_struct *mm;	/* a key: of the running task, or CLOCK_MM_UNKNOWN */
};

/* How often CPUs have begun to keep their tick */
static atomic_t clock_ticks_kept = ATOMIC_INIT(0);

#define CLOCK_MM_UNKNOWN ((const struct mm_struct *)-1L)

/* Written by its CPU, with interrupts off. */
static DEFINE_PER_CPU(struct clock, clocks);
static DEFINE_PER_CPU(struct rnd_state, random_states);

static struct tracepoint *switch_tracepoint;

static enum hrtimer_restart clock_fire(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	/* The time when it was due: to read the clock again would cost 50 instructions. */
	ktime_t due = hrtimer_get_expires(timer);
	u64 left;

	left = profil_sample_clocked(current, ktime_to_ns(due) - clock->since, get_irq_regs());
	clock->since = ktime_to_ns(due);
	if (left >= PROFIL_TICKS_ONLY) {
		clock->running = false;
		return HRTIMER_NORESTART;
	}
	/* The next sample may be due already: this interrupt was late, or the samples took long. */
	hrtimer_set_expires(timer, max_t(s64, due + left, ktime_get() + CLOCK_MIN_GAP));
	return HRTIMER_RESTART;
}

/* POSIX timers set this bit in tasks only, not in CPUs. Perf clears its own at each tick. */
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

/* Starts the timer for the incoming @task, if a session samples it. @now: in ns; 0: read it. */
static void clock_start(struct clock *clock, struct task_struct *task, u64 now)
{
	u64 left = PROFIL_NEVER;

	/* This flag is constant; others may be changing. */
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

/* Stops the timer of the outgoing @task. Return: now in ns, or 0 if the timer was idle. */
static u64 clock_stop(struct clock *clock, struct task_struct *task)
{
	u64 now;

	if (!clock->running)
		return 0;
	now = ktime_get_ns();
	clock->running = false;
	/* The timer is pinned to this CPU, and interrupts are off: it is not firing. */
	hrtimer_try_to_cancel(&clock->timer);
	profil_sample_clocked(task, now - clock->since, NULL);
	return now;
}

/* With interrupts off it is an RCU reader, also where the tracepoint itself is none (7.2). */
static void clock_switch(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now;

	lockdep_assert_irqs_disabled();
	now = clock_stop(clock, prev);
	WRITE_ONCE(clock->mm, next->mm);
	smp_mb();	/* pairs with the one in profil_clock_resync() */
	clock_start(clock, next, now);
}

static void clock_resync_cpu(void *unused)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = clock_stop(clock, current);

	WRITE_ONCE(clock->mm, current->mm);
	smp_mb();	/* as in clock_switch() */
	clock_start(clock, current, now);
}

/* Neither CPUs that run other tasks nor idle ones are interrupted. */
static bool clock_may_run_target(int cpu, void *unused)
{
	const struct clock *clock = per_cpu_ptr(&clocks, cpu);
	const struct mm_struct *mm = READ_ONCE(clock->mm);

	return READ_ONCE(clock->ticking) ||
	       (mm && (mm == CLOCK_MM_UNKNOWN || profil_space_find(mm)));
}

/*
 * Applies a change of a session's targets to the running tasks: their sessions are advanced to this
 * moment, and the timers start or stop according to the sessions as they are now. It misses no
 * target that is about to run:
 *
 *	CPU A: profil_clock_resync()		CPU B: clock_switch() to a new target
 *
 *	(the caller has published the target)	clock->mm = the target's mm
 *	smp_mb()				smp_mb()
 *	read clock->mm of CPU B			find the sessions of the target
 *
 * Either A reads the target's mm and interrupts B, or B finds the session; or both, which is
 * harmless. Not with interrupts off. Return: has a CPU begun to keep its tick?
 */
bool profil_clock_resync(void)
{
	int before = atomic_read(&clock_ticks_kept);

	smp_mb();	/* see above */
	on_each_cpu_cond_mask(clock_may_run_target, clock_resync_cpu, NULL, true, cpu_online_mask);
	return atomic_read(&clock_ticks_kept) != before;
}

/* For this CPU alone: the caller's mm has changed without a context switch. */
void profil_clock_resync_here(void)
{
	unsigned long flags;

	if (!READ_ONCE(profil_clock.installed))
		return;
	local_irq_save(flags);
	clock_resync_cpu(NULL);
	local_irq_restore(flags);
}

/* Good enough for jitter, which users must not predict. With interrupts off. */
u32 profil_clock_random(void)
{
	return prandom_u32_state(this_cpu_ptr(&random_states));
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
	/* A timer may still be running. It finds no session and does not restart. */
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
	switch_tracepoint = profil_follow_find_tracepoint("sched_switch");
	if (!switch_tracepoint) {
		pr_err("there is no tracepoint sched_switch\n");
		return -EOPNOTSUPP;
	}
	profil_nohz_full = tick_nohz_full_enabled();
	prandom_seed_full_state(&random_states);
	for_each_possible_cpu(cpu)
		profil_hrtimer_setup(&per_cpu_ptr(&clocks, cpu)->timer, clock_fire,
				     CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}
