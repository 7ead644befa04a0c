// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See format.h. The file is little endian, and the code supports only little-endian machines. The
 * payload of most blocks is a structure of format.h. Assertions below check that these structures
 * have no padding.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "recording/format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little endian");

/* The writer writes its buffer to the file when the buffer has this many bytes. */
#define BUFFER_FULL (1U << 20)
/* The maximum size of the file header, to which later versions may add members. */
#define HEADER_MAX 4096
/* Payloads are read in pieces, so that a wrong length does not allocate too much memory. */
#define PIECE (256U << 10)

struct file_header {
	char magic[8];
	u32 version;
	u32 size;
	u64 flags;
	u64 reserved;
};

struct block_header {
	u32 type;
	u32 bytes;
	u32 crc;
	u32 reserved;
};

struct meta_payload {
	u64 start_time;
	u64 start_monotonic;
	u64 tick_ns;
	u32 modes;
	u32 flags;
	u32 nr_args;
	u32 reserved;
};

struct file_payload {
	u64 id;
	u64 ino;
	u64 generation;
	u64 size;
	u64 mtime;
	u32 major;
	u32 minor;
	u32 flags;
	u32 build_id_len;
	u8 build_id[FORMAT_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct file_header) == 32, "layout");
_Static_assert(sizeof(struct block_header) == 16, "layout");
_Static_assert(sizeof(struct meta_payload) == 40, "layout");
_Static_assert(sizeof(struct file_payload) == 88, "layout");
_Static_assert(sizeof(struct format_process) == 48, "layout");
_Static_assert(sizeof(struct format_sample) == 48, "layout");
_Static_assert(sizeof(struct format_stats) == 19 * 8, "layout");
_Static_assert(sizeof(struct format_account) == 40 * 8, "layout");
_Static_assert(sizeof(struct format_end) == 16, "layout");

/**
 * struct format_writer - A file that is being written
 * @fd: The file.
 * @error: The errno of the first error, or 0.
 * @written: Bytes in the file.
 * @buffer: Blocks that are not in the file yet; the last one may be incomplete.
 * @used: Bytes of complete blocks in @buffer.
 * @fill: Bytes in @buffer.
 * @size: Size of @buffer.
 */
struct format_writer {
	int fd;
	int error;
	u64 written;
	u8 *buffer;
	size_t used;
	size_t fill;
	size_t size;
};

/**
 * struct format_reader - A file that is being read
 * @fd: The file.
 * @next: Offset of the next block.
 * @at: Offset of the current block.
 * @payload: The payload of the current block.
 * @size: Size of the buffer at @payload.
 * @ended: There are no more blocks.
 * @error: If there are no more blocks, the error message; NULL at the end of the file.
 */
struct format_reader {
	int fd;
	u64 next;
	u64 at;
	u8 *payload;
	size_t size;
	bool ended;
	const char *error;
};

/* Returns the checksum of the payload and of the type and the length in the header. */
static u32 block_checksum(const struct block_header *header, const u8 *payload)
{
	u32 sum = crc32(0, (const u8 *)header, offsetof(struct block_header, crc));

	return header->bytes ? crc32(sum, payload, header->bytes) : sum;
}

/* A lock for F_OFD_*, which belongs to the open file: a fork does not affect it. */
static struct flock file_lock(short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET };
}

static int append(struct format_writer *writer, const void *data, size_t len)
{
	if (len > writer->size - writer->fill) {
		size_t size = (writer->fill + len) * 2;
		u8 *buffer = realloc(writer->buffer, size);

		if (!buffer)
			return -1;
		writer->buffer = buffer;
		writer->size = size;
	}
	if (len)
		memcpy(writer->buffer + writer->fill, data, len);
	writer->fill += len;
	return 0;
}

static int append_string(struct format_writer *writer, const char *string)
{
	return string ? append(writer, string, strlen(string) + 1) : append(writer, "", 1);
}

static int begin_block(struct format_writer *writer, u32 type)
{
	struct block_header header = { .type = type };

	if (writer->error) {
		errno = writer->error;
		return -1;
	}
	writer->fill = writer->used;
	return append(writer, &header, sizeof(header));
}

