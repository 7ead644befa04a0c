/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs in a family's own idiom: old/NAME.c, which lies beside the test as old-NAME
 */
#ifndef _SELFTESTS_OLD_H
#define _SELFTESTS_OLD_H

#include "process.h"

#include <libgen.h>
#include <limits.h>

/*
 * Runs @program, which lies beside this one, with @preload as LD_PRELOAD, if not NULL: its exit
 * status, or 128 + the signal that killed it.
 */
static inline int run_beside(const char *program, const char *preload)
{
	char self[PATH_MAX] = "", path[PATH_MAX + NAME_MAX];
	pid_t child;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", dirname(self), program);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		else
			unsetenv("LD_PRELOAD");
		/* What it says is no TAP. */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(path, path, NULL);
		_exit(127);
	}
	return status_of(child);
}

#endif /* _SELFTESTS_OLD_H */
