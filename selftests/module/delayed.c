// SPDX-License-Identifier: GPL-2.0
/*
 * Races between the tick, the end of a session and exec. profil_delay.ko delays a function, so that
 * the other side of the race always comes first. These tests fail if the kernel warns; a use of
 * freed memory is found with --debug, by KASAN.
 */
#include "fixture.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	150

#include "delay.h"
#include "records.h"
#include "small_program.h"

#define TAINTED		"/proc/sys/kernel/tainted"
#define WARNED		(1 << 7 | 1 << 9)	/* the kernel has died, or has warned */
#define NAME		"slowly"		/* of a task that is delayed; not the program */

FIXTURE(delayed) {
	long long tainted;
};

FIXTURE_SETUP(delayed)
{
	self->tainted = file_number(TAINTED, "");
	shared = map_shared(sizeof(*shared));
}

FIXTURE_TEARDOWN(delayed)
{
	/* A call may still be delayed. */
	EXPECT_TRUE(await(!delay_unload()));
	EXPECT_EQ(self->tainted & WARNED, file_number(TAINTED, "") & WARNED);
}

static void await_delay(void)
{
	while (delay_hits() < 1)
		sched_yield();
}

/* A second process with the address space of the child. Its first tick in the range is delayed. */
static int burn_in_range(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, NAME);
	run_on_cpu(1);
	loop_for_ever((void *)1);
	return 0;
}

/* A child with a pending session, which ends with the exec, as the other process has a tick. */
static int exec_during_tick(void)
{
	run_on_cpu(0);
	shared->step = clone_vm(burn_in_range, 0, NULL);
	await_delay();
	return execl("/bin/true", "true", NULL);
}

