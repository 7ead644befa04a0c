/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions
 *
 * Binaries are looked into one at a time, and closed again; the symbols that were found belong to
 * struct symbols and stay as long as that does.
 */
#ifndef PROFIL_TOOLS_SYMBOLS_H
#define PROFIL_TOOLS_SYMBOLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "recording/format.h"

/**
 * struct symbol - A function
 * @name: Its name, demangled; NULL if it is only known that there is one function.
 * @start: Offset in the file of its first byte; 0 for code that moves.
 * @end: Offset past it.
 */
struct symbol {
	const char *name;
	u64 start;
	u64 end;
};

struct symbols;

/* @demangle: C++ and Rust names as their authors know them. NULL without memory. */
struct symbols *symbols_new(bool demangle);
void symbols_free(struct symbols *symbols);

enum binary_state {
	BINARY_FINE,
	BINARY_GONE,		/* not there any more */
	BINARY_CHANGED,		/* another file has that path now */
	BINARY_UNREADABLE,	/* it may not be read */
	BINARY_OTHER,		/* not an ELF file */
};

struct binary;

/**
 * binary_open - Look into a file
 * @symbols: Who shall own what is found.
 * @file: The file as it was when it was recorded.
 * @this_kernel: It was recorded on this kernel, so that its [vdso] is ours.
 *
 * Return: the binary; NULL only without memory. It is of no use unless its state is BINARY_FINE.
 */
struct binary *binary_open(struct symbols *symbols, const struct format_file *file,
			   bool this_kernel);
enum binary_state binary_state(const struct binary *binary);

/* The function that @offset in the file lies in, or NULL. */
const struct symbol *binary_find(struct binary *binary, u64 offset);
void binary_close(struct binary *binary);

/**
 * jit_open - What a process says of the code that it made
 * @symbols: Who shall own what is found.
 * @pid: The process: it wrote /tmp/perf-PID.map.
 * @owner: Who may own that file, beside root and ourselves.
 * @since: An older file is another process's; ns since 1970.
 *
 * Return: that, or NULL if it said nothing.
 */
struct jit *jit_open(struct symbols *symbols, pid_t pid, uid_t owner, u64 since);

/* The function that lies at @address, or NULL. */
const struct symbol *jit_find(struct jit *jit, u64 address);
void jit_close(struct jit *jit);

#endif /* PROFIL_TOOLS_SYMBOLS_H */
