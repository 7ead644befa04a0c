// SPDX-License-Identifier: GPL-2.0
/* For calls.c: a library that it loads with dlopen(). */
#include "calls.h"

static FUNCTION void plugin_inner(void (*callback)(void))
{
	callback();
	work(3);
}

FUNCTION void root_plugin(void (*callback)(void), unsigned long rounds)
{
	while (rounds--) {
		plugin_inner(callback);
		work(2);
	}
}
