// SPDX-License-Identifier: GPL-2.0
/*
 * Random ioctls: valid, nearly valid and nonsense, on memory of every kind, from several processes,
 * which also change that memory, fork, call exec, exit and are killed.
 *
 * PROFIL_FUZZ_CALLS (1000000) is the number of calls of all processes together,
 * PROFIL_FUZZ_SECONDS (60) the time limit, and PROFIL_FUZZ_SEED the seed. A process is named by its
 * seat and by the number of processes that had the seat before. Its decisions depend only on this
 * name, on the seed and on races.
 *
 * Invariants: each error is one that uapi/linux/profil.h documents for the command. A call that
 * fails does not change its argument, and one that succeeds writes no more than the argument's
 * size. Statistics add up. A process that is left alone finds each hit in a counter, and the bytes
 * around its counters unchanged. Processes die when they are killed, and at the end nothing is
 * locked, pinned or in use.
 *
 * Most actions are bursts of calls, and most calls are cheap (small buffers, few ranges, the
 * scheduler's ticks), so that many calls run between the slow changes of memory and processes.
 * If the kernel has CONFIG_KCOV, as that of vm/run --debug, coverage guides the calls: when a call
 * is the first to reach a place of the module, other calls repeat most of its decisions. The
 * decisions then depend on the places that all processes have reached.
 *
 * No call may harm the caller: addresses for output are on the thread's desk, in memory that exists
 * for this purpose, or cannot be written at all.
 */
#include "kselftest_harness.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "crowd.h"
#include "failures.h"
#include "frames.h"
#include "fuse.h"
#include "ioctls.h"
#include "kcov.h"
#include "loop.h"
#include "pci.h"
#include "swap_area.h"
#include "unwind.h"
#include "usage.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif

/* Since Linux 6.8. */
#define UFFD_MOVE		_IOWR(UFFDIO, 0x05, struct move)
struct move {
	u64 dst, src, len, mode;
	int64_t moved;
};

/* A descriptor, beside those of crowd.h */
#define KCOV_FD		95	/* KCOV of a process's first thread */

#define SEATS		16U
#define PIDS		32U
#define KIDS		4U
#define RANGES		200U	/* that fit on a desk: the maximum of an array */

/* Shared by all processes. */
struct shared {
	atomic_uint stop;
	atomic_ullong calls;
	u64 most;			/* limit on the number of calls */
	atomic_uint at[SEATS];		/* calls of the process on this seat */
	u32 life[SEATS];		/* how many processes had this seat */
	struct failures failures;
	atomic_int pids[PIDS];
	atomic_ullong spaces[PIDS];
	atomic_ullong outcomes[16][136];	/* by command and errno */
	atomic_ullong mapped[KINDS];	/* how often memory of this kind was mapped */
	atomic_int why_not[KINDS];	/* the last errno; or 0 */
	atomic_ullong answers;
	atomic_ullong ticks, hits;	/* in all statistics that were checked */
	atomic_ullong quiet, quiet_hits;	/* in quiet sessions */
	atomic_ullong faults;		/* pages that were resolved late */
	atomic_ullong moves;		/* by UFFDIO_MOVE */
	atomic_ullong stuck;		/* processes killed while they waited for a page */
	atomic_ullong clean;		/* processes that checked for locked memory at the end */
	struct kcov_shared kcov;
};

static struct shared *shared;
static u32 seat;
static u64 vdso;
static atomic_bool ending;	/* asks all threads to end */
static atomic_bool stop_faults;	/* asks the thread that resolves page faults to end */

