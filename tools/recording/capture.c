// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See capture.h. There are two sources. For a running process, the module describes the ranges of
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

#include <libiberty/libiberty.h>

#include "recording/capture.h"

/* A file with more ranges than this is rejected. */
#define RANGES_MAX	(1ULL << 20)
#define BYTES_MAX	(1ULL << 30)
/* The number of attempts to copy a profile: one fails if the process replaces the profile. */
#define TRIES		100

/* The ids of the only thread, and of the "file" for counters that have no single address. */
#define THREAD_ID	1
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

struct mapping {
	u64 start;
	u64 end;
	u64 offset;		/* in the file; or the address of memory that is not a file */
	u32 id;
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
		text = ferror(file) ? NULL : xstrdup("");
	}
	fclose(file);
	return text;
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
			capture->ranges = xcalloc(room + 1, sizeof(*capture->ranges));
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

static int read_counters(pid_t pid, struct capture *capture)
{
	struct iovec local, remote;
	ssize_t len;
	char *data;

	capture->nr_bytes = 0;
	for (u64 i = 0; i < capture->nr_ranges; i++)
		capture->nr_bytes += range_bytes(&capture->ranges[i]);
	if (capture->nr_bytes > BYTES_MAX)
		return -ENOMEM;
	data = xcalloc(capture->nr_bytes + 1, 1);
	capture->data = data;
	for (u64 i = 0; i < capture->nr_ranges; i++) {
		const struct profil_range *range = &capture->ranges[i];

		local.iov_base = data;
		local.iov_len = range->nr_counters * range->width;
		remote.iov_base = (void *)(uintptr_t)range->buffer;
		remote.iov_len = local.iov_len;
		len = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (len != (ssize_t)local.iov_len)
			return len < 0 ? -errno : -EFAULT;
		data += range_bytes(range);
	}
	return 0;
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
		capture->maps = read_text(proc_open(pid, "maps"));
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

static int capture_handed_over(int fd, struct capture *capture)
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
	capture->ranges = xcalloc(head.nr_ranges + 1, sizeof(*capture->ranges));
	capture->data = xmalloc(head.nr_bytes + 1);
	if (!read_part(fd, capture->ranges, head.nr_ranges * sizeof(*capture->ranges), &at) ||
	    !read_part(fd, capture->data, head.nr_bytes, &at) || lseek(fd, at, SEEK_SET) < 0)
		return -EBADMSG;
	capture->maps = read_text(fdopen(dup(fd), "r"));
	return capture->maps ? 0 : -errno;
}

/* Returns true if the data has the size of the counters of all ranges, and no divisor is 0. */
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

static void add_sample(const struct builder *builder, u64 pc, u64 ticks)
{
	struct recording_sample sample = {
		.thread_id = THREAD_ID,
		.offset = pc,
		.user = ticks,
		.nr = ticks,
		.squares = ticks,
		.cpu = -1,
	};

	for (size_t i = 0; i < builder->nr_mappings && !sample.mapping_id; i++) {
		const struct mapping *mapping = &builder->mappings[i];

		if (pc < mapping->start || pc >= mapping->end)
			continue;
		sample.mapping_id = mapping->id;
		sample.offset = pc - mapping->start + mapping->offset;
	}
	recording_add_sample(builder->recording, &sample);
}

static void add_elsewhere(const struct builder *builder, u64 ticks)
{
	const struct recording_sample sample = {
		.mapping_id = ELSEWHERE_ID,
		.user = ticks,
		.nr = ticks,
		.squares = ticks,
		.cpu = -1,
	};

	builder->recording->elsewhere = ticks_add(builder->recording->elsewhere, ticks);
	recording_add_sample(builder->recording, &sample);
}

/* A range with its counters. */
struct part {
	const struct profil_range *range;
	const void *data;
};

/*
 * Sorts ranges by region, and by address within a region. A region of a historical call becomes
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

static void add_pcs(const struct builder *builder, const struct part *part)
{
	u64 nr = builder->capture->nr_pcs;

	for (u64 i = 0; i < nr && i < part->range->nr_counters; i++)
		add_sample(builder, counter_of(part->range, part->data, i), 1);
}

/*
 * Adds a sample for each counter of the range that is not 0. @from: the first counter in which no
 * earlier range of the region counts.
 */
static void add_counters(const struct builder *builder, const struct part *part, u64 from)
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
		if (range->scale)
			add_sample(builder, pc, ticks);
		else
			add_elsewhere(builder, ticks);
	}
}

