// SPDX-License-Identifier: GPL-2.0
/*
 * Promises that all families of historical calls make: one row for each family, and every test for
 * every row. See sentences/common.
 *
 * A new family is a new row: how to start and to stop, where a loop is counted, and in which
 * respects the family differs. Everything else that a manual page says is tested in FAMILY.c.
 */
#include "family.h"

#include <stddef.h>

#include "calls.h"
#include "seccomp.h"

/*
 * Families: how to start and to stop. Each function returns 0 or an errno.
 */

/* The effect of a second start, while the first profile is on. */
enum second_start {
	REPLACES,	/* the first profile ends */
	IGNORED,	/* it changes nothing, and succeeds */
	REFUSED,	/* it fails with EBUSY */
};

enum {
	BAD_BUFFER_STOPS = 1 << 0,	/* a bad buffer turns off a profile that is on */
	NO_MEMORY_STOPS = 1 << 1,	/* so does a buffer that cannot be locked */
	NULL_STOPS = 1 << 2,		/* a NULL buffer is valid, and turns profiling off */
	STOP_KEEPS_SESSION = 1 << 3,	/* a session without ticks stays, for other readers */
	STOP_SETS_ERRNO = 1 << 4,	/* the call that stops fails, but has stopped */
	EXCLUDES_OTHERS = 1 << 5,	/* this and other families exclude each other: EBUSY */
	IGNORES_OTHERS = 1 << 6,	/* a start has no effect while another family's is on */
	ANY_SIZE = 1 << 7,		/* the size need not be a multiple of the counter's width */
};

/* Evaluates to the errno of a call that returns nothing. On success errno stays UNTOUCHED. */
#define UNTOUCHED	12345
#define ERROR_OF(call) ({				\
	errno = UNTOUCHED;				\
	call;						\
	errno == UNTOUCHED ? 0 : errno;			\
})

static int result(int status)
{
	return status < 0 ? errno : 0;
}

/* Defines the two functions of a family: @start is for @size bytes of @buffer, and @offset. */
#define FUNCTIONS(family, start, stop)						\
	static int family##_start(void *buffer, size_t size, uintptr_t offset)	\
	{									\
		return start;							\
	}									\
										\
	static int family##_stop(void)						\
	{									\
		return stop;							\
	}

FUNCTIONS(glibc, result(profil(buffer ?: null, size, offset, LOOPS_SCALE)),
	  result(profil(null, 0, 0, 0)))

FUNCTIONS(sprofil,
	  result(sprofil(&(struct prof) { buffer, size, offset, LOOPS_SCALE }, 1, NULL, 0)),
	  result(sprofil(NULL, 0, NULL, 0)))

FUNCTIONS(bsd, result(profil_bsd(buffer, size, offset, LOOPS_SCALE)),
	  result(profil_bsd(NULL, 0, 0, 0)))

FUNCTIONS(osf1, ERROR_OF(profil_osf1(buffer, size, (void *)offset, LOOPS_SCALE)),
	  ERROR_OF(profil_osf1(NULL, 0, NULL, 0)))

FUNCTIONS(aix, result(profil_aix(buffer, size, offset, LOOPS_SCALE)),
	  result(profil_aix(NULL, 0, 0, 0)))

static int aix_second_on(void *buffer, size_t size, uintptr_t offset)
{
	struct prof_aix profs[] = {
		{ (void *)offset, (void *)UINTPTR_MAX, buffer, size, LOOPS_SCALE },
		{},
	};

	return profil_aix(profs, -1, 0, 0);
}

FUNCTIONS(aix_second, result(aix_second_on(buffer, size, offset)),
	  result(profil_aix(&(struct prof_aix) {}, -1, 0, 0)))

/* Counters of four bytes. The call that turns profiling off also returns an error. */
FUNCTIONS(hpux,
	  result(sprofil_hpux(&(struct prof_hpux) { buffer, size, (void *)offset, 2 * LOOPS_SCALE },
			      1, NULL, PROF_UINT_HPUX)),
	  sprofil_hpux(NULL, 0, NULL, 0) < 0 && errno == E2BIG ? 0 : -1)

