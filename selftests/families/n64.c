// SPDX-License-Identifier: GPL-2.0
/*
 * The profiler of the Nintendo 64, and the command profil gperf, which reads its counters. The
 * sentences of the manual page are in sentences/n64
 */
#include "kselftest_harness.h"

#include <linux/capability.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <profil/illumos.h>
#include <profil/n64.h>

#include "kernel.h"
#include "loop.h"
#include "old.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
/* The period that the manual page calls typical is long for a test. */
#define PERIOD		1000U
/* A loop has at least SOME of FEW ticks. The others are between its bursts. */
#define FEW		16
#define SOME		(FEW / 4)

/* A loop has 8 words. Its pc is in the fifth. */
#define WORDS		(LOOP_SIZE / 4)
#define WORD_OF(loop)	(WORDS * (loop) + LOOP_BLOCK / 4)

static union {
	u16 narrow[2 * (LOOPS * WORDS + 2)];
	u32 wide[LOOPS * WORDS + 2];
} memory[2];

#define HISTO(n)	memory[n].narrow

/* glibc declares the buffer nonnull, and the compiler believes it. */
static unsigned short *volatile null;

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
	ASSERT_LE(0, device_fd());
	ASSERT_TRUE(is_off(SCOPE));
	self->prof[0] = segment(0, 0, 3);
	self->prof[1] = segment(1, 4, 5);
	osSetErrorHandler(on_error);
}

FIXTURE_TEARDOWN(n64)
{
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_EQ(0U, pinned_bytes());
}

TEST_F_CALL(n64, an_old_program_runs, EXPECT_EQ(0, run_beside("old-n64-game", NULL)))

/*
 * osProfileInit
 */

TEST_F(n64, cpu_time_is_added_up_in_disjoint_text)
{
	EXPECT_FINE(osProfileInit(self->prof, 2));
	EXPECT_FINE(osProfileStart(PERIOD));
	EXPECT_TRUE(loop_burn(SCOPE, 1, 3 * FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 5, FEW));
	EXPECT_FINE(osProfileStop());
	EXPECT_LE(2 * FEW, HISTO(0)[WORD_OF(1)]);
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
	osProfileInit(prof, LOOPS);
	osProfileStart(PERIOD);
	for (i = 0; i < LOOPS; i++)
		EXPECT_TRUE(loop_burn(SCOPE, i, 2 * FEW));
	osProfileStop();
	for (i = 0; i < LOOPS; i++)
		EXPECT_LT(0, HISTO(0)[WORD_OF(i)]);
}

TEST_F(n64, profcnt_is_the_number_of_segments)
{
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 4, FEW));
	osProfileStop();
	EXPECT_EQ(0U, sum(1));
	EXPECT_LE(SOME, osProfileOverflow());
}

TEST_F(n64, histo_base_is_an_array_of_u16)
{
	EXPECT_EQ(sizeof(u16), sizeof(*self->prof[0].histo_base));
	memory[0].wide[LOOPS * WORDS] = 0x55555555;
	self->prof[0] = segment(0, 0, LOOPS - 1);
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 7, FEW));
	osProfileStop();
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(7)]);
	/* A counter has 16 bits, not 32, so the second half of the memory is not used. */
	EXPECT_EQ(0U, counters_sum(&HISTO(0)[LOOPS * WORDS], 2, LOOPS * WORDS));
	EXPECT_EQ(0x55555555, memory[0].wide[LOOPS * WORDS]);
}

TEST_F(n64, a_counter_is_for_a_word_of_32_bits)
{
	unsigned int i;

	/* The text begins i words before the loop's pc, which is then in word i. */
	for (i = 0; i < 4; i++) {
		self->prof[0].text_start = (u32 *)(uintptr_t)(loop_at(0) - 4 * i);
		self->prof[0].text_end = self->prof[0].text_start + 7;
		osProfileInit(self->prof, 1);
		osProfileStart(PERIOD);
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		osProfileStop();
		EXPECT_LE(SOME, HISTO(0)[i]);
		EXPECT_EQ(HISTO(0)[i], sum(0));
	}
}

