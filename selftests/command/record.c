// SPDX-License-Identifier: GPL-2.0
/*
 * profil record: compares the recording with its statistics and with the programs that ran.
 *
 * It records record_work, stacks_work, code_work and jit_work, which are beside this program.
 * Unless a test says so, the user is an ordinary one.
 */
#define SUBCOMMAND "record"
#include "command.h"

#include <linux/capability.h>

#include "recording/format.h"

#define MOST 4096	/* maximum number of threads, files and mappings in a recording */

/* A time in ms, a literal; ten times as long where the recorder needs seconds to start */
#define MS(ms)	(machine_is_slow() ? ms "0" : ms)

/* The contents of the recording. */
static struct sum {
	bool there;
	const char *error;
	bool ended;
	struct format_end end;
	struct format_meta meta;
	struct format_account account;
	u64 user, system;		/* samples */
	u64 at_account;			/* samples when the last statistics were read */
	u64 nr_accounts;
	u64 bare;			/* samples during exec or exit */
	u64 periods;			/* of all samples */
	struct format_thread threads[MOST];
	u64 of_thread[MOST];		/* samples in user mode, by the thread's number */
	u64 nr_threads;
	struct format_file files[MOST];
	u64 of_file[MOST];
	u64 nr_files;
	u32 mapped_file[MOST];
	u64 nr_mappings;
	u64 nr_stacks;
	u64 with_stack;			/* samples */
	const char *calls[MOST];	/* their names */
	u64 of_call[MOST];		/* samples */
	u64 nr_calls;
	u64 unknown;			/* samples with an unknown thread, mapping, stack or call */
	u64 wrong;			/* samples whose other members are wrong */
	u64 detached;
	const char *detached_path;
} sum;

static void read_sample(const struct format_sample *s)
{
	static long nr_cpus;
	const bool is_user = !(s->flags & FORMAT_SAMPLE_SYSTEM);
	const bool is_bare = s->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT);

	/* It reads a file in /sys: for each sample, this would take longer than all else. */
	if (!nr_cpus)
		nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	sum.user += is_user;
	sum.system += !is_user;
	sum.bare += is_bare;
	sum.periods += s->periods;
	sum.with_stack += s->stack != 0;
	if (!s->thread || s->thread > sum.nr_threads || s->mapping > sum.nr_mappings ||
	    s->stack > sum.nr_stacks || s->call > sum.nr_calls) {
		sum.unknown++;
		return;
	}
	if (!s->periods || s->time < sum.meta.start_monotonic || s->cpu >= nr_cpus ||
	    (is_bare && (s->offset || s->mapping)) || !s->call != (is_user || is_bare))
		sum.wrong++;
	if (s->call)
		sum.of_call[s->call - 1]++;
	sum.of_thread[s->thread - 1] += is_user;
	if (s->mapping)
		sum.of_file[sum.mapped_file[s->mapping - 1] - 1] += is_user;
}

/* Counts a block. The recorder numbers them in order, without gaps. */
static bool is_next(u32 id, u64 *nr)
{
	return id == ++*nr && *nr < MOST;
}

static bool has_known_mappings(const struct format_stack *stack)
{
	for (u32 i = 0; i < stack->nr; i++)
		if (stack->frames[i].mapping > sum.nr_mappings)
			return false;
	return stack->innermost[0].mapping <= sum.nr_mappings &&
	       stack->innermost[1].mapping <= sum.nr_mappings;
}

static bool read_block(const struct format_block *b)
{
	switch (b->type) {
	case FORMAT_META:
		sum.meta = b->meta;
		sum.meta.command = strdup(b->meta.command);
		break;
	case FORMAT_THREAD:
		sum.threads[sum.nr_threads] = b->thread;
		return is_next(b->thread.id, &sum.nr_threads);
	case FORMAT_FILE:
		sum.files[sum.nr_files] = b->file;
		sum.files[sum.nr_files].path = strdup(b->file.path);
		return is_next(b->file.id, &sum.nr_files);
	case FORMAT_MAPPING:
		sum.mapped_file[sum.nr_mappings] = b->mapping.file;
		return b->mapping.file && b->mapping.file <= sum.nr_files &&
		       is_next(b->mapping.id, &sum.nr_mappings);
	case FORMAT_SAMPLES:
		for (size_t i = 0; i < b->nr_samples; i++)
			read_sample(&b->samples[i]);
		break;
	case FORMAT_SYMBOL:
	case FORMAT_NAMELESS:
		break;
	case FORMAT_STACK:
		return b->stack.id == ++sum.nr_stacks && has_known_mappings(&b->stack);
	case FORMAT_CALL:
		sum.calls[sum.nr_calls] = strdup(b->call.name);
		return is_next(b->call.id, &sum.nr_calls);
	case FORMAT_DETACHED:
		sum.detached++;
		sum.detached_path = strdup(b->detached.path);
		break;
	case FORMAT_STATS:
		sum.account = b->account;
		sum.at_account = sum.user + sum.system;
		sum.nr_accounts++;
		break;
	case FORMAT_END:
		sum.ended = true;
		sum.end = b->end;
		break;
	}
	return true;
}

static bool load_from(const char *path)
{
	struct format_reader *reader;
	struct format_block block;

	memset(&sum, 0, sizeof(sum));
	reader = format_open(path, &sum.error);
	if (!reader)
		return false;
	sum.there = true;
	while (!sum.error && format_next(reader, &block))
		if (!read_block(&block))
			sum.error = "numbers that do not follow each other";
	if (!sum.error)
		sum.error = reader->nr_skips ? "damage" : reader->error;
	format_free(reader);
	return !sum.error;
}

#define load()	load_from("profil.data")

/* Relations that hold for each complete recording. */
#define EXPECT_LOADED_WHOLE() do {							\
	const struct format_stats *s_ = &sum.account.stats;				\
											\
	EXPECT_TRUE(sum.ended);								\
	EXPECT_EQ(0, sum.unknown);							\
	EXPECT_EQ(0, sum.wrong);							\
	EXPECT_EQ(s_->ticks, s_->hit + s_->outside + s_->saturated + s_->dropped);	\
	EXPECT_EQ(s_->ticks, s_->user + s_->system);					\
	EXPECT_EQ(0, s_->hit);								\
	EXPECT_EQ(s_->outside, sum.user + sum.system + sum.account.own);		\
	EXPECT_LE(sum.user, s_->user);							\
	EXPECT_LE(sum.system, s_->system);						\
} while (0)

#define EXPECT_WHOLE_FILE(path) do {							\
	EXPECT_TRUE(load_from(path)) TH_LOG("%s: %s", path, sum.error);			\
	EXPECT_LOADED_WHOLE();								\
} while (0)

#define EXPECT_WHOLE()	EXPECT_WHOLE_FILE("profil.data")

/* The recorder ends with this status, and the file says why. */
#define EXPECT_END(recorder, status, why) do {						\
	EXPECT_EQ(status, end_of(recorder));						\
	EXPECT_WHOLE();									\
	EXPECT_EQ(FORMAT_END_##why, sum.end.reason);					\
} while (0)

/* Records with these arguments. */
#define RECORD(...) do {								\
	ASSERT_EQ(0, run(__VA_ARGS__));							\
	EXPECT_WHOLE();									\
} while (0)

static const char *base(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* Returns the file whose name begins with @name, or NULL. */
static const struct format_file *file_named(const char *name)
{
	for (u64 i = 0; i < sum.nr_files; i++)
		if (!strncmp(base(sum.files[i].path), name, strlen(name)))
			return &sum.files[i];
	return NULL;
}

/* User ticks in the files, in the threads and in the process, and ticks in the system call */
#define in_file(name)									\
	SUM_IF(sum.nr_files, !strcmp(base(sum.files[i].path), name), sum.of_file[i])
#define in_comm(name)									\
	SUM_IF(sum.nr_threads, !strcmp(sum.threads[i].comm, name), sum.of_thread[i])
#define in_process(id)									\
	SUM_IF(sum.nr_threads, sum.threads[i].pid == (id), sum.of_thread[i])
#define in_call(name)									\
	SUM_IF(sum.nr_calls, !strcmp(sum.calls[i], name), sum.of_call[i])

#define EXPECT_MOST_IN_FILE(name)	EXPECT_LT(sum.user * 3 / 4, in_file(name))

/*
 * Returns what the command prints with these arguments, until the next call; nothing if it fails.
 * An emulated CPU needs long for that, and tests look for several texts in the same output: so the
 * command runs once for each recording.
 */
static const char *output_of(const char *arguments)
{
	static const char *printed_with = "";
	static struct stat printed_of;
	struct stat st;

	MUST(!stat("profil.data", &st));
	if (strcmp(arguments, printed_with) || st.st_ino != printed_of.st_ino ||
	    memcmp(&st.st_mtim, &printed_of.st_mtim, sizeof(st.st_mtim))) {
		printed_with = "";
		if (system(as_text("{ '%s' %s; } >printed", command, arguments)))
			return "";
		printed_with = strdup(arguments);
		printed_of = st;
	}
	return text_of("printed");
}

/* Returns the sum of the numbers with which those lines begin that contain @what. */
static double sum_of_lines(const char *text, const char *what)
{
	double ticks = 0;

	for (const char *at = text; (at = strstr(at, what)); at = strchrnul(at, '\n')) {
		const char *end = memrchr(text, '\n', at - text);

		ticks += strtod(end ? end + 1 : text, NULL);
	}
	return ticks;
}

/* Returns the percentage of complete stacks that a report or summary says, or -1. */
static double complete_stacks(const char *text)
{
	const char *at = strstr(text, "call stacks: ");

	return at ? strtod(at + strlen("call stacks: "), NULL) : -1;
}

/* Returns true if profil report, with these options, prints the text. */
static bool reports(const char *options, const char *text)
{
	return strstr(output_of(as_text("report %s 2>&1", options)), text);
}

/* Returns the ticks of all chains that contain @text, with a semicolon after each function. */
static u64 in_chains(const char *text)
{
	char *chains = strdup(output_of("export --format folded 2>/dev/null"));
	u64 ticks = 0;

	for (char *chain = strtok(chains, "\n"); chain; chain = strtok(NULL, "\n")) {
		char *number = strrchr(chain, ' ');
		const u64 n = strtoull(number, NULL, 10);

		strcpy(number, ";");
		ticks += strstr(chain, text) ? n : 0;
	}
	free(chains);
	return ticks;
}

/* Runs a shell, in which $0 is the command and $1 is record_work: see start_argv(). */
static int run_script(const char *script, int terminal)
{
	return end_of(start_argv(ARGUMENTS("sh", "-c", script, command, work), terminal));
}

/* Makes an executable file. */
static void write_script(const char *path, const char *text)
{
	MUST(!file_write_as(path, O_CREAT, text) && !chmod(path, 0700));
}

#define EXPECT_NO_FILE(path)	EXPECT_NE(0, access(path, F_OK))

/* Starts the recorder and a program that prints when it is ready. */
#define START_BOTH(recorder, child, ...) do {						\
	recorder = until_ready(start(__VA_ARGS__));					\
	child = child_of(recorder);							\
	ASSERT_LT(0, child);								\
} while (0)

