/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * profil - execution time profile, counted by the kernel's scheduler tick
 *
 * The ABI of /dev/profil, a character device of the profil module.
 *
 * A *session* samples tasks at every scheduler *tick* that finds them running (or
 * of a faster clock of its own, see profil_start.period) and counts the sampled
 * user pc in *ranges* of text, each with its counters in a buffer of the caller.
 * There are two kinds:
 *
 *   classic     of the calling process or thread, without a descriptor: what
 *               profil() is made of. PROFIL_IOC_START to PROFIL_IOC_STOP.
 *   descriptor  made by PROFIL_IOC_OPEN, which returns a descriptor that *is* the
 *               session: closing its last copy ends it. For tools and runtimes:
 *               what it samples is attached to it, and ranges come and go while
 *               it counts.
 *
 * Any number of them may sample the same task at the same time; each counts for
 * itself. Each tick of a session ends in exactly one outcome:
 *
 *   hit         a counter went up by one
 *   outside     no range holds the pc, or no counter of its range is meant for it
 *   saturated   the counter was already full, and stays full
 *   dropped     the tick could not be counted; the statistics name the reason
 *
 * and hit + outside + saturated + dropped = ticks, at any time.
 *
 * The contract of every ioctl here
 * --------------------------------
 *
 * The argument is a pointer to a structure whose first member, size, holds the
 * size of that structure as the caller was compiled to know it. A longer
 * structure than the kernel knows is accepted if the bytes past what it knows
 * are zero; a shorter one is taken as if zeros followed. Results are written
 * back for no more than size bytes. The layout is the same for 32- and 64-bit
 * callers: pointers and addresses travel as __aligned_u64.
 *
 * A call that fails changes nothing (but see PROFIL_IOC_REMOVE): a session that was there
 * goes on.
 *
 *   ENOTTY      the command is not known
 *   E2BIG       nonzero bytes past what this kernel knows of the structure, or
 *               size above the page size
 *   EOPNOTSUPP  an unknown flag, or an unknown value of a known field
 *   EINVAL      understood, but wrong: size below the smallest that was ever
 *               valid, a reserved field that is not zero, values that contradict
 *               each other, a misaligned buffer, no session to stop
 *   EFAULT      memory: the argument or what it points to cannot be read or
 *               written, or a buffer is not mapped, not writable, or of a kind
 *               that must not be pinned (device memory; shared mappings of files
 *               that are written back). If another thread unmaps what a result
 *               is to be written to, after the call has begun, all else may have
 *               been done.
 *   ENOMEM      the kernel has no memory for it
 *   EPERM       limits and rights: RLIMIT_MEMLOCK does not allow to lock the
 *               buffers, the period is shorter than the caller may have, or the
 *               caller may not sample that target, have its session described, or
 *               change this session
 *   EBUSY       what is asked for is so already (a session is on, a target is
 *               attached), or so often that it can be no more (a target has
 *               profil_query.max_sessions), or the scheduler tick cannot be hooked
 *               at this time (sysctl kernel.ftrace_enabled is 0)
 *   ESRCH       no such process, thread or address space
 *   ENODEV      the session has ended by itself; see struct profil_stats
 *   EMFILE, ENFILE
 *               PROFIL_IOC_OPEN: no descriptor is free, or the process has as many
 *               sessions as may be (1024)
 *   EINTR       the caller was killed meanwhile; seen by nobody
 *
 * open() of the device fails with EACCES without the right to it; the device's
 * default mode lets any user profile itself.
 */
#ifndef _UAPI_LINUX_PROFIL_H
#define _UAPI_LINUX_PROFIL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PROFIL_DEVICE		"/dev/profil"

#define PROFIL_IOC_MAGIC	0xBF

/* Sizes are not encoded in the numbers: see size in each structure. */
#define PROFIL_IOC_QUERY	_IO(PROFIL_IOC_MAGIC, 0x00)
#define PROFIL_IOC_START	_IO(PROFIL_IOC_MAGIC, 0x01)
#define PROFIL_IOC_STOP		_IO(PROFIL_IOC_MAGIC, 0x02)
#define PROFIL_IOC_STATS	_IO(PROFIL_IOC_MAGIC, 0x03)	/* of both kinds */
#define PROFIL_IOC_OPEN		_IO(PROFIL_IOC_MAGIC, 0x04)
#define PROFIL_IOC_DESCRIBE	_IO(PROFIL_IOC_MAGIC, 0x0B)

