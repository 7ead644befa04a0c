// SPDX-License-Identifier: GPL-2.0
/*
 * The profiler of the Nintendo 64, and the command profil gperf, which reads its counters. The
 * sentences of the manual page are in sentences/n64
 */
#include "family.h"

#include <linux/capability.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <profil/illumos.h>
#include <profil/n64.h>

#include "users.h"

/* The period that the manual page calls typical is long for a test. */
#define PERIOD		1000U
/* A loop has 8 words. Its pc is in the fifth. */
#define WORDS		(LOOP_SIZE / 4)
#define WORD_OF(loop)	(WORDS * (loop) + LOOP_BLOCK / 4)

static union {
	u16 narrow[2 * (LOOPS * WORDS + 2)];
	u32 wide[LOOPS * WORDS + 2];
} memory[2];

#define HISTO(n)	memory[n].narrow

/* Loops @first to @last, with counters in memory[n]. */
static OSProf segment(unsigned int n, unsigned int first, unsigned int last)
{
	return (OSProf){
		.histo_base = HISTO(n),
		.histo_size = WORDS * (last - first + 1),
		.text_start = (u32 *)(uintptr_t)(addr(loops_text) + LOOP_SIZE * first),
		.text_end = (u32 *)(uintptr_t)(addr(loops_text) + LOOP_SIZE * (last + 1) - 4),
	};
}

static u64 sum(unsigned int n)
{
	return counters_sum(HISTO(n), 2, ARRAY_SIZE(HISTO(n)));
}

/*
 * Errors, as the library passes them to the handler
 */

static struct {
	unsigned int calls;
	short code;
	short nr;
	u32 number;
	void *pointers[2];
	int error;
} said;

static void on_error(short code, short nr, ...)
{
	bool numbers = code == ERR_OSPROFILEINIT_CNT || code == ERR_OSPROFILEINIT_SIZ ||
		       code == ERR_OSPROFILEINIT_FLAGS || code == ERR_OSPROFILESTART_TIME;
	va_list args;

	said.calls++;
	said.code = code;
	said.nr = nr;
	said.error = errno;
	va_start(args, nr);
	for (short i = 0; i < nr; i++) {
		if (numbers)
			said.number = va_arg(args, u32);
		else
			said.pointers[i] = va_arg(args, void *);
	}
	va_end(args);
	errno = 0;		/* changes of errno by a handler have no effect */
}

/* Checks that @what sets errno to the fault, and calls the handler once. */
#define EXPECT_FAULT(fault, number_of_it, args, what) do {	\
	memset(&said, 0, sizeof(said));				\
	errno = 0;						\
	what;							\
	EXPECT_EQ(number_of_it, errno);				\
	EXPECT_EQ(1U, said.calls);				\
	EXPECT_EQ(fault, said.code);				\
	EXPECT_EQ(args, said.nr);				\
	EXPECT_EQ(number_of_it, said.error);			\
} while (0)

/* Checks that @what succeeds: errno stays the same, and the handler is not called. */
#define EXPECT_FINE(what) do {				\
	memset(&said, 0, sizeof(said));			\
	errno = 12345;					\
	what;						\
	EXPECT_EQ(12345, errno);			\
	EXPECT_EQ(0U, said.calls);			\
} while (0)

FIXTURE(n64) {
	OSProf prof[2];
};

FIXTURE_SETUP(n64)
{
	ASSERT_IS_OFF();
	self->prof[0] = segment(0, 0, 3);
	self->prof[1] = segment(1, 4, 5);
	osSetErrorHandler(on_error);
}

FIXTURE_TEARDOWN(n64)
{
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_IS_OFF();
}

/* Starts profiling, with counters for the first @nr of the segments. */
static void start(OSProf *prof, u32 nr)
{
	osProfileInit(prof, nr);
	osProfileStart(PERIOD);
}

/* Runs loop @i with them. */
static bool profile_loop(FIXTURE_DATA(n64) *self, u32 nr, unsigned int i)
{
	bool burnt;

	start(self->prof, nr);
	burnt = loop_burn(SCOPE, i, MANY);
	osProfileStop();
	return burnt;
}

/* After osProfileInit(): the profiler runs with this period, while loop 0 does, and counts it. */
static void expect_run(struct __test_metadata *_metadata, u32 period)
{
	const u16 before = HISTO(0)[WORD_OF(0)];

	EXPECT_FINE(osProfileStart(period));
	EXPECT_TRUE(loop_until(0, HISTO(0)[WORD_OF(0)] >= before + SOME));
	EXPECT_FINE(osProfileStop());
}

TEST_F_CALL(n64, an_old_program_runs, EXPECT_EQ(0, run_beside("old-n64-game", NULL)))

/*
 * osProfileInit
 */

TEST_F(n64, cpu_time_is_added_up_in_disjoint_text)
{
	EXPECT_FINE(start(self->prof, 2));
	EXPECT_TRUE(loop_burn(SCOPE, 1, 3 * MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 5, MANY));
	EXPECT_FINE(osProfileStop());
	EXPECT_LE(2 * MANY, HISTO(0)[WORD_OF(1)]);
	EXPECT_LT(HISTO(1)[WORD_OF(1)], HISTO(0)[WORD_OF(1)]);
	EXPECT_LE(SOME, HISTO(1)[WORD_OF(1)]);
}

