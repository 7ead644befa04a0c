// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the same as the test of profil() in LTP (profil01): profiling can be turned on with twice
 * the finest scale, counters increase while the program works, and profiling can be turned off.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES 8192

static unsigned short samples[SAMPLES];
static volatile unsigned long work;

static total()
{
	int i, sum = 0;

	for (i = 0; i < SAMPLES; i++)
		sum += ((volatile unsigned short *)samples)[i];
	return sum;
}

spin()
{
	int i;

	for (i = 0; i < 1000000; i++)
		work += i;
}

main()
{
	int patience, before;

	memset(samples, 0, sizeof(samples));
	if (profil(samples, sizeof(samples), (size_t)spin, 131072) != 0) {
		perror("profil");
		return 1;
	}
	for (patience = 0; total() == 0; patience++) {
		if (patience > 500) {
			printf("nothing was counted\n");
			return 2;
		}
		spin();
	}
	if (profil(NULL, 0, 0, 0) != 0) {
		perror("profil off");
		return 3;
	}
	before = total();
	for (patience = 0; patience < 20; patience++)
		spin();
	if (total() != before) {
		printf("counted after it was switched off\n");
		return 4;
	}
	printf("%d samples\n", before);
	return 0;
}
