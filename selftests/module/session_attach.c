// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: other processes as targets, which join or are attached
 */
#include "session.h"

#include <linux/aio_abi.h>

#include "held.h"
#include "small_program.h"

#define FOREIGN		8U	/* places for sessions that are attached by capability */

static u32 other[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

TEST_F(session, counts_a_joined_child_in_the_creators_memory)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t child;

	fd = must_enable(must_open());
	child = spawn_counted(join_and_burn);
	/* It is a target until it has been reaped. */
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_EQ(locked + PAGE, pinned_bytes());
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(await(!stats_now().targets));
	s = DISABLE_EXACT(page);
	EXPECT_LT(0U, page[0]);
	EXPECT_LE(10U, s.ticks);

	/* The child's address space has no target any more. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, shared->space, &range, 1));
	EXPECT_EQ(-ESRCH, descriptor_remove(fd, shared->space, 0, 1));
}

TEST_F(session, expects_ticks_for_the_cpu_time_of_its_targets)
{
	struct profil_stats s;
	u64 before, attached, after, spent;

	fd = must_enable(must_open());
	before = children_ns();
	EXPECT_CHILD({
		MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		spent = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
		loop_spend(0, 30, tick_ns());
		shared->cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - spent;
	});
	after = children_ns();
	EXPECT_TRUE(await(!stats_now().targets));
	/* The CPU time of a target that has exited still counts. The clock may be a tick ahead. */
	s = stats_now();
	EXPECT_LE(shared->cpu_ns / tick_ns(), s.expected + 2);
	EXPECT_GE((after - before) / tick_ns() + 3, s.expected);

	before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	attached = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	loop_spend(0, 30, tick_ns());
	spent = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	after = stats_now().expected;
	/* On a slow kernel, a call can take several ticks. */
	EXPECT_LE((spent - attached) / tick_ns(), after - s.expected + 3);
	spent = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	EXPECT_GE((spent - before) / tick_ns() + 3, after - s.expected);
	ASSERT_DISABLE(fd, &s);
	EXPECT_LE(after, s.expected);
}

static void *outlive_first_thread(void *joins)
{
	/* The first thread has exited, but the process has not. */
	MUST(await(file_has("/proc/self/stat", "Z", NULL, 0)));
	MUST(!joins || !descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	MUST(stats_now().targets == 1 && descriptor_burn(fd, 0, 10));
	_exit(0);
}

/* The process joins the session before or after its first thread exits. */
static void expect_ticks_without_first_thread(struct __test_metadata *_metadata, bool joined)
{
	fd = must_enable(must_open());
	EXPECT_CHILD({
		MUST(!joined || !descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		start_beside(outlive_first_thread, !joined);
		pthread_exit(NULL);
	});
	EXPECT_TRUE(await(!stats_now().targets));
}

TEST_F_CALL(session, can_be_joined_after_the_first_thread_exits,
	    expect_ticks_without_first_thread(_metadata, false))
TEST_F_CALL(session, continues_after_the_first_thread_exits,
	    expect_ticks_without_first_thread(_metadata, true))

TEST_F(session, binds_a_range_to_one_address_space)
{
	struct profil_stats s;
	u32 counted;

	/* The child has the same text at the same addresses. */
	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 1, 5));
	counted = count_of(1);
	EXPECT_CHILD(MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		     MUST(burn_outside(0, 10)));
	s = DISABLE_EXACT(page);
	EXPECT_EQ(counted, page[1]);
	EXPECT_EQ(0U, page[0]);
	EXPECT_LE(10U, s.outside);
}

TEST_F(session, can_be_changed_only_by_its_creator)
{
	struct profil_range range = range_of(0x10000, 0x20000, other, LOOPS, 4);
	struct profil_copy copy = { .from = addr(page), .bytes = 4 * LOOPS };
	u64 space;

	open_session(page);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_CHILD({
		MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &space));
		MUST(descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1) == -EPERM);
		MUST(descriptor_add(fd, space, &range, 1) == -EPERM);
		MUST(descriptor_remove(fd, space, 0, UINT64_MAX) == -EPERM);
		MUST(descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) == -EPERM);
		MUST(descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, NULL, 0, NULL) == -EPERM);
		MUST(descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &copy, 1, NULL) == -EPERM);
	});
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_LE(10U, DISABLE_EXACT(page).ticks);
	EXPECT_LT(0U, page[0]);
}

