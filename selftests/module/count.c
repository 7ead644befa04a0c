// SPDX-License-Identifier: GPL-2.0
/*
 * Runs code at a known address in one thread, and checks which counter each tick increments.
 *
 * Ticks also arrive between two bursts of the loop. Two more ranges count these, so that the number
 * of ticks outside is known exactly.
 */
#include "kselftest_harness.h"

#include "loop.h"
#include "process.h"

#define NR_COUNTERS	8
#define OUTSIDE		UINT64_MAX

/* Enough ticks to distinguish a loop from the code between its bursts. */
#define FEW		5

static union {
	u16 u16[PAGE_MAX];
	u8 bytes[2 * PAGE_MAX];
} page PAGE_ALIGNED;

FIXTURE(count) {
	struct profil_query query;
};

FIXTURE_SETUP(count)
{
	ASSERT_EQ(0, device_query(&self->query));
}

FIXTURE_TEARDOWN(count)
{
}

/* Samples @work, which must be true, with @nr @ranges, and stores the statistics in *@s. */
#define SAMPLE(s, modes, ranges, nr, work) do {						\
	ASSERT_EQ(0, session_start_modes(PROCESS, modes, ranges, nr));			\
	EXPECT_TRUE(work);								\
	ASSERT_STOP(PROCESS, s);							\
} while (0)

/*
 * Positions of pcs: loop 0 is at the pc, and d = pc - offset
 */

struct place {
	__u64 d;
	__u64 counter;
	u32 scale;
	u32 granule;
	u32 step;
	u32 flags;
};

/* The pc is one byte before the range, which starts at its offset. */
#define BEFORE		UINT64_MAX

#define GLIBC(scale)	scale, 2, 1, 0
#define BSD(scale)	scale, 1, 2, 0
#define AIX(scale)	scale, 1, 2, PROFIL_RANGE_ROUND_UP
#define N64		65536, 4, 1, 0

/* Returns the number of ticks where they are expected. */
static u64 expected_ticks(const struct place *p, const struct profil_stats *s)
{
	return p->counter == OUTSIDE ? s->outside : page.u16[p->counter];
}

/* Returns true if a few ticks came where they are expected, and these are a large part of all. */
static bool expected_ticks_came(const struct place *p)
{
	struct profil_stats s;

	return !session_stats(PROCESS, &s) && expected_ticks(p, &s) >= FEW &&
	       expected_ticks(p, &s) > s.ticks / 3;
}

