// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <profil.h>
static unsigned short ticks[4096], hot;	/* one for each two bytes of code from main() on */
int main(void)
{
	if (profil(ticks, sizeof(ticks), (size_t)main, 65536))
		return perror("profil"), 1;
	for (volatile long n = 0; n < 500000000; n++)
		;
	profil(NULL, 0, 0, 0);
	for (int i = 0; i < 4096; i++)
		hot = ticks[i] > ticks[hot] ? i : hot;
	printf("hottest: main+%#x, %d ticks\n", 2 * hot, ticks[hot]);
}