TEST_F(n64, all_members_of_the_array_are_segments)
{
	OSProf prof[LOOPS];
	unsigned int i;

	/* Each segment is one loop, and has its own part of the array. */
	for (i = 0; i < LOOPS; i++) {
		prof[i] = segment(0, i, i);
		prof[i].histo_base += WORDS * i;
	}
	start(prof, LOOPS);
	for (i = 0; i < LOOPS; i++)
		EXPECT_TRUE(loop_burn(SCOPE, i, 2 * MANY));
	osProfileStop();
	for (i = 0; i < LOOPS; i++)
		EXPECT_LT(0, HISTO(0)[WORD_OF(i)]);
}

TEST_F(n64, profcnt_is_the_number_of_segments)
{
	EXPECT_TRUE(profile_loop(self, 1, 4));
	EXPECT_EQ(0U, sum(1));
	EXPECT_LE(SOME, osProfileOverflow());
}

TEST_F(n64, histo_base_is_an_array_of_u16)
{
	EXPECT_EQ(sizeof(u16), sizeof(*self->prof[0].histo_base));
	memory[0].wide[LOOPS * WORDS] = 0x55555555;
	self->prof[0] = segment(0, 0, LOOPS - 1);
	EXPECT_TRUE(profile_loop(self, 1, 7));
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(7)]);
	/* A counter has 16 bits, not 32, so the second half of the memory is not used. */
	EXPECT_EQ(0U, counters_sum(&HISTO(0)[LOOPS * WORDS], 2, LOOPS * WORDS));
	EXPECT_EQ(0x55555555, memory[0].wide[LOOPS * WORDS]);
}

TEST_F(n64, a_counter_is_for_a_word_of_32_bits)
{
	/* The text begins i words before the loop's pc, which is then in word i. */
	for (unsigned int i = 0; i < 4; i++) {
		self->prof[0].text_start = (u32 *)(uintptr_t)(loop_at(0) - 4 * i);
		self->prof[0].text_end = self->prof[0].text_start + 7;
		EXPECT_TRUE(profile_loop(self, 1, 0));
		EXPECT_LE(SOME, HISTO(0)[i]);
		EXPECT_EQ(HISTO(0)[i], sum(0));
	}
}

TEST_F(n64, text_starts_with_the_first_instruction)
{
	self->prof[0].text_start = (u32 *)(uintptr_t)loop_at(0);
	self->prof[1] = segment(1, 0, 0);
	self->prof[1].text_end = (u32 *)(uintptr_t)(loop_at(0) - 4);
	EXPECT_TRUE(profile_loop(self, 2, 0));
	EXPECT_LE(SOME, HISTO(0)[0]);
	EXPECT_EQ(0, HISTO(1)[WORD_OF(0)]);
}

TEST_F(n64, text_ends_with_the_last_instruction)
{
	self->prof[0].text_end = (u32 *)(uintptr_t)loop_at(1);
	EXPECT_TRUE(profile_loop(self, 1, 1));
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(1)]);

	/* The loop's instruction is no longer in the segment. */
	self->prof[0].text_end--;
	EXPECT_TRUE(profile_loop(self, 1, 1));
	EXPECT_EQ(0, HISTO(0)[WORD_OF(1)]);
	EXPECT_LE(SOME, osProfileOverflow());
}

/* Each tick is in a segment, or in the overflow counter. */
TEST_F(n64, a_pc_in_no_segment_increments_the_overflow_counter)
{
	struct profil_stats s;

	osProfileInit(self->prof, 2);
	EXPECT_EQ(0U, osProfileOverflow());
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 6, 2 * MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LE(MANY, osProfileOverflow());
	EXPECT_EQ(s.ticks, s.hit + s.dropped);
	osProfileStop();
	EXPECT_LE(s.hit, sum(0) + sum(1) + osProfileOverflow());
}

TEST_F(n64, init_clears_the_counters)
{
	memset(memory, 0x55, sizeof(memory));
	EXPECT_FINE(osProfileInit(self->prof, 2));
	EXPECT_EQ(0U, counters_sum(HISTO(0), 2, self->prof[0].histo_size));
	EXPECT_EQ(0U, counters_sum(HISTO(1), 2, self->prof[1].histo_size));
	EXPECT_EQ(0x5555, HISTO(0)[self->prof[0].histo_size]);
	EXPECT_EQ(0x5555, HISTO(1)[self->prof[1].histo_size]);
	/* Nothing is counted before the start. */
	EXPECT_EQ(PROFIL_STATE_ON, state_of(SCOPE));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	EXPECT_EQ(0U, counters_sum(HISTO(0), 2, self->prof[0].histo_size));
	EXPECT_EQ(0U, osProfileOverflow());

	/* A second call clears the counters again, also the overflow counter. */
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 6, 3));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	osProfileStop();
	EXPECT_LT(0U, osProfileOverflow());
	EXPECT_FINE(osProfileInit(self->prof, 2));
	EXPECT_EQ(0U, osProfileOverflow());
	EXPECT_EQ(0, HISTO(0)[WORD_OF(0)]);
}

TEST_F(n64, calls_before_init_fail)
{
	EXPECT_FAULT(ERR_OSPROFILESTART_INIT, ESRCH, 0, osProfileStart(PERIOD));
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
	EXPECT_FINE(osProfileFlush());
	EXPECT_TRUE(is_off(SCOPE));
}

/*
 * osProfileStart, osProfileStop
 */

