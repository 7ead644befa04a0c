/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls of all families, for tests of several. The headers of the other families define
 * structures and macros of the same names.
 */
#ifndef _SELFTESTS_CALLS_H
#define _SELFTESTS_CALLS_H

#include <profil/glibc.h>
#include <profil/illumos.h>
#include <profil/n64.h>

int profil_bsd(char *samples, size_t size, unsigned long offset, unsigned int scale);
int add_profil(char *samples, size_t size, unsigned long offset, unsigned int scale);
void profil_osf1(unsigned short *buffer, unsigned int size, void *offset, unsigned int scale);
int profil_aix(void *buffer, unsigned int size, unsigned long offset, unsigned int scale);
int sprofil_hpux(void *profp, int profcnt, struct timeval *tvp, unsigned int flags);

struct prof_aix {
	char *p_low;
	char *p_high;
	void *p_buff;
	int p_bufsize;
	unsigned int p_scale;
};

struct prof_hpux {
	void *pr_base;
	unsigned int pr_size;
	void *pr_offset;
	unsigned int pr_scale;
};

#define PROF_UINT_HPUX	1

#endif /* _SELFTESTS_CALLS_H */