/* On the descriptor of a session */
#define PROFIL_IOC_ATTACH	_IO(PROFIL_IOC_MAGIC, 0x05)
#define PROFIL_IOC_ADD		_IO(PROFIL_IOC_MAGIC, 0x06)
#define PROFIL_IOC_REMOVE	_IO(PROFIL_IOC_MAGIC, 0x07)
#define PROFIL_IOC_ENABLE	_IO(PROFIL_IOC_MAGIC, 0x08)
#define PROFIL_IOC_DISABLE	_IO(PROFIL_IOC_MAGIC, 0x09)
#define PROFIL_IOC_SNAPSHOT	_IO(PROFIL_IOC_MAGIC, 0x0A)

/**
 * enum profil_hook - How the scheduler tick is reached
 * @PROFIL_HOOK_NONE: Not hooked now: nobody has profiled for some minutes.
 * @PROFIL_HOOK_FTRACE: By ftrace.
 */
enum profil_hook {
	PROFIL_HOOK_NONE = 0,
	PROFIL_HOOK_FTRACE = 1
};

/* Bits of profil_query.features */
#define PROFIL_FEATURE_PROCESS		(1ULL << 0)	/* PROFIL_SCOPE_PROCESS */
#define PROFIL_FEATURE_THREAD		(1ULL << 1)	/* PROFIL_SCOPE_THREAD */
#define PROFIL_FEATURE_SYSTEM		(1ULL << 2)	/* PROFIL_MODE_SYSTEM */
#define PROFIL_FEATURE_FORK		(1ULL << 4)	/* sessions go on after fork */
#define PROFIL_FEATURE_DESCRIPTOR	(1ULL << 5)	/* PROFIL_IOC_OPEN and what follows */
#define PROFIL_FEATURE_RECORDS		(1ULL << 6)	/* struct profil_record */
#define PROFIL_FEATURE_CLOCK		(1ULL << 7)	/* profil_start.period */
#define PROFIL_FEATURE_PCS		(1ULL << 8)	/* PROFIL_RANGE_PCS; modes 0 of START */
#define PROFIL_FEATURE_DESCRIBE		(1ULL << 9)	/* PROFIL_IOC_DESCRIBE */

/**
 * struct profil_query - ioctl(PROFIL_IOC_QUERY)
 * @size: sizeof(struct profil_query).
 * @flags: Must be 0.
 * @tick_hz: Out: scheduler ticks per second of a busy CPU.
 * @hook: Out: enum profil_hook, the hook in place at this moment.
 * @tick_ns: Out: nanoseconds from one tick to the next.
 * @features: Out: PROFIL_FEATURE_* bits.
 * @widths: Out: the counter widths there are, a bitwise or of bytes (2|4|8).
 * @max_ranges: Out: most ranges for one address space in a session.
 * @max_granule: Out: largest granule, in bytes.
 * @max_step: Out: largest step.
 * @max_counters: Out: most counters of one range.
 * @max_records: Out: most records that a session can be asked to keep.
 * @max_sessions: Out: most sessions with a descriptor that can sample one task and that it, or
 *	its ancestor, has joined. Those that are attached by capability have 8 more places.
 * @min_period: Out: shortest period that the caller may ask for, in ns: the module's
 *	parameter min_period_ns, or less with CAP_PERFMON.
 * @max_period: Out: longest period, in ns.
 * @max_clocked: Out: of these, most that have a period; of the 8 more, 2. Sessions of a process
 *	and of its threads are counted apart.
 * @__reserved: Out: 0.
 *
 * Asks what this kernel offers, so that nothing need be guessed from versions.
 * Available to anyone who can open the device; has no effect.
 */
struct profil_query {
	__u32 size;
	__u32 flags;
	__u32 tick_hz;
	__u32 hook;
	__aligned_u64 tick_ns;
	__aligned_u64 features;
	__u32 widths;
	__u32 max_ranges;
	__u32 max_granule;
	__u32 max_step;
	__aligned_u64 max_counters;
	__u32 max_records;
	__u32 max_sessions;
	__aligned_u64 min_period;
	__aligned_u64 max_period;
	__u32 max_clocked;
	__u32 __reserved;
};

/**
 * enum profil_scope - Whom a session samples
 * @PROFIL_SCOPE_PROCESS: A process: all tasks that share its address space
 *	(threads, children of vfork until they exec), now or later, into the same
 *	counters without a lost update. An address space has at most one such
 *	classic session.
 * @PROFIL_SCOPE_THREAD: One thread and no other. A thread has at most one such
 *	classic session, independent of its process's and of other threads'.
 */
