/* SPDX-License-Identifier: GPL-2.0 */
/* A seccomp filter of a program that forbids ioctl() */
#ifndef _SELFTESTS_SECCOMP_H
#define _SELFTESTS_SECCOMP_H

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

/* After this call ioctl() fails with EPERM. */
static inline int forbid_ioctl(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ?:
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif /* _SELFTESTS_SECCOMP_H */