TEST_F(session, of_another_process_is_refused_without_a_capability)
{
	pid_t child = SPAWN(!loop_for_ever((void *)0));

	EXPECT_CHILD({
		become_user(USER);
		fd = must_open();
		MUST(descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL) == -EPERM);
		MUST(descriptor_attach(fd, PROFIL_SCOPE_THREAD, child, NULL) == -EPERM);
		MUST(!stats_now().targets);
	});
	EXPECT_EQ(128 + SIGKILL, killed(child));
}

TEST_F(session, of_another_process_is_allowed_with_a_capability)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t child;
	u64 space;

	SKIP_IF(geteuid(), "only root may attach another process");
	child = SPAWN(!loop_for_ever((void *)0));
	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, &space));
	EXPECT_NE(PROFIL_SPACE_SELF, space);
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, child, NULL));
	ASSERT_EQ(0, descriptor_add(fd, space, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(await(count_of(0) >= 10));
	s = stats_now();
	EXPECT_EQ(1U, s.targets);
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(!stats_now().targets));
	DISABLE_EXACT(page);
}

/* The kernel keeps the old address space until the read into it ends. */
static int exec_while_reading(int file)
{
	static char to[4096] __attribute__((aligned(4096)));
	struct iocb iocb = {
		.aio_fildes = file,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = addr(to),
		.aio_nbytes = sizeof(to),
	}, *iocbs[] = { &iocb };
	aio_context_t context = 0;

	/* A close would wait for the read, too. */
	MUST(!fcntl(file, F_SETFL, O_DIRECT) && !fcntl(file, F_SETFD, 0));
	MUST(!syscall(SYS_io_setup, 1, &context) && syscall(SYS_io_submit, context, 1, iocbs) == 1);
	execve(SELF, new_argv, new_envp);
	return 43;
}

/*
 * Attaches the target again and again. When the target waits in exec, the call waits, too, until
 * this process is killed; in Linux 7.2 it returns.
 */
static int attach_who_execs(pid_t pid)
{
	bool waits;

	do {
		waits = task_state(pid) == 'D';
		if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, pid, NULL) == -EINTR)
			return 0;
	} while (!waits);
	shared->step = 2;
	pause();
	return 0;
}

TEST_F(session, is_not_locked_while_a_target_waits_in_exec)
{
	pid_t execs, attaches, asks;
	struct held held;

	NEED_HELD(&held, HELD_FUSE, PAGE);
	ASSERT_EQ(0, held_back(&held));

	open_session(page);
	execs = SPAWN(exec_while_reading(held.fd));
	EXPECT_TRUE(await(held_asked(&held)));
	attaches = SPAWN(attach_who_execs(execs));
	EXPECT_TRUE(await(task_state(attaches) == 'D' || shared->step == 2));

	/* Another process makes the call, because it may hang. */
	asks = FORK(shared->stats = stats_now());
	EXPECT_TRUE(await(shared->stats.state == PROFIL_STATE_ON));

	held_unmap(&held);
	killed(execs);
	killed(attaches);
	killed(asks);
}

#define DATA_AT		(1UL << 20)	/* offset in the file, beyond readahead */

/* The program's data ends within a page. The kernel clears the rest of the page during exec. */
static const Elf64_Phdr data_within_page = {
	.p_type = PT_LOAD,
	.p_flags = PF_R | PF_W,
	.p_offset = DATA_AT,
	.p_vaddr = PROGRAM_AT + DATA_AT,
	.p_filesz = 8,
	.p_memsz = 16,
	.p_align = PROGRAM_ALIGN,
};

