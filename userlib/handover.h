/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol between osProfileFlush() and "profil gperf --wait"
 *
 * profil gperf listens on a socket whose name includes the process id. osProfileFlush() connects to
 * this socket, and sends one message with the descriptor of a file in memory. The file consists of
 *
 *	a struct handover
 *	nr_ranges of struct profil_range, from PROFIL_IOC_DESCRIBE
 *	nr_bytes of counters; those of each range begin at a multiple of 8 bytes
 *	the contents of /proc/self/maps
 *
 * Neither side waits for the other: the file in memory exists until the receiver closes it, even if
 * the process has exited.
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

/*
 * A range with this start address has no text. Its only counter contains the period of the profile,
 * in ns.
 */
#define HANDOVER_PERIOD	(~0ULL - 1)

struct handover {
	__u64 magic;
	__u64 nr_ranges;
	__u64 nr_bytes;
	__u64 period;
	__u64 nr_pcs;		/* number of used entries, with PROFIL_RANGE_PCS */
};

/*
 * Makes the address of the socket, which is abstract: it vanishes when the listener closes the
 * socket. Returns the length of the address, for bind() and connect().
 */
static inline socklen_t handover_address(struct sockaddr_un *address, pid_t pid)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "profil-gperf-%d",
			(int)pid);
}

#endif /* LIBPROFIL_HANDOVER_H */
