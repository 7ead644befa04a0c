// SPDX-License-Identifier: GPL-2.0
/*
 * Records: what ticks leave in a ring, and what tasks add. The life of a slot is in ring.h.
 *
 * Context: profil_ring_record() in the tick; profil_ring_record_detached() in the probe of exec
 * (atomic); record_complete_visit() in task work (may sleep); others: system calls and workers.
 */
#include <linux/binfmts.h>
#include <linux/file.h>
#include <linux/magic.h>
#include <linux/pid_namespace.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "ring.h"

#define CLAIM_AFTER_NS	(100 * NSEC_PER_MSEC)
#define SLOTS_AT_ONCE	32		/* are changed with interrupts off */

/*
 * The last fput() of a file of FUSE may wait for its server. If that is of another user, the reader
 * must not wait. In a call to overlayfs, the credentials are those of the mount.
 */
static __always_inline bool record_may_wait(const struct profil_ring *ring, struct file *file)
{
	const struct super_block *sb = file_inode(file)->i_sb;

	return !uid_eq(task_uid(current), ring->uid) && sb->s_magic == FUSE_SUPER_MAGIC &&
	       !strcmp(sb->s_type->name, "fuse");
}

/* References only regular files. An io_uring, for example, may reference the session in turn. */
static __always_inline void record_look_up_file(const struct profil_ring *ring,
						struct ring_slot *slot, struct file *file)
{
	const struct inode *inode = file_user_inode(file);
	struct profil_record *r = &slot->record;

	r->flags |= PROFIL_RECORD_FILE;
	r->major = MAJOR(inode->i_sb->s_dev);
	r->minor = MINOR(inode->i_sb->s_dev);
	r->ino = inode->i_ino;
	r->generation = inode->i_generation;
	if (S_ISREG(inode->i_mode) && !(inode->i_flags & S_ANON_INODE) &&
	    !record_may_wait(ring, file))
		slot->file = get_file(file);
	else
		snprintf(slot->name, sizeof(slot->name), "%pD", file);
}

/* Fills in the mapping in @mm that contains the pc. Called under mmap_lock. */
static __always_inline void record_look_up(const struct profil_ring *ring, struct ring_slot *slot,
					   struct mm_struct *mm)
{
	struct profil_record *r = &slot->record;
	struct vm_area_struct *vma;
	const char *name = NULL;

	if (r->pc != (unsigned long)r->pc)
		return;
	vma = vma_lookup(mm, r->pc);
	if (!vma)
		return;
	r->flags |= PROFIL_RECORD_MAPPED;
	r->start = vma->vm_start;
	r->end = vma->vm_end;
	if (vma->vm_file) {
		r->offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (r->pc - vma->vm_start);
		record_look_up_file(ring, slot, vma->vm_file);
	} else if (vma->vm_ops && vma->vm_ops->name) {
		name = vma->vm_ops->name(vma);
	}
	if (name)
		strscpy(slot->name, name, sizeof(slot->name));
}

/* Returns the id of current in ring->ns. @pid may be gone, but not @nr, the id in init_pid_ns. */
static pid_t record_pid_nr(const struct profil_ring *ring, struct pid *pid, pid_t nr)
{
	return ring->ns == &init_pid_ns ? nr : pid_nr_ns(pid, ring->ns);
}

/* Returns true if no slot is free, and the oldest of the records that wait has waited for long. */
static bool record_is_stuck(struct profil_ring *ring)
{
	struct ring_visit *oldest = list_first_entry_or_null(&ring->waiting, struct ring_visit,
							     waiting);

	return oldest && ring_queue_is_empty(&ring->free) &&
	       ktime_get_mono_fast_ns() - oldest->records.first->record.time > CLAIM_AFTER_NS;
}

/* Takes a free slot, and fills in current and the time. Return: NULL if no slot is free. */
static __always_inline struct ring_slot *record_take_slot(struct profil_ring *ring)
{
	struct ring_slot *slot = ring_queue_take(&ring->free);

	if (unlikely(!slot)) {
		if (record_is_stuck(ring))
			profil_ring_wake(ring);
		return NULL;
	}
	slot->record.time = ktime_get_mono_fast_ns();
	slot->record.pid = record_pid_nr(ring, task_tgid(current), current->tgid);
	slot->record.tid = record_pid_nr(ring, task_pid(current), current->pid);
	slot->record.cpu = smp_processor_id();
	slot->record.syscall = -1;
	memcpy(slot->record.comm, current->comm, sizeof(slot->record.comm));
	return slot;
}

