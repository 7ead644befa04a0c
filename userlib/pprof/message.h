/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A profile in the format of pprof: a message of protobuf (pprof.proto), compressed as by gzip
 *
 * A message of protobuf can be cut in parts, since arrays continue in the next part. Here a part
 * has one element of an array in most cases. So the message is never in memory as a whole, except
 * compressed.
 */
#ifndef LIBPROFIL_PPROF_MESSAGE_H
#define LIBPROFIL_PPROF_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "pprof.pb-c.h"

/**
 * struct message - A message while it is made
 * @data: The compressed message, after message_finish().
 * @len: Its length in bytes.
 * @failed: There was not enough memory.
 *
 * The other members are only for message.c.
 */
struct message {
	unsigned char *data;
	size_t len;
	bool failed;

	ProtobufCBuffer buffer;
	z_stream stream;
	size_t size;
	void *strings;
	int64_t nr_strings;
};

void message_start(struct message *message);

/* Completes the message. Returns false if there was not enough memory for it. */
bool message_finish(struct message *message);

/* Frees the memory, also if message_finish() was not called. */
void message_free(struct message *message);

/* Adds the members of @part, which the caller keeps. */
void message_add(struct message *message, const Pprof__Profile *part);

/* Returns the index of @text, which must be valid UTF-8, in the table of strings. */
int64_t message_string(struct message *message, const char *text);

/* These add the element that the name says. */
void message_add_comment(struct message *message, const char *text);
void message_add_function(struct message *message, const Pprof__Function *function);
void message_add_location(struct message *message, const Pprof__Location *location);
void message_add_mapping(struct message *message, const Pprof__Mapping *mapping);
void message_add_sample(struct message *message, const Pprof__Sample *sample);

/*
 * Adds the types of the values of a sample, which are the number of samples and the CPU time, and
 * the period in ns. If @period is 0, there is no CPU time.
 */
void message_add_types(struct message *message, int64_t period);

/* A label of a sample: a text; or a number, if @text is NULL. */
Pprof__Label message_label(struct message *message, const char *key, const char *text,
			   int64_t number);

#endif /* LIBPROFIL_PPROF_MESSAGE_H */