/* Stores all program counters, since there is no offset. */
FUNCTIONS(illumos, ((void)offset, result(pcsample(buffer, size / sizeof(uintptr_t)))),
	  result(pcsample(NULL, 0)))

/* A counter for each word of 4 bytes */
static void n64_init(void *buffer, size_t size, uintptr_t offset)
{
	OSProf segment = { buffer, size / 2, (u32 *)offset, (u32 *)offset + size / 2 - 1 };

	osProfileInit(&segment, 1);
}

FUNCTIONS(n64, ERROR_OF(n64_init(buffer, size, offset)) ?: ERROR_OF(osProfileStart(1000)),
	  ERROR_OF(osProfileStop()))

/*
 * Geometry: the counter of loop @i, if counting starts at the first byte of the loops' text
 */

static unsigned int one_each(unsigned int i)
{
	return i;
}

/* The loop is in the second half of its block, and AIX rounds up. */
static unsigned int one_each_rounded_up(unsigned int i)
{
	return i + 1;
}

static unsigned int one_a_word(unsigned int i)
{
	return (LOOP_SIZE * i + LOOP_BLOCK) / 4;
}

/*
 * The table
 */

#define BUFFERS		((void *)0x30000000)

FIXTURE(family) {
};

/* @counter is NULL if the buffer gets the program counters themselves. */
FIXTURE_VARIANT(family) {
	int (*start)(void *buffer, size_t size, uintptr_t offset);
	int (*stop)(void);
	unsigned int (*counter)(unsigned int loop);
	u32 width;
	enum second_start second;
	unsigned int promises;
	int bad_buffer;		/* the errno for a buffer that is not mapped, */
	int misaligned;		/* for one that is misaligned, */
	int no_memory;		/* and for one that cannot be locked */
	int stopped_twice;	/* the errno of a stop when it is off; 0: none */
};

FIXTURE_VARIANT_ADD(family, glibc) {
	glibc_start, glibc_stop, one_each, 2, REPLACES,
	NULL_STOPS | ANY_SIZE, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, sprofil) {
	sprofil_start, sprofil_stop, one_each, 2, REPLACES,
	ANY_SIZE, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, bsd) {
	bsd_start, bsd_stop, one_each, 2, REPLACES,
	BAD_BUFFER_STOPS | ANY_SIZE, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, osf1) {
	osf1_start, osf1_stop, one_each, 2, REPLACES,
	BAD_BUFFER_STOPS | NO_MEMORY_STOPS | ANY_SIZE, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, aix) {
	aix_start, aix_stop, one_each_rounded_up, 2, IGNORED,
	IGNORES_OTHERS | ANY_SIZE, EFAULT, EFAULT, EFAULT, 0,
};

FIXTURE_VARIANT_ADD(family, aix_second_form) {
	aix_second_start, aix_second_stop, one_each_rounded_up, 2, IGNORED,
	IGNORES_OTHERS | ANY_SIZE, EFAULT, EFAULT, EFAULT, 0,
};

FIXTURE_VARIANT_ADD(family, hpux) {
	hpux_start, hpux_stop, one_each, 4, REPLACES,
	STOP_SETS_ERRNO, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, illumos) {
	illumos_start, illumos_stop, NULL, sizeof(uintptr_t), REPLACES,
	BAD_BUFFER_STOPS | NO_MEMORY_STOPS | EXCLUDES_OTHERS, EFAULT, EFAULT, ENOMEM, 0,
};

FIXTURE_VARIANT_ADD(family, n64) {
	n64_start, n64_stop, one_a_word, 2, REFUSED,
	STOP_KEEPS_SESSION, EFAULT, EINVAL, ENOMEM, EALREADY,
};

/*
 * Functions that all tests use, for the family under test. Each test is a process of its own.
 */

static const FIXTURE_VARIANT(family) *family;
/* Two buffers, each with a page behind it that cannot be written */
static u8 *first, *second;

