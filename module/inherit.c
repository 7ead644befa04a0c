// SPDX-License-Identifier: GPL-2.0
/*
 * The classic session of the child of a fork, until it is set up.
 *
 * The session is created PENDING. It samples the child with the parent's table, but is parked, as
 * it has no pages. The first tick that would change a counter is deferred, and queues task work,
 * which sets the session up when the child returns to user mode; so does an ioctl of the child. The
 * set-up gives the session a home, a charge, pages and a table, and counts the deferred ticks.
 *
 * Context: the probe of fork (atomic) for profil_session_inherit(); the tick for
 * profil_pending_kick(); others: system calls and task work (may sleep).
 */

#include "compat.h"
#include "internal.h"

/*
 * Creates the session of a child of fork, referenced; or an error pointer: -ENOMEM, or -ENODEV if
 * @parent ends, which is read under RCU. @table: the parent's ranges in its own address space.
 */
struct profil_session *profil_session_inherit(struct profil_session *parent,
					      const struct profil_table *table)
{
	struct profil_session *s;

	/* A classic session that is off is about to end. */
	if (READ_ONCE(parent->phase) > PROFIL_LIVE || !READ_ONCE(parent->on) ||
	    !try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	s = profil_session_alloc(PROFIL_GFP_PROBE);
	if (!s) {
		module_put(THIS_MODULE);
		return ERR_PTR(-ENOMEM);
	}
	s->slow |= BIT(PROFIL_SLOW_PARKED);
	s->classic = true;
	/* Security modules were asked for @parent. On PREEMPT_RT they may sleep. */
	s->may_exceed = parent->may_exceed && current_user_ns() == &init_user_ns &&
			cap_raised(current_cap(), CAP_IPC_LOCK);
	/* The table of a @parent that is PENDING belongs to the grandparent, and is not checked. */
	s->buffers_lost = parent->buffers_lost ||
		  (table->session == parent &&
		   !profil_histograms_are_mapped(table, &s->other_page));
	s->scope = parent->scope;
	s->modes = parent->modes;
	s->period = parent->period;
	s->jitter = parent->jitter;
	s->left = profil_clock_random(s->period) + 1;
	s->pcs = parent->pcs;
	s->pc_width = parent->pc_width;
	s->max_pcs = parent->max_pcs;
	s->taken_pcs = atomic64_read(&parent->nr_pcs);
	atomic64_set(&s->nr_pcs, s->taken_pcs);
	if (profil_trigger_tryget(profil_session_trigger(s))) {
		profil_session_set_on(s, true);
		return s;
	}
	profil_session_put(s);
	return ERR_PTR(-ENODEV);
}

/* Returns the pending session of @space, referenced; or NULL. */
struct profil_session *profil_pending_get(struct profil_space *space)
{
	struct profil_session *s;

	raw_spin_lock_irq(&profil_index_lock);
	/* The binding of a pending session references it, and clears space->pending first. */
	s = space->pending;
	if (s)
		refcount_inc(&s->refs);
	raw_spin_unlock_irq(&profil_index_lock);
	return s;
}

/* Moves @s from PENDING to LIVE. Return: false if the child is no longer a target of @s. */
static bool pending_adopt(struct profil_session *s, struct profil_space *space)
{
	bool pending;

	lockdep_assert_held(&space->lock);
	raw_spin_lock_irq(&profil_index_lock);
	pending = space->pending == s;
	if (pending) {
		space->pending = NULL;
		refcount_inc(&s->refs);
		list_add(&s->list, &space->sessions);
		refcount_inc(&space->refs);
		WRITE_ONCE(s->home, space);
	}
	raw_spin_unlock_irq(&profil_index_lock);
	if (pending)
		profil_session_set_phase(s, PROFIL_LIVE);
	return pending;
}

static int pending_set_up(struct profil_session *s, struct profil_space *space)
{
	struct profil_table *parents = profil_binding_table(s, space->id), *table;
	struct profil_counts __percpu *counts;
	struct rb_root_cached new = RB_ROOT_CACHED;
	int err = -ENOMEM;

	if (!parents)
		return 0;		/* the child is no longer a target of @s */
	counts = profil_session_alloc_counts(s);
	table = profil_table_inherit(s, parents);
	profil_table_put(parents);
	if (counts && table)
		err = s->buffers_lost ? -EFAULT :
		      profil_histograms_pin(&new, table, true, s->may_exceed, 0);
	if (err == -EINTR)
		goto free;
	if (!err)
		profil_table_bind(table, &new);
	if (mutex_lock_killable(&space->lock)) {
		err = -EINTR;
		goto free;
	}
	if (pending_adopt(s, space)) {
		if (err) {
			profil_session_end(s, err == -EPERM ? PROFIL_END_LIMIT :
					      err == -ENOMEM ? PROFIL_END_NOMEM :
							       PROFIL_END_BUFFER);
		} else {
			profil_histograms_adopt(s, &new);
			/* Ticks use the counts from here on. */
			smp_store_release(&s->counts, counts);
			counts = NULL;
			profil_binding_set_table(s, space->id, table);
			profil_session_unpark(s);
		}
	}
	mutex_unlock(&space->lock);
	err = 0;
free:
	profil_histograms_free(current->mm, &new, false);
	free_percpu(counts);
	profil_table_put(table);
	return err;
}

/* The caller holds space->setup_lock, so that two tasks do not charge a session twice. */
static int pending_set_up_locked(struct profil_space *space)
{
	struct profil_session *s = profil_pending_get(space);
	int err;

	if (!s)
		return 0;
	err = profil_space_watch(space);
	if (!err)
		err = pending_set_up(s, space);
	profil_session_put(s);
	return err;
}

/*
 * Sets up the pending session of the caller's space. If the set-up fails, the session ends, and its
 * statistics tell why. After -EINTR or an error of profil_space_watch(), it is still pending.
 */
int profil_pending_set_up(struct profil_space *space)
{
	int err;

	/* When the child runs, no session is added. */
	if (!READ_ONCE(space->pending))
		return 0;
	if (mutex_lock_killable(&space->setup_lock))
		return -EINTR;
	err = pending_set_up_locked(space);
	mutex_unlock(&space->setup_lock);
	return err;
}

/* Task work that sets up the pending session. If it stays pending, a tick queues the work again. */
static void setup_work(struct callback_head *work)
{
	struct profil_setup *setup = container_of(work, struct profil_setup, work);
	struct profil_space *space = setup->space;

	/* Not after exec, in exit, if killed, or if another task does it, which may wait for us. */
	if (profil_space_is_own(space) && !fatal_signal_pending(current) &&
	    mutex_trylock(&space->setup_lock)) {
		pending_set_up_locked(space);
		mutex_unlock(&space->setup_lock);
	}
	/* From here on, ticks can queue the work again: not sooner, or it could run without end. */
	smp_store_release(&setup->queued, false);
	profil_space_put(space);
	/* profil_shut_down() waits for tasks that are between here and the return. */
	module_put(THIS_MODULE);
}

/*
 * Queues task work that sets up the pending session of @space, which the tick of current has found.
 * In @system mode current may be in a long call, so a tick in user mode has its own work. It
 * references @space, unless another task with this mm has removed the last binding and reference.
 */
void profil_pending_kick(struct profil_space *space, bool system)
{
	struct profil_setup *setup = &space->setup[system];

	if (xchg(&setup->queued, true))
		return;
	if (try_module_get(THIS_MODULE)) {
		if (refcount_inc_not_zero(&space->refs)) {
			setup->space = space;
			init_task_work(&setup->work, setup_work);
			if (profil_task_work_add(&setup->work))
				return;
			profil_space_put(space);
		}
		module_put(THIS_MODULE);
	}
	WRITE_ONCE(setup->queued, false);
}
