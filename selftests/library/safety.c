// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the promises of the manual pages' ATTRIBUTES sections: a signal handler can make each call
 * of the library while it interrupts any other call, and several threads can make calls at the same
 * time.
 *
 * The functions that gcc -pg calls are an exception, as moncontrol(3) says. libprofil-pprof is for
 * threads only: see pprof.c.
 */
#include "kselftest_harness.h"

#include <assert.h>
#include <sys/pidfd.h>

#include <profil/glibc.h>
#include <profil/bsd.h>
#include <profil/illumos.h>
#include <profil/n64.h>
#include <profil/osf1.h>
#undef profil
#undef getsysinfo

#include "loop.h"
#include "process.h"
#include "threads.h"

/* The headers of these families have other definitions of struct prof. */
int profil_aix(void *buffer, unsigned int size, unsigned long offset, unsigned int scale);
int sprofil_hpux(void *profp, int profcnt, struct timeval *tvp, unsigned int flags);
long sysconf_hpux(int name);

#define SCOPE		PROFIL_SCOPE_PROCESS
#define THREADS		4U
#define ROUNDS		6U	/* number of times that each thread makes all calls */
#define ARMED_CAP	2000U

static u32 counters[1024] __attribute__((aligned(4096)));
static uintptr_t samples[64];
static int session_fd, pidfd;

/*
 * The calls. Each returns 0, or the errno of a failure that no other call explains.
 */

static int can_fail(long result, int one, int other)
{
	return result >= 0 || errno == one || errno == other ? 0 : errno;
}

/* The result of a function that returns nothing: -1 if it sets errno */
#define RESULT_OF(call) ({			\
	errno = 0;				\
	call;					\
	errno ? -1 : 0;				\
})

#define DEFINE_CALL(name, value)		\
	static int call_##name(void)		\
	{					\
		return value;			\
	}

DEFINE_CALL(profil,
	    can_fail(profil((void *)counters, sizeof(counters), LOOP_SIZE, 65536), EBUSY, 0))
DEFINE_CALL(profil_off, can_fail(profil((void *)counters, 0, 0, 0), 0, 0))
DEFINE_CALL(profil_bsd, can_fail(profil_bsd((void *)counters, 64, 0, 65536), EBUSY, 0))
DEFINE_CALL(add_profil, can_fail(add_profil((void *)counters, 64, 4096, 65536), ENOMEM, 0))
DEFINE_CALL(profil_osf1,
	    can_fail(RESULT_OF(profil_osf1((void *)counters, 64, NULL, 65536)), EBUSY, 0))
DEFINE_CALL(profil_osf1_off, can_fail(RESULT_OF(profil_osf1(NULL, 0, NULL, 0)), 0, 0))
DEFINE_CALL(profil_aix, can_fail(profil_aix(counters, 64, 0, 0xffff), 0, 0))
DEFINE_CALL(profil_aix_off, can_fail(profil_aix(counters, 0, 0, 0), 0, 0))
DEFINE_CALL(sysconf_hpux, can_fail(sysconf_hpux(10000 /* _SC_PROFIL_MAX */), 0, 0))
DEFINE_CALL(pcsample, can_fail(pcsample(samples, ARRAY_SIZE(samples)), EBUSY, 0))
DEFINE_CALL(pcsample_off, can_fail(pcsample(NULL, 0), 0, 0))

/* EALREADY: it is running; EBUSY: pcsample() is running. */
DEFINE_CALL(osProfileStart, can_fail(RESULT_OF(osProfileStart(1000)), EALREADY, EBUSY))
/* ESRCH: another call has replaced the profile. */
DEFINE_CALL(osProfileStop, can_fail(RESULT_OF(osProfileStop()), EALREADY, ESRCH))
DEFINE_CALL(osProfileFlush, can_fail(RESULT_OF(osProfileFlush()), 0, 0))
DEFINE_CALL(osProfileOverflow, (osProfileOverflow(), 0))

DEFINE_CALL(getsysinfo_osf1,
	    can_fail(getsysinfo_osf1(GSI_CLK_TCK, &(int){ 0 }, sizeof(int)), 0, 0))

static int call_sprofil(void)
{
	struct prof profs[] = {
		{ &counters[0], 64, addr(loops_text), 65536 },
		{ &counters[16], 64, addr(loops_text) + 16, 65536 },
		{ &counters[32], 64, 0, 2 },
	};

	return can_fail(sprofil(profs, ARRAY_SIZE(profs), NULL, PROF_UINT), EBUSY, 0);
}

static int call_sprofil_hpux(void)
{
	const struct {
		void *base;
		unsigned int size;
		void *offset;
		unsigned int scale;
	} prof = { counters, 64, (void *)loops_text, 65536 };

	return can_fail(sprofil_hpux((void *)&prof, 1, NULL, 0), EBUSY, 0);
}

