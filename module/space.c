// SPDX-License-Identifier: GPL-2.0
/*
 * The address spaces in which sessions sample, and the sessions of the processes there.
 *
 * profil_index_lock protects the links between spaces, bindings and targets, which the tick reads
 * under RCU. The home of a session is the space with its buffers, whose mm they are charged to.
 * When the mm is released, a worker ends the sessions. A notifier reports the release. It is
 * registered before the space gets its first session, and references the space until the release.
 * A space without a notifier exists as long as bindings or callers reference it.
 *
 * Context: system calls, task work, workers (may sleep); profil_space_get(), profil_space_put(),
 * profil_space_kick(): any; profil_space_update_fast_table(): under profil_index_lock.
 */
#include "internal.h"

#define SPACE_RETRY	max(HZ / 10, 1)

DEFINE_RAW_SPINLOCK(profil_index_lock);
struct hlist_head profil_spaces[1 << PROFIL_HASH_BITS];
static u64 last_space_id;

static void space_free(struct work_struct *work)
{
	struct profil_space *space = container_of(to_rcu_work(work), struct profil_space, free);

	if (!space->dropped)
		mmdrop(space->mm);
	kfree(space);
}

static void space_end_sessions(struct work_struct *work);

static struct profil_space *space_alloc(struct mm_struct *mm, gfp_t gfp)
{
	struct profil_space *space = profil_zalloc(sizeof(*space), gfp);

	if (!space)
		return NULL;
	mmgrab(mm);
	space->mm = mm;
	INIT_HLIST_HEAD(&space->bindings);
	INIT_LIST_HEAD(&space->sessions);
	mutex_init(&space->lock);
	mutex_init(&space->setup_lock);
	INIT_DELAYED_WORK(&space->end, space_end_sessions);
	INIT_RCU_WORK(&space->free, space_free);
	RCU_INIT_POINTER(space->fast_table, &profil_empty_table);
	refcount_set(&space->refs, 1);
	return space;
}

/* Finds the space of @mm, referenced, or creates it unless @gfp is 0. Returns NULL on failure. */
struct profil_space *profil_space_get(struct mm_struct *mm, gfp_t gfp)
{
	struct profil_space *space, *other;
	unsigned long flags;

	rcu_read_lock();
	space = profil_space_find(mm);
	if (space && !refcount_inc_not_zero(&space->refs))
		space = NULL;
	rcu_read_unlock();
	if (space || !gfp)
		return space;

	space = space_alloc(mm, gfp);
	if (!space)
		return NULL;
	raw_spin_lock_irqsave(&profil_index_lock, flags);
	other = profil_space_find(mm);
	if (other && !refcount_inc_not_zero(&other->refs))
		other = NULL;		/* it will be unlinked; look-ups find the new one first */
	if (!other) {
		space->id = ++last_space_id;
		hlist_add_head_rcu(&space->node, &profil_spaces[profil_hash(mm)]);
	}
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	if (!other)
		return space;
	profil_space_put(space);
	return other;
}

/* Drops a reference. Must not be called under profil_index_lock. */
void profil_space_put(struct profil_space *space)
{
	unsigned long flags;

	if (!refcount_dec_and_test(&space->refs))
		return;
	raw_spin_lock_irqsave(&profil_index_lock, flags);
	if (!hlist_unhashed(&space->node))
		hlist_del_init_rcu(&space->node);
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	queue_rcu_work(profil_wq, &space->free);
}

/*
 * Must be called when bindings or targets in @space have changed. space->fast_table is the table of
 * the only session that samples a task in @space, if its targets here are processes, and the table
 * is not that of its parent (PENDING). Otherwise it is profil_empty_table: no tick is plain.
 */
void profil_space_update_fast_table(struct profil_space *space)
{
	struct profil_table *fast = &profil_empty_table, *table;
	struct profil_binding *b, *one = NULL;
	unsigned int n = 0;

	lockdep_assert_held(&profil_index_lock);
	hlist_for_each_entry(b, &space->bindings, node) {
		if (b->samples_all) {
			one = b;
			n++;
		}
	}
	if (n == 1 && !space->nr_threads) {
		table = rcu_dereference_protected(one->table, lockdep_is_held(&profil_index_lock));
		if (table->session == one->session)
			fast = table;
	}
	rcu_assign_pointer(space->fast_table, fast);
}

static atomic_t nr_notifiers = ATOMIC_INIT(0);

/* Ends the reference of the notifier, a grace period later. */
static void space_unwatch(struct profil_space *space)
{
	if (xchg(&space->watched, false))
		mmu_notifier_put(&space->notifier);
}

static void space_released(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct profil_space *space = container_of(notifier, struct profil_space, notifier);

	WRITE_ONCE(space->released, true);
	profil_space_kick(space);
	space_unwatch(space);
}

static void space_free_notifier(struct mmu_notifier *notifier)
{
	profil_space_put(container_of(notifier, struct profil_space, notifier));
	if (atomic_dec_and_test(&nr_notifiers))
		wake_up_var(&nr_notifiers);
}

static const struct mmu_notifier_ops space_ops = {
	.release = space_released,
	.free_notifier = space_free_notifier,
};

static int space_register_notifier(struct profil_space *space)
{
	int err = 0;

	if (mmap_write_lock_killable(space->mm))
		return -EINTR;
	if (!space->watched) {
		space->notifier.ops = &space_ops;
		err = __mmu_notifier_register(&space->notifier, space->mm);
		if (!err) {
			atomic_inc(&nr_notifiers);
			refcount_inc(&space->refs);
			WRITE_ONCE(space->watched, true);
		}
	}
	mmap_write_unlock(space->mm);
	return err;
}

