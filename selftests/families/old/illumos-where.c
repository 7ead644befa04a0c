/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pcsample() returns program counters, one for each sample. This program counts how many are in
 * work(), and exits with 0 if most of them are.
 */
#include <pcsample.h>
#include <stdio.h>
#include <string.h>

#define NSAMPLES	32

static uintptr_t samples[NSAMPLES];
static volatile unsigned int sum;

static void
work(void)
{
	int i;

	for (i = 0; i < 1000000; i++)
		sum += i;
}

static void (*volatile busy)(void) = work;

int
main(void)
{
	long n, tries, inside = 0;

	if (pcsample(samples, NSAMPLES) != 0) {
		perror("pcsample");
		return (1);
	}
	for (tries = 0; tries < 20000 && samples[NSAMPLES - 1] == 0; tries++)
		(*busy)();
	n = pcsample(NULL, 0);
	if (n != NSAMPLES) {
		(void) printf("%ld samples\n", n);
		return (2);
	}
	while (n-- > 0)
		if (samples[n] >= (uintptr_t)work && samples[n] < (uintptr_t)work + 128)
			inside++;
	return (inside > NSAMPLES / 2 ? 0 : 3);
}
