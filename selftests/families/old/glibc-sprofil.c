// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the same as the test of sprofil() in glibc: regions that are not sorted and that overlap,
 * with counters of either width, count the right text; the overflow bin counts all other text; and
 * profiling can be turned off and on again.
 *
 * It includes only the C library's header. Exit status 9: the C library's own sprofil() ran, with
 * SIGPROF.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/time.h>

#define BINS 64

/* Each function has a section of 1024 bytes: more than 64 bins of 2 bytes with a scale of 4096. */
#define WORK(name)								\
	__attribute__((noinline, aligned(1024))) int name(void)			\
	{									\
		volatile int i;							\
		for (i = 0; i < 1000000; i++)					\
			;							\
		return 0;							\
	}
WORK(low)
WORK(middle)
WORK(high)
WORK(none)

static union {
	unsigned short s[BINS];
	unsigned int i[BINS];
} bins[4];

static unsigned int wide;

static unsigned int sum(int region, int nr)
{
	unsigned int total = 0;
	int n;

	for (n = 0; n < nr; n++)
		total += wide ? ((volatile unsigned int *)bins[region].i)[n] :
				((volatile unsigned short *)bins[region].s)[n];
	return total;
}

/* Runs @work until region @region has counts. */
static int expect(int region, int (*work)(void))
{
	unsigned int before = sum(region, BINS);
	int patience;

	for (patience = 0; patience < 500; patience++) {
		if (sum(region, BINS) > before + 2)
			return 0;
		work();
	}
	printf("region %d: no new counts, with %s counters\n", region, wide ? "wide" : "short");
	return 1;
}

static void region(struct prof *prof, int n, int (*begin)(void), int bytes)
{
	size_t width = wide ? sizeof(int) : sizeof(short);

	prof->pr_base = &bins[n];
	prof->pr_off = (size_t)begin;
	prof->pr_scale = 4096;			/* 16 bytes for each bin */
	prof->pr_size = bytes / (16 * width) * width;
}

static int round_of(unsigned int flags)
{
	struct prof prof[4];
	struct timeval tick;
	struct sigaction action;
	unsigned int was[4];
	int n;

	wide = flags & PROF_UINT;
	memset(bins, 0, sizeof(bins));
	memset(prof, 0, sizeof(prof));
	tick.tv_sec = tick.tv_usec = -1;

	/*
	 * The overflow bin is first, and high is before low. The region of low also contains the
	 * text of middle.
	 */
	prof[0].pr_base = &bins[3];
	prof[0].pr_size = wide ? sizeof(int) : sizeof(short);
	prof[0].pr_off = 0;
	prof[0].pr_scale = 2;
	region(&prof[1], 2, high, 1024);
	region(&prof[2], 0, low, 2048);
	region(&prof[3], 1, middle, 1024);
	if (sprofil(prof, 4, &tick, flags) != 0) {
		perror("sprofil");
		return 1;
	}
	if (sigaction(SIGPROF, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
		return 9;
	if (tick.tv_sec < 0 || tick.tv_usec < 0 || (tick.tv_sec == 0 && tick.tv_usec == 0)) {
		printf("a tick of %ld.%06ld s\n", (long)tick.tv_sec, (long)tick.tv_usec);
		return 2;
	}
	if (expect(0, low) || expect(1, middle) || expect(2, high) || expect(3, none))
		return 3;
	if (sprofil(NULL, 0, NULL, 0) != 0) {
		perror("sprofil off");
		return 4;
	}
	for (n = 0; n < 4; n++)
		was[n] = sum(n, BINS);
	for (n = 0; n < 20; n++)
		middle();
	for (n = 0; n < 4; n++) {
		if (sum(n, BINS) != was[n]) {
			printf("region %d: counted after it was switched off\n", n);
			return 5;
		}
	}
	return 0;
}

int main(void)
{
	int n, bad;

	if ((size_t)middle - (size_t)low != 1024 || (size_t)high - (size_t)middle != 1024) {
		printf("the compiler has put the functions elsewhere\n");
		return 10;
	}
	for (n = 0; n < 4; n++) {
		bad = round_of(n & 1 ? PROF_UINT : PROF_USHORT);
		if (bad)
			return bad;
	}
	return 0;
}
