// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program compiled with gcc -pg calls, and what it may call, in the static library: see
 * gmon.c. The C library's own must be linked, too, since its mcount() wants its data. So ours have
 * names that the linker puts in the place of the others if it is told to, by
 *
 *	--wrap=__monstartup --wrap=monstartup --wrap=moncontrol --wrap=_mcleanup
 *
 * and is not told of otherwise.
 */
#include "gmon.h"

void __real___monstartup(unsigned long lowpc, unsigned long highpc);
void __real_moncontrol(int mode);
void __real__mcleanup(void);

/* profil() is ours here, and this is what the C library's calls it. */
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