TEST_F(n64, text_starts_with_the_first_instruction)
{
	self->prof[0].text_start = (u32 *)(uintptr_t)loop_at(0);
	self->prof[1] = segment(1, 0, 0);
	self->prof[1].text_end = (u32 *)(uintptr_t)(loop_at(0) - 4);
	osProfileInit(self->prof, 2);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	osProfileStop();
	EXPECT_LE(SOME, HISTO(0)[0]);
	EXPECT_EQ(0, HISTO(1)[WORD_OF(0)]);
}

TEST_F(n64, text_ends_with_the_last_instruction)
{
	self->prof[0].text_end = (u32 *)(uintptr_t)loop_at(1);
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
	osProfileStop();
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(1)]);

	/* The loop's instruction is no longer in the segment. */
	self->prof[0].text_end--;
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 1, FEW));
	osProfileStop();
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
	EXPECT_TRUE(loop_burn(SCOPE, 6, 2 * FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LE(FEW, osProfileOverflow());
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
	struct rusage before, after;
	u64 us, ticks;
	unsigned int i;

	osProfileInit(self->prof, 1);
	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		ASSERT_EQ(0, getrusage(RUSAGE_SELF, &before));
		EXPECT_FINE(osProfileStart(periods[i]));
		EXPECT_TRUE(loop_burn(SCOPE, 0, 20));
		ASSERT_EQ(0, session_stats(SCOPE, &s));
		osProfileStop();
		ASSERT_EQ(0, getrusage(RUSAGE_SELF, &after));
		us = (after.ru_utime.tv_sec + after.ru_stime.tv_sec -
		      before.ru_utime.tv_sec - before.ru_stime.tv_sec) * 1000000ULL +
		     after.ru_utime.tv_usec + after.ru_stime.tv_usec -
		     before.ru_utime.tv_usec - before.ru_stime.tv_usec;
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
	EXPECT_FINE(osProfileStart(10000));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	EXPECT_FINE(osProfileStop());
	EXPECT_LT(0, HISTO(0)[WORD_OF(0)]);
}

TEST_F(n64, the_shortest_period_is_PROF_MIN_INTERVAL)
{
	EXPECT_EQ(50, PROF_MIN_INTERVAL);
	osProfileInit(self->prof, 1);
	EXPECT_FINE(osProfileStart(PROF_MIN_INTERVAL));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_FINE(osProfileStop());
	EXPECT_LT(0, HISTO(0)[WORD_OF(0)]);
}

/* This includes counters that are not the first, and the second segment. */
TEST_F(n64, each_interrupt_raises_the_counter_of_the_pc)
{
	struct profil_stats s;

	self->prof[0] = segment(0, 5, 7);
	self->prof[1] = segment(1, 0, 2);
	osProfileInit(self->prof, 2);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 2, FEW));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	osProfileStop();
	EXPECT_LE(SOME, HISTO(1)[WORD_OF(2)]);
	EXPECT_EQ(HISTO(1)[WORD_OF(2)], sum(1));
	EXPECT_EQ(0U, sum(0));
}

TEST_F(n64, profiling_can_be_started_again)
{
	u64 counted = 0;
	unsigned int i;

	osProfileInit(self->prof, 1);
	for (i = 0; i < 4; i++) {
		EXPECT_FINE(osProfileStart(PERIOD));
		EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
		EXPECT_FINE(osProfileStop());
		EXPECT_LE(counted + SOME, sum(0));
		counted = sum(0);
	}
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
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	said.calls = 0;
	osProfileInit(self->prof, 1);
	EXPECT_EQ(1U, said.calls);
	osProfileInit(self->prof, 1);
	EXPECT_EQ(1U, said.calls);
}

