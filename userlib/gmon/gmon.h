/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBPROFIL_GMON_H
#define LIBPROFIL_GMON_H

#include <stddef.h>

/* The functions of the C library that this library replaces */
struct gmon_libc {
	void (*monstartup)(unsigned long lowpc, unsigned long highpc);
	void (*moncontrol)(int mode);
	void (*mcleanup)(void);
	int (*profil)(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale);
};

void libprofil_gmon_start(const struct gmon_libc *libc, unsigned long lowpc, unsigned long highpc);
void libprofil_gmon_environment(void);
void libprofil_gmon_control(const struct gmon_libc *libc, int mode);
void libprofil_gmon_finish(const struct gmon_libc *libc);

#endif /* LIBPROFIL_GMON_H */
