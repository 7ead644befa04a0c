// SPDX-License-Identifier: GPL-2.0
/*
 * The targets of sessions, and the bindings of sessions to the spaces where the targets run.
 *
 * The tick finds a space by the mm of current, and there the bindings that have processes, so those
 * that share an address space are sampled as one. It finds threads by their task_struct.
 *
 * A process is identified by its signal_struct, which lasts from fork to exit through any exec. A
 * target runs in one space at a time, and has the binding of its session to that space. When the
 * last target leaves a binding, the binding is freed, unless it is retained.
 *
 * Targets and bindings are (un)linked under profil_index_lock, and freed a grace period later.
 *
 * Context: system calls, task work, workers, and the probes of follow.c (atomic).
 */
#include "internal.h"

struct hlist_head profil_targets[1 << PROFIL_HASH_BITS];
unsigned int profil_nr_targets;

static struct profil_table *binding_table(const struct profil_binding *b)
{
	return rcu_dereference_protected(b->table, lockdep_is_held(&profil_index_lock));
}

struct profil_binding *profil_binding_alloc(struct profil_session *s, struct profil_space *space,
					    struct profil_table *table, gfp_t gfp)
{
	struct profil_binding *b = profil_zalloc(sizeof(*b), gfp);

	if (!b)
		return NULL;
	refcount_inc(&s->refs);
	refcount_inc(&space->refs);
	b->session = s;
	b->space = space;
	RCU_INIT_POINTER(b->table, table ? profil_table_get(table) : NULL);
	RB_CLEAR_NODE(&b->by_id);
	return b;
}

/* Frees @b, which was never linked, or has been unlinked. @b can be NULL. */
void profil_binding_free(struct profil_binding *b)
{
	if (!b)
		return;
	profil_table_put(rcu_access_pointer(b->table));
	profil_session_put(b->session);
	profil_space_put(b->space);
	kfree_rcu(b, rcu);
}

struct profil_target *profil_target_alloc(struct task_struct *task, bool thread, bool foreign,
					  gfp_t gfp)
{
	struct profil_target *t = profil_zalloc(sizeof(*t), gfp);

	if (!t)
		return NULL;
	t->task = get_task_struct(task);
	t->key = thread ? (const void *)task : task->signal;
	t->thread = thread;
	t->foreign = foreign;
	return t;
}

static void target_free(struct rcu_head *rcu)
{
	struct profil_target *t = container_of(rcu, struct profil_target, rcu);

	put_task_struct(t->task);
	kfree(t);
}

/* Frees @t after a grace period. Until then, readers may use its task. @t can be NULL. */
void profil_target_free(struct profil_target *t)
{
	if (t)
		call_rcu(&t->rcu, target_free);
}

static u64 target_cpu_time(const struct profil_target *t)
{
	struct signal_struct *signal = t->task->signal;
	struct task_struct *thread;
	unsigned int seq, next = 0;
	unsigned long flags;
	u64 ns;

	if (t->thread)
		return READ_ONCE(t->task->se.sum_exec_runtime);

	rcu_read_lock();
	do {
		/* A retry may sleep on PREEMPT_RT. Probes see one thread, so they never retry. */
		seq = next;
		flags = read_seqbegin_or_lock_irqsave(&signal->stats_lock, &seq);
		ns = signal->sum_sched_runtime;
		for_each_thread(t->task, thread)
			ns += READ_ONCE(thread->se.sum_exec_runtime);
		next = 1;
	} while (need_seqretry(&signal->stats_lock, seq));
	done_seqretry_irqrestore(&signal->stats_lock, seq, flags);
	rcu_read_unlock();
	return ns;
}

static bool binding_linked(const struct profil_binding *b)
{
	return !RB_EMPTY_NODE(&b->by_id);
}

static struct profil_binding *binding_in(const struct profil_session *s, u64 id)
{
	struct rb_node *node = s->bindings.rb_node;
	struct profil_binding *b;

	lockdep_assert_held(&profil_index_lock);
	while (node) {
		b = rb_entry(node, struct profil_binding, by_id);
		if (b->space->id == id)
			return b;
		node = id < b->space->id ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static bool binding_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct profil_binding, by_id)->space->id <
	       rb_entry(b, struct profil_binding, by_id)->space->id;
}

