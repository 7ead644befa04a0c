/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The GNU build-id of an ELF file: what tells one build of a program from all others
 */
#ifndef PROFIL_TOOLS_BUILDID_H
#define PROFIL_TOOLS_BUILDID_H

#include "recording/format.h"

/**
 * buildid_of_fd - Read it
 * @fd: The file, which may be anything.
 * @id: Out: the build-id.
 *
 * Return: its length, or 0 if the file has none.
 */
u32 buildid_of_fd(int fd, u8 id[FORMAT_BUILD_ID_MAX]);

#endif /* PROFIL_TOOLS_BUILDID_H */