/* The kernel reports both the ticks and the CPU time; a longer period gives fewer ticks. */
TEST_F(n64, microseconds_are_the_period)
{
	const u32 periods[] = { 500, 10000 };
	struct profil_stats s;
	u64 us, ticks;

	osProfileInit(self->prof, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(periods); i++) {
		us = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;
		EXPECT_FINE(osProfileStart(periods[i]));
		EXPECT_TRUE(loop_burn(SCOPE, 0, 20));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		osProfileStop();
		us = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000 - us;
		/*
		 * The ticks may differ by a fifth, which is the accuracy of CPU time here, plus
		 * two.
		 */
		ticks = s.ticks + s.missed;
		EXPECT_LE(s.expected * periods[i], us + us / 5 + 4 * periods[i]);
		EXPECT_LE(ticks, s.expected + s.expected / 5 + 2);
		EXPECT_LE(s.expected, ticks + ticks / 5 + 2);
	}
}

TEST_F(n64, a_period_of_10_ms_is_accepted)
{
	osProfileInit(self->prof, 1);
	expect_run(_metadata, 10000);
}

TEST_F(n64, the_shortest_period_is_PROF_MIN_INTERVAL)
{
	EXPECT_EQ(50, PROF_MIN_INTERVAL);
	osProfileInit(self->prof, 1);
	expect_run(_metadata, PROF_MIN_INTERVAL);
}

/* This includes counters that are not the first, and the second segment. */
TEST_F(n64, each_interrupt_raises_the_counter_of_the_pc)
{
	self->prof[0] = segment(0, 5, 7);
	self->prof[1] = segment(1, 0, 2);
	EXPECT_TRUE(profile_loop(self, 2, 2));
	EXPECT_LE(SOME, HISTO(1)[WORD_OF(2)]);
	EXPECT_EQ(HISTO(1)[WORD_OF(2)], sum(1));
	EXPECT_EQ(0U, sum(0));
}

TEST_F(n64, profiling_can_be_started_again)
{
	osProfileInit(self->prof, 1);
	for (unsigned int i = 0; i < 4; i++)
		expect_run(_metadata, PERIOD);
}

/*
 * Errors
 */

TEST_F(n64, errors_reach_the_handler_and_errno)
{
	EXPECT_TRUE(osSetErrorHandler(NULL) == on_error);
	EXPECT_TRUE(!osSetErrorHandler(NULL));
	memset(&said, 0, sizeof(said));
	errno = 0;
	osProfileStop();
	EXPECT_EQ(EALREADY, errno);
	EXPECT_EQ(0U, said.calls);
	EXPECT_TRUE(!osSetErrorHandler(on_error));
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
}

/* A handler calls functions of the library. These must not wait for the call that failed. */
static void stop_and_go_on(short code, short nr, ...)
{
	(void)nr;
	said.calls++;
	if (code == ERR_OSPROFILEINIT_STR)
		osProfileStop();
}

TEST_F(n64, a_handler_may_call_the_profiler)
{
	osSetErrorHandler(stop_and_go_on);
	start(self->prof, 1);
	said.calls = 0;
	osProfileInit(self->prof, 1);
	EXPECT_EQ(1U, said.calls);
	osProfileInit(self->prof, 1);
	EXPECT_EQ(1U, said.calls);
}

TEST_F(n64, INIT_STR_it_is_running)
{
	start(self->prof, 1);
	EXPECT_TRUE(loop_until(0, HISTO(0)[WORD_OF(0)]));
	EXPECT_FAULT(ERR_OSPROFILEINIT_STR, EBUSY, 0, osProfileInit(self->prof, 1));
	/* Profiling continues, and no counter was cleared. */
	EXPECT_LT(0, HISTO(0)[WORD_OF(0)]);
	osProfileStop();
	EXPECT_FINE(osProfileInit(self->prof, 1));
}

TEST_F(n64, INIT_CNT_profcnt_is_wrong)
{
	EXPECT_FAULT(ERR_OSPROFILEINIT_CNT, EINVAL, 1, osProfileInit(self->prof, 0));
	EXPECT_EQ(0U, said.number);
	EXPECT_FAULT(ERR_OSPROFILEINIT_CNT, EINVAL, 1, osProfileInit(self->prof, UINT_MAX));
	EXPECT_EQ(UINT_MAX, said.number);
	EXPECT_TRUE(is_off(SCOPE));
}

/*
 * Each segment can be cut in two by another one, and two ranges are for the overflow counter and
 * the period.
 */
TEST_F(n64, the_number_of_segments_is_at_most_half_of_max_ranges)
{
	struct profil_query query;
	OSProf *profs;
	u32 most;

	ASSERT_EQ(0, device_query(&query));
	most = query.max_ranges / 2 - 2;
	profs = map_private((most + 1) * sizeof(*profs));
	for (u32 i = 0; i <= most; i++) {
		profs[i] = segment(0, 0, 0);
		profs[i].text_start += i * 2 * WORDS;
		profs[i].text_end += i * 2 * WORDS;
	}
	EXPECT_FAULT(ERR_OSPROFILEINIT_CNT, EINVAL, 1, osProfileInit(profs, most + 1));
	EXPECT_EQ(most + 1, said.number);
	EXPECT_FINE(osProfileInit(profs, most));
	expect_run(_metadata, PERIOD);
}

