/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A FUSE file system with one file, FUSE_FILE. It provides every page in the end: at once, late,
 * or very late. It does not use libfuse.
 */
#ifndef _SELFTESTS_FUSE_H
#define _SELFTESTS_FUSE_H

#include "chance.h"

#include <linux/fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#define FUSE_FILE	"pages"
#define FUSE_FILE_INO	2
#define FUSE_BYTES	(4UL << 20)
#define FUSE_MAX_WRITE	(32U << 10)

static inline struct fuse_attr fuse_attr_of(u64 ino)
{
	return (struct fuse_attr) {
		.ino = ino,
		.size = ino == FUSE_FILE_INO ? FUSE_BYTES : 0,
		.mode = ino == FUSE_FILE_INO ? S_IFREG | 0777 : S_IFDIR | 0777,
		.nlink = 1,
		.blksize = 4096,
	};
}

/* Answers a request with @n bytes of @reply, or with an error. */
static inline void fuse_answer(int fd, u64 unique, int err, const void *reply, size_t n)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + (err ? 0 : n),
		.error = err,
		.unique = unique,
	};
	struct iovec parts[2] = {
		{ .iov_base = &out, .iov_len = sizeof(out) },
		{ .iov_base = (void *)reply, .iov_len = err ? 0 : n },
	};

	/* The process that made the request may be dead. */
	if (writev(fd, parts, 2) < 0)
		return;
}

static inline void fuse_pause(struct actor *a)
{
	struct timespec t = { 0 };

	if (one_in(a, 2))
		return;
	if (one_in(a, 500))
		t.tv_sec = 2;
	else
		t.tv_nsec = any(a, one_in(a, 20) ? 200000000 : 2000000);
	nanosleep(&t, NULL);
}

static inline void fuse_serve_one(struct actor *a, int fd, const char *request)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *arg = in + 1;
	union {
		struct fuse_init_out init;
		struct fuse_entry_out entry;
		struct fuse_attr_out attr;
		struct fuse_open_out open;
		struct fuse_write_out write;
		struct fuse_statfs_out statfs;
	} out = { 0 };
	static char pages[256 << 10];

	switch (in->opcode) {
	case FUSE_INIT:
		out.init.major = FUSE_KERNEL_VERSION;
		out.init.minor = ((const struct fuse_init_in *)arg)->minor;
		out.init.max_readahead = 4096;
		out.init.max_write = FUSE_MAX_WRITE;
		fuse_answer(fd, in->unique, 0, &out, sizeof(out.init));
		break;
	case FUSE_LOOKUP:
		out.entry.nodeid = FUSE_FILE_INO;
		out.entry.attr = fuse_attr_of(FUSE_FILE_INO);
		fuse_answer(fd, in->unique, strcmp(arg, FUSE_FILE) ? -ENOENT : 0, &out,
			    sizeof(out.entry));
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		out.attr.attr = fuse_attr_of(in->nodeid);
		fuse_answer(fd, in->unique, 0, &out, sizeof(out.attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		fuse_answer(fd, in->unique, 0, &out, sizeof(out.open));
		break;
	case FUSE_READ: {
		const struct fuse_read_in *read = arg;

		fuse_pause(a);
		fuse_answer(fd, in->unique, read->size > sizeof(pages) ? -EIO : 0, pages,
			    read->size);
		break;
	}
	case FUSE_WRITE:
		fuse_pause(a);
		out.write.size = ((const struct fuse_write_in *)arg)->size;
		fuse_answer(fd, in->unique, 0, &out, sizeof(out.write));
		break;
	case FUSE_STATFS:
		fuse_answer(fd, in->unique, 0, &out, sizeof(out.statfs));
		break;
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
		fuse_answer(fd, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_answer(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

/* Mounts it at @dir. Returns the descriptor to read requests from, or a negative errno. */
static inline int fuse_mount(const char *dir)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), err;
	char options[128];

	if (fd < 0)
		return -errno;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fd, geteuid(),
		 getegid());
	if (mount("fuse", dir, "fuse", MS_NOSUID | MS_NODEV, options)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/*
 * Mounts it at @dir and serves it in a process that ends with its parent. Returns the id of that
 * process, or a negative errno.
 */
static inline pid_t fuse_start(const char *dir, u64 seed)
{
	static char request[FUSE_MAX_WRITE + 4096] __attribute__((aligned(8)));
	struct actor a = { .random = seed | 1 };
	int fd = fuse_mount(dir);
	pid_t pid;

	if (fd < 0)
		return fd;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(fd, request, sizeof(request)) > 0 || errno == EINTR || errno == ENOENT)
			fuse_serve_one(&a, fd, request);
		_exit(0);
	}
	if (pid < 0)
		pid = -errno;
	close(fd);
	return pid;
}

static inline void fuse_stop(const char *dir, pid_t pid)
{
	umount2(dir, MNT_DETACH);
	if (pid > 0)
		kill(pid, SIGKILL);
}

#endif /* _SELFTESTS_FUSE_H */
