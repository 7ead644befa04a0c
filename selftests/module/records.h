/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads the records of the session under test.
 */
#ifndef _SELFTESTS_RECORDS_H
#define _SELFTESTS_RECORDS_H

#include "kselftest_harness.h"

#include <stddef.h>

#include "loop.h"
#include "record.h"
#include "tested.h"

static struct profil_record *records[1 << 18];
static unsigned int nr;		/* the number of records */

/* A loop over all records: r is declared by it. */
#define for_each_record(r)								\
	for (struct profil_record **at_ = records, *(r);				\
	     at_ < records + nr && ((r) = *at_); at_++)

/* A loop over the records from number @seen on, which it increments: r is declared by it. */
#define for_each_new_record(r, seen)							\
	for (struct profil_record *(r); (seen) < nr && ((r) = records[seen]); (seen)++)

/* Returns the number of records r for which @cond is true. */
#define records_where(r, cond) ({							\
	unsigned int n_ = 0;								\
											\
	for_each_record(r)								\
		n_ += !!(cond);								\
	n_;										\
})

/* Stores the records of @buffer. Returns their number, or -1 if they are malformed. */
static inline int take(const void *buffer, size_t size)
{
	const struct profil_record *r;
	int taken = 0;

	while (size) {
		r = buffer;
		if (!well_formed(r, size) || nr == ARRAY_SIZE(records))
			return -1;
		records[nr] = malloc(r->size);
		memcpy(records[nr++], r, r->size);
		buffer = (const char *)buffer + r->size;
		size -= r->size;
		taken++;
	}
	return taken;
}

/*
 * Reads all records. Returns 0 if more may come, 1 at the end, or a negative errno: EBADMSG for
 * malformed records.
 */
static inline int read_all(void)
{
	static u64 buffer[65536 / 8];
	int flags = fcntl(fd, F_GETFL), err;
	ssize_t n;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	do {
		memset(buffer, 0xff, sizeof(buffer));
		n = read(fd, buffer, sizeof(buffer));
		err = n < 0 ? -errno : n && take(buffer, n) <= 0 ? -EBADMSG : 0;
	} while (n > 0 && !err);
	fcntl(fd, F_SETFL, flags);
	return !n ? 1 : err == -EAGAIN ? 0 : err;
}

/* Returns true if the pc is in loop @i of the code at @text. */
static inline bool in_loop(const struct profil_record *r, u64 text, unsigned int i)
{
	return r->pc - text - LOOP_SIZE * i < LOOP_SIZE;
}

#endif /* _SELFTESTS_RECORDS_H */