/* Runs loop 0 with these ranges, until its ticks are where they are expected. */
static struct profil_stats count_in(struct __test_metadata *_metadata, const struct place *p,
				    u32 modes, const struct profil_range *ranges, u32 nr)
{
	struct profil_stats s = { 0 };

	memset(&page, 0, sizeof(page));
	EXPECT_EQ(0, session_start_modes(PROCESS, modes, ranges, nr));
	EXPECT_TRUE(loop_until(0, expected_ticks_came(p)));
	EXPECT_EQ(0, session_stop(PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LT(s.ticks / 4, expected_ticks(p, &s)) {
		TH_LOG("d %#llx, scale %u, granule %u, step %u, flags %u: expected in %lld",
		       p->d, p->scale, p->granule, p->step, p->flags, p->counter);
		for (unsigned int i = 0; i < NR_COUNTERS; i++)
			TH_LOG("counter %u: %u", i, page.u16[i]);
	}
	return s;
}

static void expect_place(struct __test_metadata *_metadata, const struct place *p)
{
	u64 at = loop_at(0), start = at + (p->d == BEFORE), end = start + 1;
	u64 others = 0;
	struct profil_range ranges[] = {
		range_of(start, end, page.u16, NR_COUNTERS, 2),
		range_all(&others, 1, 8),
		range_all(&others, 1, 8),
	};
	struct profil_stats s;

	if (p->d != BEFORE && p->d > at) {
		TH_LOG("no address is %#llx above another here", p->d);
		return;
	}
	if (p->d != BEFORE)
		ranges[0].offset = at - p->d;
	ranges[0].scale = p->scale;
	ranges[0].granule = p->granule;
	ranges[0].step = p->step;
	ranges[0].flags = p->flags;
	ranges[1].end = at;
	ranges[2].start = end;

	s = count_in(_metadata, p, PROFIL_MODE_USER, ranges, 3);
	EXPECT_EQ(s.hit, counters_sum(&page, 2, NR_COUNTERS) + others);
	EXPECT_EQ(0U, s.saturated);
	EXPECT_EQ(0U, s.dropped);
	/* No other counter has a tick. */
	if (p->counter != OUTSIDE) {
		EXPECT_EQ(0U, s.outside);
		page.u16[p->counter] = 0;
	}
	EXPECT_EQ(0U, counters_sum(&page, 2, ARRAY_SIZE(page.u16)));

	/*
	 * Now there is only the range, and it starts at its offset: the kernel has a fast path for
	 * narrow counters of a single range. Code below the loop may be counted, too.
	 */
	ranges[0].start = ranges[0].offset;
	s = count_in(_metadata, p, MODES_ALL, ranges, 1);
	EXPECT_EQ(s.hit, counters_sum(&page, 2, NR_COUNTERS));
	EXPECT_EQ(s.ticks, s.hit + s.outside);
}

static void expect_places(struct __test_metadata *_metadata, const struct place *places,
			  unsigned int n)
{
	while (n--)
		expect_place(_metadata, places++);
}

/* A test of the places that follow */
#define TEST_PLACES(name, ...)								\
	TEST_F(count, name)								\
	{										\
		static const struct place places[] = { __VA_ARGS__ };			\
											\
		expect_places(_metadata, places, ARRAY_SIZE(places));			\
	}

TEST_PLACES(a_pc_in_the_first_bin_is_counted_and_one_before_the_range_is_not,
	    { BEFORE, OUTSIDE, 65536, 1, 1, 0 },
	    { 0, 0, 65536, 1, 1, 0 })

TEST_PLACES(a_pc_in_the_last_bin_is_counted_and_one_past_it_is_not,
	    { NR_COUNTERS - 1, NR_COUNTERS - 1, 65536, 1, 1, 0 },
	    { NR_COUNTERS, OUTSIDE, 65536, 1, 1, 0 })

TEST_PLACES(ranges_count_by_the_rule_of_glibc,
	    { BEFORE, OUTSIDE, GLIBC(65536) },
	    { 0, 0, GLIBC(65536) },
	    { 1, 0, GLIBC(65536) },
	    { 2, 1, GLIBC(65536) },
	    { 6, 1, GLIBC(32768) },
	    { 8, 2, GLIBC(32768) },
	    { 2, 0, GLIBC(65535) },
	    { 3, 0, GLIBC(65535) },
	    { 15, 7, GLIBC(65536) },
	    { 16, OUTSIDE, GLIBC(65536) },
	    { 31, 7, GLIBC(32768) },
	    { 32, OUTSIDE, GLIBC(32768) },
	    { 4, 4, GLIBC(131072) },
	    { 65535, 0, GLIBC(2) },
	    { 65536, 1, GLIBC(2) })

TEST_PLACES(ranges_count_by_the_rule_of_BSD_and_Digital_UNIX,
	    { BEFORE, OUTSIDE, BSD(65536) },
	    { 0, 0, BSD(65536) },
	    { 1, 0, BSD(65536) },
	    { 2, 1, BSD(65536) },
	    { 6, 1, BSD(32768) },
	    { 8, 2, BSD(32768) },
	    { 2, 0, BSD(65535) },
	    { 3, 1, BSD(65535) },
	    { 15, 7, BSD(65536) },
	    { 16, OUTSIDE, BSD(65536) },
	    { 0, 0, BSD(1) },
	    { 131071, 0, BSD(1) },
	    { 131072, 1, BSD(1) })

TEST_PLACES(ranges_count_by_the_rule_of_AIX,
	    { BEFORE, OUTSIDE, AIX(65535) },
	    { 0, 0, AIX(65535) },
	    { 2, 1, AIX(65535) },
	    { 6, 2, AIX(32768) },
	    { 8, 2, AIX(32768) },
	    { 28, 7, AIX(32768) },
	    { 30, OUTSIDE, AIX(32768) },
	    { 0, 0, AIX(65536) },
	    { 1, 1, AIX(65536) },
	    { 2, 1, AIX(65536) },
	    { 14, 7, AIX(65536) },
	    { 15, OUTSIDE, AIX(65536) })

TEST_PLACES(ranges_count_by_the_rule_of_N64,
	    { BEFORE, OUTSIDE, N64 },
	    { 0, 0, N64 },
	    { 3, 0, N64 },
	    { 4, 1, N64 },
	    { 31, 7, N64 },
	    { 32, OUTSIDE, N64 })

TEST_F(count, granules_and_steps_up_to_the_maximum_are_counted)
{
	const u32 granule = self->query.max_granule, step = self->query.max_step;
	const struct place places[] = {
		{ granule - 1, 0, 65536, granule, 1, 0 },
		{ granule, 1, 65536, granule, 1, 0 },
		{ granule * 8ULL - 1, 7, 65536, granule, 1, 0 },
		{ granule * 8ULL, OUTSIDE, 65536, granule, 1, 0 },
		{ step - 1, 0, 65536, 1, step, 0 },
		{ step, 1, 65536, 1, step, 0 },
		{ step * 8 - 1, 7, 65536, 1, step, 0 },
		{ step * 8, OUTSIDE, 65536, 1, step, 0 },
		{ 0, 0, 65536, 1, step, PROFIL_RANGE_ROUND_UP },
		{ 1, 1, 65536, 1, step, PROFIL_RANGE_ROUND_UP },
		{ step, 1, 65536, 1, step, PROFIL_RANGE_ROUND_UP },
		{ step + 1, 2, 65536, 1, step, PROFIL_RANGE_ROUND_UP },
		{ 64, 4, 65536 / 4, 4, 1, 0 },
		{ 64, 2, 65536 / 4, 4, 2, 0 },
	};

	expect_places(_metadata, places, ARRAY_SIZE(places));
}

TEST_PLACES(scale_0_counts_every_pc_in_counter_0,
	    { 0, 0, 0, 1, 1, 0 },
	    { 12345, 0, 0, 2, 1, 0 },
	    { 12345, 0, 0, 1, 2, PROFIL_RANGE_ROUND_UP },
	    { 1ULL << 32, 0, 0, 2, 1, 0 })

TEST_PLACES(a_pc_far_above_the_offset_does_not_wrap_into_a_counter,
	    { 1ULL << 20, OUTSIDE, GLIBC(65536) },
	    { 1, OUTSIDE, 0xffffffff, 1, 1, 0 },
	    { 1ULL << 17, OUTSIDE, GLIBC(65536) },
	    { 1ULL << 32, OUTSIDE, GLIBC(65536) },
	    { (1ULL << 32) + 2, OUTSIDE, BSD(65536) },
	    { 1ULL << 33, OUTSIDE, AIX(65535) },
	    { (1ULL << 34) + 4, OUTSIDE, N64 },
	    { 1ULL << 32, OUTSIDE, 1, 1, 1, 0 },
	    /* d * scale is 2^64, and so the counter would be number 2^48. */
	    { 1ULL << 46, OUTSIDE, 1U << 18, 1, 1, 0 },
	    { 1ULL << 40, OUTSIDE, 0xffffffff, 2, 1, 0 })

/*
 * Ranges
 */

TEST_F(count, all_hits_are_at_the_instructions_of_the_loop)
{
	struct profil_range range = range_of(loop_at(0), loop_at(0) + LOOP_BLOCK, page.u16,
					     LOOP_BLOCK, 2);
	struct profil_stats s;

	SAMPLE(&s, MODES_ALL, &range, 1, loop_burn(PROCESS, 0, 50));
	EXPECT_EQ(0U, s.saturated);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_EQ(s.hit, counters_sum(&page, 2, LOOP_BLOCK));
	EXPECT_EQ(s.hit, counters_sum(&page, 2, ARRAY_SIZE(page.u16)));
	EXPECT_LT(s.ticks / 4, s.hit);
#if defined(__x86_64__) || defined(__i386__)
	/* Instructions start at two bytes of the loop and at the return only. */
	EXPECT_EQ(s.hit, 0U + page.u16[0] + page.u16[2]);
	EXPECT_LT(s.ticks / 4, page.u16[0]);
#else
	for (unsigned int i = 0; i < LOOP_BLOCK; i++)
		if (i % 4) {
			EXPECT_EQ(0, page.u16[i]);
		}
#endif
}

#ifdef __aarch64__
TEST_F(count, the_tag_of_a_function_pointer_is_not_in_the_pc)
{
	struct profil_range range = range_of_loops(&page, 2);
	void (*tagged)(unsigned long times);
	struct profil_stats s;

	tagged = (void *)(addr(loops_text) | 0x5aULL << 56);
	SAMPLE(&s, MODES_ALL, &range, 1,
	       loop_until(1, (tagged(LOOP_BURST), page.u16[0] >= 20)));
	EXPECT_EQ(s.hit, counters_sum(&page, 2, LOOPS));
}
#endif

TEST_F(count, each_range_has_its_own_scale_granule_width_and_buffer)
{
	u16 *narrow = page.u16;
	u32 *middle = (u32 *)(page.bytes + PAGE - 12);	/* counter 3 is on the next page */
	u64 *wide = (u64 *)(page.bytes + 1024);
	const u64 places[] = { loop_at(0), loop_at(3), loop_at(5), loop_at(6) };
	struct profil_range ranges[9] = {
		range_of(places[2], places[2] + 1, wide, 4, 8),
		range_of(places[0], places[0] + 1, narrow, 4, 2),
		range_of(places[1], places[1] + 1, middle, 4, 4),
		range_of(places[3], places[3] + 1, narrow + 16, 4, 2),
	};
	u64 others = 0;
	struct profil_stats s;

	ranges[0].offset -= 32;		/* in counter 1 */
	ranges[0].granule = 32;
	ranges[1].offset -= 8;		/* in counter 2 */
	ranges[1].granule = 2;
	ranges[1].scale = 32768;
	ranges[2].offset -= 3;		/* in counter 3 */
	ranges[3].scale = 0;		/* in counter 0 */
	ranges[3].offset = 0;
	/* The addresses between them */
	for (unsigned int i = 0; i <= 4; i++) {
		ranges[4 + i] = range_all(&others, 1, 8);
		if (i > 0)
			ranges[4 + i].start = places[i - 1] + 1;
		if (i < 4)
			ranges[4 + i].end = places[i];
	}

	SAMPLE(&s, PROFIL_MODE_USER, ranges, ARRAY_SIZE(ranges),
	       loop_burn(PROCESS, 0, 20) && loop_burn(PROCESS, 3, 20) &&
	       loop_burn(PROCESS, 5, 20) && loop_burn(PROCESS, 6, 20));
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_EQ(s.hit, narrow[2] + middle[3] + wide[1] + narrow[16] + others);
	EXPECT_LT(0, narrow[2]);
	EXPECT_LT(0U, middle[3]);
	EXPECT_LT(0U, wide[1]);
	EXPECT_LT(0, narrow[16]);

	/* No other counter has a tick. */
	narrow[2] = 0;
	narrow[16] = 0;
	middle[3] = 0;
	wide[1] = 0;
	EXPECT_EQ(0U, counters_sum(&page, 2, ARRAY_SIZE(page.u16)));
}

TEST_F(count, ranges_may_share_a_counter)
{
	struct profil_range ranges[] = {
		range_of_block(0, page.u16 + 1, 1, 2, 0),
		range_of_block(1, page.u16 + 1, 1, 2, 0),
	};
	struct profil_stats s;

	SAMPLE(&s, MODES_ALL, ranges, 2, loop_burn(PROCESS, 0, 20) && loop_burn(PROCESS, 1, 20));
	EXPECT_EQ(s.hit, page.u16[1]);
	EXPECT_EQ(s.hit, counters_sum(&page, 2, ARRAY_SIZE(page.u16)));
	EXPECT_LT(10U, s.hit);
}

/*
 * Of @n ranges in random order, number @k contains loop 0; none does if @k is @n. No code runs in
 * the other ranges: they are in the first MiB, or in the upper half of the address space.
 */
static void expect_range_found(struct __test_metadata *_metadata, u32 n, u32 k)
{
	struct profil_range *ranges = map_private(n * sizeof(*ranges)), swap;
	u16 *buffer = map_private(n * sizeof(*buffer));
	struct profil_stats s;
	u32 j;

	for (u32 i = 0; i < n; i++) {
		u64 start = i < k ? i * 16ULL : (1ULL << 63) + i * 16ULL;

		if (i == k)
			start = loop_at(0);
		ranges[i] = range_of(start, start + 16, buffer + i, 1, 2);
		ranges[i].granule = 16;
	}
	for (u32 i = n - 1; i > 0; i--) {
		j = random() % (i + 1);
		swap = ranges[i];
		ranges[i] = ranges[j];
		ranges[j] = swap;
	}

	SAMPLE(&s, MODES_ALL, ranges, n, loop_burn(PROCESS, 0, FEW) &&
	       (k == n || loop_until(0, session_stats(PROCESS, &s) || s.hit > 1)));
	EXPECT_EQ(s.hit, counters_sum(buffer, 2, n));
	if (k < n) {
		EXPECT_EQ(s.hit, buffer[k]);
		EXPECT_LT(1U, s.hit);
	} else {
		EXPECT_EQ(0U, s.hit);
		EXPECT_EQ(s.ticks, s.outside);
	}
}

TEST_F(count, a_tick_finds_its_range_among_many)
{
	const u32 numbers[] = { 1, 2, 3, 1000, self->query.max_ranges };
	const char *env = getenv("PROFIL_SEED");
	unsigned int seed;

	seed = env ? strtoul(env, NULL, 0) : (unsigned int)time(NULL);
	TH_LOG("PROFIL_SEED=%u", seed);
	srandom(seed);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		u32 n = numbers[i];

		ASSERT_LE(1U, n);
		ASSERT_LE(n, self->query.max_ranges);
		expect_range_found(_metadata, n, 0);
		expect_range_found(_metadata, n, n / 2);
		expect_range_found(_metadata, n, n - 1);
		expect_range_found(_metadata, n, n);
	}
}

static void expect_outside(struct __test_metadata *_metadata, const struct profil_range *ranges,
			   u32 nr)
{
	struct profil_stats s;

	SAMPLE(&s, MODES_ALL, ranges, nr, loop_burn(PROCESS, 0, FEW));
	EXPECT_LE((unsigned int)FEW, s.outside);
	EXPECT_EQ(s.ticks, s.outside);
	EXPECT_EQ(0U, s.locked);
}

TEST_F_CALL(count, without_ranges_all_ticks_are_outside, expect_outside(_metadata, NULL, 0))

TEST_F(count, without_counters_all_ticks_are_outside)
{
	struct profil_range range = range_all(NULL, 0, 2);

	expect_outside(_metadata, &range, 1);
}

/*
 * Widths
 */

FIXTURE(width) {
	u8 *counters;	/* counter 1 is tested; 0 and 2 are its neighbours */
};

FIXTURE_VARIANT(width) {
	u32 width;
	u64 max;
};

FIXTURE_VARIANT_ADD(width, of_16_bits) { 2, UINT16_MAX };
FIXTURE_VARIANT_ADD(width, of_32_bits) { 4, UINT32_MAX };
FIXTURE_VARIANT_ADD(width, of_64_bits) { 8, UINT64_MAX };

FIXTURE_SETUP(width)
{
	/* Counter 0 is the last of a page. */
	self->counters = page.bytes + PAGE - variant->width;
}

FIXTURE_TEARDOWN(width)
{
}

static void counter_set(void *buffer, u32 width, unsigned int i, u64 value)
{
	/* All supported machines are little-endian. */
	memcpy((u8 *)buffer + i * width, &value, width);
}

TEST_F(width, counters_saturate)
{
	struct profil_range range = range_of_block(0, self->counters, 3, variant->width, 1);
	struct profil_stats s;

	counter_set(self->counters, variant->width, 0, 1);
	counter_set(self->counters, variant->width, 1, variant->max - 2);
	counter_set(self->counters, variant->width, 2, 3);
	SAMPLE(&s, MODES_ALL, &range, 1, loop_burn(PROCESS, 0, 20));
	EXPECT_EQ(2U, s.hit);
	EXPECT_EQ(s.ticks - 2 - s.outside, s.saturated);
	EXPECT_LT(s.ticks / 4, s.saturated);
	EXPECT_EQ(1U, counter(self->counters, variant->width, 0));
	EXPECT_EQ(variant->max, counter(self->counters, variant->width, 1));
	EXPECT_EQ(3U, counter(self->counters, variant->width, 2));
}

TEST_F(width, counting_adds_to_the_old_value_and_carries)
{
	struct profil_range range = range_of_block(0, self->counters, 3, variant->width, 1);
	struct profil_stats s;

	/* 255 carries into the next byte. */
	counter_set(self->counters, variant->width, 1, 254);
	SAMPLE(&s, MODES_ALL, &range, 1, loop_burn(PROCESS, 0, 10));
	EXPECT_LT(0U, s.hit);
	EXPECT_EQ(254 + s.hit, counter(self->counters, variant->width, 1));
	EXPECT_EQ(0U, counter(self->counters, variant->width, 0));
	EXPECT_EQ(0U, counter(self->counters, variant->width, 2));
}

TEST_F(width, counters_at_both_ends_of_a_page_are_counted)
{
	struct profil_range ranges[] = {
		range_of_block(0, self->counters, 2, variant->width, 0),
		range_of_block(1, self->counters, 2, variant->width, 1),
	};
	struct profil_stats s;

	SAMPLE(&s, MODES_ALL, ranges, 2,
	       loop_burn(PROCESS, 0, 10) && loop_burn(PROCESS, 1, 10) &&
	       pinned_bytes() == 2 * PAGE);
	EXPECT_LT(0U, counter(self->counters, variant->width, 0));
	EXPECT_LT(0U, counter(self->counters, variant->width, 1));
	EXPECT_EQ(s.hit, counters_sum(self->counters, variant->width, 2));
}

/*
 * Ticks in the kernel
 *
 * These functions contain a system call at a known address. In tail_read the call is the last
 * instruction, and another function follows it.
 */

struct charged {
	long (*read)(int fd, void *buf, size_t len);
	const char *start;
	const char *call;
	const char *end;
};

#define TEXT extern __attribute__((visibility("hidden"))) const char

TEXT charged_read[], charged_read_call[], charged_read_end[];
TEXT tail_read[], tail_read_call[], tail_read_neighbour[], tail_read_end[];
TEXT touch[], touch_store[], touch_end[];
TEXT call_and_loop[], call_and_loop_call[], call_and_loop_head[], call_and_loop_end[];

/* The instructions of the functions below. TOUCH_BEGIN ends with the bytes of a system call. */
#if defined(__x86_64__)
#define CALL		"	syscall\n"
#define RETURN		"	ret\n"
#define READ_BEGIN	"	xor %eax, %eax\n"
#define READ_END	""
#define TOUCH_BEGIN	"	test $0x050f0000, %eax\n"
#define TOUCH_STORE	"	movb $1, (%rdi)\n"
#define TOUCH_NEXT	"	add $4096, %rdi\n	cmp %rsi, %rdi\n	jb touch_store\n"
#define GETPID_BEGIN	"	mov $39, %eax\n"
#define GETPID_END	""
#define LOOP_TURN	"	dec %rdi\n	jnz call_and_loop_head\n"
#elif defined(__i386__)
#define CALL		"	int $0x80\n"
#define RETURN		"	ret\n"
#define READ_BEGIN	"	push %ebx\n	mov 8(%esp), %ebx\n	mov 12(%esp), %ecx\n" \
			"	mov 16(%esp), %edx\n	mov $3, %eax\n"
#define READ_END	"	pop %ebx\n"
#define TOUCH_BEGIN	"	mov 4(%esp), %ecx\n	mov 8(%esp), %edx\n" \
			"	test $0x80cd0000, %eax\n"
#define TOUCH_STORE	"	movb $1, (%ecx)\n"
#define TOUCH_NEXT	"	add $4096, %ecx\n	cmp %edx, %ecx\n	jb touch_store\n"
#define GETPID_BEGIN	"	mov $20, %eax\n	mov 4(%esp), %edx\n"
#define GETPID_END	""
#define LOOP_TURN	"	dec %edx\n	jnz call_and_loop_head\n"
#elif defined(__aarch64__)
#define CALL		"	svc #0\n"
#define RETURN		"	ret\n"
#define READ_BEGIN	"	mov x8, #63\n"
#define READ_END	""
#define TOUCH_BEGIN	"	mov w2, #1\n	b touch_store\n	svc #0\n"
#define TOUCH_STORE	"	strb w2, [x0]\n"
#define TOUCH_NEXT	"	add x0, x0, #4096\n	cmp x0, x1\n	b.lo touch_store\n"
#define GETPID_BEGIN	"	mov x1, x0\n	mov x8, #172\n"
#define GETPID_END	""
#define LOOP_TURN	"	subs x1, x1, #1\n	b.ne call_and_loop_head\n"
#elif defined(__riscv)
#define CALL		"	ecall\n"
#define RETURN		"	ret\n"
#define READ_BEGIN	"	li a7, 63\n"
#define READ_END	""
#define TOUCH_BEGIN	"	li a2, 1\n	li a3, 4096\n	j touch_store\n	ecall\n"
#define TOUCH_STORE	"	sb a2, 0(a0)\n"
#define TOUCH_NEXT	"	add a0, a0, a3\n	bltu a0, a1, touch_store\n"
#define GETPID_BEGIN	"	mv a1, a0\n	li a7, 172\n"
#define GETPID_END	""
#define LOOP_TURN	"	addi a1, a1, -1\n	bnez a1, call_and_loop_head\n"
#elif defined(__arm__)
#define FUNCTION(name)	".arm\n.balign 64\n.type " #name ", %function\n" #name ":\n"
#define CALL		"	svc #0\n"
#define RETURN		"	bx lr\n"
#define READ_BEGIN	"	push {r7}\n	mov r7, #3\n"
#define READ_END	"	pop {r7}\n"
#define TOUCH_BEGIN	"	mov r2, #1\n	b touch_store\n	svc #0\n"
#define TOUCH_STORE	"	strb r2, [r0]\n"
#define TOUCH_NEXT	"	add r0, r0, #4096\n	cmp r0, r1\n	blo touch_store\n"
#define GETPID_BEGIN	"	push {r7}\n	mov r1, r0\n	mov r7, #20\n"
#define GETPID_END	"	pop {r7}\n"
#define LOOP_TURN	"	subs r1, r1, #1\n	bne call_and_loop_head\n"
#endif

#ifndef FUNCTION
#define FUNCTION(name)	".balign 64\n" #name ":\n"
#endif
#define LABEL(name)	#name ":\n"

asm(".pushsection .text\n"
	FUNCTION(charged_read)
	READ_BEGIN
	LABEL(charged_read_call)
	CALL
	READ_END RETURN
	LABEL(charged_read_end)

	FUNCTION(tail_read)
	READ_BEGIN
	LABEL(tail_read_call)
	CALL
	LABEL(tail_read_neighbour)
	READ_END RETURN
	LABEL(tail_read_end)

    /* void touch(char *pages, char *end): the bytes before the store are those of a call */
	FUNCTION(touch)
	TOUCH_BEGIN
	LABEL(touch_store)
	TOUCH_STORE TOUCH_NEXT RETURN
	LABEL(touch_end)

    /* void call_and_loop(unsigned long n): the loop begins after a system call */
	FUNCTION(call_and_loop)
	GETPID_BEGIN
	LABEL(call_and_loop_call)
	CALL
	LABEL(call_and_loop_head)
	LOOP_TURN GETPID_END RETURN
	LABEL(call_and_loop_end)
	".popsection\n");

#ifdef __x86_64__
/* long compat_read(int fd, void *buf, size_t len), as 32-bit programs call it */
TEXT compat_read[], compat_read_call[], compat_read_end[];
asm(".pushsection .text\n"
	FUNCTION(compat_read)
	"	push %rbx\n	mov %edi, %ebx\n	mov %esi, %ecx\n	mov $3, %eax\n"
	LABEL(compat_read_call)
	"	int $0x80\n"
	"	pop %rbx\n	movslq %eax, %rax\n	ret\n"
	LABEL(compat_read_end)
	".popsection\n");
#endif

#ifdef __arm__
/* long thumb_read(int fd, void *buf, size_t len): a system call takes two bytes */
TEXT thumb_read[], thumb_read_call[], thumb_read_end[];
asm(".pushsection .text\n"
	".thumb\n"
	".balign 64\n"
	LABEL(thumb_read)
	"	push {r7}\n	movs r7, #3\n"
	LABEL(thumb_read_call)
	CALL
	READ_END RETURN
	LABEL(thumb_read_end)
	".popsection\n");
#endif

#define CHARGED(name, function) {							\
	.read = (long (*)(int, void *, size_t))(function),				\
	.start = name,									\
	.call = name##_call,								\
	.end = name##_end,								\
}

