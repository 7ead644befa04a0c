/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles two routines of a program for NeXT. Their code is far apart in memory.
 */
#include <stdio.h>
#include <string.h>

#define NBINS 128

extern int profil(), add_profil();

static unsigned short here[NBINS], there[NBINS];
static volatile unsigned long sum;

static int near_by()
{
	int i;

	for (i = 0; i < 500000; i++)
		sum += i;
	return 0;
}

__attribute__((section("far_away"))) static int far_off()
{
	int i;

	for (i = 0; i < 500000; i++)
		sum -= i;
	return 0;
}

static unsigned int total(bins)
	volatile unsigned short *bins;
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < NBINS; i++)
		n += bins[i];
	return n;
}

int main()
{
	unsigned int before;
	int i;

	if (profil((char *)here, sizeof(here), near_by, 0x10000) ||
	    add_profil((char *)there, sizeof(there), far_off, 0x10000)) {
		perror("profil");
		return 1;
	}
	for (i = 0; i < 20000 && (total(here) < 3 || total(there) < 3); i++) {
		near_by();
		far_off();
	}
	if (total(here) < 3 || total(there) < 3) {
		printf("here %u, there %u\n", total(here), total(there));
		return 2;
	}
	/* The next call of profil() removes the areas that add_profil() has added. */
	if (profil((char *)here, sizeof(here), near_by, 0x10000))
		return 3;
	before = total(there);
	for (i = 0; i < 50; i++)
		far_off();
	profil((char *)0, 0, 0, 0);
	return total(there) == before ? 0 : 4;
}
