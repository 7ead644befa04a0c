// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: what they sample, where they count, when they end.
 *
 * What happens to another process is done to a child, whose exit status says how far it
 * came. What a new program does is told by this very program, too: with
 * PROFIL_NEW_PROGRAM in its environment it does that, and nothing else.
 *
 * A loop that runs only while two sessions are on is an exact witness: what one counts
 * of it the other counts too, tick for tick.
 */
#include "kselftest_harness.h"

#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <linux/aio_abi.h>
#include <linux/capability.h>

#include "fuse.h"
#include "kernel.h"
#include "loop.h"
#include "send.h"

#define SELF		"/proc/self/exe"
#define NEW_PROGRAM	"PROFIL_NEW_PROGRAM"
#define USER		1000	/* an ordinary user, for root */
#define FOREIGN		8U	/* places for sessions that are attached by capability */

static u32 page[1024] __attribute__((aligned(4096)));
static u32 other[1024] __attribute__((aligned(4096)));

/* Parent and children take turns with step; the page is for counters. */
static struct shared {
	u32 page[1024] __attribute__((aligned(4096)));
	atomic_int step;
	u64 space;
	pid_t pid;
	struct profil_stats stats;
	u64 cpu_ns;
} *shared;

static int fd = -1;		/* of the session under test */
static pid_t children[4];	/* killed in the end, if they still run */

static char *const new_argv[] = { "a new program", NULL };
static char *const new_envp[] = { NEW_PROGRAM "=burn", NULL };

__attribute__((constructor)) static void new_program(void)
{
	if (getenv(NEW_PROGRAM))
		for (;;)
			loop_run(7, LOOP_BURST);
}

static bool is_new_program(pid_t pid)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return !strcmp(file_line(path, line, sizeof(line)), new_argv[0]);
}

/* Runs @child() in a process of its own, which does not outlive us. */
static pid_t spawn(int (*child)(void))
{
	pid_t pid = fork();
	unsigned int i;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child());
	}
	for (i = 0; i < ARRAY_SIZE(children); i++) {
		if (!children[i]) {
			children[i] = pid;
			break;
		}
	}
	return pid;
}

/* Exit status of @child, or 128 + the signal that killed it. */
static int status_of(pid_t child)
{
	unsigned int i;
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1;
	for (i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i] == child)
			children[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int killed(pid_t child)
{
	kill(child, SIGKILL);
	return status_of(child);
}

/* Buffers of ranges whose address space is gone are returned by the next call. */
static bool returns_buffers(int fd)
{
	struct profil_stats s;

	return !descriptor_remove(fd, PROFIL_SPACE_ALL, 0, UINT64_MAX) &&
	       !descriptor_stats(fd, &s) && !s.locked;
}

static bool step_is(int step)
{
	return await(shared->step >= step);
}

/* State ~0 if there is no answer. */
static struct profil_stats stats_now(void)
{
	struct profil_stats s;

	if (descriptor_stats(fd, &s))
		s.state = ~0U;
	return s;
}

/* A session of this process, enabled, that counts loop i in counter i of @buffer. */
static int open_session(u32 on_fork, u32 on_exec, volatile void *buffer, u32 flags)
{
	struct profil_range range = range_of_loops(buffer, 4);
	int err;

	range.flags = flags;
	fd = descriptor_open(MODES_ALL, on_fork, on_exec, 0);
	if (fd < 0)
		return fd;
	err = descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL);
	err = err ?: descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1);
	return err ?: descriptor_enable(fd);
}

static void close_session(void)
{
	close(fd);
	fd = -1;
}

FIXTURE(session) {
	long long users;
	u64 locked;
};

FIXTURE_SETUP(session)
{
	ASSERT_LE(0, device_fd()) {
		TH_LOG("%s must be there", PROFIL_DEVICE);
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)shared);
	self->users = module_users();
	self->locked = locked_bytes();
	ASSERT_LT(0, self->users);
}

/* Whatever a test did, nothing stays. */
FIXTURE_TEARDOWN(session)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i] > 0)
			killed(children[i]);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	if (fd >= 0)
		close_session();
	/* What the test before had may have gone only meanwhile. */
	EXPECT_TRUE(await(module_users() <= self->users)) {
		TH_LOG("the module has %lld users, not %lld", module_users(), self->users);
	}
	EXPECT_TRUE(await(locked_bytes() == self->locked));
}

/*
 * Ticks that a counter was meant for and that were dropped, which in these tests can be
 * only if there were too many of them to be kept. (In exit a thread is not where it was.)
 */
static u64 dropped_here(struct __test_metadata *_metadata, const struct profil_stats *s)
{
	EXPECT_EQ(s->dropped - s->dropped_exit, s->dropped_overrun);
	if (s->dropped_overrun)
		TH_LOG("%llu ticks too many", (unsigned long long)s->dropped_overrun);
	return s->dropped_overrun;
}

#define EXPECT_EXACT(s, counters) do {					\
	EXPECT_TRUE(accounted(&(s)));					\
	EXPECT_EQ((s).hit, counters_sum(counters, 4, LOOPS));		\
} while (0)

/*
 * The descriptor is the session
 */

TEST_F(session, begins_without_targets_and_ranges_and_not_enabled)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s, none;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	none = (struct profil_stats) { .size = sizeof(none) };
	loop_spend(0, 10, tick_ns());
	ASSERT_EQ(0, descriptor_stats(fd, &s));
	EXPECT_EQ(0, memcmp(&none, &s, sizeof(s)));
	EXPECT_EQ(self->locked, locked_bytes());

	/* Nobody runs in this address space yet, as far as it knows. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	EXPECT_EQ(-ESRCH, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, 1));
	EXPECT_EQ(0, descriptor_remove(fd, PROFIL_SPACE_ALL, 0, 1));

	/* On, but with nobody to sample. */
	ASSERT_EQ(0, descriptor_enable(fd));
	loop_spend(0, 10, tick_ns());
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(0U, s.ticks + s.unselected);
	EXPECT_EQ(0U, s.targets);
}

TEST_F(session, is_not_inherited_by_exec)
{
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

TEST_F(session, ends_when_its_descriptor_is_closed)
{
	u32 counted;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_LT(self->users, module_users());
	EXPECT_EQ(self->locked + 4096, locked_bytes());
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_LT(0U, page[0]);
	close_session();
	EXPECT_TRUE(await(locked_bytes() == self->locked));
	EXPECT_TRUE(await(module_users() == self->users));
	counted = page[0];
	loop_spend(0, 10, tick_ns());
	EXPECT_EQ(counted, page[0]);
}

TEST_F(session, goes_on_while_there_is_a_copy_of_its_descriptor)
{
	struct profil_stats s;
	int copy;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	copy = dup(fd);
	ASSERT_LE(0, copy);
	close(fd);
	fd = copy;
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(10U, s.ticks);
	EXPECT_EXACT(s, page);
	EXPECT_EQ(self->locked + 4096, locked_bytes());
}

static int hold(void)
{
	shared->step = 1;
	return step_is(2) ? 0 : 1;
}

TEST_F(session, goes_on_while_a_child_has_its_descriptor)
{
	u32 counted;
	pid_t child;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	child = spawn(hold);
	ASSERT_TRUE(step_is(1));
	close_session();
	counted = page[0];
	EXPECT_TRUE(loop_until(0, page[0] >= counted + 5));
	EXPECT_EQ(self->locked + 4096, locked_bytes());
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(await(locked_bytes() == self->locked));
	counted = page[0];
	loop_spend(0, 10, tick_ns());
	EXPECT_EQ(counted, page[0]);
}

static int ends[2];

static int receive_and_hold(void)
{
	fd = receive_fd(ends[1]);
	if (fd < 0)
		return 1;
	shared->stats = stats_now();
	return hold();
}

TEST_F(session, can_be_sent_to_another_process)
{
	u32 counted;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	child = spawn(receive_and_hold);
	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	ASSERT_EQ(0, send_fd(ends[0], fd));
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ((u32)PROFIL_STATE_ON, shared->stats.state);
	EXPECT_EQ(1U, shared->stats.targets);
	close_session();
	counted = page[0];
	EXPECT_TRUE(loop_until(0, page[0] >= counted + 5));
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
}

TEST_F(session, counts_when_it_is_enabled_only)
{
	struct profil_stats s, then;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_EQ(-EBUSY, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(-EBUSY, descriptor_enable(fd));
	ASSERT_EQ(0, descriptor_disable(fd, &then));
	EXPECT_EQ((u32)PROFIL_STATE_OFF, then.state);
	EXPECT_LE(5U, then.ticks);
	EXPECT_EXACT(then, page);

	EXPECT_EQ(-EINVAL, descriptor_disable(fd, &s));
	EXPECT_EQ(-EINVAL, descriptor_disable(fd, NULL));
	loop_spend(0, 20, tick_ns());
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_OFF, s.state);
	EXPECT_EQ(then.ticks + then.unselected, s.ticks + s.unselected);
	EXPECT_EQ(then.expected, s.expected);
	EXPECT_EQ(1U, s.targets);
	EXPECT_EQ(4096U, s.locked);
	EXPECT_EXACT(s, page);

	/* The statistics go on from there. */
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(then.ticks + 5, s.ticks);
	EXPECT_EXACT(s, page);
}

TEST_F(session, is_exact_with_counters_of_any_width)
{
	static const u32 widths[] = { 2, 4, 8 };
	struct profil_range range;
	struct profil_stats s;
	unsigned int i, loop;

	for (i = 0; i < ARRAY_SIZE(widths); i++) {
		memset(page, 0, sizeof(page));
		range = range_of_loops(page, widths[i]);
		fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_enable(fd));
		for (loop = 0; loop < LOOPS; loop++)
			EXPECT_TRUE(loop_until(loop, counter(page, widths[i], loop) >= 3));
		ASSERT_EQ(0, descriptor_disable(fd, &s));
		EXPECT_TRUE(accounted(&s));
		EXPECT_LE(3 * LOOPS, s.hit);
		EXPECT_EQ(s.hit, counters_sum(page, widths[i], LOOPS));
		EXPECT_EQ(s.hit, counters_sum(page, widths[i], 4096 / widths[i]));
		close_session();
	}
}

