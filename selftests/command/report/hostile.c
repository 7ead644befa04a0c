// SPDX-License-Identifier: GPL-2.0
/*
 * hostile PROGRAM PROGRAM FILE...: runs profil report, export and diff, in this process, on
 * recordings that are truncated, damaged or malicious, and looks up symbols and lists functions in
 * damaged programs. PROFIL_FUZZ_ROUNDS (200) is the number of random changes.
 * hostile --structures PROGRAM...: looks up functions, lines and callers in programs with changed
 * structures. PROFIL_FUZZ_ROUNDS (400) is their number.
 *
 * It should be built with -fsanitize=address,undefined. Prints TAP.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "commands/command.h"
#include "fuzz.h"
#include "profile/listing.h"
#include "recording/format.h"
#include "symbols/symbols.h"
#include "text/text.h"

#define HEADER_SIZE 16
#define BLOCK_SIZE 16
/* Offsets in the header of a block */
#define BLOCK_TYPE 4
#define BLOCK_BYTES 8
#define BLOCK_CRC 12

static FILE *tap;
static int nr_tests;
static u64 this_round;		/* of a test with random numbers */
static pid_t self;		/* not of a confined process */
static bool failed;

#define NR_TESTS 7

static void result(bool fine, const char *name)
{
	fprintf(tap, "%sok %d %s\n", fine ? "" : "not ", ++nr_tests, name);
	fflush(tap);
	failed |= !fine;
}

static u32 get32(const u8 *at)
{
	u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void put32(u8 *at, u32 value)
{
	memcpy(at, &value, sizeof(value));
}

/* Runs a command with these arguments. */
#define RUN(command, ...) ({								\
	char *args[10] = { #command, __VA_ARGS__ };					\
	int nr = 0;									\
											\
	while (args[nr])								\
		nr++;									\
	command_##command.run(nr, args);						\
})

/* Exports the file, in another format each time. The exit status depends on the format. */
static void export(char *path)
{
	static const char *const formats[] = {
		"pprof", "callgrind", "folded", "speedscope", "firefox", "gmon", "llvm", "bolt",
		"json", "csv",
	};
	static size_t turn;
	char format[16];

	snprintf(format, sizeof(format), "%s",
		 formats[turn++ % (sizeof(formats) / sizeof(*formats))]);
	RUN(export, "-i", path, "-o", "/dev/null", "--format", format);
}

/* Runs the report, and exports. Returns its exit status; the output is not checked. */
static int report(const struct bytes *bytes, const char *sort)
{
	char path[64], keys[64];
	int fd = memory(bytes, path), status;

	snprintf(keys, sizeof(keys), "%s", sort);
	export(path);
	/* A page contains much that does not depend on the file. */
	if (!any(4))
		RUN(report, "-i", path, "--html", "/dev/null");
	RUN(report, "-i", path, "--children");
	if (any(2))
		RUN(report, "-i", path, "--callees", "*");
	else
		RUN(report, "-i", path, "--callees", "*", "--inline");
	status = RUN(report, "-i", path, "-s", keys);
	close(fd);
	return status;
}

/* Compares two recordings. */
static void compare(const struct bytes *a, const struct bytes *b, bool shares)
{
	char paths[2][64];
	int fds[2] = { memory(a, paths[0]), memory(b, paths[1]) };

	if (shares)
		RUN(diff, "--share", paths[0], paths[1]);
	else
		RUN(diff, paths[0], paths[1]);
	close(fds[0]);
	close(fds[1]);
}

/*
 * Returns the number of blocks that the reader finds, its final error in *@error, and the number of
 * places that it has skipped in *@nr_skips; -1 if it cannot open the file.
 */
