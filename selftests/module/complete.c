// SPDX-License-Identifier: GPL-2.0
/*
 * The completion of records: if a tick cannot look up the mapping, as mmap_lock is taken, the task
 * does it when it returns to user mode. The record keeps nobody waiting. profil_delay.ko keeps
 * mmap_lock taken, in mmap() of another thread.
 */
#include "kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	150

#include <poll.h>
#include <sys/uio.h>

#include "delay.h"
#include "loop.h"
#include "process.h"
#include "records.h"
#include "threads.h"
#include "unwind.h"
#include "usage.h"

#define ENOUGH		65536		/* records: more than any test has ticks */
#define FEW		32
#define TICKS		10U		/* in a call */
#define DEPTH		8
#define PART		65536		/* bytes */
#define MANY		512		/* parts: a write of these takes many ticks */
#define HOLDER		"holder"	/* the name of the threads that keep mmap_lock */
#define PERIOD		200000		/* ns */

static const u32 without_pc = PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT;

static struct shared {
	atomic_int step;
	atomic_int in_user;		/* the child does not call writev() */
	atomic_int faulted;
} *shared;

#define BUSY		8U		/* children */

static struct iovec parts[MANY];	/* what a child writes: one part many times */
static int ends[2];			/* of the pipe of the last child */
static pid_t children[BUSY];		/* which are busy until the end of the test */
static unsigned int nr_children;

FIXTURE(complete) {
	long long users;
};

/* From now on, a call of mmap() by a holder keeps mmap_lock. */
FIXTURE_SETUP(complete)
{
	shared = map_shared(sizeof(*shared));
	ASSERT_DEVICE();
	self->users = module_users();
	DELAY("function=mmap_region ms=0 sleep=1 hold=1 comm=" HOLDER);
}

FIXTURE_TEARDOWN(complete)
{
	close(fd);
	delay_release();
	while (nr_children)
		EXPECT_EQ(128 + SIGKILL, killed(children[--nr_children]));
	EXPECT_TRUE(await(!delay_unload()));
	EXPECT_TRUE(await(module_users() == self->users));
}

static atomic_bool ready;

static void *hold_lock(void *unused)
{
	prctl(PR_SET_NAME, HOLDER);
	while (!ready)
		sched_yield();
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return unused;
}

/* While its other thread holds mmap_lock, the child runs a loop, or is busy in one long call. */
static int be_busy(void)
{
	char *part = map_private(PART);
	pthread_t thread;

	/* The test of the unload needs a child that does not use the module. */
	device_close();
	MUST(!pthread_create(&thread, NULL, hold_lock, NULL));
	/* Has all faults now, since they would wait for mmap_lock. */
	memset(part, 1, PART);
	for (unsigned int i = 0; i < MANY; i++)
		parts[i] = (struct iovec){ part, PART };
	shared->faulted = 1;
	loop_run(1, 1);
	sched_yield();
	MUST(!writev(ends[1], parts, 0));
	ready = true;
	while (shared->step < 1)
		sched_yield();
	if (shared->in_user) {
		shared->step = 2;
		loop_for_ever((void *)1);
	}
	MUST(writev(ends[1], parts, MANY) >= 0);
	shared->step = 2;
	loop_for_ever((void *)2);
	return 0;
}

static bool readable(int timeout_ms)
{
	struct pollfd polled = { .fd = ends[0], .events = POLLIN };

	return poll(&polled, 1, timeout_ms) > 0;
}

/* Makes a child that is busy, and whose mmap_lock is taken. */
static pid_t spawn_busy(bool in_user)
{
	pid_t child;

	shared->step = 0;
	shared->in_user = in_user;
	MUST(!pipe2(ends, O_CLOEXEC));
	child = spawn(be_busy);
	children[nr_children++] = child;
	MUST(await(delay_hits() == nr_children));
	shared->step = 1;
	MUST(in_user ? await(shared->step == 2) : readable(60000));
	return child;
}

static void attach(pid_t child)
{
	MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, child, NULL));
}

static void open_session(u32 nr_records)
{
	fd = must_enable(must_open(.period = PERIOD, .nr_records = nr_records));
}

/* Empties the pipe once, when there is something. Returns the number of bytes. */
static size_t drain(void)
{
	static char buffer[PART];
	ssize_t n = readable(10) ? read(ends[0], buffer, sizeof(buffer)) : 0;

	MUST(n >= 0);
	return n;
}

/*
 * Empties the pipe until the call has had some @ticks, and leaves the child waiting in the call. A
 * few of the ticks are in the other thread, which sleeps and wakes.
 */
static bool drain_until(u64 ticks)
{
	u64 before = stats_now().system;
	size_t size = 0;

	while (stats_now().system < before + 2 * ticks && size < MANY * PART / 2)
		size += drain();
	return size < MANY * PART / 2;
}

static bool waits_for_lock(pid_t child)
{
	return task_state(child) == 'D';
}

/* Empties the pipe until nothing more comes for a while. */
static void drain_all(void)
{
	while (drain())
		;
}