/* Waits until the file has ticks of this number of seconds. */
#define EXPECT_RECORDING(seconds)							\
	EXPECT_TRUE(WAIT_UNTIL(load() && !sum.ended && sum.nr_accounts >= (seconds)))

FIXTURE(record) {
};

COMMAND_SETUP(record)

#define RECORD_TEST(name) TEST_F_TIMEOUT(record, name, 120)

RECORD_TEST(counts_each_tick_once)
{
	const char *line;

	RECORD(work, "burn", "1100");
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	EXPECT_EQ(0, sum.end.status);
	EXPECT_LT(100, sum.user);
	EXPECT_MOST_IN_FILE("record_work");
	EXPECT_LT(sum.user * 3 / 4, in_comm("record_work"));
	EXPECT_LT(1, sum.nr_accounts);
	EXPECT_EQ(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM, sum.meta.modes);
	EXPECT_EQ(sum.threads[0].pid, sum.meta.pid);
	EXPECT_STREQ(as_text("%s burn 1100", work), sum.meta.command);
	/* No sample has the name of the recorder, whose child became the command by exec. */
	EXPECT_EQ(0, in_comm("profil"));
	line = as_text(" at 1,000 Hz, %.1f s of CPU time", sum.account.stats.expected / 1000.0);
	EXPECT_TRUE(said("err", line)) TH_LOG("not said: %s", line);
	EXPECT_LE(1000, sum.account.stats.expected);
	EXPECT_TRUE(said("err", "See: profil report\n"));
	EXPECT_FALSE(said("err", "expected"));
	EXPECT_FALSE(said("err", "samples, "));	/* the progress */
}

RECORD_TEST(identifies_the_file_by_inode_size_time_and_build_id)
{
	const struct format_file *file;
	struct stat st;

	RECORD(work, "burn", "100");
	file = file_named("record_work");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(0, stat(work, &st));
	EXPECT_EQ(st.st_ino, file->ino);
	EXPECT_EQ(st.st_size, file->size);
	EXPECT_EQ(st.st_mtim.tv_sec, file->mtime / 1000000000);
	EXPECT_EQ(20, file->build_id_len);
	EXPECT_EQ(0, file->flags);
}

RECORD_TEST(passes_on_the_exit_status)
{
	EXPECT_EQ(0, run(work, "exit", "0"));
	EXPECT_EQ(7, run(work, "exit", "7"));
	EXPECT_WHOLE();
	EXPECT_EQ(7, WEXITSTATUS(sum.end.status));
	EXPECT_EQ(128 + SIGKILL, run(work, "kill", "9"));
	EXPECT_WHOLE();
	EXPECT_EQ(SIGKILL, WTERMSIG(sum.end.status));
	EXPECT_EQ(128 + SIGTERM, run(work, "kill", "15"));
}

RECORD_TEST(a_command_that_cannot_run_leaves_no_file)
{
	EXPECT_SAYS(127, "./nothing", "./nothing");
	EXPECT_EQ(126, run("/"));
	EXPECT_EQ(126, run("/dev/null"));
	EXPECT_NO_FILE("profil.data");

	/* An existing file stays unchanged. */
	ASSERT_EQ(0, run(work, "burn", "100"));
	EXPECT_EQ(127, run("./nothing"));
	EXPECT_NO_FILE("profil.data.old");
	EXPECT_WHOLE();
	EXPECT_LT(0, sum.user);
}

RECORD_TEST(quotes_the_command_as_for_a_shell)
{
	RECORD("sh", "-c", ": a", "it's", "", "plain");
	EXPECT_STREQ("sh -c ': a' 'it'\\''s' '' plain", sum.meta.command);
}

RECORD_TEST(wrong_arguments_are_errors)
{
	EXPECT_SAYS(2, "See \"profil record --help\".", NULL);
	EXPECT_EQ(2, run("--nonsense", "true"));
	EXPECT_EQ(2, run("-p", "0"));
	EXPECT_EQ(2, run("-p", "1x"));
	EXPECT_SAYS(2, "-p: \"no\" is neither a process id nor the name of a process",
		    "-p", "no such process");
	EXPECT_EQ(2, run("-p", "", "true"));
	EXPECT_EQ(2, run("--duration", "-1", "true"));
	EXPECT_EQ(2, run("--duration", "nan", "true"));
	EXPECT_EQ(2, run("--duration", "", "true"));
	EXPECT_NO_FILE("profil.data");
	EXPECT_SAYS(1, "no/such/file", "-o", "no/such/file", "true");
	EXPECT_EQ(0, run("--help"));
	EXPECT_TRUE(said("out", "--no-children"));
	EXPECT_EQ(0, run("-o", "other", "--", work, "exit", "0"));
	EXPECT_EQ(0, access("other", F_OK));
}

RECORD_TEST(passes_on_signals)
{
	const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		const char *number = as_text("%d", signals[i]);
		pid_t recorder = until_ready(start(-1, work, "trap", number, "5"));

		kill(recorder, signals[i]);
		EXPECT_EQ(5, end_of(recorder)) TH_LOG("signal %s", number);
		EXPECT_WHOLE();
		EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	}
}

RECORD_TEST(ends_with_the_command_on_ctrl_c)
{
	pid_t recorder;

	terminal_open();
	recorder = until_ready(start(slave, work, "trap", "10", "0"));
	EXPECT_EQ(1, write(master, "\003", 1));
	EXPECT_END(recorder, 128 + SIGINT, COMMAND);
	EXPECT_EQ(SIGINT, WTERMSIG(sum.end.status));
}

RECORD_TEST(ends_without_the_command_on_the_second_ctrl_c)
{
	pid_t recorder, child;

	terminal_open();
	START_BOTH(recorder, child, slave, work, "deaf", "0");
	EXPECT_EQ(1, write(master, "\003", 1));
	pause_ms(1500);
	EXPECT_EQ(0, waitpid(recorder, NULL, WNOHANG));
	EXPECT_EQ(1, write(master, "\003", 1));
	EXPECT_END(recorder, 128 + SIGINT, SIGNAL);
	/* The recorder has not killed the command. */
	EXPECT_EQ(0, kill(child, SIGKILL));
}

RECORD_TEST(leaves_a_readable_file_if_it_is_killed)
{
	pid_t recorder, child;

	START_BOTH(recorder, child, -1, work, "trap", "10", "0");
	EXPECT_RECORDING(2);
	EXPECT_TRUE(kill_child(recorder));
	EXPECT_EQ(0, kill(child, SIGKILL));

	EXPECT_TRUE(load()) TH_LOG("%s", sum.error);
	EXPECT_FALSE(sum.ended);
	EXPECT_LE(2, sum.nr_accounts);
	EXPECT_LT(50, sum.user);
	EXPECT_EQ(0, sum.unknown);
	/* The statistics agree with the samples before them. */
	EXPECT_EQ(sum.account.stats.outside, sum.at_account + sum.account.own);
	EXPECT_EQ(sum.at_account, sum.user + sum.system);
}

RECORD_TEST(the_file_can_be_read_during_the_recording)
{
	pid_t recorder = start(-1, work, "burn", "2500");
	unsigned int seen = 0;
	u64 last = 0;

	while (!waitpid(recorder, NULL, WNOHANG)) {
		pause_ms(50);
		/*
		 * The last block may be incomplete at this moment. Only the blocks before it count.
		 */
		load();
		if (!sum.there)
			continue;
		EXPECT_LE(last, sum.user);
		EXPECT_EQ(sum.account.stats.outside, sum.at_account + sum.account.own);
		seen += sum.user > last;
		last = sum.user;
	}
	EXPECT_LE(2, seen);
	EXPECT_WHOLE();
}

