// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs compiled with gcc -pg: the kernel counts the histogram of their gmon.out.
 *
 * The C library does everything else, as without this library: it counts the calls (the arcs) and
 * writes gmon.out. It would also count the histogram with its own profil(). We turn this profil()
 * off right after the C library has turned it on. The calls are still counted, because only
 * moncontrol(0) turns mcount() off. After the C library has written the file, we replace only the
 * histogram in the file.
 *
 * A counter is for four bytes of text, as in the C library, but has 32 bits. A record in the file
 * has only 16 bits for each counter. So we write several records with the same addresses for text
 * with larger counts, and gprof adds them. (gprof rejects records that overlap in another way.)
 *
 * One thread at a time calls monstartup() and _mcleanup(), usually at startup and at exit. Any
 * thread can call moncontrol() at any time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/gmon_out.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/profil.h>

#include "classic.h"
#include "device.h"
#include "gmon.h"
#include "profil.h"

/*
 * There is one counter for 4 bytes of text; or for up to 4096, if the counters are more memory than
 * RLIMIT_MEMLOCK allows.
 */
#define SHIFT_MIN	2
#define SHIFT_MAX	12

#define COUNTER_MAX	65535U		/* maximum of a counter in the file */

static struct {
	bool started;			/* between monstartup() and _mcleanup() */
	struct profil_range range;	/* has no counters if the C library counts */
	unsigned int shift;
	uint64_t period;
	int32_t rate;			/* ticks per second */
} gmon;

/* Returns true if the kernel counts the histogram, even if moncontrol() has stopped it for now. */
static bool kernel_counts(void)
{
	return gmon.started && gmon.range.nr_counters;
}

static void complain(const char *subject, int err)
{
	char text[160];
	int len = snprintf(text, sizeof(text), "libprofil: gmon: %s: %s\n", subject, strerror(err));

	if (write(STDERR_FILENO, text, len) < 0)
		return;
}

/*
 * The histogram
 */

/* Selects the tick of the scheduler, or the rate in the variable PROFIL_GMON_RATE. */
static int choose_clock(void)
{
	struct profil_query query = { .size = sizeof(query) };
	const char *text = secure_getenv("PROFIL_GMON_RATE");
	int err = libprofil_classic_ioctl(PROFIL_IOC_QUERY, &query);
	unsigned long rate;
	char *end;

	if (err)
		return err;
	gmon.period = 0;
	gmon.rate = query.tick_hz;
	if (!text)
		return 0;

	rate = strtoul(text, &end, 10);
	if (end == text || *end || !rate || rate > 1000000000 ||
	    1000000000 / rate < query.min_period || 1000000000 / rate > query.max_period) {
		complain("PROFIL_GMON_RATE", EINVAL);
		return 0;
	}
	gmon.period = 1000000000 / rate;
	gmon.rate = (1000000000 + gmon.period / 2) / gmon.period;
	return 0;
}

static int start_counting(void)
{
	return libprofil_classic_start(&gmon.range, 1, PROFIL_START_REPLACE, gmon.period);
}

/* Allocates as many counters as RLIMIT_MEMLOCK allows and starts counting. */
static int begin_histogram(uint64_t low, uint64_t high)
{
	int err = choose_clock();
	unsigned int shift;

	if (err)
		return err;
	for (shift = SHIFT_MIN; shift <= SHIFT_MAX; shift++) {
		uint64_t nr = profil_range_counters(low, high, shift);
		size_t size = nr * sizeof(uint32_t);
		void *counters;

		counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
		if (counters == MAP_FAILED)
			return -ENOMEM;
		gmon.range = profil_range_of(low, low + (nr << shift), shift, counters, nr,
					     sizeof(uint32_t));
		gmon.shift = shift;
		err = start_counting();
		if (!err)
			break;
		munmap(counters, size);
		gmon.range.nr_counters = 0;
		if (err != -ENOMEM)
			break;
	}
	return err;
}

/*
 * The file
 */

/* A path to which the C library can write, and the file that was there before. */
struct output_file {
	char path[PATH_MAX];
	struct stat before;
};

/*
 * Notes both paths, in the order in which the C library tries them, and the files there. The first
 * path is empty if the variable GMON_OUT_PREFIX is not set.
 */
static void note_output_files(struct output_file outputs[2])
{
	const char *prefix = secure_getenv("GMON_OUT_PREFIX");
	int i, len = 0;

	memset(outputs, 0, 2 * sizeof(*outputs));
	if (prefix)
		len = snprintf(outputs[0].path, sizeof(outputs[0].path), "%s.%u", prefix, getpid());
	if (len >= (int)sizeof(outputs[0].path))
		outputs[0].path[0] = 0;
	strcpy(outputs[1].path, "gmon.out");

	for (i = 0; i < 2; i++)
		if (lstat(outputs[i].path, &outputs[i].before))
			outputs[i].before.st_ino = 0;
}

