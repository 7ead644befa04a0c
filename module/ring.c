// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of records: one record for each tick outside all ranges, for read() of the descriptor.
 *
 * profil_ring_record() fills a slot of the ring. It looks up the mapping of the pc if trylock gets
 * mmap_lock; otherwise the slot references the space, and read() looks the mapping up. One reader
 * at a time empties slots, under ring->lock, and writes the path of a file as the reader sees it.
 * The references of a slot are dropped when it is read, or when the ring is freed.
 *
 * A reader that waits is woken when a record has been added:
 *
 *	CPU A: profil_ring_record()		CPU B: profil_ring_read()
 *
 *	head++ for the slot, a barrier		tail++ up to the slot, a barrier in wait_event
 *	if tail is this slot, wake B		if head is beyond tail, do not wait
 *
 * Context: the tick: profil_ring_record(); any: profil_ring_wake(); others: system calls and
 * workers (may sleep).
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "profil.h"

#define WAKES_AT_ONCE	64	/* waiters that are woken with interrupts off */
#define WAKES_A_JIFFY	256	/* per jiffy and ring, on average */

struct ring_slot {
	struct profil_record record;	/* without path; size is 0 until the slot is filled */
	char name[16];			/* used instead of a path if file is NULL */
	struct file *file;		/* referenced, or NULL */
	struct profil_space *space;	/* referenced, for read() to look the mapping up; or NULL */
};

struct profil_ring {
	u32 nr_records;
	u32 mask;			/* the number of slots, a power of two, minus 1 */
	atomic_t head;
	unsigned int tail;		/* under lock */
	struct mutex lock;
	wait_queue_head_t wait;
	struct delayed_work wake;
	unsigned long wake_delay;	/* in jiffies */
	struct pid_namespace *ns;	/* of the process ids in records; referenced */
	struct ring_slot slots[];
};

/*
 * Wakes all waiters. A user can have a million at one descriptor (poll, epoll). wake_up() would
 * wake all with the lock held and interrupts off; this function releases the lock after each
 * WAKES_AT_ONCE. The more waiters it wakes, the longer the next run is delayed; this bounds the CPU
 * time that is charged to no task.
 */
static void ring_wake(struct work_struct *work)
{
	struct profil_ring *ring = container_of(to_delayed_work(work), struct profil_ring, wake);
	wait_queue_entry_t *waiter;
	unsigned long woken = 0;
	LIST_HEAD(waiters);

	spin_lock_irq(&ring->wait.lock);
	list_splice_init(&ring->wait.head, &waiters);
	while (!list_empty(&waiters)) {
		waiter = list_first_entry(&waiters, wait_queue_entry_t, entry);
		list_move_tail(&waiter->entry, &ring->wait.head);
		waiter->func(waiter, TASK_INTERRUPTIBLE, 0, NULL);
		if (++woken % WAKES_AT_ONCE == 0) {
			spin_unlock_irq(&ring->wait.lock);
			cond_resched();
			spin_lock_irq(&ring->wait.lock);
		}
	}
	spin_unlock_irq(&ring->wait.lock);
	WRITE_ONCE(ring->wake_delay, woken / WAKES_A_JIFFY);
}

/* Makes a worker wake all waiters. May be called under a raw spinlock. */
void profil_ring_wake(struct profil_session *s)
{
	if (s->ring)
		queue_delayed_work(profil_wq, &s->ring->wake, READ_ONCE(s->ring->wake_delay));
}

/* Returns the number of pages of a ring, which are charged as locked memory. */
unsigned long profil_ring_pages(u32 nr_records)
{
	if (!nr_records)
		return 0;
	return DIV_ROUND_UP(roundup_pow_of_two(nr_records) * sizeof(struct ring_slot), PAGE_SIZE);
}

/* Creates a ring, which poll() needs even without records. Returns NULL if out of memory. */
struct profil_ring *profil_ring_create(u32 nr_records)
{
	u32 nr_slots = nr_records ? roundup_pow_of_two(nr_records) : 0;
	struct profil_ring *ring;
	size_t size = struct_size(ring, slots, nr_slots);

	/* kvzalloc() would search for contiguous memory, and clear it without rescheduling. */
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
	INIT_DELAYED_WORK(&ring->wake, ring_wake);
	ring->ns = get_pid_ns(task_active_pid_ns(current));
	return ring;
}

