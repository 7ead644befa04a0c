// SPDX-License-Identifier: GPL-2.0
/*
 * Counters and statistics of a session with a descriptor, as they are at one moment.
 *
 * All ticks that would raise a counter are deferred while the pinned pages are copied. The caller's
 * memory is made present before the lock is taken; under the lock it is written to without a
 * fault, and if it has been taken away again, all begins anew.
 *
 * Context: system calls of the session's creator.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "profil.h"

#define TRIES	16	/* if memory is taken away all the time, or is not there */

/* What is copied at once: all in one page of @from. */
struct segment {
	void *counters;		/* NULL: nothing counts there, or no more */
	void __user *from, *to;	/* @to may be NULL */
	size_t n;
	void *bounce;		/* a page */
	bool reset;
};

/*
 * Without a lock: this may wait for user space. What is at @from need not be mapped any more, if
 * it is pinned.
 */
static int segment_fault_in(struct profil_session *s, const struct segment *seg)
{
	if (seg->reset)
		fault_in_safe_writeable(seg->from, seg->n);
	else
		fault_in_readable(seg->from, seg->n);
	return seg->to && fault_in_safe_writeable(seg->to, seg->n) ? -EFAULT : 0;
}

static int segment_copy(struct profil_session *s, const struct segment *seg)
{
	const void *counters = seg->counters;

	if (!counters) {
		counters = seg->bounce;
		if (copy_from_user_nofault(seg->bounce, seg->from, seg->n))
			return -EAGAIN;
		/* Nothing is reset if this cannot be: then its page cannot be written to. */
		if (seg->reset && copy_to_user_nofault(seg->from, seg->bounce, 1))
			return -EAGAIN;
	}
	return seg->to && copy_to_user_nofault(seg->to, counters, seg->n) ? -EAGAIN : 0;
}

static int segment_clear(struct profil_session *s, const struct segment *seg)
{
	if (seg->counters) {
		memset(seg->counters, 0, seg->n);
		return 0;
	}
	memset(seg->bounce, 0, seg->n);
	return copy_to_user_nofault(seg->from, seg->bounce, seg->n) ? -EFAULT : 0;
}

/* Of @s, under its lock, or just of the caller's memory, if that is NULL. */
static int copy_for_each(struct profil_session *s, const struct profil_copy *copy,
			 struct segment *seg,
			 int (*act)(struct profil_session *s, const struct segment *seg))
{
	unsigned long from = copy->from, to = copy->to, left = copy->bytes;
	int err = 0;

	while (left && !err) {
		seg->n = min(left, PAGE_SIZE - offset_in_page(from));
		seg->from = (void __user *)from;
		seg->to = (void __user *)to;
		seg->counters = s ? profil_histogram_counter(s, from, seg->n) : NULL;
		err = fatal_signal_pending(current) ? -EINTR : act(s, seg);
		from += seg->n;
		left -= seg->n;
		if (to)
			to += seg->n;
		cond_resched();
	}
	return err;
}

static int copies_for_each(struct profil_session *s, const struct profil_copy *copies, u32 nr,
			   struct segment *seg,
			   int (*act)(struct profil_session *s, const struct segment *seg))
{
	int err = 0;
	u32 i;

	for (i = 0; i < nr && !err; i++)
		err = copy_for_each(s, &copies[i], seg, act);
	return err;
}

/* -EAGAIN: memory of the caller's is not present. */
static int snapshot_try(struct file *file, const struct profil_copy *copies, u32 nr,
			struct segment *seg, struct profil_stats *stats)
{
	struct profil_session *s;
	int err;

	err = copies_for_each(NULL, copies, nr, seg, segment_fault_in);
	if (err)
		return err;
	s = profil_descriptor_lock_own(file);
	if (IS_ERR(s))
		return PTR_ERR(s);
	profil_session_park(s);
	err = copies_for_each(s, copies, nr, seg, segment_copy);
	if (!err) {
		profil_session_read(s, stats, seg->reset);
		if (seg->reset)
			err = copies_for_each(s, copies, nr, seg, segment_clear);
	}
	profil_session_unpark(s);
	profil_descriptor_unlock(s);
	return err;
}

static bool copy_fits(u64 address, u64 bytes)
{
	u64 end;

	return address == (unsigned long)address && !check_add_overflow(address, bytes, &end) &&
	       access_ok((void __user *)(unsigned long)address, bytes);
}

static int copies_check(const struct profil_copy *copies, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (copies[i].from % 2 || copies[i].bytes % 2)
			return -EINVAL;
		if (!copy_fits(copies[i].from, copies[i].bytes) ||
		    !copy_fits(copies[i].to, copies[i].bytes))
			return -EFAULT;
	}
	return 0;
}

/* @stats is zero; it gets the statistics. */
int profil_descriptor_snapshot(struct file *file, const struct profil_snapshot *arg,
			       struct profil_stats *stats)
{
	struct segment seg = { .reset = arg->flags & PROFIL_SNAPSHOT_RESET };
	struct profil_copy *copies = NULL;
	unsigned int tries = TRIES;
	int err;

	if (arg->nr_copies) {
		copies = profil_array_from_user(arg->copies, arg->nr_copies, sizeof(*copies));
		if (IS_ERR(copies))
			return PTR_ERR(copies);
	}
	err = copies_check(copies, arg->nr_copies);
	if (err)
		goto free;
	err = -ENOMEM;
	seg.bounce = (void *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!seg.bounce)
		goto free;
	do {
		err = snapshot_try(file, copies, arg->nr_copies, &seg, stats);
	} while (err == -EAGAIN && --tries);
	if (err == -EAGAIN)
		err = -EFAULT;
	free_page((unsigned long)seg.bounce);
free:
	kvfree(copies);
	return err;
}
