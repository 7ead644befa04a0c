// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the index arithmetic of module/bins.h with a reference in 128-bit arithmetic.
 *
 * Needs no device. PROFIL_SEED=N repeats the random inputs of a run.
 */
#include "kselftest_harness.h"

#include <stdint.h>

/* The parts of the kernel's headers that module/bins.h needs */
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define U64_MAX UINT64_MAX
#define div_u64(dividend, divisor) ((dividend) / (divisor))

#include "../../module/bins.h"

#define NONE UINT64_MAX

typedef unsigned __int128 u128;

/* The parameters of a range, as the ABI defines them. */
struct rule {
	u64 granule;
	u64 step;
	bool round_up;
	u32 scale;
	u64 nr_counters;
};

/*
 * Returns the counter number that the uapi header defines for struct profil_range, computed in
 * 128-bit integers, which cannot overflow.
 */
static u128 reference(const struct rule *r, u64 d)
{
	u128 t = (u128)(d / r->granule) * r->scale / 65536;

	return t / r->step + (r->round_up && t % r->step);
}

/* Compiles @r for counters of @width bytes. With a width of 1 the result is an index. */
static struct profil_bins bins_of(const struct rule *r, u64 width)
{
	struct profil_bins b;

	profil_bins_set(&b, __builtin_ctzll(r->granule), __builtin_ctzll(r->step),
			__builtin_ctzll(width), r->round_up, r->scale, r->nr_counters);
	return b;
}

/* Computes the counter of @pc as the tick does. The range starts at its offset. */
static u64 counter(const struct rule *r, u64 offset, u64 pc)
{
	struct profil_bins b = bins_of(r, 1);
	u64 d = pc - offset;

	if (pc < offset || d >= b.limit)
		return NONE;
	return profil_bins_byte(&b, d, 1);
}

/* Returns true if moving the base of d and the address of counter 0 leaves @d in counter @index. */
static bool matches_moved(const struct rule *r, u64 width, u64 d, u64 index)
{
	const u64 from[] = { d / 2 & -r->granule, d & -r->granule };
	const u64 firsts[] = { 0, 4088 };
	struct profil_bins b;
	u64 end;

	for (unsigned int i = 0; i < ARRAY_SIZE(from); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(firsts); j++) {
			b = bins_of(r, width);
			end = b.limit;
			profil_bins_move(&b, from[i], firsts[j]);
			if (b.limit != end - from[i] || d - from[i] >= b.limit ||
			    profil_bins_byte(&b, d - from[i], width) != firsts[j] + index * width)
				return false;
		}
	}
	return true;
}

static bool matches(const struct rule *r, const struct profil_bins *b, u64 d)
{
	u128 want = reference(r, d);

	if (want >= r->nr_counters)
		return d >= b->limit;
	return d < b->limit && profil_bins_byte(b, d, 1) == want && matches_moved(r, 2, d, want) &&
	       matches_moved(r, 4, d, want) && matches_moved(r, 8, d, want);
}

static const char *text(const struct rule *r)
{
	static char line[128];

	snprintf(line, sizeof(line), "granule %llu step %llu%s scale %u counters %llu",
		 (unsigned long long)r->granule, (unsigned long long)r->step,
		 r->round_up ? " up" : "", r->scale, (unsigned long long)r->nr_counters);
	return line;
}

/*
 * Tests one rule at @d and around each edge of the rule. d = UINT64_MAX occurs for no pc, see
 * bins.h.
 */
static bool rule_matches(const struct rule *r, u64 d)
{
	const struct rule fewer = {
		r->granule, r->step, r->round_up, r->scale, r->nr_counters - 1,
	};
	struct profil_bins b = bins_of(r, 1);
	const u64 centers[] = {
		d, b.limit, d ^ b.limit, 0, r->granule, r->granule * r->step, 1ULL << 32,
		1ULL << 63, UINT64_MAX,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(centers); i++) {
		for (int k = -3; k <= 3; k++) {
			d = centers[i] + k;
			if (d == UINT64_MAX || matches(r, &b, d))
				continue;
			fprintf(stderr, "# %s: wrong at d = %#llx, limit %#llx\n", text(r),
				(unsigned long long)d, (unsigned long long)b.limit);
			return false;
		}
	}

	/* The limit is exact, and does not decrease if there are more counters. */
	if (b.limit && reference(r, b.limit - 1) >= r->nr_counters)
		return false;
	if (b.limit != UINT64_MAX && reference(r, b.limit) < r->nr_counters)
		return false;
	return !r->nr_counters || bins_of(&fewer, 1).limit <= b.limit;
}

static const u32 scales[] = {
	0, 1, 2, 3, 255, 32767, 32768, 32769, 65535, 65536, 65537, 131072, INT32_MAX,
	0x80000000, UINT32_MAX - 1, UINT32_MAX,
};

static const u64 counts[] = {
	0, 1, 2, 3, 127, 128, 32768, 65535, 65536, 65537, 1ULL << 30,
	PROFIL_MAX_COUNTERS - 1, PROFIL_MAX_COUNTERS,
};