RECORD_TEST(samples_with_the_requested_period)
{
	static const struct { const char *option; u64 ns; } good[] = {
		{ "--freq=500", 2000000 }, { "-F8128", 123031 }, { "-F10000", 100000 },
		{ "-F62.5", 16000000 },
	};
	static const char *const bad[] = {
		"--freq=0", "--freq=x", "--freq=-1", "--freq=2e9", "--freq=nan",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		RECORD(good[i].option, work, "burn", "80");
		EXPECT_EQ(good[i].ns, sum.meta.tick_ns);
		EXPECT_LT(0, sum.user);
	}
	RECORD("--tick", work, "burn", "80");
	EXPECT_LT(900000, sum.meta.tick_ns);
	EXPECT_LT(0, sum.user);

	unlink("profil.data");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(2, run(bad[i], "true")) TH_LOG("%s", bad[i]);
	}
	EXPECT_EQ(2, run("--tick", "-F", "0", "true"));
	EXPECT_SAYS(1, "at most ", "-F", "100011", "true");
	EXPECT_SAYS(1, "at most ", "-F", "0.9", "true");
	/* The limit of an ordinary user is 50 us. Others have no test. */
	if (geteuid()) {
		EXPECT_SAYS(1, "at most 20,000 Hz", "-F", "100000", "true");
	}
	EXPECT_NO_FILE("profil.data");
}

RECORD_TEST(follows_forks)
{
	RECORD(work, "fork", "5", "200");
	EXPECT_EQ(FORMAT_CHILDREN, sum.meta.flags);
	/* The ticks of each child are in a thread of its own. */
	EXPECT_EQ(5, SUM_IF(sum.nr_threads, sum.threads[i].pid != sum.meta.pid &&
			    sum.of_thread[i] * 20 > sum.user, 1));
	EXPECT_MOST_IN_FILE("record_work");
}

RECORD_TEST(does_not_follow_forks_with_no_children)
{
	RECORD("--no-children", work, "fork", "2", "400");
	EXPECT_EQ(0, sum.meta.flags);
	EXPECT_GT(250, sum.user);		/* of 800, which all processes have together */
	for (u64 i = 1; i < sum.nr_threads; i++)
		EXPECT_EQ(sum.threads[0].pid, sum.threads[i].pid);
}

RECORD_TEST(follows_execs)
{
	RECORD(work, "exec", "200");
	EXPECT_LT(sum.user / 5, in_comm("record_work"));
	EXPECT_LT(sum.user / 5, in_comm("exe"));
	EXPECT_MOST_IN_FILE("record_work");
}

RECORD_TEST(ends_when_the_command_ends)
{
	int orphan;

	RECORD(work, "orphan", "100000");
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	orphan = file_number("out", "");
	ASSERT_LT(1, orphan);
	EXPECT_EQ(0, kill(orphan, SIGKILL));
}

RECORD_TEST(distinguishes_threads)
{
	u64 burners = 0, mains = 0;

	RECORD(work, "threads", "4", "200");
	for (u64 i = 0; i < sum.nr_threads; i++) {
		const struct format_thread *thread = &sum.threads[i];

		EXPECT_NE(0, thread->tid);
		burners += !strncmp(thread->comm, "burner-", 7) && sum.of_thread[i] * 20 > sum.user;
		/* It is recorded for its name, even if it has no tick. */
		mains += thread->tid == thread->pid && !strcmp(thread->comm, "record_work");
	}
	EXPECT_EQ(4, burners);
	EXPECT_LE(1, mains);
}

RECORD_TEST(leaves_out_system_ticks_with_user_only)
{
	RECORD("--user-only", work, "burn", "200");
	EXPECT_EQ(PROFIL_MODE_USER, sum.meta.modes);
	EXPECT_EQ(1000000, sum.meta.tick_ns);
	EXPECT_EQ(0, sum.system);
	EXPECT_EQ(0, sum.account.stats.system);
	EXPECT_LT(50, sum.user);
	EXPECT_SAYS(0, "unselected ", "--user-only", "-v", work, "burn", "100");
}

RECORD_TEST(names_system_calls)
{
	RECORD("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=200");
	EXPECT_LT(20, sum.system);
	EXPECT_LT(sum.system / 2, in_call("read"));
}

RECORD_TEST(records_static_programs)
{
	RECORD(beside("record_work_static"), "burn", "300");
	EXPECT_MOST_IN_FILE("record_work_static");
}

RECORD_TEST(records_32_bit_programs)
{
	SKIP_IF(access(path_beside("record_work_32"), X_OK),
		"no 32-bit program could be built here");
	RECORD(beside("record_work_32"), "burn", MS("1500"));
	EXPECT_MOST_IN_FILE("record_work_32");
}

RECORD_TEST(records_scripts)
{
	write_script("script", "#!/bin/sh\nulimit -S -t 1\nwhile :; do :; done\n");
	ASSERT_EQ(128 + SIGXCPU, run("./script"));
	EXPECT_WHOLE();
	EXPECT_LT(10, sum.user);
	EXPECT_LT(sum.user / 2, in_comm("script"));
}

RECORD_TEST(records_text_without_a_file)
{
	u64 i, most = 0;

	RECORD(work, "anon", "400");
	for (i = 0; i < sum.nr_files; i++)
		if (sum.of_file[i] > sum.of_file[most])
			most = i;
	EXPECT_STREQ("[anon]", sum.files[most].path);
	EXPECT_EQ(FORMAT_FILE_NONE, sum.files[most].flags);
	EXPECT_LT(sum.user * 3 / 4, sum.of_file[most]);
}

RECORD_TEST(notices_that_another_file_is_mapped)
{
	u64 a, b;

	RECORD(work, "swap", "first", "second", "2", MS("500"));
	a = in_file("first");
	b = in_file("second");
	EXPECT_LT(sum.user * 3 / 4, a + b);
	EXPECT_LT(sum.user / 4, a);
	EXPECT_LT(sum.user / 4, b);
}

#define EXPECT_LOCKS_AT_MOST_A_MEGABYTE() do {						\
	EXPECT_LT(0, sum.account.peak_locked);						\
	EXPECT_GE(1 << 20, sum.account.peak_locked);					\
	EXPECT_FALSE(said("err", "RLIMIT_MEMLOCK"));					\
} while (0)

