/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output into memory
 */
#ifndef PROFIL_TOOLS_BUFFER_H
#define PROFIL_TOOLS_BUFFER_H

#include <stdio.h>

/**
 * struct buffer - A text that is being written
 * @out: Where to write it.
 * @text: The text after fflush() of @out.
 * @size: Its length, likewise.
 */
struct buffer {
	FILE *out;
	char *text;
	size_t size;
};

/* If there is no memory, these functions exit, as xmalloc() does. */
void buffer_open(struct buffer *buffer);

/* Returns the text, which the caller frees. */
char *buffer_close(struct buffer *buffer);

#endif /* PROFIL_TOOLS_BUFFER_H */
