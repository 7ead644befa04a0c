// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See classic.h. There are two sources. For a running process, the module describes the ranges of
 * the session, and process_vm_readv() copies the counters. Or the process hands over a copy of
 * both: see <handover.h>. Each counter that is not 0 becomes a sample at the lowest pc that counts
 * in it.
 *
 * A copy that a process has handed over is not trusted. check_ranges() checks it, and the functions
 * after it rely on this.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <handover.h>
#include <profil.h>

#include "recording/classic.h"

/* A file with more ranges than this is rejected. */
#define RANGES_MAX	(1ULL << 20)
#define BYTES_MAX	(1ULL << 34)
/* Number of buffers that one process_vm_readv() copies; the kernel allows 1024. */
#define IOVS_MAX	256
/* Number of attempts to copy a profile, each of which fails if the process replaces it. */
#define TRIES		100

/* The ids of the only process, and of the file that stands for no address. */
#define PROCESS_ID	1
#define ELSEWHERE_ID	1

/**
 * struct capture - A copy of the counters of a process
 * @ranges: As PROFIL_IOC_DESCRIBE returns them.
 * @data: The counters of all ranges. Those of each range begin at a multiple of 8 bytes.
 * @maps: The text of /proc/PID/maps.
 * @period: The period of the session in ns; 0: it counts the ticks of the scheduler.
 * @nr_pcs: The number of pcs in a range with PROFIL_RANGE_PCS.
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

/* @file: The id of the mapped file in the recording. */
struct mapping {
	u64 start;
	u64 end;
	u64 offset;
	u64 file;
	bool is_file;
	bool is_named;
};

/* The state while a capture is converted to a recording. */
struct builder {
	const struct capture *capture;
	struct recording *recording;
	struct mapping *mappings;
	size_t nr_mappings;
};

/* ---- capture ---- */

static void capture_free(struct capture *capture)
{
	free(capture->ranges);
	free(capture->data);
	free(capture->maps);
	memset(capture, 0, sizeof(*capture));
}

/* Closes @file. Returns the text after the current position, or NULL with errno set. */
static char *read_text(FILE *file)
{
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = ferror(file) ? NULL : strdup("");
	}
	fclose(file);
	return text;
}

static char *read_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return read_text(fopen(path, "re"));
}

static u64 range_bytes(const struct profil_range *range)
{
	return (range->nr_counters * range->width + 7) & ~7ULL;
}

/* Repeats PROFIL_IOC_DESCRIBE until there is room for all ranges. */
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

/* Returns -EFAULT if a part of the memory is not mapped. */
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
 * Returns -EAGAIN if the process has started another profile or executed another program meanwhile,
 * because the memory that was read may then contain something else. The statistics are read before
 * the memory, so the memory contains at least as many pcs as the statistics count.
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

static int capture_read(int fd, struct capture *capture)
{
	struct handover head;
	struct stat st;
	off_t at = 0;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !read_part(fd, &head, sizeof(head), &at) ||
	    head.magic != HANDOVER_MAGIC || head.nr_ranges > RANGES_MAX ||
	    head.nr_bytes > BYTES_MAX || head.nr_bytes > (u64)st.st_size)
		return -EBADMSG;
	capture->nr_ranges = head.nr_ranges;
	capture->nr_bytes = head.nr_bytes;
	capture->period = head.period;
	capture->nr_pcs = head.nr_pcs;
	capture->ranges = calloc(head.nr_ranges + 1, sizeof(*capture->ranges));
	capture->data = malloc(head.nr_bytes + 1);
	if (!capture->ranges || !capture->data)
		return -ENOMEM;
	if (!read_part(fd, capture->ranges, head.nr_ranges * sizeof(*capture->ranges), &at) ||
	    !read_part(fd, capture->data, head.nr_bytes, &at) || lseek(fd, at, SEEK_SET) < 0)
		return -EBADMSG;
	capture->maps = read_text(fdopen(dup(fd), "r"));
	return capture->maps ? 0 : -errno;
}

/* Is the data as long as the counters of all ranges together, and is no divisor 0? */
static bool check_ranges(const struct capture *capture)
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

