// SPDX-License-Identifier: GPL-2.0
/*
 * After a session or its process has ended, nothing remains: no pinned page, no charge, no module
 * reference and no kernel object. The module stays loaded, because unloading it would free leaked
 * objects.
 *
 * Each test reads the kernel's figures before and after many sessions, which end in different
 * ways. After a kill the kernel tears a session down asynchronously, so a test polls until the
 * figures are right, or for long enough.
 */
#include "kselftest_harness.h"

/* The tests create many processes, which takes long on a busy machine. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#include "cgroup.h"
#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "program.h"
#include "send.h"
#include "threads.h"
#include "usage.h"
#include "users.h"

#define PAGES		3UL
#define CGROUP		CGROUPS "/profil-leak"

/* Only root can let CPUs add their parts to the counts: see pinned_pages(). */
static bool pins_known(void)
{
	return !access("/proc/sys/vm/stat_refresh", R_OK);
}

/* Returns the number of pages that have ever been pinned. */
static long long pins_acquired(void)
{
	pinned_pages();
	return file_number("/proc/vmstat", "nr_foll_pin_acquired");
}

FIXTURE(leak) {
	struct usage before;
	long long acquired;
	char *buffer;
	struct profil_range range;
};

FIXTURE_SETUP(leak)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	/* Also maps one page behind the buffer. */
	self->buffer = map_new((PAGES + 1) * PAGE, MAP_PRIVATE | MAP_POPULATE);
	self->range = range_of(0, ~0ULL, self->buffer, PAGES * PAGE / 4, 4);
	self->range.scale = 0;

	/* Buffers of the test before may be freed late. */
	EXPECT_TRUE(await(!(self->before = usage()).areas));
	self->acquired = pins_acquired();
	ASSERT_TRUE(module_is_built_in() || self->before.users > 0);
}

FIXTURE_TEARDOWN(leak)
{
	expect_same_usage(_metadata, &self->before);
}

/* Checks that the sessions did pin pages, so that a leak would be noticed. */
static void expect_pinned(struct __test_metadata *_metadata, FIXTURE_DATA(leak) *self,
			  long long pages)
{
	if (pins_known())
		EXPECT_LE(self->acquired + pages, pins_acquired());
}

TEST_F(leak, the_figures_show_the_resources_of_a_session)
{
	struct usage now;

	ASSERT_EQ(0, session_start(PROCESS, 0, &self->range, 1));
	now = usage();
	EXPECT_EQ(self->before.locked + PAGES * PAGE, now.locked);
	EXPECT_TRUE(module_is_built_in() || now.users > self->before.users);
	if (pins_known()) {
		EXPECT_LE(self->before.pins + (long long)PAGES, now.pins);
	} else {
		TH_LOG("pins are not compared: needs root");
	}
	ASSERT_EQ(0, session_stop(PROCESS, NULL));
	EXPECT_EQ(self->before.locked, pinned_bytes());
}

/* Checks that 200 starts fail with @error. */
static void fail_200_times(struct __test_metadata *_metadata, int error, u32 flags,
			   const struct profil_range *ranges, u32 nr)
{
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_EQ(-error, session_start(PROCESS, flags, ranges, nr));
}

static void start_and_stop(struct __test_metadata *_metadata, FIXTURE_DATA(leak) *self, u32 scope)
{
	for (unsigned int i = 0; i < 1000; i++) {
		ASSERT_EQ(0, session_start(scope, 0, &self->range, 1));
		ASSERT_TRUE(i % 20 || loop_burn(scope, 0, 1));
		ASSERT_EQ(0, session_stop(scope, NULL));
		ASSERT_EQ(self->before.locked, pinned_bytes());
	}
	expect_pinned(_metadata, self, 1000 * PAGES);
}

TEST_F_CALL(leak, one_thousand_starts_and_stops_leak_nothing,
	    start_and_stop(_metadata, self, PROCESS))
TEST_F_CALL(leak, one_thousand_sessions_of_a_thread_leak_nothing,
	    start_and_stop(_metadata, self, THREAD))

TEST_F(leak, one_thousand_replacements_leak_nothing)
{
	for (unsigned int i = 0; i < 1000; i++) {
		/* The buffer has one page or three, and its first page varies. */
		self->range.buffer = addr(self->buffer) + i % 3 * PAGE;
		self->range.nr_counters = i % 3 ? 1 : PAGES * PAGE / 4;
		ASSERT_EQ(0, session_start(PROCESS, PROFIL_START_REPLACE, &self->range, 1));
		ASSERT_TRUE(i % 20 || loop_burn(PROCESS, 0, 1));
		ASSERT_EQ(self->before.locked + (i % 3 ? 1 : PAGES) * PAGE, pinned_bytes());
	}
	ASSERT_EQ(0, session_stop(PROCESS, NULL));
	expect_pinned(_metadata, self, 1000);
}

