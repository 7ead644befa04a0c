/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs that tests run, and that are installed beside them: for example, old-NAME is a program
 * in the style of a historical family, families/old/NAME.c
 */
#ifndef _SELFTESTS_OLD_H
#define _SELFTESTS_OLD_H

#include "process.h"

#include <libgen.h>
#include <limits.h>

/* Returns the path of a file in the directory of this program, until the next call. */
static inline const char *path_beside(const char *name)
{
	static char path[PATH_MAX + NAME_MAX];
	char self[PATH_MAX] = "";

	MUST(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/%s", dirname(self), name);
	return path;
}

/* Returns the command of the environment variable PROFIL, or of the tree, or the installed one. */
static inline const char *profil_command(void)
{
	const char *path = path_beside("../../tools/profil");

	return getenv("PROFIL") ?: access(path, X_OK) ? "profil" : path;
}

/**
 * run_beside() - Run a program from the directory of this one
 * @program: its file name
 * @preload: its LD_PRELOAD, or NULL
 *
 * Its standard output goes to standard error, since it is not TAP.
 *
 * Return: its exit status, or 128 + the signal that killed it.
 */
static inline int run_beside(const char *program, const char *preload)
{
	const char *path = path_beside(program);

	return status_of(FORK({
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		else
			unsetenv("LD_PRELOAD");
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(path, path, NULL);
		_exit(127);
	}));
}

/* A test that runs @program, which must succeed. */
#define TEST_RUNS_BESIDE(test_name, program)			\
	TEST(test_name)						\
	{							\
		EXPECT_EQ(0, run_beside(program, NULL));	\
	}

#endif /* _SELFTESTS_OLD_H */
