// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the contract of uapi/linux/profil.h and profil.4: each errno of each ioctl, and the sizes
 * and fields of the structures. A call that fails must change nothing.
 *
 * Also built as a 32-bit program (abi_32), which must see the same results.
 */
#include "kselftest_harness.h"

#include <stddef.h>
#include <sys/utsname.h>

#include "ioctls.h"
#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "users.h"

#define KERNEL_ADDRESS	0xffff888000001000ULL
#define POISON		0xa5

#define END_OF(type, member) (offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define QUERY_LEAST	END_OF(profil_query, max_counters)
#define STATS_LEAST	END_OF(profil_stats, locked)
#define START_LEAST	END_OF(profil_start, ranges)
#define OPEN_LEAST	END_OF(profil_open, nr_records)
#define UNWIND_LEAST	END_OF(profil_unwind, rules)

/* All ioctls of the device and of a session's descriptor, with the sizes of their structures. */
static const struct command {
	const char *name;
	unsigned int cmd;
	u32 size;
	u32 least;		/* size of the structure's first version; 0: the same as size */
	u32 other_flags;	/* that are known, but contradict the valid argument */
	bool out;		/* the kernel writes results into the argument */
	bool descriptor;
} commands[] = {
	{ IOCTL(QUERY, query), .least = QUERY_LEAST, .out = true },
	{ IOCTL(START, start), .least = START_LEAST, .other_flags = PROFIL_START_JITTER },
	{ IOCTL(STOP, stop) },
	{ IOCTL(STATS, stats), .least = STATS_LEAST, .out = true },
	{ IOCTL(OPEN, open), .least = OPEN_LEAST, .other_flags = PROFIL_OPEN_JITTER },
	{ IOCTL(DESCRIBE, describe), .out = true },
	{ IOCTL(STATS, stats), .least = STATS_LEAST, .out = true, .descriptor = true },
	{ IOCTL(ATTACH, attach), .out = true, .descriptor = true },
	{ IOCTL(ADD, add), .descriptor = true },
	{ IOCTL(REMOVE, remove), .out = true, .descriptor = true },
	{ IOCTL(ENABLE, enable), .descriptor = true },
	{ IOCTL(DISABLE, disable), .descriptor = true },
	{ IOCTL(SNAPSHOT, snapshot), .descriptor = true },
	{ IOCTL(UNWIND, unwind), .least = UNWIND_LEAST, .other_flags = PROFIL_UNWIND_CODE,
	  .descriptor = true },
};

/* Returns the command @cmd of the device or of a descriptor; NULL if there is none. */
static const struct command *command(unsigned int cmd, bool descriptor)
{
	for (const struct command *c = commands; c < commands + ARRAY_SIZE(commands); c++)
		if (c->cmd == cmd && c->descriptor == descriptor)
			return c;
	return NULL;
}

/* A loop over the commands of the device, or of a descriptor: c is declared by it. */
#define for_each_command(c, of_descriptor)						\
	for (const struct command *(c) = commands; (c) < commands + ARRAY_SIZE(commands); (c)++) \
		if ((c)->descriptor == (of_descriptor))

/*
 * Returns the size above @size that tests try next, if the kernel knows @known bytes. It compares
 * the rest word by word, so some sizes are enough; all sizes up to a page take long.
 */
static u32 size_after(u32 size, u32 known)
{
	do
		size++;
	while (size > known + 8 && size % 1021 && size < PAGE - 2);
	return size;
}

/*
 * The state in which the failing calls are made: no session, a classic session of either scope, or
 * a descriptor session, enabled or not. No failing call may change the session.
 */
static struct {
	int fd;			/* the descriptor that the calls are made on */
	int free_fd;		/* the lowest unused descriptor */
	bool on;
	bool descriptor;	/* the calls are those of a session's descriptor */
	u32 scope;
	__u64 ticks;
	__u64 locked;
	u16 *counters;		/* a page, for the session that is on */
	u16 *other;		/* a page, for the calls that must fail */
	struct profil_range range;
	struct profil_copy copy;
	struct profil_query limits;
	atomic_int tid;		/* a thread that is a possible further target */
} scene;

FIXTURE(failing) {
};

FIXTURE_VARIANT(failing) {
	bool on;
	u32 scope;
	bool descriptor;
};

FIXTURE_VARIANT_ADD(failing, off) { false, PROCESS, false };
FIXTURE_VARIANT_ADD(failing, off_thread) { false, THREAD, false };
FIXTURE_VARIANT_ADD(failing, process) { true, PROCESS, false };
FIXTURE_VARIANT_ADD(failing, thread) { true, THREAD, false };
FIXTURE_VARIANT_ADD(failing, descriptor_off) { false, PROCESS, true };
FIXTURE_VARIANT_ADD(failing, descriptor_on) { true, PROCESS, true };

static int scene_stats(struct profil_stats *stats)
{
	if (scene.descriptor)
		return descriptor_stats(scene.fd, stats);
	return session_stats(scene.scope, stats);
}

/* Runs until the session has @hits more. */
static bool scene_burn(u64 hits)
{
	struct profil_stats stats;
	u64 until;

	if (scene_stats(&stats))
		return false;
	until = stats.hit + hits;
	return loop_until(0, scene_stats(&stats) || stats.hit >= until) && stats.hit >= until;
}

static int lowest_fd(void)
{
	int fd = dup(device_fd());

	close(fd);
	return fd;
}

static void *wait_for_ever(void *unused)
{
	(void)unused;
	scene.tid = gettid();
	for (;;)
		pause();
	return NULL;
}

FIXTURE_SETUP(failing)
{
	struct profil_range range;
	pthread_t thread;

	ASSERT_EQ(0, device_query(&scene.limits));
	scene.counters = map_pages(1);
	scene.other = map_pages(1);
	scene.range = range_all(scene.other, PAGE / 2, 2);
	scene.on = variant->on;
	scene.scope = variant->scope;
	scene.descriptor = variant->descriptor;
	scene.fd = device_fd();
	scene.copy = (struct profil_copy) { addr(scene.counters), addr(scene.other), 2 };

	ASSERT_EQ(0, pinned_bytes());
	if (scene.descriptor) {
		/* The failing calls could add ranges or attach a second target. */
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ever, NULL));
		while (!scene.tid)
			sched_yield();
		scene.range.start = 0x1000;
		scene.range.end = 0x2000;
		range = range_of_loops(scene.counters, 2);
		scene.fd = must_sample(must_open(), THREAD, &range, 1);
	} else if (scene.on) {
		range = range_all(scene.counters, PAGE / 2, 2);
		ASSERT_EQ(0, session_start(scene.scope, 0, &range, 1));
	}
	if (scene.descriptor || scene.on) {
		ASSERT_TRUE(scene_burn(4));
		scene.ticks = 4;
		scene.locked = PAGE;
	}
	if (scene.descriptor && !scene.on)
		ASSERT_EQ(0, descriptor_disable(scene.fd, NULL));
	scene.free_fd = lowest_fd();
}

/* The session still has its range, and can be enabled and disabled. */
FIXTURE_TEARDOWN(failing)
{
	struct profil_stats stats;

	EXPECT_EQ(scene.free_fd, lowest_fd());
	EXPECT_EQ(scene.locked, pinned_bytes());
	if (scene.descriptor && !scene.on)
		EXPECT_EQ(0, descriptor_enable(scene.fd));
	if (scene.descriptor || scene.on) {
		EXPECT_TRUE(scene_burn(2));
		EXPECT_EQ(0, scene.descriptor ? descriptor_disable(scene.fd, &stats) :
						session_stop(scene.scope, &stats));
		EXPECT_LE(scene.ticks + 2, stats.ticks);
		EXPECT_EQ(stats.hit, counters_sum(scene.counters, 2, PAGE / 2));
		EXPECT_TRUE(accounted(&stats));
		if (!scene.descriptor)
			EXPECT_EQ(stats.hit, stats.ticks);
	}
	if (scene.descriptor)
		EXPECT_EQ(0, close(scene.fd));
	EXPECT_EQ(0, counters_sum(scene.other, 2, PAGE / 2));
	EXPECT_EQ(0, pinned_bytes());
}

