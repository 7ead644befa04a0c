/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file to which a recorder writes
 *
 * The file is opened, checked and locked before the command starts, and is not changed until then.
 * An existing recording is never written to: it is renamed, and a new file gets its name. So nobody
 * who had the old file open can read the new recording, which contains the command's arguments.
 */
#ifndef PROFIL_TOOLS_DATAFILE_H
#define PROFIL_TOOLS_DATAFILE_H

#include "../util.h"

/**
 * struct datafile - The file to which a recorder writes
 * @path: Its path; "-" is standard output.
 * @fd: Its descriptor, which holds its lock; or the descriptor of the existing recording before
 *	datafile_start(). -1 if there is none.
 * @is_new: datafile_open() has created the file.
 * @exists: There is a recording to keep.
 */
struct datafile {
	const char *path;
	int fd;
	bool is_new;
	bool exists;
};

/* Opens the file for @path. Returns NULL, or the error message; then nothing has changed. */
const char *datafile_open(struct datafile *file, const char *path);

/**
 * datafile_start - Replace an existing recording
 * @file: The file. An existing recording is renamed to its path with ".old" at the end.
 *
 * Return: NULL, or the error message. In both cases, @file->fd can be written to, or is -1.
 */
const char *datafile_start(struct datafile *file);

/* Closes the file. Removes it if datafile_open() has created it. */
void datafile_abandon(struct datafile *file);

#endif /* PROFIL_TOOLS_DATAFILE_H */
