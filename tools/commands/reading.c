// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: reads the records, and waits for them. */
#define _GNU_SOURCE
#include <poll.h>

#include <profil.h>

#include "commands/sampling.h"

#define READ_SIZE	(64U << 10)
/* The maximum size of a record, with its path. */
#define RECORD_SIZE_MAX	(8U << 10)

void session_add_records(struct session *s, u64 ticks)
{
	static u64 buffer[READ_SIZE / sizeof(u64)];
	bool more = true;

	while (s->stream.ticks < ticks) {
		if (!s->next && more) {
			s->len = profil_session_read(s->fd, buffer, READ_SIZE);
			s->next = profil_record_first(buffer, s->len);
			/* If the buffer has room for another record, the module had none. */
			more = s->len > (ssize_t)(READ_SIZE - RECORD_SIZE_MAX);
		}
		if (!s->next)
			return;
		if (!(s->next->flags & PROFIL_RECORD_DETACHED))
			stream_record(&s->stream, s->next);
		else if (s->add_detached)
			s->add_detached(s->data, s->next);
		s->next = profil_record_next(buffer, s->len, s->next);
	}
}

void session_wait(struct session *s, u64 until, bool records)
{
	struct pollfd fds[] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->pidfd, .events = POLLIN },
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