static const struct charged call = CHARGED(charged_read, charged_read);
static const struct charged tail_call = CHARGED(tail_read, tail_read);
#ifdef __x86_64__
static const struct charged compat_call = CHARGED(compat_read, compat_read);
#endif
#ifdef __arm__
static const struct charged thumb_call = CHARGED(thumb_read, thumb_read + 1);
#endif

/* Returns a range with a counter for each byte of the function. */
static struct profil_range range_of_call(const struct charged *c)
{
	return range_of(addr(c->start), addr(c->end), page.u16, c->end - c->start, 2);
}

#define TEXT_SIZE(name) ((unsigned int)(name##_end - (name)))

#define READ_SIZE	(1UL << 20)

FIXTURE(system) {
	int zero;
	char *pages;	/* READ_SIZE bytes, below 4 GiB where 32-bit calls read into them */
};

FIXTURE_SETUP(system)
{
	int flags = MAP_PRIVATE | MAP_POPULATE;

#ifdef __x86_64__
	flags |= MAP_32BIT;
#endif
	self->zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->zero);
	self->pages = map_new(READ_SIZE, flags);
}

FIXTURE_TEARDOWN(system)
{
}

/* Like work_until(), for a @cond of the statistics @s. */
#define UNTIL(s, cond, ...)	work_until(!session_stats(PROCESS, &(s)) && (cond), __VA_ARGS__)

