// SPDX-License-Identifier: GPL-2.0
/*
 * profil record: compares the recording with its statistics and with the programs that ran.
 *
 * The command is that of the tree; or the one in the environment's PROFIL; or the installed one. It
 * records record_work, which is beside this program. Unless a test says so, the user is an ordinary
 * one.
 */
#include "kselftest_harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#include <linux/profil.h>

#include "recording/format.h"

#define MOST 4096	/* maximum number of processes and files in a recording */

static char here[PATH_MAX];	/* the directory of record_work */
static char work[PATH_MAX];
static char command[PATH_MAX];
static char dir[64];		/* directory for the files of a test; the working directory */
static pid_t running[8];	/* processes to kill at the end if they still run */

/* The contents of the recording. */
static struct sum {
	bool there;
	const char *error;
	bool ended;
	struct format_end end;
	struct format_meta meta;
	struct format_account account;
	u64 user, system;
	u64 user_at_account, system_at_account;	/* sums when the last statistics were read */
	u64 nr_accounts;
	struct format_process processes[MOST];
	u64 of_process[MOST];		/* user ticks, by the process's number */
	u64 nr_processes;
	struct format_file files[MOST];
	char paths[MOST][256];
	u64 of_file[MOST];
	u64 nr_files;
	u64 unknown;			/* samples with an unknown process or file */
} sum;

static void read_samples(const struct format_block *b)
{
	for (size_t i = 0; i < b->nr_samples; i++) {
		const struct format_sample *s = &b->samples[i];

		sum.user += s->user;
		sum.system += s->system;
		if (!s->process || s->process > sum.nr_processes || s->file > sum.nr_files) {
			sum.unknown++;
			continue;
		}
		sum.of_process[s->process - 1] += s->user;
		if (s->file)
			sum.of_file[s->file - 1] += s->user;
	}
}

/* The recorder numbers processes and files in order, without gaps. */
static bool read_block(const struct format_block *b)
{
	switch (b->type) {
	case FORMAT_META:
		sum.meta = b->meta;
		break;
	case FORMAT_PROCESS:
		if (sum.nr_processes == MOST || b->process.id != sum.nr_processes + 1)
			return false;
		sum.processes[sum.nr_processes++] = b->process;
		break;
	case FORMAT_FILE:
		if (sum.nr_files == MOST || b->file.id != sum.nr_files + 1)
			return false;
		sum.files[sum.nr_files] = b->file;
		snprintf(sum.paths[sum.nr_files], sizeof(sum.paths[0]), "%s", b->file.path);
		sum.files[sum.nr_files].path = sum.paths[sum.nr_files];
		sum.nr_files++;
		break;
	case FORMAT_SAMPLES:
		read_samples(b);
		break;
	case FORMAT_STATS:
		sum.account = b->account;
		sum.user_at_account = sum.user;
		sum.system_at_account = sum.system;
		sum.nr_accounts++;
		break;
	case FORMAT_END:
		sum.ended = true;
		sum.end = b->end;
		break;
	}
	return true;
}

static bool load(void)
{
	struct format_reader *reader;
	struct format_block block;
	int more = 0;

	memset(&sum, 0, sizeof(sum));
	reader = format_open("profil.data", &sum.error);
	if (!reader)
		return false;
	sum.there = true;
	while ((more = format_next(reader, &block)) > 0) {
		if (!read_block(&block)) {
			sum.error = "numbers that do not follow each other";
			more = -1;
			break;
		}
	}
	if (more < 0 && !sum.error)
		sum.error = format_error(reader);
	format_free(reader);
	return more == 0;
}

static bool balances(const struct format_stats *s)
{
	return s->hit + s->outside + s->saturated + s->dropped == s->ticks &&
	       s->user + s->system == s->ticks;
}

