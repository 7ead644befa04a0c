// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of other profilers, with the same loop, at the rate of the tick if possible. The cost of a
 * sample is the extra time of all interrupted iterations, divided by the number of samples.
 */
#include "measure.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* For profilers with their own interrupts, or without a sample in each tick: divides the total. */
static bool peer(const struct row *row, const struct gaps *gaps, u64 samples)
{
	const double ticks = (double)gaps->elapsed / query.tick_ns;
	double each;

	if (!samples)
		return fail("no samples");
	each = (gaps->sum - ticks * tick.sum / tick.nr) / samples;
	figure(row->name, each, each, samples);
	return true;
}

/* For profilers that can use a given period: they take nearly one sample in each period. */
static bool peer_at_tick(const struct row *row, const struct gaps *gaps, u64 samples)
{
	const u64 expected = gaps->elapsed / query.tick_ns;

	if (samples * 100 < expected * 90 || samples * 100 > expected * 110)
		return fail("%lu samples in %lu periods", samples, expected);
	return peer(row, gaps, samples);
}

/* The C library's profil(): libprofil is not linked. */
bool run_glibc(const struct row *row)
{
	int (*volatile libc_profil)(unsigned short *, size_t, size_t, unsigned int) = profil;
	const size_t nr = LOOP_COUNTERS;
	unsigned short *counters = reserve(nr * 2);
	struct gaps gaps;
	u64 samples = 0;
	bool ok;

	if (libc_profil(counters, nr * 2, addr(bench_loop), 65536)) {
		ok = fail("profil: %s", strerror(errno));
	} else {
		ok = measure(&gaps);
		libc_profil(NULL, 0, 0, 0);
	}
	for (size_t i = 0; i < nr; i++)
		samples += counters[i];
	munmap(counters, nr * 2);
	return ok && peer(row, &gaps, samples);
}

/*
 * Counts the samples in a file of gperftools. It consists of words: the header, which has two words
 * and its length, the period and others; then a count, a depth and the pcs for each entry.
 */
static u64 gperftools_samples(const char *path)
{
	u64 word[2], samples = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (fread(word, 8, 2, f) == 2)
		fseek(f, word[1] * 8, SEEK_CUR);
	while (fread(word, 8, 2, f) == 2 && word[0]) {
		samples += word[0];
		fseek(f, word[1] * 8, SEEK_CUR);
	}
	fclose(f);
	return samples;
}

bool run_gperftools(const struct row *row)
{
	static const char path[] = "/tmp/gperftools";
	int (*start)(const char *path);
	void (*stop)(void);
	struct gaps gaps;
	char hz[16];
	void *lib;
	bool ok;

	snprintf(hz, sizeof(hz), "%u", query.tick_hz);
	setenv("CPUPROFILE_FREQUENCY", hz, 1);
	lib = dlopen("libprofiler.so.0", RTLD_NOW);
	start = lib ? dlsym(lib, "ProfilerStart") : NULL;
	stop = lib ? dlsym(lib, "ProfilerStop") : NULL;
	if (!start || !stop)
		return fail("no libprofiler.so.0");
	if (!start(path))
		return fail("ProfilerStart");
	ok = measure(&gaps);
	stop();
	ok = ok && peer_at_tick(row, &gaps, gperftools_samples(path));
	unlink(path);
	return ok;
}

/* Opens an event as perf record does. No one reads its buffer. */
bool run_perf_event(const struct row *row)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = query.tick_ns,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_PERIOD,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
	};
	/* A call chain is its length, PERF_CONTEXT_USER, the pc and the return addresses. */
	const size_t sample_size = 8 + 8 + 8 + 8 + 8 + (row->frames ? 8 * (3 + row->frames) : 0);
	const size_t length = 257 * sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;
	struct gaps gaps;
	u64 samples;
	bool ok;
	int fd;

	if (row->frames)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fail("perf_event_open: %s", strerror(errno));
	page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return fail("perf_event_open: mmap: %s", strerror(errno));
	}
	ok = measure_frames(row->frames, &gaps);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	samples = page->data_head / sample_size;
	munmap(page, length);
	close(fd);
	return ok && peer_at_tick(row, &gaps, samples);
}

