/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A ring: the records of a session, from the tick to the reader.
 *
 *	free --tick--> visit->records --completion or claim--> done --reader--> unread --> free
 *	     --tick, if it is complete-----------------------> done
 *
 * The tick fills in a record. If mmap_lock is free and records have no stacks, it also looks up the
 * mapping of the pc, and the record is done. Otherwise the task itself does that, and walks its
 * stack, in task work when it returns to user mode: there it can wait for mmap_lock. A visit is the
 * time from the first such tick of a task to the task work, which completes its records.
 *
 * A reader does not wait for a task that stays in the kernel. It claims records, which makes them
 * done without a mapping, with PROFIL_RECORD_PENDING: all of them if the session is off or over,
 * and those that have waited for CLAIM_AFTER_NS if no slot is free, so that such tasks cannot use
 * up the ring. With its last record, the visit ends, and its work is cancelled.
 *
 * Task work that has begun, and may wait for mmap_lock or user space for ever, cannot be cancelled.
 * So it is not in a slot, and can use up the visits only; records that need one are then done at
 * once, with PROFIL_RECORD_PENDING. profil_ring_close() does not wait for such work, but leaves it
 * orphaned, with a reference to the ring and one to the module.
 */
#ifndef _PROFIL_RING_H
#define _PROFIL_RING_H

#include <linux/task_work.h>

#include "internal.h"

/* If memory is short, the call fails, and the kernel does not kill processes to get it. */
#define PROFIL_RING_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* A queue of slots. The kernel's lists would cost the tick 60 instructions more. */
struct ring_queue {
	struct ring_slot *first, **end;
};

struct ring_visit {
	struct callback_head work;
	struct profil_ring *ring;
	struct task_struct *task;	/* has queued the work, which runs before its exit ends */
	bool orphaned;			/* references the ring and the module */
	struct hlist_node node;		/* in ring->visits; in ring->idle without task */
	struct ring_queue records;	/* slots to complete */
	struct list_head waiting;	/* in ring->waiting, if there are any */
};

/* What the completion of a record depends on. It is mostly the same for all of a visit. */
struct ring_origin {
	u64 pc;
	unsigned long sp;		/* of the user code, if records have stacks */
	const struct mm_struct *mm;	/* only compared, not referenced */
	u64 exec_id;			/* task_struct.self_exec_id */
};

struct ring_slot {
	struct ring_slot *next;		/* in a queue of the ring or of a visit */
	struct profil_record record;	/* without path; this and all below is 0 in a free slot */
	char name[16];			/* used instead of a path if file is NULL */
	struct file *file;		/* referenced, or NULL */
	struct ring_origin origin;
};

/*
 * What identifies a file, without a reference. Without a file, dev is 0: then, for code made at run
 * time, ino is the id of the address space, and generation the number of its part there.
 */
struct unwind_key {
	u64 ino;
	dev_t dev;
	u32 generation;
};

/* An unwind table. It is constant once it is in the ring. */
struct unwind_table {
	struct hlist_node node;		/* in ring->tables */
	struct unwind_key key;
	u32 nr_blocks;
	u32 nr_rules;
	struct profil_unwind_rule *rules;
	u32 *blocks;			/* one more than nr_blocks: the number of rows */
	u32 *rows;
	size_t charged;
};

#define PROFIL_UNWIND_BITS	6

struct profil_ring {
	u32 nr_records;			/* and visits */
	kuid_t uid;			/* of the creator */
	u32 stack_depth;		/* of each slot; 0: records have no stack */
	u32 nr_tables;			/* this, and additions to tables: under home->lock */
	u32 table_seed;
	struct hlist_head tables[1 << PROFIL_UNWIND_BITS];	/* by key; read under RCU */
	struct unwind_user *user;	/* of the creator; NULL without stacks */
	refcount_t refs;

	/* for the tick, with interrupts off */
	raw_spinlock_t slots_lock;
	bool closed;			/* no slot is free, so ticks leave no records */
	struct ring_queue free, done;
	struct list_head waiting;	/* visits whose records wait, by the time of the first */
	struct hlist_head *visits;	/* by task; 1 << visits_bits lists */
	u32 visits_bits;
	struct ring_visit *all_visits;
	struct hlist_head idle;		/* visits */

	/* for the reader */
	struct mutex lock;
	struct ring_queue unread;	/* done records, in the order of done */
	struct profil_record *copy;	/* COPY_SIZE bytes, beyond the slots */
	wait_queue_head_t wait;
	struct delayed_work wake;
	unsigned long wake_delay;	/* in jiffies */
	struct pid_namespace *ns;	/* of the process ids in records; referenced */
	struct ring_slot slots[];
};

static inline void ring_queue_init(struct ring_queue *queue)
{
	queue->first = NULL;
	queue->end = &queue->first;
}

static inline bool ring_queue_is_empty(const struct ring_queue *queue)
{
	return !READ_ONCE(queue->first);
}

static inline void ring_queue_add(struct ring_queue *queue, struct ring_slot *slot)
{
	slot->next = NULL;
	WRITE_ONCE(*queue->end, slot);
	queue->end = &slot->next;
}

static inline struct ring_slot *ring_queue_take(struct ring_queue *queue)
{
	struct ring_slot *slot = queue->first;

	if (!slot)
		return NULL;
	WRITE_ONCE(queue->first, slot->next);
	if (!slot->next)
		queue->end = &queue->first;
	return slot;
}

static inline void ring_queue_move(struct ring_queue *queue, struct ring_queue *from)
{
	if (!from->first)
		return;
	WRITE_ONCE(*queue->end, from->first);
	queue->end = from->end;
	ring_queue_init(from);
}

static inline size_t ring_stack_size(u32 depth)
{
	return depth ? sizeof(struct profil_stack) + depth * sizeof(u64) : 0;
}

struct profil_stack *ring_stack(struct profil_ring *ring, const struct ring_slot *slot);
void ring_put(struct profil_ring *ring);

/* User memory that could not be read, of a stack or its code */
struct stack_unread {
	unsigned long address;
	unsigned int size;
};

/* record.c, stack.c and unwind.c */
bool ring_claim(struct profil_ring *ring, bool all);
void ring_fill_stack(struct profil_ring *ring, struct profil_stack *stack, u64 space, u64 pc,
		     struct stack_unread *unread);
void ring_refill_stack(struct profil_ring *ring, struct profil_stack *stack, u64 space, u64 pc,
		       struct stack_unread *unread);
const struct unwind_table *profil_unwind_find(struct profil_ring *ring, struct vm_area_struct *vma,
					      u64 space, unsigned long address);
int profil_unwind_init(struct profil_ring *ring);
void profil_unwind_free(struct profil_ring *ring);

#endif /* _PROFIL_RING_H */