/* Relations that hold for each complete recording. */
#define EXPECT_WHOLE() do {								\
	EXPECT_TRUE(load()) TH_LOG("%s", sum.error);					\
	EXPECT_TRUE(sum.ended);								\
	EXPECT_EQ(0, sum.unknown);							\
	EXPECT_TRUE(balances(&sum.account.user));					\
	EXPECT_TRUE(balances(&sum.account.system));					\
	EXPECT_EQ(sum.account.user.hit + sum.account.user.outside, sum.user);		\
	EXPECT_EQ(sum.account.system.hit + sum.account.system.outside, sum.system);	\
	EXPECT_EQ(0, sum.account.user.system);						\
	EXPECT_EQ(0, sum.account.system.user);						\
} while (0)

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* User ticks in the files with the name @name. */
static u64 in_file(const char *name)
{
	u64 ticks = 0;

	for (u64 i = 0; i < sum.nr_files; i++)
		if (!strcmp(base(sum.paths[i]), name))
			ticks += sum.of_file[i];
	return ticks;
}

static u64 in_process(const char *comm)
{
	u64 ticks = 0;

	for (u64 i = 0; i < sum.nr_processes; i++)
		if (!strcmp(sum.processes[i].comm, comm))
			ticks += sum.of_process[i];
	return ticks;
}

/* Starts @argv with its output in files; if @terminal >= 0, in a new session of that terminal. */
static pid_t start_argv(char *const argv[], int terminal)
{
	pid_t child = fork();
	int fd;

	if (child) {
		for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++) {
			if (!running[i]) {
				running[i] = child;
				break;
			}
		}
		return child;
	}
	if (terminal >= 0) {
		setsid();
		if (ioctl(terminal, TIOCSCTTY, 0))
			_exit(99);
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDOUT_FILENO);
	fd = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(98);
}

static char **arguments(va_list args)
{
	static char *argv[64];
	int n = 2;

	argv[0] = command;
	argv[1] = "record";
	while ((argv[n] = va_arg(args, char *)))
		n++;
	return argv;
}

/* Starts profil record with these arguments, which end with NULL. */
static pid_t start(int terminal, ...)
{
	va_list args;
	pid_t child;

	va_start(args, terminal);
	child = start_argv(arguments(args), terminal);
	va_end(args);
	return child;
}

static int end_of(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			return -1;
	for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++)
		if (running[i] == child)
			running[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int run(const char *first, ...)
{
	char *argv[64] = { command, "record", (char *)first };
	va_list args;
	int n = 3;

	va_start(args, first);
	while ((argv[n] = va_arg(args, char *)))
		n++;
	va_end(args);
	return end_of(start_argv(argv, -1));
}

static bool said(const char *file, const char *what)
{
	static char text[65536];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = 0;
	return strstr(text, what);
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* Waits for half a minute at most. */
#define WAIT_UNTIL(cond) ({							\
	int tries = 600;							\
										\
	while (!(cond) && tries--)						\
		pause_ms(50);							\
	tries >= 0;								\
})

/* Has record_work printed that it is ready? */
static bool ready(void)
{
	return said("out", "\n");
}

/* The process that the recorder started. */
static pid_t child_of(pid_t parent)
{
	char path[64];
	pid_t child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%d", &child) != 1)
			child = 0;
		fclose(f);
	}
	return child;
}

static bool beside(char *path, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", here, name) < PATH_MAX && !access(path, X_OK);
}

FIXTURE(record) {
};

FIXTURE_SETUP(record)
{
	const char *set = getenv("PROFIL");
	ssize_t len = readlink("/proc/self/exe", here, sizeof(here) - 1);

	ASSERT_LT(0, len);
	here[len] = 0;
	*strrchr(here, '/') = 0;
	ASSERT_TRUE(beside(work, "record_work"));
	if (set)
		snprintf(command, sizeof(command), "%s", set);
	else if (!beside(command, "../../tools/profil"))
		snprintf(command, sizeof(command), "profil");
	strcpy(dir, "/tmp/record-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	ASSERT_EQ(0, chdir(dir));
}

FIXTURE_TEARDOWN(record)
{
	struct dirent *entry;
	DIR *d;

	for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++) {
		if (running[i]) {
			kill(running[i], SIGKILL);
			waitpid(running[i], NULL, 0);
		}
	}
	d = opendir(dir);
	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	EXPECT_EQ(0, chdir("/"));
	rmdir(dir);
}

