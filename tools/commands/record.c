// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil record: samples a command or a process with two sessions, one for user ticks and one for
 * system ticks
 *
 * The recorder reads the records at least ten times a second. Once a second it also reads the
 * counters, and writes the new samples and the statistics of the same moment to the file. So at any
 * time, the number of ticks in all samples of the file is hit + outside of the statistics in it.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "recording/accounting.h"
#include "recording/aggregate.h"
#include "recording/chunks.h"
#include "commands/command.h"
#include "recording/format.h"
#include "recording/hash.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define NS_PER_MS	1000000ULL
/* The maximum time between two reads of the records, and the time between two flushes. */
#define DRAIN_NS	(100 * NS_PER_MS)
#define FLUSH_NS	NS_PER_S
/* The default period. */
#define PERIOD_NS	NS_PER_MS
/* A session has room for the records of this many seconds, within these limits. */
#define RECORDS_S	2
#define RECORDS_MIN	256
#define RECORDS_MAX	8192
#define READ_SIZE	(256U << 10)
/* Maximum number of ticks without a mapping that wait for the next flush. */
#define PENDING		256
/* Within this time after the first signal, further signals do not end the recording. */
#define SECOND_SIGNAL_NS	(500 * NS_PER_MS)

enum {
	USER,
	SYSTEM,
	NR_SESSIONS,
};

_Static_assert(NR_SESSIONS == CHUNKS_SESSIONS, "sessions have the same index in chunks");

static const u32 session_modes[NR_SESSIONS] = { PROFIL_MODE_USER, PROFIL_MODE_SYSTEM };

struct options {
	const char *path;
	bool user_only;
	bool per_thread;
	bool no_children;
	u64 period;			/* in ns; 0: the scheduler's tick */
	bool clock_chosen;
	pid_t pid;			/* 0: record a command */
	u64 duration;			/* in ns; 0: no limit */
	char **command;
};

struct session {
	int fd;				/* or -1 */
	u32 nr_records;
	bool ended;			/* all targets have ended */
	u64 *buffer;			/* READ_SIZE bytes */
	ssize_t len;
	const struct profil_record *next;	/* in the buffer, not added yet; or NULL */
	u64 nr_read;			/* number of records that were read */
};

/* A tick whose record has no mapping. */
struct pending {
	unsigned int session;
	u64 space;
	struct format_sample sample;	/* its offset is the pc */
};

struct recorder {
	const struct options *options;
	struct session sessions[NR_SESSIONS];
	struct profil_query query;
	u64 period;			/* in ns; 0: the scheduler's tick */
	u64 start;			/* CLOCK_MONOTONIC, in ns */
	u64 start_time;			/* CLOCK_REALTIME of the same moment */
	u64 drain_ns;
	u64 last_flush;
	struct format_writer *writer;
	struct aggregate *aggregate;
	struct chunks *chunks;		/* NULL with --per-thread */
	struct pending pending[PENDING];
	size_t nr_pending;
	struct format_account account;
	bool failed;			/* an error has been printed */
	sigset_t old_mask;
	void (*old_sigchld)(int signal);
	struct rlimit old_limit;
	int signals;			/* signalfd */
	int target;			/* pidfd of -p, or -1 */
	pid_t child;			/* 0 if there is no command, or it has ended */
	int status;			/* of the child, as from wait() */
	u64 first_signal;		/* the time of the first signal, or 0 */
};

static u64 now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* ---- options ---- */

static void usage(FILE *out)
{
	fputs("usage: profil record [OPTION...] [--] COMMAND [ARG...]\n"
	      "       profil record [OPTION...] -p PID\n"
	      "\n"
	      "Records where a command or a running process spends its time; \"profil report\"\n"
	      "prints it.\n"
	      "\n"
	      "  -o, --output FILE   write to FILE (" COMMAND_DATA ")\n"
	      "  -p, --pid PID       record this process; requires a capability, see profil(1)\n"
	      "      --duration S    stop recording after S seconds\n"
	      "  -F, --freq HZ       ticks per second of CPU time (1000)\n"
	      "      --period TIME   time between two ticks, such as 50us or 1ms\n"
	      "      --tick          use the ticks of the kernel's scheduler\n"
	      "      --user-only     record user mode only\n"
	      "      --per-thread    distinguish threads\n"
	      "      --no-children   do not record child processes\n"
	      "  -h, --help          print this help\n", out);
}

