// SPDX-License-Identifier: GPL-2.0
/*
 * mappings KIND ROUNDS: threads that change the mappings of their process all the time.
 *
 *	large	eight threads that compute in a new block of 40 MiB each time, which malloc() maps
 *	small	the same with blocks of 1 MiB
 *	mixed	two threads that map, touch and unmap memory beside two that compute
 *	short	500 threads in each round, sixteen at a time
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline))

enum { PAGE = 4096, THREADS = 16, SHORT = 500 };

static size_t block_size;

NOINLINE static uint32_t compute(uint32_t value)
{
	for (int i = 0; i < 30000; i++)
		value = value * 1664525 + 1013904223;
	return value;
}

static uint32_t use_block(uint32_t value)
{
	unsigned char *block = malloc(block_size);

	if (!block)
		abort();
	for (size_t i = 0; i < block_size; i += 256 * PAGE)
		block[i] = (unsigned char)value;
	value = compute(value);
	free(block);
	return value;
}

static uint32_t use_mapping(uint32_t value)
{
	for (int i = 0; i < 4; i++) {
		char *map = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			abort();
		memset(map, (int)value, 8 * PAGE);
		munmap(map, 8 * PAGE);
	}
	return value;
}

struct job {
	uint32_t (*work)(uint32_t value);
	long rounds;
	pthread_t thread;
};

static void *run(void *arg)
{
	const struct job *job = arg;
	uint32_t value = 1;

	for (long i = 0; i < job->rounds; i++)
		value = job->work(value);
	return (void *)(uintptr_t)value;
}

static void run_all(struct job *jobs, int n)
{
	for (int i = 0; i < n; i++)
		if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]))
			abort();
	for (int i = 0; i < n; i++)
		pthread_join(jobs[i].thread, NULL);
}

int main(int argc, char **argv)
{
	long rounds = argc == 3 ? atol(argv[2]) : 0;
	struct job jobs[THREADS];
	int threads = 8;

	if (rounds <= 0)
		return 2;
	for (int i = 0; i < THREADS; i++)
		jobs[i] = (struct job){ .work = use_block, .rounds = rounds };
	if (!strcmp(argv[1], "large")) {
		block_size = 40 << 20;
	} else if (!strcmp(argv[1], "small")) {
		block_size = 1 << 20;
		mallopt(M_MMAP_THRESHOLD, 65536);
	} else if (!strcmp(argv[1], "mixed")) {
		threads = 4;
		for (int i = 0; i < threads; i++)
			jobs[i].work = i % 2 ? compute : use_mapping;
	} else if (!strcmp(argv[1], "short")) {
		for (int i = 0; i < THREADS; i++)
			jobs[i] = (struct job){ .work = compute, .rounds = 1 };
		for (long left = rounds * SHORT; left > 0; left -= THREADS)
			run_all(jobs, left < THREADS ? (int)left : THREADS);
		return 0;
	} else {
		return 2;
	}
	run_all(jobs, threads);
	return 0;
}
