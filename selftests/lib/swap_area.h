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
	static char header[PAGE_MAX];
	const ssize_t size = PAGE;
	int fd, err = 0;

	/* In the debug kernels, whose RAM disk has the same size, it is built in. */
	if (system("modprobe -q brd rd_nr=1 rd_size=32768"))
		return -ENODEV;
	((u32 *)(header + 1024))[0] = 1;
	((u32 *)(header + 1024))[1] = SWAP_SIZE / size - 1;
	memcpy(header + size - 10, "SWAPSPACE2", 10);
	fd = open(SWAP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, header, size, 0) != size || swapon(SWAP_DEVICE, 0))
		err = -errno;
	close(fd);
	return err;
}

static inline void swap_stop(void)
{
	swapoff(SWAP_DEVICE);
}

#endif /* _SELFTESTS_SWAP_AREA_H */
