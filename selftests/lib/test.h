/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What most tests use beside the kernel's harness: headers of libc, and macros. Our harness
 * includes it. In a kernel's tree (make series), the tests include it after the kernel's harness.
 */
#ifndef _SELFTESTS_TEST_H
#define _SELFTESTS_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slow.h"

/* Skips the test if @cond is true, for the reason that follows: a format and its arguments. */
#define SKIP_IF(cond, ...) do {						\
	if (cond)							\
		SKIP(return, __VA_ARGS__);				\
} while (0)

/* For a setup: skips the test if @cond is true. In Linux 6.1, it would run after a SKIP(return). */
#define SKIP_SETUP_IF(cond, ...) do {					\
	if (cond)							\
		SKIP(longjmp(_metadata->env, 1), __VA_ARGS__);		\
} while (0)

#define NEED_ROOT(why)	SKIP_IF(geteuid(), "needs root: %s", why)

/* A test that is one statement */
#define TEST_F_CALL(fixture_name, test_name, ...)			\
	TEST_F(fixture_name, test_name)					\
	{								\
		__VA_ARGS__;						\
	}

/* Adds up @value for the numbers i below @nr for which @cond is true. */
#define SUM_IF(nr, cond, value) ({					\
	unsigned long long sum_ = 0;					\
									\
	for (size_t i = 0; i < (nr); i++)				\
		if (cond)						\
			sum_ += (value);				\
	sum_;								\
})

/* Checks that the call returns -1, and that it sets errno. */
#define EXPECT_ERROR(error, call) do {					\
	errno = 0;							\
	EXPECT_EQ(-1, call);						\
	EXPECT_EQ(error, errno);					\
} while (0)

#endif /* _SELFTESTS_TEST_H */
