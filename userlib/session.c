// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptor sessions: see profil.h
 *
 * The library has no state of a session except its descriptor. So threads need not share any data,
 * nor do parent and child after a fork. Every function makes one ioctl, except for
 * profil_session_attach_pidfd() and profil_session_read(). All functions can be called by a signal
 * handler.
 *
 * Most system calls are made with syscall(2), so that they are not cancellation points: see
 * device.c. read() is a cancellation point, as documented.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "classic.h"
#include "device.h"
#include "profil.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

PROFIL_EXPORT int profil_session_open(const struct profil_open *options)
{
	struct profil_open defaults = {
		.size = sizeof(defaults),
		.modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
		.fork = PROFIL_FORK_OFF,
		.exec = PROFIL_EXEC_OFF,
	};
	int fd;

	/* The cast is safe: this ioctl only reads its argument. */
	fd = libprofil_classic_ioctl(PROFIL_IOC_OPEN, options ? (void *)options : &defaults);
	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	return fd;
}

PROFIL_EXPORT int profil_session_attach(int fd, unsigned int scope, pid_t pid, __u64 *space)
{
	struct profil_attach arg = {
		.size = sizeof(arg),
		.scope = scope,
		.pid = pid,
	};

	if (ioctl(fd, PROFIL_IOC_ATTACH, &arg) < 0)
		return -1;
	if (space)
		*space = arg.space;
	return 0;
}

/* Opens the fdinfo of @fd. Does not use snprintf(), which a signal handler must not call. */
static long open_fdinfo(int fd)
{
	char path[] = "/proc/self/fdinfo/\0\0\0\0\0\0\0\0\0\0";
	char *digit = strchr(path, 0);
	int tens = 1;

	while (fd / tens >= 10)
		tens *= 10;
	for (; tens; tens /= 10)
		*digit++ = '0' + fd / tens % 10;
	return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/*
 * Returns the pid of the process of @pidfd, in the pid namespace of /proc. No other process can get
 * this pid until the process has been reaped; from then on, this function fails with ESRCH.
 */
static pid_t pidfd_to_pid(int pidfd)
{
	char text[1024];
	const char *line;
	pid_t pid = 0;
	ssize_t len;
	long info;

	if (fcntl(pidfd, F_GETFD) < 0)
		return -1;
	info = open_fdinfo(pidfd);
	if (info < 0)
		return -1;
	len = syscall(SYS_read, info, text, sizeof(text) - 1);
	syscall(SYS_close, info);

	text[len > 0 ? len : 0] = 0;
	line = strstr(text, "\nPid:\t");
	if (!line) {
		errno = EBADF;		/* not a pidfd */
		return -1;
	}
	/* The value is -1 if the process was reaped, and 0 if it is not in that namespace. */
	for (line += strlen("\nPid:\t"); *line >= '0' && *line <= '9'; line++)
		pid = 10 * pid + *line - '0';
	if (!pid) {
		errno = ESRCH;
		return -1;
	}
	return pid;
}

/*
 * Checks that the process of @pidfd has the id @pid in the caller's pid namespace, which the ioctl
 * uses. @pid is its id in the pid namespace of /proc.
 */
static int check_pid_namespace(int pidfd, pid_t pid)
{
	unsigned int flags = fcntl(pidfd, F_GETFL) & O_EXCL;	/* PIDFD_THREAD */
	pid_t other;
	int ours;

	ours = syscall(SYS_pidfd_open, pid, flags);
	if (ours < 0)
		return -1;
	other = pidfd_to_pid(ours);
	syscall(SYS_close, ours);
	if (other == pid)
		return 0;
	if (other > 0)
		errno = ESRCH;
	return -1;
}

/*
 * The ioctl takes a pid. Before the ioctl runs, the process can exit, and another process can get
 * the pid. If the process of @pidfd has this pid before and after the ioctl, the ioctl has attached
 * this process.
 */
PROFIL_EXPORT int profil_session_attach_pidfd(int fd, unsigned int scope, int pidfd, __u64 *space)
{
	pid_t pid = pidfd_to_pid(pidfd);

	if (pid < 0 || check_pid_namespace(pidfd, pid))
		return -1;
	if (profil_session_attach(fd, scope, pid, space))
		return -1;
	if (pidfd_to_pid(pidfd) != pid) {
		errno = ESTALE;
		return -1;
	}
	return 0;
}

PROFIL_EXPORT int profil_session_add(int fd, __u64 space, const struct profil_range *ranges,
				     unsigned int nr_ranges)
{
	struct profil_add arg = {
		.size = sizeof(arg),
		.nr_ranges = nr_ranges,
		.space = space,
		.ranges = (uintptr_t)ranges,
	};

	return ioctl(fd, PROFIL_IOC_ADD, &arg);
}

PROFIL_EXPORT int profil_session_remove(int fd, __u64 space, __u64 start, __u64 end)
{
	struct profil_remove arg = {
		.size = sizeof(arg),
		.space = space,
		.start = start,
		.end = end,
	};

	return ioctl(fd, PROFIL_IOC_REMOVE, &arg);
}

PROFIL_EXPORT int profil_session_enable(int fd)
{
	struct profil_enable arg = {
		.size = sizeof(arg),
	};

	return ioctl(fd, PROFIL_IOC_ENABLE, &arg);
}

PROFIL_EXPORT int profil_session_disable(int fd, struct profil_stats *stats)
{
	struct profil_disable arg = {
		.size = sizeof(arg),
		.stats = (uintptr_t)stats,
	};

	return ioctl(fd, PROFIL_IOC_DISABLE, &arg);
}

PROFIL_EXPORT int profil_session_stats(int fd, struct profil_stats *stats)
{
	return ioctl(fd, PROFIL_IOC_STATS, stats);
}

PROFIL_EXPORT int profil_session_snapshot(int fd, unsigned int flags,
					  const struct profil_copy *copies, unsigned int nr_copies,
					  struct profil_stats *stats)
{
	struct profil_snapshot arg = {
		.size = sizeof(arg),
		.flags = flags,
		.nr_copies = nr_copies,
		.copies = (uintptr_t)copies,
		.stats = (uintptr_t)stats,
	};

	return ioctl(fd, PROFIL_IOC_SNAPSHOT, &arg);
}

PROFIL_EXPORT int profil_session_unwind(int fd, const struct profil_unwind *table)
{
	return ioctl(fd, PROFIL_IOC_UNWIND, table);
}

PROFIL_EXPORT ssize_t profil_session_read(int fd, void *buf, size_t size)
{
	ssize_t len;

	do
		len = read(fd, buf, size);
	while (len < 0 && errno == EINTR);
	return len;
}
