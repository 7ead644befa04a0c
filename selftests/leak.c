// SPDX-License-Identifier: GPL-2.0
/*
 * No pinned page, no charge and no use of the module outlives its session.
 *
 * What the kernel says of all three is read before and after very many sessions have
 * come and gone in every way. Teardown after a kill is not awaited by anybody, so what
 * must come true is asked for until it does, or for long enough.
 */
#include "kselftest_harness.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "kernel.h"
#include "loop.h"

#define PAGE	4096UL
#define PAGES	3UL

struct usage {
	u64 locked;		/* bytes, of this process */
	long long users;	/* of the module */
	long long pins;		/* pages that are pinned, by anybody */
};

/* Counts of pins lie about in the CPUs until they are collected, which only root can ask for. */
static bool pins_known(void)
{
	return !access("/proc/sys/vm/stat_refresh", R_OK);
}

static long long pins_acquired(void)
{
	if (!pins_known())
		return 0;
	file_number("/proc/sys/vm/stat_refresh", "");
	return file_number("/proc/vmstat", "nr_foll_pin_acquired");
}

static long long pins_released(void)
{
	return pins_known() ? file_number("/proc/vmstat", "nr_foll_pin_released") : 0;
}

static struct usage usage(void)
{
	struct usage u = {
		.locked = locked_bytes(),
		.users = module_users(),
		.pins = pins_acquired(),
	};

	u.pins -= pins_released();
	return u;
}

static bool same(const struct usage *before)
{
	struct usage now = usage();

	return now.locked == before->locked && now.users == before->users &&
	       now.pins == before->pins;
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

	ASSERT_EQ(0, device_query(&q)) {
		TH_LOG("%s must be there", PROFIL_DEVICE);
	}
	/* And one page behind it that is not part of it. */
	self->buffer = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buffer);
	self->range = range_of(0, ~0ULL, self->buffer, PAGES * PAGE / 4, 4);
	self->range.scale = 0;

	self->before = usage();
	self->acquired = pins_acquired();
	ASSERT_LT(0, self->before.users);
	ASSERT_LE(0, self->before.pins) {
		TH_LOG("/proc/vmstat has no nr_foll_pin_acquired");
	}
}

FIXTURE_TEARDOWN(leak)
{
	EXPECT_TRUE(await(same(&self->before))) {
		struct usage now = usage();

		TH_LOG("locked %llu, was %llu", (unsigned long long)now.locked,
		       (unsigned long long)self->before.locked);
		TH_LOG("module's users %lld, were %lld", now.users, self->before.users);
		TH_LOG("pinned pages %lld, were %lld", now.pins, self->before.pins);
	}
}

/* What would be found if it leaked: this much was pinned meanwhile. */
static void expect_pinned(struct __test_metadata *_metadata, FIXTURE_DATA(leak) *self,
			  long long pages)
{
	if (pins_known()) {
		EXPECT_LE(self->acquired + pages, pins_acquired());
	}
}

TEST_F(leak, what_is_read_shows_a_session)
{
	struct usage now;

	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	now = usage();
	EXPECT_EQ(self->before.locked + PAGES * PAGE, now.locked);
	EXPECT_LT(self->before.users, now.users);
	if (pins_known()) {
		EXPECT_LE(self->before.pins + (long long)PAGES, now.pins);
	} else {
		TH_LOG("pins are not compared: needs root");
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
	EXPECT_EQ(self->before.locked, locked_bytes());
}

TEST_F(leak, not_in_a_thousand_starts_and_stops)
{
	for (unsigned int i = 0; i < 1000; i++) {
		ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
		if (i % 20 == 0) {
			ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		}
		ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
		ASSERT_EQ(self->before.locked, locked_bytes());
	}
	expect_pinned(_metadata, self, 1000 * PAGES);
}

TEST_F(leak, not_in_a_thousand_sessions_of_a_thread)
{
	for (unsigned int i = 0; i < 1000; i++) {
		ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, &self->range, 1));
		ASSERT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, NULL));
	}
	expect_pinned(_metadata, self, 1000 * PAGES);
}

TEST_F(leak, not_in_a_thousand_replacements)
{
	for (unsigned int i = 0; i < 1000; i++) {
		/* Now of one page, now of three, beginning in one or the other. */
		self->range.buffer = addr(self->buffer) + i % 3 * PAGE;
		self->range.nr_counters = i % 3 ? 1 : PAGES * PAGE / 4;
		ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, PROFIL_START_REPLACE,
					   &self->range, 1));
		if (i % 20 == 0) {
			ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		}
		ASSERT_EQ(self->before.locked + (i % 3 ? 1 : PAGES) * PAGE, locked_bytes());
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
	expect_pinned(_metadata, self, 1000);
}

