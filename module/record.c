// SPDX-License-Identifier: GPL-2.0
/*
 * Ticks outside every range, kept for read() of the session's descriptor.
 *
 * The tick says at once what its pc meant: what was mapped there, which file. It
 * looks that up under mmap_lock if nobody is changing the mappings at that moment,
 * once for all sessions, and keeps the file. If it cannot have the lock, the space is
 * kept, and read() looks as soon as it comes. The path is made by read(), as its caller
 * sees it.
 *
 * Any CPU puts, one reader takes at a time. What is kept in a slot is given back
 * when it is read, or with the ring.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/prio.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "profil.h"

struct slot {
	bool whole;			/* written; the reader's */
	struct profil_record record;
	char name[16];			/* of a mapping without a file */
	struct file *file;		/* referenced, or NULL */
	struct profil_space *space;	/* referenced: to be looked up late; or NULL */
};

struct profil_ring {
	u32 nr_records;
	u32 mask;			/* slots are as many as the next power of two */
	atomic_t head;
	unsigned int tail;		/* under lock */
	struct mutex lock;
	wait_queue_head_t wait;
	struct irq_work wake;
	struct pid_namespace *ns;	/* whose process ids records tell; referenced */
	struct slot slots[];
};

static void ring_wake(struct irq_work *work)
{
	struct profil_ring *ring = container_of(work, struct profil_ring, wake);

	wake_up_interruptible_all(&ring->wait);
}

/* Readers shall look again. Any context. */
void profil_ring_wake(struct profil_session *s)
{
	if (s->ring)
		irq_work_queue(&s->ring->wake);
}

/* What it takes of the memory that may be locked. */
unsigned long profil_ring_pages(u32 nr_records)
{
	if (!nr_records)
		return 0;
	return DIV_ROUND_UP(roundup_pow_of_two(nr_records) * sizeof(struct slot), PAGE_SIZE);
}

/* NULL without memory. With no records it is still what a reader can wait at. */
struct profil_ring *profil_ring_create(u32 nr_records)
{
	u32 nr_slots = nr_records ? roundup_pow_of_two(nr_records) : 0;
	struct profil_ring *ring;
	size_t size = struct_size(ring, slots, nr_slots);

	/* Not megabytes in a row, which take long to be found, and to be cleared all at once. */
	if (size > PAGE_SIZE)
		ring = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	else
		ring = kzalloc(size, GFP_KERNEL_ACCOUNT);
	if (!ring)
		return NULL;
	ring->nr_records = nr_records;
	ring->mask = nr_slots - 1;
	mutex_init(&ring->lock);
	init_waitqueue_head(&ring->wait);
	init_irq_work(&ring->wake, ring_wake);
	ring->ns = get_pid_ns(task_active_pid_ns(current));
	return ring;
}

static void slot_clear(struct slot *slot)
{
	if (slot->file)
		fput(slot->file);
	if (slot->space)
		profil_space_put(slot->space);
	memset(slot, 0, sizeof(*slot));
}

/* No tick and no reader can reach it. */
void profil_ring_free(struct profil_ring *ring)
{
	if (!ring)
		return;
	irq_work_sync(&ring->wake);
	for (; ring->tail != (unsigned int)atomic_read(&ring->head); ring->tail++)
		slot_clear(&ring->slots[ring->tail & ring->mask]);
	put_pid_ns(ring->ns);
	kvfree(ring);
}

/* What is mapped at the record's pc. Under mmap_lock. */
static void slot_look_up(struct slot *slot, struct mm_struct *mm)
{
	struct profil_record *record = &slot->record;
	unsigned long pc = record->pc;
	struct vm_area_struct *vma;
	const struct inode *inode;
	const char *name = NULL;

	if (pc != record->pc)
		return;
	vma = find_vma(mm, pc);
	if (!vma || vma->vm_start > pc)
		return;
	record->flags |= PROFIL_RECORD_MAPPED;
	record->start = vma->vm_start;
	record->end = vma->vm_end;
	if (vma->vm_file) {
		inode = profil_user_inode(vma->vm_file);
		record->flags |= PROFIL_RECORD_FILE;
		record->offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (pc - vma->vm_start);
		record->ino = inode->i_ino;
		record->generation = inode->i_generation;
		record->major = MAJOR(inode->i_sb->s_dev);
		record->minor = MINOR(inode->i_sb->s_dev);
		slot->file = get_file(vma->vm_file);
	} else if (vma->vm_ops && vma->vm_ops->name) {
		name = vma->vm_ops->name(vma);
	}
	if (name)
		strscpy(slot->name, name, sizeof(slot->name));
}

