// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil top: samples a command, a process or the machine, and shows the hottest functions or calls
 *
 * This records into memory. At each refresh the recording ends, as at each --rotate of profil
 * record; its rows are added to the window, and the next one begins. So names are found by the same
 * code as in a recording and its report, a second after the sample at the latest by default.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <profil.h>

#include "commands/input.h"
#include "commands/sampling.h"
#include "profile/buffer.h"
#include "profile/escape.h"
#include "profile/recent_calls.h"
#include "profile/window.h"
#include "text/accounting.h"
#include "text/screen.h"
#include "text/text.h"

/* A recording with this many samples ends before the refresh, to limit its size. */
#define SAMPLES_MAX	(1U << 16)
/* Lines of a screen around the header and the rows: a blank line, the titles, and the rest */
#define LINES_AROUND	3

struct options {
	struct session_options session;
	struct rows rows;		/* has the keys of the first view */
	u64 delay;			/* in ns */
	u64 count;			/* of tables; 0: no limit */
	bool batch;
};

/* The numbers of the header */
struct numbers {
	u64 seconds;			/* since the start */
	double hz;			/* samples per second */
	double cpus;
	u64 lost;
	u64 missed;
};

enum reason {
	CONTINUE = 0,
	BY_SIGNAL,
	BY_TARGETS,			/* they ended */
	BY_COUNT,
	BY_KEY,
	BY_ERROR,
};

struct top {
	const struct options *options;
	struct session session;
	struct window *window;
	struct recent_calls *calls;	/* with --stacks; or NULL */
	struct text_options output;
	bool has_screen;
	bool is_paused;
	bool is_shown;			/* the current slot of the window was shown */
	size_t view;			/* an index of views[] */

	int file;			/* the recording in memory */
	struct format_writer *writer;
	u64 segment;			/* stream.ticks when it began */

	u64 start;			/* or the last reset */
	u64 last;			/* the last refresh */
	u64 last_samples;
	struct profil_stats stats;	/* at the last refresh */
	struct profil_stats base;	/* at the start or the last reset */
	struct numbers numbers;
	struct rows rows;		/* of the window, with the keys of the view, for show() */
	u64 nr_tables;			/* printed */
	u64 left;			/* tables until the end; or 0 */
	u64 nr_detached;		/* execs that were not followed */
	char *detached;			/* the program of the last one */
};

/* ---- options ---- */

/* The keys that do not depend on a single sample are the first ones. */
static struct command_word key_word(size_t index)
{
	const char *name = index <= ROWS_BY_SYSCALL ? row_keys[index].name : NULL;

	return (struct command_word) { .name = name };
}

static bool set_count(const struct command_setting *setting)
{
	bool valid = command_parse_number(setting->value, UINT64_MAX, setting->member);

	return command_check_value(setting, valid, "a number of tables");
}

static const struct command_option options[] = {
	{ .name = "delay", .letter = 'd', .value = "S", .help = "refresh every S seconds (1)",
	  .set = command_set_time, .offset = offsetof(struct options, delay) },
	{ .name = "sort", .letter = 's', .value = "KEYS",
	  .help = "print a line for each combination of KEYS",
	  .set = input_set_keys, .offset = offsetof(struct options, rows),
	  .word = key_word, .is_list = true },
	{ .name = "batch", .letter = 'b', .help = "print plain tables, one after another",
	  .set = command_set_true, .offset = offsetof(struct options, batch) },
	{ .name = "count", .letter = 'n', .value = "N", .help = "end after N tables",
	  .set = set_count, .offset = offsetof(struct options, count) },
	SESSION_STACKS_OPTION(struct options, "show the hottest calls as a tree"),
	SESSION_OPTIONS(struct options),
	COMMAND_HELP
};

static void set_default_keys(struct rows *rows, bool is_machine)
{
	if (is_machine)
		rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_COMM];
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_DSO];
	rows->keys[rows->nr_keys++] = &row_keys[ROWS_BY_SYMBOL];
}

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct options *chosen)
{
	int status = session_parse_options(&command_top, argc, argv, chosen, &chosen->session);

	if (status >= 0)
		return status;
	if (!chosen->rows.nr_keys)
		set_default_keys(&chosen->rows, chosen->session.all);
	return -1;
}

