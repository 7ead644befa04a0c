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
 * pages[] is written only while the session is not published, or is parked and a
 * grace period has passed since.
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "compat.h"
#include "profil.h"

#define PIN_FLAGS	(FOLL_WRITE | FOLL_LONGTERM)
#define PIN_BATCH	64

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

/*
 * Is all of [@start, @end) mapped, writable, and of a kind that may be pinned?
 * Not shared mappings whose file is written back: the writes of the tick cannot be
 * seen by the file system. @from_file: to fault a page in may read a file. Under mmap_lock.
 */
static bool mapped(struct mm_struct *mm, unsigned long start, unsigned long end, bool *from_file)
{
	struct vm_area_struct *vma;
	bool written_back;

	*from_file = false;
	for (; start < end; start = vma->vm_end) {
		vma = find_vma(mm, start);
		if (!vma || vma->vm_start > start)
			return false;
		if (!(vma->vm_flags & VM_WRITE) || vma->vm_flags & (VM_IO | VM_PFNMAP))
			return false;
		written_back = vma->vm_file && mapping_can_writeback(vma->vm_file->f_mapping);
		if (!(vma->vm_flags & VM_SHARED)) {
			*from_file |= written_back;
			continue;
		}
		if (written_back ||
		    (vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite)))
			return false;
	}
	return true;
}