#define fail(format, ...)							\
	failures_note(&shared->failures, "process %u.%u, call %u: " format,	\
		      seat, shared->life[seat], shared->at[seat], ##__VA_ARGS__)

/*
 * The desk of a thread: areas for arguments and results, each followed by an inaccessible page
 */

enum { ARG, STATS, ARRAY, OUT, RACED, AREAS };

#define AREA_PAGES	4
#define AREA_SIZE	(AREA_PAGES * PAGE)
#define POISON		0xc5
#define STATS_SIZE	512	/* of statistics and the bytes around them */

static __thread char *area[AREAS];

static char *area_end(unsigned int i)
{
	return area[i] + AREA_SIZE;
}

static void desk_make(void)
{
	for (unsigned int i = 0; i < AREAS; i++)
		area[i] = pages_guarded(AREA_PAGES);
}

static void desk_free(void)
{
	for (unsigned int i = 0; i < AREAS; i++)
		munmap(area[i], AREA_SIZE + PAGE);
}

/*
 * Addresses and numbers
 */

static u64 any_buffer(struct actor *a)
{
	char *slot = any_slot(a), *p = slot + any(a, SLOT_PAGES) * PAGE;

	switch (any(a, 8)) {
	case 0:
		return addr(p) + PAGE - 8 * (1 + any(a, 4));
	case 1:
		return addr(slot) + SLOT_SIZE - 8 * (1 + any(a, 2000));
	case 2 ... 4:
		return addr(p) + 8 * any(a, 512);
	default:
		return addr(p);
	}
}

/* Returns an address that cannot be written. */
static u64 any_wild(struct actor *a)
{
	return ONE_OF(a, u64,
		      0, 8, PAGE, vdso, vdso - PAGE, vdso + 8, addr(SLOT(0)) - PAGE,
		      addr(SLOT(SLOTS)) + PAGE, addr(SLOT(1)) - 8, 0x7ffffffff000, 0x7fffffffeff8,
		      0x800000000000, 1ULL << 63, 0xffff888000000000, 0xffffffff81000000,
		      0xffffffffff600000, -PAGE, -8, -1);
}

static u64 any_number(struct actor *a)
{
	u64 number = ONE_OF(a, u64,
			    0, 1, 2, 3, 4, 7, 8, 16, 255, 256, 1000, 4095, 4096, 4097, 8192, 65535,
			    65536, 65537, 131072, 1 << 20, (1 << 20) + 1, 1 << 24, INT32_MAX,
			    1ULL << 31, UINT32_MAX, 1ULL << 32, 1ULL << 47, INT64_MAX, 1ULL << 63,
			    -8, -2, -1, 9999, 10000, 49999, 50000, 1000000, 1000000000);

	return number + (one_in(a, 8) ? any(a, 3) - 1ULL : 0);
}

static u64 random64(struct actor *a)
{
	return (u64)any(a, 1U << 31) << 33 ^ (u64)any(a, 1U << 31) << 12 ^ any(a, 1U << 12);
}

static u64 any_u64(struct actor *a)
{
	switch (any(a, 5)) {
	case 0:
		return any_buffer(a) + any(a, 9);
	case 1:
		return any_wild(a);
	case 2:
		return random64(a) >> any(a, 64);
	default:
		return any_number(a);
	}
}

/* Returns true if the kernel can write at @p without harm to this process. */
static bool harmless(u64 p)
{
	unsigned char in_memory;

	if (p >= addr(SLOT(0)) - SLOT_SIZE && p < addr(SLOT(SLOTS)))
		return true;
	if (p < 16 * PAGE || p >= 0x7ffffffff000 || (p >= vdso - 4 * PAGE && p < vdso + PAGE))
		return true;
	return mincore((void *)(p & -PAGE), 1, &in_memory) < 0 && errno == ENOMEM;
}

/* Returns an address for @size bytes of output. */
static u64 any_out(struct actor *a, u64 size)
{
	switch (any(a, 12)) {
	case 0:
		return any_buffer(a);
	case 1:
		return any_wild(a);
	case 2:
		return 0;
	default:
		return addr(area_end(OUT)) - (size > AREA_SIZE ? AREA_SIZE : size);
	}
}

/* Changes one word in the @n bytes at @bytes. */
static void mutate(struct actor *a, void *bytes, u32 n)
{
	u32 *words = bytes, i;
	u64 *longs = bytes;

	if (n < 8)
		return;
	i = any(a, n / 4);
	switch (any(a, 5)) {
	case 0:
		words[i] ^= 1U << any(a, 32);
		break;
	case 1:
		words[i] = any_number(a);
		break;
	case 2:
		words[i] += any(a, 5) - 2;
		break;
	default:
		longs[i / 2] = any_u64(a);
		break;
	}
}

/*
 * Arguments
 */

/* Puts @n elements of @size bytes into memory, mostly at the end of an area. */
static u64 array(struct actor *a, const void *elements, u32 n, u32 size)
{
	struct iovec from = { .iov_base = (void *)elements, .iov_len = n * size };
	struct iovec to = { .iov_len = from.iov_len };
	char *p = area_end(ARRAY) - from.iov_len;

	if (one_in(a, 50))
		return any_u64(a);
	if (one_in(a, 20)) {
		/*
		 * Writes to any kind of memory; if that cannot be written, the call fails without a
		 * signal.
		 */
		to.iov_base = (void *)(any_buffer(a) & -8ULL);
		process_vm_writev(getpid(), &from, 1, &to, 1, 0);
		return addr(to.iov_base);
	}
	if (from.iov_len)
		memcpy(p, elements, from.iov_len);
	return addr(p) - (one_in(a, 60) ? any(a, 64) : 0);
}

static u64 any_counters(struct actor *a)
{
	switch (any(a, 64)) {
	case 0:
		return any(a, one_in(a, 32) ? 300000 : 10000);
	case 1:
		return any_number(a);
	case 2:
	case 3:
		return 0;
	default:
		return 1 + any(a, one_in(a, 8) ? 3000 : 200);
	}
}

static void take_pcs(struct profil_range *range)
{
	range->flags = PROFIL_RANGE_PCS;
	range->width = 8;
	range->scale = 65536;
	range->granule = 1;
	range->step = 1;
}

static struct profil_range any_range(struct actor *a, u64 start, u64 end)
{
	struct profil_range range = range_of(start, end, NULL, any_counters(a),
					     ONE_OF(a, u32, 2, 4, 8));

	range.buffer = any_buffer(a);
	/* Complete pages, which no other range needs. */
	if (range.buffer % PAGE == 0 && one_in(a, 2))
		range.nr_counters = (1 + any(a, 3)) * PAGE / range.width;
	range.scale = one_in(a, 4) ? 0 : one_in(a, 3) ? random64(a) : 65536U >> any(a, 8);
	range.granule = 1U << any(a, 6);
	range.step = 1U << any(a, 4);
	range.offset = one_in(a, 4) ? start - any(a, 64) : start;
	range.flags = any(a, 2);
	if (one_in(a, 32))
		take_pcs(&range);
	return range;
}

/* Sometimes makes the @n ranges at @r wrong. */
static void disturb_ranges(struct actor *a, struct profil_range *r, u32 n)
{
	if (n > 1 && one_in(a, 4)) {
		struct profil_range swap = r[0];

		r[0] = r[n - 1];
		r[n - 1] = swap;
	}
	if (n && one_in(a, 8)) {
		mutate(a, &r[any(a, n)], sizeof(r[0]));
		for (u32 i = 0; i < n; i++)
			if (!harmless(r[i].buffer))
				r[i].buffer = any_buffer(a);
	}
}

/* Sets *@ranges to the address of an array of ranges. Returns their number. */
static u32 any_ranges(struct actor *a, __u64 *ranges)
{
	static __thread struct profil_range r[RANGES];
	char *slot = one_in(a, 4) ? NULL : any_slot(a);	/* a slot for all buffers; or NULL */
	u64 text = addr(loops_text) + 8 * any(a, 24);
	u32 n = 1 + any(a, 3), i;

	if (one_in(a, 200))
		n = any(a, one_in(a, 8) ? RANGES + 1 : 20);
	for (i = 0; i < n; i++) {
		r[i] = any_range(a, text + 8 * i, text + 8 * (i + 1));
		if (slot)
			r[i].buffer = (r[i].buffer & (SLOT_SIZE - 1)) | addr(slot);
	}
	if (n == 1 && one_in(a, 4))
		take_pcs(&r[0]);
	if (n && text + 8 * n < loop_at(LOOPS) && one_in(a, 4))
		r[n - 1].end = n == 1 && one_in(a, 2) ? ~0ULL : loop_at(LOOPS);
	disturb_ranges(a, r, n);
	*ranges = array(a, r, n, sizeof(r[0]));
	return one_in(a, 50) ? any_number(a) : n;
}

static u64 any_period(struct actor *a)
{
	if (!one_in(a, 4))
		return 0;
	/* Samples with short periods cost so much CPU time that few calls would be made. */
	if (one_in(a, 40))
		return 50000 + any(a, 1000000);
	return one_in(a, 8) ? any_number(a) :
	       ONE_OF(a, u64, 3000000, 10000000, 50000000, 200000000);
}

/* Returns an address for statistics: mostly on the desk, between poison; 0 requests none. */
static u64 any_stats(struct actor *a)
{
	struct profil_stats s = { .size = sizeof(s), .scope = any(a, 2) };

	if (one_in(a, 5))
		return 0;
	if (one_in(a, 8))
		return any_out(a, sizeof(s));
	if (one_in(a, 8))
		s.size = any(a, one_in(a, 2) ? 5000 : sizeof(s) + 16);
	if (one_in(a, 16))
		mutate(a, &s, sizeof(s));
	memset(area[STATS], POISON, STATS_SIZE);
	memcpy(area[STATS] + 64, &s, sizeof(s));
	return addr(area[STATS]) + 64;
}

static pid_t any_pid(struct actor *a)
{
	switch (any(a, 12)) {
	case 0:
		return any_number(a);
	case 1:
		return 1 + any(a, 3);
	case 2:
		return getpid();
	case 3:
	case 4:
		return shared->pids[any(a, PIDS)];
	default:
		return 0;
	}
}

static u64 any_space(struct actor *a)
{
	switch (any(a, 6)) {
	case 0:
		return shared->spaces[any(a, PIDS)];
	case 1:
		return any_number(a);
	default:
		return PROFIL_SPACE_SELF;
	}
}

/*
 * Calls: one row for each command, with a function that builds its argument and a function that
 * handles success
 */

struct call {
	const struct command *command;
	unsigned int which;	/* index of the command that the kernel gets, or UNKNOWN */
	u32 cmd;
	bool session;		/* on the descriptor of a session */
	int fd;
	union argument arg;
	u32 filled;		/* bytes of @arg that are copied to @place */
	char *place;		/* the argument that the kernel gets */
	bool exact;		/* only the kernel changes @place, between poison */
	bool stats;		/* the statistics are in area[STATS] */
};

static void build_start(struct actor *a, union argument *arg)
{
	arg->start.scope = any(a, 2);
	arg->start.flags = any(a, 2);
	arg->start.modes = any(a, 4);
	arg->start.nr_ranges = any_ranges(a, &arg->start.ranges);
	arg->start.period = any_period(a);
	if (arg->start.period)
		arg->start.flags |= any(a, 2) ? PROFIL_START_JITTER : 0;
}

static void build_stop(struct actor *a, union argument *arg)
{
	arg->stop.scope = any(a, 2);
	arg->stop.stats = any_stats(a);
}

static void build_stats(struct actor *a, union argument *arg)
{
	arg->stats.scope = any(a, 2);
}

static void build_open(struct actor *a, union argument *arg)
{
	arg->open.modes = 1 + any(a, 3);
	arg->open.fork = any(a, 2);
	arg->open.exec = any(a, 2);
	if (one_in(a, 2))
		arg->open.nr_records = any(a, one_in(a, 60) ? 100000 : 300);
	if (arg->open.nr_records && one_in(a, 2))
		arg->open.stack_depth = one_in(a, 30) ? any_number(a) : any(a, 128);
	arg->open.period = any_period(a);
	if (arg->open.period)
		arg->open.flags = any(a, 2) ? PROFIL_OPEN_JITTER : 0;
}

static void build_describe(struct actor *a, union argument *arg)
{
	arg->describe.pid = any_pid(a);
	arg->describe.nr_ranges = one_in(a, 8) ? any_number(a) : any(a, RANGES);
	arg->describe.ranges = any_out(a, 32 * sizeof(struct profil_range));
	arg->describe.stats = any_stats(a);
}

static void build_attach(struct actor *a, union argument *arg)
{
	arg->attach.scope = one_in(a, 16) ? PROFIL_SCOPE_MACHINE : any(a, 2);
	arg->attach.pid = any_pid(a);
}

static void build_add(struct actor *a, union argument *arg)
{
	arg->add.nr_ranges = any_ranges(a, &arg->add.ranges);
	arg->add.space = any_space(a);
}

static void build_remove(struct actor *a, union argument *arg)
{
	arg->remove.space = any_space(a);
	arg->remove.start = addr(loops_text) + 8 * any(a, 32);
	arg->remove.end = arg->remove.start + 8 * any(a, 64);
	if (one_in(a, 3)) {
		arg->remove.start = 0;
		arg->remove.end = ~0ULL;
	}
}

static void build_disable(struct actor *a, union argument *arg)
{
	arg->disable.stats = any_stats(a);
}

static void build_snapshot(struct actor *a, union argument *arg)
{
	struct profil_copy copies[16];
	u32 n = any(a, one_in(a, 8) ? ARRAY_SIZE(copies) + 1 : 3);

	for (u32 i = 0; i < n; i++) {
		copies[i].from = any_buffer(a);
		copies[i].bytes = 8 * (u64)any(a, one_in(a, 16) ? 5000 : 100);
		if (one_in(a, 8))
			mutate(a, &copies[i], sizeof(copies[i]));
		if (!harmless(copies[i].from))
			copies[i].from = any_buffer(a);
		copies[i].to = any_out(a, copies[i].bytes);
	}
	arg->snapshot.flags = any(a, 2);
	arg->snapshot.nr_copies = one_in(a, 40) ? any_number(a) : n;
	arg->snapshot.copies = array(a, copies, n, sizeof(copies[0]));
	arg->snapshot.stats = any_stats(a);
}

/* Makes the table that of code made at run time, or removes that. */
static void set_code(struct actor *a, struct profil_unwind *unwind)
{
	unwind->flags = PROFIL_UNWIND_CODE;
	unwind->fd = -1;
	unwind->space = one_in(a, 2) ? shared->spaces[any(a, PIDS)] : any(a, 8);
	unwind->start = one_in(a, 8) ? any_u64(a) : any_buffer(a);
	unwind->start -= one_in(a, 40) ? 0 : unwind->start % PROFIL_UNWIND_CODE_SIZE;
	if (one_in(a, 3)) {
		unwind->nr_blocks = 0;
		unwind->nr_rows = 0;
		unwind->nr_rules = 0;
	}
}

static void build_unwind(struct actor *a, union argument *arg)
{
	struct {
		struct profil_unwind_rule rules[8];
		u32 rows[16];
		u32 blocks[512];
	} table = {};
	static int file = -1;
	static u64 offset;
	u64 start;

	if (file < 0) {
		file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		offset = text_offset(loops_text);
	}
	for (u32 i = 0; i < ARRAY_SIZE(table.rules); i++) {
		struct profil_unwind_rule *rule = &table.rules[i];

		rule->kind = any(a, PROFIL_UNWIND_REGISTER + 1);
		rule->number = rule->kind == PROFIL_UNWIND_REGISTER ? 6 + any(a, 9) :
			       rule->kind == PROFIL_UNWIND_SP_INDIRECT ? any(a, 256) : 0;
		if (rule->kind < PROFIL_UNWIND_SP || rule->kind == PROFIL_UNWIND_SIGNAL)
			continue;
		rule->cfa = one_in(a, 4) ? any_number(a) : 8 * any(a, 8);
		if (rule->kind != PROFIL_UNWIND_FP_INDIRECT)
			rule->fp = one_in(a, 4) ? any_number(a) : -8 * any(a, 4);
	}
	for (u32 i = 0; i < ARRAY_SIZE(table.rows); i++)
		table.rows[i] = (i * 60 + any(a, 50)) << 16 | any(a, ARRAY_SIZE(table.rules));
	/* All rows are in the last block, that of the loops. */
	arg->unwind.nr_blocks = offset / PROFIL_UNWIND_BLOCK + 1;
	arg->unwind.nr_rows = ARRAY_SIZE(table.rows);
	arg->unwind.nr_rules = ARRAY_SIZE(table.rules);
	if (one_in(a, 8))
		mutate(a, &table, sizeof(table));
	start = array(a, &table, 1, sizeof(table));
	arg->unwind.rules = start;
	arg->unwind.rows = start + ((char *)table.rows - (char *)&table);
	arg->unwind.blocks = start + ((char *)table.blocks - (char *)&table);
	arg->unwind.fd = one_in(a, 20) ? (int)any_number(a) : file;
	if (one_in(a, 8)) {
		arg->unwind.flags = PROFIL_UNWIND_VDSO;
		arg->unwind.fd = -1;
	} else if (one_in(a, 3)) {
		set_code(a, &arg->unwind);
	}
}

static void check_stats(const char *call, const struct profil_stats *s)
{
	const char *wrong = wrong_stats(s);

	shared->answers++;
	shared->ticks += s->ticks;
	shared->hits += s->hit;
	if (wrong)
		fail("%s: %s", call, wrong);
}

#define OUT_OF(type, member)	(1U << offsetof(struct type, member) / 8)

static const struct command {
	u32 weight;
	const char *name;
	u32 cmd;
	u32 size;		/* size of the argument */
	bool session;		/* on the descriptor of a session */
	bool result;		/* the kernel writes the argument back */
	void (*build)(struct actor *a, union argument *arg);	/* or NULL */
	u32 out;		/* bit i: the argument's i-th u64 is an address for output */
	int errors[7];		/* in addition to those of all commands */
} commands[] = {
	{ .weight = 3, IOCTL(QUERY, query), .result = true },
	{ .weight = 12, IOCTL(START, start), .build = build_start,
	  .errors = { ENOMEM, EPERM, EBUSY } },
	{ .weight = 8, IOCTL(STOP, stop), .build = build_stop, .out = OUT_OF(profil_stop, stats) },
	{ .weight = 12, IOCTL(STATS, stats), .result = true, .build = build_stats },
	{ .weight = 4, IOCTL(OPEN, open), .build = build_open,
	  .errors = { ENOMEM, EPERM, EMFILE, ENFILE } },
	{ .weight = 8, IOCTL(DESCRIBE, describe), .result = true, .build = build_describe,
	  .out = OUT_OF(profil_describe, ranges) | OUT_OF(profil_describe, stats),
	  .errors = { ENOMEM, EPERM, ESRCH, ENODEV } },
	{ .weight = 10, IOCTL(ATTACH, attach), .session = true, .result = true,
	  .build = build_attach, .errors = { ENOMEM, EPERM, EBUSY, ESRCH, ENODEV } },
	{ .weight = 14, IOCTL(ADD, add), .session = true, .build = build_add,
	  .errors = { ENOMEM, EPERM, ESRCH, ENODEV } },
	{ .weight = 8, IOCTL(REMOVE, remove), .session = true, .result = true,
	  .build = build_remove, .errors = { ENOMEM, EPERM, ESRCH, ENODEV } },
	{ .weight = 10, IOCTL(ENABLE, enable), .session = true,
	  .errors = { ENOMEM, EBUSY, ENODEV } },
	{ .weight = 8, IOCTL(DISABLE, disable), .session = true, .build = build_disable,
	  .out = OUT_OF(profil_disable, stats), .errors = { ENODEV } },
	{ .weight = 10, IOCTL(SNAPSHOT, snapshot), .session = true, .build = build_snapshot,
	  .out = OUT_OF(profil_snapshot, stats), .errors = { ENOMEM, EPERM, ENODEV } },
	{ .weight = 10, IOCTL(UNWIND, unwind), .session = true, .build = build_unwind,
	  .errors = { ENOMEM, EPERM, EBADF, EEXIST, ENOSPC, ENODEV, ENOENT } },
	{ .weight = 10, .name = "STATS of a descriptor", .cmd = PROFIL_IOC_STATS,
	  .size = sizeof(struct profil_stats), .session = true, .result = true,
	  .errors = { ENODEV } },
};

#define UNKNOWN	ARRAY_SIZE(commands)	/* in outcomes: no such command on that descriptor */

/* Returns true if the uapi header documents the error, or if @err is 0. */
static bool is_documented(unsigned int which, bool session, int err)
{
	static const int of_all[] = { 0, E2BIG, EOPNOTSUPP, EINVAL, EFAULT };
	bool found = false;

	/* Another thread replaces the descriptor, or there is none yet. */
	if (err == EBADF && session)
		return true;
	if (which == UNKNOWN)
		return err == ENOTTY;
	for (unsigned int i = 0; i < ARRAY_SIZE(of_all); i++)
		found |= of_all[i] == err;
	for (unsigned int i = 0; i < ARRAY_SIZE(commands[which].errors); i++)
		found |= commands[which].errors[i] == err;
	return found;
}

/* Checks that among the @n bytes at @is, only the @may bytes from @head on differ from @was. */
static void check_around(const char *call, const char *was, const char *is, u32 head, u32 may,
			 u32 n)
{
	if (!memcmp(was, is, n))
		return;
	for (u32 i = 0; i < n; i++)
		if (was[i] != is[i] && (i < head || i >= head + may)) {
			fail("%s: wrote byte %d of %u", call, (int)(i - head), may);
			return;
		}
}

static u32 any_size(struct actor *a, u32 known)
{
	switch (any(a, 5)) {
	case 0:
		return any(a, known + 1);
	case 1:
		return known + 1 + any(a, 64);
	case 2:
		return PAGE - 1 + any(a, 3);
	case 3:
		return any_number(a);
	default:
		return known & (4 * any(a, 2) - 1);
	}
}

/* Returns the index of @cmd on a session's or the device's descriptor, or UNKNOWN. */
static unsigned int command_of(u32 cmd, bool session)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].cmd == cmd && commands[i].session == session)
			break;
	return i;
}

