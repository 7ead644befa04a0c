/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of measure.c for the rows of the benchmark. Functions that return bool return false
 * after fail(), and undo their changes in any case.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "../lib/loop.h"
#include "loop.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define INSTRUCTION_NS	16
#define BENCH_ROUND_NS	(BENCH_LOOP_LENGTH * INSTRUCTION_NS)
#define LOOP_BYTES	((size_t)(bench_loop_end - (const char *)bench_loop))
#define LOOP_COUNTERS	(LOOP_BYTES / 2 + 1)
#define MAX_FRAMES	127

/* A row, and its differences from other rows. */
struct row {
	const char *name;
	bool (*run)(const struct row *row);
	bool once;		/* only in the first repetition, because it takes long */
	bool longer;		/* four times as many ticks, because it varies */
	u32 scope;
	u32 ranges;
	u32 width;		/* bytes of a counter; 0: 2 */
	bool system;		/* ticks find the kernel running */
	bool scattered;		/* all ranges are in the loop */
	u64 period;		/* ns; 0: the tick */
	u32 others;		/* sessions of other processes */
	bool later;		/* these start after the session */
	u32 threads;
	bool running;		/* all of them run in user code */
	u32 sessions;		/* on the one sampled task */
	size_t histogram;	/* bytes */
	u32 records;		/* capacity of each session */
	u32 frames;		/* on the stack; 0: stacks are not recorded */
	bool by_table;		/* they are found with an unwind table */

	bool chosen;
	bool failed;
	char reason[128];
};

/* The extra time of the loop's interrupted iterations, in instructions. */
struct gaps {
	u64 nr;
	double values[1000];	/* the first of these times */
	double median;
	double low;		/* the shortest that can be a tick */
	double middle;		/* mean of the middle 80 % */
	double sum;		/* values above twice the 90th percentile count as the median */
	u64 elapsed;		/* ns for the whole loop */
};

extern struct profil_query query;
/* The tick without profiling, in this repetition: in user code, and in the kernel. */
extern struct gaps tick, system_tick;

bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *what) __attribute__((noreturn));
void pause_ms(unsigned int ms);
bool hook_is(int hook);
bool wait_for_no_hook(void);		/* it is removed linger_s after the last session */
double median_of(double *values, unsigned int nr);
double shift_of(const struct gaps *with, const struct gaps *without);

/* Allocates populated memory, so that no page fault is measured. */
void *reserve(size_t bytes);

bool measure(struct gaps *gaps);
bool measure_frames(u32 nr, struct gaps *gaps);	/* with frame pointers to @nr frames */
bool measure_system(struct gaps *gaps);		/* ticks find the kernel, called by a user loop */
bool measure_off(struct gaps *gaps);	/* after the hook was removed */

/* Adds a measurement to the figure @name: median and mean, in instructions. */
void figure(const char *name, double median, double mean, u64 samples);
/* Adds the median of @nr values to the figure "ROW-WHAT". */
void figure_of(const struct row *row, const char *what, double *values, unsigned int nr);

/* sessions.c: the rows of profil */
void sessions_init(void);
bool set_others(u32 wanted);	/* sessions of other processes */
bool run_sampled(const struct row *row);
bool run_unsampled(const struct row *row);
bool run_toggle(const struct row *row);
bool run_threads(const struct row *row);
bool run_sessions(const struct row *row);
bool run_histogram(const struct row *row);
bool run_record(const struct row *row);
bool run_worst(const struct row *row);

/* peers.c */
bool run_glibc(const struct row *row);
bool run_gperftools(const struct row *row);
bool run_perf_event(const struct row *row);
bool run_perf_record(const struct row *row);
bool run_bpftrace(const struct row *row);
bool run_timer(const struct row *row);

/* whole.c: the cost of profiling a program from beginning to end */
#define WHOLE_PROGRAM "--program"
bool run_whole(const struct row *row);
int whole_program(int argc, char **argv);

#endif /* BENCH_MEASURE_H */
