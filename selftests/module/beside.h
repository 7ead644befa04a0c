/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that run beside the test, until there is enough */
#ifndef _SELFTESTS_BESIDE_H
#define _SELFTESTS_BESIDE_H

#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool enough;	/* the threads end */
static atomic_int thread_id;	/* of the last one that runs a loop */
static pthread_t threads[8];
static unsigned int nr_threads;

static inline void *run_loop(void *i)
{
	thread_id = gettid();
	while (!enough)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

static inline void start_thread(void *(*run)(void *), uintptr_t i)
{
	MUST(!pthread_create(&threads[nr_threads++], NULL, run, (void *)i));
}

static inline void stop_threads(void)
{
	enough = true;
	while (nr_threads)
		MUST(!pthread_join(threads[--nr_threads], NULL));
}

#endif /* _SELFTESTS_BESIDE_H */