/* Many system calls, so that there are ticks of both kinds. */
static void run_both_modes(void)
{
	loop_run(0, LOOP_BURST / 4);
	for (unsigned int i = 0; i < 20; i++)
		locked_bytes();
}

TEST_F(session, counts_user_ticks_or_system_ticks_or_both)
{
	struct profil_range range = range_all(page, 1, 4);
	struct profil_stats s;
	u32 modes;
	u64 cap;

	for (modes = 1; modes <= MODES_ALL; modes++) {
		page[0] = 0;
		fd = descriptor_open(modes, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_enable(fd));
		cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_CAP_NS;
		do {
			run_both_modes();
			s = stats_now();
		} while ((modes == MODES_ALL ? s.user < 10 || s.system < 10 :
			  s.ticks < 10 || s.unselected < 10) &&
			 cpu_ns(CLOCK_THREAD_CPUTIME_ID) < cap);
		ASSERT_EQ(0, descriptor_disable(fd, &s));
		EXPECT_TRUE(accounted(&s));
		EXPECT_LE(10U, s.ticks);
		EXPECT_EQ(s.ticks, s.hit);
		EXPECT_EQ(s.hit, page[0]);
		EXPECT_EQ(!(modes & PROFIL_MODE_USER), !s.user);
		EXPECT_EQ(!(modes & PROFIL_MODE_SYSTEM), !s.system);
		EXPECT_EQ(modes == MODES_ALL, !s.unselected);
		close_session();
	}
}

/*
 * Threads
 */

static atomic_bool enough;

static void *run_loop(void *i)
{
	while (!enough)
		loop_run((uintptr_t)i, LOOP_BURST);
	return NULL;
}

static atomic_int thread_id;

static void *run_loop_1_told(void *unused)
{
	(void)unused;
	thread_id = gettid();
	return run_loop((void *)1);
}

static u32 count_of(unsigned int i)
{
	return *(volatile u32 *)&page[i];
}

TEST_F(session, of_one_thread_does_not_count_the_others)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pthread_t thread;
	unsigned int i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, run_loop_1_told, NULL));
	ASSERT_TRUE(await(thread_id));
	for (i = 0; i < 2; i++) {
		memset(page, 0, sizeof(page));
		fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, fd);
		/* First this thread by 0, then the other by its id. */
		ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, i ? thread_id : 0, NULL));
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_enable(fd));
		EXPECT_TRUE(loop_until(0, count_of(i) >= 10));
		ASSERT_EQ(0, descriptor_disable(fd, &s));
		EXPECT_EXACT(s, page);
		EXPECT_EQ(s.hit, page[i]);
		EXPECT_EQ(1U, s.targets);
		close_session();
	}
	enough = true;
	pthread_join(thread, NULL);
}

TEST_F(session, of_a_process_counts_its_threads_of_before_and_after)
{
	struct profil_stats s;
	pthread_t threads[2];

	ASSERT_EQ(0, pthread_create(&threads[0], NULL, run_loop, (void *)1));
	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, run_loop, (void *)2));
	EXPECT_TRUE(await(count_of(1) >= 5 && count_of(2) >= 5));
	enough = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(1U, s.targets);
}

/* Each with a session of its own, that counts in a page of its own. */
static struct worker {
	pthread_t thread;
	unsigned int number;
	int fd, err;
	struct profil_stats stats;
	u32 page[1024] __attribute__((aligned(4096)));
} workers[4];

static void *count_alone(void *arg)
{
	struct worker *w = arg;
	struct profil_range range = range_of_loops(w->page, 4);

	w->fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	w->err = w->fd < 0 ? w->fd : 0;
	w->err = w->err ?: descriptor_attach(w->fd, PROFIL_SCOPE_THREAD, 0, NULL);
	w->err = w->err ?: descriptor_add(w->fd, PROFIL_SPACE_SELF, &range, 1);
	w->err = w->err ?: descriptor_enable(w->fd);
	if (!w->err && !descriptor_burn(w->fd, w->number, 20))
		w->err = -ETIME;
	return NULL;
}

TEST_F(session, of_each_thread_is_exact_beside_that_of_the_process)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	unsigned int i;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1));
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		workers[i].number = i;
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, count_alone, &workers[i]));
	}
	for (i = 0; i < ARRAY_SIZE(workers); i++)
		pthread_join(workers[i].thread, NULL);
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_EXACT(s, page);

	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		struct worker *w = &workers[i];

		ASSERT_EQ(0, w->err);
		/* With the thread its ranges are gone, and the session is there yet. */
		EXPECT_TRUE(await(!descriptor_stats(w->fd, &w->stats) && !w->stats.targets));
		EXPECT_EQ((u32)PROFIL_STATE_ON, w->stats.state);
		EXPECT_EQ(4096U, w->stats.locked);
		EXPECT_TRUE(await(returns_buffers(w->fd)));
		EXPECT_EQ(-ESRCH, descriptor_add(w->fd, PROFIL_SPACE_SELF, &range, 1));
		ASSERT_EQ(0, descriptor_disable(w->fd, &w->stats));
		EXPECT_LE(20U, w->stats.ticks);
		EXPECT_EXACT(w->stats, w->page);
		EXPECT_EQ(w->stats.hit, w->page[i]);
		EXPECT_EQ(page[i], w->page[i]);
		close(w->fd);
	}
}

TEST_F(session, and_others_of_the_same_task_are_each_exact)
{
	static u32 pages[4][1024] __attribute__((aligned(4096)));
	struct profil_range ranges[4];
	struct profil_stats s[4];
	unsigned int i;
	int tool;

	for (i = 0; i < 4; i++)
		ranges[i] = range_of_loops(pages[i], 4);
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	tool = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, tool);
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &ranges[0], 1));
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &ranges[1], 1));
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[2], 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	ASSERT_EQ(0, descriptor_attach(tool, PROFIL_SCOPE_THREAD, 0, NULL));
	ASSERT_EQ(0, descriptor_add(tool, PROFIL_SPACE_SELF, &ranges[3], 1));
	ASSERT_EQ(0, descriptor_enable(tool));
	EXPECT_EQ(self->locked + 4 * 4096, locked_bytes());

	for (i = 0; i < LOOPS; i++)
		EXPECT_TRUE(descriptor_burn(tool, i, 5));

	ASSERT_EQ(0, descriptor_disable(tool, &s[3]));
	ASSERT_EQ(0, descriptor_disable(fd, &s[2]));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, &s[1]));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s[0]));
	for (i = 0; i < 4; i++) {
		EXPECT_LE(5 * LOOPS, s[i].ticks);
		EXPECT_EXACT(s[i], pages[i]);
		EXPECT_EQ(0, memcmp(pages[0], pages[i], sizeof(pages[0])));
	}
	close(tool);
}

/*
 * Other processes
 */

/* Joins, and lets the parent add ranges for it. */
static int join_and_burn(void)
{
	shared->pid = getpid();
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 10;
	shared->step = 1;
	if (!step_is(2))
		return 11;
	if (!descriptor_burn(fd, 0, 10))
		return 12;
	/* It is counted in the creator's memory, not in ours. */
	return page[0] ? 13 : 0;
}

TEST_F(session, counts_a_child_that_joins_in_the_creators_memory)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t child;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	child = spawn(join_and_burn);
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ(1U, stats_now().targets);
	ASSERT_EQ(0, descriptor_add(fd, shared->space, &range, 1));
	EXPECT_EQ(self->locked + 4096, locked_bytes());
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(await(!stats_now().targets));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LT(0U, page[0]);
	EXPECT_LE(10U, s.ticks);
	EXPECT_EXACT(s, page);

	/* There is nobody in that address space any more, and there will not be. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, shared->space, &range, 1));
	EXPECT_EQ(-ESRCH, descriptor_remove(fd, shared->space, 0, 1));
}

static int join_and_spend(void)
{
	u64 before;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL))
		return 15;
	before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	loop_spend(0, 30, tick_ns());
	shared->cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
	return 0;
}

TEST_F(session, expects_the_ticks_of_the_cpu_time_of_its_targets)
{
	struct profil_stats s;
	u64 before, after;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_EQ(0, status_of(spawn(join_and_spend)));
	EXPECT_TRUE(await(!stats_now().targets));
	/* That target is gone, and counts yet. The clock may be a tick ahead of it. */
	s = stats_now();
	EXPECT_LE(shared->cpu_ns / tick_ns(), s.expected + 2);
	EXPECT_GE(shared->cpu_ns / tick_ns() + 10, s.expected);

	before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	loop_spend(0, 30, tick_ns());
	after = stats_now().expected;
	before = (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / tick_ns();
	EXPECT_LE(before, after - s.expected + 3);
	EXPECT_GE(before + 3, after - s.expected);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(after, s.expected);
}