static void binding_unlink(struct profil_binding *b)
{
	struct profil_session *s = b->session;

	if (!hlist_unhashed(&b->node))
		hlist_del_init_rcu(&b->node);
	rb_erase(&b->by_id, &s->bindings);
	RB_CLEAR_NODE(&b->by_id);
	if (b->space->pending == s)
		WRITE_ONCE(b->space->pending, NULL);
	profil_space_update_fast_table(b->space);
}

/* A process's classic session samples the space until it ends, so its binding is retained. */
static void binding_count(struct profil_binding *b, const struct profil_target *t, int by)
{
	const struct profil_session *s = b->session;
	bool retained = s->classic && s->scope == PROFIL_SCOPE_PROCESS && s->home;

	if (t->thread) {
		b->nr_threads += by;
		WRITE_ONCE(b->space->nr_threads, b->space->nr_threads + by);
	} else {
		b->nr_processes += by;
		WRITE_ONCE(b->samples_all, b->nr_processes || retained);
	}
}

/*
 * Adds @t to @b. With its first process, @b enters space->bindings: in place of @old, unless that
 * is NULL. There @b remains until it is unlinked, so that a tick that visits @b can continue.
 */
static void target_enter(struct profil_target *t, struct profil_binding *b,
			 struct profil_binding *old)
{
	if (!binding_linked(b))
		rb_add(&b->by_id, &b->session->bindings, binding_before);
	rcu_assign_pointer(t->binding, b);
	binding_count(b, t, 1);
	if (hlist_unhashed(&b->node)) {
		b->foreign = t->foreign;
		if (old && !t->thread) {
			hlist_replace_rcu(&old->node, &b->node);
			old->node.pprev = NULL;		/* unhashes it, but keeps next for ticks */
		} else if (!t->thread) {
			hlist_add_head_rcu(&b->node, &b->space->bindings);
		}
	}
	profil_space_update_fast_table(b->space);
}

/* Removes @t from @b. Return: @b, to be freed, if @t was its last target; or NULL. */
static struct profil_binding *target_leave(struct profil_target *t, struct profil_binding *b)
{
	binding_count(b, t, -1);
	if (!b->samples_all && !b->nr_threads) {
		binding_unlink(b);
		return b;
	}
	profil_space_update_fast_table(b->space);
	return NULL;
}

/* Returns the binding of @t. Without profil_index_lock, under RCU, it may be outdated. */
static struct profil_binding *target_binding(const struct profil_target *t)
{
	return rcu_dereference_check(t->binding, lockdep_is_held(&profil_index_lock));
}

static bool target_in_session(const struct profil_session *s, const void *key)
{
	struct profil_target *t;

	for (t = profil_target_first(key); t; t = profil_target_next(t))
		if (target_binding(t)->session == s)
			return true;
	return false;
}

/*
 * Returns true if a thread of the process @t is a target of @s. Does not take profil_index_lock, as
 * threads may be many. Under home->lock only a fork can add such a thread: the first of a process.
 */
static bool target_thread_in_session(const struct profil_session *s, const struct profil_target *t)
{
	struct task_struct *thread;
	bool found = false;

	if (!READ_ONCE(s->nr_thread_targets))
		return false;
	rcu_read_lock();
	for_each_thread(t->task, thread) {
		found = target_in_session(s, thread);
		if (found)
			break;
	}
	rcu_read_unlock();
	return found;
}

/* Returns true if @t has too many sessions, in all spaces, since exec moves targets late. */
static bool target_is_too_many(const struct profil_session *s, const struct profil_space *space,
			       const struct profil_target *t)
{
	const struct profil_binding *b = binding_in(s, space->id);
	unsigned int n = 0, clocked = 0, n_here = 0, clocked_here = 0;
	struct profil_target *other;
	struct profil_binding *other_b;

	if (s->classic)
		return false;
	for (other = profil_target_first(t->key); other; other = profil_target_next(other)) {
		if (other->foreign != t->foreign || target_binding(other)->session->classic)
			continue;
		n++;
		clocked += !!target_binding(other)->session->period;
	}
	if (!t->thread && (!b || hlist_unhashed(&b->node))) {
		hlist_for_each_entry(other_b, &space->bindings, node) {
			if (other_b->foreign != t->foreign || other_b->session->classic)
				continue;
			n_here++;
			clocked_here += !!other_b->session->period;
		}
	}
	return max(n, n_here) >= (t->foreign ? PROFIL_MAX_FOREIGN : PROFIL_MAX_SESSIONS) ||
	       (s->period && max(clocked, clocked_here) >=
		(t->foreign ? PROFIL_MAX_FOREIGN_CLOCKED : PROFIL_MAX_CLOCKED));
}

