/* SPDX-License-Identifier: GPL-2.0 */
/* Memory whose missing pages user space provides */
#ifndef _SELFTESTS_FAULTS_H
#define _SELFTESTS_FAULTS_H

#include "device.h"

#include <linux/userfaultfd.h>
#include <sys/syscall.h>

/**
 * missing_pages() - Open a userfaultfd for the pages that are missing at @p
 * @p: the memory
 * @size: its size in bytes
 * @flags: 0 or O_NONBLOCK
 *
 * Return: the descriptor, or a negative errno.
 */
static inline int missing_pages(void *p, size_t size, int flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = {
		.range = { addr(p), size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | flags), err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &all))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

#endif /* _SELFTESTS_FAULTS_H */
