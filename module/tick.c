// SPDX-License-Identifier: GPL-2.0
/*
 * How the scheduler tick is reached, and nothing else: by ftrace, at the tick function. Where there
 * is no hook a tick costs nothing. The hook counts only once a tick has arrived through it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "compat.h"
#include "profil.h"

#if !IS_ENABLED(CONFIG_DYNAMIC_FTRACE)
#error "profil is called at each tick by ftrace: the kernel needs CONFIG_DYNAMIC_FTRACE"
#endif

#define ARRIVAL_MS	1000	/* a busy CPU's tick comes after 1 to 10 ms */

/*
 * PERMANENT: sysctl kernel.ftrace_enabled cannot silently stop the ticks. Not
 * RECURSION: that asks ftrace to guard the callback against being reached from
 * itself, at 40 instructions a tick; nothing here calls the tick function.
 */
static struct ftrace_ops tick_ops = {
	.func = profil_sample,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/* Keeps this CPU busy, so that it ticks, until a tick comes through the hook. */
static bool tick_arrives(void)
{
	ktime_t end = ktime_add_ms(ktime_get(), ARRIVAL_MS);

	WRITE_ONCE(profil_tick_arrived, false);
	do {
		cpu_relax();
		if (READ_ONCE(profil_tick_arrived))
			return true;
		cond_resched();
	} while (ktime_before(ktime_get(), end));
	return false;
}

static int tick_hook(void)
{
	static bool filtered;
	int err = 0;

	/*
	 * Without a filter all functions of the kernel would be hooked. It stays: to find the
	 * function by its name takes 89 million instructions.
	 */
	if (!filtered)
		err = ftrace_set_filter(&tick_ops, PROFIL_TICK_FUNCTION,
					strlen(PROFIL_TICK_FUNCTION), 1);
	if (err) {
		pr_err_ratelimited("ftrace cannot hook %s: error %d\n", PROFIL_TICK_FUNCTION, err);
		return -EBUSY;
	}
	filtered = true;
	err = register_ftrace_function(&tick_ops);
	if (err) {
		pr_err_ratelimited("ftrace does not hook %s: error %d%s\n",
				   PROFIL_TICK_FUNCTION, err,
				   err == -EBUSY ? " (sysctl kernel.ftrace_enabled is 0?)" : "");
		return -EBUSY;
	}
	if (!tick_arrives()) {
		pr_err_ratelimited("ftrace has hooked %s, but no tick arrives\n",
				   PROFIL_TICK_FUNCTION);
		unregister_ftrace_function(&tick_ops);
		return -EBUSY;
	}
	pr_info_once("ticks come from %s by ftrace, %d Hz\n", PROFIL_TICK_FUNCTION, HZ);
	return 0;
}

/* CPUs that would stop their ticks keep them while a session's task runs there: see clock.c. */
static int tick_install(void)
{
	int err = profil_nohz_full ? profil_trigger_get(&profil_clock) : 0;

	if (err)
		return err;
	err = tick_hook();
	if (err && profil_nohz_full)
		profil_trigger_put(&profil_clock);
	return err;
}

static void tick_remove(void)
{
	unregister_ftrace_function(&tick_ops);
	if (profil_nohz_full)
		profil_trigger_put(&profil_clock);
}

struct profil_trigger profil_tick = {
	.lock = __MUTEX_INITIALIZER(profil_tick.lock),
	.linger = __DELAYED_WORK_INITIALIZER(profil_tick.linger, profil_trigger_linger_over, 0),
	.install = tick_install,
	.remove = tick_remove,
};

/* Tries the hook, so that loading fails where profiling would. */
int profil_tick_init(void)
{
	int err = profil_trigger_get(&profil_tick);

	if (!err)
		profil_trigger_put(&profil_tick);
	return err;
}

/* No user is left. */
void profil_tick_exit(void)
{
	profil_trigger_exit(&profil_tick);
	ftrace_free_filter(&tick_ops);
}