/* Makes a child in a call that has had some @ticks, whose records wait for mmap_lock. */
static pid_t spawn_in_call(u32 nr_records, u64 ticks)
{
	pid_t child = spawn_busy(false);

	open_session(nr_records);
	attach(child);
	MUST(drain_until(ticks));
	return child;
}

TEST_F(complete, records_of_a_call_are_completed_when_it_returns)
{
	pid_t child = spawn_in_call(ENOUGH, TICKS);
	const struct profil_record *first = NULL;
	unsigned int same = 0;
	struct profil_stats s;

	/* The child is in the call, and has no other records. */
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0U, nr);
	EXPECT_TRUE(await((drain_all(), waits_for_lock(child))));
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0U, nr);
	delay_release();
	EXPECT_TRUE(await(shared->step == 2 && !read_all() && nr >= TICKS));
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	for_each_record(r) {
		if (!(r->flags & PROFIL_RECORD_SYSTEM) || !(r->flags & PROFIL_RECORD_MAPPED))
			continue;
		if (!first)
			first = r;
		if (r->pc != first->pc)
			continue;
		same++;
		EXPECT_EQ(first->start, r->start);
		EXPECT_EQ(0, strcmp(path_of(first), path_of(r)));
	}
	EXPECT_LE(TICKS, same);
	EXPECT_EQ(0U, records_where(r, !(r->flags & (PROFIL_RECORD_MAPPED | without_pc))));
}

TEST_F(complete, record_of_a_loop_waits_for_the_lock)
{
	pid_t child = spawn_busy(true);
	u64 ticks = cpu_ticks(child);
	struct profil_stats s;

	/* Then it is in the loop. */
	ASSERT_TRUE(await(cpu_ticks(child) >= ticks + 2));
	open_session(ENOUGH);
	attach(child);
	EXPECT_TRUE(await(waits_for_lock(child)));
	EXPECT_LE(1U, stats_now().outside);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0U, nr);
	delay_release();
	EXPECT_TRUE(await(!read_all() && nr));
	EXPECT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	EXPECT_LE(1U, records_where(r, r->flags & PROFIL_RECORD_MAPPED &&
				    in_loop(r, addr(loops_text), 1)));
}

TEST_F(complete, records_of_a_call_can_be_read_when_the_session_is_off)
{
	pid_t child = spawn_in_call(ENOUGH, TICKS);
	struct profil_stats s;

	EXPECT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_LE(TICKS, s.outside);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	EXPECT_LE(TICKS, records_where(r, r->flags & PROFIL_RECORD_PENDING));
	for_each_record(r) {
		EXPECT_NE(0U, r->pc);
		EXPECT_EQ(0U, r->flags & PROFIL_RECORD_MAPPED);
	}
	/* The call returns after that, and the slots are free again. */
	nr = 0;
	EXPECT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(drain_until(TICKS));
	EXPECT_TRUE(await((drain_all(), waits_for_lock(child))));
	delay_release();
	EXPECT_TRUE(await(!read_all() && nr >= TICKS));
	EXPECT_EQ(0U, records_where(r, r->flags & PROFIL_RECORD_PENDING));
}

/*
 * Reads until another child has left @n complete records. With PREEMPT_RT, these need task work,
 * for which there may be no room: then they are pending.
 */
static bool another_leaves_complete_records(unsigned int n)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	pid_t other = SPAWN(!loop_for_ever((void *)2));
	unsigned int done = 0, i = nr;

	attach(other);
	while (done < n && poll(&polled, 1, 60000) > 0 && !read_all())
		for (; i < nr; i++)
			done += records[i]->pid == other &&
				(records[i]->flags & PROFIL_RECORD_MAPPED || preempt_rt());
	killed(other);
	return done >= n;
}

/* The call of the first child uses up all slots. The second child still leaves complete records. */
TEST_F(complete, call_does_not_use_up_the_ring)
{
	spawn_in_call(FEW, 2 * FEW);
	EXPECT_LT(0U, stats_now().dropped_record);
	EXPECT_TRUE(another_leaves_complete_records(4 * FEW));
	EXPECT_LE(FEW / 2U, records_where(r, r->flags & PROFIL_RECORD_PENDING));
}

/* There are as many slots as tasks that have had ticks in a call, and sleep in it. */
TEST_F(complete, sleeping_tasks_do_not_use_up_the_ring)
{
	open_session(BUSY);
	for (unsigned int i = 0; i < BUSY; i++) {
		attach(spawn_busy(false));
		EXPECT_TRUE(drain_until(4));
		EXPECT_EQ(0, read_all());
	}
	EXPECT_TRUE(another_leaves_complete_records(4 * BUSY));
}

/* As many tasks as there are slots have left user mode, and wait for mmap_lock in task work. */
TEST_F(complete, tasks_that_wait_for_the_lock_do_not_use_up_the_ring)
{
	open_session(BUSY);
	for (unsigned int i = 0; i < BUSY; i++) {
		attach(spawn_busy(true));
		EXPECT_TRUE(await((read_all(), waits_for_lock(children[i]))));
	}
	EXPECT_TRUE(another_leaves_complete_records(4 * BUSY));
	EXPECT_LE(1U, records_where(r, r->flags & PROFIL_RECORD_PENDING));
}

