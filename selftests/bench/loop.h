/* SPDX-License-Identifier: GPL-2.0 */
/* The loop that the benchmark measures, see loop.S. */
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#define BENCH_LOOP_LENGTH	1009	/* instructions in an iteration */
#define BENCH_LOOP_REST		10	/* of these, all but the filling instructions */
#define BENCH_READ_BYTES	16384

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

size_t bench_loop(uint64_t iterations, uint64_t threshold, uint64_t *gaps, size_t max_gaps);
ssize_t bench_read(int fd, void *buffer);
size_t bench_framed_loop(uint64_t iterations, uint64_t threshold, uint64_t *gaps, size_t max_gaps,
			 const void *frame);
extern const char bench_loop_end[];
#endif

#endif /* BENCH_LOOP_H */