/* In three of ten calls, makes the argument wrong: its size, one or two words, or all of it. */
static void change_argument(struct actor *a, struct call *call)
{
	const u32 size = call->command->size, chance = any(a, 100);

	if (chance < 10) {
		call->arg.size = any_size(a, size);
	} else if (chance < 26) {
		for (u32 n = 1 + any(a, 2); n; n--)
			mutate(a, &call->arg, size);
	} else if (chance < 30) {
		for (u32 i = 0; i < ARRAY_SIZE(call->arg.longs); i++)
			call->arg.longs[i] = one_in(a, 2) ? 0 : any_u64(a);
		if (one_in(a, 2))
			call->arg.size = size;
	}
}

static bool is_on_desk(u64 p)
{
	return (p >= addr(area[OUT]) && p < addr(area_end(OUT))) || p == addr(area[STATS]) + 64;
}

/* After all changes, the argument has no address for output that the caller needs. */
static void make_harmless(struct actor *a, struct call *call)
{
	u64 *longs = call->arg.longs;

	for (u32 i = 0; i < ARRAY_SIZE(call->arg.longs); i++)
		if (call->command->out & 1U << i && !harmless(longs[i]) && !is_on_desk(longs[i]))
			longs[i] = any_wild(a);
}

/* Clears all but the size, because another command interprets the argument differently. */
static void forget_argument(struct call *call)
{
	memset(call->arg.longs + 1, 0, sizeof(call->arg) - 8);
}

