/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A pump moves bytes from one descriptor to another. relay.c has three on the host (for its own
 * stdin, stdout and stderr), init.c the three that face them in the guest.
 *
 * A pump never blocks, and never closes a descriptor: its owner does, at the end of a stream or if
 * its reader is gone.
 */
#ifndef PUMP_H
#define PUMP_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct pump {
	int from, to;		/* or -1 */
	bool shared;		/* others use to, so it cannot be made nonblocking */
	bool ended;		/* from is at its end; the contents of buf are still delivered */
	bool broken;		/* to has no reader any more */
	uint64_t passed;	/* bytes delivered */
	size_t start, end;	/* of the bytes in buf */
	char buf[65536];
};

static inline bool pump_done(const struct pump *p)
{
	return p->broken || (p->ended && p->start == p->end);
}

/* Prepares poll(), which ignores negative descriptors. */
static inline void pump_want(const struct pump *p, struct pollfd slot[2])
{
	bool waiting = p->start < p->end;

	slot[0] = (struct pollfd){ .fd = -1 };
	slot[1] = (struct pollfd){ .fd = -1 };
	if (pump_done(p))
		return;
	if (!waiting && !p->ended)
		slot[0] = (struct pollfd){ .fd = p->from, .events = POLLIN };
	slot[1] = (struct pollfd){ .fd = p->to, .events = waiting ? POLLOUT : 0 };
}

static inline bool pump_failed(ssize_t n)
{
	return n < 0 && errno != EAGAIN && errno != EINTR;
}

static inline void pump_move(struct pump *p, const struct pollfd slot[2])
{
	size_t size = p->end - p->start;
	ssize_t n;

	/* As much as a pipe takes without blocking if poll() calls it writable. */
	if (p->shared && size > PIPE_BUF)
		size = PIPE_BUF;
	if (slot[1].revents & POLLOUT) {
		n = write(p->to, p->buf + p->start, size);
		p->broken = pump_failed(n);
		if (n > 0) {
			p->start += n;
			p->passed += n;
		}
	} else if (slot[1].revents) {
		p->broken = true;
	}
	if (slot[0].revents) {
		n = read(p->from, p->buf, sizeof(p->buf));
		p->ended = n == 0 || pump_failed(n);
		p->start = 0;
		p->end = n > 0 ? n : 0;
	}
}

#endif
