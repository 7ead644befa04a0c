// SPDX-License-Identifier: GPL-2.0
/*
 * profil top: its tables in batch mode, and its screen and keys in a pseudo-terminal.
 *
 * It samples record_work. Unless a test says so, the user is an ordinary one.
 */
#define SUBCOMMAND "top"
#include "command.h"

#include <termios.h>

#define HOT		"loops_text"	/* the function in which record_work burns */
#define ENTER		"\033[?1049h"	/* the alternate screen of the terminal */
#define LEAVE		"\033[?1049l"
#define FRAME		"\033[H"	/* the begin and the end of a frame */
#define FRAME_END	"\033[J"

static struct termios settings;		/* at the start */
static char screen[1 << 20];		/* the output to it, since forget() */
static size_t screen_len;

static void resize(int rows, int columns)
{
	const struct winsize size = { .ws_row = rows, .ws_col = columns };

	MUST(!ioctl(master, TIOCSWINSZ, &size));
}

/* Starts it in a terminal of its own. Messages go to the file err. */
static pid_t start_screen(char **arguments)
{
	terminal_open();
	resize(24, 80);
	fcntl(master, F_SETFL, O_NONBLOCK);
	tcgetattr(slave, &settings);
	screen_len = 0;
	return start_argv(arguments, slave);
}

/* To save time, it refreshes the screen more often than by default. */
#define start_on_terminal(...) start_screen(ARGUMENTS(					\
	"sh", "-c", "TERM=xterm exec \"$0\" top -d 0.3 \"$@\" </dev/tty >/dev/tty", command,	\
	__VA_ARGS__))

/* Returns true if this was written to the terminal. */
static bool shown(const char *text)
{
	ssize_t n;

	do {
		n = read(master, screen + screen_len, sizeof(screen) - 1 - screen_len);
		if (n > 0)
			screen_len += n;
	} while (n > 0);
	screen[screen_len] = 0;
	return strstr(screen, text);
}

/* Returns the last frame that is whole, until the next call; nothing if there is none. */
static const char *last_frame(void)
{
	static char frame[sizeof(screen)];
	char *start, *end;

	shown("");
	strcpy(frame, screen);
	end = frame;
	for (char *next = frame; (next = strstr(next, FRAME_END)); next++)
		end = next;
	*end = 0;
	start = frame;
	for (char *next = frame; (next = strstr(next, FRAME)); next++)
		start = next;
	return start;
}

static bool shown_in_frame(const char *text)
{
	return strstr(last_frame(), text);
}

static void forget(void)
{
	shown("");
	screen_len = 0;
}

static bool type(const char *keys)
{
	return write(master, keys, strlen(keys)) == (ssize_t)strlen(keys);
}

static bool has_old_settings(void)
{
	struct termios now;

	return !tcgetattr(slave, &now) && now.c_lflag == settings.c_lflag &&
	       now.c_iflag == settings.c_iflag && now.c_oflag == settings.c_oflag &&
	       !memcmp(now.c_cc, settings.c_cc, sizeof(now.c_cc));
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Returns the number of lines of the next frame. */
static int lines_of_frame(void)
{
	forget();
	MUST(WAIT_UNTIL(shown_in_frame(FRAME)));
	return 1 + count(last_frame(), "\n");
}

/* Returns true if the first row of a table of @text has these words. */
static bool begins_with(const char *text, const char *title, const char *word, const char *other)
{
	char line[256], titles[256];

	for (text = strstr(text, "   share"); text; text = strstr(text + 1, "   share")) {
		if (sscanf(text, "%255[^\n]\n%255[^\n]", titles, line) == 2 &&
		    strstr(titles, title) && strstr(line, word) && strstr(line, other))
			return true;
	}
	return false;
}

FIXTURE(top) {
};

COMMAND_SETUP(top)

#define TOP_TEST(name) TEST_F_TIMEOUT(top, name, 180)

/* Types ^C, which ends it. */
#define EXPECT_INTERRUPTED(top) do {							\
	EXPECT_TRUE(type("\003"));							\
	EXPECT_EQ(128 + SIGINT, end_of(top));						\
	EXPECT_TRUE(has_old_settings());						\
} while (0)

