/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of /proc/PID/maps
 */
#ifndef PROFIL_TOOLS_MAPS_H
#define PROFIL_TOOLS_MAPS_H

#include <linux/profil.h>

#include "util.h"

/* The generation of the file in a mapping that was read from /proc. */
#define MAPS_NO_GENERATION	UINT64_MAX

/*
 * Parses a line, which it changes. Returns the mapping as a record of the module describes it, with
 * the first address as the pc; or NULL. The caller frees it. @is_executable: Out.
 */
struct profil_record *maps_parse(char *line, bool *is_executable);

/*
 * Returns true if the path is that of memory without a file system: shared anonymous memory,
 * System V shared memory, huge pages, a memfd, or /dev/zero.
 */
bool maps_is_memory(const char *path);

/*
 * Reads memory of a process. Returns false, and sets errno, if it may not be read (EPERM), or if
 * that takes long (ETIMEDOUT): its pages can come from a server that does not answer.
 */
bool maps_read_memory(pid_t pid, u64 address, void *to, size_t size);

/* Returns true if the path is that of a removed file. */
bool maps_is_deleted(const char *path);

#endif /* PROFIL_TOOLS_MAPS_H */
