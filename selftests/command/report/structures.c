// SPDX-License-Identifier: GPL-2.0
/*
 * structures PROGRAM...: looks up functions, lines and callers in programs whose ELF structures
 * and DWARF were changed at random: one field is wrong, and what surrounds it is right. Programs
 * have 64 bits. It should be built with -fsanitize=address,undefined. Prints TAP.
 * PROFIL_FUZZ_ROUNDS (400) is the number of changed programs.
 *
 * The process that reads a program may crash in a library. But it ends soon, and this process
 * remains and has an answer.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <string.h>

#include <zlib.h>

#include "fuzz.h"
#include "symbols/symbols.h"

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

/* ---- structures ---- */

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

/* ---- reading ---- */

/* Returns the sum of all that was found, so that the sanitizers see each byte. */
static size_t use(struct symbols *symbols, const struct lookup *lookup)
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
	return sum;
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
	if (use(symbols, &lookup) == SIZE_MAX)
		errx(1, "impossible");
	lookup_free(&lookup);
	symbols_free(symbols);
	close(fd);
}

int main(int argc, char **argv)
{
	u64 nr = 400;
	struct bytes bytes = { .data = malloc(BYTES_MAX) };
	struct outcomes outcomes = {};
	bool fine;

	if (argc < 2)
		errx(1, "usage: structures PROGRAM...");
	fuzz_begin(stdout, 1, &nr);
	for (u64 i = 0; i < nr; i++) {
		struct bytes whole = load(argv[1 + any(argc - 1)], BYTES_MAX);

		memcpy(bytes.data, whole.data, whole.len);
		bytes.len = whole.len;
		change(&bytes);
		look_up(&whole, &bytes, &outcomes);
		free(whole.data);
	}
	free(bytes.data);
	printf("# %" PRIu64 " read, %" PRIu64 " only names, %" PRIu64 " no programs, %" PRIu64
	       " failed, %" PRIu64 " slow\n", outcomes.read, outcomes.only_names,
	       outcomes.no_program, outcomes.failed, outcomes.slow);
	printf("# %" PRIu64 " names, %" PRIu64 " lines, %" PRIu64 " callers\n", outcomes.names,
	       outcomes.lines, outcomes.callers);
	fine = !outcomes.slow && outcomes.names && outcomes.lines && outcomes.callers;
	printf("%sok 1 programs with changed structures\n", fine ? "" : "not ");
	return !fine;
}
