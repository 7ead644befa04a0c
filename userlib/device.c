// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One call of /dev/profil.
 *
 * The device itself is open for the duration of a call only: open, one ioctl, close. By
 * syscall(2), since libc's open() and close() are cancellation points: a thread cancelled in
 * between would leave its descriptor behind, and the historical calls never were such points.
 *
 * profil() must not be defined in a file that includes <unistd.h>: glibc declares its first
 * argument nonnull there, and the compiler then removes the test for NULL.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/profil.h>

#include "device.h"

static int open_error(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ENXIO:
	case ENODEV:
		return ENOSYS;
	case EPERM:
		return EACCES;
	default:
		return err;
	}
}

static int ioctl_error(int err)
{
	/* Something else has the name, or a module that does not know the call. */
	return err == ENOTTY ? ENOSYS : err;
}

/**
 * profil_device_ioctl - Do one ioctl of the profil device
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Leaves errno alone, whatever happens.
 *
 * Return: what the ioctl does, or a negative error: as <linux/profil.h> has it, but -ENOSYS
 * if the kernel does not offer the call at all, -EACCES without the right to it.
 */
int profil_device_ioctl(unsigned long cmd, void *arg)
{
	int saved = errno, result;
	long fd;

	fd = syscall(SYS_openat, AT_FDCWD, PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		result = -open_error(errno);
		goto restore;
	}
	result = syscall(SYS_ioctl, fd, cmd, arg);
	if (result < 0)
		result = -ioctl_error(errno);
	syscall(SYS_close, fd);
restore:
	errno = saved;
	return result;
}