static void expect_unchanged(struct __test_metadata *_metadata, int line)
{
	struct profil_stats stats;
	bool good;

	ASSERT_EQ(0, scene_stats(&stats));
	good = stats.state == (scene.on ? PROFIL_STATE_ON : PROFIL_STATE_OFF) &&
	       stats.ticks >= scene.ticks && stats.locked == scene.locked &&
	       accounted(&stats) && (!scene.descriptor || stats.targets == 1);
	EXPECT_TRUE(good) {
		TH_LOG("after line %d: state %u, %llu ticks (had %llu), %llu locked",
		       line, stats.state, stats.ticks, scene.ticks, stats.locked);
	}
	scene.ticks = stats.ticks;
}

#define EXPECT_UNCHANGED() expect_unchanged(_metadata, __LINE__)

#define EXPECT_FAILS(error, cmd, arg) do {					\
	EXPECT_EQ(-(error), descriptor_ioctl(scene.fd, cmd, arg)) {		\
		TH_LOG("command %#x", (unsigned int)(cmd));			\
	}									\
	EXPECT_UNCHANGED();							\
} while (0)

/* Passes the ranges to START or to ADD. */
static int take_ranges(const struct profil_range *ranges, u32 nr)
{
	if (scene.descriptor)
		return descriptor_add(scene.fd, PROFIL_SPACE_SELF, ranges, nr);
	return session_start(scene.scope, PROFIL_START_REPLACE, ranges, nr);
}

#define EXPECT_RANGES_FAIL(error, ranges, nr) do {				\
	EXPECT_EQ(-(error), take_ranges(ranges, nr));				\
	EXPECT_UNCHANGED();							\
} while (0)

/* The smallest unwind table: one block, with one row, which has rule 0. */
static const u32 unwind_block, unwind_row;
static const struct profil_unwind_rule unwind_rule;

/* Returns valid arguments, in which the test then changes a field. */
static union argument argument(const struct command *c)
{
#define VALID(NAME, type, ...) \
	[_IOC_NR(PROFIL_IOC_##NAME)] = { .type = { __VA_ARGS__ } }
	const union argument valid[256] = {
		VALID(START, start, .flags = PROFIL_START_REPLACE, .scope = scene.scope,
		      .modes = MODES_ALL, .nr_ranges = 1, .ranges = addr(&scene.range)),
		VALID(STOP, stop, .scope = scene.scope),
		VALID(STATS, stats, .scope = scene.scope),
		VALID(OPEN, open, .modes = MODES_ALL),
		VALID(ATTACH, attach, .scope = THREAD, .pid = scene.tid),
		VALID(ADD, add, .nr_ranges = 1, .ranges = addr(&scene.range)),
		VALID(REMOVE, remove, .end = UINT64_MAX),
		VALID(SNAPSHOT, snapshot, .flags = PROFIL_SNAPSHOT_RESET, .nr_copies = 1,
		      .copies = addr(&scene.copy)),
		VALID(UNWIND, unwind, .flags = PROFIL_UNWIND_VDSO, .fd = -1, .nr_blocks = 1,
		      .nr_rows = 1, .nr_rules = 1, .blocks = addr(&unwind_block),
		      .rows = addr(&unwind_row), .rules = addr(&unwind_rule)),
	};
#undef VALID
	union argument a;

	memset(&a, 0, sizeof(a));
	memcpy(&a, &valid[_IOC_NR(c->cmd)], c->size);
	a.size = c->size;
	return a;
}

static union argument argument_of(unsigned int cmd)
{
	return argument(command(cmd, scene.descriptor));
}

/* Sets one field of a valid argument. */
#define EXPECT_FIELD_FAILS(error, NAME, field, wrong) do {			\
	union argument a_ = argument_of(PROFIL_IOC_##NAME);			\
										\
	a_.field = wrong;							\
	EXPECT_FAILS(error, PROFIL_IOC_##NAME, &a_);				\
} while (0)

TEST_F(failing, unknown_commands_fail_with_ENOTTY)
{
	union argument a = argument_of(PROFIL_IOC_STATS);

	/* This includes the commands that only the other kind of descriptor has. */
	for (unsigned int nr = 0; nr < 256; nr++) {
		if (command(_IO(PROFIL_IOC_MAGIC, nr), scene.descriptor))
			continue;
		EXPECT_FAILS(ENOTTY, _IO(PROFIL_IOC_MAGIC, nr), &a);
		EXPECT_FAILS(ENOTTY, _IO(PROFIL_IOC_MAGIC, nr), NULL);
	}
	for (unsigned int nr = 0; nr < ARRAY_SIZE(commands); nr++) {
		/* The types begin at 1, because commands of type 0 are valid for every file. */
		for (unsigned int magic = 1; magic < 256; magic++)
			if (magic != PROFIL_IOC_MAGIC)
				EXPECT_EQ(-ENOTTY, descriptor_ioctl(scene.fd,
								    _IO(magic, nr), &a));
		EXPECT_FAILS(ENOTTY, _IOR(PROFIL_IOC_MAGIC, nr, a), &a);
		EXPECT_FAILS(ENOTTY, _IOW(PROFIL_IOC_MAGIC, nr, a), &a);
		EXPECT_FAILS(ENOTTY, _IOWR(PROFIL_IOC_MAGIC, nr, a), &a);
		EXPECT_FAILS(ENOTTY, _IOC(_IOC_NONE, PROFIL_IOC_MAGIC, nr, 1), &a);
	}
}

/* The arguments would be valid for the other kind of descriptor. */
TEST_F(failing, commands_of_the_other_kind_of_descriptor_fail_with_ENOTTY)
{
	for_each_command(c, !scene.descriptor) {
		union argument a = argument(c);

		if (!command(c->cmd, scene.descriptor))
			EXPECT_FAILS(ENOTTY, c->cmd, &a);
	}
}

TEST_F(failing, an_argument_that_is_not_readable_fails_with_EFAULT)
{
	u8 *p = pages_guarded(1);
	u8 *end = p + PAGE;

	for_each_command(c, variant->descriptor) {
		union argument a = argument(c);

		EXPECT_FAILS(EFAULT, c->cmd, NULL);
		EXPECT_FAILS(EFAULT, c->cmd, (void *)1);
		EXPECT_FAILS(EFAULT, c->cmd, end);
		EXPECT_FAILS(EFAULT, c->cmd, (void *)(uintptr_t)KERNEL_ADDRESS);
		EXPECT_FAILS(EFAULT, c->cmd, (void *)UINTPTR_MAX);

		/* First only the size is readable, then everything but the last byte. */
		memcpy(end - 4, &c->size, 4);
		EXPECT_FAILS(EFAULT, c->cmd, end - 4);
		memcpy(end - c->size + 1, &a, c->size - 1);
		EXPECT_FAILS(EFAULT, c->cmd, end - c->size + 1);

		/* The size includes a tail that is not readable. */
		a.size = c->size + 1;
		memcpy(end - c->size, &a, c->size);
		EXPECT_FAILS(EFAULT, c->cmd, end - c->size);
	}
}

TEST_F(failing, a_read_only_argument_for_results_fails_with_EFAULT)
{
	u8 *p = map_pages(1);

	for_each_command(c, variant->descriptor) {
		union argument a = argument(c);

		if (!c->out)
			continue;
		ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
		memcpy(p, &a, sizeof(a));
		ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ));
		EXPECT_FAILS(EFAULT, c->cmd, p);
		EXPECT_EQ(0, memcmp(p, &a, sizeof(a)));
	}
}

TEST_F(failing, a_size_below_the_first_version_is_refused)
{
	for_each_command(c, variant->descriptor) {
		union argument a = argument(c);
		union argument was;

		for (u32 size = 0; size < (c->least ?: c->size); size++) {
			a.size = size;
			was = a;
			EXPECT_FAILS(EINVAL, c->cmd, &a);
			EXPECT_EQ(0, memcmp(&was, &a, sizeof(a)));
		}
	}
}

/* For sizes up to a page, sets the first or the last byte of the unknown tail. */
TEST_F(failing, a_nonzero_unknown_tail_fails_with_E2BIG)
{
	u8 *p = pages_guarded(1);

	for_each_command(c, variant->descriptor) {
		union argument a = argument(c);

		for (u32 size = c->size + 1; size <= PAGE; size = size_after(size, c->size)) {
			u8 *arg = p + PAGE - size;

			memset(p, 0, PAGE);
			a.size = size;
			memcpy(arg, &a, c->size);
			arg[c->size] = 1;
			EXPECT_FAILS(E2BIG, c->cmd, arg);
			arg[c->size] = 0;
			arg[size - 1] = 0x80;
			EXPECT_FAILS(E2BIG, c->cmd, arg);
		}
	}
}

TEST_F(failing, a_size_above_a_page_fails_with_E2BIG)
{
	u8 *p = map_pages(17);

	for_each_command(c, variant->descriptor) {
		union argument a = argument(c);
		const u32 sizes[] = { PAGE + 1, PAGE + 8, 2 * PAGE, 16 * PAGE,
				      INT32_MAX, 0x80000000, UINT32_MAX };

		for (unsigned int j = 0; j < ARRAY_SIZE(sizes); j++) {
			a.size = sizes[j];
			memcpy(p, &a, c->size);
			memset(p + c->size, 0, sizeof(a) - c->size);
			EXPECT_FAILS(E2BIG, c->cmd, p);
		}
	}
}

TEST_F(failing, unknown_flags_are_refused)
{
	for_each_command(c, variant->descriptor) {
		for (unsigned int bit = 0; bit < 32; bit++) {
			union argument a = argument(c);

			if ((a.flags | c->other_flags) & 1U << bit)	/* REPLACE, RESET */
				continue;
			a.flags |= 1U << bit;
			EXPECT_FAILS(EOPNOTSUPP, c->cmd, &a);
		}
	}
}

TEST_F(failing, unknown_scopes_are_refused)
{
	u32 scope;

	for (unsigned int i = 0; i < 34; i++) {
		scope = i < 32 ? 1U << i : i == 32 ? 3 : UINT32_MAX;
		if (scope == THREAD)
			continue;
		/* STATS of a descriptor accepts no scope but 0. */
		EXPECT_FIELD_FAILS(variant->descriptor ? EINVAL : EOPNOTSUPP, STATS, stats.scope,
				   scope);
		if (!variant->descriptor) {
			EXPECT_FIELD_FAILS(EOPNOTSUPP, START, start.scope, scope);
			EXPECT_FIELD_FAILS(EOPNOTSUPP, STOP, stop.scope, scope);
		} else if (scope != PROFIL_SCOPE_MACHINE) {
			EXPECT_FIELD_FAILS(EOPNOTSUPP, ATTACH, attach.scope, scope);
		}
	}
	if (variant->descriptor)
		EXPECT_FIELD_FAILS(EINVAL, STATS, stats.scope, THREAD);
}

TEST_F(failing, nonzero_reserved_fields_are_refused)
{
	for (unsigned int bit = 0; bit < 32; bit++) {
		EXPECT_FIELD_FAILS(EINVAL, STATS, stats.__reserved, 1U << bit);
		if (variant->descriptor) {
			EXPECT_FIELD_FAILS(EINVAL, ADD, add.__reserved, 1U << bit);
			EXPECT_FIELD_FAILS(EINVAL, REMOVE, remove.__reserved, 1U << bit);
			EXPECT_FIELD_FAILS(EINVAL, SNAPSHOT, snapshot.__reserved, 1U << bit);
		} else {
			EXPECT_FIELD_FAILS(EINVAL, START, start.__reserved, 1U << bit);
			EXPECT_FIELD_FAILS(EINVAL, STOP, stop.__reserved, 1U << bit);
			EXPECT_FIELD_FAILS(EINVAL, OPEN, open.__reserved, 1U << bit);
		}
		scene.range.__reserved = 1U << bit;
		EXPECT_RANGES_FAIL(EINVAL, &scene.range, 1);
		scene.range.__reserved = 0;
	}
}

TEST_F(failing, unknown_modes_are_refused)
{
	if (variant->descriptor)
		return;
	EXPECT_FIELD_FAILS(EINVAL, OPEN, open.modes, 0);
	for (unsigned int bit = 0; bit < 32; bit++) {
		if (1U << bit & MODES_ALL)
			continue;
		EXPECT_FIELD_FAILS(EOPNOTSUPP, START, start.modes, 1U << bit);
		EXPECT_FIELD_FAILS(EOPNOTSUPP, START, start.modes, 1U << bit | PROFIL_MODE_USER);
		EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.modes, 1U << bit);
		EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.modes, 1U << bit | PROFIL_MODE_USER);
	}
}

