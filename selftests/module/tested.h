/* SPDX-License-Identifier: GPL-2.0 */
/* The session under test: its descriptor and its statistics */
#ifndef _SELFTESTS_TESTED_H
#define _SELFTESTS_TESTED_H

#include "device.h"

static int fd = -1;

/* Returns the statistics. Their state is ~0 on an error. */
static inline struct profil_stats stats_now(void)
{
	struct profil_stats s;

	if (descriptor_stats(fd, &s))
		s.state = ~0U;
	return s;
}

static inline void close_session(void)
{
	close(fd);
	fd = -1;
}

#endif /* _SELFTESTS_TESTED_H */
