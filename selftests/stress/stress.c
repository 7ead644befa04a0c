// SPDX-License-Identifier: GPL-2.0
/*
 * All actions at the same time and at random. At the end nothing of them is left in the kernel.
 *
 * The run consists of rounds. In each, some processes with several threads do random actions: they
 * start and stop sessions of all kinds, add and remove ranges and targets, map and unmap memory
 * under the buffers, fork, call exec, exit and are killed. At the end of a round all of them are
 * killed. Whenever a process gets statistics, of any session and at any time, it checks that they
 * add up. In each round, and sometimes in between, a new program profiles itself and its child
 * during all this, and checks that every hit is in the expected counter ("calm" process).
 *
 * PROFIL_STRESS_SECONDS (60) is the length of the run. On a slow machine it is longer: it continues
 * until each kind of action has succeeded. PROFIL_STRESS_SEED is the seed. The same seed gives the
 * same decisions, but not the same races.
 *
 * Threads of a process race on purpose, also for memory and descriptors that they share. Therefore
 * buffers are at fixed addresses, and descriptors have fixed numbers: a descriptor is replaced, but
 * never closed and reused for another purpose.
 */
#include "kselftest_harness.h"

#include <poll.h>
#include <sys/sysinfo.h>

#include "crowd.h"
#include "failures.h"
#include "faults.h"
#include "loop.h"
#include "record.h"
#include "send.h"
#include "usage.h"

#define SOCKET_FD	90	/* both ends of a socket that passes descriptors */

#define MAX_RECORDS	1000U
#define STACK_DEPTH	127U
#define MAX_DEPTH	3U
#define CROWD		150U	/* threads of all processes */
#define PIDS		64U

/* Shared by all processes. */
struct shared {
	atomic_uint stop;		/* the round is over */
	unsigned int crowd;		/* limit on the number of threads in the system */
	atomic_uint busy;		/* a process works on all memory, see act_memory() */
	struct failures failures;
	atomic_int pids[PIDS];		/* of some processes and threads, which may be gone */
	atomic_ullong spaces[PIDS];	/* their address spaces, which may be gone */
	atomic_ullong done[64];		/* how often each action succeeded */
	atomic_ullong tried[64];
	atomic_int error[64];		/* the last errno of each action */
	atomic_ullong answers;		/* statistics that were checked */
	atomic_ullong ended[8];		/* those of sessions that had ended, by reason */
	atomic_ullong hits;
	atomic_ullong dropped;
	atomic_ullong unfollowed;
	atomic_ullong records;
	atomic_ullong calm;		/* calm processes that found every hit where expected */
};

static struct shared *shared;

static u32 seed_of_run, seconds_of_run;

#define fail(...)	failures_note(&shared->failures, __VA_ARGS__)

/*
 * Checks of statistics and other results
 */

static int checked(int err, const char *call)
{
	switch (err < 0 ? -err : 0) {
	case 0:
	case EINVAL:
	case EFAULT:
	case ENOMEM:
	case EPERM:
	case EBUSY:
	case ESRCH:
	case ENODEV:
	case EMFILE:
	case ENFILE:
	case EBADF:	/* no session has been put there yet */
		return err;
	default:
		fail("%s: errno %d", call, -err);
		return err;
	}
}

static int checked_stats(int err, const char *call, const struct profil_stats *s)
{
	const char *wrong;

	if (checked(err, call))
		return err;
	shared->answers++;
	shared->hits += s->hit;
	shared->dropped += s->dropped;
	shared->unfollowed += s->unfollowed;
	wrong = wrong_stats(s);
	if (wrong)
		fail("%s: %s", call, wrong);
	else if (s->state == PROFIL_STATE_ENDED)
		shared->ended[s->end]++;
	return 0;
}

/*
 * Checks statistics of the caller's own session: after its end no memory is locked. For a session
 * of another process, a worker may not have uncharged the memory yet.
 */
static int checked_own_stats(int err, const char *call, const struct profil_stats *s)
{
	err = checked_stats(err, call, s);
	if (!err && s->state == PROFIL_STATE_ENDED && s->locked)
		fail("%s: ended for reason %u, and %llu bytes locked", call, s->end, s->locked);
	return err;
}

/*
 * Buffers
 */

static int act_map(struct actor *a)
{
	enum memory kind = ONE_OF(a, enum memory, ANONYMOUS, ANONYMOUS, ANONYMOUS, HUGE, SHARED,
				  MEMFD, MEMFD_PRIVATE, FORMER);

	return slot_map(a, one_in(a, 20) ? READ_ONLY : kind, any(a, SLOTS), 2);
}

