// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the return addresses on the user stack of current, for the record of a tick: those of the
 * frames, and the words in which the innermost function has its own if it has no frame.
 *
 * A frame is two words: the caller's frame pointer, and the address to which the function returns.
 * Both are data of the program, which may be wrong or changing. Each word is read once and without
 * faults, and each frame must be above the previous one, so the walk is bounded. Only memory that
 * user mode can read is read, and only values that are user addresses are recorded.
 *
 * Context: the hard interrupt of the tick or of a timer, with the page tables of current->mm, since
 * the caller excludes exec and exit.
 */
#include <linux/nospec.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "internal.h"

/* What a walk depends on. The functions are inline, so that these are constants or registers. */
struct stack_form {
	unsigned int word;	/* size of a word */
	unsigned long end;	/* user addresses are below this */
};

/*
 * Reads two words at @address, after user_access_begin(). The mask stops the CPU from loading from
 * other addresses by speculation. Return: false, and undefined words, if they cannot be read.
 */
static __always_inline bool stack_read(struct stack_form form, unsigned long address, u64 *first,
				       u64 *second)
{
	const unsigned long limit = form.end - 2 * form.word + 1;
	const u64 __user *wide;
	const u32 __user *narrow;

	if (address >= limit)
		return false;
	address = array_index_nospec(address, limit);
	wide = (const u64 __user *)address;
	narrow = (const u32 __user *)address;
	if (form.word == sizeof(*wide)) {
		unsafe_get_user(*first, wide, fault);
		unsafe_get_user(*second, wide + 1, fault);
	} else {
		unsafe_get_user(*first, narrow, fault);
		unsafe_get_user(*second, narrow + 1, fault);
	}
	return true;
fault:
	return false;
}

/* Returns the user address in @value, or 0 if there is none. */
static __always_inline u64 stack_address(struct stack_form form, u64 value)
{
	value = profil_strip_address(value);
	return value < form.end ? value : 0;
}

/*
 * Stores the return addresses of the frames from @frame on in *@to, up to @limit, and advances
 * *@to. @below: the frames are above this. Return: why there are no more.
 */
static __always_inline enum profil_stack_end stack_walk(struct stack_form form, unsigned long frame,
							unsigned long below, u64 **to,
							const u64 *limit)
{
	u64 next, address;

	for (;; (*to)++) {
		if (frame <= below)
			return frame ? PROFIL_STACK_ORDER : PROFIL_STACK_OUTERMOST;
		if (frame & (form.word - 1))
			return PROFIL_STACK_MISALIGNED;
		if (*to == limit)
			return PROFIL_STACK_DEPTH;
		if (!stack_read(form, frame, &next, &address))
			return PROFIL_STACK_UNREADABLE;
		address = stack_address(form, address);
		if (!address)
			return PROFIL_STACK_ADDRESS;
		**to = address;
		below = frame;
		frame = profil_frame_of(next);
	}
}

/* Fills in @stack, which is zeroed, from the values of the registers. */
static __always_inline void stack_fill(struct profil_stack *stack, u32 depth, unsigned long frame,
				       unsigned long sp, unsigned long lr, unsigned int word)
{
	struct stack_form form = { word, PROFIL_USER_END };
	u64 *to = stack->addresses;
	u64 first, second;

	/* On x86, a constant of 64 bits cannot be an operand of array_index_nospec(). */
	OPTIMIZER_HIDE_VAR(form.end);
	/* This is true for any user memory. stack_read() checks the addresses. */
	if (!user_access_begin((const void __user *)0, word))
		return;
	if (PROFIL_HAS_LINK_REGISTER) {
		stack->innermost[0] = stack_address(form, lr);
	} else if (stack_read(form, sp, &first, &second)) {
		stack->innermost[0] = stack_address(form, first);
		stack->innermost[1] = stack_address(form, second);
	}
	stack->end = stack_walk(form, frame, sp - 1, &to, to + depth);
	stack->nr = to - stack->addresses;
	user_access_end();
}

/* The ns for which a clock lets a task run for each frame that was read, which takes less */
#define STACK_FRAME_GAP	100

DEFINE_PER_CPU(u32, profil_clock_gap);

/* Fills in @stack, which has room for @depth addresses, with those of the interrupted user code. */
void profil_stack_fill(struct profil_stack *stack, u32 depth)
{
	/* In user mode, these are the registers that the interrupt has saved. */
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long frame = profil_frame_of(frame_pointer(regs));
	unsigned long sp = profil_strip_address(user_stack_pointer(regs));
	unsigned int word = profil_stack_word(regs);

	*stack = (struct profil_stack) { .end = PROFIL_STACK_UNSUPPORTED };
	pagefault_disable();
	if (word == sizeof(u64))
		stack_fill(stack, depth, frame, sp, profil_link_register(regs), sizeof(u64));
	else if (word == sizeof(u32))
		stack_fill(stack, depth, (u32)frame, (u32)sp, 0, sizeof(u32));
	pagefault_enable();
	__this_cpu_add(profil_clock_gap, stack->nr * STACK_FRAME_GAP);
}
