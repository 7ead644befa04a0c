// SPDX-License-Identifier: GPL-2.0
/*
 * pcsample() of illumos. The sentences of its manual page are in sentences/illumos.
 *
 * It is built as a 32-bit program, too (illumos_32).
 */
#include "family.h"

#include "calls.h"

#define SAMPLES	64
#define TICKS	8
#define NEVER	((uintptr_t)0x55555555)

static uintptr_t samples[SAMPLES + 1] = { [0 ... SAMPLES] = NEVER };

/* Returns the number of samples of loop @i among the first @n. */
static unsigned int in_loop(unsigned int i, long n)
{
	unsigned int nr = 0;

	while (n-- > 0)
		nr += samples[n] >= loop_at(i) && samples[n] < loop_at(i) + LOOP_BLOCK;
	return nr;
}

FIXTURE(illumos) {
};

FIXTURE_OFF(illumos, pcsample(NULL, 0) < 0 || profil(null, 0, 0, 0))

TEST_F(illumos, an_old_program_runs)
{
	SKIP_IF(sizeof(long) == 4, "only the native build has the program");
	EXPECT_EQ(0, run_beside("old-illumos-where", NULL));
}

TEST_F(illumos, it_shows_where_cpu_time_is_spent)
{
	long n;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 3, 4 * TICKS));
	EXPECT_TRUE(loop_burn(SCOPE, 5, 2 * TICKS));
	n = pcsample(NULL, 0);
	EXPECT_LE(6 * TICKS, n);
	EXPECT_LE(2 * TICKS, in_loop(3, n));
	EXPECT_LE(TICKS / 2, in_loop(5, n));
	EXPECT_LT(in_loop(5, n), in_loop(3, n));
}

TEST_F(illumos, samples_has_nsamples_elements_of_a_pointer_s_size)
{
	EXPECT_EQ(sizeof(void *), sizeof(*samples));
	ASSERT_EQ(0, pcsample(samples, TICKS));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 2 * TICKS));
	EXPECT_EQ(TICKS, pcsample(NULL, 0));
	EXPECT_NE(NEVER, samples[TICKS - 1]);
	EXPECT_EQ(NEVER, samples[TICKS]);
}

/* Samples can be in any text, and there are no bins. */
TEST_F(illumos, values_are_unmodified_program_counters)
{
	long n, i;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	n = pcsample(NULL, 0);
	for (i = 0; i < n; i++)
		EXPECT_NE(NEVER, samples[i]);
	/* At least one sample is at the loop's first instruction. */
	for (i = 0; i < n && samples[i] != loop_at(0); i++)
		;
	EXPECT_LT(i, n);
}

TEST_F(illumos, a_sample_is_taken_at_each_tick)
{
	struct profil_stats s;
	long n;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	n = pcsample(NULL, 0);
	EXPECT_LE(s.hit, n);
	EXPECT_EQ(s.ticks, s.hit + s.dropped);
	EXPECT_EQ(0U, s.unselected);
}

TEST_F(illumos, it_stops_when_the_array_is_full)
{
	struct profil_stats s;

	ASSERT_EQ(0, pcsample(samples, 3));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_EQ(3U, s.hit);
	EXPECT_EQ(s.ticks, s.hit + s.saturated + s.dropped);
	EXPECT_EQ(NEVER, samples[3]);
	EXPECT_EQ(3, pcsample(NULL, 0));
}

TEST_F(illumos, nsamples_0_stops_it)
{
	long n;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	n = pcsample(NULL, 0);
	EXPECT_LE(3, n);
	EXPECT_TRUE(is_off(SCOPE));
	EXPECT_EQ(NEVER, samples[n]);
}

static int child_that_goes_on(void)
{
	struct profil_stats s;
	uintptr_t first = samples[0];
	long n;

	MUST(loop_burn(SCOPE, 5, 2 * TICKS));
	MUST(!session_stats(SCOPE, &s));
	n = pcsample(NULL, 0);
	MUST(samples[0] == first);
	MUST(in_loop(5, SAMPLES) >= TICKS / 2);
	/* The samples from before the fork are included. */
	MUST(n >= TICKS + (long)s.hit);
	MUST(samples[n - 1] != NEVER);
	MUST(samples[n] == NEVER);
	return 0;
}

TEST_F(illumos, sampling_continues_across_fork)
{
	long n;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 3, TICKS));
	EXPECT_EQ(0, status_in_child(child_that_goes_on()));
	EXPECT_TRUE(loop_burn(SCOPE, 3, TICKS));
	n = pcsample(NULL, 0);
	EXPECT_LE(2 * TICKS, n);
	EXPECT_EQ(0U, in_loop(5, SAMPLES));
}

