// SPDX-License-Identifier: GPL-2.0
/*
 * Executes trees of calls with known shares, for the test of call stacks.
 *
 *	calls TREE SECONDS
 *	calls --expect TREE
 *
 * Each function does its work itself, so the instructions of each chain of calls are known.
 * --expect prints a line "UNITS FUNCTION;...;FUNCTION" for each chain that has work. The first
 * function is one that main() or the start of a thread calls. No file has frame pointers.
 */
#include "calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEP	100
/* A recording has the function and 127 callers. */
#define DEEPEST	128

/* Direct recursion: the work follows the call, so that it is no loop. */
static FUNCTION void direct(unsigned int n)
{
	if (n)
		direct(n - 1);
	work(1);
}

static FUNCTION void once(void)
{
	work(5);
}

static FUNCTION void root_recursion(unsigned long rounds)
{
	while (rounds--) {
		direct(9);
		once();
	}
}

/* Mutual recursion */
static FUNCTION void even(unsigned int n);

static FUNCTION void odd(unsigned int n)
{
	even(n - 1);
	work(2);
}

static FUNCTION void even(unsigned int n)
{
	if (n)
		odd(n - 1);
	work(1);
}

static FUNCTION void root_mutual(unsigned long rounds)
{
	while (rounds--)
		even(4);
}

/* Tail calls: the caller's frame is gone. */
static FUNCTION void tail_third(void)
{
	work(5);
}

static FUNCTION void tail_second(void)
{
	work(3);
	tail_third();
}

static FUNCTION void tail_first(void)
{
	work(2);
	tail_second();
}

static FUNCTION void root_tail(unsigned long rounds)
{
	while (rounds--) {
		tail_first();
		work(2);
	}
}

/* A plugin, which calls back */
static FUNCTION void callback(void)
{
	work(5);
}

static void plugin(unsigned long rounds)
{
	void *handle = dlopen("./plugin.so", RTLD_NOW);
	void (*run)(void (*)(void), unsigned long) = handle ? dlsym(handle, "root_plugin") : NULL;

	if (!run) {
		fprintf(stderr, "calls: %s\n", dlerror());
		exit(1);
	}
	run(callback, rounds);
}

/* Threads, which call the same function for different amounts of work */
static unsigned long thread_rounds;

static FUNCTION void shared(unsigned long units)
{
	work(units);
}

static FUNCTION void *thread_one(void *arg)
{
	for (unsigned long i = 0; i < thread_rounds; i++)
		shared(1);
	return arg;
}

static FUNCTION void *thread_two(void *arg)
{
	for (unsigned long i = 0; i < thread_rounds; i++) {
		shared(1);
		shared(1);
	}
	return arg;
}

static FUNCTION void *thread_three(void *arg)
{
	for (unsigned long i = 0; i < thread_rounds; i++) {
		shared(2);
		work(1);
	}
	return arg;
}

static void threads(unsigned long rounds)
{
	void *(*const starts[])(void *) = { thread_one, thread_two, thread_three };
	pthread_t ids[3];

	thread_rounds = rounds;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&ids[i], NULL, starts[i], NULL))
			exit(1);
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
}

/* A signal handler, which a trap in the middle of a function calls; also on a stack of its own */
static FUNCTION void handled(void)
{
	work(4);
}

static FUNCTION void handler(int signal)
{
	handled();
	work(3);
	(void)signal;
}

static FUNCTION void interrupted(void)
{
	work(1);
	asm volatile("int3" : : : "memory");
}

static FUNCTION void root_signal(unsigned long rounds)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	sigaction(SIGTRAP, &action, NULL);
	while (rounds--) {
		interrupted();
		work(2);
	}
}

static void alternate(unsigned long rounds)
{
	static char memory[1 << 16];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	if (sigaltstack(&stack, NULL))
		exit(1);
	root_signal(rounds);
}

/* Functions with different frames: see leaf.c */
static FUNCTION void root_leaf(unsigned long rounds)
{
	while (rounds--) {
		calls_leaf();
		calls_leaf_with_register();
		calls_leaf_with_registers();
	}
}

/* Deep stacks: within the limit of a recording, and beyond it */
static FUNCTION void deep(unsigned int n)
{
	if (n)
		deep(n - 1);
	if (n == 0)
		work(60);
	else if (n == DEEP / 2)
		work(30);
	else if (n == DEEP - 1)
		work(10);
}

static FUNCTION void root_deep(unsigned long rounds)
{
	while (rounds--)
		deep(DEEP - 1);
}

static FUNCTION void nothing(void)
{
	asm volatile("");
}

