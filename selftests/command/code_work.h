/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that code_work moves. hot_alpha() takes 70% of the time. They have pages of their own.
 */
#ifndef _SELFTESTS_CODE_WORK_H
#define _SELFTESTS_CODE_WORK_H

/* No architecture has larger pages. */
#define HOT_ALIGN	65536
#define HOT		__attribute__((noinline, section("hot_text"), aligned(HOT_ALIGN)))

static volatile unsigned long hot_sink;

HOT void hot_alpha(void)
{
	for (unsigned long i = 0; i < 700000; i++)
		hot_sink += i;
}

HOT void hot_beta(void)
{
	for (unsigned long i = 0; i < 300000; i++)
		hot_sink ^= i;
}

HOT void hot_end(void)
{
}

#endif /* _SELFTESTS_CODE_WORK_H */
