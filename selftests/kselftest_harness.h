/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's harness. Its time limits are there to end what hangs: on the kernels that check
 * themselves (vm/debug-kernel) everything takes longer, so that there it waits longer.
 */
#ifndef _SELFTESTS_KSELFTEST_HARNESS_H
#define _SELFTESTS_KSELFTEST_HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static inline bool kernel_checks_itself(void)
{
	struct utsname uts;

	return !uname(&uts) && (strstr(uts.release, "-debug") || strstr(uts.release, "-kcsan"));
}

static inline unsigned int patient_alarm(unsigned int seconds)
{
	return alarm(kernel_checks_itself() ? 10 * seconds : seconds);
}

#define alarm patient_alarm
#include <kselftest_harness.h>
#undef alarm

#endif /* _SELFTESTS_KSELFTEST_HARNESS_H */
