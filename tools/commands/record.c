// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil record: samples a command, processes or the machine, and writes a sample for each tick
 *
 * Once a second, the recorder writes the statistics of a moment, after the samples of all ticks up
 * to that moment. So the samples before the last statistics and the recorder's own ticks always add
 * up to the member outside of these statistics.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "commands/sampling.h"
#include "recording/datafile.h"
#include "recording/tables.h"
#include "text/accounting.h"

/* The time between two flushes. */
#define FLUSH_NS	NS_PER_S
/*
 * With unwind tables, the records are first read after this time, and then less and less often, up
 * to the second time: a record tells that a file needs its table.
 */
#define FIRST_DRAIN_NS	(NS_PER_S / 250)
#define TABLES_DRAIN_NS	(NS_PER_S / 20)
/* The time that the kernel has to free the processes that have ended, before they are counted. */
#define TARGETS_FREE_MS	500
/* With --rotate, this many complete files are kept if --keep is not used. */
#define KEEP		10

struct options {
	struct session_options session;
	const char *path;
	bool verbose;
	u64 duration;			/* in ns; 0: no limit */
	u64 rotate;			/* in ns; 0: one file */
	u64 keep;			/* complete files; 0: KEEP */
};

struct recorder {
	const struct options *options;
	struct session session;
	u64 start;			/* CLOCK_MONOTONIC, in ns */
	u64 start_time;			/* CLOCK_REALTIME of the same moment */
	u64 file_start;			/* the same for the file */
	u64 file_start_time;
	u64 last_flush;
	struct datafile file;
	struct format_writer *writer;
	struct summary summary;		/* of this file, until print_summary() */
	struct profil_stats stats;	/* since the start */
	struct format_account before;	/* the part of the complete files */
	u64 samples_before;		/* in these */
	u64 dropped_user;		/* the dropped ticks in user mode that these count */
	bool failed;			/* an error has been printed */
	bool shows_progress;		/* on the terminal */
};

/* ---- options ---- */

static bool set_keep(const struct command_setting *setting)
{
	u64 *keep = setting->member;
	bool valid = command_parse_number(setting->value, 100000, keep) && *keep;

	return command_check_value(setting, valid, "a number of files from 1 to 100000");
}

static bool set_event(const struct command_setting *setting)
{
	if (!strcmp(setting->value, "cpu-clock") || !strcmp(setting->value, "task-clock"))
		return true;
	warnx("-e %s: there is one event: CPU time (cpu-clock); leave -e out", setting->value);
	return false;
}

static const struct command_option record_options[] = {
	{ .name = "output", .letter = 'o', .value = "FILE",
	  .help = "write to FILE (" COMMAND_DATA "); - is standard output",
	  .set = command_set_text, .offset = offsetof(struct options, path) },
	{ .name = "duration", .value = "S", .help = "stop recording after S seconds",
	  .set = command_set_time, .offset = offsetof(struct options, duration) },
	{ .name = "rotate", .value = "S", .help = "begin a new file every S seconds",
	  .set = command_set_time, .offset = offsetof(struct options, rotate) },
	{ .name = "keep", .value = "N", .help = "keep N complete files: FILE.1 is the newest (10)",
	  .set = set_keep, .offset = offsetof(struct options, keep) },
	SESSION_OPTIONS(struct options),
	SESSION_STACKS_OPTION(struct options,
			      "record the callers, too (fp: through frame pointers only)"),
	{ .name = "runtimes",
	  .help = "let node, python, java and .NET name their code",
	  .set = command_set_true, .offset = offsetof(struct options, session.runtimes) },
	{ .name = "call-graph", .value = "METHOD",
	  .set = session_set_stacks, .offset = offsetof(struct options, session) },
	{ .name = "event", .letter = 'e', .value = "EVENT", .set = set_event },
	{ .name = "verbose", .letter = 'v', .help = "print how all ticks were counted",
	  .set = command_set_true, .offset = offsetof(struct options, verbose) },
	COMMAND_HELP
};

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct options *options)
{
	int status = session_parse_options(&command_record, argc, argv, options,
					   &options->session);

	if (status >= 0)
		return status;
	if (options->keep && !options->rotate) {
		warnx("--keep requires --rotate");
		return COMMAND_USAGE;
	}
	if (!options->keep)
		options->keep = KEEP;
	return -1;
}