static int any_cloexec(struct actor *a)
{
	return one_in(a, 4) ? 0 : O_CLOEXEC;
}

/*
 * Page faults in a slot wait for a userfaultfd that nobody reads, until another thread replaces it.
 */
static int act_userfault(struct actor *a)
{
	unsigned int i = any(a, SLOTS);
	int fd;

	if (one_in(a, 2))
		return close(FAULT_FD + i) ? -errno : 0;
	fd = missing_pages(SLOT(i), SLOT_SIZE, O_NONBLOCK);
	return fd < 0 ? fd : move_fd(fd, FAULT_FD + i, any_cloexec(a));
}

/*
 * Ranges: one for the text of a loop, or one for all text
 */

#define MAX_RANGES 4U

static u32 some_ranges(struct actor *a, struct profil_range *ranges)
{
	u32 first = any(a, MAX_RANGES), n = any(a, MAX_RANGES - first + 1), i;

	for (i = 0; i < n; i++) {
		u32 loop = (first + i) * LOOPS / MAX_RANGES;
		char *buffer = any_slot(a) + any(a, SLOT_PAGES) * PAGE + any(a, 8) * 8;

		ranges[i] = range_of(addr(loops_text) + LOOP_SIZE * loop, loop_at(loop + 1), buffer,
				     1 + any(a, one_in(a, 8) ? 20000 : 600),
				     ONE_OF(a, u32, 2, 4, 8));
		if (one_in(a, 4))
			ranges[i].scale = 0;
		if (one_in(a, 40))
			ranges[i].nr_counters = 0;
	}
	if (n == 1 && one_in(a, 2)) {
		ranges[0].start = 0;
		ranges[0].offset = 0;
		ranges[0].end = ~0ULL;
		ranges[0].scale = 0;
	}
	return n;
}

static u32 some_modes(struct actor *a)
{
	return 1 + any(a, 3);
}

/* Returns 0 for the scheduler's tick, or the period of a clock. */
static u64 some_period(struct actor *a)
{
	return ONE_OF(a, u64, 0, 0, 50000, 1000000, 200000000);
}

/*
 * Classic sessions
 */

static int act_start(struct actor *a)
{
	struct profil_range ranges[MAX_RANGES];
	struct profil_start start = {
		.size = sizeof(start),
		.flags = one_in(a, 2) ? PROFIL_START_REPLACE : 0,
		.scope = any(a, 2),
		.modes = some_modes(a),
		.nr_ranges = some_ranges(a, ranges),
		.ranges = addr(ranges),
		.period = some_period(a),
	};

	if (start.period && one_in(a, 2))
		start.flags |= PROFIL_START_JITTER;
	return checked(device_ioctl(PROFIL_IOC_START, &start), "START");
}

static int act_stop(struct actor *a)
{
	struct profil_stats s;

	if (one_in(a, 4))
		return checked(session_stop(any(a, 2), NULL), "STOP");
	return checked_own_stats(session_stop(any(a, 2), &s), "STOP", &s);
}

static int act_stats(struct actor *a)
{
	struct profil_stats s;

	return checked_own_stats(session_stats(any(a, 2), &s), "STATS", &s);
}

static int act_query(struct actor *a)
{
	struct profil_query q = { .size = sizeof(q) };
	int fd, err;

	if (one_in(a, 2))
		return checked(device_query(&q), "QUERY");
	/* Opens the device as the library does, whatever descriptors are open. */
	fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = ioctl(fd, PROFIL_IOC_QUERY, &q) ? -errno : 0;
	close(fd);
	return checked(err, "QUERY");
}

/*
 * Sessions with a descriptor
 */

/* The range that this process added last to each session. */
static struct profil_range last_range[SESSIONS];

static u64 any_space(struct actor *a)
{
	switch (any(a, 4)) {
	case 0:
		return shared->spaces[any(a, PIDS)];
	case 1:
		return any(a, 4) - 1ULL;
	default:
		return PROFIL_SPACE_SELF;
	}
}

static int open_session(struct actor *a, u32 i)
{
	struct profil_open open = {
		.modes = some_modes(a),
		.fork = any(a, 2),
		.exec = any(a, 2),
		.nr_records = ONE_OF(a, u32, 0, 1, 16, MAX_RECORDS),
		.period = some_period(a),
	};
	int fd;

	if (open.nr_records && one_in(a, 2))
		open.stack_depth = any(a, STACK_DEPTH + 1);
	if (open.period && one_in(a, 2))
		open.flags = PROFIL_OPEN_JITTER;
	fd = descriptor_open_as(open);
	if (fd < 0)
		return checked(fd, "OPEN");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return move_fd(fd, SESSION_FD + i, any_cloexec(a));
}

