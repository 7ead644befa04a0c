/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call frame information of an ELF file, in a confined process
 *
 * It tells for each instruction how the address of the caller's frame (the CFA) is computed, and
 * where registers of the caller are saved. Only the sections of the file itself are read, never
 * those of a debug file.
 */
#ifndef PROFIL_TOOLS_CFI_H
#define PROFIL_TOOLS_CFI_H

#include <elfutils/libdw.h>

#include "symbols/elf_file.h"

/**
 * struct cfi - The call frame information of a file
 * @cfi: For libdw; NULL if there is none.
 * @data: The contents of the section.
 * @address: The address of the section.
 * @is_eh: The section is .eh_frame; otherwise .debug_frame.
 */
struct cfi {
	Dwarf_CFI *cfi;
	Elf_Data *data;
	u64 address;
	bool is_eh;
};

/*
 * Finds the section .eh_frame, or else .debug_frame. @ignore_eh: only the latter. This does not set
 * @cfi->cfi, for which libdw reads all sections with debug information. Returns false if there is
 * none.
 */
bool cfi_find(struct cfi *cfi, Elf *elf, bool ignore_eh);

/*
 * Opens the section .eh_frame, or else .debug_frame. @ignore_eh: only the latter. The result is
 * valid until the process ends.
 */
struct cfi cfi_open(Elf *elf, bool ignore_eh);

/* Calls @add for each entry, with the addresses of the code that it describes. */
void cfi_read_entries(const struct cfi *cfi, Elf *elf,
		      void (*add)(void *data, u64 start, u64 end), void *data);

/* Returns true if Go compiled the file. */
bool elf_is_go(Elf *elf);

#endif /* PROFIL_TOOLS_CFI_H */
