// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers are the sources of ticks: the hook, and the switch probe.
 *
 * A trigger is installed while it has users, and for linger_s seconds longer. Installing and
 * removing must be rare: they patch kernel text, take milliseconds and interrupt all CPUs.
 *
 * Context: any for profil_trigger_tryget() and profil_trigger_put(); the others may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/tracepoint.h>

#include "internal.h"

static unsigned int linger_s = 300;
module_param(linger_s, uint, 0644);
MODULE_PARM_DESC(linger_s, "seconds that the hook and the switch probe stay after their last use");

void profil_trigger_linger_over(struct work_struct *work)
{
	struct profil_trigger *t = container_of(to_delayed_work(work), struct profil_trigger,
						linger);

	mutex_lock(&t->lock);
	if (t->installed && !atomic_read(&t->users)) {
		t->remove();
		WRITE_ONCE(t->installed, false);
	}
	mutex_unlock(&t->lock);
}

/* Begins a use of @t. Return: 0; -EBUSY if @t cannot be installed; -EINTR if killed. */
int profil_trigger_get(struct profil_trigger *t)
{
	int err = 0;

	if (profil_trigger_tryget(t))
		return 0;

	/* If another task is removing @t, this can take until all tasks have scheduled. */
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

/* Begins a use of @t if @t has users already. Never waits. */
bool profil_trigger_tryget(struct profil_trigger *t)
{
	return atomic_inc_not_zero(&t->users);
}

void profil_trigger_put(struct profil_trigger *t)
{
	if (atomic_dec_and_test(&t->users))
		mod_delayed_work(profil_wq, &t->linger, (unsigned long)READ_ONCE(linger_s) * HZ);
}

/* Removes @t at once, when the module is unloaded. @t has no users. */
void profil_trigger_exit(struct profil_trigger *t)
{
	cancel_delayed_work_sync(&t->linger);
	profil_trigger_linger_over(&t->linger.work);
}

struct trigger_search {
	const char *name;
	struct tracepoint *found;
};

static void trigger_search_one(struct tracepoint *tracepoint, void *data)
{
	struct trigger_search *search = data;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

/* Finds a tracepoint by name, since few are exported. Return: NULL, logged, if there is none. */
struct tracepoint *profil_trigger_find_tracepoint(const char *name)
{
	struct trigger_search search = { .name = name };

	for_each_kernel_tracepoint(trigger_search_one, &search);
	if (!search.found)
		pr_err("the kernel has no tracepoint %s\n", name);
	return search.found;
}