/* ---- ticks ---- */

/* Adds an exec that was not followed. */
static void add_detached(void *data, const struct profil_record *record)
{
	struct recorder *r = data;
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
	account->own = r->session.stream.own - r->before.own;
	account->time = r->last_flush;
	if (account->peak_locked < r->stats.locked)
		account->peak_locked = r->stats.locked;
}

/*
 * While the session is on, leaves the ticks out of the statistics whose records have not come yet:
 * a record comes when its task returns to user mode. A session of the recorder counts no hits, so
 * each tick that was not dropped leaves a record. Nobody knows the modes of dropped ticks before
 * all records have come. A complete file cannot change, so what it says of them stays.
 */
static void leave_out_pending(struct recorder *r)
{
	const struct stream *stream = &r->session.stream;
	const u64 least = stream->user + r->dropped_user;
	struct profil_stats *stats = &r->stats;
	const u64 most = least + stats->dropped - r->before.stats.dropped;

	if (stats->state == PROFIL_STATE_ON) {
		stats->outside = stream->ticks;
		stats->ticks = stream->ticks + stats->dropped;
	}
	if (stats->user < least)
		stats->user = least;
	if (stats->user > most)
		stats->user = most;
	stats->system = stats->ticks - stats->user;
}

/* Writes the statistics of this moment, after the samples of all ticks that are in them. */
static int flush_recording(struct recorder *r)
{
	const u64 ticks = r->stats.ticks;

	r->last_flush = clock_ns(CLOCK_MONOTONIC);
	r->stats.size = sizeof(r->stats);
	if (profil_session_stats(r->session.fd, &r->stats))
		return fail_recording(r, "cannot read the statistics");
	session_add_records(&r->session, r->stats.outside);
	leave_out_pending(r);
	update_account(r);
	/* Without new ticks the statistics need not be written. */
	if (r->stats.ticks != ticks)
		format_write(r->writer, FORMAT_STATS, &r->summary.account);
	return format_flush(r->writer) ? fail_recording(r, r->options->path) : 0;
}

/* ---- the file ---- */

/* Returns bits of format_meta.flags. */
static u32 target_flags(const struct session_options *options)
{
	const u32 flags = (options->stacks ? FORMAT_STACKS : 0) |
			  (options->runtimes ? FORMAT_RUNTIMES : 0);

	if (options->all)
		return FORMAT_MACHINE | flags;
	return (options->no_children ? 0 : FORMAT_CHILDREN) |
	       (options->pids ? FORMAT_ATTACHED : 0) | flags;
}

/* Begins to write to the open file. */
static int begin_file(struct recorder *r)
{
	struct utsname uts = {};
	struct format_meta meta = {
		.start_time = r->file_start_time,
		.start_monotonic = r->file_start,
		.tick_ns = session_tick_ns(&r->session),
		.modes = session_modes(&r->session),
		.flags = target_flags(&r->options->session),
		.pid = r->session.pid,
		.hostname = uts.nodename,
		.release = uts.release,
		.command = r->session.command,
	};

	uname(&uts);
	r->writer = format_create(r->file.fd);
	stream_init(&r->session.stream, r->writer);
	r->session.stream.start = r->file_start;
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
		.status = r->session.status,
		.reason = reason,
	};
	int ignored;

	ignored = stream_finish(&r->session.stream);
	if (ignored)
		warnx("JIT compilers: %d file%s too large; names are missing", ignored,
		      ignored == 1 ? " is" : "s are");
	format_write(r->writer, FORMAT_STATS, &r->summary.account);
	format_write(r->writer, FORMAT_END, &end);
}

