/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pcsample() of illumos and Solaris: see pcsample(3)
 *
 * For an old program that includes <pcsample.h>, add -I.../profil/compat/illumos to the compiler
 * options.
 */
#ifndef _PROFIL_ILLUMOS_H
#define _PROFIL_ILLUMOS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * pcsample - Write the program counter of the calling process to an array at every tick
 * @samples: Array of program counters, filled in from the first element on.
 * @nsamples: Number of elements; 0 stops sampling.
 *
 * Return: the number of samples since the previous call, or -1 with errno set. Thread-safe and
 * async-signal-safe.
 */
long pcsample(uintptr_t samples[], long nsamples);

#ifdef __cplusplus
}
#endif

#endif /* _PROFIL_ILLUMOS_H */
