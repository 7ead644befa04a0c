// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: targets that call exec
 */
#include "session.h"

#include <spawn.h>
#include <sys/xattr.h>

#include <linux/capability.h>

static bool is_new_program(pid_t pid)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return !strcmp(file_line(path, line, sizeof(line)), new_argv[0]);
}

static void *join_tick_and_exec(u32 scope)
{
	join_session(scope);
	MUST(loop_until(0, stats_now().hit >= 3));
	return exec_new_program(NEW_PROGRAM "=loop");
}

static int join_and_exec(void)
{
	return !join_tick_and_exec(PROFIL_SCOPE_PROCESS);
}

static int join_and_exec_from_a_thread(void)
{
	join_session(PROFIL_SCOPE_PROCESS);
	MUST(loop_until(0, stats_now().hit >= 3));
	start_beside(exec_new_program, (uintptr_t)(NEW_PROGRAM "=loop"));
	return run_loop((void *)1) ? 35 : 36;
}

/* Attaches only this thread, which becomes the first thread of the new program. */
static void *join_alone_and_exec(void *unused)
{
	(void)unused;
	return join_tick_and_exec(PROFIL_SCOPE_THREAD);
}

static int exec_in_an_attached_thread(void)
{
	start_beside(join_alone_and_exec, 0);
	return run_loop((void *)1) ? 35 : 36;
}

/* Starts @child() as the target of a session with ranges, and waits until it runs a new program. */
static pid_t follow(struct __test_metadata *_metadata, u32 on_exec, int (*child)(void))
{
	pid_t pid;

	fd = must_enable(must_open(.exec = on_exec));
	pid = spawn_counted(child);
	ASSERT_TRUE(await(is_new_program(pid)));
	return pid;
}

