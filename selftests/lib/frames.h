/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loops that ticks interrupt above known frames on the user stack
 *
 * A frame is two words: the frame pointer of the caller, and the return address. A frame pointer is
 * the address of a frame; on riscv, its end.
 */
#ifndef _SELFTESTS_FRAMES_H
#define _SELFTESTS_FRAMES_H

#include <stdint.h>

#define FRAMES_FUNCTION __attribute__((visibility("hidden")))

struct frame {
	uintptr_t next;		/* the frame pointer of the caller */
	uintptr_t address;	/* the return address */
};

static inline uintptr_t frames_pointer(uintptr_t frame)
{
#ifdef __riscv
	return frame ? frame + sizeof(struct frame) : 0;
#else
	return frame;
#endif
}

#if defined(__aarch64__) || defined(__riscv)
#define FRAMES_LINK_REGISTER
#endif

/* A loop of @n iterations in a function with a frame. Stores its return address in *@address. */
extern FRAMES_FUNCTION void frames_loop(unsigned long n, uintptr_t *address);

/* A loop of @n iterations with frame pointer @fp, stack pointer @sp and link register @lr. */
extern FRAMES_FUNCTION void frames_loop_at(unsigned long n, uintptr_t fp, uintptr_t sp,
					   uintptr_t lr);

/* Calls @function(@arg) with the frame pointer 0, as the outermost function of a program. */
extern FRAMES_FUNCTION void frames_call(void (*function)(unsigned long arg), unsigned long arg);

/* The return address of the function that frames_call() calls. */
extern FRAMES_FUNCTION const char frames_call_return[];

/*
 * Calls a function that has a loop before each instruction that makes or removes its frame, and one
 * before its return. Stores the frame pointer of the caller of that function at the address @fp. On
 * x86, @fp is also on the stack above the return address, frames_steps_return.
 */
extern FRAMES_FUNCTION void frames_steps(unsigned long fp);
extern FRAMES_FUNCTION const char frames_steps_return[];

/* The loops themselves, at which ticks interrupt the functions. */
extern FRAMES_FUNCTION const char frames_loop_text[], frames_loop_at_text[];
extern FRAMES_FUNCTION const char frames_step_0[], frames_step_1[];
extern FRAMES_FUNCTION const char frames_step_2[], frames_step_3[];

#if defined(__x86_64__) || defined(__i386__)
/* frames_steps() after its call; @r is the first letter of the registers' names. */
#define FRAMES_STEPS_END(r)				\
	"frames_steps_return:\n"			\
	"	leave\n"				\
	"	ret\n"					\
	"1:	mov $0x80000, %ecx\n"			\
	"frames_step_0:\n"				\
	"	loop frames_step_0\n"			\
	"	push %" r "bp\n"			\
	"	mov $0x80000, %ecx\n"			\
	"frames_step_1:\n"				\
	"	loop frames_step_1\n"			\
	"	mov %" r "sp, %" r "bp\n"		\
	"	mov $0x80000, %ecx\n"			\
	"frames_step_2:\n"				\
	"	loop frames_step_2\n"			\
	"	pop %" r "bp\n"				\
	"	mov $0x80000, %ecx\n"			\
	"frames_step_3:\n"				\
	"	loop frames_step_3\n"			\
	"	ret\n"
#endif

#if defined(__x86_64__)

#define FRAMES_LOOP_SIZE 2
asm(".pushsection .text\n"
	"frames_loop:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov 8(%rbp), %rax\n"
	"	mov %rax, (%rsi)\n"
	"	mov %rdi, %rcx\n"
	"frames_loop_text:\n"
	"	loop frames_loop_text\n"
	"	pop %rbp\n"
	"	ret\n"
	"frames_loop_at:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	mov %rdi, %rcx\n"
	"	mov %rsp, %rbx\n"
	"	mov %rsi, %rbp\n"
	"	mov %rdx, %rsp\n"
	"frames_loop_at_text:\n"
	"	loop frames_loop_at_text\n"
	"	mov %rbx, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	"frames_call:\n"
	"	push %rbp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	xor %ebp, %ebp\n"
	"	call *%rax\n"
	"frames_call_return:\n"
	"	pop %rbp\n"
	"	ret\n"
	"frames_steps:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov %rbp, (%rdi)\n"
	"	push %rdi\n"
	"	call 1f\n"
	FRAMES_STEPS_END("r")
	".popsection\n");

#elif defined(__i386__)

#define FRAMES_LOOP_SIZE 2
asm(".pushsection .text\n"
	"frames_loop:\n"
	"	push %ebp\n"
	"	mov %esp, %ebp\n"
	"	mov 4(%ebp), %eax\n"
	"	mov 12(%ebp), %edx\n"
	"	mov %eax, (%edx)\n"
	"	mov 8(%ebp), %ecx\n"
	"frames_loop_text:\n"
	"	loop frames_loop_text\n"
	"	pop %ebp\n"
	"	ret\n"
	"frames_loop_at:\n"
	"	push %ebp\n"
	"	push %ebx\n"
	"	mov 12(%esp), %ecx\n"
	"	mov 16(%esp), %ebp\n"
	"	mov 20(%esp), %edx\n"
	"	mov %esp, %ebx\n"
	"	mov %edx, %esp\n"
	"frames_loop_at_text:\n"
	"	loop frames_loop_at_text\n"
	"	mov %ebx, %esp\n"
	"	pop %ebx\n"
	"	pop %ebp\n"
	"	ret\n"
	"frames_call:\n"
	"	push %ebp\n"
	"	mov 8(%esp), %eax\n"
	"	mov 12(%esp), %edx\n"
	"	sub $4, %esp\n"
	"	push %edx\n"
	"	xor %ebp, %ebp\n"
	"	call *%eax\n"
	"frames_call_return:\n"
	"	add $8, %esp\n"
	"	pop %ebp\n"
	"	ret\n"
	"frames_steps:\n"
	"	mov 4(%esp), %eax\n"
	"	push %ebp\n"
	"	mov %esp, %ebp\n"
	"	mov %ebp, (%eax)\n"
	"	push %eax\n"
	"	call 1f\n"
	FRAMES_STEPS_END("e")
	".popsection\n");