static int parse_seconds(const char *text, u64 *ns)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	/* At most about 30 years, so that adding it to a time in ns does not overflow. */
	if (end == text || *end || !isfinite(seconds) || seconds <= 0 || seconds > 1e9) {
		warnx("--duration %s: not a number of seconds", text);
		return -1;
	}
	*ns = seconds * NS_PER_S;
	if (!*ns)
		*ns = 1;
	return 0;
}

static int parse_freq(const char *text, u64 *period)
{
	double hz;
	char *end;

	hz = strtod(text, &end);
	if (end == text || *end || !isfinite(hz) || hz <= 0 || hz > NS_PER_S) {
		warnx("--freq %s: not a number of ticks per second", text);
		return -1;
	}
	*period = llround(NS_PER_S / hz);
	return 0;
}

static int parse_period(const char *text, u64 *period)
{
	static const struct { const char *name; double ns; } units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
	};
	double number;
	char *end;

	number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (end == text || strcmp(end, units[i].name))
			continue;
		number *= units[i].ns;
		/* At most an hour; choose_period() checks the limits of the kernel. */
		if (!isfinite(number) || number < 1 || number > 3600.0 * NS_PER_S)
			break;
		*period = llround(number);
		return 0;
	}
	warnx("--period %s: not a time such as 50us or 1ms", text);
	return -1;
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct options *options)
{
	enum { USER_ONLY = 256, PER_THREAD, NO_CHILDREN, DURATION, PERIOD, TICK };
	static const struct option table[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "pid", required_argument, NULL, 'p' },
		{ "duration", required_argument, NULL, DURATION },
		{ "freq", required_argument, NULL, 'F' },
		{ "period", required_argument, NULL, PERIOD },
		{ "tick", no_argument, NULL, TICK },
		{ "user-only", no_argument, NULL, USER_ONLY },
		{ "per-thread", no_argument, NULL, PER_THREAD },
		{ "no-children", no_argument, NULL, NO_CHILDREN },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int option;
	u64 pid;

	while ((option = getopt_long(argc, argv, "+o:p:F:h", table, NULL)) >= 0) {
		if (option == 'F' || option == PERIOD || option == TICK) {
			if (options->clock_chosen) {
				warnx("--freq, --period and --tick exclude each other");
				return COMMAND_USAGE;
			}
			options->clock_chosen = true;
		}
		switch (option) {
		case 'F':
			if (parse_freq(optarg, &options->period))
				return COMMAND_USAGE;
			break;
		case PERIOD:
			if (parse_period(optarg, &options->period))
				return COMMAND_USAGE;
			break;
		case TICK:
			options->period = 0;
			break;
		case 'o':
			options->path = optarg;
			break;
		case 'p':
			if (!command_parse_number(optarg, INT_MAX, &pid)) {
				warnx("-p %s: not a process id", optarg);
				return COMMAND_USAGE;
			}
			options->pid = pid;
			break;
		case DURATION:
			if (parse_seconds(optarg, &options->duration))
				return COMMAND_USAGE;
			break;
		case USER_ONLY:
			options->user_only = true;
			break;
		case PER_THREAD:
			options->per_thread = true;
			break;
		case NO_CHILDREN:
			options->no_children = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return COMMAND_USAGE;
		}
	}
	if (options->pid ? optind < argc : optind == argc) {
		if (options->pid)
			warnx("either a command or -p, not both");
		usage(stderr);
		return COMMAND_USAGE;
	}
	if (!options->pid)
		options->command = argv + optind;
	return -1;
}

/* ---- sessions ---- */

