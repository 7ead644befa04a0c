// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions that find the records in a buffer: see profil.h
 *
 * The contents of the buffer are not trusted: they can come from a file, which can be incomplete.
 */
#include <stddef.h>
#include <string.h>

#include "device.h"
#include "profil.h"

#define HEAD offsetof(struct profil_record, path)

PROFIL_EXPORT const struct profil_record *profil_record_first(const void *buf, ssize_t len)
{
	const struct profil_record *record = buf;

	if (len <= (ssize_t)HEAD || record->size <= HEAD || record->size > (size_t)len ||
	    record->size % 8)
		return NULL;
	if (!memchr(record->comm, 0, sizeof(record->comm)) ||
	    !memchr((const char *)buf + HEAD, 0, record->size - HEAD))
		return NULL;
	return record;
}

PROFIL_EXPORT const struct profil_record *profil_record_next(const void *buf, ssize_t len,
							     const struct profil_record *record)
{
	const char *next = (const char *)record + record->size;

	return profil_record_first(next, (const char *)buf + len - next);
}

PROFIL_EXPORT const struct profil_stack *profil_record_stack(const struct profil_record *record)
{
	const char *path = (const char *)record + HEAD;
	size_t at = (HEAD + strlen(path) + 1 + 7) / 8 * 8;
	const struct profil_stack *stack = (const void *)((const char *)record + at);

	if (!(record->flags & PROFIL_RECORD_STACK) || record->size < at + sizeof(*stack))
		return NULL;
	if ((record->size - at - sizeof(*stack)) / sizeof(*stack->addresses) < stack->nr)
		return NULL;
	return stack;
}