/* Reads zeros until the session has @ticks more ticks in system mode. */
static bool read_burn(const struct charged *c, FIXTURE_DATA(system) *self, u64 ticks)
{
	struct profil_stats s;
	bool whole = true;
	u64 until;

	if (session_stats(PROCESS, &s) || s.state != PROFIL_STATE_ON)
		return false;
	until = s.system + s.unselected + ticks;
	return UNTIL(s, !whole || s.system + s.unselected >= until,
		     whole = c->read(self->zero, self->pages, READ_SIZE) == (long)READ_SIZE) &&
	       whole;
}

/* Checks that at least @least of @hit ticks are at the call, and tells where the others are. */
static void expect_at_call(struct __test_metadata *_metadata, const struct charged *c, __u64 hit,
			   u64 least)
{
	const u32 n = c->end - c->start;
	u32 at_call = page.u16[c->call - c->start];

	EXPECT_EQ(hit, counters_sum(page.u16, 2, n));
	EXPECT_LE(least, at_call);
	for (u32 i = 0; i < n && at_call < hit; i++)
		if (page.u16[i])
			TH_LOG("%u of %llu ticks %d bytes from the call", page.u16[i], hit,
			       (int)(c->start + i - c->call));
}

static void expect_charge(struct __test_metadata *_metadata, const struct charged *c,
			  FIXTURE_DATA(system) *self)
{
	struct profil_range range = range_of_call(c);
	struct profil_stats s;

	SAMPLE(&s, PROFIL_MODE_SYSTEM, &range, 1, read_burn(c, self, 40));
	EXPECT_EQ(0U, s.user);
	EXPECT_EQ(0U, s.dropped);
	EXPECT_LT(s.ticks / 4, s.hit);
	/*
	 * On slow machines 1 of 34 ticks was elsewhere. On arm64 it was at the next instruction, as
	 * below; with a debug kernel the reason is not known.
	 */
	expect_at_call(_metadata, c, s.hit, machine_is_slow() ? s.hit - s.hit / 8 : s.hit);
}

