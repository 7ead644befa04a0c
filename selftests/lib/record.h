/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The form of a record
 */
#ifndef _SELFTESTS_RECORD_H
#define _SELFTESTS_RECORD_H

#include <linux/profil.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define HEADER	offsetof(struct profil_record, path)

/* The path can be longer than the 8 bytes of its member: the compiler must not know these. */
static inline const char *path_of(const struct profil_record *r)
{
	return (const char *)r + HEADER;
}

/* Returns the end of the path: a multiple of 8. */
static inline size_t path_end(const struct profil_record *r)
{
	return (HEADER + strlen(path_of(r)) + 1 + 7) / 8 * 8;
}

/* Returns the stack of a record with PROFIL_RECORD_STACK. */
static inline const struct profil_stack *stack_of(const struct profil_record *r)
{
	return (const void *)((const char *)r + path_end(r));
}

/* Returns true if this is a complete record of at most @max bytes. */
static inline bool well_formed(const struct profil_record *r, size_t max)
{
	size_t end;

	if (max <= HEADER || r->size <= HEADER || r->size > max || r->size % 8)
		return false;
	if (!memchr(r->comm, 0, sizeof(r->comm)) || !memchr(path_of(r), 0, r->size - HEADER))
		return false;
	end = path_end(r);
	if (!(r->flags & PROFIL_RECORD_STACK))
		return r->size == end;
	return r->size >= end + sizeof(struct profil_stack) &&
	       r->size == end + sizeof(struct profil_stack) + 8 * (u64)stack_of(r)->nr;
}

#endif
