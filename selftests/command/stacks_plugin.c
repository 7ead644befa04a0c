// SPDX-License-Identifier: GPL-2.0
/* A library that stacks_work loads; and, without frame pointers, the test of libprofil-pprof. */
void plugin_call(void (*callee)(void));

static volatile int sink;

void plugin_call(void (*callee)(void))
{
	callee();
	sink++;
}