TEST_F(n64, an_array_that_cannot_be_read_is_EFAULT)
{
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EFAULT, 0, osProfileInit(NULL, 1));
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EFAULT, 0, osProfileInit((void *)16, 1));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_F(n64, INIT_ALN_histo_base_is_not_aligned_to_32_bits)
{
	self->prof[0].histo_base++;
	EXPECT_FAULT(ERR_OSPROFILEINIT_ALN, EINVAL, 1, osProfileInit(self->prof, 2));
	EXPECT_EQ(self->prof[0].histo_base, said.pointers[0]);
	self->prof[0].histo_base++;
	EXPECT_FINE(osProfileInit(self->prof, 2));
	self->prof[1].histo_base = (u16 *)((char *)self->prof[1].histo_base + 1);
	EXPECT_FAULT(ERR_OSPROFILEINIT_ALN, EINVAL, 1, osProfileInit(self->prof, 2));
}

TEST_F(n64, INIT_ORD_text_start_is_not_below_text_end)
{
	self->prof[1].text_end = self->prof[1].text_start;
	EXPECT_FAULT(ERR_OSPROFILEINIT_ORD, EINVAL, 2, osProfileInit(self->prof, 2));
	EXPECT_EQ(self->prof[1].text_start, said.pointers[0]);
	EXPECT_EQ(self->prof[1].text_end, said.pointers[1]);
	self->prof[1].text_end--;
	EXPECT_FAULT(ERR_OSPROFILEINIT_ORD, EINVAL, 2, osProfileInit(self->prof, 2));
	self->prof[1].text_end += 2;
	EXPECT_FINE(osProfileInit(self->prof, 2));
}

TEST_F(n64, INIT_SIZ_histo_size_is_too_small)
{
	self->prof[0].histo_size--;
	EXPECT_FAULT(ERR_OSPROFILEINIT_SIZ, EINVAL, 1, osProfileInit(self->prof, 2));
	EXPECT_EQ(self->prof[0].histo_size, said.number);
	self->prof[0].histo_size = 0;
	EXPECT_FAULT(ERR_OSPROFILEINIT_SIZ, EINVAL, 1, osProfileInit(self->prof, 2));
	self->prof[0].histo_size = 2 * LOOPS * WORDS;
	EXPECT_FINE(osProfileInit(self->prof, 2));
}

TEST_F(n64, START_TIME_is_below_PROF_MIN_INTERVAL)
{
	osProfileInit(self->prof, 1);
	EXPECT_FAULT(ERR_OSPROFILESTART_TIME, EINVAL, 1, osProfileStart(PROF_MIN_INTERVAL - 1));
	EXPECT_EQ(PROF_MIN_INTERVAL - 1U, said.number);
	EXPECT_FAULT(ERR_OSPROFILESTART_TIME, EINVAL, 1, osProfileStart(0));
	/* The kernel's longest period is below an hour. */
	EXPECT_FAULT(ERR_OSPROFILESTART_TIME, EINVAL, 1, osProfileStart(UINT_MAX));
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
}

TEST_F(n64, START_FLAG_it_is_started_already)
{
	osProfileInit(self->prof, 1);
	EXPECT_FINE(osProfileStart(PERIOD));
	EXPECT_FAULT(ERR_OSPROFILESTART_FLAG, EALREADY, 0, osProfileStart(2 * PERIOD));
	EXPECT_FINE(osProfileStop());
	EXPECT_FINE(osProfileStart(2 * PERIOD));
}

TEST_F(n64, STOP_FLAG_it_is_stopped_already)
{
	osProfileInit(self->prof, 1);
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
	osProfileStart(PERIOD);
	EXPECT_FINE(osProfileStop());
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
}

/* Another family uses the one classic session, or has turned it off. */
TEST_F(n64, STOP_TIMER_the_session_is_another_familys)
{
	static u16 other[64];

	start(self->prof, 1);
	ASSERT_EQ(0, profil(other, sizeof(other), addr(loops_text), 65536));
	EXPECT_FAULT(ERR_OSPROFILESTOP_TIMER, ESRCH, 0, osProfileStop());
	EXPECT_EQ(PROFIL_STATE_ON, state_of(SCOPE));	/* the session of the other family */
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
	/* This call replaces the other family's session again. */
	EXPECT_FINE(osProfileStart(PERIOD));
	ASSERT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_FAULT(ERR_OSPROFILESTOP_TIMER, ESRCH, 0, osProfileStop());
}

/* Without counters, no session is left that gperf could read after osProfileStop(). */
TEST_F(n64, stop_with_an_unmapped_histogram_fails_with_EFAULT_and_stops)
{
	void *gone = map_private(PAGE);

	self->prof[0].histo_base = gone;
	EXPECT_FINE(start(self->prof, 1));
	ASSERT_EQ(0, munmap(gone, PAGE));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EFAULT, 0, osProfileStop());
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_FAULT(ERR_OSPROFILESTOP_FLAG, EALREADY, 0, osProfileStop());
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EFAULT, 0, osProfileStart(PERIOD));
}

TEST_F(n64, stop_needs_no_free_descriptor_unless_the_kept_one_was_closed)
{
	u64 counted;
	int last;

	EXPECT_FINE(start(self->prof, 1));
	ASSERT_LE(0, take_all_descriptors());
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	EXPECT_FINE(osProfileStop());
	counted = sum(0);
	EXPECT_LE(SOME, counted);
	EXPECT_FINE(osProfileStart(PERIOD));

	/* A call that fails changes nothing. */
	ASSERT_EQ(0, close_range(100, ~0U, 0));
	last = take_all_descriptors();
	ASSERT_LE(0, last);
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EMFILE, 0, osProfileStop());
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	ASSERT_EQ(0, close(last));
	EXPECT_FINE(osProfileStop());
	EXPECT_LE(counted + SOME, sum(0));
	counted = sum(0);
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	EXPECT_EQ(counted, sum(0));
}