/* Types the keys, and waits for the text in a frame. */
#define EXPECT_ANSWER(keys, text) do {							\
	EXPECT_TRUE(type(keys));							\
	EXPECT_TRUE(WAIT_UNTIL(shown_in_frame(text)));					\
} while (0)

/* ---- batch mode ---- */

TOP_TEST(prints_the_hot_function_first)
{
	const char *text;

	ASSERT_EQ(0, run("-b", "-d", "0.3", work, "burn", "1500"));
	text = text_of("out");
	EXPECT_TRUE(begins_with(text, "symbol", "record_work", HOT)) TH_LOG("%s", text);
	EXPECT_LT(2, count(text, "profil top: "));
	EXPECT_EQ(NULL, strchr(text, '\033'));
	EXPECT_STREQ("", text_of("err"));

	/* A command that ends before the first refresh has a table, too. */
	ASSERT_EQ(0, run("-d", "60", work, "burn", "200"));
	text = text_of("out");
	EXPECT_TRUE(begins_with(text, "symbol", "record_work", HOT)) TH_LOG("%s", text);
	EXPECT_EQ(1, count(text, "profil top: "));
}

TOP_TEST(sorts_by_the_keys)
{
	ASSERT_EQ(0, run("-b", "-s", "comm,symbol", work, "burn", "200"));
	EXPECT_TRUE(begins_with(text_of("out"), "command", "record_work", HOT));
	EXPECT_FALSE(said("out", "binary"));
	ASSERT_EQ(0, run("-b", "-s", "syscall", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M",
			 "count=100"));
	EXPECT_TRUE(said("out", "system call\n"));
	EXPECT_TRUE(said("out", "%  read\n"));
	EXPECT_SAYS(2, "cannot sort by \"cpu\"", "-s", "cpu", "true");
}

TOP_TEST(shows_the_hottest_calls)
{
	const char *stacks_work = beside("stacks_work"), *text;
	pid_t top;

	ASSERT_EQ(0, run("-b", "-g", "-d", "0.3", stacks_work, "leaf", "2000"));
	text = text_of("out");
	EXPECT_LT(2, count(text, "  calls\n 100.00%")) TH_LOG("%s", text);
	/* A caller has the line of its callee if nearly all ticks are there. */
	EXPECT_LT(2, count(text, "leaf_caller > leaf\n")) TH_LOG("%s", text);
	EXPECT_EQ(count(text, "profil top: "), count(text, "% of the call stacks are complete\n"));
	/* The last table is made after the end of the process. */
	EXPECT_EQ(0, count(text, "[unknown]"));
	ASSERT_EQ(0, run("-b", stacks_work, "leaf", "100"));
	EXPECT_FALSE(said("out", "calls"));

	/* It is the first one of the views. */
	top = start_on_terminal("-g", stacks_work, "leaf", "60000");
	EXPECT_TRUE(WAIT_UNTIL(shown_in_frame("leaf_caller > leaf")));
	EXPECT_ANSWER("s", "  binary  ");
	EXPECT_FALSE(shown_in_frame("  calls"));
	EXPECT_ANSWER("\033[D", "  calls");
	EXPECT_ANSWER("\033[D", "  command ");
	EXPECT_INTERRUPTED(top);

	/* Without --stacks, it is left out. */
	top = start_on_terminal(stacks_work, "leaf", "60000");
	EXPECT_TRUE(WAIT_UNTIL(shown_in_frame("  binary  ")));
	EXPECT_ANSWER("\033[D", "  command ");
	EXPECT_FALSE(shown("  calls"));
	EXPECT_INTERRUPTED(top);
}

