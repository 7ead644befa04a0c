// SPDX-License-Identifier: GPL-2.0
/*
 * Walks the user stack of current, for the stack of a record: the return addresses at the tick.
 *
 * Where an unwind table tells how a function's caller is found, the walk does that. Otherwise it
 * follows the frame pointer: a frame is two words, the caller's frame pointer and the return
 * address. The table, the registers and the stack are data of users, which may be wrong or be
 * changing. So the walk reads each word once, without faults, only memory that user mode can read,
 * and none of a device; records only addresses in executable mappings; and requires that each frame
 * is above the previous one, except at a signal and where a table leads to another stack.
 *
 * NUMA balancing makes present pages unreadable, to see who uses them, and so does the aging of
 * pages on some arm64. Then the task reads such a page as the program would, without any lock, and
 * the walk is done again.
 *
 * Context: task work of current, under mmap_lock, which is held for reading. A walk is under RCU.
 */
#include <linux/bitops.h>
#include <linux/hugetlb.h>
#include <linux/log2.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>

#include "compat.h"
#include "ring.h"

/* The largest number of faults for a record. The next records can have more of them. */
#define STACK_FAULTS	16

struct stack_walk {
	struct profil_ring *ring;
	u64 space;			/* the id of the address space */
	unsigned int word;		/* size of a word on the stack */
	struct profil_unwind_rule frame;	/* for frames, where no table has a rule */
	struct profil_unwind_rule epilogue;	/* set by stack_epilogue() */
	unsigned long sp, fp;		/* registers of the function whose caller is searched */
	struct pt_regs *regs;		/* at the tick; NULL after a signal frame */

	/* the mapping of the last address of text, or the part of it that a table can describe */
	unsigned long text, text_size;
	u64 text_offset;		/* in the file, or in the memory of the table */
	const struct unwind_table *table;	/* or NULL */
	bool is_made;			/* at run time: of no file */

	/* the mapping of the last word; data_last: the offset of its last two words */
	unsigned long data, data_last;

	struct stack_unread unread;
};

/* Finds the mapping of @address. Return: false if it is not executable. */
static noinline bool stack_enter_text(struct stack_walk *w, unsigned long address)
{
	struct vm_area_struct *vma = vma_lookup(current->mm, address);
	const unsigned long part = round_down(address, PROFIL_UNWIND_CODE_SIZE);
	unsigned long end;

	if (!vma || !(vma->vm_flags & VM_EXEC))
		return false;
	w->text = vma->vm_start;
	end = vma->vm_end;
	w->text_offset = vma->vm_file ? (u64)vma->vm_pgoff << PAGE_SHIFT : 0;
	/* A private mapping of /dev/zero is anonymous, but of a file. */
	w->is_made = PROFIL_HAS_UNWIND && w->word == sizeof(u64) && !vma->vm_file &&
		     vma_is_anonymous(vma);
	if (w->is_made) {
		w->text = max(w->text, part);
		end = min(end, part + PROFIL_UNWIND_CODE_SIZE);
		w->text_offset = w->text - part;
	}
	w->text_size = end - w->text;
	w->table = w->word == sizeof(u64) ? profil_unwind_find(w->ring, vma, w->space, address) :
					    NULL;
	return true;
}

/* Finds the mapping of two words at @address. Return: false if they may not be read. */
static noinline bool stack_enter_data(struct stack_walk *w, unsigned long address)
{
	const struct vm_area_struct *vma = vma_lookup(current->mm, address);

	if (!vma || vma->vm_flags & (VM_IO | VM_PFNMAP))
		return false;
	w->data = vma->vm_start;
	w->data_last = vma->vm_end - vma->vm_start - 2 * w->word;
	return address - w->data <= w->data_last;
}

