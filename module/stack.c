// SPDX-License-Identifier: GPL-2.0
/*
 * Walks the frame pointers on the user stack of current, for the record of a tick.
 *
 * A frame pointer is the address of two words: the caller's frame pointer, and the address to which
 * the function returns. Both are data of the program, which may be wrong or changing. Each word is
 * read once and without faults, and each frame must be above the previous one, so the walk is
 * bounded whatever the words are. Without the lock of the mappings the module cannot tell a stack
 * from other memory; but only memory of current that user mode can read is read, and only values
 * that are user addresses are recorded.
 *
 * Context: the hard interrupt of the tick or of a timer, with the page tables of current->mm, since
 * the caller excludes exec and exit.
 */
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "profil.h"

/*
 * Reads two words of the size @word from @address, like copy_from_user_nofault(), but inline. On
 * x86, user_access_begin() also stops speculation with an address that it refuses. Return: false if
 * they are not user memory, cannot be read, or are not present.
 */
static __always_inline bool stack_read(unsigned long address, unsigned int word, u64 *first,
				       u64 *second)
{
	const u64 __user *wide = (const u64 __user *)address;
	const u32 __user *narrow = (const u32 __user *)address;

	if (!user_access_begin(wide, 2 * word))
		return false;
	if (word == sizeof(*wide)) {
		unsafe_get_user(*first, wide, fault);
		unsafe_get_user(*second, wide + 1, fault);
	} else {
		unsafe_get_user(*first, narrow, fault);
		unsafe_get_user(*second, narrow + 1, fault);
	}
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

/*
 * Stores the return addresses of the frames from @fp on in *@to, and advances *@to, up to @limit.
 * @below: the frames are above this. Return: why there are no more.
 */
static __always_inline enum profil_stack_end stack_walk(u64 **to, const u64 *limit,
							unsigned long fp, unsigned long below,
							unsigned int word)
{
	const u64 last = PROFIL_USER_END - 1;
	u64 next, address;

	for (;; (*to)++) {
		if (fp <= below)
			return fp ? PROFIL_STACK_ORDER : PROFIL_STACK_OUTERMOST;
		if (fp & (word - 1))
			return PROFIL_STACK_MISALIGNED;
		if (*to == limit)
			return PROFIL_STACK_DEPTH;
		if (!stack_read(fp, word, &next, &address))
			return PROFIL_STACK_UNREADABLE;
		address = profil_strip_address(address);
		if (address - 1 >= last)
			return PROFIL_STACK_ADDRESS;
		**to = address;
		below = fp;
		fp = profil_strip_address(next);
	}
}

/* Fills in @stack, which has room for @depth addresses, with those of the interrupted user code. */
void profil_stack_fill(struct profil_stack *stack, u32 depth)
{
	/* In user mode, these are the registers that the interrupt has saved. */
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long fp = profil_strip_address(frame_pointer(regs));
	unsigned long below = user_stack_pointer(regs) - 1;
	unsigned int word = profil_stack_word(regs);
	u64 *to = stack->addresses;

	stack->end = PROFIL_STACK_UNSUPPORTED;
	pagefault_disable();
	if (word == sizeof(u64))
		stack->end = stack_walk(&to, to + depth, fp, below, sizeof(u64));
	else if (word == sizeof(u32))
		stack->end = stack_walk(&to, to + depth, (u32)fp, (u32)below, sizeof(u32));
	pagefault_enable();
	stack->nr = to - stack->addresses;
}
