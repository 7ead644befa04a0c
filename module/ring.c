// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of records, for read() of the descriptor: one record for each tick outside all ranges, and
 * for each target that the session does not follow into a program with more rights.
 *
 * A tick fills a slot, and looks up the mapping of the pc if trylock gets mmap_lock; otherwise the
 * slot references the mm, and read() looks it up. One reader at a time empties slots, under
 * ring->lock. The references of a slot are dropped when it is read, or when the ring is freed. If
 * records have stacks, there is room for one for each slot, beyond ring->copy.
 *
 * A reader that waits is woken when a record has been added:
 *
 *	CPU A: profil_ring_record()		CPU B: profil_ring_read()
 *
 *	head++ for the slot, a barrier		tail++ up to the slot, a barrier in wait_event
 *	if tail is this slot, wake B		if head is beyond tail, do not wait
 *
 * Context: profil_ring_record() in the tick; profil_ring_record_detached() in the probe of exec
 * (atomic); profil_ring_wake() in any; others: system calls and workers (may sleep).
 */
#include <linux/binfmts.h>
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "internal.h"

#define WAKES_AT_ONCE	64	/* waiters that are woken with interrupts off */
#define WAKES_A_JIFFY	256	/* per jiffy and ring, on average */
#define COPY_SIZE	8192	/* bytes that are copied to the reader at once */
/* If memory is short, the call fails, and the kernel does not kill processes to get it. */
#define RING_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
#define FILES_SHOWN	64	/* in fdinfo */
#define RECORD_SIZE_MAX	(offsetof(struct profil_record, path) + PATH_MAX + sizeof(u64))

struct ring_slot {
	struct profil_record record;	/* without path; size is 0 until the slot is filled */
	char name[16];			/* used instead of a path if file is NULL */
	struct file *file;		/* referenced, or NULL */
	struct mm_struct *mm;		/* referenced, for read() to look the mapping up; or NULL */
};

struct profil_ring {
	u32 nr_records;
	u32 stack_depth;		/* of each slot; 0: records have no stack */
	u32 mask;			/* the number of slots, a power of two, minus 1 */
	atomic_t head;
	unsigned int tail;		/* under lock */
	struct mutex lock;
	struct profil_record *copy;	/* COPY_SIZE bytes, beyond the slots; under lock */
	wait_queue_head_t wait;
	struct delayed_work wake;
	unsigned long wake_delay;	/* in jiffies */
	struct pid_namespace *ns;	/* of the process ids in records; referenced */
	struct ring_slot slots[];
};

/*
 * Wakes all waiters. A user can have a million at one descriptor (poll, epoll), so this unlocks
 * after each WAKES_AT_ONCE. The CPU time is charged to no task, so the next call is delayed.
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

static size_t ring_stack_size(u32 depth)
{
	return depth ? sizeof(struct profil_stack) + depth * sizeof(u64) : 0;
}

static struct profil_stack *ring_stack(struct profil_ring *ring, const struct ring_slot *slot)
{
	void *stacks = (void *)ring->copy + COPY_SIZE;

	return stacks + (slot - ring->slots) * ring_stack_size(ring->stack_depth);
}

/* Returns the size of a ring without its header. */
static size_t ring_size(u32 nr_records, u32 stack_depth)
{
	if (!nr_records)
		return 0;
	return roundup_pow_of_two(nr_records) *
	       (sizeof(struct ring_slot) + ring_stack_size(stack_depth)) + COPY_SIZE;
}

/* Returns the number of pages to charge for a ring. */
unsigned long profil_ring_pages(u32 nr_records, u32 stack_depth)
{
	return PFN_UP(ring_size(nr_records, stack_depth));
}

/* Creates a ring, which poll() needs even without records. Returns NULL if out of memory. */
struct profil_ring *profil_ring_create(u32 nr_records, u32 stack_depth)
{
	u32 nr_slots = nr_records ? roundup_pow_of_two(nr_records) : 0;
	struct profil_ring *ring;
	size_t size = sizeof(*ring) + ring_size(nr_records, stack_depth);