TEST_F(n64, INIT_STR_it_is_running)
{
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
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
	u32 most;
	OSProf *profs;

	ASSERT_EQ(0, device_query(&query));
	most = query.max_ranges / 2 - 2;
	profs = calloc(most + 1, sizeof(*profs));
	ASSERT_NE(NULL, profs);
	for (u32 i = 0; i <= most; i++) {
		profs[i] = segment(0, 0, 0);
		profs[i].text_start += i * 2 * WORDS;
		profs[i].text_end += i * 2 * WORDS;
	}
	EXPECT_FAULT(ERR_OSPROFILEINIT_CNT, EINVAL, 1, osProfileInit(profs, most + 1));
	EXPECT_EQ(most + 1, said.number);
	EXPECT_FINE(osProfileInit(profs, most));
	EXPECT_FINE(osProfileStart(PERIOD));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_FINE(osProfileStop());
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(0)]);
	free(profs);
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

	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
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
	EXPECT_FINE(osProfileInit(self->prof, 1));
	EXPECT_FINE(osProfileStart(PERIOD));
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
	int fd, last = -1;

	EXPECT_FINE(osProfileInit(self->prof, 1));
	EXPECT_FINE(osProfileStart(PERIOD));
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	ASSERT_EQ(EMFILE, errno);
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_FINE(osProfileStop());
	counted = sum(0);
	EXPECT_LE(SOME, counted);
	EXPECT_FINE(osProfileStart(PERIOD));

	/* A call that fails changes nothing. */
	ASSERT_EQ(0, close_range(100, ~0U, 0));
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	ASSERT_EQ(EMFILE, errno);
	EXPECT_FAULT(ERR_OSPROFILE_ERRNO, EMFILE, 0, osProfileStop());
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
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
	osProfileInit(self->prof, 1);
	osProfileStart(PERIOD);
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	osProfileStop();
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
	EXPECT_TRUE(loop_burn(SCOPE, 7, FEW));
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
	EXPECT_TRUE(loop_burn(SCOPE, 3, FEW));
	EXPECT_TRUE(loop_burn(SCOPE, 4, FEW));
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
	EXPECT_FINE(osProfileInit(self->prof, 1));
	EXPECT_FINE(osProfileStart(PERIOD));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_EQ(-1, pcsample(samples, 4));
	EXPECT_EQ(EBUSY, errno);
	counted = sum(0);
	EXPECT_LE(SOME, counted);
	ASSERT_EQ(0, profil(other, sizeof(other), addr(loops_text), 65536));
	EXPECT_LE(counted, sum(0));
	counted = sum(0);
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
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

static int child_of_threads(void)
{
	osProfileStop();
	osProfileStart(PERIOD);
	osProfileStop();
	return 0;
}

TEST_F(n64, threads_and_forks_may_call_it)
{
	pthread_t threads[3];
	unsigned int i;

	osSetErrorHandler(NULL);
	osProfileInit(self->prof, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, start_and_stop, self->prof));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, status_in_child(child_of_threads()));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	osSetErrorHandler(on_error);
	osProfileStop();
	EXPECT_FINE(osProfileStart(PERIOD));
	EXPECT_TRUE(loop_burn(SCOPE, 0, FEW));
	EXPECT_FINE(osProfileStop());
	EXPECT_LE(SOME, HISTO(0)[WORD_OF(0)]);
}

/*
 * profil gperf
 *
 * A game is a child that reads one-letter commands from a pipe, and answers each with its score.
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
	int ask;
	int answer;
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

static void game_run(int ask, int answer)
{
	OSProf prof = {
		.histo_base = game_histo,
		.histo_size = ARRAY_SIZE(game_histo),
		.text_start = (u32 *)__start_n64_game,
		.text_end = (u32 *)((uintptr_t)__stop_n64_game - 4),
	};
	struct score score;
	char what;

	while (read(ask, &what, 1) == 1) {
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
			_exit(0);
		case 'e':	/* another program, which ends when the pipe is closed, too */
			dup2(ask, STDIN_FILENO);
			execlp("cat", "cat", NULL);
			_exit(3);
		}
		if (errno)
			_exit(1);
		score.text = counters_sum(game_histo, 2, ARRAY_SIZE(game_histo));
		score.elsewhere = osProfileOverflow();
		if (write(answer, &score, sizeof(score)) != sizeof(score))
			_exit(2);
	}
	_exit(0);
}