TEST_F(leak, starts_that_fail_leak_nothing)
{
	struct profil_range ranges[2] = { self->range, self->range };

	/* Pinning the second range's buffer fails after the first one is pinned. */
	ranges[0].end = loop_at(0);
	ranges[1].start = ranges[0].end;
	ranges[1].offset = 0;
	ranges[1].nr_counters = PAGE / 4;
	ranges[1].buffer = addr(self->buffer) + PAGES * PAGE;
	ASSERT_NE(MAP_FAILED, mmap(self->buffer + PAGES * PAGE, PAGE, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	fail_200_times(_metadata, EFAULT, 0, ranges, 2);

	/* The page is mapped writable, but lies beyond the end of its file. */
	ASSERT_NE(MAP_FAILED, mmap(self->buffer + PAGES * PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, memfd_create("empty", MFD_CLOEXEC), 0));
	fail_200_times(_metadata, EFAULT, 0, ranges, 2);
	ASSERT_EQ(0, munmap(self->buffer + PAGES * PAGE, PAGE));

	/* A replacement also fails. */
	ASSERT_EQ(0, session_start(PROCESS, 0, &self->range, 1));
	fail_200_times(_metadata, EFAULT, PROFIL_START_REPLACE, ranges, 2);
	ASSERT_EQ(self->before.locked + PAGES * PAGE, pinned_bytes());
	ASSERT_TRUE(loop_burn(PROCESS, 0, 1));
	ASSERT_EQ(0, session_stop(PROCESS, NULL));

	if (geteuid())
		return;
	limit_memlock(2 * PAGE);
	ASSERT_EQ(0, seteuid(USER));
	fail_200_times(_metadata, EPERM, 0, &self->range, 1);
	ASSERT_EQ(0, seteuid(0));
}

TEST_F(leak, sessions_whose_buffers_are_unmapped_leak_nothing)
{
	for (unsigned int i = 0; i < 100; i++) {
		char *buffer = map_private(PAGE);

		self->range.buffer = addr(buffer);
		self->range.nr_counters = 1;
		ASSERT_EQ(0, session_start(PROCESS, PROFIL_START_REPLACE, &self->range, 1));
		ASSERT_EQ(self->before.locked + PAGE, pinned_bytes());
		ASSERT_TRUE(i % 20 || loop_burn(PROCESS, 0, 1));
		ASSERT_EQ(0, munmap(buffer, PAGE));
		ASSERT_EQ(self->before.locked + PAGE, pinned_bytes());
		if (i % 2) {
			ASSERT_EQ(0, session_stop(PROCESS, NULL));
			ASSERT_EQ(self->before.locked, pinned_bytes());
		}
	}
	expect_pinned(_metadata, self, 100);
}

TEST_F(leak, sessions_whose_pages_are_discarded_leak_nothing)
{
	ASSERT_EQ(0, session_start(PROCESS, 0, &self->range, 1));
	for (unsigned int i = 0; i < 200; i++) {
		ASSERT_EQ(0, madvise(self->buffer, PAGES * PAGE, MADV_DONTNEED));
		ASSERT_TRUE(i % 20 || loop_burn(PROCESS, 0, 1));
	}
	ASSERT_EQ(0, session_stop(PROCESS, NULL));
	expect_pinned(_metadata, self, PAGES);
}

static void *leave_session_on(void *range)
{
	return session_start(THREAD, 0, range, 1) ? range : NULL;
}

TEST_F(leak, sessions_of_one_hundred_exiting_threads_leak_nothing)
{
	for (unsigned int i = 0; i < 100; i++)
		ASSERT_NULL(thread_end(thread_start(leave_session_on, &self->range)));
	expect_pinned(_metadata, self, 100 * PAGES);
}

/*
 * Each way in which a process can die
 */

static struct profil_range range;	/* counts in PAGES pages of private memory */
static int fds[2];			/* a session for each fork mode */
static int ends[2];			/* of a socket pair */

/* Starts a session of each kind, and waits for a tick. */
static void be_profiled(void)
{
	fds[0] = must_sample(must_open(.nr_records = 16), PROCESS, &range, 1);
	fds[1] = must_sample(must_open(.fork = PROFIL_FORK_SHARE, .exec = PROFIL_EXEC_FOLLOW,
				       .nr_records = 16), PROCESS, &range, 1);
	MUST(!session_start(PROCESS, 0, &range, 1));
	MUST(!session_start(THREAD, 0, &range, 1));
	MUST(loop_burn(THREAD, 0, 1));
}

static void run_thread(void)
{
	thread_start(loop_for_ever, (void *)1);
}

static void *outlive_the_leader(void *leader)
{
	MUST(await(task_state((intptr_t)leader) == 'Z'));
	loop_spend(1, 2, tick_ns());
	_exit(0);
}

static void *exit_with_a_session(void *unused)
{
	(void)unused;
	MUST(!session_start(THREAD, 0, &range, 1));
	loop_spend(1, 1, tick_ns());
	return NULL;
}

/* A child joins a session that follows exec, and one that does not. */
static int join_and_exec(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		int err = descriptor_attach(fds[i], PROCESS, 0, NULL);

		MUST(!err || err == -EBUSY);
	}
	loop_spend(0, 1, tick_ns());
	exec_new_program(NEW_PROGRAM "=spend");
	return 1;
}

static void send_and_close(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		MUST(!send_fd(ends[0], fds[i]));
		close(fds[i]);
	}
}

