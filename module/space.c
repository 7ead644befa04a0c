// SPDX-License-Identifier: GPL-2.0
/*
 * The address spaces in which sessions sample. The tick finds a space by the mm of current.
 *
 * profil_index_lock protects the lists and trees that link spaces, bindings and targets. The tick
 * reads the links under RCU.
 *
 * Context: any but the tick; profil_space_update_fast_table() under profil_index_lock.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "profil.h"

DEFINE_RAW_SPINLOCK(profil_index_lock);
struct hlist_head profil_spaces[1 << PROFIL_HASH_BITS];
static u64 last_space_id;

static void space_free(struct work_struct *work)
{
	struct profil_space *space = container_of(to_rcu_work(work), struct profil_space, free);

	mmdrop(space->mm);
	kfree(space);
}

static struct profil_space *space_alloc(struct mm_struct *mm, gfp_t gfp)
{
	struct profil_space *space = profil_zalloc(sizeof(*space), gfp);

	if (!space)
		return NULL;
	mmgrab(mm);
	space->mm = mm;
	INIT_HLIST_HEAD(&space->bindings);
	INIT_LIST_HEAD(&space->pending);
	mutex_init(&space->setup_lock);
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
 * the only session that samples a task in @space, if
 *
 *	- the targets of this session here are processes, and
 *	- the session owns the table: a PENDING session has its parent's, with the parent's pages.
 *
 * Otherwise fast_table is profil_empty_table, with which no tick is plain, so that the tick visits
 * space->bindings and the targets. The tick reads the state of the session in session->slow.
 */
void profil_space_update_fast_table(struct profil_space *space)
{
	struct profil_table *fast = &profil_empty_table, *table;
	struct profil_binding *b, *one = NULL;
	unsigned int n = 0;

	lockdep_assert_held(&profil_index_lock);
	hlist_for_each_entry(b, &space->bindings, node) {
		if (b->nr_processes) {
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