TOP_TEST(passes_on_the_exit_status)
{
	EXPECT_EQ(7, run(work, "exit", "7"));
	EXPECT_EQ(128 + SIGKILL, run(work, "kill", "9"));
	EXPECT_SAYS(127, "./nothing", "./nothing");
	EXPECT_EQ(2, run("-d", "0", "true"));
	EXPECT_EQ(2, run("-n", "0", "true"));
	EXPECT_EQ(2, run("-p", "no such process", "true"));
}

TOP_TEST(waits_for_the_command_after_the_last_table)
{
	/* The message is in the same directory. */
	static const char script[] = "until grep -q waiting err; do sleep 0.1; done; "
				     "echo text; exit 5";

	EXPECT_EQ(5, run("-b", "-d", "0.3", "-n", "2", "sh", "-c", script));
	EXPECT_EQ(2, count(text_of("out"), "profil top: "));
	EXPECT_TRUE(said("err", "waiting for process "));
	/* The output of the command is not in the tables. */
	EXPECT_TRUE(said("err", "text\n"));
	EXPECT_FALSE(said("out", "text\n"));
}

TOP_TEST(samples_a_process_with_p)
{
	pid_t child, top;
	const char *pid;

	NEED_PERFMON();
	child = start_burning();
	pid = as_text("%d", child);
	EXPECT_EQ(0, run("-b", "-d", "0.3", "-n", "2", "-p", pid));
	EXPECT_EQ(2, count(text_of("out"), "profil top: "));
	EXPECT_TRUE(begins_with(text_of("out"), "symbol", "record_work", HOT));
	/* It ends with the process. The file has the tables of the first one. */
	top = start(-1, "-b", "-d", "0.3", "-p", pid);
	EXPECT_TRUE(WAIT_UNTIL(said("out", HOT)));
	kill(child, SIGKILL);
	EXPECT_EQ(0, end_of(top));
	EXPECT_EQ(1000 + SIGKILL, end_of(child));
}

TOP_TEST(shows_the_whole_machine)
{
	static const char script[] = "$0 burn 300; exit 7";
	const char *text;
	pid_t child;

	NEED_PERFMON();
	child = start_burning();
	ASSERT_EQ(0, run("-a", "-b", "-d", "0.3", "-n", "2"));
	text = text_of("out");
	EXPECT_EQ(2, count(text, "profil top: the whole machine ("));
	EXPECT_TRUE(begins_with(text, "command", "record_work", HOT)) TH_LOG("%s", text);
	EXPECT_TRUE(begins_with(text, "binary", "record_work", HOT));
	EXPECT_EQ(0, count(text, "process "));
	EXPECT_EQ(0, count(text, "CPU "));
	EXPECT_EQ(0, run("-a", "-b", "-d", "0.3", "-n", "1", "-s", "symbol"));
	EXPECT_FALSE(said("out", "command"));

	/* It ends with a command. */
	EXPECT_EQ(7, run("-a", "-b", "-d", "60", "sh", "-c", script, work));
	EXPECT_TRUE(said("out", "profil top: the whole machine ("));
	EXPECT_TRUE(said("out", HOT));
	EXPECT_EQ(0, kill(child, SIGKILL));
}

TOP_TEST(the_whole_machine_requires_a_capability)
{
	EXPECT_EQ(2, run("-a", "-p", "1"));
	SKIP_IF(!geteuid(), "root has it");
	EXPECT_SAYS(1, "the whole machine: permission denied", "-a", "-b", "-n", "1");
	EXPECT_TRUE(said("err", "CAP_PERFMON"));
}

/* A program that has ended and was removed before the refresh has names. */
TOP_TEST(names_functions_of_programs_that_are_gone)
{
	const char *script = "cp $0 gone; ./gone burn 300; rm gone";

	ASSERT_EQ(0, run("-b", "-d", "30", "sh", "-c", script, work));
	EXPECT_TRUE(begins_with(text_of("out"), "symbol", "gone", HOT));
}