/* ---- from counters to samples ---- */

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

/* The index of the counter for @pc, as the formula in <linux/profil.h> defines it. */
static u64 index_of(const struct profil_range *range, u64 pc)
{
	unsigned __int128 i = (pc - range->offset) / range->granule;

	i = i * range->scale >> 16;
	if (range->flags & PROFIL_RANGE_ROUND_UP)
		i += range->step - 1;
	i /= range->step;
	return i > UINT64_MAX ? UINT64_MAX : (u64)i;
}

/* The lowest pc whose index is at least @i. A higher pc never has a lower index. */
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

static const struct mapping *find_mapping(const struct builder *builder, u64 pc)
{
	size_t low = 0, high = builder->nr_mappings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->mappings[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < builder->nr_mappings && builder->mappings[low].start <= pc)
		return &builder->mappings[low];
	return NULL;
}

static bool add_sample(const struct builder *builder, u64 pc, u64 ticks)
{
	const struct mapping *mapping = find_mapping(builder, pc);
	struct format_sample sample = {
		.process = PROCESS_ID,
		.offset = pc,
		.user = ticks,
	};

	if (mapping) {
		sample.file = mapping->file;
		if (mapping->is_file) {
			sample.bias = mapping->start - mapping->offset;
			sample.offset = pc - sample.bias;
		} else if (mapping->is_named) {
			sample.bias = mapping->start;
		}
	}
	return recording_add_samples(builder->recording, &sample, 1);
}

static bool add_elsewhere(const struct builder *builder, u64 ticks)
{
	const struct format_sample sample = { .file = ELSEWHERE_ID, .user = ticks };

	builder->recording->elsewhere = ticks_add(builder->recording->elsewhere, ticks);
	return recording_add_samples(builder->recording, &sample, 1);
}

/* A range with its counters. */
struct part {
	const struct profil_range *range;
	const void *data;
};

/*
 * Sorts ranges by region, and those of one region by address. A region of a historical call becomes
 * several ranges if another region overlaps it.
 */
static int compare_parts(const void *a, const void *b)
{
	const struct profil_range *x = ((const struct part *)a)->range;
	const struct profil_range *y = ((const struct part *)b)->range;

	return compare_u64(x->buffer, y->buffer) ?: compare_u64(x->offset, y->offset) ?:
	       compare_u64(x->start, y->start);
}

static bool is_same_region(const struct profil_range *a, const struct profil_range *b)
{
	return a->buffer == b->buffer && a->offset == b->offset && a->scale == b->scale &&
	       a->granule == b->granule && a->step == b->step && a->width == b->width &&
	       a->flags == b->flags;
}

static bool add_pcs(const struct builder *builder, const struct part *part)
{
	u64 nr = builder->capture->nr_pcs;

	for (u64 i = 0; i < nr && i < part->range->nr_counters; i++)
		if (!add_sample(builder, counter_of(part->range, part->data, i), 1))
			return false;
	return true;
}

/*
 * Adds a sample for each counter of the range that is not 0. @from: the first counter in which no
 * earlier range of the region counts.
 */
static bool add_counters(const struct builder *builder, const struct part *part, u64 from)
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
		/* If the scale is large, there are counters to which no pc belongs. */
		if (index_of(range, pc) != i)
			continue;
		builder->recording->nr_full += ticks == counter_max(range);
		if (range->scale ? !add_sample(builder, pc, ticks) : !add_elsewhere(builder, ticks))
			return false;
	}
	return true;
}

static bool add_part(const struct builder *builder, const struct part *part,
		     const struct part *before)
{
	const struct profil_range *range = part->range;
	u64 from = 0;

	if (range->start >= HANDOVER_PERIOD)
		return true;
	if (range->flags & PROFIL_RANGE_PCS)
		return add_pcs(builder, part);
	if (before && is_same_region(before->range, range))
		from = index_of(range, before->range->end - 1) + 1;
	return add_counters(builder, part, from);
}

static bool add_samples(const struct builder *builder)
{
	const struct capture *capture = builder->capture;
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
		done = add_part(builder, &parts[i], i ? &parts[i - 1] : NULL);
	free(parts);
	return done;
}

