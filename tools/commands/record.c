// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil record: samples a command or a process, and writes a sample for each tick
 *
 * Once a second, the recorder writes the statistics of a moment, after the samples of all ticks up
 * to that moment. So the samples before the last statistics and the recorder's own ticks always add
 * up to the member outside of these statistics.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "recording/accounting.h"
#include "commands/command.h"
#include "recording/datafile.h"
#include "recording/format.h"
#include "recording/stream.h"

#define NS_PER_MS	1000000ULL
/* The maximum time between two reads of the records, and the time between two flushes. */
#define DRAIN_NS	(250 * NS_PER_MS)
#define FLUSH_NS	NS_PER_S
/* The default period. */
#define PERIOD_NS	NS_PER_MS
/*
 * A session has room for the records of this time: for at most RECORDS_MAX, and for fewer if
 * RLIMIT_MEMLOCK is too low for so many.
 */
#define ROOM_NS		NS_PER_S
#define RECORDS_MIN	64
#define RECORDS_MAX	4096
#define READ_SIZE	(64U << 10)
/* The maximum size of a record, with its path. */
#define RECORD_SIZE_MAX	(8U << 10)
/* The maximum size of the command in the file. */
#define ARGS_SIZE	(64U << 10)
/* With --rotate, this many complete files are kept if --keep is not used. */
#define KEEP		10
/* Within this time after the first signal, further signals do not end the recording. */
#define SECOND_SIGNAL_NS	(500 * NS_PER_MS)
/* After SIGINT from another process, the recording ends with the command, or after this time. */
#define INTERRUPT_NS	NS_PER_S

struct options {
	const char *path;
	bool user_only;
	bool no_children;
	bool verbose;
	u64 period;			/* in ns; 0: the scheduler's tick */
	bool freq_chosen;
	pid_t pid;			/* 0: record a command */
	u64 duration;			/* in ns; 0: no limit */
	u64 rotate;			/* in ns; 0: one file */
	u64 keep;			/* complete files; 0: KEEP */
	char **command;
};

struct recorder {
	const struct options *options;
	struct profil_query query;
	u64 period;			/* in ns; 0: the scheduler's tick */
	u64 start;			/* CLOCK_MONOTONIC, in ns */
	u64 file_start;			/* the same for the file */
	u64 file_start_time;		/* CLOCK_REALTIME of the same moment */
	u64 drain_ns;
	u64 last_flush;
	int session;			/* descriptor, or -1 */
	bool targets_gone;		/* all targets have ended */
	u64 *buffer;			/* READ_SIZE bytes */
	ssize_t len;			/* of the records in the buffer */
	const struct profil_record *next;	/* in the buffer, not added yet; or NULL */
	struct datafile file;
	struct format_writer *writer;
	struct stream stream;
	struct summary summary;		/* of this file, until print_summary() */
	struct profil_stats stats;	/* since the start */
	struct format_account before;	/* the part of the complete files */
	u64 samples_before;		/* in these */
	bool failed;			/* an error has been printed */
	sigset_t old_mask;
	void (*old_sigchld)(int signal);
	void (*old_sigpipe)(int signal);
	struct rlimit old_limit;
	int signals;			/* signalfd */
	int pidfd;			/* of -p, or -1 */
	pid_t pid;			/* the command, or the process of -p */
	pid_t child;			/* 0 if there is no command, or it has ended */
	int status;			/* of the child, as from wait() */
	u64 first_signal;		/* the time of the first signal, or 0 */
	u64 interrupted;		/* SIGINT ends the recording at this time; or UINT64_MAX */
	int end_signal;			/* the signal that has ended the recording, or 0 */
	char *command;			/* as in a shell; the program of -p */
	char *target;			/* the process, in messages */
	bool shows_progress;		/* on the terminal */
};

/* ---- options ---- */

static bool parse_freq(const char *text, u64 *period)
{
	char *end;
	double hz = strtod(text, &end);

	/* If the period does not fit in 64 bits, use another one that is too long. */
	*period = hz * NS_PER_S > 1 ? NS_PER_S / hz + 0.5 : NS_PER_S * 1e9;
	return end != text && !*end && hz > 0 && hz <= NS_PER_S;
}