static void mark_stale(struct profil_histogram *h, unsigned long first, unsigned long end)
{
	lockdep_assert_held(&h->session->stale_lock);

	if (h->stale_first == h->stale_end) {
		h->stale_first = first;
		h->stale_end = end;
		h->session->nr_stale++;
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

static struct profil_histogram *histogram_of(const struct profil_session *s, unsigned long addr)
{
	u32 first = 0, n = s->nr_histograms;

	while (n > 1) {
		u32 half = n / 2;

		if (s->histograms[first + half].start <= addr)
			first += half;
		n -= half;
	}
	return &s->histograms[first];
}

/**
 * profil_histograms_create - Lay out the histograms of a session's ranges
 * @s: The session, with spans for @ranges.
 * @ranges: What the user asked for, checked, in the order of the spans.
 *
 * Nothing is pinned yet, and the histograms' addresses have not been checked.
 *
 * Return: 0, or -ENOMEM. Undone by profil_histograms_free(), also after a failure.
 */
int profil_histograms_create(struct profil_session *s, const struct profil_range *ranges)
{
	struct extent *extents;
	u32 i, n = 0, nr = 0;
	int err = -ENOMEM;

	extents = kvmalloc_array(s->nr_spans, sizeof(*extents), GFP_KERNEL_ACCOUNT);
	if (!extents)
		return -ENOMEM;

	for (i = 0; i < s->nr_spans; i++) {
		if (!ranges[i].nr_counters)
			continue;
		extents[n].start = ranges[i].buffer & PAGE_MASK;
		extents[n++].end = PAGE_ALIGN(ranges[i].buffer +
					      ranges[i].nr_counters * ranges[i].width);
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

	s->histograms = kvcalloc(nr, sizeof(*s->histograms), GFP_KERNEL_ACCOUNT);
	if (!s->histograms)
		goto free_extents;
	s->nr_histograms = nr;
	for (i = 0; i < nr; i++) {
		struct profil_histogram *h = &s->histograms[i];

		h->session = s;
		h->start = extents[i].start;
		h->nr_pages = (extents[i].end - extents[i].start) >> PAGE_SHIFT;
	}
none:
	err = 0;
free_extents:
	kvfree(extents);
	return err;
}

void profil_histograms_free(struct profil_session *s)
{
	u32 i;

	for (i = 0; i < s->nr_histograms; i++)
		kvfree(s->histograms[i].pages);
	kvfree(s->histograms);
	s->histograms = NULL;
	s->nr_histograms = 0;
}

unsigned long profil_histograms_pages(const struct profil_session *s)
{
	unsigned long pages = 0;
	u32 i;

	for (i = 0; i < s->nr_histograms; i++)
		pages += s->histograms[i].nr_pages;
	return pages;
}

/**
 * profil_histograms_check - Are all buffers there?
 * @s: The session, of the caller's address space.
 *
 * A quick look before anything is allocated or charged; the pin looks again.
 *
 * Return: 0, -EFAULT, or -EINTR when killed.
 */
int profil_histograms_check(struct profil_session *s)
{
	struct mm_struct *mm = current->mm;
	bool from_file;
	int err = 0;
	u32 i;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for (i = 0; i < s->nr_histograms && !err; i++)
		if (!mapped(mm, s->histograms[i].start,
			    page_address_of(&s->histograms[i], s->histograms[i].nr_pages),
			    &from_file))
			err = -EFAULT;
	mmap_read_unlock(mm);
	return err;
}

static int pin_error(long err)
{
	switch (err) {
	case -ENOMEM:
	case -EINTR:
		return err;
	default:
		return -EFAULT;
	}
}

/* Pins the next pages; more than 0 of them, or an error. */
static long histogram_pin_batch(struct profil_histogram *h)
{
	struct mm_struct *mm = current->mm;
	unsigned long start = page_address_of(h, h->nr_pinned);
	unsigned long n = min_t(unsigned long, h->nr_pages - h->nr_pinned, PIN_BATCH), i;
	struct page *pages[PIN_BATCH];
	bool from_file;
	long pinned;

	/*
	 * Resolves what may have to wait for user space (userfaultfd, FUSE) while no
	 * lock is held and the caller can be killed.
	 */
	if (fault_in_safe_writeable((const char __user *)start, n << PAGE_SHIFT))
		return fatal_signal_pending(current) ? -EINTR : -EFAULT;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	if (mapped(mm, start, start + (n << PAGE_SHIFT), &from_file))
		pinned = profil_pin_remote(mm, start, n, PIN_FLAGS, pages);
	else
		pinned = -EFAULT;
	mmap_read_unlock(mm);
	if (pinned <= 0)
		return pin_error(pinned);

	for (i = 0; i < pinned; i++)
		h->pages[h->nr_pinned++] = page_address(pages[i]);
	return pinned;
}

static int histogram_pin(struct profil_histogram *h)
{
	struct mm_struct *mm = current->mm;
	long pinned;
	int err;

	h->pages = kvmalloc_array(h->nr_pages, sizeof(*h->pages),
				  GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!h->pages)
		return -ENOMEM;

	err = mmu_interval_notifier_insert(&h->notifier, mm, h->start, h->nr_pages << PAGE_SHIFT,
					   &histogram_ops);
	if (err)
		return pin_error(err);
	h->watched = true;

	/*
	 * What is being invalidated now is not told to the notifier: let it pass. What
	 * comes later marks pages as stale, and they are looked up again.
	 */
	mmu_interval_read_begin(&h->notifier);

	while (h->nr_pinned < h->nr_pages) {
		pinned = histogram_pin_batch(h);
		if (pinned < 0)
			return pinned;
		cond_resched();
	}
	return 0;
}

/**
 * profil_histograms_pin - Pin all histograms of a session in the caller's address space
 * @s: The session, charged and not yet published.
 *
 * Return: 0; -EFAULT, -ENOMEM, -EINTR. profil_histograms_unpin() undoes it, also after
 * a failure half way.
 */
int profil_histograms_pin(struct profil_session *s)
{
	u32 i;
	int err;

	for (i = 0; i < s->nr_histograms; i++) {
		err = histogram_pin(&s->histograms[i]);
		if (err)
			return err;
	}
	for (i = 0; i < s->nr_spans; i++) {
		struct profil_span *span = &s->spans[i];
		struct profil_histogram *h;

		if (!span->bins.span)
			continue;
		h = histogram_of(s, span->buffer);
		span->pages = &h->pages[(span->buffer - h->start) >> PAGE_SHIFT];
	}
	return 0;
}

/* ---- following ---- */

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
	unsigned int flags = PIN_FLAGS;
	struct page *pages[PIN_BATCH];
	bool from_file;
	long pinned;

	/* The process itself may wait for its pages, and can be killed. */
	if (current->mm == mm)
		fault_in_safe_writeable((const char __user *)start, n << PAGE_SHIFT);

	/* Whoever holds mmap_lock may wait for user space; a worker must not. */
	if (!mmap_read_trylock(mm))
		return -EAGAIN;
	if (mapped(mm, start, start + (n << PAGE_SHIFT), &from_file)) {
		/*
		 * NOWAIT does not keep filemap_fault() from reading a page that is not
		 * cached, for which a FUSE server can let us wait for ever: there, only
		 * take what is mapped already, and come again for the rest. FORCE does
		 * nothing to a writable mapping but to accept a NUMA hint's PROT_NONE.
		 */
		flags |= from_file ? FOLL_NOFAULT | FOLL_FORCE : FOLL_NOWAIT;
		pinned = profil_pin_remote(mm, start, n, flags, pages);
		if (from_file && pinned == -EFAULT)
			pinned = -EAGAIN;
	} else {
		pinned = -EFAULT;
	}
	mmap_read_unlock(mm);
	if (!pinned || pinned == -EBUSY || pinned == -EINTR)
		return -EAGAIN;
	if (pinned < 0)
		return pinned;

	for (i = 0; i < pinned; i++) {
		void *now = page_address(pages[i]), *then = h->pages[first + i];

		if (now == then) {
			unpin_user_page(pages[i]);
			continue;
		}
		if (!*waited)
			synchronize_rcu();
		*waited = true;
		h->pages[first + i] = now;
		unpin(then);
	}
	return pinned;
}

static int histogram_refresh(struct profil_histogram *h, bool *waited)
{
	struct profil_session *s = h->session;
	unsigned long first, end;
	long done = 0;

	spin_lock(&s->stale_lock);
	first = h->stale_first;
	end = h->stale_end;
	if (first != end)
		s->nr_stale--;
	h->stale_first = 0;
	h->stale_end = 0;
	spin_unlock(&s->stale_lock);

	if (first != end)
		mmu_interval_read_begin(&h->notifier);	/* until the event is over */
	for (; first < end && done >= 0; first += done) {
		done = histogram_refresh_batch(h, first, end, waited);
		if (done < 0)
			break;
		cond_resched();
	}
	if (done >= 0)
		return 0;

	spin_lock(&s->stale_lock);
	mark_stale(h, first, end);
	spin_unlock(&s->stale_lock);
	return done;
}

/**
 * profil_histograms_refresh - Bring pages[] in step with the user's page table
 * @s: A parked session that is on; its mm has users. Under space->lock.
 *
 * Never waits for user space. When all is in step the session is parked no longer,
 * and the kept ticks are counted.
 *
 * Return: 0; -EAGAIN, -ENOMEM: try later; other: a buffer is gone, the session must end.
 */
int profil_histograms_refresh(struct profil_session *s)
{
	bool waited = false;
	int err = 0;
	u32 i;

	lockdep_assert_held(&s->space->lock);

	for (i = 0; i < s->nr_histograms && !err; i++)
		err = histogram_refresh(&s->histograms[i], &waited);
	if (err)
		return err;

	spin_lock(&s->stale_lock);
	if (s->nr_stale)
		err = -EAGAIN;
	else
		clear_bit_unlock(PROFIL_SLOW_PARKED, &s->slow);
	spin_unlock(&s->stale_lock);
	if (!err)
		profil_replay(s);
	return err;
}

/**
 * profil_histograms_unpin - Return all pages
 * @s: A session that no tick can reach any more, or a start that failed half way.
 */
void profil_histograms_unpin(struct profil_session *s)
{
	u32 i;

	for (i = 0; i < s->nr_histograms; i++) {
		struct profil_histogram *h = &s->histograms[i];

		if (h->watched)
			mmu_interval_notifier_remove(&h->notifier);
		h->watched = false;
		while (h->nr_pinned) {
			unpin(h->pages[--h->nr_pinned]);
			cond_resched();
		}
	}
}
