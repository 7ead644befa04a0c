/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the functions that a process has compiled at run time
 *
 * JIT compilers write them to /tmp/perf-PID.map, or to a file jit-PID.dump which they also map. PID
 * is the id of the process in its own PID namespace, and /tmp is in its own mount namespace. So the
 * files must be opened while the process exists. They can be read later.
 */
#ifndef PROFIL_TOOLS_JIT_H
#define PROFIL_TOOLS_JIT_H

#include "symbols/lookup.h"

struct jit;

/* Returns NULL if the process does not exist or may not be read. */
struct jit *jit_open(pid_t pid);

/**
 * jit_read - Find the functions at addresses
 * @jit: The process, which may have ended. It owns the names of the functions. Is read once.
 * @lookup: The addresses.
 * @left: The bytes that may still be read, of all processes. This subtracts those of the files.
 *
 * Return: the number of files that were not read because they are too large.
 */
int jit_read(struct jit *jit, struct lookup *lookup, off_t *left);
void jit_close(struct jit *jit);

#endif /* PROFIL_TOOLS_JIT_H */
