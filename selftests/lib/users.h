/* SPDX-License-Identifier: GPL-2.0 */
/* Ordinary users, and the user namespaces in which they are root */
#ifndef _SELFTESTS_USERS_H
#define _SELFTESTS_USERS_H

#include "kernel.h"

#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>

#include <linux/capability.h>

#define USER	1000	/* an ordinary user, for root */

/* Becomes an ordinary user, whose saved user id may be that of another one. */
static inline void become_user_saving(uid_t id, uid_t saved)
{
	if (geteuid())
		return;		/* this is an ordinary user already */
	MUST(!setgroups(0, NULL));
	MUST(!setresgid(id, id, id));
	MUST(!setresuid(id, id, saved));
	/* A process has this after a login. */
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

static inline void become_user(uid_t id)
{
	become_user_saving(id, id);
}

/* Makes @cap the only capability of this process, which can be attached as after an exec. */
static inline void set_cap(unsigned int cap)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = {};

	data[cap / 32].effective = 1U << cap % 32;
	data[cap / 32].permitted = 1U << cap % 32;
	MUST(!syscall(SYS_capset, &header, data));
	MUST(!prctl(PR_SET_DUMPABLE, 1));
}

/* Becomes an ordinary user with this capability. */
static inline void become_capable(uid_t user, unsigned int cap)
{
	MUST(!prctl(PR_SET_KEEPCAPS, 1));
	become_user(user);
	set_cap(cap);
}

static inline void write_map(const char *file, unsigned int inside, unsigned int outside)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1", inside, outside);
	MUST(!file_write(file, text));
}

/* The process becomes root in the new user namespace, and stays an ordinary user outside. */
static inline void enter_namespaces(int more)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	MUST(!unshare(CLONE_NEWUSER | more));
	MUST(!file_write("/proc/self/setgroups", "deny"));
	write_map("/proc/self/uid_map", 0, uid);
	write_map("/proc/self/gid_map", 0, gid);
	MUST(!geteuid());
}

static inline bool namespaces_allowed(void)
{
	return file_number("/proc/sys/kernel/unprivileged_userns_clone", "") != 0 &&
	       file_number("/proc/sys/user/max_user_namespaces", "") != 0;
}

#define NEED_NAMESPACES() do {						\
	if (!namespaces_allowed())					\
		SKIP(return, "users may not make user namespaces");	\
} while (0)

#endif /* _SELFTESTS_USERS_H */
