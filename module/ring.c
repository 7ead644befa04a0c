// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of records, for read() of the descriptor. How records come into a ring is at the top of
 * ring.h. One reader at a time empties a ring, under ring->lock. Records reference files until they
 * are read, or the ring is closed. If records have stacks, there is room for one for each slot,
 * beyond ring->copy.
 *
 * A reader that waits is woken when the first record is done:
 *
 *	CPU A: record_done()			CPU B: profil_ring_read()
 *
 *	under slots_lock:			under slots_lock: move all from done to unread
 *	if done is empty, wake B		a barrier in wait_event
 *	add the record to done			if done is not empty, do not wait
 *
 * Context: profil_ring_wake() in any; others: system calls and workers (may sleep).
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/time_namespace.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "ring.h"

#define WAKES_AT_ONCE	64	/* waiters that are woken with interrupts off */
#define WAKES_A_JIFFY	256	/* per jiffy and ring, on average */
#define COPY_SIZE	8192	/* bytes that are copied to the reader at once */
#define FILES_SHOWN	64	/* in fdinfo */
#define RECORD_SIZE_MAX	(offsetof(struct profil_record, path) + PATH_MAX + sizeof(u64))

/*
 * Wakes all waiters. A user can have a million at one descriptor (poll, epoll), so this unlocks
 * after each WAKES_AT_ONCE. The CPU time is charged to no task, so the next call is delayed; not
 * for one waiter, since a reader must have read the records between two calls.
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
	WRITE_ONCE(ring->wake_delay, woken > 1 ? DIV_ROUND_UP(woken, WAKES_A_JIFFY) : 0);
}

/* Makes a worker wake all waiters. May be called under a raw spinlock. @ring can be NULL. */
void profil_ring_wake(struct profil_ring *ring)
{
	if (ring)
		queue_delayed_work(profil_wq, &ring->wake, READ_ONCE(ring->wake_delay));
}

struct profil_stack *ring_stack(struct profil_ring *ring, const struct ring_slot *slot)
{
	void *stacks = (void *)ring->copy + COPY_SIZE;

	return stacks + (slot - ring->slots) * ring_stack_size(ring->stack_depth);
}

static unsigned int ring_visits_bits(u32 nr_records)
{
	return ilog2(nr_records | 1) + 1;
}

/* Returns the size of a ring without its header. */
size_t profil_ring_size(u32 nr_records, u32 stack_depth)
{
	if (!nr_records)
		return 0;
	return nr_records * (sizeof(struct ring_slot) + ring_stack_size(stack_depth) +
			     sizeof(struct ring_visit)) +
	       COPY_SIZE + (sizeof(struct hlist_head) << ring_visits_bits(nr_records));
}

/* Creates a ring, which poll() needs even without records. Returns NULL if out of memory. */
struct profil_ring *profil_ring_create(u32 nr_records, u32 stack_depth)
{
	struct profil_ring *ring;
	size_t size = sizeof(*ring) + profil_ring_size(nr_records, stack_depth);

	/* kvzalloc() would search for contiguous memory, and clear it without rescheduling. */
	ring = size > PAGE_SIZE ? __vmalloc(size, PROFIL_RING_GFP | __GFP_ZERO) :
				  kzalloc(size, PROFIL_RING_GFP);
	if (!ring)
		return NULL;
	refcount_set(&ring->refs, 1);
	ring->copy = (void *)&ring->slots[nr_records];
	ring->stack_depth = stack_depth;
	ring->nr_records = nr_records;
	ring->visits_bits = ring_visits_bits(nr_records);
	ring->visits = (void *)ring + size - (sizeof(*ring->visits) << ring->visits_bits);
	ring->all_visits = (void *)ring->visits - nr_records * sizeof(*ring->all_visits);
	raw_spin_lock_init(&ring->slots_lock);
	ring_queue_init(&ring->free);
	ring_queue_init(&ring->done);
	ring_queue_init(&ring->unread);
	INIT_LIST_HEAD(&ring->waiting);
	for (u32 i = 0; i < nr_records; i++) {
		ring_queue_add(&ring->free, &ring->slots[i]);
		hlist_add_head(&ring->all_visits[i].node, &ring->idle);
	}
	mutex_init(&ring->lock);
	init_waitqueue_head(&ring->wait);
	INIT_DELAYED_WORK(&ring->wake, ring_wake);
	ring->uid = current_uid();
	if (stack_depth && profil_unwind_init(ring)) {
		kvfree(ring);
		return NULL;
	}
	ring->ns = get_pid_ns(task_active_pid_ns(current));
	return ring;
}

