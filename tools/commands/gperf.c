// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil gperf: the classic profile of a process, by function
 *
 * The module describes the session of a process that goes on meanwhile, and process_vm_readv()
 * copies its counters; with --wait, osProfileFlush() hands all of that over. Each counter stands
 * for the text that counts in it: what begins there has its ticks.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <handover.h>
#include <profil.h>

#include "commands/command.h"
#include "symbols/symbols.h"
#include "output/escape.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define NS_PER_S	1000000000ULL
#define NS_PER_MS	1e6
#define UNKNOWN		"[unknown]"
#define ELSEWHERE	"[elsewhere]"
/* More is not believed. */
#define RANGES_MAX	(1ULL << 20)
#define BYTES_MAX	(1ULL << 34)
/* Parts of memory that one process_vm_readv() copies; the kernel takes up to 1024. */
#define IOVS_MAX	256
/* How often a profile may become another while it is copied. */
#define TRIES		100

struct options {
	pid_t pid;
	bool wait;
	bool demangle;
	u64 lines;
};

/**
 * struct capture - What a process has counted
 * @ranges: As of PROFIL_IOC_DESCRIBE.
 * @data: Their counters, each range's at a multiple of 8 bytes.
 * @maps: /proc/PID/maps, terminated.
 * @period: In ns; 0: the scheduler's tick.
 * @nr_pcs: How many are in a range that has pcs in the place of counters.
 */
struct capture {
	struct profil_range *ranges;
	u64 nr_ranges;
	void *data;
	u64 nr_bytes;
	char *maps;
	u64 period;
	u64 nr_pcs;
};

struct mapping {
	u64 start;
	u64 end;
	u64 offset;
	struct format_file file;
	const char *label;
};

/* @mapping: Where it lies; NULL if that is not known, or nowhere. */
struct sample {
	const struct mapping *mapping;
	u64 pc;
	u64 ticks;
	bool elsewhere;
};

struct row {
	const struct symbol *symbol;
	struct sample at;
	u64 ticks;
};

/**
 * struct profile - What is made of a capture
 * @samples: One for each counter that is not 0.
 * @rows: The lines of the report.
 * @outside: Ticks of counters that stand for no place.
 * @nr_full: Counters that can count no further.
 */
struct profile {
	const struct options *options;
	const struct capture *capture;
	struct symbols *symbols;
	struct mapping *mappings;
	size_t nr_mappings;
	struct sample *samples;
	size_t nr_samples;
	size_t size_samples;
	struct row *rows;
	size_t nr_rows;
	u64 period;
	u64 ticks;
	u64 outside;
	u64 nr_full;
};