/* Checks that the session still samples @child, which runs a new program. */
static void expect_ticks_of(struct __test_metadata *_metadata, pid_t child)
{
	struct profil_range range = range_of_loops(page, 4);
	u32 counted = counters_sum(page, 4, LOOPS);
	u64 outside = stats_now().outside;

	EXPECT_LT(0U, counted);
	EXPECT_TRUE(await(stats_now().outside >= outside + 10));
	EXPECT_EQ(1U, stats_now().targets);
	/* The ranges ended with the old address space. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, shared->space, &range, 1));
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(counted, DISABLE_EXACT(page).hit);
}

/* Checks that the session does not sample @child, which runs a new program. */
static void expect_no_ticks_of(struct __test_metadata *_metadata, pid_t child)
{
	struct profil_stats s, then;
	u64 spent;

	EXPECT_TRUE(await(!stats_now().targets));
	then = stats_now();
	spent = cpu_ticks(child);
	EXPECT_TRUE(await(cpu_ticks(child) >= spent + 20));
	s = stats_now();
	EXPECT_EQ(then.ticks + then.unselected, s.ticks + s.unselected);
	EXPECT_EQ(0U, s.targets);
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(128 + SIGKILL, killed(child));
	DISABLE_EXACT(page);
}

static void expect_followed(struct __test_metadata *_metadata, int (*child)(void))
{
	expect_ticks_of(_metadata, follow(_metadata, PROFIL_EXEC_FOLLOW, child));
}

static void expect_not_followed(struct __test_metadata *_metadata, int (*child)(void))
{
	expect_no_ticks_of(_metadata, follow(_metadata, PROFIL_EXEC_OFF, child));
}

TEST_F_CALL(session, follows_a_child_that_joins_and_then_execs,
	    expect_followed(_metadata, join_and_exec))
TEST_F_CALL(session, follows_an_exec_by_another_thread,
	    expect_followed(_metadata, join_and_exec_from_a_thread))
TEST_F_CALL(session, with_EXEC_OFF_does_not_follow_an_exec,
	    expect_not_followed(_metadata, join_and_exec))
TEST_F_CALL(session, with_EXEC_OFF_does_not_follow_an_exec_by_another_thread,
	    expect_not_followed(_metadata, join_and_exec_from_a_thread))

TEST_F(session, of_one_thread_follows_its_exec)
{
	expect_followed(_metadata, exec_in_an_attached_thread);
	EXPECT_EQ(0U, page[1]);
}

TEST_F(session, of_one_thread_with_EXEC_OFF_does_not_follow_its_exec)
{
	expect_not_followed(_metadata, exec_in_an_attached_thread);
	EXPECT_EQ(0U, page[1]);
}

TEST_F(session, continues_when_exec_fails)
{
	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(-1, execve("/nonexistent", new_argv, new_envp));
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_LE(10U, DISABLE_EXACT(page).ticks);
}

/* The path of a program that exists only during a test. */
static char program[64];

#define NEED_USERS()	NEED_ROOT("to make a program of another user")

static int program_create(mode_t mode, bool capable)
{
	/* CAP_NET_RAW, permitted and effective; in the file's byte order, little-endian. */
	static const u8 caps[20] = { [0] = 1, [3] = 2, [5] = 1 << (CAP_NET_RAW - 8) };
	int err = 0;

	snprintf(program, sizeof(program), "/tmp/profil-session.%d", getpid());
	copy_program(program, mode);
	if (capable && setxattr(program, "security.capability", caps, sizeof(caps), 0))
		err = -errno;
	return err;
}

/* Before the exec, the process has ticks if the session is on. */
static int join_as_user_and_exec(void)
{
	become_user(USER);
	join_session(PROFIL_SCOPE_PROCESS);
	MUST(loop_until(0, stats_now().hit >= 3 || stats_now().state == PROFIL_STATE_OFF));
	return execve(program, new_argv, new_envp);
}

TEST_F(session, does_not_follow_into_a_program_that_gains_privilege)
{
	static const struct {
		const char *what;
		mode_t mode;
		bool capable;
		bool follow;
	} *c, cases[] = {
		{ "an ordinary program", 0755, false, true },
		{ "set-user-ID", 04755, false, false },
		{ "set-group-ID", 02755, false, false },
		{ "not to be read", 0711, false, false },
		{ "with capabilities", 0755, true, false },
	};
	pid_t child;
	int err;

	NEED_USERS();
	for (c = cases; c < cases + ARRAY_SIZE(cases); c++) {
		memset(page, 0, sizeof(page));
		shared->step = 0;
		err = program_create(c->mode, c->capable);
		TH_LOG("%s%s", c->what, err ? ": the file cannot hold that" : "");
		if (err == -EOPNOTSUPP)
			continue;
		ASSERT_EQ(0, err);
		child = follow(_metadata, PROFIL_EXEC_FOLLOW, join_as_user_and_exec);
		if (c->follow)
			expect_ticks_of(_metadata, child);
		else
			expect_no_ticks_of(_metadata, child);
		close_session();
		unlink(program);
	}
}

/* The results of two calls of read() by another thread. */
static struct {
	atomic_bool done;
	ssize_t first, second;
	u64 buffer[1024];
} reader;

static void *read_to_the_end(void *unused)
{
	reader.first = read(fd, reader.buffer, sizeof(reader.buffer));
	reader.second = read(fd, (char *)reader.buffer + reader.first, 4096);
	reader.done = true;
	return unused;
}

/* Starts a target that executes a set-user-ID program. The session is not enabled: no ticks. */
static pid_t leave(struct __test_metadata *_metadata, u32 on_exec, u32 nr_records)
{
	pid_t child;

	ASSERT_EQ(0, program_create(04755, false));
	fd = must_open(.exec = on_exec, .nr_records = nr_records);
	child = spawn(join_as_user_and_exec);
	ASSERT_TRUE(step_is(1));
	return child;
}

TEST_F(session, tells_a_waiting_reader_that_a_program_gains_privilege_and_then_ends)
{
	const struct profil_record *r = (void *)reader.buffer;
	pid_t child;

	NEED_USERS();
	child = leave(_metadata, PROFIL_EXEC_FOLLOW, 16);
	start_beside(read_to_the_end, 0);
	shared->step = 2;
	EXPECT_TRUE(await(reader.done));
	EXPECT_EQ((ssize_t)r->size, reader.first);
	EXPECT_EQ(0, reader.second);
	stop_beside();
	EXPECT_EQ((u32)(PROFIL_RECORD_DETACHED | PROFIL_RECORD_FILE), r->flags);
	EXPECT_EQ(0, strcmp(program, r->path));
	EXPECT_EQ(child, r->pid);
	EXPECT_EQ(child, r->tid);
	EXPECT_EQ(shared->space, r->space);
	EXPECT_EQ(0U, r->periods);
	EXPECT_EQ(0U, stats_now().ticks + stats_now().outside + stats_now().unfollowed);
	EXPECT_EQ(0U, stats_now().targets);
	killed(child);
	unlink(program);
}

TEST_F(session, counts_as_unfollowed_what_it_has_no_room_to_tell)
{
	pid_t child;

	NEED_USERS();
	child = leave(_metadata, PROFIL_EXEC_FOLLOW, 1);
	/* The only record is that of another target. */
	must_sample(fd, PROFIL_SCOPE_PROCESS, NULL, 0);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	shared->step = 2;
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_EQ(1U, stats_now().unfollowed);
	EXPECT_EQ(1U, stats_now().outside);
	killed(child);
	unlink(program);
}

TEST_F(session, tells_nobody_of_an_exec_that_it_would_not_follow_anyway)
{
	pid_t child;

	NEED_USERS();
	child = leave(_metadata, PROFIL_EXEC_OFF, 16);
	shared->step = 2;
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(0, read(fd, reader.buffer, sizeof(reader.buffer)));
	killed(child);
	unlink(program);
}

TEST_F(session, follows_a_spawned_program)
{
	struct profil_range range = range_all(page, 1, 4);
	struct profil_stats s;
	pid_t child;

	/* All ticks of this process are hits, so ticks outside belong to the spawned program. */
	fd = must_sample(must_open(.fork = PROFIL_FORK_SHARE, .exec = PROFIL_EXEC_FOLLOW),
			 PROFIL_SCOPE_PROCESS, &range, 1);
	ASSERT_EQ(0, posix_spawn(&child, SELF, NULL, NULL, new_argv, new_envp));
	child_note(child);
	EXPECT_TRUE(await(stats_now().outside >= 10));
	EXPECT_EQ(2U, stats_now().targets);
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_EQ(0U, s.unfollowed);
}

TEST_HARNESS_MAIN
