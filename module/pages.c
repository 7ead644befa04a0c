// SPDX-License-Identifier: GPL-2.0
/*
 * Charges and pins the pages that contain the counters, and later unpins and uncharges them.
 *
 * A session counts in the same pages, pinned and charged, from the call that adds its ranges until
 * the ranges are removed or the session ends, whatever becomes of the mapping. A call that adds
 * ranges makes one histogram of adjacent pages, so that no page is pinned or charged twice.
 *
 * Context: system calls, task work of the child of a fork; workers unpin and uncharge (may sleep).
 * Pinning takes mmap_lock, whose holder may wait for user space, so no space's lock is held then.
 * profil_histograms_are_mapped() runs in the probe of fork (atomic).
 */
#include <linux/backing-dev.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/sort.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "internal.h"

#define PIN_FLAGS	(FOLL_WRITE | FOLL_LONGTERM | FOLL_NOFAULT)
#define PIN_BATCH	64UL
#define PIN_TRIES	1000	/* attempts, since threads may keep changing the mapping */

/* Charges @pages within RLIMIT_MEMLOCK, or -EPERM. @credit: pages that will be uncharged soon. */
int profil_charge(unsigned long pages, unsigned long credit, bool may_exceed)
{
	s64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	atomic64_t *pinned = &current->mm->pinned_vm;
	s64 before = atomic64_read(pinned);

	do {
		if (!may_exceed && before + pages > limit + min_t(s64, credit, before))
			return -EPERM;
	} while (!atomic64_try_cmpxchg(pinned, &before, before + pages));
	return 0;
}

/* @mm: NULL if it was dropped. */
void profil_uncharge(struct mm_struct *mm, unsigned long pages)
{
	if (mm)
		atomic64_sub(pages, &mm->pinned_vm);
}

struct extent {
	unsigned long start, end;
};

