/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every difference between kernels from 6.1 on, and nothing else. In each pair the oldest kernel
 * comes first. Context: see each caller.
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
#error "profil needs CONFIG_MMU_NOTIFIER, which reports the release of an address space"
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
 * 6.6: pin_user_pages*() respects FOLL_NOFAULT in hugetlb, too, and accepts the PROT_NONE of a NUMA
 * hint. Before 6.6, FOLL_FORCE does the latter, and has no other effect on a writable mapping. In
 * hugetlb, get_user_pages_fast_only(), which does not fault, tells how many pages are present.
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

/* 6.6: shadow stacks: VM_WRITE, but not writable by ordinary stores */
#ifdef VM_SHADOW_STACK
#define PROFIL_VM_SHADOW_STACK VM_SHADOW_STACK
#else
#define PROFIL_VM_SHADOW_STACK VM_NONE
#endif

/* 6.8: the path and inode that user space sees, for a file of an overlay */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define profil_user_path(file) (&(file)->f_path)
#define profil_user_inode(file) file_inode(file)
#else
#define profil_user_path(file) file_user_path(file)
#define profil_user_inode(file) file_user_inode(file)
#endif

/*
 * Between 6.12 and 7.2 (6.15): a flag for the inodes of io_uring, dma-buf and perf events. Some
 * versions gave these the mode of a regular file.
 */
#ifdef S_ANON_INODE
#define PROFIL_S_ANON_INODE S_ANON_INODE
#else
#define PROFIL_S_ANON_INODE 0
#endif

/* 6.13: the set-up of a timer includes its function */
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

/* Between 6.12 and 7.2 (6.16): sched_process_exit has the argument group_dead */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define PROFIL_EXIT_PROBE_ARGS void *data, struct task_struct *task
#else
#define PROFIL_EXIT_PROBE_ARGS void *data, struct task_struct *task, bool group_dead
#endif

/* Between 6.12 and 7.2: the task, not the mm, has the user namespace and dumpability */
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
 * The length of the system call instruction, by which the saved pc is past it; or 0 if the kernel
 * was entered in another way, where the saved pc is that of the instruction itself.
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
#error "profil knows the system call instructions of x86-64 and arm64 only"
#endif
}

#endif /* _PROFIL_COMPAT_H */