static bool check_value(const struct command_setting *setting, bool valid, const char *expected)
{
	if (!valid)
		warnx("\"%s\" is not %s", setting->value, expected);
	return valid;
}

static bool set_pid(const struct command_setting *setting)
{
	pid_t *pid = setting->member;
	u64 number;
	bool valid = command_parse_number(setting->value, INT_MAX, &number);

	*pid = number;
	return check_value(setting, valid, "a process id");
}

static bool set_duration(const struct command_setting *setting)
{
	u64 *duration = setting->member;
	bool valid = command_parse_time(setting->value, duration) && *duration;

	return check_value(setting, valid, "a number of seconds");
}

static bool set_keep(const struct command_setting *setting)
{
	u64 *keep = setting->member;
	bool valid = command_parse_number(setting->value, 100000, keep) && *keep;

	return check_value(setting, valid, "a number of files from 1 to 100000");
}

static bool set_freq(const struct command_setting *setting)
{
	struct options *options = setting->member;

	options->freq_chosen = true;
	return check_value(setting, parse_freq(setting->value, &options->period),
			   "a number of ticks per second");
}

static bool set_tick(const struct command_setting *setting)
{
	u64 *period = setting->member;

	*period = 0;
	return true;
}

static const struct command_option record_options[] = {
	{ .name = "output", .letter = 'o', .value = "FILE",
	  .help = "write to FILE (" COMMAND_DATA "); - is standard output",
	  .set = command_set_text, .offset = offsetof(struct options, path) },
	{ .name = "pid", .letter = 'p', .value = "PID",
	  .help = "record this process, which may require a capability",
	  .set = set_pid, .offset = offsetof(struct options, pid) },
	{ .name = "duration", .value = "S", .help = "stop recording after S seconds",
	  .set = set_duration, .offset = offsetof(struct options, duration) },
	{ .name = "rotate", .value = "S", .help = "begin a new file every S seconds",
	  .set = set_duration, .offset = offsetof(struct options, rotate) },
	{ .name = "keep", .value = "N", .help = "keep N complete files: FILE.1 is the newest (10)",
	  .set = set_keep, .offset = offsetof(struct options, keep) },
	{ .name = "freq", .letter = 'F', .value = "HZ",
	  .help = "ticks per second of CPU time (1000)", .set = set_freq },
	{ .name = "tick", .help = "use the ticks of the kernel's scheduler",
	  .set = set_tick, .offset = offsetof(struct options, period) },
	{ .name = "user-only", .help = "record user mode only",
	  .set = command_set_true, .offset = offsetof(struct options, user_only) },
	{ .name = "no-children", .help = "do not record child processes",
	  .set = command_set_true, .offset = offsetof(struct options, no_children) },
	{ .name = "verbose", .letter = 'v', .help = "print how all ticks were counted",
	  .set = command_set_true, .offset = offsetof(struct options, verbose) },
	COMMAND_HELP
};

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct options *options)
{
	int status = command_parse(&command_record, argc, argv, options);

	if (status >= 0)
		return status;
	if (options->pid ? optind < argc : optind == argc) {
		if (options->pid)
			warnx("either a command or -p, not both");
		command_print_help(stderr, &command_record);
		return COMMAND_USAGE;
	}
	if (options->keep && !options->rotate) {
		warnx("--keep requires --rotate");
		return COMMAND_USAGE;
	}
	if (!options->keep)
		options->keep = KEEP;
	if (!options->pid)
		options->command = argv + optind;
	return -1;
}

/* ---- the session ---- */

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

static u32 modes_of(const struct recorder *r)
{
	return r->options->user_only ? PROFIL_MODE_USER : PROFIL_MODE_USER | PROFIL_MODE_SYSTEM;
}

static u64 tick_ns(const struct recorder *r)
{
	return r->period ? r->period : r->query.tick_ns;
}

