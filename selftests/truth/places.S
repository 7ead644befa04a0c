/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code of which it is known how many instructions it takes, each in a block of PLACE_SIZE
 * bytes: places 0 to 7 run PLACE_ITERATION instructions as often as they are asked to, and the
 * last two are read() with a system call instruction of its own.
 */
#include "places.h"

	.text
	.globl	places
	.balign	PLACE_SIZE
places:
	.rept	NR_LOOPS
	.balign	PLACE_SIZE
	.cfi_startproc
1:
	.rept	PLACE_ITERATION - 2
	nop
	.endr
	dec	%rdi
	jnz	1b
	ret
	.cfi_endproc
	.endr

	.rept	NR_PLACES - NR_LOOPS
	.balign	PLACE_SIZE
	.cfi_startproc
	xor	%eax, %eax
	syscall
	ret
	.cfi_endproc
	.endr
	.balign	PLACE_SIZE

	.section .note.GNU-stack, "", @progbits
