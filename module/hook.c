// SPDX-License-Identifier: GPL-2.0
/*
 * The hook: an ftrace callback on the tick function. While it is not installed, ticks cost nothing.
 *
 * Context: system calls and workers (may sleep). The hook, profil_sample(), runs in the tick.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>

#include "compat.h"
#include "internal.h"

/*
 * PERMANENT: the sysctl kernel.ftrace_enabled cannot silently stop the ticks. RECURSION would cost
 * 40 instructions per tick, and is not needed: the callback never calls the tick function.
 */
static struct ftrace_ops tick_ops = {
	.func = profil_sample,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

static int tick_hook(void)
{
	static char *const names[] = { PROFIL_TICK_FUNCTIONS };
	static char *name;
	unsigned int i;
	int err = 0;

	/* Without a filter, ftrace hooks all functions. It is kept, as finding a name is slow. */
	for (i = 0; !name && i < ARRAY_SIZE(names); i++) {
		err = ftrace_set_filter(&tick_ops, names[i], strlen(names[i]), 1);
		if (!err)
			name = names[i];
	}
	if (!err)
		err = register_ftrace_function(&tick_ops);
	if (err) {
		pr_err_ratelimited("ftrace does not hook %s: error %d%s\n", name ?: names[0], err,
				   err == -EBUSY ? " (sysctl kernel.ftrace_enabled is 0?)" : "");
		return -EBUSY;
	}
	pr_info_once("ticks come from %s by ftrace, %d Hz\n", name, HZ);
	return 0;
}

/* Installs the hook; with nohz_full= also the switch probe, to keep ticks running (clock.c). */
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

/* Installs the hook once, so that the module does not load where profiling would fail. */
int profil_tick_init(void)
{
	int err;

	if (IS_BUILTIN(CONFIG_PROFIL))
		return 0;
	err = profil_trigger_get(&profil_tick);
	if (!err)
		profil_trigger_put(&profil_tick);
	return err;
}

void profil_tick_exit(void)
{
	profil_trigger_exit(&profil_tick);
	ftrace_free_filter(&tick_ops);
}