static int extent_cmp(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Finds the histogram in @root that contains [@start, @start + @bytes), or returns NULL. */
struct profil_histogram *profil_histogram_find(struct rb_root_cached *root, unsigned long start,
					       unsigned long bytes)
{
	unsigned long last = start + bytes - 1;
	struct interval_tree_node *node;

	for (node = interval_tree_iter_first(root, start, last); node;
	     node = interval_tree_iter_next(node, start, last))
		if (node->start <= start && node->last >= last)
			return container_of(node, struct profil_histogram, node);
	return NULL;
}

/* Returns the kernel address of the pinned counter at @addr, or NULL. Called under home->lock. */
void *profil_histogram_counter(struct profil_session *s, unsigned long addr, unsigned long width)
{
	struct profil_histogram *h = profil_histogram_find(&s->histograms, addr, width);

	return h ? h->pages[(addr - h->node.start) >> PAGE_SHIFT] + offset_in_page(addr) : NULL;
}

/* Drops the reference that a table or session has to @h. No tick can find @h through it now. */
void profil_histogram_put(struct profil_histogram *h)
{
	if (refcount_dec_and_test(&h->refs))
		kvfree(h);
}

static struct profil_histogram *histogram_create(const struct extent *extent)
{
	unsigned long nr = (extent->end - extent->start) >> PAGE_SHIFT;
	struct profil_histogram *h;

	h = kvzalloc(struct_size(h, pages, nr), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!h)
		return NULL;
	h->node.start = extent->start;
	h->node.last = extent->end - 1;
	h->nr_pages = nr;
	refcount_set(&h->refs, 1);
	return h;
}

/* Returns the extents, sorted and merged, of buffers without a histogram, for kvfree(); or NULL. */
static struct extent *extents_of_table(const struct profil_table *table, u32 *nr,
				       unsigned long *pages)
{
	struct extent *extents;
	u32 i, n = 0;

	extents = kvmalloc_array(table->nr_ranges, sizeof(*extents), GFP_KERNEL_ACCOUNT);
	if (!extents)
		return NULL;
	for (i = 0; i < table->nr_ranges; i++) {
		const struct profil_span *span = &table->spans[i];

		if (!span->bytes || span->histogram)
			continue;
		extents[n].start = span->range.buffer & PAGE_MASK;
		extents[n++].end = PAGE_ALIGN(span->range.buffer + span->bytes);
	}
	sort(extents, n, sizeof(*extents), extent_cmp, NULL);
	for (i = 0, *nr = 0; i < n; i++) {
		if (*nr && extents[i].start <= extents[*nr - 1].end)
			extents[*nr - 1].end = max(extents[*nr - 1].end, extents[i].end);
		else
			extents[(*nr)++] = extents[i];
	}
	for (i = 0, *pages = 0; i < *nr; i++)
		*pages += (extents[i].end - extents[i].start) >> PAGE_SHIFT;
	return extents;
}

/*
 * Returns true if @vma is writable and may be pinned. These may not: shared mappings with
 * writeback, since the file system cannot see the writes of the tick; inherited memory that fork
 * wipes; and inherited hugetlb, where a write can fault for ever in 6.1.
 */
static bool vma_is_pinnable(struct vm_area_struct *vma, bool inherited)
{
	if (!(vma->vm_flags & VM_WRITE) || vma->vm_flags & (VM_IO | VM_PFNMAP | VM_SHADOW_STACK))
		return false;
	if (inherited && (vma->vm_flags & VM_WIPEONFORK || is_vm_hugetlb_page(vma)))
		return false;
	if (vma->vm_file && file_inode(vma->vm_file)->i_sb->s_magic == SECRETMEM_MAGIC)
		return false;
	if (!(vma->vm_flags & VM_SHARED))
		return true;
	if (vma->vm_ops && (vma->vm_ops->page_mkwrite || vma->vm_ops->pfn_mkwrite))
		return false;
	return !vma->vm_file || !mapping_can_writeback(vma->vm_file->f_mapping);
}

/* Returns true if a fault in @vma may wait for another process, or even for the caller. */
static bool vma_waits_for_user(struct vm_area_struct *vma)
{
	return userfaultfd_armed(vma) ||
	       (vma->vm_file && file_inode(vma->vm_file)->i_sb->s_magic == FUSE_SUPER_MAGIC);
}

/* Makes [@start, @end) of the caller present and writable, in one mapping or several. */
static int histogram_fault_in(struct mm_struct *mm, unsigned long start, unsigned long end)
{
	bool unlocked = false;
	unsigned int flags;
	int err = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	flags = memalloc_pin_save();
	for (; start < end && !err; start += PAGE_SIZE)
		err = fixup_user_fault(mm, start, FAULT_FLAG_WRITE, &unlocked);
	memalloc_pin_restore(flags);
	mmap_read_unlock(mm);
	return !err || err == -ENOMEM || err == -EINTR ? err : -EFAULT;
}

/*
 * Pins those pages of the caller that are present and writable. GUP must not fault here: it would
 * repeat a fault, under mmap_lock, perhaps for ever, as for a userfaultfd whose close waits for
 * mmap_lock (before 6.15). Return: the number of pages; -EAGAIN to fault them in; or another error.
 */
static long histogram_pin_present(struct mm_struct *mm, unsigned long start, unsigned long n,
				  bool inherited, struct page **pages)
{
	struct vm_area_struct *vma;
	long pinned = -EFAULT;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, start);
	if (vma && vma_is_pinnable(vma, inherited)) {
		n = min(n, (vma->vm_end - start) >> PAGE_SHIFT);
		pinned = profil_pin(vma, start, n, PIN_FLAGS, pages);
		if (!pinned || pinned == -EFAULT || pinned == -EBUSY)
			pinned = inherited && vma_waits_for_user(vma) ? -EFAULT : -EAGAIN;
	}
	mmap_read_unlock(mm);
	return pinned;
}

/*
 * Pins pages of the caller, and faults them in if need be. Inherited pages are usually present,
 * since fork copies pinned pages. A missing one is an error if its fault may wait for user space.
 */
static long histogram_pin_pages(unsigned long start, unsigned long n, bool inherited,
				struct page **pages)
{
	unsigned int tries = PIN_TRIES;
	long pinned = -EAGAIN;

	if (inherited)
		pinned = histogram_pin_present(current->mm, start, n, true, pages);
	while (pinned == -EAGAIN && tries--) {
		n = inherited ? 1 : n;
		pinned = histogram_fault_in(current->mm, start, start + (n << PAGE_SHIFT));
		if (!pinned)
			pinned = histogram_pin_present(current->mm, start, n, inherited, pages);
		if (pinned < 0 && fatal_signal_pending(current))
			return -EINTR;
	}
	return pinned == -EAGAIN ? -EFAULT : pinned;
}

static int histogram_pin(struct profil_histogram *h, bool inherited)
{
	unsigned long done = 0, start, n;
	struct page *pages[PIN_BATCH];
	long pinned, i;

	while (done < h->nr_pages) {
		start = h->node.start + (done << PAGE_SHIFT);
		n = min(h->nr_pages - done, PIN_BATCH);
		pinned = histogram_pin_pages(start, n, inherited, pages);
		if (pinned < 0)
			return pinned;
		for (i = 0; i < pinned; i++)
			h->pages[done++] = page_address(pages[i]);
		cond_resched();
	}
	return 0;
}

