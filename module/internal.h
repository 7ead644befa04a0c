/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data structures of the module, and the functions that its files offer to each other.
 *
 *	mm ---> space --bindings--> binding --session--> session --home--> space
 *	                              | table -> spans[] -> histogram{pages[]} <- session.histograms
 *	task ---> target -------------^   (one for each process or thread)
 *
 *	space		an address space (mm), which the tick finds by the mm of current; the home
 *			of the sessions whose buffers are there, with their lock
 *	binding		a session bound to a space, with its ranges there
 *	target		a process or thread that a session samples; it runs in one space at a time
 *	session		the rules for sampling (clock, modes, fork, exec), and the statistics
 *	table, spans	the ranges of a session in a space, compiled for the tick
 *	histogram	pinned user pages that contain the counters of ranges
 *
 * A session is referenced by its descriptor, and by its home's list until profil_session_unlist(),
 * which only takes ENDED sessions; while it is PENDING, by its binding.
 *
 * Lock order: profil_space.setup_lock, profil_space.lock, profil_trigger.lock, profil_index_lock.
 * Inside profil_ring.lock, only profil_index_lock and profil_ring.slots_lock are taken. Under a
 * space's lock, nothing waits for user space, nor for mmap_lock, whose holder may do that.
 *
 * A pointer that was found under RCU or a raw spinlock is valid until that ends. To use the object
 * longer, take a reference:
 *
 *	- under RCU only with refcount_inc_not_zero(): the last reference may be gone;
 *	- under profil_index_lock with refcount_inc(), if the object is unlinked there before the
 *	  last reference is dropped.
 *
 * Work that is embedded in an object references it from the queueing to the end of the work. A
 * function that lets others release an object, as by owner_gone, holds a reference of its own from
 * before that until it has used the object for the last time.
 */
#ifndef _PROFIL_INTERNAL_H
#define _PROFIL_INTERNAL_H

/* Most files need these, and include only others. */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/interval_tree.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>
#include <linux/profil.h>

#include "bins.h"

#define PROFIL_MAX_RANGES	1024U
#define PROFIL_MAX_RECORDS	65536U
#define PROFIL_MAX_STACK	127U
#define PROFIL_MAX_UNWIND_ROWS	BIT(24)
#define PROFIL_MAX_UNWIND_TABLES 1024U
#define PROFIL_MAX_COPIES	65536U
#define PROFIL_MAX_COPIED	BIT_ULL(30)	/* bytes of a snapshot, under home->lock */
/* Limits of a task's descriptor sessions, since a tick visits them all. CLOCKED: with a period. */
#define PROFIL_MAX_SESSIONS	32U	/* sessions that the task or an ancestor of it joined */
#define PROFIL_MAX_CLOCKED	4U
#define PROFIL_MAX_FOREIGN	8U	/* further sessions, attached by others */
#define PROFIL_MAX_FOREIGN_CLOCKED 2U
#define PROFIL_MAX_MACHINE	4U	/* sessions that sample the machine */
#define PROFIL_MAX_OPEN		1024U	/* sessions of one process; checked at OPEN */
#define PROFIL_MIN_PERIOD	10000U	/* ns; no user gets a shorter one */
#define PROFIL_MAX_PERIOD	1000000000U
#define PROFIL_NEVER		U64_MAX
#define PROFIL_TICKS_ONLY	(PROFIL_NEVER - 1)
#define PROFIL_HASH_BITS	13
#define PROFIL_MAX_DEFERRED	256U	/* ticks of a parked session */

struct ftrace_ops;
struct ftrace_regs;
struct linux_binprm;
struct tracepoint;

/* The outcomes of a tick, and PROFIL_UNSELECTED. They are the second index of profil_counts.n. */
enum profil_outcome {
	PROFIL_HIT,
	PROFIL_OUTSIDE,
	PROFIL_SATURATED,
	PROFIL_DROPPED_OVERRUN,
	PROFIL_DROPPED_BUFFER,
	PROFIL_DROPPED_CONTENDED,
	PROFIL_DROPPED_EXEC,
	PROFIL_DROPPED_EXIT,
	PROFIL_DROPPED_RECORD,
	PROFIL_UNSELECTED,		/* not an outcome: the session does not select the mode */
	PROFIL_NR_OUTCOMES,
};