void ring_put(struct profil_ring *ring)
{
	if (refcount_dec_and_test(&ring->refs))
		kvfree(ring);
}

/* Releases @ring, which no tick, reader or profil_ring_wake() can reach. May sleep. */
void profil_ring_free(struct profil_ring *ring)
{
	if (!ring)
		return;
	cancel_delayed_work_sync(&ring->wake);
	profil_unwind_free(ring);
	put_pid_ns(ring->ns);
	ring_put(ring);
}

/* Returns true if no more records will be added. The caller checks for records after this. */
static bool ring_has_ended(const struct profil_session *s)
{
	if (READ_ONCE(s->phase) == PROFIL_ENDED)
		return true;
	/* Acquires: the caller's check comes later. While QUIESCED, ticks may be in progress. */
	return READ_ONCE(s->nr_detached) && !smp_load_acquire(&s->nr_targets) &&
	       READ_ONCE(s->phase) != PROFIL_QUIESCED;
}

/* Returns true if there are records to read. @over: the result of ring_has_ended(). */
static bool ring_has_records(const struct profil_session *s, bool over)
{
	return ring_claim(s->ring, over || !READ_ONCE(s->on));
}

/* Moves records from done to unread. Called under ring->lock. */
static void ring_fetch(struct profil_ring *ring)
{
	raw_spin_lock_irq(&ring->slots_lock);
	ring_queue_move(&ring->unread, &ring->done);
	raw_spin_unlock_irq(&ring->slots_lock);
}

static void ring_free_slots(struct profil_ring *ring, unsigned int nr)
{
	struct ring_queue read;
	struct ring_slot *slot;

	ring_queue_init(&read);
	while (nr--) {
		slot = ring_queue_take(&ring->unread);
		if (slot->file)
			fput(slot->file);
		memset_startat(slot, 0, record);
		ring_queue_add(&read, slot);
	}
	raw_spin_lock_irq(&ring->slots_lock);
	ring_queue_move(&ring->free, &read);
	raw_spin_unlock_irq(&ring->slots_lock);
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

	for (slot = ring->unread.first; slot; slot = slot->next) {
		if (done > COPY_SIZE - size_max)
			break;
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
	unsigned int nr;
	ssize_t err = 0;

	if (mutex_lock_interruptible(&ring->lock))
		return -ERESTARTSYS;
	/* The time is CLOCK_MONOTONIC in the time namespace of the caller. */
	timens_add_monotonic(&offset);
	while (!err) {
		ring_fetch(ring);
		if (ring_queue_is_empty(&ring->unread))
			break;
		bytes = ring_copy_records(ring, size - done, timespec64_to_ns(&offset));
		copied = bytes - copy_to_user(buf + done, ring->copy, bytes);
		err = !bytes ? -EINVAL : copied < bytes ? -EFAULT : 0;
		nr = 0;
		for (r = ring->copy; copied && r->size <= copied; r = (void *)r + r->size) {
			done += r->size;
			copied -= r->size;
			nr++;
		}
		ring_free_slots(ring, nr);
		/* Not before the first record: profil_ring_read() would call this for ever. */
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	mutex_unlock(&ring->lock);
	return done ?: err;
}

ssize_t profil_ring_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct profil_session *s = file->private_data;
	struct profil_ring *ring = s->ring;
	ssize_t done = 0;
	bool over;

	for (;;) {
		over = ring_has_ended(s);
		if (ring_has_records(s, over))
			done = ring_read_slots(ring, buf, size);
		if (done || over)
			return done;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(ring->wait, ring_has_records(s, false) ||
					     ring_has_ended(s)))
			return -ERESTARTSYS;
	}
}

__poll_t profil_ring_poll(struct file *file, poll_table *wait)
{
	struct profil_session *s = file->private_data;
	bool over;

	poll_wait(file, &s->ring->wait, wait);
	over = ring_has_ended(s);
	if (ring_has_records(s, over))
		return EPOLLIN | EPOLLRDNORM;
	return over ? EPOLLHUP : 0;
}

/* Prints the files that unread records keep in use. Does not wait for a reader, which may block. */
void profil_ring_show_files(struct seq_file *m, struct file *file)
{
	struct profil_ring *ring = ((struct profil_session *)file->private_data)->ring;
	const struct path *seen[FILES_SHOWN], *path;
	unsigned int j, n = 0;
	struct ring_slot *slot;

	if (!mutex_trylock(&ring->lock)) {
		seq_puts(m, "profil-files:\tbeing read\n");
		return;
	}
	ring_fetch(ring);
	for (slot = ring->unread.first; slot; slot = slot->next) {
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
