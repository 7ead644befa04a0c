/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rows of the benchmark have from measure.c. They return false after fail(), and leave
 * nothing behind either way.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "../lib/device.h"
#include "loop.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define INSTRUCTION_NS	16
#define BENCH_ROUND_NS	(BENCH_LOOP_LENGTH * INSTRUCTION_NS)
#define LOOP_BYTES	((size_t)(bench_loop_end - (const char *)bench_loop))
#define LOOP_COUNTERS	(LOOP_BYTES / 2 + 1)

/* A row, and what it has more or less of than others. */
struct row {
	const char *name;
	bool (*run)(const struct row *row);
	bool once;		/* takes long: in the first repetition only */
	bool longer;		/* varies: four times as many ticks */
	u32 scope;
	u32 ranges;
	u32 width;		/* of a counter, in bytes; 0: 2 */
	bool system;		/* ticks find the kernel running */
	bool scattered;		/* all ranges are the loop's */
	u64 period;		/* ns; 0: the tick */
	u32 others;		/* sessions elsewhere */
	bool later;		/* which began after ours */
	u32 threads;
	bool running;		/* they all are, in user code */
	u32 sessions;		/* on our one task */
	size_t histogram;	/* bytes */
	u32 records;		/* that each session can keep */

	bool chosen;
	bool failed;
	char reason[128];
};

/* What the interrupted rounds of the loop took beyond a round's own time, in instructions. */
struct gaps {
	u64 nr;
	double values[1000];	/* the first of them */
	double median;
	double low;		/* the least that can be a tick */
	double middle;		/* mean of the middle 80 % */
	double sum;		/* but of those beyond twice the 90th percentile the median */
	u64 elapsed;		/* ns of the whole loop */
};

extern struct profil_query query;
/* Without profiling, in this repetition: ticks in user code, and in the kernel. */
extern struct gaps tick, system_tick;

bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *what) __attribute__((noreturn));
u64 now(void);
void pause_ms(unsigned int ms);
bool hook_is(int hook);
double median_of(double *values, unsigned int nr);
double shift_of(const struct gaps *with, const struct gaps *without);

/* Memory that is there: no page faults in what is measured. */
void *reserve(size_t bytes);

bool measure(struct gaps *gaps);
bool measure_system(struct gaps *gaps);		/* in the kernel, called by a user loop */
bool measure_off(struct gaps *gaps);	/* when the hook is gone */

/* One more value for the figure of that name: median and mean, in instructions. */
void figure(const char *name, double median, double mean, u64 samples);

/* sessions.c: ours */
void sessions_init(void);
bool set_others(u32 wanted);	/* sessions elsewhere */
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

/* whole.c: what it takes to profile a program, from beginning to end */
#define WHOLE_PROGRAM "--program"
bool run_whole(const struct row *row);
int whole_program(int argc, char **argv);

#endif /* BENCH_MEASURE_H */