static int act_open(struct actor *a)
{
	return open_session(a, any(a, SESSIONS));
}

static int act_dup(struct actor *a)
{
	return dup3(any_session(a), any_session(a), O_CLOEXEC) < 0 ? -errno : 0;
}

/* Sends a session to another process, or receives one, whose creator is another process. */
static int act_pass(struct actor *a)
{
	int fd;

	if (one_in(a, 2))
		return send_fd(SOCKET_FD, any_session(a));
	fd = receive_fd(SOCKET_FD + 1);
	return fd < 0 ? -EAGAIN : move_fd(fd, any_session(a), any_cloexec(a));
}

static int act_attach(struct actor *a)
{
	pid_t pid = one_in(a, 3) ? shared->pids[any(a, PIDS)] : 0;
	u64 space = 0;
	int err;

	err = checked(descriptor_attach(any_session(a), any(a, 2), pid, &space), "ATTACH");
	if (!err)
		shared->spaces[any(a, PIDS)] = space;
	return err;
}

static int add_ranges(struct actor *a, u32 i, u64 space)
{
	struct profil_range ranges[MAX_RANGES];
	u32 n = some_ranges(a, ranges);
	int err = checked(descriptor_add(SESSION_FD + i, space, ranges, n), "ADD");

	if (!err)
		last_range[i] = ranges[0];
	return err;
}

static int act_add(struct actor *a)
{
	return add_ranges(a, any(a, SESSIONS), any_space(a));
}

static int act_remove(struct actor *a)
{
	u64 start = loop_at(any(a, LOOPS)), end = start + any(a, 8) * LOOP_SIZE;
	int n;

	if (one_in(a, 2)) {
		start = 0;
		end = ~0ULL;
	}
	n = checked(descriptor_remove(any_session(a), any_space(a), start, end), "REMOVE");
	return n > 0 ? 0 : n ?: -ENOENT;
}

static int act_enable(struct actor *a)
{
	return checked(descriptor_enable(any_session(a)), "ENABLE");
}

static int act_disable(struct actor *a)
{
	struct profil_stats s;

	if (one_in(a, 4))
		return checked(descriptor_disable(any_session(a), NULL), "DISABLE");
	return checked_stats(descriptor_disable(any_session(a), &s), "DISABLE", &s);
}

static int act_descriptor_stats(struct actor *a)
{
	struct profil_stats s;

	return checked_stats(descriptor_stats(any_session(a), &s), "STATS of a descriptor", &s);
}

static int act_snapshot(struct actor *a)
{
	u32 n = any(a, 3), i = any(a, SESSIONS);
	struct profil_copy copies[2];
	struct profil_stats s;
	u64 copy[64];

	for (u32 j = 0; j < n; j++)
		copies[j] = (struct profil_copy) {
			.from = last_range[i].buffer,
			.to = one_in(a, 4) ? addr(SLOT(0)) : addr(copy),
			.bytes = 8 * (1 + any(a, 8)),
		};
	return checked_stats(descriptor_snapshot(SESSION_FD + i,
						 one_in(a, 2) ? PROFIL_SNAPSHOT_RESET : 0,
						 copies, n, &s), "SNAPSHOT", &s);
}

static void check_stack(const struct profil_record *r)
{
	const struct profil_stack *stack = stack_of(r);

	for (u32 i = 0; i < 2 + stack->nr; i++) {
		u64 address = i < 2 ? stack->innermost[i] : stack->addresses[i - 2];

		/* The kernel's addresses have ones there. */
		if (address >> 56)
			fail("read: %#lx in a stack", address);
	}
}

static void check_records(const char *at, ssize_t n)
{
	const struct profil_record *r;

	for (; n > 0; at += r->size, n -= r->size) {
		r = (const void *)at;
		if (!well_formed(r, n)) {
			fail("read: a malformed record in a buffer of %zd", n);
			return;
		}
		if (r->flags & PROFIL_RECORD_STACK)
			check_stack(r);
		if ((r->flags & PROFIL_RECORD_MAPPED) && (r->pc < r->start || r->pc >= r->end))
			fail("read: pc %llx in [%llx, %llx)", r->pc, r->start, r->end);
		if (!r->time)
			fail("read: a record without a time");
		shared->spaces[r->pc / 16 % PIDS] = r->space;
		shared->records++;
	}
}

