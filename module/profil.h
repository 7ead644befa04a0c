/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module know of each other.
 *
 *	space		an address space with sessions; found by its mm in the tick
 *	session		what is sampled and counted, for a space or for one of its tasks
 *	range		text addresses and where they are counted
 *	histogram	user pages, pinned, that hold the counters of ranges
 *
 * Lock order: profil_space.lock, then mmap_lock; profil_session.stale_lock,
 * spaces_lock and threads_lock (session.c) are innermost, each alone.
 */
#ifndef _PROFIL_H
#define _PROFIL_H

#include <linux/hash.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <linux/profil.h>

#include "bins.h"

#define PROFIL_MAX_RANGES	65536U
#define PROFIL_HASH_BITS	13
#define PROFIL_KEPT		256U	/* ticks kept while a buffer is looked up again */

struct file;
struct mm_struct;
struct task_struct;

/* What became of a tick; indexes profil_counts.n. */
enum profil_outcome {
	PROFIL_HIT,
	PROFIL_OUTSIDE,
	PROFIL_SATURATED,
	PROFIL_DROPPED_OVERRUN,
	PROFIL_DROPPED_BUFFER,
	PROFIL_DROPPED_CONTENDED,
	PROFIL_NR_OUTCOMES,
};

/*
 * One CPU's share of a session's statistics, written by that CPU with interrupts
 * off. A tick raises exactly one element of n, so sums over it agree at any time.
 */
struct profil_counts {
	u64 n[2][PROFIL_NR_OUTCOMES];	/* [in system mode] */
	u64 unselected;
	u64 missed;
	unsigned long due;		/* jiffies by which the next tick here follows the last */
};

/* Read by the tick; constant once published. */
struct profil_span {
	u64 start;			/* first pc */
	struct profil_bins bins;	/* for pc - start + rest; span: of pc - start alone */
	u32 rest;			/* what start - offset is beyond whole granules */
	u32 width;
	void **pages;			/* kernel addresses of the counters' pages */
	unsigned long buffer;		/* user address of counter 0; not for the tick */
};

struct profil_histogram {
	struct profil_session *session;
	struct mmu_interval_notifier notifier;
	unsigned long start;		/* user address, page aligned */
	unsigned long nr_pages;
	unsigned long nr_pinned;	/* pages[0..nr_pinned) are pinned */
	void **pages;			/* their kernel addresses */
	bool watched;			/* notifier is inserted */

	/* [stale_first, stale_end): pages to look up again; session's stale_lock */
	unsigned long stale_first, stale_end;
};

/* Bits of profil_session.slow: why a tick takes the long way */
enum {
	PROFIL_SLOW_ALWAYS,		/* not just user ticks, one range, 16 bits */
	PROFIL_SLOW_PARKED,		/* ticks are kept: see histogram.c */
	PROFIL_SLOW_THREADS,		/* the space has sessions of threads, too */
};

struct profil_session {
	/* read by the tick */
	unsigned long slow;		/* changed by atomic bit operations */
	struct profil_counts __percpu *counts;
	u32 modes;
	u32 nr_spans;			/* at least one */

	/* thread scope: the tick finds it by task */
	struct hlist_node node;
	struct task_struct *task;	/* whose run time is expected; referenced */

	u32 scope;
	u32 state;			/* enum profil_state, under space->lock */
	u32 end;			/* enum profil_end, under space->lock */
	bool orphan;			/* task has exited or exec'd */
	struct profil_space *space;	/* referenced */
	struct list_head list;		/* space->sessions */
	unsigned long charged;		/* pages, to space->mm's locked_vm */
	bool settled;			/* ended, and owes nothing */
	u64 runtime;			/* ns: at the start; once ended, what it used */

	struct profil_histogram *histograms;
	u32 nr_histograms;
	spinlock_t stale_lock;		/* what pages are stale, and PARKED */
	u32 nr_stale;			/* histograms with stale pages */
	unsigned int retries;
	unsigned long rest_until;	/* jiffies; work shall not come before */

	/* pc << 2 | system << 1 | 1 of ticks; any CPU puts, space->lock's owner takes */
	atomic_t head;
	unsigned int tail;
	u64 kept[PROFIL_KEPT];

	struct delayed_work work;
	struct rcu_work free;
	struct kref refs;

	struct profil_span spans[];	/* by start; read by the tick */
};

static inline bool profil_session_parked(const struct profil_session *s)
{
	return test_bit(PROFIL_SLOW_PARKED, &s->slow);
}

struct profil_space {
	/* read by the tick */
	struct hlist_node node;
	struct mm_struct *mm;		/* referenced (mmgrab): the key */
	struct profil_session __rcu *process;	/* profil_nobody if there is none */
	unsigned int nr_threads;	/* sessions of threads */

	struct mutex lock;		/* sessions of this space, and their life */
	struct list_head sessions;	/* on or ended */
	bool retired;			/* no longer found; start over */
	struct mmu_interval_notifier notifier;	/* tells when the mm is released */
	struct work_struct reap;
	struct kref refs;
	struct rcu_head rcu;
};

/* main.c */
extern struct workqueue_struct *profil_wq;

/* ioctl.c */
long profil_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* tick.c: how the tick is reached */
int profil_tick_init(void);
void profil_tick_exit(void);
int profil_tick_get(void);
void profil_tick_put(void);
enum profil_hook profil_tick_hook(void);
const char *profil_tick_hook_name(void);

/* sample.c: the tick */
void profil_sample(void);
void profil_replay(struct profil_session *s);
DECLARE_PER_CPU(unsigned long, profil_ticks);

/* session.c */
void profil_sessions_exit(void);
extern struct hlist_head profil_spaces[1 << PROFIL_HASH_BITS];	/* by mm */
extern struct hlist_head profil_threads[1 << PROFIL_HASH_BITS];	/* by task */
extern struct profil_session profil_nobody;
int profil_session_start(const struct profil_start *arg);
int profil_session_stop(u32 scope, struct profil_stats *stats);
int profil_session_stats(u32 scope, struct profil_stats *stats);
void profil_session_kick(struct profil_session *s);
void profil_task_gone(struct task_struct *task);

/* Cheaper than hash_ptr(), and as good: what is hashed comes from one slab. */
static __always_inline u32 profil_hash(const void *key)
{
	return hash_32((u32)(unsigned long)key, PROFIL_HASH_BITS);
}

/* Both: under RCU, or with interrupts off. NULL if there is none. */
static __always_inline struct profil_space *profil_space_find(const struct mm_struct *mm)
{
	struct profil_space *space;

	hlist_for_each_entry_rcu_notrace(space, &profil_spaces[profil_hash(mm)],
					 node)
		if (space->mm == mm)
			return space;
	return NULL;
}

static __always_inline struct profil_session *profil_thread_find(const struct task_struct *task)
{
	struct profil_session *s;

	hlist_for_each_entry_rcu_notrace(s, &profil_threads[profil_hash(task)],
					 node)
		if (s->task == task)
			return s;
	return NULL;
}

/* histogram.c */
int profil_histograms_create(struct profil_session *s, const struct profil_range *ranges);
void profil_histograms_free(struct profil_session *s);
unsigned long profil_histograms_pages(const struct profil_session *s);
int profil_histograms_check(struct profil_session *s);
int profil_histograms_pin(struct profil_session *s);
int profil_histograms_refresh(struct profil_session *s);
void profil_histograms_unpin(struct profil_session *s);

/* follow.c */
int profil_follow_init(void);
void profil_follow_exit(void);

#endif /* _PROFIL_H */
