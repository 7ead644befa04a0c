/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _CALLS_H
#define _CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Neither inlined nor cloned, so that its name and its calls are those of the source. */
#define FUNCTION __attribute__((noipa))

/* 2,000 instructions: much more than a call, much less than the period of a profiler */
#define UNIT	1000

/* Executes @units times UNIT iterations of two instructions, in the function that calls it. */
static inline __attribute__((always_inline)) void work(unsigned long units)
{
	unsigned long iterations = units * UNIT;

	asm volatile("1: dec %0; jnz 1b" : "+r" (iterations) : : "cc");
}

void root_cxx(unsigned long rounds);
void root_throw(unsigned long rounds);
void calls_leaf(void);
void calls_leaf_with_register(void);
void calls_leaf_with_registers(void);
void root_plugin(void (*callback)(void), unsigned long rounds);

#ifdef __cplusplus
}
#endif

#endif /* _CALLS_H */