/* Completes the block that begin_block() started. */
static int end_block(struct format_writer *writer)
{
	size_t bytes = writer->fill - writer->used - sizeof(struct block_header);
	struct block_header header;
	u8 *payload;

	if (append(writer, "\0\0\0\0\0\0\0", -bytes % 8))
		return -1;
	bytes += -bytes % 8;
	if (bytes > FORMAT_PAYLOAD_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	payload = writer->buffer + writer->used + sizeof(header);
	memcpy(&header, payload - sizeof(header), sizeof(header));
	header.bytes = bytes;
	header.crc = block_checksum(&header, payload);
	memcpy(payload - sizeof(header), &header, sizeof(header));
	writer->used = writer->fill;
	return writer->used < BUFFER_FULL ? 0 : format_flush(writer);
}

static int write_struct(struct format_writer *writer, u32 type, const void *payload, size_t bytes)
{
	if (begin_block(writer, type) || append(writer, payload, bytes))
		return -1;
	return end_block(writer);
}

struct format_writer *format_create(const char *path)
{
	struct file_header header = {
		.version = FORMAT_VERSION,
		.size = sizeof(header),
	};
	struct flock lock = file_lock(F_WRLCK);
	struct format_writer *writer;
	struct stat st;
	int error;

	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return NULL;
	/* Mode 0600, because other users must not read the command line in the file. */
	writer->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (writer->fd < 0)
		goto free_writer;
	/* Ignore other errors, because some file systems do not support locks. */
	if (fcntl(writer->fd, F_OFD_SETLK, &lock) && (errno == EAGAIN || errno == EACCES)) {
		errno = EBUSY;
		goto close_file;
	}
	if (fstat(writer->fd, &st) || (S_ISREG(st.st_mode) && ftruncate(writer->fd, 0)))
		goto close_file;
	memcpy(header.magic, FORMAT_MAGIC, sizeof(header.magic));
	if (append(writer, &header, sizeof(header)))
		goto close_file;
	writer->used = writer->fill;
	if (format_flush(writer))
		goto close_file;
	return writer;

close_file:
	error = errno;
	close(writer->fd);
	errno = error;
free_writer:
	error = errno;
	free(writer->buffer);
	free(writer);
	errno = error;
	return NULL;
}

int format_write_meta(struct format_writer *writer, const struct format_meta *meta,
		      char *const argv[])
{
	struct meta_payload payload = {
		.start_time = meta->start_time,
		.start_monotonic = meta->start_monotonic,
		.tick_ns = meta->tick_ns,
		.modes = meta->modes,
		.flags = meta->flags,
	};

	while (argv && argv[payload.nr_args])
		payload.nr_args++;
	if (begin_block(writer, FORMAT_META) || append(writer, &payload, sizeof(payload)) ||
	    append_string(writer, meta->hostname) || append_string(writer, meta->release) ||
	    append_string(writer, meta->directory))
		return -1;
	for (u32 i = 0; i < payload.nr_args; i++)
		if (append_string(writer, argv[i]))
			return -1;
	return end_block(writer);
}

int format_write_file(struct format_writer *writer, const struct format_file *file)
{
	struct file_payload payload = {
		.id = file->id,
		.ino = file->ino,
		.generation = file->generation,
		.size = file->size,
		.mtime = file->mtime,
		.major = file->major,
		.minor = file->minor,
		.flags = file->flags,
		.build_id_len = file->build_id_len,
	};

	if (!file->id || file->build_id_len > FORMAT_BUILD_ID_MAX) {
		errno = EINVAL;
		return -1;
	}
	memcpy(payload.build_id, file->build_id, file->build_id_len);
	if (begin_block(writer, FORMAT_FILE) || append(writer, &payload, sizeof(payload)) ||
	    append_string(writer, file->path))
		return -1;
	return end_block(writer);
}

int format_write_process(struct format_writer *writer, const struct format_process *process)
{
	struct format_process payload = *process;

	if (!process->id) {
		errno = EINVAL;
		return -1;
	}
	payload.comm[sizeof(payload.comm) - 1] = '\0';
	return write_struct(writer, FORMAT_PROCESS, &payload, sizeof(payload));
}

int format_write_samples(struct format_writer *writer, const struct format_sample *samples,
			 size_t nr)
{
	/* Samples per block: a damaged block loses at most this many. */
	const size_t most = 4096;

	for (size_t i = 0; i < nr; i += most) {
		size_t part = nr - i < most ? nr - i : most;

		if (write_struct(writer, FORMAT_SAMPLES, samples + i, part * sizeof(*samples)))
			return -1;
	}
	return 0;
}

int format_write_account(struct format_writer *writer, const struct format_account *account)
{
	return write_struct(writer, FORMAT_STATS, account, sizeof(*account));
}

int format_write_end(struct format_writer *writer, const struct format_end *end)
{
	return write_struct(writer, FORMAT_END, end, sizeof(*end));
}

int format_flush(struct format_writer *writer)
{
	size_t done = 0;
	ssize_t n;

	if (writer->error) {
		errno = writer->error;
		return -1;
	}
	while (done < writer->used) {
		n = write(writer->fd, writer->buffer + done, writer->used - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			writer->error = n < 0 ? errno : EIO;
			break;
		}
		done += n;
	}
	if (writer->error) {
		/*
		 * If the truncation fails, the file ends with an incomplete block, which readers
		 * detect.
		 */
		while (ftruncate(writer->fd, writer->written) && errno == EINTR)
			;
		errno = writer->error;
		return -1;
	}
	writer->written += done;
	writer->used = 0;
	writer->fill = 0;
	return 0;
}

int format_close(struct format_writer *writer)
{
	int error = 0;

	if (!writer)
		return 0;
	if (format_flush(writer))
		error = errno;
	if (close(writer->fd) && !error && errno != EINTR)
		error = errno;
	free(writer->buffer);
	free(writer);
	errno = error;
	return error ? -1 : 0;
}

/* Returns the number of bytes, which is less than @len at the end of the file; -1 on error. */
static ssize_t read_bytes(int fd, void *buffer, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = read(fd, (u8 *)buffer + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += n;
	}
	return done;
}

static int stop_reading(struct format_reader *reader, const char *error)
{
	reader->ended = true;
	reader->error = error;
	return error ? -1 : 0;
}

static bool read_header(struct format_reader *reader, const char **error)
{
	struct file_header header;
	u8 more[HEADER_MAX];
	ssize_t n, rest;

	n = read_bytes(reader->fd, &header, sizeof(header));
	if (n < 0) {
		*error = strerror(errno);
		return false;
	}
	if (n < (ssize_t)sizeof(header) ||
	    memcmp(header.magic, FORMAT_MAGIC, sizeof(header.magic))) {
		*error = n ? "not a recording of profil" : "the file is empty";
		return false;
	}
	if (header.version != FORMAT_VERSION || header.flags) {
		*error = "its format is newer than this version of profil";
		return false;
	}
	if (header.size < sizeof(header) || header.size > HEADER_MAX || header.size % 8) {
		*error = "the file's header is damaged";
		return false;
	}
	rest = header.size - sizeof(header);
	n = read_bytes(reader->fd, more, rest);
	if (n < rest) {
		*error = n < 0 ? strerror(errno) : "the file's header is cut off";
		return false;
	}
	reader->next = header.size;
	reader->at = reader->next;
	return true;
}

struct format_reader *format_open_fd(int fd, const char **error)
{
	struct format_reader *reader;

	reader = calloc(1, sizeof(*reader));
	if (!reader) {
		*error = strerror(ENOMEM);
		close(fd);
		return NULL;
	}
	reader->fd = fd;
	if (!read_header(reader, error)) {
		format_free(reader);
		return NULL;
	}
	return reader;
}

struct format_reader *format_open(const char *path, const char **error)
{
	int fd;

	if (!strcmp(path, "-"))
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		*error = strerror(errno);
		return NULL;
	}
	return format_open_fd(fd, error);
}