static bool game_start(struct game *game)
{
	int ask[2], answer[2];

	if (pipe(ask) || pipe(answer))
		return false;
	game->pid = fork();
	if (!game->pid) {
		close(ask[1]);
		close(answer[0]);
		game_run(ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	game->ask = ask[1];
	game->answer = answer[0];
	return game->pid > 0;
}

static bool game_do(struct game *game, char what, struct score *score)
{
	return write(game->ask, &what, 1) == 1 &&
	       read(game->answer, score, sizeof(*score)) == sizeof(*score);
}

static int game_end(struct game *game)
{
	close(game->ask);
	close(game->answer);
	return status_of(game->pid);
}

#define COMMAND_SIZE	(PATH_MAX + 64)

/* Writes to @command the shell command that runs profil gperf with @args. */
static void gperf_command(char *command, const char *args)
{
	char self[PATH_MAX] = "", path[COMMAND_SIZE - 32];
	const char *set = getenv("PROFIL");

	MUST(readlink("/proc/self/exe", self, sizeof(self) - 1) >= 0);
	snprintf(path, sizeof(path), "%s/../../tools/profil", dirname(self));
	if (set || access(path, X_OK))
		snprintf(path, sizeof(path), "%s", set ?: "profil");
	snprintf(command, COMMAND_SIZE, "exec %s gperf %s 2>&1", path, args);
}

static FILE *gperf(const char *args)
{
	char command[COMMAND_SIZE];

	gperf_command(command, args);
	return popen(command, "re");
}

/**
 * struct heard - The output of profil gperf
 * @reports: The number of reports.
 * @ticks: Of the last report: all ticks. @hot, @cold, @elsewhere: parts of these.
 * @first: The first function in it.
 * @status: The exit status.
 * @text: The first line of the output.
 */
struct heard {
	unsigned int reports;
	unsigned long long ticks, hot, cold, elsewhere;
	char first[64];
	char period[16];
	char text[256];
	int status;
};

static void hear(FILE *from, struct heard *heard)
{
	char line[256], name[64];
	unsigned long long ticks;
	int status;

	memset(heard, 0, sizeof(*heard));
	heard->status = -1;
	if (!from)
		return;
	while (fgets(line, sizeof(line), from)) {
		if (!heard->text[0])
			strcpy(heard->text, line);
		if (sscanf(line, "process %*d: %llu ticks of %15s", &ticks, heard->period) == 2) {
			heard->reports++;
			heard->ticks = ticks;
			heard->hot = 0;
			heard->cold = 0;
			heard->elsewhere = 0;
			heard->first[0] = 0;
		}
		if (sscanf(line, "%*f%% %*f%% %llu %*f %*s %63s", &ticks, name) != 2)
			continue;
		if (!heard->first[0] && strcmp(name, "[elsewhere]"))
			strcpy(heard->first, name);
		if (!strcmp(name, "hot_scene"))
			heard->hot = ticks;
		else if (!strcmp(name, "cold_scene"))
			heard->cold = ticks;
		else if (!strcmp(name, "[elsewhere]"))
			heard->elsewhere = ticks;
	}
	status = pclose(from);
	heard->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ask_gperf(pid_t pid, struct heard *heard)
{
	char args[32];

	snprintf(args, sizeof(args), "%d", pid);
	hear(gperf(args), heard);
}

static bool is_awaited(pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "@profil-gperf-%d", pid);
	return file_has("/proc/net/unix", name, NULL, 0);
}

/* The game may get a tick elsewhere after it has read the overflow counter. */
#define EXPECT_HEARD(heard, score) do {						\
	EXPECT_EQ(0, (heard)->status);						\
	EXPECT_EQ((score)->text, (heard)->hot + (heard)->cold);			\
	EXPECT_LE((score)->elsewhere, (heard)->elsewhere);			\
	EXPECT_EQ((score)->text + (heard)->elsewhere, (heard)->ticks);		\
} while (0)

FIXTURE(host) {
	struct game game;
	struct score score;
	struct heard heard;
};

FIXTURE_SETUP(host)
{
	ASSERT_LE(0, device_fd());
	ASSERT_TRUE(game_start(&self->game));
}

FIXTURE_TEARDOWN(host)
{
	EXPECT_EQ(0, game_end(&self->game));
}

TEST_F(host, gperf_prints_the_time_of_each_function)
{
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_HEARD(&self->heard, &self->score);
	EXPECT_EQ(1U, self->heard.reports);
	EXPECT_STREQ("hot_scene", self->heard.first);
	EXPECT_LE(60U, self->heard.hot);
	EXPECT_LE(8U, self->heard.cold);
	EXPECT_LT(self->heard.cold, self->heard.hot);
	EXPECT_STREQ("1", self->heard.period);
}

TEST_F(host, data_can_be_read_at_any_time_after_init)
{
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_EQ(1, self->heard.status);	/* before osProfileInit() */
	EXPECT_NE(NULL, strstr(self->heard.text, "has no profile"));
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_EQ(0, self->heard.status);
	EXPECT_NE(NULL, strstr(self->heard.text, ": 0 ticks"));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_HEARD(&self->heard, &self->score);
}

TEST_F(host, data_can_be_read_after_stop)
{
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ASSERT_TRUE(game_do(&self->game, 's', &self->score));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_HEARD(&self->heard, &self->score);
	EXPECT_STREQ("1", self->heard.period);
}

/* The program can be stopped, or run in a loop: it need not cooperate. */
TEST_F(host, data_can_be_read_while_the_program_runs)
{
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ASSERT_EQ(0, kill(self->game.pid, SIGSTOP));
	ask_gperf(self->game.pid, &self->heard);
	ASSERT_EQ(0, kill(self->game.pid, SIGCONT));
	EXPECT_HEARD(&self->heard, &self->score);
	/* Then the game runs. */
	ASSERT_TRUE(game_do(&self->game, 's', &self->score));
	ASSERT_EQ(1, write(self->game.ask, "p", 1));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_EQ(0, self->heard.status);
	EXPECT_LE(self->score.text + self->score.elsewhere, self->heard.ticks);
	ASSERT_EQ((ssize_t)sizeof(self->score),
		  read(self->game.answer, &self->score, sizeof(self->score)));
}

/* The program has no thread, signal handler or descriptor for gperf. */
TEST_F(host, the_program_has_no_thread_for_gperf)
{
	char path[64], line[256];
	unsigned int threads = 0;
	FILE *f;

	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ask_gperf(self->game.pid, &self->heard);
	EXPECT_EQ(0, self->heard.status);
	snprintf(path, sizeof(path), "/proc/%d/status", self->game.pid);
	f = fopen(path, "re");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Threads:", 8))
			threads = atoi(line + 8);
		if (!strncmp(line, "SigCgt:", 7))
			EXPECT_STREQ("SigCgt:\t0000000000000000\n", line);
	}
	fclose(f);
	EXPECT_EQ(1U, threads);
}