TEST_F(failing, wrong_fields_of_OPEN_are_refused)
{
	struct rlimit was, none;
	union argument a;

	if (variant->descriptor)
		return;
	for (u32 value = PROFIL_FORK_SHARE + 1; value; value *= 2)
		EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.fork, value);
	EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.fork, UINT32_MAX);
	for (u32 value = PROFIL_EXEC_FOLLOW + 1; value; value *= 2)
		EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.exec, value);
	EXPECT_FIELD_FAILS(EOPNOTSUPP, OPEN, open.exec, UINT32_MAX);
	EXPECT_LE(1U, scene.limits.max_records);
	EXPECT_FIELD_FAILS(EINVAL, OPEN, open.nr_records, scene.limits.max_records + 1);
	EXPECT_FIELD_FAILS(EINVAL, OPEN, open.nr_records, 0x80000000);
	EXPECT_FIELD_FAILS(EINVAL, OPEN, open.nr_records, UINT32_MAX);
	/* There are no stacks without records. */
	for (u32 value = 1; value; value *= 2)
		EXPECT_FIELD_FAILS(EINVAL, OPEN, open.stack_depth, value);
	a = argument_of(PROFIL_IOC_OPEN);
	a.open.nr_records = 1;
	for (u32 value = scene.limits.max_stack_depth; value; value *= 2) {
		a.open.stack_depth = value + 1;
		EXPECT_FAILS(EINVAL, PROFIL_IOC_OPEN, &a);
	}

	/* Not EXPECT_FAILS(), which needs a free descriptor to read VmPin. */
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	a = argument_of(PROFIL_IOC_OPEN);
	none = was;
	none.rlim_cur = scene.free_fd;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, device_ioctl(PROFIL_IOC_OPEN, &a));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
	EXPECT_UNCHANGED();
}

TEST_F(failing, a_bad_pointer_to_ranges_is_refused)
{
	struct profil_range *end = (void *)pages_guarded(1);

	end += PAGE / sizeof(*end);
	end[-1] = scene.range;

	EXPECT_RANGES_FAIL(EFAULT, NULL, 1);
	EXPECT_RANGES_FAIL(EFAULT, end, 1);
	EXPECT_RANGES_FAIL(EFAULT, end - 1, 2);
	EXPECT_RANGES_FAIL(EFAULT, (void *)((u8 *)(end - 1) + 1), 1);
	EXPECT_RANGES_FAIL(EFAULT, (void *)(uintptr_t)KERNEL_ADDRESS, 1);
	EXPECT_RANGES_FAIL(EFAULT, (void *)UINTPTR_MAX, 1);
#if __SIZEOF_POINTER__ == 4
	/* The upper 32 bits of the pointer must not be ignored. */
	{
		const u64 high = 1ULL << 32, ranges = addr(&scene.range);
		struct profil_stats stats = { .size = sizeof(stats) };

		scene.range.buffer |= high;
		EXPECT_RANGES_FAIL(EFAULT, &scene.range, 1);
		scene.range.buffer ^= high;
		if (variant->descriptor) {
			EXPECT_FIELD_FAILS(EFAULT, ADD, add.ranges, ranges | high);
			EXPECT_FIELD_FAILS(EFAULT, ADD, add.ranges, ranges | UINT64_MAX << 32);
			EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.copies,
					   addr(&scene.copy) | high);
			EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.stats, addr(&stats) | high);
			if (variant->on)
				EXPECT_FIELD_FAILS(EFAULT, DISABLE, disable.stats,
						   addr(&stats) | high);
			scene.copy.to |= high;
			EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.stats, 0);
		} else {
			EXPECT_FIELD_FAILS(EFAULT, START, start.ranges, ranges | high);
			EXPECT_FIELD_FAILS(EFAULT, START, start.ranges, ranges | UINT64_MAX << 32);
			if (variant->on)
				EXPECT_FIELD_FAILS(EFAULT, STOP, stop.stats, addr(&stats) | high);
		}
	}
#endif
}

