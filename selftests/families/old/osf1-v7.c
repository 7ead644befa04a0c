/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles itself as a program of Version 7 did: almost nothing is declared, and everything is an
 * int.
 */
#define NCELL	128

int	cell[NCELL * sizeof(short) / sizeof(int)];
int	fuel;
int	work();

main(argc, argv)
char **argv;
{
	register short *cp;
	register tries, n;

	/* One counter for each two bytes of text, as far as the counters suffice. */
	profil(cell, sizeof cell, work, 0177777);
	for (tries = n = 0; n < 3 && tries < 20000; tries++) {
		work();
		n = 0;
		for (cp = (short *)cell; cp < (short *)cell + NCELL; cp++)
			n += *cp;
	}
	profil(cell, sizeof cell, work, 0);
	if (n < 3)
		exit(1);

	/* The scale of a clock: all ticks are counted in the first word. */
	for (cp = (short *)cell; cp < (short *)cell + NCELL; )
		*cp++ = 0;
	profil(cell, sizeof cell, 0, 02);
	cp = (short *)cell;
	for (tries = 0; *(volatile short *)cp < 3 && tries < 20000; tries++)
		work();
	profil(0, 0, 0, 0);
	if (*cp < 3)
		exit(2);
	while (++cp < (short *)cell + NCELL)
		if (*cp)
			exit(3);
	printf("%d ticks\n", *(short *)cell);
	exit(0);
}

work()
{
	register i;

	for (i = 0; i < 300000; i++)
		fuel = fuel * 5 + i;
}
