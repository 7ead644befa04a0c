// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: life and death, and those without a descriptor (classic ones).
 *
 * A session has a home: the space of the process whose memory its buffers are in. All
 * that changes a session happens under home->lock. What it samples is linked when all
 * of it is ready, and unlinked before anything of it is undone; between the two steps
 * no tick may be under way, see session_quiesce().
 *
 * A session owns its pins, the charge for them, a share in the tick hook while it is
 * on, and, unless a file does that for it, a reference to the module. All of these go
 * in profil_session_end() and session_settle(), never later; what may remain is the
 * record of an ended session, whose statistics can be read until the next start or
 * stop, or as long as its descriptor is open. Such a record does not hold the module;
 * unloading frees it.
 *
 * The child of a fork inherits a session by profil_session_inherit(), in the parent,
 * where nothing may sleep: it is young, its ticks are kept, and its table is the
 * parent's. session_grow(), in a worker or in the child's own next call, gives it
 * pages, a charge and a table of its own.
 */
#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "profil.h"

#define ATTEND_RETRY	max(HZ / 100, 1)
#define ATTEND_SLOWLY	HZ		/* after RETRIES_QUICK of these */
#define RETRIES_QUICK	100
#define FOLLOW_TRIES	3		/* against others who change the mapping all the time */

/* ---- memory ---- */

static void session_work(struct work_struct *work);

/* After a grace period, in a worker: nothing points here any more. */
static void session_free(struct work_struct *work)
{
	struct profil_session *s = container_of(to_rcu_work(work), struct profil_session, free);

	profil_ring_free(s->ring);
	free_percpu(s->counts);
	if (s->task)
		put_task_struct(s->task);
	if (s->root)
		profil_session_put(s->root);
	profil_space_put(s->home);
	kvfree(s);
}

void profil_session_put(struct profil_session *s)
{
	if (refcount_dec_and_test(&s->refs))
		queue_rcu_work(profil_wq, &s->free);
}

/* With one reference, and nothing that could fail later but its counts. */
struct profil_session *profil_session_alloc(struct profil_space *home, gfp_t gfp)
{
	struct profil_session *s = profil_zalloc(sizeof(*s), gfp);

	if (!s)
		return NULL;
	refcount_inc(&home->refs);
	s->home = home;
	s->rest_until = jiffies;
	s->histograms = RB_ROOT_CACHED;
	s->watches = RB_ROOT;
	refcount_set(&s->refs, 1);
	spin_lock_init(&s->stale_lock);
	INIT_LIST_HEAD(&s->list);
	INIT_LIST_HEAD(&s->members);
	INIT_LIST_HEAD(&s->kin);
	INIT_LIST_HEAD(&s->stale);
	INIT_DELAYED_WORK(&s->work, session_work);
	INIT_RCU_WORK(&s->free, session_free);
	return s;
}

/* A new session is due at any moment of its first period: what is short may be found, too. */
static s64 first_period(const struct profil_session *s)
{
	unsigned long flags;
	u32 random;

	if (!s->period)
		return 0;
	local_irq_save(flags);
	random = profil_clock_random();
	local_irq_restore(flags);
	return (mul_u32_u32(s->period, random) >> 32) + 1;
}

int profil_session_alloc_counts(struct profil_session *s)
{
	struct profil_counts __percpu *counts;
	int cpu;

	if (s->counts)
		return 0;
	counts = alloc_percpu_gfp(struct profil_counts, GFP_KERNEL_ACCOUNT);
	if (!counts)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(counts, cpu)->left = first_period(s);
	/* Ticks of an inherited session use it at once. */
	smp_store_release(&s->counts, counts);
	return 0;
}

/*
 * Sessions of one home with the same period are due together, as far as they have been on for the
 * same targets: one interrupt will do. @s is about to be on.
 */
void profil_session_fall_in(struct profil_session *s)
{
	struct profil_session *other;
	int cpu;

	lockdep_assert_held(&s->home->lock);

	if (!s->counts)		/* still young */
		return;
	list_for_each_entry(other, &s->home->sessions, list) {
		if (other == s || !other->on || !other->counts || other->period != s->period ||
		    other->jitter != s->jitter)
			continue;
		for_each_possible_cpu(cpu)
			per_cpu_ptr(s->counts, cpu)->left =
				READ_ONCE(per_cpu_ptr(other->counts, cpu)->left);
		return;
	}
}

/* Ticks of the kind that @s is for. As profil_tick_get(). */
int profil_session_get_ticks(struct profil_session *s)
{
	return s->period ? profil_clock_get() : profil_tick_get();
}