/*
 * The statistics of a session on one CPU, which updates them with interrupts off. Any CPU may clear
 * expected_by. A tick increments exactly one element of n, so their sums are always consistent.
 */
struct profil_counts {
	u64 n[2][PROFIL_NR_OUTCOMES];	/* [1 in system mode, 0 in user mode][outcome] */
	u64 missed;
	unsigned long expected_by;	/* a tick after this time, in jiffies, follows a gap */
	s64 left;			/* ns to the next sample on this CPU; only with a period */
	u32 last_span;			/* index of the span that the last slow tick found */
};

struct profil_histogram {
	struct interval_tree_node node;	/* user addresses: first, last */
	refcount_t refs;		/* one for its session, one for each span */
	u64 checked_by_fork;		/* number of the last fork that checked the pages */
	unsigned long nr_pages;
	void *pages[];			/* kernel addresses; NULL: not pinned */
};

/* One range, compiled for the tick. It is constant once published. */
struct profil_span {
	u64 start;			/* first pc */
	u64 fast_limit;			/* bins.limit; or 0 if ticks here need the slow path */
	struct profil_bins bins;	/* for pc - start + granule_offset; limit: for pc - start */
	u64 granule_offset;		/* (start - offset) modulo the granule */
	u32 width;
	u32 page_mask;			/* masks the offset of a counter within its page */
	void **pages;			/* kernel addresses of the counters' pages */

	unsigned long bytes;		/* size of all counters */
	struct profil_histogram *histogram;	/* referenced; NULL without counters */
	struct profil_range range;	/* as user space passed it */
};

struct profil_table {
	struct profil_session *session;	/* owner of the histograms; referenced */
	refcount_t refs;
	struct rcu_work free;
	u32 nr_ranges;			/* 0: the empty table, which has one span, without pcs */
	struct profil_span spans[];	/* sorted by start */
};

/*
 * The bit of profil_session.slow for deferred ticks. Others, PROFIL_MODE_*, are set if the session
 * lacks the mode, is off or has a period. The fast path needs 0 in this bit and that of its mode.
 */
#define PROFIL_SLOW_PARKED	2

/* Only profil_session_set_phase() changes it. A session begins as LIVE; a child's, as PENDING. */
enum profil_session_phase {
	PROFIL_PENDING,		/* has no home, pages or charge yet, see inherit.c */
	PROFIL_LIVE,		/* is in its home's list, pinned and charged; is on or off */
	PROFIL_QUIESCED,	/* new ticks do not find it; others end within a grace period */
	PROFIL_ENDED,		/* nothing is pinned and the statistics are final */
};

struct profil_session {
	/* read by the tick */
	unsigned long slow;		/* see PROFIL_SLOW_PARKED; changed under home->lock */
	struct profil_counts __percpu *counts;	/* NULL until it is set up, see stats_early */
	u32 modes;
	u32 period;			/* ns from sample to sample; 0: the scheduler tick */
	bool jitter;			/* samples come at random times; period is the mean */
	bool on;			/* counts ticks; see profil_session_set_on() */
	bool records;			/* a tick outside all ranges leaves a record */
	struct profil_ring *ring;	/* for records and poll(), or NULL */

	/* constant */
	bool classic;			/* has no descriptor */
	bool may_exceed;		/* the charge may exceed RLIMIT_MEMLOCK (CAP_IPC_LOCK) */
	bool buffers_lost;		/* inherited, but the child has no copy of the buffers */
	struct page *other_page;	/* found instead of a buffer's; referenced, or NULL */
	u32 scope;			/* of a classic session */
	u32 fork;			/* enum profil_fork; unused if classic */
	u32 exec;			/* enum profil_exec */
	struct task_struct *task;	/* that started a classic session; a key, not referenced */

	/* under home->lock */
	struct profil_space *home;	/* of the buffers; referenced; NULL while pending */
	struct list_head list;		/* in home->sessions */
	u32 end;			/* enum profil_end */
	unsigned long charged;		/* pages that are charged to pinned_vm of the home's mm */
	struct profil_counts stats_base;	/* sums at the last reset of the statistics */
	struct rb_root_cached histograms;	/* by user address */
	atomic64_t runtime;		/* CPU time in ns, of former targets and before DISABLE */
	atomic_t nr_dying;		/* unused tables that await their grace period */

