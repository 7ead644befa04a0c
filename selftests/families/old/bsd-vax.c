/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles a routine as a program for 4.3BSD did: without prototypes, with int for everything.
 */
#include <stdio.h>

char	*calloc();
int	profil();
int	busy();

long	acc;

main(argc, argv)
	char **argv;
{
	register unsigned short *bp;
	unsigned short *buf;
	long ticks;
	int size, tries;

	size = 512;
	buf = (unsigned short *)calloc(size, 1);
	if (buf == 0) {
		fprintf(stderr, "%s: no space\n", argv[0]);
		exit(1);
	}
	if (profil((char *)buf, size, busy, 0x10000) < 0) {
		perror("profil");
		exit(1);
	}
	ticks = 0;
	for (tries = 0; ticks < 5 && tries < 20000; tries++) {
		busy();
		ticks = 0;
		for (bp = buf; bp < buf + size / sizeof (*buf); bp++)
			ticks += *bp;
	}
	profil((char *)0, 0, 0, 0);
	printf("%ld ticks in busy()\n", ticks);
	exit(ticks < 5);
}

busy()
{
	register int i;

	for (i = 0; i < 500000; i++)
		acc += i ^ acc;
}
