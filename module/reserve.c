// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the probes of fork and exec. These may not sleep, and on PREEMPT_RT whoever
 * allocates may: there they take what a worker has laid in. It is charged to nobody, since
 * the worker cannot know to whom.
 */
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "profil.h"

#define PIECES		256U

static struct reserve {
	size_t size;
	unsigned int nr;
	void *pieces[PIECES];
} reserves[] = {
	{ .size = sizeof(struct profil_member) },
	{ .size = sizeof(struct profil_watch) },
	{ .size = sizeof(struct profil_space) },
	{ .size = sizeof(struct profil_session) },
};

static DEFINE_RAW_SPINLOCK(reserve_lock);	/* innermost */

/* Nobody else adds to them. */
static void fill(struct work_struct *unused)
{
	struct reserve *r;
	void *piece;

	for (r = reserves; r < reserves + ARRAY_SIZE(reserves); r++) {
		while (READ_ONCE(r->nr) < PIECES) {
			piece = kzalloc(r->size, GFP_KERNEL | __GFP_NOWARN);
			if (!piece)
				return;
			raw_spin_lock_irq(&reserve_lock);
			r->pieces[r->nr] = piece;
			WRITE_ONCE(r->nr, r->nr + 1);
			raw_spin_unlock_irq(&reserve_lock);
		}
	}
}

static DECLARE_WORK(filling, fill);

static void *take(struct reserve *r)
{
	unsigned long flags;
	void *piece = NULL;

	raw_spin_lock_irqsave(&reserve_lock, flags);
	if (r->nr) {
		WRITE_ONCE(r->nr, r->nr - 1);
		piece = r->pieces[r->nr];
	}
	raw_spin_unlock_irqrestore(&reserve_lock, flags);
	return piece;
}

/**
 * profil_reserve_take - Zeroed memory, for a probe
 * @size: Of one of the four kinds that are laid in.
 *
 * Return: what kfree() takes, or NULL: too many took some of late.
 */
void *profil_reserve_take(size_t size)
{
	struct reserve *r;
	void *piece;

	for (r = reserves; r < reserves + ARRAY_SIZE(reserves); r++) {
		if (r->size != size)
			continue;
		piece = take(r);
		if (READ_ONCE(r->nr) < PIECES / 2)
			queue_work(profil_wq, &filling);
		return piece;
	}
	WARN_ON_ONCE(1);	/* none of these */
	return NULL;
}

void profil_reserve_init(void)
{
	fill(NULL);
}

/* No probe runs. */
void profil_reserve_exit(void)
{
	struct reserve *r;

	cancel_work_sync(&filling);
	for (r = reserves; r < reserves + ARRAY_SIZE(reserves); r++)
		while (r->nr)
			kfree(r->pieces[--r->nr]);
}