TEST_F_CALL(system, ticks_are_charged_to_the_call_itself, expect_charge(_metadata, &call, self))

#ifdef __x86_64__
TEST_F(system, ticks_of_a_32_bit_call_are_charged_to_the_call_itself)
{
	/* Without IA32 emulation the call raises SIGSEGV, so try it in a child. */
	SKIP_IF(status_in_child(compat_call.read(self->zero, self->pages, 1) != 1),
		"this kernel does not take 32-bit system calls");
	expect_charge(_metadata, &compat_call, self);
}
#endif

#ifdef __arm__
TEST_F_CALL(system, ticks_of_a_thumb_call_are_charged_to_the_call_itself,
	    expect_charge(_metadata, &thumb_call, self))
#endif

/*
 * The interrupt of a tick often waits while the kernel is entered. Some ticks are charged to the
 * next instruction, since they come while the kernel handles another interrupt of it.
 */
static void expect_charge_of_short_calls(struct __test_metadata *_metadata,
					 const struct charged *c, int fd)
{
	struct profil_range range = range_of_call(c);
	struct profil_stats s;

	SAMPLE(&s, PROFIL_MODE_SYSTEM, &range, 1, UNTIL(s, s.hit >= 40, {
		for (unsigned int i = 0; i < 1024; i++)
			MUST(!c->read(fd, NULL, 0));
	}));
	EXPECT_EQ(s.hit, counters_sum(page.u16, 2, c->end - c->start));
	EXPECT_LE(s.hit - s.hit / 8, page.u16[c->call - c->start]);
}