static void print_session_error(const char *action, const struct rlimit *limit)
{
	switch (errno) {
	case ENOSYS:
		warnx(PROFIL_DEVICE " does not exist, or is too old for this command.\n"
		      "Load the profil module (as root: \"modprobe profil\")");
		break;
	case EACCES:
		warnx(PROFIL_DEVICE ": permission denied; ask root to chmod " PROFIL_DEVICE);
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

/* Opens a session with room for @nr_records, or for as many as RLIMIT_MEMLOCK allows. */
static int session_open(struct recorder *r, struct session *session, u32 mode, u32 nr_records)
{
	struct profil_open open = {
		.size = sizeof(open),
		.modes = mode,
		.fork = r->options->no_children ? PROFIL_FORK_OFF : PROFIL_FORK_SHARE,
		.exec = PROFIL_EXEC_FOLLOW,
		.nr_records = nr_records,
		.flags = r->period ? PROFIL_OPEN_JITTER : 0,
		.period = r->period,
	};

	while ((session->fd = profil_session_open(&open)) < 0) {
		if (errno != EPERM || open.nr_records <= RECORDS_MIN)
			return -1;
		open.nr_records /= 2;
	}
	session->nr_records = open.nr_records;
	if (fcntl(session->fd, F_SETFL, O_NONBLOCK))
		return -1;
	session->buffer = xcalloc(1, READ_SIZE);
	return 0;
}

/*
 * Raises the soft limit to the hard limit, because all locked memory is charged to the recorder.
 * child_run() restores the old limit for the command.
 */
static void raise_memlock(struct recorder *r, struct rlimit *limit)
{
	if (getrlimit(RLIMIT_MEMLOCK, &r->old_limit))
		memset(&r->old_limit, 0, sizeof(r->old_limit));
	*limit = r->old_limit;
	limit->rlim_cur = limit->rlim_max;
	if (setrlimit(RLIMIT_MEMLOCK, limit))
		*limit = r->old_limit;
}

static u64 tick_ns(const struct recorder *r)
{
	return r->period ? r->period : r->query.tick_ns;
}

static u64 expected_records(const struct recorder *r, u64 seconds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return seconds * NS_PER_S / tick_ns(r) * (cpus > 0 ? cpus : 1);
}

/* Returns -1 if the kernel does not allow the period that the user has chosen. */
static int choose_period(struct recorder *r)
{
	const struct profil_query *query = &r->query;

	r->period = r->options->period;
	if (!(query->features & PROFIL_FEATURE_CLOCK)) {
		if (r->options->clock_chosen && r->period) {
			warnx("this profil module only supports --tick");
			return -1;
		}
		r->period = 0;
	}
	if (!r->period || (r->period >= query->min_period && r->period <= query->max_period))
		return 0;
	if (!r->options->clock_chosen) {
		/* The administrator has set a minimum above the default period. */
		r->period = query->min_period;
		return 0;
	}
	warnx("period %llu ns: the kernel allows %llu to %llu ns (see profil(4))",
	      (unsigned long long)r->period, (unsigned long long)query->min_period,
	      (unsigned long long)query->max_period);
	return -1;
}

static int sessions_open(struct recorder *r)
{
	u32 nr = RECORDS_MIN * 4, least = RECORDS_MAX;
	struct rlimit limit;
	u64 drain;

	r->query.size = sizeof(r->query);
	raise_memlock(r, &limit);
	if (profil_query_kernel(&r->query)) {
		print_session_error(PROFIL_DEVICE, &limit);
		return -1;
	}
	if (choose_period(r))
		return -1;
	while (nr < RECORDS_MAX && nr < expected_records(r, RECORDS_S))
		nr *= 2;
	if (nr > r->query.max_records)
		nr = r->query.max_records;
	for (int i = 0; i < NR_SESSIONS; i++) {
		if (i == SYSTEM && r->options->user_only)
			break;
		if (session_open(r, &r->sessions[i], session_modes[i], nr) ||
		    profil_session_enable(r->sessions[i].fd)) {
			print_session_error("cannot open a session", &limit);
			return -1;
		}
		if (least > r->sessions[i].nr_records)
			least = r->sessions[i].nr_records;
	}
	/* Read the records twice in the time in which all CPUs together can fill the buffer. */
	drain = NS_PER_S * least / 2 / (expected_records(r, 1) + 1);
	r->drain_ns = drain < DRAIN_NS ? drain : DRAIN_NS;
	return 0;
}

static void sessions_close(struct recorder *r)
{
	for (int i = 0; i < NR_SESSIONS; i++) {
		if (r->sessions[i].fd >= 0)
			close(r->sessions[i].fd);
		r->sessions[i].fd = -1;
		free(r->sessions[i].buffer);
		r->sessions[i].buffer = NULL;
	}
}

/* ---- the command ---- */

/* The child sends this to its parent: the step that failed, and its errno. */
struct failure {
	enum { ATTACH = 1, EXEC } where;
	int error;
};

static void child_run(const struct recorder *r, int error_pipe)
{
	struct failure failure = { .where = ATTACH };

	setrlimit(RLIMIT_MEMLOCK, &r->old_limit);
	signal(SIGCHLD, r->old_sigchld);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	for (int i = 0; i < NR_SESSIONS; i++)
		if (r->sessions[i].fd >= 0 &&
		    profil_session_attach(r->sessions[i].fd, PROFIL_SCOPE_PROCESS, 0, NULL))
			goto failed;
	failure.where = EXEC;
	execvp(r->options->command[0], r->options->command);
failed:
	failure.error = errno;
	if (write(error_pipe, &failure, sizeof(failure)) < 0)
		warn("pipe");
	_exit(COMMAND_NOT_FOUND);
}

/* Returns 0, or the exit status of the recorder. */
static int command_start(struct recorder *r)
{
	const char *name = r->options->command[0];
	struct failure failure;
	ssize_t len;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC)) {
		warn("pipe");
		return COMMAND_FAILED;
	}
	r->child = fork();
	if (r->child < 0) {
		r->child = 0;
		warn("fork");
		close(pipes[0]);
		close(pipes[1]);
		return COMMAND_FAILED;
	}
	if (!r->child)
		child_run(r, pipes[1]);
	close(pipes[1]);
	do
		len = read(pipes[0], &failure, sizeof(failure));
	while (len < 0 && errno == EINTR);
	close(pipes[0]);
	/* If exec succeeds, it closes the pipe, and the parent reads nothing. */
	if (len != sizeof(failure))
		return 0;

	waitpid(r->child, NULL, 0);
	r->child = 0;
	if (failure.where == ATTACH) {
		warnx("cannot sample the command: %s", strerror(failure.error));
		return COMMAND_FAILED;
	}
	warnx("%s: %s", name, strerror(failure.error));
	return failure.error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_RUN;
}