	/* under profil_index_lock */
	enum profil_session_phase phase;	/* under home->lock, too, if it has a home */
	bool owner_gone;		/* thread or descriptor is gone; set without lock */
	struct rb_root bindings;
	struct list_head targets;	/* read under RCU, too */
	bool machine;			/* samples every process; constant once it is true */
	struct hlist_node in_machine;	/* in profil_machine_sessions, read under RCU */
	unsigned int nr_targets;	/* the machine is one */
	unsigned int nr_thread_targets;
	unsigned int nr_detached;	/* former targets */
	u64 unfollowed;

	/* deferred ticks, see defer.c: any CPU adds, the holder of home->lock removes */
	atomic_t head;
	unsigned int tail;
	u64 deferred[PROFIL_MAX_DEFERRED];

	/* only of a classic session that stores pcs; constant, except for nr_pcs */
	unsigned long pcs;		/* user address of the entries */
	u32 pc_width;
	u64 max_pcs;
	u64 taken_pcs;			/* entries that the parent used before the fork */
	atomic64_t nr_pcs;		/* entries in use */

	/* used instead of counts until counts is allocated */
	atomic64_t stats_early[2][PROFIL_NR_OUTCOMES];
	s64 left;

	struct rcu_work free;
	refcount_t refs;
};

/* Turns counting on or off. The caller holds home->lock, or has not published @s yet. */
static inline void profil_session_set_on(struct profil_session *s, bool on)
{
	const unsigned long modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM;
	unsigned long slow = on && !s->period ? modes & ~s->modes : modes;

	WRITE_ONCE(s->on, on);
	/* Pairs with the acquire in tick_is_plain(): a tick that sees 0 sees the whole set-up. */
	smp_store_release(&s->slow, slow | (s->slow & BIT(PROFIL_SLOW_PARKED)));
}

/* Task work that sets up the pending session of a space. */
struct profil_setup {
	struct callback_head work;
	struct profil_space *space;	/* referenced while queued */
	bool queued;
};

struct profil_space {
	/* read by the tick */
	struct hlist_node node;
	struct mm_struct *mm;		/* the key; referenced (mmgrab) until it is dropped */
	struct profil_table __rcu *fast_table;	/* see profil_space_update_fast_table() */
	struct hlist_head bindings;	/* those that have, or had, a process as a target */
	unsigned int nr_threads;	/* targets that are threads */
	u64 id;

	/* the sessions whose home this is */
	struct mutex lock;
	struct list_head sessions;	/* referenced */
	struct mmu_notifier notifier;	/* of the release of the mm */
	bool watched;			/* the notifier is registered, and references the space */
	bool released;			/* the mm is released: all sessions end */
	bool dropped;			/* see space_drop_mm() */
	struct delayed_work end;	/* ends sessions that must end */

	struct profil_session *pending;	/* under profil_index_lock; not referenced */
	struct mutex setup_lock;	/* held to set up the pending session */
	struct profil_setup setup[2];	/* [0]: for ticks in user mode; [1]: system mode */
	struct rcu_work free;
	refcount_t refs;
};

struct profil_binding {
	struct hlist_node node;		/* in space->bindings, from the first process target on */
	struct profil_session *session;	/* referenced */
	struct profil_space *space;	/* referenced */
	struct profil_table __rcu *table;	/* the ranges; referenced */
	struct rb_node by_id;		/* in session->bindings, by the space's id */
	bool samples_all;		/* all tasks in the space; see binding_count() */
	bool foreign;			/* profil_target.foreign of its first process */
	unsigned int nr_processes, nr_threads;	/* targets */
	struct rcu_head rcu;
};

struct profil_target {
	struct hlist_node node;		/* in profil_targets, by key */
	const void *key;		/* the signal_struct of the process, or the thread */
	struct task_struct *task;	/* referenced, which also keeps the key */
	bool thread;
	bool foreign;			/* another process attached it or an ancestor */
	struct profil_binding __rcu *binding;	/* to the space where it runs now */
	struct list_head list;		/* in session->targets */
	u64 runtime;			/* CPU time in ns at its attachment, ENABLE or reset */
	struct rcu_head rcu;
};

