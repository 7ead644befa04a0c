/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recognizes slow machines: debug kernels, and QEMU that emulates ARM or RISC-V
 */
#ifndef _SELFTESTS_SLOW_H
#define _SELFTESTS_SLOW_H

#include <stdbool.h>
#include <string.h>
#include <sys/utsname.h>

/* Returns true on the kernels of vm/run --debug and --debug=kcsan, and on ARM and RISC-V. */
static inline bool machine_is_slow(void)
{
#if defined(__aarch64__) || defined(__arm__) || defined(__riscv)
	return true;
#else
	struct utsname uts;

	return !uname(&uts) && (strstr(uts.release, "-debug") || strstr(uts.release, "-kcsan"));
#endif
}

#endif /* _SELFTESTS_SLOW_H */