static bool session_get_more_ticks(struct profil_session *s)
{
	return s->period ? profil_clock_get_another() : profil_tick_get_another();
}

void profil_session_put_ticks(struct profil_session *s)
{
	if (s->period)
		profil_clock_put();
	else
		profil_tick_put();
}

/* As profil_clock_look(), if that is of interest to @s, which is about to have targets. */
void profil_session_look(struct profil_session *s)
{
	if (s->period || profil_nohz_full)
		profil_clock_look();
}

/*
 * Now it has: @task, or all, if that is NULL. Where the tick had been stopped, the scheduler does
 * not know how much time they have had until it comes again.
 */
void profil_session_look_again(struct profil_session *s, const struct task_struct *task)
{
	if ((s->period || profil_nohz_full) && profil_clock_look()) {
		schedule_timeout_uninterruptible(2);
		profil_members_restart(s, task);
	}
}

/* From now on there is more to sample: ticks before are not missed. */
void profil_session_expect_anew(struct profil_session *s)
{
	int cpu;

	if (s->counts)
		for_each_possible_cpu(cpu)
			WRITE_ONCE(per_cpu_ptr(s->counts, cpu)->due, 0);
}

/* What queued work holds: the session, and the module, since it may be delayed. */
static bool session_hold(struct profil_session *s)
{
	if (!try_module_get(THIS_MODULE))
		return false;
	if (refcount_inc_not_zero(&s->refs))
		return true;
	module_put(THIS_MODULE);
	return false;
}

static void session_unhold(struct profil_session *s)
{
	profil_session_put(s);
	module_put(THIS_MODULE);
}

/*
 * Has session_attend() look after @s: at once, but not again and again, since a user can
 * cause it as often as it likes, and does not pay for it. Never sleeps.
 */
void profil_session_kick(struct profil_session *s)
{
	unsigned long now = jiffies, due = READ_ONCE(s->rest_until);

	if (session_hold(s) &&
	    !queue_delayed_work(profil_attend_wq, &s->work,
				time_before(now, due) ? due - now : 0))
		session_unhold(s);
}

/* ---- homes ---- */

/* The mm has no users any more; its sessions go in profil_space_reap(). */
static bool space_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct profil_space *space = container_of(notifier, struct profil_space, notifier);

	mmu_interval_set_seq(notifier, cur_seq);
	if (range->event == MMU_NOTIFY_RELEASE && refcount_inc_not_zero(&space->refs) &&
	    !queue_work(profil_wq, &space->reap))
		profil_space_put(space);
	return true;
}

static const struct mmu_interval_notifier_ops space_ops = {
	.invalidate = space_invalidate,
};

/*
 * Sessions live here: the release of the mm must be heard of. Page 0 is an address where
 * nothing else is. Waiting for mmap_lock is for the process itself, not for workers: it
 * may be held for long. -EAGAIN: try later.
 */
static int space_watch(struct profil_space *space)
{
	struct mm_struct *mm = space->mm;
	int err;

	lockdep_assert_held(&space->lock);

	if (space->watched)
		return 0;
	if (current->mm == mm) {
		err = mmu_interval_notifier_insert(&space->notifier, mm, 0, PAGE_SIZE, &space_ops);
	} else {
		/* By 6.12 mmap_write_trylock() is gone. No mapping is changed here. */
		if (!down_write_trylock(&mm->mmap_lock))
			return -EAGAIN;
		err = mmu_interval_notifier_insert_locked(&space->notifier, mm, 0, PAGE_SIZE,
							  &space_ops);
		up_write(&mm->mmap_lock);
	}
	/* Any signal keeps the first notifier from being inserted, one with a handler, too. */
	if (err == -EINTR)
		return fatal_signal_pending(current) ? -EINTR : -ERESTARTNOINTR;
	if (err)
		return -ENOMEM;
	space->watched = true;
	/* While it waits for an event in progress to pass it is not told of the release. */
	mmu_interval_read_begin(&space->notifier);
	return 0;
}

/*
 * The caller's space, locked and referenced, to be given back by profil_home_unlock().
 * Without @create, NULL if there is none. Or an error pointer.
 */
struct profil_space *profil_home_lock(bool create)
{
	struct profil_space *space = profil_space_get(current->mm, create);
	int err;

	if (!space)
		return create ? ERR_PTR(-ENOMEM) : NULL;
	if (mutex_lock_killable(&space->lock)) {
		profil_space_put(space);
		return ERR_PTR(-EINTR);
	}
	err = create ? space_watch(space) : 0;
	if (err) {
		profil_home_unlock(space);
		return ERR_PTR(err);
	}
	return space;
}

