/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types and helper functions for all parts of the command
 */
#ifndef PROFIL_TOOLS_UTIL_H
#define PROFIL_TOOLS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define NS_PER_S 1000000000ULL

/* Compares two numbers for qsort(). To compare by several members, join the calls with ?: */
static inline int compare_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static inline u64 time_ns(struct timespec time)
{
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static inline u64 clock_ns(clockid_t clock)
{
	struct timespec now = {};

	clock_gettime(clock, &now);
	return time_ns(now);
}

/* Opens /proc/PID/@name for reading. */
static inline FILE *proc_open(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/*
 * The numbers in the hashes of this process. Without them, a program could choose names that all
 * have one hash.
 */
static inline const u64 *hash_secrets(void)
{
	static u64 secrets[2];

	if (!secrets[0] && getrandom(secrets, sizeof(secrets), 0) != sizeof(secrets)) {
		secrets[0] = 0x9e3779b97f4a7c15ULL;
		secrets[1] = secrets[0];
	}
	secrets[0] |= 1;
	return secrets;
}

static inline u64 hash_step(u64 hash, u64 word, u64 secret)
{
	const unsigned __int128 product = (unsigned __int128)(hash ^ word) * secret;

	return product ^ product >> 64;
}

/* Returns a hash of the words, for tables of htab_create(). Each file of the source has its own. */
static inline u32 hash_words(const u64 *words, size_t nr)
{
	const u64 *secrets = hash_secrets();
	u64 hash = secrets[1];

	for (size_t i = 0; i < nr; i++)
		hash = hash_step(hash, words[i], secrets[0]);
	return hash_step(hash, secrets[1], secrets[0]);
}

/* Likewise, of a text. */
static inline u32 hash_text(const char *text)
{
	const u64 *secrets = hash_secrets();
	size_t left = strlen(text);
	u64 hash = secrets[1] ^ left, word;

	for (; left >= sizeof(word); left -= sizeof(word), text += sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = hash_step(hash, word, secrets[0]);
	}
	word = 0;
	memcpy(&word, text, left);
	hash = hash_step(hash, word, secrets[0]);
	return hash_step(hash, secrets[1], secrets[0]);
}

/*
 * Makes room for element @nr of an array. @array is the address of the pointer to the array, which
 * only this function may enlarge: it relies on a size that is a power of two. Returns false if
 * there is no memory.
 */
static inline bool array_grow(void *array, size_t nr, size_t element_size)
{
	void *old, *new;

	if (nr & (nr - 1))
		return true;
	memcpy(&old, array, sizeof(old));
	new = reallocarray(old, nr ? 2 * nr : 1, element_size);
	if (new)
		memcpy(array, &new, sizeof(new));
	return new;
}

/*
 * Returns the index of the first element whose key is at least @value, in an array that is sorted
 * by these keys. @key: the first element's. @size: an element's.
 */
static inline size_t array_index(const u64 *key, size_t nr, size_t size, u64 value)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const u64 *)((const char *)key + middle * size) < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif /* PROFIL_TOOLS_UTIL_H */