/* Returns true if the pinned pages are still mapped at their addresses. Does not sleep. */
static bool histogram_is_mapped(const struct profil_histogram *h, struct page **other)
{
	struct page *page;
	unsigned long i;

	for (i = 0; i < h->nr_pages; i++) {
		if (get_user_pages_fast_only(h->node.start + (i << PAGE_SHIFT), 1, 0, &page) != 1)
			return false;
		if (page_address(page) != h->pages[i]) {
			*other = page;	/* on PREEMPT_RT, the last put_page() may sleep */
			return false;
		}
		put_page(page);
	}
	return true;
}

/*
 * Returns true if the child of the fork in progress gets copies of the pages that are pinned for
 * the parent's @table. Otherwise it must not count. @other: the page there instead, referenced.
 */
bool profil_histograms_are_mapped(const struct profil_table *table, struct page **other)
{
	static atomic64_t forks = ATOMIC64_INIT(0);
	u64 fork = atomic64_inc_return(&forks);
	struct profil_histogram *h;
	u32 i;

	for (i = 0; i < table->nr_ranges; i++) {
		h = table->spans[i].histogram;
		/* Checks each histogram once, or again if another fork runs at the same time. */
		if (!h || data_race(h->checked_by_fork) == fork)
			continue;
		WRITE_ONCE(h->checked_by_fork, fork);
		if (!histogram_is_mapped(h, other))
			return false;
	}
	return true;
}

static void histogram_unpin(struct profil_histogram *h)
{
	unsigned long i;

	for (i = 0; i < h->nr_pages && h->pages[i]; i++) {
		struct page *page = virt_to_page(h->pages[i]);

		/* The writes by the kernel have not set the dirty bit of the user's mapping. */
		unpin_user_pages_dirty_lock(&page, 1, true);
		cond_resched();
	}
}

/*
 * Charges and pins histograms for the ranges of @table that have none, in the tree @new; or none
 * after an error. @inherited: from before a fork. Return: 0; -EFAULT; -ENOMEM; -EPERM; or -EINTR.
 */
int profil_histograms_pin(struct rb_root_cached *new, const struct profil_table *table,
			  bool inherited, bool may_exceed, unsigned long credit)
{
	struct profil_histogram *h;
	struct extent *extents;
	unsigned long pages;
	u32 nr, i;
	int err;

	*new = RB_ROOT_CACHED;
	extents = extents_of_table(table, &nr, &pages);
	if (!extents)
		return -ENOMEM;
	/* Charges the pages before histogram_create() allocates memory for each. */
	err = profil_charge(pages, credit, may_exceed);
	if (err)
		goto free_extents;
	for (i = 0; i < nr && !err; i++) {
		h = histogram_create(&extents[i]);
		if (h)
			interval_tree_insert(&h->node, new);
		err = h ? histogram_pin(h, inherited) : -ENOMEM;
	}
	if (err) {
		/* Uncharges the histograms that were created. */
		pages -= profil_histograms_free(current->mm, new, false);
		profil_uncharge(current->mm, pages);
	}
free_extents:
	kvfree(extents);
	return err;
}

/* Moves all histograms of @new, and their charge, to @s. Called under home->lock. */
void profil_histograms_adopt(struct profil_session *s, struct rb_root_cached *new)
{
	struct profil_histogram *h, *next;

	rbtree_postorder_for_each_entry_safe(h, next, &new->rb_root, node.rb) {
		interval_tree_insert(&h->node, &s->histograms);
		s->charged += h->nr_pages;
	}
	*new = RB_ROOT_CACHED;
}

/*
 * Unpins the histograms of @root that no tick can reach: all, or with @unused those that no table
 * uses. Uncharges their pages from @mm. Return: the number of these pages.
 */
unsigned long profil_histograms_free(struct mm_struct *mm, struct rb_root_cached *root, bool unused)
{
	struct rb_node *node = rb_first_cached(root);
	struct profil_histogram *h;
	unsigned long pages = 0;

	while (node) {
		h = rb_entry(node, struct profil_histogram, node.rb);
		node = rb_next(node);
		if (unused && refcount_read(&h->refs) > 1)
			continue;
		pages += h->nr_pages;
		histogram_unpin(h);
		interval_tree_remove(&h->node, root);
		profil_histogram_put(h);
	}
	profil_uncharge(mm, pages);
	return pages;
}