	/* kvzalloc() would search for contiguous memory, and clear it without rescheduling. */
	ring = size > PAGE_SIZE ? __vmalloc(size, RING_GFP | __GFP_ZERO) : kzalloc(size, RING_GFP);
	if (!ring)
		return NULL;
	ring->copy = (void *)&ring->slots[nr_slots];
	ring->stack_depth = stack_depth;
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
	if (slot->mm)
		mmdrop(slot->mm);
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
 * References @file only if it is a regular file. Others can make a cycle of references: an io_uring
 * in which the session's descriptor is registered references the session.
 */
static void ring_look_up_file(struct ring_slot *slot, struct file *file)
{
	const struct inode *inode = file_user_inode(file);
	struct profil_record *r = &slot->record;

	r->flags |= PROFIL_RECORD_FILE;
	r->major = MAJOR(inode->i_sb->s_dev);
	r->minor = MINOR(inode->i_sb->s_dev);
	r->ino = inode->i_ino;
	r->generation = inode->i_generation;
	if (S_ISREG(inode->i_mode) && !(inode->i_flags & S_ANON_INODE))
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
	vma = vma_lookup(mm, r->pc);
	if (!vma)
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

/* Returns the id of current in ring->ns. @pid may be gone, but not @nr, the id in init_pid_ns. */
static pid_t ring_pid_nr(const struct profil_ring *ring, struct pid *pid, pid_t nr)
{
	return ring->ns == &init_pid_ns ? nr : pid_nr_ns(pid, ring->ns);
}

/* Takes a slot, and fills in current and the time. Return: NULL if there is no room. */
static struct ring_slot *ring_slot_take(struct profil_ring *ring)
{
	int head = atomic_read(&ring->head);
	struct ring_slot *slot;

	do {
		/* Pairs with the release in ring_read_slots(): the slot is clear. */
		if (head - smp_load_acquire(&ring->tail) >= ring->nr_records)
			return NULL;
	} while (!atomic_try_cmpxchg(&ring->head, &head, head + 1));

	slot = &ring->slots[(unsigned int)head & ring->mask];
	slot->record.time = ktime_get_mono_fast_ns();
	slot->record.pid = ring_pid_nr(ring, task_tgid(current), current->tgid);
	slot->record.tid = ring_pid_nr(ring, task_pid(current), current->pid);
	slot->record.cpu = smp_processor_id();
	memcpy(slot->record.comm, current->comm, sizeof(slot->record.comm));
	return slot;
}

/* Publishes @slot. Interrupts are off since ring_slot_take(), because the reader spins. */
static void ring_slot_publish(struct profil_session *s, struct ring_slot *slot)
{
	/* Pairs with the acquire in ring_read_slots(). */
	smp_store_release(&slot->record.size, sizeof(slot->record));
	/* A reader may be waiting: see the top of this file. */
	if (slot == &s->ring->slots[READ_ONCE(s->ring->tail) & s->ring->mask])
		profil_ring_wake(s);
}

static void ring_record_stack(struct profil_ring *ring, struct ring_slot *slot)
{
	struct profil_stack *stack = ring_stack(ring, slot);

	slot->record.flags |= PROFIL_RECORD_STACK;
	if (slot->record.flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT))
		*stack = (struct profil_stack) { .end = PROFIL_STACK_NO_REGISTERS };
	else
		profil_stack_fill(stack, ring->stack_depth);
}

/* Records a tick of current without a counter. Return: false if there is no room. */
bool profil_ring_record(struct profil_session *s, u64 space, u64 pc, u32 flags, u32 periods)
{
	struct ring_slot *slot = ring_slot_take(s->ring);
	struct mm_struct *mm = current->mm;

	if (!slot)
		return false;
	slot->record.flags = flags;
	slot->record.space = space;
	slot->record.periods = periods;
	if (flags & (PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT))
		goto publish;
	slot->record.pc = pc;
	/*
	 * up_read() may wake tasks that wait for mmap_lock. That is safe in the timer interrupt,
	 * where no scheduler lock is held. On PREEMPT_RT it may sleep, so read() does the look-up.
	 */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && down_read_trylock(&mm->mmap_lock)) {
		ring_look_up(slot, mm);
		up_read(&mm->mmap_lock);
	} else {
		mmgrab(mm);
		slot->mm = mm;
	}
publish:
	if (s->ring->stack_depth)
		ring_record_stack(s->ring, slot);
	ring_slot_publish(s, slot);
	return true;
}

