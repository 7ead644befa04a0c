/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All code that depends on the kernel version, from 6.1 on, or on the architecture. In checks of
 * LINUX_VERSION_CODE, older kernels come first. Context: that of the caller.
 */
#ifndef _PROFIL_COMPAT_H
#define _PROFIL_COMPAT_H

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include <asm/ptrace.h>
#include <asm/syscall.h>
#include <asm/unistd.h>
#if defined(CONFIG_ARM64)
#include <asm/esr.h>
#include <asm/irq_regs.h>
#include <asm/sysreg.h>
#elif defined(CONFIG_RISCV)
#include <asm/csr.h>
#else
#include <asm/sigframe.h>
#endif

#ifndef PF_USER_WORKER
/* 6.4 adds a flag for all user workers, such as those of io_uring and vhost. */
#define PF_USER_WORKER 0
#endif

/* 6.10 renames scheduler_tick(). The hook takes the first of these names that the kernel has. */
#define PROFIL_TICK_FUNCTIONS "sched_tick", "scheduler_tick"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
/* 6.5 removes the parameter vmas of get_user_pages() and pin_user_pages*(). */
#define get_user_pages(start, nr, flags, pages) get_user_pages(start, nr, flags, pages, NULL)
#define pin_user_pages_remote(mm, start, nr, flags, pages, locked) \
	pin_user_pages_remote(mm, start, nr, flags, pages, NULL, locked)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
/*
 * 6.6 lets pin_user_pages*() respect FOLL_NOFAULT in hugetlb, and accept the PROT_NONE of a NUMA
 * hint. Instead, get_user_pages_fast_only() counts the present pages of hugetlb, and FOLL_FORCE,
 * which has no other effect on a writable mapping, accepts NUMA hints.
 */
#include <linux/hugetlb.h>
static inline long profil_pin(struct vm_area_struct *vma, unsigned long start, unsigned long nr,
			      unsigned int flags, struct page **pages)
{
	long found;

	if (is_vm_hugetlb_page(vma)) {
		found = get_user_pages_fast_only(start, nr, FOLL_WRITE, pages);
		if (found <= 0)
			return 0;
		release_pages(pages, found);
		nr = found;
	}
	return pin_user_pages_remote(vma->vm_mm, start, nr, flags | FOLL_FORCE, pages, NULL);
}
#else
#define profil_pin(vma, start, nr, flags, pages) \
	pin_user_pages_remote((vma)->vm_mm, start, nr, flags, pages, NULL)
#endif

#ifndef VM_SHADOW_STACK
/* 6.6 adds shadow stacks: they have VM_WRITE, but ordinary stores cannot write to them. */
#define VM_SHADOW_STACK VM_NONE
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
/* 6.8 adds functions for the path and inode that user space sees, for a file of an overlay. */
#define file_user_path(file) (&(file)->f_path)
#define file_user_inode(file) file_inode(file)
#endif

#ifndef S_ANON_INODE
/* Newer kernels have a flag for anonymous inodes, as some give these the mode of a regular file. */
#define S_ANON_INODE 0
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/* 6.13 adds a replacement for hrtimer_init() that also sets the function of the timer. */
static inline void profil_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*fires)(struct hrtimer *timer),
					clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fires;
}

#define hrtimer_setup profil_hrtimer_setup
#endif

/* Under exec_update_lock. Returns the program's user namespace, referenced, and *@dumpable. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
/* Between 6.12 and 7.2, both move from the mm to the task. */
static inline struct user_namespace *profil_exec_ns(struct task_struct *task, struct mm_struct *mm,
						    bool *dumpable)
{
	*dumpable = get_dumpable(mm) == SUID_DUMP_USER;
	return get_user_ns(mm->user_ns);
}
#else
#include <linux/sched/exec_state.h>
static inline struct user_namespace *profil_exec_ns(struct task_struct *task, struct mm_struct *mm,
						    bool *dumpable)
{
	struct user_namespace *ns;

	rcu_read_lock();
	*dumpable = rcu_dereference(task->exec_state)->dumpable == TASK_DUMPABLE_OWNER;
	ns = get_user_ns(rcu_dereference(task->exec_state)->user_ns);
	rcu_read_unlock();
	return ns;
}
#endif

/*
 * Does the same as task_work_add(current, @work, TWA_RESUME), which mainline does not export, in a
 * tick. The list is closed only after PF_EXITING was set. Return: false if current exits.
 */
