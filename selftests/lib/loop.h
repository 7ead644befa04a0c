/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loops at known addresses, where ticks interrupt them, and functions that run them
 *
 * The loops are asm, so that no compiler moves them. Loop i is a function of 32
 * bytes at loops_text + 32 * i. Its second half is the loop itself, and ticks
 * interrupt it at loop_at(i): on x86 the loop is a single instruction, and elsewhere
 * QEMU takes interrupts only at branch targets. The block of LOOP_BLOCK bytes at
 * loop_at(i) contains only the loop and the return.
 *
 * Time is measured in ticks of the session under test, never in seconds. Every wait
 * has a limit in CPU time or in polls, so that a test fails and does not hang if no
 * tick comes.
 */
#ifndef _SELFTESTS_LOOP_H
#define _SELFTESTS_LOOP_H

#include "device.h"

#include <limits.h>
#include <sys/resource.h>
#include <time.h>

#define LOOPS		8U
#define LOOP_SIZE	32U
#define LOOP_BLOCK	16U

/* Iterations that take longer than a system call, and less than a tick (at vm/run --clock 2). */
#define LOOP_BURST	(1UL << 19)

extern const char loops_text[] __attribute__((visibility("hidden")));

#if defined(__x86_64__)
#define LOOP_ENTRY	"mov %rdi, %rcx\n"
#define LOOP_BODY	"1: loop 1b\n ret\n"
#elif defined(__i386__)
#define LOOP_ENTRY	"mov 4(%esp), %ecx\n"
#define LOOP_BODY	"1: loop 1b\n ret\n"
#elif defined(__aarch64__)
#define LOOP_ENTRY	"nop\n"
#define LOOP_BODY	"1: subs x0, x0, #1\n b.ne 1b\n ret\n"
#elif defined(__arm__)
#define LOOP_ENTRY	"nop\n"
#define LOOP_BODY	"1: subs r0, r0, #1\n bne 1b\n bx lr\n"
#elif defined(__riscv)
#define LOOP_ENTRY	".option push\n .option norvc\n nop\n"
#define LOOP_BODY	"1: addi a0, a0, -1\n bnez a0, 1b\n ret\n .option pop\n"
#else
#error "No loops for this architecture"
#endif

asm(".pushsection .text\n"
#ifdef __arm__
	/* Calls from Thumb code change to ARM code only if the symbol is that of a function. */
	".arm\n"
	".type loops_text, %function\n"
#endif
	".balign 32\n"
	"loops_text:\n"
	".rept 8\n"
	LOOP_ENTRY
	".balign 16\n"
	LOOP_BODY
	".balign 16\n"
	".endr\n"
	".popsection\n");

/* Returns the address at which ticks interrupt loop @i. */
static inline u64 loop_at(unsigned int i)
{
	return addr(loops_text) + LOOP_SIZE * i + LOOP_BLOCK;
}

static inline void loop_run(unsigned int i, unsigned long n)
{
	uintptr_t loop = (uintptr_t)loops_text + LOOP_SIZE * i;

	/* Thumb code would call an address that the compiler knows without a change to ARM code. */
	asm("" : "+r"(loop));
	((void (*)(unsigned long))loop)(n);
}

/*
 * Sessions
 */

/* Like session_start(), but samples only the ticks that @modes selects. */
static inline int session_start_modes(u32 scope, u32 modes, const struct profil_range *ranges,
				      u32 nr_ranges)
{
	return session_start_as((struct profil_start){ .scope = scope, .modes = modes }, ranges,
				nr_ranges);
}

/* Returns a range for callers to change: one counter for each byte of text from @start. */
static inline struct profil_range range_of(u64 start, u64 end, volatile void *buffer,
					   u64 nr_counters, u32 width)
{
	return (struct profil_range) {
		.start = start,
		.end = end,
		.offset = start,
		.buffer = addr(buffer),
		.nr_counters = nr_counters,
		.scale = 65536,
		.granule = 1,
		.step = 1,
		.width = width,
	};
}

/* Returns a range that counts loop i in counter i: LOOPS counters of @width bytes. */
static inline struct profil_range range_of_loops(volatile void *buffer, u32 width)
{
	struct profil_range range = range_of(addr(loops_text),
					     addr(loops_text) + LOOPS * LOOP_SIZE,
					     buffer, LOOPS, width);

	range.granule = LOOP_SIZE;
	return range;
}

/* Returns a range for the block of loop @i, whose counter is number @at of @nr. */
static inline struct profil_range range_of_block(unsigned int i, volatile void *buffer, u64 nr,
						 u32 width, u64 at)
{
	struct profil_range range = range_of(loop_at(i), loop_at(i) + LOOP_BLOCK, buffer, nr,
					     width);

	range.offset -= at * LOOP_BLOCK;
	range.granule = LOOP_BLOCK;
	return range;
}

/*
 * Makes ranges of @size bytes, which count user ticks of loop 0 in the first counter, and of loop 1
 * in the last, and no ticks between two runs of these
 */
static inline void ranges_at_ends(struct profil_range ranges[2], volatile void *buffer, u64 size)
{
	ranges[0] = range_of_block(0, buffer, size / 4, 4, 0);
	ranges[1] = range_of_block(1, buffer, size / 4, 4, size / 4 - 1);
}