__attribute__((format(printf, 1, 2)))
static void complain(const char *format, ...)
{
	va_list args;

	fputs("profil gperf: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- options ---- */

static void usage(FILE *out)
{
	fputs("usage: profil gperf [OPTION...] PID\n"
	      "\n"
	      "Prints what a process has counted by osProfileStart(), profil() and the like, by\n"
	      "function, while it goes on.\n"
	      "\n"
	      "  -w, --wait          wait for osProfileFlush(), each time, until the process ends\n"
	      "  -n, --lines N       the first N lines\n"
	      "      --no-demangle   names of functions as the linker has them\n"
	      "  -h, --help\n", out);
}

static bool parse_number(const char *text, u64 max, u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return isdigit((unsigned char)*text) && !*end && !errno && *number && *number <= max;
}

/* -1 to go on; else the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{ "wait", no_argument, NULL, 'w' },
		{ "lines", required_argument, NULL, 'n' },
		{ "no-demangle", no_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	char name[] = "profil gperf";
	int option;
	u64 number;

	/* getopt_long() complains in this name. */
	argv[0] = name;
	optind = 0;
	while ((option = getopt_long(argc, argv, "wn:h", table, NULL)) >= 0) {
		switch (option) {
		case 'w':
			options->wait = true;
			break;
		case 'n':
			if (!parse_number(optarg, UINT64_MAX, &options->lines)) {
				complain("-n wants a number of lines, not \"%s\"", optarg);
				return COMMAND_USAGE;
			}
			break;
		case 'm':
			options->demangle = false;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return COMMAND_USAGE;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return COMMAND_USAGE;
	}
	if (!parse_number(argv[optind], INT_MAX, &number)) {
		complain("\"%s\": not the id of a process", argv[optind]);
		return COMMAND_USAGE;
	}
	options->pid = number;
	return -1;
}

/* ---- captures ---- */

static void capture_free(struct capture *capture)
{
	free(capture->ranges);
	free(capture->data);
	free(capture->maps);
	memset(capture, 0, sizeof(*capture));
}

/* All of a file, terminated; NULL with errno set. */
static char *read_all(int fd)
{
	size_t size = 1 << 16, done = 0;
	char *text = malloc(size), *more;
	ssize_t len;

	while (text && (len = read(fd, text + done, size - done - 1)) > 0) {
		done += len;
		if (done + 1 < size)
			continue;
		size *= 2;
		more = realloc(text, size);
		if (!more)
			free(text);
		text = more;
	}
	if (text && len < 0) {
		free(text);
		return NULL;
	}
	if (text)
		text[done] = '\0';
	return text;
}

static char *read_maps(pid_t pid)
{
	char path[64], *text;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = read_all(fd);
	close(fd);
	return text;
}

static u64 range_bytes(const struct profil_range *range)
{
	return (range->nr_counters * range->width + 7) & ~7ULL;
}

/* 0 or a negative error. Until there is room for all ranges. */
static int describe(int device, pid_t pid, struct capture *capture, struct profil_stats *stats)
{
	struct profil_describe arg = {
		.size = sizeof(arg),
		.pid = pid,
		.stats = (uintptr_t)stats,
	};
	u64 room = 0;

	do {
		if (arg.nr_ranges > room || !capture->ranges) {
			room = arg.nr_ranges;
			free(capture->ranges);
			capture->ranges = calloc(room + 1, sizeof(*capture->ranges));
			if (!capture->ranges)
				return -ENOMEM;
		}
		*stats = (struct profil_stats){ .size = sizeof(*stats) };
		arg.nr_ranges = room;
		arg.ranges = (uintptr_t)capture->ranges;
		if (ioctl(device, PROFIL_IOC_DESCRIBE, &arg))
			return -errno;
	} while (arg.nr_ranges > room);
	capture->nr_ranges = arg.nr_ranges;
	capture->period = arg.period;
	capture->nr_pcs = arg.taken + stats->hit;
	return 0;
}

/* 0 or a negative error: -EFAULT if not all of it is there. */
static int read_memory(pid_t pid, struct iovec *local, struct iovec *remote, size_t nr)
{
	ssize_t len;
	size_t part;

	while (nr) {
		len = process_vm_readv(pid, local, nr, remote, nr, 0);
		if (len < 0)
			return -errno;
		if (!len)
			return -EFAULT;
		for (; len; len -= part) {
			part = (size_t)len < local->iov_len ? (size_t)len : local->iov_len;
			local->iov_base = (char *)local->iov_base + part;
			remote->iov_base = (char *)remote->iov_base + part;
			local->iov_len -= part;
			remote->iov_len -= part;
			if (!local->iov_len) {
				local++;
				remote++;
				nr--;
			}
		}
	}
	return 0;
}

/* 0 or a negative error. */
static int read_counters(pid_t pid, struct capture *capture)
{
	struct iovec local[IOVS_MAX], remote[IOVS_MAX];
	size_t nr = 0;
	char *data;
	int err = 0;

	capture->nr_bytes = 0;
	for (u64 i = 0; i < capture->nr_ranges; i++)
		capture->nr_bytes += range_bytes(&capture->ranges[i]);
	if (capture->nr_bytes > BYTES_MAX)
		return -ENOMEM;
	data = calloc(capture->nr_bytes + 1, 1);
	capture->data = data;
	if (!data)
		return -ENOMEM;
	for (u64 i = 0; i < capture->nr_ranges && !err; i++) {
		const struct profil_range *range = &capture->ranges[i];

		if (!range->nr_counters)
			continue;
		local[nr].iov_base = data;
		local[nr].iov_len = range->nr_counters * range->width;
		remote[nr].iov_base = (void *)(uintptr_t)range->buffer;
		remote[nr].iov_len = local[nr].iov_len;
		data += range_bytes(range);
		if (++nr == IOVS_MAX) {
			err = read_memory(pid, local, remote, nr);
			nr = 0;
		}
	}
	return err ? err : read_memory(pid, local, remote, nr);
}

static bool is_same_session(const struct capture *a, const struct capture *b)
{
	return a->nr_ranges == b->nr_ranges && a->period == b->period && a->nr_pcs <= b->nr_pcs &&
	       !memcmp(a->ranges, b->ranges, a->nr_ranges * sizeof(*a->ranges));
}

/*
 * 0 or a negative error; -EAGAIN if it has begun another profile meanwhile, or become another
 * program: then what was read may be anything. The statistics come first: the entries that they
 * count have been written when the memory is read.
 */
static int try_capture(int device, pid_t pid, struct capture *capture)
{
	struct capture after = {};
	struct profil_stats stats;
	int err, err_after;

	err = describe(device, pid, capture, &stats);
	if (err)
		return err;
	err = read_counters(pid, capture);
	if (!err) {
		capture->maps = read_maps(pid);
		if (!capture->maps)
			err = -errno;
	}
	err_after = describe(device, pid, &after, &stats);
	if (!err_after && !is_same_session(capture, &after))
		err_after = -EAGAIN;
	capture_free(&after);
	return err_after ? err_after : err;
}

static void complain_of_capture(pid_t pid, int err)
{
	switch (err) {
	case -ESRCH:
		complain("there is no process %d", pid);
		break;
	case -EINVAL:
	case -ENODEV:
		complain("process %d has no profile", pid);
		break;
	case -EPERM:
	case -EACCES:
		complain("process %d: %s (ptrace rights are needed: see kernel.yama.ptrace_scope)",
			 pid, strerror(-err));
		break;
	case -EFAULT:
		complain("process %d: cannot read its counters: %s (it may have unmapped them)",
			 pid, strerror(-err));
		break;
	case -EAGAIN:
		complain("process %d begins another profile all the time", pid);
		break;
	case -ENOTTY:
		complain("the profil module is too old for this command");
		break;
	default:
		complain("process %d: %s", pid, strerror(-err));
	}
}

static bool has_ended(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

static int capture_process(const struct options *options, int pidfd, struct capture *capture)
{
	unsigned int tries = TRIES;
	int err, device;

	device = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	if (device < 0) {
		complain(PROFIL_DEVICE ": %s%s", strerror(errno),
			 errno == ENOENT ? ": the profil module must be loaded" : "");
		return -1;
	}
	do {
		capture_free(capture);
		err = try_capture(device, options->pid, capture);
	} while (err == -EAGAIN && --tries);
	close(device);
	if (has_ended(pidfd))
		err = -ESRCH;
	if (err)
		complain_of_capture(options->pid, err);
	return err ? -1 : 0;
}

static bool read_part(int fd, void *to, u64 bytes, off_t *at)
{
	ssize_t len;

	for (u64 done = 0; done < bytes; done += len, *at += len) {
		len = pread(fd, (char *)to + done, bytes - done, *at);
		if (len <= 0)
			return false;
	}
	return true;
}

/* What a process has handed over, which may be anything. */
static bool capture_read(int fd, struct capture *capture)
{
	struct handover head;
	struct stat st;
	off_t at = 0;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !read_part(fd, &head, sizeof(head), &at) ||
	    head.magic != HANDOVER_MAGIC || head.nr_ranges > RANGES_MAX ||
	    head.nr_bytes > BYTES_MAX || head.nr_bytes > (u64)st.st_size)
		return false;
	capture->nr_ranges = head.nr_ranges;
	capture->nr_bytes = head.nr_bytes;
	capture->period = head.period;
	capture->nr_pcs = head.nr_pcs;
	capture->ranges = calloc(head.nr_ranges + 1, sizeof(*capture->ranges));
	capture->data = malloc(head.nr_bytes + 1);
	if (!capture->ranges || !capture->data ||
	    !read_part(fd, capture->ranges, head.nr_ranges * sizeof(*capture->ranges), &at) ||
	    !read_part(fd, capture->data, head.nr_bytes, &at) || lseek(fd, at, SEEK_SET) < 0)
		return false;
	capture->maps = read_all(fd);
	return capture->maps;
}

/* ---- from counters to places ---- */

/* Are the counters as many as the data, and all that is divided by not 0? */
static bool is_sound(const struct capture *capture)
{
	u64 bytes = 0;

	for (u64 i = 0; i < capture->nr_ranges; i++) {
		const struct profil_range *range = &capture->ranges[i];

		if ((range->width != 2 && range->width != 4 && range->width != 8) ||
		    !range->granule || !range->step || range->offset > range->start ||
		    range->start >= range->end || range->nr_counters > BYTES_MAX)
			return false;
		bytes += range_bytes(range);
		if (bytes > capture->nr_bytes)
			return false;
	}
	return bytes == capture->nr_bytes;
}

static u64 counter_of(const struct profil_range *range, const void *data, u64 i)
{
	u64 counter = 0;

	memcpy(&counter, (const char *)data + i * range->width, range->width);
	return counter;
}

static u64 counter_max(const struct profil_range *range)
{
	return UINT64_MAX >> (64 - 8 * range->width);
}

/* The rule of struct profil_range. */
static u64 index_of(const struct profil_range *range, u64 pc)
{
	unsigned __int128 i = (pc - range->offset) / range->granule;

	i = i * range->scale >> 16;
	if (range->flags & PROFIL_RANGE_ROUND_UP)
		i += range->step - 1;
	i /= range->step;
	return i > UINT64_MAX ? UINT64_MAX : (u64)i;
}

/* The lowest pc that counts in @i or above; indices do not fall. */
static u64 pc_of(const struct profil_range *range, u64 i)
{
	u64 low = range->start, high = range->end - 1;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (index_of(range, middle) < i)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct mapping *mapping_at(const struct profile *profile, u64 pc)
{
	size_t low = 0, high = profile->nr_mappings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (profile->mappings[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < profile->nr_mappings && profile->mappings[low].start <= pc)
		return &profile->mappings[low];
	return NULL;
}

static bool add_sample(struct profile *profile, u64 pc, u64 ticks, bool elsewhere)
{
	if (profile->nr_samples == profile->size_samples) {
		size_t size = profile->size_samples ? 2 * profile->size_samples : 1024;
		struct sample *more = reallocarray(profile->samples, size, sizeof(*more));

		if (!more)
			return false;
		profile->samples = more;
		profile->size_samples = size;
	}
	profile->samples[profile->nr_samples++] = (struct sample){
		.mapping = elsewhere ? NULL : mapping_at(profile, pc),
		.pc = elsewhere ? 0 : pc,
		.ticks = ticks,
		.elsewhere = elsewhere,
	};
	profile->ticks += ticks;
	if (elsewhere)
		profile->outside += ticks;
	return true;
}

/* A range, and its counters. */
struct part {
	const struct profil_range *range;
	const void *data;
};

/* Parts of one region come together, in the order of their text. */
static int compare_parts(const void *a, const void *b)
{
	const struct profil_range *x = ((const struct part *)a)->range;
	const struct profil_range *y = ((const struct part *)b)->range;

	if (x->buffer != y->buffer)
		return x->buffer < y->buffer ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool is_same_region(const struct profil_range *a, const struct profil_range *b)
{
	return a->buffer == b->buffer && a->offset == b->offset && a->scale == b->scale &&
	       a->granule == b->granule && a->step == b->step && a->width == b->width &&
	       a->flags == b->flags;
}

static bool add_pcs(struct profile *profile, const struct part *part)
{
	u64 nr = profile->capture->nr_pcs;

	for (u64 i = 0; i < nr && i < part->range->nr_counters; i++)
		if (!add_sample(profile, counter_of(part->range, part->data, i), 1, false))
			return false;
	return true;
}

/* @from: The first counter that no earlier part of the region counts in. */
static bool add_counters(struct profile *profile, const struct part *part, u64 from)
{
	const struct profil_range *range = part->range;
	u64 first = index_of(range, range->start), last = index_of(range, range->end - 1);

	if (first < from)
		first = from;
	for (u64 i = first; i <= last && i < range->nr_counters; i++) {
		u64 ticks = counter_of(range, part->data, i), pc;

		if (!ticks)
			continue;
		pc = pc_of(range, i);
		/* With a large scale there are counters that no pc counts in. */
		if (index_of(range, pc) != i)
			continue;
		profile->nr_full += ticks == counter_max(range);
		if (!add_sample(profile, pc, ticks, !range->scale))
			return false;
	}
	return true;
}

static bool add_part(struct profile *profile, const struct part *part, const struct part *before)
{
	const struct profil_range *range = part->range;
	u64 from = 0;

	if (range->start >= HANDOVER_PERIOD) {
		if (range->nr_counters)
			profile->period = counter_of(range, part->data, 0);
		return true;
	}
	if (range->flags & PROFIL_RANGE_PCS)
		return add_pcs(profile, part);
	if (before && is_same_region(before->range, range))
		from = index_of(range, before->range->end - 1) + 1;
	return add_counters(profile, part, from);
}

static bool make_samples(struct profile *profile)
{
	const struct capture *capture = profile->capture;
	struct part *parts = calloc(capture->nr_ranges + 1, sizeof(*parts));
	const char *data = capture->data;
	bool done = parts;

	for (u64 i = 0; i < capture->nr_ranges && done; i++) {
		parts[i] = (struct part){ .range = &capture->ranges[i], .data = data };
		data += range_bytes(parts[i].range);
	}
	if (done)
		qsort(parts, capture->nr_ranges, sizeof(*parts), compare_parts);
	for (u64 i = 0; i < capture->nr_ranges && done; i++)
		done = add_part(profile, &parts[i], i ? &parts[i - 1] : NULL);
	free(parts);
	return done;
}

/* One line of maps, which is cut off where the path ends. */
static bool parse_mapping(char *line, struct mapping *mapping)
{
	unsigned long long start, end, offset, ino;
	unsigned int major, minor;
	int path;

	if (sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &start, &end, &offset, &major,
		   &minor, &ino, &path) < 6)
		return false;
	*mapping = (struct mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.file = {
			.ino = ino,
			.major = major,
			.minor = minor,
			.flags = line[path] == '/' ? 0 : FORMAT_FILE_NONE,
			.path = line[path] ? line + path : "[anon]",
		},
	};
	mapping->label = basename(mapping->file.path);
	return true;
}

static bool make_mappings(struct profile *profile)
{
	char *line = profile->capture->maps, *next;
	size_t nr = 1;

	for (const char *at = line; (at = strchr(at, '\n')); at++)
		nr++;
	profile->mappings = calloc(nr, sizeof(*profile->mappings));
	for (; profile->mappings && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		if (parse_mapping(line, &profile->mappings[profile->nr_mappings]))
			profile->nr_mappings++;
	}
	return profile->mappings;
}

/* ---- from places to functions ---- */

static const char *path_of(const struct sample *sample)
{
	return sample->mapping ? sample->mapping->file.path : "";
}

/* By file, since one is open at a time. */
static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = strcmp(path_of(x), path_of(y));

	if (order)
		return order;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks > y->ticks ? -1 : 1;
	return compare_samples(&x->at, &y->at);
}

/* In the file; of the vDSO, which is an image, from its beginning. */
static u64 offset_of(const struct sample *sample)
{
	return sample->pc - sample->mapping->start + sample->mapping->offset;
}

static void add_to_rows(struct profile *profile, const struct sample *sample,
			const struct symbol *symbol)
{
	struct row *last = profile->nr_rows ? &profile->rows[profile->nr_rows - 1] : NULL;

	if (last && symbol && last->symbol == symbol) {
		last->ticks += sample->ticks;
		return;
	}
	if (last && !symbol && !last->symbol && last->at.elsewhere && sample->elsewhere) {
		last->ticks += sample->ticks;
		return;
	}
	profile->rows[profile->nr_rows++] = (struct row){
		.symbol = symbol,
		.at = *sample,
		.ticks = sample->ticks,
	};
}

static bool make_rows(struct profile *profile)
{
	struct binary *binary = NULL;
	const char *path = "";

	profile->rows = calloc(profile->nr_samples + 1, sizeof(*profile->rows));
	profile->symbols = symbols_new(profile->options->demangle);
	if (!profile->rows || !profile->symbols)
		return false;
	if (profile->nr_samples)
		qsort(profile->samples, profile->nr_samples, sizeof(*profile->samples),
		      compare_samples);
	for (size_t i = 0; i < profile->nr_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const struct symbol *symbol = NULL;

		if (strcmp(path, path_of(sample))) {
			binary_close(binary);
			path = path_of(sample);
			binary = binary_open(profile->symbols, &sample->mapping->file, true);
			if (!binary)
				return false;
		}
		if (sample->mapping && binary_state(binary) == BINARY_FINE)
			symbol = binary_find(binary, offset_of(sample));
		add_to_rows(profile, sample, symbol);
	}
	binary_close(binary);
	qsort(profile->rows, profile->nr_rows, sizeof(*profile->rows), compare_rows);
	return true;
}

/* ---- what is printed ---- */

static double seconds_of(const struct profile *profile, u64 ticks)
{
	return (double)ticks * profile->period / NS_PER_S;
}

static void print_head(const struct profile *profile)
{
	printf("process %d: %" PRIu64 " ticks", profile->options->pid, profile->ticks);
	if (profile->period)
		printf(" of %.6g ms, %.3f s", profile->period / NS_PER_MS,
		       seconds_of(profile, profile->ticks));
	if (profile->outside)
		printf("; %" PRIu64 " elsewhere", profile->outside);
	putchar('\n');
	if (profile->nr_full)
		printf("note: %" PRIu64 " counters are full; there may have been more ticks\n",
		       profile->nr_full);
}

static void print_row(const struct profile *profile, const struct row *row)
{
	const struct mapping *mapping = row->at.mapping;
	double share = (double)row->ticks / profile->ticks;

	printf("%7.2f%% %5.2f%% %9" PRIu64 " ", 100 * share,
	       100 * sqrt(share * (1 - share) / profile->ticks), row->ticks);
	if (profile->period)
		printf("%9.3f  ", seconds_of(profile, row->ticks));
	else
		printf("%9s  ", "-");
	if (row->at.elsewhere) {
		printf(ELSEWHERE);
	} else if (!mapping) {
		printf(UNKNOWN "+0x%" PRIx64, row->at.pc);
	} else if (row->symbol && row->symbol->name) {
		escape_print(stdout, row->symbol->name);
		printf("  ");
		escape_print(stdout, mapping->label);
	} else {
		escape_print(stdout, mapping->label);
		printf("+0x%" PRIx64, row->symbol ? row->symbol->start : offset_of(&row->at));
	}
	putchar('\n');
}

static void print(const struct profile *profile)
{
	u64 nr = profile->nr_rows;

	print_head(profile);
	if (!profile->ticks)
		return;
	printf("\n%8s %6s %9s %9s  %s\n", "share", "+-", "ticks", "seconds", "function");
	if (profile->options->lines && profile->options->lines < nr)
		nr = profile->options->lines;
	for (u64 i = 0; i < nr; i++)
		print_row(profile, &profile->rows[i]);
	if (nr < profile->nr_rows)
		printf("%9s in %" PRIu64 " more\n", "", profile->nr_rows - nr);
	putchar('\n');
}

static u64 tick_ns(void)
{
	struct profil_query query = { .size = sizeof(query) };

	return profil_query_kernel(&query) ? 0 : query.tick_ns;
}

static int report(const struct options *options, const struct capture *capture)
{
	struct profile profile = {
		.options = options,
		.capture = capture,
		.period = capture->period ? capture->period : tick_ns(),
	};
	bool done;

	if (!is_sound(capture)) {
		complain("process %d: its profile contradicts itself", options->pid);
		return -1;
	}
	done = make_mappings(&profile) && make_samples(&profile) && make_rows(&profile);
	if (done)
		print(&profile);
	else
		complain("%s", strerror(ENOMEM));
	symbols_free(profile.symbols);
	free(profile.mappings);
	free(profile.samples);
	free(profile.rows);
	return done && !fflush(stdout) ? 0 : -1;
}

static int report_once(const struct options *options, int pidfd)
{
	struct capture capture = {};
	int err;

	err = capture_process(options, pidfd, &capture);
	if (!err)
		err = report(options, &capture);
	capture_free(&capture);
	return err;
}

/* ---- waiting for osProfileFlush() ---- */

/* Another process, or user, may pretend to be that process. */
static bool is_from(int connection, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == pid;
}

/* The descriptor of the one message there is, or -1. */
static int receive_file(int connection)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int file;

	if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) <= 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&file, CMSG_DATA(header), sizeof(file));
	return file;
}

