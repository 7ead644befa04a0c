/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens the files that the command writes
 *
 * Another user may have prepared the path, to read what is written, to stop the command, or to make
 * root overwrite a file. So symbolic links are not followed, files and FIFOs of other users are
 * refused, and so is a FIFO that nobody reads, because to open it would wait.
 */
#ifndef PROFIL_TOOLS_OUTPUT_H
#define PROFIL_TOOLS_OUTPUT_H

#include <fcntl.h>

#include "../util.h"

/* Only the user may read a new file, because it may contain the command line. */
#define OUTPUT_MODE	0600
/* O_NONBLOCK: a FIFO without a reader is an error, and a reader that stops cannot stop us. */
#define OUTPUT_FLAGS	(O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

/**
 * output_open - Open a file, a FIFO or a device for writing
 * @path: Its path.
 * @fd: Out: its descriptor, which does not block; or -1.
 * @is_new: Out: it was created; if NULL, it is not created.
 *
 * Nothing is written to an existing file.
 *
 * Return: NULL, also if the file does not exist and is not created; or the error message.
 */
const char *output_open(const char *path, int *fd, bool *is_new);

#endif /* PROFIL_TOOLS_OUTPUT_H */