TEST_F_CALL(system, ticks_of_short_calls_are_charged_to_the_call_itself,
	    expect_charge_of_short_calls(_metadata, &call, self->zero))
#ifdef __arm__
TEST_F_CALL(system, ticks_of_short_thumb_calls_are_charged_to_the_call_itself,
	    expect_charge_of_short_calls(_metadata, &thumb_call, self->zero))
#endif

TEST_F(system, a_call_that_ends_a_function_is_not_charged_to_the_next)
{
	struct profil_range ranges[] = {
		range_of(addr(tail_read), addr(tail_read_neighbour), &page.u16[0], 1, 2),
		range_of(addr(tail_read_neighbour), addr(tail_read_end), &page.u16[1], 1, 2),
	};
	struct profil_stats s;

	ranges[0].scale = 0;
	ranges[1].scale = 0;
	SAMPLE(&s, PROFIL_MODE_SYSTEM, ranges, 2, read_burn(&tail_call, self, 40));
	EXPECT_EQ(s.hit, page.u16[0]);
	EXPECT_EQ(0, page.u16[1]);
	EXPECT_LT(s.ticks / 4, s.hit);
}

#if defined(__x86_64__)
#define SAVED_PC(c)	((c)->uc_mcontext.gregs[REG_RIP])
#define SAVED_SP(c)	((c)->uc_mcontext.gregs[REG_RSP])
#elif defined(__i386__)
#define SAVED_PC(c)	((c)->uc_mcontext.gregs[REG_EIP])
#define SAVED_SP(c)	((c)->uc_mcontext.gregs[REG_ESP])
#elif defined(__aarch64__)
#define SAVED_PC(c)	((c)->uc_mcontext.pc)
#define SAVED_SP(c)	((c)->uc_mcontext.sp)
#elif defined(__riscv)
#define SAVED_PC(c)	((c)->uc_mcontext.__gregs[REG_PC])
#define SAVED_SP(c)	((c)->uc_mcontext.__gregs[REG_SP])
#else
#define SAVED_PC(c)	((c)->uc_mcontext.arm_pc)
#define SAVED_SP(c)	((c)->uc_mcontext.arm_sp)
#endif

