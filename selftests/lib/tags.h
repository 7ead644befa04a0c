/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tagged addresses: bits of a pointer that the CPU ignores, if a process asks for it
 */
#ifndef _SELFTESTS_TAGS_H
#define _SELFTESTS_TAGS_H

#if defined(__aarch64__) || defined(__riscv)
#define HAVE_TAGS

#include <stdbool.h>
#include <sys/prctl.h>

/* Returns false if the kernel or the CPU has no tagged addresses. On riscv, a tag has 7 bits. */
static inline bool tags_enable(void)
{
	unsigned long control = PR_TAGGED_ADDR_ENABLE;

#ifdef __riscv
	control |= 7UL << 24;	/* PR_PMLEN_SHIFT; Linux 6.12 does not have it */
#endif
	return !prctl(PR_SET_TAGGED_ADDR_CTRL, control, 0, 0, 0);
}

#endif

#endif /* _SELFTESTS_TAGS_H */
