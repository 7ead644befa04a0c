/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between kernels from 6.1 on, and nothing else. In each pair
 * the oldest kernel comes first.
 */
#ifndef _PROFIL_COMPAT_H
#define _PROFIL_COMPAT_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>
#include <linux/version.h>
#include <asm/ptrace.h>
#include <asm/syscall.h>

#if !IS_ENABLED(CONFIG_MMU_NOTIFIER)
#error "profil needs CONFIG_MMU_NOTIFIER, to be told when an address space is released"
#endif

/* 6.4: user workers other than io_uring's (e.g. vhost's) */
#ifndef PF_USER_WORKER
#define PF_USER_WORKER 0
#endif

/* 6.10: scheduler_tick() is called sched_tick() */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define PROFIL_TICK_FUNCTION "scheduler_tick"
#else
#define PROFIL_TICK_FUNCTION "sched_tick"
#endif

/* 6.5: no vmas from pin_user_pages*() */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define profil_pin_remote(mm, start, nr, flags, pages) \
	pin_user_pages_remote(mm, start, nr, flags, pages, NULL, NULL)
#else
#define profil_pin_remote(mm, start, nr, flags, pages) \
	pin_user_pages_remote(mm, start, nr, flags, pages, NULL)
#endif

/*
 * 6.6: pin_user_pages*() heeds FOLL_NOFAULT in hugetlb, too, and accepts the PROT_NONE of a NUMA
 * hint. Before, FORCE does that, and nothing else to a writable mapping, and of hugetlb the process
 * pins no more than the fast one, which does not fault, has found there.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define PROFIL_FOLL_NUMA FOLL_FORCE
static inline long profil_pin_hugetlb(struct mm_struct *mm, unsigned long start, unsigned long nr,
				      unsigned int flags, struct page **pages)
{
	long found = get_user_pages_fast_only(start, nr, FOLL_WRITE, pages);

	if (found <= 0)
		return 0;
	release_pages(pages, found);
	return profil_pin_remote(mm, start, found, flags, pages);
}
#else
#define PROFIL_FOLL_NUMA 0
#define profil_pin_hugetlb profil_pin_remote
#endif

/* 6.6: memory that is writable, and not for who writes */
#ifdef VM_SHADOW_STACK
#define PROFIL_VM_SHADOW_STACK VM_SHADOW_STACK
#else
#define PROFIL_VM_SHADOW_STACK VM_NONE
#endif

/* 6.8: what user space sees of a file that an overlay's stands for */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define profil_user_path(file) (&(file)->f_path)
#define profil_user_inode(file) file_inode(file)
#else
#define profil_user_path(file) file_user_path(file)
#define profil_user_inode(file) file_user_inode(file)
#endif

/*
 * 6.15 (not in 6.12, in 7.2): a flag for the inodes of io_uring, dma-buf and perf events. Some
 * versions gave these the mode of a regular file.
 */
#ifdef S_ANON_INODE
#define PROFIL_S_ANON_INODE S_ANON_INODE
#else
#define PROFIL_S_ANON_INODE 0
#endif

/* 6.13: a timer gets its function when it is set up */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void profil_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*fires)(struct hrtimer *timer),
					clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fires;
}
#else
#define profil_hrtimer_setup hrtimer_setup
#endif

/* 6.16 (not in 6.12, in 7.2): sched_process_exit tells whether it is the group's last task */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define PROFIL_EXIT_PROBE_ARGS void *data, struct task_struct *task
#else
#define PROFIL_EXIT_PROBE_ARGS void *data, struct task_struct *task, bool group_dead
#endif

/* 7.2 (between 6.12 and that not looked at): what owns an address space is known by the task */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
static inline struct user_namespace *profil_user_ns(struct task_struct *task,
						    struct mm_struct *mm)
{
	return get_user_ns(mm->user_ns);
}

static inline bool profil_dumpable(struct task_struct *task, struct mm_struct *mm)
{
	return get_dumpable(mm) == SUID_DUMP_USER;
}
#else
#include <linux/sched/exec_state.h>
/* Under exec_update_lock, of a task with an mm. */
static inline struct user_namespace *profil_user_ns(struct task_struct *task,
						    struct mm_struct *mm)
{
	struct user_namespace *ns;

	rcu_read_lock();
	ns = get_user_ns(rcu_dereference(task->exec_state)->user_ns);
	rcu_read_unlock();
	return ns;
}

static inline bool profil_dumpable(struct task_struct *task, struct mm_struct *mm)
{
	bool dumpable;

	rcu_read_lock();
	dumpable = rcu_dereference(task->exec_state)->dumpable == TASK_DUMPABLE_OWNER;
	rcu_read_unlock();
	return dumpable;
}
#endif

/*
 * Bytes that a system call's saved pc is past the call's instruction, or 0 if the
 * kernel was entered in another way (then the saved pc is the instruction itself).
 */
static inline unsigned int profil_syscall_length(struct task_struct *task, struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	/* syscall, sysenter and int $0x80 are two bytes each */
	return syscall_get_nr(task, regs) != -1 ? 2 : 0;
#elif defined(CONFIG_ARM64)
	if (!in_syscall(regs))
		return 0;
	return compat_thumb_mode(regs) ? 2 : 4;
#else
#error "profil knows the system call instruction of x86-64 and arm64 only"
#endif
}

#endif /* _PROFIL_COMPAT_H */
