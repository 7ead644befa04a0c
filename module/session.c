// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: who is profiled, and the life and death of it.
 *
 * A space stands for an address space that has sessions: at most one of the process
 * (of whatever tasks share the mm) and one of each thread. The tick finds the space
 * by mm, and a thread's session by task; both keys are referenced, so that they
 * cannot come to mean another. A space is made by the first start in its mm and
 * retired when its last session is forgotten, or when the mm is released, which its
 * interval notifier hears of.
 *
 * All changes of sessions happen under space->lock. A session is published to the
 * tick when all of it is ready, and unpublished before anything of it is undone;
 * between the two steps no tick may be under way, see quiesce().
 *
 * A session that is on owns: its pins, the charge for them, a reference to the
 * module, and its share in the tick hook. All of these go in session_end() and
 * session_settle(), never later; what may remain is the record of an ended session,
 * whose statistics can be read until the next start or stop. Such a record does not
 * hold the module; unloading frees it.
 */
#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "profil.h"

#define ATTEND_RETRY	max(HZ / 100, 1)
#define ATTEND_SLOWLY	HZ		/* after RETRIES_QUICK of these */
#define RETRIES_QUICK	100

struct hlist_head profil_spaces[1 << PROFIL_HASH_BITS];
struct hlist_head profil_threads[1 << PROFIL_HASH_BITS];
/* In the place of a process's session where there is none: the tick need not ask. */
struct profil_session profil_nobody = { .slow = BIT(PROFIL_SLOW_ALWAYS) };
static DEFINE_SPINLOCK(spaces_lock);
static DEFINE_SPINLOCK(threads_lock);
static atomic_t nr_thread_sessions = ATOMIC_INIT(0);

/* ---- spaces ---- */

static void space_release(struct kref *refs)
{
	struct profil_space *space = container_of(refs, struct profil_space, refs);

	mmdrop(space->mm);
	kfree_rcu(space, rcu);
}

static void space_put(struct profil_space *space)
{
	kref_put(&space->refs, space_release);
}

/* The mm has no users any more; its sessions go in space_reap(). */
static bool space_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct profil_space *space = container_of(notifier, struct profil_space, notifier);

	mmu_interval_set_seq(notifier, cur_seq);
	if (range->event == MMU_NOTIFY_RELEASE) {
		kref_get(&space->refs);
		if (!queue_work(profil_wq, &space->reap))
			space_put(space);
	}
	return true;
}

static const struct mmu_interval_notifier_ops space_ops = {
	.invalidate = space_invalidate,
};

static void space_reap_work(struct work_struct *work);

static struct profil_space *space_create(struct mm_struct *mm)
{
	struct profil_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	int err;

	if (!space)
		return ERR_PTR(-ENOMEM);
	/* Page 0: an address where nothing but the release is heard of. */
	err = mmu_interval_notifier_insert(&space->notifier, mm, 0, PAGE_SIZE, &space_ops);
	if (err) {
		kfree(space);
		return ERR_PTR(err == -EINTR ? err : -ENOMEM);
	}
	/* While it waits for an event in progress to pass it is not told of the release. */
	mmu_interval_read_begin(&space->notifier);
	mmgrab(mm);
	space->mm = mm;
	mutex_init(&space->lock);
	INIT_LIST_HEAD(&space->sessions);
	INIT_WORK(&space->reap, space_reap_work);
	RCU_INIT_POINTER(space->process, &profil_nobody);
	kref_init(&space->refs);
	return space;
}

static struct profil_space *space_lookup(const struct mm_struct *mm)
{
	struct profil_space *space;

	rcu_read_lock();
	space = profil_space_find(mm);
	if (space && !kref_get_unless_zero(&space->refs))
		space = NULL;
	rcu_read_unlock();
	return space;
}

