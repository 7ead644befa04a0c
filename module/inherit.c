// SPDX-License-Identifier: GPL-2.0
/*
 * The session of the child of a fork, until it is set up.
 *
 * The probe of fork makes it PENDING: it samples the child with the ranges of its parent's table,
 * but has no pages, so it is parked. Its first tick that would raise a counter is deferred, and has
 * a worker set it up; so does the child's first own call, at its own expense. A child that execs or
 * exits before that causes no work. Then the session gets a home, pages, a charge, and a table of
 * its own, and the deferred ticks are counted.
 *
 * A PENDING session belongs to its watch, and goes with the last member of that.
 *
 * Context: the probe of fork (atomic), the tick, system calls of the child, a worker.
 */
#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "compat.h"
#include "profil.h"

/**
 * profil_session_inherit - Make the session of a child of fork
 * @parent: What the child inherits. Under RCU, and maybe just about to end.
 * @table: The ranges that the parent has in its own address space.
 *
 * In the parent, while the child does not run yet. Does not sleep. What happens to @parent at the
 * same time in another task may have come before the fork or after.
 *
 * Return: the session, for profil_session_bear(); or an error pointer: -ENOMEM, or
 * -ENODEV if there is nothing to inherit any more.
 */
struct profil_session *profil_session_inherit(struct profil_session *parent,
					      const struct profil_table *table)
{
	struct profil_session *s, *root;
	bool on = READ_ONCE(parent->on), gone = false;
	unsigned long flags;

	/* A classic one that is not on is about to end. */
	if (READ_ONCE(parent->phase) > PROFIL_LIVE || (parent->classic && !on) ||
	    !try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	s = profil_session_alloc(PROFIL_GFP_PROBE);
	if (!s) {
		module_put(THIS_MODULE);
		return ERR_PTR(-ENOMEM);
	}
	s->slow |= BIT(PROFIL_SLOW_PARKED);
	s->classic = parent->classic;
	s->may_exceed = parent->may_exceed && ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
	/* The table of a parent that is pending itself is its own parent's. */
	s->lost = parent->lost ||
		  (table->session == parent && !profil_histograms_are_mapped(table));
	s->scope = parent->scope;
	s->modes = parent->modes;
	s->period = parent->period;
	s->jitter = parent->jitter;
	s->left = profil_session_first_period(s);
	s->pcs = parent->pcs;
	s->pc_width = parent->pc_width;
	s->max_pcs = parent->max_pcs;
	s->taken_pcs = atomic64_read(&parent->nr_pcs);
	atomic64_set(&s->nr_pcs, s->taken_pcs);
	s->fork = parent->fork;
	s->exec = parent->exec;
	if (on && profil_session_get_more_ticks(s))
		profil_session_set_on(s, true);
	gone = on && !s->on;
	if (!s->classic) {
		root = parent->root ? parent->root : parent;
		refcount_inc(&root->refs);
		s->root = root;
		raw_spin_lock_irqsave(&profil_index_lock, flags);
		gone |= root->orphan;
		list_add(&s->kin, &root->kin);
		raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	}
	if (!gone)
		return s;
	profil_session_put(s);
	return ERR_PTR(-ENODEV);
}

/*
 * It samples the child now, with a watch that has a reference, or, with @err, could not be made to.
 * Gives back the caller's reference.
 */
void profil_session_bear(struct profil_session *s, struct profil_space *space, int err)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	if (!err && s->phase == PROFIL_PENDING)
		list_add_tail(&s->list, &space->pending);
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	profil_session_put(s);
}

/* ---- set-up ---- */

/* The first that is pending in @space, and a task that it samples; both referenced. Or NULL. */
static struct profil_session *pending_get(struct profil_space *space, struct task_struct **task)
{
	struct profil_session *s;
	struct profil_member *m;
	unsigned long flags;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	s = list_first_entry_or_null(&space->pending, struct profil_session, list);
	if (s) {
		/* It is in the list as long as it has a watch, which has a member. */
		m = list_first_entry(&s->members, struct profil_member, list);
		*task = get_task_struct(m->task);
		refcount_inc(&s->refs);
	}
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	return s;
}

/* From PENDING to LIVE; false if it is not PENDING any more, or must end. Under home->lock. */
static bool pending_adopt(struct profil_session *s, struct profil_home *home)
{
	unsigned long flags;
	bool pending;

	lockdep_assert_held(&home->lock);

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	pending = s->phase == PROFIL_PENDING && !s->orphan && !list_empty(&s->list);
	if (pending) {
		list_move(&s->list, &home->sessions);
		refcount_inc(&s->refs);
		refcount_inc(&home->refs);
		WRITE_ONCE(s->home, home);
		profil_watch_keep(s, home->space->id);
	}
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	if (pending)
		profil_session_set_phase(s, PROFIL_LIVE);
	return pending;
}