static inline bool profil_task_work_add(struct callback_head *work)
{
#if IS_BUILTIN(CONFIG_PROFIL)
	return !task_work_add(current, work, TWA_RESUME);
#else
	struct callback_head *head = READ_ONCE(current->task_works);

	/* The interrupted code may be changing other flags. */
	if (data_race(current->flags) & PF_EXITING)
		return false;
	do {
		work->next = head;
	} while (!try_cmpxchg(&current->task_works, &head, work));
	set_thread_flag(TIF_NOTIFY_RESUME);
	return true;
#endif
}

#define PROFIL_MAX_WORKS	4096	/* works of a task that are searched with interrupts off */

/* Like task_work_cancel() of 6.11. Return: false if @task began to run works, or has too many. */
static inline bool profil_task_work_cancel(struct task_struct *task, struct callback_head *work)
{
	struct callback_head **from = &task->task_works, *at;
	unsigned int left = PROFIL_MAX_WORKS;
	bool cancelled = false;
	unsigned long flags;

	/* task_work_run() takes this lock after it has emptied the list, so others stay valid. */
	raw_spin_lock_irqsave(&task->pi_lock, flags);
	at = READ_ONCE(*from);
	while (at && left-- && !cancelled) {
		if (at != work) {
			from = &at->next;
			at = READ_ONCE(*from);
		} else {
			cancelled = try_cmpxchg(from, &at, work->next);
		}
	}
	raw_spin_unlock_irqrestore(&task->pi_lock, flags);
	return cancelled;
}

#if defined(CONFIG_ARM64)
/* Returns true if the @length bytes before the pc of @regs are readable, and are the call, SVC. */
static inline bool profil_follows_svc(struct pt_regs *regs, unsigned int length)
{
	__le32 code = 0;

	if (copy_from_user_nofault(&code, (void __user *)(regs->pc - length), length))
		return false;
	if (length == 2)
		return (le32_to_cpu(code) & 0xff00) == 0xdf00;
	if (compat_user_mode(regs))
		return (le32_to_cpu(code) & 0x0f000000) == 0x0f000000;
	return (le32_to_cpu(code) & 0xffe0001f) == 0xd4000001;
}
#endif

/*
 * Returns the length of the call instruction if @task, which is current, is in a system call;
 * otherwise 0, because an interrupt or a fault saves the pc of the instruction itself. The pc of a
 * call that will be restarted is set back to the call. arm64 and riscv then forget the call; x86
 * sets ax to its number.
 *
 * arm64 enables interrupts before it sets syscallno, so a tick that came while they were off finds
 * no call. Then the last exception of this CPU, apart from interrupts, was a call; the stack of
 * @task is almost empty (later, that may be the call of another task); and the pc follows a call
 * instruction (an interrupt of user mode leaves the last exception as it was, often a call).
 */
static inline unsigned int profil_syscall_length(struct task_struct *task, struct pt_regs *regs)
{
#if defined(CONFIG_ARM64)
	const unsigned int length = compat_thumb_mode(regs) ? 2 : 4;
	unsigned long class = ESR_ELx_EC(read_sysreg(esr_el1));
	bool enters = (class == ESR_ELx_EC_SVC64 || class == ESR_ELx_EC_SVC32) &&
		      (unsigned long)regs - get_irq_regs()->sp <= 128;

	return in_syscall(regs) || (enters && profil_follows_svc(regs, length)) ? length : 0;
#elif defined(CONFIG_RISCV)
	return regs->cause == EXC_SYSCALL ? 4 : 0;
#else
	/* x86-64: syscall, sysenter and int $0x80 are two bytes each */
	return syscall_get_nr(task, regs) != -1 && regs->ax != regs->orig_ax ? 2 : 0;
#endif
}

/* Returns the register for the number of a call, of which the kernel takes 32 bits. */
static inline u32 profil_syscall_register(struct pt_regs *regs)
{
#if defined(CONFIG_ARM64)
	return regs->regs[compat_user_mode(regs) ? 7 : 8];
#elif defined(CONFIG_RISCV)
	return regs->a7;
#else
	return regs->orig_ax;
#endif
}

