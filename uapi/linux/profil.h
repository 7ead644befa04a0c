/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * profil - execution time profile, counted by the kernel's scheduler tick
 *
 * This is the ABI of /dev/profil, the character device of the profil module.
 *
 * A *session* samples one or more *targets*: processes or threads. At every *tick* of the
 * scheduler that finds a target running, the session takes the target's user pc and adds one
 * to a counter. (A session can also have a clock of its own, which can be faster than the
 * scheduler's tick: see profil_start.period.) A *range* assigns counters to text addresses;
 * the counters of a range are an array in a buffer of the caller. There are two kinds of
 * sessions:
 *
 *   classic     samples the calling process or the calling thread and has no descriptor.
 *               profil() is implemented with it. It lasts from PROFIL_IOC_START to
 *               PROFIL_IOC_STOP, exec or exit.
 *   descriptor  is created by PROFIL_IOC_OPEN, which returns its descriptor. Closing the last
 *               copy of the descriptor ends the session. It is meant for tools and runtimes:
 *               they attach targets to the session, and can add and remove ranges while the
 *               session counts.
 *
 * Each tick in a mode that the session selects is a hit, or it is outside, saturated or dropped:
 * see struct profil_stats. profil(4) describes what the calls do, and their errors; here are the
 * structures and constants.
 *
 * The contract of every ioctl
 * ---------------------------
 *
 * The argument is a pointer to a structure. Its first member, size, is the size that this
 * structure had when the caller was compiled. If the caller's structure is longer than the
 * kernel's, the call succeeds if the additional bytes are zero. If it is shorter, the kernel
 * takes the missing bytes as zero. The kernel writes back at most size bytes of results. The
 * layout is the same for 32-bit and 64-bit callers: pointers and addresses are
 * __aligned_u64.
 *
 * A call that fails returns -1 and sets errno. It changes nothing, except where profil(4) says so.
 */
#ifndef _UAPI_LINUX_PROFIL_H
#define _UAPI_LINUX_PROFIL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PROFIL_DEVICE		"/dev/profil"

#define PROFIL_IOC_MAGIC	0xBF

/* The numbers do not encode sizes: each structure has a member size. */
#define PROFIL_IOC_QUERY	_IO(PROFIL_IOC_MAGIC, 0x00)
#define PROFIL_IOC_START	_IO(PROFIL_IOC_MAGIC, 0x01)
#define PROFIL_IOC_STOP		_IO(PROFIL_IOC_MAGIC, 0x02)
#define PROFIL_IOC_STATS	_IO(PROFIL_IOC_MAGIC, 0x03)	/* both kinds */
#define PROFIL_IOC_OPEN		_IO(PROFIL_IOC_MAGIC, 0x04)
#define PROFIL_IOC_DESCRIBE	_IO(PROFIL_IOC_MAGIC, 0x0B)

/* For the descriptor of a session */
#define PROFIL_IOC_ATTACH	_IO(PROFIL_IOC_MAGIC, 0x05)
#define PROFIL_IOC_ADD		_IO(PROFIL_IOC_MAGIC, 0x06)
#define PROFIL_IOC_REMOVE	_IO(PROFIL_IOC_MAGIC, 0x07)
#define PROFIL_IOC_ENABLE	_IO(PROFIL_IOC_MAGIC, 0x08)
#define PROFIL_IOC_DISABLE	_IO(PROFIL_IOC_MAGIC, 0x09)
#define PROFIL_IOC_SNAPSHOT	_IO(PROFIL_IOC_MAGIC, 0x0A)
#define PROFIL_IOC_UNWIND	_IO(PROFIL_IOC_MAGIC, 0x0C)

/**
 * enum profil_hook - The hook of the module on the scheduler tick
 * @PROFIL_HOOK_NONE: The tick is not hooked, since no session has needed it for some minutes.
 * @PROFIL_HOOK_FTRACE: The tick is hooked by ftrace.
 */
enum profil_hook {
	PROFIL_HOOK_NONE = 0,
	PROFIL_HOOK_FTRACE = 1
};

/* Bits of profil_query.features */
#define PROFIL_FEATURE_PROCESS		(1ULL << 0)	/* PROFIL_SCOPE_PROCESS */
#define PROFIL_FEATURE_THREAD		(1ULL << 1)	/* PROFIL_SCOPE_THREAD */
#define PROFIL_FEATURE_SYSTEM		(1ULL << 2)	/* PROFIL_MODE_SYSTEM */
#define PROFIL_FEATURE_FORK		(1ULL << 4)	/* the child of a fork has a session */
#define PROFIL_FEATURE_DESCRIPTOR	(1ULL << 5)	/* PROFIL_IOC_OPEN, _ATTACH ... */
#define PROFIL_FEATURE_CLOCK		(1ULL << 7)	/* profil_start.period */
#define PROFIL_FEATURE_PCS		(1ULL << 8)	/* PROFIL_RANGE_PCS; START with modes 0 */
#define PROFIL_FEATURE_DESCRIBE		(1ULL << 9)	/* PROFIL_IOC_DESCRIBE */
#define PROFIL_FEATURE_MACHINE		(1ULL << 10)	/* PROFIL_SCOPE_MACHINE */
#define PROFIL_FEATURE_STACKS		(1ULL << 11)	/* profil_open.stack_depth */
#define PROFIL_FEATURE_RECORDS		(1ULL << 12)	/* struct profil_record */
#define PROFIL_FEATURE_UNWIND		(1ULL << 13)	/* PROFIL_IOC_UNWIND */

/**
 * struct profil_query - ioctl(PROFIL_IOC_QUERY)
 * @size: sizeof(struct profil_query).
 * @flags: Must be 0.
 * @tick_hz: Out: scheduler ticks per second on a busy CPU.
 * @hook: Out: enum profil_hook, at this moment.
 * @tick_ns: Out: nanoseconds from one tick to the next.
 * @features: Out: PROFIL_FEATURE_* bits.
 * @widths: Out: the supported counter widths in bytes, combined by bitwise or (2|4|8).
 * @max_ranges: Out: maximum number of ranges that a session can have in one address space.
 * @max_granule: Out: maximum granule, in bytes.
 * @max_step: Out: maximum step.
 * @max_counters: Out: maximum number of counters of one range.
 * @max_records: Out: maximum of profil_open.nr_records.
 * @max_sessions: Out: maximum number of descriptor sessions that can sample one task and that
 *	the task, or one of its ancestors, attached itself to. Sessions that another process
 *	attached the task to have a separate limit of 8.
 * @min_period: Out: the shortest period that the caller is allowed to use, in ns. It is 10,000 with
 *	CAP_PERFMON; otherwise the module's parameter min_period_ns, but at least 10,000.
 * @max_period: Out: the longest period, in ns.
 * @max_clocked: Out: the maximum number of sessions with a period among the @max_sessions. Among
 *	the separate 8, it is 2. The sessions of a process and those of each of its threads are
 *	counted separately.
 * @max_stack_depth: Out: maximum of profil_open.stack_depth; 0 without PROFIL_FEATURE_STACKS.
 * @max_unwind_rows: Out: maximum of profil_unwind.nr_rows; 0 without PROFIL_FEATURE_UNWIND.
 * @max_unwind_tables: Out: maximum number of unwind tables of a session.
 *
 * Reports the features and limits of this kernel. Anyone who can open the device can make this
 * call.
 *
 * Return: 0, or -1 with an error of profil(4).
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
	__u32 max_stack_depth;
	__u32 max_unwind_rows;
	__u32 max_unwind_tables;
};

/**
 * enum profil_scope - A session samples a process or a thread
 * @PROFIL_SCOPE_PROCESS: A process: all tasks that share its address space now or later (its
 *	threads, and children of vfork until they exec). They count into the same counters,
 *	and no update is lost. An address space has at most one classic session of this scope.
 * @PROFIL_SCOPE_THREAD: One thread only. A thread has at most one classic session of this
 *	scope. It is independent of the session of its process and of those of other threads.
 * @PROFIL_SCOPE_MACHINE: Every process of the machine, now and later; only for PROFIL_IOC_ATTACH.
 *	Threads of the kernel are not sampled.
 */
enum profil_scope {
	PROFIL_SCOPE_PROCESS = 0,
	PROFIL_SCOPE_THREAD = 1,
	PROFIL_SCOPE_MACHINE = 2
};

/* Bits of profil_start.modes: the ticks that a session counts */
#define PROFIL_MODE_USER	(1U << 0)	/* ticks in user code */
#define PROFIL_MODE_SYSTEM	(1U << 1)	/* ticks in the kernel, on behalf of the task */

/* Bits of profil_range.flags */
#define PROFIL_RANGE_ROUND_UP	(1U << 0)	/* see struct profil_range */
#define PROFIL_RANGE_PCS	(1U << 2)	/* see PROFIL_IOC_START */

/**
 * struct profil_range - Text addresses that share one scale and one array of counters
 * @start: First address of the range.
 * @end: First address after the range; above @start. ~0 means no upper bound.
 * @offset: The address from which distances are measured; at most @start.
 * @buffer: Address of the counters, aligned to @width. Ignored if @nr_counters is 0.
 * @nr_counters: Number of counters. A pc whose counter would be after the last one is
 *	outside.
 * @scale: Counters per granule, as a fixed-point number: 65536 is 1.0. Any value is valid;
 *	0 maps every pc to counter 0.
 * @granule: Bytes of text that make one unit before scaling: a power of two from 1 to
 *	profil_query.max_granule.
 * @step: Number of scaled units for each counter: a power of two from 1 to
 *	profil_query.max_step.
 * @width: Size of a counter in bytes: 2, 4 or 8. Counters are unsigned, in the byte order of
 *	the machine. A counter at its maximum stays there.
 * @flags: PROFIL_RANGE_* bits.
 * @__reserved: Must be 0.
 *
 * A pc with start <= pc < end is counted in
 *
 *	counter = (((pc - offset) / granule) * scale / 65536) / step
 *
 * if counter < nr_counters. All divisions round down, except that the division by step
 * rounds up with PROFIL_RANGE_ROUND_UP. The computation does not overflow: the result is that
 * of integers without a size limit. The rules of the historical systems are
 *
 *	                   granule  step  flags
 *	glibc, 16 bits        2       1
 *	BSD, Digital UNIX     1       2
 *	AIX                   1       2   ROUND_UP
 *	N64                   4       1   (scale 65536)
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
#define PROFIL_START_REPLACE	(1U << 0)	/* replace a session that is on */
#define PROFIL_START_JITTER	(1U << 1)	/* periods are random, see @period */

/**
 * struct profil_start - ioctl(PROFIL_IOC_START)
 * @size: sizeof(struct profil_start).
 * @flags: PROFIL_START_* bits.
 * @scope: enum profil_scope.
 * @modes: PROFIL_MODE_* bits. 0: the session is on and its buffers are pinned, but all ticks are
 *	unselected and not counted. A later START with PROFIL_START_REPLACE can begin to
 *	count.
 * @nr_ranges: Number of ranges, from 0 to profil_query.max_ranges. A session without ranges,
 *	or without counters, is on: all of its ticks are outside.
 * @__reserved: Must be 0.
 * @ranges: Address of an array of @nr_ranges struct profil_range.
 * @period: 0: the session counts the ticks of the scheduler. Otherwise the nanoseconds of CPU
 *	time from one tick of the session to the next, from profil_query.min_period to
 *	profil_query.max_period.
 *
 * Starts a session of the calling process or thread, as profil(4) describes: how buffers are pinned
 * and charged, the end of the session, forks, and changes of mappings.
 *
 * If a range has the flag PROFIL_RANGE_PCS, it must be the only range of the session. Such a
 * session does not count. In the order of the ticks, it writes each pc that is in the range to
 * the next free entry of the buffer, which has @nr_counters entries. @width is 8, or 4 if @end
 * is at most 4 GiB; @scale is 65536, @granule and @step are 1, and no other flag is set. A tick
 * whose pc is written is a hit; when all entries are used, ticks are saturated.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * enum profil_state - The state of a session
 * @PROFIL_STATE_OFF: There is no classic session, or the descriptor session is not enabled.
 * @PROFIL_STATE_ON: The session is counting.
 * @PROFIL_STATE_ENDED: The session has ended by itself; enum profil_end has the reason. Its
 *	statistics can be read until the next start or stop in this scope, or while its
 *	descriptor is open. Its buffers are no longer pinned or charged. (The memory for
 *	records is charged while they can be read.) PROFIL_IOC_START does not need
 *	PROFIL_START_REPLACE in this state.
 */
enum profil_state {
	PROFIL_STATE_OFF = 0,
	PROFIL_STATE_ON = 1,
	PROFIL_STATE_ENDED = 2
};

/**
 * enum profil_end - The reason why a session has ended by itself
 * @PROFIL_END_NONE: The session has not ended by itself.
 * @PROFIL_END_BUFFER: The child of a fork has no copy of its parent's buffers, or cannot pin it.
 * @PROFIL_END_NOMEM: The kernel did not have enough memory for the session of the child of a fork.
 * @PROFIL_END_LIMIT: RLIMIT_MEMLOCK of the child of a fork is too low for the buffers.
 * @PROFIL_END_CREATOR: The address space that contained the buffers is gone: the process that
 *	created the session has exited or has called exec.
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
 * @scope: enum profil_scope of the caller's classic session; 0 for a descriptor session.
 * @state: Out: enum profil_state.
 * @end: Out: enum profil_end.
 * @__reserved: Must be 0.
 * @ticks: Out: ticks of the session: @user + @system.
 * @hit: Out: ticks that incremented a counter.
 * @outside: Out: ticks whose pc has no counter.
 * @saturated: Out: ticks whose counter was already at its maximum.
 * @dropped: Out: ticks that could not be counted: the sum of all members dropped_*.
 * @dropped_overrun: Out: dropped during a snapshot, or before the child of a fork had its
 *	buffers, because 256 ticks, the maximum, were deferred already.
 * @dropped_buffer: Out: deferred in the child of a fork, and dropped because the child could not
 *	get its buffers.
 * @dropped_contended: Out: dropped because something else changed the counter at each attempt to
 *	increment it.
 * @user: Out: ticks that interrupted user code.
 * @system: Out: ticks that interrupted the kernel working for the task.
 * @unselected: Out: ticks of a mode that the session does not count. Not included in @ticks.
 * @missed: Out: ticks that did not come although a target was running, because the timer
 *	interrupt was late and several ticks became one. Not included in @ticks. This is a lower
 *	bound; a missed tick is counted when the next tick comes. For a session with a period,
 *	these are periods that ended before the tick of an earlier period was counted.
 * @expected: Out: the CPU time that the scheduler gave to the tasks while the session was on, in
 *	ticks (or in periods). For a classic session the tasks are the process or the thread; for
 *	a descriptor session, all present and past targets. The sum of @ticks, @unselected and
 *	@missed agrees with @expected within the error of sampling. For PROFIL_SCOPE_MACHINE the
 *	CPU time is not measured: @expected is this sum.
 * @locked: Out: bytes that are charged to RLIMIT_MEMLOCK for the session.
 * @dropped_exec: Out: dropped because the task, or a child of vfork() that shares its memory, was
 *	in exec. A session with records makes a record instead.
 * @dropped_exit: Out: dropped because the task was exiting and had left its address space. A
 *	session with records makes a record instead.
 * @dropped_record: Out: dropped because there was no room for the record of the tick.
 * @unfollowed: Out: forks and execs that the session should have followed but could not, because
 *	the kernel did not have enough memory or because too many other sessions sample the child
 *	already; and execs without room for a record with PROFIL_RECORD_DETACHED. These are not
 *	ticks.
 * @targets: Out: number of processes and threads that are attached now. The machine counts as one.
 *
 * hit + outside + saturated + dropped = ticks = user + system holds in every result.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * @scope: enum profil_scope of the classic session that the call ends.
 * @__reserved: Must be 0.
 * @stats: 0, or the address of a struct profil_stats that gets the final statistics. In that
 *	structure the caller sets @size, and sets @flags and @__reserved to 0.
 *
 * Ends the session, or discards the statistics of one that has ended by itself.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * @pid: 0 for the caller itself; otherwise the id of a process in the caller's pid namespace.
 * @nr_ranges: In: the number of elements of the array at @ranges. Out: the number of ranges of
 *	the session.
 * @ranges: 0, or the address of an array of struct profil_range. The call fills it in with the
 *	ranges as the process passed them, in ascending order of address. If the array is too
 *	short for all ranges, the call succeeds and writes none.
 * @stats: 0, or the address of a struct profil_stats, as in struct profil_stop.
 * @period: Out: the period of the session; 0 if it counts the ticks of the scheduler.
 * @taken: Out: with PROFIL_RANGE_PCS, in the child of a fork, the number of entries that were used
 *	in the parent before the child's session began; otherwise 0. The statistics of the
 *	child's session do not include these entries.
 *
 * Describes the classic session of a process (PROFIL_SCOPE_PROCESS).
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * enum profil_fork - The effect of a fork of a target on a descriptor session
 * @PROFIL_FORK_OFF: The child is not sampled.
 * @PROFIL_FORK_SHARE: The child becomes another target of the same session.
 */
enum profil_fork {
	PROFIL_FORK_OFF = 0,
	PROFIL_FORK_SHARE = 1
};

/**
 * enum profil_exec - The effect of an exec of a target on a descriptor session
 * @PROFIL_EXEC_OFF: The target is detached.
 * @PROFIL_EXEC_FOLLOW: The target stays attached, unless the exec gains privilege.
 */
enum profil_exec {
	PROFIL_EXEC_OFF = 0,
	PROFIL_EXEC_FOLLOW = 1
};

/* Bits of profil_open.flags */
#define PROFIL_OPEN_JITTER	(1U << 0)	/* like PROFIL_START_JITTER */

/**
 * struct profil_open - ioctl(PROFIL_IOC_OPEN)
 * @size: sizeof(struct profil_open).
 * @flags: PROFIL_OPEN_* bits.
 * @modes: PROFIL_MODE_* bits, at least one.
 * @fork: enum profil_fork.
 * @exec: enum profil_exec.
 * @nr_records: 0, or the number of records that the session can keep for read(), at most
 *	profil_query.max_records. If it is not 0, each tick outside every range makes a record.
 * @period: See profil_start.period. At most profil_query.max_clocked sessions with a period can
 *	sample one task; otherwise attaching fails with EBUSY.
 * @stack_depth: 0, or the maximum number of return addresses in a record, see struct profil_stack;
 *	at most profil_query.max_stack_depth. If it is not 0, @nr_records is not 0, either.
 * @__reserved: Must be 0.
 *
 * Creates a session without targets and without ranges, which is not enabled. The caller is the
 * session's creator: the buffers of all ranges are in the creator's address space.
 *
 * Return: the descriptor, or -1 with an error of profil(4).
 */
struct profil_open {
	__u32 size;
	__u32 flags;
	__u32 modes;
	__u32 fork;
	__u32 exec;
	__u32 nr_records;
	__aligned_u64 period;
	__u32 stack_depth;
	__u32 __reserved;
};

/**
 * struct profil_attach - ioctl(PROFIL_IOC_ATTACH)
 * @size: sizeof(struct profil_attach).
 * @flags: Must be 0.
 * @scope: enum profil_scope: a whole process, one thread, or the machine.
 * @pid: 0 for the caller itself; otherwise the id of a process or thread in the caller's pid
 *	namespace. 0 for the machine.
 * @space: Out: the id of the target's address space, for PROFIL_IOC_ADD and PROFIL_IOC_REMOVE; 0
 *	for the machine.
 *
 * Attaches a target to the session. profil(4) has the rights that the caller needs.
 *
 * Return: 0, or -1 with an error of profil(4).
 */
struct profil_attach {
	__u32 size;
	__u32 flags;
	__u32 scope;
	__s32 pid;
	__aligned_u64 space;
};

/* For profil_add.space and profil_remove.space */
#define PROFIL_SPACE_SELF	0ULL		/* the caller's address space */

/**
 * struct profil_add - ioctl(PROFIL_IOC_ADD)
 * @size: sizeof(struct profil_add).
 * @flags: Must be 0.
 * @nr_ranges: Number of ranges, at least 1.
 * @__reserved: Must be 0.
 * @space: The address space that contains the text: an id from PROFIL_IOC_ATTACH or from a record,
 *	or PROFIL_SPACE_SELF. An id is never used again for another address space.
 * @ranges: Address of an array of @nr_ranges struct profil_range.
 *
 * Adds all of the ranges, or none, to a session, which can be enabled or not.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * @nr_removed: Out: the number of ranges that were removed.
 * @__reserved: Must be 0.
 * @space: The address space of the ranges to remove, or PROFIL_SPACE_SELF.
 * @start: The call removes the ranges that are within [@start, @end).
 * @end: See @start; must be above it.
 *
 * Removes ranges from a session, which continues.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * Starts counting.
 *
 * Return: 0, or -1 with an error of profil(4).
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
 * Stops counting. The session keeps its targets, its ranges and its pinned buffers.
 *
 * Return: 0, or -1 with an error of profil(4).
 */
struct profil_disable {
	__u32 size;
	__u32 flags;
	__aligned_u64 stats;
};

/* Bits of profil_snapshot.flags */
#define PROFIL_SNAPSHOT_RESET	(1U << 0)	/* set to 0 after copying */

/**
 * struct profil_copy - Counters for a snapshot to copy
 * @from: Address in the creator's memory: of the session's buffers, or of memory that was such a
 *	buffer before.
 * @to: Address to copy to, or 0 to copy nothing.
 * @bytes: Number of bytes. @from and @bytes are multiples of the counters' width.
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
 * @nr_copies: Number of copies, at most 65,536; can be 0. All together have at most 1 GiB.
 * @__reserved: Must be 0.
 * @copies: Address of an array of @nr_copies struct profil_copy.
 * @stats: 0, or the address of a struct profil_stats, as in struct profil_stop.
 *
 * Copies counters and statistics as they are at one moment. With PROFIL_SNAPSHOT_RESET, it also
 * sets the counters in the copies and all statistics to 0, at the same moment.
 *
 * Return: 0, or -1 with an error of profil(4).
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
#define PROFIL_RECORD_SYSTEM	(1U << 0)	/* the tick interrupted the kernel */
#define PROFIL_RECORD_MAPPED	(1U << 1)	/* start to minor, and path, are valid */
#define PROFIL_RECORD_FILE	(1U << 3)	/* the mapping or program is a file */
#define PROFIL_RECORD_EXEC	(1U << 4)	/* the task was in exec: pc is 0 */
#define PROFIL_RECORD_EXIT	(1U << 5)	/* the task was exiting: pc is 0 */
#define PROFIL_RECORD_DETACHED	(1U << 6)	/* not a tick: a privileged exec, see below */
#define PROFIL_RECORD_UNREADABLE (1U << 7)	/* with DETACHED: the user may not read it */
#define PROFIL_RECORD_STACK	(1U << 8)	/* a struct profil_stack follows the path */
#define PROFIL_RECORD_PENDING	(1U << 9)	/* the mapping was not looked up */
#define PROFIL_RECORD_SOFTIRQ	(1U << 10)	/* the tick interrupted a softirq, and no call */

/**
 * struct profil_record - A record, which read() of a session's descriptor returns
 * @size: Size of this record in bytes, with the path, padding to a multiple of 8, and the stack.
 * @flags: PROFIL_RECORD_* bits.
 * @time: The time of the tick, in ns of CLOCK_MONOTONIC in the reader's time namespace.
 * @pc: The sampled user pc; or 0.
 * @space: The id of the address space, for PROFIL_IOC_ADD. In exec, that of the old program or the
 *	new; in exit, the last one of the process. If the session samples the machine, this is not
 *	an id for PROFIL_IOC_ADD: programs that a process executes one after another have different
 *	values, and a task that was reaped before its last tick has 0.
 * @pid: The process, in the creator's pid namespace; 0 if it is not visible there, or if that
 *	namespace is not the initial one and the task was reaped before its last tick.
 * @tid: The thread, in the same way.
 * @comm: The name of the thread, NUL-terminated.
 * @start: First address of the mapping that contains the pc.
 * @end: First address after the mapping.
 * @offset: Offset in the file of the byte at the pc.
 * @ino: Inode number of the file, as in the result of stat().
 * @generation: Inode generation of the file, or 0.
 * @major: Major number of the file's device, as in /proc/PID/maps.
 * @minor: Minor number of the file's device, as in /proc/PID/maps.
 * @cpu: The CPU on which the tick came.
 * @periods: The number of periods that the tick stands for: 1, plus the ticks that the statistics
 *	count as missed just before it.
 * @syscall: The number of the system call that the tick interrupted, as in struct seccomp_data; -1
 *	if there was none.
 * @arch: The ABI of the call, as in struct seccomp_data: AUDIT_ARCH_* of <linux/audit.h>; 0 if
 *	there was none.
 * @path: The path of a regular file, as seen by the reader; for another file, and for one that
 *	another user than the creator has mapped from FUSE, at most 15 bytes of its name, without
 *	the path ("zero" for /dev/zero, "[io_uring]"); a name such as "[vdso]"; or empty, as for a
 *	path longer than PATH_MAX. It is NUL-terminated and can be longer than 8
 *	bytes: @size includes it.
 *
 * A session with records makes one for each tick that is outside. profil(4) describes read() and
 * poll(), the ticks in exec and exit, and the files that unread records keep in use.
 *
 * A record with PROFIL_RECORD_DETACHED is not a tick: the process @pid, whose execs the session
 * follows, was detached because it executed a program that gains privilege. @tid and @comm are
 * those of the new program. @ino to @minor and @path describe its file, or that of its interpreter,
 * as they do for a mapping. @space is that of the old program; @pc and @periods are 0.
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
	__u32 cpu;
	__u32 periods;
	__s32 syscall;
	__u32 arch;
	char path[8];
};

/* Bits of profil_unwind.flags */
#define PROFIL_UNWIND_VDSO	(1U << 0)	/* the table is for the vDSO: fd is -1 */
#define PROFIL_UNWIND_CODE	(1U << 1)	/* it is for code made at run time: fd is -1 */

/* For profil_unwind: the bytes of text in a block, and the maximum numbers */
#define PROFIL_UNWIND_BLOCK	1024U
#define PROFIL_UNWIND_BLOCKS	4194304U
#define PROFIL_UNWIND_RULES	65536U

/* The bytes of memory that a table with PROFIL_UNWIND_CODE can describe */
#define PROFIL_UNWIND_CODE_SIZE	(1U << 24)

/**
 * enum profil_unwind_kind - How a rule finds the caller of a function
 * @PROFIL_UNWIND_NONE: The table does not tell. The caller is found as without a table.
 * @PROFIL_UNWIND_OUTERMOST: There is no caller.
 * @PROFIL_UNWIND_END: There is a caller, but no rule of another kind can describe it.
 * @PROFIL_UNWIND_SP: The canonical frame address (CFA) is the stack pointer + @cfa.
 * @PROFIL_UNWIND_FP: The CFA is the frame pointer + @cfa.
 * @PROFIL_UNWIND_SP_INDIRECT: The CFA is the word at the address stack pointer + @cfa, plus
 *	8 * (1 + @number). It can be on another stack.
 * @PROFIL_UNWIND_FP_INDIRECT: The CFA is the word at the address frame pointer + @cfa, and the
 *	caller's frame pointer is the word at the frame pointer. @fp must be 0.
 * @PROFIL_UNWIND_SIGNAL: The code after the return of a signal handler: the stack pointer is the
 *	address of a struct ucontext with the registers of the interrupted code.
 * @PROFIL_UNWIND_REGISTER: The CFA is the register @number + @cfa. The register must still have its
 *	value: no callee may have changed it. Where a signal has saved it, the rule finds no caller.
 *
 * With a CFA, the return address is the word below it, and the caller's stack pointer is the CFA.
 */
enum profil_unwind_kind {
	PROFIL_UNWIND_NONE = 0,
	PROFIL_UNWIND_OUTERMOST = 1,
	PROFIL_UNWIND_END = 2,
	PROFIL_UNWIND_SP = 3,
	PROFIL_UNWIND_FP = 4,
	PROFIL_UNWIND_SP_INDIRECT = 5,
	PROFIL_UNWIND_FP_INDIRECT = 6,
	PROFIL_UNWIND_SIGNAL = 7,
	PROFIL_UNWIND_REGISTER = 8
};

/**
 * struct profil_unwind_rule - A rule that rows of a table share
 * @cfa: The distance of the CFA, or of the word with it, in bytes.
 * @fp: The caller's frame pointer is saved at the CFA + @fp; 0: it is still in the register.
 * @kind: enum profil_unwind_kind. Without a CFA, @cfa and @fp must be 0.
 * @number: For PROFIL_UNWIND_SP_INDIRECT, see there. For PROFIL_UNWIND_REGISTER, the index of the
 *	register in struct pt_regs of <asm/ptrace.h>: 6 (r11) to 14 (rdi). Otherwise 0.
 */
struct profil_unwind_rule {
	__s32 cfa;
	__s16 fp;
	__u8 kind;
	__u8 number;
};

/**
 * struct profil_unwind - ioctl(PROFIL_IOC_UNWIND)
 * @size: sizeof(struct profil_unwind).
 * @flags: PROFIL_UNWIND_* bits.
 * @fd: A descriptor of the file, open for reading.
 * @nr_blocks: The number of blocks of PROFIL_UNWIND_BLOCK bytes, from the beginning of the file to
 *	the end of its text: from 1 to PROFIL_UNWIND_BLOCKS.
 * @nr_rows: The number of rows, from 1 to profil_query.max_unwind_rows.
 * @nr_rules: The number of rules, from 1 to PROFIL_UNWIND_RULES.
 * @blocks: Address of an array of @nr_blocks __u32: for each block, the number of rows of all
 *	blocks before it.
 * @rows: Address of an array of @nr_rows __u32. The upper 16 bits are the offset in the block of
 *	the first byte of text to which the rule applies; they ascend in each block. The lower 16
 *	bits are the index of the rule. A row applies up to the next row, also in later blocks.
 * @rules: Address of an array of @nr_rules struct profil_unwind_rule.
 * @space: With PROFIL_UNWIND_CODE, the address space, a profil_record.space; otherwise 0.
 * @start: With PROFIL_UNWIND_CODE, an address in it, a multiple of PROFIL_UNWIND_CODE_SIZE. Offsets
 *	in the table begin there, and there are at most PROFIL_UNWIND_CODE_SIZE /
 *	PROFIL_UNWIND_BLOCK blocks. Otherwise 0.
 *
 * Gives the session, which has a profil_open.stack_depth, the unwind table of a file. It is used in
 * each process that has mapped the file, until the session ends, and cannot be changed. profil(4)
 * describes how stacks are found with tables.
 *
 * With PROFIL_UNWIND_CODE, the table is that of private anonymous memory in one address space. It
 * replaces the table for the same @space and @start; without blocks, rows and rules, it only
 * removes that table.
 *
 * Return: 0, or -1 with an error of profil(4).
 */
struct profil_unwind {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 nr_blocks;
	__u32 nr_rows;
	__u32 nr_rules;
	__aligned_u64 blocks;
	__aligned_u64 rows;
	__aligned_u64 rules;
	__aligned_u64 space;
	__aligned_u64 start;
};

/**
 * enum profil_stack_end - The reason why a stack has no further return address
 * @PROFIL_STACK_OUTERMOST: The stack is complete: the unwind table says that the function has no
 *	caller; or, without a table, the frame pointer is 0, as when a program or a thread begins.
 * @PROFIL_STACK_DEPTH: There are profil_open.stack_depth addresses, and there is a further frame.
 * @PROFIL_STACK_MISALIGNED: The frame pointer is not aligned to a word.
 * @PROFIL_STACK_ORDER: The frame is not above the previous one, or the first frame is below the
 *	stack pointer.
 * @PROFIL_STACK_UNREADABLE: The frame is not in user memory, cannot be read, is in memory of a
 *	device, or is not present: no page is faulted in.
 * @PROFIL_STACK_ADDRESS: The return address of the frame is not in an executable mapping.
 * @PROFIL_STACK_NO_REGISTERS: The task was in exec or exiting; or it stayed in the kernel, and the
 *	record was read before; or a signal handler had returned.
 * @PROFIL_STACK_UNSUPPORTED: The task was running 32-bit code of arm.
 * @PROFIL_STACK_NO_RULE: The unwind table has no rule for the caller (PROFIL_UNWIND_END); or one by
 *	a register that a signal has saved.
 * @PROFIL_STACK_NULL: The stack is complete: the unwind table has led to the return address 0, with
 *	which runtimes and debuggers mark the end of a stack.
 */
enum profil_stack_end {
	PROFIL_STACK_OUTERMOST = 0,
	PROFIL_STACK_DEPTH = 1,
	PROFIL_STACK_MISALIGNED = 2,
	PROFIL_STACK_ORDER = 3,
	PROFIL_STACK_UNREADABLE = 4,
	PROFIL_STACK_ADDRESS = 5,
	PROFIL_STACK_NO_REGISTERS = 6,
	PROFIL_STACK_UNSUPPORTED = 7,
	PROFIL_STACK_NO_RULE = 8,
	PROFIL_STACK_NULL = 9
};

/*
 * A bit of an address in a stack: it was found by an unwind table, or by the instructions after a
 * call in code that was made at run time (profil(4)), and not by the frame pointer.
 */
#define PROFIL_STACK_BY_TABLE	(1ULL << 63)

/**
 * struct profil_stack - The callers of the pc of a record, at the end of the record
 * @nr: Number of @addresses.
 * @end: enum profil_stack_end.
 * @innermost: Words that may be the return address of the innermost function, see below; 0 if the
 *	first address was found by an unwind table.
 * @addresses: Return addresses, from that of the innermost frame on, with PROFIL_STACK_BY_TABLE.
 *
 * Each tick of a session with a profil_open.stack_depth leaves a record with PROFIL_RECORD_STACK. A
 * stack follows the NUL of its path, aligned to 8 bytes, and ends where the record ends.
 *
 * The kernel uses the unwind tables of PROFIL_IOC_UNWIND, or follows the frame pointer of the user
 * code, as profil(4) describes. Of a function that a signal has interrupted, the address is that of
 * the byte after the first one of the interrupted instruction.
 */
__extension__	/* C90 and C++ have no arrays without a size */
struct profil_stack {
	__u32 nr;
	__u32 end;
	__aligned_u64 innermost[2];
	__aligned_u64 addresses[];
};

#endif /* _UAPI_LINUX_PROFIL_H */