/* On the original system, this would have killed the program. */
TEST_F(n64, a_histogram_that_is_not_mapped_is_EFAULT)
{
	EXPECT_TRUE(profile_loop(self, 1, 0));
	self->prof[1].histo_base = (u16 *)4096;
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EFAULT, 0, osProfileInit(self->prof, 2));
	/* Nothing has changed. */
	EXPECT_LT(0, HISTO(0)[WORD_OF(0)]);
	EXPECT_FINE(osProfileStart(PERIOD));
}

/*
 * Features that the manual page lacks
 */

TEST_F(n64, counters_may_have_32_bits)
{
	self->prof[0] = segment(0, 0, LOOPS - 1);
	memory[0].wide[LOOPS * WORDS] = 0x55555555;
	EXPECT_FINE(osProfileInitFlags(self->prof, 1, PROF_UINT32));
	EXPECT_EQ(0x55555555, memory[0].wide[LOOPS * WORDS]);
	memory[0].wide[WORD_OF(7)] = 65535;
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 7, MANY));
	osProfileStop();
	EXPECT_LE(65535U + SOME, memory[0].wide[WORD_OF(7)]);
	EXPECT_FAULT(ERR_OSPROFILEINIT_FLAGS, EINVAL, 1,
		     osProfileInitFlags(self->prof, 1, 1U << 31));
}

/* Without PROF_DISJOINT, the first segment that contains a pc counts it. */
TEST_F(n64, overlapping_segments_are_an_error_with_PROF_DISJOINT)
{
	self->prof[1] = segment(1, 3, 5);
	EXPECT_FAULT(ERR_OSPROFILEINIT_OVL, EINVAL, 2,
		     osProfileInitFlags(self->prof, 2, PROF_DISJOINT));
	EXPECT_EQ(self->prof[0].text_start, said.pointers[0]);
	EXPECT_EQ(self->prof[1].text_start, said.pointers[1]);
	EXPECT_FINE(osProfileInitFlags(self->prof, 2, 0));
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 3, MANY));
	EXPECT_TRUE(loop_burn(SCOPE, 4, MANY));
	osProfileStop();
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(3)]);
	EXPECT_EQ(0, HISTO(1)[WORD_OF(0)]);
	EXPECT_LE(SOME, HISTO(1)[WORD_OF(1)]);

	self->prof[1] = segment(1, 4, 5);
	EXPECT_FINE(osProfileInitFlags(self->prof, 2, PROF_DISJOINT));
	/* The last instruction of the first segment is the first of the second one. */
	self->prof[1].text_start--;
	self->prof[1].histo_size++;
	EXPECT_FAULT(ERR_OSPROFILEINIT_OVL, EINVAL, 2,
		     osProfileInitFlags(self->prof, 2, PROF_DISJOINT));
}

/*
 * Other calls, threads and processes
 */

TEST_F(n64, other_families_replace_it_and_it_replaces_them)
{
	static u16 other[LOOPS * LOOP_SIZE / 2];
	uintptr_t samples[4];
	u64 counted;

	ASSERT_EQ(0, profil(other, sizeof(other), addr(loops_text), 65536));
	EXPECT_FINE(start(self->prof, 1));
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	EXPECT_EQ(-1, pcsample(samples, 4));
	EXPECT_EQ(EBUSY, errno);
	counted = sum(0);
	EXPECT_LE(SOME, counted);
	ASSERT_EQ(0, profil(other, sizeof(other), addr(loops_text), 65536));
	EXPECT_LE(counted, sum(0));
	counted = sum(0);
	EXPECT_TRUE(loop_burn(SCOPE, 0, MANY));
	EXPECT_EQ(counted, sum(0));
	/* The library knows that profiling is off, so osProfileInit() succeeds. */
	EXPECT_FINE(osProfileInit(self->prof, 1));
}

static void *start_and_stop(void *arg)
{
	OSProf *prof = arg;

	for (unsigned int i = 0; i < 50; i++) {
		osProfileStart(PERIOD);
		osProfileFlush();
		osProfileStop();
		if (i % 8 == 0)
			osProfileInit(prof, 1);
	}
	return NULL;
}

