/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs with random input share: random numbers, of which the same seed gives the same
 * ones, and files in memory. PROFIL_FUZZ_SEED (default: the time) is the seed.
 */
#ifndef _SELFTESTS_REPORT_FUZZ_H
#define _SELFTESTS_REPORT_FUZZ_H

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

#define BYTES_MAX (1U << 20)

struct bytes {
	u8 *data;
	size_t len;
};

/* The seed. It is never 0. */
static u64 state;

/* Returns a number below @below; or 0 if that is 0. This is xorshift64*. */
static inline u64 any(u64 below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return below ? (state * 0x2545f4914f6cdd1dULL >> 16) % below : 0;
}

static inline u64 odd_number(void)
{
	static const u64 numbers[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 0x18, 0x38, 0x40, 0x7f, 0x80, 0xff, 0x100, 0x3ff,
		0x400, 0x7fff, 0x8000, 0xffff, 0x10000, 0xfffff, 0x100000, 0x7fffffff, 0x80000000,
		0xfffffff0, 0xffffffff, 0x100000000, 0x7ffffffffffffff8, 0x7fffffffffffffff,
		0x8000000000000000, -32769, -32768, -256, -16, -8, -1,
	};

	return numbers[any(sizeof(numbers) / sizeof(*numbers))];
}

static inline u64 from_environment(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Prints the first lines of TAP. Sets the seed, and returns it; @rounds to PROFIL_FUZZ_ROUNDS. */
static inline u64 fuzz_begin(FILE *tap, int nr_tests, u64 *rounds)
{
	const u64 seed = from_environment("PROFIL_FUZZ_SEED", time(NULL));

	*rounds = from_environment("PROFIL_FUZZ_ROUNDS", *rounds);
	state = seed * 2 + 1;
	fprintf(tap, "TAP version 13\n1..%d\n# PROFIL_FUZZ_SEED=%" PRIu64
		" PROFIL_FUZZ_ROUNDS=%" PRIu64 "\n", nr_tests, seed, *rounds);
	fflush(tap);
	return seed;
}

/* Reads a file, of less than @max bytes. There is room for BYTES_MAX. */
static inline struct bytes load(const char *path, size_t max)
{
	struct bytes bytes = { .data = malloc(BYTES_MAX) };
	FILE *file = fopen(path, "r");

	if (!file || !bytes.data)
		err(1, "%s", path);
	bytes.len = fread(bytes.data, 1, max, file);
	if (ferror(file) || bytes.len == max)
		errx(1, "%s: cannot be read, or is too long", path);
	fclose(file);
	return bytes;
}

/* Returns a file with the bytes, and its @path. */
static inline int memory(const struct bytes *bytes, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, bytes->data, bytes->len, 0) != (ssize_t)bytes->len)
		err(1, "memfd");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
