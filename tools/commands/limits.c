// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: opens the session, within the limits of the kernel and of the user. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <profil.h>

#include "commands/sampling.h"
#include "recording/tables.h"
#include "symbols/confined.h"
#include "text/accounting.h"

#define NS_PER_MS	1000000ULL
/* The maximum time between two reads of the records. */
#define DRAIN_NS	(250 * NS_PER_MS)
/*
 * A session has room for the records of this time, but for no more than RECORDS_MAX. With -a, the
 * limit is RECORDS_PER_CPU for each CPU, if that is more. A low RLIMIT_MEMLOCK reduces the room.
 */
#define ROOM_NS		NS_PER_S
#define RECORDS_MIN	64
#define RECORDS_MAX	4096
#define RECORDS_PER_CPU	1024
/*
 * With stacks, a record needs 1 KiB more. So there is room for fewer: the memory is at most 1 MiB,
 * or with -a 12 MiB.
 */
#define RECORDS_MAX_STACKS	512
#define RECORDS_PER_CPU_STACKS	256
#define RECORDS_MAX_ALL_STACKS	8192
/* If RLIMIT_MEMLOCK is too low for RECORDS_MIN, stacks have fewer callers, at least this many. */
#define STACK_DEPTH_MIN	15

/* Containers can lack a device that the machine has. */
static void print_no_device(void)
{
	if (access(PROFIL_DEVICE, F_OK) && !access("/sys/module/profil", F_OK))
		warnx("the profil module is loaded, but there is no " PROFIL_DEVICE " here.\n"
		      "If this is a container, give it the device (--device " PROFIL_DEVICE ")");
	else
		warnx(PROFIL_DEVICE " does not exist, or is too old for this command.\n"
		      "Load the profil module (as root: \"modprobe profil\")");
}

/* The file's mode is only one of the reasons. */
static void print_denied(void)
{
	const int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	const int error = errno;

	if (fd >= 0)
		warnx(PROFIL_DEVICE ": a seccomp filter forbids its ioctls");
	else if (error == EPERM)
		warnx(PROFIL_DEVICE ": the cgroup of this container or service has no access.\n"
		      "Start the container with --device " PROFIL_DEVICE
		      ", the service with DeviceAllow=" PROFIL_DEVICE);
	else if (!access(PROFIL_DEVICE, R_OK))
		warnx(PROFIL_DEVICE " is on a filesystem that is mounted without devices (nodev)");
	else
		warnx(PROFIL_DEVICE ": permission denied; ask root to chmod " PROFIL_DEVICE);
	if (fd >= 0)
		close(fd);
}

static void print_session_error(const char *action, const struct rlimit *limit)
{
	switch (errno) {
	case ENOSYS:
		print_no_device();
		break;
	case EACCES:
		print_denied();
		break;
	case EPERM:
		warnx("%s: RLIMIT_MEMLOCK (%llu KiB) is too small for %u records",
		      action, (unsigned long long)limit->rlim_cur / 1024, RECORDS_MIN);
		break;
	case EBUSY:
		warnx("%s: the tick cannot be hooked: sysctl kernel.ftrace_enabled is 0", action);
		break;
	default:
		warn("%s", action);
	}
}

u32 session_modes(const struct session *s)
{
	return s->options->user_only ? PROFIL_MODE_USER : PROFIL_MODE_USER | PROFIL_MODE_SYSTEM;
}

u64 session_tick_ns(const struct session *s)
{
	return s->period ? s->period : s->query.tick_ns;
}

/* Returns -1 if the kernel does not allow the period that the user has chosen. */
static int choose_period(struct session *s)
{
	const struct profil_query *query = &s->query;

	s->period = s->options->freq_max ? query->min_period : s->options->period;
	if (!s->period || (s->period >= query->min_period && s->period <= query->max_period))
		return 0;
	if (!s->options->freq_chosen) {
		/* The administrator has set a minimum above the default period. */
		s->period = query->min_period;
		return 0;
	}
	warnx("%g Hz, a period of %g us: choose at most %s Hz (%g us) and at least %g Hz (%g s)",
	      (double)NS_PER_S / s->period, s->period / 1e3,
	      number(NS_PER_S / query->min_period).text, query->min_period / 1e3,
	      (double)NS_PER_S / query->max_period, (double)query->max_period / NS_PER_S);
	return -1;
}

