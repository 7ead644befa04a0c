// SPDX-License-Identifier: GPL-2.0
/* A library that stacks_work loads. */
void plugin_call(void (*callee)(void));

static volatile int sink;

void plugin_call(void (*callee)(void))
{
	callee();
	sink++;
}