/* Returns the size of counters for all loops; or of room for many program counters. */
static size_t size_of(void)
{
	return family->counter ? (family->counter(LOOPS - 1) + 1) * family->width : PAGE;
}

static u64 in_loop(const volatile void *buffer, unsigned int loop)
{
	u64 nr = 0, pc;

	if (family->counter)
		return counter(buffer, family->width, family->counter(loop));
	for (u32 i = 0; i < PAGE / family->width; i++) {
		pc = counter(buffer, family->width, i);
		nr += pc >= loop_at(loop) && pc < loop_at(loop) + LOOP_BLOCK;
	}
	return nr;
}

/* Returns the number of ticks in the buffer. */
static u64 in_all(const volatile void *buffer)
{
	u64 nr = 0;

	if (family->counter)
		return counters_sum(buffer, family->width, PAGE / family->width);
	for (u32 i = 0; i < PAGE / family->width; i++)
		nr += !!counter(buffer, family->width, i);
	return nr;
}

static int start(void *buffer)
{
	return family->start(buffer, size_of(), LOOPS_OFFSET);
}

/* Runs loop @i until it has @n ticks more in the buffer. */
static bool counts(const volatile void *buffer, unsigned int i, u64 n)
{
	u64 until = in_loop(buffer, i) + n;

	return loop_until(i, in_loop(buffer, i) >= until);
}

/* Gets some ticks, and returns true if none is in the buffer. Profiling can be on or off. */
static bool does_not_count(const volatile void *buffer)
{
	u64 before = in_all(buffer);
	bool burnt;

	if (session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0))
		return false;
	burnt = loop_burn(PROFIL_SCOPE_THREAD, 0, FEW);
	return !session_stop(PROFIL_SCOPE_THREAD, NULL) && burnt && in_all(buffer) == before;
}

/* Returns true if the session is in the state that a stop leaves. */
static bool is_stopped(void)
{
	return family->promises & STOP_KEEPS_SESSION ? state_of(SCOPE) == PROFIL_STATE_ON :
						       is_off(SCOPE);
}

FIXTURE_SETUP(family)
{
	ASSERT_IS_OFF();
	/* Where mmap() chooses, a call may map memory of its own in the hole after the buffers. */
	first = mmap(BUFFERS, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)first);
	second = first + 2 * PAGE;
	MUST(!mprotect(first + PAGE, PAGE, PROT_READ));
	MUST(!mprotect(second + PAGE, PAGE, PROT_READ));
	MUST(!munmap(second + 2 * PAGE, PAGE));
	family = variant;
}

FIXTURE_TEARDOWN(family)
{
	variant->stop();
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_IS_OFF();
}

/*
 * Counting
 */

TEST_F(family, each_loop_is_counted_in_its_place)
{
	struct profil_stats s;

	ASSERT_EQ(0, start(first));
	for (unsigned int i = 0; i < LOOPS; i += 3) {
		EXPECT_TRUE(counts(first, i, 5));
		for (unsigned int j = i + 1; j < LOOPS; j++)
			EXPECT_EQ(0, in_loop(first, j));
	}
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(0, s.unselected);
	EXPECT_LE(s.hit, in_all(first) + osProfileOverflow());
}

TEST_F(family, a_pc_below_the_offset_or_far_above_it_is_not_counted)
{
	/* The first offset is above the pc, the others are far below it. */
	const u64 offsets[] = {
		LOOPS_OFFSET + LOOP_SIZE,
		LOOPS_OFFSET - (1ULL << 32), LOOPS_OFFSET - (1ULL << 32) - 2,
		LOOPS_OFFSET - (1ULL << 33), LOOPS_OFFSET - (1ULL << 34),
		LOOPS_OFFSET - (1ULL << 46),
	};
	size_t size;

	SKIP_IF(!variant->counter, "this family counts at all addresses");
	size = (variant->counter(LOOPS - 3) + 1) * variant->width;
	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++) {
		/* There are no addresses below 0. */
		if (i && offsets[i] > LOOPS_OFFSET)
			continue;
		ASSERT_EQ(0, variant->start(first, size, offsets[i]));
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		EXPECT_EQ(0, in_all(first));
		EXPECT_EQ(0, variant->stop());
	}
}