TEST_F(host, flush_hands_the_data_to_a_gperf_that_waits)
{
	char args[32];
	FILE *host;

	/* Without a gperf that waits, osProfileFlush() has no effect. */
	ASSERT_TRUE(game_do(&self->game, 'f', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'f', &self->score));
	snprintf(args, sizeof(args), "--wait %d", self->game.pid);
	host = gperf(args);
	ASSERT_NE(NULL, host);
	ASSERT_TRUE(await(is_awaited(self->game.pid)));
	ASSERT_TRUE(game_do(&self->game, 'p', &self->score));
	ASSERT_TRUE(game_do(&self->game, 'f', &self->score));
	ASSERT_TRUE(game_do(&self->game, 's', &self->score));
	/* gperf gets the data although the process has exited. */
	ASSERT_EQ(1, write(self->game.ask, "x", 1));
	hear(host, &self->heard);
	EXPECT_HEARD(&self->heard, &self->score);
	EXPECT_EQ(2U, self->heard.reports);
	EXPECT_STREQ("hot_scene", self->heard.first);
	EXPECT_STREQ("1", self->heard.period);
}

/* A gperf that does not read does not block the program. */
TEST_F(host, flush_does_not_wait_for_gperf)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned int i;
	socklen_t len;
	int fd;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_LE(0, fd);
	len = offsetof(struct sockaddr_un, sun_path) + 1 +
	      snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "profil-gperf-%d",
		       self->game.pid);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&address, len));
	ASSERT_EQ(0, listen(fd, 2));
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	for (i = 0; i < 20; i++)
		ASSERT_TRUE(game_do(&self->game, 'f', &self->score));
	close(fd);
}

