// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See datafile.h. Only a process that holds the lock of a file may rename or remove it. The lock
 * belongs to the open file, so one descriptor stays open from the check to the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/datafile.h"
#include "recording/output.h"

/* Returns false if another recorder has locked the file. */
static bool lock_file(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	/* Ignore other errors, because some file systems do not support locks. */
	return !fcntl(fd, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES);
}

/* Returns true if the path still leads to the open file. */
static bool is_at_path(const struct datafile *file)
{
	struct stat opened, found;

	return !fstat(file->fd, &opened) && !lstat(file->path, &found) &&
	       opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

static const char *open_stdout(struct datafile *file)
{
	struct stat st;

	if (isatty(STDOUT_FILENO))
		return "a recording cannot be written to a terminal";
	/* The inherited descriptor would share the flag O_NONBLOCK with other processes. */
	if (!fstat(STDOUT_FILENO, &st) && S_ISFIFO(st.st_mode))
		file->fd = open("/proc/self/fd/1", OUTPUT_FLAGS & ~O_NOFOLLOW);
	if (file->fd < 0)
		file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	return file->fd < 0 ? strerror(errno) : NULL;
}

/* Returns true if the existing recording can be renamed to PATH.old. */
static bool check_old(const struct datafile *file)
{
	char *old = xasprintf("%s.old", file->path);
	int fd = open(old, OUTPUT_FLAGS);
	struct stat st;
	bool fine = fd < 0 ? errno == ENOENT :
		    !fstat(fd, &st) && S_ISREG(st.st_mode) && lock_file(fd);

	if (fd >= 0)
		close(fd);
	free(old);
	return fine;
}

/* To rename a file, its directory is changed. */
static bool can_rename(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? xstrndup(path, slash + 1 - path) : xstrdup(".");
	bool can = !faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS);

	free(dir);
	return can;
}

static const char *check_existing(struct datafile *file)
{
	struct stat st;

	if (fstat(file->fd, &st))
		return strerror(errno);
	if (S_ISCHR(st.st_mode))
		return isatty(file->fd) ? "a recording cannot be written to a terminal" : NULL;
	if (S_ISFIFO(st.st_mode))
		return NULL;
	if (!lock_file(file->fd))
		return "another recorder is writing to it";
	if (st.st_size && !check_old(file))
		return "the file with .old at the end is not a regular file, or is in use";
	if (!can_rename(file->path))
		return "nothing can be renamed in its directory";
	file->exists = true;
	return NULL;
}

const char *datafile_open(struct datafile *file, const char *path)
{
	const char *error;

	*file = (struct datafile){ .path = path, .fd = -1 };
	if (!strcmp(path, "-"))
		return open_stdout(file);
	error = output_open(path, &file->fd, &file->is_new);
	if (!error && !file->is_new) {
		error = check_existing(file);
	} else if (!error && !lock_file(file->fd)) {
		file->is_new = false;
		error = "another recorder is writing to it";
	}
	if (error)
		datafile_abandon(file);
	return error;
}

/* Renames the existing recording, or removes it if it is empty. */
static const char *keep_existing(const struct datafile *file)
{
	struct stat st;
	const char *error;
	char *old;

	if (!is_at_path(file) || fstat(file->fd, &st))
		return NULL;
	if (!st.st_size)
		return unlink(file->path) ? strerror(errno) : NULL;
	old = xasprintf("%s.old", file->path);
	error = rename(file->path, old) ? strerror(errno) : NULL;
	free(old);
	return error;
}

/* Creates the file anew. On failure, @file->fd is -1. */
static const char *create_file(struct datafile *file)
{
	const char *error = NULL;

	file->fd = open(file->path, OUTPUT_FLAGS | O_CREAT | O_EXCL, OUTPUT_MODE);
	if (file->fd < 0)
		error = errno == EEXIST ? "another recorder is writing to it" : strerror(errno);
	else if (!lock_file(file->fd))
		error = "another recorder is writing to it";
	if (error && file->fd >= 0) {
		close(file->fd);
		file->fd = -1;
	}
	return error;
}

const char *datafile_start(struct datafile *file)
{
	const char *error;
	int old = file->fd;

	if (!file->exists)
		return NULL;
	error = keep_existing(file);
	file->fd = -1;
	if (!error)
		error = create_file(file);
	close(old);
	return error;
}

bool datafile_is_regular(const struct datafile *file)
{
	struct stat st;

	return strcmp(file->path, "-") && !fstat(file->fd, &st) && S_ISREG(st.st_mode);
}

/* Renames FILE.@number to FILE.(@number + 1). FILE.0 is the file itself. */
static bool rename_number(const struct datafile *file, unsigned int number)
{
	char *from = number ? xasprintf("%s.%u", file->path, number) : xstrdup(file->path);
	char *to = xasprintf("%s.%u", file->path, number + 1);
	bool done = !rename(from, to) || errno == ENOENT;

	free(from);
	free(to);
	return done;
}

const char *datafile_rotate(struct datafile *file, unsigned int keep)
{
	for (unsigned int number = keep; number-- > 0;)
		if ((number || is_at_path(file)) && !rename_number(file, number))
			return strerror(errno);
	return create_file(file);
}

void datafile_abandon(struct datafile *file)
{
	if (file->is_new && is_at_path(file))
		unlink(file->path);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	file->is_new = false;
}
