// SPDX-License-Identifier: GPL-2.0
/*
 * A clock faster than the tick, for sessions with a period of their own.
 *
 * Each CPU has a timer, which runs while a task runs there that such a session samples:
 * a probe at the context switch starts and stops it. So what is counted is CPU time of the
 * targets, and neither idle CPUs nor other tasks are interrupted. The timer fires when the
 * first of the task's sessions is due; what is left of its period each session knows for
 * each CPU, and goes on with that when another of its tasks runs there. So threads that are
 * shorter than a period are found as often as their time deserves.
 *
 * The probe is there while anybody wants it, and for a while after, as is the hook of the tick.
 *
 * A CPU of nohz_full= stops its tick while it runs a single task. Where there are such CPUs all
 * sessions want the probe: while a task that is sampled runs there, the tick goes on, those of a
 * clock included, or the scheduler would not know their time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <asm/irq_regs.h>
#include <trace/events/sched.h>

#include "compat.h"
#include "profil.h"

#define LINGER		(2 * HZ)
/* From one interrupt to the next at least, in ns: the task must get on, whatever is due. */
#define GAP		5000

unsigned int profil_min_period = 50000;
module_param_named(min_period_ns, profil_min_period, uint, 0644);
MODULE_PARM_DESC(min_period_ns, "shortest period of sessions of users without CAP_PERFMON, in ns");

/* Are there CPUs without a tick? Known when the kernel has booted. */
bool profil_nohz_full __ro_after_init;

struct clock {
	struct hrtimer timer;
	u64 since;		/* when sessions were last told how much time has passed */
	bool running;		/* on behalf of current */
	bool ticking;		/* this CPU's tick may not be stopped, likewise */
	const struct mm_struct *mm;	/* of what runs here, as a key only; or UNKNOWN */
};

static atomic_t ticks_kept = ATOMIC_INIT(0);	/* times that some CPU began to */

#define UNKNOWN ((const struct mm_struct *)-1L)

/* Written by its CPU, with interrupts off. */
static DEFINE_PER_CPU(struct clock, clocks);
static struct rnd_state __percpu *random_states;

static struct tracepoint *switch_tracepoint;
static DEFINE_MUTEX(probe_lock);
static bool probing;				/* written under probe_lock */
static atomic_t users = ATOMIC_INIT(0);		/* from 0 to 1 only with the probe in place */

static enum hrtimer_restart clock_fires(struct hrtimer *timer)
{
	struct clock *clock = container_of(timer, struct clock, timer);
	ktime_t now = ktime_get();
	bool found;
	u64 left;

	left = profil_sample_clocked(current, ktime_to_ns(now) - clock->since, get_irq_regs(),
				     &found);
	clock->since = ktime_to_ns(now);
	clock->running = left != PROFIL_NEVER;
	if (!clock->running)
		return HRTIMER_NORESTART;
	/* What was done here may have taken longer than that. */
	hrtimer_set_expires(timer, max_t(s64, now + left, ktime_get() + GAP));
	return HRTIMER_RESTART;
}

/* POSIX timers use it for tasks only. Perf clears its own bit at each tick. */
#define TICK_DEP_BIT	TICK_DEP_BIT_POSIX_TIMER

static void keep_tick(struct clock *clock, bool keep)
{
	int cpu = smp_processor_id();

	if (clock->ticking == keep || !tick_nohz_full_cpu(cpu))
		return;
	WRITE_ONCE(clock->ticking, keep);
	if (keep) {
		tick_nohz_dep_set_cpu(cpu, TICK_DEP_BIT);
		atomic_inc(&ticks_kept);
	} else {
		tick_nohz_dep_clear_cpu(cpu, TICK_DEP_BIT);
	}
}