static int act_read(struct actor *a)
{
	int fd = any_session(a);
	char records[8192] __attribute__((aligned(8)));
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (one_in(a, 2) && poll(&p, 1, any(a, 3)) < 0)
		return -errno;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	n = read(fd, records, 6000 + any(a, 2000));
	if (n < 0) {
		if (errno != EAGAIN && errno != EBADF && errno != EINVAL)
			fail("read: errno %d", errno);
		return -errno;
	}
	check_records(records, n);
	return n ? 0 : -ENODATA;
}

/*
 * Actions: CPU time, CPU affinity, RLIMIT_MEMLOCK, reclaim
 */

static int act_run(struct actor *a)
{
	loop_run(any(a, LOOPS), 1UL << (10 + any(a, 12)));
	return 0;
}

static int act_system(struct actor *a)
{
	for (u32 n = any(a, 2000); n; n--)
		syscall(SYS_getppid);
	return 0;
}

static int act_sleep(struct actor *a)
{
	if (one_in(a, 2))
		return sched_yield();
	pause_ns(any(a, 3000000));
	return 0;
}

static int act_clear_refs(struct actor *a)
{
	return file_write("/proc/self/clear_refs", one_in(a, 2) ? "1" : "4");
}

/*
 * Actions on all memory of the machine. Only one process at a time does these, because they take
 * long and cannot be interrupted. Compaction is not among them (see endure.c): on an emulated CPU,
 * clearing the pages takes so long that RCU reports a stall.
 */
static int act_memory(struct actor *a)
{
	int err;

	(void)a;
	if (atomic_exchange(&shared->busy, 1))
		return -EAGAIN;
	err = file_write("/proc/sys/vm/drop_caches", "1");
	shared->busy = 0;
	return err;
}

/*
 * Threads and processes
 */

static void act(struct actor *a, unsigned int actions);

static bool crowded(void)
{
	struct sysinfo info;

	return sysinfo(&info) || info.procs >= shared->crowd;
}

static void show_pid(struct actor *a)
{
	shared->pids[any(a, PIDS)] = syscall(SYS_gettid);
}

static void *thread(void *actor)
{
	struct actor *a = thread_actor(actor);

	show_pid(a);
	act(a, any(a, 60));
	/* Sessions of this thread stay on. */
	return NULL;
}

static int act_thread(struct actor *a)
{
	return crowded() ? -EAGAIN : actor_thread(a, thread);
}

static int act_exec(struct actor *a)
{
	if (a->depth >= MAX_DEPTH)
		return -EAGAIN;
	return exec_self(a, one_in(a, 2) ? "world" : "nothing", a->depth + 1);
}

static void __attribute__((noreturn)) act_randomly(struct actor *a);

static pid_t kids[16];

static void __attribute__((noreturn)) child(struct actor *a)
{
	show_pid(a);
	if (one_in(a, 3))
		act_attach(a);
	switch (any(a, 6)) {
	case 0:
		break;
	case 1:
		act_run(a);
		act_stats(a);
		break;
	case 2:
		exec_self(a, "calm", a->depth + 1);
		break;
	case 3:
		exec_self(a, "nothing", a->depth + 1);
		break;
	default:
		act_randomly(a);
	}
	_exit(0);
}

static int act_fork(struct actor *a)
{
	struct actor b = another(a, a->depth + 1);
	pid_t pid;

	if (a->depth >= MAX_DEPTH || crowded())
		return -EAGAIN;
	pid = fork();
	if (!pid)
		child(&b);
	if (pid < 0)
		return -errno;
	kids[any(a, ARRAY_SIZE(kids))] = pid;
	return 0;
}

/* The child of clone() with CLONE_VM. It shares errno with the thread that created it. */
static int vm_child(void *actor)
{
	int (*const acts[])(struct actor *a) = {
		act_start, act_stop, act_attach, act_descriptor_stats, change_slot, act_run,
		act_run,
	};
	struct actor *a = actor;

	for (u32 n = any(a, 4); n; n--)
		acts[any(a, ARRAY_SIZE(acts))](a);
	if (one_in(a, 3))
		exec_self(a, "nothing", a->depth + 1);
	_exit(0);
}

