/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the functions that a process has compiled at run time
 *
 * JIT compilers write them to /tmp/perf-PID.map, or to a file jit-PID.dump which they also map. PID
 * is the id of the process in its own PID namespace, and /tmp is in its own mount namespace. So the
 * directories must be found while the process exists. The files can be read later.
 *
 * A process that was forked has the code of its ancestors, and in shared memory that of its
 * relatives, so it has the names in their files, too.
 */
#ifndef PROFIL_TOOLS_JIT_H
#define PROFIL_TOOLS_JIT_H

#include "recording/format.h"
#include "symbols/lookup.h"

struct jit;

/*
 * Finds the directories of the process. Returns an object even if it does not exist any more.
 * @recording_start: CLOCK_BOOTTIME in ns at the start of the recording.
 */
struct jit *jit_open(pid_t pid, u64 recording_start);

/* The process shares the memory from @start to @end with others. */
void jit_add_shared(struct jit *jit, u64 start, u64 end);

/**
 * jit_read - Find the functions at addresses
 * @jit: The process, which may have ended. It owns the names of the functions. Is read once.
 * @lookup: The addresses.
 * @left: The bytes that may still be read, of all processes. This subtracts those of the files.
 * @why: Out: the reason why functions that were not found have no names. Its thread is not set.
 *
 * Return: the number of files that were not read because they are too large.
 */
int jit_read(struct jit *jit, struct lookup *lookup, off_t *left, struct format_nameless *why);
void jit_close(struct jit *jit);

#endif /* PROFIL_TOOLS_JIT_H */
