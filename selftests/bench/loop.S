/* SPDX-License-Identifier: GPL-2.0 */
/*
 * size_t bench_loop(uint64_t iterations, uint64_t threshold,
 *		     uint64_t *gaps, size_t max_gaps);
 *
 * A user loop with BENCH_LOOP_LENGTH instructions in each iteration. This is a prime number, so a
 * tick is not a multiple of it, and the phase of the tick varies. The loop reads the clock in each
 * iteration. If an iteration takes longer than threshold, it was interrupted, and its time is
 * stored in gaps. Returns the number of these iterations, which may be larger than max_gaps.
 *
 * ssize_t bench_read(int fd, void *buffer);
 *
 * Reads BENCH_READ_BYTES. It is before bench_loop_end, so its pcs are in the ranges of the loop.
 *
 * size_t bench_framed_loop(uint64_t iterations, uint64_t threshold,
 *			    uint64_t *gaps, size_t max_gaps, const void *frame);
 *
 * Calls bench_loop() with this frame pointer.
 */
#include "loop.h"

	.text
	.globl	bench_loop
	.globl	bench_loop_end
	.type	bench_loop, @function
	.p2align 4
bench_loop:
	.cfi_startproc			/* for profilers that unwind the stack */
	mov	%rcx, %r8		/* room in gaps */
	mov	%rdx, %r9		/* next gap */
	xor	%r11d, %r11d		/* gaps so far */
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r10		/* the clock in the last iteration */
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
	.size	bench_loop, . - bench_loop

	.globl	bench_read
	.type	bench_read, @function
bench_read:
	.cfi_startproc
	xor	%eax, %eax		/* read */
	mov	$BENCH_READ_BYTES, %edx
	syscall
	ret
	.cfi_endproc
bench_loop_end:
	.size	bench_read, . - bench_read

	.globl	bench_framed_loop
	.type	bench_framed_loop, @function
bench_framed_loop:
	push	%rbp
	mov	%r8, %rbp
	call	bench_loop
	pop	%rbp
	ret
	.size	bench_framed_loop, . - bench_framed_loop

	.section .note.GNU-stack, "", @progbits