/* Records with this limit, which the recorder respects and names. */
#define RECORD_LIMITED(kib, message, ...) do {						\
	limit_memlock((kib) << 10);							\
	RECORD(__VA_ARGS__);								\
	EXPECT_GE((kib) << 10, sum.account.peak_locked);				\
	EXPECT_TRUE(said("err", "RLIMIT_MEMLOCK (" #kib " KiB) allows " message " "));	\
} while (0)

RECORD_TEST(locks_at_most_a_megabyte)
{
	RECORD(work, "burn", "100");
	EXPECT_LOCKS_AT_MOST_A_MEGABYTE();
}

RECORD_TEST(works_with_a_small_buffer_of_records)
{
	SKIP_IF(!geteuid(), "root has no limit of locked memory");
	RECORD_LIMITED(64, "room for only", work, "burn", "700");
	EXPECT_MOST_IN_FILE("record_work");

	limit_memlock(0);
	unlink("profil.data");
	EXPECT_SAYS(1, "RLIMIT_MEMLOCK", work, "burn", "700");
	EXPECT_NO_FILE("profil.data");
}

RECORD_TEST(ends_after_the_duration)
{
	RECORD("--duration", "1", "sh", "-c", "$0 burn 200; sleep 2", work);
	EXPECT_EQ(FORMAT_END_DURATION, sum.end.reason);
	EXPECT_LE(1000000000ULL, sum.end.time - sum.meta.start_monotonic);
	/* On a slow machine, there can be only ticks of the start of the program. */
	EXPECT_LT(0, sum.user + sum.system);
	if (!machine_is_slow())
		EXPECT_LT(20, sum.user);
	/* The recorder waits until the command ends. */
	EXPECT_EQ(5, run("--duration", "0.1", "sh", "-c", "sleep 1; exit 5"));
	EXPECT_WHOLE();
	EXPECT_TRUE(said("err", as_text("waiting for process %d (sh) to end\n", sum.meta.pid)));
}

RECORD_TEST(reports_the_capability_that_another_process_needs)
{
	SKIP_IF(!geteuid(), "root has it");
	EXPECT_SAYS(1, "CAP_PERFMON", "-p", as_text("%d", getpid()), "--duration", "1");
	EXPECT_TRUE(said("err", "setcap"));
	EXPECT_TRUE(said("err", "modprobe profil attach=user"));
	EXPECT_NO_FILE("profil.data");
	/* There is no process with this id. */
	EXPECT_SAYS(1, "no process", "-p", "2147483647");
}

RECORD_TEST(records_a_process_with_p)
{
	pid_t child, recorder;
	const char *pid;

	NEED_PERFMON();
	child = start_burning();
	pid = as_text("%d", child);
	RECORD("-p", pid, "--duration", "0.5");
	EXPECT_EQ(FORMAT_END_DURATION, sum.end.reason);
	EXPECT_TRUE(sum.meta.flags & FORMAT_ATTACHED);
	EXPECT_LT(20, sum.user);
	EXPECT_LT(sum.user * 3 / 4, in_comm("record_work"));
	EXPECT_EQ(child, sum.meta.pid);
	EXPECT_STREQ(work, sum.meta.command);

	/* The recording lasts until the recorder gets a signal. */
	recorder = start(-1, "-p", pid);
	EXPECT_RECORDING(1);
	kill(recorder, SIGINT);
	EXPECT_END(recorder, 0, SIGNAL);

	/* The recording lasts until the process ends, before its parent has waited for it. */
	unlink("profil.data");
	recorder = start(-1, "-p", pid);
	EXPECT_RECORDING(1);
	kill(child, SIGKILL);
	EXPECT_END(recorder, 0, TARGETS);
	EXPECT_EQ(1000 + SIGKILL, end_of(child));
}

/* The command of -p is not recorded. It ends the recording. */
RECORD_TEST(records_a_process_by_name_until_the_command_ends)
{
	pid_t child, recorder;
	const char *during;

	NEED_PERFMON();
	child = start_burning();
	EXPECT_EQ(3, run("-F", "max", "-p", "record_work", "--", "sh", "-c",
			 "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 0.5; exit 3"));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	EXPECT_TRUE(sum.meta.flags & FORMAT_ATTACHED);
	EXPECT_GT(1000000, sum.meta.tick_ns);
	EXPECT_EQ(child, sum.meta.pid);
	EXPECT_LT(20, in_process(child));
	EXPECT_EQ(sum.user, in_process(child));
	during = as_text("%s, during: sh -c ", work);
	EXPECT_EQ(0, strncmp(sum.meta.command, during, strlen(during)));
	EXPECT_FALSE(said("err", "still run"));

	/* The process ends first; the command still sets the duration. */
	unlink("profil.data");
	recorder = start(-1, "-p", "record_work", "sleep", "2");
	EXPECT_RECORDING(1);
	EXPECT_TRUE(kill_child(child));
	EXPECT_END(recorder, 0, COMMAND);
}

RECORD_TEST(tells_how_many_processes_outlive_the_command)
{
	char script[] = "for i in one two; do sleep 100 >sleeps 2>&1 & echo $! >$i; done";
	int one, two;

	RECORD("sh", "-c", script);
	EXPECT_EQ(2, sum.account.stats.targets);
	EXPECT_TRUE(said("err", "2 processes of the command still run, but are no longer "));
	one = file_number("one", "");
	two = file_number("two", "");
	ASSERT_TRUE(one > 1 && two > 1);
	kill(one, SIGKILL);
	kill(two, SIGKILL);
	/* The kernel frees processes later than they end. */
	for (int i = 0; i < 3; i++) {
		RECORD("sh", "-c", "true | true | true | true | true | true");
		EXPECT_EQ(0, sum.account.stats.targets);
		EXPECT_FALSE(said("err", "still run"));
	}
}

RECORD_TEST(asks_runtimes_for_names_only_with_the_option)
{
	static const char script[] =
		"env >env; echo $$ >pid; echo 1 1 f >/tmp/perf-$$.map; exec $0 burn 50";

	ASSERT_EQ(0, setenv("NODE_OPTIONS", "--max-old-space-size=64", 1));
	ASSERT_EQ(0, setenv("PYTHONPERFSUPPORT", "0", 1));
	ASSERT_EQ(0, unsetenv("JAVA_TOOL_OPTIONS"));
	for (int i = 0; i < 2; i++) {
		const char *map;

		RECORD(i ? "--runtimes" : "--", "sh", "-c", script, work);
		EXPECT_TRUE(said("env", "NODE_OPTIONS=--max-old-space-size=64"));
		EXPECT_EQ(i, said("env", "=64 --perf-basic-prof --interpreted-frames-"));
		EXPECT_EQ(i, said("env", "-XX:+DumpPerfMapAtExit"));
		EXPECT_EQ(i, said("env", "DOTNET_PerfMapEnabled=1"));
		EXPECT_TRUE(said("env", "PYTHONPERFSUPPORT=0"));
		EXPECT_EQ(i * FORMAT_RUNTIMES, sum.meta.flags & FORMAT_RUNTIMES);
		/* The map that the option may have caused is removed. */
		map = as_text("/tmp/perf-%lld.map", file_number("pid", ""));
		EXPECT_EQ(i ? -1 : 0, access(map, F_OK));
		unlink(map);
	}
	EXPECT_EQ(2, run("--runtimes", "-a", "true"));
	EXPECT_SAYS(2, "--runtimes sets the environment of a command",
		    "--runtimes", "-p", "1", "true");
}

/* After commands that mount something, profil record fails, and prints the message. */
#define EXPECT_SAYS_AFTER(message, commands) do {					\
	EXPECT_EQ(1, end_of(start_program("unshare", "-m", "sh", "-c",			\
					  commands " && exec \"$0\" record true", command))); \
	EXPECT_TRUE(said("err", message));						\
} while (0)

/* A container can lack the device, or have no access to it. */
RECORD_TEST(tells_why_there_is_no_device)
{
	SKIP_IF(geteuid(), "only root can mount");
	EXPECT_SAYS_AFTER("the profil module is loaded, but there is no /dev/profil here",
			  "mount -t tmpfs none /dev");
	EXPECT_SAYS_AFTER("mounted without devices (nodev)",
			  "mount -t tmpfs -o nodev none /mnt; cp -a /dev/profil /mnt; "
			  "mount --bind /mnt /dev");
}

RECORD_TEST(tells_that_a_cgroup_has_no_access)
{
	SKIP_IF(geteuid(), "only root can mount");
	SKIP_IF(system("mount -t tmpfs none /mnt && mkdir /mnt/devices") ||
		system("mount -t cgroup -o devices none /mnt/devices") ||
		system("mkdir /mnt/devices/none && echo a >/mnt/devices/none/devices.deny"),
		"the kernel has no cgroups of version 1 for devices");
	EXPECT_SAYS_AFTER("the cgroup of this container or service has no access",
			  "echo $$ >/mnt/devices/none/cgroup.procs");
	EXPECT_EQ(0, system("rmdir /mnt/devices/none && umount /mnt/devices /mnt"));
}

RECORD_TEST(records_several_processes_until_the_last_one_ends)
{
	pid_t child[2], recorder;
	u64 ticks;

	NEED_PERFMON();
	for (int i = 0; i < 2; i++)
		child[i] = start_burning();
	/* The process that does not exist is reported, and the others are recorded. */
	recorder = start(-1, "-p", as_text("%d,2147483647,%d", child[0], child[1]));
	EXPECT_TRUE(WAIT_UNTIL(load() && in_process(child[0]) > 20 && in_process(child[1]) > 20));
	EXPECT_TRUE(kill_child(child[0]));
	ticks = in_process(child[1]);
	EXPECT_TRUE(WAIT_UNTIL(load() && in_process(child[1]) > ticks + 20));
	EXPECT_TRUE(kill_child(child[1]));
	EXPECT_END(recorder, 0, TARGETS);
	EXPECT_EQ(child[0], sum.meta.pid);
	EXPECT_STREQ(as_text("%s, and 1 more process", work), sum.meta.command);
	EXPECT_TRUE(said("err", "there is no process 2147483647"));
	EXPECT_EQ(2, run("-p", "1,"));
	EXPECT_EQ(2, run("-p", "1,x"));
}

RECORD_TEST(says_that_a_process_has_no_program)
{
	NEED_PERFMON();
	/* This is kthreadd. */
	EXPECT_SAYS(1, "process 2 executes no program", "-p", "2");
	EXPECT_NO_FILE("profil.data");
}

RECORD_TEST(says_that_a_process_used_no_cpu_time)
{
	const char *pid, *line;
	pid_t child;

	NEED_PERFMON();
	child = start_program("sleep", "1000");
	pause_ms(500);
	pid = as_text("%d", child);
	line = as_text("no samples: process %d (sleep) used no CPU time", child);
	EXPECT_SAYS(1, line, "-p", pid, "--duration", "0.5");
	EXPECT_WHOLE();
	EXPECT_EQ(0, sum.user + sum.system);
	EXPECT_SAYS(0, line, "-p", pid, "--duration", "0.5", "--rotate", "60");
	EXPECT_TRUE(kill_child(child));
}

/* The same as start_burning(), as an ordinary user */
#define start_as_user()									\
	start_ready("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",	\
		    work, "trap", "10", "0")

/* No tick of the machine is missing in the recording. */
#define EXPECT_WHOLE_MACHINE(why) do {							\
	const struct format_stats *s = &sum.account.stats;				\
											\
	EXPECT_WHOLE();									\
	EXPECT_EQ(FORMAT_END_##why, sum.end.reason);					\
	EXPECT_EQ(FORMAT_MACHINE, sum.meta.flags);					\
	EXPECT_EQ(s->ticks, sum.user + sum.system + sum.account.own + s->dropped);	\
	EXPECT_EQ(s->expected, s->ticks + s->unselected + s->missed);			\
} while (0)

RECORD_TEST(records_the_whole_machine)
{
	static const char about[] = "the whole machine (";
	pid_t root, user, later, recorder;

	NEED_PERFMON();
	root = start_burning();
	user = start_as_user();
	recorder = start(-1, "-a");
	EXPECT_TRUE(WAIT_UNTIL(load() && in_process(root) > 20 && in_process(user) > 20));
	later = start_as_user();
	EXPECT_TRUE(WAIT_UNTIL(load() && in_process(later) > 20));
	kill(recorder, SIGINT);
	EXPECT_EQ(0, end_of(recorder));
	EXPECT_WHOLE_MACHINE(SIGNAL);
	EXPECT_EQ(0, sum.meta.pid);
	EXPECT_EQ(0, strncmp(sum.meta.command, about, strlen(about)));
	EXPECT_EQ(0, in_process(recorder));
	EXPECT_TRUE(said("err", as_text(" samples at 1,000 Hz of %s", sum.meta.command)));
	EXPECT_FALSE(said("err", "CPU time"));
	/* This is kthreadd. */
	for (u64 i = 0; i < sum.nr_threads; i++)
		EXPECT_NE(2, sum.threads[i].pid);

	ASSERT_EQ(0, run("-a", "--duration", "0.5"));
	EXPECT_WHOLE_MACHINE(DURATION);
}

