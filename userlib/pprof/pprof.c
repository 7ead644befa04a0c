// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Profiles of the calling process, in the format of pprof: see profil/pprof.h
 *
 * A profile is a session that makes a record of each tick. A thread reads the records before the
 * kernel has no more room for them, and adds them up. One lock protects all profiles. It is not
 * held while a profile is written to a descriptor, which can take long.
 *
 * A fork waits for the lock, so that the child has complete data and can free it. The child closes
 * its copies of the sessions' descriptors, since they would keep the sessions of the parent alive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "message.h"
#include "profil.h"
#include "profil/pprof.h"
#include "samples.h"
#include "tables.h"

#define NS_PER_S	1000000000ULL

/*
 * A session has room for the records of this time on all CPUs, but for no more than RECORDS_MAX,
 * which are about 1 MiB; and for fewer, or without call stacks, if RLIMIT_MEMLOCK does not allow
 * so many.
 */
#define ROOM_NS		NS_PER_S
#define RECORDS_MIN	64
#define RECORDS_MAX	512
#define READ_MAX_NS	(NS_PER_S / 10)	/* longest time from one read to the next */

#define BUFFER_SIZE	(1 << 16)
#define RECORD_SIZE_MAX	(1 << 13)

/**
 * struct profil_pprof - A profile
 * @next: The next of all profiles of this process.
 * @session: The descriptor of the session; -1 in the child of a fork.
 * @period: Nanoseconds from one tick to the next.
 * @read_ns: Time from one read to the next.
 * @has_stacks: Records have call stacks.
 * @start: The time of the start, of CLOCK_MONOTONIC.
 * @start_time: Likewise, of CLOCK_REALTIME.
 * @thread: Reads the records, until @stopping.
 * @stop: Is signalled when @stopping becomes true.
 * @samples: The samples of all records that were read.
 * @tables: The unwind tables. After the start, only @thread uses them.
 * @buffer: For records.
 */
struct profil_pprof {
	struct profil_pprof *next;
	int session;
	uint64_t period;
	uint64_t read_ns;
	bool has_stacks;
	uint64_t start;
	uint64_t start_time;
	pthread_t thread;
	bool stopping;
	pthread_cond_t stop;
	struct samples samples;
	struct tables tables;
	uint64_t buffer[BUFFER_SIZE / sizeof(uint64_t)];
};

/* Protects all profiles and their list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct profil_pprof *profiles;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---- fork ---- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The program may have closed a descriptor, and opened another file with its number. */
static bool is_session(int fd)
{
	struct profil_stats stats = { .size = sizeof(stats) };

	return fd >= 0 && (!profil_session_stats(fd, &stats) || errno == ENODEV);
}

static void session_close(struct profil_pprof *profile)
{
	/* close() would be a cancellation point. */
	if (is_session(profile->session))
		syscall(SYS_close, profile->session);
	profile->session = -1;
}

