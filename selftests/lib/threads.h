/* SPDX-License-Identifier: GPL-2.0 */
/* A function in several threads at the same time */
#ifndef _SELFTESTS_THREADS_H
#define _SELFTESTS_THREADS_H

#include "device.h"

#include <pthread.h>

/**
 * in_threads() - Run a function in several threads, and wait for all of them
 * @nr: the number of threads
 * @run: the function; its arguments are 0 to @nr - 1
 *
 * Return: NULL, or a result of a thread that is not NULL.
 */
static inline void *in_threads(unsigned int nr, void *(*run)(void *))
{
	void *result, *failed = NULL;
	pthread_t threads[nr];

	for (uintptr_t i = 0; i < nr; i++)
		MUST(!pthread_create(&threads[i], NULL, run, (void *)i));
	for (unsigned int i = 0; i < nr; i++) {
		MUST(!pthread_join(threads[i], &result));
		failed = failed ?: result;
	}
	return failed;
}

#endif /* _SELFTESTS_THREADS_H */
