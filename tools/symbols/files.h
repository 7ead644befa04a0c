/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens binaries and their separate debug files
 *
 * The names of these files are not trusted, so only regular files are opened: opening a device can
 * have effects. No file is mapped into memory: if it were truncated, the next access would kill
 * this process.
 */
#ifndef PROFIL_TOOLS_FILES_H
#define PROFIL_TOOLS_FILES_H

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include "../util.h"

/* Where separate debug files are. */
#define DEBUG_DIRECTORY	"/usr/lib/debug"
/* Longer build-ids are not read. */
#define BUILD_ID_MAX	32

/* An open ELF file, whose contents are read when they are needed, and its state when opened. */
struct elf_file {
	int fd;
	Elf *elf;
	struct stat st;
};

/**
 * file_open - Open a regular file for reading
 * @root: A directory that stands for the root directory, also for symbolic links; -1: the root
 *	directory of this process.
 * @path: The path.
 * @flags: 0 or O_NOFOLLOW.
 *
 * Return: the descriptor, or -1 with errno set: ENOEXEC if it is not a regular file.
 */
int file_open(int root, const char *path, int flags);

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

/* Reads the build-id of a file, ELF or not. Returns its length, or 0 if the file has none. */
u32 buildid_of_fd(int fd, u8 id[BUILD_ID_MAX]);

/* A build-id in hexadecimal digits */
struct buildid_text {
	char text[2 * BUILD_ID_MAX + 1];
};

struct buildid_text buildid_text(const u8 *id, u32 len);

/*
 * Returns the section after @scn, which is NULL at first, and its header and name; NULL after the
 * last one. The name is NULL if it is damaged.
 */
Elf_Scn *elf_section_next(Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr, const char **name);

/* Returns the contents of a section; NULL if it is empty, damaged or larger than @max. */
Elf_Data *elf_section_data(Elf_Scn *scn, u64 max);

/**
 * debug_file_open - Find the separate debug file of a program or library
 * @debug: Out: the debug file, which has the same build-id.
 * @file: The program or library.
 * @root: As for file_open().
 * @path: The path of @file; NULL: search by build-id only, and on this machine only.
 *
 * Return: false if there is none.
 */
bool debug_file_open(struct elf_file *debug, const struct elf_file *file, int root,
		     const char *path);

/* Opens @path, which is allocated and then freed, if it has the build-id @id of @len bytes. */
bool debug_file_try(struct elf_file *debug, int root, char *path, const u8 *id, u32 len);

/**
 * download_open - Get a file from the servers in the environment variable DEBUGINFOD_URLS
 * @kind: "executable" or "debuginfo".
 * @id: The build-id of the file, of @len bytes.
 *
 * Return: its descriptor; -1 if there is none, no server, or no libdebuginfod.
 */
int download_open(const char *kind, const u8 *id, u32 len);

#endif /* PROFIL_TOOLS_FILES_H */
