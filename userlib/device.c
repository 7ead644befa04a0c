// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The descriptor of /dev/profil, and the ioctls on it.
 *
 * While a classic session is on, the library keeps a descriptor: profiling can then be turned off
 * when no descriptor is free, and after chroot(2). Otherwise the device is open only for the
 * duration of a call. The number of the kept one is high, so that a program gets the low ones that
 * it expects, and it is closed by exec. A program may close it, as daemons close all descriptors,
 * and use its number again: so each use first looks whether it is still the device.
 *
 * System calls are made by syscall(2), since libc's open() and close() are cancellation points: a
 * thread cancelled in between would leave its descriptor behind, and the historical calls never
 * were such points.
 *
 * profil() must not be defined in a file that includes <unistd.h>: glibc declares its first
 * argument nonnull there, and the compiler then removes the test for NULL.
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

#define KEPT_MIN	100		/* the lowest number for the kept descriptor */

/* Under the lock of the classic session. */
static int kept_fd = -1;
static dev_t kept_device;
static bool kept_fd_is_lost;		/* the program has closed it, and the session may still be on */

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
 * A seccomp filter answers EPERM, too, but does not read the argument. The module does, first of
 * all, so that it answers EFAULT here.
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
	case ENOTTY:	/* something else has the name, or a module that does not know the call */
		return -ENOSYS;
	case EPERM:
		return seccomp_forbids(fd, cmd) ? -EACCES : -EPERM;
	default:
		return -errno;
	}
}

/* The kept descriptor, or -1 if there is none any more. */
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

/* @err: of open(). Without a free descriptor STOP need not ask whether there is a session. */
static int error_without_fd(unsigned long cmd, int err)
{
	if (cmd == PROFIL_IOC_STOP && !kept_fd_is_lost && (err == EMFILE || err == ENFILE))
		return -EINVAL;
	return -error_of_open(err);
}

/**
 * libprofil_device_ioctl - Do one ioctl of the profil device
 * @cmd: PROFIL_IOC_*
 * @arg: The structure that belongs to @cmd.
 *
 * Under the lock of the classic session. A successful START keeps the descriptor; STOP closes it
 * unless the session may still be on. Leaves errno alone, whatever happens.
 *
 * Return: what the ioctl does, or a negative error: as <linux/profil.h> has it, but -ENOSYS
 * if the kernel does not offer the call at all, -EACCES without the right to it.
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
