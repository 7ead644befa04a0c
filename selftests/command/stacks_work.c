// SPDX-License-Identifier: GPL-2.0
/*
 * The programs whose stacks record.c records. A function that calls another one has a frame; the
 * Makefile selects this, and calls that are not jumps:
 *
 *	stacks_work leaf MS		ticks in a function without a frame
 *	stacks_work tiny MS		ticks in the first and last instructions of functions
 *	stacks_work recurse DEPTH MS	a function that calls itself
 *	stacks_work wide DEPTH MS	the same, with 30 KB in each frame
 *	stacks_work plugin LIBRARY MS	a library that is loaded after a quarter of MS
 *	stacks_work fork MS		a child
 *	stacks_work threads N MS
 *	stacks_work deep N MS		threads with 20 frames of 10 KB, which nobody touches
 *	stacks_work brief N		N children that end soon
 *	stacks_work data MS		a frame pointer to data, as in code without frame pointers
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

static NOINLINE long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

NOINLINE void leaf(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}

NOINLINE void leaf_caller(void)
{
	leaf(100000);
}

/* It has a frame, because it calls a function if @n is 0. */
NOINLINE void tiny(int n)
{
	if (!n)
		leaf(1);
	sink++;
}

NOINLINE void tiny_caller(void)
{
	for (int i = 1; i < 20000; i++)
		tiny(i);
}

NOINLINE void recurse(int depth)
{
	if (depth > 1)
		recurse(depth - 1);
	else
		leaf_caller();
}

static NOINLINE void burn(void (*function)(void), int ms)
{
	const long end = cpu_ms() + ms;

	while (cpu_ms() < end)
		function();
}

NOINLINE void wide(int depth)
{
	volatile char frame[30000];

	frame[0] = 1;
	if (depth > 1)
		wide(depth - 1);
	else
		leaf_caller();
	sink += frame[0];
}

static NOINLINE void recurse_for(void (*function)(int depth), int depth, int ms)
{
	const long end = cpu_ms() + ms;

	while (cpu_ms() < end)
		function(depth);
}

static void (*plugin_call)(void (*callee)(void));

static void call_plugin(void)
{
	plugin_call(leaf_caller);
}

static NOINLINE int plugin(const char *path, int ms)
{
	void *library;

	burn(leaf_caller, ms / 4);
	library = dlopen(path, RTLD_NOW);
	plugin_call = library ? dlsym(library, "plugin_call") : NULL;
	if (!plugin_call)
		return 1;
	burn(call_plugin, ms);
	return 0;
}

/* Meanwhile, nobody touches the frames, each of which has pages of its own. */
NOINLINE void below(int depth, int ms)
{
	volatile char frame[10000];

	frame[0] = 1;
	if (depth > 1)
		below(depth - 1, ms);
	else
		burn(leaf_caller, ms);
	sink += frame[0];
}

NOINLINE void forked(int ms)
{
	burn(leaf_caller, ms);
}

static NOINLINE int fork_one(int ms)
{
	pid_t child = fork();
	int status;

	if (!child) {
		forked(ms);
		_exit(0);
	}
	return child < 0 || wait(&status) < 0 || status;
}

void *thread(void *arg)
{
	burn(leaf_caller, *(int *)arg);
	return NULL;
}

void *deep_thread(void *arg)
{
	below(20, *(int *)arg);
	return NULL;
}

static int threads(void *(*function)(void *arg), int n, int ms)
{
	pthread_t all[16];

	for (int i = 0; i < n; i++)
		if (pthread_create(&all[i], NULL, function, &ms))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(all[i], NULL);
	return 0;
}

static int brief(int n)
{
	int bad = 0;

	while (n--)
		bad |= fork_one(2);
	return bad;
}

/* A frame pointer is the address of a frame; on riscv, its end. */
#ifdef __riscv
#define FRAME_WORDS 2
#else
#define FRAME_WORDS 0
#endif

NOINLINE void above_data(uintptr_t *data, int ms)
{
	volatile uintptr_t *frame = (uintptr_t *)__builtin_frame_address(0) - FRAME_WORDS;
	const uintptr_t saved = frame[0];

	frame[0] = (uintptr_t)(data + FRAME_WORDS);
	burn(leaf_caller, ms);
	frame[0] = saved;
}

static NOINLINE int above(int ms)
{
	/* On the stack, because frames must be above the stack pointer */
	uintptr_t data[2] = { 0, (uintptr_t)data };

	above_data(data, ms);
	return !data[1];
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	const int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "leaf"))
		burn(leaf_caller, a);
	else if (!strcmp(what, "tiny"))
		burn(tiny_caller, a);
	else if (!strcmp(what, "recurse"))
		recurse_for(recurse, a, b);
	else if (!strcmp(what, "wide"))
		recurse_for(wide, a, b);
	else if (!strcmp(what, "plugin"))
		return plugin(argv[2], b);
	else if (!strcmp(what, "fork"))
		return fork_one(a);
	else if (!strcmp(what, "threads") && a <= 16)
		return threads(thread, a, b);
	else if (!strcmp(what, "deep") && a <= 16)
		return threads(deep_thread, a, b);
	else if (!strcmp(what, "brief"))
		return brief(a);
	else if (!strcmp(what, "data"))
		return above(a);
	else
		return 2;
	return 0;
}