#define RECORD_TEST(name) TEST_F_TIMEOUT(record, name, 120)

RECORD_TEST(counts_each_tick_once)
{
	ASSERT_EQ(0, run(work, "burn", "3000", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	EXPECT_EQ(0, sum.end.status);
	EXPECT_LT(100, sum.user);
	/* Nearly all of the time is spent in one loop, for whose page record soon adds a range. */
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work"));
	EXPECT_LT(sum.user * 3 / 4, in_process("record_work"));
	EXPECT_LT(sum.user / 2, sum.account.user.hit);
	EXPECT_LT(1, sum.nr_accounts);
	EXPECT_EQ(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM, sum.meta.modes);
	EXPECT_TRUE(said("err", "profil.data: ticks "));
}

RECORD_TEST(identifies_the_file_by_inode_size_time_and_build_id)
{
	struct stat st;
	u64 i;

	ASSERT_EQ(0, run(work, "burn", "500", NULL));
	EXPECT_WHOLE();
	for (i = 0; i < sum.nr_files && strcmp(base(sum.paths[i]), "record_work"); i++)
		;
	ASSERT_LT(i, sum.nr_files);
	ASSERT_EQ(0, stat(work, &st));
	EXPECT_EQ(st.st_ino, sum.files[i].ino);
	EXPECT_EQ(st.st_size, sum.files[i].size);
	EXPECT_EQ(st.st_mtim.tv_sec, sum.files[i].mtime / 1000000000);
	EXPECT_EQ(20, sum.files[i].build_id_len);
	EXPECT_EQ(0, sum.files[i].flags);
}

RECORD_TEST(passes_on_the_exit_status)
{
	EXPECT_EQ(0, run(work, "exit", "0", NULL));
	EXPECT_EQ(7, run(work, "exit", "7", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(7, WEXITSTATUS(sum.end.status));
	EXPECT_EQ(128 + SIGKILL, run(work, "kill", "9", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(SIGKILL, WTERMSIG(sum.end.status));
	EXPECT_EQ(128 + SIGTERM, run(work, "kill", "15", NULL));
}

RECORD_TEST(a_command_that_cannot_run_leaves_no_file)
{
	struct stat st;

	EXPECT_EQ(127, run("./nothing", NULL));
	EXPECT_TRUE(said("err", "./nothing"));
	EXPECT_NE(0, access("profil.data", F_OK));
	EXPECT_EQ(126, run("/", NULL));
	EXPECT_NE(0, access("profil.data", F_OK));
	EXPECT_EQ(126, run("/dev/null", NULL));
	EXPECT_NE(0, access("profil.data", F_OK));

	/* A file that exists stays unchanged. */
	ASSERT_EQ(0, run(work, "burn", "300", NULL));
	ASSERT_EQ(0, stat("profil.data", &st));
	EXPECT_EQ(127, run("./nothing", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(0, sum.user);
}

RECORD_TEST(wrong_arguments_are_errors)
{
	EXPECT_EQ(2, run(NULL));
	EXPECT_EQ(2, run("--nonsense", "true", NULL));
	EXPECT_EQ(2, run("-p", "0", NULL));
	EXPECT_EQ(2, run("-p", "1x", NULL));
	EXPECT_EQ(2, run("-p", "1", "true", NULL));
	EXPECT_EQ(2, run("--duration", "-1", "true", NULL));
	EXPECT_EQ(2, run("--duration", "nan", "true", NULL));
	EXPECT_EQ(2, run("--duration", "", "true", NULL));
	EXPECT_NE(0, access("profil.data", F_OK));
	EXPECT_EQ(1, run("-o", "no/such/file", "true", NULL));
	EXPECT_TRUE(said("err", "no/such/file"));
	EXPECT_EQ(0, run("--help", NULL));
	EXPECT_TRUE(said("out", "--per-thread"));
	EXPECT_EQ(0, run("-o", "other", "--", work, "exit", "0", NULL));
	EXPECT_EQ(0, access("other", F_OK));
}

RECORD_TEST(passes_on_signals)
{
	const int signals[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		char number[16];
		pid_t recorder;

		unlink("out");
		snprintf(number, sizeof(number), "%d", signals[i]);
		recorder = start(-1, work, "trap", number, "5", NULL);
		EXPECT_TRUE(WAIT_UNTIL(ready()));
		kill(recorder, signals[i]);
		EXPECT_EQ(5, end_of(recorder)) TH_LOG("signal %d", signals[i]);
		EXPECT_WHOLE();
		EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	}
}

static int terminal_open(int *slave)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	*slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	return *slave < 0 ? -1 : master;
}

RECORD_TEST(ends_with_the_command_on_ctrl_c)
{
	int slave, master = terminal_open(&slave);
	pid_t recorder;

	ASSERT_LE(0, master);
	recorder = start(slave, work, "trap", "10", "0", NULL);
	EXPECT_TRUE(WAIT_UNTIL(ready()));
	EXPECT_EQ(1, write(master, "\003", 1));
	EXPECT_EQ(128 + SIGINT, end_of(recorder));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	EXPECT_EQ(SIGINT, WTERMSIG(sum.end.status));
	close(slave);
	close(master);
}

RECORD_TEST(ends_without_the_command_on_the_second_ctrl_c)
{
	int slave, master = terminal_open(&slave);
	pid_t recorder, child;

	ASSERT_LE(0, master);
	recorder = start(slave, work, "deaf", "0", NULL);
	EXPECT_TRUE(WAIT_UNTIL(ready()));
	child = child_of(recorder);
	ASSERT_LT(0, child);
	EXPECT_EQ(1, write(master, "\003", 1));
	pause_ms(1500);
	EXPECT_EQ(0, waitpid(recorder, NULL, WNOHANG));
	EXPECT_EQ(1, write(master, "\003", 1));
	EXPECT_EQ(128 + SIGINT, end_of(recorder));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_SIGNAL, sum.end.reason);
	/* The recorder has not killed the command. */
	EXPECT_EQ(0, kill(child, 0));
	kill(child, SIGKILL);
	close(slave);
	close(master);
}

RECORD_TEST(leaves_a_readable_file_if_it_is_killed)
{
	pid_t recorder, child;

	recorder = start(-1, work, "trap", "10", "0", NULL);
	EXPECT_TRUE(WAIT_UNTIL(ready()));
	child = child_of(recorder);
	ASSERT_LT(0, child);
	EXPECT_TRUE(WAIT_UNTIL(load() && sum.nr_accounts >= 3));
	kill(recorder, SIGKILL);
	EXPECT_EQ(1000 + SIGKILL, end_of(recorder));
	EXPECT_EQ(0, kill(child, SIGKILL));

	EXPECT_TRUE(load()) TH_LOG("%s", sum.error);
	EXPECT_FALSE(sum.ended);
	EXPECT_LE(3, sum.nr_accounts);
	EXPECT_LT(50, sum.user);
	EXPECT_EQ(0, sum.unknown);
	/* Samples and statistics were read at the same times. */
	EXPECT_EQ(sum.account.user.hit + sum.account.user.outside, sum.user_at_account);
	EXPECT_EQ(sum.account.system.hit + sum.account.system.outside, sum.system_at_account);
	EXPECT_EQ(sum.user_at_account, sum.user);
}

RECORD_TEST(the_file_can_be_read_during_the_recording)
{
	pid_t recorder = start(-1, work, "burn", "4000", NULL);
	unsigned int seen = 0;
	u64 last = 0;

	while (!waitpid(recorder, NULL, WNOHANG)) {
		pause_ms(20);
		/*
		 * The last block may be incomplete at this moment. Only the blocks before it count.
		 */
		load();
		if (!sum.there)
			continue;
		EXPECT_LE(last, sum.user);
		EXPECT_EQ(sum.account.user.hit + sum.account.user.outside, sum.user_at_account);
		seen += sum.user > last;
		last = sum.user;
	}
	for (size_t i = 0; i < sizeof(running) / sizeof(*running); i++)
		running[i] = running[i] == recorder ? 0 : running[i];
	EXPECT_LE(2, seen);
	EXPECT_WHOLE();
}

RECORD_TEST(samples_with_the_requested_period)
{
	static const struct { const char *option, *value; u64 ns; } good[] = {
		{ "--user-only", NULL, 1000000 },
		{ "--freq", "500", 2000000 },
		{ "-F", "8128", 123031 },
		{ "--period", "100us", 100000 },
		{ "--period", "0.02s", 20000000 },
	};
	static const struct { const char *option, *value, *more; } bad[] = {
		{ "--period", "5", NULL }, { "--period", "ms", NULL }, { "--period", "-1ms", NULL },
		{ "--freq", "0", NULL }, { "--freq", "x", NULL }, { "--tick", "--freq", "5" },
		{ "--period", "2h", NULL }, { "--freq", "nan", NULL },
	};
	static const char *const not_allowed[] = { "9999ns", "1.1s" };

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		int status = good[i].value ?
			     run(good[i].option, good[i].value, work, "burn", "300", NULL) :
			     run(good[i].option, work, "burn", "300", NULL);

		EXPECT_EQ(0, status);
		EXPECT_WHOLE();
		EXPECT_EQ(good[i].ns, sum.meta.tick_ns);
		EXPECT_LT(0, sum.user);
	}
	ASSERT_EQ(0, run("--tick", work, "burn", "300", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(900000, sum.meta.tick_ns);
	EXPECT_LT(0, sum.user);

	unlink("profil.data");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int status = bad[i].more ?
			     run(bad[i].option, bad[i].value, bad[i].more, "true", NULL) :
			     run(bad[i].option, bad[i].value, "true", NULL);

		EXPECT_EQ(2, status) TH_LOG("%s %s", bad[i].option, bad[i].value);
	}
	for (size_t i = 0; i < sizeof(not_allowed) / sizeof(*not_allowed); i++) {
		EXPECT_EQ(1, run("--period", not_allowed[i], "true", NULL));
		EXPECT_TRUE(said("err", "the kernel allows"));
	}
	EXPECT_NE(0, access("profil.data", F_OK));
}

RECORD_TEST(follows_forks)
{
	u64 burners = 0;

	ASSERT_EQ(0, run(work, "fork", "5", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_CHILDREN, sum.meta.flags);
	for (u64 i = 0; i < sum.nr_processes; i++)
		burners += sum.of_process[i] * 20 > sum.user;
	/* The ticks of each child are its own. */
	EXPECT_EQ(5, burners);
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work"));
}

RECORD_TEST(does_not_follow_forks_with_no_children)
{
	ASSERT_EQ(0, run("--no-children", work, "fork", "2", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(0, sum.meta.flags);
	EXPECT_GT(400, sum.user);		/* of 1400, which all processes have together */
	for (u64 i = 1; i < sum.nr_processes; i++)
		EXPECT_EQ(sum.processes[0].pid, sum.processes[i].pid);
}

RECORD_TEST(follows_execs)
{
	ASSERT_EQ(0, run(work, "exec", "1000", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(sum.user / 5, in_process("record_work"));
	EXPECT_LT(sum.user / 5, in_process("exe"));
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work"));
}

RECORD_TEST(ends_when_the_command_ends)
{
	int orphan = 0;
	FILE *out;

	ASSERT_EQ(0, run(work, "orphan", "100000", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_COMMAND, sum.end.reason);
	out = fopen("out", "r");
	ASSERT_NE(NULL, out);
	EXPECT_EQ(1, fscanf(out, "%d", &orphan));
	fclose(out);
	ASSERT_LT(1, orphan);
	EXPECT_EQ(0, kill(orphan, SIGKILL));
}

RECORD_TEST(counts_threads)
{
	ASSERT_EQ(0, run(work, "threads", "4", "1000", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(sum.user * 3 / 4, in_process("record_work"));
	for (u64 i = 0; i < sum.nr_processes; i++)
		EXPECT_EQ(0, sum.processes[i].tid);
}

RECORD_TEST(distinguishes_threads_with_per_thread)
{
	u64 burners = 0;

	ASSERT_EQ(0, run("--per-thread", work, "threads", "4", "1000", NULL));
	EXPECT_WHOLE();
	EXPECT_TRUE(sum.meta.flags & FORMAT_PER_THREAD);
	EXPECT_EQ(0, sum.account.user.hit);
	for (u64 i = 0; i < sum.nr_processes; i++) {
		EXPECT_NE(0, sum.processes[i].tid);
		burners += !strncmp(sum.processes[i].comm, "burner-", 7) &&
			   sum.of_process[i] * 20 > sum.user;
	}
	EXPECT_EQ(4, burners);
}

RECORD_TEST(leaves_out_system_ticks_with_user_only)
{
	ASSERT_EQ(0, run("--user-only", work, "burn", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(PROFIL_MODE_USER, sum.meta.modes);
	EXPECT_EQ(0, sum.system);
	EXPECT_EQ(0, sum.account.system.ticks);
	EXPECT_LT(50, sum.user);
	EXPECT_TRUE(said("err", "unselected "));
}

RECORD_TEST(records_static_programs)
{
	char path[PATH_MAX];

	ASSERT_TRUE(beside(path, "record_work_static"));
	ASSERT_EQ(0, run(path, "burn", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work_static"));
}

RECORD_TEST(records_32_bit_programs)
{
	char path[PATH_MAX];

	if (!beside(path, "record_work_32"))
		SKIP(return, "no 32-bit program could be built here");
	ASSERT_EQ(0, run(path, "burn", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work_32"));
}

RECORD_TEST(records_scripts)
{
	FILE *f = fopen("script", "w");

	ASSERT_NE(NULL, f);
	fprintf(f, "#!/bin/sh\ni=0\nwhile [ $i -lt 300000 ]; do i=$((i + 1)); done\n");
	fclose(f);
	ASSERT_EQ(0, chmod("script", 0700));
	ASSERT_EQ(0, run("./script", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(10, sum.user);
	EXPECT_LT(sum.user / 2, in_process("script"));
}

RECORD_TEST(records_text_without_a_file)
{
	u64 i, most = 0;

	ASSERT_EQ(0, run(work, "wide", "1", "700", NULL));
	EXPECT_WHOLE();
	for (i = 0; i < sum.nr_files; i++)
		if (sum.of_file[i] > sum.of_file[most])
			most = i;
	EXPECT_STREQ("[anon]", sum.paths[most]);
	EXPECT_EQ(FORMAT_FILE_NONE, sum.files[most].flags);
	EXPECT_LT(sum.user * 3 / 4, sum.of_file[most]);
}

/* After a swap, at most one second of ticks is counted for the old file. */
RECORD_TEST(notices_that_another_file_is_mapped)
{
	u64 a, b;

	ASSERT_EQ(0, end_of(start_argv((char *[]){ work, "make", "first", NULL }, -1)));
	ASSERT_EQ(0, end_of(start_argv((char *[]){ work, "make", "second", NULL }, -1)));
	ASSERT_EQ(0, run(work, "swap", "first", "second", "2", "4000", NULL));
	EXPECT_WHOLE();
	a = in_file("first");
	b = in_file("second");
	EXPECT_LT(sum.user * 3 / 4, a + b);
	EXPECT_LT(sum.user / 4, a);
	EXPECT_LT(sum.user / 4, b);
}

RECORD_TEST(respects_RLIMIT_MEMLOCK)
{
	struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };

	if (!geteuid())
		SKIP(return, "root has no limit of locked memory");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	/* The program uses far more pages, in turns, than there is memory for their counters. */
	ASSERT_EQ(0, run(work, "wide", "400", "8000", NULL));
	EXPECT_WHOLE();
	EXPECT_GE(1 << 20, sum.account.peak_locked);
	EXPECT_LT(0, sum.account.user.outside);
	EXPECT_EQ(0, sum.account.user.dropped_record);
}

RECORD_TEST(works_with_a_small_buffer_of_records)
{
	struct rlimit limit = { .rlim_cur = 256 << 10, .rlim_max = 256 << 10 };

	if (!geteuid())
		SKIP(return, "root has no limit of locked memory");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, run(work, "burn", "700", NULL));
	EXPECT_WHOLE();
	EXPECT_LT(sum.user * 3 / 4, in_file("record_work"));

	limit.rlim_cur = 0;
	limit.rlim_max = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	unlink("profil.data");
	EXPECT_EQ(1, run(work, "burn", "700", NULL));
	EXPECT_TRUE(said("err", "RLIMIT_MEMLOCK"));
	EXPECT_NE(0, access("profil.data", F_OK));
}

RECORD_TEST(ends_after_the_duration)
{
	ASSERT_EQ(0, run("--duration", "1.5", work, "burn", "4000", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_DURATION, sum.end.reason);
	EXPECT_LE(1500000000ULL, sum.end.time - sum.meta.start_monotonic);
	EXPECT_LT(20, sum.user);
	/* The recorder waits until the command ends. */
	EXPECT_EQ(5, run("--duration", "0.1", "sh", "-c", "sleep 1; exit 5", NULL));
	EXPECT_WHOLE();
}

RECORD_TEST(reports_the_capability_that_another_process_needs)
{
	char pid[16];

	if (!geteuid())
		SKIP(return, "root has it");
	snprintf(pid, sizeof(pid), "%d", getpid());
	EXPECT_EQ(1, run("-p", pid, "--duration", "1", NULL));
	EXPECT_TRUE(said("err", "CAP_PERFMON"));
	EXPECT_TRUE(said("err", "setcap"));
	EXPECT_NE(0, access("profil.data", F_OK));
	/* There is no process with this id. */
	EXPECT_EQ(1, run("-p", "2147483647", NULL));
	EXPECT_TRUE(said("err", "no process"));
}

RECORD_TEST(records_a_process_with_p)
{
	pid_t child, recorder;
	char pid[16];

	if (geteuid())
		SKIP(return, "needs CAP_PERFMON: run as root");
	child = start_argv((char *[]){ work, "trap", "10", "0", NULL }, -1);
	EXPECT_TRUE(WAIT_UNTIL(ready()));
	snprintf(pid, sizeof(pid), "%d", child);
	EXPECT_EQ(0, run("-p", pid, "--duration", "2", NULL));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_DURATION, sum.end.reason);
	EXPECT_TRUE(sum.meta.flags & FORMAT_ATTACHED);
	EXPECT_LT(20, sum.user);
	EXPECT_LT(sum.user * 3 / 4, in_process("record_work"));

	/* The recording lasts until the recorder gets a signal. */
	recorder = start(-1, "-p", pid, NULL);
	EXPECT_TRUE(WAIT_UNTIL(load() && !sum.ended && sum.nr_accounts >= 2));
	kill(recorder, SIGINT);
	EXPECT_EQ(0, end_of(recorder));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_SIGNAL, sum.end.reason);

	/* The recording lasts until the process ends, before its parent has waited for it. */
	unlink("profil.data");
	recorder = start(-1, "-p", pid, NULL);
	EXPECT_TRUE(WAIT_UNTIL(load() && sum.nr_accounts >= 1));
	kill(child, SIGKILL);
	EXPECT_EQ(0, end_of(recorder));
	EXPECT_WHOLE();
	EXPECT_EQ(FORMAT_END_TARGETS, sum.end.reason);
	EXPECT_EQ(1000 + SIGKILL, end_of(child));
}

RECORD_TEST(reports_a_full_disk)
{
	EXPECT_EQ(1, run("-o", "/dev/full", work, "burn", "300", NULL));
	EXPECT_TRUE(said("err", "/dev/full"));
	/* The command runs nevertheless, and its exit status is returned. */
	EXPECT_EQ(9, run("-o", "/dev/full", work, "exit", "9", NULL));
}

RECORD_TEST(refuses_to_write_to_the_file_of_another_recording)
{
	pid_t recorder = start(-1, work, "trap", "10", "0", NULL);

	EXPECT_TRUE(WAIT_UNTIL(ready() && load()));
	EXPECT_EQ(1, run(work, "exit", "0", NULL));
	EXPECT_TRUE(said("err", "another recorder"));
	kill(recorder, SIGUSR1);
	EXPECT_EQ(0, end_of(recorder));
	EXPECT_WHOLE();
}

TEST_HARNESS_MAIN