void profil_home_unlock(struct profil_space *space)
{
	mutex_unlock(&space->lock);
	profil_space_put(space);
}

/* ---- what is locked ---- */

/**
 * profil_session_charge - Charge pages to RLIMIT_MEMLOCK
 * @s: The session that will pin them. Under home->lock.
 * @pages: How many.
 *
 * Return: 0; -EPERM: more than allowed; -EINTR; in a worker -EAGAIN: try later.
 */
int profil_session_charge(struct profil_session *s, unsigned long pages)
{
	struct mm_struct *mm = s->home->mm;
	int err;

	if (!pages)
		return 0;
	if (current->mm == mm) {
		if (mmap_write_lock_killable(mm))
			return -EINTR;
	} else if (!down_write_trylock(&mm->mmap_lock)) {
		return -EAGAIN;
	}
	/* With the limits of the session's task, also in a worker. */
	err = __account_locked_vm(mm, pages, true, s->task, s->may_exceed);
	up_write(&mm->mmap_lock);
	if (err)
		return -EPERM;
	s->charged += pages;
	return 0;
}

/* Waits for mmap_lock only with @wait. False if it could not have it. */
static bool session_uncharge(struct profil_session *s, unsigned long pages, bool wait)
{
	struct mm_struct *mm = s->home->mm;

	lockdep_assert_held(&s->home->lock);

	if (!pages)
		return true;
	if (wait)
		down_write(&mm->mmap_lock);
	else if (!down_write_trylock(&mm->mmap_lock))
		return false;
	__account_locked_vm(mm, pages, false, current, true);
	up_write(&mm->mmap_lock);
	s->charged -= pages;
	return true;
}

void profil_session_uncharge(struct profil_session *s, unsigned long pages)
{
	session_uncharge(s, pages, true);
}

/**
 * profil_session_pin - Have all pages of a table's buffers
 * @s: The session, not ended. Under home->lock.
 * @table: As from profil_table_create(); complete if this succeeds.
 * @credit: So many pages need not be charged: a session that @s will replace has them.
 *
 * In a worker pages are not pinned yet: the session must be parked.
 *
 * Return: 0; -EFAULT, -ENOMEM, -EINTR, -EPERM; in a worker -EAGAIN.
 */
int profil_session_pin(struct profil_session *s, struct profil_table *table,
		       unsigned long credit)
{
	unsigned long before = s->charged, charged;
	LIST_HEAD(created);
	int err;

	err = profil_histograms_create(s, table, credit, &created);
	if (!err)
		err = profil_histograms_pin(s, &created);
	if (!err) {
		profil_table_bind(table);
		return 0;
	}
	profil_histograms_drop(&created);
	charged = s->charged - before;
	if (!session_uncharge(s, charged, current->mm == s->home->mm))
		s->excess += charged;
	return err;
}

/* ---- the end ---- */

/*
 * Can no tick be under way in @s, which samples nothing any more? A tick runs on the CPU of
 * the task it samples: if no other task can have been sampled than the caller, there is
 * none. So a single-threaded program that starts and stops in a loop does not wait.
 *
 * What has been inherited is waited for in any case, but when its mm has no users, since the
 * fork probe may still be at it: see profil_session_inherit().
 */
static bool session_is_quiet(const struct profil_session *s)
{
	struct mm_struct *mm = s->home->mm;
	int users = atomic_read(&mm->mm_users);

	if (s->classic)
		return !users || (users == 1 && current->mm == mm) ||
		       (s->scope == PROFIL_SCOPE_THREAD && s->task == current);
	return !s->root && !s->nr_detached;
}

/*
 * No tick finds it any more. Those that have found it still are counted: one that has taken its
 * place does not count them.
 */
static void session_silence(struct profil_session *s)
{
	if (s->silent)
		return;
	WRITE_ONCE(s->silent, true);
	if (s->on)
		s->runtime += profil_members_runtime(s, false);
	profil_detach_all(s);
}

/*
 * Ends a session: no tick is counted after this, no page is pinned, and its statistics
 * are final. session_settle() is owed.
 */
