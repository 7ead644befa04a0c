// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One call of /dev/profil.
 *
 * The calls of this library have no descriptor of their own, so none outlives them: open,
 * one ioctl, close. By syscall(2), since libc's open() and close() are cancellation points:
 * a thread cancelled in between would leave its descriptor behind, and the historical calls
 * never were such points.
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
	switch (err) {
	case ENOTTY:		/* something else has the name */
	case EOPNOTSUPP:	/* a module that cannot do what this library asks for */
		return ENOSYS;
	default:
		return err;
	}
}

/**
 * profil_device_ioctl - Do one ioctl of the profil device
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Leaves errno alone, whatever happens.
 *
 * Return: 0, or a negative error: as <linux/profil.h> has it, but -ENOSYS if the kernel does
 * not offer the call at all, -EACCES without the right to it.
 */
int profil_device_ioctl(unsigned long cmd, void *arg)
{
	int saved = errno, err = 0;
	long fd;

	fd = syscall(SYS_openat, AT_FDCWD, PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = open_error(errno);
		goto restore;
	}
	if (syscall(SYS_ioctl, fd, cmd, arg) < 0)
		err = ioctl_error(errno);
	syscall(SYS_close, fd);
restore:
	errno = saved;
	return -err;
}