/* Nothing remains of the processes that have ended. */
TOP_TEST(uses_no_more_memory_and_descriptors_with_time)
{
	long kib[2] = {}, fds[2] = {};
	pid_t top = start(-1, "-b", "-d", "0.1", "-s", "thread,symbol", "sh", "-c",
			  "while :; do $0 exit 0; done", work);

	for (int i = 0; i < 2; i++) {
		const int tables = count(text_of("out"), "profil top: ");
		DIR *d;

		/* A row is forgotten after 10 tables, so all of them are replaced. */
		for (int n = 0; n < 12; n++)
			EXPECT_TRUE(WAIT_UNTIL(count(text_of("out"), "profil top: ") > tables + n));
		kib[i] = file_number(as_text("/proc/%d/status", top), "VmRSS:");
		d = opendir(as_text("/proc/%d/fd", top));
		while (d && readdir(d))
			fds[i]++;
		closedir(d);
	}
	EXPECT_LT(0, kib[0]);
	EXPECT_GE(kib[0] + 1024, kib[1]);
	/* One more may be open during a refresh. */
	EXPECT_GE(fds[0] + 8, fds[1]);
	kill(top, SIGTERM);
	EXPECT_EQ(128 + SIGTERM, end_of(top));
}

/* ---- the screen ---- */

TOP_TEST(q_quits_and_restores_the_terminal)
{
	/* profil is the leader of the terminal's session, so SIGHUP follows its end. */
	pid_t top = start_on_terminal(work, "deaf", "0"), child;

	EXPECT_TRUE(WAIT_UNTIL(shown(HOT)));
	EXPECT_TRUE(shown(ENTER));
	EXPECT_FALSE(has_old_settings());
	child = child_of(top);
	ASSERT_LT(0, child);
	forget();
	EXPECT_TRUE(type("q"));
	EXPECT_EQ(0, end_of(top));
	EXPECT_TRUE(has_old_settings());
	/* The last table remains on the screen, and the command continues. */
	EXPECT_TRUE(shown(LEAVE));
	EXPECT_TRUE(begins_with(strstr(screen, LEAVE), "symbol", "record_work", HOT));
	EXPECT_TRUE(said("err", "(record_work) continues\n"));
	EXPECT_EQ(0, kill(child, SIGKILL));
}

TOP_TEST(restores_the_terminal_after_the_end_of_the_command)
{
	const char *script = "$0 burn 500; echo $((6 * 7000)); read line; exit 3";
	pid_t top = start_on_terminal("sh", "-c", script, work);

	/* The command has no input, and its output is not on the screen. */
	EXPECT_EQ(3, end_of(top));
	EXPECT_TRUE(has_old_settings());
	EXPECT_TRUE(shown(LEAVE));
	EXPECT_FALSE(shown("42000"));
	EXPECT_TRUE(begins_with(strstr(screen, LEAVE), "symbol", "record_work", HOT));
}

TOP_TEST(restores_the_terminal_after_signals)
{
	static const int signals[] = { SIGTERM, SIGHUP, SIGSEGV, SIGABRT };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		const bool is_fatal = signals[i] == SIGSEGV || signals[i] == SIGABRT;
		pid_t top = start_on_terminal(work, "trap", "10", "0"), child;

		EXPECT_TRUE(WAIT_UNTIL(shown(FRAME)));
		EXPECT_FALSE(has_old_settings());
		child = child_of(top);
		kill(top, signals[i]);
		EXPECT_EQ((is_fatal ? 1000 : 128) + signals[i], end_of(top));
		EXPECT_TRUE(has_old_settings());
		EXPECT_TRUE(shown(LEAVE));
		kill(child, SIGKILL);
	}
	/* The terminal sends this to the command, too. */
	pid_t top = start_on_terminal(work, "trap", "10", "0");

	EXPECT_TRUE(WAIT_UNTIL(shown(HOT)));
	EXPECT_INTERRUPTED(top);
	EXPECT_TRUE(shown(LEAVE));
}