void profil_session_end(struct profil_session *s, enum profil_end end)
{
	bool on = s->on;

	lockdep_assert_held(&s->home->lock);

	if (!s->silent) {
		session_silence(s);
		if (!session_is_quiet(s))
			synchronize_rcu();
	}
	WRITE_ONCE(s->on, false);
	if (profil_session_parked(s) && !s->young && end == PROFIL_END_NONE &&
	    current->mm == s->home->mm)
		profil_histograms_refresh(s);	/* a last try for the kept ticks */
	profil_replay(s, false);	/* as in session_follow() */

	WRITE_ONCE(s->state, PROFIL_STATE_ENDED);
	s->end = end;
	profil_histograms_drop_all(s);
	profil_replay(s, true);
	if (on) {
		/* Ticks that came for its sake alone need not any more. */
		if (profil_nohz_full)
			profil_clock_look();
		profil_session_put_ticks(s);
	}
	profil_ring_wake(s);
}

/*
 * Returns the charge and the module of a session that has ended; the charge for records only
 * when they cannot be read any more. False: come again.
 */
static bool session_settle(struct profil_session *s, bool wait)
{
	unsigned long keeps = READ_ONCE(s->orphan) ? 0 : s->ring_pages;

	lockdep_assert_held(&s->home->lock);

	if (!session_uncharge(s, s->charged - min(s->charged, keeps), wait))
		return false;
	if (s->settled)
		return true;
	s->settled = true;
	if (cancel_delayed_work(&s->work))
		session_unhold(s);
	if (s->classic || s->root)
		module_put(THIS_MODULE);
	return true;
}

/* Gives back the reference that the home, or the descriptor, has. */
static void session_forget(struct profil_session *s)
{
	unsigned long flags;

	if (s->forgotten)
		return;
	s->forgotten = true;
	list_del_init(&s->list);
	if (s->root) {
		raw_spin_lock_irqsave(&profil_index_lock, flags);
		list_del_init(&s->kin);
		raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	}
	profil_session_put(s);
}

/*
 * Forgets what is left of threads that are gone, or gone to another mm. Their sessions
 * had ended before, so profil_task_exited() did not find them.
 */
static void space_prune(struct profil_space *space)
{
	struct profil_session *s, *next;

	lockdep_assert_held(&space->lock);

	list_for_each_entry_safe(s, next, &space->sessions, list)
		if (s->classic && s->scope == PROFIL_SCOPE_THREAD &&
		    s->state == PROFIL_STATE_ENDED && READ_ONCE(s->task->mm) != space->mm &&
		    session_settle(s, true))
			session_forget(s);
}

/* The mm is gone, or the module goes: so do all sessions whose home it was. */
void profil_space_reap(struct profil_space *space)
{
	struct profil_session *s, *next;
	bool quiet = true;

	mutex_lock(&space->lock);
	/* There may be many: they share one grace period. */
	list_for_each_entry(s, &space->sessions, list) {
		if (s->state == PROFIL_STATE_ENDED)
			continue;
		session_silence(s);
		quiet &= session_is_quiet(s);
	}
	if (!quiet)
		synchronize_rcu();
	list_for_each_entry_safe(s, next, &space->sessions, list) {
		bool open = !s->classic && !s->root;

		if (s->state != PROFIL_STATE_ENDED)
			profil_session_end(s, open ? PROFIL_END_CREATOR : PROFIL_END_NONE);
		session_settle(s, true);
		if (!open || READ_ONCE(s->orphan))
			session_forget(s);
		else
			list_del_init(&s->list);	/* until its descriptor is closed */
	}
	mutex_unlock(&space->lock);
}

/* ---- work ---- */

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

/* Gives an inherited session what it needs to count for itself. */
static int session_grow(struct profil_session *s)
{
	u64 id = s->home->id;
	struct profil_table *table, *legacy = &profil_nothing, *parents;
	int err;

	err = space_watch(s->home);
	if (err)
		return err;
	err = profil_session_alloc_counts(s);
	if (err)
		return err;
	parents = profil_table_of(s, id, NULL);
	if (!parents) {
		s->young = false;	/* its thread is gone */
		return 0;
	}
	table = profil_table_inherit(s, parents);
	profil_table_put(parents);
	if (!table)
		return -ENOMEM;
	err = profil_session_pin(s, table, 0);
	if (!err) {
		s->young = false;
		profil_table_set(s, id, &table, &legacy);
	}
	profil_table_put(table);
	profil_table_put(legacy);
	return err;
}

/* Brings @s in step with its process. -EAGAIN and -ENOMEM: try again; other errors end it. */
static int session_follow(struct profil_session *s)
{
	int err = 0;

	lockdep_assert_held(&s->home->lock);

	if (s->young)
		err = session_grow(s);
	if (!err && profil_session_parked(s))
		err = profil_histograms_refresh(s);
	/* A tick that found it parked may be kept only now that it is not any more. */
	profil_replay(s, false);
	return err;
}

