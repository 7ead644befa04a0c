// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots: the counters and statistics of a descriptor session, as they are at one moment.
 *
 * The session is parked while the pinned pages are copied, under home->lock, without page faults.
 * If memory is not present, it is faulted in without the lock, and the snapshot starts again.
 *
 * Context: system calls of the session's creator (may sleep).
 */
#include <linux/pagemap.h>

#include "internal.h"

#define TRIES	16	/* attempts, since memory may not stay present */
#define MAX_ABSENT	65536	/* pages of counters that are not mapped */

struct snapshot {
	struct profil_session *s;	/* locked; NULL while memory is faulted in */
	struct profil_copy *copies;
	u32 nr;
	bool reset;
	void *bounce;			/* a page */
	unsigned int nr_absent;		/* segments that could not be faulted in */

	/* the position: the beginning, or the segment that failed */
	u32 i;
	u64 done;			/* bytes of copies[i] */

	/* the segment at this position, which is within one page */
	void *counters;			/* its kernel address; NULL: not in a histogram */
	void __user *from, *to;		/* to may be NULL */
	size_t n;
};

/* Runs without home->lock, since faults may wait for user space. Pinned pages may be unmapped. */
static int segment_fault_in(struct snapshot *snap)
{
	size_t absent = snap->reset ? fault_in_safe_writeable(snap->from, snap->n) :
				      fault_in_readable(snap->from, snap->n);

	if (absent && ++snap->nr_absent > MAX_ABSENT)
		return -EFAULT;
	return snap->to && fault_in_safe_writeable(snap->to, snap->n) ? -EFAULT : 0;
}

static int segment_copy(struct snapshot *snap)
{
	const void *counters = snap->counters;

	if (!counters) {
		counters = snap->bounce;
		if (copy_from_user_nofault(snap->bounce, snap->from, snap->n))
			return -EAGAIN;
		/* If the page cannot be written, this fails before anything is reset. */
		if (snap->reset && copy_to_user_nofault(snap->from, snap->bounce, 1))
			return -EAGAIN;
	}
	return snap->to && copy_to_user_nofault(snap->to, counters, snap->n) ? -EAGAIN : 0;
}

static int segment_clear(struct snapshot *snap)
{
	if (snap->counters) {
		memset(snap->counters, 0, snap->n);
		return 0;
	}
	memset(snap->bounce, 0, snap->n);
	return copy_to_user_nofault(snap->from, snap->bounce, snap->n) ? -EFAULT : 0;
}

static int segment_apply(struct snapshot *snap, const struct profil_copy *copy,
			 int (*act)(struct snapshot *snap))
{
	unsigned long from = copy->from + snap->done, to = copy->to ? copy->to + snap->done : 0;

	snap->n = min_t(u64, copy->bytes - snap->done, PAGE_SIZE - offset_in_page(from));
	snap->from = (void __user *)from;
	snap->to = (void __user *)to;
	snap->counters = snap->s ?
			 profil_histogram_counter(snap->s, untagged_addr(from), snap->n) : NULL;
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : act(snap);
}

/* Applies @act to all segments from the position on, and after success returns to the beginning. */
static int snapshot_walk(struct snapshot *snap, int (*act)(struct snapshot *snap))
{
	const struct profil_copy *copy;
	int err;

	for (; snap->i < snap->nr; snap->i++, snap->done = 0) {
		copy = &snap->copies[snap->i];
		for (; snap->done < copy->bytes; snap->done += snap->n) {
			err = segment_apply(snap, copy, act);
			if (err)
				return err;
		}
	}
	snap->i = 0;
	return 0;
}

/* Takes the snapshot. Return: -EAGAIN if the caller's memory at the position is not present. */
static int snapshot_take(struct snapshot *snap, struct file *file, struct profil_stats *stats)
{
	struct profil_session *s = profil_descriptor_lock_own(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	profil_session_park(s);
	snap->s = s;
	err = snapshot_walk(snap, segment_copy);
	if (!err) {
		profil_stats_read(s, stats, snap->reset);
		if (snap->reset)
			err = snapshot_walk(snap, segment_clear);
	}
	snap->s = NULL;
	profil_session_unpark(s);
	mutex_unlock(&s->home->lock);
	return err;
}

static int snapshot_read_copies(struct profil_copy *copies, u64 from, u32 nr)
{
	const struct profil_copy *copy;
	u64 room = PROFIL_MAX_COPIED;

	if (copy_from_user(copies, u64_to_user_ptr(from), nr * sizeof(*copies)))
		return -EFAULT;
	for (copy = copies; copy < copies + nr; copy++) {
		if (copy->from % 2 || copy->bytes % 2)
			return -EINVAL;
		if (!access_ok(u64_to_user_ptr(copy->from), copy->bytes) ||
		    !access_ok(u64_to_user_ptr(copy->to), copy->bytes))
			return -EFAULT;
		if (copy->bytes > room)
			return -EINVAL;
		room -= copy->bytes;
	}
	return 0;
}

int profil_descriptor_snapshot(struct file *file, void *data, struct profil_stats *stats)
{
	const struct profil_snapshot *arg = data;
	struct snapshot snap = {
		.nr = arg->nr_copies,
		.reset = arg->flags & PROFIL_SNAPSHOT_RESET,
	};
	unsigned int tries = TRIES;
	int err = -ENOMEM;

	if (arg->nr_copies > PROFIL_MAX_COPIES)
		return -EINVAL;
	/* Charged, unlike the memory of vmemdup_user(): user space can delay the copy for ever. */
	snap.copies = kvmalloc_array(snap.nr, sizeof(*snap.copies), GFP_KERNEL_ACCOUNT);
	snap.bounce = (void *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (snap.copies && snap.bounce)
		err = snapshot_read_copies(snap.copies, arg->copies, snap.nr) ?:
		      snapshot_take(&snap, file, stats);
	while (err == -EAGAIN && tries--)
		err = snapshot_walk(&snap, segment_fault_in) ?: snapshot_take(&snap, file, stats);
	free_page((unsigned long)snap.bounce);
	kvfree(snap.copies);
	return err == -EAGAIN ? -EFAULT : err;
}
