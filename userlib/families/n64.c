// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The profiler of the Nintendo 64: see profil/n64.h.
 *
 * From Init on there is a classic session, which counts nothing until Start and nothing from Stop
 * on: so a host can read the counters at any time, and no thread is needed for that.
 *
 * What no segment holds is counted in the overflow counter. A further region, where no pc can be,
 * has the period as its "counter": whoever reads the counters knows it then, also after Stop.
 *
 * All state is under the lock of the classic session, so that the functions can be called from a
 * signal handler; for the same reason nothing here calls malloc().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/profil.h>

#include "classic.h"
#include "copy.h"
#include "device.h"
#include "handover.h"
#include "precedence.h"
#include "profil/n64.h"

#define NS_PER_US	1000ULL
#define WORD		4	/* bytes of an instruction */
#define EXTRA		2	/* regions beside the segments */

/* In one place: the kernel locks the page that they lie in. */
static struct {
	uint64_t period;
	uint32_t overflow;
} counted __attribute__((aligned(16)));

/**
 * struct plan - What Init was told
 * @size: Bytes of this structure, which is mapped.
 * @nr_ranges: Number of @ranges.
 * @ranges: For the kernel.
 */
struct plan {
	size_t size;
	unsigned int nr_ranges;
	struct profil_range ranges[];
};

static struct plan *plan;	/* NULL before Init */
static bool running;		/* since Start, until Stop */
static OSErrorHandler handler;

/**
 * struct fault - What is wrong
 * @error: The errno; 0 if nothing is.
 * @code: ERR_OSPROFILE*.
 * @nr: Arguments for the handler: @first and @second, or one of them, or @number.
 */
struct fault {
	int error;
	short code;
	short nr;
	unsigned int number;
	const void *first;
	const void *second;
};

/* The error handler is called without the lock, since it may call these functions. */
static void leave(uint64_t blocked, const struct fault *fault)
{
	OSErrorHandler call = handler;

	profil_classic_unlock(blocked);
	if (!fault->error)
		return;
	errno = fault->error;
	if (!call)
		return;
	if (!fault->nr)
		call(fault->code, 0);
	else if (fault->nr == 2 || fault->first)
		call(fault->code, fault->nr, fault->first, fault->second);
	else
		call(fault->code, fault->nr, fault->number);
	errno = fault->error;
}

static struct fault fine(void)
{
	return (struct fault){ };
}

static struct fault wrong(short code, int error)
{
	return (struct fault){ .error = error, .code = code };
}

static struct fault wrong_number(short code, unsigned int number)
{
	return (struct fault){ .error = EINVAL, .code = code, .nr = 1, .number = number };
}

static struct fault wrong_pointers(short code, short nr, const void *first, const void *second)
{
	return (struct fault){
		.error = EINVAL, .code = code, .nr = nr, .first = first, .second = second,
	};
}

/* @err: 0 or a negative error, of the kernel. */
static struct fault status(int err)
{
	return err ? wrong(ERR_OSPROFILE_ERRNO, -err) : fine();
}

/*
 * 1 if it is running; 0 if it is not, also since another call has replaced the session or the
 * session has ended by itself; or a negative error.
 */
static int is_running(void)
{
	int who = running ? profil_classic_owner() : PROFIL_NOBODY;

	return who < 0 ? who : who == PROFIL_N64;
}

/* Counting in the ranges of @p every @period ns, or, if that is 0, not. */
static int session(const struct plan *p, uint64_t period)
{
	return profil_classic_start_as(PROFIL_N64, p->ranges, p->nr_ranges, PROFIL_START_REPLACE,
				       period ? PROFIL_MODES_ALL : 0, period);
}

/* Zeroed memory, or NULL. */
static void *map(size_t size)
{
	int saved = errno;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

static int query(struct profil_query *kernel)
{
	*kernel = (struct profil_query){ .size = sizeof(*kernel) };
	return profil_device_ioctl(PROFIL_IOC_QUERY, kernel);
}

/* ---- osProfileInit ---- */

static uint64_t start_of(const OSProf *prof)
{
	return (uintptr_t)prof->text_start;
}

static uint64_t end_of(const OSProf *prof)
{
	return (uint64_t)(uintptr_t)prof->text_end + WORD;
}

static struct fault check(const OSProf *profp, unsigned int profcnt)
{
	for (const OSProf *prof = profp; prof < profp + profcnt; prof++) {
		if ((uintptr_t)prof->histo_base % sizeof(uint32_t))
			return wrong_pointers(ERR_OSPROFILEINIT_ALN, 1, prof->histo_base, NULL);
		if (prof->text_start >= prof->text_end)
			return wrong_pointers(ERR_OSPROFILEINIT_ORD, 2, prof->text_start,
					      prof->text_end);
		if (prof->histo_size < (end_of(prof) - start_of(prof) + WORD - 1) / WORD)
			return wrong_number(ERR_OSPROFILEINIT_SIZ, prof->histo_size);
	}
	return fine();
}

static struct fault check_disjoint(const struct profil_range *regions, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		for (unsigned int j = i + 1; j < nr; j++) {
			const struct profil_range *a = &regions[i], *b = &regions[j];

			if (a->start >= b->end || b->start >= a->end)
				continue;
			if (a->start > b->start) {
				a = b;
				b = &regions[i];
			}
			return wrong_pointers(ERR_OSPROFILEINIT_OVL, 2,
					      (void *)(uintptr_t)a->start,
					      (void *)(uintptr_t)b->start);
		}
	}
	return fine();
}