/*
 * Records that @s, which sampled current in @space, does not follow it into @bprm. Must be called
 * before the target is detached, so that the end of file comes later. Return: false if no room.
 */
bool profil_ring_record_detached(struct profil_session *s, u64 space,
				 const struct linux_binprm *bprm)
{
	struct ring_slot *slot;
	unsigned long flags;

	local_irq_save(flags);
	slot = ring_slot_take(s->ring);
	if (slot) {
		slot->record.flags = PROFIL_RECORD_DETACHED;
		if (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP)
			slot->record.flags |= PROFIL_RECORD_UNREADABLE;
		slot->record.space = space;
		ring_look_up_file(slot, bprm->file);
		ring_slot_publish(s, slot);
	}
	local_irq_restore(flags);
	return slot;
}

static bool ring_is_empty(const struct profil_ring *ring)
{
	return READ_ONCE(ring->tail) == (unsigned int)atomic_read(&ring->head);
}

/* Returns true if no more records will be added. The caller checks for records after this. */
static bool ring_has_ended(const struct profil_session *s)
{
	if (READ_ONCE(s->phase) == PROFIL_ENDED)
		return true;
	/* The acquire orders this before the caller's check. */
	return READ_ONCE(s->nr_detached) && !smp_load_acquire(&s->nr_targets);
}

static void ring_look_up_late(struct ring_slot *slot)
{
	struct mm_struct *mm = slot->mm;

	if (mmget_not_zero(mm)) {
		if (mmap_read_trylock(mm)) {
			ring_look_up(slot, mm);
			slot->record.flags |= PROFIL_RECORD_LATE;
			mmap_read_unlock(mm);
		}
		mmput_async(mm);
	}
	slot->mm = NULL;
	mmdrop(mm);
}

/* Copies the path or name of @slot to @r, with padding. Return: the size of the record. */
static size_t ring_copy_path(struct profil_record *r, const struct ring_slot *slot)
{
	size_t header = offsetof(struct profil_record, path), length;
	char *to = (char *)r + header;
	const char *path = slot->name;

	if (slot->file)
		path = d_path(file_user_path(slot->file), to, PATH_MAX);
	if (IS_ERR(path))
		path = slot->name;
	length = strlen(path) + 1;
	memmove(to, path, length);
	memset(to + length, 0, sizeof(u64));
	return ALIGN(header + length, sizeof(u64));
}

/* Copies the stack of @slot to @to. Return: its size; 0 if the record has none. */
static size_t ring_copy_stack(void *to, struct profil_ring *ring, const struct ring_slot *slot)
{
	const struct profil_stack *stack = ring_stack(ring, slot);
	size_t size = 0;

	if (slot->record.flags & PROFIL_RECORD_STACK)
		size = struct_size(stack, addresses, stack->nr);
	memcpy(to, stack, size);
	return size;
}

/* Copies records to ring->copy, but keeps their slots. Adds @offset to times. Return: bytes. */
static size_t ring_copy_records(struct profil_ring *ring, size_t size, s64 offset)
{
	const size_t header = offsetof(struct profil_record, path);
	const size_t size_max = RECORD_SIZE_MAX + ring_stack_size(ring->stack_depth);
	size_t done = 0, bytes = 0, end = 0;	/* end: of the path, in the record */
	struct file *file = NULL;	/* of the previous record */
	struct profil_record *r;
	struct ring_slot *slot;

	for (unsigned int i = ring->tail; i != (unsigned int)atomic_read(&ring->head) &&
	     done <= COPY_SIZE - size_max; i++) {
		slot = &ring->slots[i & ring->mask];
		/* Pairs with the release in ring_slot_publish(): the slot is filled. */
		while (!smp_load_acquire(&slot->record.size))
			cpu_relax();
		if (slot->mm)
			ring_look_up_late(slot);
		r = (void *)ring->copy + done;
		if (slot->file && slot->file == file)
			memcpy((char *)r + header, (char *)r - bytes + header, end - header);
		else
			end = ring_copy_path(r, slot);
		bytes = end + ring_copy_stack((char *)r + end, ring, slot);
		if (bytes > size - done)
			break;
		memcpy(r, &slot->record, header);
		r->size = bytes;
		r->time += offset;
		r->comm[sizeof(r->comm) - 1] = '\0';
		file = slot->file;
		done += bytes;
	}
	return done;
}

