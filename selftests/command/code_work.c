// SPDX-License-Identifier: GPL-2.0
/*
 * The programs of record.c whose code is not in a file that is mapped
 *
 *	code_work make MEMORY HOW MS	makes functions at run time, and writes their names to
 *					/tmp/perf-PID.map. MEMORY: see get_memory(). HOW:
 *		plain
 *		fork			the child of the process executes them
 *		sibling			one child makes them, another one executes them
 *		hide			the process is not dumpable
 *		early			the clock is set to an hour later after this
 *	code_work move WHAT HOW MS	moves functions. WHAT: "program", or the path of
 *					code_plugin.so. HOW: see move(); or "all".
 *	code_work gone WHAT MS		executes functions. WHAT: "remove" or "deny" its file
 *					before; or "stay"
 *
 * "MEMORY HOW alpha" and hot_alpha() take 70% of the time, "MEMORY HOW beta" and hot_beta() 30%. If
 * MS is negative, the program prints a line when it is ready.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "code_work.h"
#include "loop.h"
#include "maps.h"

#define MEMORY_BYTES	(2UL << 20)

typedef void (*code_t)(unsigned long loops);

/* Calls the functions for @ms ms of CPU time. They are loops of @loops, or take no argument. */
static void run(uintptr_t alpha, uintptr_t beta, unsigned long loops, long ms)
{
	const clock_t end = clock() + labs(ms) * (CLOCKS_PER_SEC / 1000);

	if (ms < 0 && write(STDOUT_FILENO, "\n", 1) != 1)
		return;
	while (clock() < end) {
		((code_t)alpha)(7 * loops);
		((code_t)beta)(3 * loops);
	}
}

/* ---- functions that are made at run time ---- */

/* Returns memory of this kind, or MAP_FAILED. */
static char *get_memory(const char *kind)
{
	char path[] = "/var/tmp/code_work-XXXXXX";
	int flags = MAP_SHARED, fd = -1;

	if (!strcmp(kind, "sysv"))
		return shmat(shmget(IPC_PRIVATE, MEMORY_BYTES, 0700), 0, SHM_EXEC);
	if (!strcmp(kind, "anon")) {
		flags = MAP_PRIVATE | MAP_ANONYMOUS;
	} else if (!strcmp(kind, "huge")) {
		flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	} else if (!strcmp(kind, "shared")) {
		flags = MAP_SHARED | MAP_ANONYMOUS;
	} else if (!strcmp(kind, "zero")) {
		flags = MAP_PRIVATE;
		fd = open("/dev/zero", O_RDWR);
	} else if (!strcmp(kind, "memfd")) {
		fd = memfd_create("code", 0);
	} else if (!strcmp(kind, "hugememfd")) {
		fd = memfd_create("code", MFD_HUGETLB);
	} else if (!strcmp(kind, "posix")) {
		fd = shm_open("/code_work", O_RDWR | O_CREAT, 0700);
		shm_unlink("/code_work");
	} else if (!strcmp(kind, "unlinked")) {
		fd = mkstemp(path);
		unlink(path);
	}
	if (flags == MAP_SHARED && ftruncate(fd, MEMORY_BYTES))
		return MAP_FAILED;
	return mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
}

static int make_code(char *memory, const char *kind, const char *how)
{
	char path[64];
	FILE *map;

	memcpy(memory, loops_text, LOOP_SIZE);
	memcpy(memory + PAGE, loops_text, LOOP_SIZE);
	__builtin___clear_cache(memory, memory + PAGE + LOOP_SIZE);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "we");
	if (!map)
		return 1;
	fprintf(map, "%lx %x %s %s alpha\n", (unsigned long)memory, LOOP_SIZE, kind, how);
	fprintf(map, "%lx %x %s %s beta\n", (unsigned long)memory + PAGE, LOOP_SIZE, kind,
		how);
	return fclose(map);
}