#define STACK_SIZE	(2UL << 20)	/* a huge page */

static struct {
	u64 call;
	char *stacks;	/* two */
	u64 sp;		/* the first stack pointer */
	unsigned int signals;
	bool done;
	u64 cap;
	int pipe[2];
} restarts;

/*
 * If the read is being restarted, moves its stack to an empty page, so that the kernel takes long
 * to write the next frame. When the session has enough hits, writes the byte that ends the read and
 * blocks the signal: its frame would be charged to the instruction after the read.
 */
static void restart(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	struct profil_stats s;
	char *stack;

	(void)signal;
	(void)info;
	if ((unsigned long)SAVED_PC(c) != restarts.call || restarts.done)
		return;
	if (!restarts.signals++)
		restarts.sp = SAVED_SP(c);
	if (session_stats(PROCESS, &s) || s.hit >= 40 ||
	    cpu_ns(CLOCK_THREAD_CPUTIME_ID) > restarts.cap) {
		restarts.done = true;
		sigaddset(&c->uc_sigmask, SIGUSR1);
		SAVED_SP(c) = restarts.sp;
		if (write(restarts.pipe[1], "", 1) != 1)
			abort();
		return;
	}
	stack = restarts.stacks + restarts.signals % 2 * STACK_SIZE;
	madvise(stack, STACK_SIZE, MADV_DONTNEED);
	SAVED_SP(c) = addr(stack + STACK_SIZE);
}

