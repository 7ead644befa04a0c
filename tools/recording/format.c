// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See format.h. The file is little endian, and the code supports only little-endian machines.
 *
 * Each block begins at a multiple of 8 bytes, with a number that marks it. If a block is damaged,
 * the reader looks for the next mark that begins a valid block.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>
#include <zlib.h>

#include "recording/format.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little endian");

/* The writer writes its buffer to the file when the buffer has this many bytes. */
#define BUFFER_FULL (64U << 10)
/* Samples in a block: a damaged block loses at most this many. */
#define SAMPLES_MAX 128
/*
 * The reader gives up after this many marks of blocks that are not valid. Otherwise a file full of
 * marks would take a time that grows with the square of its size.
 */
#define INVALID_MAX 1024
/* Time in which the reader of a pipe or socket must read the buffer. */
#define PATIENCE_NS (30 * NS_PER_S)

#define SAMPLE_SIZE_V2	offsetof(struct format_sample, stack)

/* "PROF" */
#define BLOCK_MARK 0x464f5250

struct file_header {
	char magic[8];
	u32 version;
	u32 reserved;
};

struct block_header {
	u32 mark;
	u32 type;
	u32 bytes;
	u32 crc;
};

/* Room for the largest block. */
#define BLOCK_MAX (sizeof(struct block_header) + FORMAT_PAYLOAD_MAX)

/*
 * The payload of most blocks begins with the structure of format.h, up to its first pointer. The
 * strings of the pointers follow. The assertions below check that they have no padding.
 */
static const struct layout {
	size_t fixed;
	size_t nr_strings;
} layouts[] = {
	[FORMAT_META] = { offsetof(struct format_meta, hostname), 3 },
	[FORMAT_FILE] = { offsetof(struct format_file, path), 1 },
	[FORMAT_THREAD] = { sizeof(struct format_thread), 0 },
	[FORMAT_MAPPING] = { sizeof(struct format_mapping), 0 },
	[FORMAT_SAMPLES] = { 0, 0 },
	[FORMAT_SYMBOL] = { offsetof(struct format_symbol, name), 1 },
	[FORMAT_DETACHED] = { offsetof(struct format_detached, path), 1 },
	[FORMAT_STATS] = { sizeof(struct format_account), 0 },
	[FORMAT_END] = { sizeof(struct format_end), 0 },
	[FORMAT_STACK] = { offsetof(struct format_stack, frames), 0 },
	[FORMAT_CALL] = { offsetof(struct format_call, name), 1 },
	[FORMAT_NAMELESS] = { sizeof(struct format_nameless), 0 },
};

_Static_assert(sizeof(struct file_header) == 16, "layout");
_Static_assert(sizeof(struct block_header) == 16, "layout");
_Static_assert(offsetof(struct format_meta, hostname) == 40, "layout");
_Static_assert(offsetof(struct format_file, path) == 72, "layout");
_Static_assert(offsetof(struct format_symbol, name) == 24, "layout");
_Static_assert(offsetof(struct format_detached, path) == 16, "layout");
_Static_assert(sizeof(struct format_thread) == 40, "layout");
_Static_assert(sizeof(struct format_mapping) == 24, "layout");
_Static_assert(sizeof(struct format_sample) == 40, "layout");
_Static_assert(SAMPLE_SIZE_V2 == 32, "layout");
_Static_assert(sizeof(struct format_frame) == 16, "layout");
_Static_assert(offsetof(struct format_stack, frames) == 48, "layout");
_Static_assert(offsetof(struct format_call, name) == 16, "layout");
_Static_assert(sizeof(struct format_nameless) == 16, "layout");
_Static_assert(sizeof(struct format_account) == 22 * 8, "layout");
_Static_assert(sizeof(struct format_end) == 16, "layout");

struct format_writer {
	int fd;
	int error;			/* errno of the first error, or 0 */
	bool can_truncate;		/* the file contained nothing before */
	u64 written;			/* bytes in the file */
	u64 nr_written;			/* samples in the file */
	u64 nr_buffered;		/* samples in the blocks of the buffer */
	struct format_sample samples[SAMPLES_MAX];	/* not in a block yet */
	size_t nr_samples;
	size_t used;			/* bytes of complete blocks in the buffer */
	size_t fill;			/* the same with the block that is not complete yet */
	u8 buffer[BUFFER_FULL + BLOCK_MAX];
};

