// SPDX-License-Identifier: GPL-2.0
/*
 * Profilers, each started and stopped by the program that it profiles. Their results are converted
 * to the same form: the number of samples, and how many of these are in each place.
 */
#include "truth.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* profil */

static u32 counters[1024] __attribute__((aligned(4096)));
static int session = -1, without_children = -1;

#define MAX_RECORDS	16384

static int session_open(u32 modes, u64 period, u32 on_fork, u32 nr_records,
			const struct profil_range *range)
{
	int fd = descriptor_open_as((struct profil_open){
		.flags = period ? PROFIL_OPEN_JITTER : 0,
		.modes = modes,
		.fork = on_fork,
		.nr_records = nr_records,
		.period = period,
	});

	if (descriptor_begin(fd, PROFIL_SCOPE_PROCESS, range, !!range))
		die("session");
	return fd;
}

static void session_begin(struct profile *p)
{
	const u32 modes = p->want & WANT_USER ? PROFIL_MODE_USER : MODES_ALL;
	const u64 period = p->profiler == CLOCK ? p->clock_period : 0;
	struct profil_range range = range_of(addr(places), addr(places) + NR_PLACES * PLACE_SIZE,
					     counters, NR_PLACES, 4);

	range.granule = PLACE_SIZE;
	memset(counters, 0, sizeof(counters));
	p->period = period ?: p->tick_ns;
	if (p->want & WANT_CHILDREN) {
		without_children = session_open(modes, period, PROFIL_FORK_OFF, 0, NULL);
		session = session_open(modes, period, PROFIL_FORK_SHARE, 0, &range);
	} else if (p->want & WANT_RECORDS) {
		session = session_open(modes, period, PROFIL_FORK_OFF, MAX_RECORDS, NULL);
	} else {
		struct profil_start start = {
			.size = sizeof(start),
			.flags = period ? PROFIL_START_JITTER : 0,
			.modes = modes,
			.nr_ranges = 1,
			.ranges = addr(&range),
			.period = period,
		};

		if (device_ioctl(PROFIL_IOC_START, &start))
			die("PROFIL_IOC_START");
	}
}

/* Each record stands for a number of periods. */
static void read_records(struct profile *p)
{
	static char buffer[65536] __attribute__((aligned(8)));
	ssize_t len;

	fcntl(session, F_SETFL, O_NONBLOCK);
	while ((len = read(session, buffer, sizeof(buffer))) > 0) {
		const struct profil_record *r;

		for (char *at = buffer; at < buffer + len; at += r->size) {
			r = (const void *)at;
			p->periods += r->periods;
			if (place_of(r->pc) < NR_PLACES)
				p->places[place_of(r->pc)] += r->periods;
		}
	}
	if (len < 0 && errno != EAGAIN)
		die("records");
}

static void session_end(struct profile *p)
{
	if (session < 0 ? session_stop(PROFIL_SCOPE_PROCESS, &p->stats) :
			  descriptor_disable(session, &p->stats))
		die("end of session");
	for (unsigned int i = 0; i < NR_PLACES; i++)
		p->places[i] = counters[i];
	/* The missed samples are known from a clock, not from the CPU time. */
	p->samples = p->stats.ticks + p->stats.missed;
	p->own = p->stats.ticks + p->stats.unselected;
	if (p->want & WANT_RECORDS)
		read_records(p);
	if (without_children >= 0) {
		struct profil_stats parents;

		if (descriptor_disable(without_children, &parents))
			die("end of session");
		if (!accounted(&parents))
			die("ticks that are not accounted for");
		p->own = parents.ticks;
		p->children = p->samples - parents.ticks - parents.missed;
		close(without_children);
		without_children = -1;
	}
	if (session >= 0)
		close(session);
	session = -1;
}

/* The C library's profil(): libprofil is not linked. */

static unsigned short shorts[NR_PLACES * PLACE_SIZE / 2];

static void glibc_begin(struct profile *p)
{
	/*
	 * It does not return the number of samples. With scale 0, all are counted in the first
	 * counter.
	 */
	const unsigned int scale = p->want & WANT_ALL ? 0 : 65536;

	memset(shorts, 0, sizeof(shorts));
	p->period = 10 * MS;
	if (profil(shorts, sizeof(shorts), scale ? addr(places) : 0, scale))
		die("profil");
}

static void glibc_end(struct profile *p)
{
	unsigned short *volatile none = NULL;	/* <unistd.h> declares the parameter nonnull */

	profil(none, 0, 0, 0);
	for (unsigned int i = 0; i < sizeof(shorts) / sizeof(*shorts); i++) {
		p->samples += shorts[i];
		p->places[i / (PLACE_SIZE / 2)] += shorts[i];
	}
}

/* gperftools */

