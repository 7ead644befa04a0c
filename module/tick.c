// SPDX-License-Identifier: GPL-2.0
/*
 * How the scheduler tick is reached, and nothing else.
 *
 * The tick function is hooked by ftrace, or by a kprobe where that cannot be. The
 * hook is in place while anybody wants ticks, and for a while after: to put it in
 * and out patches kernel text and takes milliseconds, so that nobody who stops,
 * exits or starts again soon should wait for it. Without users there is no hook and
 * no cost.
 *
 * A hook counts only once a tick has been seen to arrive through it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "profil.h"

#define LINGER		(2 * HZ)
#define WATCH_PERIOD	HZ
#define ARRIVAL_MS	1000	/* a busy CPU's tick comes after 1 to 10 ms */

static char *tick_hook = "auto";
module_param(tick_hook, charp, 0444);
MODULE_PARM_DESC(tick_hook, "how to hook the scheduler tick: auto, ftrace or kprobe");

static DEFINE_MUTEX(hook_lock);
static enum profil_hook hook;			/* in place; under hook_lock */
static enum profil_hook last_hook;		/* that was in place last */
static atomic_t users = ATOMIC_INIT(0);		/* from 0 to 1 only with a hook in place */

#ifdef CONFIG_DYNAMIC_FTRACE

static void notrace ftrace_tick(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	profil_sample();
}

/*
 * PERMANENT: sysctl kernel.ftrace_enabled cannot silently stop the ticks. Not
 * RECURSION: that asks ftrace to guard the callback against being reached from
 * itself, at 40 instructions a tick; nothing here calls the tick function.
 */
static struct ftrace_ops ftrace_hook = {
	.func = ftrace_tick,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

static int ftrace_install(void)
{
	static bool filtered;
	int err;

	/*
	 * Without a filter all functions of the kernel would be hooked. It stays: to find the
	 * function by its name takes 89 million instructions.
	 */
	if (!filtered) {
		err = ftrace_set_filter(&ftrace_hook, PROFIL_TICK_FUNCTION,
					strlen(PROFIL_TICK_FUNCTION), 1);
		if (err)
			return err;
		filtered = true;
	}
	return register_ftrace_function(&ftrace_hook);
}

static void ftrace_uninstall(void)
{
	unregister_ftrace_function(&ftrace_hook);
}

static void ftrace_forget(void)
{
	ftrace_free_filter(&ftrace_hook);
}

#else

static int ftrace_install(void)
{
	return -EOPNOTSUPP;
}

static void ftrace_uninstall(void) { }
static void ftrace_forget(void) { }

#endif /* CONFIG_DYNAMIC_FTRACE */

static int kprobe_tick(struct kprobe *kprobe, struct pt_regs *regs)
{
	profil_sample();
	return 0;
}

NOKPROBE_SYMBOL(kprobe_tick);

static struct kprobe kprobe_hook;

static int kprobe_install(void)
{
	/* The registration writes to it. */
	memset(&kprobe_hook, 0, sizeof(kprobe_hook));
	kprobe_hook.symbol_name = PROFIL_TICK_FUNCTION;
	kprobe_hook.pre_handler = kprobe_tick;
	return register_kprobe(&kprobe_hook);
}

static void uninstall(void)
{
	lockdep_assert_held(&hook_lock);

	switch (hook) {
	case PROFIL_HOOK_FTRACE:
		ftrace_uninstall();
		break;
	case PROFIL_HOOK_KPROBE:
		unregister_kprobe(&kprobe_hook);
		break;
	case PROFIL_HOOK_NONE:
		break;
	}
	WRITE_ONCE(hook, PROFIL_HOOK_NONE);
}

static unsigned long ticks_seen(void)
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
	unsigned long before = ticks_seen();

	do {
		cpu_relax();
		if (ticks_seen() != before)
			return true;
		cond_resched();
	} while (ktime_before(ktime_get(), end));
	return false;
}

static const char *const hook_names[] = {
	[PROFIL_HOOK_NONE] = "none",
	[PROFIL_HOOK_FTRACE] = "ftrace",
	[PROFIL_HOOK_KPROBE] = "kprobe",
};

static int install_one(enum profil_hook which)
{
	int err = which == PROFIL_HOOK_FTRACE ? ftrace_install() : kprobe_install();

	if (err) {
		pr_warn_ratelimited("cannot hook %s by %s: %d\n", PROFIL_TICK_FUNCTION,
				    hook_names[which], err);
		return err;
	}
	WRITE_ONCE(hook, which);
	if (!tick_arrives()) {
		pr_warn_ratelimited("hooked %s by %s, but no tick comes\n", PROFIL_TICK_FUNCTION,
				    hook_names[which]);
		uninstall();
		return -EBUSY;
	}
	if (last_hook != which)
		pr_info("ticks come from %s by %s, %d Hz\n", PROFIL_TICK_FUNCTION,
			hook_names[which], HZ);
	WRITE_ONCE(last_hook, which);
	return 0;
}