/* Closes the file. Returns 0, or -1 with errno set if not all was written. */
static int close_file(struct recorder *r)
{
	u64 samples;
	int err = format_close(r->writer, &samples);

	if (r->options->session.runtimes)
		runtimes_clean(&r->session, r->start_time);
	r->samples_before += samples;
	stream_free(&r->session.stream);
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
	r->before.own = r->session.stream.own;
	r->dropped_user = r->stats.user - r->session.stream.user;
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
	r->summary.target = r->session.target;
	r->summary.machine = r->session.machine;
	r->summary.tick_ns = session_tick_ns(&r->session);
	r->summary.bare = r->session.stream.bare;
	r->summary.completeness = r->session.stream.completeness;
	r->summary.tables_refused = tables_stats(r->session.stream.tables).refused;
	r->summary.tables_late = tables_stats(r->session.stream.tables).late;
	summary_print(&r->summary);
	if (!r->options->verbose)
		return;
	fprintf(stderr, "profil record: %s: ", r->options->path);
	accounting_print(stderr, &r->summary.account, session_modes(&r->session),
			 r->options->session.all);
}

/* Returns true if processes that still run after this end belong to the command. */
static bool is_end_of_target(const struct recorder *r, u32 reason)
{
	const struct session_options *options = &r->options->session;

	return reason == FORMAT_END_COMMAND && !options->all && !options->pids;
}

/* The kernel frees a process, and so a target, some time after its end. */
static void wait_for_targets(const struct recorder *r)
{
	struct pollfd gone = { .fd = r->session.fd };

	poll(&gone, 1, TARGETS_FREE_MS);
}

/* Ends the session, and writes the new samples and the end. */
static void finish_recording(struct recorder *r, u32 reason)
{
	profil_session_disable(r->session.fd, NULL);
	if (is_end_of_target(r, reason))
		wait_for_targets(r);
	if (!r->failed && !flush_recording(r)) {
		/* There may be records that are not ticks. */
		session_add_records(&r->session, UINT64_MAX);
		end_file(r, reason);
	}
	session_close(&r->session);
	if (close_file(r) && !r->failed)
		fail_recording(r, r->options->path);
	if (is_end_of_target(r, reason))
		r->summary.left = r->stats.targets;
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
			number(r->session.stream.ticks - r->session.stream.own).text,
			(unsigned long long)seconds);
	else
		fputs("\r\033[K", stderr);
}

/* ---- the recording, until it ends ---- */

/* Returns the time from @now to the next reading of the records. */
static u64 drain_interval(const struct recorder *r, u64 now)
{
	u64 interval = now - r->start;

	if (interval < FIRST_DRAIN_NS)
		interval = FIRST_DRAIN_NS;
	if (interval > TABLES_DRAIN_NS)
		interval = TABLES_DRAIN_NS;
	if (!r->session.stream.tables || interval > r->session.drain_ns)
		interval = r->session.drain_ns;
	return interval;
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
	u64 drain = r->start + drain_interval(r, r->start), progress = UINT64_MAX, next, now, ticks;
	u64 next_file = r->start + rotate_ns;
	bool idle = false;

	r->last_flush = r->start;
	if (r->shows_progress)
		progress = r->start + NS_PER_S;
	for (;;) {
		next = idle ? progress : drain;
		if (next > next_file)
			next = next_file;
		session_wait(&r->session, next < end ? next : end, idle);
		if (session_handle_signals(&r->session))
			return FORMAT_END_SIGNAL;
		if (session_reap(&r->session))
			return FORMAT_END_COMMAND;
		if (!r->session.child && r->session.targets_gone)
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
			drain = now + drain_interval(r, now);
		idle = false;
		if (now < drain)
			continue;
		ticks = r->session.stream.ticks;
		session_add_records(&r->session, UINT64_MAX);
		idle = r->session.stream.ticks == ticks;
		drain = now + drain_interval(r, now);
		if ((idle || now - r->last_flush >= FLUSH_NS) && flush_recording(r))
			return FORMAT_END_SIGNAL;
	}
}