/* ---- mappings, and the other parts of a recording ---- */

/* Parses a line of /proc/PID/maps and adds its mapping. Returns false if there is no memory. */
static bool add_mapping(struct builder *builder, const char *line)
{
	struct mapping *mapping = &builder->mappings[builder->nr_mappings];
	unsigned long long start, end, offset, ino;
	struct format_file file = { .id = ELSEWHERE_ID + 1 + builder->nr_mappings };
	int path = 0;

	if (sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &start, &end, &offset, &file.major,
		   &file.minor, &ino, &path) < 6)
		return true;
	file.ino = ino;
	file.path = line[path] ? line + path : "[anon]";
	file.flags = line[path] == '/' ? 0 : FORMAT_FILE_NONE;
	*mapping = (struct mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.file = file.id,
		.is_file = line[path] == '/',
		.is_named = line[path],
	};
	builder->nr_mappings++;
	return recording_add_file(builder->recording, &file);
}

static bool add_mappings(struct builder *builder)
{
	const struct format_file elsewhere = {
		.id = ELSEWHERE_ID,
		.flags = FORMAT_FILE_NONE,
		.path = CLASSIC_ELSEWHERE,
	};
	char *line = builder->capture->maps, *next;
	size_t nr = 1;

	for (const char *at = line; (at = strchr(at, '\n')); at++)
		nr++;
	builder->mappings = calloc(nr, sizeof(*builder->mappings));
	if (!builder->mappings || !recording_add_file(builder->recording, &elsewhere))
		return false;
	for (; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		if (!add_mapping(builder, line))
			return false;
	}
	return true;
}

static u64 period_of(const struct capture *capture)
{
	struct profil_query query = { .size = sizeof(query) };
	const char *data = capture->data;

	for (u64 i = 0; i < capture->nr_ranges; i++) {
		const struct profil_range *range = &capture->ranges[i];

		if (range->start >= HANDOVER_PERIOD && range->nr_counters)
			return counter_of(range, data, 0);
		data += range_bytes(range);
	}
	if (capture->period)
		return capture->period;
	return profil_query_kernel(&query) ? 0 : query.tick_ns;
}

static bool add_process(const struct builder *builder, pid_t pid)
{
	const struct format_process process = { .id = PROCESS_ID, .pid = pid };
	struct utsname uts = {};
	const struct format_meta meta = {
		.tick_ns = period_of(builder->capture),
		.flags = FORMAT_ATTACHED,
		.hostname = uts.nodename,
		.release = uts.release,
		.directory = "",
		.args = "",
	};

	uname(&uts);
	return recording_add_meta(builder->recording, &meta) &&
	       recording_add_process(builder->recording, &process);
}

static int make_recording(pid_t pid, const struct capture *capture, struct recording **recording)
{
	struct builder builder = { .capture = capture };
	bool done;

	if (!check_ranges(capture))
		return -EBADMSG;
	builder.recording = recording_new();
	if (!builder.recording)
		return -ENOMEM;
	builder.recording->is_classic = true;
	builder.recording->owner = geteuid();
	done = add_process(&builder, pid) && add_mappings(&builder) && add_samples(&builder) &&
	       recording_finish(builder.recording);
	free(builder.mappings);
	if (!done) {
		recording_free(builder.recording);
		return -ENOMEM;
	}
	*recording = builder.recording;
	return 0;
}

int classic_copy(pid_t pid, int device, struct recording **recording)
{
	struct capture capture = {};
	unsigned int tries = TRIES;
	int err;

	do {
		capture_free(&capture);
		err = try_capture(device, pid, &capture);
	} while (err == -EAGAIN && --tries);
	if (!err)
		err = make_recording(pid, &capture, recording);
	capture_free(&capture);
	return err;
}

int classic_read(pid_t pid, int fd, struct recording **recording)
{
	struct capture capture = {};
	int err;

	err = capture_read(fd, &capture);
	if (!err)
		err = make_recording(pid, &capture, recording);
	capture_free(&capture);
	return err;
}
