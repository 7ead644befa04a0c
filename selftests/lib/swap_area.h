/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A swap area of 32 MiB in memory, on a RAM disk. Needs root.
 *
 * A loop device on a memfd is no place for it: the pages of the memfd could be swapped to itself,
 * and writers wait for each other.
 */
#ifndef _SELFTESTS_SWAP_AREA_H
#define _SELFTESTS_SWAP_AREA_H

#include "device.h"

#include <stdlib.h>
#include <sys/swap.h>

#define SWAP_DEVICE	"/dev/ram0"
#define SWAP_SIZE	(32U << 20)

/* Makes the swap area: 0, or a negative errno. */
static inline int swap_start(void)
{
	static char header[4096];
	int fd, err = 0;

	/* In the debug kernels, whose RAM disk has the same size, it is built in. */
	if (system("modprobe -q brd rd_nr=1 rd_size=32768"))
		return -ENODEV;
	((u32 *)(header + 1024))[0] = 1;
	((u32 *)(header + 1024))[1] = SWAP_SIZE / 4096 - 1;
	memcpy(header + 4096 - 10, "SWAPSPACE2", 10);
	fd = open(SWAP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, header, 4096, 0) != 4096 || swapon(SWAP_DEVICE, 0))
		err = -errno;
	close(fd);
	return err;
}

static inline void swap_stop(void)
{
	swapoff(SWAP_DEVICE);
}

#endif /* _SELFTESTS_SWAP_AREA_H */