/* Returns -1 if the kernel does not allow the period that the user has chosen. */
static int choose_period(struct recorder *r)
{
	const struct profil_query *query = &r->query;

	r->period = r->options->period;
	if (!r->period || (r->period >= query->min_period && r->period <= query->max_period))
		return 0;
	if (!r->options->freq_chosen) {
		/* The administrator has set a minimum above the default period. */
		r->period = query->min_period;
		return 0;
	}
	warnx("%g Hz, a period of %g us: choose at most %s Hz (%g us) and at least %g Hz (%g s)",
	      (double)NS_PER_S / r->period, r->period / 1e3,
	      number(NS_PER_S / query->min_period).text, query->min_period / 1e3,
	      (double)NS_PER_S / query->max_period, (double)query->max_period / NS_PER_S);
	return -1;
}

/* Returns the number of records that a session should have room for. */
static u32 records_wanted(const struct recorder *r)
{
	u64 wanted = ROOM_NS / tick_ns(r) * sysconf(_SC_NPROCESSORS_ONLN);

	if (wanted < RECORDS_MIN)
		return RECORDS_MIN;
	return wanted < RECORDS_MAX ? wanted : RECORDS_MAX;
}

/* Opens a session with room for records_wanted(), or for as many as RLIMIT_MEMLOCK allows. */
static int session_open(struct recorder *r)
{
	struct profil_open open = {
		.size = sizeof(open),
		.modes = modes_of(r),
		.fork = r->options->no_children ? PROFIL_FORK_OFF : PROFIL_FORK_SHARE,
		.exec = PROFIL_EXEC_FOLLOW,
	};
	struct rlimit limit;
	u64 fill_ns;
	u32 wanted;

	/* All locked memory is charged to the recorder. child_run() restores the old limit. */
	getrlimit(RLIMIT_MEMLOCK, &r->old_limit);
	limit = r->old_limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	r->query.size = sizeof(r->query);
	if (profil_query_kernel(&r->query)) {
		print_session_error(PROFIL_DEVICE, &limit);
		return -1;
	}
	if (choose_period(r))
		return -1;
	open.period = r->period;
	open.flags = r->period ? PROFIL_OPEN_JITTER : 0;
	wanted = records_wanted(r);
	if (wanted > r->query.max_records)
		wanted = r->query.max_records;
	open.nr_records = wanted;
	while ((r->session = profil_session_open(&open)) < 0) {
		if (errno != EPERM || open.nr_records <= RECORDS_MIN)
			break;
		open.nr_records /= 2;
	}
	if (r->session < 0 || fcntl(r->session, F_SETFL, O_NONBLOCK) ||
	    profil_session_enable(r->session)) {
		print_session_error("cannot open a session", &limit);
		return -1;
	}
	if (open.nr_records < wanted)
		warnx("RLIMIT_MEMLOCK (%llu KiB) allows room for only %u of %u records.\n"
		      "If the machine is busy, ticks may be lost.",
		      (unsigned long long)limit.rlim_cur / 1024, open.nr_records, wanted);
	/* Read the records twice in the time in which all CPUs together can fill the buffer. */
	fill_ns = tick_ns(r) * open.nr_records / sysconf(_SC_NPROCESSORS_ONLN);
	r->drain_ns = fill_ns / 2 < DRAIN_NS ? fill_ns / 2 : DRAIN_NS;
	return 0;
}

static void session_close(struct recorder *r)
{
	if (r->session >= 0)
		close(r->session);
	r->session = -1;
}

static void print_too_many(const char *target, u32 max)
{
	warnx("%s is sampled by as many sessions with a period as the kernel allows (%u).\n"
	      "Each \"profil record\" has one, even if another one runs it.\n"
	      "End one of them, or use --tick.", target, max);
}

/* ---- the command ---- */

/* The child writes this to memory that it shares with its parent. */
struct start {
	__u64 space;		/* the address space of the child, as long as it has this memory */
	int attach_error;	/* errno of the step that has failed */
	int exec_error;
};

