// SPDX-License-Identifier: GPL-2.0-or-later
/* See output.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/output.h"

static const char *open_error(void)
{
	switch (errno) {
	case ELOOP:
		return "it is a symbolic link; remove it, or write to another file";
	case ENXIO:
		return "no process has opened this FIFO for reading";
	default:
		return strerror(errno);
	}
}

static const char *check_existing(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (S_ISCHR(st.st_mode))
		return NULL;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return "not a regular file";
	if (st.st_uid != geteuid())
		return "it belongs to another user; remove it, or write to another file";
	return NULL;
}

const char *output_open(const char *path, int *fd, bool *is_new)
{
	const char *error;

	*fd = -1;
	if (is_new) {
		*fd = open(path, OUTPUT_FLAGS | O_CREAT | O_EXCL, OUTPUT_MODE);
		*is_new = *fd >= 0;
		if (*is_new || errno != EEXIST)
			return *is_new ? NULL : strerror(errno);
	}
	*fd = open(path, OUTPUT_FLAGS);
	if (*fd < 0)
		return errno == ENOENT && !is_new ? NULL : open_error();
	error = check_existing(*fd);
	if (error) {
		close(*fd);
		*fd = -1;
	}
	return error;
}