enum profil_scope {
	PROFIL_SCOPE_PROCESS = 0,
	PROFIL_SCOPE_THREAD = 1
};

/* Bits of profil_start.modes: which ticks a session counts */
#define PROFIL_MODE_USER	(1U << 0)	/* the tick found user code running */
#define PROFIL_MODE_SYSTEM	(1U << 1)	/* the kernel, on behalf of the task */

/* Bits of profil_range.flags */
#define PROFIL_RANGE_ROUND_UP	(1U << 0)	/* see struct profil_range */
#define PROFIL_RANGE_INHERIT	(1U << 1)	/* see PROFIL_FORK_SHARE */
#define PROFIL_RANGE_PCS	(1U << 2)	/* see PROFIL_IOC_START */

/**
 * struct profil_range - Text addresses that share one scale and one array of counters
 * @start: First address of the range.
 * @end: First address past the range; above @start. ~0 for no bound.
 * @offset: The address that is counted from; at most @start.
 * @buffer: Address of the counters, aligned to @width. Unused if @nr_counters is 0.
 * @nr_counters: Number of counters. Pcs that map past the last one are outside.
 * @scale: Counters per granule, as a fixed-point number: 65536 is 1.0. Any
 *	value; 0 maps every pc to counter 0.
 * @granule: Bytes of text that are one unit before scaling: a power of two from
 *	1 to profil_query.max_granule.
 * @step: What one counter stands for after scaling: a power of two from 1 to
 *	profil_query.max_step.
 * @width: Bytes of a counter: 2, 4 or 8. Counters are unsigned and in the
 *	machine's byte order. They saturate.
 * @flags: PROFIL_RANGE_* bits.
 * @__reserved: Must be 0.
 *
 * A pc with start <= pc < end is counted in
 *
 *	counter = (((pc - offset) / granule) * scale / 65536) / step
 *
 * if counter < nr_counters. Both divisions by powers of two round down; with
 * PROFIL_RANGE_ROUND_UP the division by step rounds up. Nothing overflows: the
 * result is as of unbounded integers. The historical rules are
 *
 *	                   granule  step  flags
 *	glibc, 16 bits        2       1
 *	BSD, Digital UNIX     1       2
 *	AIX                   1       2   ROUND_UP
 *	N64                   4       1   (scale 65536)
 *
 * Ranges for one address space must not overlap in [start, end); their order is free.
 * Their buffers may lie in the same pages, and may overlap.
 */
struct profil_range {
	__aligned_u64 start;
	__aligned_u64 end;
	__aligned_u64 offset;
	__aligned_u64 buffer;
	__aligned_u64 nr_counters;
	__u32 scale;
	__u32 granule;
	__u32 step;
	__u32 width;
	__u32 flags;
	__u32 __reserved;
};

/* Bits of profil_start.flags */
#define PROFIL_START_REPLACE	(1U << 0)	/* take the place of a session that is on */
#define PROFIL_START_JITTER	(1U << 1)	/* the period is a mean, see @period */

