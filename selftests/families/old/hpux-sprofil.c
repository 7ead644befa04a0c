/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Profiles several regions as a program for HP-UX did: two functions, and an overflow counter, with
 * counters of 64 bits; then a list of regions as long as the system allows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/profil.h>
#include <unistd.h>

#define BINS 8

static unsigned long long first_bins[BINS], second_bins[BINS], rest;
volatile int work;

int first()
{
	int i;

	for (i = 0; i < 1000000; i++)
		work++;
	return work;
}

int second()
{
	int i;

	for (i = 0; i < 1000000; i++)
		work--;
	return work;
}

int third()
{
	int i;

	for (i = 0; i < 1000000; i++)
		work ^= i;
	return work;
}

unsigned long long total(bins, n)
unsigned long long *bins;
int n;
{
	unsigned long long sum = 0;

	while (n-- > 0)
		sum += ((volatile unsigned long long *)bins)[n];
	return sum;
}

int expect(what, bins, n, function)
char *what;
unsigned long long *bins;
int n;
int (*function)();
{
	int patience;

	for (patience = 0; patience < 500; patience++) {
		if (total(bins, n) > 2)
			return 0;
		(*function)();
	}
	printf("no counts of %s\n", what);
	return 1;
}

void region(prof, bins, size, begin, end)
struct prof *prof;
unsigned long long *bins;
unsigned int size;
int (*begin)(), (*end)();
{
	unsigned long length = (char *)end - (char *)begin;

	prof->pr_base = (void *)bins;
	prof->pr_size = size;
	prof->pr_offset = (void *)begin;
	/* The text ends with the last bin, and not behind it. */
	prof->pr_scale = ((unsigned long long)size * 65536 + length - 1) / length;
}

int main(argc, argv)
int argc;
char **argv;
{
	struct prof prof[3];
	struct timeval tick;
	long max;

	max = sysconf(_SC_PROFIL_MAX);
	if (max < 3) {
		printf("at most %ld regions\n", max);
		return 1;
	}
	region(&prof[0], first_bins, sizeof(first_bins), first, second);
	region(&prof[1], second_bins, sizeof(second_bins), second, third);
	prof[2].pr_base = (void *)&rest;
	prof[2].pr_size = sizeof(rest);
	prof[2].pr_offset = NULL;
	prof[2].pr_scale = 2;
	if (sprofil(prof, 3, &tick, PROF_UINT64) == -1) {
		perror("sprofil");
		return 2;
	}
	if (tick.tv_sec == 0 && tick.tv_usec == 0) {
		printf("the time of a tick is 0\n");
		return 3;
	}
	if (expect("first", first_bins, BINS, first) ||
	    expect("second", second_bins, BINS, second) ||
	    expect("the rest", &rest, 1, third))
		return 4;
	sprofil((struct prof *)NULL, 0, (struct timeval *)NULL, PROF_UINT64);
	printf("%llu, %llu, %llu\n", total(first_bins, BINS), total(second_bins, BINS), rest);
	return 0;
}