static void *join_for_all(void *unused)
{
	u64 ticks;

	(void)unused;
	/* The first thread is gone, but the process is not. */
	if (!await(file_has("/proc/self/stat", "Z", NULL, 0)))
		_exit(16);
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		_exit(17);
	ticks = stats_now().ticks;
	if (stats_now().targets != 1 || !loop_until(0, stats_now().ticks >= ticks + 10))
		_exit(18);
	_exit(0);
}

static int join_without_first_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, join_for_all, NULL))
		return 19;
	pthread_exit(NULL);
}

TEST_F(session, can_be_joined_by_a_process_without_its_first_thread)
{
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_EQ(0, status_of(spawn(join_without_first_thread)));
	EXPECT_TRUE(await(!stats_now().targets));
}

static void *outlive_first_thread(void *unused)
{
	u64 ticks;

	(void)unused;
	if (!await(file_has("/proc/self/stat", "Z", NULL, 0)))
		_exit(16);
	ticks = stats_now().ticks;
	if (stats_now().targets != 1 || !loop_until(0, stats_now().ticks >= ticks + 10))
		_exit(18);
	_exit(0);
}

static int join_and_end_first_thread(void)
{
	pthread_t thread;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 17;
	if (pthread_create(&thread, NULL, outlive_first_thread, NULL))
		return 19;
	pthread_exit(NULL);
}

TEST_F(session, goes_on_when_the_first_thread_of_a_process_has_ended)
{
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_EQ(0, status_of(spawn(join_and_end_first_thread)));
	EXPECT_TRUE(await(!stats_now().targets));
}

static int join_and_run_all(void)
{
	u64 outside;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 10;
	outside = stats_now().outside;
	return loop_until(0, stats_now().outside >= outside + 10) ? 0 : 11;
}

TEST_F(session, binds_a_range_to_one_address_space)
{
	struct profil_stats s;
	u32 counted;

	/* The child has the same text at the same addresses. */
	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 1, 5));
	counted = count_of(1);
	EXPECT_EQ(0, status_of(spawn(join_and_run_all)));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(counted, page[1]);
	EXPECT_EQ(0U, page[0]);
	EXPECT_LE(10U, s.outside);
}

static int add_and_remove(void)
{
	struct profil_range range = range_of_loops(other, 4);
	struct profil_copy copy = { .from = addr(page), .bytes = 4 * LOOPS };

	range.start += LOOP_SIZE * LOOPS;
	range.end += LOOP_SIZE * LOOPS;
	range.offset = range.start;
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 10;
	if (descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1) != -EPERM)
		return 11;
	if (descriptor_add(fd, shared->space, &range, 1) != -EPERM)
		return 12;
	if (descriptor_remove(fd, PROFIL_SPACE_ALL, 0, UINT64_MAX) != -EPERM)
		return 13;
	if (descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) != -EPERM)
		return 14;
	if (descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, NULL, 0, NULL) != -EPERM)
		return 15;
	if (descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &copy, 1, NULL) != -EPERM)
		return 16;
	return 0;
}

TEST_F(session, is_changed_by_its_creator_only)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(0, status_of(spawn(add_and_remove)));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(10U, s.ticks);
	EXPECT_LT(0U, page[0]);
	EXPECT_EXACT(s, page);
}

static int run_for_ever(void)
{
	shared->step = 1;
	while (!shared->stats.size)
		loop_run(0, LOOP_BURST);
	return 0;
}

static int attach_as_user(void)
{
	if (!geteuid() && setresuid(USER, USER, USER))
		return 20;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	if (fd < 0)
		return 21;
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, shared->pid, NULL) != -EPERM)
		return 22;
	if (descriptor_attach(fd, PROFIL_SCOPE_THREAD, shared->pid, NULL) != -EPERM)
		return 23;
	return stats_now().targets ? 24 : 0;
}

TEST_F(session, of_another_process_is_refused_without_the_right_to_it)
{
	pid_t child = spawn(run_for_ever);

	shared->pid = child;
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ(0, status_of(spawn(attach_as_user)));
	EXPECT_EQ(128 + SIGKILL, killed(child));
}

TEST_F(session, of_another_process_is_for_those_with_the_right)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t child;
	u64 space;

	if (geteuid())
		SKIP(return, "only root may attach another process");
	child = spawn(run_for_ever);
	ASSERT_TRUE(step_is(1));
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, &space));
	EXPECT_NE(PROFIL_SPACE_SELF, space);
	EXPECT_NE(PROFIL_SPACE_ALL, space);
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
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
}

static int exit_at_once(void)
{
	return 0;
}

static int fuse_fd;
static char fuse_path[64];

/* FUSE's file, as @serve has it, at @dir: who serves it, or a negative errno and no @dir. */
static pid_t serve_files(const char *dir, int (*serve)(void))
{
	pid_t server;

	fuse_fd = fuse_mount(dir);
	if (fuse_fd < 0) {
		rmdir(dir);
		return fuse_fd;
	}
	snprintf(fuse_path, sizeof(fuse_path), "%s/" FUSE_FILE, dir);
	server = spawn(serve);
	close(fuse_fd);
	return server;
}

/* A file system that lets who reads wait for ever, and says so by shared->step. */
static int serve_without_reading(void)
{
	static char request[FUSE_MAX_WRITE + 4096] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const void *)request;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.max_write = FUSE_MAX_WRITE,
		.flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO,
	};
	struct actor a = { .random = 1 };

	while (read(fuse_fd, request, sizeof(request)) > 0) {
		if (in->opcode == FUSE_READ) {
			shared->step = 1;
		} else if (in->opcode == FUSE_INIT) {
			init.minor = ((const struct fuse_init_in *)(in + 1))->minor;
			fuse_answer(fuse_fd, in->unique, 0, &init, sizeof(init));
		} else {
			fuse_serve_one(&a, fuse_fd, request);
		}
	}
	return 0;
}

/* The old address space goes only when what is read into it is there. */
static int exec_while_reading(void)
{
	static char to[4096] __attribute__((aligned(4096)));
	struct iocb iocb = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = addr(to),
		.aio_nbytes = sizeof(to),
	}, *iocbs[] = { &iocb };
	aio_context_t context = 0;

	iocb.aio_fildes = open(fuse_path, O_RDONLY | O_DIRECT);
	if ((int)iocb.aio_fildes < 0)
		return 41;
	if (syscall(SYS_io_setup, 1, &context) || syscall(SYS_io_submit, context, 1, iocbs) != 1)
		return 42;
	execve(SELF, new_argv, new_envp);
	return 43;
}

/* Until that waits; or, by 7.2, does not although who execs does. */
static int attach_who_execs(void)
{
	bool waits;

	do {
		waits = task_state(shared->pid) == 'D';
		if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, shared->pid, NULL) == -EINTR)
			return 0;
	} while (!waits);
	shared->step = 2;
	pause();
	return 0;
}

static int ask_for_statistics(void)
{
	struct profil_stats s;

	if (!descriptor_stats(fd, &s))
		shared->step = 3;
	return 0;
}

TEST_F(session, is_not_locked_while_a_target_is_kept_in_exec)
{
	char dir[] = "/tmp/profil-session.XXXXXX";
	pid_t server, execs, attaches, asks;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_NE(NULL, mkdtemp(dir));
	server = serve_files(dir, serve_without_reading);
	if (server == -ENOENT || server == -ENODEV)
		SKIP(return, "no file systems in user space: /dev/fuse: %s", strerror(-server));
	ASSERT_LT(0, server);

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	execs = spawn(exec_while_reading);
	shared->pid = execs;
	EXPECT_TRUE(step_is(1));
	attaches = spawn(attach_who_execs);
	EXPECT_TRUE(await(task_state(attaches) == 'D' || shared->step == 2));

	/* Another process's call, which does not hang this one if it hangs. */
	asks = spawn(ask_for_statistics);
	EXPECT_TRUE(await(shared->step == 3));

	killed(server);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	killed(execs);
	killed(attaches);
	killed(asks);
}

#define PROGRAM_AT	0x10000000UL
#define PROGRAM_BYTES	4096
#define DATA_AT		(1UL << 20)	/* in the file: not read ahead */

/* Its data ends in the midst of a page, the rest of which the kernel clears before it runs. */
static struct {
	Elf64_Ehdr header;
	Elf64_Phdr parts[2];
#if defined(__x86_64__)
	u8 loop[2];
#else
	u32 loop[1];
#endif
} slow_program = {
	.header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_version = EV_CURRENT,
		.e_entry = PROGRAM_AT + sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr),
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	},
	.parts = {
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = PROGRAM_AT,
			.p_filesz = PROGRAM_BYTES,
			.p_memsz = PROGRAM_BYTES,
			.p_align = 65536,
		}, {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_offset = DATA_AT,
			.p_vaddr = PROGRAM_AT + DATA_AT,
			.p_filesz = 8,
			.p_memsz = 16,
			.p_align = 65536,
		},
	},
