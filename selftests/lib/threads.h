/* SPDX-License-Identifier: GPL-2.0 */
/* Functions in one thread or in several, and loops that run until the test has had enough */
#ifndef _SELFTESTS_THREADS_H
#define _SELFTESTS_THREADS_H

#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>

/* Runs @run(@arg) in a new thread. */
static inline pthread_t thread_start(void *(*run)(void *), const void *arg)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, run, (void *)arg));
	return thread;
}

/* Waits for the end of @thread, and returns its result. */
static inline void *thread_end(pthread_t thread)
{
	void *result;

	MUST(!pthread_join(thread, &result));
	return result;
}

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
		threads[i] = thread_start(run, (void *)i);
	for (unsigned int i = 0; i < nr; i++) {
		result = thread_end(threads[i]);
		failed = failed ?: result;
	}
	return failed;
}

static atomic_bool enough;	/* set to end the threads that run beside the test */
static atomic_int thread_id;	/* of the last one in run_loop() */

/* Runs loop @i until there is @enough. */
static inline void *run_loop(void *i)
{
	thread_id = gettid();
	while (!enough)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

static pthread_t beside[8];
static unsigned int nr_beside;

/* Runs @run(@i) in a new thread, until stop_beside(). */
static inline void start_beside(void *(*run)(void *), uintptr_t i)
{
	beside[nr_beside++] = thread_start(run, (void *)i);
}

static inline void stop_beside(void)
{
	enough = true;
	while (nr_beside)
		thread_end(beside[--nr_beside]);
}

#endif /* _SELFTESTS_THREADS_H */