/*
 * Registers the notifier of the caller's space, unless it is registered. That fails while a signal
 * is pending. So signals are blocked: otherwise a program that gets a signal at each tick would
 * never set up its inherited session. Return: 0; -ENOMEM; -EINTR if killed; or -ERESTARTNOINTR.
 */
int profil_space_watch(struct profil_space *space)
{
	bool pending = signal_pending(current);
	sigset_t blocked, before;
	int err;

	if (READ_ONCE(space->watched))
		return 0;
	siginitsetinv(&blocked, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_BLOCK, &blocked, &before);
	err = space_register_notifier(space);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/*
	 * sigprocmask() may have cleared this flag. Without it, the kernel does not restart a call
	 * that returns -ERESTART*: this one, or the one that runs setup_work() before its return.
	 */
	if (pending || err == -EINTR)
		set_thread_flag(TIF_SIGPENDING);
	return err == -EINTR && !fatal_signal_pending(current) ? -ERESTARTNOINTR : err;
}

/*
 * Drops the mm, which is released: the space may remain, for open descriptors. A reader that is
 * still comparing its own mm with the key has an mm that exists, so this is not the dropped one.
 */
static void space_drop_mm(struct profil_space *space)
{
	lockdep_assert_held(&space->lock);
	if (space->dropped)
		return;
	raw_spin_lock_irq(&profil_index_lock);
	hlist_del_init_rcu(&space->node);
	raw_spin_unlock_irq(&profil_index_lock);
	WRITE_ONCE(space->dropped, true);
	mmdrop(space->mm);
}

bool profil_space_is_own(const struct profil_space *space)
{
	return current->mm && current->mm == profil_space_mm(space);
}

/*
 * Sets up the session that the caller has inherited. Return: its space, referenced, and watched if
 * @create, to get sessions; NULL if it has none; or an error pointer: see profil_space_watch().
 */
struct profil_space *profil_space_get_own(bool create)
{
	struct profil_space *space = profil_space_get(current->mm, create ? GFP_KERNEL_ACCOUNT : 0);
	int err;

	if (!space)
		return create ? ERR_PTR(-ENOMEM) : NULL;
	err = profil_pending_set_up(space);
	if (!err && create)
		err = profil_space_watch(space);
	if (!err)
		return space;
	profil_space_put(space);
	return ERR_PTR(err);
}

/* Ends the sessions of @space whose owner is gone; @all: all sessions. Needs one grace period. */
void profil_space_end_sessions(struct profil_space *space, bool all)
{
	struct profil_session *s, *next;
	bool wait = false;

	lockdep_assert_held(&space->lock);
	list_for_each_entry(s, &space->sessions, list) {
		if (s->phase == PROFIL_LIVE && (all || READ_ONCE(s->owner_gone))) {
			profil_session_quiesce(s);
			wait |= !profil_session_is_quiet(s);
		}
		cond_resched();
	}
	if (wait)
		synchronize_rcu();
	list_for_each_entry_safe(s, next, &space->sessions, list) {
		bool open = !s->classic && !READ_ONCE(s->owner_gone);

		if (s->phase == PROFIL_QUIESCED)
			profil_session_finish(s, open ? PROFIL_END_CREATOR : PROFIL_END_NONE);
		if (s->phase == PROFIL_ENDED && (READ_ONCE(s->owner_gone) || (all && !open)))
			profil_session_unlist(s);
		cond_resched();
	}
}

/* Drops the references of queued work to the space and to the module. */
static void space_put_work(struct profil_space *space)
{
	profil_space_put(space);
	module_put(THIS_MODULE);
}

static void space_end_sessions(struct work_struct *work)
{
	struct profil_space *space = container_of(to_delayed_work(work), struct profil_space, end);
	bool released = READ_ONCE(space->released);

	/* Waiting would delay other work; but after the release, a trylock could fail for ever. */
	if (released)
		mutex_lock(&space->lock);
	if (released || mutex_trylock(&space->lock)) {
		profil_space_end_sessions(space, released);
		if (released)
			space_drop_mm(space);
		mutex_unlock(&space->lock);
		space_put_work(space);
	} else if (!queue_delayed_work(profil_wq, &space->end, SPACE_RETRY)) {
		space_put_work(space);
	}
}

/* Makes a worker end the sessions of @space that must end. */
void profil_space_kick(struct profil_space *space)
{
	/* If the module is being unloaded, profil_spaces_exit() does the work. */
	if (!try_module_get(THIS_MODULE))
		return;
	if (!refcount_inc_not_zero(&space->refs))
		module_put(THIS_MODULE);
	else if (!queue_delayed_work(profil_wq, &space->end, 0))
		space_put_work(space);
}

static struct profil_space *space_in_bucket(unsigned int bucket)
{
	struct profil_space *space;

	raw_spin_lock_irq(&profil_index_lock);
	hlist_for_each_entry(space, &profil_spaces[bucket], node)
		if ((READ_ONCE(space->watched) || !list_empty(&space->sessions)) &&
		    refcount_inc_not_zero(&space->refs))
			break;
	raw_spin_unlock_irq(&profil_index_lock);
	return space;
}

/* Frees all ended sessions, and the notifiers. The caller then flushes profil_wq. No probe runs. */
void profil_spaces_exit(void)
{
	struct profil_space *space;
	unsigned int i;

	for (i = 0; i < 1 << PROFIL_HASH_BITS; i++) {
		while ((space = space_in_bucket(i))) {
			mutex_lock(&space->lock);
			profil_space_end_sessions(space, true);
			mutex_unlock(&space->lock);
			space_unwatch(space);
			profil_space_put(space);
		}
	}
	/* Waits for space_released(), then for space_free_notifier(), and for its return. */
	mmu_notifier_synchronize();
	wait_var_event(&nr_notifiers, !atomic_read(&nr_notifiers));
	synchronize_rcu();
}