RECORD_TEST(records_the_whole_machine_while_a_command_runs)
{
	pid_t other;

	NEED_PERFMON();
	other = start_as_user();
	EXPECT_EQ(7, run("-a", "-v", "--", "sh", "-c", "$0 burn 300; exit 7", work));
	EXPECT_WHOLE_MACHINE(COMMAND);
	EXPECT_EQ(7, WEXITSTATUS(sum.end.status));
	EXPECT_NE(NULL, strstr(sum.meta.command, "), during: sh -c "));
	EXPECT_LT(0, in_process(other));
	/* The burner is a child of the command, or the command itself. */
	EXPECT_LT(in_process(other), in_comm("record_work"));
	EXPECT_TRUE(said("err", "profil.data: ticks "));
	EXPECT_FALSE(said("err", "expected"));

	unlink("profil.data");
	EXPECT_EQ(127, run("-a", "./nothing"));
	EXPECT_NO_FILE("profil.data");
}

/* The share of a program's loop in the report, or 0. */
#define share_in_report(program)							\
	sum_of_lines(output_of("report --csv -s comm,dso,symbol"),			\
		     ",\"" program "\",\"" program "\",\"loops_text\"")

RECORD_TEST(reports_programs_of_the_machine_by_their_shares)
{
	const char *script = "cp $0 first; cp $0 second; "
			     "./first burn 800 & ./second burn 800; wait";
	double first, second;

	NEED_PERFMON();
	run_on_cpu(sched_getcpu());
	ASSERT_EQ(0, run("-a", "sh", "-c", script, work));
	EXPECT_WHOLE_MACHINE(COMMAND);
	first = share_in_report("first");
	second = share_in_report("second");
	EXPECT_LT(0.5, first + second);
	EXPECT_LT(first * 0.8, second) TH_LOG("%f and %f", first, second);
	EXPECT_LT(second * 0.8, first);
}

RECORD_TEST(the_whole_machine_requires_a_capability)
{
	SKIP_IF(!geteuid(), "root has it");
	EXPECT_SAYS(1, "the whole machine: permission denied: requires CAP_PERFMON",
		    "-a", "--duration", "1");
	EXPECT_TRUE(said("err", "setcap"));
	EXPECT_SAYS(1, "CAP_PERFMON", "-a", "sh", "-c", "echo started");
	EXPECT_FALSE(said("out", "started"));
	EXPECT_NO_FILE("profil.data");
}

RECORD_TEST(the_whole_machine_has_no_other_target)
{
	EXPECT_SAYS(2, "either -a or -p", "-a", "-p", "1");
	EXPECT_EQ(2, run("-p", "1", "--all", "true"));
	EXPECT_SAYS(2, "either -a or --no-children", "-a", "--no-children", "true");
	EXPECT_NO_FILE("profil.data");
}

#define STACKS_TEST(name) TEST_F_TIMEOUT(record, stacks_##name, 120)

/* There are ticks in this function, more than @least, and all of them have this chain. */
#define EXPECT_CHAIN(least, function, chain) do {					\
	EXPECT_LT(least, in_chains(function));						\
	EXPECT_EQ(in_chains(function), in_chains(chain));				\
} while (0)

#define LEAF_CHAIN	";leaf_caller;leaf;"

/* Records a program of stacks_work. */
#define RECORD_STACKS(...) do {								\
	RECORD("--stacks", beside("stacks_work"), __VA_ARGS__);				\
	EXPECT_TRUE(sum.meta.flags & FORMAT_STACKS);					\
} while (0)

STACKS_TEST(of_functions_without_a_frame)
{
	RECORD_STACKS("leaf", "500");
	EXPECT_CHAIN(100, ";leaf;", ";main;burn;leaf_caller;leaf;");
	/* Each stack is written once. */
	EXPECT_LT(2 * sum.nr_stacks, sum.with_stack);
	EXPECT_TRUE(reports("--children", " leaf_caller"));
	EXPECT_TRUE(reports("--callers leaf", "   leaf_caller"));
}

STACKS_TEST(are_as_complete_in_the_summary_as_in_the_report)
{
	double share, in_summary;

	RECORD_STACKS("leaf", "800");
	in_summary = complete_stacks(text_of("err"));
	share = complete_stacks(output_of("report --children 2>/dev/null"));
	EXPECT_LE(90, share);
	EXPECT_LT(share - 1, in_summary);
	EXPECT_GT(share + 1, in_summary);
	/* Through frame pointers only, the recorder does not know it. */
	ASSERT_EQ(0, run("--stacks=fp", beside("stacks_work"), "leaf", "100"));
	EXPECT_EQ(-1, complete_stacks(text_of("err")));
}

STACKS_TEST(in_the_first_and_last_instructions)
{
	RECORD_STACKS("tiny", "500");
	/* QEMU takes most of these interrupts where the function has returned. */
	EXPECT_CHAIN(0, ";tiny;", ";main;burn;tiny_caller;tiny;");
}

STACKS_TEST(of_recursive_functions)
{
	RECORD_STACKS("recurse", "3", "250");
	EXPECT_LT(100, in_chains(";recurse;"));
	EXPECT_EQ(in_chains(";leaf_caller;"), in_chains(";recurse;recurse;recurse;leaf_caller;"));
	EXPECT_EQ(0, in_chains(";recurse;recurse;recurse;recurse;"));
	RECORD_STACKS("recurse", "200", "250");
	EXPECT_LT(100, in_chains(LEAF_CHAIN));
	EXPECT_EQ(0, in_chains(";main;recurse_for;recurse;recurse;recurse;leaf_caller;"));
	EXPECT_TRUE(reports("--children", "have more callers than were recorded"));
}

/* Returns a chain in which @frame is repeated. */
static const char *chain_of(const char *begin, const char *frame, int nr, const char *end)
{
	while (nr--)
		begin = as_text("%s%s", begin, frame);
	return as_text("%s%s", begin, end);
}

/* perf copies 64 KiB of a stack at most. */
STACKS_TEST(with_frames_of_more_than_a_megabyte)
{
	RECORD_STACKS("wide", "40", "250");
	EXPECT_CHAIN(100, ";leaf;",
		     chain_of(";main;recurse_for;", "wide;", 40, "leaf_caller;leaf;"));
}

STACKS_TEST(of_libraries_that_are_loaded_later)
{
	RECORD_STACKS("plugin", beside("stacks_plugin.so"), "2400");
	EXPECT_LT(100, in_chains(";plugin_call" LEAF_CHAIN));
	/* The recorder learns of the library at most a second after its first tick. */
	EXPECT_LT(in_chains(";[unknown];"), in_chains(";plugin_call" LEAF_CHAIN));
}

STACKS_TEST(of_children_and_threads)
{
	RECORD_STACKS("fork", "250");
	EXPECT_CHAIN(100, ";leaf;", ";main;fork_one;forked;burn;leaf_caller;leaf;");
	RECORD_STACKS("threads", "3", "100");
	EXPECT_CHAIN(100, ";leaf;", ";thread;burn;leaf_caller;leaf;");
}

/* To see who uses a page, NUMA balancing takes the access to it away until somebody touches it. */
STACKS_TEST(in_pages_that_NUMA_balancing_watches)
{
	const char *balancing = "/proc/sys/kernel/numa_balancing";
	char was[16];
	u64 all;

	SKIP_IF(access("/sys/devices/system/node/node1", F_OK), "the machine has one NUMA node");
	SKIP_IF(geteuid() || file_exchange(balancing, "1", was, sizeof(was)),
		"the NUMA balancing cannot be enabled");
	/* It begins after a second of CPU time. */
	RECORD_STACKS("deep", "3", "2500");
	file_write(balancing, was);
	all = in_chains(";leaf;");
	EXPECT_LT(1000, all);
	EXPECT_LT(all * 3 / 4, in_chains(chain_of(";deep_thread;", "below;", 20,
						  "burn;leaf_caller;leaf;")));
}

/* above_data() returns to above(), and the frame of above() has an address of data. */
STACKS_TEST(end_before_an_outermost_address_of_data)
{
	RECORD_STACKS("data", "250");
	EXPECT_CHAIN(100, ";leaf;", "stacks_work;above;above_data;burn;leaf_caller;leaf;");
	EXPECT_FALSE(reports("--children", "have a caller in unknown memory"));
}

/* The mappings of a process that has ended are not known. No other ones are taken for them. */
STACKS_TEST(of_processes_that_have_ended)
{
	u64 known;

	RECORD_STACKS("brief", "40");
	known = in_chains(LEAF_CHAIN) + in_chains(";[unknown];leaf;");
	EXPECT_LT(0, known);
	EXPECT_EQ(in_chains(";leaf;"), known);
}

/* Returns the name of file @nr of a recording in several files; 0: the last one. */
static const char *rotated(const char *path, int nr)
{
	return nr ? as_text("%s.%d", path, nr) : path;
}

STACKS_TEST(are_in_each_file)
{
	int nr, in_older = 0;

	ASSERT_EQ(0, run("--stacks=fp", "--rotate", "0.4", "--keep", "100", beside("stacks_work"),
			 "leaf", MS("1600")));
	for (nr = 0; !access(rotated("profil.data", nr), F_OK); nr++) {
		EXPECT_WHOLE_FILE(rotated("profil.data", nr));
		EXPECT_TRUE(sum.meta.flags & FORMAT_STACKS);
		EXPECT_LE(sum.with_stack > 0, sum.nr_stacks > 0);
	}
	EXPECT_LE(3, nr);
	/* The last file lacks no caller, either. */
	EXPECT_EQ(in_chains(";leaf;"), in_chains(";main;burn;leaf_caller;leaf;"));
	/* Nor does one before it. On a slow machine, some have only the start of the program. */
	for (int i = 2; i < nr && !in_older; i++) {
		ASSERT_EQ(0, rename(rotated("profil.data", i), "profil.data"));
		in_older = in_chains(";leaf;");
		EXPECT_EQ(in_older, in_chains(";main;burn;leaf_caller;leaf;"));
	}
	EXPECT_LT(0, in_older);
}

