// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The profiler of the Nintendo 64: see <profil/n64.h>
 *
 * Each segment of text that the program passes becomes a region with its own counters. The host is
 * the program that reads the counters: here the command "profil gperf".
 *
 * osProfileInit() starts a classic session. The session counts nothing before osProfileStart() and
 * after osProfileStop(). So the host can read the counters at any time, without a thread in this
 * process.
 *
 * Every pc that is in no segment counts in the overflow counter. One more region is at addresses
 * that no pc can have. Its "counter" contains the period. So the host gets the period together with
 * the counters, even after osProfileStop().
 *
 * The lock of the classic session protects all state, so that a signal handler can call these
 * functions. For the same reason, this file does not call malloc().
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

#include "../classic.h"
#include "../copy.h"
#include "../device.h"
#include "../handover.h"
#include "../precedence.h"
#include "profil/n64.h"

#define NS_PER_US	1000ULL
#define WORD		4	/* size of an instruction in bytes */
#define EXTRA		2	/* regions in addition to the segments */

/* The counters of the two extra regions. They are aligned so that the kernel locks one page. */
static struct {
	uint64_t period;
	uint32_t overflow;
} own_counters __attribute__((aligned(16)));

/**
 * struct n64_profile - The profile that osProfileInit() has defined
 * @size: Size of this mapped structure in bytes.
 * @nr_ranges: Number of @ranges.
 * @ranges: The ranges of the session.
 */
struct n64_profile {
	size_t size;
	unsigned int nr_ranges;
	struct profil_range ranges[];
};

static struct n64_profile *profile;	/* NULL before osProfileInit() */
static bool running;		/* between osProfileStart() and osProfileStop() */
static OSErrorHandler error_handler;

/**
 * struct n64_error - The result of a function
 * @errnum: The value for errno; 0 if there is no error.
 * @code: ERR_OSPROFILE*.
 * @nr: The number of arguments that the error handler gets after @code and @nr.
 * @number: The argument, if it is a number.
 * @first: The first argument, if it is a pointer.
 * @second: The second argument.
 */
struct n64_error {
	int errnum;
	short code;
	short nr;
	unsigned int number;
	const void *first;
	const void *second;
};

/* Releases the lock, and then calls the error handler, which can call the functions here. */
static void unlock_and_report(uint64_t blocked, const struct n64_error *error)
{
	OSErrorHandler call = error_handler;

	libprofil_classic_unlock(blocked);
	if (!error->errnum)
		return;
	errno = error->errnum;
	if (!call)
		return;
	if (!error->nr)
		call(error->code, 0);
	else if (error->nr == 2 || error->first)
		call(error->code, error->nr, error->first, error->second);
	else
		call(error->code, error->nr, error->number);
	errno = error->errnum;
}

static struct n64_error no_error(void)
{
	return (struct n64_error){ };
}

static struct n64_error plain_error(short code, int error)
{
	return (struct n64_error){ .errnum = error, .code = code };
}

static struct n64_error error_with_number(short code, unsigned int number)
{
	return (struct n64_error){ .errnum = EINVAL, .code = code, .nr = 1, .number = number };
}

static struct n64_error error_with_pointers(short code, short nr, const void *first,
					    const void *second)
{
	return (struct n64_error){
		.errnum = EINVAL, .code = code, .nr = nr, .first = first, .second = second,
	};
}

/* Converts 0, or a negative error of the kernel. */
static struct n64_error kernel_error(int err)
{
	return err ? plain_error(ERR_OSPROFILE_ERRNO, -err) : no_error();
}

/*
 * Returns 1 if the profiler is running; 0 if it is not, or if another call has replaced the
 * session, or if the session has ended by itself; or a negative error.
 */
static int profiler_is_running(void)
{
	int result = running ? libprofil_classic_owner() : OWNER_NONE;

	return result < 0 ? result : result == OWNER_N64;
}

/* Starts a session with the ranges of @p that counts every @period ns; or nothing with 0. */
static int n64_set_session(const struct n64_profile *p, uint64_t period)
{
	return libprofil_classic_start_locked(OWNER_N64, p->ranges, p->nr_ranges,
					      PROFIL_START_REPLACE, period ? PROFIL_MODES_ALL : 0,
					      period);
}