static void fork_child(void)
{
	int saved = errno;

	for (; profiles; profiles = profiles->next)
		session_close(profiles);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static int fork_error;

static void fork_register(void)
{
	fork_error = pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- records ---- */

/*
 * Adds all records. Gets the statistics before, so that no tick is in them that is not in the
 * samples. Returns -1 with errno set if that fails.
 */
static int collect(struct profil_pprof *profile, struct profil_stats *stats)
{
	const struct profil_record *record;
	ssize_t len;

	if (profile->session < 0) {
		errno = ENODEV;
		return -1;
	}
	*stats = (struct profil_stats){ .size = sizeof(*stats) };
	if (profil_session_stats(profile->session, stats))
		return -1;
	do {
		len = profil_session_read(profile->session, profile->buffer, BUFFER_SIZE);
		for (record = profil_record_first(profile->buffer, len); record;
		     record = profil_record_next(profile->buffer, len, record))
			samples_add(&profile->samples, record);
		/* If there is room for another record, there was none. */
	} while (len > BUFFER_SIZE - RECORD_SIZE_MAX);
	return 0;
}

/* For tables_give(): reads the records meanwhile. Holds the lock except while it waits. */
static bool read_meanwhile(void *data, int fd)
{
	struct profil_pprof *profile = data;
	struct pollfd input = { .fd = fd, .events = POLLIN };
	struct profil_stats stats;

	pthread_mutex_unlock(&lock);
	poll(&input, 1, profile->read_ns / 1000000 + 1);
	pthread_mutex_lock(&lock);
	if (!profile->stopping)
		collect(profile, &stats);
	return !profile->stopping;
}

/* For tables_give(), before the start */
static bool wait_for_tables(void *unused, int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	(void)unused;
	poll(&input, 1, -1);
	return true;
}

/* Gives the session the tables of the files that are new in the mappings. */
static void give_tables(struct profil_pprof *profile, bool (*wait)(void *data, int fd))
{
	struct maps maps = {};

	profile->samples.maps_changed = false;
	if (!profile->has_stacks || profile->tables.is_off)
		return;
	maps_read(&maps);
	tables_give(&profile->tables, profile->session, &maps, wait, profile);
	maps_free(&maps);
}

static void *read_records(void *data)
{
	struct profil_pprof *profile = data;
	struct profil_stats stats;
	struct timespec until;
	struct item *last;
	uint64_t next;

	pthread_mutex_lock(&lock);
	while (!profile->stopping) {
		if (profile->samples.maps_changed)
			give_tables(profile, read_meanwhile);
		next = clock_ns(CLOCK_MONOTONIC) + profile->read_ns;
		until = (struct timespec){ next / NS_PER_S, next % NS_PER_S };
		pthread_cond_timedwait(&profile->stop, &lock, &until);
		if (profile->stopping || collect(profile, &stats))
			continue;
		last = profile->samples.last;
		pthread_mutex_unlock(&lock);
		samples_name(&profile->samples, last);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- start and stop ---- */

/* Opens a session with room for the records of ROOM_NS, or for as many as the limits allow. */
static int session_open(struct profil_pprof *profile, unsigned int hz)
{
	const uint64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct profil_query query = { .size = sizeof(query) };
	struct profil_open options = {
		.size = sizeof(options),
		.flags = hz ? PROFIL_OPEN_JITTER : 0,
		.modes = PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
		.period = hz ? NS_PER_S / hz : 0,
	};
	uint64_t room;

	if (hz > NS_PER_S) {
		errno = EINVAL;
		return -1;
	}
	if (profil_query_kernel(&query))
		return -1;
	if (!(query.features & PROFIL_FEATURE_RECORDS)) {
		errno = ENOSYS;
		return -1;
	}
	profile->period = options.period ?: query.tick_ns;
	profile->tables.is_off = !(query.features & PROFIL_FEATURE_UNWIND);
	room = ROOM_NS / profile->period * cpus;
	room = room < RECORDS_MIN ? RECORDS_MIN : room > RECORDS_MAX ? RECORDS_MAX : room;
	options.nr_records = room;
	options.stack_depth = query.max_stack_depth < SAMPLES_DEPTH_MAX ? query.max_stack_depth :
									 SAMPLES_DEPTH_MAX;
	while ((profile->session = profil_session_open(&options)) < 0) {
		if (errno != EPERM || (options.nr_records <= RECORDS_MIN && !options.stack_depth))
			return -1;
		if (options.nr_records > RECORDS_MIN) {
			options.nr_records /= 2;
		} else {
			options.nr_records = room;
			options.stack_depth = 0;
		}
	}
	profile->has_stacks = options.stack_depth;
	/* Read the records twice in the time in which all CPUs together can fill the room. */
	profile->read_ns = profile->period * options.nr_records / cpus / 2;
	if (profile->read_ns > READ_MAX_NS)
		profile->read_ns = READ_MAX_NS;
	if (fcntl(profile->session, F_SETFL, O_NONBLOCK))
		return -1;
	return profil_session_attach(profile->session, PROFIL_SCOPE_PROCESS, 0, NULL);
}

static int thread_create(struct profil_pprof *profile)
{
	pthread_condattr_t attributes;
	sigset_t all, old;
	int err;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&profile->stop, &attributes);
	pthread_condattr_destroy(&attributes);
	/* No signal of the program is handled in the thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&profile->thread, NULL, read_records, profile);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		errno = err;
		return -1;
	}
	pthread_setname_np(profile->thread, "profil");
	return 0;
}

/* Enables the session, and starts the thread that reads its records. */
static int session_enable(struct profil_pprof *profile)
{
	if (profil_session_enable(profile->session))
		return -1;
	profile->start = clock_ns(CLOCK_MONOTONIC);
	profile->start_time = clock_ns(CLOCK_REALTIME);
	return thread_create(profile);
}

/* Closes the session, which has no thread. */
static void profile_remove(struct profil_pprof *profile)
{
	struct profil_pprof **link = &profiles;

	while (*link && *link != profile)
		link = &(*link)->next;
	if (*link)
		*link = profile->next;
	session_close(profile);
}

PROFIL_EXPORT struct profil_pprof *profil_pprof_start(unsigned int hz)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct profil_pprof *profile;
	int failed, err, cancel;

	pthread_once(&once, fork_register);
	if (fork_error) {
		errno = fork_error;
		return NULL;
	}
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return NULL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	failed = session_open(profile, hz);
	err = errno;
	profile->next = profiles;
	profiles = profile;
	pthread_mutex_unlock(&lock);
	if (!failed)
		give_tables(profile, wait_for_tables);
	pthread_mutex_lock(&lock);
	if (!failed) {
		failed = session_enable(profile);
		err = errno;
	}
	if (failed)
		profile_remove(profile);
	pthread_mutex_unlock(&lock);
	if (failed) {
		free(profile);
		profile = NULL;
		errno = err;
	}
	pthread_setcancelstate(cancel, NULL);
	return profile;
}

PROFIL_EXPORT void profil_pprof_stop(struct profil_pprof *profile)
{
	int saved = errno, cancel;
	bool is_mine;

	if (!profile)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	is_mine = profile->session >= 0;
	if (is_mine) {
		/* Copies of the descriptor may exist, after a fork or clone(). */
		profil_session_disable(profile->session, NULL);
		profile->stopping = true;
		pthread_cond_signal(&profile->stop);
	}
	pthread_mutex_unlock(&lock);
	if (is_mine) {
		pthread_join(profile->thread, NULL);
		pthread_cond_destroy(&profile->stop);
		pthread_mutex_lock(&lock);
		profile_remove(profile);
		pthread_mutex_unlock(&lock);
	}
	samples_free(&profile->samples);
	free(profile);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* ---- output ---- */

/* Rounds down: 100.00 means all. */
static double floor_percent(uint64_t part, uint64_t all)
{
	return part * 10000 / all / 100.0;
}

static void add_comments(const struct profil_pprof *profile, const struct profil_stats *stats,
			 struct message *message)
{
	const uint64_t lost = stats->dropped + profile->samples.lost;
	const uint64_t ticks = profile->samples.ticks + lost;
	char text[160];

	snprintf(text, sizeof(text), "%" PRIu64 " ticks, %" PRIu64 " lost, %" PRIu64 " missed, %"
		 PRIu64 " expected", ticks, lost, (uint64_t)stats->missed,
		 (uint64_t)stats->expected);
	message_add_comment(message, text);
	if (profile->has_stacks && profile->tables.nr_given && profile->samples.stacks) {
		snprintf(text, sizeof(text), "%.2f%% of the call stacks are complete",
			 floor_percent(profile->samples.complete, profile->samples.stacks));
		message_add_comment(message, text);
	}
	if (!lost)
		return;
	snprintf(text, sizeof(text), "warning: %" PRIu64 " of %" PRIu64 " ticks (%.2f%%) were lost",
		 lost, ticks, 100.0 * lost / ticks);
	message_add_comment(message, text);
}

/* Adds all samples so far, with their names. */
static int collect_names(struct profil_pprof *profile)
{
	struct profil_stats stats;
	struct item *last;
	int result;

	pthread_mutex_lock(&lock);
	result = collect(profile, &stats);
	last = profile->samples.last;
	pthread_mutex_unlock(&lock);
	if (!result)
		samples_name(&profile->samples, last);
	return result;
}

/* Makes the message for the samples so far. */
static int make_message(struct profil_pprof *profile, struct message *message)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	struct profil_stats stats;

	if (collect(profile, &stats))
		return -1;
	message_add_types(message, profile->period);
	part.time_nanos = profile->start_time;
	part.duration_nanos = clock_ns(CLOCK_MONOTONIC) - profile->start;
	message_add(message, &part);
	add_comments(profile, &stats, message);
	samples_write(&profile->samples, profile->period, message);
	if (message_finish(message))
		return 0;
	errno = ENOMEM;
	return -1;
}

static int write_all(int fd, const unsigned char *data, size_t len)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };
	ssize_t written;

	while (len) {
		written = write(fd, data, len);
		if (written >= 0) {
			data += written;
			len -= written;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			poll(&writable, 1, -1);
		} else if (errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

PROFIL_EXPORT int profil_pprof_write(struct profil_pprof *profile, int fd)
{
	struct message message;
	int result, cancel, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	message_start(&message);
	result = collect_names(profile);
	if (!result) {
		pthread_mutex_lock(&lock);
		result = make_message(profile, &message);
		pthread_mutex_unlock(&lock);
	}
	if (!result)
		result = write_all(fd, message.data, message.len);
	err = errno;
	message_free(&message);
	pthread_setcancelstate(cancel, NULL);
	if (result)
		errno = err;
	return result;
}
