/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GNU build-id of an ELF file, which is unique for each build of a program
 */
#ifndef PROFIL_TOOLS_BUILDID_H
#define PROFIL_TOOLS_BUILDID_H

#include "recording/format.h"

/**
 * buildid_of_fd - Read the build-id of a file
 * @fd: The file, ELF or not.
 * @id: Out: the build-id.
 *
 * Return: the length of the build-id, or 0 if the file has none.
 */
u32 buildid_of_fd(int fd, u8 id[FORMAT_BUILD_ID_MAX]);

#endif /* PROFIL_TOOLS_BUILDID_H */