/* Checks if @t, which runs in @space, can become a target of @s: see profil_target_attach(). */
static int target_check(const struct profil_target *t, const struct profil_session *s,
			const struct profil_space *space)
{
	lockdep_assert_held(&profil_index_lock);
	/* An exec by another thread may have replaced the leader of the process. */
	if (!(t->thread ? pid_alive(t->task) : !!pid_task(task_tgid(t->task), PIDTYPE_TGID)))
		return -ESRCH;
	/* Another call may have attached the child of a fork before the probe. */
	if (target_in_session(s, t->task->signal) || target_in_session(s, t->task))
		return -EBUSY;
	if (s->phase > PROFIL_LIVE)
		return -ENODEV;
	return target_is_too_many(s, space, t) ? -EUSERS : 0;
}

/* Returns the error that profil_target_attach() would return now, or 0. */
int profil_target_check(const struct profil_target *t, struct profil_session *s,
			const struct profil_space *space)
{
	int err;

	if (!t->thread && target_thread_in_session(s, t))
		return -EBUSY;
	rcu_read_lock();
	raw_spin_lock_irq(&profil_index_lock);
	err = target_check(t, s, space);
	raw_spin_unlock_irq(&profil_index_lock);
	rcu_read_unlock();
	return err;
}

static int target_link(struct profil_binding *b, struct profil_target *t,
		       struct profil_session *old, struct profil_binding *parent)
{
	struct profil_target *old_target = NULL;
	struct profil_session *s = b->session;

	lockdep_assert_held(&profil_index_lock);
	if (parent && !binding_linked(parent))
		return -ENODEV;
	if (parent && !binding_linked(b))
		rcu_assign_pointer(b->table, profil_table_get(binding_table(parent)));
	target_enter(t, b, old ? binding_in(old, b->space->id) : NULL);
	/* A PENDING session has only this target. */
	if (!s->home)
		WRITE_ONCE(b->space->pending, s);
	list_add_tail_rcu(&t->list, &s->targets);
	s->nr_targets++;
	s->nr_thread_targets += t->thread;
	WRITE_ONCE(profil_nr_targets, profil_nr_targets + 1);
	/* The target of a classic session of a thread is that thread alone. */
	if (old && t->thread)
		old_target = list_first_entry_or_null(&old->targets, struct profil_target, list);
	if (old_target) {
		hlist_replace_rcu(&old_target->node, &t->node);
		old_target->node.pprev = NULL;
	} else {
		hlist_add_head_rcu(&t->node, &profil_targets[profil_hash(t->key)]);
	}
	return 0;
}

/*
 * Attaches @t, which runs in @space, to @s. If @s has no binding there, it gets one, with @table.
 * @old: the classic session that this one replaces without losing a tick; or NULL. @parent: the
 * binding whose table the new one inherits instead, for PROFIL_FORK_SHARE; or NULL.
 * Return: 0; -ENOMEM, also if @t is NULL; -ESRCH: its task has exited; -EBUSY: @t is a target
 * already; -EUSERS: a limit is reached; -ENODEV: @parent or the session ends.
 */
int profil_target_attach(struct profil_target *t, struct profil_session *s,
			 struct profil_space *space, struct profil_table *table,
			 struct profil_session *old, struct profil_binding *parent, gfp_t gfp)
{
	struct profil_binding *b = profil_binding_alloc(s, space, table, gfp);
	unsigned long flags;
	int err = -ENOMEM;

	if (!b || !t)
		goto free;
	t->runtime = target_cpu_time(t);
	err = -EBUSY;
	if (!t->thread && target_thread_in_session(s, t))
		goto free;
	/* If the task is alive here, RCU delays follow_free() until the target is linked. */
	rcu_read_lock();
	raw_spin_lock_irqsave(&profil_index_lock, flags);
	err = target_check(t, s, space);
	if (!err)
		err = target_link(binding_in(s, space->id) ?: b, t, old, parent);
	if (binding_linked(b))
		b = NULL;
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	rcu_read_unlock();
free:
	profil_binding_free(b);
	return err;
}