/* The array is locked. If it becomes read-only or unmapped, its pages are still written. */
TEST_F(illumos, samples_are_stored_although_the_array_is_unmapped)
{
	uintptr_t *array = map_private(PAGE);
	struct profil_stats s;

	ASSERT_EQ(0, pcsample(array, 256));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	ASSERT_EQ(0, mprotect(array, PAGE, PROT_READ));
	EXPECT_TRUE(loop_until(0, ((volatile uintptr_t *)array)[2 * TICKS]));
	ASSERT_EQ(array, mmap(array, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	EXPECT_IS_ON();
	EXPECT_EQ(0, counters_sum(array, sizeof(*array), PAGE / sizeof(*array)));
	ASSERT_EQ(0, session_stats(SCOPE, &s));
	EXPECT_LE((long)s.hit, pcsample(samples, SAMPLES));
	EXPECT_EQ(0, munmap(array, PAGE));
	EXPECT_TRUE(loop_burn(SCOPE, 0, 3));
	EXPECT_LE(3, pcsample(NULL, 0));
}

TEST_F(illumos, the_first_call_returns_0)
{
	EXPECT_EQ(0, pcsample(samples, SAMPLES));
	pcsample(NULL, 0);
	EXPECT_EQ(0, pcsample(NULL, 0));
	EXPECT_EQ(0, pcsample(samples, SAMPLES));
}

TEST_F(illumos, later_calls_return_the_number_of_new_samples)
{
	static uintptr_t other[SAMPLES];
	long n;

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	errno = 12345;
	n = pcsample(other, SAMPLES);
	EXPECT_EQ(12345, errno);
	EXPECT_LE(TICKS, n);
	EXPECT_NE(NEVER, samples[n - 1]);
	EXPECT_EQ(NEVER, samples[n]);
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS / 2));
	EXPECT_EQ(NEVER, samples[n]);
	n = pcsample(NULL, 0);
	EXPECT_LE(TICKS / 2, n);
	EXPECT_NE(0, other[n - 1]);
	EXPECT_EQ(0, other[n]);
}

TEST_F(illumos, a_wrong_nsamples_is_EINVAL)
{
	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_ERROR(EINVAL, pcsample(samples, -1));
	EXPECT_ERROR(EINVAL, pcsample(samples, LONG_MIN));
	EXPECT_ERROR(EINVAL, pcsample(samples, LONG_MAX));
	/* Sampling continues. */
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	EXPECT_LE(TICKS, pcsample(NULL, 0));
}

#define EXPECT_ERRNO(error, call) do {		\
	errno = 0;				\
	call;					\
	EXPECT_EQ(error, errno);		\
} while (0)

TEST_F(illumos, it_and_the_other_families_exclude_each_other)
{
	struct prof prof = { counters, sizeof(counters), LOOPS_OFFSET, 65536 };
	struct prof_hpux prof_hpux = { counters, sizeof(counters), (char *)loops_text, 65536 };
	OSProf segment = { counters, ARRAY_SIZE(counters), (void *)loops_text,
			   (void *)(loops_text + LOOP_SIZE) };

	ASSERT_EQ(0, pcsample(samples, SAMPLES));
	EXPECT_ERROR(EBUSY, profil_bsd((char *)counters, 64, loop_at(0), 65536));
	EXPECT_EQ(0, profil_bsd(NULL, 0, 0, 0));
	EXPECT_EQ(0, add_profil((char *)counters, 64, loop_at(0), 65536));
	EXPECT_ERRNO(EBUSY, profil_osf1(counters, 64, (char *)loops_text, 65536));
	EXPECT_ERRNO(0, profil_osf1(NULL, 0, NULL, 0));
	EXPECT_EQ(0, profil_aix(counters, 64, loop_at(0), 0xffff));
	EXPECT_EQ(0, profil_aix(counters, 0, 0, 0));
	EXPECT_ERROR(EBUSY, sprofil(&prof, 1, NULL, 0));
	EXPECT_EQ(0, sprofil(NULL, 0, NULL, 0));
	EXPECT_ERROR(EBUSY, sprofil_hpux(&prof_hpux, 1, NULL, 0));
	EXPECT_ERRNO(EBUSY, osProfileInit(&segment, 1));
	EXPECT_TRUE(loop_burn(SCOPE, 0, TICKS));
	EXPECT_EQ(0U, hits());
	EXPECT_LE(TICKS, pcsample(NULL, 0));
	EXPECT_TRUE(is_off(SCOPE));
}

TEST_HARNESS_MAIN
