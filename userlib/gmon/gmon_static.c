// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions that a program compiled with gcc -pg calls, for the static library: see gmon.c
 *
 * The functions of the C library must be linked, too, because its mcount() needs their data. So our
 * functions are named __wrap_*(), and the linker calls them instead of those of the C library if it
 * is given the options
 *
 *	--wrap=__monstartup --wrap=monstartup --wrap=moncontrol --wrap=_mcleanup
 *
 * Without these options, our functions are not linked.
 */
#include "gmon.h"

void __real___monstartup(unsigned long lowpc, unsigned long highpc);
void __real_moncontrol(int mode);
void __real__mcleanup(void);

/* Another name of the C library's profil(): here, the name profil() is our function. */
int __profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale);

static const struct gmon_libc libc = {
	.monstartup = __real___monstartup,
	.moncontrol = __real_moncontrol,
	.mcleanup = __real__mcleanup,
	.profil = __profil,
};

void __wrap___monstartup(unsigned long lowpc, unsigned long highpc);
void __wrap_monstartup(unsigned long lowpc, unsigned long highpc);
void __wrap_moncontrol(int mode);
void __wrap__mcleanup(void);

void __wrap___monstartup(unsigned long lowpc, unsigned long highpc)
{
	libprofil_gmon_start(&libc, lowpc, highpc);
}

void __wrap_monstartup(unsigned long lowpc, unsigned long highpc)
{
	libprofil_gmon_start(&libc, lowpc, highpc);
}

void __wrap_moncontrol(int mode)
{
	libprofil_gmon_control(&libc, mode);
}

void __wrap__mcleanup(void)
{
	libprofil_gmon_finish(&libc);
}