TEST_F(n64, threads_and_forks_may_call_it)
{
	pthread_t threads[3];
	unsigned int i;

	osSetErrorHandler(NULL);
	osProfileInit(self->prof, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = thread_start(start_and_stop, self->prof);
	for (i = 0; i < 20; i++)
		EXPECT_CHILD(osProfileStop(); osProfileStart(PERIOD); osProfileStop());
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		thread_end(threads[i]);
	osSetErrorHandler(on_error);
	osProfileStop();
	expect_run(_metadata, PERIOD);
}

/*
 * profil gperf
 *
 * A game is a child that reads one-letter commands from a socket, and answers each with its score.
 * While it waits for a command it gets no ticks.
 */

static volatile unsigned int work;

#define GAME_TEXT __attribute__((noinline, noclone, used, section("n64_game")))

extern const char __start_n64_game[], __stop_n64_game[];

static GAME_TEXT void hot_scene(void)
{
	for (unsigned int i = 0; i < 1 << 18; i++)
		work++;
}

static GAME_TEXT void cold_scene(void)
{
	for (unsigned int i = 0; i < 1 << 18; i++)
		work--;
}

static u16 game_histo[4096] __attribute__((aligned(4)));

struct game {
	pid_t pid;
	int socket;
};

/* Hits of the game in its text, and in the overflow counter. */
struct score {
	u64 text;
	u64 elsewhere;
};

static void scene_play(void (*scene)(void), u64 ticks)
{
	u64 until = counters_sum(game_histo, 2, ARRAY_SIZE(game_histo)) + ticks;
	unsigned int left = 1 << 16;

	while (counters_sum(game_histo, 2, ARRAY_SIZE(game_histo)) < until && left--)
		scene();
}

static void game_run(int socket)
{
	OSProf prof = {
		.histo_base = game_histo,
		.histo_size = ARRAY_SIZE(game_histo),
		.text_start = (u32 *)__start_n64_game,
		.text_end = (u32 *)((uintptr_t)__stop_n64_game - 4),
	};
	struct score score;
	char what;

	while (read(socket, &what, 1) == 1) {
		errno = 0;
		switch (what) {
		case 'i':
			osProfileInit(&prof, 1);
			break;
		case 'p':
			osProfileStart(PERIOD);
			scene_play(hot_scene, 60);
			scene_play(cold_scene, 10);
			break;
		case 's':
			osProfileStop();
			break;
		case 'f':
			osProfileFlush();
			break;
		case 'x':			/* the process exits immediately */
			osProfileFlush();
			return;
		case 'e':	/* another program, which ends when the socket is closed, too */
			dup2(socket, STDIN_FILENO);
			execlp("cat", "cat", NULL);
		}
		MUST(!errno);
		score.text = counters_sum(game_histo, 2, ARRAY_SIZE(game_histo));
		score.elsewhere = osProfileOverflow();
		MUST(write(socket, &score, sizeof(score)) == sizeof(score));
	}
}

static struct game game_start(void)
{
	int sockets[2];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = FORK(close(sockets[0]); game_run(sockets[1]));
	close(sockets[1]);
	return (struct game) { pid, sockets[0] };
}

static void game_command(const struct game *game, char command)
{
	MUST(write(game->socket, &command, 1) == 1);
}

static struct score game_score(const struct game *game)
{
	struct score score;

	MUST(read(game->socket, &score, sizeof(score)) == sizeof(score));
	return score;
}

/* Gives the game the commands, and waits for each. Returns the score after the last one. */
static struct score game_do(const struct game *game, const char *commands)
{
	struct score score;

	do {
		game_command(game, *commands);
		score = game_score(game);
	} while (*++commands);
	return score;
}

static int game_end(const struct game *game)
{
	close(game->socket);
	return status_of(game->pid);
}

/* Returns the shell command that runs profil gperf for process @pid, until the next call. */
static const char *gperf_command(const char *option, pid_t pid)
{
	static char command[PATH_MAX + NAME_MAX + 64];

	snprintf(command, sizeof(command), "exec %s gperf %s %d 2>&1", profil_command(), option,
		 pid);
	return command;
}

static FILE *gperf(const char *option, pid_t pid)
{
	FILE *output = popen(gperf_command(option, pid), "re");

	MUST(output);
	return output;
}

/**
 * struct heard - The output of profil gperf
 * @reports: The number of reports.
 * @ticks: Of the last report: all ticks. @hot, @cold, @elsewhere: parts of these.
 * @first: The first function in it.
 * @text: Its heading; or an error message.
 * @status: The exit status.
 */
struct heard {
	unsigned int reports;
	unsigned long long ticks, hot, cold, elsewhere;
	char first[64];
	char period[16];
	char text[256];
	int status;
};

static struct heard hear(FILE *from)
{
	char line[256], name[64];
	unsigned long long ticks;
	struct heard heard = {};
	int status;

	while (fgets(line, sizeof(line), from)) {
		if (sscanf(line, "process %*d: %llu ticks of %15s", &ticks, name) == 2) {
			heard = (struct heard) { .reports = heard.reports + 1, .ticks = ticks };
			strcpy(heard.period, name);
		}
		if (!heard.text[0])
			strcpy(heard.text, line);
		if (sscanf(line, "%*f%% %*f%% %llu %*f %*s %63s", &ticks, name) != 2)
			continue;
		if (!heard.first[0] && strcmp(name, "[elsewhere]"))
			strcpy(heard.first, name);
		if (!strcmp(name, "hot_scene"))
			heard.hot = ticks;
		else if (!strcmp(name, "cold_scene"))
			heard.cold = ticks;
		else if (!strcmp(name, "[elsewhere]"))
			heard.elsewhere = ticks;
	}
	status = pclose(from);
	heard.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return heard;
}

static struct heard ask_gperf(pid_t pid)
{
	return hear(gperf("", pid));
}

/* Returns true if gperf printed this message, and failed. */
static bool refused(struct heard heard, const char *message)
{
	if (heard.status == 1 && strstr(heard.text, message))
		return true;
	dprintf(STDERR_FILENO, "# exit status %d: %s\n", heard.status, heard.text);
	return false;
}

static bool is_awaited(pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "@profil-gperf-%d", pid);
	return file_has("/proc/net/unix", name, NULL, 0);
}