/* False if it cannot be told. */
static bool take_flush(const struct options *options, int connection)
{
	struct capture capture = {};
	bool done = true;
	int file = -1;

	if (is_from(connection, options->pid))
		file = receive_file(connection);
	if (file < 0)
		return true;		/* it had nothing */
	if (!capture_read(file, &capture)) {
		complain("process %d has handed over what is no profile", options->pid);
		done = false;
	} else if (report(options, &capture)) {
		done = false;
	}
	capture_free(&capture);
	close(file);
	return done;
}

static int listen_for(pid_t pid)
{
	struct sockaddr_un address;
	socklen_t length = handover_address(&address, pid);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address, length) &&
	    !listen(fd, SOMAXCONN))
		return fd;
	if (errno == EADDRINUSE)
		complain("somebody waits for process %d already", pid);
	else
		complain("cannot wait: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* What was flushed before the process ended is here when its end is seen. */
static int report_flushes(const struct options *options, int pidfd)
{
	int host = listen_for(options->pid), connection;
	struct pollfd fds[] = {
		{ .fd = host, .events = POLLIN },
		{ .fd = pidfd, .events = POLLIN },
	};
	bool done = true;

	if (host < 0)
		return -1;
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		while ((connection = accept4(host, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
			done &= take_flush(options, connection);
			close(connection);
		}
		if (fds[1].revents)
			break;
	}
	close(host);
	return done ? 0 : -1;
}

int command_gperf(int argc, char **argv)
{
	struct options options = { .demangle = true };
	int status, pidfd;

	status = parse(argc, argv, &options);
	if (status >= 0)
		return status;
	pidfd = syscall(SYS_pidfd_open, options.pid, 0);
	if (pidfd < 0) {
		complain_of_capture(options.pid, errno == EINVAL ? -ESRCH : -errno);
		return COMMAND_FAILED;
	}
	status = options.wait ? report_flushes(&options, pidfd) : report_once(&options, pidfd);
	close(pidfd);
	return status ? COMMAND_FAILED : 0;
}