/* A child interrupts a read of an empty pipe again and again. Each time, the read is restarted. */
TEST_F(system, ticks_of_a_restarted_call_are_charged_to_the_call_itself)
{
	const struct sigaction action = {
		.sa_sigaction = restart,
		.sa_flags = SA_RESTART | SA_SIGINFO,
	};
	struct profil_range range = range_of_call(&call);
	pid_t parent = getpid(), child;
	struct profil_stats s;

	restarts.stacks = map_private(3 * STACK_SIZE);
	restarts.stacks += -addr(restarts.stacks) % STACK_SIZE;
	/* With small pages the test is weaker. */
	madvise(restarts.stacks, 2 * STACK_SIZE, MADV_HUGEPAGE);
	restarts.call = addr(call.call);
	restarts.cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_CAP_NS;
	ASSERT_EQ(0, pipe(restarts.pipe));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	child = FORK({
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!kill(parent, SIGUSR1))
			;
	});
	SAMPLE(&s, PROFIL_MODE_SYSTEM, &range, 1,
	       call.read(restarts.pipe[0], self->pages, 1) == 1 &&
	       killed(child) == 128 + SIGKILL);
	EXPECT_LE(40U, s.hit);
#ifdef __riscv
	/* 1 of 40 ticks was elsewhere. */
	expect_at_call(_metadata, &call, s.hit, s.hit - s.hit / 8);
#else
	expect_at_call(_metadata, &call, s.hit, s.hit);
#endif
}

TEST_F(system, ticks_of_a_fault_are_charged_to_the_faulting_instruction)
{
	const size_t size = 8 << 20;
	const u32 n = TEXT_SIZE(touch), store = touch_store - touch;
	struct profil_range range = range_of(addr(touch), addr(touch_end), page.u16, n, 2);
	char *fresh = map_small(size);
	struct profil_stats s;

	SAMPLE(&s, PROFIL_MODE_SYSTEM, &range, 1, UNTIL(s, s.hit >= 40, {
		((void (*)(char *, char *))touch)(fresh, fresh + size);
		MUST(!madvise(fresh, size, MADV_DONTNEED));
	}));
	for (u32 i = 0; i < n; i++) {
		EXPECT_EQ(i == store ? s.hit : 0U, page.u16[i]) {
			TH_LOG("%d bytes from the store", (int)(i - store));
		}
	}
}

TEST_F(system, a_user_tick_just_after_a_call_is_not_charged_to_the_call)
{
	const u32 n = TEXT_SIZE(call_and_loop), call = call_and_loop_call - call_and_loop;
	struct profil_range range = range_of(addr(call_and_loop), addr(call_and_loop_end),
					     page.u16, n, 2);
	struct profil_stats s;

	SAMPLE(&s, PROFIL_MODE_USER, &range, 1,
	       UNTIL(s, s.hit >= 40, ((void (*)(unsigned long))call_and_loop)(LOOP_BURST)));
	EXPECT_EQ(s.hit, counters_sum(&page, 2, n));
	EXPECT_EQ(0, page.u16[call]);
	EXPECT_LT(s.hit / 4, page.u16[call_and_loop_head - call_and_loop]);
}

static void expect_some(struct __test_metadata *_metadata, u64 ticks, bool some)
{
	if (some) {
		EXPECT_LT(10U, ticks);
	} else {
		EXPECT_EQ(0U, ticks);
	}
}

static void expect_modes(struct __test_metadata *_metadata, FIXTURE_DATA(system) *self, u32 modes)
{
	struct profil_range range = range_all(page.u16, 1, 2);
	struct profil_stats s;

	SAMPLE(&s, modes, &range, 1, loop_burn(PROCESS, 0, 20) && read_burn(&call, self, 20));
	expect_some(_metadata, s.user, modes & PROFIL_MODE_USER);
	expect_some(_metadata, s.system, modes & PROFIL_MODE_SYSTEM);
	expect_some(_metadata, s.unselected, modes != MODES_ALL);
	EXPECT_EQ(s.ticks, s.hit);
	EXPECT_EQ(s.ticks, page.u16[0]);
}

TEST_F_CALL(system, only_user_ticks_are_counted_with_user_mode_alone,
	    expect_modes(_metadata, self, PROFIL_MODE_USER))
TEST_F_CALL(system, only_system_ticks_are_counted_with_system_mode_alone,
	    expect_modes(_metadata, self, PROFIL_MODE_SYSTEM))
TEST_F_CALL(system, user_and_system_ticks_are_counted_with_both_modes,
	    expect_modes(_metadata, self, MODES_ALL))

TEST_HARNESS_MAIN