/* Returns the checksum of the block: its payload, and the header except for the checksum itself. */
static u32 block_checksum(const struct block_header *header, const u8 *payload)
{
	u32 sum = crc32(0, (const u8 *)header, offsetof(struct block_header, crc));

	return header->bytes ? crc32(sum, payload, header->bytes) : sum;
}

/* ---- the writer ---- */

/* Waits until a pipe or socket has room. Returns false if that takes too long. */
static bool wait_for_room(int fd, u64 deadline)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	u64 now = clock_ns(CLOCK_MONOTONIC);

	return now < deadline && poll(&room, 1, (deadline - now) / 1000000 + 1) > 0;
}

/* Standard output may be a socket, which would share the flag O_NONBLOCK with other processes. */
static ssize_t write_some(int fd, const void *data, size_t bytes)
{
	ssize_t n = send(fd, data, bytes, MSG_DONTWAIT);

	return n < 0 && errno == ENOTSOCK ? write(fd, data, bytes) : n;
}

static void write_buffer(struct format_writer *writer)
{
	const u64 deadline = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	size_t done = 0;
	ssize_t n;

	while (!writer->error && done < writer->used) {
		n = write_some(writer->fd, writer->buffer + done, writer->used - done);
		if (n >= 0)
			done += n;
		else if (errno != EINTR &&
			 (errno != EAGAIN || !wait_for_room(writer->fd, deadline)))
			writer->error = errno == EAGAIN ? ETIMEDOUT : errno;
	}
	if (!writer->error) {
		writer->written += done;
		writer->nr_written += writer->nr_buffered;
	} else if (writer->can_truncate && ftruncate(writer->fd, writer->written)) {
		/* The file ends with an incomplete block, which readers detect. */
		writer->can_truncate = false;
	}
	writer->nr_buffered = 0;
	writer->used = 0;
	writer->fill = 0;
}

/* Appends to the block. If the block gets too large, only its size is correct. */
static void append(struct format_writer *writer, const void *data, size_t len)
{
	if (writer->fill + len <= sizeof(writer->buffer))
		memcpy(writer->buffer + writer->fill, data, len);
	writer->fill += len;
}

static void begin_block(struct format_writer *writer, u32 type)
{
	const struct block_header header = { .mark = BLOCK_MARK, .type = type };

	append(writer, &header, sizeof(header));
}

/* Completes the block that begin_block() started. */
static void end_block(struct format_writer *writer)
{
	u8 *block = writer->buffer + writer->used;
	struct block_header header;

	append(writer, "\0\0\0\0\0\0\0", -writer->fill % 8);
	/* Leaves out a block that is too large: no compiler makes a name of this length. */
	if (writer->fill - writer->used > BLOCK_MAX) {
		writer->fill = writer->used;
		return;
	}
	memcpy(&header, block, sizeof(header));
	header.bytes = writer->fill - writer->used - sizeof(header);
	header.crc = block_checksum(&header, block + sizeof(header));
	memcpy(block, &header, sizeof(header));
	writer->used = writer->fill;
	if (writer->used >= BUFFER_FULL)
		write_buffer(writer);
}

struct format_writer *format_create(int fd)
{
	struct file_header header = { .version = FORMAT_VERSION };
	struct format_writer *writer = xcalloc(1, sizeof(*writer));
	struct stat st;

	memcpy(header.magic, FORMAT_MAGIC, sizeof(header.magic));
	writer->fd = fd;
	writer->can_truncate = !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_size;
	append(writer, &header, sizeof(header));
	writer->used = writer->fill;
	return writer;
}

static void write_samples(struct format_writer *writer)
{
	if (!writer->nr_samples)
		return;
	begin_block(writer, FORMAT_SAMPLES);
	append(writer, writer->samples, writer->nr_samples * sizeof(*writer->samples));
	writer->nr_buffered += writer->nr_samples;
	writer->nr_samples = 0;
	end_block(writer);
}

void format_write_sample(struct format_writer *writer, const struct format_sample *sample)
{
	writer->samples[writer->nr_samples++] = *sample;
	if (writer->nr_samples == SAMPLES_MAX)
		write_samples(writer);
}

void format_write(struct format_writer *writer, enum format_type type, const void *data)
{
	const struct layout *layout = &layouts[type];
	const char *const *strings = (const void *)((const u8 *)data + layout->fixed);
	const struct format_stack *stack = data;

	if (type == FORMAT_STATS)
		write_samples(writer);
	begin_block(writer, type);
	append(writer, data, layout->fixed);
	for (size_t i = 0; i < layout->nr_strings; i++)
		append(writer, strings[i], strlen(strings[i]) + 1);
	if (type == FORMAT_STACK)
		append(writer, stack->frames, stack->nr * sizeof(*stack->frames));
	end_block(writer);
}

