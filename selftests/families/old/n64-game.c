/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A game of the Nintendo 64, without the game: it has two segments and spends its time in one. Exit
 * status 0 if the profiler's counters say so.
 */
#include <ultra64.h>

#define NCOUNT	1024

u32 histo1[NCOUNT / 2];
u16 histo2[NCOUNT];
OSProf prof[2];
volatile u32 frames;
int play(), (*volatile scene)() = play;

play()
{
	register u32 i;

	for (i = 0; i < 100000; i++)
		frames++;
}

over()
{
	register u32 i;

	for (i = 0; i < 100000; i++)
		frames--;
}

segment(p, base, start)
	OSProf *p;
	u16 *base;
	u32 *start;
{
	p->histo_base = base;
	p->histo_size = NCOUNT;
	p->text_start = start;
	p->text_end = start + 11;
}

u32 sum(p)
	OSProf *p;
{
	u32 i, s;

	for (i = s = 0; i < p->histo_size; i++)
		s += p->histo_base[i];
	return s;
}

main()
{
	u32 tries;

	segment(&prof[0], (u16 *)histo1, (u32 *)play);
	segment(&prof[1], histo2, (u32 *)over);
	osProfileInit(prof, 2);
	osProfileStart(10000);
	for (tries = 0; tries < 100000 && sum(&prof[0]) < 3; tries++)
		(*scene)();
	osProfileFlush();
	osProfileStop();
	if (sum(&prof[0]) < 3)
		return 1;
	if (sum(&prof[1]) > sum(&prof[0]))
		return 2;
	return 0;
}
