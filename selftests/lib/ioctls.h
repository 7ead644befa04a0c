/* SPDX-License-Identifier: GPL-2.0 */
/* The ioctls of the device and of a session's descriptor: rows of tables, and their arguments */
#ifndef _SELFTESTS_IOCTLS_H
#define _SELFTESTS_IOCTLS_H

#include "device.h"

/* The members of a row that follow from the names */
#define IOCTL(NAME, type)						\
	.name = #NAME, .cmd = PROFIL_IOC_##NAME, .size = sizeof(struct profil_##type)

/* The structures that have flags have them at this position. */
union argument {
	struct {
		u32 size;
		u32 flags;
	};
	u64 longs[16];
	struct profil_query query;
	struct profil_start start;
	struct profil_stop stop;
	struct profil_stats stats;
	struct profil_open open;
	struct profil_attach attach;
	struct profil_add add;
	struct profil_remove remove;
	struct profil_enable enable;
	struct profil_disable disable;
	struct profil_snapshot snapshot;
	struct profil_describe describe;
	struct profil_unwind unwind;
};

#endif /* _SELFTESTS_IOCTLS_H */