TEST_F(failing, more_ranges_than_the_limit_are_refused)
{
	struct profil_range *ranges = calloc(scene.limits.max_ranges + 1, sizeof(*ranges));

	ASSERT_NE(NULL, ranges);
	for (u32 i = 0; i <= scene.limits.max_ranges; i++) {
		ranges[i] = scene.range;
		ranges[i].start = i * 16ULL;
		ranges[i].end = ranges[i].start + 16;
	}
	EXPECT_RANGES_FAIL(EINVAL, ranges, scene.limits.max_ranges + 1);
	EXPECT_RANGES_FAIL(EINVAL, ranges, 0x80000000);
	EXPECT_RANGES_FAIL(EINVAL, ranges, UINT32_MAX);
}

/* Sets one wrong field at a time, in the first or in the second of two ranges. */
TEST_F(failing, wrong_fields_of_a_range_are_refused)
{
	const struct profil_range good[2] = {
		{
			.start = 0x1000, .end = 0x2000, .offset = 0x1000,
			.buffer = addr(scene.other), .nr_counters = 8,
			.scale = 65536, .granule = 2, .step = 1, .width = 4,
		}, {
			.start = 0x2000, .end = 0x3000, .offset = 0x1000,
			.buffer = addr(scene.other), .nr_counters = 8,
			.scale = 65536, .granule = 2, .step = 1, .width = 8,
		},
	};
	struct profil_range r[2];

	for (unsigned int i = 0; i < 2; i++) {
#define TRY(error, field, wrong) do {			\
	memcpy(r, good, sizeof(r));			\
	r[i].field = wrong;				\
	EXPECT_RANGES_FAIL(error, r, 2);		\
} while (0)

#define TRY_POWER_OF_2(field, max) do {					\
	TRY(EINVAL, field, 0);						\
	TRY(EINVAL, field, 3);						\
	TRY(EINVAL, field, 6);						\
	TRY(EINVAL, field, (max) - 1);					\
	TRY(EINVAL, field, (max) + 1);					\
	for (u64 value = 2ULL * (max); value <= UINT32_MAX; value *= 2)	\
		TRY(EINVAL, field, value);				\
	TRY(EINVAL, field, UINT32_MAX);					\
} while (0)

		TRY(EINVAL, end, r[i].start);
		TRY(EINVAL, end, r[i].start - 1);
		TRY(EINVAL, end, 0);
		TRY(EINVAL, start, r[i].end);
		TRY(EINVAL, start, UINT64_MAX);
		TRY(EINVAL, offset, r[i].start + 1);
		TRY(EINVAL, offset, UINT64_MAX);

		TRY_POWER_OF_2(granule, scene.limits.max_granule);
		TRY_POWER_OF_2(step, scene.limits.max_step);

		for (u64 value = 0; value <= 256; value++)
			if (value != 2 && value != 4 && value != 8)
				TRY(EOPNOTSUPP, width, value);
		TRY(EOPNOTSUPP, width, UINT32_MAX);
		TRY(EOPNOTSUPP, width, 0x80000000);
		for (unsigned int bit = 0; bit < 32; bit++)
			if (1U << bit & ~(PROFIL_RANGE_ROUND_UP | PROFIL_RANGE_PCS))
				TRY(EOPNOTSUPP, flags, 1U << bit);

		TRY(EINVAL, nr_counters, scene.limits.max_counters + 1);
		TRY(EINVAL, nr_counters, UINT64_MAX);
		TRY(EINVAL, nr_counters, 1ULL << 63);
		TRY(EINVAL, nr_counters, 1ULL << 62);	/* times the width: 0 modulo 2^64 */

		for (u64 value = 1; value < good[i].width; value++)
			TRY(EINVAL, buffer, good[i].buffer + value);
		TRY(EFAULT, buffer, 0);
		TRY(EFAULT, buffer, KERNEL_ADDRESS);
		TRY(EFAULT, buffer, -8ULL);		/* the end wraps */
		TRY(EFAULT, buffer, -64ULL);		/* ends at the end of the address space */
#undef TRY_POWER_OF_2
#undef TRY
	}
}

TEST_F(failing, overlapping_ranges_are_refused)
{
	const u64 wrong[][3][2] = {
		{ { 0x1000, 0x2000 }, { 0x1000, 0x2000 }, { 0x5000, 0x6000 } },
		{ { 0x1000, 0x2000 }, { 0x1fff, 0x3000 }, { 0x5000, 0x6000 } },
		{ { 0x1fff, 0x3000 }, { 0x1000, 0x2000 }, { 0x5000, 0x6000 } },
		{ { 0x1000, 0x2000 }, { 0x1800, 0x1801 }, { 0x5000, 0x6000 } },
		{ { 0x1800, 0x1801 }, { 0x5000, 0x6000 }, { 0x1000, 0x2000 } },
		{ { 0x1000, 0x2000 }, { 0x5000, 0x6000 }, { 0x1fff, 0x2001 } },
		{ { 0x5000, 0x6000 }, { 0x1000, UINT64_MAX }, { 0, 1 } },
		{ { 0, UINT64_MAX }, { 0x1000, 0x2000 }, { 0x5000, 0x6000 } },
		{ { 0, 1 }, { UINT64_MAX - 1, UINT64_MAX }, { 0x1000, UINT64_MAX } },
	};
	struct profil_range r[3];

	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		for (unsigned int j = 0; j < 3; j++) {
			r[j] = scene.range;
			r[j].start = wrong[i][j][0];
			r[j].end = wrong[i][j][1];
		}
		EXPECT_RANGES_FAIL(EINVAL, r, 3);
		/* Ranges without counters must not overlap, either. */
		for (unsigned int j = 0; j < 3; j++)
			r[j].nr_counters = 0;
		EXPECT_RANGES_FAIL(EINVAL, r, 3);
	}
}

/*
 * Passes statistics that are not writable or not valid to @cmd. @at is the offset of their address
 * in the argument.
 */
static void expect_bad_stats(struct __test_metadata *_metadata, unsigned int cmd, size_t at)
{
	union argument a = argument_of(cmd);
	struct profil_stats good = { .size = sizeof(good) };
	u8 *p = pages_guarded(2);
	u8 *end = p + 2 * PAGE;
	struct profil_stats stats;
	u32 size;

#define TRY_STATS(error, where) do {				\
	memcpy((u8 *)&a + at, &(u64) { where }, sizeof(u64));	\
	EXPECT_FAILS(error, cmd, &a);				\
} while (0)
	TRY_STATS(EFAULT, 1);
	TRY_STATS(EFAULT, addr(end));
	TRY_STATS(EFAULT, KERNEL_ADDRESS);
	TRY_STATS(EFAULT, UINT64_MAX);
	memcpy(end - sizeof(stats) + 1, &good, sizeof(stats) - 1);
	TRY_STATS(EFAULT, addr(end - sizeof(stats) + 1));

	/* The statistics are read-only, at first only their end, then all. */
	memcpy(p, &good, sizeof(good));
	memcpy(p + PAGE - sizeof(good) + 8, &good, sizeof(good));
	ASSERT_EQ(0, mprotect(p + PAGE, PAGE, PROT_READ));
	TRY_STATS(EFAULT, addr(p + PAGE - sizeof(good) + 8));
	ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ));
	TRY_STATS(EFAULT, addr(p));
	ASSERT_EQ(0, mprotect(p, 2 * PAGE, PROT_READ | PROT_WRITE));

	stats = good;
	for (size = 0; size < STATS_LEAST; size++) {
		stats.size = size;
		TRY_STATS(EINVAL, addr(&stats));
	}
	for (unsigned int bit = 0; bit < 32; bit++) {
		stats = good;
		stats.flags = 1U << bit;
		TRY_STATS(EOPNOTSUPP, addr(&stats));
		stats = good;
		stats.__reserved = 1U << bit;
		TRY_STATS(EINVAL, addr(&stats));
	}

	memset(p, 0, 2 * PAGE);
	for (size = sizeof(good) + 1; size <= PAGE; size = size_after(size, sizeof(good))) {
		memcpy(p, &size, sizeof(size));
		p[size - 1] = 1;
		TRY_STATS(E2BIG, addr(p));
		p[size - 1] = 0;
	}
	memcpy(p, &size, sizeof(size));	/* the rest is 0, but the size is above a page */
	TRY_STATS(E2BIG, addr(p));
#undef TRY_STATS
}