/* No session is left: nobody may find the space any more. Under space->lock. */
static void space_retire(struct profil_space *space)
{
	lockdep_assert_held(&space->lock);

	if (space->retired || !list_empty(&space->sessions))
		return;
	space->retired = true;
	spin_lock(&spaces_lock);
	hlist_del_init_rcu(&space->node);
	spin_unlock(&spaces_lock);
	mmu_interval_notifier_remove(&space->notifier);
	space_put(space);
}

static void space_unlock(struct profil_space *space)
{
	space_retire(space);
	mutex_unlock(&space->lock);
	space_put(space);
}

/*
 * The caller's space, locked and referenced, to be given back by space_unlock(). With
 * @create it is made if there is none; else NULL is returned. Or an error pointer.
 */
static struct profil_space *space_lock(bool create)
{
	struct mm_struct *mm = current->mm;
	struct profil_space *space, *other;

	for (;;) {
		space = space_lookup(mm);
		if (!space && !create)
			return NULL;
		if (!space) {
			space = space_create(mm);
			if (IS_ERR(space))
				return space;
			spin_lock(&spaces_lock);
			other = profil_space_find(mm);
			if (!other) {
				kref_get(&space->refs);
				hlist_add_head_rcu(&space->node, &profil_spaces[profil_hash(mm)]);
			}
			spin_unlock(&spaces_lock);
			if (other) {
				mmu_interval_notifier_remove(&space->notifier);
				space_put(space);
				continue;
			}
		}
		if (mutex_lock_killable(&space->lock)) {
			/* A new one that nobody locks stays until the mm's release. */
			space_put(space);
			return ERR_PTR(-EINTR);
		}
		if (!space->retired)
			return space;
		mutex_unlock(&space->lock);
		space_put(space);
	}
}

/* ---- sessions ---- */

/* After a grace period, in a worker: nothing points here any more. */
static void session_free(struct work_struct *work)
{
	struct profil_session *s = container_of(to_rcu_work(work), struct profil_session, free);

	profil_histograms_free(s);
	free_percpu(s->counts);
	put_task_struct(s->task);
	if (s->space)
		space_put(s->space);
	kvfree(s);
}

static void session_release(struct kref *refs)
{
	struct profil_session *s = container_of(refs, struct profil_session, refs);

	queue_rcu_work(profil_wq, &s->free);
}

static void session_put(struct profil_session *s)
{
	kref_put(&s->refs, session_release);
}

/* What queued work holds: the session, and the module, since it may be delayed. */
static bool session_hold(struct profil_session *s)
{
	if (!try_module_get(THIS_MODULE))
		return false;
	if (kref_get_unless_zero(&s->refs))
		return true;
	module_put(THIS_MODULE);
	return false;
}

static void session_unhold(struct profil_session *s)
{
	session_put(s);
	module_put(THIS_MODULE);
}

/*
 * Has session_attend() look after @s: at once, but not again and again, since a user can
 * cause it as often as it likes, and does not pay for it. Never sleeps.
 */
void profil_session_kick(struct profil_session *s)
{
	unsigned long now = jiffies, due = READ_ONCE(s->rest_until);

	if (session_hold(s) &&
	    !queue_delayed_work(profil_wq, &s->work, time_before(now, due) ? due - now : 0))
		session_unhold(s);
}

/* CPU time of the tasks that a session expects ticks from, in ns. */
static u64 session_runtime(const struct profil_session *s)
{
	struct signal_struct *signal = s->task->signal;
	struct task_struct *t;
	unsigned int seq, next = 0;
	unsigned long flags;
	u64 ns;

	if (s->scope == PROFIL_SCOPE_THREAD)
		return READ_ONCE(s->task->se.sum_exec_runtime);

	rcu_read_lock();
	do {
		/* With the lock the second time, or threads that exit could keep us here. */
		seq = next;
		flags = read_seqbegin_or_lock_irqsave(&signal->stats_lock, &seq);
		ns = signal->sum_sched_runtime;
		for_each_thread(s->task, t)
			ns += READ_ONCE(t->se.sum_exec_runtime);
		next = 1;
	} while (need_seqretry(&signal->stats_lock, seq));
	done_seqretry_irqrestore(&signal->stats_lock, seq, flags);
	rcu_read_unlock();
	return ns;
}