/* Rarely changes to another command, or to a descriptor of the wrong kind. */
static void change_command(struct actor *a, struct call *call)
{
	if (one_in(a, 100)) {
		call->cmd = one_in(a, 2) ? call->cmd ^ 1U << any(a, 32) : (u32)random64(a);
		forget_argument(call);
	}
	if (one_in(a, 200)) {
		call->session = !call->session;
		call->fd = call->session ? any_session(a) : device_fd();
		forget_argument(call);
	}
	call->which = command_of(call->cmd, call->session);
	if (call->which < UNKNOWN)
		call->command = &commands[call->which];
}

static struct call any_call(struct actor *a)
{
	const struct command *command = &commands[ANY_ROW(a, commands)];
	struct call call = {
		.command = command,
		.cmd = command->cmd,
		.session = command->session,
		.fd = command->session ? any_session(a) : device_fd(),
	};

	if (command->build)
		command->build(a, &call.arg);
	call.arg.size = command->size;
	change_argument(a, &call);
	make_harmless(a, &call);
	change_command(a, &call);
	call.filled = call.command->size;
	if (call.filled > sizeof(call.arg))
		call.filled = sizeof(call.arg);
	return call;
}

/*
 * Places for an argument
 *
 * Each function returns false if the argument cannot be there.
 */

static __thread char before[PAGE_MAX + 128], stats_before[STATS_SIZE];

/* The argument ends where the memory ends. */
static bool place_at_end(struct actor *a, struct call *call)
{
	u32 size = call->arg.size;
	char *p = area_end(ARG) - size;

	if (size > PAGE || size < 4)
		return false;
	memcpy(p, &call->arg, size < call->filled ? size : call->filled);
	if (size > call->filled)
		memset(p + call->filled, one_in(a, 4), size - call->filled);
	call->place = p;
	return true;
}

/* The memory ends before the argument does. */
static bool place_across_end(struct actor *a, struct call *call)
{
	char *p = area_end(ARG) - 8 * any(a, call->filled / 8 + 1);
	u32 room = area_end(ARG) - p;

	memcpy(p, &call->arg, room < call->filled ? room : call->filled);
	call->place = p;
	return true;
}

static bool place_as_array(struct actor *a, struct call *call)
{
	char *p = (char *)array(a, &call->arg, 1, call->filled);

	if (call->command->result && !harmless(addr(p)))
		p = area_end(ARRAY) - call->filled;
	call->place = p;
	return true;
}

static bool place_nowhere(struct actor *a, struct call *call)
{
	call->place = (char *)any_wild(a);
	return true;
}