static const struct profil_stack no_stack = { .end = PROFIL_STACK_NO_REGISTERS };

#define NO_PC	(PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT)	/* flags of a record without pc */

/* Adds @slot, which is in no queue, to the records that can be read, with more @flags. */
static __always_inline void record_done(struct profil_ring *ring, struct ring_slot *slot, u32 flags)
{
	slot->record.flags |= flags;
	if (flags & NO_PC) {
		slot->record.pc = 0;
		slot->record.syscall = -1;
		slot->record.arch = 0;
		slot->record.flags &= ~PROFIL_RECORD_SOFTIRQ;
	}
	if (flags & (NO_PC | PROFIL_RECORD_PENDING) && ring->stack_depth)
		*ring_stack(ring, slot) = no_stack;
	/* If there are others, a reader is awake, or is being woken. */
	if (ring_queue_is_empty(&ring->done))
		profil_ring_wake(ring);
	ring_queue_add(&ring->done, slot);
}

/*
 * Looks up the mapping for @found->origin; and if records have stacks, the callers, for @stack.
 * They are not known if current has called exec since the tick, is exiting, or is killed.
 */
static void record_look_up_origin(struct profil_ring *ring, struct ring_slot *found,
				  struct profil_stack *stack)
{
	const struct ring_origin *origin = &found->origin;
	struct mm_struct *mm = current->mm;
	struct stack_unread unread = {};

	*stack = no_stack;
	found->record = (struct profil_record) { .pc = origin->pc, .space = found->record.space };
	found->name[0] = '\0';
	/* An exec that failed may have changed the mm, but not exec_id. */
	if (!mm || mm != origin->mm || origin->exec_id != READ_ONCE(current->self_exec_id)) {
		found->record.flags = mm ? PROFIL_RECORD_EXEC : PROFIL_RECORD_EXIT;
		return;
	}
	/* If ticks come faster than walks end, only this lets the task be killed. */
	if (fatal_signal_pending(current) || mmap_read_lock_killable(mm)) {
		found->record.flags = PROFIL_RECORD_PENDING;
		return;
	}
	record_look_up(ring, found, mm);
	/* The return of a signal handler has other registers. */
	if (ring->stack_depth && origin->sp == user_stack_pointer(task_pt_regs(current)))
		ring_fill_stack(ring, stack, found->record.space, origin->pc, &unread);
	mmap_read_unlock(mm);
	if (unlikely(unread.size))
		ring_refill_stack(ring, stack, found->record.space, origin->pc, &unread);
}

/* Completes @slot with what record_look_up_origin() has found. */
static void record_complete(struct profil_ring *ring, struct ring_slot *slot,
			    const struct ring_slot *found, const struct profil_stack *stack)
{
	const struct profil_record *from = &found->record;
	struct profil_record *to = &slot->record;

	to->start = from->start;
	to->end = from->end;
	to->offset = from->offset;
	to->ino = from->ino;
	to->generation = from->generation;
	to->major = from->major;
	to->minor = from->minor;
	memcpy(slot->name, found->name, sizeof(slot->name));
	if (found->file)
		slot->file = get_file(found->file);
	if (ring->stack_depth)
		memcpy(ring_stack(ring, slot), stack, struct_size(stack, addresses, stack->nr));
	record_done(ring, slot, from->flags);
}

static void record_end_visit(struct profil_ring *ring, struct ring_visit *visit)
{
	hlist_del(&visit->node);
	hlist_add_head(&visit->node, &ring->idle);
	list_del(&visit->waiting);
	WRITE_ONCE(visit->task, NULL);
}

enum visit_state { VISIT_SAME, VISIT_OTHER, VISIT_ENDED, VISIT_ORPHANED };

/*
 * Completes some records of @visit with @found and @stack, if their origin is that. Return: whether
 * the next record has the same origin or another one, which @found then has; or there is none, and
 * @visit has ended. It may be freed then, unless it is orphaned.
 */
