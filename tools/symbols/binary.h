/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads names in a confined process: those of a binary, and demangled ones
 */
#ifndef PROFIL_TOOLS_BINARY_H
#define PROFIL_TOOLS_BINARY_H

#include "symbols/confined.h"
#include "symbols/lookup.h"

/* A name, and what is printed for it. */
struct binary_name {
	const char *mangled;
	const char *demangled;
};

/**
 * struct binary - A binary to read
 * @lookup: The offsets to look up. It gets the results.
 * @fd: The file.
 * @root: As for file_open(): where debug files are.
 * @path: The path of the file, for its link to a debug file, and for servers of them; or NULL.
 * @lines: Find source lines and inlined functions, too.
 * @demangle: Demangle names.
 * @by_size: As in struct confined.
 * @parse: Parses a file of a JIT compiler, of @text_size bytes with a NUL behind them. NULL: @fd is
 *	an ELF file.
 *
 * @data: Out: the memory of the results, for binary_free().
 * @frames: Out: likewise.
 * @names: Out: the names whose demangled form differs.
 * @nr_names: Out: their number.
 * @is_elf: Out: the file is a program or library.
 * @problem: Out: the message for the user, if it could not be read.
 */
struct binary {
	struct lookup *lookup;
	int fd;
	int root;
	const char *path;
	bool lines;
	bool demangle;
	bool by_size;
	void (*parse)(struct lookup *lookup, char *text, size_t size);
	size_t text_size;

	u8 *data;
	struct frame *frames;
	struct binary_name *names;
	size_t nr_names;
	bool is_elf;
	char problem[CONFINED_PROBLEM];
};

/*
 * Finds the functions at the offsets. The functions in the results have offsets, too. Returns false
 * and clears the results if the binary could not be read.
 */
bool binary_read(struct binary *binary);

/*
 * Demangles the names, and adds those that differ to @binary->names. A name that cannot be
 * demangled within the limits is left out.
 */
void binary_demangle(struct binary *binary, const char *const *names, size_t nr);

void binary_free(struct binary *binary);

#endif /* PROFIL_TOOLS_BINARY_H */