/* The first call makes the compiler give it a frame for all that follows. */
static FUNCTION void deeper(unsigned int n)
{
	nothing();
	if (n)
		deeper(n - 1);
	else
		work(500);
	asm volatile("");
}

static FUNCTION void root_deeper(unsigned long rounds)
{
	while (rounds--)
		deeper(2 * DEEPEST);
}

/* Prints a chain that ends with @n pairs of functions; with an odd number, the last one is @a. */
static void expect_many(int units, const char *first, const char *a, const char *b, int n)
{
	printf("%d %s", units, first);
	for (int i = 0; i < n; i++)
		printf("%s%s", i || *first ? ";" : "", i % 2 ? b : a);
	putchar('\n');
}

static void expect_recursion(void)
{
	for (int i = 1; i <= 10; i++)
		expect_many(1, "root_recursion", "direct", "direct", i);
	puts("5 root_recursion;once");
}

static void expect_mutual(void)
{
	for (int i = 1; i <= 5; i++)
		expect_many(i % 2 ? 1 : 2, "root_mutual", "even", "odd", i);
}

static void expect_deep(void)
{
	expect_many(60, "root_deep", "deep", "deep", DEEP);
	expect_many(30, "root_deep", "deep", "deep", DEEP / 2);
	expect_many(10, "root_deep", "deep", "deep", 1);
}

static void expect_deeper(void)
{
	expect_many(500, "", "deeper", "deeper", DEEPEST);
}

#define SIGNAL_CHAINS								\
	"2 root_signal\n1 root_signal;interrupted\n"				\
	"3 root_signal;interrupted;__restore_rt;handler\n"			\
	"4 root_signal;interrupted;__restore_rt;handler;handled"

/* @units is the work of a round. */
static const struct tree {
	const char *name;
	void (*run)(unsigned long rounds);
	unsigned int units;
	const char *chains;	/* what --expect prints; NULL: */
	void (*expect)(void);	/* this prints it */
} trees[] = {
	{ "recursion", root_recursion, 15, .expect = expect_recursion },
	{ "mutual", root_mutual, 7, .expect = expect_mutual },
	{ "deep", root_deep, 100, .expect = expect_deep },
	{ "deeper", root_deeper, 500, .expect = expect_deeper },
	{ "tail", root_tail, 12, .chains =
	  "2 root_tail\n2 root_tail;tail_first\n3 root_tail;tail_second\n5 root_tail;tail_third" },
	{ "plugin", plugin, 10, .chains =
	  "2 root_plugin\n3 root_plugin;plugin_inner\n5 root_plugin;plugin_inner;callback" },
	{ "threads", threads, 6, .chains =
	  "1 thread_one;shared\n2 thread_two;shared\n2 thread_three;shared\n1 thread_three" },
	{ "leaf", root_leaf, 12, .chains =
	  "1 root_leaf;calls_leaf\n3 root_leaf;calls_leaf;leaf\n"
	  "1 root_leaf;calls_leaf_with_register\n"
	  "4 root_leaf;calls_leaf_with_register;leaf_with_register\n"
	  "1 root_leaf;calls_leaf_with_registers\n"
	  "2 root_leaf;calls_leaf_with_registers;leaf_with_registers" },
	{ "cxx", root_cxx, 15, .chains =
	  "1 root_cxx;shapes::Circle::draw(int)\n"
	  "2 root_cxx;shapes::Circle::draw(int);void shapes::level<3>()\n"
	  "3 root_cxx;shapes::Circle::draw(int);void shapes::level<3>();void shapes::level<2>()\n"
	  "4 root_cxx;shapes::Square::draw(int)\n"
	  "5 root_cxx;shapes::Square::draw(int);shapes::Shape::draw(int)" },
	{ "signal", root_signal, 10, .chains = SIGNAL_CHAINS },
	{ "alternate", alternate, 10, .chains = SIGNAL_CHAINS },
	{ "throw", root_throw, 10, .chains =
	  "4 root_throw\n2 root_throw;catcher\n1 root_throw;catcher;passer\n"
	  "3 root_throw;catcher;passer;thrower" },
};

int main(int argc, char **argv)
{
	bool expecting = argc == 3 && !strcmp(argv[1], "--expect");
	const char *name = argc == 3 ? argv[expecting ? 2 : 1] : "";

	for (unsigned int i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
		if (strcmp(trees[i].name, name))
			continue;
		if (expecting && trees[i].chains)
			puts(trees[i].chains);
		else if (expecting)
			trees[i].expect();
		else	/* An instruction takes 16 ns. */
			trees[i].run(atof(argv[2]) * 1e9 / (16 * 2 * UNIT * trees[i].units));
		return 0;
	}
	fprintf(stderr, "usage: calls TREE SECONDS | calls --expect TREE\n");
	return 2;
}
