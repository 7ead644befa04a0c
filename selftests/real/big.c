// SPDX-License-Identifier: GPL-2.0
/*
 * big ROUNDS: a program with 150 MB of text, the size of a browser. It spends half of its time in
 * 200 of its 37,500 functions, and half in random ones.
 */
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS	37500
#define HOT		200
#define SIZE		4096
#define LOOPS		20000

asm(".text\n"
	".altmacro\n"
	".macro function number\n"
	".type f\\number, @function\n"
	"f\\number: mov %edi, %ecx\n"
	"1: sub $1, %ecx\n"
	"jnz 1b\n"
	"ret\n"
	".size f\\number, . - f\\number\n"
	".balign 4096, 0xcc\n"
	".endm\n"
	".balign 4096\n"
	".set n, 0\n"
	".rept 37500\n"
	"function %n\n"
	".set n, n + 1\n"
	".endr\n"
	".noaltmacro\n");

extern void first(int loops) __asm__("f0");

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	unsigned int random = 1, function;

	for (long i = 0; i < rounds; i++) {
		random = random * 1664525 + 1013904223;
		function = (random >> 8) % (random & 0x80000000 ? FUNCTIONS : HOT);
		((void (*)(int))((char *)first + (size_t)SIZE * function))(LOOPS);
	}
	printf("%u\n", random);
	return 0;
}
