// SPDX-License-Identifier: GPL-2.0
/*
 * A module with bugs, for the tests of the VM runner: what=warn makes the kernel warn, what=hold
 * holds a reference to profil.ko forever. Only the kernels of --debug notice the other bugs.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "warn, hold, leak, use-after-free, deadlock or race");

static noinline void leak(void)
{
	void *volatile p = kmalloc(100, GFP_KERNEL);

	p = NULL;
}

static noinline void use_after_free(void)
{
	int *volatile p = kzalloc(sizeof(*p), GFP_KERNEL);

	kfree(p);
	if (p)
		READ_ONCE(*p);
}

static DEFINE_MUTEX(one);
static DEFINE_MUTEX(other);

/* This would deadlock if two tasks called it at the same time. */
static noinline void deadlock(void)
{
	mutex_lock(&one);
	mutex_lock(&other);
	mutex_unlock(&other);
	mutex_unlock(&one);
	mutex_lock(&other);
	mutex_lock(&one);
	mutex_unlock(&one);
	mutex_unlock(&other);
}

static int raced;

static int count(void *unused)
{
	unsigned long end = jiffies + HZ;

	while (time_before(jiffies, end)) {
		raced++;
		barrier();	/* forces a memory access in each iteration */
	}
	return 0;
}

static noinline int race(void)
{
	struct task_struct *task = kthread_create(count, NULL, "race");

	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	wake_up_process(task);
	count(NULL);
	kthread_stop(task);
	put_task_struct(task);
	return 0;
}

static int __init provoke_init(void)
{
	WARN(!strcmp(what, "warn"), "provoked\n");
	if (!strcmp(what, "hold"))
		return PTR_ERR_OR_ZERO(filp_open("/dev/profil", O_RDWR, 0));
	if (!strcmp(what, "leak"))
		leak();
	if (!strcmp(what, "use-after-free"))
		use_after_free();
	if (!strcmp(what, "deadlock"))
		deadlock();
	if (!strcmp(what, "race"))
		return race();
	return 0;
}
module_init(provoke_init);

static void __exit provoke_exit(void) { }
module_exit(provoke_exit);

MODULE_DESCRIPTION("Provokes errors that selftests/vm/run must notice");
MODULE_LICENSE("GPL");