static bool is_earlier(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/*
 * Returns true if the C library has written the file with the status @st. If it has lost arcs, it
 * writes no file, and a file at this path is not from this run. @before is the status of the file
 * at this path before the call of the C library, and @since is the time before this call. @since is
 * from the coarse clock, which also sets the times of files. So a file that is not older was
 * written after @since, even if it has the same times as @before.
 */
static bool was_written(const struct stat *st, const struct stat *before,
			const struct timespec *since)
{
	return st->st_ino != before->st_ino || st->st_dev != before->st_dev ||
	       st->st_size != before->st_size ||
	       st->st_mtim.tv_sec != before->st_mtim.tv_sec ||
	       st->st_mtim.tv_nsec != before->st_mtim.tv_nsec ||
	       !is_earlier(&st->st_mtim, since);
}

/* Opens the file that the C library has written. Returns NULL with errno 0 if there is none. */
static FILE *open_output(const struct output_file outputs[2], const struct timespec *since)
{
	struct stat st;
	FILE *file;
	int i, fd;

	for (i = 0; i < 2; i++) {
		if (lstat(outputs[i].path, &st) || !S_ISREG(st.st_mode) ||
		    !was_written(&st, &outputs[i].before, since))
			continue;
		fd = open(outputs[i].path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return NULL;
		file = fdopen(fd, "r+");
		if (!file)
			close(fd);
		return file;
	}
	errno = 0;
	return NULL;
}

static uint32_t histogram_counter(uint64_t i)
{
	return ((const volatile uint32_t *)(uintptr_t)gmon.range.buffer)[i];
}

/* Returns the number of records that this counter needs. */
static uint32_t records_needed(uint32_t counter)
{
	return counter ? (counter - 1) / COUNTER_MAX + 1 : 1;
}

/* Writes a record of the counters from @i to @end. Subtracts @base from each counter. */
static void write_record(FILE *file, const struct gmon_hist_hdr *whole, uint64_t i, uint64_t end,
			 uint32_t base)
{
	struct gmon_hist_hdr hdr = *whole;
	int32_t size = end - i;
	uintptr_t low, pc;

	memcpy(&low, whole->low_pc, sizeof(low));
	pc = low + (i << gmon.shift);
	memcpy(hdr.low_pc, &pc, sizeof(pc));
	pc = low + (end << gmon.shift);
	memcpy(hdr.high_pc, &pc, sizeof(pc));
	memcpy(hdr.hist_size, &size, sizeof(size));
	memcpy(hdr.prof_rate, &gmon.rate, sizeof(gmon.rate));

	fputc(GMON_TAG_TIME_HIST, file);
	fwrite(&hdr, sizeof(hdr), 1, file);
	for (; i < end; i++) {
		uint32_t n = histogram_counter(i);
		uint16_t part;

		n = n > base ? n - base : 0;
		part = n < COUNTER_MAX ? n : COUNTER_MAX;
		fwrite(&part, sizeof(part), 1, file);
	}
}

static void write_records(FILE *file, const struct gmon_hist_hdr *whole)
{
	uint64_t i, end;
	uint32_t n, k;

	for (i = 0; i < gmon.range.nr_counters; i = end) {
		n = records_needed(histogram_counter(i));
		for (end = i + 1; end < gmon.range.nr_counters; end++)
			if (records_needed(histogram_counter(end)) != n)
				break;
		for (k = 0; k < n; k++)
			write_record(file, whole, i, end, k * COUNTER_MAX);
	}
}

/*
 * Replaces the histogram in @file with the kernel's counts. Keeps two members of its header, the
 * dimension and low_pc (the link-time address of the text), and everything after the histogram.
 */
static int replace_histogram(FILE *file)
{
	const int32_t version = GMON_VERSION;
	struct gmon_hist_hdr hist;
	struct gmon_hdr hdr;
	long start, rest, end;
	int err = -EINVAL;
	int32_t bins;
	size_t size;
	char *kept;

	if (fread(&hdr, sizeof(hdr), 1, file) != 1 ||
	    memcmp(hdr.cookie, GMON_MAGIC, sizeof(hdr.cookie)) ||
	    memcmp(hdr.version, &version, sizeof(version)))
		return err;
	start = ftell(file);
	if (fgetc(file) != GMON_TAG_TIME_HIST || fread(&hist, sizeof(hist), 1, file) != 1)
		return err;
	memcpy(&bins, hist.hist_size, sizeof(bins));
	rest = ftell(file) + bins * 2L;
	if (fseek(file, 0, SEEK_END))
		return -errno;
	end = ftell(file);
	if (bins < 0 || rest > end)
		return err;

	kept = malloc(end - rest + 1);
	if (!kept)
		return -ENOMEM;
	size = end - rest;
	err = -EIO;
	if (fseek(file, rest, SEEK_SET) || fread(kept, 1, size, file) != size ||
	    fseek(file, start, SEEK_SET))
		goto free;

	errno = 0;
	write_records(file, &hist);
	fwrite(kept, 1, size, file);
	err = 0;
	if (fflush(file) || ferror(file) || ftruncate(fileno(file), ftell(file)))
		err = -(errno ?: EIO);
free:
	free(kept);
	return err;
}

/* Lets the C library write the file, and replaces the histogram in it. */
static void write_gmon_out(const struct gmon_libc *libc)
{
	struct output_file *outputs = malloc(2 * sizeof(*outputs));
	struct timespec since;
	FILE *file;
	int err;

	if (outputs)
		note_output_files(outputs);
	clock_gettime(CLOCK_REALTIME_COARSE, &since);
	libc->mcleanup();
	if (!outputs) {
		complain("gmon.out", ENOMEM);
		return;
	}
	file = open_output(outputs, &since);
	if (file) {
		err = replace_histogram(file);
		if (fclose(file) && !err)
			err = -errno;
	} else {
		err = -errno;
	}
	if (err)
		complain("gmon.out", -err);
	free(outputs);
}

/*
 * The functions that the program calls
 */

/**
 * libprofil_gmon_start - Start counting arcs and histogram
 * @libc: The C library's functions.
 * @lowpc: First address of the text.
 * @highpc: First address after the text.
 *
 * If the kernel cannot count, the C library counts the histogram, and a message on standard error
 * gives the reason. The function has no effect if it was called before, and libprofil_gmon_finish()
 * was not called since. The C library does the same. (Its earlier versions leaked memory.)
 */
void libprofil_gmon_start(const struct gmon_libc *libc, unsigned long lowpc, unsigned long highpc)
{
	const size_t size = gmon.range.nr_counters * sizeof(uint32_t);
	int err = -EINVAL;

	if (gmon.started)
		return;
	if (size)
		munmap((void *)(uintptr_t)gmon.range.buffer, size);
	gmon.range.nr_counters = 0;
	libc->monstartup(lowpc, highpc);
	gmon.started = true;

	/*
	 * Turn the C library's profil() off before its timer first expires. Later, a signal of the
	 * timer could come when its handler has been removed already.
	 */
	libc->profil(NULL, 0, 0, 0);
	if (lowpc < highpc)
		err = begin_histogram(lowpc & ~3UL, (highpc + 3UL) & ~3UL);
	if (err) {
		complain("not counted by the kernel", -err);
		libc->moncontrol(1);
	}
}

/**
 * libprofil_gmon_environment - Choose the clock again, now that the environment is known
 *
 * Where the startup code of the program has called libprofil_gmon_start() before the C library had
 * the environment, the tick has counted until now.
 */
void libprofil_gmon_environment(void)
{
	int err;

	if (!kernel_counts() || !secure_getenv("PROFIL_GMON_RATE"))
		return;
	err = choose_clock() ?: start_counting();
	if (err) {
		complain("PROFIL_GMON_RATE", -err);
		libprofil_classic_stop();
	}
}

/**
 * libprofil_gmon_control - Stop counting or continue it
 * @libc: The C library's functions.
 * @mode: 0 to stop, otherwise to continue.
 *
 * Has no effect before libprofil_gmon_start() and after libprofil_gmon_finish(), when there are no
 * counters.
 */
void libprofil_gmon_control(const struct gmon_libc *libc, int mode)
{
	int err;

	if (!gmon.started)
		return;
	libc->moncontrol(mode);
	if (!kernel_counts())
		return;
	if (mode) {
		libc->profil(NULL, 0, 0, 0);
		err = start_counting();
	} else {
		err = libprofil_classic_stop();
	}
	if (err)
		complain("moncontrol", -err);
}

/**
 * libprofil_gmon_finish - Stop counting and write gmon.out
 * @libc: The C library's functions.
 *
 * Does not free the counters: another thread may be in moncontrol().
 */
void libprofil_gmon_finish(const struct gmon_libc *libc)
{
	int state;

	if (!gmon.started)
		return;
	gmon.started = false;
	if (!gmon.range.nr_counters) {
		libc->mcleanup();
		return;
	}
	/* If the thread is cancelled in exit(), the file must be complete nevertheless. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	libprofil_classic_stop();
	write_gmon_out(libc);
	pthread_setcancelstate(state, NULL);
}
