// SPDX-License-Identifier: LGPL-2.1-or-later
/* See message.h. */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

#define WINDOW_BITS_GZIP (15 + 16)
#define MEMORY_LEVEL	 9
#define GROWTH		 (1 << 14)

struct string {
	int64_t index;
	char text[];
};

/* ---- compression ---- */

static void message_deflate(struct message *message, int flush)
{
	z_stream *stream = &message->stream;
	unsigned char *data;
	int status = Z_OK;

	while (!message->failed) {
		if (message->len == message->size) {
			data = realloc(message->data, message->size + message->size / 2 + GROWTH);
			if (!data) {
				message->failed = true;
				return;
			}
			message->data = data;
			message->size += message->size / 2 + GROWTH;
		}
		stream->next_out = message->data + message->len;
		stream->avail_out = message->size - message->len < GROWTH ?
				    message->size - message->len : GROWTH;
		status = deflate(stream, flush);
		message->len = stream->next_out - message->data;
		if (flush == Z_FINISH ? status == Z_STREAM_END : !stream->avail_in)
			return;
	}
}

/* protobuf-c calls this with the bytes of a part. A part is short. */
static void message_append(ProtobufCBuffer *buffer, size_t len, const uint8_t *bytes)
{
	struct message *message = (struct message *)((char *)buffer -
						     offsetof(struct message, buffer));

	message->stream.next_in = (z_const Bytef *)bytes;
	message->stream.avail_in = len;
	message_deflate(message, Z_NO_FLUSH);
}

void message_start(struct message *message)
{
	memset(message, 0, sizeof(*message));
	message->buffer.append = message_append;
	message->failed = deflateInit2(&message->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
				       WINDOW_BITS_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK;
	message_string(message, "");
}

bool message_finish(struct message *message)
{
	message_deflate(message, Z_FINISH);
	return !message->failed;
}

void message_free(struct message *message)
{
	deflateEnd(&message->stream);
	tdestroy(message->strings, free);
	free(message->data);
}

/* ---- parts ---- */

void message_add(struct message *message, const Pprof__Profile *part)
{
	if (!message->failed)
		pprof__profile__pack_to_buffer(part, &message->buffer);
}

static int string_compare(const void *a, const void *b)
{
	const struct string *x = a, *y = b;

	return strcmp(x->text, y->text);
}

int64_t message_string(struct message *message, const char *text)
{
	const size_t size = strlen(text) + 1;
	struct string *string = malloc(sizeof(*string) + size), **found = NULL;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t index;

	if (string) {
		memcpy(string->text, text, size);
		found = tsearch(string, &message->strings, string_compare);
	}
	if (!found) {
		message->failed = true;
		free(string);
		return 0;
	}
	if (*found != string) {
		index = (*found)->index;
		free(string);
		return index;
	}
	string->index = message->nr_strings++;
	part.n_string_table = 1;
	part.string_table = (char *[]){ string->text };
	message_add(message, &part);
	return string->index;
}

/* The casts are safe: protobuf-c only reads the parts. */

void message_add_function(struct message *message, const Pprof__Function *function)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_function = 1;
	part.function = (Pprof__Function *[]){ (Pprof__Function *)function };
	message_add(message, &part);
}

void message_add_location(struct message *message, const Pprof__Location *location)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_location = 1;
	part.location = (Pprof__Location *[]){ (Pprof__Location *)location };
	message_add(message, &part);
}

void message_add_mapping(struct message *message, const Pprof__Mapping *mapping)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_mapping = 1;
	part.mapping = (Pprof__Mapping *[]){ (Pprof__Mapping *)mapping };
	message_add(message, &part);
}

void message_add_sample(struct message *message, const Pprof__Sample *sample)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_sample = 1;
	part.sample = (Pprof__Sample *[]){ (Pprof__Sample *)sample };
	message_add(message, &part);
}

void message_add_comment(struct message *message, const char *text)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t index = message_string(message, text);

	part.n_comment = 1;
	part.comment = &index;
	message_add(message, &part);
}

static Pprof__ValueType message_type(struct message *message, const char *type, const char *unit)
{
	Pprof__ValueType part = PPROF__VALUE_TYPE__INIT;

	part.type = message_string(message, type);
	part.unit = message_string(message, unit);
	return part;
}

void message_add_types(struct message *message, int64_t period)
{
	Pprof__ValueType samples = message_type(message, "samples", "count");
	Pprof__ValueType cpu = message_type(message, "cpu", "nanoseconds");
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_sample_type = period ? 2 : 1;
	part.sample_type = (Pprof__ValueType *[]){ &samples, &cpu };
	part.period_type = period ? &cpu : NULL;
	part.period = period;
	message_add(message, &part);
}

Pprof__Label message_label(struct message *message, const char *key, const char *text,
			   int64_t number)
{
	Pprof__Label part = PPROF__LABEL__INIT;

	part.key = message_string(message, key);
	part.str = text ? message_string(message, text) : 0;
	part.num = number;
	return part;
}