TEST_F(family, no_byte_past_the_size_is_written)
{
	const size_t all = size_of(), last = all - variant->width;
	/* All counters, all but the last, and all but a part of the last. */
	const size_t sizes[] = { all, last, all - 1 };
	const unsigned int nr = variant->promises & ANY_SIZE ? 3 : 2;

	SKIP_IF(!variant->counter, "the buffer of this family has no counters");
	for (unsigned int i = 0; i < nr; i++) {
		memset(first, 0, sizes[i]);
		memset(first + sizes[i], 0x55, PAGE - sizes[i]);
		ASSERT_EQ(0, variant->start(first, sizes[i], LOOPS_OFFSET));
		EXPECT_TRUE(counts(first, 0, 2));
		EXPECT_TRUE(loop_burn(SCOPE, LOOPS - 1, FEW));
		EXPECT_EQ(0, variant->stop());
		if (sizes[i] > last)
			EXPECT_EQ(sizes[i] == all, first[last] > 0);
		for (size_t at = sizes[i]; at < PAGE; at++)
			ASSERT_EQ(0x55, first[at]);
	}
}

TEST_F(family, a_full_counter_stays_full)
{
	const u64 full = variant->width == 2 ? USHRT_MAX : UINT_MAX;
	struct profil_stats s;
	u8 *at;

	SKIP_IF(!variant->counter, "the buffer of this family has no counters");
	at = first + variant->counter(0) * variant->width;
	ASSERT_EQ(0, start(first));
	memset(at, 0xff, variant->width);
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(full, in_loop(first, 0));
	EXPECT_LT(0, s.saturated);
}

static void *count_in_a_loop(void *loop)
{
	return (void *)(uintptr_t)counts(first, (uintptr_t)loop, 5);
}

TEST_F(family, threads_do_not_lose_each_others_counts)
{
	struct profil_stats s;
	pthread_t threads[2];
	void *done;

	/* One thread exists before the start. */
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, count_in_a_loop, (void *)1));
	ASSERT_EQ(0, start(first));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, count_in_a_loop, (void *)2));
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &done));
		EXPECT_NE(NULL, done);
	}
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(10, s.hit);
	EXPECT_LE(s.hit, in_all(first) + osProfileOverflow());
}

/*
 * Start and stop
 */

TEST_F(family, stop_ends_the_counting_and_start_begins_it_again)
{
	for (unsigned int i = 0; i < 3; i++) {
		ASSERT_EQ(0, start(first));
		EXPECT_IS_ON();
		EXPECT_TRUE(counts(first, 0, 3));
		EXPECT_EQ(0, variant->stop());
		EXPECT_TRUE(is_stopped());
		if (!(variant->promises & STOP_KEEPS_SESSION))
			EXPECT_EQ(0, pinned_bytes());
		EXPECT_LE(3, in_all(first));
		EXPECT_TRUE(does_not_count(first));
	}
}

TEST_F(family, a_stop_without_a_start_does_nothing)
{
	EXPECT_EQ(variant->stopped_twice, variant->stop());
	EXPECT_TRUE(is_off(SCOPE));
	ASSERT_EQ(0, start(first));
	EXPECT_EQ(0, variant->stop());
	EXPECT_EQ(variant->stopped_twice, variant->stop());
	EXPECT_TRUE(is_stopped());
}

TEST_F(family, success_leaves_errno_alone)
{
	errno = UNTOUCHED;
	EXPECT_EQ(0, start(first));
	EXPECT_EQ(UNTOUCHED, errno);
	EXPECT_EQ(variant->second == REFUSED ? EBUSY : 0, start(first));
	if (variant->second != REFUSED)
		EXPECT_EQ(UNTOUCHED, errno);
	errno = UNTOUCHED;
	EXPECT_EQ(0, variant->stop());
	if (!(variant->promises & STOP_SETS_ERRNO))
		EXPECT_EQ(UNTOUCHED, errno);
}