static int read_blocks(const struct bytes *bytes, const char **error, u64 *nr_skips)
{
	struct format_reader *reader;
	struct format_block block;
	char path[64];
	int nr = 0;

	*error = NULL;
	*nr_skips = 0;
	reader = format_open_fd(memory(bytes, path), error);
	if (!reader)
		return -1;
	while (format_next(reader, &block))
		nr++;
	*error = reader->error;
	*nr_skips = reader->nr_skips;
	if (reader->skipped > bytes->len || reader->at > bytes->len)
		errx(1, "more is skipped than there is");
	if (format_next(reader, &block))
		errx(1, "the end is not the end");
	format_free(reader);
	return nr;
}

/* Returns the offset of the block after the one at @at, if both are in the file; 0 if not. */
static size_t next_block(const struct bytes *bytes, size_t at)
{
	u32 payload;

	if (at > bytes->len || bytes->len - at < BLOCK_SIZE)
		return 0;
	payload = get32(bytes->data + at + BLOCK_BYTES);
	if (payload > bytes->len - at - BLOCK_SIZE)
		return 0;
	return at + BLOCK_SIZE + payload;
}

static void mend(const struct bytes *bytes)
{
	size_t next;

	for (size_t at = HEADER_SIZE; (next = next_block(bytes, at)); at = next)
		put32(bytes->data + at + BLOCK_CRC,
		      crc32(crc32(0, bytes->data + at, BLOCK_CRC), bytes->data + at + BLOCK_SIZE,
			    next - at - BLOCK_SIZE));
}

/*
 * Truncates the file to each length: the blocks before the end are read, and an incomplete block is
 * reported.
 */
static bool every_length(const struct bytes *whole)
{
	size_t next_at = next_block(whole, HEADER_SIZE), start = HEADER_SIZE;
	int expected = 0, nr;
	const char *error;
	u64 nr_skips;
	bool readable;

	for (size_t len = 0; len <= whole->len; len++) {
		struct bytes cut = { whole->data, len };

		if (next_at && len == next_at) {
			expected++;
			start = next_at;
			next_at = next_block(whole, next_at);
		}
		readable = len >= HEADER_SIZE;
		nr = read_blocks(&cut, &error, &nr_skips);
		if (nr != (readable ? expected : -1) || !error != (readable && len == start) ||
		    nr_skips) {
			fprintf(tap, "# cut to %zu: %d blocks of %d: %s\n", len, nr, expected,
				error ? error : "no error");
			return false;
		}
		if (len % 61 && len != start)
			continue;
		/* Without a sample, the status of a file that is cut off is not 0. */
		if (report(&cut, "symbol,dso") && len == start) {
			fprintf(tap, "# cut to %zu: the report's status\n", len);
			return false;
		}
	}
	return true;
}

/* Flips each bit: only the damaged block is lost; a damaged header is refused. */
static bool every_bit(const struct bytes *whole)
{
	const char *error;
	u64 nr_skips;
	int all = read_blocks(whole, &error, &nr_skips), nr;
	bool fine;

	for (size_t at = 0; at < whole->len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			whole->data[at] ^= 1 << bit;
			nr = read_blocks(whole, &error, &nr_skips);
			whole->data[at] ^= 1 << bit;
			if (at >= HEADER_SIZE)
				fine = nr == all - 1 && !error != !nr_skips;
			else if (at >= 12)
				fine = nr == all && !error;	/* a reserved field */
			else if (at == 8 && whole->data[at] == 3 && !bit)
				fine = nr == all && !error;	/* version 2 */
			else
				fine = nr == -1;
			if (!fine) {
				fprintf(tap, "# byte %zu bit %d: %d blocks of %d: %s\n",
					at, bit, nr, all, error ? error : "no error");
				return false;
			}
		}
	}
	return true;
}

/* Flips each bit and corrects the checksum: the content must not do any harm. */
static bool every_bit_mended(const struct bytes *whole)
{
	struct bytes bytes = { .data = malloc(whole->len), .len = whole->len };
	const char *error;
	u64 nr_skips;

	for (size_t bit = 8 * HEADER_SIZE; bit < 8 * whole->len; bit++) {
		memcpy(bytes.data, whole->data, whole->len);
		bytes.data[bit / 8] ^= 1 << bit % 8;
		mend(&bytes);
		read_blocks(&bytes, &error, &nr_skips);
		if (bit % 31 == 0)
			report(&bytes, "process,symbol,dso");
	}
	free(bytes.data);
	return true;
}

