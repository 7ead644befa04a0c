/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pcsample() of illumos and Solaris: pcsample(3) tells about it.
 *
 * An old program that includes <pcsample.h> finds it with -I.../profil/compat/illumos.
 */
#ifndef _PROFIL_ILLUMOS_H
#define _PROFIL_ILLUMOS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * pcsample - Note at every tick where the calling process is
 * @samples: Array of program counters to be filled in, from the first on.
 * @nsamples: Number of these; 0: no longer.
 *
 * Return: how many an earlier call has filled in, or -1 with errno set. Thread-safe and
 * async-signal-safe.
 */
long pcsample(uintptr_t samples[], long nsamples);

#ifdef __cplusplus
}
#endif

#endif /* _PROFIL_ILLUMOS_H */
