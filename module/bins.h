/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which counter a pc belongs to: pure arithmetic, also built on the host
 *
 * With d = pc - offset (modulo 2^64) the ABI defines, in unbounded integers,
 *
 *	counter(d) = (((d / granule) * scale / 65536) + round) / step
 *
 * where round is step - 1 with PROFIL_RANGE_ROUND_UP, else 0. No factor falls as
 * d grows, so the counters below any n are the d below one bound: the span. It is
 * computed once, when the range is set up; the tick then compares once, and what
 * passes cannot overflow.
 *
 * Proof, with n from 1 to 2^36, t = (d / granule) * scale / 65536 and divisions
 * that round down:
 *
 *	counter(d) >= n
 *	<=> t + round >= n * step
 *	<=> t >= T			T = n * step - round, 1 <= T <= 2^44
 *	<=> (d / granule) * scale >= T * 65536			<= 2^60
 *	<=> d / granule >= q		q = T * 65536 / scale, rounded up, <= 2^60
 *	<=> d >= q * granule
 *
 * so span = q * granule. That may exceed 2^64, and with scale 0 t is never T: no
 * pc reaches counter n then, and the span is U64_MAX. (d = U64_MAX itself does not
 * occur: pc < end <= U64_MAX, pc >= start >= offset.) And d < span means
 * d / granule < q, so (d / granule) * scale < T * 65536 + scale < 2^61.
 *
 * The tick adds round before the division by 65536, as round * 65536 in bias, and
 * divides once: the result is the same, since the sum of an integer and a fraction
 * below one is rounded down in either order.
 */
#ifndef _PROFIL_BINS_H
#define _PROFIL_BINS_H

#ifdef __KERNEL__
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef U64_MAX
#define U64_MAX UINT64_MAX
#endif

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}
#endif

#define PROFIL_MAX_GRANULE	65536U		/* bytes of text */
#define PROFIL_MAX_STEP		256U
#define PROFIL_MAX_COUNTERS	(1ULL << 36)

/**
 * struct profil_bins - The arithmetic of one range
 * @span: Those pcs have a counter whose d is below it.
 * @scale: Counters per granule, 16 bits of fraction.
 * @bias: Added to the product.
 * @granule_shift: log2 of the granule.
 * @shift: 16 + log2 of the step.
 */
struct profil_bins {
	u64 span;
	u64 scale;
	u64 bias;
	u8 granule_shift;
	u8 shift;
};

/* The smallest d whose counter is @nr_counters or above; U64_MAX if there is none. */
static inline u64 profil_bins_span(const struct profil_bins *b, u64 nr_counters)
{
	u64 q;

	if (!nr_counters)
		return 0;
	if (!b->scale)
		return U64_MAX;

	q = div_u64((nr_counters << b->shift) - b->bias + b->scale - 1, b->scale);
	if (q > U64_MAX >> b->granule_shift)
		return U64_MAX;
	return q << b->granule_shift;
}

/**
 * profil_bins_set - Set up the arithmetic of a range
 * @b: What is set up.
 * @granule_shift: log2 of the granule, which is at most PROFIL_MAX_GRANULE.
 * @step_shift: log2 of the step, which is at most PROFIL_MAX_STEP.
 * @round_up: Does the division by step round up?
 * @scale: As in the ABI.
 * @nr_counters: At most PROFIL_MAX_COUNTERS.
 */
static inline void profil_bins_set(struct profil_bins *b, u8 granule_shift, u8 step_shift,
				   bool round_up, u32 scale, u64 nr_counters)
{
	b->scale = scale;
	b->granule_shift = granule_shift;
	b->shift = 16 + step_shift;
	b->bias = round_up ? (((u64)1 << step_shift) - 1) << 16 : 0;
	b->span = profil_bins_span(b, nr_counters);
}

/**
 * profil_bins_move - Let d and the counters begin elsewhere
 * @b: As from profil_bins_set(), and set up no more than once.
 * @skipped: What d is counted from now on, in terms of the d before; a multiple of
 *	the granule, and below the span.
 * @first: The number of counter 0 from now on; at most 2^16.
 */
static inline void profil_bins_move(struct profil_bins *b, u64 skipped, u64 first)
{
	b->span -= skipped;
	b->bias += (skipped >> b->granule_shift) * b->scale + (first << b->shift);
}

/* The counter of @d, which must be below the span. */
static inline u64 profil_bins_index(const struct profil_bins *b, u64 d)
{
	return ((d >> b->granule_shift) * b->scale + b->bias) >> b->shift;
}

#endif /* _PROFIL_BINS_H */