/**
 * profil_session_follow - Find out what has become of a session
 * @s: The session. Under home->lock.
 *
 * As session_follow(), in a call of the process itself, which can wait for its own pages.
 *
 * Return: 0; -ENODEV if the session has ended.
 */
int profil_session_follow(struct profil_session *s)
{
	unsigned int tries = FOLLOW_TRIES;
	int err = -EAGAIN;

	while (err == -EAGAIN && tries-- && s->state != PROFIL_STATE_ENDED &&
	       current->mm == s->home->mm) {
		err = session_follow(s);
		if (err && err != -EAGAIN && err != -ENOMEM && err != -EINTR)
			profil_session_end(s, end_of(err));
		cond_resched();
	}
	if (s->state != PROFIL_STATE_ENDED)
		return 0;
	session_settle(s, current->mm == s->home->mm);
	return -ENODEV;
}

/* As session_follow(), in a worker, at the expense of whoever owns the process. */
static int session_follow_for(struct profil_session *s)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(s->home->mm);
	struct mem_cgroup *before = set_active_memcg(memcg);
	int err = session_follow(s);

	set_active_memcg(before);
	mem_cgroup_put(memcg);
	return err;
}

/* What has happened to @s that its own calls did not do. False: come again. */
static bool session_attend(struct profil_session *s)
{
	struct mm_struct *mm = s->home->mm;
	bool done = true;
	int err = 0;

	if (s->state != PROFIL_STATE_ENDED && READ_ONCE(s->orphan))
		profil_session_end(s, PROFIL_END_NONE);

	if (s->state != PROFIL_STATE_ENDED && (s->young || profil_session_parked(s))) {
		if (mmget_not_zero(mm)) {
			err = session_follow_for(s);
			mmput_async(mm);
		} else if (s->young) {
			/* Nothing else tells: it was not watched. */
			WRITE_ONCE(s->orphan, true);
			profil_session_end(s, PROFIL_END_NONE);
		}
		if (err == -EAGAIN || (err == -ENOMEM && s->retries < RETRIES_QUICK)) {
			s->retries++;
			return false;
		}
		s->retries = 0;
		if (err)
			profil_session_end(s, end_of(err));
	}

	if (s->state == PROFIL_STATE_ENDED) {
		if (!session_settle(s, false))
			return false;
		if (READ_ONCE(s->orphan))
			session_forget(s);
		return true;
	}
	if (READ_ONCE(s->prune)) {
		WRITE_ONCE(s->prune, false);
		s->excess += profil_histograms_drop_unused(s);
	}
	if (s->excess && mmget_not_zero(mm)) {
		done = session_uncharge(s, s->excess, false);
		if (done)
			s->excess = 0;
		mmput_async(mm);
	}
	return done;
}

static void session_work(struct work_struct *work)
{
	struct profil_session *s = container_of(to_delayed_work(work), struct profil_session, work);
	struct profil_space *home = s->home;
	unsigned long begun = jiffies;
	unsigned long delay = ATTEND_RETRY;
	bool done = false;

	/* The lock is held while buffers are pinned, which can take long. */
	if (mutex_trylock(&home->lock)) {
		done = session_attend(s);
		WRITE_ONCE(s->rest_until, jiffies + ATTEND_RETRY + 4 * (jiffies - begun));
		s->in_vain = 0;
		mutex_unlock(&home->lock);
	} else {
		/* Others of this home may wait for it, too. */
		s->in_vain = min(s->in_vain + 1, 5U);
		delay <<= s->in_vain;
	}
	if (s->retries >= RETRIES_QUICK)
		delay = ATTEND_SLOWLY;
	if (done || !queue_delayed_work(profil_attend_wq, &s->work, delay))
		session_unhold(s);
}

/**
 * profil_session_close - The descriptor of a session is gone
 * @s: The session, with the descriptor's reference.
 *
 * What the caller's process owns is given back at once; of another, a worker does it.
 */
void profil_session_close(struct profil_session *s)
{
	struct profil_session *kin;
	unsigned long flags;

	/* From here on a worker may give back the descriptor's reference. */
	refcount_inc(&s->refs);
	do {
		raw_spin_lock_irqsave(&profil_index_lock, flags);
		WRITE_ONCE(s->orphan, true);
		kin = list_first_entry_or_null(&s->kin, struct profil_session, kin);
		if (kin) {
			list_del_init(&kin->kin);
			refcount_inc(&kin->refs);
			WRITE_ONCE(kin->orphan, true);
		}
		raw_spin_unlock_irqrestore(&profil_index_lock, flags);
		if (kin) {
			profil_session_kick(kin);
			profil_session_put(kin);
		}
	} while (kin);

	if (current->mm == s->home->mm) {
		mutex_lock(&s->home->lock);
		if (s->state != PROFIL_STATE_ENDED)
			profil_session_end(s, PROFIL_END_NONE);
		session_settle(s, true);
		session_forget(s);
		mutex_unlock(&s->home->lock);
	} else {
		profil_session_kick(s);
	}
	profil_session_put(s);
}

