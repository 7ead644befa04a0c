/* SPDX-License-Identifier: GPL-2.0 */
/*
 * size_t bench_loop(uint64_t iterations, uint64_t threshold,
 *		     uint64_t *gaps, size_t max_gaps);
 *
 * A user loop of BENCH_LOOP_LENGTH instructions, a prime: no number of rounds
 * makes up a tick, and so the tick wanders through it. It looks at the clock once
 * a round; a round that took more than threshold was interrupted, and what it took
 * goes to gaps. Returns how many there were, also those beyond max_gaps.
 */
#include "loop.h"

	.text
	.globl	bench_loop
	.globl	bench_loop_end
	.type	bench_loop, @function
	.p2align 4
bench_loop:
	.cfi_startproc			/* for those who unwind the stack */
	mov	%rcx, %r8		/* room in gaps */
	mov	%rdx, %r9		/* next gap */
	xor	%r11d, %r11d		/* gaps so far */
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r10		/* the clock, a round ago */
1:
	.rept	BENCH_LOOP_LENGTH - BENCH_LOOP_REST
	add	$1, %rcx
	.endr
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %rdx
	sub	%r10, %rdx
	mov	%rax, %r10
	cmp	%rsi, %rdx
	ja	3f
2:
	dec	%rdi
	jnz	1b
	mov	%r11, %rax
	ret
3:
	cmp	%r8, %r11
	jae	4f
	mov	%rdx, (%r9)
	add	$8, %r9
4:
	inc	%r11
	jmp	2b
	.cfi_endproc
bench_loop_end:
	.size	bench_loop, . - bench_loop

	.section .note.GNU-stack, "", @progbits
