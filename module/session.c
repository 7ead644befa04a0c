// SPDX-License-Identifier: GPL-2.0
/*
 * The creation, the end and the release of sessions.
 *
 * A session owns its pinned pages, their charge, and a use of its trigger while it is on; without a
 * file, also a reference to the module. profil_session_finish() gives these up, except the charge
 * for records. After that the statistics and records can be read, until the next start or stop, or
 * as long as the descriptor is open. Unloading the module frees sessions that have ended.
 *
 * Context: system calls, task work, workers (may sleep); profil_session_alloc() and
 * profil_session_put() also in probes (atomic).
 */
#include "internal.h"

/* Runs in a worker, after a grace period. No pointers to the session are left. */
static void session_free(struct work_struct *work)
{
	struct profil_session *s = container_of(to_rcu_work(work), struct profil_session, free);

	if (s->home) {
		profil_space_put(s->home);
	} else {
		/* The session was PENDING, and was never set up. */
		if (s->on)
			profil_trigger_put(profil_session_trigger(s));
		module_put(THIS_MODULE);
	}
	if (s->other_page)
		put_page(s->other_page);
	profil_ring_free(s->ring);
	free_percpu(s->counts);
	kvfree(s);
}

void profil_session_put(struct profil_session *s)
{
	if (refcount_dec_and_test(&s->refs))
		queue_rcu_work(profil_wq, &s->free);
}

/* Allocates a PENDING session, without counts. Returns NULL if out of memory. */
struct profil_session *profil_session_alloc(gfp_t gfp)
{
	struct profil_session *s = profil_zalloc(sizeof(*s), gfp);

	if (!s)
		return NULL;
	profil_session_set_on(s, false);
	s->histograms = RB_ROOT_CACHED;
	s->bindings = RB_ROOT;
	refcount_set(&s->refs, 1);
	INIT_LIST_HEAD(&s->list);
	INIT_LIST_HEAD(&s->targets);
	INIT_RCU_WORK(&s->free, session_free);
	return s;
}

struct profil_counts __percpu *profil_session_alloc_counts(const struct profil_session *s)
{
	struct profil_counts __percpu *counts =
		alloc_percpu_gfp(struct profil_counts, GFP_KERNEL_ACCOUNT);
	int cpu;

	/* The first sample comes at a random time, to sample short-lived targets, too. */
	if (counts)
		for_each_possible_cpu(cpu)
			per_cpu_ptr(counts, cpu)->left = profil_clock_random(s->period) + 1;
	return counts;
}

/* Creates a LIVE session in the caller's space, not in the list there yet; or an error pointer. */
struct profil_session *profil_session_create(u32 modes, u64 period, bool jitter)
{
	int err = modes & ~(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM) ? -EOPNOTSUPP :
		  profil_clock_check_period(period, jitter);
	struct profil_space *home;
	struct profil_session *s;

	if (err)
		return ERR_PTR(err);
	home = profil_space_get_own(true);
	if (IS_ERR(home))
		return ERR_CAST(home);
	s = profil_session_alloc(GFP_KERNEL_ACCOUNT);
	if (!s) {
		profil_space_put(home);
		return ERR_PTR(-ENOMEM);
	}
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
	return ERR_PTR(-ENOMEM);
}

void profil_session_set_phase(struct profil_session *s, enum profil_session_phase phase)
{
	/* Targets are attached under this lock, and only before QUIESCED. */
	raw_spin_lock_irq(&profil_index_lock);
	WARN_ON_ONCE(phase != s->phase + 1);
	WRITE_ONCE(s->phase, phase);
	raw_spin_unlock_irq(&profil_index_lock);
}

/*
 * Resyncs the clock after @s got the target @task (NULL: any) or was turned on. If a CPU had
 * stopped its tick, waits for a tick there: the tick accounts the CPU time of the running task.
 */
void profil_session_resync_runtime(struct profil_session *s, const struct task_struct *task)
{
	if (profil_clock_resync(s, NULL)) {
		schedule_timeout_uninterruptible(2);
		profil_targets_runtime(s, task, true);
	}
}

/* Forgets the last tick of each CPU, so that no tick before now counts as missed. */
void profil_session_reset_missed(struct profil_session *s)
{
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(s->counts, cpu)->expected_by, 0);
}

/* Returns true if no tick of @s can be in progress: no target but the caller could run. */
bool profil_session_is_quiet(const struct profil_session *s)
{
	struct mm_struct *mm = profil_space_mm(s->home);
	int users = mm ? atomic_read(&mm->mm_users) : 0;

	if (s->classic)
		return !users || (users == 1 && current->mm == mm) ||
		       (s->scope == PROFIL_SCOPE_THREAD && s->task == current);
	return !s->nr_detached;
}

/* Detaches all targets. After a grace period, unless @s is quiet, call profil_session_finish(). */
void profil_session_quiesce(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);
	/* This comes first: from QUIESCED on, profil_target_move() adds no CPU time. */
	if (s->on)
		atomic64_add(profil_targets_runtime(s, NULL, true), &s->runtime);
	profil_session_set_phase(s, PROFIL_QUIESCED);
	profil_target_detach_all(s);
	profil_machine_detach(s);
}

/* Unpins and uncharges all pages, or with @unused those that no table uses. */
void profil_session_unpin(struct profil_session *s, bool unused)
{
	s->charged -= profil_histograms_free(profil_space_mm(s->home), &s->histograms, unused);
}

/* Ends @s: from here on no tick is counted, no page is pinned, the statistics are final. */
void profil_session_finish(struct profil_session *s, enum profil_end end)
{
	bool on = s->on;

	lockdep_assert_held(&s->home->lock);
	profil_session_set_on(s, false);
	s->end = end;
	profil_replay(s);
	profil_session_set_phase(s, PROFIL_ENDED);
	profil_session_unpin(s, false);
	if (on) {
		/* This lets CPUs stop their tick again, see clock.c. */
		if (profil_nohz_full)
			profil_clock_resync(s, NULL);
		profil_trigger_put(profil_session_trigger(s));
	}
	profil_ring_wake(s->ring);
	if (s->classic)
		module_put(THIS_MODULE);
}

void profil_session_end(struct profil_session *s, enum profil_end end)
{
	profil_session_quiesce(s);
	if (!profil_session_is_quiet(s))
		synchronize_rcu();
	profil_session_finish(s, end);
}

/* Removes an ended session, whose statistics will not be read again, from its home. */
void profil_session_unlist(struct profil_session *s)
{
	lockdep_assert_held(&s->home->lock);
	profil_uncharge(profil_space_mm(s->home), s->charged);
	s->charged = 0;
	list_del_init(&s->list);
	profil_session_put(s);
}
