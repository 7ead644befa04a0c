/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Advice that the kernel takes, and that older C libraries do not declare
 */
#ifndef _SELFTESTS_MADVISE_H
#define _SELFTESTS_MADVISE_H

#include <sys/mman.h>

#ifndef MADV_COLD
#define MADV_COLD		20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif

#endif /* _SELFTESTS_MADVISE_H */
