// SPDX-License-Identifier: GPL-2.0
/*
 * For calls.c: functions that call no others. They save different numbers of registers, so their
 * return address is at different distances from the stack pointer.
 */
#include "calls.h"

static FUNCTION void leaf(void)
{
	work(3);
}

FUNCTION void calls_leaf(void)
{
	leaf();
	work(1);
}

static FUNCTION void leaf_with_register(void)
{
	asm volatile("" : : : "rbx");
	work(4);
}

FUNCTION void calls_leaf_with_register(void)
{
	leaf_with_register();
	work(1);
}

static FUNCTION void leaf_with_registers(void)
{
	asm volatile("" : : : "rbx", "r12", "r13");
	work(2);
}

FUNCTION void calls_leaf_with_registers(void)
{
	leaf_with_registers();
	work(1);
}