/* ---- fork ---- */

/**
 * profil_session_inherit - Make the session of a child of fork
 * @w: What the child inherits. Under RCU, and maybe just being unlinked.
 * @child: The child, which does not run yet.
 * @home: Its space, whose sessions nobody else changes yet.
 *
 * Does not sleep. What @w's session does at the same time in another task may have come
 * before the fork or after. The caller goes on with the session on @home's reference alone:
 * nothing can give that back before the caller's RCU section is over, see session_is_quiet().
 *
 * Return: the session, for profil_session_bear(); or an error pointer: -ENOMEM, or
 * -ENODEV if there is nothing to inherit any more.
 */
struct profil_session *profil_session_inherit(struct profil_watch *w, struct task_struct *child,
					      struct profil_space *home)
{
	struct profil_session *parent = w->session, *s, *root;
	bool on = READ_ONCE(parent->on) && !READ_ONCE(parent->silent), gone = false;
	unsigned long flags;
	int err = -ENODEV;

	/* A classic one that is not on is about to end. */
	if (READ_ONCE(parent->state) == PROFIL_STATE_ENDED || (parent->classic && !on))
		return ERR_PTR(err);
	s = profil_session_alloc(home, PROFIL_GFP_PROBE);
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->classic = parent->classic;
	s->may_exceed = parent->may_exceed;
	s->scope = parent->scope;
	s->modes = parent->modes;
	s->period = parent->period;
	s->jitter = parent->jitter;
	s->left = first_period(s);
	s->pcs = parent->pcs;
	s->pc_width = parent->pc_width;
	s->max_pcs = parent->max_pcs;
	s->taken_pcs = atomic64_read(&parent->nr_pcs);
	atomic64_set(&s->nr_pcs, s->taken_pcs);
	s->fork = parent->fork;
	s->exec = parent->exec;
	s->young = true;
	s->slow = BIT(PROFIL_SLOW_PARKED);
	s->on = on;
	s->state = on ? PROFIL_STATE_ON : PROFIL_STATE_OFF;
	s->task = get_task_struct(child);

	if (!try_module_get(THIS_MODULE))
		goto put;
	if (on && !session_get_more_ticks(s))
		goto put_module;
	if (!s->classic) {
		root = parent->root ? parent->root : parent;
		refcount_inc(&root->refs);
		s->root = root;
		raw_spin_lock_irqsave(&profil_index_lock, flags);
		gone = root->orphan;
		/* From here on a worker may end it. */
		if (!gone)
			list_add(&s->kin, &root->kin);
		raw_spin_unlock_irqrestore(&profil_index_lock, flags);
		if (gone)
			goto put_tick;
	}
	return s;

put_tick:
	if (on)
		profil_session_put_ticks(s);
put_module:
	module_put(THIS_MODULE);
put:
	profil_session_put(s);
	return ERR_PTR(err);
}

/*
 * It samples the child, or, with @err, could not be made to and is to be undone. Others may find
 * it only now: they would have it grow, with no target and so no ranges yet, and let it count in
 * its parent's pages. home->lock cannot be had here, but nobody else changes the list: the child
 * does not run, and a worker that ends an inherited session waits for a grace period first.
 */
void profil_session_bear(struct profil_session *s, int err)
{
	if (err)
		WRITE_ONCE(s->orphan, true);
	else
		list_add_rcu(&s->list, &s->home->sessions);
	profil_session_kick(s);
}

/* ---- statistics ---- */

/* All that was ever counted. */
static void session_sum(const struct profil_session *s, struct profil_sums *sums)
{
	int cpu, mode, i;

	memset(sums, 0, sizeof(*sums));
	for (mode = 0; mode < 2; mode++)
		for (i = 0; i < PROFIL_NR_OUTCOMES; i++)
			sums->n[mode][i] = atomic64_read(&s->early[mode][i]);
	if (!s->counts)
		return;
	for_each_possible_cpu(cpu) {
		const struct profil_counts *counts = per_cpu_ptr(s->counts, cpu);

		for (mode = 0; mode < 2; mode++)
			for (i = 0; i < PROFIL_NR_OUTCOMES; i++)
				sums->n[mode][i] += READ_ONCE(counts->n[mode][i]);
		sums->missed += READ_ONCE(counts->missed);
	}
}