#if defined(__x86_64__)
	.loop = { 0xeb, 0xfe },
#else
	.loop = { 0x14000000 },
#endif
};

/* Serves it. Who reads its data waits until shared->step is 2. */
static int serve_slow_program(void)
{
	static char request[FUSE_MAX_WRITE + 4096] __attribute__((aligned(8)));
	static char pages[256 << 10];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	struct actor a = { .random = 1 };
	struct fuse_entry_out entry = { .nodeid = FUSE_FILE_INO };
	struct fuse_attr_out attr = {};

	entry.attr = fuse_attr_of(FUSE_FILE_INO);
	entry.attr.mode |= 0111;
	while (read(fuse_fd, request, sizeof(request)) > 0) {
		if (in->opcode == FUSE_LOOKUP) {
			fuse_answer(fuse_fd, in->unique, 0, &entry, sizeof(entry));
		} else if (in->opcode == FUSE_GETATTR && in->nodeid == FUSE_FILE_INO) {
			attr.attr = entry.attr;
			fuse_answer(fuse_fd, in->unique, 0, &attr, sizeof(attr));
		} else if (in->opcode == FUSE_READ) {
			memset(pages, 0, sizeof(pages));
			if (!read_in->offset)
				memcpy(pages, &slow_program, sizeof(slow_program));
			if (read_in->offset >= DATA_AT) {
				shared->step = 1;
				step_is(2);
			}
			fuse_answer(fuse_fd, in->unique, 0, pages, read_in->size);
		} else {
			fuse_serve_one(&a, fuse_fd, request);
		}
	}
	return 0;
}

static int exec_slow_program(void)
{
	if (!step_is(0))
		return 41;
	execve(fuse_path, new_argv, new_envp);
	return 43;
}

/* The others come to the new address space only when it has been loaded. */
TEST_F(session, can_be_attached_in_the_midst_of_an_exec_if_it_is_not_one_too_many)
{
	char dir[] = "/tmp/profil-session.XXXXXX";
	int fds[FOREIGN], one_more;
	struct profil_range range = range_all(page, 1, 8);
	pid_t server, execs;
	unsigned int i;
	u64 space = 0;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_NE(NULL, mkdtemp(dir));
	server = serve_files(dir, serve_slow_program);
	if (server == -ENOENT || server == -ENODEV)
		SKIP(return, "no file systems in user space: /dev/fuse: %s", strerror(-server));
	ASSERT_LT(0, server);

	shared->step = -1;
	execs = spawn(exec_slow_program);
	for (i = 0; i < FOREIGN; i++) {
		fds[i] = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_FOLLOW, 0);
		ASSERT_LE(0, fds[i]);
		if (i)
			ASSERT_EQ(0, descriptor_attach(fds[i], PROFIL_SCOPE_PROCESS, execs, NULL));
	}
	one_more = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_FOLLOW, 0);
	ASSERT_LE(0, one_more);
	shared->step = 0;
	EXPECT_TRUE(step_is(1));

	EXPECT_EQ(0, descriptor_attach(fds[0], PROFIL_SCOPE_PROCESS, execs, &space));
	EXPECT_EQ(0, descriptor_add(fds[0], space, &range, 1));
	EXPECT_EQ(0, descriptor_enable(fds[0]));
	EXPECT_EQ(-EBUSY, descriptor_attach(one_more, PROFIL_SCOPE_PROCESS, execs, NULL));

	/* Then it runs, and what was added is there. */
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

TEST_F(session, of_nobody_is_refused)
{
	pid_t child = spawn(exit_at_once);
	siginfo_t info;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	/* Dead, but not waited for; then gone. */
	ASSERT_EQ(0, waitid(P_PID, child, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_THREAD, child, NULL));
	EXPECT_EQ(-ESRCH, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, INT32_MAX, NULL));
	EXPECT_EQ(-EINVAL, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, -1, NULL));
	EXPECT_EQ(0U, stats_now().targets);
}

TEST_F(session, has_each_target_once)
{
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, run_loop_1_told, NULL));
	ASSERT_TRUE(await(thread_id));
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, gettid(), NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(2U, stats_now().targets);
	close_session();

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	close_session();

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, getpid(), NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(-EBUSY, descriptor_attach(fd, PROFIL_SCOPE_THREAD, thread_id, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	enough = true;
	pthread_join(thread, NULL);
}

/*
 * exec
 */

static int join_and_exec(void)
{
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 30;
	shared->step = 1;
	if (!step_is(2))
		return 31;
	if (!loop_until(0, stats_now().hit >= 3))
		return 37;
	execve(SELF, new_argv, new_envp);
	return 32;
}

static void *exec_thread(void *unused)
{
	(void)unused;
	execve(SELF, new_argv, new_envp);
	_exit(33);
}

static int join_and_exec_from_a_thread(void)
{
	pthread_t thread;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 30;
	shared->step = 1;
	if (!step_is(2))
		return 31;
	if (!loop_until(0, stats_now().hit >= 3))
		return 37;
	if (pthread_create(&thread, NULL, exec_thread, NULL))
		return 34;
	return run_loop((void *)1) ? 35 : 36;
}

/* Of this thread alone, which then becomes the first of the new program. */
static void *join_alone_and_exec(void *unused)
{
	(void)unused;
	if (descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, &shared->space))
		_exit(38);
	shared->step = 1;
	if (!step_is(2) || !loop_until(0, stats_now().hit >= 3))
		_exit(39);
	execve(SELF, new_argv, new_envp);
	_exit(33);
}

static int exec_in_an_attached_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, join_alone_and_exec, NULL))
		return 34;
	return run_loop((void *)1) ? 35 : 36;
}

/* A child of @child() in a session of its own, with its ranges, until it has exec'd. */
static pid_t follow(struct __test_metadata *_metadata, u32 on_exec, int (*child)(void))
{
	struct profil_range range = range_of_loops(page, 4);
	pid_t pid;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, on_exec, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	pid = spawn(child);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(step_is(1));
	ASSERT_EQ(0, descriptor_add(fd, shared->space, &range, 1));
	shared->step = 2;
	ASSERT_TRUE(await(is_new_program(pid)));
	return pid;
}

/* The child runs a new program, and is sampled yet. */
static void expect_followed(struct __test_metadata *_metadata, pid_t child)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	u64 outside;
	u32 counted;

	counted = counters_sum(page, 4, LOOPS);
	EXPECT_LT(0U, counted);
	outside = stats_now().outside;
	EXPECT_TRUE(await(stats_now().outside >= outside + 10));
	EXPECT_EQ(1U, stats_now().targets);
	/* Its old address space is gone, and its ranges with it. */
	EXPECT_EQ(-ESRCH, descriptor_add(fd, shared->space, &range, 1));
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(!stats_now().targets));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(counted, s.hit);
}

/* The child runs a new program, and is not sampled. */
static void expect_not_followed(struct __test_metadata *_metadata, pid_t child)
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
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
}

TEST_F(session, follows_a_child_that_joins_and_then_execs)
{
	expect_followed(_metadata, follow(_metadata, PROFIL_EXEC_FOLLOW, join_and_exec));
}

TEST_F(session, follows_an_exec_by_another_thread)
{
	expect_followed(_metadata, follow(_metadata, PROFIL_EXEC_FOLLOW,
					  join_and_exec_from_a_thread));
}

TEST_F(session, of_one_thread_follows_its_exec)
{
	expect_followed(_metadata, follow(_metadata, PROFIL_EXEC_FOLLOW,
					  exec_in_an_attached_thread));
	EXPECT_EQ(0U, page[1]);
}

TEST_F(session, of_one_thread_does_not_follow_its_exec_if_it_is_not_to)
{
	expect_not_followed(_metadata, follow(_metadata, PROFIL_EXEC_OFF,
					      exec_in_an_attached_thread));
	EXPECT_EQ(0U, page[1]);
}

TEST_F(session, does_not_follow_an_exec_if_it_is_not_to)
{
	expect_not_followed(_metadata, follow(_metadata, PROFIL_EXEC_OFF, join_and_exec));
}

TEST_F(session, does_not_follow_an_exec_by_another_thread_either)
{
	expect_not_followed(_metadata, follow(_metadata, PROFIL_EXEC_OFF,
					      join_and_exec_from_a_thread));
}

TEST_F(session, goes_on_when_an_exec_fails)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(-1, execve("/nonexistent", new_argv, new_envp));
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(10U, s.ticks);
	EXPECT_EXACT(s, page);
}

/* A program that exists for the time of a test, as others see it. */
static char program[64];

