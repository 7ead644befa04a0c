// SPDX-License-Identifier: GPL-2.0
/*
 * The programs that record.c records. Their ticks are at known places.
 *
 *	record_work burn MS		runs a loop for MS ms of CPU time
 *	record_work exit N
 *	record_work kill SIGNAL		kills itself
 *	record_work trap SIGNAL N	burns until the signal arrives, then exits with N
 *	record_work deaf N		ignores SIGINT and SIGHUP; exits with N on SIGUSR1
 *	record_work fork N MS		N children burn at the same time
 *	record_work orphan MS		prints the id of a child that burns, and exits
 *	record_work exec MS		burns, and burns again as another program
 *	record_work threads N MS	N threads with different names burn
 *	record_work anon MS		runs a loop in anonymous memory
 *	record_work swap A B N MS	makes files A and B, and runs loops in them, mapped at one
 *					address in turns
 *	record_work late MS		system calls with interrupts off for a ms and more
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "loop.h"

/* The layout of the loops in loop.h. A loop fits into a page at any address. */

static volatile sig_atomic_t told;

#define NS_PER_MS 1000000

static void burn_ms(u64 ms)
{
	const u64 end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * NS_PER_MS;

	while (!told && cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		loop_run(3, LOOP_BURST);
}

static void tell(int signal)
{
	(void)signal;
	told = 1;
}

static int trap(int number, int status)
{
	signal(number, tell);
	/* Tells record.c that the program is ready. */
	if (write(STDOUT_FILENO, "\n", 1) != 1)
		return 1;
	burn_ms(60000);
	return told ? status : 1;
}

static int fork_all(int n, u64 ms)
{
	int status, bad = 0;

	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			burn_ms(ms);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}

static void *named(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "burner-%ld", syscall(SYS_gettid) % 100000);
	prctl(PR_SET_NAME, name);
	burn_ms(*(u64 *)arg);
	return NULL;
}

static int threads(int n, u64 ms)
{
	pthread_t *all = calloc(n, sizeof(*all));

	for (int i = 0; i < n; i++)
		if (!all || pthread_create(&all[i], NULL, named, &ms))
			return 1;
	for (int i = 0; i < n; i++)
		pthread_join(all[i], NULL);
	free(all);
	return 0;
}

/* Runs a copy of the loop. */
static void burn_in(const char *text, u64 ms)
{
	const u64 end = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * NS_PER_MS;

	while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		((void (*)(unsigned long))(uintptr_t)text)(LOOP_BURST);
}

static int anon(u64 ms)
{
	char *text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (text == MAP_FAILED)
		return 1;
	memcpy(text, loops_text, LOOP_SIZE);
	burn_in(text, ms);
	return 0;
}

/* Makes a file with the loop, and returns its descriptor. */
static int make(const char *path)
{
	static char page[PAGE_MAX];
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	memcpy(page, loops_text, LOOP_SIZE);
	return write(fd, page, PAGE) == (ssize_t)PAGE ? fd : -1;
}

/* Alternates between two mappings, as dlclose() and dlopen() would. */
static int swap(const char *a, const char *b, int n, u64 ms)
{
	char *text = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int files[2] = { make(a), make(b) };

	for (int i = 0; i < n; i++) {
		if (mmap(text, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, files[i % 2],
			 0) != text)
			return 1;
		burn_in(text, ms);
	}
	return 0;
}

static int orphan(u64 ms)
{
	pid_t child = fork();

	if (child < 0)
		return 1;
	if (child)
		return dprintf(STDOUT_FILENO, "%d\n", child) < 0;
	burn_ms(ms);
	_exit(0);
}

/*
 * read() of an eventfd wakes the epoll instances that wait for it, with interrupts off. One of them
 * waits for more and more copies of the eventfd, until this takes a ms.
 */
static int late(u64 ms)
{
	struct epoll_event event = { .events = EPOLLOUT };
	int fd = eventfd(1 << 30, EFD_SEMAPHORE | EFD_CLOEXEC);
	int waiters = epoll_create1(EPOLL_CLOEXEC);
	struct rlimit files;
	u64 before, end, value;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return 1;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	do {
		for (int i = 0; i < 1000; i++)
			if (epoll_ctl(waiters, EPOLL_CTL_ADD, dup(fd), &event))
				return 1;
		before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			return 1;
	} while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < before + NS_PER_MS * 3 / 2);
	end = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * NS_PER_MS;
	while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	const int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "burn"))
		return burn_ms(a), 0;
	if (!strcmp(what, "exit"))
		return a;
	if (!strcmp(what, "kill"))
		return kill(getpid(), a);
	if (!strcmp(what, "trap"))
		return trap(a, b);
	if (!strcmp(what, "deaf"))
		return signal(SIGINT, SIG_IGN), signal(SIGHUP, SIG_IGN), trap(SIGUSR1, a);
	if (!strcmp(what, "fork"))
		return fork_all(a, b);
	if (!strcmp(what, "orphan"))
		return orphan(a);
	if (!strcmp(what, "exec")) {
		burn_ms(a);
		execl("/proc/self/exe", "other", "burn", argv[2], NULL);
		return 1;
	}
	if (!strcmp(what, "threads"))
		return threads(a, b);
	if (!strcmp(what, "anon"))
		return anon(a);
	if (!strcmp(what, "late"))
		return late(a);
	if (!strcmp(what, "swap") && argc == 6)
		return swap(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
	return 2;
}