static int make(const char *kind, const char *how, long ms)
{
	char *memory = get_memory(kind);
	const uintptr_t code = (uintptr_t)memory;
	pid_t maker = 0, child = 0;
	struct timespec now;
	int status = 0;

	if (memory == MAP_FAILED)
		return 1;
	if (!strcmp(how, "sibling")) {
		maker = fork();
		if (!maker)
			_exit(make_code(memory, kind, how) || pause());
		while (!((volatile char *)memory)[PAGE])
			;
	} else if (make_code(memory, kind, how)) {
		return 1;
	}
	if (!strcmp(how, "hide"))
		prctl(PR_SET_DUMPABLE, 0);
	if (!strcmp(how, "early")) {
		clock_gettime(CLOCK_REALTIME, &now);
		now.tv_sec += 3600;
		if (clock_settime(CLOCK_REALTIME, &now))
			return 1;
	}
	if (!strcmp(how, "fork") || !strcmp(how, "sibling"))
		child = fork();
	if (child) {
		waitpid(child, &status, 0);
		return status || (maker && kill(maker, SIGKILL));
	}
	run(code, code + PAGE, LOOP_BURST / 8, ms);
	return 0;
}

/* ---- functions that are moved ---- */

/*
 * Replaces the code from @start to @end by a copy: "moved" memory, "new" memory into which it is
 * copied back, a "memfd"; or "other" code.
 */
static int move(const char *how, void *start, void *end)
{
	const size_t size = (char *)end - (char *)start;
	const int private = MAP_PRIVATE | MAP_ANONYMOUS, prot = PROT_READ | PROT_EXEC;
	void *copy = memcpy(map_private(size), start, size);
	int fd;

	if (!strcmp(how, "new")) {
		if (mmap(start, size, prot | PROT_WRITE, private | MAP_FIXED, -1, 0) != start)
			return 1;
		memcpy(start, copy, size);
		return mprotect(start, size, prot);
	}
	if (!strcmp(how, "memfd")) {
		fd = memfd_create("text", 0);
		if (fd < 0 || write(fd, copy, size) != (ssize_t)size)
			return 1;
		return mmap(start, size, prot, MAP_SHARED | MAP_FIXED, fd, 0) != start;
	}
	if (!strcmp(how, "other")) {
		memset(copy, 0, size);
		memcpy(copy, loops_text, LOOP_SIZE);
		memcpy((char *)copy + HOT_ALIGN, loops_text, LOOP_SIZE);
	}
	return mprotect(copy, size, prot) ||
	       mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start) != start;
}

static int move_and_run(const char *what, const char *how, long ms)
{
	uintptr_t alpha = (uintptr_t)hot_alpha, beta = (uintptr_t)hot_beta;
	uintptr_t start, end = (uintptr_t)hot_end;
	static struct mapping text;
	void *library;

	if (strcmp(what, "program")) {
		library = dlopen(what, RTLD_NOW);
		if (!library)
			return 1;
		alpha = (uintptr_t)dlsym(library, "hot_alpha");
		beta = (uintptr_t)dlsym(library, "hot_beta");
		end = (uintptr_t)dlsym(library, "hot_end");
	}
	start = alpha;
	/* All text is moved at once. */
	if (!strcmp(how, "all")) {
		if (!mapping_of(alpha, &text))
			return 1;
		start = text.start;
		end = text.end;
		how = "moved";
	}
	if (move(how, (void *)start, (void *)end))
		return 1;
	run(alpha, beta, LOOP_BURST / 8, ms);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";

	if (!strcmp(what, "make") && argc == 5)
		return make(argv[2], argv[3], atol(argv[4]));
	if (!strcmp(what, "move") && argc == 5)
		return move_and_run(argv[2], argv[3], atol(argv[4]));
	if (!strcmp(what, "gone")) {
		if ((!strcmp(argv[2], "deny") && chmod(argv[0], 0)) ||
		    (!strcmp(argv[2], "remove") && unlink(argv[0])))
			return 1;
		run((uintptr_t)hot_alpha, (uintptr_t)hot_beta, 0, atol(argv[3]));
		return 0;
	}
	return 2;
}