static int install(void)
{
	int err = -EOPNOTSUPP;

	lockdep_assert_held(&hook_lock);

	if (hook != PROFIL_HOOK_NONE)
		return 0;
	if (strcmp(tick_hook, "kprobe"))
		err = install_one(PROFIL_HOOK_FTRACE);
	if (err && strcmp(tick_hook, "ftrace"))
		err = install_one(PROFIL_HOOK_KPROBE);
	return err;
}

/* Nobody has wanted ticks for a while. */
static void linger_over(struct work_struct *work)
{
	mutex_lock(&hook_lock);
	if (!atomic_read(&users))
		uninstall();
	mutex_unlock(&hook_lock);
}

static DECLARE_DELAYED_WORK(linger, linger_over);

/*
 * A kprobe can be disarmed behind our back (debugfs, sysctl kernel.ftrace_enabled).
 * The ticks lost then are counted as missed; here it is noticed and mended.
 */
static void watch(struct work_struct *work);

static DECLARE_DELAYED_WORK(watcher, watch);

static void watch(struct work_struct *work)
{
	static unsigned long before;
	unsigned long now = ticks_seen();

	mutex_lock(&hook_lock);
	if (hook == PROFIL_HOOK_KPROBE && now == before && !tick_arrives()) {
		pr_warn("the kprobe on %s has been disarmed: no ticks\n", PROFIL_TICK_FUNCTION);
		uninstall();
	}
	if (atomic_read(&users))
		install();
	before = now;
	if (last_hook == PROFIL_HOOK_KPROBE && atomic_read(&users))
		queue_delayed_work(profil_wq, &watcher, WATCH_PERIOD);
	mutex_unlock(&hook_lock);
}

static int hook_get(void)
{
	int err;

	if (atomic_inc_not_zero(&users))
		return 0;

	/* Taking the hook out waits for all tasks to schedule: that can be long. */
	if (mutex_lock_killable(&hook_lock))
		return -EINTR;
	err = install();
	if (!err) {
		atomic_inc(&users);
		if (hook == PROFIL_HOOK_KPROBE)
			queue_delayed_work(profil_wq, &watcher, WATCH_PERIOD);
	}
	mutex_unlock(&hook_lock);
	return err ? -EBUSY : 0;
}

static void hook_put(void)
{
	if (atomic_dec_and_test(&users))
		mod_delayed_work(profil_wq, &linger, LINGER);
}

/**
 * profil_tick_get - Want ticks: profil_sample() at every tick of every CPU
 *
 * Also of CPUs that would stop theirs, while a session's task runs there.
 *
 * Return: 0 if they come, -EBUSY if the tick cannot be hooked, -EINTR when killed. May
 * sleep, and wait for a tick.
 */
int profil_tick_get(void)
{
	int err = hook_get();

	if (!err && profil_nohz_full) {
		err = profil_clock_get();
		if (err)
			hook_put();
	}
	return err;
}

/* As profil_tick_get(), if somebody wants them already. Never waits. */
bool profil_tick_get_another(void)
{
	if (!atomic_inc_not_zero(&users))
		return false;
	if (!profil_nohz_full || profil_clock_get_another())
		return true;
	hook_put();
	return false;
}

/* Ends what these began. Never waits. */
void profil_tick_put(void)
{
	if (profil_nohz_full)
		profil_clock_put();
	hook_put();
}

/* The hook in place at this moment. */
enum profil_hook profil_tick_hook(void)
{
	return READ_ONCE(hook);
}

/* The hook that is used whenever ticks are wanted. */
const char *profil_tick_hook_name(void)
{
	return hook_names[READ_ONCE(last_hook)];
}

/* Tries the hook, so that loading fails where profiling would. */
int profil_tick_init(void)
{
	int err;

	if (strcmp(tick_hook, "auto") && strcmp(tick_hook, "ftrace") &&
	    strcmp(tick_hook, "kprobe")) {
		pr_err("tick_hook=%s: not auto, ftrace or kprobe\n", tick_hook);
		return -EINVAL;
	}
	err = profil_tick_get();
	if (err) {
		pr_err("cannot hook the scheduler tick\n");
		return err;
	}
	profil_tick_put();
	return 0;
}

/* No user is left. */
void profil_tick_exit(void)
{
	cancel_delayed_work_sync(&linger);
	cancel_delayed_work_sync(&watcher);
	mutex_lock(&hook_lock);
	uninstall();
	mutex_unlock(&hook_lock);
	ftrace_forget();
}
