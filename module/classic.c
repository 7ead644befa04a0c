// SPDX-License-Identifier: GPL-2.0
/*
 * Classic sessions: they have no descriptor, and sample the calling process or thread.
 *
 * Context: system calls of the process (may sleep).
 */
#include "internal.h"

/* Finds the classic session in @scope (of a thread: the caller's), on or ended; or returns NULL. */
struct profil_session *profil_classic_find(struct profil_space *home, u32 scope)
{
	struct profil_session *s;

	lockdep_assert_held(&home->lock);
	list_for_each_entry(s, &home->sessions, list)
		if (s->classic && s->scope == scope && !READ_ONCE(s->owner_gone) &&
		    (scope == PROFIL_SCOPE_PROCESS || s->task == current))
			return s;
	return NULL;
}

/* Checks if @s may start. @credit: set to the charge of the session that @s would replace. */
static int classic_check(const struct profil_session *s, bool replace, unsigned long *credit)
{
	struct profil_session *old;
	bool on;

	if (mutex_lock_killable(&s->home->lock))
		return -EINTR;
	profil_space_end_sessions(s->home, false);
	old = profil_classic_find(s->home, s->scope);
	on = old && old->phase == PROFIL_LIVE;
	*credit = on ? old->charged : 0;
	mutex_unlock(&s->home->lock);
	return on && !replace ? -EBUSY : 0;
}

/* Publishes @s, under home->lock. @s replaces a session in its scope that is on or ended. */
static int classic_publish(struct profil_session *s, struct rb_root_cached *new,
			   struct profil_table *table, bool replace)
{
	struct profil_session *old = profil_classic_find(s->home, s->scope);
	struct profil_session *on = old && old->phase == PROFIL_LIVE ? old : NULL;
	struct profil_target *t;
	int err;

	if (on && !replace)
		return -EBUSY;
	/* The session whose charge was the credit for the pins may be gone. */
	err = profil_charge(0, on ? on->charged : 0, s->may_exceed) ?:
	      profil_trigger_get(profil_session_trigger(s));
	if (err)
		return err;
	t = profil_target_alloc(current, s->scope == PROFIL_SCOPE_THREAD, false,
				GFP_KERNEL_ACCOUNT);
	profil_clock_resync(s, current->mm);	/* so that earlier time does not count */
	profil_session_set_on(s, true);
	err = profil_target_attach(t, s, s->home, table, on, NULL, GFP_KERNEL_ACCOUNT);
	if (err) {
		profil_target_free(t);
		profil_session_set_on(s, false);
		profil_trigger_put(profil_session_trigger(s));
		return err;
	}
	profil_histograms_adopt(s, new);
	__module_get(THIS_MODULE);
	refcount_inc(&s->refs);
	list_add(&s->list, &s->home->sessions);
	profil_session_resync_runtime(s, NULL);
	if (on)
		profil_session_end(on, PROFIL_END_NONE);
	if (old)
		profil_session_unlist(old);
	return 0;
}

/* Starts @s. Pins pages without home->lock, since pinning may wait for user space. */
static int classic_start(struct profil_session *s, struct profil_table *table, bool replace)
{
	struct profil_space *home = s->home;
	struct rb_root_cached new;
	unsigned long credit;
	int err;

	err = classic_check(s, replace, &credit) ?:
	      profil_histograms_pin(&new, table, false, s->may_exceed, credit);
	if (err)
		return err;
	profil_table_bind(table, &new);
	err = -EINTR;
	if (!mutex_lock_killable(&home->lock)) {
		err = classic_publish(s, &new, table, replace);
		mutex_unlock(&home->lock);
	}
	/* The tree is empty, unless there was an error. */
	profil_histograms_free(current->mm, &new, false);
	return err;
}

int profil_classic_start(struct file *file, void *data, struct profil_stats *unused)
{
	const struct profil_start *arg = data;
	struct profil_session *s;
	struct profil_table *table;
	int err;

	if (arg->scope > PROFIL_SCOPE_THREAD)
		return -EOPNOTSUPP;
	if (arg->nr_ranges > PROFIL_MAX_RANGES)
		return -EINVAL;
	s = profil_session_create(arg->modes, arg->period, arg->flags & PROFIL_START_JITTER);
	if (IS_ERR(s))
		return PTR_ERR(s);
	s->classic = true;
	s->scope = arg->scope;
	s->task = current;
	table = profil_table_create(s, arg->ranges, arg->nr_ranges);
	err = PTR_ERR_OR_ZERO(table);
	if (err)
		goto put;
	if (table->spans[0].range.flags & PROFIL_RANGE_PCS) {
		s->pcs = table->spans[0].range.buffer;
		s->pc_width = table->spans[0].width;
		s->max_pcs = table->spans[0].bytes / s->pc_width;
	}
	err = classic_start(s, table, arg->flags & PROFIL_START_REPLACE);
	profil_table_put(table);
put:
	profil_session_put(s);
	return err;
}

/* Reads the statistics in @scope: zeros without a session. @stop: also ends it, or fails. */
static int classic_read(u32 scope, bool stop, struct profil_stats *stats)
{
	struct profil_space *home;
	struct profil_session *s;
	int err = stop ? -EINVAL : 0;

	if (scope > PROFIL_SCOPE_THREAD)
		return -EOPNOTSUPP;
	*stats = (struct profil_stats) { .size = stats->size, .scope = scope };
	home = profil_space_get_own(false);
	if (IS_ERR_OR_NULL(home))
		return home ? PTR_ERR(home) : err;
	if (mutex_lock_killable(&home->lock)) {
		err = -EINTR;
		goto put_home;
	}
	s = profil_classic_find(home, scope);
	if (s) {
		bool ends = stop && s->phase == PROFIL_LIVE;

		err = 0;
		if (ends)
			profil_session_end(s, PROFIL_END_NONE);
		profil_replay(s);
		profil_stats_read(s, stats, false);
		if (ends)
			stats->state = PROFIL_STATE_OFF;
		if (stop)
			profil_session_unlist(s);
	}
	mutex_unlock(&home->lock);
put_home:
	profil_space_put(home);
	return err;
}

int profil_classic_stop(struct file *file, void *data, struct profil_stats *stats)
{
	return classic_read(((const struct profil_stop *)data)->scope, true, stats);
}

int profil_classic_stats(struct file *file, void *data, struct profil_stats *unused)
{
	return classic_read(((struct profil_stats *)data)->scope, false, data);
}