/* Maps @size bytes, all 0. Returns NULL on failure. */
static void *map_zeroed(size_t size)
{
	int saved = errno;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

static int n64_query(struct profil_query *kernel)
{
	*kernel = (struct profil_query){ .size = sizeof(*kernel) };
	return libprofil_device_ioctl(PROFIL_IOC_QUERY, kernel);
}

/* ---- osProfileInit ---- */

static uint64_t segment_start(const OSProf *prof)
{
	return (uintptr_t)prof->text_start;
}

static uint64_t segment_end(const OSProf *prof)
{
	return (uint64_t)(uintptr_t)prof->text_end + WORD;
}

static struct n64_error check_segments(const OSProf *profp, unsigned int profcnt)
{
	for (const OSProf *prof = profp; prof < profp + profcnt; prof++) {
		if ((uintptr_t)prof->histo_base % sizeof(uint32_t))
			return error_with_pointers(ERR_OSPROFILEINIT_ALN, 1, prof->histo_base,
						   NULL);
		if (prof->text_start >= prof->text_end)
			return error_with_pointers(ERR_OSPROFILEINIT_ORD, 2, prof->text_start,
					      prof->text_end);
		if (prof->histo_size < (segment_end(prof) - segment_start(prof) + WORD - 1) / WORD)
			return error_with_number(ERR_OSPROFILEINIT_SIZ, prof->histo_size);
	}
	return no_error();
}

static struct n64_error check_disjoint_segments(const struct profil_range *regions, unsigned int nr)
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
			return error_with_pointers(ERR_OSPROFILEINIT_OVL, 2,
					      (void *)(uintptr_t)a->start,
					      (void *)(uintptr_t)b->start);
		}
	}
	return no_error();
}

static void set_regions(struct profil_range *regions, const OSProf *profp, unsigned int profcnt,
			unsigned int width)
{
	for (unsigned int i = 0; i < profcnt; i++)
		regions[i] = (struct profil_range){
			.start = segment_start(&profp[i]),
			.end = segment_end(&profp[i]),
			.offset = segment_start(&profp[i]),
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
		.buffer = (uintptr_t)&own_counters.period,
		.nr_counters = 1,
		.granule = 1,
		.step = 1,
		.width = sizeof(own_counters.period),
	};
	regions[profcnt + 1] = (struct profil_range){
		.end = UINT64_MAX,
		.buffer = (uintptr_t)&own_counters.overflow,
		.nr_counters = 1,
		.granule = 1,
		.step = 1,
		.width = sizeof(own_counters.overflow),
	};
}

/*
 * Sets all counters to 0. The kernel has checked that the buffers can be written, and has locked
 * them. The session does not count yet.
 */
static void clear_counters(const OSProf *profp, unsigned int profcnt, unsigned int width)
{
	for (unsigned int i = 0; i < profcnt; i++)
		memset(profp[i].histo_base, 0, (size_t)profp[i].histo_size * width);
	own_counters.overflow = 0;
	own_counters.period = 0;
}

/*
 * Makes the profile @new from the @nr segments at @user, and starts its session. @regions and
 * @profs are scratch memory.
 */
static struct n64_error n64_init_profile(const OSProf *user, unsigned int nr, unsigned int flags,
					 struct n64_profile *new, struct profil_range *regions,
					 OSProf *profs)
{
	const unsigned int width = flags & PROF_UINT32 ? sizeof(uint32_t) : sizeof(uint16_t);
	struct n64_error error;

	error = kernel_error(libprofil_copy_in(profs, user, nr * sizeof(*profs)));
	if (!error.errnum)
		error = check_segments(profs, nr);
	if (error.errnum)
		return error;
	set_regions(regions, profs, nr, width);
	if (flags & PROF_DISJOINT)
		error = check_disjoint_segments(regions, nr);
	if (error.errnum)
		return error;
	new->nr_ranges = libprofil_resolve_overlaps(regions, nr + EXTRA, new->ranges);
	error = kernel_error(n64_set_session(new, 0));
	if (!error.errnum)
		clear_counters(profs, nr, width);
	return error;
}

static struct n64_error n64_init(const OSProf *profp, unsigned int profcnt, unsigned int flags)
{
	const size_t nr = (size_t)profcnt + EXTRA;
	struct profil_range *regions;
	struct n64_profile *new, *old = profile;
	struct profil_query kernel;
	struct n64_error error;
	size_t scratch;
	int err;

	err = profiler_is_running();
	if (err)
		return err < 0 ? kernel_error(err) : plain_error(ERR_OSPROFILEINIT_STR, EBUSY);
	if (flags & ~(PROF_UINT32 | PROF_DISJOINT))
		return error_with_number(ERR_OSPROFILEINIT_FLAGS, flags);
	error = kernel_error(n64_query(&kernel));
	if (error.errnum)
		return error;
	/* Each region can split another one into two ranges. */
	if (!profcnt || profcnt > kernel.max_ranges / 2 - EXTRA)
		return error_with_number(ERR_OSPROFILEINIT_CNT, profcnt);

	scratch = nr * sizeof(*regions) + profcnt * sizeof(OSProf);
	regions = map_zeroed(scratch);
	if (!regions)
		return kernel_error(-ENOMEM);
	new = map_zeroed(sizeof(*new) + 2 * nr * sizeof(*new->ranges));
	if (!new) {
		munmap(regions, scratch);
		return kernel_error(-ENOMEM);
	}
	new->size = sizeof(*new) + 2 * nr * sizeof(*new->ranges);
	error = n64_init_profile(profp, profcnt, flags, new, regions, (OSProf *)(regions + nr));
	munmap(regions, scratch);
	if (error.errnum) {
		munmap(new, new->size);
		return error;
	}
	running = false;
	profile = new;
	if (old)
		munmap(old, old->size);
	return no_error();
}

