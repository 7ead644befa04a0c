/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that any of many processes finds, and that one process prints
 */
#ifndef _SELFTESTS_FAILURES_H
#define _SELFTESTS_FAILURES_H

#include "device.h"

#include <stdarg.h>
#include <stdatomic.h>

/* In memory that all processes share. */
struct failures {
	atomic_uint n;
	char first[32][480];
};

static inline void __attribute__((format(printf, 2, 3)))
failures_note(struct failures *f, const char *format, ...)
{
	unsigned int n = atomic_fetch_add(&f->n, 1);
	va_list args;

	if (n >= ARRAY_SIZE(f->first))
		return;
	va_start(args, format);
	vsnprintf(f->first[n], sizeof(f->first[n]), format, args);
	va_end(args);
}

/* Returns what is wrong in statistics, or NULL. */
static inline const char *wrong_stats(const struct profil_stats *s)
{
	static __thread char text[256];

	if (!accounted(s))
		snprintf(text, sizeof(text),
			 "%llu ticks = %llu + %llu = hit %llu, outside %llu, full %llu, lost %llu",
			 s->ticks, s->user, s->system, s->hit, s->outside, s->saturated,
			 s->dropped);
	else if (s->state > PROFIL_STATE_ENDED || s->end > PROFIL_END_CREATOR ||
		 (s->state == PROFIL_STATE_ENDED) == !s->end)
		snprintf(text, sizeof(text), "state %u with end %u", s->state, s->end);
	else
		return NULL;
	return text;
}

#define EXPECT_NO_FAILURES(f) do {							\
	for (unsigned int _i = 0; _i < (f)->n && _i < ARRAY_SIZE((f)->first); _i++)	\
		TH_LOG("%s", (f)->first[_i]);						\
	EXPECT_EQ(0U, (f)->n);								\
} while (0)

#endif
