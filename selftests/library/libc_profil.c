// SPDX-License-Identifier: GPL-2.0
/*
 * A program that was not linked with libprofil. library.c runs it with the library preloaded
 *
 * It calls profil() as declared by the C library's header, and works until its buffer has counts.
 * Its exit status tells the result: see libc_profil.h.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "device.h"
#include "libc_profil.h"

static unsigned short counters[65536];

static u64 sum(void)
{
	return counters_sum(counters, 2, sizeof(counters) / sizeof(*counters));
}

int main(void)
{
	size_t offset = addr(__start_profil_burn);
	struct profil_stats stats;
	struct itimerval timer;
	struct sigaction action;

	if (profil(counters, sizeof(counters), offset, 65536))
		return LIBC_PROFIL_FAILED;
	if (session_stats(PROFIL_SCOPE_PROCESS, &stats))
		return LIBC_PROFIL_NO_DEVICE;
	if (sigaction(SIGPROF, NULL, &action) || getitimer(ITIMER_PROF, &timer))
		return LIBC_PROFIL_FAILED;
	if (stats.state == PROFIL_STATE_OFF)
		return action.sa_handler != SIG_DFL && timer.it_interval.tv_usec ?
			LIBC_PROFIL_IS_LIBCS : LIBC_PROFIL_IS_NEITHERS;
	if (action.sa_handler != SIG_DFL || timer.it_interval.tv_sec || timer.it_interval.tv_usec)
		return LIBC_PROFIL_HAS_TIMER;

	while (sum() < 5)
		if (burn_ticks(PROFIL_SCOPE_PROCESS, 1))
			return LIBC_PROFIL_NO_TICKS;

	if (session_stats(PROFIL_SCOPE_PROCESS, &stats))
		return LIBC_PROFIL_FAILED;
	if (profil(counters, sizeof(counters), offset, 0))
		return LIBC_PROFIL_FAILED;
	if (sum() < stats.hit || !accounted(&stats))
		return LIBC_PROFIL_MISCOUNTED;
	if (session_stats(PROFIL_SCOPE_PROCESS, &stats) || stats.state != PROFIL_STATE_OFF)
		return LIBC_PROFIL_FAILED;
	return LIBC_PROFIL_COUNTED;
}