static int range_cmp(const void *a, const void *b)
{
	const struct profil_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool power_of_two(u32 n, u32 max)
{
	return is_power_of_2(n) && n <= max;
}

static int span_set(struct profil_span *span, const struct profil_range *range)
{
	u64 bytes, end, skipped;

	if (range->flags & ~PROFIL_RANGE_ROUND_UP)
		return -EOPNOTSUPP;
	if (range->width != 2 && range->width != 4 && range->width != 8)
		return -EOPNOTSUPP;
	if (range->__reserved || range->start >= range->end || range->offset > range->start ||
	    !power_of_two(range->granule, PROFIL_MAX_GRANULE) ||
	    !power_of_two(range->step, PROFIL_MAX_STEP) ||
	    range->nr_counters > PROFIL_MAX_COUNTERS)
		return -EINVAL;

	if (range->nr_counters) {
		if (range->buffer % range->width)
			return -EINVAL;
		bytes = range->nr_counters * range->width;
		if (range->buffer != (unsigned long)range->buffer ||
		    check_add_overflow(range->buffer, bytes, &end) ||
		    !access_ok((void __user *)(unsigned long)range->buffer, bytes))
			return -EFAULT;
	}

	profil_bins_set(&span->bins, ilog2(range->granule), ilog2(range->step), ilog2(range->width),
			range->flags & PROFIL_RANGE_ROUND_UP, range->scale, range->nr_counters);
	span->start = range->start;
	span->width = range->width;
	span->buffer = range->buffer;

	skipped = range->start - range->offset;
	if (skipped >= span->bins.span) {
		span->bins.span = 0;		/* no pc here has a counter */
		return 0;
	}
	span->rest = skipped & (range->granule - 1);
	profil_bins_move(&span->bins, skipped - span->rest, offset_in_page(range->buffer));
	/* The tick compares once, for the counters and for the end. */
	span->bins.span = min(span->bins.span - span->rest, range->end - range->start);
	return 0;
}

static int session_set_spans(struct profil_session *s, const struct profil_start *arg)
{
	struct profil_range *ranges;
	u32 i, n = arg->nr_ranges;
	int err;

	if (!n)
		return 0;
	if (arg->ranges != (unsigned long)arg->ranges)
		return -EFAULT;

	ranges = vmemdup_user((void __user *)(unsigned long)arg->ranges, n * sizeof(*ranges));
	if (IS_ERR(ranges))
		return PTR_ERR(ranges);
	sort(ranges, n, sizeof(*ranges), range_cmp, NULL);
	for (i = 0; i < n; i++) {
		err = span_set(&s->spans[i], &ranges[i]);
		if (err)
			goto free_ranges;
	}
	for (i = 1; i < n; i++) {
		err = -EINVAL;
		if (ranges[i - 1].end > ranges[i].start)
			goto free_ranges;
	}
	err = profil_histograms_create(s, ranges);
free_ranges:
	kvfree(ranges);
	return err;
}

static void session_work(struct work_struct *work);

/* A session as asked for, checked, with nothing pinned, charged or published. */
static struct profil_session *session_create(const struct profil_start *arg)
{
	/* Without ranges, there is one that no pc lies in: the tick need not ask. */
	u32 nr_spans = max(arg->nr_ranges, 1U);
	struct profil_session *s;
	int err;

	s = kvzalloc(struct_size(s, spans, nr_spans), GFP_KERNEL_ACCOUNT);
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->nr_spans = nr_spans;
	s->rest_until = jiffies;
	kref_init(&s->refs);
	spin_lock_init(&s->stale_lock);
	INIT_DELAYED_WORK(&s->work, session_work);
	INIT_RCU_WORK(&s->free, session_free);
	INIT_LIST_HEAD(&s->list);
	s->scope = arg->scope;
	s->modes = arg->modes;
	s->task = get_task_struct(s->scope == PROFIL_SCOPE_THREAD ? current :
				  current->group_leader);

	err = session_set_spans(s, arg);
	if (err)
		goto put;
	if (!(s->modes & PROFIL_MODE_USER) || s->nr_spans > 1 || s->spans[0].width != 2 ||
	    s->spans[0].rest)
		s->slow = BIT(PROFIL_SLOW_ALWAYS);
	err = -ENOMEM;
	s->counts = alloc_percpu_gfp(struct profil_counts, GFP_KERNEL_ACCOUNT);
	if (!s->counts)
		goto put;
	return s;
put:
	session_put(s);
	return ERR_PTR(err);
}

/* The session of the caller in @scope, on or ended; NULL if there is none. */
static struct profil_session *session_of(struct profil_space *space, u32 scope)
{
	struct profil_session *s;

	lockdep_assert_held(&space->lock);

	list_for_each_entry(s, &space->sessions, list)
		if (s->scope == scope && (scope == PROFIL_SCOPE_PROCESS || s->task == current))
			return s;
	return NULL;
}

/* Another session of a thread, or one less. */
static void space_count_thread(struct profil_space *space, int change)
{
	struct profil_session *process;

	lockdep_assert_held(&space->lock);

	WRITE_ONCE(space->nr_threads, space->nr_threads + change);
	atomic_add(change, &nr_thread_sessions);
	process = rcu_dereference_protected(space->process, lockdep_is_held(&space->lock));
	if (process == &profil_nobody)
		return;
	if (space->nr_threads)
		set_bit(PROFIL_SLOW_THREADS, &process->slow);
	else
		clear_bit(PROFIL_SLOW_THREADS, &process->slow);
}

/* From here on ticks find @s, and @old, which is on, no more: not one is lost. */
static void session_publish(struct profil_session *s, struct profil_session *old)
{
	struct profil_space *space = s->space;

	s->runtime = session_runtime(s);
	s->state = PROFIL_STATE_ON;
	list_add(&s->list, &space->sessions);
	if (s->scope == PROFIL_SCOPE_PROCESS) {
		if (space->nr_threads)
			set_bit(PROFIL_SLOW_THREADS, &s->slow);
		rcu_assign_pointer(space->process, s);
		return;
	}

	spin_lock(&threads_lock);
	if (old) {
		hlist_replace_rcu(&old->node, &s->node);
		old->node.pprev = NULL;		/* unhashed; a tick may be at it and go on */
	} else {
		hlist_add_head_rcu(&s->node, &profil_threads[profil_hash(s->task)]);
	}
	spin_unlock(&threads_lock);
	if (!old)
		space_count_thread(space, 1);
}

static void session_unpublish(struct profil_session *s)
{
	struct profil_space *space = s->space;
	bool found;

	if (s->scope == PROFIL_SCOPE_PROCESS) {
		if (rcu_access_pointer(space->process) == s)
			rcu_assign_pointer(space->process, &profil_nobody);
		return;
	}

	spin_lock(&threads_lock);
	found = !hlist_unhashed(&s->node);
	hlist_del_init_rcu(&s->node);
	spin_unlock(&threads_lock);
	if (found)
		space_count_thread(space, -1);
}

/*
 * Waits until no tick is under way in @s, which is unpublished. A tick runs on the
 * CPU of the task it samples: if no other task can be sampled than the caller, there
 * is none. So a single-threaded program that starts and stops in a loop does not wait.
 */
static void session_quiesce(const struct profil_session *s)
{
	struct mm_struct *mm = s->space->mm;
	int users = atomic_read(&mm->mm_users);

	if (!users || (users == 1 && current->mm == mm) ||
	    (s->scope == PROFIL_SCOPE_THREAD && s->task == current))
		return;
	synchronize_rcu();
}

/*
 * Ends a session that is on: no tick is counted after this, no page is pinned, and
 * its statistics are final. session_settle() is owed.
 */
static void session_end(struct profil_session *s, enum profil_end end)
{
	lockdep_assert_held(&s->space->lock);

	session_unpublish(s);
	session_quiesce(s);
	if (profil_session_parked(s) && current->mm == s->space->mm && end == PROFIL_END_NONE)
		profil_histograms_refresh(s);	/* a last try for the kept ticks */

	s->runtime = session_runtime(s) - s->runtime;
	s->state = PROFIL_STATE_ENDED;
	s->end = end;
	profil_histograms_unpin(s);
	profil_replay(s);
	profil_tick_put();
}

static void session_uncharge(struct profil_session *s)
{
	struct mm_struct *mm = s->space->mm;

	lockdep_assert_held_write(&mm->mmap_lock);
	__account_locked_vm(mm, s->charged, false, current, true);
	s->charged = 0;
}

/*
 * Returns the charge and the module of a session that has ended. Waiting for
 * mmap_lock is for the process itself, not for workers: it may be held for long.
 */
static bool session_settle(struct profil_session *s, bool wait)
{
	struct mm_struct *mm = s->space->mm;

	lockdep_assert_held(&s->space->lock);

	if (s->settled)
		return true;
	if (s->charged) {
		/* By 6.12 mmap_write_trylock() is gone. No mapping is changed here. */
		if (wait)
			down_write(&mm->mmap_lock);
		else if (!down_write_trylock(&mm->mmap_lock))
			return false;
		session_uncharge(s);
		up_write(&mm->mmap_lock);
	}
	s->settled = true;
	if (cancel_delayed_work(&s->work))
		session_unhold(s);
	module_put(THIS_MODULE);
	return true;
}

static void session_forget(struct profil_session *s)
{
	list_del_init(&s->list);
	session_put(s);
}

/*
 * Forgets what is left of threads that are gone, or gone to another mm. Their sessions
 * had ended before, so profil_task_gone() did not find them.
 */
static void space_prune(struct profil_space *space)
{
	struct profil_session *s, *next;

	lockdep_assert_held(&space->lock);

	list_for_each_entry_safe(s, next, &space->sessions, list)
		if (s->scope == PROFIL_SCOPE_THREAD && s->state == PROFIL_STATE_ENDED &&
		    READ_ONCE(s->task->mm) != space->mm && session_settle(s, true))
			session_forget(s);
}

/* ---- work ---- */

/* What has happened to @s that its own calls did not do. False: come again. */
static bool session_attend(struct profil_session *s)
{
	struct mm_struct *mm = s->space->mm;
	int err;

	if (s->state == PROFIL_STATE_ON && READ_ONCE(s->orphan))
		session_end(s, PROFIL_END_NONE);

	if (s->state == PROFIL_STATE_ON && profil_session_parked(s)) {
		if (!mmget_not_zero(mm))
			return true;		/* space_reap() is on its way */
		err = profil_histograms_refresh(s);
		mmput_async(mm);
		if (err == -EAGAIN || (err == -ENOMEM && s->retries < RETRIES_QUICK)) {
			s->retries++;
			return false;
		}
		s->retries = 0;
		if (err)
			session_end(s, err == -ENOMEM ? PROFIL_END_NOMEM : PROFIL_END_BUFFER);
	}

	if (s->state == PROFIL_STATE_ENDED) {
		if (!session_settle(s, false))
			return false;
		if (READ_ONCE(s->orphan) && !list_empty(&s->list))
			session_forget(s);
	}
	return true;
}

static void session_work(struct work_struct *work)
{
	struct profil_session *s = container_of(to_delayed_work(work), struct profil_session, work);
	struct profil_space *space = s->space;
	unsigned long begun = jiffies;
	bool done = false;

	/* The lock is held while buffers are pinned, which can take long. */
	if (mutex_trylock(&space->lock)) {
		kref_get(&space->refs);
		done = session_attend(s);
		WRITE_ONCE(s->rest_until, jiffies + ATTEND_RETRY + 4 * (jiffies - begun));
		space_unlock(space);
	}
	if (done || !queue_delayed_work(profil_wq, &s->work, s->retries < RETRIES_QUICK ?
					ATTEND_RETRY : ATTEND_SLOWLY))
		session_unhold(s);
}

/* The mm is gone, or the module goes: so do all sessions and the space. */
static void space_reap(struct profil_space *space)
{
	struct profil_session *s, *next;

	mutex_lock(&space->lock);
	list_for_each_entry_safe(s, next, &space->sessions, list) {
		if (s->state == PROFIL_STATE_ON)
			session_end(s, PROFIL_END_NONE);
		session_settle(s, true);
		session_forget(s);
	}
	space_unlock(space);
}

static void space_reap_work(struct work_struct *work)
{
	space_reap(container_of(work, struct profil_space, reap));
}

/* @task exits or has exec'd: a session of this thread has nothing to sample. */
void profil_task_gone(struct task_struct *task)
{
	struct profil_session *s;

	if (!atomic_read(&nr_thread_sessions))
		return;
	rcu_read_lock();
	s = profil_thread_find(task);
	if (s) {
		WRITE_ONCE(s->orphan, true);
		profil_session_kick(s);
	}
	rcu_read_unlock();
}

/* ---- what the caller asks for ---- */

/* Charges what @s pins beyond what @old, which it replaces, has charged already. */
static int session_charge(struct profil_session *s, const struct profil_session *old)
{
	unsigned long pages = profil_histograms_pages(s);
	struct mm_struct *mm = current->mm;
	int err;

	if (old)
		pages -= min(pages, old->charged);
	if (!pages)
		return 0;
	if (mmap_write_lock_killable(mm))
		return -EINTR;
	err = __account_locked_vm(mm, pages, true, current, false);
	if (err && capable(CAP_IPC_LOCK))
		err = __account_locked_vm(mm, pages, true, current, true);
	mmap_write_unlock(mm);
	if (err)
		return -EPERM;
	s->charged = pages;
	return 0;
}

/* Under space->lock. Takes over the caller's reference to @s only if it succeeds. */
static int session_begin(struct profil_space *space, struct profil_session *s, bool replace)
{
	struct profil_session *old, *on = NULL;
	unsigned long pages;
	int err;

	space_prune(space);
	old = session_of(space, s->scope);
	if (old && old->state == PROFIL_STATE_ON) {
		if (!replace)
			return -EBUSY;
		on = old;
	}
	if (old && !on)
		session_settle(old, true);

	kref_get(&space->refs);
	s->space = space;
	err = profil_tick_get();
	if (err)
		return err;
	err = session_charge(s, on);
	if (err)
		goto put_tick;
	err = profil_histograms_pin(s);
	if (err)
		goto unpin;

	pages = profil_histograms_pages(s);
	if (on)
		on->charged = on->charged + s->charged - pages;
	s->charged = pages;

	__module_get(THIS_MODULE);
	session_publish(s, on);
	if (on)
		session_end(on, PROFIL_END_NONE);
	if (old) {
		session_settle(old, true);
		session_forget(old);
	}
	return 0;

unpin:
	profil_histograms_unpin(s);
	if (cancel_delayed_work(&s->work))
		session_unhold(s);
	if (s->charged) {
		mmap_write_lock(space->mm);
		session_uncharge(s);
		mmap_write_unlock(space->mm);
	}
put_tick:
	profil_tick_put();
	return err;
}

int profil_session_start(const struct profil_start *arg)
{
	struct profil_session *s = session_create(arg);
	struct profil_space *space;
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = profil_histograms_check(s);
	if (err)
		goto put;
	space = space_lock(true);
	if (IS_ERR(space)) {
		err = PTR_ERR(space);
		goto put;
	}
	err = session_begin(space, s, arg->flags & PROFIL_START_REPLACE);
	space_unlock(space);
	if (!err)
		return 0;
put:
	session_put(s);
	return err;
}

static void session_read(const struct profil_session *s, struct profil_stats *stats)
{
	u64 n[2][PROFIL_NR_OUTCOMES] = {}, sum[PROFIL_NR_OUTCOMES];
	u64 runtime = s->runtime;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		const struct profil_counts *counts = per_cpu_ptr(s->counts, cpu);

		for (i = 0; i < PROFIL_NR_OUTCOMES; i++) {
			n[0][i] += READ_ONCE(counts->n[0][i]);
			n[1][i] += READ_ONCE(counts->n[1][i]);
		}
		stats->unselected += READ_ONCE(counts->unselected);
		stats->missed += READ_ONCE(counts->missed);
	}
	for (i = 0; i < PROFIL_NR_OUTCOMES; i++) {
		stats->user += n[0][i];
		stats->system += n[1][i];
		sum[i] = n[0][i] + n[1][i];
	}
	stats->ticks = stats->user + stats->system;
	stats->hit = sum[PROFIL_HIT];
	stats->outside = sum[PROFIL_OUTSIDE];
	stats->saturated = sum[PROFIL_SATURATED];
	stats->dropped_overrun = sum[PROFIL_DROPPED_OVERRUN];
	stats->dropped_buffer = sum[PROFIL_DROPPED_BUFFER];
	stats->dropped_contended = sum[PROFIL_DROPPED_CONTENDED];
	stats->dropped = stats->dropped_overrun + stats->dropped_buffer + stats->dropped_contended;

	if (s->state == PROFIL_STATE_ON)
		runtime = session_runtime(s) - runtime;
	stats->expected = div_u64(runtime + TICK_NSEC / 2, TICK_NSEC);
	stats->locked = (u64)s->charged << PAGE_SHIFT;
	stats->state = s->state;
	stats->end = s->end;
}