/* Returns the number of records that a session should have room for. */
static u32 records_wanted(const struct session *s)
{
	const u64 cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const u64 per_cpu = s->options->stacks ? RECORDS_PER_CPU_STACKS : RECORDS_PER_CPU;
	u64 wanted = ROOM_NS / session_tick_ns(s) * cpus;
	u64 max = s->options->stacks ? RECORDS_MAX_STACKS : RECORDS_MAX;

	if (s->options->all && max < cpus * per_cpu)
		max = cpus * per_cpu;
	if (s->options->stacks && max > RECORDS_MAX_ALL_STACKS)
		max = RECORDS_MAX_ALL_STACKS;
	if (max > s->query.max_records)
		max = s->query.max_records;
	if (wanted < RECORDS_MIN)
		return RECORDS_MIN;
	return wanted < max ? wanted : max;
}

/* If RLIMIT_MEMLOCK is too low, reduces the room for records, and then stacks. */
static int open_reduced(struct profil_open *open)
{
	int fd;

	while ((fd = profil_session_open(open)) < 0 && errno == EPERM) {
		if (open->nr_records > RECORDS_MIN)
			open->nr_records /= 2;
		else if (open->stack_depth > STACK_DEPTH_MIN)
			open->stack_depth /= 2;
		else
			break;
	}
	return fd;
}

static int give_table(void *data, const struct profil_unwind *table)
{
	const struct session *s = data;

	return profil_session_unwind(s->fd, table);
}

/* If the kernel takes unwind tables, the session will have them. */
static void use_tables(struct session *s)
{
	const struct tables_use use = {
		.give = give_table,
		.data = s,
		.max_rows = s->query.max_unwind_rows,
	};

	if (s->options->stacks && !s->options->frame_pointers &&
	    s->query.features & PROFIL_FEATURE_UNWIND)
		s->stream.tables = tables_new(&use);
}

/* Opens a session with room for records_wanted(), or for as many as RLIMIT_MEMLOCK allows. */
int session_open(struct session *s)
{
	struct profil_open open = {
		.size = sizeof(open),
		.modes = session_modes(s),
		.fork = s->options->no_children ? PROFIL_FORK_OFF : PROFIL_FORK_SHARE,
		.exec = PROFIL_EXEC_FOLLOW,
	};
	struct rlimit limit;
	u64 fill_ns;
	u32 wanted;

	/* All locked memory is charged to this process. child_run() restores the old limit. */
	getrlimit(RLIMIT_MEMLOCK, &s->old_limit);
	limit = s->old_limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	s->query.size = sizeof(s->query);
	if (profil_query_kernel(&s->query)) {
		print_session_error(PROFIL_DEVICE, &limit);
		return -1;
	}
	if (choose_period(s))
		return -1;
	if (!(s->query.features & PROFIL_FEATURE_RECORDS)) {
		warnx("the profil module has another version: load the module of this version");
		return -1;
	}
	if (s->options->stacks)
		open.stack_depth = FORMAT_STACK_MAX;
	open.period = s->period;
	open.flags = s->period ? PROFIL_OPEN_JITTER : 0;
	wanted = records_wanted(s);
	open.nr_records = wanted;
	s->fd = open_reduced(&open);
	if (s->fd < 0 || fcntl(s->fd, F_SETFL, O_NONBLOCK) ||
	    profil_session_enable(s->fd)) {
		print_session_error("cannot open a session", &limit);
		return -1;
	}
	if (open.nr_records < wanted)
		warnx("RLIMIT_MEMLOCK (%llu KiB) allows room for only %u of %u records.\n"
		      "If the machine is busy, ticks may be lost.",
		      (unsigned long long)limit.rlim_cur / 1024, open.nr_records, wanted);
	if (s->options->stacks && open.stack_depth < FORMAT_STACK_MAX)
		warnx("RLIMIT_MEMLOCK (%llu KiB) allows only %u callers in each stack",
		      (unsigned long long)limit.rlim_cur / 1024, open.stack_depth);
	/* Read the records twice in the time in which all CPUs together can fill the buffer. */
	fill_ns = session_tick_ns(s) * open.nr_records / sysconf(_SC_NPROCESSORS_ONLN);
	s->drain_ns = fill_ns / 2 < DRAIN_NS ? fill_ns / 2 : DRAIN_NS;
	s->last_collected = &s->collected;
	use_tables(s);
	confined_set_idle(session_collect, s, s->drain_ns);
	return 0;
}

void session_close(struct session *s)
{
	confined_set_idle(NULL, NULL, 0);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void session_free(struct session *s)
{
	session_close(s);
	stream_close(&s->stream);
	tables_free(s->stream.tables);
	if (s->signals >= 0)
		close(s->signals);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s->command);
	free(s->child_name);
	free(s->target);
	free(s->machine);
}