/* If the final statistics cannot be written, the session stays on. */
static void expect_bad_end(struct __test_metadata *_metadata, unsigned int cmd, size_t at)
{
	const u64 stats = addr(&(struct profil_stats){ .size = sizeof(struct profil_stats) });
	union argument a = argument_of(cmd);

	if (scene.on) {
		expect_bad_stats(_metadata, cmd, at);
		return;
	}
	/* There is no session to stop, with or without statistics. */
	EXPECT_FAILS(EINVAL, cmd, &a);
	memcpy((u8 *)&a + at, &stats, sizeof(stats));
	EXPECT_FAILS(EINVAL, cmd, &a);
}

TEST_F(failing, stop_with_bad_stats_leaves_the_session_on)
{
	if (!variant->descriptor)
		expect_bad_end(_metadata, PROFIL_IOC_STOP, offsetof(struct profil_stop, stats));
}

TEST_F(failing, disable_with_bad_stats_leaves_the_session_on)
{
	if (variant->descriptor)
		expect_bad_end(_metadata, PROFIL_IOC_DISABLE,
			       offsetof(struct profil_disable, stats));
}

/* Such a snapshot resets nothing, but it may have copied counters. */
TEST_F(failing, snapshot_with_bad_stats_resets_nothing)
{
	if (!variant->descriptor)
		return;
	expect_bad_stats(_metadata, PROFIL_IOC_SNAPSHOT, offsetof(struct profil_snapshot, stats));
	memset(scene.other, 0, PAGE);
}

TEST_F(failing, wrong_fields_of_SNAPSHOT_are_refused)
{
	const u32 too_many = 65536 + 1;
	u8 *p = pages_guarded(2) + PAGE, *end = p + PAGE;
	struct profil_copy *copies, good;
	union argument a;

	if (!variant->descriptor)
		return;
	ASSERT_LT(PAGE, addr(p));
	ASSERT_EQ(0, mprotect(p - PAGE, PAGE, PROT_NONE));
	EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.copies, 0);
	EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.copies, addr(end));
	EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.copies, addr(end - sizeof(good) + 1));
	EXPECT_FIELD_FAILS(EFAULT, SNAPSHOT, snapshot.copies, KERNEL_ADDRESS);

	a = argument_of(PROFIL_IOC_SNAPSHOT);
	copies = calloc(too_many, sizeof(*copies));
	ASSERT_NE(NULL, copies);
	a.snapshot.copies = addr(copies);
	a.snapshot.nr_copies = too_many;
	EXPECT_FAILS(EINVAL, PROFIL_IOC_SNAPSHOT, &a);
	a.snapshot.nr_copies = UINT32_MAX;
	EXPECT_FAILS(EINVAL, PROFIL_IOC_SNAPSHOT, &a);

	/* Either the first or the second of two copies is wrong. */
	good = scene.copy;
	good.bytes = 8;
	a.snapshot.nr_copies = 2;
	for (unsigned int i = 0; i < 2; i++) {
#define TRY_COPY(error, field, wrong) do {			\
	copies[0] = good;					\
	copies[1] = good;					\
	copies[i].field = wrong;				\
	EXPECT_FAILS(error, PROFIL_IOC_SNAPSHOT, &a);		\
} while (0)
		TRY_COPY(EINVAL, from, good.from + 1);
		TRY_COPY(EINVAL, bytes, 7);
		TRY_COPY(EINVAL, bytes, 1);
		TRY_COPY(EINVAL, bytes, (1ULL << 30) - 6);	/* together more than 1 GiB */
		TRY_COPY(EFAULT, from, 0);
		TRY_COPY(EFAULT, from, addr(end));
		TRY_COPY(EFAULT, from, addr(end) - 6);
		TRY_COPY(EFAULT, from, addr(p) - PAGE);
		TRY_COPY(EFAULT, from, KERNEL_ADDRESS);
		TRY_COPY(EFAULT, from, UINT64_MAX - 7);
		TRY_COPY(EFAULT, bytes, UINT64_MAX - 1);
		TRY_COPY(EFAULT, bytes, -good.from);
		TRY_COPY(EFAULT, to, 8);
		TRY_COPY(EFAULT, to, addr(end));
		TRY_COPY(EFAULT, to, addr(end) - 4);
		TRY_COPY(EFAULT, to, KERNEL_ADDRESS);
		TRY_COPY(EFAULT, to, UINT64_MAX - 3);
#undef TRY_COPY
	}
	/* These counters are readable, but cannot be reset. */
	copies[0] = good;
	copies[1] = (struct profil_copy) { addr(p), 0, 8 };
	ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ));
	EXPECT_FAILS(EFAULT, PROFIL_IOC_SNAPSHOT, &a);
	/* The call copied the first counters before it failed. */
	memset(scene.other, 0, PAGE);
	free(copies);
}

TEST_F(failing, wrong_fields_of_ADD_and_REMOVE_are_refused)
{
	union argument a;

	if (!variant->descriptor)
		return;
	EXPECT_RANGES_FAIL(EINVAL, &scene.range, 0);
	EXPECT_FIELD_FAILS(ESRCH, ADD, add.space, 1ULL << 60);
	EXPECT_FIELD_FAILS(ESRCH, ADD, add.space, UINT64_MAX);

	/* The end is the maximum, and the start is 0. */
	EXPECT_FIELD_FAILS(EINVAL, REMOVE, remove.start, UINT64_MAX);
	EXPECT_FIELD_FAILS(EINVAL, REMOVE, remove.end, 0);
	a = argument_of(PROFIL_IOC_REMOVE);
	a.remove.start = a.remove.end;
	a.remove.end = 1;
	EXPECT_FAILS(EINVAL, PROFIL_IOC_REMOVE, &a);
	EXPECT_FIELD_FAILS(ESRCH, REMOVE, remove.space, 1ULL << 60);
	EXPECT_FIELD_FAILS(ESRCH, REMOVE, remove.space, UINT64_MAX);
}

TEST_F(failing, wrong_fields_of_ATTACH_are_refused)
{
	union argument a;

	if (!variant->descriptor)
		return;
	EXPECT_FIELD_FAILS(ESRCH, ATTACH, attach.pid, INT32_MAX);
	EXPECT_FIELD_FAILS(EINVAL, ATTACH, attach.pid, -1);
	EXPECT_FIELD_FAILS(EINVAL, ATTACH, attach.pid, INT32_MIN);
	/* A thread of this process is a target already. */
	EXPECT_FIELD_FAILS(EBUSY, ATTACH, attach.pid, 0);
	a = argument_of(PROFIL_IOC_ATTACH);
	a.attach.pid = 0;
	a.attach.scope = PROCESS;
	EXPECT_FAILS(EBUSY, PROFIL_IOC_ATTACH, &a);
}

TEST_F(failing, a_second_start_or_enable_fails_with_EBUSY)
{
	const unsigned int cmd = variant->descriptor ? PROFIL_IOC_ENABLE : PROFIL_IOC_START;
	union argument a = argument_of(cmd);

	if (!variant->on)
		return;
	a.flags = 0;
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_FAILS(EBUSY, cmd, &a);
	if (!variant->descriptor) {
		a.start.nr_ranges = 0;
		EXPECT_FAILS(EBUSY, cmd, &a);
	}
}

TEST(the_device_node_has_mode_0666_and_no_read_write_or_mmap)
{
	struct stat st;
	char byte = 0;
	int fd;

	ASSERT_EQ(0, stat(PROFIL_DEVICE, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0666, st.st_mode & 07777);

	fd = open(PROFIL_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_ERROR(EINVAL, read(fd, &byte, 1));
	EXPECT_ERROR(EINVAL, write(fd, &byte, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(0, close(fd));
}

TEST(any_user_can_open_the_device_in_any_mode)
{
	const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_NONBLOCK };
	struct profil_query q = { .size = sizeof(q) };
	int fd;

	become_user(USER);
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = open(PROFIL_DEVICE, flags[i] | O_CLOEXEC);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, ioctl(fd, PROFIL_IOC_QUERY, &q));
		EXPECT_EQ(0, close(fd));
	}
}

TEST(a_classic_session_outlives_the_descriptor_of_its_start)
{
	struct profil_start start = {
		.size = sizeof(start),
		.scope = PROCESS,
		.modes = MODES_ALL,
	};
	struct profil_stats stats;
	int fd;

	fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PROFIL_IOC_START, &start));
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(0, burn_ticks(PROCESS, 2));
	EXPECT_EQ(0, session_stop(PROCESS, &stats));
	EXPECT_LE(2, stats.ticks);
}

