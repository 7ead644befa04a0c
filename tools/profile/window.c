// SPDX-License-Identifier: GPL-2.0-or-later
/* See window.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "profile/window.h"

/* The maximum number of rows. A row takes about 700 bytes. */
#define ENTRIES_MAX	(1U << 15)

/**
 * struct entry - A row, for one name of a thread
 * @row: The row. Only window_rows() sets its sums. Its label is the name of the binary, if that is
 *	not shortened; or NULL.
 * @thread: The thread of @row. @last and @process are its members @thread and @process.
 * @ticks: The ticks in user mode of each slot, and those in kernel mode.
 * @squares: As in struct row, for each slot.
 */
struct entry {
	struct row row;
	struct recording_thread thread, last, process;
	u64 nr[WINDOW_SLOTS];
	u64 user[WINDOW_SLOTS];
	u64 system[WINDOW_SLOTS];
	double squares[WINDOW_SLOTS];
};

struct window {
	htab_t table;
	size_t slot;			/* the current one */
	u64 ns[WINDOW_SLOTS];
};

/* ---- the table of entries ---- */

static hashval_t entry_hash(const void *data)
{
	const struct row *row = data;
	const u64 words[] = {
		hash_text(row->function.name), hash_text(row->function.binary),
		row->function.start, row->thread->data.tid, hash_text(row->call),
	};

	return hash_words(words, 5);
}

static int compare_ids(const struct format_thread *a, const struct format_thread *b)
{
	return compare_u64(a->space, b->space) ?: compare_u64(a->pid, b->pid);
}

static int compare_threads(const struct row *a, const struct row *b)
{
	const struct format_thread *x = &a->thread->data, *y = &b->thread->data;

	return compare_ids(x, y) ?: compare_u64(x->tid, y->tid);
}

/* An entry begins with its row. */
static int entry_equals(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->function.start == y->function.start && !compare_threads(x, y) &&
	       !strcmp(x->thread->data.comm, y->thread->data.comm) &&
	       !strcmp(x->function.name, y->function.name) &&
	       !strcmp(x->function.binary, y->function.binary) && !strcmp(x->call, y->call);
}

static void entry_free(void *data)
{
	struct entry *entry = data;

	free((char *)entry->row.function.name);
	free((char *)entry->row.function.binary);
	free((char *)entry->row.call);
	free(entry);
}

static struct entry *entry_new(const struct row *row)
{
	struct entry *entry = xcalloc(1, sizeof(*entry));

	entry->row = (struct row) {
		.function.name = xstrdup(row->function.name),
		.function.binary = xstrdup(row->function.binary),
		.function.start = row->function.start,
		.call = xstrdup(row->call),
		.thread = &entry->thread,
	};
	if (!strcmp(row->function.label, row->function.binary))
		entry->row.function.label = entry->row.function.binary;
	entry->thread.data = row->thread->data;
	entry->last.data = row->thread->thread->data;
	entry->process.data = row->thread->process->data;
	entry->thread.thread = &entry->last;
	entry->thread.process = &entry->process;
	return entry;
}

static struct entry *entry_get(struct window *window, const struct row *row)
{
	static struct recording_thread no_thread = {
		.data.comm = WINDOW_OTHER, .thread = &no_thread, .process = &no_thread,
	};
	static const struct row other = {
		.function.name = WINDOW_OTHER,
		.function.binary = WINDOW_OTHER,
		.function.label = WINDOW_OTHER,
		.call = WINDOW_OTHER,
		.thread = &no_thread,
	};
	const bool is_full = htab_elements(window->table) >= ENTRIES_MAX;
	void **slot = htab_find_slot(window->table, row, is_full ? NO_INSERT : INSERT);

	if (!slot) {
		row = &other;
		slot = htab_find_slot(window->table, row, INSERT);
	}
	if (!*slot)
		*slot = entry_new(row);
	return *slot;
}

/* ---- slots ---- */

struct window *window_new(void)
{
	struct window *window = xcalloc(1, sizeof(*window));

	window->table = htab_create(256, entry_hash, entry_equals, entry_free);
	return window;
}