/* @stats is zero. With @restart all begins anew. Under home->lock. */
void profil_session_read(struct profil_session *s, struct profil_stats *stats, bool restart)
{
	u64 n[PROFIL_NR_OUTCOMES], runtime = s->runtime;
	struct profil_sums sums;
	unsigned long flags;
	u32 period;
	int i;

	lockdep_assert_held(&s->home->lock);

	session_sum(s, &sums);
	for (i = 0; i < PROFIL_NR_OUTCOMES; i++) {
		u64 user = sums.n[0][i] - s->before.n[0][i];
		u64 system = sums.n[1][i] - s->before.n[1][i];

		n[i] = user + system;
		if (i < PROFIL_UNSELECTED) {
			stats->user += user;
			stats->system += system;
		}
	}
	stats->ticks = stats->user + stats->system;
	stats->hit = n[PROFIL_HIT];
	stats->outside = n[PROFIL_OUTSIDE];
	stats->saturated = n[PROFIL_SATURATED];
	stats->dropped_overrun = n[PROFIL_DROPPED_OVERRUN];
	stats->dropped_buffer = n[PROFIL_DROPPED_BUFFER];
	stats->dropped_contended = n[PROFIL_DROPPED_CONTENDED];
	stats->dropped_exec = n[PROFIL_DROPPED_EXEC];
	stats->dropped_exit = n[PROFIL_DROPPED_EXIT];
	stats->dropped_record = n[PROFIL_DROPPED_RECORD];
	stats->dropped = stats->ticks - stats->hit - stats->outside - stats->saturated;
	stats->unselected = n[PROFIL_UNSELECTED];
	stats->missed = sums.missed - s->before.missed;

	if (s->on)
		runtime += profil_members_runtime(s, restart);
	period = s->period ? s->period : TICK_NSEC;
	stats->expected = div_u64(runtime + period / 2, period);
	stats->locked = (u64)s->charged << PAGE_SHIFT;
	stats->state = s->state;
	stats->end = s->end;
	raw_spin_lock_irqsave(&profil_index_lock, flags);
	stats->unfollowed = s->unfollowed;
	stats->targets = s->nr_members;
	if (restart) {
		s->unfollowed = 0;
		s->runtime = 0;
	}
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	if (restart)
		s->before = sums;
}

/* ---- classic sessions ---- */

/* The classic session in @scope, for threads the caller's, on or ended; NULL if there is none. */
struct profil_session *profil_session_classic(struct profil_space *space, u32 scope)
{
	struct profil_session *s;

	lockdep_assert_held(&space->lock);

	/* To be fetched, perhaps just when one is born: see profil_session_bear(). */
	list_for_each_entry_rcu(s, &space->sessions, list, lockdep_is_held(&space->lock))
		if (s->classic && s->scope == scope && !READ_ONCE(s->orphan) &&
		    (scope == PROFIL_SCOPE_PROCESS || s->task == current))
			return s;
	return NULL;
}

/* What the user asks for, checked, with nothing pinned or charged. */
static struct profil_session *session_create(struct profil_space *home,
					     const struct profil_start *arg)
{
	struct profil_session *s = profil_session_alloc(home, GFP_KERNEL_ACCOUNT);
	bool process = arg->scope == PROFIL_SCOPE_PROCESS;

	if (!s)
		return ERR_PTR(-ENOMEM);
	s->classic = true;
	s->may_exceed = ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
	s->scope = arg->scope;
	s->modes = arg->modes;
	s->period = arg->period;
	s->jitter = arg->flags & PROFIL_START_JITTER;
	s->fork = process ? PROFIL_FORK_FRESH : PROFIL_FORK_OFF;
	s->exec = PROFIL_EXEC_OFF;
	s->task = get_task_struct(process ? current->group_leader : current);
	if (profil_session_alloc_counts(s)) {
		profil_session_put(s);
		return ERR_PTR(-ENOMEM);
	}
	return s;
}

