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
#include "test.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "loop.h"
#include "process.h"
#include "threads.h"

#define NS_PER_MS 1000000

static volatile sig_atomic_t told;

/* Runs the loop for @ms ms of CPU time of this thread, or until the signal of trap() arrives. */
static void burn_in(const void *loop, u64 ms)
{
	const u64 end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * NS_PER_MS;

	asm("" : "+r"(loop));	/* as in loop_run() */
	while (!told && cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		((void (*)(unsigned long))(uintptr_t)loop)(LOOP_BURST);
}

static void burn_ms(u64 ms)
{
	burn_in(loops_text + 3 * LOOP_SIZE, ms);
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
	MUST(write(STDOUT_FILENO, "\n", 1) == 1);
	burn_ms(60000);
	return told ? status : 1;
}

static int fork_all(int n, u64 ms)
{
	int status, bad = 0;

	while (n--)
		FORK(burn_ms(ms));
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}

static u64 burners_ms;

static void *burner(void *unused)
{
	char name[16];

	(void)unused;
	snprintf(name, sizeof(name), "burner-%ld", syscall(SYS_gettid) % 100000);
	prctl(PR_SET_NAME, name);
	burn_ms(burners_ms);
	return NULL;
}

static int anon(u64 ms)
{
	char *text = map_pages(1);

	memcpy(text, loops_text, LOOP_SIZE);
	MUST(!mprotect(text, PAGE, PROT_READ | PROT_EXEC));
	burn_in(text, ms);
	return 0;
}

/* Makes a file of a page with the loop, which runs at any address. Returns its descriptor. */
static int make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

	MUST(write(fd, loops_text, LOOP_SIZE) == LOOP_SIZE && !ftruncate(fd, PAGE));
	return fd;
}

/* Alternates between two mappings, as dlclose() and dlopen() would. */
static int swap(const char *a, const char *b, int n, u64 ms)
{
	char *text = map_pages(1);
	const int files[2] = { make(a), make(b) };

	for (int i = 0; i < n; i++) {
		MUST(mmap(text, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, files[i % 2],
			  0) == text);
		burn_in(text, ms);
	}
	return 0;
}

/* Reads @fd, an eventfd, which takes long if many wait for it. Returns the CPU time, in ns. */
static u64 read_event(int fd)
{
	const u64 before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	u64 value;

	MUST(read(fd, &value, sizeof(value)) == sizeof(value));
	return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
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
	u64 end;

	MUST(!getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	do {
		for (int i = 0; i < 1000; i++)
			MUST(!epoll_ctl(waiters, EPOLL_CTL_ADD, dup(fd), &event));
	} while (read_event(fd) < NS_PER_MS * 3 / 2);
	end = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + ms * NS_PER_MS;
	while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		read_event(fd);
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
		return dprintf(STDOUT_FILENO, "%d\n", FORK(burn_ms(a))) < 0;
	if (!strcmp(what, "exec")) {
		burn_ms(a);
		execl("/proc/self/exe", "other", "burn", argv[2], NULL);
		return 1;
	}
	if (!strcmp(what, "threads"))
		return burners_ms = b, !!in_threads(a, burner);
	if (!strcmp(what, "anon"))
		return anon(a);
	if (!strcmp(what, "late"))
		return late(a);
	if (!strcmp(what, "swap") && argc == 6)
		return swap(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
	return 2;
}