static void child_run(const struct recorder *r, struct start *start)
{
	setrlimit(RLIMIT_MEMLOCK, &r->old_limit);
	signal(SIGCHLD, r->old_sigchld);
	signal(SIGPIPE, r->old_sigpipe);
	/* The output of the command must not get into the recording. */
	if (!strcmp(r->options->path, "-"))
		dup2(STDERR_FILENO, STDOUT_FILENO);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	if (profil_session_attach(r->session, PROFIL_SCOPE_PROCESS, 0, &start->space)) {
		start->attach_error = errno;
	} else {
		execvp(r->options->command[0], r->options->command);
		start->exec_error = errno;
	}
	_exit(COMMAND_NOT_FOUND);
}

/* Returns true if the command exists: if exec fails with ENOENT, its interpreter does not. */
static bool command_exists(const char *name)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin", *end;
	bool found = false;
	char *file;

	if (strchr(name, '/'))
		return !access(name, F_OK);
	for (; *path && !found; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		file = xasprintf("%.*s/%s", (int)(end - path), path, name);
		found = !access(file, F_OK);
		free(file);
	}
	return found;
}

/* Prints why the command does not run. Returns the exit status of the recorder. */
static int command_failed(const struct recorder *r, const struct start *start)
{
	const char *name = r->options->command[0];

	if (start->attach_error) {
		if (start->attach_error == EBUSY)
			print_too_many("the command", r->query.max_clocked);
		else
			warnx("cannot sample the command: %s", strerror(start->attach_error));
		return COMMAND_FAILED;
	}
	if (start->exec_error != ENOENT || !command_exists(name)) {
		warnx("%s: %s", name, strerror(start->exec_error));
		return start->exec_error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_RUN;
	}
	warnx("%s: it exists, but the interpreter that it requires does not", name);
	return COMMAND_NOT_RUN;
}

/* Returns 0, or the exit status of the recorder. */
static int command_start(struct recorder *r)
{
	struct start *start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pipes[2];
	char none;

	r->child = start == MAP_FAILED || pipe2(pipes, O_CLOEXEC) ? -1 : fork();
	if (r->child < 0) {
		warn("cannot start the command");
		r->child = 0;
		return COMMAND_FAILED;
	}
	if (!r->child)
		child_run(r, start);
	close(pipes[1]);
	/* Waits until the child has closed its end of the pipe: in exec, or at its exit. */
	while (read(pipes[0], &none, 1) < 0 && errno == EINTR)
		;
	close(pipes[0]);
	r->stream.own_space = start->space;
	if (!start->attach_error && !start->exec_error)
		return 0;
	waitpid(r->child, NULL, 0);
	r->child = 0;
	return command_failed(r, start);
}

/* ---- a running process ---- */

static int target_attach(struct recorder *r)
{
	const pid_t pid = r->options->pid;

	r->pidfd = pidfd_open(pid, 0);
	if (r->pidfd >= 0 &&
	    !profil_session_attach_pidfd(r->session, PROFIL_SCOPE_PROCESS, r->pidfd, NULL))
		return 0;
	switch (errno) {
	case EPERM:
		warnx("process %d: permission denied: requires CAP_PERFMON or CAP_SYS_PTRACE.\n"
		      "Be root, or ask root to give a copy of the program that capability:\n"
		      "setcap cap_perfmon+ep ./profil\n"
		      "or to load the module so that it allows each user's own processes:\n"
		      "modprobe -r profil && modprobe profil attach=user\n"
		      "Commands that \"profil record\" starts itself require none.", pid);
		break;
	case EBUSY:
		/* The limit for targets that another process attaches: see profil_query. */
		print_too_many("the process", 2);
		break;
	case EINVAL:	/* @pid is a thread, but not the main thread of a process */
	case ENOENT:
	case ESRCH:
	case ESTALE:
		if (r->pidfd < 0)
			warnx("there is no process %d", pid);
		else	/* It has no address space. */
			warnx("process %d executes no program: it has ended, or is in the kernel",
			      pid);
		break;
	default:
		warn("process %d", pid);
	}
	return COMMAND_FAILED;
}

/* ---- ticks ---- */

