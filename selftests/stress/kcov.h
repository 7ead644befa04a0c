/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Records which places of the module were reached (CONFIG_KCOV; Kbuild enables it only for this
 * purpose), and keeps the decisions of calls that were the first to reach a place, so that other
 * calls can repeat most of them
 */
#ifndef _SELFTESTS_KCOV_H
#define _SELFTESTS_KCOV_H

#include "chance.h"

#include <linux/kcov.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define KCOV		"/sys/kernel/debug/kcov"
#define KCOV_WORDS	(16UL << 10)
#define KCOV_PLACES	(1U << 15)
#define KCOV_KEPT	2048U

/* Shared by all processes. */
struct kcov_shared {
	atomic_uint nr_places, nr_kept;
	atomic_ullong places[KCOV_PLACES];	/* program counters, by a hash of them */
	struct tape kept[KCOV_KEPT];
};

/* The buffer of this thread: the kernel writes the number of entries, then each pc. Or NULL. */
static __thread volatile u64 *kcov;

/* Opens KCOV for one thread. Returns a descriptor, or a negative errno. */
static inline int kcov_open(void)
{
	int fd = open(KCOV, O_RDWR | O_CLOEXEC), err;

	if (fd < 0 || !ioctl(fd, KCOV_INIT_TRACE, KCOV_WORDS))
		return fd < 0 ? -errno : fd;
	err = -errno;
	close(fd);
	return err;
}

/* Starts to record this thread. */
static inline void kcov_begin(int fd)
{
	void *p = mmap(NULL, KCOV_WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	kcov = NULL;
	if (p == MAP_FAILED)
		return;
	/* EBUSY: recording was started before the exec. */
	if (ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC) && errno != EBUSY)
		munmap(p, KCOV_WORDS * 8);
	else
		kcov = p;
}

static inline void kcov_end(void)
{
	if (kcov)
		munmap((void *)kcov, KCOV_WORDS * 8);
	kcov = NULL;
}

/* Adds @pc. Returns true if no thread has reached it before. */
static inline bool kcov_add(struct kcov_shared *shared, u64 pc)
{
	u32 at = pc * 0x9e3779b97f4a7c15ULL >> 40;
	unsigned long long there;

	for (u32 tries = 0; tries < 100; tries++, at++) {
		there = shared->places[at % KCOV_PLACES];
		if (!there && atomic_compare_exchange_strong(&shared->places[at % KCOV_PLACES],
							     &there, pc)) {
			shared->nr_places++;
			return true;
		}
		if (there == pc)
			return false;
	}
	return false;
}

/* Returns true if this thread has reached a new place since the last call of this function. */
static inline bool kcov_look(struct kcov_shared *shared)
{
	bool new = false;

	if (!kcov)
		return false;
	for (u64 n = kcov[0]; n; n--)
		new |= kcov_add(shared, kcov[n]);
	kcov[0] = 0;
	return new;
}

static inline void kcov_keep(struct kcov_shared *shared, const struct tape *tape)
{
	shared->kept[shared->nr_kept++ % KCOV_KEPT] = *tape;
}

/*
 * Fills @tape with the decisions of a random kept call. In one of four cases keeps only those
 * before a random one. Then changes up to three.
 */
static inline void kcov_recall(struct kcov_shared *shared, struct actor *a, struct tape *tape)
{
	u32 n = shared->nr_kept < KCOV_KEPT ? shared->nr_kept : KCOV_KEPT;

	if (!n)
		return;
	*tape = shared->kept[any(a, n)];
	tape->n = one_in(a, 4) ? any(a, tape->at + 1) : tape->at;
	tape->at = 0;
	for (n = any(a, 4); n && tape->n; n--)
		tape->numbers[any(a, tape->n)] = any(a, UINT32_MAX);
}

#endif /* _SELFTESTS_KCOV_H */