/* Threads change the argument while the kernel reads it. */
static atomic_int racers;
static u32 *raced;

static bool place_in_race(struct actor *a, struct call *call)
{
	(void)a;
	if (raced != (u32 *)area[RACED] || !racers)
		return false;
	call->place = area[RACED];
	memcpy(call->place, &call->arg, call->filled);
	return true;
}

/*
 * Returns the number of bytes from @place on with known content. Another 64 are before them, and 64
 * behind them.
 */
static u32 room_of(const struct call *call)
{
	u32 size = call->arg.size;

	return size < sizeof(call->arg) ? sizeof(call->arg) : size > PAGE ? PAGE : size;
}

/*
 * If the size is larger than the argument, the bytes that follow are zeros, or one of them is not.
 */
static bool place_between_poison(struct actor *a, struct call *call)
{
	u32 size = call->arg.size, room = room_of(call), filled = call->filled;
	char *p = area[ARG] + 64;

	call->exact = true;
	memset(p - 64, POISON, room + 128);
	memcpy(p, &call->arg, filled);
	if (size > filled)
		memset(p + filled, 0, room - filled);
	if (size > filled && one_in(a, 4))
		p[filled + any(a, room - filled)] = 1;
	memcpy(before, p - 64, room + 128);
	for (u32 i = 0; i < ARRAY_SIZE(call->arg.longs); i++)
		call->stats |= call->command->out & 1U << i &&
			       call->arg.longs[i] == addr(area[STATS]) + 64;
	if (call->stats)
		memcpy(stats_before, area[STATS], sizeof(stats_before));
	call->place = p;
	return true;
}

/* If a function cannot place the argument, the next row is used. */
static const struct {
	u32 weight;
	bool (*place)(struct actor *a, struct call *call);
} places[] = {
	{ 10, place_at_end },
	{ 5, place_across_end },
	{ 3, place_as_array },
	{ 2, place_nowhere },
	{ 4, place_in_race },
	{ 76, place_between_poison },
};

static void place(struct actor *a, struct call *call)
{
	unsigned int i = ANY_ROW(a, places);

	while (!places[i].place(a, call))
		i++;
}

/*
 * Checks after the call
 */

static void check_argument(const struct call *call, int err)
{
	const struct command *c = call->command;
	u32 written = call->arg.size < c->size ? call->arg.size : c->size;

	check_around(c->name, before, call->place - 64, 64, err || !c->result ? 0 : written,
		     room_of(call) + 128);
}

static void check_stats_of(const struct call *call, int err)
{
	const struct profil_stats *s = (const void *)(area[STATS] + 64);
	u32 size = ((struct profil_stats *)(stats_before + 64))->size;
	u32 written = size < sizeof(*s) ? size : sizeof(*s);

	check_around(call->command->name, stats_before, area[STATS], 64, err ? 0 : written,
		     sizeof(stats_before));
	if (!err && size >= sizeof(*s))
		check_stats(call->command->name, s);
}

/* What follows a call that succeeded */
static void done(struct actor *a, const struct call *call, int result)
{
	switch (call->cmd) {
	case PROFIL_IOC_OPEN:
		fcntl(result, F_SETFL, O_NONBLOCK);
		/* Without a target, nearly all other calls would fail. */
		if (one_in(a, 2))
			descriptor_attach(result, any(a, 2), 0, NULL);
		move_fd(result, any_session(a), O_CLOEXEC);
		break;
	case PROFIL_IOC_ATTACH:
		if (call->exact)
			shared->spaces[any(a, PIDS)] = ((struct profil_attach *)call->place)->space;
		break;
	case PROFIL_IOC_STATS:
		if (call->exact && call->arg.size >= sizeof(struct profil_stats))
			check_stats(call->command->name, (struct profil_stats *)call->place);
		break;
	}
}

static int call(struct actor *a)
{
	struct call call = any_call(a);
	int result, err;

	place(a, &call);
	shared->calls++;
	shared->at[seat]++;
	result = ioctl(call.fd, call.cmd, call.place);
	err = result < 0 ? errno : 0;

	shared->outcomes[call.which][err < 136 ? err : 0]++;
	if (!is_documented(call.which, call.session, err))
		fail("%s: errno %d", call.which < UNKNOWN ? call.command->name : "no command", err);
	if (!err)
		done(a, &call, result);
	if (call.exact)
		check_argument(&call, err);
	if (call.stats)
		check_stats_of(&call, err);
	return -err;
}

/* With KCOV, half of the calls resemble one that was the first to reach a place. */
static int act_call(struct actor *a)
{
	struct tape tape = { 0 };
	int err;

	if (!kcov)
		return call(a);
	kcov_look(&shared->kcov);
	if (one_in(a, 2))
		kcov_recall(&shared->kcov, a, &tape);
	a->tape = &tape;
	err = call(a);
	a->tape = NULL;
	if (kcov_look(&shared->kcov))
		kcov_keep(&shared->kcov, &tape);
	return err;
}

static int act_calls(struct actor *a)
{
	for (u32 n = 1 + any(a, one_in(a, 8) ? 400 : 40); n && !shared->stop; n--)
		act_call(a);
	return 0;
}

/*
 * Memory
 */

static int act_map(struct actor *a)
{
	enum memory kind = one_in(a, 2) ? any(a, KINDS) : any(a, MEMFD_PRIVATE);
	int err = slot_map(a, kind, any(a, SLOTS), 8);

	if (err)
		shared->why_not[kind] = -err;
	else
		shared->mapped[kind]++;
	return err;
}

/* Registers a slot with userfaultfd. The thread below resolves its faults, if it runs. */
static int userfault(unsigned int i, u64 mode)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register slot = {
		.range = { .start = addr(SLOT(i)), .len = SLOT_SIZE },
		.mode = mode,
	};
	int fd = syscall(SYS_userfaultfd,
			 O_CLOEXEC | O_NONBLOCK | (geteuid() ? UFFD_USER_MODE_ONLY : 0));

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &slot) &&
	    slot.mode == UFFDIO_REGISTER_MODE_WP) {
		struct uffdio_writeprotect wp = {
			.range = slot.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
		};

		/*
		 * hugetlb has no zero pages. In Linux 6.1 a child that had them would never return
		 * from a call that writes there: see pinned.c.
		 */
		if (!(slot.ioctls & 1ULL << _UFFDIO_ZEROPAGE))
			madvise(SLOT(i), SLOT_SIZE, MADV_DONTFORK);
		ioctl(fd, UFFDIO_WRITEPROTECT, &wp);
	}
	return move_fd(fd, FAULT_FD + i, O_CLOEXEC);
}

static int act_userfault(struct actor *a)
{
	unsigned int i = any(a, SLOTS);

	if (one_in(a, 3))
		return close(FAULT_FD + i);
	return userfault(i, one_in(a, 3) ? UFFDIO_REGISTER_MODE_WP : UFFDIO_REGISTER_MODE_MISSING);
}

