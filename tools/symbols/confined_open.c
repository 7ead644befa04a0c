// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replaces open(), which the C library allows
 *
 * libdw opens the files of split debug information (.dwo) itself, and nobody can give them to it.
 * A confined process cannot open files, so it asks for them. This file includes no header that
 * declares these functions, because such a declaration can also define them.
 */
#include <linux/fcntl.h>
#include <stdarg.h>

#include "symbols/confined.h"

int openat64(int directory, const char *path, int flags, ...);
int open(const char *path, int flags, ...);

int open(const char *path, int flags, ...)
{
	unsigned int mode = 0;
	va_list arguments;

	if (confined_is_here())
		return confined_open(path);
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(arguments, flags);
		mode = va_arg(arguments, unsigned int);
		va_end(arguments);
	}
	/* All of this program can use large files. */
	return openat64(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