/* Returns true if the register for the number of a call has that of execve() or execveat(). */
static inline bool profil_has_exec_number(struct pt_regs *regs)
{
	u32 nr = profil_syscall_register(regs);

#if defined(CONFIG_ARM64)
	if (compat_user_mode(regs))
		return nr == 11 || nr == 387;
#elif defined(CONFIG_X86_64)
	if (in_ia32_syscall())
		return nr == __NR_ia32_execve || nr == __NR_ia32_execveat;
#ifdef CONFIG_X86_X32_ABI
	if (nr & __X32_SYSCALL_BIT)
		return nr == (__X32_SYSCALL_BIT | __NR_x32_execve) ||
		       nr == (__X32_SYSCALL_BIT | __NR_x32_execveat);
#endif
#endif
	return nr == __NR_execve || nr == __NR_execveat;
}

/* Returns true if @regs are those of a call, whose number is in a register. */
static inline bool profil_is_call(struct pt_regs *regs)
{
#if defined(CONFIG_ARM64)
	return in_syscall(regs);
#elif defined(CONFIG_RISCV)
	return regs->cause == EXC_SYSCALL;
#else
	return true;		/* otherwise the number is -1 */
#endif
}

/* Returns the number of the call of @task, which is current; or -1. x86 keeps it for a restart. */
static inline int profil_syscall_nr(struct task_struct *task, struct pt_regs *regs)
{
	if (profil_is_call(regs))
		return syscall_get_nr(task, regs);
	/* arm64 may not have set syscallno yet. */
	return profil_syscall_length(task, regs) ? profil_syscall_register(regs) : -1;
}

/*
 * Returns true if @task, in the kernel or at a switch of tasks, is in execve() or execveat(), or
 * dying after one. When a signal is handled, arm64 and riscv forget the call, but not the register.
 */
static inline bool profil_is_exec_call(struct task_struct *task)
{
	struct pt_regs *regs = task_pt_regs(task);

	if (!profil_has_exec_number(regs))
		return false;
	if (profil_is_call(regs) || signal_pending(task))
		return true;
	/* Only @task changes its flags. The tick may have interrupted such a change. */
	return data_race(task->flags) & PF_SIGNALED;
}

/* Returns the size of a word on the user stack of @regs; 0 if its frames have no known form. */
static inline unsigned int profil_stack_word(struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	return user_64bit_mode(regs) ? sizeof(u64) : sizeof(u32);
#else
	/* In 32-bit code, compilers differ in the register and in the form of a frame. */
	return is_compat_task() ? 0 : sizeof(u64);
#endif
}

/* Only x86-64 has unwind tables: elsewhere, compilers keep the frame pointer. */
#define PROFIL_HAS_UNWIND IS_ENABLED(CONFIG_X86_64)

/* A call stores the return address on the stack, or in the link register. */
#define PROFIL_HAS_LINK_REGISTER (!IS_ENABLED(CONFIG_X86_64))

#if defined(CONFIG_X86_64)
/* When a signal handler has returned, the stack pointer is the address of a struct ucontext. */
#define PROFIL_SIGNAL_FP offsetof(struct ucontext, uc_mcontext.bp)
#define PROFIL_SIGNAL_SP offsetof(struct ucontext, uc_mcontext.sp)	/* and then the pc */
#define PROFIL_USER_END TASK_SIZE_MAX	/* user addresses are below this */
#define profil_link_register(regs) 0
/* @number: the index in struct pt_regs */
#define profil_register(regs, number) (((const unsigned long *)(regs))[number])
#else
#define profil_register(regs, number) 0
#define PROFIL_SIGNAL_FP 0
#define PROFIL_SIGNAL_SP 0
#define PROFIL_USER_END TASK_SIZE_64
#if defined(CONFIG_RISCV)
#define profil_link_register(regs) ((regs)->ra)
#else
/* A function: the macro has a member with the name of its argument. */
static inline unsigned long profil_link_register(const struct pt_regs *regs)
{
	return procedure_link_pointer(regs);
}
#endif
#endif

/* Removes the tag and the authentication code of a user address, whose bit 55 is 0 on arm64. */
static inline unsigned long profil_strip_address(unsigned long address)
{
#if defined(CONFIG_RISCV)
	return untagged_addr(address);
#else
	if (IS_ENABLED(CONFIG_ARM64) && !(address & BIT_ULL(55)))
		return address & (PROFIL_USER_END - 1);
	return address;
#endif
}

/* Returns the address of the frame for which @fp is the frame pointer; 0 for 0. */
static inline unsigned long profil_frame_of(unsigned long fp)
{
	fp = profil_strip_address(fp);
	/* On riscv the frame pointer is the end of the frame. */
	return fp && IS_ENABLED(CONFIG_RISCV) ? fp - 2 * sizeof(u64) : fp;
}

#endif /* _PROFIL_COMPAT_H */
