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
#include "recording/output.h"

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
 * leaves no incomplete profile. Returns NULL or the error message.
 */
static const char *open_output(struct outfile *file, FILE **out)
{
	const char *error = NULL;
	struct stat st;
	int fd = -1;

	if (file->path)
		error = output_open(file->path, &fd, NULL);
	else
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (error)
		return error;
	if (file->path && (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))) {
		if (fd >= 0)
			close(fd);
		file->temporary = xasprintf("%s.XXXXXX", file->path);
		fd = mkostemp(file->temporary, O_CLOEXEC);
	} else if (file->path) {
		/* A reader may be slower than we are. */
		fcntl(fd, F_SETFL, 0);
	}
	*out = fd < 0 ? NULL : fdopen(fd, "w");
	return *out ? NULL : strerror(errno);
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

bool outfile_write(struct outfile *file, const char *(*write)(FILE *out, const void *data),
		   const void *data)
{
	const char *path = file->path ?: "standard output", *reason = NULL, *error;
	FILE *out;

	error = open_output(file, &out);
	if (!error) {
		errno = 0;
		reason = write(out, data);
		if (!close_output(file, out, !reason))
			error = strerror(errno);
	}
	if (error)
		warnx("%s: %s", path, error);
	else if (reason)
		warnx("%s", reason);
	free(file->temporary);
	file->temporary = NULL;
	return !error && !reason;
}

/* The data of outfile_write_rows() */
struct formatted {
	const struct export_format *format;
	const struct rows *rows;
};

static const char *write_rows(FILE *out, const void *data)
{
	const struct formatted *formatted = data;

	return formatted->format->write(out, formatted->rows);
}

bool outfile_write_rows(struct outfile *file, const struct export_format *format,
			const struct rows *rows)
{
	const struct formatted formatted = { .format = format, .rows = rows };

	return outfile_write(file, write_rows, &formatted);
}
