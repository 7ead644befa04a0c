// SPDX-License-Identifier: GPL-2.0
/*
 * A module with a timer that does nothing. Any profiler with its own clock needs such an interrupt,
 * so its cost is measured, too: see run_timer() in peers.c.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>

#include "../../module/compat.h"

static ulong period_ns = 1000000;
module_param(period_ns, ulong, 0444);

static struct hrtimer timer;

static enum hrtimer_restart timer_fires(struct hrtimer *unused)
{
	hrtimer_forward_now(&timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

static int __init bench_timer_init(void)
{
	profil_hrtimer_setup(&timer, timer_fires, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_start(&timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static void __exit bench_timer_exit(void)
{
	hrtimer_cancel(&timer);
}

module_init(bench_timer_init);
module_exit(bench_timer_exit);
MODULE_DESCRIPTION("A timer that does nothing, to be measured");
MODULE_LICENSE("GPL");