/**
 * struct profil_start - ioctl(PROFIL_IOC_START)
 * @size: sizeof(struct profil_start).
 * @flags: PROFIL_START_* bits.
 * @scope: enum profil_scope.
 * @modes: PROFIL_MODE_* bits. 0: the session is on, its buffers are locked, and it counts
 *	nothing; its ticks are unselected. To be replaced by one that counts.
 * @nr_ranges: Number of ranges, from 0 to profil_query.max_ranges. A session
 *	without ranges, or without counters, is on: its ticks are all outside.
 * @__reserved: Must be 0.
 * @ranges: Address of an array of @nr_ranges struct profil_range.
 * @period: Nanoseconds of CPU time from one tick of the session to the next, from
 *	profil_query.min_period (EPERM below that, for lack of CAP_PERFMON; EINVAL below
 *	10,000) to max_period; 0: ticks are the scheduler's. With PROFIL_START_JITTER each
 *	is another, at random from half a period to one and a half, so that nobody can
 *	march in step with it.
 *
 * A session with a period has a clock of its own, which runs on a CPU while a task that
 * it samples runs there, and goes on from one of its tasks to the next: threads that
 * are shorter than a period have their share of the ticks. Everything else is as with
 * the scheduler's tick.
 *
 * Starts a session of the calling process or thread. The pages of all buffers
 * are pinned and charged to RLIMIT_MEMLOCK, pages that buffers share once.
 * Counters are not cleared: counting adds to what is there.
 *
 * With PROFIL_START_REPLACE a session that is on in this scope gives way to the
 * new one in one step, without a tick lost or counted twice; statistics begin
 * anew. Without it EBUSY is the answer then.
 *
 * The session lives until PROFIL_IOC_STOP, exec, or exit of the process
 * (PROFIL_SCOPE_PROCESS: of the last task with this address space) or thread;
 * no descriptor needs to be kept open.
 *
 * After fork a session of PROFIL_SCOPE_PROCESS goes on in the parent, and the
 * child has one of its own, which counts from the fork on in the child's copy of
 * the buffer (in shared memory both count in the one buffer). Its statistics begin
 * at 0. Its pages are pinned and charged to the child at its first tick in a range, or at
 * its first ioctl here; ticks before that are deferred and counted then. If that cannot be, the
 * child's session ends, and its statistics tell why. So it does if the child has no such memory
 * (MADV_DONTFORK, MADV_WIPEONFORK), if the parent has unmapped or replaced it before the fork,
 * and with hugetlb pages. A child that maps other memory at that address must stop the session
 * first. The session of a thread is not inherited.
 *
 * The session counts in the pages that it has pinned, until it ends. What the process does
 * with its mapping has no effect on it: after munmap(), MADV_DONTNEED, mremap() or a truncation
 * ticks are hits as before, in pages that the process may not see any more. Memory that is
 * mapped later at the same address is not written to.
 *
 * A tick in kernel mode (system call, fault) is charged to the user instruction
 * that led there: for a system call the call's own instruction.
 *
 * With PROFIL_RANGE_PCS, in its only range, a session counts nothing: it writes each pc that
 * lies in the range to the next free one of the @nr_counters entries of the buffer, in the
 * order in which the ticks come. @width is 8, or 4 if @end is not above 4 GiB; @scale is 65536,
 * @granule and @step are 1, and no other flag is set. Each is a hit; those that come when
 * all entries are taken are saturated. The child of a fork goes on in its copy of the buffer
 * after the entries that were taken in the parent when its session was made.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_start {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__u32 modes;
	__u32 nr_ranges;
	__u32 __reserved;
	__aligned_u64 ranges;
	__aligned_u64 period;
};

/**
 * enum profil_state - What became of a session
 * @PROFIL_STATE_OFF: There is none, or it has a descriptor and is not enabled.
 * @PROFIL_STATE_ON: It is counting.
 * @PROFIL_STATE_ENDED: It ended by itself, see enum profil_end. Its statistics
 *	stay readable until the next start or stop in this scope, or while its
 *	descriptor is open. Its buffers are no longer pinned or charged (memory for
 *	records is, as long as they can be read), and a start need not say
 *	PROFIL_START_REPLACE.
 */
enum profil_state {
	PROFIL_STATE_OFF = 0,
	PROFIL_STATE_ON = 1,
	PROFIL_STATE_ENDED = 2
};

/**
 * enum profil_end - Why a session ended by itself
 * @PROFIL_END_NONE: It did not.
 * @PROFIL_END_BUFFER: The child of a fork does not have its parent's buffers.
 * @PROFIL_END_NOMEM: The kernel had no memory for the session of the child of a fork.
 * @PROFIL_END_LIMIT: RLIMIT_MEMLOCK of the child of a fork does not allow to lock
 *	its buffers.
 * @PROFIL_END_CREATOR: The address space that the buffers lie in is gone: the
 *	process that opened the session has exited or exec'd.
 */
enum profil_end {
	PROFIL_END_NONE = 0,
	PROFIL_END_BUFFER = 1,
	PROFIL_END_NOMEM = 2,
	PROFIL_END_LIMIT = 3,
	PROFIL_END_CREATOR = 4
};