/* main.c: the workqueue for all work of the module */
extern struct workqueue_struct *profil_wq;

/* ioctl.c: dispatches ioctls to handlers */
long profil_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
long profil_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* trigger.c: a source of ticks, installed while it has users, and linger_s longer */
struct profil_trigger {
	atomic_t users;			/* becomes nonzero only after install() */
	bool installed;			/* written under lock */
	struct mutex lock;
	struct delayed_work linger;
	int (*install)(void);		/* 0, -EBUSY or -EINTR */
	void (*remove)(void);
};

int profil_trigger_get(struct profil_trigger *t);
bool profil_trigger_tryget(struct profil_trigger *t);
void profil_trigger_put(struct profil_trigger *t);
void profil_trigger_exit(struct profil_trigger *t);
void profil_trigger_linger_over(struct work_struct *work);
struct tracepoint *profil_trigger_find_tracepoint(const char *name);

/* hook.c: the ftrace hook on the kernel's tick function */
extern struct profil_trigger profil_tick;
int profil_tick_init(void);
void profil_tick_exit(void);

/* clock.c: a timer on each CPU for sessions with a period, and the tick of nohz_full= CPUs */
extern struct profil_trigger profil_clock;
extern bool profil_nohz_full;
int profil_clock_init(void);
u32 profil_clock_min_period(void);
int profil_clock_check_period(u64 period, bool jitter);
bool profil_clock_resync(const struct profil_session *s, const struct mm_struct *mm);
void profil_clock_resync_here(void);
u32 profil_clock_random(u32 period);

static inline struct profil_trigger *profil_session_trigger(const struct profil_session *s)
{
	return s->period ? &profil_clock : &profil_tick;
}

/* sample.c: finds the counter of a tick and increments it */
void profil_sample(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		   struct ftrace_regs *fregs);
u64 profil_sample_clocked(struct task_struct *task, u64 passed, struct pt_regs *regs);

/* space.c: the address spaces, which the tick finds by mm, and the sessions of their processes */
extern raw_spinlock_t profil_index_lock;
extern struct hlist_head profil_spaces[1 << PROFIL_HASH_BITS];	/* by mm */
struct profil_space *profil_space_get(struct mm_struct *mm, gfp_t gfp);
void profil_space_put(struct profil_space *space);
void profil_space_update_fast_table(struct profil_space *space);
int profil_space_watch(struct profil_space *space);
bool profil_space_is_own(const struct profil_space *space);
struct profil_space *profil_space_get_own(bool create);
void profil_space_end_sessions(struct profil_space *space, bool all);
void profil_space_kick(struct profil_space *space);
void profil_spaces_exit(void);

/* target.c: the targets, and the bindings of sessions to the spaces where the targets run */
extern struct hlist_head profil_targets[1 << PROFIL_HASH_BITS];	/* by key */
extern unsigned int profil_nr_targets;
struct profil_binding *profil_binding_alloc(struct profil_session *s, struct profil_space *space,
					    struct profil_table *table, gfp_t gfp);
void profil_binding_free(struct profil_binding *b);
struct profil_target *profil_target_alloc(struct task_struct *task, bool thread, bool foreign,
					  gfp_t gfp);
void profil_target_free(struct profil_target *t);
int profil_target_check(const struct profil_target *t, struct profil_session *s,
			const struct profil_space *space);
int profil_target_attach(struct profil_target *t, struct profil_session *s,
			 struct profil_space *space, struct profil_table *table,
			 struct profil_session *old, struct profil_binding *parent, gfp_t gfp);
void profil_target_move(struct profil_target *t, struct profil_binding *to);
void profil_target_detach_all(struct profil_session *s);
bool profil_binding_exists(const struct profil_session *s, u64 id);
struct profil_table *profil_binding_table(struct profil_session *s, u64 id);
int profil_binding_set_table(struct profil_session *s, u64 id, struct profil_table *table);
u64 profil_targets_runtime(struct profil_session *s, const struct task_struct *task, bool restart);

/* machine.c: sessions that sample every process of the machine */
DECLARE_STATIC_KEY_FALSE(profil_machine_sampled);
extern struct hlist_head profil_machine_sessions;
int profil_machine_attach(struct profil_session *s);
void profil_machine_detach(struct profil_session *s);

