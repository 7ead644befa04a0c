// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor, which is the session: closing its last copy ends it.
 *
 * The creator's space is the session's home: buffers lie there, and only from there
 * ranges can be changed and counters copied. Whoever has a copy of the descriptor can
 * attach itself, switch the session on and off, and read what it found.
 *
 * With PROFIL_FORK_FRESH the child of a fork has a session of its own, which descends
 * from this; the descriptor means that one when the child uses it.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "compat.h"
#include "profil.h"

#define SNAPSHOT_TRIES	100	/* if what is copied to is taken away all the time */

static int session_release(struct inode *inode, struct file *file)
{
	profil_session_close(file->private_data);
	return 0;
}

static ssize_t session_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	return profil_ring_read(file->private_data, buf, size, !(file->f_flags & O_NONBLOCK));
}

static __poll_t session_poll(struct file *file, poll_table *wait)
{
	return profil_ring_poll(file->private_data, file, wait);
}

static const struct file_operations session_fops = {
	.owner = THIS_MODULE,
	.release = session_release,
	.read = session_read,
	.poll = session_poll,
	.unlocked_ioctl = profil_session_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* Returns the descriptor. */
int profil_session_open(const struct profil_open *arg)
{
	struct profil_space *home = profil_home_lock(true);
	struct profil_session *s;
	unsigned int n = 0;
	int err, fd;

	if (IS_ERR(home))
		return PTR_ERR(home);
	list_for_each_entry(s, &home->sessions, list)
		n++;
	if (n >= PROFIL_MAX_OPEN) {
		fd = -EMFILE;
		goto unlock;
	}
	s = profil_session_alloc(home, GFP_KERNEL_ACCOUNT);
	if (!s) {
		fd = -ENOMEM;
		goto unlock;
	}
	s->may_exceed = ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
	s->modes = arg->modes;
	s->period = arg->period;
	s->jitter = arg->flags & PROFIL_OPEN_JITTER;
	s->fork = arg->fork;
	s->exec = arg->exec;
	s->state = PROFIL_STATE_OFF;
	s->task = get_task_struct(current->group_leader);
	err = profil_session_charge(s, profil_ring_pages(arg->nr_records));
	if (err) {
		fd = err;
		goto put;
	}
	s->ring_pages = s->charged;
	fd = -ENOMEM;
	s->ring = profil_ring_create(arg->nr_records);
	if (!s->ring || profil_session_alloc_counts(s))
		goto uncharge;
	list_add(&s->list, &home->sessions);
	fd = anon_inode_getfd("[profil]", &session_fops, s, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		goto unlock;

	list_del_init(&s->list);
uncharge:
	profil_session_uncharge(s, s->charged);
put:
	profil_session_put(s);
unlock:
	profil_home_unlock(home);
	return fd;
}

/*
 * The session that @file means to the caller, locked and referenced, to be given back by
 * session_unlock().
 */
static struct profil_session *session_lock(struct file *file)
{
	struct profil_session *root = file->private_data, *s;
	struct profil_space *home;

	if (root->fork != PROFIL_FORK_FRESH || current->mm == root->home->mm) {
		if (mutex_lock_killable(&root->home->lock))
			return ERR_PTR(-EINTR);
		refcount_inc(&root->refs);
		return root;
	}
	home = profil_home_lock(false);
	if (IS_ERR_OR_NULL(home))
		return home ? ERR_CAST(home) : ERR_PTR(-ENODEV);
	list_for_each_entry(s, &home->sessions, list) {
		if (s->root == root) {
			refcount_inc(&s->refs);
			profil_space_put(home);		/* it has its own reference */
			return s;
		}
	}
	profil_home_unlock(home);
	return ERR_PTR(-ENODEV);
}

static void session_unlock(struct profil_session *s)
{
	struct profil_space *home = s->home;

	refcount_inc(&home->refs);
	mutex_unlock(&home->lock);
	profil_session_put(s);
	profil_space_put(home);
}

/*
 * As session_lock(), and @lock is held for reading. Who holds that may wait for user space (who
 * execs, for what is left to do in the old address space), so it is not waited for with the
 * session's: that may be of another process, which would have to wait, too, and of a worker.
 */
static struct profil_session *session_lock_beside(struct file *file, struct rw_semaphore *lock)
{
	struct profil_session *s;

	for (;;) {
		s = session_lock(file);
		if (IS_ERR(s) || down_read_trylock(lock))
			return s;
		session_unlock(s);
		if (down_read_killable(lock))
			return ERR_PTR(-EINTR);
		up_read(lock);
	}
}

/* As session_lock(), for what only the creator may do to a session that has not ended. */
static struct profil_session *session_lock_own(struct file *file)
{
	struct profil_session *s = session_lock(file);
	int err;

	if (IS_ERR(s))
		return s;
	err = profil_session_follow(s);
	if (!err && current->mm != s->home->mm)
		err = -EPERM;
	if (!err && s->young)
		err = -ENOMEM;
	if (err) {
		session_unlock(s);
		return ERR_PTR(err);
	}
	return s;
}

/* ---- targets ---- */

static int attach_task(struct profil_session *s, struct profil_attach *arg,
		       struct task_struct *task, struct mm_struct *mm)
{
	struct profil_space *space;
	struct profil_member *m;
	struct profil_watch *w;
	int err;

	if (s->state == PROFIL_STATE_ENDED)
		return -ENODEV;
	if (s->fork == PROFIL_FORK_FRESH && mm != s->home->mm)
		return -EINVAL;
	space = profil_space_get(mm, true);
	if (!space)
		return -ENOMEM;
	err = -ENOMEM;
	w = profil_watch_alloc(s, space, &profil_nothing, &profil_nothing, GFP_KERNEL_ACCOUNT);
	m = profil_member_alloc(task, arg->scope == PROFIL_SCOPE_THREAD, GFP_KERNEL_ACCOUNT);
	if (!w || !m)
		goto free;

	if (s->on)
		profil_session_look(s);	/* time before is not the session's */
	/* If it is released from here on, its end is told of after this: then it is linked. */
	rcu_read_lock();
	err = pid_alive(task) ? profil_attach(&w, m, NULL) : -ESRCH;
	rcu_read_unlock();
	if (!err) {
		profil_session_expect_anew(s);
		if (s->on)
			profil_session_look_again(s, task);
		arg->space = space->id;
		m = NULL;
	}
free:
	profil_member_free(m);
	profil_watch_free(w);
	profil_space_put(space);
	return err;
}

int profil_session_attach(struct file *file, struct profil_attach *arg)
{
	bool thread = arg->scope == PROFIL_SCOPE_THREAD;
	struct task_struct *task = profil_target_find(arg->pid, thread);
	struct mm_struct *mm = NULL;
	struct profil_session *s;
	int err;

	if (!task)
		return -ESRCH;
	s = session_lock_beside(file, &task->signal->exec_update_lock);
	if (IS_ERR(s)) {
		err = PTR_ERR(s);
		goto put_task;
	}
	err = -ESRCH;
	mm = profil_target_mm(&task, thread);
	if (mm)
		err = profil_target_may_attach(task, mm) ? 0 : -EPERM;
	if (!err)
		err = attach_task(s, arg, task, mm);
	up_read(&task->signal->exec_update_lock);
	session_unlock(s);
	if (mm)
		mmput_async(mm);
put_task:
	put_task_struct(task);
	return err;
}

/* ---- ranges ---- */

static u64 space_id(u64 id)
{
	struct profil_space *space;

	if (id != PROFIL_SPACE_SELF)
		return id;
	space = profil_space_get(current->mm, false);
	if (space) {
		id = space->id;
		profil_space_put(space);
	}
	return id;
}

static int session_add(struct profil_session *s, const struct profil_add *arg)
{
	u64 id = space_id(arg->space);
	struct profil_table *base = profil_table_of(s, id, NULL), *table, *legacy;
	int err;

	if (!base)
		return -ESRCH;
	table = profil_table_from_user(s, base, arg->ranges, arg->nr_ranges);
	profil_table_put(base);
	if (IS_ERR(table))
		return PTR_ERR(table);
	err = profil_histograms_check(table);
	if (!err)
		err = profil_session_pin(s, table, 0);
	if (err)
		goto put;
	err = -ENOMEM;
	legacy = profil_table_legacy(table);
	if (!legacy)
		goto prune;
	err = profil_table_set(s, id, &table, &legacy);
	profil_table_put(legacy);
	if (!err)
		goto put;
prune:
	WRITE_ONCE(s->prune, true);	/* when the table is gone */
put:
	profil_table_put(table);
	return err;
}

int profil_session_add(struct file *file, const struct profil_add *arg)
{
	struct profil_session *s = session_lock_own(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_add(s, arg);
	session_unlock(s);
	return err;
}

static bool stays(const struct profil_span *span, void *data)
{
	const struct profil_remove *arg = data;

	return span->start < arg->start || span->end > arg->end;
}

/*
 * What is left of each table that is in use in the space with @id: those of a watch, and those that
 * children forked meanwhile have from it. Keeps the tables, so that none is taken for another.
 */
static int remove_prepare(struct profil_session *s, struct profil_remove *arg, u64 id,
			  struct xarray *rests)
{
	struct profil_table *tables[2], *rest;
	int err = 0;
	u32 i;

	tables[0] = profil_table_of(s, id, &tables[1]);
	if (!tables[0])
		return -ESRCH;
	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		unsigned long key = (unsigned long)tables[i];

		if (!err && !xa_load(rests, key)) {
			rest = profil_table_filter(tables[i], stays, arg);
			err = rest ? xa_err(xa_store(rests, key, rest, GFP_KERNEL)) : -ENOMEM;
			if (!err)
				continue;
			if (rest)
				profil_table_put(rest);
		}
		profil_table_put(tables[i]);
	}
	return err;
}

/* Cannot fail. What is not in @rests has been made from what is. */
static u32 remove_commit(struct profil_session *s, u64 id, struct xarray *rests)
{
	struct profil_table *table, *legacy, *rest, *rest_legacy;
	u32 nr = 0;

	table = profil_table_of(s, id, &legacy);
	if (!table)
		return 0;
	rest = profil_table_get(xa_load(rests, (unsigned long)table) ?: table);
	rest_legacy = profil_table_get(xa_load(rests, (unsigned long)legacy) ?: legacy);
	if (rest->nr_ranges < table->nr_ranges || rest_legacy->nr_ranges < legacy->nr_ranges) {
		nr = table->nr_ranges - rest->nr_ranges;
		if (profil_table_set(s, id, &rest, &rest_legacy))
			nr = 0;
	}
	profil_table_put(rest);
	profil_table_put(rest_legacy);
	profil_table_put(table);
	profil_table_put(legacy);
	return nr;
}

/* From all spaces, or from none if there is no memory for one. */
static int remove_from(struct profil_session *s, struct profil_remove *arg)
{
	bool all = arg->space == PROFIL_SPACE_ALL;
	u64 first = all ? profil_space_after(s, 0) : space_id(arg->space), id;
	struct profil_table *rest;
	struct xarray rests;
	unsigned long key;
	int err = 0;

	xa_init_flags(&rests, XA_FLAGS_ACCOUNT);
	for (id = first; id && !err; id = all ? profil_space_after(s, id) : 0) {
		err = remove_prepare(s, arg, id, &rests);
		if (all && err == -ESRCH)
			err = 0;
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	for (id = first; id && !err; id = all ? profil_space_after(s, id) : 0) {
		arg->nr_removed += remove_commit(s, id, &rests);
		cond_resched();
	}
	xa_for_each(&rests, key, rest) {
		profil_table_put(rest);
		profil_table_put((struct profil_table *)key);
		cond_resched();
	}
	xa_destroy(&rests);
	return err;
}

static int session_remove(struct profil_session *s, struct profil_remove *arg)
{
	int err = remove_from(s, arg);

	if (!arg->nr_removed)
		return err;

	synchronize_rcu();
	/* Ticks that were kept for these ranges are still to be counted. */
	profil_session_follow(s);
	/* Tables that are no longer used, also of calls before, still need their histograms. */
	if (wait_var_event_killable(&s->nr_dying, !atomic_read(&s->nr_dying)))
		return -EINTR;
	profil_session_uncharge(s, profil_histograms_drop_unused(s));
	return 0;
}

int profil_session_remove(struct file *file, struct profil_remove *arg)
{
	struct profil_session *s = session_lock_own(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_remove(s, arg);
	session_unlock(s);
	return err;
}

/* ---- on and off ---- */

int profil_session_enable(struct file *file)
{
	struct profil_session *s = session_lock(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = profil_session_follow(s);
	if (err)
		goto unlock;
	err = -EBUSY;
	if (s->on)
		goto unlock;
	err = profil_session_get_ticks(s);
	if (err)
		goto unlock;
	profil_session_expect_anew(s);
	profil_members_runtime(s, true);
	profil_session_look(s);		/* time before is not the session's */
	if (s->period)
		profil_session_fall_in(s);
	WRITE_ONCE(s->state, PROFIL_STATE_ON);
	WRITE_ONCE(s->on, true);
	profil_session_changed(s);
	profil_session_look_again(s, NULL);
unlock:
	session_unlock(s);
	return err;
}

/* @stats is zero. */
int profil_session_disable(struct file *file, struct profil_stats *stats)
{
	struct profil_session *s = session_lock(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = profil_session_follow(s);
	if (err)
		goto unlock;
	err = -EINVAL;
	if (!s->on)
		goto unlock;
	WRITE_ONCE(s->on, false);
	s->runtime += profil_members_runtime(s, true);
	profil_session_changed(s);
	synchronize_rcu();
	if (profil_nohz_full)
		profil_clock_look();	/* as in profil_session_end() */
	profil_session_put_ticks(s);
	WRITE_ONCE(s->state, PROFIL_STATE_OFF);
	err = profil_session_follow(s);
	/* What could not be counted by now never will. */
	profil_replay(s, true);
	profil_session_read(s, stats, false);
unlock:
	session_unlock(s);
	return err;
}

/* ---- statistics ---- */

/* @stats is zero. */
int profil_session_fd_stats(struct file *file, struct profil_stats *stats)
{
	struct profil_session *s = session_lock(file);

	if (IS_ERR(s))
		return PTR_ERR(s);
	profil_session_follow(s);
	profil_session_read(s, stats, false);
	session_unlock(s);
	return 0;
}

struct piece {
	void *counters;			/* in a histogram, or NULL */
	void __user *from, *to;		/* @to may be NULL */
	size_t n;			/* all in one page of @from */
	void *bounce;
	bool reset;
	int (*act)(const struct piece *piece);
};

static int fault_in(void __user *p, size_t n)
{
	int err = profil_fault_in((unsigned long)p, n);

	return err == -ENOMEM || err == -EINTR ? err : err ? -EFAULT : 0;
}

static int piece_check(const struct piece *piece)
{
	int err = 0;

	if (piece->to)
		err = fault_in(piece->to, piece->n);
	if (err || piece->counters)
		return err;
	/* Nothing counts there, or no more: it is the creator's memory all the same. */
	if (piece->reset)
		return fault_in(piece->from, piece->n);
	return fault_in_readable(piece->from, piece->n) ? -EFAULT : 0;
}

static int piece_copy(const struct piece *piece)
{
	const void *counters = piece->counters;

	/* Nothing is waited for while ticks are kept. */
	if (!counters) {
		counters = piece->bounce;
		if (copy_from_user_nofault(piece->bounce, piece->from, piece->n))
			return -EAGAIN;
	}
	return piece->to && copy_to_user_nofault(piece->to, counters, piece->n) ? -EAGAIN : 0;
}

static int piece_clear(const struct piece *piece)
{
	if (piece->counters)
		memset(piece->counters, 0, piece->n);
	else if (clear_user(piece->from, piece->n))
		return -EFAULT;
	return 0;
}

/* Acts on each piece of @copy that lies in one page. */
static int copy_pieces(struct profil_session *s, const struct profil_copy *copy,
		       struct piece *piece)
{
	unsigned long from = copy->from, to = copy->to, left = copy->bytes;
	int err = 0;

	while (left && !err) {
		piece->n = min(left, PAGE_SIZE - offset_in_page(from));
		piece->from = (void __user *)from;
		piece->to = (void __user *)to;
		piece->counters = profil_histogram_counter(s, from, piece->n);
		err = fatal_signal_pending(current) ? -EINTR : piece->act(piece);
		from += piece->n;
		left -= piece->n;
		if (to)
			to += piece->n;
		cond_resched();
	}
	return err;
}

static int copies_do(int (*act)(const struct piece *piece), struct piece *piece,
		     struct profil_session *s, const struct profil_copy *copies, u32 nr)
{
	int err = 0;
	u32 i;

	piece->act = act;
	for (i = 0; i < nr && !err; i++)
		err = copy_pieces(s, &copies[i], piece);
	return err;
}

/* Copies while all ticks that would raise a counter are kept. */
static int snapshot_take(struct profil_session *s, const struct profil_snapshot *arg,
			 const struct profil_copy *copies, struct piece *piece,
			 struct profil_stats *stats)
{
	u32 nr = arg->nr_copies;
	int err;

	err = copies_do(piece_check, piece, s, copies, nr);
	if (err)
		return err;
	set_bit(PROFIL_SLOW_PARKED, &s->slow);
	/* Not the normal, long one: only so many ticks are kept. */
	synchronize_rcu_expedited();
	err = copies_do(piece_copy, piece, s, copies, nr);
	if (!err) {
		profil_session_read(s, stats, piece->reset);
		if (piece->reset)
			copies_do(piece_clear, piece, s, copies, nr);
	}
	return profil_session_follow(s) ?: err;
}

static bool copy_fits(u64 address, u64 bytes)
{
	u64 end;

	return address == (unsigned long)address && !check_add_overflow(address, bytes, &end) &&
	       access_ok((void __user *)(unsigned long)address, bytes);
}

static int session_snapshot(struct profil_session *s, const struct profil_snapshot *arg,
			    struct profil_stats *stats)
{
	struct piece piece = { .reset = arg->flags & PROFIL_SNAPSHOT_RESET };
	struct profil_copy *copies = NULL;
	u32 i, tries = SNAPSHOT_TRIES;
	int err = 0;

	if (arg->nr_copies) {
		copies = profil_array_from_user(arg->copies, arg->nr_copies, sizeof(*copies));
		if (IS_ERR(copies))
			return PTR_ERR(copies);
	}
	for (i = 0; i < arg->nr_copies && !err; i++) {
		if (copies[i].from % 2 || copies[i].bytes % 2)
			err = -EINVAL;
		else if (!copy_fits(copies[i].from, copies[i].bytes) ||
			 !copy_fits(copies[i].to, copies[i].bytes))
			err = -EFAULT;
	}
	if (err)
		goto free;
	err = -ENOMEM;
	piece.bounce = (void *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!piece.bounce)
		goto free;
	do {
		memset(stats, 0, sizeof(*stats));
		err = snapshot_take(s, arg, copies, &piece, stats);
	} while (err == -EAGAIN && tries-- && !fatal_signal_pending(current));
	if (err == -EAGAIN)
		err = -EFAULT;
	free_page((unsigned long)piece.bounce);
free:
	kvfree(copies);
	return err;
}

/* @stats gets the statistics. */
int profil_session_snapshot(struct file *file, const struct profil_snapshot *arg,
			    struct profil_stats *stats)
{
	struct profil_session *s = session_lock_own(file);
	int err;

	if (IS_ERR(s))
		return PTR_ERR(s);
	err = session_snapshot(s, arg, stats);
	session_unlock(s);
	return err;
}