static enum profil_end end_of(int err)
{
	switch (err) {
	case -EPERM:
		return PROFIL_END_LIMIT;
	case -ENOMEM:
		return PROFIL_END_NOMEM;
	default:
		return PROFIL_END_BUFFER;
	}
}

/* It has all that it needs. Under home->lock. */
static void setup_commit(struct profil_session *s, struct profil_table **table,
			 struct profil_counts __percpu *counts, struct rb_root_cached *new)
{
	struct profil_table *nothing = &profil_nothing;

	profil_histograms_adopt(s, new);
	/* Ticks use them at once. */
	smp_store_release(&s->counts, counts);
	profil_table_set(s, s->home->space->id, table, &nothing);
	profil_session_unpark(s);
}

static int session_set_up(struct profil_session *s, struct profil_home *home,
			  struct task_struct *task)
{
	struct profil_table *parents = profil_table_of(s, home->space->id, NULL), *table;
	struct profil_counts __percpu *counts;
	struct rb_root_cached new = RB_ROOT_CACHED;
	int err = -ENOMEM;

	if (!parents)
		return 0;		/* it has gone */
	counts = profil_session_alloc_counts(s);
	table = profil_table_inherit(s, parents);
	profil_table_put(parents);
	if (counts && table)
		err = s->lost ? -EFAULT :
		      profil_histograms_pin(&new, table, home, task, s->may_exceed, 0);
	if (err == -EINTR || err == -EAGAIN)
		goto free;
	if (!err)
		profil_table_bind(table, &new);
	refcount_inc(&home->refs);
	mutex_lock(&home->lock);
	if (pending_adopt(s, home)) {
		if (err) {
			profil_session_end(s, end_of(err));
		} else {
			setup_commit(s, &table, counts, &new);
			counts = NULL;
		}
	}
	err = 0;
	home->owed += profil_histograms_free(&new);
	profil_home_unlock(home);
free:
	free_percpu(counts);
	if (table)
		profil_table_put(table);
	return err;
}

/* Under space->setup_lock: no session is charged twice, which the limit might not allow. */
static int pending_set_up(struct profil_space *space)
{
	struct profil_session *s;
	struct task_struct *task;
	struct profil_home *home;
	int err = 0;

	while (!err && (s = pending_get(space, &task))) {
		home = profil_home_get(space);
		err = PTR_ERR_OR_ZERO(home);
		if (!err) {
			err = session_set_up(s, home, task);
			profil_home_put(home);
		}
		put_task_struct(task);
		profil_session_put(s);
	}
	return err;
}

/**
 * profil_space_set_up - Set up all sessions that are pending in an address space
 * @space: Of the caller, or of a process that a worker does it for; it has users.
 *
 * One that cannot have what it needs ends, and its statistics tell why.
 *
 * Return: 0; as profil_home_get() and profil_histograms_pin(), then some are still pending.
 */
int profil_space_set_up(struct profil_space *space)
{
	int err;

	/* None comes while the caller is here, and one that was just taken is under home->lock. */
	if (list_empty_careful(&space->pending))
		return 0;
	if (current->mm != space->mm && !mutex_trylock(&space->setup_lock))
		return -EAGAIN;
	if (current->mm == space->mm && mutex_lock_killable(&space->setup_lock))
		return -EINTR;
	err = pending_set_up(space);
	mutex_unlock(&space->setup_lock);
	return err;
}

/* The same for another process, at the expense of whoever owns that. */
int profil_space_set_up_for(struct profil_space *space)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(space->mm);
	struct mem_cgroup *before = set_active_memcg(memcg);
	int err = profil_space_set_up(space);

	set_active_memcg(before);
	mem_cgroup_put(memcg);
	return err;
}

static void setup_unhold(struct profil_space *space)
{
	profil_space_put(space);
	module_put(THIS_MODULE);
}

void profil_space_setup_work(struct work_struct *work)
{
	struct profil_space *space = container_of(to_delayed_work(work), struct profil_space,
						  setup);
	int err = 0;

	/* Otherwise its last task is on its way out, and takes them with it. */
	if (mmget_not_zero(space->mm)) {
		err = profil_space_set_up_for(space);
		mmput_async(space->mm);
	}
	/* Who holds mmap_lock may do so for long. */
	space->setup_delay = err ? clamp(2 * space->setup_delay, 1U, (unsigned int)HZ) : 0;
	if (!err || !queue_delayed_work(profil_wq, &space->setup, space->setup_delay))
		setup_unhold(space);
}

/* A tick has been deferred for want of pages. From the tick, which has found a watch there. */
void profil_space_kick_setup(struct profil_space *space)
{
	if (!try_module_get(THIS_MODULE))
		return;
	refcount_inc(&space->refs);
	if (!queue_delayed_work(profil_wq, &space->setup, 0))
		setup_unhold(space);
}