/* Adds an exec that was not followed. */
static void add_detached(struct recorder *r, const struct profil_record *record)
{
	struct format_detached detached = {
		.time = record->time,
		.pid = record->pid,
		.flags = record->flags & PROFIL_RECORD_UNREADABLE ? FORMAT_DETACHED_UNREADABLE : 0,
		.path = record->path,
	};

	format_write(r->writer, FORMAT_DETACHED, &detached);
	detached.path = xstrdup(detached.path);
	if (!array_grow(&r->summary.detached, r->summary.nr_detached, sizeof(detached)))
		xmalloc_failed(sizeof(detached));
	r->summary.detached[r->summary.nr_detached++] = detached;
}

/* Adds records until there are none, or until @ticks were added since the start. */
static void add_records(struct recorder *r, u64 ticks)
{
	bool more = true;

	while (r->stream.ticks < ticks) {
		if (!r->next && more) {
			r->len = profil_session_read(r->session, r->buffer, READ_SIZE);
			r->next = profil_record_first(r->buffer, r->len);
			/* If another record would have fitted in the buffer, there was none. */
			more = r->len > (ssize_t)(READ_SIZE - RECORD_SIZE_MAX);
		}
		if (!r->next)
			return;
		if (r->next->flags & PROFIL_RECORD_DETACHED)
			add_detached(r, r->next);
		else
			stream_record(&r->stream, r->next);
		r->next = profil_record_next(r->buffer, r->len, r->next);
	}
}

/* Makes the recording end, and prints an error message unless one was printed before. */
static int fail_recording(struct recorder *r, const char *what)
{
	if (!r->failed)
		warnx("%s: %s; recording ends", what, strerror(errno));
	r->failed = true;
	return -1;
}

/* Sets the statistics of the file: those since the start without those of the complete files. */
static void update_account(struct recorder *r)
{
	_Static_assert(sizeof(struct profil_stats) - offsetof(struct profil_stats, ticks) ==
		       sizeof(struct format_stats), "the same members");
	struct format_account *account = &r->summary.account;
	const u64 *now = (const u64 *)&r->stats.ticks, *before = (const u64 *)&r->before.stats;
	u64 *stats = (u64 *)&account->stats;

	for (size_t i = 0; i < sizeof(account->stats) / sizeof(u64); i++)
		stats[i] = now[i] - before[i];
	/* These are states. All others are sums. */
	account->stats.locked = r->stats.locked;
	account->stats.targets = r->stats.targets;
	account->own = r->stream.own - r->before.own;
	account->time = r->last_flush;
	if (account->peak_locked < r->stats.locked)
		account->peak_locked = r->stats.locked;
}

/* Writes the statistics of this moment, after the samples of all ticks that are in them. */
static int flush_recording(struct recorder *r)
{
	const u64 ticks = r->stats.ticks;

	r->last_flush = clock_ns(CLOCK_MONOTONIC);
	r->stats.size = sizeof(r->stats);
	if (profil_session_stats(r->session, &r->stats))
		return fail_recording(r, "cannot read the statistics");
	add_records(r, r->stats.outside);
	update_account(r);
	/* Without new ticks the statistics need not be written. */
	if (r->stats.ticks != ticks)
		format_write(r->writer, FORMAT_STATS, &r->summary.account);
	return format_flush(r->writer) ? fail_recording(r, r->options->path) : 0;
}

/* ---- the file ---- */

/* Returns the program that the process executes. */
static char *find_program(pid_t pid)
{
	char path[64], program[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, program, sizeof(program) - 1);
	if (len >= 0)
		program[len] = '\0';
	else	/* The link requires ptrace rights; the name does not. */
		stream_read_comm(pid, program);
	return xstrdup(program);
}

/* Returns the command with the quotes that a shell needs. Leaves out what is too long. */
static char *quote_command(char *const argv[])
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		xmalloc_failed(ARGS_SIZE);
	for (; *argv && ftell(out) < ARGS_SIZE; argv++) {
		const bool quote = !**argv || strpbrk(*argv, " \t\n'\"\\$`&|;<>()*?[]{}#~!");

		fputs(quote ? "'" : "", out);
		for (const char *at = *argv; *at && ftell(out) < ARGS_SIZE; at++) {
			putc(*at, out);
			fputs(*at == '\'' ? "\\''" : "", out);
		}
		fputs(quote ? "'" : "", out);
		fputs(argv[1] ? " " : "", out);
	}
	fclose(out);
	return text;
}

