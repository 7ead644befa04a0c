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
 * size_t bench_system_loop(uint64_t iterations, uint64_t threshold,
 *			    uint64_t *gaps, size_t max_gaps, int fd, void *buffer);
 *
 * The same, but an iteration is a read() of BENCH_READ_BYTES from fd, nearly all of which runs in
 * the kernel. This function is before bench_loop_end, so its pcs are in the ranges of the loop.
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

	.globl	bench_system_loop
	.type	bench_system_loop, @function
bench_system_loop:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	push	%r13
	.cfi_adjust_cfa_offset 8
	push	%r14
	.cfi_adjust_cfa_offset 8
	push	%r15
	.cfi_adjust_cfa_offset 8
	mov	%rdi, %rbx		/* iterations */
	mov	%rsi, %rbp		/* threshold */
	mov	%rdx, %r12		/* next gap */
	mov	%rcx, %r13		/* room in gaps */
	xor	%r14d, %r14d		/* gaps so far */
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r15		/* the clock in the last iteration */
1:
	xor	%eax, %eax		/* read */
	mov	%r8, %rdi
	mov	%r9, %rsi
	mov	$BENCH_READ_BYTES, %edx
	syscall
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %rdx
	sub	%r15, %rdx
	mov	%rax, %r15
	cmp	%rbp, %rdx
	ja	3f
2:
	dec	%rbx
	jnz	1b
	mov	%r14, %rax
	pop	%r15
	.cfi_adjust_cfa_offset -8
	pop	%r14
	.cfi_adjust_cfa_offset -8
	pop	%r13
	.cfi_adjust_cfa_offset -8
	pop	%r12
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
3:
	cmp	%r13, %r14
	jae	4f
	mov	%rdx, (%r12)
	add	$8, %r12
4:
	inc	%r14
	jmp	2b
	.cfi_endproc
bench_loop_end:
	.size	bench_system_loop, . - bench_system_loop

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
