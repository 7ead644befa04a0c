/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A swap area. Needs root.
 */
#ifndef _SELFTESTS_SWAP_AREA_H
#define _SELFTESTS_SWAP_AREA_H

#include "device.h"

#include <linux/loop.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/swap.h>

#define SWAP_SIZE	(32U << 20)

/* Makes a swap area in memory. Stores its name in @path, of @size bytes: 0, or a negative errno. */
static inline int swap_start(char *path, size_t size)
{
	static char header[4096];
	struct loop_config config = { 0 };
	int control, fd, number, err = 0;

	if (system("modprobe -q loop"))
		return -ENODEV;
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	if (number < 0)
		err = -errno;
	close(control);
	if (err)
		return err;
	snprintf(path, size, "/dev/loop%d", number);

	((u32 *)(header + 1024))[0] = 1;
	((u32 *)(header + 1024))[1] = SWAP_SIZE / 4096 - 1;
	memcpy(header + 4096 - 10, "SWAPSPACE2", 10);
	config.fd = memfd_create("swap", MFD_CLOEXEC);
	if (ftruncate(config.fd, SWAP_SIZE) || pwrite(config.fd, header, 4096, 0) != 4096)
		err = -errno;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (!err && (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) || swapon(path, 0)))
		err = -errno;
	close(fd);
	close(config.fd);
	if (err)
		path[0] = 0;
	return err;
}

static inline void swap_stop(const char *path)
{
	int fd;

	if (!path[0])
		return;
	swapoff(path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ioctl(fd, LOOP_CLR_FD, 0);
	close(fd);
}

#endif /* _SELFTESTS_SWAP_AREA_H */