/* Fills the file with headers of large blocks, which overlap. The reader gives up soon. */
static bool many_marks(const struct bytes *whole)
{
	struct bytes bytes = { .data = malloc(BYTES_MAX), .len = BYTES_MAX };
	const char *error;
	u64 nr_skips;
	int nr;

	memcpy(bytes.data, whole->data, HEADER_SIZE);
	for (size_t at = HEADER_SIZE; at + BLOCK_SIZE <= BYTES_MAX; at += BLOCK_SIZE) {
		memcpy(bytes.data + at, "PROF", 4);
		put32(bytes.data + at + BLOCK_TYPE, 5);
		put32(bytes.data + at + BLOCK_BYTES, BYTES_MAX / 2);
		put32(bytes.data + at + BLOCK_CRC, 1);
	}
	nr = read_blocks(&bytes, &error, &nr_skips);
	free(bytes.data);
	return !nr && error && !nr_skips;
}

static void begin_round(u64 i)
{
	this_round = i;
	if (ftruncate(STDERR_FILENO, 0) || lseek(STDERR_FILENO, 0, SEEK_SET))
		err(1, "messages");
}

/* Copies @len bytes at @from and inserts them at @to. */
static void copy_stretch(struct bytes *bytes, size_t from, size_t len, size_t to)
{
	u8 *copy;

	if (bytes->len + len > BYTES_MAX / 2)
		return;
	copy = malloc(len + 1);
	memcpy(copy, bytes->data + from, len);
	memmove(bytes->data + to + len, bytes->data + to, bytes->len - to);
	memcpy(bytes->data + to, copy, len);
	bytes->len += len;
	free(copy);
}

static void remove_stretch(struct bytes *bytes, size_t from, size_t len)
{
	memmove(bytes->data + from, bytes->data + from + len, bytes->len - from - len);
	bytes->len -= len;
}

/* The offset of a random block; 0 if there is none. */
static size_t any_block(const struct bytes *bytes)
{
	size_t nr = 0, at, next;

	for (at = HEADER_SIZE; (next = next_block(bytes, at)); at = next)
		nr++;
	nr = any(nr);
	for (at = HEADER_SIZE; nr-- && (next = next_block(bytes, at)); at = next)
		;
	return next_block(bytes, at) ? at : 0;
}

static void mutate(struct bytes *bytes)
{
	size_t at = any_block(bytes), next, len, to, size = any(2) ? 8 : 4;
	const u64 value = odd_number();

	if (!at)
		return;
	next = next_block(bytes, at);
	len = next - at - BLOCK_SIZE;
	switch (any(8)) {
	case 0:
		if (len)
			bytes->data[at + BLOCK_SIZE + any(len)] = any(256);
		break;
	case 1:
	case 2:
		/* A number of 64 or 32 bits */
		if (len >= 8)
			memcpy(bytes->data + at + BLOCK_SIZE + any(len / size) * size, &value,
			       size);
		break;
	case 3:
		put32(bytes->data + at + BLOCK_TYPE, any(13));
		break;
	case 4:
		to = any_block(bytes);
		copy_stretch(bytes, at, next - at, to);
		break;
	case 5:
		remove_stretch(bytes, at, next - at);
		break;
	case 6:
		/* Makes a block shorter. */
		if (len) {
			size_t cut = 8 * (1 + any(len / 8));

			put32(bytes->data + at + BLOCK_BYTES, len - cut);
			remove_stretch(bytes, next - cut, cut);
		}
		break;
	case 7:
		/* Makes a block longer. */
		len = 8 * (1 + any(len / 8 + 1));
		if (bytes->len + len < BYTES_MAX / 2 && len <= next - at) {
			put32(bytes->data + at + BLOCK_BYTES, next - at - BLOCK_SIZE + len);
			copy_stretch(bytes, at, len, next);
		}
		break;
	}
}

