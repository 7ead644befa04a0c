/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gets the sampling interval as a program for Digital UNIX did, and profiles itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/sysinfo.h>
#include <machine/hal_sysinfo.h>

static unsigned short hist[1024];
static volatile double x;

static void
spin(void)
{
	int i;

	for (i = 0; i < 300000; i++)
		x = x * 0.5 + i;
}

int
main(int argc, char **argv)
{
	int ticks, start = 0, tries;
	unsigned long total = 0;
	int i;

	if (getsysinfo(GSI_CLK_TCK, (caddr_t)&ticks, sizeof(ticks), &start, NULL) <= 0) {
		perror("getsysinfo");
		return 1;
	}
	if (ticks < 1 || ticks > 1000000)
		return 2;
	profil(hist, sizeof(hist), (void *)spin, 0x10000);
	for (tries = 0; total < 10 && tries < 20000; tries++) {
		spin();
		for (total = 0, i = 0; i < 1024; i++)
			total += ((volatile unsigned short *)hist)[i];
	}
	profil(NULL, 0, NULL, 0);
	printf("%.3f s in %s\n", (double)total / ticks, argv[0]);
	return total < 10 ? 3 : 0;
}
