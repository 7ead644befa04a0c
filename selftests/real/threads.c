// SPDX-License-Identifier: GPL-2.0
/*
 * threads ROUNDS: four threads with different work, each in its own function. One of them allocates
 * memory all the time, and one formats numbers.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static long rounds;

NOINLINE static uint64_t sieve(void)
{
	enum { SIZE = 200000 };
	char *composite = calloc(SIZE, 1);
	uint64_t primes = 0;

	for (int i = 2; i < SIZE; i++) {
		if (composite[i])
			continue;
		primes++;
		for (int j = 2 * i; j < SIZE; j += i)
			composite[j] = 1;
	}
	free(composite);
	return primes;
}

NOINLINE static uint64_t multiply(void)
{
	enum { N = 60 };
	static _Thread_local double a[N][N], b[N][N];
	double sum = 0;

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = i + j, b[i][j] = i - j;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
	return fabs(sum);
}

NOINLINE static uint64_t allocate(void)
{
	void *blocks[256] = { 0 };
	uint64_t sum = 0;

	for (unsigned int i = 0; i < 16384; i++) {
		void **block = &blocks[i * 2654435761U >> 24];

		free(*block);
		*block = malloc(16 + i % 2000);
		memset(*block, (int)i, 16);
		sum += *(unsigned char *)*block;
	}
	for (size_t i = 0; i < 256; i++)
		free(blocks[i]);
	return sum;
}

NOINLINE static uint64_t format(void)
{
	uint64_t sum = 0;
	char text[64];

	for (int i = 0; i < 2000; i++)
		sum += (unsigned int)snprintf(text, sizeof(text), "%d %.6g %s", i, i / 7.0, "x");
	return sum;
}

static uint64_t (*const work[])(void) = { sieve, multiply, allocate, format };

static void *run(void *which)
{
	uint64_t sum = 0;

	for (long i = 0; i < rounds; i++)
		sum += work[(size_t)which]();
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	pthread_t threads[4];
	void *part;

	rounds = argc > 1 ? atol(argv[1]) : 100;
	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 1;
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &part);
		sum += (uintptr_t)part;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