/* vfork(), and clone() with unusual flags. Waits for the child, because they share errno. */
static void *clone_thread(void *actor)
{
	const size_t size = 16 * PAGE;
	struct actor *a = thread_actor(actor);
	int flags = ONE_OF(a, int, CLONE_VFORK, CLONE_VFORK | CLONE_FILES, 0, CLONE_FILES);
	char *stack = map_private(size);
	pid_t pid;

	pid = clone(vm_child, stack + size, CLONE_VM | SIGCHLD | flags, a);
	if (pid > 0) {
		kids[any(a, ARRAY_SIZE(kids))] = pid;
		waitpid(pid, NULL, __WALL);
	}
	munmap(stack, size);
	return NULL;
}

static int act_clone(struct actor *a)
{
	return crowded() ? -EAGAIN : actor_thread(a, clone_thread);
}

/* Forks a child that waits in read() until the data ends or SIGALRM kills it. */
static int act_wait_for_records(struct actor *a)
{
	struct itimerval when = { .it_value = { .tv_usec = 1000 + any(a, 30000) } };
	char records[8192] __attribute__((aligned(8)));
	int fd = any_session(a);
	pid_t pid;
	ssize_t n;

	if (crowded())
		return -EAGAIN;
	pid = fork();
	if (!pid) {
		setitimer(ITIMER_REAL, &when, NULL);
		fcntl(fd, F_SETFL, 0);
		do {
			n = read(fd, records, sizeof(records));
			if (n > 0)
				check_records(records, n);
		} while (n > 0);
		_exit(0);
	}
	return pid < 0 ? -errno : 0;
}

static int act_kill(struct actor *a)
{
	pid_t pid = kids[any(a, ARRAY_SIZE(kids))];

	if (pid <= 0)
		return -ESRCH;
	return kill(pid, ONE_OF(a, int, SIGKILL, SIGKILL, SIGKILL, SIGSTOP, SIGCONT)) ? -errno : 0;
}

static int act_reap(struct actor *a)
{
	pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);

	(void)a;
	return pid > 0 ? 0 : -ECHILD;
}

