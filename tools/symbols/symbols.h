/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions, of binaries and of code that a JIT compiler has made
 *
 * Every symbol belongs to a struct symbols, and remains valid after the binary is closed.
 */
#ifndef PROFIL_TOOLS_SYMBOLS_H
#define PROFIL_TOOLS_SYMBOLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "recording/format.h"

/**
 * struct symbol - A function
 * @name: Its name, demangled; NULL if only its extent is known.
 * @start: Offset of its first byte in the file; 0 for JIT code, which may move.
 * @end: Offset of the byte after it.
 */
struct symbol {
	const char *name;
	u64 start;
	u64 end;
};

struct symbols;

/* @demangle: demangle C++ and Rust names. Returns NULL if there is no memory. */
struct symbols *symbols_new(bool demangle);
void symbols_free(struct symbols *symbols);

enum binary_state {
	BINARY_FINE,
	BINARY_GONE,		/* deleted */
	BINARY_CHANGED,		/* there is another file at the path now */
	BINARY_UNREADABLE,	/* no permission to read it */
	BINARY_OTHER,		/* not an ELF file */
};

struct binary;

/**
 * binary_open - Open a binary and read its symbols
 * @symbols: The owner of the symbols.
 * @file: The file as it was recorded.
 * @this_kernel: The recording was made with the running kernel, which has the same vDSO.
 *
 * Return: the binary, in any state; or NULL if there is no memory.
 */
struct binary *binary_open(struct symbols *symbols, const struct format_file *file,
			   bool this_kernel);
enum binary_state binary_state(const struct binary *binary);

/* Returns the function at @offset in the file, or NULL. */
const struct symbol *binary_find(struct binary *binary, u64 offset);
void binary_close(struct binary *binary);

/**
 * jit_open - Read the names of the functions that a process has compiled at run time
 * @symbols: The owner of the symbols.
 * @pid: The process, which has written /tmp/perf-PID.map.
 * @owner: A user who may own that file, besides root and the effective user.
 * @since: A time in ns since 1970. A file that is older is ignored, because another process with
 *	the same id wrote it.
 *
 * Return: the functions, or NULL if there is no such file.
 */
struct jit *jit_open(struct symbols *symbols, pid_t pid, uid_t owner, u64 since);

/* Returns the function at @address, or NULL. */
const struct symbol *jit_find(struct jit *jit, u64 address);
void jit_close(struct jit *jit);

#endif /* PROFIL_TOOLS_SYMBOLS_H */