/* ---- a running process ---- */

static int target_attach(struct recorder *r)
{
	const pid_t pid = r->options->pid;

	r->target = syscall(SYS_pidfd_open, pid, 0);
	for (int i = 0; i < NR_SESSIONS && r->target >= 0; i++) {
		if (r->sessions[i].fd < 0)
			continue;
		if (profil_session_attach_pidfd(r->sessions[i].fd, PROFIL_SCOPE_PROCESS, r->target,
						NULL))
			goto failed;
	}
	if (r->target >= 0)
		return 0;
failed:
	switch (errno) {
	case EPERM:
		warnx("process %d: permission denied: requires CAP_PERFMON or CAP_SYS_PTRACE.\n"
		      "Be root, or ask root to give a copy of the program that capability:\n"
		      "setcap cap_perfmon+ep ./profil\n"
		      "Commands that \"profil record\" starts itself require none.", pid);
		break;
	case EINVAL:	/* @pid is a thread, but not the main thread of a process */
	case ENOENT:
	case ESRCH:
	case ESTALE:
		warnx("there is no process %d", pid);
		break;
	default:
		warn("process %d", pid);
	}
	return COMMAND_FAILED;
}

/* ---- ticks ---- */

static void add_ticks(void *data, unsigned int session, struct format_sample *sample)
{
	struct recorder *r = data;

	if (session == SYSTEM) {
		sample->system = sample->user;
		sample->user = 0;
	}
	aggregate_add(r->aggregate, sample);
}

static void add_record(struct recorder *r, unsigned int session,
		       const struct profil_record *record)
{
	struct format_sample sample;
	bool known = aggregate_record(r->aggregate, record, &sample);

	sample.user = 1;
	if (!known && r->nr_pending < PENDING) {
		r->pending[r->nr_pending++] = (struct pending){ session, record->space, sample };
		return;
	}
	if (known && r->chunks)
		chunks_record(r->chunks, session, record, &sample);
	add_ticks(r, session, &sample);
}

/*
 * Adds the ticks whose records had no mapping. Records that were read later may contain the
 * mapping.
 */
static void add_pending(struct recorder *r)
{
	for (size_t i = 0; i < r->nr_pending; i++) {
		struct pending *pending = &r->pending[i];

		aggregate_place(r->aggregate, pending->space, &pending->sample);
		add_ticks(r, pending->session, &pending->sample);
	}
	r->nr_pending = 0;
}

/* Reads records until there are none, or until @outside records were read since the start. */
static void read_records(struct recorder *r, unsigned int i, u64 outside)
{
	struct session *session = &r->sessions[i];

	while (session->nr_read < outside) {
		if (!session->next) {
			session->len = profil_session_read(session->fd, session->buffer, READ_SIZE);
			session->next = profil_record_first(session->buffer, session->len);
			if (!session->next)
				return;
		}
		add_record(r, i, session->next);
		session->nr_read++;
		session->next = profil_record_next(session->buffer, session->len, session->next);
	}
}

