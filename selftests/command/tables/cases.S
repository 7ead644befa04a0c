/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code with all kinds of call frame information. A comment behind a function has the rule of its
 * first byte, or of the byte at the distance before the colon; run compares them.
 */
#ifdef DEBUG_FRAME
	.cfi_sections .debug_frame
#endif
	.text
	.globl _start
_start:
	.skip 32, 0x90
/* _start: none 0 0 */

	.macro function name
	.globl \name
	.balign 16, 0x90
\name:
	.cfi_startproc
	.endm
	.macro done
	nop
	.cfi_endproc
	.endm

	/* A CFA of which a register is the base, and the frame pointer's place */
	function plain
	done
/* plain: sp 8 0 */
	function rows
	nop
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	nop
	.cfi_remember_state
	.cfi_def_cfa_register %rbp
	nop
	.cfi_restore_state
	nop
	.cfi_restore %rbp
	.cfi_adjust_cfa_offset -8
	done
/* rows: sp 8 0 */
/* rows+1: sp 16 -16 */
/* rows+2: fp 16 -16 */
/* rows+3: sp 16 -16 */
/* rows+4: sp 8 0 */
	function same
	.cfi_same_value %rbp
	done
/* same: sp 8 0 */
	function lost
	.cfi_undefined %rbp
	done
/* lost: end 0 0 */
	function moved
	.cfi_register %rbp, %rax
	done
/* moved: end 0 0 */
	function other_base
	.cfi_def_cfa_register %rbx
	done
/* other_base: end 0 0 */

	/* Distances that fit a rule, and others */
	function large
	.cfi_def_cfa_offset 0x7ffffff8
	done
/* large: sp 2147483640 0 */
	function too_large
	.cfi_def_cfa_offset 0x80000000
	done
/* too_large: end 0 0 */
	function absurd
	.cfi_def_cfa_offset 0x7ffffffffffffff8
	done
/* absurd: end 0 0 */
	function far
	.cfi_offset %rbp, -32768
	done
/* far: sp 8 -32768 */
	function too_far
	.cfi_offset %rbp, -32776
	done
/* too_far: end 0 0 */
	function at_cfa
	.cfi_offset %rbp, 0
	done
/* at_cfa: end 0 0 */

	/* The return address and the stack pointer */
	function outermost
	.cfi_undefined %rip
	done
/* outermost: outermost 0 0 */
	function elsewhere
	.cfi_offset %rip, -16
	done
/* elsewhere: end 0 0 */
	/* Calls preserve rbx: a callee can have changed it. */
	function at_register
	.cfi_def_cfa %r9, 16
	.cfi_offset %rbp, -24
	nop
	.cfi_def_cfa %rax, 8
	nop
	.cfi_def_cfa %rdi, -8
	nop
	.cfi_def_cfa %rbx, 8
	done
/* at_register: register8 16 -24 */
/* at_register+1: register10 8 -24 */
/* at_register+2: register14 -8 -24 */
/* at_register+3: end 0 0 */
	function in_register
	.cfi_register %rip, %rcx
	done
/* in_register: end 0 0 */
	function other_stack
	.cfi_offset %rsp, -24
	done
/* other_stack: end 0 0 */

	/* Expressions: rbp-8, deref; but rbp of the caller is not at rbp */
	function indirect
	.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
	done
/* indirect: end 0 0 */
	/* rbp of the caller is at rbp. */
	function realigned
	.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
	.cfi_escape 0x10, 6, 2, 0x76, 0
	done
/* realigned: indirect -8 0 */
	/* rsp+8, deref, +8 */
	function above_stack
	.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8
	.cfi_offset %rbp, -16
	done
/* above_stack: indirect_sp 8 -16 */
	/* rsp+8, deref, +80; and +12, which is no word */
	function far_above_stack
	.cfi_escape 0x0f, 6, 0x77, 8, 0x06, 0x23, 0xd0, 0
	done
/* far_above_stack: indirect_sp9 8 0 */
	function between_words
	.cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 12
	done
/* between_words: end 0 0 */
	function other_expression
	.cfi_escape 0x0f, 4, 0x77, 8, 0x06, 0x06
	done
/* other_expression: end 0 0 */

	/* rsp+8+((rip&15)>=N)<<3: linkage tables */
	.macro stubs name number
	function \name
	.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + \number, 0x2a, 0x33, 0x24, 0x22
	.skip 31, 0x90
	done
	.endm
	stubs lazy, 11
/* lazy: sp 8 0 */
/* lazy+10: sp 8 0 */
/* lazy+11: sp 16 0 */
/* lazy+15: sp 16 0 */
/* lazy+16: sp 8 0 */
/* lazy+27: sp 16 0 */
	stubs with_endbr, 9
/* with_endbr+8: sp 8 0 */
/* with_endbr+9: sp 16 0 */
/* with_endbr+25: sp 16 0 */
	/* The sum of two stack pointers is none. */
	function no_stubs
	.cfi_escape 0x0f, 5, 0x77, 8, 0x77, 8, 0x22
	done
/* no_stubs: end 0 0 */

	/* rsp, rbp and rip are in the ucontext of a signal. */
	.macro signal name pc
	function \name
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06
	.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
	.cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1
	.cfi_escape 0x10, 16, 3, 0x77, \pc, 1
	done
	.endm
	signal handler, 0xa8
/* handler: signal 0 0 */
	signal other_handler, 0xb0
/* other_handler: end 0 0 */
	function signal_without_registers
	.cfi_signal_frame
	done
/* signal_without_registers: sp 8 0 */

	/* A system call behind an entry, and the child as in clone3(), of which there are two forms */
	.macro child align=
	.cfi_startproc
	.cfi_undefined %rip
	xor %ebp, %ebp
	\align
	mov %r8, %rdi
	call *%rdx
	done
	.endm
	function clones
	.cfi_def_cfa_offset 24
	done
	syscall
	ret
	ret
	child
/* clones+1: sp 24 0 */
/* clones+3: sp 24 0 */
/* clones+4: none 0 0 */
/* clones+5: outermost 0 0 */
	function clones_at_end
	.cfi_def_cfa_offset 32
	done
	syscall
	child "and $-16, %rsp"
/* clones_at_end+2: sp 32 0 */
/* clones_at_end+3: outermost 0 0 */
	function clones_later
	done
	nop
	syscall
	child
/* clones_later+1: none 0 0 */
/* clones_later+2: none 0 0 */
	/* The child of clone() finds its function on the stack. */
	function clones_with_stack
	done
	syscall
	ret
	.cfi_startproc
	.cfi_undefined %rip
	xor %ebp, %ebp
	pop %rax
	pop %rdi
	call *%rax
	done
/* clones_with_stack+1: none 0 0 */
/* clones_with_stack+3: none 0 0 */
/* clones_with_stack+4: outermost 0 0 */

	/* A function in several blocks, code without a function, and a row in a later block */
	function long
	.cfi_def_cfa_offset 24
	.skip 0x28000, 0x90
	done
/* long+163839: sp 24 0 */
	.globl gap
gap:
	.skip 0x18000, 0x90
/* gap: none 0 0 */
/* gap+98303: none 0 0 */
	function late
	.cfi_def_cfa_offset 32
	done
/* late: sp 32 0 */
/* late+1: none 0 0 */

#ifdef EDGE
	/* The text ends where a block ends, if it begins at 0x1000 in the file. */
	function last
	.cfi_def_cfa_offset 40
	.skip 0x5f000 - 1 - (. - _start), 0x90
	done
/* last: sp 40 0 */
/* last+65536: sp 40 0 */
#endif
