// SPDX-License-Identifier: GPL-2.0
/*
 * A program that was not linked with libprofil. library.c runs it with the library preloaded
 *
 * It calls profil() as declared by the C library's header, and works until its buffer has counts.
 * Its exit status is 0 if the module counted, without a timer; 2 if the C library counts, with
 * SIGPROF; and otherwise 1.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "device.h"

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
	bool has_timer;

	MUST(!profil(counters, sizeof(counters), offset, 65536));
	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &stats));
	MUST(!sigaction(SIGPROF, NULL, &action) && !getitimer(ITIMER_PROF, &timer));
	has_timer = timer.it_interval.tv_sec || timer.it_interval.tv_usec;
	if (stats.state == PROFIL_STATE_OFF && action.sa_handler != SIG_DFL && has_timer)
		return 2;
	MUST(stats.state != PROFIL_STATE_OFF);
	MUST(action.sa_handler == SIG_DFL && !has_timer);

	while (sum() < 5)
		MUST(!burn_ticks(PROFIL_SCOPE_PROCESS, 1));
	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &stats));
	MUST(!profil(counters, sizeof(counters), offset, 0));
	MUST(sum() >= stats.hit && accounted(&stats));
	MUST(!session_stats(PROFIL_SCOPE_PROCESS, &stats) && stats.state == PROFIL_STATE_OFF);
	return 0;
}