static bool rounds(const struct bytes *corpus, int nr_corpus, u64 nr)
{
	static const char *const sorts[] = {
		"symbol,dso", "symbol", "dso", "process,symbol", "comm,dso", "thread",
		"process,thread,comm,dso,symbol", "cpu,mode,offset,symbol",
		"syscall", "mode,syscall,symbol",
	};
	struct bytes bytes = { .data = malloc(BYTES_MAX) };

	for (u64 i = 0; i < nr; i++) {
		const struct bytes *from = &corpus[any(nr_corpus)];

		begin_round(i);
		memcpy(bytes.data, from->data, from->len);
		bytes.len = from->len;
		for (u64 j = 1 + any(8); j; j--)
			mutate(&bytes);
		if (any(8))
			mend(&bytes);
		if (!any(8))
			bytes.len = any(bytes.len + 1);
		report(&bytes, sorts[any(sizeof(sorts) / sizeof(*sorts))]);
		compare(&bytes, from, any(2));
	}
	free(bytes.data);
	return true;
}

/* Headers are damaged more often than other bytes. */
static void damage(const struct bytes *bytes)
{
	size_t few = bytes->len < 1024 ? bytes->len : 1024;

	for (u64 i = 1 + any(20); i; i--) {
		size_t at = any(any(3) ? bytes->len : few);
		u64 value = odd_number();

		if (any(2))
			bytes->data[at] ^= 1 << any(8);
		else if (at + 8 <= bytes->len)
			memcpy(bytes->data + at / 4 * 4, &value, 4 + 4 * any(2));
	}
}

/* Lists the function at an offset in a file, if there is one. */
static void list(struct symbols *symbols, const struct format_file *data, u64 offset)
{
	struct recording_file file = { .data = *data };
	struct recording_sample sample = { .file = &file, .offset = offset, .user = 1, .nr = 1 };
	struct recording recording = { .samples = &sample, .nr_samples = 1 };
	struct rows rows = { .recording = &recording };
	struct row row = { .sample = &sample, .function.name = "", .function.label = "" };
	struct listing listing = { .symbols = symbols, .rows = &rows, .row = &row };
	const struct text_options options = { .width = 80 };

	if (!listing_make(&listing))
		text_listing(stdout, &listing, &options);
	listing_free(&listing);
}

/* Reads all that was found, so that the sanitizers see each byte. */
static void use(struct symbols *symbols, const struct lookup *lookup)
{
	size_t sum = 0;

	for (size_t i = 0; i < lookup->nr; i++) {
		const struct place *place = &lookup->places[i];

		if (place->found.name)
			sum += strlen(symbols_name(symbols, place->found.name));
		sum += place->source ? strlen(place->source) : 0;
		for (size_t j = 0; j < place->nr_frames; j++) {
			const struct frame *frame = &place->frames[j];

			sum += frame->name ? strlen(symbols_name(symbols, frame->name)) : 0;
			sum += frame->source ? strlen(frame->source) : 0;
		}
	}
	if (sum == SIZE_MAX)
		errx(1, "impossible");
}

