/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pseudo-random decisions: the same seed gives the same ones
 */
#ifndef _SELFTESTS_CHANCE_H
#define _SELFTESTS_CHANCE_H

#include "device.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* Recorded decisions, to repeat them. */
#define TAPE	128U

struct tape {
	u32 n;			/* the number of decisions to repeat */
	u32 at;			/* the index of the next decision to repeat or to record */
	u32 numbers[TAPE];
};

/* The state of one thread that makes decisions. */
struct actor {
	u64 random;
	unsigned int depth;
	struct tape *tape;	/* or NULL: do not record */
};

/* Returns a number below @n. */
static inline u32 any(struct actor *a, u32 n)
{
	struct tape *t = a->tape;
	u32 number;

	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	number = a->random >> 24;
	if (t && t->at < TAPE) {
		if (t->at < t->n)
			number = t->numbers[t->at];
		t->numbers[t->at++] = number;
	}
	return number % n;
}

static inline bool one_in(struct actor *a, u32 n)
{
	return any(a, n) == 0;
}

/* Evaluates to a random one of the values that follow @type, their type. */
#define ONE_OF(a, type, ...) ({						\
	const type of_[] = { __VA_ARGS__ };				\
									\
	of_[any(a, sizeof(of_) / sizeof(*of_))];			\
})

/* Returns an actor whose decisions are independent of those of @a. */
static inline struct actor another(struct actor *a, unsigned int depth)
{
	struct actor b = { .random = a->random * 0x9e3779b97f4a7c15ULL + 1, .depth = depth };

	any(a, 2);
	any(&b, 2);
	return b;
}

/* Moves the caller to a random CPU, or lets it run on all. Returns 0 or a negative errno. */
static inline int run_on_any_cpu(struct actor *a)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(any(a, sysconf(_SC_NPROCESSORS_CONF)), &set);
	if (one_in(a, 2))
		memset(&set, 0xff, sizeof(set));
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* Returns the number in an environment variable, or @otherwise if that is not set. */
static inline u32 number_from(const char *name, u32 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoul(value, NULL, 10) : otherwise;
}

/* Starts a thread: @run passes its argument to thread_actor(). Returns 0 or a negative errno. */
static inline int actor_thread(struct actor *a, void *(*run)(void *actor))
{
	struct actor *b = malloc(sizeof(*b));
	pthread_t unused;
	int err;

	if (!b)
		return -ENOMEM;
	*b = another(a, a->depth);
	err = pthread_create(&unused, NULL, run, b);
	if (err)
		free(b);
	else
		pthread_detach(unused);
	return -err;
}

/* In that thread: returns its actor, which ends with it. */
static inline struct actor *thread_actor(void *actor)
{
	static __thread struct actor a;

	a = *(struct actor *)actor;
	free(actor);
	return &a;
}

#endif /* _SELFTESTS_CHANCE_H */
