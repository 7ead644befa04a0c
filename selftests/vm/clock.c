// SPDX-License-Identifier: GPL-2.0
/*
 * vm/run --clock N preloads this library into QEMU. CLOCK_MONOTONIC, from which QEMU makes the
 * guest's time, then runs N times as fast. PROFIL_VM_CLOCK is N.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define SECOND 1000000000LL

static long long faster = 1, start;

static long long ns_of(const struct timespec *t)
{
	return t->tv_sec * SECOND + t->tv_nsec;
}

static struct timespec timespec_of(long long ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static __typeof__(clock_gettime) *next;
	int ret;

	if (!next)
		next = dlsym(RTLD_NEXT, "clock_gettime");
	ret = next(clock, t);
	if (!ret && clock == CLOCK_MONOTONIC)
		*t = timespec_of(start + (ns_of(t) - start) * faster);
	return ret;
}

/* QEMU waits here for the next of its timers. */
int ppoll(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask)
{
	static __typeof__(ppoll) *next;
	struct timespec t;

	if (!next)
		next = dlsym(RTLD_NEXT, "ppoll");
	if (timeout)
		t = timespec_of(ns_of(timeout) / faster);
	return next(fds, nr, timeout ? &t : NULL, mask);
}

/* Not strtol(): with the guest's libc, its name may be one that the host's libc lacks. */
static void __attribute__((constructor)) read_clock(void)
{
	const char *text = getenv("PROFIL_VM_CLOCK");
	struct timespec t;
	int n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (*text++ - '0');
	clock_gettime(CLOCK_MONOTONIC, &t);
	start = ns_of(&t);
	faster = n;
}