/* access.c: rights to attach and describe; the last two run under exec_update_lock */
int profil_access_init(void);
struct task_struct *profil_access_find_task(pid_t nr, bool thread);
struct mm_struct *profil_access_get_mm(struct task_struct **task, bool thread);
bool profil_access_allowed(struct task_struct *task, struct mm_struct *mm, bool describe);

/* inherit.c: the session of a child of fork, until it is set up */
struct profil_session *profil_session_inherit(struct profil_session *parent,
					      const struct profil_table *table);
struct profil_session *profil_pending_get(struct profil_space *space);
int profil_pending_set_up(struct profil_space *space);
void profil_pending_kick(struct profil_space *space, bool system);

/* session.c, stats.c: the creation, the end and the release of sessions, and their statistics */
struct profil_session *profil_session_alloc(gfp_t gfp);
struct profil_session *profil_session_create(u32 modes, u64 period, bool jitter);
struct profil_counts __percpu *profil_session_alloc_counts(const struct profil_session *s);
void profil_session_put(struct profil_session *s);
void profil_session_set_phase(struct profil_session *s, enum profil_session_phase phase);
void profil_session_resync_runtime(struct profil_session *s, const struct task_struct *task);
void profil_session_reset_missed(struct profil_session *s);
bool profil_session_is_quiet(const struct profil_session *s);
void profil_session_quiesce(struct profil_session *s);
void profil_session_unpin(struct profil_session *s, bool unused);
void profil_session_finish(struct profil_session *s, enum profil_end end);
void profil_session_end(struct profil_session *s, enum profil_end end);
void profil_session_unlist(struct profil_session *s);
void profil_stats_read(struct profil_session *s, struct profil_stats *stats, bool restart);

/* defer.c: ticks that are counted later; park and unpark */
bool profil_defer_tick(struct profil_session *s, u64 what, u32 width, bool system);
void profil_replay(struct profil_session *s);
void profil_session_park(struct profil_session *s);
void profil_session_unpark(struct profil_session *s);

/* classic.c, describe.c: sessions without a descriptor. ioctl.c calls all functions with @data. */
struct profil_session *profil_classic_find(struct profil_space *home, u32 scope);
int profil_classic_start(struct file *file, void *data, struct profil_stats *unused);
int profil_classic_stop(struct file *file, void *data, struct profil_stats *stats);
int profil_classic_stats(struct file *file, void *data, struct profil_stats *unused);
int profil_classic_describe(struct file *file, void *data, struct profil_stats *stats);