static pid_t others;

static int child_as_another(void)
{
	struct heard heard;

	MUST(!setresgid(1001, 1001, 1001) && !setresuid(1001, 1001, 1001));
	ask_gperf(others, &heard);
	MUST(heard.status == 1);
	MUST(strstr(heard.text, "ptrace rights are needed"));
	return 0;
}

TEST_F(host, data_of_another_user_cannot_be_read)
{
	others = 1;
	if (geteuid()) {
		ask_gperf(others, &self->heard);
		EXPECT_EQ(1, self->heard.status);
		EXPECT_NE(NULL, strstr(self->heard.text, "ptrace rights are needed"));
		return;
	}
	others = self->game.pid;
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	EXPECT_EQ(0, status_in_child(child_as_another()));
}

static int child_with_CAP_PERFMON(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = {}, *caps = &data[CAP_TO_INDEX(CAP_PERFMON)];
	struct profil_describe arg = { .size = sizeof(arg), .pid = others };
	struct heard heard;

	MUST(!prctl(PR_SET_KEEPCAPS, 1));
	MUST(!setresgid(1001, 1001, 1001) && !setresuid(1001, 1001, 1001));
	caps->effective = CAP_TO_MASK(CAP_PERFMON);
	caps->permitted = caps->effective;
	caps->inheritable = caps->effective;
	MUST(!syscall(SYS_capset, &header, data));
	MUST(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_PERFMON, 0, 0));
	MUST(!device_ioctl(PROFIL_IOC_DESCRIBE, &arg));
	ask_gperf(others, &heard);
	MUST(heard.status == 1);
	MUST(strstr(heard.text, "Operation not permitted (ptrace rights"));
	return 0;
}

/* CAP_PERFMON allows reading only the description of the session. */
TEST_F(host, CAP_PERFMON_is_not_enough_to_read_memory)
{
	NEED_ROOT("to become another user");
	others = self->game.pid;
	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	EXPECT_EQ(0, status_in_child(child_with_CAP_PERFMON()));
}

#define PTRACE_SCOPE	"/proc/sys/kernel/yama/ptrace_scope"

static const char *yama_says;		/* Yama's message; or NULL if it allows the access */