static void receive_and_close(void)
{
	struct profil_stats s;

	close(ends[0]);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		int fd = receive_fd(ends[1]);

		MUST(!descriptor_stats(fd, &s));
		close(fd);
	}
}

/* Two children, one after the other, evaluate the expression, which is 0. */
#define CHILDREN(status) do {				\
	for (unsigned int i_ = 0; i_ < 2; i_++)		\
		MUST(!status_in_child(status));		\
} while (0)

/* The session of each child ends for the reason @end. */
static void have_children_without_session(u32 end)
{
	struct profil_stats s;

	CHILDREN(!loop_until(0, session_stats(PROCESS, &s) || s.state == PROFIL_STATE_ENDED) ||
		 s.end != end);
}

static void have_children_after_advice(int advice)
{
	MUST(!madvise((void *)(uintptr_t)range.buffer, PAGES * PAGE, advice));
	have_children_without_session(PROFIL_END_BUFFER);
}

FIXTURE(death) {
	struct usage before;
	struct caches caches;
};

FIXTURE_VARIANT(death) {
	void (*live)(void);
	int status;
	bool needs_cgroup;
};

/* A process executes the statements, and exits after them if it still runs. */
#define DEATH_IN(cgroup, name, status_, ...)		\
	static void live_until_##name(void)		\
	{						\
		__VA_ARGS__;				\
	}						\
	FIXTURE_VARIANT_ADD(death, name) {		\
		.live = live_until_##name,		\
		.status = status_,			\
		.needs_cgroup = cgroup,			\
	}

/* The same, after be_profiled() */
#define DEATH(name, status, ...)	DEATH_IN(false, name, status, be_profiled(); __VA_ARGS__)

DEATH(by_exit, 0);

DEATH(by_exit_with_a_thread, 0, {
	run_thread();
	loop_spend(0, 1, tick_ns());
});

DEATH(after_the_leader, 0, {
	thread_start(outlive_the_leader, (void *)(intptr_t)getpid());
	syscall(SYS_exit, 0);
});

DEATH(by_SIGKILL, 128 + SIGKILL, {
	run_thread();
	kill(getpid(), SIGKILL);
});

DEATH(by_SIGSEGV, 128 + SIGSEGV, {
	struct rlimit no_core = { 0, 0 };

	MUST(!setrlimit(RLIMIT_CORE, &no_core));
	run_thread();
	kill(getpid(), SIGSEGV);
	/* The other thread may take the signal. */
	for (;;)
		pause();
});

DEATH(by_exec, 0, exec_new_program(NEW_PROGRAM "=spend"));

DEATH(by_exec_of_a_thread, 0, {
	run_thread();
	thread_start(exec_new_program, NEW_PROGRAM "=spend");
	for (;;)
		pause();
});

DEATH(after_an_exec_that_is_followed, 0, MUST(!status_in_child(join_and_exec())));

DEATH(after_vfork_and_exec, 0, {
	pid_t pid = vfork();

	if (!pid)
		exec_new_program(NEW_PROGRAM "=spend");
	MUST(!status_of(pid));
});

DEATH(after_children_without_a_tick, 0, CHILDREN(0));
DEATH(after_children_with_a_tick, 0, CHILDREN(({ loop_spend(0, 2, tick_ns()); 0; })));

DEATH(after_children_with_a_call, 0, {
	struct profil_stats s;

	CHILDREN(session_stats(PROCESS, &s) || descriptor_stats(fds[0], &s) ||
		 descriptor_stats(fds[1], &s));
});