static void update_peak_locked(struct recorder *r)
{
	u64 locked = 0;

	for (int i = 0; i < NR_SESSIONS; i++) {
		struct profil_stats stats = { .size = sizeof(stats) };

		if (r->sessions[i].fd >= 0 && !profil_session_stats(r->sessions[i].fd, &stats))
			locked += stats.locked;
	}
	if (r->account.peak_locked < locked)
		r->account.peak_locked = locked;
}

static void drain_records(struct recorder *r)
{
	for (int i = 0; i < NR_SESSIONS; i++)
		if (r->sessions[i].fd >= 0)
			read_records(r, i, UINT64_MAX);
	if (r->chunks && chunks_place(r->chunks))
		update_peak_locked(r);
}

static struct format_stats stats_of(const struct profil_stats *stats)
{
	return (struct format_stats){
		.ticks = stats->ticks,
		.hit = stats->hit,
		.outside = stats->outside,
		.saturated = stats->saturated,
		.dropped = stats->dropped,
		.dropped_overrun = stats->dropped_overrun,
		.dropped_buffer = stats->dropped_buffer,
		.dropped_contended = stats->dropped_contended,
		.dropped_exec = stats->dropped_exec,
		.dropped_exit = stats->dropped_exit,
		.dropped_record = stats->dropped_record,
		.user = stats->user,
		.system = stats->system,
		.unselected = stats->unselected,
		.missed = stats->missed,
		.expected = stats->expected,
		.locked = stats->locked,
		.unfollowed = stats->unfollowed,
		.targets = stats->targets,
	};
}

/* Makes the recording end, and prints an error message unless one was printed before. */
static int fail_recording(struct recorder *r, const char *what)
{
	if (!r->failed)
		warnx("%s: %s; recording ends", what, strerror(errno));
	r->failed = true;
	return -1;
}

static int collect_counters(struct recorder *r, unsigned int i)
{
	struct format_stats *sum = i == USER ? &r->account.user : &r->account.system;
	struct profil_stats stats = { .size = sizeof(stats) };
	struct format_stats later;
	int err;

	if (r->sessions[i].fd < 0)
		return 0;
	if (r->chunks)
		err = chunks_harvest(r->chunks, i, &stats, add_ticks, r);
	else
		err = profil_session_snapshot(r->sessions[i].fd, PROFIL_SNAPSHOT_RESET, NULL, 0,
					      &stats);
	if (err)
		return fail_recording(r, "cannot read the counters");
	later = stats_of(&stats);
	accounting_add(sum, &later);
	read_records(r, i, sum->outside);
	return 0;
}

/* Writes the new samples, and the statistics of the same moment. */
static int flush_recording(struct recorder *r)
{
	const u64 ticks = r->account.user.ticks + r->account.system.ticks;
	const u64 now = now_ns(CLOCK_MONOTONIC);

	r->last_flush = now;
	if (r->chunks)
		chunks_check(r->chunks);
	for (int i = 0; i < NR_SESSIONS; i++)
		if (collect_counters(r, i))
			return -1;
	add_pending(r);
	r->account.time = now;

	if (aggregate_flush(r->aggregate, now))
		return fail_recording(r, r->options->path);
	/* Without new ticks the statistics need not be written. */
	if (r->account.user.ticks + r->account.system.ticks == ticks)
		return 0;
	if (format_write_account(r->writer, &r->account) || format_flush(r->writer))
		return fail_recording(r, r->options->path);
	return 0;
}

/* ---- the file ---- */

/*
 * Checks that the file can be written, before the command runs. An existing file is overwritten
 * only after the command has started. Returns 1 if this created the file, 0 if the file existed, or
 * -1.
 */
static int check_output(const struct options *options)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd, new = 1, error = 0;

	fd = open(options->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) {
		new = 0;
		fd = open(options->path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0)
		error = errno;
	else if (!fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK)
		error = EBUSY;
	if (fd >= 0)
		close(fd);
	if (!error)
		return new;
	warnx("%s: %s", options->path,
	      error == EBUSY ? "another recorder is writing to it" : strerror(error));
	return -1;
}

