// SPDX-License-Identifier: GPL-2.0
/*
 * The probes of fork, exec and exit, which apply these events to targets and sessions. inherit.c
 * makes and sets up the session that the child of a fork gets.
 *
 * Context: probes (atomic), follow_free() also in a softirq; others: module load and unload.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/binfmts.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "compat.h"
#include "internal.h"

static void follow_count_lost(struct profil_session *s)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	s->unfollowed++;
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
}

static int follow_fork_classic(struct profil_binding *b, struct profil_target *t,
			       struct profil_space *space)
{
	/* The child uses the table of its parent until it has one of its own. */
	struct profil_table *table = rcu_dereference(b->table);
	struct profil_session *s;
	int err;

	if (!refcount_inc_not_zero(&table->refs))
		return -ENODEV;
	s = profil_session_inherit(b->session, table);
	err = PTR_ERR_OR_ZERO(s);
	if (!err) {
		err = profil_target_attach(t, s, space, table, NULL, NULL, PROFIL_GFP_PROBE);
		/* From here on, the binding has the only reference to @s. */
		profil_session_put(s);
	}
	profil_table_put(table);
	return err;
}

/*
 * Applies a fork to one binding of the parent. If another CPU ends the session meanwhile, it also
 * detaches the child, unless it has quiesced the session before the child is attached: -ENODEV.
 * Return: 0; -ENODEV if the session ends; or another error.
 */
static int follow_fork_binding(struct profil_binding *b, struct task_struct *child,
			       bool thread, bool foreign, bool same)
{
	struct profil_session *s = b->session;
	struct profil_space *space;
	struct profil_target *t;
	int err = -ENOMEM;

	if (s->classic ? same || s->scope == PROFIL_SCOPE_THREAD : s->fork == PROFIL_FORK_OFF)
		return 0;
	/* RCU keeps the memory of @b, but the reference of @b to the session may be gone. */
	if (!refcount_inc_not_zero(&s->refs))
		return -ENODEV;
	space = profil_space_get(child->mm, PROFIL_GFP_PROBE);
	t = profil_target_alloc(child, thread, foreign, PROFIL_GFP_PROBE);
	if (space && t)
		err = s->classic ? follow_fork_classic(b, t, space) :
		      profil_target_attach(t, s, space, NULL, NULL, b, PROFIL_GFP_PROBE);
	if (err)
		profil_target_free(t);
	if (err == -ENOMEM || err == -EUSERS)
		follow_count_lost(s);
	if (space)
		profil_space_put(space);
	profil_session_put(s);
	return err;
}

static struct profil_binding *follow_find_classic(const struct profil_space *space)
{
	struct profil_binding *b;

	hlist_for_each_entry_rcu(b, &space->bindings, node)
		if (b->session->classic)
			return b;
	return NULL;
}

/* The probe of fork. It runs in the parent; the child does not run yet. */
static void follow_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct mm_struct *mm = child->mm;
	bool same = mm == parent->mm;
	struct profil_space *space;
	struct profil_binding *b;
	struct profil_target *t;

	if (!mm || child->signal == parent->signal)
		return;

	rcu_read_lock();
	space = profil_space_find(parent->mm);
	if (!space)
		goto unlock;
	hlist_for_each_entry_rcu(b, &space->bindings, node)
		if (!b->session->classic && READ_ONCE(b->samples_all))
			follow_fork_binding(b, child, false, b->foreign, same);
	/* If the classic session ends, another one may have replaced it. */
	do {
		b = follow_find_classic(space);
	} while (b && follow_fork_binding(b, child, false, false, same) == -ENODEV &&
		 b != follow_find_classic(space));
	if (!READ_ONCE(space->nr_threads))
		goto unlock;
	for (t = profil_target_first(parent); t; t = profil_target_next(t)) {
		b = rcu_dereference(t->binding);
		if (t->thread && b->space == space && !READ_ONCE(b->samples_all))
			follow_fork_binding(b, child, true, t->foreign, same);
	}
