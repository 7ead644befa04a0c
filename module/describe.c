// SPDX-License-Identifier: GPL-2.0
/*
 * Describes the classic session of a process, with its ranges and statistics, to any process.
 *
 * A table never changes, so home->lock is held only to reference the table, and not to copy it to
 * the caller. User space copies the counters with process_vm_readv().
 *
 * Context: system calls (may sleep).
 */
#include "internal.h"

/* Returns the mm of @pid, referenced, if the caller may describe it; or an error pointer. */
static struct mm_struct *describe_get_mm(pid_t pid)
{
	struct task_struct *task = profil_access_find_task(pid, false);
	struct mm_struct *mm = ERR_PTR(-EINTR);

	if (!task)
		return ERR_PTR(pid < 0 ? -EINVAL : -ESRCH);
	if (down_read_killable(&task->signal->exec_update_lock))
		goto put_task;
	mm = profil_access_get_mm(&task, false);
	if (!mm) {
		mm = ERR_PTR(-ESRCH);
	} else if (!profil_access_allowed(task, mm, true)) {
		mmput_async(mm);
		mm = ERR_PTR(-EPERM);
	}
	up_read(&task->signal->exec_update_lock);
put_task:
	put_task_struct(task);
	return mm;
}

/* Fills in @stats, and @arg without ranges. Return: the table, referenced; or an error pointer. */
static struct profil_table *describe_session(struct profil_session *s, struct profil_space *space,
					     struct profil_describe *arg,
					     struct profil_stats *stats)
{
	struct profil_table *table = profil_binding_table(s, space->id);

	if (!table)
		return ERR_PTR(-ENODEV);
	profil_stats_read(s, stats, false);
	arg->nr_ranges = table->nr_ranges;
	arg->period = s->period;
	arg->taken = s->taken_pcs;
	return table;
}

/* Describes a session of @space. A PENDING session has the ranges of its parent, and no home. */
static struct profil_table *describe_space(struct profil_space *space, struct profil_describe *arg,
					   struct profil_stats *stats)
{
	struct profil_session *s = profil_pending_get(space);
	struct profil_table *table = ERR_PTR(-EINVAL);

	if (s) {
		table = describe_session(s, space, arg, stats);
		profil_session_put(s);
		return table;
	}
	if (mutex_lock_killable(&space->lock))
		return ERR_PTR(-EINTR);
	s = profil_classic_find(space, PROFIL_SCOPE_PROCESS);
	if (s) {
		profil_replay(s);
		table = describe_session(s, space, arg, stats);
	}
	mutex_unlock(&space->lock);
	return table;
}

int profil_classic_describe(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_describe *arg = data;
	struct mm_struct *mm = describe_get_mm(arg->pid);
	struct profil_range __user *ranges = u64_to_user_ptr(arg->ranges);
	struct profil_space *space;
	struct profil_table *table;
	u32 room = arg->nr_ranges;
	int err = 0;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	space = profil_space_get(mm, 0);
	mmput_async(mm);
	if (!space)
		return -EINVAL;
	table = describe_space(space, arg, stats);
	profil_space_put(space);
	if (IS_ERR(table))
		return PTR_ERR(table);

	for (u32 i = 0; ranges && i < arg->nr_ranges && arg->nr_ranges <= room && !err; i++)
		if (copy_to_user(&ranges[i], &table->spans[i].range, sizeof(*ranges)))
			err = -EFAULT;
	profil_table_put(table);
	return err;
}
