// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The descriptor of /dev/profil, and the ioctls on it.
 *
 * While a classic session is on, the library keeps a descriptor, so that profiling can be turned
 * off when no descriptor is free, and after chroot(2). Otherwise the device is open only during a
 * call. The kept descriptor has a high number, so that the program gets the low numbers that it
 * expects, and exec closes it. A program can close the kept descriptor, as daemons close all
 * descriptors, and then open another file with the same number. So the library checks before each
 * use that the descriptor is still that of the device.
 *
 * System calls are made with syscall(2), because open() and close() of libc are cancellation
 * points. The historical calls are not cancellation points, and a thread that is cancelled between
 * open() and close() would leak its descriptor.
 *
 * profil() is defined in profil.c and not here, because this file includes <unistd.h>: glibc
 * declares the first argument of profil() nonnull there, and the compiler would remove the test for
 * NULL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/profil.h>

#include "device.h"

#define KEPT_MIN	100		/* lowest number of the kept descriptor */

/* Protected by the lock of the classic session. */
static int kept_fd = -1;
static dev_t kept_device;
static bool kept_fd_is_lost;	/* the program closed it, and the session may still be on */

static int error_of_open(int err)
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

/*
 * EPERM can come from the module or from a seccomp filter. With an invalid argument, the module
 * fails with EFAULT, because it reads the argument first. A filter cannot read it and still fails
 * with EPERM.
 */
static bool seccomp_forbids(int fd, unsigned long cmd)
{
	return syscall(SYS_ioctl, fd, cmd, NULL) < 0 && errno == EPERM;
}

static int fd_ioctl(int fd, unsigned long cmd, void *arg)
{
	int result = syscall(SYS_ioctl, fd, cmd, arg);

	if (result >= 0)
		return result;
	switch (errno) {
	case ENOTTY:	/* the module is too old for the call, or this is another device */
		return -ENOSYS;
	case EPERM:
		return seccomp_forbids(fd, cmd) ? -EACCES : -EPERM;
	default:
		return -errno;
	}
}

/* Returns the kept descriptor, or -1 if there is none or the program has closed it. */
static int find_kept_fd(void)
{
	struct stat st;

	if (kept_fd >= 0 && (fstat(kept_fd, &st) || !S_ISCHR(st.st_mode) ||
			     st.st_rdev != kept_device)) {
		kept_fd = -1;
		kept_fd_is_lost = true;
	}
	return kept_fd;
}

static void keep_fd(int fd)
{
	struct stat st;
	int high;

	if (fstat(fd, &st)) {
		syscall(SYS_close, fd);
		return;
	}
	high = fcntl(fd, F_DUPFD_CLOEXEC, KEPT_MIN);
	if (high >= 0) {
		syscall(SYS_close, fd);
		fd = high;
	}
	kept_device = st.st_rdev;
	kept_fd = fd;
	kept_fd_is_lost = false;
}

static void close_kept_fd(void)
{
	if (find_kept_fd() >= 0)
		syscall(SYS_close, kept_fd);
	kept_fd = -1;
	kept_fd_is_lost = false;
}

/*
 * Converts @err, the error of open(), to the result of libprofil_device_ioctl(). STOP is special if
 * no descriptor is free: unless the program has closed the kept descriptor, there is no session.
 * The result is then -EINVAL, like that of the ioctl without a session.
 */
static int error_without_fd(unsigned long cmd, int err)
{
	if (cmd == PROFIL_IOC_STOP && !kept_fd_is_lost && (err == EMFILE || err == ENFILE))
		return -EINVAL;
	return -error_of_open(err);
}

/**
 * libprofil_device_ioctl - Make one ioctl on the profil device
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * The caller holds the lock of the classic session. A successful START keeps the descriptor. STOP
 * closes it unless the session may still be on. Does not change errno.
 *
 * Return: the result of the ioctl, or a negative error as <linux/profil.h> describes. There are two
 * differences: -ENOSYS if the kernel does not support the ioctl at all, and -EACCES if the caller
 * has no permission to open the device or to make the ioctl.
 */
int libprofil_device_ioctl(unsigned long cmd, void *arg)
{
	int saved = errno, fd = find_kept_fd(), result;
	bool opened = fd < 0;

	if (opened) {
		fd = syscall(SYS_openat, AT_FDCWD, PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			result = error_without_fd(cmd, errno);
			goto restore;
		}
	}
	result = fd_ioctl(fd, cmd, arg);
	if (opened && cmd == PROFIL_IOC_START && !result)
		keep_fd(fd);
	else if (opened)
		syscall(SYS_close, fd);
	if (cmd == PROFIL_IOC_STOP && (!result || result == -EINVAL))
		close_kept_fd();
restore:
	errno = saved;
	return result;
}
