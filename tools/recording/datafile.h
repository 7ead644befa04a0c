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

/* Returns true if the file is a regular one, and not standard output. */
bool datafile_is_regular(const struct datafile *file);

/**
 * datafile_rotate - Continue in a new file
 * @file: The file, of which all has been written. Its descriptor remains open, for the caller.
 * @keep: How many complete files remain: with ".1" at the end of the path, the newest, to ".@keep".
 *
 * Return: NULL, or the error message. After success, @file->fd is that of the new file.
 */
const char *datafile_rotate(struct datafile *file, unsigned int keep);

/* Closes the file. Removes it if datafile_open() has created it. */
void datafile_abandon(struct datafile *file);

#endif /* PROFIL_TOOLS_DATAFILE_H */