/* Reads two words. Return: false, and undefined words, if they cannot be read. */
static __always_inline bool stack_read(struct stack_walk *w, unsigned long address, u64 *first,
				       u64 *second)
{
	const u64 __user *wide = (const u64 __user *)address;
	const u32 __user *narrow = (const u32 __user *)address;

	if (address - w->data > w->data_last && !stack_enter_data(w, address))
		return false;
	/* This also stops the CPU from loading from other addresses by speculation. */
	if (!user_access_begin(wide, 2 * sizeof(*wide)))
		return false;
	if (w->word == sizeof(*wide)) {
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
	w->unread = (struct stack_unread) { address, 2 * w->word };
	return false;
}

/* The result of a step, which has found the caller. Others are the reason why it has not. */
#define STACK_CALLER	((enum profil_stack_end)-1)

/* Does many steps by frame pointer, in one mapping and one text, with fewer instructions. */
static void stack_follow(struct stack_walk *w, struct profil_stack *stack)
{
	u64 *to = &stack->addresses[stack->nr], *limit = &stack->addresses[w->ring->stack_depth];
	const u64 __user *data = (const u64 __user *)w->data;
	const unsigned long end = w->data_last / sizeof(u64) + 1, text = w->text + 1;
	unsigned long fp = w->fp, sp = w->sp, i, next, address;

	if (!user_access_begin(data, (end + 1) * sizeof(u64)))
		return;
	while (fp >= sp && to < limit) {
		/* The index of the frame is too large if the frame is not aligned. */
		i = ror64(fp - w->data, ilog2(sizeof(u64)));
		if (i >= end)
			break;
		i = array_index_nospec(i, end);
		unsafe_get_user(next, data + i, out);
		unsafe_get_user(address, data + i + 1, out);
		address = profil_strip_address(address);
		if (address - text >= w->text_size)
			break;
		*to++ = address;
		sp = fp + 2 * sizeof(u64);
		fp = profil_frame_of(next);
	}
out:
	user_access_end();
	w->fp = fp;
	w->sp = sp;
	stack->nr = to - stack->addresses;
}

/* In code made at run time, "add $n,%rsp; ret" after a call runs next, and so tells the caller. */
static bool stack_epilogue(struct stack_walk *w, unsigned long next)
{
	u8 code[5];
	unsigned long i = next - w->text, end = w->text_size - sizeof(code) + 1;
	const void __user *from = (void __user *)(w->text + array_index_nospec(i, end));

	if (i >= end)
		return false;
	if (copy_from_user_nofault(code, from, sizeof(code))) {
		w->unread = (struct stack_unread) { next, sizeof(code) };
		return false;
	}
	if (memcmp(code, "\x48\x83\xc4", 3) || code[3] > S8_MAX || code[4] != 0xc3)
		return false;
	w->epilogue.cfa = code[3] + 8;
	return true;
}

/*
 * Tells how to find the caller of a function without a rule in a table, and may do many steps by
 * frame pointer before. @next: the next instruction.
 */
static const struct profil_unwind_rule *stack_without_rule(struct stack_walk *w,
							   struct profil_stack *stack,
							   unsigned long next)
{
	if (w->is_made && stack_epilogue(w, next))
		return &w->epilogue;
	if (!w->table && w->word == sizeof(u64))
		stack_follow(w, stack);
	return &w->frame;
}

/*
 * Returns the rule for the byte at @at: the last one from there on back; or else the one of
 * stack_without_rule(). @stack: NULL for the innermost function: then w->frame.
 */
static __always_inline const struct profil_unwind_rule *stack_rule(struct stack_walk *w,
								   struct profil_stack *stack,
								   unsigned long at)
{
	const struct unwind_table *table = w->table;
	u64 offset = at - w->text + w->text_offset, block = offset / PROFIL_UNWIND_BLOCK;
	const struct profil_unwind_rule *rule;
	const u32 *row;
	u32 key, n;

	if (!table || block >= table->nr_blocks)
		goto none;
	/* User space chooses the offset. */
	block = array_index_nospec(block, table->nr_blocks);
	key = (offset % PROFIL_UNWIND_BLOCK) << 16 | 0xffff;
	row = table->rows + table->blocks[block];
	for (n = table->blocks[block + 1] - table->blocks[block]; n; n /= 2) {
		const u32 *middle = row + n / 2;

		if (*middle <= key) {
			row = middle + 1;
			n--;
		}
	}
	if (row == table->rows)
		goto none;
	rule = &table->rules[row[-1] & 0xffff];
	if (rule->kind != PROFIL_UNWIND_NONE)
		return rule;
none:
	return stack ? stack_without_rule(w, stack, at + 1) : &w->frame;
}

/* Goes to the code that a signal has interrupted. @at: Out: its next instruction. */
static enum profil_stack_end stack_step_signal(struct stack_walk *w, unsigned long *at)
{
	u64 fp, sp, pc, unused;

	if (!stack_read(w, w->sp + PROFIL_SIGNAL_FP, &fp, &unused) ||
	    !stack_read(w, w->sp + PROFIL_SIGNAL_SP, &sp, &pc))
		return PROFIL_STACK_UNREADABLE;
	w->sp = sp;
	w->fp = fp;
	w->regs = NULL;
	*at = pc;
	return STACK_CALLER;
}

/* Goes to the caller by @rule. @at: Out: the last byte of the call. */
static enum profil_stack_end stack_step(struct stack_walk *w,
					const struct profil_unwind_rule *rule, unsigned long *at)
{
	const bool sp_indirect = rule->kind == PROFIL_UNWIND_SP_INDIRECT;
	const bool is_frame = rule == &w->frame;
	unsigned long cfa = rule->kind == PROFIL_UNWIND_SP || sp_indirect ? w->sp : w->fp, saved;
	u64 fp, address, unused;

	if (rule->kind == PROFIL_UNWIND_SIGNAL)
		return stack_step_signal(w, at);
	if (rule->kind < PROFIL_UNWIND_SP)
		return rule->kind == PROFIL_UNWIND_END ? PROFIL_STACK_NO_RULE :
							 PROFIL_STACK_OUTERMOST;
	if (is_frame && !w->fp)
		return PROFIL_STACK_OUTERMOST;
	cfa += rule->cfa;
	if (unlikely(rule->kind > PROFIL_UNWIND_FP)) {
		if (rule->kind != PROFIL_UNWIND_REGISTER) {
			if (!stack_read(w, cfa, &address, &unused))
				return PROFIL_STACK_UNREADABLE;
			cfa = address + (sp_indirect ? 8 * (1 + rule->number) : 0);
		} else if (w->regs) {
			cfa = profil_register(w->regs, rule->number) + rule->cfa;
		} else {
			return PROFIL_STACK_NO_RULE;
		}
	}
	if (is_frame ? w->fp < w->sp : unlikely(cfa <= w->sp) && !sp_indirect)
		return PROFIL_STACK_ORDER;
	if (is_frame && w->fp & (w->word - 1))
		return PROFIL_STACK_MISALIGNED;
	if (rule->fp == w->frame.fp) {
		if (!stack_read(w, cfa + rule->fp, &fp, &address))
			return PROFIL_STACK_UNREADABLE;
	} else {
		/* The word above the CFA is present, but the one below the stack need not be. */
		if (!stack_read(w, cfa - 8, &address, &unused))
			return PROFIL_STACK_UNREADABLE;
		saved = rule->kind == PROFIL_UNWIND_FP_INDIRECT ? w->fp : cfa + rule->fp;
		if (!rule->fp && rule->kind != PROFIL_UNWIND_FP_INDIRECT)
			fp = w->fp;
		else if (!stack_read(w, saved, &fp, &unused))
			return PROFIL_STACK_UNREADABLE;
	}
	w->fp = profil_frame_of(fp);
	w->sp = cfa;
	*at = profil_strip_address(address) - 1;
	return STACK_CALLER;
}

/* Keeps the words in which the innermost function has its return address if it has no frame. */
static void stack_keep_innermost(struct stack_walk *w, struct profil_stack *stack)
{
	u64 words[2] = {};

	if (PROFIL_HAS_LINK_REGISTER)
		words[0] = profil_link_register(w->regs);
	else if (!stack_read(w, w->sp, &words[0], &words[1]))
		return;
	for (int i = 0; i < 2; i++) {
		words[i] = profil_strip_address(words[i]);
		if (words[i] < PROFIL_USER_END)
			stack->innermost[i] = words[i];
	}
}

/* Stores the return addresses in @stack. @at: the pc. Return: why there are no more. */
static enum profil_stack_end stack_walk(struct stack_walk *w, struct profil_stack *stack,
					unsigned long at)
{
	const struct profil_unwind_rule *frame = &w->frame, *rule = frame;
	const u32 depth = w->ring->stack_depth;
	enum profil_stack_end end;

	if (stack_enter_text(w, at))
		rule = stack_rule(w, NULL, at);
	if (rule == frame)
		stack_keep_innermost(w, stack);
	for (;;) {
		end = stack_step(w, rule, &at);
		if (end != STACK_CALLER)
			return end;
		if (at - w->text >= w->text_size && !stack_enter_text(w, at))
			return at + 1 || rule == frame ? PROFIL_STACK_ADDRESS : PROFIL_STACK_NULL;
		if (stack->nr == depth)
			return PROFIL_STACK_DEPTH;
		stack->addresses[stack->nr++] = (at + 1) |
			(rule != frame ? PROFIL_STACK_BY_TABLE : 0);
		rule = stack_rule(w, stack, at);
	}
}

/*
 * Returns true if there is a page, so that a fault only has to make it readable. NUMA balancing
 * leaves out huge pages of hugetlb, and before 6.6, these ignore FOLL_NOFAULT.
 */
static bool stack_is_present(unsigned long address)
{
	struct vm_area_struct *vma = vma_lookup(current->mm, address);

	return vma && vma_is_accessible(vma) && !is_vm_hugetlb_page(vma) &&
	       get_user_pages(address & PAGE_MASK, 1, FOLL_FORCE | FOLL_NOFAULT, NULL) == 1;
}

/*
 * Fills in @stack, which has room for the depth of @ring, with the callers of user code at @pc.
 * @space: The id of current's address space. @unread: Out: the last memory that could not be read,
 * if it is present; otherwise its size is 0.
 */
void ring_fill_stack(struct profil_ring *ring, struct profil_stack *stack, u64 space, u64 pc,
		     struct stack_unread *unread)
{
	struct pt_regs *regs = task_pt_regs(current);
	const unsigned int word = profil_stack_word(regs);
	struct stack_walk w = {
		.ring = ring,
		.space = space,
		.word = word,
		.frame = { .kind = PROFIL_UNWIND_FP, .cfa = 2 * word, .fp = -2 * (int)word },
		.epilogue = { .kind = PROFIL_UNWIND_SP },
		.sp = profil_strip_address(user_stack_pointer(regs)),
		.fp = profil_frame_of(frame_pointer(regs)),
		.regs = regs,
		.data = ULONG_MAX,
	};

	*unread = (struct stack_unread) {};
	*stack = (struct profil_stack) { .end = PROFIL_STACK_UNSUPPORTED };
	if (!word)
		return;
	if (word == sizeof(u32)) {
		w.sp = (u32)w.sp;
		w.fp = (u32)w.fp;
	}
	pagefault_disable();
	rcu_read_lock();
	/* A grace period after the ring is closed, there are no tables. */
	if (!READ_ONCE(ring->closed))
		stack->end = stack_walk(&w, stack, pc);
	rcu_read_unlock();
	pagefault_enable();
	if (unlikely(w.unread.size) && stack_is_present(w.unread.address) &&
	    stack_is_present(w.unread.address + w.unread.size - 1))
		*unread = w.unread;
}

/*
 * Fills in @stack again, after ring_fill_stack(), when @unread is readable. Not under mmap_lock:
 * if another thread removes the page now, the fault waits for a disk or for user space. The walks
 * end if the same page cannot be read twice: on x86, memory that has lost its contents is present
 * until this task work ends, and the kernel panics if a task reads it more than ten times.
 */
void ring_refill_stack(struct profil_ring *ring, struct profil_stack *stack, u64 space, u64 pc,
		       struct stack_unread *unread)
{
	unsigned long page;

	for (int i = 0; i < STACK_FAULTS && unread->size; i++) {
		if (fault_in_readable((char __user *)unread->address, unread->size) ||
		    fatal_signal_pending(current) || mmap_read_lock_killable(current->mm))
			return;
		page = unread->address >> PAGE_SHIFT;
		ring_fill_stack(ring, stack, space, pc, unread);
		mmap_read_unlock(current->mm);
		if (unread->address >> PAGE_SHIFT == page)
			return;
	}
}