static void set_regions(struct profil_range *regions, const OSProf *profp, unsigned int profcnt,
			unsigned int width)
{
	for (unsigned int i = 0; i < profcnt; i++)
		regions[i] = (struct profil_range){
			.start = start_of(&profp[i]),
			.end = end_of(&profp[i]),
			.offset = start_of(&profp[i]),
			.buffer = (uintptr_t)profp[i].histo_base,
			.nr_counters = profp[i].histo_size,
			.scale = 65536,
			.granule = WORD,
			.step = 1,
			.width = width,
		};
	regions[profcnt] = (struct profil_range){
		.start = HANDOVER_PERIOD,
		.end = UINT64_MAX,
		.offset = HANDOVER_PERIOD,
		.buffer = (uintptr_t)&counted.period,
		.nr_counters = 1,
		.granule = 1,
		.step = 1,
		.width = sizeof(counted.period),
	};
	regions[profcnt + 1] = (struct profil_range){
		.end = UINT64_MAX,
		.buffer = (uintptr_t)&counted.overflow,
		.nr_counters = 1,
		.granule = 1,
		.step = 1,
		.width = sizeof(counted.overflow),
	};
}

/* The kernel has seen that they are memory; nothing counts in them yet. */
static void clear(const OSProf *profp, unsigned int profcnt, unsigned int width)
{
	for (unsigned int i = 0; i < profcnt; i++)
		memset(profp[i].histo_base, 0, (size_t)profp[i].histo_size * width);
	counted.overflow = 0;
	counted.period = 0;
}

/* The @nr segments at @user become the plan: @regions and @profs are room for them. */
static struct fault init_plan(const OSProf *user, unsigned int nr, unsigned int flags,
			      struct plan *new, struct profil_range *regions, OSProf *profs)
{
	const unsigned int width = flags & PROF_UINT32 ? sizeof(uint32_t) : sizeof(uint16_t);
	struct fault fault;

	fault = status(profil_copy_in(profs, user, nr * sizeof(*profs)));
	if (!fault.error)
		fault = check(profs, nr);
	if (fault.error)
		return fault;
	set_regions(regions, profs, nr, width);
	if (flags & PROF_DISJOINT)
		fault = check_disjoint(regions, nr);
	if (fault.error)
		return fault;
	new->nr_ranges = profil_precedence(regions, nr + EXTRA, new->ranges);
	fault = status(session(new, 0));
	if (!fault.error)
		clear(profs, nr, width);
	return fault;
}

static struct fault init(const OSProf *profp, unsigned int profcnt, unsigned int flags)
{
	const size_t nr = (size_t)profcnt + EXTRA;
	struct profil_range *regions;
	struct plan *new, *old = plan;
	struct profil_query kernel;
	struct fault fault;
	size_t scratch;
	int err;

	err = is_running();
	if (err)
		return err < 0 ? status(err) : wrong(ERR_OSPROFILEINIT_STR, EBUSY);
	if (flags & ~(PROF_UINT32 | PROF_DISJOINT))
		return wrong_number(ERR_OSPROFILEINIT_FLAGS, flags);
	fault = status(query(&kernel));
	if (fault.error)
		return fault;
	/* Each may come between two parts of others. */
	if (!profcnt || profcnt > kernel.max_ranges / 2 - EXTRA)
		return wrong_number(ERR_OSPROFILEINIT_CNT, profcnt);

	scratch = nr * sizeof(*regions) + profcnt * sizeof(OSProf);
	regions = map(scratch);
	if (!regions)
		return status(-ENOMEM);
	new = map(sizeof(*new) + 2 * nr * sizeof(*new->ranges));
	if (!new) {
		munmap(regions, scratch);
		return status(-ENOMEM);
	}
	new->size = sizeof(*new) + 2 * nr * sizeof(*new->ranges);
	fault = init_plan(profp, profcnt, flags, new, regions, (OSProf *)(regions + nr));
	munmap(regions, scratch);
	if (fault.error) {
		munmap(new, new->size);
		return fault;
	}
	running = false;
	plan = new;
	if (old)
		munmap(old, old->size);
	return fine();
}

PROFIL_EXPORT void osProfileInitFlags(OSProf *profp, unsigned int profcnt, unsigned int flags)
{
	uint64_t blocked = profil_classic_lock();
	struct fault fault = init(profp, profcnt, flags);

	leave(blocked, &fault);
}

PROFIL_EXPORT void osProfileInit(OSProf *profp, unsigned int profcnt)
{
	osProfileInitFlags(profp, profcnt, 0);
}

/* ---- osProfileStart, osProfileStop ---- */

static struct fault start(unsigned int microseconds)
{
	const uint64_t period = microseconds * NS_PER_US;
	struct profil_query kernel;
	struct fault fault;
	int err;