/* The child notices that by the end of the file. */
DEATH(before_the_child, 0, {
	int alive[2];
	char c;

	MUST(!pipe(alive));
	FORK({
		close(alive[1]);
		MUST(!read(alive[0], &c, 1));
		loop_spend(0, 2, tick_ns());
	});
});

/*
 * Each child inherits one session, which its first call sets up. The kernel notices signals within
 * the call.
 */
#define DEATH_AFTER_CALL(name, call)						\
	DEATH_IN(false, name, 0, {						\
		struct profil_stats s __attribute__((unused));			\
										\
		MUST(!session_start(PROCESS, 0, &range, 1));			\
		CHILDREN(({ interrupt_often(100, SA_RESTART); !(call); }));	\
	})

DEATH_AFTER_CALL(after_STATS_of_children_with_signals,
		 !session_stats(PROCESS, &s) && s.state == PROFIL_STATE_ON);
DEATH_AFTER_CALL(after_STOP_of_children_with_signals, !session_stop(PROCESS, NULL));
DEATH_AFTER_CALL(after_START_of_children_with_signals,
		 session_start(PROCESS, 0, &range, 1) == -EBUSY);
DEATH_AFTER_CALL(after_OPEN_of_children_with_signals,
		 must_open() >= 0 && !session_stats(PROCESS, &s) && s.locked == PAGES * PAGE);

DEATH(after_threads, 0, in_threads(4, exit_with_a_session));

/* The last copies of the descriptors are in messages that are never received. */
DEATH(with_descriptors_on_their_way, 0, {
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	send_and_close();
});

/* Another process closes the last copies of the descriptors. */
DEATH_IN(false, after_others_close_its_descriptors, 0, {
	pid_t other;

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	other = FORK(receive_and_close());
	be_profiled();
	send_and_close();
	MUST(!status_of(other));
});

/* The last copies are used and closed after the creator has exited. */
DEATH_IN(false, after_the_creator_of_its_descriptors, 0, {
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	MUST(!status_of(FORK({ be_profiled(); send_and_close(); })));
	receive_and_close();
});

DEATH_IN(false, after_children_beyond_the_limit, 0, {
	become_user(USER);
	be_profiled();
	limit_memlock(0);
	have_children_without_session(PROFIL_END_LIMIT);
});

DEATH(after_DONTFORK, 0, have_children_after_advice(MADV_DONTFORK));
DEATH(after_WIPEONFORK, 0, have_children_after_advice(MADV_WIPEONFORK));
DEATH(without_the_buffer, 0, MUST(!munmap((void *)(uintptr_t)range.buffer, PAGES * PAGE)));

/* The process writes more memory than the cgroup allows. */
DEATH_IN(true, for_want_of_memory, 128 + SIGKILL, {
	size_t size = 16UL << 20;
	char *p = map_private(size);

	be_profiled();
	run_thread();
	MUST(!file_write(CGROUP "/cgroup.procs", "0"));
	for (size_t i = 0; i < size; i += PAGE)
		p[i] = 1;
});

FIXTURE_SETUP(death)
{
	char *buffer = map_private(PAGES * PAGE);

	ASSERT_DEVICE();
	range = range_of(0, ~0ULL, buffer, PAGES * PAGE / 4, 4);
	range.scale = 0;
	if (variant->needs_cgroup) {
		SKIP_SETUP_IF(cgroup_make(CGROUP), "no memory cgroup can be made: needs root");
		ASSERT_EQ(0, file_write(CGROUP "/memory.max", "4194304"));
	}
}

FIXTURE_TEARDOWN(death)
{
	if (variant->needs_cgroup)
		rmdir(CGROUP);
}

#define ROUNDS_BEFORE	2	/* so that objects that exist only once have been allocated */
#define ROUNDS		14	/* more than the slack for other users of the caches, see usage.h */

TEST_F(death, releases_all_resources)
{
	const long long users = module_users(), pins = pinned_pages();

	for (unsigned int i = 0; i < ROUNDS_BEFORE + ROUNDS; i++) {
		/* The first rounds may allocate objects that all later ones use. */
		if (i == ROUNDS_BEFORE) {
			EXPECT_TRUE(await((self->before = usage()).users <= users &&
					  self->before.pins <= pins && !self->before.areas));
			caches(&self->caches);
		}
		ASSERT_EQ(variant->status, status_of(FORK(variant->live())));
	}
	expect_same_usage(_metadata, &self->before);
	expect_no_growth(_metadata, &self->caches);
}

TEST_HARNESS_MAIN