/**
 * struct profil_stats - ioctl(PROFIL_IOC_STATS)
 * @size: sizeof(struct profil_stats).
 * @flags: Must be 0.
 * @scope: enum profil_scope: whose classic session is asked for. On a descriptor: 0.
 * @state: Out: enum profil_state.
 * @end: Out: enum profil_end.
 * @__reserved: Must be 0.
 * @ticks: Out: ticks of the session: user + system.
 * @hit: Out: ticks that raised a counter.
 * @outside: Out: ticks with a pc that no counter is meant for.
 * @saturated: Out: ticks whose counter was full.
 * @dropped: Out: ticks that could not be counted: the sum of the dropped_*.
 * @dropped_overrun: Out: during a snapshot, or before the child of a fork had its buffers,
 *	more ticks came than can be deferred (256).
 * @dropped_buffer: Out: deferred in the child of a fork, which could not have its buffers.
 * @dropped_contended: Out: the counter was rewritten by others all the time.
 * @user: Out: ticks that found user code running.
 * @system: Out: ticks that found the kernel running for the task.
 * @unselected: Out: ticks of a mode that the session does not count. Not part
 *	of @ticks.
 * @missed: Out: ticks that never came although a sampled task was running: late
 *	timer interrupts that collapsed into one. Not part of @ticks. A lower bound, known from
 *	the next tick on. With a period: periods that were over before the last one's tick
 *	could be counted.
 * @expected: Out: the CPU time that the scheduler gave to the tasks (of the
 *	starting process or thread, or of all that are or were attached) while the
 *	session was on, in ticks (or periods). To compare
 *	with @ticks + @unselected: they agree within the error of sampling.
 * @locked: Out: bytes charged to RLIMIT_MEMLOCK for the session.
 * @dropped_exec: Out: the task was between the old program and the new one.
 * @dropped_exit: Out: the task was past the end of its address space in exit.
 * @dropped_record: Out: a record was due, and there was no room for it.
 * @unfollowed: Out: forks and execs that the session should have followed, and could
 *	not for lack of memory (or, a child, since too many were attached to that first).
 *	Not ticks.
 * @targets: Out: processes and threads that are attached now.
 *
 * hit + outside + saturated + dropped = ticks = user + system, in every answer.
 * Without a session @state is PROFIL_STATE_OFF and the rest 0: no error.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_stats {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__u32 state;
	__u32 end;
	__u32 __reserved;
	__aligned_u64 ticks;
	__aligned_u64 hit;
	__aligned_u64 outside;
	__aligned_u64 saturated;
	__aligned_u64 dropped;
	__aligned_u64 dropped_overrun;
	__aligned_u64 dropped_buffer;
	__aligned_u64 dropped_contended;
	__aligned_u64 user;
	__aligned_u64 system;
	__aligned_u64 unselected;
	__aligned_u64 missed;
	__aligned_u64 expected;
	__aligned_u64 locked;
	__aligned_u64 dropped_exec;
	__aligned_u64 dropped_exit;
	__aligned_u64 dropped_record;
	__aligned_u64 unfollowed;
	__aligned_u64 targets;
};

/**
 * struct profil_stop - ioctl(PROFIL_IOC_STOP)
 * @size: sizeof(struct profil_stop).
 * @flags: Must be 0.
 * @scope: enum profil_scope: whose session is to end.
 * @__reserved: Must be 0.
 * @stats: Address of a struct profil_stats to write the final statistics to, with
 *	its @size set and its other inputs 0 (its @scope is not looked at); or 0.
 *
 * Ends the session, or forgets one that has ended by itself. When the call
 * returns no counter changes any more, nothing is pinned or charged, and the
 * statistics are final. EINVAL if there is no session.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_stop {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__u32 __reserved;
	__aligned_u64 stats;
};

/**
 * struct profil_describe - ioctl(PROFIL_IOC_DESCRIBE)
 * @size: sizeof(struct profil_describe).
 * @flags: Must be 0.
 * @pid: 0 for the caller itself; else the id of a process in the caller's pid namespace.
 * @nr_ranges: In: how many there is room for at @ranges. Out: how many there are.
 * @ranges: Address of an array of struct profil_range to be filled in, as the process gave
 *	them, in the order of their addresses; or 0. If there is not room for all, nothing is
 *	written there: no error.
 * @stats: Address of a struct profil_stats, as in struct profil_stop; or 0.
 * @period: Out: of the session; 0: its ticks are the scheduler's.
 * @taken: Out: with PROFIL_RANGE_PCS, entries that were taken before the session began, in the
 *	parent of a fork; else 0. Those that it took itself are its hits.
 *
 * Describes the classic session of a process (PROFIL_SCOPE_PROCESS), which may be stopped. The
 * counters are in the process's memory, at @buffer of each range: process_vm_readv() copies
 * them, if the caller may read that memory. Counters that are read after the statistics have
 * all hits of these, and perhaps more. A child that fork has just made is described even if its
 * first ticks are not counted yet.
 *
 * Allowed for one's own process; for another of the same user: the caller's filesystem uid
 * and gid are the target's real, effective and saved ones, the target has no capability that
 * the caller lacks and is dumpable (PR_SET_DUMPABLE); and with CAP_PERFMON or CAP_SYS_PTRACE
 * over its address space. EPERM: none of these. EINVAL: it has no session. ENODEV: its
 * session has ended by itself.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_describe {
	__u32 size;
	__u32 flags;
	__s32 pid;
	__u32 nr_ranges;
	__aligned_u64 ranges;
	__aligned_u64 stats;
	__aligned_u64 period;
	__aligned_u64 taken;
};

/**
 * enum profil_fork - What a descriptor session does when a target forks
 * @PROFIL_FORK_OFF: The child is not sampled.
 * @PROFIL_FORK_SHARE: The child is a further target of the same session. It has those
 *	of the parent's ranges that say PROFIL_RANGE_INHERIT, and they count in the same
 *	counters, in the memory of the session's creator.
 * @PROFIL_FORK_FRESH: The child has a session of its own, with all ranges, which counts
 *	in the child's copy of the buffers: as with classic sessions. The child's copy
 *	of the descriptor means that session when the child uses it; to processes
 *	that have none it means nothing (ENODEV). Only processes or
 *	threads of the creator can be attached to such a session, and it has no records.
 *
 * Threads of an attached process are always sampled. When an attached thread forks, the
 * child's first thread is what is followed.
 */
