/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The section .gnu_debugdata of an ELF file: a compressed ELF file with the symbols of functions
 * that are not in .dynsym, which Fedora keeps in stripped files
 */
#ifndef PROFIL_TOOLS_DEBUGDATA_H
#define PROFIL_TOOLS_DEBUGDATA_H

#include "symbols/elf_file.h"

/* Loads liblzma, before a process is confined. */
void debugdata_load(void);

/*
 * Returns the file in the section; NULL if there is none. Sets @is_lost if it cannot be read. This
 * is for the confined process.
 */
Elf *debugdata_open(Elf *elf, bool *is_lost);

#endif /* PROFIL_TOOLS_DEBUGDATA_H */