TEST_F(family, a_second_start_replaces_the_first_or_has_no_effect)
{
	ASSERT_EQ(0, start(first));
	EXPECT_TRUE(counts(first, 0, 2));
	EXPECT_EQ(variant->second == REFUSED ? EBUSY : 0, start(second));
	if (variant->second == REPLACES) {
		EXPECT_TRUE(does_not_count(first));
		EXPECT_LT(0, in_loop(second, 0));
	} else {
		EXPECT_TRUE(counts(first, 0, 2));
		EXPECT_EQ(0, in_all(second));
	}
}

static void *start_and_stop(void *unused)
{
	(void)unused;
	for (unsigned int i = 0; i < 10; i++) {
		int error = start(first);

		/* Another thread may have been first. */
		if (error && (family->second != REFUSED || (error != EBUSY && error != EALREADY)))
			return "start";
		error = family->stop();
		if (error && error != family->stopped_twice)
			return "stop";
	}
	return NULL;
}

TEST_F(family, threads_start_and_stop_at_the_same_time)
{
	const char *failed = in_threads(4, start_and_stop);

	EXPECT_EQ(NULL, failed) {
		TH_LOG("%s failed", failed);
	}
	/* Each session was stopped by its thread, or by another one. */
	EXPECT_TRUE(is_stopped());
	EXPECT_EQ(0, start(first));
	EXPECT_TRUE(counts(first, 0, 2));
}

/*
 * Buffers
 */

/* A bad buffer, its errno, and whether it ends a profile */
struct bad_buffer {
	void *buffer;
	int error;
	bool stops;
};

#define BAD_BUFFERS	7U

static struct bad_buffer bad_buffer(unsigned int i)
{
	void *const buffers[BAD_BUFFERS] = {
		NULL,
		(void *)16,
		second + PAGE,		/* read-only */
		second + 2 * PAGE,	/* not mapped */
		second + PAGE - 8,	/* its end is read-only */
		(void *)-8L,
		second + 1,
	};
	void *buffer = buffers[i];

	if (!buffer && family->promises & NULL_STOPS)
		return (struct bad_buffer) { NULL, 0, true };
	return (struct bad_buffer) {
		buffer, buffer == second + 1 ? family->misaligned : family->bad_buffer,
		family->promises & BAD_BUFFER_STOPS,
	};
}

TEST_F(family, a_bad_buffer_is_refused)
{
	for (unsigned int i = 0; i < BAD_BUFFERS; i++) {
		struct bad_buffer bad = bad_buffer(i);

		EXPECT_EQ(bad.error, start(bad.buffer)) {
			TH_LOG("buffer %u", i);
		}
		EXPECT_IS_OFF();
	}
}

/* After a start failed with @error: has the profile ended if @stops, and not changed otherwise? */
static void expect_after_error(struct __test_metadata *_metadata,
			       bool stops, int expected,
			       int error)
{
	if (family->second == REFUSED)
		expected = EBUSY;
	if (family->second == IGNORED)
		expected = 0;
	EXPECT_EQ(expected, error);
	if (stops) {
		EXPECT_IS_OFF();
	} else {
		EXPECT_IS_ON();
		EXPECT_TRUE(counts(first, 0, 2));
	}
}

TEST_F(family, a_bad_buffer_stops_the_profile_or_leaves_it_unchanged)
{
	for (unsigned int i = 0; i < BAD_BUFFERS; i++) {
		struct bad_buffer bad = bad_buffer(i);

		ASSERT_EQ(0, start(first));
		expect_after_error(_metadata, bad.stops, bad.error, start(bad.buffer));
		variant->stop();
	}
}

