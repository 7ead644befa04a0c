// SPDX-License-Identifier: GPL-2.0
/*
 * Rows with the cost of profiling a program from beginning to end, in all tasks and interrupts: of
 * the program, the profiler and the kernel. There is one CPU, whose clock counts instructions, so
 * this cost is the extra time of the command, relative to the program alone, without the time in
 * which the CPU was idle: a profiler may wait. The program runs with two lengths, which give the
 * fixed cost and the cost for each second of CPU time.
 */
#include "measure.h"

#include <stdlib.h>
#include <sys/wait.h>

#define SHORT	1	/* seconds */
#define LONG	11

static const struct whole {
	const char *name;
	const char *command;	/* runs "$@" */
} wholes[] = {
	{ "whole-none", "\"$@\"" },
	{ "whole-profil", "profil record --tick -o /tmp/whole -- \"$@\"" },
	{ "whole-profil-1000hz", "profil record -F 1000 -o /tmp/whole -- \"$@\"" },
	{ "whole-profil-all", "profil record -a -F 1000 -o /tmp/whole -- \"$@\"" },
	{ "whole-profil-stacks", "profil record -g -F 1000 -o /tmp/whole -- \"$@\"" },
	{ "whole-perf", "perf record -e cpu-clock -F 250 -o /tmp/whole -- \"$@\"" },
	{ "whole-perf-1000hz", "perf record -e cpu-clock -F 1000 -o /tmp/whole -- \"$@\"" },
	{ "whole-perf-all", "perf record -a -e cpu-clock -F 1000 -o /tmp/whole -- \"$@\"" },
	{ "whole-perf-dwarf",
	  "perf record -e cpu-clock -F 1000 --call-graph dwarf,16384 -o /tmp/whole -- \"$@\"" },
	{ "whole-gperftools",
	  "CPUPROFILE=/tmp/whole CPUPROFILE_FREQUENCY=250 LD_PRELOAD=libprofiler.so.0 \"$@\"" },
};

static const struct whole *find_whole(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(wholes); i++)
		if (!strcmp(wholes[i].name, name))
			return &wholes[i];
	return NULL;
}

/* The program: runs the given number of iterations. */
int whole_program(int argc, char **argv)
{
	uint64_t gap;

	if (argc != 3)
		return 1;
	bench_loop(strtoull(argv[2], NULL, 10), UINT64_MAX, &gap, 1);
	return 0;
}

/* The time in which tasks and interrupts have used the CPU since boot, in ns. */
static u64 busy_time(void)
{
	FILE *f = fopen("/proc/schedstat", "re");
	unsigned long long ns = 0;
	char line[256];
	int found = 0;

	while (f && fgets(line, sizeof(line), f) && !found)
		found = sscanf(line, "cpu0 %*u %*u %*u %*u %*u %*u %llu", &ns);
	if (f)
		fclose(f);
	if (found != 1)
		die("/proc/schedstat");
	return ns;
}

/* Returns the number of instructions, or -1. */
static double run_for(const struct whole *whole, double seconds)
{
	const u64 begin = busy_time();
	char rounds[24], script[256];
	int status;
	pid_t pid;

	snprintf(rounds, sizeof(rounds), "%.0f", seconds * 1e9 / BENCH_ROUND_NS);
	snprintf(script, sizeof(script), "exec >/tmp/whole.log 2>&1; %s", whole->command);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", script, "sh", "./measure", WHOLE_PROGRAM, rounds,
		      (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fail("%s: status %x", whole->name, status);
		return -1;
	}
	return (double)(busy_time() - begin) / INSTRUCTION_NS;
}

/* A first run puts files into memory and hooks into place. Then both lengths are measured. */
static bool run_both(const struct whole *whole, double *at_short, double *at_long)
{
	if (run_for(whole, SHORT) < 0)
		return false;
	*at_short = run_for(whole, SHORT);
	*at_long = run_for(whole, LONG);
	unlink("/tmp/whole");
	return *at_short >= 0 && *at_long >= 0;
}

bool run_whole(const struct row *row)
{
	const struct whole *whole = find_whole(row->name);
	double none_short, none_long, at_short, at_long, second;

	/* So the removal of the hook after an earlier row is no cost of this one. */
	if (!wait_for_no_hook() ||
	    !run_both(&wholes[0], &none_short, &none_long) || !run_both(whole, &at_short, &at_long))
		return false;
	second = (at_long - none_long - (at_short - none_short)) / (LONG - SHORT);
	figure_of(row, "second", &second, 1);
	at_short -= none_short + second * SHORT;
	figure_of(row, "fixed", &at_short, 1);
	return true;
}