/* The results do not matter, but the look-ups cover the whole file. */
static bool programs(const struct bytes *whole, u64 nr)
{
	struct bytes bytes = { .data = malloc(BYTES_MAX) };
	u64 *offsets = calloc(BYTES_MAX, sizeof(*offsets));
	char path[64];

	for (u64 i = 0; i < nr; i++) {
		struct format_file file = { .id = 1, .path = path };
		struct symbols *symbols = symbols_new(true, NULL);
		struct lookup lookup;
		size_t nr = 0;
		int fd;

		begin_round(i);
		memcpy(bytes.data, whole->data, whole->len);
		bytes.len = any(10) ? whole->len : any(whole->len + 1);
		damage(&bytes);
		fd = memory(&bytes, path);
		for (u64 offset = 0; offset < bytes.len + 100; offset += 7)
			offsets[nr++] = offset;
		lookup_init(&lookup, offsets, nr);
		lookup.find_callers = i % 3;
		symbols_read(symbols, &lookup, &(struct symbols_file){ .path = path }, i % 2);
		use(symbols, &lookup);
		for (size_t j = 0; j < nr; j += 1 + any(nr / 4))
			list(symbols, &file, lookup.places[j].where);
		lookup_free(&lookup);
		symbols_free(symbols);
		close(fd);
	}
	free(offsets);
	free(bytes.data);
	return true;
}

/*
 * Programs of 64 bits, whose ELF structures and DWARF were changed at random: one field is wrong,
 * and what surrounds it is right. The process that reads them may crash in a library. But it ends
 * soon, and this process remains and has an answer.
 */

#define PLACES		512
/* The limits of the process with sanitizers, for names and lines, and for another try */
#define SECONDS_MAX	30

/* The outcomes of a look-up */
struct outcomes {
	u64 read;
	u64 only_names;
	u64 no_program;
	u64 failed;
	u64 slow;
	u64 names;
	u64 lines;
	u64 callers;
};

/* An odd number, or one that is close to @right */
static u64 odd_number_near(u64 right)
{
	switch (any(4)) {
	case 0:
		return right + any(17) - 8;
	case 1:
		return right ^ 1ULL << any(64);
	default:
		return odd_number();
	}
}

/* Returns the part of the file, or NULL if it is not all in the file. */
static void *part(const struct bytes *bytes, u64 offset, u64 size)
{
	return offset <= bytes->len && size <= bytes->len - offset ? bytes->data + offset : NULL;
}

/* Likewise, if it can be accessed as a structure. */
static void *structure(const struct bytes *bytes, u64 offset, u64 size)
{
	return offset % 8 ? NULL : part(bytes, offset, size);
}

static Elf64_Shdr *section(const struct bytes *bytes, unsigned int i)
{
	const Elf64_Ehdr *ehdr = (const void *)bytes->data;

	return i < ehdr->e_shnum ? structure(bytes, ehdr->e_shoff + i * sizeof(Elf64_Shdr),
					     sizeof(Elf64_Shdr)) : NULL;
}

static const char *section_name(const struct bytes *bytes, const Elf64_Shdr *shdr)
{
	const Elf64_Ehdr *ehdr = (const void *)bytes->data;
	const Elf64_Shdr *names = section(bytes, ehdr->e_shstrndx);
	const char *name = names ? part(bytes, names->sh_offset + shdr->sh_name, 1) : NULL;

	return name && memchr(name, 0, bytes->data + bytes->len - (const u8 *)name) ? name : "";
}

static Elf64_Shdr *any_section(const struct bytes *bytes)
{
	return section(bytes, any(((const Elf64_Ehdr *)bytes->data)->e_shnum));
}

/* Sections whose names do not begin so are not read. */
static Elf64_Shdr *any_debug_section(const struct bytes *bytes)
{
	for (int i = 0; i < 100; i++) {
		Elf64_Shdr *shdr = any_section(bytes);
		const char *name = shdr ? section_name(bytes, shdr) : "";

		if ((!strncmp(name, ".debug_", 7) || !strcmp(name, ".eh_frame")) && shdr->sh_size &&
		    part(bytes, shdr->sh_offset, shdr->sh_size))
			return shdr;
	}
	return NULL;
}

/* Changes one of @nr fields, which have 2, 4 or 8 bytes. */
static void change_field(void *structure, const u8 *sizes, size_t nr)
{
	const size_t field = any(nr);
	u8 *at = structure;
	u64 value = 0;

	for (size_t i = 0; i < field; i++)
		at += sizes[i];
	memcpy(&value, at, sizes[field]);
	value = odd_number_near(value);
	memcpy(at, &value, sizes[field]);
}