TEST(query_tells_the_limits_and_the_tick)
{
	struct profil_query q;
	struct timespec tick;

	ASSERT_EQ(0, device_query(&q));
	EXPECT_EQ(sizeof(q), q.size);
	EXPECT_EQ(0, q.flags);
	EXPECT_LE(PROFIL_HOOK_NONE, q.hook);
	EXPECT_GE(PROFIL_HOOK_FTRACE, q.hook);
	EXPECT_EQ(PROFIL_FEATURE_PROCESS | PROFIL_FEATURE_THREAD | PROFIL_FEATURE_SYSTEM |
		  PROFIL_FEATURE_FORK | PROFIL_FEATURE_DESCRIPTOR |
		  PROFIL_FEATURE_RECORDS | PROFIL_FEATURE_CLOCK | PROFIL_FEATURE_PCS |
		  PROFIL_FEATURE_DESCRIBE | PROFIL_FEATURE_MACHINE | PROFIL_FEATURE_STACKS,
		  q.features & ~PROFIL_FEATURE_UNWIND);
	EXPECT_EQ(2 | 4 | 8, q.widths);
	EXPECT_LE(1000U, q.max_ranges);
	EXPECT_LE(1000U, q.max_records);
	EXPECT_LE(1U, q.max_sessions);
	EXPECT_EQ(127U, q.max_stack_depth);
#if defined(__x86_64__) || defined(__i386__)
	EXPECT_TRUE(q.features & PROFIL_FEATURE_UNWIND);
	EXPECT_EQ(1U << 24, q.max_unwind_rows);
	EXPECT_EQ(1024U, q.max_unwind_tables);
#else
	EXPECT_FALSE(q.features & PROFIL_FEATURE_UNWIND);
	EXPECT_EQ(0U, q.max_unwind_rows);
	EXPECT_EQ(0U, q.max_unwind_tables);
#endif
	EXPECT_LE(4, q.max_granule);		/* the historical families need this */
	EXPECT_EQ(0, q.max_granule & (q.max_granule - 1));
	EXPECT_LE(2, q.max_step);
	EXPECT_EQ(0, q.max_step & (q.max_step - 1));
	EXPECT_LE(1ULL << 31, q.max_counters);

	/* The coarse clocks advance once in a tick. */
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC_COARSE, &tick));
	EXPECT_EQ(tick.tv_sec * 1000000000ULL + tick.tv_nsec, q.tick_ns);
	EXPECT_EQ(q.tick_hz, (1000000000 + q.tick_ns / 2) / q.tick_ns);
}

TEST(query_tells_CONFIG_HZ)
{
	struct profil_query q;
	struct utsname uts;
	char path[128];
	long long hz;

	ASSERT_EQ(0, device_query(&q));
	ASSERT_EQ(0, uname(&uts));
	snprintf(path, sizeof(path), "/boot/config-%s", uts.release);
	hz = file_number(path, "CONFIG_HZ=");
	SKIP_IF(hz < 0, "no CONFIG_HZ in %s", path);
	EXPECT_EQ(hz, q.tick_hz);
}

TEST(query_tells_the_hook)
{
	struct profil_query q;

	ASSERT_EQ(0, session_start(THREAD, 0, NULL, 0));
	ASSERT_EQ(0, device_query(&q));
	EXPECT_EQ(PROFIL_HOOK_FTRACE, q.hook);
	EXPECT_EQ(0, session_stop(THREAD, NULL));
}

static bool poisoned(const void *p, size_t size)
{
	const u8 *byte = p;

	while (size--)
		if (*byte++ != POISON)
			return false;
	return true;
}

/* An answer does not depend on the previous content of the structure, and ends at its size. */
TEST(query_writes_all_of_the_structure_and_nothing_behind_it)
{
	struct profil_query q[3];

	memset(q, 0, sizeof(q));
	q[0].size = sizeof(q[0]);
	ASSERT_EQ(0, device_ioctl(PROFIL_IOC_QUERY, &q[0]));
	memset(&q[1], POISON, 2 * sizeof(q[1]));
	q[1].size = sizeof(q[1]);
	q[1].flags = 0;
	ASSERT_EQ(0, device_ioctl(PROFIL_IOC_QUERY, &q[1]));
	q[0].hook = q[1].hook;		/* the hook can come or go meanwhile */
	EXPECT_EQ(0, memcmp(&q[0], &q[1], sizeof(q[0])));
	EXPECT_TRUE(poisoned(&q[2], sizeof(q[2])));
}

static void poison_stats(struct profil_stats s[2], u32 scope)
{
	memset(s, POISON, 2 * sizeof(*s));
	s[0].size = sizeof(*s);
	s[0].flags = 0;
	s[0].scope = scope;
	s[0].__reserved = 0;
}

/* Calls a command that stores statistics at @to, whose size the caller has set. */
#define WITH_STATS(fd, NAME, type, to, ...)					\
	descriptor_ioctl(fd, PROFIL_IOC_##NAME, &(struct profil_##type){	\
		.size = sizeof(struct profil_##type), .stats = addr(to), __VA_ARGS__ \
	})

/* Checks the statistics of a session that is on, before those that are poisoned. */
static void expect_stats_of_on(struct __test_metadata *_metadata, const struct profil_stats s[2],
			       u32 scope)
{
	EXPECT_EQ(sizeof(*s), s->size);
	EXPECT_EQ(0, s->flags);
	EXPECT_EQ(scope, s->scope);
	EXPECT_EQ(PROFIL_STATE_ON, s->state);
	EXPECT_EQ(PROFIL_END_NONE, s->end);
	EXPECT_EQ(0, s->__reserved);
	EXPECT_TRUE(accounted(s));
	EXPECT_EQ(0, s->unselected);
	EXPECT_LT(s->missed, 1ULL << 32);
	EXPECT_LT(s->expected, 1ULL << 32);
	EXPECT_EQ(pinned_bytes(), s->locked);
	EXPECT_TRUE(poisoned(&s[1], sizeof(s[1])));
}

TEST(stats_write_all_of_the_structure_and_nothing_behind_it)
{
	struct profil_stats s[2], off;
	u16 counters[8] = {};
	struct profil_range range = range_all(counters, 8, 2);

	for (u32 scope = PROCESS; scope <= THREAD; scope++) {
		/* Without a session all fields are 0. */
		off = (struct profil_stats) { .size = sizeof(off), .scope = scope };
		poison_stats(s, scope);
		EXPECT_EQ(0, device_ioctl(PROFIL_IOC_STATS, s));
		EXPECT_EQ(0, memcmp(&off, s, sizeof(off)));
		EXPECT_TRUE(poisoned(&s[1], sizeof(s[1])));

		ASSERT_EQ(0, session_start(scope, 0, &range, 1));
		ASSERT_EQ(0, burn_ticks(scope, 2));
		poison_stats(s, scope);
		EXPECT_EQ(0, device_ioctl(PROFIL_IOC_STATS, s));
		expect_stats_of_on(_metadata, s, scope);
		EXPECT_LE(2, s->ticks);
		EXPECT_EQ(s->ticks, s->hit);

		/* STOP ignores the scope in the final statistics, and writes the state OFF. */
		poison_stats(s, POISON);
		EXPECT_EQ(0, WITH_STATS(device_fd(), STOP, stop, s, .scope = scope));
		EXPECT_EQ(sizeof(*s), s->size);
		EXPECT_EQ(0, s->flags);
		EXPECT_LE(2, s->ticks);
		EXPECT_EQ(s->ticks, s->hit);
		EXPECT_EQ(s->hit, counters[0]);
		EXPECT_TRUE(accounted(s));
		EXPECT_TRUE(poisoned(&s[1], sizeof(s[1])));
		counters[0] = 0;
	}
}

/*
 * Structures can be longer than the kernel knows, if the rest is 0; the rest stays 0. Passes @good
 * with @size bytes, and returns the result.
 */
static int call_longer(struct __test_metadata *_metadata, int fd, const struct command *c,
		       const union argument *good, u32 size)
{
	static u8 *p, zeros[PAGE_MAX];
	u8 *arg;
	int result;

	p = p ?: pages_guarded(1);
	arg = p + PAGE - size;
	memset(p, 0, PAGE);
	memcpy(arg, good, c->size);
	memcpy(arg, &size, sizeof(size));
	result = descriptor_ioctl(fd, c->cmd, arg);
	EXPECT_LE(0, result) {
		TH_LOG("%s, size %u", c->name, size);
	}
	EXPECT_EQ(0, memcmp(arg, &size, sizeof(size)));
	EXPECT_EQ(0, memcmp(arg + c->size, zeros, size - c->size));
	return result;
}