static int program_create(mode_t mode, bool capable)
{
	/* CAP_NET_RAW, permitted and effective; in the file's byte order, little-endian. */
	static const u8 caps[20] = { [0] = 1, [3] = 2, [5] = 1 << (CAP_NET_RAW - 8) };

	char buffer[65536];
	int from, to, err = 0;
	ssize_t n;

	snprintf(program, sizeof(program), "/tmp/profil-session.%d", getpid());
	unlink(program);
	from = open(SELF, O_RDONLY | O_CLOEXEC);
	to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (from < 0 || to < 0)
		return -errno;
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, n) != n)
			err = -EIO;
	if (fchown(to, 0, 0) || fchmod(to, mode))
		err = -errno;
	if (capable && fsetxattr(to, "security.capability", caps, sizeof(caps), 0))
		err = -errno;
	close(to);
	close(from);
	return err;
}

static int join_and_exec_program_as_user(void)
{
	if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		return 40;
	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space))
		return 41;
	shared->step = 1;
	if (!step_is(2))
		return 42;
	if (!loop_until(0, stats_now().hit >= 3))
		return 44;
	execve(program, new_argv, new_envp);
	return 43;
}

TEST_F(session, does_not_follow_into_a_program_that_gains_privilege)
{
	static const struct {
		const char *what;
		mode_t mode;
		bool capable;
		bool follow;
	} cases[] = {
		{ "an ordinary program", 0755, false, true },
		{ "set-user-ID", 04755, false, false },
		{ "set-group-ID", 02755, false, false },
		{ "not to be read", 0711, false, false },
		{ "with capabilities", 0755, true, false },
	};
	unsigned int i;
	pid_t child;
	int err;

	if (geteuid())
		SKIP(return, "only root can make a program of another user");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(page, 0, sizeof(page));
		shared->step = 0;
		err = program_create(cases[i].mode, cases[i].capable);
		if (err == -EOPNOTSUPP) {
			TH_LOG("%s: %s cannot hold that", cases[i].what, program);
			continue;
		}
		ASSERT_EQ(0, err);
		TH_LOG("%s", cases[i].what);
		child = follow(_metadata, PROFIL_EXEC_FOLLOW, join_and_exec_program_as_user);
		if (cases[i].follow)
			expect_followed(_metadata, child);
		else
			expect_not_followed(_metadata, child);
		close_session();
		unlink(program);
	}
}

TEST_F(session, follows_a_spawned_program)
{
	struct profil_range range = range_all(page, 1, 4);
	struct profil_stats s;
	pid_t child;

	/* All ticks of this process are hits, so those outside are the other's. */
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	ASSERT_EQ(0, posix_spawn(&child, SELF, NULL, NULL, new_argv, new_envp));
	children[0] = child;
	EXPECT_TRUE(await(stats_now().outside >= 10));
	EXPECT_EQ(2U, stats_now().targets);
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_EQ(0U, s.unfollowed);
}

/*
 * fork
 */

static int grandchild(void)
{
	u64 outside = stats_now().outside;

	if (!loop_until(2, stats_now().outside >= outside + 5))
		return 51;
	if (!loop_until(1, *(volatile u32 *)&shared->page[1] >= 5))
		return 52;
	return count_of(1) || count_of(2) ? 53 : 0;
}

static int child_and_grandchild(void)
{
	int status;
	pid_t pid;

	/* In the parent loops 0 and 1 are counted, here and further down only the latter. */
	if (!loop_until(1, *(volatile u32 *)&shared->page[1] >= 2))
		return 50;
	pid = spawn(grandchild);
	shared->stats = stats_now();
	status = status_of(pid);
	shared->step = 1;
	return status;
}

TEST_F(session, shared_by_fork_counts_children_in_ranges_that_they_inherit)
{
	struct profil_range ranges[2] = {
		range_of(addr(loops_text), addr(loops_text) + LOOP_SIZE, &page[0], 1, 4),
		range_of(addr(loops_text) + LOOP_SIZE, addr(loops_text) + 2 * LOOP_SIZE,
			 &shared->page[1], 1, 4),
	};
	struct profil_stats s;
	pid_t child;
	u32 counted;

	ranges[0].granule = LOOP_SIZE;
	ranges[1].granule = LOOP_SIZE;
	ranges[1].flags = PROFIL_RANGE_INHERIT;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 2));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(loop_until(0, count_of(0) >= 5));
	counted = count_of(0);
	child = spawn(child_and_grandchild);
	EXPECT_TRUE(step_is(1));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(3U, shared->stats.targets);
	EXPECT_TRUE(await(stats_now().targets == 1));
	EXPECT_EQ(counted, count_of(0));
	EXPECT_TRUE(loop_until(0, count_of(0) >= counted + 3));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, page[0] + shared->page[1]);
	EXPECT_LE(5U, s.outside);
}

/* In private memory, so that it is seen that none but the creator's is written. */
static int burn_2(void)
{
	u64 hit = stats_now().hit, held = count_of(2);

	if (!loop_until(2, stats_now().hit >= hit + 10))
		return 54;
	return count_of(2) == held ? 0 : 55;
}

TEST_F(session, shared_by_fork_counts_exactly_in_the_creators_memory)
{
	struct profil_stats s;
	pid_t child[2];

	ASSERT_EQ(0, open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, page,
				  PROFIL_RANGE_INHERIT));
	child[0] = spawn(burn_2);
	child[1] = spawn(burn_2);
	EXPECT_TRUE(loop_until(0, count_of(0) >= 10));
	EXPECT_EQ(0, status_of(child[0]));
	EXPECT_EQ(0, status_of(child[1]));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_LE(10U, page[0]);
	EXPECT_LE(1U, page[2]);
	EXPECT_EQ(s.hit, page[0] + page[2]);
	EXPECT_EQ(self->locked + 4096, locked_bytes());
}

static int outside_only(void)
{
	u64 outside = stats_now().outside;

	return loop_until(2, stats_now().outside >= outside + 10) ? 0 : 56;
}

TEST_F(session, shared_by_fork_has_no_ranges_in_the_child_that_it_does_not_inherit)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, page, 0));
	EXPECT_EQ(0, status_of(spawn(outside_only)));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(0U, page[2]);
	EXPECT_LE(10U, s.outside);
}

/* A thread that forks takes along its own session, for the child's first thread. */
static int run_2_beside_1(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_loop, (void *)1))
		return 57;
	if (!loop_until(2, *(volatile u32 *)&shared->page[2] >= 10))
		return 58;
	return shared->page[1] ? 59 : 0;
}

TEST_F(session, of_a_thread_that_forks_follows_to_the_childs_first_thread)
{
	struct profil_range range = range_of_loops(shared->page, 4);
	struct profil_stats s;

	range.flags = PROFIL_RANGE_INHERIT;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_EQ(0, status_of(spawn(run_2_beside_1)));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, shared->page);
	EXPECT_EQ(s.hit, shared->page[2]);
}

/* Has a session of its own to know that it ticks. */
static int tick_40(void)
{
	if (session_start(PROFIL_SCOPE_PROCESS, 0, NULL, 0))
		return 60;
	if (!loop_burn(PROFIL_SCOPE_PROCESS, 3, 40))
		return 61;
	return stats_now().targets == 1 ? 0 : 62;
}

TEST_F(session, that_is_not_to_follow_a_fork_does_not_sample_the_child)
{
	struct profil_stats s, then;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_FOLLOW, shared->page,
				  PROFIL_RANGE_INHERIT));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	then = stats_now();
	EXPECT_EQ(0, status_of(spawn(tick_40)));
	s = stats_now();
	EXPECT_GT(then.ticks + 20, s.ticks);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, shared->page);
	EXPECT_EQ(0U, shared->page[3]);
	EXPECT_EQ(1U, s.targets);
}

/* The child of FRESH: its copy of the descriptor tells of its own session. */
static int fresh_child(void)
{
	u32 then[LOOPS], now[LOOPS];
	struct profil_range range;
	struct profil_stats s;
	unsigned int i;

	for (i = 0; i < LOOPS; i++)
		then[i] = count_of(i);
	s = stats_now();
	if (s.state != PROFIL_STATE_ON || s.ticks >= 20 || s.targets != 1)
		return 70;
	if (!descriptor_burn(fd, 2, 20))
		return 71;
	if (!await(locked_bytes() == 4096))
		return 72;
	s = stats_now();
	if (s.locked != 4096)
		return 73;
	if (descriptor_enable(fd) != -EBUSY)
		return 74;
	if (descriptor_disable(fd, &s) || !accounted(&s))
		return 75;
	for (i = 0; i < LOOPS; i++)
		now[i] = count_of(i) - then[i];
	if (s.hit != counters_sum(now, 4, LOOPS) || s.hit != now[2] || !now[2])
		return 76;
	/* It is the creator of this one. */
	range = range_of(0x10000, 0x10010, other, 1, 4);
	if (descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1) || locked_bytes() != 8192)
		return 77;
	if (descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) != 2 || locked_bytes())
		return 78;
	return 0;
}

TEST_F(session, fresh_after_fork_is_the_childs_own)
{
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 30));
	EXPECT_EQ(0, status_of(spawn(fresh_child)));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(1U, s.targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_EQ(s.hit, page[0]);
	EXPECT_LE(35U, s.ticks);
}

static int fresh_burn(void)
{
	if (!descriptor_burn(fd, 2, 20))
		return 80;
	return descriptor_disable(fd, &shared->stats) ? 81 : 0;
}

