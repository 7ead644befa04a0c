// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: memory, ticks, the end.
 *
 * A session owns its pins, the charge for them, a share in the ticks while it is on, and, unless
 * a file does that for it, a reference to the module. These go in profil_session_finish(), but for
 * the charge, which the home may owe for a moment; that for records is kept as long as they can be
 * read.
 * An ended session is left for its statistics to be read, until the next start or stop, or as long
 * as its descriptor is open. It does not hold the module; unloading frees it.
 *
 * What a session samples is linked when all of it is ready, and unlinked before anything of it is
 * undone; between the two steps no tick may be under way, see profil_session_quiesce().
 *
 * Context: system calls, and workers; profil_session_alloc() and profil_session_put() also in the
 * probe of fork.
 */
#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "compat.h"
#include "profil.h"

/* ---- memory ---- */

/* After a grace period, in a worker: nothing points here any more. */
static void session_free(struct work_struct *work)
{
	struct profil_session *s = container_of(to_rcu_work(work), struct profil_session, free);
	unsigned long flags;

	if (s->root) {
		raw_spin_lock_irqsave(&profil_index_lock, flags);
		list_del_init(&s->descendants);
		raw_spin_unlock_irqrestore(&profil_index_lock, flags);
		profil_session_put(s->root);
	}
	if (s->home) {
		profil_home_put(s->home);
	} else {
		/* Inherited, and never set up. */
		if (s->on)
			profil_trigger_put(profil_session_trigger(s));
		module_put(THIS_MODULE);
	}
	profil_ring_free(s->ring);
	free_percpu(s->counts);
	kvfree(s);
}

void profil_session_put(struct profil_session *s)
{
	if (refcount_dec_and_test(&s->refs))
		queue_rcu_work(profil_wq, &s->free);
}

/* With one reference, and nothing that could fail later but its counts. PENDING. */
struct profil_session *profil_session_alloc(gfp_t gfp)
{
	struct profil_session *s = profil_zalloc(sizeof(*s), gfp);

	if (!s)
		return NULL;
	s->slow = PROFIL_SLOW_OFF;
	s->histograms = RB_ROOT_CACHED;
	s->bindings = RB_ROOT;
	refcount_set(&s->refs, 1);
	INIT_LIST_HEAD(&s->list);
	INIT_LIST_HEAD(&s->targets);
	INIT_LIST_HEAD(&s->descendants);
	INIT_RCU_WORK(&s->free, session_free);
	return s;
}

/* A new session is due at any moment of its first period: what is short may be found, too. */
s64 profil_session_first_period(const struct profil_session *s)
{
	unsigned long flags;
	u32 random;

	if (!s->period)
		return 0;
	local_irq_save(flags);
	random = profil_clock_random();
	local_irq_restore(flags);
	return (mul_u32_u32(s->period, random) >> 32) + 1;
}

struct profil_counts __percpu *profil_session_alloc_counts(const struct profil_session *s)
{
	struct profil_counts __percpu *counts;
	int cpu;

	counts = alloc_percpu_gfp(struct profil_counts, GFP_KERNEL_ACCOUNT);
	if (counts)
		for_each_possible_cpu(cpu)
			per_cpu_ptr(counts, cpu)->left = profil_session_first_period(s);
	return counts;
}