static void ring_slot_clear(struct ring_slot *slot)
{
	if (slot->file)
		fput(slot->file);
	if (slot->space)
		profil_space_put(slot->space);
	memset(slot, 0, sizeof(*slot));
}

/* Frees @ring, which no tick, reader or profil_ring_wake() can reach. May sleep. */
void profil_ring_free(struct profil_ring *ring)
{
	if (!ring)
		return;
	cancel_delayed_work_sync(&ring->wake);
	for (; ring->tail != (unsigned int)atomic_read(&ring->head); ring->tail++)
		ring_slot_clear(&ring->slots[ring->tail & ring->mask]);
	put_pid_ns(ring->ns);
	kvfree(ring);
}

/*
 * References @file only if it is a regular file, which never references the file of a descriptor.
 * An io_uring can: if the session's descriptor is registered there, a record that references the
 * io_uring would close a reference cycle, which outlives the last process.
 */
static void ring_look_up_file(struct ring_slot *slot, struct file *file)
{
	const struct inode *inode = profil_user_inode(file);

	slot->record.flags |= PROFIL_RECORD_FILE;
	slot->record.major = MAJOR(inode->i_sb->s_dev);
	slot->record.minor = MINOR(inode->i_sb->s_dev);
	slot->record.ino = inode->i_ino;
	slot->record.generation = inode->i_generation;
	if (S_ISREG(inode->i_mode) && !(inode->i_flags & PROFIL_S_ANON_INODE))
		slot->file = get_file(file);
	else
		snprintf(slot->name, sizeof(slot->name), "%pD", file);
}

/* Fills in the mapping in @mm that contains the pc. Called under mmap_lock. */
static void ring_look_up(struct ring_slot *slot, struct mm_struct *mm)
{
	struct profil_record *r = &slot->record;
	struct vm_area_struct *vma;
	const char *name = NULL;

	if (r->pc != (unsigned long)r->pc)
		return;
	vma = find_vma(mm, r->pc);
	if (!vma || vma->vm_start > r->pc)
		return;
	r->flags |= PROFIL_RECORD_MAPPED;
	r->start = vma->vm_start;
	r->end = vma->vm_end;
	if (vma->vm_file) {
		r->offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + (r->pc - vma->vm_start);
		ring_look_up_file(slot, vma->vm_file);
	} else if (vma->vm_ops && vma->vm_ops->name) {
		name = vma->vm_ops->name(vma);
	}
	if (name)
		strscpy(slot->name, name, sizeof(slot->name));
}

/* Records a tick of current outside all ranges of @s. Return: false if there is no room. */
bool profil_ring_record(struct profil_session *s, struct profil_space *space, u64 pc, bool system)
{
	struct mm_struct *mm = current->mm;
	struct profil_ring *ring = s->ring;
	struct ring_slot *slot;
	int head;

	if (!ring->nr_records)
		return true;
	head = atomic_read(&ring->head);
	do {
		/* Pairs with the release in ring_read_slots(): the slot is clear. */
		if (head - smp_load_acquire(&ring->tail) >= ring->nr_records)
			return false;
	} while (!atomic_try_cmpxchg(&ring->head, &head, head + 1));

	slot = &ring->slots[(unsigned int)head & ring->mask];
	slot->record.flags = system ? PROFIL_RECORD_SYSTEM : 0;
	slot->record.time = ktime_get_mono_fast_ns();
	slot->record.pc = pc;
	slot->record.space = space->id;
	slot->record.pid = task_tgid_nr_ns(current, ring->ns);
	slot->record.tid = task_pid_nr_ns(current, ring->ns);
	memcpy(slot->record.comm, current->comm, sizeof(slot->record.comm));
	/*
	 * up_read() may wake tasks that wait for mmap_lock. That is safe in the timer interrupt,
	 * where no scheduler lock is held. On PREEMPT_RT up_read() may sleep, so there read() looks
	 * the mapping up.
	 */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && down_read_trylock(&mm->mmap_lock)) {
		ring_look_up(slot, mm);
		up_read(&mm->mmap_lock);
	} else if (refcount_inc_not_zero(&space->refs)) {
		slot->space = space;
	}
	/* Pairs with the acquire in ring_read_slots(). */
	smp_store_release(&slot->record.size, sizeof(slot->record));

	/* A reader may be waiting: see the top of this file. */
	if (READ_ONCE(ring->tail) == (unsigned int)head)
		profil_ring_wake(s);
	return true;
}