/*
 * Reads the payload. Returns the number of bytes, which is less than @bytes at the end of the file;
 * or -1 on an error or if there is no memory.
 */
static ssize_t read_payload(struct format_reader *reader, size_t bytes)
{
	size_t done = 0, part;
	ssize_t n;

	while (done < bytes) {
		part = bytes - done < PIECE ? bytes - done : PIECE;
		/*
		 * The buffer has the exact size, so that memory checkers find accesses after its
		 * end.
		 */
		if (done + part != reader->size) {
			u8 *payload = realloc(reader->payload, done + part);

			if (!payload)
				return -1;
			reader->payload = payload;
			reader->size = done + part;
		}
		n = read_bytes(reader->fd, reader->payload + done, part);
		if (n < 0)
			return -1;
		done += n;
		if ((size_t)n < part)
			break;
	}
	return done;
}

/* Returns the string at *@at and advances *@at past it. NULL: the string is not terminated. */
static const char *parse_string(const u8 **at, const u8 *end)
{
	const u8 *string = *at, *zero;

	if (string >= end)
		return NULL;
	zero = memchr(string, 0, end - string);
	if (!zero)
		return NULL;
	*at = zero + 1;
	return (const char *)string;
}

static bool parse_meta(const u8 *at, size_t bytes, struct format_meta *meta)
{
	const u8 *end = at + bytes;
	struct meta_payload payload;

	if (bytes < sizeof(payload))
		return false;
	memcpy(&payload, at, sizeof(payload));
	at += sizeof(payload);
	meta->start_time = payload.start_time;
	meta->start_monotonic = payload.start_monotonic;
	meta->tick_ns = payload.tick_ns;
	meta->modes = payload.modes;
	meta->flags = payload.flags;
	meta->nr_args = payload.nr_args;
	meta->hostname = parse_string(&at, end);
	meta->release = parse_string(&at, end);
	meta->directory = parse_string(&at, end);
	if (!meta->hostname || !meta->release || !meta->directory)
		return false;
	meta->args = (const char *)at;
	for (u32 i = 0; i < meta->nr_args; i++)
		if (!parse_string(&at, end))
			return false;
	return true;
}

