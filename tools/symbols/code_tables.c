// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unwind tables of code that was made at run time: see unwind_table.h
 *
 * The compiler writes the call frame information of each function to its jit-PID.dump. libdw reads
 * it in a file that is made in memory, one for each function.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/jitdump.h"
#include "symbols/cfi_reduce.h"

/* A file with more records, and larger code and information, are not used. */
#define CODES_MAX	(1U << 20)
#define CODE_MAX	(64ULL << 20)
#define FRAMES_MAX	(64U << 10)
/* The maximum number of tables. Together they describe 512 MiB of code. */
#define PARTS_MAX	32

/* The tables are in the answer, each behind one of these. */
struct part {
	u64 start;
	u64 size;
};

/* ---- in the confined process ---- */

/**
 * struct code - A function
 * @start: Its first address.
 * @end: The address behind it.
 * @number: The number of its record in the file: the function with the higher one is newer.
 * @frames: The offset in the file of its .eh_frame.
 * @frames_size: The size of that; 0 if there is none.
 */
struct code {
	u64 start;
	u64 end;
	u32 number;
	u32 frames_size;
	u64 frames;
};

struct codes {
	struct code *all;
	size_t nr;
};

static bool read_all(int fd, void *to, size_t size, u64 offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, offset) == (ssize_t)size;
}

static void add_code(struct codes *codes, int fd, u64 at, const struct code *frames)
{
	struct jitdump_load load;
	struct code code = *frames;

	if (!read_all(fd, &load, sizeof(load), at) || !load.code_size ||
	    load.code_size > CODE_MAX || load.address > INT64_MAX - CODE_MAX)
		return;
	code.start = load.address;
	code.end = load.address + load.code_size;
	if (!array_grow(&codes->all, codes->nr, sizeof(code)))
		xmalloc_failed(sizeof(code));
	codes->all[codes->nr++] = code;
}

static struct code read_unwinding(int fd, u64 at, const struct jitdump_record *record)
{
	struct jitdump_unwinding unwinding;
	struct code code = { .frames = at + sizeof(unwinding) };
	u64 size;

	if (record->size < sizeof(unwinding) || !read_all(fd, &unwinding, sizeof(unwinding), at))
		return code;
	size = unwinding.size - unwinding.header_size;
	if (unwinding.header_size < unwinding.size && size <= FRAMES_MAX &&
	    size <= record->size - sizeof(unwinding))
		code.frames_size = size;
	return code;
}

/* Compilers that move code do not write this format, so code stays where it was loaded. */
static void read_codes(struct codes *codes, int fd)
{
	struct jitdump_header header;
	struct jitdump_record record;
	struct code frames = {};
	u64 at;

	if (!read_all(fd, &header, sizeof(header), 0) || header.magic != JITDUMP_MAGIC ||
	    header.machine != EM_X86_64)
		return;
	for (at = header.size; frames.number < CODES_MAX; at += record.size) {
		/* The compiler may be writing the last one. */
		if (!read_all(fd, &record, sizeof(record), at) || record.size < sizeof(record))
			return;
		frames.number++;
		if (record.id == JITDUMP_UNWINDING) {
			const u32 number = frames.number;

			frames = read_unwinding(fd, at, &record);
			frames.number = number;
		} else if (record.id == JITDUMP_LOAD) {
			add_code(codes, fd, at, &frames);
			frames.frames_size = 0;
		}
	}
}

static int compare_codes(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	return compare_u64(x->start, y->start) ?: compare_u64(x->number, y->number);
}

/* Removes functions that newer ones have overwritten. The others are sorted, and do not overlap. */
static void remove_overwritten(struct codes *codes)
{
	size_t nr = 0;

	if (codes->nr)
		qsort(codes->all, codes->nr, sizeof(*codes->all), compare_codes);
	for (size_t i = 0; i < codes->nr; i++) {
		const struct code *code = &codes->all[i];

		while (nr && codes->all[nr - 1].end > code->start &&
		       codes->all[nr - 1].number < code->number)
			nr--;
		if (!nr || codes->all[nr - 1].end <= code->start)
			codes->all[nr++] = *code;
	}
	codes->nr = nr;
}