/* Begins to write to the open file. */
static int begin_file(struct recorder *r)
{
	struct utsname uts = {};
	struct format_meta meta = {
		.start_time = r->file_start_time,
		.start_monotonic = r->file_start,
		.tick_ns = tick_ns(r),
		.modes = modes_of(r),
		.flags = (r->options->no_children ? 0 : FORMAT_CHILDREN) |
			 (r->options->pid ? FORMAT_ATTACHED : 0),
		.pid = r->pid,
		.hostname = uts.nodename,
		.release = uts.release,
		.command = r->command,
	};

	uname(&uts);
	r->writer = format_create(r->file.fd);
	stream_init(&r->stream, r->writer);
	format_write(r->writer, FORMAT_META, &meta);
	return format_flush(r->writer) ? fail_recording(r, r->options->path) : 0;
}

static int create_output(struct recorder *r)
{
	const char *error = datafile_start(&r->file);

	if (!error)
		return begin_file(r);
	warnx("%s: %s", r->options->path, error);
	return -1;
}

/* Writes the functions, the last statistics and the end. */
static void end_file(struct recorder *r, u32 reason)
{
	struct format_end end = {
		.time = clock_ns(CLOCK_MONOTONIC),
		.status = r->status,
		.reason = reason,
	};

	stream_finish(&r->stream);
	format_write(r->writer, FORMAT_STATS, &r->summary.account);
	format_write(r->writer, FORMAT_END, &end);
}

/* Closes the file. Returns 0, or -1 with errno set if not all was written. */
static int close_file(struct recorder *r)
{
	u64 samples;
	int err = format_close(r->writer, &samples);

	r->samples_before += samples;
	stream_free(&r->stream);
	return err;
}

/* Completes the file, and continues in a new one. */
static int rotate(struct recorder *r)
{
	struct summary *summary = &r->summary;
	const char *error;

	if (flush_recording(r))
		return -1;
	end_file(r, FORMAT_END_ROTATE);
	if (format_flush(r->writer))
		return fail_recording(r, r->options->path);
	error = datafile_rotate(&r->file, r->options->keep);
	if (error) {
		warnx("%s: %s; recording ends", r->options->path, error);
		r->failed = true;
		return -1;
	}
	if (close_file(r))
		fail_recording(r, r->options->path);
	memcpy(&r->before.stats, &r->stats.ticks, sizeof(r->before.stats));
	r->before.own = r->stream.own;
	/* The memory does not grow with the number of files. */
	while (summary->nr_detached > 0)
		free((char *)summary->detached[--summary->nr_detached].path);
	/* The samples that follow are of ticks after the last statistics. */
	r->file_start = r->last_flush;
	r->file_start_time = clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - r->last_flush);
	return begin_file(r) || r->failed ? -1 : 0;
}

static void print_summary(struct recorder *r)
{
	r->before = (struct format_account){};
	update_account(r);
	r->summary.samples = r->samples_before;
	r->summary.path = r->options->path;
	r->summary.target = r->target;
	r->summary.tick_ns = tick_ns(r);
	r->summary.bare = r->stream.bare;
	summary_print(&r->summary);
	if (!r->options->verbose)
		return;
	fprintf(stderr, "profil record: %s: ", r->options->path);
	accounting_print(stderr, &r->summary.account, modes_of(r));
}

/* Ends the session, and writes the new samples and the end. */
static void finish_recording(struct recorder *r, u32 reason)
{
	profil_session_disable(r->session, NULL);
	if (!r->failed && !flush_recording(r)) {
		/* There may be records that are not ticks. */
		add_records(r, UINT64_MAX);
		end_file(r, reason);
	}
	session_close(r);
	if (close_file(r) && !r->failed)
		fail_recording(r, r->options->path);
	print_summary(r);
}

/*
 * Prints on the terminal that the recording continues, or removes this line if @show is false. Does
 * neither if the recorder is in the background.
 */