static void target_unlink(struct profil_target *t, struct profil_session *s)
{
	lockdep_assert_held(&profil_index_lock);
	if (!hlist_unhashed(&t->node))
		hlist_del_init_rcu(&t->node);
	list_del_rcu(&t->list);
	t->list.prev = NULL;		/* marks @t as unlinked for profil_target_move() */
	s->nr_targets--;
	s->nr_thread_targets -= t->thread;
	s->nr_detached++;
	WRITE_ONCE(profil_nr_targets, profil_nr_targets - 1);
}

/* Detaches all targets of @s, which is QUIESCED and so gets no new ones. */
void profil_target_detach_all(struct profil_session *s)
{
	struct profil_binding *b;
	struct profil_target *t;

	do {
		raw_spin_lock_irq(&profil_index_lock);
		t = list_first_entry_or_null(&s->targets, struct profil_target, list);
		b = t ? target_binding(t) :
		    rb_entry_safe(rb_first(&s->bindings), struct profil_binding, by_id);
		if (t) {
			target_unlink(t, s);
			b = target_leave(t, b);
		} else if (b) {
			binding_unlink(b);
		}
		raw_spin_unlock_irq(&profil_index_lock);
		profil_binding_free(b);
		profil_target_free(t);
		cond_resched();		/* there may be many targets */
	} while (t || b);
}

bool profil_binding_exists(const struct profil_session *s, u64 id)
{
	unsigned long flags;
	bool exists;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	exists = binding_in(s, id);
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	return exists;
}

/* Returns the table of @s in the space with @id, referenced; or NULL. home->lock keeps it there. */
struct profil_table *profil_binding_table(struct profil_session *s, u64 id)
{
	struct profil_table *table = NULL;
	struct profil_binding *b;

	raw_spin_lock_irq(&profil_index_lock);
	b = binding_in(s, id);
	if (b)
		table = profil_table_get(binding_table(b));
	raw_spin_unlock_irq(&profil_index_lock);
	return table;
}

/* Makes @table the table of @s in the space with @id, under home->lock. Return: 0, or -ESRCH. */
int profil_binding_set_table(struct profil_session *s, u64 id, struct profil_table *table)
{
	struct profil_table *old = NULL;
	struct profil_binding *b;

	raw_spin_lock_irq(&profil_index_lock);
	b = binding_in(s, id);
	if (b) {
		old = binding_table(b);
		rcu_assign_pointer(b->table, profil_table_get(table));
		profil_space_update_fast_table(b->space);
	}
	raw_spin_unlock_irq(&profil_index_lock);
	if (!b)
		return -ESRCH;
	profil_table_put(old);
	return 0;
}

/* Returns the CPU time in ns of target @task (NULL: all) since its attachment or last @restart. */
u64 profil_targets_runtime(struct profil_session *s, const struct task_struct *task, bool restart)
{
	struct profil_target *t;
	u64 ns = 0, now;

	lockdep_assert(!restart || lockdep_is_held(&s->home->lock));
	rcu_read_lock();
	list_for_each_entry_rcu(t, &s->targets, list) {
		if (task && t->task != task)
			continue;
		now = target_cpu_time(t);
		/* profil_target_move() does the same, so that each ns is taken exactly once. */
		ns += now - (restart ? xchg(&t->runtime, now) : READ_ONCE(t->runtime));
	}
	rcu_read_unlock();
	return ns;
}

/* Moves @t to the binding @to, which it consumes; or detaches @t if @to is NULL. */
void profil_target_move(struct profil_target *t, struct profil_binding *to)
{
	u64 now = target_cpu_time(t);
	struct profil_binding *from = NULL;
	struct profil_session *s;
	bool gone = false;
	unsigned long flags;

	raw_spin_lock_irqsave(&profil_index_lock, flags);
	if (!t->list.prev)
		goto unlock;
	from = target_binding(t);
	s = from->session;
	gone = !to || s->phase > PROFIL_LIVE;
	if (gone) {
		target_unlink(t, s);
		if (s->on && s->phase <= PROFIL_LIVE)
			atomic64_add(now - xchg(&t->runtime, now), &s->runtime);
		/* The session of a thread ends with it. */
		if (s->classic && t->thread) {
			WRITE_ONCE(s->owner_gone, true);
			profil_space_kick(s->home);
		}
		profil_ring_wake(s->ring);
	} else {
		target_enter(t, to, NULL);
		to = NULL;
	}
	from = target_leave(t, from);
unlock:
	raw_spin_unlock_irqrestore(&profil_index_lock, flags);
	profil_binding_free(from);
	profil_binding_free(to);
	if (gone)
		profil_target_free(t);
}