/* @task runs here from @now on; 0: from this moment. */
static void clock_start(struct clock *clock, struct task_struct *task, u64 now)
{
	u64 left = PROFIL_NEVER;
	bool found = false;

	/* This flag stays as it is, others may be about to change. */
	if (!(data_race(task->flags) & PF_KTHREAD))
		left = profil_sample_clocked(task, 0, NULL, &found);
	keep_tick(clock, found);
	if (left == PROFIL_NEVER)
		return;
	clock->since = now ? now : ktime_get_ns();
	clock->running = true;
	hrtimer_start(&clock->timer, ns_to_ktime(max_t(u64, left, GAP)),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/* @task did up to now. Returns when that is; 0 if nobody knows, since it did not run for @task. */
static u64 clock_stop(struct clock *clock, struct task_struct *task)
{
	bool found;
	u64 now;

	if (!clock->running)
		return 0;
	now = ktime_get_ns();
	clock->running = false;
	/* Pinned, and interrupts are off: it does not run now. */
	hrtimer_try_to_cancel(&clock->timer);
	profil_sample_clocked(task, now - clock->since, NULL, &found);
	return now;
}

static void switch_probe(void *data, bool preempt, struct task_struct *prev,
			 struct task_struct *next, unsigned int prev_state)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = clock_stop(clock, prev);

	WRITE_ONCE(clock->mm, next->mm);
	/* Either profil_clock_look() sees that, or this sees what is new. */
	smp_mb();
	clock_start(clock, next, now);
}

static void look(void *unused)
{
	struct clock *clock = this_cpu_ptr(&clocks);
	u64 now = clock_stop(clock, current);

	WRITE_ONCE(clock->mm, current->mm);
	/* As in switch_probe(). */
	smp_mb();
	clock_start(clock, current, now);
}

/* Others' CPUs are not disturbed, nor those that are idle. */
static bool may_run_targets(int cpu, void *unused)
{
	const struct clock *clock = per_cpu_ptr(&clocks, cpu);
	const struct mm_struct *mm = READ_ONCE(clock->mm);

	return READ_ONCE(clock->ticking) || (mm && (mm == UNKNOWN || profil_space_find(mm)));
}

/**
 * profil_clock_look - Sessions have new targets, are about to, or have none any more
 *
 * All that have such targets know of the time up to now; those that run are found from now on.
 * May not be called with interrupts off.
 *
 * Return: has a CPU begun to keep its tick?
 */
bool profil_clock_look(void)
{
	int before = atomic_read(&ticks_kept);

	/* Either what is new is seen where a target comes to run, or that is seen here. */
	smp_mb();
	on_each_cpu_cond_mask(may_run_targets, look, NULL, true, cpu_online_mask);
	return atomic_read(&ticks_kept) != before;
}

/* The same, of the caller alone. */
void profil_clock_look_here(void)
{
	unsigned long flags;

	if (!READ_ONCE(probing))
		return;
	local_irq_save(flags);
	look(NULL);
	local_irq_restore(flags);
}

/* What users cannot foresee; good enough for jitter. With interrupts off. */
u32 profil_clock_random(void)
{
	return prandom_u32_state(this_cpu_ptr(random_states));
}

static void unprobe(void)
{
	int cpu;

	lockdep_assert_held(&probe_lock);

	if (!probing)
		return;
	WRITE_ONCE(probing, false);
	tracepoint_probe_unregister(switch_tracepoint, switch_probe, NULL);
	tracepoint_synchronize_unregister();
	/* Nothing else stops one that is left. It finds no session, and does not go on. */
	for_each_possible_cpu(cpu) {
		struct clock *clock = per_cpu_ptr(&clocks, cpu);

		hrtimer_cancel(&clock->timer);
		clock->running = false;
		if (clock->ticking)
			tick_nohz_dep_clear_cpu(cpu, TICK_DEP_BIT);
		clock->ticking = false;
	}
}

static void linger_over(struct work_struct *work)
{
	mutex_lock(&probe_lock);
	if (!atomic_read(&users))
		unprobe();
	mutex_unlock(&probe_lock);
}

static DECLARE_DELAYED_WORK(linger, linger_over);

/**
 * profil_clock_get - Want profil_sample_clocked() to be called
 *
 * Return: 0, -EBUSY if context switches cannot be hooked, -EINTR when killed. May sleep.
 */
int profil_clock_get(void)
{
	int cpu, err = 0;

	if (atomic_inc_not_zero(&users))
		return 0;
	if (mutex_lock_killable(&probe_lock))
		return -EINTR;
	if (!probing) {
		for_each_possible_cpu(cpu)
			WRITE_ONCE(per_cpu_ptr(&clocks, cpu)->mm, UNKNOWN);
		err = tracepoint_probe_register(switch_tracepoint, switch_probe, NULL);
	}
	if (!err) {
		WRITE_ONCE(probing, true);
		atomic_inc(&users);
	}
	mutex_unlock(&probe_lock);
	return err ? -EBUSY : 0;
}

/* As profil_clock_get(), if somebody wants it already. Never waits. */
bool profil_clock_get_another(void)
{
	return atomic_inc_not_zero(&users);
}

/* Ends what these began. Never waits. */
void profil_clock_put(void)
{
	if (atomic_dec_and_test(&users))
		mod_delayed_work(profil_wq, &linger, LINGER);
}

int profil_clock_init(void)
{
	int cpu;

	check_trace_callback_type_sched_switch(switch_probe);
	switch_tracepoint = profil_tracepoint("sched_switch");
	if (!switch_tracepoint) {
		pr_err("there is no tracepoint sched_switch\n");
		return -EOPNOTSUPP;
	}
	profil_nohz_full = tick_nohz_full_enabled();
	random_states = alloc_percpu(struct rnd_state);
	if (!random_states)
		return -ENOMEM;
	prandom_seed_full_state(random_states);
	for_each_possible_cpu(cpu)
		profil_hrtimer_setup(&per_cpu_ptr(&clocks, cpu)->timer, clock_fires,
				     CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

/* No user is left. */
void profil_clock_exit(void)
{
	cancel_delayed_work_sync(&linger);
	mutex_lock(&probe_lock);
	unprobe();
	mutex_unlock(&probe_lock);
	free_percpu(random_states);
}