static enum visit_state record_complete_some(struct ring_visit *visit, struct ring_slot *found,
					     const struct profil_stack *stack)
{
	struct profil_ring *ring = visit->ring;
	enum visit_state state = VISIT_SAME;
	struct ring_slot *slot;

	raw_spin_lock_irq(&ring->slots_lock);
	for (int n = 0; n < SLOTS_AT_ONCE && state == VISIT_SAME; n++) {
		slot = visit->records.first;
		if (visit->orphaned) {
			state = VISIT_ORPHANED;
		} else if (!slot || ring->closed) {
			state = VISIT_ENDED;
		} else if (!memcmp(&slot->origin, &found->origin, sizeof(found->origin))) {
			ring_queue_take(&visit->records);
			record_complete(ring, slot, found, stack);
		} else {
			found->origin = slot->origin;
			found->record.space = slot->record.space;
			state = VISIT_OTHER;
		}
	}
	if (ring_queue_is_empty(&visit->records))
		list_del_init(&visit->waiting);
	if (state == VISIT_ENDED || state == VISIT_ORPHANED)
		record_end_visit(ring, visit);
	raw_spin_unlock_irq(&ring->slots_lock);
	return state;
}

/* Task work of current. Ticks join the visit meanwhile, mostly with the same origin, so it ends. */
static void record_complete_visit(struct callback_head *work)
{
	struct ring_visit *visit = container_of(work, struct ring_visit, work);
	struct profil_ring *ring = visit->ring;
	struct ring_slot found = {};		/* the origin of no record */
	u64 words[sizeof(struct profil_stack) / sizeof(u64) + PROFIL_MAX_STACK];
	struct profil_stack *stack = (struct profil_stack *)words;
	enum visit_state state;

	while ((state = record_complete_some(visit, &found, stack)) < VISIT_ENDED) {
		if (state == VISIT_OTHER) {
			if (found.file)
				fput(found.file);
			found.file = NULL;
			record_look_up_origin(ring, &found, stack);
		}
		cond_resched();
	}
	if (found.file)
		fput(found.file);
	if (state == VISIT_ORPHANED) {
		ring_put(ring);
		/* profil_shut_down() waits for tasks that are between here and the return. */
		module_put(THIS_MODULE);
	}
}

/* Adds @slot to the visit of current, or begins one. Return: false if there can be none. */
static bool record_join_visit(struct profil_ring *ring, struct ring_slot *slot)
{
	struct hlist_head *visits = &ring->visits[hash_ptr(current, ring->visits_bits)];
	struct ring_visit *visit;

	hlist_for_each_entry(visit, visits, node)
		if (visit->task == current)
			goto join;
	visit = hlist_entry_safe(ring->idle.first, struct ring_visit, node);
	if (!visit)
		return false;
	init_task_work(&visit->work, record_complete_visit);
	if (!profil_task_work_add(&visit->work))
		return false;
	hlist_del(&visit->node);
	visit->ring = ring;
	WRITE_ONCE(visit->task, current);
	ring_queue_init(&visit->records);
	INIT_LIST_HEAD(&visit->waiting);
	hlist_add_head(&visit->node, visits);
join:
	if (ring_queue_is_empty(&visit->records))
		list_add_tail(&visit->waiting, &ring->waiting);
	ring_queue_add(&visit->records, slot);
	return true;
}

/*
 * Looks up the mapping now if mmap_lock is free: task work costs 950 instructions more. up_read()
 * may wake tasks. That is safe here, as no scheduler lock is held, but on PREEMPT_RT it may sleep.
 */
static bool record_look_up_now(const struct profil_ring *ring, struct ring_slot *slot)
{
	struct mm_struct *mm = current->mm;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !down_read_trylock(&mm->mmap_lock))
		return false;
	record_look_up(ring, slot, mm);
	up_read(&mm->mmap_lock);
	return true;
}

/* Notes the system call of a tick in the kernel. A softirq in a call may do work for it. */
static void record_call(struct profil_record *r)
{
	r->syscall = profil_syscall_nr(current, task_pt_regs(current));
	if (r->syscall != -1)
		r->arch = syscall_get_arch(current);
	else if (in_serving_softirq())
		r->flags |= PROFIL_RECORD_SOFTIRQ;
}

