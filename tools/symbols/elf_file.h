/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files in a confined process
 *
 * No file is mapped into memory: if it were truncated, the next access would end the process.
 */
#ifndef PROFIL_TOOLS_ELF_FILE_H
#define PROFIL_TOOLS_ELF_FILE_H

#include <gelf.h>
#include <libelf.h>

#include "symbols/confined.h"

/* An open ELF file, whose contents are read when they are needed, and its state when opened. */
struct elf_file {
	int fd;
	Elf *elf;
	struct stat st;
};

/**
 * elf_file_open - Read an ELF program or library
 * @file: Out: the file, which the caller closes, even if this fails.
 * @fd: Its descriptor, which belongs to @file from then on.
 *
 * Return: false if this is not a file in little-endian ELF.
 */
bool elf_file_open(struct elf_file *file, int fd);

/* Returns true if nobody has written to the file since it was opened. */
bool elf_file_unchanged(const struct elf_file *file);
void elf_file_close(struct elf_file *file);

/*
 * Returns the section after @scn, which is NULL at first, and its header and name; NULL after the
 * last one. The name is NULL if it is damaged.
 */
Elf_Scn *elf_section_next(Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr, const char **name);

/* Returns the contents of a section; NULL if it is empty or damaged. */
Elf_Data *elf_section_data(Elf_Scn *scn);

/*
 * Asks for the separate debug file of a program or library, which has the same build-id. Returns
 * false if there is none.
 */
bool debug_file_open(struct elf_file *debug, const struct elf_file *file,
		     const struct confined *confined);

/*
 * Asks for the common parts of debug files, to which @name leads. They have the build-id @id of
 * @len bytes.
 */
bool debug_common_open(struct elf_file *debug, const char *name, const u8 *id, u32 len,
		       const struct confined *confined);

#endif /* PROFIL_TOOLS_ELF_FILE_H */
