/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session of the kernel, and the command, the processes or the machine that it samples
 *
 * Functions that can fail print an error message.
 */
#ifndef PROFIL_TOOLS_SAMPLING_H
#define PROFIL_TOOLS_SAMPLING_H

#include <signal.h>
#include <sys/resource.h>

#include <linux/profil.h>

#include "commands/command.h"
#include "recording/stream.h"

/**
 * struct session_options - Options from the user
 * @period: In ns; 0: the scheduler's tick.
 * @freq_chosen: The user has chosen @period.
 * @freq_max: It is the shortest one that the kernel allows.
 * @user_only: Sample user mode only.
 * @no_children: Do not sample child processes.
 * @stacks: Record stacks.
 * @frame_pointers: Do so without unwind tables.
 * @runtimes: Make the runtimes of the command write the names of the code that they generate.
 * @all: Sample the machine: every process.
 * @pids: The processes to sample, and 0; or NULL.
 * @command: The command and its arguments; or NULL. With @all or @pids, it is not sampled for
 *	itself, but ends the session when it ends.
 */
struct session_options {
	u64 period;
	bool freq_chosen;
	bool freq_max;
	bool user_only;
	bool no_children;
	bool stacks;
	bool frame_pointers;
	bool runtimes;
	bool all;
	pid_t *pids;
	char **command;
};

/* The initial value of a struct session_options */
#define SESSION_OPTIONS_INIT { .period = 1000000 }

/* The options, for the table of a command whose structure @type has the member session */
#define SESSION_OPTIONS(type)								\
	{ .name = "all", .letter = 'a',							\
	  .help = "sample every process (requires a capability)",			\
	  .set = command_set_true, .offset = offsetof(type, session.all) },		\
	{ .name = "pid", .letter = 'p', .value = "PID",					\
	  .help = "sample processes: PID or NAME (may require a capability)",		\
	  .set = session_set_pids, .offset = offsetof(type, session.pids) },		\
	{ .name = "freq", .letter = 'F', .value = "HZ",					\
	  .help = "ticks per second of CPU time (1000); max is the most",		\
	  .set = session_set_freq, .offset = offsetof(type, session) },			\
	{ .name = "tick", .help = "use the ticks of the kernel's scheduler",		\
	  .set = session_set_tick, .offset = offsetof(type, session.period) },		\
	{ .name = "user-only", .help = "sample user mode only",				\
	  .set = command_set_true, .offset = offsetof(type, session.user_only) },	\
	{ .name = "no-children", .help = "do not sample child processes",		\
	  .set = command_set_true, .offset = offsetof(type, session.no_children) }

/* Likewise, the option for stacks, with the text for --help */
#define SESSION_STACKS_OPTION(type, help_)						\
	{ .name = "stacks", .letter = 'g', .value = "fp", .is_optional = true,		\
	  .help = help_,								\
	  .set = session_set_stacks, .offset = offsetof(type, session),			\
	  .word = session_stacks_word }

/* ---- options.c ---- */

/* For @set and @word of these options */
bool session_set_pids(const struct command_setting *setting);
bool session_set_freq(const struct command_setting *setting);
bool session_set_tick(const struct command_setting *setting);
bool session_set_stacks(const struct command_setting *setting);
struct command_word session_stacks_word(size_t index);

/*
 * Parses the options of @command into its structure @parsed, which has the member @options, and
 * then the command to sample. Returns the exit status, or -1 if the command shall continue.
 */
int session_parse_options(const struct command *command, int argc, char **argv, void *parsed,
			  struct session_options *options);

/**
 * struct session - A session, and its target
 * @options: The options.
 * @streams: The descriptors that the command gets as its standard streams.
 * @input: Input on this descriptor ends session_wait(); or -1.
 * @signals_of_caller: Signals that session_handle_signals() only adds to @arrived.
 * @data: For @add_detached.
 * @add_detached: Called for each exec that was not followed; or NULL.
 * @stream: The records go there. The caller begins and ends it.
 * @pid: The command, or the first process of -p; 0 if there is none.
 * @child: The command; 0 if there is none, or it has ended.
 * @status: Its status, as from wait().
 * @command: The command as in a shell; the program of -p; with -a, a description.
 * @child_name: The command, in messages; or NULL.
 * @target: The process, in messages; or NULL.
 * @machine: The machine, in messages; NULL without -a.
 * @drain_ns: The records should be read this often.
 * @targets_gone: All targets have ended.
 * @end_signal: The signal that has ended the session, or 0.
 * @arrived: Those of @signals_of_caller that have arrived. The caller removes them.
 */