/* Records a tick of current without a counter. Return: false if there is no room. */
bool profil_ring_record(struct profil_session *s, u64 space, u64 pc, u32 flags, u32 periods)
{
	struct profil_ring *ring = s->ring;
	struct ring_slot *slot;

	raw_spin_lock(&ring->slots_lock);
	slot = record_take_slot(ring);
	if (!slot)
		goto unlock;
	slot->record.flags = flags;
	slot->record.pc = pc;
	slot->record.space = space;
	slot->record.periods = periods;
	if (flags & PROFIL_RECORD_SYSTEM && !(flags & NO_PC))
		record_call(&slot->record);
	if (ring->stack_depth)
		slot->record.flags |= PROFIL_RECORD_STACK;
	if (flags & NO_PC) {
		record_done(ring, slot, flags);
	} else if (!ring->stack_depth && record_look_up_now(ring, slot)) {
		record_done(ring, slot, 0);
	} else {
		slot->origin.pc = pc;
		if (ring->stack_depth)
			slot->origin.sp = user_stack_pointer(task_pt_regs(current));
		slot->origin.mm = current->mm;
		slot->origin.exec_id = READ_ONCE(current->self_exec_id);
		if (!record_join_visit(ring, slot))
			record_done(ring, slot, PROFIL_RECORD_PENDING);
	}
unlock:
	raw_spin_unlock(&ring->slots_lock);
	return slot;
}

/*
 * Records that @s, which sampled current in @space, does not follow it into @bprm. Must be called
 * before the target is detached, so that the end of file comes later. Return: false if no room.
 */
bool profil_ring_record_detached(struct profil_session *s, u64 space,
				 const struct linux_binprm *bprm)
{
	struct profil_ring *ring = s->ring;
	struct ring_slot *slot;
	unsigned long flags;

	raw_spin_lock_irqsave(&ring->slots_lock, flags);
	slot = record_take_slot(ring);
	if (slot) {
		slot->record.flags = PROFIL_RECORD_DETACHED;
		if (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP)
			slot->record.flags |= PROFIL_RECORD_UNREADABLE;
		slot->record.space = space;
		record_look_up_file(ring, slot, bprm->file);
		record_done(ring, slot, 0);
	}
	raw_spin_unlock_irqrestore(&ring->slots_lock, flags);
	return slot;
}

/* Claims records that wait for their tasks, see ring.h. Returns true if there are any to read. */
bool ring_claim(struct profil_ring *ring, bool all)
{
	struct ring_visit *visit;
	struct ring_slot *slot;
	bool found;

	do {
		raw_spin_lock_irq(&ring->slots_lock);
		visit = NULL;
		if (all || record_is_stuck(ring))
			visit = list_first_entry_or_null(&ring->waiting, struct ring_visit,
							 waiting);
		for (int n = 0; visit && n < SLOTS_AT_ONCE; n++) {
			slot = ring_queue_take(&visit->records);
			if (!slot)
				break;
			record_done(ring, slot, PROFIL_RECORD_PENDING);
		}
		if (visit && ring_queue_is_empty(&visit->records)) {
			list_del_init(&visit->waiting);
			/* Otherwise sleeping tasks would keep one visit each. */
			if (profil_task_work_cancel(visit->task, &visit->work))
				record_end_visit(ring, visit);
		}
		/* Under the lock: ring_fetch() moves records from one queue to the other. */
		found = !ring_queue_is_empty(&ring->done) || !ring_queue_is_empty(&ring->unread);
		raw_spin_unlock_irq(&ring->slots_lock);
	} while (visit);
	return found;
}

/*
 * Ends the recording: ticks that come later leave no records, and no task work is left, apart from
 * orphans. Drops the files: in a worker, fput() would leave them to the worker of all such files,
 * which waits for each file system. The caller holds a reference to the module.
 */
void profil_ring_close(struct profil_ring *ring)
{
	struct ring_visit *visit;

	raw_spin_lock_irq(&ring->slots_lock);
	ring_queue_init(&ring->free);
	WRITE_ONCE(ring->closed, true);
	raw_spin_unlock_irq(&ring->slots_lock);
	for (u32 i = 0; i < ring->nr_records; i++) {
		if (ring->slots[i].file)
			fput(ring->slots[i].file);
		cond_resched();
		visit = &ring->all_visits[i];
		if (!READ_ONCE(visit->task))
			continue;
		raw_spin_lock_irq(&ring->slots_lock);
		if (visit->task && profil_task_work_cancel(visit->task, &visit->work)) {
			record_end_visit(ring, visit);
		} else if (visit->task) {
			visit->orphaned = true;
			refcount_inc(&ring->refs);
			__module_get(THIS_MODULE);
		}
		raw_spin_unlock_irq(&ring->slots_lock);
	}
}
