/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles itself by both forms of AIX's profil().
 */
#include <mon.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define SIZE	256

int profil();
static int first();
static int second();

static HISTCOUNTER hist[2 * SIZE];
static volatile long work;

static long
sum(from)
	HISTCOUNTER *from;
{
	long n;
	int i;

	for (n = 0, i = 0; i < SIZE; i++)
		n += ((volatile HISTCOUNTER *)from)[i];
	return (n);
}

main()
{
	struct prof ranges[3];
	int tries;
	long n;

	/* First form, one range: about one counter for each two bytes. */
	if (profil(hist, SIZE * sizeof(HISTCOUNTER), (unsigned long)first, 0177777) != 0) {
		perror("profil");
		return (1);
	}
	/* Profiling is on already, so this call has no effect. */
	profil(hist + SIZE, SIZE * sizeof(HISTCOUNTER), 0L, 02);
	for (tries = 0; sum(hist) < 3 && tries < 20000; tries++)
		first();
	profil(hist, 0, 0L, 0);
	if (sum(hist) < 3 || hist[SIZE] != 0)
		return (2);

	/* Second form: two ranges, in the order of their ends, with one buffer. */
	bzero(hist, sizeof(hist));
	bzero(ranges, sizeof(ranges));
	ranges[0].p_low = (caddr_t)((char *)first < (char *)second ? first : second);
	ranges[1].p_low = (caddr_t)((char *)first < (char *)second ? second : first);
	for (tries = 0; tries < 2; tries++) {
		ranges[tries].p_high = ranges[tries].p_low + 64;
		ranges[tries].p_buff = hist + tries * SIZE;
		ranges[tries].p_bufsize = SIZE * sizeof(HISTCOUNTER);
		ranges[tries].p_scale = (uint)-1;
	}
	if (ranges[0].p_high > ranges[1].p_low)
		ranges[0].p_high = ranges[1].p_low;
	if (profil(ranges, -1, 0, 0) != 0) {
		perror("profil");
		return (3);
	}
	for (tries = 0; (sum(hist) < 3 || sum(hist + SIZE) < 3) && tries < 20000; tries++) {
		first();
		second();
	}
	ranges[0].p_high = 0;
	if (profil(ranges, -1, 0, 0) != 0)
		return (4);
	n = sum(hist) + sum(hist + SIZE);
	for (tries = 0; tries < 50; tries++)
		first();
	if (sum(hist) + sum(hist + SIZE) != n)
		return (5);
	printf("%ld and %ld ticks\n", sum(hist), sum(hist + SIZE));
	return (sum(hist) < 3 || sum(hist + SIZE) < 3 ? 6 : 0);
}

static int
first()
{
	register int i;

	for (i = 0; i < 400000; i++)
		work += i;
	return (0);
}

static int
second()
{
	register int i;

	for (i = 0; i < 400000; i++)
		work -= i;
	return (0);
}