STACKS_TEST(lock_at_most_a_megabyte)
{
	const char *stacks_work = beside("stacks_work");

	RECORD_STACKS("leaf", "100");
	EXPECT_LOCKS_AT_MOST_A_MEGABYTE();
	SKIP_IF(!geteuid(), "root has no limit of locked memory");
	RECORD_LIMITED(128, "room for only", "--stacks", stacks_work, "leaf", "200");
	EXPECT_LT(0, in_chains(LEAF_CHAIN));
	/* The limit on old systems */
	RECORD_LIMITED(64, "only", "--stacks", stacks_work, "recurse", "100", "200");
	EXPECT_LT(0, in_chains(";recurse;recurse;recurse;recurse;recurse;leaf_caller;leaf;"));
}

STACKS_TEST(of_the_whole_machine)
{
	NEED_PERFMON();
	ASSERT_EQ(0, run("-a", "--stacks", beside("stacks_work"), "leaf", "700"));
	EXPECT_TRUE(load());
	EXPECT_LT(0, in_chains(LEAF_CHAIN));
}

/* With these options, stacks are recorded. */
#define EXPECT_STACKS(...) do {								\
	RECORD(__VA_ARGS__, beside("stacks_work"), "leaf", "200");			\
	EXPECT_LT(0, in_chains(LEAF_CHAIN));						\
} while (0)

STACKS_TEST(with_other_options)
{
	/* The methods as in perf */
	EXPECT_STACKS("--call-graph", "dwarf,16384", "--tick");
	EXPECT_STACKS("-g", "-e", "cpu-clock", "-F", "100", "--user-only", "--no-children");
	/* Without the option there are none. */
	RECORD(beside("stacks_work"), "leaf", "100");
	EXPECT_EQ(0, sum.nr_stacks + sum.with_stack);
	EXPECT_EQ(FORMAT_CHILDREN, sum.meta.flags);
	EXPECT_FALSE(reports("--children", "leaf"));
	unlink("profil.data");
	EXPECT_SAYS(2, "there is no method \"dwarf\"", "--stacks=dwarf", "true");
	EXPECT_EQ(2, run("--stacks=", "true"));
	EXPECT_EQ(2, run("--call-graph", "lbr", "true"));
	EXPECT_SAYS(2, "there is one event: CPU time", "-e", "cycles", "true");
	EXPECT_NO_FILE("profil.data");
}

/* Records a process for a second, with stacks. */
#define RECORD_STACKS_OF(pid)								\
	RECORD("-p", as_text("%d", pid), "--stacks", "--duration", "1")

STACKS_TEST(of_a_running_process)
{
	pid_t child;

	NEED_PERFMON();
	child = start_program(beside("stacks_work"), "leaf", "100000");
	RECORD_STACKS_OF(child);
	EXPECT_CHAIN(0, ";leaf;", ";main;burn;leaf_caller;leaf;");
}

/*
 * dash has no frame pointers, and its unwind tables are not in the cache. Its files are younger
 * than the boot. The recorder finds them by their paths, as that of an ordinary user does.
 */
STACKS_TEST(have_tables_before_a_running_process_is_sampled)
{
	pid_t child;

	NEED_PERFMON();
	ASSERT_EQ(0, system("cp /bin/dash /lib/x86_64-linux-gnu/libc.so.6 ."));
	ASSERT_EQ(0, prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
	ASSERT_EQ(0, prctl(PR_CAPBSET_DROP, CAP_CHECKPOINT_RESTORE, 0, 0, 0));
	setenv("LD_LIBRARY_PATH", ".", 1);
	child = start_ready("./dash", "-c", "echo; while :; do :; done");
	unsetenv("LD_LIBRARY_PATH");
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
	RECORD_STACKS_OF(child);
	EXPECT_LE(99, complete_stacks(text_of("err")));
	EXPECT_FALSE(said("err", "before its unwind table was there"));
}

/* Another machine can have written a file, with a clock that is ahead of this one. */
RECORD_TEST(identifies_a_file_from_the_future)
{
	const struct format_file *file;

	SKIP_IF(geteuid(), "only root can set the clock");
	ASSERT_EQ(0, run_script("date -s '+1 hour' && cp $1 future && date -s '-1 hour'", -1));
	/* It has ended when the records are read, so /proc has no link to it. */
	RECORD("./future", "burn", "50");
	file = file_named("future");
	ASSERT_NE(NULL, file);
	EXPECT_LT(0, file->build_id_len);
}

/* Returns the share of the ticks, in %, in functions whose file or name ends with this. */
#define share_of(name)									\
	(100 * sum_of_lines(output_of("report --csv -s dso,symbol 2>/dev/null"), name "\""))

/*
 * Each of @nr programs has its ticks in two functions of moved or made code; the first one has 70%
 * of them, or fewer on a machine with load. On a debug kernel, the start of a program can take
 * longer than both. "[no symbol]" is the name of code without one.
 */
#define EXPECT_SHARES(nr, alpha, beta) do {						\
	const double first = share_of(alpha), second = share_of(beta);			\
											\
	EXPECT_LT(20, (nr) * (first + second));						\
	EXPECT_LE(share_of("\"[no symbol]"), (first + second) / 10);			\
	EXPECT_LT(35, 100 * first / (first + second));					\
	EXPECT_GT(95, 100 * first / (first + second));					\
} while (0)

/* The functions of "code_work make @how", and those of a @file of code_work */
#define EXPECT_SHARES_OF_MADE(nr, how)	EXPECT_SHARES(nr, how " alpha", how " beta")
#define EXPECT_SHARES_OF_HOT(nr, file)							\
	EXPECT_SHARES(nr, "\"" file "\",\"hot_alpha", "\"" file "\",\"hot_beta")

FIXTURE(code) {
};

COMMAND_SETUP(code)

#define CODE_TEST(name) TEST_F_TIMEOUT(code, name, 120)

/* Records two programs that make functions at run time. */
#define RECORD_MADE(first, second) do {							\
	RECORD("sh", "-c", "$0 make " first " $1 && $0 make " second " $1",		\
	       beside("code_work"), MS("500"));						\
	EXPECT_SHARES_OF_MADE(2, first);						\
	EXPECT_SHARES_OF_MADE(2, second);						\
} while (0)

/* A row for each kind of memory, and what it needs */
#define MADE_TEST(memory, ...)								\
	CODE_TEST(made_in_##memory##_memory_has_names)					\
	{										\
		__VA_ARGS__;								\
		RECORD_MADE(#memory " plain", #memory " fork");				\
	}

#define NEED_HUGE_PAGES() do {								\
	SKIP_IF(geteuid(), "only root can reserve huge pages");				\
	SKIP_IF(system("sysctl -q vm.nr_hugepages=8 &&"					\
		       " grep -q 'HugePages_Total: *[1-9]' /proc/meminfo"),		\
		"there are no huge pages");						\
} while (0)

MADE_TEST(anon)
MADE_TEST(shared)
MADE_TEST(sysv)
MADE_TEST(memfd)
MADE_TEST(posix)
MADE_TEST(unlinked)
MADE_TEST(zero)
MADE_TEST(huge, NEED_HUGE_PAGES())
MADE_TEST(hugememfd, NEED_HUGE_PAGES())

CODE_TEST(made_by_a_sibling_has_names)
{
	RECORD(beside("code_work"), "make", "shared", "sibling", MS("500"));
	EXPECT_SHARES_OF_MADE(1, "shared sibling");
}

/* The recorder may not look into such a process, but it has the same /tmp. */
CODE_TEST(made_by_a_process_that_is_not_dumpable_has_names)
{
	RECORD_MADE("anon hide", "shared hide");
}

CODE_TEST(made_before_the_clock_was_set_has_names)
{
	pid_t child;

	SKIP_IF(geteuid(), "only root can set the clock");
	child = start_ready(beside("code_work"), "make", "anon", "early", "-100000");
	EXPECT_EQ(0, run("-p", as_text("%d", child), "--duration", "1"));
	EXPECT_EQ(0, system("date -s '-1 hour' >/dev/null"));
	EXPECT_WHOLE();
	EXPECT_SHARES_OF_MADE(1, "anon early");
}

/* Recorders with only CAP_PERFMON may sample processes of others, but not look into them. */
CODE_TEST(made_by_another_user_has_names)
{
	static const char as_other[] =
		"--reuid=1235 --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon --";
	pid_t child;

	SKIP_IF(geteuid(), "only root can become other users");
	SKIP_IF(system("setpriv --dump >/dev/null 2>&1"), "there is no setpriv");
	child = start_ready("setpriv", "--reuid=1234", "--clear-groups", "--", beside("code_work"),
			    "make", "shared", "plain", "-100000");
	EXPECT_EQ(0, system(as_text("setpriv %s '%s' record -o - --duration 1 -p %d >profil.data",
				    as_other, command, child)));
	EXPECT_WHOLE();
	EXPECT_SHARES_OF_MADE(1, "shared plain");
}

/* ---- code that a dump describes ---- */

#ifdef __x86_64__
#define HAS_TABLES	true
#else
#define HAS_TABLES	false
#endif

#define MADE_CHAIN ";run;made_outer;made_middle;made_leaf;"

/* Records functions without frame pointers, made at run time, which a jit-PID.dump describes. */
#define RECORD_JIT(how, ms) do {							\
	SKIP_IF(!HAS_TABLES, "only x86-64 has unwind tables");				\
	RECORD("--stacks", beside("jit_work"), how, ms);				\
	EXPECT_LT(100, in_chains(";made_leaf;"));					\
} while (0)