/* Under home->lock. Takes over the caller's reference to @s only if it succeeds. */
static int session_begin(struct profil_session *s, struct profil_table *table, bool replace)
{
	struct profil_space *home = s->home;
	struct profil_session *old, *on = NULL;
	unsigned long pages, credit = 0;
	struct profil_member *m;
	struct profil_watch *w;
	int err;

	space_prune(home);
	old = profil_session_classic(home, s->scope);
	if (old) {
		profil_session_follow(old);
		if (old->state == PROFIL_STATE_ON) {
			if (!replace)
				return -EBUSY;
			on = old;
			credit = on->charged;
		}
	}

	m = profil_member_alloc(current, s->scope == PROFIL_SCOPE_THREAD, GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	err = -ENOMEM;
	w = profil_watch_alloc(s, home, profil_table_get(table), &profil_nothing,
			       GFP_KERNEL_ACCOUNT);
	if (!w) {
		profil_table_put(table);
		goto free_member;
	}
	err = profil_session_get_ticks(s);
	if (err)
		goto free_watch;
	err = profil_session_pin(s, table, credit);
	if (err)
		goto put_tick;

	pages = profil_histograms_total(s);
	if (on)
		on->charged += s->charged - pages;
	s->charged = pages;

	__module_get(THIS_MODULE);
	profil_session_look(s);		/* time before is not the session's */
	s->state = PROFIL_STATE_ON;
	s->on = true;
	list_add(&s->list, &home->sessions);
	profil_attach(&w, m, on);
	profil_session_look_again(s, NULL);
	if (on)
		profil_session_end(on, PROFIL_END_NONE);
	if (old) {
		session_settle(old, true);
		session_forget(old);
	}
	return 0;

put_tick:
	profil_session_put_ticks(s);
	if (cancel_delayed_work(&s->work))
		session_unhold(s);
free_watch:
	profil_watch_free(w);
free_member:
	profil_member_free(m);
	return err;
}

int profil_session_start(const struct profil_start *arg)
{
	struct profil_session *s;
	struct profil_table *table;
	struct profil_space *home = profil_home_lock(true);
	int err;

	if (IS_ERR(home))
		return PTR_ERR(home);
	s = session_create(home, arg);
	if (IS_ERR(s)) {
		err = PTR_ERR(s);
		goto unlock;
	}
	table = profil_table_from_user(s, &profil_nothing, arg->ranges, arg->nr_ranges);
	err = PTR_ERR_OR_ZERO(table);
	if (err)
		goto put;
	if (table->spans[0].flags & PROFIL_RANGE_PCS) {
		s->pcs = table->spans[0].buffer;
		s->pc_width = table->spans[0].width;
		s->max_pcs = table->spans[0].bytes / s->pc_width;
	}
	err = profil_histograms_check(table);
	if (!err)
		err = session_begin(s, table, arg->flags & PROFIL_START_REPLACE);
	profil_table_put(table);
put:
	if (err)
		profil_session_put(s);
unlock:
	profil_home_unlock(home);
	return err;
}

/* @stats is zero; it gets the final statistics. */
int profil_session_stop(u32 scope, struct profil_stats *stats)
{
	struct profil_space *home = profil_home_lock(false);
	struct profil_session *s;
	int err = -EINVAL;

	if (IS_ERR_OR_NULL(home))
		return home ? PTR_ERR(home) : err;
	s = profil_session_classic(home, scope);
	if (s) {
		bool on;

		profil_session_follow(s);
		on = s->state == PROFIL_STATE_ON;
		if (on)
			profil_session_end(s, PROFIL_END_NONE);
		session_settle(s, true);
		profil_session_read(s, stats, false);
		if (on)
			stats->state = PROFIL_STATE_OFF;
		session_forget(s);
		err = 0;
	}
	profil_home_unlock(home);
	return err;
}

/* @stats is zero. */
int profil_session_stats(u32 scope, struct profil_stats *stats)
{
	struct profil_space *home = profil_home_lock(false);
	struct profil_session *s;

	if (IS_ERR_OR_NULL(home))
		return PTR_ERR_OR_ZERO(home);
	s = profil_session_classic(home, scope);
	if (s) {
		profil_session_follow(s);
		profil_session_read(s, stats, false);
	}
	profil_home_unlock(home);
	return 0;
}

/* ---- load and unload ---- */

static struct profil_space *space_with_sessions(unsigned int bucket)
{
	struct profil_space *space;
	unsigned long flags;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	hlist_for_each_entry(space, &profil_spaces[bucket], node)
		if (!list_empty(&space->sessions) && refcount_inc_not_zero(&space->refs))
			break;
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	return space;
}

/*
 * No session is on, no file is open, no probe runs. Frees the records of ended
 * sessions; what is already on its way, the caller flushes with profil_wq.
 */
void profil_sessions_exit(void)
{
	struct profil_space *space;
	unsigned int i;

	for (i = 0; i < 1 << PROFIL_HASH_BITS; i++) {
		while ((space = space_with_sessions(i))) {
			profil_space_reap(space);
			profil_space_put(space);
		}
	}
}