int format_flush(struct format_writer *writer)
{
	write_samples(writer);
	write_buffer(writer);
	errno = writer->error;
	return writer->error ? -1 : 0;
}

int format_close(struct format_writer *writer, u64 *nr_samples)
{
	int error = format_flush(writer) ? errno : 0;

	if (nr_samples)
		*nr_samples = writer->nr_written;
	if (close(writer->fd) && !error)
		error = errno;
	free(writer);
	errno = error;
	return error ? -1 : 0;
}

/* ---- the reader ---- */

static void stop_reading(struct format_reader *reader, const char *error)
{
	reader->ended = true;
	reader->error = error;
	if (reader->skip_at)
		reader->at = reader->skip_at;
}

/* Reads until @bytes of the current block are in the buffer. Returns false if there are fewer. */
static bool fill_buffer(struct format_reader *reader, size_t bytes)
{
	ssize_t n;

	if (reader->fill - reader->start >= bytes)
		return true;
	reader->fill -= reader->start;
	memmove(reader->buffer, reader->buffer + reader->start, reader->fill);
	reader->start = 0;
	while (!reader->eof && reader->fill < bytes) {
		n = TEMP_FAILURE_RETRY(read(reader->fd, reader->buffer + reader->fill,
					    BLOCK_MAX - reader->fill));
		if (n < 0)
			stop_reading(reader, strerror(errno));
		reader->eof = n <= 0;
		reader->fill += n > 0 ? n : 0;
	}
	return reader->fill >= bytes;
}

/*
 * Skips a hole of the file, in which nothing was recorded, if the buffer has only zeros. It can be
 * much larger than the recording.
 */
static void skip_hole(struct format_reader *reader)
{
	const size_t left = reader->fill - reader->start;
	const u8 *at = reader->buffer + reader->start;
	off_t now, next;

	if (reader->eof || !left || *at || memcmp(at, at + 1, left - 1))
		return;
	now = lseek(reader->fd, 0, SEEK_CUR);
	next = now < 0 ? -1 : lseek(reader->fd, now, SEEK_DATA);
	if (next < 0 && now >= 0 && errno == ENXIO)
		next = lseek(reader->fd, 0, SEEK_END);
	/* Blocks are at multiples of 8 bytes. */
	next = next < 0 ? now : now + (next - now) / 8 * 8;
	if (now >= 0 && lseek(reader->fd, next, SEEK_SET) == next)
		reader->at += next - now;
}

static void drop_bytes(struct format_reader *reader, size_t bytes)
{
	reader->start += bytes;
	reader->at += bytes;
}

/* Returns NULL, or the error message. */
static const char *read_header(struct format_reader *reader)
{
	struct file_header header;

	if (!fill_buffer(reader, sizeof(header)))
		return reader->error ?: reader->fill ? "not a recording of profil" :
						       "the file is empty";
	memcpy(&header, reader->buffer, sizeof(header));
	drop_bytes(reader, sizeof(header));
	if (memcmp(header.magic, FORMAT_MAGIC, sizeof(header.magic)))
		return "not a recording of profil";
	if (header.version < FORMAT_VERSION_MIN)
		return "its format is older than this version of profil; record again";
	if (header.version > FORMAT_VERSION)
		return "its format is newer than this version of profil";
	reader->version = header.version;
	if (header.version == 2)
		reader->samples = xcalloc(FORMAT_PAYLOAD_MAX / SAMPLE_SIZE_V2,
					  sizeof(*reader->samples));
	return NULL;
}

struct format_reader *format_open_fd(int fd, const char **error)
{
	struct format_reader *reader = xcalloc(1, sizeof(*reader) + BLOCK_MAX);

	reader->fd = fd;
	*error = read_header(reader);
	if (!*error)
		return reader;
	format_free(reader);
	return NULL;
}

struct format_reader *format_open(const char *path, const char **error)
{
	int fd;

	if (!strcmp(path, "-"))
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		return format_open_fd(fd, error);
	*error = strerror(errno);
	return NULL;
}

static bool has_mark(const struct format_reader *reader, size_t at)
{
	u32 mark;

	memcpy(&mark, reader->buffer + reader->start + at, sizeof(mark));
	return mark == BLOCK_MARK;
}