static void add_part(const struct builder *builder, const struct part *part,
		     const struct part *before)
{
	const struct profil_range *range = part->range;
	u64 from = 0;

	if (range->start >= HANDOVER_PERIOD)
		return;
	if (range->flags & PROFIL_RANGE_PCS) {
		add_pcs(builder, part);
		return;
	}
	if (before && is_same_region(before->range, range))
		from = index_of(range, before->range->end - 1) + 1;
	add_counters(builder, part, from);
}

static void add_samples(const struct builder *builder)
{
	const struct capture *capture = builder->capture;
	struct part *parts = xcalloc(capture->nr_ranges + 1, sizeof(*parts));
	const char *data = capture->data;

	for (u64 i = 0; i < capture->nr_ranges; i++) {
		parts[i] = (struct part){ .range = &capture->ranges[i], .data = data };
		data += range_bytes(parts[i].range);
	}
	qsort(parts, capture->nr_ranges, sizeof(*parts), compare_parts);
	for (u64 i = 0; i < capture->nr_ranges; i++)
		add_part(builder, &parts[i], i ? &parts[i - 1] : NULL);
	free(parts);
}

/* ---- mappings, and the other parts of a recording ---- */

/* Adds a mapping with its file. Both have the id of the file. */
static void add_file(const struct builder *builder, const struct format_file *file, u64 start,
		     u64 offset)
{
	recording_add(builder->recording, &(struct format_block){
		.type = FORMAT_FILE,
		.file = *file,
	});
	recording_add(builder->recording, &(struct format_block){
		.type = FORMAT_MAPPING,
		.mapping = {
			.id = file->id,
			.file = file->id,
			.bias = file->flags & FORMAT_FILE_NONE ? 0 : start - offset,
			.start = start,
		},
	});
}

/* Parses a line of /proc/PID/maps and adds its mapping. */
static void add_mapping(struct builder *builder, const char *line)
{
	struct mapping *mapping = &builder->mappings[builder->nr_mappings];
	unsigned long long start, end, offset;
	struct format_file file = { .id = ELSEWHERE_ID + 1 + builder->nr_mappings };
	int path = 0;

	if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &start, &end, &offset, &path) < 3)
		return;
	file.path = line[path] ? line + path : "[anon]";
	file.flags = line[path] == '/' ? 0 : FORMAT_FILE_NONE;
	*mapping = (struct mapping){
		.start = start,
		.end = end,
		.offset = line[path] == '/' ? offset : start,
		.id = file.id,
	};
	builder->nr_mappings++;
	add_file(builder, &file, start, offset);
}

static void add_mappings(struct builder *builder)
{
	const struct format_file elsewhere = {
		.id = ELSEWHERE_ID,
		.flags = FORMAT_FILE_NONE,
		.path = CAPTURE_ELSEWHERE,
	};
	char *maps = builder->capture->maps, *line;
	size_t nr = 1;

	for (const char *at = maps; (at = strchr(at, '\n')); at++)
		nr++;
	builder->mappings = xcalloc(nr, sizeof(*builder->mappings));
	add_file(builder, &elsewhere, 0, 0);
	while ((line = strsep(&maps, "\n")))
		add_mapping(builder, line);
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

static void add_target(const struct builder *builder, pid_t pid)
{
	struct utsname uts = {};

	uname(&uts);
	recording_add(builder->recording, &(struct format_block){
		.type = FORMAT_META,
		.meta = {
			.tick_ns = period_of(builder->capture),
			.flags = FORMAT_ATTACHED,
			.pid = pid,
			.hostname = uts.nodename,
			.release = uts.release,
			.command = "",
		},
	});
	recording_add(builder->recording, &(struct format_block){
		.type = FORMAT_THREAD,
		.thread = { .id = THREAD_ID, .pid = pid, .tid = pid },
	});
}

static int make_recording(pid_t pid, const struct capture *capture, struct recording **recording)
{
	struct builder builder = { .capture = capture };

	if (!check_ranges(capture))
		return -EBADMSG;
	builder.recording = recording_new();
	*recording = builder.recording;
	builder.recording->is_capture = true;
	add_target(&builder, pid);
	add_mappings(&builder);
	add_samples(&builder);
	recording_finish(builder.recording);
	free(builder.mappings);
	return 0;
}

int capture_read(pid_t pid, int fd, bool handed_over, struct recording **recording)
{
	struct capture capture = {};
	unsigned int tries = TRIES;
	int err;

	do {
		capture_free(&capture);
		err = handed_over ? capture_handed_over(fd, &capture) :
		      try_capture(fd, pid, &capture);
	} while (err == -EAGAIN && --tries);
	if (!err)
		err = make_recording(pid, &capture, recording);
	capture_free(&capture);
	return err;
}
