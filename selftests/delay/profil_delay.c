// SPDX-License-Identifier: GPL-2.0
/*
 * Delays the calls of one function of the kernel or of a module, so that a test can make a race
 * certain instead of likely. Ftrace redirects the call to delayed(), which waits and then calls the
 * function. The function has at most six arguments, and is called where it may sleep if sleep=1 or
 * hold=1.
 *
 *	finit_module(..., "function=profil_pending_kick ms=500 comm=victim")
 *	finit_module(..., "function=mmap_region sleep=1 hold=1 comm=victim")
 *
 * Context: delayed() in that of the function.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

static char *function;
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "the function to delay");

static char *comm = "";
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "delay only calls by tasks with this name");

static unsigned int ms = 100;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "the length of the delay");

static bool sleep;
module_param(sleep, bool, 0444);
MODULE_PARM_DESC(sleep, "sleep, instead of a loop");

static bool hold;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "delay until this is set to 0, but without sleep=1 at most 10 s more");

static atomic_t hits = ATOMIC_INIT(0);
module_param_named(hits, hits.counter, int, 0444);
MODULE_PARM_DESC(hits, "out: the number of delays that have begun");

typedef unsigned long function_fn(unsigned long a, unsigned long b, unsigned long c,
				  unsigned long d, unsigned long e, unsigned long f);

static function_fn *original;

static unsigned long delayed(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
			     unsigned long e, unsigned long f)
{
	unsigned long ret;

	atomic_inc(&hits);
	if (sleep)
		msleep(ms);
	else
		mdelay(ms);
	for (unsigned int i = 0; READ_ONCE(hold) && (sleep || i < 10000); i++) {
		if (sleep) {
			msleep(20);
		} else {
			mdelay(1);
			cond_resched();	/* let grace periods of RCU end */
		}
	}
	ret = original(a, b, c, d, e, f);
	module_put(THIS_MODULE);
	return ret;
}

static void notrace redirect(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			     struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (within_module(parent_ip, THIS_MODULE) || (*comm && strcmp(current->comm, comm)) ||
	    !try_module_get(THIS_MODULE))
		return;
	/* The function calls ftrace at @ip: to call it there calls this again, from delayed(). */
	WRITE_ONCE(original, (function_fn *)ip);
	instruction_pointer_set(regs, (unsigned long)delayed);
}

static struct ftrace_ops ops = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY,
};

static int __init delay_init(void)
{
	int err = function ? ftrace_set_filter(&ops, function, strlen(function), 1) : -EINVAL;

	if (!err)
		err = register_ftrace_function(&ops);
	if (err) {
		pr_err("function=%s: error %d\n", function ?: "", err);
		ftrace_free_filter(&ops);
	}
	return err;
}

static void __exit delay_exit(void)
{
	unregister_ftrace_function(&ops);
	ftrace_free_filter(&ops);
	/* A task may be between module_put() and the return of delayed(). */
	synchronize_rcu_tasks();
}

module_init(delay_init);
module_exit(delay_exit);

MODULE_DESCRIPTION("delays a function, for tests of profil");
MODULE_LICENSE("GPL");