TEST_F(session, fresh_after_fork_counts_in_shared_memory_with_the_parents)
{
	struct profil_stats s;
	pid_t child;

	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, shared->page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	child = spawn(fresh_burn);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_TRUE(accounted(&shared->stats));
	EXPECT_EQ(s.hit, shared->page[0]);
	EXPECT_EQ(shared->stats.hit, shared->page[2]);
	EXPECT_LT(0U, shared->page[2]);
}

static int use_of_fresh(void)
{
	struct profil_stats s;

	if (descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL) != -ENODEV)
		return 82;
	if (descriptor_enable(fd) != -ENODEV)
		return 83;
	return descriptor_stats(fd, &s) == -ENODEV ? 0 : 84;
}

TEST_F(session, fresh_after_fork_is_of_the_creator_only)
{
	pid_t child;

	/* Not attached, so that the child has none. */
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, status_of(spawn(use_of_fresh)));
	child = spawn(run_for_ever);
	ASSERT_TRUE(step_is(1));
	/* Without the right to it the answer may be that. */
	EXPECT_EQ(geteuid() ? -EPERM : -EINVAL,
		  descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
	EXPECT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_EQ(128 + SIGKILL, killed(child));
}

static int fresh_without_buffer(void)
{
	struct profil_stats s;

	if (descriptor_stats(fd, &s) || !accounted(&s))
		return 90;
	if (s.state != PROFIL_STATE_ENDED || s.end != PROFIL_END_BUFFER)
		return 91;
	/* And not the parent's in its place. */
	if (descriptor_disable(fd, &s) != -ENODEV || descriptor_enable(fd) != -ENODEV)
		return 92;
	return locked_bytes() ? 93 : 0;
}

TEST_F(session, fresh_that_has_ended_in_the_child_says_so_there_and_goes_on_in_the_parent)
{
	struct profil_stats s;
	u32 *buffer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)buffer);
	ASSERT_EQ(0, madvise(buffer, 4096, MADV_DONTFORK));
	ASSERT_EQ(0, open_session(PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, buffer, 0));
	EXPECT_EQ(0, status_of(spawn(fresh_without_buffer)));
	EXPECT_EQ((u32)PROFIL_STATE_ON, stats_now().state);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.hit, buffer[0]);
	EXPECT_LT(0U, s.hit);
}

/*
 * Limits
 */

static void expect_no_more(struct __test_metadata *_metadata, u32 scope)
{
	struct profil_query q;
	int fds[64], one_more;
	unsigned int i;

	ASSERT_EQ(0, device_query(&q));
	ASSERT_LE(2U, q.max_sessions);
	ASSERT_GE(64U, q.max_sessions);
	for (i = 0; i < q.max_sessions; i++) {
		fds[i] = descriptor_open(MODES_ALL, PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, descriptor_attach(fds[i], scope, 0, NULL));
	}
	one_more = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, one_more);
	EXPECT_EQ(-EBUSY, descriptor_attach(one_more, scope, 0, NULL));
	close(fds[0]);
	EXPECT_EQ(0, descriptor_attach(one_more, scope, 0, NULL));
	close(one_more);
	for (i = 1; i < q.max_sessions; i++)
		close(fds[i]);
}

TEST_F(session, can_be_one_of_so_many_that_sample_a_process_and_no_more)
{
	expect_no_more(_metadata, PROFIL_SCOPE_PROCESS);
}

TEST_F(session, can_be_one_of_so_many_that_sample_a_thread_and_no_more)
{
	expect_no_more(_metadata, PROFIL_SCOPE_THREAD);
}

static int inherited[64];
static unsigned int nr_inherited;

/* As many new ones as can be; none of the others comes in addition. */
static void *join_new_and_inherited(void *status)
{
	*(int *)status = 97;
	for (unsigned int i = 0; i < nr_inherited; i++) {
		int new = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);

		if (new < 0 || descriptor_attach(new, PROFIL_SCOPE_THREAD, 0, NULL))
			return NULL;
	}
	*(int *)status = 98;
	for (unsigned int i = 0; i < nr_inherited; i++)
		if (descriptor_attach(inherited[i], PROFIL_SCOPE_THREAD, 0, NULL) != -EBUSY)
			return NULL;
	*(int *)status = 0;
	return NULL;
}

static int thread_joins_new_and_inherited(void)
{
	pthread_t thread;
	int status = 96;

	if (!pthread_create(&thread, NULL, join_new_and_inherited, &status))
		pthread_join(thread, NULL);
	return status;
}

/* Or a thread's child would inherit more than the thread did, and its child's still more. */
TEST_F(session, that_is_inherited_is_one_of_so_many_too)
{
	struct profil_query q;
	unsigned int i;

	ASSERT_EQ(0, device_query(&q));
	ASSERT_GE(ARRAY_SIZE(inherited), q.max_sessions);
	nr_inherited = q.max_sessions;
	for (i = 0; i < nr_inherited; i++) {
		inherited[i] = descriptor_open(MODES_ALL, PROFIL_FORK_FRESH, PROFIL_EXEC_OFF, 0);
		ASSERT_LE(0, inherited[i]);
		ASSERT_EQ(0, descriptor_attach(inherited[i], PROFIL_SCOPE_THREAD, 0, NULL));
	}
	EXPECT_EQ(0, status_of(spawn(thread_joins_new_and_inherited)));
	for (i = 0; i < nr_inherited; i++)
		close(inherited[i]);
}

/* Without the right to lock more than a little. */
static int add_very_much(void)
{
	struct rlimit little = { 65536, 65536 };
	struct profil_range range;
	u64 size = 1ULL << 36;
	void *buffer;

	if (!geteuid() && (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)))
		return 95;
	if (setrlimit(RLIMIT_MEMLOCK, &little))
		return 96;
	buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (buffer == MAP_FAILED)
		return 97;
	for (unsigned int i = 0; i < 100; i++) {
		range = range_all(buffer, 1ULL << 31, 8);
		if (session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1) != -EPERM)
			return 98;
	}
	return locked_bytes() ? 99 : 0;
}

/* Of the buffer's 2^22 pages nothing is laid out in the kernel's memory: it would take 32 MiB. */
TEST_F(session, beyond_the_limit_is_refused_before_it_costs_anything)
{
	EXPECT_EQ(0, status_of(spawn(add_very_much)));
}

/*
 * Ranges
 */

TEST_F(session, refuses_ranges_that_overlap_and_is_as_before)
{
	struct profil_range ranges[3];
	struct profil_stats s;
	unsigned int i;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	for (i = 0; i < 4; i++) {
		/* The last overlaps with what is there, or two of these with each other. */
		ranges[0] = range_of(0x10000, 0x20000, other, 4, 4);
		ranges[1] = range_of(0x20000, 0x30000, other, 4, 4);
		ranges[2] = range_of_loops(other, 4);
		switch (i) {
		case 1:
			ranges[2].start = ranges[2].end - 1;
			ranges[2].end += LOOP_SIZE;
			break;
		case 2:
			ranges[2].offset = 0x10000;
			ranges[2].start = 0x10000;
			ranges[2].end = UINT64_MAX;
			break;
		case 3:
			ranges[2].offset = 0x1ffff;
			ranges[2].start = 0x1ffff;
			ranges[2].end = 0x20001;
			break;
		}
		EXPECT_EQ(-EINVAL, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 3));
		EXPECT_EQ(4096U, stats_now().locked);
		EXPECT_EQ(self->locked + 4096, locked_bytes());
	}
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	/* None of the good ones has come. */
	EXPECT_EQ(0, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x30000));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_LE(10U, s.ticks);
	EXPECT_EQ(0U, counters_sum(other, 4, 1024));
}

TEST_F(session, removes_the_ranges_in_a_span_and_no_others)
{
	struct profil_range ranges[LOOPS];
	struct profil_stats s;
	u64 base = addr(loops_text), outside;
	u32 counted, witness;
	unsigned int i;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	for (i = 0; i < LOOPS; i++) {
		ranges[i] = range_of(base + i * LOOP_SIZE, base + (i + 1) * LOOP_SIZE,
				     &page[i], 1, 4);
		ranges[i].granule = LOOP_SIZE;
	}
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, LOOPS));
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(loop_until(3, count_of(3) >= 5));

	/* A range is removed if all of it lies there. */
	EXPECT_EQ(0, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[3].start + 1,
				       ranges[4].end - 1));
	EXPECT_EQ(2, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[2].start + 1,
				       ranges[5].end - 1));
	counted = count_of(3);
	outside = stats_now().outside;
	EXPECT_TRUE(loop_until(3, stats_now().outside >= outside + 10));
	EXPECT_EQ(counted, count_of(3));

	for (i = 0; i < LOOPS; i++) {
		if (i == 3 || i == 4)
			continue;
		witness = count_of(i);
		EXPECT_TRUE(loop_until(i, count_of(i) > witness));
	}
	/* Others can come in their place. */
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[3], 2));
	EXPECT_TRUE(loop_until(3, count_of(3) > counted));
	EXPECT_EQ((int)LOOPS, descriptor_remove(fd, PROFIL_SPACE_ALL, 0, UINT64_MAX));
	EXPECT_EQ(self->locked, locked_bytes());
	EXPECT_EQ(0U, stats_now().locked);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
}