TEST_F(delayed, tick_of_a_pending_session_may_come_during_the_exec_that_ends_it)
{
	struct profil_range range = range_of_loops(shared->page, 4);

	SKIP_IF(sysconf(_SC_NPROCESSORS_ONLN) < 2, "needs two CPUs");
	DELAY("function=profil_pending_kick ms=1000 comm=" NAME);
	ASSERT_EQ(0, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(0, status_of(spawn(exec_during_tick)));
	EXPECT_LE(1, delay_hits());
	kill(shared->step, SIGKILL);
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
}

static void *close_slowly(void *unused)
{
	prctl(PR_SET_NAME, NAME);
	close_session();
	return unused;
}

TEST_F(delayed, session_may_be_freed_by_a_thread_while_another_closes_it)
{
	struct profil_range range = range_of_loops(shared->page, 4);

	DELAY("function=profil_space_is_own ms=1000 sleep=1 comm=" NAME);
	fd = must_open();
	start_beside(close_slowly, 0);
	await_delay();
	/* START ends the sessions of closed descriptors. */
	EXPECT_EQ(0, session_start(PROCESS, 0, &range, 1));
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
	stop_beside();
}

/* The last reference to the space is that of a worker, which is delayed, and of its notifier. */
static int leave_session(void)
{
	struct profil_range range = range_of_loops(shared->page, 4);

	MUST(!session_start(PROCESS, 0, &range, 1));
	loop_spend(1, 2, tick_ns());
	return 0;
}

TEST_F(delayed, release_of_an_address_space_may_be_slower_than_the_worker)
{
	const long long users = module_users();

	DELAY("function=profil_space_end_sessions ms=500 sleep=1");
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_EQ(0, status_of(spawn(leave_session)));
	EXPECT_TRUE(await(module_users() == users));
	EXPECT_LE(3, delay_hits());
}

#define LIMIT	16UL		/* pages */

static char buffer[LIMIT * PAGE_MAX] PAGE_ALIGNED;

static struct profil_range range_of_limit(void)
{
	return range_of(PAGE, PAGE + LIMIT * PAGE / 2, buffer, LIMIT * PAGE / 2, 2);
}

static void *replace_slowly(void *unused)
{
	const struct profil_range range = range_of_limit();

	prctl(PR_SET_NAME, NAME);
	MUST(session_start(PROCESS, PROFIL_START_REPLACE, &range, 1) == -EPERM);
	return unused;
}

/* While a replacement is about to pin its pages, another thread stops the old session. */
TEST_F(delayed, replacement_does_not_exceed_the_limit_if_its_room_is_used)
{
	const struct profil_range range = range_of_limit();

	DELAY("function=profil_histograms_pin ms=1000 sleep=1 comm=" NAME);
	EXPECT_CHILD({
		limit_memlock(LIMIT * PAGE);
		MUST(!setresuid(USER, USER, USER));
		MUST(!session_start(PROCESS, 0, &range, 1));
		start_beside(replace_slowly, 0);
		await_delay();
		MUST(!session_stop(PROCESS, NULL));
		must_open(.nr_records = 64);
		stop_beside();
		MUST(pinned_bytes() <= LIMIT * PAGE);
	});
}

TEST_F(delayed, unload_waits_for_the_notifier_of_a_process_that_exits)
{
	const char *stays = module_stays();
	int number = device_fd();

	SKIP_IF(stays, "%s", stays);
	DELAY("function=mmu_notifier_put ms=1500 sleep=1 comm=" NAME);
	SPAWN(prctl(PR_SET_NAME, NAME) ?: leave_session());
	await_delay();
	device_close();
	EXPECT_TRUE(await(!module_unload()));
	EXPECT_EQ(0, module_load(""));
	EXPECT_TRUE(await(!device_reopen(number)));
	while (wait(NULL) > 0)
		;
}

#define KILLS	30

/* The delay is in exit, before PF_EXITING is set: there, ticks still queue the set-up. */
TEST_F(delayed, child_may_be_killed_while_its_session_is_set_up)
{
	struct profil_range range = range_of_loops(shared->page, 4);
	struct profil_query query;
	unsigned int seed = 1;
	u64 until;
	pid_t child;

	DELAY("function=exit_signals ms=10 comm=" NAME);
	ASSERT_EQ(0, device_query(&query));
	ASSERT_EQ(0, clock_start(PROCESS, 0, query.min_period, &range, 1));
	prctl(PR_SET_NAME, NAME);
	for (unsigned int i = 0; i < KILLS; i++) {
		shared->step = 0;
		child = SPAWN(({ shared->step = 1; !loop_for_ever((void *)1); }));
		while (!shared->step)
			;
		until = now_ns() + rand_r(&seed) % 2000000;
		while (now_ns() < until)
			;
		ASSERT_EQ(128 + SIGKILL, killed(child));
	}
	EXPECT_EQ(0, session_stop(PROCESS, NULL));
}

/*
 * Writes a program whose exec fails when the old program is gone, as its second segment lies
 * outside of user memory.
 */
static void write_bad_program(const char *path)
{
	const struct small_program bad = small_program((Elf64_Phdr) {
		.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0xff00000000000000,
		.p_filesz = PROGRAM_BYTES, .p_memsz = PROGRAM_BYTES, .p_align = PROGRAM_ALIGN,
	});
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	MUST(write(file, &bad, sizeof(bad)) == sizeof(bad) && !ftruncate(file, PROGRAM_BYTES));
	close(file);
}

/* The delay is before PF_EXITING is set. The registers are still those of the old program. */
TEST_F(delayed, failed_exec_does_not_give_the_old_pc_to_a_session_of_the_new_address_space)
{
	char directory[] = "/tmp/profil-XXXXXX", path[64];
	unsigned int in_exec;
	pid_t child;

	DELAY("function=exit_signals ms=0 hold=1 comm=" NAME);
	ASSERT_NE(NULL, mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, NAME);
	write_bad_program(path);
	fd = must_enable(must_open(.nr_records = 1024, .stack_depth = 8));
	/* On one CPU, the delay would keep this process from running. */
	run_on_cpu(0);
	child = SPAWN(({ run_on_cpu(1); execl(path, path, NULL); }));
	await_delay();
	EXPECT_EQ(0, descriptor_attach(fd, PROCESS, child, NULL));
	EXPECT_TRUE(await(stats_now().ticks >= 5));
	delay_release();
	EXPECT_LT(128, status_of(child));
	EXPECT_TRUE(await(read_all() == 1));
	EXPECT_EQ(0U, records_where(r, r->pc));
	in_exec = records_where(r, r->flags & PROFIL_RECORD_EXEC);
	TH_LOG("%u records, %u in exec", nr, in_exec);
	EXPECT_LT(0U, in_exec);
	close_session();
	unlink(path);
	rmdir(directory);
}

TEST_HARNESS_MAIN