TEST(a_longer_structure_whose_tail_is_0_is_accepted)
{
	int result;

	scene.range = range_all(map_pages(1), 4, 8);
	for_each_command(c, false) {
		union argument good = argument(c);

		for (u32 size = c->size; size <= PAGE; size = size_after(size, c->size)) {
			if (c->cmd == PROFIL_IOC_STOP || c->cmd == PROFIL_IOC_DESCRIBE)
				ASSERT_EQ(0, session_start(PROCESS, 0, NULL, 0));

			result = call_longer(_metadata, device_fd(), c, &good, size);
			EXPECT_EQ(0, c->cmd == PROFIL_IOC_OPEN ? close(result) : result);
			if (c->cmd == PROFIL_IOC_START || c->cmd == PROFIL_IOC_DESCRIBE) {
				EXPECT_EQ(0, session_stop(PROCESS, NULL));
			} else if (c->cmd == PROFIL_IOC_STOP) {
				EXPECT_EQ(PROFIL_STATE_OFF, state_of(PROCESS));
			}
		}
	}
}

/* Repeats this test for each command of a descriptor, each time with a new session. */
TEST(a_longer_structure_of_a_descriptors_command_is_accepted)
{
	u64 *counters = map_pages(1);
	struct profil_range range = range_all(counters, 4, 8);
	struct profil_query limits;
	u64 ring;
	int fd;

	scene.range = range;
	scene.copy = (struct profil_copy) { addr(counters), addr(&counters[64]), 32 };
	ASSERT_EQ(0, device_query(&limits));
	for_each_command(c, true) {
		union argument good = argument(c);

		if (c->cmd == PROFIL_IOC_UNWIND && !(limits.features & PROFIL_FEATURE_UNWIND))
			continue;
		for (u32 size = c->size; size <= PAGE; size = size_after(size, c->size)) {
			fd = must_open(.nr_records = 1, .stack_depth = 1);
			ring = pinned_bytes();
			if (c->cmd != PROFIL_IOC_ATTACH)
				ASSERT_EQ(0, descriptor_attach(fd, THREAD, 0, NULL));
			if (c->cmd == PROFIL_IOC_REMOVE || c->cmd == PROFIL_IOC_SNAPSHOT)
				ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
			if (c->cmd == PROFIL_IOC_DISABLE)
				ASSERT_EQ(0, descriptor_enable(fd));

			EXPECT_EQ(0, call_longer(_metadata, fd, c, &good, size));
			EXPECT_EQ(c->cmd == PROFIL_IOC_ADD || c->cmd == PROFIL_IOC_SNAPSHOT ?
				  ring + PAGE : ring, pinned_bytes());
			EXPECT_EQ(0, close(fd));
		}
	}
}

/* A program with an older version of a structure gets the fields of that version. */
TEST(an_older_structure_gets_the_fields_of_its_version)
{
	u64 *counters = map_pages(1);
	struct profil_range range = range_burn(counters, 4, 8, 0);
	struct profil_stats full, stats[2];
	struct profil_query query[2], q;
	int fd;
	u32 size;

	ASSERT_EQ(0, device_query(&q));
	for (size = QUERY_LEAST; size < sizeof(q); size++) {
		memset(query, POISON, sizeof(query));
		query[0].size = size;
		query[0].flags = 0;
		EXPECT_EQ(0, device_ioctl(PROFIL_IOC_QUERY, query));
		q.size = size;
		q.hook = query[0].hook;		/* the hook can come or go meanwhile */
		EXPECT_EQ(0, memcmp(&q, query, size));
		EXPECT_TRUE(poisoned((u8 *)query + size, sizeof(query) - size));
	}

	/* Statistics by STATS, and by the other calls that write them. */
	fd = must_open();
	ASSERT_EQ(0, descriptor_attach(fd, THREAD, 0, NULL));
	ASSERT_EQ(0, descriptor_add(fd, PROFIL_SPACE_SELF, &range, 1));
	for (size = STATS_LEAST; size < sizeof(full); size++) {
		for (int way = 0; way < 5; way++) {
			poison_stats(stats, 0);
			stats[0].size = size;
			switch (way) {
			case 0:
				EXPECT_EQ(0, device_ioctl(PROFIL_IOC_STATS, stats));
				break;
			case 1:
				EXPECT_EQ(0, descriptor_ioctl(fd, PROFIL_IOC_STATS, stats));
				break;
			case 2:
				ASSERT_EQ(0, session_start(PROCESS, 0, NULL, 0));
				EXPECT_EQ(0, WITH_STATS(device_fd(), STOP, stop, stats));
				break;
			case 3:
				ASSERT_EQ(0, descriptor_enable(fd));
				EXPECT_EQ(0, WITH_STATS(fd, DISABLE, disable, stats));
				break;
			case 4:
				EXPECT_EQ(0, WITH_STATS(fd, SNAPSHOT, snapshot, stats));
				break;
			}
			EXPECT_EQ(size, stats[0].size);
			EXPECT_TRUE(poisoned((u8 *)stats + size, sizeof(stats) - size));
			EXPECT_GE(1U, stats[0].state);
			EXPECT_EQ(stats[0].ticks, stats[0].hit + stats[0].outside);
			EXPECT_EQ(way == 1 || way == 3 || way == 4 ? PAGE : 0,
				  stats[0].locked);
		}
	}
	EXPECT_EQ(0, close(fd));
}

TEST(answers_of_a_descriptor_write_all_of_the_structure)
{
	u64 *counters = map_pages(1);
	struct profil_range range = range_burn(counters, 4, 8, 0);
	struct profil_attach attach[2];
	struct profil_remove remove[2];
	struct profil_stats s[2], final;
	u64 left = 64 * 1024;
	int fd;

	ASSERT_OPEN(fd, 0);
	memset(attach, POISON, sizeof(attach));
	attach[0].size = sizeof(attach[0]);
	attach[0].flags = 0;
	attach[0].scope = THREAD;
	attach[0].pid = 0;
	ASSERT_EQ(0, descriptor_ioctl(fd, PROFIL_IOC_ATTACH, attach));
	EXPECT_EQ(sizeof(attach[0]), attach[0].size);
	EXPECT_EQ(THREAD, attach[0].scope);
	EXPECT_EQ(0, attach[0].pid);
	EXPECT_NE(PROFIL_SPACE_SELF, attach[0].space);
	EXPECT_FALSE(poisoned(&attach[0].space, sizeof(u64)));
	EXPECT_TRUE(poisoned(&attach[1], sizeof(attach[1])));

	/* An address space can be named by its id, also the caller's own. */
	ASSERT_EQ(0, descriptor_add(fd, attach[0].space, &range, 1));
	ASSERT_EQ(0, descriptor_enable(fd));
	while (!*(volatile u64 *)counters && --left)
		burn();

	poison_stats(s, 0);
	ASSERT_EQ(0, descriptor_ioctl(fd, PROFIL_IOC_STATS, s));
	expect_stats_of_on(_metadata, s, 0);
	EXPECT_LE(1, s->hit);
	EXPECT_EQ(0, s->unfollowed);
	EXPECT_EQ(1, s->targets);

	poison_stats(s, POISON);
	ASSERT_EQ(0, WITH_STATS(fd, SNAPSHOT, snapshot, s));
	EXPECT_EQ(PROFIL_STATE_ON, s->state);
	EXPECT_TRUE(accounted(s));
	EXPECT_TRUE(poisoned(&s[1], sizeof(s[1])));
	poison_stats(s, POISON);
	ASSERT_EQ(0, WITH_STATS(fd, DISABLE, disable, s));
	ASSERT_EQ(0, descriptor_stats(fd, &final));
	EXPECT_EQ(PROFIL_STATE_OFF, s->state);
	EXPECT_EQ(final.ticks, s->ticks);
	EXPECT_EQ(final.hit, s->hit);
	EXPECT_EQ(counters[0], s->hit);
	EXPECT_TRUE(accounted(s));
	EXPECT_TRUE(poisoned(&s[1], sizeof(s[1])));

	memset(remove, POISON, sizeof(remove));
	remove[0].size = sizeof(remove[0]);
	remove[0].flags = 0;
	remove[0].__reserved = 0;
	remove[0].space = attach[0].space;
	remove[0].start = 0;
	remove[0].end = UINT64_MAX;
	ASSERT_EQ(0, descriptor_ioctl(fd, PROFIL_IOC_REMOVE, remove));
	EXPECT_EQ(1, remove[0].nr_removed);
	EXPECT_EQ(sizeof(remove[0]), remove[0].size);
	EXPECT_EQ(attach[0].space, remove[0].space);
	EXPECT_EQ(UINT64_MAX, remove[0].end);
	EXPECT_TRUE(poisoned(&remove[1], sizeof(remove[1])));
	EXPECT_EQ(0, pinned_bytes());
	EXPECT_EQ(0, close(fd));
}

