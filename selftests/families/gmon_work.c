// SPDX-License-Identifier: GPL-2.0
/*
 * Programs compiled with gcc -pg, which gmon.c runs
 *
 * gmon_work TASK behaves like an old program that does not know of libprofil. It prints lines "KEY
 * NUMBER" about its profile on standard output: link-time addresses, and statistics of the kernel.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/gmon.h>
#include <sys/time.h>

#include "loop.h"
#include "process.h"
#include "threads.h"

#define SCOPE	PROFIL_SCOPE_PROCESS

void moncontrol(int mode);

static void say(const char *key, u64 value)
{
	printf("%s %llu\n", key, (unsigned long long)value);
	fflush(stdout);
}

static int first_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(u64 *)bias = info->dlpi_addr;
	return 1;
}

/* Returns the link-time address of @p. */
static u64 linked(const void *p)
{
	u64 bias = 0;

	dl_iterate_phdr(first_bias, &bias);
	return addr(p) - bias;
}

static __attribute__((noinline, noclone)) void leaf(void)
{
	asm volatile("" : : : "memory");
}

static void calls(unsigned int n)
{
	while (n--)
		leaf();
}

static struct profil_stats stats(void)
{
	struct profil_stats s;

	MUST(!session_stats(SCOPE, &s));
	return s;
}

/* Ends the session in place of the program, to get its final statistics. */
static u64 stop(void)
{
	struct profil_stats s;

	MUST(!session_stop(SCOPE, &s));
	MUST(accounted(&s));
	return s.hit;
}

/* Runs loop @i. */
static void spin(unsigned int i, u64 ticks)
{
	MUST(loop_burn(SCOPE, i, ticks));
}

/* The same, with a session of the thread, so that the program's need not be on. */
static void spin_with_session(unsigned int i, u64 ticks)
{
	MUST(!session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	MUST(loop_burn(PROFIL_SCOPE_THREAD, i, ticks));
	MUST(!session_stop(PROFIL_SCOPE_THREAD, NULL));
}

static bool timer_is_free(void)
{
	struct sigaction action;
	struct itimerval timer;

	MUST(!sigaction(SIGPROF, NULL, &action) && !getitimer(ITIMER_PROF, &timer));
	return action.sa_handler == SIG_DFL && !timer.it_interval.tv_sec &&
	       !timer.it_interval.tv_usec;
}

/* The tasks */

static void task_burn(void)
{
	MUST(stats().state == PROFIL_STATE_ON);
	MUST(timer_is_free());
	calls(1000);
	spin(3, 40);
	say("hit", stop());
}

static void task_calls(void)
{
	calls(1234);
}

/* Runs until the C library's timer must have expired. */
static void task_spend(void)
{
	calls(1234);
	loop_spend(3, 25, 10000000);
	say("timer_is_free", timer_is_free());
}

static void *thread(void *i)
{
	spin_with_session((uintptr_t)i, 12);
	return NULL;
}

static void task_threads(void)
{
	in_threads(LOOPS, thread);
	say("hit", stop());
}

static void task_control(void)
{
	u64 hit = 0;

	calls(10);
	spin(0, 10);
	hit += stop();
	moncontrol(0);
	MUST(is_off(SCOPE));
	MUST(timer_is_free());
	calls(200);
	spin_with_session(1, 10);

	moncontrol(1);
	MUST(stats().state == PROFIL_STATE_ON);
	MUST(timer_is_free());
	calls(3000);
	spin(2, 30);
	hit += stats().hit;

	/* Two calls in a row have the effect of one. */
	moncontrol(1);
	MUST(stats().state == PROFIL_STATE_ON);
	moncontrol(0);
	moncontrol(0);
	MUST(is_off(SCOPE));
	MUST(timer_is_free());

	moncontrol(1);
	spin(3, 10);
	hit += stop();
	say("hit", hit);	/* ticks after this question are not included */
}

/*
 * Only the parent limits the time: on a busy host, an emulated CPU gets few ticks of so short a
 * period.
 */
static void *fill(void *unused)
{
	(void)unused;
	while (stats().hit < 67000)
		loop_run(3, LOOP_BURST);
	return NULL;
}

static void task_full(void)
{
	in_threads(2, fill);
	say("hit", stop());
}

static void task_fork(void)
{
	pid_t pid;

	spin(0, 10);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		spin(1, 20);
		say("child", getpid());
		say("child_hit", stop());
		exit(0);
	}
	MUST(status_of(pid) == 0);
	spin(2, 10);
	say("hit", stop());
}

/* Calls more arcs than the C library has room for in so little text. */
static __attribute__((noinline, noclone)) void many_arcs(void)
{
#define TWICE(x)	x x
	TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(leaf();))))))))
}

static void task_overflow(void)
{
	_mcleanup();
	unlink("gmon.out");
	rename("kept", "gmon.out");
	monstartup(addr(many_arcs), addr(many_arcs) + 2048);
	MUST(stats().state == PROFIL_STATE_ON);
	many_arcs();
}

/* Profiles only the text of the loops 2 and 3. */
static void task_part(void)
{
	const char *low = loops_text + 2 * LOOP_SIZE;

	spin(3, 5);
	_mcleanup();
	monstartup(addr(low), addr(low) + 2 * LOOP_SIZE);
	MUST(stats().state == PROFIL_STATE_ON);
	spin(1, 5);
	spin(2, 10);

	/* This has no effect, because profiling is on. */
	monstartup(addr(loops_text), addr(loops_text) + LOOP_SIZE);
	spin(0, 5);
	say("hit", stop());
	say("low", linked(low));
}

/*
 * The program may call _mcleanup() itself, before the C library does. Then moncontrol() has no
 * effect.
 */
static void task_finish(void)
{
	_mcleanup();
	MUST(is_off(SCOPE));
	moncontrol(1);
	MUST(is_off(SCOPE));
	MUST(timer_is_free());
	calls(100);
	moncontrol(0);
	_mcleanup();
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tasks[] = {
		{ "burn", task_burn },
		{ "calls", task_calls },
		{ "spend", task_spend },
		{ "threads", task_threads },
		{ "control", task_control },
		{ "full", task_full },
		{ "fork", task_fork },
		{ "overflow", task_overflow },
		{ "part", task_part },
		{ "finish", task_finish },
	};
	unsigned int i;

	say("leaf", linked(leaf));
	say("loops", linked(loops_text));
	for (i = 0; argc == 2 && i < sizeof(tasks) / sizeof(*tasks); i++) {
		if (!strcmp(argv[1], tasks[i].name)) {
			tasks[i].run();
			return 0;
		}
	}
	return 1;
}