/* ---- the recording in memory ---- */

static bool fail(const char *what)
{
	screen_close();
	warn("%s", what);
	return false;
}

static bool segment_begin(struct top *t)
{
	int fd;

	if (ftruncate(t->file, 0) || lseek(t->file, 0, SEEK_SET))
		return fail("memory for samples");
	fd = fcntl(t->file, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fail("memory for samples");
	t->writer = format_create(fd);
	t->segment = t->session.stream.ticks;
	stream_init(&t->session.stream, t->writer);
	return true;
}

static void advance(struct top *t)
{
	window_advance(t->window);
	if (t->calls)
		recent_calls_advance(t->calls);
}

/* Adds the rows of the recording to the window. */
static bool segment_add(struct top *t)
{
	const struct recording_filter filter = { .cpu = -1, .keep_stacks = t->calls };
	struct rows rows = { .demangle = true, .recorded = true };
	struct format_reader *reader;
	struct recording *recording;
	const char *error;
	int fd;

	fd = lseek(t->file, 0, SEEK_SET) ? -1 : fcntl(t->file, F_DUPFD_CLOEXEC, 0);
	reader = fd < 0 ? NULL : format_open_fd(fd, &error);
	if (!reader)
		return fail("memory for samples");
	recording = recording_load(reader, &filter);
	window_keys(&rows);
	rows.options.keep_parts = t->calls;
	rows.options.chains = t->calls;
	rows_make(&rows, recording);
	if (t->is_shown)
		advance(t);
	t->is_shown = false;
	window_add(t->window, &rows);
	if (t->calls)
		recent_calls_add(t->calls, &rows);
	rows_free(&rows);
	recording_free(recording);
	return true;
}

/* Ends the recording. While the view is paused, its samples are not used. */
static bool segment_end(struct top *t)
{
	if (!t->is_paused)
		stream_finish(&t->session.stream);
	stream_free(&t->session.stream);
	if (format_close(t->writer, NULL))
		return fail("memory for samples");
	return t->is_paused || segment_add(t);
}

static void add_detached(void *data, const struct profil_record *record)
{
	struct top *t = data;

	free(t->detached);
	t->detached = xstrdup(record->path);
	t->nr_detached++;
}

/* ---- the table ---- */

/*
 * The keys of the second view are those of the options. The first view, the calls, is there with
 * --stacks only.
 */
static const struct view {
	enum rows_by keys[3];
	size_t nr_keys;
} views[] = {
	{ .nr_keys = 0 },
	{ .nr_keys = 0 },
	{ { ROWS_BY_DSO }, 1 },
	{ { ROWS_BY_COMM }, 1 },
	{ { ROWS_BY_PROCESS }, 1 },
	{ { ROWS_BY_THREAD }, 1 },
	{ { ROWS_BY_SYSCALL }, 1 },
	{ { ROWS_BY_COMM, ROWS_BY_DSO, ROWS_BY_SYMBOL }, 3 },
};

#define NR_VIEWS (sizeof(views) / sizeof(*views))
#define VIEW_CALLS 0
#define VIEW_CHOSEN 1

/* Shows the view that is @step views after the current one. */
static void change_view(struct top *t, size_t step)
{
	t->view = (t->view + step) % NR_VIEWS;
	if (t->view == VIEW_CALLS && !t->calls)
		t->view = (t->view + step) % NR_VIEWS;
}

static void update_rows(struct top *t)
{
	const struct view *view = &views[t->view];

	rows_free(&t->rows);
	t->rows = t->options->rows;
	for (size_t i = 0; i < view->nr_keys; i++)
		t->rows.keys[i] = &row_keys[view->keys[i]];
	t->rows.nr_keys = view->nr_keys ?: t->rows.nr_keys;
	window_rows(t->window, &t->rows);
}

static void print_share(FILE *out, const struct text_table *table, const struct row *row)
{
	const double share = row_share(table->rows, row);
	const char *colour = text_colour(table->options, share);

	fprintf(out, "%s%7.2f%%%s %5.2f%%", colour, 100 * share, *colour ? TEXT_PLAIN : "",
		100 * row_error(table->rows, row));
}

/* Prints a line of the header, and frees it. */
static void print_line(FILE *out, const struct top *t, char *line)
{
	char *escaped = escape_text(line);

	escape_fit(escaped, t->output.width);
	fprintf(out, "%s\n", escaped);
	free(escaped);
	free(line);
}

/* Returns the number of lines. */
static int print_header(FILE *out, const struct top *t)
{
	const double window = (double)window_time(t->window) / NS_PER_S;
	const struct numbers *n = &t->numbers;
	int lines = 2;

	char process[32] = "", cpu[32] = "";

	/* The CPU time of the machine is not measured. */
	if (!t->session.machine) {
		snprintf(process, sizeof(process), ", process %d", t->session.pid);
		snprintf(cpu, sizeof(cpu), ", CPU %.0f%%", 100 * n->cpus);
	}
	print_line(out, t, xasprintf("profil top: %s%s, %llu s%s", t->session.command, process,
				     (unsigned long long)n->seconds,
				     t->is_paused ? " (paused)" : ""));
	print_line(out, t, xasprintf("%s samples/s%s; last %.*f s: %s samples; "
				     "lost %s, missed %s", number(n->hz + 0.5).text, cpu,
				     window < 10 ? 1 : 0, window, number(t->rows.nr_ticks).text,
				     number(n->lost).text, number(n->missed).text));
	if (t->calls) {
		print_line(out, t, xasprintf("%.0f%% of the call stacks are complete",
					     floor(100 * recent_calls_complete(t->calls))));
		lines++;
	}
	if (t->nr_detached) {
		print_line(out, t, xasprintf("not followed: %s (%s execs in all)", t->detached,
					     number(t->nr_detached).text));
		lines++;
	}
	if (t->stats.unfollowed) {
		print_line(out, t, xasprintf("warning: %s forks or execs were not followed",
					     number(t->stats.unfollowed).text));
		lines++;
	}
	if (t->has_screen) {
		print_line(out, t, xstrdup("keys: q quit, p pause, r reset, s or arrows columns"));
		lines++;
	}
	return lines;
}

static void print_table(FILE *out, struct top *t)
{
	struct text_table table = {
		.rows = &t->rows,
		.options = &t->output,
		.numbers = "   share     +-",
		.print_numbers = print_share,
	};
	const struct call_node *nodes;
	size_t lines, nr;

	text_get_terminal(&t->output);
	update_rows(t);
	lines = print_header(out, t) + LINES_AROUND;
	t->output.lines = t->output.height > lines ? t->output.height - lines : 1;
	if (t->rows.nr && t->view == VIEW_CALLS) {
		nodes = recent_calls_nodes(t->calls, &nr);
		text_call_tree(out, &t->rows, nodes, nr, &t->output);
	} else if (t->rows.nr) {
		text_table(out, &table);
	}
}

/* Shows the table on the screen, or prints it. */
static void show(struct top *t)
{
	struct buffer buffer;
	char *text;

	if (!t->has_screen) {
		fputs(t->nr_tables++ ? "\n" : "", stdout);
		print_table(stdout, t);
		fflush(stdout);
		return;
	}
	buffer_open(&buffer);
	print_table(buffer.out, t);
	text = buffer_close(&buffer);
	screen_show(text);
	free(text);
}

/* ---- the refresh ---- */

/* Sets the numbers of the time since the last refresh. */
static void update_numbers(struct top *t, const struct profil_stats *now, u64 time)
{
	const struct stream *stream = &t->session.stream;
	const double seconds = (double)(time - t->last ?: 1) / NS_PER_S;
	const u64 samples = stream->ticks - stream->own;

	t->numbers = (struct numbers) {
		.seconds = (time - t->start) / NS_PER_S,
		.hz = (samples - t->last_samples) / seconds,
		.cpus = (double)(now->expected - t->stats.expected) *
			session_tick_ns(&t->session) / NS_PER_S / seconds,
		.lost = now->dropped - t->base.dropped,
		.missed = now->missed - t->base.missed,
	};
	t->last_samples = samples;
	t->last = time;
	t->stats = *now;
}

/* Adds the samples of all ticks up to now to the window. Returns false after an error message. */
static bool refresh(struct top *t)
{
	struct profil_stats stats = { .size = sizeof(stats) };
	u64 now;

	if (profil_session_stats(t->session.fd, &stats))
		return fail("cannot read the statistics");
	now = clock_ns(CLOCK_MONOTONIC);
	session_add_records(&t->session, stats.outside);
	if (!segment_end(t))
		return false;
	if (!t->is_paused)
		window_set_time(t->window, now - t->last);
	update_numbers(t, &stats, now);
	return segment_begin(t);
}

static bool reset(struct top *t)
{
	if (!refresh(t))
		return false;
	window_clear(t->window);
	if (t->calls)
		recent_calls_clear(t->calls);
	t->base = t->stats;
	t->start = t->last;
	t->numbers = (struct numbers) { };
	return true;
}

/* ---- the keys and the screen ---- */

/* Returns false if the view shall end. */
static bool handle_key(struct top *t, int key)
{
	switch (key) {
	case 'q':
	case SCREEN_GONE:
		return false;
	case 'p':
		t->is_paused = !t->is_paused;
		break;
	case 'r':
		return reset(t);
	case 's':
	case SCREEN_RIGHT:
		change_view(t, 1);
		break;
	case SCREEN_LEFT:
		change_view(t, NR_VIEWS - 1);
		break;
	}
	return true;
}

/* Handles keys, a new size of the screen, and a stop. Returns false if the view shall end. */
static bool handle_screen(struct top *t)
{
	sigset_t *arrived = &t->session.arrived;
	bool changed = sigismember(arrived, SIGWINCH);
	int key;

	if (sigismember(arrived, SIGTSTP)) {
		screen_close();
		raise(SIGSTOP);
	}
	if (sigismember(arrived, SIGTSTP) || sigismember(arrived, SIGCONT)) {
		screen_open();
		changed = true;
	}
	sigemptyset(arrived);
	while ((key = screen_key())) {
		if (!handle_key(t, key))
			return false;
		changed = true;
	}
	if (changed)
		show(t);
	return true;
}

/*
 * The command cannot have the screen, and its input would take the keys. So its streams that are
 * the terminal are /dev/null. In batch mode, its output must not get into the tables.
 */
static bool prepare_streams(struct top *t)
{
	int null;

	if (!t->has_screen) {
		t->session.streams[STDOUT_FILENO] = STDERR_FILENO;
		return true;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return fail("/dev/null");
	for (int i = 0; i < 3; i++)
		if (isatty(i))
			t->session.streams[i] = null;
	t->session.input = STDIN_FILENO;
	sigaddset(&t->session.signals_of_caller, SIGWINCH);
	sigaddset(&t->session.signals_of_caller, SIGTSTP);
	sigaddset(&t->session.signals_of_caller, SIGCONT);
	return true;
}

/* ---- the view, until it ends ---- */

/* Returns why the view ends now, or CONTINUE. */
static enum reason find_end(struct top *t)
{
	if (session_handle_signals(&t->session))
		return BY_SIGNAL;
	if (session_reap(&t->session) || (!t->session.child && t->session.targets_gone))
		return BY_TARGETS;
	if (t->has_screen && !handle_screen(t))
		return BY_KEY;
	return ferror(stdout) ? BY_ERROR : CONTINUE;
}

static enum reason view(struct top *t)
{
	struct session *s = &t->session;
	u64 drain = t->start + s->drain_ns, next = t->start + t->options->delay, now, ticks;
	bool idle = false;
	enum reason reason;

	for (;;) {
		session_wait(s, idle || next < drain ? next : drain, idle);
		reason = find_end(t);
		if (reason)
			return reason;
		now = clock_ns(CLOCK_MONOTONIC);
		if (idle)
			drain = now + s->drain_ns;
		idle = false;
		if (now >= drain) {
			ticks = s->stream.ticks;
			session_add_records(s, UINT64_MAX);
			idle = s->stream.ticks == ticks;
			drain = now + s->drain_ns;
		}
		if (s->stream.ticks - t->segment >= SAMPLES_MAX &&
		    !(segment_end(t) && segment_begin(t)))
			return BY_ERROR;
		if (now < next)
			continue;
		if (!refresh(t))
			return BY_ERROR;
		if (!t->is_paused)
			show(t);
		t->is_shown |= !t->is_paused;
		if (t->left && !--t->left)
			return BY_COUNT;
		next = now + t->options->delay;
	}
}

/* Ends the session. What was on the screen remains as text. */
static void finish(struct top *t, enum reason reason)
{
	const bool is_new = reason == BY_SIGNAL || reason == BY_TARGETS;
	const bool is_text = t->has_screen;

	profil_session_disable(t->session.fd, NULL);
	if (is_new && !refresh(t))
		return;
	session_close(&t->session);
	t->has_screen = false;
	screen_close();
	if (is_new || is_text)
		show(t);
}

/* Returns the exit status. */
static int run_session(struct top *t)
{
	struct session *s = &t->session;
	enum reason reason;
	int status;

	session_give_tables(s);
	status = session_start(s);
	if (status)
		return status;
	/* A download would take longer than there is room for records. The command has its copy. */
	unsetenv("DEBUGINFOD_URLS");
	t->start = clock_ns(CLOCK_MONOTONIC);
	t->last = t->start;
	reason = segment_begin(t) ? CONTINUE : BY_ERROR;
	if (!reason && t->has_screen) {
		screen_open();
		show(t);
	}
	if (!reason)
		reason = view(t);
	if (reason != BY_ERROR)
		finish(t, reason);
	session_close(s);
	screen_close();
	if (s->child && reason == BY_COUNT)
		warnx("waiting for %s to end", s->child_name);
	if (reason == BY_COUNT || reason == BY_ERROR)
		session_wait_for_command(s);
	if (s->child)
		warnx("%s continues", s->child_name);
	return reason == BY_KEY ? 0 : session_status(s, reason == BY_ERROR);
}

static int run(int argc, char **argv)
{
	struct options chosen = {
		.session = SESSION_OPTIONS_INIT,
		.delay = NS_PER_S,
	};
	struct top t = {
		.options = &chosen,
		.session = SESSION_INIT(&chosen.session),
		.file = -1,
	};
	int status;

	status = parse_options(argc, argv, &chosen);
	if (status >= 0)
		return status;
	t.has_screen = !chosen.batch && screen_is_there();
	t.left = chosen.count;
	t.session.data = &t;
	t.session.add_detached = add_detached;
	t.window = window_new();
	t.view = VIEW_CHOSEN;
	if (chosen.session.stacks) {
		t.calls = recent_calls_new();
		t.view = VIEW_CALLS;
	}
	t.file = memfd_create("profil top", MFD_CLOEXEC);
	status = COMMAND_FAILED;
	if (t.file < 0)
		warn("memory for samples");
	else if (!session_open(&t.session) && prepare_streams(&t) &&
		 !session_take_signals(&t.session))
		status = run_session(&t);
	session_free(&t.session);
	rows_free(&t.rows);
	window_free(t.window);
	recent_calls_free(t.calls);
	free(t.detached);
	if (t.file >= 0)
		close(t.file);
	return status;
}

const struct command command_top = {
	.name = "top",
	.about = "show the hottest functions of a command, a process or the machine",
	.usage = "[OPTION...] [--] COMMAND [ARG...]\n"
		 "       profil top [OPTION...] -p PID [[--] COMMAND [ARG...]]\n"
		 "       profil top [OPTION...] -a [[--] COMMAND [ARG...]]",
	.help = "Shows in which functions a command, a running process, or with -a every process\n"
		"spends its time now. With -p and -a, COMMAND sets the duration.\n"
		"Keys: q quit, p pause, r reset, s or arrows other columns.",
	.operand = "COMMAND",
	.options = options,
	.run = run,
};