static bool parse_file(const u8 *at, size_t bytes, struct format_file *file)
{
	const u8 *end = at + bytes;
	struct file_payload payload;

	if (bytes < sizeof(payload))
		return false;
	memcpy(&payload, at, sizeof(payload));
	at += sizeof(payload);
	file->id = payload.id;
	file->ino = payload.ino;
	file->generation = payload.generation;
	file->size = payload.size;
	file->mtime = payload.mtime;
	file->major = payload.major;
	file->minor = payload.minor;
	file->flags = payload.flags;
	file->build_id_len = payload.build_id_len;
	if (!file->id || file->build_id_len > FORMAT_BUILD_ID_MAX)
		return false;
	memcpy(file->build_id, payload.build_id, file->build_id_len);
	file->path = parse_string(&at, end);
	return file->path;
}

/*
 * Copies the structure at the start of the payload. The payload may be longer, because later
 * versions may append members.
 */
static bool parse_struct(const u8 *at, size_t bytes, void *to, size_t size)
{
	if (bytes < size)
		return false;
	memcpy(to, at, size);
	return true;
}

static bool parse_process(const u8 *at, size_t bytes, struct format_process *process)
{
	return parse_struct(at, bytes, process, sizeof(*process)) && process->id &&
	       memchr(process->comm, 0, sizeof(process->comm));
}

static bool parse_samples(const u8 *at, size_t bytes, struct format_block *block)
{
	if (bytes % sizeof(*block->samples))
		return false;
	block->samples = (const void *)at;
	block->nr_samples = bytes / sizeof(*block->samples);
	return true;
}

/* Returns false if the payload is too short or malformed for its type. */
static bool parse_block(const struct format_reader *reader, size_t bytes,
			struct format_block *block)
{
	const u8 *at = reader->payload;

	switch (block->type) {
	case FORMAT_META:
		return parse_meta(at, bytes, &block->meta);
	case FORMAT_FILE:
		return parse_file(at, bytes, &block->file);
	case FORMAT_PROCESS:
		return parse_process(at, bytes, &block->process);
	case FORMAT_SAMPLES:
		return parse_samples(at, bytes, block);
	case FORMAT_STATS:
		return parse_struct(at, bytes, &block->account, sizeof(block->account));
	case FORMAT_END:
		return parse_struct(at, bytes, &block->end, sizeof(block->end));
	}
	return false;
}

int format_next(struct format_reader *reader, struct format_block *block)
{
	struct block_header header;
	ssize_t n;

	do {
		if (reader->ended)
			return reader->error ? -1 : 0;
		reader->at = reader->next;
		n = read_bytes(reader->fd, &header, sizeof(header));
		if (n < 0)
			return stop_reading(reader, strerror(errno));
		if (!n)
			return stop_reading(reader, NULL);
		if (n < (ssize_t)sizeof(header))
			return stop_reading(reader, "a block is cut off");
		if (header.bytes % 8 || header.bytes > FORMAT_PAYLOAD_MAX || header.reserved)
			return stop_reading(reader, "a block's header is damaged");
		n = read_payload(reader, header.bytes);
		if (n < 0)
			return stop_reading(reader, strerror(errno));
		if (n < (ssize_t)header.bytes)
			return stop_reading(reader, "a block is cut off");
		if (header.crc != block_checksum(&header, reader->payload))
			return stop_reading(reader, "a block is damaged");
		reader->next += sizeof(header) + header.bytes;
	} while (header.type < FORMAT_META || header.type > FORMAT_END);

	memset(block, 0, sizeof(*block));
	block->type = header.type;
	if (!parse_block(reader, header.bytes, block))
		return stop_reading(reader, "a block has the wrong form");
	return 1;
}

const char *format_error(const struct format_reader *reader)
{
	return reader->error;
}

u64 format_offset(const struct format_reader *reader)
{
	return reader->at;
}

bool format_busy(const struct format_reader *reader)
{
	struct flock lock = file_lock(F_RDLCK);

	return !fcntl(reader->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

uid_t format_owner(const struct format_reader *reader)
{
	struct stat st;

	return fstat(reader->fd, &st) ? geteuid() : st.st_uid;
}

void format_free(struct format_reader *reader)
{
	if (!reader)
		return;
	close(reader->fd);
	free(reader->payload);
	free(reader);
}
