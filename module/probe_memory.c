// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the probes of fork and exec on PREEMPT_RT. There an allocation may sleep, but a probe
 * must not, so probes take blocks from a reserve that a worker fills, charged to nobody.
 *
 * Context: profil_reserve_take() in probes (atomic); others: load, unload and workers (may sleep).
 */
#include <linux/llist.h>

#include "internal.h"

/* The fork of a process with a session takes up to four blocks. */
#define RESERVE_BLOCKS		1024

static LLIST_HEAD(reserve_blocks);
static atomic_t reserve_nr_blocks = ATOMIC_INIT(0);
static DEFINE_RAW_SPINLOCK(reserve_lock);	/* innermost; held to take a block */

void profil_reserve_fill(struct work_struct *unused)
{
	struct llist_node *block;

	while (atomic_read(&reserve_nr_blocks) < RESERVE_BLOCKS) {
		block = kzalloc(PROFIL_RESERVE_SIZE, GFP_KERNEL | __GFP_NOWARN);
		if (!block)
			return;
		llist_add(block, &reserve_blocks);
		atomic_inc(&reserve_nr_blocks);
	}
}

static DECLARE_WORK(reserve_work, profil_reserve_fill);

/* Returns zeroed memory, to be freed by kfree(); or NULL if the reserve is empty. */
void *profil_reserve_take(void)
{
	struct llist_node *block;
	unsigned long flags;

	raw_spin_lock_irqsave(&reserve_lock, flags);
	block = llist_del_first(&reserve_blocks);
	raw_spin_unlock_irqrestore(&reserve_lock, flags);
	if (block) {
		block->next = NULL;
		atomic_dec(&reserve_nr_blocks);
	}
	if (atomic_read(&reserve_nr_blocks) < RESERVE_BLOCKS / 2)
		queue_work(profil_wq, &reserve_work);
	return block;
}

/* Frees the reserve. No probe runs. */
void profil_reserve_exit(void)
{
	struct llist_node *block, *next;

	cancel_work_sync(&reserve_work);
	llist_for_each_safe(block, next, llist_del_all(&reserve_blocks))
		kfree(block);
}
