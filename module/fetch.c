// SPDX-License-Identifier: GPL-2.0
/*
 * The classic session of a process, as others may read it: its ranges, and their counters.
 *
 * The pinned pages are copied, not the process's memory, to memory of our own: under home->lock
 * nothing is waited for that a user has a hand in, neither the process, which may be stopped,
 * nor the caller. Each page is copied once, however many ranges count there, so that this takes
 * no more memory than the process has locked.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "profil.h"

#define TRIES	100U	/* if ranges change, or calls are made, all the time */
#define WAIT	max(HZ / 100, 1)

struct fetch {
	struct profil_stats *stats;
	struct profil_range *ranges;	/* room for nr_ranges; or NULL: only look */
	unsigned long *places;		/* where in image each one's counters begin; */
	void *image;			/* and for nr_pages; or NULL: not the counters */
	u32 nr_ranges;
	u64 nr_bytes;			/* of all counters, as the caller gets them */
	unsigned long nr_pages;
	bool copied;
	unsigned int tries;		/* that are left */
	u64 period;
	u64 taken;
};

static u64 data_bytes(const struct profil_table *table)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < table->nr_ranges; i++)
		bytes += ALIGN(table->spans[i].bytes, 8);
	return bytes;
}

/* Copies all there is, as it is at one moment. */
static void session_copy(struct profil_session *s, const struct profil_table *table,
			 struct fetch *fetch)
{
	u32 i;

	set_bit(PROFIL_SLOW_PARKED, &s->slow);
	/* Not the normal, long one: only so many ticks are kept. */
	synchronize_rcu_expedited();
	profil_histograms_copy(s, fetch->image);
	for (i = 0; i < table->nr_ranges; i++)
		fetch->places[i] = profil_span_place(&table->spans[i]);
	profil_session_read(s, fetch->stats, false);
	if (profil_histograms_refresh(s))
		profil_session_kick(s);
}

/* Copies, if there is room, what there is; and tells how much that is. -EAGAIN: not now. */
static int session_fetch(struct profil_session *s, struct fetch *fetch)
{
	struct profil_table *table;
	unsigned long pages;
	u64 bytes;

	if (s->state == PROFIL_STATE_ENDED)
		return -ENODEV;
	if (s->young || profil_session_parked(s)) {
		profil_session_kick(s);
		return -EAGAIN;
	}
	table = profil_table_of(s, s->home->id, NULL);
	if (!table)
		return -EAGAIN;		/* it is about to end */
	bytes = data_bytes(table);
	pages = profil_histograms_total(s);
	if (fetch->ranges && table->nr_ranges == fetch->nr_ranges && bytes == fetch->nr_bytes &&
	    pages == fetch->nr_pages) {
		profil_table_describe(table, fetch->ranges);
		fetch->copied = true;
	}
	if (fetch->copied && fetch->image)
		session_copy(s, table, fetch);
	else
		profil_session_read(s, fetch->stats, false);
	fetch->nr_ranges = table->nr_ranges;
	fetch->nr_bytes = bytes;
	fetch->nr_pages = pages;
	fetch->period = s->period;
	fetch->taken = s->taken_pcs;
	profil_table_put(table);
	return 0;
}

static int space_fetch(struct profil_space *space, struct fetch *fetch)
{
	struct profil_session *s;
	int err = -EINVAL;

	/* A call of the process itself may wait for user space with it, as long as that likes. */
	if (!mutex_trylock(&space->lock))
		return -EAGAIN;
	memset(fetch->stats, 0, sizeof(*fetch->stats));
	s = profil_session_classic(space, PROFIL_SCOPE_PROCESS);
	if (s) {
		if (current->mm == space->mm)
			profil_session_follow(s);
		err = session_fetch(s, fetch);
	}
	mutex_unlock(&space->lock);
	return err;
}

