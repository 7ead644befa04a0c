/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory cgroups. Need root.
 */
#ifndef _SELFTESTS_CGROUP_H
#define _SELFTESTS_CGROUP_H

#include "kernel.h"

#define CGROUPS		"/sys/fs/cgroup"

/* Makes the cgroup @path, below CGROUPS. Returns NULL, or the reason for the failure. */
static inline const char *cgroup_make(const char *path)
{
	char current[PATH_MAX];

	if (geteuid())
		return "only root can make a cgroup";
	if (access(CGROUPS "/cgroup.controllers", F_OK))
		return CGROUPS " is not of version 2";
	if (file_write(CGROUPS "/cgroup.subtree_control", "+memory"))
		return "there is no memory controller";
	if (mkdir(path, 0755) && errno != EEXIST)
		return "the cgroup cannot be made";
	snprintf(current, sizeof(current), "%s/memory.current", path);
	return access(current, F_OK) ? "it has no memory.current" : NULL;
}

#endif /* _SELFTESTS_CGROUP_H */