/* The child cannot exit without mmap_lock, but it does not wait for its records. */
TEST_F(complete, records_of_a_killed_task_do_not_wait_for_the_lock)
{
	pid_t child = spawn_in_call(ENOUGH, TICKS);
	struct profil_stats s;

	kill(child, SIGKILL);
	EXPECT_TRUE(await(!read_all() && nr >= TICKS));
	EXPECT_LE(TICKS, records_where(r, r->flags & (PROFIL_RECORD_PENDING | without_pc)));
	delay_release();
	EXPECT_EQ(128 + SIGKILL, status_of(child));
	nr_children = 0;
	EXPECT_TRUE(await(read_all() == 1));
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(s.outside, nr);
}

/* The fixture checks the references to the module, while the child is still in the call. */
TEST_F(complete, descriptor_can_be_closed_during_a_call)
{
	spawn_in_call(ENOUGH, TICKS);
	close_session();
	EXPECT_TRUE(await(module_users() == self->users));
	EXPECT_TRUE(await((drain_all(), shared->step == 2)));
}

/* Until the child has mmap_lock, it is in a function of the module, which cannot be unloaded. */
TEST_F(complete, descriptor_can_be_closed_while_a_task_completes_its_records)
{
	pid_t child = spawn_in_call(ENOUGH, TICKS);

	EXPECT_TRUE(await((drain_all(), waits_for_lock(child))));
	close_session();
	EXPECT_TRUE(await(module_users() == self->users + 1));
	EXPECT_EQ(1, shared->step);
	delay_release();
	EXPECT_TRUE(await(shared->step == 2 && module_users() == self->users));
}

/* The child keeps the ring of the session in use, but not its unwind tables. */
TEST_F(complete, tables_are_freed_while_a_task_completes_its_records)
{
	const struct profil_unwind_rule rule = { .kind = PROFIL_UNWIND_OUTERMOST };
	pid_t child = spawn_busy(true);
	long long before = usage().areas;
	int err;

	fd = must_open(.period = PERIOD, .nr_records = FEW, .stack_depth = DEPTH);
	EXPECT_EQ(before + 1, usage().areas);
	err = unwind_give(fd, loops_text, rule);
	SKIP_IF(err == -EOPNOTSUPP, "there are no unwind tables here");
	ASSERT_EQ(0, err);
	EXPECT_EQ(before + 2, usage().areas);
	attach(child);
	must_enable(fd);
	EXPECT_TRUE(await(waits_for_lock(child)));
	close_session();
	EXPECT_TRUE(await(module_users() == self->users + 1));
	EXPECT_TRUE(await(usage().areas == before + 1));
	EXPECT_TRUE(waits_for_lock(child));
	delay_release();
	EXPECT_TRUE(await(usage().areas == before));
}

TEST_F(complete, module_can_be_unloaded_during_a_call)
{
	const char *stays = module_stays();
	int number = device_fd();

	SKIP_IF(stays, "%s", stays);
	spawn_in_call(ENOUGH, TICKS);
	close_session();
	device_close();
	EXPECT_TRUE(await(!module_unload()));
	EXPECT_TRUE(await((drain_all(), shared->step == 2)));
	delay_release();
	EXPECT_EQ(0, module_load(""));
	EXPECT_TRUE(await(!device_reopen(number)));
	self->users = module_users();
}

/* ---- mappings that change ---- */

static void *map_and_unmap(void *unused)
{
	while (!enough) {
		char *p = map_private(1 << 20);

		for (unsigned int i = 0; i < 1 << 20; i += PAGE)
			p[i] = 1;
		munmap(p, 1 << 20);
	}
	return unused;
}

FIXTURE(changing) {
};

FIXTURE_SETUP(changing)
{
}

FIXTURE_TEARDOWN(changing)
{
}

FIXTURE_VARIANT(changing) {
	u32 period, stack_depth;
};

FIXTURE_VARIANT_ADD(changing, at_the_tick) { 0, 0 };
FIXTURE_VARIANT_ADD(changing, with_a_clock) { PERIOD, 0 };
FIXTURE_VARIANT_ADD(changing, with_stacks) { PERIOD, DEPTH };

/* Most of the time, mmap_lock is taken, and ticks cannot look up mappings. */
TEST_F(changing, mappings_are_known_in_all_threads)
{
	struct profil_stats s;
	unsigned int unknown;

	fd = must_open(.period = variant->period, .nr_records = ENOUGH,
		       .stack_depth = variant->stack_depth);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	for (unsigned int i = 0; i < 6; i++)
		start_beside(i % 2 ? run_loop : map_and_unmap, i % 4);
	ASSERT_EQ(0, descriptor_enable(fd));
	/* Reading until the ring is empty might not end, since six threads fill it. */
	EXPECT_TRUE(await(stats_now().outside >= 250));
	stop_beside();
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	unknown = records_where(r, !(r->flags & (PROFIL_RECORD_MAPPED | without_pc)));
	TH_LOG("%u records, %u without mapping", nr, unknown);
	EXPECT_GE(nr / 100, unknown);
}

TEST_HARNESS_MAIN