TOP_TEST(restores_the_terminal_while_it_is_stopped)
{
	pid_t top = start_on_terminal(work, "trap", "10", "0");
	int status;

	EXPECT_TRUE(WAIT_UNTIL(shown(HOT)));
	EXPECT_TRUE(type("\032"));
	ASSERT_EQ(top, waitpid(top, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	EXPECT_TRUE(has_old_settings());
	EXPECT_TRUE(shown(LEAVE));
	forget();
	kill(top, SIGCONT);
	EXPECT_TRUE(WAIT_UNTIL(shown(ENTER) && shown(HOT)));
	EXPECT_FALSE(has_old_settings());
	EXPECT_INTERRUPTED(top);
}

TOP_TEST(fits_the_screen_when_its_size_changes)
{
	pid_t top = start_on_terminal("-s", "thread", work, "threads", "12", "60000");

	EXPECT_TRUE(WAIT_UNTIL(shown(FRAME) && lines_of_frame() >= 16));
	resize(9, 60);
	EXPECT_TRUE(WAIT_UNTIL(lines_of_frame() == 9));
	EXPECT_TRUE(shown(" more"));
	resize(24, 60);
	EXPECT_TRUE(WAIT_UNTIL(lines_of_frame() >= 16));
	EXPECT_INTERRUPTED(top);
}

TOP_TEST(obeys_its_keys)
{
	pid_t top = start_on_terminal(work, "trap", "10", "0");

	EXPECT_TRUE(WAIT_UNTIL(shown(HOT) && shown(", 1 s")));
	EXPECT_ANSWER("p", "(paused)");
	forget();
	pause_ms(1000);
	EXPECT_FALSE(shown(FRAME));
	EXPECT_ANSWER("p", HOT);

	/* The keys change the columns while it is paused, too. */
	EXPECT_ANSWER("p", "(paused)");
	forget();
	EXPECT_ANSWER("s", "binary");
	EXPECT_FALSE(shown(HOT));
	EXPECT_ANSWER("\033[D", HOT);
	forget();
	EXPECT_ANSWER("\033[C\033OC", "command");
	EXPECT_TRUE(type("p"));

	forget();
	EXPECT_TRUE(WAIT_UNTIL(shown_in_frame("samples/s")));
	EXPECT_FALSE(shown(", 0 s"));
	forget();
	EXPECT_TRUE(type("r"));
	EXPECT_TRUE(WAIT_UNTIL(shown(", 0 s") && shown("last 0.0 s: 0 samples")));
	EXPECT_TRUE(type("q"));
	EXPECT_EQ(0, end_of(top));
}

/* The name of a program can be chosen by an attacker. */
TOP_TEST(escapes_names)
{
	static const char name[] = "./a\033[99mb\007";
	pid_t top;

	ASSERT_EQ(0, end_of(start_program("cp", work, name)));
	top = start_on_terminal("-s", "comm,dso", name, "burn", "500");
	EXPECT_EQ(0, end_of(top));
	EXPECT_TRUE(shown("a\\x1b[99mb\\x07  "));
	EXPECT_TRUE(shown("profil top: './a\\x1b[99mb\\x07' burn 500"));
	EXPECT_FALSE(shown("\033[99m"));
	EXPECT_FALSE(shown("\007"));
	EXPECT_EQ(0, run("-b", "-s", "process,thread,comm,dso,symbol", name, "burn", "500"));
	EXPECT_FALSE(said("out", "\033"));
	EXPECT_FALSE(said("out", "\007"));
	EXPECT_TRUE(said("out", "a\\x1b"));
}

TEST_HARNESS_MAIN