/* Skips an invalid block: all bytes up to the next mark, or all bytes in the buffer. */
static void skip_damage(struct format_reader *reader)
{
	const size_t left = reader->fill - reader->start;
	size_t bytes = 8;

	if (!left) {
		stop_reading(reader, reader->skip_at ? "damaged or cut off" : NULL);
		return;
	}
	if (!reader->skip_at)
		reader->skip_at = reader->at;
	if (left >= sizeof(u32) && has_mark(reader, 0) && ++reader->nr_invalid > INVALID_MAX) {
		stop_reading(reader, "too many blocks are damaged");
		return;
	}
	while (bytes + sizeof(u32) <= left && !has_mark(reader, bytes))
		bytes += 8;
	if (bytes + sizeof(u32) > left)
		skip_hole(reader);
	drop_bytes(reader, bytes < left ? bytes : left);
}

/* Returns the size of the block at the start of the buffer; 0 if it is damaged. */
static size_t read_block(struct format_reader *reader, struct block_header *header)
{
	if (!fill_buffer(reader, sizeof(*header)))
		return 0;
	memcpy(header, reader->buffer + reader->start, sizeof(*header));
	if (header->mark != BLOCK_MARK || header->bytes % 8 ||
	    header->bytes > FORMAT_PAYLOAD_MAX ||
	    !fill_buffer(reader, sizeof(*header) + header->bytes) ||
	    header->crc != block_checksum(header, reader->buffer + reader->start + sizeof(*header)))
		return 0;
	return sizeof(*header) + header->bytes;
}

static void parse_samples(struct format_reader *reader, const u8 *at, size_t bytes,
			  struct format_block *block)
{
	if (reader->version > 2) {
		block->samples = (const void *)at;
		block->nr_samples = bytes / sizeof(*block->samples);
		return;
	}
	block->samples = reader->samples;
	block->nr_samples = bytes / SAMPLE_SIZE_V2;
	for (size_t i = 0; i < block->nr_samples; i++)
		memcpy(&reader->samples[i], at + i * SAMPLE_SIZE_V2, SAMPLE_SIZE_V2);
}

/*
 * Returns false if the payload is too short or malformed for its type. It may be longer, because
 * later versions may append members.
 */
static bool parse_block(struct format_reader *reader, const u8 *at, size_t bytes,
			struct format_block *block)
{
	const struct layout *layout = &layouts[block->type];
	u8 *to = (u8 *)&block->meta;
	const u8 *zero, *end = at + bytes;

	if (bytes < layout->fixed)
		return false;
	memcpy(to, at, layout->fixed);
	at += layout->fixed;
	for (size_t i = 0; i < layout->nr_strings; i++, at = zero + 1) {
		zero = memchr(at, 0, end - at);
		if (!zero)
			return false;
		memcpy(to + layout->fixed + i * sizeof(at), &at, sizeof(at));
	}
	if (block->type == FORMAT_SAMPLES) {
		parse_samples(reader, at, bytes, block);
	} else if (block->type == FORMAT_THREAD) {
		block->thread.comm[sizeof(block->thread.comm) - 1] = '\0';
	} else if (block->type == FORMAT_STACK) {
		block->stack.frames = (const void *)at;
		return block->stack.nr <= FORMAT_STACK_MAX &&
		       block->stack.nr <= (size_t)(end - at) / sizeof(*block->stack.frames);
	}
	return block->type != FORMAT_FILE || block->file.build_id_len <= FORMAT_BUILD_ID_MAX;
}

bool format_next(struct format_reader *reader, struct format_block *block)
{
	struct block_header header;
	bool is_known;

	while (!reader->ended) {
		drop_bytes(reader, reader->block);
		reader->block = read_block(reader, &header);
		is_known = reader->block && header.type >= FORMAT_META &&
			   header.type <= FORMAT_NAMELESS;
		*block = (struct format_block){ .type = is_known ? header.type : 0 };
		if (!reader->block || (is_known && !parse_block(reader, reader->buffer +
								reader->start + sizeof(header),
								header.bytes, block))) {
			reader->block = 0;
			if (!reader->ended)
				skip_damage(reader);
			continue;
		}
		if (reader->skip_at) {
			reader->skipped += reader->at - reader->skip_at;
			reader->nr_skips++;
			reader->skip_at = 0;
		}
		if (is_known)
			return true;
	}
	return false;
}

bool format_busy(const struct format_reader *reader)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return !fcntl(reader->fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

void format_free(struct format_reader *reader)
{
	if (!reader)
		return;
	close(reader->fd);
	free(reader->samples);
	free(reader);
}