/* The game may get a tick elsewhere after it has read the overflow counter. */
#define EXPECT_HEARD(heard, score) do {						\
	EXPECT_EQ(0, (heard).status);						\
	EXPECT_EQ((score).text, (heard).hot + (heard).cold);			\
	EXPECT_LE((score).elsewhere, (heard).elsewhere);			\
	EXPECT_EQ((score).text + (heard).elsewhere, (heard).ticks);		\
} while (0)

FIXTURE(host) {
	struct game game;
};

FIXTURE_SETUP(host)
{
	ASSERT_DEVICE();
	self->game = game_start();
}

FIXTURE_TEARDOWN(host)
{
	EXPECT_EQ(0, game_end(&self->game));
}

TEST_F(host, gperf_prints_the_time_of_each_function)
{
	struct score score = game_do(&self->game, "ip");
	struct heard heard = ask_gperf(self->game.pid);

	EXPECT_HEARD(heard, score);
	EXPECT_EQ(1U, heard.reports);
	EXPECT_STREQ("hot_scene", heard.first);
	EXPECT_LE(60U, heard.hot);
	EXPECT_LE(8U, heard.cold);
	EXPECT_LT(heard.cold, heard.hot);
	EXPECT_STREQ("1", heard.period);
}

TEST_F(host, data_can_be_read_at_any_time_after_init)
{
	struct heard heard;
	struct score score;

	EXPECT_TRUE(refused(ask_gperf(self->game.pid), "has no profile"));
	game_do(&self->game, "i");
	heard = ask_gperf(self->game.pid);
	EXPECT_EQ(0, heard.status);
	EXPECT_NE(NULL, strstr(heard.text, ": 0 ticks"));
	score = game_do(&self->game, "p");
	heard = ask_gperf(self->game.pid);
	EXPECT_HEARD(heard, score);
}

TEST_F(host, data_can_be_read_after_stop)
{
	struct score score = game_do(&self->game, "ips");
	struct heard heard = ask_gperf(self->game.pid);

	EXPECT_HEARD(heard, score);
	EXPECT_STREQ("1", heard.period);
}

/* The program can be stopped, or run in a loop: it need not cooperate. */
TEST_F(host, data_can_be_read_while_the_program_runs)
{
	struct score score = game_do(&self->game, "ip");
	struct heard heard;

	ASSERT_EQ(0, kill(self->game.pid, SIGSTOP));
	heard = ask_gperf(self->game.pid);
	ASSERT_EQ(0, kill(self->game.pid, SIGCONT));
	EXPECT_HEARD(heard, score);
	/* Then the game runs. */
	score = game_do(&self->game, "s");
	game_command(&self->game, 'p');
	heard = ask_gperf(self->game.pid);
	EXPECT_EQ(0, heard.status);
	EXPECT_LE(score.text + score.elsewhere, heard.ticks);
	game_score(&self->game);
}

/* The program has no thread, signal handler or descriptor for gperf. */
TEST_F(host, the_program_has_no_thread_for_gperf)
{
	char path[64];

	game_do(&self->game, "ip");
	EXPECT_EQ(0, ask_gperf(self->game.pid).status);
	snprintf(path, sizeof(path), "/proc/%d/status", self->game.pid);
	EXPECT_EQ(1, file_number(path, "Threads:"));
	EXPECT_TRUE(file_has(path, "SigCgt:\t0000000000000000", NULL, 0));
}

TEST_F(host, flush_hands_the_data_to_a_gperf_that_waits)
{
	struct score score;
	struct heard heard;
	FILE *host;

	/* Without a gperf that waits, osProfileFlush() has no effect. */
	game_do(&self->game, "fif");
	host = gperf("--wait", self->game.pid);
	ASSERT_TRUE(await(is_awaited(self->game.pid)));
	score = game_do(&self->game, "pfs");
	/* gperf gets the data although the process has exited. */
	game_command(&self->game, 'x');
	heard = hear(host);
	EXPECT_HEARD(heard, score);
	EXPECT_EQ(2U, heard.reports);
	EXPECT_STREQ("hot_scene", heard.first);
	EXPECT_STREQ("1", heard.period);
}

/* A gperf that does not read does not block the program. */
TEST_F(host, flush_does_not_wait_for_gperf)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1;

	len += snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "profil-gperf-%d",
			self->game.pid);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&address, len));
	ASSERT_EQ(0, listen(fd, 2));
	game_do(&self->game, "iffffffffffffffffffff");
	close(fd);
}

TEST_F(host, data_of_another_user_cannot_be_read)
{
	const pid_t others = geteuid() ? 1 : self->game.pid;

	game_do(&self->game, "i");
	EXPECT_CHILD({
		become_user(1001);
		MUST(refused(ask_gperf(others), "ptrace rights are needed"));
	});
}

static int describe(pid_t pid)
{
	struct profil_describe arg = { .size = sizeof(arg), .pid = pid };

	return device_ioctl(PROFIL_IOC_DESCRIBE, &arg);
}

