// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: reads the records, and waits for them. */
#define _GNU_SOURCE
#include <poll.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "commands/sampling.h"
#include "recording/tables.h"

#define READ_SIZE	(64U << 10)
/* The maximum size of a record, with its path. */
#define RECORD_SIZE_MAX	(8U << 10)
/* The maximum number of batches in memory. */
#define COLLECTED_MAX	1024

/* Records that were read, but not added yet */
struct batch {
	struct batch *next;
	ssize_t len;
	u64 records[READ_SIZE / sizeof(u64)];
};

/* Returns false if the module had no more records: there is room for another one. */
static bool batch_read(struct session *s, struct batch *batch)
{
	batch->len = profil_session_read(s->fd, batch->records, READ_SIZE);
	return batch->len > (ssize_t)(READ_SIZE - RECORD_SIZE_MAX);
}

void session_collect(void *data)
{
	struct session *s = data;
	bool more = s->fd >= 0;

	while (more && s->nr_collected < COLLECTED_MAX) {
		struct batch *batch = xmalloc(sizeof(*batch));

		more = batch_read(s, batch);
		if (batch->len <= 0) {
			free(batch);
			return;
		}
		batch->next = NULL;
		*s->last_collected = batch;
		s->last_collected = &batch->next;
		s->nr_collected++;
	}
}

/* Makes the records that were collected first the current ones. Returns false if there are none. */
static bool next_collected(struct session *s, struct batch *current)
{
	struct batch *batch = s->collected;

	if (!batch)
		return false;
	s->collected = batch->next;
	if (!s->collected)
		s->last_collected = &s->collected;
	s->nr_collected--;
	current->len = batch->len;
	memcpy(current->records, batch->records, batch->len);
	free(batch);
	return true;
}

void session_add_records(struct session *s, u64 ticks)
{
	static struct batch current;
	bool more = true;

	while (s->stream.ticks < ticks) {
		if (!s->next && more) {
			if (!next_collected(s, &current))
				more = batch_read(s, &current);
			s->next = profil_record_first(current.records, current.len);
		}
		if (!s->next)
			break;
		if (!(s->next->flags & PROFIL_RECORD_DETACHED))
			stream_record(&s->stream, s->next);
		else if (s->add_detached)
			s->add_detached(s->data, s->next);
		s->next = profil_record_next(current.records, current.len, s->next);
	}
	tables_poll(s->stream.tables);
}

void session_wait(struct session *s, u64 until, bool records)
{
	struct pollfd fds[] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->targets_gone ? -1 : s->pidfd, .events = POLLIN },
		/* Without POLLIN, only the end of all targets ends the wait. */
		{ .fd = s->targets_gone ? -1 : s->fd, .events = records ? POLLIN : 0 },
		{ .fd = s->input, .events = POLLIN },
	};
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	u64 left;
	struct timespec timeout;

	if (until > s->interrupted)
		until = s->interrupted;
	left = until > now ? until - now : 0;
	timeout.tv_sec = left / NS_PER_S;
	timeout.tv_nsec = left % NS_PER_S;
	if (ppoll(fds, 4, until == UINT64_MAX ? NULL : &timeout, NULL) < 0)
		return;
	if (fds[1].revents || (fds[2].revents & (POLLHUP | POLLERR)))
		s->targets_gone = true;
}
