// SPDX-License-Identifier: GPL-2.0
/*
 * Tables: the ranges of a session in a space, compiled for the tick.
 *
 * A published table never changes: adding or removing ranges makes a new table. The bindings of a
 * parent and of the children of its forks may share one. A table references its session and its
 * histograms (their memory, not their pins), and is freed a grace period after the last put.
 *
 * Context: system calls and task work (may sleep); profil_table_put(): any.
 */
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/sort.h>

#include "internal.h"

/* These replace a missing session and table, so that the tick need not check for NULL. */
static struct profil_session no_session = {
	.slow = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
};

struct profil_table profil_empty_table = {
	.session = &no_session,
	.refs = REFCOUNT_INIT(1),
	.spans = { { .width = 2 } },
};

static int span_cmp(const void *a, const void *b)
{
	const struct profil_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool span_takes_pcs(const struct profil_range *range, const struct profil_table *table)
{
	return table->session->classic && table->nr_ranges == 1 &&
	       range->flags == PROFIL_RANGE_PCS &&
	       range->scale == 65536 && range->granule == 1 && range->step == 1 &&
	       (range->width == 8 || (range->width == 4 && range->end <= 1ULL << 32));
}

/* Copies the range at @urange, checks it, and compiles it into @span of @table. */
static int span_set(struct profil_span *span, const struct profil_range __user *urange,
		    const struct profil_table *table)
{
	struct profil_range *range = &span->range;
	u64 bytes = 0, skipped;
	bool pcs;

	if (copy_from_user(range, urange, sizeof(*range)))
		return -EFAULT;
	pcs = range->flags & PROFIL_RANGE_PCS;
	if (range->flags & ~(PROFIL_RANGE_ROUND_UP | PROFIL_RANGE_PCS) ||
	    (range->width != 2 && range->width != 4 && range->width != 8))
		return -EOPNOTSUPP;
	if (range->__reserved || range->start >= range->end || range->offset > range->start ||
	    !is_power_of_2(range->granule) || range->granule > PROFIL_MAX_GRANULE ||
	    !is_power_of_2(range->step) || range->step > PROFIL_MAX_STEP ||
	    range->nr_counters > PROFIL_MAX_COUNTERS || (pcs && !span_takes_pcs(range, table)))
		return -EINVAL;

	if (range->nr_counters) {
		if (range->buffer % range->width)
			return -EINVAL;
		bytes = range->nr_counters * range->width;
		if (!access_ok(u64_to_user_ptr(range->buffer), bytes))
			return -EFAULT;
	}

	profil_bins_set(&span->bins, ilog2(range->granule), ilog2(range->step), ilog2(range->width),
			range->flags & PROFIL_RANGE_ROUND_UP, pcs ? 0 : range->scale,
			range->nr_counters);
	range->buffer = untagged_addr(range->buffer);
	span->start = range->start;
	span->width = range->width;
	span->page_mask = PAGE_SIZE - range->width;
	span->bytes = bytes;

	skipped = range->start - range->offset;
	if (skipped >= span->bins.limit) {
		span->bins.limit = 0;		/* no pc here has a counter */
		return 0;
	}
	span->granule_offset = skipped & (range->granule - 1);
	profil_bins_move(&span->bins, skipped - span->granule_offset,
			 offset_in_page(range->buffer));
	/* The limit covers the counters and the end of the range, so the tick compares once. */
	span->bins.limit = min(span->bins.limit - span->granule_offset, range->end - range->start);
	span->fast_limit = span->granule_offset || pcs ? 0 : span->bins.limit;
	return 0;
}

static void table_free(struct work_struct *work)
{
	struct profil_table *table = container_of(to_rcu_work(work), struct profil_table, free);
	struct profil_session *s = table->session;
	u32 i;

	for (i = 0; i < table->nr_ranges; i++)
		if (table->spans[i].histogram)
			profil_histogram_put(table->spans[i].histogram);
	if (atomic_dec_and_test(&s->nr_dying))
		wake_up_var(&s->nr_dying);
	profil_session_put(s);
	kvfree(table);
}

/* Drops a reference to @table, which can be NULL. */
void profil_table_put(struct profil_table *table)
{
	if (!table || !refcount_dec_and_test(&table->refs))
		return;
	atomic_inc(&table->session->nr_dying);
	queue_rcu_work(profil_wq, &table->free);
}

/* Allocates a table for @nr ranges; if that is 0, returns the empty table. */
static struct profil_table *table_alloc(struct profil_session *s, u32 nr)
{
	struct profil_table *table;

	if (!nr)
		return profil_table_get(&profil_empty_table);
	table = kvzalloc(struct_size(table, spans, nr), GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	refcount_inc(&s->refs);
	table->session = s;
	table->nr_ranges = nr;
	refcount_set(&table->refs, 1);
	INIT_RCU_WORK(&table->free, table_free);
	return table;
}

static void table_copy_spans(struct profil_span *to, const struct profil_span *from, u32 nr)
{
	for (; nr--; to++, from++) {
		*to = *from;
		if (to->histogram)
			refcount_inc(&to->histogram->refs);
	}
}

/* Returns @table, sorted; or if ranges overlap, drops it and returns an error pointer. */
static struct profil_table *table_sort(struct profil_table *table)
{
	u32 i;

	sort(table->spans, table->nr_ranges, sizeof(*table->spans), span_cmp, NULL);
	for (i = 1; i < table->nr_ranges; i++) {
		if (table->spans[i - 1].range.end > table->spans[i].start) {
			profil_table_put(table);
			return ERR_PTR(-EINVAL);
		}
	}
	return table;
}

/* Makes a table of @ranges in user space, without histograms yet; or returns an error pointer. */
struct profil_table *profil_table_create(struct profil_session *s, u64 ranges, u32 nr)
{
	const struct profil_range __user *uranges = u64_to_user_ptr(ranges);
	struct profil_table *table;
	int err = 0;
	u32 i;

	table = table_alloc(s, nr);
	if (!table)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < nr && !err; i++)
		err = span_set(&table->spans[i], &uranges[i], table);
	if (!err)
		return table_sort(table);
	profil_table_put(table);
	return ERR_PTR(err);
}

/* Makes a table of the ranges of both. Returns -EINVAL if they overlap or are too many. */
struct profil_table *profil_table_merge(const struct profil_table *base,
					const struct profil_table *added)
{
	struct profil_table *table;

	if (added->nr_ranges > PROFIL_MAX_RANGES - base->nr_ranges)
		return ERR_PTR(-EINVAL);
	table = table_alloc(added->session, base->nr_ranges + added->nr_ranges);
	if (!table)
		return ERR_PTR(-ENOMEM);
	table_copy_spans(table->spans, base->spans, base->nr_ranges);
	table_copy_spans(table->spans + base->nr_ranges, added->spans, added->nr_ranges);
	return table_sort(table);
}

static bool span_is_within(const struct profil_span *span, const struct profil_remove *arg)
{
	return span->start >= arg->start && span->range.end <= arg->end;
}

/* Returns @table without the ranges in @arg (@table if it has none); NULL if out of memory. */
struct profil_table *profil_table_remove(struct profil_table *table,
					 const struct profil_remove *arg)
{
	struct profil_table *remaining;
	u32 i, n = 0;

	for (i = 0; i < table->nr_ranges; i++)
		n += !span_is_within(&table->spans[i], arg);
	if (n == table->nr_ranges)
		return profil_table_get(table);

	remaining = table_alloc(table->session, n);
	if (!remaining)
		return NULL;
	for (i = 0, n = 0; i < table->nr_ranges; i++)
		if (!span_is_within(&table->spans[i], arg))
			table_copy_spans(&remaining->spans[n++], &table->spans[i], 1);
	return remaining;
}

/* Returns a table of the same ranges for @s, without histograms; or NULL if out of memory. */
struct profil_table *profil_table_inherit(struct profil_session *s,
					  const struct profil_table *table)
{
	struct profil_table *copy;
	u32 i;

	copy = table_alloc(s, table->nr_ranges);
	if (!copy)
		return NULL;
	for (i = 0; i < copy->nr_ranges; i++) {
		copy->spans[i] = table->spans[i];
		copy->spans[i].histogram = NULL;
		copy->spans[i].pages = NULL;
	}
	return copy;
}

/* Gives spans the histograms of @root, which is private, or a session's under home->lock. */
void profil_table_bind(struct profil_table *table, struct rb_root_cached *root)
{
	struct profil_histogram *h;
	u32 i;

	for (i = 0; i < table->nr_ranges; i++) {
		struct profil_span *span = &table->spans[i];

		if (!span->bytes || span->histogram)
			continue;
		h = profil_histogram_find(root, span->range.buffer, span->bytes);
		if (!h)
			continue;
		refcount_inc(&h->refs);
		span->histogram = h;
		span->pages = &h->pages[(span->range.buffer - h->node.start) >> PAGE_SHIFT];
	}
}
