// SPDX-License-Identifier: GPL-2.0
/*
 * What calls us when there is something to sample: the hook of the tick, the probe of the clock.
 *
 * Each is in place while it has users, and for linger_s seconds after the last one: to install or
 * to remove it patches kernel text, takes milliseconds, and interrupts all CPUs, so that no user
 * may cause it often.
 */
#include <linux/jiffies.h>
#include <linux/module.h>

#include "profil.h"

static unsigned int linger_s = 300;
module_param(linger_s, uint, 0644);
MODULE_PARM_DESC(linger_s, "seconds that the hooks stay in place after their last use");

static void trigger_remove(struct profil_trigger *t)
{
	lockdep_assert_held(&t->lock);

	if (!t->installed)
		return;
	t->remove();
	WRITE_ONCE(t->installed, false);
}

void profil_trigger_linger_over(struct work_struct *work)
{
	struct profil_trigger *t = container_of(to_delayed_work(work), struct profil_trigger,
						linger);

	mutex_lock(&t->lock);
	if (!atomic_read(&t->users))
		trigger_remove(t);
	mutex_unlock(&t->lock);
}

/* Begin a use. Return: 0, -EBUSY if it cannot be installed, -EINTR when killed. May sleep. */
int profil_trigger_get(struct profil_trigger *t)
{
	int err = 0;

	if (profil_trigger_tryget(t))
		return 0;

	/* To remove the hook is to wait until all tasks have scheduled: that can be long. */
	if (mutex_lock_killable(&t->lock))
		return -EINTR;
	if (!t->installed)
		err = t->install();
	if (!err) {
		WRITE_ONCE(t->installed, true);
		atomic_inc(&t->users);
	}
	mutex_unlock(&t->lock);
	return err;
}

/* Begin a use if there is another already. Never waits. */
bool profil_trigger_tryget(struct profil_trigger *t)
{
	return atomic_inc_not_zero(&t->users);
}

/* End a use. Never waits. */
void profil_trigger_put(struct profil_trigger *t)
{
	if (atomic_dec_and_test(&t->users))
		mod_delayed_work(profil_wq, &t->linger, (unsigned long)READ_ONCE(linger_s) * HZ);
}

/* No user is left. */
void profil_trigger_exit(struct profil_trigger *t)
{
	cancel_delayed_work_sync(&t->linger);
	mutex_lock(&t->lock);
	trigger_remove(t);
	mutex_unlock(&t->lock);
}