TEST_F(session, unpins_a_page_with_its_last_range)
{
	static u32 pages[2][1024] __attribute__((aligned(4096)));
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0][0], 1, 4),
		range_of(0x20000, 0x20010, &pages[0][1], 1, 4),
		range_of(0x30000, 0x30010, &pages[1][0], 1, 4),
		range_of(0x40000, 0x40010, &pages[0][1023], 2, 4),	/* in both */
	};
	unsigned int i;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
#define EXPECT_LOCKED(bytes) do {						\
	EXPECT_EQ(bytes, stats_now().locked);					\
	EXPECT_EQ(self->locked + bytes, locked_bytes());			\
} while (0)
	/* One after the other. */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 1));
		EXPECT_LOCKED(i < 2 ? 4096U : 8192U);
	}
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x20000, 0x20010));
	EXPECT_LOCKED(4096U);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x30000, 0x30010));
	EXPECT_LOCKED(0U);

	/* All at once; then those go that are in one page only. */
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 4));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(3, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x30010));
	EXPECT_LOCKED(8192U);
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 3));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x40000, 0x40010));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(3, descriptor_remove(fd, PROFIL_SPACE_ALL, 0x10000, 0x30010));
	EXPECT_LOCKED(0U);
}

TEST_F(session, unpins_buffers_that_touch_and_came_together_with_the_last_of_their_ranges)
{
	static u32 pages[2][1024] __attribute__((aligned(4096)));
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0][0], 1, 4),
		range_of(0x20000, 0x20010, &pages[1][0], 1, 4),
	};

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 2));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	EXPECT_LOCKED(8192U);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x20000, 0x20010));
	EXPECT_LOCKED(0U);
}

/* In the child of SHARE; the parent removes the range meanwhile. */
static int inherit_and_lose(void)
{
	volatile u32 *count = &shared->page[2];
	u64 outside;
	u32 now;

	if (!loop_until(2, *count >= 5))
		return 90;
	shared->step = 1;
	if (!step_is(2))
		return 91;
	/* It is gone in the parent, but not here. */
	now = *count;
	if (!loop_until(2, *count >= now + 5))
		return 92;
	shared->step = 3;
	if (!step_is(4))
		return 93;
	/* Now it is. */
	now = *count;
	outside = stats_now().outside;
	if (!loop_until(2, stats_now().outside >= outside + 10))
		return 94;
	return *count == now ? 0 : 95;
}

TEST_F(session, removes_an_inherited_range_from_one_address_space_or_from_all)
{
	struct profil_stats s;
	pid_t child;
	u64 outside;
	u32 now;

	ASSERT_EQ(0, open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_OFF, shared->page,
				  PROFIL_RANGE_INHERIT));
	child = spawn(inherit_and_lose);
	ASSERT_TRUE(step_is(1));
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	now = shared->page[0];
	outside = stats_now().outside;
	EXPECT_TRUE(loop_until(0, stats_now().outside >= outside + 5));
	EXPECT_EQ(now, shared->page[0]);
	EXPECT_EQ(4096U, stats_now().locked);
	shared->step = 2;
	ASSERT_TRUE(step_is(3));
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_ALL, 0, UINT64_MAX));
	EXPECT_EQ(0U, stats_now().locked);
	EXPECT_EQ(self->locked, locked_bytes());
	shared->step = 4;
	EXPECT_EQ(0, status_of(child));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, shared->page);
}

static void *run_all_loops(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; !enough; i = (i + 1) % LOOPS)
		loop_run(i, LOOP_BURST / 4);
	return NULL;
}

#define MANY	1000U
#define EVERY	(MANY / LOOPS)

/* Range @i of many, for counter @i: each so many is a loop, the others are where nobody is. */
static struct profil_range one_of_many(unsigned int i, u64 *counters)
{
	struct profil_range range;
	u64 start;

	if (i % EVERY == EVERY - 1)
		start = loop_at(i / EVERY);
	else
		start = 0x10000 + i * LOOP_BLOCK;
	range = range_of(start, start + LOOP_BLOCK, counters, MANY, 8);
	range.granule = LOOP_BLOCK;
	range.offset = start - i * LOOP_BLOCK;
	return range;
}

TEST_F_TIMEOUT(session, takes_and_loses_1000_ranges_of_one_histogram_while_it_counts, 120)
{
	static u64 counters[MANY] __attribute__((aligned(4096)));
	static struct profil_range ranges[MANY];
	const volatile u64 *loop_3 = &counters[4 * EVERY - 1];
	struct profil_query query;
	struct profil_stats s;
	u64 outside, then, sum = 0;
	pthread_t thread;
	unsigned int i;

	ASSERT_EQ(0, device_query(&query));
	ASSERT_LE(MANY, query.max_ranges);
	for (i = 0; i < MANY; i++)
		ranges[i] = one_of_many(i, counters);
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_enable(fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_all_loops, NULL));

	/* The first one by one, then in batches; whatever comes is pinned once. */
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 1));
	for (i = 100; i < MANY; i += 100)
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[i], 100));
	EXPECT_EQ((sizeof(counters) + 4095) / 4096 * 4096, stats_now().locked);
	EXPECT_TRUE(await(*loop_3 >= 3));

	EXPECT_EQ((int)EVERY - 1, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[5 * EVERY].start,
						    ranges[6 * EVERY - 2].end));
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, loop_at(3),
				       loop_at(3) + LOOP_BLOCK));
	then = *loop_3;
	outside = stats_now().outside;
	EXPECT_TRUE(await(stats_now().outside >= outside + 10));
	EXPECT_EQ(then, *loop_3);
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[4 * EVERY - 1], 1));
	EXPECT_TRUE(await(*loop_3 >= then + 3));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[5 * EVERY + i], 1));
		ASSERT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, ranges[i].start,
					       ranges[i].end));
	}
	enough = true;
	pthread_join(thread, NULL);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	for (i = 0; i < MANY; i++) {
		sum += counters[i];
		if (i % EVERY != EVERY - 1)
			EXPECT_EQ(0U, counters[i]);
	}
	EXPECT_EQ(s.hit, sum);
	for (i = 0; i < LOOPS; i++)
		EXPECT_LT(0U, counters[(i + 1) * EVERY - 1]);
}

TEST_F(session, loses_no_tick_when_ranges_come_and_go)
{
	struct profil_range range = range_of_loops(page, 4), witness = range_of_loops(other, 4);
	struct profil_range dummy = range_of(0x10000, 0x10010, &page[100], 1, 4);
	struct profil_stats s, w;
	pthread_t thread;
	unsigned int i;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &witness, 1));
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_all_loops, NULL));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &dummy, 1));
		ASSERT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0x10000, 0x10010));
	}
	EXPECT_TRUE(await(stats_now().hit >= 100));
	enough = true;
	pthread_join(thread, NULL);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &w));
	EXPECT_EXACT(s, page);
	EXPECT_EXACT(w, other);
	EXPECT_EQ(0U, dropped_here(_metadata, &s));
	EXPECT_EQ(0, memcmp(page, other, sizeof(page)));
}

static int exceed_limit(void)
{
	static u32 pages[2][1024] __attribute__((aligned(4096)));
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0][0], 1, 4),
		range_of(0x20000, 0x20010, &pages[1][0], 1, 4),
	};
	struct rlimit limit = { 4096, 4096 };

	if (!geteuid() && setresuid(USER, USER, USER))
		return 100;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 101;
	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	if (fd < 0 || descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL))
		return 102;
	if (descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 2) != -EPERM)
		return 103;
	if (locked_bytes() || stats_now().locked)
		return 104;
	if (descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[0], 1))
		return 105;
	if (descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[1], 1) != -EPERM)
		return 106;
	if (locked_bytes() != 4096)
		return 107;
	return descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) == 1 ? 0 : 108;
}

TEST_F(session, is_charged_to_the_creators_limit)
{
	EXPECT_EQ(0, status_of(spawn(exceed_limit)));
}

/*
 * The end
 */

/* The creator of a session for its parent. */
static int create_and_end(bool exec)
{
	struct profil_range range = range_of_loops(page, 4);

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_FOLLOW, 0);
	if (fd < 0 || send_fd(ends[1], fd))
		return 110;
	if (!step_is(1))
		return 111;
	if (descriptor_add(fd, shared->space, &range, 1) || descriptor_enable(fd))
		return 112;
	shared->step = 2;
	if (!step_is(3))
		return 113;
	shared->page[0] = page[0];
	if (exec)
		execve(SELF, new_argv, new_envp);
	return 0;
}

static int create_and_exit(void)
{
	return create_and_end(false);
}

static int create_and_exec(void)
{
	return create_and_end(true);
}