/* Moves pages from one slot to another, if the kernel has UFFDIO_MOVE. */
static int act_move_pages(struct actor *a)
{
	unsigned int i = any(a, SLOTS), tries = SLOTS;
	struct move move = {
		.src = addr(any_slot(a)) + any(a, SLOT_PAGES) * PAGE,
		.len = (1 + any(a, 4)) * PAGE,
	};
	int err;

	while (fcntl(FAULT_FD + i, F_GETFD) < 0 && --tries)
		i = (i + 1) % SLOTS;
	move.dst = addr(SLOT(i)) + any(a, SLOT_PAGES) * PAGE;
	/* From populated pages to empty ones of the same kind. */
	if (one_in(a, 2)) {
		mmap((void *)move.src, move.len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		madvise((void *)move.src, move.len, MADV_POPULATE_WRITE);
		mmap(SLOT(i), SLOT_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		userfault(i, UFFDIO_REGISTER_MODE_MISSING);
	}
	err = ioctl(FAULT_FD + i, UFFD_MOVE, &move) ? -errno : 0;
	shared->moves += move.moved > 0;
	return err;
}

/* Resolves the fault at @address in the slot of @fd. */
static void give_page(struct actor *a, int fd, u64 address, bool wp)
{
	static const char zeros[PAGE_MAX] PAGE_ALIGNED;
	struct uffdio_range page = { .start = address & -PAGE, .len = PAGE };
	struct uffdio_copy copy = { .dst = page.start, .src = addr(zeros), .len = PAGE };
	struct uffdio_zeropage zero = { .range = page };
	struct uffdio_writeprotect writable = { .range = page };

	if (wp)
		ioctl(fd, UFFDIO_WRITEPROTECT, &writable);
	else if (one_in(a, 2))
		ioctl(fd, UFFDIO_COPY, &copy);
	else
		ioctl(fd, UFFDIO_ZEROPAGE, &zero);
	if (one_in(a, 8))
		ioctl(fd, UFFDIO_WAKE, &page);
	shared->faults++;
}

static void *give_pages(void *actor)
{
	struct actor *a = thread_actor(actor);
	struct pollfd fds[SLOTS];
	struct uffd_msg message;

	while (!shared->stop && !ending && !stop_faults) {
		/* poll() returns at once for a closed descriptor. */
		for (unsigned int i = 0; i < SLOTS; i++) {
			fds[i].fd = fcntl(FAULT_FD + i, F_GETFD) < 0 ? -1 : (int)FAULT_FD + (int)i;
			fds[i].events = POLLIN;
		}
		if (poll(fds, SLOTS, 20) <= 0)
			continue;
		for (unsigned int i = 0; i < SLOTS; i++)
			if (fds[i].revents & POLLIN &&
			    read(fds[i].fd, &message, sizeof(message)) == sizeof(message) &&
			    message.event == UFFD_EVENT_PAGEFAULT)
				give_page(a, fds[i].fd, message.arg.pagefault.address,
					  message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP);
	}
	return NULL;
}

/*
 * Threads and processes
 */

static void act(struct actor *a, unsigned int steps);

/* A thread that changes the argument of place_in_race() */
static void *race(void *actor)
{
	struct actor *a = thread_actor(actor);
	volatile u32 *words = raced;

	racers++;
	for (u32 n = 1000 + any(a, 20000); n; n--) {
		words[0] = ONE_OF(a, u32, 0, 8, 24, 32, 40, 56, 64, 96, 168, 4096, 4097,
				  UINT32_MAX);
		words[1] = one_in(a, 4) ? any(a, 4) : 0;
	}
	racers--;
	return NULL;
}

static void *thread(void *actor)
{
	struct actor *a = thread_actor(actor);
	int fd = kcov_open();

	kcov_begin(fd);
	if (fd >= 0)
		close(fd);
	desk_make();
	shared->pids[any(a, PIDS)] = syscall(SYS_gettid);
	act(a, any(a, 200));
	desk_free();
	kcov_end();
	return NULL;
}

static int act_thread(struct actor *a)
{
	if (status_line("Threads") > 6)
		return -EAGAIN;
	if (one_in(a, 4) && raced == (u32 *)area[RACED])
		return actor_thread(a, race);
	return actor_thread(a, thread);
}

/* Call it in the first thread of a process. Returns 0 or a negative errno. */
static int kcov_move_fd(void)
{
	int fd = kcov_open();

	return fd < 0 ? fd : move_fd(fd, KCOV_FD, 0);
}

static pid_t kids[KIDS];

/* A process must die only by exit or by SIGKILL. */
static void check_status(pid_t pid, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fail("process %d died of signal %d", pid, WTERMSIG(status));
}

static int act_reap(struct actor *a)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	(void)a;
	if (pid <= 0)
		return -ECHILD;
	check_status(pid, status);
	for (unsigned int i = 0; i < KIDS; i++)
		if (kids[i] == pid)
			kids[i] = 0;
	return 0;
}

static int act_kill(struct actor *a)
{
	pid_t pid = kids[any(a, KIDS)];

	return pid ? kill(pid, SIGKILL) : -ESRCH;
}

static int act_fork(struct actor *a)
{
	struct actor b = another(a, a->depth + 1);
	unsigned int i = any(a, KIDS);
	pid_t pid;

	act_reap(a);
	if (a->depth || kids[i])
		return -EAGAIN;
	pid = fork();
	if (!pid) {
		raced = NULL;
		memset(kids, 0, sizeof(kids));
		kcov_end();
		close(KCOV_FD);
		if (kcov_move_fd() >= 0)
			kcov_begin(KCOV_FD);
		desk_make();
		shared->pids[any(&b, PIDS)] = getpid();
		act(&b, any(&b, 100));
		if (one_in(&b, 8))
			exec_self(&b, "live", seat);
		_exit(0);
	}
	if (pid > 0)
		kids[i] = pid;
	return pid < 0 ? -errno : 0;
}

static int act_run(struct actor *a)
{
	unsigned long n = 1UL << (8 + any(a, 12));

	/* A tick may follow any frame pointer. */
	if (one_in(a, 4))
		frames_loop_at(n, any_u64(a), any_u64(a), any_u64(a));
	else
		loop_run(any(a, LOOPS), n);
	return 0;
}

static int act_read(struct actor *a)
{
	/* A thread that waits in read() would not end. */
	int fd = any_session(a);
	size_t n = one_in(a, 8) ? any_number(a) % INT32_MAX : 6000;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	return read(fd, (void *)any_out(a, 6000), n) < 0;
}

static int act_poll(struct actor *a)
{
	struct pollfd p = { .fd = any_session(a), .events = POLLIN };

	return poll(&p, 1, any(a, 2)) < 0;
}

static const struct {
	u32 weight;
	int (*act)(struct actor *a);
} actions[] = {
	{ 500, act_calls },
	{ 25, act_map },
	{ 20, change_slot },
	{ 25, advise_slot },
	{ 6, act_userfault },
	{ 12, act_move_pages },
	{ 3, act_thread },
	{ 3, act_fork },
	{ 3, act_reap },
	{ 1, act_kill },
	{ 30, act_run },
	{ 3, act_close },
	{ 8, act_read },
	{ 2, act_poll },
	{ 3, act_limit },
};

static void act(struct actor *a, unsigned int steps)
{
	while (steps-- && !shared->stop && !ending) {
		actions[ANY_ROW(a, actions)].act(a);
		kcov_look(&shared->kcov);
		if (shared->calls >= shared->most)
			return;
	}
}

/*
 * A session that is left alone: each hit must be in a counter, and nothing else may change
 */

#define QUIET_SIZE	(16 * PAGE)

static u8 quiet_area[16 * PAGE_MAX] PAGE_ALIGNED;

static u64 taken_sum(const struct profil_range *r)
{
	u64 sum = 0;

	if (!(r->flags & PROFIL_RANGE_PCS))
		return counters_sum((void *)r->buffer, r->width, r->nr_counters);
	for (u64 i = 0; i < r->nr_counters; i++) {
		u64 pc = counter((void *)r->buffer, r->width, i);

		if (pc && (pc < r->start || pc >= r->end))
			fail("quiet: pc %#lx is not in the range", pc);
		sum += !!pc;
	}
	return sum;
}

struct quiet {
	struct profil_range range;
	struct profil_start start;
	int fd;			/* descriptor of the session, or -1 for the classic one */
};

/* Returns a session whose counters are somewhere in the area, between poison. */
static struct quiet any_quiet(struct actor *a)
{
	struct quiet q = {
		.range = any_range(a, addr(loops_text), loop_at(LOOPS)),
		.fd = -1,
	};
	struct profil_range *r = &q.range;

	q.start.modes = 1 + any(a, 3);
	q.start.scope = any(a, 2);
	q.start.period = one_in(a, 2) ? 0 : 500000 + any(a, 10000000);
	if (one_in(a, 2) && !(r->flags & PROFIL_RANGE_PCS)) {
		r->scale = 0;
		r->offset = r->start;
	}
	memset(quiet_area, POISON, QUIET_SIZE);
	r->buffer = addr(quiet_area) + 8 * any(a, QUIET_SIZE / 16);
	r->nr_counters = 1 + any(a, (addr(quiet_area) + QUIET_SIZE - r->buffer) / r->width);
	if (one_in(a, 2)) {
		r->buffer &= -PAGE;
		r->nr_counters = (1 + any(a, 4)) * PAGE / r->width -
				 (one_in(a, 2) ? any(a, 8) : 0);
	}
	memset((void *)r->buffer, 0, r->nr_counters * r->width);
	return q;
}

/* Returns 0 or a negative errno. */
static int quiet_start(struct actor *a, struct quiet *q)
{
	const struct profil_open open = { .modes = q->start.modes, .period = q->start.period };

	if (one_in(a, 2) || q->range.flags & PROFIL_RANGE_PCS)
		return session_start_as(q->start, &q->range, 1);
	q->fd = descriptor_open_as(open);
	if (q->fd < 0)
		return q->fd;
	return descriptor_begin(q->fd, q->start.scope, &q->range, 1);
}

static void check_quiet(const struct quiet *q, const struct profil_stats *s)
{
	const struct profil_range *r = &q->range;
	u64 begin = r->buffer - addr(quiet_area), end = begin + r->nr_counters * r->width;
	u64 sum = taken_sum(r);

	check_stats("quiet", s);
	if (sum != s->hit || s->end)
		fail("quiet: %llu hits, counted %lu, end %u (width %u, scale %u, flags %u)",
		     s->hit, sum, s->end, r->width, r->scale, r->flags);
	for (u64 i = 0; i < QUIET_SIZE; i++)
		if (quiet_area[i] != POISON && (i < begin || i >= end)) {
			fail("quiet: wrote byte %lu, which is not in [%lu, %lu)", i, begin, end);
			break;
		}
	shared->quiet++;
	shared->quiet_hits += s->hit;
}

static void quiet(struct actor *a)
{
	struct quiet q = any_quiet(a);
	int err = quiet_start(a, &q);
	struct profil_stats s;

	/* An exec does not change RLIMIT_MEMLOCK. */
	if (err && err != -EPERM && err != -ENOMEM)
		fail("quiet: cannot start: errno %d", -err);
	if (!err) {
		for (u32 n = 1 + any(a, 4); n; n--)
			loop_run(any(a, LOOPS), LOOP_BURST);
		err = q.fd < 0 ? session_stop(q.start.scope, &s) : descriptor_disable(q.fd, &s);
		if (err)
			fail("quiet: cannot stop: errno %d", -err);
		else
			check_quiet(&q, &s);
	}
	if (q.fd >= 0)
		close(q.fd);
}

/*
 * Processes: their start, their end and exec
 */

/* For await(): counts as progress, so that the watcher does not see a hang. */
static bool watched(bool cond)
{
	shared->at[seat]++;
	return cond;
}

/* Ends everything that this process started, and checks that nothing stays locked. */
static void end_clean(struct actor *a)
{
	ending = true;
	for (unsigned int i = 0; i < KIDS; i++)
		if (kids[i])
			kill(kids[i], SIGKILL);
	/* Without the userfaultfd no thread waits for a page any more. */
	close_range(FAULT_FD, FAULT_FD + SLOTS, 0);
	if (!await(watched(shared->stop ||
			   (status_line("Threads") == 1 && act_reap(a) == -ECHILD &&
			    waitpid(-1, NULL, WNOHANG) < 0))) || shared->stop)
		return;
	close_range(SESSION_FD, SESSION_FD + SESSIONS, 0);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	session_stop(PROFIL_SCOPE_THREAD, NULL);
	if (!await(watched(!pinned_bytes() || shared->stop)))
		fail("at the end %lu bytes are locked", pinned_bytes());
	shared->clean++;
}

static void __attribute__((noreturn)) live(struct actor *a)
{
	u64 until = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + 20000000000ULL;

	kcov_begin(KCOV_FD);
	desk_make();
	raced = (u32 *)area[RACED];
	shared->pids[any(a, PIDS)] = getpid();
	for (u32 n = any(a, 4); n; n--)
		quiet(a);
	for (unsigned int i = 0; i < SLOTS; i++)
		act_map(a);
	if (!one_in(a, 8))
		actor_thread(a, give_pages);
	for (u32 n = 1 + any(a, 4); n && cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < until; n--)
		act(a, 100);
	switch (any(a, 6)) {
	case 0:
		/* The other threads continue. For pthread_exit() see stress.c. */
		stop_faults = true;
		syscall(SYS_exit, 0);
		break;
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		exec_self(a, "live", seat);
		break;
	case 3:
		break;
	default:
		end_clean(a);
		break;
	}
	_exit(0);
}

/* The program after exec_self(). */
static __attribute__((constructor)) void new_program(int argc, char **argv)
{
	struct actor a = { 0 };
	const char *what;

	vdso = getauxval(AT_SYSINFO_EHDR);
	if (!executed(argc, argv, &a, &what, &seat))
		return;
	shared = shared_map(sizeof(*shared));
	live(&a);
}

/*
 * The process that watches the others
 */

FIXTURE(fuzz) {
	struct usage before;
	u32 seed, seconds;
	u32 seats;
	pid_t pids[SEATS];
	u32 at[SEATS];		/* calls when last seen */
	u64 since[SEATS];	/* and the time of their last change */
	char ksm[16], pages[16], expedited[16];
	pid_t fuse;
};

#define EXPEDITED	"/sys/kernel/rcu_expedited"

static void prepare_as_root(struct __test_metadata *_metadata, FIXTURE_DATA(fuzz) *self)
{
	char dir[] = "/tmp/fuzz.XXXXXX", path[64];
	int err;

	move_fd(pci_memory_open(), DEVICE_FD, O_CLOEXEC);
	file_exchange(KSM, "1", self->ksm, sizeof(self->ksm));
	file_exchange(HUGETLB_POOL, "8", self->pages, sizeof(self->pages));
	/* Without this setting the processes mostly wait for grace periods. */
	file_exchange(EXPEDITED, "1", self->expedited, sizeof(self->expedited));
	err = swap_start();
	if (err)
		TH_LOG("no swap: %s", strerror(-err));

	self->fuse = mkdtemp(dir) ? fuse_start(dir, self->seed) : -errno;
	if (self->fuse < 0) {
		TH_LOG("no FUSE: %s", strerror(-self->fuse));
		return;
	}
	snprintf(path, sizeof(path), "%s/" FUSE_FILE, dir);
	move_fd(open(path, O_RDWR | O_CLOEXEC), FILE_FD, O_CLOEXEC);
	/* The server runs as long as the file is open. */
	umount2(dir, MNT_DETACH);
	rmdir(dir);
}

FIXTURE_SETUP(fuzz)
{
	int err;

	ASSERT_DEVICE();
	shared = shared_make(sizeof(*shared));
	err = kcov_move_fd();
	close(KCOV_FD);
	if (err)
		TH_LOG("coverage does not guide the calls: %s: %s", KCOV, strerror(-err));

	shared->most = number_from("PROFIL_FUZZ_CALLS", 1000000);
	self->seconds = number_from("PROFIL_FUZZ_SECONDS", 60);
	self->seed = number_from("PROFIL_FUZZ_SEED", now_ns() / 1000);
	self->seats = sysconf(_SC_NPROCESSORS_ONLN) + 2;
	if (self->seats > SEATS)
		self->seats = SEATS;
	TH_LOG("PROFIL_FUZZ_SEED=%u PROFIL_FUZZ_CALLS=%lu PROFIL_FUZZ_SECONDS=%u, %u processes",
	       self->seed, shared->most, self->seconds, self->seats);
	for (unsigned int i = 0; i < PIDS; i++)
		shared->pids[i] = getpid();
	if (!geteuid())
		prepare_as_root(_metadata, self);
	else
		TH_LOG("left out, because not root: %s; not compared: %s",
		       "hugetlb, device memory, FUSE, swap, KSM, userfaultfd in the kernel",
		       "pins, vmalloc areas");
	self->before = usage();
	ASSERT_TRUE(module_is_built_in() || self->before.users > 0);
	self->before.percpu = LLONG_MAX / 2;	/* grows with the number of tasks */
}

FIXTURE_TEARDOWN(fuzz)
{
	if (geteuid())
		return;
	file_write(KSM, self->ksm);
	file_write(HUGETLB_POOL, self->pages);
	file_write(EXPEDITED, self->expedited);
	swap_stop();
	if (self->fuse > 0)
		kill(self->fuse, SIGKILL);
}

static pid_t sit_down(FIXTURE_DATA(fuzz) *self, u32 at)
{
	u64 key = (u64)self->seed << 32 | at << 24 | shared->life[at];
	struct actor a = { .random = key * 0x9e3779b97f4a7c15ULL | 1 };
	pid_t pid = fork();

	if (pid)
		return pid;
	any(&a, 2);
	a = another(&a, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	seat = at;
	kcov_move_fd();
	if (at % 2)
		become_user(USER);
	live(&a);
}

#define PATIENCE	1000000000ULL	/* ns; 90 times that for a process that waits for no page */

static void watch(FIXTURE_DATA(fuzz) *self, u32 i)
{
	u64 now = now_ns();
	static char threads[4096];

	if (self->at[i] != shared->at[i]) {
		self->at[i] = shared->at[i];
		self->since[i] = now;
		return;
	}
	if (now - self->since[i] < PATIENCE)
		return;
	threads_show(self->pids[i], threads, sizeof(threads));
	/* Does a thread wait for a page, from userfaultfd or FUSE? Only root sees the functions. */
	if (strstr(threads, "userfault") || strstr(threads, "fuse") || (geteuid() && i % 4)) {
		shared->stuck++;
	} else if (now - self->since[i] > 90 * PATIENCE) {
		seat = i;
		fail("hangs:%.400s", threads);
	} else {
		return;
	}
	kill(-self->pids[i], SIGKILL);
	self->since[i] = now;
}

static bool all_gone(FIXTURE_DATA(fuzz) *self)
{
	bool gone = true;
	int status;
	pid_t pid;

	for (unsigned int i = 0; i < self->seats; i++)
		if (self->pids[i] && !kill(-self->pids[i], SIGKILL))
			gone = false;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		check_status(pid, status);
	return gone;
}

/* Starts a process on each free seat. Returns their number, or a negative errno. */
static int seats_fill(FIXTURE_DATA(fuzz) *self)
{
	int filled = 0;

	for (u32 i = 0; i < self->seats; i++) {
		if (self->pids[i])
			continue;
		shared->life[i]++;
		self->pids[i] = sit_down(self, i);
		if (self->pids[i] < 0)
			return -errno;
		setpgid(self->pids[i], self->pids[i]);
		self->since[i] = now_ns();
		filled++;
	}
	return filled;
}

static void seats_empty(FIXTURE_DATA(fuzz) *self)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (u32 i = 0; i < self->seats; i++)
			if (self->pids[i] == pid) {
				/* This kills its children and threads, too. */
				kill(-pid, SIGKILL);
				self->pids[i] = 0;
				seat = i;
			}
		check_status(pid, status);
	}
}

