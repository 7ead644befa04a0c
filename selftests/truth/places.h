/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PLACES_H
#define _PLACES_H

#define PLACE_SIZE	64
#define PLACE_ITERATION	32
#define NR_LOOPS	8
#define NR_PLACES	10

/* The two places that call the kernel */
#define PLACE_READ_MUCH	8
#define PLACE_READ_LESS	9

#endif /* _PLACES_H */