/* A game of an ordinary user, which is not a child of the user's profil command. */
static int child_under_yama(void)
{
	struct game game;
	struct score score;
	struct heard heard;

	MUST(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	MUST(!prctl(PR_SET_DUMPABLE, 1));
	MUST(game_start(&game) && game_do(&game, 'i', &score));
	ask_gperf(game.pid, &heard);
	MUST(heard.status == !!yama_says);
	MUST(!yama_says || strstr(heard.text, yama_says));
	MUST(!game_end(&game));
	return 0;
}

TEST_F(host, security_modules_can_forbid_gperf)
{
	long long scope = file_number(PTRACE_SCOPE, "");
	char before[32];

	NEED_ROOT("to become another user");
	SKIP_IF(scope < 0, "the kernel has no Yama");
	snprintf(before, sizeof(before), "%lld", scope);
	ASSERT_EQ(0, file_write(PTRACE_SCOPE, "1"));
	yama_says = "Operation not permitted (ptrace rights are needed: see kernel.yama";
	EXPECT_EQ(0, status_in_child(child_under_yama()));
	EXPECT_EQ(0, file_write(PTRACE_SCOPE, "0"));
	yama_says = NULL;
	EXPECT_EQ(0, status_in_child(child_under_yama()));
	EXPECT_EQ(0, file_write(PTRACE_SCOPE, before));
}

/*
 * Starts profil gperf, and stops it when it is about to read the memory of @pid. @out is its
 * output.
 */
static pid_t gperf_stopped(pid_t pid, FILE **out)
{
	struct __ptrace_syscall_info call;
	char command[COMMAND_SIZE], args[32];
	int pipes[2], status;
	pid_t child;

	snprintf(args, sizeof(args), "%d", pid);
	gperf_command(command, args);
	MUST(!pipe(pipes));
	child = fork();
	if (!child) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		MUST(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(pipes[1]);
	*out = fdopen(pipes[0], "r");
	MUST(*out);
	MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	MUST(!ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	do {
		MUST(!ptrace(PTRACE_SYSCALL, child, NULL, NULL));
		MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		MUST(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(call), &call) > 0);
	} while (call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_process_vm_readv);
	return child;
}

static int describe(pid_t pid)
{
	struct profil_describe arg = { .size = sizeof(arg), .pid = pid };

	return device_ioctl(PROFIL_IOC_DESCRIBE, &arg);
}

/*
 * Sends the command @what to the game while gperf is stopped there, so that describe() returns
 * @err.
 */
static void ask_while(struct game *game, char what, int err, struct heard *heard)
{
	pid_t command;
	FILE *out;

	memset(heard, 0, sizeof(*heard));
	command = gperf_stopped(game->pid, &out);
	MUST(write(game->ask, &what, 1) == 1);
	MUST(await(describe(game->pid) == err));
	MUST(!ptrace(PTRACE_DETACH, command, NULL, NULL));
	MUST(fread(heard->text, 1, sizeof(heard->text) - 1, out) > 0);
	fclose(out);
	heard->status = status_of(command);
}

/* gperf never takes memory of another program for counters. */
TEST_F(host, a_game_that_exits_or_execs_meanwhile_has_no_report)
{
	struct game game;

	ASSERT_TRUE(game_do(&self->game, 'i', &self->score));
	ask_while(&self->game, 'e', -EINVAL, &self->heard);
	EXPECT_EQ(1, self->heard.status);
	EXPECT_NE(NULL, strstr(self->heard.text, "has no profile"));

	ASSERT_TRUE(game_start(&game));
	ASSERT_TRUE(game_do(&game, 'i', &self->score));
	ask_while(&game, 'x', -ESRCH, &self->heard);
	EXPECT_EQ(1, self->heard.status);
	EXPECT_NE(NULL, strstr(self->heard.text, "there is no process"));
	EXPECT_EQ(0, game_end(&game));
}

/* The session continues, but its pages are no longer mapped in the process. */
TEST_F(host, counters_that_were_unmapped_cannot_be_read)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	u16 *counters = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);

	ASSERT_NE(MAP_FAILED, counters);
	ASSERT_EQ(0, profil(counters, PAGE, addr(__start_n64_game), 32768));
	ASSERT_EQ(counters, mmap(counters, PAGE, PROT_NONE, flags | MAP_FIXED, -1, 0));
	ask_gperf(getpid(), &self->heard);
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(1, self->heard.status);
	EXPECT_NE(NULL, strstr(self->heard.text, "cannot read its counters"));
	munmap(counters, PAGE);
}

/* gperf also reads the counters of other families. */
TEST_F(host, gperf_reads_any_classic_profile)
{
	static u16 counters[256];
	struct profil_stats s;
	u64 counted;

	ASSERT_EQ(0, profil(counters, sizeof(counters), addr(__start_n64_game), 32768));
	while (counters_sum(counters, 2, ARRAY_SIZE(counters)) < 5)
		hot_scene();
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	ask_gperf(getpid(), &self->heard);
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	counted = counters_sum(counters, 2, ARRAY_SIZE(counters));
	EXPECT_EQ(0, self->heard.status);
	EXPECT_LE(5U, self->heard.ticks);
	EXPECT_LE(self->heard.ticks, counted);
	EXPECT_EQ(self->heard.ticks, self->heard.hot);
}

TEST_F(host, gperf_reads_samples_of_pcsample)
{
	static uintptr_t samples[64];
	struct profil_stats s;

	memset(samples, 0x55, sizeof(samples));
	ASSERT_EQ(0, pcsample(samples, ARRAY_SIZE(samples)));
	do {
		hot_scene();
		ASSERT_EQ(0, session_stats(SCOPE, &s));
	} while (s.hit < 5);
	ask_gperf(getpid(), &self->heard);
	EXPECT_EQ(0, self->heard.status);
	EXPECT_LE(5U, self->heard.ticks);
	EXPECT_LE(3U, self->heard.hot);
	EXPECT_LE(self->heard.ticks, (unsigned long long)pcsample(NULL, 0));
}

TEST_HARNESS_MAIN
