// SPDX-License-Identifier: GPL-2.0
/*
 * How the scheduler tick is reached, and nothing else: by ftrace, at the tick function.
 *
 * The hook is in place while there are users, and for linger_s seconds after the last one: to
 * install or to remove it patches kernel text, takes milliseconds, and interrupts all CPUs, so
 * that no user may cause it often. Where there is no hook a tick costs nothing.
 *
 * The hook counts only once a tick has arrived through it.
 *
 * The callback runs in hard interrupt context; all else here may sleep, if it does not say that
 * it never waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "profil.h"

#if !IS_ENABLED(CONFIG_DYNAMIC_FTRACE)
#error "profil is called at each tick by ftrace: the kernel needs CONFIG_DYNAMIC_FTRACE"
#endif

#define ARRIVAL_MS	1000	/* a busy CPU's tick comes after 1 to 10 ms */

static unsigned int linger_s = 300;
module_param(linger_s, uint, 0644);
MODULE_PARM_DESC(linger_s, "seconds that the hooks stay in place after their last use");

static DEFINE_MUTEX(tick_lock);
static bool tick_hooked;			/* written under tick_lock */
static atomic_t tick_users = ATOMIC_INIT(0);	/* from 0 to 1 only with the hook in place */

static void notrace tick_callback(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	profil_sample();
}

/*
 * PERMANENT: sysctl kernel.ftrace_enabled cannot silently stop the ticks. Not
 * RECURSION: that asks ftrace to guard the callback against being reached from
 * itself, at 40 instructions a tick; nothing here calls the tick function.
 */
static struct ftrace_ops tick_ops = {
	.func = tick_callback,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

static unsigned long tick_count(void)
{
	unsigned long ticks = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		ticks += READ_ONCE(per_cpu(profil_ticks, cpu));
	return ticks;
}

/* Keeps this CPU busy, so that it ticks, until a tick comes through the hook. */
static bool tick_arrives(void)
{
	ktime_t end = ktime_add_ms(ktime_get(), ARRIVAL_MS);
	unsigned long before = tick_count();

	do {
		cpu_relax();
		if (tick_count() != before)
			return true;
		cond_resched();
	} while (ktime_before(ktime_get(), end));
	return false;
}

/* Without a filter all functions of the kernel would be hooked. */
static int tick_filter(void)
{
	static bool filtered;
	int err;

	/* It stays: to find the function by its name takes 89 million instructions. */
	if (filtered)
		return 0;
	err = ftrace_set_filter(&tick_ops, PROFIL_TICK_FUNCTION, strlen(PROFIL_TICK_FUNCTION), 1);
	filtered = !err;
	return err;
}

static void tick_unhook(void)
{
	lockdep_assert_held(&tick_lock);

	if (tick_hooked)
		unregister_ftrace_function(&tick_ops);
	WRITE_ONCE(tick_hooked, false);
}

static int tick_hook(void)
{
	int err;

	lockdep_assert_held(&tick_lock);

	if (tick_hooked)
		return 0;
	err = tick_filter();
	if (err) {
		pr_err_ratelimited("ftrace cannot hook %s: error %d\n", PROFIL_TICK_FUNCTION, err);
		return err;
	}
	err = register_ftrace_function(&tick_ops);
	if (err) {
		pr_err_ratelimited("ftrace does not hook %s: error %d%s\n",
				   PROFIL_TICK_FUNCTION, err,
				   err == -EBUSY ? " (sysctl kernel.ftrace_enabled is 0?)" : "");
		return err;
	}
	WRITE_ONCE(tick_hooked, true);
	if (!tick_arrives()) {
		pr_err_ratelimited("ftrace has hooked %s, but no tick arrives\n",
				   PROFIL_TICK_FUNCTION);
		tick_unhook();
		return -EBUSY;
	}
	pr_info_once("ticks come from %s by ftrace, %d Hz\n", PROFIL_TICK_FUNCTION, HZ);
	return 0;
}

static void tick_linger_over(struct work_struct *work)
{
	mutex_lock(&tick_lock);
	if (!atomic_read(&tick_users))
		tick_unhook();
	mutex_unlock(&tick_lock);
}

static DECLARE_DELAYED_WORK(tick_linger, tick_linger_over);

/* How long a hook stays in place after its last use, in jiffies. */
unsigned long profil_linger(void)
{
	return (unsigned long)READ_ONCE(linger_s) * HZ;
}

static int tick_hook_get(void)
{
	int err;

	if (atomic_inc_not_zero(&tick_users))
		return 0;

	/* To remove the hook is to wait until all tasks have scheduled: that can be long. */
	if (mutex_lock_killable(&tick_lock))
		return -EINTR;
	err = tick_hook();
	if (!err)
		atomic_inc(&tick_users);
	mutex_unlock(&tick_lock);
	return err ? -EBUSY : 0;
}

static void tick_hook_put(void)
{
	if (atomic_dec_and_test(&tick_users))
		mod_delayed_work(profil_wq, &tick_linger, profil_linger());
}

/**
 * profil_tick_get - Begin a use: profil_sample() is called at every tick of every CPU
 *
 * Also of CPUs that would stop theirs, while a session's task runs there.
 *
 * Return: 0 if they come, -EBUSY if the tick cannot be hooked, -EINTR when killed. May
 * sleep, and wait for a tick.
 */
int profil_tick_get(void)
{
	int err = tick_hook_get();

	if (!err && profil_nohz_full) {
		err = profil_clock_get();
		if (err)
			tick_hook_put();
	}
	return err;
}

/* As profil_tick_get(), if there is a user already. Never waits. */
bool profil_tick_get_another(void)
{
	if (!atomic_inc_not_zero(&tick_users))
		return false;
	if (!profil_nohz_full || profil_clock_get_another())
		return true;
	tick_hook_put();
	return false;
}

/* End a use. Never waits. */
void profil_tick_put(void)
{
	if (profil_nohz_full)
		profil_clock_put();
	tick_hook_put();
}

/* The hook in place at this moment. */
enum profil_hook profil_tick_hook(void)
{
	return READ_ONCE(tick_hooked) ? PROFIL_HOOK_FTRACE : PROFIL_HOOK_NONE;
}

/* Tries the hook, so that loading fails where profiling would. */
int profil_tick_init(void)
{
	int err = profil_tick_get();

	if (!err)
		profil_tick_put();
	return err;
}

/* No user is left. */
void profil_tick_exit(void)
{
	cancel_delayed_work_sync(&tick_linger);
	mutex_lock(&tick_lock);
	tick_unhook();
	mutex_unlock(&tick_lock);
	ftrace_free_filter(&tick_ops);
}