/*
 * The recorder needs some time to read the dump; on a kernel with KASAN, seconds. Before, stacks
 * have no callers.
 */
#define JIT_TEST(name, how, ms)								\
	CODE_TEST(described_##name##_has_callers)					\
	{										\
		RECORD_JIT(how, MS(ms));							\
		EXPECT_LT(in_chains(";made_leaf;") / 3, in_chains(MADE_CHAIN));		\
	}

JIT_TEST(by_a_dump, "once", "1500")
JIT_TEST(again_and_again, "grow", "3000")
JIT_TEST(far_away, "far", "1500")
JIT_TEST(by_the_parent, "fork", "1500")
JIT_TEST(by_a_torn_dump, "torn", "1500")

CODE_TEST(described_without_call_frame_information_has_no_callers)
{
	RECORD_JIT("plain", MS("800"));
	EXPECT_EQ(0, in_chains(MADE_CHAIN));
	EXPECT_TRUE(said("err", "end where there is no frame"));
}

/* ---- code that was moved ---- */

#define MOVED_TEST(how, method)								\
	CODE_TEST(how##_has_the_names_of_its_file)					\
	{										\
		RECORD("sh", "-c", "$0 move program $1 $2 && $0_no_pie move program $1 $2 &&" \
		       " $0 move $3 $1 $2", beside("code_work"), method, MS("400"),	\
		       beside("code_plugin.so"));					\
		EXPECT_SHARES_OF_HOT(3, "code_work");					\
		EXPECT_SHARES_OF_HOT(3, "code_work_no_pie");				\
		EXPECT_SHARES_OF_HOT(3, "code_plugin.so");				\
	}

MOVED_TEST(moved_to_other_memory, "moved")
MOVED_TEST(copied_to_new_memory, "new")
MOVED_TEST(copied_to_a_memfd, "memfd")
MOVED_TEST(moved_as_a_whole, "all")

CODE_TEST(moved_before_the_recording_has_the_names_of_its_file)
{
	NEED_PERFMON();
	for (int library = 0; library <= 1; library++) {
		const char *what = library ? beside("code_plugin.so") : "program";
		pid_t child = start_ready(beside("code_work"), "move", what, "moved", "-100000");

		RECORD_STACKS_OF(child);
		EXPECT_SHARES(1, "\"hot_alpha", "\"hot_beta");
		EXPECT_TRUE(kill_child(child));
	}
}

/* Code that is made where the code of a file was is not that of the file. */
CODE_TEST(made_in_the_place_of_other_code_has_no_names_of_it)
{
	RECORD(beside("code_work"), "move", "program", "other", MS("400"));
	EXPECT_EQ(0, share_of("\"hot_alpha"));
	EXPECT_TRUE(reports("", "code made at run time"));
}

/* Returns the flags of the file with this name. */
static u32 flags_of(const char *name)
{
	const struct format_file *file = file_named(name);

	return file ? file->flags : 0;
}

/* Makes a copy of code_work. */
static void copy_code_work(const char *name)
{
	MUST(!system(as_text("cp '%s' %s", beside("code_work"), name)));
}

/* A command for a shell: it has ended when the recorder, the shell's parent, reads its records. */
#define UNREAD(command) "{ kill -STOP $PPID; " command "; kill -CONT $PPID; }"

CODE_TEST(of_a_removed_file_is_gone_after_its_process)
{
	copy_code_work("removed");
	RECORD("sh", "-c", UNREAD("./removed gone remove 200"));
	EXPECT_EQ(FORMAT_FILE_GONE | FORMAT_FILE_ENDED, flags_of("removed"));
	EXPECT_TRUE(reports("", "gone when the recorder looked for it; its process had ended"));
	/* While it runs, /proc has a link to it. */
	copy_code_work("removed");
	RECORD("./removed", "gone", "remove", "500");
	EXPECT_EQ(0, flags_of("removed"));
	EXPECT_SHARES(1, "\"hot_alpha", "\"hot_beta");
}

CODE_TEST(of_a_file_that_the_user_may_not_read_is_denied)
{
	SKIP_IF(!geteuid(), "root may read all files");
	copy_code_work("denied");
	RECORD("./denied", "gone", "deny", "500");
	EXPECT_EQ(FORMAT_FILE_DENIED, flags_of("denied"));
	EXPECT_TRUE(reports("", "the recorder was not permitted to read it"));
}

/* With the namespace, the file of the process is gone. Another one has its path. */
CODE_TEST(of_a_namespace_that_is_gone_is_unknown)
{
	SKIP_IF(geteuid(), "only root can make a mount namespace");
	ASSERT_EQ(0, system("mkdir over && cp /bin/true over/inside"));
	/* The namespace exists while the records are read, but the process does not. */
	RECORD("unshare", "--mount", "--propagation", "private", "sh", "-c",
	       "mount -t tmpfs inside over && cp $0 over/inside && "
	       UNREAD("over/inside gone stay 200") "; sleep 2", beside("code_work"));
	EXPECT_EQ(FORMAT_FILE_OTHER | FORMAT_FILE_ENDED, flags_of("inside"));
	EXPECT_TRUE(reports("-n 100 --dso inside",
			    "its process had ended, and another file is at its path here"));
}

/* A non-interactive shell lets commands in the background ignore SIGINT. */
RECORD_TEST(ends_at_SIGINT_although_the_command_ignores_it)
{
	pid_t recorder, child;

	START_BOTH(recorder, child, -1, work, "deaf", "0");
	EXPECT_TRUE(WAIT_UNTIL(load()));
	kill(recorder, SIGINT);
	EXPECT_END(recorder, 128 + SIGINT, SIGNAL);
	EXPECT_LT(0, sum.user);
	EXPECT_TRUE(said("err", as_text("process %d (record_work) continues", child)));
	EXPECT_EQ(0, kill(child, SIGKILL));
}

RECORD_TEST(ends_at_SIGINT_in_the_background_of_a_script)
{
	static const char script[] =
		"$0 record $1 trap 10 0 & recorder=$!; "
		"while ! [ -s profil.data ]; do sleep 0.1; done; "
		"child=$(cat /proc/$recorder/task/$recorder/children); "
		"kill -INT $recorder; wait $recorder; echo status $?; kill -KILL $child";

	EXPECT_EQ(0, run_script(script, -1));
	EXPECT_TRUE(said("out", "status 130"));
	EXPECT_TRUE(said("err", "continues"));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_SIGNAL, sum.end.reason);
}

RECORD_TEST(shows_progress_on_a_terminal)
{
	char text[4096] = "";

	terminal_open();
	EXPECT_EQ(0, run_script("exec $0 record sh -c '$0 burn 50; sleep 2' $1 2>/dev/tty", slave));
	ASSERT_LT(0, read(master, text, sizeof(text) - 1));
	EXPECT_NE(NULL, strstr(text, " samples, 1 s\033[K"));
	EXPECT_NE(NULL, strstr(text, "\r\033[Kprofil record: "));
}

RECORD_TEST(a_script_without_its_interpreter_cannot_run)
{
	write_script("orphan", "#!/no/such/interpreter\n");
	EXPECT_SAYS(126, "./orphan: it exists, but the interpreter", "./orphan");
	ASSERT_EQ(0, setenv("PATH", as_text("%s:%s", dir, getenv("PATH")), true));
	EXPECT_EQ(126, run("orphan"));
	EXPECT_EQ(127, run("orphans"));
	EXPECT_NO_FILE("profil.data");
}

RECORD_TEST(names_programs_that_gain_privilege)
{
	static const char *const programs[] = { "/usr/bin/su", "/bin/su", "/usr/bin/passwd" };
	const char *program = NULL, *script;
	struct stat st;

	SKIP_IF(!geteuid(), "root gains no privilege");
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !program; i++)
		if (!stat(programs[i], &st) && st.st_mode & S_ISUID)
			program = programs[i];
	SKIP_IF(!program, "no set-user-ID program is installed");
	script = as_text("%s --help; %s --help; exit 0", program, program);
	RECORD("sh", "-c", script);
	EXPECT_EQ(2, sum.detached);
	EXPECT_STREQ(base(program), base(sum.detached_path));
	EXPECT_TRUE(said("err", "not followed: /"));
	EXPECT_TRUE(said("err", as_text("/%s gains privilege (2 execs)", base(program))));
}

RECORD_TEST(names_programs_that_the_user_may_not_read)
{
	SKIP_IF(!geteuid(), "root may read all programs");
	RECORD("sh", "-c", "cp $0 secret && chmod 111 secret && ./secret exit 0", work);
	EXPECT_EQ(1, sum.detached);
	EXPECT_TRUE(said("err", "/secret is not readable (1 exec)"));
}

RECORD_TEST(records_ticks_during_exec_and_exit)
{
	RECORD("-F", "4000", "sh", "-c",
	       "i=0; while [ $i -lt 10 ]; do /bin/true; i=$((i + 1)); done");
	EXPECT_LT(0, sum.bare);
	EXPECT_TRUE(said("err", " during exec or exit"));
	EXPECT_EQ(0, sum.account.stats.dropped_exec + sum.account.stats.dropped_exit);
	EXPECT_EQ(0, in_comm("profil"));
}

/* The sum of the columns "user" and "system" of the report */
#define reported()									\
	strtoull(output_of("report --csv -s mode |"					\
			   " awk -F, '{ sum += $4 + $5 } END { print sum }'"), NULL, 10)