enum profil_fork {
	PROFIL_FORK_OFF = 0,
	PROFIL_FORK_SHARE = 1,
	PROFIL_FORK_FRESH = 2
};

/**
 * enum profil_exec - What a descriptor session does when a target execs
 * @PROFIL_EXEC_OFF: The target is detached.
 * @PROFIL_EXEC_FOLLOW: The target remains. It has no ranges in its new address space
 *	until some are added. A program that gains privilege by the exec (set-user-ID,
 *	set-group-ID, file capabilities, not readable by the caller) is never followed:
 *	the target is detached before the first instruction.
 */
enum profil_exec {
	PROFIL_EXEC_OFF = 0,
	PROFIL_EXEC_FOLLOW = 1
};

/* Bits of profil_open.flags */
#define PROFIL_OPEN_JITTER	(1U << 0)	/* as PROFIL_START_JITTER */

/**
 * struct profil_open - ioctl(PROFIL_IOC_OPEN)
 * @size: sizeof(struct profil_open).
 * @flags: PROFIL_OPEN_* bits.
 * @modes: PROFIL_MODE_* bits, at least one.
 * @fork: enum profil_fork.
 * @exec: enum profil_exec.
 * @nr_records: 0, or how many records are kept for read(), at most
 *	profil_query.max_records; then ticks outside every range leave one each.
 * @period: As profil_start.period. At most profil_query.max_clocked such sessions can
 *	sample one task (EBUSY).
 *
 * Makes a session without targets, without ranges, and not enabled. The caller is
 * its creator: buffers of all ranges lie in the creator's address space, are charged
 * to its RLIMIT_MEMLOCK (which is no limit if it had CAP_IPC_LOCK when it made the
 * session), and so is the memory for records. The session ends when the
 * last copy of its descriptor is closed; when the creator's address space goes, it has
 * ended, too, and only its statistics and records can still be read.
 *
 * The descriptor can be read and polled: see struct profil_record. It is not inherited
 * by exec (O_CLOEXEC).
 *
 * Return: the descriptor, or -1 and an error as in the contract above.
 */
struct profil_open {
	__u32 size;
	__u32 flags;
	__u32 modes;
	__u32 fork;
	__u32 exec;
	__u32 nr_records;
	__aligned_u64 period;
};

/**
 * struct profil_attach - ioctl(PROFIL_IOC_ATTACH)
 * @size: sizeof(struct profil_attach).
 * @flags: Must be 0.
 * @scope: enum profil_scope: a whole process, or one thread.
 * @pid: 0 for the caller itself; else the id of a process or thread in the caller's
 *	pid namespace.
 * @space: Out: the address space that the target runs in; see PROFIL_IOC_ADD.
 *
 * Adds a target. A process joins a session by itself, usually the child of a fork
 * before it execs: whoever holds a copy of the descriptor may attach itself and its own
 * threads. Another process's need CAP_PERFMON or CAP_SYS_PTRACE over its address space.
 * EBUSY: it is attached already, itself or its process or one of its threads; or to as many
 * sessions as may be, see profil_query.max_sessions.
 * EINVAL: not a target for PROFIL_FORK_FRESH.
 *
 * A target is detached when it has exited and been waited for, or by an exec that is not
 * followed.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_attach {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__s32 pid;
	__aligned_u64 space;
};

/* profil_add.space, profil_remove.space: the caller's own address space; all of them */
#define PROFIL_SPACE_SELF	0ULL
#define PROFIL_SPACE_ALL	(~0ULL)