static int call_osProfileInit(void)
{
	OSProf prof = {
		(void *)counters, LOOPS * LOOP_SIZE / 4, (void *)loops_text,
		(void *)(loops_text + LOOPS * LOOP_SIZE - 4),
	};

	return can_fail(RESULT_OF(osProfileInit(&prof, 1)), EBUSY, 0);
}

static int call_osProfileInitFlags(void)
{
	OSProf profs[] = {
		{ (void *)&counters[0], 8, (void *)loops_text, (void *)(loops_text + 28) },
		{ (void *)&counters[16], 8, (void *)(loops_text + 32), (void *)(loops_text + 60) },
	};

	return can_fail(RESULT_OF(osProfileInitFlags(profs, ARRAY_SIZE(profs),
						     PROF_UINT32 | PROF_DISJOINT)), EBUSY, 0);
}

static void on_error(short code, short nr, ...)
{
	(void)code;
	(void)nr;
}

static int call_osSetErrorHandler(void)
{
	OSErrorHandler old = osSetErrorHandler(on_error);

	return old && old != on_error ? EINVAL : 0;
}

/* A new structure, for a call that fills it */
#define NEW(type, ...)	(&(struct type){ .size = sizeof(struct type), ##__VA_ARGS__ })

DEFINE_CALL(profil_classic_stats, can_fail(profil_classic_stats(NEW(profil_stats)), 0, 0))
DEFINE_CALL(profil_query_kernel, can_fail(profil_query_kernel(NEW(profil_query)), 0, 0))

static int call_profil_session_open(void)
{
	int fd = profil_session_open(NULL), err = can_fail(fd, 0, 0);

	if (fd >= 0)
		close(fd);
	return err;
}

/* EINVAL: the range exists already. */
static int call_profil_session_add(void)
{
	struct profil_range range = profil_range_of(addr(loops_text),
						    addr(loops_text) + LOOPS * LOOP_SIZE, 5,
						    counters, LOOPS, sizeof(*counters));

	return can_fail(profil_session_add(session_fd, PROFIL_SPACE_SELF, &range, 1), EINVAL,
			ESRCH);
}

DEFINE_CALL(profil_session_stats,
	    can_fail(profil_session_stats(session_fd, NEW(profil_stats)), 0, 0))
DEFINE_CALL(profil_session_snapshot,
	    can_fail(profil_session_snapshot(session_fd, 0, NULL, 0, NEW(profil_stats)), 0, 0))

/* The session has no stacks. */
DEFINE_CALL(profil_session_unwind,
	    can_fail(profil_session_unwind(session_fd, NEW(profil_unwind, .fd = -1)),
		     EINVAL, EOPNOTSUPP))

/* Reads records if there are any; EAGAIN if not. */
static int call_profil_session_read(void)
{
	char buf[8192] __attribute__((aligned(8)));
	const struct profil_record *record;
	ssize_t len = profil_session_read(session_fd, buf, sizeof(buf));

	for (record = profil_record_first(buf, len); record;
	     record = profil_record_next(buf, len, record))
		if (record->pid != getpid())
			return EINVAL;
	return can_fail(len, EAGAIN, 0);
}

DEFINE_CALL(profil_session_attach,
	    can_fail(profil_session_attach(session_fd, SCOPE, 0, NULL), EBUSY, 0))
DEFINE_CALL(profil_session_attach_pidfd,
	    can_fail(profil_session_attach_pidfd(session_fd, SCOPE, pidfd, NULL), EBUSY, 0))
DEFINE_CALL(profil_session_remove,
	    can_fail(profil_session_remove(session_fd, PROFIL_SPACE_SELF, 0, UINT64_MAX), ESRCH, 0))
DEFINE_CALL(profil_session_enable, can_fail(profil_session_enable(session_fd), EBUSY, 0))
DEFINE_CALL(profil_session_disable, can_fail(profil_session_disable(session_fd, NULL), EINVAL, 0))
DEFINE_CALL(profil_range_counters, profil_range_counters(0, 4096, 4) == 256 ? 0 : EINVAL)

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
#define CALL(name) { #name, call_##name }
	CALL(profil), CALL(profil_off), CALL(profil_bsd), CALL(add_profil), CALL(profil_osf1),
	CALL(profil_osf1_off), CALL(getsysinfo_osf1), CALL(profil_aix), CALL(profil_aix_off),
	CALL(sprofil), CALL(sprofil_hpux), CALL(sysconf_hpux), CALL(pcsample),
	CALL(pcsample_off), CALL(osProfileInit), CALL(osProfileInitFlags), CALL(osProfileStart),
	CALL(osProfileStop), CALL(osProfileFlush), CALL(osProfileOverflow),
	CALL(osSetErrorHandler), CALL(profil_classic_stats), CALL(profil_query_kernel),
	CALL(profil_session_open), CALL(profil_session_attach),
	CALL(profil_session_attach_pidfd), CALL(profil_session_add),
	CALL(profil_session_remove), CALL(profil_session_enable), CALL(profil_session_disable),
	CALL(profil_session_stats), CALL(profil_session_snapshot), CALL(profil_session_unwind),
	CALL(profil_session_read), CALL(profil_range_counters),
};

