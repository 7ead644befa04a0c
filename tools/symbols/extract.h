/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the functions of an ELF file from its symbol table, its linkage tables and its unwind
 * tables, and lines from its debug information, in a confined process
 */
#ifndef PROFIL_TOOLS_EXTRACT_H
#define PROFIL_TOOLS_EXTRACT_H

#include "symbols/elf_file.h"
#include "symbols/lookup.h"

/**
 * extract_functions - Find the functions at offsets in an ELF file
 * @lookup: The offsets. The functions in the results have offsets, too.
 * @file: The file.
 * @confined: Asks for debug files.
 *
 * The results point into the files, which remain open until the process ends. This does not read
 * debug information, so it is fast enough for the end of a recording.
 */
void extract_functions(struct lookup *lookup, const struct elf_file *file,
		       const struct confined *confined);

/* Finds the source lines and inlined functions, with the same arguments, after this. */
void lines_read(struct lookup *lookup, const struct elf_file *file,
		const struct confined *confined);

/* Finds out where the return addresses are, after extract_functions(). */
void callers_read(struct lookup *lookup, const struct elf_file *file);

#endif /* PROFIL_TOOLS_EXTRACT_H */