static ssize_t ring_read_slots(struct profil_ring *ring, char __user *buf, size_t size)
{
	struct timespec64 offset = {};
	size_t bytes, copied, done = 0;
	struct profil_record *r;
	ssize_t err = 0;

	if (mutex_lock_interruptible(&ring->lock))
		return -ERESTARTSYS;
	/* The time is CLOCK_MONOTONIC in the time namespace of the caller. */
	timens_add_monotonic(&offset);
	while (!err && !ring_is_empty(ring)) {
		bytes = ring_copy_records(ring, size - done, timespec64_to_ns(&offset));
		copied = bytes - copy_to_user(buf + done, ring->copy, bytes);
		err = !bytes ? -EINVAL : copied < bytes ? -EFAULT : 0;
		for (r = ring->copy; copied && r->size <= copied; r = (void *)r + r->size) {
			done += r->size;
			copied -= r->size;
			ring_slot_clear(&ring->slots[ring->tail & ring->mask]);
			/* Pairs with the acquire in ring_slot_take(). */
			smp_store_release(&ring->tail, ring->tail + 1);
		}
		/* Not before the first record: profil_ring_read() would call this for ever. */
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	mutex_unlock(&ring->lock);
	return done ?: err;
}

/* Implements read() of a session's descriptor: see struct profil_record. */
ssize_t profil_ring_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct profil_session *s = file->private_data;
	struct profil_ring *ring = s->ring;
	ssize_t done;
	bool over;

	for (;;) {
		over = ring_has_ended(s);
		done = ring_read_slots(ring, buf, size);
		if (done || over)
			return done;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(ring->wait, !ring_is_empty(ring) || ring_has_ended(s)))
			return -ERESTARTSYS;
	}
}

__poll_t profil_ring_poll(struct file *file, poll_table *wait)
{
	struct profil_session *s = file->private_data;
	bool over;

	poll_wait(file, &s->ring->wait, wait);
	over = ring_has_ended(s);
	if (!ring_is_empty(s->ring))
		return EPOLLIN | EPOLLRDNORM;
	return over ? EPOLLHUP : 0;
}

/*
 * Prints the paths of FILES_SHOWN files that unread records keep in use, for the user of a busy
 * filesystem. Does not wait for a reader, which may wait for user space.
 */
void profil_ring_show_files(struct seq_file *m, struct file *file)
{
	struct profil_ring *ring = ((struct profil_session *)file->private_data)->ring;
	const struct path *seen[FILES_SHOWN], *path;
	unsigned int i, j, n = 0;
	struct ring_slot *slot;

	if (!mutex_trylock(&ring->lock)) {
		seq_puts(m, "profil-files:\tbeing read\n");
		return;
	}
	for (i = ring->tail; i != (unsigned int)atomic_read(&ring->head); i++) {
		slot = &ring->slots[i & ring->mask];
		/* Pairs with the release in ring_slot_publish(): the slot is filled. */
		if (!smp_load_acquire(&slot->record.size))
			break;
		path = slot->file ? file_user_path(slot->file) : NULL;
		for (j = 0; path && j < n && !path_equal(seen[j], path); j++)
			;
		if (!path || j < n)
			continue;
		if (n == FILES_SHOWN) {
			seq_puts(m, "profil-files:\tmore\n");
			break;
		}
		seen[n++] = path;
		seq_puts(m, "profil-file:\t");
		seq_path(m, path, "\n\\");
		seq_putc(m, '\n');
	}
	mutex_unlock(&ring->lock);
}