FIXTURE(safety) {
};

FIXTURE_SETUP(safety)
{
	ASSERT_LE(0, device_fd());
	ASSERT_TRUE(is_off(SCOPE));
	session_fd = profil_session_open(NEW(profil_open, .modes = MODES_ALL, .nr_records = 64));
	ASSERT_LE(0, session_fd);
	ASSERT_EQ(0, fcntl(session_fd, F_SETFL, O_NONBLOCK));
	pidfd = pidfd_open(getpid(), 0);
	ASSERT_LE(0, pidfd);
}

/* After all calls, profiling can be turned off and works, and nothing stays locked. */
FIXTURE_TEARDOWN(safety)
{
	static u16 loops[LOOPS * LOOP_SIZE / 2];

	EXPECT_LE(0, pcsample(NULL, 0));
	EXPECT_EQ(0, profil((void *)counters, 0, 0, 0));
	EXPECT_TRUE(is_off(SCOPE));
	ASSERT_EQ(0, profil(loops, sizeof(loops), addr(loops_text), 65536));
	EXPECT_TRUE(loop_until(0, counters_sum(loops, 2, ARRAY_SIZE(loops)) >= 3));
	EXPECT_EQ(0, profil(loops, 0, 0, 0));
	EXPECT_TRUE(is_off(SCOPE));
	close(pidfd);
	close(session_fd);
	EXPECT_EQ(0, pinned_bytes());
}

/*
 * Calls in signal handlers
 */

static volatile sig_atomic_t inside, fired, interrupted, handlers_call, handlers_error;

static void on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	fired = 1;
	if (inside) {
		handlers_error = calls[handlers_call].call() ?: handlers_error;
		interrupted = 1;
	}
	errno = saved;
}

/* Repeats call @i until the signal of a timer has arrived. The timer is set to @us microseconds. */
static int call_until_signal(unsigned int i, unsigned int us)
{
	const struct itimerval once = { .it_value = { .tv_usec = us } };
	int err = 0;

	fired = 0;
	if (setitimer(ITIMER_REAL, &once, NULL))
		return errno;
	while (!fired && !err) {
		inside = 1;
		err = calls[i].call();
		inside = 0;
	}
	return err;
}

TEST_F_TIMEOUT(safety, each_call_can_be_made_by_a_handler_that_interrupts_each_call, 280)
{
	const struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval off = { };
	unsigned int i, h, armed;
	int err;

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (h = 0; h < ARRAY_SIZE(calls); h++) {
			handlers_call = h;
			handlers_error = 0;
			interrupted = 0;
			err = 0;
			for (armed = 0; !interrupted && !err; armed++) {
				ASSERT_GT(ARMED_CAP, armed);
				err = call_until_signal(i, 37 + armed * 37 % 211);
			}
			EXPECT_EQ(0, err) {
				TH_LOG("%s(): errno %d", calls[i].name, err);
			}
			EXPECT_EQ(0, handlers_error) {
				TH_LOG("%s() in %s(): errno %d", calls[h].name, calls[i].name,
				       (int)handlers_error);
			}
		}
	}
	setitimer(ITIMER_REAL, &off, NULL);
}

/*
 * Calls in several threads
 */

static atomic_uint made;

/* The steps of the threads must have no common factor with the number of calls. */
static const unsigned int steps[THREADS] = { 1, 11, 13, 17 };

static_assert(ARRAY_SIZE(calls) % 11 != 0 && ARRAY_SIZE(calls) % 13 != 0 &&
	      ARRAY_SIZE(calls) % 17 != 0, "make_calls() leaves out calls");

/* Makes all calls, again and again. Each thread begins with a different call, in other steps. */
static void *make_calls(void *arg)
{
	const unsigned int n = (uintptr_t)arg, nr = ARRAY_SIZE(calls);

	for (unsigned int i = 0; i < ROUNDS * nr; i++) {
		unsigned int call = (n * nr / THREADS + (uint64_t)i * steps[n]) % nr;
		int err = calls[call].call();

		if (err) {
			dprintf(STDERR_FILENO, "# %s(): errno %d\n", calls[call].name, err);
			return (void *)calls[call].name;
		}
		made++;
	}
	return NULL;
}

TEST_F_TIMEOUT(safety, all_calls_can_be_made_by_several_threads_at_once, 120)
{
	/* Without this, osProfileStart() fails if it is before the first osProfileInit(). */
	ASSERT_EQ(0, call_osProfileInit());
	EXPECT_EQ(NULL, in_threads(THREADS, make_calls));
	EXPECT_EQ(THREADS * ROUNDS * ARRAY_SIZE(calls), made);
}

TEST_HARNESS_MAIN