#elif defined(__aarch64__)

#define FRAMES_LOOP_SIZE 8
asm(".pushsection .text\n"
	".balign 4\n"
	"frames_loop:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x29, sp\n"
	"	str x30, [x1]\n"
	"frames_loop_text:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_loop_text\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	"frames_loop_at:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	str x19, [sp, #16]\n"
	"	mov x19, sp\n"
	"	mov x29, x1\n"
	"	mov sp, x2\n"
	"	mov x30, x3\n"
	"frames_loop_at_text:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_loop_at_text\n"
	"	mov sp, x19\n"
	"	ldr x19, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	ret\n"
	"frames_call:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x2, x0\n"
	"	mov x0, x1\n"
	"	mov x29, xzr\n"
	"	blr x2\n"
	"frames_call_return:\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	"frames_steps:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x29, sp\n"
	"	str x29, [x0]\n"
	"	bl 1f\n"
	"frames_steps_return:\n"
	"	ldp x29, x30, [sp], #16\n"
	"	ret\n"
	"1:	mov x0, #0x80000\n"
	"frames_step_0:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_step_0\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	mov x0, #0x80000\n"
	"frames_step_1:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_step_1\n"
	"	mov x29, sp\n"
	"	mov x0, #0x80000\n"
	"frames_step_2:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_step_2\n"
	"	ldp x29, x30, [sp], #16\n"
	"	mov x0, #0x80000\n"
	"frames_step_3:\n"
	"	subs x0, x0, #1\n"
	"	b.ne frames_step_3\n"
	"	ret\n"
	".popsection\n");

#elif defined(__riscv)

#define FRAMES_LOOP_SIZE 8
asm(".pushsection .text\n"
	".option push\n"
	".option norvc\n"
	"frames_loop:\n"
	"	addi sp, sp, -16\n"
	"	sd ra, 8(sp)\n"
	"	sd s0, 0(sp)\n"
	"	addi s0, sp, 16\n"
	"	sd ra, 0(a1)\n"
	"frames_loop_text:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_loop_text\n"
	"	ld s0, 0(sp)\n"
	"	ld ra, 8(sp)\n"
	"	addi sp, sp, 16\n"
	"	ret\n"
	"frames_loop_at:\n"
	"	addi sp, sp, -32\n"
	"	sd ra, 24(sp)\n"
	"	sd s0, 16(sp)\n"
	"	sd s1, 8(sp)\n"
	"	mv s1, sp\n"
	"	mv s0, a1\n"
	"	mv sp, a2\n"
	"	mv ra, a3\n"
	"frames_loop_at_text:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_loop_at_text\n"
	"	mv sp, s1\n"
	"	ld s1, 8(sp)\n"
	"	ld s0, 16(sp)\n"
	"	ld ra, 24(sp)\n"
	"	addi sp, sp, 32\n"
	"	ret\n"
	"frames_call:\n"
	"	addi sp, sp, -16\n"
	"	sd ra, 8(sp)\n"
	"	sd s0, 0(sp)\n"
	"	mv a2, a0\n"
	"	mv a0, a1\n"
	"	li s0, 0\n"
	"	jalr a2\n"
	"frames_call_return:\n"
	"	ld s0, 0(sp)\n"
	"	ld ra, 8(sp)\n"
	"	addi sp, sp, 16\n"
	"	ret\n"
	"frames_steps:\n"
	"	addi sp, sp, -16\n"
	"	sd ra, 8(sp)\n"
	"	sd s0, 0(sp)\n"
	"	addi s0, sp, 16\n"
	"	sd s0, 0(a0)\n"
	"	jal 1f\n"
	"frames_steps_return:\n"
	"	ld s0, 0(sp)\n"
	"	ld ra, 8(sp)\n"
	"	addi sp, sp, 16\n"
	"	ret\n"
	"1:	li a0, 0x80000\n"
	"frames_step_0:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_step_0\n"
	"	addi sp, sp, -16\n"
	"	sd ra, 8(sp)\n"
	"	sd s0, 0(sp)\n"
	"	li a0, 0x80000\n"
	"frames_step_1:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_step_1\n"
	"	addi s0, sp, 16\n"
	"	li a0, 0x80000\n"
	"frames_step_2:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_step_2\n"
	"	ld s0, 0(sp)\n"
	"	ld ra, 8(sp)\n"
	"	addi sp, sp, 16\n"
	"	li a0, 0x80000\n"
	"frames_step_3:\n"
	"	addi a0, a0, -1\n"
	"	bnez a0, frames_step_3\n"
	"	ret\n"
	".option pop\n"
	".popsection\n");

#else
#error "No loops with frames for this architecture"
#endif

#endif /* _SELFTESTS_FRAMES_H */
