// SPDX-License-Identifier: GPL-2.0
/*
 * spin ROUNDS: spends its time in one function, hot(), and prints a line for each round.
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static unsigned int hot(unsigned int value)
{
	for (int i = 0; i < 3000000; i++)
		value = value * 1664525 + 1013904223;
	return value;
}

int main(int argc, char **argv)
{
	unsigned int value = 1;

	for (int rounds = argc > 1 ? atoi(argv[1]) : 1; rounds > 0; rounds--) {
		value = hot(value);
		printf("%u\n", value);
	}
	return 0;
}