/* Makes a file in memory that has the section .eh_frame of the function, and no other contents. */
static Elf *make_file(const struct code *code, int fd)
{
	const u64 size = code->end - code->start;
	static const char names[] = "\0.eh_frame\0.shstrtab";
	static struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[3];
		char names[sizeof(names)];
		u8 frames[FRAMES_MAX] __attribute__((aligned(8)));
	} file;

	if (!code->frames_size || !read_all(fd, file.frames, code->frames_size, code->frames))
		return NULL;
	memcpy(file.names, names, sizeof(names));
	file.header = (Elf64_Ehdr) {
		.e_ident = ELFMAG "\2\1\1",	/* 64 bits, little-endian, version 1 */
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(typeof(file), sections),
		.e_ehsize = sizeof(file.header),
		.e_shentsize = sizeof(*file.sections),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	file.sections[1] = (Elf64_Shdr) {
		.sh_name = 1,
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC,
		/* The size of the code is rounded up, not its end. */
		.sh_addr = code->start + (size + JITDUMP_ALIGNMENT - 1) / JITDUMP_ALIGNMENT *
			   JITDUMP_ALIGNMENT,
		.sh_offset = offsetof(typeof(file), frames),
		.sh_size = code->frames_size,
		.sh_addralign = 8,
	};
	file.sections[2] = (Elf64_Shdr) {
		.sh_name = 11,
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(typeof(file), names),
		.sh_size = sizeof(file.names),
		.sh_addralign = 1,
	};
	return elf_memory((char *)&file, sizeof(file));
}

static void write_part(struct reduced *reduced, u64 start, const struct confined *confined)
{
	struct part part = { .start = start };

	if (!reduce_end(reduced))
		return;
	part.size = reduced_size(reduced);
	confined_write(confined, &part, sizeof(part));
	reduced_write(reduced, confined);
}

static void work_make_codes(const struct confined *confined)
{
	struct reduced reduced = {};
	struct codes codes = {};
	u64 part = UINT64_MAX;
	size_t nr = 0;

	elf_version(EV_CURRENT);
	read_codes(&codes, confined->fd);
	remove_overwritten(&codes);
	for (size_t i = 0; i < codes.nr; i++) {
		const struct code *code = &codes.all[i];
		Elf *elf = make_file(code, confined->fd);
		u64 start = code->start, end;

		for (; elf && start < code->end; start = end) {
			const u64 own = start / PROFIL_UNWIND_CODE_SIZE * PROFIL_UNWIND_CODE_SIZE;

			if (own != part) {
				if (nr)
					write_part(&reduced, part, confined);
				if (nr++ == PARTS_MAX)
					return;
				reduce_begin(&reduced);
				part = own;
			}
			end = own + PROFIL_UNWIND_CODE_SIZE;
			if (end > code->end)
				end = code->end;
			reduce_code(&reduced, elf, start, end, part);
		}
		elf_end(elf);
	}
	if (nr)
		write_part(&reduced, part, confined);
}

/* ---- in the parent ---- */

/* Takes the table of the answer at @at. Returns the offset behind it; 0 if it is not valid. */
static size_t take_part(const struct confined *confined, size_t at, struct part *part,
			struct unwind_table *table)
{
	if (confined->size - at < sizeof(*part))
		return 0;
	memcpy(part, confined->answer + at, sizeof(*part));
	at += sizeof(*part);
	if (part->size > confined->size - at || part->start % PROFIL_UNWIND_CODE_SIZE)
		return 0;
	if (!unwind_table_take(table, xmemdup(confined->answer + at, part->size, part->size),
			       part->size))
		return 0;
	return at + part->size;
}

bool code_tables_make(int fd, void (*give)(void *data, u64 start, const struct unwind_table *table),
		      void *data)
{
	struct confined confined = {
		.work = work_make_codes,
		.fd = fd,
		.root = -1,
		.has_budget = true,
		.subject = "the unwinding information of its dump",
	};
	struct unwind_table table;
	struct part part;
	size_t at = 0;

	if (!confined_run(&confined))
		return false;
	while (at < confined.size && (at = take_part(&confined, at, &part, &table))) {
		give(data, part.start, &table);
		unwind_table_free(&table);
	}
	free(confined.answer);
	return true;
}