static int exit_status(const struct recorder *r)
{
	/* With --rotate, an idle period is part of a long recording. */
	const bool wants_samples = !r->options->session.command && !r->options->rotate;

	return session_status(&r->session, r->failed || (wants_samples && !r->summary.samples));
}

/* Returns true if there is a terminal to which only the recorder writes during the recording. */
static bool has_quiet_terminal(const struct options *options)
{
	return isatty(STDERR_FILENO) && (!options->session.command || !isatty(STDOUT_FILENO));
}

/* Records the command, the processes of -p, or the machine. Returns the exit status. */
static int record_target(struct recorder *r)
{
	int status;
	u32 reason;

	session_give_tables(&r->session);
	r->start = clock_ns(CLOCK_MONOTONIC);
	r->file_start = r->start;
	r->start_time = clock_ns(CLOCK_REALTIME);
	r->file_start_time = r->start_time;
	status = session_start(&r->session);
	if (status)
		return status;
	r->file.is_new = false;
	if (create_output(r)) {
		/* This is rare, because datafile_open() has checked the file. */
		session_close(&r->session);
		r->failed = true;
		session_wait_for_command(&r->session);
		return exit_status(r);
	}
	r->shows_progress = has_quiet_terminal(r->options);
	reason = record(r);
	update_progress(r, false);
	finish_recording(r, reason);
	if (r->session.child && reason == FORMAT_END_DURATION)
		warnx("waiting for %s to end", r->session.child_name);
	if (reason != FORMAT_END_SIGNAL || r->failed)
		session_wait_for_command(&r->session);
	if (r->session.child)
		warnx("%s continues, but is no longer recorded", r->session.child_name);
	return exit_status(r);
}

static int run(int argc, char **argv)
{
	struct options options = { .session = SESSION_OPTIONS_INIT, .path = COMMAND_DATA };
	struct recorder r = {
		.options = &options,
		.session = SESSION_INIT(&options.session),
		.file = { .fd = -1 },
	};
	const char *error;
	int status;

	status = parse_options(argc, argv, &options);
	if (status >= 0)
		return status;
	status = COMMAND_FAILED;
	r.session.data = &r;
	r.session.add_detached = add_detached;
	/* The output of the command must not get into the recording. */
	if (!strcmp(options.path, "-"))
		r.session.streams[STDOUT_FILENO] = STDERR_FILENO;
	if (session_open(&r.session))
		goto free_session;
	error = datafile_open(&r.file, options.path);
	if (error) {
		warnx("%s: %s", options.path, error);
		goto free_session;
	}
	if (options.rotate && !datafile_is_regular(&r.file)) {
		warnx("%s: --rotate requires a regular file", options.path);
		goto abandon_file;
	}
	if (!session_take_signals(&r.session))
		status = record_target(&r);
abandon_file:
	if (!r.writer)
		datafile_abandon(&r.file);
free_session:
	session_free(&r.session);
	return status;
}

const struct command command_record = {
	.name = "record",
	.about = "record where a command, a process or the machine spends its time",
	.usage = "[OPTION...] [--] COMMAND [ARG...]\n"
		 "       profil record [OPTION...] -p PID [[--] COMMAND [ARG...]]\n"
		 "       profil record [OPTION...] -a [[--] COMMAND [ARG...]]",
	.help = "Records where a command, a running process, or with -a every process spends its\n"
		"time; \"profil report\" prints it. With -p and -a, COMMAND sets the duration.",
	.operand = "COMMAND",
	.options = record_options,
	.run = run,
};