unlock:
	rcu_read_unlock();
}

/* Returns true if sessions must not follow this exec: see PROFIL_EXEC_FOLLOW. */
static bool follow_gains_privilege(const struct linux_binprm *bprm)
{
	const struct cred *cred = current_cred();

	return bprm->secureexec || bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP ||
	       !uid_eq(cred->euid, cred->uid) || !gid_eq(cred->egid, cred->gid);
}

/* @follow: false if the new program gains privilege; then sessions with records make a record. */
static void follow_exec_target(struct profil_target *t, const struct linux_binprm *bprm,
			       bool follow)
{
	struct profil_binding *from = rcu_dereference(t->binding), *b = NULL;
	struct profil_session *s = from->session;
	struct mm_struct *mm = current->mm;
	struct profil_space *space;

	/* Keeps the ranges of a target that was attached to the new mm during the exec. */
	if (from->space->mm == mm)
		return;
	/* A PENDING session does not follow the exec, which removes the session's buffers. */
	if (s->exec == PROFIL_EXEC_FOLLOW && s->home && refcount_inc_not_zero(&s->refs)) {
		space = follow ? profil_space_get(mm, PROFIL_GFP_PROBE) : NULL;
		if (space) {
			b = profil_binding_alloc(s, space, &profil_empty_table, PROFIL_GFP_PROBE);
			profil_space_put(space);
		}
		if (follow ? !b : s->records &&
		    !profil_ring_record_detached(s, from->space->id, bprm))
			follow_count_lost(s);
		profil_session_put(s);
	}
	profil_target_move(t, b);
}

/* The probe of exec. The task has its new mm, but has not run the new program yet. */
static void follow_exec(void *data, struct task_struct *task, pid_t old_pid,
			struct linux_binprm *bprm)
{
	bool follow = !follow_gains_privilege(bprm);
	struct profil_target *t;

	rcu_read_lock();
	for (t = profil_target_first(task->signal); t; t = profil_target_next(t))
		follow_exec_target(t, bprm, follow);
	for (t = profil_target_first(task); t; t = profil_target_next(t))
		follow_exec_target(t, bprm, follow);
	rcu_read_unlock();
	/* The mm has changed without a context switch. */
	profil_clock_resync_here();
}

/* The probe of free, a grace period after @task was reaped: no tick can find @task running. */
static void follow_free(void *data, struct task_struct *task)
{
	struct profil_target *t;

	if (!READ_ONCE(profil_nr_targets))
		return;

	rcu_read_lock();
	for (t = profil_target_first(task); t; t = profil_target_next(t))
		profil_target_move(t, NULL);
	if (thread_group_leader(task) && !atomic_read(&task->signal->live)) {
		for (t = profil_target_first(task->signal); t; t = profil_target_next(t))
			profil_target_move(t, NULL);
	}
	rcu_read_unlock();
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;	/* NULL: not registered */
} probes[] = {
	{ .name = "sched_process_fork", .probe = follow_fork },
	{ .name = "sched_process_exec", .probe = follow_exec },
	{ .name = "sched_process_free", .probe = follow_free },
};

/* Registers the probes. After an error, profil_follow_exit() must be called. */
int profil_follow_init(void)
{
	struct tracepoint *tracepoint;
	unsigned int i;
	int err;

	/* Probes are registered as void *, so let the compiler check their arguments. */
	check_trace_callback_type_sched_process_fork(follow_fork);
	check_trace_callback_type_sched_process_exec(follow_exec);
	check_trace_callback_type_sched_process_free(follow_free);

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		tracepoint = profil_trigger_find_tracepoint(probes[i].name);
		if (!tracepoint)
			return -EOPNOTSUPP;
		err = tracepoint_probe_register(tracepoint, probes[i].probe, NULL);
		if (err)
			return err;
		probes[i].tracepoint = tracepoint;
	}
	return 0;
}

void profil_follow_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].tracepoint)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].probe, NULL);
		probes[i].tracepoint = NULL;
	}
	tracepoint_synchronize_unregister();
}