TEST(START_and_STOP_accept_a_read_only_argument)
{
	static const struct profil_start start = {
		.size = sizeof(start),
		.modes = PROFIL_MODE_USER,
	};
	static const struct profil_stop stop = {
		.size = sizeof(stop),
	};

	EXPECT_EQ(0, device_ioctl(PROFIL_IOC_START, &start));
	EXPECT_EQ(0, device_ioctl(PROFIL_IOC_STOP, &stop));
}

/*
 * Valid parameters
 */

FIXTURE(valid) {
	u64 *counters;
	struct profil_range range;
};

FIXTURE_SETUP(valid)
{
	ASSERT_DEVICE();
	self->counters = map_pages(1);
	self->range = range_all(self->counters, 4, 2);
}

FIXTURE_TEARDOWN(valid)
{
	EXPECT_EQ(0, pinned_bytes());
}

#define EXPECT_STARTS(ranges, nr) do {						\
	EXPECT_EQ(0, session_start(PROCESS, 0, ranges, nr));			\
	EXPECT_EQ(0, session_stop(PROCESS, NULL));				\
} while (0)

TEST_F(valid, without_ranges_or_counters_all_ticks_are_outside)
{
	struct profil_stats stats;

	self->range.nr_counters = 0;
	self->range.buffer = 1;
	for (unsigned int nr = 0; nr <= 1; nr++) {
		ASSERT_EQ(0, session_start(PROCESS, 0, &self->range, nr));
		EXPECT_EQ(0, burn_ticks(PROCESS, 3));
		EXPECT_EQ(-EBUSY, session_start(PROCESS, 0, &self->range, nr));
		ASSERT_STOP(PROCESS, &stats);
		EXPECT_LE(3, stats.ticks);
		EXPECT_EQ(stats.ticks, stats.outside);
		EXPECT_EQ(0, stats.locked);
	}
}

TEST_F(valid, every_parameter_is_accepted)
{
	const u32 scales[] = { 0, 1, 2, 3, 65535, 65536, 65537, 131072, INT32_MAX, UINT32_MAX };
	const u32 widths[] = { 2, 4, 8 };
	const u64 starts[] = { 0, 1, 0x1000, UINT64_MAX - 1 };
	struct profil_range *r = &self->range;
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	for (r->granule = 1; r->granule <= q.max_granule; r->granule *= 2)
		EXPECT_STARTS(r, 1);
	r->granule = 1;
	for (r->step = 1; r->step <= q.max_step; r->step *= 2) {
		r->flags = 0;
		EXPECT_STARTS(r, 1);
		r->flags = PROFIL_RANGE_ROUND_UP;
		EXPECT_STARTS(r, 1);
	}
	r->step = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(scales); i++) {
		r->scale = scales[i];
		EXPECT_STARTS(r, 1);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(widths); i++) {
		r->width = widths[i];
		r->buffer = addr(self->counters) + widths[i];
		EXPECT_STARTS(r, 1);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(starts); i++) {
		r->start = starts[i];
		r->offset = starts[i];
		EXPECT_STARTS(r, 1);
		r->offset = 0;
		EXPECT_STARTS(r, 1);
	}
	r->start = 0x1000;
	r->offset = 0x1000;
	r->end = 0x1001;
	EXPECT_STARTS(r, 1);
}

TEST_F(valid, every_set_of_modes_is_accepted)
{
	struct profil_start start = {
		.size = sizeof(start),
		.nr_ranges = 1,
		.ranges = addr(&self->range),
	};

	for (start.modes = 0; start.modes <= MODES_ALL; start.modes++) {
		EXPECT_EQ(0, device_ioctl(PROFIL_IOC_START, &start));
		EXPECT_EQ(0, session_stop(PROCESS, NULL));
	}
}

TEST_F(valid, adjacent_ranges_are_accepted_in_any_order)
{
	const int orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	const u64 bounds[] = { 0, 0x1000, 0x2000, UINT64_MAX };
	struct profil_range r[3];

	for (unsigned int i = 0; i < ARRAY_SIZE(orders); i++) {
		for (unsigned int j = 0; j < 3; j++) {
			r[j] = self->range;
			r[j].start = bounds[orders[i][j]];
			r[j].end = bounds[orders[i][j] + 1];
		}
		EXPECT_STARTS(r, 3);
	}
}

/* A session with the maximum number of ranges counts in the last one. */
TEST_F(valid, the_maximum_number_of_ranges_is_accepted)
{
	struct profil_stats stats;
	struct profil_query q;
	struct profil_range *r;
	u32 i;

	ASSERT_EQ(0, device_query(&q));
	r = calloc(q.max_ranges, sizeof(*r));
	ASSERT_NE(NULL, r);
	for (i = 0; i < q.max_ranges; i++) {
		r[i] = self->range;
		r[i].start = i;
		r[i].offset = i;
		r[i].end = i + 1;
	}
	r[i - 1] = range_burn(&self->counters[100], 1, 8, 0);
	ASSERT_EQ(0, session_start(PROCESS, 0, r, q.max_ranges));
	EXPECT_EQ(PAGE, pinned_bytes());
	while (!*(volatile u64 *)&self->counters[100])
		ASSERT_EQ(0, burn_ticks(PROCESS, 1));
	ASSERT_STOP(PROCESS, &stats);
	EXPECT_EQ(stats.hit, self->counters[100]);
	EXPECT_EQ(0, self->counters[0]);
}

TEST_F(valid, REPLACE_starts_anew_with_or_without_a_session)
{
	struct profil_stats stats;

	for (u32 scope = PROCESS; scope <= THREAD; scope++) {
		ASSERT_EQ(0, session_start(scope, PROFIL_START_REPLACE, &self->range, 1));
		ASSERT_EQ(0, burn_ticks(scope, 8));
		ASSERT_EQ(0, session_start(scope, PROFIL_START_REPLACE, &self->range, 1));
		ASSERT_EQ(0, session_stats(scope, &stats));
		EXPECT_GT(8, stats.ticks);
		EXPECT_EQ(PAGE, stats.locked);
		EXPECT_EQ(PAGE, pinned_bytes());
		EXPECT_EQ(0, session_stop(scope, NULL));
		EXPECT_EQ(-EINVAL, session_stop(scope, NULL));
	}
}

TEST_F(valid, the_sessions_of_the_two_scopes_are_independent)
{
	struct profil_range process = range_all(self->counters, 1, 8);
	struct profil_range thread = range_all(self->counters + 1, 1, 8);
	struct profil_stats p, t;

	ASSERT_EQ(0, session_start(PROCESS, 0, &process, 1));
	EXPECT_EQ(PROFIL_STATE_OFF, state_of(THREAD));
	EXPECT_EQ(-EINVAL, session_stop(THREAD, NULL));
	ASSERT_EQ(0, session_start(THREAD, 0, &thread, 1));
	EXPECT_EQ(2 * PAGE, pinned_bytes());
	EXPECT_EQ(0, burn_ticks(THREAD, 3));
	EXPECT_EQ(0, session_stop(THREAD, &t));
	EXPECT_EQ(PAGE, pinned_bytes());
	EXPECT_EQ(0, burn_ticks(PROCESS, 3));
	EXPECT_EQ(0, session_stop(PROCESS, &p));
	EXPECT_LE(3, t.hit);
	EXPECT_LE(t.hit + 3, p.hit);
	EXPECT_EQ(p.hit, self->counters[0]);
	EXPECT_EQ(t.hit, self->counters[1]);
}

TEST_HARNESS_MAIN
