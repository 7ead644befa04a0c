// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions that sample the machine: every process, now and later. Such a session has no target and
 * no binding. While one exists, the static key profil_machine_sampled is on: each tick visits it,
 * except in tasks of the kernel. Changing the key patches text, and so needs CAP_PERFMON.
 *
 * Context: system calls, workers (may sleep).
 */
#include "internal.h"

DEFINE_STATIC_KEY_FALSE(profil_machine_sampled);
struct hlist_head profil_machine_sessions;
static unsigned int nr_machine_sessions;

/* Attaches the machine to @s, which is LIVE. Called under home->lock. */
int profil_machine_attach(struct profil_session *s)
{
	int err = -EBUSY;

	if (!perfmon_capable())
		return -EPERM;
	raw_spin_lock_irq(&profil_index_lock);
	if (!s->nr_targets && nr_machine_sessions < PROFIL_MAX_MACHINE) {
		err = 0;
		nr_machine_sessions++;
		s->machine = true;
		s->nr_targets = 1;
	}
	raw_spin_unlock_irq(&profil_index_lock);
	if (err)
		return err;
	if (s->on)
		profil_clock_resync(s, NULL);	/* so that earlier time does not count */
	raw_spin_lock_irq(&profil_index_lock);
	hlist_add_head_rcu(&s->in_machine, &profil_machine_sessions);
	raw_spin_unlock_irq(&profil_index_lock);
	static_branch_inc(&profil_machine_sampled);
	profil_session_reset_missed(s);
	if (s->on)
		profil_clock_resync(s, NULL);
	return 0;
}

/* Detaches the machine from @s, if it is attached. Ticks in progress still find @s. */
void profil_machine_detach(struct profil_session *s)
{
	if (!s->machine)
		return;
	raw_spin_lock_irq(&profil_index_lock);
	hlist_del_rcu(&s->in_machine);
	nr_machine_sessions--;
	s->nr_targets = 0;
	s->nr_detached++;
	raw_spin_unlock_irq(&profil_index_lock);
	static_branch_dec(&profil_machine_sampled);
}
