/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests of profil() and of the historical calls, which share one session: its state, the
 * library's descriptor of it, and the signal that it leaves to the program
 */
#ifndef _SELFTESTS_CLASSIC_H
#define _SELFTESTS_CLASSIC_H

#include "kselftest_harness.h"

#include "process.h"

#define SCOPE	PROFIL_SCOPE_PROCESS

/* glibc declares the buffer nonnull, and the compiler believes it. */
static unsigned short *volatile null __attribute__((unused));

/* Checks that the call returns 0, and leaves errno alone. */
#define EXPECT_NO_ERROR(call) do {		\
	errno = 12345;				\
	EXPECT_EQ(0, call);			\
	EXPECT_EQ(12345, errno);		\
} while (0)

/* For a setup */
#define ASSERT_IS_OFF() do {			\
	ASSERT_DEVICE();			\
	ASSERT_TRUE(is_off(SCOPE));		\
} while (0)

/* For a test, or its teardown: profiling is off, and nothing is locked. */
#define EXPECT_IS_OFF() do {			\
	EXPECT_TRUE(is_off(SCOPE));		\
	EXPECT_EQ(0, pinned_bytes());		\
} while (0)

#define EXPECT_IS_ON()	EXPECT_EQ(PROFIL_STATE_ON, state_of(SCOPE))

/*
 * Returns the descriptor that the library keeps while profiling is on, or -1. Of the device's
 * others only device_fd() is open.
 */
static inline int kept_descriptor(void)
{
	struct stat device, st;

	if (fstat(device_fd(), &device))
		return -1;
	for (int fd = 0; fd < sysconf(_SC_OPEN_MAX); fd++)
		if (fd != device_fd() && !fstat(fd, &st) && st.st_rdev == device.st_rdev)
			return fd;
	return -1;
}

/* Opens descriptors until there is no free one. Returns the last, or -1. */
static inline int take_all_descriptors(void)
{
	int fd, last = -1;

	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	return errno == EMFILE ? last : -1;
}

/*
 * SIGPROF and ITIMER_PROF
 */

static volatile sig_atomic_t alarms;

static inline void on_sigprof(int sig)
{
	(void)sig;
	alarms++;
}

/* While a profile is on: the library does not use them. Then the program does. */
static inline void expect_sigprof_is_free(struct __test_metadata *_metadata)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct itimerval timer, none = {};
	struct sigaction action;

	ASSERT_EQ(0, sigaction(SIGPROF, NULL, &action));
	EXPECT_EQ(SIG_DFL, action.sa_handler);
	ASSERT_EQ(0, getitimer(ITIMER_PROF, &timer));
	EXPECT_EQ(0, memcmp(&none, &timer, sizeof(timer)));
	ASSERT_NE(SIG_ERR, signal(SIGPROF, on_sigprof));
	ASSERT_EQ(0, setitimer(ITIMER_PROF, &often, NULL));
}

#endif /* _SELFTESTS_CLASSIC_H */
