// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: closing the last copy of the descriptor ends the session.
 *
 * Only the creator can change ranges and copy counters. A process that has a copy of the descriptor
 * can attach itself, turn the session on and off, and read statistics and records.
 *
 * Context: system calls (may sleep).
 */
#include <linux/anon_inodes.h>

#include "internal.h"

/*
 * Ends the session, since the last copy of the descriptor is closed. START or a worker can end it
 * and drop the list's reference once owner_gone is set. The file's one keeps it and its home.
 */
static void descriptor_close(struct profil_session *s)
{
	struct profil_space *home = s->home;

	profil_ring_close(s->ring);
	WRITE_ONCE(s->owner_gone, true);
	/* The lock of another process's home may be held for long, so a worker takes it. */
	if (profil_space_is_own(home) && !mutex_lock_killable(&home->lock)) {
		profil_space_end_sessions(home, false);
		mutex_unlock(&home->lock);
	} else {
		profil_space_kick(home);
	}
	profil_session_put(s);
}

static int descriptor_release(struct inode *inode, struct file *file)
{
	descriptor_close(file->private_data);
	return 0;
}

static const struct file_operations descriptor_fops = {
	.owner = THIS_MODULE,
	.release = descriptor_release,
	.read = profil_ring_read,
	.poll = profil_ring_poll,
	.show_fdinfo = profil_ring_show_files,
	.unlocked_ioctl = profil_session_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* Adds @s to the list of its home, unless the limit of sessions is reached. */
static int descriptor_publish(struct profil_session *s)
{
	struct profil_space *home = s->home;
	struct profil_session *other;
	unsigned int n = 0;

	if (mutex_lock_killable(&home->lock))
		return -EINTR;
	list_for_each_entry(other, &home->sessions, list)
		n++;
	if (n < PROFIL_MAX_OPEN) {
		refcount_inc(&s->refs);
		list_add(&s->list, &home->sessions);
	}
	mutex_unlock(&home->lock);
	return n < PROFIL_MAX_OPEN ? 0 : -EMFILE;
}

int profil_descriptor_open(struct file *file, void *data, struct profil_stats *unused)
{
	const struct profil_open *arg = data;
	struct profil_session *s;
	int ret;

	if (arg->fork > PROFIL_FORK_SHARE || arg->exec > PROFIL_EXEC_FOLLOW)
		return -EOPNOTSUPP;
	if (!arg->modes || arg->nr_records > PROFIL_MAX_RECORDS ||
	    arg->stack_depth > PROFIL_MAX_STACK || (arg->stack_depth && !arg->nr_records))
		return -EINVAL;
	s = profil_session_create(arg->modes, arg->period, arg->flags & PROFIL_OPEN_JITTER);
	if (IS_ERR(s))
		return PTR_ERR(s);
	s->fork = arg->fork;
	s->exec = arg->exec;
	s->records = arg->nr_records;
	s->charged = PFN_UP(profil_ring_size(arg->nr_records, arg->stack_depth));
	ret = profil_charge(s->charged, 0, s->may_exceed);
	if (ret)
		goto put;
	s->ring = profil_ring_create(arg->nr_records, arg->stack_depth);
	ret = s->ring ? descriptor_publish(s) : -ENOMEM;
	if (ret)
		goto uncharge;
	ret = anon_inode_getfd("[profil]", &descriptor_fops, s, O_RDONLY | O_CLOEXEC);
	if (ret < 0)
		descriptor_close(s);
	return ret;

uncharge:
	profil_uncharge(current->mm, s->charged);
put:
	profil_session_put(s);
	return ret;
}

/* Takes home->lock, and @lock for reading. */
static int descriptor_lock_with(struct profil_session *s, struct rw_semaphore *lock)
{
	while (!mutex_lock_killable(&s->home->lock)) {
		if (down_read_trylock(lock))
			return 0;
		/* An exec that holds @lock may wait for user space, so wait without home->lock. */
		mutex_unlock(&s->home->lock);
		if (down_read_killable(lock))
			break;
		up_read(lock);
	}
	return -EINTR;
}

/*
 * Locks the home of the session of @file, which keeps both. Return: the session; -ENODEV after its
 * end; -EPERM in another process; or -EINTR if killed.
 */
struct profil_session *profil_descriptor_lock_own(struct file *file)
{
	struct profil_session *s = file->private_data;
	int err;

	if (mutex_lock_killable(&s->home->lock))
		return ERR_PTR(-EINTR);
	err = s->phase == PROFIL_ENDED ? -ENODEV : profil_space_is_own(s->home) ? 0 : -EPERM;
	if (!err)
		return s;
	mutex_unlock(&s->home->lock);
	return ERR_PTR(err);
}

static int descriptor_attach_task(struct profil_session *s, struct profil_attach *arg,
				  struct task_struct *task, struct mm_struct *mm)
{
	struct profil_space *space;
	struct profil_target *t;
	int err;

	if (s->phase == PROFIL_ENDED)
		return -ENODEV;
	if (arg->scope == PROFIL_SCOPE_MACHINE)
		return profil_machine_attach(s);
	if (s->machine)
		return -EBUSY;
	space = profil_space_get(mm, GFP_KERNEL_ACCOUNT);
	if (!space)
		return -ENOMEM;
	t = profil_target_alloc(task, arg->scope == PROFIL_SCOPE_THREAD,
				!same_thread_group(task, current), GFP_KERNEL_ACCOUNT);
	/* Checks first, since the resync interrupts the CPUs that run the target. */
	err = t ? profil_target_check(t, s, space) : -ENOMEM;
	if (!err) {
		if (s->on)
			profil_clock_resync(s, mm);	/* earlier time does not count */
		err = profil_target_attach(t, s, space, &profil_empty_table, NULL, NULL,
					   GFP_KERNEL_ACCOUNT);
	}
	if (err) {
		profil_target_free(t);
	} else {
		arg->space = space->id;
		profil_session_reset_missed(s);
		if (s->on)
			profil_session_resync_runtime(s, task);
	}
	profil_space_put(space);
	return err == -EUSERS ? -EBUSY : err;
}

int profil_descriptor_attach(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_attach *arg = data;
	bool thread = arg->scope == PROFIL_SCOPE_THREAD;
	struct profil_session *s = file->private_data;
	struct mm_struct *mm = NULL;
	struct task_struct *task;
	int err;

	if (arg->scope > PROFIL_SCOPE_MACHINE)
		return -EOPNOTSUPP;
	if (arg->pid < 0 || (arg->pid && arg->scope == PROFIL_SCOPE_MACHINE))
		return -EINVAL;
	arg->space = 0;
	task = profil_access_find_task(arg->pid, thread);
	if (!task)
		return -ESRCH;
	err = descriptor_lock_with(s, &task->signal->exec_update_lock);
	if (err)
		goto put_task;
	mm = profil_access_get_mm(&task, thread);
	if (!mm)
		err = -ESRCH;
	else if (!profil_access_allowed(task, mm, false))
		err = -EPERM;
	else
		err = descriptor_attach_task(s, arg, task, mm);
	up_read(&task->signal->exec_update_lock);
	mutex_unlock(&s->home->lock);
	if (mm)
		mmput_async(mm);
put_task:
	put_task_struct(task);
	return err;
}

/* Adds the ranges of @added to those of @s in @space, see struct profil_add. Under home->lock. */
static int descriptor_add_ranges(struct profil_session *s, u64 space,
				 const struct profil_table *added)
{
	u64 id = space ?: s->home->id;		/* PROFIL_SPACE_SELF is 0 */
	struct profil_table *base = profil_binding_table(s, id), *table;
	int err;

	if (!base)
		return -ESRCH;
	table = profil_table_merge(base, added);
	profil_table_put(base);
	if (IS_ERR(table))
		return PTR_ERR(table);
	err = profil_binding_set_table(s, id, table);
	profil_table_put(table);
	return err;
}

/* Adds ranges. Pins their pages without home->lock, since pinning may wait for user space. */
int profil_descriptor_add(struct file *file, void *data, struct profil_stats *stats)
{
	const struct profil_add *arg = data;
	struct profil_session *s = file->private_data;
	struct profil_space *home = s->home;
	struct profil_table *table;
	struct rb_root_cached new = RB_ROOT_CACHED;
	int err;

	if (!arg->nr_ranges || arg->nr_ranges > PROFIL_MAX_RANGES)
		return -EINVAL;
	/* Others may not even make tables, for which REMOVE would wait. */
	if (!profil_space_is_own(home))
		return -EPERM;
	table = profil_table_create(s, arg->ranges, arg->nr_ranges);
	if (IS_ERR(table))
		return PTR_ERR(table);
	err = -EINTR;
	if (mutex_lock_killable(&home->lock))
		goto free;
	profil_replay(s);
	profil_session_unpin(s, true);
	profil_table_bind(table, &s->histograms);
	mutex_unlock(&home->lock);
	err = profil_histograms_pin(&new, table, false, s->may_exceed, 0);
	if (err)
		goto free;
	profil_table_bind(table, &new);

	err = -EINTR;
	if (mutex_lock_killable(&home->lock))
		goto free;
	err = descriptor_add_ranges(s, arg->space, table);
	if (!err)
		profil_histograms_adopt(s, &new);
	mutex_unlock(&home->lock);
free:
	/* The tree is empty, unless the last step has failed. */
	profil_histograms_free(current->mm, &new, false);
	profil_table_put(table);
	return err;
}

/* Called under home->lock, in the creator's address space. */
static int descriptor_remove_ranges(struct profil_session *s, struct profil_remove *arg)
{
	u64 id = arg->space ?: s->home->id;		/* PROFIL_SPACE_SELF is 0 */
	struct profil_table *table = profil_binding_table(s, id), *remaining;
	int err = 0;

	if (!table)
		return -ESRCH;
	remaining = profil_table_remove(table, arg);
	if (!remaining)
		err = -ENOMEM;
	else if (remaining != table)
		err = profil_binding_set_table(s, id, remaining);
	if (!err)
		arg->nr_removed = table->nr_ranges - remaining->nr_ranges;
	profil_table_put(remaining);
	profil_table_put(table);
	return err;
}

int profil_descriptor_remove(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_remove *arg = data;
	struct profil_session *s;
	int err;

	if (arg->start >= arg->end)
		return -EINVAL;
	s = profil_descriptor_lock_own(file);
	if (IS_ERR(s))
		return PTR_ERR(s);
	arg->nr_removed = 0;
	err = descriptor_remove_ranges(s, arg);
	if (arg->nr_removed) {
		synchronize_rcu();
		/* Counts the ticks that were deferred for these ranges. */
		profil_replay(s);
	}
	/* Unused tables, also of earlier calls, reference histograms until the tables are freed. */
	if (wait_var_event_killable(&s->nr_dying, !atomic_read(&s->nr_dying)))
		err = -EINTR;
	else
		profil_session_unpin(s, true);
	mutex_unlock(&s->home->lock);
	return err;
}

int profil_descriptor_enable(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_session *s = file->private_data;
	int err;

	if (mutex_lock_killable(&s->home->lock))
		return -EINTR;
	err = s->phase == PROFIL_ENDED ? -ENODEV : s->on ? -EBUSY :
	      profil_trigger_get(profil_session_trigger(s));
	if (err)
		goto unlock;
	profil_session_reset_missed(s);
	profil_targets_runtime(s, NULL, true);
	profil_clock_resync(s, NULL);	/* so that earlier time does not count */
	profil_session_set_on(s, true);
	profil_session_resync_runtime(s, NULL);
unlock:
	mutex_unlock(&s->home->lock);
	return err;
}

int profil_descriptor_disable(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_session *s = file->private_data;
	int err;

	if (mutex_lock_killable(&s->home->lock))
		return -EINTR;
	err = s->phase == PROFIL_ENDED ? -ENODEV : s->on ? 0 : -EINVAL;
	if (err)
		goto unlock;
	/* This comes first: while @s is off, profil_target_move() adds no CPU time. */
	atomic64_add(profil_targets_runtime(s, NULL, true), &s->runtime);
	profil_session_set_on(s, false);
	synchronize_rcu();
	if (profil_nohz_full)
		profil_clock_resync(s, NULL);	/* as in profil_session_finish() */
	profil_trigger_put(profil_session_trigger(s));
	profil_replay(s);
	profil_stats_read(s, stats, false);
	profil_ring_wake(s->ring);	/* records that wait for their tasks can be claimed now */
unlock:
	mutex_unlock(&s->home->lock);
	return err;
}

int profil_descriptor_stats(struct file *file, void *data, struct profil_stats *unused)
{
	struct profil_session *s = file->private_data;
	struct profil_stats *arg = data;

	if (arg->scope)
		return -EINVAL;
	if (mutex_lock_killable(&s->home->lock))
		return -EINTR;
	*arg = (struct profil_stats) { .size = arg->size };
	profil_replay(s);
	profil_stats_read(s, arg, false);
	mutex_unlock(&s->home->lock);
	return 0;
}
