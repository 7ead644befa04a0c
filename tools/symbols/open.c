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

int openat(int directory, const char *path, int flags, ...);
int openat64(int directory, const char *path, int flags, ...);
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

static unsigned int mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, unsigned int) : 0;
}

int open(const char *path, int flags, ...)
{
	unsigned int mode;
	va_list arguments;

	if (confined_is_here())
		return confined_open(path);
	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return openat(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	unsigned int mode;
	va_list arguments;

	if (confined_is_here())
		return confined_open(path);
	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return openat64(AT_FDCWD, path, flags, mode);
}