TEST_F(leak, not_in_starts_that_fail)
{
	struct profil_range ranges[2] = { self->range, self->range };
	struct rlimit limit = { 2 * PAGE, 2 * PAGE };

	/* The second's buffer cannot be pinned when the first's has been. */
	ranges[0].end = loop_at(0);
	ranges[1].start = ranges[0].end;
	ranges[1].offset = 0;
	ranges[1].nr_counters = PAGE / 4;
	ranges[1].buffer = addr(self->buffer) + PAGES * PAGE;
	ASSERT_NE(MAP_FAILED, mmap(self->buffer + PAGES * PAGE, PAGE, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_EQ(-EFAULT, session_start(PROFIL_SCOPE_PROCESS, 0, ranges, 2));

	/* A page that looks well and is not there: beyond the end of its file. */
	ASSERT_NE(MAP_FAILED, mmap(self->buffer + PAGES * PAGE, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, memfd_create("empty", MFD_CLOEXEC), 0));
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_EQ(-EFAULT, session_start(PROFIL_SCOPE_PROCESS, 0, ranges, 2));
	ASSERT_EQ(0, munmap(self->buffer + PAGES * PAGE, PAGE));

	/* A failing replacement, too. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_EQ(-EFAULT, session_start(PROFIL_SCOPE_PROCESS, PROFIL_START_REPLACE,
						 ranges, 2));
	ASSERT_EQ(self->before.locked + PAGES * PAGE, locked_bytes());
	ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));

	if (geteuid())
		return;
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_EQ(0, seteuid(1000));
	for (unsigned int i = 0; i < 200; i++)
		ASSERT_EQ(-EPERM, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	ASSERT_EQ(0, seteuid(0));
}

TEST_F(leak, not_when_buffers_are_lost)
{
	for (unsigned int i = 0; i < 100; i++) {
		char *buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct profil_stats s;

		ASSERT_NE(MAP_FAILED, (void *)buffer);
		self->range.buffer = addr(buffer);
		self->range.nr_counters = 1;
		ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
		if (i % 20 == 0) {
			ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		}
		ASSERT_EQ(0, munmap(buffer, PAGE));
		/* The next start comes before the end has been noticed, or after. */
		if (i % 2) {
			ASSERT_TRUE(await(!session_stats(PROFIL_SCOPE_PROCESS, &s) &&
					  s.state == PROFIL_STATE_ENDED));
		} else {
			ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
		}
	}
	expect_pinned(_metadata, self, 100);
	/* The last has ended, and nobody stops it. */
}

TEST_F(leak, not_when_pages_are_exchanged)
{
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1));
	for (unsigned int i = 0; i < 200; i++) {
		ASSERT_EQ(0, madvise(self->buffer, PAGES * PAGE, MADV_DONTNEED));
		if (i % 20 == 0) {
			ASSERT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 1));
		}
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
	expect_pinned(_metadata, self, 10 * PAGES);
}

static void *leave_session_on(void *range)
{
	return session_start(PROFIL_SCOPE_THREAD, 0, range, 1) ? range : NULL;
}

TEST_F(leak, not_when_a_hundred_threads_exit)
{
	pthread_t thread;
	void *failed;

	for (unsigned int i = 0; i < 100; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, leave_session_on, &self->range));
		ASSERT_EQ(0, pthread_join(thread, &failed));
		ASSERT_NULL(failed);
	}
	expect_pinned(_metadata, self, 100 * PAGES);
}

static void *run_loop_1(void *unused)
{
	(void)unused;
	for (;;)
		loop_run(1, LOOP_BURST);
	return NULL;
}

/*
 * Is profiled, in every way at once, and ticks until it is killed. Every second has a
 * thread more.
 */
static void be_killed(FIXTURE_DATA(leak) *self, int ready, bool with_thread)
{
	pthread_t thread;

	if (session_start(PROFIL_SCOPE_PROCESS, 0, &self->range, 1) ||
	    session_start(PROFIL_SCOPE_THREAD, 0, &self->range, 1) ||
	    (with_thread && pthread_create(&thread, NULL, run_loop_1, NULL)) ||
	    !loop_burn(PROFIL_SCOPE_PROCESS, 0, 1) || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		loop_run(0, LOOP_BURST);
}

static void kill_a_hundred(struct __test_metadata *_metadata, FIXTURE_DATA(leak) *self,
			   int signal)
{
	int ready[2], status;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(ready));
	for (unsigned int i = 0; i < 100; i++) {
		pid = fork();
		if (!pid)
			be_killed(self, ready[1], i % 2);
		ASSERT_LT(0, pid);
		ASSERT_EQ(1, read(ready[0], &c, 1));
		ASSERT_EQ(0, kill(pid, signal));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(signal, WTERMSIG(status));
	}
	expect_pinned(_metadata, self, 100 * 2 * PAGES);
}

TEST_F(leak, not_when_a_hundred_processes_are_killed)
{
	kill_a_hundred(_metadata, self, SIGKILL);
}

TEST_F(leak, not_when_a_hundred_processes_crash)
{
	struct rlimit no_core = { 0, 0 };

	ASSERT_EQ(0, setrlimit(RLIMIT_CORE, &no_core));
	kill_a_hundred(_metadata, self, SIGSEGV);
}

TEST_HARNESS_MAIN
