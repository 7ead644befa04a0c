// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the probes of fork and exec. These may not sleep, and on PREEMPT_RT whoever
 * allocates may: there they take a piece that a worker has laid in. It is charged to nobody, since
 * the worker cannot know to whom.
 */
#include <linux/llist.h>

#include "profil.h"

/* A child with a session takes four: these suffice for 256. */
#define PIECES		1024

static LLIST_HEAD(pieces);
static atomic_t nr_pieces = ATOMIC_INIT(0);
static DEFINE_RAW_SPINLOCK(reserve_lock);	/* innermost; for those who take */

static void fill(struct work_struct *unused)
{
	struct llist_node *piece;

	while (atomic_read(&nr_pieces) < PIECES) {
		piece = kzalloc(PROFIL_RESERVE_SIZE, GFP_KERNEL | __GFP_NOWARN);
		if (!piece)
			return;
		llist_add(piece, &pieces);
		atomic_inc(&nr_pieces);
	}
}

static DECLARE_WORK(filling, fill);

/* Zeroed memory that kfree() takes, or NULL: too many took some of late. */
void *profil_reserve_take(void)
{
	struct llist_node *piece;
	unsigned long flags;

	raw_spin_lock_irqsave(&reserve_lock, flags);
	piece = llist_del_first(&pieces);
	raw_spin_unlock_irqrestore(&reserve_lock, flags);
	if (piece) {
		piece->next = NULL;
		atomic_dec(&nr_pieces);
	}
	if (atomic_read(&nr_pieces) < PIECES / 2)
		queue_work(profil_wq, &filling);
	return piece;
}

void profil_reserve_init(void)
{
	fill(NULL);
}

/* No probe runs. */
void profil_reserve_exit(void)
{
	struct llist_node *piece, *next;

	cancel_work_sync(&filling);
	llist_for_each_safe(piece, next, llist_del_all(&pieces))
		kfree(piece);
}