static int act_exit(struct actor *a)
{
	if (one_in(a, 2))
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* All actions and how often each is chosen. */
static const struct action {
	u32 weight;
	const char *name;
	int (*act)(struct actor *a);
	enum { ANYONE, ROOT, NOBODY } succeeds;	/* for whom it must succeed */
} actions[] = {
	{ 40, "map", act_map, ANYONE },
	{ 30, "change mapping", change_slot, ANYONE },
	{ 40, "advise", advise_slot, ANYONE },
	{ 4, "userfault", act_userfault, ROOT },
	{ 60, "start", act_start, ANYONE },
	{ 30, "stop", act_stop, ANYONE },
	{ 20, "stats", act_stats, ANYONE },
	{ 5, "query", act_query, ANYONE },
	{ 30, "open", act_open, ANYONE },
	{ 10, "close", act_close, ANYONE },
	{ 10, "dup", act_dup, ANYONE },
	{ 20, "pass", act_pass, ANYONE },
	{ 60, "attach", act_attach, ANYONE },
	{ 60, "add", act_add, ANYONE },
	{ 20, "remove", act_remove, ANYONE },
	{ 40, "enable", act_enable, ANYONE },
	{ 10, "disable", act_disable, ANYONE },
	{ 20, "descriptor's stats", act_descriptor_stats, ANYONE },
	{ 30, "snapshot", act_snapshot, ANYONE },
	{ 30, "read", act_read, ANYONE },
	{ 80, "run", act_run, ANYONE },
	{ 20, "system", act_system, ANYONE },
	{ 20, "sleep", act_sleep, ANYONE },
	{ 10, "move", run_on_any_cpu, ANYONE },
	{ 10, "limit", act_limit, ANYONE },
	{ 5, "clear_refs", act_clear_refs, ANYONE },
	{ 3, "memory", act_memory, ROOT },
	{ 20, "thread", act_thread, ANYONE },
	{ 30, "fork", act_fork, ANYONE },
	{ 10, "clone", act_clone, ANYONE },
	{ 5, "wait for records", act_wait_for_records, ANYONE },
	{ 10, "kill", act_kill, ANYONE },
	{ 30, "reap", act_reap, ANYONE },
	{ 4, "exec", act_exec, NOBODY },
	{ 3, "exit", act_exit, NOBODY },
};

static void act(struct actor *a, unsigned int n)
{
	int err;
	u32 i;

	while (n-- && !shared->stop) {
		i = ANY_ROW(a, actions);
		shared->tried[i]++;
		err = actions[i].act(a);
		if (err)
			shared->error[i] = -err;
		else
			shared->done[i]++;
	}
}

/* Creates the buffers that actions need, and sessions that count in them. */
static void create_sessions(struct actor *a)
{
	for (u32 n = 0; n < SLOTS; n++)
		act_map(a);
	for (u32 i = 0; i < SESSIONS; i++) {
		open_session(a, i);
		checked(descriptor_attach(SESSION_FD + i, any(a, 2), 0, NULL), "ATTACH");
		add_ranges(a, i, PROFIL_SPACE_SELF);
		add_ranges(a, i, PROFIL_SPACE_SELF);
		checked(descriptor_enable(SESSION_FD + i), "ENABLE");
	}
	act_start(a);
}

/* Does random actions until this process has done enough. */
static void act_randomly(struct actor *a)
{
	struct profil_stats s;

	show_pid(a);
	/* A child of clone() may share the variable of device_fd(), but not the descriptor. */
	device_fd();
	if (a->depth == 0 || one_in(a, 2))
		create_sessions(a);
	for (u32 n = any(a, 4); n; n--)
		act_thread(a);
	act(a, 100 + any(a, 400));

	switch (any(a, 4)) {
	case 0:
		/*
		 * The other threads continue. pthread_exit() allows that only in a function that
		 * main() called.
		 */
		syscall(SYS_exit, 0);
		break;
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		for (u32 i = 0; i < SESSIONS; i++)
			if (!checked_stats(descriptor_disable(SESSION_FD + i, &s), "DISABLE", &s))
				close(SESSION_FD + i);
		break;
	default:
		break;
	}
	_exit(0);
}

/*
 * The calm process: during all this, it checks that everything that it counts is right
 */

static u32 page[PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;

/* Returns the hits of statistics, which a calm process must get. */
static u64 calm_hits(int err, const char *call, const struct profil_stats *s)
{
	if (checked_stats(err, call, s))
		fail("calm: %s: errno %d", call, -err);
	return s->hit;
}

static void check_hits(const char *of, u64 hits, u64 counted, u32 end)
{
	if (hits != counted)
		fail("calm: %lu hits of %s, counted %lu (end %u)", hits, of, counted, end);
}

/* In the child of a calm process: checks that its hits have been added to the counters. */
static void __attribute__((noreturn)) calm_child(void)
{
	u64 sum = counters_sum(page, 4, LOOPS);
	struct profil_stats s;

	loop_run(1, 2 * LOOP_BURST);
	sum += calm_hits(session_stop(PROFIL_SCOPE_PROCESS, &s), "STOP in a child", &s);
	check_hits("a child", sum, counters_sum(page, 4, LOOPS), s.end);
	_exit(0);
}

/* Returns false if a session could not start, for which only a lack of memory is a reason. */
static bool calm_started(int err, const char *call)
{
	if (checked(err, call) && err != -ENOMEM)
		fail("calm: %s: errno %d", call, -err);
	return !err;
}

static void calm_wait(pid_t pid)
{
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void calm_classic(struct actor *a)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;
	pid_t pid;
	u64 hit;

	memset(page, 0, sizeof(page));
	if (!calm_started(session_start_modes(PROFIL_SCOPE_PROCESS, some_modes(a), &range, 1),
			  "START"))
		return;
	loop_run(0, 2 * LOOP_BURST);
	pid = fork();
	if (!pid)
		calm_child();
	loop_run(2, 2 * LOOP_BURST);
	calm_wait(pid);
	hit = calm_hits(session_stop(PROFIL_SCOPE_PROCESS, &s), "STOP", &s);
	check_hits("a classic session", hit, counters_sum(page, 4, LOOPS), s.end);
}

static void calm_descriptor(struct actor *a, u32 on_fork)
{
	struct profil_range range = range_of_loops(page, 4);
	u32 copied[LOOPS];
	struct profil_copy copy = { addr(page), addr(copied), sizeof(copied) };
	u64 hit = 0, counted = 0;
	struct profil_stats s;
	pid_t pid;
	int fd;

	memset(page, 0, sizeof(page));
	fd = checked(descriptor_open(some_modes(a), on_fork, any(a, 2), 0), "OPEN");
	if (fd < 0)
		return;
	if (!calm_started(descriptor_begin(fd, PROFIL_SCOPE_PROCESS, &range, 1),
			  "ATTACH, ADD or ENABLE")) {
		close(fd);
		return;
	}
	loop_run(0, LOOP_BURST);
	pid = fork();
	if (!pid) {
		loop_run(1, 2 * LOOP_BURST);
		_exit(0);
	}
	for (unsigned int i = 0; i < 10; i++) {
		loop_run(2, LOOP_BURST / 4);
		hit += calm_hits(descriptor_snapshot(fd, PROFIL_SNAPSHOT_RESET, &copy, 1, &s),
				 "SNAPSHOT", &s);
		counted += counters_sum(copied, 4, LOOPS);
		check_hits("snapshots", hit, counted, s.end);
	}
	calm_wait(pid);
	loop_run(2, LOOP_BURST / 4);
	hit += calm_hits(descriptor_disable(fd, &s), "DISABLE", &s);
	counted += counters_sum(page, 4, LOOPS);
	check_hits(on_fork ? "a shared session" : "a session", hit, counted, s.end);
	close(fd);
}

static void __attribute__((noreturn)) calm(struct actor *a)
{
	struct rlimit limit;
	u64 locked;

	close_range(SESSION_FD, LAST_FD, 0);
	if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &limit);
	}
	locked = pinned_bytes();
	if (locked)
		fail("a new program has %lu bytes locked", locked);
	calm_classic(a);
	calm_descriptor(a, any(a, 2));
	if (!await(!pinned_bytes()))
		fail("after all sessions %lu bytes are locked", pinned_bytes());
	shared->calm++;
	_exit(0);
}