/* RLIMIT_MEMLOCK allows the pages of a good profile, and not one page more. */
TEST_F(family, a_buffer_that_may_not_be_locked_is_refused)
{
	u8 *two_pages = second + PAGE - 8;
	struct rlimit limit;

	ASSERT_EQ(0, mprotect(second + PAGE, PAGE, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, start(first));
	limit.rlim_cur = pinned_bytes();
	limit.rlim_max = limit.rlim_cur;
	EXPECT_LE(PAGE, limit.rlim_cur);
	EXPECT_EQ(0, variant->stop());
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	if (geteuid() == 0)
		ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	EXPECT_EQ(variant->no_memory, start(two_pages));
	EXPECT_TRUE(is_stopped());
	ASSERT_EQ(0, start(first));
	expect_after_error(_metadata, variant->promises & NO_MEMORY_STOPS,
			   variant->no_memory, start(two_pages));
}

TEST_F(family, counting_continues_in_locked_pages_after_the_buffer_is_mapped_anew)
{
	u64 locked;

	ASSERT_EQ(0, start(first));
	EXPECT_TRUE(counts(first, 0, 2));
	locked = pinned_bytes();
	ASSERT_EQ(first, mmap(first, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_IS_ON();
	EXPECT_EQ(locked, pinned_bytes());
	EXPECT_EQ(0, in_all(first));
	EXPECT_EQ(0, variant->stop());
	EXPECT_TRUE(is_stopped());
}

/*
 * Other families
 */

static int start_another(void)
{
	return glibc_start(counters, LOOPS * sizeof(*counters), LOOPS_OFFSET);
}

TEST_F(family, it_replaces_another_familys_profile_or_has_no_effect)
{
	u64 before;

	ASSERT_EQ(0, start_another());
	EXPECT_EQ(variant->promises & EXCLUDES_OTHERS ? EBUSY : 0, start(first));
	if (variant->promises & (EXCLUDES_OTHERS | IGNORES_OTHERS)) {
		EXPECT_TRUE(loop_hits(0, 2));
		EXPECT_EQ(0, variant->stop());
		EXPECT_TRUE(loop_hits(0, 2));
		EXPECT_EQ(0, in_all(first));
	} else {
		before = counter(counters, 2, 0);
		EXPECT_TRUE(counts(first, 0, 2));
		EXPECT_EQ(before, counter(counters, 2, 0));
	}
}

TEST_F(family, another_family_replaces_its_profile_or_is_refused)
{
	ASSERT_EQ(0, start(first));
	if (variant->promises & EXCLUDES_OTHERS) {
		EXPECT_EQ(EBUSY, start_another());
		EXPECT_EQ(0, glibc_stop());
		EXPECT_TRUE(counts(first, 0, 2));
		EXPECT_EQ(0, counter(counters, 2, 0));
	} else {
		EXPECT_EQ(0, start_another());
		EXPECT_TRUE(loop_hits(0, 2));
		EXPECT_TRUE(does_not_count(first));
	}
}

/*
 * Processes
 */

/* The new program is this program again. It exits with 0 if it is not profiled. */
__attribute__((constructor)) static void end_as_new_program(void)
{
	if (getenv("PROFIL_NEW_PROGRAM"))
		_exit(is_off(SCOPE) ? 0 : 1);
}

static int exec_self(void)
{
	MUST(state_of(SCOPE) == PROFIL_STATE_ON);
	setenv("PROFIL_NEW_PROGRAM", "1", 1);
	execl("/proc/self/exe", "new", NULL);
	return 127;
}

static int count_and_stop(void)
{
	struct profil_stats s;

	MUST(state_of(SCOPE) == PROFIL_STATE_ON);
	MUST(counts(first, 0, 3));
	MUST(!session_stats(SCOPE, &s));
	MUST(accounted(&s));
	MUST(!family->stop());
	MUST(is_stopped());
	MUST(does_not_count(first));
	MUST(!start(first));
	MUST(counts(first, 0, 2));
	return 0;
}

TEST_F(family, after_fork_parent_and_child_count_separately)
{
	u64 before;

	ASSERT_EQ(0, start(first));
	EXPECT_TRUE(counts(first, 0, 2));
	EXPECT_EQ(0, status_in_child(count_and_stop()));
	EXPECT_IS_ON();
	/* The child's loop is not counted here; some ticks of fork and wait may be. */
	before = in_loop(first, 0);
	EXPECT_EQ(0, status_in_child(count_and_stop()));
	EXPECT_EQ(before, in_loop(first, 0));
	EXPECT_TRUE(counts(first, 0, 2));
}

TEST_F(family, exec_turns_it_off)
{
	ASSERT_EQ(0, start(first));
	EXPECT_EQ(0, status_in_child(exec_self()));
	EXPECT_IS_ON();
}

/*
 * The means of the library: one descriptor, no signal
 */

TEST_F(family, one_descriptor_with_a_high_number_is_kept_until_the_stop)
{
	int lowest = dup(0);

	close(lowest);
	EXPECT_EQ(-1, kept_descriptor());
	ASSERT_EQ(0, start(first));
	EXPECT_LE(100, kept_descriptor());
	EXPECT_EQ(FD_CLOEXEC, fcntl(kept_descriptor(), F_GETFD));
	EXPECT_EQ(lowest, dup(0));
	close(lowest);
	EXPECT_EQ(0, variant->stop());
	EXPECT_EQ(!!(variant->promises & STOP_KEEPS_SESSION), kept_descriptor() >= 0);
}

TEST_F(family, without_a_free_descriptor_it_can_be_replaced_and_stopped)
{
	int last;

	ASSERT_EQ(0, start(first));
	EXPECT_TRUE(counts(first, 0, 2));
	ASSERT_LE(0, take_all_descriptors());
	if (variant->second == REPLACES) {
		EXPECT_EQ(0, start(second));
		EXPECT_TRUE(counts(second, 0, 2));
		EXPECT_EQ(0, start(first));
	}
	EXPECT_EQ(0, variant->stop());
	EXPECT_TRUE(is_stopped());
	EXPECT_TRUE(does_not_count(first));
	if (variant->promises & STOP_KEEPS_SESSION)
		return;
	/* The descriptor that was kept is free now. */
	last = take_all_descriptors();
	ASSERT_LE(0, last);
	EXPECT_EQ(EMFILE, start(first));
	EXPECT_TRUE(is_off(SCOPE));
	close(last);
}

TEST_F(family, a_bad_buffer_has_the_same_effect_without_a_free_descriptor)
{
	ASSERT_EQ(0, start(first));
	ASSERT_LE(0, take_all_descriptors());
	expect_after_error(_metadata, variant->promises & BAD_BUFFER_STOPS,
			   variant->bad_buffer, start((void *)16));
}

static int stop_after_chroot(void)
{
	MUST(!start(first));
	MUST(!chroot("/proc/self/fdinfo"));	/* without a /dev */
	MUST(!chdir("/"));
	MUST(counts(first, 0, 2));
	MUST(!family->stop());
	MUST(is_stopped());
	MUST(does_not_count(first));
	MUST(family->promises & STOP_KEEPS_SESSION || start(first) == ENOSYS);
	return 0;
}

TEST_F(family, it_can_be_stopped_after_chroot)
{
	SKIP_IF(geteuid(), "chroot() needs root");
	EXPECT_EQ(0, status_in_child(stop_after_chroot()));
}

TEST_F_CHILD(family, a_seccomp_filter_on_ioctl_is_EACCES)
{
	MUST(!forbid_ioctl());
	MUST(start(first) == EACCES);
	return 0;
}

TEST_F(family, signals_and_timers_are_the_programs_own)
{
	struct itimerval timer, none = {};
	struct sigaction before, after;

	for (int sig = 1; sig <= SIGSYS; sig++) {
		ASSERT_EQ(0, sigaction(sig, NULL, &before));
		ASSERT_EQ(0, start(first));
		EXPECT_TRUE(sig != SIGPROF || counts(first, 0, 2));
		ASSERT_EQ(0, sigaction(sig, NULL, &after));
		EXPECT_EQ(before.sa_handler, after.sa_handler);
		for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
			ASSERT_EQ(0, getitimer(which, &timer));
			EXPECT_EQ(0, memcmp(&none, &timer, sizeof(timer)));
		}
		EXPECT_EQ(0, variant->stop());
	}
}

TEST_HARNESS_MAIN
