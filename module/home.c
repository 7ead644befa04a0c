// SPDX-License-Identifier: GPL-2.0
/*
 * A home contains the sessions of a process, their lock and worker, and the notifier of the mm.
 *
 * The buffers of a session are in the address space of its home, and charged to it. When the mm is
 * released, all sessions of the home end: each home has a notifier that reports the release. So
 * every session has a home, except PENDING ones.
 *
 * A home exists as long as sessions or callers reference it. After the release of the mm it has
 * neither mm nor space, and remains for descriptors that are still open.
 *
 * Context: system calls, task work of the child of a fork, workers (may sleep); profil_home_put()
 * and profil_home_kick(): any.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "profil.h"

#define RECONCILE_RETRY	max(HZ / 10, 1)

static void home_reconcile(struct work_struct *work);
static void home_free(struct work_struct *work);

static bool home_invalidate(struct mmu_interval_notifier *notifier,
			    const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct profil_home *home = container_of(notifier, struct profil_home, notifier);

	mmu_interval_set_seq(notifier, cur_seq);
	/* This callback cannot remove the notifier, so a worker does. */
	if (range->event == MMU_NOTIFY_RELEASE) {
		WRITE_ONCE(home->released, true);
		profil_home_kick(home);
	}
	return true;
}

static const struct mmu_interval_notifier_ops home_ops = {
	.invalidate = home_invalidate,
};

/*
 * Inserts a notifier for the release of the caller's mm. It is for page 0, where usually nothing is
 * mapped. Signals are blocked: a pending one would interrupt the insertion of the first notifier.
 */
static int home_insert_notifier(struct profil_home *home)
{
	bool pending = signal_pending(current);
	sigset_t blocked, before;
	int err;

	siginitsetinv(&blocked, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_BLOCK, &blocked, &before);
	err = mmu_interval_notifier_insert(&home->notifier, current->mm, 0, PAGE_SIZE, &home_ops);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* Only with this flag, -ERESTART* restarts this call, or the call before task work. */
	if (pending || err == -EINTR)
		set_thread_flag(TIF_SIGPENDING);
	if (err == -EINTR)
		return fatal_signal_pending(current) ? -EINTR : -ERESTARTNOINTR;
	if (err)
		return -ENOMEM;
	/* Waits for an invalidation in progress, in which the notifier would miss the release. */
	mmu_interval_read_begin(&home->notifier);
	return 0;
}

/* Finds the home of an address space, referenced; or returns NULL. */
struct profil_home *profil_home_find(struct profil_space *space)
{
	struct profil_home *home;

	raw_spin_lock_irq(&profil_index_lock);
	home = space->home;
	if (home && !refcount_inc_not_zero(&home->refs))
		home = NULL;
	raw_spin_unlock_irq(&profil_index_lock);
	return home;
}

/*
 * Finds or creates the home of the caller's sessions, referenced. Or returns an error pointer:
 * -ENOMEM, -EINTR if killed, -ERESTARTNOINTR.
 */
struct profil_home *profil_home_get(struct profil_space *space)
{
	struct profil_home *home = profil_home_find(space), *other;
	int err;

	if (home)
		return home;
	home = profil_zalloc(sizeof(*home), GFP_KERNEL_ACCOUNT);
	if (!home)
		return ERR_PTR(-ENOMEM);
	mutex_init(&home->lock);
	INIT_LIST_HEAD(&home->sessions);
	INIT_WORK(&home->free, home_free);
	INIT_DELAYED_WORK(&home->reconcile, home_reconcile);
	refcount_set(&home->refs, 1);
	err = home_insert_notifier(home);
	if (err) {
		kfree(home);
		return ERR_PTR(err);
	}
	home->mm = space->mm;
	refcount_inc(&space->refs);
	home->space = space;

	raw_spin_lock_irq(&profil_index_lock);
	other = space->home;
	if (other && !refcount_inc_not_zero(&other->refs))
		other = NULL;
	if (!other)
		space->home = home;
	raw_spin_unlock_irq(&profil_index_lock);
	if (!other)
		return home;
	profil_home_put(home);
	return other;
}

void profil_home_put(struct profil_home *home)
{
	if (refcount_dec_and_test(&home->refs))
		queue_work(profil_wq, &home->free);
}

/* Detaches @home from its mm, since the mm is released, or @home has no references. */
static void home_detach(struct profil_home *home)
{
	struct profil_space *space = home->space;

	if (!home->mm)
		return;
	raw_spin_lock_irq(&profil_index_lock);
	if (space->home == home)
		space->home = NULL;
	raw_spin_unlock_irq(&profil_index_lock);
	/* After the removal of the notifier another mm may have this address. */
	WRITE_ONCE(home->mm, NULL);
	home->space = NULL;
	mmu_interval_notifier_remove(&home->notifier);
	profil_space_put(space);
}

static void home_free(struct work_struct *work)
{
	struct profil_home *home = container_of(work, struct profil_home, free);

	home_detach(home);
	kfree(home);
}

bool profil_home_is_own(const struct profil_home *home)
{
	return current->mm && current->mm == READ_ONCE(home->mm);
}

/*
 * Sets up the sessions that the caller has inherited, and then finds the caller's home. If there is
 * none, creates one, see profil_home_get(); or returns NULL if @create is false.
 */
