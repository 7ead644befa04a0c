/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Computes the counter of a pc. The tests compile this file for user space, too. Context: any.
 *
 * With d = pc - offset (modulo 2^64) the ABI defines, in unbounded integers,
 *
 *	counter(d) = (((d / granule) * scale / 65536) + round) / step
 *
 * where round is step - 1 with PROFIL_RANGE_ROUND_UP, and 0 otherwise. It never falls as d grows,
 * so d has a counter if it is below one limit. Then the tick computes, without overflow,
 *
 *	((d & mask) * scale + bias) >> shift
 *
 * with the constants of struct profil_bins. Documentation/design.rst has the proof.
 */
#ifndef _PROFIL_BINS_H
#define _PROFIL_BINS_H

#ifdef __KERNEL__
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>
#endif

#define PROFIL_MAX_GRANULE	4096U		/* bytes of text */
#define PROFIL_MAX_STEP		16U
#define PROFIL_MAX_COUNTERS	(1ULL << 31)

/* The constants for the computation of the counters of one range */
struct profil_bins {
	u64 limit;		/* a pc with d below this has a counter */
	u64 mask;		/* clears the part below a granule */
	u64 scale;		/* as in the ABI, with 16 bits of fraction */
	u64 bias;		/* round * 65536 * granule */
	u8 shift;		/* divides by 65536 * step * granule / (bytes of a counter) */
};

/* The shifts are log2 of the granule, of the step, and of the bytes of a counter. */
static inline void profil_bins_set(struct profil_bins *b, u8 granule_shift, u8 step_shift,
				   u8 width_shift, bool round_up, u32 scale, u64 nr_counters)
{
	u64 round = round_up ? ((u64)1 << step_shift) - 1 : 0;

	b->mask = ~(((u64)1 << granule_shift) - 1);
	b->scale = scale;
	b->bias = round << (16 + granule_shift);
	b->shift = 16 + granule_shift + step_shift - width_shift;

	if (!nr_counters)
		b->limit = 0;
	else if (!scale)
		b->limit = U64_MAX;
	else
		b->limit = div_u64((((nr_counters << step_shift) - round) << 16) + scale - 1, scale)
			  << granule_shift;
}

/*
 * Moves the origin of d by @skipped, and counter 0 to byte @first. @skipped is a multiple of the
 * granule, below the limit; @first is a multiple of the width, at most 2^16. Call it at most once.
 */
static inline void profil_bins_move(struct profil_bins *b, u64 skipped, u64 first)
{
	b->limit -= skipped;
	b->bias += skipped * b->scale + (first << b->shift);
}

/* Returns the byte offset of @d's counter, rounded down to @width. @d must be below the limit. */
static inline u64 profil_bins_byte(const struct profil_bins *b, u64 d, u64 width)
{
	return (((d & b->mask) * b->scale + b->bias) >> (b->shift & 63)) & -width;
}

#endif /* _PROFIL_BINS_H */
