/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many processes that act at random: the memory that they share, also after an exec, descriptors
 * with fixed numbers, and actions of several programs
 */
#ifndef _SELFTESTS_CROWD_H
#define _SELFTESTS_CROWD_H

#include "kernel.h"
#include "slots.h"
#include "users.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define KSM		"/sys/kernel/mm/ksm/run"

/* Descriptors, beside those of slots.h. The programs have others between these. */
#define SHARED_FD	96	/* the memory that all processes share */
#define SESSION_FD	100
#define SESSIONS	4U
#define FAULT_FD	140	/* the userfaultfd of each slot */
#define LAST_FD		160

/* Maps the shared memory. */
static inline void *shared_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* Makes and maps the shared memory. Orphaned processes become children of this process. */
static inline void *shared_make(size_t size)
{
	int fd = memfd_create("shared", 0);

	MUST(!ftruncate(fd, size));
	MUST(dup2(fd, SHARED_FD) == SHARED_FD);
	close(fd);
	MUST(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	return shared_map(size);
}

static inline int any_session(struct actor *a)
{
	return SESSION_FD + any(a, SESSIONS);
}

/* Returns a random row of @table. Its @rows rows have @size bytes, and begin with their weight. */
static inline u32 any_row(struct actor *a, const void *table, u32 rows, size_t size)
{
#define WEIGHT(i)	(*(const u32 *)((const char *)table + (i) * size))
	u32 total = 0, at, i;

	for (i = 0; i < rows; i++)
		total += WEIGHT(i);
	at = any(a, total);
	for (i = 0; at >= WEIGHT(i); i++)
		at -= WEIGHT(i);
	return i;
#undef WEIGHT
}

#define ANY_ROW(a, table)	any_row(a, table, ARRAY_SIZE(table), sizeof(*(table)))

/* Executes this program again: executed() returns @what and @number there, and an actor. */
static inline int exec_self(struct actor *a, const char *what, u32 number)
{
	char seed[32], text[16];
	char *const argv[] = { "again", "--again", (char *)what, text, seed, NULL };

	snprintf(text, sizeof(text), "%u", number);
	snprintf(seed, sizeof(seed), "%lu", another(a, 0).random);
	execv(SELF, argv);
	return -errno;
}

/* Returns true in a program that exec_self() has executed. */
static inline bool executed(int argc, char **argv, struct actor *a, const char **what, u32 *number)
{
	if (argc != 5 || strcmp(argv[1], "--again"))
		return false;
	*what = argv[2];
	*number = strtoul(argv[3], NULL, 10);
	a->random = strtoull(argv[4], NULL, 10) | 1;
	return true;
}

static inline int act_close(struct actor *a)
{
	return close(any_session(a)) ? -errno : 0;
}

static inline int act_limit(struct actor *a)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return -errno;
	limit.rlim_cur = ONE_OF(a, rlim_t, 0, PAGE, 16 * PAGE, 64 * PAGE, 8 << 20, 8 << 20);
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

/* Writes the threads of @pid to @text: states, and functions on the stacks in the kernel. */
static inline void threads_show(pid_t pid, char *text, size_t size)
{
	FILE *out = fmemopen(text, size - 1, "w"), *stack;
	char path[300], line[100];
	struct dirent *thread;
	DIR *threads;

	text[0] = 0;
	text[size - 1] = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (out && threads && (thread = readdir(threads))) {
		if (thread->d_name[0] == '.')
			continue;
		fprintf(out, " %s %c:", thread->d_name, task_state(atoi(thread->d_name)));
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stack", pid, thread->d_name);
		stack = fopen(path, "re");
		/* [<0>] function+0x12/0x34 */
		while (stack && fgets(line, sizeof(line), stack))
			fprintf(out, " %.*s", (int)strcspn(line + 6, "+"), line + 6);
		if (stack)
			fclose(stack);
	}
	if (threads)
		closedir(threads);
	if (out)
		fclose(out);
}

#endif /* _SELFTESTS_CROWD_H */