static void update_progress(struct recorder *r, bool show)
{
	const u64 seconds = (clock_ns(CLOCK_MONOTONIC) - r->start) / NS_PER_S;

	if (!r->shows_progress || tcgetpgrp(STDERR_FILENO) != getpgrp())
		return;
	if (show)
		fprintf(stderr, "\r%s samples, %llu s\033[K",
			number(r->stream.ticks).text, (unsigned long long)seconds);
	else
		fputs("\r\033[K", stderr);
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
 * end now: at the second signal, or at the first one if there is no command. After SIGINT from
 * another process it ends soon, because a shell lets background commands ignore SIGINT.
 */
static bool handle_signals(struct recorder *r)
{
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	bool end = false;

	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (r->child && info.ssi_code <= 0)
			kill(r->child, info.ssi_signo);
		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
			continue;
		r->end_signal = info.ssi_signo;
		if (!r->child || (r->first_signal && now - r->first_signal > SECOND_SIGNAL_NS))
			end = true;
		else if (info.ssi_signo == SIGINT && info.ssi_code <= 0)
			r->interrupted = now + INTERRUPT_NS;
		if (!r->first_signal)
			r->first_signal = now;
	}
	return end || now >= r->interrupted;
}

/*
 * Waits until a signal arrives, the process of -p ends, or the session has no targets any more; at
 * most until the time @until. With @records, also until there is a record.
 */
static void wait_until(struct recorder *r, u64 until, bool records)
{
	struct pollfd fds[] = {
		{ .fd = r->signals, .events = POLLIN },
		{ .fd = r->pidfd, .events = POLLIN },
		/* Without POLLIN, only the end of all targets ends the wait. */
		{ .fd = r->targets_gone ? -1 : r->session, .events = records ? POLLIN : 0 },
	};
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	u64 left;
	struct timespec timeout;

	if (until > r->interrupted)
		until = r->interrupted;
	left = until > now ? until - now : 0;
	timeout.tv_sec = left / NS_PER_S;
	timeout.tv_nsec = left % NS_PER_S;
	if (ppoll(fds, 3, until == UINT64_MAX ? NULL : &timeout, NULL) < 0)
		return;
	if (fds[1].revents || (fds[2].revents & (POLLHUP | POLLERR)))
		r->targets_gone = true;
}

/*
 * Records until an event ends the recording. Returns the reason, an enum format_reason. While the
 * targets are idle, the recorder sleeps.
 */
static u32 record(struct recorder *r)
{
	const u64 duration = r->options->duration;
	const u64 end = duration ? r->start + duration : UINT64_MAX;
	const u64 rotate_ns = r->options->rotate ?: UINT64_MAX - r->start;
	u64 drain = r->start + r->drain_ns, progress = UINT64_MAX, next, now, ticks;
	u64 next_file = r->start + rotate_ns;
	bool idle = false;

	r->last_flush = r->start;
	if (r->shows_progress)
		progress = r->start + NS_PER_S;
	for (;;) {
		next = idle ? progress : drain;
		if (next > next_file)
			next = next_file;
		wait_until(r, next < end ? next : end, idle);
		if (handle_signals(r))
			return FORMAT_END_SIGNAL;
		if (reap_child(r))
			return FORMAT_END_COMMAND;
		if (!r->child && r->targets_gone)
			return FORMAT_END_TARGETS;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return FORMAT_END_DURATION;
		if (now >= progress) {
			update_progress(r, true);
			progress = now + NS_PER_S;
		}
		if (now >= next_file) {
			if (rotate(r))
				return FORMAT_END_SIGNAL;
			next_file = now + rotate_ns;
		}
		if (idle)
			drain = now + r->drain_ns;
		idle = false;
		if (now < drain)
			continue;
		ticks = r->stream.ticks;
		add_records(r, UINT64_MAX);
		idle = r->stream.ticks == ticks;
		drain = now + r->drain_ns;
		if ((idle || now - r->last_flush >= FLUSH_NS) && flush_recording(r))
			return FORMAT_END_SIGNAL;
	}
}