/* The new program after exec; the program file is the same. */
static __attribute__((constructor)) void new_program(int argc, char **argv)
{
	struct actor a = { 0 };
	const char *what;

	if (!executed(argc, argv, &a, &what, &a.depth))
		return;
	shared = shared_map(sizeof(*shared));
	if (!strcmp(what, "world"))
		act_randomly(&a);
	if (!strcmp(what, "calm"))
		calm(&a);
	act_attach(&a);
	act_run(&a);
	_exit(0);
}

/*
 * Rounds
 */

#define WORLDS		4U
#define ROUND_ACTIONS	200U	/* minimum in a round */
#define MAX_GROUPS	256U	/* process groups of a round */

/* Kills all processes of a round. Returns true if none is left. */
static bool all_gone(const pid_t *groups, unsigned int n)
{
	pid_t pid;

	while (n--)
		kill(-groups[n], SIGKILL);
	do
		pid = waitpid(-1, NULL, WNOHANG | __WALL);
	while (pid > 0);
	return pid < 0;
}

/* Notes the processes of other groups, which do not die. */
static void note_what_is_left(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *process;
	char threads[400];
	pid_t pid;

	while (processes && (process = readdir(processes))) {
		pid = atoi(process->d_name);
		if (pid <= 0 || getpgid(pid) == getpgid(1) || getpgid(pid) <= getpgid(0))
			continue;
		threads_show(pid, threads, sizeof(threads));
		fail("still alive: %d:%s", pid, threads);
	}
	if (processes)
		closedir(processes);
}

/* Starts a process in its own group, which ends when this process ends. @calm: the calm process. */
static pid_t process_start(struct actor *a, bool calm)
{
	struct actor b = another(a, 0);
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	if (one_in(&b, 2))
		become_user(USER);
	if (one_in(&b, 4) || calm)
		exec_self(&b, "calm", 0);
	act_randomly(&b);
}

static u64 nr_tried(void)
{
	u64 n = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(actions); i++)
		n += shared->tried[i];
	return n;
}

static bool stress_round(struct actor *a)
{
	u64 end = now_ns() + 300000000ULL + any(a, 1200) * 1000000ULL;
	u64 tried = nr_tried() + ROUND_ACTIONS;
	pid_t groups[MAX_GROUPS], pid;
	unsigned int nr_groups = 0, worlds = 0, i;
	bool calm = true;	/* the first calm process runs */
	int sockets[2];

	shared->stop = 0;
	shared->busy = 0;
	for (i = 0; i < PIDS; i++)
		shared->pids[i] = getpid();
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sockets))
		return false;
	for (i = 0; i < 2; i++)
		move_fd(sockets[i], SOCKET_FD + i, 0);

	while (calm || ((now_ns() < end || nr_tried() < tried) && nr_groups < MAX_GROUPS)) {
		for (; worlds < WORLDS && nr_groups < MAX_GROUPS; worlds++) {
			pid = process_start(a, nr_groups == 0);
			if (pid < 0)
				return false;
			setpgid(pid, pid);
			groups[nr_groups++] = pid;
		}
		pause_ns(2000000 + any(a, 8000000));
		i = any(a, nr_groups);
		if (one_in(a, 30) && !(calm && i == 0))
			kill(-groups[i], SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) {
			for (i = 0; i < nr_groups; i++)
				worlds -= pid == groups[i];
			calm = calm && pid != groups[0];
		}
	}
	shared->stop = one_in(a, 2);
	close(SOCKET_FD);
	close(SOCKET_FD + 1);
	for (i = 0; i < 3; i++)
		if (await(all_gone(groups, nr_groups)))
			return true;
	note_what_is_left();
	return false;
}

