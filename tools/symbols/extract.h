/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the functions of an ELF file from its symbol table, lines from its debug information, and
 * its unwind tables
 */
#ifndef PROFIL_TOOLS_EXTRACT_H
#define PROFIL_TOOLS_EXTRACT_H

#include "symbols/files.h"
#include "symbols/lookup.h"

/**
 * extract_functions - Find the functions at offsets in an ELF file
 * @lookup: The offsets. The functions in the results have offsets, too.
 * @file: The file.
 * @root: As for file_open(): where debug files are.
 * @path: The path of the file, for its link to a debug file; or NULL.
 * @names: The memory for the names of the functions.
 *
 * This does not read debug information, so it is fast enough for the end of a recording.
 * The results are valid if elf_file_unchanged() is true after this.
 */
void extract_functions(struct lookup *lookup, const struct elf_file *file, int root,
		       const char *path, struct obstack *names);

/* Finds the source lines and inlined functions, with the same arguments, after this. */
void lines_read(struct lookup *lookup, const struct elf_file *file, int root, const char *path,
		struct obstack *names);

/* Finds out where the return addresses are, after extract_functions(). */
void unwind_read(struct lookup *lookup, const struct elf_file *file);

#endif /* PROFIL_TOOLS_EXTRACT_H */
