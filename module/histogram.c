// SPDX-License-Identifier: GPL-2.0
/*
 * The pages that hold the counters: found, charged, pinned, followed, returned.
 *
 * A session's histograms are the page spans of all its buffers, those that touch
 * merged, so that no page is pinned or charged twice. A page is pinned with
 * FOLL_LONGTERM from start to end and counted through the kernel's own address of
 * it, kept in pages[].
 *
 * The user's page table and the pin can part: MADV_DONTNEED, a punched hole, munmap
 * and others put another page, or none, where the pinned one was. Most events that
 * a notifier hears of change nothing, and the event's type does not tell. So the
 * callback only parks the session and marks the pages as stale; from then on ticks
 * are kept, not counted. A worker (or whoever asks for the statistics) pins these
 * pages a second time and compares: the same page, go on; another, adopt it; none,
 * the session has lost its buffer and ends. A tick that was under way in the
 * moment of the event still reaches the old page, at most one on each CPU; the pin
 * keeps that page from being anything else's.
 *
 * An inherited session begins in that state: parked, with all its pages stale and
 * none pinned.
 *
 * pages[] is written only while no published range needs it, or while the session is
 * parked and a grace period has passed since.
 *
 * A histogram is needed as long as a table has spans that count in it. Those that are
 * not go at the next occasion, see profil_histograms_drop_unused().
 */
#include <linux/backing-dev.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "profil.h"

/* FORCE does nothing to a writable mapping but to accept a NUMA hint's PROT_NONE. */
#define PIN_FLAGS	(FOLL_WRITE | FOLL_LONGTERM | FOLL_NOFAULT | FOLL_FORCE)
#define PIN_BATCH	64
#define PIN_TRIES	1000	/* against others who change the mapping all the time */

static unsigned long page_address_of(const struct profil_histogram *h, unsigned long page)
{
	return h->start + (page << PAGE_SHIFT);
}

static void unpin(void *kaddr)
{
	struct page *page = virt_to_page(kaddr);

	/* Its page table entry does not know that it was written to. */
	unpin_user_pages_dirty_lock(&page, 1, true);
}

static bool vma_is_written_back(const struct vm_area_struct *vma)
{
	return vma->vm_file && mapping_can_writeback(vma->vm_file->f_mapping);
}

/*
 * Is it writable, and of a kind that may be pinned? Not shared mappings whose file is
 * written back: the writes of the tick cannot be seen by the file system.
 */
static bool vma_is_pinnable(const struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_WRITE) ||
	    vma->vm_flags & (VM_IO | VM_PFNMAP | PROFIL_VM_SHADOW_STACK))
		return false;
	if (vma->vm_file && file_inode(vma->vm_file)->i_sb->s_magic == SECRETMEM_MAGIC)
		return false;
	if (!(vma->vm_flags & VM_SHARED))
		return true;
	return !vma_is_written_back(vma) &&
	       !(vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite));
}

/* May a fault there wait for user space: for a file to be read, or for an answer? */
static bool vma_waits_for_user(struct vm_area_struct *vma)
{
	return userfaultfd_armed(vma) ||
	       (!(vma->vm_flags & VM_SHARED) && vma_is_written_back(vma));
}

/* Is all of [@start, @end) memory that may be pinned? Under mmap_lock. */
static bool mapped(struct mm_struct *mm, unsigned long start, unsigned long end)
{
	struct vm_area_struct *vma;

	for (; start < end; start = vma->vm_end) {
		vma = vma_lookup(mm, start);
		if (!vma || !vma_is_pinnable(vma))
			return false;
	}
	return true;
}

static void mark_stale(struct profil_histogram *h, unsigned long first, unsigned long end)
{
	lockdep_assert_held(&h->session->stale_lock);

	if (list_empty(&h->stale)) {
		h->stale_first = first;
		h->stale_end = end;
		list_add_tail(&h->stale, &h->session->stale);
	} else {
		h->stale_first = min(h->stale_first, first);
		h->stale_end = max(h->stale_end, end);
	}
}

/*
 * May be called in any context that can take a spinlock, with mmap_lock or page
 * locks held: no blocking, no accounting, no removal of the notifier from here.
 */
static bool histogram_invalidate(struct mmu_interval_notifier *notifier,
				 const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct profil_histogram *h = container_of(notifier, struct profil_histogram, notifier);
	struct profil_session *s = h->session;
	unsigned long first = 0, end = h->nr_pages;

	if (range->start > h->start)
		first = (range->start - h->start) >> PAGE_SHIFT;
	if (range->end < page_address_of(h, end))
		end = (range->end - h->start + PAGE_SIZE - 1) >> PAGE_SHIFT;

	spin_lock(&s->stale_lock);
	mmu_interval_set_seq(notifier, cur_seq);
	mark_stale(h, first, end);
	set_bit(PROFIL_SLOW_PARKED, &s->slow);
	spin_unlock(&s->stale_lock);

	profil_session_kick(s);
	return true;
}

