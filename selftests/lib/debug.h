/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recognizes debug kernels, which are slow
 */
#ifndef _SELFTESTS_DEBUG_H
#define _SELFTESTS_DEBUG_H

#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

/* Returns true on the kernels of vm/run --debug and --debug=kcsan. */
static inline bool kernel_checks_itself(void)
{
	struct utsname uts;

	return !uname(&uts) && (strstr(uts.release, "-debug") || strstr(uts.release, "-kcsan"));
}

#endif /* _SELFTESTS_DEBUG_H */