TEST(the_rule_of_each_family_matches_known_values)
{
	const struct rule glibc = { 2, 1, false, 65536, 100 };
	const struct rule bsd = { 1, 2, false, 65536, 100 };	/* also Digital UNIX */
	const struct rule aix = { 1, 2, true, 65536, 100 };	/* in the library 65536 means off */
	const struct rule n64 = { 4, 1, false, 65536, 100 };
	const struct rule *const three[] = { &glibc, &bsd, &aix };
	struct rule r;

	for (unsigned int i = 0; i < 2; i++) {
		EXPECT_EQ(NONE, counter(three[i], 0x1000, 0x0fff));
		EXPECT_EQ(0, counter(three[i], 0x1000, 0x1000));
		EXPECT_EQ(0, counter(three[i], 0x1000, 0x1001));
		EXPECT_EQ(1, counter(three[i], 0x1000, 0x1002));
		EXPECT_EQ(99, counter(three[i], 0x1000, 0x1000 + 199));
		EXPECT_EQ(NONE, counter(three[i], 0x1000, 0x1000 + 200));
	}

	for (unsigned int i = 0; i < 3; i++) {
		r = *three[i];
		r.scale = 32768;
		EXPECT_EQ(three[i] == &aix ? 2 : 1, counter(&r, 0x1000, 0x1006));
		EXPECT_EQ(2, counter(&r, 0x1000, 0x1008));
		r.scale = 65535;
		EXPECT_EQ(three[i] == &aix ? 1 : 0, counter(&r, 0x1000, 0x1002));
		EXPECT_EQ(three[i] == &glibc ? 0 : 1, counter(&r, 0x1000, 0x1003));
		/* Above 4 GiB the index does not wrap. */
		EXPECT_EQ(NONE, counter(&r, 0x1000, 0x100001000));
		EXPECT_EQ(NONE, counter(&r, 0x1000, 0x100001002));
		EXPECT_EQ(NONE, counter(&r, 0x1000, 0xffffffff00001000));
		EXPECT_EQ(NONE, counter(&r, 0x1000, UINT64_MAX - 1));
		/* Scale 2 of the families is 0 in this module: all pcs are in the first counter. */
		r.scale = 0;
		r.nr_counters = 1;
		EXPECT_EQ(NONE, counter(&r, 0x1000, 0x0fff));
		EXPECT_EQ(0, counter(&r, 0x1000, 0x1000));
		EXPECT_EQ(0, counter(&r, 0x1000, 0x7fffffffffff));
		EXPECT_EQ(0, counter(&r, 0x1000, UINT64_MAX - 1));
	}

	EXPECT_EQ(0, counter(&n64, 0x1000, 0x1003));
	EXPECT_EQ(1, counter(&n64, 0x1000, 0x1004));
	EXPECT_EQ(99, counter(&n64, 0x1000, 0x1000 + 399));
	EXPECT_EQ(NONE, counter(&n64, 0x1000, 0x1000 + 400));
}

TEST(without_counters_no_pc_has_a_counter)
{
	struct rule r = { 1, 1, false, 0, 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(scales); i++) {
		r.scale = scales[i];
		for (r.step = 1; r.step <= PROFIL_MAX_STEP; r.step *= 2) {
			r.round_up = true;
			EXPECT_EQ(0, bins_of(&r, 2).limit);
			r.round_up = false;
			EXPECT_EQ(0, bins_of(&r, 2).limit);
		}
	}
}

/* Tests @r with each scale and each number of counters. */
static bool rule_matches_all(struct rule *r)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(scales); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(counts); j++) {
			r->scale = scales[i];
			r->nr_counters = counts[j];
			if (!rule_matches(r, counts[j] * r->granule))
				return false;
		}
	}
	return true;
}

TEST(all_combinations_of_edge_parameters_match_the_reference)
{
	struct rule r;

	for (r.granule = 1; r.granule <= PROFIL_MAX_GRANULE; r.granule *= 2) {
		for (r.step = 1; r.step <= PROFIL_MAX_STEP; r.step *= 2) {
			for (int up = 0; up <= 1; up++) {
				r.round_up = up;
				ASSERT_TRUE(rule_matches_all(&r)) {
					TH_LOG("%s", text(&r));
				}
			}
		}
	}
}

static u64 state;

/* The xorshift64* generator */
static u64 random64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

/* Returns a random number. All lengths from 0 to @bits bits are equally likely. */
static u64 random_length(unsigned int bits)
{
	bits = random64() % (bits + 1);
	return bits ? random64() >> (64 - bits) : 0;
}

TEST(random_parameters_match_the_reference)
{
	const char *env = getenv("PROFIL_SEED");
	u64 seed = env ? strtoull(env, NULL, 0) : (u64)time(NULL) << 16 ^ getpid();
	struct rule r;

	fprintf(stderr, "# PROFIL_SEED=%llu\n", (unsigned long long)seed);
	state = seed ?: 1;

	for (unsigned int i = 0; i < 50000; i++) {
		r.granule = 1ULL << random64() % __builtin_ctzll(2 * PROFIL_MAX_GRANULE);
		r.step = 1ULL << random64() % __builtin_ctzll(2 * PROFIL_MAX_STEP);
		r.round_up = random64() & 1;
		r.scale = random_length(32);
		r.nr_counters = random_length(__builtin_ctzll(PROFIL_MAX_COUNTERS));
		ASSERT_TRUE(rule_matches(&r, random_length(64))) {
			TH_LOG("PROFIL_SEED=%llu, input %u: %s", (unsigned long long)seed, i,
			       text(&r));
		}
	}
}

TEST_HARNESS_MAIN