	if (microseconds < PROF_MIN_INTERVAL)
		return wrong_number(ERR_OSPROFILESTART_TIME, microseconds);
	if (!plan)
		return wrong(ERR_OSPROFILESTART_INIT, ESRCH);
	err = is_running();
	if (err)
		return err < 0 ? status(err) : wrong(ERR_OSPROFILESTART_FLAG, EALREADY);
	fault = status(query(&kernel));
	if (fault.error)
		return fault;
	if (period < kernel.min_period || period > kernel.max_period) {
		fault = wrong_number(ERR_OSPROFILESTART_TIME, microseconds);
		if (period < kernel.min_period)
			fault.error = EPERM;
		return fault;
	}
	fault = status(session(plan, period));
	if (fault.error)
		return fault;
	counted.period = period;
	running = true;
	return fine();
}

PROFIL_EXPORT void osProfileStart(unsigned int microseconds)
{
	uint64_t blocked = profil_classic_lock();
	struct fault fault = start(microseconds);

	leave(blocked, &fault);
}

static struct fault stop(void)
{
	int err;

	if (!running)
		return wrong(ERR_OSPROFILESTOP_FLAG, EALREADY);
	err = is_running();
	if (err < 0)
		return status(err);
	running = false;
	if (!err)
		return wrong(ERR_OSPROFILESTOP_TIMER, ESRCH);
	err = session(plan, 0);
	/* Whatever the reason: it must not count any more. */
	if (err && profil_classic_end(NULL))
		running = true;
	return status(err);
}

PROFIL_EXPORT void osProfileStop(void)
{
	uint64_t blocked = profil_classic_lock();
	struct fault fault = stop();

	leave(blocked, &fault);
}

PROFIL_EXPORT unsigned int osProfileOverflow(void)
{
	return *(volatile uint32_t *)&counted.overflow;
}

PROFIL_EXPORT OSErrorHandler osSetErrorHandler(OSErrorHandler new)
{
	uint64_t blocked = profil_classic_lock();
	OSErrorHandler old = handler;

	handler = new;
	profil_classic_unlock(blocked);
	return old;
}

/* ---- osProfileFlush ---- */

/* Who waits for our data, if somebody does who may have it. */
static int host_connect(void)
{
	struct sockaddr_un address;
	socklen_t length = handover_address(&address, getpid()), size;
	struct ucred host;
	int fd;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	size = sizeof(host);
	if (connect(fd, (const struct sockaddr *)&address, length) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &host, &size) ||
	    (host.uid && host.uid != geteuid())) {
		close(fd);
		return -1;
	}
	return fd;
}

static void send_file(int host, int file)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int)),
	} };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};

	memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	sendmsg(host, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The counters of @ranges; where they end in @file, or 0. */
static size_t write_counters(int file, size_t at, const struct profil_range *ranges, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		size_t bytes = ranges[i].nr_counters * ranges[i].width;

		/* Another thread may unmap them. */
		if (pwrite(file, (const void *)(uintptr_t)ranges[i].buffer, bytes, at) !=
		    (ssize_t)bytes)
			return 0;
		at += (bytes + 7) & ~7UL;
	}
	return at;
}

/* All that there is of the session into @file; its length, or 0. */
static size_t write_session(int file)
{
	struct profil_stats stats = { .size = sizeof(stats) };
	struct profil_describe session = { .size = sizeof(session), .stats = (uintptr_t)&stats };
	struct profil_range *ranges;
	struct handover *to;
	size_t size, end = 0;
	uint32_t nr;

	if (profil_classic_ioctl(PROFIL_IOC_DESCRIBE, &session))
		return 0;
	nr = session.nr_ranges;
	size = sizeof(*to) + nr * sizeof(*ranges);
	if (ftruncate(file, size))
		return 0;
	to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (to == MAP_FAILED)
		return 0;
	ranges = (struct profil_range *)(to + 1);
	session.ranges = (uintptr_t)ranges;
	/* Another thread may have begun another profile. */
	if (!profil_classic_ioctl(PROFIL_IOC_DESCRIBE, &session) && session.nr_ranges == nr)
		end = write_counters(file, size, ranges, nr);
	to->magic = HANDOVER_MAGIC;
	to->nr_ranges = nr;
	to->nr_bytes = end - size;
	to->period = session.period;
	to->nr_pcs = session.taken + stats.hit;
	munmap(to, size);
	return end;
}

/* Appends what is mapped where. */
static bool write_maps(int file, off_t at)
{
	char text[4096];
	ssize_t len;
	int maps;

	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return false;
	while ((len = read(maps, text, sizeof(text))) > 0 && pwrite(file, text, len, at) == len)
		at += len;
	close(maps);
	return !len;
}

PROFIL_EXPORT void osProfileFlush(void)
{
	int saved = errno, cancel, host, file;
	size_t size;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	host = host_connect();
	if (host < 0)
		goto restore;
	file = memfd_create("profil", MFD_CLOEXEC);
	if (file >= 0) {
		size = write_session(file);
		if (size && write_maps(file, size))
			send_file(host, file);
		close(file);
	}
	close(host);
restore:
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}
