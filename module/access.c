// SPDX-License-Identifier: GPL-2.0
/*
 * Other processes: which one is meant, and what the caller may do to it.
 *
 * What decides is asked under the target's exec_update_lock: it cannot become a program,
 * meanwhile, that the caller has no right to.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "profil.h"

/* The task with this id in the caller's namespace, or the caller itself; referenced. */
struct task_struct *profil_access_find_task(pid_t nr, bool thread)
{
	struct task_struct *task;
	struct pid *pid;

	if (!nr)
		return get_task_struct(current);
	pid = find_get_pid(nr);
	task = get_pid_task(pid, thread ? PIDTYPE_PID : PIDTYPE_TGID);
	put_pid(pid);
	return task;
}

/*
 * The address space of @task, which is exchanged for who has taken its place: that of before has
 * the rights of the old program. The first thread of a process may have exited before the others.
 */
struct mm_struct *profil_access_get_mm(struct task_struct **task, bool thread)
{
	struct mm_struct *mm = NULL;
	struct task_struct *t;

	if (thread)
		return get_task_mm(*task);
	rcu_read_lock();
	/* Another thread of a process may have become the first, to exec. */
	t = pid_alive(*task) ? NULL : pid_task(task_tgid(*task), PIDTYPE_TGID);
	if (t) {
		put_task_struct(*task);
		*task = get_task_struct(t);
	}
	for_each_thread(*task, t) {
		mm = get_task_mm(t);
		if (mm)
			break;
	}
	rcu_read_unlock();
	return mm;
}

/* May the caller see where @task is? */
bool profil_access_may_attach(struct task_struct *task, struct mm_struct *mm)
{
	struct user_namespace *ns;
	bool may;

	if (same_thread_group(task, current))
		return true;
	ns = profil_user_ns(task, mm);
	may = ns_capable(ns, CAP_PERFMON) || ns_capable(ns, CAP_SYS_PTRACE);
	put_user_ns(ns);
	return may;
}

/* Is it the same user, with no more rights, and nothing that is to be kept from that user? */
static bool access_same_user(struct task_struct *task, struct mm_struct *mm)
{
	const struct cred *caller = current_cred(), *cred = get_task_cred(task);
	bool same = uid_eq(cred->uid, caller->fsuid) && uid_eq(cred->euid, caller->fsuid) &&
		    uid_eq(cred->suid, caller->fsuid) && gid_eq(cred->gid, caller->fsgid) &&
		    gid_eq(cred->egid, caller->fsgid) && gid_eq(cred->sgid, caller->fsgid) &&
		    cred->user_ns == caller->user_ns &&
		    cap_issubset(cred->cap_permitted, caller->cap_permitted);

	put_cred(cred);
	return same && profil_dumpable(task, mm);
}

/*
 * May the caller have @task's session described? It is told addresses and sums: whoever may read
 * /proc/PID/maps, or may sample @task, knows such already. Security modules cannot be asked here;
 * process_vm_readv() asks them before it copies the counters.
 */
bool profil_access_may_describe(struct task_struct *task, struct mm_struct *mm)
{
	return access_same_user(task, mm) || profil_access_may_attach(task, mm);
}