/* A kernel timer with an empty handler, from timer.c: the minimum cost of any clock. */
bool run_timer(const struct row *row)
{
	const int fd = open("bench_timer.ko", O_RDONLY | O_CLOEXEC);
	char args[32];
	struct gaps gaps;
	bool ok;

	snprintf(args, sizeof(args), "period_ns=%lu", row->period);
	ok = !syscall(SYS_finit_module, fd, args, 0) ||
	     fail("bench_timer.ko: %s", strerror(errno));
	close(fd);
	if (!ok)
		return false;
	pause_ms(100);
	ok = measure(&gaps);
	syscall(SYS_delete_module, "bench_timer", O_NONBLOCK);
	if (ok)
		figure(row->name, gaps.median,
		       (gaps.sum - (double)gaps.elapsed / query.tick_ns * tick.sum / tick.nr) /
		       ((double)gaps.elapsed / row->period), gaps.nr);
	return ok;
}

/* Starts a profiler that is a program. Its output on both streams can be read from *out. */
static pid_t program_start(const char *const argv[], FILE **out)
{
	int said[2];
	pid_t pid;

	if (pipe2(said, O_CLOEXEC))
		die("pipe2");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		dup2(said[1], STDOUT_FILENO);
		dup2(said[1], STDERR_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(said[1]);
	*out = fdopen(said[0], "r");
	return pid;
}

/*
 * Ends the program, and adds up the samples that line_samples() finds in each line of its output.
 */
static u64 program_end(pid_t pid, FILE *out, u64 (*line_samples)(const char *line))
{
	char line[512];
	u64 samples = 0;

	kill(pid, SIGINT);
	while (fgets(line, sizeof(line), out))
		samples += line_samples(line);
	fclose(out);
	waitpid(pid, NULL, 0);
	return samples;
}

/* [ perf record: Captured and wrote 0.042 MB perf.data (502 samples) ] */
static u64 perf_samples(const char *line)
{
	const char *number = strrchr(line, '(');

	return number && strstr(number, " samples)") ? strtoull(number + 1, NULL, 10) : 0;
}

/* perf record, which also reads the buffer while the loop runs. */
bool run_perf_record(const struct row *row)
{
	char hz[16], pid[16], control[32], answer[5];
	const char *const argv[] = {
		"perf", "record", "-e", "cpu-clock:u", "-F", hz, "-p", pid, "-D", "-1",
		"--control", control, "-o", "/tmp/perf.data", NULL
	};
	int told[2], answered[2];
	struct gaps gaps;
	pid_t child;
	u64 samples;
	FILE *out;
	bool ok;

	if (pipe(told) || pipe(answered))
		die("pipe");
	snprintf(hz, sizeof(hz), "%u", query.tick_hz);
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(control, sizeof(control), "fd:%d,%d", told[0], answered[1]);
	child = program_start(argv, &out);
	close(told[0]);
	close(answered[1]);
	signal(SIGPIPE, SIG_IGN);
	ok = (write(told[1], "enable\n", 7) == 7 &&
	      read(answered[0], answer, sizeof(answer)) > 0) || fail("perf record did not start");
	pause_ms(500);
	ok = ok && measure(&gaps);
	samples = program_end(child, out, perf_samples);
	close(told[1]);
	close(answered[0]);
	unlink("/tmp/perf.data");
	return ok && peer_at_tick(row, &gaps, samples);
}

/* @[4198771]: 12 */
static u64 bpftrace_samples(const char *line)
{
	const char *number = strstr(line, "]: ");

	return line[0] == '@' && number ? strtoull(number + 3, NULL, 10) : 0;
}

/* The shortest script with a histogram. bpftrace prints a message before it attaches. */
bool run_bpftrace(const struct row *row)
{
	char script[128], line[512] = "";
	const char *const argv[] = { "bpftrace", "-e", script, NULL };
	struct gaps gaps;
	pid_t child;
	u64 samples;
	FILE *out;
	bool ok;

	snprintf(script, sizeof(script), "profile:hz:%u /pid == %d/ { @[reg(\"ip\")] = count(); }",
		 query.tick_hz, getpid());
	child = program_start(argv, &out);
	while (fgets(line, sizeof(line), out) && !strstr(line, "Attaching"))
		;
	ok = strstr(line, "Attaching") || fail("bpftrace: %.64s", line);
	pause_ms(5000);
	ok = ok && measure(&gaps);
	samples = program_end(child, out, bpftrace_samples);
	return ok && peer_at_tick(row, &gaps, samples);
}