/* @stats is zero; it gets the final statistics. */
int profil_session_stop(u32 scope, struct profil_stats *stats)
{
	struct profil_space *space = space_lock(false);
	struct profil_session *s;
	int err = -EINVAL;

	if (IS_ERR_OR_NULL(space))
		return space ? PTR_ERR(space) : err;
	s = session_of(space, scope);
	if (s) {
		bool on = s->state == PROFIL_STATE_ON;

		if (on)
			session_end(s, PROFIL_END_NONE);
		session_settle(s, true);
		session_read(s, stats);
		if (on)
			stats->state = PROFIL_STATE_OFF;
		session_forget(s);
		err = 0;
	}
	space_unlock(space);
	return err;
}

/* @stats is zero. */
int profil_session_stats(u32 scope, struct profil_stats *stats)
{
	struct profil_space *space = space_lock(false);
	struct profil_session *s;

	if (IS_ERR_OR_NULL(space))
		return PTR_ERR_OR_ZERO(space);
	s = session_of(space, scope);
	if (s && s->state == PROFIL_STATE_ON && profil_session_parked(s) &&
	    profil_histograms_refresh(s) == -EFAULT)
		session_end(s, PROFIL_END_BUFFER);
	if (s && s->state == PROFIL_STATE_ENDED)
		session_settle(s, true);
	if (s)
		session_read(s, stats);
	space_unlock(space);
	return 0;
}

/* ---- load and unload ---- */

/*
 * No session is on, no file is open, no probe runs. Frees the records of ended
 * sessions; what is already on its way, the caller flushes with profil_wq.
 */
void profil_sessions_exit(void)
{
	struct profil_space *space;
	unsigned int i;

	for (i = 0; i < 1 << PROFIL_HASH_BITS; i++) {
		for (;;) {
			spin_lock(&spaces_lock);
			space = hlist_entry_safe(profil_spaces[i].first, struct profil_space, node);
			if (space)
				kref_get(&space->refs);
			spin_unlock(&spaces_lock);
			if (!space)
				break;
			space_reap(space);
		}
	}
}