/* CAP_PERFMON allows reading only the description of the session. */
TEST_F(host, CAP_PERFMON_is_not_enough_to_read_memory)
{
	NEED_ROOT("to become another user");
	game_do(&self->game, "i");
	EXPECT_CHILD({
		struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
		struct __user_cap_data_struct data[2] = {};
		struct __user_cap_data_struct *caps = &data[CAP_TO_INDEX(CAP_PERFMON)];

		MUST(!prctl(PR_SET_KEEPCAPS, 1));
		become_user(1001);
		caps->effective = CAP_TO_MASK(CAP_PERFMON);
		caps->permitted = caps->effective;
		caps->inheritable = caps->effective;
		MUST(!syscall(SYS_capset, &header, data));
		MUST(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_PERFMON, 0, 0));
		MUST(!describe(self->game.pid));
		MUST(refused(ask_gperf(self->game.pid),
			     "Operation not permitted (ptrace rights"));
	});
}

#define PTRACE_SCOPE	"/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_FORBIDS	"Operation not permitted (ptrace rights are needed: see kernel.yama"

TEST_F(host, security_modules_can_forbid_gperf)
{
	char before[32];

	NEED_ROOT("to become another user");
	SKIP_IF(access(PTRACE_SCOPE, F_OK), "the kernel has no Yama");
	file_line(PTRACE_SCOPE, before, sizeof(before));
	for (int forbid = 1; forbid >= 0; forbid--) {
		EXPECT_EQ(0, file_write(PTRACE_SCOPE, forbid ? "1" : "0"));
		/* A game of an ordinary user, which is not a child of the user's profil command. */
		EXPECT_CHILD({
			struct game game;
			struct heard heard;

			become_user(1000);
			game = game_start();
			game_do(&game, "i");
			heard = ask_gperf(game.pid);
			MUST(forbid ? refused(heard, YAMA_FORBIDS) : !heard.status);
			MUST(!game_end(&game));
		});
	}
	EXPECT_EQ(0, file_write(PTRACE_SCOPE, before));
}

/* Starts profil gperf, and stops it when it is about to read the memory of @pid. */
static pid_t gperf_stopped(pid_t pid, int output)
{
	struct __ptrace_syscall_info call;
	pid_t child;
	int status;

	child = FORK({
		dup2(output, STDOUT_FILENO);
		MUST(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		execl("/bin/sh", "sh", "-c", gperf_command("", pid), NULL);
	});
	MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	MUST(!ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	do {
		MUST(!ptrace(PTRACE_SYSCALL, child, NULL, NULL));
		MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		MUST(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(call), &call) > 0);
	} while (call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_process_vm_readv);
	return child;
}

/*
 * Returns what gperf prints if the game gets the command @what while gperf is stopped there, until
 * describe() returns @err.
 */
static struct heard ask_while(const struct game *game, char what, int err)
{
	struct heard heard = {};
	pid_t command;
	int pipes[2];

	MUST(!pipe2(pipes, O_CLOEXEC));
	command = gperf_stopped(game->pid, pipes[1]);
	game_command(game, what);
	MUST(await(describe(game->pid) == err));
	MUST(!ptrace(PTRACE_DETACH, command, NULL, NULL));
	heard.status = status_of(command);
	MUST(read(pipes[0], heard.text, sizeof(heard.text) - 1) > 0);
	close(pipes[0]);
	close(pipes[1]);
	return heard;
}

/* gperf never takes memory of another program for counters. */
TEST_F(host, a_game_that_exits_or_execs_meanwhile_has_no_report)
{
	struct game game = game_start();

	game_do(&self->game, "i");
	EXPECT_TRUE(refused(ask_while(&self->game, 'e', -EINVAL), "has no profile"));
	game_do(&game, "i");
	EXPECT_TRUE(refused(ask_while(&game, 'x', -ESRCH), "there is no process"));
	EXPECT_EQ(0, game_end(&game));
}

/* The session continues, but its pages are no longer mapped in the process. */
TEST_F(host, counters_that_were_unmapped_cannot_be_read)
{
	u16 *counters = map_private(PAGE);

	ASSERT_EQ(0, profil(counters, PAGE, addr(__start_n64_game), 32768));
	ASSERT_EQ(counters, mmap(counters, PAGE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_TRUE(refused(ask_gperf(getpid()), "cannot read its counters"));
	EXPECT_EQ(0, profil(null, 0, 0, 0));
}

/* gperf also reads the counters of other families. */
TEST_F(host, gperf_reads_any_classic_profile)
{
	static u16 counters[256];
	struct heard heard;

	ASSERT_EQ(0, profil(counters, sizeof(counters), addr(__start_n64_game), 32768));
	while (counters_sum(counters, 2, ARRAY_SIZE(counters)) < 5)
		hot_scene();
	heard = ask_gperf(getpid());
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(0, heard.status);
	EXPECT_LE(5U, heard.ticks);
	EXPECT_LE(heard.ticks, counters_sum(counters, 2, ARRAY_SIZE(counters)));
	EXPECT_EQ(heard.ticks, heard.hot);
}

TEST_F(host, gperf_reads_samples_of_pcsample)
{
	static uintptr_t samples[64];
	struct profil_stats s;
	struct heard heard;

	memset(samples, 0x55, sizeof(samples));
	ASSERT_EQ(0, pcsample(samples, ARRAY_SIZE(samples)));
	do {
		hot_scene();
		ASSERT_EQ(0, session_stats(SCOPE, &s));
	} while (s.hit < s.system + 5);
	heard = ask_gperf(getpid());
	EXPECT_EQ(0, heard.status);
	EXPECT_LE(5U, heard.ticks);
	EXPECT_LE(3U, heard.hot);
	EXPECT_LE(heard.ticks, (unsigned long long)pcsample(NULL, 0));
}

TEST_HARNESS_MAIN