struct session {
	/* Set by the caller. */
	const struct session_options *options;
	int streams[3];
	int input;
	sigset_t signals_of_caller;
	void *data;
	void (*add_detached)(void *data, const struct profil_record *record);

	struct stream stream;
	pid_t pid;
	pid_t child;
	int status;
	char *command;
	char *child_name;
	char *target;
	char *machine;
	u64 drain_ns;
	bool targets_gone;
	int end_signal;
	sigset_t arrived;
	int fd;				/* or -1 */

	/* Only the files of these functions use these. */
	struct profil_query query;
	u64 period;			/* in ns; 0: the scheduler's tick */
	const struct profil_record *next;	/* in the buffer, not added yet; or NULL */
	struct batch *collected, **last_collected;
	size_t nr_collected;
	sigset_t old_mask;
	void (*old_sigchld)(int signal);
	void (*old_sigpipe)(int signal);
	struct rlimit old_limit;
	int signals;			/* signalfd, or -1 */
	int pidfd;			/* of the only process of -p, or -1 */
	u64 first_signal;		/* the time of the first signal, or 0 */
	u64 interrupted;		/* SIGINT ends the session at this time; or UINT64_MAX */
};

/* The initial value of a struct session */
#define SESSION_INIT(options_) {							\
	.options = options_, .streams = { 0, 1, 2 }, .input = -1, .fd = -1,		\
	.signals = -1, .pidfd = -1, .interrupted = UINT64_MAX,				\
}

/* ---- limits.c ---- */

/* Opens the session, without targets. Returns 0 or -1. */
int session_open(struct session *s);

/* Ends the session. */
void session_close(struct session *s);

/* Closes all of it. */
void session_free(struct session *s);

/* Returns PROFIL_MODE_* bits. */
u32 session_modes(const struct session *s);

/* Returns the period in ns. */
u64 session_tick_ns(const struct session *s);

/* ---- targets.c ---- */

/* Gives the unwind tables that will be needed, so that the first stacks are complete. */
void session_give_tables(struct session *s);

/*
 * Attaches the process or the machine, and starts the command. Returns 0, or the exit status of
 * profil.
 */
int session_start(struct session *s);

/* ---- runtimes.c ---- */

/* Sets the environment variables with which runtimes write maps of their code. */
void runtimes_ask(void);

/*
 * Removes the maps of recorded processes that have ended, if they were created since @since, which
 * is a time of CLOCK_REALTIME in ns.
 */
void runtimes_clean(struct session *s, u64 since);

/* ---- reading.c ---- */

/* Adds records until there are none, or until @ticks were added since the start. */
void session_add_records(struct session *s, u64 ticks);

/* Reads the records of the session @data into memory: session_add_records() adds them later. */
void session_collect(void *data);

/*
 * Waits until a signal arrives, the session has no targets any more, or the process of -p ends, if
 * it is the only one; at most until the time @until. With @records, also until there is a record.
 */
void session_wait(struct session *s, u64 until, bool records);

/* ---- signals.c ---- */

/* From then on, session_handle_signals() handles signals. Returns 0 or -1. */
int session_take_signals(struct session *s);

/*
 * Handles all signals that have arrived. Forwards a signal to the command if another process has
 * sent it; the terminal sends its signals to the command itself. Returns true if the session must
 * end now: at the second signal, or at the first one if there is no command. After SIGINT from
 * another process it ends soon, because a shell lets background commands ignore SIGINT.
 */
bool session_handle_signals(struct session *s);

/* Returns true if the command has ended since the last call. */
bool session_reap(struct session *s);

/* Waits until the command ends, or until a second signal ends the wait. */
void session_wait_for_command(struct session *s);

/* Returns the exit status of profil. @failed: it has failed itself. */
int session_status(const struct session *s, bool failed);

#endif /* PROFIL_TOOLS_SAMPLING_H */
