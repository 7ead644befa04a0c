/* SPDX-License-Identifier: GPL-2.0 */
/* The mappings of a process, as /proc/PID/maps shows them */
#ifndef _SELFTESTS_MAPS_H
#define _SELFTESTS_MAPS_H

#include "device.h"

#include <inttypes.h>
#include <limits.h>

struct mapping {
	u64 start, end, offset, ino;
	u32 major, minor;
	char access[8];
	char path[PATH_MAX];	/* a name such as [vdso], or empty, if there is no file */
};

static inline FILE *maps_open(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return fopen(path, "re");
}

/* Stores the next mapping in @m. Returns false at the end, and if @maps is NULL. */
static inline bool maps_next(FILE *maps, struct mapping *m)
{
	char line[PATH_MAX + 256];
	int at;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
			   &m->start, &m->end, m->access, &m->offset, &m->major, &m->minor,
			   &m->ino, &at) != 7)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(m->path, sizeof(m->path), "%s", line + at);
		return true;
	}
	return false;
}

/*
 * Stores the first mapping of process @pid for which @cond is true in @m, with which @cond is
 * evaluated. Returns false if there is none.
 */
#define find_mapping(pid, m, cond) ({							\
	FILE *maps_ = maps_open(pid);							\
	bool found_ = false;								\
											\
	while (!found_ && maps_next(maps_, m))						\
		found_ = (cond);							\
	if (maps_)									\
		fclose(maps_);								\
	found_;										\
})

/* Stores the mapping of this process that contains @address. Returns false if there is none. */
static inline bool mapping_of(u64 address, struct mapping *m)
{
	return find_mapping(getpid(), m, m->start <= address && address < m->end);
}

#endif /* _SELFTESTS_MAPS_H */