RECORD_TEST(counts_missed_ticks_in_the_next_sample)
{
	u64 samples, missed;

	/* Interrupts are off for five periods and more at a time. */
	RECORD("-F", "5000", work, "late", MS("1000"));
	samples = sum.user + sum.system;
	missed = sum.account.stats.missed;
	EXPECT_LT(samples / 4, missed);
	EXPECT_EQ(0, sum.account.stats.dropped);
	EXPECT_LE(sum.periods, samples + missed);
	/* Some ticks were missed before ticks of the recorder's child, which are not samples. */
	EXPECT_LT((samples + missed) * 9 / 10, sum.periods);
	EXPECT_EQ(sum.periods, reported());
}

RECORD_TEST(reports_a_full_disk)
{
	EXPECT_SAYS(1, "/dev/full", "-o", "/dev/full", work, "burn", "100");
	/* Only a file can be reported. */
	EXPECT_SAYS(0, " samples at", "-o", "/dev/null", work, "burn", "100");
	EXPECT_FALSE(said("err", "See: "));
	/* The command runs nevertheless, and its exit status is returned. */
	EXPECT_EQ(9, run("-o", "/dev/full", work, "exit", "9"));
}

RECORD_TEST(counts_the_samples_in_the_file_if_the_disk_is_full)
{
	struct rlimit limit = { .rlim_cur = 6000, .rlim_max = RLIM_INFINITY };
	unsigned long long samples = 0;

	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	EXPECT_SAYS(1, "File too large", "-F", "100", work, "burn", "3000");
	EXPECT_TRUE(said("err", "more not written"));
	EXPECT_TRUE(load()) TH_LOG("%s", sum.error);
	EXPECT_FALSE(sum.ended);
	EXPECT_LT(0, sum.user);
	EXPECT_EQ(1, sscanf(text_of("err"), "%*[^\n] profil record: %llu", &samples));
	EXPECT_EQ(sum.user + sum.system, samples);
}

RECORD_TEST(refuses_to_write_to_the_file_of_another_recording)
{
	pid_t recorder = until_ready(start(-1, work, "trap", "10", "0"));

	EXPECT_TRUE(WAIT_UNTIL(load()));
	EXPECT_SAYS(1, "another recorder", work, "exit", "0");
	EXPECT_EQ(1, run("./nothing"));
	EXPECT_NO_FILE("profil.data.old");
	kill(recorder, SIGUSR1);
	EXPECT_END(recorder, 0, COMMAND);
}

/* Each recorder that succeeds has written a file, which no other recorder has removed. */
RECORD_TEST(recorders_that_start_together_keep_their_files)
{
	static const char *const names[] = { "profil.data", "profil.data.old" };

	for (int i = 0; i < 6; i++) {
		pid_t a = start(-1, work, "exit", "0");
		pid_t b = start(-1, i % 2 ? work : "./nothing", "exit", "0");
		int good = !end_of(a) + !end_of(b);
		int files = 0;

		for (int j = 0; j < 2; j++) {
			if (load_from(names[j])) {
				EXPECT_LOADED_WHOLE();
				files++;
			}
			unlink(names[j]);
		}
		EXPECT_EQ(good, files);
	}
}

RECORD_TEST(keeps_an_existing_file)
{
	struct stat first, kept, second;

	ASSERT_EQ(3, run(work, "exit", "3"));
	ASSERT_EQ(0, stat("profil.data", &first));
	EXPECT_EQ(0600, first.st_mode & 07777);
	ASSERT_EQ(0, chmod("profil.data", 0644));
	ASSERT_EQ(4, run(work, "exit", "4"));
	ASSERT_EQ(0, stat("profil.data.old", &kept));
	ASSERT_EQ(0, stat("profil.data", &second));
	EXPECT_EQ(first.st_ino, kept.st_ino);
	/* The new file is not the one that others may have been allowed to read. */
	EXPECT_EQ(0600, second.st_mode & 07777);
	EXPECT_WHOLE();
	EXPECT_EQ(4, WEXITSTATUS(sum.end.status));
	EXPECT_TRUE(load_from("profil.data.old"));
	EXPECT_EQ(3, WEXITSTATUS(sum.end.status));
}

RECORD_TEST(continues_in_new_files)
{
	u64 next = UINT64_MAX, samples = 0;
	const char *line;
	int nr;

	/*
	 * All ticks are in the files. profil.data.1 precedes profil.data, and so on. There are
	 * fewer than a thousand samples, so that their number has no comma.
	 */
	ASSERT_EQ(0, run("-F", machine_is_slow() ? "20" : "100", "--rotate", "0.3",
			 "--keep", "100", work, "burn", MS("1500")));
	for (nr = 0; !access(rotated("profil.data", nr), F_OK); nr++) {
		EXPECT_WHOLE_FILE(rotated("profil.data", nr));
		EXPECT_EQ(nr ? FORMAT_END_ROTATE : FORMAT_END_COMMAND, sum.end.reason);
		EXPECT_GT(next, sum.meta.start_monotonic);
		next = sum.meta.start_monotonic;
		samples += sum.user + sum.system;
	}
	EXPECT_LE(3, nr);
	line = as_text("profil record: %d samples", (int)samples);
	EXPECT_TRUE(said("err", line)) TH_LOG("%s, in %d files", line, nr);

	/* Only as many as wanted remain. Each can be reported. */
	ASSERT_EQ(0, run("-o", "new", "--rotate", "0.2", "--keep", "2", work, "burn", MS("900")));
	EXPECT_EQ(0, access("new.1", F_OK));
	EXPECT_NO_FILE("new.3");
	EXPECT_WHOLE_FILE("new.2");
	/* On a slow machine, a file can have only the start of the program. */
	if (sum.user > 20)
		EXPECT_MOST_IN_FILE("record_work");

	EXPECT_SAYS(2, "--keep requires --rotate", "--keep", "3", "true");
	EXPECT_EQ(2, run("--rotate", "0", "true"));
	EXPECT_EQ(2, run("--rotate", "1", "--keep", "0", "true"));
	EXPECT_SAYS(1, "--rotate requires a regular file", "--rotate", "1", "-o", "-", "true");
}

RECORD_TEST(does_not_start_if_an_existing_file_cannot_be_kept)
{
	ASSERT_EQ(3, run(work, "exit", "3"));
	ASSERT_EQ(0, symlink("profil.data", "profil.data.old"));
	EXPECT_SAYS(1, "the file with .old at the end", "sh", "-c", "echo started");
	EXPECT_FALSE(said("out", "started"));
	EXPECT_WHOLE();
	EXPECT_EQ(3, WEXITSTATUS(sum.end.status));

	/* Root can write to all directories. */
	if (!geteuid())
		return;
	ASSERT_EQ(0, unlink("profil.data.old"));
	/* The files for the output exist already. */
	ASSERT_EQ(0, chmod(".", 0500));
	EXPECT_EQ(1, run("sh", "-c", "echo started"));
	ASSERT_EQ(0, chmod(".", 0700));
	EXPECT_TRUE(said("err", "nothing can be renamed"));
	EXPECT_FALSE(said("out", "started"));
}

RECORD_TEST(refuses_links_and_directories)
{
	ASSERT_EQ(0, symlink("elsewhere", "profil.data"));
	EXPECT_SAYS(1, "symbolic link", work, "exit", "0");
	EXPECT_NO_FILE("elsewhere");
	ASSERT_EQ(0, unlink("profil.data"));

	EXPECT_SAYS(1, "record: /: ", "-o", "/", work, "exit", "0");
}

RECORD_TEST(refuses_files_of_other_users)
{
	struct stat st;

	SKIP_IF(geteuid(), "only root can make files of other users");
	close(open("profil.data", O_WRONLY | O_CREAT, 0666));
	ASSERT_EQ(0, chown("profil.data", 1, 1));
	EXPECT_SAYS(1, "belongs to another user", work, "exit", "0");
	ASSERT_EQ(0, stat("profil.data", &st));
	EXPECT_EQ(0, st.st_size);
	EXPECT_NO_FILE("profil.data.old");
}

RECORD_TEST(writes_to_a_fifo)
{
	pid_t reader;

	ASSERT_EQ(0, mkfifo("fifo", 0600));
	EXPECT_SAYS(1, "no process has opened this FIFO", "-o", "fifo", work, "exit", "0");
	reader = start_program("sh", "-c", "cat <fifo >profil.data");
	EXPECT_TRUE(WAIT_UNTIL(run("-o", "fifo", work, "burn", "100") == 0));
	EXPECT_EQ(0, end_of(reader));
	EXPECT_WHOLE();
	EXPECT_LT(0, sum.user);
}

RECORD_TEST(writes_to_standard_output)
{
	static const char script[] =
		"$0 record -o - sh -c 'echo text; $0 burn 100' $1 | cat >profil.data";

	EXPECT_EQ(0, run_script(script, -1));
	EXPECT_WHOLE();
	EXPECT_LT(0, sum.user);
	/* The output of the command goes to standard error. */
	EXPECT_TRUE(said("err", "text\n"));
	EXPECT_TRUE(said("err", " samples at"));

	EXPECT_EQ(0, run_script("$0 record -o - $1 burn 100 >profil.data", -1));
	EXPECT_WHOLE();

	terminal_open();
	EXPECT_EQ(1, run_script("$0 record -o - $1 exit 0 >/dev/tty", slave));
	EXPECT_TRUE(said("err", "terminal"));
}

/* A fifth session with a period cannot sample a process. */
RECORD_TEST(says_how_many_recorders_can_be_nested)
{
	static const char script[] = "r='$0 record -o'; eval $r 0 $r 1 $r 2 $r 3 $r 4 $1 exit 0";

	EXPECT_EQ(1, run_script(script, -1));
	EXPECT_TRUE(said("err", "the kernel allows (4)"));
	EXPECT_TRUE(said("err", "--tick"));
}

TEST_HARNESS_MAIN