/*
 * Spending time
 */

static inline u64 cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Returns the CPU time of the children that have been waited for. */
static inline u64 children_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000ULL +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ULL;
}

static inline u64 now_ns(void)
{
	return cpu_ns(CLOCK_MONOTONIC);
}

static inline void pause_ns(u64 ns)
{
	const struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&t, NULL);
}

static inline u64 tick_ns(void)
{
	struct profil_query query;

	return device_query(&query) ? 4000000 : query.tick_ns;
}

/* Returns the CPU time of process @pid, in ticks. */
static inline u64 cpu_ticks(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : cpu_ns(clock) / tick_ns();
}

#define BURN_CAP_NS	16000000000ULL

/*
 * Executes the statements until @cond is true, or for far more CPU time than that should take. The
 * value is the last value of @cond.
 */
#define work_until(cond, ...) ({							\
	u64 __cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_CAP_NS;			\
	bool __true;									\
											\
	while (!(__true = (cond)) && cpu_ns(CLOCK_THREAD_CPUTIME_ID) < __cap) {		\
		__VA_ARGS__;								\
	}										\
	__true;										\
})

/* Runs loop @i until @cond is true, with the same limit and value. */
#define loop_until(i, cond)	work_until(cond, loop_run(i, LOOP_BURST))

/*
 * Runs loop @i until the session of @scope has seen @ticks more, including those of
 * modes that it does not select. Returns false if they do not come, or if the session is not on.
 */
static inline bool loop_burn(u32 scope, unsigned int i, u64 ticks)
{
	struct profil_stats s;
	u64 until;

	if (session_stats(scope, &s))
		return false;
	until = s.ticks + s.unselected + ticks;
	loop_until(i, session_stats(scope, &s) || s.state != PROFIL_STATE_ON ||
		   s.ticks + s.unselected >= until);
	if (s.state == PROFIL_STATE_ON && s.ticks + s.unselected >= until)
		return true;
	fprintf(stderr, "# loop %u: state %u, end %u, %llu of %llu ticks\n", i, s.state, s.end,
		s.ticks + s.unselected, (unsigned long long)until);
	return false;
}

/* Runs loop @i for the CPU time of @ticks ticks, with or without a session. */
static inline void loop_spend(unsigned int i, unsigned int ticks, u64 tick_ns)
{
	u64 until = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ticks * tick_ns;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		loop_run(i, LOOP_BURST);
}

/**
 * loop_for_ever() - Run a loop until the process ends: a function for pthread_create()
 * @i: the number of the loop, as a pointer
 */
static inline void *loop_for_ever(void *i)
{
	for (;;)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

/* Like loop_burn(), for the session of descriptor @fd. */
static inline bool descriptor_burn(int fd, unsigned int i, u64 ticks)
{
	struct profil_stats s;
	u64 until;

	if (descriptor_stats(fd, &s))
		return false;
	until = s.ticks + s.unselected + ticks;
	return loop_until(i, descriptor_stats(fd, &s) || s.state != PROFIL_STATE_ON ||
			     s.ticks + s.unselected >= until) &&
	       s.ticks + s.unselected >= until && s.state == PROFIL_STATE_ON;
}

/* The counter of a loop */

#define LOOP_OUTSIDE	UINT_MAX		/* in none of the counters */
#define LOOP_NOWHERE	(UINT_MAX - 1)	/* unknown: too few ticks, or no session */

/* Ticks between two bursts are fewer than this. */
#define PLACE_LEAD	8U

/*
 * Returns which of @n counters has most of the ticks of the session of @scope. Ticks in system mode
 * are those of the calls between two bursts: on a slow kernel these can take longer than a burst.
 */
static inline unsigned int place_of_most(u32 scope, const volatile void *buffer, u32 width,
					 unsigned int n)
{
	struct profil_stats s;
	u64 user;

	if (session_stats(scope, &s))
		return LOOP_NOWHERE;
	user = s.ticks - s.system;
	for (unsigned int i = 0; i < n; i++)
		if (2 * counter(buffer, width, i) >= user + PLACE_LEAD)
			return i;
	return 2 * s.outside >= user + 2 * s.system + PLACE_LEAD ? LOOP_OUTSIDE : LOOP_NOWHERE;
}

/* Runs loop @i until one of @n counters has most of the ticks. Returns which. */
static inline unsigned int loop_place(u32 scope, unsigned int i, const volatile void *buffer,
				      u32 width, unsigned int n)
{
	unsigned int place;

	/* The loop must have most of the ticks, and not the calls, even on a busy host. */
	work_until((place = place_of_most(scope, buffer, width, n)) != LOOP_NOWHERE,
		   loop_run(i, 4 * LOOP_BURST));
	return place;
}

/*
 * Waits for an event in a worker or another process: evaluates @cond until it is true,
 * for at most some 40 s. The value is the last value of @cond.
 */
#define await(cond) ({									\
	const struct timespec __pause = { .tv_nsec = 5000000 };				\
	unsigned int __polls = 8000;							\
	bool __true;									\
											\
	while (!(__true = (cond)) && --__polls)						\
		nanosleep(&__pause, NULL);						\
	__true;										\
})

#endif /* _SELFTESTS_LOOP_H */