/* A session of the caller's, with counts; not in its home's list yet. Or NULL. */
struct profil_session *profil_session_create(struct profil_home *home, u32 modes, u32 period,
					     bool jitter)
{
	struct profil_session *s = profil_session_alloc(GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	refcount_inc(&home->refs);
	s->home = home;
	s->phase = PROFIL_LIVE;
	s->may_exceed = ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
	s->modes = modes;
	s->period = period;
	s->jitter = jitter;
	s->counts = profil_session_alloc_counts(s);
	if (s->counts)
		return s;
	profil_session_put(s);
	return NULL;
}

/* Phases come in their order; one that could not be set up is never LIVE. */
void profil_session_set_phase(struct profil_session *s, enum profil_session_phase phase)
{
	unsigned long flags;

	/* With QUIESCED it takes no more bindings and targets, which come under this lock. */
	raw_spin_lock_irqsave(&profil_index_lock, flags);
	WARN_ON_ONCE(phase != s->phase + 1 &&
		     !(s->phase == PROFIL_PENDING && phase == PROFIL_QUIESCED));
	WRITE_ONCE(s->phase, phase);
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
}

/* A classic session has lost its thread. */
void profil_session_set_owner_gone(struct profil_session *s)
{
	WRITE_ONCE(s->owner_gone, true);
	profil_home_kick(s->home);
}

/* ---- ticks ---- */

/* As profil_clock_resync(), if that is of interest to @s, which is about to have targets. */
void profil_session_resync_clock(struct profil_session *s)
{
	if (s->period || profil_nohz_full)
		profil_clock_resync();
}

/*
 * Now it has: @task, or all, if that is NULL. Where the tick had been stopped, the scheduler does
 * not know how much time they have had until it comes again.
 */
void profil_session_resync_runtime(struct profil_session *s, const struct task_struct *task)
{
	if ((s->period || profil_nohz_full) && profil_clock_resync()) {
		schedule_timeout_uninterruptible(2);
		profil_targets_runtime(s, task, true);
	}
}

/* From now on there is more to sample: ticks before are not missed. */
void profil_session_reset_missed(struct profil_session *s)
{
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(s->counts, cpu)->due, 0);
}

/* ---- the end ---- */

/*
 * Can no tick be under way in @s, which samples nothing any more? A tick runs on the CPU of
 * the task it samples: if no other task can have been sampled than the caller, there is
 * none. So a single-threaded program that starts and stops in a loop does not wait.
 */
bool profil_session_is_quiet(const struct profil_session *s)
{
	struct mm_struct *mm = s->home->mm;
	int users = atomic_read(&mm->mm_users);

	if (s->classic)
		return !users || (users == 1 && current->mm == mm) ||
		       (s->scope == PROFIL_SCOPE_THREAD && s->task == current);
	return !s->root && !s->nr_detached;
}

/*
 * No tick finds it any more. Those that have found it still are counted: one that has taken its
 * place does not count them. A grace period is to follow, unless it is quiet, and
 * profil_session_finish().
 */
void profil_session_quiesce(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	profil_session_set_phase(s, PROFIL_QUIESCED);
	/* From here on targets that leave do not add their time themselves. */
	if (s->on)
		s->runtime += profil_targets_runtime(s, NULL, false);
	profil_target_detach_all(s);
}

/* No tick is counted after this, no page is pinned, and the statistics are final. */
void profil_session_finish(struct profil_session *s, enum profil_end end)
{
	bool on = s->on;

	lockdep_assert_held(&s->home->lock);

	profil_session_set_on(s, false);
	s->end = end;
	profil_replay(s);
	profil_session_set_phase(s, PROFIL_ENDED);
	/* The charge for records is kept as long as they can be read. */
	s->home->to_uncharge += profil_histograms_free(&s->histograms);
	s->charged = s->ring_pages;
	if (on) {
		/* Ticks that came for its sake alone need not any more. */
		if (profil_nohz_full)
			profil_clock_resync();
		profil_trigger_put(profil_session_trigger(s));
	}
	profil_ring_wake(s);
	if (s->classic || s->root)
		module_put(THIS_MODULE);
}

void profil_session_end(struct profil_session *s, enum profil_end end)
{
	profil_session_quiesce(s);
	if (!profil_session_is_quiet(s))
		synchronize_rcu();
	profil_session_finish(s, end);
}

/* It has ended, and nobody asks for it any more. */
void profil_session_unlist(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);

	s->home->to_uncharge += s->charged;
	s->charged = 0;
	list_del_init(&s->list);
	profil_session_put(s);
}
