/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that contain samples. They are written to the recording, so that it can be read
 * after a program was deleted or rebuilt, and on another machine.
 *
 * A descriptor stands for each program from its first sample to the end of the recording, when the
 * program is opened and read.
 */
#ifndef PROFIL_TOOLS_FUNCTIONS_H
#define PROFIL_TOOLS_FUNCTIONS_H

#include <linux/profil.h>

#include "recording/format.h"

/* If there is no memory, these functions exit, as xcalloc() does. */
struct functions *functions_new(void);
void functions_free(struct functions *functions);

/*
 * @file: format_file.id. @fd belongs to @functions from then on; -1: the file cannot be read.
 * Returns NULL if the functions of this file will not be written.
 */
struct source *functions_file(struct functions *functions, u32 file, int fd);

/* Notes a sample in a file. Does nothing if @source is NULL. */
void functions_sample(struct source *source, u64 offset);

/*
 * Notes a sample that is not in a file. @thread: format_thread.id of its thread. The names that a
 * JIT compiler writes are found only if the process exists at its first sample.
 */
void functions_address(struct functions *functions, u32 thread, const struct profil_record *record);

/*
 * Writes the functions that contain the samples. Returns the number of files of JIT compilers that
 * are too large to be read: the names of their functions are missing.
 */
int functions_write(struct functions *functions, struct format_writer *writer);

#endif /* PROFIL_TOOLS_FUNCTIONS_H */