static int create_output(struct recorder *r)
{
	struct format_meta meta = {
		.start_time = r->start_time,
		.start_monotonic = r->start,
		.tick_ns = tick_ns(r),
		.modes = r->options->user_only ? PROFIL_MODE_USER :
						 PROFIL_MODE_USER | PROFIL_MODE_SYSTEM,
	};
	struct utsname uts = {};
	char *directory;
	int err;

	if (r->options->per_thread)
		meta.flags |= FORMAT_PER_THREAD;
	if (!r->options->no_children)
		meta.flags |= FORMAT_CHILDREN;
	if (r->options->pid)
		meta.flags |= FORMAT_ATTACHED;
	uname(&uts);
	meta.hostname = uts.nodename;
	meta.release = uts.release;
	directory = getcwd(NULL, 0);
	meta.directory = directory;

	r->writer = format_create(r->options->path);
	if (!r->writer) {
		warnx("%s: %s", r->options->path, strerror(errno));
		free(directory);
		return -1;
	}
	err = format_write_meta(r->writer, &meta, r->options->command);
	if (!err)
		err = format_flush(r->writer);
	free(directory);
	return err ? fail_recording(r, r->options->path) : 0;
}

/* Ends the sessions, and writes the new samples, the last statistics and the end. */
static void finish_recording(struct recorder *r, u32 reason)
{
	struct format_end end = {
		.status = r->status,
		.reason = reason,
	};

	for (int i = 0; i < NR_SESSIONS; i++)
		if (r->sessions[i].fd >= 0)
			profil_session_disable(r->sessions[i].fd, NULL);
	if (!r->failed)
		flush_recording(r);
	sessions_close(r);
	end.time = now_ns(CLOCK_MONOTONIC);
	if (!r->failed && (format_write_account(r->writer, &r->account) ||
			   format_write_end(r->writer, &end)))
		fail_recording(r, r->options->path);
	if (format_close(r->writer) && !r->failed)
		fail_recording(r, r->options->path);
	r->writer = NULL;
	fprintf(stderr, "profil record: %s: ", r->options->path);
	accounting_print(stderr, &r->account, r->options->user_only ? PROFIL_MODE_USER :
			 PROFIL_MODE_USER | PROFIL_MODE_SYSTEM);
}

/* ---- the recording, until it ends ---- */

/* Returns true if the command has ended since the last call. */
static bool reap_child(struct recorder *r)
{
	if (!r->child || waitpid(r->child, &r->status, WNOHANG) != r->child)
		return false;
	r->child = 0;
	return true;
}

/*
 * Handles all signals that have arrived. Forwards a signal to the command if another process has
 * sent it; the terminal sends its signals to the command itself. Returns true if the recording must
 * end now: at the second signal, or at the first one if there is no command.
 */
static bool handle_signals(struct recorder *r)
{
	const u64 now = now_ns(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	bool end = false;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (r->child && info.ssi_code <= 0)
			kill(r->child, info.ssi_signo);
		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
			continue;
		if (!r->child || (r->first_signal && now - r->first_signal > SECOND_SIGNAL_NS))
			end = true;
		if (!r->first_signal)
			r->first_signal = now;
	}
	return end;
}

/*
 * Waits until a signal arrives, the process of -p ends, or a session has no targets any more; at
 * most until the time @until.
 */
static void wait_until(struct recorder *r, u64 until)
{
	struct pollfd fds[2 + NR_SESSIONS] = {
		{ .fd = r->signals, .events = POLLIN },
		{ .fd = r->target, .events = POLLIN },
	};
	const u64 now = now_ns(CLOCK_MONOTONIC);
	const u64 left = until > now ? until - now : 0;
	const struct timespec timeout = {
		.tv_sec = left / NS_PER_S,
		.tv_nsec = left % NS_PER_S,
	};

	/* Without POLLIN, ppoll() returns when all targets have ended, but not for each record. */
	for (int i = 0; i < NR_SESSIONS; i++)
		fds[2 + i].fd = r->sessions[i].ended ? -1 : r->sessions[i].fd;
	if (ppoll(fds, 2 + NR_SESSIONS, until == UINT64_MAX ? NULL : &timeout, NULL) < 0)
		return;
	for (int i = 0; i < NR_SESSIONS; i++)
		if (fds[2 + i].revents & (POLLHUP | POLLERR))
			r->sessions[i].ended = true;
	if (fds[1].revents) {
		r->sessions[USER].ended = true;
		r->sessions[SYSTEM].ended = true;
	}
}

