// SPDX-License-Identifier: GPL-2.0
/*
 * Finds another process, and checks the caller's rights to attach to it or to read its session.
 *
 * Rights are checked under the exec_update_lock of that process. So until the caller is done, the
 * process cannot exec a program to which the caller has no rights.
 *
 * Context: system calls (may sleep); profil_access_init(): module load.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/pid.h>

#include "compat.h"
#include "internal.h"

/* A module cannot call the security hooks of ptrace, so the administrator decides. */
static char *attach = "capable";
module_param(attach, charp, 0444);
MODULE_PARM_DESC(attach, "who may sample a process: capable, or also its own user: user");

int __init profil_access_init(void)
{
	if (!strcmp(attach, "capable") || !strcmp(attach, "user"))
		return 0;
	pr_err("attach=%s: the value must be capable or user\n", attach);
	return -EINVAL;
}

/* Finds task @nr of the caller's pid namespace (0: the caller), referenced; or returns NULL. */
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

/* Returns the mm of *@task, referenced; or NULL. Sets *@task to the new leader after an exec. */
struct mm_struct *profil_access_get_mm(struct task_struct **task, bool thread)
{
	struct mm_struct *mm = NULL;
	struct task_struct *t;

	if (thread)
		return get_task_mm(*task);
	rcu_read_lock();
	t = pid_alive(*task) ? NULL : pid_task(task_tgid(*task), PIDTYPE_TGID);
	if (t) {
		/* Exec by another thread. The old leader has the rights of the old program. */
		put_task_struct(*task);
		*task = get_task_struct(t);
	}
	/* The leader may have exited before other threads, and then has no mm. */
	for_each_thread(*task, t) {
		mm = get_task_mm(t);
		if (mm)
			break;
	}
	rcu_read_unlock();
	return mm;
}

/* Returns true if @task has the caller's user and at most its rights. */
static bool access_same_user(struct task_struct *task)
{
	const struct cred *caller = current_cred(), *cred = get_task_cred(task);
	bool same = uid_eq(cred->uid, caller->fsuid) && uid_eq(cred->euid, caller->fsuid) &&
		    uid_eq(cred->suid, caller->fsuid) && gid_eq(cred->gid, caller->fsgid) &&
		    gid_eq(cred->egid, caller->fsgid) && gid_eq(cred->sgid, caller->fsgid) &&
		    cred->user_ns == caller->user_ns &&
		    cap_issubset(cred->cap_permitted, caller->cap_permitted);

	put_cred(cred);
	return same;
}

/* Returns true if the caller may sample @task; or, with @describe, describe its session. */
bool profil_access_allowed(struct task_struct *task, struct mm_struct *mm, bool describe)
{
	/* A process of uid 0 can gain capabilities by any exec. */
	bool user = describe || (!strcmp(attach, "user") &&
				 !uid_eq(current_uid(), make_kuid(current_user_ns(), 0)));
	bool same = user && access_same_user(task), dumpable, allowed;
	/* This is after the look at the ids: a change of these makes a task undumpable first. */
	struct user_namespace *ns = profil_exec_ns(task, mm, &dumpable);

	allowed = same_thread_group(task, current) || (same && dumpable) ||
		  ns_capable(ns, CAP_PERFMON) || ns_capable(ns, CAP_SYS_PTRACE);
	put_user_ns(ns);
	return allowed;
}
