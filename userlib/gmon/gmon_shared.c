// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions that a program compiled with gcc -pg calls, for the shared library: see gmon.c
 *
 * The startup code of the program calls these functions by name. If this library is preloaded or
 * linked, the startup code calls the functions in this file, not those of the C library. The C
 * library itself does not call them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/gmon.h>

#include "device.h"
#include "gmon.h"

static struct gmon_libc libc_functions(void)
{
	return (struct gmon_libc) {
		.monstartup = dlsym(RTLD_NEXT, "__monstartup"),
		.moncontrol = dlsym(RTLD_NEXT, "moncontrol"),
		.mcleanup = dlsym(RTLD_NEXT, "_mcleanup"),
		.profil = dlsym(RTLD_NEXT, "profil"),
	};
}

/* Returns 0 if the C library lacks these functions, or was loaded before this library. */
static int is_complete(const struct gmon_libc *libc)
{
	return libc->monstartup && libc->moncontrol && libc->mcleanup && libc->profil;
}

PROFIL_EXPORT void __monstartup(unsigned long lowpc, unsigned long highpc)
{
	const struct gmon_libc libc = libc_functions();

	if (is_complete(&libc))
		libprofil_gmon_start(&libc, lowpc, highpc);
}

/* On riscv64 the startup code of the program runs before the constructors of the C library. */
static __attribute__((constructor)) void have_environment(void)
{
	libprofil_gmon_environment();
}

PROFIL_EXPORT void monstartup(unsigned long lowpc, unsigned long highpc)
	__attribute__((alias("__monstartup")));

/* <sys/gmon.h> does not declare this function. */
void moncontrol(int mode);

PROFIL_EXPORT void moncontrol(int mode)
{
	const struct gmon_libc libc = libc_functions();

	if (is_complete(&libc))
		libprofil_gmon_control(&libc, mode);
}

PROFIL_EXPORT void _mcleanup(void)
{
	const struct gmon_libc libc = libc_functions();

	if (is_complete(&libc))
		libprofil_gmon_finish(&libc);
}
