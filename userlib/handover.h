/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From osProfileFlush() to "profil gperf --wait"
 *
 * Who waits for the data of a process listens on a socket that has the process's id in its name.
 * Flush connects to it and sends one message with a descriptor: a file in memory that begins with
 * struct handover, then has @nr_ranges struct profil_range as of PROFIL_IOC_DESCRIBE, @nr_bytes of
 * their counters, each range's at a multiple of 8 bytes, and to its end what /proc/self/maps says.
 * Neither waits for the other: the file is there also when the process is not any more.
 */
#ifndef LIBPROFIL_HANDOVER_H
#define LIBPROFIL_HANDOVER_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <linux/profil.h>

#define HANDOVER_MAGIC	0x50524f46554c5348ULL

/* A range that begins here has no pcs: what it has is the period, in ns, as an only counter. */
#define HANDOVER_PERIOD	(~0ULL - 1)

struct handover {
	__u64 magic;
	__u64 nr_ranges;
	__u64 nr_bytes;
	__u64 period;
	__u64 nr_pcs;		/* of a range with PROFIL_RANGE_PCS */
};

/* Abstract: it is gone with who listens. The length, for bind() and connect(), is returned. */
static inline socklen_t handover_address(struct sockaddr_un *address, pid_t pid)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "profil-gperf-%d",
			(int)pid);
}

#endif /* LIBPROFIL_HANDOVER_H */