static bool all_targets_gone(const struct recorder *r)
{
	for (int i = 0; i < NR_SESSIONS; i++)
		if (r->sessions[i].fd >= 0 && !r->sessions[i].ended)
			return false;
	return true;
}

/* Records until an event ends the recording. Returns the reason, an enum format_reason. */
static u32 record(struct recorder *r)
{
	const u64 duration = r->options->duration;
	const u64 end = duration ? r->start + duration : UINT64_MAX;
	u64 last_drain = r->start, until, now;

	r->last_flush = r->start;
	update_peak_locked(r);
	for (;;) {
		until = last_drain + r->drain_ns;
		wait_until(r, until < end ? until : end);
		if (handle_signals(r))
			return FORMAT_END_SIGNAL;
		if (reap_child(r))
			return FORMAT_END_COMMAND;
		if (!r->child && all_targets_gone(r))
			return FORMAT_END_TARGETS;
		now = now_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return FORMAT_END_DURATION;
		if (now < until)
			continue;
		drain_records(r);
		last_drain = now;
		if (now - r->last_flush >= FLUSH_NS)
			flush_recording(r);
		if (aggregate_error(r->aggregate))
			fail_recording(r, r->options->path);
		if (r->failed)
			return FORMAT_END_SIGNAL;
	}
}

/* Waits until the command ends. Returns false if a second signal ends the wait. */
static bool wait_for_command(struct recorder *r)
{
	while (r->child) {
		wait_until(r, UINT64_MAX);
		if (handle_signals(r))
			return false;
		reap_child(r);
	}
	return true;
}

static int exit_status(const struct recorder *r)
{
	if (r->child)
		return COMMAND_SIGNAL + SIGINT;
	if (WIFSIGNALED(r->status))
		return COMMAND_SIGNAL + WTERMSIG(r->status);
	if (WEXITSTATUS(r->status))
		return WEXITSTATUS(r->status);
	return r->failed ? COMMAND_FAILED : 0;
}

static int signals_open(struct recorder *r)
{
	static const int numbers[] = {
		SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	};
	sigset_t set;

	/* If SIGCHLD were ignored, the kernel would not keep the exit status of the command. */
	r->old_sigchld = signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signals >= 0)
		return 0;
	warn("signalfd");
	return -1;
}

/* Records the command or the process of -p. Returns the exit status. */
static int record_target(struct recorder *r)
{
	int fds[NR_SESSIONS], status;
	u32 reason;

	r->start = now_ns(CLOCK_MONOTONIC);
	r->start_time = now_ns(CLOCK_REALTIME);
	status = r->options->pid ? target_attach(r) : command_start(r);
	if (status)
		return status;
	if (create_output(r)) {
		/*
		 * check_output() could open the file, so this is rare. The command is running
		 * already: wait for it.
		 */
		sessions_close(r);
		r->failed = true;
		wait_for_command(r);
		return exit_status(r);
	}
	r->aggregate = aggregate_create(r->writer, r->options->per_thread, r->start);
	for (int i = 0; i < NR_SESSIONS; i++)
		fds[i] = r->sessions[i].fd;
	if (!r->options->per_thread)
		r->chunks = chunks_create(fds);

	reason = record(r);
	finish_recording(r, reason);
	chunks_free(r->chunks);
	aggregate_free(r->aggregate);
	if (reason != FORMAT_END_SIGNAL || r->failed)
		wait_for_command(r);
	return exit_status(r);
}

int command_record(int argc, char **argv)
{
	struct options options = { .path = COMMAND_DATA, .period = PERIOD_NS };
	struct recorder r = {
		.options = &options,
		.sessions = { { .fd = -1 }, { .fd = -1 } },
		.signals = -1,
		.target = -1,
	};
	int status, new;

	command_set_name(argv, "profil record");
	xmalloc_set_program_name("profil record");
	status = parse_options(argc, argv, &options);
	if (status >= 0)
		return status;
	if (sessions_open(&r)) {
		sessions_close(&r);
		return COMMAND_FAILED;
	}
	new = check_output(&options);
	if (new < 0) {
		sessions_close(&r);
		return COMMAND_FAILED;
	}
	status = signals_open(&r) ? COMMAND_FAILED : record_target(&r);
	/* If nothing was recorded, remove the file that check_output() created. */
	if (new && !r.aggregate)
		unlink(options.path);
	sessions_close(&r);
	if (r.signals >= 0)
		close(r.signals);
	if (r.target >= 0)
		close(r.target);
	return status;
}
