// SPDX-License-Identifier: GPL-2.0-or-later
/* See outfile.h. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "commands/outfile.h"

void outfile_set_path(struct outfile *file, const char *path)
{
	file->path = strcmp(path, "-") ? path : NULL;
}

bool outfile_check(const struct outfile *file, const char *input)
{
	struct stat in, out;

	if (!file->path || stat(file->path, &out) || stat(input, &in) ||
	    in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return true;
	warnx("%s: the output is the recording", file->path);
	return false;
}

/*
 * Opens the output. A regular file has a temporary name until it is complete, so that an error
 * leaves no incomplete profile. Returns NULL with errno set on failure.
 */
static FILE *open_output(struct outfile *file)
{
	struct stat st;
	int fd;

	if (!file->path) {
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	} else if (!lstat(file->path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(file->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	} else {
		file->temporary = xasprintf("%s.XXXXXX", file->path);
		fd = mkostemp(file->temporary, O_CLOEXEC);
	}
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Closes the file, and gives it its name if @done. Returns false with errno set. */
static bool close_output(struct outfile *file, FILE *out, bool done)
{
	int error = 0;

	if (ferror(out))
		error = errno ?: EIO;
	if (fclose(out) && !error)
		error = errno;
	if (done && !error && file->temporary && rename(file->temporary, file->path))
		error = errno;
	if ((!done || error) && file->temporary)
		unlink(file->temporary);
	errno = error;
	return !error;
}

bool outfile_write(struct outfile *file, const struct export_format *format,
		   const struct rows *rows)
{
	const char *path = file->path ?: "standard output", *reason = NULL;
	FILE *out = open_output(file);
	bool done = out;

	if (out) {
		errno = 0;
		reason = format->write(out, rows);
		done = close_output(file, out, !reason);
	}
	if (!done)
		warn("%s", path);
	else if (reason)
		warnx("%s", reason);
	free(file->temporary);
	file->temporary = NULL;
	return done && !reason;
}