static char gperf_file[64];
static void *gperf;

static void gperf_begin(struct profile *p)
{
	int (*start)(const char *name);

	p->period = 4 * MS;
	setenv("CPUPROFILE_FREQUENCY", "250", 1);
	gperf = dlopen("libprofiler.so.0", RTLD_NOW);
	start = gperf ? dlsym(gperf, "ProfilerStart") : NULL;
	if (!start)
		die("libprofiler.so.0");
	snprintf(gperf_file, sizeof(gperf_file), "/tmp/truth.%d", getpid());
	start(gperf_file);
}

/*
 * The file consists of words: the header, which has two words and its length, the period and
 * others; then a count, a depth and the pcs for each entry.
 */
static void gperf_end(struct profile *p)
{
	u64 word[3];
	FILE *f;

	((void (*)(void))dlsym(gperf, "ProfilerStop"))();
	f = fopen(gperf_file, "re");
	if (!f)
		return;		/* gperftools did not start */
	if (fread(word, 8, 2, f) == 2)
		fseek(f, word[1] * 8, SEEK_CUR);
	while (fread(word, 8, 3, f) == 3 && word[0]) {
		unsigned int i = place_of(word[2]);

		p->samples += word[0];
		if (i < NR_PLACES)
			p->places[i] += word[0];
		fseek(f, (word[1] - 1) * 8, SEEK_CUR);
	}
	fclose(f);
	unlink(gperf_file);
}

/* perf events, with the attributes that "perf record -e cpu-clock -F 250" uses. */

#define MAX_CPUS	16
#define RING_PAGES	512UL

static struct perf_event_mmap_page *rings[MAX_CPUS];
static int events[MAX_CPUS];
static int nr_cpus;

static void perf_begin(struct profile *p)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 4 * MS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.disabled = 1,
		.inherit = 1,
		.exclude_hv = 1,
		.exclude_kernel = 1,
	};
	size_t page = sysconf(_SC_PAGESIZE);

	p->period = attr.sample_period;
	if (p->profiler == PERF_ROOT) {
		attr.exclude_kernel = 0;
		attr.exclude_callchain_kernel = 1;
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.sample_max_stack = 1;
	}
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (nr_cpus > MAX_CPUS)
		die("too many CPUs");
	for (int i = 0; i < nr_cpus; i++) {
		events[i] = syscall(SYS_perf_event_open, &attr, 0, i, -1, PERF_FLAG_FD_CLOEXEC);
		if (events[i] < 0)
			die("perf_event_open");
		rings[i] = mmap(NULL, (1 + RING_PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED,
				events[i], 0);
		if (rings[i] == MAP_FAILED)
			die("perf ring");
	}
	for (int i = 0; i < nr_cpus; i++)
		ioctl(events[i], PERF_EVENT_IOC_ENABLE, 0);
}

/* Records and the ring have a whole number of words. */
static void perf_end(struct profile *p)
{
	const u64 words = RING_PAGES * sysconf(_SC_PAGESIZE) / 8;

	for (int i = 0; i < nr_cpus; i++)
		ioctl(events[i], PERF_EVENT_IOC_DISABLE, 0);
	for (int i = 0; i < nr_cpus; i++) {
		const u64 *data = (const u64 *)((const char *)rings[i] + rings[i]->data_offset);
		u64 at = 0, head = rings[i]->data_head / 8;

		while (at < head) {
			const struct perf_event_header *h = (const void *)&data[at % words];
			u64 pc = data[(at + 1) % words];
			unsigned int place;

			if (h->type != PERF_RECORD_SAMPLE)
				die("a record of perf's that is not a sample");
			if (p->profiler == PERF_ROOT)
				for (u64 k = 0; k < data[(at + 3) % words]; k++)
					if (data[(at + 4 + k) % words] == (u64)PERF_CONTEXT_USER)
						pc = data[(at + 5 + k) % words];
			place = place_of(pc);
			p->samples++;
			p->children += (pid_t)data[(at + 2) % words] != getpid();
			if (place < NR_PLACES)
				p->places[place]++;
			at += h->size / 8;
		}
	}
}

static const struct {
	void (*begin)(struct profile *p);
	void (*end)(struct profile *p);
} profilers[NR_PROFILERS] = {
	[TICK] = { session_begin, session_end },
	[CLOCK] = { session_begin, session_end },
	[GLIBC] = { glibc_begin, glibc_end },
	[GPERFTOOLS] = { gperf_begin, gperf_end },
	[PERF_USER] = { perf_begin, perf_end },
	[PERF_ROOT] = { perf_begin, perf_end },
};

void profile_start(struct profile *p)
{
	profilers[p->profiler].begin(p);
}

void profile_stop(struct profile *p)
{
	profilers[p->profiler].end(p);
}
