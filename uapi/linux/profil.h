/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * profil - execution time profile, counted by the kernel's scheduler tick
 *
 * The ABI of /dev/profil, a character device of the profil module.
 *
 * A *session* samples tasks at every scheduler *tick* that finds them running
 * and counts the sampled user pc in *ranges* of text, each with its counters in
 * a buffer of the caller. Each tick of a session ends in exactly one outcome:
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
 * A call that fails changes nothing: a session that was there goes on.
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
 *               that are written back)
 *   ENOMEM      the kernel has no memory for it
 *   EPERM       limits and rights: RLIMIT_MEMLOCK does not allow to lock the
 *               buffers
 *   EBUSY       a session is on already, or the scheduler tick cannot be hooked
 *               at this time (sysctl kernel.ftrace_enabled is 0)
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
#define PROFIL_IOC_STATS	_IO(PROFIL_IOC_MAGIC, 0x03)

/**
 * enum profil_hook - How the scheduler tick is reached
 * @PROFIL_HOOK_NONE: Not hooked now, since nobody profiles.
 * @PROFIL_HOOK_FTRACE: By ftrace.
 * @PROFIL_HOOK_KPROBE: By a kprobe.
 */
enum profil_hook {
	PROFIL_HOOK_NONE = 0,
	PROFIL_HOOK_FTRACE = 1,
	PROFIL_HOOK_KPROBE = 2,
};

/* Bits of profil_query.features */
#define PROFIL_FEATURE_PROCESS		(1ULL << 0)	/* PROFIL_SCOPE_PROCESS */
#define PROFIL_FEATURE_THREAD		(1ULL << 1)	/* PROFIL_SCOPE_THREAD */
#define PROFIL_FEATURE_SYSTEM		(1ULL << 2)	/* PROFIL_MODE_SYSTEM */
#define PROFIL_FEATURE_REPIN		(1ULL << 3)	/* buffers are followed, see START */

/**
 * struct profil_query - ioctl(PROFIL_IOC_QUERY)
 * @size: sizeof(struct profil_query).
 * @flags: Must be 0.
 * @tick_hz: Out: scheduler ticks per second of a busy CPU.
 * @hook: Out: enum profil_hook, the hook in place at this moment.
 * @tick_ns: Out: nanoseconds from one tick to the next.
 * @features: Out: PROFIL_FEATURE_* bits.
 * @widths: Out: the counter widths there are, a bitwise or of bytes (2|4|8).
 * @max_ranges: Out: most ranges in one session.
 * @max_granule: Out: largest granule, in bytes.
 * @max_step: Out: largest step.
 * @max_counters: Out: most counters of one range.
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
};

/**
 * enum profil_scope - Whom a session samples
 * @PROFIL_SCOPE_PROCESS: The calling process: all tasks that share its address
 *	space, now or later, into the same counters without a lost update. An
 *	address space has at most one such session.
 * @PROFIL_SCOPE_THREAD: The calling thread and no other. A thread has at most
 *	one such session, independent of its process's and of other threads'.
 */
enum profil_scope {
	PROFIL_SCOPE_PROCESS = 0,
	PROFIL_SCOPE_THREAD = 1,
};

/* Bits of profil_start.modes: which ticks a session counts */
#define PROFIL_MODE_USER	(1U << 0)	/* the tick found user code running */
#define PROFIL_MODE_SYSTEM	(1U << 1)	/* the kernel, on behalf of the task */

/* Bits of profil_range.flags */
#define PROFIL_RANGE_ROUND_UP	(1U << 0)	/* see struct profil_range */

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
 * Ranges of one session must not overlap in [start, end); their order is free.
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

/**
 * struct profil_start - ioctl(PROFIL_IOC_START)
 * @size: sizeof(struct profil_start).
 * @flags: PROFIL_START_* bits.
 * @scope: enum profil_scope.
 * @modes: PROFIL_MODE_* bits, at least one.
 * @nr_ranges: Number of ranges, from 0 to profil_query.max_ranges. A session
 *	without ranges, or without counters, is on: its ticks are all outside.
 * @__reserved: Must be 0.
 * @ranges: Address of an array of @nr_ranges struct profil_range.
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
 * no descriptor needs to be kept open. It is not inherited by fork. If the
 * buffer is unmapped, moved, truncated or made read-only, the session ends; the
 * statistics then say so. If other pages come in the place of the buffer's
 * (MADV_DONTNEED, a hole punched into a file), the session goes on in these; up
 * to one tick on each CPU may still be counted in the old page.
 *
 * A tick in kernel mode (system call, fault) is charged to the user instruction
 * that led there: for a system call the call's own instruction.
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
};

/**
 * enum profil_state - What became of a session
 * @PROFIL_STATE_OFF: There is none.
 * @PROFIL_STATE_ON: It is counting.
 * @PROFIL_STATE_ENDED: It ended by itself, see enum profil_end. Its statistics
 *	stay readable until the next start or stop in this scope. Its memory is
 *	no longer pinned, and a start need not say PROFIL_START_REPLACE.
 */
enum profil_state {
	PROFIL_STATE_OFF = 0,
	PROFIL_STATE_ON = 1,
	PROFIL_STATE_ENDED = 2,
};

/**
 * enum profil_end - Why a session ended by itself
 * @PROFIL_END_NONE: It did not.
 * @PROFIL_END_BUFFER: A buffer is no longer mapped and writable where it was.
 * @PROFIL_END_NOMEM: The kernel had no memory to follow a buffer.
 */
enum profil_end {
	PROFIL_END_NONE = 0,
	PROFIL_END_BUFFER = 1,
	PROFIL_END_NOMEM = 2,
};

/**
 * struct profil_stats - ioctl(PROFIL_IOC_STATS)
 * @size: sizeof(struct profil_stats).
 * @flags: Must be 0.
 * @scope: enum profil_scope: whose session is asked for.
 * @state: Out: enum profil_state.
 * @end: Out: enum profil_end.
 * @__reserved: Must be 0.
 * @ticks: Out: ticks of the session: user + system.
 * @hit: Out: ticks that raised a counter.
 * @outside: Out: ticks with a pc that no counter is meant for.
 * @saturated: Out: ticks whose counter was full.
 * @dropped: Out: ticks that could not be counted: the sum of the dropped_*.
 * @dropped_overrun: Out: while the buffer was being looked up again, more ticks
 *	came than are kept.
 * @dropped_buffer: Out: kept while the buffer was being looked up again, and then
 *	it was gone, or the session was stopped first.
 * @dropped_contended: Out: the counter was rewritten by others all the time.
 * @user: Out: ticks that found user code running.
 * @system: Out: ticks that found the kernel running for the task.
 * @unselected: Out: ticks of a mode that the session does not count. Not part
 *	of @ticks.
 * @missed: Out: ticks that never came although a sampled task was running: late
 *	timer interrupts that collapsed into one, a hook that was disarmed. Not
 *	part of @ticks. A lower bound, known from the next tick on.
 * @expected: Out: the CPU time that the scheduler gave to the tasks (of the
 *	starting process, or the thread) since the start, in ticks. To compare
 *	with @ticks + @unselected: they agree within the error of sampling.
 * @locked: Out: bytes pinned and charged to RLIMIT_MEMLOCK for the session.
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

#endif /* _UAPI_LINUX_PROFIL_H */