/* Waits until the command ends, or until a second signal ends the wait. */
static void wait_for_command(struct recorder *r)
{
	bool end = false;

	while (r->child && !end) {
		wait_until(r, UINT64_MAX, false);
		end = handle_signals(r);
		reap_child(r);
	}
}

static int exit_status(const struct recorder *r)
{
	if (r->child)
		return COMMAND_SIGNAL + r->end_signal;
	if (WIFSIGNALED(r->status))
		return COMMAND_SIGNAL + WTERMSIG(r->status);
	if (WEXITSTATUS(r->status))
		return WEXITSTATUS(r->status);
	return r->failed || (r->options->pid && !r->summary.samples) ? COMMAND_FAILED : 0;
}

static int signals_open(struct recorder *r)
{
	static const int numbers[] = {
		SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	};
	sigset_t set;

	r->old_sigpipe = signal(SIGPIPE, SIG_IGN);
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

/* Returns true if there is a terminal to which only the recorder writes during the recording. */
static bool has_quiet_terminal(const struct options *options)
{
	return isatty(STDERR_FILENO) && (options->pid || !isatty(STDOUT_FILENO));
}

/* Records the command or the process of -p. Returns the exit status. */
static int record_target(struct recorder *r)
{
	int status;
	u32 reason;

	r->start = clock_ns(CLOCK_MONOTONIC);
	r->file_start = r->start;
	r->file_start_time = clock_ns(CLOCK_REALTIME);
	r->command = r->options->pid ? find_program(r->options->pid) :
				       quote_command(r->options->command);
	status = r->options->pid ? target_attach(r) : command_start(r);
	if (status)
		return status;
	r->pid = r->options->pid ?: r->child;
	r->target = xasprintf("process %d (%s)", r->pid,
			      basename(r->options->pid ? r->command : r->options->command[0]));
	r->file.is_new = false;
	if (create_output(r)) {
		/* This is rare, because datafile_open() has checked the file. */
		session_close(r);
		r->failed = true;
		wait_for_command(r);
		return exit_status(r);
	}
	r->shows_progress = has_quiet_terminal(r->options);
	reason = record(r);
	update_progress(r, false);
	finish_recording(r, reason);
	if (r->child && reason == FORMAT_END_DURATION)
		warnx("waiting for %s to end", r->target);
	if (reason != FORMAT_END_SIGNAL || r->failed)
		wait_for_command(r);
	if (r->child)
		warnx("%s continues, but is no longer recorded", r->target);
	return exit_status(r);
}

static int run(int argc, char **argv)
{
	static u64 buffer[READ_SIZE / sizeof(u64)];
	struct options options = { .path = COMMAND_DATA, .period = PERIOD_NS };
	struct recorder r = {
		.options = &options,
		.buffer = buffer,
		.file = { .fd = -1 },
		.session = -1,
		.signals = -1,
		.pidfd = -1,
		.interrupted = UINT64_MAX,
	};
	const char *error;
	int status;

	status = parse_options(argc, argv, &options);
	if (status >= 0)
		return status;
	status = COMMAND_FAILED;
	if (session_open(&r))
		goto close_session;
	error = datafile_open(&r.file, options.path);
	if (error) {
		warnx("%s: %s", options.path, error);
		goto close_session;
	}
	if (options.rotate && !datafile_is_regular(&r.file)) {
		warnx("%s: --rotate requires a regular file", options.path);
		goto abandon_file;
	}
	if (signals_open(&r))
		goto abandon_file;
	status = record_target(&r);
	close(r.signals);
	if (r.pidfd >= 0)
		close(r.pidfd);
abandon_file:
	if (!r.writer)
		datafile_abandon(&r.file);
close_session:
	session_close(&r);
	return status;
}

const struct command command_record = {
	.name = "record",
	.about = "record where a command or a running process spends its time",
	.usage = "[OPTION...] [--] COMMAND [ARG...]\n"
		 "       profil record [OPTION...] -p PID",
	.help = "Records where a command or a running process spends its time; \"profil report\"\n"
		"prints it.",
	.operand = "COMMAND",
	.options = record_options,
	.run = run,
};
