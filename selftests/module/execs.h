/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that executes itself some times, and then exits. Before each exec and before the exit
 * it takes memory, so that the kernel takes long to free it.
 */
#ifndef _SELFTESTS_EXECS_H
#define _SELFTESTS_EXECS_H

#include "device.h"

#include <stdlib.h>

#define EXECS		"PROFIL_EXECS"	/* how often the program still has to execute itself */
#define EXEC_MIB	8

static inline void grow(size_t mib)
{
	memset(map_small(mib << 20), 1, mib << 20);
}

static inline void exec_again(int times)
{
	char *const argv[] = { "again", NULL };
	char env[64];
	char *const envp[] = { env, NULL };

	grow(EXEC_MIB);
	snprintf(env, sizeof(env), EXECS "=%d", times);
	execve("/proc/self/exe", argv, envp);
	_exit(81);
}

__attribute__((constructor)) static void be_executed_again(void)
{
	const char *execs = getenv(EXECS);

	if (!execs)
		return;
	if (atoi(execs))
		exec_again(atoi(execs) - 1);
	grow(EXEC_MIB);
	_exit(0);
}

#endif /* _SELFTESTS_EXECS_H */