static void change_header(const struct bytes *bytes)
{
	static const u8 sizes[] = { 2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2 };

	change_field(bytes->data + EI_NIDENT, sizes, sizeof(sizes));
}

static void change_section(const struct bytes *bytes)
{
	static const u8 sizes[] = { 4, 4, 8, 8, 8, 8, 4, 4, 8, 8 };
	Elf64_Shdr *shdr = any_section(bytes), *other = any_section(bytes);

	if (!shdr || !other)
		return;
	if (any(4))
		change_field(shdr, sizes, sizeof(sizes));
	else
		shdr->sh_offset = other->sh_offset;
}

static void change_segment(const struct bytes *bytes)
{
	static const u8 sizes[] = { 4, 4, 8, 8, 8, 8, 8, 8 };
	const Elf64_Ehdr *ehdr = (const void *)bytes->data;
	Elf64_Phdr *phdr = structure(bytes, ehdr->e_phoff + any(ehdr->e_phnum) * sizeof(*phdr),
				     sizeof(*phdr));

	if (phdr)
		change_field(phdr, sizes, sizeof(sizes));
}

static void change_symbol(const struct bytes *bytes)
{
	static const u8 sizes[] = { 4, 2, 2, 8, 8 };
	Elf64_Shdr *shdr = any_section(bytes);
	Elf64_Sym *sym;

	if (!shdr || (shdr->sh_type != SHT_SYMTAB && shdr->sh_type != SHT_DYNSYM))
		return;
	sym = structure(bytes, shdr->sh_offset + any(shdr->sh_size / sizeof(*sym)) * sizeof(*sym),
			sizeof(*sym));
	if (sym)
		change_field(sym, sizes, sizeof(sizes));
}

/* Strings without an end, or one that is very long */
static void change_strings(const struct bytes *bytes)
{
	Elf64_Shdr *shdr = any_section(bytes);
	u8 *data = shdr && shdr->sh_type != SHT_NOBITS ?
		   part(bytes, shdr->sh_offset, shdr->sh_size) : NULL;
	const char *name = shdr ? section_name(bytes, shdr) : "";
	size_t from;

	if (!data || !shdr->sh_size || !strstr(name, "str"))
		return;
	from = any(shdr->sh_size);
	memset(data + from, any(2) ? '_' : any(256), any(2) ? shdr->sh_size - from :
		       any(shdr->sh_size - from));
}

/* A number in LEB128 */
static size_t leb(u8 *to, u64 value)
{
	size_t n = 0;

	do {
		to[n++] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
	} while (value);
	return n;
}

/* Changes a number of DWARF, or an opcode, form or tag; or copies a stretch. */
static void change_dwarf(const struct bytes *bytes)
{
	const Elf64_Shdr *shdr = any_debug_section(bytes);
	u8 *data = shdr ? part(bytes, shdr->sh_offset, shdr->sh_size) : NULL, number[10];
	const size_t size = shdr ? shdr->sh_size : 0;
	size_t at = any(any(3) ? size : 64), from, len;
	u64 value;

	if (!data || at >= size)
		return;
	switch (any(5)) {
	case 0:
		data[at] = any(any(2) ? 0x40 : 256);
		return;
	case 1:
		len = leb(number, odd_number_near(data[at]));
		memcpy(data + at, number, len < size - at ? len : size - at);
		return;
	case 2:
		len = 1 << any(4);
		if (len > size - at)
			return;
		value = 0;
		memcpy(&value, data + at, len);
		value = odd_number_near(value);
		memcpy(data + at, &value, len);
		return;
	case 3:
		data[at] ^= 1 << any(8);
		return;
	case 4:
		from = any(size);
		len = any((size - at < size - from ? size - at : size - from) + 1);
		memmove(data + at, data + from, any(8) ? len % 64 : len);
		return;
	}
}

