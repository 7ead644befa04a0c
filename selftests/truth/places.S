/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code with a known number of instructions, in blocks of PLACE_SIZE bytes. Places 0 to 7 execute
 * PLACE_ITERATION instructions in each of the iterations that the caller asks for. The last two
 * places call read(), each with its own system call instruction.
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