/* Serves the program. A reader of its data waits until shared->step is 2. */
static int serve_slow_program(int fuse)
{
	const struct small_program program = small_program(data_within_page);
	static char request[FUSE_MAX_WRITE + 4096] __attribute__((aligned(8)));
	static char pages[256 << 10];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	struct actor a = { .random = 1 };

	while (read(fuse, request, sizeof(request)) > 0) {
		if (in->opcode != FUSE_READ) {
			fuse_serve_one(&a, fuse, request);
			continue;
		}
		memset(pages, 0, sizeof(program));
		if (!read_in->offset)
			memcpy(pages, &program, sizeof(program));
		if (read_in->offset >= DATA_AT) {
			shared->step = 1;
			step_is(2);
		}
		fuse_answer(fuse, in->unique, 0, pages, read_in->size);
	}
	return 0;
}

/*
 * The sessions that were attached before the exec move to the new address space when the program is
 * loaded. Until then they count towards the limit, too.
 */
TEST_F(session, can_be_attached_during_exec_within_the_limit)
{
	char dir[] = "/tmp/profil-session.XXXXXX";
	int fds[FOREIGN], one_more, fuse;
	struct profil_range range = range_all(page, 1, 8);
	pid_t server, execs;
	unsigned int i;
	u64 space = 0;

	SKIP_IF(geteuid(), "needs root");
	ASSERT_NE(NULL, mkdtemp(dir));
	fuse = fuse_mount(dir);
	if (fuse < 0)
		rmdir(dir);
	SKIP_IF(fuse == -ENOENT || fuse == -ENODEV, "no FUSE here: %s", strerror(-fuse));
	ASSERT_LE(0, fuse);
	server = SPAWN(serve_slow_program(fuse));
	close(fuse);

	shared->step = -1;
	execs = SPAWN(chdir(dir) || !step_is(0) || execve(FUSE_FILE, new_argv, new_envp));
	for (i = 0; i < FOREIGN; i++) {
		fds[i] = must_open(.exec = PROFIL_EXEC_FOLLOW);
		if (i)
			ASSERT_EQ(0, descriptor_attach(fds[i], PROFIL_SCOPE_PROCESS, execs, NULL));
	}
	one_more = must_open(.exec = PROFIL_EXEC_FOLLOW);
	shared->step = 0;
	EXPECT_TRUE(step_is(1));

	EXPECT_EQ(0, descriptor_attach(fds[0], PROFIL_SCOPE_PROCESS, execs, &space));
	EXPECT_EQ(0, descriptor_add(fds[0], space, &range, 1));
	EXPECT_EQ(0, descriptor_enable(fds[0]));
	EXPECT_EQ(-EBUSY, descriptor_attach(one_more, PROFIL_SCOPE_PROCESS, execs, NULL));

	/* Then the program runs, and the added range exists. */
	shared->step = 2;
	fd = fds[0];
	EXPECT_TRUE(await(stats_now().user));
	EXPECT_EQ(1, descriptor_remove(fd, space, 0, UINT64_MAX));
	EXPECT_EQ(1U, stats_now().targets);

	killed(execs);
	killed(server);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	for (i = 1; i < FOREIGN; i++)
		close(fds[i]);
	close(one_more);
}

TEST_F(session, of_a_dead_or_unknown_process_is_refused)
{
	pid_t child = SPAWN(0);
	siginfo_t info;

	ASSERT_OPEN(fd, 0);
	/* First a zombie, then an unknown pid. */
	ASSERT_EQ(0, waitid(P_PID, child, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_THREAD, child, NULL));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, INT32_MAX, NULL));
	EXPECT_EQ(-EINVAL, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, -1, NULL));
	EXPECT_EQ(0U, stats_now().targets);
}

TEST_F(session, has_each_target_only_once)
{
	start_beside(run_loop, 1);
	ASSERT_TRUE(await(thread_id));
	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, gettid(), NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(2U, stats_now().targets);
	close_session();

	ASSERT_OPEN(fd, 0);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	close_session();

	ASSERT_OPEN(fd, 0);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, getpid(), NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	stop_beside();
}

TEST_HARNESS_MAIN