PROFIL_EXPORT void osProfileInitFlags(OSProf *profp, unsigned int profcnt, unsigned int flags)
{
	uint64_t blocked = libprofil_classic_lock();
	struct n64_error error = n64_init(profp, profcnt, flags);

	unlock_and_report(blocked, &error);
}

PROFIL_EXPORT void osProfileInit(OSProf *profp, unsigned int profcnt)
{
	osProfileInitFlags(profp, profcnt, 0);
}

/* ---- osProfileStart, osProfileStop ---- */

static struct n64_error n64_start(unsigned int microseconds)
{
	const uint64_t period = microseconds * NS_PER_US;
	struct profil_query kernel;
	struct n64_error error;
	int err;

	if (microseconds < PROF_MIN_INTERVAL)
		return error_with_number(ERR_OSPROFILESTART_TIME, microseconds);
	if (!profile)
		return plain_error(ERR_OSPROFILESTART_INIT, ESRCH);
	err = profiler_is_running();
	if (err)
		return err < 0 ? kernel_error(err) : plain_error(ERR_OSPROFILESTART_FLAG, EALREADY);
	error = kernel_error(n64_query(&kernel));
	if (error.errnum)
		return error;
	if (period < kernel.min_period || period > kernel.max_period) {
		error = error_with_number(ERR_OSPROFILESTART_TIME, microseconds);
		if (period < kernel.min_period)
			error.errnum = EPERM;
		return error;
	}
	error = kernel_error(n64_set_session(profile, period));
	if (error.errnum)
		return error;
	own_counters.period = period;
	running = true;
	return no_error();
}

PROFIL_EXPORT void osProfileStart(unsigned int microseconds)
{
	uint64_t blocked = libprofil_classic_lock();
	struct n64_error error = n64_start(microseconds);

	unlock_and_report(blocked, &error);
}

static struct n64_error n64_stop(void)
{
	int err;

	if (!running)
		return plain_error(ERR_OSPROFILESTOP_FLAG, EALREADY);
	err = profiler_is_running();
	if (err < 0)
		return kernel_error(err);
	running = false;
	if (!err)
		return plain_error(ERR_OSPROFILESTOP_TIMER, ESRCH);
	err = n64_set_session(profile, 0);
	/* After any error, stop the session, so that it does not count any more. */
	if (err && libprofil_classic_stop_locked(NULL))
		running = true;
	return kernel_error(err);
}

PROFIL_EXPORT void osProfileStop(void)
{
	uint64_t blocked = libprofil_classic_lock();
	struct n64_error error = n64_stop();

	unlock_and_report(blocked, &error);
}

PROFIL_EXPORT unsigned int osProfileOverflow(void)
{
	return *(volatile uint32_t *)&own_counters.overflow;
}

PROFIL_EXPORT OSErrorHandler osSetErrorHandler(OSErrorHandler new)
{
	uint64_t blocked = libprofil_classic_lock();
	OSErrorHandler old = error_handler;

	error_handler = new;
	libprofil_classic_unlock(blocked);
	return old;
}

/* ---- osProfileFlush ---- */

/*
 * Connects to the host. Returns -1 if no host waits for this process, or if the host belongs to a
 * user who is neither root nor the user of this process.
 */
static int connect_to_host(void)
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

/* Writes the counters of @ranges to @file at @at. Returns the offset after them, or 0. */
static size_t write_counters(int file, size_t at, const struct profil_range *ranges, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		size_t bytes = ranges[i].nr_counters * ranges[i].width;

		/* If another thread has unmapped the counters, pwrite() fails. */
		if (pwrite(file, (const void *)(uintptr_t)ranges[i].buffer, bytes, at) !=
		    (ssize_t)bytes)
			return 0;
		at += (bytes + 7) & ~7UL;
	}
	return at;
}

/* Writes the session, except for the mappings, to @file. Returns the length of the file, or 0. */
static size_t write_session(int file)
{
	struct profil_stats stats = { .size = sizeof(stats) };
	struct profil_describe session = { .size = sizeof(session), .stats = (uintptr_t)&stats };
	struct profil_range *ranges;
	struct handover *to;
	size_t size, end = 0;
	uint32_t nr;

	if (libprofil_classic_ioctl(PROFIL_IOC_DESCRIBE, &session))
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
	/* Between the two calls, another thread may have started another session. */
	if (!libprofil_classic_ioctl(PROFIL_IOC_DESCRIBE, &session) && session.nr_ranges == nr)
		end = write_counters(file, size, ranges, nr);
	to->magic = HANDOVER_MAGIC;
	to->nr_ranges = nr;
	to->nr_bytes = end - size;
	to->period = session.period;
	to->nr_pcs = session.taken + stats.hit;
	munmap(to, size);
	return end;
}

/* Writes the mappings of the process to @file at @at. */
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
	host = connect_to_host();
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