void window_free(struct window *window)
{
	if (window)
		htab_delete(window->table);
	free(window);
}

void window_keys(struct rows *rows)
{
	static const enum rows_by keys[] = {
		ROWS_BY_THREAD, ROWS_BY_COMM, ROWS_BY_DSO, ROWS_BY_SYSCALL, ROWS_BY_SYMBOL,
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		rows->keys[rows->nr_keys++] = &row_keys[keys[i]];
}

void window_add(struct window *window, const struct rows *rows)
{
	const size_t slot = window->slot;

	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];
		struct entry *entry = entry_get(window, row);

		entry->nr[slot] += row->nr;
		entry->user[slot] += row->user;
		entry->system[slot] += row->system;
		entry->squares[slot] += row->squares;
	}
}

void window_set_time(struct window *window, u64 ns)
{
	window->ns[window->slot] = ns;
}

u64 window_time(const struct window *window)
{
	u64 ns = 0;

	for (size_t i = 0; i < WINDOW_SLOTS; i++)
		ns += window->ns[i];
	return ns;
}

static int clear_slot(void **place, void *data)
{
	struct window *window = data;
	struct entry *entry = *place;
	bool is_empty = true;

	entry->nr[window->slot] = 0;
	entry->user[window->slot] = 0;
	entry->system[window->slot] = 0;
	entry->squares[window->slot] = 0;
	for (size_t i = 0; i < WINDOW_SLOTS; i++)
		is_empty &= !entry->nr[i];
	if (is_empty)
		htab_clear_slot(window->table, place);
	return 1;
}

void window_advance(struct window *window)
{
	window->slot = (window->slot + 1) % WINDOW_SLOTS;
	window->ns[window->slot] = 0;
	htab_traverse_noresize(window->table, clear_slot, window);
}

void window_clear(struct window *window)
{
	htab_empty(window->table);
	memset(window->ns, 0, sizeof(window->ns));
}

/* ---- rows ---- */

static int add_row(void **place, void *data)
{
	struct rows *rows = data;
	struct entry *entry = *place;
	struct row *row = &entry->row;

	row->nr = 0;
	row->user = 0;
	row->system = 0;
	row->squares = 0;
	for (size_t i = 0; i < WINDOW_SLOTS; i++) {
		row->nr += entry->nr[i];
		row->user += entry->user[i];
		row->system += entry->system[i];
		row->squares += entry->squares[i];
	}
	rows->rows[rows->nr++] = *row;
	rows->ticks += row_ticks(row);
	rows->nr_ticks += row->nr;
	rows->squares += row->squares;
	return 1;
}

static int compare_row_threads(const void *a, const void *b)
{
	return compare_threads(a, b);
}

/* Numbers the threads and processes: the keys compare these numbers. */
static void number_threads(struct rows *rows)
{
	const struct recording_thread *before = NULL;
	u32 thread = 0, process = 0;

	if (rows->nr)
		qsort(rows->rows, rows->nr, sizeof(*rows->rows), compare_row_threads);
	for (size_t i = 0; i < rows->nr; i++) {
		const struct recording_thread *now = rows->rows[i].thread;
		const bool is_other = !before || compare_ids(&before->data, &now->data);

		process += is_other;
		thread += is_other || before->data.tid != now->data.tid;
		now->process->data.id = process;
		now->thread->data.id = thread;
		before = now;
	}
}

void window_rows(struct window *window, struct rows *rows)
{
	const size_t size = htab_elements(window->table) + 1;
	struct binary_label *labels = xcalloc(size, sizeof(*labels));
	size_t nr = 0;

	rows->rows = xcalloc(size, sizeof(*rows->rows));
	htab_traverse_noresize(window->table, add_row, rows);
	number_threads(rows);
	/* Names that are not paths are for places outside of all files. */
	for (size_t i = 0; i < rows->nr; i++) {
		struct row *row = &rows->rows[i];

		if (strchr(row->function.binary, '/'))
			labels[nr++] = (struct binary_label) {
				.path = row->function.binary,
				.whole = row->function.label,
				.label = &row->function.label,
			};
	}
	binaries_choose_labels(labels, nr);
	free(labels);
	rows_merge(rows);
}