/*
 * What a tick has found, for all sessions that want it; with the time 0, nothing yet. Its CPU's,
 * with interrupts off.
 */
static DEFINE_PER_CPU(struct slot, found);

/*
 * To try to have mmap_lock is an atomic operation, and to give it back wakes whoever waits
 * for it. That is fine in a timer's interrupt, where no lock of the scheduler is held; but
 * on PREEMPT_RT it is for a thread to do, of the lowest real-time priority: current must not
 * keep that from running.
 */
struct giving_back {
	struct irq_work work;
	struct mm_struct *mm;
};

static void give_back(struct irq_work *work)
{
	struct mm_struct *mm = container_of(work, struct giving_back, work)->mm;

	up_read_non_owner(&mm->mmap_lock);
	mmdrop(mm);
}

static DEFINE_PER_CPU(struct giving_back, giving_back);

static bool mm_trylock(struct mm_struct *mm)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    (current->prio < MAX_RT_PRIO || irq_work_is_busy(this_cpu_ptr(&giving_back.work))))
		return false;
	return down_read_trylock(&mm->mmap_lock);
}

static void mm_unlock(struct mm_struct *mm)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT)) {
		up_read(&mm->mmap_lock);
		return;
	}
	rwsem_release(&mm->mmap_lock.dep_map, _RET_IP_);
	mmgrab(mm);
	this_cpu_write(giving_back.mm, mm);
	irq_work_queue(this_cpu_ptr(&giving_back.work));
}

void profil_record_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		init_irq_work(per_cpu_ptr(&giving_back.work, cpu), give_back);
}

/* No tick looks anything up any more. */
void profil_record_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&giving_back.work, cpu));
}

/* What is to be said of current's @pc, but for ids. */
static void find(struct profil_space *space, u64 pc, bool system)
{
	struct slot *slot = this_cpu_ptr(&found);
	struct mm_struct *mm = current->mm;

	memset(slot, 0, sizeof(*slot));
	slot->record.flags = system ? PROFIL_RECORD_SYSTEM : 0;
	slot->record.time = ktime_get_mono_fast_ns();
	slot->record.pc = pc;
	slot->record.space = space->id;
	strscpy(slot->record.comm, current->comm, sizeof(slot->record.comm));
	if (mm_trylock(mm)) {
		slot_look_up(slot, mm);
		mm_unlock(mm);
	} else {
		slot->space = space;
	}
}

static void slot_look_up_late(struct slot *slot)
{
	struct mm_struct *mm = slot->space->mm;

	if (mmget_not_zero(mm)) {
		if (mmap_read_trylock(mm)) {
			slot_look_up(slot, mm);
			slot->record.flags |= PROFIL_RECORD_LATE;
			mmap_read_unlock(mm);
		}
		mmput_async(mm);
	}
	profil_space_put(slot->space);
	slot->space = NULL;
}

/**
 * profil_record - Keep a tick outside of all ranges, if its session wants that
 * @s: The session.
 * @space: The address space of current.
 * @pc: Where that is.
 * @system: The kernel is running for it.
 *
 * From the tick, at the end of which profil_record_over() must be called.
 *
 * Return: false if there is no room for the record that is due.
 */
bool profil_record(struct profil_session *s, struct profil_space *space, u64 pc, bool system)
{
	struct profil_ring *ring = s->ring;
	const struct slot *what;
	struct slot *slot;
	int head;

	if (!ring->nr_records)
		return true;
	head = atomic_read(&ring->head);
	do {
		/* Pairs with the release in profil_ring_read(): the slot is clear. */
		if (head - smp_load_acquire(&ring->tail) >= ring->nr_records)
			return false;
	} while (!atomic_try_cmpxchg(&ring->head, &head, head + 1));

	what = this_cpu_ptr(&found);
	if (!what->record.time)
		find(space, pc, system);
	slot = &ring->slots[(unsigned int)head & ring->mask];
	/* But for whole, which a reader may be looking at. */
	slot->record = what->record;
	memcpy(slot->name, what->name, sizeof(slot->name));
	slot->file = what->file;
	slot->space = what->space;
	slot->record.pid = task_tgid_nr_ns(current, ring->ns);
	slot->record.tid = task_pid_nr_ns(current, ring->ns);
	if (slot->file)
		get_file(slot->file);
	if (slot->space && !refcount_inc_not_zero(&slot->space->refs))
		slot->space = NULL;
	/* Pairs with the acquire in profil_ring_read(). */
	smp_store_release(&slot->whole, true);

	/* After the exchange of head, which is a barrier: a reader sees it, or is seen. */
	if (READ_ONCE(ring->tail) == (unsigned int)head)
		irq_work_queue(&ring->wake);
	return true;
}

