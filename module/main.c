// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and unloads the module, and registers the device.
 *
 * Open files, and sessions that are on, reference the module. So none exist when it is unloaded.
 * profil_shut_down() shuts each part down before the parts that it uses.
 *
 * Context: module load and unload (may sleep).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/miscdevice.h>

#include "internal.h"

struct workqueue_struct *profil_wq;

static ssize_t tick_hook_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(profil_tick.installed) ? "ftrace" : "none");
}
static DEVICE_ATTR_RO(tick_hook);

static struct attribute *profil_attrs[] = { &dev_attr_tick_hook.attr, NULL };
ATTRIBUTE_GROUPS(profil);

static const struct file_operations profil_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = profil_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice profil_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "profil",
	.mode = 0666,
	.fops = &profil_fops,
	.groups = profil_groups,
};

/* Undoes profil_init(), as far as it came. The device is not registered. */
static void profil_shut_down(void)
{
	profil_follow_exit();
	profil_spaces_exit();
	profil_tick_exit();
	profil_trigger_exit(&profil_clock);
	/* setup_work() returns after it has dropped its module reference. Wait for that return. */
	synchronize_rcu_tasks();
	/* After a grace period, each frees the next: a binding, its table, session and space. */
	for (unsigned int i = 0; i < 4; i++) {
		flush_workqueue(profil_wq);
		rcu_barrier();
	}
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		profil_reserve_exit();
	destroy_workqueue(profil_wq);
}

static int __init profil_init(void)
{
	int err = profil_access_init();

	if (err)
		return err;
	/* Unbound, as a worker may take long over a large buffer. They can be limited in sysfs. */
	profil_wq = alloc_workqueue("profil", WQ_UNBOUND | WQ_SYSFS, 0);
	if (!profil_wq)
		return -ENOMEM;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		profil_reserve_fill(NULL);
	err = profil_clock_init() ?: profil_tick_init() ?: profil_follow_init() ?:
	      misc_register(&profil_device);
	if (err)
		profil_shut_down();
	return err;
}

static void __exit profil_exit(void)
{
	misc_deregister(&profil_device);
	profil_shut_down();
}

module_init(profil_init);
module_exit(profil_exit);

MODULE_DESCRIPTION("profil(2): execution time profile, counted by the scheduler tick");
MODULE_LICENSE("GPL");
MODULE_VERSION(PROFIL_VERSION);