static void show_outcomes(struct __test_metadata *_metadata)
{
	char line[400];
	size_t n;

	for (unsigned int c = 0; c <= UNKNOWN; c++) {
		n = 0;
		for (unsigned int i = 0; i < ARRAY_SIZE(shared->outcomes[c]); i++)
			if (shared->outcomes[c][i] && n < sizeof(line))
				n += snprintf(line + n, sizeof(line) - n, " %s %llu",
					      i ? strerrorname_np(i) : "done",
					      shared->outcomes[c][i]);
		TH_LOG("%s:%s", c < UNKNOWN ? commands[c].name : "no command", n ? line : " none");
	}
	for (unsigned int i = 0; i < KINDS; i++)
		if (shared->why_not[i] && !shared->mapped[i])
			TH_LOG("no memory of the kind %s: %s", kinds[i].name,
			       strerror(shared->why_not[i]));
	TH_LOG("statistics %llu with %llu ticks, %llu hits; quiet sessions %llu with %llu hits",
	       shared->answers, shared->ticks, shared->hits, shared->quiet, shared->quiet_hits);
	TH_LOG("pages resolved late %llu, moved %llu; stuck %llu; checked for locked memory %llu",
	       shared->faults, shared->moves, shared->stuck, shared->clean);
	if (shared->kcov.nr_places)
		TH_LOG("places of the module reached %u, calls kept %u",
		       shared->kcov.nr_places, shared->kcov.nr_kept);
}

