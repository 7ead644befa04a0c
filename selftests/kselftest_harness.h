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
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static inline unsigned int patient_alarm(unsigned int seconds)
{
	struct utsname uts;

	if (!uname(&uts) && (strstr(uts.release, "-debug") || strstr(uts.release, "-kcsan")))
		seconds *= 10;
	return alarm(seconds);
}

#define alarm patient_alarm
#include <kselftest_harness.h>
#undef alarm

#endif /* _SELFTESTS_KSELFTEST_HARNESS_H */