/* Compresses a section, with a size that may be wrong. */
static void compress_section(const struct bytes *bytes)
{
	Elf64_Shdr *shdr = any_debug_section(bytes);
	Elf64_Chdr chdr = { .ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 1 };
	uLongf len = BYTES_MAX;
	u8 *data, *packed;

	if (!shdr || shdr->sh_flags & SHF_COMPRESSED)
		return;
	data = part(bytes, shdr->sh_offset, shdr->sh_size);
	packed = malloc(len);
	chdr.ch_size = any(2) ? shdr->sh_size : odd_number_near(shdr->sh_size);
	if (!any(8))
		chdr.ch_type = odd_number_near(1);
	if (!compress(packed, &len, data, shdr->sh_size) && len + sizeof(chdr) <= shdr->sh_size) {
		memcpy(data, &chdr, sizeof(chdr));
		memcpy(data + sizeof(chdr), packed, len);
		shdr->sh_flags |= SHF_COMPRESSED;
		shdr->sh_size = len + sizeof(chdr);
	}
	free(packed);
}

static void change(struct bytes *bytes)
{
	static void (*const changes[])(const struct bytes *bytes) = {
		change_header, change_section, change_section, change_segment, change_symbol,
		change_symbol, change_strings, compress_section, change_dwarf, change_dwarf,
		change_dwarf, change_dwarf, change_dwarf, change_dwarf,
	};

	for (u64 i = 1 + any(6); i; i--)
		changes[any(sizeof(changes) / sizeof(*changes))](bytes);
	if (!any(20))
		bytes->len = sizeof(Elf64_Ehdr) + any(bytes->len - sizeof(Elf64_Ehdr));
}

static void count(struct outcomes *outcomes, const char *problem, const struct lookup *lookup)
{
	if (!problem && lookup->only_names)
		outcomes->only_names++;
	else if (!problem)
		outcomes->read++;
	else if (!strcmp(problem, "not a program"))
		outcomes->no_program++;
	else
		outcomes->failed++;
	for (size_t i = 0; i < lookup->nr; i++) {
		outcomes->names += !!lookup->places[i].found.name;
		outcomes->lines += !!lookup->places[i].source;
		outcomes->callers += lookup->places[i].caller != PLACE_CALLER_NO_TABLE;
	}
}

/* Returns an offset in the code of the program as it was, or anywhere. */
static u64 any_offset(const struct bytes *whole, bool in_code)
{
	const Elf64_Shdr *shdr = in_code ? any_section(whole) : NULL;

	while (shdr && !(shdr->sh_flags & SHF_EXECINSTR))
		shdr = any_section(whole);
	return shdr ? shdr->sh_offset + any(shdr->sh_size) : any(whole->len);
}

static void look_up(const struct bytes *whole, const struct bytes *bytes, struct outcomes *outcomes)
{
	struct symbols *symbols = symbols_new(any(2), NULL);
	const u64 start = clock_ns(CLOCK_MONOTONIC);
	const bool in_code = any(8);
	u64 offsets[PLACES];
	struct lookup lookup;
	const char *problem;
	char path[64];
	int fd = memory(bytes, path);

	for (size_t i = 0; i < PLACES; i++)
		offsets[i] = any_offset(whole, in_code);
	lookup_init(&lookup, offsets, PLACES);
	lookup.find_callers = any(2);
	lookup.number_locals = any(2);
	problem = symbols_read(symbols, &lookup, &(struct symbols_file){ .path = path }, any(3));
	count(outcomes, problem, &lookup);
	outcomes->slow += clock_ns(CLOCK_MONOTONIC) - start > SECONDS_MAX * NS_PER_S;
	use(symbols, &lookup);
	lookup_free(&lookup);
	symbols_free(symbols);
	close(fd);
}