/* The tick is over, which profil_record() was called for. */
void profil_record_over(void)
{
	struct slot *slot = this_cpu_ptr(&found);

	if (slot->file)
		fput(slot->file);
	slot->file = NULL;
	slot->record.time = 0;
}

static bool ring_empty(const struct profil_ring *ring)
{
	return READ_ONCE(ring->tail) == (unsigned int)atomic_read(&ring->head);
}

/* No record will come. Those that have come may not have been read yet. */
static bool ring_over(const struct profil_session *s)
{
	return READ_ONCE(s->phase) == PROFIL_ENDED ||
	       (READ_ONCE(s->nr_detached) && !READ_ONCE(s->nr_members));
}

/* Bytes that were copied, 0 if the record does not fit, or -EFAULT. */
static ssize_t slot_copy(struct slot *slot, char *page, char __user *buf, size_t size)
{
	size_t header = offsetof(struct profil_record, path), length;
	struct profil_record *record = &slot->record;
	char *path = slot->name;

	if (slot->space)
		slot_look_up_late(slot);
	if (slot->file) {
		path = d_path(profil_user_path(slot->file), page, PAGE_SIZE);
		if (IS_ERR(path))
			path = slot->name;
	}
	length = strlen(path) + 1;
	record->size = ALIGN(header + length, sizeof(u64));
	if (record->size > size)
		return 0;
	if (copy_to_user(buf, record, header) || copy_to_user(buf + header, path, length) ||
	    clear_user(buf + header + length, record->size - header - length))
		return -EFAULT;
	return record->size;
}

static ssize_t ring_take(struct profil_ring *ring, char __user *buf, size_t size)
{
	ssize_t done = 0, n;
	struct slot *slot;
	char *page;

	page = (char *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return -ENOMEM;
	if (mutex_lock_interruptible(&ring->lock)) {
		done = -ERESTARTSYS;
		goto free;
	}
	while (!ring_empty(ring)) {
		slot = &ring->slots[ring->tail & ring->mask];
		/* Pairs with the release in profil_record(). A tick is writing it if not. */
		while (!smp_load_acquire(&slot->whole))
			cpu_relax();
		n = slot_copy(slot, page, buf + done, size - done);
		if (n <= 0) {
			if (!done)
				done = n ? n : -EINVAL;
			break;
		}
		done += n;
		slot_clear(slot);
		/* Pairs with the acquire in profil_record(). */
		smp_store_release(&ring->tail, ring->tail + 1);
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	mutex_unlock(&ring->lock);
free:
	free_page((unsigned long)page);
	return done;
}

/* As read(2) of a session's descriptor has it: see struct profil_record. */
ssize_t profil_ring_read(struct profil_session *s, char __user *buf, size_t size, bool wait)
{
	struct profil_ring *ring = s->ring;
	ssize_t done;
	bool over;

	for (;;) {
		over = ring_over(s);
		done = ring_take(ring, buf, size);
		if (done || over)
			return done;
		if (!wait)
			return -EAGAIN;
		if (wait_event_interruptible(ring->wait, !ring_empty(ring) || ring_over(s)))
			return -ERESTARTSYS;
	}
}

__poll_t profil_ring_poll(struct profil_session *s, struct file *file, poll_table *wait)
{
	__poll_t events = 0;
	bool over;

	poll_wait(file, &s->ring->wait, wait);
	over = ring_over(s);
	if (!ring_empty(s->ring))
		events |= EPOLLIN | EPOLLRDNORM;
	else if (over)
		events |= EPOLLHUP;
	return events;
}