struct profil_home *profil_home_get_own(bool create)
{
	struct profil_space *space = profil_space_get(current->mm, create ? GFP_KERNEL_ACCOUNT : 0);
	struct profil_home *home;
	int err;

	if (!space)
		return create ? ERR_PTR(-ENOMEM) : NULL;
	err = profil_pending_set_up(space);
	if (err)
		home = ERR_PTR(err);
	else
		home = create ? profil_home_get(space) : profil_home_find(space);
	profil_space_put(space);
	return home;
}

/* Finds and locks the caller's home; or returns NULL if there is none, or an error pointer. */
struct profil_home *profil_home_lock(void)
{
	struct profil_home *home = profil_home_get_own(false);

	if (IS_ERR_OR_NULL(home))
		return home;
	if (mutex_lock_killable(&home->lock)) {
		profil_home_put(home);
		return ERR_PTR(-EINTR);
	}
	return home;
}

/* Drops the lock and the reference. Uncharges home->to_uncharge pages, or makes a worker do so. */
void profil_home_unlock(struct profil_home *home)
{
	unsigned long pages = home->to_uncharge;

	if (pages && profil_home_is_own(home)) {
		home->to_uncharge = 0;
		mutex_unlock(&home->lock);
		profil_home_uncharge(home, pages);
	} else {
		mutex_unlock(&home->lock);
		if (pages)
			profil_home_kick(home);
	}
	profil_home_put(home);
}

/* Uncharges @pages of the caller's home. If the caller is killed, a worker does so. */
void profil_home_uncharge(struct profil_home *home, unsigned long pages)
{
	if (profil_uncharge(home->mm, pages))
		return;
	mutex_lock(&home->lock);
	home->to_uncharge += pages;
	mutex_unlock(&home->lock);
	profil_home_kick(home);
}

/* Ends the sessions of @home whose owner is gone; @all: all sessions. Needs one grace period. */
void profil_home_end_sessions(struct profil_home *home, bool all)
{
	struct profil_session *s, *next;
	bool wait = false;

	lockdep_assert_held(&home->lock);
	list_for_each_entry(s, &home->sessions, list) {
		if (s->phase == PROFIL_LIVE && (all || READ_ONCE(s->owner_gone))) {
			profil_session_quiesce(s);
			wait |= !profil_session_is_quiet(s);
		}
		cond_resched();
	}
	if (wait)
		synchronize_rcu();
	list_for_each_entry_safe(s, next, &home->sessions, list) {
		bool open = !s->classic && !s->root && !READ_ONCE(s->owner_gone);

		if (s->phase == PROFIL_QUIESCED)
			profil_session_finish(s, open ? PROFIL_END_CREATOR : PROFIL_END_NONE);
		if (s->phase == PROFIL_ENDED && (READ_ONCE(s->owner_gone) || (all && !open)))
			profil_session_unlist(s);
		cond_resched();
	}
}

/* Drops the references of queued work to the home and to the module. */
static void home_put_work(struct profil_home *home)
{
	profil_home_put(home);
	module_put(THIS_MODULE);
}

/* Queues a worker that ends the sessions that must end, and uncharges home->to_uncharge pages. */
void profil_home_kick(struct profil_home *home)
{
	/* If a reference cannot be taken, profil_homes_exit() or home_free() does the work. */
	if (!try_module_get(THIS_MODULE))
		return;
	if (!refcount_inc_not_zero(&home->refs))
		module_put(THIS_MODULE);
	else if (!queue_delayed_work(profil_wq, &home->reconcile, 0))
		home_put_work(home);
}

static void home_reconcile(struct work_struct *work)
{
	struct profil_home *home = container_of(to_delayed_work(work), struct profil_home,
						reconcile);
	bool released = READ_ONCE(home->released), again = true;

	/* The lock may be held for long, and a worker that waits would delay other work. */
	if (mutex_trylock(&home->lock)) {
		profil_home_end_sessions(home, released);
		if (released || !home->mm || profil_uncharge(home->mm, home->to_uncharge))
			home->to_uncharge = 0;
		again = home->to_uncharge;
		mutex_unlock(&home->lock);
		if (released)
			home_detach(home);
	}
	if (!again || !queue_delayed_work(profil_wq, &home->reconcile, RECONCILE_RETRY))
		home_put_work(home);
}

static struct profil_home *home_in_bucket(unsigned int bucket)
{
	struct profil_home *home = NULL;
	struct profil_space *space;

	raw_spin_lock_irq(&profil_index_lock);
	hlist_for_each_entry(space, &profil_spaces[bucket], node) {
		if (space->home && !list_empty(&space->home->sessions) &&
		    refcount_inc_not_zero(&space->home->refs)) {
			home = space->home;
			break;
		}
	}
	raw_spin_unlock_irq(&profil_index_lock);
	return home;
}

/*
 * Frees the ended sessions of all processes. No session is on, no file is open, and no probe runs.
 * The caller flushes the work that is queued on profil_wq.
 */
void profil_homes_exit(void)
{
	struct profil_home *home;
	unsigned int i;

	for (i = 0; i < 1 << PROFIL_HASH_BITS; i++) {
		while ((home = home_in_bucket(i))) {
			mutex_lock(&home->lock);
			profil_home_end_sessions(home, true);
			mutex_unlock(&home->lock);
			profil_home_put(home);
		}
	}
}