static void outlive_creator(struct __test_metadata *_metadata, int (*creator)(void))
{
	struct profil_stats s, later;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	child = spawn(creator);
	fd = receive_fd(ends[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	shared->step = 1;
	ASSERT_TRUE(step_is(2));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_LT(0U, s.hit);
	shared->step = 3;
	EXPECT_TRUE(await(stats_now().state == PROFIL_STATE_ENDED));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ENDED, s.state);
	EXPECT_EQ((u32)PROFIL_END_CREATOR, s.end);
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(10U, s.ticks);
	/* It can count until the creator is really gone. */
	EXPECT_LE(shared->page[0], s.hit);
	EXPECT_EQ(0U, s.locked);

	loop_spend(0, 20, tick_ns());
	later = stats_now();
	EXPECT_EQ(s.ticks + s.unselected, later.ticks + later.unselected);
	EXPECT_EQ(s.hit, later.hit);
	EXPECT_EQ(-ENODEV, descriptor_enable(fd));
	if (creator == create_and_exec)
		kill(child, SIGKILL);
	EXPECT_EQ(creator == create_and_exec ? 128 + SIGKILL : 0, status_of(child));
}

TEST_F(session, ends_when_its_creator_exits)
{
	outlive_creator(_metadata, create_and_exit);
}

TEST_F(session, ends_when_its_creator_execs)
{
	outlive_creator(_metadata, create_and_exec);
}

TEST_F(session, goes_on_when_its_buffer_is_unmapped)
{
	struct profil_stats s, later;
	u32 copy[LOOPS];
	struct profil_copy all = { 0, addr(copy), sizeof(copy) };
	void *buffer, *again;

	buffer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, buffer);
	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, buffer, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, munmap(buffer, 4096));
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_STATE_ON, s.state);
	EXPECT_EQ(4096U, s.locked);
	EXPECT_EQ(self->locked + 4096, locked_bytes());
	/* What comes to that address is not what it counts in. */
	again = mmap(buffer, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_EQ(buffer, again);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, descriptor_disable(fd, &later));
	EXPECT_EQ((u32)PROFIL_END_NONE, later.end);
	EXPECT_LT(s.hit, later.hit);
	EXPECT_EQ(0U, counters_sum(again, 4, 1024));
	/* A snapshot sees all that was counted. */
	all.from = addr(buffer);
	ASSERT_EQ(0, descriptor_snapshot(fd, 0, &all, 1, NULL));
	EXPECT_EXACT(later, copy);
	EXPECT_EQ(1, descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX));
	EXPECT_EQ(self->locked, locked_bytes());
	ASSERT_EQ(0, descriptor_snapshot(fd, 0, &all, 1, NULL));
	EXPECT_EQ(0U, counters_sum(copy, 4, LOOPS));
}

/*
 * Snapshots
 */

/*
 * Copied between the counters and the statistics, so that ticks come in between: what
 * is only nearly done at one moment is not done right then.
 */
static char ballast[2 << 20], ballast_copy[2 << 20];

static bool start_threads(pthread_t *threads, unsigned int n)
{
	for (uintptr_t i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run_loop, (void *)i))
			return false;
	return true;
}

TEST_F_TIMEOUT(session, in_a_snapshot_agrees_with_its_statistics_while_ticks_run, 120)
{
	u32 copy[LOOPS], last[LOOPS] = {};
	const struct profil_copy copies[] = {
		{ addr(page), addr(copy), 4 * 3 },
		{ addr(&page[3]), addr(&copy[3]), 4 * (LOOPS - 3) },
		{ addr(ballast), addr(ballast_copy), sizeof(ballast) },
	};
	struct profil_stats s;
	pthread_t threads[4];
	unsigned int i, j;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	ASSERT_TRUE(start_threads(threads, 4));
	for (i = 0; i < 200 || s.hit < 200; i++) {
		memset(copy, 0xff, sizeof(copy));
		ASSERT_EQ(0, descriptor_snapshot(fd, 0, copies, 3, &s));
		ASSERT_EQ((u32)PROFIL_STATE_ON, s.state);
		ASSERT_TRUE(accounted(&s));
		ASSERT_EQ(s.hit, counters_sum(copy, 4, LOOPS));
		for (j = 0; j < LOOPS; j++)
			ASSERT_LE(last[j], copy[j]);
		memcpy(last, copy, sizeof(last));
		ASSERT_GT(20000U, i);
	}
	enough = true;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	dropped_here(_metadata, &s);
	/* Also of one that does not count. */
	ASSERT_EQ(0, descriptor_snapshot(fd, 0, copies, 2, &s));
	EXPECT_EXACT(s, copy);
	EXPECT_EQ((u32)PROFIL_STATE_OFF, s.state);
}

TEST_F_TIMEOUT(session, that_begins_anew_with_each_snapshot_loses_nothing, 120)
{
	struct profil_range witness = range_of_loops(other, 4);
	u32 copy[LOOPS];
	const struct profil_copy copies[] = {
		{ addr(&page[4]), addr(&copy[4]), 4 * (LOOPS - 4) },
		{ addr(page), addr(copy), 4 * 4 },
		{ addr(ballast), addr(ballast_copy), sizeof(ballast) },
	};
	u64 total[LOOPS] = {}, hit = 0, ticks = 0, uncounted = 0, most = 0;
	struct profil_stats s, w;
	pthread_t threads[4];
	unsigned int rounds, i, j;

	/* The loops run only while both sessions are on. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &witness, 1));
	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	ASSERT_TRUE(start_threads(threads, 4));
	for (rounds = 0; rounds < 200 || hit < 200; rounds++) {
		ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, copies, 3, &s));
		ASSERT_TRUE(accounted(&s));
		ASSERT_EQ(s.hit, counters_sum(copy, 4, LOOPS));
		for (j = 0; j < LOOPS; j++)
			total[j] += copy[j];
		hit += s.hit;
		ticks += s.ticks;
		uncounted += dropped_here(_metadata, &s);
		if (s.ticks > most)
			most = s.ticks;
		ASSERT_GT(20000U, rounds);
	}
	enough = true;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &w));
	EXPECT_EXACT(s, page);
	EXPECT_EXACT(w, other);
	/* On a busy host many may come during one snapshot; what is dropped is reported. */
	uncounted += dropped_here(_metadata, &s);
	TH_LOG("%llu ticks, %llu at most in one of %u", (unsigned long long)(ticks + s.ticks),
	       (unsigned long long)most, rounds);
	EXPECT_EQ(hit + s.hit + uncounted, w.hit);
	EXPECT_GE(w.ticks + w.unselected, ticks + s.ticks);
	EXPECT_GT(hit / 10, uncounted);
	for (j = 0; j < LOOPS; j++) {
		EXPECT_GE(other[j], total[j] + page[j]);
		uncounted -= other[j] - (total[j] + page[j]);
	}
	EXPECT_EQ(0U, uncounted);
}

TEST_F(session, can_be_reset_without_a_copy)
{
	const struct profil_copy none = { addr(page), 0, 4 * LOOPS };
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 20));
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &none, 1, NULL));
	s = stats_now();
	EXPECT_GT(20U, s.ticks);
	EXPECT_EQ(4096U, s.locked);
	EXPECT_EQ(1U, s.targets);
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EXACT(s, page);
	EXPECT_LE(5U, s.ticks);

	/* Statistics alone, of a session that does not count. */
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, NULL, 0, NULL));
	s = stats_now();
	EXPECT_EQ(0U, s.ticks + s.unselected + s.missed + s.expected);
	EXPECT_TRUE(accounted(&s));
}

/* As for a tool whose target has exited; @removed: the buffer is no longer pinned either. */
static void copy_and_reset(struct __test_metadata *_metadata, bool removed)
{
	struct profil_range range = range_of_loops(page, 4);
	u32 copy[LOOPS];
	const struct profil_copy all = { addr(page), addr(copy), sizeof(copy) };
	struct profil_stats s;
	pid_t child;

	fd = descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_enable(fd));
	child = spawn(join_and_burn);
	ASSERT_TRUE(step_is(1));
	ASSERT_EQ(0, descriptor_add(fd, shared->space, &range, 1));
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(4096U, stats_now().locked);
	if (removed)
		EXPECT_TRUE(await(returns_buffers(fd)));
	ASSERT_EQ(0, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &all, 1, &s));
	EXPECT_EXACT(s, copy);
	EXPECT_LT(0U, s.hit);
	EXPECT_EQ(0U, counters_sum(page, 4, 1024));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0U, s.ticks);
}

TEST_F(session, can_be_copied_and_reset_when_its_ranges_are_gone)
{
	copy_and_reset(_metadata, false);
}

TEST_F(session, can_be_copied_and_reset_when_its_buffers_are_not_pinned_any_more)
{
	copy_and_reset(_metadata, true);
}

TEST_F(session, that_cannot_be_copied_is_not_reset)
{
	static u32 copy[LOOPS];
	struct profil_copy bad[] = {
		{ addr(page), addr(copy), 4 * LOOPS },
		{ 16, addr(copy), 4 * LOOPS },
	};
	struct profil_stats s;

	ASSERT_EQ(0, open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF, page, 0));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	/* Counters that are not there; a place that cannot be written. */
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	bad[1] = (struct profil_copy) { addr(page), 8, 4 * LOOPS };
	EXPECT_EQ(-EFAULT, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	bad[1] = (struct profil_copy) { addr(page), addr(copy), 3 };
	EXPECT_EQ(-EINVAL, descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, bad, 2, NULL));
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(20U, s.ticks);
	EXPECT_EXACT(s, page);
}

TEST_HARNESS_MAIN