static int space_fetch_patiently(struct profil_space *space, struct fetch *fetch)
{
	int err;

	while (fetch->tries) {
		fetch->tries--;
		err = space_fetch(space, fetch);
		if (err != -EAGAIN)
			return err;
		schedule_timeout_killable(WAIT);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return -EFAULT;
}

/* The address space of the process that is meant, which keeps its users. */
static struct mm_struct *process_mm(pid_t pid)
{
	struct task_struct *task = profil_target_find(pid, false);
	struct mm_struct *mm = ERR_PTR(-EINTR);

	if (!task)
		return ERR_PTR(-ESRCH);
	if (down_read_killable(&task->signal->exec_update_lock))
		goto put_task;
	mm = profil_target_mm(&task, false);
	if (!mm) {
		mm = ERR_PTR(-ESRCH);
	} else if (!profil_target_may_fetch(task, mm)) {
		mmput_async(mm);
		mm = ERR_PTR(-EPERM);
	}
	up_read(&task->signal->exec_update_lock);
put_task:
	put_task_struct(task);
	return mm;
}

static int copy_out(u64 address, const void *from, u64 bytes)
{
	if (address != (unsigned long)address ||
	    copy_to_user((void __user *)(unsigned long)address, from, bytes))
		return -EFAULT;
	return 0;
}

static void fetch_free(struct fetch *fetch)
{
	kvfree(fetch->image);
	kvfree(fetch->places);
	kvfree(fetch->ranges);
	fetch->image = NULL;
	fetch->places = NULL;
	fetch->ranges = NULL;
}

static bool fits(const struct profil_fetch *arg, const struct fetch *fetch)
{
	return (arg->ranges || arg->data) &&
	       (!arg->ranges || fetch->nr_ranges <= arg->nr_ranges) &&
	       (!arg->data || fetch->nr_bytes <= arg->nr_bytes);
}

/* Asks first how much there is, and makes room for that, until it is that much. */
static int fetch_all(struct profil_space *space, const struct profil_fetch *arg,
		     struct fetch *fetch)
{
	int err;

	do {
		fetch_free(fetch);
		err = space_fetch_patiently(space, fetch);
		if (err || !fits(arg, fetch))
			return err;
		fetch->ranges = kvcalloc(fetch->nr_ranges + 1, sizeof(*fetch->ranges),
					 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		fetch->places = kvcalloc(fetch->nr_ranges + 1, sizeof(*fetch->places),
					 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (arg->data)
			fetch->image = kvmalloc_array(fetch->nr_pages + 1, PAGE_SIZE,
						      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!fetch->ranges || !fetch->places || (arg->data && !fetch->image))
			return -ENOMEM;
		err = space_fetch_patiently(space, fetch);
	} while (!err && !fetch->copied);
	return err;
}

/* The counters of all ranges, one after the other; what fills up to 8 bytes is 0. */
static int data_copy_out(u64 to, const struct fetch *fetch)
{
	u64 bytes, room;
	int err = 0;
	u32 i;

	for (i = 0; i < fetch->nr_ranges && !err; i++) {
		bytes = fetch->ranges[i].nr_counters * fetch->ranges[i].width;
		room = ALIGN(bytes, 8);
		err = copy_out(to, fetch->image + fetch->places[i], bytes);
		if (!err && clear_user((void __user *)(unsigned long)(to + bytes), room - bytes))
			err = -EFAULT;
		if (fatal_signal_pending(current))
			err = -EINTR;
		to += room;
		cond_resched();
	}
	return err;
}

static int fetch_copy_out(struct profil_fetch *arg, const struct fetch *fetch)
{
	int err = 0;

	if (fetch->copied && arg->ranges)
		err = copy_out(arg->ranges, fetch->ranges,
			       fetch->nr_ranges * sizeof(*fetch->ranges));
	if (fetch->copied && arg->data && !err)
		err = data_copy_out(arg->data, fetch);
	arg->nr_ranges = fetch->nr_ranges;
	arg->nr_bytes = fetch->nr_bytes;
	arg->period = fetch->period;
	arg->taken = fetch->taken;
	return err;
}

/* @stats gets the statistics. */
int profil_session_fetch(struct profil_fetch *arg, struct profil_stats *stats)
{
	struct mm_struct *mm = process_mm(arg->pid);
	struct fetch fetch = { .stats = stats, .tries = TRIES };
	struct profil_space *space;
	int err = -EINVAL;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	space = profil_space_get(mm, false);
	if (space)
		err = fetch_all(space, arg, &fetch);
	/* The caller's memory may be long in coming: the target need not last until then. */
	mmput_async(mm);
	if (!err)
		err = fetch_copy_out(arg, &fetch);
	fetch_free(&fetch);
	if (space)
		profil_space_put(space);
	return err;
}