static bool changed_programs(char **paths, int nr_paths, u64 nr)
{
	struct bytes bytes = { .data = malloc(BYTES_MAX) };
	struct outcomes o = {};

	for (u64 i = 0; i < nr; i++) {
		struct bytes whole = load(paths[any(nr_paths)], BYTES_MAX);

		memcpy(bytes.data, whole.data, whole.len);
		bytes.len = whole.len;
		change(&bytes);
		look_up(&whole, &bytes, &o);
		free(whole.data);
	}
	free(bytes.data);
	fprintf(tap, "# %" PRIu64 " read, %" PRIu64 " only names, %" PRIu64 " no programs, %" PRIu64
		" failed, %" PRIu64 " slow\n", o.read, o.only_names, o.no_program, o.failed,
		o.slow);
	fprintf(tap, "# %" PRIu64 " names, %" PRIu64 " lines, %" PRIu64 " callers\n", o.names,
		o.lines, o.callers);
	return !o.slow && o.names && o.lines && o.callers;
}

/*
 * The command, or a sanitizer, must not end this process. Prints where it does so, if it can: the
 * sanitizer of undefined behaviour has its own library, and only prints a message.
 */
static void end_early(void)
{
	char text[400] = "", *line = text, *next;
	off_t from = lseek(STDERR_FILENO, 0, SEEK_END) - (off_t)sizeof(text) + 1;

	if (nr_tests == NR_TESTS || getpid() != self)
		return;
	if (pread(STDERR_FILENO, text, sizeof(text) - 1, from < 0 ? 0 : from) < 0)
		text[0] = '\0';
	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	fprintf(tap, "# ended in test %d, round %" PRIu64 ": %s%s", nr_tests + 1, this_round, line,
		next ? "" : "\n");
	fflush(tap);
}

/*
 * Discards the output of the reports, and keeps their messages until the next round: in the file
 * that is standard error, if it is one.
 */
static void keep_quiet(void)
{
	int null = open("/dev/null", O_WRONLY), messages = memfd_create("messages", MFD_CLOEXEC);
	struct stat st;

	tap = fdopen(dup(STDOUT_FILENO), "w");
	if (!tap || null < 0 || messages < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    fstat(STDERR_FILENO, &st) ||
	    (!S_ISREG(st.st_mode) && dup2(messages, STDERR_FILENO) < 0))
		err(1, "/dev/null");
	self = getpid();
	atexit(end_early);
	__sanitizer_set_death_callback(end_early);
}

int main(int argc, char **argv)
{
	u64 nr = 200;
	int nr_corpus = argc - 3;
	struct bytes corpus[16], stripped, debug;

	if (argc > 2 && !strcmp(argv[1], "--structures")) {
		tap = stdout;
		nr = 400;
		fuzz_begin(tap, 1, &nr);
		result(changed_programs(argv + 2, argc - 2, nr),
		       "programs with changed structures");
		return failed;
	}
	if (nr_corpus < 1 || nr_corpus > 16)
		errx(1, "usage: hostile PROGRAM PROGRAM FILE... | hostile --structures PROGRAM...");
	stripped = load(argv[1], BYTES_MAX / 4);
	debug = load(argv[2], BYTES_MAX / 4);
	for (int i = 0; i < nr_corpus; i++)
		corpus[i] = load(argv[i + 3], BYTES_MAX / 4);
	keep_quiet();
	fuzz_begin(tap, NR_TESTS, &nr);
	result(every_length(&corpus[0]), "cut off at every length");
	result(every_bit(&corpus[0]), "every bit wrong");
	result(many_marks(&corpus[0]), "marks without blocks");
	result(every_bit_mended(&corpus[0]), "every bit wrong, with a sum that is right");
	result(rounds(corpus, nr_corpus, nr), "many random ones");
	result(programs(&stripped, nr / 8), "programs");
	result(programs(&debug, nr / 8), "programs with debug information");
	free(stripped.data);
	free(debug.data);
	for (int i = 0; i < nr_corpus; i++)
		free(corpus[i].data);
	return failed;
}
