/* SPDX-License-Identifier: GPL-2.0 */
/*
 * profil_delay.ko, which delays the calls of a function: see selftests/delay
 */
#ifndef _SELFTESTS_DELAY_H
#define _SELFTESTS_DELAY_H

#include <sys/utsname.h>

#include "kernel.h"
#include "loop.h"

#define DELAY_PARAMETERS "/sys/module/profil_delay/parameters/"

/*
 * Returns 0, also if the module is not loaded, as for an ordinary user; or a negative errno:
 * -EWOULDBLOCK while a call is delayed.
 */
static inline int delay_unload(void)
{
	if (geteuid() || !syscall(SYS_delete_module, "profil_delay", O_NONBLOCK) ||
	    errno == ENOENT)
		return 0;
	return -errno;
}

/* Returns the number of delays that have begun. */
static inline long long delay_hits(void)
{
	return file_number(DELAY_PARAMETERS "hits", "");
}

/* Lets the calls continue that were delayed with hold=1, and delays no others. */
static inline void delay_release(void)
{
	file_write(DELAY_PARAMETERS "hold", "0");
}

/* Loads profil_delay.ko, which is beside profil.ko: 0, or a negative errno. */
static inline int delay_load(const char *params)
{
	char path[PATH_MAX];
	struct utsname uts;

	/* A test that failed may have left it, with calls that it holds. */
	delay_release();
	await(!delay_unload());
	uname(&uts);
	snprintf(path, sizeof(path), "/lib/modules/%s/updates/profil_delay.ko", uts.release);
	return ko_load(path, params);
}

/* Loads profil_delay.ko; if that is not possible, skips the test. */
#define DELAY(params) do {							\
	int _err;								\
										\
	if (geteuid())								\
		SKIP(return, "only root can load profil_delay.ko");		\
	_err = delay_load(params);						\
	if (_err == -ENOENT || _err == -EINVAL || _err == -EOPNOTSUPP)		\
		SKIP(return, "profil_delay.ko does not load: %s", strerror(-_err)); \
	ASSERT_EQ(0, _err);							\
} while (0)

#endif