/* Returns what must happen and has not happened yet, or NULL. */
static const char *missing(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(actions); i++)
		if (!shared->done[i] && (actions[i].succeeds == ANYONE ||
					 (actions[i].succeeds == ROOT && !geteuid())))
			return actions[i].name;
	if (!shared->hits)
		return "a hit";
	if (!shared->records)
		return "a record";
	if (!shared->calm)
		return "a calm process";
	return shared->ended[PROFIL_END_BUFFER] + shared->ended[PROFIL_END_CREATOR] ? NULL :
	       "an end by a buffer or a creator";
}

#define PATIENCE_NS	400000000000ULL

/* Runs rounds for @ns, and longer while something is missing(), unless @at_once. */
static bool stress_for(struct actor *a, u64 ns, bool at_once)
{
	u64 end = now_ns() + ns, latest = end + PATIENCE_NS;
	bool gone = true;

	while (gone && now_ns() < (at_once || !missing() ? end : latest) && !shared->failures.n)
		gone = stress_round(a);
	return gone;
}

FIXTURE(stress) {
	struct usage before;
	struct caches caches;
	struct actor actor;
	char ksm[16];
};

FIXTURE_SETUP(stress)
{
	struct sysinfo info;

	ASSERT_DEVICE();
	shared = shared_make(sizeof(*shared));
	seconds_of_run = number_from("PROFIL_STRESS_SECONDS", 60);
	seed_of_run = number_from("PROFIL_STRESS_SEED", now_ns() / 1000);
	self->actor.random = seed_of_run * 0x9e3779b97f4a7c15ULL | 1;
	TH_LOG("PROFIL_STRESS_SEED=%u PROFIL_STRESS_SECONDS=%u, on %ld CPUs", seed_of_run,
	       seconds_of_run, sysconf(_SC_NPROCESSORS_ONLN));
	if (geteuid())
		TH_LOG("left out, because not root: %s; not compared: %s",
		       "userfaultfd, KSM, dropped caches, processes of another user",
		       "pins, vmalloc areas, slab objects");
	file_exchange(KSM, "1", self->ksm, sizeof(self->ksm));
	self->before = usage();
	ASSERT_TRUE(module_is_built_in() || self->before.users > 0);
	ASSERT_EQ(0, sysinfo(&info));
	shared->crowd = info.procs + CROWD;

	/* This fills the kernel's own caches before memory use is compared. */
	ASSERT_TRUE(stress_for(&self->actor, 1000000000ULL * (1 + seconds_of_run / 4), true));
	self->before.percpu = LLONG_MAX / 2;
	expect_same_usage(_metadata, &self->before);
	self->before.percpu = usage().percpu;
	caches(&self->caches);
}

FIXTURE_TEARDOWN(stress)
{
	file_write(KSM, self->ksm);
}

static void show_what_was_done(struct __test_metadata *_metadata)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(actions); i++)
		TH_LOG("%s: %llu of %llu succeeded; last errno %d", actions[i].name,
		       shared->done[i], shared->tried[i], shared->error[i]);
	TH_LOG("statistics %llu, hits %llu, dropped %llu, unfollowed %llu, records %llu, calm %llu",
	       shared->answers, shared->hits, shared->dropped, shared->unfollowed, shared->records,
	       shared->calm);
	TH_LOG("ended by buffer %llu, memory %llu, limit %llu, creator %llu",
	       shared->ended[PROFIL_END_BUFFER], shared->ended[PROFIL_END_NOMEM],
	       shared->ended[PROFIL_END_LIMIT], shared->ended[PROFIL_END_CREATOR]);
}

TEST_F_TIMEOUT(stress, leaves_nothing_behind, 1200)
{
	EXPECT_TRUE(stress_for(&self->actor, 1000000000ULL * seconds_of_run, false)) {
		TH_LOG("a process does not die");
	}
	show_what_was_done(_metadata);
	EXPECT_NO_FAILURES(&shared->failures);

	expect_same_usage(_metadata, &self->before);
	expect_no_growth(_metadata, &self->caches);
	EXPECT_EQ(NULL, missing()) {
		TH_LOG("never happened or succeeded: %s", missing());
	}
}

TEST_HARNESS_MAIN