/**
 * struct profil_add - ioctl(PROFIL_IOC_ADD)
 * @size: sizeof(struct profil_add).
 * @flags: Must be 0.
 * @nr_ranges: Number of ranges, at least 1.
 * @__reserved: Must be 0.
 * @space: The address space whose text the ranges are: as ATTACH or a record told it,
 *	or PROFIL_SPACE_SELF. Ids are never used again.
 * @ranges: Address of an array of @nr_ranges struct profil_range.
 *
 * Adds ranges to a session, enabled or not, without a tick lost. Only from the creator's
 * address space (EPERM), in which the buffers lie. They are pinned and charged as by
 * PROFIL_IOC_START: those of one call that touch are pinned together. A buffer whose pages
 * all belong to what is pinned already is not pinned or charged again. All ranges are
 * added, or none. EINVAL: they overlap each other or those that are there, or would be more
 * than profil_query.max_ranges.
 * ESRCH: no target is, or is any more, in @space.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_add {
	__u32 size;
	__u32 flags;
	__u32 nr_ranges;
	__u32 __reserved;
	__aligned_u64 space;
	__aligned_u64 ranges;
};

/**
 * struct profil_remove - ioctl(PROFIL_IOC_REMOVE)
 * @size: sizeof(struct profil_remove).
 * @flags: Must be 0.
 * @nr_removed: Out: how many ranges were removed.
 * @__reserved: Must be 0.
 * @space: The address space that loses ranges, PROFIL_SPACE_SELF or PROFIL_SPACE_ALL.
 * @start: Those ranges that lie in [@start, @end) are removed.
 * @end: See @start; above it.
 *
 * Removes ranges while the session goes on. Only from the creator's address space (EPERM).
 * When the call returns no counter of a removed range changes any more, and buffers that no
 * range needs are neither pinned nor charged (those that are pinned together go together).
 * Buffers of ranges whose address space is gone are returned by the next call that adds or
 * removes ranges.
 * Address spaces that inherited a range keep it, unless @space says ALL. ESRCH: as with
 * PROFIL_IOC_ADD; not with ALL. ENOMEM with ALL: some address spaces may have lost their
 * ranges already; another call removes the rest.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_remove {
	__u32 size;
	__u32 flags;
	__u32 nr_removed;
	__u32 __reserved;
	__aligned_u64 space;
	__aligned_u64 start;
	__aligned_u64 end;
};

/**
 * struct profil_enable - ioctl(PROFIL_IOC_ENABLE)
 * @size: sizeof(struct profil_enable).
 * @flags: Must be 0.
 *
 * Lets the session count, from now on. EBUSY if it does already.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_enable {
	__u32 size;
	__u32 flags;
};

/**
 * struct profil_disable - ioctl(PROFIL_IOC_DISABLE)
 * @size: sizeof(struct profil_disable).
 * @flags: Must be 0.
 * @stats: Address of a struct profil_stats, as in struct profil_stop; or 0.
 *
 * Lets the session count no longer. When the call returns no counter changes any more,
 * and the statistics are those of all the time that it was enabled. Targets, ranges and
 * what is pinned remain. EINVAL if it is not enabled.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_disable {
	__u32 size;
	__u32 flags;
	__aligned_u64 stats;
};

/* Bits of profil_snapshot.flags */
#define PROFIL_SNAPSHOT_RESET	(1U << 0)	/* and begin anew */

/**
 * struct profil_copy - Counters to be copied
 * @from: Address in the creator's memory: of buffers of the session's ranges, or of what
 *	was such a buffer once.
 * @to: Address to copy to, or 0: not copied.
 * @bytes: How many; @from and @bytes are multiples of the counters' width.
 */
struct profil_copy {
	__aligned_u64 from;
	__aligned_u64 to;
	__aligned_u64 bytes;
};