static const struct mmu_interval_notifier_ops histogram_ops = {
	.invalidate = histogram_invalidate,
};

/* ---- from ranges to histograms ---- */

struct extent {
	unsigned long start, end;
};

static int extent_cmp(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* One that has all of [@start, @start + @bytes). Under home->lock. */
struct profil_histogram *profil_histogram_find(struct profil_session *s, unsigned long start,
					       unsigned long bytes)
{
	unsigned long last = start + bytes - 1;
	struct interval_tree_node *node;

	for (node = interval_tree_iter_first(&s->histograms, start, last); node;
	     node = interval_tree_iter_next(node, start, last))
		if (node->start <= start && node->last >= last)
			return container_of(node, struct profil_histogram, node);
	return NULL;
}

/* The kernel's address of the counter at @addr, or NULL if there is none. */
void *profil_histogram_counter(struct profil_session *s, unsigned long addr, unsigned long width)
{
	struct profil_histogram *h = profil_histogram_find(s, addr, width);
	void *page;

	if (!h)
		return NULL;
	page = h->pages[(addr - h->start) >> PAGE_SHIFT];
	return page ? page + offset_in_page(addr) : NULL;
}

static struct profil_histogram *histogram_create(struct profil_session *s, unsigned long start,
						 unsigned long end)
{
	struct profil_histogram *h = kzalloc(sizeof(*h), GFP_KERNEL_ACCOUNT);

	if (!h)
		return NULL;
	h->session = s;
	h->start = start;
	h->nr_pages = (end - start) >> PAGE_SHIFT;
	h->node.start = start;
	h->node.last = end - 1;
	INIT_LIST_HEAD(&h->stale);
	INIT_LIST_HEAD(&h->created);
	refcount_set(&h->refs, 1);
	h->pages = kvcalloc(h->nr_pages, sizeof(*h->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!h->pages) {
		kfree(h);
		return NULL;
	}
	return h;
}

/* Called when no tick can find it: by tables that go, and by what drops histograms. */
void profil_histogram_put(struct profil_histogram *h)
{
	if (!refcount_dec_and_test(&h->refs))
		return;
	kvfree(h->pages);
	kfree(h);
}

/**
 * profil_histograms_create - Lay out what the ranges of a table need
 * @s: The session. Under home->lock, or not yet known to others.
 * @table: Its ranges; those that have a histogram already are passed over.
 * @credit: So many pages need not be charged.
 * @created: Out: what was made, to be pinned.
 *
 * Pages that ranges share, or that touch, become one histogram, unless one is there that
 * has all of them. The pages are charged first, since what is laid out here takes memory
 * for each. Nothing is pinned yet.
 *
 * Return: 0; -ENOMEM, or as profil_session_charge(). profil_histograms_drop() undoes it but
 * for the charge, also after a failure.
 */
int profil_histograms_create(struct profil_session *s, const struct profil_table *table,
			     unsigned long credit, struct list_head *created)
{
	struct profil_histogram *h;
	unsigned long pages = 0;
	struct extent *extents;
	u32 i, n = 0, nr = 0;
	int err = -ENOMEM;

	extents = kvmalloc_array(table->nr_spans, sizeof(*extents), GFP_KERNEL_ACCOUNT);
	if (!extents)
		return -ENOMEM;

	for (i = 0; i < table->nr_spans; i++) {
		const struct profil_span *span = &table->spans[i];

		if (!span->bytes || span->histogram)
			continue;
		extents[n].start = span->buffer & PAGE_MASK;
		extents[n++].end = PAGE_ALIGN(span->buffer + span->bytes);
	}
	if (!n)
		goto none;
	sort(extents, n, sizeof(*extents), extent_cmp, NULL);
	for (i = 1; i < n; i++) {
		if (extents[i].start > extents[nr].end)
			extents[++nr] = extents[i];
		else
			extents[nr].end = max(extents[nr].end, extents[i].end);
	}
	nr++;

	for (i = 0, n = nr, nr = 0; i < n; i++) {
		unsigned long bytes = extents[i].end - extents[i].start;

		if (profil_histogram_find(s, extents[i].start, bytes))
			continue;
		extents[nr++] = extents[i];
		pages += bytes >> PAGE_SHIFT;
	}
	err = profil_session_charge(s, pages - min(pages, credit));
	if (err)
		goto free_extents;

	err = -ENOMEM;
	for (i = 0; i < nr; i++) {
		h = histogram_create(s, extents[i].start, extents[i].end);
		if (!h)
			goto free_extents;
		list_add_tail(&h->created, created);
		interval_tree_insert(&h->node, &s->histograms);
	}
none:
	err = 0;
free_extents:
	kvfree(extents);
	return err;
}

/* All of a session. */
unsigned long profil_histograms_total(struct profil_session *s)
{
	struct interval_tree_node *node;
	unsigned long pages = 0;

	for (node = interval_tree_iter_first(&s->histograms, 0, ULONG_MAX); node;
	     node = interval_tree_iter_next(node, 0, ULONG_MAX))
		pages += container_of(node, struct profil_histogram, node)->nr_pages;
	return pages;
}

/* Copies all of a session's, whose pages are all pinned, to @image, one after the other. */
void profil_histograms_copy(struct profil_session *s, void *image)
{
	unsigned long place = 0, i;
	struct interval_tree_node *node;
	struct profil_histogram *h;

	lockdep_assert_held(&s->home->lock);

	for (node = interval_tree_iter_first(&s->histograms, 0, ULONG_MAX); node;
	     node = interval_tree_iter_next(node, 0, ULONG_MAX)) {
		h = container_of(node, struct profil_histogram, node);
		h->place = place;
		for (i = 0; i < h->nr_pages; i++, place += PAGE_SIZE) {
			memcpy(image + place, h->pages[i], PAGE_SIZE);
			cond_resched();
		}
	}
}

/* Where in the last image the counters of @span are. */
unsigned long profil_span_place(const struct profil_span *span)
{
	return span->histogram ? span->histogram->place + span->buffer - span->histogram->start : 0;
}

/**
 * profil_histograms_check - Are all buffers there?
 * @table: Ranges with buffers in the caller's address space; those that have a histogram
 *	already are passed over.
 *
 * A quick look before anything is allocated or charged; the pin looks again.
 *
 * Return: 0, -EFAULT, or -EINTR when killed.
 */
int profil_histograms_check(const struct profil_table *table)
{
	struct mm_struct *mm = current->mm;
	int err = 0;
	u32 i;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for (i = 0; i < table->nr_spans && !err; i++) {
		const struct profil_span *span = &table->spans[i];

		if (span->bytes && !span->histogram &&
		    !mapped(mm, span->buffer & PAGE_MASK, PAGE_ALIGN(span->buffer + span->bytes)))
			err = -EFAULT;
	}
	mmap_read_unlock(mm);
	return err;
}

/* ---- pinning and following ---- */

/**
 * profil_fault_in - Have pages of the caller's present and writable
 * @start: Any address in the first of them.
 * @bytes: How many from there on, in one mapping or several.
 *
 * As fault_in_safe_writeable(), which does not tell whether there is no such memory or only
 * none at this moment.
 *
 * Return: 0; -ENOMEM, -EINTR when killed; other: there is nothing to write to.
 */
int profil_fault_in(unsigned long start, unsigned long bytes)
{
	unsigned long end = PAGE_ALIGN(start + bytes);
	struct mm_struct *mm = current->mm;
	bool unlocked = false;
	unsigned int flags;
	int err = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	flags = memalloc_pin_save();
	for (start &= PAGE_MASK; start < end && !err; start += PAGE_SIZE)
		err = fixup_user_fault(mm, start, FAULT_FLAG_WRITE, &unlocked);
	memalloc_pin_restore(flags);
	mmap_read_unlock(mm);
	return err;
}

/*
 * Pins pages as far as they are there and writable. GUP is not to fault: it does so again and
 * again, with mmap_lock held, until it has the page, and some faults succeed without a change for
 * ever. So do those of a userfaultfd whose close waits for mmap_lock (before 6.15), and those in
 * hugetlb of what a fork left protected (6.1).
 */
static long pin_present(struct vm_area_struct *vma, unsigned long start, unsigned long n,
			struct page **pages)
{
	long pinned = is_vm_hugetlb_page(vma) ?
		      profil_pin_hugetlb(vma->vm_mm, start, n, PIN_FLAGS, pages) :
		      profil_pin_remote(vma->vm_mm, start, n, PIN_FLAGS, pages);

	return !pinned || pinned == -EFAULT || pinned == -EBUSY ? -EAGAIN : pinned;
}

/*
 * One fault for each of @n pages, which does not wait. That does not keep filemap_fault() from
 * reading a page that is not cached, for which a FUSE server can let us wait for ever.
 */
static int fault_once(struct vm_area_struct *vma, unsigned long start, unsigned long n)
{
	unsigned int flags = memalloc_pin_save();
	vm_fault_t ret = 0;
	unsigned long i;

	for (i = 0; i < n; i++) {
		ret = handle_mm_fault(vma, start + (i << PAGE_SHIFT),
				      FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE |
				      FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_RETRY_NOWAIT, NULL);
		if (ret & (VM_FAULT_ERROR | VM_FAULT_RETRY))
			break;
		cond_resched();
	}
	memalloc_pin_restore(flags);
	/* Of what comes later the next batch is told. */
	if (i || !(ret & VM_FAULT_ERROR))
		return 0;
	return ret & VM_FAULT_OOM ? -ENOMEM : -EFAULT;
}

/*
 * Looks up a batch of stale pages from page @first on. Returns how many, or an error
 * as profil_histograms_refresh(). @waited: a grace period has passed since the
 * session was parked.
 */
static long histogram_refresh_batch(struct profil_histogram *h, unsigned long first,
				    unsigned long end, bool *waited)
{
	struct mm_struct *mm = h->notifier.mm;
	unsigned long start = page_address_of(h, first);
	unsigned long n = min_t(unsigned long, end - first, PIN_BATCH), i;
	bool own = current->mm == mm;
	struct page *pages[PIN_BATCH];
	struct vm_area_struct *vma;
	long pinned = -EFAULT;

	/*
	 * Whoever holds mmap_lock may wait for user space (userfaultfd, FUSE). The process
	 * itself may wait, too, without a lock and so that it can be killed; a worker must not.
	 */
	if (own) {
		int err = profil_fault_in(start, n << PAGE_SHIFT);

		if (err)
			return err;
		if (mmap_read_lock_killable(mm))
			return -EINTR;
	} else if (!mmap_read_trylock(mm)) {
		return -EAGAIN;
	}
	vma = vma_lookup(mm, start);
	if (vma && vma_is_pinnable(vma)) {
		n = min(n, (vma->vm_end - start) >> PAGE_SHIFT);
		pinned = pin_present(vma, start, n, pages);
		if (pinned == -EAGAIN && !own && !vma_waits_for_user(vma))
			pinned = fault_once(vma, start, n) ?: pin_present(vma, start, n, pages);
	}
	mmap_read_unlock(mm);
	if (pinned < 0)
		return pinned;

	for (i = 0; i < pinned; i++) {
		void *now = page_address(pages[i]), *then = h->pages[first + i];

		if (now == then) {
			unpin_user_page(pages[i]);
			continue;
		}
		if (then && !*waited) {
			synchronize_rcu();
			*waited = true;
		}
		h->pages[first + i] = now;
		if (then)
			unpin(then);
	}
	return pinned;
}

/*
 * Until the event is over. An event like fork's, which lasts as long as memory is short, has
 * mmap_lock for writing; others are not to wait for that.
 */
static int histogram_await(struct profil_histogram *h)
{
	struct mm_struct *mm = h->notifier.mm;
	bool own = current->mm == mm;

	if (!own && !mmap_read_trylock(mm))
		return -EAGAIN;
	mmu_interval_read_begin(&h->notifier);
	if (!own)
		mmap_read_unlock(mm);
	return 0;
}

static int histogram_refresh(struct profil_histogram *h, bool *waited)
{
	struct profil_session *s = h->session;
	unsigned long first, end;
	long done = 0;

	spin_lock(&s->stale_lock);
	first = h->stale_first;
	end = h->stale_end;
	list_del_init(&h->stale);
	spin_unlock(&s->stale_lock);

	done = histogram_await(h);
	while (done >= 0 && first < end) {
		done = histogram_refresh_batch(h, first, end, waited);
		if (done > 0)
			first += done;
		cond_resched();
	}
	if (done >= 0)
		return 0;

	spin_lock(&s->stale_lock);
	mark_stale(h, first, end);
	spin_unlock(&s->stale_lock);
	return done;
}

/* From now on the kernel tells what becomes of its pages: now nothing is known of any. */
static int histogram_watch(struct profil_histogram *h)
{
	int err;

	if (!h->watched) {
		err = mmu_interval_notifier_insert(&h->notifier, h->session->home->mm, h->start,
						   h->nr_pages << PAGE_SHIFT, &histogram_ops);
		if (err)
			return err;
		h->watched = true;
	}
	spin_lock(&h->session->stale_lock);
	mark_stale(h, 0, h->nr_pages);
	spin_unlock(&h->session->stale_lock);
	return 0;
}

static int pin_error(int err)
{
	switch (err) {
	case -ENOMEM:
	case -EINTR:
		return err;
	default:
		return -EFAULT;
	}
}

/**
 * profil_histograms_pin - Watch and pin new histograms
 * @s: The session, to which they are charged. Under home->lock.
 * @created: As from profil_histograms_create(). Emptied, if it succeeds.
 *
 * In the process whose memory it is, the pages are pinned when this returns. A worker
 * only marks them as stale, and goes on with profil_histograms_refresh(). The process
 * must be watched already for other reasons, so that no mmap_lock is taken here.
 *
 * Return: 0; -EFAULT, -ENOMEM, -EINTR.
 */
int profil_histograms_pin(struct profil_session *s, struct list_head *created)
{
	bool own = current->mm == s->home->mm, waited = true;	/* no tick reaches them */
	struct profil_histogram *h, *next;
	unsigned int tries = PIN_TRIES;
	int err;

	list_for_each_entry(h, created, created) {
		err = histogram_watch(h);
		if (own && !err) {
			do {
				err = histogram_refresh(h, &waited);
				cond_resched();
			} while (err == -EAGAIN && --tries);
		}
		if (err)
			return pin_error(err);
	}
	list_for_each_entry_safe(h, next, created, created)
		list_del_init(&h->created);
	return 0;
}

/**
 * profil_histograms_refresh - Bring pages[] in step with the user's page table
 * @s: A parked session that is on; its mm has users. Under home->lock.
 *
 * Never waits for user space, unless it is the process itself. When all is in step the
 * session is parked no longer, and the kept ticks are counted.
 *
 * Return: 0; -EAGAIN, -ENOMEM, -EINTR: try later; other: a buffer is gone, the session
 * must end.
 */
int profil_histograms_refresh(struct profil_session *s)
{
	struct profil_histogram *h;
	bool waited = false;
	LIST_HEAD(stale);
	int err = 0;

	lockdep_assert_held(&s->home->lock);

	/* Each once; what becomes stale meanwhile is for the next time. */
	spin_lock(&s->stale_lock);
	list_splice_init(&s->stale, &stale);
	spin_unlock(&s->stale_lock);
	while (!err) {
		spin_lock(&s->stale_lock);
		h = list_first_entry_or_null(&stale, struct profil_histogram, stale);
		spin_unlock(&s->stale_lock);
		if (!h)
			break;
		err = histogram_refresh(h, &waited);
	}

	spin_lock(&s->stale_lock);
	list_splice(&stale, &s->stale);
	if (!err && !list_empty(&s->stale))
		err = -EAGAIN;
	if (!err)
		clear_bit_unlock(PROFIL_SLOW_PARKED, &s->slow);
	spin_unlock(&s->stale_lock);
	if (!err)
		profil_replay(s, false);
	return err;
}

/* ---- returning ---- */

/* No tick can reach it any more. */
static void histogram_drop(struct profil_histogram *h)
{
	struct profil_session *s = h->session;
	unsigned long i;

	if (h->watched)
		mmu_interval_notifier_remove(&h->notifier);
	spin_lock(&s->stale_lock);
	list_del_init(&h->stale);
	spin_unlock(&s->stale_lock);
	for (i = 0; i < h->nr_pages; i++) {
		if (h->pages[i])
			unpin(h->pages[i]);
		h->pages[i] = NULL;
		cond_resched();
	}
	interval_tree_remove(&h->node, &s->histograms);
	list_del_init(&h->created);
	profil_histogram_put(h);
}

/* Those in a list of profil_histograms_create(). */
void profil_histograms_drop(struct list_head *created)
{
	struct profil_histogram *h, *next;

	list_for_each_entry_safe(h, next, created, created)
		histogram_drop(h);
}

/* Those that no table has a range for. Returns how many pages, to be uncharged. */
unsigned long profil_histograms_drop_unused(struct profil_session *s)
{
	struct interval_tree_node *node, *next;
	unsigned long pages = 0;

	lockdep_assert_held(&s->home->lock);

	for (node = interval_tree_iter_first(&s->histograms, 0, ULONG_MAX); node; node = next) {
		struct profil_histogram *h = container_of(node, struct profil_histogram, node);

		next = interval_tree_iter_next(node, 0, ULONG_MAX);
		if (refcount_read(&h->refs) == 1) {
			pages += h->nr_pages;
			histogram_drop(h);
		}
	}
	return pages;
}

/* All of a session that no tick can reach any more. */
void profil_histograms_drop_all(struct profil_session *s)
{
	struct interval_tree_node *node;

	while ((node = interval_tree_iter_first(&s->histograms, 0, ULONG_MAX)))
		histogram_drop(container_of(node, struct profil_histogram, node));
}