TEST_F_TIMEOUT(fuzz, random_calls_break_no_invariant, 14400)
{
	u64 begin = now_ns(), end = begin + self->seconds * 1000000000ULL;
	const u64 minute = 60 * 1000000000ULL;
	u64 said = begin;
	unsigned int lives = 0, i;
	int filled;

	while (shared->calls < shared->most && !shared->failures.n && now_ns() < end) {
		filled = seats_fill(self);
		ASSERT_LE(0, filled);
		lives += filled;
		pause_ns(20000000);
		seats_empty(self);
		for (i = 0; i < self->seats; i++)
			if (self->pids[i])
				watch(self, i);
		if (now_ns() - said >= minute) {
			said += minute;
			TH_LOG("%lu min: %llu calls", (said - begin) / minute, shared->calls);
		}
	}
	shared->stop = 1;
	EXPECT_TRUE(await(all_gone(self))) {
		TH_LOG("a process does not die");
	}
	TH_LOG("%llu calls in %.1f s, by %u processes", shared->calls,
	       (now_ns() - begin) / 1e9, lives);
	show_outcomes(_metadata);
	EXPECT_NO_FAILURES(&shared->failures);

	expect_same_usage(_metadata, &self->before);

	/* The calls had an effect if each command succeeded at least once. */
	for (i = 0; i < UNKNOWN && shared->calls > 20000; i++) {
		EXPECT_LT(0U, shared->outcomes[i][0]) {
			TH_LOG("%s never succeeded", commands[i].name);
		}
	}
}

TEST_HARNESS_MAIN