/**
 * struct profil_snapshot - ioctl(PROFIL_IOC_SNAPSHOT)
 * @size: sizeof(struct profil_snapshot).
 * @flags: PROFIL_SNAPSHOT_* bits.
 * @nr_copies: Number of copies, at most 65,536; may be 0.
 * @__reserved: Must be 0.
 * @copies: Address of an array of @nr_copies struct profil_copy.
 * @stats: Address of a struct profil_stats, as in struct profil_stop; or 0.
 *
 * Copies counters and statistics as they are at one moment, in which no tick is half
 * counted: if the copies are of all counters, and these were 0 in the beginning and are
 * written by nobody else, their sum is @stats->hit. Ticks that come meanwhile are deferred
 * and counted afterwards; if there are very many of them, they are dropped and reported
 * by the next statistics as dropped_overrun.
 *
 * With PROFIL_SNAPSHOT_RESET the counters in the copies are set to 0 and all statistics
 * begin anew, in the same moment. Only from the creator's address space (EPERM).
 * EFAULT: @from cannot be read (or reset), or @to cannot be written; then nothing was
 * reset, but some copies may have been made. EINVAL: a copy that is not aligned to 2 bytes.
 *
 * Return: 0, or an error as in the contract above.
 */
struct profil_snapshot {
	__u32 size;
	__u32 flags;
	__u32 nr_copies;
	__u32 __reserved;
	__aligned_u64 copies;
	__aligned_u64 stats;
};

/* Bits of profil_record.flags */
#define PROFIL_RECORD_SYSTEM	(1U << 0)	/* the kernel was running for the task */
#define PROFIL_RECORD_MAPPED	(1U << 1)	/* start to path describe the pc's mapping */
#define PROFIL_RECORD_LATE	(1U << 2)	/* the mapping was looked up by read() only */
#define PROFIL_RECORD_FILE	(1U << 3)	/* the mapping is of a file */

/**
 * struct profil_record - What read() of a session's descriptor returns
 * @size: Bytes of this record, with the path and what fills it up to a multiple of 8.
 * @flags: PROFIL_RECORD_* bits.
 * @time: When the tick came, in ns of CLOCK_MONOTONIC in the reader's time namespace.
 * @pc: The sampled user pc.
 * @space: The address space, for PROFIL_IOC_ADD.
 * @pid: The process, in the creator's pid namespace; 0 if it is not visible there.
 * @tid: The thread, likewise.
 * @comm: The thread's name, NUL-terminated.
 * @start: First address of the mapping that the pc lay in.
 * @end: First address past it.
 * @offset: Offset in the file of the byte at the pc.
 * @ino: Inode number of the file, as stat() tells it.
 * @generation: Inode generation of the file, or 0.
 * @major: Major number of the file's device, as /proc/PID/maps tells it.
 * @minor: Minor number likewise.
 * @path: Path of a regular file as the reader sees it; the name of another file without its
 *	path, at most 15 bytes of it ("zero" of /dev/zero, "[io_uring]"); a name such as "[vdso]";
 *	or empty. NUL-terminated, as long as it must be: @size tells.
 *
 * A session with records leaves one for each tick that is *outside*, with what its pc
 * meant when the tick came, even if the process has exec'd or exited when it is read. If
 * the mapping was just being changed, it is looked up when the record is read
 * (PROFIL_RECORD_LATE), or not known at all (no PROFIL_RECORD_MAPPED).
 *
 * Until it is read, or the session's descriptor is closed, a record keeps the regular file that was
 * mapped: a filesystem cannot be unmounted, and the memory of a deleted file (a memfd, say) stays.
 *
 * read() returns as many whole records as there are and fit, EINVAL if the first does not
 * fit. It waits for one, unless O_NONBLOCK is set (EAGAIN). It returns 0 when no record is
 * left and none will come: when there were targets and none is left, or the session has
 * ended. poll() says POLLIN when there are records, and POLLHUP when read() would return 0.
 * A session that keeps no records can be waited for in this way, too.
 */
struct profil_record {
	__u32 size;
	__u32 flags;
	__aligned_u64 time;
	__aligned_u64 pc;
	__aligned_u64 space;
	__s32 pid;
	__s32 tid;
	char comm[16];
	__aligned_u64 start;
	__aligned_u64 end;
	__aligned_u64 offset;
	__aligned_u64 ino;
	__aligned_u64 generation;
	__u32 major;
	__u32 minor;
	char path[8];
};

#endif /* _UAPI_LINUX_PROFIL_H */
