/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory whose missing pages come from user space, which can hold them back: by userfaultfd,
 * or by a FUSE file system, for a private mapping of its file. Needs root.
 */
#ifndef _SELFTESTS_HELD_H
#define _SELFTESTS_HELD_H

#include "faults.h"
#include "fuse.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum held_kind {
	HELD_USERFAULT,
	HELD_FUSE,
};

/* Shared with the process that serves the file system. */
struct held_control {
	atomic_bool back;	/* pages are held back */
	atomic_bool asked;	/* a page has been requested since */
};

struct held {
	enum held_kind kind;
	char *memory;
	size_t size;
	int fd;			/* the userfaultfd or the file; -1 if none */
	char dir[32];
	pid_t server;
	struct held_control *control;
};

static inline void held_serve(struct held_control *control, int fd)
{
	static char request[FUSE_MAX_WRITE + 4096] __attribute__((aligned(8)));
	static const char page[64 << 10];
	const struct timespec pause = { .tv_nsec = 1000000 };
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_read_in *reads = (const void *)(in + 1);
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.max_readahead = 4096,
		.max_write = FUSE_MAX_WRITE,
		/* Without the first flag, a reader cannot be killed. */
		.flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO,
	};
	struct actor a = { .random = 1 };

	while (read(fd, request, sizeof(request)) > 0 || errno == EINTR || errno == ENOENT) {
		if (in->opcode == FUSE_READ) {
			if (control->back)
				control->asked = true;
			while (control->back)
				nanosleep(&pause, NULL);
			fuse_answer(fd, in->unique, 0, page, reads->size);
		} else if (in->opcode == FUSE_INIT) {
			init.minor = ((const struct fuse_init_in *)(in + 1))->minor;
			fuse_answer(fd, in->unique, 0, &init, sizeof(init));
		} else {
			fuse_serve_one(&a, fd, request);
		}
	}
}

/* Returns 0, or a negative errno. */
static inline int held_map_fuse(struct held *h)
{
	char path[64];
	int fd;

	strcpy(h->dir, "/tmp/profil-held.XXXXXX");
	h->control = map_shared(PAGE);
	if (!mkdtemp(h->dir))
		return -errno;
	fd = fuse_mount(h->dir);
	if (fd < 0) {
		rmdir(h->dir);
		return fd;
	}
	h->server = fork();
	if (!h->server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		held_serve(h->control, fd);
		_exit(0);
	}
	close(fd);
	snprintf(path, sizeof(path), "%s/" FUSE_FILE, h->dir);
	h->fd = open(path, O_RDWR | O_CLOEXEC);
	if (h->fd < 0)
		return -errno;
	h->memory = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, h->fd, 0);
	return h->memory == MAP_FAILED ? -errno : 0;
}

/* Maps zeroed memory, whose pages are not held back yet. Returns 0, or a negative errno. */
static inline int held_map(struct held *h, enum held_kind kind, size_t size)
{
	*h = (struct held){ .kind = kind, .size = size, .fd = -1 };
	if (kind == HELD_FUSE)
		return held_map_fuse(h);
	h->memory = map_small(size);
	return 0;
}

/* Like held_map(), in a test, which is skipped if there can be no such memory */
#define NEED_HELD(held, kind, size) do {						\
	int err_;									\
											\
	NEED_ROOT("pages that the kernel waits for");					\
	err_ = held_map(held, kind, size);						\
	SKIP_IF(err_ == -ENOENT || err_ == -ENODEV, "no FUSE here");			\
	ASSERT_EQ(0, err_);								\
} while (0)

/* Drops all pages, and holds them back from now on. Returns 0, or a negative errno. */
static inline int held_back(struct held *h)
{
	if (h->kind == HELD_FUSE) {
		h->control->asked = false;
		h->control->back = true;
	} else {
		h->fd = missing_pages(h->memory, h->size, O_NONBLOCK);
		if (h->fd < 0)
			return h->fd;
	}
	if (madvise(h->memory, h->size, MADV_DONTNEED))
		return -errno;
	return h->kind == HELD_FUSE ? -posix_fadvise(h->fd, 0, 0, POSIX_FADV_DONTNEED) : 0;
}

/* Returns true if a thread waits for a page that is held back. */
static inline bool held_asked(const struct held *h)
{
	struct pollfd poll_fd = { .fd = h->fd, .events = POLLIN };

	if (h->kind == HELD_FUSE)
		return h->control->asked;
	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLIN;
}

/* Provides the pages again. */
static inline void held_release(struct held *h)
{
	if (h->kind == HELD_FUSE) {
		h->control->back = false;
	} else if (h->fd >= 0) {
		close(h->fd);
		h->fd = -1;
	}
}

static inline void held_unmap(struct held *h)
{
	held_release(h);
	munmap(h->memory, h->size);
	if (h->kind == HELD_FUSE) {
		close(h->fd);
		fuse_stop(h->dir, h->server);
		waitpid(h->server, NULL, 0);
		rmdir(h->dir);
		munmap(h->control, PAGE);
	}
}

#endif /* _SELFTESTS_HELD_H */