static bool ring_is_empty(const struct profil_ring *ring)
{
	return READ_ONCE(ring->tail) == (unsigned int)atomic_read(&ring->head);
}

/* Returns true if no more records will be added. Some may not have been read yet. */
static bool ring_has_ended(const struct profil_session *s)
{
	return READ_ONCE(s->phase) == PROFIL_ENDED ||
	       (READ_ONCE(s->nr_detached) && !READ_ONCE(s->nr_targets));
}

static void ring_look_up_late(struct ring_slot *slot)
{
	struct mm_struct *mm = slot->space->mm;

	if (mmget_not_zero(mm)) {
		if (mmap_read_trylock(mm)) {
			ring_look_up(slot, mm);
			slot->record.flags |= PROFIL_RECORD_LATE;
			mmap_read_unlock(mm);
		}
		mmput_async(mm);
	}
	profil_space_put(slot->space);
	slot->space = NULL;
}

/* Copies a record. Return: the bytes copied; 0 if the record does not fit; or -EFAULT. */
static ssize_t ring_copy_slot(struct ring_slot *slot, char *page, char __user *buf, size_t size)
{
	size_t header = offsetof(struct profil_record, path), length;
	struct timespec64 time = ns_to_timespec64(slot->record.time);
	struct profil_record record;
	const char *path;

	if (slot->space)
		ring_look_up_late(slot);
	path = slot->name;
	if (slot->file) {
		path = d_path(profil_user_path(slot->file), page, PAGE_SIZE);
		if (IS_ERR(path))
			path = slot->name;
	}
	length = strlen(path) + 1;
	record = slot->record;
	record.size = ALIGN(header + length, sizeof(u64));
	/* The time is CLOCK_MONOTONIC in the time namespace of the caller. */
	timens_add_monotonic(&time);
	record.time = timespec64_to_ns(&time);
	strscpy_pad(record.comm, slot->record.comm, sizeof(record.comm));
	if (record.size > size)
		return 0;
	if (copy_to_user(buf, &record, header) || copy_to_user(buf + header, path, length) ||
	    clear_user(buf + header + length, record.size - header - length))
		return -EFAULT;
	return record.size;
}

static ssize_t ring_read_slots(struct profil_ring *ring, char __user *buf, size_t size)
{
	ssize_t done = 0, n;
	struct ring_slot *slot;
	char *page;

	page = (char *)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return -ENOMEM;
	if (mutex_lock_interruptible(&ring->lock)) {
		done = -ERESTARTSYS;
		goto free;
	}
	while (!ring_is_empty(ring)) {
		slot = &ring->slots[ring->tail & ring->mask];
		/* Pairs with the release in profil_ring_record(): the slot is filled. */
		while (!smp_load_acquire(&slot->record.size))
			cpu_relax();
		n = ring_copy_slot(slot, page, buf + done, size - done);
		if (n <= 0) {
			if (!done)
				done = n ? n : -EINVAL;
			break;
		}
		done += n;
		ring_slot_clear(slot);
		/* Pairs with the acquire in profil_ring_record(). */
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

/* Implements read() of a session's descriptor: see struct profil_record. */
ssize_t profil_ring_read(struct profil_session *s, char __user *buf, size_t size, bool wait)
{
	struct profil_ring *ring = s->ring;
	ssize_t done;
	bool over;

	for (;;) {
		over = ring_has_ended(s);
		done = ring_read_slots(ring, buf, size);
		if (done || over)
			return done;
		if (!wait)
			return -EAGAIN;
		if (wait_event_interruptible(ring->wait, !ring_is_empty(ring) || ring_has_ended(s)))
			return -ERESTARTSYS;
	}
}

__poll_t profil_ring_poll(struct profil_session *s, struct file *file, poll_table *wait)
{
	__poll_t events = 0;
	bool over;

	poll_wait(file, &s->ring->wait, wait);
	over = ring_has_ended(s);
	if (!ring_is_empty(s->ring))
		events |= EPOLLIN | EPOLLRDNORM;
	else if (over)
		events |= EPOLLHUP;
	return events;
}
