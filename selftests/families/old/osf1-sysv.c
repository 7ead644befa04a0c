/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts where its time is spent, as a program for System V did.
 */
#include <stdio.h>
#include <string.h>

extern void profil();
extern char *malloc();
static int crunch();
static unsigned long seed = 1;

#define BUFSIZE	(sizeof(unsigned short) * 256)

int
main(argc, argv)
	int argc;
	char *argv[];
{
	unsigned short *buff;
	int i, tries;
	long sum;

	if ((buff = (unsigned short *)malloc(BUFSIZE)) == NULL)
		return 1;
	(void)memset((char *)buff, 0, (int)BUFSIZE);

	/* This call has no effect, and does not fail. */
	profil(buff, 0, crunch, 077777);
	(void)crunch();
	for (i = 0; i < 256; i++)
		if (buff[i] != 0)
			return 2;

	profil(buff, BUFSIZE, crunch, 077777);
	for (sum = 0, tries = 0; sum < 3 && tries < 20000; tries++) {
		(void)crunch();
		for (sum = 0, i = 0; i < 256; i++)
			sum += *(volatile unsigned short *)&buff[i];
	}
	profil((unsigned short *)NULL, 0, 0, 1);
	(void)printf("%ld ticks\n", sum);
	return sum < 3 ? 3 : 0;
}

static int
crunch()
{
	register int i;

	for (i = 0; i < 500000; i++)
		seed = seed * 69069 + 1;
	return (int)(seed >> 16) & 077;
}
