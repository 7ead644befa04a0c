/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The program that a child executes: the test itself, or a copy of it. What it does is in
 * PROFIL_NEW_PROGRAM in its environment:
 *
 * loop		runs loop 7 for ever
 * spend	runs a loop for two ticks, and exits
 * exit		exits at once
 * a number	executes itself so many times, and exits. Before each exec and before the exit it
 *		takes memory, so that the kernel takes long to free it.
 */
#ifndef _SELFTESTS_PROGRAM_H
#define _SELFTESTS_PROGRAM_H

#include "loop.h"

#include <ctype.h>
#include <stdlib.h>

#define SELF		"/proc/self/exe"
#define NEW_PROGRAM	"PROFIL_NEW_PROGRAM"
#define NEW_LOOP	7U
#define EXEC_MIB	8

static char *const new_argv[] = { "a new program", NULL };
static char *const new_envp[] = { NEW_PROGRAM "=loop", NULL };

/* @env: what the program does, for example NEW_PROGRAM "=exit". A function of a thread. */
static inline void *exec_new_program(void *env)
{
	char *const envp[] = { env, NULL };

	execve(SELF, new_argv, envp);
	_exit(40);
}

static inline void grow(size_t mib)
{
	memset(map_small(mib << 20), 1, mib << 20);
}

static inline void exec_again(int times)
{
	char env[64];

	grow(EXEC_MIB);
	snprintf(env, sizeof(env), NEW_PROGRAM "=%d", times);
	exec_new_program(env);
}

__attribute__((constructor)) static void new_program(void)
{
	const char *what = getenv(NEW_PROGRAM);

	if (!what)
		return;
	if (!strcmp(what, "loop"))
		loop_for_ever((void *)(uintptr_t)NEW_LOOP);
	if (!strcmp(what, "spend"))
		loop_spend(0, 2, 4000000);
	if (isdigit(*what)) {
		if (atoi(what))
			exec_again(atoi(what) - 1);
		grow(EXEC_MIB);
	}
	_exit(0);
}

#endif /* _SELFTESTS_PROGRAM_H */