/* descriptor.c, snapshot.c, unwind.c: descriptor sessions */
int profil_descriptor_open(struct file *file, void *data, struct profil_stats *unused);
int profil_descriptor_attach(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_add(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_remove(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_enable(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_disable(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_stats(struct file *file, void *data, struct profil_stats *unused);
int profil_descriptor_snapshot(struct file *file, void *data, struct profil_stats *stats);
int profil_descriptor_unwind(struct file *file, void *data, struct profil_stats *stats);
struct profil_session *profil_descriptor_lock_own(struct file *file);

/* table.c: compiles ranges into the tables that the tick reads */
extern struct profil_table profil_empty_table;	/* of which one reference is never dropped */
struct profil_table *profil_table_create(struct profil_session *s, u64 ranges, u32 nr);
struct profil_table *profil_table_merge(const struct profil_table *base,
					const struct profil_table *added);
struct profil_table *profil_table_remove(struct profil_table *table,
					 const struct profil_remove *arg);
struct profil_table *profil_table_inherit(struct profil_session *s,
					  const struct profil_table *table);
void profil_table_bind(struct profil_table *table, struct rb_root_cached *root);
void profil_table_put(struct profil_table *table);

static inline struct profil_table *profil_table_get(struct profil_table *table)
{
	refcount_inc(&table->refs);
	return table;
}

/* pages.c: charges and pins user pages */
int profil_charge(unsigned long pages, unsigned long credit, bool may_exceed);
void profil_uncharge(struct mm_struct *mm, unsigned long pages);
struct profil_histogram *profil_histogram_find(struct rb_root_cached *root, unsigned long start,
					       unsigned long bytes);
void *profil_histogram_counter(struct profil_session *s, unsigned long addr, unsigned long width);
void profil_histogram_put(struct profil_histogram *h);
int profil_histograms_pin(struct rb_root_cached *new, const struct profil_table *table,
			  bool inherited, bool may_exceed, unsigned long credit);
bool profil_histograms_are_mapped(const struct profil_table *table, struct page **other);
void profil_histograms_adopt(struct profil_session *s, struct rb_root_cached *new);
unsigned long profil_histograms_free(struct mm_struct *mm, struct rb_root_cached *root,
				     bool unused);

/* ring.c, record.c: records of ticks that were outside, for read() */
struct profil_ring *profil_ring_create(u32 nr_records, u32 stack_depth);
void profil_ring_close(struct profil_ring *ring);
void profil_ring_free(struct profil_ring *ring);
size_t profil_ring_size(u32 nr_records, u32 stack_depth);
bool profil_ring_record(struct profil_session *s, u64 space, u64 pc, u32 flags, u32 periods);
bool profil_ring_record_detached(struct profil_session *s, u64 space,
				 const struct linux_binprm *bprm);
ssize_t profil_ring_read(struct file *file, char __user *buf, size_t size, loff_t *pos);
__poll_t profil_ring_poll(struct file *file, struct poll_table_struct *wait);
void profil_ring_wake(struct profil_ring *ring);
void profil_ring_show_files(struct seq_file *m, struct file *file);

/* probe_memory.c: memory for probes, on PREEMPT_RT */
#define PROFIL_RESERVE_SIZE	sizeof(struct profil_session)	/* a probe's largest object */
void profil_reserve_fill(struct work_struct *unused);
void profil_reserve_exit(void);
void *profil_reserve_take(void);

/* Uses no emergency reserves. If an allocation fails, stats.unfollowed counts the fork or exec. */
#define PROFIL_GFP_PROBE (GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)

/* Allocates zeroed memory, also in the probes of fork and exec. */
static __always_inline void *profil_zalloc(size_t size, gfp_t gfp)
{
	BUILD_BUG_ON(size > PROFIL_RESERVE_SIZE);
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && !gfpflags_allow_blocking(gfp))
		return profil_reserve_take();
	return kzalloc(size, gfp);
}

/* follow.c: fork, exec and exit */
int profil_follow_init(void);
void profil_follow_exit(void);

/* This is cheaper than hash_ptr(), and as good: the keys of a table are from 1 or 2 slab caches. */
static __always_inline u32 profil_hash(const void *key)
{
	return hash_32((u32)(unsigned long)key, PROFIL_HASH_BITS);
}

/* Finds the space of @mm, or returns NULL. Called under RCU, or with interrupts off. */
static __always_inline struct profil_space *profil_space_find(const struct mm_struct *mm)
{
	struct profil_space *space;

	hlist_for_each_entry_rcu_notrace(space, &profil_spaces[profil_hash(mm)], node)
		if (space->mm == mm)
			return space;
	return NULL;
}

/* Returns the mm of @space; NULL if it was dropped. Called under space->lock, or with the mm. */
static inline struct mm_struct *profil_space_mm(const struct profil_space *space)
{
	return READ_ONCE(space->dropped) ? NULL : space->mm;
}

/* Finds the first target with @key from @node on; or NULL. Called like profil_space_find(). */
static __always_inline struct profil_target *profil_target_from(struct hlist_node *node,
								const void *key)
{
	struct profil_target *t;

	for (; node; node = rcu_dereference_raw(hlist_next_rcu(node))) {
		t = hlist_entry(node, struct profil_target, node);
		if (t->key == key)
			return t;
	}
	return NULL;
}

static __always_inline struct profil_target *profil_target_first(const void *key)
{
	struct hlist_head *bucket = &profil_targets[profil_hash(key)];

	return profil_target_from(rcu_dereference_raw(hlist_first_rcu(bucket)), key);
}

static __always_inline struct profil_target *profil_target_next(struct profil_target *t)
{
	return profil_target_from(rcu_dereference_raw(hlist_next_rcu(&t->node)), t->key);
}

#endif /* _PROFIL_INTERNAL_H */
