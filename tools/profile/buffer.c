// SPDX-License-Identifier: GPL-2.0-or-later
/* See buffer.h. */
#define _GNU_SOURCE
#include <libiberty/libiberty.h>

#include "profile/buffer.h"

void buffer_open(struct buffer *buffer)
{
	buffer->out = open_memstream(&buffer->text, &buffer->size);
	if (!buffer->out)
		xmalloc_failed(0);
}

char *buffer_close(struct buffer *buffer)
{
	if (fclose(buffer->out))
		xmalloc_failed(buffer->size);
	return buffer->text;
}
